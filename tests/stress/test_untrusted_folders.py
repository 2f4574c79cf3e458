"""Run folders and saved posteriors of somebody else: nothing in them is executed, followed or believed unseen."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest

import markovblanket as mb
from markovblanket import _files
from markovblanket._files import DamagedError
from markovblanket.chains import zarr_store
from markovblanket.cli import main
from support.forging import Marker, contents, plan_of, replan, reseal, resnap, trap

pytestmark = pytest.mark.filterwarnings("ignore::markovblanket.ConvergenceWarning")
SOURCES = Path(mb.__file__).parent
SHORT = {"chains": 2, "warmup": 20, "draws": 20, "seed": 1, "progress": False}
MADE = mb.simulate(rows=30, query=1, rest=4, seed=1)


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """A saved posterior, and a finished run of each way to keep draws."""
    folder = tmp_path_factory.mktemp("originals")
    for keep in ("draws", "summary"):
        fitted(checkpoint=folder / keep, keep=keep).save(folder / "saved")
    fitted(checkpoint=folder / "disk", keep=folder / "disk" / "kept")
    return folder


@pytest.fixture
def folder(originals, tmp_path):
    """Copies that a test may alter."""
    return Path(shutil.copytree(originals, tmp_path / "folders"))


def fitted(**options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.ConvergenceWarning)
        return mb.estimate(MADE.table, MADE.query, **SHORT | options)


def resumed(run, **options):
    return mb.resume(run, progress=False, **options)


def same(one, other):
    first, second = one.datasets(), other.datasets()
    assert first.keys() == second.keys()
    for name, group in first.items():
        assert group.identical(second[name].assign_attrs(group.attrs)), name


# No code from data ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "array", ["draws.zarr/W11", "table.zarr/column", "effort.zarr/draw", "latent.zarr/latent"]
)
def test_a_saved_posterior_with_a_filter_of_pickles_is_refused_by_name(folder, tmp_path, array, capsys):
    trap(folder / "saved" / array, tmp_path / "marker")
    reseal(folder / "saved")
    with pytest.raises(DamagedError, match=r"\.zarray is not as markovblanket writes it: its type is '\|O'"):
        mb.load(folder / "saved")
    assert main(["report", str(folder / "saved"), "--out", str(tmp_path / "page.html")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize("read", [mb.load, resumed, lambda run: resumed(run, draws=40)])
def test_so_are_draws_on_disk_in_a_run_folder(folder, tmp_path, read):
    trap(folder / "disk" / "kept" / "draws.zarr" / "W12", tmp_path / "marker")
    reseal(folder / "disk" / "kept")
    with pytest.raises(DamagedError, match="is not as markovblanket writes it"):
        read(folder / "disk")
    assert not (tmp_path / "marker").exists()


def test_a_snapshot_of_python_objects_is_refused(folder, tmp_path):
    snapshot = folder / "draws" / "chain-0.sampling.npz"
    resnap(snapshot, {"state.W11": np.array([Marker(tmp_path / "marker")], dtype=object)})
    for read in (mb.load, resumed):
        with pytest.raises(DamagedError, match=r"chain-0\.sampling\.npz is damaged"):
            read(folder / "draws")
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"compressor": {"id": "zlib", "level": 1}},
        {"compressor": None},
        {"filters": [{"id": "delta", "dtype": "<f8"}]},
        {"dtype": "<M8[ns]"},
        {"dtype": [["a", "<f8"]]},
        {"fill_value": 0.5},
        {"order": "F"},
        {"shape": [2, -1, 1, 1]},
        {"shape": [2**50, 20, 1, 1]},
        {"chunks": [1, 1, 1, 1]},
        {"strange": 1},
    ],
    ids=str,
)
def test_only_arrays_as_this_package_writes_them_are_opened(folder, change):
    file = folder / "saved" / "draws.zarr" / "W11" / ".zarray"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    reseal(folder / "saved")
    with pytest.raises(DamagedError, match=r"W11/"):
        mb.load(folder / "saved")


def test_a_copy_of_the_metadata_that_says_something_else_is_refused(folder):
    """It is what zarr reads."""
    copy = folder / "saved" / "draws.zarr" / ".zmetadata"
    whole = json.loads(copy.read_text())
    whole["metadata"]["W11/.zarray"]["dtype"] = "|O"
    copy.write_text(json.dumps(whole))
    reseal(folder / "saved")
    with pytest.raises(DamagedError, match=r"\.zmetadata is damaged: it is not a copy of the metadata"):
        mb.load(folder / "saved")


def test_attributes_that_would_change_numbers_are_refused(folder):
    file = folder / "saved" / "draws.zarr" / "W11" / ".zattrs"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"scale_factor": 2.0}))
    reseal(folder / "saved")
    with pytest.raises(DamagedError, match="its attribute 'scale_factor' is another"):
        mb.load(folder / "saved")


UNPICKLERS = {"pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve", "jsonpickle"}
READERS = {"read_pickle", "eval", "exec", "unsafe_load", "full_load"}


def test_no_source_unpickles_or_evaluates_what_it_reads():
    """Nor lets NumPy do so; joblib sends objects between processes, and reads none from files."""
    sources, found = sorted(SOURCES.rglob("*.py")), []
    for source in sources:
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name.partition(".")[0] for alias in node.names} | {str(getattr(node, "module", ""))}
                found += [(source, name) for name in names & UNPICKLERS]
            elif isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                owner = getattr(getattr(node.func, "value", None), "id", "")
                pickles = [k for k in node.keywords if k.arg == "allow_pickle" and getattr(k.value, "value", 1)]
                bad = (name in READERS and owner != "re") or (owner, name) == ("joblib", "load") or pickles
                bad = bad or (owner in ("np", "numpy") and name == "load")
                found += [(source, name)] if bad else []
    assert len(sources) > 100
    assert not found


@pytest.mark.slow
def test_reading_imports_nothing_that_unpickles_arrays(folder):
    """While a saved posterior is read, unpickling anything at all fails."""
    code = (
        "import pickle, sys, markovblanket as mb, xarray, zarr\n"
        "from markovblanket.fitting import resume\n"
        "def refused(*given, **more): raise AssertionError('unpickled')\n"
        "pickle.loads = pickle.load = pickle.Unpickler = refused\n"
        "print(mb.load(sys.argv[1]), mb.load(sys.argv[2]))"
    )
    run = [sys.executable, "-W", "ignore", "-c", code, str(folder / "saved"), str(folder / "draws")]
    done = subprocess.run(run, capture_output=True, text=True)
    assert done.stdout.count("<Posterior") == 2, done.stderr


# Nothing outside the folder -------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", ["draws", "summary", "disk"])
def test_loading_a_run_writes_nothing(folder, keep):
    before = contents(folder)
    mb.load(folder / keep)
    assert contents(folder) == before


@pytest.mark.parametrize("keep", ["draws", "summary", "disk"])
def test_a_run_is_read_from_a_folder_that_cannot_be_written(folder, keep):
    """A read-only mount, where one may be made; else without the right to write."""
    whole = mb.load(folder / keep)
    mounted = subprocess.run(["mount", "--bind", "-o", "ro", folder, folder], capture_output=True).returncode == 0
    if mounted:
        subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
    else:
        for path in (folder, *folder.rglob("*")):
            path.chmod(path.stat().st_mode & ~0o222)
    try:
        with pytest.raises(OSError, match=r"Read-only|Permission"):
            (folder / "new").touch()
        same(whole, mb.load(folder / keep))
        assert mb.status(folder / keep).finished
    finally:
        if mounted:
            subprocess.run(["umount", folder], check=True)
        else:
            for path in (folder, *folder.rglob("*")):
                path.chmod(path.stat().st_mode | 0o200)


@pytest.mark.parametrize("asked", ["{other}", "../saved", "x/../../saved", ".", ""])
@pytest.mark.parametrize("read", [mb.load, resumed, lambda run: resumed(run, draws=40)])
def test_a_plan_does_not_lead_out_of_its_folder(folder, asked, read):
    """Somebody else's posterior is where the plan says that the draws are."""
    run, before = folder / "disk", contents(folder / "saved")
    plan = plan_of(run)
    plan["keep"]["asked"] = asked.format(other=folder / "saved")
    replan(run, plan)
    (folder / "saved" / "precious.zarr").mkdir()
    (folder / "saved" / "precious.zarr" / "thesis").touch()
    with pytest.raises(ValueError, match="are outside of it"):
        read(run)
    shutil.rmtree(folder / "saved" / "precious.zarr")
    assert contents(folder / "saved") == before


@pytest.mark.parametrize("name", ["plan.json.part", "lock", "owner", "chain-0.sampling.npz", "kept", "table.npz"])
def test_a_link_in_a_run_folder_is_refused(folder, tmp_path, name):
    """Even one that leads to what was there."""
    (tmp_path / "precious").write_text("precious")
    run, target = folder / "disk", tmp_path / "precious"
    if (run / name).exists():
        target = (run / name).rename(tmp_path / name)
    (run / name).symlink_to(target)
    before = contents(tmp_path)
    for read in (mb.load, mb.status, resumed, lambda run: resumed(run, draws=40)):
        with pytest.raises(DamagedError, match=f"{name} is a link: only plain files and folders are read"):
            read(run)
    assert contents(tmp_path) == before


def test_a_pipe_in_a_run_folder_is_refused_and_does_not_block(folder):
    (folder / "draws" / "table.npz").unlink()
    os.mkfifo(folder / "draws" / "table.npz")
    for read in (mb.load, resumed):
        with pytest.raises(DamagedError, match=r"table\.npz is a special file"):
            read(folder / "draws")


def test_a_link_to_the_folder_itself_is_the_users_own(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder / "draws")
    same(mb.load(folder / "draws"), mb.load(tmp_path / "link"))
    same(mb.load(folder / "draws"), resumed(tmp_path / "link"))


FAULTS = [
    ("chains", 0, "chains is 0, and should be a whole number from 1 to"),
    ("chains", 10**9, "chains is 1000000000, and should be"),
    ("draws", "20", "draws is '20', and should be a whole number"),
    ("draws", True, "draws is True, and should be"),
    ("warmup", -1, "warmup is -1, and should be"),
    ("seed", 1, "seed is 1, and should be a whole number as text"),
    ("seed", "one", "seed is 'one', and should be"),
    ("query", "Q1", "query is 'Q1', and should be a list of names"),
    ("prior", {"name": "Laplace"}, "prior.options is missing"),
    ("prior", {"name": "os", "options": {}}, "the prior os is not of this package"),
    ("prior", {"name": "Laplace", "options": {"gamma": "x"}}, "plan.json is damaged"),
    ("prior", {"name": "Laplace", "options": {"x": 1}}, "plan.json is damaged"),
    ("keep", {"asked": "x", "kept": "pickle", "why": ""}, "keep.kept is 'pickle', and should be one of"),
    ("candidates", {"asked": [1]}, r"candidates.asked is \[1\], and should be"),
    ("named", [[0, 99]], "names an edge that the table does not have"),
    ("named", [[0]], "named is .*, and should be null, or a list of pairs"),
    ("data", None, "data is None, and should be a set of entries"),
    ("grown", [0], "grown is .* and should be a list of"),
    ("strange", 1, "it has an unknown entry strange"),
]


@pytest.mark.parametrize(("name", "value", "message"), FAULTS, ids=[f"{k}={v}" for k, v, _ in FAULTS])
def test_a_fault_in_a_plan_is_one_sentence(folder, name, value, message):
    replan(folder / "draws", plan_of(folder / "draws") | {name: value})
    for read in (mb.load, resumed):
        with pytest.raises(DamagedError, match=message) as told:
            read(folder / "draws")
        assert "\n" not in str(told.value)


@pytest.mark.parametrize("text", ["[" * 10**5, "1", "null", "[]", '"plan"', "{", "\x00"])
@pytest.mark.parametrize("file", ["draws/plan.json", "saved/settings.json", "saved/seal.json"])
def test_a_file_that_is_not_what_it_should_be_is_told_in_one_sentence(folder, file, text):
    (folder / file).write_text(text)
    with pytest.raises(ValueError, match=r"damaged|another version") as told:
        mb.load((folder / file).parent)
    assert "\n" not in str(told.value)


# Nothing silently wrong -----------------------------------------------------------------------------------


def test_a_block_of_draws_that_was_cut_or_changed_is_refused_by_load_and_resume(folder):
    """A single bit of any block."""
    blocks = sorted((folder / "disk" / "kept" / "draws.zarr").glob("*/[0-9]*"))
    assert len(blocks) > 12
    rng = np.random.default_rng(0)
    for block in blocks:
        whole = block.read_bytes()
        flipped = bytearray(whole)
        flipped[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        for damaged in (whole[:-1], bytes(flipped)):
            block.write_bytes(damaged)
            with pytest.raises(DamagedError, match=f"{block.parent.name}/{block.name} is damaged"):
                mb.load(folder / "disk")
        block.write_bytes(whole)
    for name in ("W12", "W11", "explained"):
        block = next((folder / "disk" / "kept" / "draws.zarr" / name).glob("0.0*"))
        whole = block.read_bytes()
        block.write_bytes(whole[:-3])
        with pytest.raises(DamagedError, match=f"{name}/{block.name} is damaged: it is not what was written"):
            resumed(folder / "disk")
        block.write_bytes(whole)
    same(mb.load(folder / "disk"), resumed(folder / "disk"))


def test_a_posterior_of_another_run_is_refused_where_the_draws_should_be(folder):
    fitted(checkpoint=folder / "other", keep=folder / "other" / "kept", seed=2)
    shutil.rmtree(folder / "disk" / "kept")
    shutil.copytree(folder / "other" / "kept", folder / "disk" / "kept")
    with pytest.raises(DamagedError, match="kept is damaged: it holds the posterior of another run"):
        mb.load(folder / "disk")
    with pytest.raises(DamagedError, match="is damaged: it is not what was written"):
        resumed(folder / "disk")


def test_a_copy_of_other_data_is_refused(folder):
    fitted(checkpoint=folder / "other", seed=2)
    shutil.copy(folder / "other" / "table.npz", folder / "draws" / "table.npz")
    for read in (mb.load, resumed):
        with pytest.raises(DamagedError, match=r"table\.npz is damaged: it belongs to another run"):
            read(folder / "draws")


@pytest.mark.parametrize("phase", ["warmup", "sampling"])
@pytest.mark.parametrize("keep", ["summary", "disk"])
def test_a_grown_run_without_a_snapshot_gives_the_same_numbers_again(folder, keep, phase, monkeypatch):
    """Its statistics are divided as they were, though its chain begins anew."""
    whole = resumed(folder / keep, draws=40)
    (folder / keep / f"chain-0.{phase}.npz").unlink()
    same(whole, resumed(folder / keep))
    same(whole, mb.load(folder / keep))


def test_a_run_that_is_extended_before_its_end_is_one_that_was_extended_afterwards(tmp_path, monkeypatch):
    """So chains that had begun to sample and others that had not are divided alike."""
    fitted(checkpoint=tmp_path / "late", keep="summary")
    whole = resumed(tmp_path / "late", draws=40)
    fitted(checkpoint=tmp_path / "early", keep="summary")
    (tmp_path / "early" / "chain-1.sampling.npz").unlink()
    same(whole, resumed(tmp_path / "early", draws=40))


ARRAYS = [
    {"state.W12": np.zeros((1, 2))},
    {"state.W11": np.full((1, 1), np.nan)},
    {"state.T": np.zeros((1, 1, 1))},
    {"rng": np.frombuffer(b"{}", np.uint8)},
    {"count": np.array("many")},
    {"state.W12": None},
    {"store.stream.histogram": np.zeros((1, 1, 1), np.uint16)},
    {"store.stream.sum": np.zeros((2, 1, 1))},
    {"store.stream.draws": np.array(10**6)},
    {"store.memory.filled": np.array(10**6)},
]


@pytest.mark.parametrize("change", ARRAYS, ids=lambda change: str(next(iter(change))))
def test_a_snapshot_whose_arrays_do_not_fit_never_reaches_compiled_code(folder, change):
    resnap(folder / "summary" / "chain-0.sampling.npz", change)
    with pytest.raises(DamagedError, match="is damaged") as told:
        resumed(folder / "summary", draws=40)
    assert "\n" not in str(told.value)


def test_a_seal_takes_no_block_that_has_changed_since_it_was_written(tmp_path):
    block = tmp_path / "block"
    block.write_bytes(b"draws")
    _files.seal(tmp_path, {"block": _files.crc32_text(zlib.crc32(b"draws"))})
    _files.check_seal(tmp_path)
    block.write_bytes(b"drawn")
    with pytest.raises(DamagedError, match="block is damaged: it is not what was written"):
        _files.seal(tmp_path, {"block": _files.crc32_text(zlib.crc32(b"draws"))})


def test_arrays_that_were_half_made_at_the_end_are_written_again(folder):
    """By a process that was killed after the metadata of an array and before its axes, or in a block."""
    store, whole = folder / "disk" / "kept" / "draws.zarr", mb.load(folder / "disk")
    added = sorted({p.name for p in store.iterdir() if p.is_dir()} & {"kept_weight", "edge", "query", "variable"})
    assert len(added) == 4
    for name in added:
        for file in ("settings.json", "seal.json"):
            (folder / "disk" / "kept" / file).unlink()
        (store / name / ".zattrs").unlink()
        (store / name / "0.abc.partial").write_bytes(b"half")
        (store / "W12" / "0.0.0.0.0123.part").write_bytes(b"half")
        same(whole, resumed(folder / "disk"))
    assert zarr_store.room(store) == 20
    same(whole, mb.load(folder / "disk"))
