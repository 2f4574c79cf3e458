"""Univariate slice-sampling updates for scalars whose distribution is not a standard one.

Written by hand: a step takes a state and a generator and keeps nothing, which samplers in libraries do not offer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def step(
    rng: np.random.Generator,
    x: float,
    log_density: Callable[[float], float],
    width: float = 1.0,
    max_steps: int = 1000,
) -> float:
    """Move ``x`` by a Markov kernel that leaves the distribution with the given log density invariant.

    Draws a height under the density at ``x``, extends an interval of length ``width`` until the density at both
    ends is below that height, then draws uniformly from the interval, shrinking it towards the current point
    after each candidate below the height (Neal 2003). Any ``width`` is correct; a good one is the standard
    deviation of the distribution.

    Parameters
    ----------
    rng : numpy.random.Generator
        The source of randomness.
    x : float
        The current point, where the log density must be finite.
    log_density : callable
        Log density up to a constant; ``-inf`` outside the support.
    width : float
        Length of the first interval and of every step outwards.
    max_steps : int
        Largest length of the interval in units of ``width``; it is divided at random between the two sides, as
        invariance requires.

    Returns
    -------
    float
        The next point.

    References
    ----------
    Neal, R. M. (2003). Slice sampling. The Annals of Statistics 31, 705-767.

    Examples
    --------
    >>> import numpy as np
    >>> rng, x, draws = np.random.default_rng(0), 0.0, []
    >>> for _ in range(5000):
    ...     x = step(rng, x, lambda value: -0.5 * (value - 3.0) ** 2)
    ...     draws.append(x)
    >>> bool(abs(np.mean(draws) - 3.0) < 0.1), bool(abs(np.std(draws) - 1.0) < 0.1)
    (True, True)
    """
    top = log_density(x)
    if not np.isfinite(top):
        raise ValueError(f"slice sampling started at {x}, where the log density is {top}")
    if not (0 < width < np.inf and max_steps >= 1):
        raise ValueError("slice sampling needs a positive finite width and at least one step")
    height = top - rng.standard_exponential()
    left, right = _step_out(rng, x, log_density, height, width, max_steps)
    return _shrink(rng, x, log_density, height, left, right)


def _step_out(
    rng: np.random.Generator,
    x: float,
    log_density: Callable[[float], float],
    height: float,
    width: float,
    max_steps: int,
) -> tuple[float, float]:
    """Return an interval around ``x`` whose ends lie outside the slice, unless the steps run out."""
    left = x - width * rng.random()
    right = left + width
    leftwards = int(rng.integers(max_steps))
    rightwards = max_steps - 1 - leftwards
    while leftwards > 0 and log_density(left) > height:
        left, leftwards = left - width, leftwards - 1
    while rightwards > 0 and log_density(right) > height:
        right, rightwards = right + width, rightwards - 1
    return left, right


def _shrink(
    rng: np.random.Generator,
    x: float,
    log_density: Callable[[float], float],
    height: float,
    left: float,
    right: float,
) -> float:
    """Return a point of the slice inside the interval; ``x`` itself when nothing else is left."""
    while True:
        candidate = left + (right - left) * rng.random()
        if candidate == x or log_density(candidate) > height:
            return candidate
        if candidate < x:
            left = candidate
        else:
            right = candidate
