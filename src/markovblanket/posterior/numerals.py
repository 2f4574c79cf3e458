"""Numbers as readers see them."""

from __future__ import annotations

import numpy as np


def signed(value: float, digits: int = 2) -> str:
    """With its sign, and a true minus; what is exactly zero is just that.

    >>> signed(-0.345), signed(0.0), signed(float("nan"))
    ('−0.34', '0', '–')
    """
    return (f"{value:+.{digits}f}" if value else "0").replace("-", "−") if np.isfinite(value) else "–"


def number(value: float | None) -> str:
    """A count, with commas.

    >>> number(1234.0), number(None)
    ('1,234', '–')
    """
    return f"{value:,.0f}" if value is not None and np.isfinite(value) else "–"


def figure(value: float) -> str:
    """A count, or what is no count: large with a digit after the point, small with two digits.

    >>> figure(1234.0), figure(12.34), figure(0.000123)
    ('1,234', '12.3', '0.00012')
    """
    if not np.isfinite(value):
        return "–"
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}" if abs(value) >= 10 else f"{value:.2g}"


def rhat(value: float) -> str:
    """Three digits; chains that never move have none."""
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
