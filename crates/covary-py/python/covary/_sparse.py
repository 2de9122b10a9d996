"""PCA with sparse loadings: of each component, or of whole columns."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _covary, _options, _table
from ._linear import Standardizing

if TYPE_CHECKING:
    from ._fitted import Array


@dataclass(eq=False, repr=False)
class SparsePPCA(Standardizing):
    """Probabilistic PCA whose loadings are mostly 0, exact with missing cells.

    Each component is made of a few columns, the others having no part in it. Which these are is found along a path of
    penalized likelihoods; their loadings are those of maximum likelihood, not drawn towards 0.

    Parameters
    ----------
    n_components : int, float or "auto", default="auto"
        How many components. "auto" takes the fewest that predict hidden cells as well as the best; a float between 0
        and 1 the fewest that explain more than this share of the variance.
    n_nonzero : int or None, default=None
        How many loadings of each component are not 0; None takes those of the smallest extended BIC.
    penalty : float or None, default=None
        Maximize the likelihood less ``penalty`` times the observed cells of a column times the absolute value of each of
        its loadings, in units of the column's standard deviation, instead: loadings are drawn towards 0, and small ones
        are 0.
    standardize : bool, default=True
        Give every column unit variance before fitting, so that units do not matter. Results are in
        the units of the table either way.
    max_iter : int or None, default=None
        Most steps; None is 2000.
    tol : float or None, default=None
        Stop when the log-likelihood is expected to rise by less than this many nats; None is 1e-6.
    random_state : int, RandomState instance or None, default=None
        Seed of what is left to chance (which cells "auto" hides). None is 0: runs repeat themselves.
    verbose : bool or int, default=False
        Tell on standard error how far a long fit is.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The loadings of each component at unit length, with their zeros. Components need not be orthogonal.
    n_nonzero_ : ndarray of shape (n_components,)
        How many loadings of each component are not 0.
    loadings_, mean_, noise_variance_, explained_variance_, explained_variance_ratio_, \
singular_values_, n_components_, log_likelihood_, trace_, n_iter_, converged_, n_features_in_, feature_names_in_
        As of :class:`PPCA`; the variance that a component explains is that of its loadings, the noise not counted.

    See Also
    --------
    PPCA : The same with loadings that are all free.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import SparsePPCA
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(200, 6))
    >>> X[:, :3] += 2 * rng.normal(size=(200, 1))
    >>> X[rng.random(X.shape) < 0.1] = np.nan
    >>> model = SparsePPCA(n_components=1).fit(X)
    >>> np.flatnonzero(model.components_[0])
    array([0, 1, 2])
    """

    _family = "spca"

    n_components: int | float | str = "auto"
    _: KW_ONLY
    n_nonzero: int | None = None
    penalty: float | None = None
    standardize: bool = True
    max_iter: int | None = None
    tol: float | None = None
    random_state: Any = None
    verbose: bool | int = False

    def _own_request(self) -> dict[str, Any]:
        asked = {
            "n_nonzero": _options.whole(self, "n_nonzero", 1),
            "penalty": _options.number(self, "penalty"),
        }
        return {"options": {name: value for name, value in asked.items() if value is not None} or None}

    def _publish(self, model: _covary.Model, rows: Array | None = None) -> None:
        super()._publish(model, rows)
        self.n_nonzero_ = np.count_nonzero(self.components_, axis=1)

    @classmethod
    def _options_of(cls, model: _covary.Model) -> dict[str, Any]:
        n_nonzero, penalty = (model.method[1][name] for name in ("n_nonzero", "penalty"))
        return super()._options_of(model) | {
            "n_nonzero": None if n_nonzero == "chosen" else int(n_nonzero),
            "penalty": None if penalty == "none" else float(penalty),
        }


@dataclass(eq=False, repr=False)
class BayesianSparsePCA(Standardizing):
    """Bayesian PCA that selects columns: the probability that each has a part in any component.

    The loadings of a column are all 0 or all free (a spike and a slab), and which of these is inferred with them by
    variational inference. Missing cells are integrated out.

    Parameters
    ----------
    n_components : int, float or "auto", default="auto"
        How many components. "auto" takes the fewest that predict hidden cells as well as the best; a float between 0
        and 1 the fewest that explain more than this share of the variance.
    slab : float, default=1.0
        Precision of the loadings relative to that of the noise.
    inclusion_shape : float, default=1.0
        First parameter of the beta distribution of the share of columns that have a part.
    exclusion_shape : float or None, default=None
        Second parameter; None is the number of columns: few are expected to have a part.
    standardize : bool, default=True
        Give every column unit variance before fitting, so that units do not matter. All columns share one noise
        variance: standardized, those of noise alone have more of it than the others, and are selected too often;
        False is right where all columns are in one unit and about as noisy.
        Results are in the units of the table either way.
    max_iter : int or None, default=None
        Most sweeps; None is 2000.
    tol : float or None, default=None
        Stop when a sweep raises the bound of the evidence by less than this many nats; None is 1e-8.
    random_state : int, RandomState instance or None, default=None
        Seed of what is left to chance (which cells "auto" hides). None is 0: runs repeat themselves.
    verbose : bool or int, default=False
        Tell on standard error how far a long fit is.

    Attributes
    ----------
    inclusion_probabilities_ : ndarray of shape (n_features,)
        Posterior probability that each column has a part in any component.
    selected_ : ndarray of shape (n_features,)
        Whether that is above 1/2.
    components_, loadings_, mean_, noise_variance_, explained_variance_, explained_variance_ratio_, \
singular_values_, n_components_, trace_, n_iter_, converged_, n_features_in_, feature_names_in_
        As of :class:`PPCA`. Loadings are posterior means, over whether a column has a part too: those of the others are
        small, not 0.

    See Also
    --------
    SparsePPCA : Zeros of each component by itself, not of whole columns.
    BayesianPCA : The same without a choice of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import BayesianSparsePCA
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(200, 6))
    >>> X[:, :3] += 2 * rng.normal(size=(200, 1))
    >>> X[rng.random(X.shape) < 0.1] = np.nan
    >>> BayesianSparsePCA(n_components=1).fit(X).selected_
    array([ True,  True,  True, False, False, False])
    """

    _family = "bspca"

    n_components: int | float | str = "auto"
    _: KW_ONLY
    slab: float = 1.0
    inclusion_shape: float = 1.0
    exclusion_shape: float | None = None
    standardize: bool = True
    max_iter: int | None = None
    tol: float | None = None
    random_state: Any = None
    verbose: bool | int = False

    def _own_request(self) -> dict[str, Any]:
        names = ("slab", "inclusion_shape", "exclusion_shape")
        asked = {name: _options.number(self, name) for name in names}
        return {"options": {name: value for name, value in asked.items() if value is not None} or None}

    def _publish(self, model: _covary.Model, rows: Array | None = None) -> None:
        super()._publish(model, rows)
        # Without components no column has a part.
        found = model.inclusion
        self.inclusion_probabilities_ = np.zeros_like(self.mean_) if found is None else _table.like(found, self.mean_)
        self.selected_ = self.inclusion_probabilities_ > 0.5

    @classmethod
    def _options_of(cls, model: _covary.Model) -> dict[str, Any]:
        options = model.method[1]
        exclusion = options["exclusion_shape"]
        return super()._options_of(model) | {
            "slab": float(options["slab"]),
            "inclusion_shape": float(options["inclusion_shape"]),
            "exclusion_shape": None if exclusion == "none" else float(exclusion),
        }


__all__ = ["BayesianSparsePCA", "SparsePPCA"]
