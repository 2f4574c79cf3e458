"""Edges that come, go and hop: how often which are there is known exactly, where quadrature can tell."""

from __future__ import annotations

import math
import sys
import types
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats

from markovblanket.contracts import ChainState, Columns
from markovblanket.model.copula import _edge_moves, _margins
from markovblanket.model.copula._edge_moves import Hopping
from markovblanket.model.copula._margins import Levels

ALARM = 1e-7
# Most planted bugs show at once; these need longer.
SWEEPS, LONG = 12_000, 50_000
SUBTLE = {"the prior's cross term forgotten", "the slab's normalisation forgotten", "gaps forgotten"}
# A query column with two levels, a second one that is observed, and three others; the edges of row 0 move.
MARGIN = Levels(np.array([0, 1, 0, 1, -1, 1]))
W11, SLAB, ODDS = np.array([[1.6, -0.7], [-0.7, 1.1]]), 2.0, -0.4
U = np.linalg.inv(W11)
RNG = np.random.default_rng(8)
X2 = np.asfortranarray(RNG.standard_normal((6, 3)) @ (np.eye(3) + 0.8))
X2 /= np.sqrt(np.mean(X2**2, axis=0))
SECOND, OTHER = np.array([0.9, -0.8, 0.0]), RNG.standard_normal(6)
FIRST = np.where(MARGIN.codes > 0, 1.0, -1.0)


def state_of(w, x=FIRST):
    W12 = np.vstack([w, SECOND])
    return ChainState(W11, W12, SLAB * (W12 != 0), {}, Columns(np.column_stack([x, OTHER]), X2))


def log_weights(w):
    """Of rows w (one in a line): prior, ``p(x_-i | X2)`` and the probability of the order, up to a constant.

    The order: quadrature over the largest cell of the level below.
    """
    means = -(OTHER * W11[0, 1] + w @ X2.T) / W11[0, 0]
    E = means + w @ X2.T * U[0, 0] + (X2 @ SECOND) * U[1, 0], OTHER + w @ X2.T * U[0, 1] + (X2 @ SECOND) * U[1, 1]
    size = W11[0, 0] * (E[0] ** 2).sum(1) + 2 * W11[0, 1] * (E[0] * E[1]).sum(1) + W11[1, 1] * (E[1] ** 2).sum(1)
    t = np.linspace(-14, 14, 201)
    z = (t - means[..., None]) * math.sqrt(W11[0, 0])
    low, high = MARGIN.codes == 0, MARGIN.codes == 1
    below, above = special.log_ndtr(z[:, low]).sum(1), special.log_ndtr(-z[:, high]).sum(1)
    order = np.trapezoid(np.gradient(np.exp(below), t, axis=1) * np.exp(above), t, axis=1)
    prior = U[0, 0] * (w**2).sum(1) + 2 * U[0, 1] * w @ SECOND + (w**2).sum(1) / SLAB
    return np.log(order) - 0.5 * (size + prior)


def exact(subsets):
    """Probability, and mean of every entry, of the row under each set of places that are not zero."""
    grid = np.linspace(-4.5, 4.5, 27)
    mass, first = [], []
    for places in subsets:
        w = np.zeros((len(grid) ** len(places), 3))
        w[:, places] = np.array(list(product(grid, repeat=len(places)))).reshape(len(w), len(places))
        cell = (grid[1] - grid[0]) / math.sqrt(2 * math.pi * SLAB)
        weight = np.exp(log_weights(w) + len(places) * (ODDS + math.log(cell)))
        mass.append(weight.sum())
        first.append(weight @ w)
    return np.array(mass) / sum(mass), np.sum(first, axis=0) / sum(mass)


SUBSETS = [[k for k in range(3) if bits >> k & 1] for bits in range(8)]


@pytest.fixture(scope="module")
def expected():
    return np.concatenate(exact(SUBSETS))


def refreshed(rng, state):
    """The cells of the column drawn anew, and their cut."""
    X1 = state.columns.X1.copy()
    mean, sd = -(X1[:, 1] * W11[0, 1] + X2 @ state.W12[0]) / W11[0, 0], W11[0, 0] ** -0.5
    X1[:, 0] = _margins.draw_column(rng, X1[:, 0], mean, sd, MARGIN.rows, MARGIN.edges, False)
    return replace(state, columns=Columns(X1, X2))


def p_value(expected, sweeps, near=(0, 1, 2), batches=40):
    """Of the frequencies of sets of edges and of the mean row; errors from batches."""
    rng, state = np.random.default_rng(3), state_of(np.array([1.0, 0.0, 0.0]))
    kernel = Hopping({0: MARGIN}, {0: np.array(near)})
    seen = np.zeros((batches, 11))
    for sweep in range(sweeps):
        state, _ = kernel.move(rng, refreshed(rng, state), ODDS, SLAB)
        row = state.W12[0]
        seen[sweep * batches // sweeps, int((row != 0) @ [1, 2, 4])] += batches / sweeps
        seen[sweep * batches // sweeps, 8:] += batches / sweeps * row
    error = seen.std(axis=0, ddof=1) / math.sqrt(batches)
    t = np.abs(seen.mean(axis=0) - expected) / error
    return float(2 * stats.t.sf(t, batches - 1).min() * len(t))


@pytest.mark.parametrize("near", [(0, 1, 2), (0, 2)], ids=["all near", "some near"])
def test_edges_are_where_they_should_be(expected, near):
    assert expected[:8].min() > 0.01
    assert p_value(expected, 8000, near) > ALARM


def spoiled_row(**changes):
    """``row_at`` with fields of its rows changed."""

    def spoil(right):
        def row_at(*given):
            row = right(*given)
            return row._replace(**{name: f(getattr(row, name)) for name, f in changes.items()})

        return row_at

    return spoil


# Compiled code is not patched: what it is given is.
BUGS = {
    "the prior's cross term forgotten": ("row_at", spoiled_row(product=np.zeros_like)),
    "the other column forgotten": ("row_at", spoiled_row(e=np.zeros_like)),
    "odds of the wrong sign": ("row_at", spoiled_row(odds=lambda odds: -odds)),
}


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_are_caught(expected, bug, monkeypatch):
    name, spoil = BUGS[bug]
    monkeypatch.setattr(_edge_moves, name, spoil(getattr(_edge_moves, name)))
    assert p_value(expected, LONG if bug in SUBTLE else SWEEPS) < 1e-3 * ALARM


SPOILED = {
    "gaps forgotten": "gaps - log_gaps(x, row.codes) => 0.0",
    "the choice of an edge to vanish forgotten": "+ math.log(np.count_nonzero(row.w) + 1.0) => + 0.0",
    "the slab's normalisation forgotten": "- 0.5 * math.log(row.slab) => + 0.0",
    "proposals of places as if all were alike": "log_q = weights[k] => log_q = 0.0",
}


@pytest.mark.slow
@pytest.mark.parametrize("bug", SPOILED)
def test_bugs_planted_in_compiled_code_are_caught(expected, bug, monkeypatch):
    old, new = SPOILED[bug].split(" => ")
    source = Path(_edge_moves.__file__).read_text(encoding="utf-8")
    assert source.count(old) == 1
    spoiled = types.ModuleType("spoiled")
    monkeypatch.setitem(sys.modules, "spoiled", spoiled)
    exec(source.replace(old, new).replace("cache=True", "cache=False"), vars(spoiled))
    monkeypatch.setitem(globals(), "Hopping", spoiled.Hopping)
    assert p_value(expected, LONG if bug in SUBTLE else SWEEPS) < 1e-3 * ALARM


def test_the_slope_and_curvature_are_derivatives():
    state = state_of(np.array([0.0, 0.4, 0.0]))
    row = _edge_moves.row_at(state, U, X2 @ state.W12.T, 0, slice(None), MARGIN.codes, ODDS, SLAB)
    cuts, d = np.array([-np.inf, 0.2, np.inf]), 1e-4
    for k, w in product((0, 2), (-1.0, 0.0, 0.7)):
        values = [_edge_moves.ascent(row, cuts, k, w + step)[0] for step in (-d, 0.0, d)]
        _, slope, curvature = _edge_moves.ascent(row, cuts, k, w)
        assert slope == pytest.approx((values[2] - values[0]) / (2 * d), rel=1e-6)
        assert curvature == pytest.approx(-(values[2] - 2 * values[1] + values[0]) / d**2, rel=1e-4)
    b, _ = _edge_moves.slopes(row, cuts)
    np.testing.assert_allclose(b[[0, 2]], [_edge_moves.ascent(row, cuts, k, 0.0)[1] for k in (0, 2)], rtol=1e-10)


def test_a_move_leaves_its_input_alone_and_levels_in_their_order():
    rng, state = np.random.default_rng(1), state_of(np.array([1.0, 0.0, 0.0]))
    before = state.W12.copy(), state.T.copy(), state.columns.X1.copy()
    kernel = Hopping.of({0: MARGIN}, state.columns.X1, X2)
    moved = next(
        new for _ in range(1000) if ((new := kernel.move(rng, state, ODDS, SLAB)[0]).W12 != state.W12).any()
    )
    for old, kept in zip(before, (state.W12, state.T, state.columns.X1), strict=True):
        np.testing.assert_array_equal(old, kept)
    np.testing.assert_array_equal(moved.T, SLAB * (moved.W12 != 0))
    np.testing.assert_array_equal(moved.W12[1], SECOND)
    low, high = _edge_moves.edges_of_gaps(moved.columns.X1[:, 0], MARGIN.codes)
    assert (low < high).all()


def test_columns_of_many_levels_do_not_hop():
    _margins = {0: MARGIN, 1: Levels(np.arange(20)), 2: Levels(np.arange(20) % 10)}
    X = np.random.default_rng(2).standard_normal((20, 3))
    assert list(Hopping.of({1: _margins[1], 2: _margins[2]}, X, X).levels) == [2]


def test_near_are_the_places_that_correlate_most(monkeypatch):
    monkeypatch.setattr(_edge_moves, "MOST_NEAR_POSITIONS", 2)
    kernel = Hopping.of({0: MARGIN}, FIRST[:, None], X2)
    assert set(kernel.near[0]) == set(np.argsort(np.abs(FIRST @ X2))[1:])
