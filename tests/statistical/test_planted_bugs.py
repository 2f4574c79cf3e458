"""A check that cannot fail is no check: the very checks that pass the sampler reject these mistakes.

Rejected means a p-value a thousand times below the suite's threshold.
"""

from __future__ import annotations

import numpy as np
import pytest

from markovblanket import gibbs
from statistical.bugs import PLAIN, SUBTLE, Bug
from statistical.calibration import CHECKS, FALSE_ALARM, geweke_test, joint_test, overall, rank_test

# With these the parameters run away, beyond floating point, once the data are redrawn from them.
RUN_AWAY = {"S11 for S11 + I", "three steps from a cold start", "A kron U for U kron A"}
# The rank test needs long chains: it is shown to reject the two shortcuts that are in circulation and two more.
RANKED = {
    "n+3p-1 degrees of freedom",
    "block Cholesky without Schur complements",
    "scales by columns",
    "T for 1/T",
}
STEADY = [bug for bug in PLAIN if bug.name not in RUN_AWAY]


def assert_rejected(bug: Bug, p_values: dict[str, float]) -> None:
    p, name = overall(p_values)
    assert p < 1e-3 * FALSE_ALARM / CHECKS, f"{bug} slipped through: least p-value {p:.1e}, of {name}"


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch, bug: Bug) -> None:
    monkeypatch.setattr(gibbs, "draw_query", bug.draw_query)


@pytest.mark.usefixtures("plant")
@pytest.mark.parametrize("bug", PLAIN, ids=str)
def test_joint_test_rejects(bug: Bug) -> None:
    assert_rejected(bug, joint_test(np.random.default_rng(1), bug.case, replications=300, sweeps=2))


@pytest.mark.slow
@pytest.mark.usefixtures("plant")
@pytest.mark.parametrize("bug", SUBTLE, ids=str)
def test_thorough_joint_test_rejects(bug: Bug) -> None:
    assert_rejected(bug, joint_test(np.random.default_rng(2), bug.case, replications=3000, sweeps=2))


@pytest.mark.slow
@pytest.mark.usefixtures("plant")
@pytest.mark.parametrize("bug", STEADY, ids=str)
def test_geweke_test_rejects(bug: Bug) -> None:
    assert_rejected(bug, geweke_test(np.random.default_rng(3), bug.case, paths=40, sweeps=50))


@pytest.mark.slow
@pytest.mark.usefixtures("plant")
@pytest.mark.parametrize("bug", [bug for bug in PLAIN if bug.name in RANKED], ids=str)
def test_rank_test_rejects(bug: Bug) -> None:
    assert_rejected(bug, rank_test(np.random.default_rng(4), bug.case, replications=300))
