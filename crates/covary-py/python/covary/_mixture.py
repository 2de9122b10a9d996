"""Mixtures of linear-Gaussian models, and classes with a model each."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, DensityMixin
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from . import _covary, _options, _table
from ._files import OPENERS, ModelFile
from ._threads import n_threads
from .exceptions import ComponentsError, ConvergenceWarning, CovaryWarning, DataError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray
    from typing_extensions import Self

    Array = NDArray[Any]

#: Components of each model where nothing was said.
_FEW = 2


class _Mixed(ModelFile, BaseEstimator):
    """What every fitted mixture answers, whatever its models stand for."""

    _model: _covary.Mixture

    def _publish(self, model: _covary.Mixture) -> None:
        self._model = model
        self.weights_ = model.weights
        self.means_ = model.means
        self.trace_ = model.trace
        self.log_likelihood_ = model.log_likelihood
        self.n_iter_ = max(1, model.n_iterations)
        self.converged_ = model.converged

    def _warn(self) -> None:
        for message in self._model.warnings:
            late = message.startswith("still rising")
            warnings.warn(message, ConvergenceWarning if late else CovaryWarning, stacklevel=3)

    def __sklearn_is_fitted__(self) -> bool:
        return "_model" in self.__dict__

    def _rows(self, X: ArrayLike) -> Array:
        check_is_fitted(self)
        return _table.table(self, X, reset=False)

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

    def score_samples(self, X: ArrayLike) -> Array:
        """Log-density of each row in nats under the mixture, gaps integrated out.

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

    def model_scores(self, X: ArrayLike) -> Array:
        """Scores of each row under each model: the posterior means of its latent vectors.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN where a cell is missing.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_models, n_components)
            Those of the model that a row belongs to are ``scores[i, predict(X)[i]]``.
        """
        rows = self._rows(X)
        return self._model.scores(rows, n_threads())

    def impute(self, X: ArrayLike, return_std: bool = False) -> Any:
        """The rows with their gaps filled by conditional means, each model as far as it is probable.

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
        return _table.filled(self._model.impute(rows, n_threads()), rows, return_std)

    def sample_gaps(self, X: ArrayLike, n_draws: int = 1, random_state: Any = None) -> Array:
        """Completed copies of a table whose gaps are joint random draws given what is observed.

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
        rows, seed = self._rows(X), _table.seed_of(random_state)
        if not isinstance(n_draws, (int, np.integer)) or n_draws < 1:
            raise ValueError(f"n_draws must be a whole number from 1, got {n_draws!r}")
        draws = [self._model.draw_gaps(rows, k, seed, n_threads()) for k in range(int(n_draws))]
        return _table.like(np.stack(draws), rows)

    def _sampled(self, n_samples: Any, random_state: Any) -> tuple[Array, Array]:
        check_is_fitted(self)
        if not isinstance(n_samples, (int, np.integer)) or n_samples < 1:
            raise ValueError(f"n_samples must be a whole number from 1, got {n_samples!r}")
        np.empty((int(n_samples), self.n_features_in_))  # MemoryError rather than an abort
        rows, labels = self._model.sample(int(n_samples), _table.seed_of(random_state))
        return rows, np.asarray(labels)

    @classmethod
    def _of_model(cls, model: _covary.Mixture) -> Self:
        estimator = cls(**cls._options_of(model))
        estimator.n_features_in_ = len(model.names)
        if not model.has_default_names:
            estimator.feature_names_in_ = np.asarray(model.names, dtype=object)
        estimator._publish(model)
        return estimator

    @classmethod
    def _options_of(cls, model: _covary.Mixture) -> dict[str, Any]:
        """Constructor arguments that would ask for such a model."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class _Mixture(DensityMixin, _Mixed):
    """Mixtures whose models nobody has named."""

    def predict(self, X: ArrayLike) -> Array:
        """The model that each row most likely belongs to.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN where a cell is missing.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Places among `weights_`.
        """
        return np.argmax(self.predict_proba(X), axis=1)

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

    def score(self, X: ArrayLike, y: Any = None) -> float:
        """Average log-density of the rows; what cross-validation compares.

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

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Fresh rows, and the model that each is from.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState instance or None, default=None
            Seed; None is 0, so that a call repeats itself.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
            Rows drawn from the mixture.
        labels : ndarray of shape (n_samples,)
            Their models.
        """
        return self._sampled(n_samples, random_state)

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Fit the mixture to the observed cells of a table.

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
        raise NotImplementedError


class MixturePPCA(_Mixture):
    """A mixture of probabilistic PCAs, or of factor analyzers, exact with missing cells.

    Rows come in groups, each with its own mean, plane and noise. EM finds the groups and fits their
    models at once; gaps are integrated out.

    Parameters
    ----------
    n_mixtures : int, default=2
        Number of models.
    n_components : int or None, default=None
        Components of each; None is 2, or as many as the columns can determine where that is fewer.
    noise : {"isotropic", "diagonal"}, default="isotropic"
        One noise variance for all columns of a model, or one for each (factor analysis).
    standardize : bool, default=True
        Give every column unit variance before fitting; results are in the table's units either way.
    max_iter : int or None, default=None
        Most steps; None is 1000.
    tol : float or None, default=None
        Stop when the log-likelihood is expected to rise by less than this many nats; None is 1e-3.
    n_init : int, default=12
        Starts, by k-means and around rows taken at random in turn; each makes a few steps and the best
        go on.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts; None is 0.
    verbose : bool or int, default=False
        Tell on standard error how far a long fit is.

    Attributes
    ----------
    weights_ : ndarray of shape (n_mixtures,)
        Share of the rows in each model, in decreasing order.
    means_ : ndarray of shape (n_mixtures, n_features)
        Means.
    loadings_ : ndarray of shape (n_mixtures, n_features, n_components)
        Loadings.
    noise_variance_ : ndarray of shape (n_mixtures,) or (n_mixtures, n_features)
        Noise variances; one for each column unless all share one.
    covariances_ : ndarray of shape (n_mixtures, n_features, n_features)
        ``loadings @ loadings.T`` plus the noise; worked out when asked for.
    log_likelihood_ : float
        Of the observed cells, in nats.
    trace_, n_iter_, converged_, n_components_, n_features_in_, feature_names_in_
        As of :class:`PPCA`.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import MixturePPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 5)) + np.where(np.arange(200) < 50, 10.0, 0.0)[:, None]
    >>> X[rng.random(X.shape) < 0.1] = np.nan
    >>> mixture = MixturePPCA(2, n_components=1).fit(X)
    >>> np.round(mixture.weights_, 2)
    array([0.75, 0.25])
    """

    def __init__(
        self,
        n_mixtures: int = 2,
        *,
        n_components: int | None = None,
        noise: str = "isotropic",
        standardize: bool = True,
        max_iter: int | None = None,
        tol: float | None = None,
        n_init: int = 12,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_mixtures = n_mixtures
        self.n_components = n_components
        self.noise = noise
        self.standardize = standardize
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: Any = None) -> Self:  # noqa: D102
        rows = _table.table(self, X, reset=True)
        noise = _options.word(self, "noise", ("isotropic", "diagonal"))
        model = _covary.fit_mixture(
            rows,
            _table.names(self),
            "mppca" if noise == "isotropic" else "mfa",
            n_mixtures=_required(self, "n_mixtures"),
            n_components=_components(self, rows),
            most=_FEW,
            noise=str(noise),
            standardize=_options.switch(self, "standardize"),
            max_iterations=_options.whole(self, "max_iter", 1),
            tolerance=_options.number(self, "tol"),
            restarts=_required(self, "n_init") - 1,
            seed=_table.seed_of(self.random_state),
            threads=n_threads(),
            progress=_options.progress(self),
        )
        self._publish(model)
        self._warn()
        return self

    fit.__doc__ = _Mixture.fit.__doc__

    def _publish(self, model: _covary.Mixture) -> None:
        super()._publish(model)
        self.n_components_ = model.n_components
        self.loadings_ = model.loadings
        shared = model.noise_variance
        self.noise_variance_ = model.noise_variances if shared is None else shared

    @property
    def covariances_(self) -> Array:
        """Covariances, of shape (n_mixtures, n_features, n_features)."""
        check_is_fitted(self)
        return self._model.covariances

    @classmethod
    def _options_of(cls, model: _covary.Mixture) -> dict[str, Any]:
        return {
            "n_mixtures": len(model.weights),
            "n_components": model.n_components,
            "noise": model.noise,
            "standardize": model.standardized,
        }


class GaussianMixture(_Mixture):
    """scikit-learn's Gaussian mixture, with missing cells.

    Parameters, attributes and steps are those of :class:`sklearn.mixture.GaussianMixture`: from the same
    `random_state` a complete table gives the same numbers. Missing cells are integrated out, so that
    every log-density is that of the observed cells.

    Parameters
    ----------
    n_components : int, default=1
        Number of Gaussians; as many come back.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        Shape of the covariances: one of each Gaussian's own, one that all share, variances only, one
        variance only.
    tol : float, default=1e-3
        Stop when the mean log-likelihood per row changes by less than this many nats from one step to
        the next.
    reg_covar : float, default=1e-6
        Added to every variance, in squared units of the table. It gives columns that never vary a
        variance; with 0 these are left out of the model.
    max_iter : int, default=100
        Most steps; with 0 the start comes back.
    n_init : int, default=1
        Starts, each followed to its end; the best is kept.
    init_params : {"kmeans", "k-means++", "random", "random_from_data", "auto"}, default="kmeans"
        How they are made: clusters of k-means; rows far from each other; random responsibilities; rows
        at random. Where cells are missing, k-means compares rows by their observed cells, and seeds
        are compared with missing cells at the mean of their column. "auto", which scikit-learn does
        not have, takes k-means and the rows around some taken at random in turn, and follows only the
        best to their end.
    weights_init : array-like of shape (n_components,), default=None
        Weights to start from.
    means_init : array-like of shape (n_components, n_features), default=None
        Means to start from.
    precisions_init : array-like, default=None
        Inverse covariances to start from, shaped as `precisions_`.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts; None is 0, so that runs repeat.
    warm_start : bool, default=False
        Start from the last fit, if there is one of this size.
    verbose : bool or int, default=0
        Tell on standard error how far a long fit is.
    verbose_interval : int, default=10
        Steps between two such lines, at least.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Share of the rows in each Gaussian.
    means_ : ndarray of shape (n_components, n_features)
        Means.
    covariances_, precisions_, precisions_cholesky_ : ndarray
        Of shape (n_components, n_features, n_features) for "full", (n_features, n_features) for "tied",
        (n_components, n_features) for "diag", (n_components,) for "spherical"; worked out when asked for.
    lower_bound_ : float
        Log-likelihood per row at the last step but one, which `tol` was compared with, as in scikit-learn;
        that of the fitted mixture is ``log_likelihood_ / n_samples``.
    lower_bounds_ : list of float
        The same before every step.
    log_likelihood_ : float
        Of the observed cells under the fitted mixture, in nats.
    n_iter_ : int
        Steps of the start that was kept.
    trace_, converged_, n_features_in_, feature_names_in_
        As of :class:`PPCA`.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import GaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(60, 2)), rng.normal(size=(40, 2)) + 8])
    >>> X[rng.random(X.shape) < 0.1] = np.nan
    >>> labels = GaussianMixture(2).fit(X).predict([[0.5, np.nan], [8, 7], [-1, 0]])
    >>> bool(labels[0] == labels[2] != labels[1])
    True
    """

    covariances_: Array
    precisions_: Array
    precisions_cholesky_: Array

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: str = "kmeans",
        weights_init: ArrayLike | None = None,
        means_init: ArrayLike | None = None,
        precisions_init: ArrayLike | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: bool | int = 0,
        verbose_interval: int = 10,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval

    def fit(self, X: ArrayLike, y: Any = None) -> Self:  # noqa: D102
        rows = _table.table(self, X, reset=True)
        init = _options.word(self, "init_params", ("kmeans", "k-means++", "random", "random_from_data", "auto"))
        kind = _options.word(self, "covariance_type", ("full", "tied", "diag", "spherical"))
        k, n_init = _required(self, "n_components"), _required(self, "n_init")
        max_iter = _options.whole(self, "max_iter")
        free = kind in ("full", "tied")
        if k > rows.shape[0]:
            raise DataError(
                f"Expected n_samples >= n_components but got n_components = {k}, n_samples = {rows.shape[0]}"
            )
        warm = _options.switch(self, "warm_start") and self.__sklearn_is_fitted__()
        warm = warm and self.means_.shape == (k, rows.shape[1])
        given = self._given_start(k, rows.shape[1])

        def fitted(**start: Any) -> _covary.Mixture:
            asked: dict[str, Any] = {
                "n_mixtures": k,
                "n_components": None if free else 0,
                "noise": "diagonal" if kind == "diag" else "isotropic",
                # In units of each column a covariance keeps its digits.
                "standardize": free,
                "ridge": _options.number(self, "reg_covar"),
                "shared": kind == "tied",
                "max_iterations": max_iter,
                "tolerance": _options.number(self, "tol"),
                "change": True,
                "restarts": 0,
                "threads": n_threads(),
                "progress": _options.progress(self, _required(self, "verbose_interval")),
            }
            return _covary.fit_mixture(rows, _table.names(self), "gmm", **(asked | start))

        if warm:
            model = fitted(last=self._model, before=self.lower_bound_)
        elif len(given) == 3:
            model = fitted(**given)
        elif init == "auto" and not given:
            model = fitted(init="auto", restarts=n_init - 1, seed=_table.seed_of(self.random_state))
        else:
            # Of the sequence that scikit-learn draws from, too.
            random = check_random_state(0 if self.random_state is None else self.random_state)
            tied = float(self.reg_covar) if kind == "tied" else None
            starts = [_start(rows, k, str(init), random, tied) for _ in range(n_init)]
            if given:
                starts = [_completed(fitted(**start, max_iterations=0), given) for start in starts]
            model = _best(fitted(**start) for start in starts)
        for name in ("covariances_", "precisions_", "precisions_cholesky_"):
            self.__dict__.pop(name, None)
        self._publish(model)
        if max_iter != 0:
            self._warn()
        return self

    fit.__doc__ = _Mixture.fit.__doc__

    def _given_start(self, k: int, d: int) -> dict[str, Any]:
        """What was said of the start."""
        start: dict[str, Any] = {}
        if self.weights_init is not None:
            weights = self._given("weights_init", (k,))
            if (weights < 0).any() or abs(weights.sum() - 1.0) > 1e-6:
                raise _options.refuse(self, "weights_init", self.weights_init, "not negative, with a sum of 1")
            start["weights"] = weights.tolist()
        if self.means_init is not None:
            start["means"] = self._given("means_init", (k, d))
        if self.precisions_init is not None:
            kind = self.covariance_type
            shape = {"full": (k, d, d), "tied": (d, d), "diag": (k, d)}.get(kind, (k,))
            precisions = self._given("precisions_init", shape)
            if kind in ("full", "tied"):
                covariances = _inverses(precisions if kind == "full" else precisions[None])
                if covariances is None:
                    wanted = "symmetric and positive definite"
                    raise _options.refuse(self, "precisions_init", self.precisions_init, wanted)
                covariances = np.repeat(covariances, 1 if kind == "full" else k, axis=0)
            else:
                if (precisions <= 0).any():
                    raise _options.refuse(self, "precisions_init", self.precisions_init, "above 0")
                wide = precisions if kind == "diag" else np.repeat(precisions[:, None], d, axis=1)
                covariances = np.stack([np.diag(1.0 / row) for row in wide])
            start["covariances"] = np.ascontiguousarray(covariances)
        return start

    def _given(self, name: str, shape: tuple[int, ...]) -> Array:
        values = np.ascontiguousarray(getattr(self, name), dtype=np.float64)
        if values.shape != shape or not np.isfinite(values).all():
            raise _options.refuse(self, name, getattr(self, name), f"finite numbers of shape {shape}")
        return values

    def _publish(self, model: _covary.Mixture) -> None:
        super()._publish(model)
        self.n_iter_ = model.n_iterations
        self.lower_bounds_ = _bounds(model)
        self.lower_bound_ = self.lower_bounds_[-1] if self.lower_bounds_ else -np.inf

    def __getattr__(self, name: str) -> Any:
        if name in ("covariances_", "precisions_", "precisions_cholesky_") and "_model" in self.__dict__:
            value = getattr(self, f"_{name[:-1]}")()
            self.__dict__[name] = value
            return value
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _shared(self, matrices: Array) -> Array:
        return matrices[0] if self.covariance_type == "tied" else matrices

    def _covariances(self) -> Array:
        if self.covariance_type in ("full", "tied"):
            return self._shared(self._model.covariances)
        variances = self._model.noise_variances
        return variances if self.covariance_type == "diag" else variances[:, self._model.columns[0]]

    def _precisions(self) -> Array:
        if self.covariance_type in ("full", "tied"):
            return self._shared(self._model.precisions)
        return 1.0 / self.covariances_

    def _precisions_cholesky(self) -> Array:
        if self.covariance_type not in ("full", "tied"):
            return np.sqrt(self.precisions_)
        lower = np.linalg.cholesky(self.covariances_)
        return np.swapaxes(np.linalg.inv(lower), -1, -2)

    @classmethod
    def _options_of(cls, model: _covary.Mixture) -> dict[str, Any]:
        free = model.n_components > 0 or len(model.columns) == 1
        if model.shares_covariance:
            kind = "tied"
        else:
            kind = "full" if free else "diag" if model.noise == "diagonal" else "spherical"
        return {"n_components": len(model.weights), "covariance_type": kind}


def _start(rows: Array, k: int, init: str, random: np.random.RandomState, tied: float | None) -> dict[str, Any]:
    """One start of a mixture, from the random numbers that scikit-learn's takes; `tied` is its `reg_covar`, if it is."""
    n, gaps = rows.shape[0], ~np.isfinite(rows)
    shares = np.zeros((n, k))
    if init in ("kmeans", "auto"):
        if gaps.any():
            return {"init": "k-means", "seed": int(random.randint(2**31 - 1))}
        found = KMeans(n_clusters=k, n_init=1, random_state=random).fit(rows).labels_
        shares[np.arange(n), found] = 1.0
        return {"responsibilities": shares}
    if init == "random":
        shares = random.uniform(size=(n, k))
        return {"responsibilities": shares / shares.sum(axis=1, keepdims=True)}
    filled = rows
    if gaps.any():
        observed = np.ma.masked_array(rows, gaps)
        filled = observed.filled(observed.mean(axis=0).filled(0.0))
    if init == "random_from_data":
        chosen = random.choice(n, size=k, replace=False)
    else:
        chosen = kmeans_plusplus(filled, k, random_state=random)[1]
    if tied is None:
        shares[chosen, np.arange(k)] = 1.0
        return {"responsibilities": shares}
    # scikit-learn counts the rows that belong to no Gaussian about the origin.
    means = np.ascontiguousarray(filled[chosen], dtype=np.float64)
    spread = (filled.T @ filled - means.T @ means) / k + tied * np.eye(rows.shape[1])
    return {"means": means, "covariances": np.stack([spread] * k), "weights": [1.0 / k] * k}


def _completed(model: _covary.Mixture, given: dict[str, Any]) -> dict[str, Any]:
    """A start of which some parameters were given."""
    whole = {"means": model.means, "covariances": model.covariances, "weights": model.weights.tolist()}
    return whole | given


def _bounds(model: _covary.Mixture) -> list[float]:
    """Log-likelihood per row before every step."""
    return [float(bound) for bound in model.trace[:-1] / model.n_rows]


def _best(models: Iterable[_covary.Mixture]) -> _covary.Mixture:
    """The first of those with the largest bound."""
    return max(models, key=lambda model: (_bounds(model) or [-np.inf])[-1])


def _inverses(matrices: Array) -> Array | None:
    """Inverses of symmetric positive definite matrices, in units that give them a diagonal of ones."""
    diagonal = np.diagonal(matrices, axis1=1, axis2=2)
    if (diagonal <= 0).any() or not np.allclose(matrices, matrices.transpose(0, 2, 1)):
        return None
    units = np.sqrt(diagonal)
    units = units[:, :, None] * units[:, None, :]
    try:
        lower = np.linalg.cholesky(matrices / units)
    except np.linalg.LinAlgError:
        return None
    roots = np.linalg.inv(lower)
    return roots.transpose(0, 2, 1) @ roots / units


class PPCAClassifier(ClassifierMixin, _Mixed):
    """A probabilistic PCA for each class: quadratic discriminant analysis with few components and gaps.

    A row belongs to a class as far as its observed cells are probable under the class's model, and as
    the class is frequent.

    Parameters
    ----------
    n_components : int or None, default=None
        Components of each class; None is 2, or as many as the columns can determine where that is fewer.
        One less than columns is quadratic discriminant analysis.
    noise : {"isotropic", "diagonal"}, default="isotropic"
        One noise variance for all columns of a class, or one for each (factor analysis).
    priors : array-like of shape (n_classes,), default=None
        How probable the classes are; None is as frequent as they were.
    standardize : bool, default=True
        Give every column of the table unit variance before fitting.
    verbose : bool or int, default=False
        Tell on standard error how far a long fit is.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    priors_ : ndarray of shape (n_classes,)
        Their probabilities.
    means_ : ndarray of shape (n_classes, n_features)
        Their means.
    loadings_ : ndarray of shape (n_classes, n_features, n_components)
        Their loadings.
    n_components_, n_features_in_, feature_names_in_
        As of :class:`PPCA`.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import PPCAClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["low", "high"], 50)
    >>> X = rng.normal(size=(100, 4)) + np.where(y == "high", 3.0, 0.0)[:, None]
    >>> X[rng.random(X.shape) < 0.2] = np.nan
    >>> PPCAClassifier(1).fit(X, y).predict([[3.1, np.nan, 2.8, np.nan]])
    array(['high'], dtype='<U4')
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        noise: str = "isotropic",
        priors: ArrayLike | None = None,
        standardize: bool = True,
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.noise = noise
        self.priors = priors
        self.standardize = standardize
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit a model to the rows of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table; NaN where a cell is missing.
        y : array-like of shape (n_samples,)
            The class of each row.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if y is None:
            raise DataError("requires y to be passed, but the target y is None")
        rows = _table.table(self, X, reset=True)
        if np.ma.is_masked(y):
            raise DataError("y has masked labels: give the class of every row, or leave those rows out")
        given: Array = column_or_1d(y, warn=True)
        check_classification_targets(given)
        if len(given) != rows.shape[0]:
            raise DataError(f"X has {rows.shape[0]} rows and y {len(given)} labels: give one for each")
        self.classes_, labels = np.unique(given, return_inverse=True)
        if len(self.classes_) < 2:
            raise DataError(
                f"y holds {len(self.classes_)} class, {self.classes_[0]!r}: "
                "a classifier tells classes apart; give rows of two or more"
            )
        model = _covary.fit_classes(
            rows,
            _table.names(self),
            labels.tolist(),
            [str(name) for name in self.classes_],
            n_components=_components(self, rows),
            most=_FEW,
            noise=str(_options.word(self, "noise", ("isotropic", "diagonal"))),
            standardize=_options.switch(self, "standardize"),
            priors=None if self.priors is None else np.asarray(self.priors, dtype=np.float64).tolist(),
            threads=n_threads(),
            progress=_options.progress(self),
        )
        self._publish(model)
        self._warn()
        return self

    def _publish(self, model: _covary.Mixture) -> None:
        super()._publish(model)
        del self.weights_
        self.priors_ = model.weights
        self.n_components_ = model.n_components
        self.loadings_ = model.loadings
        if "classes_" not in self.__dict__:
            self.classes_ = _classes(model.classes or [])

    def predict(self, X: ArrayLike) -> Array:
        """The most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN where a cell is missing.

        Returns
        -------
        classes : ndarray of shape (n_samples,)
            Of `classes_`.
        """
        found = self.predict_proba(X)
        return self.classes_[np.argmax(found, axis=1)]

    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Logarithms of :meth:`predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN where a cell is missing.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            Minus infinity where a probability is 0.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Fresh rows, and the class that each is from.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState instance or None, default=None
            Seed; None is 0, so that a call repeats itself.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
            Rows drawn from the classes.
        classes : ndarray of shape (n_samples,)
            Their classes.
        """
        rows, labels = self._sampled(n_samples, random_state)
        return rows, self.classes_[labels]

    @classmethod
    def _options_of(cls, model: _covary.Mixture) -> dict[str, Any]:
        return {
            "n_components": model.n_components,
            "noise": model.noise,
            "standardize": model.standardized,
        }


def _required(estimator: Any, name: str) -> int:
    """A whole number from 1."""
    value = _options.whole(estimator, name, 1)
    if value is None:
        raise _options.refuse(estimator, name, value, "a whole number from 1")
    return value


def _components(estimator: Any, rows: Array) -> int | None:
    """The number of components asked for, if any."""
    asked, d = _options.whole(estimator, "n_components"), rows.shape[1]
    if asked is not None and asked >= d:
        raise ComponentsError(f"n_components={asked} must be below n_features={d}: one more would leave no noise")
    return asked


def _classes(names: list[str]) -> Array:
    """Classes of a file, which keeps text: truths, whole numbers and numbers are such again.

    A code such as 007 is text, as its number would be written otherwise.
    """
    if set(names) <= {"False", "True"}:
        return np.asarray([name == "True" for name in names])
    whole = r"-?(0|[1-9]\d*)"
    for number, written in ((int, whole), (float, whole + r"(\.\d+)?(e[+-]?\d+)?")):
        if all(re.fullmatch(written, name, re.ASCII) for name in names):
            return np.asarray([number(name) for name in names])
    return np.asarray(names)


def _opened(model: _covary.Mixture) -> _Mixed:
    if model.classes is not None:
        return PPCAClassifier._of_model(model)
    return (GaussianMixture if model.family == "gmm" else MixturePPCA)._of_model(model)


OPENERS[_covary.Mixture] = _opened
__all__ = ["GaussianMixture", "MixturePPCA", "PPCAClassifier"]
