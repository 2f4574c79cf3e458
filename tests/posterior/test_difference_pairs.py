"""All pairs of draws, counted: against all pairs, written out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from markovblanket.posterior import difference


def samples(seed):
    """Two sets of draws of any sizes, with exact zeros and scales apart."""
    rng = np.random.default_rng(seed)
    sizes, scales = rng.integers(1, 30, 2), 10.0 ** rng.integers(-5, 5, 2)
    values = [scale * rng.standard_normal(size) for size, scale in zip(sizes, scales, strict=True)]
    return [np.sort(np.where(rng.random(x.size) < 0.4, 0.0, x)) for x in values]


@pytest.mark.parametrize("seed", range(40))
def test_signs_and_quantiles_are_those_of_all_pairs(seed):
    a, b = samples(seed)
    every = np.sort((a[:, None] - b).ravel())
    assert difference._signs(a, b) == ((every > 0).mean(), (every < 0).mean())
    for tail in (0.0, 0.025, 0.3, 0.5, 0.975, 1.0):
        assert difference._quantile(a, b, tail) == every[max(1, int(np.ceil(tail * every.size))) - 1]


@pytest.mark.parametrize("seed", range(40))
def test_the_interval_excludes_zero_exactly_where_a_sign_is_sure(seed):
    a, b = samples(seed)
    for level in (0.1, 0.5, 0.9):
        positive, negative = difference._signs(a, b)
        lower, upper = (difference._quantile(a, b, tail) for tail in ((1 - level) / 2, (1 + level) / 2))
        sure = max(positive, negative) > (1 + level) / 2 + 1e-12
        assert (lower > 0 or upper < 0) == sure or abs(max(positive, negative) - (1 + level) / 2) < 1e-9


def test_all_pairs_come_near_the_law_of_the_difference():
    """Quantiles of a normal sample at evenly spaced levels: the difference is normal, sd sqrt(2)."""
    levels = (np.arange(2000) + 0.5) / 2000
    a, b = stats.norm.ppf(levels) + 1.0, stats.norm.ppf(levels)
    assert difference._signs(a, b)[0] == pytest.approx(stats.norm.cdf(1 / np.sqrt(2)), abs=1e-4)
    assert difference._quantile(a, b, 0.025) == pytest.approx(1 - 1.959964 * np.sqrt(2), abs=5e-3)
