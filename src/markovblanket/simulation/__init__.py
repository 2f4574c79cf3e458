"""Networks and tables whose truth is known, and scores of inferred edges against that truth."""

from markovblanket.simulation.networks import Simulated, network, simulate
from markovblanket.simulation.scores import Score, score

__all__ = ["Score", "Simulated", "network", "score", "simulate"]
