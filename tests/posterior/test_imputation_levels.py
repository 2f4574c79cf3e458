"""Probabilities of the levels of missing cells: exact for two columns, the shares of what is drawn for more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import markovblanket as mb
from markovblanket.model.copula import new_rows
from markovblanket.model.copula._margins import normal_scores
from markovblanket.model.rest_prior import RestPrior
from markovblanket.posterior.imputation import Imputed
from markovblanket.posterior.observed import Observed
from markovblanket.posterior.prediction import Fit
from markovblanket.posterior.summaries import describe_levels
from markovblanket.tables.columns import Column
from markovblanket.tables.table import MixedTable

pytestmark = pytest.mark.filterwarnings("ignore::markovblanket.ConvergenceWarning")


# Two columns, all draws the same ----------------------------------------------------------------------

# One has two levels, and its cut is known to 1e-9.
CUT, LATENT = 0.3, np.array([-1.2, 0.3, 0.3 + 1e-9, 1.5, -0.4, 0.7, 0.1])
CODES, OTHER = np.array([0, 0, 1, 1, 0, np.nan, np.nan]), np.array([-0.9, 0.2, 1.1, 1.3, -1.0, 0.8, -1.5])
N, W_11, W_12 = 7, 1.6, -0.9
X = normal_scores(OTHER[:, None])[5:, 0]  # in the rows with gaps


def pair(draws, levels_in_query):
    """Completed tables of the query and the other column."""
    names = ("y", "x") if levels_in_query else ("x", "y")
    made = {"y": Column("y", "binary", CODES, (0, 1)), "x": Column("x", "continuous", OTHER)}
    table = MixedTable(tuple(made[name] for name in names), names[:1], names[1:], names, np.arange(N))
    observed = Observed.of(table, "auto", ["y"], np.broadcast_to(LATENT[:, None], (1, draws, N, 1)))
    fit = Fit(np.full((1, draws, 1, 1), W_11), np.full((1, draws, 1, 1), W_12), observed)
    return Imputed(observed, observed.samples(draws), np.random.SeedSequence(0), fit)


def test_probabilities_of_a_query_cell_are_exact():
    """``y | x ~ N(mean(y) - w12 x / w11, 1 / w11)``, as the mean of x is zero."""
    exact = stats.norm.sf(CUT, LATENT.mean() - W_12 * X / W_11, W_11**-0.5)
    assert np.ptp(exact) > 0.3
    np.testing.assert_allclose(pair(3, levels_in_query=True).probabilities["y"][1], exact, atol=1e-7)


def exact_in_rest(x, degrees, ridge):
    """``y | x ~ N(mean(y) - w12 x / w22, 1 / w22)``; ``w22 = v / (r + c'c) + w12^2 / w11``, c is y less its mean.

    And v is chi-square.
    """
    y = LATENT - LATENT.mean()

    def integrand(v):
        w = v / (ridge + y @ y) + W_12**2 / W_11
        return stats.chi2.pdf(v, degrees) * stats.norm.sf(CUT, LATENT.mean() - W_12 * x / w, w**-0.5)

    return integrate.quad(integrand, 0, 200)[0]


def test_probabilities_of_a_cell_of_the_rest_are_exact(monkeypatch):
    """1000 draws of ``W22.1``: |t| of 19 degrees of freedom below 8.5, which is 7e-8; not with other degrees."""
    prior = RestPrior.of_ridge(2.0, 1)  # so weak that three degrees of freedom matter
    monkeypatch.setattr(Observed, "rest_prior", prior)
    whole = pair(1000, levels_in_query=False)
    parts = [replace(whole, samples=whole.samples[k::20], seed=np.random.SeedSequence(k)) for k in range(20)]
    P = np.array([part.probabilities["y"][1] for part in parts])

    def largest(degrees):
        error = P.mean(axis=0) - [exact_in_rest(x, degrees, prior.ridge) for x in X]
        return np.abs(error / (P.std(axis=0, ddof=1) / np.sqrt(20))).max()

    degrees = prior.degrees + N - 1
    assert largest(degrees) < 8.5 < largest(degrees - 3)


# A whole posterior ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def posterior():
    kinds = ["binary", "ordinal", "continuous", "binary", "ordinal", "count", "continuous", "binary"]
    sim = mb.simulate(rows=150, query=2, rest=6, kinds=kinds, density=0.5, missing=0.15, seed=4)
    return mb.estimate(sim.table, sim.query, chains=2, warmup=100, draws=300, seed=5, progress=False)


def excess(posterior):
    """Shares of drawn levels less their probabilities: by column, over all cells and weighed by the latter.

    Means over batches of consecutive draws, in their standard errors.
    """
    whole = posterior.imputed(600, seed=0)
    batches = [whole.samples[k : k + 30] for k in range(0, 600, 30)]
    parts = [replace(whole, samples=batch, seed=np.random.SeedSequence(k)) for k, batch in enumerate(batches)]
    t = []
    for name, table in parts[0].probabilities.items():
        high = np.arange(table.shape[1]) >= table.shape[1] // 2
        said = np.array([part.probabilities[name].to_numpy() @ high for part in parts])
        drawn = np.array([high[part.draws[name].astype(int)].mean(axis=0) for part in parts])
        likely = said.mean(axis=0) - said.mean()
        d = np.stack([(drawn - said).mean(axis=1), (drawn - said) @ likely])
        t.append(d.mean(axis=1) / (d.std(axis=1, ddof=1) / np.sqrt(len(parts))))
    return np.array(t)


def test_probabilities_are_the_shares_of_drawn_levels(posterior):
    """Six columns, query and rest: |t| of 19 degrees of freedom below 8.5, which is 7e-8 for each of 12."""
    t = excess(posterior)
    assert t.shape == (6, 2)
    assert np.abs(t).max() < 8.5


PLANTED = {
    "twice the sd": ("of_query", lambda mean, sd: (mean, 2 * sd)),
    "half the mean": ("of_rest", lambda mean, sd: (mean / 2, sd)),
}


@pytest.mark.parametrize(("law", "planted"), PLANTED.values(), ids=PLANTED)
def test_wrong_probabilities_are_not_the_shares(posterior, law, planted, monkeypatch):
    right = getattr(new_rows, law)
    monkeypatch.setattr(new_rows, law, lambda *given: planted(*right(*given)))
    assert np.abs(excess(posterior)).max() > 8.5


def test_without_the_draws_of_w12_there_are_shares_of_tables():
    sim = mb.simulate(rows=40, query=1, rest=3, kinds="mixed", missing=0.15, seed=1)
    options = {"chains": 1, "warmup": 5, "draws": 20, "seed": 5, "progress": False}
    kept, summary = (mb.estimate(sim.table, sim.query, keep=keep, **options) for keep in ("draws", "summary"))
    one, other = (fit.imputed(20, seed=1) for fit in (kept, summary))
    assert one.probabilities
    for name, table in other.probabilities.items():
        shares = [(other.draws[name] == k).mean(axis=0) for k in range(table.shape[1])]
        np.testing.assert_array_equal(table.T, shares)
        np.testing.assert_array_equal(other.draws[name], one.draws[name])
        assert 0 < np.abs(table - one.probabilities[name]).to_numpy().max() < 0.5


# What is said of them ---------------------------------------------------------------------------------


def test_description_of_levels():
    """By hand; the interval goes by the numbers, whatever order the levels were declared in."""
    column = Column("dose", "ordinal", np.zeros(1), levels=(20, 5, 10))
    said = describe_levels(column, np.array([[0.1, 0.7, 0.2], [0.05, 0.04, 0.91], [0.9, 0.05, 0.05]]), 0.7)
    np.testing.assert_allclose(said["mean"], [7.5, 10.3, 18.75])
    np.testing.assert_allclose(said["sd"], np.sqrt([77.5 - 7.5**2, 112 - 10.3**2, 366.25 - 18.75**2]))
    assert said["lower"].tolist() == [5, 10, 20]
    assert said["upper"].tolist() == [10, 10, 20]
    assert said["likeliest"].tolist() == [5, 10, 20]
    assert said["probability"].tolist() == [0.7, 0.91, 0.9]


def test_levels_that_are_words_have_no_numbers():
    said = describe_levels(Column("sex", "binary", np.zeros(1), levels=("f", "m")), np.array([[0.3, 0.7]]), 0.9)
    assert said.loc[0, ["mean", "sd", "lower", "upper"]].isna().all()
    assert said.loc[0, "likeliest"] == "m"


@pytest.mark.parametrize("level", [0, 1, -0.5])
def test_a_level_beyond_its_range_is_refused(level):
    column = Column("sex", "binary", np.zeros(1), levels=(0, 1))
    with pytest.raises(ValueError, match="between 0 and 1"):
        describe_levels(column, np.array([[0.3, 0.7]]), level)


def test_rows_are_named_and_levels_too():
    table = pair(2, levels_in_query=True).probabilities["y"]
    pd.testing.assert_index_equal(table.index, pd.Index([5, 6]))
    assert table.columns.tolist() == [0, 1]
