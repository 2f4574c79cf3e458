"""Margins: how the cells of a column that moves are drawn, given that they are normal.

A :class:`Gaps` column keeps the scores of what was observed; a :class:`Levels` column is known by its order alone,
the extended rank likelihood of Hoff (2007).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from markovblanket import cuts
from markovblanket.contracts import Array
from markovblanket.variates import truncated_normal

Indices = npt.NDArray[np.intp]


class Margin(Protocol):
    """How the cells of a moving column are drawn."""

    @property
    def missing(self) -> Indices:
        """Rows without an observation."""

    def draw(self, rng: np.random.Generator, x: Array, mean: Array, sd: float) -> Array:
        """The column, its moving cells drawn from ``N(mean, sd^2)`` where they are allowed to be."""


@dataclass(frozen=True)
class Gaps:
    """Observed cells stay; the missing ones are normal."""

    missing: Indices

    def draw(self, rng: np.random.Generator, x: Array, mean: Array, sd: float) -> Array:
        """``x_i ~ N(mean_i, sd^2)`` for every missing cell i."""
        x = x.copy()
        x[self.missing] = mean[self.missing] + sd * rng.standard_normal(len(self.missing))
        return x


@dataclass(frozen=True)
class Levels:
    """A column known by its order alone: ``codes`` 0, 1, ... from the lowest level up, -1 where missing."""

    codes: Indices

    @cached_property
    def missing(self) -> Indices:
        """Rows without an observation."""
        return np.flatnonzero(self.codes < 0)

    @cached_property
    def _sorted(self) -> tuple[Indices, Indices]:
        """Observed rows in order of their levels, and where each level begins."""
        order = np.argsort(self.codes, kind="stable")[len(self.missing) :]
        return order, np.searchsorted(self.codes[order], np.arange(self.codes.max() + 1))

    @cached_property
    def _halves(self) -> tuple[Indices, Indices]:
        """Observed rows of even and of odd levels: given one half, the cells of the other are independent."""
        observed = self.codes >= 0
        even, odd = (np.flatnonzero(observed & (self.codes % 2 == parity)) for parity in (0, 1))
        return even, odd

    def draw(self, rng: np.random.Generator, x: Array, mean: Array, sd: float) -> Array:
        """The ordered cells, then their cut points, then to mean square 1.

        Ranks say nothing about a column's scale, but the prior does; without the last step it would drift.
        """
        x = self.draw_ordered(rng, x, mean, sd)
        order, begins = self._sorted
        x[order] = cuts.move(rng, x[order], mean[order], sd, begins)
        return x / np.sqrt(np.mean(x**2))

    def draw_ordered(self, rng: np.random.Generator, x: Array, mean: Array, sd: float) -> Array:
        """``x_i ~ N(mean_i, sd^2)``, every observed cell between the extremes of the levels next to its own."""
        x = x.copy()
        x[self.missing] = mean[self.missing] + sd * rng.standard_normal(len(self.missing))
        for rows in self._halves:
            lower, upper = self._bounds(x, self.codes[rows])
            centre = mean[rows]
            x[rows] = centre + sd * truncated_normal.draw(rng, (lower - centre) / sd, (upper - centre) / sd)
        return x

    def _bounds(self, x: Array, codes: Indices) -> tuple[Array, Array]:
        """The largest value one level below, the smallest one level above."""
        order, begins = self._sorted
        below = np.concatenate([[-np.inf], np.maximum.reduceat(x[order], begins)])
        above = np.concatenate([np.minimum.reduceat(x[order], begins), [np.inf]])
        return below[codes], above[codes + 1]


def normal_scores(values: Array) -> Array:
    """``Phi^-1(rank / (n + 1))`` of every column, ties shared, then to mean 0 and mean square 1.

    Examples
    --------
    >>> import numpy as np
    >>> normal_scores(np.array([[10.0], [300.0], [20.0]])).ravel().round(2)
    array([-1.22,  1.22,  0.  ])
    """
    z = special.ndtri(stats.rankdata(values, axis=0) / (len(values) + 1))
    z = z - z.mean(axis=0)
    return z / np.sqrt(np.mean(z**2, axis=0))


def moving_column(values: Array, continuous: bool) -> tuple[Array, Margin]:
    """First values and margin of a column that moves: numbers or codes of levels, NaN where missing."""
    observed = ~np.isnan(values)
    x = np.zeros(len(values))
    x[observed] = normal_scores(values[observed, None])[:, 0]
    if continuous:
        return x, Gaps(np.flatnonzero(~observed))
    codes = np.full(len(values), -1)
    codes[observed] = np.unique(values[observed], return_inverse=True)[1]
    return x, Levels(codes)
