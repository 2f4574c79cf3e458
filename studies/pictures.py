"""How the studies' pictures look: colours of Okabe and Ito, and nothing that is told by colour alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

BLUE, ORANGE, GREEN, SKY = "#0072B2", "#D55E00", "#009E73", "#56B4E9"
LOOK = {"axes.spines.top": False, "axes.spines.right": False, "font.size": 9, "lines.markersize": 5}


def save(figure: Any, path: Path) -> None:
    """As PNG, the same bytes for the same picture."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, metadata={"Software": None})
    plt.close(figure)
