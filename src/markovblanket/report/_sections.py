"""The texts and small tables of the page: question, data, chains, checks, and how to reproduce the fit."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np

from markovblanket.posterior.diagnostics import MAX_RHAT, MIN_ESS_PER_CHAIN
from markovblanket.posterior.posterior import Posterior

PRIORS = {
    "SpikeSlab": "spike and slab: an edge is either absent or of a size from a normal distribution",
    "Laplace": "Laplace: small edges are shrunk towards zero, none is exactly zero",
    "Horseshoe": "regularised horseshoe: most edges are shrunk strongly towards zero, a few hardly at all",
    "Normal": "normal: all edges are shrunk towards zero alike",
}
MARGINS = {
    "auto": "complete continuous columns by their normal scores, all others as latent normal variables (a copula)",
    "rank": "every column as a latent normal variable of which only the order is used (a rank copula)",
    "gaussian": "columns as they are, standardised",
}
BLOCKS = {
    "W11": "precision matrix of the query (W11)",
    "edges": "the selected edges",
    "r2": "explained variance (R²)",
    "inclusion": "how many pairs are edges apart from hubs, learned by the prior",
    "slab": "how large edges are, learned by the prior",
    "inclusion_others": "how many pairs without a query variable are edges apart from hubs, learned by the prior",
    "slab_others": "how large edges without a query variable are, learned by the prior",
}
EFFORT = {
    "iterations": "iterations of the solver, or entries of W12 changed if there is no solver",
    "residual": "distance of W12 from the exact draw, in standard deviations",
    "scale_factor": "factor of the joint move of W12 and its scales",
}
# Longer lists of variables are cut off.
MOST_COLUMNS_LISTED = 1500
# A predictive check is odd if its probability is nearer than this to 0 or 1.
LEAST_TAIL_PROBABILITY = 0.005


def asked(posterior: Posterior) -> dict[str, Any]:
    """The question: query variables, size of the data, prior, margins, and length of the chains."""
    settings, sizes = posterior.settings, posterior.draws.sizes
    prior = settings.get("prior", {}).get("name", "")
    p, q = len(posterior.query), len(posterior.variables)
    return {
        "query": [str(name) for name in posterior.query],
        "whole": not q,
        "rows": settings.get("data", {}).get("n"),
        "variables": q,
        "pairs": p * (p - 1) // 2 + p * q,
        "candidates": candidates(posterior),
        "prior": PRIORS.get(prior, prior),
        "margins": MARGINS.get(posterior.observed.margins, posterior.observed.margins)
        if posterior.observed.table.n
        else "a scatter matrix, taken as given",
        "chains": sizes["chain"],
        "draws": sizes["draw"],
    }


def candidates(posterior: Posterior) -> list[str] | None:
    """The candidates, variables that joined the query in its block; None if the prior or the data leave none."""
    settings = posterior.settings
    widened = posterior.variables and settings.get("prior", {}).get("exact_zeros") and "candidates" in settings
    return [str(name) for name in settings["candidates"]["chosen"]] if widened else None


def data(posterior: Posterior) -> dict[str, Any] | None:
    """The kinds and missing cells of all columns; None if the data were a scatter matrix."""
    table = posterior.observed.table
    if not table.n:
        return None
    columns = [row | {"name": str(row["name"]), "share": row["missing"] / table.n} for row in table.describe()]
    rest = [row for row in columns if row["role"] == "rest"]
    counted = rest if posterior.variables else columns
    return {
        "rows": table.n,
        "query": [row for row in columns if row["role"] == "query"],
        "rest": rest[:MOST_COLUMNS_LISTED],
        "more": max(len(rest) - MOST_COLUMNS_LISTED, 0),
        "kinds": sorted(Counter(row["kind"] for row in counted).items()),
        "missing": sum(row["missing"] for row in columns),
        "cells": table.n * len(columns),
    }


def convergence(posterior: Posterior) -> dict[str, Any]:
    """The problems of convergence, and a row for each block of quantities that says whether it passes."""
    found = posterior.diagnostics()
    least = MIN_ESS_PER_CHAIN * posterior.draws.sizes["chain"]
    rows = []
    for name, row in found.table.iterrows():
        smallest = float(np.fmin(row["ess_bulk"], row["ess_tail"]))
        label = BLOCKS.get(str(name), f"{name}, learned by the prior")
        good = row["rhat"] <= MAX_RHAT, smallest >= least
        rows.append({"label": label, **row.to_dict(), "smallest": smallest, "good": good})
    spent = [(EFFORT.get(str(name), str(name)), row) for name, row in found.effort.iterrows()]
    effort = [{"label": label, **row.to_dict()} for label, row in spent if row["max"] > 0]
    return {
        "verdict": found.verdict,
        "problems": found.problems,
        "rows": rows,
        "max_rhat": MAX_RHAT,
        "least": least,
        "effort": effort,
    }


def checks(posterior: Posterior) -> dict[str, Any] | None:
    """The predictive checks; None if there are no rows, or if not every draw was kept."""
    if not posterior.observed.table.n or "W12" not in posterior.draws:
        return None
    rows = [
        row
        | {
            "query": str(row["query"]),
            "odd": not LEAST_TAIL_PROBABILITY <= row["probability"] <= 1 - LEAST_TAIL_PROBABILITY,
        }
        for row in posterior.check(draws=100, seed=0).to_dict("records")
    ]
    return {"rows": rows, "odd": [f"{row['check']} of {row['query']}" for row in rows if row["odd"]]}


def groups(posterior: Posterior) -> list[dict[str, Any]]:
    """Groups of near-duplicates that share an edge; empty without rows or without exact zeros."""
    if not posterior.observed.table.n or posterior.inclusion.isna().to_numpy().all():
        return []
    found = posterior.groups().to_dict("records")
    return [row | {"variables": [str(name) for name in row["variables"]]} for row in found]


def explained(posterior: Posterior) -> list[dict[str, Any]]:
    """The explained variance (R2) of each query variable; rounding errors below zero are zero."""
    table = posterior.r2().clip(lower=0.0).reset_index()
    return [row | {"query": str(row["query"])} for row in table.to_dict("records")]


def reproduction(posterior: Posterior) -> dict[str, Any]:
    """How to reproduce the fit: a call, the versions, the hash of the data, and all settings."""
    settings = posterior.settings
    return {
        "call": call(posterior),
        "versions": settings.get("versions", {}),
        "sha256": settings.get("data", {}).get("sha256"),
        "settings": json.dumps(settings, indent=2, default=str, ensure_ascii=False),
    }


def call(posterior: Posterior) -> str:
    """The call of :func:`estimate`, or of :func:`network`, that repeats the fit; empty for a foreign prior."""
    settings = posterior.settings
    if settings.get("prior", {}).get("name") not in PRIORS:
        return ""
    function, question = ("estimate", {"query": repr(posterior.query)}) if posterior.variables else ("network", {})
    if posterior.variables and "candidates" in settings:
        question["candidates"] = repr(settings["candidates"]["asked"])
    roles = ("prior", "solver") if posterior.variables else ("prior",)
    parts = {role: part(settings[role]) for role in roles if role in settings}
    names = ("chains", "warmup", "draws", "thin")
    schedule = {name: repr(settings[name]) for name in names if name in settings}
    seed = {"seed": settings["seed"]} if "seed" in settings else {}
    named = source(posterior) | question | parts | schedule | seed
    lines = [f"    {name}={value}," if name else f"    {value}," for name, value in named.items()]
    return "\n".join(["import markovblanket as mb", "", f"posterior = mb.{function}(", *lines, ")"])


def source(posterior: Posterior) -> dict[str, str]:
    """The arguments of the call that hold the data: a table with its margins and kinds, or a scatter matrix."""
    settings = posterior.settings
    if not posterior.observed.table.n:
        return {"scatter": "S", "n": repr(settings.get("data", {}).get("n")), "names": "names"}
    kinds = {"kinds": repr(settings["kinds"])} if settings.get("kinds") else {}
    return {"": "table", "margins": repr(posterior.observed.margins)} | kinds


def part(described: dict[str, Any]) -> str:
    """A prior or a solver as Python code, such as ``mb.SpikeSlab(edges=1.0)``."""
    given = {key: value for key, value in described["options"].items() if value is not None}
    return f"mb.{described['name']}({', '.join(f'{key}={value!r}' for key, value in given.items())})"
