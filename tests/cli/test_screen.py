"""Tables of edges in a terminal: what fits eighty columns, and what is never left out."""

from __future__ import annotations

import dataclasses
import io

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from markovblanket.cli import _screen
from support.reports import fitted, whole_network


def some_edges(count: int = 6, names: tuple[str, str] = ("T", "HGF")) -> pd.DataFrame:
    """A table of edges by hand, whose numbers are as wide as they can be."""
    rng = np.random.default_rng(0)
    query, variable = names
    return pd.DataFrame(
        {
            "query": [f"{query}{k}" for k in range(count)],
            "variable": [f"{variable}{k}" for k in range(count)],
            "probability": np.linspace(0.99999, 0.3, count),
            "partial_correlation": rng.uniform(-0.5, 0.5, count),
            "lower": -0.95,
            "upper": -0.95,
            "direction": "-",
            "bayes_factor": np.inf,
            "rhat": 1.001,
            "ess": 123456.0,
        }
    )


def printed(edges: pd.DataFrame) -> list[str]:
    console = Console(file=io.StringIO(), width=80, markup=False, highlight=False)
    _screen.tell_edges(console, edges)
    return console.file.getvalue().splitlines()


def test_all_columns_stand_in_the_table_in_their_order():
    lines = printed(some_edges())
    head = next(line for line in lines if "query" in line)
    titles = ["query", "variable", "probability", "partial", "95 % interval", "R-hat", "ESS"]
    assert [head.index(title) for title in titles] == sorted(head.index(title) for title in titles)
    edge = some_edges().iloc[2]
    (line,) = [line for line in lines if line.split()[:2] == ["T2", "HGF2"]]
    for text in (f"{100 * edge['probability']:.1f} %", f"{edge['partial_correlation']:+.2f}", "-0.95 to -0.95"):
        assert text in line
    assert line.split()[-2:] == ["1.001", "123,456"]


@pytest.mark.parametrize("names", [("T", "x" * 200), ("x" * 200, "T"), ("a" * 90, "b" * 90), ("日本" * 30, "T")])
def test_long_names_are_shortened_and_nothing_else(names):
    edges = some_edges(names=names)
    lines = printed(edges)
    assert max(map(len, lines)) <= 80
    rows = [line for line in lines if "123,456" in line]
    assert len(rows) == len(edges)
    for line, edge in zip(rows, edges.itertuples(), strict=True):
        assert line.split()[0][:3] == edge.query[:3]
        assert "%" in line
        assert f"{edge.partial_correlation:+.2f}" in line
        assert "-0.95 to -0.95" in line
    if names == ("T", "x" * 200):
        assert all(line.split()[0] == f"T{k}" for k, line in enumerate(rows))  # the short one is left alone


def test_bars_are_left_out_before_a_name_is_shortened():
    wide = printed(some_edges(names=("short", "fourteen_chars")))
    assert not any("…" in line for line in wide)
    assert not any("--" in line for line in wide)
    assert any("---" in line for line in printed(some_edges().assign(ess=500.0)))


def test_tentative_edges_are_counted_and_of_many_the_surest_are_shown():
    lines = printed(some_edges(50))
    assert sum("123,456" in line for line in lines) == _screen.MOST_EDGES_SHOWN
    assert "and 30 more, in edges.csv" in lines
    unsure = int((some_edges(50)["probability"] < 0.5).sum())
    assert f"{unsure} with a probability below 50 %: tentative." in lines
    assert not any("tentative" in line for line in printed(some_edges().assign(probability=0.5)))


def test_without_exact_zeros_the_probability_is_that_of_the_sign():
    lines = printed(some_edges().assign(probability=np.nan, sign_probability=0.987))
    assert any("P(sign)" in line for line in lines)
    assert sum("98.7 %" in line for line in lines) == 6


def test_what_was_understood_names_query_kinds_and_candidates():
    posterior = fitted()
    said = _screen.understood(posterior)
    assert said.startswith(
        "Understood as: <b>T</b> (continuous), Q2 (continuous), Q3 (continuous), and 12 more; 0 cells"
    )
    assert said.endswith("\nCandidates: all 12 other variables.\n")
    settings = dict(posterior.settings) | {"candidates": {"asked": "auto", "chosen": ["V10", "V11"]}}
    assert "Candidates: 2 of the 12" in _screen.understood(dataclasses.replace(posterior, settings=settings))
    settings["candidates"] = {"asked": 0, "chosen": []}
    assert "Candidates" not in _screen.understood(dataclasses.replace(posterior, settings=settings))


def test_a_whole_network_has_edges_like_any_other():
    posterior = whole_network(12, 20)
    edges = posterior.edges()
    lines = printed(edges)
    assert f"{len(edges)} edges selected" in lines[0]
    assert sum("item_" in line for line in lines) == min(len(edges), 20)
    assert "Candidates" not in _screen.understood(posterior)
