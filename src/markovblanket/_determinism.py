"""One thread for linear algebra, however many fits run at a time.

How many threads a library for linear algebra takes is a setting of the whole process. Fits in several threads that
each set and restored it would get in each other's way: the first to end would lift the limit from the others, and
their last bits would depend on the number of cores. So they share it: the first to come sets it, the last to leave
restores it. Nothing else is shared by fits that know nothing of each other.
"""

from __future__ import annotations

import threading
from typing import TypeVar

import numpy as np
import threadpoolctl


class OneThread:
    """A context in which linear algebra takes one thread; contexts may overlap in any order, and be nested."""

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._limits: threadpoolctl.threadpool_limits | None = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                take_control()
                self._limits = threadpoolctl.threadpool_limits(limits=1)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside and self._limits is not None:
                take_control()
                self._limits.restore_original_limits()
                take_control()


def take_control() -> None:
    """Recent versions of threadpoolctl ignore all threads but the one that came first; this makes it none."""
    clear = getattr(getattr(threadpoolctl, "OpenBLASController", None), "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


one_thread = OneThread()


Seed = TypeVar("Seed")


def checked_seed(seed: Seed) -> Seed:
    """The seed itself, if a generator can be made from it and named in the settings.

    >>> checked_seed(7)
    7
    """
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool) and seed >= 0
    if seed is None or whole or isinstance(seed, np.random.SeedSequence):
        return seed
    raise ValueError(f"seed={seed!r}: must be a whole number, at least 0, or None")
