"""Do the intervals of filled cells hold the truth?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._threads import n_threads
from ..exceptions import DataError
from . import _model, _style

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ._model import Floats, Indices


@dataclass(frozen=True, eq=False)
class IntervalsData:
    """Numbers behind :func:`intervals`: one entry for each cell that was missing and is known.

    Values are in standard deviations of the cell's column from its mean, both under the model, so that
    units do not matter. Entries are sorted by `predicted`.

    Attributes
    ----------
    row, column : ndarray of shape (n_cells,)
        Where the cell is; `column` counts those of the model.
    predicted : ndarray of shape (n_cells,)
        What it was filled with.
    lower, upper : ndarray of shape (n_cells,)
        Ends of its interval.
    truth : ndarray of shape (n_cells,)
        Its true value.
    inside : ndarray of bool of shape (n_cells,)
        Whether the interval covers the truth.
    level : float
        Level of the intervals.
    coverage : float
        Share of cells whose interval covers the truth.
    n_left_out : int
        Cells of columns without a spread (constant, or observed once), which have no interval.
    names : tuple of str
        Names of the model's columns.
    """

    row: Indices
    column: Indices
    predicted: Floats
    lower: Floats
    upper: Floats
    truth: Floats
    inside: NDArray[np.bool_]
    level: float
    coverage: float
    n_left_out: int
    names: tuple[str, ...]


def intervals_data(estimator: Any, X: ArrayLike, X_true: ArrayLike, *, level: float = 0.95) -> IntervalsData:
    """Filled cells beside their true values.

    Parameters
    ----------
    estimator : estimator or Imputer
        Fitted.
    X : array-like of shape (n_samples, n_features)
        The table with gaps, NaN.
    X_true : array-like of shape (n_samples, n_features)
        The same table with the true values of some or all gaps.
    level : float, default=0.95
        Level of the intervals, between 0 and 1.

    Returns
    -------
    data : IntervalsData
        Truth, filled value and interval of each cell.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import PPCA, plot
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 6)) + 0.3 * rng.normal(size=(300, 6))
    >>> X = np.where(rng.random(truth.shape) < 0.2, np.nan, truth)
    >>> data = plot.intervals_data(PPCA(n_components=2).fit(X), X, truth)
    >>> bool(data.coverage == data.inside.mean()), bool(0.9 < data.coverage < 0.99)
    (True, True)
    """
    model = _model.fitted(estimator)
    rows = _model.rows_of(estimator, X)
    whole = _model.rows_of(estimator, X_true)
    if rows.shape != whole.shape:
        raise DataError(f"X and X_true must be of one shape, got {rows.shape} and {whole.shape}")
    both = ~np.isnan(rows) & ~np.isnan(whole)
    if not np.allclose(rows[both], whole[both], rtol=1e-5):
        raise DataError(
            "X and X_true differ in cells that both have: they must be one table, with and without gaps"
        )
    filled = model._filled(rows, own=False, return_std=False)
    low, high = model._model.intervals(rows, float(level), False, n_threads())
    row, column = np.nonzero(np.isnan(rows) & ~np.isnan(whole))
    sd = _model.deviations(model)[column]
    known = (sd > 0.0) & np.isfinite(low[row, column])
    left_out = int(len(row) - known.sum())
    row, column, sd = row[known], column[known], sd[known]
    if len(row) == 0:
        raise DataError("no cell with an interval is missing in X and known in X_true")
    value, truth = filled[row, column], whole[row, column]
    low, high = low[row, column], high[row, column]
    inside = (low <= truth) & (truth <= high)
    center = np.asarray(model.mean_, dtype=np.float64)[column]
    predicted = (value - center) / sd
    by = np.argsort(predicted, kind="stable")
    return IntervalsData(
        row=row[by],
        column=column[by],
        predicted=predicted[by],
        lower=((low - center) / sd)[by],
        upper=((high - center) / sd)[by],
        truth=((truth - center) / sd)[by],
        inside=inside[by],
        level=float(level),
        coverage=float(inside.mean()),
        n_left_out=left_out,
        names=_model.names_of(model),
    )


def intervals(
    estimator: Any,
    X: ArrayLike,
    X_true: ArrayLike,
    *,
    level: float = 0.95,
    kind: str = "scatter",
    max_cells: int = 500,
    ax: Any = None,
) -> Any:
    """True values of missing cells against their intervals.

    A blue dot lies inside its interval, an orange cross outside.

    Parameters
    ----------
    estimator, X, X_true, level
        As of :func:`intervals_data`.
    kind : {"scatter", "sorted"}, default="scatter"
        Filled values along the horizontal axis, or their ranks.
    max_cells : int, default=500
        Most cells drawn, evenly taken by filled value; the coverage is that of all.
    ax : matplotlib Axes or None, default=None
        Where to draw; None makes a figure.

    Returns
    -------
    ax : matplotlib Axes
        Where it was drawn.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from covary import PPCA, plot
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 6)) + 0.3 * rng.normal(size=(300, 6))
    >>> X = np.where(rng.random(truth.shape) < 0.2, np.nan, truth)
    >>> ax = plot.intervals(PPCA(n_components=2).fit(X), X, truth)
    >>> ax.get_xlabel()
    'filled value (sd of the column)'
    """
    _style.pyplot()
    if kind not in ("scatter", "sorted"):
        raise ValueError(f"kind must be 'scatter' or 'sorted', got {kind!r}")
    data = intervals_data(estimator, X, X_true, level=level)
    n = len(data.row)
    taken = _model.evenly(n, max_cells)
    ax = _style.axes(ax, (5.4, 5.0) if kind == "scatter" else (7.0, 4.2))
    blue, orange = _style.hues(ax)
    across = data.predicted[taken] if kind == "scatter" else np.arange(1.0, len(taken) + 1.0)
    inside, truth = data.inside[taken], data.truth[taken]
    faint = _style.mixed(ax, 0.3)
    thin = 1.0 if len(taken) <= 250 else 0.6
    ax.vlines(
        across, data.lower[taken], data.upper[taken], color=faint, linewidth=thin, zorder=1,
        label=f"{100.0 * level:g} % interval",
    )  # fmt: skip
    middle = {"color": _style.mixed(ax, 0.7), "linewidth": 1.0, "zorder": 2}
    if kind == "scatter":
        ends = np.array([data.predicted.min(), data.predicted.max()])
        ax.plot(ends, ends, label="truth = filled value", **middle)
        ax.set_xlabel("filled value (sd of the column)")
    else:
        ax.plot(across, data.predicted[taken], label="filled value", **middle)
        ax.set_xlabel("cell, by filled value")
    ax.set_ylabel("true value (sd of the column)")
    ax.scatter(
        across[inside], truth[inside], s=14, color=blue, linewidths=0, zorder=3, label="true value, inside"
    )
    ax.scatter(
        across[~inside], truth[~inside], s=26, color=orange, marker="x", linewidths=1.5, zorder=4,
        label="true value, outside",
    )  # fmt: skip
    ax.text(
        0.98, 0.02, f"{_style.percent(data.coverage)} of {_style.counted(n)} inside", transform=ax.transAxes,
        ha="right", va="bottom", fontsize="small",
    )  # fmt: skip
    left = f"{data.n_left_out} cells without an interval left out" if data.n_left_out else ""
    some = ""
    if len(taken) < n:
        some = f"{_style.counted(len(taken))} of {_style.counted(n)} cells drawn, evenly taken"
    _style.note(ax, some, left)
    ax.legend(frameon=False, fontsize="small", loc="upper left")
    _style.despine(ax)
    return ax
