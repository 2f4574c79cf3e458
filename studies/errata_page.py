"""The page of errata: each slip, its correction, and the ranks that tell them apart."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from scipy import stats

from common import markdown, stamp, written
from errata import DRAWS, PRINTED, RECIPES, RIGHT, beside, p_values
from pictures import BLUE, LOOK, ORANGE, plt, save
from statistical.calibration import overall

Ranks = Mapping[str, Mapping[str, Any]]


def write(folder: Path, ranks: Ranks, sources: list[dict[str, Any]]) -> None:
    """The page beside the folder, picture and table in it."""
    with mpl.rc_context(LOOK):
        save(histograms(ranks), folder / "errata.png")
    found = [(name, functional, p) for name in ranks for functional, p in p_values(ranks[name]).items()]
    rows = [f'{name},"{functional}",{p:.3e}\n' for name, functional, p in found]
    written(folder / "errata.csv", "recipe,functional,p_value\n" + "".join(rows))
    written(folder.parent / "errata.md", page(ranks, sources))


def telling(ranks: Ranks, name: str) -> str:
    """The functional that a printed recipe gets most wrong."""
    return overall(p_values(ranks[name]))[1]


def histograms(ranks: Ranks) -> Any:
    """A row per slip: as printed, and as this package has it; grey is where 99 % of the bars belong."""
    size = (7.2, 1.75 * len(PRINTED))
    figure, axes = plt.subplots(len(PRINTED), 2, figsize=size, sharex=True, layout="constrained")
    for row, name in zip(axes, PRINTED, strict=True):
        functional = telling(ranks, name)
        _bars(row[0], ranks[name][functional], ORANGE, "//", PRINTED[name].label)
        _bars(row[1], ranks[beside(name)][functional], BLUE, "", "this package")
        top = max(axis.get_ylim()[1] for axis in row)
        for axis in row:
            axis.set_ylim(0, top)
        row[0].set_ylabel(functional)
    for axis in axes[-1]:
        axis.set_xlabel(f"rank of the true value among {DRAWS} draws")
        axis.set_xticks(range(DRAWS + 1))
    return figure


def _bars(axis: Any, ranks: Any, colour: str, hatch: str, title: str) -> None:
    counts = np.bincount(ranks, minlength=DRAWS + 1)
    axis.bar(range(DRAWS + 1), counts, color=colour, hatch=hatch, edgecolor="white", width=0.9)
    usual = stats.binom.ppf([0.005, 0.995], len(ranks), 1 / (DRAWS + 1))
    axis.axhspan(*usual, color="#888888", alpha=0.35, zorder=3)
    axis.set_title(f"{title}: p = {shown(stats.chisquare(counts).pvalue)}".replace("= below", "<"), fontsize=9)


def page(ranks: Ranks, sources: list[dict[str, Any]]) -> str:
    """Markdown."""
    return (
        "\n\n".join(
            [
                "<!-- Written by studies/errata.py. -->",
                "# Slips in the paper, corrected",
                INTRODUCTION,
                *(f"## {TITLES[name]}\n\n{SLIPS[name]}\n\n{evidence(ranks, name)}" for name in PRINTED),
                "## Smaller slips",
                MISPRINTS,
                "## The evidence side by side",
                about(ranks),
                "![Rank histograms, as printed and corrected](studies/errata.png)",
                markdown(
                    ("sampler", "p, q, n", "sweeps apart", "smallest p-value, corrected", "of"), table(ranks)
                ),
                "All p-values: `docs/studies/errata.csv`.",
                stamp(sources, "errata.py"),
            ]
        )
        + "\n"
    )


def evidence(ranks: Ranks, name: str) -> str:
    """In a sentence; what this package's sampler makes of the same problem, too."""
    (p, functional), (right, _) = (overall(p_values(ranks[key])) for key in (name, beside(name)))
    judged = "rejected" if p < 1e-4 else "**not rejected** at this number of replications"
    return (
        f"*Evidence.* Taken literally, the rest being right: {judged}, smallest corrected p-value {shown(p)} "
        f"(of `{functional}`). This package on the same problem: {shown(right)}."
    )


def shown(p: float) -> str:
    """A p-value in a digit or two; those that no double can hold have a bound."""
    return f"{p:.2g}" if p > 1e-300 else "below 1e-300"


def table(ranks: Ranks) -> list[tuple[str, ...]]:
    """A row per sampler."""
    rows = []
    for name in (*PRINTED, *RIGHT):
        p, functional = overall(p_values(ranks[name]))
        size = ", ".join(map(str, RECIPES[name].case.size))
        rows.append(
            (RECIPES[name].label, size, RECIPES[name].thin, shown(p), f"`{functional}`".replace("|", r"\|"))
        )
    return rows


def about(ranks: Ranks) -> str:
    """How the ranks were made."""
    replications, watched = len(next(iter(ranks["mean"].values()))), len(ranks["mean"])
    return ABOUT.format(replications=replications, draws=DRAWS, watched=watched)


ABOUT = """{replications} times parameters were drawn from the prior (Laplace, γ = 2) and data given them;
chains started elsewhere, and the true value was ranked among {draws} thinned draws. If the sampler is right,
all ranks are equally frequent, whatever is ranked (Talts et al. 2018). Watched are {watched} functions of
parameters and data; the picture shows, for every slip, the one that gives it away most clearly, and the same
one for this package. The grey band is where 99 % of the bars of a right sampler belong. P-values are those of
Pearson's chi-square test; they are corrected (Bonferroni) for the number of functions in the table and in the text
above, but not in the picture.

The control is Algorithm 1 with every step right. On these small problems it mixes slowly: its autocorrelation time
is up to 26 sweeps, that of this package's sweep 2.4, and for some data sets it is longer. So draws 30 sweeps
apart, as all literal recipes have them, are not quite independent, which alone can make a p-value small; the
control is therefore repeated with draws 120 sweeps apart. The effect of the slips is larger by many orders of
magnitude."""
TITLES = {
    "scales": "Algorithm 1: T for its reciprocal",
    "mean": "Theorem 1(1): a mean without the scales",
    "cholesky": "Theorem 2: a block Cholesky factor without Schur complements",
    "order": "Theorem 1(2) and Algorithm 1: two orders, two densities",
    "degrees": "The same slip in an implementation",
    "fraction": "The continued fraction, cut short",
}
SLIPS = {
    "scales": r"""*Printed:* $T_{ij} \sim \text{IG}(\sqrt{\gamma^2/w_{ij}^2}, \gamma^2)$.

*Should read:* $1/T_{ij}$ has that law, as the paper's equation for $t_{ij}^{-1}$ says.""",
    "mean": r"""*Printed:* the mean of $W_{12}$ given the rest is $-W_{11} S_{12} (S_{22}+I)^{-1}$, with
covariance $C^{-1}$. (The text calls $C$ the covariance; it is the precision.)

*Should read:* the mean is $-C^{-1} v$ with $v$ the rows of $S_{12}$, as the section after the theorem says. The
two agree only if $D = 0$, that is without the sparse prior.""",
    "cholesky": r"""*Printed:* sampling $W_{12}$ takes $O(pq^3)$ operations, because the Cholesky factors of the
blocks of $C$ differ by a factor only.

*Should read:* that holds for the first block. The second pivot is the Schur complement $u_{22}A + D_2 -
u_{21}^2 A (u_{11}A + D_1)^{-1} A$ with $A = S_{22} + I$, which is no multiple of $A$. A block factorisation
without it is a factor of another matrix. ([A draw in time linear in
q](mathematics.md#drawing-w-12-in-time-linear-in-q) is possible by other means.)""",
    "order": r"""*Printed:* $W_{11} \sim \text{MGIG}(\tfrac n2 + p,\, W_{12} A W_{21},\, S_{11} + I)$ in the
theorem, and $\text{MGIG}(-\tfrac12(n+p+1), \ldots)$ in the algorithm.

*Should read:* $p(W_{11} \mid W_{12}, S) \propto |W_{11}|^{n/2} \exp -\tfrac12 \text{tr}(B W_{11} + G
W_{11}^{-1})$ with $B = S_{11} + I$, $G = W_{12} A W_{21}$. With the density $|X|^{\lambda - (p+1)/2} \exp
-\tfrac12 \text{tr}(B X + G X^{-1})$, that is $\lambda = (n+p+1)/2$. Both printed forms are laws of
$W_{11}^{-1}$: the theorem's number belongs to the paper's density $|M|^{-\lambda-1}$, the algorithm's to the
other one. One's number with the other's density is wrong unless $p = 1$. Tried here: order $n/2 + p$ with the
density above.""",
    "degrees": r"""The one public implementation that we know of, the repository *BayesianMarkovBlanket* (2018),
has Wishart matrices with $n + 3p - 1$ degrees of freedom in the continued fraction. It is what one gets by
taking the printed order for that of yet another parametrisation.

*Should read:* $n + p + 1$, twice the order.""",
    "fraction": r"""*Printed:* "In practice, we observe the convergence of the random continued fraction within
few iterations."

*Should read:* how many it takes depends on the data; the error shrinks by a factor of about $R^4$ per step for a
query variable of which the others explain the share $R^2$. Begun anew in each sweep and cut after a fixed small
number of steps, the draw has another law. Begun at the current $W_{11}$, however, a single step leaves the right
law invariant, and the sampler is exact with any number of steps: that is what this package does. Tried here: three
steps from zero.""",
}
INTRODUCTION = """The idea of Kaufmann et al. (2016), that the blanket can be sampled without the rest of the
network, is sound, and this package is built on it. In a few places the text contradicts itself or claims too
much, and whoever implements the wrong one of two formulas samples from another distribution. This page states each
slip, its correction, and the evidence. It is meant for readers who implement the model; [the
mathematics](mathematics.md) derives the right forms. Whether the paper's *findings* hold is [another
question](studies/index.md#what-holds-of-the-papers-claims)."""
MISPRINTS = r"""These are misprints that no step of the sampler depends on.

- The matrix normal density (supplement) has its two exponents exchanged: for a $p \times n$ matrix with $\Sigma$
  of size $p \times p$ it is $|\Sigma|^{-n/2} |\Omega|^{-p/2}$. So in the proof of Lemma 2 the matrix normal part
  takes $|W_{11}|^{-q/2}$, and what is left is $|W_{11}|^{(n+q)/2}$, not $|W_{11}|^{(n+p)/2}$.
- The proof of Lemma 1 ends with $W_{11} S_{11\cdot2}$ in the exponent; $W_{11} S_{11}$, as a few lines before, is
  right.
- In the proof of Theorem 1(1), $W_{11}^{-1} \otimes (S_{22} + I)$ stands in the place of a covariance; it is the
  precision.
- The scales are called inverse-Gaussian. A priori they are exponential; given the weights, their *reciprocals* are
  inverse-Gaussian."""
