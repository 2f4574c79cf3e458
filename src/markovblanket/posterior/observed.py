"""The table behind a posterior, and its latent columns as some of the draws left them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from markovblanket.chains.stores import AXES, EFFORT, STREAM_PREFIX
from markovblanket.chains.streaming import MERGED_STATISTICS
from markovblanket.contracts import Array, Columns
from markovblanket.model.copula import transforms
from markovblanket.model.copula.latent import Copula
from markovblanket.model.copula.transforms import Scale, Standard
from markovblanket.tables.columns import Column, number
from markovblanket.tables.names import Name
from markovblanket.tables.table import MixedTable, Standardisation

Sample = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Observed:
    """What was observed, and what was drawn where it was not.

    Parameters
    ----------
    table : MixedTable
        The table as it was understood; without rows if there was a scatter matrix only.
    margins : str
        How its columns entered the model.
    latent : xarray.DataArray
        Columns that move, as they stood in some of the draws: (chain, draw, row, column); ``draw`` tells which.
    """

    table: MixedTable
    margins: str
    latent: xr.DataArray

    @classmethod
    def of(cls, table: MixedTable, margins: str, moving: list[Name], latent: Array, every: int = 1) -> Observed:
        """With ``latent`` columns of the names ``moving``, kept once in so many draws."""
        coords = {"draw": every * np.arange(1, latent.shape[1] + 1) - 1, "column": moving}
        return cls(table, margins, xr.DataArray(latent, dims=("chain", "draw", "row", "column"), coords=coords))

    @property
    def p(self) -> int:
        """Number of query variables."""
        return len(self.table.query)

    @property
    def moving(self) -> list[Name]:
        """Names of the columns that move, those of the query first."""
        return list(self.latent["column"].values.tolist())

    @cached_property
    def start(self) -> Columns:
        """Latent columns where none moves; those that do, as they first stood."""
        if self.margins != "gaussian":
            copula = Copula.of(self.table.columns, self.p, by_rank=self.margins == "rank")
            return copula.start()
        X = self.standardisation.apply(np.column_stack([column.values for column in self.table.columns]))
        return Columns(X[:, : self.p], X[:, self.p :])

    def require_rows(self, purpose: str) -> None:
        """Refuse what a scatter matrix cannot answer."""
        if not self.table.n:
            raise ValueError(f"{purpose} needs the rows of a table; this posterior was made from a scatter matrix")

    def correlation(self, names: Sequence[Name]) -> Array:
        """Of some of the remaining variables, as they entered the model; moving ones as they first stood."""
        place = {name: j for j, name in enumerate(self.table.rest)}
        X = self.start.X2[:, [place[name] for name in names]]
        size = np.sqrt(np.einsum("rk,rk->k", X, X))
        correlation: Array = X.T @ X / np.outer(size, size)
        return correlation

    def samples(self, most: int) -> list[Sample]:
        """At most so many of the draws that kept their latent columns, evenly spaced: chain, and which of them."""
        if isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 1:
            raise ValueError(f"draws={most!r}: must be a whole number, at least 1")
        every = list(np.ndindex(*self.latent.shape[:2]))
        return [every[k] for k in np.linspace(0, len(every) - 1, min(most, len(every))).round().astype(int)]

    def draw_of(self, sample: Sample) -> Sample:
        """Chain and draw of a sample."""
        return sample[0], int(self.latent["draw"].values[sample[1]])

    def columns_at(self, sample: Sample) -> Columns:
        """All latent columns as they stood."""
        names = (*self.table.query, *self.table.rest)
        place = {name: k for k, name in enumerate(names)}
        X = np.hstack([self.start.X1, self.start.X2])
        X[:, [place[name] for name in self.moving]] = self.latent.values[sample]
        return Columns(X[:, : self.p], X[:, self.p :])

    @cached_property
    def moving_rest(self) -> dict[int, int]:
        """Positions of the moving columns among the rest, and among those that move."""
        place = {name: j for j, name in enumerate(self.table.rest)}
        return {place[name]: k for k, name in enumerate(self.moving) if name in place}

    def rest_at(self, sample: Sample, J: npt.NDArray[np.intp]) -> Array:
        """The latent columns at positions J of the rest, as they stood."""
        X, moves = self.start.X2[:, J], self.latent.values[sample]
        for k, j in enumerate(J.tolist()):
            if j in self.moving_rest:
                X[:, k] = moves[:, self.moving_rest[j]]
        return X

    def scales(self, rng: np.random.Generator, sample: Sample, names: Iterable[Name]) -> Iterator[Scale]:
        """The scale of each named column, with its cuts where the sample allows them to be."""
        place = {name: k for k, name in enumerate(self.moving)}
        for name in names:
            if name in self.fixed_scales:
                yield self.fixed_scales[name]
            else:
                x = self.latent.values[(*sample, slice(None), place[name])]
                yield transforms.of_column(rng, self.columns[name], x)

    @cached_property
    def columns(self) -> dict[Name, Column]:
        """Columns by name."""
        return {column.name: column for column in self.table.columns}

    @cached_property
    def fixed_scales(self) -> dict[Name, Scale]:
        """Of columns whose scale is the same in every draw."""
        if self.margins == "gaussian":
            whole = self.standardisation
            pairs = zip(self.columns, whole.mean.tolist(), whole.sd.tolist(), strict=True)
            return {name: Standard(mean, sd) for name, mean, sd in pairs}
        drawn = set(self.moving) if self.margins == "rank" else set()
        plain = {n: c for n, c in self.columns.items() if c.kind == "continuous" and n not in drawn}
        return {name: transforms.Curve.of_scores(column.values) for name, column in plain.items()}

    @cached_property
    def standardisation(self) -> Standardisation:
        """Of columns that entered as they are, query first; a scatter matrix was taken as given."""
        if not self.table.n:
            return Standardisation(np.zeros(len(self.columns)), np.ones(len(self.columns)))
        values = np.column_stack([column.values for column in self.table.columns])
        return Standardisation.of(values, tuple(self.columns))

    # As data sets ---------------------------------------------------------------------------------------

    def to_datasets(self) -> dict[str, xr.Dataset]:
        """Two data sets from which :meth:`from_datasets` makes the same again."""
        table = self.table
        place = {name: k for k, name in enumerate(table.order)}
        names = [column.name for column in table.columns]
        described = [_described_column(column) for column in table.columns]
        attributes = {"margins": self.margins, "query": self.p, "columns": json.dumps(described)}
        whole = xr.Dataset(
            {
                "values": (("row", "column"), np.column_stack([column.values for column in table.columns])),
                "position": ("column", [place[name] for name in names]),
            },
            coords={"row": _plain_names(table.rows), "column": names},
            attrs=attributes,
        )
        return {"table": whole, "latent": xr.Dataset({"latent": self.latent})}

    @classmethod
    def from_datasets(cls, whole: xr.Dataset, latent: xr.Dataset) -> Observed:
        """The inverse of :meth:`to_datasets`."""
        names, p = whole["column"].values.tolist(), int(whole.attrs["query"])
        described = json.loads(whole.attrs["columns"])
        values = np.asfortranarray(whole["values"].values)
        columns = tuple(
            Column(name, what["kind"], x, tuple(what["levels"]), what["dtype"], tuple(what["categories"]))
            for name, x, what in zip(names, values.T, described, strict=True)
        )
        order = tuple(names[k] for k in np.argsort(whole["position"].values))
        table = MixedTable(columns, tuple(names[:p]), tuple(names[p:]), order, whole["row"].values)
        return cls(table, str(whole.attrs["margins"]), latent["latent"])


def _described_column(column: Column) -> dict[str, Any]:
    """All of a column but its name and its numbers, as JSON knows it."""
    levels, categories = ([_plain_level(level) for level in part] for part in (column.levels, column.categories))
    return {"kind": column.kind, "levels": levels, "dtype": column.dtype, "categories": categories}


def _plain_names(rows: Any) -> npt.NDArray[Any]:
    """Names of rows that a file can hold: whole numbers, or text."""
    names = np.asarray(rows)
    return names if names.dtype.kind in "iu" else np.array([str(name) for name in rows])


def _plain_level(level: Any) -> Any:
    """Text, booleans, integers and floats as they are; rarer numbers as floats."""
    return level if isinstance(level, str | bool | int | float) else number(level)


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
        if not name.startswith(STREAM_PREFIX)
    }
    draws = xr.Dataset({name: value for name, value in named.items() if name not in EFFORT}, coords=coords)
    if "edge" in draws.dims:
        kept = arrays[f"{STREAM_PREFIX}kept"].astype(int)
        ends = [query[i] for i, _ in kept], [rest[j] for _, j in kept]
        names = [edge_name(*pair) for pair in zip(*ends, strict=True)]
        draws = draws.assign_coords(edge=names, edge_query=("edge", ends[0]), edge_variable=("edge", ends[1]))
    effort = xr.Dataset({name: named[name] for name in EFFORT if name in named})
    counted = {dim: np.arange(size) for dim, size in effort.sizes.items()}
    return draws.assign_coords(counted), effort.assign_coords(counted)


def name_streams(arrays: Mapping[str, Array]) -> xr.Dataset | None:
    """The streamed statistics with named axes; None where every draw was kept instead."""
    found = {
        name.removeprefix(STREAM_PREFIX): array for name, array in arrays.items() if name.startswith(STREAM_PREFIX)
    }
    named = {name: (_stream_axes(name), array) for name, array in found.items()}
    return xr.Dataset(named) if named else None


def _stream_axes(name: str) -> tuple[str, ...]:
    """The axes of a streamed statistic."""
    return STREAM_AXES.get(name, EDGE if name in MERGED_STATISTICS else ("chain", *EDGE))


def edge_name(query: Any, variable: Any) -> str:
    """An edge in a word."""
    return f"{query}~{variable}"
