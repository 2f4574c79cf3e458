"""A posterior as one page that opens from disk, with everything in it: ``posterior.report("report.html")``."""

from __future__ import annotations

from pathlib import Path

from markovblanket._files import write_text
from markovblanket.posterior.posterior import Posterior

__all__ = ["html", "write"]


def html(posterior: Posterior) -> str:
    """The page as text; the same posterior always gives the same page."""
    try:
        from markovblanket.report import _page
    except ModuleNotFoundError as absent:
        if (absent.name or "").partition(".")[0] not in ("jinja2", "matplotlib"):
            raise
        raise ImportError(f"a report needs {absent.name}: pip install markovblanket[report]") from None
    return _page.render(posterior)


def write(posterior: Posterior, path: str | Path) -> Path:
    """Write the page at once: no half page is ever seen under its name."""
    path = Path(path)
    text = html(posterior)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)
    return path
