#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Do our headers leave the user's warnings alone, and cause none? warned.py FILE COMPILER FLAG…

Compiles FILE (warned.c or warned.cc) after every public header. The lines of warned.inc that say "warned" must cause a warning, and no
other line of any file. A line that the preprocessor leaves out is not expected.
"""
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "include"
file, *command = sys.argv[1:]
# -Weverything has opinions about the language, and about what C does in macros: casts, among them between types of functions, and functions
# that may be unused.
OPINIONS = ("c++98-compat", "c++98-compat-pedantic", "pre-c11-compat", "padded", "declaration-after-statement", "unsafe-buffer-usage", "switch-default",
            "missing-noreturn", "implicit-void-ptr-cast", "used-but-marked-unused", "cast-function-type-strict", "unused-macros", "reserved-identifier", "old-style-cast",
            "zero-as-null-pointer-constant", "c++98-compat-extra-semi")
language = "*.h" if file.endswith(".c") else "*.h*"
# Code built by a sanitizer only; a system without a C library; other names for POSIX's calls.
headers = sorted(set((INCLUDE / "weft").glob(language)) - {INCLUDE / "weft" / name for name in ("sanitizer.h", "freestanding.h", "posix.h")})
assert len(headers) > 15, headers
for header in headers:
    command += ["-include", f"weft/{header.name}"]
if "-Weverything" in command:
    command += [f"-Wno-{opinion}" for opinion in OPINIONS]


def output(*flags):
    return subprocess.run([*command, *flags, str(HERE / file)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=dict(os.environ, LC_ALL="C"), timeout=60)


compiled = output("-fsyntax-only")
assert not compiled.returncode, compiled.stdout
kept = output("-w", "-E", "-C").stdout.count("/* warned */")
wanted = {number for number, line in enumerate((HERE / "warned.inc").read_text().splitlines(), 1) if "/* warned */" in line}
found = {(pathlib.Path(name).name, int(line)) for name, line in re.findall(r"^([^:\n]+):(\d+):\d+: warning:", compiled.stdout, re.M)}
others = sorted(found - {("warned.inc", line) for line in wanted})
print(compiled.stdout if others or len(found) != kept else f"{kept} warnings, as expected", flush=True)
assert not others, f"warnings that nobody asked for: {others}"
assert kept > 4 and len(found) == kept, f"{kept} warnings are due; only lines {sorted(line for _, line in found)} have one"
