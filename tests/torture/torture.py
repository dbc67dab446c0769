#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs programs that each check themselves, or print something, on stacks of chunks: an instrumented build must
print the same output and end with the same code as a plain build, with its main in a coroutine whose first chunk has room for one frame.

    torture.py [options] PROGRAM.c…

A program whose plain build fails, or ends with an error, is not counted. A program that weft-as refuses is counted separately, and the
refusal must be documented. `--known FILE` lists programs that may differ, in lines of the form `name: reason`.
Prints a summary for each compiler and policy; ends with 1 if a program differs.
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

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
HOST = pathlib.Path(__file__).resolve().parent / "host.c"
POLICIES = {"segmented": ["segmented", "heap"], "mmu": ["mmu"], "lookahead": ["lookahead"]}
LEVELS = ["-O0", "-O1", "-O2", "-Os", "-O3"]
REFUSALS = ["__builtin_longjmp, or a goto out of a nested function"]
OPTIONS = re.compile(r'dg-(?:additional-)?options\s+{?\s*"([^"]*)"([^\n]*)')


def options_of(text):
    """The compiler options that a program of gcc's test suite requests on x86-64."""
    found = []
    for options, condition in OPTIONS.findall(text):
        if "target" not in condition or re.search(r"target\s*{?\s*x86_64", condition):
            found += [o for o in options.split() if not o.startswith("-Wl,")]
    return found


def run(command, seconds, **more):
    """Returns exit code and output; 124 after a time-out. The command's child processes end with it."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          start_new_session=True, **more) as process:
        try:
            output, _ = process.communicate(timeout=seconds)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return 124, b"takes too long: " + process.communicate()[0]


class Job:
    """One program and one compiler."""

    def __init__(self, args, path, compiler, number):
        self.args, self.path, self.compiler, self.name = args, path, compiler, path.name
        self.results = []  # (policy, outcome, detail)
        text = path.read_text(errors="replace")
        level = args.level or LEVELS[number % len(LEVELS)]
        self.flags = ["-w", level, *([f"-I{args.include}"] if args.include else []), *options_of(text)]
        self.is_cxx = path.suffix == ".cc"
        if "clang" in compiler and not self.is_cxx:
            self.flags += ["-std=gnu89" if args.old else "-std=gnu17", "-Wno-error", "-Wno-return-type"]
        self.directory = args.work / f"{number}.{compiler}"

    def __call__(self):
        self.directory.mkdir(parents=True, exist_ok=True)
        try:
            self.try_all()
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)
        return self

    def build(self, command, files, output):
        return run([*command, *self.flags, *files, "-o", output], 120, cwd=self.directory,
                   env={**os.environ, "WEFT_CC": self.driver(), "WEFT_CXX": self.driver(), "LC_ALL": "C"})

    def execute(self, **environment):
        return run(["./program"], self.args.seconds, cwd=self.directory, env={**os.environ, **environment})

    def driver(self):
        """The compiler of the program's language: g++ for gcc, clang++-16 for clang-16."""
        return re.sub("gcc|clang", lambda c: {"gcc": "g++", "clang": "clang++"}[c[0]], self.compiler) if self.is_cxx else self.compiler

    def instrument(self, kind):
        words = [] if kind == "none" else ["--instrument", kind]
        return [str(SOURCE / "weft"), "c++" if self.is_cxx else "cc", "--no-install", *words]

    def try_all(self):
        code, _ = self.build([self.driver()], [str(self.path), "-lm"], "program")
        plain = self.execute() if code == 0 else (1, b"")
        if plain[0] != 0:
            return
        # The compiler's assembly is the same for each instrumentation, because only the assembler differs.
        compiled = self.build([*self.instrument(self.args.kinds[0]), "-S"], [str(self.path)], "program.s")
        for kind in self.args.kinds:
            self.try_kind(kind, plain, compiled)

    def try_kind(self, kind, plain, compiled):
        code, said = compiled
        if code == 0 and self.args.link:
            code, said = self.build_against(self.args.link, kind)
        elif code == 0:
            command, text = [*self.instrument(kind), "-Wl,--wrap=main"], "program.s"
            if self.args.assembler:
                text = f"{kind}.s"
                code, said = run([str(self.args.assembler), kind, "program.s", "-o", text], 60, cwd=self.directory)
                command = [*self.instrument("none"), "-Wl,--wrap=main"]
            code, said = self.build(command, [text, str(self.args.work / f"host.{kind}.o"), "-lm"], "program")
        for policy in POLICIES[kind]:
            if code:
                known = any(r in said.decode(errors="replace") for r in REFUSALS)
                self.results.append((policy, "refused" if known else "differs", said))
                continue
            outcome = self.execute(WEFT_STACK=policy + ":1K")
            self.results.append((policy, "agrees" if outcome == plain else "differs",
                                 b"exit code %d: %s" % (outcome[0], outcome[1][-300:])))

    def build_against(self, library, kind):
        """Links with a different archive instead of the library: for a wrong run time."""
        code, said = self.build([*self.instrument(kind), "-c"], ["program.s"], "program.o")
        if code:
            return code, said
        return run(["gcc", "program.o", str(self.args.work / f"host.{kind}.o"), str(library), "-pthread", "-lm", "-Wl,--wrap=main",
                    "-o", "program"], 60, cwd=self.directory)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--compilers", type=str.split, default=["gcc"])
    parser.add_argument("--kinds", type=str.split, default=list(POLICIES))
    parser.add_argument("--include", help="a directory of headers, for every program")
    parser.add_argument("--level", help="the optimization level; default: each in turn")
    parser.add_argument("--old", action="store_true", help="programs in the C of 1989")
    parser.add_argument("--seconds", type=float, default=30, help="for each run")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--known", type=pathlib.Path)
    parser.add_argument("--assembler", type=pathlib.Path, help="a weft-as in place of the one that is installed")
    parser.add_argument("--link", type=pathlib.Path, help="an archive in place of the library")
    args = parser.parse_args()
    args.work = args.work.resolve()
    args.programs = [p.resolve() for p in args.programs]
    args.known_names = {}
    if args.known:
        lines = (line.partition(":") for line in args.known.read_text().splitlines() if line and line[0] != "#")
        args.known_names = {name.strip(): reason.strip() for name, _, reason in lines}
    return args


def make_hosts(args):
    args.work.mkdir(parents=True, exist_ok=True)
    for kind in args.kinds:
        subprocess.run([SOURCE / "weft", "cc", "--instrument", kind, "-O1", "-w", "-c", HOST, "-o", args.work / f"host.{kind}.o"],
                       check=True, env={**os.environ, "WEFT_CC": "gcc"})


def main():
    args = arguments()
    make_hosts(args)
    counts, bad, silent = collections.Counter(), 0, collections.Counter()
    jobs = [Job(args, p, c, i) for i, p in enumerate(args.programs) for c in args.compilers]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for job in pool.map(lambda j: j(), jobs):
            silent[job.compiler] += not job.results
            for policy, outcome, detail in job.results:
                if outcome == "differs" and job.name in args.known_names:
                    outcome = "known"
                counts[job.compiler, policy, outcome] += 1
                if outcome == "differs":
                    bad += 1
                    print(f"# {job.name} {job.compiler} {' '.join(job.flags)} {policy}: {detail.decode(errors='replace')[-600:]}")
                    sys.stdout.flush()
    for compiler in args.compilers:
        for policy in (p for k in args.kinds for p in POLICIES[k]):
            said = ", ".join(f"{counts[compiler, policy, o]} {o}" for o in ("agrees", "differs", "known", "refused"))
            print(f"{compiler} {policy}: {said}; {silent[compiler]} say nothing")
            bad += counts[compiler, policy, "agrees"] == 0
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
