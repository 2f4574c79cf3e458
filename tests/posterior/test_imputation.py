"""Completed tables: what was observed stays, what was missing is drawn, and all of it looks as it did."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import markovblanket as mb
from markovblanket.chains import run

pytestmark = pytest.mark.filterwarnings("ignore::markovblanket.ConvergenceWarning")
QUICK = {"chains": 2, "warmup": 20, "draws": 30, "seed": 5, "progress": False}
N, QUERY = 60, ["age", "grade"]
GRADES = ["low", "mid", "high", "worst"]  # the last one was never observed


def complete(n=N, seed=0) -> pd.DataFrame:
    """A column of every type; ``height`` and ``weight`` are nearly the same."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, 8))
    return pd.DataFrame(
        {
            "height": 170 + 10 * Z[:, 0],
            "grade": pd.Categorical.from_codes(np.searchsorted([-0.5, 0.7], Z[:, 1]), GRADES, ordered=True),
            "weight": np.exp(Z[:, 0] + 0.05 * Z[:, 2]).astype("float32"),
            "visits": np.minimum(np.floor(np.exp(Z[:, 3])), 9).astype("int64"),
            "sex": np.where(Z[:, 4] > 0.2, "m", "f"),
            "blood": pd.Categorical(np.where(Z[:, 5] > 0, "A", "B"), ["B", "A"]),
            "smokes": Z[:, 6] > 0.4,
            "age": np.floor(50 + 15 * Z[:, 1] + 5 * Z[:, 7]).astype("int32"),
            "rare": Z[:, 0] + Z[:, 7],
        },
        index=[f"patient {k}" for k in range(n)],
    )


def holed(n=N, seed=0) -> pd.DataFrame:
    """With gaps where pandas allows them without another type; of ``rare`` three cells are left."""
    frame, rng = complete(n, seed), np.random.default_rng(seed + 1)
    for name in ("grade", "weight", "sex", "blood"):
        frame[name] = frame[name].mask(rng.random(n) < 0.2)
    frame["rare"] = frame["rare"].where(np.isin(np.arange(n), [4, 20, 33]))
    return frame


def in_polars() -> pl.DataFrame:
    """With gaps everywhere but in ``height``."""
    rng, gapless = np.random.default_rng(2), complete()
    gaps = {name: rng.random(N) < 0.2 for name in gapless.columns if name != "height"}
    columns = {
        name: [None if gap else cell for cell, gap in zip(gapless[name], gaps.get(name, [False] * N), strict=True)]
        for name in gapless.columns
    }
    types = {"grade": pl.Enum(GRADES), "blood": pl.Categorical, "weight": pl.Float32, "age": pl.Int32}
    return pl.DataFrame(columns, schema_overrides=types)


def fit(table, margins="auto", query=QUERY, **options):
    return mb.estimate(table, query, margins=margins, **QUICK | options)


@pytest.fixture(scope="module", params=["auto", "rank"])
def posterior(request):
    return fit(holed(), request.param)


@pytest.fixture(scope="module")
def tables(posterior):
    return posterior.imputed(20, seed=1)


@pytest.fixture(scope="module")
def frames(tables):
    return list(tables)


@pytest.fixture(scope="module")
def from_polars():
    return fit(in_polars()).imputed(5, seed=1)


@pytest.fixture(scope="module")
def gaussian():
    numbers = complete()[["age", "height", "visits", "smokes", "weight"]]
    return numbers, fit(numbers, "gaussian", ["age"])


def gaps(table):
    """Rows and names of the missing cells."""
    return [(row, name) for name in table.columns for row in table.index[table[name].isna()]]


# What stays -------------------------------------------------------------------------------------------


def test_names_order_rows_and_types_are_those_of_the_fitted_table(frames):
    for table in frames:
        assert table.columns.tolist() == holed().columns.tolist()
        pd.testing.assert_index_equal(table.index, holed().index)
        pd.testing.assert_series_equal(table.dtypes, holed().dtypes)


def test_observed_cells_are_untouched_and_no_cell_is_missing(frames):
    before = holed()
    for table in frames:
        assert not table.isna().any(axis=None)
        for name, cells in before.items():
            one, other = table[name][cells.notna()], cells[cells.notna()]
            pd.testing.assert_series_equal(one, other, check_category_order=False)


def test_polars_comes_back_as_pandas_with_the_same_cells(from_polars):
    before = in_polars()
    expected = {
        "height": "float64",
        "grade": pd.CategoricalDtype(GRADES, ordered=True),
        "weight": "float32",
        "visits": "int64",
        "sex": pd.Series(["f"]).dtype,
        "blood": pd.CategoricalDtype(["A", "B"]),
        "smokes": "bool",
        "age": "int32",
        "rare": "float64",
    }
    for table in from_polars:
        assert isinstance(table, pd.DataFrame)
        assert table.dtypes.to_dict() == expected
        for name in before.columns:
            pairs = zip(before[name].to_list(), table[name].tolist(), strict=True)
            assert all(old is None or old == new for old, new in pairs), name
        assert not table.isna().any(axis=None)


def test_numbered_columns_and_arrays():
    rng = np.random.default_rng(0)
    cells = np.column_stack([rng.standard_normal((40, 3)), rng.integers(0, 3, 40)])
    cells[3, 1] = cells[5, 3] = np.nan
    table = fit(cells, query=[3])
    made = table.imputed(2)[1]
    assert made.columns.tolist() == [0, 1, 2, 3]
    assert made.index.tolist() == list(range(40))
    np.testing.assert_array_equal(made.where(~np.isnan(cells)), cells)


# What is drawn ----------------------------------------------------------------------------------------


def test_only_possible_values_are_drawn(frames, from_polars):
    for before, drawn in ((holed(), frames), (in_polars().to_pandas(), list(from_polars))):
        for name, table in itertools.product(("grade", "sex", "blood", "visits", "smokes"), drawn):
            assert set(table[name]) <= set(before[name].dropna()), name
        for name, table in itertools.product(("weight", "rare", "age"), drawn):
            assert table[name].between(before[name].min(), before[name].max()).all(), name


def test_draws_differ_from_table_to_table(tables):
    differing = {name: [len(set(cell)) for cell in cells.T] for name, cells in tables.draws.items()}
    assert sum(map(len, differing.values())) == len(gaps(holed())) > 80
    assert min(differing["weight"]) > 5
    for name, counts in differing.items():
        assert np.mean(np.array(counts) > 1) > 0.7, name


def test_the_same_seed_gives_the_same_tables(posterior, tables):
    again = posterior.imputed(20, seed=1)
    for one, other in zip(tables, again, strict=True):
        pd.testing.assert_frame_equal(one, other)
    pd.testing.assert_frame_equal(tables[7], again[7])


def test_a_cell_follows_from_what_it_is_tied_to(posterior):
    """``weight`` is nearly a function of ``height``: drawn ones are ordered much as the true ones.

    Over seeds the mean rank correlation is 0.70, with standard deviation 0.06; it would be 0 without the tie.
    """
    before, truth = holed(), complete()["weight"]
    missing = before["weight"].isna()
    tables = posterior.imputed(10, seed=1)
    ranks = [stats.spearmanr(table["weight"][missing], truth[missing])[0] for table in tables]
    assert len(ranks) == 10
    assert np.mean(ranks) > 0.4


def test_observed_cells_pass_through_the_scales_unchanged(posterior):
    """The cuts of a draw agree with the cells of the same draw: else a drawn cell would be misread as well."""
    observed = posterior.observed
    untied = [name for name in observed.moving if name != "age"]
    for sample, name in itertools.product(observed.samples(10), untied):
        column, k = observed.columns[name], observed.moving.index(name)
        (scale,) = observed.scales(np.random.default_rng(0), sample, [name])
        x = observed.latent.values[(*sample, ~column.missing, k)]
        np.testing.assert_allclose(scale.data(x), column.values[~column.missing], rtol=1e-6, err_msg=name)


def test_a_column_nearly_all_missing(frames):
    """Three cells are all that is known of it, and the rest is drawn between them."""
    cells, known = np.array([table["rare"] for table in frames]), holed()["rare"].dropna()
    assert len(known) == 3
    assert (cells.min(), cells.max()) == (known.min(), known.max())
    assert len(np.unique(cells)) > 100


# One by one, as a sequence, as a summary --------------------------------------------------------------


def test_a_sequence_of_frames(tables):
    assert len(tables) == len(list(itertools.islice(tables, 30))) == 20
    pd.testing.assert_frame_equal(tables[-1], tables[19])
    assert [len(part) for part in (tables[3:6], tables[::-1], tables[30:])] == [3, 20, 0]
    pd.testing.assert_frame_equal(tables[3:6][2], tables[5])
    with pytest.raises(IndexError):
        tables[20]
    table = tables[0]
    table.loc[:, "height"] = 0.0
    assert tables[0]["height"].min() > 100


def test_there_are_never_more_tables_than_kept_draws(posterior):
    assert len(posterior.imputed(1000)) == 60
    assert len(posterior.imputed(1)) == 1
    assert len(set(posterior.observed.samples(30))) == 30


def test_cells_say_what_the_tables_say(tables, frames):
    cells = tables.cells(level=0.8)
    assert cells.index.names == ["row", "variable"]
    assert sorted(cells.index) == sorted(gaps(holed()))
    for row, name in cells.index:
        drawn, said = pd.Series([frame.at[row, name] for frame in frames]), cells.loc[(row, name)]
        if name in ("weight", "rare"):
            numbers = drawn.astype(float)
            assert said["mean"] == pytest.approx(numbers.mean(), rel=1e-6)
            assert said["sd"] == pytest.approx(numbers.std(), rel=1e-5)
            assert (said["lower"], said["upper"]) == pytest.approx(numbers.quantile([0.1, 0.9]), rel=1e-6)
            assert pd.isna(said["likeliest"])
        else:
            chances = tables.probabilities[name].loc[row]
            assert said["probability"] == chances.max()
            assert said["likeliest"] == chances.idxmax()
            assert pd.isna(said["mean"])


def test_cells_with_numbers_for_levels_have_means_and_intervals_of_levels(from_polars):
    cells, before = from_polars.cells(level=0.5), in_polars()
    some = [index for index in cells.index if index[1] in ("visits", "smokes")]
    assert len(some) > 10
    for row, name in some:
        chances, said = from_polars.probabilities[name].loc[row], cells.loc[(row, name)]
        y = chances.index.to_numpy(dtype=float)
        assert said["mean"] == pytest.approx(chances @ y)
        assert said["sd"] == pytest.approx(np.sqrt(chances @ y**2 - (chances @ y) ** 2))
        assert {said["lower"], said["upper"]} <= set(before[name].drop_nulls())
        assert chances[y < said["lower"]].sum() < 0.25 <= chances[y <= said["lower"]].sum()
        assert chances[y < said["upper"]].sum() < 0.75 <= chances[y <= said["upper"]].sum()


def test_a_saved_posterior_completes_the_same_tables(posterior, tables, tmp_path):
    posterior.save(tmp_path / "run")
    again = mb.load(tmp_path / "run").imputed(20, seed=1)
    for one, other in zip(tables, again, strict=True):
        pd.testing.assert_frame_equal(one, other)
    pd.testing.assert_frame_equal(tables.cells(), again.cells())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.slow
def test_intervals_of_missing_cells_hold_what_was_there(seed):
    """About 270 cells of four kinds: at least as many as 90 in 100, less five sds of a binomial count."""
    kinds = ["continuous", "binary", "ordinal", "count"] * 2
    sim = mb.simulate(rows=250, query=2, rest=6, kinds=kinds, density=0.4, missing=0.15, seed=seed)
    cells = fit(sim.table, query=sim.query, warmup=200, draws=200).imputed(400, seed=0).cells(level=0.9)
    truth = np.array([sim.complete.loc[row, name] for row, name in cells.index])
    inside = (cells["lower"] <= truth) & (truth <= cells["upper"])
    assert inside.mean() > 0.9 - 5 * np.sqrt(0.09 / len(cells))
    numbers = np.array([sim.kinds[name] == "continuous" for _, name in cells.index])
    assert inside[numbers].mean() < 0.9 + 5 * np.sqrt(0.09 / numbers.sum())  # levels are too coarse to be exact
    likeliest = cells["likeliest"][~numbers].astype(float) == truth[~numbers]
    expected = cells["probability"][~numbers]
    tolerance = 5 * np.sqrt((expected * (1 - expected)).sum()) / len(expected)
    assert abs(likeliest.mean() - expected.mean()) < tolerance


# Probabilities of levels ------------------------------------------------------------------------------


def test_probabilities_are_those_of_the_levels_in_the_rows_with_gaps(tables):
    assert sorted(tables.probabilities) == ["blood", "grade", "sex"]
    for name, table in tables.probabilities.items():
        assert table.index.tolist() == holed().index[holed()[name].isna()].tolist()
        assert set(table.columns) == set(holed()[name].dropna())
        np.testing.assert_allclose(table.sum(axis=1), 1.0)
        assert table.min(axis=None) > 0  # no level is ruled out, drawn or not


def test_tables_and_probabilities_do_not_depend_on_what_was_asked_first(posterior, tables):
    other = posterior.imputed(20, seed=1)
    for name, table in other.probabilities.items():
        pd.testing.assert_frame_equal(table, tables.probabilities[name])
    for name, drawn in other.draws.items():
        np.testing.assert_array_equal(drawn, tables.draws[name])


# Without gaps -----------------------------------------------------------------------------------------


def test_without_gaps_the_tables_are_copies(gaussian):
    numbers, posterior = gaussian
    tables = posterior.imputed(3)
    assert len(tables) == 3
    for k in range(3):
        np.testing.assert_array_equal(tables[k], numbers)
        assert tables[k].columns.tolist() == numbers.columns.tolist()
    assert len(tables.cells()) == 0
    table = tables[0]
    table[table.columns[0]] = 0.0
    np.testing.assert_array_equal(tables[0], numbers)


def test_without_gaps_the_sequence_still_ends(gaussian):
    tables = gaussian[1].imputed(3)
    assert len(list(itertools.islice(tables, 10))) == 3


def test_types_of_a_gaussian_fit(gaussian):
    numbers, posterior = gaussian
    pd.testing.assert_frame_equal(posterior.imputed(1)[0], numbers)


# Types that are lost ----------------------------------------------------------------------------------


ONE = {"chains": 1, "warmup": 1, "draws": 1}


def completed(cells, kind=None):
    """One column of a table, completed, with gaps in three rows."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"a": rng.standard_normal(N), "b": rng.standard_normal(N), "x": cells})
    table["x"] = table["x"].mask(table.index.isin([3, 9, 20]))
    made = fit(table, query=["a"], kinds={"x": kind} if kind else None, **ONE).imputed(1)[0]
    return table["x"], made["x"]


WORDS, WHOLE = np.array([" low", "mid", "high "])[np.arange(N) % 3], np.arange(N) % 3
LOST = {
    "categories with blanks": (pd.Categorical(WORDS, [" low", "mid", "high "], ordered=True), None),
    "categories in an order of their own": (pd.Categorical(np.where(WHOLE > 0, "f", "m"), ["m", "f"]), None),
    "unused categories": (pd.Categorical(np.where(WHOLE > 0, "f", "m"), ["m", "f", "other"]), None),
    "categories that are numbers, ordinal": (pd.Categorical(WHOLE), "ordinal"),
    "categories that are text of numbers, ordinal": (pd.Categorical(WHOLE.astype(str)), "ordinal"),
}


@pytest.mark.parametrize(("cells", "kind"), LOST.values(), ids=LOST)
def test_observed_cells_are_untouched_whatever_their_type(cells, kind):
    before, after = completed(cells, kind)
    pd.testing.assert_series_equal(after[before.notna()], before[before.notna()])


def test_ordered_categories_declared_continuous_are_completed():
    _, after = completed(pd.Categorical(np.arange(N) * 10, ordered=True), "continuous")
    assert not after.isna().any()


ROWS = {
    "dates": pd.date_range("2024-01-01", periods=N),
    "a name": pd.Index(np.arange(N), name="patient"),
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_the_index_is_kept_whatever_it_is(rows):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((N, 2)), columns=["a", "b"], index=rows)
    made = fit(table, query=["a"], **ONE).imputed(1)[0]
    pd.testing.assert_index_equal(made.index, rows)


# Which draws keep their columns -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "draws",
    [30, 29],
)
def test_latent_columns_belong_to_the_draws_they_are_said_to(draws, monkeypatch):
    """A chain that keeps few of them keeps the same as one that keeps all."""
    table = holed(30)[["age", "height", "weight", "sex"]]
    options = {"query": ["age"], "chains": 1, "warmup": 2, "draws": draws}
    everything = fit(table, **options).observed.latent
    monkeypatch.setattr(run, "LATENT_NUMBERS", 1)
    few = fit(table, **options).observed.latent
    assert 4 <= few.sizes["draw"] < draws
    np.testing.assert_array_equal(few, everything.sel(draw=few["draw"]))
