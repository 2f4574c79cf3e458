"""``markovblanket network``: the whole network of a table, in a folder like that of a fit."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import markovblanket as mb
from markovblanket.cli import _fit, commands, main
from support.reports import Page

TINY = ["--chains", "2", "--warmup", "50", "--draws", "60", "--seed", "1", "--jobs", "1"]
SCHEDULE = {"chains": 2, "warmup": 50, "draws": 60, "seed": 1, "progress": False}


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with a table, and a network of it."""
    place = tmp_path_factory.mktemp("place")
    mb.simulate(rows=150, query=2, rest=7, density=0.4, seed=4).table.to_csv(place / "table.csv", index=False)
    assert main(["network", str(place / "table.csv"), "--out", str(place / "net"), *TINY]) == 0
    return place


@pytest.fixture(scope="module")
def posterior(place) -> mb.Posterior:
    return mb.load(place / "net" / "posterior")


def test_it_is_the_network_that_python_estimates(place, posterior):
    with pytest.warns(mb.ConvergenceWarning):
        same = mb.network(place / "table.csv", **SCHEDULE)
    assert posterior.variables == []
    np.testing.assert_array_equal(posterior.W11, same.W11)


def test_the_folder_holds_what_that_of_a_fit_holds(place, posterior):
    files = {entry.name for entry in (place / "net").iterdir()}
    assert files == {*_fit.FILES} - {"checkpoint~"}
    edges = posterior.edges()
    assert len(edges) > 2
    written = pd.read_csv(place / "net" / "edges.csv")
    assert list(written) == list(edges)
    pd.testing.assert_frame_equal(written, edges, check_dtype=False)
    graph = nx.read_graphml(place / "net" / "network.graphml")
    assert set(graph) == set(posterior.query)
    assert {frozenset(pair) for pair in graph.edges} == {frozenset(pair) for pair in edges.iloc[:, :2].to_numpy()}
    for edge in edges.itertuples():
        assert graph.edges[edge.query, edge.variable]["weight"] == edge.partial_correlation
    page = Page((place / "net" / "report.html").read_text(encoding="utf-8"))
    assert [page.edge(k) for k in page.shown_rows] == list(zip(edges["query"], edges["variable"], strict=True))
    assert "Network of 9 variables" in page.text


def test_settings_and_log_say_what_was_asked(place):
    settings = json.loads((place / "net" / "settings.json").read_text())
    assert (settings["command"], settings["query"]) == ("markovblanket network", None)
    assert "table.csv, whole network" in (place / "net" / "fit.log").read_text()


def test_the_summary_says_what_was_understood_and_how_to_go_on(place, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table = str(place / "table.csv")
    assert main(["network", table, "--out", "net", "--probability", "0.3", "--strict", *TINY]) == 3
    told = capsys.readouterr()
    assert told.out.startswith("Understood as: 9 continuous variables; 0 cells missing.\n")
    assert max(map(len, told.out.splitlines())) <= 80
    assert told.err.rstrip().endswith("To go on: markovblanket resume net --draws 120")
    assert "net holds an earlier network" in refused(capsys, "network", table, "--out", "net", *TINY)
    assert main(["resume", "net", "--draws", "120", "--quiet"]) == 0
    longer = mb.load("net/posterior")
    assert longer.draws.sizes["draw"] == 120
    expected = longer.edges(0.3)[["query", "variable"]]
    pd.testing.assert_frame_equal(pd.read_csv("net/edges.csv")[["query", "variable"]], expected, check_dtype=False)
    assert main(["report", "net", "--quiet"]) == 0


def refused(capsys, *arguments: str) -> str:
    """The one line of what is refused."""
    assert main(arguments) == 2
    return capsys.readouterr().err


def test_its_options_are_those_of_a_fit():
    fit, network = ({option.name for option in commands.commands[name].params} for name in ("fit", "network"))
    assert fit - network == {"query", "candidates", "prior"}
    assert network <= fit
    assert set(mb.network.__kwdefaults__) >= network - {
        *("table", "out", "kind", "jobs", "strict", "force", "quiet"),
        *("probability", "fdr", "level"),
    }
