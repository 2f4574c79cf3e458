"""Moves of the scale of a row: their density is a slice of the joint one, cells integrated out, to rounding."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from scipy import special, stats

from markovblanket.model._column_regression import Law
from markovblanket.model.copula import _scale_moves
from markovblanket.model.copula._margins import Gaps, Levels, Margin, Moving
from markovblanket.model.copula._scale_moves import MOST_LEVELS, Rows, log_density, log_mass
from statistical.reference import Array

ALARM = 1e-7  # per comparison
INF = np.inf
# Query variables, variables of the block, others, rows.
SIZES = [(1, 3, 2, 12), (2, 5, 0, 20), (2, 4, 6, 5), (2, 1, 3, 8), (1, 4, 0, 6)]


def centred(X: Array) -> Array:
    return X - X.mean(axis=0)


def log_interval(low: float, high: float) -> float:
    """The log probability of an interval by SciPy, from the tail in which it lies."""
    if low + high > 0:
        low, high = -high, -low
    return special.log_ndtr(high) + np.log1p(-np.exp(special.log_ndtr(low) - special.log_ndtr(high)))


def log_narrow(low: float, width: float) -> float:
    """The log probability of a narrow interval, by Gauss's quadrature of the density relative to its end."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    t = width * (nodes + 1) / 2
    return stats.norm.logpdf(low) + math.log(width / 2 * (weights @ np.exp(-low * t - t * t / 2)))


class Setting(NamedTuple):
    """Columns, a state of the block with some zeros, and the law of its entries; the first column has levels."""

    X1: Array
    X2: Array
    W11: Array
    W12: Array
    law: Law
    outside: Array
    margin: Levels

    def rows(self) -> Rows:
        """What the moves work on."""
        V = self.W12 @ centred(self.X2).T
        given = self.X1, self.X2 @ self.W12.T, self.W11, np.linalg.inv(self.W11), self.W12, V
        return Rows(*(array.copy() for array in given))

    def slopes(self, i: int) -> Array:
        """The linear term of column i, centred."""
        others = np.delete(np.arange(len(self.W11)), i)
        return -centred(self.X1[:, others] @ self.W11[others, i] + self.X2 @ self.W12[i])

    def row(self, i: int) -> _scale_moves.Row:
        """What the density of the scale of row i depends on, as the package has it."""
        return _scale_moves.row_of(self.rows(), i, self.slopes(i), self.law, self.outside)

    def scaled(self, i: int, c: float, g: float) -> tuple[Array, Array]:
        """Both blocks with row i times c, and its pivot g."""
        W11, W12, o = self.W11.copy(), self.W12.copy(), np.delete(np.arange(len(self.W11)), i)
        W11[i, o], W11[o, i], W12[i] = c * W11[i, o], c * W11[o, i], c * W12[i]
        W11[i, i] = g + W11[i, o] @ np.linalg.inv(W11[np.ix_(o, o)]) @ W11[o, i]
        return W11, W12

    def log_prior(self, W11: Array, W12: Array) -> float:
        """Of both blocks given which entries are zero, from the model."""
        P, s = len(W11), np.concatenate([self.law.precision, self.outside])
        query = np.arange(len(s)) < self.law.p
        kind = np.where(query[:P, None] | query, self.law.slab[0], self.law.slab[1])
        entries, sd = np.hstack([np.triu(W11, 1), W12]), np.sqrt(kind * np.outer(s[:P], s))
        slabs = stats.norm.logpdf(entries, 0, sd)[entries != 0].sum()
        return float(slabs - 0.5 * np.trace(W11) - 0.5 * np.trace(np.linalg.inv(W11) @ W12 @ W12.T))

    def log_others(self, W11: Array, W12: Array, i: int) -> float:
        """Of all columns but i given those outside, column i and the means integrated out of the normal law."""
        o, w_ii = np.delete(np.arange(len(W11)), i), W11[i, i]
        if not len(o):
            return 0.0
        w, X_O, X2 = W11[o, i], centred(self.X1[:, o]), centred(self.X2)
        K = W11[np.ix_(o, o)] - np.outer(w, w) / w_ii
        L = W12[o] - np.outer(w, W12[i]) / w_ii
        R = X_O + X2 @ L.T @ np.linalg.inv(K)
        return float(0.5 * (len(X2) - 1) * np.linalg.slogdet(K)[1] - 0.5 * np.trace(K @ R.T @ R))

    def log_cells(self, W11: Array, W12: Array, i: int, lower: Array, upper: Array) -> float:
        """That the observed cells of column i, less the intercept, lie between their bounds."""
        o, w_ii, observed = np.delete(np.arange(len(W11)), i), W11[i, i], self.margin.rows[self.margin.edges[0] :]
        mean = -centred(self.X1[:, o] @ W11[o, i] + self.X2 @ W12[i])[observed] / w_ii
        ends = np.sqrt(w_ii) * (np.array([lower, upper]) - mean)
        return sum(log_interval(low, high) for low, high in ends.T)


def make_setting(p: int, P: int, q: int, n: int, levels: int = 3) -> Setting:
    """About half of the entries are zero, but the first row has one in each block; a cell is missing."""
    rng = np.random.default_rng([p, P, q, n])
    X = 0.7 * rng.standard_normal((n, P + q)) + rng.standard_normal(P + q)
    W = rng.standard_normal((P, P + q)) * (rng.random((P, P + q)) < 0.5)
    W[0, [1 % P, -1]] = 0.8, -0.6
    W11 = np.triu(W[:, :P], 1)
    W11 = W11 + W11.T
    W11 += np.diag(np.abs(W11).sum(axis=0) + rng.exponential(1.0, P))
    codes = np.full(n, -1)
    codes[1:] = np.argsort(np.argsort(X[1:, 0])) * levels // (n - 1)
    X[1:, 0] += 0.5 * codes[1:]  # with gaps so large that a move is often accepted
    slab, precision = np.array([0.5, 1.7]), rng.uniform(0.5, 3.0, P)
    law = Law(np.eye(P), n - 1.0, p, np.ones(2), slab, np.ones(P), precision)
    outside = rng.uniform(0.5, 3.0, q)
    return Setting(X[:, :P], X[:, P:], W11, W[:, P:].copy(), law, outside, Levels(codes, unit=False))


@pytest.fixture(params=SIZES, ids=str)
def setting(request: pytest.FixtureRequest) -> Setting:
    return make_setting(*request.param)


# Masses ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("low", [-1e3, -40.0, -8.0, -1.0, 0.0, 0.5, 3.0, 10.0, 24.999, 25.001, 37.0, 100.0, 1e4])
def test_tails_and_wide_intervals_against_scipy(low, sign):
    for high in (low + 0.3, low + 2.0, low + 60.0, INF):
        ends = (low, high) if sign > 0 else (-high, -low)
        assert log_mass(*ends) == pytest.approx(log_interval(*ends), rel=1e-9, abs=1e-12)


def test_everything_and_nothing_have_their_masses():
    assert log_mass(-INF, INF) == 0.0
    assert log_mass(0.7, 0.7) == log_mass(30.0, 30.0) == log_mass(-30.0, -30.0) == -INF
    assert log_mass(-INF, 0.0) == log_mass(0.0, INF) == pytest.approx(-math.log(2), rel=1e-15)


@pytest.mark.parametrize("width", [1e-7, 1e-5, 1e-3, 0.1])
@pytest.mark.parametrize("low", [0.0, 0.3, 2.0, 6.0, 15.0, 24.0, 26.0, 60.0])
def test_narrow_intervals_against_quadrature(low, width):
    """Rounding leaves a relative error of the mass of about ``1e-16 (1 + low) / width``, the series 7e-10."""
    expected = log_narrow(low, width)
    close = 1e-9 + 2e-15 * (1 + low) / width
    assert log_mass(low, low + width) == pytest.approx(expected, abs=close)
    assert log_mass(-low - width, -low) == pytest.approx(expected, abs=close)


def test_the_series_of_the_tail_joins_what_is_nearer():
    far = _scale_moves.FAR
    assert _scale_moves.log_tail(far) == pytest.approx(special.log_ndtr(-far), abs=1e-9)
    for x in (far, 40.0, 300.0, 1e5):
        assert _scale_moves.log_tail(x) == pytest.approx(special.log_ndtr(-x), rel=1e-11)
    assert _scale_moves.log_tail(INF) == -INF


# Cut points --------------------------------------------------------------------------------------------


def test_cut_points_are_uniform_between_adjacent_levels():
    """Kolmogorov's test of 3,000 draws of each cut point, with a false alarm rate of 1e-7."""
    cells, begins = np.array([-1.0, -0.4, -0.6, 0.2, 0.1, 2.0, 1.0]), np.array([0, 3, 5, 7])
    rng, cuts = np.random.default_rng(1), []
    for _ in range(3000):
        lower, upper, gaps = _scale_moves.cut_points(rng, cells, begins)
        first, second = upper[0], upper[3]
        assert lower.tolist() == [-INF] * 3 + [first] * 2 + [second] * 2
        assert upper.tolist() == [first] * 3 + [second] * 2 + [INF] * 2
        assert gaps == pytest.approx(math.log(0.5 * 0.8), rel=1e-12)
        cuts.append((first, second))
    first, second = np.array(cuts).T
    assert stats.kstest((first + 0.4) / 0.5, "uniform").pvalue > ALARM
    assert stats.kstest((second - 0.2) / 0.8, "uniform").pvalue > ALARM
    assert stats.kstest((first + 0.4) / 0.6, "uniform").pvalue < ALARM / 1000


def test_cells_that_coincide_have_no_gap():
    begins = np.array([0, 1, 2])
    assert _scale_moves.log_gaps(np.array([0.3, 0.3]), begins) == -INF
    assert _scale_moves.log_gaps(np.array([0.3, 0.3 + math.e]), begins) == pytest.approx(1.0)


# The density -------------------------------------------------------------------------------------------


def bounds(setting: Setting, i: int) -> tuple[Array, Array]:
    """Of the observed cells of column i, less an intercept."""
    cells = setting.X1[setting.margin.rows[setting.margin.edges[0] :], i] - setting.X1[:, i].mean() + 0.2
    begins = setting.margin.edges - setting.margin.edges[0]
    order = np.argsort(cells)  # of other columns, which have no levels, the cells in their order
    lower, upper, _ = _scale_moves.cut_points(np.random.default_rng(2), cells[order], begins)
    return lower, upper


def test_the_density_is_a_slice_of_the_joint_density(setting):
    """Differences of the log density of all, the cells of a column integrated out, in every row of the block."""
    for i in range(len(setting.W11)):
        row, (lower, upper) = setting.row(i), bounds(setting, i)
        slopes = setting.slopes(i)[setting.margin.rows[setting.margin.edges[0] :]]
        entries = np.count_nonzero(setting.W11[i]) - 1 + np.count_nonzero(setting.W12[i])

        def joint(log_c, log_g, i=i, lower=lower, upper=upper, entries=entries):
            W = setting.scaled(i, math.exp(log_c), math.exp(log_g))
            cells = setting.log_cells(*W, i, lower, upper)
            jacobian = entries * log_c + log_g
            return setting.log_prior(*W) + setting.log_others(*W, i) + cells + jacobian

        at = 0.0, math.log(row.pivot)
        np.testing.assert_allclose(setting.scaled(i, 1.0, row.pivot)[0], setting.W11, rtol=1e-12, atol=1e-12)
        for log_c, log_g in [(0.4, at[1]), (-1.5, at[1]), (0.0, 1.1), (0.0, -2.0), (0.9, 0.3), (-0.7, -0.9)]:
            there = log_density(log_c, log_g, row, slopes, lower, upper)
            here = log_density(*at, row, slopes, lower, upper)
            assert there - here == pytest.approx(joint(log_c, log_g) - joint(*at), rel=1e-8, abs=1e-9)


def test_every_part_of_the_density_matters():
    """A part that is left out changes the differences by far more than the comparison above allows."""
    setting = make_setting(*SIZES[0])
    row, (lower, upper) = setting.row(0), bounds(setting, 0)
    slopes = setting.slopes(0)[setting.margin.rows[setting.margin.edges[0] :]]

    def change(row):
        ends = (log_density(*at, row, slopes, lower, upper) for at in [(0.4, 0.3), (0.0, 0.0)])
        return np.subtract(*ends)

    for name in ("n", "entries", "explained", "outside", "penalty", "signal"):
        assert abs(change(row._replace(**{name: 0.0})) - change(row)) > 1e-3


@pytest.mark.parametrize("of_factor", [True, False], ids=["factor", "pivot"])
def test_slice_steps_keep_the_density(of_factor):
    """Kolmogorov's test of 4,000 exact draws after two steps each, with a false alarm rate of 1e-7."""
    setting = make_setting(*SIZES[0])
    row, given = setting.row(0), (setting.slopes(0)[setting.margin.rows[1:]], *bounds(setting, 0))
    grid = np.linspace(-12, 6, 20_001)
    logs = [log_density(*((x, 0.2) if of_factor else (0.2, x)), row, *given) for x in grid]
    law = np.cumsum(np.exp(np.array(logs) - max(logs)))
    law = (law - law[0]) / (law[-1] - law[0])
    assert logs[0] - max(logs) < -15  # nothing is beyond the grid
    assert logs[-1] - max(logs) < -15

    def p_value(row):
        rng, after = np.random.default_rng(3), []
        for x in np.interp(rng.random(4000), law, grid):
            for _ in range(2):
                log_c, log_g = (x, 0.2) if of_factor else (0.2, x)
                x = _scale_moves.slice_step(rng, log_c, log_g, of_factor, row, *given)
            after.append(x)
        return stats.kstest(np.interp(after, grid, law), "uniform").pvalue

    assert p_value(row) > ALARM
    assert p_value(row._replace(entries=row.entries + 1.5, n=row.n + 3)) < ALARM / 1000


# The move ----------------------------------------------------------------------------------------------


def parts(margin: Levels) -> tuple[Array, Array, bool]:
    """What compiled code gets of a margin."""
    return margin.rows, margin.edges, margin.unit


def some_moved(rng: np.random.Generator, rows: Rows, margins: dict[int, Margin], setting: Setting) -> Rows:
    """The rows after some moves; the given ones stay."""
    moved = Rows(*(array.copy() for array in rows))
    _scale_moves.move_some(rng, moved, Moving.of(margins), setting.law, setting.outside)
    return moved


def levels_in_order(x: Array, margin: Levels) -> bool:
    """Whether every level lies below the next one."""
    groups = [x[margin.codes == level] for level in range(margin.codes.max() + 1)]
    return all(below.max() <= above.min() for below, above in pairwise(groups))


def test_a_move_scales_a_row_and_leaves_everything_else(setting):
    rng, old, moved = np.random.default_rng(4), setting.rows(), 0
    others, row = np.arange(1, len(old.W11)), setting.row(0)
    for _ in range(200):
        new = Rows(*(array.copy() for array in old))
        _scale_moves.move_row(rng, new, 0, *parts(setting.margin), setting.law, setting.outside)
        at = np.flatnonzero(np.append(old.W11[0, 1:], old.W12[0]))[0]
        c = np.append(new.W11[0, 1:], new.W12[0])[at] / np.append(old.W11[0, 1:], old.W12[0])[at]
        moved += c != 1.0
        expected = setting.scaled(0, c, 1 / np.linalg.inv(new.W11)[0, 0])
        np.testing.assert_allclose(new.W11, expected[0], rtol=1e-9)
        np.testing.assert_allclose(new.W12, expected[1], rtol=1e-12)
        np.testing.assert_allclose(new.linear, setting.X2 @ new.W12.T, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(new.V, new.W12 @ centred(setting.X2).T, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(new.U, np.linalg.inv(new.W11), rtol=1e-9, atol=1e-12)
        assert np.linalg.eigvalsh(new.W11)[0] > 0
        assert new.W11[0, 0] > c * c * row.explained
        for name in ("W11", "W12", "V"):
            np.testing.assert_array_equal(getattr(new, name)[others][:, 1:], getattr(old, name)[others][:, 1:])
        np.testing.assert_array_equal(new.X1[:, others], old.X1[:, others])
        assert abs(new.X1[:, 0].mean()) < 1e-12
        assert levels_in_order(new.X1[:, 0], setting.margin)
    assert moved > 50


def test_a_row_without_entries_only_moves_its_pivot():
    setting = make_setting(1, 3, 2, 12)
    W11, W12 = setting.W11.copy(), setting.W12.copy()
    W11[0, 1:], W11[1:, 0], W12[0] = 0.0, 0.0, 0.0
    old, rng, pivots = setting._replace(W11=W11, W12=W12).rows(), np.random.default_rng(5), set()
    for _ in range(50):
        new = Rows(*(array.copy() for array in old))
        _scale_moves.move_row(rng, new, 0, *parts(setting.margin), setting.law, setting.outside)
        np.testing.assert_array_equal(new.W11 - np.diag([new.W11[0, 0], 0, 0]), W11 - np.diag([W11[0, 0], 0, 0]))
        np.testing.assert_array_equal(new.W12, W12)
        pivots.add(new.W11[0, 0])
        assert new.W11[0, 0] > 0
    assert len(pivots) > 20


def test_a_column_of_unit_scale_keeps_it():
    setting = make_setting(1, 3, 2, 12)
    rows, margin = setting.rows(), Levels(setting.margin.codes, unit=True)
    x = rows.X1[:, 0] - rows.X1[:, 0].mean()
    rows.X1[:, 0] = x / np.sqrt(np.mean(x * x))
    for seed in range(20):
        _scale_moves.move_row(np.random.default_rng(seed), rows, 0, *parts(margin), setting.law, setting.outside)
        assert np.mean(rows.X1[:, 0] ** 2) == pytest.approx(1.0, rel=1e-12)
        assert levels_in_order(rows.X1[:, 0], margin)


@pytest.mark.parametrize(
    "margin",
    [
        Levels(np.arange(12) % (MOST_LEVELS + 1)),
        Levels(np.arange(12) - 1),
        Levels(np.zeros(12, dtype=int)),
        Gaps(np.array([0, 3])),
    ],
    ids=["one level too many", "ranks", "one level", "gaps"],
)
def test_other_columns_do_not_move(margin):
    setting = make_setting(1, 3, 2, 12)
    old = setting.rows()
    for seed in range(20):
        new = some_moved(np.random.default_rng(seed), old, {0: margin, 2: margin}, setting)
        for one, other in zip(new, old, strict=True):
            np.testing.assert_array_equal(one, other)


def test_columns_with_few_levels_move():
    setting = make_setting(1, 3, 2, 12)
    old, rng = setting.rows(), np.random.default_rng(6)
    margins = {0: setting.margin, 1: Gaps(np.array([0, 3]))}
    new = [some_moved(rng, old, margins, setting) for _ in range(20)]
    assert len({rows.W11[0, 0] for rows in new}) > 5
    for rows in new:
        np.testing.assert_array_equal(rows.X1[:, 1:], old.X1[:, 1:])
        np.testing.assert_array_equal(rows.W11[1:, 1:], old.W11[1:, 1:])
