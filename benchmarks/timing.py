"""Chains that can be stepped, and process times of calls taken in turn, so that noise hits all of them alike."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping

import numpy as np

from markovblanket.contracts import Array, Problem, SweepInfo
from markovblanket.model import sweep

Work = Callable[[], object]


class Chain:
    """A chain some sweeps under way; every call of :meth:`step` is its next sweep."""

    def __init__(self, problem: Problem, warmup: int, seed: int = 0) -> None:
        self.problem, self.rng = problem, np.random.default_rng(seed)
        self.state, self.iterations = sweep.start(self.rng, problem), list[int]()
        for _ in range(warmup):
            self.step()

    def step(self) -> SweepInfo:
        """A sweep."""
        self.state, info = sweep.sweep(self.rng, self.state, self.problem)
        self.iterations.append(info.iterations)
        return info


def warmup_for(p: int, q: int) -> int:
    """Sweeps until a chain's cost has settled; fewer where sweeps are long."""
    return 30 if p * q > 20_000 else 150


def seconds(work: Work, times: int = 1) -> float:
    """Process time of a call."""
    begin = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - begin) / times


def in_turn(works: Mapping[str, Work], repeats: int, least: float = 5e-3) -> dict[str, Array]:
    """Seconds per call, one figure for each round; in a round every work has its turn.

    Short works are called as often in a row as takes ``least`` seconds.
    """
    often = {name: math.ceil(least / max(seconds(work), 1e-6)) for name, work in works.items()}
    rounds = [{name: seconds(work, often[name]) for name, work in works.items()} for _ in range(repeats)]
    return {name: np.array([row[name] for row in rounds]) for name in works}


def ratio(above: Array, below: Array) -> float:
    """Median over rounds."""
    return float(np.median(above / below))


def milliseconds(times: Array) -> float:
    """Median over rounds."""
    return 1e3 * float(np.median(times))


def slope(x: list[float], y: list[float]) -> float:
    """Of the least squares line through the logarithms."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
