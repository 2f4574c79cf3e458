"""Columns of the rest with ``W22.1`` integrated out: the law of each column, and what is kept up to date."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from markovblanket.contracts import ChainState, Columns, ImpossibleStateError, Problem
from markovblanket.model.copula import _cut_points, _rest_columns, latent
from markovblanket.model.copula._margins import Gaps, Levels, Moving
from markovblanket.model.copula._rest_columns import (
    Column,
    Rest,
    RowScatter,
    changed_leverages,
    leverages,
    row_inverse,
)
from markovblanket.model.copula.latent import Copula, centred
from markovblanket.model.network_sweep import WidenedBlanket
from markovblanket.model.rest_prior import RestPrior
from markovblanket.priors import SpikeSlab
from markovblanket.solvers import Dual

RIDGE, DEGREES, N, P, Q = 1.7, 21.0, 7, 2, 4


def log_density(X1, X2, W11, W12):
    """Joint log density of the centred columns of the rest, given the block, ``W22.1`` integrated out."""
    X1, X2 = centred(X1), centred(X2)
    determinant = np.linalg.slogdet(RIDGE * np.eye(N) + X2 @ X2.T)[1]
    linked = X2 @ W12.T
    return (
        -0.5 * DEGREES * determinant
        - 0.5 * np.trace(np.linalg.solve(W11, linked.T @ linked))
        - np.trace(linked.T @ X1)
    )


@pytest.fixture
def state():
    rng = np.random.default_rng(3)
    X1, X2, W12 = rng.standard_normal((N, P)), rng.standard_normal((N, Q)) + 0.5, rng.standard_normal((P, Q))
    W12[0, 1] = W12[:, 2] = 0.0
    A = rng.standard_normal((P, P))
    return ChainState(A @ A.T + np.eye(P), W12, np.empty((0, 0)), {}, Columns(X1, X2))


def rest_of(state):
    X2 = state.columns.X2
    return Rest.of(X2, row_inverse(X2, RIDGE), X2 @ state.W12.T, DEGREES, Q)


def assert_up_to_date(rest, W12):
    np.testing.assert_allclose(rest.inverse, row_inverse(rest.X2T.T, RIDGE), rtol=0, atol=1e-12)
    np.testing.assert_allclose(rest.fit, rest.X2T.T @ W12.T, rtol=0, atol=1e-12)


def test_the_inverse_of_the_rows_is_that_of_the_definition(state):
    X = centred(state.columns.X2)
    C = np.eye(N) - 1 / N
    dense = C @ np.linalg.inv(RIDGE * np.eye(N) + X @ X.T) @ C
    np.testing.assert_allclose(row_inverse(state.columns.X2, RIDGE), dense, rtol=0, atol=1e-14)


@pytest.mark.parametrize("j", range(Q))
def test_the_law_of_a_column_is_that_of_the_joint_density(state, j):
    """With its scale integrated out: two values of a column differ as in an independent definition."""
    rest, columns = rest_of(state), state.columns
    x, Mx, b = columns.X2[:, j].copy(), np.empty(N), np.empty(N)
    s = _rest_columns.take_out(rest.inverse, x, Mx)
    c = _rest_columns.link(rest, columns.X1, state.W12, np.linalg.inv(state.W11), j, x, b)
    M = rest.inverse
    np.testing.assert_allclose(s, 1 / (1 + x @ M @ x))
    np.testing.assert_allclose(Mx, M @ x)

    def of_column(x):
        return -0.5 * DEGREES * np.log1p(x @ M @ x) - x @ b - 0.5 * c * centred(x) @ centred(x)

    def of_all(x):
        X2 = columns.X2.copy()
        X2[:, j] = x
        return log_density(columns.X1, X2, state.W11, state.W12)

    other = np.random.default_rng(j).standard_normal(N)
    np.testing.assert_allclose(of_column(other) - of_column(x), of_all(other) - of_all(x))


def test_terms_of_a_cut_point_are_those_of_the_normal_density(state):
    rng, rows, edges = np.random.default_rng(1), np.arange(N), np.array([0, 3, N])
    M = row_inverse(state.columns.X2, RIDGE)
    x, b = np.sort(rng.standard_normal(N)), centred(rng.standard_normal(N))
    column = Column(x, M @ x, M, 2.5, 0.7, b)
    t, Mt = rng.random(N), np.empty(N)
    law = _rest_columns.with_terms(column, _cut_points.bounds(rng, x, edges, 1), rows, 0, N, t, Mt)
    precision = 2.5 * M + 0.7 * (np.eye(N) - 1 / N)
    np.testing.assert_allclose([law.linear, law.quadratic], [t @ (precision @ x + b), t @ precision @ t])
    np.testing.assert_allclose(Mt, M @ t)


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("codes", [[-1, 0, 0, 1, 1, 2, 2], [-1, 0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 0, 0, 1]], ids=str)
def test_draws_keep_inverse_and_fit_up_to_date_and_the_order_of_levels(state, codes, unit):
    codes = np.array(codes)
    rest, rng = rest_of(state), np.random.default_rng(0)
    rest.X2T[1] = codes
    rest = Rest.of(rest.X2T.T, row_inverse(rest.X2T.T, RIDGE), rest.X2T.T @ state.W12.T, DEGREES, 2)
    moving, before = Moving.of({0: Gaps(np.array([2, 5])), 1: Levels(codes, unit)}), rest.X2T.copy()
    U = np.linalg.inv(state.W11)
    kept = leverages(rest.inverse, rest.X2T.T)
    for _ in range(20):
        _rest_columns.draw(rng, rest, state.columns.X1, state.W12, U, moving, np.arange(2))
        kept = changed_leverages(kept, rest, np.arange(2))
    assert_up_to_date(rest, state.W12)
    np.testing.assert_allclose(kept, leverages(row_inverse(rest.X2T.T, RIDGE), rest.X2T.T), rtol=0, atol=1e-12)
    changed = before != rest.X2T
    np.testing.assert_array_equal(changed[0], np.isin(np.arange(N), [2, 5]))
    assert changed[1].all()
    assert not changed[2:].any()
    x = rest.X2T[1]
    for level in range(codes.max()):
        assert x[codes == level].max() < x[codes == level + 1].min()
    assert abs(x.mean()) < 1e-12
    assert (abs(np.mean(x * x) - 1) < 1e-12) == unit


def test_the_diagonal_of_the_inverse_scatter_is_that_of_the_definition(state):
    X1, X2 = centred(state.columns.X1), state.columns.X2
    scatter = RowScatter.of(X1, Columns(X1, X2), RestPrior(DEGREES, RIDGE))
    dense = np.linalg.inv(centred(X2).T @ centred(X2) + RIDGE * np.eye(Q))
    np.testing.assert_allclose(scatter.inverse_diagonal, np.diag(dense))
    np.testing.assert_allclose(scatter.S12, X1.T @ X2)
    assert scatter.n == N - 1


def test_a_sweep_redraws_columns_with_an_edge_and_some_others(monkeypatch, state):
    monkeypatch.setattr(latent, "MOST_MULTIPLICATIONS", 0)
    q = 2 * latent.LEAST_SHARE
    X, W12 = np.random.default_rng(0).standard_normal((N, q + 2)), np.zeros((2, q))
    W12[1, 7] = 0.3
    copula = Copula(X[:, :2], X[:, 2:], {}, {j: Gaps(np.array([j % N])) for j in range(q)})
    others = set()
    for seed in range(40):
        changed = copula.refresh(np.random.default_rng(seed), ChainState(np.eye(2), W12, W12, {}, copula.start()))
        redrawn = np.flatnonzero((changed.X2 != copula.X2).any(axis=0))
        assert len(redrawn) == 2
        assert 7 in redrawn
        others |= set(redrawn)
    assert len(others) > 25


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_column_that_is_not_possible_is_named(value):
    """By its place in the table, query first, in the block of the paper and in the widened one."""
    X = np.random.default_rng(0).standard_normal((N, 8))
    copula = Copula(X[:, :2], X[:, 2:], {}, {j: Gaps(np.array([j])) for j in range(6)})
    columns = copula.start()
    broken = columns.X2.copy()
    broken[:, 4] = value
    kept = row_inverse(columns.X2, 1.0), leverages(row_inverse(columns.X2, 1.0), columns.X2)
    state = ChainState(np.eye(2), np.zeros((2, 6)), np.zeros((2, 6)), {}, Columns(columns.X1, broken, *kept))
    with pytest.raises(ImpossibleStateError) as raised:
        copula.refresh(np.random.default_rng(0), state)
    assert raised.value.position == 2 + 4
    problem = Problem(copula.scatter(columns), SpikeSlab(), Dual(), copula)
    sampler = WidenedBlanket.of(problem, np.array([1, 3]))
    state = sampler.start(np.random.default_rng(0))
    place = int(np.flatnonzero(sampler.rest == 4)[0])
    broken = state.columns.X2.copy()
    kept = row_inverse(broken, 1.0), leverages(row_inverse(broken, 1.0), broken)
    broken[:, place] = value
    state = replace(state, columns=Columns(state.columns.X1, broken, *kept))
    with pytest.raises(ImpossibleStateError) as raised:
        sampler.sweep(np.random.default_rng(0), state)
    assert raised.value.position == 2 + 4
