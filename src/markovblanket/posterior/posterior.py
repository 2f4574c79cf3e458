"""The answer: draws with named axes, and what can be read off them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from markovblanket._determinism import checked_seed, one_thread
from markovblanket.posterior import _arviz, diagnostics, html, storage
from markovblanket.posterior import edges as edges_module
from markovblanket.posterior.answers import EdgeAnswers
from markovblanket.posterior.diagnostics import ConvergenceWarning, Diagnostics, diagnose
from markovblanket.posterior.imputation import Imputed
from markovblanket.posterior.labels import edge_name
from markovblanket.posterior.observed import Observed
from markovblanket.posterior.prediction import Fit, Prediction
from markovblanket.posterior.predictive_checks import predictive_checks
from markovblanket.posterior.selection import DEFAULT_LEVEL
from markovblanket.posterior.summaries import describe, stacked, take


class Posterior(EdgeAnswers):
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
    inclusion_other : pandas.DataFrame, optional
        Probabilities of the likely edges, seen from their other ends: query by variable, missing where nobody
        looked; None without a second look.
    """

    def __init__(
        self,
        draws: xr.Dataset,
        effort: xr.Dataset,
        observed: Observed,
        settings: Mapping[str, Any],
        streams: xr.Dataset | None = None,
        inclusion_other: pd.DataFrame | None = None,
    ) -> None:
        self.draws, self.effort, self.observed, self.streams = draws, effort, observed, streams
        self.settings, self.inclusion_other = dict(settings), inclusion_other

    # What was drawn -----------------------------------------------------------------------------------

    @property
    def W12(self) -> xr.DataArray:
        """Draws of the blanket: (chain, draw, query, variable)."""
        return edges_module.every_draw(self.draws)

    @property
    def partial_correlation(self) -> xr.DataArray:
        """Draws of ``-w_ij / sqrt(w_ii w_jj)`` between query and rest: (chain, draw, query, variable)."""
        i, j = np.indices(self.W12.shape[2:])
        return self.W12.copy(data=edges_module.FromDraws(self.draws).partial_correlation(i, j)).rename(
            "partial_correlation"
        )

    @property
    def hyperparameters(self) -> xr.Dataset:
        """Draws of what the prior learned."""
        return diagnostics.hyperparameters(self.draws)

    def __repr__(self) -> str:
        sizes = self.draws.sizes
        variables = f"{sizes['query']} query and {sizes['variable']} other variables"
        kept = "" if self.streams is None else f", kept {edges_module.kept_where(self.draws)}"
        return f"<Posterior: {variables}, {sizes['chain']} chains of {sizes['draw']} draws{kept}>"

    def _repr_html_(self) -> str:
        """For notebooks: the question, whether the chains agree, and the surest of the selected edges."""
        return self._card

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
        return _arviz.inference_data({"posterior": self.draws, "sample_stats": self.effort})

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
        from markovblanket import report  # upstairs, and only for those who ask for it

        return report.write(self, path)

    def datasets(self) -> dict[str, xr.Dataset]:
        """The data sets of which this posterior is made, by name."""
        streams = {} if self.streams is None else {"streams": self.streams}
        looked = {} if self.inclusion_other is None else {"looked": edges_module.as_dataset(self.inclusion_other)}
        return {"draws": self.draws, "effort": self.effort, **self.observed.to_datasets(), **streams, **looked}

    # Inside -------------------------------------------------------------------------------------------

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
        kept = "" if self.streams is None else f", kept {edges_module.kept_where(self.draws)}"
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
    other = edges_module.as_frame(groups["looked"]) if "looked" in groups else None
    return Posterior(groups["draws"], groups["effort"], observed, settings, groups.get("streams"), other)
