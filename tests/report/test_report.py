"""The page says what the posterior says, harms nobody, and needs nothing but itself."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import os
import re
import sys

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

import markovblanket as mb
from markovblanket import report
from markovblanket.plots.chains import autocorrelations
from markovblanket.report import _curves, _page, _sections, _slider
from support.reports import ALERT, NASTY, Page, crowded, fitted, nasty_table, whole_network


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


def chosen(posterior, **rule):
    """The pairs that a rule selects, each once, as text."""
    return pairs(posterior.edges(**rule))


def cells(page, k):
    """The cells of a row of the table of edges, by their titles."""
    texts = [" ".join(cell.split()).replace("−", "-") for cell in page.rows[k]]
    return dict(zip(page.titles, texts, strict=True))


def test_the_page_shows_the_edges_of_the_default_rule_in_picture_and_table(posterior, page):
    edges = posterior.edges()
    assert 0 < edges["variable"].isin(posterior.query).sum() < len(edges)  # of both kinds
    assert [page.edge(k) for k in page.shown_rows] == [(edge.query, edge.variable) for edge in edges.itertuples()]
    assert page.shown_lines == page.shown_rows


def test_the_table_has_the_columns_and_numbers_of_the_posterior(posterior, page):
    known = ["probability", "partial correlation", "95 % interval", "", "direction", "R-hat", "ESS"]
    assert [title for title in page.titles if title != "Bayes factor"] == ["query", "variable", *known]
    for k, edge in zip(page.shown_rows, posterior.edges().itertuples(), strict=True):
        row = cells(page, k)
        assert row["query"] == " ".join(edge.query.split())
        assert row["variable"] == " ".join(edge.variable.split())
        if np.isnan(edge.probability):
            assert row["probability"] == "–"
        else:
            assert float(row["probability"].strip(" >%")) == pytest.approx(100 * edge.probability, abs=0.1)
        assert row["partial correlation"] == f"{edge.partial_correlation:+.2f}"
        assert row["95 % interval"] == f"{edge.lower:+.2f} to {edge.upper:+.2f}"
        assert row["direction"] == edge.direction
        assert row["ESS"] == f"{edge.ess:,.0f}"


def test_bayes_factors_are_on_the_page_where_there_are_some(posterior):
    edges = posterior.edges()
    assert [field.title for field in _page.fields_of(edges.assign(bayes_factor=np.nan))][-3:] == [
        "direction",
        "R-hat",
        "ESS",
    ]
    fields = _page.fields_of(edges.assign(bayes_factor=12.3))
    assert [field.title for field in fields][-4:] == ["direction", "Bayes factor", "R-hat", "ESS"]


def test_numbers_for_the_script_have_the_names_and_the_order_of_the_table_of_edges(posterior, page):
    edges = posterior.edges()
    names = [name for name in edges if not edges[name].isna().all() and name not in ("query", "variable")]
    assert list(page.data["edges"]) == names
    for name in names:
        seen = [page.data["edges"][name][k] for k in page.shown_rows]
        if name == "direction":
            assert seen == edges[name].tolist()
        else:
            np.testing.assert_allclose(np.array(seen, dtype=float), edges[name], rtol=1e-4)


@pytest.mark.parametrize("prior", ["spike-slab", "laplace"])
def test_wherever_the_slider_is_the_edges_are_those_of_its_rule(posterior, prior):
    known = posterior if prior == "spike-slab" else fitted(prior="laplace")
    page, slider = Page(report.html(known)), _slider.Slider.of(known)
    assert page.data["rule"] == slider.rule == ("probability" if prior == "spike-slab" else "level")
    sure = np.array(page.data["sure"])
    for percent in range(slider.least, 100):
        least = percent / 100
        shown = sure >= least if slider.rule == "probability" else sure > (1 + least) / 2
        assert {page.edge(k) for k in np.flatnonzero(shown)} == chosen(known, **{slider.rule: least})
    assert len(page.shown_lines) == len(known.edges())


@pytest.mark.parametrize("prior", ["spike-slab", "laplace"])
def test_at_every_false_discovery_rate_the_edges_are_those_of_the_rule(posterior, prior):
    known = posterior if prior == "spike-slab" else fitted(prior="laplace")
    page = Page(report.html(known))
    enters, share = np.array(page.data["enters"]), page.data["share"]
    assert (share["start"], share["last"]) == (10, 50)
    counts = set()
    for percent in range(1, 51):
        found = {page.edge(k) for k in np.flatnonzero(enters <= percent)}
        assert found == chosen(known, fdr=percent / 100)
        stage = next(stage for stage in share["stages"] if stage["place"] >= percent)
        ends = {end for k in np.flatnonzero(enters <= percent) for end in page.data["ends"][k]}
        assert {str(end) for end in ends} <= set(stage["at"])
        counts.add(len(found))
    assert len(counts) > 5
    assert {page.edge(k) for k in np.flatnonzero(enters <= 10)} == pairs(known.edges(fdr=0.1))


def test_where_the_page_cannot_hold_its_edges_the_share_ends_or_is_not_offered(posterior, monkeypatch):
    monkeypatch.setattr(_slider, "MOST_EDGES_ON_PAGE", len(posterior.edges(fdr=0.2)))
    none = np.zeros_like(_slider.Slider.of(posterior).sure, dtype=bool)
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
    probabilities = np.unique(posterior.inclusion.to_numpy()[~posterior.inclusion.isna()])
    between = probabilities[((100 * probabilities) % 1 > 0.1) & (probabilities < 0.98)][-1]
    monkeypatch.setattr(_slider, "usual", lambda sure, rule: float(between))
    slider, page = _slider.Slider.of(posterior), Page(report.html(posterior))
    assert slider.threshold(slider.start) == between != slider.start / 100
    assert page.data["usual"] == {"place": slider.start, "threshold": between}
    assert {page.edge(k) for k in page.shown_rows} == chosen(posterior, probability=between)
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
    assert "It and its interval are those if the edge is present." in said
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
        query, variable = page.edge(k)
        edges = posterior.edges(all=True).set_index(["query", "variable"])
        assert draws[draws != 0].mean() == pytest.approx(edges.loc[(query, variable), "partial_correlation"])
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
    curves = [page.edge(int(k)) for k in page.data["curves"]]
    assert {pair for pair in curves if pair[1] not in query} <= set(named)
    assert {pair for pair in curves if pair[1] in query} == {
        page.edge(k) for k in range(len(page.data["ends"])) if page.edge(k)[1] in query
    }
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
    assert [page.edge(k) for k in page.shown_rows] == [(e.query, e.variable) for e in known.edges().itertuples()]
    ids = {attributes.get("id") for _, attributes in page.tags}
    assert "checks" not in ids
    assert "scatter matrix" in page.text


def test_names_that_are_positions_are_fine():
    made = mb.simulate(rows=100, query=1, rest=4, density=0.5, seed=2)
    with pytest.warns(mb.ConvergenceWarning):
        known = mb.estimate(made.table.to_numpy(), [0], chains=2, warmup=20, draws=20, seed=1, progress=False)
    page = Page(report.html(known))
    assert {page.edge(k) for k in page.shown_rows} == pairs(known.edges())
    assert known.graph().number_of_edges() == len(known.edges())


def test_of_too_many_edges_the_surest_are_on_the_page_and_it_says_so(posterior, monkeypatch):
    monkeypatch.setattr(_slider, "MOST_EDGES_ON_PAGE", 3)
    slider = _slider.Slider.of(posterior)
    page = Page(report.html(posterior))
    assert len(page.data["sure"]) <= 3
    assert slider.start > slider.usual_place
    surest = np.sort(slider.sure)[::-1][: len(page.data["sure"])]
    assert sorted(page.data["sure"], reverse=True) == surest.tolist()
    assert f"pass the default rule of {slider.usual_place} %" in page.text


def test_a_page_without_edges_says_so():
    known = crowded(edges=0, p=2, q=5)
    assert len(known.edges()) == 0
    page = Page(report.html(known))
    assert page.data["enters"] == page.data["sure"] == []
    assert "0 edges" in page.text


def test_tentative_edges_are_marked_in_picture_and_table(posterior, page):
    found = {"tr": {}, "g": {}}
    for tag, known in page.tags:
        if "data-edge" in known:
            found[tag][int(known["data-edge"])] = "tentative" in (known.get("class") or "").split()
    probability = page.data["edges"]["probability"]
    assert found["tr"] == found["g"] == {k: p is not None and p < 0.5 for k, p in enumerate(probability)}
    assert any(found["tr"].values())


def test_candidates_are_named(posterior):
    settings = dict(posterior.settings) | {"candidates": {"asked": "auto", "chosen": ["V10", "V11"]}}
    known = dataclasses.replace(posterior, settings=settings)
    said = " ".join(Page(report.html(known)).text.split())
    assert "2 likely neighbours, modelled as fully as the query: V10, V11" in said
    assert "candidates='auto'," in said
    settings["candidates"] = {"asked": 0, "chosen": []}
    said = " ".join(Page(report.html(dataclasses.replace(posterior, settings=settings))).text.split())
    assert "Candidatesnone" in said
    assert "candidates=0," in said
    assert "all other variables are modelled as fully as the query" in Page(report.html(posterior)).text


def test_near_duplicates_that_share_an_edge_are_named():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((200, 4))
    table = pd.DataFrame(x, columns=["alone", "other", "first", "twin"])
    table["twin"] = table["first"] + 0.05 * x[:, 3]
    table["T"] = 0.6 * table["first"] + rng.standard_normal(200)
    known = mb.estimate(table, ["T"], chains=2, draws=1000, seed=1, progress=False)
    (group,) = _sections.groups(known)
    assert set(group["variables"]) >= {"first", "twin"}
    page = Page(report.html(known))
    assert any(attributes.get("id") == "groups" for _, attributes in page.tags)
    assert _sections.groups(whole_network(5, 4)) == []  # without rows, nothing can be said


def test_a_whole_network_is_called_so_and_its_nodes_stay_where_they_are():
    known = whole_network(40, 60)
    edges, page = known.edges(), Page(report.html(known))
    assert [page.edge(k) for k in page.shown_rows] == [(e.query, e.variable) for e in edges.itertuples()]
    said = " ".join(page.text.split())
    assert "Network of 40 variables" in said
    assert "Markov blanket" not in said
    assert f"of {40 * 39 // 2:,} possible" in said
    assert "posterior = mb.network(" in said
    assert "query=" not in _sections.call(known)
    drawn = {int(known["data-node"]): known["class"].split() for tag, known in page.tags if "data-node" in known}
    assert not any("query" in classes for classes in drawn.values())
    ends = {end for k in page.shown_rows for end in page.data["ends"][k]}
    assert {node for node, classes in drawn.items() if "out" not in classes} == ends
    first, *others = [stage["at"] for stage in (*page.data["stages"], *page.data["share"]["stages"])]
    assert others
    assert all(at == first for at in others)


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
