# SPDX-License-Identifier: MIT OR Apache-2.0
"""Does a server under load grow? A verdict for each of its resources, by the slope of its amount at rest.

    flat       the interval of the slope contains 0, and ends below the bar
    little     the slope is above 0, but its interval ends below the bar
    grows      the slope is above 0 and above the bar, and growth in the whole run is above the least amount
    too short  none of these can be said

The bar is the growth for each request that matters; the least amount is the growth that caches may cause in a short run.
Intervals are of 95 %. Some of the many intervals exclude 0 by chance, so `grows` requires an interval that holds for all series
of a run together with 95 % (Bonferroni).
"""
from dataclasses import dataclass

from . import trend

FLAT, LITTLE, GROWS, SHORT = "flat", "little", "grows", "too short"
WARM_UP_MOST = 12  # maximum number of first points of a segment that are ignored; at most a quarter of its points are
POINTS_MOST = 300  # maximum number of points of a series in the results


@dataclass
class Resource:
    title: str
    unit: str
    step: int  # amounts are multiples of this
    bar: float  # for each request
    least: int


PAGE = 4096
RESOURCES = {
    "memory": Resource("memory", "B", PAGE, PAGE / 1000, 256 * PAGE),
    "page_tables": Resource("page tables", "B", PAGE, PAGE / 1000, 256 * PAGE),
    "descriptors": Resource("descriptors", "", 1, 1e-4, 8),
    "mappings": Resource("mappings", "", 1, 1e-4, 64),
    "threads": Resource("threads", "", 1, 1e-4, 8),
}


@dataclass
class Point:
    """The state of a server at rest, and the turn that follows."""
    hours: float  # since the segment began
    requests: int  # until then, in all segments
    has: dict
    turn: dict | None


def judge(segments, tests):
    """Trends and series of one server of `tests`. `segments`: lists of points."""
    warm = [s[min(WARM_UP_MOST, max(2, len(s) // 4)):] for s in segments]
    requests = sum(s[-1].requests - s[0].requests for s in warm if s)
    hours = sum(s[-1].hours - s[0].hours for s in warm if s)
    turns = [p.turn for s in segments for p in s if p.turn]
    return {"requests": sum(requests_of(t) for t in turns), "hostile": sum(t["load"]["hostile"] for t in turns),
            "wrong": sum(t["load"]["wrong"] for t in turns),
            "trends": {name: _trend(r, name, warm, requests, hours, tests * len(RESOURCES)) for name, r in RESOURCES.items()},
            "series": _series(segments)}


def requests_of(turn):
    """Counts the requests that were answered correctly."""
    return turn["load"]["good"] + turn["load"]["slow"]


def _trend(resource, name, segments, requests, hours, tests):
    """Slopes are for each request, and for each hour of the run."""
    fit = trend.fit([[(p.hours, p.has[name]) for p in s] for s in segments], resource.step) if requests and hours else None
    last = segments[-1][-1].has[name] if segments and segments[-1] else None
    if not fit:
        return {"verdict": SHORT, "points": sum(map(len, segments)), "last": last, "per_request": None, "per_hour": None}
    each = hours / requests
    low, high = fit.interval()
    sure = fit.interval(1 - 0.05 / tests)[0]
    verdict = SHORT
    if sure > 0 and fit.slope * each > resource.bar and fit.slope * hours > resource.least:
        verdict = GROWS
    elif high * each <= resource.bar:
        verdict = LITTLE if low > 0 else FLAT
    hourly = {"slope": fit.slope, "low": low, "high": high, "noticed": fit.noticed()}
    return {"verdict": verdict, "points": fit.n, "last": last, "per_hour": hourly, "per_request": {k: v * each for k, v in hourly.items()}}


def sentence(name, found):
    """Formats a trend, for example "memory grows by 12.3 B per request (11.9 to 12.7)"."""
    r, each = RESOURCES[name], found["per_request"]
    unit = f" {r.unit}" if r.unit else ""
    return f"{r.title} grows by {each['slope']:.3g}{unit} per request ({each['low']:.3g} to {each['high']:.3g})"


def _series(segments):
    """For plots: a value for each turn, or the highest of several neighbouring turns. Hours of all segments follow each other;
    None separates them."""
    points, began = [], 0.0
    for s in segments:
        points += [_flattened(p, began) for p in s] + [None]
        began += s[-1].hours
    size = -(-len(points) // POINTS_MOST) or 1
    groups = [points[i:i + size] for i in range(0, len(points), size)]
    names = ("hours", *RESOURCES, "loaded", "p50", "p99", "cpu")
    return {name: [_highest(group, name) for group in groups] for name in names}


def _flattened(point, began):
    flat = {"hours": began + point.hours, **{name: point.has[name] for name in RESOURCES}}
    if point.turn:
        load, done = point.turn["load"], requests_of(point.turn)
        flat.update(loaded=max((s["memory"] for s in point.turn["loaded"]), default=None), p50=load["p50"], p99=load["p99"],
                    cpu=point.turn["cpu"] / done if done else None)
    return flat


def _highest(group, name):
    return None if None in group else max((p[name] for p in group if p.get(name) is not None), default=None)
