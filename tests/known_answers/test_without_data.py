"""One row of zeros: the posterior is the prior with a factor, and rejection draws from it exactly.

Compared are distribution functions at the quartiles, which have no heavy tails. The suite-wide false alarm rate
is 1e-5, as everywhere; two rows instead of one, or another prior, must be noticed in the same draws.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np
import pytest

from known_answers.cases import BATCHES, run, runs
from known_answers.exact import Array, Data, without_data
from known_answers.monte_carlo import assert_agree, assert_disagree, estimates, independent
from markovblanket.contracts import Solver
from markovblanket.priors import Laplace, Normal

P, Q = 2, 3
NOTHING = Data(1, np.zeros((P + Q, P + Q)), P)
PROPOSALS = 60_000
PRIORS: dict[str, tuple[Laplace | Normal, Laplace | Normal]] = {  # with another that must not pass for it
    "normal": (Normal(scale=0.8), Normal(scale=1.2)),
    "laplace": (Laplace(gamma=2.0), Laplace(gamma=3.0)),
    "laplace, rate learned": (Laplace(shape=4.0, rate=2.0), Laplace(shape=5.0, rate=2.0)),
}


def prior_draws(rng: np.random.Generator, prior: Laplace | Normal) -> dict[str, Array]:
    """Independent draws of W12 and hyperparameters, by the densities of the priors."""
    size = (PROPOSALS, P, Q)
    if isinstance(prior, Normal):
        return {"W12": rng.normal(0, prior.scale, size)}
    if prior.gamma is not None:
        return {"W12": rng.laplace(0, 1 / prior.gamma, size)}
    gamma = rng.gamma(prior.shape, 1 / prior.rate, PROPOSALS)
    return {"W12": rng.laplace(0, 1, size) / gamma[:, None, None], "gamma": gamma}


def exact_draws(prior: Laplace | Normal, n: int) -> dict[str, Array]:
    """Independent draws of the posterior of ``n`` rows of zeros."""
    rng = np.random.default_rng(6)
    proposal = prior_draws(rng, prior)
    W11, keep = without_data(rng, proposal["W12"], n)
    return {name: value[keep] for name, value in (proposal | {"W11": W11}).items()}


def scalars(kept: Mapping[str, Array]) -> dict[str, Array]:
    """Every entry, log|W11|, the sum of |W12|, and gamma if it is learned."""
    x = {f"w12[{i}, {j}]": kept["W12"][..., i, j] for i, j in product(range(P), range(Q))}
    x |= {f"w11[{i}, {j}]": kept["W11"][..., i, j] for i, j in ((0, 0), (0, 1), (1, 1))}
    x |= {"log|W11|": np.linalg.slogdet(kept["W11"])[1], "size": np.abs(kept["W12"]).sum(axis=(-2, -1))}
    return x | ({"gamma": kept["gamma"]} if "gamma" in kept else {})


def below(x: Mapping[str, Array], cuts: Mapping[str, Array]) -> dict[str, Array]:
    """Whether each scalar is below each of its cuts."""
    return {f"{name} < {c:.2f}": (x[name] < c).astype(float) for name in x for c in cuts[name]}


@pytest.mark.parametrize("case", PRIORS)
@runs
def test_no_data(case: str, solver: Solver, draws: int) -> None:
    prior, other = PRIORS[case]
    exact = scalars(exact_draws(prior, n=1))
    cuts = {name: np.quantile(value, [0.25, 0.5, 0.75]) for name, value in exact.items()}
    found = estimates(below(scalars(run(NOTHING, prior, solver, draws)), cuts), BATCHES)
    assert_agree(found, independent(below(exact, cuts)))
    for wrong in (exact_draws(prior, n=2), exact_draws(other, n=1)):
        assert_disagree(found, independent(below(scalars(wrong), cuts)))
