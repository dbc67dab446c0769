#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Checks that a mistake gets one error, which names it, in ten lines at most: wrong.py NAME FILE COMPILER… : NAME is gcc, g++, clang or clang++.
Compilers after gcc 12 and clang 16 quote more lines of source: there an error may take 14 lines.

The first lines of the file give the text of the error: "says:", or for a single compiler its name; further text of it, "names:" or
for a single compiler "gcc-names:"; and "clang-lines:", "gcc-errors:" and the like, if a compiler needs more lines or errors. "only the
first:" lists compilers whose errors and lines are not counted.
"""
import os
import pathlib
import re
import subprocess
import sys

INCLUDE = pathlib.Path(__file__).resolve().parents[1] / "include"
name, file, *compiler = sys.argv[1:]


def asked(what):
    found = re.search(rf"^/\* {re.escape(what)}: (.*) \*/$", text, re.M)
    return found and found.group(1)


def is_newer():
    version = subprocess.run([*compiler, "-dumpversion"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return int(version.split(".")[0]) > (16 if "clang" in name else 12)


text = pathlib.Path(file).read_text()
done = subprocess.run([*compiler, f"-I{INCLUDE}", "-fsyntax-only", file], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                      env=dict(os.environ, LC_ALL="C"), timeout=60)
print(done.stdout)
errors = [line for line in done.stdout.splitlines() if " error: " in line]
says = asked(name) or asked("says")
assert done.returncode, "it compiles"
assert says and errors and says in errors[0], f"the first error does not say '{says}'"
named = asked(f"{name}-names") or asked("names") or ""
assert named in done.stdout, f"'{named}' is not named"
assert f"{file}:" in done.stdout, "the file is not named"
if name not in (asked("only the first") or "").split():
    lines = len(done.stdout.splitlines())
    assert len(errors) <= int(asked(f"{name}-errors") or 1), f"{len(errors)} errors"
    most = int(asked(f"{name}-lines") or 10) + (4 if is_newer() else 0)
    assert lines <= most, f"{lines} lines"
