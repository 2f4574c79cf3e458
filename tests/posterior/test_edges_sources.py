"""Edges from streams against the same edges from draws, and against textbook formulas."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from markovblanket.chains.stores import AXES, STREAM_PREFIX
from markovblanket.chains.streaming import Bins
from markovblanket.posterior import summaries
from markovblanket.posterior.edges import FromDraws, FromStreams, rest_coefficients
from markovblanket.posterior.observed import name_streams
from support.known_draws import autoregressive, made_draws, partial_correlations, streamed


def from_streams(made, bins=None):
    found = {STREAM_PREFIX + name: array for name, array in streamed(made, bins).items()}
    return FromStreams(name_streams(found), made["W12"].shape[1])


def dataset(made):
    return xr.Dataset({name: (("chain", "draw", *AXES[name]), array) for name, array in made.items()})


def from_draws(made):
    return FromDraws.with_rest(dataset(made))


def present(made, i, j):
    """The partial correlations of an edge in the draws in which it is not zero."""
    values = partial_correlations(made)[..., i, j]
    return values[values != 0]


def everywhere(made):
    return np.nonzero(np.ones(made["W12"].shape[2:]))


@pytest.mark.parametrize("draws", [1, 2, 3, 50, 205])
@pytest.mark.parametrize("zeros", [True, False])
def test_both_sources_say_the_same(draws, zeros):
    made = made_draws(draws=draws, zeros=zeros)
    streams, full, (i, j) = from_streams(made), from_draws(made), everywhere(made)
    np.testing.assert_array_equal(streams.sign_probability, full.sign_probability)
    np.testing.assert_array_equal(streams.nonzero, full.nonzero)
    expected = rest_coefficients(dataset(made), None)
    np.testing.assert_allclose(streams.coefficients, expected, rtol=1e-10, atol=1e-12)
    one, other = streams.table(i, j), full.table(i, j)
    assert one.columns.tolist() == other.columns.tolist()
    for name in set(one) - {"lower", "upper", "rhat", "ess", "ess_tail"}:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-9, atol=1e-7, err_msg=name)


def test_a_table_is_that_of_the_draws_in_which_an_edge_is_present():
    made = made_draws()
    i, j = everywhere(made)
    table = from_draws(made).table(i, j)
    for row, a, b in zip(table.itertuples(), i, j, strict=True):
        values, whole = present(made, a, b), partial_correlations(made)[..., a, b]
        if len(values):
            ends = np.quantile(values, [0.025, 0.975])
            found = [row.partial_correlation, row.sd, row.lower, row.upper]
            np.testing.assert_allclose(found, [values.mean(), values.std(ddof=1), *ends])
        w = made["W12"][..., a, b]
        assert row.partial_correlation_averaged == pytest.approx(whole.mean())
        assert row.sd_averaged == pytest.approx(whole.std(ddof=1))
        assert row.coefficient == pytest.approx(-(w / made["W11"][..., a, a]).mean())
        assert row.precision == pytest.approx(w.mean())
        assert row.sign_probability == max((w > 0).mean(), (w < 0).mean())
    assert np.isnan(table.loc[0, ["partial_correlation", "lower", "upper"]].to_numpy(float)).all()
    assert len(present(made, 0, 1)) < 0.4 * whole.size


@pytest.mark.parametrize("zeros", [True, False])
def test_ordered_values_are_the_draws_or_within_a_bin_with_the_same_signs(zeros):
    made = made_draws(zeros=zeros)
    streams, full = from_streams(made), from_draws(made)
    for i, j in np.ndindex(made["W12"].shape[2:]):
        near, draws = streams.ordered(i, j), full.ordered(i, j)
        np.testing.assert_array_equal(draws, np.sort(partial_correlations(made)[:, :, i, j], axis=None))
        np.testing.assert_array_equal(np.sign(near), np.sign(draws))
        width = 1 / streams.streams["per_width"].values[i, j]
        assert np.mean(np.abs(near - draws) <= width) > 0.98


@pytest.mark.parametrize("narrow", [1, 8])
@pytest.mark.parametrize("zeros", [True, False])
def test_quantiles_lie_within_a_bin_of_the_draws_own(zeros, narrow):
    """Between the neighbouring order statistics, give or take a bin; with narrow bins also where all overflow."""
    made = made_draws(zeros=zeros)
    wide = from_streams(made).streams
    bins = Bins(wide["centre"].values, narrow * wide["per_width"].values)
    source, (i, j) = from_streams(made, bins), everywhere(made)
    levels = [0.001, 0.025, 0.1, 0.3, 0.5, 0.7, 0.9, 0.975, 0.999]
    found = source.quantiles(i, j, levels)
    values = [present(made, a, b) for a, b in zip(i, j, strict=True)]
    seen = np.array([len(draws) > 0 for draws in values])
    assert np.isnan(found[:, ~seen]).all()
    i, j, found, values = i[seen], j[seen], found[:, seen], [draws for draws in values if len(draws)]
    lower, higher = (
        np.transpose([np.quantile(draws, levels, method=method) for draws in values])
        for method in ("lower", "higher")
    )
    inside = np.abs(lower - bins.centre[i, j]) <= 32 / bins.per_width[i, j]
    inside &= np.abs(higher - bins.centre[i, j]) <= 32 / bins.per_width[i, j]
    width = 1 / bins.per_width[i, j]
    assert ((found >= lower - width) & (found <= higher + width))[inside].all()
    assert inside.mean() > (0.9 if narrow == 1 else 0.1)
    assert (found >= np.array([draws.min() for draws in values]) - width).all()
    assert (found <= np.array([draws.max() for draws in values]) + width).all()
    assert (np.diff(found, axis=0) >= 0).all()


def test_intervals_are_finer_than_the_bins():
    """Linear within a bin: for normal draws the ends miss those of the draws by a fiftieth of an sd on average."""
    made = made_draws(draws=1000, zeros=False)
    (i, j), source = everywhere(made), from_streams(made)
    ends = source.quantiles(i, j, [0.025, 0.975])
    pooled = partial_correlations(made).reshape(-1, *made["W12"].shape[2:])[:, i, j]
    error = np.abs(ends - np.quantile(pooled, [0.025, 0.975], axis=0)) / pooled.std(axis=0)
    assert error.mean() < 0.02
    assert error.max() < 1 / 8


# Convergence ------------------------------------------------------------------------------------------


def textbook_rhat(x):
    """Of one quantity, (chain, draw): Gelman et al. (2013), section 11.4, with halves of chains as chains."""
    h = x.shape[1] // 2
    parts = np.concatenate([x[:, :h], x[:, -h:]])
    B = h * parts.mean(axis=1).var(ddof=1)
    W = parts.var(axis=1, ddof=1).mean()
    return np.sqrt(((h - 1) / h * W + B / h) / W)


@pytest.mark.parametrize("draws", [4, 5, 204, 205])
@pytest.mark.parametrize("chains", [1, 3])
def test_rhat_is_the_textbooks(draws, chains):
    made = made_draws(draws=draws, chains=chains, zeros=False)
    made["W12"][-1, draws // 2 :, 1, 1] += 50.0
    i, j = everywhere(made)
    found = from_streams(made).quality(i, j)["rhat"]
    expected = [textbook_rhat(made["W12"][..., a, b]) for a, b in zip(i, j, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    assert found[8] > 1.4


def test_rhat_of_arviz_without_ranks_is_the_same():
    made = made_draws(zeros=False)
    block = xr.Dataset({"x": (("chain", "draw", "i", "j"), made["W12"])})
    expected = summaries.arviz().rhat(block, method="split")["x"].values
    np.testing.assert_allclose(from_streams(made).rhat(*everywhere(made)), expected.ravel(), rtol=1e-8)


@pytest.mark.parametrize(
    ("rho", "bias"), [(-0.3, (0.9, 1.05)), (0.0, (0.9, 1.05)), (0.5, (0.95, 1.05)), (0.9, (1, 1.2))]
)
def test_ess_by_batches_against_the_truth_and_arviz(rho, bias):
    """4 chains of 1000, 60 edges; a single edge's ESS has a standard deviation of 15 per cent, their mean 2."""
    edges = 60
    x = autoregressive(np.random.default_rng(1), (4, 1000, 1, edges), rho)
    made = {"W12": x, "W11": np.ones((4, 1000, 1, 1)), "W22_diagonal": np.ones((4, 1000, edges))}
    found = from_streams(made).ess(*everywhere(made))
    truth = 4000 * (1 - rho) / (1 + rho)
    block = xr.Dataset({"x": (("chain", "draw", "edge"), x[:, :, 0])})
    arviz = summaries.arviz().ess(block, method="mean")["x"].values
    assert bias[0] < found.mean() / truth < bias[1]
    assert bias[0] < found.mean() / arviz.mean() < bias[1]
    assert np.std(found) / truth < 0.2


def test_chains_that_disagree_have_no_more_effective_draws_than_batches():
    """Batches cannot tell fewer; the chains' disagreement is then plain from R-hat."""
    made = made_draws(draws=1000, zeros=False)
    made["W12"][2, :, 1, 1] += 50.0
    source = from_streams(made)
    assert source.ess(np.array([1]), np.array([1]))[0] < 3 * 1000 / 30
    assert source.rhat(np.array([1]), np.array([1]))[0] > 5
    assert source.ess(np.array([1]), np.array([2]))[0] > 500


@pytest.mark.parametrize("make", [from_streams, from_draws])
def test_an_edge_that_is_never_included_has_no_rhat_and_makes_no_noise(make):
    made = made_draws()
    found = make(made).quality(np.array([0, 0, 1]), np.array([0, 1, 1]))
    assert found.loc[0].isna().all()
    assert found.loc[1:, ["rhat", "ess_bulk"]].notna().all(axis=None)


def test_nor_has_one_that_was_included_in_the_warm_up_only():
    """Its differences from a centre that is not zero are constant, up to rounding."""
    made = made_draws()
    bins = Bins(np.full((2, 7), 0.3), np.full((2, 7), 10.0))
    assert from_streams(made, bins).quality(np.array([0]), np.array([0])).isna().all(axis=None)


@pytest.mark.parametrize("make", [from_streams, from_draws])
def test_three_draws_say_nothing_about_convergence(make):
    made = made_draws(draws=3, zeros=False)
    assert make(made).quality(*everywhere(made)).isna().all(axis=None)


# Inclusion --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [from_streams, from_draws])
def test_nonzero_is_the_share_of_draws_that_are_not_zero(make):
    made = made_draws()
    np.testing.assert_allclose(make(made).nonzero, (made["W12"] != 0).mean(axis=(0, 1)))


@pytest.mark.parametrize("make", [from_streams, from_draws])
def test_zeros_count_for_neither_sign(make):
    made = made_draws()
    found, w = make(made).sign_probability, made["W12"][..., 0, 1]
    assert found[0, 0] == 0
    assert found[0, 1] == max((w > 0).mean(), (w < 0).mean()) < 0.4
