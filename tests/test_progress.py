"""The board that chains write on, wherever they run."""

from __future__ import annotations

import joblib
import numpy as np

from markovblanket.progress import Board


def board_at(path, chains):
    path.write_bytes(bytes(8 * chains))
    return Board(chains, str(path))


def count_up(board, chain, sweeps):
    tick = board.ticker(chain)
    for count in range(1, sweeps + 1):
        tick(count)


def test_counts_from_other_processes_reach_the_parent(tmp_path):
    board = board_at(tmp_path / "sweeps", 3)
    joblib.Parallel(n_jobs=2)(joblib.delayed(count_up)(board, c, 10 * (c + 1)) for c in range(3))
    np.testing.assert_array_equal(board.counts(), [10, 20, 30])


def test_silent_without_a_file():
    board = Board(2)
    count_up(board, 0, 3)
    np.testing.assert_array_equal(board.counts(), [0, 0])


def test_a_board_that_is_gone_silences_the_chain(tmp_path):
    """As on another machine of a cluster."""
    board = Board(2, str(tmp_path / "elsewhere"))
    count_up(board, 1, 3)
    assert not (tmp_path / "elsewhere").exists()


def test_nothing_is_drawn_when_nobody_watches(capfd):
    with Board.open(2, warmup=1, sweeps=3, visible=False) as board:
        count_up(board, 0, 3)
    assert capfd.readouterr() == ("", "")
