"""Joint moves of the cut points between the levels of a column and the latent cells of the adjacent levels.

If cells are drawn one by one, the cut point between two levels hardly moves: it lies between the largest cell
below and the smallest cell above, an interval of order 1/n, while its posterior has a width of order 1/sqrt(n). So
after the cells have been drawn, a cut point g is drawn uniformly from that interval, and each cell of the two
adjacent levels is expressed by its relative position between g and the nearest cell of the next level but one, a
below or b above. In these coordinates a shift d of g moves the cells of both levels, each by its slope ``v`` times
d. The density of d is::

    prod_i N(x_i + v_i d; mu_i, sd^2)  (1 + d/(g - a))^n_below  (1 - d/(b - g))^n_above  /  gap(d)

where the powers are the Jacobian, and ``1/gap`` is the density of the cut point given the cells. Every third cut
point is moved, the first of them chosen at random, by slice sampling, so that no level is moved by two of them.
The moves leave the distribution of the cells exactly invariant.

The code is compiled. Levels are given by ``edges``: level l has the cells ``x[edges[l] : edges[l + 1]]``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from markovblanket.contracts import Array

Indices = npt.NDArray[np.intp]
# Lower bound of divisors that are zero where cells coincide.
LEAST_DIVISOR = 1e-200
# Fixed ends a and b of the outermost levels; any constant leaves the distribution of the cells invariant.
OUTERMOST_END = 1e6


class Stretch(NamedTuple):
    """Parameters of the density of the shift of a cut point ``g`` between fixed ends ``a`` and ``b``.

    ``linear`` and ``quadratic`` are the coefficients of the normal log density, ``below`` and ``above`` the powers
    of the Jacobian; ``widening`` is the relative growth of the interval around g per unit of shift.
    """

    a: float
    g: float
    b: float
    linear: float
    quadratic: float
    below: float
    above: float
    widening: float


@njit(cache=True)
def move(rng: np.random.Generator, x: Array, mean: Array, sd: float, edges: Indices) -> Array:
    """Move some cut points with their cells; ``x_i ~ N(mean_i, sd^2)``, restricted to the order of the levels.

    Parameters
    ----------
    rng : numpy.random.Generator
        The source of randomness.
    x, mean : numpy.ndarray
        Cells, level after level, and their means.
    sd : float
        Their standard deviation.
    edges : numpy.ndarray
        Where each level begins, and where the last one ends.

    Returns
    -------
    numpy.ndarray
        The cells, in the same order.

    Examples
    --------
    >>> x = np.array([-1.0, -0.5, 0.4, 0.3, 2.0])
    >>> moved = move(np.random.default_rng(0), x, np.zeros(5), 1.0, np.array([0, 2, 4, 5]))
    >>> bool(moved[:2].max() < moved[2:4].min() and moved[2:4].max() < moved[4])
    True
    """
    x = x.copy()
    for k in some(rng, len(edges) - 1):
        law = stretch(rng, x, mean, sd, edges, k)
        shift(x, edges, k, law, step(rng, law))
    return x


def extremes(x: Array, begins: Indices) -> tuple[Array, Array]:
    """Return the smallest and the largest cell of every level."""
    return np.minimum.reduceat(x, begins), np.maximum.reduceat(x, begins)


@njit(cache=True)
def some(rng: np.random.Generator, levels: int) -> Indices:
    """Return every third cut point from a random start, given by the level above it."""
    return np.arange(1 + int(min(3, levels - 1) * rng.random()), levels, 3)


@njit(cache=True)
def bounds(rng: np.random.Generator, x: Array, edges: Indices, k: int) -> Stretch:
    """Draw a cut point below level k, and return its ends two levels away and the Jacobian; no normal terms."""
    low, high = x[edges[k - 1] : edges[k]].max(), x[edges[k] : edges[k + 1]].min()
    a = x[edges[k - 2] : edges[k - 1]].max() if k > 1 else -OUTERMOST_END
    b = x[edges[k + 1] : edges[k + 2]].min() if k + 2 < len(edges) else OUTERMOST_END
    g = low + rng.random() * (high - low)
    below, above = float(edges[k] - edges[k - 1]), float(edges[k + 1] - edges[k])
    widening = (slope(high, a, g, b) - slope(low, a, g, b)) / max(high - low, LEAST_DIVISOR)
    return Stretch(a, g, b, 0.0, 0.0, below, above, widening)


@njit(cache=True)
def stretch(rng: np.random.Generator, x: Array, mean: Array, sd: float, edges: Indices, k: int) -> Stretch:
    """Draw a cut point below level k, and return the density of its shift between ends two levels away."""
    (a, g, b, linear, quadratic, below, above, widening) = bounds(rng, x, edges, k)
    for i in range(edges[k - 1], edges[k + 1]):
        v = slope(x[i], a, g, b)
        linear += v * (x[i] - mean[i]) / sd**2
        quadratic += v * v / sd**2
    return Stretch(a, g, b, linear, quadratic, below, above, widening)


@njit(cache=True)
def slope(x: float, a: float, g: float, b: float) -> float:
    """Return the shift of a cell per unit shift of the cut point: 1 next to it, 0 at the ends a and b."""
    return (x - a) / max(g - a, LEAST_DIVISOR) if x < g else (b - x) / max(b - g, LEAST_DIVISOR)


@njit(cache=True)
def log_density(d: float, law: Stretch) -> float:
    """Return the log density of the shift d, relative to d = 0; NaN where the shift is impossible."""
    jacobian = law.below * math.log1p(d / (law.g - law.a)) + law.above * math.log1p(-d / (law.b - law.g))
    return jacobian - d * (law.linear + 0.5 * d * law.quadratic) - math.log1p(d * law.widening)


@njit(cache=True)
def step(rng: np.random.Generator, law: Stretch) -> float:
    """Return a slice step from d = 0 (Neal 2003), in an interval whose length does not depend on the shift."""
    if not law.a < law.g < law.b:  # cells made equal by rounding leave no interval: skip the move in this sweep
        return 0.0
    width = 6.0 / math.sqrt(max(law.quadratic, LEAST_DIVISOR))
    left = -width * rng.random()
    left, right = max(left, law.a - law.g), min(left + width, law.b - law.g)
    height = -rng.standard_exponential()
    while True:
        d = left + (right - left) * rng.random()
        if d == 0.0 or log_density(d, law) > height:
            return d
        if d < 0.0:
            left = d
        else:
            right = d


@njit(cache=True)
def shift(x: Array, edges: Indices, k: int, law: Stretch, d: float) -> None:
    """Shift the cells of both levels at the cut point below level k, in place; none crosses it by rounding."""
    for i in range(edges[k - 1], edges[k + 1]):
        moved = x[i] + d * slope(x[i], law.a, law.g, law.b)
        if i < edges[k]:
            x[i] = max(law.a, min(moved, law.g + d))
        else:
            x[i] = min(law.b, max(moved, law.g + d))
