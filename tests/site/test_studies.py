"""The studies' own arithmetic, and that a run which was stopped goes on where it was."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

STUDIES = Path(__file__).parents[2] / "studies"
pytestmark = pytest.mark.skipif(not STUDIES.exists(), reason="the studies are part of the repository only")
MODULES = ("common", "designs", "methods", "fscore", "rules", "networks", "runtime", "mixing", "errata")
MODULES += ("mixed", "mixed_peers", "effect_sizes", "clinical", "transcriptome", "colorectal", "agreement")


@pytest.fixture(scope="module")
def studies() -> Any:
    """The modules by name; taken out again, since the benchmarks have some of the same names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(STUDIES), *sys.path])
        found = ModuleType("studies")
        for name in MODULES:
            patch.delitem(sys.modules, name, raising=False)
            __import__(name)
            setattr(found, name, sys.modules[name])
        yield found
        for name in MODULES:
            sys.modules.pop(name, None)


HUBS = "hubs-p10-q90-n1000-density0.05"


def record(method: str, number: int, chosen: Sequence[int], true: Sequence[int], **given: Any) -> dict[str, Any]:
    """A result as a file has it: twenty pairs, the same chosen by every rule and likely, the others not."""
    machine = {"processor": "abacus", "cores": 1, "gigabytes": 1}
    told = {"date": "2020-01-01", "machine": machine, "versions": {"python": "3"}}
    made = {
        "design": HUBS,
        "method": method,
        "set": number,
        "options": {"rows": 1000},
        "seconds": 1.0,
        "pairs": 20,
    }
    made |= {"true": list(true), "true_sign": [1] * len(true), "probabilities": True, "sign": [1] * 20}
    made |= {"score": [0.9 if pair in chosen else 0.1 for pair in range(20)], "source": told}
    return made | {"chosen": {rule: list(chosen) for rule in RULES}} | given


RULES = ("default", "level85", "probability90", "fdr10")


# ------------------------------------------------------------------------------------------- a store that lasts


def test_a_result_is_computed_once(studies: Any, tmp_path: Path) -> None:
    calls = []
    work = lambda: calls.append(1) or {"answer": 42}  # noqa: E731
    path = tmp_path / "deep" / "one.json"
    assert [studies.common.kept(path, work) for _ in range(3)] == [{"answer": 42}] * 3
    assert len(calls) == 1
    assert [one.name for one in path.parent.iterdir()] == ["one.json"]


def test_work_that_fails_leaves_nothing(studies: Any, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        studies.common.kept(tmp_path / "one.json", lambda: {"answer": 1 // 0})
    assert list(tmp_path.iterdir()) == []


def test_a_second_run_adds_only_what_is_missing(
    studies: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, int]] = []
    monkeypatch.setattr(
        studies.fscore,
        "measured",
        lambda design, method, number: calls.append((method, number)) or {"set": number},
    )
    few, more = studies.designs.Hubs(50), studies.designs.Hubs(60)
    studies.fscore.run(tmp_path, [few], ["laplace"], range(2), jobs=1)
    studies.fscore.run(tmp_path, [few], ["laplace", "horseshoe"], range(2), jobs=1)
    studies.fscore.run(tmp_path, [more], ["laplace"], range(1), jobs=1)
    assert calls == [("laplace", 0), ("laplace", 1), ("horseshoe", 0), ("horseshoe", 1), ("laplace", 0)]


def test_an_absent_method_is_skipped(
    studies: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(studies.designs, "r_has", lambda package: False)
    design = studies.designs.Hubs(30, 0.2, 2, 5)
    assert studies.fscore.result(tmp_path, design, "bdgraph", 0) is None
    assert "skipped: Rscript" in capsys.readouterr().out
    assert list(tmp_path.rglob("*.json")) == []


# ------------------------------------------------------------------------------------------------ known networks


def implied(known: Any) -> tuple[np.ndarray, np.ndarray]:
    """Partial correlations of the pairs in a long table, and the true ones."""
    W = np.linalg.inv(np.cov(known.table.to_numpy().T))
    scale, (i, j) = np.sqrt(np.diag(W)), known.ends
    return -W[i, j] / (scale[i] * scale[j]), known.pairs["partial_correlation"].to_numpy()


def test_pairs_touch_the_query_and_are_there_once(studies: Any) -> None:
    known = studies.designs.Hubs(50, query=3, rest=5).data(1)
    ends = {frozenset(pair) for pair in known.pairs[["query", "variable"]].itertuples(index=False)}
    assert len(known.pairs) == len(ends) == 3 * 5 + 3
    assert all(end & set(known.query) for end in ends)


def test_pairs_agree_with_what_the_simulation_tells(studies: Any) -> None:
    design = studies.designs.Hubs(50, 0.3, 3, 5)
    told, found = design.simulated(4), design.data(4).pairs.set_index(["query", "variable"])
    for truth in (told.truth, told.query_edges):
        truth = truth.set_index(["query", "variable"])
        pd.testing.assert_frame_equal(found.loc[truth.index], truth[["partial_correlation", "edge"]])


def test_a_published_network_has_its_moral_graph(studies: Any) -> None:
    pytest.importorskip("pgmpy", reason="the network is part of pgmpy")
    names, W = studies.designs.published("ecoli70")
    edges = {frozenset((names[i], names[j])) for i, j in zip(*np.nonzero(np.triu(W, 1)), strict=True)}
    assert len(names) == 46
    assert len(edges) == 84
    assert frozenset(("asnA", "icdA")) in edges  # an arc
    assert frozenset(("cspG", "eutG")) in edges  # both are parents of lacY
    long = studies.designs.Real(rows=200_000).data(0)
    assert np.max(np.abs(np.subtract(*implied(long)))) < 0.02


def test_the_number_draws_the_query(studies: Any) -> None:
    table, W = np.zeros((2, 30)), np.eye(30)
    names = studies.designs.numbered(30)
    first, again, other = (studies.designs.queried(table, W, names, 4, number) for number in (1, 1, 2))
    assert first.query == again.query != other.query
    assert list(first.table)[:4] == first.query
    assert sorted(first.table) == names


def test_another_simulator_gives_tables_of_its_network(studies: Any) -> None:
    if not studies.designs.r_has("BDgraph"):
        pytest.skip("R with BDgraph is not installed")
    few, many = (studies.designs.GWishart("cluster", rows, 12, 3).data(1) for rows in (20, 100_000))
    assert np.array_equal(few.W, many.W)
    assert 0 < many.pairs["edge"].sum() < len(many.pairs)
    assert np.max(np.abs(np.subtract(*implied(many)))) < 0.02


# -------------------------------------------------------------------------------------------------------- scores


def test_scores_of_a_selection(studies: Any) -> None:
    found = studies.fscore.of_a_rule(record("spike-slab", 0, [0, 1, 2, 3], [0, 1, 2, 5, 6, 7]), "default")
    assert (found["found"], found["claimed"], found["edges"]) == (3, 4, 6)
    assert (found["precision"], found["recall"], found["f"]) == (3 / 4, 3 / 6, 0.6)
    assert found["realised"] == 1 / 4
    assert found["promised"] == pytest.approx(0.1)


def test_nothing_claimed_is_nothing_false(studies: Any) -> None:
    found = studies.fscore.of_a_rule(record("spike-slab", 0, [], [1, 2]), "default")
    assert (found["realised"], found["promised"], found["f"]) == (0.0, 0.0, 0.0)
    assert studies.fscore.of_a_rule(record("spike-slab", 0, [], []), "default")["f"] == 1.0


def test_wrong_signs_are_counted_beside_the_scores(studies: Any) -> None:
    signs = [-1, 1, -1, *[1] * 17]
    one = record("spike-slab", 0, [0, 1, 2], [0, 1, 5], sign=signs)
    found = studies.fscore.of_a_rule(one, "default")
    assert (found["wrong_sign"], found["found"]) == (1, 2)
    assert np.isnan(studies.fscore.of_a_rule(one | {"sign": [0] * 20}, "default")["wrong_sign"])


def test_scores_of_an_order(studies: Any) -> None:
    one = record("spike-slab", 0, [0], [0, 19])
    found = studies.fscore.of_the_order(one)
    assert found["average_precision"] == pytest.approx((1 + 2 / 20) / 2)
    assert found["log_loss"] == pytest.approx(-(19 * np.log(0.9) + np.log(0.1)) / 20)
    sure = record("spike-slab", 0, [0], [0], score=[1.0] + [0.0] * 19)
    assert studies.fscore.of_the_order(sure)["log_loss"] == pytest.approx(-np.log(0.999))
    assert np.isnan(studies.fscore.of_the_order(one | {"probabilities": False})["log_loss"])
    assert np.isnan(studies.fscore.of_the_order(record("spike-slab", 0, [0], []))["average_precision"])


def test_the_default_is_compared_on_the_same_sets(studies: Any) -> None:
    ours = [record("spike-slab", number, found, range(8)) for number, found in enumerate([range(8), [0], [1]])]
    rival = record("huge-mb", 0, range(4), range(8), probabilities=False)
    table = studies.fscore.summary(studies.fscore.scored([*ours, rival]))
    row = table.set_index("method").loc["huge-mb"]
    assert (row["sets"], row["shared"], row["f_mean"]) == (1, 1, pytest.approx(2 / 3))
    assert row["f_lead"] == pytest.approx(1 / 3)
    assert table["method"].tolist() == ["spike-slab", "huge-mb"]


def test_every_method_is_judged_by_its_own_rule(studies: Any) -> None:
    one = record("laplace-200", 0, [], [0, 1])
    one["chosen"]["level85"] = [0, 1]
    assert studies.fscore.summary(studies.fscore.scored([one]))["f"].tolist() == [1.0]


def test_error_rates_are_means_over_sets(studies: Any) -> None:
    records = [record("spike-slab", 0, range(10), range(9)), record("spike-slab", 1, range(10), range(7))]
    without = record("laplace-20", 0, range(10), [], probabilities=False)
    rates = studies.fscore.error_rates(studies.fscore.scored([*records, without]))
    assert rates.loc[rates["method"] == "laplace-20", "rule"].tolist() == ["fdr10"]
    rates = rates[rates["method"] == "spike-slab"]
    assert rates["realised"].to_numpy() == pytest.approx(0.2)
    assert rates["realised_se"].to_numpy() == pytest.approx(np.std([0.1, 0.3], ddof=1) / np.sqrt(2))
    assert rates["over"].to_numpy() == pytest.approx(0.1)


def test_edges_are_found_whichever_end_is_named_first(studies: Any) -> None:
    known = studies.designs.Hubs(20, 0.2, 2, 3).data(0)
    edges = pd.DataFrame({"query": ["Q2", "V3"], "variable": ["Q1", "Q2"]})
    assert studies.methods.places(known, edges).tolist() == [0, 6]
    assert studies.methods.selected(known, edges).sum() == 2
    with pytest.raises(ValueError, match="twice"):
        studies.methods.places(known, pd.concat([edges, edges]))


def test_the_largest_set_within_a_rate(studies: Any) -> None:
    chosen = studies.methods.within_rate(np.array([0.55, 0.99, 0.80, 0.93]), 0.1)
    assert chosen.tolist() == [False, True, True, True]


@pytest.mark.parametrize(
    "method",
    ["spike-slab", "laplace-20", "laplace-200-unscaled", "bgl-200", "glasso-cv", "bdgraph-mpl", "huge-mb"],
)
def test_strong_edges_are_found_with_their_signs(studies: Any, method: str) -> None:
    if method.startswith(("bdgraph", "huge")) and not studies.designs.r_has(
        "BDgraph" if "bd" in method else "huge"
    ):
        pytest.skip("R with this package is not installed")
    design = studies.designs.Hubs(2000, 0.3, 2, 6)
    found = studies.fscore.measured(design, method, 1)
    rule = studies.methods.METHODS[method].rule
    scores = studies.fscore.of_a_rule(found, rule)
    assert scores["found"] == scores["edges"] == len(found["true"]) > 1
    assert scores["wrong_sign"] == 0 or method in ("bdgraph-mpl", "huge-mb")
    assert studies.fscore.of_the_order(found)["average_precision"] >= 0.5
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_rules_are_judged_by_the_probabilities_of_a_result(studies: Any) -> None:
    one = record("spike-slab", 0, [], [0, 1], score=[0.95, 0.6, 0.45, *[0.0] * 17])
    half, sure = (studies.rules.judged(one, rule) for rule in ("at least 1/2", "at least 0.9"))
    assert (half["claimed"], half["f"], sure["claimed"], sure["recall"]) == (2, 1.0, 1, 0.5)
    assert "## Hubs, n = 1,000 (1 sets)" in studies.rules.page([one])


# ----------------------------------------------------------------------------------- effect sizes and agreement


@pytest.mark.parametrize("columns", ["independent", "factors", "summed"])
def test_effects_have_the_size_they_should(studies: Any, columns: str) -> None:
    table, query, truth = studies.effect_sizes.drawn(columns, 12, 1, rows=200_000)
    W, names = np.linalg.inv(np.cov(table.to_numpy().T)), list(table)
    scale = np.sqrt(np.diag(W))
    i, j = ([names.index(name) for name in truth[end]] for end in ("query", "variable"))
    assert -W[i, j] / (scale[i] * scale[j]) == pytest.approx(truth["true"].to_numpy(), abs=0.01)
    assert truth.groupby("query")["true"].apply(lambda t: sorted(abs(t))).tolist() == [[0.3, 0.4, 0.5]] * 3
    assert query == ["Q1", "Q2", "Q3"]


def test_ratios_and_coverage_of_true_edges(studies: Any) -> None:
    names = ("true", "partial_correlation", "lower", "upper", "selected", "known")
    edges = [(0.5, 0.6, 0.4, 0.8, True, 0.5), (-0.4, -0.2, -0.3, -0.1, True, -0.4), (0.3, *[None] * 3, False, 0.3)]
    one = {"columns": "factors", "others": 50, "set": 0, "false": 1, "seconds": 2.0}
    one |= {"edges": [dict(zip(names, edge, strict=True)) for edge in edges]}
    row = studies.effect_sizes.summary([one]).iloc[0]
    assert (row["selected"], row["true"], row["false"]) == (2, 3, 1)
    assert row["ratio"] == pytest.approx((1.2 + 0.5) / 2)
    assert (row["covered"], row["covered_all"]) == (0.5, 0.5)


def test_a_study_of_effect_sizes_runs(studies: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(studies.effect_sizes, "SCHEDULE", {"chains": 1, "warmup": 30, "draws": 50})
    one = studies.effect_sizes.measured("factors", 10, 0)
    assert len(one["edges"]) == 9
    assert json.loads(json.dumps(one, allow_nan=False)) == one
    assert "| 10 | factors | 1 |" in studies.effect_sizes.page([one])


def test_chains_that_disagree_are_told_with_their_pair(studies: Any) -> None:
    shares = np.array([[[np.nan, 0.2, 0.9]], [[np.nan, 0.3, 0.4]]])
    found = studies.agreement.apart(shares, ["a", "b", "c"])
    assert (found["pair"], found["chains"]) == ("a ~ c", [0.9, 0.4])
    assert found["apart"] == pytest.approx(0.5)


def test_copies_are_alike(studies: Any) -> None:
    made = studies.agreement.copies(1, rows=50_000)
    alike = np.corrcoef(made.table.filter(like="copy").to_numpy().T)
    assert alike[np.triu_indices(10, 1)] == pytest.approx(0.98, abs=0.002)


def test_a_study_of_agreement_runs(studies: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    small = studies.agreement.copies(0, rows=60, others=4)
    known = studies.agreement.TABLES["copies"]
    made = {"chains": 2, "warmup": 30, "draws": 60, **small.options}
    small = studies.agreement.Table(small.table, small.query, made)
    monkeypatch.setitem(
        studies.agreement.TABLES, "copies", studies.agreement.Source(known.title, lambda folder, k: small, 0.05)
    )
    one = studies.agreement.measured("copies", None, 0, 1)
    assert one["draws"] == [2, 60]
    assert 0 < one["drawn"]["apart"] <= 1
    assert all(size > 0 for size in one["effective"])
    assert json.loads(json.dumps(one, allow_nan=False)) == one
    fits = studies.agreement.table([one])
    assert "ten copies at r = 0.98" in studies.agreement.page(fits, [one["source"]])
    earlier = pd.concat([fits.assign(set=number, worst=1.0) for number in (1, 0)])
    both = studies.agreement.together(fits, earlier)
    assert both["set"].tolist() == [0, 1]
    assert both["worst"].tolist() == [fits["worst"].item(), 1.0]


def test_a_study_of_mixed_tables_beside_a_peer_counts_both(studies: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        studies.mixed_peers, "DESIGN", {"query": 2, "rest": 6, "rows": 60, "kinds": "mixed", "missing": 0.1}
    )
    monkeypatch.setattr(studies.mixed_peers, "FIT", {"chains": 1, "warmup": 20, "draws": 20, "n_jobs": 1})
    data = studies.mixed_peers.mb.simulate(seed=0, **studies.mixed_peers.DESIGN)
    ours = {"method": "markovblanket", "set": 0, **studies.mixed_peers.ours(data, 0)}
    records = [ours | {"set": k} for k in range(2)]
    records += [one | {"method": "gcgm", "f1": one["f1"] - 0.1, "ms": 3 * one["ms"]} for one in records]
    assert list(studies.mixed_peers.table(records)["sets"]) == [2, 2]
    assert "higher by 0.100" in studies.mixed_peers.differences(records)
    assert "3.0 times less" in studies.mixed_peers.differences(records)


def test_a_study_of_mixed_tables_runs(studies: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(studies.mixed, "DESIGN", {"query": 2, "rest": 6, "kinds": "mixed", "missing": 0.02})
    monkeypatch.setattr(studies.mixed, "SCHEDULE", {"chains": 1, "warmup": 30, "draws": 50})
    one = studies.mixed.measured(80, 0)
    assert set(one["found"]) == set(studies.mixed.RULES)
    assert len(studies.mixed.table([one])) == 2


# ------------------------------------------------------------------------------------------------------ the rest


def test_every_node_has_a_place_of_its_own(studies: Any) -> None:
    data = studies.designs.Hubs(rows=50).data(30)
    places = studies.networks.ring(data.pairs, data.query)
    assert set(places) == set(data.table)
    assert len({(round(x, 6), round(y, 6)) for x, y in places.values()}) == len(data.table.columns)
    radii = {name: round(float(np.hypot(*places[name])), 6) for name in places}
    assert {radii[name] for name in data.query} == {0.5}
    assert {radius for name, radius in radii.items() if name not in data.query} == {1.0}


def test_autocorrelation_of_a_chain_with_memory(studies: Any) -> None:
    noise, x = np.random.default_rng(1).standard_normal(100_000), np.zeros(100_000)
    for t in range(1, len(x)):
        x[t] = 0.8 * x[t - 1] + noise[t]
    assert studies.mixing.autocorrelation(x)[:6] == pytest.approx(0.8 ** np.arange(6), abs=0.05)


def test_weights_of_standardised_variables(studies: Any) -> None:
    data = studies.designs.Hubs(rows=200_000, query=2, rest=4, density=0.5).simulated(1)
    W = np.linalg.inv(np.corrcoef(data.table.to_numpy().T))
    names = list(data.table)
    for edge, (query, variable) in studies.mixing.chosen(data.truth).items():
        expected = W[names.index(query), names.index(variable)]
        assert studies.mixing.true_weights(data)[edge] == pytest.approx(expected, abs=0.05)


def test_speed_is_a_difference_and_a_ratio_a_median(studies: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 9.0, 20.0, 24.0])
    monkeypatch.setattr(studies.runtime.time, "process_time", lambda: next(clock))
    contestant = studies.runtime.Contestant(lambda **options: None, few=10, many=60)
    assert contestant.seconds_per_sweep() == pytest.approx((9 - 4) / 50)
    one = {"seconds": {"BGL": [8.0, 9.0, 50.0], "laplace": [2.0, 3.0, 5.0]}}
    assert (studies.runtime.median(one, "BGL"), studies.runtime.ratio(one, "laplace")) == (9.0, 4.0)


def test_the_printed_order_is_right_for_one_query_variable_only(studies: Any) -> None:
    from markovblanket.model import sweep
    from markovblanket.model.scatter import from_columns

    for p, same in ((1, True), (2, False)):
        rng = np.random.default_rng(p)
        scatter = from_columns(rng.standard_normal((9, p)), rng.standard_normal((9, 3)))
        draws = [
            draw(np.random.default_rng(5), np.eye(p), np.eye(p), scatter)
            for draw in (studies.errata.printed_order, sweep.draw_query)
        ]
        assert np.array_equal(*draws) is same


def test_page_shows_the_scores(studies: Any, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the studies draw pictures")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(STUDIES))
        import fscore_page

    ours = [record("spike-slab", number, range(8), range(10)) for number in range(3)]
    rivals = [
        record(name, number, range(5), range(10)) for name in ("laplace-200", "huge-mb") for number in range(3)
    ]
    fscore_page.write(tmp_path, [*ours, *rivals])
    page = (tmp_path / "fscore.md").read_text()
    assert "In mean f-score the default is at least as good as all others in 1 of 1 designs." in page
    assert "| hubs, n = 1,000, density 0.05 | 0.889 | +0.222 (0.000) [3] |" in page
    assert "2020-01-01, on abacus" in page
    assert (tmp_path / "fscore.png").stat().st_size > 10_000
    assert pd.read_csv(tmp_path / "fscore.csv")["f"].tolist() == [0.8889, 0.6667, 0.6667]
    sets = pd.read_csv(tmp_path / "fscore_sets.csv")
    again = 2 * sets["found"] / (sets["claimed"] + sets["edges"])
    wanted = {"spike-slab": 0.8889, "laplace-200": 0.6667, "huge-mb": 0.6667}
    assert again.groupby(sets["method"]).median().round(4).to_dict() == wanted


def test_page_keeps_earlier_scores(studies: Any, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the studies draw pictures")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(STUDIES))
        import fscore_page

    methods, sets = ("spike-slab", "huge-mb"), (0, 1)
    records = [record(name, number, range(8), range(10)) for name in methods for number in sets]
    fscore_page.write(tmp_path, records)
    page, scores = ((tmp_path / name).read_text() for name in ("fscore.md", "fscore_sets.csv"))
    fscore_page.write(tmp_path, records[:1])
    assert (tmp_path / "fscore.md").read_text() == page
    assert (tmp_path / "fscore_sets.csv").read_text() == scores
    fscore_page.write(tmp_path, [record("spike-slab", 1, range(10), range(10))])  # a new result replaces its own
    again = pd.read_csv(tmp_path / "fscore_sets.csv").query("method == 'spike-slab' and rule == 'default'")
    assert again["found"].tolist() == [8, 10]


def test_page_tells_what_is_lost(studies: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(STUDIES))
        pytest.importorskip("matplotlib", reason="the studies draw pictures")
        import fscore_page

    ours = [record("spike-slab", number, range(5), range(10)) for number in range(3)]
    rivals = [record("huge-mb", number, range(8), range(10)) for number in range(3)]
    scores = studies.fscore.scored([*ours, *rivals])
    told = fscore_page.verdict(studies.fscore.summary(scores))
    assert "in 0 of 1 designs. **Lost**: hubs, n = 1,000, density 0.05, huge, mb + ric, -0.222 (0.000)." in told
