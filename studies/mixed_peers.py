"""Mixed and incomplete tables, beside BDgraph's copula graphical model: F1, false edges, seconds per iteration.

    python studies/mixed_peers.py [--sets 30] [--methods markovblanket gcgm] [--out mixed_peers/]
    python studies/mixed_peers.py --page [--out mixed_peers/]

Networks of 6 query and 60 other variables, 300 rows, columns continuous, binary, ordinal and counts, 10 % of the
cells missing. `markovblanket` as it comes, with two chains; `gcgm` is BDgraph's, bdmcmc, 5,000 iterations, half of
them burn-in, an edge being one of probability above one half. Compared are the pairs that touch the query; a wrong
sign counts as false. Times are CPU seconds of one thread, divided by the number of iterations, with what is kept
of them. The iterations are not alike: one of bdmcmc weighs every pair and changes one of them; a sweep of ours
decides every pair.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import markovblanket as mb
from common import DOCS, HERE, kept, markdown, one_thread, quietly, source, stamp, written
from markovblanket.simulation import score
from settings import one_thread as alone

DESIGN: dict[str, Any] = {"query": 6, "rest": 60, "rows": 300, "density": 0.05, "kinds": "mixed", "missing": 0.1}
FIT: dict[str, Any] = {"chains": 2, "warmup": 500, "draws": 1000, "n_jobs": 1, "keep": "summary"}
ITERATIONS = 5000
SMALL: dict[str, Any] = {"chains": 1, "warmup": 5, "draws": 5, "n_jobs": 1}

Record = dict[str, Any]


def ours(data: Any, number: int) -> Record:
    """What the default rule selects, and CPU seconds per sweep; a short fit first, which loads compiled code."""
    quietly(mb.estimate, data.table, data.query, seed=number, **SMALL)
    begin = time.process_time()
    posterior = quietly(mb.estimate, data.table, data.query, seed=number, **FIT)
    seconds = time.process_time() - begin
    edges = posterior.edges()
    signed = edges[["query", "variable"]].assign(weight=-edges["partial_correlation"])
    sweeps = FIT["chains"] * (FIT["warmup"] + FIT["draws"])
    found = counts(data, signed, float(np.sum(1 - edges["probability"])))
    return found | {"ms": 1e3 * seconds / sweeps, "seconds": seconds}


def gcgm(data: Any, number: int) -> Record:
    """The pairs of probability above one half, and CPU seconds per iteration."""
    rest = [name for name in data.table if name not in data.query]
    table = data.table[[*data.query, *rest]]
    levels = "".join("0" if data.kinds[name] == "continuous" else "1" for name in table)
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "table.csv"), Path(folder, "out.csv")
        table.to_csv(path, index=False)
        words = ["Rscript", HERE / "gcgm.R", path, levels, len(data.query), number, ITERATIONS, out]
        run = subprocess.run(
            [str(word) for word in words], env=alone(), capture_output=True, text=True, check=True
        )
        pairs = pd.read_csv(out)
    names, seconds = np.array(table.columns), float(run.stdout.split()[0])
    likely = pairs[pairs["probability"] > 0.5]
    signed = pd.DataFrame({"query": names[likely["i"] - 1], "variable": names[likely["j"] - 1]})
    signed["weight"] = -likely["sign"].to_numpy()
    found = counts(data, signed, float(np.sum(1 - likely["probability"])))
    return found | {"ms": 1e3 * seconds / ITERATIONS, "seconds": seconds, "version": run.stdout.split("\n")[1]}


METHODS = {"markovblanket": ours, "gcgm": gcgm}


def counts(data: Any, signed: pd.DataFrame, expected: float) -> Record:
    """How selected edges compare with the truth, and how many false ones were expected."""
    result = score(pd.concat([data.query_edges, data.truth]), signed)
    names = ("f1", "precision", "recall", "found", "false", "wrong_sign")
    return {name: getattr(result, name) for name in names} | {"selected": len(signed), "expected_false": expected}


def result(folder: Path, method: str, number: int) -> Record:
    """From its file, or measured now."""

    def measured() -> Record:
        found = METHODS[method](mb.simulate(seed=number, **DESIGN), number)
        return {"method": method, "set": number, **found, "source": source()}

    return kept(folder / method / f"{number}.json", measured)


def table(records: list[Record]) -> pd.DataFrame:
    """A row per method: means over data sets, and false edges of all sets, expected and real."""
    grouped = pd.DataFrame(records).groupby("method", sort=False)
    shown = grouped[["f1", "precision", "recall", "ms"]].mean()
    sums = grouped[["selected", "expected_false", "false", "wrong_sign"]].sum()
    shown.insert(0, "sets", grouped.size())
    shown.insert(2, "se", grouped["f1"].sem())
    shown["expected share false"] = sums["expected_false"] / sums["selected"]
    shown["share false"] = (sums["false"] + sums["wrong_sign"]) / sums["selected"]
    return shown.reset_index()


def differences(records: list[Record]) -> str:
    """How much better ours is, set by set."""
    wide = pd.DataFrame(records).pivot_table(index="set", columns="method", values=["f1", "ms"]).dropna()
    f1 = wide["f1", "markovblanket"] - wide["f1", "gcgm"]
    faster = wide["ms", "gcgm"] / wide["ms", "markovblanket"]
    return (
        f"On {len(wide)} sets the F1 is higher by {f1.mean():.3f} (standard error {f1.sem():.3f}), higher in "
        f"{(f1 > 0).sum()} of them; an iteration takes {faster.median():.1f} times less (from {faster.min():.1f} "
        f"to {faster.max():.1f})."
    )


def write_page(folder: Path, records: list[Record]) -> None:
    """The table of these results, and how it was made."""
    shown = table(records)
    shown.to_csv(folder / "mixed_peers.csv", index=False)
    _, _, setting, *_ = (__doc__ or "").split("\n\n")
    rows, told = markdown(shown.columns, shown.itertuples(index=False)), [one["source"] for one in records]
    versions = sorted({one["version"] for one in records if "version" in one})
    text = ["# Mixed tables beside BDgraph", setting, rows, differences(records)]
    text.append(stamp(told, "mixed_peers.py") + "".join(f" *{version}.*" for version in versions))
    written(folder / "mixed_peers.md", "\n\n".join(part.strip() for part in text) + "\n")


def main() -> None:
    """Run what is asked for and print it, or make the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=30)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--out", type=Path, default=Path("mixed_peers"))
    parser.add_argument("--page", action="store_true", help="run nothing, write page and table")
    parser.add_argument("--docs", type=Path, default=DOCS, help="where --page writes")
    given = parser.parse_args()
    if not given.page:
        one_thread()
        for number in range(given.sets):
            for method in given.methods:
                result(given.out, method, number)
    records = [json.loads(path.read_text()) for path in sorted(given.out.glob("*/*.json"))]
    if given.page:
        write_page(given.docs, records)
    print(table(records).round(3).to_string(index=False))
    if len({one["method"] for one in records}) == len(METHODS):
        print(differences(records))


if __name__ == "__main__":
    main()
