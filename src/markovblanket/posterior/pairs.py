"""The difference of two independent quantities, over all pairs of their draws.

N draws of each make N^2 draws of the difference. They are counted, not formed: with both sets in ascending order,
every count is a search of one in the other, O(N log N).
"""

from __future__ import annotations

import math

import numpy as np

from markovblanket.contracts import Array

# Of the range of all differences; what is left of it is about a rounding error.
HALVINGS = 50


def signs(a: Array, b: Array) -> tuple[float, float]:
    """``P(a > b)`` and ``P(a < b)`` over all pairs; ``b`` ascends.

    Examples
    --------
    >>> signs(np.array([0.0, 1.0]), np.array([-1.0, 0.0, 0.0, 3.0]))
    (0.5, 0.25)
    """
    below = np.searchsorted(b, a, side="left").sum()
    above = a.size * b.size - np.searchsorted(b, a, side="right").sum()
    return float(below) / (a.size * b.size), float(above) / (a.size * b.size)


def quantile(a: Array, b: Array, tail: float) -> float:
    """The smallest difference of a pair up to which there are at least the share ``tail`` of all; both ascend.

    So ``P(a > b) > 1 - tail`` exactly where it is positive.

    Examples
    --------
    >>> quantile(np.array([1.0, 2.0]), np.array([0.0, 0.5, 4.0]), 0.5)
    0.5
    """
    wanted = max(1, math.ceil(tail * a.size * b.size))
    rounding = 4 * np.finfo(float).eps * max(abs(a[0]), abs(a[-1]), abs(b[0]), abs(b[-1]))
    low, high = a[0] - b[-1], a[-1] - b[0] + rounding
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if count(a, b, middle) >= wanted else (middle, high)
    return largest(a, b, high + rounding)


def count(a: Array, b: Array, most: float) -> int:
    """How many pairs have a difference of at most this."""
    return int(a.size * b.size - np.searchsorted(b, a - most, side="left").sum())


def largest(a: Array, b: Array, most: float) -> float:
    """The largest difference of a pair that is at most this."""
    place = np.searchsorted(b, a - most, side="left")
    return float(np.max((a - b[np.minimum(place, b.size - 1)])[place < b.size]))
