"""Baseline methods that estimate the whole network, run and reported like the main sampler.

``graphical_lasso``
    The Bayesian graphical lasso of Wang (2012), with which Kaufmann et al. (2016) compare: a Laplace prior
    on all of the precision matrix. A sweep over d variables costs O(d^4), the Markov blanket of a few costs O(d).
"""

from markovblanket.baselines._graphical_lasso import graphical_lasso
from markovblanket.baselines._sampler import GraphicalLasso, WholeNetwork

__all__ = ["GraphicalLasso", "WholeNetwork", "graphical_lasso"]
