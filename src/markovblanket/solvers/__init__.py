"""Drawing ``W12`` given the rest: a normal law with a structured precision of size pq x pq.

:class:`Dense` factorises that matrix, O((pq)^3), and is the oracle. :class:`Dual` never forms it: linear in q,
O(p m q) for each of a handful of conjugate gradient iterations. Both are deterministic functions of the noise
that the caller draws, and agree to rounding.
"""

from markovblanket.solvers.dense import Dense
from markovblanket.solvers.dual import Dual
from markovblanket.solvers.precision import CrossPrecision

__all__ = ["SOLVERS", "CrossPrecision", "Dense", "Dual"]

# The names by which :func:`markovblanket.estimate` knows them.
SOLVERS = {"dual": Dual, "dense": Dense}
