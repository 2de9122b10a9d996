"""Rows and columns in the plane of two components."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._threads import n_threads
from ..exceptions import DataError
from . import _model, _style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from ._model import Floats, Indices

#: Factors by which arrows may be stretched, so that the reader can divide by them.
_STRETCHES = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)


@dataclass(frozen=True, eq=False)
class BiplotData:
    """Numbers behind :func:`biplot`.

    Attributes
    ----------
    scores : ndarray of shape (n_shown, 2)
        Scores of rows, posterior means.
    covariances : ndarray of shape (n_shown, 2, 2)
        Their posterior covariances.
    has_gaps : ndarray of bool of shape (n_shown,)
        Rows with a gap, whose scores are less sure.
    rows : ndarray of shape (n_shown,)
        Places of the rows in the table.
    n_rows : int
        Rows of the table.
    loadings : ndarray of shape (n_features, 2)
        Loadings in standard deviations of each column.
    names : tuple of str
        Names of the columns.
    components : tuple of int
        Which two components, counted from 1.
    share : ndarray of shape (2,)
        Share of the variance they explain, as of :func:`scree`; NaN after a rotation.
    """

    scores: Floats
    covariances: Floats
    has_gaps: NDArray[np.bool_]
    rows: Indices
    n_rows: int
    loadings: Floats
    names: tuple[str, ...]
    components: tuple[int, int]
    share: Floats


def biplot_data(
    estimator: Any, X: ArrayLike, *, components: Sequence[int] = (1, 2), max_rows: int = 5000
) -> BiplotData:
    """Scores of rows and loadings of columns for two components.

    Parameters
    ----------
    estimator : estimator or Imputer
        Fitted, with two components at least.
    X : array-like of shape (n_samples, n_features)
        Rows; NaN where a cell is missing.
    components : pair of int, default=(1, 2)
        Which components, counted from 1 as on the axes.
    max_rows : int, default=5000
        Of more rows than this, this many are taken evenly.

    Returns
    -------
    data : BiplotData
        Scores, how certain they are, and loadings.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import PPCA, plot
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> X[0, 0] = np.nan
    >>> data = plot.biplot_data(PPCA(n_components=2).fit(X), X)
    >>> data.scores.shape, data.loadings.shape, int(data.has_gaps.sum())
    ((100, 2), (5, 2), 1)
    """
    model = _model.fitted(estimator)
    q = _model.some_components(model, 2, "a biplot")
    pair = tuple(int(k) for k in components)
    if len(pair) != 2 or not all(1 <= k <= q for k in pair) or pair[0] == pair[1]:
        raise DataError(f"components must be two different numbers from 1 to {q}, got {components!r}")
    own = [pair[0] - 1, pair[1] - 1]
    table = _model.rows_of(estimator, X)
    rows = _model.evenly(len(table), max_rows)
    shown = np.ascontiguousarray(table[rows])
    scores = model._model.transform(shown, "posterior", n_threads())
    covariances = model._model.score_covariances(shown, n_threads())
    share = np.full(2, np.nan) if _model.rotated(model) else _model.shares(model)[own]
    return BiplotData(
        scores=scores[:, own],
        covariances=covariances[:, own][:, :, own],
        has_gaps=np.asarray(np.isnan(shown).any(axis=1)),
        rows=rows,
        n_rows=len(table),
        loadings=_model.unit_loadings(model)[:, own],
        names=_model.names_of(model),
        components=(pair[0], pair[1]),
        share=share,
    )


def biplot(
    estimator: Any,
    X: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    components: Sequence[int] = (1, 2),
    max_arrows: int = 15,
    max_rows: int = 5000,
    max_ellipses: int = 200,
    ax: Any = None,
) -> Any:
    """Scores of rows as points, loadings of columns as arrows.

    A row with gaps has an ellipse of one posterior standard deviation around it.

    Parameters
    ----------
    estimator, X, components, max_rows
        As of :func:`biplot_data`.
    groups : array-like of shape (n_samples,) or None, default=None
        A label for each row; gives colors and marks.
    max_arrows : int, default=15
        Most arrows, of the longest loadings; 0 for none.
    max_ellipses : int, default=200
        Of more rows with gaps than this, this many have their ellipse; 0 for none.
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
    >>> ax = plot.biplot(PPCA(n_components=2, standardize=False).fit(X), X)
    >>> ax.get_xlabel()[:11]
    'component 1'
    """
    _style.pyplot()
    data = biplot_data(estimator, X, components=components, max_rows=max_rows)
    labels = None
    if groups is not None:
        labels = np.asarray(groups)
        if labels.shape != (data.n_rows,):
            raise DataError(
                f"groups must have one label for each of {data.n_rows} rows, got shape {labels.shape}"
            )
        labels = labels[data.rows].astype(str)
    if max_arrows < 0 or max_ellipses < 0:
        raise ValueError("max_arrows and max_ellipses must be at least 0")
    made = ax is None
    ax = _style.axes(ax, (7.0, 5.6))
    colors = _points(ax, data, labels)
    ellipses = _ellipses(ax, data, colors, max_ellipses)
    stretch = _stretch(data)
    arrows = _model.strongest(data.loadings, max_arrows) if max_arrows else np.arange(0)
    arrows = arrows[np.hypot.reduce(data.loadings[arrows], axis=1) > 0.0]
    tips = stretch * data.loadings[arrows]
    both = np.vstack([data.scores, tips, np.zeros((1, 2))])
    low, high = both.min(axis=0), both.max(axis=0)
    pad = 0.08 * float((high - low).max()) or 1.0
    ax.set_xlim(low[0] - pad, high[0] + pad)
    ax.set_ylim(low[1] - pad, high[1] + pad)
    ax.set_aspect("equal", adjustable="box")
    for side, k, share in zip(("x", "y"), data.components, data.share, strict=True):
        said = "" if math.isnan(share) else f" ({_style.percent(share)})"
        getattr(ax, f"set_{side}label")(f"component {k}{said}")
    _style.note(ax, *_said(data, len(arrows), stretch, ellipses))
    if labels is not None:
        ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    _style.despine(ax)
    _arrows(ax, tips)
    name_tips(ax, tips, [_style.short(data.names[j]) for j in arrows], made)
    return ax


def _points(ax: Any, data: BiplotData, labels: Any) -> Any:
    """The scores; returns a color for each row."""
    from matplotlib.colors import to_rgba

    size = 22.0 if len(data.rows) <= 500 else 8.0
    alpha = 0.85 if len(data.rows) <= 500 else 0.5
    if labels is None:
        color = _style.hues(ax)[0]
        ax.scatter(*data.scores.T, s=size, color=color, alpha=alpha, linewidths=0, zorder=2)
        return np.tile(to_rgba(color), (len(data.rows), 1))
    colors = np.zeros((len(data.rows), 4))
    palette = _style.palette(ax)
    for g, label in enumerate(dict.fromkeys(sorted(labels.tolist()))):
        own = labels == label
        color = palette[g % len(palette)]
        # Marks go on changing when the colors are used up.
        marker = _style.MARKERS[(g + g // len(palette)) % len(_style.MARKERS)]
        ax.scatter(
            *data.scores[own].T, s=size, color=color, marker=marker, alpha=alpha, linewidths=0, zorder=2,
            label=_style.plain(str(label)),
        )  # fmt: skip
        colors[own] = to_rgba(color)
    return colors


def _ellipses(ax: Any, data: BiplotData, colors: Any, most: int) -> tuple[int, int]:
    """One standard deviation around rows with gaps; returns how many of how many."""
    from matplotlib.collections import EllipseCollection

    having = np.flatnonzero(data.has_gaps)
    if most == 0 or len(having) == 0:
        return 0, len(having)
    drawn = having[_model.evenly(len(having), most)]
    length, axes = np.linalg.eigh(data.covariances[drawn])
    reach = 2.0 * np.sqrt(np.maximum(length, 0.0))
    angle = np.degrees(np.arctan2(axes[:, 1, 1], axes[:, 0, 1]))
    outline = colors[drawn].copy()
    outline[:, 3] = 0.22
    shapes = EllipseCollection(
        reach[:, 1], reach[:, 0], angle, units="xy", offsets=data.scores[drawn],
        offset_transform=ax.transData, facecolors="none", edgecolors=outline, linewidths=0.7, zorder=1,
    )  # fmt: skip
    ax.add_collection(shapes)
    return len(drawn), len(having)


def _stretch(data: BiplotData) -> float:
    """How much longer than the loadings the arrows are, so that they fill the plane of the scores."""
    longest = float(np.hypot.reduce(data.loadings, axis=1).max(initial=0.0))
    reach = float(np.quantile(np.hypot.reduce(data.scores, axis=1), 0.98))
    if longest == 0.0 or reach == 0.0:
        return 1.0
    wanted = reach / longest
    tens = 10.0 ** math.floor(math.log10(wanted))
    return max((s * tens for s in _STRETCHES if s * tens <= wanted), default=tens)


def _said(data: BiplotData, arrows: int, stretch: float, ellipses: tuple[int, int]) -> list[str]:
    """What a reader must know."""
    said = []
    if len(data.rows) < data.n_rows:
        said.append(f"{_style.counted(len(data.rows))} of {_style.counted(data.n_rows)} rows, evenly taken")
    if arrows:
        of = f"the {arrows} longest of {_style.counted(len(data.names))} " if arrows < len(data.names) else ""
        said.append(f"arrows: {of}loadings in sd of the column, × {stretch:g}")
    drawn, having = ellipses
    if drawn:
        some = f"{drawn} of {_style.counted(having)} rows" if drawn < having else "rows"
        said.append(f"ellipses: ± 1 posterior sd of {some} with gaps")
    return said


def _arrows(ax: Any, tips: Floats) -> None:
    color = _style.mixed(ax, 0.85)
    for tip in tips:
        ax.annotate(
            "", xy=tip, xytext=(0.0, 0.0), zorder=4,
            arrowprops={"arrowstyle": "-|>,head_length=0.35,head_width=0.15", "color": color, "lw": 1.0,
                        "shrinkA": 0.0, "shrinkB": 0.0},
        )  # fmt: skip


def name_tips(ax: Any, tips: Floats, names: list[str], made: bool) -> None:
    """Names at the tips, the longest arrows first; each takes the nearest place that is free."""
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.5, foreground=_style.ground(ax))]
    texts = [
        ax.text(*tip, _style.plain(name), fontsize="small", ha="center", va="center", zorder=5, path_effects=halo)
        for tip, name in zip(tips, names, strict=True)
    ]
    if not texts:
        return
    sizes = np.array([(box.width, box.height) for box in (text.get_window_extent() for text in texts)])
    for text in texts:
        text.set_in_layout(False)
    point = ax.figure.dpi / 72.0
    for _ in range(2):  # Wider limits change the scale, which changes what the names need.
        if made:
            ax.figure.draw_without_rendering()
        ax.apply_aspect()
        _make_room(ax, tips, sizes, 6.0 * point)
    if made:
        ax.figure.draw_without_rendering()
    ax.apply_aspect()
    origin = ax.transData.transform((0.0, 0.0))
    pixels = ax.transData.transform(tips)
    along = pixels - origin
    along /= np.maximum(np.hypot.reduce(along, axis=1), 1e-9)[:, None]
    steps = np.linspace(0.15, 1.0, 18)[:, None, None]
    shafts = origin + steps * (pixels - origin)
    taken: list[Floats] = []
    for a in np.argsort(-np.hypot.reduce(tips, axis=1), kind="stable"):
        half = sizes[a] / 2.0
        best, cost = pixels[a], math.inf
        for turn, out in _places():
            cos, sin = math.cos(turn), math.sin(turn)
            way = np.array([along[a, 0] * cos - along[a, 1] * sin, along[a, 0] * sin + along[a, 1] * cos])
            center = pixels[a] + way * ((3.0 + out) * point + half)
            price = sum(_shared(center, half, other[0], other[1]) for other in taken)
            crossed = (np.abs(shafts - center) < half).all(axis=2).sum()
            price += 0.03 * float(crossed) * 4.0 * half[0] * half[1]
            if price < cost - 1e-9:
                best, cost = center, price
            if cost == 0.0:
                break
        taken.append(np.array([best, half]))
        back = ax.transData.inverted()
        texts[a].set_position(back.transform(best))
        near = np.clip(pixels[a], best - half, best + half)
        if float(np.hypot(*(near - pixels[a]))) > 6.0 * point:  # the name is not at its tip
            ends = back.transform(np.array([pixels[a], near]))
            ax.plot(*ends.T, color=_style.mixed(ax, 0.5), linewidth=0.6, zorder=3)


def _make_room(ax: Any, tips: Floats, sizes: Floats, gap: float) -> None:
    """Widens the limits so that names beyond the tips fit."""
    pixels = ax.transData.transform(tips)
    way = np.sign(tips)
    ends = ax.transData.inverted().transform(pixels + way * (sizes + gap))
    for k, (get, put) in enumerate(((ax.get_xlim, ax.set_xlim), (ax.get_ylim, ax.set_ylim))):
        low, high = get()
        put(min(low, float(ends[:, k].min())), max(high, float(ends[:, k].max())))


def _places() -> list[tuple[float, float]]:
    """Ways to go from a tip: how far turned from the arrow, how many points further out; near ones first."""
    turns = (0.0, 0.5, -0.5, 1.0, -1.0, 1.5, -1.5)
    return sorted(
        ((turn, out) for turn in turns for out in (0.0, 5.0, 10.0, 16.0, 24.0)),
        key=lambda place: (8.0 * abs(place[0]) + place[1], place),
    )


def _shared(a: Floats, half_a: Floats, b: Floats, half_b: Floats) -> float:
    """Area that two boxes share, given by centers and half widths."""
    sides = np.minimum(a + half_a, b + half_b) - np.maximum(a - half_a, b - half_b)
    return float(sides[0] * sides[1]) if (sides > 0.0).all() else 0.0
