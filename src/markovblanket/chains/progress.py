"""A progress bar per chain, wherever the chains run.

Chains may run in other processes, so each writes its count of sweeps into a small memory-mapped file, and a
thread of the parent reads the file and redraws the bars. A chain on another machine finds no file and is silent.

While they sample, chains also note mean and variance of a few quantities over every 32nd part of their draws. From
these the parent has the plain R-hat of half chains (Gelman et al. 2013, section 11.4), as far as they have come: a
first sign of how well they agree. The verdict is that of all draws, in the end.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from markovblanket.chains._bars import Bars, Chain, bars
from markovblanket.contracts import Array, Draw

INTERVAL = 0.2
SLICES = 32
# Seconds without a sweep before the bars tell what may be the reason.
PATIENCE = 3.0


@dataclass(frozen=True, slots=True)
class Board:
    """Counts of sweeps, one per chain, and moments of its draws; ``path`` is None for a silent run."""

    chains: int
    path: str | None = None
    draws: int = SLICES

    @classmethod
    @contextmanager
    def open(cls, chains: int, warmup: int, sweeps: int, draws: int, visible: bool) -> Iterator[Board]:
        """A board for a run, with its bars if ``visible`` and somebody is watching."""
        shown = bars() if visible else None
        if shown is None:
            yield cls(chains)
            return
        with tempfile.TemporaryDirectory(prefix="markovblanket-") as folder:
            path = Path(folder) / "sweeps"
            path.write_bytes(bytes(8 * chains))
            board = cls(chains, str(path), draws)
            with closing(shown), _watch(shown, board, warmup, sweeps):
                yield board

    def counts(self) -> npt.NDArray[np.int64]:
        """Sweeps done by each chain so far."""
        if self.path is None:
            return np.zeros(self.chains, dtype=np.int64)
        return np.fromfile(self.path, dtype=np.int64)

    def ticker(self, chain: int) -> Callable[[int], None]:
        """The function by which a chain tells how many sweeps it has done."""
        if self.path is None or not Path(self.path).exists():
            return lambda count: None
        counts = np.memmap(self.path, dtype=np.int64, mode="r+", shape=(self.chains,))
        return lambda count: counts.__setitem__(chain, count)

    def watcher(self, chain: int) -> Callable[[Draw], None]:
        """The function by which a chain shows the draws that it keeps."""
        if self.path is None or not Path(self.path).exists():
            return lambda draw: None
        return Slices(Path(f"{self.path}.{chain}"), self.slice).add

    @property
    def slice(self) -> int:
        """Draws in a slice."""
        return max(1, self.draws // SLICES)

    def worst_rhat(self) -> float:
        """The largest R-hat of what is watched, as far as the chains have come; NaN before that can be told."""
        files = (Path(f"{self.path}.{chain}") for chain in range(self.chains))
        return _worst_rhat([_moments_in(file) for file in files if file.exists()], self.slice)


@contextmanager
def counted(total: int, visible: bool, label: str, unit: str) -> Iterator[Callable[[int], None]]:
    """The function by which one who hands out work tells how much of it is done; with a bar if ``visible``."""
    shown = bars(label, unit) if visible else None
    if shown is None:
        yield lambda count: None
        return
    work = Chain(total, 0)

    def reach(count: int) -> None:
        work.reach(count)
        shown.show([work], "")

    with closing(shown):
        reach(0)
        yield reach


# How well the chains agree so far -----------------------------------------------------------------------


def _watched(draw: Draw) -> Array:
    """A few quantities that every run reports: the diagonal of W11, explained variances, hyperparameters."""
    return np.concatenate([np.diagonal(draw.W11), draw.explained, *(np.ravel(h) for h in draw.hyper.values())])


@dataclass
class Slices:
    """Moments of what is watched over every ``size`` draws of a chain, written to a file of its own."""

    path: Path
    size: int
    held: list[Array] = field(default_factory=list, init=False)

    def add(self, draw: Draw) -> None:
        """Take the next draw; write the slice that it completes."""
        self.held.append(_watched(draw))
        if len(self.held) < self.size:
            return
        mean, variance = np.mean(self.held, axis=0), np.var(self.held, axis=0)
        self.held.clear()
        with self.path.open("ab") as file:
            file.write(np.array([len(mean), *mean, *variance]).tobytes())


def _moments_in(file: Path) -> Array:
    """Means and variances of slices: (slice, 2, quantity)."""
    numbers = np.frombuffer(file.read_bytes()[: file.stat().st_size // 8 * 8])
    if not numbers.size:
        return np.empty((0, 2, 0))
    count = int(numbers[0])
    whole = numbers.size // (1 + 2 * count)  # the last one may be half written
    return numbers[: whole * (1 + 2 * count)].reshape(whole, -1)[:, 1:].reshape(whole, 2, count)


def _worst_rhat(chains: Sequence[Array], size: int) -> float:
    """The largest split R-hat of chains given by the moments of their slices of ``size`` draws; NaN of none.

    >>> still = np.ones((8, 2, 1))
    >>> _worst_rhat([still, still], 10), round(worst_rhat([still, still + [[3.0], [0.0]]], 10), 2)
    (1.0, 1.97)
    """
    halves = [half for moments in chains for half in _halved(moments)]
    if not halves:
        return float("nan")
    n = size * np.mean([len(half) for half in halves])  # chains that wait for their turn have come less far
    means = np.array([half[:, 0].mean(axis=0) for half in halves])
    within = np.mean([half[:, 1].mean(axis=0) + half[:, 0].var(axis=0) for half in halves], axis=0)
    moving = within > 0  # fixed hyperparameters tell nothing
    squares = (n - 1) / n * (1 + means.var(axis=0, ddof=1)[moving] / within[moving])
    return float(np.sqrt(squares.max(initial=1.0)))


def _halved(moments: Array) -> Iterable[Array]:
    """The first and the second half of a chain; nothing if it has fewer than two slices."""
    half = len(moments) // 2
    return (moments[:half], moments[-half:]) if half else ()


# What is drawn ------------------------------------------------------------------------------------------


@contextmanager
def _watch(shown: Bars, board: Board, warmup: int, sweeps: int) -> Iterator[None]:
    """Redraw from a thread until the block ends; a chain that is not done by then has been stopped."""
    chains, begun = [Chain(sweeps, warmup) for _ in range(board.chains)], time.monotonic()
    done = threading.Event()

    def redraw() -> None:
        for chain, count in zip(chains, board.counts(), strict=True):
            chain.reach(int(count))
            chain.stopped = done.is_set()
        shown.show(chains, _line(chains, time.monotonic() - begun, board.worst_rhat()))

    def loop() -> None:
        while not done.wait(INTERVAL):
            redraw()

    thread = threading.Thread(target=loop, daemon=True)
    redraw()
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        redraw()


def _line(chains: Sequence[Chain], waited: float, rhat: float) -> str:
    """About all chains: why there is no sweep yet, or how well they agree."""
    if waited > PATIENCE and not any(chain.speed for chain in chains):
        return "no sweep yet: the first run after an installation compiles for a minute or two"
    return "" if np.isnan(rhat) else f"worst R-hat so far {rhat:.3f}"
