"""PCA, factor analysis and other linear-Gaussian latent-variable models, exact with missing data.

scikit-learn estimators over a Rust library: NaN is a missing value, missing values are integrated out of the
likelihood, and every imputed value has a standard deviation and an interval.

>>> import covary
>>> covary.PPCA(n_components=2)
PPCA(n_components=2)
"""

from . import exceptions
from ._cca import ProbabilisticCCA
from ._classifier import PPCAClassifier
from ._covary import VERSION as __version__
from ._dynamic import DynamicFactor
from ._factor import FactorAnalysis
from ._families import load
from ._fastica import FastICA
from ._functional import FunctionalPCA
from ._gaussian import Gaussian
from ._gaussian_mixture import GaussianMixture
from ._gfa import GroupFactorAnalysis
from ._ica import InfomaxICA, NoisyICA
from ._imputer import Imputer
from ._incremental_pca import IncrementalPCA
from ._mixture_ppca import MixturePPCA
from ._pca import PCA
from ._ppca import PPCA, BayesianPCA
from ._select import Comparison, MixtureComparison, Pooled, pool, select
from ._sparse import BayesianSparsePCA, SparsePPCA
from ._sparse_cca import SparseCCA
from ._sparse_pca import SparsePCA
from ._student import StudentPPCA
from ._threads import threads

__all__ = [
    "PCA",
    "PPCA",
    "BayesianPCA",
    "BayesianSparsePCA",
    "Comparison",
    "DynamicFactor",
    "FactorAnalysis",
    "FastICA",
    "FunctionalPCA",
    "Gaussian",
    "GaussianMixture",
    "GroupFactorAnalysis",
    "Imputer",
    "IncrementalPCA",
    "InfomaxICA",
    "MixtureComparison",
    "MixturePPCA",
    "NoisyICA",
    "PPCAClassifier",
    "Pooled",
    "ProbabilisticCCA",
    "SparseCCA",
    "SparsePCA",
    "SparsePPCA",
    "StudentPPCA",
    "__version__",
    "exceptions",
    "load",
    "pool",
    "select",
    "threads",
]
