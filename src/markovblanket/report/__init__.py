"""The report of a posterior, one HTML page that needs no other file: ``posterior.report("report.html")``."""

from __future__ import annotations

from pathlib import Path

from markovblanket._files import write_text
from markovblanket.posterior.posterior import Posterior

__all__ = ["html", "write"]


def html(posterior: Posterior) -> str:
    """The report as HTML text; the same posterior always gives the same page."""
    try:
        from markovblanket.report import _page
    except ModuleNotFoundError as absent:
        if (absent.name or "").partition(".")[0] not in ("jinja2", "matplotlib"):
            raise
        raise ImportError(f"a report needs {absent.name}: pip install markovblanket[report]") from None
    return _page.render(posterior)


def write(posterior: Posterior, path: str | Path) -> Path:
    """Write the report to a file, which is complete or absent at any time, and return its path."""
    path = Path(path)
    text = html(posterior)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)
    return path
