"""Names for the axes of what the chains drew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from markovblanket.contracts import Array

MATRICES = {
    "W11": ("query", "query_other"),
    "W12": ("query", "variable"),
    "W22_diagonal": ("variable",),
    "explained": ("query",),
}
EFFORT = ("iterations", "residual", "scale_factor")


def name_axes(
    arrays: Mapping[str, Array], query: Sequence[Any], rest: Sequence[Any]
) -> tuple[xr.Dataset, xr.Dataset]:
    """The chains' arrays as data sets with named axes: draws, and the effort of making them."""
    coords = {"query": list(query), "query_other": list(query), "variable": list(rest)}
    named = {name: (("chain", "draw", *MATRICES.get(name, ())), array) for name, array in arrays.items()}
    draws = xr.Dataset({name: value for name, value in named.items() if name not in EFFORT}, coords=coords)
    effort = xr.Dataset({name: named[name] for name in EFFORT})
    counted = {dim: np.arange(size) for dim, size in effort.sizes.items()}
    return draws.assign_coords(counted), effort.assign_coords(counted)
