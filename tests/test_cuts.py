"""The move of the cut points: exact, against cells drawn by rejection; and worth its cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from markovblanket import cuts
from markovblanket.cuts import Stretch
from markovblanket.margins import Levels

ALARM = 1e-7  # per comparison
BEGINS, MEAN, SD = np.array([0, 1, 2]), np.array([0.3, 0.5, 0.0, -0.2]), 0.9


def ordered_cells(rng, size):
    """Four normal cells in three levels, by rejection: exact draws of the law that the move must keep."""
    kept = np.empty((0, 4))
    while len(kept) < size:
        x = MEAN + SD * rng.standard_normal((200_000, 4))
        ordered = (x[:, 0] < x[:, 1]) & (x[:, 1] < x[:, 2:].min(axis=1))
        kept = np.vstack([kept, x[ordered]])
    return kept[:size]


def p_values(size):
    """Of every cell and gap after three moves from exact draws, against fresh exact draws."""
    rng = np.random.default_rng(4)
    moved = []
    for x in ordered_cells(rng, size):
        for _ in range(3):
            x = cuts.move(rng, x, MEAN, SD, BEGINS)
        moved.append(x)
    one, other = functionals(np.array(moved)), functionals(ordered_cells(rng, 20 * size))
    return [stats.ks_2samp(a, b).pvalue for a, b in zip(one, other, strict=True)]


def functionals(x):
    """Every cell, and the gaps between the levels."""
    return [*x.T, x[:, 1] - x[:, 0], x[:, 2:].min(axis=1) - x[:, 1]]


def test_the_law_of_the_cells_stays():
    assert min(p_values(2500)) > ALARM


BUGS = {
    "no Jacobian": lambda law: replace(law, counts=(0 * law.counts[0], 0 * law.counts[1])),
    "cuts without their density": lambda law: replace(law, widening=0 * law.widening),
    "linear term without its cells' slopes": lambda law: replace(law, linear=0.5 * law.linear),
}


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)
def test_planted_bugs_are_caught(bug, monkeypatch):
    right = Stretch.of
    monkeypatch.setattr(Stretch, "of", lambda *given: bug(right(*given)))
    assert min(p_values(2500)) < ALARM / 1000


def test_cells_that_rounding_made_equal_do_no_harm():
    moved = cuts.move(np.random.default_rng(0), np.array([0.0, 0.0, 0.0, 1.0]), MEAN, SD, BEGINS)
    assert np.isfinite(moved).all()
    assert moved[0] <= moved[1] <= moved[2:].min()


@pytest.mark.parametrize("levels", [2, 5])
def test_a_cut_forgets_where_it_was(levels):
    """Lag-10 autocorrelation of a cut among 1,000 cells: near 0, and near 1 without the move."""
    rng = np.random.default_rng(levels)
    codes = np.sort(rng.integers(levels, size=1000))
    column, mean = Levels(codes), np.zeros(1000)

    def trace(draw):
        x, kept = stats.norm.ppf((np.arange(1000) + 0.5) / 1000), []
        for _ in range(600):
            x = draw(rng, x, mean, 1.0)
            kept.append(x[codes == 1].min())
        kept = np.array(kept[100:])
        return np.corrcoef(kept[:-10], kept[10:])[0, 1]

    assert abs(trace(column.draw)) < 0.35
    assert trace(column.draw_ordered) > 0.7
