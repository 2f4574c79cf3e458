"""Means, intervals and convergence of draws, as data frames."""

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


def stacked(array: xr.DataArray) -> Array:
    """All draws of all chains along one first axis."""
    values: Array = array.values
    return values.reshape(-1, *values.shape[2:])


def take(names: Sequence[Any], positions: npt.NDArray[np.intp]) -> list[Any]:
    """``names`` at ``positions``."""
    return [names[k] for k in positions]


def tails(level: float) -> tuple[float, float]:
    """The probabilities at which the central interval at ``level`` begins and ends."""
    if not 0 < level < 1:
        raise ValueError(f"level={level!r}: a credibility level lies between 0 and 1")
    return (1 - level) / 2, (1 + level) / 2


def describe(draws: Array, level: float) -> pd.DataFrame:
    """Mean, sd and central interval at ``level`` of every column of ``draws``."""
    lower, upper = np.quantile(draws, tails(level), axis=0)
    columns = {"mean": draws.mean(axis=0), "sd": draws.std(axis=0, ddof=min(1, len(draws) - 1))}
    return pd.DataFrame(columns | {"lower": lower, "upper": upper})


def describe_levels(column: Column, probabilities: Array, level: float) -> pd.DataFrame:
    """Of cells whose levels have these probabilities, cells x levels: as :func:`describe`, and the likeliest one.

    Mean, sd and interval are those of the levels' numbers, missing if they have none; the ends are levels.
    """
    y = level_numbers(column)
    mean = probabilities @ y
    sd = np.sqrt(np.sum(probabilities * (y - mean[:, None]) ** 2, axis=1))
    lower, upper = (_level_quantile(y, probabilities, tail) for tail in tails(level))
    likeliest = [column.levels[k] for k in probabilities.argmax(axis=1)]
    ends = {"mean": mean, "sd": sd, "lower": lower, "upper": upper}
    return pd.DataFrame(ends).assign(likeliest=likeliest, probability=probabilities.max(axis=1))


def _level_quantile(y: Array, probabilities: Array, tail: float) -> Array:
    """The smallest of the numbers y up to which a row of probabilities adds up to ``tail``."""
    order = np.argsort(y)
    below = np.cumsum(probabilities[:, order], axis=1)[:, :-1] < tail
    return y[order[below.sum(axis=1)]]


def level_numbers(column: Column) -> Array:
    """The levels of a column as numbers, missing if any of them is text."""
    numbers = [level if isinstance(level, str) else number(level) for level in column.levels]
    words = any(isinstance(level, str) for level in numbers)
    return np.full(len(numbers), np.nan) if words else np.array(numbers, dtype=float)


def likelier(edges: pd.DataFrame) -> pd.Series:
    """The probability of inclusion by which edges are selected: with a second look, the larger of both ends'."""
    return edges[[name for name in ("inclusion", "inclusion_other") if name in edges]].max(axis=1)


def convergence(draws: Mapping[Any, Array]) -> pd.DataFrame:
    """R-hat, bulk and tail ESS of named (chain, draw) arrays; missing with fewer than 4 draws, or no motion."""
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
    """Every scalar of a data set as a (chain, draw) array, named like ``W11[a, b]``."""
    out: dict[str, Array] = {}
    for name, array in draws.data_vars.items():
        dims = [dim for dim in array.dims if dim not in ("chain", "draw")]
        for where in np.ndindex(*(array.sizes[dim] for dim in dims)):
            labels = [str(array[dim].values[k]) for dim, k in zip(dims, where, strict=True)]
            label = f"{name}[{', '.join(labels)}]" if labels else str(name)
            out[label] = array.values[(slice(None), slice(None), *where)]
    return out


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
