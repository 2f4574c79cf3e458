"""Whole-network competitors, on the same chains and with the same posterior as the blanket's own sampler.

``graphical_lasso``
    The Bayesian graphical lasso of Wang (2012), with which Kaufmann et al. (2016) compare: Laplace entries for
    all of the precision matrix. A sweep over d variables costs O(d^4), where the blanket of a few costs O(d).
"""

from markovblanket.baselines._graphical_lasso import graphical_lasso
from markovblanket.baselines._sampler import GraphicalLasso, WholeNetwork

__all__ = ["GraphicalLasso", "WholeNetwork", "graphical_lasso"]
