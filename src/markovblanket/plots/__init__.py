"""Figures of a posterior, one function each, on matplotlib axes: ``markovblanket.plots.blanket(posterior)``."""

from markovblanket.plots.network import blanket, network

__all__ = ["blanket", "network"]
