"""The widened block is exact: with or without a rest, many or few rows, learned or given hyperparameters."""

from __future__ import annotations

import pytest

from markovblanket.model import network_sweep
from statistical import networks
from statistical.calibration import assert_calibrated, geweke_test, joint_test, rank_test
from statistical.networks import NetworkCase, inclusion_test


@pytest.mark.parametrize("case", networks.QUICK, ids=str)
def test_sweeps_keep_the_joint_law(case: NetworkCase) -> None:
    assert_calibrated(joint_test(case.generator(1), case, replications=600, sweeps=2))


@pytest.mark.parametrize("case", networks.QUICK, ids=str)
def test_conditional_probabilities_have_the_expectation_of_the_edges(case: NetworkCase) -> None:
    assert_calibrated(inclusion_test(case.generator(2), case, replications=1000))


@pytest.mark.parametrize("prior", ["learned", "unlike"])
def test_sweeps_that_visit_few_rows_keep_the_joint_law(prior: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of four rows of W12."""
    monkeypatch.setattr(network_sweep, "MOST_MULTIPLICATIONS", 0)
    case = networks.case(prior, (1, 3, 2, 12))
    assert_calibrated(joint_test(case.generator(3), case, replications=600, sweeps=2))


@pytest.mark.slow
@pytest.mark.parametrize("case", networks.THOROUGH, ids=str)
def test_conditional_probabilities_have_the_expectation_of_the_edges_closely(case: NetworkCase) -> None:
    assert_calibrated(inclusion_test(case.generator(3), case, replications=10_000))


@pytest.mark.slow
@pytest.mark.parametrize("sweeps", [1, 6])
@pytest.mark.parametrize("case", networks.THOROUGH, ids=str)
def test_sweeps_keep_the_joint_law_closely(case: NetworkCase, sweeps: int) -> None:
    assert_calibrated(joint_test(case.generator(10 + sweeps), case, 9000 // sweeps, sweeps))


@pytest.mark.slow
@pytest.mark.parametrize("case", networks.THOROUGH, ids=str)
def test_sweeps_alternating_with_new_data_keep_the_joint_law(case: NetworkCase) -> None:
    assert_calibrated(geweke_test(case.generator(20), case, paths=40, sweeps=200))


@pytest.mark.slow
@pytest.mark.parametrize("case", networks.RANKED, ids=str)
def test_truth_ranks_uniformly_among_draws(case: NetworkCase) -> None:
    assert_calibrated(rank_test(case.generator(30), case, replications=1000))
