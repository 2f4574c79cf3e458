"""NumPyro's NUTS on the posterior of (W11, W12, gamma); run by a Python that has NumPyro, on a file of matrices.

    python nuts.py FILE.npz OUT.npz WARMUP SECONDS PARAMETRISATION

T is integrated out. Coordinates are free: ``W11 = L L'`` with the logarithm of L's diagonal, ``log gamma``, and
W12 itself (``centred``) or ``gamma W12`` (``scaled``), whose prior does not depend on gamma. The likelihood is
written with ``A = I + F'F``, so that a gradient costs O(p m q). Everything is in double precision and compiled
beforehand; times are process times. Draws come in chunks, until so many seconds are over.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro.infer import NUTS

numpyro.enable_x64()

DEPTH, CHUNK = 10, 50


def lower(position: dict[str, Any]) -> Any:
    """L."""
    p = len(position["log_diagonal"])
    return jnp.diag(jnp.exp(position["log_diagonal"])).at[np.tril_indices(p, -1)].set(position["below"])


def cross(position: dict[str, Any], scaled: bool) -> Any:
    """W12."""
    return position["M"] * jnp.exp(-position["log_gamma"]) if scaled else position["M"]


def solved(L: Any, M: Any) -> Any:
    """``L^-1 M`` row by row: for so few rows far quicker than a call of LAPACK."""
    rows: list[Any] = []
    for i, row in enumerate(M):
        rows.append((row - sum(L[i, k] * rows[k] for k in range(i))) / L[i, i])
    return jnp.stack(rows)


def potential(data: Any, scaled: bool) -> Any:
    """Minus the log density in the free coordinates, Jacobians included."""
    F, Y, B, n = (jnp.asarray(data[name]) for name in ("F", "Y", "B", "n"))
    p = len(B)
    powers = p - jnp.arange(p) + 1.0  # dW11 = 2^p prod_i L_ii^(p-i+1) dL, and one more for the logarithm

    def minus_log_density(position: dict[str, Any]) -> Any:
        L, W12, log_gamma = lower(position), cross(position, scaled), position["log_gamma"]
        V = W12 @ F.T
        half, whole = solved(L, W12), solved(L, V)
        trace = jnp.sum(B * (L @ L.T)) + 2 * jnp.sum(V * Y) + jnp.sum(half**2) + jnp.sum(whole**2)
        prior = -jnp.exp(log_gamma) * jnp.sum(jnp.abs(W12)) + (0.0 if scaled else W12.size * log_gamma)
        hyperprior = data["shape"] * log_gamma - data["rate"] * jnp.exp(log_gamma)
        likelihood = n * jnp.sum(position["log_diagonal"]) - trace / 2
        return -(likelihood + jnp.sum(powers * position["log_diagonal"]) + prior + hyperprior)

    return minus_log_density


def start(data: Any, scaled: bool) -> dict[str, Any]:
    """About where the posterior is: W11 as if nothing were connected, W12 nearly zero."""
    p, q = len(data["B"]), data["F"].shape[1]
    L = np.linalg.cholesky(data["n"] * np.linalg.inv(data["B"]))
    M = 0.1 * np.random.default_rng(1).standard_normal((p, q)) * (1.0 if scaled else 0.1)
    below = L[np.tril_indices(p, -1)]
    position = {"log_diagonal": np.log(np.diag(L)), "below": below, "M": M, "log_gamma": np.array(3.0)}
    return jax.tree.map(jnp.asarray, position)


def sample(data: Any, warmup: int, seconds: float, scaled: bool) -> dict[str, Any]:
    """One chain; its adaptation first."""
    kernel = NUTS(potential_fn=potential(data, scaled), max_tree_depth=DEPTH, target_accept_prob=0.8)
    state = kernel.init(jax.random.key(1), warmup, start(data, scaled), model_args=(), model_kwargs={})

    def step(state: Any, _: None) -> tuple[Any, Any]:
        state = kernel.sample(state, (), {})
        L = lower(state.z)
        kept = {"W11": L @ L.T, "W12": cross(state.z, scaled), "gamma": jnp.exp(state.z["log_gamma"])}
        return state, kept | {"steps": state.num_steps, "diverging": state.diverging}

    chunk = jax.jit(lambda state: jax.lax.scan(step, state, None, length=CHUNK)).lower(state).compile()
    begin = time.process_time()
    for _ in range(warmup // CHUNK):
        state, _ = jax.block_until_ready(chunk(state))
    middle, kept = time.process_time(), []
    while time.process_time() < middle + seconds or len(kept) < 2:
        state, draws = jax.block_until_ready(chunk(state))
        kept.append(jax.tree.map(np.asarray, draws))
    times = {"warmup_seconds": middle - begin, "seconds": time.process_time() - middle}
    return {name: np.concatenate([draws[name] for draws in kept]) for name in kept[0]} | times


def main() -> None:
    """Read, sample, write."""
    source, target, warmup, seconds, form = sys.argv[1:]
    draws = sample(dict(np.load(source)), int(warmup), float(seconds), form == "scaled")
    np.savez(target, **draws, versions=f"NumPyro {numpyro.__version__}, JAX {jax.__version__}")


if __name__ == "__main__":
    main()
