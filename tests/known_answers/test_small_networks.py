"""The widened block against small networks whose answers are known by enumerating every graph.

Compared are the averaged conditional probabilities of the edges, how often the edges are there, and the means of
all entries, each within its Monte Carlo error; the suite raises a false alarm once in 100 000 runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from known_answers.exact import Array
from known_answers.monte_carlo import Estimate, assert_agree, assert_disagree, estimates
from known_answers.small_networks import SMALL_CASES, SmallCase
from markovblanket.contracts import ChainState, Hyper, Problem
from markovblanket.model import scatter
from markovblanket.model._pair_classes import HYPER_NAMES
from markovblanket.model.network_sweep import WidenedBlanket
from markovblanket.priors import SpikeSlab
from markovblanket.solvers import Dual
from statistical.networks import Held
from statistical.plain_network import Plain

Sampler = Held | Plain
Kind = Callable[..., Sampler]

CHAINS, WARMUP, BATCHES = 2, 100, 40
BY_NAME = {case.name: case for case in SMALL_CASES}
QUICK = ["3, two rows", "4, three rows, classes", "2 + 2, weak, classes", "3 + 1, near-duplicates, classes"]


def held(case: SmallCase) -> Hyper:
    """The given hyperparameters, by name."""
    values = {kind: (case.pi[kind], case.v[kind]) for kind in HYPER_NAMES}
    return {name: values[kind][k] for kind, names in HYPER_NAMES.items() for k, name in enumerate(names)}


def sampler_of(case: SmallCase, kind: Kind = Held) -> Sampler:
    """The sampler of the case: the candidates are the first of the variables that are not in the query."""
    X, candidates = case.X, np.arange(case.P - case.query)
    problem = Problem(scatter.from_columns(X[:, : case.query], X[:, case.query :]), SpikeSlab(), Dual())
    widened = WidenedBlanket.of(problem, candidates, np.ones(X.shape[1]))
    return kind(*(getattr(widened, name) for name in WidenedBlanket.__slots__), held(case))


def chain(rng: np.random.Generator, sampler: Sampler, sweeps: int) -> list[ChainState]:
    """The states of a chain after its warm-up."""
    start = sampler.start(rng)
    state = replace(start, hyper=sampler.held, T=np.zeros_like(start.T))
    states = []
    for _ in range(WARMUP + sweeps):
        state, _ = sampler.sweep(rng, state)
        states.append(state)
    return states[WARMUP:]


def run(case: SmallCase, sweeps: int, seed: int = 1, kind: Kind = Held) -> dict[str, Array]:
    """What is compared, by name, each (chain, sweep)."""
    sampler = sampler_of(case, kind)
    chains = [chain(np.random.default_rng([seed, k]), sampler, sweeps) for k in range(CHAINS)]
    W = np.array([[np.hstack([state.W11, state.W12]) for state in states] for states in chains])
    probability = np.array([[state.inclusion for state in states] for states in chains])
    kept = {}
    for i, k in pairs(case):
        kept[f"edge {i}~{k}"] = (W[:, :, i, k] != 0).astype(float)
        if k < case.P:
            kept[f"probability {i}~{k}"] = probability[:, :, i, k]
    return kept | {f"mean {i}~{k}": W[:, :, i, k] for i, k in [*pairs(case), *diagonal(case)]}


def pairs(case: SmallCase) -> list[tuple[int, int]]:
    """All pairs with a variable of the block."""
    return [(i, k) for i in range(case.P) for k in range(i + 1, case.d)]


def diagonal(case: SmallCase) -> list[tuple[int, int]]:
    """The diagonal of the block."""
    return [(i, i) for i in range(case.P)]


def truth(case: SmallCase) -> dict[str, Estimate]:
    """The exact answers, with the error of their integrals."""
    exact, answers = case.exact, {}
    for i, k in pairs(case):
        answer = Estimate(exact.inclusion[i, k], exact.inclusion_error[i, k], 7)
        answers[f"edge {i}~{k}"] = answer
        if k < case.P:
            answers[f"probability {i}~{k}"] = answer
    return answers | {
        f"mean {i}~{k}": Estimate(exact.mean[i, k], exact.mean_error[i, k], 7)
        for i, k in [*pairs(case), *diagonal(case)]
    }


@pytest.mark.parametrize("name", QUICK)
def test_the_answers_are_found(name: str) -> None:
    case = BY_NAME[name]
    assert_agree(estimates(run(case, sweeps=2500), BATCHES), truth(case), name)


@pytest.mark.slow
@pytest.mark.parametrize("case", SMALL_CASES, ids=str)
def test_the_answers_are_found_closely(case: SmallCase) -> None:
    agreement = assert_agree(estimates(run(case, sweeps=40_000, seed=2), BATCHES), truth(case), case.name)
    found_out = [value for name, value in agreement.resolution.items() if name.startswith("probability")]
    assert max(found_out) < 0.1  # a probability that is wrong by a tenth would have been found out


@pytest.mark.slow
@pytest.mark.parametrize("name", ["4, near-duplicates, classes", "3 + 1, near-duplicates, classes"])
def test_other_classes_would_be_found_out(name: str) -> None:
    """The hyperparameters of the two classes of pairs exchanged."""
    case = BY_NAME[name]
    swapped = replace(case, pi=case.pi[::-1], v=case.v[::-1])
    assert_disagree(estimates(run(swapped, sweeps=10_000), BATCHES), truth(case), name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "flaw"),
    [
        ("3, near-duplicates", "places in order"),
        ("4, near-duplicates, classes", "relocated without prior odds"),
        ("3 + 1, near-duplicates, classes", "z without w"),
        ("3, strong edge", "U for M"),
    ],
)
def test_planted_mistakes_are_found_out(name: str, flaw: str) -> None:
    """In a plain twin of the sweep, which agrees without them."""
    case = BY_NAME[name]
    right = estimates(run(case, sweeps=4000, kind=Plain), BATCHES)
    assert_agree(right, truth(case), name)
    wrong = estimates(run(case, sweeps=4000, kind=partial(Plain, flaw=flaw)), BATCHES)
    assert_disagree(wrong, truth(case), flaw)
