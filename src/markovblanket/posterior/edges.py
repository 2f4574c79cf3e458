"""Edges of a posterior: statistics from draws or from streams, tables, a graph, and the draws of single edges.

Statistics of the edges between query and rest have one interface, :class:`EdgeStatistics`, whether every draw was
kept (:class:`FromDraws`) or only what an ``EdgeStream`` summed up (:class:`FromStreams`).
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
from markovblanket.posterior.summaries import convergence, describe, stacked, tails, take

Positions = npt.NDArray[np.intp]


# Tables and graphs ------------------------------------------------------------------------------------


def _table_from_draws(weight: Array, partial: Array, level: float) -> pd.DataFrame:
    """Return a row per edge from draws (chain, draw, edge) of weights and partial correlations."""
    pooled = weight.reshape(weight.shape[0] * weight.shape[1], weight.shape[2])
    table = describe(pooled, level).rename(columns={"mean": "weight"})
    table["partial_correlation"] = partial.mean(axis=(0, 1))
    table["sign_probability"] = selection.sign_probability(pooled) if len(table) else []
    quality = convergence({k: weight[:, :, k] for k in range(len(table))})
    return table.join(quality.rename(columns={"ess_bulk": "ess"}))


def sign_probability_among(W11: Array) -> Array:
    """Return the probability of the likelier sign of each edge among the query variables, i < j.

    Draws of ``W11`` are (chain, draw, p, p).
    """
    i, j = np.triu_indices(W11.shape[-1], k=1)
    # No -1 among the sizes: with one query variable there is no edge from which NumPy could infer it.
    return selection.sign_probability(W11[..., i, j].reshape(W11.shape[0] * W11.shape[1], len(i)))


def among(query: Sequence[Any], W11: Array, chosen: selection.Mask, level: float) -> pd.DataFrame:
    """Return a table of the chosen edges among the query variables; ``chosen`` has an entry per pair i < j."""
    i, j = (part[chosen] for part in np.triu_indices(len(query), k=1))
    partial = -W11[..., i, j] / np.sqrt(W11[..., i, i] * W11[..., j, j])
    names = {"query": take(query, i), "other": take(query, j)}
    return surest_first(names, _table_from_draws(W11[..., i, j], partial, level))


def surest_first(names: dict[str, list[Any]], table: pd.DataFrame, of: str = "weight") -> pd.DataFrame:
    """Join names and statistics, and sort: the surest sign first, ties by the weight in standard deviations."""
    size = (table[of] / table["sd"].where(table["sd"] > 0)).abs().fillna(0)
    order = np.lexsort([-size, -table["sign_probability"]])
    return pd.DataFrame(names).join(table).iloc[order].reset_index(drop=True)


def graph(query: Sequence[Any], edges: pd.DataFrame) -> nx.Graph:
    """Return a graph with a node per variable and an edge per row, whose attributes can be saved as GraphML."""
    made = nx.Graph()
    made.add_nodes_from(query, query=True)
    for row in edges.itertuples():
        if row.variable not in made:
            made.add_node(row.variable, query=False)
        attributes = ("weight", "partial_correlation", "sign_probability")
        values = {name: float(getattr(row, name)) for name in attributes}
        made.add_edge(row.query, row.variable, **values, sign="+" if row.partial_correlation > 0 else "-")
    return made


# Statistics of edges ----------------------------------------------------------------------------------


class EdgeStatistics(Protocol):
    """Statistics of the edges between query and rest; matrices are p x q."""

    @property
    def sign_probability(self) -> Array:
        """``max(P(w > 0), P(w < 0))`` of each edge; exact zeros count for neither."""

    @property
    def nonzero(self) -> Array:
        """The share of draws of each edge that are not exactly zero."""

    @property
    def coefficients(self) -> Array:
        """The posterior mean of ``-U W12``, the regression coefficients."""

    def table(self, i: Positions, j: Positions, level: float) -> pd.DataFrame:
        """Return weight, sd, interval, partial correlation, sign probability, R-hat and ESS, a row per edge."""

    def quality(self, i: Positions, j: Positions) -> pd.DataFrame:
        """Return R-hat, bulk and tail ESS, a row per edge; missing for an edge that is never included."""

    def ordered(self, i: int, j: int) -> Array:
        """Return the draws of one edge, of all chains, ascending; from a histogram if they were not kept."""


def edge_statistics(draws: xr.Dataset, streams: xr.Dataset | None) -> EdgeStatistics:
    """Return the statistics of edges: from streams if there are some, otherwise from draws."""
    return FromDraws(draws) if streams is None else FromStreams(streams, draws.sizes["draw"])


def inclusion(edges: EdgeStatistics, exact_zeros: bool) -> Array:
    """Return the share of nonzero draws; missing if the prior has no ``exact_zeros`` and no draw is zero."""
    share = edges.nonzero
    return share if exact_zeros or (share < 1).any() else np.full_like(share, np.nan)


# Draws of single edges --------------------------------------------------------------------------------


def every_draw(draws: xr.Dataset) -> xr.DataArray:
    """Return the draws of ``W12``; raise a ValueError if they were not all kept."""
    if "W12" not in draws:
        raise ValueError('this needs every draw of W12, but only a summary was kept: estimate with keep="draws"')
    return draws["W12"]


def draws_of_edge(draws: xr.Dataset, query: Any, variable: Any, of: str = "weight") -> xr.DataArray:
    """Return the draws of the weight or the partial correlation of one edge; an error if they were not kept."""
    if "edge" in draws.dims:
        found = (draws["edge_query"].values == query) & (draws["edge_variable"].values == variable)
        if found.any():
            return draws[f"kept_{of}"].isel(edge=int(np.argmax(found)))
    if "W12" in draws:
        weight = draws["W12"].sel(query=query, variable=variable)
        return weight if of == "weight" else _partial(draws, weight, query, variable)
    name = edge_name(query, variable)
    raise ValueError(f'the draws of {name} were not kept: estimate with keep="draws", or name it in named=[...]')


def _partial(draws: xr.Dataset, weight: xr.DataArray, query: Any, variable: Any) -> xr.DataArray:
    """Return the partial correlation ``-w_ij / sqrt(w_ii w_jj)`` of one edge in each draw."""
    w_ii, w_jj = draws["W11"].sel(query=query, query_other=query), draws["W22_diagonal"].sel(variable=variable)
    return weight.copy(data=-weight.values / np.sqrt(w_ii.values * w_jj.values))


def kept_variables(draws: xr.Dataset, query: Any, among: Iterable[Any]) -> list[Any]:
    """Return the variables whose edge with a query variable has its draws kept."""
    if "W12" in draws:
        return list(among)
    kept = set(draws["edge_variable"].values[draws["edge_query"].values == query].tolist())
    return [name for name in among if name in kept]


def kept_where(draws: xr.Dataset) -> str:
    """Describe where the draws were kept besides streamed statistics."""
    return "on disk" if "W12" in draws else f"as a summary with the draws of {draws.sizes['edge']} edges"


# Statistics from draws --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FromDraws:
    """Statistics of edges from draws, (chain, draw, ...), that are all in memory."""

    draws: xr.Dataset

    @cached_property
    def sign_probability(self) -> Array:
        """``max(P(w > 0), P(w < 0))`` of each edge."""
        return selection.sign_probability(stacked(self.draws["W12"]))

    @cached_property
    def nonzero(self) -> Array:
        """The share of draws of each edge that are not exactly zero."""
        return np.asarray((stacked(self.draws["W12"]) != 0).mean(axis=0))

    @property
    def coefficients(self) -> Array:
        """The posterior mean of ``-U W12``, the regression coefficients."""
        return coefficients(stacked(self.draws["W11"]), stacked(self.draws["W12"])).mean(axis=0)

    def table(self, i: Positions, j: Positions, level: float) -> pd.DataFrame:
        """Return the table of the chosen edges, from their draws."""
        return _table_from_draws(self._weight(i, j), self.partial_correlation(i, j), level)

    def quality(self, i: Positions, j: Positions) -> pd.DataFrame:
        """Return rank-normalised R-hat, bulk and tail ESS, as ArviZ computes them."""
        weight = self._weight(i, j)
        return convergence({k: weight[:, :, k] for k in range(len(i))})

    def partial_correlation(self, i: Any, j: Any) -> Array:
        """Return the partial correlations ``-w_ij / sqrt(w_ii w_jj)`` of the chosen edges in each draw."""
        w_ii, w_jj = self.draws["W11"].values[:, :, i, i], self.draws["W22_diagonal"].values[:, :, j]
        return np.asarray(-self._weight(i, j) / np.sqrt(w_ii * w_jj))

    def ordered(self, i: int, j: int) -> Array:
        """Return the draws of one edge, ascending."""
        return np.sort(self._weight(i, j), axis=None)

    def _weight(self, i: Any, j: Any) -> Array:
        """Return the draws of the weights of the chosen edges."""
        return np.asarray(self.draws["W12"].values[:, :, i, j])


# Statistics from streams ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FromStreams:
    """Statistics of edges from streams of several chains, each of ``draws`` draws; see ``EdgeStream``."""

    streams: xr.Dataset
    draws: int

    @cached_property
    def sign_probability(self) -> Array:
        """``max(P(w > 0), P(w < 0))`` of each edge."""
        return np.asarray(np.maximum(self._total("positive"), self._total("negative")) / self._count)

    @cached_property
    def nonzero(self) -> Array:
        """The share of draws of each edge that are not exactly zero."""
        return np.asarray((self._total("positive") + self._total("negative")) / self._count)

    @property
    def coefficients(self) -> Array:
        """The posterior mean of ``-U W12``, the regression coefficients."""
        return self._total("coefficient_sum") / self._count

    def table(self, i: Positions, j: Positions, level: float) -> pd.DataFrame:
        """Return the table of the chosen edges; moments and signs are exact, intervals off by at most a bin."""
        total = self._at("sum", i, j).sum(axis=(0, 1))
        lower, upper = self.quantiles(i, j, tails(level))
        columns = {
            "weight": total / self._count,
            "sd": np.sqrt(self._variance(i, j)),
            "lower": lower,
            "upper": upper,
            "partial_correlation": self._at("partial_sum", i, j).sum(axis=0) / self._count,
            "sign_probability": self.sign_probability[i, j],
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
        """Return quantiles, probabilities x edges, of the histogram and the exact zeros; linear within a bin."""
        bounds, bins = self._bounds_of_bins(i, j), self._at("histogram", i, j)
        negative, positive = (self._at(name, i, j).sum(axis=0, dtype=float) for name in ("negative", "positive"))
        ranks = np.asarray(probabilities) * (self._count - 1) + 0.5
        zeros = self._count - negative - positive
        below = np.cumsum(np.pad(bins, [(0, 0), (1, 0)]), axis=1, dtype=float)
        below += np.where(bounds > 0, zeros[:, None], 0)
        columns = [
            _inverse(ranks, *_with_zero(*edge)) for edge in zip(bounds, below, negative, zeros, strict=True)
        ]
        return np.array(columns).reshape(len(i), len(ranks)).T

    def ordered(self, i: int, j: int) -> Array:
        """Return a value within a bin of each draw, ascending, with as many of each sign as the draws have."""
        return self.quantiles(np.array([i]), np.array([j]), np.linspace(0, 1, self._count))[:, 0]

    def _bounds_of_bins(self, i: Positions, j: Positions) -> Array:
        """Return the bounds of the bins of each edge; the outermost bins end at the extreme draws."""
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


def _with_zero(bounds: Array, below: Array, negative: float, zeros: float) -> tuple[Array, Array]:
    """Insert the step of the exact zeros into the bounds of bins and the numbers of draws below them.

    As signs are counted, the bin that contains zero is divided there without an error.
    """
    place = int(np.searchsorted(bounds, 0.0, side="right"))
    return np.insert(bounds, place, [0.0, 0.0]), np.insert(below, place, [negative, negative + zeros])


def _inverse(ranks: Array, bounds: Array, below: Array) -> Array:
    """Return the values at these ranks, by linear interpolation between the bounds of bins."""
    return np.interp(ranks, below, bounds)
