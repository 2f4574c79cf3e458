"""The demo's table; the demo as a whole is run by `make demo`."""

from __future__ import annotations

import io

import pandas as pd
from rich.console import Console

from markovblanket.cli._demo import blanket_table, clinic
from markovblanket.cli._screen import bar
from markovblanket.cli._simulate import every_pair


def test_every_edge_stands_in_the_table_with_its_truth_in_eighty_columns():
    """Edges among the traits included."""
    data = clinic()
    truth = every_pair(data)
    among = truth[truth["variable"].isin(data.query)]
    assert len(among) == 10
    edges = pd.concat([among, data.truth.sort_values("edge", ascending=False).head(20)])
    edges = edges.assign(lower=-0.55, upper=-0.25, probability=0.995)
    screen = Console(file=io.StringIO(), width=80)
    screen.print(blanket_table(edges, truth))
    lines = screen.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert not any("…" in line for line in lines)
    for edge in edges.itertuples():
        (line,) = [line for line in lines if line.split()[:2] == [edge.query, edge.variable]]
        assert "99.5 %" in line
        assert "-0.55 to -0.25" in line
        assert line.rstrip().endswith(f"{edge.partial_correlation:+.2f}" if edge.edge else "no edge")


def test_bars_tell_sign_and_strength_without_colour():
    assert (bar(0.3), bar(-0.1), bar(0.001)) == ("++++++", "--", "+")


def test_a_partial_correlation_that_is_not_known_has_no_bar():
    assert bar(float("nan")) == ""
