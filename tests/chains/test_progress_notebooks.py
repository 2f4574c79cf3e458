"""A run in a notebook: one area that is redrawn, and its last state."""

from __future__ import annotations

import re
import sys
from types import ModuleType

import pytest

import markovblanket as mb
from markovblanket.chains import progress
from markovblanket.chains.progress import Board, ChainProgress

CELL = """
import warnings; warnings.simplefilter("ignore")
import markovblanket as mb
made = mb.simulate(rows=80, query=2, rest=30, seed=1)
posterior = mb.estimate(made.table, made.query, chains=2, warmup=200, draws=300, seed=1)
posterior
"""


class Area:
    """What IPython's display returns, and all that was shown in it."""

    def __init__(self):
        self.shown = []

    def display(self, data, *, raw, display_id):
        assert (raw, display_id, self.shown) == (True, True, [])
        self.shown.append(data)
        return self

    def update(self, data, *, raw):
        assert raw
        self.shown.append(data)


@pytest.fixture
def area(monkeypatch):
    """A process that takes itself for the kernel of a notebook."""
    area, package, inside = Area(), ModuleType("IPython"), ModuleType("IPython.display")
    package.get_ipython = lambda: type("ZMQInteractiveShell", (), {})()
    inside.display = area.display
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", inside)
    return area


def test_a_notebook_has_one_area_that_ends_with_what_was_done(area, capfd):
    pytest.importorskip("pandas")
    made = mb.simulate(rows=40, query=2, rest=4, seed=1)
    with pytest.warns(match="not converged"):
        mb.estimate(made.table, made.query, chains=2, warmup=10, draws=64, seed=1)
    first, last = area.shown[0], area.shown[-1]
    assert first["text/plain"] == "chain 1: warm-up, 0 %, –:–– left\nchain 2: warm-up, 0 %, –:–– left"
    lines = last["text/plain"].splitlines()
    for k, line in enumerate(lines[:2], start=1):
        assert re.fullmatch(rf"chain {k}: done, 100 %, [\d,.]+ iterations/s, in \d+:\d\d", line)
    assert re.fullmatch(r"worst R-hat so far \d\.\d+", lines[2])
    assert last["text/html"].count('<progress value="74" max="74"') == 2
    for word in (*lines[0].split(": ")[1].split(", "), lines[2]):
        assert word in last["text/html"]
    assert capfd.readouterr() == ("", "")


def test_what_is_interrupted_says_so(area, monkeypatch):
    pytest.importorskip("pandas")

    def interrupt(draw):
        raise KeyboardInterrupt

    made = mb.simulate(rows=40, query=1, rest=3, seed=1)
    monkeypatch.setattr(Board, "watcher", lambda board, chain: interrupt)
    with pytest.raises(KeyboardInterrupt):
        mb.estimate(made.table, made.query, chains=2, warmup=10, draws=90, seed=1)
    assert re.match(r"chain 1: stopped, 1\d %.*\nchain 2: stopped, 10 %", area.shown[-1]["text/plain"])


def test_neither_a_terminal_with_ipython_nor_a_script_is_a_notebook(area, monkeypatch):
    assert progress.in_notebook()
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: type("TerminalInteractiveShell", (), {})())
    assert not progress.in_notebook()
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None)
    assert not progress.in_notebook()


def test_a_chain_that_waits_for_its_turn_is_not_called_slow():
    now = [0.0]
    chain = ChainProgress(kept=100, warmup=20, clock=lambda: now[0])
    assert (chain.phase, chain.speed, chain.left) == ("warm-up", 0.0, None)
    for seconds, count in ((0, 0), (2, 20), (8, 20), (9, 30)):  # six seconds belong to another chain
        now[0] = seconds
        chain.reach(count)
    assert (chain.phase, chain.speed, chain.left) == ("sampling", 10.0, 7.0)
    assert progress.words(chain) == ["sampling", "30 %", "10 iterations/s", "0:07 left"]
    resumed = ChainProgress(kept=100, warmup=20, clock=lambda: now[0])
    resumed.reach(90)
    now[0] += 5
    resumed.reach(100)
    assert (resumed.phase, resumed.speed) == ("done", 2.0)


def test_a_real_notebook(tmp_path, monkeypatch):
    """Run by a kernel: a display that was updated, the posterior's card, and not a line beside them."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    seen = []

    class Watched(nbclient.NotebookClient):
        def process_message(self, message, cell, index):
            seen.append(message["msg_type"])
            return super().process_message(message, cell, index)

    v4 = nbformat.v4
    notebook = v4.new_notebook(cells=[v4.new_code_cell(CELL)])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    Watched(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    bars, card = notebook.cells[0].outputs
    assert bars.output_type == "display_data"
    assert re.search(r"chain 2: done, 100 %, [\d,.]+ iterations/s, in \d+:\d\d", bars.data["text/plain"])
    assert seen.count("update_display_data") >= 1
    assert card.output_type == "execute_result"
    assert "Markov blanket of Q1, Q2" in card.data["text/html"]
    assert card.data["text/plain"].startswith("<Posterior: 2 query")
