"""How well are true blankets found? The paper's experiment on artificial data, with more contestants.

    python studies/fscore.py [--sets 100] [--n 1000] [--density 0.05] [--methods ...] [--jobs 1] [--out fscore/]
    python studies/fscore.py --page [--out fscore/]

Networks of 10 query and 90 other variables with hubs, weights uniform in [0.3, 1] with random signs; n rows; one
chain of 300 + 700 sweeps. An edge inferred with the wrong sign counts as missing, as in the paper: it lowers
recall and, like an edge that is not inferred, leaves precision alone. The false discovery rate does count it.

A result is kept for every data set and method, so a run that was stopped goes on where it was, and further sets or
methods are added by asking for them. `--page` runs nothing: it makes docs/studies/fscore.md, its picture and its
table of all results in the folder.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import joblib
import pandas as pd

import markovblanket as mb
from common import DOCS, kept, one_thread, source
from markovblanket.simulation import Score, score
from methods import METHODS, AbsentError, Answer


@dataclass(frozen=True)
class Design:
    """The data and the schedule of a comparison."""

    rows: int = 1000
    density: float = 0.05
    query: int = 10
    rest: int = 90
    warmup: int = 300
    draws: int = 700

    @property
    def name(self) -> str:
        """A folder's."""
        size = f"p{self.query}-q{self.rest}-n{self.rows}-density{self.density:g}"
        return f"{size}-sweeps{self.warmup}+{self.draws}"

    def data(self, number: int) -> Any:
        """Data set ``number``; with more rows, it is of the same network."""
        return mb.simulate(self.rows, self.query, self.rest, density=self.density, seed=number)


def measured(design: Design, method: str, number: int) -> dict[str, Any]:
    """How a method does on a data set: counts for every rule that it has."""
    data = design.data(number)
    answer: Answer = METHODS[method].run(data, {"warmup": design.warmup, "draws": design.draws}, number)
    rules = {rule: asdict(score(data.truth, answer.edges(rule))) for rule in answer.weights}
    told = source()
    told["versions"] |= answer.versions
    names = {"method": method, "set": number, "seconds": answer.seconds}
    return {**names, "design": asdict(design), "rules": rules, "source": told}


def result(folder: Path, design: Design, method: str, number: int) -> dict[str, Any] | None:
    """From its file, or measured now; None if the method is not installed."""
    try:
        return kept(folder / design.name / method / f"{number}.json", lambda: measured(design, method, number))
    except AbsentError as reason:
        print(f"skipped: {reason}")
        return None


def run(folder: Path, design: Design, methods: list[str], sets: int, jobs: int) -> None:
    """Every data set by every method: set by set, so that a stopped run has whole sets."""
    tasks = [(method, number) for number in range(sets) for method in methods]
    work = (joblib.delayed(result)(folder, design, *task) for task in tasks)
    joblib.Parallel(n_jobs=jobs, verbose=1)(work)


# ---------------------------------------------------------------------------------------------- of all results


def read(folder: Path) -> list[dict[str, Any]]:
    """All results in the folder, of methods that are known."""
    records = [json.loads(path.read_text()) for path in sorted(folder.glob("*/*/*.json"))]
    return [record for record in records if record["method"] in METHODS]


def scored(records: list[dict[str, Any]]) -> pd.DataFrame:
    """A row per design, method, set and rule: counts, precision, recall, f-score, share of false discoveries."""
    rows = []
    for record in records:
        names = {key: record[key] for key in ("method", "set", "seconds")} | record["design"]
        for rule, counts in record["rules"].items():
            found = Score(**counts)
            measures = {"precision": found.precision, "recall": found.recall, "f": found.f1}
            rows.append(names | counts | measures | {"rule": rule, "fdp": false_share(found)})
    return pd.DataFrame(rows)


def false_share(found: Score) -> float:
    """Of the edges claimed: those that are not there, or have the other sign; 0 if none is claimed."""
    false = found.false + found.wrong_sign
    return false / (found.found + false) if found.found + false else 0.0


def by_own_rule(scores: pd.DataFrame) -> pd.DataFrame:
    """Every method by the rule that counts for it."""
    rules = scores["method"].map({name: method.rule for name, method in METHODS.items()})
    return scores[scores["rule"] == rules]


def summary(scores: pd.DataFrame, best: str = "spike-slab") -> pd.DataFrame:
    """A row per design and method: medians, quartiles, and the default's median on the same data sets."""
    rows = []
    for (n, density, method), group in by_own_rule(scores).groupby(["rows", "density", "method"]):
        ours = by_own_rule(scores).query("rows == @n and density == @density and method == @best")
        theirs = group.set_index("set")["f"]
        shared = ours.set_index("set")["f"].reindex(theirs.index)
        lower, median, upper = theirs.quantile([0.25, 0.5, 0.75])
        measures = {"f": median, "f_lower": lower, "f_upper": upper, "f_mean": theirs.mean()}
        measures |= {name: group[name].dropna().median() for name in ("precision", "recall", "seconds")}
        lead = shared - theirs
        measures |= {"default_f": shared.dropna().median(), "default_leads_by": lead.mean(), "lead_se": lead.sem()}
        rows.append({"n": n, "density": density, "method": method, "sets": len(group), **measures})
    order = {name: place for place, name in enumerate(METHODS)}
    table = pd.DataFrame(rows).sort_values("method", key=lambda names: names.map(order), kind="stable")
    return table.sort_values(["n", "density"], ascending=[False, True], kind="stable").reset_index(drop=True)


def error_rates(scores: pd.DataFrame) -> pd.DataFrame:
    """Mean share of false discoveries by ``edges(fdr=0.1)`` and by the default rule, with standard errors."""
    rules = scores[scores["method"].map(lambda name: METHODS[name].family == "ours")]
    rules = rules[rules["rule"].isin(["fdr10", "default"])].assign(
        claimed=lambda t: t.found + t.false + t.wrong_sign
    )
    grouped = rules.groupby(["rows", "density", "method", "rule"])
    table = grouped.agg(sets=("fdp", "size"), fdr=("fdp", "mean"), se=("fdp", "sem"), recall=("recall", "mean"))
    return table.reset_index().sort_values(["rule", "method", "rows", "density"], ignore_index=True)


def main() -> None:
    """Run what is asked for and print how it went, or make the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--density", type=float, default=0.05)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS, metavar="METHOD")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("fscore"))
    parser.add_argument("--page", action="store_true", help="run nothing, write page, picture and table")
    parser.add_argument("--docs", type=Path, default=DOCS, help="where --page writes")
    given = parser.parse_args()
    if given.page:
        import fscore_page

        fscore_page.write(given.docs, read(given.out))
        return
    one_thread()
    run(given.out, Design(given.n, given.density), given.methods, given.sets, given.jobs)
    table = summary(scored(read(given.out)))
    table.to_csv(given.out / "summary.csv", index=False)
    print(table.round(3).to_string(index=False))


if __name__ == "__main__":
    main()
