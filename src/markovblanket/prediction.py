"""The query variables given the rest: ``X1 | X2 ~ N(-X2 W21 U, U)``, row by row, with W drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from markovblanket.contracts import Array


@dataclass(frozen=True)
class Prediction:
    """Predictive draws of the query variables, on the scale of the data.

    Attributes
    ----------
    draws : xarray.DataArray
        Dimensions (sample, row, query).
    mean : pandas.DataFrame
        The predictive mean, rows of the table by query variables; free of Monte Carlo noise in the residuals.
    """

    draws: xr.DataArray
    mean: pd.DataFrame

    def summary(self, level: float = 0.9) -> pd.DataFrame:
        """A row per cell: mean, sd and the central predictive interval at ``level``."""
        tail = (1 - level) / 2
        lower, upper = np.quantile(self.draws, [tail, 1 - tail], axis=0)
        columns = {"mean": self.mean.to_numpy(), "sd": self.draws.std("sample").to_numpy()}
        columns |= {"lower": lower, "upper": upper}
        index = pd.MultiIndex.from_product([self.mean.index, self.mean.columns], names=["row", "query"])
        return pd.DataFrame({name: values.ravel() for name, values in columns.items()}, index=index)


def coefficients(W11: Array, W12: Array) -> Array:
    """``-U W12``: the regression of the query on the rest, for each draw."""
    return -np.linalg.solve(W11, W12)


def predictive_draws(rng: np.random.Generator, W11: Array, W12: Array, X2: Array) -> Array:
    """A draw of ``X1`` for each draw of W; draws x rows x p."""
    out = np.empty((len(W11), len(X2), W11.shape[1]))
    for k, (w11, w12) in enumerate(zip(W11, W12, strict=True)):
        noise = rng.standard_normal((len(X2), len(w11)))
        # W11 = L L' gives U = L^-T L^-1, so rows of noise L^-1 have covariance U.
        out[k] = X2 @ coefficients(w11, w12).T + np.linalg.solve(np.linalg.cholesky(w11).T, noise.T).T
    return out
