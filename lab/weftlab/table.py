# SPDX-License-Identifier: MIT OR Apache-2.0
"""Figures as text for the terminal. The findings come first and fit on two screens; tables are printed on request, or for few
cases."""
import os
import re
import sys

from .describe import UNITS

CLOCKS = {"cpu": "CPU", "wall": "wall"}
MARKS = {"wrong": "WRONG", "broken": "BROKEN", "did not run": "–", "skipped": "–"}


def number(value):
    """Three significant digits, without exponents."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace(",", " ")
    if abs(value) >= 100:
        return f"{value:.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    if abs(value) >= 1:
        return f"{value:.2f}"
    if abs(value) >= 0.1:
        return f"{value:.3f}"
    return f"{value:.3g}"


def plain_name(contender):
    """The displayed name of a contender that was not measured: weft/mmu is called mmu."""
    return "plain C" if contender == "c" else contender.split("/")[-1]


def ratio(value):
    return "–" if value is None else f"{number(value)}×"


def spread(stats):
    """Half the distance between the quartiles, in percent of the median."""
    if not stats or not stats["median"] or stats["n"] < 2:
        return ""
    return f"±{50 * (stats['q3'] - stats['q1']) / stats['median']:.0f}%"


class Style:
    def __init__(self, stream):
        self.on = stream.isatty() and "NO_COLOR" not in os.environ

    def paint(self, code, text):
        return f"\033[{code}m{text}\033[0m" if self.on else text

    def bold(self, text):
        return self.paint("1", text)

    def good(self, text):
        return self.paint("32", text)

    def bad(self, text):
        return self.paint("31;1", text)

    def dim(self, text):
        return self.paint("2", text)


def lay_out(rows, align):
    """Columns of equal width. `align` is one of < and > for each column."""
    widths = [max(len(r[i]) for r in rows) for i in range(len(align))]
    return ["  ".join(f"{cell:{a}{w}}" for cell, a, w in zip(r, align, widths)).rstrip() for r in rows]


# ---- findings, failures, targets --------------------------------------------------------------------------------


def print_findings(groups, beside, note, out=sys.stdout):
    """Prints a sentence with its ratios for each finding. `beside` names the disturbances of the run, or is ""."""
    style = Style(out)
    if not groups:
        return
    print(f"\n{style.bold('Findings')}  1.5 × is one and a half times the time (or memory) of what the line above names; less is better.\n"
          f"Weft on its default policy, overcommit, unless another is named. CPU time, the best of several runs in turns."
          f"{chr(10) if beside else ''}{beside}", file=out)
    for group, findings in groups:
        print(f"\n{style.bold(group)}", file=out)
        for f in findings:
            print(f"  {f['text']}, against {f['than']}  {style.dim(f['where'])}", file=out)
            print(f"      {style.bold(_own(f))}{_beside(f)}", file=out)
    if note:
        print(f"\n* {note.replace('. ', '.' + chr(10) + '  ')}", file=out)


def _own(finding):
    own = finding["own"]
    if len(own) == 1:
        return short_ratio(own[0])
    return ", ".join(f"{o['name']} {short_ratio(o)}" for o in own)


def _beside(finding):
    return "; ".join(["", *([", ".join(f"{o['name']} {short_ratio(o)}" for o in finding["beside"])]
                            if finding["beside"] else [])])


def short_ratio(entry):
    """Two digits, which is the accuracy of a quick run; a star if the ratio rests on another machine's figure."""
    value = entry["ratio"]
    text = f"{value:.0f}" if value >= 9.95 else f"{value:.1f}" if value >= 0.995 else f"{value:.2f}"
    text = f"{value:.2g}" if value < 0.095 else text
    return f"{text}{'*' if entry['elsewhere'] else ''}\N{NO-BREAK SPACE}×"


def print_failures(results, limit=20, out=sys.stdout):
    style = Style(out)
    lines = [f"{e['id']}/{c['id']} {r['title']}: FAIL: {r['error']}" for e in results["experiments"] for c in e["cases"]
             for r in c["rows"] if r["status"] in ("wrong", "broken")]
    for line in lines[:limit]:
        print(style.bad(line), file=out)
    if len(lines) > limit:
        print(f"and {len(lines) - limit} more: they are in the report", file=out)


def print_targets(targets, out=sys.stdout):
    style = Style(out)
    print(f"\n{style.bold('Targets')}  ratios to a limit or peer of this run, of the best runs; the worst policy's\n",
          file=out)
    body = [["", "to", "must", "aim", "measured", "", "verdict"]]
    for t in (t for t in targets if t["measured"] is not None):
        body.append([t["title"], t["against"], f"≤ {t['must']:g}", f"{t['aim']:g}" if t["aim"] is not None else "",
                     number(t["measured"]), f"{number(t['low'])} … {number(t['high'])}", t["verdict"] + (f" ({t['note']})" if t["note"] else "")])
    for line in lay_out(body, "<<>>>><"):
        print("  " + (style.bad(line) if "missed" in line else line), file=out)
    without = sum(t["measured"] is None for t in targets)
    if without:
        print(f"\n  {without} not measured in this run", file=out)
    if any(t["verdict"] == "undecided" for t in targets):
        print("\n  undecided: the bar lies within what the best and the second best runs say on this machine", file=out)


# Matches the packages of a remedy: its words up to a remark.
INSTALL = re.compile(r"apt-get install --no-install-recommends ((?:[a-z0-9][a-z0-9.+-]*(?: |$)(?!from |or ))+[a-z0-9.+-]*)")


def missing(lines):
    """Folds lines about absent contenders: the packages that provide some of them, the names of these, and the remaining
    lines."""
    packages, brought, others = set(), [], []
    for line in lines:
        found = INSTALL.search(line)
        if found:
            packages.update(found[1].split())
            brought.append(line.split(": ")[0])
        else:
            others.append(line)
    return {"packages": sorted(packages), "brought": brought, "others": others}


def print_skipped(lines, limit=8, out=sys.stdout):
    folded = missing(lines)
    if folded["packages"]:
        print(f"skipped: {', '.join(folded['brought'])}; apt-get install --no-install-recommends {' '.join(folded['packages'])}", file=out)
    lines = folded["others"]
    for line in lines[:limit]:
        print(f"skipped: {line}", file=out)
    if len(lines) > limit:
        print(f"and {len(lines) - limit} more are skipped: the report says why", file=out)


def last_line(results):
    """The meaning of the exit code in words, and whether it is good."""
    checks = results["checks"]
    missed = sum(t["verdict"] == "missed" for t in results["targets"])
    measured = sum(t["measured"] is not None for t in results["targets"])
    undecided = sum(t["verdict"] == "undecided" for t in results["targets"])
    right = f"all {checks['passed']} answers are right"
    if checks["failed"]:
        return f"FAIL: {checks['failed']} of {checks['passed'] + checks['failed']} answers are wrong or missing", False
    if not results["complete"]:
        return f"INTERRUPTED: what was measured until then is kept; {right}", False
    if missed:
        return f"FAIL: {missed} of {measured} targets missed, {undecided} undecided; {right}", False
    return f"PASS: {right}" + (f", no target missed, {undecided} undecided" if results["targets"] else ""), True


# ---- tables -------------------------------------------------------------------------------------------------------


def print_experiment(entry, out=sys.stdout):
    style = Style(out)
    print(f"\n{style.bold(entry['id'] + '  ' + entry['title'])}  {style.dim(entry['source'])}", file=out)
    for case in entry["cases"]:
        _print_case(case, style, out)


def _print_case(case, style, out):
    print(f"\n  {case['title']}: {measure_of(case)}", file=out)
    published = (case["published"] or {}).get("values", {})
    extra = ["published"] if published else ["per CPU second"] if case.get("rate") else []
    head = ["", "memory" if case["unit"] == "B" else CLOCKS[clock_of(case)], "", CLOCKS[other_clock(case)], "ratio", *extra, "check"]
    body = [head, *_measured_rows(case, published), *_published_rows(case, published), *_reference_rows(case, published)]
    for line in lay_out(body, "<>>>>" + ">" * len(extra) + "<"):
        line = line.replace("PASS", style.good("PASS"))
        print("    " + (style.bad(line) if "FAIL" in line else line), file=out)


def quicker_than_limit(case):
    """The contender that takes less time than the case's best limit, and that limit, or None. Nothing can be faster than a limit,
    so the difference is noise."""
    measured = [r for r in case["rows"] if r["status"] == "ok" and r["stats"] and r["stats"]["median"]]
    limits = [r for r in measured if r["kind"] == "limit"]
    best = min(measured, key=lambda r: r["stats"]["median"], default=None)
    if not limits or best["kind"] in ("limit", "c"):
        return None
    return best["contender"], min(limits, key=lambda r: r["stats"]["median"])["contender"]


def noise(case, row):
    """A remark beside a limit, or ""."""
    found = quicker_than_limit(case)
    return f"noise: {plain_name(found[0])} took less" if found and row["contender"] == found[1] else ""


def _measured_rows(case, published):
    for r in (r for r in case["rows"] if r["status"] != "skipped"):
        stats = r["stats"] or {}
        cells = [r["title"], number(stats.get("median")), spread(stats), number(stats.get(other_clock(case))), ratio(r["ratio"])]
        if published:
            cells.append(ratio(published.get(r["contender"], {}).get("to_base")))
        elif case.get("rate"):
            cells.append(number(UNITS[case["unit"]] / stats["median"]) if stats.get("median") else "–")
        yield cells + [f"{_verdict(r)} {noise(case, r)}".strip()]


def _published_rows(case, published):
    """Contenders that this lab does not have: only their ratios are known."""
    have = {r["contender"] for r in case["rows"] if r["status"] != "skipped"}
    for name, p in published.items():
        if name not in have:
            yield [f"{plain_name(name)} (published)", "", "", "", "", ratio(p["to_base"]), ""]


def _reference_rows(case, published):
    """Figures of another machine, scaled to this machine. A remark beside each says so."""
    reference = case["reference"]
    for name, value in (reference or {"values": {}})["values"].items():
        how = f"{number(value['there'])} elsewhere"
        how += f" × {reference['scale']:.2f}" if reference["pair_here"] else ""
        shown = [name, f"{number(value['here'])}*", "", "", ratio(to_base(case, value["here"]))]
        yield shown + ([""] if published else []) + [how]


def to_base(case, value):
    """A scaled figure's ratio: both the figure and the scale are from best runs."""
    base = next((r["stats"]["min"] for r in case["rows"] if r["contender"] == case["baseline"] and r["stats"]), None)
    return value / base if base else None


def clock_of(case):
    """The clock of the case's figures. Older result files do not have it: they contain CPU time."""
    return case.get("clock", "cpu")


def measure_of(case):
    """The unit of a case's figures, in words."""
    return f"{case['unit']}{' of wall time' if clock_of(case) == 'wall' else ''} per {case['per']}"


def other_clock(case):
    return "wall" if clock_of(case) == "cpu" else "cpu"


def _verdict(row):
    if row["status"] == "ok":
        return "PASS"
    if row["status"] in ("wrong", "broken"):
        return f"FAIL: {row['error']}"
    return f"{row['status']}: {row['error']}"
