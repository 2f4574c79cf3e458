"""Transforms between the data of a column and its latent values, for each way a column enters the model."""

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
    """Transform between numbers or codes, as in ``Column.values``, and latent values; NaN stays NaN."""

    def bounds(self, values: Array) -> tuple[Array, Array]:
        """Return the bounds of the latent values of cells; equal where these are known exactly."""

    def data(self, x: Array) -> Array:
        """Return the numbers or codes that correspond to latent values."""


@dataclass(frozen=True, eq=False)
class Standard:
    """Standardisation of a Gaussian column: ``x = (y - mean) / sd``."""

    mean: float
    sd: float

    def bounds(self, values: Array) -> tuple[Array, Array]:
        """Return the latent values, known exactly, as both bounds."""
        x = (values - self.mean) / self.sd
        return x, x

    def data(self, x: Array) -> Array:
        """Return the data ``y = mean + sd x`` for latent values x."""
        return self.mean + self.sd * x


@dataclass(frozen=True, eq=False)
class Curve:
    """Increasing, piecewise linear transform of a continuous column, through its observed and latent values.

    A value shared by several cells covers a latent interval, from ``lowest`` to ``highest``. Ranks contain no
    information beyond the smallest and the largest value: latent values beyond are mapped to these.
    """

    values: Array
    lowest: Array
    middle: Array
    highest: Array

    @classmethod
    def of(cls, values: Array, latent: Array) -> Curve:
        """Return the curve through the observed cells and their latent values."""
        observed = ~np.isnan(values)
        y, place, counts = np.unique(values[observed], return_inverse=True, return_counts=True)
        x = np.sort(latent[observed])  # the latent values have the same order as the observed ones
        last = np.cumsum(counts) - 1
        middle = np.bincount(place, weights=latent[observed]) / counts
        return cls(y, x[last - counts + 1], middle, x[last])

    @classmethod
    def of_scores(cls, values: Array) -> Curve:
        """Return the curve through normal scores; tied values cover the scores they would have without ties."""
        observed = np.sort(values[~np.isnan(values)])
        n = len(observed)
        apart, shared = (ndtri(ranks / (n + 1)) for ranks in (np.arange(1, n + 1), stats.rankdata(observed)))
        centre = shared.mean()
        spread = np.sqrt(np.mean((shared - centre) ** 2))
        curve = cls.of(observed, (apart - centre) / spread)
        middle = cls.of(observed, (shared - centre) / spread).middle
        return replace(curve, middle=middle)

    def bounds(self, values: Array) -> tuple[Array, Array]:
        """Return known latent values: the middle of an observed value's interval, otherwise interpolated."""
        x = np.interp(values, *self._knots)
        place = np.minimum(np.searchsorted(self.values, values), len(self.values) - 1)
        x = np.where(self.values[place] == values, self.middle[place], x)
        return x, x

    def data(self, x: Array) -> Array:
        """Return the values on the curve, rounded to integers if only integers were observed."""
        y = np.interp(x, *self._knots[::-1])
        return np.rint(y) if np.all(np.rint(self.values) == self.values) else y

    @cached_property
    def _knots(self) -> tuple[Array, Array]:
        """Values and latent values of the knots of the curve."""
        return np.repeat(self.values, 2), np.stack([self.lowest, self.highest], axis=1).ravel()


@dataclass(frozen=True, eq=False)
class Steps:
    """Step transform of a column with levels: level l lies between the cut points l and l + 1.

    The outermost cut points are infinite. A code such as 1.5 stands for a value that was never observed, between
    two levels or outside all of them: its latent value lies between the extremes of the adjacent levels.
    """

    cuts: Array
    bottom: Array
    top: Array

    @classmethod
    def draw(cls, rng: np.random.Generator, codes: Array, latent: Array) -> Steps:
        """Return steps whose cut points are drawn uniformly between the extremes of adjacent levels."""
        observed = np.flatnonzero(~np.isnan(codes))
        order = observed[np.argsort(codes[observed], kind="stable")]
        begins = np.searchsorted(codes[order], np.arange(codes[order[-1]] + 1))
        bottom, top = extremes(latent[order], begins)
        inner = top[:-1] + rng.random(len(begins) - 1) * (bottom[1:] - top[:-1])
        return cls(np.concatenate([[-np.inf], inner, [np.inf]]), bottom, top)

    def bounds(self, values: Array) -> tuple[Array, Array]:
        """Return the cut points around each level; for codes such as 1.5, the extremes of the adjacent levels."""
        known = np.nan_to_num(values)
        level, between = np.floor(known).astype(int), known % 1 > 0
        below, above = np.concatenate([[-np.inf], self.top]), np.append(self.bottom, np.inf)
        lower = np.where(between, below[level + 1], self.cuts[np.maximum(level, 0)])
        upper = np.where(between, above[level + 1], self.cuts[np.minimum(level + 1, len(self.top))])
        return np.where(np.isnan(values), np.nan, lower), np.where(np.isnan(values), np.nan, upper)

    def probabilities(self, mean: Array, sd: float) -> Array:
        """Return the probability of every level for latent values ``N(mean, sd^2)``, one row per value."""
        return np.diff(ndtr((self.cuts - mean[:, None]) / sd), axis=1)

    def data(self, x: Array) -> Array:
        """Return the code of the level that contains each latent value."""
        return np.where(np.isnan(x), np.nan, np.searchsorted(self.cuts[1:-1], x).astype(float))


def of_column(rng: np.random.Generator, column: Column, latent: Array) -> Scale:
    """Return the transform of a moving column, given its latent values in one posterior draw."""
    if column.kind == "continuous":
        return Curve.of(column.values, latent)
    return Steps.draw(rng, column.values, latent)
