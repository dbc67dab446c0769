#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Walks the stack of a program of this directory in one way, and compares it with the expected stack.

    walk.py WAY PROGRAM [WORD…]

A stack can be walked from inside coroutines to main: by gdb, backtrace(), _Unwind_Backtrace, libunwind, perf and in core dumps;
at every instruction except the last two of an inlined switch, where the walk ends; also on stacks of chunks, and in threads.
"""
import itertools
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent
OURS = set(re.findall(r"[\w]+", re.search(r"OURS = set\((.*?)\)", (TESTS / "in_gdb.py").read_text(), re.S).group(1)))
STEPS = re.compile(r"^STEP instructions (\d+), .* breaks: (\d+) in inlined switches, (\d+) elsewhere", re.M)
failures = 0


def skip(what, why):
    print(f"skip - {what}: {why}", flush=True)
    sys.exit(77)


def check(what, passed, why):
    global failures
    failures += not passed
    print(f"ok - {what}" if passed else f"not ok - {what}: {why}", flush=True)


def run(*command, timeout=120, **more):
    print("$", *command)
    command = [str(word) for word in command]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout, errors="replace",
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30)), **more)
    except subprocess.TimeoutExpired:
        done = subprocess.CompletedProcess(command, 124, "took too long")
    print(done.stdout)
    return done


def gdb(task, program, *args):
    if not shutil.which("gdb"):
        skip("gdb", "not installed: apt-get install --no-install-recommends gdb")
    return run("gdb", "-nx", "-batch", "-ex", f'set $_weft_task = "{task}"', "-x", TESTS / "in_gdb.py", "--args", program, *args).stdout


def golden():
    lines = (TESTS / "chains.golden").read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines)


def compare(what, seen):
    """`seen`: the walks by scenario; one result for all."""
    wrong = [f"{name} is '{seen.get(name)}', not '{walk}'" for name, walk in golden().items() if seen.get(name) != walk]
    wrong += [f"{name}: {text}" for name, text in seen.items() if name not in golden()]
    check(what, not wrong, "; ".join(wrong)[:600])


def ours(text):
    return " ".join(name for name in text.split() if name in OURS)


def by_scenario(lines):
    seen = {}
    for line in lines:
        name, _, rest = line.partition(": ")
        seen[name + "'" if name in seen else name] = rest
    return seen


# ---- the checks -----------------------------------------------------------------------------------------------------


def by_itself(program, mode):
    """backtrace() and _Unwind_Backtrace ("walk"), or libunwind."""
    done = run(program, mode)
    check("it ends well", not done.returncode, f"exit code {done.returncode}")
    lines = [line for line in done.stdout.splitlines() if ":" in line]
    compare(mode, {name: walk if "sees" in walk else ours(walk) for name, walk in by_scenario(lines).items()})


def by_gdb(program):
    lines = [line[5:] for line in gdb("chains", program).splitlines() if line.startswith("WALK ")]
    moves = [line for line in lines if line.split(":")[0] in ("finish", "finish innermost", "up")]
    compare("gdb", by_scenario(line for line in lines if line not in moves))
    expected = ["finish: leaf", "finish innermost: weft__entry", "up: middle chains.c"]
    check("gdb's finish and up", moves == expected, str(moves))


def at_each_instruction(program, *words):
    found = STEPS.search(gdb("step", program, *words))
    if not found:
        check("a walk at each instruction", False, "gdb never came to the end")
        return
    total, inside, elsewhere = map(int, found.groups())
    check(f"a walk at each instruction ({total} executed, broken at {inside} addresses: the last two of inlined switches)",
          total > 300 and inside < 20 and not elsewhere, f"{elsewhere} broken elsewhere")


ENDS = {
    "misuse": "weft__die_misuse run_finished misuses weft__entry run main",
    "overflow": "deep deep overflows weft__entry run main",
}


def check_end(mode, text):
    found = re.search(r"^WALK end: (.*)$", text, re.M)
    seen = found.group(1) if found else "nothing"
    check(f"where {mode} ends the program", seen.endswith(ENDS[mode]), f"gdb shows '{seen}'")


def at_ends(program):
    for mode in ENDS:
        check_end(mode, gdb("look", program, mode))


def in_core_dumps(program):
    """Core dumps of the kernel: gdb's own dumps stop at the first guard page that gdb cannot read, unless WEFT_GUARD=mprotect."""
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if re.search(r"[/|%]", pattern):
        skip("core dumps", f"core_pattern is '{pattern}'; set it to 'core' to run this")
    for mode in ENDS:
        with tempfile.TemporaryDirectory() as where:
            run("bash", "-c", 'ulimit -c unlimited; "$0" "$1"', program, mode, cwd=where)
            cores = list(pathlib.Path(where).glob("core*"))
            if cores:
                check_end(mode, run("gdb", "-nx", "-batch", "-ex", 'set $_weft_task = "look"', "-x", TESTS / "in_gdb.py", program,
                                    cores[0]).stdout)
            else:
                check(f"core dump of {mode}", False, "there is none")


def by_perf(program, by, expected):
    """By frame pointers perf reads the program's memory and reaches main; by DWARF it has a copy of the coroutine's stack only,
    and reaches the resumer."""
    perf, name = shutil.which("perf"), f"perf --call-graph {by}"
    if not perf:
        skip(name, "not installed: apt-get install --no-install-recommends linux-perf")
    with tempfile.TemporaryDirectory() as where:
        data = pathlib.Path(where) / "perf.data"
        done = run(perf, "record", "-q", "-e", "cpu-clock", "-F", "500", "--call-graph", by, "-o", data, program, "spin")
        if done.returncode or not data.exists():
            skip(name, "perf cannot record here: " + (done.stdout.strip().splitlines() or ["no data"])[0])
        text = run(perf, "script", "-i", data, "-F", "ip,sym", timeout=300).stdout
    samples = [" ".join(line.split()[1] for line in sample.splitlines() if len(line.split()) > 1)
               for sample in text.split("\n\n")]
    inside = [sample for sample in samples if "spin " in sample]
    if not inside:
        skip(name, "perf recorded no sample here")
    walked = [sample for sample in inside if expected in ours(sample)]
    check(name + f" ({len(walked)} of {len(inside)} samples show '{expected}')", len(walked) >= 0.95 * len(inside),
          f"{len(walked)} of {len(inside)} show '{expected}'; the first: '{ours(inside[0])}'")


DESCENT = "descend*41"
LINKED = {
    "one": f"stop bottom {DESCENT} body weft__entry run main",
    "nested": f"stop bottom {DESCENT} body weft__entry resumes {DESCENT} body weft__entry run main",
    "callback": f"stop bottom {DESCENT} compares sorts {DESCENT} body weft__entry run main",
    "thread": f"stop bottom {DESCENT} threaded",
    "coroutine in a thread": f"stop bottom {DESCENT} body weft__entry resumes {DESCENT} threaded",
}


def short(walk):
    """Merges repeated names, with their number."""
    runs = [(name, len(list(group))) for name, group in itertools.groupby(walk.split())]
    return " ".join(name if n == 1 else f"{name}*{n}" for name, n in runs)


def check_linked_walk(what, lines):
    seen = {name: short(walk.removesuffix(" run")) for name, walk in by_scenario(lines).items()}
    wrong = [f"{name} is '{seen.get(name)}', not '{walk}'" for name, walk in LINKED.items() if seen.get(name) != walk]
    check(what, not wrong, "; ".join(wrong)[:600])


def linked_by_itself(program, mode):
    lines = run(program, mode).stdout.splitlines()
    walks = [line for line in lines if ":" in line and "sees" not in line]
    check_linked_walk(mode, [name + ": " + ours(walk) for name, _, walk in (line.partition(": ") for line in walks)])
    links = re.search(r"^links (\d+)$", "\n".join(lines), re.M)
    check("chunks are linked", links and int(links.group(1)) > 4, "it has no chunks to walk across")


def linked_by_gdb(program):
    check_linked_walk("gdb", [line[5:] for line in gdb("chains", program).splitlines() if line.startswith("WALK ")])


def linked_at_each_instruction(program, word):
    found = STEPS.search(gdb("step", program, word))
    good = found and int(found.group(1)) > (90 if word == "step" else 500) and not int(found.group(3))
    check(f"a walk at each instruction, {word}", good, found.group(0) if found else "gdb never came to the end")


WAYS = [by_itself, by_gdb, at_each_instruction, at_ends, in_core_dumps, by_perf, linked_by_itself, linked_by_gdb,
        linked_at_each_instruction]
{way.__name__: way for way in WAYS}[sys.argv[1]](*sys.argv[2:])
sys.exit(failures > 0)
