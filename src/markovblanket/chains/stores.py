"""Stores of draws: every draw in memory, or statistics of every edge with the draws of a few.

A *store* takes the draws of one chain. A *keep* makes the stores of all chains, once these have warmed up, and
puts together what they have collected.
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

# The axes of each quantity after (chain, draw); any other quantity is one number per draw.
AXES = {
    "W11": ("query", "query_other"),
    "W12": ("query", "variable"),
    "W22_diagonal": ("variable",),
    "explained": ("query",),
    "kept_weight": ("edge",),
    "kept_partial_correlation": ("edge",),
}
# Quantities that tell how much work a draw took.
EFFORT = ("iterations", "residual", "scale_factor")
# The names of streamed statistics begin with this; the one named ``kept`` has the positions of the kept edges.
STREAM_PREFIX = "stream_"
# The names of means over all draws of a chain begin with this.
AVERAGE_PREFIX = "average_"
# Number of edges whose draws are kept by default, beside the statistics of all edges.
DEFAULT_KEPT_EDGES = 200


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain after ``count`` sweeps: its random generator and its state.

    During and after the warm-up it may also have the moments of the states of the second half of the warm-up.
    """

    rng: np.random.Generator
    state: ChainState
    moments: Moments | None = None
    count: int = 0

    def pack(self) -> Record:
        """Return the chain as named arrays, for a snapshot."""
        place = {"count": np.asarray(self.count), "rng": snapshots.from_generator(self.rng)}
        moments = {} if self.moments is None else self.moments.pack()
        return place | inside("state", snapshots.from_state(self.state)) | inside("moments", moments)

    def like(self, known: Chain) -> Chain:
        """Return this chain, whose state and moments must have the arrays of another chain of the same sampler."""
        state, moments = (snapshots.from_state(self.state), snapshots.from_state(known.state)), known.moments
        rows = 0 if known.state.columns is None else len(known.state.columns.X1)
        inverse = {"columns.inverse": np.empty((rows, rows))} if "columns.inverse" in state[0] else {}
        snapshots.require_like(state[0], {**state[1], **inverse})
        if set(state[0]) - set(state[1]) - set(inverse):
            raise ValueError("its state has arrays that the sampler does not know")
        if moments is not None:
            snapshots.require_like({} if self.moments is None else self.moments.pack(), moments.pack())
        return self

    @classmethod
    def unpack(cls, record: Record) -> Chain:
        """Return the chain of a snapshot."""
        moments = part("moments", record)
        return cls(
            snapshots.to_generator(snapshots.entry(record, "rng")),
            snapshots.to_state(part("state", record)),
            Moments.unpack(moments) if moments else None,
            int(snapshots.entry(record, "count")),
        )


class Keep(Protocol):
    """What a run keeps of its draws: makes a store for each chain, and merges what they collect."""

    @property
    def watches(self) -> bool:
        """Whether the stores need the moments of the warm-up."""

    def stores(self, chains: Sequence[Chain]) -> list[Any]:
        """Return a store for each chain, after the warm-up."""

    def gather(self, records: list[Record]) -> Record:
        """Merge what the stores have collected; arrays of draws become (chain, draw, ...)."""


def quantities(draw: Draw) -> dict[str, Array | float]:
    """Return the quantities of a draw that are kept, by name."""
    matrices = {name: getattr(draw, name) for name in ("W11", "W12", "W22_diagonal", "explained")}
    return {**matrices, **{name: getattr(draw.info, name) for name in EFFORT}, **draw.hyper}


# Every draw, in memory --------------------------------------------------------------------------------


@dataclass
class MemoryStore:
    """A store of every draw in memory, in arrays allocated once; of inclusion probabilities, their sum."""

    draws: int
    arrays: dict[str, Array] = field(default_factory=dict, init=False)
    latent: dict[int, Array] = field(default_factory=dict, init=False)
    inclusion_sum: Array | None = field(default=None, init=False)
    filled: int = field(default=0, init=False)

    def append(self, draw: Draw) -> None:
        """Add the next draw of the chain."""
        self.take(quantities(draw), draw)

    def take(self, kept: Mapping[str, Array | float], draw: Draw) -> None:
        """Add the named quantities of the next draw, and what else it has: latent columns, inclusions."""
        if not self.arrays:
            self.arrays = {name: np.empty((self.draws, *np.shape(value))) for name, value in kept.items()}
        for name, value in kept.items():
            self.arrays[name][self.filled] = value
        self.filled += 1
        if draw.latent is not None:
            self.latent[self.filled] = draw.latent
        if draw.inclusion is not None:
            self.inclusion_sum = draw.inclusion + (0.0 if self.inclusion_sum is None else self.inclusion_sum)

    def collect(self) -> Record:
        """Return the draws so far, by name, draws along the first axis; ``latent`` only has those that keep it.

        Means over all draws have the prefix :data:`AVERAGE_PREFIX`, and no axis of draws.
        """
        return self.first(self.filled)

    def first(self, draws: int) -> Record:
        """Return the first ``draws`` draws, in the form of :meth:`collect`; means are those of all draws."""
        latent = [columns for number, columns in self.latent.items() if number <= draws]
        kept = {name: array[:draws] for name, array in self.arrays.items()}
        return kept | ({"latent": np.stack(latent)} if latent else {}) | self._averages()

    def _averages(self) -> Record:
        """Return the means over all draws so far, by name."""
        if self.inclusion_sum is None:
            return {}
        return {f"{AVERAGE_PREFIX}inclusion": self.inclusion_sum / self.filled}

    def pack(self) -> Record:
        """Return the store as named arrays, for a snapshot; latent columns by the number of their draw, from 1."""
        latent = {str(number): columns for number, columns in self.latent.items()}
        kept = {name: array[: self.filled] for name, array in self.arrays.items()}
        sums = {} if self.inclusion_sum is None else {"inclusion": self.inclusion_sum}
        filled = {"filled": np.asarray(self.filled)}
        return filled | inside("arrays", kept) | inside("latent", latent) | inside("sums", sums)

    def unpack(self, record: Record) -> None:
        """Continue from a snapshot, which may be of a run with fewer draws."""
        self.filled = int(snapshots.entry(record, "filled"))
        if not 0 <= self.filled <= self.draws:
            raise ValueError(f"it has {self.filled} draws, and {self.draws} are asked for")
        for name, kept in part("arrays", record).items():
            self.arrays[name] = np.empty((self.draws, *kept.shape[1:]))
            self.arrays[name][: self.filled] = kept
        self.latent = {int(number): columns for number, columns in part("latent", record).items()}
        self.inclusion_sum = part("sums", record).get("inclusion")


@dataclass(frozen=True, slots=True)
class KeepDraws:
    """Keep every draw of all chains in memory."""

    draws: int
    watches: bool = field(default=False, init=False)

    def stores(self, chains: Sequence[Chain]) -> list[MemoryStore]:
        """Return an empty store for each chain."""
        return [MemoryStore(self.draws) for _ in chains]

    def gather(self, records: list[Record]) -> Record:
        """Stack the arrays of the chains along a new first axis."""
        return {name: np.stack([record.pop(name) for record in records]) for name in list(records[0])}


# Statistics of every edge, draws of a few -----------------------------------------------------------


@dataclass
class SummaryStore:
    """A store of statistics of every edge, and of draws of a few ``edges`` (k x 2) and small quantities."""

    draws: int
    bins: Bins
    edges: npt.NDArray[np.intp]
    grown: tuple[int, ...] = ()
    stream: EdgeStream = field(init=False)
    memory: MemoryStore = field(init=False)

    def __post_init__(self) -> None:
        """Begin with empty statistics and no draws."""
        first, *later = (*self.grown, self.draws)
        self.stream, self.memory = EdgeStream(Layout(first), self.bins, tuple(later)), MemoryStore(self.draws)

    def append(self, draw: Draw) -> None:
        """Add the next draw of the chain."""
        i, j = self.edges.T
        weight = draw.W12[i, j]
        partial = -weight / np.sqrt(draw.W11[i, i] * draw.W22_diagonal[j])
        small = {name: value for name, value in quantities(draw).items() if name not in ("W12", "W22_diagonal")}
        self.memory.take({**small, "kept_weight": weight, "kept_partial_correlation": partial}, draw)
        self.stream.add(draw)

    def collect(self) -> Record:
        """Return draws by name, and statistics by name with the prefix :data:`STREAM_PREFIX`."""
        statistics = self.stream.collect() | {"kept": self.edges}
        return self.memory.collect() | {STREAM_PREFIX + name: array for name, array in statistics.items()}

    def pack(self) -> Record:
        """Return the store as named arrays, for a snapshot."""
        return inside("memory", self.memory.pack()) | inside("stream", self.stream.pack())

    def unpack(self, record: Record) -> None:
        """Continue from a snapshot of this store."""
        self.memory.unpack(part("memory", record))
        self.stream.unpack(part("stream", record))


@dataclass(frozen=True, eq=False)
class KeepSummary:
    """Keep statistics of every edge, and the draws of ``edges``: by default of the surest after the warm-up.

    ``grown`` are the numbers of draws that the run had before it was extended.
    """

    draws: int
    edges: npt.NDArray[np.intp] | None = None
    grown: tuple[int, ...] = ()
    watches: bool = field(default=True, init=False)

    def stores(self, chains: Sequence[Chain]) -> list[SummaryStore]:
        """Return a store for each chain; all share bins and kept edges, so that their statistics can be merged."""
        moments = Moments.pooled([one.moments for one in chains if one.moments is not None])
        edges = moments.surest(DEFAULT_KEPT_EDGES) if self.edges is None else self.edges
        bins = moments.bins(Layout(self.draws).bins)
        return [SummaryStore(self.draws, bins, edges, self.grown) for _ in chains]

    def gather(self, records: list[Record]) -> Record:
        """Stack the draws of the chains, and merge their statistics."""
        streams = [
            {name: record.pop(name) for name in list(record) if name.startswith(STREAM_PREFIX)}
            for record in records
        ]
        parts = [{name.removeprefix(STREAM_PREFIX): part.pop(name) for name in list(part)} for part in streams]
        merged, stacked = merge(parts, self.draws), KeepDraws(self.draws).gather(records)
        return stacked | {STREAM_PREFIX + name: array for name, array in merged.items()}
