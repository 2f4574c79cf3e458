from . import baselines as baselines
from . import plots as plots
from . import priors as priors
from . import solvers as solvers
from . import variates as variates
from .fitting.estimate import estimate as estimate
from .fitting.estimate import network as network
from .fitting.resume import load as load
from .fitting.resume import resume as resume
from .fitting.resume import status as status
from .fitting.scan import scan as scan
from .fitting.sklearn_estimator import MarkovBlanket as MarkovBlanket
from .posterior.diagnostics import ConvergenceWarning as ConvergenceWarning
from .posterior.difference import difference as difference
from .posterior.posterior import Posterior as Posterior
from .priors import Horseshoe as Horseshoe
from .priors import Laplace as Laplace
from .priors import Normal as Normal
from .priors import SpikeSlab as SpikeSlab
from .simulation import simulate as simulate
from .solvers import Dense as Dense
from .solvers import Dual as Dual

__version__: str
