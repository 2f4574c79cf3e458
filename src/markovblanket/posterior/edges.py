"""Edges as a table, and as a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from markovblanket.contracts import Array
from markovblanket.posterior import selection
from markovblanket.posterior.summaries import convergence, describe, take


def from_draws(weight: Array, partial: Array, level: float) -> pd.DataFrame:
    """What draws (chain, draw, edge) of weights and partial correlations say, a row per edge."""
    pooled = weight.reshape(weight.shape[0] * weight.shape[1], weight.shape[2])
    table = describe(pooled, level).rename(columns={"mean": "weight"})
    table["partial_correlation"] = partial.mean(axis=(0, 1))
    table["sign_probability"] = selection.sign_probability(pooled) if len(table) else []
    quality = convergence({k: weight[:, :, k] for k in range(len(table))})
    return table.join(quality.rename(columns={"ess_bulk": "ess"}))


def sign_probability_among(W11: Array) -> Array:
    """Of the edges among the query variables, above the diagonal, from draws (chain, draw, p, p)."""
    i, j = np.triu_indices(W11.shape[-1], k=1)
    # Sizes in full: with one query variable there is no edge, and nothing to tell how many draws there are.
    return selection.sign_probability(W11[..., i, j].reshape(W11.shape[0] * W11.shape[1], len(i)))


def among(query: Sequence[Any], W11: Array, chosen: selection.Mask, level: float) -> pd.DataFrame:
    """The chosen edges among the query variables, of those above the diagonal."""
    i, j = (part[chosen] for part in np.triu_indices(len(query), k=1))
    partial = -W11[..., i, j] / np.sqrt(W11[..., i, i] * W11[..., j, j])
    names = {"query": take(query, i), "other": take(query, j)}
    return surest_first(names, from_draws(W11[..., i, j], partial, level))


def surest_first(names: dict[str, list[Any]], table: pd.DataFrame, of: str = "weight") -> pd.DataFrame:
    """Names before figures; equally sure edges by the size of their weight in standard deviations."""
    size = (table[of] / table["sd"].where(table["sd"] > 0)).abs().fillna(0)
    order = np.lexsort([-size, -table["sign_probability"]])
    return pd.DataFrame(names).join(table).iloc[order].reset_index(drop=True)


def graph(query: Sequence[Any], edges: pd.DataFrame) -> nx.Graph:
    """A node per variable, an edge per row, with signed weights; ready for GraphML."""
    made = nx.Graph()
    made.add_nodes_from(query, query=True)
    for row in edges.itertuples():
        if row.variable not in made:
            made.add_node(row.variable, query=False)
        attributes = ("weight", "partial_correlation", "sign_probability")
        values = {name: float(getattr(row, name)) for name in attributes}
        made.add_edge(row.query, row.variable, **values, sign="+" if row.partial_correlation > 0 else "-")
    return made
