"""The dual solver against the dense one, what its tolerance means, and what a looser one would save."""

from __future__ import annotations

from typing import Any

import numpy as np

from markovblanket.contracts import Array, Noise, Problem
from markovblanket.posterior import summaries
from markovblanket.priors import Laplace
from markovblanket.solvers import CrossPrecision, Dense, Dual
from settings import Settings
from tables import TABLES, Size, factor_table, gaussian, label
from timing import Chain, in_turn, ratio

TOLERANCES = (1e-1, 1e-3, 1e-5, 1e-7)


def dense(settings: Settings) -> dict[str, Any]:
    """Whole sweeps, and the draw of W12 alone, on the same states; columns with common factors, and a network."""
    sizes = [(3, 40, 100)] if settings.quick else [(10, 90, 1000), (7, 312, 260)]
    return {"rows": [_against_dense(size, table, settings) for size in sizes for table in TABLES]}


def _against_dense(size: Size, table: str, settings: Settings) -> dict[str, Any]:
    dual = Chain(gaussian(TABLES[table](size), size[0], Laplace()), 100)
    other = Chain(Problem(dual.problem.scatter, Laplace(), Dense()), 0)
    other.state = dual.state
    draws = {"dual draw": lambda: draw_cross(dual, Dual()), "dense draw": lambda: draw_cross(dual, Dense())}
    times = in_turn({"dual": dual.step, "dense": other.step, **draws}, settings.repeats)
    row = {**dict(zip("pqn", size, strict=True)), "table": table, "sweep": ratio(times["dense"], times["dual"])}
    row["draw"] = ratio(times["dense draw"], times["dual draw"])
    row["difference"] = float(np.abs(draw_cross(dual, Dual()) - draw_cross(dual, Dense())).max())
    print(f"  p, q, n = {label(size)}, {table}: sweeps {row['sweep']:.1f} x as fast, draws {row['draw']:.1f} x")
    return row


def draw_cross(chain: Chain, solver: Dual | Dense, seed: int = 1) -> Array:
    """W12 given the chain's state, by either solver, from the same noise."""
    state, scatter = chain.state, chain.problem.scatter
    noise = Noise.draw(np.random.default_rng(seed), *state.W12.shape, len(scatter.F))
    return solver.draw(np.linalg.inv(state.W11), state.T, scatter, noise)[0]


def tolerance(settings: Settings) -> dict[str, Any]:
    """The true error of a draw in conditional standard deviations, and what the posterior notices of it."""
    size = (2, 8, 60) if settings.quick else (5, 100, 200)
    chain = Chain(gaussian(factor_table(size), size[0], Laplace()), 50)
    runs = {bound: posterior(chain.problem, bound, 150 if settings.quick else 4000) for bound in TOLERANCES}
    exact, rows = runs[TOLERANCES[-1]], []
    for bound, run in runs.items():
        row = {"tolerance": bound, "worst_error": worst_error(chain, bound), "iterations": run["iterations"]}
        row["shift"] = float(np.median(np.abs(run["mean"] - exact["mean"]) / np.hypot(run["mcse"], exact["mcse"])))
        rows.append(row)
        print(
            f"  tolerance {bound:.0e}: worst error {row['worst_error']:.1e} sd, {row['iterations']:.1f} iterations"
        )
        print(f"    posterior means shifted by {row['shift']:.2f} Monte Carlo standard errors (0.67 is chance)")
    return {"rows": rows}


def worst_error(chain: Chain, bound: float) -> float:
    """Of ten draws: ``sqrt(delta' C delta)``, delta being what the dual draw misses of the dense one."""
    state, scatter = chain.state, chain.problem.scatter
    C = CrossPrecision(np.linalg.inv(state.W11), state.T, scatter).to_dense()
    errors = []
    for seed in range(10):
        delta = (draw_cross(chain, Dual(tolerance=bound), seed) - draw_cross(chain, Dense(), seed)).ravel()
        errors.append(float(np.sqrt(delta @ C @ delta)))
    return max(errors)


def posterior(problem: Problem, bound: float, sweeps: int) -> dict[str, Any]:
    """Posterior means of W12 with their Monte Carlo standard errors, by a chain of that tolerance."""
    chain = Chain(
        Problem(problem.scatter, problem.prior, Dual(tolerance=bound)), 100, seed=round(-np.log10(bound))
    )
    kept = np.empty((sweeps, *chain.state.W12.shape))
    for k in range(sweeps):
        chain.step()
        kept[k] = chain.state.W12
    mcse = summaries.arviz().mcse
    errors = np.array([mcse(entry[None]) for entry in kept.reshape(sweeps, -1).T]).reshape(kept[0].shape)
    return {"mean": kept.mean(axis=0), "mcse": errors, "iterations": float(np.mean(chain.iterations[100:]))}
