"""Correlations of the columns of a table, and which of its values are missing together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _table
from ..exceptions import DataError
from . import _style

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ._model import Floats

#: Columns whose correlations are printed.
_MOST_PRINTED = 16


@dataclass(frozen=True, eq=False)
class CorrelationData:
    """Numbers behind :func:`correlation`.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns, similar ones beside each other.
    correlations : ndarray of shape (n_columns, n_columns)
        Pearson correlations over the rows where both columns are observed; NaN where these are fewer than three or a column
        is constant there.
    """

    columns: tuple[str, ...]
    correlations: Floats


@dataclass(frozen=True, eq=False)
class PatternsData:
    """Numbers behind :func:`patterns`.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns with missing values, those with most first.
    n_missing : ndarray of shape (n_columns,)
        Missing values of each.
    patterns : ndarray of bool of shape (n_patterns, n_columns)
        Which values are missing together, the most frequent pattern first.
    n_rows : ndarray of shape (n_patterns,)
        Rows of each pattern.
    n_complete : int
        Rows without a missing value.
    """

    columns: tuple[str, ...]
    n_missing: Any
    patterns: Any
    n_rows: Any
    n_complete: int


def _numbers(X: ArrayLike) -> tuple[Floats, tuple[str, ...]]:
    """A table and the names of its columns."""
    names = getattr(X, "columns", None)
    values = np.asarray(_table.unmasked(X), dtype=np.float64)
    if values.ndim != 2 or 0 in values.shape:
        raise DataError(f"a table with rows and columns is needed, got shape {values.shape}")
    own = [f"x{j + 1}" for j in range(values.shape[1])] if names is None else [str(name) for name in names]
    return values, tuple(own)


def correlation_data(X: ArrayLike, *, max_columns: int = 60) -> CorrelationData:
    """Correlations of the columns, ordered by average linkage on 1 − |r|.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The table; NaN where a cell is missing.
    max_columns : int, default=60
        Most columns: those with the most values.

    Returns
    -------
    data : CorrelationData
        Correlations and names in their order.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import plot
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(2, 50))
    >>> names = plot.correlation_data(np.column_stack([a, b, a + 0.1 * b])).columns
    >>> abs(names.index("x1") - names.index("x3"))
    1
    """
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    values, names = _numbers(X)
    if max_columns < 1:
        raise ValueError(f"at least one must be shown, got {max_columns}")
    observed = ~np.isnan(values)
    kept = np.sort(np.argsort(-observed.sum(axis=0), kind="stable")[:max_columns])
    d = len(kept)
    r = np.full((d, d), np.nan)
    for i in range(d):
        for j in range(i + 1):
            both = observed[:, kept[i]] & observed[:, kept[j]]
            if both.sum() < 3:
                continue
            x, y = values[both, kept[i]], values[both, kept[j]]
            x, y = x - x.mean(), y - y.mean()
            # Scaled first, so that squares of huge or tiny numbers stay numbers.
            sx, sy = np.abs(x).max(), np.abs(y).max()
            if min(sx, sy) == 0.0:
                continue
            x, y = x / sx, y / sy
            r[i, j] = r[j, i] = np.clip(x @ y / np.sqrt((x @ x) * (y @ y)), -1.0, 1.0)
    order = np.arange(d)
    if d > 2:
        apart = 1.0 - np.abs(np.nan_to_num(r))
        np.fill_diagonal(apart, 0.0)
        order = leaves_list(linkage(squareform(apart, checks=False), "average", optimal_ordering=True))
    return CorrelationData(columns=tuple(names[kept[k]] for k in order), correlations=r[np.ix_(order, order)])


@_style.documented
def correlation(X: ArrayLike, *, max_columns: int = 60, ax: Any = None) -> Any:
    """Map of correlations: blue is positive, orange is negative, similar columns stand together.

    Parameters
    ----------
    X, max_columns
        As of :func:`correlation_data`.
    {ax}

    {drawn}

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from covary import plot
    >>> ax = plot.correlation(np.random.default_rng(0).normal(size=(50, 4)))
    >>> len(ax.texts)
    12
    """
    _style.pyplot()
    data = correlation_data(X, max_columns=max_columns)
    d = len(data.columns)
    side = min(9.0, max(3.0, 1.6 + 0.38 * d))
    ax = _style.axes(ax, (side + 0.6, side))
    from matplotlib.colors import LinearSegmentedColormap

    blue, orange = _style.hues(ax)
    ends: list[Any] = [orange, _style.mixed(ax, 0.04), blue]
    colors = LinearSegmentedColormap.from_list("signs", ends).with_extremes(bad=_style.mixed(ax, 0.2))
    image = ax.imshow(data.correlations, cmap=colors, vmin=-1.0, vmax=1.0)
    if d <= _MOST_PRINTED:
        for i, j in np.ndindex(d, d):
            value = data.correlations[i, j]
            if i != j and not np.isnan(value):
                text = f"{value:.2f}".replace("0.", ".", 1).replace("-", "−")
                ax.text(j, i, text, ha="center", va="center", fontsize="x-small")
    names = [_style.plain(_style.short(name)) for name in data.columns]
    every = max(1, d // 60)
    ax.set_xticks(np.arange(d)[::every], names[::every], rotation=90, fontsize="small")
    ax.set_yticks(np.arange(d)[::every], names[::every], fontsize="small")
    ax.tick_params(length=0)
    ax.figure.colorbar(image, ax=ax, label="r", shrink=0.7)
    _style.despine(ax, "top", "right", "bottom", "left")
    return ax


def patterns_data(X: ArrayLike) -> PatternsData:
    """Which values are missing together, and in how many rows.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The table; NaN where a cell is missing.

    Returns
    -------
    data : PatternsData
        Patterns and their rows.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import plot
    >>> X = np.ones((10, 3))
    >>> X[:4, 1] = np.nan
    >>> X[:3, 2] = np.nan
    >>> data = plot.patterns_data(X)
    >>> data.columns, data.n_rows.tolist(), data.n_complete
    (('x2', 'x3'), [3, 1], 6)
    """
    from ._missing_map import _gaps

    gaps, names = _gaps(X)
    counts = gaps.sum(axis=0)
    order = [int(j) for j in np.argsort(-counts, kind="stable") if counts[j] > 0]
    missing = gaps[:, order]
    some = missing.any(axis=1) if order else np.zeros(len(gaps), dtype=bool)
    found, rows = np.unique(missing[some], axis=0, return_counts=True)
    # Equally frequent ones by the columns that miss first.
    by = sorted(range(len(rows)), key=lambda k: (-rows[k], tuple(~found[k])))
    return PatternsData(
        columns=tuple(names[j] for j in order),
        n_missing=counts[order],
        patterns=found[by],
        n_rows=rows[by],
        n_complete=int((~some).sum()),
    )


def patterns(X: ArrayLike, *, max_patterns: int = 24, max_columns: int = 20, ax: Any = None) -> Any:
    """Values missing together (UpSet): joined dots, and above them the number of such rows.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The table; NaN where a cell is missing.
    max_patterns : int, default=24
        Most patterns: the most frequent.
    max_columns : int, default=20
        Most columns: those with the most missing values. Patterns that differ in other columns alone are shown apart.
    ax : matplotlib Axes or None, default=None
        Where to draw; a new figure if None. The bars are on axes of their own inside it.

    Returns
    -------
    ax : matplotlib Axes
        That of the dots.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from covary import plot
    >>> X = np.ones((10, 3))
    >>> X[:4, 1] = np.nan
    >>> [label.get_text() for label in plot.patterns(X).get_yticklabels()]
    ['x2']
    """
    _style.pyplot()
    data = patterns_data(X)
    if min(max_patterns, max_columns) < 1:
        raise ValueError(f"at least one must be shown, got {min(max_patterns, max_columns)}")
    if not data.columns:
        raise DataError("no value is missing, so there are no patterns to draw")
    shown, d = data.patterns[:max_patterns, :max_columns], min(len(data.columns), max_columns)
    m = len(shown)
    ax = _style.axes(ax, (1.8 + 0.26 * max(m, 8), 2.2 + 0.24 * d))
    blue, _ = _style.hues(ax)
    for k in range(m):
        own = np.flatnonzero(shown[k])
        ax.scatter(np.full(d, k), np.arange(d), s=8, color=_style.mixed(ax, 0.12), linewidths=0)
        ax.plot(np.full(len(own), k), own, color=blue, marker="o", markersize=5, linewidth=1.4)
    ax.set_yticks(
        np.arange(d), [_style.plain(_style.short(name)) for name in data.columns[:d]], fontsize="small"
    )
    # Bars take the upper third.
    ax.set_ylim(d - 0.5, -0.5 - 0.55 * d)
    ax.set_xlim(-0.6, m - 0.4)
    ax.set_xticks([])
    ax.tick_params(length=0)
    above = ax.inset_axes((0.0, 0.68, 1.0, 0.32), sharex=ax)
    above.set_facecolor("none")
    above.bar(np.arange(m), data.n_rows[:m], width=0.7, color=blue)
    above.set_ylabel("rows")
    above.tick_params(labelbottom=False, bottom=False)
    _style.despine(above)
    n = int(data.n_complete + data.n_rows.sum())
    some = f"{m} of {_style.counted(len(data.n_rows))} patterns" if m < len(data.n_rows) else ""
    fewer = f"{d} of {_style.counted(len(data.columns))} columns" if d < len(data.columns) else ""
    complete = f"{_style.percent(data.n_complete / n)} of {_style.counted(n)} rows are complete"
    _style.note(ax, complete, ", ".join(part for part in (some, fewer) if part))
    _style.despine(ax, "top", "right", "bottom", "left")
    return ax
