# SPDX-License-Identifier: MIT OR Apache-2.0
"""Does a series of measurements grow? The slope of a straight line through it, with an interval of confidence.

Memory at rest is no line with independent errors: after one turn of load, a heap mostly keeps the memory that it kept after the
turn before. Least squares mistakes such a wandering series for a trend. So the model is a level that wanders, a straight line,
and noise:

    y(t) = level(t) + slope x(t) + noise(t)      level(t) = level(t - 1) + step(t)

with q, the variance of a step divided by that of the noise, from 0 (independent errors) to infinity (a random walk). A Kalman
filter gives slope, error and restricted likelihood for each q of a grid. A short series determines q poorly, and a q that is too
low gives an interval that is too narrow. So the filter uses the largest q that the series does not contradict. tests/lab checks
by simulation that the intervals have the promised coverage.

Each segment of a series has a level of its own: after an interruption there are new processes. Times are turns, so they are
equally far from each other.
"""
import math
import statistics
from dataclasses import dataclass

FEWEST = 10  # with fewer points no interval is trusted
GRID = [0.0, *(10 ** (i / 3) for i in range(-12, 7))]  # of q
CONTRADICTED = 0.82  # of the log-likelihood: half of the value that a chi-squared with one degree of freedom exceeds in 20 %


@dataclass
class Slope:
    """In units of y per unit of x."""
    slope: float
    error: float  # its standard error
    freedom: int  # degrees of freedom
    n: int  # points

    def interval(self, level=0.95):
        reach = t_quantile(0.5 + level / 2, self.freedom) * self.error
        return self.slope - reach, self.slope + reach

    def noticed(self, level=0.95, power=0.8):
        """The smallest slope whose interval would be above 0 with the probability `power`."""
        return (t_quantile(0.5 + level / 2, self.freedom) + t_quantile(power, self.freedom)) * self.error


def fit(segments, step=0.0):
    """The common slope of segments, each a list of points (x, y). y is a multiple of `step`, so a constant series is known to
    half a step only. Returns None if there are too few points."""
    segments = [s for s in segments if len(s) > 2]
    n = sum(map(len, segments))
    freedom = n - len(segments) - 1
    if n < FEWEST:
        return None
    fits = [_given(segments, q, freedom, step * step / 12) for q in GRID]
    best = max(likelihood for *_, likelihood in fits)
    slope, variance, _ = next(fit for fit in reversed(fits) if fit[2] >= best - CONTRADICTED)
    return Slope(slope, math.sqrt(variance), freedom, n)


def _given(segments, q, freedom, least):
    """Slope, its variance, and the logarithm of the restricted likelihood for one q."""
    innovations = [i for s in segments for i in _filter(s, q)]
    xx = sum(x * x / f for x, _, f in innovations)
    slope = sum(x * y / f for x, y, f in innovations) / xx
    rest = sum((y - slope * x) ** 2 / f for x, y, f in innovations)
    variance = max(rest / freedom, least / (1 + q))
    if not rest:  # exactly a line: the level does not wander
        return slope, variance / xx, -math.inf if q else 0.0
    logs = sum(math.log(f) for *_, f in innovations)
    return slope, variance / xx, -0.5 * (freedom * math.log(variance) + logs + math.log(xx))


def _filter(segment, q):
    """For each point, the differences of x and y from their predictions, and the variance of these differences in units of the
    noise's variance. The first level is unknown."""
    (x, y), uncertain = segment[0], 1.0
    for point in segment[1:]:
        uncertain += q
        f = uncertain + 1.0
        dx, dy = point[0] - x, point[1] - y
        yield dx, dy, f
        gain = uncertain / f
        x, y, uncertain = x + gain * dx, y + gain * dy, gain


def t_quantile(p, freedom):
    """Quantile of Student's distribution, by the expansion of Cornish and Fisher (Abramowitz and Stegun 26.7.5); accurate to 1 %
    from 5 degrees of freedom on, at the levels that are used here."""
    z = statistics.NormalDist().inv_cdf(p)
    terms = ((z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
             (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160)
    return z + sum(term / freedom ** (i + 1) for i, term in enumerate(terms))
