"""The package's chains against an independent NUTS run: p = 3, q = 15, n = 60.

Means, variances and sign probabilities of all entries of W11 and W12, of log|W11| and of a learned gamma. The
whole suite raises a false alarm once in 100 000 runs; a difference of 0.1 posterior standard deviations in
the mean of any entry would be found out, and planted errors are. Figures of a run: ``--log-cli-level=INFO``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from known_answers.exact import Array, Data
from known_answers.monte_carlo import Estimate, assert_agree, assert_disagree, estimates
from markovblanket.chains import run as run_chains
from markovblanket.contracts import Noise, Problem, Scatter, SolveInfo, Solver
from markovblanket.model import scatter
from markovblanket.priors import Laplace, Normal
from markovblanket.solvers import Dense, Dual

logger = logging.getLogger(__name__)
pytestmark = pytest.mark.slow

N, P, Q = 60, 3, 15
# The prior, how many sweeps per solver, and how many draws of a NUTS chain: enough for DETECTABLE.
CASES: dict[str, tuple[Laplace | Normal, int, int]] = {
    "normal": (Normal(scale=0.3), 8_000, 3_000),
    "laplace": (Laplace(gamma=20.0), 12_000, 5_000),
    "laplace, rate learned": (Laplace(), 13_000, 5_000),
}
CHAINS, NUTS_CHAINS, WARMUP = 2, 10, 300
DETECTABLE = 0.1


@pytest.fixture(autouse=True)
def _numpyro() -> None:
    """Skip before anything runs where the other sampler is not installed."""
    pytest.importorskip("numpyro", reason="the independent run needs NumPyro")


def small_table() -> tuple[Array, Array]:
    """Standardised columns: correlated others, and query variables that depend on three of them."""
    rng = np.random.default_rng(8)
    X2 = rng.standard_normal((N, Q)) + 0.5 * rng.standard_normal((N, 1))
    effects = np.zeros((Q, P))
    effects[:3] = [[0.6, 0.3, 0.0], [0.0, -0.5, 0.3], [0.0, 0.0, 0.6]]
    X = np.hstack([X2 @ effects + rng.standard_normal((N, P)), X2])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X[:, :P], X[:, P:]


@cache
def reference(case: str) -> dict[str, Array]:
    """Draws by NUTS."""
    from known_answers import nuts  # not above: NumPyro may be absent

    X = np.hstack(small_table())
    data = Data(N, X.T @ X, P)
    prior, _, draws = CASES[case]
    return nuts.sample(data, prior, chains=NUTS_CHAINS, warmup=500, draws=draws, seed=11)


def package(
    case: str, solver: Solver, *, rows: int = N, draws: int | None = None, seed: int = 12
) -> dict[str, Array]:
    """Draws by the package, told that the scatter has ``rows`` rows."""
    prior, enough, _ = CASES[case]
    problem = Problem(replace(scatter.from_columns(*small_table()), n=rows), prior, solver)
    schedule = run_chains.Schedule(WARMUP, (draws or enough) // CHAINS)
    return dict(run_chains.run(problem, schedule, chains=CHAINS, seed=seed))


def scalars(kept: Mapping[str, Array]) -> dict[str, Array]:
    """Entries of W11 and W12, log|W11|, and gamma if it is learned."""
    x = {f"w11[{i}, {j}]": kept["W11"][..., i, j] for i in range(P) for j in range(i + 1)}
    x |= {f"w12[{i}, {j}]": kept["W12"][..., i, j] for i in range(P) for j in range(Q)}
    x["log|W11|"] = np.linalg.slogdet(kept["W11"])[1]
    return x | ({"gamma": kept["gamma"]} if "gamma" in kept else {})


def features(x: Mapping[str, Array], centre: Mapping[str, float]) -> dict[str, Array]:
    """Each scalar, its squared deviation, and whether it is positive if it may be either."""
    variances = {f"var {name}": (value - centre[name]) ** 2 for name, value in x.items()}
    signed = [f"w11[{i}, {j}]" for i in range(P) for j in range(i)]
    signed += [f"w12[{i}, {j}]" for i in range(P) for j in range(Q)]
    signs = {f"{name} > 0": (x[name] > 0).astype(float) for name in signed}
    return {**x, **variances, **signs}


def summaries(run: Mapping[str, Array], case: str) -> tuple[dict[str, Estimate], dict[str, Estimate]]:
    """The expectations by a run and by NUTS, with as many batches as each has chains for."""
    ours, theirs = scalars(run), scalars(reference(case))
    centre = {name: float(value.mean()) for name, value in theirs.items()}
    batches = 50 * len(run["W11"])
    return estimates(features(ours, centre), batches), estimates(features(theirs, centre), 20 * NUTS_CHAINS)


@pytest.mark.parametrize("case", CASES)
def test_agrees_with_nuts(case: str) -> None:
    """Both solvers, each by itself and together; together they would notice ``DETECTABLE`` sd."""
    dual, dense = package(case, Dual(), seed=12), package(case, Dense(), seed=13)
    assert_agree(*summaries(dual, case), label="dual")
    assert_agree(*summaries(dense, case), label="dense")
    both = {name: np.concatenate([dual[name], dense[name]]) for name in dual}
    resolution = assert_agree(*summaries(both, case), label="both").resolution
    noticed = {name: resolution[name] / value.std() for name, value in scalars(reference(case)).items()}
    gamma = noticed.pop("gamma", 0.0)  # where NUTS itself is slow, so less is asked of it
    logger.info("resolution of a mean, in sd: %.3f at worst, gamma %.3f", max(noticed.values()), gamma)
    assert max(noticed.values()) < DETECTABLE
    assert gamma < 2 * DETECTABLE


class PrintedMean:
    """The mean that Theorem 1 prints, ``-W11 S12 A^-1``: right only without a prior on W12."""

    def draw(self, U: Array, T: Array, scatter: Scatter, noise: Noise) -> tuple[Array, SolveInfo]:
        """The right spread about the wrong mean."""
        still = Noise(np.zeros_like(noise.Z1), np.zeros_like(noise.Z2), np.zeros_like(noise.Z3))
        spread = Dense().draw(U, T, scatter, noise)[0] - Dense().draw(U, T, scatter, still)[0]
        A = scatter.F.T @ scatter.F + np.eye(Q)
        return spread - np.linalg.solve(U, scatter.S12) @ np.linalg.inv(A), SolveInfo()


def test_notices_a_row_too_many() -> None:
    run = package("normal", Dual(), rows=N + 1, draws=8_000)
    assert_disagree(*summaries(run, "normal"), label="a row too many")


def test_notices_the_printed_mean() -> None:
    run = package("normal", PrintedMean(), draws=4_000)
    assert_disagree(*summaries(run, "normal"), label="printed mean")
