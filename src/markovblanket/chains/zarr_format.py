"""The zarr groups that this package writes, and the check that a folder is one of them before zarr opens it.

The metadata of an array name its type, its compressor and its filters, and zarr runs what they name: a type of
Python objects with a filter of pickles would execute code. So a group is read only if every file in it is one that
this package could have written: numbers and text, one compressor, no filters, and every block there and whole.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from markovblanket._files import DamagedError, plain_files, read_json, write_json

# The compressor of all arrays.
COMPRESSOR = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}
# Booleans, whole numbers, floating-point numbers, and text of a fixed length.
TYPE = re.compile(r"\|b1|[|<>][iu][1248]|[<>]f[248]|[<>]U[0-9]{1,7}")
# The head of a compressed block: four bytes, then sizes before compression, of its parts, and after compression.
HEAD = struct.Struct("<4xIII")
ARRAY_NAME = re.compile(r"[^./\\][^/\\]*")
# Attributes of arrays and groups, and what they are. Others, such as units, would change numbers as they are read.
ATTRIBUTES = {
    "_ARRAY_DIMENSIONS": list,
    **dict.fromkeys(("coordinates", "precision", "margins", "columns"), str),
    "query": int,
}
GROUP, ARRAY, MARKS, CONSOLIDATED = ".zgroup", ".zarray", ".zattrs", ".zmetadata"
# Drafts of files that zarr writes.
DRAFTS = "*.partial"
FIELDS = {
    *("zarr_format", "shape", "chunks", "dtype", "compressor"),
    *("fill_value", "order", "filters", "dimension_separator"),
}


# Writing --------------------------------------------------------------------------------------------------


def create_group(path: Path, attributes: Mapping[str, str]) -> None:
    """Make an empty group in a new folder."""
    path.mkdir(parents=True)
    describe_group(path, attributes)


def describe_group(path: Path, attributes: Mapping[str, str]) -> None:
    """Write the metadata of a group."""
    write_json(path / GROUP, {"zarr_format": 2})
    write_json(path / MARKS, dict(attributes))


def describe_array(path: Path, axes: Sequence[str]) -> None:
    """Write the names of the axes of an array, for xarray."""
    write_json(path / MARKS, {"_ARRAY_DIMENSIONS": list(axes)})


def create_array(path: Path, shape: Sequence[int], chunks: Sequence[int], dtype: Any, axes: Sequence[str]) -> None:
    """Make an array of floating-point numbers without its blocks, its axes named for xarray."""
    path.mkdir(parents=True)
    known = {
        "zarr_format": 2,
        "shape": list(shape),
        "chunks": list(chunks),
        "dtype": np.dtype(dtype).str,
        "compressor": COMPRESSOR,
        "fill_value": "NaN",
        "order": "C",
        "filters": None,
        "dimension_separator": ".",
    }
    describe_array(path, axes)
    write_json(path / ARRAY, known)


def resize(path: Path, shape: Sequence[int]) -> None:
    """Make room for more in an array."""
    write_json(path / ARRAY, metadata(path) | {"shape": list(shape)})


def encoded(block: npt.NDArray[Any]) -> bytes:
    """A block of an array as zarr stores it."""
    import numcodecs

    options = {name: value for name, value in COMPRESSOR.items() if name != "id"}
    return bytes(numcodecs.Blosc(**options).encode(np.ascontiguousarray(block)))


def block_name(place: tuple[int, ...]) -> str:
    """The name of the file of a block, from its number along each axis."""
    return ".".join(map(str, place)) or "0"


# Checking -------------------------------------------------------------------------------------------------


def require_group(path: Path) -> None:
    """Refuse a folder that is no whole zarr group as this package writes them, and say what is wrong with it."""
    files = plain_files(path) if path.is_dir() else {}
    if GROUP not in files or CONSOLIDATED not in files:
        raise DamagedError(f"{path} is damaged: it is no group of arrays")
    copy, metadata = files.pop(CONSOLIDATED), dict(files)
    if read_json(files.pop(GROUP)) != {"zarr_format": 2}:
        raise DamagedError(f"{path / GROUP} is damaged: it is not in the format of zarr 2")
    _require_attributes(files.pop(MARKS, None))
    for name in sorted({file.partition("/")[0] for file in files}):
        own = {file.partition("/")[2]: there for file, there in files.items() if file.partition("/")[0] == name}
        _require_array(path / name, own)
    _require_consolidated(copy, metadata)


def _require_consolidated(copy: Path, files: Mapping[str, Path]) -> None:
    """Refuse a group unless the copy of all metadata, which zarr reads, is equal to them."""
    metadata = {name: read_json(file) for name, file in files.items() if file.name in (GROUP, ARRAY, MARKS)}
    if read_json(copy) != {"zarr_consolidated_format": 1, "metadata": metadata}:
        raise DamagedError(f"{copy} is damaged: it is not a copy of the metadata")


def _require_array(path: Path, files: dict[str, Path]) -> None:
    """Refuse what is not an array of numbers or text with all its blocks and no other files."""
    if not ARRAY_NAME.fullmatch(path.name) or ARRAY not in files:
        raise DamagedError(f"{path} was not written by markovblanket: it is no array")
    files.pop(ARRAY)
    known = metadata(path)
    dimensions = _require_attributes(files.pop(MARKS, None)).get("_ARRAY_DIMENSIONS", ())
    if len(dimensions) != len(known["shape"]) or not all(isinstance(one, str) for one in dimensions):
        raise DamagedError(f"{path / MARKS} is damaged: it does not name the axes of the array")
    blocks = set(_blocks(known["shape"], known["chunks"]))
    if strange := sorted(set(files) ^ blocks):
        what = "is not part of its array" if strange[0] in files else "is damaged: it is not there"
        raise DamagedError(f"{path / strange[0]} {what}")
    size = math.prod(known["chunks"]) * np.dtype(known["dtype"]).itemsize
    for block in files.values():
        _require_block(block, size)


def metadata(path: Path) -> dict[str, Any]:
    """The metadata of an array, refused unless they are such as this package writes."""
    known = read_json(path / ARRAY)
    if fault := _fault(known):
        raise DamagedError(f"{path / ARRAY} is not as markovblanket writes it: {fault}")
    return dict(known)


def _fault(known: Any) -> str | None:
    """What is wrong with the metadata of an array, if anything is."""
    if not isinstance(known, Mapping) or set(known) != FIELDS:
        return "its entries are others"
    if not isinstance(known["dtype"], str) or not TYPE.fullmatch(known["dtype"]):
        return f"its type is {known['dtype']!r:.60}, which is neither numbers nor text"
    if known["compressor"] != COMPRESSOR or known["filters"] is not None:
        return "its compressor or its filters are others"
    if (known["zarr_format"], known["order"], known["dimension_separator"]) != (2, "C", "."):
        return "its format, order or separator is another"
    if known["fill_value"] != ("NaN" if np.dtype(known["dtype"]).kind == "f" else None):
        return f"missing values are filled with {known['fill_value']!r:.60}"
    return _fault_of_shape(known["shape"], known["chunks"])


def _fault_of_shape(shape: Any, chunks: Any) -> str | None:
    """What is wrong with the shape of an array and of its blocks, if anything is."""
    for name, sizes, least in (("shape", shape, 0), ("chunks", chunks, 1)):
        if not isinstance(sizes, list) or not all(type(size) is int and least <= size < 2**40 for size in sizes):
            return f"its {name} is {sizes!r:.60}"
    if len(shape) != len(chunks):
        return "its blocks have another number of axes"
    if math.prod(-(-length // size) for length, size in zip(shape, chunks, strict=True)) > 2**24:
        return "it has too many blocks"
    return None


def _require_attributes(file: Path | None) -> dict[str, Any]:
    """The attributes of an array or a group, refused unless they are of the known names and types."""
    found = {} if file is None else read_json(file)
    if not isinstance(found, dict):
        raise DamagedError(f"{file} is damaged: it holds no attributes")
    for name, value in found.items():
        if type(value) is not ATTRIBUTES.get(name):
            raise DamagedError(f"{file} is not as markovblanket writes it: its attribute {name!r:.60} is another")
    return found


def _blocks(shape: list[int], chunks: list[int]) -> list[str]:
    """The names of all blocks of an array."""
    numbers = (range(-(-length // size)) for length, size in zip(shape, chunks, strict=True))
    return [block_name(place) for place in product(*numbers)]


def _require_block(file: Path, size: int) -> None:
    """Refuse a block whose head does not give its size in memory and as a file."""
    with file.open("rb") as opened:
        head = opened.read(HEAD.size)
    told = HEAD.unpack(head) if len(head) == HEAD.size else (0, 0, 0)
    if (told[0], told[2]) != (size, file.stat().st_size):
        raise DamagedError(f"{file} is damaged: it is not a block of its array")
