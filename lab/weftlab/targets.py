# SPDX-License-Identifier: MIT OR Apache-2.0
"""The targets of Weft's maintainers, compared with the measurements: ratios to a limit or a peer of the same run, never
nanoseconds.

Ratios are of the best runs, which other work on the machine disturbs least. The second best runs show how far they can be
trusted: a ratio lies between best / second best and second best / best. A bar above this interval is met, a bar below it is
missed, and a bar within it is undecided on this machine. More rounds bring the second best nearer to the best.

A few runs may agree by chance on a figure that the best of many runs would be well below. The possible further decrease is
estimated from the spread of the runs of a case, over all policies, and from their number. Cases near a bar get more rounds before
a verdict.

Wall-clock figures (how late an event is, how long it takes) increase with the load of other programs. Such a figure can show that
a bar is met; it shows that the bar is missed only if the machine was otherwise idle in at least one of the runs.
"""

import statistics

from . import machine
from .findings import command

# A target that names no policy is about the policies that run any code.
EVERY_CODE = ("fixed", "overcommit", "commit")
MARGIN = 0.01  # nothing nearer to a bar is decided, however well the runs agree
ALONE = 0.25  # the share by which a single run may be above the best of many runs
NEAR = 1.25  # if a figure is further from its bar than this factor, few rounds are enough
ENOUGH = 12  # number of runs after which their result is trusted; memory hardly varies, so one run of it is enough
BY_THE_CLOCK = ("wall", "late")  # figures that other programs increase


def evaluate(table, entries, size, page):
    """One entry per target, with the ratio (the worst policy's) and a verdict. `page`: bytes, the limit of memory."""
    cases = {f"{e['id']}/{c['id']}": _weighed(c) if c["unit"] == "B" else c for e in entries for c in e["cases"]}
    return [_one(t, cases, size, page) for t in table]


def _weighed(case):
    return {**case, "rows": [{**r, "stats": r["stats"] and {**r["stats"], "n": ENOUGH}} for r in case["rows"]]}


def unsure(table, entries, size, page):
    """The cases whose verdicts more rounds might decide or change."""
    ids = set()
    for target, entry in zip(table, evaluate(table, entries, size, page)):
        if entry["verdict"] == "undecided" or _is_near(entry):
            ids.update(_values(target), filter(None, [target.get("otherwise"), target.get("divisor")]))
    return ids - _known(entries)


def _is_near(entry):
    return entry["measured"] is not None and entry["must"] / NEAR < entry["measured"] < entry["must"] * NEAR


def _known(entries):
    """Cases that had enough rounds, and cases in bytes, which hardly vary."""
    return {f"{e['id']}/{c['id']}" for e in entries for c in e["cases"]
            if c["unit"] == "B" or all(len(r["samples"]) >= ENOUGH for r in c["rows"] if r["samples"])}


def _values(target):
    return target["value"] if isinstance(target["value"], list) else [target["value"]]


def _one(target, cases, size, page):
    ratio, note = _measured(target, cases, size, page)
    low, best, high = ratio or (None, None, None)
    return {"title": target["title"], "against": target["against"], "must": target["must"], "aim": target.get("aim"),
            "measured": best, "low": low, "high": high, "verdict": _verdict(low, high, target["must"], size), "note": note,
            "command": command(_needed(target), size)}


def _needed(target):
    """The names to pass to --only: whole experiments if several cases count."""
    if len(_values(target)) > 1:
        return [_values(target)[0].split("/")[0]]
    return [*_values(target), *filter(None, [target.get("divisor")])]


def _verdict(low, high, must, size):
    if low is None:
        return "not measured"
    if size == "test":
        return "not judged"
    return "met" if high * (1 + MARGIN) <= must else "missed" if low * (1 - MARGIN) > must else "undecided"


def _measured(target, cases, size, page):
    """The ratio as (low, best, high), or None; a note."""
    if target.get("exact") and size != "full":
        return None, "needs --full"
    if len(_values(target)) > 1:
        return _best_over_cases(target, [cases[v] for v in target["value"] if v in cases])
    cases = _by_figure(cases, target)
    case, note = cases.get(target["value"]), ""
    if not _weft(case, target):
        case = cases.get(target.get("otherwise"))
        note = f"at {case['params']['n']:,}".replace(",", " ") if case else ""
    rows = _weft(case, target)
    fall = max((_fall(row["stats"]) for row in rows), default=0)
    ratios = [(ratio, row) for row in rows if (ratio := _ratio(row, fall, target, cases.get(target.get("divisor"), case), page))]
    if not ratios:
        return None, ""
    (low, best, high), row = max(ratios, key=lambda pair: pair[0][1])
    figure = target.get("figure", case.get("figure") or case.get("clock"))
    disturbed = figure in BY_THE_CLOCK and not _had_the_machine(row)
    beside = "by the clock, beside other programs" if disturbed else ""
    return (0.0 if disturbed else low, best, high), ", ".join(filter(None, [row["policy"], note, _size(target, case), beside]))


def _had_the_machine(row):
    """Returns whether the machine was otherwise idle in at least one run."""
    return any(s.get("others", 0) <= machine.QUIET for s in row["samples"])


def _by_figure(cases, target):
    """The cases with the statistics of the figure that the target is about: wall time per operation, or a program's own
    figure."""
    figure = target.get("figure")
    if not figure:
        return cases
    return {name: {**c, "rows": [{**r, "stats": _best_two(r["samples"], figure)} for r in c["rows"]]} for name, c in cases.items()}


def _best_two(samples, figure):
    values = sorted(s[figure] / (max(1, s["ops"]) if figure == "wall" else 1) for s in samples if figure in s)
    if not values:
        return None
    return {"min": values[0], "second": values[min(1, len(values) - 1)], "median": statistics.median(values), "n": len(values)}


def _ratio(row, fall, target, divisor, page):
    """The ratio to a limit, to the best contender in best_of, or else to the same contender in the case that divides."""
    if "limit" in target:
        limit = page if target["limit"] == "page" else target["limit"]
        return _between(row["stats"], fall, {"min": limit, "second": limit, "median": limit, "n": ENOUGH})
    bases = _stats(divisor, target.get("best_of", [row["contender"]]))
    return _between(row["stats"], fall, _with_more(min(bases, key=_least), target)) if bases else None


def _with_more(base, target):
    return {**base, **{name: base[name] + target.get("more", 0) for name in ("min", "second", "median")}}


def _between(own, fall, base):
    return own["min"] / base["second"] / (1 + fall), own["min"] / base["min"], own["second"] / base["min"] * (1 + _fall(base))


def _fall(stats):
    """The share by which the best may fall in more runs."""
    if stats["n"] == 1:
        return ALONE
    return (stats["median"] / stats["min"] - 1) / (stats["n"] - 1) if stats["min"] > 0 else 0


def _least(stats):
    return stats["min"]


def _best_over_cases(target, cases):
    """The ratio of the lowest figure over the cases to the lowest figure over the cases of the contenders in best_of."""
    own = [(r["stats"], r["policy"], c["id"]) for c in cases for r in _weft(c, target)]
    bases = [b for c in cases for b in _stats(c, target["best_of"])]
    if not own or not bases:
        return None, ""
    stats, policy, where = min(own, key=lambda o: _least(o[0]))
    return _between(stats, _fall(stats), min(bases, key=_least)), f"{policy}, at {where}"


def _stats(case, names):
    return [r["stats"] for r in case["rows"] if r["contender"] in names and r["stats"] and r["stats"]["min"]]


def _size(target, case):
    n = case["params"].get("n")
    return f"at n = {n}" if target.get("official", n) != n else ""


def _weft(case, target):
    """Weft's own rows of a case (not its variants, unless they are asked for): one for each requested policy, or a single row if
    the contender has no policies."""
    if not case:
        return []
    wanted = [target["policy"]] if "policy" in target else target.get("policies", EVERY_CODE)
    forms = target.get("contender", "weft")
    rows = [r for r in case["rows"] if r["contender"].split("/")[0] in ([forms] if isinstance(forms, str) else forms)
            and r["stats"] and r["status"] == "ok" and (not r["policy"] or r["policy"] in wanted)]
    best = {}
    for row in sorted(rows, key=lambda r: _least(r["stats"])):
        best.setdefault(row["policy"], row)
    return list(best.values())
