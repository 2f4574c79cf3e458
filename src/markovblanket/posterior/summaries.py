"""Means, intervals and convergence of draws as data frames; functions of ArviZ, for its versions 0.x and 1.x."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from markovblanket.contracts import Array
from markovblanket.tables.columns import Column, number

# The filters of warnings belong to the process: two threads that change them at the same time do not restore them.
WARNING_FILTERS_LOCK = threading.Lock()


# Means and intervals ----------------------------------------------------------------------------------


def stacked(array: xr.DataArray) -> Array:
    """Return the draws of all chains along one first axis."""
    return pooled(array.values)


def pooled(draws: Array) -> Array:
    """Return draws (chain, draw, ...) of all chains along one first axis; its size is not inferred from others."""
    return draws.reshape(draws.shape[0] * draws.shape[1], *draws.shape[2:])


def take(names: Sequence[Any], positions: npt.NDArray[np.intp]) -> list[Any]:
    """Return the names at these positions."""
    return [names[k] for k in positions]


def tails(level: float) -> tuple[float, float]:
    """Return the probabilities of the lower and upper ends of the central interval at ``level``."""
    if not 0 < level < 1:
        raise ValueError(f"level={level!r}: a credibility level lies between 0 and 1")
    return (1 - level) / 2, (1 + level) / 2


def describe(draws: Array, level: float) -> pd.DataFrame:
    """Return mean, sd and central interval at ``level`` of every column of ``draws``."""
    lower, upper = np.quantile(draws, tails(level), axis=0)
    columns = {"mean": draws.mean(axis=0), "sd": draws.std(axis=0, ddof=min(1, len(draws) - 1))}
    return pd.DataFrame(columns | {"lower": lower, "upper": upper})


def describe_levels(column: Column, probabilities: Array, level: float) -> pd.DataFrame:
    """Return mean, sd, interval and likeliest level of cells, from probabilities of their levels (cells x levels).

    Mean, sd and interval are those of the levels as numbers, missing if some level is text.
    """
    y = level_numbers(column)
    mean = probabilities @ y
    sd = np.sqrt(np.sum(probabilities * (y - mean[:, None]) ** 2, axis=1))
    lower, upper = (_level_quantile(y, probabilities, tail) for tail in tails(level))
    likeliest = [column.levels[k] for k in probabilities.argmax(axis=1)]
    ends = {"mean": mean, "sd": sd, "lower": lower, "upper": upper}
    return pd.DataFrame(ends).assign(likeliest=likeliest, probability=probabilities.max(axis=1))


def _level_quantile(y: Array, probabilities: Array, tail: float) -> Array:
    """Return the smallest number y up to which a row of probabilities adds up to at least ``tail``."""
    order = np.argsort(y)
    below = np.cumsum(probabilities[:, order], axis=1)[:, :-1] < tail
    return y[order[below.sum(axis=1)]]


def level_numbers(column: Column) -> Array:
    """Return the levels of a column as numbers, all missing if any level is text."""
    numbers = [level if isinstance(level, str) else number(level) for level in column.levels]
    words = any(isinstance(level, str) for level in numbers)
    return np.full(len(numbers), np.nan) if words else np.array(numbers, dtype=float)


# Convergence ------------------------------------------------------------------------------------------


def convergence(draws: Mapping[Any, Array]) -> pd.DataFrame:
    """Return R-hat, bulk and tail ESS of named (chain, draw) arrays; missing if constant or under 4 draws."""
    names = list(draws)
    if not names or next(iter(draws.values())).shape[1] < 4:
        return pd.DataFrame(np.nan, index=names, columns=["rhat", "ess_bulk", "ess_tail"])
    block = xr.Dataset({"x": (("chain", "draw", "name"), np.stack(list(draws.values()), axis=2))})
    bulk, tail = (ess(block, method)["x"].values for method in ("bulk", "tail"))
    columns = {"rhat": rhat(block)["x"].values, "ess_bulk": bulk, "ess_tail": tail}
    frame = pd.DataFrame(columns, index=names)
    frame.loc[np.ptp(block["x"].values, axis=(0, 1)) == 0] = np.nan
    return frame


def flat(draws: xr.Dataset) -> dict[str, Array]:
    """Return every scalar of a data set as a (chain, draw) array, with a name such as ``W11[a, b]``."""
    out: dict[str, Array] = {}
    for name, array in draws.data_vars.items():
        dims = [dim for dim in array.dims if dim not in ("chain", "draw")]
        for where in np.ndindex(*(array.sizes[dim] for dim in dims)):
            labels = [str(array[dim].values[k]) for dim, k in zip(dims, where, strict=True)]
            label = f"{name}[{', '.join(labels)}]" if labels else str(name)
            out[label] = array.values[(slice(None), slice(None), *where)]
    return out


# ArviZ ------------------------------------------------------------------------------------------------


@cache
def arviz() -> ModuleType:
    """Import ArviZ when it is first needed: it imports matplotlib, which takes time."""
    with WARNING_FILTERS_LOCK, warnings.catch_warnings():
        # Version 0.23 warns of version 1.0 on import; the functions below work with both.
        warnings.simplefilter("ignore", FutureWarning)
        import arviz

    return arviz


def inference_data(groups: Mapping[str, xr.Dataset]) -> Any:
    """Return ArviZ's container of these groups, as ``az.summary`` and every ``az.plot_*`` expect it.

    Coordinates that are not indexes are dropped: they make the summary of ArviZ 1.x fail.
    """
    az = arviz()
    plain = {name: group.drop_vars(set(group.coords) - set(group.indexes)) for name, group in groups.items()}
    if int(az.__version__.split(".")[0]) < 1:
        return az.InferenceData(**plain)
    return xr.DataTree.from_dict(plain)


def rhat(draws: xr.Dataset) -> xr.Dataset:
    """Return rank-normalised split R-hat of every quantity; the halves of a single chain count as two chains."""
    with np.errstate(invalid="ignore", divide="ignore"):  # 0/0 for chains that never move: NaN is right
        return _dataset(arviz().rhat(_halves(draws) if draws.sizes["chain"] == 1 else draws))


def ess(draws: xr.Dataset, method: str = "bulk") -> xr.Dataset:
    """Return the effective sample size of every quantity."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return _dataset(arviz().ess(draws, method=method))


def _halves(draws: xr.Dataset) -> xr.Dataset:
    """Return the first and the second half of one chain as two chains."""
    half = draws.sizes["draw"] // 2
    parts = [
        draws.isel(chain=0, draw=slice(k * half, (k + 1) * half)).drop_vars("draw", errors="ignore")
        for k in (0, 1)
    ]
    return xr.concat(parts, dim="chain")


def _dataset(result: Any) -> xr.Dataset:
    """Return a result of ArviZ as a data set; version 1.x returns trees."""
    return result if isinstance(result, xr.Dataset) else result.to_dataset()
