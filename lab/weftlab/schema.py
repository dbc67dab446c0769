# SPDX-License-Identifier: MIT OR Apache-2.0
"""The structure of results.json: results.schema.json describes it, jsonschema checks it. The version changes when old files do
not fit."""
import json
import pathlib

try:
    import jsonschema
except ImportError:  # without jsonschema only the version of a file is checked
    jsonschema = None

SCHEMA = json.loads(pathlib.Path(__file__).with_name("results.schema.json").read_text())
VERSION = SCHEMA["properties"]["schema"]["const"]


def problems(results):
    """The errors of a result file, as lines; empty if there are none."""
    if not isinstance(results, dict) or results.get("schema") != VERSION:
        return [f"not a result file of this lab ({VERSION})"]
    errors = jsonschema.Draft202012Validator(SCHEMA).iter_errors(results) if jsonschema else ()
    found = [f"results{_place(error)}: {error.message}" for error in errors]
    for row in rows(results) if not found and results["complete"] else []:
        if row["status"] == "ok" and not row["stats"]:
            found.append(f"{row['contender']}: ok, but without figures")
    return found


def rows(results):
    return [row for e in results["experiments"] for case in e["cases"] for row in case["rows"]]


def _place(error):
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
