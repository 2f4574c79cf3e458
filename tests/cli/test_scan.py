"""``markovblanket scan``: what it writes, that it goes on, and what it refuses."""

from __future__ import annotations

import sys
from xml.etree import ElementTree

import networkx as nx
import pandas as pd
import pytest

import markovblanket as mb
from markovblanket.cli import _options, main
from markovblanket.cli._output_folder import inert
from markovblanket.fitting.scan import Fits

SHORT = ["--chains", "1", "--warmup", "20", "--draws", "30", "--seed", "1", "--jobs", "1"]
NAMES = {"V1": "=1+1", "V2": "größe", "V3": "<b>&amp;", "V4": "a, b"}


@pytest.fixture
def here(tmp_path, monkeypatch):
    made = mb.simulate(rows=80, query=2, rest=5, density=0.4, seed=4)
    made.table.rename(columns=NAMES).to_csv(tmp_path / "table.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def library(here, **options):
    return mb.scan(here / "table.csv", chains=1, warmup=20, draws=30, seed=1, **options)


@pytest.mark.parametrize("rule", ["or", "and"])
def test_files_say_what_the_library_says(here, capsys, rule):
    assert main(["scan", "table.csv", "--out", "scan", "--rule", rule, *SHORT]) == 0
    found = library(here)
    edges = pd.read_csv("scan/edges.csv")
    pd.testing.assert_frame_equal(edges, inert(found.edges(rule)), check_dtype=False, rtol=1e-12)
    assert set(nx.read_graphml("scan/network.graphml").edges) == set(found.graph(rule).edges)
    fits = pd.read_csv("scan/fits.csv", dtype={"seed": str})
    assert fits["query"].tolist() == ["'=1+1" if name == "=1+1" else name for (name,) in found.fits["query"]]
    assert fits["seed"].map(int).tolist() == found.fits["seed"].tolist()
    text = "".join(ElementTree.parse("scan/network.svg").getroot().itertext())
    assert all(name in text for pair in found.graph(rule).edges for name in pair)
    shown = capsys.readouterr()
    assert f"{len(edges)} edge" in shown.out
    assert "7 fits in " in shown.out
    assert "a spreadsheet would take '=1+1' for a formula" in shown.err
    bad = int((~found.fits["converged"]).sum())
    assert f"warning: not converged: {bad} of 7 fits, see fits.csv." in shown.err


def test_sets_are_told_apart_and_names_may_hold_commas(here):
    command = ["scan", "table.csv", "-q", 'Q1,"a, b"', "-q", "Q2", "--out", "scan", "--quiet", *SHORT]
    assert main(command) == 0
    wanted = library(here, queries=[["Q1", "a, b"], ["Q2"]])
    pd.testing.assert_frame_equal(
        pd.read_csv("scan/edges.csv"), inert(wanted.edges()), check_dtype=False, rtol=1e-12
    )
    assert pd.read_csv("scan/fits.csv")["query"].tolist() == ["Q1, a, b", "Q2"]


SETS = {
    "lines": "- [Q1, 'a, b']\n- Q2\n",
    "headings": "first: [Q1, 'a, b']\nfirst:\n  - Q2\n",
    "json": '[["Q1", "a, b"], "Q2"]',
}


@pytest.mark.parametrize("text", SETS.values(), ids=SETS)
def test_sets_may_come_from_a_file(here, text):
    (here / "sets.yaml").write_text(text)
    assert main(["scan", "table.csv", "--queries", "sets.yaml", "--out", "scan", "--quiet", *SHORT]) == 0
    wanted = library(here, queries=[["Q1", "a, b"], ["Q2"]])
    pd.testing.assert_frame_equal(
        pd.read_csv("scan/edges.csv"), inert(wanted.edges()), check_dtype=False, rtol=1e-12
    )


def test_names_in_such_a_file_are_text(tmp_path):
    (tmp_path / "sets.yaml").write_text("- [no, 1, null, 1e3]\n- '- x'\n- 2026-01-01\n")
    assert _options.sets(tmp_path / "sets.yaml") == [["no", "1", "null", "1e3"], ["- x"], ["2026-01-01"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be a list of names and of lists of names"),
        ("Q1", "must be a list of names and of lists of names"),
        ("[]", "must be a list of names and of lists of names"),
        ("- Q1\n- [[Q2]]", "line 2: a set is a name or a list of names"),
        ("- Q1\n- []", "line 2: a set is a name or a list of names"),
        ("- Q1\n-", "line 2: a set is a name or a list of names"),
        ("- {Q1: Q2}", "line 1: a set is a name or a list of names"),
        ("- !!python/object/apply:os.system [ls]", None),
        ("- [Q1", "cannot be read as YAML: while parsing"),
        ("[" * 5000, "cannot be read as YAML"),
        ("- Q1\n- Q9", None),
    ],
)
def test_files_of_sets_that_are_none_are_refused(here, capsys, text, message):
    """In a line; and names that are no columns are refused as ever."""
    (here / "sets.yaml").write_text(text)
    assert main(["scan", "table.csv", "--queries", "sets.yaml", "--out", "scan", *SHORT]) == 2
    told = capsys.readouterr().err
    assert (message or "is not a column of the table") in told
    assert told.count("\n") == 1
    assert not (here / "scan").exists()


def test_the_same_command_goes_on_and_status_tells_how_far(here, capsys, monkeypatch):
    command = ["scan", "table.csv", "--out", "scan", "--quiet", *SHORT]
    assert main(command) == 0
    edges = (here / "scan" / "edges.csv").read_text()
    (here / "scan" / "fits" / "3.npz").unlink()
    (here / "scan" / "edges.csv").unlink()
    capsys.readouterr()
    assert main(["status", "scan"]) == 0
    said = "scan: a scan, 6 of 7 fits done; if it has stopped, the same call continues it\n"
    assert capsys.readouterr().out == said
    done = []
    posterior = Fits.posterior
    monkeypatch.setattr(Fits, "posterior", lambda *asked: done.append(asked[1]) or posterior(*asked))
    assert main(command) == 0
    assert done == [("größe",)]
    assert (here / "scan" / "edges.csv").read_text() == edges


def test_strict_asks_every_fit_to_converge(here):
    assert main(["scan", "table.csv", "-q", "Q1", "--out", "scan", "--quiet", "--strict", *SHORT]) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-q", "Q9"], "query 'Q9' is not a column of the table"),
        (["-q", "Q1", "-q", "Q1"], "queries has Q1 more than once"),
        (["--kind", "Q1"], "--kind 'Q1': write NAME=KIND"),
        (["--rule", "xor"], "Invalid value for '--rule'"),
    ],
)
def test_bad_input_is_told_in_a_line_and_leaves_nothing(here, capsys, options, message):
    assert main(["scan", "table.csv", "--out", "scan", *options, *SHORT]) == 2
    told = capsys.readouterr()
    assert told.err.startswith(f"error: {message}")
    assert told.err.count("\n") == 1
    assert not (here / "scan").exists()


def test_the_folder_of_something_else_is_left_alone(here, capsys):
    assert main(["scan", "table.csv", "-q", "Q1", "--out", ".", *SHORT]) == 2
    assert "exists and has no checkpoint; choose another folder" in capsys.readouterr().err
    assert [entry.name for entry in here.iterdir()] == ["table.csv"]
    assert main(["scan", "table.csv", "-q", "Q1", "--out", "scan", "--quiet", *SHORT]) == 0
    assert main(["scan", "table.csv", "-q", "Q2", "--out", "scan", *SHORT]) == 2
    assert "another run: queries is" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["resume", "report"])
def test_other_commands_do_not_take_a_scan_for_a_fit(here, capsys, command):
    assert main(["scan", "table.csv", "-q", "Q1", "--out", "scan", "--quiet", *SHORT]) == 0
    capsys.readouterr()
    assert main([command, "scan"]) == 2
    assert capsys.readouterr().err.startswith("error: scan")


def test_what_a_cluster_needs_is_named(here, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["scan", "table.csv", "--out", "scan", "--dask", "tcp://127.0.0.1:1", *SHORT]) == 2
    assert capsys.readouterr().err == "error: --dask needs the package distributed: pip install distributed\n"
