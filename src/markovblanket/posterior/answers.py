"""Questions about edges: which, how large, how sure, and which variables share one."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import xarray as xr

from markovblanket.posterior import (
    edges as edgetable,
)
from markovblanket.posterior import groups, selection, statements
from markovblanket.posterior.edges import Positions
from markovblanket.posterior.observed import Observed
from markovblanket.posterior.selection import DEFAULT_LEVEL
from markovblanket.posterior.summaries import take


class EdgeAnswers:
    """What a posterior says about edges."""

    draws: xr.Dataset
    streams: xr.Dataset | None
    observed: Observed
    settings: dict[str, Any]
    inclusion_other: pd.DataFrame | None

    @property
    def W11(self) -> xr.DataArray:
        """Draws of the query block: (chain, draw, query, query_other)."""
        return self.draws["W11"]

    @property
    def query(self) -> list[Any]:
        """Names of the query variables."""
        return list(self.draws["query"].values.tolist())

    @property
    def variables(self) -> list[Any]:
        """Names of the remaining variables."""
        return list(self.draws["variable"].values.tolist())

    def edge_draws(self, query: Any, variable: Any) -> xr.DataArray:
        """Draws of the weight of one edge: (chain, draw)."""
        return edgetable.draws_of_edge(self.draws, query, variable)

    def probability(self, statement: str, *, of: str = "weight") -> float:
        """The probability of a statement about edges: the share of draws in which it is true.

        ``"T~HGF > T~RELA"``, ``"|T~HGF| > 2 * |T~RELA|"``, ``"T~HGF == 0 and T~N < 0"`` (true together). A side is
        a sum of numbers, edges and magnitudes, which may have a numeric factor in front. The ends of an edge may
        stand in either order; both may be query variables. Names are positions if the table was an array.

        Parameters
        ----------
        statement : str
            Comparisons by ``>``, ``<``, ``>=``, ``<=``, ``==``, ``!=``, joined by ``and``. The longest known name
            counts, so ``HLA-A`` may stand as it is; a plus or minus after a name needs a blank before it; names in
            backticks are taken literally, ```a b`~`c-d```.
        of : str
            ``"weight"``: entries of the precision matrix of standardised variables, where *negative* is a positive
            partial correlation; sums of them are in these units. ``"partial_correlation"``: partial correlations.
            Each has its own posterior distribution, but the diagonal entries of W22 that they need are not drawn
            jointly, so a comparison of edges with different variables neglects how these depend on each other.

        Returns
        -------
        float
            Between 0 and 1, with the Monte Carlo error of a share of that many draws.
        """
        return statements.probability(self.draws, statement, of)

    def contrast(self, expression: str, *, of: str = "weight") -> xr.DataArray:
        """Draws of a sum of edges such as ``"T~HGF - T~RELA"``: (chain, draw), as ArviZ takes them.

        The rules are those of :meth:`probability`, without a comparison.
        """
        return statements.contrast(self.draws, expression, of)

    @cached_property
    def sign_probability(self) -> pd.DataFrame:
        """``max(P(w > 0), P(w < 0))`` of every pair: query by variable."""
        return self._frame(self._edges.sign_probability)

    @cached_property
    def inclusion(self) -> pd.DataFrame:
        """The share of draws in which a weight is not exactly zero: query by variable.

        Missing throughout if the prior has no exact zero.
        """
        exact_zeros = self.settings.get("prior", {}).get("name") == "SpikeSlab"
        return self._frame(edgetable.inclusion(self._edges, exact_zeros))

    @property
    def inclusion_either(self) -> pd.DataFrame:
        """The larger of both ends' probabilities where a second look was taken, else :attr:`inclusion`."""
        other = self.inclusion_other
        return self.inclusion if other is None else self._frame(np.fmax(self.inclusion, other).to_numpy())

    def selected(
        self, level: float | None = None, *, fdr: float | None = None, inclusion: float | None = None
    ) -> pd.DataFrame:
        """Which pairs a rule selects, as in :meth:`edges`: query by variable, true or false."""
        included = self.inclusion_either.to_numpy()
        known = None if np.isnan(included).any() else included
        probability = self.sign_probability.to_numpy()
        return self._frame(selection.select(probability, known, level=level, fdr=fdr, inclusion=inclusion))

    def edges(
        self,
        level: float | None = None,
        *,
        fdr: float | None = None,
        inclusion: float | None = None,
        all: bool = False,
    ) -> pd.DataFrame:
        """The edges between query and rest that a rule selects, surest first.

        Without a rule, if the prior has exact zeros: edges with a probability of inclusion of at least 1/2, or of
        less, if that makes the expected f-score larger and at most 30 % of the edges are expected to be false
        (``markovblanket.posterior.selection.least_inclusion``); with a second look, the likelier end counts. Without exact
        zeros: edges whose 95 % interval excludes zero.

        Parameters
        ----------
        level : float, optional
            Select where the central credible interval at this level excludes zero.
        fdr : float, optional
            Instead: the largest set whose mean local false sign rate, seen from the query's end, is at most this.
            Where the prior has exact zeros, that bounds the expected share of edges that are not there or have the
            other sign; where it has none, every weight has a sign, true zeros included, and only wrong signs are
            counted.
        inclusion : float, optional
            Instead: those whose probability of inclusion is at least this; with a second look, at either end.
        all : bool
            Instead: every pair.

        Returns
        -------
        pandas.DataFrame
            A row per edge: query, variable; mean ``weight``, ``sd``, and ``lower``, ``upper`` ends of the
            central interval at ``level`` (or 95 %); ``partial_correlation`` (mean); ``sign_probability`` of the
            likelier sign; ``inclusion`` (missing if the prior has no exact zero), and with a second look
            ``inclusion_other``, the same from the variable's own end, for likely edges; ``rhat``, bulk ``ess`` and
            ``ess_tail``, missing for an edge that is never included.
            With a summary, R-hat is the plain one of half chains (else ArviZ's, rank-normalised), ESS is that of
            the mean by batches, ``ess_tail`` is missing, and the interval is read off a histogram.
        """
        i, j = self._positions(all, level=level, fdr=fdr, inclusion=inclusion)
        return self.edges_at(i, j, DEFAULT_LEVEL if level is None else level)

    def edges_at(self, i: Positions, j: Positions, level: float = DEFAULT_LEVEL) -> pd.DataFrame:
        """The table of :meth:`edges` for any pairs: positions of query and of remaining variables."""
        table = self._edges.table(i, j, level)
        for name, matrix in (("inclusion", self.inclusion), ("inclusion_other", self.inclusion_other)):
            if matrix is not None:
                table.insert(table.columns.get_loc("rhat"), name, matrix.to_numpy()[i, j])
        return edgetable.surest_first({"query": take(self.query, i), "variable": take(self.variables, j)}, table)

    def query_edges(
        self, level: float | None = None, *, fdr: float | None = None, all: bool = False
    ) -> pd.DataFrame:
        """The edges among the query variables, from ``W11``, which has no exact zeros; as :meth:`edges`."""
        probability = edgetable.sign_probability_among(self.W11.values)
        chosen = np.ones_like(probability, bool) if all else selection.select(probability, level=level, fdr=fdr)
        return edgetable.among(self.query, self.W11.values, chosen, DEFAULT_LEVEL if level is None else level)

    def blanket(
        self, level: float | None = None, *, fdr: float | None = None, inclusion: float | None = None
    ) -> dict[Any, list[Any]]:
        """The selected neighbours of each query variable, surest first; rules are those of :meth:`edges`."""
        edges = self.edges(level, fdr=fdr, inclusion=inclusion)
        return {name: edges.loc[edges["query"] == name, "variable"].tolist() for name in self.query}

    def graph(
        self, level: float | None = None, *, fdr: float | None = None, inclusion: float | None = None
    ) -> nx.Graph:
        """The selected network, ready for GraphML; nodes say whether they are ``query``.

        Edges among the query variables are included; with ``inclusion``, or without a rule, by 95 % intervals.
        """
        inner = self.query_edges(level, fdr=fdr).rename(columns={"other": "variable"})
        return edgetable.graph(self.query, pd.concat([self.edges(level, fdr=fdr, inclusion=inclusion), inner]))

    def groups(self, similar: float = 0.7, *, least: float = 0.01) -> pd.DataFrame:
        """Near-duplicates that share an edge, surest first, each with the probability that one of them has it.

        Parameters
        ----------
        similar : float
            Members correlate with the likeliest of their group by at least this, in either direction.
        least : float
            Only variables with at least this probability of inclusion; with a summary, only edges whose draws were
            kept.

        Returns
        -------
        pandas.DataFrame
            A row per group: query; ``variables``, likeliest first; ``probability`` that at least one of them has
            the edge; ``likeliest``, the probability of the first one alone.
        """
        self.observed.require_rows("looking for near-duplicates")
        found = []
        for query, share in self.inclusion.iterrows():
            names = edgetable.kept_variables(self.draws, query, share.index[share >= least])
            if len(names) > 1:
                draws = np.array([self.edge_draws(query, name).values.ravel() != 0 for name in names]).T
                found += groups.shared(query, names, draws, self.observed.correlation(names), similar)
        return groups.table(found)

    # Inside -------------------------------------------------------------------------------------------

    @cached_property
    def _edges(self) -> edgetable.EdgeStatistics:
        return edgetable.edge_statistics(self.draws, self.streams)

    def _positions(self, all: bool, **rule: float | None) -> Any:
        """Rows and columns of the edges that a rule selects, or of all."""
        return np.nonzero(np.ones(self.sign_probability.shape) if all else self.selected(**rule).to_numpy())

    def _frame(self, values: Any) -> pd.DataFrame:
        """A matrix like ``W12`` with its names."""
        return pd.DataFrame(values, index=self.query, columns=self.variables)
