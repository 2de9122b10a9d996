"""What every fitted mixture answers, whatever its models stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import DensityMixin

from . import _covary
from ._fitted import Draws, Fitted, Scores
from ._threads import n_threads

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from typing_extensions import Self

    from ._fitted import Array


class Mixed(Draws, Fitted):
    """Several models, found in the rows or known as their classes."""

    _model: _covary.Mixture

    def _publish(self, model: _covary.Mixture, rows: Array | None = None) -> None:
        super()._publish(model)
        self.weights_ = model.weights
        self.means_ = model.means

    def predict_proba(self, X: ArrayLike) -> Array:
        """How probable each model (or class) is for each row, by its observed cells.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN where a cell is missing.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_models)
            Rows sum to 1.
        """
        rows = self._rows(X)
        return self._model.responsibilities(rows, n_threads())

    def predict(self, X: ArrayLike) -> Array:
        """The model, or class, that each row most likely belongs to.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN where a cell is missing.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Places among `weights_`, or of `classes_`.
        """
        return self._labels(np.argmax(self.predict_proba(X), axis=1))

    def _labels(self, places: Array) -> Array:
        """What the models at these places are called."""
        return places

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Fresh rows, and the model, or class, that each is from.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState instance or None, default=None
            Seed; None is 0, so that a call repeats itself.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
            Rows drawn from the models.
        labels : ndarray of shape (n_samples,)
            Where they are from.
        """
        rows, places = self._sampled(n_samples, random_state, 1)
        return rows, self._labels(np.asarray(places))

    def model_scores(self, X: ArrayLike) -> Array:
        """Scores of each row under each model: the posterior means of its latent vectors.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN where a cell is missing.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_models, n_components)
            0 beyond the components that a model has. Those of the model that a row belongs to are ``scores[i, predict(X)[i]]``.
        """
        rows = self._rows(X)
        return self._model.scores(rows, n_threads())


class Mixture(Scores, DensityMixin, Mixed):
    """Mixtures whose models nobody has named."""

    covariances_: Array

    def fit_predict(self, X: ArrayLike, y: Any = None) -> Array:
        """Fit, then the model that each row most likely belongs to.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table; NaN where a cell is missing.
        y : None
            Ignored.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Places among `weights_`.
        """
        return self.fit(X).predict(X)

    def bic(self, X: ArrayLike) -> float:
        """Bayesian information criterion on `X`: the lower the better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN where a cell is missing.

        Returns
        -------
        bic : float
            ``-2 * log_likelihood + n_parameters * log(n_samples)``.
        """
        found = self.score_samples(X)
        return float(-2.0 * found.sum() + self._model.n_parameters * np.log(len(found)))

    def aic(self, X: ArrayLike) -> float:
        """Akaike information criterion on `X`: the lower the better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN where a cell is missing.

        Returns
        -------
        aic : float
            ``-2 * log_likelihood + 2 * n_parameters``.
        """
        return float(-2.0 * self.score_samples(X).sum() + 2.0 * self._model.n_parameters)


__all__ = ["Mixed", "Mixture"]
