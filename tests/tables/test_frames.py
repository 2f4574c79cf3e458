"""Tables from files, each read as the frame that was written."""

from __future__ import annotations

import gzip
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from markovblanket.tables.table import read_mixed

CLINIC = pd.DataFrame(
    {
        "age": [61.5, 70.25, np.nan, 48.0, 55.5],
        "sex": ["f", "m", "m", None, "f"],
        "stage": [1, 3, 2, 2, 4],
        "smokes": [True, False, True, True, False],
    }
)


def same(table, other):
    assert (table.query, table.rest) == (other.query, other.rest)
    for one, two in zip(table.columns, other.columns, strict=True):
        assert (one.name, one.kind, one.levels, one.dtype) == (two.name, two.kind, two.levels, two.dtype)
        np.testing.assert_array_equal(one.values, two.values)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv", ".tsv.gz", ".TSV"])
@pytest.mark.parametrize("gap", ["", "NA", " ? "])
@pytest.mark.parametrize("kind", [str, lambda path: path], ids=["str", "Path"])
def test_text_files(tmp_path, suffix, gap, kind):
    path = tmp_path / f"clinic{suffix}"
    CLINIC.to_csv(path, sep="," if "csv" in suffix else "\t", index=False, na_rep=gap)
    same(read_mixed(kind(path), ["stage", "sex"]), read_mixed(CLINIC, ["stage", "sex"]))


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_columnar_files(tmp_path, suffix):
    pytest.importorskip("pyarrow")
    path = tmp_path / f"clinic{suffix}"
    table = CLINIC.assign(grade=pd.Categorical(["lo", "hi", "lo", "mid", None], ["lo", "mid", "hi"], ordered=True))
    (table.to_parquet if suffix == ".parquet" else table.to_feather)(path)
    found = read_mixed(path, ["grade", "sex"])
    same(found, read_mixed(table, ["grade", "sex"]))
    assert found.columns[0].levels == ("lo", "mid", "hi")


def test_row_names_are_left_out(tmp_path):
    CLINIC.to_csv(tmp_path / "numbered.csv")
    same(read_mixed(tmp_path / "numbered.csv", ["age"]), read_mixed(CLINIC, ["age"]))


def test_a_declared_level_of_a_text_file_is_never_missing(tmp_path):
    path = tmp_path / "pain.csv"
    path.write_text("pain,x\nNone,1.5\nmild,NA\nNA,2.5\nsevere,None\n")
    table = read_mixed(path, "pain", {"pain": ["None", "mild", "severe"]})
    np.testing.assert_array_equal(table.columns[0].values, [0, 1, np.nan, 2])
    np.testing.assert_array_equal(table.columns[1].values, [0, np.nan, 1, np.nan])


BROKEN = {
    "empty.csv": ("", "cannot read 'empty.csv'"),
    "only_names.csv": ("a,b\n", "the table is empty: 0 row"),
    "one_row.csv": ("a,b\n1,2\n", "the table has 1 row"),
    "twice.csv": ("a,b,a\n1,2,3\n2,1,4\n", "duplicate column names: 'a'"),
    "unnamed.csv": ("a,,b\n1,2,3\n2,1,4\n", "column 1 of 'unnamed.csv'.*no name"),
    "ragged.csv": ("a,b\n1,2\n1,2,3,4\n", "cannot read 'ragged.csv'"),
    "table.xlsx": ("a,b\n1,2\n", "cannot read 'table.xlsx': a table file ends in .csv"),
}


@pytest.mark.parametrize(("name", "text", "message"), [(name, *case) for name, case in BROKEN.items()], ids=BROKEN)
def test_broken_files_are_refused(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        read_mixed(tmp_path / name, ["a"])


def test_absent_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_mixed(tmp_path / "nowhere.csv", ["a"])


@pytest.mark.parametrize(
    ("suffix", "package"), [(".parquet", "pyarrow"), (".feather", "pyarrow"), (".h5ad", "anndata")]
)
def test_what_a_file_needs_is_named(tmp_path, monkeypatch, suffix, package):
    path = tmp_path / f"clinic{suffix}"
    path.touch()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"{suffix} files need {package}: pip install markovblanket\[files\]"):
        read_mixed(path, ["a"])


# Annotated matrices, written by AnnData itself.

GENES = ["TP53", "MDM2", "FAS", "BAX"]
X = np.array([[0, 2.5, 0, 1], [3.5, 0, 0, 2], [0, 0, 4.5, 0], [1.5, 0, 6, 0], [0, 7, 0.5, 8]])


def write_h5ad(path, form="array", names=GENES):
    anndata = pytest.importorskip("anndata")
    codes, levels = [0, 2, -1, 1, 0], ["lo", "mid", "hi"]
    obs = pd.DataFrame(
        {
            "age": CLINIC["age"].to_numpy(),
            "sex": ["f", "m", "m", "NA", "f"],
            "smokes": CLINIC["smokes"].to_numpy(),
            "grade": pd.Categorical.from_codes(codes, levels, ordered=True),
            "site": pd.Categorical.from_codes(codes, levels),
            "visits": pd.array([1, 2, 3, None, 1], dtype="Int64"),
        },
        index=[f"cell{k}" for k in range(5)],
    )
    matrix = X.astype("float32") if form == "array" else getattr(sparse, form)(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        anndata.AnnData(matrix, obs=obs, var=pd.DataFrame(index=names)).write_h5ad(path)


@pytest.mark.parametrize("form", ["array", "csr_matrix", "csc_matrix"])
def test_annotated_matrices(tmp_path, form):
    path = tmp_path / "cells.h5ad"
    write_h5ad(path, form)
    table = read_mixed(path, ["grade", "sex"], {"visits": "ordinal", "FAS": "continuous"})
    assert (table.query, table.rest) == (("grade", "sex"), ("visits", *GENES))
    found = {column.name: column for column in table.columns}
    assert found["grade"].levels == ("lo", "mid", "hi")
    np.testing.assert_array_equal(found["grade"].values, [0, 2, np.nan, 1, 0])
    np.testing.assert_array_equal(found["sex"].values, [0, 1, 1, np.nan, 0])
    np.testing.assert_array_equal(found["visits"].values, [0, 1, 2, np.nan, 0])
    np.testing.assert_array_equal(found["FAS"].values, X[:, 2])
    np.testing.assert_array_equal(found["MDM2"].restore(found["MDM2"].values), X[:, 1])


def test_genes_and_plain_columns_of_obs_can_be_asked_for(tmp_path):
    path = tmp_path / "cells.h5ad"
    write_h5ad(path)
    table = read_mixed(path, ["TP53", "age", "smokes"])
    assert table.rest == ("MDM2", "FAS", "BAX")
    assert [column.kind for column in table.columns[1:3]] == ["continuous", "binary"]
    np.testing.assert_array_equal(table.columns[1].values, CLINIC["age"])


ASKED = {
    "site": "column 'site' has 3 unordered levels",
    "smoke": "query 'smoke' is not a column of the table; did you mean 'smokes'",
}


@pytest.mark.parametrize(("query", "message"), ASKED.items())
def test_refusals_in_obs(tmp_path, query, message):
    path = tmp_path / "cells.h5ad"
    write_h5ad(path)
    with pytest.raises(ValueError, match=message):
        read_mixed(path, [query])


def test_repeated_genes_are_refused_by_name(tmp_path):
    path = tmp_path / "cells.h5ad"
    write_h5ad(path, names=["TP53", "MDM2", "TP53", "BAX"])
    with pytest.raises(ValueError, match="TP53"):
        read_mixed(path, ["age"])


@pytest.mark.parametrize("damage", ["no X", "another layout", "cut off"])
def test_a_file_that_is_no_whole_matrix_is_refused_in_a_line(tmp_path, damage):
    anndata, h5py = pytest.importorskip("anndata"), pytest.importorskip("h5py")
    path = tmp_path / "cells.h5ad"
    if damage == "no X":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            anndata.AnnData(obs=pd.DataFrame({"a": [1.0, 2.0]}, index=["x", "y"])).write_h5ad(path)
    elif damage == "another layout":
        with h5py.File(path, "w") as file:
            file["genes"] = X
    else:
        write_h5ad(path)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ValueError, match=r"^cannot read 'cells\.h5ad': [^\n]+$"):
        read_mixed(path, ["a"])


def test_text_that_is_not_text(tmp_path):
    path = tmp_path / "packed.csv"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n2,3\n"))
    with pytest.raises(ValueError, match="cannot read 'packed"):
        read_mixed(path, ["a"])
