"""The sampler with extreme scales and hyperparameters, few rows, and tables that are hard on latent columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from markovblanket.contracts import Noise, Problem
from markovblanket.model import _interweaving, sweep
from markovblanket.priors import Horseshoe, Laplace, Normal, SpikeSlab
from markovblanket.solvers import Dense, Dual
from support.soundness import assert_sound, correlated, every_prior, fit, of, sweeps
from variates.agreement import FALSE_ALARM, p_value_of_law

# Scales of W12 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(2, 6, 40), (3, 30, 10), (1, 5, 20)], ids=str)
def test_scales_from_1e_300_to_1e300(size):
    """Both solvers agree, in units of what an entry has as its conditional standard deviation at most."""
    p, q, n = size
    rng = np.random.default_rng(size)
    scatter, U = of(correlated(8, n, p + q), p), 0.3 * np.eye(p) + 0.1
    T = 10.0 ** rng.choice([-300, -30, -1, 0, 1, 30, 300], (p, q))
    noise = Noise.draw(rng, p, q, len(scatter.F))
    dense, dual = (solver.draw(U, T, scatter, noise)[0] for solver in (Dense(), Dual(tolerance=1e-8)))
    sd = 1 / np.sqrt(np.diag(U)[:, None] * (1 + scatter.column_sizes) + 1 / T)
    assert np.isfinite(dual).all()
    np.testing.assert_allclose(dual / sd, dense / sd, rtol=1e-5, atol=1e-5)


EXTREME = {
    **{f"gamma={g}": Laplace(gamma=g) for g in (1e-99, 1e-6, 1e6, 1e99)},
    **{
        f"gamma, shape={a} rate={b}": Laplace(shape=a, rate=b)
        for a, b in ((1e-99, 1e-99), (1e99, 1e99), (1e6, 1e-6))
    },
    **{f"scale={s}": Normal(s) for s in (1e-99, 1e-12, 1e12, 1e99)},
    **{f"inclusion={i}": SpikeSlab(inclusion=i) for i in (1e-99, 1e-12, 1 - 1e-12, 1 - 1e-16)},
    **{
        f"inclusion=1 - 1e-12, slab={v}": SpikeSlab(inclusion=1 - 1e-12, slab=v)
        for v in (1e-99, 1e-12, 1e12, 1e99)
    },
    **{
        f"edges={e} gaps={g}": SpikeSlab(edges=e, gaps=g)
        for e, g in ((0.1, 0.1), (1e99, 0.1), (0.1, 1e99), (1e3, 0.1))
    },
    **{
        f"slab, shape={a} rate={b}": SpikeSlab(shape=a, rate=b)
        for a, b in ((0.1, 1e-99), (0.1, 1e99), (1e99, 1e-99))
    },
    **{
        f"tau scale={s} slab={v}": Horseshoe(scale=s, slab=v)
        for s in (1e-99, 1e-6, 1e6, 1e99)
        for v in (None, 1e-99, 1e6, 1e99, np.inf)
    },
    **{
        f"horseshoe shape={a} rate={b}": Horseshoe(shape=a, rate=b)
        for a, b in ((0.1, 1e-99), (0.1, 1e99), (1e99, 1e99))
    },
}


@pytest.mark.parametrize("prior", EXTREME.values(), ids=EXTREME)
def test_hyperparameters_as_extreme_as_they_come(prior):
    sweeps(of(correlated(9, 40, 8)), prior, 40)


@pytest.mark.parametrize("scale", [0.0, 5e-324, 1e-300])
def test_scales_that_have_underflowed_hold_their_entries_and_come_back(scale):
    """A row of ``W12`` held at zero by its scales, for a sweep; then its scales are drawn anew."""
    problem = Problem(of(correlated(9, 40, 8)), Horseshoe(), Dual())
    rng, keep = np.random.default_rng(1), np.array([[1.0], [0.0]])
    state = sweep.start(rng, problem)
    state = replace(state, T=np.where(keep, state.T, scale), W12=keep * state.W12)
    for _ in range(20):
        state, info = sweep.sweep(rng, state, problem)
        assert_sound(state, sweep.derive(rng, state, info, problem.scatter))
    assert (state.T > 1e-200).all()


@pytest.mark.slow
@pytest.mark.parametrize("prior", list(EXTREME.values())[::4], ids=list(EXTREME)[::4])
def test_so_for_a_thousand_sweeps(prior):
    sweeps(of(correlated(9, 40, 8)), prior, 1000)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: SpikeSlab(edges=0.01), "edges must be a number, at least 0.1"),
        (lambda: SpikeSlab(gaps=1e-3), "gaps must be a number, at least 0.1"),
        (lambda: SpikeSlab(shape=1e-3), "shape must be a number, at least 0.1"),
        (lambda: Horseshoe(shape=1e-3), "shape must be a number, at least 0.1"),
        (lambda: Laplace(shape=1e90, rate=1e-90), "shape/rate is too extreme"),
    ],
)
def test_hyperpriors_beyond_the_range_of_a_double_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()


@pytest.mark.parametrize("linear", [-1e73, 1e73, np.nan, -1e300])
def test_slices_end_however_far_away_the_mode_is(linear):
    """1e28 widths, say, where the slope is all rounding."""
    assert abs(_interweaving.step(np.random.default_rng(0), 26.0, linear, 1e89, 0.5, 1.0)) < 2.0


def test_scales_that_hold_W11_to_rounding_leave_it_where_it_is():
    """A row of scales about 1e-89: entries of that row cannot move, the first one can."""
    W, D = np.array([[2.08, -0.82], [-0.82, 1.78]]), np.array([[29.2, 12.6], [12.6, 36.4]])
    H = np.array([[[5.1, 8.6], [8.6, 26.4]], [[2.2e89, 1.03e89], [1.03e89, 4.9e88]]])
    moved = _interweaving.draw(np.random.default_rng(0), W, 26.0, D, H) != W
    np.testing.assert_array_equal(moved, [[True, False], [False, False]])


def test_steps_of_growing_length_leave_the_law_as_it_is(monkeypatch):
    """``w^5 exp(-w/2)``, each draw by many steps; false alarms as for the variates."""
    monkeypatch.setattr(_interweaving, "MOST_EQUAL_STEPS", 0)
    monkeypatch.setattr(_interweaving, "expected_width", lambda *_: 0.01)
    monkeypatch.setattr(_interweaving, "outside", _interweaving.outside.py_func)
    rng, kept = np.random.default_rng(1), np.empty(1000)
    for k in range(len(kept)):
        kept[k] = rng.gamma(6.0) * 2
        for _ in range(10):
            kept[k] += _interweaving.step.py_func(rng, 2.5, 0.5, 0.0, 1 / kept[k], 0.0)
    assert p_value_of_law(kept, stats.gamma(6.0, scale=2.0).cdf) > FALSE_ALARM


# Sizes ---------------------------------------------------------------------------------------------------

SIZES = [(1, 1, 1), (1, 2, 3), (2, 1, 1), (2, 2, 3), (2, 5, 1), (3, 10, 1), (5, 20, 3), (100, 10, 1), (2, 3, 100)]


@every_prior
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_few_rows_and_few_columns(prior, size):
    n, p, q = size
    sweeps(of(np.random.default_rng(size).standard_normal((n, p + q)), p), prior, 20)


@pytest.mark.slow
@every_prior
@pytest.mark.parametrize("size", [(1, 1, 1), (2, 2, 3)], ids=str)
def test_so_for_thousands_of_sweeps_of_few_rows(prior, size):
    n, p, q = size
    sweeps(of(np.random.default_rng(size).standard_normal((n, p + q)), p), prior, 2000)


@pytest.mark.slow
def test_rows_without_an_edge_for_thousands_of_sweeps():
    """Nothing included, ever: no entry, no drift, and the hyperparameters follow their priors."""
    state = sweeps(of(correlated(12, 100, 12)), SpikeSlab(inclusion=1e-12), 5000)
    assert not state.W12.any()
    assert not state.T.any()


# Tables that are hard on latent columns --------------------------------------------------------------------


def hard_tables():
    """Ties, levels that explain each other exactly, columns all but empty."""
    X, rng = correlated(13, 60, 8), np.random.default_rng(14)
    binary, gaps = (X > 0) * 1.0, np.where(rng.random(X.shape) < 0.85, np.nan, X)
    gaps[:3] = X[:3]
    identical = binary.copy()
    identical[:, [0, 1, 4]] = binary[:, [5]]
    separable, two = np.column_stack([X[:, 3] > 0, X[:, 1:]]), X.copy()
    two[2:, 3] = np.nan
    tables = {
        "ties": np.round(X),
        "binary": binary,
        "one in sixty": np.where(np.arange(60) == 7, 1.0, 0.0)[:, None] + 0 * X,
    }
    tables["one in sixty"][:, 1:] = X[:, 1:]
    return tables | {"identical": identical, "separable": separable, "gaps": gaps, "two observed": two}


@pytest.mark.filterwarnings("ignore::markovblanket.ConvergenceWarning")
@pytest.mark.parametrize("name", hard_tables())
@pytest.mark.parametrize("prior", ["spike-slab", "horseshoe"])
def test_hard_tables(name, prior):
    """Finite; and what is filled in is a value that the column had, or lies between such."""
    table = hard_tables()[name]
    posterior = fit(table, prior=prior)
    assert np.isfinite(posterior.W12).all()
    assert np.isfinite(posterior.W11).all()
    for completed in posterior.imputed():
        values = completed.to_numpy(dtype=float)
        assert (values >= np.nanmin(table, axis=0)).all()
        assert (values <= np.nanmax(table, axis=0)).all()
        np.testing.assert_array_equal(values[~np.isnan(table)], table[~np.isnan(table)])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::markovblanket.ConvergenceWarning")
@pytest.mark.parametrize("prior", ["spike-slab", "laplace", "horseshoe"])
def test_a_query_that_the_rest_explains_exactly(prior):
    """Levels separated by a variable, and a copy of it: for thousands of sweeps, and with the right sign."""
    X = correlated(15, 60, 8)
    X[:, 0], X[:, 1] = X[:, 3] > 0, X[:, 3]
    posterior = fit(X, prior=prior, warmup=500, draws=2000)
    assert np.isfinite(posterior.W12).all()
    assert (posterior.W12.mean(("chain", "draw")).to_numpy()[:, 1] < 0).all()
