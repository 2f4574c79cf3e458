"""The compiled draw of ``W12`` with exact zeros: the same as the plain one, and it keeps the enumerated law."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats

from markovblanket.contracts import ChainState
from markovblanket.model import scatter
from markovblanket.priors import SpikeSlab, spike_slab, spike_slab_sweep
from markovblanket.solvers import Dual
from statistical.entrywise import Plain, log_evidence

LEARNED = SpikeSlab(edges=2.0, gaps=3.0, shape=2.5, rate=0.8)


def problem(p, q, n, seed=0):
    """Data with edges, a state with some of them, and the generator that goes on."""
    rng = np.random.default_rng([p, q, n, seed])
    X2 = rng.standard_normal((n, q)) @ (np.eye(q) + 0.7 * np.eye(q, k=1))
    X1 = rng.standard_normal((n, p)) + X2[:, :1] - 0.5 * X2[:, -1:]
    Z = rng.standard_normal((p + 4, p))
    W12 = rng.standard_normal((p, q)) * (rng.random((p, q)) < 0.3)
    state = ChainState(Z.T @ Z, W12, 0.5 * (W12 != 0), {"inclusion": 0.3, "slab": 0.5})
    return scatter.from_columns(X1, X2), state, rng


@pytest.mark.parametrize("size", [(1, 1, 3), (1, 5, 9), (3, 4, 20), (2, 64, 30), (3, 150, 40), (5, 200, 12)])
def test_compiled_draw_is_the_plain_one(size, monkeypatch):
    """With every entry decided on its own, random number for random number."""
    right = spike_slab_sweep.sweep
    monkeypatch.setattr(spike_slab_sweep, "sweep", lambda *given: right(*given, 0.0))
    data, state, rng = problem(*size)
    twin = np.random.default_rng()
    for _ in range(5):
        twin.bit_generator.state = rng.bit_generator.state
        expected, _ = Plain().draw_cross(twin, state, data, Dual())
        found, info = SpikeSlab().draw_cross(rng, state, data, Dual())
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
        assert (found == 0).any() or size[1] < 5
        assert info.iterations <= 3 * found.size
        state = replace(state, W12=found)


def test_a_draw_leaves_the_state_alone():
    for p in (1, 3):
        data, state, rng = problem(p, 7, 10)
        before = state.W12.copy()
        SpikeSlab().draw_cross(rng, state, data, Dual())
        np.testing.assert_array_equal(state.W12, before)


def enumerated(data, state, odds, v, factor):
    """Every set of edges, its posterior probability, and the normal law of its entries; odds and v by row.

    The slab is multiplied by a factor in each column.
    """
    U, (p, q) = np.linalg.inv(state.W11), state.W12.shape
    C, odds, v = np.kron(U, data.F.T @ data.F + np.eye(q)), np.repeat(odds, q), np.outer(v, factor).ravel()
    found = []
    for edges in product((False, True), repeat=p * q):
        where = np.flatnonzero(edges)
        H = C[np.ix_(where, where)] + np.diag(1 / v[where])
        mean = -np.linalg.solve(H, data.S12.ravel()[where])
        evidence = 0.5 * (mean @ H @ mean - np.linalg.slogdet(H)[1] - np.log(v[where]).sum())
        found.append((evidence + odds[where].sum(), where, mean, H))
    weight = np.exp(np.array([log for log, *_ in found]) - max(log for log, *_ in found))
    return weight / weight.sum(), [law for _, *law in found]


def exact(rng, size, probability, laws, shape):
    """Independent draws of W12 from the enumerated law, and which sets they are."""
    which = rng.choice(len(laws), size, p=probability)
    draws = np.zeros((size, math.prod(shape)))
    for draw, k in zip(draws, which, strict=True):
        where, mean, H = laws[k]
        draw[where] = mean + np.linalg.solve(np.linalg.cholesky(H).T, rng.standard_normal(len(where)))
    return draws.reshape(size, *shape)


@pytest.mark.parametrize("rare", [0.0, 0.02, 0.4])
@pytest.mark.parametrize("given", [(0.35, 0.8), (0.1, 4.0)], ids=str)
def test_draws_keep_the_enumerated_law(given, rare, monkeypatch):
    prior = SpikeSlab(*given)
    odds, v = (np.full(2, value) for value in prior.zero_law({}))
    assert_keeps_the_law(
        lambda rng, state, data: prior.draw_cross(rng, state, data, Dual())[0], odds, v, rare, monkeypatch
    )


@pytest.mark.parametrize("rare", [0.0, 0.02, 0.4])
@pytest.mark.parametrize("rows", [[0, 1], [1]], ids=str)
def test_draws_with_odds_and_slab_by_row_and_column_keep_the_enumerated_law(rows, rare, monkeypatch):
    """All rows visited, or one of them."""
    odds, v, factor = np.array([-2.0, 0.7]), np.array([3.0, 0.3]), np.array([0.3, 1.0, 4.0])

    def draw(rng, state, data):
        law = odds, v, factor
        return spike_slab.draw_rows(rng, state.W12, np.linalg.inv(state.W11), data, *law, np.array(rows))[0]

    assert_keeps_the_law(draw, odds, v, rare, monkeypatch, factor)


def assert_keeps_the_law(draw, odds, v, rare, monkeypatch, factor=(1.0, 1.0, 1.0)):
    """From exact draws, one draw later: sets by chi-square, entries by their moments; 1e-7 each."""
    right = spike_slab_sweep.sweep
    monkeypatch.setattr(spike_slab_sweep, "sweep", lambda *arguments: right(*arguments, rare))
    data, state, rng = problem(2, 3, 12, seed=3)
    probability, laws = enumerated(data, state, odds, v, factor)
    before = exact(rng, 20_000, probability, laws, state.W12.shape)
    after = np.stack([draw(rng, replace(state, W12=W12), data) for W12 in before])
    codes = (after.reshape(len(after), -1) != 0) @ 2 ** np.arange(after[0].size)[::-1]
    counts, expected = np.bincount(codes, minlength=len(laws)), len(after) * probability
    common = expected > 5
    pooled = [np.append(x[common], x[~common].sum()) for x in (counts, expected)]
    assert stats.chisquare(*pooled).pvalue > 1e-7
    for f in (lambda W: W, lambda W: W**2, lambda W: W[:, :, ::-1] * W):
        change = (f(after) - f(before)).reshape(len(after), -1)
        z = change.mean(axis=0) / change.std(axis=0, ddof=1) * math.sqrt(len(after))
        assert np.abs(z).max() < 6.2


def test_rare_entries_are_as_often_there_as_they_should_be():
    """400 columns of noise, 2000 draws: how many entries are not zero, decided one by one and together."""
    data, state, rng = problem(2, 400, 60)
    U, a, FT = np.linalg.inv(state.W11), 1 + data.column_sizes, np.ascontiguousarray(data.F.T)
    counts = {rare: np.empty(2000) for rare in (0.0, 0.02)}
    for rare, found in counts.items():
        for r in range(len(found)):
            W12, R, degree = np.zeros((2, 400)), np.zeros((2, len(data.F))), np.zeros(400, dtype=np.intp)
            law = np.full(2, -3.0), np.ones(2), np.ones(400)
            spike_slab_sweep.visit(rng, W12, degree, U, R, FT, a, *law, np.arange(2), rare)
            found[r] = np.count_nonzero(W12)
    assert counts[0.02].mean() > 1
    assert stats.ttest_ind(counts[0.0], counts[0.02]).pvalue > 1e-6
    assert stats.bartlett(counts[0.0], counts[0.02]).pvalue > 1e-6


@pytest.mark.parametrize("rare", [0.0, 0.02])
@pytest.mark.parametrize("size", [(5, 7, 12), (4, 90, 30)])
def test_rows_that_are_not_visited_keep_their_zeros(size, rare):
    """Visits change the given rows alone, each with its own odds: here a certain edge and an impossible one."""
    p, (data, state, rng) = size[0], problem(*size)
    U, a, FT = np.linalg.inv(state.W11), 1 + data.column_sizes, np.ascontiguousarray(data.F.T)
    W12, rows = state.W12.copy(), np.array([0, p - 1])
    R, degree = data.Y + U @ data.times_factor(W12), spike_slab_sweep.degrees(W12)
    np.testing.assert_array_equal(degree, np.count_nonzero(W12, axis=0))
    law = np.linspace(-900.0, 900.0, p), np.linspace(0.5, 2.0, p), np.ones(len(FT))
    spike_slab_sweep.visit(rng, W12, degree, U, R, FT, a, *law, rows, rare)
    np.testing.assert_array_equal(W12[1:-1], state.W12[1:-1])
    assert not W12[0].any()
    assert W12[-1].all()
    np.testing.assert_allclose(R, data.Y + U @ data.times_factor(W12), atol=1e-10)
    np.testing.assert_array_equal(degree, np.count_nonzero(W12, axis=0))


def test_near_duplicates_share_their_edge():
    """Of two columns that are nearly the same, drawn one at a time, an entry hardly ever changes sides."""
    rng = np.random.default_rng(5)
    X2 = rng.standard_normal((200, 30))
    X2[:, 1] = X2[:, 0] + 0.01 * rng.standard_normal(200)
    data = scatter.from_columns(X2[:, :1] + 0.5 * rng.standard_normal((200, 1)), X2)
    prior, W12 = SpikeSlab(inclusion=0.02, slab=1.0), np.zeros((1, 30))
    W12[0, 0] = -4.0
    state, sides = ChainState(np.array([[4.0]]), W12, W12), []
    for _ in range(400):
        state = replace(state, W12=prior.draw_cross(rng, state, data, Dual())[0])
        sides.append(bool(state.W12[0, 1]))
    moves = np.diff(np.array(sides, dtype=int))
    assert np.count_nonzero(moves) > 40
    assert 0.1 < np.mean(sides) < 0.9


def test_evidence_is_the_integral():
    for b, c, v in ((0.7, 2.0, 0.5), (-3.0, 0.1, 4.0)):
        w = np.linspace(-60, 60, 400_001)
        integral = np.trapezoid(stats.norm.pdf(w, 0, math.sqrt(v)) * np.exp(b * w - c * w * w / 2), w)
        assert log_evidence(b, c, v) == pytest.approx(math.log(integral), abs=1e-8)


def test_hyperparameters_have_their_conditional_laws():
    rng, W12 = np.random.default_rng(2), np.zeros((3, 8))
    W12[[0, 1, 1, 2], [1, 2, 5, 7]] = [0.5, -1.0, 0.3, 2.0]
    draws = [LEARNED.draw_scales(rng, W12, {}) for _ in range(4000)]
    inclusion, slab = (np.array([hyper[name] for _, hyper in draws]) for name in ("inclusion", "slab"))
    assert stats.kstest(inclusion, stats.beta(2.0 + 4, 3.0 + 20).cdf).pvalue > 1e-6
    squares = float((W12**2).sum())
    assert stats.kstest(slab, stats.invgamma(2.5 + 2, scale=0.8 + squares / 2).cdf).pvalue > 1e-6
    T, hyper = draws[0]
    np.testing.assert_array_equal(T, np.where(W12 != 0, hyper["slab"], 0.0))


@pytest.mark.parametrize("prior", [LEARNED, replace(LEARNED, slab=0.7)], ids=["learned", "given"])
def test_row_scales_follow_the_density(prior):
    """Against the density of the entries that are not zero, integrated over the slab on a grid."""
    _, state, _ = problem(3, 6, 10, seed=1)
    v = np.geomspace(1e-4, 1e4, 20_001) if prior.slab is None else np.array([prior.slab])

    def log_density(r):
        w = (r[:, None] * state.W12)[state.W12 != 0]
        rows = np.nonzero(state.W12)[0]
        normal = stats.norm.logpdf(w[:, None], 0, np.sqrt(v)).sum(axis=0) + np.log(r)[rows].sum()
        if prior.slab is not None:
            return normal[0]
        return math.log(np.trapezoid(np.exp(normal + stats.invgamma.logpdf(v, prior.shape, scale=prior.rate)), v))

    found, r = prior.row_law(state).log_density, np.array([0.7, 1.9, 1.2])
    assert found(r) - found(np.ones(3)) == pytest.approx(log_density(r) - log_density(np.ones(3)), abs=1e-5)


def test_common_factor_follows_the_density_of_the_slab(monkeypatch):
    """``p(c^2 slab) c^2 slab`` as a function of ``u = log c``; what else the move changes is the likelihood's."""
    heard = []
    monkeypatch.setattr(spike_slab, "draw_common_factor", lambda rng, log, *likelihood: heard.append(log) or 1.0)
    LEARNED.draw_factor(np.random.default_rng(0), {"inclusion": 0.3, "slab": 0.5}, 1.0, 1.0)
    u = np.array([-1.3, 0.0, 0.8])
    expected = stats.invgamma.logpdf(0.5 * np.exp(2 * u), LEARNED.shape, scale=LEARNED.rate) + 2 * u
    found = np.array([heard[0](value) for value in u])
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-12)


def test_common_factor_keeps_the_slab_in_step():
    rng = np.random.default_rng(4)
    c, hyper = LEARNED.draw_factor(rng, {"inclusion": 0.3, "slab": 0.5}, linear=-3.0, quadratic=2.0)
    assert c != 1
    assert hyper == {"inclusion": 0.3, "slab": pytest.approx(0.5 * c * c)}
    assert replace(LEARNED, slab=0.5).draw_factor(rng, {"inclusion": 0.3}, -3.0, 2.0) == (1.0, {"inclusion": 0.3})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("inclusion", 0.0),
        ("inclusion", 1.0),
        ("inclusion", "a"),
        ("slab", -1.0),
        ("rate", math.inf),
        ("edges", 0),
    ],
)
def test_what_is_not_a_law_is_refused(name, value):
    with pytest.raises(ValueError, match=rf"SpikeSlab\({name}="):
        SpikeSlab(**{name: value})
