"""Signals during a chain."""

from __future__ import annotations

import signal
import threading

import numpy as np
import pytest

from markovblanket.chains.processes import between_sweeps
from markovblanket.chains.run import Schedule, run
from markovblanket.contracts import Draw, SweepInfo

INFO = SweepInfo(1, 0.0, 1.0)


@pytest.fixture(autouse=True)
def _ctrl_c_is_heard():
    """As in a terminal; a shell's background jobs ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Counting:
    """A sampler whose state is a number of sweeps; in one of them somebody presses Ctrl-C, before it ends."""

    def __init__(self, at: int) -> None:
        self.at, self.finished = at, 0

    def start(self, rng):
        return 0

    def sweep(self, rng, state):
        if state + 1 == self.at:
            signal.raise_signal(signal.SIGINT)
        self.finished = state + 1
        return state + 1, INFO

    def derive(self, rng, state, info):
        one = np.array([float(state)])
        return Draw(one[:, None], one[:, None], one, one, {}, info)

    def partial_correlations(self, state):
        return np.array([[float(state)]])


@pytest.mark.parametrize("at", [1, 3, 4, 9, 10])
def test_a_sweep_is_finished_before_the_interrupt_and_no_other_begins(at):
    sampler, before = Counting(at), signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run(sampler, Schedule(warmup=3, draws=7), chains=1)
    assert sampler.finished == at
    assert signal.getsignal(signal.SIGINT) is before


def test_a_run_that_nobody_interrupts_leaves_the_handlers_as_they_were():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    run(Counting(0), Schedule(warmup=3, draws=7), chains=1)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_the_handler_that_was_there_is_the_one_that_is_called():
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        with between_sweeps() as act:
            signal.raise_signal(signal.SIGTERM)
            assert heard == []
            act()
            assert heard == [signal.SIGTERM]
            act()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [signal.SIGTERM]


def test_a_second_interrupt_does_not_wait():
    reached = []

    def press() -> None:
        with between_sweeps():
            for time in ("once", "twice"):
                signal.raise_signal(signal.SIGINT)
                reached.append(time)

    with pytest.raises(KeyboardInterrupt):
        press()
    assert reached == ["once"]


def test_other_threads_do_not_touch_signals():
    seen = []

    def look() -> None:
        with between_sweeps() as act:
            act()
            seen.append(signal.getsignal(signal.SIGINT))

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [before]
