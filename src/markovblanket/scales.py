"""Between the scale of a column's data and the latent one, for each way a column enters the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import ndtr

from markovblanket import cuts
from markovblanket.contracts import Array
from markovblanket.levels import Column
from markovblanket.margins import normal_scores


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

    Ranks know nothing beyond the smallest and the largest value: what lies there is mapped to these.
    """

    values: Array
    latent: Array

    @classmethod
    def of(cls, values: Array, latent: Array) -> Curve:
        """Through the observed cells; cells of one value at their mean latent value."""
        observed = ~np.isnan(values)
        y, place, counts = np.unique(values[observed], return_inverse=True, return_counts=True)
        return cls(y, np.bincount(place, weights=latent[observed]) / counts)

    @classmethod
    def of_scores(cls, values: Array) -> Curve:
        """Through the normal scores of the observed cells."""
        observed = values[~np.isnan(values)]
        return cls.of(observed, normal_scores(observed[:, None])[:, 0])

    def bounds(self, values: Array) -> tuple[Array, Array]:
        """Known."""
        x = np.interp(values, self.values, self.latent)
        return x, x

    def data(self, x: Array) -> Array:
        """Values on the curve."""
        return np.interp(x, self.latent, self.values)


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
        bottom, top = cuts.extremes(latent[order], begins)
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


def of_column(rng: np.random.Generator, column: Column, latent: Array | None, by_rank: bool = False) -> Scale:
    """The scale of a column of a copula; ``latent`` are the values of one that moves, as they stood in a draw."""
    if latent is None or (column.kind == "continuous" and not by_rank):
        return Curve.of_scores(column.values)
    if column.kind == "continuous":
        return Curve.of(column.values, latent)
    return Steps.draw(rng, column.values, latent)
