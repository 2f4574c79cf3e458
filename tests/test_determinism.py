"""Fits beside each other in one process: the numbers of fits on their own, and a process left as it was found."""

from __future__ import annotations

import ast
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import markovblanket as mb
from markovblanket._determinism import OneThread, take_control
from markovblanket.chains import snapshots
from markovblanket.fitting import run_folder
from markovblanket.model import sweep as gibbs

pytestmark = pytest.mark.filterwarnings("ignore::markovblanket.ConvergenceWarning")
SOURCE = Path(mb.__file__).parent
SCHEDULE = {"chains": 2, "warmup": 20, "draws": 20, "progress": False}
PRIORS = ("spike-slab", "laplace", "horseshoe")


def mixed(seed):
    return mb.simulate(40, 2, 6, kinds="mixed", missing=0.1, seed=seed)


def fit(seed, **settings):
    """Different data, prior and seed each time; the second look included where there are exact zeros."""
    data = mixed(seed)
    posterior = mb.estimate(
        data.table,
        data.query,
        prior=PRIORS[seed % 3],
        seed=seed,
        **(SCHEDULE | settings),
    )
    return posterior.W12.to_numpy(), posterior.W11.to_numpy()


def regress(seed):
    """Through the door of scikit-learn."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 5))
    model = mb.MarkovBlanket(random_state=seed, chains=2, warmup=20, draws=20)
    return (model.fit(X, X[:, 0] + rng.standard_normal(30)).predict(X),)


def assert_same(found, expected):
    for some, others in zip(found, expected, strict=True):
        for one, other in zip(some, others, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("work", [fit, regress])
def test_threads_give_the_numbers_of_one(work):
    expected = [work(seed) for seed in range(6)]
    with ThreadPoolExecutor(4) as pool:
        assert_same(pool.map(work, range(6)), expected)


def test_so_do_threads_by_joblib_with_chains_in_threads_of_their_own():
    expected = [fit(seed) for seed in range(3)]
    with joblib.parallel_config(backend="threading"):
        found = joblib.Parallel(n_jobs=2)(joblib.delayed(fit)(seed, n_jobs=2) for seed in range(3))
    assert_same(found, expected)


@pytest.mark.parametrize("backend", ["sequential", "threading", "loky"])
def test_so_does_every_backend(backend):
    """Also of the second look."""
    with joblib.parallel_config(backend=backend):
        found = fit(3, n_jobs=2)
    assert_same([found], [fit(3)])


@pytest.mark.parametrize("every", [0.0, 1e9], ids=["after every sweep", "never"])
def test_so_does_every_rhythm_of_snapshots(every, tmp_path, monkeypatch):
    monkeypatch.setattr(run_folder, "SECONDS_BETWEEN_SNAPSHOTS", every)
    monkeypatch.setattr(snapshots, "LEAST_INTERVAL_PER_SECOND_SPENT", 0.0)
    assert_same([fit(3, checkpoint=tmp_path / "run")], [fit(3)])


# The one thing that fits share ------------------------------------------------------------------------------


def threads():
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


def test_contexts_that_overlap_keep_the_limit_until_the_last_one_ends():
    with threadpool_limits(limits=2, user_api="blas"):
        before, one, (first, second) = threads(), OneThread(), (threading.Event(), threading.Event())

        def overlap():
            with one:
                first.set()
                second.wait(60)

        other = threading.Thread(target=overlap)
        with one, one:
            other.start()
            first.wait(60)
        assert threads() == {1}  # though the first to come has left
        second.set()
        other.join()
        assert threads() == before


def test_separate_limits_would_be_lifted_from_those_that_go_on():
    """What the shared one is for."""
    with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:
        two = first.submit(threadpool_limits, limits=2, user_api="blas").result()
        if threads() == {2}:  # where linear algebra has threads
            one = first.submit(threadpool_limits, limits=1).result()
            second.submit(threadpool_limits, limits=1).result()
            first.submit(one.restore_original_limits).result()
            assert threads() == {2}
        first.submit(two.restore_original_limits).result()
        take_control()


@pytest.mark.parametrize("inside", [True, False], ids=["of the first thread", "of another"])
def test_the_limit_is_kept_in_sweeps_whoever_else_has_set_one(inside, monkeypatch):
    """Also where threadpoolctl listens to another thread alone."""
    seen, sweep = set(), gibbs.sweep

    def watched(*given):
        seen.update(threads())
        return sweep(*given)

    monkeypatch.setattr(gibbs, "sweep", watched)
    with threadpool_limits(limits=2, user_api="blas"):
        before = threads()
        if inside:
            fit(1)
        else:
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(fit, (1, 2)))
        assert threads() == before
    assert seen == {1}


def test_fits_in_threads_restore_the_number_of_threads_of_linear_algebra():
    with threadpool_limits(limits=2, user_api="blas"):
        before = threads()
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(fit, range(3)))
        assert threads() == before


# What a fit leaves behind -----------------------------------------------------------------------------------


def surroundings():
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    generators = [repr(np.random.get_state()), random.getstate()]  # noqa: NPY002
    state = [dict(os.environ), Path.cwd(), list(warnings.filters), np.geterr(), np.get_printoptions()]
    return [*state, *handlers, *generators, threads(), sys.getrecursionlimit()]


def offline(*_, **__):
    raise AssertionError("a fit has tried to reach the network")


def test_a_fit_leaves_everything_as_it_was_and_stays_offline(monkeypatch, tmp_path):
    """Network, generators, filters of warnings, environment, folder, handlers of signals, errors of NumPy."""
    fit(0)  # what is imported at first use
    before = surroundings()
    with monkeypatch.context() as patched:
        for name in ("socket", "create_connection", "getaddrinfo"):
            patched.setattr(socket, name, offline)
        for seed in range(3):
            fit(seed, checkpoint=tmp_path / str(seed))
    assert surroundings() == before


FRESH = """
import warnings
from concurrent.futures import ThreadPoolExecutor
import matplotlib
import xarray
from markovblanket.posterior.summaries import arviz
before = list(warnings.filters)
with ThreadPoolExecutor(8) as pool:
    assert len(set(pool.map(lambda _: arviz(), range(8)))) == 1
assert list(warnings.filters) == before, warnings.filters
"""


def test_threads_that_need_arviz_first_leave_the_filters_of_warnings_alone():
    """In a process of its own, as it is imported but once."""
    done = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# What the source never does ---------------------------------------------------------------------------------

FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "subprocess"}
# Of yaml, what makes nodes of a text and nothing of the nodes.
YAML = {"compose", "BaseLoader", "MappingNode", "YAMLError"}


def offences(tree):
    """Calls and imports by which a file that one opens could run what it likes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from {name.name.split(".")[0] for name in node.names} & FORBIDDEN_MODULES
        elif isinstance(node, ast.ImportFrom):
            yield from {(node.module or "").split(".")[0]} & (FORBIDDEN_MODULES | {"yaml"})
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield from {node.func.id} & FORBIDDEN_CALLS
            yield from (
                "allow_pickle"
                for given in node.keywords
                if given.arg == "allow_pickle"
                and not (isinstance(given.value, ast.Constant) and given.value.value is False)
            )
        elif isinstance(node, ast.Attribute) and node.attr in ("read_pickle", "to_pickle"):
            yield node.attr
        elif isinstance(node, ast.Attribute) and getattr(node.value, "id", None) == "yaml":
            yield from {node.attr} - YAML


def test_the_source_runs_nothing_that_it_reads():
    found = {
        str(path.relative_to(SOURCE)): names
        for path in SOURCE.rglob("*.py")
        if (names := list(offences(ast.parse(path.read_text(encoding="utf-8")))))
    }
    assert not found


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from yaml import load",
        "yaml.load('x', yaml.Loader)",
        "eval('1')",
        "np.load('x', allow_pickle=True)",
        "pd.read_pickle('x')",
    ],
)
def test_and_would_be_caught(line):
    assert list(offences(ast.parse(line)))
