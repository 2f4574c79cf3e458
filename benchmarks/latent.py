"""What latent columns cost: the step that draws them, sweeps with some of them or with all of the rest latent."""

from __future__ import annotations

import tracemalloc
from typing import Any

from markovblanket.model import sweep
from markovblanket.priors import Laplace, SpikeSlab
from settings import Settings
from tables import factor_table, gaussian, label, rest_with_gaps, rest_with_levels, with_levels
from timing import Chain, in_turn, milliseconds, ratio, slope

KINDS = ("complete", "1 % missing", "three levels")


def step(settings: Settings) -> dict[str, Any]:
    """With all query columns latent: the latent step against the draw of W12 that follows it."""
    size = (3, 40, 100) if settings.quick else (7, 312, 260)
    chain = Chain(with_levels(factor_table(size), size[0], range(size[0]), Laplace()), 30)
    problem, rng = chain.problem, chain.rng
    works = {
        "latent": lambda: sweep.refresh(rng, chain.state, problem),
        "cross": lambda: problem.prior.draw_cross(rng, chain.state, problem.scatter, problem.solver),
    }
    times = in_turn(works, settings.repeats)
    share = ratio(times["latent"], times["cross"])
    print(f"  p, q, n = {label(size)}: the latent step takes {share:.3f} of the time of the draw of W12")
    return {**dict(zip("pqn", size, strict=True)), "ms": milliseconds(times["latent"]), "ratio": share}


def against_q(settings: Settings) -> dict[str, Any]:
    """Sweeps with three latent query columns and twenty latent others, learned Laplace."""
    p, others, n = 3, 20, 260
    sizes = [100, 200, 400] if settings.quick else [1000, 3000, 10000, 30000]
    chains = {
        q: Chain(
            with_levels(factor_table((p, q, n)), p, range(p + others), Laplace()), 5 if settings.quick else 20
        )
        for q in sizes
    }
    works = {f"{q} sweep": chain.step for q, chain in chains.items()}
    works |= {
        f"{q} latent": lambda c=chain: sweep.refresh(c.rng, c.state, c.problem) for q, chain in chains.items()
    }
    times = in_turn(works, settings.repeats)
    rows = [
        {"q": q, "ms": milliseconds(times[f"{q} sweep"]), "latent_ms": milliseconds(times[f"{q} latent"])}
        for q in sizes
    ]
    for row in rows:
        print(f"  q = {row['q']:6d}: {row['ms']:.1f} ms, of which {row['latent_ms']:.1f} ms the latent step")
    steepness = slope(sizes, [row["ms"] for row in rows])
    print(f"  log-log slope {steepness:.2f}")
    return {"rows": rows, "slope": steepness}


def rest(settings: Settings) -> dict[str, Any]:
    """Three query variables and 200 rows; all columns of the rest complete, with gaps, or with three levels."""
    p, n, sizes = 3, 200, [50, 100] if settings.quick else [200, 400, 800, 1600, 3200]
    chains = {}
    for q in sizes:
        X = factor_table((p, q, n))
        problems = (
            gaussian(X, p, SpikeSlab()),
            rest_with_gaps(X, p, SpikeSlab()),
            rest_with_levels(X, p, SpikeSlab()),
        )
        chains |= {
            (q, kind): Chain(problem, 5 if settings.quick else 100)
            for kind, problem in zip(KINDS, problems, strict=True)
        }
    times = in_turn({key: chain.step for key, chain in chains.items()}, settings.repeats)
    rows = [
        {
            "q": q,
            "kind": kind,
            "ms": milliseconds(times[q, kind]),
            "over_complete": ratio(times[q, kind], times[q, "complete"]),
            "tables_of_memory": memory(chain) / (8 * n * (p + q)),
        }
        for (q, kind), chain in chains.items()
    ]
    for row in rows:
        print(
            "  q = {q:5d}, {kind:12s} {ms:6.2f} ms, {over_complete:.1f} times complete; a sweep takes "
            "{tables_of_memory:.1f} times the memory of the table".format(**row)
        )
    slopes = {kind: slope(sizes, [row["ms"] for row in rows if row["kind"] == kind]) for kind in KINDS}
    print("  log-log slopes " + ", ".join(f"{kind}: {value:.2f}" for kind, value in slopes.items()))
    return {"rows": rows, "slopes": slopes}


def memory(chain: Chain) -> int:
    """The largest number of bytes that a sweep takes beside what the chain holds."""
    tracemalloc.start()
    chain.step()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most
