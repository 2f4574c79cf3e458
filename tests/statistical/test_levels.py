"""Columns known by their order alone: sweeps keep the joint law of parameters and latent columns.

If levels are shares of the ranks (the lowest third, the middle one, the highest), the order of the latent cells
tells all that is observed, and the rank likelihood is the likelihood: draws of everything are exact, and a sweep
from them must leave their joint law alone. The scale is left free here; fixing it is a convention, not a draw.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from markovblanket.contracts import Problem
from markovblanket.model import sweep
from markovblanket.model.copula._margins import Levels
from markovblanket.model.copula.latent import Copula
from statistical.calibration import assert_calibrated, p_of_equal_means
from statistical.cases import PRIORS, SOLVERS
from statistical.test_missing import RIDGE, exact_draw

SMALL, WIDE = (2, 4, 9), (1, 6, 6)


def by_rank(x, shares, missing=0):
    """Levels by shares of the ranks; the first rows are missing."""
    codes = np.full(len(x), -1)
    codes[missing:] = np.argsort(np.argsort(x[missing:])) * shares // (len(x) - missing)
    return Levels(codes, unit=False)


def watched(state):
    """Parameters, cells and their scatter; through arctan, so that means exist."""
    X1, X2, W12 = state.columns.X1, state.columns.X2, state.W12
    low = X1[:, 0] + X2 @ W12.T @ np.linalg.inv(state.W11)[:, 0]
    values = {
        "log|W11|": np.linalg.slogdet(state.W11)[1],
        "W11 first": state.W11[0, 0],
        **{f"W12 {j}": W12[0, j] for j in range(W12.shape[1])},
        **{f"w s {j}": W12[0, j] * (X1[:, 0] @ X2[:, j]) for j in range(W12.shape[1])},
        "W12 last": W12[-1, -1],
        "edges": np.count_nonzero(W12),
        "edge of both": W12[0, 0] * W12[-1, 0],
        "<W12, S12>": np.vdot(W12, X1.T @ X2),
        "tr U W12 W21": np.trace(np.linalg.solve(state.W11, W12 @ W12.T)),
        "S11": X1[:, 0] @ X1[:, 0],
        "S11 cross": X1[:, 0] @ X1[:, -1],
        "residual": low @ low,
        "residual cross": low @ X1[:, -1],
        "cell": X1[0, 0],
        "largest": X1[:, 0].max(),
        "S22": X2[:, 0] @ X2[:, 0],
        **state.hyper,
    }
    return {name: np.arctan([value, abs(value)]) for name, value in values.items()}


def p_values(rng, size, prior, replications, step, rest=()):
    """P-values of "the step leaves the joint law alone"; ``rest`` has levels too."""
    (p, q, n), (law, mixture), changes = size, PRIORS[prior], {}
    for _ in range(replications):
        state, X = exact_draw(rng, p, q, n, mixture)
        margins = {0: by_rank(X[:, 0], 3, missing=1)}, {j: by_rank(X[:, p + j], 2) for j in rest}
        source = Copula(X[:, :p], X[:, p:], *margins, lambda n, q: n + q + 1, ridge=lambda n, q: RIDGE)
        problem = Problem(source.scatter(source.start()), law, SOLVERS["dual"], source)
        state = replace(state, columns=source.start())
        before, after = watched(state), watched(step(rng, state, problem))
        for name, value in after.items():
            changes.setdefault(name, []).append(value - before[name])
    return {
        f"{name}, {what}": p_of_equal_means(np.array(values)[:, k])
        for name, values in changes.items()
        for k, what in enumerate(("location", "spread"))
    }


def sweeps(rng, state, problem):
    """Two whole sweeps, and the columns once more."""
    for _ in range(2):
        state, _ = sweep.sweep(rng, state, problem)
    return sweep.refresh(rng, state, problem)[0]


def hops(rng, state, problem):
    """Proposals of edges to hop, and nothing else."""
    for _ in range(3):
        state, _ = problem.latent.hop(rng, state, *problem.prior.zero_law(state.hyper))
    return state


@pytest.mark.parametrize("prior", ["laplace", "spike learned"])
def test_sweeps_with_levels_keep_the_joint_law(prior):
    assert_calibrated(p_values(np.random.default_rng(1), SMALL, prior, 400, sweeps, rest=(1,)))


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["laplace", "learned", "spike", "spike learned"])
@pytest.mark.parametrize("size", [SMALL, WIDE], ids=str)
def test_sweeps_with_levels_keep_the_joint_law_closely(prior, size):
    assert_calibrated(p_values(np.random.default_rng(2), size, prior, 1500, sweeps, rest=(0, 2)))


@pytest.mark.parametrize("size", [SMALL, WIDE], ids=str)
def test_hops_keep_the_joint_law(size):
    assert_calibrated(p_values(np.random.default_rng(3), size, "spike", 600, hops))
