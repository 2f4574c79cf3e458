"""The bars as they are seen."""

from __future__ import annotations

import io
from functools import partial

import pytest

import markovblanket as mb

rich_console, rich_text = pytest.importorskip("rich.console"), pytest.importorskip("rich.text")
pytest.importorskip("pandas")


def test_bars_tell_speed_time_left_and_the_worst_rhat_in_eighty_columns(monkeypatch):
    screen = io.StringIO()
    terminal = partial(rich_console.Console, file=screen, force_terminal=True, width=80, legacy_windows=False)
    monkeypatch.setattr(rich_console, "Console", lambda **options: terminal())
    monkeypatch.setenv("TERM", "xterm")
    table = mb.simulate(rows=40, query=2, rest=4, seed=1)
    with pytest.warns(match="not converged"):
        mb.estimate(table.table, table.query, chains=2, warmup=10, draws=64, seed=1)
    plain = rich_text.Text.from_ansi(screen.getvalue().replace("\r", "\n")).plain
    lines = [line.rstrip() for line in plain.splitlines()]
    assert max(map(len, lines)) <= 80
    last = lines[-4:]
    for chain in ("1", "2"):
        assert any(line.startswith(f"chain {chain}") and line.endswith("left") and "100%" in line for line in last)
    assert any(line.startswith("worst R-hat so far 1.") for line in last)
