"""Prior distributions of ``W12``, each a scale mixture of normals with its own distribution of the scales ``T``.

:class:`Laplace` with a given rate is the paper's prior; without one, the rate is learned. :class:`Horseshoe`
shrinks small entries more and large ones less. :class:`Normal` has fixed scales and a conditional in closed form.
:class:`SpikeSlab` has exact zeros.
"""

from markovblanket.priors.horseshoe import Horseshoe
from markovblanket.priors.laplace import Laplace
from markovblanket.priors.normal import Normal
from markovblanket.priors.scale_mixture import ScaleMixture
from markovblanket.priors.spike_slab import SpikeSlab

__all__ = ["PRIORS", "Horseshoe", "Laplace", "Normal", "ScaleMixture", "SpikeSlab"]

# The names by which :func:`markovblanket.estimate` knows them.
PRIORS = {"horseshoe": Horseshoe, "laplace": Laplace, "normal": Normal, "spike-slab": SpikeSlab}
