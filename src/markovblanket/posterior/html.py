"""Results as notebooks show them: plain HTML without scripts, in the notebook's own colours, light or dark.

Every text is escaped here and nowhere else. Styles are attributes, which notebooks leave alone where they remove
style sheets; the classes keep a notebook from setting names such as ``$x$`` as mathematics.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import pandas as pd

from markovblanket.posterior.display import edge_fields, edge_rows

MOST_EDGES, MOST_NAMES = 15, 8
# Seen on white and on black alike.
GREY, GOOD, BAD = "rgba(128,128,128,.45)", "#2e9d5b", "#e5484d"
CELL = f"padding:.15em .7em;border-bottom:1px solid {GREY};vertical-align:top;"
SIDE = {
    False: "text-align:left;overflow-wrap:anywhere;max-width:24em;",
    True: "text-align:right;white-space:nowrap;",
}


def card(*parts: str) -> str:
    """Parts below each other; only figures of one width, so that columns of them can be compared."""
    style = "font-variant-numeric:tabular-nums;line-height:1.45;max-width:60em;"
    return f'<div class="mathjax_ignore tex2jax_ignore" style="{style}">{"".join(parts)}</div>'


def heading(title: str, facts: Iterable[str]) -> str:
    """What was asked, and of what data."""
    below = " · ".join(map(escape, facts))
    return f'<div><strong>{escape(title)}</strong></div><div style="opacity:.8">{below}</div>'


def verdict(good: bool, text: str) -> str:
    """Whether the chains agree; the colour only repeats what the words say."""
    said = escape(text) if good else f"<strong>{escape(text)}</strong>"
    colour = GOOD if good else BAD
    return f'<div style="border-left:4px solid {colour};padding-left:.6em;margin:.4em 0;">{said}</div>'


def note(text: str) -> str:
    """A line in small print."""
    return f'<div style="opacity:.8;font-size:90%">{escape(text)}</div>'


def table(columns: Sequence[tuple[str, bool]], rows: Iterable[Sequence[str]]) -> str:
    """Columns are given by their names, and whether they hold figures, which stand to the right."""

    def line(cells: Sequence[str], tag: str) -> str:
        pairs = zip(cells, (figures for _, figures in columns), strict=True)
        texts = [f'<{tag} style="{CELL}{SIDE[right]}">{escape(cell)}</{tag}>' for cell, right in pairs]
        return f"<tr>{''.join(texts)}</tr>"

    head, body = line([name for name, _ in columns], "th"), "".join(line(row, "td") for row in rows)
    style = "border-collapse:collapse;margin:.3em 0;"
    return f'<table style="{style}"><thead>{head}</thead><tbody>{body}</tbody></table>'


def edges(frame: pd.DataFrame) -> str:
    """The first rows of a table of edges, and how many more there are."""
    if not len(frame):
        return note("No edge is selected by the default rule.")
    fields = edge_fields(frame)
    rows = edge_rows(frame.head(MOST_EDGES), fields)
    more = note(f"and {len(frame) - MOST_EDGES:,} more, in .edges().") if len(frame) > MOST_EDGES else ""
    columns = [(field.title, field.is_number) for field in fields]
    return table(columns, rows) + more


def listed(names: Sequence[object]) -> str:
    """The first names of a list, and how many more there are.

    >>> listed(["T", "N"]), listed(list("abcdefghij"))
    ('T, N', 'a, b, c, d, e, f, g, h and 2 more')
    """
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return ", ".join(map(str, names[:MOST_NAMES])) + more
