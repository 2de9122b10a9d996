"""The numbers behind every figure of the command, as the library has them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _covary as native
from .. import _table
from .._fitted import Fitted
from .._imputer import Imputer
from .._threads import n_threads
from ..exceptions import NotFittedError

if TYPE_CHECKING:
    from collections.abc import Sequence


def model_of(estimator: Any) -> Fitted:
    """The fitted estimator behind an estimator or imputer of any family."""
    if not isinstance(estimator, (Fitted, Imputer)):
        raise TypeError(f"a fitted estimator or Imputer of covary is needed, got {type(estimator).__name__}")
    if not estimator.__sklearn_is_fitted__():
        raise NotFittedError(
            f"This {type(estimator).__name__} instance is not fitted yet. Call 'fit' before drawing it."
        )
    return estimator.estimator_ if isinstance(estimator, Imputer) else estimator


def numbers(
    kind: str,
    estimator: Any,
    X: Any = None,
    *,
    components: Sequence[int] = (),
    color: Any = None,
    labels: Any = None,
    shape: tuple[int, int] | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """The numbers behind a figure, under the names of ``covary plot --kind KIND --json``.

    Parameters
    ----------
    kind : str
        A kind of figure, such as "loadings"; those that are drawn by a function of this module, and others.
    estimator : fitted estimator or Imputer
        The model.
    X : array-like of shape (n_samples, n_features) or None, default=None
        The table, for kinds that show one.
    components : sequence of int, default=()
        Components, from 1, for kinds that show some.
    color : array-like of shape (n_samples,) or None, default=None
        Group of each row.
    labels : array-like of shape (n_samples,) or None, default=None
        Name of each row.
    shape : tuple of two int or None, default=None
        Rows and columns of an image.
    seed : int, default=0
        Seed of simulated rows.

    Returns
    -------
    numbers : dict
        Numbers, lists and texts.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import PPCA, plot
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> plot.numbers("loadings", PPCA(n_components=2).fit(X))["components"]
    [1, 2]
    """
    model = model_of(estimator)
    rows, at = (None, None) if X is None else _given(estimator, model, X)
    n = 0 if rows is None else len(rows)
    asked = {
        "components": [int(k) for k in components],
        "groups": _table.groups(color, n),
        "labels": _table.texts(labels, n, "labels"),
        "shape": None if shape is None else (int(shape[0]), int(shape[1])),
        "seed": int(seed),
    }
    found = native.figure(kind, model._model, rows, asked, at=at, threads=n_threads())
    decoded: dict[str, Any] = json.loads(found)
    return decoded


def _given(estimator: Any, model: Fitted, X: Any) -> tuple[Any, Any]:
    if isinstance(estimator, Imputer):
        return np.ascontiguousarray(estimator._modeled(estimator._gaps_as_nan(X, reset=False))), None
    return model._placed_rows(X)


def compared(X: Any, max_components: int | None, seed: int) -> dict[str, Any]:
    """The numbers behind the comparison of numbers of components."""
    rows = np.ascontiguousarray(_table.array(X, ensure_all_finite=False), dtype=np.float64)
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    found = native.figure_select(rows, names, max_components=max_components, seed=int(seed), threads=n_threads())
    decoded: dict[str, Any] = json.loads(found)
    return decoded
