"""Tables in, and what is refused by name."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from markovblanket.tables.table import Standardisation, read, read_mixed


def frame() -> pd.DataFrame:
    return pd.DataFrame({"b": [1.0, 2.0, 4.0], "a": [3, 1, 2], "c": [True, False, True]})


@pytest.mark.parametrize("make", [frame, lambda: pl.from_pandas(frame())], ids=["pandas", "polars"])
def test_query_first_and_the_rest_in_the_tables_order(make):
    table = read(make(), query=["c"])
    assert table.query == ("c",)
    assert table.rest == ("b", "a")
    np.testing.assert_array_equal(table.X1, [[1.0], [0.0], [1.0]])
    np.testing.assert_array_equal(table.X2, [[1, 3], [2, 1], [4, 2]])


def test_arrays_are_named_by_position():
    table = read(np.arange(12.0).reshape(3, 4), query=[2, 0])
    assert (table.query, table.rest) == ((2, 0), (1, 3))
    np.testing.assert_array_equal(table.X1, [[2, 0], [6, 4], [10, 8]])


def test_one_name_needs_no_list():
    assert read(frame(), query="a").query == ("a",)
    assert read(frame().to_numpy().astype(float), query=1).query == (1,)


def test_columns_numbered_by_integers_keep_their_numbers():
    table = read(pd.DataFrame(np.eye(3), columns=[10, 20, 30]), query=[20])
    assert (table.query, table.rest) == ((20,), (10, 30))


def with_column(**columns):
    return frame().assign(**columns)


REFUSED = {
    "absent query": (frame(), ["tumor"], "query 'tumor' is not a column"),
    "a slip of the pen": (with_column(tumour=[1, 2, 3]), ["tumor"], "did you mean 'tumour'"),
    "position out of range": (np.eye(3), [3], "query 3 is not a column"),
    "empty query": (frame(), [], "query is empty"),
    "repeated query": (frame(), ["a", "a"], "query names 'a' more than once"),
    "duplicate names": (pd.DataFrame(np.eye(3), columns=["x", "x", "y"]), ["y"], "duplicate column names: 'x'"),
    "missing cells": (with_column(d=[1.0, np.nan, np.nan]), ["a"], "column 'd' has 2 missing"),
    "infinite cells": (with_column(d=[1.0, np.inf, 2.0]), ["a"], "column 'd' has infinite"),
    "text": (with_column(d=["u", "v", "w"]), ["a"], "column 'd' is not numeric"),
    "dates": (with_column(d=pd.date_range("2020", periods=3)), ["a"], "column 'd' holds dates"),
    "complex": (with_column(d=[1j, 2j, 3j]), ["a"], "column 'd' holds complex"),
    "a vector": (np.arange(5.0), [0], "rows and columns"),
    "a cube": (np.zeros((2, 2, 2)), [0], "rows and columns"),
}


@pytest.mark.parametrize(("table", "query", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals_name_the_column(table, query, message):
    with pytest.raises(ValueError, match=message):
        read(table, query)


@pytest.mark.parametrize("reader", [read, read_mixed])
def test_nothing_need_be_left_beside_the_query(reader):
    """Then the whole network is asked for; the order is that of the question."""
    made = reader(frame(), ["c", "a", "b"])
    assert (made.query, made.rest) == (("c", "a", "b"), ())
    if reader is read:
        np.testing.assert_array_equal(made.X1, frame()[["c", "a", "b"]])
        assert made.X2.shape == (3, 0)


def test_what_is_no_table_is_a_type_error():
    with pytest.raises(TypeError, match="pandas or polars frame or a NumPy array, not dict"):
        read({"a": [1, 2]}, ["a"])


def test_standardised_columns_have_mean_0_and_mean_square_1():
    X = np.random.default_rng(0).standard_normal((50, 4)) * [1, 1e-150, 1e150, 1e-300] + [0, 1e-150, 3e150, 1e-299]
    Z = Standardisation.of(X, "abcd").apply(X)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-13)
    np.testing.assert_allclose((Z**2).mean(axis=0), 1, rtol=1e-12)


@pytest.mark.parametrize("value", [0.0, 3.0, 1e300, 0.1, 1e-300])
def test_constant_columns_are_refused_by_name(value):
    X = np.column_stack([np.arange(7.0), np.full(7, value)])
    with pytest.raises(ValueError, match="column 'flat' is constant"):
        Standardisation.of(X, ["fine", "flat"])


@pytest.mark.parametrize("rows", [0, 1])
def test_too_few_rows_to_standardise(rows):
    with pytest.raises(ValueError, match=rf"{rows} row\(s\).*at least 2"):
        Standardisation.of(np.ones((rows, 2)), "ab")


# Tables of several kinds


def mixed() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": [61.5, np.nan, 48.25, 70.5],
            "stage": ["II", "I", None, "III"],
            "sex": ["f", "m", "m", "f"],
            "visits": [1, 2, 3, 3],
        }
    )


ORDER = {"stage": ["I", "II", "III"]}


@pytest.mark.parametrize(
    "make", [mixed, lambda: pl.DataFrame(mixed().to_dict("list"), strict=False)], ids=["pandas", "polars"]
)
def test_mixed_tables_put_the_query_first(make):
    table = read_mixed(make(), ["stage", "sex"], ORDER)
    assert (table.query, table.rest, table.n) == (("stage", "sex"), ("age", "visits"), 4)
    assert [column.name for column in table.columns] == ["stage", "sex", "age", "visits"]
    assert [column.kind for column in table.columns] == ["ordinal", "binary", "continuous", "ordinal"]
    values = [[1, 0, np.nan, 2], [0, 1, 1, 0], [61.5, np.nan, 48.25, 70.5], [0, 1, 2, 2]]
    np.testing.assert_array_equal([column.values for column in table.columns], values)


def test_arrays_of_objects_are_tables_too():
    table = read_mixed(mixed().to_numpy(dtype=object), 1, {1: ORDER["stage"]})
    assert (table.query, table.rest) == ((1,), (0, 2, 3))
    np.testing.assert_array_equal(table.columns[0].values, [1, 0, np.nan, 2])
    assert table.columns[3].levels == (1, 2, 3)


@pytest.mark.parametrize("dtype", ["U4", "S4"])
def test_arrays_of_text_are_tables_too(dtype):
    table = read_mixed(np.array([["1.5", "a"], ["?", "b"], ["2", "a"]], dtype=dtype), [1])
    assert table.columns[0].levels == ("a", "b")
    np.testing.assert_array_equal(table.columns[1].restore(table.columns[1].values), [1.5, np.nan, 2.0])


@pytest.mark.parametrize("names", [[10, 20, 30, 40], [("a", 1), "b", 3, None]], ids=["numbers", "anything"])
def test_names_need_not_be_text(names):
    table = mixed()
    table.columns = pd.Index(names, dtype=object)
    query = names[2] if all(isinstance(name, int) for name in names) else str(names[2])
    order = names[1] if isinstance(names[1], int) else str(names[1])
    found = read_mixed(table, query, {order: ORDER["stage"]})
    assert found.columns[0].levels == ("f", "m")
    assert found.columns[2].levels == ("I", "II", "III")


def test_rows_without_any_cell_are_kept():
    table = mixed().reindex(range(5))  # the last row has no cell
    found = read_mixed(table, "sex", ORDER)
    assert found.n == 5
    assert all(column.missing[4] for column in found.columns)


def test_a_table_describes_itself():
    assert read_mixed(mixed(), ["sex"], ORDER).describe() == [
        {"name": "sex", "role": "query", "kind": "binary", "levels": 2, "missing": 0},
        {"name": "age", "role": "rest", "kind": "continuous", "levels": 0, "missing": 1},
        {"name": "stage", "role": "rest", "kind": "ordinal", "levels": 3, "missing": 1},
        {"name": "visits", "role": "rest", "kind": "ordinal", "levels": 3, "missing": 0},
    ]


MIXED_REFUSED = {
    name: REFUSED[name]
    for name in REFUSED
    if name not in ("missing cells", "infinite cells", "text", "dates", "complex")
}


@pytest.mark.parametrize(("table", "query", "message"), MIXED_REFUSED.values(), ids=MIXED_REFUSED)
def test_mixed_tables_refuse_the_same_names_and_shapes(table, query, message):
    with pytest.raises(ValueError, match=message):
        read_mixed(table, query)


WRONG = {
    "unknown column": ({"stag": "ordinal"}, "kinds: 'stag' is not a column of the table; did you mean 'stage'"),
    "unknown kind": ({"stage": "nominal"}, r"kinds={'stage': 'nominal'}: a kind is one of \('continuous'"),
    "no kind": ({"stage": None}, "kinds={'stage': None}: a kind is one of"),
}


@pytest.mark.parametrize(("kinds", "message"), WRONG.values(), ids=WRONG)
def test_wrong_declarations_are_refused(kinds, message):
    with pytest.raises(ValueError, match=message):
        read_mixed(mixed(), ["sex"], kinds)


EMPTY = {
    "no rows": (mixed().iloc[:0], "the table is empty: 0 row"),
    "no columns": (pd.DataFrame(index=range(3)), "the table is empty.* 0 column"),
    "an empty array": (np.empty((0, 3)), "the table is empty"),
    "one row": (mixed().iloc[:1], "the table has 1 row"),
    "structured": (np.zeros(3, dtype=[("a", float), ("b", int)]), r"structured array.*pandas.DataFrame\(array\)"),
    "complex array": (np.ones((3, 2)) * 1j, "column 0 holds complex numbers"),
    "array of dates": (np.zeros((3, 2), dtype="datetime64[ns]"), "column 0 holds dates"),
}


@pytest.mark.parametrize(("table", "message"), EMPTY.values(), ids=EMPTY)
def test_what_holds_no_table(table, message):
    with pytest.raises(ValueError, match=message):
        read_mixed(table, [0])


def test_other_objects_are_a_type_error():
    with pytest.raises(TypeError, match="pandas or polars frame or a NumPy array, not dict"):
        read_mixed({"a": [1, 2]}, ["a"])
