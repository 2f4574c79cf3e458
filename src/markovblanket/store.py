"""Where the draws of a chain go."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from markovblanket.contracts import Array, Draw


def quantities(draw: Draw) -> dict[str, Array | float]:
    """The named quantities of a draw that are kept."""
    info = draw.info
    effort = {"iterations": info.iterations, "residual": info.residual, "scale_factor": info.scale_factor}
    matrices = {
        "W11": draw.W11,
        "W12": draw.W12,
        "W22_diagonal": draw.W22_diagonal,
        "explained": draw.explained,
    }
    return {**matrices, **effort, **draw.hyper}


@dataclass
class MemoryStore:
    """Every draw in memory, in arrays allocated once."""

    draws: int
    arrays: dict[str, Array] = field(default_factory=dict, init=False)
    latent: list[Array] = field(default_factory=list, init=False)
    filled: int = field(default=0, init=False)

    def append(self, draw: Draw) -> None:
        """Take the next draw."""
        kept = quantities(draw)
        if not self.arrays:
            self.arrays = {name: np.empty((self.draws, *np.shape(value))) for name, value in kept.items()}
        for name, value in kept.items():
            self.arrays[name][self.filled] = value
        if draw.latent is not None:
            self.latent.append(draw.latent)
        self.filled += 1

    def collect(self) -> dict[str, Array]:
        """The draws so far, by name; the first axis counts draws, for ``latent`` those that brought it."""
        kept = {name: array[: self.filled] for name, array in self.arrays.items()}
        return kept | ({"latent": np.stack(self.latent)} if self.latent else {})
