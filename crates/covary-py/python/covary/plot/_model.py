"""What the figures ask of a fitted estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _covary as native
from .._dynamic import DynamicFactor
from .._imputer import Imputer
from .._linear import LinearGaussian
from ..exceptions import DataError, NotFittedError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

__all__ = ["native"]


def fitted(estimator: Any) -> LinearGaussian:
    """The fitted model of an estimator or imputer."""
    if not isinstance(estimator, (LinearGaussian, Imputer)):
        raise TypeError(f"a fitted estimator or Imputer of covary is needed, got {type(estimator).__name__}")
    if not estimator.__sklearn_is_fitted__():
        raise NotFittedError(
            f"This {type(estimator).__name__} instance is not fitted yet. Call 'fit' before drawing it."
        )
    return estimator.estimator_ if isinstance(estimator, Imputer) else estimator


def in_time(estimator: Any) -> DynamicFactor:
    """A fitted model of rows in time."""
    if not isinstance(estimator, DynamicFactor):
        raise TypeError(f"a fitted DynamicFactor is needed, got {type(estimator).__name__}")
    if not estimator.__sklearn_is_fitted__():
        raise NotFittedError("This DynamicFactor instance is not fitted yet. Call 'fit' before drawing it.")
    return estimator


def sequences_of(model: DynamicFactor, X: Any, n: int) -> list[str | None]:
    """What the sequences of a table are called."""
    if model.groups is None:
        return [None] * n
    return [str(name) for name in np.unique(np.asarray(X[model.groups]).astype(str))]


def moments_of(when: Any, times: Any) -> Any:
    """Times as moments, numbers, or counted rows, from 1."""
    if times is None:
        return np.asarray(when) + 1
    found = np.asarray(when)
    return found.astype("datetime64[us]") if found.dtype.kind == "i" else found


def rows_of(estimator: Any, X: ArrayLike) -> Floats:
    """A table over the columns of the model, gaps as NaN."""
    model = fitted(estimator)
    if isinstance(estimator, Imputer):
        rows = estimator._modeled(estimator._gaps_as_nan(X, reset=False))
    else:
        rows = model._rows(X)
    return np.ascontiguousarray(rows, dtype=np.float64)


def names_of(model: LinearGaussian) -> tuple[str, ...]:
    """Names of the model's columns; x1, x2, … if the table had none."""
    return tuple(model._model.names)


def deviations(model: LinearGaussian) -> Floats:
    """Standard deviation of each column under the model; 0 for one that never varied."""
    return np.sqrt(model._model.variances)


def unit_loadings(model: LinearGaussian) -> Floats:
    """Loadings in standard deviations of each column, so that units do not matter."""
    sd = deviations(model)[:, None]
    loadings = np.asarray(model.loadings_, dtype=np.float64)
    return np.divide(loadings, sd, out=np.zeros_like(loadings), where=sd > 0.0)


def shares(model: LinearGaussian) -> Floats:
    """Proportion of the variance that each component explains, of standardized columns if the fit standardized them."""
    return np.asarray(model.explained_variance_ratio_, dtype=np.float64)


def rotated(model: LinearGaussian) -> bool:
    """Whether the loadings were turned, after which no component has a share of its own."""
    return model._model.factor_correlations is not None


def evenly(n: int, most: int) -> Indices:
    """At most this many of n places, evenly taken."""
    if most < 1:
        raise ValueError(f"at least one must be shown, got {most}")
    if n <= most:
        return np.arange(n)
    return (np.arange(most) * n // most).astype(np.intp)


def strongest(values: Floats, most: int) -> Indices:
    """At most this many rows of largest length, in the order of the table."""
    if most < 1:
        raise ValueError(f"at least one must be shown, got {most}")
    by_length = np.argsort(-np.hypot.reduce(values, axis=1), kind="stable")
    return np.sort(by_length[:most])


def some_components(model: LinearGaussian, least: int, figure: str) -> int:
    """How many components there are, at least this many."""
    q = int(model.n_components_)
    if q < least:
        raise DataError(f"{figure} needs {least} component(s), the model has {q}")
    return q
