# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tables of a page about costs (docs/reference/costs.md), written from results.

Between the lines `<!-- costs: NAME -->` and `<!-- costs: end -->` of the page stands what the lab writes: for `machine` a sentence
about the run, for any other name a table of the rows of costs.toml that name it. The rest of the page is written by hand.
"""
import re

from .table import number

PLACE = re.compile(r"(<!-- costs: (?!end)(\w+) -->\n).*?(<!-- costs: end -->\n)", re.DOTALL)
SHOWN = {"B": "bytes"}


def chosen(rows, policies):
    """The cases and policies to measure."""
    return sorted({row["case"] for row in rows}), policies or sorted({row["weft"].partition("/")[2] for row in rows})


def write(path, rows, results):
    """Raises OSError, or ValueError if the page or a row has a mistake."""
    measured = {f"{e['id']}/{c['id']}": c for e in results["experiments"] for c in e["cases"]}
    text = path.read_text()
    names = [found[1] for found in PLACE.findall(text)]
    for row in rows:
        if row["table"] not in names:
            raise ValueError(f"{path} has no place '<!-- costs: {row['table']} -->'")

    def fill(place):
        name = place[2]
        lines = [_machine(results)] if name == "machine" else _table([row for row in rows if row["table"] == name], measured, results["size"])
        return place[1] + "\n" + "\n".join(lines) + "\n\n" + place[3]

    path.write_text(PLACE.sub(fill, text))


def _machine(results):
    machine = results["machine"]
    commit = machine["commit"][:12] + (" with changes" if machine["dirty"] else "") if machine["commit"] else "no commit"
    return (f"Medians of CPU time on {machine['cpu']}, {machine['cpus']} CPUs, {machine['system']}, Linux {machine['kernel']},\n"
            f"{machine['compiler']}; {results['when'][:10]}, {commit}.")


def _table(rows, measured, size):
    yield "| operation | Weft | for comparison | command |"
    yield "|---|---|---|---|"
    for row in rows:
        case = measured.get(row["case"])
        found = {r["contender"]: r for r in case["rows"] if r["status"] == "ok"} if case else {}
        weft = found.get(row["weft"])
        unit = SHOWN.get(case["unit"], case["unit"]) if case else ""
        beside = "; ".join(f"{found[name]['title']} {number(found[name]['stats']['median'])}" for name in row["beside"] if name in found)
        yield (f"| {row['text']} | {number(weft['stats']['median']) + ' ' + unit if weft else 'not measured'} | {beside} | "
               f"`./weft lab --{size} --only {row['case']}` |")
