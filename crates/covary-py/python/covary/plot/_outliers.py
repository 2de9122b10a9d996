"""Rows far from the others: in the plane of the components, or from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._threads import n_threads
from . import _model, _style

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ._model import Floats, Indices

#: Rows with a name at most.
_MOST_NAMES = 15
#: Level of the cut-offs.
_LEVEL = 0.975


@dataclass(frozen=True, eq=False)
class OutliersData:
    """Numbers behind :func:`outliers`.

    Attributes
    ----------
    score_distance : ndarray of shape (n_samples,)
        √T²: how far the row is in the plane of the components, in standard deviations of these.
    residual_distance : ndarray of shape (n_samples,)
        Its Mahalanobis distance from that plane, in standard deviations of the noise.
    n_observed : ndarray of shape (n_samples,)
        Observed cells of the row.
    p_value : ndarray of shape (n_samples,)
        Probability of a row as far under the model, by both distances together.
    cut_offs : tuple of float
        97.5 % points of both distances of a complete row; NaN for the second if there are as many components as columns.
    """

    score_distance: Floats
    residual_distance: Floats
    n_observed: Indices
    p_value: Floats
    cut_offs: tuple[float, float]


def outliers_data(estimator: Any, X: ArrayLike) -> OutliersData:
    """Distances of the rows in the plane of the components and from it.

    Parameters
    ----------
    estimator : estimator or Imputer
        Fitted, with a component at least.
    X : array-like of shape (n_samples, n_features)
        Rows; NaN where a cell is missing.

    Returns
    -------
    data : OutliersData
        Distances, their probabilities and cut-offs.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import PPCA, plot
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> X[7] += 20.0
    >>> data = plot.outliers_data(PPCA(n_components=2).fit(X), X)
    >>> int(data.p_value.argmin())
    7
    """
    from scipy.stats import chi2

    model = _model.fitted(estimator)
    q = _model.some_components(model, 1, "a map of outliers")
    rows = _model.rows_of(estimator, X)
    found = model._model.outlyingness(rows, n_threads())
    modeled = _model.deviations(model) > 0.0
    observed = (~np.isnan(rows) & modeled).sum(axis=1)
    far = np.maximum(found["mahalanobis"] - found["t2"], 0.0)
    d = int(modeled.sum())
    return OutliersData(
        score_distance=np.sqrt(np.maximum(found["t2"], 0.0)),
        residual_distance=np.sqrt(far),
        n_observed=observed,
        p_value=found["p_value"],
        cut_offs=(
            float(np.sqrt(chi2.ppf(_LEVEL, q))),
            float(np.sqrt(chi2.ppf(_LEVEL, d - q))) if d > q else float("nan"),
        ),
    )


@_style.documented
def outliers(estimator: Any, X: ArrayLike, *, labels: ArrayLike | None = None, ax: Any = None) -> Any:
    """The outlier map: score distance and residual distance of each row, with 97.5 % points.

    Filled marks are outliers (p < 0.01, Bonferroni).

    Parameters
    ----------
    estimator, X
        As of :func:`outliers_data`.
    labels : array-like of shape (n_samples,) or None, default=None
        Names of the rows, shown beyond the cut-offs; their numbers from 0 if None.
    {ax}

    {drawn}

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from covary import PPCA, plot
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> plot.outliers(PPCA(n_components=2).fit(X), X).get_xlabel()
    'score distance (√T²)'
    """
    _style.pyplot()
    data = outliers_data(estimator, X)
    n = len(data.p_value)
    names = np.arange(n).astype(str) if labels is None else np.asarray(labels).astype(str)
    if names.shape != (n,):
        raise ValueError(f"labels must have one entry for each of {n} rows, got shape {names.shape}")
    ax = _style.axes(ax, (5.8, 4.4))
    blue, orange = _style.hues(ax)
    far = data.p_value < 0.01 / n
    x, y = data.score_distance, data.residual_distance
    ax.scatter(x[~far], y[~far], s=18, facecolors="none", edgecolors=blue, linewidths=1.0)
    ax.scatter(x[far], y[far], s=22, color=orange, linewidths=0)
    line = {"color": orange, "linewidth": 1.0, "linestyle": "--"}
    ax.axvline(data.cut_offs[0], **line)
    beyond = x > data.cut_offs[0]
    if np.isfinite(data.cut_offs[1]):
        ax.axhline(data.cut_offs[1], **line)
        beyond |= y > data.cut_offs[1]
    furthest = np.flatnonzero(beyond)[np.argsort(data.p_value[beyond], kind="stable")][:_MOST_NAMES]
    for i in furthest:
        ax.annotate(
            _style.plain(_style.short(names[i])), xy=(x[i], y[i]), xytext=(4, 2), textcoords="offset points",
            fontsize="small",
        )  # fmt: skip
    said = f"{_style.counted(int(far.sum()))} of {_style.counted(n)} rows are outliers (p < 0.01, Bonferroni)"
    return _style.finish(ax, "score distance (√T²)", "residual distance (in sd of the noise)", said)
