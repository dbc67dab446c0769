#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the test lanes: the executables of tests/lanes whose name contains one of the PATTERNs; without a PATTERN those
that are quick, with --full all. `ctest --preset quick` and `ctest --preset full` run the same lanes one by one.

A lane prints "ok - what", "not ok - what: why" and "skip - what: why" on standard output, details on standard error, and
ends with 0 iff nothing failed. Both go to build/test-logs/LANE.log, whose end is shown if the lane failed. Lanes run one
after the other; those that say so run two at a time, before the others. What a lane says is a comment among its first
lines:

    # lane: seconds=300 shared quick first

seconds is its time limit (default 300), for a machine that does a fixed piece of work in SPEED seconds: a slower machine
is measured at the start and gets more, and --patience multiplies. shared means that the lane neither measures time nor
needs the whole machine; quick that it runs by default; first that its verdict is wanted before the others'.

Each lane is shown when it ends, and how many minutes the rest will take, from how long the lanes took last time.

At the end, what failed is shown once more, each with the lines that the log has right before it: where the beginning of
a long output is lost, the failures are not. The last line is "N passed, N failed", with ", N skipped" if any: results,
not lanes. A lane that ends badly without saying what failed, or says nothing at all, counts as one failure. Exit code:
0; 1 if anything failed; 2 if the command line is wrong; 130 if interrupted.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as xml

SOURCE = pathlib.Path(os.environ.get("WEFT_SOURCE") or pathlib.Path(__file__).resolve().parent.parent)
BUILD = pathlib.Path(os.environ.get("WEFT_BUILD_ROOT") or SOURCE / "build")
RESULT = re.compile(rb"^(ok|not ok|skip)\b")
TAIL = 25  # lines of a failed lane's log that are shown: its end,
BEFORE, PLACES = 12, 6  # and so many before each of its first failures
SPEED = 0.16  # seconds that slowness() takes on the machine for which the limits are stated
SLOWEST = 4.0  # no machine gets more than so much of a lane's limit without --patience


def slowness():
    """How much slower this machine is now than the one of the limits: at least 1."""
    began = time.monotonic()
    sum(i * i for i in range(2000000))
    return min(SLOWEST, max(1.0, (time.monotonic() - began) / SPEED))


class Lane:
    def __init__(self, path):
        self.path, self.name = path, path.name
        self.seconds, self.shared, self.quick, self.first = 300, False, False, False
        self.counts = {"ok": 0, "not ok": 0, "skip": 0}
        self.failures, self.skips, self.trouble, self.took, self.cost = [], [], "", 0.0, None
        self.ended = False
        self.read_directive()

    def read_directive(self):
        with open(self.path, "rb") as text:
            head = b"".join(text.readline(1000) for _ in range(12)).decode(errors="replace")
        found = re.search(r"^# lane: (.*)$", head, re.MULTILINE)
        for word in found.group(1).split() if found else ():
            if word in ("shared", "quick", "first"):
                setattr(self, word, True)
            elif re.fullmatch(r"seconds=\d+", word):
                self.seconds = int(word[8:])
            else:
                sys.exit(f"tests/run.py: {self.path}: unknown word '{word}' after '# lane:'")

    def count(self, line):
        found = RESULT.match(line)
        if not found:
            return
        kind = found.group(1).decode()
        self.counts[kind] += 1
        if kind != "ok":
            (self.failures if kind == "not ok" else self.skips).append(line.decode(errors="replace").rstrip())

    @property
    def failed(self):
        return self.counts["not ok"] + (1 if self.trouble and not self.counts["not ok"] else 0)

    @property
    def expected(self):
        """How many seconds the lane will take: as many as last time, or a guess."""
        return self.seconds / 3 if self.cost is None else self.cost

    def summary(self, width):
        said = f"{self.counts['ok']} ok"
        if self.failed:
            said += f", {self.failed} failed"
        if self.counts["skip"]:
            said += f", {self.counts['skip']} skipped"
        return f"{self.name:<{width}}  {'FAILED' if self.failed else 'ok':<6}  {said}  ({self.took:.1f} s)"


class Runner:
    def __init__(self, lanes, logs, scale):
        self.lanes, self.logs, self.scale = lanes, logs, scale
        self.width = max(len(lane.name) for lane in lanes)
        self.running, self.stopped = {}, False

    def run(self, lane):
        """One lane, from start to end."""
        if self.stopped:
            lane.trouble = "not run"
            return lane
        environment = dict(os.environ, WEFT_SOURCE=str(SOURCE), WEFT_BUILD_ROOT=str(BUILD))
        # The library's own variables are each lane's business.
        for variable in ("WEFT_STACK", "WEFT_GUARD", "WEFT_BUDGET", "WEFT_FAIL_EVERY"):
            environment.pop(variable, None)
        began, log_path = time.monotonic(), self.logs / f"{lane.name}.log"
        with open(log_path, "wb") as log:
            process = subprocess.Popen([str(lane.path)], cwd=SOURCE, env=environment, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=log, start_new_session=True)
            self.running[lane] = (process, began)
            timer = threading.Timer(lane.seconds * self.scale, self.kill, (lane, process))
            timer.start()
            for line in process.stdout:
                lane.count(line)
                os.write(log.fileno(), line)  # at the end of what standard error has written
            code = process.wait()
            timer.cancel()
        self.end_group(process)
        del self.running[lane]
        lane.took = time.monotonic() - began
        if not lane.trouble and code:
            lane.trouble = f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        if not lane.trouble and not sum(lane.counts.values()):
            lane.trouble = "printed no result"
        if not lane.trouble and lane.counts["not ok"]:
            lane.trouble = "ended with 0 although something failed"
        return lane

    def kill(self, lane, process):
        lane.trouble = (f"killed after its time limit, {lane.seconds * self.scale:.0f} s; "
                        f"on a slow or busy machine: ./weft test --patience 4 {lane.name}")
        self.end_group(process)

    @staticmethod
    def end_group(process):
        """Whatever the lane left behind is in its process group."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def report(self, lane):
        self.clear()
        lane.ended = True
        print(f"{lane.summary(self.width)}{self.left()}")
        for line in lane.skips:
            print(f"    {line}")
        if lane.failed:
            for line in lane.failures:
                print(f"    {line}")
            if lane.trouble:
                print(f"    {lane.trouble}")
            self.show_log(lane)
            print(f"    to repeat it: ./weft test {lane.name}")
        sys.stdout.flush()

    def left(self):
        """How far the run is; nothing to say for a single lane."""
        rest = [each for each in self.lanes if not each.ended]
        if len(self.lanes) < 2 or not rest:
            return ""
        shared = [each.expected for each in rest if each.shared]
        seconds = max([sum(shared) / 2, *shared]) + sum(each.expected for each in rest if not each.shared)
        return f"  {len(self.lanes) - len(rest)} of {len(self.lanes)}, about {seconds / 60:.0f} minutes left"

    def show_log(self, lane):
        path = self.logs / f"{lane.name}.log"
        if not path.exists():
            return
        lines = path.read_text(errors="replace").splitlines()
        end = set(range(max(0, len(lines) - TAIL), len(lines)))
        self.show_lines(path, lines, end | self.near_failures(lines))

    @staticmethod
    def near_failures(lines):
        failures = [i for i, line in enumerate(lines) if line.startswith("not ok")]
        return {j for i in failures[:PLACES] for j in range(max(0, i - BEFORE), i + 1)}

    @staticmethod
    def show_lines(path, lines, shown):
        print(f"    ---- {path}, {len(shown)} of {len(lines)} lines")
        for i in sorted(shown):
            if i and i - 1 not in shown:
                print("    | …")
            print(f"    | {lines[i]}")

    def report_again(self, lane):
        """Only what failed, and what the log has right before it."""
        path = self.logs / f"{lane.name}.log"
        print(f"{lane.name}: {'; '.join(lane.failures) or lane.trouble}")
        if lane.failures and path.exists():
            lines = path.read_text(errors="replace").splitlines()
            self.show_lines(path, lines, self.near_failures(lines))

    def clear(self):
        if sys.stderr.isatty():
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()

    def tick(self):
        """Progress: on a terminal all the time, elsewhere once a minute."""
        last = 0
        while not self.stopped:
            time.sleep(1)
            now = time.monotonic()
            busy = [f"{lane.name} {now - began:.0f} s" for lane, (_, began) in list(self.running.items())]
            if busy and sys.stderr.isatty():
                sys.stderr.write("\r\033[K" + f"running: {', '.join(busy)}")
                sys.stderr.flush()
            elif busy and now - last > 60:
                last = now
                sys.stderr.write(f"running: {', '.join(busy)}\n")

    def run_all(self):
        threading.Thread(target=self.tick, daemon=True).start()
        shared = [lane for lane in self.lanes if lane.shared]
        alone = [lane for lane in self.lanes if not lane.shared]
        try:
            for lanes, at_a_time in ((shared, 2), (alone, 1)):
                with concurrent.futures.ThreadPoolExecutor(at_a_time) as pool:
                    try:
                        for ended in concurrent.futures.as_completed([pool.submit(self.run, lane) for lane in lanes]):
                            self.report(ended.result())
                    except KeyboardInterrupt:
                        self.stop()
                        raise
        finally:
            self.stopped = True

    def stop(self):
        self.stopped = True
        for process, _ in list(self.running.values()):
            self.end_group(process)


class Memory:
    """What is known from earlier runs: how long each lane took, and which lanes failed in the last run."""

    def __init__(self, logs):
        self.path = logs / "memory.json"
        try:
            known = json.loads(self.path.read_text())
            self.costs, self.failed = dict(known["costs"]), list(known["failed"])
        except (OSError, ValueError, KeyError, TypeError):
            self.costs, self.failed = {}, []

    def keep(self, lanes):
        self.costs.update({lane.name: round(lane.took, 1) for lane in lanes if not lane.trouble})
        failed = [lane.name for lane in lanes if lane.failed or lane.trouble]
        self.path.write_text(json.dumps({"costs": self.costs, "failed": failed}, indent=1) + "\n")


def write_junit(path, lanes):
    """One test case per lane, in the form that build servers read."""
    suite = xml.Element("testsuite", name="weft", tests=str(len(lanes)), failures=str(sum(bool(lane.failed) for lane in lanes)))
    for lane in lanes:
        case = xml.SubElement(suite, "testcase", classname="weft", name=lane.name, time=f"{lane.took:.1f}")
        if lane.failed:
            xml.SubElement(case, "failure", message="; ".join(lane.failures) or lane.trouble)
    xml.ElementTree(suite).write(path, encoding="unicode", xml_declaration=True)


def find_lanes(directory, patterns):
    lanes = [Lane(path) for path in sorted(directory.iterdir())
             if path.is_file() and os.access(path, os.X_OK) and not path.name.startswith(".")]
    return [lane for lane in lanes if not patterns or any(pattern in lane.name for pattern in patterns)]


def main():
    parser = argparse.ArgumentParser(prog="weft test", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", metavar="PATTERN", nargs="*")
    parser.add_argument("--list", action="store_true", help="print the lanes' names and run nothing")
    parser.add_argument("--full", action="store_true", help="run all lanes, not only the quick ones")
    parser.add_argument("--rerun-failed", action="store_true", help="run the lanes that failed in the last run")
    parser.add_argument("--junit", type=pathlib.Path, metavar="FILE", help="write the lanes' verdicts to FILE as JUnit XML")
    parser.add_argument("--only", metavar="LANE", help=argparse.SUPPRESS)  # for ctest: this lane, and nothing is remembered
    parser.add_argument("--lanes", type=pathlib.Path, default=SOURCE / "tests" / "lanes", metavar="DIR", help=argparse.SUPPRESS)
    parser.add_argument("--logs", type=pathlib.Path, default=BUILD / "test-logs", metavar="DIR", help=argparse.SUPPRESS)
    parser.add_argument("--patience", type=float, default=1.0, metavar="FACTOR",
                        help="multiplies all time limits, for slow machines")
    parser.error = lambda text: parser.exit(2, f"weft: {text}; see 'weft test --help'\n")
    options = parser.parse_args()

    memory, lanes = Memory(options.logs), find_lanes(options.lanes, options.patterns)
    missing = [pattern for pattern in options.patterns if not any(pattern in lane.name for lane in lanes)]
    if missing or not lanes:
        parser.exit(2, f"weft: no lane's name contains '{(missing or [''])[0]}'\n")
    if options.only:
        lanes = [lane for lane in lanes if lane.name == options.only]
    elif options.rerun_failed:
        lanes = [lane for lane in lanes if lane.name in memory.failed]
    elif not (options.full or options.patterns or options.list):
        lanes = [lane for lane in lanes if lane.quick]
    if not lanes:
        parser.exit(0 if options.rerun_failed else 2, "weft: no lane to run\n")
    for lane in lanes:
        lane.cost = memory.costs.get(lane.name)
    # What is wanted first, short ones before long ones; then the longest first, so that no long one is left at the end.
    lanes.sort(key=lambda lane: (not lane.first, lane.seconds if lane.first else -lane.expected, lane.name))
    if options.list:
        print("\n".join(sorted(lane.name for lane in lanes)))
        return 0
    try:
        options.logs.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=options.logs):
            pass
    except OSError as error:
        parser.exit(2, f"weft: cannot write to {options.logs}: {error.strerror}\n")
    # Lanes are sessions of their own: nobody else ends them.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    slow = slowness()
    print(f"{len(lanes)} lanes; time limits × {slow * options.patience:.2g} (machine {slow:.2g}, patience {options.patience:g})",
          flush=True)
    runner = Runner(lanes, options.logs, slow * options.patience)
    try:
        runner.run_all()
    except KeyboardInterrupt:
        runner.clear()
        print(f"weft: interrupted; what the lanes said until then is in {options.logs}", file=sys.stderr)
        return 130
    if not options.only:
        memory.keep(lanes)
    if options.junit:
        write_junit(options.junit, lanes)
    failed = sum(lane.failed for lane in lanes)
    if failed and len(lanes) > 1:
        print("\n==== what failed")
        for lane in lanes:
            if lane.failed:
                runner.report_again(lane)
    skipped = sum(lane.counts["skip"] for lane in lanes)
    print(f"{sum(lane.counts['ok'] for lane in lanes)} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or any(lane.trouble for lane in lanes) else 0


if __name__ == "__main__":
    sys.exit(main())
