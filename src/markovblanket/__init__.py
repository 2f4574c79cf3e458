"""Bayesian Markov blanket estimation for mixed and incomplete tables.

Which of these thousands of variables are directly connected to the few I care about, and how sure can I be?

>>> import markovblanket as mb
>>> clinic = mb.simulate(rows=300, query=3, rest=20, seed=7)
>>> posterior = mb.estimate(clinic.table, query=clinic.query, warmup=500, draws=500, seed=7)
>>> posterior.edges()[["query", "variable", "probability", "partial_correlation"]]  # doctest: +SKIP

:func:`estimate` takes a table or a scatter matrix and returns a :class:`Posterior`; :func:`network` does so for
all variables at once; :class:`MarkovBlanket` is the same for scikit-learn; :func:`scan` asks one table for many
blankets; :func:`simulate` makes networks with known truth; :func:`load` reads a saved posterior.
:mod:`markovblanket.priors`, :mod:`markovblanket.solvers` and :mod:`markovblanket.variates` hold parts that can be
used by themselves, the last with exact samplers of the matrix generalised inverse Gaussian distribution.

The public names are listed once, in ``__init__.pyi``, and imported when they are first used: ``import
markovblanket`` is quick, and the sampler needs nothing but NumPy, SciPy, numba, joblib and threadpoolctl.
"""

from importlib import metadata

import lazy_loader

from markovblanket import _compiled

_compiled.require_place()
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = metadata.version("markovblanket")
