# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reports of continuous load: a table of growing resources, for the terminal and the page, and a plot of every series."""
import sys
import textwrap

from . import growth
from .table import Style, lay_out

HEAD = ["", "requests", "wrong", "memory", "grows by", "95 % interval", "seen from", "in an hour", "fds", "maps", "verdict"]


def rows(load):
    """[name, cells…] for each server. Cells are texts."""
    return [[name, *_cells(found)] for name, found in load["servers"].items()]


def _cells(found):
    trends = found["trends"]
    return [f"{found['requests'] / 1e6:.2f} M", str(found["wrong"]), f"{(trends['memory']['last'] or 0) / 1e6:.1f} MB", *_slope(trends["memory"]),
            *(f"{trends[name]['last'] or 0:.0f}" for name in ("descriptors", "mappings")), verdict(found)]


def _slope(trend):
    each, hour = trend["per_request"], trend["per_hour"]
    if not each:
        return ["–"] * 4
    return [f"{each['slope']:+.2f} B", f"{each['low']:+.2f} … {each['high']:+.2f} B", f"{each['noticed']:.2f} B", f"{hour['slope'] / 1e6:+.2f} MB"]


def verdict(found):
    """The worst verdict, and the resources that have it."""
    trends = found["trends"]
    worst = next(v for v in (growth.GROWS, growth.SHORT, growth.LITTLE, growth.FLAT) if v in [t["verdict"] for t in trends.values()])
    about = [growth.RESOURCES[name].title for name, t in trends.items() if t["verdict"] == worst]
    return worst if len(about) == len(trends) else f"{worst}: {', '.join(about)}"


WORDS = {growth.FLAT: "cannot be told from flat", growth.LITTLE: "grow by less than matters", growth.GROWS: "grow",
         growth.SHORT: "need a longer run"}


def summary(load):
    """A sentence that sums up the run."""
    verdicts = [t["verdict"] for s in load["servers"].values() for t in s["trends"].values()]
    requests, wrong = (sum(s[k] for s in load["servers"].values()) for k in ("requests", "wrong"))
    said = [f"{verdicts.count(v)} {words}" for v, words in WORDS.items() if v in verdicts]
    parts = f" in {load['segments']} parts" if load["segments"] > 1 else ""
    return (f"{load['elapsed'] / 60:.1f} minutes of load{parts} on {len(load['servers'])} servers: {requests / 1e6:.1f} M requests, {wrong} replies "
            f"wrong. Of {len(verdicts)} series {', '.join(said) or 'none is known'}.")


def bar():
    """The bars, in words."""
    memory, counts = growth.RESOURCES["memory"], growth.RESOURCES["descriptors"]
    return (f"Slopes are for each request of a good or slow client. Growth matters from {memory.bar:.1f} B (a page in 1000 requests), and from one "
            f"descriptor, mapping or thread in {1 / counts.bar:.0f} requests. Flat: the interval contains 0, and ends below that. A growth of "
            "memory above “seen from” would have been noticed with a probability of 80 %.")


def print_load(load, out=sys.stdout):
    style = Style(out)
    for text in (summary(load), bar()):
        print(textwrap.indent(textwrap.fill(text, 120), "  "), file=out)
    print(file=out)
    for line in lay_out([HEAD, *rows(load)], "<" + ">" * 9 + "<"):
        print("    " + (style.bad(line) if f"  {growth.GROWS}" in line else line), file=out)
