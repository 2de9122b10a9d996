"""Mixtures of probabilistic PCAs and of factor analyzers."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _covary, _options, _table
from ._fitted import below_columns
from ._mixed import Mixture

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from typing_extensions import Self

    from ._fitted import Array

#: The family for each noise.
_FAMILIES = {"isotropic": "mppca", "diagonal": "mfa"}


@dataclass(eq=False, repr=False)
class MixturePPCA(Mixture):
    """A mixture of probabilistic PCAs, or of factor analyzers, exact with missing cells.

    Rows come in groups, each with its own mean, plane and noise. EM finds the groups and fits their
    models at once; gaps are integrated out.

    Parameters
    ----------
    n_mixtures : int or "auto", default="auto"
        Number of models; "auto" takes the number from 1 to 6 of least BIC.
    n_components : int or "auto", default="auto"
        Components of each. "auto", or None, lets each model have its own number: BIC is compared for 1 to 4 components
        of all models, together with `n_mixtures` if that is open too, then components are given to and taken from
        single models as long as it falls.
    noise : {"isotropic", "diagonal"}, default="isotropic"
        One noise variance for all columns of a model, or one for each (factor analysis).
    standardize : bool, default=True
        Give every column unit variance before fitting; results are in the table's units either way.
    max_iter : int or None, default=None
        Most steps; None is 1000.
    tol : float or None, default=None
        Stop when the log-likelihood is expected to rise by less than this many nats; None is 1e-3.
    n_init : int, default=12
        Starts, by k-means and around rows taken at random in turn; each makes a few steps and the best
        go on.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts; None is 0.
    verbose : bool or int, default=False
        Tell on standard error how far a long fit is.

    Attributes
    ----------
    weights_ : ndarray of shape (n_mixtures,)
        Share of the rows in each model, in decreasing order.
    means_ : ndarray of shape (n_mixtures, n_features)
        Means.
    n_components_ : ndarray of shape (n_mixtures,)
        Components of each model.
    loadings_ : ndarray of shape (n_mixtures, n_features, max(n_components_))
        Loadings; 0 beyond the components that a model has.
    noise_variance_ : ndarray of shape (n_mixtures,) or (n_mixtures, n_features)
        Noise variances; one for each column unless all share one.
    covariances_ : ndarray of shape (n_mixtures, n_features, n_features)
        ``loadings @ loadings.T`` plus the noise; worked out when asked for.
    log_likelihood_ : float
        Of the observed cells, in nats.
    trace_, n_iter_, converged_, n_features_in_, feature_names_in_
        As of :class:`PPCA`.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import MixturePPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 5)) + np.where(np.arange(200) < 50, 10.0, 0.0)[:, None]
    >>> X[rng.random(X.shape) < 0.1] = np.nan
    >>> mixture = MixturePPCA(2, n_components=1).fit(X)
    >>> np.round(mixture.weights_, 2)
    array([0.75, 0.25])
    """

    _when_asked = frozenset(("covariances_",))
    _by_passes = True

    n_mixtures: int | str = "auto"
    _: KW_ONLY
    n_components: int | str | None = "auto"
    noise: str = "isotropic"
    standardize: bool = True
    max_iter: int | None = None
    tol: float | None = None
    n_init: int = 12
    random_state: Any = None
    verbose: bool | int = False

    def _fit_rows(self, rows: Array) -> Self:
        noise = _options.word(self, "noise", ("isotropic", "diagonal"))
        request: _covary.Request = {
            "n_mixtures": _options.size(self, "n_mixtures", 1, or_none=False),
            "n_components": below_columns(_options.size(self, "n_components", 0), rows),
            "standardize": _options.switch(self, "standardize"),
            "max_iterations": _options.whole(self, "max_iter", 1),
            "tolerance": _options.number(self, "tol"),
            "options": {"restarts": _options.required(self, "n_init") - 1},
            "seed": _table.seed_of(self.random_state),
        }
        return self._take(self._learned(rows, _FAMILIES[str(noise)], request), rows)

    def _publish(self, model: _covary.Mixture, rows: Array | None = None) -> None:
        super()._publish(model)
        self.n_components_ = np.asarray(model.components_of_each)
        self.loadings_ = model.loadings
        shared = model.noise_variance
        self.noise_variance_ = model.noise_variances if shared is None else shared

    def _work_out(self, name: str) -> Array:
        return self._model.covariances

    @classmethod
    def _options_of(cls, model: _covary.Mixture) -> dict[str, Any]:
        return {
            "n_mixtures": len(model.weights),
            "n_components": model.n_components if len(set(model.components_of_each)) == 1 else "auto",
            "noise": model.noise,
            "standardize": model.standardized,
        }


__all__ = ["MixturePPCA"]
