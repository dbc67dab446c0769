# SPDX-License-Identifier: MIT OR Apache-2.0
"""Measures: rounds over all cases and contenders, with a check of every answer.

Each round covers all cases, instead of one case after another: a minute in which a neighbour of the machine is busy then hits one
round of many cases, and not all rounds of one case. Results are CPU times, which other programs do not increase.
"""
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from . import describe, machine
from .build import Builder
from .describe import UNITS


@dataclass
class Plan:
    """How often and how long to measure. Rounds beyond `least` must fit into both limits of time; a case that spends twice its
    budget ends before `least` rounds. On a very busy machine, a second round of the longest cases may not fit into 1.4 times the
    patience. Further rounds of cases near a bar end after 1.65 times the patience."""
    rounds: int
    least: int
    budget: float  # CPU seconds for a case
    patience: float  # seconds for all of them
    timeout: float  # seconds for one run
    weighings: int = 1  # rounds in which memory is measured, which hardly varies
    more: int = 0  # further rounds for cases near a bar
    long: bool = False  # runs are so long that wrong answers are better found at test size

    @staticmethod
    def of(size):
        return {
            "test": Plan(rounds=1, least=1, budget=10, patience=600, timeout=60),
            "quick": Plan(rounds=5, least=3, budget=1.5, patience=115, timeout=60, more=10),
            "full": Plan(rounds=9, least=5, budget=60, patience=7200, timeout=900, weighings=3, more=10, long=True),
        }[size]


CANNOT = 77  # the exit code of a program for which the system lacks something


class Failed(Exception):
    """A run that gave no figures, and the reason."""


class Unable(Failed):
    """Nothing is wrong with the program, but this system cannot run it."""


def environment(contender):
    """The environment of the contender's programs."""
    policy = {"WEFT_STACK": contender.stack or contender.policy} if contender.policy else {}
    return {**os.environ, **contender.env, **policy}


def run_once(binary, contender, params, timeout, helper=None, whole=False):
    """Runs one process. Returns its figures as a dict. `whole`: its time is that of the process, from start to end, as its parent
    sees it."""
    params = {**params, **contender.params}
    if contender.foreign:
        command = [*contender.runner, str(binary), *(word.format(**params) for word in contender.args)]
    else:
        command = [*contender.runner, str(binary), *(f"{k}={v}" for k, v in params.items()), *contender.args]
    command += [f"helper={helper}"] if helper else []
    began, busy, own = time.monotonic(), machine.busy(), _cpu_of_programs()
    try:
        run = subprocess.run(command, env=environment(contender), capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"no answer after {timeout:.0f} s") from error
    except OSError as error:
        raise Failed(f"does not start: {error.strerror}") from error
    if run.returncode:
        said = (run.stderr.strip().splitlines() or [""])[-1]
        if run.returncode == CANNOT:
            raise Unable(said)
        how = f"signal {-run.returncode}" if run.returncode < 0 else f"exit code {run.returncode}"
        raise Failed(f"{how}: {said}" if said else how)
    used, wall = _cpu_of_programs() - own, time.monotonic() - began
    sample = _of_process(contender, run.stdout, used, wall) if contender.foreign else _figures(run.stdout)
    sample["others"] = round(max(0, machine.busy() - busy - used) / wall, 2)
    if whole:
        sample.update(cpu=used, wall=wall, ops=1)
    return sample


def _figures(output):
    try:
        return json.loads(output)
    except ValueError as error:
        raise Failed(f"printed no figures: {output.strip()[:80]!r}") from error


def _of_process(contender, output, cpu, wall):
    """The sample of a foreign program, which prints its answer. Its time is that of the process unless its runner prints figures."""
    if contender.runner and output.startswith('{"cpu"'):
        return _figures(output)
    answers = re.findall(contender.answer, output)
    if not answers:
        raise Failed(f"printed no answer: {output.strip()[:80]!r}")
    return {"cpu": cpu, "wall": wall, "result": answers[-1]}


def value_of(sample, unit, figure=None, clock="cpu"):
    """The value of a sample in the case's unit: the requested figure (in seconds), bytes, or time per operation by the case's
    clock."""
    if unit == "B":
        return sample["bytes"]
    if figure:
        return sample[figure] * UNITS[unit]
    return sample[clock] / max(1, sample["ops"]) * UNITS[unit]


def statistics_of(samples, unit, figure=None, clock="cpu"):
    """`cpu` and `wall` are medians by either clock; the other values are by the case's clock."""
    values = sorted(value_of(s, unit, figure, clock) for s in samples)
    median = statistics.median(values)
    quartiles = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [median] * 3
    timed = unit != "B" and not figure
    medians = {c: statistics.median(value_of(s, unit, clock=c) for s in samples) if timed else None for c in describe.CLOCKS}
    return {
        "n": len(values),
        "median": median,
        "q1": quartiles[0],
        "q3": quartiles[2],
        "min": values[0],
        "second": values[min(1, len(values) - 1)],
        "mad": statistics.median(abs(v - median) for v in values),
        **medians,
    }


class Row:
    """One contender in one case: its samples and answers."""

    def __init__(self, contender):
        self.contender = contender
        self.samples = []
        self.status = "ok"
        self.error = ""
        self.result = None

    def fail(self, status, error):
        self.status, self.error = status, error

    def as_dict(self, case):
        c = self.contender
        return {"contender": c.id, "title": c.title, "kind": c.kind, "policy": c.policy, "status": self.status,
                "error": self.error, "result": self.result, "samples": self.samples, "instead_of": c.instead_of,
                "stats": statistics_of(self.samples, case.unit, case.figure, case.clock) if self.samples else None, "ratio": None}


@dataclass
class Series:
    """A case, and its results so far."""
    experiment: object
    case: object
    rows: list
    rounds: int = 0
    spent: float = 0.0  # CPU seconds of all rounds
    last: float = 0.0  # CPU seconds of the last round
    took: float = 0.0  # wall-clock seconds of the last round

    @property
    def id(self):
        return f"{self.experiment.id}/{self.case.id}"

    @property
    def label(self):
        return f"{self.experiment.id} {self.case.title}"

    def alive(self):
        return [r for r in self.rows if r.status == "ok"]

    def operations(self):
        """The number of operations that the case's programs report. Foreign programs report none."""
        return next((r.samples[0]["ops"] for r in self.rows if r.samples and not r.contender.foreign), None)


class Binaries:
    """Each round runs its own copies of the programs. The physical pages of a program decide up to half of the cost of a switch
    and stay the same for as long as the file is cached, so one copy would make all rounds wrong in the same way."""

    def __init__(self, built):
        self.built = built
        self.folder = None

    def renew(self):
        self.remove()
        near = next(iter(self.built.values())).parent if self.built else None
        self.folder = tempfile.mkdtemp(prefix="round-", dir=near)

    def path(self, key):
        original = self.built[key]
        copy = Path(self.folder, original.name)
        if not copy.exists():
            shutil.copy(original, copy)
        return copy

    def remove(self):
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.folder = None


def _fitting(all_series, end, first=frozenset()):
    """The series whose next round ends before `end` if it takes as long as the last one: as many as possible, in their order. The
    ids in `first` are chosen first."""
    rest = end - time.monotonic()
    chosen = set()
    for series in sorted(all_series, key=lambda s: (s.id not in first, s.took)):
        if series.took < rest or not series.rounds:
            rest -= series.took
            chosen.add(id(series))
    return [s for s in all_series if id(s) in chosen]


def _cpu_of_programs():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Laboratory:
    """`binaries`: {key: path}. `unable`: a function that returns the reason why a contender cannot take part, or None. `told`:
    ids of the cases whose findings are printed first; they get a second round before other cases if time is short."""

    def __init__(self, binaries, unable, plan, progress, told=frozenset()):
        self.told = told
        self.binaries, self.unable, self.plan, self.progress = Binaries(binaries), unable, plan, progress
        self.lacking = []  # a line for each thing of which the system has too little
        self.series = []
        self.pairs = []  # ns of the hand-written pair, measured now and then: they scale figures of another machine
        self.began = time.monotonic()

    def run(self, experiments, unsure=None):
        """Runs everything. `unsure`: a function from entries to the ids of cases that need more rounds, or None."""
        self.series = [Series(e, c, [Row(k) for k in c.contenders]) for e in experiments for c in e.cases]
        try:
            rounds = max(self.plan.rounds, self.plan.weighings)
            for number in range(rounds):
                wanted = [s for s in self.series if self._goes_on(s)]
                end = self._until(1.4) if number < 2 else self.began + 1.4 * self.plan.patience
                self._round(_fitting(wanted, end, self.told), f"round {number + 1} of {self.plan.rounds}", number, rounds)
            if unsure:
                self._decide(unsure)
        finally:
            self.binaries.remove()

    def _decide(self, unsure):
        """Runs more rounds of the cases near a bar. Each round gets its share of the time, and slow cases the rest of it."""
        end = self._until(1.65)
        for number in range(self.plan.more):
            ids = unsure(self.entries())
            near = [s for s in self.series if s.id in ids and s.rounds]
            now = time.monotonic()
            again = _fitting(near, now + (end - now) / (self.plan.more - number))
            self._round(again, f"{len(again)} cases near a bar, round {number + 1} more")

    def _until(self, patiences):
        """The time at which to stop. However late it is, quick cases get a little time."""
        return max(self.began + patiences * self.plan.patience, time.monotonic() + self.plan.patience / 8)

    def _elapsed(self):
        return time.monotonic() - self.began

    def entries(self):
        """The entries of results.json for each experiment. Cases that no round has reached are left out."""
        entries = {}
        pair = min(self.pairs, default=None)
        for s in (s for s in self.series if s.rounds or not s.alive()):
            e = s.experiment
            entry = entries.setdefault(e.id, {"id": e.id, "title": e.title, "source": e.source, "about": e.about,
                                              "plot": e.plot, "x_title": e.x_title, "cases": []})
            entry["cases"].append(entry_of(s.case, [r.as_dict(s.case) for r in s.rows], pair))
        return list(entries.values())

    def others(self):
        """The average number of CPUs that other programs kept busy meanwhile; None if nothing was measured."""
        shares = [(sample["others"], sample["wall"]) for s in self.series for r in s.rows for sample in r.samples]
        time_in_all = sum(wall for _, wall in shares)
        return round(sum(share * wall for share, wall in shares) / time_in_all, 2) if time_in_all else None

    # ---- a round ------------------------------------------------------------------------------------------------

    def _goes_on(self, series):
        if not series.rounds:
            return True
        if not series.alive() or series.rounds == series.case.rounds:
            return False
        if series.case.rounds and series.case.figure:  # the case uses no CPU time, which the budget limits
            return True
        if series.case.unit == "B":
            return series.rounds < self.plan.weighings
        if series.rounds < self.plan.least:
            return series.spent <= 2 * self.plan.budget
        return series.spent + series.last <= self.plan.budget and self._elapsed() < self.plan.patience

    def _round(self, all_series, what, number=0, rounds=1):
        """Runs round `number`, from 0, of `rounds`."""
        self.binaries.renew()
        for done, series in enumerate(all_series):
            self.now = ((number + done / len(all_series)) / rounds, f"{what}: {series.label}")
            if not series.rounds:
                self._begin(series)
            self._turns(series)

    def _turns(self, series):
        """Runs each contender once, and starts with a different one in each round."""
        before, began = _cpu_of_programs(), time.monotonic()
        alive = series.alive()
        shift = series.rounds % len(alive) if alive else 0
        if alive and series.case.yardstick:
            self._pair(series)
        for row in alive[shift:] + alive[:shift]:
            self._turn(series, row)
        series.rounds += 1
        series.last = _cpu_of_programs() - before
        series.spent += series.last
        series.took = time.monotonic() - began
        self._judge(series)

    def _turn(self, series, row):
        try:
            sample = self._run(row, series.case.params, series.case.whole)
        except Unable as why:
            self._cannot(series, row, str(why))
            return
        except Failed as why:
            self._broken(row, str(why))
            return
        if row.contender.foreign:
            own = row.contender.operations
            sample["ops"] = int(own.format(**series.case.params)) if own else series.operations()
            if not sample["ops"]:
                self._broken(row, "no program of the case says how many operations it does")
                return
        answer = sample.pop("result")
        if row.result not in (None, answer):
            row.fail("wrong", f"answers {row.result} and {answer} in two runs")
        row.result = answer
        row.samples.append(sample)

    def _pair(self, series):
        contender, params = series.case.yardstick, describe.YARDSTICK[2]
        try:
            sample = run_once(self.binaries.path(Builder.key(contender)), contender, params, self.plan.timeout)
        except (Failed, KeyError):
            return  # its compiler is missing: figures of other machines cannot be scaled, and are left out
        self.pairs.append(value_of(sample, "ns"))

    def _run(self, row, params, whole=False):
        self.progress(*self.now, row.contender.title)
        helper = row.contender.helper and self.binaries.path(Builder.key(row.contender.helper))
        return run_once(self.binaries.path(Builder.key(row.contender)), row.contender, params, self.plan.timeout, helper, whole)

    # ---- participation and checks ---------------------------------------------------------------------------------

    def _begin(self, series):
        for row in series.rows:
            why = self.unable(row.contender)
            if why:
                row.fail("skipped", why)
        free = machine.available_memory()
        for row in series.alive():
            needed = max(series.case.needs_memory, series.case.policy_memory.get(row.contender.policy, 0))
            if needed > free:
                self._cannot(series, row, f"needs {needed / 1e9:.0f} GB of free memory")
        if self.plan.long or series.case.expect is None:
            self._check_small(series)

    def _check_small(self, series):
        """Checks the known answer at test size, before any time is spent."""
        for row in series.alive():
            try:
                answer = self._run(row, series.case.test_params)["result"]
            except Unable as why:
                self._cannot(series, row, str(why))
                continue
            except Failed as why:
                self._broken(row, f"at test size: {why}")
                continue
            expected = row.contender.test_expect or series.case.test_expect
            if expected is not None and answer != expected:
                row.fail("wrong", f"at test size: {answer}, expected {expected}")

    def _cannot(self, series, row, why):
        row.fail("skipped", why)
        self.lacking.append(f"{series.label}, {row.contender.title}: {why}")

    @staticmethod
    def _broken(row, why):
        row.fail("broken" if row.contender.kind in ("weft", "c", "limit") else "did not run", why)

    @staticmethod
    def _judge(series):
        """Checks answers against the known answer, or else against the first contender's answer."""
        expected = series.case.expect
        for row in series.alive():
            expected = row.result if expected is None else expected
            own = row.contender.expect or expected
            if row.result != own:
                row.fail("wrong", f"{row.result}, expected {own}")


def checks(entries):
    """The numbers of right and of wrong answers."""
    statuses = [row["status"] for e in entries for case in e["cases"] for row in case["rows"]]
    return {"passed": statuses.count("ok"), "failed": statuses.count("wrong") + statuses.count("broken")}


# ---- entries of results.json for a case ------------------------------------------------------------------------------


def entry_of(case, rows, pair):
    """`pair` is the time in ns of the hand-written pair here, or None."""
    measured = [r for r in rows if r["stats"]]
    base = next((r for r in measured if r["contender"] == case.baseline), measured[0] if measured else None)
    for r in measured:
        r["ratio"] = r["stats"]["median"] / base["stats"]["median"] if base["stats"]["median"] else None
    live = _live(measured)
    reference = _elsewhere(case, pair, live)
    return {"id": case.id, "title": case.title, "about": case.about, "unit": case.unit, "figure": case.figure, "per": case.per,
            "clock": case.clock, "params": case.params, "whole": case.whole, "rate": case.rate, "x": case.x,
            "expect": case.expect, "baseline": base["contender"] if base else None,
            "published": _published(case.published, measured, base, _beside(reference, live)), "reference": reference, "rows": rows}


def _live(measured):
    """{name: median} of the `reference` figures that were measured here on a peer's checkout."""
    return {name: r["stats"]["median"] for r in reversed(measured) if r["status"] == "ok" for name in r["instead_of"]}


def _beside(reference, live):
    """Figures of other libraries by name: scaled figures, and figures measured here."""
    return {"values": {**(reference or {"values": {}})["values"], **{name: {"here": value} for name, value in live.items()}}}


def _elsewhere(case, pair, live=()):
    """Figures of another machine, scaled to this machine by the hand-written pair there and here. Bytes are not scaled. The names
    in `live` were measured here."""
    figures = {name: value for name, value in (case.reference or {}).items() if name not in live}
    if not figures or (case.yardstick and not pair):
        return None
    here = pair if case.yardstick else None
    scale = here / describe.REFERENCE_PAIR if here else 1.0
    return {"pair_there": describe.REFERENCE_PAIR if here else None, "pair_here": here, "scale": scale,
            "values": {name: {"there": value, "here": value * scale} for name, value in figures.items()}}


def _published(published, measured, base, reference):
    """A published ratio, multiplied by the time of its base here; and as a ratio to the case's own base."""
    if not published:
        return None
    here = {r["contender"]: r["stats"]["median"] for r in measured}
    here.update({name: v["here"] for name, v in (reference or {"values": {}})["values"].items()})
    anchor, own = min((here[name] for name in published["among"] if name in here), default=None), base["stats"]["median"] if base else None
    values = {}
    for name, p in published["values"].items():
        scaled = p["ratio"] * anchor if anchor else None
        values[name] = {**p, "scaled": scaled, "to_base": scaled / own if scaled and own else None}
    return {**published, "values": values}
