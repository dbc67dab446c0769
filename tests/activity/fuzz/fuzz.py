#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Differential tests of the pass for activities: a program's main, compiled with the pass, runs as an activity beside noise (host.c) and
must print what the plain build prints, and end as it ends.

    fuzz.py --rt DIRECTORY prepare           build what the others need: the pass, host.c, the library with both windows
    fuzz.py [options] csmith                 programs that csmith makes, one for each seed
    fuzz.py [options] ours                   programs of programs.py, one for each seed
    fuzz.py [options] PROGRAM.c…             these

Each program is compiled with the pass once per compiler, at a level that its number chooses; each build runs with the timer off, ringing
often, and at each yield, on a usual and on a tiny window (where nearly every call goes on in a stack of its own). A program which plain
builds refuse, which fails there or takes too long says nothing. Ends with 1 if a program differs; the program and the command are kept.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[2]
LEVELS = ["-O1", "-O2", "-O0", "-O3", "-Os"]
PERIODS = ["every", "20000", "off"]
WARNINGS = re.compile(r'dg-(?:additional-)?options\s+{?\s*"([^"]*)"([^\n]*)')


def options_of(text):
    """What a program of gcc's test suite wants to be compiled with on x86-64."""
    found = []
    for options, condition in WARNINGS.findall(text):
        if "target" not in condition or re.search(r"target\s*{?\s*x86_64", condition):
            found += [o for o in options.split() if not o.startswith("-Wl,")]
    return found


def run(command, seconds, **more):
    """Exit code and output; 124 if it takes too long. What it has started ends with it."""
    with subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          start_new_session=True, **more) as process:
        try:
            output, _ = process.communicate(timeout=seconds)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return 124, b"takes too long: " + process.communicate()[0]


class Program:
    """One program, its plain build, and its builds with the pass."""

    def __init__(self, args, what, number):
        self.args, self.number = args, number
        self.name = what.name if isinstance(what, pathlib.Path) else f"{what}-{number}.c"
        self.what = what
        self.directory = args.work / self.name
        self.levels = [LEVELS[(number + i) % len(LEVELS)] for i in range(args.levels)]
        self.counts, self.said = collections.Counter(), []

    def __call__(self):
        if time.monotonic() > self.args.until:
            return self
        self.directory.mkdir(parents=True, exist_ok=True)
        self.source = self.make()
        if self.source:
            self.compare()
        if not self.said:
            shutil.rmtree(self.directory, ignore_errors=True)
        return self

    def make(self):
        path = self.directory / "program.c"
        if isinstance(self.what, pathlib.Path):
            return self.what
        if self.what == "csmith":
            command = ["csmith", "--seed", self.number, "--max-funcs", 4 + self.number % 9, "--max-block-size", 3 + self.number % 2, "-o", path]
        else:
            command = [sys.executable, HERE / "programs.py", self.number, path]
        code, said = run(command, 60)
        if code:
            self.counts["not made"] += 1
            return None
        return path

    def flags(self, level):
        found = ["-w", level, "-std=gnu17" if not self.args.old else "-std=gnu89", "-Dmain=fuzz_main", "-Wno-error", "-Wno-return-type",
                 f"-I{SOURCE}/include", "-I/usr/include/csmith", *self.args.flags]
        return found + options_of(self.source.read_text(errors="replace"))

    def build(self, compiler, level, *more):
        """The program, or None."""
        name = f"{compiler}{level}{'.pass' if more else ''}"
        version = compiler.rpartition("-")[2]
        host = self.args.rt / (f"host{version}.o" if more else "hostp.o")
        flags = [*self.flags(level), *more]
        code, said = run([compiler, *flags, "-c", self.source, "-o", f"{name}.o"], 120, cwd=self.directory)
        if code == 0:
            link = ["-L", self.args.rt / "normal", "-lact"] if more else []
            code, said = run([compiler, f"{name}.o", host, "-o", name, *link, "-lm"], 60, cwd=self.directory)
        (self.directory / f"{name}.o").unlink(missing_ok=True)
        return (self.directory / name if code == 0 else None), said

    def execute(self, program, seconds, **environment):
        return run([program], seconds, cwd=self.directory, env={**os.environ, "LC_ALL": "C", **environment})

    def compare(self):
        for i, level in enumerate(self.levels):
            compilers = self.args.compilers
            for compiler in [compilers[(self.number + i) % len(compilers)]] if self.args.alternate else compilers:
                self.compare_build(compiler, level)

    def compare_build(self, compiler, level):
        plain, _ = self.build(compiler, level)
        if not plain:
            self.counts["not compiled plain"] += 1
            return
        started = time.monotonic()
        expected = self.execute(plain, self.args.seconds)
        took = time.monotonic() - started
        if expected[0]:
            self.counts["fails plain"] += 1
            return
        program, said = self.build(compiler, level, "-DFUZZ_PASS", f"-fpass-plugin={self.args.rt}/Weft{compiler.rpartition('-')[2]}.so")
        self.counts["builds"] += 1
        if not program:
            refused = any(reason in said.decode(errors="replace") for reason in self.args.refusals)
            self.counts["refused" if refused else "not compiled"] += 1
            if not refused:
                self.report(compiler, level, "compiling", said)
            return
        for kind in ["normal", "tiny"]:
            for period in PERIODS if self.args.all else [PERIODS[0], PERIODS[1 + self.number % 2]]:
                self.compare_run(compiler, level, program, kind, period, expected, took)
        if not self.said:
            program.unlink()
            plain.unlink()

    def compare_run(self, compiler, level, program, kind, period, expected, took):
        noise = str(self.number % 3 + 1)
        limit = 20 + 30 * took
        got = self.execute(program, limit, WEFT_ACTIVITY_PERIOD=period, WEFT_FUZZ_NOISE=noise, LD_LIBRARY_PATH=str(self.args.rt / kind))
        self.counts["runs"] += 1
        if got == expected:
            self.counts["agree"] += 1
        elif got[0] == 124 and period == "every":
            self.counts["too slow"] += 1
        else:
            self.counts["differ"] += 1
            how = f"WEFT_ACTIVITY_PERIOD={period} WEFT_FUZZ_NOISE={noise} LD_LIBRARY_PATH={self.args.rt}/{kind} {program}"
            self.report(compiler, level, how, b"exit code %d: %s\n  expected %s" % (got[0], got[1][-300:], expected[1][-300:]))

    def report(self, compiler, level, how, detail):
        self.said.append(f"# {self.name}: {compiler} {' '.join(self.flags(level))}: {how}: {detail.decode(errors='replace')[-1500:]}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+")
    parser.add_argument("--rt", type=pathlib.Path, required=True, help="Weft*.so, host*.o, {normal,tiny}/libact.so")
    parser.add_argument("--work", type=pathlib.Path, default="fuzz.work")
    parser.add_argument("--canary", help="prepare: a bug to build into the pass: variables_stay, no_yield_yields")
    parser.add_argument("--compilers", type=str.split, default=["clang-22", "clang-19"])
    parser.add_argument("--alternate", action="store_true", help="one compiler for each program")
    parser.add_argument("--seeds", default="1-100")
    parser.add_argument("--levels", type=int, default=1, help="how many levels for each program")
    parser.add_argument("--all", action="store_true", help="all periods")
    parser.add_argument("--old", action="store_true", help="programs in the C of 1989")
    parser.add_argument("--flags", type=str.split, default=[])
    parser.add_argument("--seconds", type=float, default=3, help="for each plain run")
    parser.add_argument("--time", type=float, default=1e9, help="begin no program after so many seconds")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--refusals", action="append", default=[])
    args = parser.parse_args()
    args.work, args.rt = args.work.resolve(), args.rt.resolve()
    args.until = time.monotonic() + args.time
    return args


def prepare_pass(args, compiler):
    version = compiler.rpartition("-")[2]
    words = subprocess.run([f"llvm-config-{version}", "--cxxflags"], check=True, capture_output=True, text=True).stdout.split()
    canary = [f"-DWEFT_CANARY_{args.canary}"] if args.canary else []
    plugin = args.rt / f"Weft{version}.so"
    subprocess.run([f"clang++-{version}", *words, "-std=c++17", "-fno-rtti", "-O1", "-fPIC", "-shared", *canary,
                    *sorted((SOURCE / "tools/activities").glob("*.cpp")), "-o", plugin], check=True)
    subprocess.run([compiler, "-std=gnu11", "-O1", f"-I{SOURCE}/include", f"-fpass-plugin={plugin}", "-c", HERE / "host.c", "-o",
                    args.rt / f"host{version}.o"], check=True)


def compile_library(args, source, kind):
    target = args.rt / kind / f"{source.parent.name}.{source.name}.o"
    subprocess.run(["gcc", "-std=gnu11", "-O2", "-g", "-fPIC", "-fvisibility=hidden", f"-I{SOURCE}/include", f"-I{SOURCE}/src",
                    *(["-DWEFT_TINY"] if kind == "tiny" and source.parent.name == "activity" else []), "-c", source, "-o", target], check=True)
    return target


def prepare(args):
    """Only the layer of activities is built with a tiny window; the others as they are."""
    sources = [s for s in sorted((SOURCE / "src").glob("*/*.[cS]")) if s.parent.name != "activity"]
    own = sorted((SOURCE / "src/activity").glob("*.[cS]"))
    for kind in ("normal", "tiny"):
        (args.rt / kind).mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        passes = [pool.submit(prepare_pass, args, compiler) for compiler in args.compilers]
        common = list(pool.map(lambda s: compile_library(args, s, "normal"), sources))
        for kind in ("normal", "tiny"):
            objects = list(pool.map(lambda s: compile_library(args, s, kind), own))
            subprocess.run(["gcc", "-shared", "-o", args.rt / kind / "libact.so", *objects, *common, "-lpthread", "-ldl", "-lm"], check=True)
        for each in passes:
            each.result()
    subprocess.run([args.compilers[0], "-DFUZZ_PLAIN", "-O1", "-c", HERE / "host.c", "-o", args.rt / "hostp.o"], check=True)


def main():
    args = arguments()
    if args.what == ["prepare"]:
        prepare(args)
        return 0
    if args.what[0] in ("csmith", "ours"):
        first, last = map(int, args.seeds.split("-"))
        jobs = [Program(args, args.what[0], n) for n in range(first, last + 1)]
    else:
        jobs = [Program(args, pathlib.Path(p).resolve(), n) for n, p in enumerate(args.what)]
    counts = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for job in pool.map(lambda j: j(), jobs):
            counts.update(job.counts)
            counts["programs"] += bool(job.counts)
            for line in job.said:
                print(line, flush=True)
    print("; ".join(f"{n} {what}" for what, n in sorted(counts.items())))
    return int(counts["differ"] + counts["not compiled"] > 0 or not counts["agree"])


if __name__ == "__main__":
    sys.exit(main())
