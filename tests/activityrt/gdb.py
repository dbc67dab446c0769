#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Checks the output of tools/gdb/weft.py for parked.c, compiled without and with optimization: in a process, in a process whose activities have stacks of
their own, and in a core file.

    gdb.py [LOCALS]     LOCALS: the expected locals of the parked calls, from inside out ("0 10 20 30"; different values must fail)
"""
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent
ROOT = TESTS.parents[1]
COMMANDS = ["weft activities", "weft activity 1 frame apply all -s info locals", "weft activity 2 backtrace -40", "weft coroutine suspended backtrace 4",
            "backtrace 4", "weft activity 0 up", "weft activity 7", "weft coroutine 1"]
expected = sys.argv[1] if len(sys.argv) > 1 else "0 10 20 30"
failures = 0


def check(what, passed, said):
    global failures
    failures += not passed
    print(f"ok - {what}" if passed else f"not ok - {what}: gdb says\n{said}", flush=True)


def frames(text):
    return [line for line in text.splitlines() if line.startswith("#")]


def look(where, what):
    """gdb's answers to COMMANDS."""
    begin = [] if len(what) > 1 else ["break stop", "run"]
    words = [word for command in ["set debuginfod enabled off", *begin, "backtrace 4"] for word in ("-ex", command)]
    for i, command in enumerate(COMMANDS):
        words += ["-ex", f"echo ANSWER {i}\\n", "-ex", command]
    said = subprocess.run(["gdb", "-q", "-nx", "-batch", "-x", ROOT / "tools/gdb/weft.py", *words, "-ex", "kill", *what], cwd=where, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).stdout
    parts = re.split(r"^ANSWER \d+\n", said, flags=re.M)
    return frames(parts[0])[-4:], parts[1:] + [said] * (len(COMMANDS) + 1 - len(parts))


def checks(name, where, what, stackful=False):
    before, (listed, inner, deep, coroutine, after, up, unknown, number) = look(where, what)
    check(f"{name}: what each does", len(re.findall(r"waits for a semaphore, in (?:inner|bottom)$", listed, re.M)) == 2
          and re.search(r"0 +0x[0-9a-f]+ +runs$", listed, re.M), listed)
    found = " ".join(re.findall(r"^(?: +)?local = (\d+)$", inner, re.M))
    check(f"{name}: locals of parked calls", found == expected, f"{inner}\n(found: {found})")
    check(f"{name}: out of the stacks in which a deep recursion went on", re.search(r"^#\d+ .* deep \(n=", deep, re.M)
          and (stackful or re.search(r"^#2\d\d\d .*weft__activity_start", deep, re.M)), deep)
    check(f"{name}: a suspended coroutine", re.search(r"^#[23] .*\bsuspends \(", coroutine, re.M), coroutine)
    check(f"{name}: afterwards all is as before", len(before) > 1 and frames(after) == before, f"{before}\n{after}")
    check(f"{name}: another command", re.search(r"^#1 ", up, re.M), up)
    check(f"{name}: mistakes", "wants a number below 3" in unknown and re.search(r"no member|not a|cannot|Attempt", number, re.I), unknown + number)


def main():
    levels = ["-O0", "-O2"] if expected == "0 10 20 30" else ["-O0"]
    os.environ["WEFT_STACK"] = "overcommit:16M"  # no signal when a stack grows, at which gdb would stop
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)
    with tempfile.TemporaryDirectory() as where:
        for level in levels:
            program = pathlib.Path(where) / f"parked{level}"
            subprocess.run([ROOT / "weft", "cc", "--activities", "-g", level, TESTS / "parked.c", "-o", program], check=True)
            checks(level, where, [program])
            os.environ["WEFT_ACTIVITIES"] = "stackful"
            checks(f"{level}, stackful", where, [program], stackful=True)
            del os.environ["WEFT_ACTIVITIES"]
        subprocess.run([program], cwd=where, env={**os.environ, "DUMPS_CORE": "1"}, check=False)
        cores = list(pathlib.Path(where).glob("core*"))
        if cores:
            checks("core", where, [program, cores[0]])
        else:
            print("skip - core: the system writes core files elsewhere: sysctl kernel.core_pattern=core")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
