"""What every fitted linear-Gaussian model answers, whichever class fitted it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from . import _covary, _options, _table
from ._fitted import Draws, Fitted, Scores, below_columns
from ._threads import n_threads

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from typing_extensions import Self

    from ._fitted import Array


class LinearGaussian(Scores, Draws, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Fitted):
    """Base of the estimators of one model: everything but what they ask the library for."""

    _model: _covary.Model
    _family: str
    # Axes cost a decomposition, which filling gaps has no use for.
    _when_asked = frozenset(
        ("components_", "loadings_", "explained_variance_", "explained_variance_ratio_", "singular_values_")
    )
    components_: Array
    loadings_: Array
    explained_variance_: Array
    explained_variance_ratio_: Array
    singular_values_: Array

    def _learn(self, rows: Array, **asked: Any) -> Self:
        """Fits what was asked for."""
        below_columns(asked.get("n_components"), rows)
        return self._take(self._learned(rows, self._family, asked), rows)  # type: ignore[arg-type]

    def _publish(self, model: _covary.Model, rows: Array | None = None) -> None:
        super()._publish(model)
        self.n_components_ = model.n_components
        self.mean_ = model.mean if rows is None else _table.like(model.mean, rows)
        noise = model.noise_variance
        self.noise_variance_ = noise if isinstance(noise, float) else _table.like(noise, self.mean_)
        self.__dict__.pop("relevance_", None)
        if len(model.relevance):
            self.relevance_ = model.relevance

    def _work_out(self, name: str) -> Array:
        return _table.like(getattr(self._model, name[:-1]), self.mean_)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def transform(
        self, X: ArrayLike, return_cov: bool = False, *, draw: bool = False, random_state: Any = None
    ) -> Any:
        """Scores of rows: the posterior mean of their latent vectors, or a draw from their posterior.

        The scores of a row with missing values are those given its observed cells; the fewer there are, the larger
        is their posterior covariance.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN where a cell is missing.
        return_cov : bool, default=False
            Also return how certain each row's scores are.
        draw : bool, default=False
            Draw each row's scores from p(x | t) in place of its mean: those of uncertain rows scatter more.
        random_state : int, RandomState instance or None, default=None
            Seed of the draw; None is 0.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_components)
            Posterior means, or draws.
        covariances : ndarray of shape (n_samples, n_components, n_components)
            Posterior covariances; only if `return_cov`.
        """
        rows = self._rows(X)
        if draw:
            found = self._model.draw_scores(rows, _table.seed_of(random_state), n_threads())
        else:
            found = self._model.transform(rows, "posterior", n_threads())
        scores = _table.like(found, rows)
        if not return_cov:
            return scores
        return scores, _table.like(self._model.score_covariances(rows, n_threads()), rows)

    def inverse_transform(self, X: ArrayLike, *, draw: bool = False, random_state: Any = None) -> Array:
        """Rows from scores: ``X @ loadings_.T + mean_``, the part of a row that is not noise, or a draw with noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Scores.
        draw : bool, default=False
            Draw each row from p(t | x), with noise, in place of its mean.
        random_state : int, RandomState instance or None, default=None
            Seed of the draw; None is 0.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
            The rows they stand for.
        """
        check_is_fitted(self)
        scores = _table.array(X)
        seed = _table.seed_of(random_state) if draw else None
        return _table.like(self._model.decode(scores.astype(np.float64, copy=False), seed), scores)

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
        rows: Array = self._sampled(n_samples, random_state, 0)[0]
        return rows

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
        found = self._model.outlyingness(self._rows(X), n_threads())
        return {name: found[name] for name in ("t2", "spe", "mahalanobis")}


class Standardizing(LinearGaussian):
    """Those that may give columns unit variance and have limits on their steps: most families."""

    #: Whether a number of components may be a share of the variance.
    _share = True
    random_state: Any

    def _fit_rows(self, rows: Array) -> Self:
        own = self._own_request()
        return self._learn(
            rows,
            n_components=_options.components(self, share=self._share),
            standardize=_options.switch(self, "standardize"),
            max_iterations=_options.whole(self, "max_iter", 1),
            tolerance=_options.number(self, "tol"),
            seed=_table.seed_of(self.random_state),
            **own,
        )

    def _own_request(self) -> dict[str, Any]:
        """What is asked for besides."""
        return {}

    @classmethod
    def _options_of(cls, model: _covary.Model) -> dict[str, Any]:
        return {"n_components": model.n_components, "standardize": model.standardized}


__all__ = ["LinearGaussian", "Standardizing"]
