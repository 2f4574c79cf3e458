"""Diagnostics of the chains: R-hat, effective sample sizes, and the verdict on convergence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from markovblanket.chains.stores import AXES
from markovblanket.posterior import html, summaries
from markovblanket.posterior.display import figure, number, rhat
from markovblanket.posterior.summaries import convergence, describe, flat

# Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), Bayesian Analysis 16.
MAX_RHAT = 1.01
MIN_ESS_PER_CHAIN = 100


class ConvergenceWarning(UserWarning):
    """The chains of a fit do not agree yet, or hold too few independent draws."""


@dataclass(frozen=True)
class Diagnostics:
    """Convergence of a posterior's chains, block by block.

    Attributes
    ----------
    table : pandas.DataFrame
        A row per block of quantities: how many, the worst R-hat and where, the smallest bulk and tail ESS.
    problems : tuple of str
        What is wrong, in words; empty when converged.
    effort : pandas.DataFrame
        What the kept sweeps cost, a row per counter: its mean, its largest value and in which chain that was.
        ``iterations`` of the solver, or the entries that a sweep without one (``SpikeSlab``) has changed;
        ``residual``, how far from the exact draw of ``W12`` the solver ended, in conditional standard deviations;
        ``scale_factor`` of the joint move of ``W12`` with its scales.
    """

    table: pd.DataFrame
    problems: tuple[str, ...]
    effort: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def converged(self) -> bool:
        """Whether there is no problem."""
        return not self.problems

    def __str__(self) -> str:
        verdict = "converged" if self.converged else "NOT CONVERGED: " + "; ".join(self.problems)
        effort = "" if self.effort.empty else f"\n\nper sweep\n{self.effort.map(figure).to_string()}"
        return f"{self.table.to_string()}\n{verdict}{effort}"

    @property
    def verdict(self) -> str:
        """One line that says whether the chains agree, and the figures behind it; the same on every surface."""
        if self.table.empty:
            return f"NOT CONVERGED: {'; '.join(self.problems)}"
        smallest = self.table[["ess_bulk", "ess_tail"]].min(axis=None)
        figures = f"worst R-hat {rhat(self.table['rhat'].max())}, smallest effective sample {number(smallest)}"
        if self.converged:
            return f"The chains agree: {figures}."
        return f"NOT CONVERGED: {figures}. Ask for more warmup and draws."

    def _repr_html_(self) -> str:
        """For notebooks: the verdict, everything that is wrong, and the table."""
        said = html.verdict(self.converged, self.verdict)
        problems = map(html.note, self.problems)
        names = ("quantities", "worst R-hat", "where", "bulk ESS", "tail ESS")
        columns = [("block", False), *((name, name != "where") for name in names)]
        rows = [
            (
                str(block),
                number(row["quantities"]),
                rhat(row["rhat"]),
                str(row["worst"]),
                number(row["ess_bulk"]),
                number(row["ess_tail"]),
            )
            for block, row in self.table.iterrows()
        ]
        tables = [html.table(columns, rows)] if rows else []
        return html.card(said, *problems, *tables, *([] if self.effort.empty else [_effort_table(self.effort)]))


def diagnose(
    draws: xr.Dataset,
    edges: pd.DataFrame | None = None,
    effort: xr.Dataset | None = None,
    solver: Mapping[str, Any] | None = None,
) -> Diagnostics:
    """Diagnostics of every quantity of ``draws``, a block per variable, and of edges whose quality is known.

    ``edges`` has R-hat, bulk and tail ESS by the names of edges; ``effort`` the counters of every kept sweep, and
    ``solver`` the ``tolerance`` and ``max_iterations`` that these are held against.
    """
    least = MIN_ESS_PER_CHAIN * draws.sizes["chain"]
    cost = pd.DataFrame() if effort is None else _summed_up(effort)
    missed = tuple(_missed(cost, (solver or {}).get("options", {})))
    if draws.sizes["draw"] < 4:
        return Diagnostics(pd.DataFrame(), ("fewer than 4 draws per chain: nothing can be said", *missed), cost)
    rows = {str(name): _row(_quality(draws[[name]])) for name in draws.data_vars}
    if edges is not None and len(edges):
        rows["edges"] = _row(edges)
    table = pd.DataFrame.from_dict(rows, orient="index")
    return Diagnostics(table, (*_problems(table, least), *missed), cost)


# What it cost -------------------------------------------------------------------------------------------


def _summed_up(effort: xr.Dataset) -> pd.DataFrame:
    """A row per counter: its mean, the largest value and the chain that has it."""
    rows = {}
    for name, counted in effort.data_vars.items():
        values = counted.to_numpy()  # (chain, draw)
        chain = int(np.argmax(values.max(axis=1)))
        rows[str(name)] = {"mean": float(values.mean()), "max": float(values[chain].max()), "chain": chain}
    return pd.DataFrame.from_dict(rows, orient="index")


def _missed(cost: pd.DataFrame, solver: Mapping[str, Any]) -> list[str]:
    """One sentence for every promise that the solver did not keep."""
    problems = []
    for name, limit in (("residual", solver.get("tolerance")), ("iterations", solver.get("max_iterations"))):
        # A sweep without a solver has no residual, and what it counts as iterations has no limit.
        if limit is None or name not in cost.index or cost.loc["residual", "max"] == 0:
            continue
        if not cost.loc[name, "max"] <= limit:
            problems.append(
                f"{name} of the solver came to {figure(cost.loc[name, 'max'])} in chain "
                f"{cost.loc[name, 'chain']} (should be at most {limit:g})"
            )
    return problems


def _effort_table(effort: pd.DataFrame) -> str:
    """What the kept sweeps cost, as an HTML table."""
    columns = [("per sweep", False), ("mean", True), ("largest", True), ("in chain", True)]
    rows = [(str(name), *map(figure, row)) for name, row in effort.iterrows()]
    return html.table(columns, rows)


def _quality(block: xr.Dataset) -> pd.DataFrame:
    """R-hat, bulk and tail ESS of every quantity of a block, by its coordinates."""
    (name,) = block.data_vars
    rhat = summaries.rhat(block)[name]
    labels = [
        "~".join(str(rhat[dim].values[k]) for dim, k in zip(rhat.dims, where, strict=True) if dim in rhat.coords)
        for where in np.ndindex(rhat.shape)
    ]
    bulk, tail = (summaries.ess(block, method)[name].values.ravel() for method in ("bulk", "tail"))
    return pd.DataFrame({"rhat": rhat.values.ravel(), "ess_bulk": bulk, "ess_tail": tail}, index=labels)


def _row(quality: pd.DataFrame) -> dict[str, object]:
    """One block: its size, worst R-hat and where, smallest effective sample sizes."""
    rhat = quality["rhat"].fillna(np.inf)  # chains that never move have none, and have not converged
    return {
        "quantities": len(quality),
        "rhat": float(rhat.max()),
        "worst": str(quality.index[int(np.argmax(rhat))]),
        "ess_bulk": float(quality["ess_bulk"].min()),
        "ess_tail": float(quality["ess_tail"].min()),
    }


def _problems(table: pd.DataFrame, least: int) -> list[str]:
    """One sentence for every criterion that a block fails."""
    problems = []
    for name, row in table.iterrows():
        at = f" at {row['worst']}" if row["worst"] else ""
        if not row["rhat"] <= MAX_RHAT:
            problems.append(f"R-hat of {name} is {row['rhat']:.3f}{at} (should be at most {MAX_RHAT})")
        smallest = np.fmin(row["ess_bulk"], row["ess_tail"])  # streamed edges have no tail ESS
        if not smallest >= least:
            problems.append(f"effective sample size of {name} is {smallest:.0f} (should be at least {least})")
    return problems


def hyperparameters(draws: xr.Dataset) -> xr.Dataset:
    """Draws of what the prior learned, in the order of their names, which a file does not keep."""
    learned = draws.drop_vars(list(AXES), errors="ignore")
    return learned[sorted(map(str, learned.data_vars))]


def r2(draws: xr.Dataset) -> xr.DataArray:
    """Explained over total variance of each query variable, draw by draw.

    Explained by the other variables; if every variable is a query variable, by all of those but itself:
    ``1 - 1/(w_ii u_ii)``.
    """
    W11 = draws["W11"].values
    variance = np.einsum("...ii->...i", np.linalg.inv(W11))
    if draws.sizes["variable"]:
        return (draws["explained"] / (draws["explained"] + variance)).rename("r2")
    return draws["explained"].copy(data=1 - 1 / (np.einsum("...ii->...i", W11) * variance)).rename("r2")


def reported(draws: xr.Dataset, r2: xr.DataArray, exact_zeros: bool) -> xr.Dataset:
    """All of them; each entry of the symmetric ``W11`` once, or its diagonal if the others are edges."""
    query = draws["query"].values.tolist()
    i, j = np.diag_indices(len(query)) if exact_zeros else np.triu_indices(len(query))
    pairs = [f"{query[a]}, {query[b]}" for a, b in zip(i, j, strict=True)]
    W11 = xr.DataArray(draws["W11"].values[:, :, i, j], dims=("chain", "draw", "pair"), coords={"pair": pairs})
    names = ["variable", "query_other", "edge", "edge_query", "edge_variable"]
    hyper = hyperparameters(draws).drop_vars(names, errors="ignore")
    return hyper.assign(W11=W11, r2=r2)


def summarised(reported: xr.Dataset, level: float) -> pd.DataFrame:
    """Mean, sd, interval, R-hat and ESS of all of them, a row each."""
    rows = flat(reported)
    frame = describe(np.stack([array.ravel() for array in rows.values()], axis=1), level)
    frame.insert(0, "quantity", list(rows))
    return frame.set_index("quantity").join(convergence(rows))
