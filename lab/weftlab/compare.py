# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares two result files. A row has changed if its median moved by more than the variation of the runs."""
import sys

from .table import Style, lay_out, number

SHOWN = 40  # number of rows shown: the rows with the largest changes
LEAST = 0.03  # smaller changes are never reported, however quiet the machine is


def compare(old, new):
    """Entries {row, unit, old, new, ratio, noise, verdict}. Rows that exist in only one file are left out."""
    before = dict(_rows(old))
    entries = []
    for key, (case, row) in _rows(new):
        if key not in before:
            continue
        old_case, old_row = before[key]
        entries.append(_entry(key, old_case, old_row, case, row))
    return entries


def _rows(results):
    for e in results["experiments"]:
        for case in e["cases"]:
            for row in case["rows"]:
                if row["stats"]:
                    yield (e["id"], case["id"], row["contender"]), (case, row)


def _entry(key, old_case, old_row, case, row):
    a, b = old_row["stats"], row["stats"]
    noise = max(LEAST, 3 * (_relative_mad(a) + _relative_mad(b)))
    change = b["median"] / a["median"] if a["median"] else 1.0
    if old_case["params"] != case["params"]:
        verdict = "other size"
    elif change > 1 + noise:
        verdict = "slower" if case["unit"] != "B" else "larger"
    elif change < 1 / (1 + noise):
        verdict = "faster" if case["unit"] != "B" else "smaller"
    else:
        verdict = "same"
    return {"key": key, "title": f"{key[0]} {case['title']}", "contender": row["title"], "unit": case["unit"],
            "old": a["median"], "new": b["median"], "ratio": change, "noise": noise, "verdict": verdict}


def _relative_mad(stats):
    return 1.4826 * stats["mad"] / stats["median"] if stats["median"] else 0.0


def _size_of_change(entry):
    return max(entry["ratio"], 1 / entry["ratio"]) if entry["ratio"] else 0


def print_comparison(old, new, entries, out=sys.stdout):
    style = Style(out)
    print(f"\n{style.bold('Comparison')}  new / old; a change is more than three spreads, and at least {LEAST:.0%}")
    for name, r in (("old", old), ("new", new)):
        m = r["machine"]
        print(f"  {name}: {r['when']}  {m['commit'][:12]}{'+changes' if m['dirty'] else ''}  {r['size']}  {m['cpu']}")
    if old["machine"]["cpu"] != new["machine"]["cpu"] or old["machine"]["compiler"] != new["machine"]["compiler"]:
        print("  machine or compiler differ: ratios between rows of one run carry over, these do not")
    changed = sorted((e for e in entries if e["verdict"] not in ("same", "other size")), key=_size_of_change, reverse=True)
    body = [["", "", "old", "new", "", "ratio", "noise", ""]]
    for e in changed[:SHOWN]:
        body.append([e["title"], e["contender"], number(e["old"]), number(e["new"]), e["unit"], f"{e['ratio']:.2f}",
                     f"±{e['noise']:.0%}", e["verdict"]])
    print(file=out)
    for line in lay_out(body, "<<>><>><") if changed else []:
        worse = line.endswith(("slower", "larger"))
        print("  " + (style.bad(line) if worse else style.good(line)), file=out)
    if len(changed) > SHOWN:
        print(f"  and {len(changed) - SHOWN} more that changed less", file=out)
    counts = {v: sum(e["verdict"] == v for e in entries) for v in
              ("faster", "smaller", "same", "slower", "larger", "other size")}
    print("\n  " + ", ".join(f"{n} {v}" for v, n in counts.items() if n))
