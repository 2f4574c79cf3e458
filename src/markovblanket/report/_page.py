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
from markovblanket.posterior.display import edge_rows, figure, number, number_fields, percent, rhat, signed
from markovblanket.posterior.posterior import Posterior
from markovblanket.report import _curves, _sections, _slider

# These characters could end a script element, or a line of it; escaped, a JSON reader takes them for the same.
ESCAPED_IN_SCRIPT = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}
COLUMNS = ("weight", "lower", "upper", "partial_correlation", "sign_probability", "inclusion", "rhat", "ess")


def render(posterior: Posterior) -> str:
    """The whole report as HTML text."""
    slider = _slider.Slider.of(posterior)
    share = _slider.Share.of(posterior, slider.on_page())
    edges, inner = _slider.edges_on_page(posterior, slider, share), posterior.query_edges()
    drawn = _slider.draw(posterior, slider, share, edges, inner)
    page = environment().from_string(text_of("page.html"))
    return page.render(
        slider=slider,
        share=share,
        shown=int(slider.shown(edges, slider.start).sum()),
        reach=reach(edges, inner),
        edges=edges.to_dict("records"),
        inner=inner.to_dict("records"),
        tables={"edges": numbers_of(edges), "inner": numbers_of(inner)},
        picture=drawn,
        data_block=embedded(payload(posterior, slider, share, edges, inner, drawn)),
        **inlined(),
        **said(posterior),
    )


def numbers_of(edges: pd.DataFrame) -> dict[str, Any]:
    """The columns of numbers of a table of edges, and their cells, formatted as on the command line."""
    fields = number_fields(edges, sign=True)
    return {"fields": fields, "rows": edge_rows(edges, fields)}


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
    inner: pd.DataFrame,
    drawn: dict[str, Any],
) -> dict[str, Any]:
    """The data for the script: numbers of edges (those among the query last), positions of nodes, curves."""
    every = pd.concat([edges, inner], ignore_index=True)
    return {
        "rule": slider.rule,
        "usual": {"place": slider.usual_place, "threshold": slider.usual},
        "sure": [float(value) for value in edges["sure"]],
        "share": share and {"start": share.start, "last": share.last, "stages": drawn["share_stages"]},
        "enters": [int(place) for place in edges["enters"]],
        "names": [node["name"] for node in drawn["nodes"]],
        "ends": [line["ends"] for line in drawn["lines"]],
        "stages": drawn["stages"],
        "edges": {name: [_curves.significant(value) for value in every[name].astype(float)] for name in COLUMNS},
        "curves": _curves.curves(posterior, numbered(edges, inner.head(30))),
        "chainColours": CHAIN_COLOURS,
    }


def numbered(edges: pd.DataFrame, inner: pd.DataFrame) -> dict[int, tuple[Any, Any]]:
    """Pairs of names by number: the few among the query first, then the others, the surest first."""
    among = enumerate(zip(inner["query"], inner["other"], strict=True), start=len(edges))
    return dict(among) | dict(enumerate(zip(edges["query"], edges["variable"], strict=True)))


def reach(edges: pd.DataFrame, inner: pd.DataFrame) -> float:
    """The largest absolute end of any interval, to which the small bars in the tables are scaled."""
    ends = pd.concat([edges[["lower", "upper"]], inner[["lower", "upper"]]]).to_numpy(dtype=float)
    return max(float(np.abs(ends).max(initial=0.0)), np.finfo(float).tiny)


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
