"""Square roots: exact where it matters, and loud where there is none."""

import numpy as np
import pytest

from markovblanket.variates.factors import cholesky, solve_lower
from markovblanket.variates.mgig import semidefinite_factor


def test_factor_of_a_badly_scaled_matrix_keeps_every_entry():
    rng = np.random.default_rng(0)
    size = np.array([1e120, 1.0, 1e-7, 1e-100, 1e30])
    root = size[:, None] * rng.standard_normal((5, 5))
    G = root @ root.T
    H = semidefinite_factor(G)
    correlation = (H @ H.T - G) / size / size[:, None]
    assert np.abs(correlation).max() < 1e-13


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_factor_of_a_singular_matrix(rank):
    root = np.random.default_rng(1).standard_normal((4, rank))
    root[2] = 0.0
    G = root @ root.T
    H = semidefinite_factor(G)
    np.testing.assert_allclose(H @ H.T, G, atol=1e-14)
    assert np.all(H[2] == 0.0)
    assert np.linalg.matrix_rank(H, tol=1e-6) == min(rank, 3)


@pytest.mark.parametrize(
    "G",
    [
        np.array([[1.0, 2.0], [2.0, 1.0]]),
        np.array([[0.0, 1.0], [1.0, 1.0]]),
        np.diag([1.0, -1e-30]),
        np.diag([1.0, np.nan]),
        1e-100 * np.array([[1.0, 1.001], [1.001, 1.0]]),
    ],
)
def test_an_indefinite_matrix_is_refused(G):
    with pytest.raises(ValueError, match="positive semi-definite"):
        semidefinite_factor(G)


@pytest.mark.parametrize("matrix", [-np.eye(2), np.zeros((2, 2)), np.full((2, 2), np.nan), np.diag([1.0, np.inf])])
def test_cholesky_names_the_culprit(matrix):
    with pytest.raises(ValueError, match="the culprit must be positive definite"):
        cholesky(matrix, "the culprit")


def test_solve_lower_against_numpy():
    rng = np.random.default_rng(2)
    L = np.tril(rng.standard_normal((6, 6))) + 4 * np.eye(6)
    M = rng.standard_normal((6, 3))
    before = L.copy(), M.copy()
    np.testing.assert_allclose(L @ solve_lower(L, M), M, atol=1e-13)
    np.testing.assert_array_equal(L, before[0])
    np.testing.assert_array_equal(M, before[1])
