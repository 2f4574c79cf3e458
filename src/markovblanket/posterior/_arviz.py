"""The one place that knows which ArviZ is installed.

Up to 0.2x ArviZ keeps draws in ``InferenceData``; from 1.0 on in ``xarray.DataTree``. R-hat and effective sample
sizes are always ArviZ's.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import xarray as xr

# Filters of warnings are the process's: two threads that changed them at a time would not restore them.
IMPORTING = threading.Lock()


@cache
def arviz() -> ModuleType:
    """ArviZ, imported when first needed: it brings matplotlib."""
    with IMPORTING, warnings.catch_warnings():
        # 0.23 announces the coming of 1.0 on import; this module is how the package is ready for it.
        warnings.simplefilter("ignore", FutureWarning)
        import arviz

    return arviz


def inference_data(groups: Mapping[str, xr.Dataset]) -> Any:
    """ArviZ's container for the groups: every ``az.plot_*`` and ``az.summary`` takes it.

    Without coordinates that are no index, of which the summary of ArviZ 1.x makes an error.
    """
    az = arviz()
    plain = {name: group.drop_vars(set(group.coords) - set(group.indexes)) for name, group in groups.items()}
    if int(az.__version__.split(".")[0]) < 1:
        return az.InferenceData(**plain)
    return xr.DataTree.from_dict(plain)


def rhat(draws: xr.Dataset) -> xr.Dataset:
    """Rank-normalised split R-hat of every quantity; a single chain is judged by its two halves."""
    with np.errstate(invalid="ignore", divide="ignore"):  # chains that never move divide 0 by 0: NaN is the answer
        return _dataset(arviz().rhat(_halves(draws) if draws.sizes["chain"] == 1 else draws))


def ess(draws: xr.Dataset, method: str = "bulk") -> xr.Dataset:
    """Effective sample size of every quantity."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return _dataset(arviz().ess(draws, method=method))


def _halves(draws: xr.Dataset) -> xr.Dataset:
    """The first and the second half of one chain as two chains."""
    half = draws.sizes["draw"] // 2
    parts = [
        draws.isel(chain=0, draw=slice(k * half, (k + 1) * half)).drop_vars("draw", errors="ignore")
        for k in (0, 1)
    ]
    return xr.concat(parts, dim="chain")


def _dataset(result: Any) -> xr.Dataset:
    return result if isinstance(result, xr.Dataset) else result.to_dataset()
