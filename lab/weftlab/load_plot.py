# SPDX-License-Identifier: MIT OR Apache-2.0
"""The plot of continuous load: a row for each resource, a column for each policy, a line for each back end."""
from matplotlib import pyplot, ticker

from .plot import COLOURS, FAINT, INK, finish

PANELS = (("memory", "memory, MB", 1e-6), ("page_tables", "page tables, KB", 1 / 1024), ("descriptors", "descriptors", 1), ("mappings", "mappings", 1),
          ("p50", "p50, ms", 1e3), ("p99", "p99, ms", 1e3), ("cpu", "CPU, µs/request", 1e6))
STYLES = {"epoll": "-", "uring": (0, (2, 1.2))}


def picture(load, name):
    """The SVG, or "" if nothing was measured."""
    policies = list(dict.fromkeys(server.split("/")[1] for server in load["servers"]))
    if not policies:
        return ""
    figure, axes = pyplot.subplots(len(PANELS), len(policies), figsize=(11.5, 1.25 * len(PANELS) + 0.6), sharex=True, squeeze=False)
    for row, (series, title, factor) in zip(axes, PANELS):
        for axis, policy in zip(row, policies):
            _panel(axis, load, series, factor, policy)
        row[0].set_ylabel(title, fontsize=8)
    for axis, policy in zip(axes[0], policies):
        axis.set_title(policy, fontsize=9)
    for axis in axes[-1]:
        axis.set_xlabel("minutes", fontsize=8)
    figure.subplots_adjust(left=0.065, right=0.995, top=0.96, bottom=0.05, wspace=0.42, hspace=0.22)
    return finish(figure, name)


def _panel(axis, load, series, factor, policy):
    highest = 0
    for backend, style in STYLES.items():
        found = load["servers"].get(f"{backend}/{policy}")
        if not found:
            continue
        if series == "memory":
            highest = max(highest, _draw(axis, found["series"], "loaded", factor, FAINT, style, 0.6))
        highest = max(highest, _draw(axis, found["series"], series, factor, COLOURS.get(policy, INK), style, 1.1))
    axis.set_ylim(0, highest * 1.15 or 1)
    axis.yaxis.set_major_locator(ticker.MaxNLocator(3))
    axis.xaxis.set_major_locator(ticker.MaxNLocator(3))
    axis.tick_params(labelsize=7, length=2)
    axis.grid(axis="y", color=FAINT, lw=0.5, alpha=0.18)


def _draw(axis, series, name, factor, colour, style, width):
    """The highest value drawn. There is a gap where a segment ends."""
    values = [float("nan") if v is None else v * factor for v in series[name]]
    minutes = [float("nan") if h is None else h * 60 for h in series["hours"]]
    axis.plot(minutes, values, color=colour, ls=style, lw=width, alpha=0.5 if colour == FAINT else 1)
    return max((v for v in values if v == v), default=0)
