"""A posterior as one page that opens from disk, with everything in it: ``posterior.report("report.html")``."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

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
    """Write the page beside ``path``, then put it there: no half page is ever seen under that name."""
    path = Path(path)
    text = html(posterior)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with open(draft, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.chmod(name, 0o644 & ~_umask())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
    return path


def _umask() -> int:
    """What new files are denied; it cannot be read but by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
