"""New rows in the terms of a fitted table: numbers, and codes of the levels that its columns had."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from markovblanket.contracts import Array
from markovblanket.tables._frames import Cells, listing, take_apart
from markovblanket.tables.columns import Column, key, number, refused
from markovblanket.tables.kinds import factor_of
from markovblanket.tables.names import require


def read_like(table: Any, columns: Sequence[Column]) -> Array:
    """The columns of a new table, by name, coded as those of the fitted one; a column each.

    An array has them in order. A number that was no level of a column with levels gets a code between those of its
    neighbours, with a half: 2.5 lies between the levels 2 and 3, and -0.5 below all.

    Raises
    ------
    ValueError
        If a column is absent or holds what the fitted one could not, by name.

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
    text = any(isinstance(name, str) for name in names)  # as the fitted names, whatever else is in the new table
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
    """The cells of one new column."""
    if isinstance(cells, np.ndarray) and column.kind == "continuous":
        values = cells.astype(float)
    else:
        factor = factor_of(Cells(0, list(cells)), column.name, (*column.levels, *column.categories))
        values = np.array([*_codes(column, factor.values), np.nan])[factor.codes]
    if np.isinf(values).any():
        raise refused(column.name, "has infinite values", "replace them or leave the rows out")
    return values


def _codes(column: Column, values: Sequence[Any]) -> list[float]:
    """Numbers as they are, levels by their place."""
    numbers = [number(value) for value in values]
    if column.kind == "continuous":
        if words := [value for value, x in zip(values, numbers, strict=True) if x is None]:
            raise refused(column.name, f"holds {listing(words)}, and was numbers before", "write these as numbers")
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
    """The half code of a number among levels in ascending order; anything else is refused."""
    if x is None or column.kind == "binary":
        raise refused(
            column.name, f"has {value!r}, which is none of its levels {listing(column.levels)}", "mend it"
        )
    return bisect_left(levels, x) - 0.5
