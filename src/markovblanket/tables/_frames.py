"""Readers of tables: a frame, an array or a file becomes blocks of numbers and single columns of anything else.

Kinds of variables are decided elsewhere, in :mod:`markovblanket.tables.kinds`. The suffix of a file decides how it
is read:

- ``.csv`` or ``.tsv``, also with ``.gz``: names in the first line; a first column without a name holds the names
  of the rows and is left out; damaged text, another separator and files that unpack to far too much are refused;
- ``.parquet`` or ``.feather``, with pyarrow;
- ``.h5ad``, with anndata: the columns of ``X``, and those columns of ``obs`` that the caller mentions by name.
"""

from __future__ import annotations

import codecs
import gzip
import io
import warnings
import zlib
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from markovblanket.tables.columns import MISSING_WORDS, NUMERIC_TYPES, repeated

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".feather", ".h5ad")
# Errors that readers raise on damaged files; those of pyarrow are ValueErrors and OSErrors.
DAMAGED_FILE_ERRORS = (ValueError, OSError, KeyError, TypeError, IndexError, RuntimeError)
# A gzip file may unpack to so many bytes, or to so many times its own size, whichever is more.
MOST_UNPACKED_BYTES, MOST_UNPACKED_RATIO = 2**28, 100
# Characters that may separate the cells of a text file.
SEPARATORS = ",;\t|"
# Words with which pandas begins its message about a damaged text file.
PANDAS_PREAMBLE = "Error tokenizing data. C error: "


@dataclass(frozen=True, eq=False, slots=True)
class Block:
    """Columns of one numeric type; ``numbers[:, k]`` is column ``positions[k]`` of the table."""

    positions: Sequence[int]
    numbers: npt.NDArray[Any]
    dtype: str


@dataclass(frozen=True, eq=False, slots=True)
class Cells:
    """A column of any values; ``categories`` has all those of an ordered column, or of a pandas categorical."""

    position: int
    values: Sequence[Any]
    dtype: str = "object"
    categories: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Source:
    """The contents of a table; ``offered`` names the columns of a file that were not asked for and not read."""

    names: tuple[Hashable, ...]
    rows: int
    blocks: list[Block]
    cells: list[Cells]
    offered: tuple[Hashable, ...] = ()


# Frames and arrays ------------------------------------------------------------------------------------


def take_apart(table: Any, mentioned: Collection[Any] = (), levels: Collection[str] = ()) -> Source:
    """Read any frame, array or file; in a file, the words in ``levels`` never stand for missing cells."""
    if isinstance(table, str | Path):
        return from_file(Path(table).expanduser(), mentioned, levels)
    return from_array(table) if isinstance(table, np.ndarray) else from_frame(table)


def from_array(table: npt.NDArray[Any]) -> Source:
    """Read an array of two dimensions, its columns named by position."""
    if table.dtype.names is not None:
        raise ValueError("a structured array is not a table of numbers: pass pandas.DataFrame(array) instead")
    if table.ndim != 2:
        raise ValueError(f"a table has rows and columns; got an array of {table.ndim} dimension(s)")
    if isinstance(table, np.ma.MaskedArray):
        numeric = float if table.dtype.kind in "fiub" else object
        table = np.where(np.ma.getmaskarray(table), np.nan, table.data.astype(numeric))
    table, positions = np.asarray(table), range(table.shape[1])
    if table.dtype.kind in "fiub":
        return Source(tuple(positions), len(table), [Block(positions, table, table.dtype.name)], [])
    # tolist() would turn dates in nanoseconds into plain integers.
    listed = list if table.dtype.kind in "mM" else np.ndarray.tolist
    return Source(tuple(positions), len(table), [], [Cells(k, listed(table[:, k])) for k in positions])


def frame_of(table: Any) -> nw.DataFrame[Any]:
    """Wrap any eager frame that narwhals knows."""
    try:
        return nw.from_native(table, eager_only=True)
    except TypeError:
        raise TypeError(
            f"a table is a pandas or polars frame or a NumPy array, not {type(table).__name__}"
        ) from None
    except nw.exceptions.DuplicateError:
        raise ValueError(f"duplicate column names: {repeated(table.columns)}; names must be unique") from None


def from_frame(table: Any) -> Source:
    """Read a frame: columns of one numeric type together as a block, all others one by one."""
    frame = frame_of(table)
    groups: dict[Any, list[int]] = {}
    for position, dtype in enumerate(frame.schema.values()):
        groups.setdefault(dtype, []).append(position)
    blocks, cells = [], []
    for dtype, positions in groups.items():
        name = numeric_name(dtype)
        block = (frame if len(positions) == frame.shape[1] else frame[:, positions]).to_numpy() if name else None
        if name and block is not None and block.dtype.kind in "fiub" and not rounded(name, block):
            blocks.append(Block(positions, block, name))
        else:  # with missing cells, booleans come as objects and whole numbers as floats
            cells += [cells_of(position, frame[:, position]) for position in positions]
    return Source(tuple(frame.columns), len(frame), blocks, cells)


def numeric_name(dtype: Any) -> str:
    """NumPy's name of a numeric type of narwhals; empty for other types."""
    name = type(dtype).__name__.lower().replace("boolean", "bool")
    return name if name in NUMERIC_TYPES else ""


def rounded(name: str, block: npt.NDArray[Any]) -> bool:
    """Whether whole numbers have become floats so large that different ones may have become equal."""
    return "int" in name and block.dtype.kind == "f" and bool((np.abs(block) >= 2**53).any())


def cells_of(position: int, column: nw.Series[Any]) -> Cells:
    """Read one column as a list, with its categories if it is categorical or a polars Enum."""
    if isinstance(column.dtype, nw.Enum):
        return Cells(position, column.to_list(), "ordered category", tuple(column.dtype.categories))
    if column.dtype == nw.Categorical:
        # Only pandas lists categories that no cell has.
        categories = getattr(getattr(column.to_native(), "cat", None), "categories", ())
        return Cells(position, column.to_list(), "category", tuple(categories))
    return Cells(position, column.to_list())


# Names in messages ------------------------------------------------------------------------------------


# Files ------------------------------------------------------------------------------------------------


def from_file(path: Path, mentioned: Collection[Any], levels: Collection[str]) -> Source:
    """Read a file, in the format that its suffix names."""
    kind = next((suffix for suffix in SUFFIXES if path.name.lower().endswith(suffix)), None)
    if kind is None:
        raise ValueError(f"cannot read {path.name!r}: a table file ends in {', '.join(SUFFIXES)}")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {str(path)!r}")
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder, not a file")
    if kind in (".csv", ".csv.gz", ".tsv", ".tsv.gz"):
        return from_frame(text_frame(path, "," if ".csv" in kind else "\t", MISSING_WORDS - set(levels)))
    package = optional("anndata" if kind == ".h5ad" else "pyarrow", kind)
    try:
        return (
            from_h5ad(path, mentioned) if package.__name__ == "anndata" else from_frame(binary_frame(path, kind))
        )
    except DAMAGED_FILE_ERRORS as error:  # their messages lack the name of the file and may have several lines
        raise ValueError(f"cannot read {path.name!r}: {' '.join(str(error).split())}") from None


def optional(package: str, suffix: str) -> Any:
    """Import a package that only files with this suffix need."""
    try:
        return import_module(package)
    except ImportError:
        raise ImportError(f"{suffix} files need {package}: pip install markovblanket[files]") from None


def binary_frame(path: Path, kind: str) -> Any:
    """Read a parquet or feather file as a frame; its column names become text."""
    import pandas as pd

    frame = pd.read_parquet(path, engine="pyarrow") if kind == ".parquet" else pd.read_feather(path)
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def from_h5ad(path: Path, mentioned: Collection[Any]) -> Source:
    """Read the mentioned columns of ``obs``, then ``X`` under the names of ``var``, by AnnData's own reader."""
    with warnings.catch_warnings():  # of repeated names, which are refused later; of old files
        warnings.simplefilter("ignore")
        data = import_module("anndata").read_h5ad(path)
    if data.X is None:
        raise ValueError(f"{path.name!r} has no X")
    X = np.asarray(data.X.toarray() if hasattr(data.X, "toarray") else data.X)
    chosen = [name for name in data.obs.columns if name in set(mentioned)]
    obs = from_frame(data.obs[chosen]) if chosen else Source((), len(X), [], [])
    genes = Block(range(len(chosen), len(chosen) + X.shape[1]), X, X.dtype.name)
    left = tuple(name for name in data.obs.columns if name not in chosen)
    return Source((*chosen, *data.var_names), len(X), [*obs.blocks, genes], obs.cells, left)


# Text files -------------------------------------------------------------------------------------------


class BoundedGzipFile(gzip.GzipFile):
    """A gzip file that raises an error when it unpacks to more bytes than any plausible table has."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.most = max(MOST_UNPACKED_BYTES, MOST_UNPACKED_RATIO * path.stat().st_size)

    def read(self, size: int | None = -1) -> bytes:
        """Read and unpack at most ``size`` bytes."""
        cells = super().read(size)
        if self.tell() > self.most:
            raise ValueError(f"it unpacks to more than {self.most:,} bytes; if that is intended, unpack it first")
        return without_nul(cells)

    read1 = read


class PlainFile(io.BufferedReader):
    """A file of bytes that raises an error at the first NUL, where some versions of pandas just end a cell."""

    def __init__(self, path: Path) -> None:
        super().__init__(io.FileIO(path))

    def read(self, size: int | None = -1) -> bytes:
        """Read at most ``size`` bytes."""
        return without_nul(super().read(size))

    def read1(self, size: int = -1) -> bytes:
        """Read at most ``size`` bytes at once."""
        return without_nul(super().read1(size))


def without_nul(cells: bytes) -> bytes:
    """The same bytes; refused if there is a NUL among them, or first of all if they are no text in UTF-8."""
    if b"\0" in cells:
        codecs.getincrementaldecoder("utf-8")().decode(cells)
        raise ValueError("it holds NUL characters; save it as text without them")
    return cells


def text_frame(path: Path, separator: str, missing: Collection[str]) -> Any:
    """Read a text file as a frame with the names of its first line; pandas alone would rename duplicates."""
    import pandas as pd

    options: dict[str, Any] = {"sep": separator, "keep_default_na": False, "low_memory": False}
    if int(pd.__version__.partition(".")[0]) < 3:  # later versions read every digit without being asked
        options["float_precision"] = "round_trip"
    try:
        with opened(path) as file:
            header = pd.read_csv(file, header=None, nrows=1, dtype=str, **options).iloc[0].str.strip().tolist()
        refuse_other_separator(header, separator)
        with opened(path) as file:
            frame = pd.read_csv(file, na_values=sorted(missing), **options)
        if len(frame) and not isinstance(frame.index, pd.RangeIndex):
            # pandas takes the first cells for names of rows, which would shift all column names by one.
            raise ValueError(
                f"rows have more cells than the first line has names ({len(header)}); name all columns"
            )
    except UnicodeDecodeError:
        raise ValueError(f"cannot read {path.name!r}: it is not text in UTF-8; save it as such") from None
    except (ValueError, EOFError, OSError, zlib.error) as error:  # the errors of pandas are ValueErrors
        what = " ".join(str(error).removeprefix(PANDAS_PREAMBLE).split())
        raise ValueError(f"cannot read {path.name!r}: {what}") from None
    return named(frame, header, path)


def opened(path: Path) -> IO[bytes]:
    """Open a file for reading bytes; a gzip file is unpacked as it is read."""
    return BoundedGzipFile(path) if path.name.lower().endswith(".gz") else PlainFile(path)  # type: ignore[return-value]


def refuse_other_separator(header: list[str], separator: str) -> None:
    """Refuse a first line with a single name that contains another separator."""
    others = [other for other in SEPARATORS if other != separator and other in header[0]]
    if len(header) == 1 and others:
        raise ValueError(f"its first line has {others[0]!r} between names; save it with {separator!r}")


def named(frame: Any, header: list[str], path: Path) -> Any:
    """Give the frame its column names; a first column without a name holds names of rows and is left out."""
    frame.columns = header
    if header[0] == "":
        frame = frame.iloc[:, 1:]
    if "" in frame.columns:
        raise ValueError(f"column {header.index('', 1)} of {path.name!r} (from 0) has no name in the first line")
    return frame
