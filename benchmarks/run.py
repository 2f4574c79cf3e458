"""What a sweep costs, and what it buys: every figure a ratio measured within this one run.

    python benchmarks/run.py [--out benchmarks/results.json] [--quick]

Times are process times of one thread, medians of repeated runs, on states that chains have reached.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy
from threadpoolctl import threadpool_limits

from markovblanket import arviz_bridge, gibbs
from markovblanket.contracts import ChainState, Noise, Problem
from markovblanket.copula import Copula
from markovblanket.levels import Column
from markovblanket.priors import Laplace
from markovblanket.scatter import from_columns
from markovblanket.simulate import simulate
from markovblanket.solvers import CrossPrecision, Dense, Dual


def factor_table(n: int, p: int, q: int, seed: int = 0) -> np.ndarray:
    """Standardised columns with ten common factors, the first queries depending on a few of the rest."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p + q)) + rng.standard_normal((n, 10)) @ rng.standard_normal((10, p + q)) / 2
    X[:, :p] += X[:, p : 2 * p] if q >= p else 0
    return (X - X.mean(axis=0)) / X.std(axis=0)


def reached(problem: Problem, sweeps: int, seed: int = 0) -> ChainState:
    """A state some sweeps into a chain."""
    rng = np.random.default_rng(seed)
    state = gibbs.start(rng, problem)
    for _ in range(sweeps):
        state, _ = gibbs.sweep(rng, state, problem)
    return state


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Median process time of a call."""
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return float(np.median(times))


def cost_against_q(sizes: list[int], p: int = 7, n: int = 260) -> dict:
    """A sweep's cost from q small to large, its log-log slope, and the share that is bare matrix products."""
    rows = []
    for q in sizes:
        X = factor_table(n, p, q)
        problem = Problem(from_columns(X[:, :p], X[:, p:]), Laplace(), Dual())
        state, rng = reached(problem, 30), np.random.default_rng(1)
        sweep = seconds(lambda problem=problem, state=state, rng=rng: gibbs.sweep(rng, state, problem), 15)
        iterations = np.mean([gibbs.sweep(rng, state, problem)[1].iterations for _ in range(5)])
        F = problem.scatter.F
        s, y = rng.standard_normal((p, len(F))), rng.standard_normal((p, q))
        bare = iterations * seconds(lambda s=s, y=y, F=F: (s @ F, y @ F.T), 15)
        rows.append(
            {"q": q, "ms": 1e3 * sweep, "iterations": float(iterations), "over_bare_products": sweep / bare}
        )
        print(
            f"  q = {q:6d}: {1e3 * sweep:.2f} ms, {iterations:.1f} iterations, {sweep / bare:.2f} x bare products"
        )
    slope = np.polyfit(np.log([row["q"] for row in rows]), np.log([row["ms"] for row in rows]), 1)[0]
    print(f"  log-log slope {slope:.2f}")
    return {"rows": rows, "slope": float(slope)}


def dual_against_dense(sizes: list[tuple[int, int, int]]) -> list[dict]:
    """How many times faster than the Cholesky factor of C the dual draw is, on the same state and noise."""
    out = []
    for p, q, n in sizes:
        X = factor_table(n, p, q)
        problem = Problem(from_columns(X[:, :p], X[:, p:]), Laplace(), Dual())
        state = reached(problem, 30)
        noise = Noise.draw(np.random.default_rng(1), p, q, len(problem.scatter.F))
        arguments = (np.linalg.inv(state.W11), state.T, problem.scatter, noise)
        ratio = seconds(lambda a=arguments: Dense().draw(*a), 3) / seconds(lambda a=arguments: Dual().draw(*a), 15)
        print(f"  p, q, n = {p}, {q}, {n}: the dual draw is {ratio:.0f} x faster than the dense one")
        out.append({"p": p, "q": q, "n": n, "ratio": ratio})
    return out


def tolerance(p: int = 5, q: int = 100, n: int = 200) -> list[dict]:
    """The true error of a draw, in conditional standard deviations, against the tolerance asked for."""
    X = factor_table(n, p, q)
    problem = Problem(from_columns(X[:, :p], X[:, p:]), Laplace(), Dual())
    state = reached(problem, 50)
    U, scatter = np.linalg.inv(state.W11), problem.scatter
    C = CrossPrecision(U, state.T, scatter).to_dense()
    out = []
    for bound in (1e-1, 1e-3, 1e-5, 1e-7):
        errors, iterations = [], []
        for seed in range(10):
            noise = Noise.draw(np.random.default_rng(seed), p, q, len(scatter.F))
            exact, _ = Dense().draw(U, state.T, scatter, noise)
            W12, info = Dual(tolerance=bound).draw(U, state.T, scatter, noise)
            difference = (W12 - exact).ravel()
            errors.append(float(np.sqrt(difference @ C @ difference)))
            iterations.append(info.iterations)
        print(f"  tolerance {bound:.0e}: worst error {max(errors):.1e} sd, {np.mean(iterations):.1f} iterations")
        out.append({"tolerance": bound, "worst_error": max(errors), "iterations": float(np.mean(iterations))})
    return out


def mixing(sizes: list[tuple[int, int, int]], sweeps: int) -> list[dict]:
    """Effective draws per 100 sweeps, with and without the joint scale moves of the query rows."""
    out = []
    for p, q, n in sizes:
        data = simulate(rows=n, query=p, rest=q, seed=3).table.to_numpy()
        X = (data - data.mean(axis=0)) / data.std(axis=0)
        problem = Problem(from_columns(X[:, :p], X[:, p:]), Laplace(), Dual())
        with_moves = effective(problem, sweeps)
        rows, gibbs.draw_row_scales = gibbs.draw_row_scales, lambda rng, state, G, s, problem: np.ones(len(G))
        without = effective(problem, sweeps)
        gibbs.draw_row_scales = rows
        print(f"  p, q, n = {p}, {q}, {n}, effective draws per 100 sweeps, without -> with row moves:")
        for name in with_moves:
            print(f"    {name:16s} {without[name]:5.1f} -> {with_moves[name]:5.1f}")
        out.append({"p": p, "q": q, "n": n, "with": with_moves, "without": without})
    return out


def effective(problem: Problem, sweeps: int) -> dict[str, float]:
    """Effective draws per 100 sweeps of gamma, of the worst entry of W11 and of the worst of 100 edges."""
    rng = np.random.default_rng(0)
    state, kept = gibbs.start(rng, problem), []
    edges = np.unravel_index(rng.choice(state.W12.size, min(100, state.W12.size), replace=False), state.W12.shape)
    for count in range(sweeps + sweeps // 4):
        state, _ = gibbs.sweep(rng, state, problem)
        if count >= sweeps // 4:
            kept.append([state.hyper["gamma"], *state.W11[np.triu_indices(problem.p)], *state.W12[edges]])
    ess = arviz_bridge.arviz().ess
    values = 100 / sweeps * np.array([ess(chain[None]) for chain in np.array(kept).T])
    entries = 1 + problem.p * (problem.p + 1) // 2
    return {"gamma": values[0], "W11, worst": values[1:entries].min(), "W12, worst of 100": values[entries:].min()}


def with_levels(X: np.ndarray, p: int, latent: list[int]) -> Problem:
    """The table X with some of its columns known by four levels only."""
    columns = []
    for k, x in enumerate(X.T):
        codes = np.searchsorted([-0.8, 0.0, 0.9], x).astype(float)
        columns.append(Column(k, "ordinal", codes, (0, 1, 2, 3)) if k in latent else Column(k, "continuous", x))
    copula = Copula.of(columns, p)
    return Problem(copula.scatter(copula.start()), Laplace(), Dual(), copula)


def latent_step(p: int = 7, q: int = 312, n: int = 260) -> dict:
    """The latent step with all query columns latent, against the draw of W12 that follows it."""
    problem = with_levels(factor_table(n, p, q), p, list(range(p)))
    state, rng, prior = reached(problem, 30), np.random.default_rng(1), problem.prior
    latent = seconds(lambda: gibbs.refresh(rng, state, problem), 31)
    cross = seconds(lambda: prior.draw_cross(rng, state, problem.scatter, problem.solver), 31)
    print(f"  latent step {1e3 * latent:.2f} ms, draw of W12 {1e3 * cross:.2f} ms: {latent / cross:.2f} of it")
    return {"p": p, "q": q, "n": n, "latent_ms": 1e3 * latent, "cross_ms": 1e3 * cross, "ratio": latent / cross}


def latent_cost_against_q(sizes: list[int], p: int = 3, others: int = 20, n: int = 260) -> dict:
    """A sweep with three latent query columns and twenty latent others, from q small to large."""
    rows = []
    for q in sizes:
        problem = with_levels(factor_table(n, p, q), p, [*range(p), *range(p, p + others)])
        state, rng = reached(problem, 20), np.random.default_rng(1)
        sweep = seconds(lambda problem=problem, state=state, rng=rng: gibbs.sweep(rng, state, problem), 15)
        latent = seconds(lambda problem=problem, state=state, rng=rng: gibbs.refresh(rng, state, problem), 15)
        rows.append({"q": q, "ms": 1e3 * sweep, "latent_ms": 1e3 * latent})
        print(f"  q = {q:6d}: {1e3 * sweep:.1f} ms, of which {1e3 * latent:.1f} ms the latent step")
    slope = np.polyfit(np.log([row["q"] for row in rows]), np.log([row["ms"] for row in rows]), 1)[0]
    print(f"  log-log slope {slope:.2f}")
    return {"rows": rows, "slope": float(slope)}


def main() -> None:
    """Run everything, print it, write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("results.json"))
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    options = parser.parse_args()
    quick = options.quick
    versions = {"python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__}
    results = {"date": time.strftime("%Y-%m-%d"), "machine": platform.machine(), "versions": versions}
    print("Cost of a sweep against q (p = 7, n = 260, learned Laplace)")
    results["cost_against_q"] = cost_against_q([300, 1000] if quick else [300, 1000, 4000, 13400, 50000])
    print("The dual draw of W12 against the dense one")
    results["dual_against_dense"] = dual_against_dense(
        [(3, 40, 100)] if quick else [(10, 90, 1000), (7, 312, 260)]
    )
    print("What the solver's tolerance means")
    results["tolerance"] = tolerance()
    print("Mixing")
    results["mixing"] = mixing(
        [(3, 20, 200)] if quick else [(10, 90, 1000), (7, 312, 260)], 300 if quick else 2000
    )
    print("Latent columns")
    results["latent_step"] = latent_step(*((3, 40, 100) if quick else (7, 312, 260)))
    results["latent_cost_against_q"] = latent_cost_against_q([300, 1000] if quick else [1000, 3000, 10000, 30000])
    options.out.write_text(json.dumps(results, indent=2) + "\n")
    print(f"written to {options.out}")


if __name__ == "__main__":
    with threadpool_limits(limits=1):
        main()
