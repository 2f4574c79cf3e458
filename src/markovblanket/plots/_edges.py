"""Figures of edges: intervals, signs, a heat map; and of explained variance and predictive checks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.lines import Line2D

from markovblanket.plots.network import shown
from markovblanket.plots.style import NEGATIVE, POSITIVE, QUERY
from markovblanket.posterior.edges import once
from markovblanket.posterior.posterior import Posterior

# White at zero; the ends have the colours of the signs.
DIVERGING = LinearSegmentedColormap.from_list("sign", [NEGATIVE, "white", POSITIVE])


def forest(
    posterior: Posterior,
    probability: float | None = None,
    *,
    fdr: float | None = None,
    level: float | None = None,
    most: int = 40,
    ax: Axes | None = None,
) -> Axes:
    """Draw the credible intervals of the selected edges, the surest on top.

    Parameters
    ----------
    posterior : Posterior
        The fitted model.
    probability, fdr, level : float, optional
        The rule that selects edges, as in :meth:`Posterior.edges`, whose intervals are drawn.
    most : int
        Draw at most so many edges, the surest.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        A row per edge: mean and interval of its partial correlation if it is present; open circles for negative
        ones.
    """
    edges = posterior.edges(probability, fdr=fdr, level=level).head(most)
    ax = ax or plt.subplots(figsize=(6, 1.0 + 0.24 * max(len(edges), 2)), layout="constrained")[1]
    y = np.arange(len(edges))[::-1]
    for height, edge in zip(y, edges.itertuples(), strict=True):
        positive = edge.partial_correlation > 0
        colour, face = (POSITIVE, POSITIVE) if positive else (NEGATIVE, "white")
        ends, gid = [edge.lower, edge.upper], f"{edge.query}~{edge.variable}"
        ax.plot(ends, [height, height], color=colour, lw=1.6, gid=gid)
        ax.plot(edge.partial_correlation, height, "o", color=colour, mfc=face, ms=5)
    ax.axvline(0, color="0.3", lw=0.8)
    ax.set_yticks(y, [f"{shown(edge.query)} ~ {shown(edge.variable)}" for edge in edges.itertuples()], fontsize=8)
    _label_signs(ax, "partial correlation, if present")
    return ax


def sign_curve(
    posterior: Posterior,
    probability: float | None = None,
    *,
    fdr: float | None = None,
    level: float | None = None,
    most: int = 1000,
    ax: Axes | None = None,
) -> Axes:
    """Draw the probability of the likelier sign of each edge, the surest first, and mark the selected edges.

    Parameters
    ----------
    posterior : Posterior
        The fitted model.
    probability, fdr, level : float, optional
        The rule that selects edges, as in :meth:`Posterior.edges`.
    most : int
        Draw at most so many edges, the surest.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Probability of the likelier sign against rank, selected edges filled.
    """
    pairs = once(np.ones(posterior.sign_probability.shape))
    signs = posterior.sign_probability.to_numpy()[pairs]
    chosen = posterior.selected(probability, fdr=fdr, level=level).to_numpy()[pairs]
    order = np.argsort(-signs, kind="stable")[:most]
    rank = np.arange(1, len(order) + 1)
    ax = ax or plt.subplots(figsize=(5.5, 3.4), layout="constrained")[1]
    for part, face, word in ((chosen, POSITIVE, "selected"), (~chosen, "white", "not selected")):
        drawn_here = part[order]
        label = f"{word} ({part.sum():,})"
        ax.plot(rank[drawn_here], signs[order][drawn_here], "o", ms=4, mec=POSITIVE, mfc=face, label=label)
    ax.set(xlabel="edge, the surest first", ylabel="probability of the likelier sign", ylim=(-0.02, 1.02))
    if len(order) > 50:
        ax.set_xscale("log")
    ax.legend(frameon=False, fontsize=8)
    return plain(ax)


def heatmap(posterior: Posterior, *, most: int = 60, ax: Axes | None = None) -> Axes:
    """Draw the mean partial correlations as a heat map, query by variable.

    Parameters
    ----------
    posterior : Posterior
        The fitted model.
    most : int
        Draw at most so many variables: those whose surest edge is surest, in that order; those of a whole network
        in the order of the table.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        An image of partial correlations averaged over all draws, zero where an edge is absent; a dot marks each
        selected edge, so that it can be recognised without colours.
    """
    rows, columns = _of_interest(posterior, most)
    partial = _averaged(posterior, rows, columns).to_numpy()
    ax = ax or plt.subplots(figsize=(2.5 + 0.19 * len(columns), 1.6 + 0.25 * len(rows)), layout="constrained")[1]
    limit = max(float(np.nanmax(np.abs(partial), initial=0.0)), np.finfo(float).tiny)
    image = ax.imshow(partial, cmap=DIVERGING, vmin=-limit, vmax=limit, aspect="auto")
    ax.set_facecolor("0.92")  # a variable with itself
    ax.plot(*np.nonzero(posterior.selected().loc[rows, columns].to_numpy())[::-1], "k.", ms=4)
    ax.set_xticks(range(len(columns)), [shown(name) for name in columns], rotation=90, fontsize=7)
    ax.set_yticks(range(len(rows)), [shown(name) for name in rows], fontsize=8)
    ax.figure.colorbar(image, ax=ax, label="partial correlation", shrink=0.9)
    return ax


def _of_interest(posterior: Posterior, most: int) -> tuple[list[Any], list[Any]]:
    """Return the rows and columns of a heat map: query variables, and the variables with the surest edges."""
    sure = posterior.sign_probability.max(axis=0).sort_values(ascending=False, kind="stable").index[:most].tolist()
    if posterior.variables:
        return posterior.query, sure
    kept = [name for name in posterior.query if name in set(sure)]
    return kept, kept


def _averaged(posterior: Posterior, rows: list[Any], columns: list[Any]) -> pd.DataFrame:
    """Return the mean partial correlations of these variables; missing of a variable with itself."""
    names = pd.Index(posterior.names)
    row, column = names.isin(rows), names.isin(columns)
    i, k = once(np.ones(posterior.inclusion.shape))
    drawn = (row[i] & column[k]) | (row[k] & column[i])
    pairs = posterior.edges_at(i[drawn], k[drawn], detail=True)
    turned = pairs.rename(columns={"query": "variable", "variable": "query"})  # seen from their other ends
    table = pd.concat([pairs, turned]).pivot(
        index="query", columns="variable", values="partial_correlation_averaged"
    )
    return table.reindex(index=rows, columns=columns)


def explained(posterior: Posterior, level: float = 0.95, *, ax: Axes | None = None) -> Axes:
    """Draw the R2 of each query variable given the rest, with its credible interval.

    Parameters
    ----------
    posterior : Posterior
        The fitted model.
    level : float
        The level of the interval.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        A row per query variable.
    """
    table = posterior.r2(level)
    return _intervals(table, ax, "R2: share of variance explained by the rest", (0.0, 1.0))


def checks(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw predictive checks: observed statistics relative to their predictive intervals.

    Parameters
    ----------
    table : pandas.DataFrame
        The result of :meth:`Posterior.check`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        A row per query variable and check; the band is the interval of the table; crosses lie outside.
    """
    middle, half = (table["lower"] + table["upper"]) / 2, (table["upper"] - table["lower"]) / 2
    place = ((table["observed"] - middle) / half.where(half > 0)).clip(-3, 3).to_numpy()
    y = np.arange(len(table))[::-1]
    ax = ax or plt.subplots(figsize=(5.5, 1.0 + 0.2 * len(table)), layout="constrained")[1]
    ax.axvspan(-1, 1, color="0.9")
    inside = np.abs(place) <= 1
    ax.plot(place[inside], y[inside], "o", color=POSITIVE, ms=4)
    ax.plot(place[~inside], y[~inside], "x", color=QUERY, ms=6, mew=1.8)
    names = [f"{shown(row.query)}: {row.check}" for row in table.itertuples()]
    ax.set_yticks(y, names, fontsize=7)
    ax.set(xlim=(-3.1, 3.1), xticks=[-1, 0, 1], xlabel="observed, against the model's band")
    return plain(ax)


def _intervals(table: pd.DataFrame, ax: Axes | None, label: str, limits: tuple[float, float]) -> Axes:
    """Draw mean and interval of each row of the table, the first on top."""
    y = np.arange(len(table))[::-1]
    ax = ax or plt.subplots(figsize=(5.5, 1.0 + 0.26 * max(len(table), 2)), layout="constrained")[1]
    ax.hlines(y, table["lower"], table["upper"], color=POSITIVE, lw=1.8)
    ax.plot(table["mean"], y, "o", color=POSITIVE, ms=5)
    ax.set_yticks(y, [shown(name) for name in table.index], fontsize=8)
    ax.set(xlim=limits, xlabel=label)
    return plain(ax)


def _label_signs(ax: Axes, label: str) -> None:
    """Label the axis, with a legend for the colours of the signs."""
    handles = [
        Line2D([], [], color=POSITIVE, marker="o", lw=1.6, ms=5, label="positive partial correlation"),
        Line2D([], [], color=NEGATIVE, marker="o", mfc="white", lw=1.6, ms=5, label="negative"),
    ]
    ax.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=2, frameon=False, fontsize=8)
    ax.set_xlabel(label)
    plain(ax)


def plain(ax: Axes) -> Axes:
    """Hide the top and the right side of the frame, and return the axes."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax
