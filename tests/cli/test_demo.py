"""The demo's table; the demo as a whole is run by `make demo`."""

from __future__ import annotations

import io

from rich.console import Console

from markovblanket.cli._demo import blanket_table, clinic
from markovblanket.cli._screen import bar


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
