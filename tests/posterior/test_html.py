"""What a notebook shows: the posterior's own numbers, names as text, no script, nothing loaded."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import markovblanket as mb
from markovblanket.posterior import html
from markovblanket.posterior.diagnostics import Diagnostics
from markovblanket.posterior.display import percent
from support.reports import ALERT, NASTY, Card, fitted


@pytest.fixture(scope="module")
def posterior():
    return fitted()


@pytest.fixture(scope="module")
def text(posterior):
    return posterior._repr_html_()


@pytest.fixture(scope="module")
def card(text):
    return Card(text)


def test_the_card_has_the_edges_of_the_default_rule_with_their_numbers(posterior, card):
    edges = posterior.edges().head(15)
    assert len(card.rows) == 1 + len(edges) == 16
    for cells, edge in zip(card.rows[1:], edges.itertuples(), strict=True):
        assert cells[:2] == [edge.query, edge.variable]
        ends = " to ".join(f"{end:+.2f}" if end else "0" for end in (edge.lower, edge.upper))
        expected = [percent(edge.probability), f"{edge.partial_correlation:+.2f}", ends]
        assert [cell.replace("−", "-") for cell in cells[2:5]] == expected
        assert cells[5:] == [f"{edge.rhat:.3f}", f"{edge.ess:,.0f}"]
    assert card.rows[0] == [
        "query",
        "variable",
        "probability",
        "partial correlation",
        "95 % interval",
        "R-hat",
        "ESS",
    ]
    assert f"and {len(posterior.edges()) - 15} more, in .edges()" in card.text


def test_it_says_what_was_asked_of_what_data(posterior, card):
    assert f"Markov blanket of {', '.join(posterior.query)}" in card.text
    for fact in (f"{len(posterior.edges())} of 39 possible edges selected", "600 rows", "12 other variables"):
        assert fact in card.text
    assert "SpikeSlab prior" in card.text
    assert "2 chains of 60 draws" in card.text
    assert "cells missing" not in card.text


def test_a_run_that_did_not_converge_says_so_in_a_line(posterior, card):
    table = posterior.diagnostics().table
    smallest = min(table["ess_bulk"].min(), table["ess_tail"].min())
    figures = f"worst R-hat {table['rhat'].max():.3f}, smallest effective sample {smallest:.0f}"
    assert f"NOT CONVERGED: {figures}. Ask for more warmup and draws." in card.text


def test_names_are_text_and_nothing_runs_or_is_loaded(posterior, text, card):
    named = fitted(prior="laplace")  # every pair has a sign, so that all names can be shown
    shown = Card(html.edges(named.edges(all=True).head(html.MOST_EDGES)))
    for known, source in ((card, text), (shown, "")):
        assert set(known.tags) <= {"div", "strong", "table", "thead", "tbody", "tr", "th", "td"}
        assert set(known.attributes) <= {"class", "style"}
        assert ALERT not in source
        assert "url(" not in source
    assert "<b>T</b>" in card.text
    assert ALERT in Card(html.table([("name", False)], [[name] for name in NASTY])).text
    assert "mathjax_ignore" in text  # $x$ is a name
    assert ALERT not in posterior.edges(all=True)._repr_html_()  # pandas escapes, and shows floats with six digits


def test_colours_are_those_of_the_notebook(text):
    assert not re.search(r"[^-]color:|background", text)  # but for borders, seen on white and on black


def test_of_all_pairs_the_surest_are_shown_and_no_edge_is_said_in_words(posterior):
    every = posterior.edges(all=True)
    shown = Card(html.edges(every))
    assert [row[:2] for row in shown.rows[1:]] == every[["query", "variable"]].head(15).to_numpy().tolist()
    assert "No edge is selected" in Card(html.edges(every.head(0))).text


def test_gaps_positions_and_summaries_are_told():
    made = mb.simulate(rows=60, query=1, rest=3, density=0.5, missing=0.1, seed=2)
    schedule = {"chains": 2, "warmup": 20, "draws": 20, "seed": 1, "progress": False}
    with pytest.warns(mb.ConvergenceWarning):
        known = mb.estimate(made.table.to_numpy(), [0], prior="laplace", keep="summary", **schedule)
    shown = Card(known._repr_html_())
    assert "Markov blanket of 0" in shown.text
    assert f"{int(made.table.isna().to_numpy().sum())} cells missing" in shown.text
    assert "kept as a summary with the draws of 3 edges" in shown.text
    assert "P(sign)" in Card(html.edges(known.edges(all=True))).rows[0]


def test_diagnostics_are_a_card_with_every_problem(posterior):
    found = posterior.diagnostics()
    shown = Card(found._repr_html_())
    for problem in found.problems:
        assert problem in shown.text
    blocks = shown.rows[1 : 1 + len(found.table)]  # what it cost is below
    for cells, (block, row) in zip(blocks, found.table.iterrows(), strict=True):
        assert cells[0] == block
        assert cells[2:4] == [f"{row['rhat']:.3f}", row["worst"]]


def test_the_verdict_of_good_chains_has_its_figures_and_that_of_three_draws_its_reason():
    row = {"quantities": 3, "rhat": 1.004, "worst": "T~N", "ess_bulk": 900.0, "ess_tail": np.nan}
    good = Diagnostics(pd.DataFrame.from_dict({"edges": row}, orient="index"), ())
    assert good.verdict == "The chains agree: worst R-hat 1.004, smallest effective sample 900."
    assert "NOT" not in Card(good._repr_html_()).text
    none = Diagnostics(pd.DataFrame(), ("fewer than 4 draws per chain: nothing can be said",))
    assert "NOT CONVERGED: fewer than 4 draws" in Card(none._repr_html_()).text
