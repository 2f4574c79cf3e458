"""Mistakes in the conditionals of the widened block: the checks that pass the sampler reject each of them.

Rejected means a p-value a thousand times below the suite's threshold. They are planted in a plain twin of the
sweep, which without them is the sweep itself, random number for random number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest

from statistical import networks
from statistical.calibration import CHECKS, FALSE_ALARM, assert_calibrated, joint_test, overall, state_of
from statistical.networks import BLOCK, LARGE, WHOLE, WHOLE_FEW_ROWS, NetworkCase, inclusion_test
from statistical.plain_network import Plain, Relocating


@dataclass(frozen=True)
class Bug:
    """A mistake, the problem that shows it, and the replications of so many sweeps that it takes."""

    flaw: str
    prior: str
    size: tuple[int, int, int, int]
    replications: int = 600
    sweeps: int = 2
    spread: float = 1.0
    kind: type[Plain] = Plain

    def __str__(self) -> str:
        return self.flaw

    @property
    def case(self) -> NetworkCase:
        return replace(networks.case(self.prior, self.size, self.spread), kind=partial(self.kind, flaw=self.flaw))


BUGS = [
    Bug("pivot's power", "given", WHOLE_FEW_ROWS, replications=300),
    Bug("no G in the pivot", "given", BLOCK, replications=300),
    Bug("no G in the linear term", "given", (1, 2, 3, 12), replications=300, spread=10.0),
    Bug("no G in the precision", "given", BLOCK, replications=300, spread=4.0),
    Bug("U for M", "given", LARGE, replications=600),
    Bug("others' share forgotten", "unlike", (1, 5, 0, 40), replications=600),
    Bug("classes swapped", "unlike", WHOLE, replications=300),
    Bug("slab without units", "given", LARGE, replications=1500),
    Bug("rows of another class", "unlike", BLOCK, replications=300),
    Bug("relocated without prior odds", "unlike", WHOLE),
    Bug("one end's propensity", "unlike", LARGE, replications=900),
    Bug("propensities outside", "learned", (1, 1, 4, 12), replications=1200, sweeps=4),
    Bug("one cause for each edge", "learned", (1, 4, 0, 12), replications=1200, sweeps=4),
    Bug("moved without propensities", "unlike", BLOCK, replications=1200, sweeps=1, spread=3.0, kind=Relocating),
    Bug("places in order", "unlike", LARGE, replications=1200, sweeps=1),
    Bug("z without w", "tied", BLOCK, replications=600, sweeps=1, spread=3.0, kind=Relocating),
]
LONGER = [
    Bug("pairs counted twice", "learned", (1, 4, 0, 12), replications=3000, sweeps=4),
    Bug("candidates by the state", "given", WHOLE, replications=3000, sweeps=6),
]


def assert_rejected(bug: Bug, p_values: dict[str, float]) -> None:
    p, name = overall(p_values)
    assert p < 1e-3 * FALSE_ALARM / CHECKS, f"{bug} slipped through: least p-value {p:.1e}, of {name}"


@pytest.mark.parametrize("bug", BUGS, ids=str)
def test_joint_test_rejects(bug: Bug) -> None:
    assert_rejected(bug, joint_test(np.random.default_rng(1), bug.case, bug.replications, bug.sweeps))


@pytest.mark.slow
@pytest.mark.parametrize("bug", LONGER, ids=str)
def test_longer_joint_test_rejects(bug: Bug) -> None:
    assert_rejected(bug, joint_test(np.random.default_rng(1), bug.case, bug.replications, bug.sweeps))


@pytest.mark.parametrize("prior", ["given", "tied"])
def test_relocation_between_the_blocks_keeps_the_joint_law(prior: str) -> None:
    case = replace(networks.case(prior, BLOCK, spread=3.0), kind=Relocating)
    assert_calibrated(joint_test(case.generator(4), case, replications=1000, sweeps=1))


@pytest.mark.parametrize("size", [WHOLE, BLOCK], ids=str)
def test_probabilities_that_are_not_conditional_ones_are_rejected(size: tuple[int, int, int, int]) -> None:
    bug = Bug("own value reported", "given", size)
    assert_rejected(bug, inclusion_test(np.random.default_rng(2), bug.case, replications=4000))


def first_difference(case: NetworkCase, flaw: str = "", sweeps: int = 20) -> str:
    """What first differs between the sweep and its twin, given the same random numbers; empty if nothing does."""
    theta, X1 = case.draw_joint(np.random.default_rng(3), 1)
    compiled, plain = case.sampler(X1[0]), replace(case, kind=partial(Plain, flaw=flaw)).sampler(X1[0])
    state, rng, twin = state_of(theta, 0), np.random.default_rng(4), np.random.default_rng()
    for _ in range(sweeps):
        twin.bit_generator.state = rng.bit_generator.state
        expected, _ = plain.sweep(twin, state)
        state, _ = compiled.sweep(rng, state)
        for name in ("W11", "W12", "inclusion", "T"):
            if not np.allclose(getattr(state, name), getattr(expected, name), rtol=1e-7, atol=1e-9):
                return name
        if state.hyper != pytest.approx(expected.hyper, rel=1e-7):
            return "hyper"
    return ""


@pytest.mark.parametrize("size", [*networks.SIZES, (3, 6, 4, 30), (2, 8, 5, 6), (4, 8, 0, 40)], ids=str)
@pytest.mark.parametrize("prior", ["given", "unlike", "learned"])
def test_the_twin_is_the_sweep(prior: str, size: tuple[int, int, int, int]) -> None:
    """Entries, conditional probabilities and hyperparameters alike."""
    assert not first_difference(networks.case(prior, size))


# The last one nearly balances: what is weighed wrongly on the way out is weighed as wrongly on the way back. No
# test of invariance of a reasonable length rejects it.
@pytest.mark.parametrize("flaw", [*(bug.flaw for bug in (*BUGS, *LONGER)), "own value reported", "z as it was"])
def test_no_flawed_twin_is_the_sweep(flaw: str) -> None:
    case = networks.case("learned", (2, 4, 4, 20))
    assert first_difference(case, flaw, sweeps=200)
    assert not first_difference(case, sweeps=200)
