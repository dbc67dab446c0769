#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Does a level of nested weft_run cost the same at any depth? levels.py PROGRAM, which is nested.c: counted by callgrind.

A level of 4000 may cost 1.3 times as many instructions as a level of 500.
"""
import os
import re
import subprocess
import sys


def instructions(levels):
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.argv[1], str(levels)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=dict(os.environ, WEFT_STACK="copy"), check=True)
    return int(re.search(r"Collected : (\d+)", done.stdout).group(1))


none = instructions(1)
few, many = (instructions(500) - none) / 499, (instructions(4000) - none) / 3999
print(f"a level of 500: {few:.0f} instructions; of 4000: {many:.0f}")
assert many < few * 1.3, "deep levels cost more"
