"""Running: a chain is a stream of draws; many chains are many streams, each with a generator of its own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from markovblanket.contracts import Array, Draw, Problem, Sampler
from markovblanket.gibbs import Blanket
from markovblanket.progress import Board
from markovblanket.store import MemoryStore

# How many numbers of latent columns a chain keeps, unless that would be less than so many draws.
LATENT_NUMBERS, LATENT_LEAST = 2**22, 5


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long a chain runs: ``warmup`` sweeps discarded, then ``draws`` kept, one in every ``thin`` sweeps."""

    warmup: int = 1000
    draws: int = 1000
    thin: int = 1

    def __post_init__(self) -> None:
        """Refuse empty schedules."""
        for name, least in (("warmup", 0), ("draws", 1), ("thin", 1)):
            require_count(name, getattr(self, name), least)

    @property
    def sweeps(self) -> int:
        """All sweeps of a chain."""
        return int(self.warmup + self.draws * self.thin)

    def latent_every(self, cells: int) -> int:
        """Of so many draws one also keeps its latent columns: all if they are small, a handful if they are not."""
        room = max(LATENT_LEAST, LATENT_NUMBERS // cells)
        return max(1, math.ceil(self.draws / room))


def require_count(name: str, value: object, least: int) -> None:
    """Refuse what is not a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name}={value!r}: must be a whole number, at least {least}")


def stream(rng: np.random.Generator, problem: Problem | Sampler[Any], schedule: Schedule) -> Iterator[Draw | None]:
    """Sweep after sweep from an over-dispersed start: a draw where one is kept, otherwise None."""
    sampler: Sampler[Any] = Blanket(problem) if isinstance(problem, Problem) else problem
    state = sampler.start(rng)
    for count in range(1 - schedule.warmup, schedule.sweeps - schedule.warmup + 1):
        state, info = sampler.sweep(rng, state)
        kept = count > 0 and count % schedule.thin == 0
        yield thinned(sampler.derive(rng, state, info), count // schedule.thin, schedule) if kept else None


def thinned(draw: Draw, number: int, schedule: Schedule) -> Draw:
    """The draw, with its latent columns if it is one of those that keep them; draws are counted from 1."""
    if draw.latent is None or number % schedule.latent_every(draw.latent.size) == 0:
        return draw
    return replace(draw, latent=None)


def run_chain(
    seed: np.random.SeedSequence, problem: Problem | Sampler[Any], schedule: Schedule, board: Board, chain: int
) -> dict[str, Array]:
    """All kept draws of one chain, by name.

    One BLAS thread: more are slower for these thin products, and would make the last bits depend on the
    number of cores.
    """
    store, tick = MemoryStore(schedule.draws), board.ticker(chain)
    with threadpool_limits(limits=1):
        for count, draw in enumerate(stream(np.random.default_rng(seed), problem, schedule), start=1):
            if draw is not None:
                store.append(draw)
            tick(count)
    return store.collect()


def run(
    problem: Problem | Sampler[Any],
    schedule: Schedule,
    *,
    chains: int,
    seed: int | np.random.SeedSequence | None = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> dict[str, Array]:
    """Independent chains, in parallel by joblib; every array is (chain, draw, ...).

    A problem is run by the blanket's own sampler; any other sampler is run as it is.
    The numbers depend on ``seed`` alone, not on ``n_jobs`` or the backend.
    """
    require_count("chains", chains, 1)
    sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    with threadpool_limits(limits=1), Board.open(chains, schedule.warmup, schedule.sweeps, progress) as board:
        records = joblib.Parallel(n_jobs=n_jobs)(
            joblib.delayed(run_chain)(child, problem, schedule, board, chain)
            for chain, child in enumerate(sequence.spawn(chains))
        )
    return {name: np.stack([record[name] for record in records]) for name in records[0]}
