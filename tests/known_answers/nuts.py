"""The posterior of (W11, W12) once more, by another sampler: NumPyro's NUTS on the density of the model.

T is integrated out, so a Laplace prior is its own density here. NUTS moves freely in R^d: ``W11 = L L'`` with
L lower triangular and the logarithm of its diagonal as coordinates, W12 as it is, and log gamma if it is
learned. Coordinates change with the Jacobian

    dW11 = 2^p prod_i L_ii^(p-i+1) dL,    dL_ii = L_ii d(log L_ii),    dgamma = gamma d(log gamma).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro.infer import MCMC, NUTS

from known_answers.exact import Array, Data
from markovblanket.priors import Laplace, Normal

numpyro.enable_x64()

Position = dict[str, Any]


def cholesky_factor(position: Position, p: int) -> Any:
    """L, from the logarithms of its diagonal and the entries below."""
    L = jnp.diag(jnp.exp(position["log_diagonal"]))
    return L.at[np.tril_indices(p, -1)].set(position["below"])


def forward_substitution(L: Any, M: Any) -> Any:
    """``L^-1 M``, row by row: for so few rows far quicker than a call of LAPACK."""
    rows: list[Any] = []
    for i, row in enumerate(M):
        rows.append((row - sum(L[i, k] * rows[k] for k in range(i))) / L[i, i])
    return jnp.stack(rows)


def log_prior(position: Position, prior: Laplace | Normal) -> Any:
    """Of W12, and of log gamma if it is learned."""
    W12 = position["W12"]
    if isinstance(prior, Normal):
        return -0.5 * jnp.sum(W12**2) / prior.scale**2
    if prior.gamma is not None:
        return -prior.gamma * jnp.sum(jnp.abs(W12))
    log_gamma = position["log_gamma"]
    gamma = jnp.exp(log_gamma)
    hyperprior = (prior.shape - 1) * log_gamma - prior.rate * gamma
    return W12.size * log_gamma - gamma * jnp.sum(jnp.abs(W12)) + hyperprior + log_gamma


def potential(data: Data, prior: Laplace | Normal) -> Callable[[Position], Any]:
    """Minus the log density in the free coordinates."""
    p, A, B, S12 = data.p, jnp.asarray(data.A), jnp.asarray(data.B), jnp.asarray(data.S12)
    root_A = jnp.linalg.cholesky(A)
    powers = p - jnp.arange(p) + 1.0  # L_ii^(p-i+1) counted from i = 1, and one more for the logarithm

    def minus_log_density(position: Position) -> Any:
        L = cholesky_factor(position, p)
        W12, log_diagonal = position["W12"], position["log_diagonal"]
        half = forward_substitution(L, W12 @ root_A)
        trace = jnp.sum(B * (L @ L.T)) + 2 * jnp.sum(W12 * S12) + jnp.sum(half**2)
        log_det = 2 * jnp.sum(log_diagonal)
        jacobian = jnp.sum(powers * log_diagonal)
        return -(data.n / 2 * log_det - trace / 2 + jacobian + log_prior(position, prior))

    return minus_log_density


def starts(rng: np.random.Generator, data: Data, prior: Laplace | Normal, chains: int) -> Position:
    """Over-dispersed first positions."""
    p, q = data.S12.shape
    position = {
        "log_diagonal": rng.normal(0, 0.5, (chains, p)),
        "below": rng.normal(0, 0.3, (chains, p * (p - 1) // 2)),
        "W12": rng.normal(0, 0.1, (chains, p, q)),
    }
    learned = isinstance(prior, Laplace) and prior.gamma is None
    return position | ({"log_gamma": rng.normal(2, 1, chains)} if learned else {})


def sample(
    data: Data, prior: Laplace | Normal, *, chains: int, warmup: int, draws: int, seed: int
) -> dict[str, Array]:
    """Draws of W11, W12 and gamma, each (chain, draw, ...)."""
    kernel = NUTS(potential_fn=potential(data, prior), target_accept_prob=0.8)
    mcmc = MCMC(
        kernel,
        num_warmup=warmup,
        num_samples=draws,
        num_chains=chains,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(jax.random.key(seed), init_params=starts(np.random.default_rng(seed), data, prior, chains))
    position = mcmc.get_samples(group_by_chain=True)
    L = jax.vmap(jax.vmap(lambda one: cholesky_factor(one, data.p)))(position)
    kept = {"W11": L @ L.swapaxes(-1, -2), "W12": position["W12"]}
    kept |= {"gamma": jnp.exp(position["log_gamma"])} if "log_gamma" in position else {}
    return {name: np.asarray(value) for name, value in kept.items()}
