"""Gaussian tables whose network is known: the paper's hubs, another program's simulator, published networks.

A design has a name, a title, and a function of a number that returns the data set of this number as `Known`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import util
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
from scipy import linalg

import markovblanket as mb
from common import HERE


class AbsentError(Exception):
    """What a method or a design needs is not installed."""


@dataclass(frozen=True, eq=False)
class Known:
    """A table, query columns first, and the precision matrix it was drawn from, zero where there is no edge."""

    table: pd.DataFrame
    query: list[str]
    W: np.ndarray

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions of every pair that touches the query: each query variable with all columns to the right."""
        i, j = np.triu_indices(len(self.W), 1)
        return i[i < len(self.query)], j[i < len(self.query)]

    @property
    def pairs(self) -> pd.DataFrame:
        """The same by name, with the truth: query, variable, partial_correlation, edge."""
        i, j = self.ends
        names, scale = np.array(self.table.columns, dtype=object), np.sqrt(np.diag(self.W))
        size = 0 - self.W[i, j] / (scale[i] * scale[j])  # 0 minus, so that absent edges have 0.0 and not -0.0
        edge = self.W[i, j] != 0
        return pd.DataFrame({"query": names[i], "variable": names[j], "partial_correlation": size, "edge": edge})


class Design(Protocol):
    """What a comparison needs of a design."""

    @property
    def name(self) -> str:
        """A folder's."""

    @property
    def title(self) -> str:
        """A reader's."""

    def data(self, number: int) -> Known:
        """Data set `number`."""


@dataclass(frozen=True)
class Hubs:
    """The paper's artificial networks, by `mb.simulate`."""

    rows: int = 1000
    density: float = 0.05
    query: int = 10
    rest: int = 90

    @property
    def name(self) -> str:
        """A folder's."""
        return f"hubs-p{self.query}-q{self.rest}-n{self.rows}-density{self.density:g}"

    @property
    def title(self) -> str:
        """A reader's."""
        return f"n = {self.rows:,}, density {self.density:g}"

    def simulated(self, number: int) -> Any:
        """Data set `number` with all that the simulation tells; with more rows, it is of the same network."""
        return mb.simulate(self.rows, self.query, self.rest, density=self.density, seed=number)

    def data(self, number: int) -> Known:
        """The same, as `Known`."""
        found = self.simulated(number)
        return Known(found.table, list(found.query), found.W)


@dataclass(frozen=True)
class Whole(Hubs):
    """The same, with every variable in the query: wanted is the whole network."""

    @property
    def name(self) -> str:
        """A folder's."""
        return f"whole-d{self.query + self.rest}-n{self.rows}-density{self.density:g}"

    def data(self, number: int) -> Known:
        """Data set `number`."""
        found = self.simulated(number)
        return Known(found.table, list(found.table.columns), found.W)


@dataclass(frozen=True)
class GWishart:
    """The simulator of BDgraph with its defaults: weights of a G-Wishart law on a graph of some kind."""

    graph: str
    rows: int
    variables: int = 60
    query: int = 8

    @property
    def name(self) -> str:
        """A folder's."""
        return f"bdgraph-{self.graph}-p{self.query}-q{self.variables - self.query}-n{self.rows}"

    @property
    def title(self) -> str:
        """A reader's."""
        return f"BDgraph's {self.graph}, n = {self.rows:,}"

    def data(self, number: int) -> Known:
        """By R; with more rows, it is of the same network. The number also draws the query."""
        require_r("BDgraph")
        with tempfile.TemporaryDirectory() as out:
            words = ["Rscript", HERE / "gwishart.R", self.graph, self.variables, self.rows, number, out]
            subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True)
            table, W = (np.loadtxt(Path(out, f"{name}.csv"), delimiter=",") for name in ("table", "W"))
        return queried(table, W, numbered(self.variables), self.query, number)


@dataclass(frozen=True)
class Real:
    """A published Gaussian Bayesian network, as pgmpy ships it: the moral graph is the truth."""

    network: str = "ecoli70"
    rows: int = 300
    query: int = 8

    @property
    def name(self) -> str:
        """A folder's."""
        return f"{self.network}-p{self.query}-n{self.rows}"

    @property
    def title(self) -> str:
        """A reader's."""
        return f"{self.network}, n = {self.rows:,}"

    def data(self, number: int) -> Known:
        """Rows and the query are drawn by the number."""
        names, W = published(self.network)
        rng = np.random.default_rng([number, self.rows])
        L, Z = linalg.cholesky(W, lower=True), rng.standard_normal((self.rows, len(W)))
        return queried(linalg.solve_triangular(L, Z.T, lower=True, trans="T").T, W, names, self.query, number)


DESIGNS: dict[str, list[Design]] = {
    "hubs": [Hubs(1000, 0.02), Hubs(1000, 0.05), Hubs(1000, 0.15), Hubs(200, 0.05)],
    "bdgraph": [GWishart(g, n) for n in (100, 300, 1000) for g in ("random", "cluster", "scale-free", "hub")],
    "real": [Real()],
    "whole": [Whole(1000), Whole(300)],
}


def queried(table: np.ndarray, W: np.ndarray, names: Sequence[str], query: int, number: int) -> Known:
    """With a query drawn at random by the data set's number, and its columns first."""
    chosen = np.sort(np.random.default_rng([number, len(names)]).choice(len(names), query, replace=False))
    order = [*chosen, *np.setdiff1d(np.arange(len(names)), chosen)]
    named = pd.DataFrame(table, columns=list(names)).iloc[:, order]
    return Known(named, list(named.columns[:query]), W[np.ix_(order, order)])


@cache
def published(network: str) -> tuple[list[str], np.ndarray]:
    """Names and precision matrix, (I - B)' diag(1/v) (I - B) with x = B x + e and e independent of variances v."""
    package = util.find_spec("pgmpy")  # only its file is needed: it is not imported
    if package is None or package.origin is None:
        raise AbsentError("pgmpy is not installed")
    told = json.loads(
        Path(package.origin).with_name("utils").joinpath("example_models", f"{network}.json").read_text()
    )
    names, cpds = told["nodes"], told["cpds"]
    I_B, v = np.eye(len(names)), np.array([cpds[name]["variance"][0] for name in names])
    for child, name in enumerate(names):
        for parent, weight in cpds[name]["coefficients"].items():
            if parent != "(Intercept)":
                I_B[child, names.index(parent)] = -weight[0]
    W = I_B.T @ (I_B / v[:, None])
    return names, (W + W.T) / 2


@cache
def r_has(package: str) -> bool:
    """Whether R and a package of it are there."""
    if shutil.which("Rscript") is None:
        return False
    return subprocess.run(["Rscript", "-e", f"library({package})"], capture_output=True).returncode == 0


def require_r(package: str) -> None:
    """Or say that it is absent."""
    if not r_has(package):
        raise AbsentError(f"Rscript with {package} is not installed")


def numbered(count: int) -> list[str]:
    """Names that sort."""
    return [f"V{k:0{len(str(count))}}" for k in range(1, count + 1)]
