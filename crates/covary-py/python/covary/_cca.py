"""Canonical correlation of two views."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from . import _covary, _options, _table
from ._threads import n_threads
from .exceptions import CovaryWarning, DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from typing_extensions import Self

    from ._linear import Array


class ProbabilisticCCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Canonical correlations of two views of the same rows, and the probabilistic model behind them.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of pairs of variates; as many as there are if None.
    ridge : float, default=0.0
        Added to the diagonal of each view's covariance, as a share of its mean variance. A view with as many
        columns as rows needs it, or a `rank`.
    rank : int or None, default=None
        Principal components that each view is first reduced to.

    Attributes
    ----------
    canonical_correlations_ : ndarray of shape (n_components,)
        Falling.
    x_weights_, y_weights_ : ndarray of shape (n_features, n_components) and (n_targets, n_components)
        Variates are ``(X - x_mean_) @ x_weights_``, with variance 1 (divisor n).
    x_loadings_, y_loadings_ : ndarray of the same shapes
        Covariances of the columns with the shared latent variable.
    x_mean_, y_mean_ : ndarray
        Means of the columns.
    log_likelihood_ : float
        Maximum of the log-likelihood of the observed cells, in nats; NaN with a `ridge` or a `rank`.
    n_iter_ : int
        Steps of EM; 0 for complete views, which have a closed form.
    converged_ : bool
        Whether EM met its stopping rule.
    n_components_ : int
        How many pairs there are.
    n_features_in_ : int
        Columns of the first view.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if they had any.

    Notes
    -----
    `transform` takes one view or both and returns as scikit-learn's `CCA` does. There, variates have other
    lengths and signs; their correlations are the same.

    With gaps the same model is fitted by EM over the observed cells. Variates of a row with gaps are their
    mean given what is observed: of both views if both are given.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import ProbabilisticCCA
    >>> i = np.arange(60)
    >>> X = np.stack([np.sin(i), np.cos(0.7 * i), np.sin(0.2 * i)], axis=1)
    >>> Y = np.stack([X[:, 0] + 0.5 * np.sin(1.3 * i), np.cos(3 * i)], axis=1)
    >>> cca = ProbabilisticCCA().fit(X, Y)
    >>> cca.canonical_correlations_.round(3)
    array([0.891, 0.013])
    >>> mean, std = cca.predict(X[:1], return_std=True)
    >>> mean.shape, bool((std < Y.std(axis=0)).all())
    ((1, 2), True)
    """

    _found: _covary.Canonical

    def __init__(self, n_components: int | None = None, *, ridge: float = 0.0, rank: int | None = None) -> None:
        self.n_components = n_components
        self.ridge = ridge
        self.rank = rank

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Find the canonical variates of two views.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The first view; NaN where a cell is missing.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            The second view, likewise. A whole view may be missing from a row.

        Returns
        -------
        self : ProbabilisticCCA
            The fitted estimator.
        """
        asked, rank = _options.whole(self, "n_components", 1), _options.whole(self, "rank", 1)
        ridge = _options.number(self, "ridge") or 0.0
        if y is None:
            raise ValueError(
                "ProbabilisticCCA requires y to be passed, but the target y is None: it is the second view"
            )
        rows = _table.table(self, X, reset=True)
        second = self._second(y, len(rows))
        found, log_likelihood, self.n_iter_, self.converged_, doubts = _covary.canonical(
            rows, second, asked, ridge=ridge, rank=rank, threads=n_threads()
        )
        for doubt in doubts:
            late = doubt.startswith("still rising")
            warnings.warn(doubt, ConvergenceWarning if late else CovaryWarning, stacklevel=2)
        self._found = found
        self.canonical_correlations_ = found.correlations
        self.n_components_ = len(self.canonical_correlations_)
        self.x_weights_, self.y_weights_ = found.weights(0), found.weights(1)
        self.x_loadings_, self.y_loadings_ = found.loadings(0), found.loadings(1)
        self.x_mean_, self.y_mean_ = found.mean(0), found.mean(1)
        self.log_likelihood_ = np.nan if log_likelihood is None else log_likelihood
        return self

    def _second(self, y: ArrayLike, n: int) -> Array:
        second = _table.array(y, ensure_2d=False, order="C", ensure_all_finite="allow-nan", input_name="y")
        second = second.reshape(-1, 1) if second.ndim == 1 else second
        if len(second) != n:
            raise DataError(f"inconsistent numbers of samples: X has {n} rows and y {len(second)}")
        return second

    def transform(self, X: ArrayLike, y: ArrayLike | None = None) -> Any:
        """Canonical variates of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of the first view.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            The same rows of the second view.

        Returns
        -------
        x_scores : ndarray of shape (n_samples, n_components)
            Variates of the first view; a tuple with those of the second if it was given.
        """
        check_is_fitted(self)
        rows = _table.table(self, X, reset=False)
        if y is None:
            return _table.like(self._found.transform(0, rows, n_threads()), rows)
        second = self._second(y, len(rows))
        x_scores, y_scores = self._found.variates(_beside(rows, second), n_threads())
        return _table.like(x_scores, rows), _table.like(y_scores, second)

    def fit_transform(self, X: ArrayLike, y: ArrayLike | None = None) -> Any:
        """Find the canonical variates of two views and return those of both.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The first view.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            The second view.

        Returns
        -------
        x_scores, y_scores : ndarray of shape (n_samples, n_components)
            Their variates.
        """
        return self.fit(X, y).transform(X, y)  # type: ignore[arg-type]

    def scores(self, X: ArrayLike, y: ArrayLike) -> Array:
        """What both views say of the shared latent variable: its posterior mean.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of the first view.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            The same rows of the second view.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_components)
            Posterior means.
        """
        check_is_fitted(self)
        rows = _table.table(self, X, reset=False)
        return self._found.scores(rows, self._second(y, len(rows)), n_threads())

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Predict the second view from the first.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of the first view; NaN where a cell is missing.
        return_std : bool, default=False
            Also return standard deviations, those of new observations.

        Returns
        -------
        mean : ndarray of shape (n_samples, n_targets)
            Conditional means.
        std : ndarray of shape (n_samples, n_targets)
            Conditional standard deviations; only if `return_std`.
        """
        check_is_fitted(self)
        rows = _table.table(self, X, reset=False)
        mean, std = self._found.predict(1, rows, n_threads())
        return (mean, std) if return_std else mean

    def score_samples(self, X: ArrayLike, y: ArrayLike | None = None) -> Array:
        """Log-density of rows, of both views or of the first alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of the first view.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            The same rows of the second view; integrated out if None.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            In nats.
        """
        check_is_fitted(self)
        rows = _table.table(self, X, reset=False)
        unknown = np.full((len(rows), len(self.y_mean_)), np.nan)
        second = unknown if y is None else self._second(y, len(rows))
        return self._found.log_density(_beside(rows, second), n_threads())

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_is_fitted__(self) -> bool:
        return "_found" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags


def _beside(x: Array, y: Array) -> Array:
    """Two views as one table."""
    return np.hstack([x, y]).astype(np.float64, copy=False)
