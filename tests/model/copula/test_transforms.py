"""Between the scale of the data and the latent one, both ways."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from markovblanket.model.copula._margins import normal_scores
from markovblanket.model.copula.latent import Copula
from markovblanket.model.copula.transforms import Curve, Standard, Steps, of_column
from markovblanket.tables.columns import Column

NAN = np.nan
CODES = np.array([0, 2, 1, NAN, 0, 1, 2, 3, NAN, 2])
LATENT = np.array([-2.0, 1.0, -0.5, 9.0, -1.0, 0.25, 0.5, 2.0, -9.0, 0.75])  # in order, but for the missing cells
BOTTOM, TOP = [-2.0, -0.5, 0.5, 2.0], [-1.0, 0.25, 1.0, 2.0]


def steps(seed=0) -> Steps:
    return Steps.draw(np.random.default_rng(seed), CODES, LATENT)


def curve() -> Curve:
    """Five observed cells, two of them equal, and two gaps."""
    values = np.array([10.0, NAN, 3.0, 10.0, -4.0, 100.5, NAN])
    return Curve.of(values, np.array([0.5, 7.0, -0.2, 0.9, -1.0, 2.0, -7.0]))


SCALES = {
    "standard": Standard(5.0, 2.0),
    "curve": curve(),
    "scores": Curve.of_scores(np.array([3.0, 1.0, NAN, 8.0, 3.0])),
    "steps": steps(),
}


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_what_is_missing_stays_missing(scale):
    for part in (scale.data(np.array([0.1, NAN])), *scale.bounds(np.array([1.0, NAN]))):
        np.testing.assert_array_equal(np.isnan(part), [False, True])


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_greater_latent_values_are_never_smaller_in_the_data(scale):
    x = np.linspace(-12, 12, 4001)
    y = scale.data(x)
    assert (np.diff(y) >= 0).all()
    assert len(np.unique(y)) >= 4


# Straight lines ---------------------------------------------------------------------------------------


def test_standardising_and_back():
    scale, y = Standard(5.0, 2.0), np.array([5.0, 7.0, 1.0, -300.0])
    lower, upper = scale.bounds(y)
    np.testing.assert_array_equal(lower, [0, 1, -2, -152.5])
    np.testing.assert_array_equal(lower, upper)
    np.testing.assert_array_equal(scale.data(lower), y)


# Curves -----------------------------------------------------------------------------------------------


def test_a_curve_goes_through_the_observed_cells_and_through_the_mean_of_equal_ones():
    np.testing.assert_array_equal(curve().values, [-4, 3, 10, 100.5])
    np.testing.assert_allclose(curve().middle, [-1, -0.2, 0.7, 2])


def test_a_curve_there_and_back():
    y = np.array([-4.0, -1.0, 3.0, 9.5, 10.0, 77.0, 100.5])
    lower, upper = curve().bounds(y)
    np.testing.assert_array_equal(lower, upper)
    assert (np.diff(lower) > 0).all()
    np.testing.assert_allclose(curve().data(lower), y)
    x = np.linspace(-1, 2, 50)
    x = x[(x < 0.5) | (x > 0.9)]  # where the equal cells lie, all is one value
    np.testing.assert_allclose(curve().bounds(curve().data(x))[0], x, atol=1e-14)


def test_a_curve_is_straight_in_between():
    assert curve().data(np.array([0.15])) == pytest.approx(6.5)
    assert curve().bounds(np.array([55.25]))[0] == pytest.approx(1.45)
    np.testing.assert_array_equal(curve().data(np.array([0.5, 0.6, 0.9])), 10)


def test_whole_numbers_stay_whole():
    ages = Curve.of_scores(np.array([50.0, 61, 49, 77, 30, NAN]))
    drawn = ages.data(np.linspace(-2, 2, 99))
    np.testing.assert_array_equal(drawn, np.rint(drawn))
    assert len(np.unique(drawn)) > 20


def test_beyond_its_ends_a_curve_stays_there():
    np.testing.assert_array_equal(curve().data(np.array([-1.0001, -50, 2.0001, 50])), [-4, -4, 100.5, 100.5])
    np.testing.assert_array_equal(curve().bounds(np.array([-5.0, -1e300, 101, 1e300]))[0], [-1, -1, 2, 2])


@pytest.mark.parametrize("gaps", [0, 5])
def test_scores_are_those_that_the_copula_starts_from(gaps):
    """Rank ties and gaps included: where an observed cell lies must not depend on who asks."""
    rng = np.random.default_rng(gaps)
    y = np.exp(rng.standard_normal(40))
    y[10:13] = y[10]
    y[:gaps] = NAN
    column, other = Column("y", "continuous", y), Column("z", "continuous", rng.standard_normal(40))
    start = Copula.of([column, other], 1).start().X1[:, 0]
    x = Curve.of_scores(y).bounds(y)[0]
    np.testing.assert_allclose(x[gaps:], start[gaps:], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(x[gaps:], normal_scores(y[gaps:, None])[:, 0], rtol=1e-12, atol=1e-14)


def test_a_value_that_many_cells_share_is_drawn_as_often_as_it_was_observed():
    """Half of the cells are zero; so must be half of what a normal column is mapped to."""
    y = np.concatenate([np.zeros(100), np.exp(np.linspace(-2, 2, 100))])
    drawn = Curve.of_scores(y).data(stats.norm.ppf((np.arange(1000) + 0.5) / 1000))
    assert np.mean(drawn == 0) == pytest.approx(0.5, abs=0.04)  # scores are centred after ties


def test_observed_cells_of_one_value_all_come_back():
    y, x = np.array([0.0, 0, 0, 1, 2]), np.array([-2.0, -1, 0, 1, 2])
    np.testing.assert_array_equal(Curve.of(y, x).data(x), y)


# Steps ------------------------------------------------------------------------------------------------


def test_cuts_lie_between_the_levels_and_the_missing_cells_have_no_say():
    scale = steps()
    np.testing.assert_array_equal(scale.bottom, BOTTOM)
    np.testing.assert_array_equal(scale.top, TOP)
    np.testing.assert_array_equal(scale.cuts[[0, -1]], [-np.inf, np.inf])
    assert ((np.array(TOP[:-1]) <= scale.cuts[1:-1]) & (scale.cuts[1:-1] <= np.array(BOTTOM[1:]))).all()


def test_cuts_are_uniform_between_the_levels_and_independent():
    """Kolmogorov-Smirnov at 1e-7 for each, and a rank correlation at 1e-7."""
    rng = np.random.default_rng(1)
    cuts = np.array([Steps.draw(rng, CODES, LATENT).cuts[1:-1] for _ in range(4000)])
    u = (cuts - TOP[:-1]) / (np.array(BOTTOM[1:]) - TOP[:-1])
    for column in u.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-7
    assert stats.spearmanr(u[:, 0], u[:, 1]).pvalue > 1e-7


def test_every_observed_cell_has_its_own_level_and_lies_within_its_bounds():
    scale, observed = steps(), ~np.isnan(CODES)
    np.testing.assert_array_equal(scale.data(LATENT[observed]), CODES[observed])
    lower, upper = scale.bounds(CODES[observed])
    assert ((lower <= LATENT[observed]) & (LATENT[observed] <= upper)).all()


def test_whatever_lies_between_the_bounds_of_a_level_has_that_level():
    scale, levels = steps(), np.arange(4.0)
    lower, upper = scale.bounds(levels)
    np.testing.assert_array_equal(lower, scale.cuts[:-1])
    np.testing.assert_array_equal(upper, scale.cuts[1:])
    for share in (1e-9, 0.5, 1.0):
        x = np.clip(lower, -50, None) * (1 - share) + np.clip(upper, None, 50) * share
        np.testing.assert_array_equal(scale.data(x), levels)


def test_half_codes_lie_between_the_extremes_of_the_levels_beside_them():
    lower, upper = steps().bounds(np.array([-0.5, 0.5, 1.5, 2.5, 3.5]))
    np.testing.assert_array_equal(lower, [-np.inf, *TOP])
    np.testing.assert_array_equal(upper, [*BOTTOM, np.inf])


def test_the_bounds_ascend_with_the_codes():
    codes = np.arange(-0.5, 4, 0.5)
    lower, upper = steps().bounds(codes)
    assert (lower < upper).all()
    assert (np.diff(lower[1:]) >= 0).all()
    assert (np.diff(upper[:-1]) >= 0).all()


def test_two_levels_have_one_cut():
    scale = Steps.draw(np.random.default_rng(0), np.array([1.0, 0, NAN, 1]), np.array([0.3, -0.2, 4.0, 2.0]))
    assert -0.2 <= scale.cuts[1] <= 0.3
    np.testing.assert_array_equal(scale.data(np.array([-40, -0.21, 0.31, 40])), [0, 0, 1, 1])


def test_levels_that_touch_have_a_cut_where_they_touch():
    scale = Steps.draw(np.random.default_rng(0), np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    np.testing.assert_array_equal(scale.cuts, [-np.inf, 0.5, np.inf])
    np.testing.assert_array_equal(scale.bounds(np.array([0.5]))[0], scale.bounds(np.array([0.5]))[1])


# Which of them ----------------------------------------------------------------------------------------


def test_a_column_gets_the_scale_of_its_kind():
    rng, y = np.random.default_rng(0), np.array([3.0, 1.0, 2.0])
    x, numbers = np.array([5.0, -5.0, 0.0]), Column("y", "continuous", y)
    np.testing.assert_array_equal(of_column(rng, numbers, x).middle, [-5, 0, 5])
    np.testing.assert_allclose(Curve.of_scores(y).middle, [-1.2247, 0, 1.2247], atol=1e-4)
    levels = Column("y", "ordinal", y - 1, (10, 20, 30), "int64")
    assert isinstance(of_column(rng, levels, x), Steps)
