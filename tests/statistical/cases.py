"""The problems that the sampler is calibrated on: every prior, every solver, and the corners of (p, q, n)."""

from __future__ import annotations

import math

import numpy as np

from markovblanket.contracts import Hyper, Prior, Solver
from markovblanket.priors import Horseshoe, Laplace, Normal, ScaleMixture, SpikeSlab
from markovblanket.solvers import Dense, Dual
from statistical.calibration import Case
from statistical.reference import (
    Array,
    ExponentialScales,
    FixedScales,
    HorseshoeScales,
    Mixture,
    SpikeScales,
    UnequalScales,
    unequal,
)


class Unequal(ScaleMixture):
    """A prior of the package's kind with a known ``T`` that differs from entry to entry."""

    def start(self, rng: np.random.Generator, p: int, q: int) -> tuple[Array, Hyper]:
        return unequal(p, q), {}

    def draw_scales(self, rng: np.random.Generator, W12: Array, hyper: Hyper) -> tuple[Array, Hyper]:
        return unequal(*W12.shape), hyper


HORSESHOE = {"scale": 0.5, "shape": 4.0, "rate": 4.0}
SPIKE = {"edges": 2.0, "gaps": 2.0, "shape": 4.0, "rate": 2.0}

# Hyperparameters that keep entries of W12 near 1, so that neither the prior nor the data win outright.
PRIORS: dict[str, tuple[Prior, Mixture]] = {
    "normal": (Normal(scale=0.7), FixedScales(scale=0.7)),
    "unequal": (Unequal(), UnequalScales()),
    "laplace": (Laplace(gamma=2.0), ExponentialScales(gamma=2.0)),
    "learned": (Laplace(shape=4.0, rate=1.0), ExponentialScales(shape=4.0, rate=1.0)),
    "horseshoe": (Horseshoe(scale=0.5, slab=2.0), HorseshoeScales(scale=0.5, slab=2.0)),
    "horseshoe learned": (Horseshoe(**HORSESHOE), HorseshoeScales(**HORSESHOE)),
    "horseshoe plain": (Horseshoe(scale=0.5, slab=math.inf), HorseshoeScales(scale=0.5, slab=math.inf)),
    "spike": (SpikeSlab(inclusion=0.4, slab=0.6), SpikeScales(inclusion=0.4, slab=0.6)),
    "spike learned": (SpikeSlab(**SPIKE), SpikeScales(**SPIKE)),
}
SOLVERS: dict[str, Solver] = {"dense": Dense(), "dual": Dual()}

SMALL, LONG = (2, 3, 6), (3, 4, 20)
ONE_QUERY, FEW_OTHERS, FEW_ROWS, ONE_ROW = (1, 3, 5), (4, 2, 5), (2, 6, 4), (2, 3, 1)
SIZES = (SMALL, LONG, ONE_QUERY, FEW_OTHERS, FEW_ROWS, ONE_ROW)


def case(prior: str, solver: str, size: tuple[int, int, int], spread: float = 1.0) -> Case:
    """A problem by the names of its parts; ``spread`` is the scale of X2, large for a high R2."""
    return Case(f"{prior}-{solver}-{size}-{spread:g}", *PRIORS[prior], SOLVERS[solver], size, spread)


EVERY_PRIOR_AND_SOLVER = [
    case(prior, solver, SMALL) for prior in ("normal", "laplace", "learned") for solver in SOLVERS
]
QUICK = [
    case("normal", "dual", LONG),
    case("unequal", "dense", FEW_ROWS),
    case("laplace", "dense", FEW_OTHERS),
    case("laplace", "dual", FEW_ROWS),
    case("learned", "dual", SMALL),
    case("learned", "dense", ONE_QUERY),
    case("learned", "dense", ONE_ROW),
    case("horseshoe", "dense", FEW_OTHERS),
    case("horseshoe learned", "dual", LONG),
    case("horseshoe plain", "dual", FEW_ROWS),
    case("spike", "dual", LONG),
    case("spike learned", "dual", SMALL),
]
THOROUGH = [
    *EVERY_PRIOR_AND_SOLVER,
    *(case("learned", "dual", size) for size in SIZES if size != SMALL),
    case("unequal", "dual", LONG),
    case("laplace", "dual", LONG, spread=10.0),
    *(case("spike learned", "dual", size) for size in SIZES),
    case("spike", "dual", FEW_ROWS),
    case("spike learned", "dual", LONG, spread=10.0),
    *(case("horseshoe learned", "dual", size) for size in SIZES),
    case("horseshoe", "dual", LONG),
    case("horseshoe plain", "dense", SMALL),
    case("horseshoe learned", "dual", LONG, spread=10.0),
]
# The solvers give the same draws to rounding, which is shown elsewhere: the longest check need not see both.
RANKED = [case("normal", "dense", SMALL), case("learned", "dual", SMALL)]
RANKED += [case("learned", "dual", LONG), case("laplace", "dual", FEW_ROWS)]
RANKED += [case("spike learned", "dual", SMALL), case("spike", "dual", FEW_ROWS)]
RANKED += [case("horseshoe learned", "dual", LONG)]
