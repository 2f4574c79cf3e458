"""The answer: draws with named axes, and what can be read off them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import xarray as xr
from threadpoolctl import threadpool_limits

from markovblanket import arviz_bridge, edgetable, saving, selection
from markovblanket.axes import MATRICES
from markovblanket.checking import predictive_checks
from markovblanket.diagnosis import Diagnostics, diagnose
from markovblanket.imputation import Imputed
from markovblanket.observed import Observed
from markovblanket.prediction import Fit, Prediction, coefficients
from markovblanket.recoding import read_like
from markovblanket.summaries import convergence, describe, flat, stacked, take
from markovblanket.table import row_names

DEFAULT_LEVEL = 0.95


class Posterior:
    """Posterior draws of the blanket ``W12`` and the query block ``W11``.

    Weights are entries of the precision matrix of the standardised variables; a *negative* weight is a positive
    partial correlation. (These also take a variable's own entry of W22; with q comparable to n, its prior draws
    them towards zero, far below n rows of evidence. Weights, signs and intervals do not depend on it.)

    Attributes
    ----------
    draws : xarray.Dataset
        ``W11`` (chain, draw, query, query_other), ``W12`` (chain, draw, query, variable), the diagonal of W22,
        the explained variances, and every learned hyperparameter.
    effort : xarray.Dataset
        What each kept sweep cost: solver iterations and residual, the factor of the joint scale move.
    observed : Observed
        The table, with its latent columns as some of the draws left them; no rows for a fit from a scatter matrix.
    settings : dict
        What was asked: data, prior, solver, schedule, seed, versions.
    """

    def __init__(
        self, draws: xr.Dataset, effort: xr.Dataset, observed: Observed, settings: Mapping[str, Any]
    ) -> None:
        self.draws, self.effort, self.observed = draws, effort, observed
        self.settings = dict(settings)

    # What was drawn -----------------------------------------------------------------------------------

    @property
    def W11(self) -> xr.DataArray:
        """Draws of the query block: (chain, draw, query, query_other)."""
        return self.draws["W11"]

    @property
    def W12(self) -> xr.DataArray:
        """Draws of the blanket: (chain, draw, query, variable)."""
        return self.draws["W12"]

    @property
    def partial_correlation(self) -> xr.DataArray:
        """Draws of ``-w_ij / sqrt(w_ii w_jj)`` between query and rest: (chain, draw, query, variable)."""
        i, j = np.indices(self.W12.shape[2:])
        return self.W12.copy(data=self._partial_correlation(i, j)).rename("partial_correlation")

    @property
    def query(self) -> list[Any]:
        """Names of the query variables."""
        return list(self.draws["query"].values.tolist())

    @property
    def variables(self) -> list[Any]:
        """Names of the remaining variables."""
        return list(self.draws["variable"].values.tolist())

    @property
    def hyperparameters(self) -> xr.Dataset:
        """Draws of what the prior learned."""
        return self.draws.drop_vars(list(MATRICES))

    def __repr__(self) -> str:
        sizes = self.draws.sizes
        return (
            f"<Posterior: {sizes['query']} query and {sizes['variable']} other variables, "
            f"{sizes['chain']} chains of {sizes['draw']} draws>"
        )

    # Edges --------------------------------------------------------------------------------------------

    @cached_property
    def sign_probability(self) -> pd.DataFrame:
        """``max(P(w > 0), P(w < 0))`` of every pair: query by variable."""
        values = selection.sign_probability(stacked(self.W12))
        return pd.DataFrame(values, index=self.query, columns=self.variables)

    def selected(self, level: float | None = None, *, fdr: float | None = None) -> pd.DataFrame:
        """Which pairs a rule selects, as in :meth:`edges`: query by variable, true or false."""
        chosen = selection.select(self.sign_probability.to_numpy(), level, fdr, DEFAULT_LEVEL)
        return pd.DataFrame(chosen, index=self.query, columns=self.variables)

    def edges(self, level: float | None = None, *, fdr: float | None = None, all: bool = False) -> pd.DataFrame:
        """The edges between query and rest that a rule selects, surest first.

        Parameters
        ----------
        level : float, optional
            Select where the central credible interval at this level excludes zero; 0.95 by default.
        fdr : float, optional
            Instead: the largest set whose mean local false sign rate is at most this.
        all : bool
            Instead: every pair.

        Returns
        -------
        pandas.DataFrame
            A row per edge: query, variable; mean ``weight``, ``sd``, and ``lower``, ``upper`` ends of the
            central interval at ``level``; ``partial_correlation`` (mean); ``sign_probability`` of the likelier
            sign; ``inclusion`` (missing: this prior has no exact zero); ``rhat`` and bulk ``ess``.
        """
        i, j = np.nonzero(np.ones(self.W12.shape[2:]) if all else self.selected(level, fdr=fdr))
        names = {"query": take(self.query, i), "variable": take(self.variables, j)}
        partial = self._partial_correlation(i, j)
        frame = edgetable.frame(
            names, self.W12.values[:, :, i, j], partial, DEFAULT_LEVEL if level is None else level
        )
        frame.insert(frame.columns.get_loc("rhat"), "inclusion", np.nan)
        return frame

    def query_edges(
        self, level: float | None = None, *, fdr: float | None = None, all: bool = False
    ) -> pd.DataFrame:
        """The edges among the query variables, from ``W11``; rules and columns as in :meth:`edges`."""
        i, j = np.triu_indices(len(self.query), k=1)
        W11 = self.W11.values
        if not all:
            probability = selection.sign_probability(stacked(self.W11)[:, i, j])
            keep = selection.select(probability, level, fdr, DEFAULT_LEVEL)
            i, j = i[keep], j[keep]
        partial = -W11[..., i, j] / np.sqrt(W11[..., i, i] * W11[..., j, j])
        names = {"query": take(self.query, i), "other": take(self.query, j)}
        return edgetable.frame(names, W11[..., i, j], partial, DEFAULT_LEVEL if level is None else level)

    def blanket(self, level: float | None = None, *, fdr: float | None = None) -> dict[Any, list[Any]]:
        """The selected neighbours of each query variable, surest first."""
        edges = self.edges(level, fdr=fdr)
        return {name: edges.loc[edges["query"] == name, "variable"].tolist() for name in self.query}

    def graph(self, level: float | None = None, *, fdr: float | None = None) -> nx.Graph:
        """The selected network, query edges included, ready for GraphML; nodes say whether they are ``query``."""
        inner = self.query_edges(level, fdr=fdr).rename(columns={"other": "variable"})
        return edgetable.graph(self.query, pd.concat([self.edges(level, fdr=fdr), inner]))

    # Summaries ----------------------------------------------------------------------------------------

    def summary(self, level: float = DEFAULT_LEVEL) -> pd.DataFrame:
        """Mean, sd, interval, R-hat and ESS of ``W11``, of R2 and of the hyperparameters, a row each."""
        rows = flat(self._reported())
        frame = describe(np.stack([array.ravel() for array in rows.values()], axis=1), level)
        frame.insert(0, "quantity", list(rows))
        return frame.set_index("quantity").join(convergence(rows))

    def r2(self, level: float = DEFAULT_LEVEL) -> pd.DataFrame:
        """Bayesian R2 of each query variable given the rest (Gelman, Goodrich, Gabry and Vehtari 2019)."""
        frame = describe(stacked(self._r2_draws()), level)
        frame.index = pd.Index(self.query, name="query")
        return frame

    def diagnostics(self, *, all: bool = False) -> Diagnostics:
        """R-hat and effective sample sizes of ``W11``, R2, hyperparameters and the selected edges.

        Every edge if ``all``; about five milliseconds each.
        """
        i, j = np.nonzero(np.ones(self.W12.shape[2:]) if all else self.selected())
        blocks = self._reported()
        if len(i):
            names = [f"{self.query[a]}~{self.variables[b]}" for a, b in zip(i, j, strict=True)]
            values = self.W12.values[:, :, i, j]
            blocks["W12"] = xr.DataArray(values, dims=("chain", "draw", "edge"), coords={"edge": names})
        return diagnose(blocks)

    def to_inference_data(self) -> Any:
        """ArviZ's container: ``InferenceData`` up to ArviZ 0.2x, ``xarray.DataTree`` from 1.0 on."""
        return arviz_bridge.inference_data({"posterior": self.draws, "sample_stats": self.effort})

    # Prediction ---------------------------------------------------------------------------------------

    @cached_property
    def coefficients(self) -> pd.DataFrame:
        """Posterior mean of ``-U W12``: the regression of the standardised query on the standardised rest."""
        beta = coefficients(stacked(self.W11), stacked(self.W12)).mean(axis=0)
        return pd.DataFrame(beta, index=self.query, columns=self.variables)

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
        values = read_like(new, self.observed.table.columns[self.observed.p :])
        if np.isnan(values).any():
            self._require_rows("prediction of rows with missing cells")
        rows = row_names(new, len(values))
        with threadpool_limits(limits=1):  # as in the chains: the last bits must not depend on the number of cores
            prediction = self._fit.predict(np.random.default_rng(seed), values, draws, rows)
        if self.observed.margins == "gaussian":
            complete = ~np.isnan(values).any(axis=1)
            prediction.mean[complete] = self._fit.regression(values[complete], self.coefficients.to_numpy())
        return prediction

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
        self._require_rows("a predictive check")
        return predictive_checks(np.random.default_rng(seed), self._fit, draws, level)

    def imputed(self, draws: int = 20, *, seed: int | None = None) -> Imputed:
        """Completed tables, on the scale of the data: draws, not means.

        Parameters
        ----------
        draws : int
            How many, at most one per posterior draw that kept its latent columns; evenly spaced.
        seed : int, optional
            For reproducible tables.
        """
        self._require_rows("imputation")
        return Imputed(self.observed, self.observed.samples(draws), np.random.SeedSequence(seed))

    # Saving -------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the posterior to a folder: zarr stores and ``settings.json``. :func:`load` reads it back.

        The table is written too, since predictions and completed tables take it.
        """
        groups = {"draws": self.draws, "effort": self.effort, **self.observed.to_datasets()}
        saving.write(Path(path), groups, self.settings)

    # Inside -------------------------------------------------------------------------------------------

    @property
    def _fit(self) -> Fit:
        return Fit(self.W11.values, self.W12.values, self.observed)

    def _partial_correlation(self, i: Any, j: Any) -> Any:
        """Of chosen pairs, draw by draw."""
        w_ii, w_jj = self.W11.values[:, :, i, i], self.draws["W22_diagonal"].values[:, :, j]
        return -self.W12.values[:, :, i, j] / np.sqrt(w_ii * w_jj)

    def _r2_draws(self) -> xr.DataArray:
        """Explained over total variance of each query variable, draw by draw."""
        residual = np.einsum("...ii->...i", np.linalg.inv(self.W11.values))
        explained = self.draws["explained"]
        return (explained / (explained + residual)).rename("r2")

    def _reported(self) -> xr.Dataset:
        """The quantities that every fit is judged by; each entry of the symmetric ``W11`` once."""
        i, j = np.triu_indices(len(self.query))
        pairs = [f"{self.query[a]}, {self.query[b]}" for a, b in zip(i, j, strict=True)]
        W11 = xr.DataArray(self.W11.values[:, :, i, j], dims=("chain", "draw", "pair"), coords={"pair": pairs})
        return self.hyperparameters.drop_vars(["variable", "query_other"]).assign(W11=W11, r2=self._r2_draws())

    def _require_rows(self, purpose: str) -> None:
        """Refuse what a scatter matrix cannot answer."""
        if not self.observed.table.n:
            raise ValueError(f"{purpose} needs the rows of a table; this posterior was made from a scatter matrix")


def load(path: str | Path) -> Posterior:
    """Read back what :meth:`Posterior.save` wrote."""
    groups, settings = saving.read(Path(path))
    observed = Observed.from_datasets(groups["table"], groups["latent"])
    return Posterior(groups["draws"], groups["effort"], observed, settings)
