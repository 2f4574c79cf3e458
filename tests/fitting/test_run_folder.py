"""A snapshot is used by its own run, chain and phase alone, and folders of other versions are refused."""

from __future__ import annotations

import json
import shutil

import pytest

import markovblanket as mb
from markovblanket._files import DamagedError

pytestmark = pytest.mark.filterwarnings("ignore::markovblanket.ConvergenceWarning")
SHORT = {"chains": 2, "warmup": 20, "draws": 20, "progress": False}


@pytest.fixture
def runs(tmp_path):
    """Two runs that differ in their seed alone."""
    made = mb.simulate(rows=30, query=1, rest=4, seed=1)
    for seed in (1, 2):
        mb.estimate(made.table, made.query, seed=seed, checkpoint=tmp_path / str(seed), **SHORT)
    return tmp_path / "1", tmp_path / "2"


@pytest.mark.parametrize("read", [mb.load, mb.status, lambda run: mb.resume(run, draws=40, progress=False)])
@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("2/chain-0.sampling.npz", "1/chain-0.sampling.npz"),
        ("1/chain-1.sampling.npz", "1/chain-0.sampling.npz"),
        ("1/chain-0.warmup.npz", "1/chain-0.sampling.npz"),
    ],
    ids=["of another run", "of another chain", "of another phase"],
)
def test_a_snapshot_of_something_else_is_refused_by_its_name(runs, read, source, target):
    folder = runs[0].parent
    shutil.copy(folder / source, folder / target)
    with pytest.raises(DamagedError, match=r"chain-0\.sampling\.npz is damaged: it belongs to another run"):
        read(runs[0])


def test_a_finding_of_another_scan_is_found_again(tmp_path):
    made = mb.simulate(rows=30, query=1, rest=2, seed=1)
    options = {"chains": 2, "warmup": 10, "draws": 10, "progress": False}
    first, second = (mb.scan(made.table, seed=seed, out=tmp_path / str(seed), **options).seen for seed in (1, 2))
    assert not first.equals(second)
    shutil.copy(tmp_path / "2" / "fits" / "0.npz", tmp_path / "1" / "fits" / "0.npz")
    assert mb.scan(made.table, seed=1, out=tmp_path / "1", **options).seen.equals(first)


@pytest.mark.parametrize("what", ["plan.json", "posterior/settings.json"])
def test_folders_of_another_version_are_refused_with_a_sentence(runs, what):
    mb.load(runs[0]).save(runs[0].parent / "posterior")
    file = runs[0] / what if what == "plan.json" else runs[0].parent / what
    file.write_text(json.dumps(json.loads(file.read_text()) | {"format": 2}))
    with pytest.raises(ValueError, match=r"written by another version of markovblanket \(format 2, "):
        mb.load(file.parent)
