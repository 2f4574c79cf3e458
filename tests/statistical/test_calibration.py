"""The sampler is exact: every prior, every solver, every corner of (p, q, n)."""

from __future__ import annotations

import numpy as np
import pytest

from statistical import cases, networks
from statistical.calibration import (
    CHECKS,
    Case,
    assert_calibrated,
    autocorrelation_time,
    geweke_test,
    joint_test,
    rank_test,
)

THOROUGH_SWEEPS = (1, 6)


@pytest.mark.parametrize("case", cases.QUICK, ids=str)
def test_sweeps_keep_the_joint_law(case: Case) -> None:
    assert_calibrated(joint_test(case.generator(1), case, replications=300, sweeps=2))


@pytest.mark.slow
@pytest.mark.parametrize("sweeps", THOROUGH_SWEEPS)
@pytest.mark.parametrize("case", cases.THOROUGH, ids=str)
def test_sweeps_keep_the_joint_law_closely(case: Case, sweeps: int) -> None:
    replications = 2400 // sweeps
    assert_calibrated(joint_test(case.generator(10 + sweeps), case, replications, sweeps))


@pytest.mark.slow
@pytest.mark.parametrize("case", cases.THOROUGH, ids=str)
def test_sweeps_alternating_with_new_data_keep_the_joint_law(case: Case) -> None:
    assert_calibrated(geweke_test(case.generator(20), case, paths=40, sweeps=100))


@pytest.mark.slow
@pytest.mark.parametrize("case", cases.RANKED, ids=str)
def test_truth_ranks_uniformly_among_draws(case: Case) -> None:
    assert_calibrated(rank_test(case.generator(30), case, replications=300))


def test_false_alarm_rate_is_shared_by_all_checks() -> None:
    thorough = (len(THOROUGH_SWEEPS) + 1) * len(cases.THOROUGH)
    of_networks = 2 * len(networks.QUICK) + 4 * len(networks.THOROUGH) + len(networks.RANKED)
    of_columns = 80  # missing cells, levels, and the baselines
    assert len(cases.QUICK) + thorough + len(cases.RANKED) + of_networks + of_columns <= CHECKS


def test_autocorrelation_time_of_a_known_process() -> None:
    """An autoregression with coefficient 0.8 has ``(1 + 0.8) / (1 - 0.8) = 9``; of its ranks, a little less."""
    rng = np.random.default_rng(0)
    x = np.zeros((8, 4000))
    for k in range(1, x.shape[1]):
        x[:, k] = 0.8 * x[:, k - 1] + rng.standard_normal(8)
    assert autocorrelation_time(x) == pytest.approx(8.8, rel=0.15)
    assert autocorrelation_time(rng.standard_normal((8, 4000))) == pytest.approx(1.0, abs=0.2)
