"""A wide table some columns at a time, so that what is worked out on the way stays small beside it."""

from __future__ import annotations

from collections.abc import Iterator

# Numbers looked at together: half a megabyte, which a cache holds.
CHUNK = 2**16


def spans(rows: int, columns: int) -> Iterator[slice]:
    """All columns, from left to right, as many at a time as hold :data:`CHUNK`, but at least one.

    Examples
    --------
    >>> [(span.start, span.stop) for span in spans(CHUNK // 2, 5)]
    [(0, 2), (2, 4), (4, 5)]
    """
    width = max(1, CHUNK // max(rows, 1))
    return (slice(first, min(first + width, columns)) for first in range(0, columns, width))
