"""What is remembered of every edge when its draws are not: counts, sums and a histogram, updated draw by draw.

The memory of a chain is O(pq), whatever its length. Weights are added up as differences ``d = w - centre`` from a
centre that all chains share, so sums of squares do not cancel and those of chains and of halves simply add. The
histogram has equal bins about the same centre; exact zeros are in none of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from markovblanket.contracts import Array, Draw

# Bins reach so many standard deviations of the warm-up to either side.
REACH = 4.0
# An edge with fewer nonzero draws of the warm-up than this, all chains together, takes its query's common scale.
FEW = 20

# How statistics that all chains share are merged: histograms add, bins and kept edges are the same in all.
TOGETHER: dict[str, np.ufunc | None] = {
    "histogram": np.add,
    "lowest": np.minimum,
    "highest": np.maximum,
    "centre": None,
    "per_width": None,
    "kept": None,
    "first": None,
}

# Sums over a whole chain, besides those of its parts; those of the half batch at hand and of the one before.
SUMS = ("partial_sum", "partial_squares", "coefficient_sum", "batch_sum", "batch_squares", "half_batch_squares")
RUNNING = ("running", "held")

Statistics = dict[str, npt.NDArray[Any]]
Counts = npt.NDArray[np.unsignedinteger[Any]]


# Warm-up ----------------------------------------------------------------------------------------------


@dataclass
class Moments:
    """Of the nonzero weights of every edge, over the states seen."""

    positive: Counts
    negative: Counts
    sum: Array
    squares: Array
    seen: int = 0

    @classmethod
    def empty(cls, shape: tuple[int, ...]) -> Moments:
        """Of no state yet."""
        return cls(np.zeros(shape, np.uint32), np.zeros(shape, np.uint32), np.zeros(shape), np.zeros(shape))

    def add(self, W12: Array) -> None:
        """Take another state."""
        self.positive += W12 > 0
        self.negative += W12 < 0
        self.sum += W12
        self.squares += W12 * W12
        self.seen += 1

    def pack(self) -> Statistics:
        """For a snapshot."""
        return {name: np.asarray(value) for name, value in vars(self).items()}

    @classmethod
    def unpack(cls, record: Statistics) -> Moments:
        """As they were."""
        sums = {name: record[name] for name in ("positive", "negative", "sum", "squares")}
        return cls(**sums, seen=int(record["seen"]))

    @classmethod
    def pooled(cls, parts: Sequence[Moments]) -> Moments:
        """Those of several chains together."""
        whole = cls.empty(parts[0].sum.shape)
        for part in parts:
            for name in ("positive", "negative", "sum", "squares"):
                getattr(whole, name).__iadd__(getattr(part, name))
            whole.seen += part.seen
        return whole

    def bins(self, bins: int) -> Bins:
        """Bins about the mean of each edge, as wide as its spread asks for.

        Where an edge was hardly ever nonzero, about zero, and as wide as the nonzero weights of its query ask for.
        """
        count = self.positive + self.negative
        mean = self.sum / np.maximum(count, 1)
        variance = self.squares / np.maximum(count, 1) - mean**2
        unsure = (count < FEW) | (variance <= 1e-12 * mean**2)
        mean[unsure] = 0.0
        spread = np.sqrt(np.where(unsure, self._common_squares(), variance))
        return Bins(mean, bins / (2 * REACH * spread))

    def _common_squares(self) -> Array:
        """The mean square of the nonzero weights of each query, p x 1; 1 where there is none."""
        count, squares = (self.positive + self.negative).sum(axis=1), self.squares.sum(axis=1)
        return np.where(squares > 0, squares / np.maximum(count, 1), 1.0)[:, None]

    def surest(self, most: int) -> npt.NDArray[np.intp]:
        """At most so many edges, those of the surest sign first, equally sure ones by mean over spread; k x 2."""
        sure = np.maximum(self.positive, self.negative).ravel()
        strength = np.abs(self.sum.ravel()) / np.sqrt(np.maximum(self.squares.ravel(), 1e-300))
        order = np.lexsort((-strength, -sure.astype(float)))[:most]
        return np.column_stack(np.unravel_index(order, self.sum.shape))


@dataclass(frozen=True, slots=True)
class Bins:
    """Equal bins about the ``centre`` of each edge, so many (``per_width``) in a unit of the weight."""

    centre: Array
    per_width: Array


# Sampling ---------------------------------------------------------------------------------------------


@dataclass
class EdgeStream:
    """Statistics of every edge over the draws of one chain, with its bins at most 288 bytes an edge."""

    layout: Layout
    bins: Bins
    filled: int = field(default=0, init=False)
    sums: dict[str, Array] = field(default_factory=dict, init=False)
    counts: dict[str, Counts] = field(default_factory=dict, init=False)

    def add(self, draw: Draw) -> None:
        """Take the next draw."""
        if not self.sums:
            self._allocate(draw.W12.shape)
        sums, counts, part = self.sums, self.counts, self.layout.part(self.filled)
        roots = np.sqrt(np.diagonal(draw.W11)), np.sqrt(draw.W22_diagonal)
        moments = sums["sum"][part], sums["squares"][part], sums["running"]
        partials = sums["partial_sum"], sums["partial_squares"]
        signs, extremes = (counts["positive"], counts["negative"]), (sums["lowest"], sums["highest"])
        centre, per_width = self.bins.centre, self.bins.per_width
        _add_moments(draw.W12, *roots, centre, *moments, *partials)
        _add_counts(draw.W12, centre, per_width, *signs, counts["histogram"], *extremes)
        sums["coefficient_sum"] -= np.linalg.inv(draw.W11) @ draw.W12
        self.filled += 1
        self._close_batches()

    def collect(self) -> Statistics:
        """All statistics, by name."""
        bins = {"centre": self.bins.centre, "per_width": self.bins.per_width}
        sums = {name: array for name, array in self.sums.items() if name not in RUNNING}
        return {**bins, **sums, **self.counts, "first": np.asarray(self.layout.first)}

    def pack(self) -> Statistics:
        """For a snapshot: all but the bins, which all chains share."""
        told = {"filled": self.filled, "draws": self.layout.draws, "first": self.layout.first}
        return {name: np.asarray(value) for name, value in told.items()} | self.sums | self.counts

    def unpack(self, record: Statistics) -> None:
        """Go on from there, perhaps to more draws than were asked for then."""
        self.filled, draws, first = (int(record.pop(name)) for name in ("filled", "draws", "first"))
        self.counts = {name: record.pop(name) for name in ("positive", "negative", "histogram") if name in record}
        self.sums, before = record, Layout(draws, first)
        if draws == self.layout.draws:
            self.layout = before
        else:
            self._grow(before.grown(self.layout.draws))

    def _grow(self, layout: Layout) -> None:
        """All that was seen is in the first half."""
        self.layout = layout
        for name in ("sum", "squares"):
            parts = np.zeros((len(layout.parts), *self.sums[name].shape[1:]))
            self.sums[name] = parts + self.sums[name].sum(axis=0) * np.eye(len(parts), 1)[..., None]

    def _allocate(self, shape: tuple[int, ...]) -> None:
        """Zero everywhere; the extremes where the bins end."""
        parts, bins = len(self.layout.parts), self.layout.bins
        self.sums = {name: np.zeros(shape) for name in (*SUMS, *RUNNING)}
        self.sums |= {name: np.zeros((parts, *shape)) for name in ("sum", "squares")}
        reach = (bins / 2) / self.bins.per_width
        self.sums |= {"lowest": self.bins.centre - reach, "highest": self.bins.centre + reach}
        self.counts = {name: np.zeros(shape, self.layout.counter) for name in ("positive", "negative")}
        self.counts["histogram"] = np.zeros((*shape, bins + 2), self.layout.counter)

    def _close_batches(self) -> None:
        """Sums of half batches and batches, whenever one is full; ``running`` starts anew."""
        into, sums = self.filled - self.layout.unbatched, self.sums
        if into < 0 or into % (self.layout.batch // 2):
            return
        if into:
            sums["half_batch_squares"] += sums["running"] ** 2
        if into and into % self.layout.batch == 0:
            whole = sums["held"] + sums["running"]
            sums["batch_sum"] += whole
            sums["batch_squares"] += whole**2
        sums["held"], sums["running"] = sums["running"], sums["held"]
        sums["running"].fill(0.0)


def merge(parts: list[Statistics], draws: int) -> Statistics:
    """Statistics of several chains of so many draws: those of :data:`TOGETHER` in one, the rest chain by chain.

    Takes ``parts`` apart as it goes, so that nothing large exists twice.
    """
    if len(parts) * draws >= 2**16:
        parts[0]["histogram"] = parts[0]["histogram"].astype(np.uint32)
    merged: Statistics = {}
    for name in list(parts[0]):
        arrays = [part.pop(name) for part in parts]
        merged[name] = _together(arrays, TOGETHER[name]) if name in TOGETHER else np.stack(arrays)
    return merged


def _together(arrays: list[npt.NDArray[Any]], operation: np.ufunc | None) -> npt.NDArray[Any]:
    """The arrays of all chains in that of the first one; without an ``operation`` they are the same."""
    for array in arrays[1:]:
        if operation is not None:
            operation(arrays[0], array, out=arrays[0])
    return arrays[0]


@njit(cache=True, error_model="numpy")
def _add_moments(W12, root_w11, root_w22, centre, total, squares, running, partial_sum, partial_squares):  # type: ignore[no-untyped-def]
    """Sums of the weights, and of the partial correlations ``-w_ij / sqrt(w_ii w_jj)``."""
    p, q = W12.shape
    for i in range(p):
        for j in range(q):
            d = W12[i, j] - centre[i, j]
            total[i, j] += d
            squares[i, j] += d * d
            running[i, j] += d
            partial = -W12[i, j] / (root_w11[i] * root_w22[j])
            partial_sum[i, j] += partial
            partial_squares[i, j] += partial * partial


@njit(cache=True, error_model="numpy")
def _add_counts(W12, centre, per_width, positive, negative, histogram, lowest, highest):  # type: ignore[no-untyped-def]
    """Signs, bins of what is not zero, and the extremes of what no bin holds."""
    p, q = W12.shape
    last = float(histogram.shape[2] - 1)
    middle = (last + 1) / 2
    for i in range(p):
        for j in range(q):
            w = W12[i, j]
            positive[i, j] += w > 0.0
            negative[i, j] += w < 0.0
            if w != 0.0:
                place = min(max((w - centre[i, j]) * per_width[i, j] + middle, 0.0), last)
                histogram[i, j, int(place)] += 1
                if place < 1.0 or place == last:
                    lowest[i, j] = min(lowest[i, j], w)
                    highest[i, j] = max(highest[i, j], w)


@dataclass(frozen=True, slots=True)
class Layout:
    """How ``draws`` of one chain are divided: in halves, in batches of two half batches each, over bins.

    An odd draw in the middle belongs to neither half, draws before the first whole batch to no batch. A chain of
    2^16 draws or more counts in four bytes instead of two, and has half the bins. Of a chain that has grown,
    ``first`` is the number of draws for which batches were made; what does not fill one in the end is in none.
    """

    draws: int
    first: int = 0

    @property
    def half(self) -> int:
        """Draws in each half."""
        return self.draws // 2

    @property
    def parts(self) -> tuple[int, ...]:
        """Draws in the first half, in the second, and in the middle if there is one."""
        return (self.half, self.half) if self.draws % 2 == 0 else (self.half, self.half, 1)

    def part(self, number: int) -> int:
        """The part to which draw ``number`` belongs, counted from 0."""
        if number < self.half:
            return 0
        return 1 if number >= self.draws - self.half else 2

    @property
    def batch(self) -> int:
        """Draws in a batch: even, and about the root of all (first) draws."""
        return 2 * max(1, math.isqrt(self.first or self.draws) // 2)

    @property
    def batches(self) -> int:
        """Whole batches."""
        return (self.draws - self.unbatched) // self.batch

    @property
    def unbatched(self) -> int:
        """Draws before the first batch."""
        return (self.first or self.draws) % self.batch

    def grown(self, draws: int) -> Layout:
        """For more draws, all earlier ones of which are in the first half."""
        if not can_grow(self.draws, draws):
            raise ValueError(f"statistics of {self.draws} draws cannot become those of {draws}")
        return Layout(draws, self.first or self.draws)

    @property
    def counter(self) -> type[np.unsignedinteger[Any]]:
        """A number type that can count them."""
        return np.uint16 if self.draws < 2**16 else np.uint32

    @property
    def bins(self) -> int:
        """Bins between underflow and overflow."""
        return 64 if self.draws < 2**16 else 32


def can_grow(draws: int, more: int) -> bool:
    """Whether statistics of so many draws can become those of more: their halves cannot be divided.

    >>> can_grow(1000, 1500), can_grow(1000, 5000), can_grow(40_000, 80_000)
    (False, True, False)
    """
    return more >= 2 * draws and Layout(more).bins == Layout(draws).bins
