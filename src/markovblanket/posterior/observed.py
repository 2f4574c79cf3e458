"""The table behind a posterior with its latent columns in some draws; and draws as data sets with named axes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from markovblanket.chains.stores import AVERAGE_PREFIX, AXES, EFFORT, STREAM_PREFIX
from markovblanket.chains.streaming import MERGED_STATISTICS
from markovblanket.contracts import Array, Columns
from markovblanket.model.copula import transforms
from markovblanket.model.copula.latent import Copula
from markovblanket.model.copula.transforms import Scale, Standard
from markovblanket.model.rest_prior import RestPrior
from markovblanket.tables.columns import Column, number
from markovblanket.tables.names import Name
from markovblanket.tables.table import MixedTable, Standardisation

# A chain, and the number of one of its draws that kept latent columns.
Sample = tuple[int, int]
# The axes of a statistic of every edge.
EDGE_AXES = ("query", "variable")
# The axes of streamed statistics that have others than the edge and perhaps the chain.
STREAM_AXES = {
    "sum": ("chain", "part", *EDGE_AXES),
    "squares": ("chain", "part", *EDGE_AXES),
    "histogram": (*EDGE_AXES, "bin"),
    "kept": ("edge", "end"),
    "first": (),
}


@dataclass(frozen=True, eq=False)
class Observed:
    """The observed table, and draws of its latent columns.

    Parameters
    ----------
    table : MixedTable
        The table as it was read; without rows if only a scatter matrix was given.
    margins : str
        How its columns entered the model.
    latent : xarray.DataArray
        The latent columns that move, in some of the draws: (chain, draw, row, column); ``draw`` has their numbers.
    """

    table: MixedTable
    margins: str
    latent: xr.DataArray

    @classmethod
    def of(cls, table: MixedTable, margins: str, moving: list[Name], latent: Array, every: int = 1) -> Observed:
        """Return the observed table with ``latent`` columns named ``moving``, kept once in ``every`` draws."""
        coords = {"draw": every * np.arange(1, latent.shape[1] + 1) - 1, "column": moving}
        return cls(table, margins, xr.DataArray(latent, dims=("chain", "draw", "row", "column"), coords=coords))

    @property
    def p(self) -> int:
        """Number p of query variables."""
        return len(self.table.query)

    @property
    def moving(self) -> list[Name]:
        """Names of the columns whose latent values move, those of the query first."""
        return list(self.latent["column"].values.tolist())

    @cached_property
    def start(self) -> Columns:
        """Latent columns at their initial values, which columns that do not move keep."""
        if self.margins != "gaussian":
            copula = Copula.of(self.table.columns, self.p, by_rank=self.margins == "rank")
            return copula.start()
        X = self.standardisation.apply(np.column_stack([column.values for column in self.table.columns]))
        return Columns(X[:, : self.p], X[:, self.p :])

    @cached_property
    def rest_prior(self) -> RestPrior:
        """The prior of ``W22.1``, chosen by the initial columns as in the sampler of the paper's block."""
        return RestPrior.of_columns(self.start.X2)

    def require_rows(self, purpose: str) -> None:
        """Raise a ValueError if there are no rows, because a scatter matrix was given."""
        if not self.table.n:
            raise ValueError(f"{purpose} needs the rows of a table; this posterior was made from a scatter matrix")

    def correlation(self, names: Sequence[Name]) -> Array:
        """Return the correlations of some variables, from their initial latent columns."""
        column = dict(zip(self.table.query, self.start.X1.T, strict=True))
        column |= dict(zip(self.table.rest, self.start.X2.T, strict=True))
        X = np.column_stack([column[name] for name in names])
        size = np.sqrt(np.einsum("rk,rk->k", X, X))
        correlation: Array = X.T @ X / np.outer(size, size)
        return correlation

    def samples(self, most: int) -> list[Sample]:
        """Return at most ``most`` of the draws that kept latent columns, evenly spaced over all chains."""
        if isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 1:
            raise ValueError(f"draws={most!r}: must be a whole number, at least 1")
        every = list(np.ndindex(*self.latent.shape[:2]))
        return [every[k] for k in np.linspace(0, len(every) - 1, min(most, len(every))).round().astype(int)]

    def draw_of(self, sample: Sample) -> Sample:
        """Return the chain and the number of the draw of a sample."""
        return sample[0], int(self.latent["draw"].values[sample[1]])

    def columns_at(self, sample: Sample) -> Columns:
        """Return all latent columns in a sample."""
        names = (*self.table.query, *self.table.rest)
        place = {name: k for k, name in enumerate(names)}
        X = np.hstack([self.start.X1, self.start.X2])
        X[:, [place[name] for name in self.moving]] = self.latent.values[sample]
        return Columns(X[:, : self.p], X[:, self.p :])

    def means_at(self, sample: Sample) -> tuple[Array, Array]:
        """Return the means of the latent columns of the query and of the rest in a sample.

        They are zero but for columns that move: a mean over filled cells need not be that of the observed ones.
        """
        names = (*self.table.query, *self.table.rest)
        place = {name: k for k, name in enumerate(names)}
        means = np.zeros(len(names))
        if self.moving:  # in one order in memory, so that the last bits are those of a posterior that was saved
            drawn = np.ascontiguousarray(self.latent.values[sample])
            means[[place[name] for name in self.moving]] = drawn.mean(axis=0)
        return means[: self.p], means[self.p :]

    @cached_property
    def moving_rest(self) -> dict[int, int]:
        """The position of each moving column among the rest, and its position among all moving columns."""
        place = {name: j for j, name in enumerate(self.table.rest)}
        return {place[name]: k for k, name in enumerate(self.moving) if name in place}

    def rest_at(self, sample: Sample, J: npt.NDArray[np.intp]) -> Array:
        """Return the latent columns at positions J of the rest in a sample."""
        X, moves = self.start.X2[:, J], self.latent.values[sample]
        for k, j in enumerate(J.tolist()):
            if j in self.moving_rest:
                X[:, k] = moves[:, self.moving_rest[j]]
        return X

    def scales(self, rng: np.random.Generator, sample: Sample, names: Iterable[Name]) -> Iterator[Scale]:
        """Yield the scale of each named column; its cut points are drawn given the latent column of the sample."""
        place = {name: k for k, name in enumerate(self.moving)}
        for name in names:
            if name in self.fixed_scales:
                yield self.fixed_scales[name]
            else:
                x = self.latent.values[(*sample, slice(None), place[name])]
                yield transforms.of_column(rng, self.columns[name], x)

    @cached_property
    def columns(self) -> dict[Name, Column]:
        """The columns of the table by name."""
        return {column.name: column for column in self.table.columns}

    @cached_property
    def fixed_scales(self) -> dict[Name, Scale]:
        """The scales of the columns whose scale is the same in every draw."""
        if self.margins == "gaussian":
            whole = self.standardisation
            pairs = zip(self.columns, whole.mean.tolist(), whole.sd.tolist(), strict=True)
            return {name: Standard(mean, sd) for name, mean, sd in pairs}
        drawn = set(self.moving) if self.margins == "rank" else set()
        plain = {n: c for n, c in self.columns.items() if c.kind == "continuous" and n not in drawn}
        return {name: transforms.Curve.of_scores(column.values) for name, column in plain.items()}

    @cached_property
    def standardisation(self) -> Standardisation:
        """The standardisation of all columns, query first; the identity for a scatter matrix."""
        if not self.table.n:
            return Standardisation(np.zeros(len(self.columns)), np.ones(len(self.columns)))
        values = np.column_stack([column.values for column in self.table.columns])
        return Standardisation.of(values, tuple(self.columns))

    # As data sets ---------------------------------------------------------------------------------------

    def to_datasets(self) -> dict[str, xr.Dataset]:
        """Return two data sets, from which :meth:`from_datasets` restores the object."""
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
        """Restore an object from its two data sets, the inverse of :meth:`to_datasets`."""
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
    """Return kind, levels, type and categories of a column in a form that JSON can store."""
    levels, categories = ([_plain_level(level) for level in part] for part in (column.levels, column.categories))
    return {"kind": column.kind, "levels": levels, "dtype": column.dtype, "categories": categories}


def _plain_names(rows: Any) -> npt.NDArray[Any]:
    """Return names of rows that a file can store: whole numbers, or text."""
    names = np.asarray(rows)
    return names if names.dtype.kind in "iu" else np.array([str(name) for name in rows])


def _plain_level(level: Any) -> Any:
    """Return a level that JSON can store: numbers other than booleans, integers and floats become floats."""
    return level if isinstance(level, str | bool | int | float) else number(level)


# Names of axes ----------------------------------------------------------------------------------------


def name_axes(
    arrays: Mapping[str, Array], query: Sequence[Any], rest: Sequence[Any]
) -> tuple[xr.Dataset, xr.Dataset]:
    """Return the arrays of the chains as two data sets with named axes: the draws, and the effort they took."""
    coords = {"query": list(query), "query_other": list(query), "variable": list(rest)}
    named = {
        name: (("chain", "draw", *AXES.get(name, ())), array)
        for name, array in arrays.items()
        if not name.startswith((STREAM_PREFIX, AVERAGE_PREFIX))
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
    """Return the streamed statistics with named axes; None if every draw was kept instead."""
    found = {
        name.removeprefix(STREAM_PREFIX): array for name, array in arrays.items() if name.startswith(STREAM_PREFIX)
    }
    named = {name: (_stream_axes(name), array) for name, array in found.items()}
    return xr.Dataset(named) if named else None


def name_averages(arrays: Mapping[str, Array], query: Sequence[Any], rest: Sequence[Any]) -> xr.Dataset | None:
    """Return the means over the draws of each chain, (chain, query, other); None if there are none.

    The axis ``other`` has all variables, those of the query first.
    """
    found = {
        name.removeprefix(AVERAGE_PREFIX): (("chain", "query", "other"), array)
        for name, array in arrays.items()
        if name.startswith(AVERAGE_PREFIX)
    }
    return xr.Dataset(found, coords={"query": list(query), "other": [*query, *rest]}) if found else None


def _stream_axes(name: str) -> tuple[str, ...]:
    """Return the names of the axes of a streamed statistic."""
    return STREAM_AXES.get(name, EDGE_AXES if name in MERGED_STATISTICS else ("chain", *EDGE_AXES))


def edge_name(query: Any, variable: Any) -> str:
    """Return the name of an edge, such as ``"query~variable"``."""
    return f"{query}~{variable}"
