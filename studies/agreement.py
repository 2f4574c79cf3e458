"""Do four default chains tell the same probabilities, and how many draws are theirs worth?

    python studies/agreement.py [FOLDER] [--tables hubs copies ecoli70 genes proteins transcriptome] [--sets 3]
        [--jobs 1] [--out agreement/]
    python studies/agreement.py --page [--out agreement/]

*hubs*: 10 query and 90 other variables, n = 1,000. *copies*: one neighbour with ten copies that correlate by
0.98, so that the edge is any one's. *ecoli70*: a published network with near-determined variables, n = 300. The
other tables are colorectal tumours, as in `colorectal`; FOLDER holds `tcga_crc_rnaseq92` and `tcga_crc_rppa`:
seven traits against 314 genes, against proteins, and against all 17,045 genes.

Of every pair that touches the query, the probability of an edge in each chain: the share of its draws that are
not zero, and the mean of conditional probabilities, which is what is reported. How far apart are the chains at
most? And of pairs with a probability between 0.05 and 0.95: effective draws per 100 of zero or not, worst and
median. One fit of each real table, `--sets` of the others; a result is kept for every fit. `--page` also shows the
fits of the earlier page that were not made again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import clinical
import colorectal
import markovblanket as mb
from common import DOCS, kept, markdown, one_thread, quietly, source, stamp, written
from designs import Hubs, Real, numbered
from markovblanket.fitting.task import MOST_APART

COPIES, CORRELATION = 10, 0.98
UNSURE = (0.05, 0.95)


@dataclass(frozen=True)
class Table:
    """A table, its query and the options of a fit."""

    table: pd.DataFrame
    query: list[str]
    options: dict[str, Any]


@dataclass(frozen=True)
class Source:
    """A reader's name of a table, how data set `number` is made, and what is wanted of it."""

    title: str
    make: Callable[[Path | None, int], Table]
    apart: float = np.nan
    effective: float = np.nan
    real: bool = False


def known(design: Any, number: int) -> Table:
    """Of a design of `fscore`."""
    data = design.data(number)
    return Table(data.table, data.query, {"margins": "gaussian"})


def copies(number: int, rows: int = 200, others: int = 40) -> Table:
    """One query variable has one of the copies as its neighbour, another has one of the independent columns."""
    rng = np.random.default_rng([number, COPIES])
    common = rng.standard_normal((rows, 1))
    alike = np.sqrt(CORRELATION) * common + np.sqrt(1 - CORRELATION) * rng.standard_normal((rows, COPIES))
    apart = rng.standard_normal((rows, others))
    Y = np.column_stack([alike[:, 0], apart[:, 0]]) / 2 + rng.standard_normal((rows, 2))
    names = ["Q1", "Q2", *(f"copy{k:02}" for k in range(1, COPIES + 1)), *numbered(others)]
    table = pd.DataFrame(np.hstack([Y, alike, apart]), columns=names)
    return Table(table, names[:2], {"margins": "gaussian"})


def tumours(name: str, folder: Path | None) -> Table:
    """As `colorectal` reads them."""
    if folder is None:
        raise FileNotFoundError(f"the table {name} is in a folder that was not given")
    table, kinds = colorectal.table_of(name, folder)
    return Table(table, list(clinical.CLINICAL), {"kinds": kinds})


TABLES: dict[str, Source] = {
    "hubs": Source("hubs: 10 + 90, n = 1,000", lambda _, k: known(Hubs(), k), effective=20),
    "copies": Source("ten copies at r = 0.98", lambda _, k: copies(k), 0.05),
    "ecoli70": Source("ecoli70, n = 300", lambda _, k: known(Real(), k), 0.05),
    "genes": Source("92 tumours, 314 genes", lambda folder, _: tumours("genes", folder), 0.05, 10, True),
    "proteins": Source("491 tumours, proteins", lambda folder, _: tumours("proteins", folder), 0.05, 10, True),
    "transcriptome": Source(
        "92 tumours, all genes", lambda folder, _: tumours("transcriptome", folder), 0.1, real=True
    ),
}


def by_chain(posterior: mb.Posterior) -> np.ndarray:
    """Share of draws that are not zero: (chain, query, variable), the query first; the diagonal is missing."""
    inner = (posterior.W11.values != 0).mean(axis=1)
    if posterior.streams is None:
        outer = (posterior.W12.values != 0).mean(axis=1)
    else:
        streams = posterior.streams["positive"] + posterior.streams["negative"]
        outer = streams.values / posterior.draws.sizes["draw"]
    shares = np.concatenate([inner, outer], axis=2)
    shares[:, *np.diag_indices(len(posterior.query))] = np.nan
    return shares


def averaged(posterior: mb.Posterior) -> np.ndarray | None:
    """Mean conditional probabilities in each chain, in the same order; None if the sampler has none."""
    if posterior.averages is None:
        return None
    shares = posterior.averages["inclusion"].values.copy()
    shares[:, *np.diag_indices(len(posterior.query))] = np.nan
    return shares


def apart(shares: np.ndarray, names: list[Any]) -> dict[str, Any]:
    """By how much chains differ at most, and in which pair."""
    range_ = np.nan_to_num(shares.max(axis=0) - shares.min(axis=0))
    i, k = np.unravel_index(range_.argmax(), range_.shape)
    return {"apart": float(range_[i, k]), "pair": f"{names[i]} ~ {names[k]}", "chains": shares[:, i, k].tolist()}


def effective(posterior: mb.Posterior, probability: np.ndarray) -> tuple[list[float], int]:
    """Effective draws per 100 of zero or not, of every unsure pair; and how many had no draws kept."""
    import arviz as az

    least, most = UNSURE
    within = np.triu((probability > least) & (probability < most), 1)
    names, found, unseen = posterior.names, [], 0
    for i, k in zip(*np.nonzero(within), strict=True):
        try:
            draws = posterior.edge_draws(names[i], names[k]).values
        except ValueError:
            unseen += 1
            continue
        found.append(100 * float(az.ess((draws != 0).astype(float), method="mean")) / draws.size)
    return found, unseen


def measured(name: str, folder: Path | None, number: int, jobs: int) -> dict[str, Any]:
    """A default fit, and how its chains agree."""
    made = TABLES[name].make(folder, number)
    begin, cpu = time.perf_counter(), time.process_time()
    posterior = quietly(mb.estimate, made.table, made.query, seed=number + 1, n_jobs=jobs, **made.options)
    seconds = {"wall": time.perf_counter() - begin, "cpu": time.process_time() - cpu if jobs == 1 else None}
    shares, means = by_chain(posterior), averaged(posterior)
    probability = (shares if means is None else means).mean(axis=0)
    sizes, unseen = effective(posterior, np.nan_to_num(probability))
    return {
        "table": name,
        "set": number,
        "rows": len(made.table),
        "variables": made.table.shape[1],
        "draws": [int(posterior.draws.sizes["chain"]), int(posterior.draws.sizes["draw"])],
        "seconds": seconds,
        "drawn": apart(shares, posterior.names),
        "reported": None if means is None else apart(means, posterior.names),
        "effective": sizes,
        "unseen": unseen,
        "problems": list(posterior.diagnostics().problems),
        "source": source(),
    }


def result(out: Path, name: str, folder: Path | None, number: int, jobs: int) -> dict[str, Any]:
    """From its file, or measured now."""
    return kept(out / name / f"{number}.json", lambda: measured(name, folder, number, jobs))


# ---------------------------------------------------------------------------------------------- of all results


def table(records: list[dict[str, Any]]) -> pd.DataFrame:
    """A row per fit."""
    rows = []
    for one in sorted(records, key=lambda one: (list(TABLES).index(one["table"]), one["set"])):
        reported = one["reported"] or one["drawn"]
        sizes = one["effective"]
        rows.append(
            {
                "table": one["table"],
                "set": one["set"],
                "reported_apart": reported["apart"],
                "pair": reported["pair"],
                "drawn_apart": one["drawn"]["apart"],
                "wanted_apart": TABLES[one["table"]].apart,
                "unsure": len(sizes) + one["unseen"],
                "worst": min(sizes, default=np.nan),
                "median": float(np.median(sizes)) if sizes else np.nan,
                "wanted_worst": TABLES[one["table"]].effective,
                "warned": bool(one["problems"]) or reported["apart"] > MOST_APART,
                "draws": "{} x {:,}".format(*one["draws"]),
                "seconds": one["seconds"]["wall"],
                "date": one["source"]["date"],
            }
        )
    return pd.DataFrame(rows)


def together(fits: pd.DataFrame, earlier: pd.DataFrame) -> pd.DataFrame:
    """New fits, and those of an earlier page which were not made again, in the order of the tables."""
    keys = ["table", "set"]
    again = pd.MultiIndex.from_frame(earlier[keys]).isin(pd.MultiIndex.from_frame(fits[keys]))
    both = pd.concat([fits, earlier[~again]], ignore_index=True)
    return both.iloc[np.lexsort([both["set"], both["table"].map(list(TABLES).index)])]


def page(fits: pd.DataFrame, sources: list[dict[str, Any]]) -> str:
    """Markdown."""
    rows = [
        (
            TABLES[row.table].title,
            row.set,
            f"{row.reported_apart:.3f} ({row.pair})",
            f"{row.drawn_apart:.3f}",
            told(row.wanted_apart, ".2f"),
            row.unsure,
            *(told(size) for size in (row.worst, row.median, row.wanted_worst)),
            "yes" if row.warned else "no",
            row.draws,
            f"{row.seconds:.0f}",
            row.date,
        )
        for row in fits.itertuples()
    ]
    parts = [
        "<!-- Written by studies/agreement.py --page. -->",
        "# Whether chains agree",
        ABOUT,
        markdown(HEAD, rows),
    ]
    return "\n\n".join([*parts, verdict(fits), stamp(sources, "agreement.py")]) + "\n"


def told(value: float, form: str = ".0f") -> str:
    """A number, or nothing."""
    return "" if pd.isna(value) else f"{value:{form}}"


def verdict(rows: pd.DataFrame) -> str:
    """What is not as wanted, and whether it was said."""
    said = []
    for row in rows[rows["reported_apart"] > rows["wanted_apart"]].itertuples():
        warned = "a warning says so" if row.warned else "**without a warning**"
        said.append(f"{TABLES[row.table].title}, set {row.set}: chains {row.reported_apart:.2f} apart, {warned}.")
    said += [
        f"{TABLES[row.table].title}, set {row.set}: {row.worst:.1f} effective draws per 100 at worst."
        for row in rows[rows["worst"] < rows["wanted_worst"]].itertuples()
    ]
    return " ".join(["Not as wanted:", *said]) if said else "All is as wanted."


HEAD = (
    "table",
    "set",
    "chains apart, at most",
    "by draws alone",
    "wanted",
    "unsure pairs",
    "worst",
    "median",
    "wanted",
)
HEAD += ("warned", "draws", "s", "date")
ABOUT = """Four default chains. *Chains apart*: the largest difference between any two chains of the probability
of any pair that touches the query, as it is reported (the mean of conditional probabilities) and by the draws
alone (the share that are not zero). *Unsure pairs* have a probability between 0.05 and 0.95; of these,
effective draws per 100 of zero or not, the worst and the median. *Warned* tells whether the fit warns that its
chains have not converged. The line below tells of the newest fits."""


def main() -> None:
    """Run what is asked for and print it, or make the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="where the tables of tumours are")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=None, metavar="TABLE")
    parser.add_argument("--sets", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("agreement"))
    parser.add_argument("--page", action="store_true", help="run nothing, write page and table")
    parser.add_argument("--docs", type=Path, default=DOCS, help="where --page writes")
    given = parser.parse_args()
    one_thread()
    tables = given.tables or [name for name, one in TABLES.items() if given.folder or not one.real]
    for name in [] if given.page else tables:
        for number in range(1 if TABLES[name].real else given.sets):
            found = result(given.out, name, given.folder, number, given.jobs)
            print(table([found]).round(3).to_string(index=False, header=number == 0), flush=True)
    records = [json.loads(path.read_text()) for path in sorted(given.out.glob("*/*.json"))]
    fits, before = table(records), given.docs / "agreement.csv"
    if given.page and before.exists():
        fits = together(fits, pd.read_csv(before))
    print(verdict(fits))
    if given.page:
        written(given.docs / "agreement.md", page(fits, [one["source"] for one in records]))
        written(before, fits.round(4).to_csv(index=False))


if __name__ == "__main__":
    main()
