"""Bayesian Markov blanket estimation.

Which of these thousands of variables are directly connected to the few I care about, and how sure can I be?

>>> import markovblanket as mb
>>> clinic = mb.simulate(rows=300, query=3, rest=20, seed=7)
>>> posterior = mb.estimate(clinic.table, query=clinic.query, warmup=500, draws=500, seed=7)
>>> posterior.edges()[["query", "variable", "partial_correlation", "sign_probability"]]  # doctest: +SKIP

The doors: :func:`estimate` (a table or a scatter matrix in, a :class:`Posterior` out), :class:`MarkovBlanket` (the
same for scikit-learn), :func:`simulate` (networks with known truth), :func:`load` (a saved posterior). The parts:
:mod:`markovblanket.priors`, :mod:`markovblanket.solvers` and :mod:`markovblanket.variates`, the last with exact
samplers for the matrix generalised inverse Gaussian law that are useful by themselves.

With p query variables, q others and n rows, a sweep costs O(p min(n, q) q) for each of a dozen or so iterations,
and no q x q matrix is ever formed.

Names are imported when first used, so ``import markovblanket`` is quick and the sampler's own floors need nothing
but NumPy, SciPy, numba, joblib and threadpoolctl.
"""

import sys
from importlib import import_module, metadata
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markovblanket.fitting.estimate import estimate
    from markovblanket.fitting.resume import load, resume, status
    from markovblanket.fitting.second_look import second_look
    from markovblanket.fitting.sklearn_estimator import MarkovBlanket
    from markovblanket.posterior.diagnostics import ConvergenceWarning
    from markovblanket.posterior.difference import difference
    from markovblanket.posterior.posterior import Posterior
    from markovblanket.priors import Horseshoe, Laplace, Normal, SpikeSlab
    from markovblanket.simulation import simulate
    from markovblanket.solvers import Dense, Dual

__version__ = metadata.version("markovblanket")

_HOME = {
    "ConvergenceWarning": "posterior.diagnostics",
    "Dense": "solvers",
    "Dual": "solvers",
    "Horseshoe": "priors",
    "Laplace": "priors",
    "MarkovBlanket": "fitting.sklearn_estimator",
    "Normal": "priors",
    "Posterior": "posterior.posterior",
    "SpikeSlab": "priors",
    "difference": "posterior.difference",
    "estimate": "fitting.estimate",
    "load": "fitting.resume",
    "resume": "fitting.resume",
    "scan": "fitting.scan",
    "second_look": "fitting.second_look",
    "simulate": "simulation",
    "status": "fitting.resume",
}

# Modules that are used as they are: ``markovblanket.plots.blanket(posterior)``.
_ROOMS = ("baselines", "plots", "priors", "solvers", "variates")

__all__ = [
    "ConvergenceWarning",
    "Dense",
    "Dual",
    "Horseshoe",
    "Laplace",
    "MarkovBlanket",
    "Normal",
    "Posterior",
    "SpikeSlab",
    "difference",
    "estimate",
    "load",
    "resume",
    "scan",
    "second_look",
    "simulate",
    "status",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


class _Doors(ModuleType):
    """The package, whose promised functions keep their names when a module of the same name is imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        """By name, as any module: functions that use the package travel to other processes."""
        return import_module, (self.__name__,)


sys.modules[__name__].__class__ = _Doors


def __dir__() -> list[str]:
    return sorted(__all__)
