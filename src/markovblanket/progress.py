"""A progress bar per chain, wherever the chains run.

Chains may run in other processes, so each writes its count of sweeps into a small memory-mapped file, and a
thread of the parent reads the file and redraws the bars. A chain on another machine finds no file and is silent.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from rich.progress import Progress

INTERVAL = 0.2


@dataclass(frozen=True, slots=True)
class Board:
    """Counts of sweeps, one per chain; ``path`` is None for a silent run."""

    chains: int
    path: str | None = None

    @classmethod
    @contextmanager
    def open(cls, chains: int, warmup: int, sweeps: int, visible: bool) -> Iterator[Board]:
        """A board for a run, with its bars if ``visible`` and somebody is watching."""
        bars = _bars() if visible else None
        if bars is None:
            yield cls(chains)
            return
        with tempfile.TemporaryDirectory(prefix="markovblanket-") as folder:
            path = Path(folder) / "sweeps"
            path.write_bytes(bytes(8 * chains))
            board = cls(chains, str(path))
            with bars, _watch(bars, board, warmup, sweeps):
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


def _bars() -> Progress | None:
    """Rich's bars on standard error; None when it is neither a terminal nor a notebook."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        return None
    return Progress(
        TextColumn("chain {task.description}"),
        BarColumn(),
        TextColumn("{task.fields[phase]:<8} {task.percentage:>3.0f}%  {task.fields[rate]:>7} sweeps/s"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
    )


@contextmanager
def _watch(bars: Progress, board: Board, warmup: int, sweeps: int) -> Iterator[None]:
    """Redraw the bars from a thread until the block ends."""
    tasks = [bars.add_task(f"{i + 1}", total=sweeps, phase="warm-up", rate="") for i in range(board.chains)]
    done = threading.Event()

    def redraw() -> None:
        for task, count in zip(tasks, board.counts(), strict=True):
            speed = bars.tasks[task].speed
            phase = "warm-up" if count < warmup else "sampling"
            bars.update(task, completed=int(count), phase=phase, rate=f"{speed:.0f}" if speed else "")

    def loop() -> None:
        while not done.wait(INTERVAL):
            redraw()

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        redraw()
