"""Running: a chain warms up, then is a stream of draws; many chains, each with a generator of its own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from markovblanket.contracts import Array, Draw, Problem, Sampler, Store
from markovblanket.gibbs import Blanket
from markovblanket.interruption import between_sweeps
from markovblanket.progress import Board
from markovblanket.store import Keep, KeepDraws, Warm
from markovblanket.streams import Moments

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


def warm_up(rng: np.random.Generator, sampler: Sampler[Any], schedule: Schedule) -> Iterator[Any]:
    """The states of the warm-up, an over-dispersed start first."""
    state = sampler.start(rng)
    yield state
    for _ in range(schedule.warmup):
        state, _ = sampler.sweep(rng, state)
        yield state


def sample(
    rng: np.random.Generator, state: Any, sampler: Sampler[Any], schedule: Schedule
) -> Iterator[Draw | None]:
    """Sweep after sweep from where the warm-up ended: a draw where one is kept, otherwise None."""
    for count in range(1, schedule.draws * schedule.thin + 1):
        state, info = sampler.sweep(rng, state)
        kept = count % schedule.thin == 0
        yield thinned(sampler.derive(rng, state, info), count // schedule.thin, schedule) if kept else None


def thinned(draw: Draw, number: int, schedule: Schedule) -> Draw:
    """The draw, with its latent columns if it is one of those that keep them; draws are counted from 1."""
    if draw.latent is None or number % schedule.latent_every(draw.latent.size) == 0:
        return draw
    return replace(draw, latent=None)


# One BLAS thread in both rounds: more are slower for these thin products, and would make the last bits depend on
# the number of cores.


def warm_chain(
    seed: np.random.SeedSequence, sampler: Sampler[Any], schedule: Schedule, board: Board, chain: int, watch: bool
) -> Warm:
    """A chain after its warm-up; if ``watch``, with moments of the states of its later half, or of the start."""
    rng, tick = np.random.default_rng(seed), board.ticker(chain)
    moments = None
    with threadpool_limits(limits=1), between_sweeps() as act_on_signals:
        for count, state in enumerate(warm_up(rng, sampler, schedule)):
            if watch and (2 * count > schedule.warmup or not schedule.warmup):
                W12 = sampler.cross(state)
                moments = moments or Moments.empty(W12.shape)
                moments.add(W12)
            tick(count)
            act_on_signals()
    return Warm(rng, state, moments)


def sample_chain(
    warm: Warm, sampler: Sampler[Any], schedule: Schedule, store: Store, board: Board, chain: int
) -> dict[str, Array]:
    """What the store collected of the draws of one chain, by name."""
    tick, watch = board.ticker(chain), board.watcher(chain)
    with threadpool_limits(limits=1), between_sweeps() as act_on_signals:
        for count, draw in enumerate(sample(warm.rng, warm.state, sampler, schedule), start=schedule.warmup + 1):
            if draw is not None:
                store.append(draw)
                watch(draw)
            tick(count)
            act_on_signals()
    return store.collect()


def run(
    problem: Problem | Sampler[Any],
    schedule: Schedule,
    *,
    chains: int,
    seed: int | np.random.SeedSequence | None = None,
    n_jobs: int | None = None,
    progress: bool = False,
    keep: Keep | None = None,
) -> dict[str, Array]:
    """Independent chains, in parallel by joblib; arrays of draws are (chain, draw, ...).

    A problem is run by the blanket's own sampler; any other sampler is run as it is. All chains warm up before the
    first one samples, so that ``keep`` (by default every draw, in memory) can learn from all of them what is worth
    keeping. The numbers depend on ``seed`` alone, not on ``n_jobs``, the backend or what is kept.
    """
    require_count("chains", chains, 1)
    sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    sampler: Sampler[Any] = Blanket(problem) if isinstance(problem, Problem) else problem
    keep = KeepDraws(schedule.draws) if keep is None else keep
    bars = Board.open(chains, schedule.warmup, schedule.sweeps, schedule.draws, progress)
    with threadpool_limits(limits=1), bars as board, joblib.Parallel(n_jobs=n_jobs) as parallel:
        warm = parallel(
            joblib.delayed(warm_chain)(child, sampler, schedule, board, chain, keep.watches)
            for chain, child in enumerate(sequence.spawn(chains))
        )
        stores = keep.stores(warm)
        warm = [replace(one, moments=None) for one in warm]
        records = parallel(  # what a chain has used is let go with it
            joblib.delayed(sample_chain)(warm.pop(0), sampler, schedule, stores.pop(0), board, chain)
            for chain in range(chains)
        )
    return keep.gather(records)
