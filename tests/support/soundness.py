"""Helpers of the numerical stress tests: priors, tables, sweeps that must be sound, dense solutions to compare."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import markovblanket as mb
from markovblanket.contracts import Noise, Problem
from markovblanket.model import sweep
from markovblanket.model.scatter import from_columns
from markovblanket.priors import Horseshoe, Laplace, Normal, SpikeSlab
from markovblanket.solvers import Dual

fit = partial(mb.estimate, query=[0, 1], chains=1, warmup=20, draws=20, seed=1, progress=False)
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
    state = sweep.start(rng, problem)
    for _ in range(count):
        state, info = sweep.sweep(rng, state, problem)
        assert_sound(state, sweep.derive(rng, state, info, scatter))
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


def in_units(spread, seed=3, n=50, d=8):
    """A scatter whose variables are measured in units that differ by ``10^spread``."""
    X = correlated(seed, n, d)
    units = 10.0 ** np.random.default_rng(seed).permutation(np.linspace(-spread / 2, spread / 2, d))
    return X.T @ X * np.outer(units, units), units
