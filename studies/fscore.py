"""How well are true blankets found? Networks of three sources, with the contestants that people use.

    python studies/fscore.py [--designs hubs bdgraph real whole] [--methods ...] [--sets 25] [--jobs 1] [--out O]
    python studies/fscore.py --page [--out O]

*hubs*: the paper's artificial networks, 10 query and 90 other variables, weights uniform in [0.3, 1] with
random signs. *bdgraph*: BDgraph's own simulator, 60 variables. *real*: a published Gaussian Bayesian network,
ecoli70, as pgmpy ships it. In these two 8 variables drawn at random are the query. *whole*: the paper's networks
with every column in the query. A design can also be asked for by its own name. Wanted are all edges that touch
the query, those among the query included. Signs do not enter the scores, since not all contestants have them;
wrong ones are counted beside.

A result is kept for every design, method and data set: the truth, how the method orders all pairs, and what
each rule selects. So a run that was stopped goes on where it was, further sets or methods are added by asking
for them, and a new score needs no new run. `--page` runs nothing: it makes docs/studies/fscore.md, its pictures
and its tables, of these results and of all earlier ones, whose scores are in docs/studies/fscore_sets.csv.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

from common import DOCS, kept, one_thread, source
from designs import DESIGNS, AbsentError, Design
from methods import METHODS, Answer

BY_NAME: dict[str, Design] = {one.name: one for family in DESIGNS.values() for one in family}
FAMILY: dict[str, str] = {one.name: name for name, family in DESIGNS.items() for one in family}
SHORT = ["spike-slab", "bdgraph-mpl", "huge-mb", "huge-glasso"]
# Probabilities of 0 and 1 are half of five hundred draws away from there in the logarithmic loss, for all methods.
CLIP = 0.001
KEYS = ["design", "method", "set"]
# The constants of the default were chosen on earlier sets; these are shown only where slow methods need them.
FIRST_UNSEEN, SHOWN_ALL = 20, "hubs-p10-q90-n1000-density0.05"


def measured(design: Design, method: str, number: int) -> dict[str, Any]:
    """The truth of a data set and what a method says of it, pair by pair."""
    data = design.data(number)
    answer: Answer = METHODS[method].run(data, number)
    true = np.flatnonzero(data.pairs["edge"])
    told = source()
    told["versions"] |= answer.versions
    return {
        "design": design.name,
        "method": method,
        "set": number,
        "options": asdict(design),
        "seconds": answer.seconds,
        "pairs": len(data.pairs),
        "true": true.tolist(),
        "true_sign": np.sign(data.pairs["partial_correlation"].to_numpy()[true]).astype(int).tolist(),
        "probabilities": answer.probabilities,
        "score": [finite(value) for value in answer.score],
        "sign": [int(value) for value in answer.sign],
        "chosen": {rule: np.flatnonzero(mask).tolist() for rule, mask in answer.chosen.items()},
        "source": told,
    }


def finite(value: float) -> float:
    """Rounded; refuse what JSON has no number for."""
    if not np.isfinite(value):
        raise ValueError(f"a score of {value}")
    return round(float(value), 6)


def result(folder: Path, design: Design, method: str, number: int) -> dict[str, Any] | None:
    """From its file, or measured now; None if the method is not installed."""
    try:
        return kept(folder / design.name / method / f"{number}.json", lambda: measured(design, method, number))
    except AbsentError as reason:
        print(f"skipped: {reason}")
        return None


def run(folder: Path, designs: list[Design], methods: list[str], sets: range, jobs: int) -> None:
    """Every data set by every method: set by set, so that a stopped run has whole sets of every design."""
    tasks = [(design, method, number) for number in sets for design in designs for method in methods]
    joblib.Parallel(n_jobs=jobs, verbose=1)(joblib.delayed(result)(folder, *task) for task in tasks)


def asked(names: list[str]) -> list[Design]:
    """Designs by their names or those of their families."""
    return [design for name in names for design in ([BY_NAME[name]] if name in BY_NAME else DESIGNS[name])]


# ---------------------------------------------------------------------------------------------- of all results


def read(folder: Path) -> list[dict[str, Any]]:
    """All results in the folder, of designs and methods that are known, on sets that chose no constant."""
    records = [json.loads(path.read_text()) for path in sorted(folder.glob("*/*/*.json"))]
    known = [record for record in records if record["method"] in METHODS and record["design"] in BY_NAME]
    return [record for record in known if record["set"] >= FIRST_UNSEEN or record["design"] == SHOWN_ALL]


def scored(records: list[dict[str, Any]]) -> pd.DataFrame:
    """A row per design, method, set and rule."""
    rows = []
    for record in records:
        every = {key: record[key] for key in (*KEYS, "seconds")} | of_the_order(record)
        rows += [every | {"rule": rule} | of_a_rule(record, rule) for rule in record["chosen"]]
    return pd.DataFrame(rows)


def of_the_order(record: dict[str, Any]) -> dict[str, float]:
    """Average precision, missing if there is no edge; logarithmic loss, missing without probabilities."""
    from sklearn.metrics import average_precision_score

    true, score = truth(record), np.array(record["score"])
    found = {"average_precision": average_precision_score(true, score) if true.any() else np.nan}
    p = np.clip(score, CLIP, 1 - CLIP)
    loss = -np.mean(np.where(true, np.log(p), np.log1p(-p))) if record["probabilities"] else np.nan
    return found | {"log_loss": loss}


def of_a_rule(record: dict[str, Any], rule: str) -> dict[str, float]:
    """Counts, precision, recall, f-score; the share of false edges, realised and promised; wrong signs.

    With no claim nothing is false: precision 1. With nothing to find, recall is 1.
    """
    true, chosen = truth(record), np.array(record["chosen"][rule], dtype=int)
    counts = {"edges": int(true.sum()), "claimed": len(chosen), "found": int(true[chosen].sum())}
    promised = float(np.mean(1 - np.array(record["score"])[chosen])) if len(chosen) else 0.0
    return {
        **counts,
        "wrong_sign": wrong_signs(record, chosen),
        "promised": promised if record["probabilities"] else np.nan,
        **of_counts(**counts),
    }


def of_counts(edges: int, claimed: int, found: int) -> dict[str, float]:
    """Precision, recall, f-score and the realised share of false edges."""
    precision, recall = found / claimed if claimed else 1.0, found / edges if edges else 1.0
    f = 2 * found / (claimed + edges) if claimed + edges else 1.0
    return {"precision": precision, "recall": recall, "f": f, "realised": 1 - precision}


def together(scores: pd.DataFrame, earlier: pd.DataFrame) -> pd.DataFrame:
    """New scores, and those of an earlier page for every design, method and data set without a new one."""
    counts = earlier[["edges", "claimed", "found"]].to_dict("records")
    full = earlier.join(pd.DataFrame([of_counts(**one) for one in counts], index=earlier.index))
    again = pd.MultiIndex.from_frame(full[KEYS]).isin(pd.MultiIndex.from_frame(scores[KEYS]))
    return pd.concat([scores, full[~again]], ignore_index=True)


def truth(record: dict[str, Any]) -> np.ndarray:
    """As a mask."""
    true = np.zeros(record["pairs"], dtype=bool)
    true[record["true"]] = True
    return true


def wrong_signs(record: dict[str, Any], chosen: np.ndarray) -> float:
    """Of the edges claimed and there: how many have the other sign; missing if the method has no signs."""
    claimed, real = np.array(record["sign"]), np.zeros(record["pairs"], dtype=int)
    real[record["true"]] = record["true_sign"]
    return float(np.sum(claimed[chosen] * real[chosen] < 0)) if claimed.any() else np.nan


def by_own_rule(scores: pd.DataFrame) -> pd.DataFrame:
    """Every method by the rule that counts for it."""
    return scores[scores["rule"] == scores["method"].map({name: method.rule for name, method in METHODS.items()})]


def size(design: str) -> dict[str, float]:
    """Number of rows, and density if the design has one."""
    known: Any = BY_NAME[design]
    return {"n": known.rows, "density": getattr(known, "density", np.nan)}


MEANS = ("f", "average_precision", "log_loss", "precision", "recall", "seconds")


def summary(scores: pd.DataFrame, best: str = "spike-slab") -> pd.DataFrame:
    """A row per design and method: means with standard errors, and by how much the default leads, set by set."""
    own, rows = by_own_rule(scores).set_index("set"), []
    for (design, method), group in own.groupby(["design", "method"]):
        ours = own[(own["design"] == design) & (own["method"] == best)]
        measures = {f"{name}_mean": group[name].mean() for name in MEANS}
        measures |= {f"{name}_se": group[name].sem() for name in ("f", "average_precision", "log_loss")}
        for name in ("f", "average_precision", "log_loss"):
            lead = (ours[name].reindex(group.index) - group[name]).dropna()
            measures |= {f"{name}_lead": lead.mean(), f"{name}_lead_se": lead.sem()}
            measures["shared"] = max(len(lead), measures.get("shared", 0))  # without probabilities, no log loss
        names = {"family": FAMILY[design], "design": design, **size(design), "method": method, "sets": len(group)}
        rows.append(names | {"f": group["f"].median(), "wrong_signs": group["wrong_sign"].mean()} | measures)
    return in_order(pd.DataFrame(rows))


def error_rates(scores: pd.DataFrame) -> pd.DataFrame:
    """Mean share of false edges beside the promised one, by rule; without probabilities by `fdr=` alone."""
    told = scores["promised"].notna() | (scores["rule"] == "fdr10")
    chosen = scores[told].assign(over=lambda t: t["realised"] - t["promised"])
    grouped = chosen.groupby(["design", "method", "rule"])
    table = grouped.agg(
        sets=("realised", "size"),
        claimed=("claimed", "mean"),
        realised=("realised", "mean"),
        realised_se=("realised", "sem"),
        promised=("promised", "mean"),
        over=("over", "mean"),
        over_se=("over", "sem"),
        recall=("recall", "mean"),
    )
    return in_order(table.reset_index())


def in_order(table: pd.DataFrame) -> pd.DataFrame:
    """By design, then method, as they are listed."""
    places = {"design": list(BY_NAME), "method": list(METHODS)}
    ranks = [table[name].map({value: k for k, value in enumerate(known)}) for name, known in places.items()]
    order = np.lexsort([table["rule"] if "rule" in table else np.zeros(len(table)), *reversed(ranks)])
    return table.iloc[order].reset_index(drop=True)


def main() -> None:
    """Run what is asked for and print how it went, or make the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--designs", nargs="+", default=list(DESIGNS), choices=[*DESIGNS, *BY_NAME], metavar="DESIGN"
    )
    parser.add_argument("--methods", nargs="+", default=SHORT, choices=METHODS, metavar="METHOD")
    parser.add_argument("--sets", type=int, default=25)
    parser.add_argument("--first", type=int, default=0, help="number of the first set")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir(), "fscore"))
    parser.add_argument("--page", action="store_true", help="run nothing, write page, pictures and tables")
    parser.add_argument("--docs", type=Path, default=DOCS, help="where --page writes")
    given = parser.parse_args()
    if given.page:
        import fscore_page

        fscore_page.write(given.docs, read(given.out))
        return
    one_thread()
    run(given.out, asked(given.designs), given.methods, range(given.first, given.first + given.sets), given.jobs)
    table = summary(scored(read(given.out)))
    table.to_csv(given.out / "summary.csv", index=False)
    print(table.drop(columns="family").round(3).to_string(index=False))


if __name__ == "__main__":
    main()
