#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the tests whose name contains a PATTERN; without a PATTERN the quick tests, with --full all
tests. `ctest --preset quick` and `ctest --preset full` run the same tests, after
`cmake --preset tests`.

Each test is shown when it ends, with how many are left and for how long, from what the tests took
last time. A failure is shown with the end of its output, the lines before what failed, and the
command that repeats it; at the end all failures are shown once more: where the beginning of a long
output is lost, the failures are not. What a test printed is in build/test-logs/TEST.log if it
failed, and in build/tests/Testing/Temporary/LastTest.log.

The last line is "N passed, N failed", with ", N skipped" if any: results, of which a test may print
several as lines "ok - what", "not ok - what: why" and "skip - what: why"; a test that prints none
is one result. Exit code: 0; 1 if anything failed; 2 if the command line is wrong; 130 if
interrupted.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

SOURCE = pathlib.Path(os.environ.get("WEFT_SOURCE") or pathlib.Path(__file__).resolve().parent.parent)
BUILD = pathlib.Path(os.environ.get("WEFT_BUILD_ROOT") or SOURCE / "build")
ENDED = re.compile(r" *(\d+)/(\d+) Test +#\d+: (.*?) \.* *(\**)([A-Za-z].*?) *([\d.]+) sec(.*)$")
BETWEEN = re.compile(r" *Start +\d+: |\d+% tests passed, ")
TAIL = 25  # lines of a failed test's output that are shown: its end,
BEFORE, PLACES = 12, 6  # and the number of lines before each of its first failures
SHORT = {"Passed": "ok", "Skipped": "SKIPPED", "Timeout": "TIMEOUT"}  # verdicts of ctest; all other verdicts are failures
GUESS = 1.0  # seconds assumed for a test without an earlier run


class Test:
    def __init__(self, name, verdict, seconds):
        self.name, self.verdict, self.seconds, self.lines = name, verdict, seconds, []
        self.passed, self.failed, self.skipped = 0, 0, 0

    def count(self, lines):
        """Counts the results in its output."""
        self.passed = sum(re.match(r"ok\b(?!.*# SKIP)", line) is not None for line in lines)
        self.skipped = sum(re.match(r"skip\b|ok\b.*# SKIP", line) is not None for line in lines)
        if self.verdict == "Skipped":
            self.skipped = max(1, self.skipped)
        elif self.verdict == "Passed":
            self.passed = self.passed or (0 if self.skipped else 1)
        else:
            self.failed = max(1, sum(line.startswith("not ok") for line in lines))

    def shown(self):
        """The shown lines of its output: the end, and the lines before failures."""
        failures = [i for i, line in enumerate(self.lines) if line.startswith("not ok")]
        near = {j for i in failures[:PLACES] for j in range(max(0, i - BEFORE), i + 1)}
        last = None
        for i in sorted(near | set(range(max(0, len(self.lines) - TAIL), len(self.lines)))):
            if last is not None and i != last + 1:
                yield "    | …"
            yield f"    | {self.lines[i]}"
            last = i


class Memory:
    """The results of earlier runs: how long each test took, and which tests failed in the last run, or have not run since
    then."""

    def __init__(self, path):
        self.path, self.failed = path, []
        try:
            known = json.loads(path.read_text())
            self.seconds, self.failed_before = dict(known["seconds"]), list(known["failed"])
        except (OSError, ValueError, KeyError, TypeError):
            self.seconds, self.failed_before = {}, []

    def keep(self, test):
        """Called at the end of each test, so that an interrupted run is recorded."""
        self.seconds[test.name] = test.seconds
        self.failed = [name for name in self.failed if name != test.name]
        if test.verdict not in ("Passed", "Skipped"):
            self.failed.append(test.name)
        self.path.write_text(json.dumps({"seconds": self.seconds, "failed": self.failed}) + "\n")


class Run:
    def __init__(self, names, memory, logs):
        self.names, self.memory, self.logs = set(names), memory, logs
        self.ended, self.other = [], []
        self.began = time.monotonic()

    def expected(self, names):
        return sum(self.memory.seconds.get(name, GUESS) for name in names)

    def left(self):
        """Minutes; scaled by the time of the ended tests, compared with their expected time."""
        ended = {test.name for test in self.ended}
        done, rest = self.expected(ended), self.expected(self.names - ended)
        return (time.monotonic() - self.began) * rest / max(done, 0.1) / 60

    def read(self, stream):
        """ctest's lines, as they come. The output of a failed test follows its verdict."""
        failed = None
        for line in stream:
            line = line.rstrip("\n")
            found = ENDED.match(line)
            if not found and not BETWEEN.match(line):
                (failed.lines if failed else self.other).append(line)
                continue
            if failed:
                self.show_failure(failed)
                failed = None
            if found:
                test = Test(found[3], found[5].split("  ")[0], float(found[6]))
                self.ended.append(test)
                self.memory.keep(test)
                print(f"{SHORT.get(test.verdict, 'FAILED'):<6}  {test.name}  ({test.seconds:.1f} s)  "
                      f"{len(self.ended)} of {found[2]}, about {self.left():.0f} minutes left", flush=True)
                failed = test if test.verdict not in ("Passed", "Skipped") else None
        if failed:
            self.show_failure(failed)

    def show_failure(self, test):
        path = self.logs / f"{re.sub('[^A-Za-z0-9._:-]', '_', test.name)}.log"
        path.write_text("\n".join(test.lines) + "\n", errors="replace")
        print(f"    ---- {path}, the end of {len(test.lines)} lines")
        print("\n".join(test.shown()))
        more = "--patience 4 " if test.verdict == "Timeout" else ""
        if more:
            print("    its time was over; on a slow or busy machine give it more:")
        print(f"    to repeat it: ./weft test {more}{test.name}", flush=True)


def count_results(tests, log):
    """ctest shows the output of failed tests; the output of the remaining tests is in its log."""
    by_name, lines, current = {test.name: test for test in tests}, {}, None
    try:
        text = log.read_text(errors="replace").splitlines()
    except OSError:
        text = []
    for line in text:
        found = re.match(r"\d+/\d+ Test: (.*)$", line)
        if found:
            current = lines.setdefault(found[1], [])
        elif current is not None:
            current.append(line)
    for name, test in by_name.items():
        test.count(lines.get(name, test.lines))


def configure(tree, patience, report):
    done = subprocess.run(["cmake", "-S", SOURCE, "--preset", "tests", "-B", tree, f"-DWEFT_PATIENCE={patience:g}"], cwd=SOURCE,
                          capture_output=True, text=True)
    if done.returncode:
        report(2, f"{done.stdout}{done.stderr}weft: the tests cannot be configured; see above\n")


def known_tests(tree, report):
    """The labels and the fixtures of each, by its name."""
    done = subprocess.run(["ctest", "--test-dir", tree, "--show-only=json-v1"], capture_output=True, text=True)
    if done.returncode:
        report(2, f"{done.stderr}weft: ctest does not know the tests in {tree}\n")
    tests = {}
    for test in json.loads(done.stdout)["tests"]:
        properties = {each["name"]: each["value"] for each in test.get("properties", ())}
        tests[test["name"]] = (properties.get("LABELS", ()), properties.get("FIXTURES_REQUIRED", ()))
    return tests


def select(options, tests, memory, report):
    for pattern in options.patterns:
        if not any(pattern in name for name in tests):
            report(2, f"weft: no test's name contains '{pattern}': ./weft test --list shows them\n")
    chosen = [name for name in tests if not options.patterns or any(pattern in name for pattern in options.patterns)]
    if options.rerun_failed:
        chosen = [name for name in chosen if name in memory.failed_before]
        memory.failed = list(memory.failed_before)
    elif not (options.full or options.patterns or options.list):
        chosen = [name for name in chosen if "quick" in tests[name][0]]
    if not chosen:
        report(0 if options.rerun_failed else 2, "weft: no test to run\n")
    return chosen


def _narrow(prog):
    return argparse.RawDescriptionHelpFormatter(prog, width=min(100, shutil.get_terminal_size().columns))


def main():
    parser = argparse.ArgumentParser(prog="weft test", description=__doc__, formatter_class=_narrow,
                                     allow_abbrev=False)
    parser.add_argument("patterns", metavar="PATTERN", nargs="*")
    parser.add_argument("--list", action="store_true", help="print the tests' names and run nothing")
    parser.add_argument("--full", action="store_true", help="run all tests, not only the quick ones")
    parser.add_argument("--rerun-failed", action="store_true", help="run the tests that failed in the last run")
    parser.add_argument("--junit", type=pathlib.Path, metavar="FILE", help="write the verdicts to FILE as JUnit XML")
    parser.add_argument("--patience", type=float, default=1.0, metavar="FACTOR",
                        help="multiplies all time limits, for slow machines")
    parser.add_argument("--tree", type=pathlib.Path, metavar="DIR", help=argparse.SUPPRESS)  # tests that are not Weft's: no cmake
    parser.error = lambda text: parser.exit(2, f"weft: {text}; see 'weft test --help'\n")
    options = parser.parse_args()

    tree = options.tree or BUILD / "tests"
    logs = options.tree or BUILD / "test-logs"
    try:
        logs.mkdir(parents=True, exist_ok=True)
        (logs / "memory.json").touch()
    except OSError as error:
        parser.exit(2, f"weft: cannot write to {logs}: {error.strerror}\n")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if not options.tree:
            configure(tree, options.patience, parser.exit)
        memory = Memory(logs / "memory.json")
        tests = known_tests(tree, parser.exit)
        chosen = select(options, tests, memory, parser.exit)
        if options.list:
            print("\n".join(sorted(chosen)))
            return 0
        return run(options, tree, tests, chosen, memory, logs)
    except KeyboardInterrupt:
        print(f"weft: interrupted; what failed until then is in {logs}, and ./weft test --rerun-failed repeats it", file=sys.stderr)
        return 130


def run(options, tree, tests, chosen, memory, logs):
    command = ["ctest", "--test-dir", tree, "-j", str(os.cpu_count() or 1), "--output-on-failure", "--no-tests=error"]
    # By their numbers, from a file: a regular expression with all their names may be too long for ctest.
    wanted = set(chosen)
    numbers = [str(number) for number, name in enumerate(tests, 1) if name in wanted]
    (logs / "chosen").write_text(",".join(["0", "0", "0", *numbers]) + "\n")
    command += ["-I", logs / "chosen"]
    if options.junit:
        command += ["--output-junit", options.junit.absolute()]
    needed = {fixture for name in chosen for fixture in tests[name][1]}
    current = Run(wanted | (needed & set(tests)), memory, logs)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                               stdin=subprocess.DEVNULL)
    try:
        current.read(process.stdout)
        code = process.wait()
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        raise
    if not current.ended:
        print("weft: ctest ran no test; what it says:", *current.other, sep="\n")
    count_results(current.ended, pathlib.Path(tree) / "Testing/Temporary/LastTest.log")
    failed = [test for test in current.ended if test.failed]
    if failed and len(current.ended) > 1:
        print("\n==== what failed")
        for test in failed:
            print(f"{test.name}: {test.verdict}")
            print("\n".join(test.shown()))
    skipped = sum(test.skipped for test in current.ended)
    print(f"{sum(test.passed for test in current.ended)} passed, {sum(test.failed for test in current.ended)} failed"
          + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or code else 0


if __name__ == "__main__":
    sys.exit(main())
