#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Does a yield wait for its frame? yields.py COMPILER… , for assembly/yields.c.

A yield stores to the coroutine that it suspends. If the pointer to the coroutine were loaded from the frame, the resume would
wait for the frame's cache line before it could request the coroutine's line: two misses in sequence, if thousands of coroutines
live. For each switch, the script searches for the last instruction that set the pointer, as far as the preceding code shows it.
"""
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent / "assembly/yields.c"
assembly = subprocess.run([*sys.argv[1:], "-S", "-o", "-", SOURCE], check=True, text=True, stdout=subprocess.PIPE, timeout=60).stdout

origin, switches = {}, []  # the origin of each register's value
for line in assembly.splitlines():
    word, *operands = re.sub(r"[;#].*", "", line).split() or [""]
    source, target = (operands[0].rstrip(","), operands[-1]) if len(operands) > 1 else ("", "")
    if word == "jmp" or word.startswith("ret"):
        origin.clear()
    elif word in ("mov", "movq") and re.fullmatch(r"-?\d*\(%r[sb]p\)", source):
        origin[target] = "the frame"
    elif word in ("mov", "movq") and source == "%rsp" and re.fullmatch(r"0?\(%rdi\)", target):
        switches.append(origin.get("%rdi", "elsewhere"))
    elif word in ("mov", "movq") and re.fullmatch(r"%r..?", source):
        origin[target] = origin.get(source, "elsewhere")
    elif word.startswith(("mov", "lea")):
        origin[target] = "elsewhere"
print("the coroutine's address is from:", *switches, sep="\n    ")
assert switches, "no switch was found"
assert "the frame" not in switches, "a switch waits for the frame"
