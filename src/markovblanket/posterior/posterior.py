"""The answer: draws with named axes, and what can be read off them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import xarray as xr

from markovblanket._determinism import checked_seed, one_thread
from markovblanket.posterior import _groups as edge_groups
from markovblanket.posterior import _statements, diagnostics, html, selection, storage, summaries
from markovblanket.posterior import edges as edge_table
from markovblanket.posterior.diagnostics import ConvergenceWarning, Diagnostics, diagnose
from markovblanket.posterior.edges import Positions
from markovblanket.posterior.imputation import Imputed
from markovblanket.posterior.observed import Observed, edge_name
from markovblanket.posterior.prediction import Fit, Prediction, predictive_checks
from markovblanket.posterior.selection import DEFAULT_LEVEL
from markovblanket.posterior.summaries import describe, stacked, take


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """Posterior draws of the blanket ``W12`` and the query block ``W11``.

    Weights are entries of the precision matrix of the standardised variables; a *negative* weight is a positive
    partial correlation. (These also take a variable's own entry of W22; with q comparable to n, its prior draws
    them towards zero, far below n rows of evidence. Weights, signs and intervals do not depend on it.)

    Attributes
    ----------
    draws : xarray.Dataset
        ``W11`` (chain, draw, query, query_other), ``W12`` (chain, draw, query, variable), the diagonal of W22,
        the explained variances, and every learned hyperparameter. With ``keep="summary"`` there is no W12 and
        no diagonal, but ``kept_weight`` and ``kept_partial_correlation`` (chain, draw, edge) of a few edges; with
        a path both are on disk.
    effort : xarray.Dataset
        What each kept sweep cost: solver iterations and residual, the factor of the joint scale move.
    observed : Observed
        The table, with its latent columns as some of the draws left them; no rows for a fit from a scatter matrix.
    settings : dict
        What was asked: data, prior, solver, schedule, seed, what was kept and why, versions.
    streams : xarray.Dataset, optional
        Statistics of every edge that were streamed; None where every draw is in memory.
    """

    draws: xr.Dataset
    effort: xr.Dataset
    observed: Observed
    settings: Mapping[str, Any]
    streams: xr.Dataset | None = None

    # What was drawn -----------------------------------------------------------------------------------

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

    @property
    def W12(self) -> xr.DataArray:
        """Draws of the blanket: (chain, draw, query, variable)."""
        return edge_table.every_draw(self.draws)

    @property
    def partial_correlation(self) -> xr.DataArray:
        """Draws of ``-w_ij / sqrt(w_ii w_jj)`` between query and rest: (chain, draw, query, variable)."""
        i, j = np.indices(self.W12.shape[2:])
        return self.W12.copy(data=edge_table.FromDraws(self.draws).partial_correlation(i, j)).rename(
            "partial_correlation"
        )

    @property
    def hyperparameters(self) -> xr.Dataset:
        """Draws of what the prior learned."""
        return diagnostics.hyperparameters(self.draws)

    def __repr__(self) -> str:
        sizes = self.draws.sizes
        variables = f"{sizes['query']} query and {sizes['variable']} other variables"
        kept = "" if self.streams is None else f", kept {edge_table.kept_where(self.draws)}"
        return f"<Posterior: {variables}, {sizes['chain']} chains of {sizes['draw']} draws{kept}>"

    def _repr_html_(self) -> str:
        """For notebooks: the question, whether the chains agree, and the surest of the selected edges."""
        return self._card

    # Edges --------------------------------------------------------------------------------------------

    def edge_draws(self, query: Any, variable: Any) -> xr.DataArray:
        """Draws of the weight of one edge: (chain, draw)."""
        return edge_table.draws_of_edge(self.draws, query, variable)

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
        return _statements.probability(self.draws, statement, of)

    def contrast(self, expression: str, *, of: str = "weight") -> xr.DataArray:
        """Draws of a sum of edges such as ``"T~HGF - T~RELA"``: (chain, draw), as ArviZ takes them.

        The rules are those of :meth:`probability`, without a comparison.
        """
        return _statements.contrast(self.draws, expression, of)

    @cached_property
    def sign_probability(self) -> pd.DataFrame:
        """``max(P(w > 0), P(w < 0))`` of every pair: query by variable."""
        return self._frame(self._edges.sign_probability)

    @cached_property
    def inclusion(self) -> pd.DataFrame:
        """The share of draws in which a weight is not exactly zero: query by variable.

        Missing throughout if the prior has no exact zero.
        """
        exact_zeros = self.settings.get("prior", {}).get("exact_zeros", False)
        return self._frame(edge_table.inclusion(self._edges, exact_zeros))

    def selected(
        self, level: float | None = None, *, fdr: float | None = None, inclusion: float | None = None
    ) -> pd.DataFrame:
        """Which pairs a rule selects, as in :meth:`edges`: query by variable, true or false."""
        included = self.inclusion.to_numpy()
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
        (``markovblanket.posterior.selection.least_inclusion``).
        Without exact zeros: edges whose 95 % interval excludes zero.

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
            Instead: those whose probability of inclusion is at least this.
        all : bool
            Instead: every pair.

        Returns
        -------
        pandas.DataFrame
            A row per edge: query, variable; mean ``weight``, ``sd``, and ``lower``, ``upper`` ends of the
            central interval at ``level`` (or 95 %); ``partial_correlation`` (mean); ``sign_probability`` of the
            likelier sign; ``inclusion`` (missing if the prior has no exact zero); ``rhat``, bulk ``ess`` and
            ``ess_tail``, missing for an edge that is never included.
            With a summary, R-hat is the plain one of half chains (else ArviZ's, rank-normalised), ESS is that of
            the mean by batches, ``ess_tail`` is missing, and the interval is read off a histogram.
        """
        i, j = self._positions(all, level=level, fdr=fdr, inclusion=inclusion)
        return self.edges_at(i, j, DEFAULT_LEVEL if level is None else level)

    def edges_at(self, i: Positions, j: Positions, level: float = DEFAULT_LEVEL) -> pd.DataFrame:
        """The table of :meth:`edges` for any pairs: positions of query and of remaining variables."""
        table = self._edges.table(i, j, level)
        table.insert(table.columns.get_loc("rhat"), "inclusion", self.inclusion.to_numpy()[i, j])
        return edge_table.surest_first({"query": take(self.query, i), "variable": take(self.variables, j)}, table)

    def query_edges(
        self, level: float | None = None, *, fdr: float | None = None, all: bool = False
    ) -> pd.DataFrame:
        """The edges among the query variables, from ``W11``, which has no exact zeros; as :meth:`edges`."""
        probability = edge_table.sign_probability_among(self.W11.values)
        chosen = np.ones_like(probability, bool) if all else selection.select(probability, level=level, fdr=fdr)
        return edge_table.among(self.query, self.W11.values, chosen, DEFAULT_LEVEL if level is None else level)

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
        return edge_table.graph(self.query, pd.concat([self.edges(level, fdr=fdr, inclusion=inclusion), inner]))

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
            names = edge_table.kept_variables(self.draws, query, share.index[share >= least])
            if len(names) > 1:
                draws = np.array([self.edge_draws(query, name).values.ravel() != 0 for name in names]).T
                found += edge_groups.shared(query, names, draws, self.observed.correlation(names), similar)
        return edge_groups.table(found)

    # Summaries ----------------------------------------------------------------------------------------

    def summary(self, level: float = DEFAULT_LEVEL) -> pd.DataFrame:
        """Mean, sd, interval, R-hat and ESS of ``W11``, of R2 and of the hyperparameters, a row each."""
        return diagnostics.summarised(self.draws, level)

    def r2(self, level: float = DEFAULT_LEVEL) -> pd.DataFrame:
        """Bayesian R2 of each query variable given the rest (Gelman, Goodrich, Gabry and Vehtari 2019)."""
        return describe(stacked(diagnostics.r2(self.draws)), level).set_index(pd.Index(self.query, name="query"))

    def diagnostics(self, *, all: bool = False) -> Diagnostics:
        """R-hat and effective sample sizes of ``W11``, R2, hyperparameters and the selected edges; what it cost.

        Every edge that is ever included if ``all``; about five milliseconds each, from draws in memory.
        """
        found = self._diagnose(all) if all else self._diagnosed
        return Diagnostics(found.table.copy(), found.problems, found.effort.copy())

    @property
    def warnings(self) -> tuple[ConvergenceWarning, ...]:
        """What is wrong with the chains: a warning for each problem of :meth:`diagnostics`, none if they agree."""
        return tuple(map(ConvergenceWarning, self.diagnostics().problems))

    def to_inference_data(self) -> Any:
        """ArviZ's container: ``InferenceData`` up to ArviZ 0.2x, ``xarray.DataTree`` from 1.0 on."""
        return summaries.inference_data({"posterior": self.draws, "sample_stats": self.effort})

    # Prediction ---------------------------------------------------------------------------------------

    @cached_property
    def coefficients(self) -> pd.DataFrame:
        """Posterior mean of ``-U W12``: the regression of the standardised query on the standardised rest."""
        return self._frame(self._edges.coefficients)

    def predict(self, new: Any, *, draws: int = 1000, seed: int | None = None) -> Prediction:
        """The query variables of new rows, given what is known of their remaining variables.

        Parameters
        ----------
        new : frame, array or path
            Has the remaining variables by name, in the kinds they had; an array has them as its columns, in order.
            Cells may be missing.
        draws : int
            Predictive draws to make, at most one per posterior draw (that kept its latent columns), evenly spaced.
        seed : int, optional
            For reproducible draws.
        """
        with one_thread:  # as in the chains: the last bits must not depend on the number of cores
            return self._fit.predict_rows(np.random.default_rng(checked_seed(seed)), new, draws)

    def check(self, *, draws: int = 200, level: float = 0.95, seed: int | None = None) -> pd.DataFrame:
        """Posterior predictive checks: could the model have produced rows like these?

        Each looks at the residuals of a query variable given the rest: their ``spread``, ``skewness``, ``tails``;
        ``curvature``, a fit that bends; ``uneven spread``, more noise at one end; with levels, ``surprise``, how
        unlikely the observed ones are (mean negative log probability).

        Returns
        -------
        pandas.DataFrame
            A row per query variable and check: its value ``observed``; what the model makes lies between ``lower``
            and ``upper`` with probability ``level``, and above what was observed with ``probability``, where
            values near 0 or 1 speak against the model.
        """
        self.observed.require_rows("a predictive check")
        return predictive_checks(np.random.default_rng(checked_seed(seed)), self._fit, draws, level)

    def imputed(self, draws: int = 20, *, seed: int | None = None) -> Imputed:
        """Completed tables, on the scale of the data: draws, not means.

        Parameters
        ----------
        draws : int
            How many, at most one per posterior draw that kept its latent columns; evenly spaced.
        seed : int, optional
            For reproducible tables.
        """
        self.observed.require_rows("imputation")
        fit = self._fit if "W12" in self.draws else None
        seeds = np.random.SeedSequence(checked_seed(seed))
        return Imputed(self.observed, self.observed.samples(draws), seeds, fit)

    # Saving -------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the posterior to a folder: zarr stores and ``settings.json``. :func:`load` reads it back.

        The table is written too, since predictions and completed tables take it.
        """
        storage.write(Path(path), self.datasets(), self.settings)

    def report(self, path: str | Path) -> Path:
        """Write one HTML page that holds everything and opens from disk; the same posterior, the same page.

        The blanket as a picture and a table that a slider joins, the curves of every sure edge, the data as
        understood, convergence, predictive checks, and how to do it again. It needs ``markovblanket[report]``.

        Parameters
        ----------
        path : str or pathlib.Path
            Where to write; a page of that name is replaced.

        Returns
        -------
        pathlib.Path
            Where the page is.
        """
        from markovblanket import report  # a layer above, imported only where it is asked for

        return report.write(self, path)

    def datasets(self) -> dict[str, xr.Dataset]:
        """The data sets of which this posterior is made, by name."""
        streams = {} if self.streams is None else {"streams": self.streams}
        return {"draws": self.draws, "effort": self.effort, **self.observed.to_datasets(), **streams}

    # Inside -------------------------------------------------------------------------------------------

    @cached_property
    def _edges(self) -> edge_table.EdgeStatistics:
        return edge_table.edge_statistics(self.draws, self.streams)

    def _positions(self, all: bool, **rule: float | None) -> Any:
        """Rows and columns of the edges that a rule selects, or of all."""
        return np.nonzero(np.ones(self.sign_probability.shape) if all else self.selected(**rule).to_numpy())

    def _frame(self, values: Any) -> pd.DataFrame:
        """A matrix like ``W12`` with its names."""
        return pd.DataFrame(values, index=self.query, columns=self.variables)

    @cached_property
    def _diagnosed(self) -> Diagnostics:
        return self._diagnose(False)

    def _diagnose(self, all: bool) -> Diagnostics:
        i, j = self._positions(all)
        included = self._edges.nonzero[i, j] > 0
        i, j = i[included], j[included]
        names = map(edge_name, take(self.query, i), take(self.variables, j))
        quality = self._edges.quality(i, j).set_axis(list(names))
        return diagnose(diagnostics.reported(self.draws), quality, self.effort, self.settings.get("solver"))

    @cached_property
    def _card(self) -> str:
        edges, found = self.edges(), self.diagnostics()
        verdict = html.verdict(found.converged, found.verdict)
        return html.card(html.heading(*self._asked(len(edges))), verdict, html.edges(edges))

    def _asked(self, edges: int) -> tuple[str, list[str]]:
        """The question, and its facts: how many edges of how many, the data, the model, the chains."""
        sizes, table = self.draws.sizes, self.observed.table
        missing = sum(row["missing"] for row in table.describe())
        kept = "" if self.streams is None else f", kept {edge_table.kept_where(self.draws)}"
        facts = [
            f"{edges:,} of {sizes['query'] * sizes['variable']:,} possible edges selected",
            f"{self.settings.get('data', {}).get('n', table.n):,} rows",
            f"{missing:,} cells missing" if missing else "",
            f"{sizes['variable']:,} other variables",
            f"{self.settings['prior']['name']} prior" if "prior" in self.settings else "",
            f"{sizes['chain']} chains of {sizes['draw']:,} draws{kept}",
        ]
        return f"Markov blanket of {html.listed(self.query)}", [fact for fact in facts if fact]

    @property
    def _fit(self) -> Fit:
        beta = self.coefficients.to_numpy() if self.observed.margins == "gaussian" else None
        return Fit(self.W11.values, self.W12, self.observed, beta)


def load(path: str | Path) -> Posterior:
    """Read back what :meth:`Posterior.save` wrote."""
    groups, settings = storage.read(Path(path))
    observed = Observed.from_datasets(groups["table"], groups["latent"])
    return Posterior(groups["draws"], groups["effort"], observed, settings, groups.get("streams"))
