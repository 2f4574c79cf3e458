"""The tables that sweeps are timed on, and the problems made of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from markovblanket.contracts import Array, Prior, Problem, Solver
from markovblanket.fitting.data import from_mixed_table
from markovblanket.model.copula.latent import Copula
from markovblanket.model.scatter import from_columns
from markovblanket.priors import Horseshoe, Laplace, SpikeSlab
from markovblanket.simulation import simulate
from markovblanket.solvers import Dual
from markovblanket.tables.columns import Column
from markovblanket.tables.table import read_mixed

Size = tuple[int, int, int]  # p, q, n

PRIORS: dict[str, type[Laplace | Horseshoe | SpikeSlab]] = {
    "Laplace": Laplace,
    "Horseshoe": Horseshoe,
    "SpikeSlab": SpikeSlab,
}
CLINICAL = ["age", "sex", "T", "N", "M", "stage", "TP53_mut"]


def label(size: Size) -> str:
    """``(7, 312, 260)`` as ``"7, 312, 260"``: a key of the results."""
    return ", ".join(map(str, size))


def standardised(X: Array) -> Array:
    """Columns with mean 0 and mean square 1."""
    return (X - X.mean(axis=0)) / X.std(axis=0)


def factor_table(size: Size, seed: int = 0) -> Array:
    """Columns with ten common factors, every query variable depending on one of the others."""
    (p, q, n), rng = size, np.random.default_rng(seed)
    X = rng.standard_normal((n, p + q)) + rng.standard_normal((n, 10)) @ rng.standard_normal((10, p + q)) / 2
    X[:, :p] += X[:, p : 2 * p] if q >= p else 0
    return standardised(X)


def network_table(size: Size, seed: int = 3) -> Array:
    """A simulated network with hubs, as in the paper."""
    p, q, n = size
    return standardised(simulate(rows=n, query=p, rest=q, seed=seed).table.to_numpy())


TABLES = {"common factors": factor_table, "network": network_table}


def gaussian(X: Array, p: int, prior: Prior, solver: Solver | None = None) -> Problem:
    """The columns of X as they are, the first p of them the query."""
    return Problem(from_columns(X[:, :p], X[:, p:]), prior, solver or Dual())


def levels(x: Array) -> Array:
    """A column cut into four levels."""
    return np.searchsorted([-0.8, 0.0, 0.9], x).astype(float)


def with_levels(X: Array, p: int, latent: Iterable[int], prior: Prior) -> Problem:
    """The columns of X, some of them known by four levels only."""
    cut = set(latent)
    columns = [
        Column(k, "ordinal", levels(x), (0, 1, 2, 3)) if k in cut else Column(k, "continuous", x)
        for k, x in enumerate(X.T)
    ]
    return _copula(columns, p, prior)


def rest_with_gaps(X: Array, p: int, prior: Prior) -> Problem:
    """The columns of X, with 1 % of the cells of each column outside the query missing."""
    rng, n = np.random.default_rng(1), len(X)
    X = X.copy()
    for x in X.T[p:]:
        x[rng.choice(n, max(n // 100, 1), replace=False)] = np.nan
    return _copula([Column(k, "continuous", x) for k, x in enumerate(X.T)], p, prior)


def rest_with_levels(X: Array, p: int, prior: Prior) -> Problem:
    """The columns of X, those outside the query cut into three levels."""
    codes = np.searchsorted([-0.5, 0.5], X).astype(float)
    query = [Column(k, "continuous", x) for k, x in enumerate(X.T[:p])]
    others = [Column(k, "ordinal", x, (0, 1, 2)) for k, x in enumerate(codes.T[p:], start=p)]
    return _copula([*query, *others], p, prior)


def _copula(columns: list[Column], p: int, prior: Prior) -> Problem:
    """The problem of typed columns."""
    copula = Copula.of(columns, p)
    return Problem(copula.scatter(copula.start()), prior, Dual(), copula)


def clinical(folder: Path, prior: Prior) -> dict[str, Problem]:
    """The colorectal tumours of TCGA, if the folder has them: seven clinical variables, mixed and incomplete."""
    readers = {"TCGA, 314 genes": _genes, "TCGA, proteins": _proteins}
    return {name: _mixed(read(folder), prior) for name, read in readers.items()}


def has_clinical(folder: Path) -> bool:
    """Whether both tables are there."""
    return all((folder / name / "clinical.csv.gz").exists() for name in ("tcga_crc_rnaseq92", "tcga_crc_rppa"))


def _mixed(table: pd.DataFrame, prior: Prior) -> Problem:
    given = from_mixed_table(read_mixed(table, CLINICAL, {"age": "continuous"}), "auto")
    return Problem(given.scatter, prior, Dual(), given.latent)


def _genes(folder: Path) -> pd.DataFrame:
    """92 patients, genes of pathways in cancer: fewer rows than columns."""
    return _patients(folder / "tcga_crc_rnaseq92", "kegg_genes_log2cpm.csv.gz")


def _proteins(folder: Path) -> pd.DataFrame:
    """491 patients, proteins, with missing cells; those that are nearly all missing are left out."""
    table = _patients(folder / "tcga_crc_rppa", "rppa_proteins.csv.gz")
    return table.loc[:, table.isna().mean() < 0.5]


def _patients(folder: Path, measured: str) -> pd.DataFrame:
    query = pd.read_csv(folder / "clinical.csv.gz", index_col="patient")[CLINICAL]
    return query.join(pd.read_csv(folder / measured, index_col="patient"))
