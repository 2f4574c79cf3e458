"""What the figures should be: every target with the section that measures it, and whether it is met."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

Results = Mapping[str, Any]
Figure = Callable[[Results], float]
Size = tuple[int, int, int]

CLINICAL = ("TCGA, 314 genes", "TCGA, proteins")
SMALL, PAPER, LARGE = (7, 312, 260), (10, 90, 1000), (7, 13400, 260)
ENTRIES = ("W11", "W12", "inclusion of an edge")


@dataclass(frozen=True)
class Target:
    """``figure`` of a section's results is to be at most (``<=``) or at least (``>=``) the limit."""

    name: str
    section: str
    sign: str
    limit: float
    figure: Figure

    def judged(self, results: Mapping[str, Results]) -> dict[str, Any]:
        """With its figure, or None where it was not measured."""
        figure: float | None = None
        with suppress(KeyError, StopIteration, ValueError):
            figure = float(self.figure(results[self.section]))
        met = None if figure is None else figure <= self.limit if self.sign == "<=" else figure >= self.limit
        told = {"target": self.name, "section": self.section, "sign": self.sign, "limit": self.limit}
        return {**told, "figure": figure, "met": met}


def entry(name: str, prior: str | None = None, size: Size | None = None, **match: Any) -> Figure:
    """An entry of the first row that matches."""
    match |= dict(zip("pqn", size, strict=True)) if size else {}
    match |= {"prior": prior} if prior else {}

    def figure(results: Results) -> float:
        return next(row for row in results["rows"] if match.items() <= row.items())[name]

    return figure


def slope(prior: str) -> Figure:
    """Up to q = 50,000."""

    def figure(results: Results) -> float:
        entry("ms", prior, q=50000)(results)
        return results["slopes"][prior]

    return figure


def worst_hyper(table: str, prior: str) -> Figure:
    """The smallest effective size per 100 sweeps of a hyperparameter."""

    def figure(results: Results) -> float:
        return min(
            row["bulk_per_100"]
            for row in results["rows"]
            if (row["table"], row["prior"]) == (table, prior) and row["quantity"] not in ENTRIES
        )

    return figure


SCALES = ("Laplace", "Horseshoe", "SpikeSlab")
SWEEPS = [
    Target("log-log slope of a sweep against q, Laplace", "q", "<=", 1.05, slope("Laplace")),
    Target("log-log slope of a sweep against q, SpikeSlab", "q", "<=", 1.05, slope("SpikeSlab")),
    Target(
        "Laplace sweep over its bare products, q = 13,400",
        "q",
        "<=",
        2.5,
        entry("over_iterations", "Laplace", LARGE),
    ),
    Target(
        "SpikeSlab sweep over one bare product, q = 13,400",
        "q",
        "<=",
        4,
        entry("over_product", "SpikeSlab", LARGE),
    ),
    Target("SpikeSlab sweeps per second", "profile", ">=", 1000, entry("per_second", "SpikeSlab", SMALL)),
    Target(
        "memory of a summary over its limit, q = 50,000",
        "memory",
        "<=",
        1,
        entry("ratio", q=50000, margins="auto"),
    ),
    Target("two chains on two cores, q = 312", "cores", ">=", 1.8, entry("ratio", size=SMALL)),
    Target("two chains on two cores, q = 13,400", "cores", ">=", 1.8, entry("ratio", size=LARGE)),
]
LATENT = [
    *(
        Target(f"log-log slope of a sweep against moving columns, {kind}", "latent-rest", "<=", 1.1, figure)
        for kind in ("1 % missing", "three levels")
        for figure in [lambda results, kind=kind: results["slopes"][kind]]
    ),
    *(
        Target(
            f"sweep of 1,600 moving columns over a complete one, {kind}",
            "latent-rest",
            "<=",
            5,
            entry("over_complete", kind=kind, q=1600),
        )
        for kind in ("1 % missing", "three levels")
    ),
]
PEERS = [
    *(
        Target(
            f"Laplace sweeps against {peer}, {table}", section, ">=", limit, entry(name, size=SMALL, table=table)
        )
        for section, peer, limit, name in (
            ("dense", "the dense solver", 25, "sweep"),
            ("network", "the Bayesian graphical lasso", 60, "ratio"),
        )
        for table in ("common factors", "network")
    ),
    Target("effective draws per second against NUTS, q = 312", "nuts", ">=", 20, entry("ratio", size=SMALL)),
    Target("effective draws per second against NUTS, q = 90", "nuts", ">=", 10, entry("ratio", size=PAPER)),
    *(
        Target(f"{prior} sweeps with a latent query against BDgraph", "bdgraph", ">=", 50, figure)
        for prior in ("Laplace", "SpikeSlab")
        for figure in [entry("ratio", prior, SMALL, algorithm="bdmcmc")]
    ),
]
MIXING = [
    Target(f"{table}, {prior}: effective draws per 100 of {name}", "tumours", ">=", limit, figure)
    for table in CLINICAL
    for prior in SCALES
    for name, limit, figure in (
        ("the worst hyperparameter", 5, worst_hyper(table, prior)),
        ("the worst entry of W12", 10, entry("bulk_per_100", prior, table=table, quantity="W12")),
    )
]
TARGETS = [*SWEEPS, *LATENT, *PEERS, *MIXING]


def judged(results: Mapping[str, Results]) -> list[dict[str, Any]]:
    """All of them."""
    return [target.judged(results) for target in TARGETS]


def described(target: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Name, figure, limit and verdict, as they are printed."""
    figure = "" if target["figure"] is None else f"{target['figure']:.3g}"
    verdict = {None: "not measured", True: "met", False: "missed"}[target["met"]]
    return target["target"], figure, f"{target['sign']} {target['limit']:g}", verdict
