"""Progress of running chains, shown as bars in a terminal or a notebook.

Chains may run in other processes, so each writes its count of sweeps into a small memory-mapped file, and a
thread of the parent reads the file and redraws the bars. A chain on another machine finds no file and has no bar.

While they sample, chains also write mean and variance of a few quantities over each 32nd part of their draws. From
these the parent computes the plain R-hat of half chains (Gelman et al. 2013, section 11.4) of the draws so far: an
early sign of how well the chains agree. Convergence is judged from all draws, when the run is complete. (Bars in
notebooks are drawn by hand: one area for all chains needs no widgets.)
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from markovblanket.contracts import Array, Draw

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress

# Seconds between two drawings of the bars.
REDRAW_SECONDS = 0.2
# The draws of a chain are divided into so many slices for R-hat while it runs.
SLICES_PER_CHAIN = 32
# Seconds without a sweep after which the bars say why that may be.
PATIENCE_SECONDS = 3.0

Clock = Callable[[], float]


# Files by which chains report -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Board:
    """Files in which chains report sweeps done and moments of draws; ``path`` is None for a run without bars."""

    chains: int
    path: str | None = None
    draws: int = SLICES_PER_CHAIN
    scouting: int = 0

    @classmethod
    @contextmanager
    def open(
        cls, chains: int, warmup: int, sweeps: int, draws: int, visible: bool, *, scouting: int = 0
    ) -> Iterator[Board]:
        """Give a board for a run; its bars are shown if ``visible`` and there is a terminal or a notebook.

        ``scouting`` sweeps come first; they are counted neither in ``warmup`` nor in ``sweeps``.
        """
        shown = bars() if visible else None
        if shown is None:
            yield cls(chains, scouting=scouting)
            return
        with tempfile.TemporaryDirectory(prefix="markovblanket-") as folder:
            path = Path(folder) / "sweeps"
            path.write_bytes(bytes(8 * chains))
            board = cls(chains, str(path), draws, scouting)
            with closing(shown), _watch(shown, board, warmup, sweeps):
                yield board

    def counts(self) -> npt.NDArray[np.int64]:
        """Return the number of sweeps that each chain has done."""
        if self.path is None:
            return np.zeros(self.chains, dtype=np.int64)
        return np.fromfile(self.path, dtype=np.int64)

    def ticker(self, chain: int, before: int = 0) -> Callable[[int], None]:
        """Return the function by which a chain reports its sweeps; ``before`` were done in an earlier stage."""
        if self.path is None or not Path(self.path).exists():
            return lambda count: None
        counts = np.memmap(self.path, dtype=np.int64, mode="r+", shape=(self.chains,))
        return lambda count: counts.__setitem__(chain, before + count)

    def watcher(self, chain: int) -> Callable[[Draw], None]:
        """Return the function by which a chain reports each draw that it keeps."""
        if self.path is None or not Path(self.path).exists():
            return lambda draw: None
        return Slices(Path(f"{self.path}.{chain}"), self.slice).add

    @property
    def slice(self) -> int:
        """Number of draws in a slice."""
        return max(1, self.draws // SLICES_PER_CHAIN)

    def worst_rhat(self) -> float:
        """Return the largest R-hat of the watched quantities over the draws so far; NaN if there are too few."""
        files = (Path(f"{self.path}.{chain}") for chain in range(self.chains))
        return _worst_rhat([_moments_in(file) for file in files if file.exists()], self.slice)


@contextmanager
def counted(total: int, visible: bool, label: str, unit: str) -> Iterator[Callable[[int], None]]:
    """Give the function that reports how much of ``total`` is done; with a bar if ``visible``."""
    shown = bars(label, unit) if visible else None
    if shown is None:
        yield lambda count: None
        return
    work = ChainProgress(total, 0)

    def reach(count: int) -> None:
        work.reach(count)
        shown.show([work], "")

    with closing(shown):
        reach(0)
        yield reach


# How well the chains agree so far -----------------------------------------------------------------------


def _watched(draw: Draw) -> Array:
    """Return the quantities watched while chains run: diagonal of W11, explained variances, hyperparameters."""
    return np.concatenate([np.diagonal(draw.W11), draw.explained, *(np.ravel(h) for h in draw.hyper.values())])


@dataclass
class Slices:
    """Mean and variance of the watched quantities over every ``size`` draws of one chain, written to its file."""

    path: Path
    size: int
    held: list[Array] = field(default_factory=list, init=False)

    def add(self, draw: Draw) -> None:
        """Add the next draw; if it completes a slice, write the moments of this slice."""
        self.held.append(_watched(draw))
        if len(self.held) < self.size:
            return
        mean, variance = np.mean(self.held, axis=0), np.var(self.held, axis=0)
        self.held.clear()
        with self.path.open("ab") as file:
            file.write(np.array([len(mean), *mean, *variance]).tobytes())


def _moments_in(file: Path) -> Array:
    """Read the means and variances of the slices of one chain: (slice, 2, quantity)."""
    numbers = np.frombuffer(file.read_bytes()[: file.stat().st_size // 8 * 8])
    if not numbers.size:
        return np.empty((0, 2, 0))
    count = int(numbers[0])
    whole = numbers.size // (1 + 2 * count)  # the last slice may be incomplete
    return numbers[: whole * (1 + 2 * count)].reshape(whole, -1)[:, 1:].reshape(whole, 2, count)


def _worst_rhat(chains: Sequence[Array], size: int) -> float:
    """Return the largest split R-hat, from moments of slices of ``size`` draws; NaN if there are too few.

    >>> still = np.ones((8, 2, 1))
    >>> _worst_rhat([still, still], 10), round(_worst_rhat([still, still + [[3.0], [0.0]]], 10), 2)
    (1.0, 1.97)
    """
    halves = [half for moments in chains for half in _halved(moments)]
    if not halves:
        return float("nan")
    n = size * np.mean([len(half) for half in halves])  # chains may have different numbers of slices
    means = np.array([half[:, 0].mean(axis=0) for half in halves])
    within = np.mean([half[:, 1].mean(axis=0) + half[:, 0].var(axis=0) for half in halves], axis=0)
    moving = within > 0  # fixed hyperparameters have no R-hat
    squares = (n - 1) / n * (1 + means.var(axis=0, ddof=1)[moving] / within[moving])
    return float(np.sqrt(squares.max(initial=1.0)))


def _halved(moments: Array) -> Iterable[Array]:
    """Return the first and the second half of a chain; nothing if it has fewer than two slices."""
    half = len(moments) // 2
    return (moments[:half], moments[-half:]) if half else ()


# The display ------------------------------------------------------------------------------------------


@contextmanager
def _watch(shown: Bars, board: Board, warmup: int, sweeps: int) -> Iterator[None]:
    """Redraw the bars from a thread until the block ends; chains that are not done by then have been stopped."""
    chains = [ChainProgress(sweeps, warmup, board.scouting) for _ in range(board.chains)]
    begun = time.monotonic()
    done = threading.Event()

    def redraw() -> None:
        for chain, count in zip(chains, board.counts(), strict=True):
            chain.reach(int(count))
            chain.stopped = done.is_set()
        shown.show(chains, _line(chains, time.monotonic() - begun, board.worst_rhat()))

    def loop() -> None:
        while not done.wait(REDRAW_SECONDS):
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


def _line(chains: Sequence[ChainProgress], waited: float, rhat: float) -> str:
    """Return the line below the bars: why no chain has advanced yet, or how well the chains agree."""
    if waited > PATIENCE_SECONDS and not any(chain.speed for chain in chains):
        return "no iteration yet: the first run after installing compiles for a minute or two"
    return "" if np.isnan(rhat) else f"worst R-hat so far {rhat:.3f}"


@dataclass
class ChainProgress:
    """Sweeps that one chain has done, and the time that it took for them.

    ``kept`` sweeps, of which ``warmup`` are discarded, come after those of ``scouting``.

    A chain that waits for a free process takes no time.
    """

    kept: int
    warmup: int
    scouting: int = 0
    clock: Clock = time.monotonic
    count: int = 0
    busy: float = 0.0
    stopped: bool = False
    begin: int | None = field(default=None, init=False)
    seen: float = field(init=False)

    def __post_init__(self) -> None:
        """Start the clock of this chain."""
        self.seen = self.clock()

    def reach(self, count: int) -> None:
        """Note how many sweeps are done; time without a new one counts as waiting."""
        now = self.clock()
        self.begin = count if self.begin is None else self.begin
        self.busy += now - self.seen if count > self.count else 0.0
        self.count, self.seen = count, now

    @property
    def sweeps(self) -> int:
        """All sweeps of the chain, scouting and warm-up included."""
        return self.scouting + self.kept

    @property
    def phase(self) -> str:
        """One of "scouting", "warm-up", "sampling", "done" and "stopped"."""
        if self.count >= self.sweeps:
            return "done"
        if self.stopped:
            return "stopped"
        if self.count < self.scouting:
            return "scouting"
        return "warm-up" if self.count < self.scouting + self.warmup else "sampling"

    @property
    def speed(self) -> float:
        """Sweeps per second; 0 while that is unknown."""
        return (self.count - (self.begin or 0)) / self.busy if self.busy else 0.0

    @property
    def left(self) -> float | None:
        """Seconds that the chain still needs; None while that is unknown."""
        return (self.sweeps - self.count) / self.speed if self.speed else None


class Bars(Protocol):
    """A display of the progress of chains."""

    def show(self, chains: Sequence[ChainProgress], agreement: str) -> None:
        """Show the progress of each chain, and a line about all of them."""

    def close(self) -> None:
        """End the display; what was shown last stays."""


def bars(label: str = "chain {}", unit: str = "iterations") -> Bars | None:
    """Return a display in a notebook, or in a terminal at standard error; None if there is neither.

    ``label`` becomes the label of a bar by the number of its chain.
    """
    if in_notebook():
        return NotebookBars(label, unit)
    from rich.console import Console

    console = Console(stderr=True)
    return TerminalBars(console, label, unit) if console.is_terminal else None


# In a notebook ------------------------------------------------------------------------------------------


def in_notebook() -> bool:
    """Whether this is a notebook, such as one of Jupyter, Colab or Databricks."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    kind = type(shell)
    return (
        kind.__name__ == "ZMQInteractiveShell"
        or "google.colab" in kind.__module__
        or (shell is not None and "DATABRICKS_RUNTIME_VERSION" in os.environ)
    )


class NotebookBars:
    """Bars in one area of the output of a notebook's cell."""

    def __init__(self, label: str = "chain {}", unit: str = "iterations") -> None:
        self.handle: Any = None
        self.names = label, unit

    def show(self, chains: Sequence[ChainProgress], agreement: str) -> None:
        """Draw the area, or update it."""
        ipython: Any = import_module("IPython.display")  # a notebook has IPython
        shown = {
            "text/html": as_html(chains, agreement, *self.names),
            "text/plain": as_text(chains, agreement, *self.names),
        }
        if self.handle is None:
            self.handle = ipython.display(shown, raw=True, display_id=True)
        else:
            self.handle.update(shown, raw=True)

    def close(self) -> None:
        """Do nothing: the output of a cell stays as it is."""


def words(chain: ChainProgress, unit: str = "iterations") -> list[str]:
    """Describe one chain: phase, percentage, speed, and the time that it took or still needs."""
    speed = f"{rate(chain)} {unit}/s" if chain.speed else ""
    over = chain.phase in ("done", "stopped")
    time = f"in {clock_time(chain.busy)}" if over else f"{clock_time(chain.left)} left"
    return [chain.phase, f"{100 * chain.count / chain.sweeps:.0f} %", speed, time]


def rate(chain: ChainProgress) -> str:
    """Return sweeps per second as text, with a decimal if there are fewer than ten."""
    return f"{chain.speed:,.{0 if chain.speed >= 10 else 1}f}" if chain.speed else ""


def clock_time(seconds: float | None) -> str:
    """Return a duration as hours, minutes and seconds.

    >>> clock_time(75.2), clock_time(4000), clock_time(None)
    ('1:15', '1:06:40', '–:––')
    """
    if seconds is None:
        return "–:––"
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def as_text(
    chains: Sequence[ChainProgress], agreement: str, label: str = "chain {}", unit: str = "iterations"
) -> str:
    """Return the progress as plain text, a line per chain."""
    described = (", ".join(filter(None, words(chain, unit))) for chain in chains)
    lines = [f"{label.format(k)}: {text}" for k, text in enumerate(described, start=1)]
    return "\n".join([*lines, *filter(None, [agreement])])


def as_html(
    chains: Sequence[ChainProgress], agreement: str, label: str = "chain {}", unit: str = "iterations"
) -> str:
    """Return the progress as an HTML table, a row per chain."""
    cell = '<td style="text-align:left;padding:0 .8em 0 0;white-space:nowrap;">'
    rows = []
    for k, chain in enumerate(chains, start=1):
        bar = f'<progress value="{chain.count}" max="{chain.sweeps}" style="width:10em"></progress>'
        cells = (label.format(k), bar, *words(chain, unit))
        rows.append(f"<tr>{''.join(f'{cell}{text}</td>' for text in cells)}</tr>")
    style = "border-collapse:collapse;font-variant-numeric:tabular-nums;"
    return f'<table style="{style}"><tbody>{"".join(rows)}</tbody></table><div>{agreement}</div>'


# On a terminal ------------------------------------------------------------------------------------------


class TerminalBars:
    """Bars in a terminal, drawn by rich, with a line below about all chains."""

    def __init__(self, console: Any, label: str = "chain {}", unit: str = "iterations") -> None:
        self.agreement, self.label = "", label
        self.progress = terminal_progress(console, lambda: self.agreement, unit)

    def show(self, chains: Sequence[ChainProgress], agreement: str) -> None:
        """Update rich's bars, which rich redraws by itself."""
        self.agreement = agreement
        self.progress.start()  # does nothing after the first time
        for k, chain in enumerate(chains):
            if k == len(self.progress.tasks):
                self.progress.add_task(self.label.format(k + 1), total=chain.sweeps, phase="", rate="")
            task = self.progress.task_ids[k]
            self.progress.update(task, completed=chain.count, phase=chain.phase, rate=rate(chain))

    def close(self) -> None:
        """Draw the bars once more, and end the display."""
        self.progress.stop()


def terminal_progress(console: Any, line: Callable[[], str], unit: str) -> Progress:
    """Return rich's progress display with the columns of a chain, and ``line()`` below."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    class WithLine(Progress):
        def get_renderables(self) -> Iterable[RenderableType]:
            yield self.make_tasks_table(self.tasks)
            yield line()

    return WithLine(
        TextColumn("{task.description}"),
        BarColumn(bar_width=16),
        TextColumn("{task.fields[phase]:<8} {task.percentage:>3.0f}% {task.fields[rate]:>6} " + f"{unit}/s"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=console,
    )
