"""Work handed out by joblib, wherever its workers are: other processes here, or those of a cluster."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TypeVar

import joblib

TRIES = 3
T = TypeVar("T")


@contextmanager
def shipped(*parts: object) -> Iterator[None]:
    """Within, arguments of tasks that are these very objects go to each worker once, not with each task.

    On a Dask cluster every worker has a copy beforehand, so none is lost with a worker. Elsewhere there is nothing
    to be done: joblib maps large arrays into the memory of all its processes.
    """
    backend, _ = joblib.parallel.get_active_backend()
    client = getattr(backend, "client", None)
    if client is None:
        yield
        return
    with joblib.parallel_config(backend="dask", client=client, scatter=list(parts)):
        yield


def persistently(work: Callable[[], T]) -> T:
    """What the work returns; it is done again if a process of joblib's pool is lost, but not for ever."""
    for _ in range(TRIES - 1):
        with suppress(BrokenExecutor):
            return work()
    return work()


class Counting(joblib.Parallel):  # type: ignore[misc]
    """Tells how many tasks are done, whenever one is."""

    tell: Callable[[int], None]

    def print_progress(self) -> None:
        """Joblib calls this after each task."""
        self.tell(self.n_completed_tasks)


def all_done(
    tasks: Callable[[], Iterable[Any]], n_jobs: int | None, tell: Callable[[int], None] = lambda count: None
) -> list[Any]:
    """The results of tasks, in order; if a process of the pool is lost, those are done again that must be.

    A cluster does that by itself.
    """

    def once() -> list[Any]:
        parallel = Counting(n_jobs=n_jobs)
        parallel.tell = tell
        return list(parallel(tasks()))

    try:
        return persistently(once)
    except BrokenExecutor:
        often = f"processes ended {TRIES} times before their tasks did, perhaps for lack of memory"
        raise RuntimeError(f"{often}: try a smaller n_jobs") from None


SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def between_sweeps() -> Iterator[Callable[[], None]]:
    """The function to call between sweeps: there, and in the end, it does what signals have asked for.

    A second signal of the same kind does not wait. Where signals do not arrive, in other threads than the first,
    nothing changes.
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
