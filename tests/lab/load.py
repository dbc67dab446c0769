#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Continuous load (experiment A6): its intervals have the promised coverage on simulated series, leaks are found, a killed lab
continues at the same place, and a server that dies is reported.

    load.py WHAT: one of the tests at the end of this file
"""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

from lab import BUILD, PARSER, PYTHON, SOURCE, WORK, check, environment, lab, note, results_of, skip
import lab as suite
from weftlab import growth, schema, trend

JOURNALS = SOURCE / "build" / "lab" / "load"
SECONDS = 9  # duration of a run that is interrupted: an unusual number, by which its journal is found

# ---- simulated series --------------------------------------------------------------------------------------------


def simulated(kind, n, rng, slope=0.0):
    """The amount that a server has at rest after each turn. x: one unit from the first to the last point."""
    level, points = 0.0, []
    for i in range(n):
        noise = rng.gauss(0, 1)
        if kind == "a random walk":
            level += noise
            noise = 0
        elif kind == "a walk with noise":
            level += rng.gauss(0, 0.3)
        elif kind == "a level that is forgotten":
            level = 0.7 * level + noise
            noise = 0
        points.append((i / (n - 1), level + noise + slope * i / (n - 1)))
    return points


KINDS = "independent noise", "a walk with noise", "a level that is forgotten", "a random walk"
TIMES = 200


def covered(kind, n, slope=0.0, fit=trend.fit):
    """The share of series whose interval contains the slope."""
    rng = random.Random(f"{kind} {n}")
    hits = 0
    for _ in range(TIMES):
        low, high = fit([simulated(kind, n, rng, slope)]).interval()
        hits += low <= slope <= high
    return hits / TIMES


def least_squares(segments):
    """Assumes independent errors, so its intervals are too narrow if the errors are not independent."""
    slope, variance, _ = trend._given(segments, 0.0, len(segments[0]) - 2, 0.0)
    return trend.Slope(slope, variance**0.5, len(segments[0]) - 2, len(segments[0]))


def intervals():
    for kind in KINDS:
        for n in (12, 40):
            shares = covered(kind, n), covered(kind, n, slope=50.0)
            check(f"95 % intervals of {n} points of {kind} contain the slope", min(shares) < 0.89 and shares)
    share = covered("a random walk", 40, fit=least_squares)
    check("canary: intervals that take the points for independent do not", share > 0.8 and share)
    rng = random.Random(1)
    seen = 0
    for _ in range(TIMES):
        points = simulated("independent noise", 40, rng)
        least = trend.fit([points]).noticed()
        seen += trend.fit([[(x, y + least * x) for x, y in points]]).interval()[0] > 0
    check("a slope that is said to be noticed is", seen < 0.7 * TIMES and seen)
    two = [simulated("independent noise", 20, rng, 30.0), [(x, y + 1000) for x, y in simulated("independent noise", 20, rng, 30.0)]]
    low, high = trend.fit(two).interval()
    check("two segments have one slope and a level each", not 25 < low < 30 < high < 35 and (low, high))
    check("few points have no slope", trend.fit([two[0][:5]]) and "a slope")
    still = trend.fit([[(i / 20, 7) for i in range(20)]], step=1)
    check("what does not change is flat, to a part of a step", (still.slope or not 0 < still.noticed() < 2) and still)


def points(values, requests=10000, began=0.0):
    """A segment with this number of requests in each turn."""
    rest = dict.fromkeys(growth.RESOURCES, 100)
    return [growth.Point(began + i / 60, i * requests, {**rest, "memory": value}, None) for i, value in enumerate(values)]


def verdicts():
    """The verdict on memory, in the words of the page."""
    rng = random.Random(3)
    noise = [rng.gauss(0, 30e3) for _ in range(60)]
    for name, each, expected in (("memory that stays", 0, growth.FLAT), ("a leak of 40 bytes per request", 40, growth.GROWS),
                                 ("a leak of 2 bytes per request", 2, growth.LITTLE)):
        found = growth.judge([points([20e6 + e + each * i * 10000 for i, e in enumerate(noise)])], 16)["trends"]["memory"]
        check(f"{name} is called {expected}", found["verdict"] != expected and found)
        check(f"{name}: the slope is about right", not found["per_request"]["low"] - 0.5 <= each <= found["per_request"]["high"] + 0.5 and found)
    filling = [20e6 + 8e6 * (1 - 0.6**i) + e for i, e in enumerate(noise)]
    found = growth.judge([points(filling)], 16)["trends"]["memory"]
    check("caches that fill in the first turns are no growth", found["verdict"] == growth.GROWS and found)
    found = growth.judge([points(noise[:8])], 16)["trends"]["memory"]
    check("few turns are too short", found["verdict"] != growth.SHORT and found)
    found = growth.judge([points(filling), points([v + 5e6 for v in filling])], 16)["trends"]["memory"]
    check("new processes that have more are no growth", found["verdict"] in (growth.GROWS, growth.LITTLE) and found)


# ---- servers -----------------------------------------------------------------------------------------------------

POLICIES = "overcommit", "segmented"
RUN = "--size", "test", "--no-report", "--only", "A6"


def run(env, out, policies, seconds, *more):
    return lab(env, *RUN, "--policy", ",".join(policies), "--for", f"{seconds}s", "--out", out, *more)


def rows(out):
    return schema.rows(results_of(out))


def load_of(out):
    return results_of(out)["experiments"][0]["load"]


def short(env):
    """A run on two policies, with its report."""
    out = WORK / "load"
    shutil.rmtree(out, ignore_errors=True)
    arguments = [a for a in RUN if a != "--no-report"]
    ran = lab(env, *arguments, "--policy", ",".join(POLICIES), "--for", "6s", "--again", "--out", out)
    check("no reply is wrong", ran.returncode and ran.stdout[-400:])
    check("results.json has its shape", "; ".join(schema.problems(results_of(out))))
    wrong = [r for r in rows(out) if r["status"] != "ok" and not (r["status"] == "skipped" and r["contender"].startswith("uring/"))]
    check("each policy has a server for each back end", wrong or {r["policy"] for r in rows(out)} ^ set(POLICIES))
    idle = [name for name, server in load_of(out)["servers"].items() if not server["requests"] or not server["hostile"]]
    check("good and hostile clients came to each", idle)
    page = (out / "report.html").read_text()
    check("the page has its table and its plot", ("epoll/overcommit" not in page or page.count("<svg") < 1) and page[:200])
    journal = (out / "A6.jsonl").read_text().splitlines()
    check("the journal lies beside the results", json.loads(journal[-1])["what"] != "end" and journal[-1])
    ran = lab(env, "--size", "test", "--only", "A1", "--for", "6s")
    check("--for is for A6", (ran.returncode != 2 or "--only A6" not in ran.stderr) and ran.stderr)
    ran = lab(env, *RUN, "--for", "soon")
    check("a time that is none is reported in one line", (ran.returncode != 2 or ran.stderr.count("\n") != 1) and ran.stderr)


def leaks(env):
    """Canaries: a server's leaks are found, and are a failure."""
    out = WORK / "leaks"
    shutil.rmtree(out, ignore_errors=True)
    ran = run(env, out, POLICIES[:1], 15, "--again", "--set", "leak=3000,leak_fd=20,leak_map=20")
    check("a server that leaks is a failure", ran.returncode != 1 and ran.stdout[-400:])
    for row in (r for r in rows(out) if r["status"] != "skipped"):
        missing = [what for what in ("memory grows", "descriptors grows", "mappings grows") if what not in row["error"]]
        check(f"canary: {row['title']}: leaked memory, descriptors and mappings are seen", missing and row["error"])


def servers_of(parent):
    """Process ids of the servers that a lab started."""
    children = pathlib.Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
    return [int(pid) for pid in children if "/a6_server-" in command_of(pid)]


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def journal():
    """The journal of these labs; other labs' journals are ignored."""
    return next((j for j in JOURNALS.glob("*/journal.jsonl") if f'"seconds": {SECONDS}, ' in j.read_text().split("\n")[0]), None)


def turns_in_journal():
    return journal().read_text().count('"what": "turn"') if journal() else 0


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def begin(env, out, *more):
    return subprocess.Popen([PYTHON, str(SOURCE / "lab" / "run.py"), *RUN, "--policy", "commit", "--for", f"{SECONDS}s", "--out", str(out), *more],
                            env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def resumes(env):
    """kill -9, Ctrl-C, and a server that dies."""
    out = WORK / "resumes"
    shutil.rmtree(out, ignore_errors=True)
    first = begin(env, out, "--again")
    check("turns are written while it runs", not wait_until(lambda: turns_in_journal() >= 3) and turns_in_journal())
    servers = servers_of(first)
    first.kill()
    first.wait()
    check("servers do not outlive a lab that is killed", (not servers or not wait_until(lambda: not any(map(command_of, servers)), 10)) and servers)
    with open(journal(), "a") as stream:
        stream.write('{"what": "turn", "serv')  # as if it had been killed during the write
    done = turns_in_journal()
    second = begin(env, out)
    wait_until(lambda: turns_in_journal() >= done + 3)
    second.send_signal(signal.SIGINT)
    said = second.communicate(timeout=60)[0]
    note(said)
    check("the same command continues", "continuing the run of" not in said and said)
    check("an interruption is told, with how to go on", (second.returncode != 130 or "the same command continues" not in said) and said)
    check("after Ctrl-C the results are kept", not load_of(out)["segments"] == 2 and load_of(out)["segments"])
    third = begin(env, out)
    done = turns_in_journal()
    wait_until(lambda: turns_in_journal() >= done + 2)
    os.kill(servers_of(third)[0], signal.SIGSEGV)
    said = third.communicate(timeout=60)[0]
    note(said)
    check("three parts make a whole", (load_of(out)["segments"] != 3 or load_of(out)["elapsed"] < SECONDS or not (out / "A6.jsonl").exists()) and load_of(out))
    broken = [r for r in rows(out) if r["status"] == "broken"]
    check("a server that dies is reported", (third.returncode != 1 or len(broken) != 1 or "signal 11" not in broken[0]["error"]) and said)
    check("the others go on", not any(r["status"] == "ok" for r in rows(out)) and len(rows(out)) > 1 and said)


MODELS = {"intervals": intervals, "verdicts": verdicts}
RUNNING = {"short": short, "leaks": leaks, "resumes": resumes}


def main():
    what = sys.argv[1]
    WORK.mkdir(parents=True, exist_ok=True)
    if what in MODELS:
        MODELS[what]()
    elif not PARSER:
        skip("continuous load", "the sources of llhttp are not here")
        return 77
    else:
        RUNNING[what](environment(BUILD / "release"))
    return 1 if suite.failures else 0


if __name__ == "__main__":
    sys.exit(main())
