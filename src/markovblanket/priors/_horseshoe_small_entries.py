"""A joint move of the horseshoe's ``tau`` and the entries of ``W12`` about which the data say little.

``tau`` is determined by thousands of small entries, and their size by ``tau``: drawn in turn, they move slowly. A
common scaling of all entries with ``tau`` helps little, because the data determine the large ones. So only *free*
entries are scaled with it::

    (w, s) -> (c w, c^2 s) where free        tau -> c tau        s = tau^2 lambda^2

Whether an entry is free is drawn first, with probability ``1 / (1 + s/k)``, where k is a few times the variance of
``w`` given the data alone. This choice is an auxiliary variable, whose probability is a factor of the density of
c: with ``W12 = H + M``, M the free entries and H the others, the density with respect to ``dc/c`` is::

    exp(-c (<M, S12> + tr(U H A M')) - c^2/2 tr(U M A M'))      the likelihood
    prod_free  (1 + c^2 s/v)^1/2 exp(-c^2 w^2 / 2v)             N(w; 0, t), 1/t = 1/s + 1/v
    prod_free  1 / (1 + c^2 s/k)    prod_others  c / (c^2 tau^2 + s)    p(c tau)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from markovblanket.contracts import Array, ChainState, Scatter
from markovblanket.priors import _horseshoe_scales
from markovblanket.variates import slice

# k in units of the variance of w given the data alone; with 0.3 and with 15 tau was measured to mix less well.
FREE_BELOW_VARIANCES = 3.0


def draw(
    rng: np.random.Generator,
    state: ChainState,
    scatter: Scatter,
    slab: float,
    log_prior: Callable[[float], float],
) -> ChainState:
    """Move ``W12``, ``T`` and ``tau`` by a slice step along ``log c``; ``log_prior`` is that of ``log tau``."""
    tau, U, s = state.hyper["tau"], np.linalg.inv(state.W11), local_variances(state.T, slab)
    ratio = s * np.diag(U)[:, None] * (1.0 + scatter.column_sizes) / FREE_BELOW_VARIANCES
    free = rng.random(s.shape) * (1.0 + ratio) < 1.0
    moving, held = np.where(free, state.W12, 0.0), np.where(free, 0.0, state.W12)
    linear, quadratic = likelihood(U, moving, held, scatter)
    log_scales = law_of_scales(s[free], ratio[free], s[~free], tau, slab)
    quadratic += float(np.vdot(moving, moving)) / slab

    def log_density(u: float) -> float:
        c = math.exp(u)
        return log_scales(u) + log_prior(math.log(tau) + u) - c * linear - 0.5 * c * c * quadratic

    c = math.exp(slice.step(rng, 0.0, log_density, width=0.5))
    T = np.where(free, _horseshoe_scales.regularised(c * c * s, slab), state.T)
    return replace(state, W12=held + c * moving, T=T, hyper={**state.hyper, "tau": c * tau})


def local_variances(T: Array, slab: float) -> Array:
    """Return ``s`` with ``1/T = 1/s + 1/slab``; where T equals the slab up to rounding, any large s will do."""
    return T / np.maximum(1.0 - T / slab, 1e-15)


def likelihood(U: Array, moving: Array, held: Array, scatter: Scatter) -> tuple[float, float]:
    """Return ``<M, S12> + tr(U H A M')`` and ``tr(U M A M')`` with ``A = I + F'F`` and ``S12 = Y F``."""
    MF, HF = scatter.times_factor(moving), scatter.times_factor(held)
    UM, UMF = U @ moving, U @ MF
    linear = np.vdot(MF, scatter.Y) + np.vdot(UM, held) + np.vdot(UMF, HF)
    return float(linear), float(np.vdot(UM, moving) + np.vdot(UMF, MF))


def law_of_scales(s: Array, ratio: Array, others: Array, tau: float, slab: float) -> Callable[[float], float]:
    """Return the log density of ``u = log c`` as far as it comes from the scales.

    ``s`` and ``ratio`` are s and s/k of the free entries, ``others`` are s of the other entries.
    """

    def log_density(u: float) -> float:
        c2, sum_log = math.exp(2 * u), _horseshoe_scales.sum_log
        free = 0.5 * sum_log(s, slab / c2) - sum_log(ratio, 1.0 / c2)
        return free - len(others) * u - sum_log(others, c2 * tau * tau)

    return log_density
