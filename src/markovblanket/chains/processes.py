"""Work in other processes by joblib, here or on a cluster; and signals, acted on between sweeps only."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TypeVar

import joblib

# Work is tried so often if processes are lost.
MOST_TRIES = 3
# Signals that wait for the end of a sweep.
SIGNALS = (signal.SIGINT, signal.SIGTERM)

T = TypeVar("T")


# Work in parallel -------------------------------------------------------------------------------------


@contextmanager
def shipped(*parts: object) -> Iterator[None]:
    """Send these objects to each worker of a Dask cluster once, instead of with each task that takes them.

    Every worker has a copy beforehand, so that none is lost with a worker. Without a cluster this does nothing, as
    joblib maps large arrays into the memory of all its processes.
    """
    backend, _ = joblib.parallel.get_active_backend()
    client = getattr(backend, "client", None)
    if client is None:
        yield
        return
    with joblib.parallel_config(backend="dask", client=client, scatter=list(parts)):
        yield


def persistently(work: Callable[[], T]) -> T:
    """Return the result of ``work``, which is repeated a few times if a process of joblib's pool is lost."""
    for _ in range(MOST_TRIES - 1):
        with suppress(BrokenExecutor):
            return work()
    return work()


class Counting(joblib.Parallel):  # type: ignore[misc]
    """A ``joblib.Parallel`` that reports the number of completed tasks after each one."""

    tell: Callable[[int], None]

    def print_progress(self) -> None:
        """Report the number of completed tasks; joblib calls this after each one."""
        self.tell(self.n_completed_tasks)


def all_done(
    tasks: Callable[[], Iterable[Any]], n_jobs: int | None, tell: Callable[[int], None] = lambda count: None
) -> list[Any]:
    """Return the results of tasks, in order.

    If a process of the pool is lost, ``tasks`` is called again, for what is left to do. A cluster repeats lost
    tasks by itself.
    """

    def once() -> list[Any]:
        parallel = Counting(n_jobs=n_jobs)
        parallel.tell = tell
        return list(parallel(tasks()))

    try:
        return persistently(once)
    except BrokenExecutor:
        often = f"processes ended {MOST_TRIES} times before their tasks did, perhaps for lack of memory"
        raise RuntimeError(f"{often}: try a smaller n_jobs") from None


# Signals ----------------------------------------------------------------------------------------------


@contextmanager
def between_sweeps() -> Iterator[Callable[[], None]]:
    """Give a function to call between sweeps: signals take effect when it is called, and after the block.

    A second signal of the same kind takes effect at once. In other threads than the main one, where signals do not
    arrive, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    handlers = {int(number): handler for number in SIGNALS if callable(handler := signal.getsignal(number))}
    waiting: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if number in waiting:
            handlers[number](number, frame)
        waiting.append(number)

    def act() -> None:
        while waiting:
            handlers[number := waiting.pop(0)](number, None)

    for number in handlers:
        signal.signal(number, note)
    try:
        yield act
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    act()
