"""Scores of inferred edges against the known truth, signs included."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from markovblanket.simulation.networks import require


@dataclass(frozen=True)
class Score:
    """Counts of inferred edges that are true, false and missed.

    ``found``: true edges inferred with the right sign. ``false``: inferred edges that are not true edges.
    ``missed``: true edges not found, among them ``wrong_sign``: those inferred with the wrong sign.
    """

    found: int
    false: int
    missed: int
    wrong_sign: int

    @property
    def precision(self) -> float:
        """``found / (found + false)``, and 1 when both are 0, as no claim is false."""
        return self.found / (self.found + self.false) if self.found + self.false else 1.0

    @property
    def recall(self) -> float:
        """``found / (found + missed)``, and 1 when both are 0, as there was nothing to find."""
        return self.found / (self.found + self.missed) if self.found + self.missed else 1.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, 0 when both are 0."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def score(truth: pd.DataFrame, edges: pd.DataFrame) -> Score:
    """Compare inferred edges with the true ones, signs included.

    An edge inferred with the wrong sign counts as missing (Kaufmann et al. 2016), as if it were not inferred:
    it lowers recall and leaves precision unchanged; `Score.wrong_sign` counts these edges, for a stricter
    measure. An inferred weight of exactly 0 has no sign, so it is wrong for a true edge.

    Parameters
    ----------
    truth : pandas.DataFrame
        `Simulated.truth` or `Simulated.query_edges`: every pair, with weight 0 where there is no edge.
    edges : pandas.DataFrame
        Columns ``query``, ``variable``, and ``partial_correlation``, as of :meth:`Posterior.edges`, or ``weight``,
        an entry of the precision matrix, which has the opposite sign; a row for each inferred edge and no others.

    Returns
    -------
    Score
        Counts, with ``precision``, ``recall`` and ``f1``.

    Examples
    --------
    >>> truth = pd.DataFrame({"query": "Q", "variable": ["a", "b", "c", "d"], "weight": [0.5, -0.5, 0.8, 0]})
    >>> edges = pd.DataFrame({"query": "Q", "variable": ["a", "b", "d"], "weight": [0.4, 0.3, 0.1]})
    >>> score(truth, edges)
    Score(found=1, false=1, missed=2, wrong_sign=1)
    >>> score(truth, edges).f1
    0.4
    """
    true, inferred = _weights(truth, "truth"), _weights(edges, "edges")
    unknown = inferred.index[~inferred.index.isin(true.index)].tolist()
    require(not unknown, f"edges has the pairs {unknown[:3]}, which truth does not have")
    sign, claim = np.sign(true.reindex(inferred.index).to_numpy()), np.sign(inferred.to_numpy())
    found, wrong = (int(np.sum(agree & (sign != 0))) for agree in (sign == claim, sign != claim))
    missed = int(np.count_nonzero(true)) - found
    return Score(found=found, false=int(np.sum(sign == 0)), missed=missed, wrong_sign=wrong)


def _weights(frame: pd.DataFrame, role: str) -> pd.Series[float]:
    """Return weights by pair, or negative partial correlations; refuse repeated pairs and missing weights."""
    if "weight" not in frame and "partial_correlation" in frame:
        frame = frame.assign(weight=-frame["partial_correlation"])
    lacking = sorted({"query", "variable", "weight"}.difference(frame.columns))
    require(not lacking, f"{role} lacks the columns {lacking}")
    weight = frame.set_index(["query", "variable"])["weight"].astype(float)
    twice = weight.index[weight.index.duplicated()].tolist()
    require(not twice, f"{role} has the pairs {twice[:3]} more than once")
    absent = weight.index[weight.isna()].tolist()
    require(not absent, f"{role} has no weight for the pairs {absent[:3]}")
    return weight
