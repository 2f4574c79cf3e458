"""The blanket of every protein: a scan of a real table, and how much of it is found again in other patients.

    python studies/proteins.py FOLDER [--jobs 1] [--out proteins/]

FOLDER holds `tcga_crc_rppa`: colorectal tumours of 491 patients, 196 proteins and their states (12 more were not
measured in all of them, and are left out). Three scans: of all patients, and of two halves that have no patient in
common. What one half is sure of should be found in the other. Known biology serves as a positive control: a
protein and its phosphorylated form should be neighbours.

Every fit is kept in the folder `--out`, and a scan that was stopped goes on from there. The page, its picture and
its tables go to docs/studies.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import clinical
import markovblanket as mb
from common import DOCS, kept, markdown, one_thread, source, stamp, unwarned, written

BINS = [0.05, 0.2, 0.5, 0.8, 0.95, 1.0]
PARTS = {"all": "all patients", "first": "one half", "second": "the other half"}
Pair = frozenset[str]


def tables(folder: Path) -> dict[str, pd.DataFrame]:
    """All patients, and two halves of them."""
    whole, traits, *_ = clinical.rppa(folder)
    whole = whole.drop(columns=traits).dropna(axis=1)
    first = np.random.default_rng(1).permutation(len(whole)) < len(whole) // 2
    return {"all": whole, "first": whole[first], "second": whole[~first]}


def scanned(name: str, table: pd.DataFrame, out: Path, jobs: int) -> mb.Scan:
    """The scan of a table, whose fits are kept; and how long it took, unless it goes on from an earlier one."""
    fresh, start = not (out / name).exists(), time.perf_counter()
    found: mb.Scan = unwarned(mb.scan, table, seed=1, n_jobs=jobs, out=out / name)
    seconds = time.perf_counter() - start if fresh else None
    kept(out / f"{name}.json", lambda: {"seconds": seconds, "jobs": jobs, "rows": len(table), "source": source()})
    return found


# What it says -------------------------------------------------------------------------------------------


def pairs(scan: mb.Scan) -> pd.DataFrame:
    """Of every pair that is at all likely: the larger of the probabilities from its ends, and the sign there."""
    seen = scan.seen.sort_values("inclusion", ascending=False, kind="stable")
    ends = [frozenset(pair) for pair in zip(seen["query"], seen["variable"], strict=True)]
    surest = seen.assign(pair=ends).drop_duplicates("pair").set_index("pair")
    return pd.DataFrame({"inclusion": surest["inclusion"], "sign": np.sign(surest["weight"])})


def replicated(one: mb.Scan, other: mb.Scan) -> pd.DataFrame:
    """By the probability that one half gives: how many pairs, and what the other half says of them."""
    here, there = pairs(one), pairs(other)
    again = there.reindex(here.index)
    likely = again["inclusion"].fillna(0.0) >= 0.5
    frame = pd.DataFrame({"inclusion": here["inclusion"], "again": likely})
    frame["same sign"] = np.where(likely, here["sign"] == again["sign"], np.nan)
    return frame


def replication_table(one: mb.Scan, other: mb.Scan) -> pd.DataFrame:
    """Both ways, by bins of the probability; the last row are all pairs that were hardly likely or not at all."""
    both = pd.concat([replicated(one, other), replicated(other, one)])
    bins = pd.cut(both["inclusion"], BINS, include_lowest=True)
    grouped = both.groupby(bins, observed=False)
    shown = pd.DataFrame({"pairs": grouped.size(), "mean probability": grouped["inclusion"].mean()})
    shown["likely in the other half, too"] = grouped["again"].mean()
    shown["then of the same sign"] = grouped["same sign"].mean()
    shown.index = [f"{part.left:.2f} to {part.right:.2f}" for part in shown.index]
    return pd.concat([shown, rare(one, other, both)]).rename_axis("probability in one half").reset_index()


def rare(one: mb.Scan, other: mb.Scan, both: pd.DataFrame) -> pd.DataFrame:
    """Of the pairs that one half finds unlikely, the share that the other finds likely."""
    count = len(one.variables) * (len(one.variables) - 1) - len(both)
    likely = sum((pairs(half)["inclusion"] >= 0.5).sum() for half in (one, other)) - both["again"].sum()
    told = {"pairs": count, "likely in the other half, too": likely / count}
    return pd.DataFrame([told], index=["below 0.05"])


def forms(names: tuple[str, ...]) -> list[Pair]:
    """Pairs of columns that are one protein in two states, by their names: such as Akt and Akt_pS473."""
    base = {name: re.split(r"_p[STY]\d", name)[0] for name in names}
    return [frozenset(pair) for pair in combinations(names, 2) if base[pair[0]] == base[pair[1]]]


def controls(scan: mb.Scan) -> dict[str, Any]:
    """How many of the pairs that biology knows were found, and how many of all pairs."""
    edges, known = {rule: found_pairs(scan, rule) for rule in ("or", "and")}, forms(scan.variables)
    every = len(scan.variables) * (len(scan.variables) - 1) // 2
    return {
        "known": len(known),
        "every": every,
        **{rule: (len(found & set(known)), len(found)) for rule, found in edges.items()},
        "missed": sorted(" ~ ".join(sorted(pair)) for pair in set(known) - edges["or"]),
    }


def found_pairs(scan: mb.Scan, rule: str) -> set[Pair]:
    """The selected edges."""
    edges = scan.edges(rule)
    return {frozenset(pair) for pair in zip(edges["query"], edges["variable"], strict=True)}


# The page -----------------------------------------------------------------------------------------------


def scan_row(name: str, scan: mb.Scan, told: dict[str, Any]) -> tuple[Any, ...]:
    """A line of the first table."""
    bad = int((~scan.fits["converged"]).sum())
    took = "stopped and gone on" if told["seconds"] is None else f"{told['seconds'] / 60:.1f}"
    counts = len(scan.edges()), len(scan.edges("and"))
    return PARTS[name], told["rows"], len(scan.fits), *counts, bad, f"{scan.fits['r2'].median():.2f}", took


def control_words(found: dict[str, Any]) -> str:
    """The positive controls in a paragraph."""
    known, every, (hits, edges), (both, sure) = (found[key] for key in ("known", "every", "or", "and"))
    missed = f" Not found: {', '.join(found['missed'])}." if found["missed"] else ""
    return (
        f"{known} pairs of columns are one protein in two states by their names, such as Akt and Akt_pS473. "
        f"{hits} of them ({hits / known:.0%}) are among the {edges:,} edges seen from either end, which are "
        f"{edges / every:.1%} of all {every:,} pairs; {both} are among the {sure:,} seen from both.{missed}"
    )


def surest(scan: mb.Scan, count: int = 15) -> str:
    """The surest edges as a Markdown table."""
    head = ("", "", "partial correlation", "probability", "from the other end")
    rows = [
        (e.query, e.variable, f"{e.partial_correlation:+.2f}", f"{e.inclusion:.2f}", f"{e.inclusion_other:.2f}")
        for e in scan.edges("and").head(count).itertuples()
    ]
    return markdown(head, rows)


def write_page(scans: dict[str, mb.Scan], told: dict[str, dict[str, Any]], folder: Path) -> None:
    """Page, picture and tables."""
    again = replication_table(scans["first"], scans["second"])
    head = ("scan", "patients", "fits", "edges, either end", "both ends", "not converged", "median R²", "minutes")
    _, _, about, _ = (__doc__ or "").split("\n\n")
    jobs = sorted({one["jobs"] for one in told.values()})
    text = [
        "# The blanket of every protein",
        re.sub(r"^FOLDER holds `tcga_crc_rppa`: ", "Data: ", about.strip()),
        f"Each scan by `mb.scan(table, seed=1, n_jobs={jobs[-1]}, out=...)`, with all defaults.",
        markdown(head, [scan_row(name, scan, told[name]) for name, scan in scans.items()]),
        "![All edges that were seen from both ends](proteins.png)",
        "## Is it found again in other patients?",
        "By the probability that one half gives a pair (the likelier end), the share of such pairs that the other "
        "half finds likelier than not (from either end), both ways together.",
        markdown(again.columns, again.itertuples(index=False)),
        "## Is known biology found?",
        control_words(controls(scans["all"])),
        "The surest edges of all patients:",
        surest(scans["all"]),
        stamp([one["source"] for one in told.values()], "proteins.py"),
    ]
    written(folder / "proteins.md", "\n\n".join(text) + "\n")
    scans["all"].edges().to_csv(folder / "proteins.csv", index=False, float_format="%.4g")
    draw(scans["all"], folder / "proteins.png")


def draw(scan: mb.Scan, path: Path) -> None:
    """All edges seen from both ends."""
    from matplotlib import pyplot as plt

    from markovblanket import plots

    plots.whole(scan, "and").figure.savefig(path, dpi=60)
    plt.close("all")


def main() -> None:
    """Scan what was not yet, and make the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("proteins"))
    parser.add_argument("--docs", type=Path, default=DOCS)
    given = parser.parse_args()
    one_thread()
    given.out.mkdir(parents=True, exist_ok=True)
    given.docs.mkdir(parents=True, exist_ok=True)
    found = {name: scanned(name, table, given.out, given.jobs) for name, table in tables(given.folder).items()}
    told = {name: json.loads((given.out / f"{name}.json").read_text()) for name in found}
    write_page(found, told, given.docs)


if __name__ == "__main__":
    main()
