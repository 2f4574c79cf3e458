"""The normal prior: independent entries of fixed variance, a ridge penalty on every entry of ``W12``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from markovblanket.contracts import Array, Hyper
from markovblanket.priors.scale_mixture import ScaleMixture


@dataclass(frozen=True)
class Normal(ScaleMixture):
    """Independent normal entries, ``w ~ N(0, scale^2)``, which shrinks entries but does not select edges.

    Parameters
    ----------
    scale : float
        Standard deviation of an entry of ``W12``.

    Examples
    --------
    >>> from markovblanket.priors import Normal
    >>> Normal(scale=0.5)
    Normal(scale=0.5)
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        """Raise ValueError if the scale is out of range."""
        if not (isinstance(self.scale, int | float | np.floating) and 1e-100 < self.scale < 1e100):
            raise ValueError(f"Normal(scale={self.scale!r}): scale must be a number, positive and finite")

    def start(self, rng: np.random.Generator, p: int, q: int) -> tuple[Array, Hyper]:
        """Return the fixed variances ``scale^2``, and no hyperparameters."""
        return np.full((p, q), self.scale**2), {}

    def draw_scales(self, rng: np.random.Generator, W12: Array, hyper: Hyper) -> tuple[Array, Hyper]:
        """Return the fixed variances ``scale^2``, and the hyperparameters unchanged."""
        return np.full(W12.shape, self.scale**2), hyper
