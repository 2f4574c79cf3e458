"""Effective draws per second and per 100 sweeps: of hyperparameters, W11, W12, and of inclusion if drawn."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np
import xarray as xr

from markovblanket.contracts import Array, ChainState, Problem
from markovblanket.model import sweep
from markovblanket.posterior import summaries
from markovblanket.priors import Laplace
from settings import AbsentError, Settings
from tables import PRIORS, clinical, gaussian, has_clinical, label, network_table
from timing import Chain

# An entry that is hardly ever different from zero, or from not zero, has no effective size worth the name.
RARE = 0.05


@dataclass(frozen=True)
class Run:
    """Draws by name, (chain, draw, ...), and the process time that they took, without and with the warm-up."""

    draws: Mapping[str, Array]
    seconds: float
    with_warmup: float

    def sizes(self, name: str, method: str = "bulk") -> Array:
        """Effective sizes of the entries of an array."""
        draws = xr.Dataset({name: (("chain", "draw", "entry"), self.draws[name])})
        return summaries.ess(draws, method)[name].to_numpy()

    def effective(self, method: str = "bulk") -> dict[str, float]:
        """The smallest effective size among the entries of each array."""
        return {name: float(self.sizes(name, method).min()) for name in self.draws}


def simulated(settings: Settings) -> dict[str, Any]:
    """Simulated networks with hubs."""
    sizes = [(2, 8, 80)] if settings.quick else [(10, 90, 1000), (7, 312, 260)]
    return every_prior(
        {label(size): gaussian(network_table(size), size[0], Laplace()) for size in sizes}, settings
    )


def tumours(settings: Settings) -> dict[str, Any]:
    """Two clinical tables, mixed and incomplete."""
    if not has_clinical(settings.data):
        raise AbsentError(f"no TCGA tables in {settings.data}: name their folder with --data")
    return every_prior(clinical(settings.data, Laplace()), settings)


def row_moves(settings: Settings) -> dict[str, Any]:
    """What the joint scale moves of the query rows buy, learned Laplace: sweeps with them and without."""
    sizes = [(2, 8, 80)] if settings.quick else [(10, 90, 1000), (7, 312, 260)]
    warmup, draws = (50, 150) if settings.quick else (500, 2000)
    rows = []
    for size in sizes:
        problem = gaussian(network_table(size), size[0], Laplace())
        those = sampled(problem, warmup, draws).effective()
        with patch.object(sweep, "draw_row_scales", lambda rng, state, G, Q, problem: np.ones(len(G))):
            without = sampled(problem, warmup, draws).effective()
        for name in those:
            figures = {"with": 50 * those[name] / draws, "without": 50 * without[name] / draws}
            rows.append({"table": label(size), "quantity": name, **figures})
            print(f"  {label(size)}, {name}: {figures['without']:.1f} -> {figures['with']:.1f} per 100 sweeps")
    return {"rows": rows}


def every_prior(problems: Mapping[str, Problem], settings: Settings) -> dict[str, Any]:
    """A row for every table, prior and quantity."""
    warmup, draws = (50, 150) if settings.quick else (1000, 2000)
    rows = []
    for table, problem in problems.items():
        for prior in PRIORS:
            print(f"  {table}, {prior}")
            run = sampled(replace(problem, prior=PRIORS[prior]()), warmup, draws)
            rows += [{"table": table, "prior": prior, **row} for row in judged(run, 2 * draws)]
    return {"rows": rows, "draws": 2 * draws}


def sampled(problem: Problem, warmup: int, draws: int, chains: int = 2) -> Run:
    """Chains one after the other, each with its own seed."""
    begin = time.process_time()
    warm = [Chain(problem, warmup, seed) for seed in range(chains)]
    middle = time.process_time()
    states = [[_stepped(chain) for _ in range(draws)] for chain in warm]
    end = time.process_time()
    return Run(quantities(states), end - middle, end - begin)


def _stepped(chain: Chain) -> ChainState:
    chain.step()
    return chain.state


def quantities(states: list[list[ChainState]]) -> dict[str, Array]:
    """Every hyperparameter, the triangle of W11, the entries of W12, and whether these are zero if some are."""
    hyper = {name: _stacked(states, lambda s, name=name: [s.hyper[name]]) for name in states[0][0].hyper}
    triangle = np.triu_indices(len(states[0][0].W11))
    W12 = _stacked(states, lambda state: state.W12.ravel())
    kept = {**hyper, "W11": _stacked(states, lambda state: state.W11[triangle])}
    inclusion = (W12 != 0).mean(axis=(0, 1))
    kept["W12"] = W12[..., inclusion >= min(RARE, inclusion.max())]
    unsure = (inclusion > RARE) & (inclusion < 1 - RARE)
    return kept | ({"inclusion of an edge": 1.0 * (W12[..., unsure] != 0)} if unsure.any() else {})


def _stacked(states: list[list[ChainState]], of: Callable[[ChainState], Any]) -> Array:
    return np.array([[of(state) for state in chain] for chain in states])


def judged(run: Run, draws: int) -> list[dict[str, Any]]:
    """Bulk and tail, per 100 sweeps and per second, of the worst entry of everything."""
    bulk, tail, rows = run.effective("bulk"), run.effective("tail"), []
    for name, x in run.draws.items():
        row = {"quantity": name, "of": x.shape[-1]}
        for method, sizes in (("bulk", bulk), ("tail", tail)):
            row[f"{method}_per_100"] = 100 * sizes[name] / draws
            row[f"{method}_per_second"] = sizes[name] / run.seconds
        rows.append(row)
        print(f"    {name:20s} {row['bulk_per_100']:6.1f} bulk, {row['tail_per_100']:6.1f} tail per 100 sweeps")
    return rows
