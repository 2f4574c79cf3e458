"""The board that chains write on, wherever they run."""

from __future__ import annotations

import joblib
import numpy as np
import pytest

from markovblanket.chains.progress import PATIENCE_SECONDS, Board, ChainProgress, _line, _moments_in, _worst_rhat
from markovblanket.contracts import Draw, SweepInfo


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
    with Board.open(2, warmup=1, sweeps=3, draws=2, visible=False) as board:
        count_up(board, 0, 3)
    assert capfd.readouterr() == ("", "")


def test_who_waits_for_the_first_sweep_is_told_why():
    """In 80 columns; also if a run goes on from where it was, and no longer once a chain has moved."""
    times = iter(range(100))
    chains = [ChainProgress(10, 5, clock=lambda: float(next(times))) for _ in range(2)]
    for chain in chains:
        chain.reach(4)
    told = _line(chains, PATIENCE_SECONDS + 1, np.nan)
    assert "compiles" in told
    assert len(told) < 80
    assert not _line(chains, PATIENCE_SECONDS - 1, np.nan)
    chains[1].reach(5)
    assert not _line(chains, PATIENCE_SECONDS + 1, np.nan)
    assert "1.250" in _line(chains, PATIENCE_SECONDS + 1, 1.25)


def drawn(value: float) -> Draw:
    """A draw of one query variable, of which everything is ``value`` but for a fixed rate."""
    one = np.array([value])
    return Draw(one[:, None], one[:, None], one, one, {"rate": 2.0}, SweepInfo(1, 0.0, 1.0))


def show(board, chain, values):
    watch = board.watcher(chain)
    for value in values:
        watch(drawn(value))


def split_rhat(chains):
    """The textbook's, of whole halves of (chain, draw)."""
    halves = np.concatenate(np.array_split(chains, 2, axis=1))
    n, within = halves.shape[1], halves.var(axis=1, ddof=1).mean()
    return np.sqrt(((n - 1) / n * within + halves.mean(axis=1).var(ddof=1)) / within)


def test_the_running_rhat_is_that_of_the_draws_so_far(tmp_path):
    chains = np.random.default_rng(1).normal([[0.0], [0.1], [0.4]], size=(3, 640))
    board = Board(3, board_at(tmp_path / "sweeps", 3).path, draws=640)
    assert np.isnan(board.worst_rhat())
    for chain in range(3):
        show(board, chain, chains[chain, :330])  # 16 whole slices of 20, and half a one
    assert board.worst_rhat() == pytest.approx(split_rhat(chains[:, :320]), rel=1e-12)
    for chain in range(3):
        show(board, chain, chains[chain, 320:])  # in a new process, as it were
    assert board.worst_rhat() == pytest.approx(split_rhat(chains), rel=1e-12)


def test_chains_that_come_one_after_the_other_are_compared_as_far_as_they_are(tmp_path):
    rng = np.random.default_rng(2)
    board = Board(3, board_at(tmp_path / "sweeps", 3).path, draws=320)
    show(board, 0, rng.normal(size=320))
    alone = board.worst_rhat()
    show(board, 1, 3 + rng.normal(size=100))
    assert alone < 1.05
    assert board.worst_rhat() > 1.5


def test_a_slice_half_written_is_left_for_later(tmp_path):
    board = Board(1, board_at(tmp_path / "sweeps", 1).path, draws=64)
    show(board, 0, [1.0, 2.0, 3.0, 5.0])
    file = tmp_path / "sweeps.0"
    whole = _moments_in(file)
    np.testing.assert_allclose(whole[:, :, 0], [[1.5, 0.25], [4.0, 1.0]])
    file.write_bytes(file.read_bytes() + bytes(21))
    np.testing.assert_array_equal(_moments_in(file), whole)
    file.write_bytes(bytes(5))
    assert np.isnan(_worst_rhat([_moments_in(file)], 2))
