"""The paper's recipes as they are printed, and as they should read, under simulation-based calibration.

    python studies/errata.py [--replications 400] [--jobs 1] [--out errata/]

Parameters are drawn from the prior and data given them; a chain of the posterior starts elsewhere; the rank of the
true value among thinned draws must be uniform (Talts et al. 2018). Every recipe is a step of the paper's
Algorithm 1 taken literally, all other steps being right. Beside it: Algorithm 1 with every step right, and this
package's sweep.

Unlike the other studies this one looks inside: the checks and the wrong recipes are those of `tests/statistical`.
Ranks are kept in parts of 50 replications.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from common import DOCS, HERE, kept, one_thread, source
from markovblanket.contracts import Array, ChainState, Problem, Scatter
from markovblanket.model import sweep as gibbs
from markovblanket.variates import mgig

sys.path.append(str(HERE.parent / "tests"))
from statistical import bugs, calibration, reference
from statistical.calibration import Case

Sweep = Callable[[np.random.Generator, ChainState, Problem], ChainState]
DRAWS, PART = 7, 50


def printed_order(rng: np.random.Generator, W11: Array, G: Array, scatter: Scatter) -> Array:
    """The theorem's ``n/2 + p`` as the order of ``|X|^(order - (p+1)/2)``, for ``(n+p+1)/2``."""
    return mgig.step(rng, W11, scatter.n / 2 + len(W11), scatter.B, G)


@dataclass(frozen=True)
class Algorithm1:
    """The paper's sweep: T, then W12, then W11, with a choice of the last; the others are the problem's own."""

    draw_query: bugs.DrawQuery = gibbs.draw_query

    def __call__(self, rng: np.random.Generator, state: ChainState, problem: Problem) -> ChainState:
        """One pass."""
        T, hyper = problem.prior.draw_scales(rng, state.W12, state.hyper)
        state = replace(state, T=T, hyper=hyper)
        W12, _ = problem.prior.draw_cross(rng, state, problem.scatter, problem.solver)
        G, _ = gibbs.row_products(W12, problem.scatter)
        return replace(state, W12=W12, W11=self.draw_query(rng, state.W11, G, problem.scatter))


def package(rng: np.random.Generator, state: ChainState, problem: Problem) -> ChainState:
    """This package's sweep."""
    return gibbs.sweep(rng, state, problem)[0]


@dataclass(frozen=True)
class Recipe:
    """A sweep, the problem that it is tried on, and how many sweeps apart draws are as good as independent.

    On these problems the longest autocorrelation time of Algorithm 1 is 26 sweeps, of this package's sweep 2.4;
    but it is longer for some data sets, so the control has draws farther apart, too.
    """

    label: str
    case: Case
    sweep: Sweep
    thin: int = 30


MANY, FEW = bugs.LAPLACE, bugs.SHORT  # p, q, n = 3, 4, 20 and 4, 2, 5
SHORTCUT = bugs.BlockCholeskyWithoutSchur()
RIGHT = {
    "package-many": Recipe("this package", MANY, package, thin=5),
    "package-few": Recipe("this package", FEW, package, thin=5),
    "corrected-many": Recipe("Algorithm 1, every step right", MANY, Algorithm1()),
    "corrected-few": Recipe("Algorithm 1, every step right", FEW, Algorithm1()),
    "corrected-thin": Recipe("Algorithm 1, every step right", MANY, Algorithm1(), thin=120),
}
PRINTED = {
    "scales": Recipe("T for 1/T", replace(MANY, prior=bugs.ScalesNotInverted(gamma=2.0)), Algorithm1()),
    "mean": Recipe("mean without the scales", replace(MANY, solver=bugs.MeanWithoutScales()), Algorithm1()),
    "cholesky": Recipe("block Cholesky shortcut", replace(MANY, solver=SHORTCUT), Algorithm1()),
    "order": Recipe("MGIG order n/2 + p", FEW, Algorithm1(printed_order)),
    "degrees": Recipe("n + 3p - 1 degrees of freedom", FEW, Algorithm1(bugs.wrong_degrees_of_freedom)),
    "fraction": Recipe("continued fraction cut after 3", MANY, Algorithm1(bugs.cold_start)),
}
RECIPES = {**RIGHT, **PRINTED}


def part(name: str, number: int) -> dict[str, Any]:
    """Ranks of 50 true values, by functional."""
    recipe, rng = RECIPES[name], np.random.default_rng([number, *name.encode()])
    case, ranks = recipe.case, dict[str, list[int]]()
    theta, X1 = case.draw_joint(rng, PART)
    for r in range(PART):
        draws = chain(rng, recipe.sweep, case.problem(X1[r]), recipe.thin)
        both = reference.concatenate([theta.map(lambda x, r=r: x[r : r + 1]), draws])
        watched = calibration.functionals(both, np.repeat(X1[r : r + 1], DRAWS + 1, axis=0), case.X2)
        for functional, values in watched.items():
            ranks.setdefault(functional, []).append(calibration.rank_of_first(rng, values))
    return {"ranks": ranks, "source": source()}


def chain(rng: np.random.Generator, sweep: Sweep, problem: Problem, thin: int) -> Any:
    """Thinned draws from the sampler's own start, after a warm-up as long as five of them."""

    def states() -> Any:
        state = gibbs.start(rng, problem)
        while True:
            state = sweep(rng, state, problem)
            yield state

    return calibration.stacked(list(islice(states(), 6 * thin - 1, (5 + DRAWS) * thin, thin)))


def together(parts: list[dict[str, Any]]) -> dict[str, Array]:
    """Ranks of all parts, by functional."""
    return {name: np.concatenate([one["ranks"][name] for one in parts]) for name in parts[0]["ranks"]}


def p_values(ranks: Mapping[str, Array]) -> dict[str, float]:
    """Chi-square tests of uniformity."""
    return {name: calibration.p_of_uniform_ranks(rank, DRAWS + 1) for name, rank in ranks.items()}


def beside(name: str) -> str:
    """The right sampler of the same problem."""
    return "package-many" if RECIPES[name].case.size == MANY.size else "package-few"


def main() -> None:
    """Rank what is not ranked yet, draw, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replications", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("errata"))
    parser.add_argument("--docs", type=Path, default=DOCS)
    given = parser.parse_args()
    one_thread()
    numbers = range(-(-given.replications // PART))
    work = [(name, number) for number in numbers for name in RECIPES]
    files = {task: given.out / task[0] / f"{task[1]}.json" for task in work}
    done = joblib.Parallel(n_jobs=given.jobs, verbose=1)(
        joblib.delayed(kept)(files[task], lambda task=task: part(*task)) for task in work
    )
    found = dict(zip(work, done, strict=True))
    ranks = {name: together([found[name, number] for number in numbers]) for name in RECIPES}
    import errata_page

    errata_page.write(given.docs, ranks, [one["source"] for one in done])
    for name, one in ranks.items():
        p, functional = calibration.overall(p_values(one))
        print(f"{name:16s} {RECIPES[name].label:32s} least p-value, corrected: {p:.1e} ({functional})")


if __name__ == "__main__":
    main()
