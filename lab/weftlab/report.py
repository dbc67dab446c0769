# SPDX-License-Identifier: MIT OR Apache-2.0
"""Self-contained pages: one with all figures, plots, tables and the raw data for download; and a page for choosing a policy."""
import base64
import json
import multiprocessing
import os
import signal
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import jinja2

from . import choice, describe, findings, load_plot, load_report, plot, table

HERE = Path(__file__).resolve().parent.parent / "report"


def write(results, path):
    """Writes report.html at `path`, and policies.html beside it."""
    path = Path(path)
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(HERE), autoescape=True, trim_blocks=True,
                                     lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    environment.filters.update(number=table.number, ratio=table.ratio, spread=table.spread, spaced=_spaced,
                               plain_name=table.plain_name, short=table.short_ratio)
    style = (HERE / "style.css").read_text()
    raw = json.dumps(results, ensure_ascii=False, indent=1).encode()
    wanted = describe.findings(HERE.parent / "descriptions")
    page = environment.get_template("report.html").render(
        r=results,
        findings=findings.of(wanted, results["experiments"], results["size"]),
        footnote=findings.footnote(results),
        counts=_counts(results["targets"]),
        style=style,
        plots=_plots(results["experiments"]),
        glance=plot.glance(results),
        raw="data:application/json;base64," + base64.b64encode(raw).decode(),
        load=load_report,
        samples=_samples,
        to_base=table.to_base,
        measure_of=table.measure_of,
        other_clock=table.other_clock,
        noise=table.noise,
        missing=table.missing(results["skipped"]),
    )
    path.write_text(page)
    page = environment.get_template("policies.html").render(
        r=results, style=style, picture=choice.picture(results), rows=choice.rows(results), headings=choice.headings(),
        skipped=[line for line in results["skipped"] if line.startswith("policy ")])
    (path.parent / "policies.html").write_text(page)


def _plots(experiments):
    """Plots on all processors, because plots take most of a report's time. Only this process handles Ctrl-C."""
    with ProcessPoolExecutor(os.cpu_count(), mp_context=multiprocessing.get_context("fork"),
                             initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)) as pool:
        return dict(zip([e["id"] for e in experiments], pool.map(_plot, experiments)))


def _plot(entry):
    return load_plot.picture(entry["load"], entry["id"]) if entry.get("load") else plot.experiment(entry)


def _counts(targets):
    """How many targets have which verdict."""
    return {v: sum(t["verdict"] == v for t in targets) for v in ("met", "undecided", "missed")}


def _spaced(value):
    return f"{value:,}".replace(",", " ")


def _samples(case):
    """Returns every single run of a case, as text."""
    lines = []
    for r in case["rows"]:
        for s in r["samples"]:
            lines.append(f"{r['contender']:24} " + "  ".join(f"{k}={v:g}" if k != "ops" else f"ops={v}"
                                                             for k, v in s.items()))
    return "\n".join(lines)
