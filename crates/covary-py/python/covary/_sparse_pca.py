"""Sparse components by scikit-learn's objective, with gaps."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from . import _covary, _options, _table
from ._threads import n_threads
from .exceptions import OptionError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from typing_extensions import Self

    from ._fitted import Array


@dataclass(eq=False, repr=False)
class SparsePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """scikit-learn's SparsePCA: a table as scores times sparse components; gaps are welcome.

    Minimizes ``0.5 ||X - U V||^2 + alpha ||V||_1`` over the observed cells, columns of U being no longer than 1.
    :class:`SparsePPCA` is the model with a likelihood, which chooses the zeros by itself.

    Parameters
    ----------
    n_components : int or None, default=None
        How many components; as many as columns if None.
    alpha : float or sequence of n_components floats, default=1
        The larger, the more zeros. One for each component only by "elastic-net".
    n_nonzero : int or None, default=None
        How many entries of each component are not 0, exactly, in place of `alpha`, which has no part then: components keep
        their largest entries, not drawn towards 0.
    ridge_alpha : float, default=0.01
        Ridge of the regression that :meth:`transform` makes.
    max_iter : int, default=1000
        Most iterations.
    tol : float, default=1e-8
        Stop when an iteration lowers the objective by less than this share of it.
    method : {"lars", "cd", "elastic-net"}, default="lars"
        "lars" and "cd" are ways to the same minimum, which is found by coordinate descent. "elastic-net" minimizes another
        objective, that of Zou, Hastie and Tibshirani (2006), over the covariance matrix (with gaps, that of a Gaussian
        by EM): components are regressed on the columns, `alpha` being the penalty of each and `ridge_alpha` the ridge
        of all. :meth:`fit_covariance` has the same for a covariance or correlation matrix.
    n_jobs : int or None, default=None
        Of no effect: :func:`covary.threads` says how many threads there are.
    U_init : array-like of shape (n_samples, n_components), default=None
        Scores to start from; only together with `V_init`.
    V_init : array-like of shape (n_components, n_features), default=None
        Components to start from.
    verbose : bool or int, default=False
        Of no effect.
    random_state : int, RandomState instance or None, default=None
        Of no effect: nothing is left to chance.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Sparse components at unit length.
    error_ : list of float
        The objective after each iteration.
    n_components_ : int
        How many components there are.
    n_iter_ : int
        How many iterations were made.
    mean_ : ndarray of shape (n_features,)
        Mean of the observed cells of each column.
    variance_, adjusted_variance_ : ndarray of shape (n_components,)
        By "elastic-net": the variance along each component, and what each adds to those before it, with which it is
        correlated.
    adjusted_variance_ratio_ : ndarray of shape (n_components,)
        The latter as shares of the variance of all columns.
    n_features_in_, feature_names_in_
        As of every estimator.

    See Also
    --------
    SparsePPCA : Sparse loadings with a likelihood, filled cells, and a number of zeros that is chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import SparsePCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 6))
    >>> X[:, :3] += 3 * rng.normal(size=(200, 1))
    >>> X[rng.random(X.shape) < 0.1] = np.nan
    >>> model = SparsePCA(n_components=1, alpha=5).fit(X)
    >>> np.flatnonzero(model.components_[0])
    array([0, 1, 2])
    """

    components_: Array = field(init=False)
    mean_: Array = field(init=False)

    n_components: int | None = None
    _: KW_ONLY
    alpha: float | ArrayLike = 1
    n_nonzero: int | None = None
    ridge_alpha: float = 0.01
    max_iter: int = 1000
    tol: float = 1e-8
    method: str = "lars"
    n_jobs: int | None = None
    U_init: ArrayLike | None = None
    V_init: ArrayLike | None = None
    verbose: bool | int = False
    random_state: Any = None

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Find the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table; NaN where a cell is missing.
        y : None
            Ignored.

        Returns
        -------
        self : SparsePCA
            The fitted estimator.
        """
        rows = _table.table(self, X, reset=True)
        if _options.word(self, "method", ("lars", "cd", "elastic-net")) == "elastic-net":
            return self._elastic_net(rows, is_matrix=False)
        for name in ("variance_", "adjusted_variance_", "adjusted_variance_ratio_"):
            self.__dict__.pop(name, None)
        _options.number(self, "ridge_alpha")
        _options.whole(self, "max_iter")
        asked = _options.whole(self, "n_components", 1)
        q = rows.shape[1] if asked is None else asked
        components, mean, errors = _covary.sparse_components(
            rows,
            _table.names(self),
            q,
            alpha=_number(self, "alpha"),
            n_nonzero=_options.whole(self, "n_nonzero", 1),
            max_iterations=int(_number(self, "max_iter")),
            tolerance=_number(self, "tol"),
            start=self._start(),
            threads=n_threads(),
        )
        self.components_ = _table.like(components, rows)
        self.mean_ = _table.like(np.asarray(mean), rows)
        self.error_ = errors
        self.n_components_ = q
        self.n_iter_ = len(errors)
        return self

    def fit_covariance(self, covariance: ArrayLike) -> Self:
        """Find the components of a covariance or correlation matrix, by "elastic-net" alone.

        Parameters
        ----------
        covariance : array-like of shape (n_features, n_features)
            The matrix. Rows to transform are taken to be about 0.

        Returns
        -------
        self : SparsePCA
            The fitted estimator.
        """
        if _options.word(self, "method", ("lars", "cd", "elastic-net")) != "elastic-net":
            raise _options.refuse(self, "method", self.method, "'elastic-net' for a covariance matrix")
        return self._elastic_net(_table.matrix(self, covariance), is_matrix=True)

    def _elastic_net(self, rows: Array, *, is_matrix: bool) -> Self:
        if self.n_nonzero is not None or self.U_init is not None or self.V_init is not None:
            raise OptionError('method="elastic-net" has no n_nonzero, U_init and V_init; give alpha, one for each component')
        asked = _options.whole(self, "n_components", 1)
        q = rows.shape[1] if asked is None else asked
        penalties = np.atleast_1d(np.asarray(self.alpha, dtype=np.float64))
        if penalties.ndim != 1 or len(penalties) not in (1, q):
            raise _options.refuse(self, "alpha", self.alpha, f"a number, or {q} of them")
        components, mean, variance, adjusted, total, errors = _covary.elastic_net(
            rows,
            _table.names(self),
            np.broadcast_to(penalties, q).tolist(),
            is_matrix=is_matrix,
            ridge=_number(self, "ridge_alpha"),
            max_iterations=int(_number(self, "max_iter")),
            tolerance=_number(self, "tol"),
            threads=n_threads(),
        )
        self.components_ = _table.like(components, rows)
        self.mean_ = _table.like(np.asarray(mean), rows)
        self.variance_, self.adjusted_variance_ = np.asarray(variance), np.asarray(adjusted)
        self.adjusted_variance_ratio_ = self.adjusted_variance_ / total
        self.error_ = errors
        self.n_components_ = q
        self.n_iter_ = max(len(errors) - 1, 1)
        return self

    def _start(self) -> tuple[Array, Array] | None:
        given = self.U_init, self.V_init
        if given[0] is None and given[1] is None:
            return None
        if given[0] is None or given[1] is None:
            raise OptionError("U_init and V_init go together; give both or none")
        scores, components = (np.ascontiguousarray(part, dtype=np.float64) for part in given)
        return scores, components

    def transform(self, X: ArrayLike) -> Array:
        """Scores of rows: a ridge regression of the observed cells of each on the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN where a cell is missing.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_components)
            One row each; 0 for a row without an observed cell.
        """
        check_is_fitted(self)
        rows = _table.table(self, X, reset=False)
        centered = rows - self.mean_
        scores = np.zeros((len(rows), self.n_components_), dtype=centered.dtype)
        seen = ~np.isnan(centered)
        patterns, which = np.unique(seen, axis=0, return_inverse=True)
        for k, pattern in enumerate(patterns):
            of = which.ravel() == k
            axes = self.components_[:, pattern]
            gram = axes @ axes.T
            gram[np.diag_indices_from(gram)] += _number(self, "ridge_alpha")
            scores[of] = np.linalg.lstsq(gram, axes @ centered[of][:, pattern].T, rcond=None)[0].T
        return _table.like(scores, rows)

    def inverse_transform(self, X: ArrayLike) -> Array:
        """Rows of scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Scores.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
            ``X @ components_ + mean_``.
        """
        check_is_fitted(self)
        rows: Array = _table.array(X) @ self.components_ + self.mean_
        return rows

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _number(estimator: SparsePCA, name: str) -> float:
    value = _options.number(estimator, name)
    if value is None:
        raise _options.refuse(estimator, name, value, "a number")
    return value


__all__ = ["SparsePCA"]
