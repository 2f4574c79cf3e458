"""Any damage to any file of a run folder, and any forged or swapped plan, snapshot or store.

None executes anything, writes or deletes outside its folder, or silently gives other numbers: a folder is answered
as before, or refused in one sentence.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import markovblanket as mb
from support.forging import contents, plan_of, replan, reseal, resnap, trap

MADE = mb.simulate(rows=20, query=1, rest=3, kinds="mixed", missing=0.05, seed=1)
SHORT = {"chains": 2, "warmup": 5, "draws": 6, "seed": 1, "progress": False}
FOLDERS = ("disk", "draws", "saved", "summary")
QUIET = "ignore::markovblanket.ConvergenceWarning"
pytestmark = pytest.mark.filterwarnings(QUIET)


def rung(examples):
    """So many examples, always the same ones."""
    checks = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(
        max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=checks
    )


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """Runs of all keep modes, another of each that differs in its seed, and what a reader gets of them."""
    place = tmp_path_factory.mktemp("originals")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.ConvergenceWarning)
        for kind, seed in (("own", 1), ("foreign", 2)):
            for keep in ("draws", "summary", "disk"):
                run = place / kind / keep
                how = run / "kept" if keep == "disk" else keep
                made = mb.estimate(MADE.table, MADE.query, **SHORT | {"seed": seed}, keep=how, checkpoint=run)
                if keep == "draws":
                    made.save(place / kind / "saved")
        whole = {name: numbers(mb.load(place / "own" / name)) for name in FOLDERS}
        longer = {
            name: numbers(resumed(shutil.copytree(place / "own" / name, place / name), 12)) for name in FOLDERS[:2]
        }
    return place, whole, longer


def numbers(posterior):
    """All that could be other than it was, as one hash."""
    found = hashlib.sha256(posterior.edges(all=True).to_csv().encode())
    found.update(repr([posterior.settings[name] for name in ("seed", "draws", "prior", "chains")]).encode())
    for group, arrays in sorted(posterior.datasets().items()):
        for name, array in sorted(arrays.variables.items()):
            found.update(f"{group}.{name} {array.shape}".encode() + array.to_numpy().tobytes())
    return found.hexdigest()


def resumed(run, draws=None):
    return mb.resume(run, draws=draws, progress=False)


def asked(folder, originals, more):
    """What becomes of a folder: "same", or the type of the refusal, by load and, with ``more``, by resume."""
    _, whole, longer = originals
    readers = [(mb.load, whole[folder.name])]
    if more > 1 and folder.name in longer:
        readers.append((lambda run: resumed(run, 12), longer[folder.name]))
    elif more and folder.name != "saved":
        readers.append((resumed, whole[folder.name]))
    said = []
    for read, expected in readers:
        found = answer(read, folder)
        if isinstance(found, mb.Posterior):
            assert numbers(found) == expected
        else:
            assert "\n" not in str(found)
        said.append("same" if isinstance(found, mb.Posterior) else type(found).__name__)
    return said


def answer(read, folder):
    """What a reader returns, or the error with which it refuses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.ConvergenceWarning)
        try:
            return read(folder)
        except (ValueError, FileNotFoundError, FileExistsError) as refusal:
            return refusal


# Damage ---------------------------------------------------------------------------------------------------


@st.composite
def wounds(draw):
    """Of which folder, which file, how, where, and which bit."""
    how = draw(st.sampled_from(["flip", "flip", "flip", "cut", "delete", "empty", "zeros", "junk", "added"]))
    place = draw(st.floats(0, 0.999999))
    return draw(st.sampled_from(FOLDERS)), draw(st.integers(0, 9999)), how, place, draw(st.integers(0, 7))


def wound(folder, which, how, where, bit):
    """Damage one file."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "lock")
    path = files[which % len(files)]
    content = bytearray(path.read_bytes())
    place = int(where * len(content))
    if how == "flip" and content:
        content[place] ^= 1 << bit
    elif how == "zeros":
        content[place:] = bytes(len(content) - place)
    path.write_bytes({"cut": content[:place], "empty": b"", "junk": content + b"junk"}.get(how, content))
    if how == "delete":
        path.unlink()
    elif how == "added":
        path.with_name(f"{path.name}.0").write_bytes(content)


def damaged(originals, tmp_path, example):
    """Damage a copy of a folder and ask for it."""
    folder = copied(originals, tmp_path, example[0])
    wound(folder, *example[1:])
    return asked(folder, originals, more=example[4] % 4)


def copied(originals, tmp_path, name):
    shutil.rmtree(tmp_path / "here", ignore_errors=True)
    return Path(shutil.copytree(originals[0] / "own" / name, tmp_path / "here" / name))


@rung(40)
@given(example=wounds())
def test_damage_is_named_or_does_no_harm(originals, tmp_path, example):
    damaged(originals, tmp_path, example)


@pytest.mark.slow
def test_five_hundred_damaged_files(originals, tmp_path, capsys):
    said, counted = Counter(), []

    def one(example):
        counted.append(example)
        said.update(damaged(originals, tmp_path, example))

    rung(500)(given(wounds())(one))()
    with capsys.disabled():
        sys.stdout.write(f"\n{len(counted)} damaged files, {said.total()} readings: {dict(said)}\n")
    assert len(counted) >= 500
    assert said["DamagedError"] > 0.4 * said.total()


# Forgery --------------------------------------------------------------------------------------------------

STRANGE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 10**12),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["../../precious", "/etc", "kept", "draws", "pickle", "Laplace"]),
    st.lists(st.integers(-2, 9), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
PLAN = ("query", "variables", "data", "margins", "prior", "solver", "versions", "warmup", "thin", "chains", "seed")
PLAN += ("keep", "candidates", "named", "scouting", "grown")
ARRAYS = ("state.W12", "state.W11", "state.T", "rng", "count", "store.filled", "store.memory.filled")
ARRAYS += ("store.stream.sum", "store.stream.histogram", "store.stream.draws", "store.block.W12", "values")
SHAPES = st.sampled_from([(), (0,), (1,), (1, 3), (2, 2, 2), (6, 1, 3)])
KINDS = st.sampled_from(["<f8", "<f4", "<i8", "|u1", "<U3", "|O"])


@st.composite
def forgeries(draw):
    """Which folder, and what is forged in it, with checksums and marks that fit."""
    how = draw(st.sampled_from(["plan", "nested", "snapshot", "swap", "swap", "trap", "store", "link"]))
    folder = draw(
        st.sampled_from([name for name in FOLDERS if name != "saved" or how in ("trap", "store", "link")])
    )
    value = draw(STRANGE)
    return folder, how, draw(st.integers(0, 9999)), value, draw(SHAPES), draw(KINDS)


def forge(originals, folder, how, which, value, shape, kind):
    """Alter a folder as somebody would who knows how its checksums are made; whether numbers may differ then."""
    if how in ("plan", "nested"):
        return forge_plan(folder, how == "nested", which, value)
    if how == "snapshot":
        return forge_snapshot(folder, which, shape, kind)
    if how == "swap":
        return swap(originals, folder, which)
    if how == "link":
        return forge_link(folder, which)
    return forge_store(folder, how == "trap", which, value)


def forge_plan(folder, nested, which, value):
    """Another value for an entry: one that the plan does allow is a plan of its own."""
    plan, name = plan_of(folder), PLAN[which % len(PLAN)]
    if nested and isinstance(plan[name], dict):
        plan[name][sorted(plan[name])[which % len(plan[name])]] = value
    else:
        plan[name] = value
    replan(folder, plan)
    return True


def forge_snapshot(folder, which, shape, kind):
    """Another array, which passes where nothing asks for its values."""
    files = sorted(folder.glob("*.npz"))
    array = np.full(shape, 1 if kind != "|O" else None, dtype=kind)
    resnap(files[which % len(files)], {ARRAYS[which % len(ARRAYS)]: array})
    return True


def swap(originals, folder, which):
    """A file of another run, or of another chain or phase, under the name of this one."""
    files = sorted(folder.glob("*.npz"))
    others = sorted((*files, *(originals[0] / "foreign" / folder.name).glob("*.npz")))
    target, source = files[which % len(files)], others[(which // 7) % len(others)]
    if source != target:
        shutil.copy(source, target)
    return False


def forge_link(folder, which):
    """A link to what is precious in place of a file."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = files[which % len(files)]
    path.unlink()
    path.symlink_to(folder.parents[1] / "precious")
    return False


def forge_store(folder, execute, which, value):
    """An array that would execute code, or other metadata; sealed again."""
    saved = folder / "kept" if folder.name == "disk" else folder
    arrays = sorted(path.parent for path in saved.rglob(".zarray"))
    if not arrays:
        return forge_plan(folder, False, which, value)
    array = arrays[which % len(arrays)]
    if execute:
        trap(array, folder.parents[1] / "marker")
    else:
        known = json.loads((array / ".zarray").read_text())
        known[sorted(known)[which % len(known)]] = value
        (array / ".zarray").write_text(json.dumps(known))
    reseal(saved)
    return False


def forged(originals, tmp_path, example):
    """Forge a copy of a folder, ask for it: nothing beside it changes, numbers only if a plan or array does."""
    folder = copied(originals, tmp_path, example[0])
    (tmp_path / "precious").write_text("precious")
    differ = forge(originals, folder, *example[1:])
    outside = {name: found for name, found in contents(tmp_path).items() if not name.startswith("here")}
    said = [type(answer(mb.load, folder)).__name__] if differ else asked(folder, originals, 1 + example[2] % 2)
    assert outside == {name: found for name, found in contents(tmp_path).items() if not name.startswith("here")}
    assert not (tmp_path / "marker").exists()
    return said


@rung(25)
@given(example=forgeries())
def test_forgeries_are_refused_or_do_no_harm(originals, tmp_path, example):
    forged(originals, tmp_path, example)


@pytest.mark.slow
def test_a_hundred_and_more_forgeries(originals, tmp_path, capsys):
    said, counted = Counter(), Counter()

    def one(example):
        counted[example[1]] += 1
        said.update(forged(originals, tmp_path, example))

    rung(160)(given(forgeries())(one))()
    with capsys.disabled():
        sys.stdout.write(f"\n{counted.total()} forgeries {dict(counted)}, {said.total()} readings: {dict(said)}\n")
    assert counted.total() >= 100
    assert said["DamagedError"] > 0.4 * said.total()
