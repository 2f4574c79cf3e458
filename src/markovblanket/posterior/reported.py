"""The quantities that every fit is judged by: ``W11``, R2 and what the prior learned."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from markovblanket.chains.stores import AXES
from markovblanket.posterior.summaries import convergence, describe, flat


def hyperparameters(draws: xr.Dataset) -> xr.Dataset:
    """Draws of what the prior learned."""
    return draws.drop_vars(list(AXES), errors="ignore")


def r2(draws: xr.Dataset) -> xr.DataArray:
    """Explained over total variance of each query variable, draw by draw."""
    residual = np.einsum("...ii->...i", np.linalg.inv(draws["W11"].values))
    return (draws["explained"] / (draws["explained"] + residual)).rename("r2")


def reported(draws: xr.Dataset) -> xr.Dataset:
    """All of them; each entry of the symmetric ``W11`` once."""
    query = draws["query"].values.tolist()
    i, j = np.triu_indices(len(query))
    pairs = [f"{query[a]}, {query[b]}" for a, b in zip(i, j, strict=True)]
    W11 = xr.DataArray(draws["W11"].values[:, :, i, j], dims=("chain", "draw", "pair"), coords={"pair": pairs})
    names = ["variable", "query_other", "edge", "edge_query", "edge_variable"]
    hyper = hyperparameters(draws).drop_vars(names, errors="ignore")
    return hyper.assign(W11=W11, r2=r2(draws))


def summarised(draws: xr.Dataset, level: float) -> pd.DataFrame:
    """Mean, sd, interval, R-hat and ESS of all of them, a row each."""
    rows = flat(reported(draws))
    frame = describe(np.stack([array.ravel() for array in rows.values()], axis=1), level)
    frame.insert(0, "quantity", list(rows))
    return frame.set_index("quantity").join(convergence(rows))
