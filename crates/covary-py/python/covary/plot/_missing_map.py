"""Where the gaps are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _table
from .._threads import n_threads
from ..exceptions import DataError
from . import _model, _style

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ._model import Floats, Indices

#: Beyond this many columns their names are not written.
_MOST_NAMES = 60
#: Most names of marked columns then.
_MOST_MARKED = 20


@dataclass(frozen=True, eq=False)
class MissingMapData:
    """Numbers behind :func:`missing_map`.

    Attributes
    ----------
    share : ndarray of shape (n_bins, n_features)
        Share of gaps in each run of rows; 0 or 1 if every row is shown.
    starts : ndarray of shape (n_bins,)
        Where in `order` each run starts.
    order : ndarray of shape (n_samples,)
        Rows of the table in the order they are shown.
    column_share : ndarray of shape (n_features,)
        Share of gaps in each column.
    trend : ndarray of shape (n_features,)
        Correlation of gaps and first component in columns whose gaps follow it, NaN elsewhere.
    trends : tuple of str
        A sentence on each such column.
    names : tuple of str
        Names of the columns.
    """

    share: Floats
    starts: Indices
    order: Indices
    column_share: Floats
    trend: Floats
    trends: tuple[str, ...]
    names: tuple[str, ...]


def _gaps(X: Any) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """Gaps and names of any table."""
    if hasattr(X, "isna"):
        gaps = np.asarray(X.isna(), dtype=bool)
    else:
        gaps = np.isnan(np.asarray(_table.unmasked(X), dtype=np.float64))
    if gaps.ndim != 2 or 0 in gaps.shape:
        raise DataError(f"a table with rows and columns is needed, got shape {gaps.shape}")
    own = getattr(X, "columns", None)
    names = [f"x{j + 1}" for j in range(gaps.shape[1])] if own is None else [str(name) for name in own]
    return gaps, tuple(names)


def missing_map_data(
    X: ArrayLike, estimator: Any = None, *, sort_by: Any = None, max_bins: int = 600
) -> MissingMapData:
    """Where the gaps of a table are, and in which columns they follow the first component.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The table; NaN where a cell is missing.
    estimator : estimator, Imputer or None, default=None
        Fitted; tells which columns' gaps follow its first component.
    sort_by : {"component"}, array-like of shape (n_samples,) or None, default=None
        Order of the rows: by first component, which needs an `estimator`, or by these numbers. None
        leaves them as they are.
    max_bins : int, default=600
        More rows than this are put together in this many runs of equal length.

    Returns
    -------
    data : MissingMapData
        Shares of gaps.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import plot
    >>> X = np.ones((1200, 3))
    >>> X[:300, 1] = np.nan
    >>> data = plot.missing_map_data(X)
    >>> data.share.shape, float(data.column_share[1])
    ((600, 3), 0.25)
    """
    trends: tuple[str, ...] = ()
    if estimator is None:
        gaps, names = _gaps(X)
        trend = np.full(gaps.shape[1], np.nan)
    else:
        rows = _model.rows_of(estimator, X)
        model = _model.fitted(estimator)
        gaps, names = np.isnan(rows), _model.names_of(model)
        trend = np.full(gaps.shape[1], np.nan)
        found = model._model.gap_trends(rows, n_threads())
        for name, correlation, _ in found:
            trend[names.index(name)] = correlation
        trends = tuple(sentence for _, _, sentence in found)
    n = gaps.shape[0]
    order = np.arange(n)
    if isinstance(sort_by, str):
        if sort_by != "component":
            raise ValueError(f"sort_by must be 'component', an array or None, got {sort_by!r}")
        if estimator is None:
            raise ValueError("sort_by='component' needs an estimator")
        _model.some_components(model, 1, "sort_by='component'")
        scores = model._model.transform(rows, "posterior", n_threads())
        order = np.argsort(scores[:, 0], kind="stable")
    elif sort_by is not None:
        keys = np.asarray(_table.unmasked(sort_by))
        if keys.shape != (n,):
            raise ValueError(f"sort_by must have one entry for each of {n} rows, got shape {keys.shape}")
        order = np.argsort(keys, kind="stable")
    starts = _model.evenly(n, max_bins)
    lengths = np.diff(np.append(starts, n))
    share = np.add.reduceat(gaps[order].astype(np.float64), starts, axis=0) / lengths[:, None]
    return MissingMapData(
        share=share,
        starts=starts,
        order=order,
        column_share=gaps.mean(axis=0),
        trend=trend,
        trends=trends,
        names=names,
    )


def missing_map(
    X: ArrayLike, estimator: Any = None, *, sort_by: Any = None, max_bins: int = 600, ax: Any = None
) -> Any:
    """Map of gaps, rows by columns, with the share of gaps in each column above it.

    With an estimator, columns whose gaps follow its first component are marked: ▲ where gaps come with
    high scores, ▼ with low ones. What is filled there rests on the model more than elsewhere.

    Parameters
    ----------
    X, estimator, sort_by, max_bins
        As of :func:`missing_map_data`.
    ax : matplotlib Axes or None, default=None
        Where to draw; None makes a figure. The shares above are on axes of their own inside it.

    Returns
    -------
    ax : matplotlib Axes
        Where it was drawn.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from covary import plot
    >>> X = np.ones((20, 3))
    >>> X[:5, 1] = np.nan
    >>> plot.missing_map(X).get_ylabel()
    'row'
    """
    _style.pyplot()
    data = missing_map_data(X, estimator, sort_by=sort_by, max_bins=max_bins)
    n, d = len(data.order), len(data.names)
    ax = _style.axes(ax, (min(10.0, max(4.0, 1.6 + 0.34 * d)), 5.2))
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.ticker import MaxNLocator

    blue, orange = _style.hues(ax)
    marked = ~np.isnan(data.trend)
    ends: list[Any] = [_style.mixed(ax, 0.06), blue]
    shades = LinearSegmentedColormap.from_list("gaps", ends)
    ax.imshow(
        data.share, aspect="auto", interpolation="nearest", cmap=shades, vmin=0.0, vmax=1.0,
        extent=(-0.5, d - 0.5, n, 0),
    )  # fmt: skip
    if d <= _MOST_NAMES:
        ax.vlines(np.arange(d - 1) + 0.5, 0, n, color=_style.ground(ax), linewidth=1.0)
    ax.set_ylim(n, 0)
    ax.set_xlim(-0.5, d - 0.5)
    ax.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    by = {"component": ", by first component"}.get(sort_by, "") if isinstance(sort_by, str) else ", sorted"
    ax.set_ylabel("row" + ("" if sort_by is None else by))
    _name_columns(ax, data, marked, orange)

    above = ax.inset_axes((0.0, 1.015, 1.0, 0.14), sharex=ax)
    above.set_facecolor("none")
    bars = above.bar(np.arange(d), data.column_share, width=0.75, color=blue)
    top = max(float(data.column_share.max()), 1e-3)
    for j in np.flatnonzero(marked):
        bars[j].set(facecolor="none", edgecolor=orange, linewidth=1.3)
        # Beside the names a triangle would be turned with them.
        mark = "^" if data.trend[j] > 0.0 else "v"
        above.scatter([j], [1.2 * top], s=26, marker=mark, color=orange, linewidths=0, clip_on=False)
    above.set_xlim(-0.5, d - 0.5)
    above.set_ylim(0.0, (1.3 if marked.any() else 1.0) * top)
    above.set_yticks([top], [_style.percent(top)], fontsize="x-small")
    above.spines["left"].set_bounds(0.0, top)
    above.tick_params(labelbottom=False, bottom=False)
    _style.despine(above)
    runs = ""
    if len(data.starts) < n:
        runs = f"{_style.counted(n)} rows in {_style.counted(len(data.starts))} runs; shade: share of gaps"
    total = f"gaps: {_style.percent(float(data.column_share.mean()))} of {_style.counted(n * d)} cells"
    trends = "▲▼ gaps follow component 1 (▲ where it is high, ▼ low)" if marked.any() else ""
    _style.note(above, total, runs, trends)
    _style.despine(ax, "top", "right", "bottom", "left")
    return ax


def _name_columns(ax: Any, data: MissingMapData, marked: NDArray[np.bool_], orange: str) -> None:
    """Names below the map; of many columns only those of the strongest marked."""
    d = len(data.names)
    if d <= _MOST_NAMES:
        named = np.arange(d)
    else:
        followers = np.flatnonzero(marked)
        by_strength = followers[np.argsort(-np.abs(data.trend[followers]), kind="stable")]
        named = np.sort(by_strength[:_MOST_MARKED])
        ax.set_xlabel(f"{_style.counted(d)} columns")
    labels = [_style.short(data.names[j]) for j in named]
    ax.set_xticks(named, [_style.plain(label) for label in labels], rotation=90 if d > 4 else 0, fontsize="small")
    ax.tick_params(axis="x", length=0)
    for j, label in zip(named, ax.get_xticklabels(), strict=True):
        if marked[j]:
            label.set(color=orange, fontweight="bold")
