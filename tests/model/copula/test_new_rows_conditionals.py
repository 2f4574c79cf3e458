"""A cell given its row: against dense algebra, and in the smallest case against the law written out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from markovblanket.contracts import Columns
from markovblanket.model.copula import new_rows
from markovblanket.model.copula.new_rows import Completion
from markovblanket.model.rest_prior import RestPrior
from markovblanket.variates import wishart

P, Q, N, ALARM = 2, 5, 7, 1e-7
PRIOR = RestPrior(degrees=3.5, ridge=2.0)
PLACES = {"one": [3], "some": [0, 2, 4], "all": [0, 1, 2, 3, 4]}


def world(seed=0):
    """A whole precision matrix and rows of cells."""
    rng = np.random.default_rng(seed)
    W = wishart.draw(rng, P + Q + 3, np.eye(P + Q))
    return W, 0.7 + rng.standard_normal((N, P + Q))


def by_covariance(W, X, k):
    """Mean and sd of column k given the others, by regression on them with an intercept."""
    C, others = np.linalg.inv(W), np.delete(np.arange(len(W)), k)
    beta = np.linalg.solve(C[np.ix_(others, others)], C[others, k])
    slopes = X[:, others] @ beta
    return slopes + (X[:, k] - slopes).mean(), np.sqrt(C[k, k] - C[k, others] @ beta)


def known(W, changed=lambda W_JJ, W_KJ: (W_JJ, W_KJ)):
    """In place of a draw of ``W22.1``: the blocks of the one that belongs to W."""
    W22_1 = W[P:, P:] - W[P:, :P] @ np.linalg.solve(W[:P, :P], W[:P, P:])

    def draw_precision(self, rng, X_J):
        return changed(W22_1[np.ix_(self.J, self.J)], W22_1[np.ix_(self.K, self.J)])

    return draw_precision


def largest_error(W, X, J):
    """Of means and sds of columns J of the rest; relative to the true sds."""
    columns, W11, W12 = Columns(X[:, :P], X[:, P:]), W[:P, :P], W[:P, P:]
    mean, sd = new_rows.of_rest(np.random.default_rng(0), W11, W12, columns, np.array(J), PRIOR)
    truth = [by_covariance(W, X, P + j) for j in J]
    return max(np.abs(np.append(mean[:, k] - m, sd[k] - s)).max() / s for k, (m, s) in enumerate(truth))


def test_of_query_is_the_regression_on_all_others():
    W, X = world()
    mean, sd = new_rows.of_query(W[:P, :P], W[:P, P:], Columns(X[:, :P], X[:, P:]))
    for i in range(P):
        expected = by_covariance(W, X, i)
        np.testing.assert_allclose(mean[:, i], expected[0], rtol=1e-9)
        assert sd[i] == pytest.approx(expected[1])


@pytest.mark.parametrize("J", PLACES.values(), ids=PLACES)
def test_of_rest_is_the_regression_on_all_others(J, monkeypatch):
    W, X = world()
    monkeypatch.setattr(Completion, "draw_precision", known(W))
    assert largest_error(W, X, J) < 1e-9


def test_a_cell_says_nothing_about_itself(monkeypatch):
    """Of both kinds, moved far away: but for the intercept its own mean stays, that of another column does not."""
    W, X = world()
    monkeypatch.setattr(Completion, "draw_precision", known(W))

    def means(Y):
        W11, W12, columns = W[:P, :P], W[:P, P:], Columns(Y[:, :P], Y[:, P:])
        rest = new_rows.of_rest(np.random.default_rng(0), W11, W12, columns, np.arange(Q), PRIOR)
        means = np.hstack([new_rows.of_query(W11, W12, columns)[0], rest[0]])
        return means - means.mean(axis=0)

    for k in (0, P + 1):
        moved = X.copy()
        moved[:, k] = 50.0
        still = np.isclose(means(moved), means(X)).all(axis=0)
        assert np.flatnonzero(still).tolist() == [k]


PLANTED = {
    "the order of K": lambda W_JJ, W_KJ: (W_JJ, W_KJ[::-1]),
    "the order of J": lambda W_JJ, W_KJ: (W_JJ[::-1, ::-1], W_KJ),
    "no K": lambda W_JJ, W_KJ: (W_JJ, 0 * W_KJ),
    "another scale": lambda W_JJ, W_KJ: (1.01 * W_JJ, W_KJ),
}


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_a_wrong_precision_is_caught(planted, monkeypatch):
    W, X = world()
    monkeypatch.setattr(Completion, "draw_precision", known(W, planted))
    assert largest_error(W, X, [0, 2, 4]) > 1e-3


def w22_1(surplus=0, count=3000):
    """In a table of two columns, ``W22.1`` as the sd of a cell of the rest has it, in units of its scale."""
    rng, n, w11, w12 = np.random.default_rng(1), 12, 1.7, -0.8
    x = 3.0 + rng.standard_normal((n, 2))
    columns, W11, W12 = Columns(x[:, :1], x[:, 1:]), np.array([[w11]]), np.array([[w12]])
    sds = [new_rows.of_rest(rng, W11, W12, columns, np.array([0]), PRIOR)[1][0] for _ in range(count)]
    scale = 1 / (PRIOR.ridge + n * x[:, 1].var())
    return stats.kstest(
        (np.array(sds) ** -2 - w12**2 / w11) / scale, "chi2", args=(PRIOR.degrees + n - 1 + surplus,)
    ).pvalue


def test_of_rest_draws_the_precision_of_the_rest():
    """A chi-square with the right degrees of freedom, by Kolmogorov and Smirnov at 1e-7."""
    assert w22_1() > ALARM
    assert w22_1(surplus=2) < ALARM
