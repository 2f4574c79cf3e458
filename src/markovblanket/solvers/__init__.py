"""Solvers that draw ``W12`` given the rest, from a normal distribution with a structured pq x pq precision matrix.

:class:`Dense` factors that matrix at a cost of O((pq)^3), and is the reference in tests. :class:`Dual` never forms
it: its cost is linear in q, O(p m q) for each of a few conjugate gradient iterations. Both are deterministic
functions of the noise that the caller draws, and agree up to the tolerance of :class:`Dual`.
"""

from markovblanket.solvers.dense import Dense
from markovblanket.solvers.dual import Dual
from markovblanket.solvers.precision import CrossPrecision

__all__ = ["SOLVERS", "CrossPrecision", "Dense", "Dual"]

# The names by which :func:`markovblanket.estimate` knows them.
SOLVERS = {"dual": Dual, "dense": Dense}
