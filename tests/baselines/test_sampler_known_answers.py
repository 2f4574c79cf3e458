"""The whole network where its posterior is known: by rejection, by a Wishart law, by its mode.

A false alarm of all checks together is as rare as :mod:`known_answers.monte_carlo` makes it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from scipy import stats

from baselines import reference
from known_answers.monte_carlo import assert_agree, assert_disagree, estimates, independent, known
from markovblanket.baselines import GraphicalLasso, WholeNetwork
from markovblanket.chains import run as run_chains
from statistical.reference import Array

CHAINS, WARMUP, BATCHES = 2, 100, 100


def rows(seed: int, n: int, d: int) -> Array:
    """Rows with a common factor, so that every pair of columns is correlated."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) + 0.7 * rng.standard_normal((n, 1))


def run(S: Array, n: int, lam: float, draws: int, seed: int = 1) -> dict[str, Array]:
    """Draws of the whole matrix, as the query of a network with no rest would show them: (chain, draw, ...)."""
    network = WholeNetwork(S, n, len(S), GraphicalLasso(lam))
    return {"W": run_chains.run(network, run_chains.Schedule(WARMUP, draws), chains=CHAINS, seed=seed)["W11"]}


def scalars(W: Array) -> dict[str, Array]:
    """Entries, their squares and signs, and log|W|."""
    x = {f"w[{i}, {j}]": W[..., i, j] for i in range(W.shape[-1]) for j in range(i + 1)}
    signs = {f"{name} > 0": (value > 0).astype(float) for name, value in x.items() if value.min() < 0}
    squares = {f"{name}^2": value**2 for name, value in x.items()}
    return {**x, **squares, **signs, "log|W|": np.linalg.slogdet(W)[1]}


def common(one: Mapping[str, Array], other: Mapping[str, Array]) -> tuple[dict[str, Array], dict[str, Array]]:
    """What is in both: a sign may never change in the shorter run."""
    names = [name for name in one if name in other]
    return {name: one[name] for name in names}, {name: other[name] for name in names}


def exact_and_run(d: int, n: int, lam: float, draws: int, rows_told: int | None = None):
    X = rows(d, n, d)
    S = X.T @ X
    exact = reference.draw_posterior(np.random.default_rng(3), 20_000, S, n, lam)
    found = run(S, rows_told or n, lam, draws)["W"]
    ours, theirs = common(scalars(found), scalars(exact))
    return estimates(ours, BATCHES), independent(theirs)


def test_agrees_with_exact_independent_draws() -> None:
    assert_agree(*exact_and_run(3, 10, 2.0, 2500))


@pytest.mark.slow
@pytest.mark.parametrize(("d", "n", "lam"), [(2, 10, 3.0), (3, 1, 1.0), (4, 30, 2.0), (5, 100, 1.0)])
def test_agrees_closely_with_exact_independent_draws(d: int, n: int, lam: float) -> None:
    assert_agree(*exact_and_run(d, n, lam, 15_000))


@pytest.mark.slow
def test_notices_a_row_too_many() -> None:
    assert_disagree(*exact_and_run(3, 10, 2.0, 8000, rows_told=11))


def test_one_variable_is_gamma() -> None:
    """``W ~ Gamma(n/2 + 1, rate (s + lam)/2)``, and sweeps are independent."""
    W = run(np.array([[7.0]]), 5, 2.0, 1000)["W"].ravel()
    assert stats.kstest(W, stats.gamma(5 / 2 + 1, scale=2 / (7.0 + 2.0)).cdf).pvalue > 1e-7


def test_without_a_prior_the_law_is_wishart() -> None:
    """As lam falls to nothing: ``Wishart(n + d + 1, S^-1)``, whose first two moments are known."""
    d, n = 4, 50
    S = rows(1, n, d).T @ rows(1, n, d)
    W, inverse = run(S, n, 1e-9, 1500)["W"], np.linalg.inv(S)
    df, size = n + d + 1, np.diag(inverse)
    pairs = [(i, j) for i in range(d) for j in range(i + 1)]
    mean = {f"w[{i}, {j}]": df * inverse[i, j] for i, j in pairs}
    square = {
        f"w[{i}, {j}]^2": df * (inverse[i, j] ** 2 + size[i] * size[j]) + (df * inverse[i, j]) ** 2
        for i, j in pairs
    }
    truth = known(mean | square)
    assert_agree(estimates({name: x for name, x in scalars(W).items() if name in truth}, BATCHES), truth)


def test_a_learned_rate_follows_its_law_given_the_matrix() -> None:
    """``p(lam | W)`` from the joint density, with the number of free entries as the power of lam."""
    prior, W = GraphicalLasso(shape=2.0, rate=3.0), np.array([[2.0, -0.5, 0.0], [-0.5, 1.0, 0.3], [0.0, 0.3, 4.0]])
    grid = np.linspace(1e-4, 12, 200_001)
    exponent = 0.5 + 0.3 + (2.0 + 1.0 + 4.0) / 2  # each pair once, the diagonal half
    density = grid ** (6 + 2.0 - 1) * np.exp(-grid * (3.0 + exponent))
    cdf = np.cumsum(density) / density.sum()
    rng = np.random.default_rng(0)
    drawn = [prior.draw_rate(rng, W) for _ in range(20_000)]
    assert stats.kstest(drawn, lambda x: np.interp(x, grid, cdf)).pvalue > 1e-7


def test_many_rows_pull_the_mean_to_the_mode() -> None:
    """The mode solves the frequentist graphical lasso, with ``(S + lam I)/n`` and penalty ``lam/n``."""
    penalised = pytest.importorskip("sklearn.covariance").graphical_lasso
    d, n, lam = 5, 20_000, 1500.0
    X = rows(2, n, d)
    S = X.T @ X
    W = run(S, n, lam, 800)["W"].reshape(-1, d, d)
    mode = penalised((S + lam * np.eye(d)) / n, lam / n, tol=1e-7, enet_tol=1e-12)[1]
    sd = W.std(axis=0)
    assert np.abs((W.mean(axis=0) - mode) / sd).max() < 0.3
    assert np.abs((np.linalg.inv(S / n) - mode) / sd).max() > 10  # what the prior does is large beside that
