"""Streamed statistics of every edge: counts, sums and a histogram, updated draw by draw.

The memory of a chain is O(pq), whatever its length. The histogram is one of the partial correlation where the edge
is present: its bins have equal width about a centre, both from the moments of the warm-up and the same in all
chains, and exact zeros are in none of them. For R-hat and effective sample sizes, :class:`Layout` divides a chain
into halves and into batches. Written by hand: quantile sketches of libraries take one number at a time and have
no exact signs.
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

# Bins reach so many standard deviations, as seen in the warm-up, to either side of the centre.
BIN_REACH_SDS = 4.0
# An edge with fewer nonzero states in the warm-up, all chains together, takes the scale of its query variable.
LEAST_NONZERO_STATES = 20

# Statistics that are merged over chains, and how: histograms are added; None if all chains have the same values.
MERGED_STATISTICS: dict[str, np.ufunc | None] = {
    "histogram": np.add,
    "lowest": np.minimum,
    "highest": np.maximum,
    "centre": None,
    "per_width": None,
    "kept": None,
    "first": None,
}

# Sums over a whole chain, not separately over its halves.
CHAIN_SUMS = (
    "partial_sum",
    "partial_squares",
    "coefficient_sum",
    "regression_sum",
    "batch_sum",
    "batch_squares",
    "half_batch_squares",
)
# Sums over the current half batch, and over the one before.
HALF_BATCH_SUMS = ("running", "held")

Statistics = dict[str, npt.NDArray[Any]]
Counts = npt.NDArray[np.unsignedinteger[Any]]


# Division of a chain ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Layout:
    """The division of the ``draws`` draws of one chain into halves and batches, and the size of its histogram.

    If the number is odd, the draw in the middle belongs to neither half. A batch has two halves, too; draws before
    the first whole batch belong to none. A chain of 2^16 draws or more counts in four bytes instead of two, and
    has half the bins. If a run was prolonged, ``first`` is its original number of draws, which decided the size of
    batches; draws at the end that do not fill a batch belong to none.
    """

    draws: int
    first: int = 0

    @property
    def half(self) -> int:
        """Number of draws in each half."""
        return self.draws // 2

    @property
    def parts(self) -> tuple[int, ...]:
        """Numbers of draws in the first half, in the second half, and between them if there is one."""
        return (self.half, self.half) if self.draws % 2 == 0 else (self.half, self.half, 1)

    def part(self, number: int) -> int:
        """Return the part to which draw ``number`` belongs; both count from 0."""
        if number < self.half:
            return 0
        return 1 if number >= self.draws - self.half else 2

    @property
    def batch(self) -> int:
        """Number of draws in a batch: even, and about the square root of the (original) number of draws."""
        return 2 * max(1, math.isqrt(self.first or self.draws) // 2)

    @property
    def batches(self) -> int:
        """Number of whole batches of a chain."""
        return (self.draws - self.unbatched) // self.batch

    @property
    def unbatched(self) -> int:
        """Number of draws before the first batch."""
        return (self.first or self.draws) % self.batch

    def grown(self, draws: int) -> Layout:
        """Return the division of a prolonged run, whose first half has all earlier draws."""
        if not can_grow(self.draws, draws):
            raise ValueError(f"statistics of {self.draws} draws cannot be continued to {draws} draws")
        return Layout(draws, self.first or self.draws)

    @property
    def counter(self) -> type[np.unsignedinteger[Any]]:
        """The integer type that can count all draws."""
        return np.uint16 if self.draws < 2**16 else np.uint32

    @property
    def bins(self) -> int:
        """Number of bins of the histogram, without those for values below and above all bins."""
        return 64 if self.draws < 2**16 else 32


def can_grow(draws: int, more: int) -> bool:
    """Whether statistics of ``draws`` draws can be continued to ``more``: they have no parts but two halves.

    >>> can_grow(1000, 1500), can_grow(1000, 5000), can_grow(40_000, 80_000)
    (False, True, False)
    """
    return more >= 2 * draws and Layout(more).bins == Layout(draws).bins


# Moments of the warm-up -------------------------------------------------------------------------------


@dataclass
class Moments:
    """Counts of signs, sums and squares of the partial correlation of every edge, over states of the warm-up."""

    positive: Counts
    negative: Counts
    sum: Array
    squares: Array
    seen: int = 0

    @classmethod
    def empty(cls, shape: tuple[int, ...]) -> Moments:
        """Return the moments of no state."""
        return cls(np.zeros(shape, np.uint32), np.zeros(shape, np.uint32), np.zeros(shape), np.zeros(shape))

    def add(self, partial: Array) -> None:
        """Add the partial correlations of another state."""
        self.positive += partial > 0
        self.negative += partial < 0
        self.sum += partial
        self.squares += partial * partial
        self.seen += 1

    def pack(self) -> Statistics:
        """Return the moments as named arrays, for a snapshot."""
        return {name: np.asarray(value) for name, value in vars(self).items()}

    @classmethod
    def unpack(cls, record: Statistics) -> Moments:
        """Return the moments of a snapshot."""
        sums = {name: record[name] for name in ("positive", "negative", "sum", "squares")}
        return cls(**sums, seen=int(record["seen"]))

    @classmethod
    def pooled(cls, parts: Sequence[Moments]) -> Moments:
        """Return the moments of several chains together."""
        whole = cls.empty(parts[0].sum.shape)
        for part in parts:
            for name in ("positive", "negative", "sum", "squares"):
                getattr(whole, name).__iadd__(getattr(part, name))
            whole.seen += part.seen
        return whole

    def bins(self, bins: int) -> Bins:
        """Return bins about the mean of each edge, their width in proportion to its standard deviation.

        Those of an edge that was hardly ever nonzero lie about zero, and their width is in proportion to the root
        mean square of the nonzero values of its query variable.
        """
        count = self.positive + self.negative
        mean = self.sum / np.maximum(count, 1)
        variance = self.squares / np.maximum(count, 1) - mean**2
        unsure = (count < LEAST_NONZERO_STATES) | (variance <= 1e-12 * mean**2)
        mean[unsure] = 0.0
        spread = np.sqrt(np.where(unsure, self._common_squares(), variance))
        return Bins(mean, bins / (2 * BIN_REACH_SDS * spread))

    def _common_squares(self) -> Array:
        """Return the mean square of the nonzero values of each query variable, p x 1; 1 where there is none."""
        count, squares = (self.positive + self.negative).sum(axis=1), self.squares.sum(axis=1)
        return np.where(squares > 0, squares / np.maximum(count, 1), 1.0)[:, None]

    def surest(self, most: int) -> npt.NDArray[np.intp]:
        """Return positions of the ``most`` surest edges, k x 2: by probability of the sign, then by size."""
        sure = np.maximum(self.positive, self.negative).ravel()
        strength = np.abs(self.sum.ravel()) / np.sqrt(np.maximum(self.squares.ravel(), 1e-300))
        order = np.lexsort((-strength, -sure.astype(float)))[:most]
        return np.column_stack(np.unravel_index(order, self.sum.shape))


@dataclass(frozen=True, slots=True)
class Bins:
    """Bins of equal width about the ``centre`` of each edge, ``per_width`` of them per unit."""

    centre: Array
    per_width: Array


# Statistics of the draws ------------------------------------------------------------------------------


@dataclass
class EdgeStream:
    """Statistics of every edge over the draws of one chain; with the bins, at most 296 bytes per edge.

    A chain that is extended is divided anew when it has the draws of its ``layout``: then for the next of the
    ``later`` numbers of draws. When somebody asked for more does not matter, so that the last bits depend on these
    numbers alone.
    """

    layout: Layout
    bins: Bins
    later: tuple[int, ...] = ()
    filled: int = field(default=0, init=False)
    sums: dict[str, Array] = field(default_factory=dict, init=False)
    counts: dict[str, Counts] = field(default_factory=dict, init=False)

    def add(self, draw: Draw) -> None:
        """Add the next draw of the chain."""
        if not self.sums:
            self._allocate(draw.W12.shape)
        if self.filled == self.layout.draws and self.later:
            self._grow(self.layout.grown(self.later[0]))
            self.later = self.later[1:]
        sums, counts, part = self.sums, self.counts, self.layout.part(self.filled)
        roots = np.sqrt(np.diagonal(draw.W11)), np.sqrt(draw.W22_diagonal)
        moments = sums["sum"][part], sums["squares"][part], sums["running"]
        partials = sums["partial_sum"], sums["partial_squares"], sums["regression_sum"]
        signs, extremes = (counts["positive"], counts["negative"]), (sums["lowest"], sums["highest"])
        _add_moments(draw.W12, *roots, *moments, *partials)
        _add_counts(
            draw.W12, *roots, self.bins.centre, self.bins.per_width, *signs, counts["histogram"], *extremes
        )
        sums["coefficient_sum"] -= np.linalg.inv(draw.W11) @ draw.W12
        self.filled += 1
        self._close_batches()

    def collect(self) -> Statistics:
        """Return all statistics, by name."""
        bins = {"centre": self.bins.centre, "per_width": self.bins.per_width}
        sums = {name: array for name, array in self.sums.items() if name not in HALF_BATCH_SUMS}
        return {**bins, **sums, **self.counts, "first": np.asarray(self.layout.first)}

    def pack(self) -> Statistics:
        """Return all but the bins, which all chains share, as named arrays for a snapshot."""
        counted = {"filled": self.filled, "draws": self.layout.draws, "first": self.layout.first}
        return {name: np.asarray(value) for name, value in counted.items()} | self.sums | self.counts

    def unpack(self, record: Statistics) -> None:
        """Continue from a snapshot, which may be of a run with fewer draws."""
        self.filled, draws, first = (int(record.pop(name)) for name in ("filled", "draws", "first"))
        self.counts = {name: record.pop(name) for name in ("positive", "negative", "histogram") if name in record}
        self.sums, asked = record, (self.layout.draws, *self.later)
        if draws not in asked or not 0 <= self.filled <= draws:
            raise ValueError(f"its statistics are of {self.filled} draws of {draws}")
        self.layout, self.later = Layout(draws, first), tuple(more for more in asked if more > draws)
        if self.sums or self.counts:
            self._require_shapes()

    def _require_shapes(self) -> None:
        """Refuse arrays of another shape or type than compiled code expects."""
        shape, parts = self.bins.centre.shape, (len(self.layout.parts),)
        counts = {"positive": shape, "negative": shape, "histogram": (*shape, self.layout.bins + 2)}
        sums = dict.fromkeys((*CHAIN_SUMS, *HALF_BATCH_SUMS, "lowest", "highest"), shape)
        sums |= dict.fromkeys(("sum", "squares"), parts + shape)
        for arrays, shapes, dtype in ((self.counts, counts, self.layout.counter), (self.sums, sums, np.float64)):
            if {name: array.shape for name, array in arrays.items()} != shapes:
                raise ValueError("its statistics have other names or shapes")
            if any(array.dtype != dtype for array in arrays.values()):
                raise ValueError("its statistics have other types")

    def _grow(self, layout: Layout) -> None:
        """Divide the chain for more draws: all draws so far belong to the first half."""
        self.layout = layout
        for name in ("sum", "squares"):
            parts = np.zeros((len(layout.parts), *self.sums[name].shape[1:]))
            self.sums[name] = parts + self.sums[name].sum(axis=0) * np.eye(len(parts), 1)[..., None]

    def _allocate(self, shape: tuple[int, ...]) -> None:
        """Allocate all sums and counts as zeros, and the extremes at the outer bounds of the bins."""
        parts, bins = len(self.layout.parts), self.layout.bins
        self.sums = {name: np.zeros(shape) for name in (*CHAIN_SUMS, *HALF_BATCH_SUMS)}
        self.sums |= {name: np.zeros((parts, *shape)) for name in ("sum", "squares")}
        reach = (bins / 2) / self.bins.per_width
        self.sums |= {"lowest": self.bins.centre - reach, "highest": self.bins.centre + reach}
        self.counts = {name: np.zeros(shape, self.layout.counter) for name in ("positive", "negative")}
        self.counts["histogram"] = np.zeros((*shape, bins + 2), self.layout.counter)

    def _close_batches(self) -> None:
        """Add a half batch, and a batch, to their sums when it is complete; then ``running`` begins at zero."""
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
    """Merge the statistics of chains of ``draws`` draws.

    Those in :data:`MERGED_STATISTICS` become those of all chains together; others are stacked. Removes the arrays
    from ``parts`` one by one, so that no large array exists twice.
    """
    if len(parts) * draws >= 2**16:
        parts[0]["histogram"] = parts[0]["histogram"].astype(np.uint32)
    merged: Statistics = {}
    for name in list(parts[0]):
        arrays = [part.pop(name) for part in parts]
        merged[name] = _merged(arrays, MERGED_STATISTICS[name]) if name in MERGED_STATISTICS else np.stack(arrays)
    return merged


def _merged(arrays: list[npt.NDArray[Any]], operation: np.ufunc | None) -> npt.NDArray[Any]:
    """Merge the arrays of all chains into the first one; without an ``operation`` they are equal."""
    for array in arrays[1:]:
        if operation is not None:
            operation(arrays[0], array, out=arrays[0])
    return arrays[0]


@njit(cache=True, error_model="numpy")
def _add_moments(W12, root_w11, root_w22, total, squares, running, partial_sum, partial_squares, regression_sum):  # type: ignore[no-untyped-def]
    """Add a draw to the sums of w, of partial correlations ``-w_ij / sqrt(w_ii w_jj)`` and of ``-w_ij / w_ii``."""
    p, q = W12.shape
    for i in range(p):
        for j in range(q):
            w = W12[i, j]
            if w != 0.0:
                total[i, j] += w
                squares[i, j] += w * w
                running[i, j] += w
                partial = -w / (root_w11[i] * root_w22[j])
                partial_sum[i, j] += partial
                partial_squares[i, j] += partial * partial
                regression_sum[i, j] -= w / (root_w11[i] * root_w11[i])


@njit(cache=True, error_model="numpy")
def _add_counts(W12, root_w11, root_w22, centre, per_width, positive, negative, histogram, lowest, highest):  # type: ignore[no-untyped-def]
    """Add a draw to the counts of signs of weights, and its partial correlations to bins and extremes.

    Zeros are left out; the extremes are those outside the bins.
    """
    p, q = W12.shape
    last = float(histogram.shape[2] - 1)
    middle = (last + 1) / 2
    for i in range(p):
        for j in range(q):
            w = W12[i, j]
            positive[i, j] += w > 0.0
            negative[i, j] += w < 0.0
            if w != 0.0:
                partial = -w / (root_w11[i] * root_w22[j])
                place = min(max((partial - centre[i, j]) * per_width[i, j] + middle, 0.0), last)
                histogram[i, j, int(place)] += 1
                if place < 1.0 or place == last:
                    lowest[i, j] = min(lowest[i, j], partial)
                    highest[i, j] = max(highest[i, j], partial)
