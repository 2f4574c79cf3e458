"""A whole transcriptome against seven clinical traits: 92 colorectal tumours, all 17,045 genes.

    python studies/transcriptome.py FOLDER [--prior spike-slab] [--warmup 1000] [--draws 1000] [--thin 1] [--out O]

FOLDER holds `tcga_crc_rnaseq92`. Counts become log2 counts per million; traits enter as they are, mixed and with
gaps. Prints time, memory, the surest edges, groups of near-duplicates, how well the chains agree about the
inclusion of every edge, and known biology: TP53 mutations with MDM2, sex with genes of the sex chromosomes.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import markovblanket as mb

CLINICAL = ["age", "sex", "T", "N", "M", "stage", "TP53_mut"]
SEX_LINKED = ["EIF1AY", "TSIX", "XIST", "USP9Y", "TXLNGY", "NLGN4Y", "TMSB4Y", "UTY", "KDM5D", "DDX3Y", "RPS4Y1"]


def read(folder):
    """Clinical traits and the logarithms of counts per million."""
    clinical = pd.read_csv(folder / "clinical.csv.gz", index_col="patient")[CLINICAL]
    counts = pd.read_parquet(folder / "rnaseq_counts_genes_x_patients.parquet").set_index("gene").T
    genes = np.log2(1e6 * counts.div(counts.sum(axis=1), axis=0) + 1).set_axis(clinical.index)
    return clinical.join(genes)


def inclusion_by_chain(posterior):
    """Share of draws that are not zero: (chain, query, variable)."""
    if posterior.streams is None:
        return (posterior.W12.values != 0).mean(axis=1)
    nonzero = posterior.streams["positive"] + posterior.streams["negative"]
    return nonzero.values / posterior.draws.sizes["draw"]


def report(posterior, seconds, out):
    """Print and write what was found."""
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{posterior!r}\n{seconds:.0f} s, {memory:.1f} GiB at most in this process")
    every = posterior.edges(all=True)
    print(every.head(15).round(3).to_string(index=False))
    seen = every["rhat"].notna()
    print(f"R-hat of {seen.sum():,} edges that were ever included: worst {every['rhat'].max():.3f}")
    sure = every["probability"].isna() & (every.get("sign_probability", 0.0) > 0.9)
    likely = every[(every["probability"] > 0.05) | sure]
    print(
        f"  of {len(likely)} likelier ones: worst {likely['rhat'].max():.3f}, least ESS {likely['ess'].min():.0f}"
    )
    if every["probability"].notna().all():
        by_chain = inclusion_by_chain(posterior)
        apart = by_chain.max(axis=0) - by_chain.min(axis=0)
        i, j = np.unravel_index(apart.argmax(), apart.shape)
        print(
            f"inclusion in chains: at most {apart.max():.3f} apart ({posterior.query[i]}~{posterior.variables[j]})"
        )
        pairs = np.corrcoef(by_chain.reshape(len(by_chain), -1))[np.triu_indices(len(by_chain), 1)]
        print(f"  correlation between chains {pairs.min():.3f} to {pairs.max():.3f}")
        found = posterior.groups()
        print(found[found["probability"] > 0.2].round(3).to_string(index=False))
        found.to_csv(out / "groups.csv", index=False)
    for query, genes in {"TP53_mut": ["MDM2"], "sex": SEX_LINKED}.items():
        ranked = every.loc[every["query"] == query, "variable"].tolist()
        print(
            f"{query}: " + ", ".join(f"{gene} {ranked.index(gene) + 1}" for gene in genes if gene in ranked),
            "(ranks)",
        )
    diagnostics = posterior.diagnostics()
    print(diagnostics)
    every.head(1000).to_csv(out / "edges.csv", index=False)


def main():
    """Fit, and say what it says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--prior", default="spike-slab")
    for name, value in {"chains": 4, "warmup": 1000, "draws": 1000, "thin": 1, "seed": 1, "n_jobs": 2}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--out", type=Path, default=Path("transcriptome"))
    given = vars(parser.parse_args())
    folder, out = given.pop("folder"), given.pop("out")
    out.mkdir(parents=True, exist_ok=True)
    table = read(folder / "tcga_crc_rnaseq92")
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.ConvergenceWarning)
        posterior = mb.estimate(table, CLINICAL, kinds={"age": "continuous"}, **given)
    report(posterior, time.perf_counter() - begin, out)


if __name__ == "__main__":
    main()
