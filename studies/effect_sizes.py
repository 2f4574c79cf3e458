"""Are partial correlations reported at their true size, with more variables than rows, too?

    python studies/effect_sizes.py [--others 50 300 2000] [--columns independent factors summed] [--out O]
    python studies/effect_sizes.py --page [--out O]

120 rows; three query variables, each with three neighbours of its own among the others, of partial correlations
0.5, 0.4 and 0.3 with random signs. *independent*: these nine edges are all that there are; the other columns
are independent but for them. *factors*: beside them, the other columns share ten factors that make up a quarter
of their variance. *summed*: the other columns are independent, and a query variable is the sum of its
neighbours and noise; so any two of its neighbours are joined, too, by edges of 0.12 to 0.2, which are too weak
to be found. Of every true edge of a query variable: its probability, whether the default rule selects it, its
partial correlation and 95 % interval if present. Reported over true partial correlation should be 1, and the
intervals should hold the truth 95 times in 100. A result is kept for every data set, so a run that was stopped
goes on where it was."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

import markovblanket as mb
from common import DOCS, kept, markdown, one_thread, quietly, source, stamp, written
from designs import numbered

ROWS, QUERY, SIZES = 120, 3, (0.5, 0.4, 0.3)
FACTORS, SHARED = 10, 0.25
SCHEDULE: dict[str, Any] = {}  # of `estimate`: its defaults
COLUMNS = ("independent", "factors", "summed")
HEAD = (
    "others",
    "columns",
    "sets",
    "selected",
    "false",
    "reported / true",
    "quartiles",
    "covered",
    "of all",
    "neighbours known",
    "CPU s",
)


def drawn(
    columns: str, others: int, number: int, rows: int = ROWS
) -> tuple[pd.DataFrame, list[str], pd.DataFrame]:
    """A table, its query, and the true edges: query, variable, true partial correlation."""
    rng = np.random.default_rng([number, others, COLUMNS.index(columns)])
    places = rng.permutation(others)[: QUERY * len(SIZES)].reshape(QUERY, len(SIZES))
    true = np.array(SIZES) * rng.choice([-1.0, 1.0], places.shape)
    Y, X = (summed if columns == "summed" else joined)(rng, rows, others, places, true, columns == "factors")
    query, names = [f"Q{i + 1}" for i in range(QUERY)], numbered(others)
    ends = [(query[i], names[places[i, k]], true[i, k]) for i in range(QUERY) for k in range(len(SIZES))]
    table = pd.DataFrame(np.hstack([Y, X]), columns=[*query, *names])
    return table, query, pd.DataFrame(ends, columns=["query", "variable", "true"])


def joined(
    rng: np.random.Generator, rows: int, others: int, places: np.ndarray, true: np.ndarray, factors: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a network: W11 = I, W22 = S^-1, W12 = -B, so that X given Y has mean S B'Y and covariance S.

    S is that of a factor model, ``L L' + u I``, or the identity; B has the partial correlations times the roots of
    the diagonal of S^-1, and Y has the precision matrix I - B S B'.
    """
    u = 1 - SHARED if factors else 1.0
    L = rng.standard_normal((others, FACTORS)) * np.sqrt((1 - u) / FACTORS)
    inner = np.linalg.inv(np.eye(FACTORS) + L.T @ L / u)
    diagonal = 1 / u - np.einsum("jk,kl,jl->j", L, inner, L) / u**2
    B = np.zeros((QUERY, others))
    B[np.arange(QUERY)[:, None], places] = true * np.sqrt(diagonal[places])
    BS = B @ L @ L.T + u * B
    Y = rng.multivariate_normal(np.zeros(QUERY), np.linalg.inv(np.eye(QUERY) - BS @ B.T), rows)
    noise = rng.standard_normal((rows, FACTORS)) @ L.T + np.sqrt(u) * rng.standard_normal((rows, others))
    return Y, Y @ BS + noise


def summed(
    rng: np.random.Generator, rows: int, others: int, places: np.ndarray, true: np.ndarray, factors: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Independent columns, and sums of some: with weight b the partial correlation is b / sqrt(1 + b^2)."""
    X = rng.standard_normal((rows, others))
    Y = np.einsum("nqk,qk->nq", X[:, places], true / np.sqrt(1 - true**2))
    return Y + rng.standard_normal((rows, QUERY)), X


def measured(columns: str, others: int, number: int) -> dict[str, Any]:
    """What is reported of every true edge, and how many false ones are selected."""
    table, query, truth = drawn(columns, others, number)
    begin = time.process_time()
    posterior = quietly(mb.estimate, table, query, margins="gaussian", seed=number, n_jobs=1, **SCHEDULE)
    chosen = posterior.edges()
    seconds = time.process_time() - begin
    names = ["query", "variable"]
    i, k = (np.array([posterior.names.index(name) for name in truth[end]]) for end in names)
    every = posterior.edges_at(i, k).set_index(names)
    found = truth.join(every[["probability", "partial_correlation", "lower", "upper"]], on=names)
    found["selected"] = pd.MultiIndex.from_frame(found[names]).isin(pd.MultiIndex.from_frame(chosen[names]))
    found["known"] = with_neighbours_known(table, truth)
    edges = json.loads(found.round(6).to_json(orient="records"))
    told = {"columns": columns, "others": others, "set": number, "seconds": seconds, "edges": edges}
    return told | {"false": len(chosen) - int(found["selected"].sum()), "source": source()}


def with_neighbours_known(table: pd.DataFrame, truth: pd.DataFrame) -> list[float]:
    """Sample partial correlations of the true edges, given the other true neighbours of the query variable."""
    found = []
    for query, own in truth.groupby("query", sort=False):
        W = np.linalg.inv(np.corrcoef(table[[query, *own["variable"]]].to_numpy().T))
        found += list(-W[0, 1:] / np.sqrt(W[0, 0] * np.diag(W)[1:]))
    return found


def result(folder: Path, columns: str, others: int, number: int) -> dict[str, Any]:
    """From its file, or measured now."""
    return kept(folder / f"{columns}-q{others}" / f"{number}.json", lambda: measured(columns, others, number))


# ---------------------------------------------------------------------------------------------- of all results


def listed(records: list[dict[str, Any]]) -> pd.DataFrame:
    """A row per true edge: with the ratio to the truth, and whether the interval holds it; missing without one."""
    keys = ("columns", "others", "set")
    edges = pd.DataFrame([{key: one[key] for key in keys} | edge for one in records for edge in one["edges"]])
    edges = edges.astype(dict.fromkeys(("partial_correlation", "lower", "upper"), float))
    inside = (edges["lower"] <= edges["true"]) & (edges["true"] <= edges["upper"])
    return edges.assign(
        ratio=edges["partial_correlation"] / edges["true"],
        covered=inside.where(edges["lower"].notna()).astype(float),
    )


def summary(records: list[dict[str, Any]]) -> pd.DataFrame:
    """A row per design: of the selected true edges the ratio to the truth, and how many intervals hold it."""
    edges, rows = listed(records), []
    for (others, columns), group in edges.groupby(["others", "columns"]):
        own = [one for one in records if (one["others"], one["columns"]) == (others, columns)]
        chosen = group[group["selected"]]
        lower, median, upper = chosen["ratio"].quantile([0.25, 0.5, 0.75])
        rows.append(
            {
                "others": others,
                "columns": columns,
                "sets": len(own),
                "selected": len(chosen),
                "true": len(group),
                "false": sum(one["false"] for one in own),
                "ratio": median,
                "ratio_lower": lower,
                "ratio_upper": upper,
                "covered": chosen["covered"].mean(),
                "covered_all": group["covered"].mean(),
                "known": (group["known"] / group["true"]).median(),
                "seconds": float(np.mean([one["seconds"] for one in own])),
            }
        )
    return pd.DataFrame(rows)


def by_size(records: list[dict[str, Any]]) -> pd.DataFrame:
    """A row per design and true size: how many are selected, their median ratio, intervals that hold the truth."""
    edges = listed(records).assign(size=lambda t: t["true"].abs())
    chosen = edges.assign(ratio=edges["ratio"].where(edges["selected"]))
    grouped = chosen.groupby(["others", "columns", "size"])
    table = grouped.agg(selected=("selected", "mean"), ratio=("ratio", "median"), covered=("covered", "mean"))
    return table.reset_index()


def page(records: list[dict[str, Any]]) -> str:
    """Markdown."""
    rows = [
        (
            f"{row.others:,}",
            row.columns,
            row.sets,
            f"{row.selected} of {row.true}",
            row.false,
            f"{row.ratio:.2f}",
            f"{row.ratio_lower:.2f} to {row.ratio_upper:.2f}",
            f"{row.covered:.2f}",
            f"{row.covered_all:.2f}",
            f"{row.known:.2f}",
            f"{row.seconds:.1f}",
        )
        for row in summary(records).itertuples()
    ]
    sizes = [
        (f"{row.others:,}", row.columns, row.size, f"{row.selected:.2f}", f"{row.ratio:.2f}", f"{row.covered:.2f}")
        for row in by_size(records)[["others", "columns", "size", "selected", "ratio", "covered"]].itertuples()
    ]
    _, _, setting, *_ = (__doc__ or "").split("\n\n")
    parts = ["<!-- Written by studies/effect_sizes.py --page. -->", "# Partial correlations at their true size"]
    parts += [setting, ABOUT, markdown(HEAD, rows), "By the true size:"]
    parts += [markdown(("others", "columns", "true", "selected", "reported / true", "covered"), sizes)]
    return "\n\n".join([*parts, stamp([one["source"] for one in records], "effect_sizes.py")]) + "\n"


ABOUT = """Below: how many of the true edges are selected, and how many edges that are not there; of the
selected true edges the median of reported over true partial correlation, its quartiles, and the share of
intervals that hold the truth; the same share of all true edges. An edge is selected where it looks strong, so
where many are missed, those that are found are on average reported too large; that is selection, not the prior.
Where true edges among the neighbours are not found, the partial correlations are those of a network without
them, and come out smaller. So do those of columns with factors among thousands of others: the few weak edges
per column that imitate what the factors explain imitate chance, too, so that the precision of a neighbour given
all others comes out too large; the intervals do not know that. *Neighbours known*: the median ratio of what
somebody would report who knew the neighbours of the query variable and computed from them alone, without
selection."""


def main() -> None:
    """Run what is asked for and print it; make the page if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--others", type=int, nargs="+", default=[50, 300, 2000], metavar="Q")
    parser.add_argument("--columns", nargs="+", default=list(COLUMNS), choices=COLUMNS)
    parser.add_argument("--sets", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("effect_sizes"))
    parser.add_argument("--page", action="store_true", help="run nothing, write page and table")
    parser.add_argument("--docs", type=Path, default=DOCS, help="where --page writes")
    given = parser.parse_args()
    if not given.page:
        one_thread()
        tasks = [(c, q, k) for k in range(given.sets) for q in given.others for c in given.columns]
        joblib.Parallel(n_jobs=given.jobs, verbose=1)(joblib.delayed(result)(given.out, *task) for task in tasks)
    records = [json.loads(path.read_text()) for path in sorted(given.out.glob("*/*.json"))]
    print(summary(records).round(3).to_string(index=False))
    print(by_size(records).round(3).to_string(index=False))
    if given.page:
        written(given.docs / "effect_sizes.md", page(records))
        written(given.docs / "effect_sizes.csv", listed(records).round(4).to_csv(index=False))


if __name__ == "__main__":
    main()
