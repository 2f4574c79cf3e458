"""A progress bar per chain, wherever the chains run.

Chains may run in other processes, so each writes its count of sweeps into a small memory-mapped file, and a
thread of the parent reads the file and redraws the bars. A chain on another machine finds no file and is silent.

While they sample, chains also note mean and variance of a few quantities over every 32nd part of their draws. From
these the parent has the plain R-hat of half chains (Gelman et al. 2013, section 11.4), as far as they have come: a
first sign of how well they agree. The verdict is that of all draws, in the end.
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


if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress

Clock = Callable[[], float]


@dataclass
class Chain:
    """How far one chain is, and how fast it was while it was its turn."""

    sweeps: int
    warmup: int
    clock: Clock = time.monotonic
    count: int = 0
    busy: float = 0.0
    stopped: bool = False
    begin: int | None = field(default=None, init=False)
    seen: float = field(init=False)

    def __post_init__(self) -> None:
        """The clock runs."""
        self.seen = self.clock()

    def reach(self, count: int) -> None:
        """Note how many sweeps are done; time without one was another chain's."""
        now = self.clock()
        self.begin = count if self.begin is None else self.begin
        self.busy += now - self.seen if count > self.count else 0.0
        self.count, self.seen = count, now

    @property
    def phase(self) -> str:
        """In a word."""
        if self.count >= self.sweeps:
            return "done"
        return "stopped" if self.stopped else "warm-up" if self.count < self.warmup else "sampling"

    @property
    def speed(self) -> float:
        """Sweeps in a second; 0 before that can be told."""
        return (self.count - (self.begin or 0)) / self.busy if self.busy else 0.0

    @property
    def left(self) -> float | None:
        """Seconds of its own that a chain still needs."""
        return (self.sweeps - self.count) / self.speed if self.speed else None


class Bars(Protocol):
    """What shows chains."""

    def show(self, chains: Sequence[Chain], agreement: str) -> None:
        """Show how far they are, and a line about all of them."""

    def close(self) -> None:
        """Leave what was shown last."""


def bars(label: str = "chain {}", unit: str = "sweeps") -> Bars | None:
    """Where somebody is watching: in a notebook, or on a terminal at standard error; else None.

    Each is labelled with its number.
    """
    if in_notebook():
        return NotebookBars(label, unit)
    from rich.console import Console

    console = Console(stderr=True)
    return TerminalBars(console, label, unit) if console.is_terminal else None


# In a notebook ------------------------------------------------------------------------------------------


def in_notebook() -> bool:
    """Whether what is displayed goes to a front end with pages, such as Jupyter's."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    kind = type(shell)
    return (
        kind.__name__ == "ZMQInteractiveShell"
        or "google.colab" in kind.__module__
        or (shell is not None and "DATABRICKS_RUNTIME_VERSION" in os.environ)
    )


class NotebookBars:
    """One area of the cell's output; it stays as it was shown last."""

    def __init__(self, label: str = "chain {}", unit: str = "sweeps") -> None:
        self.handle: Any = None
        self.names = label, unit

    def show(self, chains: Sequence[Chain], agreement: str) -> None:
        """Draw the area, or draw it anew."""
        ipython: Any = import_module("IPython.display")  # there is one, or this would be no notebook
        shown = {
            "text/html": as_html(chains, agreement, *self.names),
            "text/plain": as_text(chains, agreement, *self.names),
        }
        if self.handle is None:
            self.handle = ipython.display(shown, raw=True, display_id=True)
        else:
            self.handle.update(shown, raw=True)

    def close(self) -> None:
        """Nothing to end."""


def words(chain: Chain, unit: str = "sweeps") -> list[str]:
    """Of one chain: its phase, how much is done, its speed, and the time that it took or still needs."""
    speed = f"{rate(chain)} {unit}/s" if chain.speed else ""
    over = chain.phase in ("done", "stopped")
    time = f"in {clock_time(chain.busy)}" if over else f"{clock_time(chain.left)} left"
    return [chain.phase, f"{100 * chain.count / chain.sweeps:.0f} %", speed, time]


def rate(chain: Chain) -> str:
    """Sweeps in a second, with a digit more if there are few."""
    return f"{chain.speed:,.{0 if chain.speed >= 10 else 1}f}" if chain.speed else ""


def clock_time(seconds: float | None) -> str:
    """As a clock has it.

    >>> clock_time(75.2), clock_time(4000), clock_time(None)
    ('1:15', '1:06:40', '–:––')
    """
    if seconds is None:
        return "–:––"
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def as_text(chains: Sequence[Chain], agreement: str, label: str = "chain {}", unit: str = "sweeps") -> str:
    """A line per chain, for those who see no pages."""
    told = (", ".join(filter(None, words(chain, unit))) for chain in chains)
    lines = [f"{label.format(k)}: {text}" for k, text in enumerate(told, start=1)]
    return "\n".join([*lines, *filter(None, [agreement])])


def as_html(chains: Sequence[Chain], agreement: str, label: str = "chain {}", unit: str = "sweeps") -> str:
    """A row per chain, in the colours of the notebook."""
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
    """Rich's bars, with a line below that is about all chains together."""

    def __init__(self, console: Any, label: str = "chain {}", unit: str = "sweeps") -> None:
        self.agreement, self.label = "", label
        self.progress = terminal_progress(console, lambda: self.agreement, unit)

    def show(self, chains: Sequence[Chain], agreement: str) -> None:
        """Tell rich how far they are; it redraws by itself."""
        self.agreement = agreement
        self.progress.start()  # once more does nothing
        for k, chain in enumerate(chains):
            if k == len(self.progress.tasks):
                self.progress.add_task(self.label.format(k + 1), total=chain.sweeps, phase="", rate="")
            task = self.progress.task_ids[k]
            self.progress.update(task, completed=chain.count, phase=chain.phase, rate=rate(chain))

    def close(self) -> None:
        """Draw once more, and give the screen back."""
        self.progress.stop()


def terminal_progress(console: Any, line: Callable[[], str], unit: str) -> Progress:
    """Of rich, with the columns of a chain, and the line below."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    class WithLine(Progress):
        def get_renderables(self) -> Iterable[RenderableType]:
            yield self.make_tasks_table(self.tasks)
            yield line()

    return WithLine(
        TextColumn("{task.description}"),
        BarColumn(bar_width=16),
        TextColumn("{task.fields[phase]:<8} {task.percentage:>3.0f}%  {task.fields[rate]:>7} " + f"{unit}/s"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=console,
    )
