"""Edges of a posterior: statistics of all pairs, tables, a graph, and the draws of single edges.

A pair is a row, a query variable, and a column, any variable, those of the query first: :class:`AllPairs`. Pairs
within the query come from draws of ``W11``, which are always kept (:class:`FromDraws`); pairs with other variables
from draws of ``W12`` or, if these were not kept, from what an ``EdgeStream`` summed up (:class:`FromStreams`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import networkx as nx
import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from markovblanket.chains.streaming import Layout
from markovblanket.contracts import Array
from markovblanket.posterior import selection
from markovblanket.posterior.observed import edge_name
from markovblanket.posterior.prediction import coefficients
from markovblanket.posterior.selection import DEFAULT_LEVEL
from markovblanket.posterior.summaries import convergence, pooled, stacked, tails
from markovblanket.tables.columns import spans

Positions = npt.NDArray[np.intp]

# The columns of a table of edges, in their order, and those that are added on request.
COLUMNS = (
    "query",
    "variable",
    "probability",
    "partial_correlation",
    "lower",
    "upper",
    "direction",
    "bayes_factor",
    "rhat",
    "ess",
)
DETAILS = ("sign_probability", "coefficient", "precision", "partial_correlation_averaged", "ess_tail")
# Attributes of the edges of a graph, besides its weight and sign.
ATTRIBUTES = ("probability", "partial_correlation", "lower", "upper")


# Tables and graphs ------------------------------------------------------------------------------------


def once(matrix: Array) -> tuple[Positions, Positions]:
    """Return the positions of the true entries of a matrix of pairs, each pair once: above its diagonal.

    >>> once(np.ones((2, 3)))
    (array([0, 0, 1]), array([1, 2, 2]))
    """
    i, k = np.nonzero(np.triu(matrix, k=1))
    return i, k


def mirrored(mask: selection.Mask) -> selection.Mask:
    """Return a mask of pairs in which both entries of a pair within the query are true if one is."""
    both, p = mask.copy(), len(mask)
    both[:, :p] |= mask[:, :p].T
    return both


def bayes_factor(probability: Array, prior: Array | float | None) -> Array:
    """Return posterior odds over prior odds; missing if the prior probability of an edge is not known.

    >>> bayes_factor(np.array([0.5, 0.9]), 0.1).round(1)
    array([ 9., 81.])
    """
    if prior is None:
        return np.full(np.shape(probability), np.nan)
    with np.errstate(divide="ignore"):
        return np.asarray(probability / (1 - probability) / (prior / (1 - prior)))


def directions(partial: Iterable[float]) -> list[str]:
    """Return "+" or "-" for each partial correlation, and an empty text where it is missing.

    >>> directions([0.2, -0.1, float("nan")])
    ['+', '-', '']
    """
    return ["+" if value > 0 else "-" if value < 0 else "" for value in partial]


def surest_first(table: pd.DataFrame, probability: pd.Series, mean: str, sd: str) -> pd.DataFrame:
    """Sort a table by a probability, the largest first, ties by the mean in standard deviations."""
    size = (table[mean] / table[sd].where(table[sd] > 0)).abs().fillna(0)
    return table.iloc[np.lexsort([-size, -probability])].reset_index(drop=True)


def neighbours(query: Sequence[Any], edges: pd.DataFrame) -> dict[Any, list[Any]]:
    """Return the neighbours of each query variable, in the order of the table of edges."""
    found: dict[Any, list[Any]] = {name: [] for name in query}
    for one, other in zip(edges["query"], edges["variable"], strict=True):
        found[one].append(other)
        if other in found:
            found[other].append(one)
    return found


def graph(query: Sequence[Any], edges: pd.DataFrame) -> nx.Graph:
    """Return a graph with a node per variable and an edge per row, whose attributes can be saved as GraphML.

    The weight of an edge is its partial correlation.
    """
    made = nx.Graph()
    made.add_nodes_from(query, query=True)
    for row in edges.itertuples():
        if row.variable not in made:
            made.add_node(row.variable, query=False)
        values = {name: float(getattr(row, name)) for name in ATTRIBUTES}
        made.add_edge(row.query, row.variable, **values, weight=values["partial_correlation"], sign=row.direction)
    return made


# Statistics of pairs ----------------------------------------------------------------------------------


class EdgeStatistics(Protocol):
    """Statistics of the pairs of query variables and some others; matrices have a row per query variable."""

    @property
    def sign_probability(self) -> Array:
        """``max(P(w > 0), P(w < 0))`` of each pair; exact zeros count for neither."""

    @property
    def nonzero(self) -> Array:
        """The share of draws of each pair that are not exactly zero."""

    def table(self, i: Positions, j: Positions) -> pd.DataFrame:
        """Return a row per pair.

        ``partial_correlation``, ``sd``, ``lower`` and ``upper``: mean, sd and 95 % interval over the draws that
        are not zero. ``partial_correlation_averaged`` and ``sd_averaged``: the same over all draws.
        ``sign_probability``; ``coefficient`` and ``precision``: means of ``-w_ij / w_ii`` and ``w_ij`` over all
        draws; ``rhat``, ``ess`` and ``ess_tail``.
        """

    def quality(self, i: Positions, j: Positions) -> pd.DataFrame:
        """Return R-hat, bulk and tail ESS, a row per pair; missing for a pair that is never included."""

    def ordered(self, i: int, j: int) -> Array:
        """Return the partial correlations of one pair, ascending; from a histogram if draws were not kept."""


def all_pairs(draws: xr.Dataset, streams: xr.Dataset | None) -> AllPairs:
    """Return the statistics of all pairs: those with other variables from streams, if there are some."""
    rest: EdgeStatistics = (
        FromDraws.with_rest(draws) if streams is None else FromStreams(streams, draws.sizes["draw"])
    )
    return AllPairs(FromDraws.within_query(draws), rest)


def rest_coefficients(draws: xr.Dataset, streams: xr.Dataset | None) -> Array:
    """Return the posterior mean of ``-U W12``, the coefficients of the regression of the query on the rest."""
    if not draws.sizes["variable"]:
        raise ValueError("there are no other variables to predict from: every variable is a query variable")
    if streams is not None:
        return FromStreams(streams, draws.sizes["draw"]).coefficients
    return coefficients(stacked(draws["W11"]), stacked(draws["W12"])).mean(axis=0)


@dataclass(frozen=True, eq=False)
class AllPairs:
    """Statistics of every pair: rows are the p query variables, columns all d variables, the query first."""

    within: FromDraws
    rest: EdgeStatistics

    @property
    def p(self) -> int:
        """Number p of query variables."""
        return self.within.weight.shape[2]

    @cached_property
    def sign_probability(self) -> Array:
        """``max(P(w > 0), P(w < 0))`` of each pair, p x d; the diagonal is missing."""
        return self._joined(self.within.sign_probability, self.rest.sign_probability)

    @cached_property
    def nonzero(self) -> Array:
        """The share of draws of each pair that are not exactly zero, p x d; the diagonal is missing."""
        return self._joined(self.within.nonzero, self.rest.nonzero)

    def table(self, i: Positions, k: Positions) -> pd.DataFrame:
        """Return the table of :meth:`EdgeStatistics.table` for any pairs."""
        inner = k < self.p
        return self._put_together(
            inner, self.within.table(i[inner], k[inner]), self.rest.table(i[~inner], k[~inner] - self.p)
        )

    def quality(self, i: Positions, k: Positions) -> pd.DataFrame:
        """Return R-hat, bulk and tail ESS of any pairs."""
        inner = k < self.p
        return self._put_together(
            inner, self.within.quality(i[inner], k[inner]), self.rest.quality(i[~inner], k[~inner] - self.p)
        )

    def ordered(self, i: int, k: int) -> Array:
        """Return the partial correlations of one pair, ascending."""
        return self.within.ordered(i, k) if k < self.p else self.rest.ordered(i, k - self.p)

    def _joined(self, within: Array, rest: Array) -> Array:
        """Return one matrix of both kinds of pairs, without its diagonal."""
        whole = np.hstack([within, rest])
        np.fill_diagonal(whole, np.nan)
        return whole

    def _put_together(
        self, inner: npt.NDArray[np.bool_], within: pd.DataFrame, rest: pd.DataFrame
    ) -> pd.DataFrame:
        """Return the rows of both kinds of pairs in the order in which the pairs were given."""
        order = np.concatenate([np.flatnonzero(inner), np.flatnonzero(~inner)])
        parts = [part for part in (within, rest) if len(part)] or [rest]
        return pd.concat(parts, ignore_index=True).set_axis(order).sort_index()


# Draws of single edges --------------------------------------------------------------------------------


def every_draw(draws: xr.Dataset) -> xr.DataArray:
    """Return the draws of ``W12``; raise a ValueError if they were not all kept."""
    if "W12" not in draws:
        raise ValueError('this needs every draw of W12, but only a summary was kept: estimate with keep="draws"')
    return draws["W12"]


def draws_of_edge(draws: xr.Dataset, query: Any, variable: Any, of: str = "precision") -> xr.DataArray:
    """Return draws of the entry of the precision matrix, or of the partial correlation, of one edge.

    The variable may be a query variable, too. Raises a ValueError if the draws were not kept.
    """
    if variable in draws["query"].values.tolist():
        return _drawn(draws, draws["W11"].sel(query=query, query_other=variable), query, variable, of)
    if "edge" in draws.dims:
        found = (draws["edge_query"].values == query) & (draws["edge_variable"].values == variable)
        if found.any():
            name = "kept_weight" if of == "precision" else "kept_partial_correlation"
            return draws[name].isel(edge=int(np.argmax(found)))
    if "W12" in draws:
        return _drawn(draws, draws["W12"].sel(query=query, variable=variable), query, variable, of)
    name = edge_name(query, variable)
    raise ValueError(f'the draws of {name} were not kept: estimate with keep="draws", or name it in named=[...]')


def _drawn(draws: xr.Dataset, weight: xr.DataArray, query: Any, variable: Any, of: str) -> xr.DataArray:
    """Return the draws of a weight, or of its partial correlation ``-w_ij / sqrt(w_ii w_jj)``."""
    if of == "precision":
        return weight
    w_ii = draws["W11"].sel(query=query, query_other=query)
    if "query_other" in weight.coords:
        w_jj = draws["W11"].sel(query=variable, query_other=variable)
    else:
        w_jj = draws["W22_diagonal"].sel(variable=variable)
    return weight.copy(data=-weight.values / np.sqrt(w_ii.values * w_jj.values))


def kept_variables(draws: xr.Dataset, query: Any, among: Iterable[Any]) -> list[Any]:
    """Return the variables whose edge with a query variable has its draws kept."""
    if "W12" in draws:
        return list(among)
    kept = set(draws["edge_variable"].values[draws["edge_query"].values == query].tolist())
    kept |= set(draws["query"].values.tolist())
    return [name for name in among if name in kept]


def kept_where(draws: xr.Dataset) -> str:
    """Describe where the draws were kept besides streamed statistics."""
    return "on disk" if "W12" in draws else f"as a summary with the draws of {draws.sizes['edge']} edges"


# Statistics from draws --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FromDraws:
    """Statistics of pairs from draws, (chain, draw, ...), that are all in memory.

    ``weight`` has the entries ``w_ij`` of the precision matrix; ``w_ii`` and ``w_jj`` are the entries on its
    diagonal of the rows and of the columns.
    """

    weight: Array
    w_ii: Array
    w_jj: Array

    @classmethod
    def within_query(cls, draws: xr.Dataset) -> FromDraws:
        """Return the statistics of the pairs within the query."""
        W11 = draws["W11"].values
        diagonal = np.einsum("...ii->...i", W11)
        return cls(W11, diagonal, diagonal)

    @classmethod
    def with_rest(cls, draws: xr.Dataset) -> FromDraws:
        """Return the statistics of the pairs of a query variable and another one."""
        diagonal = np.einsum("...ii->...i", draws["W11"].values)
        return cls(draws["W12"].values, diagonal, draws["W22_diagonal"].values)

    @cached_property
    def sign_probability(self) -> Array:
        """``max(P(w > 0), P(w < 0))`` of each pair."""
        return selection.sign_probability(pooled(self.weight))

    @cached_property
    def nonzero(self) -> Array:
        """The share of draws of each pair that are not exactly zero."""
        return np.asarray((pooled(self.weight) != 0).mean(axis=0))

    def table(self, i: Positions, j: Positions) -> pd.DataFrame:
        """Return the table of the chosen pairs, some at a time."""
        draws = self.weight.shape[0] * self.weight.shape[1]
        parts = [self._table(i[span], j[span]) for span in spans(draws, len(i))] or [self._table(i, j)]
        return pd.concat(parts, ignore_index=True)

    def _table(self, i: Positions, j: Positions) -> pd.DataFrame:
        weight, partial = pooled(self._weight(i, j)), pooled(self.partial_correlation(i, j))
        coefficient = -weight / pooled(self.w_ii[:, :, i])
        columns = {
            **_if_present(partial, weight != 0),
            "partial_correlation_averaged": partial.mean(axis=0),
            "sd_averaged": partial.std(axis=0, ddof=min(1, len(partial) - 1)),
            "sign_probability": selection.sign_probability(weight),
            "coefficient": coefficient.mean(axis=0),
            "precision": weight.mean(axis=0),
        }
        return pd.DataFrame(columns).join(self.quality(i, j).rename(columns={"ess_bulk": "ess"}))

    def quality(self, i: Positions, j: Positions) -> pd.DataFrame:
        """Return rank-normalised R-hat, bulk and tail ESS, as ArviZ computes them."""
        weight = self._weight(i, j)
        return convergence({k: weight[:, :, k] for k in range(len(i))})

    def partial_correlation(self, i: Any, j: Any) -> Array:
        """Return the partial correlations ``-w_ij / sqrt(w_ii w_jj)`` of the chosen pairs in each draw."""
        return np.asarray(-self._weight(i, j) / np.sqrt(self.w_ii[:, :, i] * self.w_jj[:, :, j]))

    def ordered(self, i: int, j: int) -> Array:
        """Return the partial correlations of one pair, ascending."""
        return np.sort(self.partial_correlation(i, j), axis=None)

    def _weight(self, i: Any, j: Any) -> Array:
        """Return the draws of the weights of the chosen pairs."""
        return np.asarray(self.weight[:, :, i, j])


def _if_present(values: Array, present: npt.NDArray[np.bool_]) -> dict[str, Array]:
    """Return mean, sd and central interval of the values in draws in which a pair is present: draws x pairs."""
    ordered = np.sort(np.where(present, values, np.nan), axis=0)  # absent draws are last
    count, total = present.sum(axis=0), values.sum(axis=0, where=present)
    mean = _share(total, count)
    squares = ((values - mean) ** 2).sum(axis=0, where=present)
    lower, upper = (_quantile_of_first(ordered, count, tail) for tail in tails(DEFAULT_LEVEL))
    return {
        "partial_correlation": mean,
        "sd": np.sqrt(_share(squares, np.maximum(count - 1, 0))),
        "lower": lower,
        "upper": upper,
    }


def _share(total: Array, count: Array) -> Array:
    """Return ``total / count``; missing where the count is zero."""
    return np.asarray(total / np.where(count > 0, count, np.nan))


def _quantile_of_first(ordered: Array, count: Array, tail: float) -> Array:
    """Return a quantile of the first ``count`` values of each ascending column, as NumPy interpolates it."""
    at = np.maximum(count - 1, 0) * tail
    below = np.floor(at).astype(np.intp)
    above = np.minimum(below + 1, np.maximum(count - 1, 0))
    low, high = (np.take_along_axis(ordered, place[None], axis=0)[0] for place in (below, above))
    return np.asarray(low + (at - below) * (high - low))


# Statistics from streams ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FromStreams:
    """Statistics of pairs from streams of several chains, each of ``draws`` draws; see ``EdgeStream``."""

    streams: xr.Dataset
    draws: int

    @cached_property
    def sign_probability(self) -> Array:
        """``max(P(w > 0), P(w < 0))`` of each pair."""
        return np.asarray(np.maximum(self._total("positive"), self._total("negative")) / self._count)

    @cached_property
    def nonzero(self) -> Array:
        """The share of draws of each pair that are not exactly zero."""
        return np.asarray((self._total("positive") + self._total("negative")) / self._count)

    @property
    def coefficients(self) -> Array:
        """The posterior mean of ``-U W12``, the regression coefficients."""
        return self._total("coefficient_sum") / self._count

    def table(self, i: Positions, j: Positions) -> pd.DataFrame:
        """Return the table of the chosen pairs; moments and signs are exact, intervals off by at most a bin."""
        present = self._present(i, j)
        total, squares = (self._at(name, i, j).sum(axis=0) for name in ("partial_sum", "partial_squares"))
        mean, averaged = _share(total, present), total / self._count
        lower, upper = self.quantiles(i, j, tails(DEFAULT_LEVEL))
        within = np.maximum(squares - total * np.nan_to_num(mean), 0)
        around = np.maximum(squares - total * averaged, 0)
        columns = {
            "partial_correlation": mean,
            "sd": np.sqrt(_share(within, np.maximum(present - 1, 0))),
            "lower": lower,
            "upper": upper,
            "partial_correlation_averaged": averaged,
            "sd_averaged": np.sqrt(around / max(1, self._count - 1)),
            "sign_probability": self.sign_probability[i, j],
            "coefficient": self._at("regression_sum", i, j).sum(axis=0) / self._count,
            "precision": self._at("sum", i, j).sum(axis=(0, 1)) / self._count,
        }
        return pd.DataFrame(columns).join(self.quality(i, j).rename(columns={"ess_bulk": "ess"}))

    def quality(self, i: Positions, j: Positions) -> pd.DataFrame:
        """Return plain split R-hat and the ESS of the mean, from batches; the ESS of the tails is missing."""
        columns = {"rhat": self.rhat(i, j), "ess_bulk": self.ess(i, j), "ess_tail": np.full(len(i), np.nan)}
        frame = pd.DataFrame(columns)
        frame.loc[self.nonzero[i, j] == 0] = np.nan
        return frame

    def rhat(self, i: Positions, j: Positions) -> Array:
        """Return split R-hat, ``sqrt(V / W)`` over 2 C half chains of h draws (Gelman et al. 2013, section 11.4).

        W is the mean variance within a half, ``V = (h - 1)/h W + B/h`` with B/h the variance of their means.
        """
        h = Layout(self.draws).half
        if h < 2:
            return np.full(len(i), np.nan)
        sums, squares = (
            self._at(name, i, j)[:, :2].reshape(2 * self.streams.sizes["chain"], len(i))
            for name in ("sum", "squares")
        )
        within = np.maximum(squares - sums**2 / h, 0).mean(axis=0) / (h - 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.sqrt((h - 1) / h + (sums / h).var(axis=0, ddof=1) / within))

    def ess(self, i: Positions, j: Positions) -> Array:
        """Return the effective sample size of the mean by batch means, ``N var(w) / s2``, at most ``N log10 N``.

        ``s2`` is b times the variance of the means of batches of b draws, all chains together. Its bias is
        proportional to 1/b; twice that of whole batches minus that of half batches cancels it (Vats and Flegal
        2022), and the larger of the two is taken. The estimate cannot be smaller than about two thirds of
        the number of batches.
        """
        first = int(self.streams["first"]) if "first" in self.streams else 0
        layout, chains = Layout(self.draws, first), self.streams.sizes["chain"]
        b, a = layout.batch, layout.batches * chains
        if self.draws < 4 or a < 2:
            return np.full(len(i), np.nan)
        total = self._at("batch_sum", i, j).sum(axis=0)
        whole = (self._at("batch_squares", i, j).sum(axis=0) - total**2 / a) / (b * (a - 1))
        half = (self._at("half_batch_squares", i, j).sum(axis=0) - total**2 / (2 * a)) / (b / 2 * (2 * a - 1))
        with np.errstate(invalid="ignore", divide="ignore"):
            size = self._count * self._variance(i, j) / np.maximum(whole, 2 * whole - half)
        return np.asarray(np.minimum(size, self._count * np.log10(self._count)))

    def quantiles(self, i: Positions, j: Positions, probabilities: npt.ArrayLike) -> Array:
        """Return quantiles of the partial correlations where present, probabilities x pairs; linear within a bin.

        As signs are counted, the bin that contains zero is divided there without an error. Missing for a pair that
        is never present.
        """
        levels = np.asarray(probabilities)
        bounds, bins = self._bounds_of_bins(i, j), self._at("histogram", i, j)
        below = np.cumsum(np.pad(bins, [(0, 0), (1, 0)]), axis=1, dtype=float)
        negative = self._at("positive", i, j).sum(axis=0, dtype=float)  # the sign of a weight is the opposite one
        found = np.full((len(levels), len(i)), np.nan)
        for k, count in enumerate(self._present(i, j)):
            if count:
                found[:, k] = _inverse(levels * (count - 1) + 0.5, *_with_zero(bounds[k], below[k], negative[k]))
        return found

    def ordered(self, i: int, j: int) -> Array:
        """Return a value within a bin of each draw, ascending, with as many of each sign as the draws have."""
        where = np.array([i]), np.array([j])
        count = int(self._present(*where)[0])
        values = self.quantiles(*where, np.linspace(0, 1, count))[:, 0] if count else np.empty(0)
        return np.sort(np.concatenate([values, np.zeros(self._count - count)]))

    def _present(self, i: Positions, j: Positions) -> Array:
        """Return the number of draws in which each pair is present."""
        return np.asarray(sum(self._at(name, i, j).sum(axis=0, dtype=float) for name in ("positive", "negative")))

    def _bounds_of_bins(self, i: Positions, j: Positions) -> Array:
        """Return the bounds of the bins of each pair; the outermost bins end at the extreme draws."""
        bins = self.streams.sizes["bin"] - 2
        steps = np.arange(bins + 1) - bins / 2
        inner = self._at("centre", i, j)[:, None] + steps / self._at("per_width", i, j)[:, None]
        return np.column_stack([self._at("lowest", i, j), inner, self._at("highest", i, j)])

    @property
    def _count(self) -> int:
        """Number of draws of all chains together."""
        return int(self.draws * self.streams.sizes["chain"])

    def _variance(self, i: Positions, j: Positions) -> Array:
        """Return the variance of the weights of the chosen edges over all draws."""
        total, squares = (self._at(name, i, j).sum(axis=(0, 1)) for name in ("sum", "squares"))
        return np.asarray(np.maximum(squares - total**2 / self._count, 0) / max(1, self._count - 1))

    def _total(self, name: str) -> Array:
        """Return the sum of a statistic over all chains."""
        return np.asarray(self.streams[name].values.sum(axis=0, dtype=float))

    def _at(self, name: str, i: Positions, j: Positions) -> Array:
        """Return a statistic of the chosen edges, along its last axis; for the histogram, bins come after them."""
        values = self.streams[name].values
        return np.asarray(values[i, j] if name == "histogram" else values[..., i, j])


def _with_zero(bounds: Array, below: Array, negative: float) -> tuple[Array, Array]:
    """Insert zero into the bounds of bins, and the number of negative values into the numbers below them."""
    place = int(np.searchsorted(bounds, 0.0, side="right"))
    return np.insert(bounds, place, 0.0), np.insert(below, place, negative)


def _inverse(ranks: Array, bounds: Array, below: Array) -> Array:
    """Return the values at these ranks, by linear interpolation between the bounds of bins."""
    return np.interp(ranks, below, bounds)
