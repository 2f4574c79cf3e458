"""Columns with levels at mean square 1: draws that keep them there and leave the posterior exactly invariant.

The order of a column determines no scale, so its cells x are latent at mean square 1, as a continuous column is
standardised: with n rows and the direction ``u = x/|x|`` the posterior is that of ``x = sqrt(n) u``. Steps that
draw cells one by one change the length, too. Given all else, the cells are normal; along a direction, the density
of the length ``r`` and of u is, with the precision Q of the cells and their linear term b::

    f(r, u)  =  r^(n-2) exp(-1/2 A r^2 - B r)           A = u'Q u,  B = u'b

So a length is drawn first from a normal density k of ``log r`` close to f, and the cells are drawn by a kernel
that is reversible with respect to f. The new direction is accepted with the ratio of the weights::

    weight(r, u)  =  f(sqrt(n), u) k(log r | u) / (r f(r, u))

up to a constant, in which the density of x at mean square 1 takes the place of f (Metropolis and Hastings, with r
as an auxiliary variable; compare the parameter expansion of Liu and Wu 1999). As k is nearly the distribution of
the length, and that nearly mean square 1, the weight is nearly constant.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def release(rng: np.random.Generator, n: int, A: float, B: float) -> tuple[float, float]:
    """Draw the length of a column of n cells from k; also return the log weight."""
    log_r, precision = normal_law(n, A, B)
    r = math.exp(log_r + rng.standard_normal() / math.sqrt(precision))
    return r, log_weight(n, A, B, r)


@njit(cache=True, nogil=True)
def log_weight(n: int, A: float, B: float, r: float) -> float:
    """Return the log weight of the length r in a direction, given by A and B."""
    (log_r, precision), step = normal_law(n, A, B), math.sqrt(n) - r
    z2 = precision * (math.log(r) - log_r) ** 2
    return 0.5 * math.log(precision) - 0.5 * z2 - step * (0.5 * A * (math.sqrt(n) + r) + B) - (n - 1) * math.log(r)


@njit(cache=True, nogil=True)
def normal_law(n: int, A: float, B: float) -> tuple[float, float]:
    """Return mean and precision of ``log r`` under k: the mode of ``r f``, and its curvature there."""
    root = math.sqrt(B * B + 4.0 * A * (n - 1))
    r = 2.0 * (n - 1) / (B + root) if B > 0.0 else (root - B) / (2.0 * A)
    return math.log(r), A * r * r + n - 1


@njit(cache=True, nogil=True)
def accepted(rng: np.random.Generator, log_ratio: float) -> bool:
    """Whether a move is accepted, with probability ``min(1, exp(log_ratio))``."""
    return -rng.standard_exponential() < log_ratio
