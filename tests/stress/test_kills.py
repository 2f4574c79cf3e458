"""Kills in every stage and keep mode, at every kind of file event, of single workers; and power cuts.

Each ends with the numbers of a run that nothing happened to, bit for bit, or with a sentence.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import sys
import threading
import time
import warnings
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import markovblanket as mb
from markovblanket.chains import snapshots, zarr_store
from markovblanket.cli import _fit, _output_folder, main
from markovblanket.fitting import run_folder
from markovblanket.model.network_sweep import WidenedBlanket
from markovblanket.model.sweep import Blanket
from support.file_events import cut_power, ended, killed

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="open files are found in /proc")
SCHEDULE = {"chains": 2, "warmup": 25, "draws": 20, "seed": 3, "candidates": 3, "progress": False}
MADE = mb.simulate(rows=40, query=2, rest=7, kinds="mixed", missing=0.05, seed=2)
KEEPS = ("draws", "summary", "disk")
RESUME = ["resume", "run", "--jobs", "1", "--quiet"]


@pytest.fixture(autouse=True)
def often(monkeypatch, tmp_path):
    """Snapshots as often as may be, small blocks of draws, and results without pictures."""
    monkeypatch.setattr(run_folder, "SECONDS_BETWEEN_SNAPSHOTS", 0.0)
    monkeypatch.setattr(snapshots, "LEAST_INTERVAL_PER_SECOND_SPENT", 0.0)
    monkeypatch.setattr(zarr_store, "BLOCK", 2 * 7 * 6)
    monkeypatch.setattr(_output_folder, "possible", lambda file: False)
    monkeypatch.chdir(tmp_path)


@contextmanager
def told(capsys):
    """What prints a figure below the name of the test."""
    with capsys.disabled():
        yield lambda text: sys.stdout.write(f"\n{text}\n")


def kept(keep, run):
    return {"keep": run / "kept" if keep == "disk" else keep}


def fitted(run=None, keep="draws", **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.ConvergenceWarning)
        place = {} if run is None else {"checkpoint": run}
        return mb.estimate(MADE.table, MADE.query, **SCHEDULE | place | kept(keep, run) | options)


def resumed(run):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.ConvergenceWarning)
        return mb.resume(run, progress=False)


def numbers(posterior):
    """All arrays of a posterior, by name."""
    return {
        f"{group}.{name}": array.to_numpy()
        for group, arrays in posterior.datasets().items()
        for name, array in arrays.variables.items()
    }


def same(one, other):
    first, second = numbers(one), numbers(other)
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name], err_msg=name)


def child_killed(work):
    """Do ``work`` in a forked process; whether it was killed."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(ended(child))


def in_sweep(number, work):
    """Do ``work`` in a process that kills itself in the sweep of that number, of whichever sampler."""
    sweeps = itertools.count(1)
    for sampler in (Blanket, WidenedBlanket):

        def killing(self, rng, state, sweep=sampler.sweep):
            if next(sweeps) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return sweep(self, rng, state)

        sampler.sweep = killing
    work()


def stages(keep, kills, tmp_path):
    """Kill a run in sweeps that are evenly spaced over all stages of both chains; the phases that were reached."""
    whole = fitted(tmp_path / "whole", keep)
    total, phases = 2 * (25 + 25 + 20), set()
    for number in np.linspace(2, total, kills).astype(int):
        run = tmp_path / f"run-{number}"
        assert child_killed(partial(in_sweep, number, partial(fitted, run, keep)))
        phases |= set(mb.status(run).chains["phase"])
        same(whole, resumed(run))
        same(whole, mb.load(run))
        shutil.rmtree(run)
    return phases


@pytest.mark.slow
@pytest.mark.parametrize("keep", KEEPS)
def test_ten_kills_spread_over_all_stages(keep, tmp_path, capsys):
    phases = stages(keep, 10, tmp_path)
    assert phases >= {"scouting", "warmup", "sampling"}
    with told(capsys) as tell:
        tell(f"10 kills with keep={keep}, in {', '.join(sorted(phases))}: 10 resumed bit for bit")


# The final writing ----------------------------------------------------------------------------------------


@pytest.fixture
def sampled(tmp_path, often):
    """The folder of a run of the command line whose chains are done and whose results are not written."""
    MADE.table.to_csv("table.csv", index=False)
    fit = ["fit", "table.csv", "-q", ",".join(MADE.query), "--chains", "2", "--warmup", "25", "--draws", "20"]
    fit += ["--seed", "3", "--candidates", "3", "--jobs", "1", "--quiet", "--keep", "disk"]
    assert main([*fit, "--out", "whole"]) == 0
    assert child_killed(partial(at_the_end, [*fit, "--out", "run"]))
    shutil.copytree("run", "sampled")
    return tmp_path


def at_the_end(command):
    """Run a command that is killed when its draws on disk are to be completed."""
    from markovblanket.posterior import storage

    storage.complete = lambda *given: os.kill(os.getpid(), signal.SIGKILL)
    main(command)


def anew():
    for folder in (Path("run"), *Path().glob(".run-*")):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree("sampled", "run")


def final_events(kills, folder):
    """Kill a run at events of its final writing, and resume it by name, whether or not it has its place."""
    work, record = partial(main, RESUME), folder.with_name(f"{folder.name}-record")
    events = killed(work, folder, np.inf, record)
    absent, whole = 0, mb.load("whole/posterior")
    for number in np.unique(np.linspace(1, events, kills).astype(int)):
        anew()
        killed(work, folder, int(number), record)
        absent += not Path("run").exists()
        assert main(RESUME) == 0, number
        same(whole, mb.load("run/posterior"))
        same(whole, mb.load("run/checkpoint"))
        assert Path("run/edges.csv").read_bytes() == Path("whole/edges.csv").read_bytes()
    return events, absent


@pytest.mark.slow
def test_twenty_kills_at_file_events_of_the_final_writing(sampled, capsys):
    anew()
    events, absent = final_events(20, sampled)
    with told(capsys) as tell:
        tell(
            f"20 kills at {events} file events of the final writing: 20 resumed bit for bit; "
            f"{absent} of them without a folder"
        )


def test_a_kill_between_the_two_renames_leaves_a_folder_that_resume_finds(sampled, monkeypatch):
    """And load says where its folder is."""
    anew()
    rename = Path.rename

    def stopped(source, target):
        if source.name == "new":
            os.kill(os.getpid(), signal.SIGKILL)
        return rename(source, target)

    def work():
        Path.rename = stopped
        main(RESUME)

    assert child_killed(work)
    assert not Path("run").exists()
    with pytest.raises(FileNotFoundError, match=r"was being replaced when its process was killed: it is in .*old"):
        mb.load("run")
    assert main(RESUME) == 0
    same(mb.load("whole/posterior"), mb.load("run/posterior"))
    assert not list(Path().glob(".run-*"))


def test_a_kill_while_a_run_is_begun_anew_leaves_the_one_before(sampled, monkeypatch):
    anew()
    command = ["fit", "table.csv", "-q", "Q1", "--out", "run", "--force", "--quiet"]

    def work():
        _fit.write_json = lambda *given: os.kill(os.getpid(), signal.SIGKILL)
        main(command)

    assert child_killed(work)
    assert main(RESUME) == 0
    same(mb.load("whole/posterior"), mb.load("run/posterior"))


# Single workers -------------------------------------------------------------------------------------------


def workers():
    """The processes of joblib's pool."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words, parent = (
                (path / "cmdline").read_bytes(),
                (path / "stat").read_text().rpartition(")")[2].split()[1],
            )
        except OSError:
            continue
        if int(parent) == os.getpid() and b"popen_loky" in words:
            found.append(int(path.name))
    return found


@pytest.mark.slow
def test_ten_kills_of_single_workers(tmp_path, monkeypatch, capsys):
    """Each at another moment; the pool is made again, or the run resumed."""
    options = {"n_jobs": 2, "warmup": 200, "draws": 400}
    whole, rng, kills, again = fitted(warmup=200, draws=400), np.random.default_rng(5), [], 0
    done = threading.Event()

    def killer():
        while len(kills) < 10 and not done.is_set():
            time.sleep(rng.uniform(0.2, 0.8))
            if here := [pid for pid in workers() if list(tmp_path.glob("run*/*.npz"))]:
                os.kill(here[int(rng.integers(len(here)))], signal.SIGKILL)
                kills.append(here)

    thread = threading.Thread(target=killer)
    thread.start()
    try:
        while len(kills) < 10:
            try:
                found = fitted(tmp_path / f"run-{again}", **options)
            except BrokenExecutor:
                continue
            same(whole, found)
            again += 1
    finally:
        done.set()
        thread.join()
    with told(capsys) as tell:
        tell(f"{len(kills)} kills of single workers in {again} runs: all ended bit for bit")


# Power cuts -----------------------------------------------------------------------------------------------


def power_cuts(count, tmp_path, keep="disk"):
    """Cut the power at random file events of a run, and see what resume makes of what is left."""
    whole, rng, seen = fitted(tmp_path / "whole", keep), np.random.default_rng(6), []
    run, record = tmp_path / "run", tmp_path.with_name(f"{tmp_path.name}-record")
    events = killed(partial(fitted, run, keep), run, np.inf, record)
    for number in np.linspace(events // 4, events, count).astype(int):
        shutil.rmtree(run, ignore_errors=True)
        while killed(partial(fitted, run, keep), run, int(number), record):  # not all runs have as many events
            shutil.rmtree(run)
            number -= 10
        changed = cut_power(record, rng)
        found = answered(run)
        if isinstance(found, mb.Posterior):
            same(whole, found)
        else:
            assert "\n" not in found
        seen.append((isinstance(found, mb.Posterior), changed))
    return seen


def answered(run):
    """The posterior of a run that is resumed, or the sentence that refuses it."""
    try:
        return resumed(run)
    except (ValueError, FileNotFoundError) as error:
        return str(error)


@pytest.mark.slow
def test_twenty_power_cuts(tmp_path, capsys):
    seen = power_cuts(14, tmp_path / "disk") + power_cuts(6, tmp_path / "draws", "draws")
    resumes, changed = sum(whole for whole, _ in seen), [number for _, number in seen]
    assert sum(changed) > 20
    assert resumes > 10
    with told(capsys) as tell:
        tell(
            f"{len(seen)} power cuts, {sum(changed)} files changed by them: {resumes} resumed bit for bit, "
            f"{len(seen) - resumes} refused with a sentence"
        )


def test_blocks_of_draws_are_on_disk_before_a_snapshot_that_counts_on_them(tmp_path):
    """And the names of all files of a run, when the next one is begun."""
    record, run = tmp_path / "record", tmp_path / "run"
    work = partial(fitted, run, "disk")
    events = killed(work, run, np.inf, record)
    shutil.rmtree(run)
    assert killed(work, run, events // 5, record) == 0

    found = json.loads((record / "record.json").read_text())
    assert not [name for name in found["unflushed"] if not name.endswith((".part", "/lock"))]
    assert len(found["unnamed"]) <= 1
