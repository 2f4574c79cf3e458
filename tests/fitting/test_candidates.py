"""Scouting: which variables join the query in the widened block, and what is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import markovblanket as mb
from markovblanket.chains.run import Scouting
from markovblanket.chains.streaming import Moments
from markovblanket.fitting import candidates
from markovblanket.fitting.candidates import Candidates, likeliest
from markovblanket.fitting.data import model_data
from markovblanket.fitting.estimate import problem_of
from markovblanket.model.network_sweep import WidenedBlanket
from markovblanket.model.sweep import Blanket
from markovblanket.priors import Laplace, SpikeSlab
from markovblanket.solvers import Dual

pytestmark = pytest.mark.filterwarnings("ignore::markovblanket.ConvergenceWarning")
QUICK = {"chains": 2, "warmup": 40, "draws": 30, "seed": 5, "progress": False}


@pytest.fixture(scope="module")
def made():
    return mb.simulate(rows=200, query=2, rest=12, density=0.4, seed=1)


@pytest.fixture(scope="module")
def wide():
    """More columns than a small table has."""
    return mb.simulate(rows=60, query=2, rest=candidates.LARGEST_BLOCK, density=0.03, seed=2)


def problem(made, prior=None, query=None):
    given = model_data(made.table, query or made.query, "auto", None, None, None, None)
    return problem_of(given, prior or SpikeSlab(), Dual())


def fit(made, **options):
    return mb.estimate(made.table, made.query, **QUICK | options)


def same_numbers(one, other):
    assert one.settings["candidates"] == other.settings["candidates"]
    for name, array in one.draws.data_vars.items():
        np.testing.assert_array_equal(array.to_numpy(), other.draws[name].to_numpy(), err_msg=name)
    np.testing.assert_array_equal(one.inclusion, other.inclusion)


# What is chosen -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [1, 3, 5])
def test_at_most_as_many_as_asked_for_are_chosen_and_named(made, asked):
    posterior = fit(made, candidates=asked)
    told = posterior.settings["candidates"]
    assert told["asked"] == asked
    assert 1 <= len(told["chosen"]) <= asked
    assert told["chosen"] == [name for name in posterior.variables if name in set(told["chosen"])]
    neighbours = {name for names in made.blanket.values() for name in names} - set(made.query)
    assert len(neighbours) >= 5
    assert set(told["chosen"]) <= neighbours  # of 200 rows with strong edges the likeliest ones are true


def test_a_small_table_is_in_the_block_as_a_whole(made):
    posterior = fit(made)
    assert posterior.settings["candidates"] == {"asked": "auto", "chosen": posterior.variables}
    assert isinstance(Candidates().sampler(problem(made), 100), WidenedBlanket)
    asked = fit(made, candidates=12)
    assert asked.settings["candidates"]["chosen"] == posterior.variables
    np.testing.assert_array_equal(asked.W12, posterior.W12)


def test_a_larger_one_is_scouted(wide):
    sampler = Candidates().sampler(problem(wide), 100)
    assert isinstance(sampler, Scouting)
    assert sampler.sweeps == 100
    posterior = fit(wide)
    chosen = posterior.settings["candidates"]["chosen"]
    assert 0 < len(chosen) < candidates.LARGEST_BLOCK
    assert set(chosen) <= set(posterior.variables)


def test_none_is_the_papers_block(made):
    posterior = fit(made, candidates=0)
    assert posterior.settings["candidates"] == {"asked": 0, "chosen": []}
    assert isinstance(Candidates(0).sampler(problem(made), 100), Blanket)
    assert isinstance(Candidates().sampler(problem(made, Laplace()), 100), Blanket)


def test_a_network_has_no_candidates(made):
    posterior = mb.network(made.table, **QUICK)
    assert posterior.settings["candidates"] == {"asked": "auto", "chosen": []}
    none = mb.estimate(made.table, list(made.table), candidates=0, **QUICK)
    np.testing.assert_array_equal(posterior.W11, none.W11)


@pytest.mark.parametrize(("warmup", "sweeps"), [(0, 20), (19, 20), (60, 60), (500, 500), (4000, 500)])
def test_scouting_is_as_long_as_the_warm_up_within_bounds(made, warmup, sweeps):
    assert Candidates(3).sampler(problem(made), warmup).sweeps == sweeps


def test_the_likeliest_of_any_query_variable_are_chosen_and_none_below_one_in_two_hundred():
    W = np.zeros((400, 2, 5))
    W[:90, 0, 3], W[:60, 1, 0], W[:2, 0, 1], W[:1, 1, 4] = 0.5, -0.5, 0.1, 0.9
    moments = Moments.empty((2, 5))
    for each in W:
        moments.add(each)
    assert [likeliest(moments, most).tolist() for most in (0, 1, 2, 5)] == [[], [3], [0, 3], [0, 1, 3]]


def test_beyond_thirty_a_candidate_needs_a_probability_of_a_twentieth():
    W = np.zeros((100, 1, 60))
    W[:5, 0, :28], W[:3, 0, 28:] = 0.5, 0.5
    moments = Moments.empty((1, 60))
    for each in W:
        moments.add(each)
    assert likeliest(moments, 50).tolist() == list(range(30))


def test_no_likely_neighbour_at_all_is_no_candidate():
    X = np.random.default_rng(0).standard_normal((100, 12))
    posterior = mb.estimate(X, [0], candidates=3, prior=SpikeSlab(inclusion=1e-6), **QUICK)
    assert posterior.settings["candidates"] == {"asked": 3, "chosen": []}
    assert posterior.inclusion.to_numpy()[0, 1:].max() < 0.05


# Numbers depend on the seed alone -----------------------------------------------------------------------


@pytest.mark.parametrize("kinds", ["continuous", "mixed"])
def test_neither_jobs_nor_bars_change_a_number(kinds):
    made = mb.simulate(rows=80, query=2, rest=10, density=0.4, kinds=kinds, seed=3)
    one = fit(made, candidates=3)
    same_numbers(one, fit(made, candidates=3, n_jobs=2))
    same_numbers(one, fit(made, candidates=3, n_jobs=-1, progress=True))
    same_numbers(one, fit(made, candidates=3, keep="draws", progress=True))
    with pytest.raises(AssertionError):
        same_numbers(one, fit(made, candidates=3, seed=6))


def test_another_number_of_draws_has_the_same_candidates(made):
    """They are fixed before the first draw."""
    short, longer = fit(made, candidates=3), fit(made, candidates=3, draws=60)
    assert short.settings["candidates"] == longer.settings["candidates"]
    np.testing.assert_array_equal(short.W12, longer.W12[:, :30])


def test_what_is_kept_does_not_change_the_candidates(made, tmp_path):
    found = [fit(made, candidates=3, keep=keep) for keep in ("draws", "summary", tmp_path / "kept")]
    found.append(mb.load(tmp_path / "kept"))
    assert len({str(posterior.settings["candidates"]) for posterior in found}) == 1
    for posterior in found[1:]:
        np.testing.assert_array_equal(posterior.W11, found[0].W11)


# The iterations that are discarded ----------------------------------------------------------------------


def test_the_warm_up_is_short_where_the_block_mixes_quickly(made):
    mixed = mb.simulate(rows=60, query=2, rest=6, kinds="mixed", seed=1)
    found = {
        "widened": Candidates().warmup(problem(made)),
        "network": Candidates(0).warmup(problem(made, query=list(made.table))),
        "paper's block": Candidates(0).warmup(problem(made)),
        "no zeros": Candidates().warmup(problem(made, Laplace())),
        "mixed": Candidates().warmup(problem(mixed)),
    }
    assert found == {"widened": 300, "network": 300, "paper's block": 1000, "no zeros": 1000, "mixed": 1000}
    assert fit(made, warmup="auto", candidates=3).settings["warmup"] == 300


# Refusals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [-1, 1.5, True, "all", None, [3]])
def test_what_is_no_number_of_candidates_is_refused(made, asked):
    with pytest.raises(ValueError, match=r"^candidates=.*: must be a whole number, at least 0, or 'auto'$"):
        fit(made, candidates=asked)


@pytest.mark.parametrize("prior", ["laplace", "horseshoe", "normal"])
def test_a_prior_without_zeros_takes_no_candidates(made, prior):
    said = r"^candidates=5: only the prior 'spike-slab', which has exact zeros, takes any$"
    with pytest.raises(ValueError, match=said):
        fit(made, prior=prior, candidates=5)
    np.testing.assert_array_equal(fit(made, prior=prior, candidates=0).W12, fit(made, prior=prior).W12)


def test_a_network_needs_exact_zeros(made):
    said = r"^every column is a query column, and only the prior 'spike-slab' estimates a whole network"
    with pytest.raises(ValueError, match=said):
        mb.network(made.table, prior="laplace", **QUICK)
    with pytest.raises(ValueError, match=said):
        mb.estimate(made.table, list(made.table), prior="laplace", **QUICK)


def test_a_network_that_is_too_large_is_sent_to_scan():
    X = np.random.default_rng(0).standard_normal((20, 501))
    said = r"^a network of 501 variables: at most 500 are possible\. markovblanket\.scan estimates"
    with pytest.raises(ValueError, match=said):
        mb.network(X, **QUICK)


def test_one_variable_is_no_network():
    X = np.random.default_rng(0).standard_normal((20, 1))
    for prior in ("spike-slab", "laplace"):
        with pytest.raises(ValueError, match=r"^there is only one variable: a network needs at least two$"):
            mb.network(X, prior=prior, **QUICK)


def test_a_refusal_writes_nothing(made, tmp_path):
    with pytest.raises(ValueError, match="takes any"):
        fit(made, prior="laplace", candidates=5, checkpoint=tmp_path / "run", keep=tmp_path / "draws")
    assert not list(tmp_path.iterdir())


def test_numpy_numbers_are_numbers(made):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.ConvergenceWarning)
        same_numbers(fit(made, candidates=3), fit(made, candidates=np.int64(3)))


def test_near_duplicates_of_a_candidate_become_candidates():
    """One of three twins is connected to the query: with the first that is found, the others join the block."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((120, 160))
    X[:, [8, 9]] = X[:, [7]] * [1.0, -1.0] + 0.1 * rng.standard_normal((120, 2))
    y = X[:, 7] + rng.standard_normal(120)
    posterior = mb.estimate(np.column_stack([y, X]), [0], warmup=50, draws=50, chains=2, seed=1, progress=False)
    assert {8, 9, 10} <= set(posterior.settings["candidates"]["chosen"])
