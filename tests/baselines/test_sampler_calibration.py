"""Sweeps from exact draws keep the joint law of (W, T, lam, X), the truth ranks uniformly, and bugs are found."""

from __future__ import annotations

import numpy as np
import pytest

from baselines.bugs import BUGS, GIVEN, LEARNED, Bug
from baselines.calibration import Case, joint_test, rank_test
from markovblanket.baselines import GraphicalLasso
from statistical.calibration import CHECKS, FALSE_ALARM, assert_calibrated, overall

CASES = [
    Case(2, 4, GraphicalLasso(**GIVEN)),
    Case(3, 5, GraphicalLasso(**GIVEN)),
    Case(3, 5, GraphicalLasso(**LEARNED)),
    Case(4, 2, GraphicalLasso(**LEARNED)),
]
THOROUGH = [*CASES, Case(3, 40, GraphicalLasso(**LEARNED))]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_sweeps_keep_the_joint_law(case: Case) -> None:
    assert_calibrated(joint_test(np.random.default_rng(1), case, replications=1000, sweeps=2))


@pytest.mark.parametrize("bug", BUGS, ids=str)
def test_planted_bugs_are_rejected(bug: Bug) -> None:
    p, name = overall(joint_test(np.random.default_rng(2), bug.case, replications=1000, sweeps=2))
    assert p < 1e-3 * FALSE_ALARM / CHECKS, f"{bug} slipped through: least p-value {p:.1e}, of {name}"


@pytest.mark.slow
@pytest.mark.parametrize("sweeps", [1, 6])
@pytest.mark.parametrize("case", THOROUGH, ids=str)
def test_sweeps_keep_the_joint_law_closely(case: Case, sweeps: int) -> None:
    assert_calibrated(joint_test(np.random.default_rng(3), case, replications=20_000 // sweeps, sweeps=sweeps))


@pytest.mark.slow
@pytest.mark.parametrize("case", THOROUGH, ids=str)
def test_truth_ranks_uniformly_among_draws(case: Case) -> None:
    assert_calibrated(rank_test(np.random.default_rng(4), case, replications=600))
