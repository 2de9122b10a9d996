"""Mixtures of Gaussians by scikit-learn's conventions, with gaps."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.utils import check_random_state

from . import _covary, _options, _table
from ._mixed import Mixture
from .exceptions import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike
    from typing_extensions import Self

    from ._fitted import Array


@dataclass(eq=False, repr=False)
class GaussianMixture(Mixture):
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

    _when_asked = frozenset(("covariances_", "precisions_", "precisions_cholesky_"))
    precisions_: Array = field(init=False)
    precisions_cholesky_: Array = field(init=False)

    n_components: int = 1
    _: KW_ONLY
    covariance_type: str = "full"
    tol: float = 1e-3
    reg_covar: float = 1e-6
    max_iter: int = 100
    n_init: int = 1
    init_params: str = "kmeans"
    weights_init: ArrayLike | None = None
    means_init: ArrayLike | None = None
    precisions_init: ArrayLike | None = None
    random_state: Any = None
    warm_start: bool = False
    verbose: bool | int = 0
    verbose_interval: int = 10

    def _fit_rows(self, rows: Array) -> Self:
        init = _options.word(self, "init_params", ("kmeans", "k-means++", "random", "random_from_data", "auto"))
        kind = _options.word(self, "covariance_type", ("full", "tied", "diag", "spherical"))
        k, n_init = _options.required(self, "n_components"), _options.required(self, "n_init")
        max_iter = _options.whole(self, "max_iter")
        _options.required(self, "verbose_interval")
        free = kind in ("full", "tied")
        if k > rows.shape[0]:
            raise DataError(
                f"Expected n_samples >= n_components but got n_components = {k}, n_samples = {rows.shape[0]}"
            )
        warm = _options.switch(self, "warm_start") and self.__sklearn_is_fitted__()
        warm = warm and self.means_.shape == (k, rows.shape[1])
        given = self._given_start(k, rows.shape[1])

        ridge = _options.number(self, "reg_covar")

        def fitted(start: dict[str, Any], **limits: Any) -> _covary.Mixture:
            request: dict[str, Any] = {
                "n_mixtures": k,
                "n_components": None if free else 0,
                "noise": "diagonal" if kind == "diag" else "isotropic",
                # In units of each column a covariance keeps its digits.
                "standardize": free,
                "max_iterations": max_iter,
                "tolerance": _options.number(self, "tol"),
                # A ridge is the variance of columns that never varied.
                "as_is": bool(ridge),
            }
            options = {"ridge": ridge, "shared_covariance": kind == "tied", "stop": "change", "restarts": 0}
            options = {name: value for name, value in options.items() if value is not None}
            named = {"options": options | start.get("options", {})}
            return self._learned(rows, "gmm", request | start | limits | named)  # type: ignore[arg-type]

        if warm:
            model = fitted({"last": (self._model, self.lower_bound_)})
        elif len(given) == 3:
            model = fitted(_moments(given))
        elif init == "auto" and not given:
            options = {"init": "auto", "restarts": n_init - 1}
            model = fitted({"options": options, "seed": _table.seed_of(self.random_state)})
        else:
            # Of the sequence that scikit-learn draws from, too.
            random = check_random_state(0 if self.random_state is None else self.random_state)
            tied = float(self.reg_covar) if kind == "tied" else None
            starts = [_start(rows, k, str(init), random, tied) for _ in range(n_init)]
            if given:
                starts = [_completed(fitted(start, max_iterations=0), given) for start in starts]
            model = _best(fitted(start) for start in starts)
        if max_iter == 0:
            self._publish(model)
            return self
        return self._take(model, rows)

    def _given_start(self, k: int, d: int) -> dict[str, Any]:
        """What was said of the start."""
        start: dict[str, Any] = {}
        if self.weights_init is not None:
            weights = self._given("weights_init", (k,))
            if (weights < 0).any() or abs(weights.sum() - 1.0) > 1e-6:
                raise _options.refuse(self, "weights_init", self.weights_init, "not negative, with a sum of 1")
            start["weights"] = weights
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

    def _publish(self, model: _covary.Mixture, rows: Array | None = None) -> None:
        super()._publish(model)
        self.n_iter_ = model.n_iterations
        self.lower_bounds_ = _bounds(model)
        self.lower_bound_ = self.lower_bounds_[-1] if self.lower_bounds_ else -np.inf

    def _work_out(self, name: str) -> Array:
        found: Array = getattr(self, f"_{name[:-1]}")()
        return found

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
            return {"options": {"init": "k-means"}, "seed": int(random.randint(2**31 - 1))}
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
    return _moments({"means": means, "covariances": np.stack([spread] * k), "weights": np.full(k, 1.0 / k)})


def _completed(model: _covary.Mixture, given: dict[str, Any]) -> dict[str, Any]:
    """A start of which some parameters were given."""
    whole = {"means": model.means, "covariances": model.covariances, "weights": model.weights}
    return _moments(whole | given)


def _moments(given: dict[str, Any]) -> dict[str, Any]:
    """A start by all of its parameters."""
    return {"moments": (given["weights"].tolist(), given["means"], given["covariances"])}


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


__all__ = ["GaussianMixture"]
