"""Which kind a column is, what counts as missing, and what is refused."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

from markovblanket.tables.columns import NUMBERS_PER_CHUNK
from markovblanket.tables.kinds import Profile
from markovblanket.tables.table import read_mixed
from support.one_column import N, column, cycle

KINDS = {
    "booleans": (cycle([True, False]), "binary", (False, True)),
    "two numbers": (cycle([7.5, -1.25]), "binary", (-1.25, 7.5)),
    "two words": (cycle(["yes", "no"]), "binary", ("no", "yes")),
    "twelve whole numbers": (cycle(list(range(12))), "ordinal", tuple(range(12))),
    "negative whole numbers": (cycle([-1, 0, 1]), "ordinal", (-1, 0, 1)),
    "whole floats": (cycle([3.0, 1.0, 2.0]), "ordinal", (1.0, 2.0, 3.0)),
    "thirteen with ties": (cycle(list(range(13))), "count", tuple(range(13))),
    "thirteen, one negative": (cycle(list(range(-1, 12))), "continuous", ()),
    "just under half": (cycle(list(range(19))), "count", tuple(range(19))),
    "half": (cycle(list(range(20))), "continuous", ()),
    "five fractions": (cycle([0.5, 1, 1.5, 2, 2.5]), "ordinal", (0.5, 1.0, 1.5, 2.0, 2.5)),
    "six fractions": (cycle([0.5, 1, 1.5, 2, 2.5, 3]), "continuous", ()),
    "five fractions, few rows": (cycle([0.5, 1, 1.5, 2, 2.5], 19), "continuous", ()),
    "five fractions, few cells": (cycle([0.5, 1, 1.5, 2, 2.5], 19) + [None] * 9, "continuous", ()),
    "different numbers": ([k / 7 for k in range(N)], "continuous", ()),
    "decimals": (cycle([Decimal("0.5"), Decimal("2")]), "binary", (0.5, 2.0)),
    "fractions": (cycle([Fraction(1, 2), Fraction(3, 2)]), "binary", (0.5, 1.5)),
    "text of whole numbers": (cycle(["3", " 1", "2 "]), "ordinal", (1, 2, 3)),
    "text of numbers": ([f"{k / 7:.4f}" for k in range(N)], "continuous", ()),
    "text with an exponent": (cycle(["1e3", "2E3", "+5"]), "ordinal", (5.0, 1000.0, 2000.0)),
    "numbers and their text": (cycle([1, "2", 3.0]), "ordinal", (1.0, 2.0, 3.0)),
    "bytes": (cycle([b"a", b"b"]), "binary", ("a", "b")),
    "ordered categories": (
        pd.Categorical(cycle(["lo", "hi", "mid"]), ["lo", "mid", "hi"], ordered=True),
        "ordinal",
        ("lo", "mid", "hi"),
    ),
    "ordered numbers": (pd.Categorical(cycle([1, 2, 3]), [3, 1, 2], ordered=True), "ordinal", (3, 1, 2)),
    "an empty category": (
        pd.Categorical(cycle(["lo", "hi"]), ["lo", "mid", "hi"], ordered=True),
        "binary",
        ("lo", "hi"),
    ),
    "two categories": (pd.Categorical(cycle(["m", "f"])), "binary", ("f", "m")),
    "nullable integers": (pd.array(cycle([1, 2, None, 3]), dtype="Int64"), "ordinal", (1, 2, 3)),
    "nullable booleans": (pd.array(cycle([True, None, False]), dtype="boolean"), "binary", (False, True)),
    "objects with gaps": (pd.Series(cycle([True, None, False]), dtype=object), "binary", (False, True)),
}


@pytest.mark.parametrize(("cells", "kind", "levels"), KINDS.values(), ids=KINDS)
def test_kind_and_levels(cells, kind, levels):
    found = column(cells)
    assert (found.kind, found.levels) == (kind, levels)
    assert [type(level) for level in found.levels] == [type(level) for level in levels]


POLARS = {
    "enum": (pl.Series(cycle(["lo", "hi", None]), dtype=pl.Enum(["lo", "hi"])), "binary", ("lo", "hi")),
    "enum of three": (
        pl.Series(cycle(["b", "a", "c"]), dtype=pl.Enum(["c", "b", "a"])),
        "ordinal",
        ("c", "b", "a"),
    ),
    "categorical": (pl.Series(cycle(["y", "x", None]), dtype=pl.Categorical), "binary", ("x", "y")),
    "boolean with nulls": (pl.Series(cycle([True, None, False])), "binary", (False, True)),
    "integers with nulls": (pl.Series(cycle([2, None, 1, 3])), "ordinal", (1, 2, 3)),
    "nulls and NaN": (pl.Series(cycle([2.5, None, 1.5, float("nan")])), "binary", (1.5, 2.5)),
    "128 bits": (pl.Series(cycle([2, 1, 3]), dtype=pl.Int128), "ordinal", (1, 2, 3)),
    "text": (pl.Series(cycle(["2", "NA", "1"])), "binary", (1, 2)),
}


@pytest.mark.parametrize(("cells", "kind", "levels"), POLARS.values(), ids=POLARS)
def test_polars_columns(cells, kind, levels):
    found = column(cells, make=pl.DataFrame)
    assert (found.kind, found.levels) == (kind, levels)
    assert found.missing.sum() == sum(cell is None or cell != cell or cell == "NA" for cell in cells)


DECLARED = {
    "small integers as numbers": (cycle([3, 1, 2]), "continuous", "continuous", ()),
    "many integers as levels": (list(range(30)), "ordinal", "ordinal", tuple(range(30))),
    "few as counts": (cycle([0, 2, 5]), "count", "count", (0, 2, 5)),
    "two levels as ordinal": (cycle([0, 1]), "ordinal", "ordinal", (0, 1)),
    "booleans as numbers": (cycle([True, False]), "continuous", "continuous", ()),
    "words in order": (cycle(["II", "I", "III"]), ["I", "II", "III"], "ordinal", ("I", "II", "III")),
    "an order with levels to spare": (cycle(["II", "IV"]), ["I", "II", "III", "IV"], "binary", ("II", "IV")),
    "numbers in another order": (cycle([1, 2, 3]), (2, 3, 1), "ordinal", (2, 3, 1)),
    "numbers ordered as text": (cycle([1, 2, 3]), ["3", "2", "1"], "ordinal", (3, 2, 1)),
    "text ordered as numbers": (cycle(["1", "2", "03"]), [3, 2, 1], "ordinal", ("03", "2", "1")),
    "a missing word that is a level": (
        cycle(["None", "mild", "NA"]),
        ["None", "mild"],
        "binary",
        ("None", "mild"),
    ),
    "numeric categories": (pd.Categorical(cycle([5, 1, 3])), "ordinal", "ordinal", (1, 3, 5)),
    "numeric categories as numbers": (pd.Categorical(cycle([5, 1, 3])), "continuous", "continuous", ()),
    "another order of categories": (
        pd.Categorical(cycle(["a", "b"]), ordered=True),
        ["b", "a"],
        "binary",
        ("b", "a"),
    ),
}


@pytest.mark.parametrize(("cells", "kinds", "kind", "levels"), DECLARED.values(), ids=DECLARED)
def test_declared_kinds_and_orders(cells, kinds, kind, levels):
    found = column(cells, kinds)
    assert (found.kind, found.levels) == (kind, levels)


def test_an_ordered_categorys_own_words_are_never_missing():
    cells = pd.Categorical(["None", "mild", "NA", None], ["None", "NA", "mild"], ordered=True)
    np.testing.assert_array_equal(column(cells).values, [0, 2, 1, np.nan])


SPELLINGS = ["", "NA", "N/A", "na", "nan", "NaN", "null", "None", ".", "?", " NA ", "\t?", None, np.nan, pd.NA]


@pytest.mark.parametrize("gap", SPELLINGS, ids=repr)
def test_missing_in_all_spellings(gap):
    words = column(pd.Series(["u", gap, "v", gap], dtype=object))
    np.testing.assert_array_equal(words.values, [0, np.nan, 1, np.nan])
    numbers = column(pd.Series(["1.5", gap, "2.5", "4"], dtype=object))
    np.testing.assert_array_equal(numbers.missing, [False, True, False, False])
    assert (numbers.kind, numbers.complete) == ("continuous", False)


def test_masked_arrays_have_gaps():
    cells = np.ma.masked_equal(np.arange(12).reshape(6, 2), 4)
    assert read_mixed(cells, [1]).columns[1].missing.tolist() == [False, False, True, False, False, False]


REFUSED = {
    "categories": (
        cycle(list("abcdef")),
        None,
        r"'x' has 6 unordered levels; a Gaussian copula needs an order: "
        r"pass kinds=\{'x': \[...\]\} or indicator columns",
    ),
    "unordered numbers": (pd.Categorical(cycle([1, 2, 3])), None, "3 unordered levels"),
    "words declared ordinal": (cycle(list("abc")), "ordinal", "3 unordered levels"),
    "constant number": ([2.5] * N, None, "column 'x' is constant; leave it out"),
    "constant but for a gap": ([2.5, None] * N, None, "column 'x' is constant"),
    "constant word": (["a", "NA"] * N, None, "column 'x' is constant"),
    "one category": (pd.Categorical(["a"] * N, ["a", "b"], ordered=True), None, "column 'x' is constant"),
    "infinite": (cycle([1.0, np.inf, 2.0]), None, "column 'x' has infinite values; replace them"),
    "negative infinite": (cycle([1.0, -np.inf, 2.0]), None, "column 'x' has infinite"),
    "infinite text": (cycle(["1.0", "-inf", "2.0"]), None, "column 'x' has infinite"),
    "huge integers": (pd.Series(cycle([10**400, 1, 2]), dtype=object), None, "column 'x' has infinite"),
    "nothing": ([np.nan] * N, None, "column 'x' has no observed cell; leave it out"),
    "no words": (cycle(["NA", "", None]), None, "column 'x' has no observed cell"),
    "no categories": (pd.Categorical([None] * N, ["a", "b"]), None, "column 'x' has no observed cell"),
    "dates": (pd.date_range("2020", periods=N), None, "column 'x' holds dates or times; count the days"),
    "NaT": ([pd.NaT] * N, None, "column 'x' holds dates"),
    "time spans": (pd.to_timedelta(range(N)), None, "column 'x' holds dates or times"),
    "Python dates": (cycle([datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)]), None, "holds dates"),
    "clock times": (cycle([datetime.time(1), datetime.time(2)]), None, "holds dates or times"),
    "dates as text": ([f"2020-01-{k:02d}" for k in range(1, 31)], None, "holds dates"),
    "periods": (pd.period_range("2020", periods=N), None, "column 'x' holds objects of type Period"),
    "free text": (
        [f"patient {k}" for k in range(51)],
        None,
        "51 different texts and looks like free text or an id",
    ),
    "a few words among numbers": (
        ["<5", *map(str, range(9))],
        None,
        "numbers except '<5'; write these as numbers",
    ),
    "underscores": (cycle(["1_000", "2", "3", "4"]), None, "numbers except '1_000'"),
    "complex": (cycle([1j, 2j]), None, "column 'x' holds complex numbers"),
    "lists": ([[k] for k in range(N)], None, "column 'x' holds lists or other nested objects"),
    "tuples": ([(k,) for k in range(N)], None, "column 'x' holds objects of type tuple"),
    "text as numbers": (cycle(["a", "b"]), "continuous", r"'x' holds text, so it is not continuous; pass kinds="),
    "text as count": (cycle(["a", "b"]), "count", "not count"),
    "three as binary": (cycle([1, 2, 3]), "binary", "column 'x' has 3 levels, so it is not binary"),
    "three words as binary": (cycle(list("abc")), "binary", "column 'x' has 3 levels, so it is not binary"),
    "negative count": (cycle([-1, 0, 1]), "count", "'x' is not a count.*declare it 'continuous'"),
    "fractional count": (cycle([0, 0.5, 1]), "count", "'x' is not a count"),
    "outside the order": (cycle(["I", "II", "IV"]), ["I", "II"], "column 'x' has 'IV' outside its declared order"),
    "numbers outside": (cycle([1, 2, 3]), [1, 2], "column 'x' has 3 outside its declared order"),
    "level twice": (cycle(["I", "II"]), ["I", "II", "I"], "column 'x' has an order that names a level twice"),
}


@pytest.mark.parametrize(("cells", "kinds", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals_name_the_column_and_the_way_out(cells, kinds, message):
    with pytest.raises(ValueError, match=message):
        column(cells, kinds)


@pytest.mark.parametrize("cells", [[[1], [2]], [{"a": 1}, {"a": 2}]], ids=["lists", "structs"])
def test_nested_polars_columns_are_refused(cells):
    with pytest.raises(ValueError, match="column 'x' holds lists or other nested"):
        column(cells, make=pl.DataFrame)


def test_alike_columns_are_refused_together():
    X = np.random.default_rng(1).standard_normal((5, 12))
    X[:, 3:11] = 1.0
    with pytest.raises(
        ValueError, match=r"column 3 is constant; leave it out \(likewise 4, 5, 6, 7, 8 and 2 more\)"
    ):
        read_mixed(X, [0])


def test_a_wide_block_is_judged_in_pieces_as_it_is_in_one():
    X = np.random.default_rng(2).integers(0, 40, (NUMBERS_PER_CHUNK // 16, 40)).astype(float)
    X[::7, 5] = np.nan
    X[:, 17] += 0.25
    whole, single = Profile.of(X), [Profile.of(X[:, [k]]) for k in range(X.shape[1])]
    assert whole.kinds() == [profile.kinds()[0] for profile in single]
    assert whole.distinct.tolist() == [len(np.unique(x[~np.isnan(x)])) for x in X.T]
