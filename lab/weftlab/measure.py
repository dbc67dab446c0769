# SPDX-License-Identifier: MIT OR Apache-2.0
"""Running: every answer checked first, then round after round over all contenders, so that noise hits all alike."""
import json
import os
import statistics
import subprocess
import time
from dataclasses import dataclass

from . import machine
from .build import Builder
from .describe import UNITS


@dataclass
class Plan:
    """How often, how long."""
    rounds: int
    least: int
    budget: float  # seconds for a case; rounds beyond `least` must fit
    timeout: float  # seconds for one run
    warm_up: bool
    weighings: int = 1  # rounds where memory is measured, which hardly varies

    @staticmethod
    def of(size):
        return {
            "test": Plan(rounds=1, least=1, budget=10, timeout=60, warm_up=False),
            "quick": Plan(rounds=5, least=3, budget=2, timeout=60, warm_up=True),
            "full": Plan(rounds=9, least=5, budget=60, timeout=900, warm_up=True, weighings=3),
        }[size]


class Failed(Exception):
    """A run that gave no figures, and why."""


def run_once(binary, contender, params, timeout):
    """One process; its figures as a dict."""
    command = [str(binary), *(f"{k}={v}" for k, v in params.items()), *contender.args]
    env = dict(os.environ)
    if contender.policy:
        env["WEFT_STACK"] = contender.policy
    try:
        run = subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"no answer after {timeout:.0f} s") from error
    if run.returncode:
        said = (run.stderr.strip().splitlines() or [""])[-1]
        how = f"signal {-run.returncode}" if run.returncode < 0 else f"exit code {run.returncode}"
        raise Failed(f"{how}: {said}" if said else how)
    try:
        return json.loads(run.stdout)
    except ValueError as error:
        raise Failed(f"printed no figures: {run.stdout.strip()[:80]!r}") from error


def value_of(sample, unit, figure=None):
    """What a sample says in the case's unit: the figure asked for (in seconds), bytes, or CPU time per operation."""
    if unit == "B":
        return sample["bytes"]
    if figure:
        return sample[figure] * UNITS[unit]
    return sample["cpu"] / max(1, sample["ops"]) * UNITS[unit]


def statistics_of(samples, unit, figure=None):
    values = sorted(value_of(s, unit, figure) for s in samples)
    median = statistics.median(values)
    quartiles = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [median] * 3
    walls = [s["wall"] / max(1, s["ops"]) * UNITS[unit] for s in samples] if unit != "B" and not figure else []
    return {
        "n": len(values),
        "median": median,
        "q1": quartiles[0],
        "q3": quartiles[2],
        "min": values[0],
        "mad": statistics.median(abs(v - median) for v in values),
        "wall": statistics.median(walls) if walls else None,
    }


class Row:
    """One contender in one case: what it did, what it answered."""

    def __init__(self, contender):
        self.contender = contender
        self.samples = []
        self.status = "ok"
        self.error = ""
        self.result = None

    def fail(self, status, error):
        self.status, self.error = status, error

    def as_dict(self, unit, figure):
        c = self.contender
        return {"contender": c.id, "title": c.title, "kind": c.kind, "policy": c.policy, "status": self.status,
                "error": self.error, "result": self.result, "samples": self.samples,
                "stats": statistics_of(self.samples, unit, figure) if self.samples else None, "ratio": None}


class Laboratory:
    """`binaries`: {key: path}; `unable`: a function that says why a contender cannot take part, or None."""

    def __init__(self, binaries, unable, plan, progress):
        self.binaries, self.unable, self.plan, self.progress = binaries, unable, plan, progress
        self.passed = self.failed = 0
        self.lacking = []  # what there was no memory for, a line each

    def run(self, experiments, out):
        """Fill `out` with one entry per experiment as they go, so that an interruption loses only what is under way."""
        total = sum(len(e.cases) for e in experiments)
        done = 0
        for e in experiments:
            entry = {"id": e.id, "title": e.title, "source": e.source, "about": e.about, "plot": e.plot,
                     "x_title": e.x_title, "cases": []}
            out.append(entry)
            for case in e.cases:
                done += 1
                self.label = f"{e.id} {case.title}"
                self.count = f"[{done}/{total}]"
                rows = [Row(c) for c in case.contenders]
                try:
                    self._case(case, rows)
                finally:
                    entry["cases"].append(self._entry(case, rows))
            self.progress(f"{e.id} {e.title}: done", final=True)

    # ---- one case -----------------------------------------------------------------------------------------------

    def _case(self, case, rows):
        for row in rows:
            why = self.unable(row.contender)
            if why:
                row.fail("skipped", why)
        free = machine.available_memory()
        for row in self._alive(rows):
            needed = max(case.needs_memory, case.policy_memory.get(row.contender.policy, 0))
            if needed > free:
                row.fail("skipped", f"needs {needed / 1e9:.0f} GB of free memory")
                self.lacking.append(f"{self.label}, {row.contender.title}: {row.error}")
        self._check_small(case, rows)
        self._measure(case, rows)
        self._judge(case, rows)

    def _alive(self, rows):
        return [r for r in rows if r.status == "ok"]

    def _run(self, row, params):
        key = Builder.key(row.contender)
        return run_once(self.binaries[key], row.contender, params, self.plan.timeout)

    def _check_small(self, case, rows):
        """The known answer at test size, before any time is spent."""
        for row in self._alive(rows):
            self.progress(f"{self.count} {self.label}: checking {row.contender.title}")
            try:
                answer = self._run(row, case.test_params)["result"]
            except Failed as why:
                self._broken(row, f"at test size: {why}")
                continue
            if case.test_expect is not None and answer != case.test_expect:
                row.fail("wrong", f"at test size: {answer}, expected {case.test_expect}")

    @staticmethod
    def _broken(row, why):
        row.fail("broken" if row.contender.kind in ("weft", "c", "limit") else "did not run", why)

    def _measure(self, case, rows):
        if self.plan.warm_up and case.unit != "B":
            self._round(case, rows, keep=False)
        began = time.monotonic()
        for number in range(self.plan.rounds if case.unit != "B" else self.plan.weighings):
            start = time.monotonic()
            self._round(case, rows, keep=True, number=number + 1)
            last = time.monotonic() - start
            if number + 1 >= self.plan.least and time.monotonic() - began + last > self.plan.budget:
                break

    def _round(self, case, rows, keep, number=0):
        alive = self._alive(rows)
        shift = number % len(alive) if alive else 0
        for row in alive[shift:] + alive[:shift]:
            self.progress(f"{self.count} {self.label}: {'round ' + str(number) if keep else 'warm-up'}, {row.contender.title}")
            try:
                sample = self._run(row, case.params)
            except Failed as why:
                self._broken(row, str(why))
                continue
            answer = sample.pop("result")
            if row.result not in (None, answer):
                row.fail("wrong", f"answers {row.result} and {answer} in two runs")
            row.result = answer
            if keep:
                row.samples.append(sample)

    def _judge(self, case, rows):
        """Against the known answer, else against the first contender's."""
        expected = case.expect
        for row in rows:
            if expected is None and row.status == "ok":
                expected = row.result
            if row.status == "ok" and row.result != expected:
                row.fail("wrong", f"{row.result}, expected {expected}")
            if row.status == "ok":
                self.passed += 1
            elif row.status in ("wrong", "broken"):
                self.failed += 1

    def _entry(self, case, rows):
        dicts = [r.as_dict(case.unit, case.figure) for r in rows]
        measured = [d for d in dicts if d["stats"]]
        base = next((d for d in measured if d["contender"] == case.baseline), measured[0] if measured else None)
        for d in measured:
            d["ratio"] = d["stats"]["median"] / base["stats"]["median"] if base["stats"]["median"] else None
        return {"id": case.id, "title": case.title, "about": case.about, "unit": case.unit, "per": case.per,
                "params": case.params, "x": case.x, "expect": case.expect,
                "baseline": base["contender"] if base else None, "published": case.published,
                "reference": case.reference, "rows": dicts}
