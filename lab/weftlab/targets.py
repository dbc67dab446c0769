# SPDX-License-Identifier: MIT OR Apache-2.0
"""What was promised, beside what was measured."""


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
    case, note = cases.get(target["value"]), ""
    if not _weft(case, target):
        case = cases.get(target.get("otherwise"))
        note = f"at {case['params']['n']:,}".replace(",", " ") if case else ""
    rows = _weft(case, target)
    if not rows:
        return None, ""
    if target.get("exact") and size != "full":
        return None, "needs --full"
    worst = max(rows, key=lambda r: r["stats"]["median"])
    value = worst["stats"]["median"]
    if "best_of" in target:
        bases = [r["stats"]["median"] for r in case["rows"] if r["contender"] in target["best_of"] and r["stats"]]
        if not bases or not min(bases):
            return None, ""
        return value / min(bases), ", ".join(filter(None, [worst["policy"], _also(target, case, value)]))
    if target["unit"] == "s" and case["unit"] != "s":
        value = value * target["ops"] * 1e-9
        if size != "full":
            note = "projected"
    return value, ", ".join(filter(None, [worst["policy"], note]))


def _also(target, case, value):
    """The same figure against another contender, for information."""
    other = next((r for r in case["rows"] if r["contender"] == target.get("also") and r["stats"]), None)
    return f"{value / other['stats']['median']:.2f} × {other['title']}" if other else ""


def _weft(case, target):
    """Weft's own rows of a case (not its variants), for the policy asked for."""
    if not case:
        return []
    wanted = target.get("policy")
    return [r for r in case["rows"] if r["contender"].startswith("weft/") and r["stats"] and r["status"] == "ok"
            and (not wanted or r["policy"] == wanted)]
