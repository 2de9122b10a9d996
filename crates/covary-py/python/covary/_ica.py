"""Independent components: FastICA by scikit-learn's conventions, maximum likelihood, sources behind noise."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from . import _covary, _options, _table
from ._files import OPENERS, ModelFile
from ._threads import n_threads
from .exceptions import ConvergenceWarning, CovaryWarning, ModelFileError, OptionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike
    from typing_extensions import Self

    from ._linear import Array


class _Sources(ModelFile, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What all of them share: from rows to sources and back, and model files."""

    _model: _covary.Sources
    # Sources of the library have variance 1.
    _scale: float = 1.0

    def transform(self, X: ArrayLike, copy: bool = True) -> Array:
        """Sources of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN where a cell is missing, which only `NoisyICA` takes.
        copy : bool, default=True
            Of no effect: the rows are never changed.

        Returns
        -------
        sources : ndarray of shape (n_samples, n_components)
            One column per source.
        """
        check_is_fitted(self)
        rows = _table.table(self, X, reset=False)
        sources = self._model.transform(rows, n_threads())
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
        sources = _table.array(X)
        return _table.like(self._model.reconstruct(sources.astype(np.float64) / self._scale), sources)

    @classmethod
    def _of_file(cls, found: _covary.Sources) -> Self:
        estimator = cls(**cls._options_of(found.options))
        estimator.n_features_in_ = len(found.names)
        if not found.has_default_names:
            estimator.feature_names_in_ = np.asarray(found.names, dtype=object)
        estimator._publish(found, np.zeros(0))
        return estimator

    @classmethod
    def _options_of(cls, options: dict[str, str]) -> dict[str, Any]:
        """Constructor arguments that would ask for such sources."""
        q = options.get("n_components", "all")
        return {
            "n_components": None if q == "all" else int(q),
            "max_iter": int(options["max_iterations"]),
            "tol": float(options["tolerance"]),
        }

    def _warn(self, found: _covary.Sources) -> None:
        for of_convergence, text in found.warnings:
            warnings.warn(text, ConvergenceWarning if of_convergence else CovaryWarning, stacklevel=3)

    def _publish(self, found: _covary.Sources, rows: Array) -> None:
        """Sets the attributes, in the precision of the rows."""
        self._model = found
        self.mixing_ = _table.like(found.mixing / self._scale, rows)
        self.mean_ = _table.like(found.mean, rows)
        self.kurtosis_ = found.kurtosis
        self.n_iter_, self.converged_ = found.n_iterations, found.converged
        if found.unmixing is not None and found.whitening is not None:
            self.components_ = _table.like(found.unmixing * self._scale, rows)
            self.whitening_ = _table.like(found.whitening / np.sqrt(found.n_rows), rows)

    @property
    def _n_features_out(self) -> int:
        return self.mixing_.shape[1]

    def __sklearn_is_fitted__(self) -> bool:
        return "_model" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class FastICA(_Sources):
    """scikit-learn's FastICA: the same signature and fixed points, sources in one order and sign.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of sources; as many as the table has directions if None.
    algorithm : {"parallel", "deflation"}, default="parallel"
        All sources at once, or one after the other.
    whiten : {"unit-variance", "arbitrary-variance"} or False, default="unit-variance"
        Center and whiten the table first; sources then have variance 1, or 1 / n_samples. If False the table
        must be white already.
    fun : {"logcosh", "exp", "cube"} or callable, default="logcosh"
        What far from Gaussian means, or a function of the sources, of shape (n_components, n_samples) or for
        "deflation" (n_samples,), that returns the derivative g of one's own contrast and the mean of g's slope
        over the last axis. A model file does not keep such a function.
    fun_args : dict or None, default=None
        ``{"alpha": a}``, from 1 to 2, for "logcosh"; keyword arguments of a function of one's own.
    max_iter : int, default=200
        Most steps; of "deflation", for each source.
    tol : float, default=1e-4
        Ends when no direction turns by as much: 1 - abs(cos). 0 makes all steps.
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
        Its pseudo-inverse, columns by decreasing length; in each the entry of largest absolute value is positive.
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

    def __init__(
        self,
        n_components: int | None = None,
        *,
        algorithm: str = "parallel",
        whiten: str | bool = "unit-variance",
        fun: str | Callable[..., Any] = "logcosh",
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
        named = None if callable(self.fun) else _options.word(self, "fun", ("logcosh", "exp", "cube"))
        contrast = named or "logcosh"
        _options.word(self, "whiten_solver", ("svd", "eigh"))
        if self.whiten is not False:
            _options.word(self, "whiten", ("unit-variance", "arbitrary-variance"))
        max_iter, tol = _options.whole(self, "max_iter", 1), _options.number(self, "tol")
        asked = _options.whole(self, "n_components", 1)
        slope = 1.0 if callable(self.fun) else (self.fun_args or {}).get("alpha", 1.0)
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
        found = _covary.separate(
            rows,
            _table.names(self),
            "fastica",
            asked,
            [
                ("algorithm", algorithm),
                ("contrast", f"logcosh {float(slope)!r}" if contrast == "logcosh" else contrast),
                ("max_iterations", str(200 if max_iter is None else max_iter)),
                ("tolerance", repr(1e-4 if tol is None else tol)),
                ("whiten", "false" if self.whiten is False else "true"),
            ],
            start=start,
            own=self._own if callable(self.fun) else None,
            as_is=True,
            seed=_table.seed_of(self.random_state),
            threads=n_threads(),
        )
        self._warn(found)
        self._scale = 1.0 / np.sqrt(n) if self.whiten == "arbitrary-variance" else 1.0
        self._publish(found, rows)
        return self

    def _own(self, sources: Array) -> tuple[Array, list[float]]:
        """The contrast that was given, of sources in rows."""
        one = self.algorithm == "deflation"
        found = self.fun(sources[0] if one else sources, **(self.fun_args or {}))  # type: ignore[operator]
        if not isinstance(found, tuple) or len(found) != 2:
            raise OptionError("fun must return two arrays: g of the sources, and the mean of its slope for each")
        g, slopes = (np.asarray(part, dtype=np.float64) for part in found)
        if g.shape != (sources[0] if one else sources).shape:
            raise OptionError(f"fun returned g of shape {g.shape} for sources of shape {sources.shape}")
        if one:
            slopes = slopes.mean(keepdims=True).reshape(1)
        if slopes.shape != (len(sources),):
            raise OptionError(f"fun returned slopes of shape {slopes.shape}: give one mean for each source")
        return np.ascontiguousarray(g.reshape(sources.shape)), slopes.tolist()

    def _publish(self, found: _covary.Sources, rows: Array) -> None:
        super()._publish(found, rows)
        if self.whiten is False:
            del self.mean_, self.whitening_

    @classmethod
    def _options_of(cls, options: dict[str, str]) -> dict[str, Any]:
        contrast, _, slope = options["contrast"].partition(" ")
        return super()._options_of(options) | {
            "algorithm": options["algorithm"],
            "whiten": "unit-variance" if options["whiten"] == "true" else False,
            "fun": contrast,
            "fun_args": {"alpha": float(slope)} if slope else None,
            "random_state": int(options["seed"]),
        }


class InfomaxICA(_Sources):
    """Independent components by maximum likelihood, each source with a density of heavy or light tails.

    With ``sources="extended"`` this is extended infomax at its optimum: relative Newton steps that never lower the
    likelihood, and no learning rate.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of sources; as many as the table has directions if None.
    sources : {"extended", "logistic", "super", "sub"}, default="extended"
        Their densities: heavy ("super") or light tails ("sub") as the data say, or all of one kind.
    max_iter : int, default=500
        Most steps.
    tol : float, default=1e-8
        Ends when no entry of the relative gradient, which has no units, is larger.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The unmixing: sources are ``(X - mean_) @ components_.T``, of variance 1.
    mixing_ : ndarray of shape (n_features, n_components)
        Its pseudo-inverse, columns by decreasing length; in each the entry of largest absolute value is positive.
    mean_ : ndarray of shape (n_features,)
        Mean of each column.
    whitening_ : ndarray of shape (n_components, n_features)
        The whitening, to rows of variance 1 / n_samples.
    densities_ : list of str
        The density of each source: "super", "sub" or "logistic".
    kurtosis_ : ndarray of shape (n_components,)
        Excess kurtosis of each source: 0 for a Gaussian one.
    log_likelihood_ : float
        Of the whitened table, in nats.
    n_iter_ : int
        Steps taken.
    converged_ : bool
        Whether they ended by `tol`.
    n_features_in_ : int
        Columns of the table.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if they had any.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import InfomaxICA
    >>> i = np.arange(2000)
    >>> sources = np.stack([i % 19, 9 * np.sin(0.37 * i) ** 9], axis=1)
    >>> ica = InfomaxICA().fit(sources @ np.array([[1.0, 0.6], [0.4, 1.0]]).T)
    >>> ica.densities_
    ['sub', 'super']
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        sources: str = "extended",
        max_iter: int = 500,
        tol: float = 1e-8,
    ) -> None:
        self.n_components = n_components
        self.sources = sources
        self.max_iter = max_iter
        self.tol = tol

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
        self : InfomaxICA
            The fitted estimator.
        """
        sources = _options.word(self, "sources", ("extended", "logistic", "super", "sub"))
        options = [("sources", str(sources)), *_limits(self)]
        asked = _options.whole(self, "n_components", 1)
        rows = _table.table(self, X, reset=True)
        found = _covary.separate(
            rows, _table.names(self), "maximum-likelihood", asked, options, threads=n_threads()
        )
        self._warn(found)
        self._publish(found, rows)
        return self

    def _publish(self, found: _covary.Sources, rows: Array) -> None:
        super()._publish(found, rows)
        self.densities_ = found.densities
        self.log_likelihood_ = found.objective

    @classmethod
    def _options_of(cls, options: dict[str, str]) -> dict[str, Any]:
        return super()._options_of(options) | {"sources": options["sources"]}


class NoisyICA(_Sources):
    """Independent components behind noise, with gaps: Laplace sources, by a variational bound.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of sources; if None, as many as factor analysis (with `tied_noise` probabilistic PCA) predicts hidden
        cells best by.
    tied_noise : bool, default=False
        One noise variance for all columns.
    noise_floor : float, default=0.005
        Smallest noise variance as a share of a column's.
    max_iter : int, default=2000
        Most steps.
    tol : float, default=1e-8
        Ends when the bound is expected to rise by less, in nats per observed cell.

    Attributes
    ----------
    mixing_ : ndarray of shape (n_features, n_components)
        What one unit of each source adds to a row, columns by decreasing length; in each the entry of largest absolute
        value is positive.
    mean_ : ndarray of shape (n_features,)
        Mean of each column.
    noise_variance_ : ndarray of shape (n_features,)
        Noise of each column.
    kurtosis_ : ndarray of shape (n_components,)
        Excess kurtosis of a linear estimate of each source: 0 for a Gaussian one.
    lower_bound_ : float
        On the log-likelihood, in nats.
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
    Only heavy tails are modeled; a `CovaryWarning` names sources that have light ones. To fill gaps, `FactorAnalysis`
    is as exact and its intervals hold what they promise; these are narrow: of 95 % about 92 %.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import NoisyICA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.laplace(size=(500, 2)) @ rng.normal(size=(2, 5)) + 0.3 * rng.normal(size=(500, 5))
    >>> X[::7, 1] = np.nan
    >>> ica = NoisyICA(2).fit(X)
    >>> ica.transform(X).shape, bool(np.isnan(ica.impute(X)).any())
    ((500, 2), False)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        tied_noise: bool = False,
        noise_floor: float = 0.005,
        max_iter: int = 2000,
        tol: float = 1e-8,
    ) -> None:
        self.n_components = n_components
        self.tied_noise = tied_noise
        self.noise_floor = noise_floor
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Separate the sources of a table.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table; NaN where a cell is missing.
        y : None
            Ignored.

        Returns
        -------
        self : NoisyICA
            The fitted estimator.
        """
        options = [("tied_noise", str(_options.switch(self, "tied_noise")).lower()), *_limits(self)]
        floor = _options.number(self, "noise_floor")
        if floor is not None:
            options.append(("noise_floor", repr(floor)))
        asked = _options.whole(self, "n_components", 1)
        rows = _table.table(self, X, reset=True)
        found = _covary.separate(rows, _table.names(self), "noisy", asked, options, threads=n_threads())
        self._warn(found)
        self._publish(found, rows)
        return self

    def impute(self, X: ArrayLike, return_std: bool = False) -> Any:
        """The rows with their gaps filled by what the sources behind their other cells say.

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
        check_is_fitted(self)
        rows = _table.table(self, X, reset=False)
        return _table.filled(self._model.impute(rows, n_threads()), rows, return_std)

    def _publish(self, found: _covary.Sources, rows: Array) -> None:
        super()._publish(found, rows)
        assert found.noise_variance is not None
        self.noise_variance_ = _table.like(found.noise_variance, rows)
        self.lower_bound_ = found.objective

    @classmethod
    def _options_of(cls, options: dict[str, str]) -> dict[str, Any]:
        own = {"tied_noise": options["tied_noise"] == "true", "noise_floor": float(options["noise_floor"])}
        return super()._options_of(options) | own

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _limits(estimator: Any) -> list[tuple[str, str]]:
    """Limits of the iteration that were given, as text."""
    steps, tol = _options.whole(estimator, "max_iter", 1), _options.number(estimator, "tol")
    given = [("max_iterations", steps), ("tolerance", tol)]
    return [(name, repr(value)) for name, value in given if value is not None]


_CLASSES: dict[str, type[_Sources]] = {
    "fastica": FastICA,
    "maximum-likelihood": InfomaxICA,
    "noisy": NoisyICA,
}


def _opened(found: _covary.Sources) -> Any:
    """The estimator that a file of sources holds."""
    cls = _CLASSES.get(found.method)
    if cls is None:
        raise ModelFileError(f"the file holds sources found by {found.method!r}, which has no class here")
    return cls._of_file(found)


OPENERS[_covary.Sources] = _opened
