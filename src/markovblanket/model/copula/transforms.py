"""Between the scale of a column's data and the latent one, for each way a column enters the model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy import stats
from scipy.special import ndtr, ndtri

from markovblanket.contracts import Array
from markovblanket.model.copula._cut_points import extremes

if TYPE_CHECKING:
    from markovblanket.tables.columns import Column


class Scale(Protocol):
    """Both ways between numbers or codes, as in ``Column.values``, and latent values; NaN stays NaN."""

    def bounds(self, values: Array) -> tuple[Array, Array]:
        """Between which latent values the cells lie; equal ends where they are known."""

    def data(self, x: Array) -> Array:
        """Numbers or codes from latent values."""


@dataclass(frozen=True, eq=False)
class Standard:
    """``x = (y - mean) / sd``."""

    mean: float
    sd: float

    def bounds(self, values: Array) -> tuple[Array, Array]:
        """Known."""
        x = (values - self.mean) / self.sd
        return x, x

    def data(self, x: Array) -> Array:
        """``y = mean + sd x``."""
        return self.mean + self.sd * x


@dataclass(frozen=True, eq=False)
class Curve:
    """A continuous column: increasing between what was observed and its latent values, straight in between.

    A value that several cells share covers an interval, from ``lowest`` to ``highest``. Ranks know nothing beyond
    the smallest and the largest value: what lies there is mapped to these.
    """

    values: Array
    lowest: Array
    middle: Array
    highest: Array

    @classmethod
    def of(cls, values: Array, latent: Array) -> Curve:
        """Through the observed cells."""
        observed = ~np.isnan(values)
        y, place, counts = np.unique(values[observed], return_inverse=True, return_counts=True)
        x = np.sort(latent[observed])  # the order of the values, too
        last = np.cumsum(counts) - 1
        middle = np.bincount(place, weights=latent[observed]) / counts
        return cls(y, x[last - counts + 1], middle, x[last])

    @classmethod
    def of_scores(cls, values: Array) -> Curve:
        """Through the normal scores of the observed cells; tied ones cover what they would have apart."""
        observed = np.sort(values[~np.isnan(values)])
        n = len(observed)
        apart, shared = (ndtri(ranks / (n + 1)) for ranks in (np.arange(1, n + 1), stats.rankdata(observed)))
        centre = shared.mean()
        spread = np.sqrt(np.mean((shared - centre) ** 2))
        curve = cls.of(observed, (apart - centre) / spread)
        middle = cls.of(observed, (shared - centre) / spread).middle
        return replace(curve, middle=middle)

    def bounds(self, values: Array) -> tuple[Array, Array]:
        """Known: an observed value in the middle of what it covers, others on the line between."""
        x = np.interp(values, *self._knots)
        place = np.minimum(np.searchsorted(self.values, values), len(self.values) - 1)
        x = np.where(self.values[place] == values, self.middle[place], x)
        return x, x

    def data(self, x: Array) -> Array:
        """Values on the curve; whole ones if only such were observed."""
        y = np.interp(x, *self._knots[::-1])
        return np.rint(y) if np.all(np.rint(self.values) == self.values) else y

    @cached_property
    def _knots(self) -> tuple[Array, Array]:
        """Values and latent values where the curve bends."""
        return np.repeat(self.values, 2), np.stack([self.lowest, self.highest], axis=1).ravel()


@dataclass(frozen=True, eq=False)
class Steps:
    """A column with levels: level l lies between the cuts l and l + 1, the outermost of which are infinite.

    A code with a half stands for a value that was never observed, between two levels or beyond the last: all that
    is known of its latent value is that it lies beyond the extremes of the levels beside it.
    """

    cuts: Array
    bottom: Array
    top: Array

    @classmethod
    def draw(cls, rng: np.random.Generator, codes: Array, latent: Array) -> Steps:
        """Cuts uniformly between the extremes of the levels on either side."""
        observed = np.flatnonzero(~np.isnan(codes))
        order = observed[np.argsort(codes[observed], kind="stable")]
        begins = np.searchsorted(codes[order], np.arange(codes[order[-1]] + 1))
        bottom, top = extremes(latent[order], begins)
        inner = top[:-1] + rng.random(len(begins) - 1) * (bottom[1:] - top[:-1])
        return cls(np.concatenate([[-np.inf], inner, [np.inf]]), bottom, top)

    def bounds(self, values: Array) -> tuple[Array, Array]:
        """Between the cuts around a level; a half code between the levels around it."""
        known = np.nan_to_num(values)
        level, between = np.floor(known).astype(int), known % 1 > 0
        below, above = np.concatenate([[-np.inf], self.top]), np.append(self.bottom, np.inf)
        lower = np.where(between, below[level + 1], self.cuts[np.maximum(level, 0)])
        upper = np.where(between, above[level + 1], self.cuts[np.minimum(level + 1, len(self.top))])
        return np.where(np.isnan(values), np.nan, lower), np.where(np.isnan(values), np.nan, upper)

    def probabilities(self, mean: Array, sd: float) -> Array:
        """Of every level for values ``N(mean, sd^2)``: a row per value."""
        return np.diff(ndtr((self.cuts - mean[:, None]) / sd), axis=1)

    def data(self, x: Array) -> Array:
        """The code of the level where each value falls."""
        return np.where(np.isnan(x), np.nan, np.searchsorted(self.cuts[1:-1], x).astype(float))


def of_column(rng: np.random.Generator, column: Column, latent: Array) -> Scale:
    """The scale of a column whose latent values move, as they stood in a draw."""
    if column.kind == "continuous":
        return Curve.of(column.values, latent)
    return Steps.draw(rng, column.values, latent)
