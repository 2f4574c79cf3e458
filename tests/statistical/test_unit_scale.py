"""A column with levels at mean square 1: sweeps leave the posterior invariant.

Draws of everything with the column at any length, weighted, are draws with it at mean square 1
(:func:`statistical.latent_columns.at_unit_scale`); the weighted changes of what is watched have mean zero.
Mistakes are planted in tests/model/copula/test_unit_scale.py, on single columns, which show them better.
"""

from __future__ import annotations

import numpy as np
import pytest

from markovblanket.model.copula._margins import Levels
from statistical.calibration import assert_calibrated
from statistical.latent_columns import Network, Paper, p_values
from statistical.networks import GIVEN, LEARNED
from statistical.test_levels import halves, thirds


def unit(margin):
    """The same levels at mean square 1."""
    return lambda rng, x: Levels(margin(rng, x).codes)


# The column of unit scale is in the query, among the candidates, or in the rest.
SIZE = (1, 1, 2, 7)
PLACES = {"query": (0, False), "candidates": (1, False), "rest": (2, False), "rest, integrated": (2, True)}


def network(place, margin, prior=GIVEN):
    moving, collapsed = PLACES[place]
    return Network(SIZE, prior, (moving,), unit(margin), collapsed)


@pytest.mark.parametrize("place", PLACES)
def test_sweeps_keep_the_posterior(place):
    assert_calibrated(p_values(np.random.default_rng(8), network(place, thirds), 600, sweeps=2))


@pytest.mark.slow
@pytest.mark.parametrize("margin", [thirds, halves])
@pytest.mark.parametrize("place", PLACES)
def test_sweeps_keep_the_posterior_closely(place, margin):
    assert_calibrated(p_values(np.random.default_rng(9), network(place, margin, LEARNED), 2000, sweeps=2))


@pytest.mark.parametrize("collapsed", [False, True])
def test_sweeps_of_the_block_of_the_paper_keep_the_posterior(collapsed):
    paper = Paper((1, 3, 7), "laplace", (2,), unit(thirds), collapsed=collapsed)
    assert_calibrated(p_values(np.random.default_rng(10), paper, 600, sweeps=2))
