"""Small data sets with exact answers, for whatever draws from the spike-and-slab posterior.

Every answer is computed when it is first asked for (half a second for four variables, less for three); its
standard error is in it, and at most one unit of the fourth digit in an inclusion probability.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from known_answers.exact import Array
from known_answers.exact_networks import Exact, block, by_class, network


@dataclass(frozen=True)
class SmallCase:
    """``n`` rows with scatter ``S``; the first ``query`` of the first ``P`` variables are the query.

    The block are the first P variables, the rest all others; P = d is the whole network. ``pi`` and ``v`` are
    those of the pairs that touch the query, and of all others.
    """

    name: str
    n: int
    S: Array
    query: int
    P: int
    pi: tuple[float, float]
    v: tuple[float, float]

    def __str__(self) -> str:
        return self.name

    @property
    def d(self) -> int:
        """Variables."""
        return len(self.S)

    @property
    def whole(self) -> bool:
        """Whether nothing is outside the block."""
        return self.d == self.P

    @property
    def X(self) -> Array:
        """A table of n rows with this scatter; its columns are not centred."""
        values, vectors = np.linalg.eigh(self.S)
        rows = (np.sqrt(np.maximum(values, 0))[:, None] * vectors.T)[np.argsort(-values)]
        return np.concatenate([rows, np.zeros((max(self.n - self.d, 0), self.d))])[: self.n]

    @cached_property
    def exact(self) -> Exact:
        """Inclusion probabilities and means of ``(W11, W12)``, P x d."""
        return self.solve()

    def solve(self, *, last: int = -1, log2: int = 10, scrambles: int = 8) -> Exact:
        """With another number of points or, for a whole network, by another integral."""
        pi, v = by_class(self.d, self.query, *self.pi), by_class(self.d, self.query, *self.v)
        if self.whole:
            return network(self.n, self.S, pi, v, last=last, log2=log2, scrambles=scrambles)
        return block(self.n, self.S, self.P, pi, v, log2=log2, scrambles=scrambles)


def correlated(n: int, d: int, **correlation: float) -> Array:
    """The scatter of n rows of unit mean square with these correlations: ``r01=0.5``; all others are zero."""
    R = np.eye(d)
    for pair, r in correlation.items():
        i, k = int(pair[1]), int(pair[2])
        R[i, k] = R[k, i] = r
    if np.linalg.eigvalsh(R)[0] <= 0 or n < d:
        raise ValueError("no such table")
    return n * R


def scatter(*rows: tuple[float, ...]) -> Array:
    """Of these rows."""
    return np.array(rows).T @ np.array(rows)


ONE, TWO = ((0.3, 0.3), (0.4, 0.4)), ((0.2, 0.5), (0.6, 0.2))  # (pi, v) alike for all pairs, or by class
TWO_ROWS = scatter((1.5, 1.2, -0.8), (-0.9, -1.1, 1.6))
THREE_ROWS = scatter((1.5, 1.2, -0.8, 0.2), (-0.9, -1.1, 1.6, 1.0), (0.4, 0.1, 0.3, -1.5))
TWINS = correlated(60, 4, r01=0.2, r02=0.4, r03=0.41, r12=0.3, r13=0.3, r23=0.98)
TWINS_AHEAD = correlated(80, 4, r01=0.3, r02=0.29, r12=0.98, r13=0.3, r23=0.3)

SMALL_CASES = [
    # Whole networks of three: a strong edge; a third variable that is tied to one of two near-duplicates, and it
    # is open to which (the relocation's test); fewer rows than variables.
    SmallCase("3, strong edge", 30, correlated(30, 3, r01=0.7, r12=0.3, r02=0.2), 3, 3, *ONE),
    SmallCase("3, near-duplicates", 60, correlated(60, 3, r01=0.98, r02=0.45, r12=0.44), 3, 3, *ONE),
    SmallCase("3, two rows", 2, TWO_ROWS, 3, 3, (0.5, 0.5), (0.8, 0.8)),
    # Whole networks of four, two of them with classes of pairs.
    SmallCase("4, weak", 25, correlated(25, 4, r01=0.35, r12=-0.3, r23=0.35, r03=0.15), 4, 4, *ONE),
    SmallCase("4, near-duplicates, classes", 80, TWINS_AHEAD, 1, 4, *TWO),
    SmallCase("4, three rows, classes", 3, THREE_ROWS, 2, 4, *TWO),
    # A rest of one and of two variables; near-duplicates in it compete for an edge; fewer rows than variables.
    SmallCase("2 + 1, strong edge", 30, correlated(30, 3, r01=0.4, r12=0.7, r02=0.35), 2, 2, *ONE),
    SmallCase("2 + 2, weak, classes", 12, correlated(12, 4, r01=0.4, r02=0.3, r13=-0.4, r23=0.3), 1, 2, *TWO),
    SmallCase("2 + 2, near-duplicates, classes", 60, TWINS, 1, 2, *TWO),
    SmallCase("2 + 2, three rows", 3, THREE_ROWS, 2, 2, *ONE),
    # Near-duplicates on either side of the border between block and rest.
    SmallCase("3 + 1, near-duplicates, classes", 60, TWINS, 1, 3, *TWO),
]
