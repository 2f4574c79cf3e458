"""Cells between cuts, against SciPy's truncated normal law."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from markovblanket.model.copula import _edge_moves


def test_cells_have_the_moments_of_a_truncated_normal_law():
    rng = np.random.default_rng(5)
    for _ in range(200):
        mean, sd = rng.normal(0, 3), math.exp(rng.normal())
        lower, upper = sorted(rng.normal(0, 4, 2))
        lower, upper = (-math.inf, upper) if rng.random() < 0.2 else (lower, upper)
        lower, upper = (lower, math.inf) if rng.random() < 0.2 else (lower, upper)
        law = stats.truncnorm((lower - mean) / sd, (upper - mean) / sd)
        log_mass, pull, narrowing = _edge_moves.moments(mean, sd * sd, lower, upper)
        low, high = (lower - mean) / sd, (upper - mean) / sd
        low, high = (-high, -low) if -low > high else (low, high)
        near, far = stats.norm.logsf([low, high])
        assert log_mass == pytest.approx(near + math.log1p(-math.exp(far - near)), rel=1e-9, abs=1e-9)
        if law.var() > 1e-4:
            assert pull == pytest.approx(sd * law.mean(), rel=1e-5, abs=1e-6)
            assert narrowing == pytest.approx(1 - law.var(), rel=1e-3, abs=1e-5)


def test_cuts_lie_in_the_gaps_and_cells_between_the_cuts():
    rng, codes = np.random.default_rng(1), np.array([2, 0, 1, -1, 1, 0, 2])
    x, mean = np.array([1.5, -1.0, 0.1, 9.0, 0.4, -0.6, 1.1]), np.linspace(-2, 2, 7)
    for _ in range(100):
        cuts, logs = _edge_moves.lay_cuts(rng, x, codes)
        assert -0.6 <= cuts[1] <= 0.1
        assert 0.4 <= cuts[2] <= 1.1
        assert logs == pytest.approx(math.log(0.7) + math.log(0.7)) == _edge_moves.log_gaps(x, codes)
        y = _edge_moves.draw_between(rng, mean, 0.5, codes, cuts)
        seen = codes >= 0
        assert (cuts[codes[seen]] <= y[seen]).all()
        assert (y[seen] <= cuts[codes[seen] + 1]).all()
