"""Figures of a posterior, one function each, on matplotlib axes: ``markovblanket.plots.blanket(posterior)``."""

from markovblanket.plots._edges import checks, explained, forest, heatmap, sign_curve
from markovblanket.plots.chains import autocorrelation, convergence, density, edge, trace
from markovblanket.plots.network import blanket, network
from markovblanket.plots.whole_network import whole

__all__ = [
    "autocorrelation",
    "blanket",
    "checks",
    "convergence",
    "density",
    "edge",
    "explained",
    "forest",
    "heatmap",
    "network",
    "sign_curve",
    "trace",
    "whole",
]
