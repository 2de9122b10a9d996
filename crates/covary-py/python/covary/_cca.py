"""Canonical correlation of two views."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import _get_feature_names

from . import _covary, _options, _table
from ._fitted import Fitted
from ._threads import n_threads
from ._two_views import TwoViews
from .exceptions import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from typing_extensions import Self

    from ._fitted import Array


@dataclass(eq=False, repr=False)
class ProbabilisticCCA(TwoViews, Fitted):
    """Canonical correlations of two views of the same rows, and the probabilistic model behind them.

    Parameters
    ----------
    n_components : int, "auto" or None, default="auto"
        Number of pairs of variates. "auto" takes the correlations before the first that may be due to chance, by a test
        at 5 %; None takes as many pairs as there are.
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

    Columns that never vary are set aside, with weights and loadings of 0. A model file, which the command opens too, has
    the views `x` and `y`; it does not keep a `rank`.

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
    array([0.891])
    >>> mean, std = cca.predict(X[:1], return_std=True)
    >>> mean.shape, bool((std < Y.std(axis=0)).all())
    ((1, 2), True)
    """

    _model: _covary.Model = field(init=False)

    n_components: int | str | None = "auto"
    _: KW_ONLY
    ridge: float = 0.0
    rank: int | None = None

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:  # type: ignore[override]
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
        asked: Any = _options.size(self, "n_components", 1)
        ridge, rank = _options.number(self, "ridge") or 0.0, _options.whole(self, "rank", 1)
        rows, second = self._both(X, y)
        self._width = rows.shape[1] + second.shape[1]
        self._places = np.split(np.arange(self._width), [rows.shape[1]])
        request: _covary.Request = {
            "n_components": "identified" if self.n_components is None else asked,
            "views": [(name, places.tolist()) for name, places in zip("xy", self._places, strict=True)],
            # The closed form alone knows these.
            "inference": "bach-jordan" if ridge > 0 or rank is not None else None,
            "options": {"ridge": ridge} if ridge > 0 else None,
            "rank": rank,
        }
        names = [*_named(_table.names(self), "x", rows), *_named(_get_feature_names(y), "y", second)]
        return self._take(self._learned(self._beside(rows, second), "pcca", request, names), rows)

    def _publish(self, model: _covary.Model, rows: Array | None = None) -> None:
        super()._publish(model)
        if rows is None:
            self._width, self._places = len(model.names), [np.asarray(places) for _, places in model.views]
        (x, y), mean = self._places, model.mean
        self.canonical_correlations_, weights, loadings = model.canonical()
        self.n_components_ = len(self.canonical_correlations_)
        self.x_weights_, self.y_weights_ = weights[x], weights[y]
        self.x_loadings_, self.y_loadings_ = loadings[x], loadings[y]
        self.x_mean_, self.y_mean_ = mean[x], mean[y]
        self.n_iter_ = model.n_iterations
        if self.ridge > 0 or self.rank is not None:
            self.log_likelihood_ = np.nan

    @classmethod
    def _of_model(cls, model: _covary.Model) -> Self:
        estimator = super()._of_model(model)
        first = [model.names[j] for j in estimator._places[0]]
        estimator.n_features_in_ = len(first)
        estimator.feature_names_in_ = np.asarray(first, dtype=object)
        if first == _named(None, "x", estimator.x_mean_[None]):
            del estimator.feature_names_in_
        return estimator

    @classmethod
    def _options_of(cls, model: _covary.Model) -> dict[str, Any]:
        return super()._options_of(model) | {"ridge": float(model.method[1].get("ridge", 0.0))}

    def _beside(self, x: Array, y: Array | None) -> Array:
        """The views as one table, which has gaps for a second view that is not there."""
        both = np.full((len(x), self._width), np.nan)
        both[:, self._places[0]] = x
        if y is not None:
            both[:, self._places[1]] = y
        return both

    def _placed_rows(self, X: Any) -> tuple[Array, Any]:
        if not isinstance(X, tuple) or len(X) != 2:
            raise DataError("figures and the report of two views take both: a tuple (X, y)")
        rows = self._rows(X[0])
        return self._beside(rows, self._second(X[1], len(rows))), None

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
        rows = self._rows(X)
        second = None if y is None else self._second(y, len(rows))
        x_scores, y_scores = self._model.variates(self._beside(rows, second), n_threads())
        first = _table.like(x_scores, rows)
        return first if second is None else (first, _table.like(y_scores, second))

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
        rows = self._rows(X)
        return self._model.shared_scores(self._beside(rows, self._second(y, len(rows))), n_threads())

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
        rows = self._rows(X)
        both = self._beside(rows, None)
        filled, std = _table.filled(self._model.impute(both, False, n_threads()), both, True)
        mean = filled[:, self._places[1]]
        return (mean, std[:, self._places[1]]) if return_std else mean

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
        rows = self._rows(X)
        second = None if y is None else self._second(y, len(rows))
        return self._model.log_density(self._beside(rows, second), n_threads())


def _named(names: Any, view: str, rows: Array) -> list[str]:
    """Names of the columns of a view, or such as x1."""
    return [f"{view}{j}" for j in range(1, rows.shape[1] + 1)] if names is None else [str(name) for name in names]


__all__ = ["ProbabilisticCCA"]
