# SPDX-License-Identifier: MIT OR Apache-2.0
"""Continuous load (experiment A6): a server for each stack policy and back end, load on each in turn for hours, and the question
whether anything grows.

All servers run from the beginning to the end. Between its turns a server rests, and its resources before each turn (memory, page
tables, descriptors, mappings, threads) are one point of its series. Everything goes into a journal, a record for each turn. An
interrupted run continues the journal with new processes: a new segment.
"""
import hashlib
import json
import os
import re
import select
import shutil
import subprocess
import time
from datetime import datetime
from pathlib import Path

from . import growth, measure
from .build import Builder
from .journal import Journal

SECONDS = {"test": 4, "quick": 60, "full": 3600}  # by size, unless --for is given
TURN_LEAST, TURN_MOST = 0.25, 5.0  # seconds of load
TURNS = 24  # number of turns that each server gets if the time allows turns of TURN_LEAST
SETTLE = 0.3  # minimum rest of a server in seconds: it keeps the buffers of a connection for 0.25
STARTS = 20  # seconds within which a server must print its port
ENDS = 10  # seconds within which it must answer or end
GRACE = 2  # seconds that a process has to end after it has closed its output
SAMPLES_MOST = 200  # maximum number of turns of each server in the results; more turns are merged
FILE_BYTES = 200000  # size of the file A6_FILE


class Dead(Exception):
    """A server that ended, and how it ended."""


class Server:
    """A process of the server program."""

    def __init__(self, contender, binary, arguments, errors):
        self.contender = contender
        self.errors = errors
        with open(errors, "wb") as log:
            self.process = subprocess.Popen(
                [str(binary), *arguments], env=measure.environment(contender), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                start_new_session=True)  # Ctrl-C is for the lab, which stops the server in order
        self.rested = time.monotonic()

    def says(self, seconds):
        """Reads the server's next line."""
        line = _line_within(self.process.stdout, seconds)
        if not line:
            raise Dead(self.why())
        return json.loads(line)

    def why(self):
        """Returns the exit code, and how the process ended. Kills a process that lives but does not answer."""
        try:
            code = self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        said = ([""] + self.errors.read_text(errors="replace").strip().splitlines())[-1]
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return code, f"the server ended with {how}{': ' if said else ''}{said}"

    def counts(self):
        try:
            os.write(self.process.stdin.fileno(), b"?\n")
        except OSError:
            raise Dead(self.why()) from None
        return self.says(ENDS)

    def stop(self):
        """Stops the server in order. Returns its last report, which must show that nothing is left."""
        self.process.stdin.close()
        last = self.says(ENDS)
        code, why = self.why()
        if code:
            raise Dead((code, why))
        return last

    def sample(self):
        """The current resources of the process."""
        place = f"/proc/{self.process.pid}"
        try:
            memory, status = Path(place, "smaps_rollup").read_text(), Path(place, "status").read_text()
            mappings = Path(place, "maps").read_bytes().count(b"\n")
            descriptors = len(os.listdir(f"{place}/fd"))
            return {"memory": _kib(memory, "Private_Dirty") + _kib(memory, "Swap"), "page_tables": _kib(status, "VmPTE"),
                    "descriptors": descriptors, "mappings": mappings, "threads": int(_field(status, "Threads"))}
        except (OSError, TypeError):  # a process that has ended has no fields
            raise Dead(self.why()) from None

    def cpu(self):
        """CPU time in seconds. The kernel updates the clock when the process sleeps."""
        try:
            return time.clock_gettime(~self.process.pid << 3 | 2)
        except OSError:
            raise Dead(self.why()) from None


def _line_within(stream, seconds):
    end = time.monotonic() + seconds
    line = b""
    os.set_blocking(stream.fileno(), False)
    while not line.endswith(b"\n") and time.monotonic() < end:
        piece = os.read(stream.fileno(), 4096) if _readable(stream, end) else None
        if piece == b"":
            return b""
        line += piece or b""
    return line


def _readable(stream, end):
    return select.select([stream], [], [], max(0, end - time.monotonic()))[0]


def _field(text, name):
    return re.search(rf"^{name}:\s+(\d+)", text, re.M)[1]


def _kib(text, name):
    return int(_field(text, name)) * 1024


# ---- a run -----------------------------------------------------------------------------------------------------------


class Load:
    """One case under load. `unable` is a function that returns the reason why a contender cannot take part, or None."""

    def __init__(self, experiment, binaries, unable, seconds, folder, progress):
        self.experiment, self.case = experiment, experiment.cases[0]
        self.binaries, self.unable, self.seconds, self.progress = binaries, unable, seconds, progress
        self.able = [c for c in self.case.contenders if not unable(c)]
        self.key = self._key()
        digest = hashlib.sha256(json.dumps({**self.key, "programs": None}, sort_keys=True).encode()).hexdigest()[:12]
        self.folder = folder / digest
        self.journal = Journal(self.folder / "journal.jsonl")
        self.servers = {}

    def _key(self):
        """The facts that must be the same for a journal to be continued: the same programs with the same parameters."""
        programs = {Builder.key(c): c for k in self.able for c in (k, k.helper)}
        return {"experiment": self.experiment.id, "seconds": self.seconds, "params": self.case.params,
                "servers": {c.id: c.stack or c.policy for c in self.able},
                "programs": {key: hashlib.sha256(Path(self.binaries[key]).read_bytes()).hexdigest()[:16] for key in sorted(programs)}}

    def begin(self, again):
        """Begins a new journal, or continues one. Returns a remark for the user, or ""."""
        remark = ""
        first = self.journal.records[0] if self.journal.records else None
        if first and not again and first["programs"] == self.key["programs"]:
            return (f"continuing the run of {first['when']}: {_span(self.elapsed())} of {_span(self.seconds)} are done "
                    "(--again begins anew)")
        if first:
            old = self.journal.set_aside()
            remark = f"beginning anew{'' if again else ', because the programs have changed'}; the run of {first['when']} is in {old}"
        self.journal.append({"what": "run", "when": _now(), **self.key})
        return remark

    def records(self, what):
        return [r for r in self.journal.records if r["what"] == what]

    def elapsed(self):
        return sum(turn["took"] for turn in self.records("turn"))

    def complete(self):
        return bool(self.records("turn")) and self.elapsed() >= self.seconds

    def run(self):
        """Runs until the time is over. May be interrupted, and continued later."""
        if self.complete() or not self.able:
            return
        try:
            self._start()
            while self.servers and not self.complete():
                for name in list(self.servers):
                    self._attempt(self._turn, name)
            self._rest_all()
        finally:
            self._stop()

    def _attempt(self, action, name):
        """Runs `action` on a server. A server that ends takes no further part; the other servers continue."""
        try:
            return action(name)
        except Dead as dead:
            code, why = dead.args[0]
            self.servers.pop(name, None)
            self.journal.append({"what": "cannot" if code == measure.CANNOT else "dead", "server": name, "when": _now(), "why": why})

    def _start(self):
        self.began = time.monotonic()
        self.journal.append({"what": "segment", "when": _now()})
        lost = {r["server"] for kind in ("dead", "cannot") for r in self.records(kind)}
        root = _root(self.folder)
        for c in (c for c in self.able if c.id not in lost):
            arguments = [*(f"{k}={v}" for k, v in self.case.params.items()), f"root={root}"]
            errors = self.folder / f"{c.id.replace('/', '-')}.log"
            self.servers[c.id] = Server(c, self.binaries[Builder.key(c)], arguments, errors)
        self.ports = {}
        for name in list(self.servers):
            said = self._attempt(lambda n: self.servers[n].says(STARTS), name)
            self.ports[name] = said and said["port"]
        self.turn_seconds = min(TURN_MOST, max(TURN_LEAST, self.seconds / (TURNS * max(1, len(self.servers)))))

    def _rest(self, server):
        time.sleep(max(0, server.rested + SETTLE - time.monotonic()))
        return {"at": round(time.monotonic() - self.began, 3), **server.sample()}

    def _rest_all(self):
        """Appends the last point of each series."""
        rests = {name: self._attempt(lambda n: self._rest(self.servers[n]), name) for name in list(self.servers)}
        self.journal.append({"what": "rest", "rest": {name: rest for name, rest in rests.items() if rest}})

    def _turn(self, name):
        began, server = time.monotonic(), self.servers[name]
        record = {"what": "turn", "server": name, "rest": self._rest(server)}
        cpu = server.cpu()
        load = self._load(name)
        record["loaded"] = self._watch(load, server)
        record["load"] = self._figures(load)
        server.rested = time.monotonic()
        record["counts"] = server.counts()
        record["cpu"] = round(server.cpu() - cpu, 6)
        record["took"] = round(time.monotonic() - began, 3)
        self.journal.append(record)

    def _load(self, name):
        helper = self.binaries[Builder.key(self.case.contenders[0].helper)]
        params = {**self.case.params, "port": self.ports[name], "ms": round(1000 * self.turn_seconds), "seed": len(self.journal.records)}
        return subprocess.Popen([str(helper), *(f"{k}={v}" for k, v in params.items())], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                start_new_session=True)

    def _watch(self, load, server):
        """Samples of the server under load, about one a second; four in a short turn."""
        samples = []
        try:
            while True:
                self._say(server.contender)
                try:
                    load.wait(min(1.0, self.turn_seconds / 4))
                    return samples
                except subprocess.TimeoutExpired:
                    samples.append(server.sample())
        except BaseException:
            load.kill()
            load.wait()
            raise

    @staticmethod
    def _figures(load):
        said, errors = load.communicate()
        if load.returncode:
            raise RuntimeError(f"the clients ended with {load.returncode}: {errors.decode(errors='replace').strip()[-200:]}")
        return json.loads(said)

    def _say(self, contender):
        turns = self.records("turn")
        requests = sum(map(growth.requests_of, turns))
        wrong = sum(t["load"]["wrong"] for t in turns)
        elapsed = self.elapsed()
        self.progress(min(1, elapsed / self.seconds), f"{_span(max(0, self.seconds - elapsed))} left, {requests / 1e6:.2f} M requests, "
                      f"{wrong} wrong, turn {len(turns) + 1}", contender.title)

    def _stop(self):
        """Stops all servers in order; each reports that nothing is left. An interruption does not wait for long."""
        ended = {}
        for name in list(self.servers):
            server = self.servers[name]
            said = self._attempt(lambda n: self.servers[n].stop(), name)
            if said:
                ended[name] = said
        self.journal.append({"what": "end", "when": _now(), "elapsed": self.elapsed(), "ended": ended})
        self.servers = {}

    def finish(self, out):
        """Moves the journal to the results, which have been written."""
        self.journal.move(out / f"{self.experiment.id}.jsonl")
        shutil.rmtree(self.folder)

    # ---- results ---------------------------------------------------------------------------------------------------

    def entry(self):
        """The experiment's entry in results.json."""
        e, tests = self.experiment, len(self.able)
        rows = [self._row(c) for c in self.case.contenders]
        series = {row["contender"]: growth.judge(self._segments(row["contender"]), tests) for row in rows if row["samples"]}
        for row in rows:
            self._verdict(row, series.get(row["contender"]))
        case = measure.entry_of(self.case, rows, None)
        return {"id": e.id, "title": e.title, "source": e.source, "about": e.about, "plot": "load", "x_title": "", "cases": [case],
                "load": {"seconds": self.seconds, "elapsed": round(self.elapsed(), 1), "segments": len(self.records("segment")), "servers": series}}

    def _row(self, contender):
        turns = [t for t in self.records("turn") if t["server"] == contender.id]
        row = measure.Row(contender)
        row.samples = [_sample(t) for t in turns if t["load"]["good"]]
        row.result = f"{sum(map(growth.requests_of, turns))} right" if turns else None
        why = self.unable(contender) or self._said(contender, "cannot")
        if why:
            row.fail("skipped", why)
        elif self._said(contender, "dead"):
            row.fail("broken", self._said(contender, "dead"))
        elif not row.samples:
            row.fail("skipped", "no turn was complete")
        else:
            self._check(row, turns)
        figures = row.as_dict(self.case)
        figures["samples"] = _merged(row.samples)
        return figures

    def _said(self, contender, what):
        return next((r["why"] for r in self.records(what) if r["server"] == contender.id), None)

    def _check(self, row, turns):
        wrong = sum(t["load"]["wrong"] for t in turns)
        left = [f"{n} {what} left" for r in self.records("end") for what, least in (("connections", 0), ("tasks", 1))
                for n in [r["ended"].get(row.contender.id, {}).get(what, least) - least] if n]
        if wrong:
            first = next(t["load"]["why"] for t in turns if t["load"]["wrong"])
            row.fail("wrong", f"{wrong} wrong replies; the first: {first}")
        elif left:
            row.fail("wrong", f"at its end: {', '.join(left)}")

    @staticmethod
    def _verdict(row, found):
        grows = [name for name, trend in found["trends"].items() if trend["verdict"] == growth.GROWS] if found else []
        if row["status"] == "ok" and grows:
            row.update(status="wrong", error="; ".join(growth.sentence(name, found["trends"][name]) for name in grows))

    def _segments(self, name):
        """The points of one server, a list for each segment: (hours, requests until then, resources at rest, the turn that
        follows)."""
        segments, requests = [], 0
        for r in self.journal.records:
            if r["what"] == "segment":
                segments.append([])
            elif r["what"] == "turn" and r["server"] == name:
                segments[-1].append(growth.Point(r["rest"]["at"] / 3600, requests, r["rest"], r))
                requests += growth.requests_of(r)
            elif r["what"] == "rest" and name in r["rest"]:
                segments[-1].append(growth.Point(r["rest"][name]["at"] / 3600, requests, r["rest"][name], None))
        return [s for s in segments if s]


def _sample(turn):
    return {"cpu": turn["cpu"], "wall": turn["took"], "ops": growth.requests_of(turn), "p50": turn["load"]["p50"],
            "p99": turn["load"]["p99"]}


def _merged(samples):
    """Merges neighbouring samples, so that there are at most SAMPLES_MOST."""
    size = -(-len(samples) // SAMPLES_MOST) or 1
    groups = [samples[i:i + size] for i in range(0, len(samples), size)]
    return [{"cpu": sum(s["cpu"] for s in g), "wall": sum(s["wall"] for s in g), "ops": sum(s["ops"] for s in g),
             "p50": max(s["p50"] for s in g), "p99": max(s["p99"] for s in g)} for g in groups]


def _root(folder):
    """The directory of the file that servers serve: its bytes are a6_byte of a6.h, with the key 0."""
    root = folder / "root"
    root.mkdir(parents=True, exist_ok=True)
    (root / "data").write_bytes(bytes(i * 0x9e3779b97f4a7c15 % 2**64 >> 40 & 255 for i in range(FILE_BYTES)))
    return root


def _now():
    return datetime.now().astimezone().isoformat(timespec="seconds")


def _span(seconds):
    """Formats a duration, for example "90 min"."""
    for name, length in (("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {name}"
    return f"{seconds:.0f} s"


def seconds_of(text):
    """Parses 90, 60s, 15m, 1h or 2d. Raises ValueError for other texts."""
    found = re.fullmatch(r"(\d+)\s*([smhd]?)", text.strip())
    if not found or not int(found[1]):
        raise ValueError(f"'{text}' is no time: say 60s, 15m, 1h or 1d")
    return int(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[found[2]]
