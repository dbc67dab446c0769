# SPDX-License-Identifier: MIT OR Apache-2.0
"""What was promised, beside what was measured."""

# A target that names no policy is about those that any code runs on.
EVERY_CODE = ("fixed", "overcommit", "commit")


def evaluate(table, results, text_bytes):
    """One entry per target, with the measured figure (the worst policy's) and a verdict."""
    cases = {f"{e['id']}/{c['id']}": c for e in results["experiments"] for c in e["cases"]}
    return [_one(t, cases, results["size"], text_bytes) for t in table]


def _one(target, cases, size, text_bytes):
    value, note = _measured(target, cases, size, text_bytes)
    aim = target.get("aim")
    if value is None:
        verdict = "not measured"
    elif size == "test":
        verdict = "not judged"
    elif aim is not None and value <= aim:
        verdict = "aim reached"
    elif value <= target["must"]:
        verdict = "met"
    else:
        verdict = "missed"
    return {"title": target["title"], "unit": target["unit"], "must": target["must"], "aim": aim, "measured": value,
            "verdict": verdict, "note": note}


def _measured(target, cases, size, text_bytes):
    if target["value"] == "text":
        return (text_bytes / 1024 if text_bytes else None), ""
    if isinstance(target["value"], list):
        return _best_ratio(target, [cases[v] for v in target["value"] if v in cases])
    case, note = cases.get(target["value"]), ""
    if not _weft(case, target):
        case = cases.get(target.get("otherwise"))
        note = f"at {case['params']['n']:,}".replace(",", " ") if case else ""
    rows = _weft(case, target)
    if not rows:
        return None, ""
    if target.get("exact") and size != "full":
        return None, "needs --full"
    if target["unit"] == "×":
        return _worst_ratio(target, rows, case, cases.get(target.get("divisor"), case))
    worst = max(rows, key=lambda r: r["stats"]["median"])
    value = worst["stats"]["median"]
    if target["unit"] == "s" and case["unit"] != "s":
        value = value * target["ops"] * 1e-9
        if size != "full":
            note = "projected"
    return value, ", ".join(filter(None, [worst["policy"], note]))


def _worst_ratio(target, rows, case, divisor_case):
    """To the best of those named by best_of, else to the same contender, in the case that divides."""
    ratios = []
    for row in rows:
        names = target.get("best_of", [row["contender"]])
        bases = [r["stats"]["median"] for r in divisor_case["rows"] if r["contender"] in names and r["stats"]]
        if bases and min(bases):
            ratios.append((row["stats"]["median"] / min(bases), row))
    if not ratios:
        return None, ""
    value, worst = max(ratios, key=lambda pair: pair[0])
    notes = [worst["policy"], _also(target, divisor_case, worst["stats"]["median"]), _size(target, case)]
    return value, ", ".join(filter(None, notes))


def _best_ratio(target, cases):
    """Each at its best: the least over the cases, to the least over the cases of those named by best_of."""
    def medians(case, names):
        return [r["stats"]["median"] for r in case["rows"] if r["contender"] in names and r["stats"]]

    values = [(r["stats"]["median"], r["policy"], c["id"]) for c in cases for r in _weft(c, target)]
    bases = [m for c in cases for m in medians(c, target["best_of"])]
    if not values or not bases:
        return None, ""
    value, policy, where = min(values)
    return value / min(bases), ", ".join([policy, f"at {where}"])


def _size(target, case):
    n = case["params"].get("n")
    return f"at n = {n}" if target.get("official", n) != n else ""


def _also(target, case, value):
    """The same figure against another contender, for information."""
    other = next((r for r in case["rows"] if r["contender"] == target.get("also") and r["stats"]), None)
    return f"{value / other['stats']['median']:.2f} × {other['title']}" if other else ""


def _weft(case, target):
    """Weft's own rows of a case (not its variants, unless they are asked for), for the policies asked for: a row each."""
    if not case:
        return []
    wanted = [target["policy"]] if "policy" in target else target.get("policies", EVERY_CODE)
    forms = target.get("contender", "weft")
    rows = [r for r in case["rows"] if r["contender"].split("/")[0] in ([forms] if isinstance(forms, str) else forms)
            and r["stats"] and r["status"] == "ok" and r["policy"] in wanted]
    best = {}
    for row in sorted(rows, key=lambda r: r["stats"]["median"]):
        best.setdefault(row["policy"], row)
    return list(best.values())
