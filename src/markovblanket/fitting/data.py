"""The data of a fit in the form of the model, from a table or a scatter matrix; and their copy in a run folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from markovblanket._files import DamagedError, told_as_damage
from markovblanket.chains import snapshots
from markovblanket.chains.snapshots import Record
from markovblanket.contracts import Array, Scatter
from markovblanket.fitting.run_folder import Plan, RunFolder, data_mark
from markovblanket.model.copula.latent import Copula
from markovblanket.model.scatter import checked, from_columns, from_matrix
from markovblanket.posterior.observed import Observed
from markovblanket.tables.columns import Column
from markovblanket.tables.names import Name, coordinates, split
from markovblanket.tables.table import (
    MixedTable,
    Standardisation,
    about,
    read,
    read_mixed,
    read_numbers,
    read_whole,
)

# In place of names: every column is a query variable.
EVERY_COLUMN: Any = object()


@dataclass(frozen=True, kw_only=True)
class ModelData:
    """Scatter, names and typed columns of a fit; if a scatter matrix was given, also that ``matrix``."""

    scatter: Scatter
    query: tuple[Name, ...]
    rest: tuple[Name, ...]
    fingerprint: str
    table: MixedTable
    latent: Copula | None = None
    margins: str = "gaussian"
    matrix: Array | None = None


def model_data(
    table: Any,
    query: Any,
    margins: str,
    kinds: Mapping[Any, Any] | None,
    scatter: npt.ArrayLike | None,
    n: int | None,
    names: Sequence[Any] | None,
) -> ModelData:
    """The data of :func:`markovblanket.estimate`: a table, or a scatter matrix with its number of rows."""
    if query is None:
        raise ValueError("query is missing: name the variables of interest; markovblanket.network takes them all")
    if (table is None) == (scatter is None):
        raise ValueError("give either a table or scatter=..., n=..., and not both")
    if scatter is not None and (margins not in ("auto", "gaussian") or kinds is not None):
        raise ValueError("margins and kinds are about tables; a scatter matrix is taken as given")
    if scatter is not None:
        return from_scatter(scatter, n, query, names)
    if n is not None or names is not None:
        raise ValueError("n and names belong to scatter=...; a table brings its own")
    if query is EVERY_COLUMN:
        whole = read_undivided(table, [], margins, kinds)
        return from_mixed_table(about(whole, whole.order), margins)
    if margins in ("auto", "rank"):
        return from_mixed_table(read_mixed(table, query, kinds), margins)
    _require_gaussian(margins, kinds)
    return from_table(table, query)


def read_undivided(table: Any, asked: list[Name], margins: str, kinds: Mapping[Any, Any] | None) -> MixedTable:
    """The table with typed columns, not divided into query and other variables; those ``asked`` for must exist."""
    if margins in ("auto", "rank"):
        return read_whole(table, asked, kinds)
    _require_gaussian(margins, kinds)
    return read_numbers(table, asked)


def _require_gaussian(margins: str, kinds: Mapping[Any, Any] | None) -> None:
    """Refuse margins other than ``"gaussian"``, and kinds beside these."""
    if margins != "gaussian":
        raise ValueError(f"margins={margins!r}: known are 'auto', 'rank' and 'gaussian'")
    if kinds is not None:
        raise ValueError("kinds belong to a copula: pass margins='auto' or 'rank'")


def from_table(table: Any, query: Any) -> ModelData:
    """The data from a table of numbers, its columns standardised to mean 0 and mean square 1."""
    data = read(table, query)
    X1, X2 = (Standardisation.of(X, names).apply(X) for X, names in ((data.X1, data.query), (data.X2, data.rest)))
    return ModelData(
        scatter=from_columns(X1, X2, centred=True),
        query=data.query,
        rest=data.rest,
        fingerprint=fingerprint_of(data.X1, data.X2),
        table=data.as_mixed(),
    )


def from_mixed_table(table: MixedTable, margins: str) -> ModelData:
    """The data from a table of typed columns: through a Gaussian copula, or as they are."""
    if margins == "gaussian":
        values = np.column_stack([column.values for column in table.columns])
        return replace(
            from_table(values, list(range(len(table.query)))), query=table.query, rest=table.rest, table=table
        )
    copula = Copula.of(table.columns, len(table.query), by_rank=margins == "rank")
    return ModelData(
        scatter=copula.scatter(copula.start())
        if copula.moves
        else from_columns(copula.X1, copula.X2, centred=True),
        query=table.query,
        rest=table.rest,
        fingerprint=fingerprint_of(*(column.values for column in table.columns)),
        table=table,
        latent=copula if copula.moves else None,
        margins=margins,
    )


def from_scatter(matrix: Any, n: int | None, query: Any, names: Sequence[Any] | None) -> ModelData:
    """The data from a scatter matrix, reordered with the query variables first; a frame has its own names."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 1 <= n < 2**53:
        raise ValueError(
            f"n={n!r}: a scatter matrix needs its number of rows, a whole number, at least 1 and below 2^53"
        )
    _refuse_other_order(matrix)
    names = getattr(matrix, "columns", None) if names is None else names
    S = checked(matrix)
    labels = coordinates(range(len(S)) if names is None else names)
    if len(labels) != len(S):
        raise ValueError(f"{len(labels)} names for a scatter matrix of {len(S)} variables")
    chosen, rest = split(labels, labels if query is EVERY_COLUMN else query)
    place = {name: k for k, name in enumerate(labels)}
    order = [place[name] for name in (*chosen, *rest)]
    scatter = from_matrix(S[np.ix_(order, order)], int(n), len(chosen))
    rowless = tuple(Column(name, "continuous", np.empty(0)) for name in (*chosen, *rest))
    table = MixedTable(rowless, chosen, rest, labels, np.arange(0))
    fingerprint = fingerprint_of(S)
    return ModelData(scatter=scatter, query=chosen, rest=rest, fingerprint=fingerprint, table=table, matrix=S)


def _refuse_other_order(matrix: Any) -> None:
    """Refuse a frame whose rows have the names of its columns in another order."""
    if not hasattr(matrix, "index") or not hasattr(matrix, "columns"):
        return
    rows, columns = list(matrix.index), list(matrix.columns)
    if rows != columns and set(rows) == set(columns):
        raise ValueError(
            "the scatter matrix has its rows in another order than its columns; use the same order for both"
        )


def fingerprint_of(*arrays: Array) -> str:
    """SHA-256 of arrays, shapes included, by which the same data are recognised."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(str(array.shape).encode())
        found.update(np.ascontiguousarray(array).reshape(-1).data)
    return found.hexdigest()


# The copy in a run folder ---------------------------------------------------------------------------------


def write(made: ModelData, folder: RunFolder, mark: str) -> None:
    """Write the data to the folder of a run, with a mark of that run."""
    latent = np.empty((1, 1, made.table.n, 0))
    table = Observed.of(made.table, made.margins, [], latent).to_datasets()["table"]
    snapshots.write(folder.table, snapshots.marked(_to_record(table), mark))
    if made.matrix is not None:
        snapshots.write(folder.matrix, snapshots.marked({"matrix": made.matrix}, mark))


def read_copy(folder: RunFolder, plan: Plan) -> ModelData:
    """The data of the run in a folder, if they are those of its plan."""
    copy = snapshots.read_marked(folder.table, data_mark(plan))
    if copy is None:
        raise DamagedError(f"{folder.path} is damaged: it has no copy of its table, {folder.table.name}")
    with told_as_damage(folder.path):
        table = Observed.from_datasets(_from_record(copy), xr.Dataset({"latent": ((), 0.0)})).table
        made = _made(table, snapshots.read_marked(folder.matrix, data_mark(plan)), plan)
    if made.fingerprint != plan["data"]["sha256"] or list(made.query) != plan["query"]:
        raise DamagedError(f"{folder.path} is damaged: its copy of the data is not what it was")
    return made


def _made(table: MixedTable, matrix: Record | None, plan: Plan) -> ModelData:
    """The data from a copy of the table, or of the scatter matrix if one was given."""
    if matrix is None:
        return from_mixed_table(table, plan["margins"])
    return from_scatter(snapshots.entry(matrix, "matrix"), plan["data"]["n"], list(table.query), table.order)


def _to_record(table: xr.Dataset) -> Record:
    """The arrays of a data set by name; its attributes as bytes of JSON."""
    attributes = np.frombuffer(json.dumps(table.attrs).encode(), dtype=np.uint8)
    return {"attributes": attributes, **{str(name): array.values for name, array in table.variables.items()}}


def _from_record(record: Record) -> xr.Dataset:
    """The data set of a record, the inverse of :func:`_to_record`."""
    return xr.Dataset(
        {"values": (("row", "column"), record["values"]), "position": ("column", record["position"])},
        coords={"row": record["row"], "column": record["column"]},
        attrs=json.loads(record["attributes"].tobytes()),
    )
