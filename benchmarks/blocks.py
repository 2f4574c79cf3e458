"""What a sweep of the widened block costs: against its number of variables, and against that outside."""

from __future__ import annotations

from typing import Any

import numpy as np

from markovblanket.model.network_sweep import WidenedBlanket
from markovblanket.priors import SpikeSlab
from settings import Settings
from tables import Size, factor_table, gaussian
from timing import in_turn, milliseconds, slope

ROWS, QUERY = 260, 7


def costs(settings: Settings) -> dict[str, Any]:
    """All variables in a block of P = 20 to 300; and a block of 40 with q = 300 to 30,000 variables outside."""
    blocks, outside, block = [20, 40, 60, 100, 150, 200, 300], [300, 1000, 3000, 10_000, 30_000], 40
    if settings.quick:
        blocks, outside, block = [10, 20], [50, 100], 10
    sizes = [(P, 0) for P in blocks] + [(block, q) for q in outside]
    chains = {size: BlockChain(*size, warmup=20 if settings.quick else 60) for size in sizes}
    times = in_turn({size: chain.step for size, chain in chains.items()}, settings.repeats)
    rows = [{"P": P, "q": q, "n": ROWS, "ms": milliseconds(times[P, q])} for P, q in sizes]
    slopes = {
        "P": slope(blocks, [row["ms"] for row in rows if not row["q"]]),
        "q": slope(outside, [row["ms"] for row in rows if row["q"]]),
    }
    for row in rows:
        print(f"  P, q, n = {row['P']}, {row['q']:,}, {row['n']}: {row['ms']:.2f} ms")
    print(f"  log-log slopes: against P {slopes['P']:.2f}, against q {slopes['q']:.2f}")
    return {"rows": rows, "slopes": slopes}


class BlockChain:
    """A chain of the widened block some sweeps under way; every call of :meth:`step` is its next sweep."""

    def __init__(self, block: int, outside: int, warmup: int) -> None:
        size: Size = (QUERY, block - QUERY + outside, ROWS)
        problem = gaussian(factor_table(size), QUERY, SpikeSlab())
        self.sampler, self.rng = WidenedBlanket.of(problem, np.arange(block - QUERY)), np.random.default_rng(0)
        self.state = self.sampler.start(self.rng)
        for _ in range(warmup):
            self.step()

    def step(self) -> None:
        """A sweep."""
        self.state, _ = self.sampler.sweep(self.rng, self.state)
