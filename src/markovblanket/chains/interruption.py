"""Signals wait for the end of a sweep.

Compiled functions take a generator apart by calling back into Python. An exception that a signal raises there,
such as the KeyboardInterrupt of Ctrl-C, is not looked for, and the process crashes. So while a chain runs,
Python's handlers are called between sweeps only.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

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
