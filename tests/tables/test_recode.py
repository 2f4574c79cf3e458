"""New rows coded like the table that was fitted, in whatever form and spelling they come."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from markovblanket.tables.columns import Column
from markovblanket.tables.recode import read_like
from markovblanket.tables.table import read_mixed

N = 24
GRADES = ["low", "mid", "high", "worst"]  # the last one was never observed
KINDS = {"pain": ["None", "mild", "severe"], "nodes": "count", "order": [3, 2, 1]}


def every(values, step=1):
    return [values[(k // step) % len(values)] for k in range(N)]


def clinic() -> pd.DataFrame:
    """A column of each kind and type, with gaps where pandas allows them."""
    frame = pd.DataFrame(
        {
            "age": [40 + 1.25 * k for k in range(N)],
            "grade": pd.Categorical(every(["mid", "low", "high"]), GRADES, ordered=True),
            "nodes": every([0, 1, 2, 5, 8]),
            "pain": every(["None", "mild", "severe"], 2),
            "sex": every(["f", "m"], 3),
            "dose": every([0.5, 1.0, 2.5]),
            "smokes": every([True, False], 5),
            "order": every([1, 2, 3], 2),
        }
    )
    gaps = ("age", "grade", "pain", "sex", "dose")
    return frame.assign(**{name: frame[name].mask(frame.index == 7) for name in gaps})


TABLE = read_mixed(clinic(), ["age"], KINDS)
FITTED = {column.name: column for column in TABLE.columns}


def codes(name, cells, make=pd.DataFrame):
    """Some new cells of one fitted column."""
    return read_like(make({name: cells}), [FITTED[name]])[:, 0].tolist()


def objects(cells):
    return pd.Series(cells, dtype=object)


# Forms ------------------------------------------------------------------------------------------------


def as_csv(frame, tmp_path):
    # An empty cell is a gap; "NA" as well, beside the level "None" of another column.
    path = tmp_path / "new.csv"
    frame.to_csv(path, index=False, na_rep="NA")
    return path


FORMS = {
    "pandas": lambda frame, _: frame,
    "pandas, all objects": lambda frame, _: frame.astype(object),
    "polars": lambda frame, _: pl.from_pandas(frame),
    "array": lambda frame, _: frame[list(FITTED)].to_numpy(object),
    "csv": as_csv,
    "csv, as text": lambda frame, tmp_path: str(as_csv(frame, tmp_path)),
    "masked array": lambda frame, _: np.ma.masked_invalid(frame[["age", "dose"]].to_numpy(float)),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_fitted_table_itself_gets_its_own_codes_in_every_form(form, tmp_path):
    columns = [FITTED[name] for name in (("age", "dose") if form == "masked array" else FITTED)]
    found = read_like(FORMS[form](clinic(), tmp_path), columns)
    np.testing.assert_array_equal(found, np.column_stack([column.values for column in columns]))
    assert np.isnan(found).any()
    assert len(np.unique(found[~np.isnan(found)])) > 10


@pytest.mark.parametrize("form", ["pandas", "polars", "csv"])
def test_columns_are_found_by_name_among_any_others(form, tmp_path):
    shuffled = clinic().iloc[:, ::-1].assign(visit=datetime.date(2024, 1, 1), note="free text", more=[1j] * N)
    shuffled = shuffled.drop(columns="more") if form == "polars" else shuffled
    found = read_like(FORMS[form](shuffled, tmp_path), TABLE.columns)
    np.testing.assert_array_equal(found, np.column_stack([column.values for column in TABLE.columns]))


def test_an_absent_column_is_named_with_the_nearest_one():
    with pytest.raises(ValueError, match="variable 'smokes' is not a column of the table; did you mean 'smoke'"):
        read_like(clinic().rename(columns={"smokes": "smoke"}), TABLE.columns)


def test_an_array_of_another_width_is_refused():
    with pytest.raises(ValueError, match="an array of 2 columns for 8 variables; give them in order"):
        read_like(np.zeros((3, 2)), TABLE.columns)


NAMES = {
    "numbers, of which one column was text": (["age", 0, 1], [0, 1]),
    "numbers, beside a new column of text": ([5, 0, 1], [0, 1, "note"]),
}


@pytest.mark.parametrize(("fitted", "new"), NAMES.values(), ids=NAMES)
def test_numbered_columns_are_found_whatever_stands_beside_them(fitted, new):
    rng = np.random.default_rng(0)
    table = read_mixed(pd.DataFrame(rng.random((N, len(fitted))), columns=fitted), [fitted[0]])
    rows = pd.DataFrame(rng.random((4, len(new))), columns=new)
    np.testing.assert_array_equal(read_like(rows, table.columns[1:]), rows[[0, 1]])


# Spellings --------------------------------------------------------------------------------------------

SPELLINGS = {
    "whole numbers": ("nodes", [5, 0], [3, 0]),
    "as floats": ("nodes", [5.0, 0.0], [3, 0]),
    "as text": ("nodes", ["5", "0"], [3, 0]),
    "as text of floats, with blanks": ("nodes", [" 5.0 ", "0e0"], [3, 0]),
    "as decimals": ("nodes", [decimal.Decimal("5.0"), decimal.Decimal(0)], [3, 0]),
    "as NumPy's": ("nodes", [np.int8(5), np.float32(0)], [3, 0]),
    "real levels as text": ("dose", ["0.50", "2.5", "1"], [0, 2, 1]),
    "real levels as integers": ("dose", [1, 1], [1, 1]),
    "words with blanks": ("sex", [" m", "f "], [1, 0]),
    "bytes": ("sex", [b"m", b"f"], [1, 0]),
    "truth as numbers": ("smokes", [1, 0], [1, 0]),
    "truth as text of numbers": ("smokes", ["1", "0.0"], [1, 0]),
    "numbers as truth": ("nodes", [True, False], [1, 0]),
    "a declared order, descending": ("order", ["1", 3.0, 2], [2, 0, 1]),
    "categories as words": ("grade", ["high", "low"], [2, 0]),
    "continuous as text": ("age", ["41.5", " 1e2"], [41.5, 100]),
    "continuous as decimals": ("age", [decimal.Decimal("41.5"), 3], [41.5, 3]),
    "continuous as truth": ("age", [True, False], [1, 0]),
}


@pytest.mark.parametrize(("name", "cells", "expected"), SPELLINGS.values(), ids=SPELLINGS)
def test_a_level_is_known_in_any_spelling(name, cells, expected):
    assert codes(name, objects(cells)) == expected


def test_numbers_of_any_type_keep_their_value():
    for dtype in ("int8", "uint64", "float32", "Int64", "Float32"):
        assert codes("nodes", pd.Series([8, 2], dtype=dtype)) == [4, 2]
        assert codes("age", pd.Series([41, 50], dtype=dtype)) == [41, 50]


def test_a_category_is_known_by_its_label_not_by_its_place():
    cells = pd.Series(pd.Categorical(["high", "low"], ["high", "low"], ordered=True))
    assert codes("grade", cells) == [2, 0]
    assert codes("sex", pd.Series(pd.Categorical(["m", None], ["m", "f"]))) == pytest.approx(
        [1, np.nan], nan_ok=True
    )
    assert codes("grade", pl.Series(["mid", "low"], dtype=pl.Enum(["mid", "low"])), pl.DataFrame) == [1, 0]


# What was never observed ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "cell", "expected"),
    [
        ("nodes", 3, 2.5),
        ("nodes", "4", 2.5),
        ("nodes", 0.5, 0.5),
        ("nodes", -1, -0.5),
        ("nodes", 9, 4.5),
        ("nodes", 1e300, 4.5),
        ("dose", 0.75, 0.5),
        ("dose", 0.4999999, -0.5),
        ("dose", 100, 2.5),
    ],
)
def test_a_number_between_levels_gets_the_half_code_between_theirs(name, cell, expected):
    known = FITTED[name].levels[1]
    assert codes(name, objects([known, cell])) == [1, expected]


UNSEEN = {
    "a word": ("pain", "some", r"column 'pain' has 'some', which is none of its levels 'None', 'mild', 'severe'"),
    "a word among numbers": (
        "nodes",
        "many",
        r"column 'nodes' has 'many', which is none of its levels 0, 1",
    ),
    "a category that no row had": ("grade", "worst", r"column 'grade' has 'worst', which is none of its levels"),
    "another case": ("sex", "F", r"column 'sex' has 'F', which is none of its levels 'f', 'm'"),
    "a number among words": ("sex", 1, r"column 'sex' has 1, which is none of its levels 'f', 'm'"),
    "a third number beside two": ("smokes", 2, r"column 'smokes' has 2, which is none of its levels False, True"),
    "a number in an order that does not ascend": ("order", 2.5, r"column 'order' has 2.5, which is none of its"),
    "a word where numbers were": ("age", "old", r"column 'age' holds 'old', but the fitted column held numbers"),
    "a date": ("age", datetime.date(2024, 1, 1), r"column 'age' holds dates or times"),
    "a time among levels": ("nodes", np.datetime64("2024-01-01"), r"column 'nodes' holds dates or times"),
    "complex numbers": ("nodes", 1j, r"column 'nodes' holds complex numbers"),
}


@pytest.mark.parametrize(("name", "cell", "message"), UNSEEN.values(), ids=UNSEEN)
def test_what_the_fitted_column_could_not_hold_is_refused_by_name(name, cell, message):
    with pytest.raises(ValueError, match=message):
        codes(name, objects([cell, None]))


def test_nested_cells_are_refused_by_name():
    with pytest.raises(ValueError, match="column 'nodes' holds lists"):
        codes("nodes", objects([[1], [2]]))


INFINITE = {"inf": np.inf, "-inf": -np.inf, "text": "inf", "more text": "-Infinity", "too large": 10**400}


@pytest.mark.parametrize("cell", INFINITE.values(), ids=INFINITE)
def test_infinities_among_numbers_are_refused(cell):
    with pytest.raises(ValueError, match="column 'age' has infinite values; replace them or leave the rows out"):
        codes("age", objects([1.0, cell]))


@pytest.mark.parametrize("cell", INFINITE.values(), ids=INFINITE)
def test_infinities_among_levels_are_refused(cell):
    with pytest.raises(ValueError, match="column 'nodes'"):
        codes("nodes", objects([1, cell]))


# Missing cells ----------------------------------------------------------------------------------------

GAPS = [None, np.nan, np.float32("nan"), pd.NA, decimal.Decimal("nan"), "", "NA", " n/a ", "nan", "<NA>", "?", "."]


@pytest.mark.parametrize("gap", GAPS, ids=repr)
@pytest.mark.parametrize(("name", "cell", "code"), [("age", 41.5, 41.5), ("sex", "m", 1), ("nodes", 5, 3)])
def test_missing_cells_in_every_spelling(name, cell, code, gap):
    assert codes(name, objects([cell, gap])) == pytest.approx([code, np.nan], nan_ok=True)


def test_a_level_that_reads_like_a_gap_is_none(tmp_path):
    frame = pd.DataFrame({"pain": ["None", "NA", "mild", None], "sex": ["None", "f", "NA", ""]})
    columns = [FITTED["pain"], FITTED["sex"]]
    expected = [[0, np.nan], [np.nan, 0], [1, np.nan], [np.nan, np.nan]]
    np.testing.assert_array_equal(read_like(frame, columns), expected)
    np.testing.assert_array_equal(read_like(pl.from_pandas(frame), columns), expected)
    path = tmp_path / "new.csv"
    frame.to_csv(path, index=False)
    np.testing.assert_array_equal(read_like(path, columns), expected)


PAIN = Column(
    "pain", "ordinal", np.arange(2.0), ("mild", "severe"), "ordered category", ("None", "mild", "severe")
)


def test_a_category_that_reads_like_a_gap_and_was_never_observed_is_refused():
    with pytest.raises(ValueError, match="column 'pain' has 'None'"):
        read_like(pd.DataFrame({"pain": ["None", "mild"]}), [PAIN])


def test_a_category_that_reads_like_a_gap_is_refused_in_a_file_too(tmp_path):
    (tmp_path / "new.csv").write_text("pain\nNone\nmild\n")
    with pytest.raises(ValueError, match="column 'pain' has 'None'"):
        read_like(tmp_path / "new.csv", [PAIN])


EMPTY = {
    "pandas, numbers": pd.DataFrame({"age": [np.nan] * 3, "sex": [np.nan] * 3}),
    "pandas, None": pd.DataFrame({"age": [None] * 3, "sex": [None] * 3}, dtype=object),
    "pandas, text": pd.DataFrame({"age": ["NA"] * 3, "sex": [""] * 3}),
    "polars": pl.DataFrame({"age": [None] * 3, "sex": [None] * 3}),
    "array": np.full((3, 2), np.nan),
}


@pytest.mark.parametrize("table", EMPTY.values(), ids=EMPTY)
def test_a_column_may_be_all_missing(table):
    found = read_like(table, [FITTED["age"], FITTED["sex"]])
    np.testing.assert_array_equal(found, np.full((3, 2), np.nan))


def test_a_column_of_a_file_may_be_all_missing(tmp_path):
    (tmp_path / "new.csv").write_text("age,sex,nodes\n,NA,1\n,?,2\n")
    found = read_like(tmp_path / "new.csv", [FITTED["age"], FITTED["sex"], FITTED["nodes"]])
    np.testing.assert_array_equal(found, [[np.nan, np.nan, 1], [np.nan, np.nan, 2]])


def test_truth_with_gaps(tmp_path):
    (tmp_path / "new.csv").write_text("smokes,age\nTrue,1\n,2\nFalse,3\n")
    polars = pl.DataFrame({"smokes": [True, None, False]})
    nullable = pd.DataFrame({"smokes": pd.array([True, None, False], dtype="boolean")})
    for table in (tmp_path / "new.csv", polars, nullable):
        np.testing.assert_array_equal(read_like(table, [FITTED["smokes"]])[:, 0], [1, np.nan, 0])


def test_reading_leaves_the_new_table_alone():
    array = np.array([[41.0, 1.0], [np.nan, 0.0]])
    before = array.copy()
    found = read_like(array, [FITTED["age"], FITTED["smokes"]])
    found[:] = -1
    np.testing.assert_array_equal(array, before)
