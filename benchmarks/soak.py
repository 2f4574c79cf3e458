"""A long run of the demo: does memory stay flat, and does what the sampler keeps up to date stay true?

    python benchmarks/soak.py [--sweeps 50000] [--every 1000] [--out FILE]

One chain of the demo's mixed table with gaps, with snapshots and a summary of 200 draws. Every so many sweeps the
memory of the process is read and the sampler's state held against what it is made of, worked out anew. It says
PASS if memory, from a tenth of the sweeps onward, never is more than 5 % above what it was there, and no invariant
is ever broken. Figures go to benchmarks/soak.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import machine
from markovblanket.chains import run
from markovblanket.chains.snapshots import Saver
from markovblanket.chains.stores import KeepSummary
from markovblanket.cli._demo import clinic
from markovblanket.contracts import Array, ChainState, Draw, Problem, SweepInfo
from markovblanket.fitting.data import model_data
from markovblanket.model import sweep
from markovblanket.model.copula._margins import Levels
from markovblanket.priors import SpikeSlab, spike_slab_sweep
from markovblanket.solvers import Dual
from memory import STATUS, kilobytes
from settings import AbsentError

DRAWS, FLAT = 200, 0.05
# Each is a number that must not be larger.
LIMITS = {
    "scatter": 1e-10,
    "inverse diagonal": 1e-10,
    "residuals": 1e-10,
    "unit columns": 1e-10,
    "cells out of order": 0,
    "cells changed": 0,
    "scales amiss": 0,
    "not finite": 0,
    "not definite": 0,
}


def problem_of(table: Any, query: list[str]) -> Problem:
    """As :func:`markovblanket.estimate` makes it, by default."""
    given = model_data(table, query, "auto", None, None, None, None)
    return Problem(given.scatter, SpikeSlab(), Dual(), given.latent)


# What must hold after any sweep ------------------------------------------------------------------------------


def invariants(problem: Problem, state: ChainState) -> dict[str, float]:
    """By how much each is missed: relative errors, or how many entries are wrong."""
    X1, X2 = state.columns.X1, state.columns.X2
    scatter, U = problem.latent.scatter(state.columns), np.linalg.inv(state.W11)
    S, made = (
        scatter_of(np.hstack([X1, X2])),
        np.block([[scatter.S11, scatter.S12], [scatter.S12.T, scatter.F.T @ scatter.F]]),
    )
    A = scatter_of(X2) + scatter.rest_prior.ridge * np.eye(X2.shape[1])
    numbers = (state.W11, state.W12, state.T, X1, X2, np.array([*state.hyper.values()]))
    unit = np.sqrt(np.diag(state.W11))
    return {
        "scatter": float(np.abs((made - S) / np.sqrt(np.outer(np.diag(S), np.diag(S)))).max()),
        "inverse diagonal": float(np.abs(scatter.inverse_diagonal / np.diag(np.linalg.inv(A)) - 1).max()),
        "residuals": residual_drift(problem, state, scatter, U),
        **cells(problem, state),
        "scales amiss": int((state.hyper["slab"] * (state.W12 != 0) != state.T).sum()),
        "not finite": int(sum((~np.isfinite(x)).sum() for x in numbers)),
        "not definite": int(not np.linalg.eigvalsh(state.W11 / np.outer(unit, unit))[0] > 0),
    }


def scatter_of(X: Array) -> Array:
    """From the columns themselves, less their means."""
    X = X - X.mean(axis=0)
    return X.T @ X


def residual_drift(problem: Problem, state: ChainState, scatter: Any, U: Array) -> float:
    """``Y + U W12 F'`` as a sweep over the entries keeps it up to date, against the same worked out anew."""
    rows = np.arange(len(U))
    odds, slab = (np.full(len(rows), value) for value in problem.prior.zero_law(state.hyper))
    W12, R = state.W12.copy(), scatter.Y + U @ scatter.times_factor(state.W12)
    law = odds, slab, np.ones(W12.shape[1])
    given = np.ascontiguousarray(scatter.F.T), 1.0 + scatter.column_sizes, *law, rows, 3
    spike_slab_sweep.sweep(np.random.default_rng(0), W12, U, R, *given)
    anew = scatter.Y + U @ W12 @ scatter.F.T
    return float(np.abs(R - anew).max() / np.abs(anew).max())


def cells(problem: Problem, state: ChainState) -> dict[str, float]:
    """Observed cells where they must be: levels in order, of mean 0 and mean square 1, all others as they were."""
    latent, first = problem.latent, problem.latent.start()
    order, unit, changed = 0, 0.0, 0
    for X, start, margins in (
        (state.columns.X1, first.X1, latent.query),
        (state.columns.X2, first.X2, latent.rest),
    ):
        for k in range(X.shape[1]):
            margin, x = margins.get(k), X[:, k]
            if isinstance(margin, Levels):
                order += out_of_order(x, margin)
                unit = max(unit, abs(float(np.mean(x**2)) - 1), abs(float(np.mean(x))))
            else:
                kept = np.ones(len(x), dtype=bool)
                kept[[] if margin is None else margin.missing] = False
                changed += int((x[kept] != start[kept, k]).sum())
    return {"unit columns": unit, "cells out of order": order, "cells changed": changed}


def out_of_order(x: Array, margin: Levels) -> int:
    """Levels whose largest cell is above the smallest one of the next level."""
    levels = [x[margin.codes == code] for code in range(int(margin.codes.max()) + 1)]
    return sum(int(below.max() > above.min()) for below, above in pairwise(levels))


# A run that is watched ---------------------------------------------------------------------------------------


@dataclass
class Watched:
    """The blanket's sampler; every so many sweeps, memory and invariants are written down."""

    problem: Problem
    every: int
    count: int = 0
    seen: list[dict[str, float]] = field(default_factory=list)
    begun: float = field(default_factory=time.perf_counter)

    def start(self, rng: np.random.Generator) -> ChainState:
        """As the sampler's."""
        return sweep.start(rng, self.problem)

    def sweep(self, rng: np.random.Generator, state: ChainState) -> tuple[ChainState, SweepInfo]:
        """As the sampler's, and a look now and then."""
        state, info = sweep.sweep(rng, state, self.problem)
        self.count += 1
        if self.count % self.every == 0:
            found = invariants(self.problem, state)
            seconds = time.perf_counter() - self.begun
            self.seen.append(
                {"sweep": self.count, "seconds": seconds, "megabytes": kilobytes("VmRSS") / 1e3, **found}
            )
        return state, info

    def derive(self, rng: np.random.Generator, state: ChainState, info: SweepInfo) -> Draw:
        """As the sampler's."""
        return sweep.Blanket(self.problem).derive(rng, state, info)

    def partial_correlations(self, state: ChainState) -> Array:
        """As the sampler's."""
        return sweep.Blanket(self.problem).partial_correlations(state)


def soak(problem: Problem, sweeps: int, every: int, draws: int = DRAWS) -> list[dict[str, float]]:
    """What was seen in a run of so many sweeps, a tenth of them warm-up."""
    if not STATUS.exists():
        raise AbsentError("memory is read from /proc, which this system has not")
    warmup, watched = sweeps // 10, Watched(problem, every)
    schedule = run.Schedule(warmup, draws, (sweeps - warmup) // draws)
    with tempfile.TemporaryDirectory() as folder:
        run.run(watched, schedule, chains=1, seed=1, keep=KeepSummary(draws), saver=Saver(Path(folder), 10.0))
    return watched.seen


def broken(seen: list[dict[str, float]]) -> list[str]:
    """Every invariant that was missed, and when first."""
    return [
        f"{name} came to {row[name]:.2g} after {row['sweep']:,} sweeps (at most {limit:g})"
        for name, limit in LIMITS.items()
        for row in [next((row for row in seen if not row[name] <= limit), None)]
        if row is not None
    ]


def growth(seen: list[dict[str, float]]) -> float:
    """Of memory after a tenth of the sweeps, as a share of what it was there."""
    later = [row["megabytes"] for row in seen if row["sweep"] >= seen[-1]["sweep"] / 10]
    return max(later) / later[0] - 1


def main() -> int:
    """Run, print a table, write a file, and say whether all is well."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sweeps", type=int, default=50_000)
    parser.add_argument("--every", type=int, default=1_000)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("soak.json"))
    given = parser.parse_args()
    data = clinic()
    seen = soak(problem_of(data.table, data.query), given.sweeps, given.every)
    print(f"{'sweeps':>8} {'s':>6} {'MB':>7}   scatter   inverse   residuals   unit")
    for row in seen[:: max(len(seen) // 10, 1)]:
        drift = "   ".join(f"{row[name]:.1e}" for name in list(LIMITS)[:4])
        print(f"{row['sweep']:>8,} {row['seconds']:>6.0f} {row['megabytes']:>7.1f}   {drift}")
    problems = broken(seen) + [f"memory grew by {growth(seen):.1%}"] * (growth(seen) > FLAT)
    print(f"memory: at most {growth(seen):+.2%} above that after a tenth of the sweeps")
    print("PASS" if not problems else "FAIL: " + "; ".join(problems))
    worst = {name: max(row[name] for row in seen) for name in LIMITS}
    told = {
        "date": time.strftime("%Y-%m-%d"),
        **machine.described(),
        "sweeps": given.sweeps,
        "growth": growth(seen),
    }
    given.out.write_text(json.dumps({**told, "worst": worst, "limits": LIMITS, "seen": seen}, indent=1) + "\n")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
