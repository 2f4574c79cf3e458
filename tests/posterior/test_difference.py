"""Two posteriors side by side, against pairs written out and against planted differences."""

from __future__ import annotations

import numpy as np
import pytest

import markovblanket as mb
from markovblanket.posterior.observed import Observed, name_axes
from markovblanket.posterior.posterior import Posterior
from markovblanket.tables.table import Table

pytestmark = pytest.mark.filterwarnings("ignore::markovblanket.ConvergenceWarning")
QUICK = {"chains": 2, "warmup": 200, "draws": 300, "progress": False}
QUERY, REST = ["T", "N"], ["a", "b", "c"]
COLUMNS = (
    "query variable first second difference sd lower upper sign_probability probability_first probability_second"
)


def made(W12, query=QUERY, rest=REST, prior="SpikeSlab", margins="gaussian", inner=0.0):
    """A posterior whose draws of W12 are given, (chain, draw, query, variable), as is the pair in the query."""
    size, p = W12.shape[:2], len(query)
    values = {
        "W11": np.broadcast_to(np.eye(p) + inner * (1 - np.eye(p)), (*size, p, p)).copy(),
        "W12": W12,
        "W22_diagonal": np.ones((*size, len(rest))),
        "explained": np.ones((*size, len(query))),
        **{name: np.ones(size) for name in ("iterations", "residual", "scale_factor")},
    }
    X1, X2 = np.array([[-1.0], [1.0]]).repeat(len(query), 1), np.array([[-1.0], [1.0]]).repeat(len(rest), 1)
    names = tuple(query), tuple(rest)
    table = Table(X1, X2, *names, (*names[0], *names[1]), np.arange(2), {}).as_mixed()
    observed = Observed.of(table, margins, [], np.empty((*size, 2, 0)))
    return Posterior(*name_axes(values, query, rest), observed, {"prior": {"name": prior}})


def spiked(seed, draws=50, rest=3):
    """Draws with exact zeros in about half of them, in two chains."""
    rng = np.random.default_rng(seed)
    W12 = 0.5 + rng.standard_normal((2, draws, 2, rest))
    return np.where(rng.random(W12.shape) < 0.5, 0.0, W12)


def indexed(table):
    return table.set_index(["query", "variable"])


def test_every_figure_is_that_of_all_pairs():
    one, other = spiked(1), spiked(2, draws=40)
    table = mb.difference(made(one), made(other), all=True)
    assert table.columns.tolist() == [*COLUMNS.split(), "only_first", "only_second", "rhat", "ess"]
    row = indexed(table).loc["N", "b"]
    a, b = (-W12[:, :, 1, 1].ravel() for W12 in (one, other))  # the diagonals are 1
    every = np.sort((a[:, None] - b).ravel())
    p, r = (a != 0).mean(), (b != 0).mean()
    expected = {
        "first": a.mean(),
        "second": b.mean(),
        "difference": every.mean(),
        "sd": np.sqrt(a.var(ddof=1) + b.var(ddof=1)),
        "lower": every[int(np.ceil(0.025 * every.size)) - 1],
        "upper": every[int(np.ceil(0.975 * every.size)) - 1],
        "sign_probability": max((every > 0).mean(), (every < 0).mean()),
        "probability_first": p,
        "probability_second": r,
        "only_first": p * (1 - r),
        "only_second": r * (1 - p),
    }
    for name, value in expected.items():
        assert row[name] == pytest.approx(value, rel=1e-12), name


def test_the_order_of_the_two_decides_the_sign():
    forth, back = (indexed(mb.difference(*two, all=True)) for two in both_ways(made(spiked(1)), made(spiked(2))))
    back = back.reindex(forth.index)
    np.testing.assert_allclose(forth["difference"], -back["difference"])
    np.testing.assert_array_equal(forth["sign_probability"], back["sign_probability"])
    np.testing.assert_array_equal(forth["only_first"], back["only_second"])


def both_ways(one, other):
    return (one, other), (other, one)


def test_names_count_and_not_places():
    """The other posterior has the same draws with its axes in another order, and another variable besides."""
    W12 = spiked(3, rest=4)
    plain, turned = made(W12[..., :3]), made(W12[:, :, ::-1, [3, 2, 0, 1]], QUERY[::-1], ["z", "c", "a", "b"])
    table = mb.difference(plain, turned, all=True)
    np.testing.assert_allclose(table["difference"], 0, atol=1e-15)
    assert table.attrs == {"only_in_first": [], "only_in_second": ["z"]}
    assert mb.difference(turned, plain).attrs == {"only_in_first": ["z"], "only_in_second": []}


def test_rules_select_as_for_edges():
    rng = np.random.default_rng(4)
    centre = np.array([[3.0, 1.8, 0.0], [0.0, -3.0, 0.5]])
    one, other = (
        made(c + rng.standard_normal((2, 500, 2, 3)) * 0.5, prior="Laplace", inner=0.2)
        for c in (centre, 0 * centre)
    )
    table = indexed(mb.difference(one, other, all=True))
    for level in (0.5, 0.95):
        chosen = indexed(mb.difference(one, other, level))
        interval = indexed(mb.difference(one, other, level, all=True))
        excludes = interval.index[(interval["lower"] > 0) | (interval["upper"] < 0)]
        assert set(chosen.index) == set(excludes)
    few = indexed(mb.difference(one, other, fdr=0.01))
    assert 0 < len(few) < len(table)
    assert (1 - few["sign_probability"]).mean() <= 0.01
    assert set(indexed(mb.difference(one, other)).index) == set(indexed(mb.difference(one, other, 0.95)).index)
    assert table[["probability_first", "only_first", "only_second"]].isna().all(axis=None)
    with pytest.raises(ValueError, match="one of them"):
        mb.difference(one, other, 0.9, fdr=0.1)


def test_pairs_within_the_query_are_compared_too():
    W12 = spiked(1)
    table = indexed(mb.difference(made(W12, inner=-0.3), made(W12, QUERY[::-1], inner=0.1), all=True))
    assert len(table) == 7
    assert table.loc[("T", "N"), "difference"] == pytest.approx(0.4)
    assert table.loc[("T", "N"), "sign_probability"] == 1


def test_nothing_selected_is_an_empty_table():
    W12 = np.zeros((2, 20, 2, 3))
    table = mb.difference(made(W12), made(W12))
    assert table.empty
    assert table.columns.tolist()[:2] == ["query", "variable"]


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"query": ["T", "M"]}, r"different query variables: \['T', 'N'\] and \['T', 'M'\]"),
        ({"margins": "auto"}, "different margins, 'gaussian' and 'auto'"),
        ({"rest": ["x", "y", "z"]}, "no variable in common"),
    ],
)
def test_what_cannot_be_compared_is_refused(other, reason):
    with pytest.raises(ValueError, match=reason):
        mb.difference(made(spiked(1)), made(spiked(1), **other))


@pytest.fixture(scope="module")
def tables():
    """Two groups of rows; an edge has the other sign in the second, and one is there only."""
    rng = np.random.default_rng(5)
    groups = []
    for b, c in ((0.8, 0.0), (-0.8, 0.8)):
        X = rng.standard_normal((250, 6))
        T = 0.8 * X[:, 0] + b * X[:, 1] + c * X[:, 2] + rng.standard_normal(250)
        groups.append(np.column_stack([T, X]))
    return groups


def test_planted_differences_are_found_and_no_others(tables):
    first, second = (mb.estimate(table, [0], seed=k, **QUICK) for k, table in enumerate(tables))
    table = mb.difference(first, second).set_index("variable")
    assert set(table.index) == {2, 3}
    assert table.loc[2, "difference"] > 0 > table.loc[3, "difference"]
    assert (table["only_second"] > 0.9).tolist() == (table.index == 3).tolist()


def test_summaries_say_nearly_the_same_as_draws(tables):
    fits = {
        keep: [mb.estimate(table, [0], keep=keep, seed=k, **QUICK) for k, table in enumerate(tables)]
        for keep in ("draws", "summary")
    }
    full, summary = (mb.difference(*pair, all=True).set_index("variable").sort_index() for pair in fits.values())
    for name in ("first", "second", "difference", "sd", "only_first", "only_second"):
        np.testing.assert_allclose(summary[name], full[name], rtol=1e-8, atol=1e-12, err_msg=name)
    np.testing.assert_allclose(summary["sign_probability"], full["sign_probability"], atol=5e-3)
    for name in ("lower", "upper"):
        apart = np.abs(summary[name] - full[name])
        assert (apart[[1, 2, 3]] <= 0.1 * full["sd"][[1, 2, 3]]).all()
        assert (apart <= 0.1).all()  # edges that are hardly ever there have wide bins
    mixed = mb.difference(fits["draws"][0], fits["summary"][1])
    assert set(mixed["variable"]) == {2, 3}
