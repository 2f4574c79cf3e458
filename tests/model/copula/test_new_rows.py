"""The rest of a new row given what is known of it, against dense algebra and brute force."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import stats

from markovblanket.model.copula import new_rows
from markovblanket.model.copula.new_rows import Completion, Rows
from markovblanket.variates import wishart

ALARM, NAN = 1e-7, np.nan
SHAPES = {  # rows, columns, J, degrees of freedom
    "tall": (30, 5, [1, 3], 26),
    "wide": (4, 9, [0, 8], 14),
    "one column": (6, 4, [2], 5),
    "K is empty": (8, 3, [0, 1, 2], 6),
    "more columns than rows": (3, 6, [5, 4, 0, 1], 7),
}


def fitted(n, q, J, degrees=20, ridge=2.5):
    """Correlated columns, and the completion whose unknown cells are in columns J."""
    rng = np.random.default_rng([n, q])
    X = rng.standard_normal((n, q)) + 1.5 * rng.standard_normal((n, 1)) * rng.choice([-1, 1], q)
    K = np.setdiff1d(np.arange(q), J)
    return X, Completion(X[:, K], K, np.array(J, dtype=np.intp), degrees, ridge)


# The precision matrix ---------------------------------------------------------------------------------


def innovations(X, source, draws):
    """Uniform numbers, independent, that rows J of ``Wishart_q(degrees, A^-1)`` were made from; by dense algebra.

    Bartlett: ``W_JJ = R T T' R'`` with ``R R' = (A^-1)_JJ``, chi-squares on the diagonal of T and normals below.
    Then ``W_KJ = -A_KK^-1 A_KJ W_JJ + C'^-1 Z L'`` with ``A_KK = C C'``, ``W_JJ = L L'`` and normal Z.
    """
    J, K, A = source.J, source.K, source.ridge * np.eye(X.shape[1]) + X.T @ X
    R = np.linalg.cholesky(np.linalg.inv(A)[np.ix_(J, J)])
    C, P = np.linalg.cholesky(A[np.ix_(K, K)]), np.linalg.solve(A[np.ix_(K, K)], A[np.ix_(K, J)])
    L = np.linalg.cholesky(np.array([W_JJ for W_JJ, _ in draws]))
    T = np.linalg.cholesky(np.linalg.solve(R, np.linalg.solve(R, L @ L.transpose(0, 2, 1)).transpose(0, 2, 1)))
    Z = C.T @ np.linalg.solve(L, np.array([(W_KJ + P @ W_JJ).T for W_JJ, W_KJ in draws])).transpose(0, 2, 1)
    diagonal = stats.chi2.cdf(np.einsum("sii->si", T) ** 2, source.degrees - np.arange(len(J)))
    below = stats.norm.cdf(T[:, *np.tril_indices(len(J), -1)])
    return diagonal, below, stats.norm.cdf(Z.reshape(len(draws), -1))


def smallest_p(X, source, draws):
    """Of the marginal laws, one by one, and of the correlations between them all, Bonferroni among these."""
    u = np.hstack(innovations(X, source, draws))
    marginal = [stats.kstest(column, "uniform").pvalue for column in u.T]
    if u.shape[1] == 1:
        return min(marginal)
    r = np.corrcoef(u, rowvar=False)[np.triu_indices(u.shape[1], 1)]
    return min(*marginal, 2 * stats.norm.sf(np.abs(r).max() * np.sqrt(len(u))) * len(r))


def precisions(X, source, count=1500, seed=0):
    rng = np.random.default_rng(seed)
    return [source.draw_precision(rng, X[:, source.J]) for _ in range(count)]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_rows_of_the_precision_are_made_of_what_they_should_be(shape):
    """Kolmogorov-Smirnov at 1e-7 for each entry."""
    X, source = fitted(*shape)
    draws = precisions(X, source)
    assert draws[0][0].shape == (len(source.J),) * 2
    assert draws[0][1].shape == (len(source.K), len(source.J))
    assert smallest_p(X, source, draws) > ALARM


@pytest.mark.parametrize("shape", [SHAPES["tall"], SHAPES["wide"]], ids=["tall", "wide"])
def test_the_rows_of_the_precision_have_the_law_of_the_whole_wishart(shape):
    """Against q x q draws, whatever the algebra says; Kolmogorov-Smirnov at 1e-7 for each of six functionals."""
    X, source = fitted(*shape)
    J, K, rng = source.J, source.K, np.random.default_rng(7)
    V = np.linalg.inv(source.ridge * np.eye(X.shape[1]) + X.T @ X)
    whole = (wishart.draw(rng, source.degrees, V) for _ in range(1500))
    brute = [(W[np.ix_(J, J)], W[np.ix_(K, J)]) for W in whole]

    def functionals(draws):
        for W_JJ, W_KJ in draws:
            yield (
                *(W_JJ[0, 0], W_JJ[0, -1], np.linalg.slogdet(W_JJ)[1]),
                *(W_KJ[0, 0], W_KJ[-1].sum(), np.sum(W_KJ @ W_JJ)),
            )

    ours, theirs = (np.array(list(functionals(part))).T for part in (precisions(X, source), brute))
    for one, other in zip(ours, theirs, strict=True):
        assert stats.ks_2samp(one, other).pvalue > ALARM


def fewer_degrees(rng, df, root, draw=wishart.draw_from_factor):
    return draw(rng, df - 1, root)


def transposed_root(rng, df, root, draw=wishart.draw_from_factor):
    return draw(rng, df, root.T)


@pytest.mark.parametrize("planted", [fewer_degrees, transposed_root])
def test_a_wrong_law_of_w_jj_is_caught(planted, monkeypatch):
    """One degree of freedom too few, and the other triangular root of the inverse."""
    X, source = fitted(*SHAPES["K is empty"])
    monkeypatch.setattr(new_rows.wishart, "draw_from_factor", planted)
    assert smallest_p(X, source, precisions(X, source)) < ALARM


PLANTED = {
    "no mean": lambda W_JJ, W_KJ, P: W_KJ + P @ W_JJ,
    "its sign": lambda W_JJ, W_KJ, P: -W_KJ,
    "the order of K": lambda W_JJ, W_KJ, P: W_KJ[::-1],
    "the order of J": lambda W_JJ, W_KJ, P: W_KJ[:, ::-1],
}


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_a_wrong_law_of_w_kj_is_caught(planted):
    X, source = fitted(*SHAPES["tall"])
    A, J, K = source.ridge * np.eye(5) + X.T @ X, source.J, source.K
    P = np.linalg.solve(A[np.ix_(K, K)], A[np.ix_(K, J)])
    draws = [(W_JJ, planted(W_JJ, W_KJ, P)) for W_JJ, W_KJ in precisions(X, source, 1000)]
    assert smallest_p(X, source, draws) < ALARM


def test_no_fitted_rows_leave_the_prior():
    """``Wishart_3(4, I)``; Kolmogorov-Smirnov at 1e-7."""
    source = Completion(np.empty((0, 2)), np.array([0, 2]), np.array([1]), 4)
    assert smallest_p(np.empty((0, 3)), source, precisions(np.empty((0, 3)), source)) > ALARM


def test_many_fitted_rows_take_no_square_of_them():
    X, source = fitted(1500, 4, [3])
    tracemalloc.start()
    source.draw_precision(np.random.default_rng(0), X[:, [3]])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * X.nbytes


# Cells, given the matrix ------------------------------------------------------------------------------

Q = 6
J, K = np.array([1, 3, 4, 5]), np.array([0, 2])
LOADINGS = np.array([1.0, -0.9, 0.8, 1.1, 0.7, -0.6])
W = np.linalg.inv(0.4 * np.eye(Q) + np.outer(LOADINGS, LOADINGS))
KNOWN = np.array([0.9, 0.0, 0.2, 0.0, 0.0, -1.2])  # column 5 may be unknown, but is not here
FREE = np.array([1, 3, 4])
COPIES = 3000


@pytest.fixture
def frozen(monkeypatch):
    """A completion whose precision matrix is always W."""
    monkeypatch.setattr(Completion, "draw_precision", lambda *_: (W[np.ix_(J, J)], W[np.ix_(K, J)]))
    return Completion(np.zeros((2, len(K))), K, J, Q + 1)


def conditional(matrix=W):
    """Mean and covariance of the free cells given the others, by dense algebra."""
    others = np.setdiff1d(np.arange(Q), FREE)
    covariance = np.linalg.inv(matrix[np.ix_(FREE, FREE)])
    return -covariance @ matrix[np.ix_(FREE, others)] @ KNOWN[others], covariance


def copies(lower=NAN, upper=NAN):
    """Many equal rows, independent of each other, the free cells within bounds."""
    low, high = np.tile(KNOWN, (COPIES, 1)), np.tile(KNOWN, (COPIES, 1))
    low[:, FREE], high[:, FREE] = lower, upper
    return Rows.between(low, high, np.zeros((COPIES, Q)))


def settle(source, rows, seed=0, draws=8):
    """Where the cells are after some draws, each from where the last one ended."""
    rng = np.random.default_rng(seed)
    for _ in range(draws):
        rows = Rows.between(rows.lower, rows.upper, source.draw(rng, rows, np.empty((2, len(J)))))
    return rows.X


def p_values(cells, mean, covariance):
    """Of each cell, and of all together: their distance from the mean is a chi-square."""
    for k in range(len(mean)):
        yield stats.kstest(cells[:, k], stats.norm(mean[k], covariance[k, k] ** 0.5).cdf).pvalue
    centred = cells - mean
    distance = np.einsum("ij,jk,ik->i", centred, np.linalg.inv(covariance), centred)
    yield stats.kstest(distance, stats.chi2(len(mean)).cdf).pvalue
    yield stats.kstest(centred.sum(axis=1), stats.norm(0, covariance.sum() ** 0.5).cdf).pvalue


def test_unknown_cells_reach_their_law_given_the_known_ones(frozen):
    """Kolmogorov-Smirnov at 1e-7 for each of five functionals."""
    X = settle(frozen, copies())
    assert min(p_values(X[:, FREE], *conditional())) > ALARM
    np.testing.assert_array_equal(X[:, [0, 2, 5]], np.tile(KNOWN[[0, 2, 5]], (COPIES, 1)))


def test_cells_drawn_without_the_fixed_columns_are_caught(frozen, monkeypatch):
    monkeypatch.setattr(Completion, "draw_precision", lambda *_: (W[np.ix_(J, J)], 0 * W[np.ix_(K, J)]))
    assert min(p_values(settle(frozen, copies())[:, FREE], *conditional())) < ALARM


def test_the_right_law_is_left_as_it_is(frozen):
    """Exact draws are still exact after one draw, at 1e-7; whatever is not invariant would show."""
    mean, covariance = conditional()
    rows = copies()
    rows.X[:, FREE] = np.random.default_rng(3).multivariate_normal(mean, covariance, COPIES)
    assert min(p_values(settle(frozen, rows, draws=1)[:, FREE], mean, covariance)) > ALARM


BOUNDS = {
    "an interval, a half line, anything": ([-0.3, -np.inf, NAN], [0.7, 0.3, NAN]),
    "two tails": ([0.3, 0.6, NAN], [np.inf, np.inf, NAN]),
    "narrow": ([-0.1, NAN, 0.0], [0.1, NAN, 0.4]),
}


@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
def test_cells_between_bounds_have_the_law_that_rejection_gives(frozen, bounds):
    """Kolmogorov-Smirnov at 1e-7 for each cell and for their sum."""
    rows = copies(*bounds)
    X = settle(frozen, rows)
    assert ((rows.lower - 1e-12 <= X) & (rows.upper + 1e-12 >= X)).all()
    free = np.random.default_rng(5).multivariate_normal(*conditional(), 300_000)
    low, high = rows.lower[0, FREE], rows.upper[0, FREE]
    kept = free[((low <= free) & (free <= high)).all(axis=1)]
    assert len(kept) > COPIES
    for one, other in zip(X[:, FREE].T, kept.T, strict=True):
        assert stats.ks_2samp(one, other).pvalue > ALARM
    assert stats.ks_2samp(X[:, FREE].sum(axis=1), kept.sum(axis=1)).pvalue > ALARM


def test_rows_with_different_gaps_do_not_meet(frozen):
    """Each row has its own law: one with a single gap, one with all that may be, one with none; at 1e-7."""
    rows = copies()
    X, lower, upper = (np.tile(part[0], (COPIES, 1)) for part in (rows.X, rows.lower, rows.upper))
    lower[1::3], upper[1::3] = KNOWN, KNOWN
    lower[2::3], upper[2::3] = KNOWN, KNOWN
    lower[2::3, 4], upper[2::3, 4] = -np.inf, np.inf
    X = settle(frozen, Rows.between(lower, upper, X))
    assert min(p_values(X[::3][:, FREE], *conditional())) > ALARM
    np.testing.assert_array_equal(X[1::3], np.tile(KNOWN, (len(X[1::3]), 1)))
    others = [k for k in range(Q) if k != 4]
    mean, sd = -(W[4, others] @ KNOWN[others]) / W[4, 4], W[4, 4] ** -0.5
    assert stats.kstest(X[2::3, 4], stats.norm(mean, sd).cdf).pvalue > ALARM
    np.testing.assert_array_equal(X[2::3][:, others], np.tile(KNOWN[others], (len(X[2::3]), 1)))


def test_without_fixed_columns_all_is_drawn_from_the_marginal_law(monkeypatch):
    """A row of which nothing is known; K is empty; at 1e-7."""
    monkeypatch.setattr(Completion, "draw_precision", lambda *_: (W, np.empty((0, Q))))
    source = Completion(np.empty((2, 0)), np.empty(0, dtype=np.intp), np.arange(Q), Q + 1)
    nothing = np.full((COPIES, Q), np.nan)
    X = settle(source, Rows.between(nothing, nothing, np.zeros((COPIES, Q))), draws=20)
    assert min(p_values(X, np.zeros(Q), np.linalg.inv(W))) > ALARM


def test_where_all_is_known_nothing_is_drawn():
    """J is empty, and nobody asks for a random number."""
    X, source = fitted(5, 3, [])
    rng = np.random.default_rng(0)
    out = source.draw(rng, Rows.between(X, X, np.zeros(X.shape)), np.empty((5, 0)))
    np.testing.assert_array_equal(out, X)
    assert rng.random() == np.random.default_rng(0).random()


def test_a_draw_leaves_the_rows_alone(frozen):
    rows = copies()
    before = rows.X.copy()
    after = frozen.draw(np.random.default_rng(0), rows, np.empty((2, len(J))))
    np.testing.assert_array_equal(rows.X, before)
    assert (after[:, FREE] != before[:, FREE]).all()


def test_rows_begin_as_near_as_their_bounds_allow():
    lower, upper = np.array([[NAN, 1.0, -np.inf, 2.0]]), np.array([[NAN, 3.0, -1.0, 2.0]])
    rows = Rows.between(lower, upper, np.zeros((1, 4)))
    np.testing.assert_array_equal(rows.X, [[0, 1, -1, 2]])
    np.testing.assert_array_equal(rows.lower, [[-np.inf, 1, -np.inf, 2]])
    np.testing.assert_array_equal(rows.upper, [[np.inf, 3, -1, 2]])
    np.testing.assert_array_equal(rows.unknown, [[True, True, True, False]])
