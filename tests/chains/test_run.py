"""Running: schedules, streams, and the same numbers however the chains are spread."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import joblib
import numpy as np
import pytest

from markovblanket.chains import run
from markovblanket.chains.run import Schedule
from markovblanket.chains.stores import Chain
from markovblanket.contracts import Problem
from markovblanket.model import sweep as gibbs
from markovblanket.model.scatter import from_columns
from markovblanket.priors import Laplace
from markovblanket.solvers import Dual


@pytest.fixture(scope="module")
def problem():
    X = np.random.default_rng(0).standard_normal((40, 9))
    X[:, :2] += X[:, 2:4] - X[:, 5:7]
    return Problem(from_columns(X[:, :2], X[:, 2:]), Laplace(), Dual())


SCHEDULE = Schedule(warmup=5, draws=8, thin=3)


def test_a_stream_keeps_every_thin_th_state_after_warm_up(problem):
    """Replays the chain sweep by sweep from the same generator."""
    rng = np.random.default_rng(1)
    sampler = gibbs.Blanket(problem)
    *_, warm = run._warm_up(Chain(rng, sampler.start(rng)), sampler, SCHEDULE.warmup)
    kept = [draw for _, draw in run._sample(warm, sampler, SCHEDULE) if draw is not None]
    rng = np.random.default_rng(1)
    state = gibbs.start(rng, problem)
    expected = []
    for sweep in range(1, 5 + 8 * 3 + 1):
        state, info = gibbs.sweep(rng, state, problem)
        if sweep > 5 and (sweep - 5) % 3 == 0:
            expected.append(gibbs.derive(rng, state, info, problem.scatter))
    assert len(kept) == len(expected) == 8
    for one, other in zip(kept, expected, strict=True):
        np.testing.assert_array_equal(one.W12, other.W12)
        np.testing.assert_array_equal(one.W22_diagonal, other.W22_diagonal)
        assert one.hyper == other.hyper


def test_every_sweep_is_counted(problem):
    rng, sampler = np.random.default_rng(0), gibbs.Blanket(problem)
    start = Chain(rng, sampler.start(rng))
    warm = list(run._warm_up(start, sampler, SCHEDULE.warmup))
    sampled = [chain for chain, _ in run._sample(warm[-1], sampler, SCHEDULE)]
    assert [chain.count for chain in (*warm, *sampled)] == list(range(1, SCHEDULE.sweeps + 1))
    assert SCHEDULE.sweeps == 29
    assert not np.array_equal(start.state.W12, warm[0].state.W12)


@dataclass(frozen=True)
class Mortal(gibbs.Blanket):
    """The first of these whose chain has come so far ends its process."""

    marker: Path
    at: int

    def derive(self, rng, state, info):
        if rng.bit_generator.seed_seq.spawn_key == (1,) and self.at == 1:
            self.end()
        return super().derive(rng, state, info)

    def start(self, rng):
        if self.at == 0:
            self.end()
        return super().start(rng)

    def end(self):
        try:
            self.marker.touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("at", [0, 1], ids=["warm-up", "sampling"])
def test_the_chains_of_a_lost_process_are_run_again(problem, tmp_path, at):
    whole = run.run(problem, SCHEDULE, chains=3, seed=7)
    again = run.run(Mortal(problem, tmp_path / "marker", at), SCHEDULE, chains=3, seed=7, n_jobs=2)
    assert (tmp_path / "marker").exists()
    for name, array in whole.items():
        np.testing.assert_array_equal(again[name], array)


def test_same_numbers_for_any_number_of_jobs_and_backend(problem):
    runs = [run.run(problem, SCHEDULE, chains=3, seed=7, n_jobs=n_jobs) for n_jobs in (None, 2)]
    with joblib.parallel_config(backend="threading"):
        runs.append(run.run(problem, SCHEDULE, chains=3, seed=7, n_jobs=3))
    for other in runs[1:]:
        assert other.keys() == runs[0].keys()
        for name, array in runs[0].items():
            np.testing.assert_array_equal(array, other[name], err_msg=name)


def test_a_problem_is_run_by_the_blanket_s_sampler(problem):
    given, explicit = (run.run(x, SCHEDULE, chains=2, seed=7) for x in (problem, gibbs.Blanket(problem)))
    for name, array in given.items():
        np.testing.assert_array_equal(array, explicit[name], err_msg=name)


def test_chains_differ_from_each_other_and_more_chains_change_none(problem):
    two, three = (run.run(problem, SCHEDULE, chains=c, seed=7) for c in (2, 3))
    np.testing.assert_array_equal(two["W12"], three["W12"][:2])
    assert not np.array_equal(two["W12"][0], two["W12"][1])


def test_starts_are_wider_than_the_posterior(problem):
    """Over-dispersed: starting W11 and the learned rate spread more than the draws they lead to."""
    rng = np.random.default_rng(3)
    starts = [gibbs.start(rng, problem) for _ in range(300)]
    draws = run.run(problem, Schedule(200, 1000), chains=1, seed=1)
    assert np.std([np.log(s.W11[0, 0]) for s in starts]) > 1.5 * np.log(draws["W11"][..., 0, 0]).std()
    assert np.std([np.log(s.hyper["gamma"]) for s in starts]) > 1.5 * np.log(draws["gamma"]).std()


@pytest.mark.parametrize(
    "wrong", [{"warmup": -1}, {"draws": 0}, {"thin": 0}, {"draws": 1.5}, {"draws": True}, {"warmup": "10"}]
)
def test_impossible_schedules_are_refused(wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=rf"{name}=.*whole number"):
        Schedule(**wrong)


@pytest.mark.parametrize("count", [0, -1, 1.5])
def test_impossible_numbers_of_chains_are_refused(problem, count):
    with pytest.raises(ValueError, match="chains="):
        run.run(problem, SCHEDULE, chains=count)
