"""The sampler with extreme units and collinearity.

Every case ends in finite draws, or in an error that names the cause; and where a dense solution, written in the
tests, knows the answer, it is compared, in conditional standard deviations.
"""

from __future__ import annotations

import numpy as np
import pytest

from markovblanket.contracts import Noise, SolverError
from markovblanket.model.scatter import from_columns, from_matrix
from markovblanket.solvers import Dense, Dual
from support.soundness import PRIORS, correlated, error_in_sds, every_prior, fit, in_units, standardised, sweeps

# Units ---------------------------------------------------------------------------------------------------

TABLE = correlated(2, 60, 8)
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
    with pytest.raises(ValueError, match="column 0 is constant up to rounding; leave it out or subtract"):
        fit(TABLE + 1e16, margins="gaussian")


@pytest.mark.parametrize("spread", [0, 4, 8, 20, 70, 140])
def test_a_scatter_in_any_units_is_kept_to_rounding(spread):
    """``S12 = Y F``, ``S22 = F'F`` and the diagonal of the inverse, each variable in its own unit."""
    S, units = in_units(spread)
    scatter = from_matrix(S, n=50, p=2)
    unit = np.outer(units, units)
    np.testing.assert_allclose((scatter.F.T @ scatter.F) / unit[2:, 2:], S[2:, 2:] / unit[2:, 2:], rtol=1e-12)
    np.testing.assert_allclose((scatter.Y @ scatter.F) / unit[:2, 2:], S[:2, 2:] / unit[:2, 2:], rtol=1e-12)
    A = S[2:, 2:] + scatter.rest_prior.ridge * np.eye(6)
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
    with pytest.raises(SolverError, match=r"collinear, or the units of a given scatter matrix") as error:
        Dual().draw(1e119 * np.eye(2), np.ones((2, 6)), scatter, noise)
    said = float(str(error.value).split("the error is ")[1].split()[0])
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
