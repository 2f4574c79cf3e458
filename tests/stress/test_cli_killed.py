"""Runs of the command line that were stopped at their beginning or at their end, or that somebody else is at."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from joblib.externals.loky.process_executor import TerminatedWorkerError

import markovblanket as mb
from markovblanket import _files
from markovblanket._files import locked
from markovblanket.cli import _fit, _output_folder, main
from markovblanket.model.network_sweep import WidenedBlanket

FIT = [
    "fit",
    "table.csv",
    "-q",
    "Q1",
    "--chains",
    "2",
    "--warmup",
    "50",
    "--draws",
    "50",
    "--seed",
    "1",
    "--jobs",
    "1",
]
FIT, RESUME = [*FIT, "--quiet", "--out"], ["resume", "run", "--jobs", "1", "--quiet"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    """A working directory with a small table and nothing else."""
    mb.simulate(rows=60, query=1, rest=6, seed=4).table.to_csv(tmp_path / "table.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stopped(monkeypatch, place, *arguments, error: BaseException | None = None) -> int:
    """The exit code of a command that ends where it would come by that place."""
    with monkeypatch.context() as patch:
        patch.setattr(*place, Mock(side_effect=error or KeyboardInterrupt()))
        return main(arguments)


@pytest.mark.parametrize("place", [(_fit, "estimate"), (WidenedBlanket, "sweep")])
def test_a_run_goes_on_that_was_stopped_at_its_beginning_and_once_more_when_begun_by_force(monkeypatch, place):
    """Before the table was read, or after."""
    assert stopped(monkeypatch, place, *FIT, "run") == 130
    assert stopped(monkeypatch, place, *FIT, "run", "--force") == 130
    assert main(["resume", "run", "--quiet"]) == main([*FIT, "other"]) == 0
    assert Path("run/edges.csv").read_bytes() == Path("other/edges.csv").read_bytes()
    assert not Path("run/checkpoint~").exists()


def test_a_run_that_has_not_begun_is_begun_with_as_many_draws_as_are_asked_for_now(monkeypatch):
    assert stopped(monkeypatch, (_fit, "estimate"), *FIT, "run") == 130
    assert main(["resume", "run", "--draws", "70", "--quiet"]) == 0
    assert mb.load("run/posterior").settings["draws"] == 70


def test_a_process_that_is_lost_is_told_in_a_line(monkeypatch, capsys):
    lost = TerminatedWorkerError("a worker process was\nunexpectedly terminated")
    assert stopped(monkeypatch, (_fit, "estimate"), *FIT, "run", error=lost) == 1
    expected = "error: a process that ran chains was killed, perhaps because memory ran out: try fewer --jobs; "
    assert capsys.readouterr().err == f"{expected}markovblanket resume run continues from the last checkpoint\n"
    assert main([*FIT, "run", "--force"]) == 0
    capsys.readouterr()
    assert stopped(monkeypatch, (WidenedBlanket, "sweep"), *RESUME, "--draws", "70", error=lost) == 1
    assert capsys.readouterr().err.startswith(expected)


def test_a_run_that_somebody_is_at_is_not_replaced_even_by_force(monkeypatch, capsys):
    assert stopped(monkeypatch, (WidenedBlanket, "sweep"), *FIT, "run") == 130
    capsys.readouterr()
    with locked(Path("run/checkpoint")):
        assert main([*FIT, "run", "--force"]) == 2
    assert "is in use by a run that has not ended" in capsys.readouterr().err
    assert main(["resume", "run", "--quiet"]) == 0


def test_nor_is_it_taken_up_while_its_results_are_written(monkeypatch, capsys):
    """Its folder is about to be replaced, with all that another process would write there."""
    write, codes = _output_folder.write, []

    def meanwhile(*given):
        codes.append(main(["resume", "run", "--draws", "90", "--quiet"]))
        write(*given)

    monkeypatch.setattr(_output_folder, "write", meanwhile)
    assert main([*FIT, "run"]) == 0
    assert codes == [2]
    assert mb.load("run/posterior").settings["draws"] == 50


def test_draws_on_disk_grow_where_their_run_was_moved_to():
    assert main([*FIT, "run", "--keep", "disk"]) == main([*FIT, "other", "--draws", "100"]) == 0
    Path("run").rename("moved")
    assert main(["resume", "moved", "--draws", "100", "--quiet"]) == 0
    moved, other = mb.load("moved/posterior"), mb.load("other/posterior")
    np.testing.assert_array_equal(moved.W12, other.W12.astype(np.float32))
    assert not Path("run").exists()


def test_what_was_there_comes_back_if_its_replacement_is_interrupted(here, monkeypatch):
    for name in ("path", "new"):
        (here / name).mkdir()
    (here / "path" / "precious").touch()
    rename = Path.rename

    def interrupted(source, target):
        if source.name == "new":
            raise KeyboardInterrupt
        return rename(source, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _files.swap(here / "new", here / "path", here / "old")
    assert (here / "path" / "precious").exists()
