"""Running: a chain warms up, then is a stream of draws; many chains, each with a generator of its own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import joblib
import numpy as np

from markovblanket._determinism import one_thread
from markovblanket.chains.processes import between_sweeps, persistently, shipped
from markovblanket.chains.progress import Board
from markovblanket.chains.snapshots import Record, Saver, inside, part, saving
from markovblanket.chains.stores import Chain, Keep, KeepDraws
from markovblanket.chains.streaming import Moments
from markovblanket.contracts import Array, Draw, Problem, Sampler, Store
from markovblanket.model.sweep import Blanket

# How many numbers of latent columns a chain keeps, or up to twice as many, but not of fewer draws than so many.
LATENT_NUMBERS, LATENT_LEAST = 2**22, 5
# No run is longer: what is larger is a slip of the pen, and would end in arrays that nobody can have.
MOST = 2**31 - 1
WARMUP, SAMPLING = "warmup", "sampling"


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

    @property
    def doubled(self) -> Schedule:
        """With twice as many draws."""
        return replace(self, draws=2 * self.draws)

    def latent_every(self, cells: int) -> int:
        """Of so many draws one also keeps its latent columns: all if they are small, a handful if they are not.

        A power of two, so that of a longer run these are among the same ones.
        """
        room = max(LATENT_LEAST, LATENT_NUMBERS // cells)
        return 2 ** int(math.log2(max(1.0, self.draws / room)))


def require_count(name: str, value: object, least: int) -> None:
    """Refuse what is not a whole number of at least ``least``, and of this world."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name}={value!r}: must be a whole number, at least {least}")
    if value > MOST:
        raise ValueError(f"{name}={value!r}: must be a whole number, at most {MOST}")


def require_jobs(n_jobs: object) -> None:
    """Refuse what is no number of processes; as in joblib, negative ones count from all cores downwards."""
    whole = isinstance(n_jobs, int | np.integer) and not isinstance(n_jobs, bool)
    if n_jobs is not None and (not whole or n_jobs == 0):
        raise ValueError(f"n_jobs={n_jobs!r}: must be a whole number other than 0, or None")


def _warm_up(chain: Chain, sampler: Sampler[Any], warmup: int) -> Iterator[Chain]:
    """The chain after each sweep of the warm-up that it still has before it."""
    while chain.count < warmup:
        state, _ = sampler.sweep(chain.rng, chain.state)
        chain = replace(chain, state=state, count=chain.count + 1)
        yield chain


def _sample(chain: Chain, sampler: Sampler[Any], schedule: Schedule) -> Iterator[tuple[Chain, Draw | None]]:
    """The chain after each sweep that is left: with a draw where one is kept, otherwise None."""
    while chain.count < schedule.sweeps:
        state, info = sampler.sweep(chain.rng, chain.state)
        chain = replace(chain, state=state, count=chain.count + 1)
        number, rest = divmod(chain.count - schedule.warmup, schedule.thin)
        yield chain, None if rest else _thinned(sampler.derive(chain.rng, state, info), number, schedule)


def _thinned(draw: Draw, number: int, schedule: Schedule) -> Draw:
    """The draw, with its latent columns if it is one of those that keep them; draws are counted from 1."""
    if draw.latent is None or number % schedule.latent_every(draw.latent.size) == 0:
        return draw
    return replace(draw, latent=None)


def still_kept(record: Record, schedule: Schedule) -> Record:
    """What a store had packed, without the latent columns that a longer run does not keep."""

    def kept(name: str) -> bool:
        where, _, number = name.rpartition(".")
        return not where.endswith("latent") or int(number) % schedule.latent_every(record[name].size) == 0

    return {name: array for name, array in record.items() if kept(name)}


# One BLAS thread in both rounds: more are slower for these thin products, and would make the last bits depend on
# the number of cores.


def _warm_chain(
    seed: np.random.SeedSequence,
    sampler: Sampler[Any],
    schedule: Schedule,
    board: Board,
    number: int,
    watch: bool,
    saver: Saver | None = None,
) -> Chain:
    """A chain after its warm-up; if ``watch``, with moments of the states of its later half, or of the start."""
    tick, save = board.ticker(number), saving(saver, number, WARMUP)
    with one_thread, between_sweeps() as act_on_signals:
        last = save.last()
        chain = _begun(seed, sampler, schedule, watch) if last is None else Chain.unpack(last)
        for chain in _warm_up(chain, sampler, schedule.warmup):  # noqa: B020
            if chain.moments is not None and 2 * chain.count > schedule.warmup:
                chain.moments.add(sampler.cross(chain.state))
            tick(chain.count)
            save(chain.pack)
            with save.at_the_latest(chain.pack):
                act_on_signals()
        save(chain.pack, now=True)
    return chain


def _begun(seed: np.random.SeedSequence, sampler: Sampler[Any], schedule: Schedule, watch: bool) -> Chain:
    """A chain at its over-dispersed start; if ``watch``, with moments, which see it if there is nothing later."""
    rng = np.random.default_rng(seed)
    state = sampler.start(rng)
    moments = Moments.empty(sampler.cross(state).shape) if watch else None
    if moments is not None and not schedule.warmup:
        moments.add(sampler.cross(state))
    return Chain(rng, state, moments)


def _sample_chain(
    chain: Chain,
    sampler: Sampler[Any],
    schedule: Schedule,
    store: Store,
    board: Board,
    number: int,
    saver: Saver | None = None,
) -> dict[str, Array]:
    """What the store collected of the draws of one chain, by name."""
    tick, watch, save = board.ticker(number), board.watcher(number), saving(saver, number, SAMPLING)

    def record() -> Record:
        return chain.pack() | inside("store", store.pack())

    with one_thread, between_sweeps() as act_on_signals:
        if (last := save.last()) is not None:
            chain = Chain.unpack(last)
            store.unpack(still_kept(part("store", last), schedule))
        for chain, draw in _sample(chain, sampler, schedule):  # noqa: B020
            if draw is not None:
                store.append(draw)
                watch(draw)
            tick(chain.count)
            save(record)
            with save.at_the_latest(record):
                act_on_signals()
        save(record, now=True)
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
    saver: Saver | None = None,
) -> dict[str, Array]:
    """Independent chains, in parallel by joblib; arrays of draws are (chain, draw, ...).

    A problem is run by the blanket's own sampler; any other sampler is run as it is. All chains warm up before the
    first one samples, so that ``keep`` (by default every draw, in memory) can learn from all of them what is worth
    keeping. The numbers depend on ``seed`` alone, not on ``n_jobs``, the backend or what is kept, nor on a
    ``saver``, which takes snapshots of the chains, and from which they go on if it has some. If a process is lost,
    all is done again, or goes on from the snapshots.
    """
    require_count("chains", chains, 1)
    require_jobs(n_jobs)
    sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    sampler: Sampler[Any] = Blanket(problem) if isinstance(problem, Problem) else problem
    keep = KeepDraws(schedule.draws) if keep is None else keep
    children = sequence.spawn(chains)
    return persistently(lambda: _side_by_side(children, sampler, schedule, keep, saver, n_jobs, progress))


def _side_by_side(
    seeds: Sequence[np.random.SeedSequence],
    sampler: Sampler[Any],
    schedule: Schedule,
    keep: Keep,
    saver: Saver | None,
    n_jobs: int | None,
    progress: bool,
) -> dict[str, Array]:
    """A chain for each seed, all warmed up before the first one samples."""
    bars = Board.open(len(seeds), schedule.warmup, schedule.sweeps, schedule.draws, progress)
    with one_thread, bars as board, shipped(sampler), joblib.Parallel(n_jobs=n_jobs) as parallel:
        warm = parallel(
            joblib.delayed(_warm_chain)(seed, sampler, schedule, board, chain, keep.watches, saver)
            for chain, seed in enumerate(seeds)
        )
        stores = keep.stores(warm)
        warm = [replace(one, moments=None) for one in warm]
        records = parallel(  # what a chain has used is let go with it
            joblib.delayed(_sample_chain)(warm.pop(0), sampler, schedule, stores.pop(0), board, chain, saver)
            for chain in range(len(seeds))
        )
    return keep.gather(records)
