"""The studies' own arithmetic, and that a run which was stopped goes on where it was."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

STUDIES = Path(__file__).parents[2] / "studies"
pytestmark = pytest.mark.skipif(not STUDIES.exists(), reason="the studies are part of the repository only")
MODULES = ("common", "methods", "fscore", "networks", "runtime", "mixing", "errata")


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


def record(method: str, number: int, **counts: int) -> dict[str, Any]:
    """A result as a file has it, with the same counts for every rule."""
    rules = {rule: {"found": 0, "false": 0, "missed": 0, "wrong_sign": 0} | counts for rule in RULES}
    design = {"rows": 100, "density": 0.05, "query": 2, "rest": 6, "warmup": 30, "draws": 40}
    machine = {"processor": "abacus", "cores": 1, "gigabytes": 1}
    told = {"date": "2020-01-01", "machine": machine, "versions": {"python": "3"}}
    names = {"method": method, "set": number, "seconds": 1.0}
    return {**names, "design": design, "rules": rules, "source": told}


RULES = ("default", "level85", "fdr10")


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
    design = studies.fscore.Design(rows=50)
    studies.fscore.run(tmp_path, design, ["laplace"], sets=2, jobs=1)
    studies.fscore.run(tmp_path, design, ["laplace", "horseshoe"], sets=2, jobs=1)
    studies.fscore.run(tmp_path, replace(design, rows=60), ["laplace"], sets=1, jobs=1)
    assert calls == [("laplace", 0), ("laplace", 1), ("horseshoe", 0), ("horseshoe", 1), ("laplace", 0)]


def test_an_absent_method_is_skipped(
    studies: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(studies.methods, "_r_has", lambda package: False)
    design = studies.fscore.Design(30, 0.2, 2, 5, 20, 30)
    assert studies.fscore.result(tmp_path, design, "bdgraph", 0) is None
    assert "skipped: Rscript" in capsys.readouterr().out
    assert list(tmp_path.rglob("*.json")) == []


# -------------------------------------------------------------------------------------------------------- scores


def test_a_wrong_sign_is_missing_but_a_false_discovery(studies: Any) -> None:
    counts = {"found": 6, "false": 2, "missed": 6, "wrong_sign": 2}
    row = studies.fscore.scored([record("spike-slab", 0, **counts)]).iloc[0]
    assert (row["precision"], row["recall"]) == (6 / 8, 6 / 12)
    assert row["f"] == pytest.approx(0.6)
    assert row["fdp"] == 4 / 10


def test_nothing_claimed_is_nothing_false(studies: Any) -> None:
    row = studies.fscore.scored([record("spike-slab", 0, missed=5)]).iloc[0]
    assert (row["fdp"], row["f"]) == (0.0, 0.0)


def test_the_default_is_compared_on_the_same_sets(studies: Any) -> None:
    good, poor, middling = {"found": 8}, {"found": 2, "missed": 6}, {"found": 4, "missed": 4}
    ours = [record("spike-slab", 0, **good), record("spike-slab", 1, **poor), record("spike-slab", 2, **poor)]
    table = studies.fscore.summary(studies.fscore.scored([*ours, record("huge-mb", 0, **middling)]))
    rival = table.set_index("method").loc["huge-mb"]
    assert (rival["sets"], rival["f"], rival["default_f"]) == (1, pytest.approx(2 / 3), 1.0)
    assert rival["default_leads_by"] == pytest.approx(1 / 3)
    assert table["method"].tolist() == ["spike-slab", "huge-mb"]


def test_every_method_is_judged_by_its_own_rule(studies: Any) -> None:
    one = record("laplace-200", 0, missed=4)
    one["rules"]["level85"] = {"found": 4, "false": 0, "missed": 0, "wrong_sign": 0}
    assert studies.fscore.summary(studies.fscore.scored([one]))["f"].tolist() == [1.0]


def test_error_rates_are_means_over_sets(studies: Any) -> None:
    records = [record("spike-slab", 0, found=9, false=1), record("spike-slab", 1, found=7, wrong_sign=3, missed=3)]
    rates = studies.fscore.error_rates(studies.fscore.scored([*records, record("laplace-20", 0, false=5)]))
    assert set(rates["method"]) == {"spike-slab"}
    assert rates["fdr"].to_numpy() == pytest.approx(0.2)
    assert rates["se"].to_numpy() == pytest.approx(np.std([0.1, 0.3], ddof=1) / np.sqrt(2))


def test_edges_are_what_is_not_zero(studies: Any) -> None:
    block = pd.DataFrame([[0.0, -2.0], [3.0, 0.0]], index=["a", "b"], columns=["x", "y"])
    edges = studies.methods.Answer({"default": block}, 0.0).edges("default")
    assert edges.to_dict("records") == [
        {"query": "a", "variable": "y", "weight": -2.0},
        {"query": "b", "variable": "x", "weight": 3.0},
    ]


@pytest.mark.parametrize("method", ["spike-slab", "laplace-20", "laplace-200-unscaled", "bgl-200", "glasso-cv"])
def test_strong_edges_are_found_with_their_signs(studies: Any, method: str) -> None:
    design = studies.fscore.Design(rows=2000, density=0.3, query=2, rest=6, warmup=50, draws=100)
    found = studies.fscore.measured(design, method, 1)
    rule = studies.methods.METHODS[method].rule
    edges = int(design.data(1).truth["edge"].sum())
    assert found["rules"][rule]["found"] == edges > 1
    assert found["rules"][rule]["wrong_sign"] == 0
    assert json.loads(json.dumps(found)) == found


# ------------------------------------------------------------------------------------------------------ the rest


def test_every_node_has_a_place_of_its_own(studies: Any) -> None:
    data = studies.fscore.Design(rows=50).data(30)
    places = studies.networks.ring(data.truth, data.query)
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
    data = studies.fscore.Design(rows=200_000, query=2, rest=4, density=0.5).data(1)
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

    ours = [record("spike-slab", number, found=8, missed=2) for number in range(3)]
    rivals = [
        record(name, number, found=5, missed=5) for name in ("laplace-200", "huge-mb") for number in range(3)
    ]
    fscore_page.write(tmp_path, [*ours, *rivals])
    page = (tmp_path / "fscore.md").read_text()
    assert "The default's median f-score, 0.889, is at least that of the best of the others, huge" in page
    assert "2020-01-01, on abacus" in page
    assert (tmp_path / "fscore.png").stat().st_size > 10_000
    assert pd.read_csv(tmp_path / "fscore.csv")["f"].tolist() == [0.8889, 0.6667, 0.6667]
    sets = pd.read_csv(tmp_path / "fscore_sets.csv")
    again = 2 * sets["found"] / (2 * sets["found"] + sets["false"] + sets["missed"])
    wanted = {"spike-slab": 0.8889, "laplace-200": 0.6667, "huge-mb": 0.6667}
    assert again.groupby(sets["method"]).median().round(4).to_dict() == wanted
