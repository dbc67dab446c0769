# SPDX-License-Identifier: MIT OR Apache-2.0
"""The page that helps to choose a policy: it compares the stack policies by the figures of this run only."""
from matplotlib import pyplot

from . import plot
from .describe import POLICIES
from .table import number

# For each policy: a description, when to use it, and its requirements.
ADVICE = {
    "fixed": ("one block, counted in full",
              "You know how deep the work gets, and memory must be promised before it starts.",
              "a size; an overflow ends the process with a line that says whose"),
    "overcommit": ("one reservation, pages on first touch",
                   "Nothing else is known: the default. Any code runs on it, and depth costs nothing until it is used.",
                   "address space, and a page for each coroutine however little it needs"),
    "commit": ("one reservation, opened in batches under a budget",
               "Work from outside must not take the machine down: a coroutine that asks for too much fails alone.",
               "a budget; a fault per batch when a stack first grows"),
    "copy": ("a shared region; what lives is copied out and in",
             "Many coroutines are parked with little on their stacks, or one has to be cloned and resumed more than once.",
             "no pointers into a suspended coroutine's stack"),
    "segmented": ("chunks, linked or grown in place by a check in each function",
                  "Coroutines by the million whose depth nobody can tell, in code that you compile.",
                  "code compiled for it; other code runs on a service stack"),
    "heap": ("a block from a free list for each call",
             "Frames must be exactly as large as they are, or outlive one another: analysis and experiments.",
             "code compiled for it; every call pays"),
    "lookahead": ("chunks, checked only where the call graph needs it",
                  "Calls must cost what they always did, and stacks must still begin small.",
                  "code compiled for it, together; recursion and pointers to functions decide where checks stay"),
    "mmu": ("chunks, linked when a store faults",
            "Growth is rare and calls are many.",
            "code compiled for it; a signal per growth"),
}


class Figure:
    """A column of the table: its title, and the cases that it shows, each with its meaning."""

    def __init__(self, title, unit, *cases, note="", compare=None):
        self.title, self.unit, self.cases, self.note, self.compare = title, unit, cases, note, compare


# (case, contender, label that distinguishes it)
FIGURES = (
    Figure("a call", "ns", ("B5/fibonacci_recursive", "weft", ""), note="fibonacci, recursively", compare="c"),
    Figure("a call from the worst place", "ns", ("B2/worst", "weft", "first 300 depths"),
           ("B2/everywhere", "weft", "first 19 200"), note="of an empty function", compare="c"),
    Figure("a resume and a yield", "ns", ("micro/resume_yield", "weft", "one coroutine"),
           ("micro/alternate", "weft", "two in turns, 200 live bytes each")),
    Figure("create, run, delete", "ns", ("micro/life_warm", "weft", "")),
    Figure("growing by 110 KB", "µs", ("A3/warm", "weft", "grown before"),
           ("A3/cold", "weft", "given back to the kernel before"), note="100 frames of 1 KB"),
    Figure("a parked coroutine", "B", ("micro/memory", "small", "1 KB asked for"),
           ("micro/memory", "weft", "256 KB asked for"), note="resident, page tables included"),
)


def cells(results):
    """{figure: {policy: [value or None, …]}}, a value per case of the figure, in the figure's unit."""
    cases = {f"{e['id']}/{c['id']}": c for e in results["experiments"] for c in e["cases"]}
    return {f: {p: [_value(cases.get(key), f"{contender}/{p}", f.unit) for key, contender, _ in f.cases]
                for p in POLICIES} for f in FIGURES}


def _value(case, contender, unit):
    row = next((r for r in case["rows"] if r["contender"] == contender), None) if case else None
    if not row or not row["stats"] or row["status"] != "ok":
        return None
    assert case["unit"] == unit, f"{case['id']} is in {case['unit']}"
    return row["stats"]["median"]


def plain(results, figure):
    """The value of plain C for a figure, or None."""
    if not figure.compare:
        return None
    cases = {f"{e['id']}/{c['id']}": c for e in results["experiments"] for c in e["cases"]}
    return _value(cases.get(figure.cases[0][0]), figure.compare, figure.unit)


def rows(results):
    """The table: a row for each policy, {name, what, when, asks, cells: [[(text, best), …], …]}; best: near the lowest."""
    table = cells(results)
    lowest = {f: [min((v for v in column if v), default=None) for column in zip(*by.values())] for f, by in table.items()}
    out = []
    for p in POLICIES:
        what, when, asks = ADVICE[p]
        out.append({"name": p, "what": what, "when": when, "asks": asks,
                    "cells": [_parts(by[p], lowest[f]) for f, by in table.items()]})
    return out


def _parts(values, lowest):
    if all(v is None for v in values):
        return [("not measured", False)]
    return [(number(v), v is not None and v <= low * 1.05) for v, low in zip(values, lowest)]


def headings():
    return [{"title": f.title, "unit": f.unit, "note": "; ".join(filter(None, [f.note, _marks(f)]))} for f in FIGURES]


def _marks(figure):
    return " / ".join(what for _, _, what in figure.cases if what)


# ---- the picture ----------------------------------------------------------------------------------------------------


def picture(results):
    """Small multiples, the same policies in the same places, each panel with a logarithmic axis of its own; "" if
    nothing was measured."""
    table = cells(results)
    if not any(v for by in table.values() for values in by.values() for v in values):
        return ""
    figure, axes = pyplot.subplots(2, 3, figsize=(11.5, 5.6), layout="constrained", sharey=True)
    figure.get_layout_engine().set(h_pad=0.12, w_pad=0.08)
    for axis, f in zip(axes.flat, FIGURES):
        _panel(axis, f, table[f], plain(results, f))
    axes[0][0].set_yticks(range(len(POLICIES)), POLICIES)
    axes[0][0].set_ylim(len(POLICIES) + 0.1, -0.6)
    return plot.finish(figure, "policies")


def _panel(axis, figure, by, reference):
    values = [v for vs in by.values() for v in vs if v] + ([reference] if reference else [])
    low, high = (min(values), max(values)) if values else (1, 10)
    high = max(high, low * 4)
    axis.set_xscale("log")
    axis.set_xlim(low / 1.4, high * (high / low) ** 0.28)
    plot.log_ticks(axis.xaxis, low / 1.4, high * 1.5)
    axis.grid(axis="x", color=plot.FAINT, lw=0.6, alpha=0.18)
    for y, (policy, vs) in enumerate(by.items()):
        _marks_of(axis, y, policy, vs, low / 1.3)
    if reference:
        axis.axvline(reference, color=plot.KINDS["c"], lw=1.2, ls=":")
        axis.annotate("plain C", (reference, len(POLICIES)), xytext=(4, 1), textcoords="offset points", fontsize=7.5,
                      color=plot.KINDS["c"])
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    axis.set_title(figure.title)
    marks = _marks(figure).split(" / ")
    legend = f"● {marks[0]}   ○ {marks[1]}" if len(marks) > 1 else figure.note
    axis.set_xlabel(f"{figure.unit}{'; ' if legend else ''}{legend}", fontsize=8.5)


def _marks_of(axis, y, policy, values, left):
    """A filled mark for the first value, a hollow mark for the second, a line between them."""
    known = [v for v in values if v]
    colour = plot.COLOURS[policy]
    if not known:
        axis.annotate("not measured", (left, y), va="center", fontsize=7.5, color=plot.FAINT, alpha=0.6)
        return
    axis.plot([min(known), max(known)], [y, y], color=colour, lw=2.4, alpha=0.3)
    for value, face in zip(values, (colour, "none")):
        if value:
            axis.plot(value, y, "o", mfc=face, mec=colour, ms=6.5, mew=1.4, zorder=3)
    axis.annotate(" / ".join(number(v) for v in values if v), (max(known), y), xytext=(8, 0), textcoords="offset points",
                  va="center", fontsize=8, color=plot.INK)
