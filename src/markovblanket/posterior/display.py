"""Numbers and the edge table as readers see them: the one formatter of terminal, notebook, report and demo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

# What a terminal in any encoding can show.
PLAIN = str.maketrans({"−": "-", "–": "-"})


@dataclass(frozen=True)
class Field:
    """One column of an edge table: its title, the column of the data frame it sorts by, and the text of a cell."""

    title: str
    name: str
    text: Callable[[Any], str]
    is_number: bool = True


QUERY = Field("query", "query", lambda edge: str(edge.query), is_number=False)
VARIABLE = Field("variable", "variable", lambda edge: str(edge.variable), is_number=False)
PARTIAL = Field("partial correlation", "partial_correlation", lambda edge: signed(edge.partial_correlation))
INTERVAL = Field("95 % interval", "lower", lambda edge: f"{signed(edge.lower)} to {signed(edge.upper)}")
P_SIGN = Field("P(sign)", "sign_probability", lambda edge: percent(edge.sign_probability))
PROBABILITY = Field("probability", "probability", lambda edge: percent(edge.probability))
RHAT = Field("R-hat", "rhat", lambda edge: rhat(edge.rhat))
ESS = Field("ESS", "ess", lambda edge: number(edge.ess))


def edge_fields(edges: pd.DataFrame) -> list[Field]:
    """The columns of an edge table, in their order."""
    return [QUERY, VARIABLE, *number_fields(edges)]


def number_fields(edges: pd.DataFrame) -> list[Field]:
    """The columns of an edge table that hold numbers.

    The probability is that of the edge if the prior has exact zeros, else that of its sign.
    """
    return [PROBABILITY if has_probability(edges) else P_SIGN, PARTIAL, INTERVAL, RHAT, ESS]


def edge_rows(edges: pd.DataFrame, fields: Sequence[Field]) -> list[list[str]]:
    """The cells of an edge table as text, a list per edge."""
    return [[field.text(edge) for field in fields] for edge in edges.itertuples()]


def has_probability(edges: pd.DataFrame) -> bool:
    """Whether a table of edges has probabilities of their presence."""
    return "sign_probability" not in edges or not edges["probability"].isna().all()


# Numbers ----------------------------------------------------------------------------------------------------


def signed(value: float, digits: int = 2) -> str:
    """A number with its sign, by a true minus; exact zero without one.

    >>> signed(-0.345), signed(0.0), signed(float("nan"))
    ('−0.34', '0', '–')
    """
    return (f"{value:+.{digits}f}" if value else "0").replace("-", "−") if np.isfinite(value) else "–"


def number(value: float | None) -> str:
    """A count with commas between thousands.

    >>> number(1234.0), number(None)
    ('1,234', '–')
    """
    return f"{value:,.0f}" if value is not None and np.isfinite(value) else "–"


def figure(value: float) -> str:
    """A number as short as it can be: counts whole, large numbers with one digit after the point, small with two.

    >>> figure(1234.0), figure(12.34), figure(0.000123)
    ('1,234', '12.3', '0.00012')
    """
    if not np.isfinite(value):
        return "–"
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}" if abs(value) >= 10 else f"{value:.2g}"


def rhat(value: float) -> str:
    """An R-hat with three digits; a dash for chains that never move."""
    return f"{value:.3f}" if np.isfinite(value) else "–"


def percent(value: float, digits: int = 1) -> str:
    """A probability; what is nearly certain is not called certain.

    >>> percent(0.5), percent(0.99999), percent(1.0)
    ('50.0 %', '>99.9 %', '100.0 %')
    """
    if not np.isfinite(value):
        return "–"
    text = f"{100 * value:.{digits}f}"
    return f">{100 - 10**-digits:.{digits}f} %" if float(text) == 100 and value < 1 else f"{text} %"
