"""Any table, any text file, any damage: an answer in finite numbers, or one clear sentence of our own.

Fast rungs run always; slow ones are the same with many more examples. Examples are the same in every run.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import traceback
import warnings
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import markovblanket as mb
from markovblanket.cli import _output_folder, main

TINY: dict[str, Any] = {"chains": 1, "warmup": 3, "draws": 4, "seed": 1, "progress": False}
PACKAGE = str(Path(mb.__file__).parent)
FIGURES = ["precision", "coefficient", "partial_correlation_averaged", "sign_probability"]
LONGEST = 400


def rung(examples: int) -> Any:
    return settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],  # to shrink a table that was fitted takes minutes
        suppress_health_check=list(HealthCheck),
    )


def assert_clear(error: Exception) -> None:
    """One sentence, raised by the package itself and not by what it calls."""
    sentence = str(error)
    where = traceback.extract_tb(error.__traceback__)[-1].filename
    assert where.startswith(PACKAGE), f"{type(error).__name__} from {where}: {sentence}"
    assert sentence.strip(), type(error)
    assert "\n" not in sentence, sentence
    assert len(sentence) < LONGEST, sentence


def assert_whole(posterior: mb.Posterior, table: pd.DataFrame) -> None:
    """Every query variable meets every other one in finite numbers, and no column is lost."""
    edges, p = posterior.edges(all=True, detail=True), len(posterior.query)
    assert len(edges) == p * len(posterior.variables) + p * (p - 1) // 2
    assert [str(name) for name in posterior.observed.table.order] == [str(name) for name in table.columns]
    assert sorted(map(str, (*posterior.query, *posterior.variables))) == sorted(map(str, table.columns))
    assert np.isfinite(edges[FIGURES].to_numpy(dtype=float)).all(), edges
    assert np.isfinite(posterior.W11).all()
    assert np.isfinite(posterior.draws["explained"]).all()


# Any frame ------------------------------------------------------------------------------------------------

Maker = Callable[[np.random.Generator, int], Any]
CELLS = [None, np.nan, pd.NA, "x", "y", "", " ", "NA", "1.5", 1, 0, -3, 1.5, -0.0, True, False, 2**70, 10**400]
CELLS += [
    1e308,
    5e-324,
    Decimal("1.25"),
    Decimal("NaN"),
    Fraction(1, 3),
    b"x",
    np.float32(2),
    np.int8(3),
    "\ud800",
]
ODD = [np.inf, 1j, date(2020, 1, 1), pd.NaT, (1,), [1], {}, object, np.datetime64("2020"), pd.Timedelta(1, "s")]


def picked(rng: np.random.Generator, n: int, pool: list[Any]) -> pd.Series:
    """A column of objects out of a few of the pool."""
    some = [pool[i] for i in rng.integers(len(pool), size=rng.integers(1, 4))]
    return pd.Series([some[i] for i in rng.integers(len(some), size=n)], dtype=object)


def with_gaps(values: Any) -> Maker:
    """Of a nullable type."""

    def make(rng: np.random.Generator, n: int) -> Any:
        column = pd.Series(values(rng, n))
        return column.mask(rng.random(n) < 0.3)

    return make


BENIGN: dict[str, Maker] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "float16": lambda rng, n: rng.standard_normal(n).astype("float16"),
    "float32": lambda rng, n: rng.standard_normal(n).astype("float32"),
    "longdouble": lambda rng, n: rng.standard_normal(n).astype("longdouble"),
    "gaps": with_gaps(lambda rng, n: rng.standard_normal(n)),
    "heavy": lambda rng, n: np.sign(rng.standard_normal(n)) * 10.0 ** rng.uniform(-300, 300, n),
    "denormal": lambda rng, n: rng.standard_normal(n) * 1e-320,
    "huge": lambda rng, n: rng.uniform(-1, 1, n) * 1.7e308,
    "far": lambda rng, n: 1e9 + rng.standard_normal(n) * 1e-3,
    "few": lambda rng, n: rng.integers(-2, 3, n),
    "whole": lambda rng, n: rng.integers(-1000, 1000, n),
    "count": lambda rng, n: rng.poisson(3, n),
    "outlier": lambda rng, n: np.where(rng.random(n) < 0.1, 10**15, rng.poisson(1, n)),
    "wide whole": lambda rng, n: rng.integers(-(2**62), 2**62, n),
    "unsigned": lambda rng, n: rng.integers(0, 2**63, n).astype("uint64") * 2,
    "bool": lambda rng, n: rng.random(n) < 0.5,
    "rare": lambda rng, n: (np.arange(n) == 0).astype(int),
    "Int64": with_gaps(lambda rng, n: pd.array(rng.integers(0, 4, n), dtype="Int64")),
    "boolean": with_gaps(lambda rng, n: pd.array(rng.random(n) < 0.5, dtype="boolean")),
    "Float64": with_gaps(lambda rng, n: pd.array(rng.standard_normal(n), dtype="Float64")),
    "string": with_gaps(lambda rng, n: pd.array(rng.choice(["u", "v"], n), dtype="string")),
    "sparse": lambda rng, n: pd.arrays.SparseArray(rng.poisson(0.5, n)),
    "decimal": lambda rng, n: [Decimal(int(v)) / 7 for v in rng.integers(0, 99, n)],
    "two words": lambda rng, n: rng.choice(["u", "v"], n),
    "numbers as text": lambda rng, n: [f"{v:.2f}" for v in rng.standard_normal(n)],
    "ordered": lambda rng, n: pd.Categorical(rng.choice(["u", "v", "w"], n), list("wvux"), ordered=True),
}
NASTY: dict[str, Maker] = {
    "cells": lambda rng, n: picked(rng, n, CELLS),
    "odd cells": lambda rng, n: picked(rng, n, CELLS + ODD),
    "constant": lambda rng, n: np.full(n, rng.choice([0.0, 0.1, 1e300])),
    "only gaps": lambda rng, n: np.full(n, np.nan),
    "infinite": lambda rng, n: np.where(rng.random(n) < 0.2, np.inf, 1.0),
    "close": lambda rng, n: 2**60 + rng.integers(0, 9, n),
    "words": lambda rng, n: rng.choice(list("uvwxyz"), n),
    "free text": lambda rng, n: [f"no. {i}" for i in range(n)],
    "category": lambda rng, n: pd.Categorical(rng.choice(["u", "v", "w"], n), list("wvux")),
    "complex": lambda rng, n: rng.standard_normal(n) * 1j,
    "dates": lambda rng, n: pd.date_range("2020", periods=n, tz=rng.choice(["UTC", None])),
    "durations": lambda rng, n: pd.to_timedelta(np.arange(n), unit="h"),
    "periods": lambda rng, n: pd.period_range("2020", periods=n, freq="M"),
    "intervals": lambda rng, n: pd.arrays.IntervalArray.from_breaks(np.arange(n + 1)),
    "nested": lambda rng, n: [[1]] * n,
}
MAKERS = BENIGN | NASTY

letters = st.text(st.characters(codec=None, exclude_categories=[]), max_size=6)
names = st.one_of(
    *(letters, letters, st.integers(-3, 9), st.floats(), st.none()),
    *(st.booleans(), st.tuples(letters, st.none())),
)


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    """Any frame: few or many rows, columns of any type, some of them copies of others, under any names."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.sampled_from([2, 3, 5, 8, 20, 40, 0, 1]))
    nasty = draw(st.sampled_from([False, False, True]))
    makers = st.sampled_from(sorted(MAKERS if nasty else BENIGN))
    kinds = draw(st.lists(makers, min_size=0 if nasty else 2, max_size=6))
    columns = [pd.Series(MAKERS[kind](rng, n)) for kind in kinds]
    if columns and draw(st.booleans()):
        columns.append(-columns[0] if kinds[0] == "normal" else columns[0].copy())
    plain = st.text("abcÄβ日🧬_ .-/=<>&'", min_size=1, max_size=6)
    size = {"min_size": len(columns), "max_size": len(columns)}
    chosen = draw(st.lists(names, **size) if nasty else st.lists(plain, unique=True, **size))
    table = pd.concat(columns, axis=1) if columns else pd.DataFrame(index=range(n))
    table.columns = pd.Index(chosen, dtype=object, tupleize_cols=False)
    return table


@st.composite
def questions(draw: st.DrawFn) -> tuple[pd.DataFrame, Any, dict[str, Any]]:
    """A frame, some of its columns, and how it is asked."""
    table = draw(frames())
    places = draw(st.lists(st.integers(0, max(0, table.shape[1] - 1)), min_size=1, max_size=3, unique=True))
    query = [table.columns[place] for place in places if place < table.shape[1]] or ["a"]
    margins = draw(st.sampled_from(["auto", "auto", "rank", "gaussian"]))
    prior = draw(st.sampled_from(["spike-slab", "laplace", "horseshoe", "normal"]))
    return table, query, {"margins": margins, "prior": prior}


def ask(question: tuple[pd.DataFrame, Any, dict[str, Any]]) -> bool:
    """Whether it was answered."""
    table, query, options = question
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "not converged")
        try:
            posterior = mb.estimate(table, query, **TINY, **options)
        except (ValueError, TypeError) as refusal:
            assert_clear(refusal)
            return False
        assert_whole(posterior, table)
    return True


@rung(100)
@given(questions())
def test_any_frame_is_answered_or_refused(question):
    ask(question)


@pytest.mark.slow
def test_many_frames_are_answered_or_refused():
    answered = []
    rung(2000)(given(questions())(lambda question: answered.append(ask(question))))()
    assert len(answered) >= 1900
    assert 0.25 < np.mean(answered) < 0.9  # both happen, and often


# Any text file --------------------------------------------------------------------------------------------

cells = st.one_of(
    st.floats(-9, 9).map(lambda v: f"{v:.3f}"),
    st.floats(-9, 9).map(lambda v: f"{v:.3f}"),
    st.integers(-5, 5).map(str),
    st.sampled_from(
        ["", "NA", "x", "y", "inf", "1e999", "9" * 30, '"', '""', '"a,b"', "=1+1", "TRUE", "2020-01-01", "\0"]
    ),
    st.text(max_size=4),
)
plain_cells = st.floats(-9, 9).map(lambda v: f"{v:.3f}")
heads = st.one_of(st.sampled_from([*"abcd", "", " ", "=b", '"q"', "../x"]), st.text(max_size=5))


@st.composite
def tables_of_text(draw: st.DrawFn) -> str:
    """Rows of cells, more or less well formed."""
    width = draw(st.integers(2, 5))
    tidy = draw(st.booleans())
    head = ["a", *(f"v{j}" for j in range(1, width))] if tidy else ["a", *draw(st.lists(heads, max_size=width))]
    one = plain_cells if tidy else cells
    ragged = 0 if tidy else draw(st.sampled_from([0, 0, 1]))
    rows = draw(st.lists(st.lists(one, min_size=width - ragged, max_size=width + ragged), max_size=12))
    between, end = draw(st.sampled_from([",", ",", ",", ";", "\t"])), draw(st.sampled_from(["\n", "\r\n", "\r"]))
    return end.join(between.join(row) for row in [head, *rows])


files = st.one_of(
    tables_of_text().map(lambda text: text.encode("utf-8", "surrogatepass")),
    tables_of_text().map(lambda text: text.encode("utf-8", "surrogatepass")),
    tables_of_text().map(lambda text: text.encode("utf-16", "surrogatepass")),
    st.binary(max_size=200),
    st.text(max_size=100).map(lambda text: text.encode("utf-8", "surrogatepass")),
)


def fit_file(folder: Path, content: bytes) -> int:
    """The exit code of a fit; what is refused is told in a line, and leaves nothing."""
    shutil.rmtree(folder / "run", ignore_errors=True)
    (folder / "t.csv").write_bytes(content)
    schedule = ["--chains", "1", "--warmup", "2", "--draws", "4", "--seed", "1", "-j", "1", "--quiet"]
    told = io.StringIO()
    with contextlib.redirect_stderr(told):
        code = main(["fit", str(folder / "t.csv"), "-q", "a", "-o", str(folder / "run"), *schedule])
    lines = told.getvalue().splitlines()
    if code:
        assert code == 2, lines
        assert len(lines) == 1, lines
        assert lines[0].startswith("error: "), lines
        assert len(lines[0]) < LONGEST, lines
        assert {entry.name for entry in folder.iterdir()} == {"t.csv"}
    else:
        selected = pd.read_csv(folder / "run" / "edges.csv")[["partial_correlation", "lower", "upper"]]
        assert np.isfinite(selected.to_numpy(dtype=float)).all()
    return code


@pytest.fixture
def no_pictures(monkeypatch):
    """They take most of the time, and are the same for all."""
    monkeypatch.setattr(_output_folder, "possible", lambda file: False)
    monkeypatch.setattr(_output_folder, "left_out", list)


@rung(25)
@given(content=files)
def test_any_file_is_fitted_or_refused(tmp_path, no_pictures, content):
    fit_file(tmp_path, content)


@pytest.mark.slow
def test_many_files_are_fitted_or_refused(tmp_path, no_pictures):
    codes = []
    rung(200)(given(files)(lambda content: codes.append(fit_file(tmp_path, content))))()
    assert 0.05 < np.mean(np.array(codes) == 0) < 0.9


# Any damage -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Folders of runs, by name, each with what it holds."""
    place = tmp_path_factory.mktemp("whole")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((20, 4)), columns=list("abcd")).assign(e=["x", "y"] * 10)
    table.loc[3, "b"] = np.nan
    options = TINY | {"chains": 2}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "not converged")
        mb.estimate(table, "a", **options, checkpoint=place / "checkpoint").save(place / "saved")
        mb.estimate(table, "a", **options, keep="summary").save(place / "summary")
        S = rng.standard_normal((9, 3))
        mb.estimate(scatter=S.T @ S, n=9, query=0, **options, checkpoint=place / "scatter")
        return {entry: contents(mb.load(entry)) for entry in sorted(place.iterdir())}


def contents(posterior: mb.Posterior) -> tuple[Any, ...]:
    """All that could be other than it was."""
    table = posterior.observed.table
    numbers = [column.values.tobytes() for column in table.columns]
    drawn = [posterior.draws[name].values.tobytes() for name in sorted(posterior.draws.data_vars)]
    levels = [(column.name, column.kind, column.levels) for column in table.columns]
    return posterior.edges(all=True).to_csv(), table.order, levels, numbers, drawn, posterior.settings["seed"]


@st.composite
def wounds(draw: st.DrawFn) -> tuple[int, int, str, float, int]:
    """Of which folder, which file, how, where, and which bit."""
    how = draw(st.sampled_from(["flip", "flip", "cut", "delete", "empty", "zeros", "junk"]))
    where = draw(st.floats(0, 0.999999))
    return draw(st.integers(0, 3)), draw(st.integers(0, 999)), how, where, draw(st.integers(0, 7))


def wound(folder: Path, which: int, how: str, where: float, bit: int) -> Path:
    """Damage one file."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = files[which % len(files)]
    content = bytearray(path.read_bytes())
    place = int(where * len(content))
    if how == "flip" and content:
        content[place] ^= 1 << bit
    elif how == "zeros":
        content[place : place + 8] = bytes(len(content[place : place + 8]))
    path.write_bytes({"cut": content[:place], "empty": b"", "junk": content + b"junk"}.get(how, content))
    if how == "delete":
        path.unlink()
    return path


def hurt(place: Path, whole: dict[Path, Any], wounds: tuple[int, int, str, float, int]) -> str:
    """What becomes of a damaged folder: the same as before, or a refusal."""
    source = sorted(whole)[wounds[0]]
    folder = place / "run"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)
    wound(folder, *wounds[1:])
    said = "same"
    doors = [mb.load] if source.name in ("saved", "summary") else [mb.load, mb.status, resumed]
    for door in doors:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "not converged")
            try:
                found = door(folder)
            except (ValueError, FileNotFoundError) as refusal:
                assert_clear(refusal)
                said = type(refusal).__name__
                continue
            assert isinstance(found, mb.Posterior) == (door is not mb.status)
            if door is not mb.status:
                assert contents(found) == whole[source], (door, wounds)
    return said


def resumed(folder: Path) -> mb.Posterior:
    return mb.resume(folder, progress=False)


@rung(25)
@given(wounds=wounds())
def test_damage_is_named_or_does_no_harm(tmp_path, whole, wounds):
    hurt(tmp_path, whole, wounds)


@pytest.mark.slow
def test_much_damage_is_named_or_does_no_harm(tmp_path, whole):
    said = []
    rung(200)(given(wounds())(lambda one: said.append(hurt(tmp_path, whole, one))))()
    assert {"same", "DamagedError"} <= set(said)
    assert said.count("DamagedError") > 0.5 * len(said)


def test_nothing_is_unpickled(tmp_path, whole):
    """An array of objects in a snapshot is damage, and the code in it does not run."""
    ran = tmp_path / "ran"

    class Trap:
        def __reduce__(self):
            return Path.touch, (ran,)

    source = next(path for path in whole if path.name == "checkpoint")
    folder = tmp_path / "run"
    shutil.copytree(source, folder)
    trap = np.empty(1, dtype=object)
    trap[0] = Trap()
    np.savez(folder / "chain-0.sampling.npz", count=trap, rng=trap)
    for door in (mb.load, mb.status, resumed):
        with pytest.raises(ValueError, match="is damaged: Object arrays cannot be loaded"):
            door(folder)
    assert not ran.exists()
