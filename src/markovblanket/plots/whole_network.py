"""A drawing of the edges of a scan as one network, one connected component beside the other."""

from __future__ import annotations

from matplotlib.axes import Axes

from markovblanket.fitting.scan import Scan
from markovblanket.plots.network import say_how_many, springs


def whole(scan: Scan, rule: str = "or", *, most: int = 500, ax: Axes | None = None) -> Axes:
    """Draw the edges of a scan as one network.

    Parameters
    ----------
    scan : Scan
        The fits of a scan.
    rule : str
        Which edges to draw, as in :meth:`Scan.edges`.
    most : int
        Draw at most so many edges, the surest; if there are more, the title says so.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a figure as large as the network needs.

    Returns
    -------
    matplotlib.axes.Axes
        The drawing, with a line per edge whose gid is ``"query~variable"``. Query variables are red, unless all
        variables were queries; other variables without an edge are left out.
    """
    edges = scan.edges(rule)
    asked = {name for query in scan.fits["query"] for name in query}
    red = set() if asked >= set(scan.variables) else asked
    ax = springs([name for name in scan.variables if name in red], edges.head(most), ax=ax)
    return say_how_many(ax, len(edges), most)
