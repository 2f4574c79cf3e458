"""Work in other processes by joblib, here or on a cluster; and signals, acted on between sweeps only."""

from __future__ import annotations

import ctypes
import multiprocessing.process
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, suppress
from functools import cache
from types import FrameType
from typing import Any, TypeVar

import joblib

# Work is tried so often if processes are lost.
MOST_TRIES = 3
# Signals that wait for the end of a sweep: Ctrl-C, the wish to end, and a terminal that is gone.
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
# Seconds between two looks of a worker process at whether its parent is there.
LOOK_EVERY = 1.0
# A limit of addresses below this many bytes leaves some libraries waiting for memory for ever.
LEAST_ADDRESSES = 2_000_000_000

T = TypeVar("T")


# Work in parallel -------------------------------------------------------------------------------------


def delayed(function: Callable[..., Any]) -> Any:
    """Return joblib's ``delayed`` of a function, in a process that ends soon after the one that asked for it."""
    return joblib.delayed(Attended(function, os.getpid()))


class Attended:
    """A function that, in a child of the process ``parent``, sees to it that the child ends after its parent.

    Otherwise the idle workers of a process that was killed would live on, and hold its pipes.
    """

    def __init__(self, function: Callable[..., Any], parent: int) -> None:
        self.function, self.parent = function, parent

    def __call__(self, *args: Any, **options: Any) -> Any:
        if os.getpid() != self.parent and os.getppid() == self.parent:
            _end_after(self.parent)
        return self.function(*args, **options)


@cache
def _end_after(parent: int) -> None:
    """Start the thread that ends this process after its parent, once."""
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    """End this process when its parent has ended; snapshots and blocks are whole at any moment."""
    while os.getppid() == parent:
        time.sleep(LOOK_EVERY)
    os._exit(1)


def _forget_workers() -> None:
    """Forget the workers of the parent in a forked process: they are not its own, and it would wait for them."""
    if "joblib.externals.loky.reusable_executor" in sys.modules:
        from joblib.externals.loky import process_executor, reusable_executor

        reusable_executor._executor = None
        process_executor._threads_wakeups.clear()
        multiprocessing.process._children.clear()  # type: ignore[attr-defined]
    _end_after.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)


def require_addresses() -> None:
    """Refuse to run under a limit of addresses (``ulimit -v``) that is too small for the libraries."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < LEAST_ADDRESSES:
        raise MemoryError(
            f"out of memory: this process is limited to {limit / 1e9:.1f} GB of addresses, and needs "
            f"{LEAST_ADDRESSES / 1e9:.1f} GB; raise the limit with ulimit -v"
        )


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


# Linux: the flag of a handler that is removed when it is called, and where flags are in the description of one.
RESET_HANDLER, FLAGS_AT, DESCRIPTION_BYTES = 0x80000000, 136, 256


def end_at_second(*numbers: int) -> None:
    """Let a second signal end the process at once, even while compiled code runs and Python hears none of them.

    The system does so, on Linux; elsewhere nothing changes.
    """
    for number in numbers if sys.platform == "linux" else ():
        _write_flags(number, _flags(number) | RESET_HANDLER)


def handle(number: int, handler: Any) -> None:
    """Set the handler of a signal; what was said by :func:`end_at_second` holds for the new one, too."""
    second_ends = sys.platform == "linux" and _flags(number) & RESET_HANDLER
    signal.signal(number, handler)
    if second_ends:
        end_at_second(number)


def _flags(number: int) -> int:
    """The flags of the handler of a signal."""
    description = ctypes.create_string_buffer(DESCRIPTION_BYTES)
    ctypes.CDLL(None).sigaction(number, None, description)
    return ctypes.c_uint32.from_buffer(description, FLAGS_AT).value


def _write_flags(number: int, flags: int) -> None:
    """Change the flags of the handler of a signal."""
    description = ctypes.create_string_buffer(DESCRIPTION_BYTES)
    ctypes.CDLL(None).sigaction(number, None, description)
    ctypes.c_uint32.from_buffer(description, FLAGS_AT).value = flags
    ctypes.CDLL(None).sigaction(number, description, None)


class Ended(BaseException):
    """A signal that ends the process has come; raised between sweeps, so that the chain is saved before."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.number = number


@contextmanager
def between_sweeps() -> Iterator[Callable[[], None]]:
    """Give a function to call between sweeps: signals take effect when it is called, and after the block.

    A second signal of the same kind takes effect at once. In other threads than the main one, where signals do not
    arrive, nothing changes; nor does a signal that is ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    before = {number: handler for number in SIGNALS if _is_heard(handler := signal.getsignal(number))}
    waiting: list[int] = []

    def take_effect(number: int, frame: FrameType | None) -> None:
        handler = before[number]
        if not callable(handler):
            raise Ended(number)
        handler(number, frame)

    def note(number: int, frame: FrameType | None) -> None:
        if number in waiting:
            take_effect(number, frame)
        waiting.append(number)

    def act() -> None:
        while waiting:
            take_effect(waiting.pop(0), None)

    for number in before:
        handle(number, note)
    try:
        yield act
        act()
    except Ended as ended:
        signal.signal(ended.number, signal.SIG_DFL)
        signal.raise_signal(ended.number)
        raise
    finally:
        for number, handler in before.items():
            handle(number, handler)
    act()


def _is_heard(handler: Any) -> bool:
    """Whether a signal has an effect in Python: it is handled, or ends the process."""
    return callable(handler) or handler is signal.SIG_DFL
