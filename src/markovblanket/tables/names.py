"""Names of columns: their type, the split into query and rest, and errors about absent or repeated names."""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from markovblanket.tables.columns import repeated, shown

Name = Hashable
# How a message says that columns are named.
HOW_TO_NAME_COLUMNS = "name columns by their names, or by position in an array"


def coordinates(names: Iterable[Name]) -> tuple[Name, ...]:
    """Return names that can label an axis: all whole numbers, or all text."""
    names = tuple(int(name) if isinstance(name, np.integer) else name for name in names)
    if all(type(name) is int and abs(name) < 2**63 for name in names):
        return names
    text = tuple(str(name) for name in names)
    if not _writable("".join(text)):
        bad = next(name for name in text if not _writable(name))
        raise ValueError(f"column name {shown(bad)} has a character that cannot be written to files; rename it")
    return text


def _writable(text: str) -> bool:
    """Whether a file can store a text unchanged: it has no NUL, and no unpaired surrogate."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def split(names: Sequence[Name], query: Any) -> tuple[tuple[Name, ...], tuple[Name, ...]]:
    """Return the query names in the order asked for, and all other names, perhaps none, in that of the table."""
    asked = spelled(names_asked(query), names, "query")
    if not asked:
        raise ValueError("query is empty: name at least one column to ask about")
    if extra := repeated(asked):
        raise ValueError(f"query names {extra} more than once")
    refuse_repeated(names)
    require(asked, names, "query")
    chosen = set(asked)
    return asked, tuple(name for name in names if name not in chosen)


def refuse_repeated(names: Iterable[Name]) -> None:
    """Refuse a table in which two columns have the same name."""
    if extra := repeated(names):
        raise ValueError(f"duplicate column names: {extra}; names must be unique")


def names_asked(query: Any) -> tuple[Name, ...]:
    """Return a query, which may be one name or several, as a tuple of names."""
    query = query.tolist() if isinstance(query, np.ndarray) else query
    several = isinstance(query, Iterable) and not isinstance(query, str | bytes)
    asked = tuple(int(name) if isinstance(name, np.integer) else name for name in (query if several else (query,)))
    for name in asked:
        if not isinstance(name, Hashable):
            raise ValueError(f"query {shown(name)}: {HOW_TO_NAME_COLUMNS}")
    return asked


def spelled(asked: Iterable[Name], names: Sequence[Name], role: str) -> tuple[Name, ...]:
    """Return names in the type of the column names: text, or whole numbers (1.0 and True are refused)."""
    if not all(isinstance(name, int) for name in names):
        return tuple(str(name) for name in asked)
    for name in asked:
        if isinstance(name, bool | np.bool_ | float):
            raise ValueError(f"{role} {shown(name)}: {HOW_TO_NAME_COLUMNS}")
    return tuple(asked)


def require(wanted: Iterable[Name], names: Sequence[Name], role: str) -> None:
    """Refuse names that the table does not have, and suggest the most similar one that it has."""
    present = set(names)
    for name in wanted:
        if name not in present:
            known = {str(other): other for other in names}
            near = difflib.get_close_matches(str(name), known, n=1)
            hint = f"; did you mean {shown(known[near[0]])}?" if near else ""
            raise ValueError(f"{role} {shown(name)} is not a column of the table{hint}")
