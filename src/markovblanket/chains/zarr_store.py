"""Draws on disk: a zarr group in which each chain writes blocks of its own; statistics stay in memory."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from markovblanket._files import DamagedError
from markovblanket.chains.snapshots import Record, inside, part
from markovblanket.chains.stores import AXES, EFFORT, Chain, KeepSummary, SummaryStore, quantities
from markovblanket.contracts import Draw

# Numbers in a block, about 8 megabytes of W12; a block has at least one draw.
BLOCK = 2**21
SINGLE = "W12"
# Zarr's copy of the metadata of all arrays.
CONSOLIDATED = ".zmetadata"
ATTRIBUTES = {"precision": f"{SINGLE} is rounded to float32 as it is written; all else is float64"}


@dataclass
class DiskStore:
    """Writes the draws of one chain to a zarr group in blocks of ``size``; statistics stay in memory."""

    path: Path
    chain: int
    summary: SummaryStore
    size: int
    block: dict[str, npt.NDArray[Any]] = field(default_factory=dict, init=False)
    filled: int = field(default=0, init=False)

    def append(self, draw: Draw) -> None:
        """Take the next draw, and write the block that it completes."""
        self.summary.append(draw)
        kept = _on_disk(draw)
        if not self.block:
            self.block = {k: np.empty((self.size, *np.shape(value)), _kind(k)) for k, value in kept.items()}
        for name, value in kept.items():
            self.block[name][self.filled % self.size] = value
        self.filled += 1
        if self.filled % self.size == 0 or self.filled == self.summary.draws:
            self._write((self.filled - 1) // self.size * self.size)

    def collect(self) -> Record:
        """What of this chain is in memory: statistics and small draws."""
        return self.summary.collect()

    def pack(self) -> Record:
        """What a snapshot needs: the unfinished block and the statistics; finished blocks are on disk."""
        return inside("block", self.block) | inside("summary", self.summary.pack())

    def unpack(self, record: Record) -> None:
        """Go on from a snapshot; blocks that were written after it are written again."""
        self.block, self.filled = part("block", record), int(record["summary.memory.filled"])
        self.summary.unpack(part("summary", record))
        self._require_blocks()

    def _require_blocks(self) -> None:
        """Refuse to go on if a block that was written is gone: it would be read as missing values."""
        blocks = (
            math.ceil(self.filled / self.size) if self.filled == self.summary.draws else self.filled // self.size
        )
        for name, block in self.block.items():
            for number in range(blocks if block.size else 0):  # zarr writes no file for an empty array
                file = self.path / name / ".".join(map(str, (self.chain, number, *[0] * (block.ndim - 1))))
                if not file.is_file():
                    raise DamagedError(f"{file} is damaged: it is not there")

    def _write(self, begin: int) -> None:
        """Write the block whose first draw has this number."""
        group = _opened(self.path)
        for name, block in self.block.items():
            array: Any = group[name]
            array[self.chain, begin : self.filled] = block[: self.filled - begin]


@dataclass(frozen=True, eq=False)
class KeepOnDisk:
    """Keeps every draw in the zarr group ``path``, which is made if it does not exist, and a summary in memory."""

    path: Path
    summary: KeepSummary
    watches: bool = field(default=True, init=False)

    def stores(self, chains: Sequence[Chain]) -> list[DiskStore]:
        """A store for each chain, in a group with room for all draws."""
        moments, draws = chains[0].moments, self.summary.draws
        assert moments is not None
        # A sampler may arrange its state differently; moments have the shape of what is kept.
        (p, q), hyper = moments.sum.shape, dict.fromkeys(chains[0].state.hyper, ())
        shapes = {"W11": (p, p), "W12": (p, q), "W22_diagonal": (q,), "explained": (p,), **hyper}
        if not self.path.exists():
            shutil.rmtree(draft(self.path), ignore_errors=True)
            _create(draft(self.path), shapes, (len(chains), draws))
            draft(self.path).rename(self.path)
        if room(self.path) < draws:
            _grow(self.path, shapes, (len(chains), draws))
        size = _opened(self.path)[SINGLE].chunks[1]
        return [DiskStore(self.path, k, store, size) for k, store in enumerate(self.summary.stores(chains))]

    def gather(self, records: list[Record]) -> Record:
        """What of all chains is in memory, put together."""
        return self.summary.gather(records)


def draft(path: Path) -> Path:
    """The folder in which a group is made before it takes its name."""
    return path.with_name(f"{path.name}.part")


def _on_disk(draw: Draw) -> dict[str, Any]:
    """The quantities of a draw that are written."""
    return {name: value for name, value in quantities(draw).items() if name not in EFFORT}


def _kind(name: str) -> type[np.floating[Any]]:
    """The type in which a quantity is written."""
    return np.float32 if name == SINGLE else np.float64


def _draws_per_block(draws: int, numbers: int) -> int:
    """The number of draws in a block; a block is a chunk on disk, so that no two chains write to the same one."""
    return min(draws, max(1, BLOCK // max(1, numbers)))


def _create(path: Path, shapes: Mapping[str, tuple[int, ...]], size: tuple[int, int]) -> None:
    """Make arrays (chain, draw, ...) of these shapes, filled with missing values, their axes named for xarray."""
    import zarr

    group = zarr.create_group(path, zarr_format=2, attributes=ATTRIBUTES)
    block = _draws_per_block(size[1], int(np.prod(shapes[SINGLE])))
    for name, shape in shapes.items():
        group.create_array(
            name,
            shape=(*size, *shape),
            chunks=(1, block, *(max(1, length) for length in shape)),
            dtype=_kind(name),
            fill_value=np.nan,
            attributes={"_ARRAY_DIMENSIONS": ["chain", "draw", *AXES.get(name, ())]},
        )


def _opened(path: Path) -> Any:
    """Open a zarr group that exists, for writing."""
    import zarr

    return zarr.open_group(path, mode="r+", zarr_format=2, use_consolidated=False)


def room(path: Path) -> int:
    """The number of draws of a chain for which a group has room."""
    return int(_opened(path)[SINGLE].shape[1])


def _grow(path: Path, shapes: Mapping[str, tuple[int, ...]], size: tuple[int, int]) -> None:
    """Make room for more draws; arrays added after sampling are removed, and W12 is resized last."""
    (path / CONSOLIDATED).unlink(missing_ok=True)
    group = _opened(path)
    for name in set(group) - set(shapes):
        del group[name]
    for name in sorted(shapes, key=lambda name: name == SINGLE):
        group[name].resize((*size, *shapes[name]))
