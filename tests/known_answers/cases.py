"""Data for the closed cases, and how long the package runs on them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from known_answers.exact import Array, Data
from markovblanket.chains import run as run_chains
from markovblanket.contracts import Prior, Problem, Solver
from markovblanket.model import scatter
from markovblanket.solvers import Dense, Dual

CHAINS, WARMUP, BATCHES = 2, 100, 40
# A solver is a function of the noise, so both would give the same draws if they ran equally long.
runs = pytest.mark.parametrize(
    ("solver", "draws"),
    [
        pytest.param(Dual(), 1500, id="dual"),
        pytest.param(Dense(), 8000, id="dense, long", marks=pytest.mark.slow),
    ],
)


def run(data: Data, prior: Prior, solver: Solver, draws: int, seed: int = 5) -> dict[str, Array]:
    """``draws`` sweeps of each of two chains."""
    problem = Problem(scatter.from_matrix(data.S, data.n, data.p), prior, solver)
    return dict(run_chains.run(problem, run_chains.Schedule(WARMUP, draws), chains=CHAINS, seed=seed))


def gaussian_data(seed: int, n: int, p: int, q: int) -> Data:
    """Rows with a common factor, so that every pair of columns is correlated."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p + q)) + rng.standard_normal((n, 1))
    return Data(n, X.T @ X, p)


def with_a_row_more(data: Data) -> Data:
    """The same scatter, said to come from one more row."""
    return replace(data, n=data.n + 1)
