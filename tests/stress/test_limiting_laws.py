"""The sampler in limits where its distribution is known.

Where a prior has no weight, or leaves nothing, the posterior has a closed form. Checks are those of
:mod:`known_answers`, and share its false alarm rate of 1e-5.
"""

from __future__ import annotations

import numpy as np
import pytest

from known_answers.cases import gaussian_data, run
from known_answers.exact import Data, FlatPrior, GivenScalar
from known_answers.monte_carlo import assert_agree, assert_disagree, estimates, known
from markovblanket.priors import Laplace, Normal, SpikeSlab
from markovblanket.solvers import Dual
from markovblanket.variates import generalized_inverse_gaussian, mgig, truncated_normal
from support.soundness import correlated, in_units, of, sweeps

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


SHORT = ("laplace", "units, no solver")


def some_slow(cases, quick):
    """All cases; those that are not quick among the slow tests."""
    return [pytest.param(case, marks=[] if case in quick else [pytest.mark.slow]) for case in cases]


@pytest.mark.parametrize("case", some_slow(FLAT, SHORT))
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


@pytest.mark.parametrize("case", some_slow(NOTHING, ("laplace", "all excluded")))
def test_priors_that_leave_nothing_of_W12(case):
    """``W11 ~ Wishart_p(n+p+1, B^-1)``, over and over, whatever the rest."""
    data = gaussian_data(6, n=6, p=2, q=4)
    kept = run(data, NOTHING[case], Dual(), 1200)
    scale, df = np.linalg.inv(data.B), data.n + data.p + 1

    def law(df):
        variance = lambda i, j: df * (scale[i, j] ** 2 + scale[i, i] * scale[j, j])  # noqa: E731
        return moments(lambda i, j: df * scale[i, j], variance, 2, 2)

    assert np.abs(kept["W12"]).max() < 1e-4
    found = estimates(features({"W11": kept["W11"], "W12": kept["W12"][..., :0]}), 40)
    assert_agree(found, law(df))
    assert_disagree(found, law(df + 2))


@pytest.mark.parametrize("eps", some_slow((1e-3, 1e-8, 0.0), (1e-8,)))
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
