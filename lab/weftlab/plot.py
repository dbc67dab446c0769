# SPDX-License-Identifier: MIT OR Apache-2.0
"""Plots as SVG for embedding in a page: text and axes take the page's colour, so they are readable on light and dark pages."""
import io
import math
import re

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot, ticker  # noqa: E402

from .table import measure_of, number, plain_name  # noqa: E402

INK = "#010203"  # becomes currentColor
FAINT = "#010204"  # becomes currentColor with low opacity
COLOURS = {"fixed": "#2f7fd6", "overcommit": "#12a594", "commit": "#8a63d2", "copy": "#9a6a3c", "segmented": "#4f9d2f",
           "heap": "#c8423b", "lookahead": "#1d9fc9", "mmu": "#7d8a12"}
KINDS = {"c": "#8b8d98", "limit": INK, "peer": "#e5732a", "weft": "#12a594"}
PUBLISHED = "#d6409f"
REFERENCE = "#b0890a"
LINE, ABOVE, BELOW = 0.235, 0.4, 0.55  # inches: for each line of a panel, above the lines, below the lines

matplotlib.rcParams.update({
    "svg.fonttype": "none", "svg.hashsalt": "weft", "font.family": "sans-serif", "font.size": 9.5,
    "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": FAINT, "xtick.color": INK, "ytick.color": INK,
    "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 10.5, "axes.titlelocation": "left",
    "axes.titleweight": "bold", "legend.frameon": False, "figure.facecolor": "none", "axes.facecolor": "none",
})


def colour_of(row):
    return COLOURS.get(row["policy"]) or KINDS[row["kind"]]


def experiment(entry):
    """The SVG of an experiment, or "" if it has no figures."""
    cases = [c for c in entry["cases"] if any(r["stats"] for r in c["rows"])]
    if not cases:
        return ""
    return _lines(entry, cases) if entry["plot"] == "lines" and len(cases) > 1 else _dots(entry, cases)


def glance(results):
    """Three figures that sum up the run, for the top of the page."""
    micro = next((e for e in results["experiments"] if e["id"] == "micro"), None)
    wanted = ("resume_yield", "perform", "life_warm")
    cases = [_without_variants(c) for c in micro["cases"] if c["id"] in wanted] if micro else []
    cases = [c for c in cases if any(r["stats"] for r in c["rows"])]
    return _dots({"id": "glance"}, cases, columns=3, width=11.5) if cases else ""


def _without_variants(case):
    """Variants of Weft and earlier figures of other libraries appear only in the experiment's section."""
    own = [r for r in case["rows"] if r["kind"] != "weft" or r["contender"].startswith("weft/")]
    return {**case, "rows": own, "reference": None}


# ---- dots ---------------------------------------------------------------------------------------------------


def _marks(case):
    """The marks of a panel: (label, colour, value, low, high, published, reference), in the panel's own measure."""
    published = (case["published"] or {"values": {}})["values"]
    base = next((r for r in case["rows"] if r["contender"] == case["baseline"] and r["stats"]), None)
    relative = bool(case["published"] and base and case["published"]["baseline"] == case["baseline"] and base["stats"]["median"])
    unit = 1 / base["stats"]["median"] if relative else 1
    marks = [_measured_mark(r, published.get(r["contender"]), unit) for r in case["rows"] if r["stats"]]
    marks.sort(key=lambda m: m["value"])
    marks += _marks_of_others(case, published, unit)
    return marks, f"times {base['title']}" if relative else measure_of(case), relative


def _measured_mark(row, published, unit):
    s = row["stats"]
    return {"label": row["title"], "colour": colour_of(row), "value": s["median"] * unit, "low": s["q1"] * unit,
            "high": s["q3"] * unit, "published": published and published["scaled"] and published["scaled"] * unit,
            "reference": None, "text": s["median"]}


def _marks_of_others(case, published, unit):
    """Contenders that this run does not have: published ratios multiplied by the time of their base here, and figures of another
    machine scaled to this machine."""
    seen = {r["contender"] for r in case["rows"]}
    here = {plain_name(n): p["scaled"] for n, p in published.items() if n not in seen and p["scaled"]}
    reference = case["reference"] or {"values": {}}
    scaled = {n: v["here"] for n, v in reference["values"].items()}
    marks = []
    for name in sorted({**here, **scaled}, key=lambda n: here.get(n) or scaled[n]):
        marks.append({"label": name + (_star(reference) if name in scaled else ""), "colour": PUBLISHED, "value": None, "low": None, "high": None, "text": None,
                      "published": here[name] * unit if name in here else None,
                      "reference": scaled[name] * unit if name in scaled else None})
    return marks


def _star(reference):
    """The mark after a figure of another machine. Bytes are not scaled."""
    return f"* (times {reference['scale']:.2f})" if reference["pair_here"] else "*"


def _dots(entry, cases, columns=2, width=11.5):
    panels = [_marks(c) for c in cases]
    columns = min(columns, len(cases))
    rows = [panels[i:i + columns] for i in range(0, len(panels), columns)]
    heights = [max(len(p[0]) for p in row) * LINE for row in rows]
    figure = pyplot.figure(figsize=(width, sum(heights) + len(rows) * (ABOVE + BELOW)))
    room = width / columns
    labels = [_width((m["label"] for marks, *_ in panels[c::columns] for m in marks), room) for c in range(columns)]
    for i, panel in enumerate(panels):
        row, column = divmod(i, columns)
        left = column * room + labels[column]
        top = sum(heights[:row]) + row * (ABOVE + BELOW) + ABOVE
        _panel(_axes(figure, left, top, (column + 1) * room - 0.3 - left, heights[row]), cases[i], *panel)
    return finish(figure, entry["id"])


def _width(labels, room):
    """The width of the labels in inches. The page's own font decides, so measuring our font would not be more accurate."""
    return min(max(map(len, labels), default=0) * 0.07 + 0.15, 0.66 * room)


def _axes(figure, left, top, width, height):
    """All values are in inches. matplotlib's automatic layout takes a third of a report's time."""
    across, down = figure.get_size_inches()
    return figure.add_axes([left / across, 1 - (top + height) / down, width / across, height / down])


def _panel(axis, case, marks, axis_title, relative):
    values = [v for m in marks for v in (m["value"], m["published"], m["reference"]) if v and v > 0]
    low, high = min(values, default=1), max(values, default=1)
    nothing = low / 1.35  # the place of a zero on a logarithmic axis, and of memory that became less
    for y, m in enumerate(marks):
        if m["value"] is not None:
            at = {k: max(m[k], nothing) for k in ("low", "value", "high")}
            axis.plot([at["low"], at["high"]], [y, y], color=m["colour"], lw=3.2, alpha=0.35, solid_capstyle="round")
            axis.plot(at["value"], y, "o", color=m["colour"], ms=6.5, zorder=3)
            beside = m["published"] and m["high"] < m["published"] < m["high"] * (high / low) ** 0.25
            axis.annotate(_short(m["text"], case["unit"]), (m["published"] if beside else at["high"], y), xytext=(7, 0), textcoords="offset points",
                          va="center", fontsize=8, color=INK)
        if m["published"]:
            axis.plot(m["published"], y, "D", mfc="none", mec=PUBLISHED, ms=6, mew=1.4, zorder=2)
        if m["reference"]:
            axis.plot(m["reference"], y, "s", mfc="none", mec=REFERENCE, ms=6, mew=1.4, zorder=2)
    axis.set_yticks(range(len(marks)), [m["label"] for m in marks])
    axis.set_ylim(len(marks) - 0.4, -0.6)
    axis.set_xscale("log")
    axis.set_xlim(nothing, high * 2.0)
    log_ticks(axis.xaxis, nothing, high * 2.0)
    axis.grid(axis="x", color=FAINT, lw=0.6, alpha=0.18)
    if relative:
        axis.axvline(1, color=FAINT, lw=1, alpha=0.5, ls=":")
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    axis.set_title(case["title"])
    axis.set_xlabel(axis_title, fontsize=8.5)


def _short(value, unit):
    return f"{number(value)} {unit}"


def log_ticks(axis, low, high):
    """Ticks at 1, 2 and 5 if they fit, at powers of ten if the range is wide; plain numbers."""
    steps = (1, 2, 5) if high / low < 60 else (1, 3) if high / low < 800 else (1,)
    if high / low < 4:
        steps = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    marks = [step * 10.0**power for power in range(first, last + 1) for step in steps]
    axis.set_major_locator(ticker.FixedLocator([m for m in marks if low <= m <= high]))
    axis.set_major_formatter(ticker.FuncFormatter(lambda v, _: f"{v:,.0f}".replace(",", " ") if v >= 1000 else f"{v:.3g}"))
    axis.set_minor_locator(ticker.NullLocator())


# ---- lines --------------------------------------------------------------------------------------------------


def _lines(entry, cases):
    figure, axis = pyplot.subplots(figsize=(11.5, 4.8), layout="constrained")
    series, others = _series(cases)
    for row, points in series.values():
        xs = [x for x, _ in points]
        own = row["contender"].startswith("weft/")
        colour = colour_of(row)
        axis.fill_between(xs, [s["q1"] for _, s in points], [s["q3"] for _, s in points], color=colour, alpha=0.15, lw=0)
        axis.plot(xs, [s["median"] for _, s in points], "-" if own else "--", marker="o", ms=4.5, color=colour, lw=1.6,
                  label=row["title"])
    for (name, mark, colour), points in others.items():
        axis.plot(*zip(*points), mark + ":", mfc="none", color=colour, ms=5, lw=0.9, alpha=0.8)
        axis.annotate(name, points[-1], xytext=(8, 0), textcoords="offset points", fontsize=8, color=colour, va="center")
    _scales(axis, [c["x"] for c in cases])
    axis.grid(color=FAINT, lw=0.6, alpha=0.18)
    axis.set_xlabel(entry["x_title"])
    axis.set_ylabel(measure_of(cases[0]))
    axis.legend(fontsize=8.5, loc="upper left", bbox_to_anchor=(1.01, 1.0))
    return finish(figure, entry["id"])


def _series(cases):
    """{contender: (row, [(x, stats)])}, and {(name, mark, colour): [(x, value)]} of the figures of other libraries."""
    series, others = {}, {}
    for case in cases:
        for r in case["rows"]:
            if r["stats"]:
                series.setdefault(r["contender"], (r, []))[1].append((case["x"], r["stats"]))
        reference = case["reference"] or {"values": {}}
        for name, value in reference["values"].items():
            others.setdefault((name + _star(reference), "s", REFERENCE), []).append((case["x"], value["here"]))
        for name, value in (case["published"] or {"values": {}})["values"].items():
            if value["scaled"] is not None:
                label = f"{plain_name(name)} (published)"
                others.setdefault((label, "D", PUBLISHED), []).append((case["x"], value["scaled"]))
    return series, others


def _scales(axis, xs):
    if xs[0] > 0:
        axis.set_xscale("log")
        axis.set_xlim(xs[0] / 1.15, xs[-1] * (xs[-1] / xs[0]) ** 0.25)
    else:
        axis.set_xscale("symlog", linthresh=1, linscale=0.4)
        axis.set_xlim(-0.1, xs[-1] * 2.6)
    axis.set_xticks(xs, [f"{x:g}" for x in xs])
    axis.xaxis.set_minor_locator(ticker.NullLocator())
    axis.set_yscale("log")
    low, high = axis.get_ylim()
    if high / low < 3:  # so that flat lines look flat
        axis.set_ylim(low / 1.6, high * 1.6)
    log_ticks(axis.yaxis, *axis.get_ylim())


# ---- from a figure to a part of a page ------------------------------------------------------------------------


def finish(figure, name):
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
    return _inline(buffer.getvalue(), name)


def _inline(svg, name):
    """Removes everything that only a file needs, makes ids unique to the plot, and lets the page set the colours."""
    svg = svg[svg.index("<svg"):]
    # Ids are hashes of coordinates, whose last bits differ from one process to the next: number them instead.
    names = {}
    svg = re.sub(r"\b[mp][0-9a-f]{10}\b", lambda m: names.setdefault(m[0], f"{m[0][0]}{len(names)}"), svg)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = svg.replace(INK, "currentColor").replace(FAINT, "currentColor")
    svg = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", svg)
    svg = re.sub(r"font: bold ([\d.]+)px [^;\"]*|font: 700 ([\d.]+)px [^;\"]*",
                 lambda m: f"font-weight: 600; font-size: {m[1] or m[2]}px", svg)
    svg = re.sub(r'<svg ([^>]*?)width="[^"]*"', r"<svg \1", svg, count=1)
    svg = re.sub(r'<svg ([^>]*?)height="[^"]*"', rf'<svg \1 role="img" aria-label="{name}"', svg, count=1)
    return svg.replace(' xmlns:xlink="http://www.w3.org/1999/xlink"', "").replace(
        ' xmlns="http://www.w3.org/2000/svg"', "").replace("xlink:href", "href")
