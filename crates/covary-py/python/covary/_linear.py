"""What every fitted linear-Gaussian model answers, whichever class fitted it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from . import _covary, _table
from ._files import OPENERS, ModelFile
from ._threads import n_threads
from .exceptions import ComponentsError, ConvergenceWarning, CovaryWarning, ModelFileError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from typing_extensions import Self

    Array = NDArray[Any]


#: Fitted attributes that are worked out when they are first asked for.
_WHEN_ASKED = frozenset(
    ("components_", "loadings_", "explained_variance_", "explained_variance_ratio_", "singular_values_")
)


class LinearGaussian(ModelFile, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the estimators: everything but the fit, which the subclasses ask the library for."""

    _model: _covary.Model
    _family: str
    components_: Array
    loadings_: Array
    explained_variance_: Array
    explained_variance_ratio_: Array
    singular_values_: Array

    # -- fitting ---------------------------------------------------------------------------------

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Fit the model to the observed cells of a table.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table; NaN where a cell is missing.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit_rows(_table.table(self, X, reset=True))

    def _fit_rows(self, rows: Array) -> Self:
        """Fits to a table that was checked and counted."""
        raise NotImplementedError

    def _learn(self, rows: Array, **asked: Any) -> Self:
        """Fits what was asked for, passing on what the fit has to say."""
        n_components, d = asked.get("n_components"), rows.shape[1]
        if n_components is not None and n_components >= d:
            raise ComponentsError(
                f"n_components={n_components} must be below n_features={d}: one more would leave no noise"
            )
        model = _covary.fit(rows, _table.names(self), self._family, threads=n_threads(), **asked)
        self._publish(model, rows)
        self._warn(model)
        return self

    def _publish(self, model: _covary.Model, X: Array | None) -> None:
        """Sets the fitted attributes."""
        for name in _WHEN_ASKED:
            self.__dict__.pop(name, None)
        self._model = model
        self.n_components_ = model.n_components
        self.mean_ = model.mean if X is None else _table.like(model.mean, X)
        noise = model.noise_variance
        self.noise_variance_ = noise if isinstance(noise, float) else _table.like(noise, self.mean_)
        self._publish_report(model)

    def __getattr__(self, name: str) -> Any:
        # Axes cost a decomposition, which filling gaps has no use for.
        if name in _WHEN_ASKED and "_model" in self.__dict__:
            value = _table.like(getattr(self._model, name[:-1]), self.mean_)
            self.__dict__[name] = value
            return value
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        found = set(super().__dir__())
        return sorted(found | _WHEN_ASKED if "_model" in self.__dict__ else found)

    def _publish_report(self, model: _covary.Model) -> None:
        for old in ("log_likelihood_", "log_posterior_", "lower_bound_", "relevance_"):
            self.__dict__.pop(old, None)
        kind, value = model.objective
        setattr(self, {"average_log_likelihood": "log_likelihood"}.get(kind, kind) + "_", value)
        self.trace_ = model.trace
        self.n_iter_ = max(1, model.n_iterations)
        self.converged_ = model.converged
        relevance = model.relevance
        if len(relevance):
            self.relevance_ = relevance

    def _warn(self, model: _covary.Model) -> None:
        for message in model.warnings:
            late = message.startswith("still rising")
            warnings.warn(message, ConvergenceWarning if late else CovaryWarning, stacklevel=4)

    def __sklearn_is_fitted__(self) -> bool:
        return "_model" in self.__dict__

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    # -- questions -------------------------------------------------------------------------------

    def _rows(self, X: ArrayLike) -> Array:
        check_is_fitted(self)
        return _table.table(self, X, reset=False)

    def transform(self, X: ArrayLike, return_cov: bool = False) -> Any:
        """Scores of rows: the posterior mean of their latent vectors.

        A row with gaps is placed by its observed cells alone, and is the less sure of it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN where a cell is missing.
        return_cov : bool, default=False
            Also return how sure each row's scores are.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_components)
            Posterior means.
        covariances : ndarray of shape (n_samples, n_components, n_components)
            Posterior covariances; only if `return_cov`.
        """
        rows = self._rows(X)
        scores = _table.like(self._model.transform(rows, "posterior", n_threads()), rows)
        if not return_cov:
            return scores
        return scores, _table.like(self._model.score_covariances(rows, n_threads()), rows)

    def inverse_transform(self, X: ArrayLike) -> Array:
        """Rows from scores: ``X @ loadings_.T + mean_``, the part of a row that is not noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Scores.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
            The rows they stand for.
        """
        check_is_fitted(self)
        scores = _table.array(X)
        return _table.like(self._model.decode(scores.astype(np.float64, copy=False)), scores)

    def score_samples(self, X: ArrayLike) -> Array:
        """Log-density of each row in nats, gaps integrated out.

        Columns that never varied when the model was fitted have no density and do not count.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN where a cell is missing.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            0 for a row of only gaps.
        """
        rows = self._rows(X)
        return self._model.log_density(rows, n_threads())

    def score(self, X: ArrayLike, y: Any = None) -> float:
        """Average log-density of the rows, gaps integrated out; what cross-validation compares.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN where a cell is missing.
        y : None
            Ignored.

        Returns
        -------
        score : float
            Nats per row.
        """
        return float(np.mean(self.score_samples(X)))

    def get_covariance(self) -> Array:
        """Covariance of a row under the model, signal and noise.

        Returns
        -------
        covariance : ndarray of shape (n_features, n_features)
            ``loadings_ @ loadings_.T`` plus the noise on its diagonal.
        """
        check_is_fitted(self)
        return self._model.covariance()

    def get_precision(self) -> Array:
        """Inverse of :meth:`get_covariance`, by way of the components.

        Returns
        -------
        precision : ndarray of shape (n_features, n_features)
            The inverse.
        """
        check_is_fitted(self)
        return self._model.precision()

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Fresh rows like those of the table.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState instance or None, default=None
            Seed; None is 0, so that a call repeats itself.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
            Rows drawn from the model.
        """
        check_is_fitted(self)
        if not isinstance(n_samples, (int, np.integer)) or n_samples < 0:
            raise ValueError(f"n_samples must be a whole number from 0, got {n_samples!r}")
        np.empty((int(n_samples), self.n_features_in_))  # MemoryError rather than an abort
        return self._model.sample(int(n_samples), _table.seed_of(random_state))

    def impute(self, X: ArrayLike, return_std: bool = False) -> Any:
        """The rows with their gaps filled by conditional means.

        Observed cells are returned as they came, to the last bit.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN where a cell is missing.
        return_std : bool, default=False
            Also return how sure each filled cell is.

        Returns
        -------
        filled : ndarray of shape (n_samples, n_features)
            The rows without gaps.
        std : ndarray of shape (n_samples, n_features)
            Standard deviation of each filled cell, 0 where observed; only if `return_std`.
        """
        rows = self._rows(X)
        return self._filled(rows, own=False, return_std=return_std)

    def _filled(self, rows: Array, *, own: bool, return_std: bool) -> Any:
        return _table.filled(self._model.impute(rows, own, n_threads()), rows, return_std)

    def sample_gaps(self, X: ArrayLike, n_draws: int = 1, random_state: Any = None) -> Array:
        """Completed copies of a table whose gaps are joint random draws given what is observed.

        What is learned from each copy can be pooled by :func:`covary.pool`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN where a cell is missing.
        n_draws : int, default=1
            How many copies.
        random_state : int, RandomState instance or None, default=None
            Seed; None is 0.

        Returns
        -------
        tables : ndarray of shape (n_draws, n_samples, n_features)
            The copies.
        """
        rows = self._rows(X)
        return self._drawn(rows, n_draws, _table.seed_of(random_state), own=False)

    def _drawn(self, rows: Array, n_draws: int, seed: int, *, own: bool) -> Array:
        if not isinstance(n_draws, (int, np.integer)) or n_draws < 1:
            raise ValueError(f"n_draws must be a whole number from 1, got {n_draws!r}")
        draws = [self._model.draw_gaps(rows, k, seed, own, n_threads()) for k in range(int(n_draws))]
        return _table.like(np.stack(draws), rows)

    def outlyingness(self, X: ArrayLike) -> dict[str, Array]:
        """How odd each row is, over its observed cells.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN where a cell is missing.

        Returns
        -------
        distances : dict of ndarray of shape (n_samples,)
            ``"t2"``: Hotelling's T², the squared distance inside the plane of the components, in
            standard deviations; ``"spe"``: the squared distance from that plane, in squared units of
            the table; ``"mahalanobis"``: the squared distance by the whole covariance, which for rows
            of the model has as many degrees of freedom as the row has observed cells.
        """
        rows = self._rows(X)
        return self._model.outlyingness(rows, n_threads())

    def _options_of(self, model: _covary.Model) -> dict[str, Any]:
        """Constructor arguments that would ask for such a model."""
        return {"n_components": model.n_components}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


#: Which class opens a model of which kind; filled by the classes themselves.
FAMILIES: dict[str, type[LinearGaussian]] = {}


def _opened(model: _covary.Model) -> LinearGaussian:
    # Rotated components have posterior scores, which rotate with the loadings; projections do not.
    rotated = model.family == "pca" and model.rotation is not None
    cls = FAMILIES.get("ppca" if rotated else model.family)
    if cls is None:
        raise ModelFileError(f"holds a model of kind {model.family!r}, which Python does not open: ask it by the command")
    estimator = cls(**cls()._options_of(model))
    estimator.n_features_in_ = len(model.names)
    if not model.has_default_names:
        estimator.feature_names_in_ = np.asarray(model.names, dtype=object)
    estimator._publish(model, None)
    return estimator


OPENERS[_covary.Model] = _opened

__all__ = ["FAMILIES", "LinearGaussian"]
