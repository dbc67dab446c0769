#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Differential tests of the pass for activities: random programs, compiled with the pass, run as activities beside noise (host.c), must
print the output of plain builds, and end like them.

    fuzz.py [options] ours SEEDS             programs of programs.py, one for each seed: 7, or 1-1000
    fuzz.py [options] csmith SEEDS           programs that csmith makes
    fuzz.py [options] PROGRAM.c…             these, one by one

Many programs are compiled as one file, without optimization and the pass, which gives the expected output, and with the pass at a level
that the file's number chooses. That build runs in each WAY: the timer off, ringing often, and at each yield, on a usual and on a tiny window
(where nearly every call continues in a stack of its own). A program that differs is made again, alone, with its plain build at the same level:
then it is kept, and the command that repeats it is printed. A program that plain builds refuse, or that fails or takes long there, is left out.
"""
import argparse
import collections
import os
import pathlib
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time

import programs

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[2]
LEVELS = ["-O1", "-O2", "-O0", "-O3", "-Os"]
VECTORS = [[], ["-mavx2"], ["-mavx512f"]]
WAYS = ["normal:every", "tiny:every", "normal:20000", "tiny:20000", "normal:off", "tiny:off"]
CSMITH = [pathlib.Path("/usr/include/csmith"), SOURCE / "build/torture/libcsmith-dev/files/usr/include/csmith"]
# libc's functions then use vectors of AVX, and clear their upper halves at last.
NARROW = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512VL,-AVX512F,-AVX512BW,-ERMS"}
PROCESSOR = set(pathlib.Path("/proc/cpuinfo").read_text().split())
TOO_LONG = (-signal.SIGXCPU, -signal.SIGKILL)
OPTIONS = re.compile(r'dg-(?:additional-)?options\s+{?\s*"([^"]*)"([^\n]*)')
LINE = re.compile(r"^(\d+): (.+)$", re.M)


def options_of(text):
    """The options by which a program of gcc's test suite is compiled on x86-64."""
    found = []
    for options, condition in OPTIONS.findall(text):
        if "target" not in condition or re.search(r"target\s*{?\s*x86_64", condition):
            found += [o for o in options.split() if not o.startswith("-Wl,")]
    return found


def run(command, seconds, **more):
    """Exit code and output. The program gets `seconds` of processor time, and much more of the clock's; its children end with it."""
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 1))
    with subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          start_new_session=True, preexec_fn=limit, **more) as process:
        try:
            output, _ = process.communicate(timeout=60 + 10 * seconds)
            return process.returncode, output.decode(errors="replace")
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return -signal.SIGKILL, process.communicate()[0].decode(errors="replace")


def csmith(seed):
    """Its program, whose names are made its own."""
    size = ["--max-funcs", 2 + seed % 3, "--max-block-size", 2, "--max-block-depth", 2 + seed % 2, "--max-expr-complexity", 3 + seed % 3,
            "--max-array-len-per-dim", 5, "--max-array-dim", 2, "--max-struct-fields", 4]
    command = ["csmith", "--seed", seed, "--quiet", "--concise", *size]
    text = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, timeout=60).stdout
    text = re.sub(r"\b(main|g_\d+|func_\d+|[SU]\d+)\b", rf"\1_{seed}", text.replace('#include "csmith.h"', ""))
    return text + f"""
static void program_{seed}(void)
{{
	char *none[] = {{"", NULL}};
	crc32_context = 0xFFFFFFFFUL;
	main_{seed}(1, none);
}}
"""


class Batch:
    """Programs in one file, its plain build and its build with the pass."""

    def __init__(self, tool, what, seeds, level):
        self.tool, self.args, self.what, self.seeds, self.level = tool, tool.args, what, seeds, level
        self.name = what.name if isinstance(what, pathlib.Path) else f"{what}.{seeds[0]}" + (f"-{seeds[-1]}" if len(seeds) > 1 else "")
        self.directory = self.args.work / f"{self.name}{level}"
        self.directory.mkdir(parents=True, exist_ok=True)
        self.source, self.options, self.environment = self.directory / "programs.c", [], {**os.environ, "LC_ALL": "C", **NARROW}
        if isinstance(what, pathlib.Path):
            self.source = what
            self.options = options_of(what.read_text(errors="replace"))
        else:
            self.source.write_text(self.text())

    def vectors(self):
        """How wide the vectors are that functions take and return in registers. By the first seed: it is the same for one program alone."""
        flags = VECTORS[self.seeds[0] // 100 % len(VECTORS)]
        return [*flags, "-ffp-contract=off"] if all(flag.removeprefix("-m") in PROCESSOR for flag in flags) else []

    def text(self):
        if self.what == "ours":
            text = programs.text_of(self.seeds)
        else:
            text = '#include "csmith.h"\n#include <stdio.h>\n#include <stdlib.h>\n' + "".join(map(csmith, self.seeds))
        table = "".join(f"\t{{{seed}, program_{seed}}},\n" for seed in self.seeds)
        return f"{text}\nstatic const struct {{ unsigned number; void (*run)(void); }} programs[] = {{\n{table}}};\n#include \"many.h\"\n"

    def remove(self):
        shutil.rmtree(self.directory, ignore_errors=True)

    def build(self, level, with_pass):
        """The program, or None; the compiler's output."""
        name = f"{'pass' if with_pass else 'plain'}{level}"
        more = ["-DFUZZ_PASS", f"-fpass-plugin={self.tool.plugin}"] if with_pass else []
        flags = ["-w", level, "-std=gnu89" if self.args.old else "-std=gnu17", "-Dmain=fuzz_main", "-Wno-error", "-Wno-return-type",
                 f"-I{SOURCE}/include", f"-I{HERE}", *self.vectors(), *(f"-I{place}" for place in CSMITH), *self.args.flags, *self.options, *more]
        link = ["-Wl,-rpath-link", self.tool.libraries, "-L", self.tool.libraries, "-lweft-activity", "-lweft-rt", "-lweft"] if with_pass else []
        code, said = run([self.args.compiler, *flags, "-c", self.source, "-o", f"{name}.o"], 600, cwd=self.directory)
        if code == 0:
            code, said = run([self.args.compiler, f"{name}.o", self.tool.hosts[with_pass], "-o", name, *link, "-lm"], 600, cwd=self.directory)
        (self.directory / f"{name}.o").unlink(missing_ok=True)
        return (self.directory / name if code == 0 else None), said

    def execute(self, program, seeds, seconds, **environment):
        """Exit code, the output of each program, the whole output."""
        code, output = run([program, *seeds], seconds, cwd=self.directory, env={**self.environment, **environment})
        if isinstance(self.what, pathlib.Path):
            return code, {} if code in TOO_LONG else {0: f"{output}exit code {code}"}, output
        return code, {int(number): line for number, line in LINE.findall(output)}, output

    def numbers(self, seeds):
        return [] if isinstance(self.what, pathlib.Path) else seeds

    def measure(self, level):
        """The output that each program must print, and its seconds of processor time."""
        program, _ = self.build(level, False)
        if not program:
            return {}, 0
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        code, lines, _ = self.execute(program, [], 10)
        took = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        program.unlink()
        return ({} if code else lines), took

    def compare(self):
        """Reports differences; returns whether there are any."""
        counts = self.tool.counts
        wanted, took = self.measure("-O0")
        counts["programs that say nothing"] += len(self.seeds) - len(wanted)
        program, said = self.build(self.level, True) if wanted else (None, "")
        if wanted and not program:
            if self.refused(said):
                return
        elif program:
            failed = set()
            for way in self.args.ways:
                failed |= self.compare_way(program, way, {n: line for n, line in wanted.items() if n not in failed}, took)
            if failed:
                return
            counts["agree"] += len(wanted)
        self.remove()

    def refused(self, said):
        """The compiler refused the file. Returns whether a program of it is to be kept."""
        if len(self.seeds) > 1:
            middle = len(self.seeds) // 2
            for seeds in (self.seeds[:middle], self.seeds[middle:]):
                Batch(self.tool, self.what, seeds, self.level).compare()
        elif any(reason in said for reason in self.args.refusals):
            self.tool.counts["refused"] += 1
        else:
            self.tool.counts["not compiled"] += 1
            self.tool.report(self, self.args.ways[0], "is not compiled", said[-1500:])
            return True
        return False

    def compare_way(self, program, way, wanted, took):
        """The programs that differ. After a program that ends the process, the next programs continue."""
        left, differ = sorted(wanted), set()
        window, period = way.split(":")
        path = f"{self.tool.tiny}:{self.tool.libraries}" if window == "tiny" else str(self.tool.libraries)
        while left and not self.tool.enough():
            code, lines, output = self.execute(program, self.numbers(left), 20 + 50 * took, WEFT_ACTIVITY_PERIOD=period, LD_LIBRARY_PATH=path,
                                               WEFT_FUZZ_NOISE=str(1 + self.seeds[0] // 100 % 3))
            self.tool.counts["runs"] += len(lines)
            bad = [n for n in left if n in lines and lines[n] != wanted[n]]
            missing = [n for n in left if n not in lines][:1]
            if missing and code in TOO_LONG and period == "every":
                self.tool.counts["too slow"] += 1
                left = [n for n in left if n > missing[0]]
                continue
            if not missing and code and not bad:
                self.tool.report(self, way, f"ends with {code}", output[-300:])
                self.tool.counts["differ"] += 1
                differ.add(left[0])
            for n in bad[:self.args.most] + missing:
                found = lines.get(n, f"ends with {code}: {output[-300:]}")
                if self.confirm(n, way, wanted[n], found):
                    differ.add(n)
            left = [n for n in left if missing and n > missing[0]]
        return differ

    def confirm(self, n, way, wanted, found):
        """Does it differ alone, and plain builds at this level do not?"""
        detail = f"found {found}; wanted {wanted}"
        if len(self.seeds) == 1:
            lines, _ = self.measure(self.level)
            if lines.get(n) != wanted:
                self.tool.counts["levels differ without the pass"] += 1
                return False
            self.tool.report(self, way, "differs", detail)
            self.tool.counts["differ"] += 1
            return True
        alone = Batch(self.tool, self.what, [n], self.level)
        lines, took = alone.measure("-O0")
        program, _ = alone.build(self.level, True)
        if program and alone.compare_way(program, way, lines, took):
            return True
        levels = alone.measure(self.level)[0].get(n) != wanted
        alone.remove()
        if levels:
            self.tool.counts["levels differ without the pass"] += 1
            return False
        self.tool.report(self, way, f"{n} differs, but not alone", detail)
        self.tool.counts["differ"] += 1
        return True


class Tool:
    """The parts that all programs need: the pass, the library with both windows, host.c."""

    def __init__(self, args):
        self.args, self.counts, self.hosts = args, collections.Counter(), {}
        script, version = HERE.parent / "pass", args.compiler.rpartition("-")[2]
        self.plugin = subprocess.run([script, version], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        self.libraries, self.tiny = pathlib.Path(self.plugin).parents[2], args.work / "tiny"
        for with_pass in (False, True):
            more = [f"-fpass-plugin={self.plugin}"] if with_pass else ["-DFUZZ_PLAIN"]
            self.hosts[with_pass] = target = args.work / f"host.{'pass' if with_pass else 'plain'}.o"
            subprocess.run([args.compiler, "-O1", *more, f"-I{SOURCE}/include", "-c", HERE / "host.c", "-o", target], check=True)
        if any(way.startswith("tiny") for way in args.ways):
            self.build_tiny()
        if args.canary:
            self.plugin = subprocess.run([script, version, *args.canary], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

    def build_tiny(self):
        """Only the layer of activities is built with a tiny window; the other layers are unchanged."""
        self.tiny.mkdir(exist_ok=True)
        sources = [*sorted((SOURCE / "src/activity").glob("*.[cS]")), SOURCE / "src/internal/message.c", SOURCE / "src/internal/symbolize.c"]
        name = os.readlink(self.libraries / "libweft-activity.so")
        subprocess.run(["gcc", "-std=gnu11", "-O1", "-g", "-fPIC", "-fvisibility=hidden", "-DWEFT_TINY", f"-I{SOURCE}/include",
                        f"-I{SOURCE}/src", *sources, "-shared", f"-Wl,-soname,{name}", "-L", self.libraries, "-lweft-rt", "-lweft", "-o",
                        self.tiny / name], check=True)

    def enough(self):
        return self.counts["differ"] + self.counts["not compiled"] >= self.args.most

    def report(self, batch, way, what, detail):
        command = [HERE / "fuzz.py", "--compiler", batch.args.compiler, f"--level={batch.level}", "--ways", way,
                   *(["--canary", *self.args.canary] if self.args.canary else []), *(["--old"] if self.args.old else []),
                   *([batch.what] if isinstance(batch.what, pathlib.Path) else [batch.what, f"{batch.seeds[0]}-{batch.seeds[-1]}"])]
        detail = detail.replace("\n", "\n# ")
        print(f"{'# canary:' if self.args.canary else 'not ok -'} {batch.name} {batch.level} {way} {what}: {detail}\n"
              f"# kept: {batch.source}; again: {shlex.join(map(str, command))}", flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+")
    parser.add_argument("--work", type=pathlib.Path, default="fuzz.work")
    parser.add_argument("--canary", nargs=2, metavar=("DIRECTORY", "BUG"), help="with a pass that has a bug, which must be found; see ../pass")
    parser.add_argument("--compiler", default="clang-22")
    parser.add_argument("--size", type=int, default=100, help="so many programs in a file")
    parser.add_argument("--level", help="for all, as --level=-O2")
    parser.add_argument("--ways", type=str.split, default=WAYS)
    parser.add_argument("--old", action="store_true", help="programs in the C of 1989")
    parser.add_argument("--flags", type=str.split, default=[])
    parser.add_argument("--most", type=int, default=10, help="no more after so many that differ")
    parser.add_argument("--refusals", action="append", default=[], help="what the pass may say of a program")
    parser.add_argument("--time", type=float, default=1e9, help="begin no file after so many seconds")
    args = parser.parse_args()
    args.work = args.work.resolve()
    args.work.mkdir(parents=True, exist_ok=True)
    args.until = time.monotonic() + args.time
    return args


def main():
    args = arguments()
    if args.what[0] == "csmith" and not (shutil.which("csmith") and any(place.exists() for place in CSMITH)):
        print("skip - csmith: it is not to be had: apt-get install --no-install-recommends csmith libcsmith-dev")
        return 77
    tool = Tool(args)
    if args.what[0] in ("ours", "csmith"):
        first, _, last = args.what[1].partition("-")
        seeds = list(range(int(first), int(last or first) + 1))
        batches = [(args.what[0], seeds[i:i + args.size]) for i in range(0, len(seeds), args.size)]
    else:
        batches = [(pathlib.Path(p).resolve(), [0]) for p in args.what]
    for i, (what, seeds) in enumerate(batches):
        if time.monotonic() < args.until and not tool.enough():
            Batch(tool, what, seeds, args.level or LEVELS[(seeds[0] // args.size + i * (seeds == [0])) % len(LEVELS)]).compare()
    print("# " + "; ".join(f"{n} {what}" for what, n in sorted(tool.counts.items())))
    if args.canary:
        good = tool.counts["differ"]
        print(f"{'ok' if good else 'not ok'} - canary: {args.canary[1]} is found")
    else:
        good = tool.counts["agree"] and not tool.counts["differ"] and not tool.counts["not compiled"]
        print(f"{'ok' if good else 'not ok'} - {args.what[0]}: programs are the same with the pass")
    return not good


if __name__ == "__main__":
    sys.exit(main())
