"""Figures of chains: density, trace and autocorrelation of one edge, and convergence diagnostics of the fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from scipy.stats import gaussian_kde

from markovblanket.contracts import Array
from markovblanket.plots._edges import plain
from markovblanket.plots.network import shown
from markovblanket.plots.style import POSITIVE, QUERY
from markovblanket.posterior.diagnostics import MAX_RHAT, MIN_ESS_PER_CHAIN
from markovblanket.posterior.edges import draws_of_edge
from markovblanket.posterior.posterior import Posterior

# Colours of chains, which colour-blind readers can tell apart.
CHAIN_COLOURS = ("#0b5394", "#e07b00", "#009e73", "#cc79a7", "#56b4e9", "#999999", "#d55e00", "#000000")
# Autocorrelations are drawn for at most so many lags.
MOST_LAGS = 60


def edge(posterior: Posterior, query: Any, variable: Any, *, axes: Any = None) -> Any:
    """Draw density, trace and autocorrelation of the partial correlation of one edge.

    Parameters
    ----------
    posterior : Posterior
        The fitted model.
    query, variable : object
        The edge's ends.
    axes : array of matplotlib.axes.Axes, optional
        Where to draw: three axes, by default on a new figure.

    Returns
    -------
    numpy.ndarray
        The three axes. The density is that of the nonzero draws; a bar shows the share of exact zeros.
    """
    draws = draws_of_edge(posterior.draws, query, variable, "partial_correlation").values
    if axes is None:
        axes = plt.subplots(1, 3, figsize=(10, 2.6), layout="constrained")[1]
    density(draws, ax=axes[0])
    trace(draws, ax=axes[1])
    autocorrelation(draws, ax=axes[2])
    axes[0].set_title(f"{shown(query)} ~ {shown(variable)}", fontsize=9, loc="left")
    return axes


def density(draws: Array, *, ax: Axes | None = None) -> Axes:
    """Draw the density of draws (chain, draw), all chains together, with a bar for the share of exact zeros."""
    ax = ax or plt.subplots(figsize=(3.5, 2.6), layout="constrained")[1]
    rest, zero = draws[draws != 0], float(np.mean(draws == 0))
    if len(rest) > 1 and np.ptp(rest) > 0:
        x = np.linspace(rest.min(), rest.max(), 200)
        y = (1 - zero) * gaussian_kde(rest)(x)
        ax.fill_between(x, y, color=POSITIVE, alpha=0.3, lw=0)
        ax.plot(x, y, color=POSITIVE, lw=1.2)
    if zero:
        top = ax.get_ylim()[1]
        ax.vlines(0, 0, top * zero, color=QUERY, lw=4)
        ax.annotate(f"{zero:.0%} exactly 0", (0, top * zero), fontsize=7, color=QUERY, ha="left", va="bottom")
    ax.set(xlabel="partial correlation", yticks=[], ylim=(0, None))
    return plain(ax)


def trace(draws: Array, *, ax: Axes | None = None) -> Axes:
    """Plot the draws (chain, draw) in their order, a line per chain."""
    ax = ax or plt.subplots(figsize=(3.5, 2.6), layout="constrained")[1]
    for k, chain in enumerate(draws):
        ax.plot(chain, color=CHAIN_COLOURS[k % len(CHAIN_COLOURS)], lw=0.5, alpha=0.8)
    ax.set(xlabel="draw", ylabel="partial correlation")
    return plain(ax)


def autocorrelation(draws: Array, *, ax: Axes | None = None) -> Axes:
    """Plot autocorrelation against lag, a line per chain; the band is that of independent draws."""
    ax = ax or plt.subplots(figsize=(3.5, 2.6), layout="constrained")[1]
    lags = np.arange(min(MOST_LAGS, draws.shape[1]))
    for k, chain in enumerate(draws):
        ax.plot(lags, autocorrelations(chain, len(lags)), color=CHAIN_COLOURS[k % len(CHAIN_COLOURS)], lw=1)
    bound = 2 / np.sqrt(draws.shape[1])
    ax.axhspan(-bound, bound, color="0.9", zorder=0)
    ax.set(xlabel="lag", ylabel="autocorrelation", ylim=(min(-0.2, -bound), 1.02))
    return plain(ax)


def autocorrelations(chain: Array, lags: int) -> Array:
    """Return the autocorrelations of one chain by the fast Fourier transform; 1, 0, 0, ... if it never moves."""
    n = len(chain)
    spectrum = np.fft.rfft(chain - chain.mean(), 2 * n)
    products = np.fft.irfft(np.abs(spectrum) ** 2)[:lags]
    return products / products[0] if products[0] > 0 else np.eye(1, lags)[0]


def convergence(posterior: Posterior, *, axes: Any = None) -> Any:
    """Draw R-hat and effective sample sizes of the reported quantities and of the selected edges.

    Parameters
    ----------
    posterior : Posterior
        The fitted model.
    axes : array of matplotlib.axes.Axes, optional
        Where to draw: two axes, by default on a new figure.

    Returns
    -------
    numpy.ndarray
        The two axes: the worst value of each block of quantities, and a line at the required value.
    """
    table = posterior.diagnostics().table
    if axes is None:
        axes = plt.subplots(1, 2, figsize=(8, 0.9 + 0.32 * max(len(table), 2)), layout="constrained", sharey=True)[
            1
        ]
    y = np.arange(len(table))[::-1]
    least = MIN_ESS_PER_CHAIN * posterior.draws.sizes["chain"]
    smallest = table[["ess_bulk", "ess_tail"]].min(axis=1)
    _against(axes[0], table["rhat"].clip(upper=2.0), y, MAX_RHAT, table["rhat"] <= MAX_RHAT, "worst R-hat")
    _against(axes[1], smallest, y, least, smallest >= least, "smallest effective sample size")
    axes[1].set_xscale("log")
    axes[0].set_yticks(y, [f"{name} ({row.quantities})" for name, row in table.iterrows()], fontsize=8)
    return axes


def _against(ax: Axes, value: Any, y: Any, wanted: float, good: Any, label: str) -> None:
    """Draw values against the required one: dots where it is reached, crosses where not."""
    good = np.asarray(good, dtype=bool)
    value = np.asarray(value, dtype=float)
    ax.axvline(wanted, color="0.4", lw=1, ls="--")
    ax.plot(value[good], y[good], "o", color=POSITIVE, ms=6)
    ax.plot(value[~good], y[~good], "x", color=QUERY, ms=8, mew=2)
    ax.set_xlabel(label)
    ax.set_ylim(-0.7, len(y) - 0.3)
    plain(ax)
