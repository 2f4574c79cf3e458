"""Normal cells of a column with levels, between cuts that lie in the gaps between the levels.

``codes`` are 0, 1, ... from the lowest level up, -1 where a cell is missing; level k lies between cuts k and k+1.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import njit

from markovblanket.contracts import Array
from markovblanket.variates import truncated_normal

Indices = npt.NDArray[np.intp]

LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)


@njit(cache=True)
def moments(mean: float, variance: float, lower: float, upper: float) -> tuple[float, float, float]:
    """Of a normal cell between bounds: log probability, ``E x - mean``, and which share of its variance it loses.

    On the side where the interval lies farther to the right, where tails keep their digits.
    """
    sd = math.sqrt(variance)
    low, high, sign = (lower - mean) / sd, (upper - mean) / sd, 1.0
    if -low > high:
        low, high, sign = -high, -low, -1.0
    mass = 0.5 * (math.erfc(low * math.sqrt(0.5)) - math.erfc(high * math.sqrt(0.5)))
    if mass < 1e-290:  # beyond 36 standard deviations: an exponential law, narrow intervals aside
        series = math.log1p(-(1.0 - 3.0 / low**2) / low**2) if low > 1.0 else 0.0
        return series - 0.5 * low * low - math.log(abs(low)) - LOG_ROOT_2PI, sign * sd * (low + 1.0 / low), 1.0
    at_low = math.exp(-0.5 * low * low - LOG_ROOT_2PI) / mass
    at_high = math.exp(-0.5 * high * high - LOG_ROOT_2PI) / mass
    mean = at_low - at_high
    edges = (low * at_low if low > -np.inf else 0.0) - (high * at_high if high < np.inf else 0.0)
    return math.log(mass), sign * sd * mean, min(max(mean * mean - edges, 0.0), 1.0)


@njit(cache=True)
def lay_cuts(rng: np.random.Generator, x: Array, codes: Indices) -> tuple[Array, float]:
    """A cut in every gap between levels, with infinity at both ends; and the sum of the gaps' logarithms."""
    low, high = edges_of_gaps(x, codes)
    cuts = np.full(len(low) + 2, np.inf)
    cuts[0] = -np.inf
    for k in range(len(low)):
        cuts[k + 1] = low[k] + rng.random() * (high[k] - low[k])
    return cuts, np.log(high - low).sum()


@njit(cache=True)
def log_gaps(x: Array, codes: Indices) -> float:
    """The sum of the logarithms of the gaps between levels."""
    low, high = edges_of_gaps(x, codes)
    return np.log(high - low).sum()


@njit(cache=True)
def edges_of_gaps(x: Array, codes: Indices) -> tuple[Array, Array]:
    """The largest cell of every level but the last, the smallest of every level but the first."""
    bottom, top = np.full(codes.max() + 1, np.inf), np.full(codes.max() + 1, -np.inf)
    for r in range(len(x)):
        if codes[r] >= 0:
            bottom[codes[r]] = min(bottom[codes[r]], x[r])
            top[codes[r]] = max(top[codes[r]], x[r])
    return top[:-1], bottom[1:]


@njit(cache=True)
def draw_between(rng: np.random.Generator, mean: Array, variance: float, codes: Indices, cuts: Array) -> Array:
    """A normal column, every observed cell between the cuts of its level."""
    x, sd = mean.copy(), math.sqrt(variance)
    for r in range(len(x)):
        code, t = codes[r], 0.0
        if code < 0:
            t = rng.standard_normal()
        else:
            t = truncated_normal.between(rng, (cuts[code] - x[r]) / sd, (cuts[code + 1] - x[r]) / sd)
        x[r] += sd * t
    return x
