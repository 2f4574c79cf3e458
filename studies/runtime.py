"""Sweeps per second against the number of other variables: the Bayesian graphical lasso, and this package.

    python studies/runtime.py [--sizes 50 100 200 312 1000 3000] [--rounds 5] [--out runtime/]

CPU seconds of a sweep are the difference of two fits of the same data, one with more sweeps than the other, so
that all that is done once cancels; every contestant has its turn in each round, and medians of the rounds count.
One core, one BLAS thread. Beside them: the times that the paper reports, as ratios. A size is measured once and
kept.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import markovblanket as mb
from common import DOCS, kept, markdown, one_thread, quietly, source, stamp, written
from markovblanket.baselines import graphical_lasso

LARGEST_NETWORK = 312  # a sweep of BGL is of order (p + q)^4
CURVE, PAPER = (7, 260), ((10, 90, 1000), (7, 312, 260))  # p and n; the paper's p, q, n
# Of BMB and of BGL, for so many sweeps.
PAPERS_SECONDS = {(10, 90, 1000): (100, 370, 1000), (7, 312, 260): (2 * 3600, 122 * 3600, 5000)}
LABELS = {"BGL": "BGL", "laplace": "Laplace, γ = 200", "spike-slab": "spike and slab (default)"}


@dataclass(frozen=True)
class Contestant:
    """A fit, and the two numbers of sweeps that are compared."""

    fit: Callable[..., mb.Posterior]
    few: int
    many: int

    def seconds_per_sweep(self) -> float:
        """By the difference."""
        return (self.seconds(self.many) - self.seconds(self.few)) / (self.many - self.few)

    def seconds(self, warmup: int) -> float:
        """CPU time of a fit whose sweeps are nearly all warm-up, so that hardly anything is kept or diagnosed."""
        begin = time.process_time()
        quietly(self.fit, chains=1, warmup=warmup, draws=8, seed=1)
        return time.process_time() - begin


def contestants(p: int, q: int, n: int) -> dict[str, Contestant]:
    """Those that can run at this size."""
    data = mb.simulate(rows=n, query=p, rest=q, seed=3)
    ours = partial(mb.estimate, data.table, data.query, margins="gaussian", keep="summary")
    more = 400 if q <= 1000 else 60
    found = {"laplace": Contestant(partial(ours, prior=mb.Laplace(gamma=200)), 100, 100 + more)}
    found["spike-slab"] = Contestant(partial(ours, prior="spike-slab"), 100, 100 + 2 * more)
    if q <= LARGEST_NETWORK:
        network = partial(graphical_lasso, data.table, data.query, lam=200.0)
        found["BGL"] = Contestant(network, 4, 4 + max(4, round(40 * (100 / (p + q)) ** 3)))
    return found


def measured(p: int, q: int, n: int, rounds: int) -> dict[str, Any]:
    """Seconds per sweep in every round, all in turn; a first round, in which code is compiled, does not count."""
    works = contestants(p, q, n)
    for work in works.values():
        work.seconds(2)
    turns = [{name: work.seconds_per_sweep() for name, work in works.items()} for _ in range(rounds)]
    seconds = {name: [turn[name] for turn in turns] for name in works}
    return {"p": p, "q": q, "n": n, "seconds": seconds, "source": source()}


def median(record: Mapping[str, Any], name: str) -> float:
    """Seconds per sweep."""
    return float(np.median(record["seconds"][name]))


def ratio(record: Mapping[str, Any], name: str) -> float:
    """How many sweeps in the time of one of BGL: median over rounds."""
    seconds = record["seconds"]
    return float(np.median(np.array(seconds["BGL"]) / np.array(seconds[name])))


def draw(path: Path, records: list[dict[str, Any]]) -> None:
    """Sweeps per second against q, both axes logarithmic."""
    import matplotlib as mpl
    from matplotlib.ticker import FuncFormatter, NullLocator

    from pictures import BLUE, GREEN, LOOK, ORANGE, plt, save

    looks = {"spike-slab": (GREEN, "^", "-."), "laplace": (BLUE, "o", "-"), "BGL": (ORANGE, "s", "--")}
    with mpl.rc_context(LOOK):
        figure, axis = plt.subplots(figsize=(5.6, 3.8), layout="constrained")
        for name, (colour, mark, line) in looks.items():
            points = [(one["q"], 1 / median(one, name)) for one in records if name in one["seconds"]]
            axis.plot(*zip(*points, strict=True), color=colour, marker=mark, linestyle=line, label=LABELS[name])
        axis.set(xscale="log", yscale="log", ylabel="sweeps per second")
        axis.set_xlabel(f"q, other variables (p = {CURVE[0]}, n = {CURVE[1]})")
        axis.set_xticks([one["q"] for one in records])
        for side in (axis.xaxis, axis.yaxis):
            side.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.4g}"))
        axis.xaxis.set_minor_locator(NullLocator())
        axis.grid(color="#DDDDDD", linewidth=0.6)
        axis.legend(frameon=False)
        save(figure, path)


def page(curve: list[dict[str, Any]], beside: list[dict[str, Any]]) -> str:
    """Markdown."""
    rows = [
        (one["q"], *(1 / median(one, name) if name in one["seconds"] else "" for name in LABELS)) for one in curve
    ]
    return (
        "\n\n".join(
            [
                "<!-- Written by studies/runtime.py. -->",
                "# How fast a sweep is",
                ABOUT,
                "![Sweeps per second against q](runtime.png)",
                f"Sweeps per second, p = {CURVE[0]}, n = {CURVE[1]}:",
                markdown(("q", *LABELS.values()), rows),
                "## Beside the paper's times",
                REPORTED,
                beside_paper(beside),
                stamp([one["source"] for one in [*curve, *beside]], "runtime.py"),
            ]
        )
        + "\n"
    )


def beside_paper(records: list[dict[str, Any]]) -> str:
    """How many sweeps in the time of one of BGL: the paper's, and ours; and the paper's seconds beside ours."""
    rows = []
    for one in records:
        size = (one["p"], one["q"], one["n"])
        blanket, network, sweeps = PAPERS_SECONDS[size]
        ours = [ratio(one, name) for name in ("laplace", "spike-slab")]
        times = [sweeps * median(one, name) for name in ("BGL", "laplace", "spike-slab")]
        rows.append(("{}, {}, {:,}".format(*size), network / blanket, *ours, sweeps, *times))
    head = ("p, q, n", "the paper: BGL / BMB", "BGL / Laplace", "BGL / default", "sweeps")
    head += ("BGL, s", "Laplace, s", "default, s")
    return markdown(head, rows)


ABOUT = """A sweep of the Bayesian graphical lasso (BGL, Wang 2012; our own, compiled) draws the whole network,
a sweep of this package the blanket of the query alone. CPU time on one core, by the difference of a long and a
short fit, contestants in turn, medians of the rounds. The default's sweep is that of the widened block, query and
candidates; how it finds the candidates is done once and cancels."""
REPORTED = """The paper reports 100 s (its BMB) against 370 s (BGL) for 1,000 sweeps at p = 10, q = 90, n =
1,000, and 2 hours against 122 hours for 5,000 sweeps at p = 7, q = 312, n = 260. Those were other programs on
another machine, so only ratios can be compared, not seconds. The paper's second table had mixed columns, so both
of its times include redrawing latent columns; ours are for Gaussian data."""


def main() -> None:
    """Measure what is not there yet, draw, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 100, 200, 312, 1000, 3000], metavar="Q")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("runtime"))
    parser.add_argument("--docs", type=Path, default=DOCS)
    given = parser.parse_args()
    one_thread()

    def at(p: int, q: int, n: int) -> dict[str, Any]:
        record = kept(given.out / f"p{p}-q{q}-n{n}.json", lambda: measured(p, q, n, given.rounds))
        speeds = (f"{name} {1 / median(record, name):.4g}" for name in record["seconds"])
        print(f"{p}, {q}, {n}: {', '.join(speeds)} sweeps per second", flush=True)
        return record

    curve, beside = [at(CURVE[0], q, CURVE[1]) for q in given.sizes], [at(*size) for size in PAPER]
    draw(given.docs / "runtime.png", curve)
    rows = [
        f"{one['p']},{one['q']},{one['n']},{name},{median(one, name):.6g}\n"
        for one in [*curve, *beside]
        for name in one["seconds"]
    ]
    written(given.docs / "runtime.csv", "p,q,n,method,seconds_per_sweep\n" + "".join(dict.fromkeys(rows)))
    written(given.docs / "runtime.md", page(curve, beside))


if __name__ == "__main__":
    main()
