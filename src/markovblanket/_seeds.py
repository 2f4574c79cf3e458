"""Seeds at the door: a whole number, or none."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

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
