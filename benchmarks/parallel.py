"""Two chains on two cores against the same two on one: wall times, so the machine should be quiet."""

from __future__ import annotations

import os
import time
import warnings
from typing import Any

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

import markovblanket as mb
from markovblanket.contracts import Array
from settings import AbsentError, Settings
from tables import Size, factor_table, label


def two_cores(settings: Settings) -> dict[str, Any]:
    """How many times as fast two cores are."""
    if len(os.sched_getaffinity(0)) < 2:
        raise AbsentError("two cores are needed")
    sizes = {(2, 50, 60): 300} if settings.quick else {(7, 312, 260): 6000, (7, 13400, 260): 400}
    rows = [_gain(size, draws, 1 if settings.quick else 3) for size, draws in sizes.items()]
    return {"rows": rows, "machine": _machine(0.2 if settings.quick else 3.0)}


def _machine(seconds: float) -> float:
    """What two processes that share nothing and multiply small matrices gain: more is not to be had."""

    def made(jobs: int) -> int:
        return sum(joblib.Parallel(jobs)(joblib.delayed(_products)(seconds) for _ in range(jobs)))

    one, two = made(1), made(2)
    print(f"  two processes that only multiply are {two / one:.2f} x as fast as one")
    return two / one


def _products(seconds: float) -> int:
    """How many products this process makes in so many seconds."""
    rng, count, begin = np.random.default_rng(0), 0, time.perf_counter()
    a, F = rng.standard_normal((7, 260)), rng.standard_normal((260, 312))
    with threadpool_limits(limits=1):
        while time.perf_counter() - begin < seconds:
            a @ F
            count += 1
    return count


def _gain(size: Size, draws: int, repeats: int) -> dict[str, Any]:
    """Both in turn; the processes that serve two cores are started beforehand."""
    table = factor_table(size)
    for jobs in (1, 2):
        _wall(table, size[0], 5, jobs)
    ratios = [_wall(table, size[0], draws, 1) / _wall(table, size[0], draws, 2) for _ in range(repeats)]
    row = {**dict(zip("pqn", size, strict=True)), "draws": draws, "ratio": float(np.median(ratios))}
    print(f"  p, q, n = {label(size)}: two chains are {row['ratio']:.2f} x as fast on two cores as on one")
    return row


def _wall(table: Array, p: int, draws: int, jobs: int) -> float:
    """Seconds of two chains, a tenth of the draws as warm-up."""
    options = {"warmup": draws // 10, "draws": draws, "chains": 2, "keep": "summary", "progress": False, "seed": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.ConvergenceWarning)
        begin = time.perf_counter()
        mb.estimate(table, list(range(p)), n_jobs=jobs, **options)
        return time.perf_counter() - begin
