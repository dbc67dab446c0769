# SPDX-License-Identifier: MIT OR Apache-2.0
"""The findings that are printed first: a sentence for each, with ratios of the best runs within this run, because other work on
the machine disturbs the best runs least."""
from . import machine

SHORT = {"limit-jmp": "hand-written switch", "limit-callret": "hand-written, call/ret", "cxx20": "C++20",
         "boost": "Boost.Context", "go": "Go", "c": "plain C", "longjmp": "setjmp and longjmp", "ring": "C++20, in turns",
         "loop": "C++20, round robin", "fiber": "Boost.Fiber", "asio": "Boost.Asio", "raw-ring": "hand-written, io_uring",
         "bare/overcommit": "a bare resume and yield"}


def of(table, entries, size):
    """The findings whose figures this run has, in groups: [(group, [finding])]. None at test size, which measures nothing."""
    cases = {f"{e['id']}/{c['id']}": c for e in entries for c in e["cases"]}
    groups = {}
    for entry in table if size != "test" else []:
        found = _one(entry, cases, size)
        if found:
            groups.setdefault(entry["group"], []).append(found)
    return list(groups.items())


def cases(table):
    """The ids of the cases on which findings rest."""
    return {entry[key] for entry in table for key in ("case", "over") if key in entry}


def command(wanted, size):
    """The command that measures these cases, or experiments, again."""
    return f"./weft lab {'--full ' if size == 'full' else ''}--only {','.join(wanted)}"


def _one(entry, cases, size):
    case = cases.get(entry["case"])
    over = cases.get(entry.get("over", entry["case"]))
    if not case or not over:
        return None

    def ratios(names, words):
        found = ((words(n), _ratio(case, over, n, entry.get("base"))) for n in names)
        return [{"name": name, "ratio": r, "elsewhere": elsewhere} for name, (r, elsewhere) in found if r]

    words = entry.get("words", {})
    own = ratios(entry["show"], lambda n: words.get(n, n.split("/")[-1]))
    if not own:
        return None
    beside = ratios(entry.get("beside", []), lambda n: SHORT.get(n, n))
    wanted = dict.fromkeys([entry["case"], entry.get("over", entry["case"])])
    text = entry["text"] + (", wall time" if case.get("clock") == "wall" else "")
    return {"text": text, "than": entry["than"], "own": own, "beside": beside, "unit": case["unit"],
            "where": entry["case"], "command": command(wanted, size)}


def _ratio(case, over, name, base):
    """The ratio, and whether it rests on a figure of another machine."""
    value, elsewhere = _value(case, name)
    divisor, base_elsewhere = _value(over, base or name)
    return (value / divisor if value and divisor else None), elsewhere or base_elsewhere


def _value(case, name):
    live = (r for r in case["rows"] if name in r.get("instead_of", ()) and r["status"] == "ok" and r["stats"])
    row = next((r for r in case["rows"] if r["contender"] == name), None) or next(live, None)
    if row:
        return (row["stats"]["min"], False) if row["stats"] and row["status"] == "ok" else (None, False)
    value = (case["reference"] or {"values": {}})["values"].get(name)
    return (value["here"], True) if value else (None, False)


def beside(results):
    """A sentence on other load of the machine during the run; "" if there was little."""
    others = results["load"].get("others") or 0
    if others <= machine.QUIET:
        return ""
    return (f"Other programs kept {others:.1f} of {results['machine']['cpus']} CPUs busy meanwhile: how late something is, which the clock "
            "tells, says little of Weft here.")


def footnote(results):
    """A sentence on how figures of another machine were scaled; "" if there are none."""
    reference = next((c["reference"] for e in results["experiments"] for c in e["cases"]
                      if c["reference"] and c["reference"]["pair_here"]), None)
    if not reference:
        return ""
    return (f"measured on another machine, times {reference['scale']:.2f}: a resume and a yield by the hand-written switch took "
            f"{reference['pair_there']:g} ns there, {reference['pair_here']:.2f} ns here. A rough guide: plain calls differ less")
