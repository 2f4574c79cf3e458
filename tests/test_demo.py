"""The demo's table and the command line's manners; the demo as a whole is run by `make demo`."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

import markovblanket as mb
from markovblanket.cli import main
from markovblanket.demo import bar, blanket_table, clinic


def test_every_edge_stands_in_the_table_with_its_truth_in_eighty_columns():
    data = clinic()
    edges = data.truth.sort_values("edge", ascending=False).head(25)
    edges = edges.assign(lower=-1.25, upper=-0.5, inclusion=0.995)
    screen = Console(file=io.StringIO(), width=80)
    screen.print(blanket_table(edges, data.truth))
    lines = screen.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert not any("…" in line for line in lines)
    for edge in edges.itertuples():
        (line,) = [line for line in lines if line.split()[:2] == [edge.query, edge.variable]]
        assert line.rstrip().endswith(f"{edge.partial_correlation:+.2f}" if edge.edge else "no edge")


def test_bars_tell_sign_and_strength_without_colour():
    assert (bar(0.3), bar(-0.1), bar(0.001)) == ("++++++", "--", "+")


def test_the_command_line_tells_its_version_and_refuses_what_it_does_not_know(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out.strip() == f"markovblanket {mb.__version__}"
    with pytest.raises(SystemExit, match="2"):
        main(["dance"])
    assert "invalid choice: 'dance'" in capsys.readouterr().err
