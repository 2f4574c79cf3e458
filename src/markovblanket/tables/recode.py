"""New rows coded like a fitted table: as numbers, and as codes of the levels of its columns."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from markovblanket.contracts import Array
from markovblanket.tables._frames import Cells, take_apart
from markovblanket.tables.columns import Column, key, listing, number, refused
from markovblanket.tables.kinds import factor_of
from markovblanket.tables.names import require


def read_like(table: Any, columns: Sequence[Column]) -> Array:
    """Return the cells of a new table, coded like the fitted ``columns``: rows by columns.

    Columns of a frame are found by name, those of an array by position. In a column with numeric levels, a number
    that is none of them gets a code halfway between those of its neighbours: 2.5 between the third and the fourth
    level, -0.5 below all.

    Raises
    ------
    ValueError
        If a column is absent or has a cell that the fitted one could not have; the message names it.

    Examples
    --------
    >>> stage = Column("stage", "ordinal", np.array([0.0, 1.0, 2.0]), levels=("I", "II", "III"), dtype="text")
    >>> nodes = Column("nodes", "count", np.array([0.0, 1.0, 2.0]), levels=(0, 1, 5), dtype="int64")
    >>> read_like(np.array([["II", 3], [None, 5]], dtype=object), [stage, nodes])
    array([[1. , 1.5],
           [nan, 2. ]])
    """
    names = [column.name for column in columns]
    words = {str(level) for column in columns for level in (*column.levels, *column.categories)}
    source = take_apart(table, set(names), words)
    text = any(
        isinstance(name, str) for name in names
    )  # the type of the fitted names counts, not that of the new table
    found = tuple(str(name) if text else name for name in source.names)
    if isinstance(table, np.ndarray):
        if len(found) != len(names):
            raise ValueError(f"an array of {len(found)} columns for {len(names)} variables; give them in order")
        found = tuple(names)
    require(names, found, "variable")
    raw: dict[int, Iterable[Any]] = {cells.position: cells.values for cells in source.cells}
    for block in source.blocks:
        raw |= {position: block.numbers[:, k] for k, position in enumerate(block.positions)}
    place = {name: position for position, name in enumerate(found)}
    return np.column_stack([_recode(column, raw[place[column.name]]) for column in columns])


def _recode(column: Column, cells: Any) -> Array:
    """Return the coded cells of one new column."""
    if isinstance(cells, np.ndarray) and column.kind == "continuous":
        values = cells.astype(float)
    else:
        factor = factor_of(Cells(0, list(cells)), column.name, (*column.levels, *column.categories))
        values = np.array([*_codes(column, factor.values), np.nan])[factor.codes]
    if np.isinf(values).any():
        raise refused(column.name, "has infinite values", "replace them or leave the rows out")
    return values


def _codes(column: Column, values: Sequence[Any]) -> list[float]:
    """Return the code of each value: numbers as they are, levels by their position."""
    numbers = [number(value) for value in values]
    if column.kind == "continuous":
        if words := [value for value, x in zip(values, numbers, strict=True) if x is None]:
            raise refused(
                column.name,
                f"holds {listing(words)}, but the fitted column held numbers",
                "write these as numbers",
            )
        return [math.nan if x is None else float(x) for x in numbers]
    if any(x is not None and math.isinf(x) for x in numbers):
        raise refused(column.name, "has infinite values", "replace them or leave the rows out")
    place = {key(level): float(k) for k, level in enumerate(column.levels)}
    levels = [number(level) for level in column.levels]
    ascending = None not in levels and levels == sorted(levels)  # type: ignore[type-var]
    return [
        place[key(value)] if key(value) in place else _between(column, value, x if ascending else None, levels)
        for value, x in zip(values, numbers, strict=True)
    ]


def _between(column: Column, value: Hashable, x: float | None, levels: Sequence[Any]) -> float:
    """Return the code, with a half, of a number between ascending levels; refuse any other value."""
    if x is None or column.kind == "binary":
        raise refused(
            column.name, f"has {value!r}, which is none of its levels {listing(column.levels)}", "correct it"
        )
    return bisect_left(levels, x) - 0.5
