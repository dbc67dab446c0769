# SPDX-License-Identifier: MIT OR Apache-2.0
"""One page that needs nothing else: figures, plots, tables, and the raw data to take away."""
import base64
import json
from pathlib import Path

import jinja2

from . import plot, table

HERE = Path(__file__).resolve().parent.parent / "report"


def write(results, path):
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(HERE), autoescape=True, trim_blocks=True,
                                     lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    environment.filters.update(number=table.number, ratio=table.ratio, spread=table.spread, spaced=_spaced)
    raw = json.dumps(results, ensure_ascii=False, indent=1).encode()
    page = environment.get_template("report.html").render(
        r=results,
        style=(HERE / "style.css").read_text(),
        plots={e["id"]: plot.experiment(e) for e in results["experiments"]},
        glance=plot.glance(results),
        raw="data:application/json;base64," + base64.b64encode(raw).decode(),
        samples=_samples,
    )
    Path(path).write_text(page)


def _spaced(value):
    return f"{value:,}".replace(",", " ")


def _samples(case):
    """Every single run of a case, as text."""
    lines = []
    for r in case["rows"]:
        for s in r["samples"]:
            lines.append(f"{r['contender']:24} " + "  ".join(f"{k}={v:g}" if k != "ops" else f"ops={v}"
                                                             for k, v in s.items()))
    return "\n".join(lines)
