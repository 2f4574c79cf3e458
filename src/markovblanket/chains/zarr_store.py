"""Draws on disk: a zarr group in which each chain writes blocks of its own; statistics stay in memory."""

from __future__ import annotations

import math
import shutil
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from markovblanket._files import DRAFTS, DamagedError, crc32_text, flush_folder, require_plain, writing
from markovblanket.chains import zarr_format
from markovblanket.chains.snapshots import Record, inside, part
from markovblanket.chains.stores import AXES, EFFORT, Chain, KeepSummary, SummaryStore, quantities
from markovblanket.contracts import Draw

# Numbers in a block, about 8 megabytes of W12; a block has at least one draw.
BLOCK = 2**21
SINGLE = "W12"
# The names of checksums of blocks, an array per quantity, begin with this.
CHECKSUM_PREFIX = "checksum_"
ATTRIBUTES = {"precision": f"{SINGLE} is rounded to float32 as it is written; all else is float64"}


@dataclass
class DiskStore:
    """Writes the draws of one chain to a zarr group in blocks of ``size``; statistics stay in memory.

    The checksum of each block is taken as it is written, and kept in snapshots: what is on disk is never asked
    what it should be.
    """

    path: Path
    chain: int
    summary: SummaryStore
    size: int
    block: dict[str, npt.NDArray[Any]] = field(default_factory=dict, init=False)
    checksums: dict[str, list[int]] = field(default_factory=dict, init=False)
    filled: int = field(default=0, init=False)

    def append(self, draw: Draw) -> None:
        """Take the next draw, and write the block that it completes."""
        self.summary.append(draw)
        kept = _on_disk(draw)
        if not self.block:
            self.block = {k: np.empty((self.size, *np.shape(value)), _kind(k)) for k, value in kept.items()}
            self.checksums = {k: [] for k in kept}
        for name, value in kept.items():
            self.block[name][self.filled % self.size] = value
        self.filled += 1
        if self.filled % self.size == 0 or self.filled == self.summary.draws:
            self._write((self.filled - 1) // self.size)

    def collect(self) -> Record:
        """What of this chain is in memory: statistics and small draws, and the checksums of its blocks."""
        checksums = {CHECKSUM_PREFIX + name: array for name, array in self._checksums().items()}
        return self.summary.collect() | checksums

    def pack(self) -> Record:
        """What a snapshot needs: the unfinished block and the statistics; finished blocks are on disk."""
        on_disk = inside("block", self.block) | inside("checksums", self._checksums())
        return on_disk | inside("summary", self.summary.pack())

    def unpack(self, record: Record) -> None:
        """Go on from a snapshot; blocks that were written after it are written again."""
        self.block, self.filled = part("block", record), int(record["summary.memory.filled"])
        self.summary.unpack(part("summary", record))
        written = part("checksums", record)
        self.checksums = {name: written[name].tolist()[: self._blocks] for name in self.block}
        self._require_blocks()

    def _checksums(self) -> Record:
        return {name: np.array(written, dtype=np.uint32) for name, written in self.checksums.items()}

    @property
    def _blocks(self) -> int:
        """The number of blocks that are not written again: the last one may be incomplete in a finished chain."""
        return (
            math.ceil(self.filled / self.size) if self.filled == self.summary.draws else self.filled // self.size
        )

    def _require_blocks(self) -> None:
        """Refuse to go on if a block is gone, or is not what was written."""
        for name, block in self.block.items():
            for number in range(self._blocks if block.size else 0):  # there is no file for an empty array
                file = self._file(name, number)
                if not file.is_file():
                    raise DamagedError(f"{file} is damaged: it is not there")
                require_plain(file)
                if self.checksums[name][number : number + 1] != [zlib.crc32(file.read_bytes())]:
                    raise DamagedError(f"{file} is damaged: it is not what was written")

    def _file(self, name: str, number: int) -> Path:
        """The file of a block."""
        return self.path / name / _block_name(self.chain, number, self.block[name].ndim - 1)

    def _write(self, number: int) -> None:
        """Write the block of that number, which may be incomplete at the end of a chain."""
        held = self.filled - number * self.size
        for name, block in self.block.items():
            if block.size:
                whole = np.concatenate([block[:held], np.full_like(block[held:], np.nan)])
                content = zarr_format.encoded(whole)
                with writing(self._file(name, number)) as file:
                    file.write(content)
                self.checksums[name] = [*self.checksums[name][:number], zlib.crc32(content)]


def _block_name(chain: int, number: int, axes: int) -> str:
    """The name of the file of a block, whose quantity has so many axes beside those of chains and draws."""
    return zarr_format.block_name((chain, number, *[0] * axes))


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
            _create(self.path, shapes, (len(chains), draws))
        if room(self.path) < draws:
            _grow(self.path, shapes, (len(chains), draws))
        size = zarr_format.metadata(self.path / SINGLE)["chunks"][1]
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
    """Make arrays (chain, draw, ...) of these shapes, axes named for xarray; the folder appears whole."""
    shutil.rmtree(draft(path), ignore_errors=True)
    zarr_format.create_group(draft(path), ATTRIBUTES)
    block = _draws_per_block(size[1], int(np.prod(shapes[SINGLE])))
    for name, shape in shapes.items():
        chunks = (1, block, *(max(1, length) for length in shape))
        axes = ("chain", "draw", *AXES.get(name, ()))
        zarr_format.create_array(draft(path) / name, (*size, *shape), chunks, _kind(name), axes)
    draft(path).rename(path)
    flush_folder(path.parent)


def room(path: Path) -> int:
    """The number of draws of a chain for which a group has room."""
    return int(zarr_format.metadata(path / SINGLE)["shape"][1])


def _grow(path: Path, shapes: Mapping[str, tuple[int, ...]], size: tuple[int, int]) -> None:
    """Make room for more draws; arrays added after sampling are removed, and W12 is resized last."""
    remove_added(path, shapes)
    for name in sorted(shapes, key=lambda name: name == SINGLE):
        zarr_format.resize(path / name, (*size, *shapes[name]))


def remove_added(path: Path, sampled: Collection[str]) -> None:
    """Remove what was added to a group after sampling, and drafts of files that a killed process left.

    The attributes of what stays are written again, since they may be half made, too.
    """
    for entry in list(path.iterdir()):
        if entry.name not in sampled and require_plain(entry):
            shutil.rmtree(entry)
    for draft in (path / zarr_format.CONSOLIDATED, *path.rglob(DRAFTS), *path.rglob(zarr_format.DRAFTS)):
        draft.unlink(missing_ok=True)
    zarr_format.describe_group(path, ATTRIBUTES)
    for name in sampled:
        zarr_format.metadata(path / name)
        zarr_format.describe_array(path / name, ("chain", "draw", *AXES.get(name, ())))


def checksums_of(arrays: dict[str, npt.NDArray[Any]]) -> dict[str, dict[str, str]]:
    """Take the checksums of all blocks out of what was gathered: by quantity, and by the name of the block."""
    found = {}
    for name in [name for name in arrays if name.startswith(CHECKSUM_PREFIX)]:
        quantity, numbers = name.removeprefix(CHECKSUM_PREFIX), arrays.pop(name)
        axes = len(AXES.get(quantity, ()))
        found[quantity] = {
            _block_name(chain, number, axes): crc32_text(int(numbers[chain, number]))
            for chain, number in np.ndindex(*numbers.shape)
        }
    return found
