"""Columns known by their order alone: sweeps keep the joint law of parameters and latent columns.

If levels are shares of the ranks (the lowest third, the middle one, the highest), the order of the latent cells
tells all that is observed, and the rank likelihood is the likelihood: draws of everything are exact, and a sweep
from them must leave their joint law alone. The scale is left free here; fixing it is a convention, not a draw.
"""

from __future__ import annotations

import numpy as np
import pytest

from markovblanket.model.copula import latent
from markovblanket.model.copula._margins import Levels
from statistical.calibration import assert_calibrated
from statistical.latent_columns import Network, Paper, p_values
from statistical.networks import GIVEN, LEARNED

SMALL, WIDE = (2, 4, 9), (1, 6, 6)
# Of the widened block, with levels in the query, a candidate and another; or nothing left outside.
BLOCK, WHOLE, FEW_ROWS = ((1, 2, 2, 9), (0, 1, 3)), ((2, 1, 0, 8), (0, 2)), ((1, 2, 4, 6), (0, 2, 4))


def thirds(rng, x):
    """Three levels by shares of the ranks; the first row is missing."""
    codes = np.full(len(x), -1)
    codes[1:] = np.argsort(np.argsort(x[1:])) * 3 // (len(x) - 1)
    return Levels(codes, unit=False)


def halves(rng, x):
    """Two levels by shares of the ranks, all rows observed."""
    return Levels(np.argsort(np.argsort(x)) * 2 // len(x), unit=False)


@pytest.mark.parametrize("prior", ["laplace", "spike learned"])
def test_sweeps_with_levels_keep_the_joint_law(prior):
    paper = Paper(SMALL, prior, (0, 3), thirds)
    assert_calibrated(p_values(np.random.default_rng(1), paper, 400, sweeps=2))


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["laplace", "learned", "spike", "spike learned"])
@pytest.mark.parametrize("size", [SMALL, WIDE], ids=str)
def test_sweeps_with_levels_keep_the_joint_law_closely(prior, size):
    paper = Paper(size, prior, (0, size[0], size[0] + 2), thirds, collapsed=size == WIDE)
    assert_calibrated(p_values(np.random.default_rng(2), paper, 1500, sweeps=2))


@pytest.mark.parametrize("case", [BLOCK, WHOLE, FEW_ROWS], ids=str)
def test_sweeps_of_the_widened_block_with_levels_keep_the_joint_law(case):
    network = Network(case[0], LEARNED, case[1], thirds, collapsed=case is FEW_ROWS)
    assert_calibrated(p_values(np.random.default_rng(3), network, 400, sweeps=2))


@pytest.mark.parametrize("case", [BLOCK, FEW_ROWS], ids=str)
def test_so_do_sweeps_with_two_levels(case):
    network = Network(case[0], LEARNED, case[1], halves, collapsed=case is FEW_ROWS)
    assert_calibrated(p_values(np.random.default_rng(7), network, 1000, sweeps=2))


def test_so_do_sweeps_that_redraw_one_column_of_the_rest_at_a_time(monkeypatch):
    monkeypatch.setattr(latent, "MOST_MULTIPLICATIONS", 0)
    network = Network((1, 1, 4, 6), LEARNED, (2, 3, 4, 5), thirds, collapsed=True)
    assert_calibrated(p_values(np.random.default_rng(6), network, 400, sweeps=6))


@pytest.mark.slow
@pytest.mark.parametrize("prior", [GIVEN, LEARNED], ids=["given", "learned"])
@pytest.mark.parametrize("case", [BLOCK, WHOLE, FEW_ROWS], ids=str)
def test_sweeps_of_the_widened_block_with_levels_keep_the_joint_law_closely(case, prior):
    network = Network(case[0], prior, case[1], thirds, collapsed=case is FEW_ROWS)
    assert_calibrated(p_values(np.random.default_rng(4), network, 3000, sweeps=2))
