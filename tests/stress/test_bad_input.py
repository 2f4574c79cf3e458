"""Bad input at every door, as a table: name | input | answer.

An answer is the whole sentence of a refusal, or what is true of the posterior. Of every posterior it is also true
that each query variable meets each other variable, under its name, with finite numbers.
"""

from __future__ import annotations

import gzip
import itertools
import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import markovblanket as mb
from markovblanket.cli import _fit as fitting
from markovblanket.cli import _output_folder, main
from markovblanket.cli._options import in_options
from markovblanket.tables import _frames
from markovblanket.tables.columns import shown

pytestmark = pytest.mark.filterwarnings("ignore:not converged")

N = 30
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 4))
X[:, 1] = X[:, 0] + 0.2 * X[:, 1]
PLAIN = pd.DataFrame(X, columns=list("abcd"))  # b follows a; c and d know nothing
x, k = PLAIN["c"].to_numpy(), np.arange(N)
S = X.T @ X
TINY: dict[str, Any] = {"chains": 1, "warmup": 20, "draws": 20, "seed": 1, "progress": False}

Answer = str | Callable[[mb.Posterior], bool]


# How a table, a question or an option is put


def ask(table: Any = None, query: Any = "a", **options: Any) -> Callable[[], mb.Posterior]:
    return lambda: mb.estimate(table, query, **(TINY | options))


def c_is(column: Any, **options: Any) -> Callable[[], mb.Posterior]:
    """The plain table with another column c."""
    return ask(PLAIN.assign(c=column), **options)


def named(*names: Any, query: Any = "a", **options: Any) -> Callable[[], mb.Posterior]:
    table = PLAIN.copy()
    table.columns = pd.Index(names, dtype=object, tupleize_cols=False)
    return ask(table, query, **options)


def scatter(matrix: Any, n: Any = N, query: Any = 0, **options: Any) -> Callable[[], mb.Posterior]:
    return ask(None, query, scatter=matrix, n=n, **options)


# How an answer is put


def found(variable: Any) -> Answer:
    """The surest edge is that to this variable."""
    return lambda posterior: posterior.edges(all=True)["variable"].iloc[0] == variable


def kind(expected: str, *levels: Any) -> Answer:
    """Column c is understood so, with these levels if any are given."""

    def check(posterior: mb.Posterior) -> bool:
        (column,) = (one for one in posterior.observed.table.columns if one.name == "c")
        return column.kind == expected and (not levels or column.levels == levels)

    return check


def names(*expected: Any) -> Answer:
    """Query first."""
    return lambda posterior: (*posterior.query, *posterior.variables) == expected


ROWS_1 = "the table has 1 row; at least 2 are needed"
DATES = "column 'c' holds dates or times; count the days or hours from some point, or leave it out"
INFINITE = "column 'c' has infinite values; replace them or leave it out"
NO_CELL = "column 'c' has no observed cell; leave it out"
COMPLEX = "column 'c' holds complex numbers; leave it out or code it as numbers"
NESTED = "column 'c' holds lists or other nested objects; leave it out or spread it over columns"
TELL = "that are too close to tell apart; subtract an offset, or leave it out"
CLOSE = f"column 'c' has whole numbers beyond 2^53 {TELL}"
ORDER = "a Gaussian copula needs an order: pass kinds={'c': [...]} or indicator columns"
TWICE = "duplicate column names: 'b'; names must be unique"
STRUCTURED = "a structured array is not a table of numbers: pass pandas.DataFrame(array) instead"
A_TABLE = "a table is a pandas or polars frame or a NumPy array, not"
N_IS = "a scatter matrix needs its number of rows, a whole number, at least 1 and below 2^53"
KINDS = "a kind is one of ('continuous', 'binary', 'ordinal', 'count'), or a list of levels in order"
PRIORS = "known are 'horseshoe', 'laplace', 'normal', 'spike-slab', or pass an instance"

# The cells of a column
CELLS: dict[str, tuple[Callable[[], mb.Posterior], Answer]] = {
    "constant in the query": (ask(PLAIN.assign(a=1.0)), "column 'a' is constant; leave it out"),
    "constant in the rest": (c_is(1.0), "column 'c' is constant; leave it out"),
    "constant, as it is": (
        c_is(0.1, margins="gaussian"),
        "column 'c' is constant up to rounding; leave it out or subtract an offset",
    ),
    "two constant": (ask(PLAIN.assign(c=1.0, d=2.0)), "column 'c' is constant; leave it out (likewise 'd')"),
    "constant but for one cell": (c_is((k == 4) * 1e-9 + 1), kind("binary")),
    "constant but for one cell, as it is": (c_is((k == 4) * 1e-9 + 1, margins="gaussian"), found("b")),
    "constant but for the last bit, as it is": (
        c_is((k == 4) * 2.3e-16 + 1, margins="gaussian"),
        "column 'c' is constant up to rounding; leave it out or subtract an offset",
    ),
    "a single 1": (c_is((k == 4) * 1), kind("binary", 0, 1)),
    "a single 1 in the query": (ask(PLAIN.assign(a=(k == 4) * 1)), names(*"abcd")),
    "an infinity": (c_is(np.where(k == 3, np.inf, x)), INFINITE),
    "an infinity in text": (c_is(["1e400" if i == 2 else str(i / 2) for i in k]), INFINITE),
    "400 digits": (c_is(["1" * 400 if i == 2 else str(i / 2) for i in k]), INFINITE),
    "5000 digits": (c_is(["1" * 5000 if i == 2 else str(i / 2) for i in k]), INFINITE),
    "10^400": (c_is(pd.Series([10**400 if i == 2 else int(i) for i in k], dtype=object)), INFINITE),
    "10^400, as it is": (
        c_is(pd.Series([10**400 if i == 2 else int(i) for i in k], dtype=object), margins="gaussian"),
        INFINITE,
    ),
    "only NaN": (c_is(np.nan), NO_CELL),
    "only None": (c_is(None), NO_CELL),
    "only blanks": (c_is("  "), NO_CELL),
    "only NaT": (c_is(pd.NaT), DATES),
    "a gap, as it is": (
        c_is(np.where(k == 3, np.nan, x), margins="gaussian"),
        "column 'c' has 1 missing cell(s); fill them in or leave it out",
    ),
    "complex": (c_is(x * 1j), COMPLEX),
    "complex, as it is": (c_is(x * 1j, margins="gaussian"), COMPLEX),
    "dates": (c_is(pd.date_range("2020", periods=N)), DATES),
    "dates with a zone": (c_is(pd.date_range("2020", periods=N, tz="UTC")), DATES),
    "dates as objects": (c_is(pd.Series([date(2020, 1, 1 + i % 28) for i in range(N)], dtype=object)), DATES),
    "dates as text": (c_is([f"2020-01-{i % 28 + 1:02d}" for i in k]), DATES),
    "durations": (c_is(pd.to_timedelta(k, unit="D")), DATES),
    "durations, as they are": (c_is(pd.to_timedelta(k, unit="D"), margins="gaussian"), DATES),
    "periods": (
        c_is(pd.period_range("2020", periods=N, freq="M")),
        "column 'c' holds objects of type Period; leave it out or code it as numbers",
    ),
    "booleans": (c_is(x > 0), kind("binary", False, True)),
    "booleans, as they are": (c_is(x > 0, margins="gaussian"), kind("continuous")),
    "nullable integers with gaps": (
        c_is(pd.array([None if i % 5 == 0 else i for i in range(N)], dtype="Int64")),
        kind("continuous"),
    ),
    "nullable booleans with gaps": (
        c_is(pd.array([None if i % 5 == 0 else i % 2 == 0 for i in range(N)], dtype="boolean")),
        kind("binary", False, True),
    ),
    "nullable text with gaps": (
        c_is(pd.array([None if i % 5 == 0 else "xy"[i % 2] for i in range(N)], dtype="string")),
        kind("binary", "x", "y"),
    ),
    "a sparse column": (c_is(pd.arrays.SparseArray(x * (x > 0))), kind("continuous")),
    "Decimal": (c_is([Decimal(str(round(value, 3))) for value in x]), kind("continuous")),
    "Fraction": (c_is([Fraction(int(i), 7) for i in k]), kind("continuous")),
    "float16": (c_is(x.astype("float16")), kind("continuous")),
    "float32 throughout": (ask(PLAIN.astype("float32")), found("b")),
    "denormal numbers": (c_is(x * 5e-322), found("b")),
    "denormal numbers, as they are": (c_is(x * 5e-322, margins="gaussian"), found("b")),
    "1e-300 and 1e300, as they are": (
        ask(PLAIN.assign(c=x * 1e-300, d=x[::-1] * 1e300), margins="gaussian"),
        found("b"),
    ),
    "the largest floats, as they are": (c_is(x / np.abs(x).max() * 1.7e308, margins="gaussian"), found("b")),
    "integers beyond 2^53, far apart": (c_is([2**60 + int(i) * 10**6 for i in k]), kind("continuous")),
    "integers beyond 2^53, close": (c_is([2**60 + int(i) for i in k]), CLOSE),
    "the same with a gap": (
        c_is(pd.array([None if i == 3 else 2**60 + int(i) for i in k], dtype="Int64")),
        CLOSE,
    ),
    "the same as text": (c_is([str(2**60 + int(i)) for i in k]), CLOSE),
    "counts with an outlier": (c_is([10**15 if i == 3 else i % 13 for i in range(N)]), kind("count")),
    "text that is numbers": (c_is([f"{value:.3f}" for value in x]), kind("continuous")),
    "text that is numbers, as it is": (
        c_is([f"{value:.3f}" for value in x], margins="gaussian"),
        f"column 'c' is not numeric (it holds '{x[0]:.3f}'); leave it out or code it as numbers",
    ),
    "a word among numbers": (
        c_is(["high" if i == 2 else i / 2 for i in range(N)]),
        "column 'c' holds numbers except 'high'; write these as numbers or leave them empty",
    ),
    "a word and a number": (c_is(["x" if i % 2 else 1 for i in range(N)]), kind("binary", 1, "x")),
    "blanks among words": (c_is(["  ", "x", "y"] * 10), kind("binary", "x", "y")),
    "bytes": (c_is([b"x", b"y"] * 15), kind("binary", "x", "y")),
    "decimal commas": (c_is([f"{i},5" for i in k]), f"column 'c' has 30 unordered levels; {ORDER}"),
    "three words": (c_is(["u", "v", "w"] * 10), f"column 'c' has 3 unordered levels; {ORDER}"),
    "3000 words": (
        ask(pd.DataFrame({"a": np.arange(3000.0), "c": [f"id{i}" for i in range(3000)]})),
        "column 'c' has 3000 different texts and looks like free text or an identifier; leave it out",
    ),
    "categories, one unused": (
        c_is(pd.Categorical(["u", "v"] * 15, ["v", "u", "w"])),
        kind("binary", "u", "v"),
    ),
    "categories": (c_is(pd.Categorical(["u", "v", "w"] * 10)), f"column 'c' has 3 unordered levels; {ORDER}"),
    "ordered categories": (
        c_is(pd.Categorical(["u", "v", "w"] * 10, list("wvux"), ordered=True)),
        kind("ordinal", "w", "v", "u"),
    ),
    "categories without a cell": (c_is(pd.Categorical([None] * N, ["u"])), NO_CELL),
    "lists": (c_is([[1]] * N), NESTED),
    "lists, as they are": (
        c_is([[1]] * N, margins="gaussian"),
        "column 'c' holds objects of type list; leave it out or code it as numbers",
    ),
    "objects": (
        c_is([object()] * N),
        "column 'c' holds objects of type object; leave it out or code it as numbers",
    ),
    "a copy of the query": (c_is(PLAIN["a"]), found("c")),
    "a copy of the query, as it is": (c_is(PLAIN["a"], margins="gaussian"), found("c")),
    "a negated copy": (c_is(-PLAIN["a"]), found("c")),
    "a sum of two others, as it is": (
        ask(PLAIN.assign(a=PLAIN["c"] + PLAIN["d"]), margins="gaussian"),
        lambda posterior: set(posterior.edges(all=True)["variable"][:2]) == {"c", "d"},
    ),
    "two query columns that are one": (ask(PLAIN.assign(c=PLAIN["a"]), ["a", "c"]), names("a", "c", "b", "d")),
}

# Shapes and makes of tables
GAP_ROW = PLAIN.copy()
GAP_ROW.loc[4] = np.nan
MASKED = np.ma.masked_array(X, mask=np.arange(4 * N).reshape(N, 4) == 6)
PAIRS = PLAIN.set_axis(pd.MultiIndex.from_product([["u", "v"], ["x", "y"]]), axis=1)
SHAPES: dict[str, tuple[Callable[[], mb.Posterior], Answer]] = {
    "no rows": (ask(PLAIN[:0]), "the table is empty: 0 row(s) and 4 column(s)"),
    "no rows, as they are": (ask(PLAIN[:0], margins="gaussian"), "the table is empty: 0 row(s) and 4 column(s)"),
    "no columns": (ask(PLAIN[[]]), "the table is empty: 30 row(s) and 0 column(s)"),
    "no columns, as they are": (
        ask(X[:, :0], 0, margins="gaussian"),
        "the table is empty: 30 row(s) and 0 column(s)",
    ),
    "one row": (ask(PLAIN[:1]), ROWS_1),
    "one row, as it is": (ask(PLAIN[:1], margins="gaussian"), ROWS_1),
    "two rows": (ask(PLAIN[:2]), kind("binary")),
    "two rows, as they are": (ask(PLAIN[:2], margins="gaussian"), names(*"abcd")),
    "fewer rows than query columns": (ask(PLAIN[:3], list("abc")), names(*"abcd")),
    "fewer others than query columns": (ask(PLAIN, list("cab")), names(*"cabd")),
    "a row without any cell": (ask(GAP_ROW), lambda posterior: len(posterior.observed.table.rows) == N),
    "every column in the query": (ask(PLAIN, list("cabd")), names(*"cabd")),
    "every column in the query, the Laplace prior": (
        ask(PLAIN, list("abcd"), prior="laplace"),
        "every column is a query column, and only the prior 'spike-slab' estimates a whole network: "
        "choose that, or fewer query columns",
    ),
    "one column": (ask(PLAIN[["a"]]), "there is only one variable: a network needs at least two"),
    "duplicate labels of rows": (ask(PLAIN.set_index(np.zeros(N, dtype=int))), found("b")),
    "labels of rows in two parts": (ask(PLAIN.set_index([k // 2, k % 2])), found("b")),
    "names in two parts": (
        ask(PAIRS, [("u", "x")]),
        names("('u', 'x')", "('u', 'y')", "('v', 'x')", "('v', 'y')"),
    ),
    "polars": (ask(pl.from_pandas(PLAIN)), found("b")),
    "polars, lazy": (ask(pl.from_pandas(PLAIN).lazy()), f"{A_TABLE} LazyFrame"),
    "polars, a column of nulls": (ask(pl.from_pandas(PLAIN).with_columns(c=pl.lit(None))), NO_CELL),
    "polars, lists": (ask(pl.from_pandas(PLAIN).with_columns(c=pl.concat_list("c", "d"))), NESTED),
    "a structured array": (ask(PLAIN.to_records(index=False)), STRUCTURED),
    "a structured array, as it is": (ask(PLAIN.to_records(index=False), margins="gaussian"), STRUCTURED),
    "a vector": (ask(x, 0), "a table has rows and columns; got an array of 1 dimension(s)"),
    "a cube": (ask(np.zeros((3, 3, 3)), 0), "a table has rows and columns; got an array of 3 dimension(s)"),
    "a number": (ask(np.array(3.0), 0), "a table has rows and columns; got an array of 0 dimension(s)"),
    "lists of numbers": (ask(X.tolist(), 0), f"{A_TABLE} list"),
    "a dict": (ask(PLAIN.to_dict("list")), f"{A_TABLE} dict"),
    "a series": (ask(PLAIN["a"]), f"{A_TABLE} Series"),
    "nothing": (ask(None), "give either a table or scatter=..., n=..., and not both"),
    "a masked array": (
        ask(MASKED, 0),
        lambda p: [int(c.missing.sum()) for c in p.observed.table.columns] == [0, 0, 1, 0],
    ),
    "a masked array, as it is": (
        ask(MASKED, 0, margins="gaussian"),
        "column 2 has 1 missing cell(s); fill them in or leave it out",
    ),
    "a masked array of text, as it is": (
        ask(np.ma.masked_array(X.round(1).astype(str)), 0, margins="gaussian"),
        "column 0 is not numeric (it holds '0.1'); leave it out or code it as numbers",
    ),
}

# Names and questions
NAMES: dict[str, tuple[Callable[[], mb.Posterior], Answer]] = {
    "duplicate": (named("a", "b", "b", "d"), TWICE),
    "duplicate, as they are": (named("a", "b", "b", "d", margins="gaussian"), TWICE),
    "duplicate as text": (named(1, "1", "a", "d"), "duplicate column names: '1'; names must be unique"),
    "whole numbers": (named(5, 6, 7, 8, query=5), names(5, 6, 7, 8)),
    "whole numbers, asked for by text": (
        named(5, 6, 7, 8, query="5"),
        "query '5' is not a column of the table; did you mean 5?",
    ),
    "beyond 64 bits": (named(10**30, 2, 3, 4, query=10**30), names(f"{10**30}", "2", "3", "4")),
    "fractions": (named(1.5, 2.5, 3.5, 4.5, query=[1.5]), names("1.5", "2.5", "3.5", "4.5")),
    "tuples": (named(("a", 1), ("a", 2), "c", "d", query=[("a", 1)]), names("('a', 1)", "('a', 2)", "c", "d")),
    "None": (named(None, "b", "c", "d", query=[None]), names("None", "b", "c", "d")),
    "NaN": (named(np.nan, "b", "c", "d", query=[np.nan]), names("nan", "b", "c", "d")),
    "NaN twice": (named(np.nan, float("nan"), "a", "d"), "duplicate column names: 'nan'; names must be unique"),
    "empty": (named("a", "", "c", "d"), names("a", "", "c", "d")),
    "alike but for case and blanks": (named("a", "A", "a ", " a"), names("a", "A", "a ", " a")),
    "paths": (named("a", "../../x", "/etc/passwd", "."), names("a", "../../x", "/etc/passwd", ".")),
    "NUL": (
        named("a", "b\0", "b", "d"),
        "column name 'b\\x00' has a character that cannot be written to files; rename it",
    ),
    "half a character": (
        named("a", "b\ud800", "c", "d"),
        "column name 'b\\ud800' has a character that cannot be written to files; rename it",
    ),
    "unknown": (ask(PLAIN, "z"), "query 'z' is not a column of the table"),
    "a slip of the pen": (
        named("alpha", "b", "c", "d", query="alhpa"),
        "query 'alhpa' is not a column of the table; did you mean 'alpha'?",
    ),
    "too long for a message": (
        ask(PLAIN, "z" * 10_000),
        f"query {shown('z' * 10_000)} is not a column of the table",
    ),
    "asked for twice": (ask(PLAIN, ["a", "a"]), "query names 'a' more than once"),
    "two names in one text": (ask(PLAIN, "a,b"), "query 'a,b' is not a column of the table"),
    "one name without a list": (ask(PLAIN, "b"), names(*"bacd")),
    "a name in an array": (ask(PLAIN, np.array("b")), names(*"bacd")),
    "a list in a list": (
        ask(PLAIN, [["a"]]),
        "query ['a']: name columns by their names, or by position in an array",
    ),
    "bytes": (ask(PLAIN, b"a"), "query \"b'a'\" is not a column of the table"),
    "a position that is no whole number": (
        ask(X, 0.0),
        "query 0.0: name columns by their names, or by position in an array",
    ),
    "a position from the end": (ask(X, -1), "query -1 is not a column of the table; did you mean 1?"),
    "no query": (
        ask(PLAIN, None),
        "query is missing: name the variables of interest; markovblanket.network takes them all",
    ),
    "an empty query": (ask(PLAIN, []), "query is empty: name at least one column to ask about"),
}

NOT_SQUARE = "a scatter matrix must be square; got"
SCATTERS: dict[str, tuple[Callable[[], mb.Posterior], Answer]] = {
    "as lists": (scatter(S.tolist()), found(1)),
    "fewer rows than variables": (scatter(S, 2), names(0, 1, 2, 3)),
    "variables without scatter": (scatter(np.zeros((3, 3))), names(0, 1, 2)),
    "tiny": (scatter(S * 1e-300), names(0, 1, 2, 3)),
    "not symmetric": (
        scatter(S + np.eye(4, k=1)),
        "the scatter matrix is not symmetric (row 0, column 1, from 0)",
    ),
    "not semi-definite": (
        scatter([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]]),
        "the scatter matrix is not positive semi-definite: an eigenvalue of -0.8 after scaling to unit diagonal",
    ),
    "NaN": (
        scatter(np.where(np.eye(4) * [0, 1, 0, 0] > 0, np.nan, S)),
        "the scatter matrix has an entry that is not finite (row 1, column 1, from 0)",
    ),
    "masked": (
        scatter(np.ma.masked_array(S, mask=np.eye(4))),
        "the scatter matrix has an entry that is not finite (row 0, column 0, from 0)",
    ),
    "a negative variance": (
        scatter(np.diag([1.0, 2.0, -1.0])),
        "the scatter matrix has a negative diagonal entry, so it is not a scatter (row 2, column 2, from 0)",
    ),
    "too large": (
        scatter(S * 1e300),
        "the scatter matrix has an entry beyond 1e+150; measure in larger units (row 0, column 0, from 0)",
    ),
    "complex": (scatter(S * 1j), "a scatter matrix must hold real numbers, not dtype complex128"),
    "text": (scatter([["a", "b"], ["b", "a"]]), "a scatter matrix must hold real numbers, not dtype <U1"),
    "ragged": (scatter([[1, 2], [3]]), f"{NOT_SQUARE} rows of different lengths"),
    "not square": (scatter(np.eye(3)[:2]), f"{NOT_SQUARE} shape (2, 3)"),
    "empty": (scatter(np.empty((0, 0))), f"{NOT_SQUARE} shape (0, 0)"),
    "one variable": (scatter([[1.0]]), "there is only one variable: a network needs at least two"),
    "rows in another order": (
        scatter(pd.DataFrame(S, index=list("dcba"), columns=list("abcd")), query="a"),
        "the scatter matrix has its rows in another order than its columns; use the same order for both",
    ),
    "too few names": (scatter(S, names=["a"], query="a"), "1 names for a scatter matrix of 4 variables"),
    "no number of rows": (scatter(S, None), f"n=None: {N_IS}"),
    "0 rows": (scatter(S, 0), f"n=0: {N_IS}"),
    "half a row": (scatter(S, 1.5), f"n=1.5: {N_IS}"),
    "10^18 rows": (scatter(S, 10**18), f"n=1000000000000000000: {N_IS}"),
    "and a table": (ask(PLAIN, scatter=S, n=N), "give either a table or scatter=..., n=..., and not both"),
}


def option(**given: Any) -> Callable[[], mb.Posterior]:
    return ask(PLAIN, **given)


SEED, COUNT = "must be a whole number, at least 0, or None", "must be a whole number, at least"
OPTIONS: dict[str, tuple[Callable[[], mb.Posterior], Answer]] = {
    "seed=-1": (option(seed=-1), f"seed=-1: {SEED}"),
    "seed=1.5": (option(seed=1.5), f"seed=1.5: {SEED}"),
    "seed=NaN": (option(seed=np.nan), f"seed=nan: {SEED}"),
    "seed=True": (option(seed=True), f"seed=True: {SEED}"),
    "seed=[1, 2]": (option(seed=[1, 2]), f"seed=[1, 2]: {SEED}"),
    "seed=None": (option(seed=None), names(*"abcd")),
    "seed=10^40": (option(seed=10**40), lambda posterior: posterior.settings["seed"] == str(10**40)),
    "draws=0": (option(draws=0), f"draws=0: {COUNT} 1"),
    "draws=1": (option(draws=1), lambda posterior: posterior.W12.sizes["draw"] == 1),
    "draws='5'": (option(draws="5"), "draws='5': a whole number, or 'auto'"),
    "draws=10^20": (
        option(draws=10**20),
        "draws=100000000000000000000: must be a whole number, at most 2147483647",
    ),
    "chains=0": (option(chains=0), f"chains=0: {COUNT} 1"),
    "chains=True": (option(chains=True), f"chains=True: {COUNT} 1"),
    "warmup=-1": (option(warmup=-1), f"warmup=-1: {COUNT} 0"),
    "warmup=0": (option(warmup=0), names(*"abcd")),
    "thin=0": (option(thin=0), f"thin=0: {COUNT} 1"),
    "n_jobs=0": (option(n_jobs=0), "n_jobs=0: must be a whole number other than 0, or None"),
    "n_jobs=1.5": (option(n_jobs=1.5), "n_jobs=1.5: must be a whole number other than 0, or None"),
    "margins='x'": (option(margins="x"), "margins='x': known are 'auto', 'rank' and 'gaussian'"),
    "margins=None": (option(margins=None), "margins=None: known are 'auto', 'rank' and 'gaussian'"),
    "prior='x'": (option(prior="x"), f"prior='x': {PRIORS}"),
    "prior=None": (option(prior=None), f"prior=None: {PRIORS}"),
    "gamma=NaN": (
        lambda: mb.estimate(PLAIN, "a", prior=mb.Laplace(gamma=np.nan), **TINY),
        "Laplace(gamma=nan): gamma must be a number, positive and finite",
    ),
    "gamma=-1": (
        lambda: mb.estimate(PLAIN, "a", prior=mb.Laplace(gamma=-1), **TINY),
        "Laplace(gamma=-1): gamma must be a number, positive and finite",
    ),
    "solver='x'": (option(solver="x"), "solver='x': known are 'dual', 'dense', or pass an instance"),
    "keep='drws'": (
        option(keep="drws"),
        "keep='drws': did you mean 'draws'? For a folder of this name, pass pathlib.Path('drws')",
    ),
    "keep=None": (option(keep=None), "keep=None: known are 'auto', 'draws', 'summary', or pass a path"),
    "checkpoint=3": (option(checkpoint=3), "checkpoint=3: must be the path of a folder"),
    "named=3": (option(named=3), "named=3: must be a list of pairs (query, variable)"),
    "named=[1]": (option(named=[1]), "named has 1, which is not a pair of a query variable and another variable"),
    "kinds=[...]": (option(kinds=[1]), "kinds=[1]: must be a dict, such as {'stage': 'ordinal'}"),
    "a kind of no column": (option(kinds={"z": "count"}), "kinds: 'z' is not a column of the table"),
    "an unknown kind": (option(kinds={"a": "nominal"}), f"kinds={{'a': 'nominal'}}: {KINDS}"),
    "a kind against the cells": (
        option(kinds={"c": "count"}),
        "column 'c' is not a count: it has negative or fractional numbers; declare it 'continuous'",
    ),
    "binary with 30 levels": (
        option(kinds={"c": "binary"}),
        "column 'c' has 30 levels, so it is not binary; declare it 'ordinal' or in order",
    ),
    "levels that are lists": (
        option(kinds={"a": [[1], [2]]}),
        "kinds={'a': [...]}: a level is text or a number, not [1]",
    ),
    "kinds by names that are no text": (
        named(("a", 1), "b", "c", "d", query="b", kinds={("a", 1): "ordinal"}),
        lambda posterior: posterior.observed.table.columns[1].kind == "ordinal",
    ),
}

TABLE = {
    f"{part}: {name}": row
    for part, rows in (
        ("cells", CELLS),
        ("shape", SHAPES),
        ("name", NAMES),
        ("scatter", SCATTERS),
        ("option", OPTIONS),
    )
    for name, row in rows.items()
}


@pytest.mark.parametrize(("asked", "answer"), TABLE.values(), ids=TABLE)
def test_every_input_has_its_answer(asked, answer):
    if isinstance(answer, str):
        with pytest.raises((ValueError, TypeError)) as refusal:
            asked()
        assert str(refusal.value) == answer
    else:
        posterior = asked()
        assert_whole(posterior)
        assert answer(posterior)


def assert_whole(posterior: mb.Posterior) -> None:
    """Every query variable meets every other one, in finite numbers, under its name."""
    edges = posterior.edges(all=True, detail=True)
    table = posterior.observed.table
    assert sorted(map(str, table.order)) == sorted(map(str, (*posterior.query, *posterior.variables)))
    pairs = {(one, other) for one in table.query for other in table.rest}
    pairs |= set(itertools.combinations(posterior.query, 2))
    assert set(zip(edges["query"], edges["variable"], strict=True)) == pairs
    figures = ["precision", "coefficient", "partial_correlation_averaged", "sign_probability"]
    assert np.isfinite(edges[figures].to_numpy(dtype=float)).all()
    assert (edges["partial_correlation"].abs().fillna(0) <= 1).all()  # missing if it is never present
    assert np.isfinite(posterior.W11).all()
    assert np.isfinite(posterior.draws["explained"]).all()


# Files, at the command line and in Python -------------------------------------------------------------------

CSV = PLAIN.round(3).to_csv(index=False)
HEAD, BODY = CSV.split("\n", 1)
UTF8 = "it is not text in UTF-8; save it as such"


def column_c(cells: list[str]) -> str:
    return "a,b,c\n" + "".join(
        f"{a:.3f},{b:.3f},{cell}\n" for a, b, cell in zip(X[:, 0], X[:, 1], cells, strict=True)
    )


# Name of the file | its bytes | what is said of it, or the names of the columns
FILES: dict[str, tuple[str, str | bytes, str | tuple[str, ...]]] = {
    "plain": ("t.csv", CSV, tuple("abcd")),
    "a mark of its encoding": ("t.csv", f"\ufeff{CSV}", tuple("abcd")),
    "line ends of another system": ("t.csv", CSV.replace("\n", "\r\n"), tuple("abcd")),
    "a line break in a name": ("t.csv", CSV.replace("b,c", '"b\nb",c'), ("a", "b\nb", "c", "d")),
    "blanks about names": ("t.csv", CSV.replace("b,c", " b ,c "), tuple("abcd")),
    "blank lines first": ("t.csv", f"\n\n{CSV}", tuple("abcd")),
    "a row that ends early": ("t.csv", f"{CSV}1,2\n", tuple("abcd")),
    "a row that is too long": (
        "t.csv",
        f"{CSV}1,2,3,4,5\n",
        "cannot read 't.csv': Expected 4 fields in line 32, saw 5",
    ),
    "every row too long": (
        "t.csv",
        f"a,b,c\n{BODY}",
        "cannot read 't.csv': rows have more cells than the first line has names (3); name all columns",
    ),
    "a column without a name": (
        "t.csv",
        CSV.replace("b,c", ",c"),
        "column 1 of 't.csv' (from 0) has no name in the first line",
    ),
    "a name twice": ("t.csv", CSV.replace("b,c", "b,b"), TWICE),
    "a name twice but for blanks": ("t.csv", CSV.replace("b,c", "b, b"), TWICE),
    "semicolons": (
        "t.csv",
        CSV.replace(",", ";"),
        "cannot read 't.csv': its first line has ';' between names; save it with ','",
    ),
    "tabs": (
        "t.csv",
        CSV.replace(",", "\t"),
        "cannot read 't.csv': its first line has '\\t' between names; save it with ','",
    ),
    "commas in a tsv": (
        "t.tsv",
        CSV,
        "cannot read 't.tsv': its first line has ',' between names; save it with '\\t'",
    ),
    "empty": ("t.csv", "", "cannot read 't.csv': No columns to parse from file"),
    "names alone": ("t.csv", f"{HEAD}\n", "the table is empty: 0 row(s) and 4 column(s)"),
    "one row": ("t.csv", f"{HEAD}\n1,2,3,4\n", ROWS_1),
    "all rows alike": (
        "t.csv",
        f"{HEAD}\n" + "1,2,3,4\n" * 9,
        "column 'a' is constant; leave it out (likewise 'b', 'c', 'd')",
    ),
    "a quote that does not end": (
        "t.csv",
        f'{CSV}1,2,3,"4\n',
        "cannot read 't.csv': EOF inside string starting at row 31",
    ),
    "Latin-1": ("t.csv", CSV.replace("b,c", "größe,c").encode("latin-1"), f"cannot read 't.csv': {UTF8}"),
    "UTF-16": ("t.csv", CSV.encode("utf-16"), f"cannot read 't.csv': {UTF8}"),
    "packed, but not in its name": ("t.csv", gzip.compress(CSV.encode()), f"cannot read 't.csv': {UTF8}"),
    "NUL in a name": (
        "t.csv",
        CSV.replace("b,c", "b\0,c"),
        "cannot read 't.csv': it holds NUL characters; save it as text without them",
    ),
    "NUL in a cell": (
        "t.csv",
        f"{CSV}1,\0,2,3\n",
        "cannot read 't.csv': it holds NUL characters; save it as text without them",
    ),
    "packed": ("t.csv.gz", gzip.compress(CSV.encode()), tuple("abcd")),
    "packed and cut off": (
        "t.csv.gz",
        gzip.compress(CSV.encode())[:60],
        "cannot read 't.csv.gz': Compressed file ended before the end-of-stream marker was reached",
    ),
    "not packed": ("t.csv.gz", CSV, "cannot read 't.csv.gz': Not a gzipped file (b'a,')"),
    "another kind of file": (
        "t.txt",
        CSV,
        "cannot read 't.txt': a table file ends in .csv, .csv.gz, .tsv, .tsv.gz, .parquet, .feather, .h5ad",
    ),
    "no parquet": ("t.parquet", b"PAR1" * 9, "cannot read 't.parquet': "),
    "no feather": ("t.feather", b"ARROW1" * 9, "cannot read 't.feather': "),
    "no h5ad": ("t.h5ad", b"\x89HDF\r\n\x1a\n" * 9, "cannot read 't.h5ad': "),
    "an infinity": ("t.csv", f"{CSV}1,2,1e400,3\n", INFINITE),
    "integers beyond 2^53, close": ("t.csv", column_c([str(2**60 + int(i)) for i in k]), CLOSE),
    "text as free as that": (
        "t.csv",
        column_c([f'"no. {i}, ""{i}"""' for i in k]),
        f"column 'c' has 30 unordered levels; {ORDER}",
    ),
    "paths and scripts as names": (
        "t.csv",
        CSV.replace("b,c,d", "../../x,<script>alert(1)</script>,{{7*7}}"),
        ("a", "../../x", "<script>alert(1)</script>", "{{7*7}}"),
    ),
    "control characters in names": (
        "t.csv",
        CSV.replace("b,c", "\x1b[31mb,\x07"),
        ("a", "\x1b[31mb", "\x07", "d"),
    ),
}


@pytest.mark.parametrize(("name", "content", "answer"), FILES.values(), ids=FILES)
def test_every_file_has_its_answer(tmp_path, capsys, name, content, answer):
    path, out = tmp_path / name, tmp_path / "run"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    if isinstance(answer, tuple):
        posterior = mb.estimate(path, "a", **TINY)
        assert_whole(posterior)
        assert posterior.observed.table.order == answer
        return
    with pytest.raises(ValueError, match=f"^{re.escape(answer)}") as refusal:
        mb.estimate(path, "a", **TINY)
    assert str(refusal.value) == answer or answer.endswith("': ")  # the rest is what a package says
    assert main(["fit", str(path), "-q", "a", "-o", str(out)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"error: {in_options(str(refusal.value))}"
    assert not out.exists()


def test_files_may_be_taken_as_they_are(tmp_path):
    """Gaussian margins once knew frames and arrays alone."""
    (tmp_path / "t.csv").write_text(CSV)
    PLAIN.to_parquet(tmp_path / "t.parquet")
    for path in (tmp_path / "t.csv", tmp_path / "t.parquet"):
        assert_whole(mb.estimate(path, "a", margins="gaussian", **TINY))
    options = ["--margins", "gaussian", "--chains", "1", "--warmup", "5", "--draws", "5", "-j", "1", "--quiet"]
    assert main(["fit", str(tmp_path / "t.csv"), "-q", "a", "-o", str(tmp_path / "run"), *options]) == 0


def test_names_in_a_parquet_file_are_text(tmp_path):
    PLAIN.set_axis([1, 2, 3, 4], axis=1).to_parquet(tmp_path / "t.parquet")
    for query in ("2", 2):
        posterior = mb.estimate(tmp_path / "t.parquet", query, **TINY)
        assert posterior.observed.table.order == ("1", "2", "3", "4")
        assert posterior.query == ["2"]


def test_folders_and_what_is_not_there(tmp_path):
    (tmp_path / "t.parquet").mkdir()
    with pytest.raises(IsADirectoryError, match=r"^'.*t\.parquet' is a folder, not a file$"):
        mb.estimate(tmp_path / "t.parquet", "a", **TINY)
    with pytest.raises(FileNotFoundError, match=r"^there is no file '.*no\.csv'$"):
        mb.estimate(tmp_path / "no.csv", "a", **TINY)


OPTIONS_TYPED = {
    "--level nan": "Invalid value for '--level': nan is not in the range 0<x<1. (see markovblanket fit --help)",
    "--fdr nan": "Invalid value for '--fdr': nan is not in the range 0<x<1. (see markovblanket fit --help)",
    "--draws 99999999999": "draws=99999999999: must be a whole number, at most 2147483647",
    "--seed -1": "Invalid value for '--seed': -1 is not in the range x>=0. (see markovblanket fit --help)",
}


@pytest.mark.parametrize(("typed", "answer"), OPTIONS_TYPED.items(), ids=OPTIONS_TYPED)
def test_every_option_has_its_answer(tmp_path, capsys, typed, answer):
    (tmp_path / "t.csv").write_text(CSV)
    fit = ["fit", str(tmp_path / "t.csv"), "-q", "a", "-o", str(tmp_path / "run"), *typed.split()]
    assert main(fit) == 2
    assert capsys.readouterr().err == f"error: {answer}\n"
    assert not (tmp_path / "run").exists()


def test_no_memory_is_told_in_a_line(tmp_path, capsys, monkeypatch):
    def fail(*arguments, **options):
        raise MemoryError("Unable to allocate 7.28 TiB")

    monkeypatch.setattr(fitting, "estimate", fail)
    (tmp_path / "t.csv").write_text(CSV)
    assert main(["fit", str(tmp_path / "t.csv"), "-q", "a", "-o", str(tmp_path / "run")]) == 1
    assert capsys.readouterr().err.startswith("error: Unable to allocate 7.28 TiB; markovblanket resume ")


# Names that other programs would run ------------------------------------------------------------------------

FORMULAS = ["a", "=1+1", "+1", "-1", "@x", "\tx", "'quoted", "'=x", "<b>", "plain"]


def test_names_in_edges_are_inert_in_a_spreadsheet_and_come_back(tmp_path):
    table = pd.DataFrame(RNG.standard_normal((N, len(FORMULAS))), columns=FORMULAS)
    posterior = mb.estimate(table, ["a", "=1+1"], **TINY)
    edges = posterior.edges(all=True)
    _output_folder.inert(edges).to_csv(tmp_path / "edges.csv", index=False)
    written = pd.read_csv(tmp_path / "edges.csv", dtype=str, keep_default_na=False)
    for role in ("query", "variable"):
        assert not written[role].str.match(r"[=+\-@\t\r\n]").any()
        assert written[role].str.removeprefix("'").tolist() == edges[role].tolist()
    assert _output_folder.formulas(edges)[:1] == ["=1+1"]


def test_names_are_text_on_the_page_and_no_way_out_of_a_folder(tmp_path):
    script, path = "<script>alert(1)</script>", "../../outside"
    table = PLAIN.set_axis(["a", script, path, "</script>"], axis=1)
    posterior = mb.estimate(table, ["a", path], **TINY)
    place = tmp_path / "deep" / "down"
    posterior.save(place / "run")
    page = posterior.report(place / "page.html").read_text(encoding="utf-8")
    assert "alert(1)" in page
    assert script not in page
    assert mb.load(place / "run").observed.table.order == ("a", script, path, "</script>")
    assert {entry.name for entry in tmp_path.iterdir()} == {"deep"}
    assert {entry.name for entry in place.iterdir()} == {"run", "page.html"}


# Files that are too much ------------------------------------------------------------------------------------


def test_a_small_file_that_unpacks_to_a_huge_one_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(_frames, "MOST_UNPACKED_BYTES", 2**16)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"0,0\n" * 2**20))
    size = (tmp_path / "t.csv.gz").stat().st_size
    most = f"{max(2**16, 100 * size):,}"
    why = f"it unpacks to more than {most} bytes; if that is intended, unpack it first"
    sentence = f"cannot read 't.csv.gz': {why}"
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        mb.estimate(tmp_path / "t.csv.gz", "a", **TINY)


def wide_file(path: Any, columns: int) -> None:
    with path.open("w") as file:
        file.write(",".join(f"v{j}" for j in range(columns)) + "\n")
        for row in RNG.integers(100, 999, (5, columns)):
            file.write(",".join(f"{value / 10}" for value in row) + "\n")


# With MARKOVBLANKET_COLUMNS=1000000, a million: two minutes, most of them pandas' own.
MANY = int(os.environ.get("MARKOVBLANKET_COLUMNS", "150000"))
FIT_WIDE = """
import re, sys, warnings
from pathlib import Path
import numpy as np
import markovblanket as mb
warnings.simplefilter("ignore", mb.ConvergenceWarning)
options = dict(chains=1, warmup=2, draws=4, seed=1, keep="summary", progress=False)
posterior = mb.estimate(sys.argv[1], "v7", **options)
finite = np.isfinite(posterior.selected(level=0.5).to_numpy(dtype=float)).all()
# What getrusage tells begins with the peak of the process that started this one.
peak = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())
print(len(posterior.variables), finite, peak.group(1))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is told by /proc")
@pytest.mark.parametrize("columns", [4_000, pytest.param(MANY, marks=pytest.mark.slow)])
def test_very_wide_files_are_answered_in_memory_of_their_size(tmp_path, columns):
    """Five rows: what a column costs is its name and its place in frames, about five kilobytes at most."""
    wide_file(tmp_path / "t.csv", columns)
    command = [sys.executable, "-c", FIT_WIDE, str(tmp_path / "t.csv")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=900)
    found, finite, kilobytes = done.stdout.split()[-3:]
    assert (int(found), finite) == (columns - 1, "True")
    assert int(kilobytes) < 1_200_000 + 5 * columns  # the libraries, and what compiles the kernels at first
