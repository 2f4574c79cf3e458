"""Mixed and incomplete tables in ``estimate``."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

import markovblanket as mb

pytestmark = pytest.mark.filterwarnings("ignore::markovblanket.ConvergenceWarning")
QUICK = {"chains": 2, "warmup": 20, "draws": 30, "seed": 5, "progress": False}
KINDS = {"age": "continuous", "stage": ["I", "II", "III"], "visits": "count"}


def clinic(n=120, missing=0.1, seed=0) -> pd.DataFrame:
    """Latent normal columns seen as numbers, levels and counts, with holes in both blocks."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, 8))
    Z[:, 0] += Z[:, 4]
    Z[:, 1] -= Z[:, 5]
    frame = pd.DataFrame(
        {
            "age": 50 + 10 * Z[:, 0],
            "stage": np.array(["I", "II", "III"])[np.searchsorted([-0.8, 0.8], Z[:, 1])],
            "sex": np.where(Z[:, 2] > 0, "f", "m"),
            "visits": np.floor(np.exp(Z[:, 3] + 1)).astype(float),
            **{f"gene{k}": np.exp(Z[:, k]) for k in range(4, 8)},
        }
    )
    holes = rng.random(frame.shape) < missing
    holes[:, [0, 7]] = False  # one complete column in each block
    return frame.mask(holes)


def fit(table, margins="auto", query=("age", "stage", "sex"), kinds=KINDS, **options):
    return mb.estimate(table, list(query), margins=margins, kinds=kinds, **QUICK | options)


@pytest.mark.parametrize("margins", ["auto", "rank"])
def test_every_cell_counts_and_every_answer_is_finite(margins):
    posterior = fit(clinic(), margins)
    assert posterior.settings["data"]["n"] == 120  # no row was dropped
    assert posterior.settings["margins"] == margins
    for name, array in posterior.draws.data_vars.items():
        assert np.isfinite(array).all(), name


@pytest.mark.parametrize("margins", ["auto", "rank"])
def test_increasing_maps_leave_the_fit_unchanged_bit_for_bit(margins):
    table = clinic()
    mapped = table.assign(
        age=np.exp(table["age"] / 10),
        visits=table["visits"] * 7 + 3,
        gene4=np.log(table["gene4"]),
        gene7=table["gene7"] ** 3,
    )
    one, other = fit(table, margins), fit(mapped, margins)
    np.testing.assert_array_equal(one.W12, other.W12)
    np.testing.assert_array_equal(one.W11, other.W11)


def test_relabelling_levels_in_order_changes_nothing():
    table = clinic()
    renamed = table.assign(
        stage=table["stage"].map({"I": 1, "II": 20, "III": 300}), sex=table["sex"].map({"f": "a", "m": "z"})
    )
    other = fit(renamed, kinds=KINDS | {"stage": "ordinal"})
    np.testing.assert_array_equal(fit(table).W12, other.W12)


def test_reversing_an_order_reverses_the_signs_in_law():
    """Of the strongest edge, which is far from zero."""
    long = {"warmup": 200, "draws": 300}
    forward = fit(clinic(n=300), **long)
    backward = fit(clinic(n=300), kinds=KINDS | {"stage": ["III", "II", "I"]}, **long)
    strong = {"query": "stage", "variable": "gene5"}
    assert (forward.W12.sel(strong) > 0).mean() > 0.99
    assert (backward.W12.sel(strong) < 0).mean() > 0.99


def test_the_edges_behind_mixed_columns_are_found_through_the_gaps():
    posterior = fit(clinic(n=400), warmup=200, draws=400)
    found = posterior.edges().head(2)
    assert set(zip(found["query"], found["variable"], strict=True)) == {("age", "gene4"), ("stage", "gene5")}
    assert posterior.edges().set_index(["query", "variable"]).loc[("age", "gene4"), "partial_correlation"] > 0.2


def test_nothing_moves_when_all_is_continuous_and_complete():
    table = clinic(missing=0)[["age", "gene4", "gene5", "gene6", "gene7"]]
    rank_normal = fit(table, query=["age"], kinds=None)
    scores = ndtri(table.rank() / (len(table) + 1))
    by_hand = mb.estimate(pd.DataFrame(scores, columns=table.columns), ["age"], margins="gaussian", **QUICK)
    np.testing.assert_allclose(rank_normal.W12, by_hand.W12, rtol=1e-4, atol=1e-6)


def test_any_number_of_jobs_gives_the_same_numbers():
    np.testing.assert_array_equal(fit(clinic()).W12, fit(clinic(), n_jobs=2).W12)


def test_a_row_without_a_single_observation_is_no_obstacle():
    table = clinic(missing=0.2)
    table.loc[3] = [None] * 8
    some = table[["sex", "stage", "visits", "gene4", "gene5"]]
    assert np.isfinite(fit(some, query=["sex"], kinds={"stage": ["I", "II", "III"]}).W12).all()


def test_a_file_is_read_like_the_frame_it_came_from(tmp_path):
    table = clinic()
    table.to_csv(tmp_path / "clinic.csv", index=False)
    np.testing.assert_array_equal(fit(table).W12, fit(tmp_path / "clinic.csv").W12)


REFUSED = {
    "unordered levels": ({"kinds": None}, "column 'stage' has 3 unordered levels.*pass kinds="),
    "a kind without a copula": ({"margins": "gaussian"}, "kinds belong to a copula"),
    "unknown margins": ({"margins": "normal"}, "known are 'auto', 'rank' and 'gaussian'"),
}


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals_say_what_to_do(options, message):
    with pytest.raises(ValueError, match=message):
        fit(clinic(), **options)


def test_a_table_is_mixed_unless_one_says_otherwise():
    table = clinic()
    np.testing.assert_array_equal(
        mb.estimate(table, ["age", "stage"], kinds=KINDS, **QUICK).W12, fit(table, query=["age", "stage"]).W12
    )


def test_permuting_the_columns_permutes_the_answer():
    """Seeds differ, so up to Monte Carlo error: |z| < 5.5 for 15 weights, a false alarm in a million."""
    table, long = clinic(), {"warmup": 100, "draws": 400, "seed": 1}
    order = ["gene6", "visits", "sex", "gene7", "age", "gene4", "stage", "gene5"]
    one = fit(table, **long)
    other = fit(table[order], query=["sex", "age", "stage"], **long | {"seed": 2})
    (a, u), (b, v) = (errors(f, one.query, one.variables) for f in (one, other))
    assert np.abs((a - b) / np.sqrt(u + v)).max() < 5.5


def errors(posterior, query, variables):
    """The mean of each weight, and the square of its Monte Carlo error."""
    W12 = posterior.W12.sel(query=query, variable=variables)
    edges = posterior.edges(all=True).set_index(["query", "variable"])["ess"].unstack().loc[query, variables]
    return W12.mean(("chain", "draw")).values, W12.var(("chain", "draw")).values / edges.to_numpy()
