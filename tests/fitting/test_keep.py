"""What is kept changes what can be asked, and never the numbers."""

from __future__ import annotations

import json
import os
import shutil
import tracemalloc
from pathlib import Path
from unittest.mock import Mock

import joblib
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import markovblanket as mb
from markovblanket.chains.run import Schedule, run
from markovblanket.chains.stores import KeepDraws, KeepSummary
from markovblanket.contracts import Problem
from markovblanket.fitting import keep as keeping
from markovblanket.model.scatter import from_columns
from markovblanket.posterior import storage, summaries
from markovblanket.posterior.observed import name_axes, name_streams
from markovblanket.posterior.posterior import Posterior
from markovblanket.priors import Laplace
from markovblanket.simulation import simulate
from markovblanket.solvers import Dual

# Short runs are the point here, so an unconverged one is no news.
pytestmark = pytest.mark.filterwarnings("ignore::markovblanket.ConvergenceWarning")
QUICK = {
    "prior": "laplace",
    "margins": "gaussian",
    "chains": 2,
    "warmup": 30,
    "draws": 41,
    "seed": 5,
    "progress": False,
}


@pytest.fixture(scope="module")
def data():
    return simulate(rows=80, query=3, rest=12, density=0.3, seed=4)


@pytest.fixture(scope="module")
def full(data):
    return mb.estimate(data.table, data.query, keep="draws", **QUICK)


@pytest.fixture(scope="module")
def summary(data):
    return mb.estimate(data.table, data.query, keep="summary", **QUICK)


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("kept") / "run"
    mb.estimate(data.table, data.query, keep=path, **QUICK)
    return path


def kept_at(posterior):
    """Rows and columns of the kept edges."""
    return posterior.streams["kept"].values.T


# The same numbers -------------------------------------------------------------------------------------


def test_a_summary_is_of_the_same_draws(full, summary):
    i, j = kept_at(summary)
    np.testing.assert_array_equal(summary.draws["kept_weight"], full.W12.values[:, :, i, j])
    np.testing.assert_array_equal(
        summary.draws["kept_partial_correlation"], full.partial_correlation.values[:, :, i, j]
    )
    for name in ("W11", "explained", "gamma"):
        np.testing.assert_array_equal(summary.draws[name], full.draws[name], err_msg=name)
    xr.testing.assert_identical(summary.effort, full.effort)


def test_edges_of_a_summary_are_those_of_the_draws(full, summary):
    assert summary.selected(level=0.5).equals(full.selected(level=0.5))
    assert summary.blanket(fdr=0.2) == full.blanket(fdr=0.2)
    one, other = (p.edges(level=0.5, detail=True).set_index(["query", "variable"]) for p in (summary, full))
    other = other.loc[one.index]
    assert len(one) > 5
    for name in (
        "precision",
        "coefficient",
        "partial_correlation",
        "partial_correlation_averaged",
        "sign_probability",
    ):
        np.testing.assert_allclose(one[name], other[name], rtol=1e-9, err_msg=name)
    for name in ("lower", "upper"):
        assert ((one[name] - other[name]).abs() < (other["upper"] - other["lower"]) / 12).all()
    assert one.columns.tolist() == other.columns.tolist()
    assert one["probability"].isna().all()
    np.testing.assert_allclose(summary.coefficients, full.coefficients, atol=1e-12)


def test_what_does_not_come_from_w12_is_untouched(full, summary):
    pd.testing.assert_frame_equal(summary.r2(), full.r2())
    pd.testing.assert_frame_equal(summary.summary(), full.summary())
    inner = np.array([0, 0, 1]), np.array([1, 2, 2])
    pd.testing.assert_frame_equal(summary.edges_at(*inner, detail=True), full.edges_at(*inner, detail=True))
    assert set(summary.graph(level=0.5).edges) == set(full.graph(level=0.5).edges)
    blocks = summary.diagnostics(all=True).table, full.diagnostics(all=True).table
    pd.testing.assert_frame_equal(blocks[0].drop("edges"), blocks[1].drop("edges"))
    assert blocks[0].loc["edges", "quantities"] == blocks[1].loc["edges", "quantities"] == 39


def test_the_same_statistics_for_any_number_of_jobs():
    """Joblib hands states and bins to the workers as files that cannot be written, as it does with large ones."""
    X = np.random.default_rng(0).standard_normal((20, 103))
    problem = Problem(from_columns(X[:, :3], X[:, 3:]), Laplace(), Dual())
    schedule = Schedule(10, 15, thin=2)
    one = run(problem, schedule, chains=3, seed=3, keep=KeepSummary(15))
    with joblib.parallel_config(backend="loky", max_nbytes=100):
        two, full = (
            run(problem, schedule, chains=3, seed=3, n_jobs=2, keep=k(15)) for k in (KeepSummary, KeepDraws)
        )
    assert one.keys() == two.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, two[name], err_msg=name)
    np.testing.assert_array_equal(one["stream_positive"], (full["W12"] > 0).sum(axis=1))


def test_no_warm_up_is_no_obstacle(data):
    posterior = mb.estimate(data.table, data.query, keep="summary", **QUICK | {"warmup": 0})
    same = mb.estimate(data.table, data.query, keep="draws", **QUICK | {"warmup": 0})
    np.testing.assert_array_equal(posterior.sign_probability, same.sign_probability)
    assert np.isfinite(posterior.edges(all=True)[["lower", "upper"]]).all(axis=None)


# What is kept -----------------------------------------------------------------------------------------


def test_auto_keeps_draws_while_they_fit(data, full, monkeypatch):
    small = mb.estimate(data.table, data.query, **QUICK)
    np.testing.assert_array_equal(small.W12, full.W12)
    assert small.settings["keep"]["kept"] == "draws"
    assert "summary" not in repr(small)
    monkeypatch.setattr(keeping, "MOST_NUMBERS_IN_MEMORY", 2 * 41 * 3 * 12 - 1)
    large = mb.estimate(data.table, data.query, **QUICK)
    assert large.settings["keep"] == {
        "asked": "auto",
        "kept": "summary",
        "why": "W12 has 2,952 numbers, more than 2,951",
    }
    assert "summary with the draws of 36 edges" in repr(large)


def test_named_edges_keep_their_draws(data, full):
    rest = full.variables
    named = [(data.query[1], rest[4]), (data.query[0], rest[0])]
    posterior = mb.estimate(data.table, data.query, keep="summary", named=named, **QUICK)
    for query, variable in named:
        found = posterior.edge_draws(query, variable)
        np.testing.assert_array_equal(found, full.edge_draws(query, variable))
        np.testing.assert_array_equal(found, full.W12.sel(query=query, variable=variable))
    with pytest.raises(ValueError, match=r'were not kept: estimate with keep="draws"'):
        posterior.edge_draws(data.query[0], rest[1])
    assert posterior.draws.sizes["edge"] == 2


def test_no_edge_at_all_may_be_named(data):
    posterior = mb.estimate(data.table, data.query, keep="summary", named=[], **QUICK)
    assert posterior.draws.sizes["edge"] == 0
    assert len(posterior.edges(all=True)) == 39


def test_what_needs_every_draw_is_refused_in_a_sentence(data, summary):
    new = data.table.drop(columns=data.query)
    for ask in (
        lambda: summary.W12,
        lambda: summary.predict(new),
        summary.check,
        lambda: summary.partial_correlation,
    ):
        with pytest.raises(ValueError, match=r'needs every draw of W12.*keep="draws"'):
            ask()


def test_a_summary_completes_tables():
    table = simulate(rows=40, query=2, rest=5, kinds="mixed", missing=0.1, seed=2)
    how = QUICK | {"margins": "auto"}
    one, other = (mb.estimate(table.table, table.query, keep=keep, **how) for keep in ("summary", "draws"))
    for a, b in zip(one.imputed(3, seed=1), other.imputed(3, seed=1), strict=True):
        pd.testing.assert_frame_equal(a, b)


def test_arviz_takes_what_is_kept(summary):
    data = summary.to_inference_data()
    table = summaries.arviz().summary(data, var_names=["kept_weight", "gamma"])
    assert len(table) == 37
    np.testing.assert_allclose(
        table["mean"].iloc[:36], summary.draws["kept_weight"].mean(("chain", "draw")), atol=0.01
    )


@pytest.mark.parametrize("keep", ["draws", "summary"])
def test_spike_and_slab_fills_the_inclusion_even_without_a_zero(full, summary, keep):
    made = full if keep == "draws" else summary
    settings = made.settings | {"prior": {"name": "SpikeSlab", "exact_zeros": True}}
    posterior = Posterior(made.draws, made.effort, made.observed, settings, made.streams)
    assert (posterior.inclusion[made.variables] == 1).all(axis=None)
    assert posterior.inclusion[made.query].isna().all(axis=None)


@pytest.mark.parametrize("keep", [KeepDraws, KeepSummary])
def test_exact_zeros_pass_through_the_posterior_without_a_warning(full, keep):
    """Three quarters of the edges never included, one half of the time, the others always."""
    arrays = zeroed(full, keep)
    draws, effort = name_axes(arrays, full.query, full.variables)
    posterior = Posterior(draws, effort, full.observed, full.settings, name_streams(arrays))
    edges = posterior.edges(all=True, detail=True).set_index(["query", "variable"])
    first = edges.loc[full.query[0]]
    assert first["probability"].tolist().count(0.0) == 9
    assert edges["rhat"].isna().sum() == 27
    assert (edges["probability"] == 0).sum() == 27
    half = edges[(edges["probability"] > 0) & (edges["probability"] < 1)]
    assert len(half) == 1
    assert (half["sign_probability"] <= half["probability"]).all()
    assert posterior.diagnostics(all=True).table.loc["edges", "quantities"] == 9 + 3
    assert np.isfinite(posterior.diagnostics(all=True).table.loc["edges", "rhat"])
    sure = posterior.edges(level=0.2, detail=True)
    assert len(sure) > 0
    assert (sure["probability"].dropna() >= sure["sign_probability"][sure["probability"].notna()]).all()
    assert sure["sign_probability"].min() > 0.6


def zeroed(full, keep):
    """The arrays of a run whose W12 has exact zeros, as a keep would gather them."""
    from support.known_draws import streamed

    W12 = full.W12.values.copy()
    W12[..., 3:] = 0.0
    W12[:, ::2, 0, 0] = 0.0
    matrices = {"W11": full.W11.values, "W12": W12, "W22_diagonal": full.draws["W22_diagonal"].values}
    small = {name: full.draws[name].values for name in ("W11", "explained", "gamma")}
    effort = {name: array.values for name, array in full.effort.items()}
    if keep is KeepDraws:
        return {**small, **effort, **matrices}
    return {**small, **effort, **{f"stream_{name}": array for name, array in streamed(matrices).items()}}


# On disk ----------------------------------------------------------------------------------------------


def test_draws_on_disk_are_the_draws_in_single_precision(data, full, folder):
    draws = xr.open_zarr(folder / "draws.zarr", chunks=None)
    np.testing.assert_array_equal(draws["W12"], full.W12.values.astype(np.float32))
    assert draws["W12"].dtype == np.float32
    assert "float32" in draws.attrs["precision"]
    for name in ("W11", "W22_diagonal", "explained", "gamma"):
        np.testing.assert_array_equal(draws[name], full.draws[name], err_msg=name)
    assert draws["query"].values.tolist() == full.query
    assert draws["variable"].values.tolist() == full.variables


@pytest.mark.parametrize("block", [36 * 5, 1])
def test_blocks_of_any_size_and_jobs_write_the_same(data, full, tmp_path, monkeypatch, block):
    monkeypatch.setattr("markovblanket.chains.zarr_store.BLOCK", block)
    posterior = mb.estimate(
        data.table, data.query, keep=str(tmp_path / "run"), n_jobs=2 if block > 1 else None, **QUICK
    )
    np.testing.assert_array_equal(posterior.W12, full.W12.values.astype(np.float32))
    np.testing.assert_array_equal(posterior.draws["W22_diagonal"], full.draws["W22_diagonal"])


def test_a_folder_of_draws_is_a_saved_posterior(data, full, summary, folder):
    again = mb.load(folder)
    assert "kept on disk" in repr(again)
    assert not again.draws["W12"].variable._in_memory
    pd.testing.assert_frame_equal(again.edges(level=0.5), summary.edges(level=0.5))
    new = data.table.drop(columns=data.query)
    one, other = (posterior.predict(new, seed=1) for posterior in (again, full))
    np.testing.assert_allclose(one.summary(), other.summary(), rtol=1e-4, atol=1e-4)
    assert not again.draws["W12"].variable._in_memory
    pd.testing.assert_frame_equal(again.check(seed=1), full.check(seed=1), rtol=1e-3, atol=1e-3)
    edge = full.query[0], full.variables[3]
    np.testing.assert_array_equal(again.edge_draws(*edge), full.edge_draws(*edge))
    assert again.settings["keep"]["kept"] == "disk"


def test_a_posterior_on_disk_is_saved_elsewhere_and_over_itself(folder, tmp_path):
    posterior = mb.load(folder)
    posterior.save(tmp_path / "copy")
    copy = mb.load(tmp_path / "copy")
    copy.save(tmp_path / "copy")
    again = mb.load(tmp_path / "copy")
    xr.testing.assert_identical(again.draws, posterior.draws)
    xr.testing.assert_identical(again.streams, posterior.streams)


def test_a_summary_is_loaded_as_it_was_saved(summary, tmp_path):
    summary.save(tmp_path / "run")
    again = mb.load(tmp_path / "run")
    for group in ("draws", "effort", "streams"):
        xr.testing.assert_identical(getattr(again, group), getattr(summary, group))
    for name, array in summary.streams.items():
        assert again.streams[name].dtype == array.dtype, name
    pd.testing.assert_frame_equal(again.edges(all=True), summary.edges(all=True))
    assert repr(again) == repr(summary)


def test_an_older_run_or_an_interrupted_one_gives_way(data, tmp_path):
    path = tmp_path / "run"
    first = mb.estimate(data.table, data.query, keep=path, **QUICK)
    second = mb.estimate(data.table, data.query, keep=path, **QUICK | {"seed": 6})
    assert not np.array_equal(first.W11, second.W11)
    np.testing.assert_array_equal(mb.load(path).W11, second.W11)
    (path / "settings.json").unlink()
    with pytest.raises(FileNotFoundError, match="not a saved posterior"):
        mb.load(path)
    mb.estimate(data.table, data.query, keep=path, **QUICK)
    assert json.loads((path / "settings.json").read_text())["seed"] == "5"


@pytest.mark.parametrize("whole", [True, False])
def test_a_folder_gives_way_though_a_run_was_stopped_while_it_emptied_it(folder, tmp_path, monkeypatch, whole):
    """After any number of files; the folder is that of a whole posterior, or of an interrupted run."""
    for count in range(0, 60, 4):
        path, files = shutil.copytree(folder, tmp_path / str(count)), iter(range(count))
        if not whole:
            (path / "settings.json").unlink()

        def unlink(*place, files=files, unlink=os.unlink, **options):
            if next(files, None) is None:
                raise KeyboardInterrupt
            unlink(*place, **options)

        with monkeypatch.context() as patch:
            patch.setattr(os, "unlink", unlink)
            with pytest.raises(KeyboardInterrupt):
                storage.claim(path)
        assert storage.claim(path).parent == path
        assert not any(path.iterdir())


def test_so_does_one_that_was_stopped_before_it_had_its_group(data, tmp_path, monkeypatch):
    options = {"keep": tmp_path / "draws", "checkpoint": tmp_path / "run", **QUICK}
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            mb.estimate(data.table, data.query, **options)
    assert mb.estimate(data.table, data.query, **options).W12.notnull().all()


@pytest.mark.parametrize("lure", [None, "settings.json"])
def test_a_folder_of_something_else_is_refused_before_anything_runs(data, tmp_path, lure):
    (tmp_path / "chapter.txt").write_text("precious")
    if lure:
        (tmp_path / lure).write_text("{}")
    with pytest.raises(FileExistsError, match="neither empty nor a saved posterior"):
        mb.estimate(data.table, data.query, keep=tmp_path, **QUICK | {"draws": 10**9})
    with pytest.raises(FileExistsError, match="neither empty"):
        mb.estimate(data.table, data.query, keep=tmp_path / "chapter.txt", **QUICK)
    assert (tmp_path / "chapter.txt").read_text() == "precious"


def test_a_refused_run_leaves_an_older_one_alone(data, folder):
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(ValueError, match="chains=0"):
        mb.estimate(data.table, data.query, keep=folder, **QUICK | {"chains": 0})
    assert sorted(path.name for path in folder.iterdir()) == before


# Refusals and bounds ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"keep": None}, "keep=None: known are 'auto', 'draws', 'summary'"),
        ({"keep": ""}, "keep=''"),
        ({"keep": "sumary"}, "did you mean 'summary'"),
        ({"keep": "draw"}, "did you mean 'draws'"),
        ({"keep": "draws", "named": []}, "keep='draws' keeps the draws of all"),
        ({"keep": "summary", "named": [("Q1", "nobody")]}, "not a pair of a query variable"),
        ({"keep": "summary", "named": ["Q1"]}, "not a pair of a query variable"),
    ],
    ids=str,
)
def test_impossible_wishes_are_refused(data, wrong, message):
    with pytest.raises(ValueError, match=message):
        mb.estimate(data.table, data.query, **QUICK, **wrong)


def test_a_path_may_have_a_name_like_a_word(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mb.estimate(data.table, data.query, keep=Path("draws"), **QUICK)
    assert mb.load("draws").settings["keep"]["kept"] == "disk"


@pytest.mark.slow
def test_memory_is_bounded_by_the_data_and_forty_numbers_an_edge_and_chain():
    n, p, q, chains = 260, 7, 20_000, 4
    X = np.random.default_rng(0).standard_normal((n, p + q))
    tracemalloc.start()
    mb.estimate(X, list(range(p)), **QUICK | {"chains": chains, "warmup": 2, "draws": 4}, keep="summary")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * X.nbytes + 320 * p * q * chains
