"""Public names are documented: numpydoc's rules, minus the ones that would only add noise."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest

import markovblanket as mb

validate = pytest.importorskip("numpydoc.validate").validate

# GL08: no docstring at all. SS03/SS06: summary ends with a period, on one line. PR01-PR04: parameters documented,
# in order, none unknown. RT01, RT03: return values. GL07: sections in order. EX01 where an example is promised.
RULES = {"GL08", "SS03", "PR01", "PR02", "PR03", "GL07", "RT01"}
LAWS = [module.name for module in pkgutil.iter_modules(importlib.import_module("markovblanket.variates").__path__)]
VARIATES = [
    f"markovblanket.variates.{law}.{name}"
    for law in LAWS
    for name, member in vars(importlib.import_module(f"markovblanket.variates.{law}")).items()
    if inspect.isfunction(member) and member.__module__.endswith(law) and not name.startswith("_")
]
DOORS = [
    f"markovblanket.{name}"
    for name in ("estimate", "difference", "simulate", "Laplace", "Normal", "MarkovBlanket")
]


@pytest.mark.parametrize("name", [*DOORS, *VARIATES, "markovblanket.baselines.graphical_lasso"])
def test_public_docstrings_follow_numpydoc(name):
    module, _, attribute = name.rpartition(".")
    member = getattr(importlib.import_module(module), attribute)
    path = f"{member.__module__}.{member.__qualname__}"
    errors = [f"{code}: {text}" for code, text in validate(path)["errors"] if code in RULES]
    assert not errors, "\n".join(errors)


@pytest.mark.parametrize("name", DOORS)
def test_every_door_shows_an_example(name):
    assert ">>>" in inspect.getdoc(getattr(mb, name.rpartition(".")[2]))


def test_every_public_method_of_the_posterior_is_documented():
    for name, member in inspect.getmembers(mb.Posterior):
        if not name.startswith("_") and (callable(member) or isinstance(member, property)):
            assert inspect.getdoc(member), name


def test_every_module_says_what_it_is():
    for found in pkgutil.walk_packages(mb.__path__, "markovblanket."):
        if found.name != "markovblanket.__main__":
            assert importlib.import_module(found.name).__doc__, found.name
