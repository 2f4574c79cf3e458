"""The Bayesian graphical lasso, written once from its mathematics and independently of the package.

::

    lam      ~  Gamma(shape, rate), or given
    t_ij     ~  Exponential(lam^2 / 2),  w_ij ~ N(0, t_ij)  for i < j,   w_ii ~ Exponential(lam / 2)
    W        is accepted if it is positive definite
    X | W    ~  N(0, W^-1), row by row

The chance of being accepted is the same for every lam, since the cone is: so all of it can be drawn by rejection.
Everything is batched: a leading axis counts draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from markovblanket.baselines import GraphicalLasso
from markovblanket.baselines._sampler import NetworkState
from statistical.reference import Array, Generator


@dataclass(frozen=True)
class Theta:
    """Parameters; every array has a leading axis that counts draws. The diagonal of ``T`` is unused, and one."""

    W: Array
    T: Array
    lam: Array

    def map(self, f: Callable[[Array], Array]) -> Theta:
        """``f`` of every array."""
        return Theta(f(self.W), f(self.T), f(self.lam))

    def state(self, r: int) -> NetworkState:
        """Draw ``r`` as a state of the sampler."""
        return NetworkState(self.W[r], 1 / self.T[r], float(self.lam[r]))


def stacked(states: list[NetworkState]) -> Theta:
    """States of the sampler as a batch."""
    D = np.stack([state.D for state in states])
    D[:, *np.diag_indices(D.shape[-1])] = 1.0
    return Theta(np.stack([state.W for state in states]), 1 / D, np.array([state.lam for state in states]))


def symmetric(entries: Array, diagonal: Array) -> Array:
    """Matrices from the entries of their lower triangles, by rows, and their diagonals."""
    d = diagonal.shape[1]
    i, j = np.tril_indices(d, -1)
    M = np.zeros((len(diagonal), d, d))
    M[:, i, j], M[:, j, i], M[:, np.arange(d), np.arange(d)] = entries, entries, diagonal
    return M


def propose(rng: Generator, size: int, d: int, prior: GraphicalLasso) -> Theta:
    """Every entry from its own law, positive definite or not."""
    lam = rng.gamma(prior.shape, 1 / prior.rate, size) if prior.lam is None else np.full(size, prior.lam)
    t = rng.exponential(1.0, (size, d * (d - 1) // 2)) * (2 / lam**2)[:, None]
    diagonal = rng.exponential(1.0, (size, d)) * (2 / lam)[:, None]
    W = symmetric(np.sqrt(t) * rng.standard_normal(t.shape), diagonal)
    return Theta(W, symmetric(t, np.ones((size, d))), lam)


def draw_prior(rng: Generator, size: int, d: int, prior: GraphicalLasso) -> Theta:
    """Exact draws from the prior: proposals accepted if positive definite."""
    accepted: list[Theta] = []
    while sum(len(part.lam) for part in accepted) < size:
        proposal = propose(rng, 4 * size, d, prior)
        keep = np.linalg.eigvalsh(proposal.W)[:, 0] > 0
        accepted.append(proposal.map(lambda x, keep=keep: x[keep]))
    return concatenate(accepted).map(lambda x: x[:size])


def concatenate(parts: list[Theta]) -> Theta:
    """All draws of ``parts``, one after the other."""
    W, T, lam = (np.concatenate([getattr(part, name) for part in parts]) for name in ("W", "T", "lam"))
    return Theta(W, T, lam)


def draw_data(rng: Generator, theta: Theta, n: int) -> Array:
    """``X``, one n x d matrix for every draw of the parameters: rows ``z'L^-1`` where ``W = L L'``."""
    Z = rng.standard_normal((len(theta.W), n, theta.W.shape[1]))
    return Z @ np.linalg.inv(np.linalg.cholesky(theta.W))


def draw_posterior(rng: Generator, size: int, S: Array, n: int, lam: float) -> Array:
    """Exact and independent draws of ``W`` given S.

    But for the factor ``exp(-lam sum_{i<j} |w_ij|)``, the chance to accept, the posterior is a Wishart law with
    n + d + 1 degrees of freedom and scale ``(S + lam I)^-1``.
    """
    d, accepted = len(S), []
    law = stats.wishart(n + d + 1, np.linalg.inv(S + lam * np.eye(d)))
    while sum(map(len, accepted)) < size:
        W = np.asarray(law.rvs(10 * size, random_state=rng)).reshape(-1, d, d)
        pairs = (np.abs(W).sum((1, 2)) - np.trace(W, axis1=1, axis2=2)) / 2
        accepted.append(W[rng.exponential(size=len(W)) > lam * pairs])
    return np.concatenate(accepted)[:size]
