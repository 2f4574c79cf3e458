"""Runs of several chains in parallel: how long they run, their warm-up and sampling, snapshots and progress."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import joblib
import numpy as np

from markovblanket._determinism import one_thread
from markovblanket.chains.processes import (
    between_sweeps,
    delayed,
    persistently,
    require_addresses,
    shipped,
)
from markovblanket.chains.progress import Board
from markovblanket.chains.snapshots import Record, Saver, inside, part, saving
from markovblanket.chains.stores import Chain, Keep, KeepDraws
from markovblanket.chains.streaming import Moments
from markovblanket.contracts import Array, Draw, Indices, Problem, Sampler, Store
from markovblanket.model.sweep import Blanket

# A chain keeps latent columns of so many draws that these have about so many numbers (up to twice as many), but of
# at least so many draws.
LATENT_NUMBERS, LEAST_LATENT_DRAWS = 2**22, 5
# Larger counts are mistakes, and would need arrays larger than any memory.
LARGEST_COUNT = 2**31 - 1
# Names of the phases of a chain in its snapshots.
SCOUTING, WARMUP, SAMPLING = "scouting", "warmup", "sampling"
# The spawn key of the seeds of scouting chains; those of the chains themselves are 0, 1, 2, ...
SCOUTING_BRANCH = 2**31


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long a chain runs: ``warmup`` sweeps discarded, then ``draws`` kept, one in every ``thin`` sweeps."""

    warmup: int = 1000
    draws: int = 1000
    thin: int = 1

    def __post_init__(self) -> None:
        """Refuse counts that are too small, too large or no whole numbers."""
        for name, least in (("warmup", 0), ("draws", 1), ("thin", 1)):
            require_count(name, getattr(self, name), least)

    @property
    def sweeps(self) -> int:
        """The number of sweeps of a chain, warm-up included."""
        return int(self.warmup + self.draws * self.thin)

    @property
    def doubled(self) -> Schedule:
        """A schedule with twice as many draws."""
        return replace(self, draws=2 * self.draws)

    def latent_every(self, cells: int) -> int:
        """Return k such that every k-th draw keeps its latent columns, which have ``cells`` numbers.

        It is 1 if they are small. It is a power of two, so that the draws that keep them in a longer run, which
        keeps fewer, have kept them already.
        """
        most = max(LEAST_LATENT_DRAWS, LATENT_NUMBERS // cells)
        return 2 ** int(math.log2(max(1.0, self.draws / most)))


@dataclass(frozen=True)
class Scouting:
    """A first stage that decides which sampler the chains run: ``sweeps`` sweeps of another one in each chain.

    ``choose`` takes the moments of the second half of these sweeps, pooled over all chains, and returns the
    positions of the chosen variables; ``widen`` returns the sampler that has them in its block.
    """

    sampler: Sampler[Any]
    sweeps: int
    choose: Callable[[Moments], Indices]
    widen: Callable[[Indices], Sampler[Any]]


def require_count(name: str, value: object, least: int) -> None:
    """Refuse a value that is not a whole number between ``least`` and :data:`LARGEST_COUNT`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name}={value!r}: must be a whole number, at least {least}")
    if value > LARGEST_COUNT:
        raise ValueError(f"{name}={value!r}: must be a whole number, at most {LARGEST_COUNT}")


def require_jobs(n_jobs: object) -> None:
    """Refuse an ``n_jobs`` that joblib would not take; negative numbers count down from the number of cores."""
    whole = isinstance(n_jobs, int | np.integer) and not isinstance(n_jobs, bool)
    if n_jobs is not None and (not whole or n_jobs == 0):
        raise ValueError(f"n_jobs={n_jobs!r}: must be a whole number other than 0, or None")


# One chain --------------------------------------------------------------------------------------------


def _warm_up(chain: Chain, sampler: Sampler[Any], warmup: int) -> Iterator[Chain]:
    """Yield the chain after each remaining sweep of its warm-up."""
    while chain.count < warmup:
        state, _ = sampler.sweep(chain.rng, chain.state)
        chain = replace(chain, state=state, count=chain.count + 1)
        yield chain


def _sample(chain: Chain, sampler: Sampler[Any], schedule: Schedule) -> Iterator[tuple[Chain, Draw | None]]:
    """Yield the chain after each remaining sweep, with a draw if one is kept, otherwise with None."""
    while chain.count < schedule.sweeps:
        state, info = sampler.sweep(chain.rng, chain.state)
        chain = replace(chain, state=state, count=chain.count + 1)
        number, rest = divmod(chain.count - schedule.warmup, schedule.thin)
        yield chain, None if rest else _thinned(sampler.derive(chain.rng, state, info), number, schedule)


def _thinned(draw: Draw, number: int, schedule: Schedule) -> Draw:
    """Return the draw, without its latent columns unless it keeps them; draws are counted from 1."""
    if draw.latent is None or number % schedule.latent_every(draw.latent.size) == 0:
        return draw
    return replace(draw, latent=None)


def still_kept(record: Record, schedule: Schedule) -> Record:
    """Return the record of a store without the latent columns that a longer schedule does not keep."""

    def kept(name: str) -> bool:
        where, _, number = name.rpartition(".")
        return not where.endswith("latent") or int(number) % schedule.latent_every(record[name].size) == 0

    return {name: array for name, array in record.items() if kept(name)}


# Warm-up and sampling use one BLAS thread: more are slower for these thin products, and would make the last bits
# depend on the number of cores.


def _warm_chain(
    seed: np.random.SeedSequence,
    sampler: Sampler[Any],
    sweeps: int,
    board: Board,
    number: int,
    watch: bool,
    saver: Saver | None = None,
    phase: str = WARMUP,
) -> Chain:
    """Return a chain after its warm-up, or its scouting; with ``watch``, it has the moments of the second half."""
    tick, save = board.ticker(number, 0 if phase == SCOUTING else board.scouting), saving(saver, number, phase)
    with one_thread, between_sweeps() as act_on_signals:
        chain = _started(seed, sampler, sweeps, watch)
        if (last := save.last()) is not None:
            with save.reading():
                chain = Chain.unpack(last).like(chain)
        for chain in _warm_up(chain, sampler, sweeps):  # noqa: B020
            if chain.moments is not None and 2 * chain.count > sweeps:
                chain.moments.add(sampler.partial_correlations(chain.state))
            tick(chain.count)
            save(chain.pack)
            with save.at_the_latest(chain.pack):
                act_on_signals()
        save(chain.pack, now=True)
    return chain


def _started(seed: np.random.SeedSequence, sampler: Sampler[Any], sweeps: int, watch: bool) -> Chain:
    """Return a chain at its over-dispersed initial state, which enters its moments if there is no warm-up."""
    rng = np.random.default_rng(seed)
    state = sampler.start(rng)
    moments = Moments.empty(sampler.partial_correlations(state).shape) if watch else None
    if moments is not None and not sweeps:
        moments.add(sampler.partial_correlations(state))
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
    """Sample one chain, and return the arrays that its store has collected, by name."""
    tick, save = board.ticker(number, board.scouting), saving(saver, number, SAMPLING)
    watch = board.watcher(number)

    def record() -> Record:
        return chain.pack() | inside("store", store.pack())

    with one_thread, between_sweeps() as act_on_signals:
        if (last := save.last()) is not None:
            with save.reading():
                chain = Chain.unpack(last).like(chain)
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


# Several chains ---------------------------------------------------------------------------------------


def run(
    problem: Problem | Sampler[Any] | Scouting,
    schedule: Schedule,
    *,
    chains: int,
    seed: int | np.random.SeedSequence | None = None,
    n_jobs: int | None = None,
    progress: bool = False,
    keep: Keep | None = None,
    saver: Saver | None = None,
) -> dict[str, Array]:
    """Run independent chains in parallel by joblib, and return arrays of draws, (chain, draw, ...), by name.

    A problem is given to the sampler :class:`Blanket`; any other sampler is used as it is. With a
    :class:`Scouting`, all chains scout first, and ``candidates`` in the result has the positions chosen then. All
    chains warm up before the first one samples, so that ``keep`` (by default every draw, in memory) can decide
    from all of them what to keep. The numbers depend on ``seed`` alone, not on ``n_jobs``, the backend, what is
    kept, or a ``saver``. A saver takes snapshots of the chains; if it has some already, the chains continue from
    these. If a process is lost, the run is repeated, or continues from the snapshots.
    """
    require_count("chains", chains, 1)
    require_jobs(n_jobs)
    require_addresses()
    sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    sampler = Blanket(problem) if isinstance(problem, Problem) else problem
    keep = KeepDraws(schedule.draws) if keep is None else keep
    seeds = Seeds(sequence.spawn(chains), np.random.SeedSequence(sequence.entropy, spawn_key=(SCOUTING_BRANCH,)))
    return persistently(lambda: _side_by_side(seeds, sampler, schedule, keep, saver, n_jobs, progress))


@dataclass(frozen=True)
class Seeds:
    """The seeds of the chains, and the sequence from which those of their scouting come."""

    chains: Sequence[np.random.SeedSequence]
    scouts: np.random.SeedSequence

    def scouting(self) -> list[np.random.SeedSequence]:
        """Return the seeds of scouting, the same at every call."""
        children = range(len(self.chains))
        return [
            np.random.SeedSequence(self.scouts.entropy, spawn_key=(*self.scouts.spawn_key, k)) for k in children
        ]


def _side_by_side(
    seeds: Seeds,
    sampler: Sampler[Any] | Scouting,
    schedule: Schedule,
    keep: Keep,
    saver: Saver | None,
    n_jobs: int | None,
    progress: bool,
) -> dict[str, Array]:
    """Run a chain for each seed: all of them scout, if that is asked for, then all warm up, then all sample."""
    scouting = sampler.sweeps if isinstance(sampler, Scouting) else 0
    bars = Board.open(
        len(seeds.chains), schedule.warmup, schedule.sweeps, schedule.draws, progress, scouting=scouting
    )
    found: dict[str, Any] = {}
    with one_thread, bars as board, joblib.Parallel(n_jobs=n_jobs) as parallel:
        if isinstance(sampler, Scouting):
            chosen = _scouted(parallel, seeds.scouting(), sampler, board, saver)
            found, sampler = {"candidates": chosen}, sampler.widen(chosen)
        return found | _sampled(parallel, seeds.chains, sampler, schedule, keep, board, saver)


def _scouted(
    parallel: Any, seeds: Sequence[np.random.SeedSequence], scouting: Scouting, board: Board, saver: Saver | None
) -> Indices:
    """Return the positions that the scouting of all chains has chosen."""
    with shipped(scouting.sampler):
        chains = parallel(
            delayed(_warm_chain)(seed, scouting.sampler, scouting.sweeps, board, chain, True, saver, SCOUTING)
            for chain, seed in enumerate(seeds)
        )
    return scouting.choose(Moments.pooled([chain.moments for chain in chains]))


def _sampled(
    parallel: Any,
    seeds: Sequence[np.random.SeedSequence],
    sampler: Sampler[Any],
    schedule: Schedule,
    keep: Keep,
    board: Board,
    saver: Saver | None,
) -> dict[str, Array]:
    """Return what is kept of all chains; all of them warm up before the first one samples."""
    with shipped(sampler):
        warm = parallel(
            delayed(_warm_chain)(seed, sampler, schedule.warmup, board, chain, keep.watches, saver)
            for chain, seed in enumerate(seeds)
        )
        stores = keep.stores(warm)
        warm = [replace(one, moments=None) for one in warm]
        records = parallel(  # pop: the memory of a chain is freed when it is done
            delayed(_sample_chain)(warm.pop(0), sampler, schedule, stores.pop(0), board, chain, saver)
            for chain in range(len(seeds))
        )
    return keep.gather(records)
