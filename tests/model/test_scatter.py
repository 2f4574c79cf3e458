"""The scatter and its factor, against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest

from markovblanket.model.scatter import from_columns, from_matrix, times_transpose

SHAPES = [(30, 6), (6, 6), (4, 9), (1, 3), (2, 1)]


@pytest.mark.parametrize(("n", "q"), SHAPES)
def test_the_factor_reproduces_the_scatter_with_orthogonal_rows(n, q):
    rng = np.random.default_rng(n * q)
    X1, X2 = rng.standard_normal((n, 2)), rng.standard_normal((n, q)) @ rng.standard_normal((q, q))
    scatter = from_columns(X1, X2)
    gram = scatter.F @ scatter.F.T
    np.testing.assert_allclose(scatter.F.T @ scatter.F, X2.T @ X2, atol=1e-11 * np.abs(X2.T @ X2).max())
    np.testing.assert_allclose(gram, np.diag(scatter.row_sizes), atol=1e-11 * gram.max())
    np.testing.assert_allclose(scatter.column_sizes, np.diag(X2.T @ X2), rtol=1e-10)
    np.testing.assert_allclose(scatter.S12, X1.T @ X2)
    np.testing.assert_allclose(scatter.B, X1.T @ X1 + np.eye(2))
    assert len(scatter.F) <= min(n, q)


@pytest.mark.parametrize(("n", "q"), SHAPES)
def test_the_diagonal_of_the_inverse(n, q):
    rng = np.random.default_rng(n + q)
    X2 = rng.standard_normal((n, q)) * 10.0
    scatter = from_columns(X2[:, :1], X2)
    expected = np.diag(np.linalg.inv(X2.T @ X2 + scatter.rest_prior.ridge * np.eye(q)))
    np.testing.assert_allclose(scatter.inverse_diagonal, expected, rtol=1e-9)
    assert scatter.rest_degrees == scatter.rest_prior.degrees + n


def test_both_doors_see_the_same_data():
    X = np.random.default_rng(0).standard_normal((12, 7))
    one, other = from_columns(X[:, :3], X[:, 3:]), from_matrix(X.T @ X, n=12, p=3)
    np.testing.assert_allclose(one.F.T @ one.F, other.F.T @ other.F, atol=1e-12)
    np.testing.assert_allclose(one.S12, other.S12, atol=1e-12)
    np.testing.assert_allclose(one.inverse_diagonal, other.inverse_diagonal, rtol=1e-10)


def test_columns_that_were_centred_count_one_row_less():
    X = np.random.default_rng(0).standard_normal((12, 7))
    assert from_columns(X[:, :3], X[:, 3:]).n == 12
    assert from_columns(X[:, :3], X[:, 3:], centred=True).n == 11


def test_each_variable_keeps_its_accuracy_whatever_the_others_scales():
    rng = np.random.default_rng(1)
    scales = 10.0 ** np.array([-60, -6, 0, 6, 60])
    X = rng.standard_normal((20, 5)) * scales
    scatter = from_matrix(X.T @ X, n=20, p=1)
    relative = (scatter.F.T @ scatter.F) / np.outer(scales[1:], scales[1:])
    X = X / scales
    np.testing.assert_allclose(relative, (X.T @ X)[1:, 1:], rtol=1e-9, atol=1e-9)


BAD = {
    "not square": (np.ones((2, 3)), "square"),
    "a vector": (np.ones(4), "square"),
    "not finite": (np.diag([1.0, np.nan]), "not finite"),
    "infinite": (np.diag([1.0, np.inf]), "not finite"),
    "not symmetric": (np.array([[1.0, 0.5], [0.4, 1.0]]), "not symmetric"),
    "negative variance": (np.diag([1.0, -1.0]), "negative diagonal"),
    "covariance too large": (np.array([[1.0, 2.0], [2.0, 1.0]]), "semi-definite"),
    "covariance without variance": (np.array([[1.0, 1.0], [1.0, 0.0]]), "semi-definite"),
    "indefinite": (np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]]), "semi-definite: an eigenvalue"),
}


@pytest.mark.parametrize(("S", "message"), BAD.values(), ids=BAD)
def test_what_is_no_scatter_is_refused(S, message):
    with pytest.raises(ValueError, match=message):
        from_matrix(S, n=5, p=1)


def test_rounding_is_forgiven():
    """A scatter computed in another order, or of singular data, is off by rounding and must pass."""
    X = np.random.default_rng(2).standard_normal((3, 8))
    S = X.T @ X
    S[0, 1] *= 1 + 1e-12
    scatter = from_matrix(S, n=3, p=2)
    assert len(scatter.F) >= 3
    np.testing.assert_allclose(scatter.F.T @ scatter.F, (X.T @ X)[2:, 2:], atol=1e-10)


@pytest.mark.parametrize("nonzero", [0, 2, 30, 240])
def test_the_product_with_a_factor_is_that_of_whole_matrices_however_many_entries_are_zero(nonzero):
    rng = np.random.default_rng(nonzero)
    M, F = np.zeros((8, 30)), np.asfortranarray(rng.standard_normal((12, 30)))
    M.flat[rng.choice(M.size, nonzero, replace=False)] = rng.standard_normal(nonzero)
    np.testing.assert_allclose(times_transpose(M, F), M @ F.T, rtol=1e-12, atol=1e-14)
