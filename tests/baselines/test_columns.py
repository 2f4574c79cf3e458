"""The compiled column loop against plain linear algebra, to rounding: it is a function of the noise."""

from __future__ import annotations

import numpy as np
import pytest

from markovblanket.baselines import GraphicalLasso, WholeNetwork
from markovblanket.baselines._columns import draw_columns
from statistical.reference import Array, Generator


def conditional(W: Array, S: Array, D: Array, lam: float, j: int) -> tuple[Array, Array, Array]:
    """Mean and covariance of ``w_-j,j`` given the rest, and ``M = W_-j-j^-1``, with the column cut out."""
    rest = np.delete(np.arange(len(W)), j)
    M = np.linalg.inv(W[np.ix_(rest, rest)])
    C = np.linalg.inv((S[j, j] + lam) * M + np.diag(D[rest, j]))
    return -C @ S[rest, j], C, M


def plain(W: Array, S: Array, D: Array, lam: float, Z: Array, v: Array) -> Array:
    """Every column once, the noise whitened by the Cholesky factor of the precision."""
    W = W.copy()
    for j in range(len(W)):
        rest = np.delete(np.arange(len(W)), j)
        mean, C, M = conditional(W, S, D, lam, j)
        u = mean + np.linalg.solve(np.linalg.cholesky(np.linalg.inv(C)).T, Z[j, rest])
        W[j, rest] = W[rest, j] = u
        W[j, j] = v[j] + u @ M @ u
    return W


def setting(rng: Generator, d: int, n: int) -> tuple[Array, Array, Array, Array, Array]:
    """A precision matrix, a scatter, reciprocal scales over eight decades, and noise."""
    A, X = rng.standard_normal((d + 3, d)), rng.standard_normal((n, d)) * np.geomspace(0.3, 3, d)
    D = np.tril(10 ** rng.uniform(-4, 4, (d, d)), -1)
    return A.T @ A, X.T @ X, D + D.T, rng.standard_normal((d, d)), rng.gamma(n / 2 + 1, size=d)


def compiled(W: Array, *others: Array | float) -> tuple[Array, Array]:
    """W and its inverse after the loop, from copies."""
    W, Sigma = W.copy(), np.linalg.inv(W)
    draw_columns(W, Sigma, *others)
    return W, Sigma


@pytest.mark.parametrize(("d", "n"), [(1, 3), (2, 1), (3, 10), (8, 4), (30, 60)])
def test_every_column_is_what_plain_algebra_makes_of_the_noise(d: int, n: int) -> None:
    W, S, D, Z, v = setting(np.random.default_rng([d, n]), d, n)
    found, Sigma = compiled(W, S, D, 1.3, Z, v)
    expected = plain(W, S, D, 1.3, Z, v)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(Sigma @ found, np.eye(d), atol=1e-9 * np.linalg.cond(found))


def test_zero_noise_gives_the_mean_and_unit_noise_a_root_of_the_covariance() -> None:
    """Of the last column, which no other overwrites."""
    d = 6
    W, S, D, _, v = setting(np.random.default_rng(0), d, 12)
    quiet = compiled(W, S, D, 0.7, np.zeros((d, d)), v)[0]
    mean, C, _ = conditional(quiet, S, D, 0.7, d - 1)
    np.testing.assert_allclose(quiet[:-1, -1], mean, rtol=1e-8)
    roots = []
    for k in range(d - 1):
        Z = np.zeros((d, d))
        Z[-1, k] = 1.0
        roots.append(compiled(W, S, D, 0.7, Z, v)[0][:-1, -1] - mean)
    root = np.array(roots)
    np.testing.assert_allclose(root.T @ root, C, rtol=1e-6, atol=1e-10 * C.max())


def test_the_column_s_own_noise_and_scale_are_unused() -> None:
    W, S, D, Z, v = setting(np.random.default_rng(1), 5, 9)
    found = compiled(W, S, D, 1.0, Z, v)[0]
    other = compiled(W, S, D + np.diag([3.0, 1, 4, 1, 5]), 1.0, Z + 7 * np.eye(5), v)[0]
    np.testing.assert_array_equal(found, other)


def test_the_inverse_stays_one_for_thousands_of_columns() -> None:
    """Without the fresh inverse that every sweep starts from; the scales are drawn, so they reach extremes."""
    rng = np.random.default_rng(2)
    d, n, sweeps = 25, 40, 400
    X = rng.standard_normal((n, d)) + rng.standard_normal((n, 1))
    network = WholeNetwork(X.T @ X, n, 2, GraphicalLasso(lam=10.0))
    state = network.start(rng)
    W, D, Sigma = state.W.copy(), state.D, np.linalg.inv(state.W)
    for _ in range(sweeps):
        v = network.draw_conditional_precisions(rng, 10.0)
        draw_columns(W, Sigma, network.S, D, 10.0, rng.standard_normal((d, d)), v)
        D = network.prior.draw_reciprocal_scales(rng, W, 10.0)
        np.testing.assert_array_equal(W, W.T)
    assert np.linalg.eigvalsh(W)[0] > 0
    assert np.abs(Sigma @ W - np.eye(d)).max() < 1e-11
    assert np.abs(Sigma - Sigma.T).max() < 1e-12 * np.abs(Sigma).max()


def test_scales_reach_zero_and_infinity() -> None:
    """Entries pinned at zero, and entries that the prior leaves alone."""
    W, S, D, Z, v = setting(np.random.default_rng(3), 4, 9)
    D[0, 1] = D[1, 0] = 1e40
    D[2, 3] = D[3, 2] = 0.0
    found, Sigma = compiled(W, S, D, 1.0, Z, v)
    assert abs(found[0, 1]) < 1e-19
    assert np.linalg.eigvalsh(found)[0] > 0
    np.testing.assert_allclose(Sigma @ found, np.eye(4), atol=1e-12)
