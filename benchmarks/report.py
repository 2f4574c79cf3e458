"""The page of results, made of the file of results: what the documentation shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import targets

Results = Mapping[str, Any]


def page(book: Mapping[str, Any]) -> str:
    """Markdown, a part for each section that there are results for."""
    results = {name: section["results"] for name, section in book["sections"].items()}
    parts = ["<!-- Written by benchmarks/run.py; what is changed here is lost. -->", origin(book), verdicts(book)]
    parts += [
        write(results)
        for write in (cost, block, profile, memory, peers, nuts, tolerance, mixing, row_moves, latent, cores)
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A Markdown table; numbers with three digits."""
    head = list(head)
    lines = [head, ["---"] * len(head), *([_cell(value) for value in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(value: Any) -> str:
    """Numbers with three digits, but whole ones in full."""
    if isinstance(value, int):
        return f"{value:,}"
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _size(row: Results) -> str:
    return f"{row['p']}, {row['q']:,}, {row['n']:,}"


def origin(book: Mapping[str, Any]) -> str:
    """Dates, machines, versions, and how busy the machine was."""
    sections = list(book["sections"].values())
    dates = sorted({section["date"] for section in sections})
    machines = {"{processor}, {cores} cores, {gigabytes} GB".format(**section["machine"]) for section in sections}
    found = {pair: None for section in sections for pair in section["versions"].items()}
    minutes, load = sum(section["seconds"] for section in sections) / 60, max(one["load"][0] for one in sections)
    return (
        f"Measured {' to '.join(dict.fromkeys([dates[0], dates[-1]]))} in {minutes:.0f} minutes, on one core of "
        f"{' and '.join(sorted(machines))}; load of the machine at most {load:.1f} when a section began.\n\n"
        f"Software: {', '.join(f'{name} {version}' for name, version in sorted(found))}."
    )


def verdicts(book: Mapping[str, Any]) -> str:
    """The table of targets."""
    rows = [targets.described(target) for target in book.get("targets", []) if target["figure"] is not None]
    return "### Targets\n\n" + table(("target", "figure", "wanted", ""), rows) if rows else ""


def cost(results: Results) -> str:
    """Against q, n and p."""
    parts = []
    for name, held in (("q", "p = 7, n = 260"), ("n", "p = 7, q = 13,400"), ("p", "q = 2,000, n = 260")):
        if name in results:
            parts.append(f"Against {name} ({held}):\n\n{_cost_table(name, results[name])}")
    if not parts:
        return ""
    picture = "![Milliseconds per sweep against q, n and p](images/benchmark_sweeps.png)"
    return "\n\n".join(["### What a sweep costs", picture, *parts])


def _cost_table(letter: str, result: Results) -> str:
    head = (letter, "prior", "ms per sweep", "iterations", "times their products", "times one product")
    rows = [
        (
            row[letter],
            row["prior"],
            row["ms"],
            row.get("iterations", ""),
            row.get("over_iterations", ""),
            row["over_product"],
        )
        for row in result["rows"]
    ]
    slopes = ", ".join(f"{prior} {value:.2f}" for prior, value in result["slopes"].items())
    return f"{table(head, rows)}\n\nLog-log slopes: {slopes}."


def block(results: Results) -> str:
    """The widened block, against its size and against what is outside."""
    if "block" not in results:
        return ""
    rows, slopes = results["block"]["rows"], results["block"]["slopes"]
    told = table(
        ("variables in the block, P", "outside, q", "ms per sweep"), [(r["P"], r["q"], r["ms"]) for r in rows]
    )
    return (
        "### The widened block\n\n![Milliseconds per sweep against P and q](images/benchmark_block.png)\n\n"
        f"n = {rows[0]['n']}; columns continuous and complete, with ten common factors, so that most pairs are "
        f"edges. With many variables outside, a sweep visits the query's rows and a few others.\n\n{told}\n\n"
        f"Log-log slopes: {slopes['P']:.2f} against P, {slopes['q']:.2f} against q."
    )


def profile(results: Results) -> str:
    """Every prior at sizes of interest."""
    if "profile" not in results:
        return ""
    rows = [
        (_size(row), row["prior"], row["ms"], row["per_second"], row.get("iterations", ""))
        for row in results["profile"]["rows"]
    ]
    return "### Sizes of interest\n\n" + table(
        ("p, q, n", "prior", "ms per sweep", "sweeps per second", "iterations"), rows
    )


def memory(results: Results) -> str:
    """Of a summary."""
    if "memory" not in results:
        return ""
    rows = [
        (_size(row), row["margins"], row["megabytes"], row["limit"], row["ratio"])
        for row in results["memory"]["rows"]
    ]
    return "### Memory\n\n" + table(("p, q, n", "margins", "grew by, MB", "limit, MB", "ratio"), rows)


def peers(results: Results) -> str:
    """Times per sweep, ours against others."""
    rows = [
        row for name in ("dense", "network", "bdgraph") for row in _beside(name, results.get(name, {"rows": []}))
    ]
    if not rows:
        return ""
    picture = "![How many times as fast as others](images/benchmark_peers.png)"
    by = f"\n\nBy {results['bdgraph']['versions']}." if "bdgraph" in results else ""
    head = ("ours against", "p, q, n", "table", "times as fast")
    return f"### Beside others\n\n{picture}\n\n{table(head, rows)}{by}"


def _beside(name: str, result: Results) -> list[tuple[Any, ...]]:
    """Rows of the table of a peer."""
    rows = result["rows"]
    if name == "network":
        return [("Bayesian graphical lasso", _size(row), row["table"], row["ratio"]) for row in rows]
    if name == "bdgraph":
        return [(f"BDgraph, {row['algorithm']}", _size(row), _latent(row), row["ratio"]) for row in rows]
    kinds = {"sweep": "dense solver, whole sweep", "draw": "dense solver, draw of W12"}
    return [(kinds[kind], _size(row), row["table"], row[kind]) for kind in kinds for row in rows]


def _latent(row: Results) -> str:
    return f"common factors, latent query; {row['prior']} {row['ms']:.2g} ms, theirs {row['bdgraph_ms']:,.0f} ms"


def nuts(results: Results) -> str:
    """Effective draws per second, and what NUTS tells of itself."""
    if "nuts" not in results:
        return ""
    rows = results["nuts"]["rows"]
    kinds = ("ratio", "ratio_with_warmup", "ratio_of_medians")
    head = ("p, q, n", "ours per second", "NUTS per second", "ratio", "with warm-up", "of medians")
    speeds = table(
        head, [(_size(row), row["per_second"], _forms(row), *(row[kind] for kind in kinds)) for row in rows]
    )
    head = ("p, q, n", "draws", "leapfrog steps", "saturated", "diverging", "means differ by")
    keys = ("draws", "steps", "saturated", "diverging")
    told = table(head, [(_size(row), *(row[key] for key in keys), f"{row['mean_z']:.2f} se") for row in rows])
    return f"#### NUTS on the same posterior\n\n{speeds}\n\n{told}\n\nBy {rows[0]['versions']}."


def _forms(row: Results) -> str:
    """Both parametrisations."""
    return ", ".join(f"{value:.3g} ({form})" for form, value in row["nuts_per_second"].items())


def tolerance(results: Results) -> str:
    """Of the solver."""
    if "tolerance" not in results:
        return ""
    rows = [
        (f"{row['tolerance']:.0e}", f"{row['worst_error']:.1e}", row["iterations"], row["shift"])
        for row in results["tolerance"]["rows"]
    ]
    return "### The solver's tolerance\n\n" + table(
        ("tolerance", "worst error, sd", "iterations", "shift of means, se"), rows
    )


def mixing(results: Results) -> str:
    """Effective draws, simulated and clinical tables."""
    keys = [f"{kind}_per_{unit}" for unit in ("100", "second") for kind in ("bulk", "tail")]
    rows = [
        (row["table"], row["prior"], row["quantity"], row["of"], *(row[key] for key in keys))
        for name in ("mixing", "tumours")
        for row in results.get(name, {"rows": []})["rows"]
    ]
    if not rows:
        return ""
    head = (
        "table",
        "prior",
        "quantity",
        "worst of",
        "bulk per 100",
        "tail per 100",
        "bulk per second",
        "tail per second",
    )
    return "### Mixing\n\n![Effective draws per second](images/benchmark_mixing.png)\n\n" + table(head, rows)


def row_moves(results: Results) -> str:
    """With and without the joint scale moves."""
    if "row-moves" not in results:
        return ""
    rows = [(row["table"], row["quantity"], row["without"], row["with"]) for row in results["row-moves"]["rows"]]
    head = ("p, q, n", "quantity, worst", "without", "with")
    return "#### Joint scale moves of the query rows, bulk per 100 sweeps\n\n" + table(head, rows)


def latent(results: Results) -> str:
    """Latent columns."""
    parts = []
    if "latent-step" in results:
        row = results["latent-step"]
        parts.append(
            f"At {_size(row)}, all query columns latent, the step takes {row['ratio']:.3f} of the draw of W12."
        )
    if "latent-q" in results:
        rows = [(row["q"], row["ms"], row["latent_ms"]) for row in results["latent-q"]["rows"]]
        parts.append(table(("q", "ms per sweep", "of which the latent step"), rows))
        parts.append(f"Log-log slope {results['latent-q']['slope']:.2f}.")
    return "\n\n".join(["### Latent columns", *parts]) if parts else ""


def cores(results: Results) -> str:
    """Two chains on two cores."""
    if "cores" not in results:
        return ""
    rows = [(_size(row), row["ratio"]) for row in results["cores"]["rows"]]
    rows.append(("two processes that share nothing and multiply small matrices", results["cores"]["machine"]))
    return "### Two chains on two cores\n\n" + table(("p, q, n", "times as fast as on one"), rows)
