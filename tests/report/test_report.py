"""The page says what the posterior says, harms nobody, and needs nothing but itself."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import sys

import numpy as np
import pytest

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

import markovblanket as mb
from markovblanket import report
from markovblanket.plots.chains import autocorrelations
from markovblanket.report import _curves, _sections, _slider
from support.reports import ALERT, NASTY, Page, crowded, fitted, nasty_table


@pytest.fixture(scope="module")
def posterior():
    return fitted()


@pytest.fixture(scope="module")
def text(posterior):
    return report.html(posterior)


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def pairs(edges):
    return {(str(edge.query), str(edge.variable)) for edge in edges.itertuples()}


def bytes_between(code, low, high):
    return low + (high - low) * (np.frombuffer(base64.b64decode(code), dtype=np.uint8) / 255)


def test_the_page_shows_the_edges_of_the_default_rule_in_picture_and_table(posterior, page):
    edges, inner = posterior.edges(), posterior.query_edges()
    assert len(edges) > 2
    count = len(page.data["sure"])
    shown = [k for k in page.shown_rows if k < count]
    assert [page.edge(k) for k in shown] == [(edge.query, edge.variable) for edge in edges.itertuples()]
    assert page.shown_lines == page.shown_rows
    assert [page.edge(k) for k in page.shown_rows if k >= count] == [
        (e.query, e.other) for e in inner.itertuples()
    ]


def test_the_numbers_of_the_table_are_those_of_the_posterior(posterior, page):
    for k, edge in zip(page.shown_rows, posterior.edges().itertuples(), strict=False):
        cells = [" ".join(cell.split()).replace("−", "-") for cell in page.rows[k]]
        assert cells[0] == " ".join(f"{edge.query} ~ {edge.variable}".split())
        assert cells[1] == f"{edge.partial_correlation:+.2f}"
        assert cells[4] == f"{edge.weight:+.2f}"
        ends = [f"{end:+.2f}" if end else "0" for end in (edge.lower, edge.upper)]
        assert cells[5] == " to ".join(ends)


@pytest.mark.parametrize("prior", ["spike-slab", "laplace"])
def test_wherever_the_slider_is_the_edges_are_those_of_its_rule(posterior, prior):
    known = posterior if prior == "spike-slab" else fitted(prior="laplace")
    page, slider = Page(report.html(known)), _slider.Slider.of(known)
    assert page.data["rule"] == slider.rule == ("inclusion" if prior == "spike-slab" else "level")
    sure = np.array(page.data["sure"])
    for percent in range(slider.least, 100):
        least = percent / 100
        shown = sure >= least if slider.rule == "inclusion" else sure > (1 + least) / 2
        selected = known.selected(**{slider.rule: least}).stack()
        assert {page.edge(k) for k in np.flatnonzero(shown)} == set(selected.index[selected])
    assert len(page.shown_lines) == len(known.edges()) + len(known.query_edges())


@pytest.mark.parametrize("prior", ["spike-slab", "laplace"])
def test_at_every_false_discovery_rate_the_edges_are_those_of_the_rule(posterior, prior):
    known = posterior if prior == "spike-slab" else fitted(prior="laplace")
    page = Page(report.html(known))
    enters, share = np.array(page.data["enters"]), page.data["share"]
    assert (share["start"], share["last"]) == (10, 50)
    counts = set()
    for percent in range(1, 51):
        selected = known.selected(fdr=percent / 100).stack()
        found = {page.edge(k) for k in np.flatnonzero(enters <= percent)}
        assert found == set(selected.index[selected])
        stage = next(stage for stage in share["stages"] if stage["place"] >= percent)
        ends = {end for k in np.flatnonzero(enters <= percent) for end in page.data["ends"][k]}
        assert {str(end) for end in ends} <= set(stage["at"])
        counts.add(len(found))
    assert len(counts) > 5
    assert {page.edge(k) for k in np.flatnonzero(enters <= 10)} == pairs(known.edges(fdr=0.1))


def test_entries_of_a_crowd_are_those_of_all_its_pairs(monkeypatch):
    """Ties included, as where probabilities are shares of a few draws; those beyond the page do not matter."""
    monkeypatch.setattr(_slider, "MOST_EDGES_ON_PAGE", 60)
    probability = np.random.default_rng(3).binomial(40, 0.5 ** np.arange(1, 9), (30, 8)) / 40
    probability[:, 0] = 0.9 + 0.0025 * np.arange(30)
    enters = _slider.entries(probability)
    held = 0
    for percent in range(1, 51):
        selected = _slider.selection.by_false_sign_rate(probability, percent / 100)
        if selected.sum() <= 60:
            np.testing.assert_array_equal(enters <= percent, selected)
            held = percent
        else:
            assert (enters <= percent).sum() > 60
    assert 10 < held < 50


def test_where_the_page_cannot_hold_its_edges_the_share_ends_or_is_not_offered(posterior, monkeypatch):
    monkeypatch.setattr(_slider, "MOST_EDGES_ON_PAGE", len(posterior.edges(fdr=0.2)))
    none = np.zeros_like(posterior.sign_probability, dtype=bool)
    share = _slider.Share.of(posterior, none)
    assert 20 <= share.last < 50
    assert len(posterior.edges(fdr=(share.last + 1) / 100)) > _slider.MOST_EDGES_ON_PAGE
    monkeypatch.setattr(_slider, "MOST_EDGES_ON_PAGE", 2)
    assert _slider.Share.of(posterior, none) is None
    page = Page(report.html(posterior))
    assert page.data["share"] is None
    assert not any(known.get("name") == "meaning" for _, known in page.tags)


def test_a_default_between_two_places_is_a_place_of_its_own(posterior, monkeypatch):
    """Its threshold is exact, whatever the number of its place."""
    inclusion = np.unique(posterior.inclusion)
    between = inclusion[(100 * inclusion) % 1 > 0.1][-1]
    monkeypatch.setattr(_slider, "usual", lambda posterior, rule: float(between))
    slider, page = _slider.Slider.of(posterior), Page(report.html(posterior))
    assert slider.threshold(slider.start) == between != slider.start / 100
    assert page.data["usual"] == {"place": slider.start, "threshold": between}
    edges = posterior.edges(inclusion=between)
    assert {page.edge(k) for k in page.shown_rows if k < len(page.data["sure"])} == pairs(edges)
    assert f"with a probability of at least {100 * between:.1f} %" in page.text


def test_every_stage_of_the_picture_has_a_place_for_every_node_that_it_shows(posterior, page):
    slider, sure = _slider.Slider.of(posterior), np.array(page.data["sure"])
    assert [stage["place"] for stage in page.data["stages"]] == slider.stages()
    for stage in page.data["stages"]:
        nodes = {end for k in np.flatnonzero(sure >= stage["place"] / 100) for end in page.data["ends"][k]}
        assert {str(node) for node in nodes} <= set(stage["at"])
        left, top, width, height = stage["view"]
        for x, y in stage["at"].values():
            assert left < x < left + width
            assert top < y < top + height


def test_names_are_text_whatever_they_are(text, page):
    kinds = [tag for tag, _ in page.tags]
    assert kinds.count("script") == 3
    assert "img" not in kinds
    assert not any(name.startswith("on") for _, known in page.tags for name in known)
    assert set(NASTY) <= set(page.data["names"])
    assert ALERT in page.text
    assert ALERT not in text
    assert "{{ 7 * 7 }}" in page.text
    assert not set("<>&\u2028\u2029") & set(page.scripts[0])


def test_nothing_is_loaded_and_nothing_foreign_would_run(page):
    for _, known in page.tags:
        assert not {"src", "srcset", "action", "xlink:href"} & set(known)
        assert (known.get("href") or "#").startswith(("#", "data:,"))
    assert not re.search(r"url\(|@import", page.styles[0])
    (policy,) = [known["content"] for tag, known in page.tags if tag == "meta" and "http-equiv" in known]
    assert policy.startswith("default-src 'none'")
    for inline in (*page.scripts[1:], *page.styles):
        digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "unsafe" not in policy


def test_the_page_is_small_and_tells_the_licence_of_what_it_carries(text, page):
    assert len(text.encode()) < 1_000_000
    assert "Permission to use, copy, modify" in page.text
    assert ("html", {"lang": "en", "class": "nojs"}) in page.tags  # without a script, its controls are not shown


def test_a_run_that_did_not_converge_says_so_loudly(posterior, page):
    assert "NOT CONVERGED" in page.text
    for problem in posterior.diagnostics().problems[:5]:
        assert " ".join(problem.split()) in " ".join(page.text.split())


def test_data_and_settings_are_on_the_page(posterior, page):
    said = " ".join(page.text.split())
    assert posterior.settings["data"]["sha256"] in said
    assert "seed=1," in said
    assert "negative weight is a positive partial correlation" in said
    for row in posterior.observed.table.describe():
        assert " ".join(str(row["name"]).split()) in said


def test_the_call_on_the_page_gives_the_same_draws(posterior):
    table, _ = nasty_table()
    names: dict[str, object] = {"table": table}
    with pytest.warns(mb.ConvergenceWarning):
        exec(_sections.call(posterior), names)
    np.testing.assert_array_equal(names["posterior"].W12.values, posterior.W12.values)


def test_curves_are_those_of_the_draws(posterior, page):
    for k in (0, len(page.data["ends"]) - 1):
        draws = _curves.kept(posterior, *page.edge(k))
        known = page.data["curves"][str(k)]
        low, high = known["range"]
        for c, chain in enumerate(draws):
            np.testing.assert_allclose(
                bytes_between(known["trace"][c], low, high), chain, atol=(high - low) / 250, rtol=1e-4
            )
            np.testing.assert_allclose(
                bytes_between(known["autocorrelation"][c], -1, 1), autocorrelations(chain, 60), atol=0.005
            )
        density, rest = known["density"], draws[draws != 0]
        assert density["zero"] == pytest.approx(np.mean(draws == 0), abs=1e-4)
        x = np.linspace(density["from"], density["to"], _curves.DENSITY_POINTS)
        y = bytes_between(density["curve"], 0, 1)
        assert np.sum(x * y) / np.sum(y) == pytest.approx(rest.mean(), abs=0.15 * rest.std())


def test_long_traces_are_thinned():
    known = _curves.curves_of(np.random.default_rng(0).standard_normal((2, 1234)))
    assert known["every"] == 3
    assert len(base64.b64decode(known["trace"][0])) == 412
    assert known["draws"] == 1234


def test_the_same_posterior_gives_the_same_page(posterior, text, tmp_path):
    posterior.save(tmp_path / "run")
    assert report.html(mb.load(tmp_path / "run")) == text


def test_without_draws_the_numbers_are_there_and_kept_edges_have_curves():
    table, query = nasty_table()
    named = [(query[0], table.columns[-1])]
    page = Page(report.html(fitted(keep="summary", named=named)))
    assert len(page.shown_rows) > 2
    curves = [page.edge(int(k)) for k in page.data["curves"] if int(k) < len(page.data["sure"])]
    assert set(curves) <= set(named)
    assert not any(known.get("id") == "checks" for _, known in page.tags)


def test_draws_on_disk_are_as_good_as_any(text, tmp_path):
    kept = Page(report.html(fitted(keep=tmp_path / "run")))
    first = Page(text)
    assert [kept.edge(k) for k in kept.shown_lines] == [first.edge(k) for k in first.shown_lines]
    assert set(kept.data["curves"]) == set(first.data["curves"])


def test_a_fit_of_another_model_is_reported_without_a_call_to_repeat_it():
    made = mb.simulate(rows=100, query=2, rest=4, density=0.5, seed=2)
    with pytest.warns(mb.ConvergenceWarning):
        known = mb.baselines.graphical_lasso(
            made.table, made.query, chains=2, warmup=20, draws=20, seed=1, progress=False
        )
    page = Page(report.html(known))
    assert page.data["rule"] == "level"
    assert "mb.estimate" not in page.text


def test_without_rows_there_is_no_data_to_describe():
    table, query = nasty_table()
    S = table.rank().corr() * len(table)
    with pytest.warns(mb.ConvergenceWarning):
        known = mb.estimate(scatter=S, n=len(table), query=query, chains=2, warmup=30, draws=30, seed=1)
    page = Page(report.html(known))
    assert [page.edge(k) for k in page.shown_rows if k < len(page.data["sure"])] == [
        (edge.query, edge.variable) for edge in known.edges().itertuples()
    ]
    ids = {attributes.get("id") for _, attributes in page.tags}
    assert "checks" not in ids
    assert "scatter matrix" in page.text


def test_names_that_are_positions_are_fine():
    made = mb.simulate(rows=100, query=1, rest=4, density=0.5, seed=2)
    with pytest.warns(mb.ConvergenceWarning):
        known = mb.estimate(made.table.to_numpy(), [0], chains=2, warmup=20, draws=20, seed=1, progress=False)
    page = Page(report.html(known))
    assert {page.edge(k) for k in page.shown_rows} == pairs(known.edges())
    assert "There is one query variable" in page.text
    assert len(known.query_edges()) == len(known.query_edges(all=True)) == 0
    assert known.graph().number_of_edges() == len(known.edges())


def test_of_too_many_edges_the_surest_are_on_the_page_and_it_says_so(posterior, monkeypatch):
    monkeypatch.setattr(_slider, "MOST_EDGES_ON_PAGE", 3)
    slider = _slider.Slider.of(posterior)
    page = Page(report.html(posterior))
    assert len(page.data["sure"]) <= 3
    assert slider.start > slider.usual_place
    dropped = set(posterior.inclusion.stack().nlargest(len(page.data["sure"])).round(12))
    assert set(np.round(page.data["sure"], 12)) == dropped
    assert f"pass the default rule of {slider.usual_place} %" in page.text


def test_a_page_without_edges_says_so():
    known = crowded(edges=0, p=2, q=5)
    assert len(known.edges()) == 0
    page = Page(report.html(known))
    assert page.data["enters"] == page.data["sure"] == []
    assert "0 edges" in page.text


def test_a_page_is_written_whole_or_not_at_all(posterior, text, tmp_path, monkeypatch):
    path = tmp_path / "new" / "report.html"
    assert posterior.report(path) == path
    assert path.read_text(encoding="utf-8") == text
    monkeypatch.setattr(report, "html", lambda posterior: "another page")

    def refuse(*arguments):
        raise OSError("no room")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="no room"):
        posterior.report(path)
    assert path.read_text(encoding="utf-8") == text
    assert [entry.name for entry in path.parent.iterdir()] == ["report.html"]


def test_a_missing_extra_is_named(posterior, monkeypatch):
    monkeypatch.delitem(sys.modules, "markovblanket.report._page")
    monkeypatch.delattr(report, "_page")
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"needs jinja2: pip install markovblanket\[report\]"):
        report.html(posterior)
