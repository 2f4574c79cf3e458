"""From the codes of a column back to its cells."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from markovblanket.tables.table import read_mixed
from support.one_column import N, column, cycle


def some(cells):
    return st.lists(st.one_of(st.none(), cells), min_size=3, max_size=60)


def varies(cells):
    return len({cell for cell in cells if cell is not None}) > 1


FINITE = st.floats(allow_nan=False, allow_infinity=False)
WORDS = st.sampled_from(["I", "II", "III", "IV"])


@settings(deadline=None)
@given(cells=st.one_of(some(st.booleans()), some(st.integers(-(2**53), 2**53)), some(FINITE)).filter(varies))
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_numbers_come_back(make, cells):
    found = column(cells, make=make)
    back = found.restore(found.values)
    gaps = [cell is None for cell in cells]
    np.testing.assert_array_equal(found.missing, gaps)
    assert [cell for cell, gap in zip(back, gaps, strict=True) if not gap] == [c for c in cells if c is not None]
    if found.complete:
        assert back.dtype.kind == np.array(cells).dtype.kind


@settings(deadline=None)
@given(cells=some(WORDS).filter(varies))
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_words_come_back(make, cells):
    found = column(cells, ["IV", "III", "II", "I"], make)
    assert found.restore(found.values).tolist() == cells
    assert set(found.levels) == {cell for cell in cells if cell is not None}
    assert sorted(found.levels, key=["IV", "III", "II", "I"].index) == list(found.levels)
    assert set(np.unique(found.values[~found.missing])) == set(range(len(found.levels)))


@settings(deadline=None)
@given(cells=some(st.integers(0, 40)).filter(varies), data=st.data())
def test_codes_keep_the_order_of_the_cells(cells, data):
    kind = data.draw(st.sampled_from(["ordinal", "count", "continuous"]))
    found = column(cells, kind)
    seen = [(value, cell) for value, cell in zip(found.values, cells, strict=True) if cell is not None]
    assert all((a < b) == (x < y) for a, x in seen for b, y in seen)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float32", "float64", "bool"])
def test_types_come_back(dtype):
    cells = np.array(cycle([0, 1, 1, 0])).astype(dtype)
    found = column(cells)
    back = found.restore(found.values)
    assert (found.dtype, back.dtype.name) == (dtype, dtype)
    np.testing.assert_array_equal(back, cells)


def test_a_continuous_whole_number_is_rounded_on_its_way_back():
    found = column(list(range(30)), "continuous")
    assert found.restore(np.array([2.4, 2.6])).tolist() == [2, 3]


def test_all_categories_are_remembered():
    found = column(pd.Categorical(cycle(["lo", "hi"]), ["lo", "mid", "hi"], ordered=True))
    assert (found.dtype, found.categories) == ("ordered category", ("lo", "mid", "hi"))


def test_columns_cannot_be_written_to():
    for cells in ([k / 7 for k in range(N)], cycle(["a", "b"]), cycle([1, 2, 3])):
        with pytest.raises(ValueError, match="read-only"):
            column(cells).values[0] = 1.0


def test_the_table_given_is_left_as_it_was():
    X = np.asfortranarray(np.random.default_rng(3).standard_normal((6, 3)))
    table = read_mixed(X, [0])
    X[:] = 0.0
    assert table.columns[0].values.all()
    assert X.flags.writeable
