"""The latent layer against dense algebra, and its margins against their laws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from markovblanket.contracts import ChainState
from markovblanket.model.copula import _cut_points, _margins
from markovblanket.model.copula._margins import Gaps, Levels
from markovblanket.model.copula.latent import Copula, centred
from markovblanket.model.rest_prior import RestPrior
from markovblanket.variates import wishart

SHAPES = {
    "tall": (30, 2, 5, [1, 3]),
    "wide": (4, 2, 9, [0, 8]),
    "all move": (12, 2, 4, [0, 1, 2, 3]),
    "none move": (9, 2, 4, []),
    "more move than rows are left": (5, 1, 7, [0, 1, 2, 3]),
}


def copula(n, p, q, moving, queries=()):
    """Moving columns without any observation, far from zero; all others are centred."""
    X, empty = centred(np.random.default_rng([n, p, q]).standard_normal((n, p + q))), Gaps(np.arange(n))
    X[:, [*queries, *(p + k for k in moving)]] += 1.5
    return Copula(X[:, :p], X[:, p:], dict.fromkeys(queries, empty), dict.fromkeys(moving, empty), collapsed=False)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_scatter_is_that_of_the_columns(shape):
    source = copula(*shape)
    columns = source.start()
    columns.X2[:, shape[3]] += 1.0  # the fixed part was worked out for other values of these
    scatter = source.scatter(columns)
    X1, X2 = centred(columns.X1), centred(columns.X2)
    assert scatter.n == len(X1) - 1
    np.testing.assert_allclose(scatter.F.T @ scatter.F, X2.T @ X2, atol=1e-11)
    np.testing.assert_allclose(scatter.S12, X1.T @ X2, atol=1e-12)
    np.testing.assert_allclose(scatter.B, X1.T @ X1 + np.eye(shape[1]))
    assert len(scatter.F) <= min(X2.shape)
    expected = np.diag(np.linalg.inv(X2.T @ X2 + source.rest_prior.ridge * np.eye(shape[2])))
    np.testing.assert_allclose(scatter.inverse_diagonal, expected, rtol=1e-9)


def random_precision(rng, p, q):
    """A precision matrix by its blocks, and whole."""
    W11, W221 = wishart.draw(rng, p + 4, np.eye(p)), wishart.draw(rng, q + 4, np.eye(q))
    W12 = rng.standard_normal((p, q))
    W22 = W221 + W12.T @ np.linalg.solve(W11, W12)
    return W11, W12, W221, np.block([[W11, W12], [W12.T, W22]])


def conditional(X, W, j):
    """Mean and sd of column j of rows of ``N(0, W^-1)`` given the others, entry by entry."""
    others = [k for k in range(len(W)) if k != j]
    return -(X[:, others] @ W[others, j]) / W[j, j], W[j, j] ** -0.5


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_every_column_is_drawn_given_all_the_others_as_they_stand(shape, monkeypatch):
    _, p, q, moving = shape
    source = copula(*shape, queries=range(p))
    W11, W12, W221, W = random_precision(np.random.default_rng(5), p, q)
    fixed = [k for k in range(q) if k not in moving]
    W_JJ, X_K = W221[np.ix_(moving, moving)], source.X2[:, fixed]
    monkeypatch.setattr(Copula, "_draw_W22", lambda *_: (W_JJ, X_K @ W221[np.ix_(fixed, moving)]))
    state = ChainState(W11, W12, np.ones((p, q)), {}, source.start())
    after = source.refresh(np.random.default_rng(0), state)
    X, rng = np.column_stack([source.X1, source.X2]), np.random.default_rng(0)
    for j in [*source.query, *(p + k for k in source.rest)]:
        mean, sd = conditional(X, W, j)
        intercept = (X[:, j] - mean).mean() + sd * rng.standard_normal() / np.sqrt(len(X))
        mean = mean + intercept
        X[:, j] = mean + sd * rng.standard_normal(len(X))
    np.testing.assert_allclose(np.column_stack([after.X1, after.X2]), X, rtol=1e-9, atol=1e-9)


def test_refreshing_leaves_the_old_columns_alone():
    source = copula(20, 2, 5, [1, 3], queries=[0])
    before = source.X1.copy(), source.X2.copy()
    W11, W12, *_ = random_precision(np.random.default_rng(5), 2, 5)
    source.refresh(np.random.default_rng(0), ChainState(W11, W12, np.ones((2, 5)), {}, source.start()))
    np.testing.assert_array_equal(source.X1, before[0])
    np.testing.assert_array_equal(source.X2, before[1])


@pytest.mark.parametrize("shape", [SHAPES["tall"], SHAPES["wide"], SHAPES["all move"]])
def test_the_rows_of_w22_have_the_law_of_the_whole_wishart(shape):
    """Against brute force, a q x q draw; Kolmogorov-Smirnov at 1e-7 for each of six functionals."""
    n, _, q, moving = shape
    source, rng = copula(*shape), np.random.default_rng(7)
    X2 = centred(source.X2)
    fixed = [k for k in range(q) if k not in moving]
    A = X2.T @ X2 + source.rest_prior.ridge * np.eye(q)

    def functionals(W_JJ, cross):
        return (
            W_JJ[0, 0],
            W_JJ[0, -1],
            np.linalg.slogdet(W_JJ)[1],
            cross[0, 0],
            cross[-1, -1],
            (cross @ W_JJ)[0, 0],
        )

    ours = [functionals(*source._draw_W22(rng, source.X2[:, moving])) for _ in range(3000)]
    brute = []
    for _ in range(3000):
        W = wishart.draw(rng, source.rest_prior.degrees + n - 1, np.linalg.inv(A))
        brute.append(functionals(W[np.ix_(moving, moving)], X2[:, fixed] @ W[np.ix_(fixed, moving)]))
    for one, other in zip(np.transpose(ours), np.transpose(brute), strict=True):
        if np.ptp(one) > 0:
            assert stats.ks_2samp(one, other).pvalue > 1e-7


# Margins ----------------------------------------------------------------------------------------------


def draw(rng, x, mean, sd, margin):
    return _margins.draw_column(rng, x, mean, sd, margin.rows, margin.edges, margin.unit)


def test_gaps_move_and_nothing_else_does():
    x, mean = np.arange(6.0), np.full(6, 3.0)
    missing = np.array([1, 4])
    draws = np.stack([draw(np.random.default_rng(k), x, mean, 0.5, Gaps(missing)) for k in range(4000)])
    kept = np.setdiff1d(np.arange(6), missing)
    assert (draws[:, kept] == x[kept]).all()
    for column in missing:
        assert stats.kstest(draws[:, column], stats.norm(3.0, 0.5).cdf).pvalue > 1e-7


@pytest.mark.parametrize("levels", [2, 3, 7, 40])
def test_levels_keep_their_order_and_the_column_its_mean_and_scale(levels):
    rng = np.random.default_rng(levels)
    codes = np.concatenate([np.arange(levels), rng.integers(-1, levels, 60)])
    x = stats.norm.ppf((codes + 1.5) / (levels + 1)) * 1.0
    x[codes < 0] = 0.0
    margin = Levels(codes)
    for _ in range(50):
        x = draw(rng, x, 0.5 * rng.standard_normal(len(x)), 0.8, margin)
        assert np.mean(x**2) == pytest.approx(1.0)
        assert np.mean(x) == pytest.approx(0.0, abs=1e-12)
        tops = [x[codes == level].max() for level in range(levels)]
        bottoms = [x[codes == level].min() for level in range(levels)]
        assert all(top < bottom for top, bottom in zip(tops[:-1], bottoms[1:], strict=True))


@pytest.mark.parametrize("far", [-1e6, 1e6])
def test_the_cells_of_a_level_lie_between_its_neighbours_extremes(far):
    """Those of one level, drawn far away by their mean, stop at the level that they meet."""
    edges, x = np.array([0, 2, 4, 6]), np.array([-2.0, -1.0, 0.1, 0.2, 1.0, 3.0])
    mean = np.where(np.arange(6) // 2 == 1, far, x)
    drawn = _margins.draw_ordered(np.random.default_rng(0), x, mean, 1e-3, edges)
    expected = [drawn[:2].max()] * 2 if far < 0 else [1.0] * 2
    np.testing.assert_allclose(drawn[2:4], expected, atol=1e-6)
    assert (drawn[2:4] >= drawn[:2].max()).all()
    assert (drawn[2:4] <= 1.0).all()


def test_the_order_survives_rounding():
    """Cells as near each other as numbers can be, and means that pull them apart."""
    rng, edges, x = (
        np.random.default_rng(1),
        np.array([0, 2, 3, 5]),
        1 + np.spacing(1.0) * np.array([0, 0, 1, 1, 2]),
    )
    for _ in range(200):
        drawn = _margins.draw_ordered(rng, x, 3 * rng.standard_normal(5), 0.3, edges)
        assert drawn[:2].max() <= drawn[2] <= drawn[3:].min()


def test_the_law_of_ordered_cells():
    """Two, one and one row in three levels: independent normals given their order, by rejection; KS at 1e-7."""
    mean, rng, edges = np.array([0.3, 0.9, -0.2, 0.4]), np.random.default_rng(3), np.array([0, 2, 3, 4])
    x, draws = np.array([-1.0, -0.5, 0.0, 1.0]), []
    for _ in range(20_000):
        x = _margins.draw_ordered(rng, x, mean, 0.7, edges)
        draws.append(x)
    free = mean + 0.7 * rng.standard_normal((400_000, 4))
    free = free[(free[:, :2].max(axis=1) < free[:, 2]) & (free[:, 2] < free[:, 3])]
    for column, expected in zip(np.array(draws)[500::20].T, free.T, strict=True):
        assert stats.ks_2samp(column, expected).pvalue > 1e-7


@pytest.mark.parametrize("upwards", [True, False])
def test_a_column_is_its_cells_and_its_cuts_or_the_other_way_round_and_then_its_mean(upwards):
    """Rows in any order, some missing, piece by piece with the same random numbers."""
    codes, mean = np.array([1, -1, 0, 2, 0, 1, -1, 2, 1]), np.linspace(-1, 1, 9)
    x = np.where(codes < 0, 0.5, codes - 1.0)
    seed, rows, edges = (8 if upwards else 7), [2, 4, 0, 5, 8, 3, 7], np.array([0, 2, 5, 7])
    rng, expected = np.random.default_rng(seed), x.copy()
    expected[[1, 6]] = mean[[1, 6]] + 0.8 * rng.standard_normal(2)
    assert (rng.random() < 0.5) == upwards
    cells = x[rows]
    for step in ("cells", "cuts") if upwards else ("cuts", "cells"):
        if step == "cells":
            cells = _margins.draw_ordered(rng, cells, mean[rows], 0.8, edges, upwards)
        else:
            cells = _cut_points.move(rng, cells, mean[rows], 0.8, edges)
    expected[rows] = cells
    drawn = draw(np.random.default_rng(seed), x, mean, 0.8, Levels(codes, unit=False))
    np.testing.assert_allclose(drawn, expected - expected.mean(), rtol=1e-12)


@pytest.mark.parametrize("collapsed", [False, True])
def test_gaps_of_the_rest_move_freely_where_columns_are_many(collapsed):
    """With 20 rows and 80 columns: as far as their law is wide, but only with ``W22.1`` integrated out."""
    rng = np.random.default_rng(0)
    X = centred(rng.standard_normal((20, 81)))
    source = Copula(X[:, :1], X[:, 1:], {}, {0: Gaps(np.arange(5))}, RestPrior(81, 1.0), collapsed)
    state, kept = ChainState(np.eye(1), np.zeros((1, 80)), np.ones((1, 80)), {}, source.start()), []
    for _ in range(400):
        state = ChainState(state.W11, state.W12, state.T, {}, source.refresh(rng, state))
        kept.append(state.columns.X2[0, 0])
    lag = np.corrcoef(kept[:-1], kept[1:])[0, 1]
    assert lag < 0.5 if collapsed else lag > 0.9
