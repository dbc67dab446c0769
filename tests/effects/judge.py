#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Checks that compare two runs, or examine assembly or preprocessed text: judge.py WHAT WORD…

    same REMEMBERING NOT WORD…     two programs of random.c do the same, and only the first caches search results
    looks COMPILER…                a clause inlined at its guess cannot have forwarded its perform: no check for it
    text BYTES COMPILER…           a declaration is a short text, because each file that includes it must parse it
"""
import os
import pathlib
import random
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "include"


def output(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, timeout=120).stdout


def same(remembering, forgetting, *words):
    seed = os.environ.get("WEFT_SEED") or str(random.getrandbits(60))
    runs = [output(program, "--seed", seed, *words) for program in (remembering, forgetting)]
    print(f"WEFT_SEED={seed}", *runs, sep="\n")
    assert [" cached 0," in run for run in runs] == [False, True], "one of the two does not search as it is to"
    digests = [re.match(r"digest [0-9a-f]+", run).group() for run in runs]
    assert digests[0] == digests[1], "they did not do the same"


def looks(*compiler):
    often, oftener = (len(re.findall(r"testb\s+\$2, [0-9]+\(", output(*compiler, *more, "-O2", "-S", "-o", "-", f"-I{INCLUDE}", HERE / "hot.c")))
                      for more in ([], ["-fno-strict-aliasing"]))
    assert often < oftener, f"{often} looks, and {oftener} where any store may be one to a view"


def text(most, *compiler):
    all_of_it = " ".join(output(*compiler, "-O2", "-E", "-P", f"-I{INCLUDE}", HERE / "text/declaration.c").split())
    length = len(re.search(".* before (.*) after", all_of_it).group(1)) + 1
    print(f"{length} bytes")
    assert length <= int(most), f"{length} bytes, more than {most}"


globals()[sys.argv[1]](*sys.argv[2:])
