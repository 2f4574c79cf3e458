"""What a sweep costs: against q, n and p, against bare products, and for every prior at sizes of interest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from markovblanket.contracts import Array, Problem
from settings import Settings
from tables import PRIORS, Size, factor_table, gaussian, label
from timing import Chain, Work, in_turn, milliseconds, ratio, slope, warmup_for

Row = dict[str, Any]


def against_q(settings: Settings) -> dict[str, Any]:
    """q from 1,000 to 50,000 at p = 7, n = 260: the log-log slope, and sweeps over bare products."""
    sizes = [200, 400, 800] if settings.quick else [1000, 2000, 5000, 13400, 25000, 50000]
    return _curve([(7, q, 260) for q in sizes], 1, settings, ("Laplace", "SpikeSlab"))


def against_n(settings: Settings) -> dict[str, Any]:
    """n from 60 to 1,000 at p = 7 and q = 13,400."""
    q, sizes = (300, [30, 60]) if settings.quick else (13400, [60, 120, 250, 500, 1000])
    return _curve([(7, q, n) for n in sizes], 2, settings, tuple(PRIORS))


def against_p(settings: Settings) -> dict[str, Any]:
    """p from 1 to 30 at q = 2,000 and n = 260."""
    q, sizes = (200, [1, 4]) if settings.quick else (2000, [1, 2, 5, 10, 20, 30])
    return _curve([(p, q, 260) for p in sizes], 0, settings, tuple(PRIORS))


def profile(settings: Settings) -> dict[str, Any]:
    """Every prior at sizes of interest."""
    sizes = [(10, 90, 1000), (7, 312, 260), (1, 4088, 71), (30, 2000, 500), (7, 13400, 260), (7, 50000, 260)]
    if settings.quick:
        sizes = [(3, 30, 100), (2, 100, 50)]
    return {"rows": [row for size in sizes for row in _timed([size], settings, tuple(PRIORS))]}


def _curve(sizes: list[Size], axis: int, settings: Settings, priors: tuple[str, ...]) -> dict[str, Any]:
    """Rows for every size and prior, and each prior's slope along an axis of the sizes."""
    rows, letter = _timed(sizes, settings, priors), "pqn"[axis]
    slopes = {}
    for prior in priors:
        own = [row for row in rows if row["prior"] == prior]
        slopes[prior] = slope([row[letter] for row in own], [row["ms"] for row in own])
        print(f"  {prior}: log-log slope {slopes[prior]:.2f}")
    return {"axis": letter, "rows": rows, "slopes": slopes}


def _timed(sizes: list[Size], settings: Settings, priors: tuple[str, ...]) -> list[Row]:
    """All sizes and priors taken in turn, with their bare products."""
    chains: dict[tuple[Size, str], Chain] = {}
    works: dict[Any, Work] = {}
    for size in sizes:
        problem = gaussian(factor_table(size), size[0], PRIORS["Laplace"]())
        for prior in priors:
            warmup = warmup_for(*size[:2]) // (5 if settings.quick else 1)
            chains[size, prior] = Chain(replace(problem, prior=PRIORS[prior]()), warmup)
        works |= {(size, name): work for name, work in bare_products(problem).items()}
    works |= {key: chain.step for key, chain in chains.items()}
    times = in_turn(works, settings.repeats)
    return [_row(size, prior, chain, times) for (size, prior), chain in chains.items()]


def bare_products(problem: Problem) -> dict[str, Work]:
    """One product p x m by m x q, and the two of an iteration: that, and one p x q by q x m."""
    F, rng = problem.scatter.F, np.random.default_rng(1)
    s, y = rng.standard_normal((problem.p, len(F))), rng.standard_normal((problem.p, problem.q))
    return {"product": lambda: s @ F, "two products": lambda: (s @ F, y @ F.T)}


def _row(size: Size, prior: str, chain: Chain, times: Mapping[Any, Array]) -> Row:
    """A prior's time at a size; over what the solver's iterations cannot avoid, or over one product."""
    own, iterations = times[size, prior], float(np.mean(chain.iterations[-len(times[size, prior]) :]))
    row = {**dict(zip("pqn", size, strict=True)), "prior": prior, "ms": milliseconds(own)}
    row["per_second"] = 1e3 / row["ms"]
    row["over_product"] = ratio(own, times[size, "product"])
    bare = "over the product"
    if prior != "SpikeSlab":
        row |= {"iterations": iterations, "over_iterations": ratio(own, iterations * times[size, "two products"])}
        bare = f"over the products of {iterations:.1f} iterations"
    share = row.get("over_iterations", row["over_product"])
    print(f"  {prior:9s} p, q, n = {label(size)}: {row['ms']:.2f} ms, {share:.2f} {bare}")
    return row
