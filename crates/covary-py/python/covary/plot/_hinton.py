"""Loadings as squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _model, _style

if TYPE_CHECKING:
    from ._model import Floats, Indices


@dataclass(frozen=True, eq=False)
class HintonData:
    """Numbers behind :func:`hinton`.

    Attributes
    ----------
    loadings : ndarray of shape (n_shown, n_components)
        Loadings in standard deviations of each column, so that units do not matter: without an
        oblique rotation, the correlation of column and component.
    area : ndarray of shape (n_shown, n_components)
        Area of each square: ``abs(loadings)`` over its largest entry.
    names : tuple of str
        Names of the columns shown.
    columns : ndarray of shape (n_shown,)
        Their places in the table.
    n_features : int
        Columns of the table.
    """

    loadings: Floats
    area: Floats
    names: tuple[str, ...]
    columns: Indices
    n_features: int


def hinton_data(estimator: Any, *, max_rows: int = 30, max_components: int = 12) -> HintonData:
    """Loadings in standard deviations of each column, of the columns with the strongest.

    Parameters
    ----------
    estimator : estimator or Imputer
        Fitted.
    max_rows : int, default=30
        Most columns of the table; those with the longest loadings are taken, in the table's order.
    max_components : int, default=12
        Most components, the first ones.

    Returns
    -------
    data : HintonData
        Loadings and areas.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import PPCA, plot
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> data = plot.hinton_data(PPCA(n_components=2).fit(X), max_rows=3)
    >>> data.loadings.shape, float(data.area.max())
    ((3, 2), 1.0)
    """
    model = _model.fitted(estimator)
    q = _model.some_components(model, 1, "a Hinton diagram")
    if max_components < 1:
        raise ValueError(f"at least one must be shown, got {max_components}")
    loadings = _model.unit_loadings(model)[:, : min(q, max_components)]
    columns = _model.strongest(loadings, max_rows)
    names = _model.names_of(model)
    values = loadings[columns]
    size = np.abs(values)
    largest = float(size.max())
    return HintonData(
        loadings=values,
        area=size / largest if largest > 0.0 else size,
        names=tuple(names[j] for j in columns),
        columns=columns,
        n_features=len(names),
    )


def hinton(estimator: Any, *, max_rows: int = 30, max_components: int = 12, ax: Any = None) -> Any:
    """Loadings as squares: area by size, filled blue if positive, hollow orange if negative.

    Parameters
    ----------
    estimator, max_rows, max_components
        As of :func:`hinton_data`.
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
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> ax = plot.hinton(PPCA(n_components=2).fit(X))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['x1', 'x2', 'x3', 'x4', 'x5']
    """
    _style.pyplot()
    data = hinton_data(estimator, max_rows=max_rows, max_components=max_components)
    d, q = data.loadings.shape
    labels = [_style.short(name, 30) for name in data.names]
    longest = max(len(label) for label in labels)
    ax = _style.axes(ax, (1.5 + 0.08 * longest + 0.28 * q, 1.1 + 0.28 * d))
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Patch, Rectangle

    blue, orange = _style.hues(ax)
    side = 0.92 * np.sqrt(data.area)
    squares: dict[bool, list[Any]] = {True: [], False: []}
    hollow = 0.07
    for (i, k), width in np.ndenumerate(side):
        positive = bool(data.loadings[i, k] >= 0.0)
        # The outline of a hollow square lies inside its area.
        within = width if positive else max(width - hollow, 0.0)
        squares[positive].append(Rectangle((k + 1 - within / 2, i - within / 2), within, within))
    faint = _style.mixed(ax, 0.12)
    ax.hlines(np.arange(d), 0.5, q + 0.5, color=faint, linewidth=0.6, zorder=0)
    filled = PatchCollection(squares[True], facecolor=blue, edgecolor="none")
    empty = PatchCollection(squares[False], facecolor=_style.ground(ax), edgecolor=orange, linewidth=1.3)
    ax.add_collection(filled)
    ax.add_collection(empty)
    ax.set_xlim(0.4, q + 0.6)
    ax.set_ylim(d - 0.4, -0.6)
    ax.set_aspect("equal")
    ax.set_xticks(np.arange(1, q + 1))
    ax.set_yticks(np.arange(d), [_style.plain(label) for label in labels])
    ax.tick_params(length=0, labelsize="small")
    ax.set_xlabel("component")
    handles = [
        Patch(facecolor=blue, edgecolor="none", label="positive"),
        Patch(facecolor="none", edgecolor=orange, linewidth=1.3, label="negative"),
    ]
    ax.legend(
        handles=handles, frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0),
        borderaxespad=0.0, handlelength=0.8, handleheight=0.8,
    )  # fmt: skip
    cut = f"the {d} strongest of {_style.counted(data.n_features)} columns" if d < data.n_features else ""
    more = int(_model.fitted(estimator).n_components_)
    first = f"the first {q} of {_style.counted(more)} components" if q < more else ""
    biggest = f"largest: {np.abs(data.loadings).max():.2f} sd of its column"
    _style.note(ax, biggest, cut, first, loc="center")
    _style.despine(ax, "top", "right", "bottom", "left")
    return ax
