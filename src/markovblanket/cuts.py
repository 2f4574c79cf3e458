"""Cut points between the levels of a column, moved together with the cells of whole levels.

Drawn one by one, n cells hold the cut between two levels in place: it lies between the largest cell below and the
smallest above, a gap of order 1/n, where the posterior lets it roam over 1/sqrt(n). So after the cells have been
drawn, a cut g is laid into the gap, uniformly, and each cell of the two levels beside it is written as its place
between g and the nearest cell of the next level but one, a below or b above. In these coordinates the law of g is
that of its shift d, which takes the cells of both levels along, each as far as its slope ``v`` says::

    prod_i N(x_i + v_i d; mu_i, sd^2)  (1 + d/(g - a))^n_below  (1 - d/(b - g))^n_above  /  gap(d)

the powers being the Jacobian, and ``1/gap`` the density of the cut given the cells. Every third cut moves at once,
the first of them chosen at random, by slice sampling: the levels between two of them stand still. What is left
invariant is the law of the cells, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from markovblanket.contracts import Array
from markovblanket.variates import slice

Indices = npt.NDArray[np.intp]
TINY = 1e-200
FAR = 1e6  # the outermost levels are stretched from here; any constant leaves the law invariant


def move(rng: np.random.Generator, x: Array, mean: Array, sd: float, begins: Indices) -> Array:
    """Cells in the order of their levels, ``x_i ~ N(mean_i, sd^2)`` as long as this order lasts, some moved.

    Parameters
    ----------
    rng : numpy.random.Generator
        The source of randomness.
    x, mean : numpy.ndarray
        Cells, level after level, and their means.
    sd : float
        Their standard deviation.
    begins : numpy.ndarray
        Where each level begins.

    Examples
    --------
    >>> x = np.array([-1.0, -0.5, 0.4, 0.3, 2.0])
    >>> moved = move(np.random.default_rng(0), x, np.zeros(5), 1.0, np.array([0, 2, 4]))
    >>> bool(moved[:2].max() < moved[2:4].min() and moved[2:4].max() < moved[4])
    True
    """
    counts = np.diff(begins, append=len(x))
    first = rng.integers(1, min(4, len(begins)))
    above = np.arange(first, len(begins), 3)  # the levels above the cuts that move
    law = Stretch.of(rng, x, mean, sd, begins, counts, above)
    shift = slice.step_each(rng, law.log_density, *law.bracket(rng))
    return x + law.slopes * np.repeat(_on_both_sides(shift, above, len(begins)), counts)


def extremes(x: Array, begins: Indices) -> tuple[Array, Array]:
    """Smallest and largest cell of every level."""
    return np.minimum.reduceat(x, begins), np.maximum.reduceat(x, begins)


def _on_both_sides(values: Array, above: Indices, levels: int) -> Array:
    """Values of the cuts as values of the levels beside them; 0 for the others."""
    out = np.zeros(levels)
    out[above - 1] = out[above] = values
    return out


@dataclass(frozen=True, eq=False)
class Stretch:
    """The laws of the shifts of several cuts, and the slopes by which the cells follow."""

    slopes: Array
    linear: Array
    quadratic: Array
    counts: tuple[Indices, Indices]
    room: tuple[Array, Array]
    widening: Array

    @classmethod
    def of(
        cls,
        rng: np.random.Generator,
        x: Array,
        mean: Array,
        sd: float,
        begins: Indices,
        counts: Indices,
        above: Indices,
    ) -> Stretch:
        """Of cuts laid into the gaps below the levels ``above``, between fixed ends two levels away."""
        bottom, top = extremes(x, begins)
        low, high = top[above - 1], bottom[above]
        g = low + rng.random(len(above)) * (high - low)
        a = np.concatenate([[-FAR], top])[above - 1]
        b = np.append(bottom, FAR)[above + 1]
        # Cells that rounding made equal leave no room; they wait for the next sweep.
        room = np.maximum(g - a, TINY), np.maximum(b - g, TINY)
        still, follow = np.zeros(len(begins)), np.zeros(len(begins))
        still[above - 1], still[above] = a, b
        follow[above - 1], follow[above] = 1 / room[0], -1 / room[1]
        slopes = (x - np.repeat(still, counts)) * np.repeat(follow, counts)
        linear = np.add.reduceat(slopes * (x - mean), begins) / sd**2
        quadratic = np.add.reduceat(slopes * slopes, begins) / sd**2
        return cls(
            slopes,
            linear[above - 1] + linear[above],
            quadratic[above - 1] + quadratic[above],
            (counts[above - 1], counts[above]),
            room,
            ((b - high) / room[1] - (low - a) / room[0]) / np.maximum(high - low, TINY),
        )

    def log_density(self, d: Array) -> Array:
        """Of shifts d, relative to none; not a number where they are impossible."""
        with np.errstate(divide="ignore", invalid="ignore"):
            jacobian = self.counts[0] * np.log1p(d / self.room[0]) + self.counts[1] * np.log1p(-d / self.room[1])
            return jacobian - d * (self.linear + 0.5 * d * self.quadratic) - np.log1p(d * self.widening)

    def bracket(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Intervals about no shift at all, of a length that no shift changes, inside what is possible."""
        width = 6 / np.sqrt(np.maximum(self.quadratic, TINY)) * (np.minimum(*self.room) > TINY)
        left = -width * rng.random(len(width))
        return np.maximum(left, -self.room[0]), np.minimum(left + width, self.room[1])
