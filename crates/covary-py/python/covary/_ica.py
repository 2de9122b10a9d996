"""FastICA by scikit-learn's conventions."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from . import _covary, _options, _table
from ._threads import n_threads
from .exceptions import ConvergenceWarning, CovaryWarning, OptionError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from typing_extensions import Self

    from ._linear import Array


class FastICA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """scikit-learn's FastICA: the same signature and fixed points, sources in one order and sign.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of sources; as many as the table has directions if None.
    algorithm : {"parallel", "deflation"}, default="parallel"
        All sources at once, or one after the other.
    whiten : {"unit-variance", "arbitrary-variance"} or False, default="unit-variance"
        Centre and whiten the table first; sources then have variance 1, or 1 / n_samples. If False the table
        must be white already.
    fun : {"logcosh", "exp", "cube"}, default="logcosh"
        What far from Gaussian means. Functions of one's own are not taken.
    fun_args : dict or None, default=None
        ``{"alpha": a}``, from 1 to 2, for "logcosh".
    max_iter : int, default=200
        Most steps; of "deflation", for each source.
    tol : float, default=1e-4
        Ends when no direction turns by more: 1 - abs(cos).
    w_init : array-like of shape (n_components, n_components) or None, default=None
        Where to start; random if None.
    whiten_solver : {"svd", "eigh"}, default="svd"
        Of no effect: the precise one is taken where it is needed.
    random_state : int, RandomState instance or None, default=None
        Seed of a random start. None is 0, so that runs repeat.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The unmixing: sources are ``(X - mean_) @ components_.T``.
    mixing_ : ndarray of shape (n_features, n_components)
        Its pseudo-inverse, columns by falling length; in each the entry of largest absolute value is positive.
    mean_ : ndarray of shape (n_features,)
        Mean of each column; absent if `whiten` is False.
    whitening_ : ndarray of shape (n_components, n_features)
        The whitening, to rows of variance 1 / n_samples; absent if `whiten` is False.
    kurtosis_ : ndarray of shape (n_components,)
        Excess kurtosis of each source: 0 for a Gaussian one.
    n_iter_ : int
        Steps taken.
    converged_ : bool
        Whether they ended by `tol`.
    n_features_in_ : int
        Columns of the table.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if they had any.

    Notes
    -----
    Two sources or more that look Gaussian cannot be told apart; a `CovaryWarning` names them.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import FastICA
    >>> i = np.arange(2000)
    >>> sources = np.stack([i % 19, np.sin(0.37 * i)], axis=1)
    >>> mixing = np.array([[1.0, 9.0], [0.4, 7.0]])
    >>> ica = FastICA(random_state=0).fit(sources @ mixing.T)
    >>> print(np.abs(ica.components_ @ mixing).round(1))
    [[0.  1.4]
     [0.2 0. ]]
    """

    _unmixing: _covary.Unmixing

    def __init__(
        self,
        n_components: int | None = None,
        *,
        algorithm: str = "parallel",
        whiten: str | bool = "unit-variance",
        fun: str = "logcosh",
        fun_args: dict[str, Any] | None = None,
        max_iter: int = 200,
        tol: float = 1e-4,
        w_init: ArrayLike | None = None,
        whiten_solver: str = "svd",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.algorithm = algorithm
        self.whiten = whiten
        self.fun = fun
        self.fun_args = fun_args
        self.max_iter = max_iter
        self.tol = tol
        self.w_init = w_init
        self.whiten_solver = whiten_solver
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Separate the sources of a table.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table, complete.
        y : None
            Ignored.

        Returns
        -------
        self : FastICA
            The fitted estimator.
        """
        algorithm = _options.word(self, "algorithm", ("parallel", "deflation")) or "parallel"
        contrast = _options.word(self, "fun", ("logcosh", "exp", "cube")) or "logcosh"
        _options.word(self, "whiten_solver", ("svd", "eigh"))
        if self.whiten is not False:
            _options.word(self, "whiten", ("unit-variance", "arbitrary-variance"))
        max_iter, tol = _options.whole(self, "max_iter", 1), _options.number(self, "tol")
        asked = _options.whole(self, "n_components", 1)
        slope = (self.fun_args or {}).get("alpha", 1.0)
        if not isinstance(slope, (int, float)):
            raise OptionError(f"fun_args['alpha'] must be a number from 1 to 2. Got {slope!r} instead.")
        rows = _table.table(self, X, reset=True)
        n, d = rows.shape
        if asked is not None and self.whiten is False:
            warnings.warn("Ignoring n_components with whiten=False.", CovaryWarning, stacklevel=2)
            asked = None
        if asked is not None and asked > min(n, d):
            warnings.warn(f"n_components is too large: it will be set to {min(n, d)}", CovaryWarning, stacklevel=2)
            asked = None
        start = None if self.w_init is None else check_array(self.w_init, dtype=np.float64, order="C")
        found, (kurtosis, steps, converged, said) = _covary.fast_ica(
            rows,
            _table.names(self),
            asked,
            algorithm=algorithm,
            contrast=contrast,
            slope=float(slope),
            max_iterations=200 if max_iter is None else max_iter,
            tolerance=1e-4 if tol is None else tol,
            start=start,
            seed=_table.seed_of(self.random_state),
            whiten=self.whiten is not False,
            threads=n_threads(),
        )
        for of_convergence, text in said:
            warnings.warn(text, ConvergenceWarning if of_convergence else CovaryWarning, stacklevel=2)
        self._unmixing = found
        # Sources of the library have variance 1.
        self._scale = 1.0 / np.sqrt(n) if self.whiten == "arbitrary-variance" else 1.0
        self.components_ = _table.like(found.unmixing * self._scale, rows)
        self.mixing_ = _table.like(found.mixing / self._scale, rows)
        for name in ("mean_", "whitening_"):
            self.__dict__.pop(name, None)
        if self.whiten is not False:
            self.mean_ = _table.like(found.mean, rows)
            self.whitening_ = _table.like(found.whitening / np.sqrt(n), rows)
        self.kurtosis_ = kurtosis
        self.n_iter_, self.converged_ = steps, converged
        return self

    def transform(self, X: ArrayLike, copy: bool = True) -> Array:
        """Sources of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, complete.
        copy : bool, default=True
            Of no effect: the rows are never changed.

        Returns
        -------
        sources : ndarray of shape (n_samples, n_components)
            One column per source.
        """
        check_is_fitted(self)
        rows = _table.table(self, X, reset=False)
        sources = self._unmixing.transform(rows, n_threads())
        return _table.like(sources * self._scale if self._scale != 1.0 else sources, rows)

    def inverse_transform(self, X: ArrayLike, copy: bool = True) -> Array:
        """Rows from sources.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Sources.
        copy : bool, default=True
            Of no effect: they are never changed.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
            The rows they mix to.
        """
        check_is_fitted(self)
        sources = check_array(X, dtype=[np.float64, np.float32])
        return _table.like(self._unmixing.reconstruct(sources.astype(np.float64) / self._scale), sources)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_is_fitted__(self) -> bool:
        return "_unmixing" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
