"""What a sweep costs, and what it buys: every figure a ratio measured within one run.

    python benchmarks/run.py [--only SECTION ...] [--quick] [--data FOLDER] [--numpyro PYTHON]

Times are process times of one thread, medians of rounds in which everything compared has its turn, on chains that
are under way. A section whose peer or data is not there says so and is skipped. Results are merged into
benchmarks/results.json section by section, and docs/benchmark_results.md and its pictures are made of that file.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

import blocks
import curves
import latent
import machine
import memory
import mixing
import parallel
import peers
import report
import solvers
import sweeps
import targets
from settings import HERE, AbsentError, Settings

SECTIONS: dict[str, tuple[str, Callable[[Settings], dict[str, Any]]]] = {
    "q": ("A sweep against q", sweeps.against_q),
    "n": ("A sweep against n", sweeps.against_n),
    "p": ("A sweep against p", sweeps.against_p),
    "block": ("The widened block against P and q", blocks.costs),
    "profile": ("Every prior at sizes of interest", sweeps.profile),
    "memory": ("Memory of a summary", memory.summary),
    "dense": ("The dual solver against the dense one", solvers.dense),
    "tolerance": ("What the solver's tolerance means", solvers.tolerance),
    "latent-step": ("The latent step", latent.step),
    "latent-q": ("A sweep with latent columns against q", latent.against_q),
    "latent-rest": ("A sweep against the number of moving columns of the rest", latent.rest),
    "mixing": ("Mixing on simulated networks", mixing.simulated),
    "row-moves": ("What the joint moves of the query rows buy", mixing.row_moves),
    "tumours": ("Mixing on clinical tables", mixing.tumours),
    "network": ("Against the Bayesian graphical lasso", peers.graphical_lasso),
    "nuts": ("Against NumPyro's NUTS", peers.nuts),
    "bdgraph": ("Against BDgraph's copula sampler", peers.bdgraph),
    "cores": ("Two cores against one", parallel.two_cores),
}


def main() -> None:
    """Run what was asked for; print it, write it, draw it."""
    given = arguments()
    given.docs.joinpath("images").mkdir(parents=True, exist_ok=True)
    settings = Settings(given.quick, given.data, given.numpyro)
    book = json.loads(given.out.read_text()) if given.out.exists() else {"sections": {}}
    for name in [] if given.page else given.only or SECTIONS:
        section = measured(name, settings)
        if section is not None:
            book["sections"][name] = section
            book["targets"] = targets.judged({key: one["results"] for key, one in book["sections"].items()})
            given.out.write_text(json.dumps(book, indent=1) + "\n")
    curves.draw(book, given.docs / "images")
    (given.docs / "benchmark_results.md").write_text(report.page(book))
    print_targets(book.get("targets", []))


def arguments() -> argparse.Namespace:
    """Of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--page", action="store_true", help="measure nothing, only write page and pictures anew")
    parser.add_argument("--quick", action="store_true", help="small sizes, few repeats: to see that it runs")
    parser.add_argument("--data", type=Path, default=Settings.data, help="folder with the clinical tables")
    parser.add_argument("--numpyro", type=Path, help="a Python that has NumPyro, if this one has not")
    parser.add_argument("--out", type=Path, help="benchmarks/results.json, but with --quick build/results.json")
    parser.add_argument("--docs", type=Path, help="where page and pictures go: docs, but with --quick build")
    given = parser.parse_args()
    build = HERE.parent / "build"
    given.out = given.out or (build if given.quick else HERE) / "results.json"
    given.docs = given.docs or (build if given.quick else HERE.parent / "docs")
    return given


def measured(name: str, settings: Settings) -> dict[str, Any] | None:
    """A section's results and where they come from; None if it cannot run."""
    title, work = SECTIONS[name]
    print(f"{title}  [{name}]", flush=True)
    found, begin = machine.described(), time.perf_counter()
    try:
        results = work(settings)
    except AbsentError as reason:
        print(f"  skipped: {reason}")
        return None
    told = {"date": time.strftime("%Y-%m-%d"), "seconds": round(time.perf_counter() - begin), **found}
    return {"title": title, "quick": settings.quick, **told, "results": results}


def print_targets(judged: list[dict[str, Any]]) -> None:
    """The table of targets."""
    print("\nTargets")
    for target in judged:
        name, figure, limit, verdict = targets.described(target)
        print(f"  {name:76s} {figure:>8s}  {limit:8s} {verdict}")


if __name__ == "__main__":
    with threadpool_limits(limits=1):
        main()
