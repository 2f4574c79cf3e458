"""Reproducible results: a limit of one thread for linear algebra, and checks of random seeds.

The number of threads of a linear algebra library is a setting of the whole process, and the last bits of a result
depend on it. Fits in several Python threads must not each set and restore it: the first to end would lift the
limit for the others. So they share one limit: the first fit to start sets it, and the last to end restores the old
one.
"""

from __future__ import annotations

import threading
from typing import TypeVar

import numpy as np
import threadpoolctl


class OneThread:
    """Context manager that limits linear algebra to one thread; contexts may be nested or overlap in any order."""

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
    """Let any thread set the limits: recent versions of threadpoolctl obey only the first thread that did."""
    clear = getattr(getattr(threadpoolctl, "OpenBLASController", None), "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


one_thread = OneThread()


Seed = TypeVar("Seed")


def checked_seed(seed: Seed) -> Seed:
    """Return the seed if it is None, a non-negative integer or a ``SeedSequence``; raise ValueError otherwise.

    >>> checked_seed(7)
    7
    """
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool) and seed >= 0
    if seed is None or whole or isinstance(seed, np.random.SeedSequence):
        return seed
    raise ValueError(f"seed={seed!r}: must be a whole number, at least 0, or None")
