"""What estimators of two views share: X is the first, y the second."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from . import _table
from .exceptions import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ._fitted import Array


class TwoViews(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Canonical variates of X and y."""

    n_components_: int

    def _both(self, X: ArrayLike, y: ArrayLike | None) -> tuple[Array, Array]:
        """The views of a fit."""
        if y is None:
            kind = type(self).__name__
            raise ValueError(f"{kind} requires y to be passed, but the target y is None: it is the second view")
        rows = _table.table(self, X, reset=True)
        return rows, self._second(y, len(rows))

    def _second(self, y: ArrayLike, n: int) -> Array:
        second = _table.array(y, ensure_2d=False, order="C", ensure_all_finite="allow-nan", input_name="y")
        second = second.reshape(-1, 1) if second.ndim == 1 else second
        if len(second) != n:
            raise DataError(f"inconsistent numbers of samples: X has {n} rows and y {len(second)}")
        return second

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
        return self.fit(X, y).transform(X, y)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags


__all__ = ["TwoViews"]
