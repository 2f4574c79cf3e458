"""Kinds of variables: whether a column is continuous, binary, ordinal or a count.

Only observed cells count. Missing are None, NaN, ``pandas.NA``, a polars null, and in text the words of
:data:`markovblanket.tables.columns.MISSING_WORDS`, without the blanks around them. A column of text whose other
cells are all spelled as numbers is a column of numbers.

=====================================================================  ====================================
column                                                                 kind
=====================================================================  ====================================
two levels of anything                                                 binary: ascending, text sorted
ordered categories (pandas ``ordered=True``, polars ``Enum``)          ordinal, in their order
whole numbers, at most 12 distinct ones                                ordinal
other whole numbers, none negative, fewer values than half the cells   count
other whole numbers                                                    continuous
other numbers, at most 5 distinct ones in at least 20 cells            ordinal
other numbers                                                          continuous
other text and unordered categories                                    refused: a copula needs an order
=====================================================================  ====================================

A declared kind overrides this table; a declared order, a list of levels, makes anything ordinal (binary if two
of them are observed). The words of a declared order and the categories of an ordered column are levels even if the
same words mean "missing" elsewhere, such as ``"None"`` before ``"mild"``. Levels that no cell has are dropped:
they do not affect ranks.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from markovblanket.contracts import Array
from markovblanket.tables._frames import Block, Cells, Source
from markovblanket.tables.columns import (
    COUNT_DAYS,
    HOLDS_DATES,
    Column,
    Factor,
    cleaned,
    is_date,
    key,
    listing,
    number,
    rank_in,
    refused,
    shown,
    spans,
)

# What is wrong with whole numbers that become equal as floats.
TOO_CLOSE = "has whole numbers beyond 2^53 that are too close to tell apart"
KINDS = ("continuous", "binary", "ordinal", "count")
# At most so many distinct numbers are levels: of whole numbers, and of others if there are enough cells.
MOST_WHOLE_LEVELS, MOST_REAL_LEVELS, LEAST_REAL_CELLS = 12, 5, 20
# A column with more distinct texts than this is free text or an identifier, not a variable with levels.
MOST_TEXT_LEVELS = 50

Declared = str | Sequence[Any]


def columns(source: Source, names: Sequence[Hashable], declared: Mapping[Hashable, Declared]) -> list[Column]:
    """Return the typed columns of a table, in its order; a column that cannot be modelled is refused by name."""
    found: dict[int, Column] = {}
    for block in source.blocks:
        labels = [names[position] for position in block.positions]
        found.update(zip(block.positions, _from_block(block, labels, declared), strict=True))
    for cells in source.cells:
        name = names[cells.position]
        found[cells.position] = _from_cells(cells, name, declared.get(name))
    return [found[position] for position in range(len(names))]


def _from_block(
    block: Block,
    names: Sequence[Hashable],
    declared: Mapping[Hashable, Declared],
) -> Iterator[Column]:
    """Yield the numeric columns of a block; continuous ones are views of one copy, contiguous by column."""
    X = np.array(block.numbers, dtype=float, order="F")
    X.flags.writeable = False
    if block.numbers.dtype.kind in "iu":
        _refuse_merged(block.numbers, X, names)
    profile = Profile.of(X)
    profile.refuse(names)
    for k, (name, inferred) in enumerate(zip(names, profile.kinds(), strict=True)):
        kind = declared.get(name, inferred)
        if kind == "continuous":
            yield Column(name, kind, X[:, k], (), block.dtype)
            continue
        if kind == "count" and not profile.countable[k]:
            raise refused(name, "is not a count: it has negative or fractional numbers", "declare it 'continuous'")
        factor = Factor.of_numbers(X[:, k], block.dtype)
        rank = range(len(factor.values)) if isinstance(kind, str) else rank_in(name, factor.values, kind)
        yield factor.column(name, rank, kind if isinstance(kind, str) else None, block.dtype)


def _refuse_merged(whole: npt.NDArray[Any], X: Array, names: Sequence[Hashable]) -> None:
    """Refuse columns in which distinct whole numbers beyond 2^53, often identifiers, become equal as floats."""
    for k in np.flatnonzero((np.abs(X) >= 2**53).any(axis=0)):
        if len(np.unique(whole[:, k])) > len(np.unique(X[:, k])):
            raise refused(names[int(k)], TOO_CLOSE, "subtract an offset, or leave it out")


@dataclass(frozen=True, eq=False, slots=True)
class Profile:
    """Facts on which the kinds of numeric columns depend, one entry per column."""

    observed: npt.NDArray[np.int64]
    distinct: npt.NDArray[np.int64]
    whole: npt.NDArray[np.bool_]
    countable: npt.NDArray[np.bool_]
    finite: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, X: Array) -> Profile:
        """Return the facts of all columns of ``X``, computed for some columns at a time."""
        parts = [cls._facts(np.sort(X[:, span], axis=0)) for span in spans(*X.shape)]
        return cls(*(np.concatenate(facts) for facts in zip(*parts, strict=True)))

    @staticmethod
    def _facts(ascending: Array) -> tuple[npt.NDArray[Any], ...]:
        """Return the facts of sorted columns, NaN last; a cell greater than the one before it is a new value."""
        seen = ~np.isnan(ascending)
        distinct = (ascending[1:] > ascending[:-1]).sum(axis=0) + seen[0]
        whole = ((np.floor(ascending) == ascending) | ~seen).all(axis=0)
        countable, finite = whole & (ascending[0] >= 0), np.isfinite(ascending).sum(axis=0) == seen.sum(axis=0)
        return seen.sum(axis=0), distinct, whole, countable, finite

    def kinds(self) -> list[str]:
        """Return the kind of each column, by the table of the module's docstring."""
        few = np.where(
            self.whole,
            self.distinct <= MOST_WHOLE_LEVELS,
            (self.distinct <= MOST_REAL_LEVELS) & (self.observed >= LEAST_REAL_CELLS),
        )
        tied = self.countable & (2 * self.distinct < self.observed)
        kinds = np.select([self.distinct == 2, few, tied], ["binary", "ordinal", "count"], "continuous")
        return list(kinds.tolist())

    def refuse(self, names: Sequence[Hashable]) -> None:
        """Refuse columns that are empty, infinite somewhere, or constant."""
        for bad, what, way in (
            (self.observed == 0, "has no observed cell", "leave it out"),
            (~self.finite, "has infinite values", "replace them or leave it out"),
            (self.distinct == 1, "is constant", "leave it out"),
        ):
            if bad.any():
                first, *others = (names[int(k)] for k in np.flatnonzero(bad))
                raise refused(first, what, way + (f" (likewise {listing(others)})" if others else ""))


def _from_cells(cells: Cells, name: Hashable, declared: Declared | None) -> Column:
    """Return a column of text, categories or objects: numeric if all cells are, otherwise ordered levels."""
    kind, order = (declared, None) if isinstance(declared, str) else (None, declared)
    if order is None and cells.dtype == "ordered category":
        order = cells.categories
    factor = factor_of(cells, name, () if order is None else order)
    numbers = [number(value) for value in factor.values]
    if None not in numbers and _reads_as_numbers(cells, kind, order):
        return _from_numbers(cells, name, factor, kind)
    if (
        None not in numbers and order is None and kind == "ordinal"
    ):  # categories spelled as numbers, which keep their spelling
        order = sorted(factor.values, key=key)
    if kind in ("continuous", "count"):
        raise refused(
            name,
            f"holds text, so it is not {kind}",
            f"pass kinds={{{shown(name)}: [...]}} with its levels in order",
        )
    values = factor.values
    rank = _sorted_rank(name, values, kind) if order is None else rank_in(name, values, order)
    return factor.column(name, rank, kind, _type_of(cells, factor), cells.categories)


def factor_of(cells: Cells, name: Hashable, order: Sequence[Any]) -> Factor:
    """Return the distinct cells of a column; levels of the declared order are never missing."""
    said = frozenset(str(level).strip() for level in order)
    try:
        return Factor.of_cells(cells.values, lambda value: cleaned(name, value, said))
    except TypeError:  # a cell that cannot be hashed
        raise refused(
            name, "holds lists or other nested objects", "leave it out or spread it over columns"
        ) from None


def _reads_as_numbers(cells: Cells, kind: str | None, order: Sequence[Any] | None) -> bool:
    """Whether cells spelled as numbers are numbers.

    Text and objects are, unless an order is declared; categories are if the declared kind is numeric.
    """
    if cells.dtype in ("category", "ordered category"):
        return kind in ("continuous", "count")
    return order is None


def _from_numbers(cells: Cells, name: Hashable, factor: Factor, kind: str | None) -> Column:
    """Return a column whose cells are all numbers, however they are spelled."""
    numbers = [number(value) for value in factor.values]
    whole = {x for x in numbers if isinstance(x, int)}
    if len({float(x) for x in whole}) < len(whole):
        raise refused(name, TOO_CLOSE, "subtract an offset, or leave it out")
    dtype = _type_of(Cells(cells.position, ()), Factor(numbers, factor.codes))
    x = np.array([*numbers, np.nan], dtype=float)[factor.codes]
    return next(_from_block(Block([0], x[:, None], dtype), [name], {name: kind} if kind else {}))


def _type_of(cells: Cells, factor: Factor) -> str:
    """Return a column's type: its kind of category, or the narrowest of bool, int64, float64, text, object."""
    if cells.dtype in ("category", "ordered category"):
        return cells.dtype
    if all(isinstance(value, bool) for value in factor.values):
        return "bool"
    # Beyond 2^53 two different integers may be the same float.
    if all(isinstance(value, int) and abs(value) <= 2**53 for value in factor.values):
        return "int64"
    if all(isinstance(value, str) for value in factor.values):
        return "text"
    return "object" if any(isinstance(value, str) for value in factor.values) else "float64"


def _sorted_rank(name: Hashable, values: Sequence[Any], kind: str | None) -> list[int]:
    """Return the ranks of two levels in sorted order; more levels than two are refused, as they have no order."""
    if len(values) > 2 and kind != "binary":
        _refuse_unordered(name, values)
    order = sorted(values, key=lambda value: (isinstance(value, str), value))
    return [order.index(value) for value in values]


def _refuse_unordered(name: Hashable, values: Sequence[Any]) -> None:
    """Refuse a column without an order, and say why: words among numbers, dates, free text, or categories."""
    words = [value for value in values if number(value) is None]
    if words and 2 * len(words) < len(values):
        raise refused(name, f"holds numbers except {listing(words)}", "write these as numbers or leave them empty")
    if all(isinstance(value, str) and is_date(value) for value in values):
        raise refused(name, HOLDS_DATES, COUNT_DAYS)
    if len(values) > MOST_TEXT_LEVELS:
        looks = f"has {len(values)} different texts and looks like free text or an identifier"
        raise refused(name, looks, "leave it out")
    way = f"a Gaussian copula needs an order: pass kinds={{{shown(name)}: [...]}} or indicator columns"
    raise refused(name, f"has {len(values)} unordered levels", way)
