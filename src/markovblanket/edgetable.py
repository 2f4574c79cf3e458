"""Edges as a table, and as a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from markovblanket import selection
from markovblanket.contracts import Array
from markovblanket.summaries import convergence, describe


def frame(names: dict[str, list[Any]], weight: Array, partial: Array, level: float) -> pd.DataFrame:
    """Names, then what draws (chain, draw, edge) of weights and partial correlations say, surest first."""
    pooled = weight.reshape(weight.shape[0] * weight.shape[1], weight.shape[2])
    table = pd.DataFrame(names).join(describe(pooled, level).rename(columns={"mean": "weight"}))
    table["partial_correlation"] = partial.mean(axis=(0, 1))
    table["sign_probability"] = selection.sign_probability(pooled) if len(table) else []
    quality = convergence({k: weight[:, :, k] for k in range(len(table))})
    table = table.join(quality[["rhat", "ess_bulk"]].rename(columns={"ess_bulk": "ess"}))
    order = np.lexsort([-(table["weight"] / table["sd"]).abs(), -table["sign_probability"]])
    return table.iloc[order].reset_index(drop=True)


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
