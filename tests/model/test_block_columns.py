"""Columns of the widened block, exactly: every conditional is a slice of the joint density, to rounding."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from scipy import special, stats

from markovblanket.model import _block_columns, _column_regression, _column_selection, scatter
from markovblanket.model._block_relocation import _regression, block_of
from markovblanket.model._column_regression import Block, Column, Law
from markovblanket.model._column_selection import Selection
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
    _column_regression.begin(setting.block(), setting.law, column, i)
    return column


def precision(setting: Setting, column: Column, i: int) -> Array:
    """Q of column i as the compiled code has it, column by column."""
    Q = np.empty_like(setting.W11)
    for k in range(len(Q)):
        _column_regression.precision_of(setting.block(), setting.law, column, i, k, Q[k])
    return Q


def taken_up(setting: Setting, i: int) -> tuple[Column, Selection, int]:
    """The regression of column i, which of its entries are not zero, and how many."""
    column, P = begun(setting, i), len(setting.W11)
    place, row = np.empty(P, np.intp), np.empty(P, np.intp)
    selection = Selection(place, row, np.empty((P, P)), np.empty((P, P)), *np.empty((9, P)))
    edges = _column_selection.take_up(setting.block(), setting.law, column, selection, i)
    return column, selection, edges


def log_odds(selection: Selection, k: int) -> float:
    """The conditional log-odds of entry k not being zero, given which others are not."""
    _column_selection.weigh(selection)
    r = selection.row[k]
    if r < 0:
        return float(selection.gain[k] - np.log(selection.against[k]))
    h = 1 / selection.C[r, r]
    return float(0.5 * selection.beta[r] ** 2 * h - np.log(np.sqrt(h) * selection.prior[k]))


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
        Q = precision(setting, column, i)
        assert column.diagonal[k] == pytest.approx(Q[k, k], rel=1e-9)
        b = column.linear[k] - Q[k] @ column.w + Q[k, k] * w

        def gain(y: float, i: int = i, k: int = k) -> float:
            changed = with_entries(setting.W11, i, {k: y})
            return setting.log_density(changed, setting.W12) - setting.log_density(setting.W11, setting.W12)

        for y in (0.0, w + 0.3, -0.8):
            expected = b * (y - w) - 0.5 * Q[k, k] * (y * y - w * w)
            assert gain(y) == pytest.approx(expected, rel=1e-8, abs=1e-8)


def test_the_odds_of_an_entry_are_the_integral_of_the_joint_density(setting: Setting) -> None:
    """Over its own value, and over that of one more entry which is not zero."""
    P = len(setting.W11)
    for i, k in pairs(setting)[:4]:
        j = next(a for a in range(P) if a not in (i, k))
        given = setting._replace(W11=with_entries(setting.W11, i, {a: 0.6 * (a == j) for a in range(P) if a != i}))
        column, selection, _ = taken_up(given, i)
        Q, least = precision(given, column, i), selection.least
        L = Q[np.ix_([k, j], [k, j])] + np.diag(least[[k, j]])
        middle, spread = np.linalg.solve(L, column.linear[[k, j]]), np.sqrt(np.diag(np.linalg.inv(L)))
        y, z = (m + s * np.linspace(-7, 7, 57) for m, s in zip(middle, spread, strict=True))

        def joint(of_k: float, of_j: float, i: int = i, k: int = k, j: int = j) -> float:
            return given.log_density(with_entries(given.W11, i, {k: of_k, j: of_j}), given.W12)  # noqa: B023

        alone = np.array([joint(0.0, b) for b in middle[1] + 9 * spread[1] * np.linspace(-1, 1, 401)])
        both = np.array([[joint(a, b) for b in z] for a in y])
        top = both.max()
        near = middle[1] + 9 * spread[1] * np.linspace(-1, 1, 401)
        without = np.trapezoid(np.exp(alone - top) * stats.norm.pdf(near, 0, least[j] ** -0.5), near)
        slabs = np.multiply.outer(stats.norm.pdf(y, 0, least[k] ** -0.5), stats.norm.pdf(z, 0, least[j] ** -0.5))
        within = np.trapezoid(np.trapezoid(np.exp(both - top) * slabs, z, axis=1), y)
        kind = 0 if min(i, k) < setting.law.p else 1
        assert least[k] ** -1 == pytest.approx(setting.law.slab[kind] * np.prod(setting.law.precision[[i, k]]))
        declined = np.prod([1 / (1 + odds) for odds in (setting.law.odds[kind], *setting.law.own_odds[[i, k]])])
        expected = special.logit(1 - declined) + math.log(within / without)
        assert log_odds(selection, k) == pytest.approx(expected, abs=1e-5)


def test_entries_that_join_and_leave_bring_the_selection_up_to_date(setting: Setting) -> None:
    """As if it were taken up anew, whatever the way there; odds are those of dense algebra."""
    rng, P = np.random.default_rng(0), len(setting.W11)
    for i in range(P):
        others, _, _, plain = plain_network.column(setting.W11, setting.block().G, setting.law, i)
        column, selection, edges = taken_up(setting, i)
        for _ in range(12):
            k = int(rng.choice(others))
            if selection.row[k] >= 0:
                _column_selection.leave(selection, edges, k)
                edges -= 1
            else:
                _column_selection.join(setting.block(), setting.law, column, selection, i, edges, k)
                edges += 1
            nonzero = selection.row[others] >= 0
            assert sorted(selection.place[:edges]) == others[nonzero].tolist()
            for position, a in enumerate(others):
                odds = plain.log_odds_integrated(nonzero, position)
                assert log_odds(selection, a) == pytest.approx(odds, rel=1e-8, abs=1e-7)


def test_places_are_weighed_as_if_the_lifted_entry_were_zero(setting: Setting) -> None:
    for i in range(len(setting.W11)):
        others, _, _, plain = plain_network.column(setting.W11, setting.block().G, setting.law, i)
        _, selection, edges = taken_up(setting, i)
        for lifted in selection.place[:edges]:
            _column_selection.weigh_places(selection, i, lifted)
            nonzero = (selection.row[others] >= 0) & (others != lifted)
            for position in np.flatnonzero(~nonzero):
                b, h = plain.integrated(nonzero, position)
                assert selection.weight[others[position]] == pytest.approx(0.5 * b * b / h, rel=1e-7, abs=1e-9)
                assert selection.q[others[position]] == pytest.approx(h, rel=1e-8)
            assert np.isneginf(selection.weight[[i, *others[nonzero]]]).all()


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 11])
def test_largest(size: int) -> None:
    for place in range(size):
        values = -np.arange(1.0, size + 1)
        values[place] = 0.0
        assert _column_selection.largest(values) == 0.0


def test_the_compiled_regression_is_that_of_the_plain_twin(setting: Setting) -> None:
    block = setting.block()
    for i in range(len(setting.W11)):
        others, _, g, plain = plain_network.column(setting.W11, block.G, setting.law, i)
        column = begun(setting, i)
        np.testing.assert_allclose(
            precision(setting, column, i)[np.ix_(others, others)], plain.Q, rtol=1e-7, atol=1e-9
        )
        np.testing.assert_allclose(column.diagonal[others], np.diag(plain.Q), rtol=1e-9)
        np.testing.assert_allclose(column.linear[others], plain.linear, rtol=1e-9, atol=1e-10)
        assert column.u[i] == pytest.approx(1 / g)


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
