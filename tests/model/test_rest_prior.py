"""The prior of ``W22.1``: its marginal likelihood row by row, and the largest one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from markovblanket.model.rest_prior import RestPrior, log_marginal


def row_by_row(X, r):
    """Each row is multivariate t given those before: degrees of freedom and scatter grow with every row."""
    (_, q), total = X.shape, 0.0
    degrees, scatter = r + q + 1, r * np.eye(q)
    for x in X:
        df = degrees - q + 1
        total += stats.multivariate_t.logpdf(x, np.zeros(q), scatter / df, df)
        degrees, scatter = degrees + 1, scatter + np.outer(x, x)
    return total


@pytest.mark.parametrize(("n", "q"), [(1, 1), (8, 1), (5, 3), (3, 5), (20, 2)])
def test_the_marginal_likelihood_is_that_of_the_rows_one_after_the_other(n, q):
    X = np.random.default_rng([n, q]).standard_normal((n, q)) * np.geomspace(0.5, 2, q)
    sizes = np.linalg.eigvalsh(X @ X.T if n <= q else X.T @ X)
    found = [log_marginal(r, sizes, q, n) for r in (0.3, 2.0, 40.0)]
    expected = [row_by_row(X, r) for r in (0.3, 2.0, 40.0)]
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-8)


@pytest.mark.parametrize(("n", "q"), [(40, 5), (10, 30), (12, 12)])
def test_the_largest_marginal_likelihood_is_found(n, q):
    rng = np.random.default_rng([n, q])
    X = rng.standard_normal((n, q)) + rng.standard_normal((n, 1))
    X -= X.mean(axis=0)
    sizes = np.linalg.eigvalsh(X @ X.T if n <= q else X.T @ X).clip(0)
    prior = RestPrior.of_columns(X + 5.0)  # the means do not matter
    assert prior.degrees == pytest.approx(prior.ridge + q + 1)
    grid = np.geomspace(1e-2, 1e2 * (n + q), 4000)
    best = max(log_marginal(r, sizes, q, n - 1) for r in grid)
    assert log_marginal(prior.ridge, sizes, q, n - 1) > best - 1e-4


def test_nothing_left_outside_needs_no_prior():
    assert RestPrior.of_columns(np.zeros((4, 0))).degrees == 2.0
    assert RestPrior.fitted(np.zeros(0), 0, 4).ridge == 1.0
