#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The lab at its smallest size: every experiment, policy and contender gives the right answer, results.json has its structure,
the report is a page that a browser shows with a plot for each experiment, and wrong answers, interruptions and mistakes end as
they should. The terminal shows findings first and few lines; targets and figures of other machines are ratios, which a slower
machine does not change.

    lab.py WHAT: one of the tests at the end of this file
"""
import copy
import json
import os
import pathlib
import platform
import pty
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import types

SOURCE = pathlib.Path(os.environ.get("WEFT_SOURCE") or pathlib.Path(__file__).resolve().parents[2])
BUILD = pathlib.Path(os.environ.get("WEFT_BUILD_ROOT") or SOURCE / "build")
WORK = BUILD / "tests" / "lab"
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
sys.path.insert(0, str(SOURCE / "lab"))
from weftlab import build, describe, machine, measure, plot, schema, targets  # noqa: E402

# The suite's answers at its test sizes.
KNOWN = {"countdown": "0", "fibonacci_recursive": "5", "product_early": "0", "iterator": "15", "generator": "57",
         "parsing_dollars": "55", "resume_nontail": "37", "handler_sieve": "17"}
MULTI_SHOT = {"nqueens": "10", "tree_explore": "946", "triples": "779312"}  # on copied stacks only
EXPERIMENTS = {"micro", "A1", "A2", "A3", "A4", "A5", "B1", "B2", "B3", "B4", "B5", "B6", "io", "sched", "throw", "C1", "C2", "C3",
               "c10m", "D1", "D1t", "D2", "D2t", "D3", "D3t", "E"}
# The policies in the header: each must take part.
POLICIES = set(re.findall(r'/\*\*< "([a-z]+)":', (SOURCE / "include/weft/stack.h").read_text()))
INSTRUMENTED = {"segmented", "heap", "lookahead", "mmu"}
INSTRUMENTS = platform.machine() == "x86_64" and any((SOURCE / "tools/as").glob("*.c"))
# The newest version of clang that compiles activities here, or None.
ACTIVITIES = next((version for version in (22, 21, 20, 19) if shutil.which(f"clang-{version}") and
                   any((root / f"usr/lib/llvm-{version}/include/llvm/Passes/PassBuilder.h").exists()
                       for root in (pathlib.Path("/"), SOURCE / f"build/packages/llvm-{version}"))), None)
PARSER = (SOURCE / "build/packages/llhttp/include/llhttp.h").exists()  # the sources of llhttp
SCREENS = 120  # lines that a run may print
failures = 0


def note(text):
    print(textwrap.indent(text, "  "), flush=True)  # indented, so that it is no result of this test


def check(what, bad):
    """Reports a check; `bad` is the reason of a failure, or empty."""
    global failures
    if bad:
        failures += 1
        print(f"not ok - {what}: {' '.join(str(bad).split())[:300]}", flush=True)
    else:
        print(f"ok - {what}", flush=True)


def skip(what, why):
    print(f"skip - {what}: {why}", flush=True)


def environment(library):
    drop = ("WEFT_STACK", "WEFT_GUARD", "WEFT_BUDGET", "WEFT_FAIL_EVERY")
    env = {k: v for k, v in os.environ.items() if k not in drop}
    return {**env, "WEFT_SOURCE": str(SOURCE), "WEFT_BUILD": str(library), "MPLCONFIGDIR": str(WORK / "matplotlib")}


def lab(env, *arguments):
    run = subprocess.run([PYTHON, str(SOURCE / "lab" / "run.py"), *map(str, arguments)], env=env, capture_output=True,
                         text=True)  # ctest has a time limit, longer on slower machines
    note(f"== lab {' '.join(map(str, arguments))}: exit code {run.returncode}\n{run.stdout}\n{run.stderr}")
    return run


def build_library():
    """Builds the library as `./weft lab` does, and the tools that compile activities."""
    folder = BUILD / "release"
    wanted = ["weft", "weft_rt", "weft_instrumentation", "weft_posix", "weft_optional"]
    wanted += ["weft_activity", f"weft_activities_{ACTIVITIES}"] if ACTIVITIES else []
    commands = [["cmake", "--build", str(folder), "--target", *wanted]]
    if not (folder / "CMakeCache.txt").exists():
        commands.insert(0, ["cmake", "--preset", "release", "-B", str(folder)])
    for command in commands:
        run = subprocess.run(command, cwd=SOURCE, capture_output=True, text=True)
        note(run.stdout + run.stderr)
        if run.returncode:
            return None
    return folder


def results_of(folder):
    return json.loads((folder / "results.json").read_text())


def rows_by_case(results):
    return {(e["id"], c["id"]): c["rows"] for e in results["experiments"] for c in e["cases"]}


# ---- the checks --------------------------------------------------------------------------------------------------


def everything(env):
    """Runs all experiments on all policies. Returns the folder with the results, or None."""
    out = WORK / "all"
    run = lab(env, "--size", "test", "--out", out)
    check("every answer is right", run.returncode and f"exit code {run.returncode}: {run.stderr.strip()[-200:]}")
    if not (out / "results.json").exists():
        return None
    check("a whole run prints few lines", len(lines_of(run)) > SCREENS and len(lines_of(run)))
    check("its last line says that all is right", not re.fullmatch(r"PASS: all \d+ answers are right", lines_of(run)[-1])
          and lines_of(run)[-1])
    check("a log of it is short", run.stderr.count("\n") > 12 and run.stderr)
    results = results_of(out)
    check("results.json has its shape", "; ".join(schema.problems(results)))
    check("every experiment is there", EXPERIMENTS - {e["id"] for e in results["experiments"]})
    rows = rows_by_case(results)
    wrong = [f"{case} {r['contender']}: {r['status']} {r['error']}" for case, all_rows in rows.items() for r in all_rows
             if r["status"] not in ("ok", "skipped") or (r["status"] == "skipped" and not may_be_missing(r))]
    check("every contender but missing peers ran", "; ".join(wrong))
    for name, answer in {**KNOWN, **MULTI_SHOT}.items():
        policies = POLICIES if name in KNOWN else {"copy"}
        got = {r["contender"]: r["result"] for r in rows.get(("B5", name), []) if r["status"] == "ok"}
        missing = {f"weft/{p}" for p in policies if not may_be_missing({"kind": "weft", "policy": p, "contender": f"weft/{p}"})} - set(got)
        check(f"{name} answers {answer}", missing or {k: v for k, v in got.items() if v != answer})
    if INSTRUMENTS:
        check("threads' stacks grow on every linked policy", not_growing(rows.get(("D1", "deep"), [])) or
              INSTRUMENTED - {r["policy"] for r in rows.get(("D1", "deep"), [])})
    for line in results["skipped"]:
        skip("a contender", line)
    return out


def lines_of(run):
    return (run.stderr + run.stdout).rstrip().split("\n")


def not_growing(rows):
    """The rows whose stacks did not grow: uninstrumented code answers correctly on linked policies, too, on a service stack."""
    idle = []
    for row in rows:
        if row["policy"] in INSTRUMENTED and row["samples"]:
            grew = {k: row["samples"][0].get(k, 0) for k in ("growths", "splits", "probes")}
            if not grew["growths"] + grew["splits"] or (row["policy"] == "mmu" and not grew["probes"]):
                idle.append(f"{row['contender']}: {grew}")
    return idle


UNINSTRUMENTED = """
id = "canary"
title = "Canary"
source = "the test"
about = "Code that is not instrumented, on a policy of linked chunks."
unit = "ns"
per = "call"
contenders = ["weft"]
[contender.weft]
title = "not instrumented"
kind = "weft"
program = "impl/d1_summation.c"
policies = ["segmented"]
instrumentation = ""
[[case]]
id = "one"
test = { n = 10000 }
quick = { n = 10000 }
full = { n = 10000 }
"""


def uninstrumented(env):
    if not INSTRUMENTS:
        skip("code that is not instrumented", "nothing is instrumented on this architecture")
        sys.exit(77)
    folder = WORK / "uninstrumented"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "canary.toml").write_text(UNINSTRUMENTED)
    lab(env, "--no-report", "--size", "test", "--descriptions", folder, "--only", "canary", "--out", folder)
    rows = schema.rows(results_of(folder))
    answered = len(rows) == 1 and rows[0]["result"] == "50005000"
    check("canary: code that is not instrumented is noticed", (not answered or not not_growing(rows)) and rows)


def may_be_missing(row):
    """Rows that may be skipped: peers; policies that the library does not have; policies that need instrumentation if the
    compilers have none; activities if no clang compiles them; HTTP servers without the sources of the parser."""
    policy = row["policy"]
    unsplit = (policy in INSTRUMENTED or row["contender"].startswith("split/")) and not INSTRUMENTS
    ring = row["contender"] == "raw-ring" or row["contender"].split("/")[0] in ("uring", "small-uring")
    uncompiled = not ACTIVITIES and "needs clang and its headers" in (row.get("error") or "")
    parserless = not PARSER and "llhttp" in (row.get("error") or "")
    return row["kind"] == "peer" or ring or uncompiled or parserless or (policy is not None and (policy not in POLICIES or unsplit))


def one_policy(env):
    out = WORK / "one"
    run = lab(env, "--no-report", "--size", "test", "--policy", "commit", "--only", "B5,A4,micro/perform", "--out", out)
    rows = schema.rows(results_of(out)) if run.returncode == 0 else []
    policies = {r["policy"] for r in rows if r["kind"] == "weft"}
    check("one policy and some experiments alone", policies != {"commit"} and f"exit {run.returncode}, {policies}")


def sections(dom):
    """Ids of the sections that have a plot."""
    parts = re.split(r'<section id="([^"]+)"', dom)
    return {parts[i] for i in range(1, len(parts) - 1, 2) if "<svg" in parts[i + 1] and "<path" in parts[i + 1]}


def outside(text):
    """Returns the references that a page would fetch."""
    return re.findall(r"""(?:src|href)\s*=\s*["']?(https?:|//)[^"'> ]*|url\(\s*["']?https?:|@import""", text)


def which_policy(folder):
    """The page that compares the policies shows all of them, from the measurements."""
    text = (folder / "policies.html").read_text()
    check("the page on policies needs nothing else", outside(text))
    check("the report leads to it", 'href="policies.html"' not in (folder / "report.html").read_text() and "no link")
    check("it shows a picture", not re.search(r"<figure><svg.*?<path", text, flags=re.S) and "none")
    check("it has a row for every policy", [p for p in POLICIES if f'<span class="dot {p}"></span>{p}</td>' not in text])
    less = results_of(folder)
    less["experiments"] = [e for e in less["experiments"] if e["id"] != "micro"]
    out = WORK / "less"
    out.mkdir(exist_ok=True)
    (out / "results.json").write_text(json.dumps(less))
    lab(os.environ, "--replot", out / "results.json")
    fewer = (out / "policies.html").read_text()
    check("canary: what was not measured is called so",
          fewer.count("not measured") <= text.count("not measured") and "it was not noticed")


def page(folder):
    idle = next(e for e in results_of(folder)["experiments"] if e["id"] == "c10m")
    row = next(row for row in schema.rows({"experiments": [idle]}) if row["stats"])
    row["stats"].update({name: -4096 for name, value in row["stats"].items() if isinstance(value, (int, float))})
    check("memory that became less is drawn", "<svg" not in plot.experiment(idle) and "no plot")
    text = (folder / "report.html").read_text()
    check("the report needs nothing else", outside(text))
    browser = find_browser()
    if not browser:
        skip("the report in a browser", "no headless Chromium: ./weft test --full fetches one")
        return
    dom = browse(browser, folder / "report.html")
    check("the report shows a section with a plot per experiment", (EXPERIMENTS | {"summary"}) - sections(dom))
    (folder / "no-plot.html").write_text(re.sub(r"<svg.*?</svg>", "", text, count=2, flags=re.S))
    dom = browse(browser, folder / "no-plot.html")
    check("canary: a section without its plot is noticed", not (EXPERIMENTS | {"summary"}) - sections(dom) and "it was not")


def find_browser():
    """Returns an installed browser, or the browser that `./weft test --full` unpacks."""
    unpacked = SOURCE / "build/packages/browser"
    for place in sorted(unpacked.glob("usr/lib/chromium*/chromium-headless-shell")) + sorted(unpacked.glob("usr/lib/chromium*/headless_shell")):
        libraries = sorted({str(file.parent) for file in unpacked.glob("**/*-linux-gnu/**/*.so*")})
        return ["env", f"LD_LIBRARY_PATH={':'.join(libraries)}", str(place)]
    names = "chromium", "chromium-browser", "google-chrome", "chromium-headless-shell"
    return next(([found] for found in map(shutil.which, names) if found), None)


def browse(browser, path):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [*browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update", "--disable-sync",
                   f"--user-data-dir={profile}", "--dump-dom", path.resolve().as_uri()]
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=120).stdout
        except subprocess.TimeoutExpired:
            return ""


def afterwards(env, folder):
    """Operations on results: comparing, plotting again."""
    results = folder / "results.json"
    run = lab(env, "--compare", results, results)
    check("a run compared with itself has not changed",
          run.returncode or re.search(r"\d (slower|faster|larger|smaller)", run.stdout) or " same" not in run.stdout)
    slower = results_of(folder)
    for row in schema.rows(slower):
        if row["stats"]:
            row["stats"].update({k: v * 2 for k, v in row["stats"].items() if k in ("median", "q1", "q3", "min")})
    (WORK / "slower.json").write_text(json.dumps(slower))
    run = lab(env, "--compare", results, WORK / "slower.json")
    check("canary: a run twice as slow is called slower", not re.search(r"\d slower", run.stdout) and run.stdout[-200:])
    run = lab(env, "--replot", results, "--out", WORK / "again")
    same = run.returncode == 0 and (WORK / "again/report.html").read_text() == (folder / "report.html").read_text()
    check("the report can be made again from results.json", not same and "it differs")
    broken = results_of(folder)
    del broken["experiments"][0]["cases"][0]["rows"][0]["status"]
    check("canary: a damaged result file is noticed", not schema.problems(broken) and "it was not")


CANARY = """
id = "canary"
title = "Canary"
source = "the test"
about = "One contender answers wrong."
program = "canary"
contenders = {contenders}
baseline = "right"
unit = "ns"
per = "try"
[contender.right]
title = "right"
kind = "c"
program = "canary.c"
args = ["answer=42"]
[contender.wrong]
title = "wrong"
kind = "c"
program = "canary.c"
args = ["answer=41"]
[contender.broken]
title = "broken"
kind = "weft"
program = "canary.c"
args = ["crash=1"]
[contender.unable]
title = "unable"
kind = "limit"
program = "canary.c"
args = ["cannot=1"]
[contender.absent]
title = "absent"
kind = "peer"
program = "canary.c"
libraries = ["there-is-no-such-library"]
get = "apt-get install --no-install-recommends nothing"
[[case]]
id = "one"
test = {{ n = 1 }}
quick = {{ n = 1 }}
full = {{ n = 1 }}
expect = {{ test = "42", quick = "42", full = "42" }}
"""
CANARY_PROGRAM = """
#include "lab.h"
int main(int argc, char **argv)
{
	if (lab_number(argc, argv, "crash", 0))
		abort();
	if (lab_number(argc, argv, "cannot", 0))
		lab_cannot("no such thing here");
	lab_start();
	lab_stop();
	return lab_report(1, lab_number(argc, argv, "answer", 0));
}
"""


def canary(env, contenders):
    """Runs an experiment of two contenders, without its report."""
    folder = WORK / "canary"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "canary.toml").write_text(CANARY.format(contenders=json.dumps(contenders)))
    (folder / "canary.c").write_text(CANARY_PROGRAM)
    return run_canary(env)


def run_canary(env):
    folder = WORK / "canary"
    return lab(env, "--no-report", "--size", "test", "--descriptions", folder, "--only", "canary", "--out", WORK / "canary-out")


UNRELIABLE = """#!/bin/sh
case "$BREAK $*" in
"yes "*" -c "*) ;;
yes*) while [ "$1" != -o ]; do shift; done; rm -f "$2"; : >"$2"; exit 1 ;;
esac
exec gcc "$@"
"""


def half_built(env):
    """An interrupted linker leaves a file, which is newer than its source."""
    compiler = WORK / "unreliable"
    compiler.write_text(UNRELIABLE)
    compiler.chmod(0o755)
    env = {**env, "CC": shlex.quote(str(compiler))}
    run = canary(env, ["right"])
    check("a compiler that fails now and then does well", run.returncode and run.stderr)
    run = canary({**env, "BREAK": "yes"}, ["right"])
    check("then it fails", run.returncode == 0 and run.stdout)
    run = run_canary(env)
    check("what it left is built anew", run.returncode and run.stderr + run.stdout)


def canaries(env):
    run = canary(env, ["right", "wrong"])
    check("canary: a wrong answer fails the run", run.returncode != 1 and f"exit code {run.returncode}")
    check("canary: it is shown", "FAIL: 41, expected 42" not in run.stdout and run.stdout[-300:])
    run = canary(env, ["right", "broken"])
    check("canary: a crash fails the run", (run.returncode != 1 or "signal 6" not in run.stdout) and run.stdout[-300:])
    run = canary(env, ["right", "unable"])
    told = "unable: no such thing here" in run.stdout
    check("what the system cannot run is skipped with a line that says why", (run.returncode or not told) and run.stdout[-300:])
    run = canary(env, ["right", "absent"])
    told = "skipped: absent; apt-get install --no-install-recommends nothing" in run.stdout
    check("a missing peer is skipped with a line that says how to get it",
          (run.returncode or not told) and run.stdout[-300:])


# ---- checkouts of the user's ----------------------------------------------------------------------------------------

PEERS = r"""
[tools]
there-is-no-such-tool = "nothing"
[peer.fake]
title = "Fake"
source = "https://example.invalid/fake"
tried = "1"
has = { "fake.c" = "version 2" }
build = "$CC -O2 fake.c -o fake"
[peer.broken]
title = "Broken"
source = "https://example.invalid/broken"
tried = "1"
has = { "fake.c" = "version 2" }
build = "$CC -O2 not-there.c -o fake"
[peer.toolless]
title = "Toolless"
source = "https://example.invalid/toolless"
tried = "1"
has = { "fake.c" = "version 2" }
tools = ["there-is-no-such-tool"]
[[program]]
id = "fake"
title = "Fake, measured here"
with = ["fake"]
build = 'cp "$fake/fake" "$out"'
foreign = true
args = ["{n}"]
answer = '\d+'
[[program.case]]
in = ["canary/one"]
instead_of = "fake"
[[program]]
id = "others"
title = "Others"
with = ["broken"]
build = 'false'
[[program.case]]
in = ["canary/one"]
[[program]]
id = "more"
title = "More"
with = ["toolless"]
build = 'false'
[[program.case]]
in = ["canary/one"]
"""
FAKE = """
/* version %d */
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	volatile int n = 0;

	while (n < 1000000)
		n++;
	printf("the answer is %%d\\n", argc < 2 ? -1 : %d + atoi(argv[1]));
	return 0;
}
"""


def fake_checkout(name, version=2, base=41):
    """Makes a directory with a small program, as a git repository of one commit."""
    folder = WORK / "peers" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "fake.c").write_text(FAKE % (version, base))
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@example.invalid", "-C", str(folder)]
    for command in (["init", "-q"], ["add", "fake.c"], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    return folder


def contents(folder):
    return {str(path): (path.stat().st_mtime_ns, path.is_file() and path.read_bytes()) for path in folder.rglob("*")}


def beside_us(env, *arguments):
    """Runs the canary's experiment, which has figures of another machine for "fake" and "else". Returns the run, its case, and
    its results."""
    folder, out = WORK / "peers" / "descriptions", WORK / "peers" / "out"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "canary.toml").write_text(CANARY.format(contenders='["right"]') + 'reference = { "fake" = 100, "else" = 100 }\n')
    (folder / "canary.c").write_text(CANARY_PROGRAM)
    (folder / "peers.toml").write_text(PEERS)
    run = lab(env, "--no-report", "--size", "test", "--descriptions", folder, "--only", "canary", "--out", out, *arguments)
    results = results_of(out) if run.returncode in (0, 1) else None
    return run, results and results["experiments"][0]["cases"][0], results


def constants(case):
    return set((case["reference"] or {"values": {}})["values"])


def peers(env):
    checkout = fake_checkout("checkout")
    before = contents(checkout)
    run, case, results = beside_us(env, "--peer", f"fake={checkout}")
    row = next((r for r in case["rows"] if r["contender"] == "fake"), {"status": "none", "samples": []})
    check("a checkout is built and measured", row["status"] != "ok" and run.stderr)
    check("its time is that of the process", not row["samples"] or row["samples"][0]["cpu"] <= 0)
    check("its figure replaces the constant, the others stay", constants(case) != {"else"} and constants(case))
    check("the checkout is not written to", contents(checkout) != before and "it is")
    commit = subprocess.run(["git", "-C", str(checkout), "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    check("results.json says its commit", results["peers"][0]["commit"] != commit and results["peers"])
    check("results.json has its shape with it", "; ".join(schema.problems(results)))
    _, case, _ = beside_us(env)
    check("without it all constants stay", constants(case) != {"fake", "else"} and constants(case))
    _, case, _ = beside_us(env, "--peer", f"fake={fake_checkout('other', base=40)}")
    check("canary: a wrong answer of a peer is noticed", case["rows"][-1]["status"] != "wrong" and case["rows"])
    check("and its constant stays", constants(case) != {"fake", "else"} and constants(case))
    wrong_checkouts(env, checkout)


def wrong_checkouts(env, checkout):
    """Each unusable checkout gives a line with a remedy, and everything else is measured."""
    empty = WORK / "peers" / "empty"
    empty.mkdir(exist_ok=True)
    log = SOURCE / "build" / "lab" / "peers" / "broken.log"
    for what, peer, said in (
            ("a directory that is not there", f"fake={WORK}/nowhere", "no such directory; clone https://example.invalid/fake"),
            ("a directory that is no checkout", f"fake={empty}", "no checkout of Fake: it has no fake.c; clone https"),
            ("another version", f"fake={fake_checkout('old', version=1)}", "another version of Fake: its fake.c does not have version 2"),
            ("a build that fails", f"broken={checkout}", f"not-there.c: No such file or directory; the log is {log}"),
            ("a missing tool", f"toolless={checkout}", "needs there-is-no-such-tool: apt-get install --no-install-recommends nothing")):
        run, case, _ = beside_us(env, "--peer", peer)
        lines = [line for line in run.stderr.splitlines() if line.startswith(f"lab: --peer {peer}: ") and said in line]
        check(f"{what} is told in one line", len(lines) != 1 and run.stderr)
        check(f"{what} does not stop the others", (run.returncode or constants(case) != {"fake", "else"}) and run.stdout)
    check("the log of a build that failed is kept", not log.exists() and "there is none")
    for what, peer, said in (("an unknown peer", "fakke=/", "lab: no peer is called 'fakke': did you mean 'fake'?"),
                             ("a peer without a directory", "fake", "lab: --peer fake needs a directory: --peer fake=DIR")):
        run, _, _ = beside_us(env, "--peer", peer)
        check(f"{what} is a mistake", (run.returncode != 2 or not run.stderr.startswith(said)) and run.stderr)


# ---- output for readers ------------------------------------------------------------------------------------------


def rewritten(folder, name, change):
    """Returns a folder with the changed results of a run, as if it had been a quick run."""
    results = results_of(folder)
    results["size"] = "quick"
    results["load"]["others"] = 0.0
    for row in schema.rows(results):
        row["stats"] and row["stats"].update(dict.fromkeys(("min", "second"), row["stats"]["median"]), n=targets.ENOUGH)
    change(results)
    out = WORK / name
    out.mkdir(exist_ok=True)
    (out / "results.json").write_text(json.dumps(results))
    return out


def by_hand(results):
    """Makes the figures unambiguous: Weft takes 1.1 times each other contender."""
    for row in schema.rows(results):
        if row["stats"]:
            row["stats"].update(dict.fromkeys(("median", "min", "second"), 1.1 if row["kind"] == "weft" else 1.0))


def slower_machine(results):
    """Makes everything take 2.8 times as long, except bytes, and figures of lateness or answers by the timers' clock."""
    for e in results["experiments"]:
        for case in e["cases"]:
            if case["unit"] != "B" and case["id"] not in ("long_task", "late", "queries"):
                for row in case["rows"]:
                    row["stats"] and row["stats"].update({k: 2.8 * row["stats"][k] for k in ("median", "min", "second")})
                times = measure._elsewhere(_as_case(case), 2.8 * case["reference"]["pair_here"]) if case["reference"] else None
                case["reference"] = times


class _as_case:
    def __init__(self, entry):
        self.reference = {name: v["there"] for name, v in entry["reference"]["values"].items()}
        self.yardstick = entry["unit"] != "B"


def verdicts(run):
    return re.findall(r"≤.*?(met|missed|undecided)", run.stdout)


def findings_of(run):
    """The text from the first finding to the note on other machines' figures, which contains nanoseconds."""
    return run.stdout[run.stdout.find("Findings"):run.stdout.find("* measured")]


def reader(env, folder):
    usual = lab(env, "--replot", rewritten(folder, "usual", lambda results: None) / "results.json")
    lines = usual.stdout.strip().split("\n")
    disturbed = lab(env, "--no-report", "--replot", rewritten(folder, "disturbed", lambda r: r["load"].update(others=1.3)) / "results.json")
    check("that other programs disturbed the run is said before them", not re.search(
        r"^Other programs kept 1.3 of \d+ CPUs busy.*^Switching", disturbed.stdout, flags=re.S | re.M) and disturbed.stdout[:400])
    check("and only then", "Other programs" in usual.stdout)
    check("findings come first", not lines[0].startswith("Findings") and lines[0])
    check("all of a quick run fits on two screens", len(lines_of(usual)) > SCREENS and len(lines_of(usual)))
    check("no line is wider than a terminal", [line for line in lines if len(line) > 160])
    check("targets are for those who ask", re.search("missed|Targets|≤", usual.stdout))
    page = (WORK / "usual" / "report.html").read_text()
    check("nor are they in the report", "Targets of" in page)
    check("findings tell how to measure them again", page.count("<code>./weft lab --only") < 20 and page.count("<code>./weft"))
    slow = lab(env, "--no-report", "--replot", rewritten(folder, "slow", slower_machine) / "results.json")
    check("a slower machine finds the same", (findings_of(slow) != findings_of(usual) or not findings_of(slow)) and slow.stdout)
    judged = [lab(env, "--no-report", "--targets", "--replot", WORK / name / "results.json") for name in ("usual", "slow")]
    check("and gives the same verdicts", verdicts(judged[0]) != verdicts(judged[1]) or len(verdicts(judged[0])) < 40)


def costs_page(env, folder):
    page = WORK / "costs.md"
    shutil.copy(SOURCE / "docs/reference/costs.md", page)
    results = rewritten(folder, "costs", lambda results: None) / "results.json"
    run = lab(env, "--no-report", "--replot", results, "--costs", page)
    check("the page of costs is written", run.returncode and run.stderr)
    text = page.read_text()
    check("its rows have figures", [row for row in describe.costs(SOURCE / "lab/descriptions")
                                    if not re.search(re.escape(f"| {row['text']} | ") + "[0-9]", text)])
    check("what is written by hand stays", "\n## Size of the code\n" not in text)
    page.write_text("# Costs\n")
    run = lab(env, "--no-report", "--replot", results, "--costs", page)
    check("canary: a page without a place for them is refused in one line",
          (run.returncode != 2 or "has no place" not in run.stderr or run.stderr.count("\n") != 1) and run.stderr)


def judging(env, folder):
    """A missed target is a failure with --targets."""
    run = lab(env, "--no-report", "--targets", "--replot", rewritten(folder, "by-hand", by_hand) / "results.json")
    last = lines_of(run)[-1]
    missed = verdicts(run).count("missed")
    check("canary: a missed target fails a run that asks for targets",
          (run.returncode != 1 or not missed or not last.startswith(f"FAIL: {missed} of ")) and f"{run.returncode}, {last}")
    run = lab(env, "--no-report", "--replot", WORK / "by-hand" / "results.json")
    check("but not one that does not ask", run.returncode and lines_of(run)[-1])
    said = [targets._verdict(*pair, 1.5, "quick") for pair in ((1.2, 1.4), (1.6, 1.7), (1.4, 1.6), (1.499, 1.499), (None, None))]
    expected = ["met", "missed", "undecided", "undecided", "not measured"]
    check("a bar within what the best runs say is undecided", said != expected and said)
    check("every target is a ratio to something", [t["title"] for t in describe.targets(SOURCE / "lab/descriptions")
                                                   if not t.get("against") or "ns" in t["against"].split()])


def judged(n=3, others=0.0, median=1.31, **about):
    """The verdict on a case whose best runs give 1.3 for a target of 1.1; and whether the case gets more runs."""
    case = {"id": "one", "unit": "ns", "figure": None, "params": {}, **about}
    stats = {"min": 1.3, "second": 1.31, "median": median, "n": n}
    samples = [{"cpu": 1.0, "wall": 1.0, "ops": 1, "late": 1.3, "others": others}] * n
    case["rows"] = [{"contender": "weft/fixed", "policy": "fixed", "status": "ok", "stats": stats, "samples": samples}]
    target = {"title": "", "against": "", "must": about.get("must", 1.1), "value": "x/one", "limit": 1.0}
    entries = [{"id": "x", "cases": [case]}]
    return (targets.evaluate([target], entries, "quick", 4096)[0]["verdict"], bool(targets.unsure([target], entries, "quick", 4096)))


def trusted():
    """The verdicts that few runs, or runs beside other programs, allow."""
    for what, got, expected in (
            ("runs that agree, near a bar", judged(), ("missed", True)),
            ("as many as are enough", judged(n=targets.ENOUGH), ("missed", False)),
            ("few that spread, of which two agree", judged(median=1.8), ("undecided", True)),
            ("many that spread", judged(median=1.8, n=targets.ENOUGH), ("missed", False)),
            ("one run", judged(n=1), ("undecided", True)),
            ("one run, far from a bar", judged(n=1, must=1.0), ("missed", False)),
            ("one weighing", judged(n=1, unit="B"), ("missed", False)),
            ("CPU time beside other programs", judged(others=1.3), ("missed", True)),
            ("what the clock tells", judged(figure="late", must=1.0), ("missed", False)),
            ("what the clock tells beside other programs", judged(figure="late", must=1.0, others=1.3), ("undecided", True)),
            ("the same, which is met nevertheless", judged(figure="late", must=2.0, others=1.3), ("met", False))):
        check(what, got != expected and got)
    rounds_and_seconds = ((1, 50.0), (0, 0.0), (1, 3.0), (1, 4.0), (1, 9.0))
    x = types.SimpleNamespace(id="x")
    series = [measure.Series(x, types.SimpleNamespace(id=i), [], rounds=rounds, took=took)
              for i, (rounds, took) in enumerate(rounds_and_seconds)]
    fitting = [series.index(s) for s in measure._fitting(series, time.monotonic() + 10)]
    check("when time is short, what takes least has another round", fitting != [1, 2, 3] and fitting)
    fitting = [series.index(s) for s in measure._fitting(series, time.monotonic() + 13, {"x/4", "x/0"})]
    check("but what is told first goes before", fitting != [1, 2, 4] and fitting)
    check("first rounds are never left out", measure._fitting(series, 0) != [series[1]] and "they are")
    check("what other programs take is seen", busy_beside(1) < 0.5 and busy_beside(1))


def busy_beside(loops):
    """The number of CPUs that the lab reports as busy by other programs, while `loops` busy loops run."""
    began = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        before, start = machine.busy(), time.monotonic()
        time.sleep(0.5)
        return (machine.busy() - before) / (time.monotonic() - start)
    finally:
        for one in began:
            one.kill()
            one.wait()


def elsewhere(results):
    """Figures of another machine are scaled by the hand-written pair, there and here, and marked."""
    cases = [(c, c["reference"]) for e in results["experiments"] for c in e["cases"] if c["reference"]]
    wrong = [c["id"] for c, r in cases for v in r["values"].values()
             if c["unit"] != "B" and abs(v["here"] - v["there"] * r["pair_here"] / describe.REFERENCE_PAIR) > 1e-6 * v["here"]]
    check("figures of another machine are scaled to this one", wrong or not cases and "none")
    case = copy.deepcopy(next(c for c, _ in cases if c["unit"] == "ns"))
    plain = measure._elsewhere(_as_case(case), None)
    check("canary: without a hand-written pair here there are none", plain)
    page = (WORK / "all" / "report.html").read_text()
    bare = [name for name in ("libaco", "minicoro", "libmprompt") if re.search(rf">{name}<", page.split("<table", 1)[0])]
    check("plots say so beside each", bare or "* (times " not in page)


def counted():
    """Time of programs beside the lab is not counted."""
    sample = {"cpu": 1.0, "wall": 9.0, "ops": 1000000000}
    check("CPU time counts, not wall time", measure.value_of(sample, "ns") != 1.0)
    check("wall time counts where the case says so", measure.value_of(sample, "ns", clock="wall") != 9.0)
    both = measure.statistics_of([sample], "ns", clock="wall")
    check("the other clock stands beside it", (both["median"], both["cpu"], both["wall"]) != (9.0, 1.0, 9.0) and both)
    clocked = [(e.id, c.id) for e in describe.load([SOURCE / "lab" / "descriptions"], "full", describe.POLICIES) for c in e.cases
               if c.published and c.published["unit"] == "ms" and c.clock != "wall"]
    check("published milliseconds stand beside wall time alone", clocked)


# The papers' figures: {(experiment, a parameter): (contender, its base, the ratio)}. The lab shows none at other sizes.
PUBLISHED = {("C1", ("n", 10000)): ("copy", "segmented", 4.11), ("C1", ("n", 100000)): ("copy", "segmented", 8.85),
             ("C1", ("n", 1000000)): ("copy", "segmented", 11.15), ("C2", ("n", 21)): ("copy", "segmented", 11.22),
             ("C2", ("n", 22)): ("copy", "segmented", 11.32), ("C2", ("n", 23)): ("copy", "segmented", 11.59),
             ("C3", ("n", 1000)): ("copy", "segmented", 9.36), ("C3", ("n", 4000)): ("copy", "segmented", 8.09),
             ("C3", ("n", 8000)): ("copy", "segmented", 7.79), ("D1", ("n", 10000000)): ("heap", "fixed", 817 / 131),
             ("D2", ("n", 1000)): ("heap", "fixed", 13374 / 3502), ("B5", ("n", 200000000)): ("libseff", "libmpeff", 5.97 / 2.68),
             ("B5", ("n", 40000000)): ("libseff", "libmpeff", 0.38 / 0.18), ("B5", ("n", 25)): ("libseff", "libmpeff", 0.66 / 4.92),
             ("B5", ("n", 100000)): ("libseff", "libmpeff", 0.15 / 0.14), ("B5", ("n", 60000)): ("libseff", "libmpeff", 6.71 / 36.08)}
# Two programs of B5 have the same parameter: a ratio each.
TWICE = {("B5", ("n", 20000)): {round(1.85 / 1.4, 3), round(0.32 / 1.37, 3)}}


def sizes():
    """A published ratio is shown at the size for which it was published, and at no other size."""
    seen, wrong = set(), []
    for size in describe.SIZES:
        for e in describe.load([SOURCE / "lab" / "descriptions"], size, describe.POLICIES):
            for case in e.cases:
                key = (e.id, ("n", case.params.get("n")))
                if e.id not in {experiment for experiment, _ in PUBLISHED} or not case.published:
                    continue
                value = {name.split("/")[-1]: v["value"] for name, v in case.published["values"].items()}
                if key in TWICE:
                    right = round(value["libseff"] / value["libmpeff"], 3) in TWICE[key]
                else:
                    who, whom, ratio = PUBLISHED.get(key, ("", "", 0))
                    right = who in value and abs(value[who] / value[whom] - ratio) < 0.001 * ratio
                seen.add(key)
                wrong += [] if right else [f"{e.id} {case.id} at {size}: {case.params}"]
    check("published ratios stand beside their own sizes alone", wrong)
    check("and all of them are shown", sorted((set(PUBLISHED) | set(TWICE)) - seen))
    case = {"id": "canary", "published": {"n = 7": {"a": 1}, "n = 7, d = 2": {"a": 2}}, "published_baseline": "a", "published_unit": "ms"}
    check("canary: none at another size", describe._published("here", case, {"n": 8}))
    try:
        check("canary: two for one size", describe._published("here", case, {"n": 7, "d": 2}) or "they are taken")
    except describe.DescriptionError:
        check("canary: two for one size", "")


def mistakes(env):
    for what, arguments in (("an unknown experiment", ("--only", "Z9")), ("an unknown policy", ("--policy", "best")),
                            ("an unknown parameter", ("--only", "E", "--set", "megabytes=7")), ("a parameter without a number", ("--set", "mb=x")),
                            ("a file that is no result", ("--replot", SOURCE / "lab" / "run.py"))):
        run = lab(env, *arguments)
        check(f"{what} is reported in one line", (run.returncode != 2 or "Traceback" in run.stderr) and run.stderr)


def closed(env):
    """A directory below a directory that this user may not enter."""
    folder = WORK / "closed"
    folder.mkdir(exist_ok=True)
    folder.chmod(0)
    nobody = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    try:
        run = subprocess.run([PYTHON, str(SOURCE / "lab" / "run.py"), "--check", "--out", str(folder / "x" / "y")], env=env,
                             capture_output=True, text=True, **nobody)
    finally:
        folder.chmod(0o700)
    line = f"lab: cannot write to {folder}/x/y: Permission denied\n"
    check("a directory that cannot be seen is told in one line", (run.returncode != 2 or run.stderr != line) and run.stderr)


def offline():
    """The messages of cargo without network."""
    tool = WORK / "cargo"
    tool.write_text("#!/bin/sh\ncat >&2 <<'END'\n    Updating crates.io index\nwarning: spurious network error (3 tries remaining): [6] "
                    "Could not resolve hostname (Could not resolve host: index.crates.io)\nerror: failed to get `corosensei` as a "
                    "dependency of package `lab-corosensei v0.1.0`\nEND\nexit 101\n")
    tool.chmod(0o755)
    try:
        build.Builder._run_tool(None, [str(tool)], WORK, {})
        said = "nothing"
    except build.Unavailable as error:
        said = str(error)
    check("a peer that cannot be fetched says so", said != "cargo needs the network: Could not resolve host: index.crates.io" and said)


def restore_interrupts():
    """A shell that runs tests in the background makes them ignore these signals."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def interruption(env):
    """On a terminal, whose single line shows when the second round runs."""
    out = WORK / "interrupted"
    shutil.rmtree(out, ignore_errors=True)
    terminal, end = pty.openpty()
    process = subprocess.Popen([PYTHON, str(SOURCE / "lab" / "run.py"), "--quick", "--only", "micro/raw,B5/fibonacci_recursive",
                                "--policy", "overcommit", "--out", str(out)], env=env, stdout=subprocess.PIPE, stderr=end,
                               text=True, preexec_fn=restore_interrupts)
    os.close(end)
    watchdog = threading.Timer(120, process.kill)
    watchdog.start()
    seen = until(terminal, b"round 2 of")
    process.send_signal(signal.SIGINT)
    seen += until(terminal, None)
    output = process.communicate()[0]
    watchdog.cancel()
    note(seen.decode(errors="replace") + output)
    results = results_of(out) if (out / "results.json").exists() else {}
    bad = process.returncode != 130 or results.get("complete") is not False or schema.problems(results)
    kept = results and any(r["stats"] for r in schema.rows(results))
    check("an interruption keeps what was measured", (bad or not kept) and f"exit {process.returncode}: {output[-200:]}")
    check("its last line says so", not output.rstrip().split("\n")[-1].startswith("INTERRUPTED") and output[-200:])
    check("on a terminal, progress is one line", seen.count(b"\n") > 3 and seen.count(b"\n"))
    filled = [line.count("█") for line in seen.decode(errors="replace").split("\r") if "▕" in line]
    check("the bar never becomes shorter", filled != sorted(filled) and filled)
    check("no report is drawn, and how to have it is said",
          ((out / "report.html").exists() or "lab --replot" not in output) and output[-300:])
    check("no copies of programs are left behind", list((SOURCE / "build" / "lab" / "bin").glob("round-*")))


def report_interrupted(env):
    """Ctrl-C, which all processes of a terminal get, while the report is drawn."""
    out = WORK / "unfinished"
    shutil.rmtree(out, ignore_errors=True)
    process = subprocess.Popen([PYTHON, str(SOURCE / "lab" / "run.py"), "--size", "test", "--only", "A1,A2,A3,B1", "--out", str(out)],
                               env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
                               preexec_fn=restore_interrupts)
    while process.poll() is None and not (out / "results.json").exists():
        time.sleep(0.01)
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None and not children.read_text():
        time.sleep(0.01)
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate()[1]
    note(said)
    last = said.rstrip().split("\n")[-1]
    check("a report that is interrupted says what is kept", (process.returncode != 130 or "Traceback" in said or
                                                            not last.startswith("lab: interrupted: results.json is kept")) and said[-300:])


def until(terminal, text):
    """Returns the output of a terminal until a text, or until its program ends."""
    seen = b""
    while text is None or text not in seen:
        try:
            data = os.read(terminal, 4096)
        except OSError:
            break
        if not data:
            break
        seen += data
    return seen


def library(env):
    """Builds the library as `./weft lab` does, and checks what the lab says about itself."""
    check("the library builds", not build_library() and "see the log")
    run = lab(env, "--list")
    check("--list names every experiment", run.returncode or [e for e in EXPERIMENTS | {"A6"} if f"\n{e} " not in f"\n{run.stdout}"])
    none = WORK / "no-cmake"
    none.mkdir(exist_ok=True)
    (none / "cmake").write_text("#!/bin/sh\nexit 1\n")
    (none / "cmake").chmod(0o755)
    run = lab({**env, "PATH": f"{none}:{env['PATH']}"}, "--no-report", "--size", "test", "--only", "A1", "--policy", "fixed,segmented",
              "--out", WORK / "built")
    check("what is built is not built again", run.returncode and run.stderr[-300:])


# Each function is a test. Tests of the second kind use the measurements of `everything`.
MEASURING = {"library": library, "everything": everything, "one_policy": one_policy, "canaries": canaries, "uninstrumented": uninstrumented,
             "mistakes": mistakes, "closed": closed, "interruption": interruption, "counted": lambda env: counted(), "sizes": lambda env: sizes(),
             "trusted": lambda env: trusted(), "report_interrupted": report_interrupted,
             "offline": lambda env: offline(), "half_built": half_built, "peers": peers}
READING = {"page": lambda env, folder: page(folder), "which_policy": lambda env, folder: which_policy(folder), "afterwards": afterwards,
           "reader": reader, "costs_page": costs_page, "judging": judging, "elsewhere": lambda env, folder: elsewhere(results_of(folder))}


def main():
    what = sys.argv[1]
    WORK.mkdir(parents=True, exist_ok=True)
    env = environment(BUILD / "release")
    if what in MEASURING:
        MEASURING[what](env)
    else:
        READING[what](env, WORK / "all")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
