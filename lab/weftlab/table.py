# SPDX-License-Identifier: MIT OR Apache-2.0
"""Figures as text: for the terminal."""
import os
import sys

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
    """How a contender that was not measured is called: weft/mmu is what others call mmu."""
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
    """Columns of equal width; align is one of < and > per column."""
    widths = [max(len(r[i]) for r in rows) for i in range(len(align))]
    return ["  ".join(f"{cell:{a}{w}}" for cell, a, w in zip(r, align, widths)).rstrip() for r in rows]


def print_experiment(entry, out=sys.stdout):
    style = Style(out)
    print(f"\n{style.bold(entry['id'] + '  ' + entry['title'])}  {style.dim(entry['source'])}", file=out)
    for case in entry["cases"]:
        _print_case(case, style, out)


def _print_case(case, style, out):
    rows = [r for r in case["rows"] if r["status"] != "skipped"]
    print(f"\n  {case['title']}: {case['unit']} per {case['per']}", file=out)
    published = (case["published"] or {}).get("values", {})
    head = ["", "CPU", "", "wall", "ratio"] + (["published"] if published else []) + ["check"]
    body = [head]
    for r in rows:
        stats = r["stats"] or {}
        cells = [r["title"], number(stats.get("median")), spread(stats), number(stats.get("wall")), ratio(r["ratio"])]
        if published:
            cells.append(ratio(published.get(r["contender"], {}).get("ratio")))
        body.append(cells + [_verdict(r)])
    for name, p in published.items():
        if all(r["contender"] != name for r in rows):
            body.append([f"{plain_name(name)} (published)", number(p["scaled"]), "", "", "", ratio(p["ratio"]), ""])
    for name, value in (case["reference"] or {}).items():
        body.append([f"{name} (earlier)", number(value), "", "", ""] + ([""] if published else []) + [""])
    for line in lay_out(body, "<>>>>" + (">" if published else "") + "<"):
        line = line.replace("PASS", style.good("PASS"))
        print("    " + (style.bad(line) if "FAIL" in line else line), file=out)


def _verdict(row):
    if row["status"] == "ok":
        return "PASS"
    if row["status"] in ("wrong", "broken"):
        return f"FAIL: {row['error']}"
    return f"{row['status']}: {row['error']}"


def print_summary(results, out=sys.stdout):
    style = Style(out)
    if results["targets"]:
        print(f"\n{style.bold('Targets')}  {style.dim('(the worst of the policies measured; of fixed, overcommit, commit unless one is named)')}\n", file=out)
        body = [["", "must", "aim", "measured", "", "verdict"]]
        for t in results["targets"]:
            body.append([t["title"], f"≤ {number(t['must'])} {t['unit']}",
                         f"{number(t['aim'])}" if t["aim"] is not None else "", number(t["measured"]),
                         t["unit"] if t["measured"] is not None else "",
                         t["verdict"] + (f" ({t['note']})" if t["note"] else "")])
        for line in lay_out(body, "<>>><<"):
            print("    " + (style.bad(line) if "missed" in line else line), file=out)
    for line in results["skipped"]:
        print(f"\n  skipped: {line}" if line == results["skipped"][0] else f"  skipped: {line}", file=out)
    checks = results["checks"]
    verdict = f"{checks['passed']} answers right, {checks['failed']} wrong"
    print(f"\n{style.bad('FAIL') if checks['failed'] else style.good('PASS')}  {verdict}"
          f"  ({results['size']}, {results['seconds']:.0f} s)", file=out)
    if not results["complete"]:
        print("  interrupted: what was measured until then is kept", file=out)
