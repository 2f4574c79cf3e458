"""Where the draws of a chain go: all into memory, or into statistics of bounded size.

A *store* takes the draws of one chain. A *keep* makes the stores of all chains, once these have warmed up, and
puts together what they collected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from markovblanket.chains import snapshots
from markovblanket.chains.snapshots import Record, inside, part
from markovblanket.chains.streaming import Bins, EdgeStream, Layout, Moments, merge
from markovblanket.contracts import Array, ChainState, Draw

# The axes of each quantity after (chain, draw); what is not here is a number per draw.
AXES = {
    "W11": ("query", "query_other"),
    "W12": ("query", "variable"),
    "W22_diagonal": ("variable",),
    "explained": ("query",),
    "kept_weight": ("edge",),
    "kept_partial_correlation": ("edge",),
}
EFFORT = ("iterations", "residual", "scale_factor", "proposals", "rejections")
# Streamed statistics carry this before their names; ``kept`` among them are the positions of the kept edges.
STREAM = "stream_"
# Without a wish, so many edges keep their draws beside the statistics of all.
KEPT_EDGES = 200


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain as it stands after ``count`` sweeps: its generator, its state.

    After its warm-up, it has the moments of the later half of that, if asked for.
    """

    rng: np.random.Generator
    state: ChainState
    moments: Moments | None = None
    count: int = 0

    def pack(self) -> Record:
        """For a snapshot."""
        place = {"count": np.asarray(self.count), "rng": snapshots.from_generator(self.rng)}
        moments = {} if self.moments is None else self.moments.pack()
        return place | inside("state", snapshots.from_state(self.state)) | inside("moments", moments)

    @classmethod
    def unpack(cls, record: Record) -> Chain:
        """As it was."""
        moments = part("moments", record)
        return cls(
            snapshots.to_generator(snapshots.entry(record, "rng")),
            snapshots.to_state(part("state", record)),
            Moments.unpack(moments) if moments else None,
            int(snapshots.entry(record, "count")),
        )


class Keep(Protocol):
    """What is kept of all chains."""

    @property
    def watches(self) -> bool:
        """Whether the moments of the warm-up are needed."""

    def stores(self, chains: Sequence[Chain]) -> list[Any]:
        """A store for each chain."""

    def gather(self, records: list[Record]) -> Record:
        """What the chains collected, put together; arrays of draws are (chain, draw, ...)."""


def quantities(draw: Draw) -> dict[str, Array | float]:
    """The named quantities of a draw that are kept."""
    matrices = {name: getattr(draw, name) for name in ("W11", "W12", "W22_diagonal", "explained")}
    return {**matrices, **{name: getattr(draw.info, name) for name in EFFORT}, **draw.hyper}


# Every draw, in memory --------------------------------------------------------------------------------


@dataclass
class MemoryStore:
    """Every draw in memory, in arrays allocated once."""

    draws: int
    arrays: dict[str, Array] = field(default_factory=dict, init=False)
    latent: dict[int, Array] = field(default_factory=dict, init=False)
    filled: int = field(default=0, init=False)

    def append(self, draw: Draw) -> None:
        """Take the next draw."""
        self.take(quantities(draw), draw.latent)

    def take(self, kept: Mapping[str, Array | float], latent: Array | None) -> None:
        """Take the named quantities of the next draw."""
        if not self.arrays:
            self.arrays = {name: np.empty((self.draws, *np.shape(value))) for name, value in kept.items()}
        for name, value in kept.items():
            self.arrays[name][self.filled] = value
        self.filled += 1
        if latent is not None:
            self.latent[self.filled] = latent

    def collect(self) -> Record:
        """The draws so far, by name; the first axis counts draws, for ``latent`` those that brought it."""
        return self.first(self.filled)

    def first(self, draws: int) -> Record:
        """As :meth:`collect`, of the first draws."""
        latent = [columns for number, columns in self.latent.items() if number <= draws]
        kept = {name: array[:draws] for name, array in self.arrays.items()}
        return kept | ({"latent": np.stack(latent)} if latent else {})

    def pack(self) -> Record:
        """For a snapshot; latent columns go by the number of their draw, the first being 1."""
        latent = {str(number): columns for number, columns in self.latent.items()}
        kept = {name: array[: self.filled] for name, array in self.arrays.items()}
        return {"filled": np.asarray(self.filled), **inside("arrays", kept), **inside("latent", latent)}

    def unpack(self, record: Record) -> None:
        """Go on from there, perhaps with room for more draws than there was."""
        self.filled = int(snapshots.entry(record, "filled"))
        for name, kept in part("arrays", record).items():
            self.arrays[name] = np.empty((self.draws, *kept.shape[1:]))
            self.arrays[name][: self.filled] = kept
        self.latent = {int(number): columns for number, columns in part("latent", record).items()}


@dataclass(frozen=True, slots=True)
class KeepDraws:
    """Every draw in memory."""

    draws: int
    watches: bool = field(default=False, init=False)

    def stores(self, chains: Sequence[Chain]) -> list[MemoryStore]:
        """One for each chain."""
        return [MemoryStore(self.draws) for _ in chains]

    def gather(self, records: list[Record]) -> Record:
        """Chains along the first axis."""
        return {name: np.stack([record.pop(name) for record in records]) for name in list(records[0])}


# Statistics of every edge, the draws of a few -----------------------------------------------------------


@dataclass
class SummaryStore:
    """Streamed statistics of every edge; draws of the few ``edges`` (k x 2), of W11 and of all that is small."""

    draws: int
    bins: Bins
    edges: npt.NDArray[np.intp]
    stream: EdgeStream = field(init=False)
    memory: MemoryStore = field(init=False)

    def __post_init__(self) -> None:
        """Both empty."""
        self.stream, self.memory = EdgeStream(Layout(self.draws), self.bins), MemoryStore(self.draws)

    def append(self, draw: Draw) -> None:
        """Take the next draw."""
        i, j = self.edges.T
        weight = draw.W12[i, j]
        partial = -weight / np.sqrt(draw.W11[i, i] * draw.W22_diagonal[j])
        small = {name: value for name, value in quantities(draw).items() if name not in ("W12", "W22_diagonal")}
        self.memory.take({**small, "kept_weight": weight, "kept_partial_correlation": partial}, draw.latent)
        self.stream.add(draw)

    def collect(self) -> Record:
        """Small draws by name; statistics by name, marked as such."""
        statistics = self.stream.collect() | {"kept": self.edges}
        return self.memory.collect() | {STREAM + name: array for name, array in statistics.items()}

    def pack(self) -> Record:
        """For a snapshot."""
        return inside("memory", self.memory.pack()) | inside("stream", self.stream.pack())

    def unpack(self, record: Record) -> None:
        """Go on from there."""
        self.memory.unpack(part("memory", record))
        self.stream.unpack(part("stream", record))


@dataclass(frozen=True, eq=False)
class KeepSummary:
    """Streamed statistics of every edge, and the draws of ``edges``: by default of the surest after warm-up."""

    draws: int
    edges: npt.NDArray[np.intp] | None = None
    watches: bool = field(default=True, init=False)

    def stores(self, chains: Sequence[Chain]) -> list[SummaryStore]:
        """Chains share bins and edges, so that their statistics can be merged."""
        moments = Moments.pooled([one.moments for one in chains if one.moments is not None])
        edges = moments.surest(KEPT_EDGES) if self.edges is None else self.edges
        bins = moments.bins(Layout(self.draws).bins)
        return [SummaryStore(self.draws, bins, edges) for _ in chains]

    def gather(self, records: list[Record]) -> Record:
        """Draws stacked, statistics merged."""
        streams = [
            {name: record.pop(name) for name in list(record) if name.startswith(STREAM)} for record in records
        ]
        parts = [{name.removeprefix(STREAM): part.pop(name) for name in list(part)} for part in streams]
        merged, stacked = merge(parts, self.draws), KeepDraws(self.draws).gather(records)
        return stacked | {STREAM + name: array for name, array in merged.items()}
