"""Names for the axes of what the chains drew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from markovblanket.chains.stores import AXES, EFFORT, STREAM
from markovblanket.chains.streaming import TOGETHER
from markovblanket.contracts import Array

EDGE = ("query", "variable")
# The axes of streamed statistics that are not a number per edge, chain by chain or for all chains together.
STREAM_AXES = {
    "sum": ("chain", "part", *EDGE),
    "squares": ("chain", "part", *EDGE),
    "histogram": (*EDGE, "bin"),
    "kept": ("edge", "end"),
    "first": (),
}


def name_axes(
    arrays: Mapping[str, Array], query: Sequence[Any], rest: Sequence[Any]
) -> tuple[xr.Dataset, xr.Dataset]:
    """The chains' arrays as data sets with named axes: draws, and the effort of making them."""
    coords = {"query": list(query), "query_other": list(query), "variable": list(rest)}
    named = {
        name: (("chain", "draw", *AXES.get(name, ())), array)
        for name, array in arrays.items()
        if not name.startswith(STREAM)
    }
    draws = xr.Dataset({name: value for name, value in named.items() if name not in EFFORT}, coords=coords)
    if "edge" in draws.dims:
        kept = arrays[f"{STREAM}kept"].astype(int)
        ends = [query[i] for i, _ in kept], [rest[j] for _, j in kept]
        names = [edge_name(*pair) for pair in zip(*ends, strict=True)]
        draws = draws.assign_coords(edge=names, edge_query=("edge", ends[0]), edge_variable=("edge", ends[1]))
    effort = xr.Dataset({name: named[name] for name in EFFORT if name in named})
    counted = {dim: np.arange(size) for dim, size in effort.sizes.items()}
    return draws.assign_coords(counted), effort.assign_coords(counted)


def name_streams(arrays: Mapping[str, Array]) -> xr.Dataset | None:
    """The streamed statistics with named axes; None where every draw was kept instead."""
    found = {name.removeprefix(STREAM): array for name, array in arrays.items() if name.startswith(STREAM)}
    named = {name: (_stream_axes(name), array) for name, array in found.items()}
    return xr.Dataset(named) if named else None


def _stream_axes(name: str) -> tuple[str, ...]:
    """The axes of a streamed statistic."""
    return STREAM_AXES.get(name, EDGE if name in TOGETHER else ("chain", *EDGE))


def edge_name(query: Any, variable: Any) -> str:
    """An edge in a word."""
    return f"{query}~{variable}"
