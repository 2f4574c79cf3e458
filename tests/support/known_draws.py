"""Draws whose statistics are known, and the same put through a stream."""

from __future__ import annotations

import numpy as np

from markovblanket.chains.streaming import EdgeStream, Layout, Moments, merge
from markovblanket.contracts import Draw, SweepInfo

INFO = SweepInfo(0, 0.0, 1.0)


def autoregressive(rng, shape, rho):
    """(chain, draw, ...) of a stationary process with autocorrelation ``rho ** lag`` and variance 1."""
    x = rng.standard_normal(shape)
    for t in range(1, shape[1]):
        x[:, t] = rho * x[:, t - 1] + np.sqrt(1 - rho**2) * x[:, t]
    return x


def made_draws(seed=0, chains=3, draws=205, p=2, q=7, zeros=True):
    """``W11``, ``W12`` and the diagonal of W22; edge (0, 0) is always zero, (0, 1) often, unless without zeros."""
    rng = np.random.default_rng(seed)
    size = (chains, draws)
    W12 = rng.normal(0, 2, (p, q)) + rng.gamma(2, 1, (p, q)) * autoregressive(rng, (*size, p, q), 0.5)
    if zeros:
        W12[..., 0, 0] = 0.0
        W12[..., 0, 1] *= rng.random(size) < 0.3
    L = np.eye(p) + 0.2 * np.tril(rng.standard_normal((*size, p, p)))
    return {"W11": L @ L.swapaxes(-1, -2), "W12": W12, "W22_diagonal": 1 + rng.random((*size, q))}


def partial_correlations(made):
    """``-w_ij / sqrt(w_ii w_jj)`` in each draw."""
    w_ii = np.einsum("...ii->...i", made["W11"])
    return -made["W12"] / np.sqrt(w_ii[..., :, None] * made["W22_diagonal"][..., None, :])


def warm(partial):
    """Moments as if all draws had been those of the warm-up."""
    moments = Moments.empty(partial.shape[2:])
    for state in partial.reshape(partial.shape[0] * partial.shape[1], *partial.shape[2:]):
        moments.add(state)
    return moments


def chain_stream(made, chain, bins):
    """The statistics of one chain."""
    layout = Layout(made["W12"].shape[1])
    stream = EdgeStream(layout, bins)
    for W11, W12, diagonal in zip(*(made[name][chain] for name in ("W11", "W12", "W22_diagonal")), strict=True):
        stream.add(Draw(W11, W12, diagonal, np.ones(len(W11)), {}, INFO))
    return stream.collect()


def streamed(made, bins=None):
    """The merged statistics of all chains."""
    chains, draws = made["W12"].shape[:2]
    bins = warm(partial_correlations(made)).bins(Layout(draws).bins) if bins is None else bins
    return merge([chain_stream(made, chain, bins) for chain in range(chains)], draws)
