"""How the draws of a chain are divided, where only statistics of them are kept."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np


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
