"""Did the chains converge? R-hat and effective sample sizes, and a verdict in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from markovblanket import arviz_bridge, cards
from markovblanket.numerals import number, rhat

# Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), Bayesian Analysis 16.
MAX_RHAT = 1.01
MIN_ESS_PER_CHAIN = 100


class ConvergenceWarning(UserWarning):
    """The chains of a fit do not agree yet, or hold too few independent draws."""


@dataclass(frozen=True)
class Diagnostics:
    """Convergence block by block.

    Attributes
    ----------
    table : pandas.DataFrame
        A row per block of quantities: how many, the worst R-hat and where, the smallest bulk and tail ESS.
    problems : tuple of str
        What is wrong, in words; empty when converged.
    """

    table: pd.DataFrame
    problems: tuple[str, ...]

    @property
    def converged(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def __str__(self) -> str:
        verdict = "converged" if self.converged else "NOT CONVERGED: " + "; ".join(self.problems)
        return f"{self.table.to_string()}\n{verdict}"

    @property
    def verdict(self) -> str:
        """In a line: whether the chains agree, and the figures that tell it."""
        if self.table.empty:
            return f"NOT CONVERGED: {'; '.join(self.problems)}"
        smallest = self.table[["ess_bulk", "ess_tail"]].min(axis=None)
        figures = f"worst R-hat {rhat(self.table['rhat'].max())}, smallest effective sample {number(smallest)}"
        if self.converged:
            return f"The chains agree: {figures}."
        return f"NOT CONVERGED: {figures}. Ask for more warmup and draws."

    def _repr_html_(self) -> str:
        """For notebooks: the verdict, everything that is wrong, and the table."""
        said = cards.verdict(self.converged, self.verdict)
        problems = map(cards.note, self.problems)
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
        return cards.card(said, *problems, *([cards.table(columns, rows)] if rows else []))


def diagnose(draws: xr.Dataset, edges: pd.DataFrame | None = None) -> Diagnostics:
    """Diagnostics of every quantity of ``draws``, a block per variable, and of edges whose quality is known.

    ``edges`` has R-hat, bulk and tail ESS by the names of edges.
    """
    least = MIN_ESS_PER_CHAIN * draws.sizes["chain"]
    if draws.sizes["draw"] < 4:
        return Diagnostics(pd.DataFrame(), ("fewer than 4 draws per chain: nothing can be said",))
    rows = {str(name): _row(_quality(draws[[name]])) for name in draws.data_vars}
    if edges is not None and len(edges):
        rows["W12"] = _row(edges)
    table = pd.DataFrame.from_dict(rows, orient="index")
    return Diagnostics(table, tuple(_problems(table, least)))


def _quality(block: xr.Dataset) -> pd.DataFrame:
    """R-hat, bulk and tail ESS of every quantity of a block, by its coordinates."""
    (name,) = block.data_vars
    rhat = arviz_bridge.rhat(block)[name]
    labels = [
        "~".join(str(rhat[dim].values[k]) for dim, k in zip(rhat.dims, where, strict=True) if dim in rhat.coords)
        for where in np.ndindex(rhat.shape)
    ]
    bulk, tail = (arviz_bridge.ess(block, method)[name].values.ravel() for method in ("bulk", "tail"))
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
