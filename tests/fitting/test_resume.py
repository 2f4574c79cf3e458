"""Runs that are killed, cut off or out of space go on bit for bit; runs of others are refused."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from functools import partial
from importlib import import_module
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

import markovblanket as mb
from markovblanket._files import DamagedError, locked
from markovblanket.chains import run as run_chains
from markovblanket.chains import snapshots, zarr_store
from markovblanket.chains.snapshots import Saver
from markovblanket.fitting import run_folder
from markovblanket.fitting.run_folder import RunFolder
from markovblanket.model.network_sweep import WidenedBlanket
from markovblanket.model.sweep import Blanket

SCHEDULE = {"chains": 2, "warmup": 60, "draws": 40, "thin": 2}
DATA = {
    "continuous": mb.simulate(rows=60, query=2, rest=8, seed=1),
    "mixed": mb.simulate(rows=60, query=3, rest=9, kinds="mixed", missing=0.1, seed=2),
}
SMALL = DATA["continuous"]


def fitted(kind="continuous", **options):
    options = {**SCHEDULE, "seed": 3, "progress": False, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.ConvergenceWarning)
        return mb.estimate(DATA[kind].table, DATA[kind].query, **options)


def resumed(folder, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.ConvergenceWarning)
        return mb.resume(folder, progress=False, **options)


def loaded(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.ConvergenceWarning)
        return mb.load(folder)


def same(one, other):
    """Every array of both posteriors, the latent columns and the statistics included."""
    first, second = one.datasets(), other.datasets()
    assert first.keys() == second.keys()
    for name, group in first.items():
        assert group.identical(second[name].assign_attrs(group.attrs)), name


def in_a_child(work):
    """A process of its own, which can be killed."""
    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    return child


# Killed -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "keep", "options"),
    [
        ("continuous", "draws", {"prior": "laplace"}),
        ("mixed", "draws", {}),
        ("mixed", "summary", {}),
        ("continuous", "draws", {"candidates": 3}),
        ("mixed", "summary", {"candidates": 3}),
    ],
)
def test_a_run_killed_at_random_moments_is_the_run_that_was_not(kind, keep, options, tmp_path, monkeypatch):
    """At least seven kills each, in every phase, of a real process that takes snapshots half of the time."""
    monkeypatch.setattr(run_folder, "SECONDS_BETWEEN_SNAPSHOTS", 0.0)
    monkeypatch.setattr(snapshots, "LEAST_INTERVAL_PER_SECOND_SPENT", 1.0)
    wanted = {"warmup", "sampling"} | ({"scouting"} if "candidates" in options else set())
    options = {"keep": keep, "warmup": 300, "draws": 150, **options}
    whole, folder = fitted(kind, **options), tmp_path / "run"
    rng, phases, kills = np.random.default_rng(4), set(), 0
    while kills < 7 or not wanted <= phases or RunFolder(Path(folder)).plan() is None:
        child = in_a_child(partial(fitted, kind, checkpoint=folder, **options))
        child.join(rng.uniform(0.05, 0.4))
        if child.is_alive():
            os.kill(child.pid, signal.SIGKILL)
            child.join()
            kills += 1
            phases |= set(mb.status(folder).chains["phase"]) if RunFolder(Path(folder)).plan() else set()
        else:  # it got through: once more from the start
            same(whole, resumed(folder))
            folder = tmp_path / f"run-{kills}"
    for again in (resumed(folder), loaded(folder), fitted(kind, checkpoint=folder, **options)):
        same(whole, again)


# The sampler in whose n-th sweep a process kills itself | n | then, by chain: the phase and the sweeps done
STAGES = [
    (Blanket, 31, [("scouting", 30), ("waiting", 0)]),
    (Blanket, 51, [("scouting", 60), ("scouting", 20)]),
    (WidenedBlanket, 26, [("warmup", 85), ("scouting", 60)]),
    (WidenedBlanket, 51, [("warmup", 120), ("warmup", 75)]),
    (WidenedBlanket, 66, [("sampling", 140), ("warmup", 120)]),
    (WidenedBlanket, 91, [("sampling", 200), ("sampling", 150)]),
]


@pytest.mark.parametrize("keep", ["draws", "summary", "path"])
@pytest.mark.parametrize("kind", DATA)
def test_a_run_killed_in_every_stage_is_the_run_that_was_not(kind, keep, tmp_path, monkeypatch):
    """In every chain while scouting, warming up and sampling: six kills, and the numbers of a run without any."""
    monkeypatch.setattr(run_folder, "SECONDS_BETWEEN_SNAPSHOTS", 0.0)
    monkeypatch.setattr(snapshots, "LEAST_INTERVAL_PER_SECOND_SPENT", 0.0)
    whole = fitted(kind, keep=tmp_path / "whole" if keep == "path" else keep, candidates=3)
    options = {"keep": tmp_path / "run" / "draws" if keep == "path" else keep, "candidates": 3}
    run, begin = tmp_path / "run", partial(fitted, kind, checkpoint=tmp_path / "run", **options)
    for number, (sampler, sweeps, reached) in enumerate(STAGES):
        child = in_a_child(
            partial(killed_in_sweep, sampler, sweeps, partial(resumed, run) if number % 2 else begin)
        )
        child.join()
        assert child.exitcode == -signal.SIGKILL
        chains = mb.status(run).chains
        assert list(zip(chains["phase"], chains["sweeps"], strict=True)) == reached
    for again in (resumed(run), loaded(run), begin(), *([mb.load(run / "draws")] if keep == "path" else [])):
        same(whole, again)
        assert again.settings["candidates"] == whole.settings["candidates"]
    assert 1 <= len(whole.settings["candidates"]["chosen"]) <= 3
    assert mb.status(run).finished


def killed_in_sweep(sampler, number, work):
    """The process is gone before its sweep of that number is done."""
    sweeps, sweep = itertools.count(1), sampler.sweep

    def killing(self, rng, state):
        if next(sweeps) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return sweep(self, rng, state)

    sampler.sweep = killing
    work()


def test_a_scouting_run_says_so(tmp_path):
    """And what it is to do includes the iterations of scouting."""
    work = partial(fitted, checkpoint=tmp_path / "run", candidates=3)
    child = in_a_child(partial(killed_in_sweep, WidenedBlanket, 1, work))
    child.join()
    seen = mb.status(tmp_path / "run")
    assert seen.chains["phase"].tolist() == ["scouting"] * 2
    assert (seen.sweeps, seen.draws) == (60 + 60 + 80, 40)
    assert seen.sentence == "stopped, 30% of all iterations done, 0 draws in every chain"
    with pytest.raises(ValueError, match="cannot be read yet: stopped, 30% of all iterations done, 0 draws"):
        mb.load(tmp_path / "run")


def test_candidates_that_differ_are_refused(tmp_path):
    fitted(checkpoint=tmp_path / "run", candidates=3)
    with pytest.raises(
        ValueError, match=r"has the checkpoint of another run: candidates\.asked is 3 there, 4 here"
    ):
        fitted(checkpoint=tmp_path / "run", candidates=4)


def test_nor_does_it_matter_how_the_chains_are_spread(tmp_path):
    whole = fitted("mixed")
    same(whole, fitted("mixed", checkpoint=tmp_path / "run", n_jobs=2))
    same(whole, resumed(tmp_path / "run", n_jobs=2))


ORPHANS = """
import sys
import markovblanket as mb
from markovblanket.fitting import run_folder
run_folder.SECONDS_BETWEEN_SNAPSHOTS = 0.0
made = mb.simulate(rows=60, query=2, rest=8, seed=1)
options = {"chains": 2, "warmup": 60, "draws": 10**5, "thin": 2, "seed": 3, "keep": "summary", "n_jobs": 2}
mb.estimate(made.table, made.query, checkpoint=sys.argv[1], progress=False, **options)
"""


def test_chains_of_a_run_that_was_killed_end_with_it(tmp_path):
    """They are in processes of their own, and would write beside whoever takes up the run."""
    run = tmp_path / "run"
    with subprocess.Popen([sys.executable, "-c", ORPHANS, str(run)]) as process:
        until = time.monotonic() + 120
        while len(list(run.glob("*.sampling.npz"))) < 2 and time.monotonic() < until:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    time.sleep(3)
    written = [path.stat().st_mtime_ns for path in run.glob("*.npz")]
    time.sleep(1)
    assert written == [path.stat().st_mtime_ns for path in run.glob("*.npz")]
    assert not mb.status(run).running


def test_a_chain_ends_if_another_process_has_taken_up_its_run(tmp_path):
    with locked(tmp_path) as owner:
        saver, other = Saver(tmp_path, owner=owner), Saver(tmp_path, owner=f"{owner}0")
        snapshots.saving(saver, 0, "warmup")(lambda: {"count": np.array(1)}, now=True)
        with pytest.raises(RuntimeError, match="has ended, and so do its chains"):
            snapshots.saving(other, 0, "warmup")(lambda: {"count": np.array(2)}, now=True)
    assert snapshots.read(saver.path(0, "warmup"))["count"] == 1


def test_what_a_killed_process_was_writing_is_removed(tmp_path):
    fitted(checkpoint=tmp_path)
    half = tmp_path / "chain-0.sampling.npz.0a1b2c3d.part"
    half.write_bytes(b"half")
    same(fitted(), resumed(tmp_path))
    assert not half.exists()


def test_an_interrupted_run_says_how_far_it_is_and_goes_on(tmp_path, monkeypatch):
    """Ctrl-C is acted on between two sweeps, and the chain of that moment is kept."""
    folder, sweeps, sweep = tmp_path / "run", itertools.count(1), WidenedBlanket.sweep

    def interrupted(self, rng, state):
        if next(sweeps) == 130:
            os.kill(os.getpid(), signal.SIGINT)
        return sweep(self, rng, state)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores Ctrl-C
    monkeypatch.setattr(WidenedBlanket, "sweep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fitted(checkpoint=folder)
    signal.signal(signal.SIGINT, before)
    monkeypatch.undo()
    seen = mb.status(folder)
    assert seen.chains["sweeps"].tolist() == [60 + 10, 60]
    assert (seen.running, seen.finished) == (False, False)
    same(fitted(), resumed(folder))


# Out of space -----------------------------------------------------------------------------------------


def test_a_full_disk_costs_nothing_that_was_there(tmp_path, monkeypatch):
    """A file system of 400 kilobytes, if one may be mounted here, else a limit on the size of files."""
    monkeypatch.setattr(run_folder, "SECONDS_BETWEEN_SNAPSHOTS", 0.0)
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(disk)], capture_output=True)
    try:
        child = in_a_child(partial(out_of_space, disk / "run", limited=mounted.returncode != 0))
        child.join()
        assert child.exitcode == 0
        assert not list((disk / "run").glob("*.part"))
        assert 0 < mb.status(disk / "run").chains["sweeps"].sum() < 2 * (60 + 4000)
        if mounted.returncode == 0:
            subprocess.run(["mount", "-o", "remount,size=40m", str(disk)], check=True)
        same(fitted(draws=2000), resumed(disk / "run"))
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", str(disk)], check=True)


def out_of_space(folder, limited):
    """Ends well if the run does not, for want of space."""
    if limited:
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
    try:
        fitted(draws=2000, checkpoint=folder)
    except OSError:
        os._exit(0)
    os._exit(1)


# Growing and looking ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", DATA)
def test_a_finished_run_grows(kind, tmp_path):
    fitted(kind, checkpoint=tmp_path / "run")
    same(fitted(kind, draws=70), resumed(tmp_path / "run", draws=70))
    assert mb.status(tmp_path / "run").draws == 70


@pytest.mark.parametrize("kind", DATA)
def test_a_run_under_way_can_be_read_as_far_as_it_is(kind, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    short = fitted(kind, draws=25, checkpoint=folder)
    RunFolder(Path(folder))._write_plan(
        RunFolder(Path(folder)).plan() | {"draws": 40}
    )  # as if 15 draws were still to come
    partial = mb.load(folder)
    assert partial.settings["draws"] == 25
    np.testing.assert_array_equal(partial.W12, short.W12)
    assert partial.edges(all=True).equals(short.edges(all=True))
    seen = mb.status(folder)
    assert seen.chains["draws"].tolist() == [25, 25]
    assert "stopped, 79% of all iterations done, 25 draws in every chain; worst R-hat so far" in seen.sentence
    assert seen.rhat > 0.9


@pytest.mark.parametrize("grown", [0, 1])
def test_so_can_one_that_grows_and_keeps_fewer_latent_columns(grown, tmp_path, monkeypatch):
    """Whether no chain has gone on yet, or one has: columns are those of the draws under whose numbers they go."""
    monkeypatch.setattr(run_chains, "LATENT_NUMBERS", 20 * 60 * 12)
    run, short, longer = tmp_path / "run", fitted("mixed"), fitted("mixed", draws=160)
    fitted("mixed", checkpoint=run)
    before = {k: (run / f"chain-{k}.sampling.npz").read_bytes() for k in range(grown, 2)}
    resumed(run, draws=160)
    for k, snapshot in before.items():
        (run / f"chain-{k}.sampling.npz").write_bytes(snapshot)
    seen, known = (posterior.observed.to_datasets()["latent"] for posterior in (loaded(run), longer))
    assert short.observed.to_datasets()["latent"].sizes["draw"] == 20
    assert seen["draw"].values.tolist() == [7, 15, 23, 31, 39]
    np.testing.assert_array_equal(seen["latent"], known["latent"].sel(draw=seen["draw"]))


def test_what_cannot_be_read_yet_says_how_far_it_is(tmp_path):
    folder = tmp_path / "run"
    same(fitted(checkpoint=folder, keep="summary"), resumed(folder))
    (folder / "chain-1.sampling.npz").unlink()
    with pytest.raises(ValueError, match="cannot be read yet: stopped, 71% of all iterations done, 0 draws"):
        mb.load(folder)
    for file in folder.glob("chain-*.npz"):
        file.unlink()
    with pytest.raises(ValueError, match="stopped, 0% of all iterations done, 0 draws"):
        mb.load(folder)


def test_a_saved_posterior_is_read_as_before(tmp_path):
    posterior = fitted()
    posterior.save(tmp_path / "saved")
    same(posterior, mb.load(tmp_path / "saved"))


@pytest.mark.parametrize("margins", ["gaussian", "rank"])
def test_the_folder_alone_is_enough(margins, tmp_path):
    options = {"margins": margins, "prior": mb.Horseshoe(edges=3), "named": [("Q1", "V3")], "keep": "summary"}
    whole = fitted(checkpoint=tmp_path / "run", **options)
    same(whole, resumed(tmp_path / "run"))
    assert "Q1~V3" in whole.draws["edge"]


def test_so_it_is_for_a_scatter_matrix(tmp_path):
    X = SMALL.table.to_numpy()
    asked = {"scatter": X.T @ X, "n": len(X), "query": ["Q2"], "names": list(SMALL.table), "solver": "dense"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.ConvergenceWarning)
        whole = mb.estimate(**asked, **SCHEDULE, seed=1, progress=False, checkpoint=tmp_path / "run")
    same(whole, resumed(tmp_path / "run"))


def test_a_scatter_matrix_of_a_run_that_never_was_is_forgotten(tmp_path):
    """One that was stopped before it had a plan; another one begins in its folder."""
    (tmp_path / "run").mkdir()
    snapshots.write(RunFolder(tmp_path / "run").matrix, {"matrix": np.eye(3)})
    same(fitted(checkpoint=tmp_path / "run"), resumed(tmp_path / "run"))


def test_without_a_seed_the_run_keeps_its_own(tmp_path):
    first = fitted(seed=None, checkpoint=tmp_path / "run")
    same(first, fitted(seed=None, checkpoint=tmp_path / "run"))
    assert not np.array_equal(first.W12, fitted(seed=None).W12)


# Refused ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints") / "run"
    fitted(checkpoint=folder)
    return folder


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"kind": "mixed"}, "its data differ"),
        ({"seed": 4}, "seed is '3' there, '4' here"),
        ({"prior": "laplace"}, "prior.name is 'SpikeSlab' there, 'Laplace' here"),
        ({"warmup": 61}, "warmup is 60 there, 61 here"),
        ({"draws": 39}, "draws is 40 there, 39 here"),
        ({"chains": 3}, "chains is 2 there, 3 here"),
        ({"margins": "gaussian"}, "margins is 'auto' there, 'gaussian' here"),
        ({"keep": "summary"}, "keep.kept is 'draws' there, 'summary' here"),
    ],
)
def test_another_run_is_refused_and_the_difference_named(run, changed, message):
    before = sorted((entry.name, entry.stat().st_mtime_ns) for entry in run.iterdir() if entry.name != "lock")
    with pytest.raises(ValueError, match=message):
        fitted(checkpoint=run, **changed)
    assert before == sorted((e.name, e.stat().st_mtime_ns) for e in run.iterdir() if e.name != "lock")


def test_so_are_the_same_numbers_under_other_names(run):
    table = SMALL.table.rename(columns={"V1": "V9"})
    with pytest.raises(ValueError, match="variables is"), warnings.catch_warnings():
        mb.estimate(table, SMALL.query, **SCHEDULE, seed=3, progress=False, checkpoint=run)


def test_another_version_is_refused(run, monkeypatch):
    plan = (run / "plan.json").read_text()
    old = RunFolder(Path(run)).plan()
    old["versions"]["markovblanket"] = "0.0.1"
    RunFolder(Path(run))._write_plan(old)
    with pytest.raises(ValueError, match=r"versions\.markovblanket is '0\.0\.1' there"):
        fitted(checkpoint=run)
    (run / "plan.json").write_text(json.dumps({**old, "format": 99}))
    with pytest.raises(ValueError, match="another version of markovblanket"):
        fitted(checkpoint=run)
    (run / "plan.json").write_text(plan)


@pytest.mark.parametrize("more", [80, 131])
def test_a_summary_grows_to_what_a_longer_run_has(tmp_path, more):
    """All but batches: theirs is the length of the first run."""
    fitted(checkpoint=tmp_path / "run", keep="summary")
    grown, knew = resumed(tmp_path / "run", draws=more), fitted(keep="summary", draws=more)
    for name, statistic in knew.streams.data_vars.items():
        if "batch" not in name and name != "first":
            np.testing.assert_allclose(grown.streams[name].values, statistic.values, rtol=1e-12, atol=1e-12)
    for name, array in knew.draws.data_vars.items():
        np.testing.assert_array_equal(grown.draws[name].values, array.values)
    one, other = grown.edges(all=True), knew.edges(all=True)
    pd.testing.assert_frame_equal(one.drop(columns="ess"), other.drop(columns="ess"), rtol=1e-9)
    assert 0.5 < np.nanmedian(one["ess"] / other["ess"]) < 2
    again = resumed(tmp_path / "run", draws=3 * more)
    assert int(again.streams["first"]) == int(grown.streams["first"]) == 40
    assert again.draws.sizes["draw"] == 3 * more


def test_a_summary_cannot_be_divided_anew(tmp_path):
    fitted(checkpoint=tmp_path / "run", keep="summary")
    with pytest.raises(ValueError, match="can only grow to at least twice its draws, here 80, and at most 65535"):
        resumed(tmp_path / "run", draws=79)


def test_draws_on_disk_grow(tmp_path, monkeypatch):
    """Twice, and from a block that was not full; all as a longer run has it, in memory and read back."""
    monkeypatch.setattr(zarr_store, "BLOCK", 7 * 2 * 8)
    run, folder = tmp_path / "run", tmp_path / "draws"
    assert fitted(checkpoint=run, keep=folder).draws["W12"].encoding["chunks"][1] == 7
    for more in (80, 163):
        grown, knew = resumed(run, draws=more, keep=folder), fitted(draws=more, keep=tmp_path / f"longer-{more}")
        for posterior in (grown, mb.load(folder)):
            for name, array in knew.draws.variables.items():
                np.testing.assert_array_equal(posterior.draws[name].values, array.values)
            one, other = (made.edges(all=True)["partial_correlation"] for made in (posterior, knew))
            np.testing.assert_allclose(one, other)
            assert posterior.settings["draws"] == more


def test_a_posterior_whose_draws_have_grown_since_is_saved_as_it_was(tmp_path):
    run, whole = tmp_path / "run", fitted(keep=tmp_path / "short")
    short = fitted(checkpoint=run, keep=tmp_path / "draws")
    resumed(run, draws=80, keep=tmp_path / "draws")
    short.save(tmp_path / "saved")
    same(whole, mb.load(tmp_path / "saved"))


@pytest.mark.parametrize(
    "place", ["markovblanket.chains.zarr_store._grow", "markovblanket.chains.zarr_store.DiskStore.append"]
)
def test_draws_on_disk_that_stop_while_they_grow_go_on(tmp_path, monkeypatch, place):
    """Until it has grown, no posterior is in the folder that says it were whole."""
    run, folder = tmp_path / "run", tmp_path / "draws"
    fitted(checkpoint=run, keep=folder)
    with monkeypatch.context() as patch:
        patch.setattr(place, Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            resumed(run, draws=80, keep=folder)
    with pytest.raises(FileNotFoundError, match=r"it has no settings\.json"):
        mb.load(folder)
    assert mb.status(run).chains["draws"].tolist() == [40, 40]
    grown, whole = resumed(run, draws=80, keep=folder), fitted(draws=80)
    np.testing.assert_array_equal(grown.draws["W11"], whole.draws["W11"])
    np.testing.assert_array_equal(grown.W12.values, whole.W12.values.astype(np.float32))


def test_draws_on_disk_are_found_from_anywhere_and_move_with_their_run(tmp_path, monkeypatch):
    """By a name that was given from a folder above; inside the run, by their place there."""
    whole = fitted(draws=80)
    for place in (tmp_path / "a", tmp_path / "elsewhere"):
        place.mkdir()
    monkeypatch.chdir(tmp_path)
    fitted(checkpoint="a/run", keep=Path("a/draws"))
    fitted(checkpoint="a/other", keep="a/other/draws")
    monkeypatch.chdir("elsewhere")
    np.testing.assert_array_equal(loaded("../a/draws").W12, whole.W12[:, :40].astype(np.float32))
    np.testing.assert_array_equal(
        resumed("../a/run", draws=80, keep="../a/draws").W12, whole.W12.astype(np.float32)
    )
    (tmp_path / "a" / "other").rename("moved")
    np.testing.assert_array_equal(resumed("moved", draws=80).W12, whole.W12.astype(np.float32))
    assert mb.load("moved/draws").settings["draws"] == 80
    assert [path.name for path in Path().iterdir()] == ["moved"]


@pytest.mark.parametrize("draws", [None, 80])
def test_draws_on_disk_that_are_gone_are_told(tmp_path, monkeypatch, draws):
    monkeypatch.setattr(zarr_store, "BLOCK", 7 * 2 * 8)
    fitted(checkpoint=tmp_path / "run", keep=tmp_path / "draws")
    (tmp_path / "draws" / "draws.zarr" / "explained" / "1.3.0").unlink()
    with pytest.raises(DamagedError, match=r"explained/1\.3\.0 is damaged: it is not there"):
        resumed(tmp_path / "run", draws=draws, keep=tmp_path / "draws")
    (tmp_path / "draws").rename(tmp_path / "gone")
    with pytest.raises(
        DamagedError, match=r"draws\.zarr is not there, but the draws of this run were; put it back"
    ):
        resumed(tmp_path / "run", draws=draws, keep=tmp_path / "draws")
    assert not (tmp_path / "draws").exists()


def test_draws_on_disk_have_statistics_that_cannot_be_divided_anew(tmp_path):
    fitted(checkpoint=tmp_path / "run", keep=tmp_path / "draws")
    with pytest.raises(
        ValueError, match=r"on disk, with a summary, can only grow to at least twice its draws, here 80"
    ):
        resumed(tmp_path / "run", draws=79, keep=tmp_path / "draws")


def test_a_folder_in_use_is_refused(run):
    with locked(run):
        assert mb.status(run).running
        with pytest.raises(RuntimeError, match=f"in use by a run that has not ended \\(process {os.getpid()} on "):
            fitted(checkpoint=run)
    assert not mb.status(run).running


def test_so_is_one_whose_run_is_between_rounds(tmp_path, monkeypatch):
    """Whoever came in between would write beside it."""

    def meanwhile(*_):
        with pytest.raises(RuntimeError, match="in use by a run that has not ended"):
            resumed(tmp_path)
        raise KeyboardInterrupt

    monkeypatch.setattr(import_module("markovblanket.fitting.estimate"), "FIRST_DRAWS", 10)
    monkeypatch.setattr("markovblanket.fitting.task.Task._may_double", meanwhile)
    with pytest.raises(KeyboardInterrupt):
        fitted(checkpoint=tmp_path, draws="auto", budget=200)


def test_folders_of_others_are_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("...")
    with pytest.raises(FileExistsError, match="has no checkpoint"):
        fitted(checkpoint=tmp_path)
    with pytest.raises(FileExistsError, match="has no checkpoint"):
        fitted(checkpoint=tmp_path / "thesis.tex")
    for look in (mb.resume, mb.status):
        with pytest.raises(FileNotFoundError, match="has no checkpoint"):
            look(tmp_path)


def test_damage_is_told(tmp_path):
    folder = tmp_path / "run"
    fitted(checkpoint=folder)
    whole = (folder / "chain-0.sampling.npz").read_bytes()
    (folder / "chain-0.sampling.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"chain-0\.sampling\.npz is damaged"):
        resumed(folder)
    (folder / "plan.json").write_text("{")
    with pytest.raises(ValueError, match=r"plan\.json is damaged"):
        resumed(folder)
