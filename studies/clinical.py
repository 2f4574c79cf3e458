"""Real clinical tables, mixed and incomplete, from the folder they were downloaded to.

    python studies/clinical.py FOLDER [rppa rnaseq92 allelotype] [--prior laplace] [--out clinical/]

- `rppa`: TCGA colorectal tumours, 491 patients, seven clinical query variables against about 200 proteins, cells
  missing in both blocks (four proteins that are 94 % missing are left out);
- `rnaseq92`: 92 patients, the same query against 314 genes of pathways in cancer: fewer rows than columns;
- `allelotype`: 117 patients, the same query against 33 loci, nearly half of all cells missing.

Prints what was understood, the surest edges, known biology, convergence and time.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import pandas as pd

import markovblanket as mb

CLINICAL = ["age", "sex", "T", "N", "M", "stage", "TP53_mut"]
KINDS = {"age": "continuous"}


def rppa(folder):
    """Proteins, and the controls: p53 accumulates where its gene is mutated, Bax falls."""
    folder = folder / "tcga_crc_rppa"
    clinical = pd.read_csv(folder / "clinical.csv.gz", index_col="patient")[CLINICAL]
    proteins = pd.read_csv(folder / "rppa_proteins.csv.gz", index_col="patient")
    proteins = proteins.loc[:, proteins.isna().mean() < 0.5]
    return clinical.join(proteins), CLINICAL, KINDS, [("TP53_mut", "p53"), ("TP53_mut", "Bax")]


def rnaseq92(folder):
    """Genes, and the controls: targets of p53 that fall where its gene is mutated."""
    folder = folder / "tcga_crc_rnaseq92"
    clinical = pd.read_csv(folder / "clinical.csv.gz", index_col="patient")[CLINICAL]
    genes = pd.read_csv(folder / "kegg_genes_log2cpm.csv.gz", index_col="patient")
    return clinical.join(genes), CLINICAL, KINDS, [("TP53_mut", gene) for gene in ("MDM2", "BAX", "FAS")]


def allelotype(folder):
    """Allelic losses; no control is known."""
    table = pd.read_csv(folder / "colon_allelotype_micro_censure" / "data.csv.gz").drop(columns=["pid", "Siege"])
    query = ["Agediag", "sexe", "T", "N", "M", "STADE", "TP53"]
    return table.drop(columns=["event", "time"]), query, {}, []


TABLES = {"rppa": rppa, "rnaseq92": rnaseq92, "allelotype": allelotype}


def study(name, folder, out, **options):
    """Fit one table; print and write what it says."""
    table, query, kinds, controls = TABLES[name](folder)
    missing = table.isna().to_numpy().mean()
    p, (n, columns) = len(query), table.shape
    print(f"\n{name}: {n} rows, {p} + {columns - p} columns, {missing:.1%} missing")
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.ConvergenceWarning)
        posterior = mb.estimate(table, query, kinds=kinds, seed=1, progress=False, **options)
    seconds = time.perf_counter() - begin
    for row in posterior.observed.table.describe()[: len(query)]:
        print(f"  {row['name']}: {row['kind']}, {row['missing']} missing")
    edges, diagnostics = posterior.edges(), posterior.diagnostics()
    print(edges.head(12).round(3).to_string(index=False))
    print(f"{len(edges)} edges, worst R-hat among them {edges['rhat'].max():.3f}; {seconds:.0f} s")
    every = posterior.edges(all=True, detail=True)
    for pair in controls:
        ranked = every[every["query"] == pair[0]].reset_index(drop=True)
        row = ranked.index[ranked["variable"] == pair[1]][0]
        found = ranked.loc[row]
        print(
            f"  {pair[0]} ~ {pair[1]}: rank {row + 1} of {len(ranked)}, P(sign) {found['sign_probability']:.3f}, "
            f"partial correlation {found['partial_correlation']:+.3f}, R-hat {found['rhat']:.3f}"
        )
    print("  converged" if diagnostics.converged else "  not converged: " + "; ".join(diagnostics.problems[:6]))
    edges.to_csv(out / f"{name}_edges.csv", index=False)
    posterior.check(seed=1).to_csv(out / f"{name}_checks.csv", index=False)
    cells = posterior.imputed(draws=50, seed=1).cells()
    cells.to_csv(out / f"{name}_imputed.csv")


def main():
    """The tables asked for, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("tables", nargs="*", default=list(TABLES), metavar="TABLE")
    parser.add_argument("--prior", default="laplace")
    parser.add_argument("--warmup", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=Path("clinical"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for name in given.tables:
        study(name, given.folder, given.out, prior=given.prior, warmup=given.warmup, draws=given.draws)


if __name__ == "__main__":
    main()
