"""An edge that hops: how often it sits where is known exactly, in a problem small enough for quadrature."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from markovblanket import hopping, margins
from markovblanket.contracts import ChainState, Columns
from markovblanket.margins import Levels

ALARM = 1e-7
# A query column with two levels, a second one that is observed, and four others; one entry of row 0 hops.
MARGIN, W = Levels(np.array([0, 1, 0, 1, -1, 1])), 1.2
W11 = np.array([[1.6, -0.7], [-0.7, 1.1]])
SIGNS = np.array([1.0, 1.0, 1.0, -1.0])
RNG = np.random.default_rng(8)
X2 = RNG.standard_normal((6, 4)) @ (np.eye(4) + 0.8)
X2 *= SIGNS / np.sqrt(np.mean(X2**2, axis=0))  # correlated with these signs, which the entry takes on
SECOND, OTHER = np.array([0.9, -0.8, 0.0, 0.7]), RNG.standard_normal(6)


def state_at(j, x):
    W12 = np.vstack([np.zeros(4), SECOND])
    W12[0, j] = SIGNS[j] * W
    return ChainState(W11, W12, (W12 != 0) * 0.5, {}, Columns(np.column_stack([x, OTHER]), X2))


def log_weight(j):
    """Prior, ``p(x_-i | X2)`` and the probability of the order, by quadrature over the largest cell below."""
    state, U = state_at(j, np.zeros(6)), np.linalg.inv(W11)
    X1, W12 = state.columns.X1, state.W12
    E = X1 + X2 @ W12.T @ U
    mean, sd = -(X1[:, 1] * W11[0, 1] + X2 @ W12[0]) / W11[0, 0], W11[0, 0] ** -0.5
    others = -0.5 * (np.trace(W11 @ E.T @ E) - W11[0, 0] * mean @ mean)
    t = np.linspace(-12, 12, 20_001)
    z = (t[:, None] - mean) / sd
    below, above = stats.norm.cdf(z[:, MARGIN.codes == 0]).prod(axis=1), stats.norm.sf(z[:, MARGIN.codes == 1])
    order = np.trapezoid(np.gradient(below, t) * above.prod(axis=1), t)
    return np.log(order) + others - 0.5 * np.trace(U @ W12 @ W12.T)


def expected():
    """The probability of every place."""
    weights = np.array([log_weight(j) for j in range(4)])
    return np.exp(weights - weights.max()) / np.exp(weights - weights.max()).sum()


def refreshed(rng, state):
    """The cells of the column drawn anew, and their cut."""
    X1 = state.columns.X1.copy()
    mean, sd = -(X1[:, 1] * W11[0, 1] + X2 @ state.W12[0]) / W11[0, 0], W11[0, 0] ** -0.5
    x = margins.draw_column(rng, X1[:, 0], mean, sd, MARGIN.rows, MARGIN.edges, False)
    X1[:, 0] = x
    return replace(state, columns=Columns(X1, X2))


def p_value(sweeps, batches=40):
    """Of the frequencies of places, their errors from batches."""
    rng, state = np.random.default_rng(3), state_at(0, np.where(MARGIN.codes > 0, 1.0, -1.0))
    at = np.zeros((batches, 4))
    for sweep in range(sweeps):
        state = hopping.hop(rng, refreshed(rng, state), {0: MARGIN})
        at[sweep * batches // sweeps] += batches / sweeps * (state.W12[0] != 0)
    error = at.std(axis=0, ddof=1) / np.sqrt(batches)
    t = np.abs(at.mean(axis=0) - expected()) / error
    return float(2 * stats.t.sf(t, batches - 1).min() * len(t))


def test_edges_are_where_they_should_be():
    assert (SIGNS * (SIGNS @ (X2.T @ X2)) > 0).all()
    assert expected().min() > 0.02
    assert p_value(6000) > ALARM


BUGS = {
    "no prior factor": ("log_prior", lambda right: lambda *given: 0.0),
    "gaps forgotten": ("gaps_between", lambda right: lambda *given: 1 + 0 * right(*given)),
    "no mass": ("log_mass", lambda right: lambda *given: 0.0),
    "others forgotten": ("conditional", lambda right: lambda *given: (*right(*given)[:2], 0.0)),
    "proposals as if both ways were equal": (
        "propose",
        lambda right: lambda *given: (found := right(*given)) and (*found[:2], 0.0),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_are_caught(bug, monkeypatch):
    name, spoil = BUGS[bug]
    monkeypatch.setattr(hopping, name, spoil(getattr(hopping, name)))
    p = p_value(36_000 if name == "propose" else 12_000)
    assert p < 1e-3 * ALARM, f"{bug} slipped through: p = {p:.1e}"


def test_without_edges_or_without_zeros_nothing_hops():
    rng, x = np.random.default_rng(0), np.where(MARGIN.codes > 0, 1.0, -1.0)
    state = state_at(0, x)
    for W12 in (np.zeros((2, 4)), np.ones((2, 4))):
        still = replace(state, W12=W12)
        assert hopping.hop(rng, still, {0: MARGIN}) is still


def test_a_hop_leaves_its_input_alone_and_takes_the_scale_along():
    rng, state = np.random.default_rng(1), state_at(0, np.where(MARGIN.codes > 0, 1.0, -1.0))
    before = state.W12.copy(), state.T.copy(), state.columns.X1.copy()
    moved = next(new for _ in range(1000) if (new := hopping.hop(rng, state, {0: MARGIN})) is not state)
    for old, kept in zip(before, (state.W12, state.T, state.columns.X1), strict=True):
        np.testing.assert_array_equal(old, kept)
    np.testing.assert_array_equal(moved.T > 0, moved.W12 != 0)
    low, high = hopping.edges_of_gaps(moved.columns.X1[:, 0], MARGIN)
    assert (low < high).all()
