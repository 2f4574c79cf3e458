"""Bars that tell how far chains are: on a terminal by rich, in a notebook as one area that is redrawn.

Rich draws in notebooks by a widget, which needs a package of its own and takes nothing from threads. Notebooks can
replace what they show by themselves, so there the bars are a small table of plain HTML.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

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
