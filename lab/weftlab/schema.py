# SPDX-License-Identifier: MIT OR Apache-2.0
"""The shape of results.json, and a check that a file has it. The version changes when old files no longer fit."""
VERSION = "weft-lab/2"

NUMBER = (int, float)
TEXT = str


class Optional:
    def __init__(self, shape):
        self.shape = shape


class Each:
    """A list (or, given a dict, a dict) whose every value has the shape."""

    def __init__(self, shape):
        self.shape = shape


STATS = {"n": int, "median": NUMBER, "q1": NUMBER, "q3": NUMBER, "min": NUMBER, "second": NUMBER, "mad": NUMBER,
         "wall": Optional(NUMBER)}
SAMPLE = {"cpu": NUMBER, "wall": NUMBER, "ops": int}
ROW = {"contender": TEXT, "title": TEXT, "kind": TEXT, "policy": Optional(TEXT), "status": TEXT, "error": TEXT,
       "result": Optional(TEXT), "samples": Each(SAMPLE), "stats": Optional(STATS), "ratio": Optional(NUMBER)}
PUBLISHED = {"title": TEXT, "unit": TEXT, "baseline": TEXT,
             "values": Each({"value": NUMBER, "ratio": NUMBER, "scaled": Optional(NUMBER), "to_base": Optional(NUMBER)})}
REFERENCE = {"pair_there": Optional(NUMBER), "pair_here": Optional(NUMBER), "scale": NUMBER,
             "values": Each({"there": NUMBER, "here": NUMBER})}
CASE = {"id": TEXT, "title": TEXT, "about": TEXT, "unit": TEXT, "per": TEXT, "params": dict, "x": Optional(NUMBER),
        "expect": Optional(TEXT), "baseline": Optional(TEXT), "published": Optional(PUBLISHED),
        "reference": Optional(REFERENCE), "rows": Each(ROW)}
EXPERIMENT = {"id": TEXT, "title": TEXT, "source": TEXT, "about": TEXT, "plot": TEXT, "x_title": TEXT,
              "cases": Each(CASE)}
TARGET = {"title": TEXT, "against": TEXT, "must": NUMBER, "aim": Optional(NUMBER), "measured": Optional(NUMBER),
          "low": Optional(NUMBER), "high": Optional(NUMBER), "verdict": TEXT, "note": TEXT, "command": TEXT}
RESULTS = {
    "schema": TEXT, "when": TEXT, "seconds": NUMBER, "size": TEXT, "policies": Each(TEXT), "complete": bool,
    "machine": {"cpu": TEXT, "cpus": int, "memory": int, "page": int, "kernel": TEXT, "system": TEXT, "hypervisor": bool,
                "compiler": TEXT, "cflags": TEXT, "cxx": TEXT, "cxxflags": TEXT, "rust": TEXT, "go": TEXT,
                "commit": TEXT, "dirty": bool, "environment": Each(TEXT)},
    "load": {"before": Each(NUMBER), "after": Each(NUMBER)},
    "checks": {"passed": int, "failed": int},
    "skipped": Each(TEXT),
    "targets": Each(TARGET),
    "experiments": Each(EXPERIMENT),
}
STATUSES = ("ok", "wrong", "broken", "did not run", "skipped")


def problems(results):
    """What is wrong with it, as lines; empty if nothing is."""
    if not isinstance(results, dict) or results.get("schema") != VERSION:
        return [f"not a result file of this lab ({VERSION})"]
    found = list(_differences("results", results, RESULTS))
    for row in rows(results) if not found else []:
        if row["status"] not in STATUSES:
            found.append(f"{row['contender']}: unknown status {row['status']}")
        if row["status"] == "ok" and not row["stats"] and results["complete"]:
            found.append(f"{row['contender']}: ok, but without figures")
    return found


def rows(results):
    return [row for e in results["experiments"] for case in e["cases"] for row in case["rows"]]


def _differences(where, value, shape):
    if isinstance(shape, Optional):
        if value is not None:
            yield from _differences(where, value, shape.shape)
    elif isinstance(shape, Each):
        if not isinstance(value, (list, dict)):
            yield f"{where}: not a list"
            return
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from _differences(f"{where}[{key}]", item, shape.shape)
    elif isinstance(shape, dict):
        if not isinstance(value, dict):
            yield f"{where}: not an object"
            return
        for key, inner in shape.items():
            if key not in value:
                yield f"{where}: {key} is missing"
            else:
                yield from _differences(f"{where}.{key}", value[key], inner)
    elif not isinstance(value, shape) or (isinstance(value, bool) and shape is not bool):
        yield f"{where}: {value!r} is of the wrong type"
