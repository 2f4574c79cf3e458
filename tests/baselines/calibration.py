"""The checks of :mod:`statistical.calibration`, for the whole network."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from baselines import reference
from baselines.reference import Theta
from markovblanket.baselines import GraphicalLasso, WholeNetwork
from markovblanket.baselines._sampler import NetworkState
from statistical.calibration import (
    autocorrelation_time,
    p_of_equal_means,
    p_of_same_law,
    p_of_uniform_ranks,
    scores,
)
from statistical.reference import Array, Generator

REFERENCE_DRAWS = 5_000
Make = Callable[..., WholeNetwork]


@dataclass(frozen=True)
class Case:
    """A problem to calibrate on: d variables, n rows, a prior, and the sampler (or one with a mistake)."""

    d: int
    n: int
    prior: GraphicalLasso
    make: Make = WholeNetwork

    def __str__(self) -> str:
        return f"d={self.d}, n={self.n}, lam={self.prior.lam or 'learned'}"

    def sampler(self, X: Array) -> WholeNetwork:
        """What the package makes of one data set."""
        return self.make(X.T @ X, self.n, 1, self.prior)

    def draw_joint(self, rng: Generator, size: int) -> tuple[Theta, Array]:
        """Exact draws of parameters and data."""
        theta = reference.draw_prior(rng, size, self.d, self.prior)
        return theta, reference.draw_data(rng, theta, self.n)


def functionals(theta: Theta, X: Array) -> dict[str, Array]:
    """What is watched: parameters, and parameters coupled with the data they were drawn from."""
    W, T, lam, S = theta.W, theta.T, theta.lam, X.swapaxes(1, 2) @ X
    i, j = np.tril_indices(W.shape[1], -1)
    diagonal, pairs, t = np.einsum("rii->ri", W), W[:, i, j], T[:, i, j]
    log_det = np.linalg.slogdet(W)[1]
    watched = {
        "log|W|": log_det,
        "tr W": diagonal.sum(axis=1),
        "W first": diagonal[:, 0],
        "W last": diagonal[:, -1],
        "partial correlation": -pairs[:, 0] / np.sqrt(diagonal[:, 0] * diagonal[:, 1]),
        "w first": pairs[:, 0],
        "w last": pairs[:, -1],
        "|w|": np.abs(pairs).sum(axis=1),
        "w^2": (pairs**2).sum(axis=1),
        "1/Sigma first": 1 / np.linalg.inv(W)[:, 0, 0],
        "tr SW": np.einsum("rij,rij->r", S, W),
        "<w, s>": (pairs * S[:, i, j]).sum(axis=1),
        "s w first": S[:, 0, 0] * W[:, 0, 0],
        "likelihood": X.shape[1] * log_det - np.einsum("rij,rij->r", S, W),
        "t first": t[:, 0],
        "log T": np.log(t).sum(axis=1),
        "w^2/t": (pairs**2 / t).sum(axis=1),
        "lam": lam,
        "lam |w|": lam * np.abs(pairs).sum(axis=1),
        "lam tr W": lam * diagonal.sum(axis=1),
        "lam^2 T": lam**2 * t.sum(axis=1),
    }
    return {name: value for name, value in watched.items() if np.ptp(value) > 0}


def chain(rng: Generator, state: NetworkState, sampler: WholeNetwork) -> Iterator[NetworkState]:
    """Sweep after sweep."""
    while True:
        state, _ = sampler.sweep(rng, state)
        yield state


def joint_test(rng: Generator, case: Case, replications: int, sweeps: int) -> dict[str, float]:
    """P-values of "sweeps from exact draws leave the joint law of parameters and data alone"."""
    theta, X = case.draw_joint(rng, replications)
    walks = (chain(rng, theta.state(r), case.sampler(X[r])) for r in range(replications))
    last = functionals(reference.stacked([next(islice(walk, sweeps - 1, None)) for walk in walks]), X)
    exact = functionals(*case.draw_joint(rng, REFERENCE_DRAWS))
    before, after = scores(functionals(theta, X), exact), scores(last, exact)
    return {name: p_of_equal_means(after[name] - before[name]) for name in before} | p_of_same_law(last, exact)


def rank_test(rng: Generator, case: Case, replications: int, draws: int = 7) -> dict[str, float]:
    """P-values of "the truth ranks uniformly among draws of the posterior", of chains that start elsewhere."""
    thin = thinning(rng, case)
    theta, X = case.draw_joint(rng, replications)
    ranks: dict[str, list[int]] = {}
    for r in range(replications):
        drawn = posterior_draws(rng, case, X[r], thin, draws)
        both = reference.concatenate([theta.map(lambda x, r=r: x[r : r + 1]), drawn])
        for name, value in functionals(both, np.repeat(X[r : r + 1], draws + 1, axis=0)).items():
            ranks.setdefault(name, []).append(int((value[1:] < value[0]).sum()))
    return {name: p_of_uniform_ranks(np.array(rank), draws + 1) for name, rank in ranks.items()}


def posterior_draws(rng: Generator, case: Case, X: Array, thin: int, draws: int) -> Theta:
    """Thinned draws of a chain from the sampler's own start, after a warm-up as long as five of them."""
    sampler = case.sampler(X)
    states = chain(rng, sampler.start(rng), sampler)
    return reference.stacked(list(islice(states, 5 * thin + thin - 1, (5 + draws) * thin, thin)))


def thinning(rng: Generator, case: Case, chains: int = 6, sweeps: int = 600) -> int:
    """The integrated autocorrelation time of the slowest functional, measured on pilot chains."""
    _, X = case.draw_joint(rng, chains)
    pilots = [
        functionals(posterior_draws(rng, case, rows, 1, sweeps), np.repeat(rows[None], sweeps, axis=0))
        for rows in X
    ]
    return math.ceil(max(autocorrelation_time(np.stack([pilot[name] for pilot in pilots])) for name in pilots[0]))
