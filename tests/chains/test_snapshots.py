"""Chains that are stopped anywhere go on bit for bit; a snapshot is whole or not there."""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from markovblanket._files import DamagedError
from markovblanket.chains import run as run_chains
from markovblanket.chains import snapshots
from markovblanket.chains.run import Schedule
from markovblanket.chains.snapshots import Clock, Saver
from markovblanket.chains.stores import KeepDraws, KeepSummary
from markovblanket.chains.zarr_store import KeepOnDisk
from markovblanket.contracts import Problem
from markovblanket.model.copula.latent import Copula
from markovblanket.model.scatter import from_columns
from markovblanket.priors import Horseshoe, Laplace, SpikeSlab
from markovblanket.solvers import Dual

SCHEDULE = Schedule(warmup=6, draws=5, thin=2)


class StopError(Exception):
    """Stands for a machine that stops."""


@pytest.fixture(scope="module")
def table():
    X = np.random.default_rng(0).standard_normal((40, 9))
    X[:, :2] += X[:, 2:4] - X[:, 5:7]
    return X


def continuous(table, prior):
    return Problem(from_columns(table[:, :2], table[:, 2:]), prior, Dual())


def mixed(table, prior):
    """A binary query variable, counts, and gaps."""
    columns = [np.digitize(table[:, 0], [0.0]), *table[:, 1:].T.copy()]
    columns[3] = np.digitize(table[:, 3], [-1, 0, 1]).astype(float)
    columns[4][:5] = columns[1][7] = np.nan
    kinds = ["binary", "continuous", "continuous", "ordinal", *["continuous"] * 5]
    arrays = [np.asarray(column, float) for column in columns]
    known = [
        SimpleNamespace(kind=kind, values=x, complete=not np.isnan(x).any())
        for kind, x in zip(kinds, arrays, strict=True)
    ]
    copula = Copula.of(known, 2)
    return Problem(copula.scatter(copula.start()), prior, Dual(), copula)


PROBLEMS = {
    "Laplace": lambda table: continuous(table, Laplace()),
    "horseshoe": lambda table: continuous(table, Horseshoe()),
    "spike and slab, mixed": lambda table: mixed(table, SpikeSlab()),
    "Laplace, mixed": lambda table: mixed(table, Laplace()),
}
KEEPS = {
    "draws": lambda folder: KeepDraws(SCHEDULE.draws),
    "summary": lambda folder: KeepSummary(SCHEDULE.draws),
    "disk": lambda folder: KeepOnDisk(folder / "draws.zarr", KeepSummary(SCHEDULE.draws)),
}


def same(one, other):
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


def stopped_after(monkeypatch, sweeps):
    """From now on, a sweep too many stops the machine."""
    left = itertools.count(sweeps, -1)
    sweep = run_chains.Blanket.sweep

    def counted(self, rng, state):
        if next(left) <= 0:
            raise StopError
        return sweep(self, rng, state)

    monkeypatch.setattr(run_chains.Blanket, "sweep", counted)


@pytest.mark.parametrize("keep", KEEPS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_run_that_is_stopped_again_and_again_is_the_run_that_was_not(name, keep, table, tmp_path, monkeypatch):
    """Every 5 sweeps the machine stops; every second sweep had a snapshot, the others are done again."""
    if keep == "disk":
        pytest.importorskip("zarr")
    problem = PROBLEMS[name](table)
    whole = run_chains.run(problem, SCHEDULE, chains=2, seed=3, keep=KEEPS[keep](tmp_path / "whole"))
    turns = itertools.count()
    monkeypatch.setattr(Clock, "due", lambda self, now: next(turns) % 2 == 1)
    (tmp_path / "run").mkdir()
    stops, parts = 0, None
    while parts is None and stops < 50:
        with monkeypatch.context() as machine, contextlib.suppress(StopError):
            stops += 1
            stopped_after(machine, 5)
            kept = KEEPS[keep](tmp_path / "parts")
            parts = run_chains.run(problem, SCHEDULE, chains=2, seed=3, keep=kept, saver=Saver(tmp_path / "run"))
    assert stops >= 2 * SCHEDULE.sweeps / 5
    same(whole, parts)
    if keep == "disk":
        import zarr

        one, other = (zarr.open_group(tmp_path / run / "draws.zarr", mode="r") for run in ("whole", "parts"))
        same(*({name: array[:] for name, array in group.arrays()} for group in (one, other)))


def test_a_finished_run_is_read_not_run(table, tmp_path, monkeypatch):
    problem, saver = continuous(table, Laplace()), Saver(tmp_path)
    whole = run_chains.run(problem, SCHEDULE, chains=2, seed=3, saver=saver)
    stopped_after(monkeypatch, 0)
    same(whole, run_chains.run(problem, SCHEDULE, chains=2, seed=3, saver=saver))


def test_more_draws_are_those_of_a_longer_run(table, tmp_path, monkeypatch):
    """And latent columns are those that the longer run keeps."""
    monkeypatch.setattr(run_chains, "LATENT_NUMBERS", 0)
    problem, saver, longer = mixed(table, SpikeSlab()), Saver(tmp_path), Schedule(warmup=6, draws=23, thin=2)
    run_chains.run(problem, SCHEDULE, chains=2, seed=3, saver=saver)
    same(
        run_chains.run(problem, longer, chains=2, seed=3),
        run_chains.run(problem, longer, chains=2, seed=3, saver=saver),
    )


# Files ------------------------------------------------------------------------------------------------


def test_a_snapshot_is_whole_or_the_old_one(tmp_path, monkeypatch):
    path, old = tmp_path / "chain.npz", {"x": np.arange(3.0)}
    snapshots.write(path, old)
    monkeypatch.setattr(os, "fsync", lambda number: (_ for _ in ()).throw(OSError("no space left")))
    with pytest.raises(OSError, match="no space"):
        snapshots.write(path, {"x": np.zeros(9)})
    same(old, snapshots.read(path))
    assert [entry.name for entry in tmp_path.iterdir()] == ["chain.npz"]


def test_what_is_not_there_is_none_and_what_is_damaged_is_told(tmp_path):
    path = tmp_path / "chain.npz"
    assert snapshots.read(path) is None
    snapshots.write(path, {"x": np.arange(300.0)})
    whole = path.read_bytes()
    for cut in (0, 1, 40, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:cut])
        with pytest.raises(DamagedError, match=r"chain\.npz is damaged"):
            snapshots.read(path)
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    path.write_bytes(bytes(flipped))
    with pytest.raises(DamagedError, match="damaged"):
        snapshots.read(path)


def test_nothing_is_unpickled(tmp_path):
    path = tmp_path / "chain.npz"
    np.savez(path, x=np.array([Path("a")], dtype=object))
    with pytest.raises(DamagedError, match="damaged"):
        snapshots.read(path)


@pytest.mark.parametrize("text", [b"", b"{}", b'{"bit_generator": "MT19937"}', b"\xff", b"[1]"])
def test_the_state_of_a_generator_that_is_none_is_refused(text):
    with pytest.raises(DamagedError, match="generator"):
        snapshots.to_generator(np.frombuffer(text, np.uint8))


def test_snapshots_take_a_twentieth_of_the_time_at_most():
    clock = Clock(every=10.0, last=0.0)
    assert [clock.due(t) for t in (9.9, 10.0)] == [False, True]
    clock.wrote(10.0, 12.0)
    assert [clock.due(t) for t in (22.0, 51.9, 52.0)] == [False, False, True]
