"""Which edges are on the page, and where its slider starts and ends.

The slider moves in whole per cent: the least probability of inclusion, or the least credibility level if the prior
has no exact zeros. At every place the page has the rows of ``edges(inclusion=...)`` or ``edges(level=...)``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from markovblanket import selection
from markovblanket.contracts import Array
from markovblanket.posterior import Posterior

# So many edges at most, lest the page grow heavy; the slider ends where there would be more.
MOST = 2000
LAST = 99


@dataclass(frozen=True, eq=False)
class Slider:
    """How sure an edge must be: the rule, what it looks at (query by variable), and the ends of the slider."""

    rule: str
    sure: Array
    least: int
    start: int
    usual: int

    @classmethod
    def of(cls, posterior: Posterior) -> Slider:
        """By inclusion where the prior has exact zeros, by credibility else; it starts at the default rule."""
        included = posterior.inclusion_either.to_numpy()
        if np.isnan(included).any():
            rule, sure, floor, usual = "level", posterior.sign_probability.to_numpy(), 50, selection.DEFAULT_LEVEL
        else:
            rule, sure, floor, usual = "inclusion", included, 1, selection.least_inclusion(included)
        least = next((k for k in range(floor, LAST) if passing(rule, sure, k).sum() <= MOST), LAST)
        return cls(rule, sure, least, max(least, round(100 * usual)), round(100 * usual))

    def at(self, percent: int) -> selection.Mask:
        """Which pairs pass."""
        return passing(self.rule, self.sure, percent)

    def on_page(self) -> selection.Mask:
        """The pairs that pass at the least place; if those are too many still, the surest of them."""
        mask = self.at(self.least)
        if mask.sum() > MOST:
            order = np.argsort(-self.sure, axis=None, kind="stable")[:MOST]
            mask = np.zeros(self.sure.size, dtype=bool)
            mask[order] = True
            mask = mask.reshape(self.sure.shape)
        return mask

    def stages(self) -> list[int]:
        """Places at which the picture is laid out anew: where half of the edges are gone, and at the start."""
        found = [self.least]
        for k in range(self.least + 1, LAST + 1):
            left = self.at(k).sum()
            if k == self.start or 6 <= left <= self.at(found[-1]).sum() / 2:
                found.append(k)
        return found


def passing(rule: str, sure: Array, percent: int) -> selection.Mask:
    """Pairs that the rule selects at so many per cent."""
    least = percent / 100
    return selection.by_inclusion(sure, least) if rule == "inclusion" else selection.by_level(sure, least)


def edges_on_page(posterior: Posterior, slider: Slider) -> pd.DataFrame:
    """The table of edges, surest first, with ``sure``, what the slider looks at."""
    i, j = np.nonzero(slider.on_page())
    edges = posterior.edges_at(i, j)
    column = "inclusion" if slider.rule == "inclusion" else "sign_probability"
    return edges.assign(sure=edges[column])


def shown_at(edges: pd.DataFrame, slider: Slider, percent: int) -> selection.Mask:
    """Which rows of the table the slider shows."""
    return passing(slider.rule, edges["sure"].to_numpy(), percent)
