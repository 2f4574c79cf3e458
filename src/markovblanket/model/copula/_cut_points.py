"""Cut points between the levels of a column, moved together with the cells of whole levels.

Drawn one by one, n cells hold the cut between two levels in place: it lies between the largest cell below and the
smallest above, a gap of order 1/n, where the posterior lets it roam over 1/sqrt(n). So after the cells have been
drawn, a cut g is laid into the gap, uniformly, and each cell of the two levels beside it is written as its place
between g and the nearest cell of the next level but one, a below or b above. In these coordinates the law of g is
that of its shift d, which takes the cells of both levels along, each as far as its slope ``v`` says::

    prod_i N(x_i + v_i d; mu_i, sd^2)  (1 + d/(g - a))^n_below  (1 - d/(b - g))^n_above  /  gap(d)

the powers being the Jacobian, and ``1/gap`` the density of the cut given the cells. Every third cut moves, the
first of them chosen at random, by slice sampling: the levels between two of them stand still. What is left
invariant is the law of the cells, exactly.

All of it is compiled. Levels are given by ``edges``: level l has the cells ``x[edges[l] : edges[l + 1]]``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from markovblanket.contracts import Array

Indices = npt.NDArray[np.intp]
TINY = 1e-200
FAR = 1e6  # the outermost levels are stretched from here; any constant leaves the law invariant


class Stretch(NamedTuple):
    """The law of the shift of a cut ``g`` between fixed ends ``a`` and ``b``.

    ``linear`` and ``quadratic`` are the terms of the normal law, ``below`` and ``above`` the powers of the
    Jacobian; ``widening`` is by how much the gap grows per unit of shift, relative to what it is.
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
    """Cells in the order of their levels, ``x_i ~ N(mean_i, sd^2)`` as long as this order lasts, some moved.

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
    """Smallest and largest cell of every level."""
    return np.minimum.reduceat(x, begins), np.maximum.reduceat(x, begins)


@njit(cache=True)
def some(rng: np.random.Generator, levels: int) -> Indices:
    """Every third cut, by the level above it."""
    return np.arange(1 + int(min(3, levels - 1) * rng.random()), levels, 3)


@njit(cache=True)
def stretch(rng: np.random.Generator, x: Array, mean: Array, sd: float, edges: Indices, k: int) -> Stretch:
    """Of a cut laid into the gap below level k, between fixed ends two levels away."""
    low, high = x[edges[k - 1] : edges[k]].max(), x[edges[k] : edges[k + 1]].min()
    a = x[edges[k - 2] : edges[k - 1]].max() if k > 1 else -FAR
    b = x[edges[k + 1] : edges[k + 2]].min() if k + 2 < len(edges) else FAR
    g, linear, quadratic = low + rng.random() * (high - low), 0.0, 0.0
    for i in range(edges[k - 1], edges[k + 1]):
        v = slope(x[i], a, g, b)
        linear += v * (x[i] - mean[i]) / sd**2
        quadratic += v * v / sd**2
    below, above = float(edges[k] - edges[k - 1]), float(edges[k + 1] - edges[k])
    widening = (slope(high, a, g, b) - slope(low, a, g, b)) / max(high - low, TINY)
    return Stretch(a, g, b, linear, quadratic, below, above, widening)


@njit(cache=True)
def slope(x: float, a: float, g: float, b: float) -> float:
    """How far a cell goes along with the cut: all the way beside it, not at all at the ends."""
    return (x - a) / max(g - a, TINY) if x < g else (b - x) / max(b - g, TINY)


@njit(cache=True)
def log_density(d: float, law: Stretch) -> float:
    """Of the shift d, relative to none; not a number where it is impossible."""
    jacobian = law.below * math.log1p(d / (law.g - law.a)) + law.above * math.log1p(-d / (law.b - law.g))
    return jacobian - d * (law.linear + 0.5 * d * law.quadratic) - math.log1p(d * law.widening)


@njit(cache=True)
def step(rng: np.random.Generator, law: Stretch) -> float:
    """A slice step from no shift at all (Neal 2003), in an interval of a length that no shift changes."""
    if not law.a < law.g < law.b:  # cells that rounding made equal leave no room: they wait for the next sweep
        return 0.0
    width = 6.0 / math.sqrt(max(law.quadratic, TINY))
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
    """Move the cells on both sides of the cut below level k, in place; rounding takes none across it."""
    for i in range(edges[k - 1], edges[k + 1]):
        moved = x[i] + d * slope(x[i], law.a, law.g, law.b)
        if i < edges[k]:
            x[i] = max(law.a, min(moved, law.g + d))
        else:
            x[i] = min(law.b, max(moved, law.g + d))
