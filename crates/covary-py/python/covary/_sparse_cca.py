"""Canonical correlation of two views by sparse vectors."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import _get_feature_names, check_is_fitted

from . import _covary, _options, _table
from ._threads import n_threads
from ._two_views import TwoViews
from .exceptions import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from typing_extensions import Self

    from ._fitted import Array


class SparseCCA(TwoViews):
    """Canonical correlations of two views by vectors that are mostly 0; gaps are welcome.

    Maximizes ``u @ C @ v`` over vectors of unit length whose absolute values sum to at most ``penalty * sqrt(columns)``, C
    being the correlations of the columns of X with those of y (a penalized matrix decomposition), then the same of what
    that leaves of C. Columns within a view are treated as if they were uncorrelated, so that views may have more
    columns than rows.

    Parameters
    ----------
    n_components : int, default=1
        How many pairs of variates.
    penalty : "permutation", float or tuple of two floats, default="permutation"
        How sparse the vectors are, above 0 and at most 1, for both views or for each: the smaller, the more zeros; 1 is
        no bound. "permutation" takes that of ten from 0.1 to 0.7 at which the first correlation stands out most from
        those of rows that are permuted.
    n_permutations : int, default=25
        How many permutations "permutation" makes.
    max_iter : int, default=1000
        Most iterations for each pair.
    tol : float, default=1e-9
        Stop when no weight of y moves by more than this in an iteration.
    random_state : int, RandomState instance or None, default=None
        Seed of the permutations. None is 0: runs repeat themselves.

    Attributes
    ----------
    x_weights_, y_weights_ : ndarray of shape (n_features, n_components) and (n_targets, n_components)
        Canonical vectors of standardized columns, at unit length, with their zeros.
    correlations_ : ndarray of shape (n_components,)
        Correlation of each pair of variates; with gaps, by the correlations of columns over the rows that have both.
    penalties_ : tuple of two floats
        Those of X and y.
    permutations_ : dict of ndarray
        For each penalty tried its ``"penalty"``, first ``"correlation"``, ``"z"`` and ``"p_value"`` beside permuted rows (of that penalty alone);
        empty arrays if the penalty was given.
    x_mean_, y_mean_, x_scale_, y_scale_ : ndarray
        Means and standard deviations of the observed cells of each column.
    n_components_ : int
        How many pairs there are.
    n_iter_ : int
        Iterations of the pair that took most.
    n_features_in_, feature_names_in_
        Those of X.

    See Also
    --------
    ProbabilisticCCA : All columns, a likelihood, and one view predicted from the other.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import SparseCCA
    >>> rng = np.random.default_rng(0)
    >>> shared = rng.normal(size=(200, 1))
    >>> X, Y = rng.normal(size=(200, 8)), rng.normal(size=(200, 9))
    >>> X[:, :2] += 3 * shared
    >>> Y[:, :3] -= 3 * shared
    >>> cca = SparseCCA(penalty=(0.45, 0.5)).fit(X, Y)
    >>> np.flatnonzero(cca.x_weights_), np.flatnonzero(cca.y_weights_)
    (array([0, 1]), array([0, 1, 2]))
    """

    x_weights_: Array
    y_weights_: Array

    def __init__(
        self,
        n_components: int = 1,
        *,
        penalty: str | float | tuple[float, float] = "permutation",
        n_permutations: int = 25,
        max_iter: int = 1000,
        tol: float = 1e-9,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.penalty = penalty
        self.n_permutations = n_permutations
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Find the canonical vectors of two views.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The first view; NaN where a cell is missing.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            The second view, likewise.

        Returns
        -------
        self : SparseCCA
            The fitted estimator.
        """
        rows, second = self._both(X, y)
        names = _get_feature_names(y)
        tol = _options.number(self, "tol")
        if tol is None:
            raise _options.refuse(self, "tol", tol, "a number")
        weights, correlations, means, scales, penalties, tried, n_iterations = _covary.sparse_canonical(
            rows,
            second,
            (_table.names(self), None if names is None else [str(name) for name in names]),
            _options.required(self, "n_components"),
            penalties=self._penalties(),
            n_permutations=_options.required(self, "n_permutations"),
            seed=_table.seed_of(self.random_state),
            max_iterations=_options.required(self, "max_iter"),
            tolerance=tol,
            threads=n_threads(),
        )
        self.x_weights_, self.y_weights_ = _table.like(weights[0], rows), _table.like(weights[1], second)
        self.x_mean_, self.y_mean_ = (np.asarray(mean) for mean in means)
        self.x_scale_, self.y_scale_ = (np.asarray(scale) for scale in scales)
        self.correlations_ = np.asarray(correlations)
        self.penalties_ = (penalties[0], penalties[1])
        columns = np.asarray(tried).reshape(-1, 4).T
        self.permutations_ = dict(zip(("penalty", "correlation", "z", "p_value"), columns, strict=True))
        self.n_components_ = len(correlations)
        self.n_iter_ = max(n_iterations)
        return self

    def _penalties(self) -> tuple[float, float] | None:
        given: Any = self.penalty
        if isinstance(given, str) and given == "permutation":
            return None
        both = (given, given) if isinstance(given, Real) and not isinstance(given, bool) else given
        if not isinstance(both, (tuple, list)) or len(both) != 2 or not all(isinstance(c, Real) for c in both):
            wanted = '"permutation", a number above 0 and at most 1, or two of them'
            raise _options.refuse(self, "penalty", given, wanted)
        return float(both[0]), float(both[1])

    def transform(self, X: ArrayLike, y: ArrayLike | None = None) -> Any:
        """Canonical variates of rows; a missing cell counts as the mean of its column.

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
        first = _table.like(np.nan_to_num((rows - self.x_mean_) / self.x_scale_) @ self.x_weights_, rows)
        if y is None:
            return first
        second = self._second(y, len(rows))
        if second.shape[1] != len(self.y_mean_):
            raise DataError(f"y has {second.shape[1]} columns, and SparseCCA was fitted with {len(self.y_mean_)}")
        return first, _table.like(np.nan_to_num((second - self.y_mean_) / self.y_scale_) @ self.y_weights_, second)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


__all__ = ["SparseCCA"]
