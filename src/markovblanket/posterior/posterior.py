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
from markovblanket._files import told_as_damage
from markovblanket.chains.stores import AXES
from markovblanket.contracts import Array
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
    """Posterior draws of the blanket ``W12`` and the query block ``W11``, and everything that is read off them.

    ``W11`` and ``W12`` are entries of the precision matrix of the standardised variables; the partial correlation
    of a pair, ``-w_ij / sqrt(w_ii w_jj)``, has the opposite sign. Matrices of pairs have a row per query variable
    and a column per variable, those of the query first.

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
    averages : xarray.Dataset, optional
        ``inclusion`` (chain, query, other): the mean over all draws of the conditional probability that a pair is
        connected, which varies less than the share of draws in which it is. None if the sampler computes none.
    """

    draws: xr.Dataset
    effort: xr.Dataset
    observed: Observed
    settings: Mapping[str, Any]
    streams: xr.Dataset | None = None
    averages: xr.Dataset | None = None

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
    def names(self) -> list[Any]:
        """Names of all variables, those of the query first: the columns of every matrix of pairs."""
        return [*self.query, *self.variables]

    @property
    def W12(self) -> xr.DataArray:
        """Draws of the blanket: (chain, draw, query, variable)."""
        return edge_table.every_draw(self.draws)

    @property
    def partial_correlation(self) -> xr.DataArray:
        """Draws of ``-w_ij / sqrt(w_ii w_jj)`` between query and rest: (chain, draw, query, variable)."""
        i, j = np.indices(self.W12.shape[2:])
        partial = edge_table.FromDraws.with_rest(self.draws).partial_correlation(i, j)
        return self.W12.copy(data=partial).rename("partial_correlation")

    @property
    def hyperparameters(self) -> xr.Dataset:
        """Draws of what the prior learned."""
        return diagnostics.hyperparameters(self.draws)

    def __repr__(self) -> str:
        sizes = self.draws.sizes
        variables = f"{sizes['query']} query and {sizes['variable']} other variables"
        if not sizes["variable"]:
            variables = f"a network of {sizes['query']} variables"
        kept = "" if self.streams is None else f", kept {edge_table.kept_where(self.draws)}"
        return f"<Posterior: {variables}, {sizes['chain']} chains of {sizes['draw']} draws{kept}>"

    def _repr_html_(self) -> str:
        """For notebooks: the question, whether the chains agree, and the surest of the selected edges."""
        return self._card

    # Edges --------------------------------------------------------------------------------------------

    def edge_draws(self, query: Any, variable: Any) -> xr.DataArray:
        """Draws of the entry of the precision matrix of one edge: (chain, draw); both may be query variables."""
        return edge_table.draws_of_edge(self.draws, query, variable)

    def probability(self, statement: str, *, of: str = "partial_correlation") -> float:
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
            ``"partial_correlation"``, or ``"precision"``: entries of the precision matrix of standardised
            variables, where *negative* is a positive partial correlation. Each partial correlation has its own
            posterior distribution, but the diagonal entries of W22 that some of them need are not drawn jointly,
            so a comparison of edges with different variables may neglect how these depend on each other.

        Returns
        -------
        float
            Between 0 and 1, with the Monte Carlo error of a share of that many draws.
        """
        return _statements.probability(self.draws, statement, of)

    def contrast(self, expression: str, *, of: str = "partial_correlation") -> xr.DataArray:
        """Draws of a sum of edges such as ``"T~HGF - T~RELA"``: (chain, draw), as ArviZ takes them.

        The rules are those of :meth:`probability`, without a comparison.
        """
        return _statements.contrast(self.draws, expression, of)

    @cached_property
    def sign_probability(self) -> pd.DataFrame:
        """``max(P(w > 0), P(w < 0))`` of every pair: query by all variables; the diagonal is missing."""
        return self._frame(self._pairs.sign_probability)

    @cached_property
    def inclusion(self) -> pd.DataFrame:
        """The probability that a pair is connected: query by all variables; the diagonal is missing.

        It is the mean of its conditional probabilities if the sampler computes these, else the share of draws in
        which the entry of the precision matrix is not exactly zero. Missing throughout if the prior has no exact
        zero, and within the query if that block has none.
        """
        if not self._exact_zeros:
            return self._frame(np.full_like(self._pairs.nonzero, np.nan))
        if self.averages is None:
            share, p = self._pairs.nonzero.copy(), len(self.query)
            share[:, :p] = share[:, :p] if (share[:, :p] < 1).any() else np.nan
        else:
            share = self.averages["inclusion"].values.mean(axis=0)
            np.fill_diagonal(share, np.nan)
        return self._frame(share)

    def selected(
        self, probability: float | None = None, *, fdr: float | None = None, level: float | None = None
    ) -> pd.DataFrame:
        """Which pairs a rule selects, as in :meth:`edges`: query by all variables, true or false."""
        i, k = edge_table.once(np.ones(self.inclusion.shape))
        sign, included = self.sign_probability.to_numpy()[i, k], self.inclusion.to_numpy()[i, k]
        mask = np.zeros(self.inclusion.shape, dtype=bool)
        mask[i, k] = selection.select(sign, included, probability=probability, fdr=fdr, level=level)
        return self._frame(edge_table.mirrored(mask))

    def edges(
        self,
        probability: float | None = None,
        *,
        fdr: float | None = None,
        level: float | None = None,
        all: bool = False,
        detail: bool = False,
    ) -> pd.DataFrame:
        """The edges that a rule selects, those among the query variables included, surest first.

        Without a rule, if the prior has exact zeros: edges with a probability of at least 1/2, or of less, if that
        makes the expected f-score larger and at most 30 % of the edges are expected to be false
        (``markovblanket.posterior.selection.least_inclusion``). Without exact zeros: edges whose 95 % interval
        excludes zero.

        Parameters
        ----------
        probability : float, optional
            Select edges whose probability is at least this.
        fdr : float, optional
            Instead: the largest set whose expected share of false edges, the mean of one minus the probability, is
            at most this. A prior without exact zeros gives every pair a sign, and only wrong signs are counted:
            the mean local false sign rate.
        level : float, optional
            Instead: edges whose central credible interval over all draws at this level excludes zero.
        all : bool
            Instead: every pair.
        detail : bool
            Whether to add the columns in the last paragraph below.

        Returns
        -------
        pandas.DataFrame
            A row per edge, each pair once: ``query`` and ``variable``, its ends; the ``probability`` that it is
            present; its ``partial_correlation`` if present, the posterior mean, with the ends ``lower`` and
            ``upper`` of the central 95 % interval; the ``direction`` of that mean, + or -; the ``bayes_factor``
            for presence, posterior odds over prior odds; ``rhat`` and bulk ``ess`` of the entry of the precision
            matrix, zero where the edge is absent (both missing for an edge that is never present).

            If the prior has no exact zeros, ``probability`` and ``bayes_factor`` are missing, and
            ``sign_probability``, of the likelier sign, is added. With a summary, R-hat is the plain one of half
            chains (else ArviZ's, rank-normalised), ESS is that of the mean by batches, and intervals are read off
            a histogram.

            With ``detail``: ``sign_probability``; ``coefficient``, the mean of ``-w_ij / w_ii``, of the regression
            of the query variable on all others, standardised; ``precision``, the mean entry ``w_ij`` of the
            precision matrix; ``partial_correlation_averaged``, the mean over all draws, zeros included; and
            ``ess_tail``, missing with a summary.
        """
        i, k = self._positions(all, probability=probability, fdr=fdr, level=level)
        return self.edges_at(i, k, detail=detail)

    def edges_at(self, i: Positions, k: Positions, *, detail: bool = False) -> pd.DataFrame:
        """The table of :meth:`edges` for any pairs: positions of query variables and among all variables."""
        table = self._pairs.table(i, k)
        names = self.names
        table["query"], table["variable"] = take(names, i), take(names, k)
        table["probability"] = self.inclusion.to_numpy()[i, k]
        table["direction"] = edge_table.directions(table["partial_correlation"])
        table["bayes_factor"] = self._bayes_factor(table["probability"].to_numpy(), k)
        sure = table["probability"].fillna(table["sign_probability"])
        shown = (*edge_table.COLUMNS, *(edge_table.DETAILS if detail else self._sign_column))
        return edge_table.surest_first(table, sure, "partial_correlation", "sd")[list(shown)]

    def blanket(
        self, probability: float | None = None, *, fdr: float | None = None, level: float | None = None
    ) -> dict[Any, list[Any]]:
        """The selected neighbours of each query variable, surest first; rules are those of :meth:`edges`.

        Neighbours may be query variables themselves.
        """
        return edge_table.neighbours(self.query, self.edges(probability, fdr=fdr, level=level))

    def graph(
        self, probability: float | None = None, *, fdr: float | None = None, level: float | None = None
    ) -> nx.Graph:
        """The selected network, ready for GraphML; nodes say whether they are ``query``.

        The ``weight`` of an edge is its partial correlation; rules are those of :meth:`edges`.
        """
        return edge_table.graph(self.query, self.edges(probability, fdr=fdr, level=level))

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
        """Mean, sd, interval, R-hat and ESS of ``W11``, of R2 and of the hyperparameters, a row each.

        If the prior has exact zeros, of the diagonal of ``W11``: its other entries are edges.
        """
        return diagnostics.summarised(self._reported, level)

    def r2(self, level: float = DEFAULT_LEVEL) -> pd.DataFrame:
        """Bayesian R2 of each query variable given the rest (Gelman, Goodrich, Gabry and Vehtari 2019).

        If every variable is a query variable, R2 given all others.
        """
        return describe(stacked(self._reported["r2"]), level).set_index(pd.Index(self.query, name="query"))

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
        empty = [name for name, array in self.draws.data_vars.items() if not array.size]
        draws = self.draws.drop_vars(empty) if self.variables else self.draws.drop_dims("variable")
        return summaries.inference_data({"posterior": draws, "sample_stats": self.effort})

    # Prediction ---------------------------------------------------------------------------------------

    @cached_property
    def coefficients(self) -> pd.DataFrame:
        """Posterior mean of ``-U W12``: the regression of the standardised query on the standardised rest."""
        coefficients = edge_table.rest_coefficients(self.draws, self.streams)
        return pd.DataFrame(coefficients, index=self.query, columns=self.variables)

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
        if not self.variables:
            raise ValueError("there are no other variables to predict from: every variable is a query variable")
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
        optional = {"streams": self.streams, "averages": self.averages}
        present = {name: group for name, group in optional.items() if group is not None}
        return {"draws": self.draws, "effort": self.effort, **self.observed.to_datasets(), **present}

    # Inside -------------------------------------------------------------------------------------------

    @cached_property
    def _pairs(self) -> edge_table.AllPairs:
        return edge_table.all_pairs(self.draws, self.streams)

    @cached_property
    def _exact_zeros(self) -> bool:
        """Whether the prior has exact zeros, by its settings or by the draws."""
        return bool(self.settings.get("prior", {}).get("exact_zeros", False) or (self._pairs.nonzero < 1).any())

    @cached_property
    def _reported(self) -> xr.Dataset:
        """Draws of what is summarised besides edges: ``W11``, R2 and the hyperparameters."""
        with one_thread:  # many small matrices are inverted
            r2 = diagnostics.r2(self.draws)
        return diagnostics.reported(self.draws, r2, self._exact_zeros)

    @property
    def _sign_column(self) -> tuple[str, ...]:
        """The column that stands in for the probability of an edge if the prior has no exact zeros."""
        return () if self._exact_zeros else ("sign_probability",)

    def _bayes_factor(self, probability: Array, k: Positions) -> Array:
        """Bayes factors for presence; a share of N draws is taken to be half a draw away from 0 and 1."""
        half = 0.5 / (self.draws.sizes["chain"] * self.draws.sizes["draw"])
        inside = np.clip(probability, half, 1 - half) if self.averages is None else probability
        expected = self.settings.get("prior", {}).get("expected_inclusion")
        if expected is None:
            return edge_table.bayes_factor(inside, None)
        return edge_table.bayes_factor(inside, np.where(self._in_block(k), expected["block"], expected["outside"]))

    def _in_block(self, k: Positions) -> Any:
        """Whether each variable is in a widened block, where hubs make an edge likelier from the start."""
        candidates = self.settings.get("candidates", {"asked": 0})
        if candidates["asked"] == 0 and self.variables:
            return np.zeros(len(k), dtype=bool)
        block = {*self.query, *candidates.get("chosen", [])}
        return np.array([name in block for name in take(self.names, k)], dtype=bool)

    def _positions(self, all: bool, **rule: float | None) -> tuple[Positions, Positions]:
        """Positions of the pairs that a rule selects, or of all, each pair once."""
        return edge_table.once(np.ones(self.inclusion.shape) if all else self.selected(**rule).to_numpy())

    def _frame(self, values: Any) -> pd.DataFrame:
        """A matrix of pairs with its names."""
        return pd.DataFrame(values, index=self.query, columns=self.names)

    @cached_property
    def _diagnosed(self) -> Diagnostics:
        return self._diagnose(False)

    def _diagnose(self, all: bool) -> Diagnostics:
        i, k = self._positions(all)
        included = self._pairs.nonzero[i, k] > 0
        i, k = i[included], k[included]
        names = map(edge_name, take(self.names, i), take(self.names, k))
        quality = self._pairs.quality(i, k).set_axis(list(names))
        return diagnose(self._reported, quality, self.effort, self.settings.get("solver"))

    @cached_property
    def _card(self) -> str:
        edges, found = self.edges(), self.diagnostics()
        verdict = html.verdict(found.converged, found.verdict)
        return html.card(html.heading(*self._asked(len(edges))), verdict, html.edges(edges))

    def _asked(self, edges: int) -> tuple[str, list[str]]:
        """The question, and its facts: how many edges of how many, the data, the model, the chains."""
        sizes, table = self.draws.sizes, self.observed.table
        p, q = sizes["query"], sizes["variable"]
        possible = p * q + p * (p - 1) // 2
        missing = sum(row["missing"] for row in table.describe())
        kept = "" if self.streams is None else f", kept {edge_table.kept_where(self.draws)}"
        facts = [
            f"{edges:,} of {possible:,} possible edges selected",
            f"{self.settings.get('data', {}).get('n', table.n):,} rows",
            f"{missing:,} cells missing" if missing else "",
            f"{q:,} other variables" if q else "",
            f"{self.settings['prior']['name']} prior" if "prior" in self.settings else "",
            f"{sizes['chain']} chains of {sizes['draw']:,} draws{kept}",
        ]
        title = f"Markov blanket of {html.listed(self.query)}" if q else f"Network of {p:,} variables"
        return title, [fact for fact in facts if fact]

    @property
    def _fit(self) -> Fit:
        known = self.variables and self.observed.margins == "gaussian"
        beta = self.coefficients.to_numpy() if known else None
        return Fit(self.W11.values, self.W12, self.observed, beta)


def load(path: str | Path) -> Posterior:
    """Read back what :meth:`Posterior.save` wrote."""
    groups, settings = storage.read(Path(path))
    with told_as_damage(Path(path)):
        observed = Observed.from_datasets(groups["table"], groups["latent"])
        optional = groups.get("streams"), groups.get("averages")
        _require_one(groups["draws"], observed)
        return Posterior(groups["draws"], groups["effort"], observed, settings, *optional)


def _require_one(draws: xr.Dataset, observed: Observed) -> None:
    """Refuse draws that are not of the variables of the table."""
    same = [draws[axis].values.tolist() for axis in ("query", "variable")]
    if same != [list(observed.table.query), list(observed.table.rest)]:
        raise ValueError("its draws are of other variables than its table")
    for name in ("W11", "explained"):
        if draws[name].dims != ("chain", "draw", *AXES[name]):
            raise ValueError(f"the axes of {name} are others")
