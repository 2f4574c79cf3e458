"""The paper's real application, on public data: clinical traits of colorectal tumours against genes, proteins.

    python studies/colorectal.py FOLDER [--tables genes proteins transcriptome] [--jobs 2] [--out colorectal/]

FOLDER holds `tcga_crc_rnaseq92` and `tcga_crc_rppa`. These are other patients than the paper's. Every fit is
saved in the folder `--out` and not made again; pictures, tables and the page go to docs/studies. Known biology
serves as positive control: targets of p53 fall where its gene is mutated.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pandas as pd

import clinical
import markovblanket as mb
import transcriptome
from common import DOCS, markdown, one_thread, quietly, source, stamp, written

LIKELY, CANDIDATE = 0.1, 0.02
SCHEDULE = {"chains": 4, "warmup": 1000, "draws": "auto"}
TITLES = {
    "genes": "92 patients, 314 genes of pathways in cancer",
    "proteins": "491 patients, about 200 proteins and their states",
    "transcriptome": "92 patients, all 17,045 genes",
}
CONTROLS = {
    "genes": [("TP53_mut", gene) for gene in ("MDM2", "FAS", "BAX")],
    "proteins": [("TP53_mut", "p53"), ("TP53_mut", "Bax")],
    "transcriptome": [
        *(("TP53_mut", gene) for gene in ("MDM2", "FAS", "BAX")),
        *(("sex", gene) for gene in transcriptome.SEX_LINKED),
    ],
}
# Edges that the paper names in its own patients (some genes go by more than one name).
PAPERS = {
    "age": ("MTOR",),
    "sex": ("FGF21", "CTNNA1"),
    "T": ("EGLN1", "RELA", "HGF", "BCL2", "FADD"),
    "N": ("FGF9", "MDM2", "TRAF4"),
}


def table_of(name: str, folder: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The table, and kinds that are not to be guessed."""
    if name == "transcriptome":
        return transcriptome.read(folder / "tcga_crc_rnaseq92"), {}
    table, _, kinds, _ = {"genes": clinical.rnaseq92, "proteins": clinical.rppa}[name](folder)
    return table, kinds


def fitted(name: str, folder: Path, out: Path, jobs: int) -> mb.Posterior:
    """Of the folder if it is there, else made and saved."""
    path = out / name
    if not (path / "settings.json").exists():
        table, kinds = table_of(name, folder)
        options = {"kinds": kinds, "seed": 1, "n_jobs": jobs, "checkpoint": out / f"{name}-run", **SCHEDULE}
        posterior = quietly(mb.estimate, table, clinical.CLINICAL, **options)
        posterior.save(path)
    return mb.load(path)


def draw(posterior: mb.Posterior, path: Path) -> None:
    """An overview of all that is at all likely, and enlarged the neighbours of TP53's mutations."""
    from matplotlib import pyplot as plt

    from markovblanket import plots

    ax = plots.blanket(posterior, LIKELY, most=150)
    ax.figure.savefig(path.with_name(f"{path.stem}_overview.png"), dpi=90)
    near = posterior.edges(CANDIDATE)
    near = near[(near["query"] == "TP53_mut") | (near["variable"] == "TP53_mut")]
    ax = plots.network(["TP53_mut"], near.head(15))
    ax.figure.savefig(path.with_name(f"{path.stem}_tp53.png"), dpi=110)
    plt.close("all")


def section(name: str, posterior: mb.Posterior) -> list[str]:
    """Markdown of one table."""
    every = posterior.edges(all=True)
    likely = every[every["probability"] >= LIKELY].head(20)
    rows = [
        (
            e.query,
            e.variable,
            f"{e.probability:.2f}",
            f"{e.partial_correlation:+.2f}",
            f"{e.lower:+.2f} to {e.upper:+.2f}",
        )
        for e in likely.itertuples()
    ]
    head = ("trait", "variable", "probability", "partial correlation", "95 % interval, if present")
    apart = every[~every["variable"].isin(posterior.query)]
    chosen, diagnostics = len(posterior.edges()), posterior.diagnostics()
    verdict = "Converged" if diagnostics.converged else "Not converged: " + "; ".join(diagnostics.problems)
    return [
        f"## {TITLES[name]}",
        f"Selected by the default rule: {chosen} of {len(every):,} possible edges. "
        f"{posterior.settings['draws']:,} draws per chain. {verdict}.",
        f"![All edges with a probability of at least {LIKELY}](colorectal_{name}_overview.png)",
        f"*Overview: edges with a probability of at least {LIKELY}.*",
        markdown(head, rows),
        "Positive controls: " + "; ".join(control(apart, *pair) for pair in CONTROLS[name]) + ".",
        *named_by_the_paper(name, apart),
        *groups(posterior),
        f"![Candidates of TP53's mutations, enlarged](colorectal_{name}_tp53.png)",
        f"*Enlarged: candidates of TP53's mutations down to a probability of {CANDIDATE}, most of them unlikely.*",
    ]


def control(every: pd.DataFrame, query: str, variable: str) -> str:
    """What was found of a pair that biology knows."""
    own = every[every["query"] == query].sort_values("probability", ascending=False).reset_index()
    at = own.index[own["variable"] == variable]
    if not len(at):
        return f"{query} ~ {variable} was not measured"
    edge = own.loc[at[0]]
    place = f"rank {at[0] + 1} of {len(own):,}, partial correlation {edge['partial_correlation']:+.2f}"
    return f"{query} ~ {variable} {edge['probability']:.2f} ({place})"


def named_by_the_paper(name: str, every: pd.DataFrame) -> list[str]:
    """What was found here of the edges that the paper reports."""
    if name != "genes":
        return []
    ranked = {query: own.sort_values("probability", ascending=False) for query, own in every.groupby("query")}
    own = {query: table.set_index("variable")["probability"] for query, table in ranked.items()}
    rows = [
        (query, gene, f"{own[query][gene]:.3f}", 1 + own[query].index.get_loc(gene))
        for query, genes in PAPERS.items()
        for gene in genes
    ]
    count = every["variable"].nunique()
    told = PAPERS_EDGES.format(half=count // 2, count=count)
    return [told, markdown(("trait", "gene", "probability", "rank"), rows)]


def groups(posterior: mb.Posterior) -> list[str]:
    """Near-duplicates that share an edge."""
    found = posterior.groups()
    found = found[found["probability"] >= 0.2]
    lines = [
        f"- {row.query}: one of {', '.join(map(str, row.variables))}, {row.probability:.2f} "
        f"(the likeliest alone {row.likeliest:.2f})"
        for row in found.itertuples()
    ]
    return ["Groups of near-duplicates that share an edge:", "\n".join(lines)] if lines else []


ABOUT = """The paper's application is to 260 patients of Sheffer et al. (2009). These are other patients,
colorectal tumours of The Cancer Genome Atlas, with the same traits: age, sex, T, N, M, stage, and mutations of
TP53. So the analysis is repeated here, not its result. Traits enter as they are, ordered levels and missing cells
included; genes as normal scores of log counts. The prior and the rule are the defaults. Four chains, each of 1,000
sweeps of warm-up and of as many draws as it takes for them to agree, within bounds (`draws="auto"`). Partial
correlations and their intervals are those of an edge that is present.

With 92 patients an edge must be strong to be seen at all: a partial correlation of 0.4 or so. That T, N, M and
stage have hardly any neighbour does not mean that they have none; it means that 92 patients do not tell which.

In the pictures, the width of a line is the size of the partial correlation, relative to the largest of the same
picture. Edges among the traits are drawn as well. The tables tell how probable an edge is. How long such fits
take is told [elsewhere](../benchmarks.md#a-whole-transcriptome)."""


PAPERS_EDGES = """Edges that the paper names in its own patients, and what these 92 say about them. The rank is
among the {count} genes, so ranks around {half} on average are chance. So few patients cannot refute these edges;
they do not support them either."""


def page(sections: list[str], told: str) -> str:
    """Markdown."""
    title = ["<!-- Written by studies/colorectal.py. -->", "# Colorectal tumours", ABOUT]
    return "\n\n".join([*title, *sections, told]) + "\n"


def main() -> None:
    """Fit what is not fitted yet, draw, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tables", nargs="+", choices=TITLES, default=list(TITLES))
    parser.add_argument("--out", type=Path, default=Path("colorectal"))
    parser.add_argument("--docs", type=Path, default=DOCS)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    one_thread()
    sections = []
    for name in given.tables:
        posterior = fitted(name, given.folder, given.out, given.jobs)
        draw(posterior, given.docs / f"colorectal_{name}.png")
        sections += section(name, posterior)
        edges = posterior.edges(CANDIDATE).round(4)
        written(given.docs / f"colorectal_{name}.csv", edges.to_csv(index=False))
        print("\n".join(sections[-8:]), flush=True)
    written(given.docs / "colorectal.md", page(sections, stamp([source("matplotlib")], "colorectal.py")))


if __name__ == "__main__":
    main()
