"""The site: `make docs` builds it with warnings as errors, and without network."""

import os
from importlib.metadata import version as installed_version
from pathlib import Path

HERE = Path(__file__).parent

project = "markovblanket"
author = "The markovblanket developers"
copyright = author
release = version = installed_version(project)

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx-mathjax-offline", "numpydoc"]
exclude_patterns = ["_build", "jupyter_execute", "benchmark_results.md"]  # the last is part of another page
templates_path = ["_templates"]
default_role = "py:obj"

# Pages with code cells are run while the site is built, where they may write files; an exception in a cell is an
# error of the build. Some read the studies' tables, and one runs the tests' own calibration.
os.environ["MARKOVBLANKET_DOCS"] = str(HERE)
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [os.environ.get("PYTHONPATH"), str(HERE.parent / "tests")])
)
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "auto"
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_execution_timeout = 120

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # the signatures' types are in the Parameters sections, in words
numpydoc_show_class_members = False

html_theme = "furo"
html_title = project


def skip_metadata_routing(app, what, name, obj, skip, options):
    """Leave out the ``set_*_request`` methods: scikit-learn adds them, and they refer to its own glossary."""
    return True if name.startswith("set_") and name.endswith("_request") else None


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-skip-member", skip_metadata_routing)
