"""Text files of cells with a separator between them, as frames; what is no such file is refused by its name."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any

# A packed file may unpack to so many bytes, or to so many times its own size.
MOST_UNPACKED, MOST_TIMES = 2**28, 100
SEPARATORS = ",;\t|"
# What pandas says before what is wrong.
PREAMBLE = "Error tokenizing data. C error: "


class Bounded(gzip.GzipFile):
    """A packed file that ends with an error where it unpacks to more than a table would."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.most = max(MOST_UNPACKED, MOST_TIMES * path.stat().st_size)

    def read(self, size: int | None = -1) -> bytes:
        """So many bytes."""
        cells = super().read(size)
        if self.tell() > self.most:
            raise ValueError(f"it unpacks to more than {self.most:,} bytes; unpack it first, if that is meant")
        return cells

    read1 = read


def text_frame(path: Path, separator: str, missing: Collection[str]) -> Any:
    """A text file as a frame, under the names that stand in it: pandas would rename duplicates."""
    import pandas as pd

    options: dict[str, Any] = {"sep": separator, "keep_default_na": False, "low_memory": False}
    try:
        with opened(path) as file:
            header = pd.read_csv(file, header=None, nrows=1, dtype=str, **options).iloc[0].str.strip().tolist()
        refuse_other_separator(header, separator)
        with opened(path) as file:
            frame = pd.read_csv(file, na_values=sorted(missing), **options)
        if len(frame) and not isinstance(frame.index, pd.RangeIndex):
            # pandas takes the first cells for names of rows, and every name would stand over another column.
            raise ValueError(
                f"rows have more cells than the first line has names ({len(header)}); name all columns"
            )
    except UnicodeDecodeError:
        raise ValueError(f"cannot read {path.name!r}: it is no text in UTF-8; save it as such") from None
    except (ValueError, EOFError, OSError, zlib.error) as error:  # those of pandas are ValueErrors
        what = " ".join(str(error).removeprefix(PREAMBLE).split())
        raise ValueError(f"cannot read {path.name!r}: {what}") from None
    return named(frame, header, path)


def opened(path: Path) -> IO[bytes]:
    """Its bytes, unpacked."""
    return Bounded(path) if path.name.lower().endswith(".gz") else path.open("rb")  # type: ignore[return-value]


def refuse_other_separator(header: list[str], separator: str) -> None:
    """One name that has another separator in it is not one name."""
    others = [other for other in SEPARATORS if other != separator and other in header[0]]
    if len(header) == 1 and others:
        raise ValueError(f"its first line has {others[0]!r} between names; save it with {separator!r}")


def named(frame: Any, header: list[str], path: Path) -> Any:
    """The frame under its own names; a first column without one holds the names of the rows and is left out."""
    frame.columns = header
    if header[0] == "":
        frame = frame.iloc[:, 1:]
    if "" in frame.columns:
        raise ValueError(f"column {header.index('', 1)} of {path.name!r} (from 0) has no name in the first line")
    return frame
