"""Columns of the widened block, exactly: every conditional is a slice of the joint density, to rounding."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from scipy import special, stats

from markovblanket.model import _block_columns, scatter
from markovblanket.model._block_columns import Block, Column, Law
from markovblanket.model._block_relocation import _regression, block_of
from markovblanket.model.scatter import FactorScatter
from markovblanket.variates import generalized_inverse_gaussian as gig
from statistical import plain_network
from statistical.reference import Array

# Query variables, variables of the block, others, rows.
SIZES = [(1, 3, 2, 12), (2, 5, 0, 30), (2, 6, 4, 3), (1, 4, 9, 5), (3, 3, 3, 8)]


class Setting(NamedTuple):
    """Data, a state of the block, and the law of its entries."""

    X: Array
    W11: Array
    W12: Array
    law: Law
    data: FactorScatter

    def log_density(self, W11: Array, W12: Array) -> float:
        """Of both blocks and the data, from the model, without the spike and slab of the entries."""
        P, n = len(W11), len(self.X)
        S = self.X.T @ self.X
        A, U = S[P:, P:] + np.eye(len(S) - P), np.linalg.inv(W11)
        trace = np.trace((S[:P, :P] + np.eye(P)) @ W11) + 2 * np.trace(W12 @ S[P:, :P])
        return 0.5 * (n * np.linalg.slogdet(W11)[1] - trace - np.trace(U @ W12 @ A @ W12.T))

    def block(self) -> Block:
        return block_of(self.W11.copy(), self.W12, self.data)


@pytest.fixture(params=SIZES, ids=str)
def setting(request: pytest.FixtureRequest) -> Setting:
    return make_setting(*request.param)


def make_setting(p: int, P: int, q: int, n: int, closeness: float = 0.0) -> Setting:
    """Some entries are zero; ``closeness``, if it is not zero, is the correlation of the first two columns."""
    rng = np.random.default_rng([p, P, q, n])
    X = rng.standard_normal((n, P + q))
    if closeness:
        X[:, 1] = closeness * X[:, 0] + math.sqrt(1 - closeness**2) * X[:, 1]
    W11 = np.triu(rng.standard_normal((P, P)) * (rng.random((P, P)) < 0.5), 1)
    W11 = W11 + W11.T
    W11 += np.diag(np.abs(W11).sum(axis=0) + rng.exponential(1.0, P))
    W12 = rng.standard_normal((P, q)) * (rng.random((P, q)) < 0.5)
    odds, slab, own_odds = np.array([0.5, 1.5]), np.array([0.5, 1.7]), rng.exponential(0.5, P)
    law = Law(X[:, :P].T @ X[:, :P] + np.eye(P), float(n), p, odds, slab, own_odds, rng.uniform(0.5, 3.0, P))
    return Setting(X, W11, W12, law, scatter.from_columns(X[:, :P], X[:, P:]))


def begun(setting: Setting, i: int) -> Column:
    """The regression of column i as the compiled code has it."""
    column = Column(*(np.empty(len(setting.W11)) for _ in Column._fields))
    _block_columns.begin(setting.block(), setting.law, column, i)
    return column


def log_odds(column: Column, k: int) -> float:
    """The conditional log-odds of entry k not being zero, which its probability must have, too."""
    b = _block_columns.without(column, k)
    odds = 0.5 * b * b * column.variance[k] - math.log(column.against[k])
    assert _block_columns.inclusion_probability(column, k) == pytest.approx(special.expit(odds), rel=1e-12)
    return odds


def with_entries(W11: Array, i: int, changes: dict[int, float]) -> Array:
    """``W11`` with other entries in column i, and its pivot as it was."""
    others = np.delete(np.arange(len(W11)), i)
    M, w = np.linalg.inv(W11[np.ix_(others, others)]), W11[i].copy()
    pivot = w[i] - w[others] @ M @ w[others]
    for k, value in changes.items():
        w[k] = value
    w[i] = pivot + w[others] @ M @ w[others]
    W11 = W11.copy()
    W11[i] = W11[:, i] = w
    return W11


def pairs(setting: Setting) -> list[tuple[int, int]]:
    P = len(setting.W11)
    return [(i, k) for i in range(P) for k in range(P) if i != k]


def test_an_entry_has_the_slope_and_curvature_of_the_joint_density(setting: Setting) -> None:
    for i, k in pairs(setting):
        column, w = begun(setting, i), setting.W11[i, k]
        b = column.gradient[k] + column.diagonal[k] * w

        def gain(y: float, i: int = i, k: int = k) -> float:
            changed = with_entries(setting.W11, i, {k: y})
            return setting.log_density(changed, setting.W12) - setting.log_density(setting.W11, setting.W12)

        for y in (0.0, w + 0.3, -0.8):
            expected = b * (y - w) - 0.5 * column.diagonal[k] * (y * y - w * w)
            assert gain(y) == pytest.approx(expected, rel=1e-8, abs=1e-8)


def test_the_odds_of_an_entry_are_the_integral_of_the_joint_density(setting: Setting) -> None:
    for i, k in pairs(setting)[:4]:
        kind, column = (0 if min(i, k) < setting.law.p else 1), begun(setting, i)
        spread = math.sqrt(setting.law.slab[kind] * setting.law.precision[i] * setting.law.precision[k])
        h = column.diagonal[k] + 1 / spread**2
        middle = (column.gradient[k] + column.diagonal[k] * setting.W11[i, k]) / h
        y = np.append(0.0, middle + np.linspace(-9, 9, 601) / math.sqrt(h))
        logs = [setting.log_density(with_entries(setting.W11, i, {k: value}), setting.W12) for value in y]
        slab = np.exp(np.array(logs) - logs[0]) * stats.norm.pdf(y, 0, spread)
        declined = np.prod([1 / (1 + odds) for odds in (setting.law.odds[kind], *setting.law.own_odds[[i, k]])])
        expected = special.logit(1 - declined) + math.log(np.trapezoid(slab[1:], y[1:]))
        assert log_odds(column, k) == pytest.approx(expected, abs=1e-6)


def test_changed_entries_change_the_conditionals_of_the_others(setting: Setting) -> None:
    for i in range(len(setting.W11)):
        k, column = (i + 1) % len(setting.W11), begun(setting, i)
        _block_columns.set_entry(setting.block(), setting.law, column, i, k, 0.37)
        fresh = begun(setting._replace(W11=with_entries(setting.W11, i, {k: 0.37})), i)
        others = np.delete(np.arange(len(setting.W11)), i)
        np.testing.assert_allclose(column.gradient[others], fresh.gradient[others], rtol=1e-8, atol=1e-8)


def test_the_compiled_regression_is_that_of_the_plain_twin(setting: Setting) -> None:
    block = setting.block()
    for i in range(len(setting.W11)):
        others, _, g, plain = plain_network.column(setting.W11, block.G, setting.law, i)
        column = begun(setting, i)
        np.testing.assert_allclose(column.diagonal[others], np.diag(plain.Q), rtol=1e-9)
        np.testing.assert_allclose(column.linear[others], plain.linear, rtol=1e-9, atol=1e-10)
        gradient = plain.linear - plain.Q @ setting.W11[others, i]
        np.testing.assert_allclose(column.gradient[others], gradient, rtol=1e-8, atol=1e-9)
        assert column.u[i] == pytest.approx(1 / g)
        for position, k in enumerate(others):
            odds = plain.log_odds(setting.W11[others, i], position)
            assert log_odds(column, k) == pytest.approx(odds, rel=1e-8, abs=1e-6)


def test_the_pivot_has_the_law_of_the_joint_density(setting: Setting) -> None:
    """With the order and the two parameters that the compiled code and its twin draw it from."""
    block, n = setting.block(), setting.law.n
    for i in range(len(setting.W11)):
        c = block.U[i] / block.U[i, i]
        g, chi = 1 / block.U[i, i], c @ block.G @ c
        for other in (0.3 * g, 2.0 * g):
            W11 = setting.W11.copy()
            W11[i, i] += other - g
            gain = setting.log_density(W11, setting.W12) - setting.log_density(setting.W11, setting.W12)
            low, high = gig.log_density([g, other], n / 2 + 1, setting.law.B[i, i], chi)
            assert high - low == pytest.approx(gain, rel=1e-8, abs=1e-8)


def test_places_of_both_blocks_are_weighed_by_the_joint_density(setting: Setting) -> None:
    """Slope and curvature of the entries of a query variable in both blocks, its pivot held fixed."""
    P, block = len(setting.W11), setting.block()
    for i in range(setting.law.p):
        w, s = setting.W11[i].copy(), setting.W12[i].copy()
        w[i] = 0.0
        b, curvature = _regression(i, w, s, block, setting.W12, setting.data, setting.law)
        entries = np.append(w, s)
        for k in [k for k in range(len(b)) if k != i]:
            y, W11, W12 = entries[k] + 0.6, setting.W11, setting.W12.copy()
            if k < P:
                W11 = with_entries(W11, i, {k: y})
            else:
                W12[i, k - P] = y
            gain = setting.log_density(W11, W12) - setting.log_density(setting.W11, setting.W12)
            expected = b[k] * (y - entries[k]) - 0.5 * curvature[k] * (y**2 - entries[k] ** 2)
            assert gain == pytest.approx(expected, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("closeness", [0.0, 0.999999])
def test_inverse_and_products_are_up_to_date_after_a_sweep(setting: Setting, closeness: float) -> None:
    """Also where two columns are nearly the same and ``W11`` is nearly singular."""
    P, q = setting.W12.shape
    given, rng = make_setting(setting.law.p, P, q, len(setting.X), closeness), np.random.default_rng(0)
    W11, W12 = given.W11, given.W12
    for _ in range(30):  # each sweep starts from a fresh block, as the sampler's
        block = block_of(W11, W12, given.data)
        inclusion = np.empty((P, P))
        _block_columns.draw_columns(rng, block, given.law, inclusion)
        W11 = block.W
        U = np.linalg.inv(W11)
        size = np.sqrt(np.outer(np.diag(U), np.diag(U)))
        np.testing.assert_allclose(block.U / size, U / size, atol=1e-7)
        H = U @ block.G @ U
        root = np.sqrt(np.diag(H) + 1e-9 * np.diag(H).max() + 1e-9)
        scale = np.outer(root, root)
        np.testing.assert_allclose(block.H / scale, H / scale, atol=1e-6)
        assert np.linalg.eigvalsh(W11)[0] > 0
        np.testing.assert_array_equal(W11, W11.T)
        np.testing.assert_array_equal(inclusion, inclusion.T)
        assert ((inclusion >= 0) & (inclusion <= 1)).all()
