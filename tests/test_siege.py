"""The sampler under siege: units, collinearity, scales, sizes and hyperparameters as extreme as they come.

Every case ends in finite draws, or in an error that names the cause. Where the right answer is known it is
compared: with a dense solution written here, in conditional standard deviations; or, in the limits in which a
posterior has a closed form, with that law (:mod:`known_answers`, whose checks share a false alarm rate of 1e-5).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import stats

import markovblanket as mb
from known_answers.cases import gaussian_data, run
from known_answers.exact import Data, FlatPrior, GivenScalar
from known_answers.monte_carlo import assert_agree, assert_disagree, estimates, known
from markovblanket import gibbs, regression
from markovblanket.contracts import Noise, Problem, SolverError
from markovblanket.priors import Horseshoe, Laplace, Normal, SpikeSlab
from markovblanket.scatter import from_columns, from_matrix
from markovblanket.solvers import Dense, Dual
from markovblanket.variates import generalized_inverse_gaussian, mgig, truncated_normal
from variates.agreement import FALSE_ALARM, p_value_of_law

PRIORS = {
    "spike-slab": SpikeSlab(),
    "laplace": Laplace(),
    "laplace, given": Laplace(gamma=20.0),
    "horseshoe": Horseshoe(),
    "normal": Normal(),
}
every_prior = pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def correlated(seed, n, d):
    """Rows with a common factor."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) + rng.standard_normal((n, 1))


def of(X, p=2):
    Z = standardised(X) if len(X) > 1 else X
    return from_columns(Z[:, :p], Z[:, p:])


def sweeps(scatter, prior, count, solver=None, seed=1):
    """So many sweeps, each of which must leave a sound state behind; the last one."""
    rng, problem = np.random.default_rng(seed), Problem(scatter, prior, solver or Dual())
    state = gibbs.start(rng, problem)
    for _ in range(count):
        state, info = gibbs.sweep(rng, state, problem)
        assert_sound(state, gibbs.derive(rng, state, info, scatter))
        assert info.residual <= getattr(problem.solver, "tolerance", 0.0)
    return state


def assert_sound(state, draw):
    """Finite throughout; ``W11`` positive definite, the diagonal of ``W22`` and all hyperparameters positive."""
    for x in (state.W11, state.W12, state.T, draw.W22_diagonal, draw.explained, [*state.hyper.values()]):
        assert np.isfinite(x).all()
    unit = 1 / np.sqrt(np.diag(state.W11))
    assert np.linalg.eigvalsh(state.W11 * np.outer(unit, unit))[0] > 0
    assert (draw.W22_diagonal > 0).all()
    assert (state.T >= 0).all()
    assert all(value > 0 for value in state.hyper.values())


def error_in_sds(S, U, T, scatter, solver, seed=0):
    """How far a solver's draw is from the one of a dense inverse, taken at unit diagonal, in conditional sds."""
    p, q = T.shape
    noise = Noise.draw(np.random.default_rng(seed), p, q, len(scatter.F))
    found, _ = solver.draw(U, T, scatter, noise)
    C = np.kron(U, S[p:, p:] + np.eye(q)) + np.diag(1 / T.ravel())
    unit = 1 / np.sqrt(np.diag(C))
    L = np.linalg.cholesky(C * np.outer(unit, unit))
    eta = np.linalg.cholesky(U) @ (noise.Z1 + noise.Z2 @ scatter.F) + noise.Z3 / np.sqrt(T)
    exact = unit * np.linalg.solve(L @ L.T, unit * (eta - S[:p, p:]).ravel())
    return np.linalg.norm(L.T @ ((found.ravel() - exact) / unit))


# Units ---------------------------------------------------------------------------------------------------

TABLE = correlated(2, 60, 8)
fit = partial(mb.estimate, query=[0, 1], chains=1, warmup=20, draws=20, seed=1, progress=False, second_look=False)
UNITS = {
    "tiny": np.full(8, 1e-300),
    "huge": np.full(8, 1e300),
    "both": 10.0 ** np.linspace(-300, 300, 8),
    "powers of two": 2.0 ** np.linspace(-1000, 1000, 8).round(),
}


@pytest.mark.filterwarnings("ignore::markovblanket.ConvergenceWarning")
@pytest.mark.parametrize("margins", ["gaussian", "auto"])
def test_units_of_columns_do_not_matter(margins):
    """Ranks and powers of two: to the last bit; other units: to rounding."""
    plain = fit(TABLE, margins=margins).W12.to_numpy()
    for name, units in UNITS.items():
        other = fit(TABLE * units, margins=margins).W12.to_numpy()
        exact = margins == "auto" or name == "powers of two"
        np.testing.assert_allclose(other, plain, rtol=0, atol=0 if exact else 1e-9)


@pytest.mark.filterwarnings("ignore::markovblanket.ConvergenceWarning")
def test_offsets_cost_their_digits_and_end_in_an_error():
    plain = fit(TABLE, margins="gaussian").W12.to_numpy()
    np.testing.assert_allclose(fit(TABLE + 1e8, margins="gaussian").W12, plain, rtol=0, atol=1e-5)
    with pytest.raises(ValueError, match="column 0 is constant, to rounding; leave it out or subtract an offset"):
        fit(TABLE + 1e16, margins="gaussian")


def in_units(spread, seed=3, n=50, d=8):
    """A scatter whose variables are measured in units that differ by ``10^spread``."""
    X = correlated(seed, n, d)
    units = 10.0 ** np.random.default_rng(seed).permutation(np.linspace(-spread / 2, spread / 2, d))
    return X.T @ X * np.outer(units, units), units


@pytest.mark.parametrize("spread", [0, 4, 8, 20, 70, 140])
def test_a_scatter_in_any_units_is_kept_to_rounding(spread):
    """``S12 = Y F``, ``S22 = F'F`` and the diagonal of the inverse, each variable in its own unit."""
    S, units = in_units(spread)
    scatter = from_matrix(S, n=50, p=2)
    unit = np.outer(units, units)
    np.testing.assert_allclose((scatter.F.T @ scatter.F) / unit[2:, 2:], S[2:, 2:] / unit[2:, 2:], rtol=1e-12)
    np.testing.assert_allclose((scatter.Y @ scatter.F) / unit[:2, 2:], S[:2, 2:] / unit[:2, 2:], rtol=1e-12)
    A = S[2:, 2:] + 50 / 12 * np.eye(6)
    scale = np.sqrt(np.diag(A))
    exact = np.diag(np.linalg.inv(A / np.outer(scale, scale))) / scale**2
    np.testing.assert_allclose(scatter.inverse_diagonal, exact, rtol=1e-12)


@pytest.mark.parametrize("spread", [0, 4, 8])
@pytest.mark.parametrize("solver", [Dense(), Dual(tolerance=1e-6)], ids=["dense", "dual"])
def test_draws_in_units_that_differ_are_right(spread, solver):
    """To 1e-4 conditional standard deviations."""
    S, units = in_units(spread)
    U = np.array([[0.5, 0.1], [0.1, 0.3]]) * np.outer(units[:2], units[:2])
    T = np.random.default_rng(4).exponential(1.0, (2, 6))
    assert error_in_sds(S, U, T, from_matrix(S, n=50, p=2), solver) < 1e-4


@every_prior
@pytest.mark.parametrize("spread", [0, 8, 20, 60, 140])
def test_sweeps_in_units_that_differ(prior, spread):
    """Sound; or, where double precision cannot solve the system any more, an error that says so."""
    scatter = from_matrix(in_units(spread)[0], n=50, p=2)
    try:
        sweeps(scatter, prior, 20)
    except SolverError:
        assert spread > 8
        assert prior != PRIORS["spike-slab"]  # which needs no solver


def test_a_solve_that_failed_names_units_and_the_true_residual():
    """Not the one that the recursion carries, which may be tiny: what is said is above the tolerance."""
    scatter = from_matrix(in_units(0)[0] * 1e119, n=50, p=2)
    noise = Noise.draw(np.random.default_rng(0), 2, 6, len(scatter.F))
    with pytest.raises(SolverError, match=r"collinear, or their units, if a scatter was given") as error:
        Dual().draw(1e119 * np.eye(2), np.ones((2, 6)), scatter, noise)
    said = float(str(error.value).split("ended ")[1].split()[0])
    assert not said <= Dual().tolerance


# Collinearity --------------------------------------------------------------------------------------------

NEARLY = [1e-2, 1e-4, 1e-6, 1e-7, 1e-8, 1e-9, 3e-10, 1e-10, 1e-12, 1e-15, 0.0]
PAIRS = {"rest": (3, 4), "query and rest": (0, 3), "query": (0, 1)}


def nearly_equal(pair, eps, n=300, d=42):
    """Two columns whose correlation is about ``1 - eps^2``."""
    X, (a, b) = correlated(5, n, d), PAIRS[pair]
    X[:, b] = X[:, a] + eps * np.random.default_rng(6).standard_normal(n)
    return standardised(X)


@pytest.mark.parametrize("eps", NEARLY)
def test_draws_with_columns_nearly_equal_are_right(eps):
    """To 1e-5 conditional standard deviations, however near."""
    X = nearly_equal("rest", eps)
    T = np.random.default_rng(7).exponential(1.0, (2, 40))
    U = np.array([[0.5, 0.1], [0.1, 0.3]])
    assert error_in_sds(X.T @ X, U, T, from_columns(X[:, :2], X[:, 2:]), Dual(tolerance=1e-8)) < 1e-5
    assert error_in_sds(X.T @ X, U, T, from_matrix(X.T @ X, 300, 2), Dual(tolerance=1e-8)) < 1e-5


@every_prior
@pytest.mark.parametrize("pair", PAIRS)
def test_sweeps_with_columns_nearly_equal(prior, pair):
    for eps in NEARLY:
        X = nearly_equal(pair, eps, n=40, d=8)
        sweeps(from_columns(X[:, :2], X[:, 2:]), prior, 10)


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
    state = gibbs.start(rng, problem)
    state = replace(state, T=np.where(keep, state.T, scale), W12=keep * state.W12)
    for _ in range(20):
        state, info = gibbs.sweep(rng, state, problem)
        assert_sound(state, gibbs.derive(rng, state, info, problem.scatter))
    assert (state.T > 1e-200).all()


@pytest.mark.slow
@pytest.mark.parametrize("prior", list(EXTREME.values())[::4], ids=list(EXTREME)[::4])
def test_so_for_thousands_of_sweeps(prior):
    sweeps(of(correlated(9, 40, 8)), prior, 2000)


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
    assert abs(regression.step(np.random.default_rng(0), 26.0, linear, 1e89, 0.5, 1.0)) < 2.0


def test_scales_that_hold_W11_to_rounding_leave_it_where_it_is():
    """A row of scales about 1e-89: entries of that row cannot move, the first one can."""
    W, D = np.array([[2.08, -0.82], [-0.82, 1.78]]), np.array([[29.2, 12.6], [12.6, 36.4]])
    H = np.array([[[5.1, 8.6], [8.6, 26.4]], [[2.2e89, 1.03e89], [1.03e89, 4.9e88]]])
    moved = regression.draw(np.random.default_rng(0), W, 26.0, D, H) != W
    np.testing.assert_array_equal(moved, [[True, False], [False, False]])


def test_steps_of_growing_length_leave_the_law_as_it_is(monkeypatch):
    """``w^5 exp(-w/2)``, each draw by many steps; false alarms as for the variates."""
    monkeypatch.setattr(regression, "EVEN", 0)
    monkeypatch.setattr(regression, "expected_width", lambda *_: 0.01)
    monkeypatch.setattr(regression, "outside", regression.outside.py_func)
    rng, kept = np.random.default_rng(1), np.empty(1000)
    for k in range(len(kept)):
        kept[k] = rng.gamma(6.0) * 2
        for _ in range(10):
            kept[k] += regression.step.py_func(rng, 2.5, 0.5, 0.0, 1 / kept[k], 0.0)
    assert p_value_of_law(kept, stats.gamma(6.0, scale=2.0).cdf) > FALSE_ALARM


# Limits in which the posterior is known -------------------------------------------------------------------


def features(kept, unit=1.0):
    """Entries of ``W11`` and ``W12`` in given units, and their squares."""
    W = np.concatenate([kept["W11"], kept["W12"]], axis=-1) / unit
    p, d = W.shape[-2:]
    first = {f"w[{i}, {j}]": W[..., i, j] for i in range(p) for j in range(i, d)}
    return first | {f"{name}^2": w**2 for name, w in first.items()}


def moments(mean, variance, p, d):
    """The same, known from their means and variances."""
    pairs = [(i, j) for i in range(p) for j in range(i, d)]
    first = {f"w[{i}, {j}]": mean(i, j) for i, j in pairs}
    return known(first | {f"w[{i}, {j}]^2": mean(i, j) ** 2 + variance(i, j) for i, j in pairs})


def wishart(data, unit):
    """Under a flat prior, in given units."""
    law = FlatPrior.of(data)
    scaled = [lambda i, j: law.mean(i, j) / unit[i, j], lambda i, j: law.variance(i, j) / unit[i, j] ** 2]
    return moments(*scaled, data.p, len(data.S))


FLAT = {
    "laplace": (gaussian_data(3, n=8, p=2, q=3), Laplace(gamma=1e-6), Dual()),
    "one row": (gaussian_data(4, n=1, p=2, q=2), Normal(1e4), Dual()),
    "two rows": (gaussian_data(4, n=2, p=2, q=3), Laplace(gamma=1e-5), Dual()),
    "more query variables than rows": (gaussian_data(5, n=3, p=5, q=1), Normal(1e4), Dual()),
    "all included": (gaussian_data(3, n=8, p=2, q=3), SpikeSlab(inclusion=1 - 1e-12, slab=1e8), Dual()),
    "units": (Data(50, in_units(6, d=4)[0], 2), Normal(1e9), Dual()),
    "units, no solver": (Data(50, in_units(6, d=4)[0], 2), SpikeSlab(inclusion=1 - 1e-16, slab=1e16), Dual()),
}


SHORT = ("laplace", "one row", "units", "units, no solver")  # the others are slow


@pytest.mark.parametrize(
    "case", [pytest.param(name, marks=[] if name in SHORT else [pytest.mark.slow]) for name in FLAT]
)
def test_priors_without_weight_leave_a_wishart_law(case):
    data, prior, solver = FLAT[case]
    draws = 1000 if case in SHORT else 5000
    scale = np.sqrt(np.diag(FlatPrior.of(data).scale))
    unit = np.outer(scale, scale)
    found = estimates(features(run(data, prior, solver, draws), unit[: data.p]), 40)
    assert_agree(found, wishart(data, unit))
    wrong = Data(int(1.3 * data.n) + 2, data.S, data.p)
    assert_disagree(found, wishart(wrong, unit))


NOTHING = {
    "laplace": Laplace(gamma=1e6),
    "normal": Normal(1e-9),
    "all excluded": SpikeSlab(inclusion=1e-12),
    "a narrow slab": SpikeSlab(inclusion=0.5, slab=1e-18),
}


@pytest.mark.parametrize("prior", NOTHING.values(), ids=NOTHING)
def test_priors_that_leave_nothing_of_W12(prior):
    """``W11 ~ Wishart_p(n+p+1, B^-1)``, over and over, whatever the rest."""
    data = gaussian_data(6, n=6, p=2, q=4)
    kept = run(data, prior, Dual(), 1200)
    scale, df = np.linalg.inv(data.B), data.n + data.p + 1

    def law(df):
        variance = lambda i, j: df * (scale[i, j] ** 2 + scale[i, i] * scale[j, j])  # noqa: E731
        return moments(lambda i, j: df * scale[i, j], variance, 2, 2)

    assert np.abs(kept["W12"]).max() < 1e-4
    found = estimates(features({"W11": kept["W11"], "W12": kept["W12"][..., :0]}), 40)
    assert_agree(found, law(df))
    assert_disagree(found, law(df + 2))


@pytest.mark.parametrize("eps", [1e-3, 1e-8, 0.0])
def test_nearly_equal_columns_share_what_is_known_of_them(eps):
    """A query and two variables that are all but one: the exact law of ``(w11, W12)`` under a normal prior."""
    rng = np.random.default_rng(8)
    X = rng.standard_normal((6, 3)) + rng.standard_normal((6, 1))
    X[:, 2] = X[:, 1] + eps * X[:, 2]
    data = Data(6, X.T @ X, 1)
    kept = run(data, Normal(0.7), Dual(), 1000)
    sum_and_difference = np.array([[1.0, 1.0], [1.0, -1.0]])

    def law(scale):
        exact = GivenScalar.of(data, scale)
        mean, cov = sum_and_difference @ exact.mean, sum_and_difference @ exact.cov @ sum_and_difference
        return known({"sum": mean[0], "difference": mean[1], "sum^2": cov[0, 0] + mean[0] ** 2,
                      "difference^2": cov[1, 1] + mean[1] ** 2})  # fmt: skip

    v = kept["W12"][..., 0, :] @ sum_and_difference
    found = estimates(
        {"sum": v[..., 0], "difference": v[..., 1], "sum^2": v[..., 0] ** 2, "difference^2": v[..., 1] ** 2}, 40
    )
    assert_agree(found, law(0.7))
    assert_disagree(found, law(1.0))


def test_the_scale_of_noise_and_of_signal_is_learned():
    """Pure noise: the rate grows as far as the prior lets it; a perfect signal: it stays small, ``W12`` large."""
    noise, signal = np.random.default_rng(10).standard_normal((2000, 8)), correlated(11, 2000, 8)
    signal[:, :2] = signal[:, 2:4]
    rates = {}
    for name, X in (("noise", noise), ("signal", signal)):
        state = sweeps(of(X), Laplace(), 300)
        rates[name] = state.hyper["gamma"]
    assert rates["noise"] > 5 * rates["signal"]


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


# Variates, where their own tests end -----------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1e-290, 1e-150, 1e150, 1e290])
@pytest.mark.parametrize("order", [-3.0, 0.2, 40.0])
def test_units_of_a_generalised_inverse_gaussian_do_not_matter(unit, order):
    """``x / unit`` of the law with ``a unit`` and ``b / unit``: the same draws, to rounding."""
    plain = generalized_inverse_gaussian.draw(np.random.default_rng(0), order, 3.0, 0.5, size=100)
    other = generalized_inverse_gaussian.draw(np.random.default_rng(0), order, 3.0 * unit, 0.5 / unit, size=100)
    np.testing.assert_allclose(other * unit, plain, rtol=1e-11)


@pytest.mark.parametrize("unit", [1e-140, 1e140])
def test_units_of_an_mgig_do_not_matter(unit):
    B, G = np.array([[3.0, 1.2], [1.2, 2.0]]), np.array([[2.0, 0.5], [0.5, 1.0]])
    plain = mgig.step(np.random.default_rng(0), np.eye(2), 4.0, B, G, steps=3)
    other = mgig.step(np.random.default_rng(0), np.eye(2) / unit, 4.0, B * unit, G / unit, steps=3)
    np.testing.assert_allclose(other * unit, plain, rtol=1e-11)


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (1e150, np.inf),
        (1e300, np.inf),
        (1e299, 1e300),
        (-1e300, 1e300),
        (-1e300, -1e200),
        (-1e300, 5.0),
        (0.0, 5e-324),
    ],
)
def test_a_truncated_normal_between_bounds_of_any_size(lower, upper):
    x = truncated_normal.draw(np.random.default_rng(0), np.full(200, lower), upper)
    nearest = np.clip(0.0, lower, upper)
    assert ((x >= lower) & (x <= upper)).all()
    assert np.abs(x - nearest).max() <= max(10.0, 1e-9 * abs(nearest))
