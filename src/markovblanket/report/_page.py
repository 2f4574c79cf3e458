"""Render the page from a template that escapes every name, with script and style inside."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

import jinja2
import numpy as np
import pandas as pd
from markupsafe import Markup

from markovblanket.plots.chains import CHAIN_COLOURS
from markovblanket.plots.style import NEGATIVE, POSITIVE, QUERY
from markovblanket.posterior.display import Field, edge_fields, edge_rows, figure, number, percent, rhat, signed
from markovblanket.posterior.posterior import Posterior
from markovblanket.report import _curves, _sections, _slider

# These characters could end a script element, or a line of it; escaped, a JSON reader takes them for the same.
ESCAPED_IN_SCRIPT = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}
# Columns of the table that other tables of edges have no room for.
DIRECTION = Field("direction", "direction", lambda edge: str(edge.direction).replace("-", "−"))
BAYES_FACTOR = Field("Bayes factor", "bayes_factor", lambda edge: factor(edge.bayes_factor))
# Columns of the numbers for the script, and of the files that it saves.
NUMBERS = ("probability", "partial_correlation", "lower", "upper", "direction", "bayes_factor", "rhat", "ess")


def render(posterior: Posterior) -> str:
    """The whole report as HTML text."""
    slider = _slider.Slider.of(posterior)
    share = _slider.Share.of(posterior, slider.on_page())
    edges = _slider.edges_on_page(posterior, slider, share)
    drawn = _slider.draw(posterior, slider, share, edges)
    fields = fields_of(edges)
    page = environment().from_string(text_of("page.html"))
    return page.render(
        slider=slider,
        share=share,
        shown=int(slider.shown(edges, slider.start).sum()),
        unknown=slider.rule == "probability" and bool(edges["probability"].isna().any()),
        reach=reach(edges),
        edges=edges.to_dict("records"),
        fields=fields,
        cells=edge_rows(edges, fields),
        picture=drawn,
        data_block=embedded(payload(posterior, slider, share, edges, drawn)),
        **inlined(),
        **said(posterior),
    )


def fields_of(edges: pd.DataFrame) -> list[Field]:
    """The columns of the table of edges, in their order; without a Bayes factor if there is none."""
    *first, rhat, ess = edge_fields(edges)
    return [*first, DIRECTION, *[BAYES_FACTOR] * (not edges["bayes_factor"].isna().all()), rhat, ess]


def factor(value: float) -> str:
    """A Bayes factor in few digits.

    >>> factor(3.21), factor(12345.0), factor(0.0004), factor(float("inf"))
    ('3.2', '>1,000', '<0.001', '>1,000')
    """
    return ">1,000" if value > 1000 else "<0.001" if value < 0.001 else figure(value)


def inlined() -> dict[str, Any]:
    """Script, style and library, and their hashes, by which the content security policy runs no others."""
    style = environment().from_string(text_of("page.css")).render(colours())
    parts = {
        "library": text_of("third_party/d3.min.js"),
        "script": text_of("curves.js") + text_of("page.js"),
        "style": style,
    }
    licence = {"library_licence": text_of("third_party/d3.LICENSE")}
    return {name: Markup(text) for name, text in parts.items()} | licence | {"hashes": hashes(parts)}


def hashes(parts: Mapping[str, str]) -> dict[str, str]:
    """The SHA-256 of each text, as a content security policy writes it."""
    digests = {name: hashlib.sha256(text.encode()).digest() for name, text in parts.items()}
    return {name: f"sha256-{base64.b64encode(digest).decode()}" for name, digest in digests.items()}


def said(posterior: Posterior) -> dict[str, Any]:
    """The contents of the sections other than the blanket."""
    return {
        "asked": _sections.asked(posterior),
        "data": _sections.data(posterior),
        "convergence": _sections.convergence(posterior),
        "checks": _sections.checks(posterior),
        "groups": _sections.groups(posterior),
        "explained": _sections.explained(posterior),
        "reproduction": _sections.reproduction(posterior),
    }


def payload(
    posterior: Posterior,
    slider: _slider.Slider,
    share: _slider.Share | None,
    edges: pd.DataFrame,
    drawn: dict[str, Any],
) -> dict[str, Any]:
    """The data for the script: numbers of edges, positions of nodes, curves."""
    names = [name for name in (*NUMBERS, "sign_probability") if name in edges and not edges[name].isna().all()]
    pairs = list(zip(edges["query"], edges["variable"], strict=True))
    return {
        "rule": slider.rule,
        "usual": {"place": slider.usual_place, "threshold": slider.usual},
        "sure": [float(value) for value in edges["sure"]],
        "share": share and {"start": share.start, "last": share.last, "stages": drawn["share_stages"]},
        "enters": [int(place) for place in edges["enters"]],
        "names": [node["name"] for node in drawn["nodes"]],
        "ends": [line["ends"] for line in drawn["lines"]],
        "stages": drawn["stages"],
        "edges": {name: [plain(value) for value in edges[name]] for name in names},
        "curves": _curves.curves(posterior, pairs),
        "chainColours": CHAIN_COLOURS,
    }


def plain(value: Any) -> str | float | None:
    """A cell of the table of edges for the script: text, or a number of few digits; None if it is missing.

    >>> plain("+"), plain(0.1234567), plain(float("nan")), plain(float("inf"))
    ('+', 0.12346, None, 'inf')
    """
    if isinstance(value, str):
        return value
    return "inf" if value == np.inf else _curves.significant(float(value))  # JSON has no infinite numbers


def reach(edges: pd.DataFrame) -> float:
    """The largest absolute end of any interval, to which the small bars in the table are scaled."""
    ends = edges[["lower", "upper"]].to_numpy(dtype=float)
    return max(float(np.nanmax(np.abs(ends), initial=0.0)), np.finfo(float).tiny)


def embedded(value: Any) -> Markup:
    """JSON that is safe between the tags of a script element."""
    return Markup(
        json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(ESCAPED_IN_SCRIPT)
    )


def text_of(name: str) -> str:
    """The text of a file of this package."""
    return resources.files("markovblanket.report").joinpath(name).read_text(encoding="utf-8")


def colours() -> dict[str, str]:
    """The colours of the figures, for the style sheet."""
    return {"query_colour": QUERY, "positive_colour": POSITIVE, "negative_colour": NEGATIVE}


def environment() -> jinja2.Environment:
    """A template environment that escapes every value and takes a missing one for an error."""
    strict = jinja2.StrictUndefined
    made = jinja2.Environment(autoescape=True, undefined=strict, trim_blocks=True, lstrip_blocks=True)
    made.filters |= {written.__name__: written for written in (signed, number, figure, percent, rhat, place)}
    return made


def place(threshold: float) -> str:
    """The label of a slider position, in per cent.

    >>> place(0.5), place(0.437)
    ('50 %', '43.7 %')
    """
    return f"{round(100 * threshold, 1):g} %"
