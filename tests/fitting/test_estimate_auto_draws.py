"""``draws="auto"``: as many draws as the chains need to agree, within a budget."""

from __future__ import annotations

import warnings
from importlib import import_module

import numpy as np
import pytest

import markovblanket as mb
from markovblanket.fitting import task
from markovblanket.fitting.run_folder import RunFolder
from markovblanket.fitting.task import MOST_APART, Task


@pytest.fixture(scope="module")
def clinic():
    return mb.simulate(rows=40, query=1, rest=4, density=0.5, seed=2)


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Rounds begin with few draws, which do not suffice."""
    monkeypatch.setattr(import_module("markovblanket.fitting.estimate"), "FIRST_DRAWS", 50)


@pytest.fixture
def rounds(monkeypatch):
    """The draws of every round."""
    seen: list[int] = []
    sampled = Task.sampled

    def noted(task, *asked):
        seen.append(task.schedule.draws)
        return sampled(task, *asked)

    monkeypatch.setattr(Task, "sampled", noted)
    return seen


SHORT = {"chains": 2, "warmup": 50, "seed": 4, "progress": False}


def apart(posterior):
    """By how much chains differ at most in the probability of a pair."""
    return float(np.ptp(posterior.averages["inclusion"].values, axis=0).max())


def test_draws_double_until_the_chains_agree_and_are_those_of_a_run_that_knew(clinic, rounds):
    found = mb.estimate(clinic.table, clinic.query, draws="auto", **SHORT)
    assert found.diagnostics().converged
    assert apart(found) <= MOST_APART
    *_, before, last = rounds
    assert rounds == [50 * 2**k for k in range(len(rounds))]
    known = mb.estimate(clinic.table, clinic.query, draws=last, **SHORT)
    np.testing.assert_array_equal(found.W12.values, known.W12.values)
    assert found.settings["draws"] == last
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.ConvergenceWarning)
        shorter = mb.estimate(clinic.table, clinic.query, draws=before, **SHORT)
    assert not shorter.diagnostics().converged or apart(shorter) > MOST_APART


def test_chains_that_tell_different_probabilities_go_on(clinic, rounds, monkeypatch):
    """R-hat is judged on the edges that are selected; probabilities are compared for all pairs."""
    loose, strict = {}, {}
    for most, found in ((1.0, loose), (0.01, strict)):
        monkeypatch.setattr(task, "MOST_APART", most)
        found["posterior"] = mb.estimate(clinic.table, clinic.query, draws="auto", budget=50_000, **SHORT)
        found["draws"] = rounds[-1]
    assert apart(loose["posterior"]) > 0.01 >= apart(strict["posterior"])
    assert strict["draws"] > loose["draws"]


def test_chains_that_still_differ_when_the_budget_ends_say_so(clinic, monkeypatch):
    monkeypatch.setattr(task, "MOST_APART", 1e-4)
    said = r"^not converged: chains differ by 0\.0. in the probability of Q1~V. \(should be at most 0.0001\)"
    with pytest.warns(mb.ConvergenceWarning, match=said) as heard:
        found = mb.estimate(clinic.table, clinic.query, draws="auto", budget=10_000, **SHORT)
    assert heard[0].filename == __file__  # where the fit was asked for
    assert found.diagnostics().converged
    assert apart(found) > 1e-4


def test_the_budget_is_kept_and_what_is_missing_told(clinic, rounds):
    with pytest.warns(mb.ConvergenceWarning):
        found = mb.estimate(clinic.table, clinic.query, draws="auto", budget=149, **SHORT)
    assert rounds == [50]
    assert found.draws.sizes["draw"] == 50


def test_a_run_that_was_stopped_between_rounds_goes_on(clinic, rounds, tmp_path):
    whole = mb.estimate(clinic.table, clinic.query, draws="auto", **SHORT)
    last = rounds[-1]
    rounds.clear()
    with pytest.warns(mb.ConvergenceWarning):
        mb.estimate(clinic.table, clinic.query, draws="auto", budget=149, checkpoint=tmp_path, **SHORT)
    again = mb.estimate(clinic.table, clinic.query, draws="auto", checkpoint=tmp_path, **SHORT)
    np.testing.assert_array_equal(whole.W12.values, again.W12.values)
    assert RunFolder(tmp_path).plan()["draws"] == last
    rounds.clear()
    resumed = mb.resume(tmp_path, draws="auto", progress=False)
    np.testing.assert_array_equal(whole.W12.values, resumed.W12.values)
    assert rounds == [last]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draws": "many"}, r"^draws='many': a whole number, or 'auto'$"),
        ({"draws": "auto", "budget": 0}, r"^budget=0: must be a whole number, at least 1$"),
        (
            {"draws": "auto", "budget": 90},
            r"^budget=90: 50 iterations of warm-up and 50 draws are more than that$",
        ),
    ],
)
def test_what_cannot_be_is_refused(clinic, options, message):
    with pytest.raises(ValueError, match=message):
        mb.estimate(clinic.table, clinic.query, **SHORT | options)


def test_a_summary_grows_as_well(clinic, rounds):
    found = mb.estimate(clinic.table, clinic.query, draws="auto", keep="summary", **SHORT)
    assert len(rounds) > 1
    assert found.diagnostics().converged
    assert found.draws.sizes["draw"] == rounds[-1]
    known = mb.estimate(clinic.table, clinic.query, draws=rounds[-1], **SHORT)
    one, other = (posterior.edges(all=True, detail=True)["precision"] for posterior in (found, known))
    np.testing.assert_allclose(one, other, rtol=1e-9)


def test_draws_on_disk_grow_as_well(clinic, rounds, tmp_path):
    found = mb.estimate(clinic.table, clinic.query, draws="auto", keep=tmp_path / "draws", **SHORT)
    assert len(rounds) > 1
    known = mb.estimate(clinic.table, clinic.query, draws=rounds[-1], **SHORT)
    for posterior in (found, mb.load(tmp_path / "draws")):
        np.testing.assert_array_equal(posterior.W12.values, known.W12.values.astype(np.float32))


@pytest.mark.filterwarnings("ignore::markovblanket.ConvergenceWarning")
def test_a_checkpoint_takes_no_other_word(clinic, tmp_path):
    mb.estimate(clinic.table, clinic.query, draws=400, **SHORT, checkpoint=tmp_path)
    with pytest.raises(ValueError, match=r"^draws='more': a whole number, or 'auto'$"):
        mb.resume(tmp_path, draws="more")
