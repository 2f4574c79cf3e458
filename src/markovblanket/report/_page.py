"""The page: sections and edges into a template that escapes every name, with script and style inside."""

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
from markovblanket.report import _curves, _sections
from markovblanket.report import _slider as choosing

# Within a script element these could end it, or a line of it; as escapes they mean the same to a JSON reader.
UNSAFE = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}
COLUMNS = ("weight", "lower", "upper", "partial_correlation", "sign_probability", "inclusion", "rhat", "ess")


def render(posterior: Posterior) -> str:
    """The whole page."""
    slider = choosing.Slider.of(posterior)
    share = choosing.Share.of(posterior, slider.on_page())
    edges, inner = choosing.edges_on_page(posterior, slider, share), posterior.query_edges()
    drawn = choosing.draw(posterior, slider, share, edges, inner)
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
    """The columns of numbers of a table of edges, and their cells, as every other surface shows them."""
    fields = number_fields(edges, sign=True)
    return {"fields": fields, "rows": edge_rows(edges, fields)}


def inlined() -> dict[str, Any]:
    """Script, style and library, and the hashes by which the page's own policy knows them, and runs no other."""
    style = environment().from_string(text_of("page.css")).render(colours())
    parts = {
        "library": text_of("third_party/d3.min.js"),
        "script": text_of("curves.js") + text_of("page.js"),
        "style": style,
    }
    licence = {"library_licence": text_of("third_party/d3.LICENSE")}
    return {name: Markup(text) for name, text in parts.items()} | licence | {"hashes": hashes(parts)}


def hashes(parts: Mapping[str, str]) -> dict[str, str]:
    """SHA-256, as a content security policy writes it."""
    digests = {name: hashlib.sha256(text.encode()).digest() for name, text in parts.items()}
    return {name: f"sha256-{base64.b64encode(digest).decode()}" for name, digest in digests.items()}


def said(posterior: Posterior) -> dict[str, Any]:
    """The sections beside the blanket."""
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
    slider: choosing.Slider,
    share: choosing.Share | None,
    edges: pd.DataFrame,
    inner: pd.DataFrame,
    drawn: dict[str, Any],
) -> dict[str, Any]:
    """What the script needs: numbers of edges (those among the query last), places of nodes, curves."""
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
    """Pairs by their number: those among the query first, which are few, then the others, surest first."""
    among = enumerate(zip(inner["query"], inner["other"], strict=True), start=len(edges))
    return dict(among) | dict(enumerate(zip(edges["query"], edges["variable"], strict=True)))


def reach(edges: pd.DataFrame, inner: pd.DataFrame) -> float:
    """The largest end of an interval: the scale of the small bars in the tables."""
    ends = pd.concat([edges[["lower", "upper"]], inner[["lower", "upper"]]]).to_numpy(dtype=float)
    return max(float(np.abs(ends).max(initial=0.0)), np.finfo(float).tiny)


def embedded(value: Any) -> Markup:
    """JSON that is safe between the tags of a script element."""
    return Markup(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(UNSAFE))


def text_of(name: str) -> str:
    """A file of this package."""
    return resources.files("markovblanket.report").joinpath(name).read_text(encoding="utf-8")


def colours() -> dict[str, str]:
    """Those of the figures."""
    return {"query_colour": QUERY, "positive_colour": POSITIVE, "negative_colour": NEGATIVE}


def environment() -> jinja2.Environment:
    """Every value is escaped, and a missing one is an error."""
    strict = jinja2.StrictUndefined
    made = jinja2.Environment(autoescape=True, undefined=strict, trim_blocks=True, lstrip_blocks=True)
    made.filters |= {written.__name__: written for written in (signed, number, figure, percent, rhat, place)}
    return made


def place(threshold: float) -> str:
    """A place of the slider, as it is labelled.

    >>> place(0.5), place(0.437)
    ('50 %', '43.7 %')
    """
    return f"{round(100 * threshold, 1):g} %"
