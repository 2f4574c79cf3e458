"""Compiled sampler for a single query variable with a spike-and-slab prior.

It is the sweep of :mod:`markovblanket.model.sweep` for p = 1. Such fits are short, and there may be hundreds of
them: with the general sampler most of the time would be spent between compiled functions. With ``x = W11``, w the
only row of ``W12`` and v the slab, a sweep draws::

    w  | x, v        entry by entry                        (:mod:`markovblanket.priors.spike_slab_sweep`)
    x  | w           ∝ x^(n/2) exp -1/2 (B x + G/x)        (a step of :mod:`markovblanket.variates.mgig`)
    r  | x, w        (x, w) -> (r x, r w), v integrated out (:mod:`markovblanket.model._row_scales`)
    v  | w           inverse gamma, unless it is given

Only inner products of columns are needed, so all variables can share one factor of their scatter: whichever
variable is the query, the columns of the others in that factor are its ``F``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from markovblanket.contracts import Array
from markovblanket.model._row_scales import Terms, step
from markovblanket.priors import spike_slab_sweep
from markovblanket.priors.spike_slab import SpikeSlab, passes


class Lone(NamedTuple):
    """Data of one query variable: ``F'`` with a row per other variable, ``y F = S12``, ``B = y'y + 1``.

    ``a`` is the diagonal of ``F'F + I``, and ``n`` the number of rows.
    """

    FT: Array
    y: Array
    a: Array
    B: float
    n: int


class Prior(NamedTuple):
    """Prior log-odds of an edge; the slab, or 0 if it is learned, ``slab ~ InverseGamma(shape, rate)``."""

    odds: float
    slab: float
    shape: float
    rate: float


def one_of(factor: Array, j: int, n: int) -> Lone:
    """Return the data with variable j as the query, from a factor of the scatter with a row per variable."""
    FT, y = np.delete(factor, j, axis=0), np.ascontiguousarray(factor[j])
    return Lone(FT, y, 1.0 + np.einsum("jk,jk->j", FT, FT), 1.0 + float(y @ y), n)


def law_of(prior: SpikeSlab) -> Prior:
    """Return the prior for compiled code; its inclusion probability must be given."""
    odds, _ = prior.zero_law({"slab": 1.0})
    return Prior(odds, prior.slab or 0.0, prior.shape, prior.rate)


def start(rng: np.random.Generator, lone: Lone, prior: SpikeSlab) -> tuple[Array, float, float]:
    """Draw an over-dispersed initial state ``W21``, x, v, like :func:`markovblanket.model.sweep.start`."""
    x = rng.chisquare(lone.n + 2) / lone.B * math.exp(rng.uniform(-1, 1))
    T, hyper = prior.start(rng, 1, len(lone.FT))
    return (np.sqrt(T) * rng.standard_normal(T.shape)).T.copy(), x, prior.slab or hyper["slab"]


def run(
    rng: np.random.Generator,
    W21: Array,
    x: float,
    v: float,
    lone: Lone,
    prior: SpikeSlab,
    sweeps: int,
    there: Array,
) -> tuple[float, float]:
    """Run ``sweeps`` sweeps, which change ``W21`` (q x 1) in place; return the new x and v.

    ``there`` counts, in place, in how many sweeps each of the first entries was not zero.
    """
    x, v = _run(rng, W21, x, v, lone, law_of(prior), passes(1, *lone.FT.shape), sweeps, there)
    return float(x), float(v)


# All sweeps in one function, because every function that calls spike_slab_sweep.sweep takes seconds to compile.
@njit(cache=True)
def _run(
    rng: np.random.Generator,
    W21: Array,
    x: float,
    v: float,
    lone: Lone,
    prior: Prior,
    passes: int,
    sweeps: int,
    there: Array,
) -> tuple[float, float]:
    for _ in range(sweeps):
        R = (lone.y + fit(W21, lone.FT) / x).reshape((1, len(lone.y)))
        spike_slab_sweep.sweep(rng, W21, np.full((1, 1), 1.0 / x), R, lone.FT, lone.a, prior.odds, v, passes)
        edges, size, V = spike_slab_sweep.count(W21), np.sum(W21 * W21), fit(W21, lone.FT)
        G, Q = size + np.dot(V, V), np.dot(V, lone.y)
        x = draw_query(rng, x, lone, G)
        r = draw_scale(rng, x, lone, G, Q, edges, size, prior)
        W21 *= r
        x, v = r * x, draw_slab(rng, edges, r * r * size, prior)
        for i in range(len(there)):
            there[i] += W21[i, 0] != 0.0
    return x, v


@njit(cache=True)
def fit(W21: Array, FT: Array) -> Array:
    """Return ``w F'``, where most entries of w are zero."""
    V = np.zeros(FT.shape[1])
    for j in range(len(W21)):
        if W21[j, 0] != 0.0:
            V += W21[j, 0] * FT[j]
    return V


@njit(cache=True)
def draw_query(rng: np.random.Generator, x: float, lone: Lone, G: float) -> float:
    """Move x by ``Y + G / (W0 + G/x)``, which leaves ``x | w`` invariant; ``B Y`` and ``W0`` are ``chi2(n+2)``."""
    return rng.chisquare(lone.n + 2.0) / lone.B + G / (rng.chisquare(lone.n + 2.0) + G / x)


@njit(cache=True)
def draw_scale(
    rng: np.random.Generator, x: float, lone: Lone, G: float, Q: float, edges: int, size: float, prior: Prior
) -> float:
    """Draw the factor r of the joint scale move of x and w."""
    slope, one = 0.5 * (lone.n + 2.0) + edges, 0.5 * (lone.B * x + G / x) + Q
    if prior.slab > 0.0:
        terms = Terms(slope, 0.0, one, 0.0, 0.0, 0.5 * size / prior.slab, 0.0, 0.0)
    else:
        terms = Terms(slope, 0.0, one, 0.0, 0.0, 0.5 * size, prior.shape + 0.5 * edges, prior.rate)
    return math.exp(step(rng, terms))


@njit(cache=True)
def draw_slab(rng: np.random.Generator, edges: int, size: float, prior: Prior) -> float:
    """Draw the slab from ``v | w``, an inverse gamma; return it unchanged if it is given."""
    if prior.slab > 0.0:
        return prior.slab
    return (prior.rate + 0.5 * size) / rng.standard_gamma(prior.shape + 0.5 * edges)
