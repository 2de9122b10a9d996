"""Correlations of columns with components, and what columns contribute to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _model, _style
from ._biplot import name_tips

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._model import Floats


@dataclass(frozen=True, eq=False)
class CircleData:
    """Numbers behind :func:`circle`.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns.
    correlations : ndarray of shape (n_columns, 2)
        Correlation of each column with the two components: loadings in standard deviations of the column.
    quality : ndarray of shape (n_columns,)
        Quality of representation, cos²: the proportion of the column's variance that the two explain.
    components : tuple of int
        The two components, from 1.
    share : ndarray of shape (2,) or None
        Proportion of the variance that each explains; None after a rotation.
    """

    columns: tuple[str, ...]
    correlations: Floats
    quality: Floats
    components: tuple[int, int]
    share: Floats | None


@dataclass(frozen=True, eq=False)
class ContributionsData:
    """Numbers behind :func:`contributions`.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns.
    contribution : ndarray of shape (n_columns, n_components)
        Share of each column in the sum of squared loadings of a component.
    quality : ndarray of shape (n_columns, n_components)
        cos²: the proportion of the column's variance that the component explains.
    """

    columns: tuple[str, ...]
    contribution: Floats
    quality: Floats


def circle_data(estimator: Any, *, components: Sequence[int] = (1, 2)) -> CircleData:
    """Correlations of the columns with two components.

    Parameters
    ----------
    estimator : estimator or Imputer
        Fitted, with two components at least.
    components : pair of int, default=(1, 2)
        Which components, from 1.

    Returns
    -------
    data : CircleData
        Correlations and cos².

    Examples
    --------
    >>> import numpy as np
    >>> from covary import PPCA, plot
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 6)) + 0.5 * rng.normal(size=(200, 6))
    >>> data = plot.circle_data(PPCA(n_components=2).fit(X))
    >>> bool(np.all(data.quality <= 1.0))
    True
    """
    model = _model.fitted(estimator)
    q = _model.some_components(model, 2, "a correlation circle")
    if len(components) != 2 or any(not 1 <= k <= q for k in components):
        raise ValueError(f"components must be two numbers from 1 to {q}, got {tuple(components)}")
    first, second = (int(k) for k in components)
    places = [first - 1, second - 1]
    correlations = _model.unit_loadings(model)[:, places]
    return CircleData(
        columns=_model.names_of(model),
        correlations=correlations,
        quality=(correlations**2).sum(axis=1),
        components=(first, second),
        share=None if _model.rotated(model) else _model.shares(model)[places],
    )


@_style.documented
def circle(
    estimator: Any, *, components: Sequence[int] = (1, 2), max_columns: int = 40, ax: Any = None
) -> Any:
    """The correlation circle: an arrow for each column, which reaches the circle if the two explain it whole.

    Parameters
    ----------
    estimator, components
        As of :func:`circle_data`.
    max_columns : int, default=40
        Most arrows: those of the largest cos².
    {ax}

    Returns
    -------
    ax : matplotlib Axes
        With the circle.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from covary import PPCA, plot
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> ax = plot.circle(PPCA(n_components=2).fit(X))
    >>> ax.get_xlabel().startswith("PC1 (")
    True
    """
    _style.pyplot()
    data = circle_data(estimator, components=components)
    shown = _model.strongest(data.correlations, max_columns)
    made = ax is None
    ax = _style.axes(ax, (5.6, 5.2))
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.patches import Circle

    colors = _by_quality(ax)
    ax.add_patch(Circle((0.0, 0.0), 1.0, fill=False, edgecolor=_style.mixed(ax, 0.5), linewidth=1.0))
    ax.axhline(0.0, color=_style.mixed(ax, 0.3), linewidth=0.7, linestyle="--")
    ax.axvline(0.0, color=_style.mixed(ax, 0.3), linewidth=0.7, linestyle="--")
    for j in shown:
        x, y = data.correlations[j]
        style = {"arrowstyle": "-|>", "color": colors(float(data.quality[j])), "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", xy=(x, y), xytext=(0.0, 0.0), arrowprops=style)
    ax.set_aspect("equal")
    ax.set_xlim(-1.25, 1.25)
    ax.set_ylim(-1.15, 1.15)
    names = [
        f"component {k}" if data.share is None else f"PC{k} ({_style.percent(float(data.share[place]))})"
        for place, k in enumerate(data.components)
    ]
    ax.figure.colorbar(ScalarMappable(Normalize(0.0, 1.0), colors), ax=ax, label="cos²", shrink=0.6)
    name_tips(ax, data.correlations[shown], [_style.short(data.columns[j]) for j in shown], made)
    some = f"{len(shown)} of {_style.counted(len(data.columns))} columns, by cos²"
    return _style.finish(ax, *names, some if len(shown) < len(data.columns) else "")


def _by_quality(ax: Any) -> Any:
    """Colors from cos² 0 to 1."""
    from matplotlib.colors import LinearSegmentedColormap

    ends: list[Any] = [_style.mixed(ax, 0.5), _style.hues(ax)[1]]
    return LinearSegmentedColormap.from_list("cos2", ends)


def contributions_data(estimator: Any) -> ContributionsData:
    """What each column contributes to each component.

    Parameters
    ----------
    estimator : estimator or Imputer
        Fitted, with a component at least.

    Returns
    -------
    data : ContributionsData
        Contributions and cos².

    Examples
    --------
    >>> import numpy as np
    >>> from covary import PPCA, plot
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> data = plot.contributions_data(PPCA(n_components=2).fit(X))
    >>> bool(np.allclose(data.contribution.sum(axis=0), 1.0))
    True
    """
    model = _model.fitted(estimator)
    _model.some_components(model, 1, "a figure of contributions")
    quality = _model.unit_loadings(model) ** 2
    total = quality.sum(axis=0)
    contribution = np.divide(quality, total, out=np.zeros_like(quality), where=total > 0.0)
    return ContributionsData(columns=_model.names_of(model), contribution=contribution, quality=quality)


@_style.documented
def contributions(estimator: Any, *, component: int = 1, max_columns: int = 12, ax: Any = None) -> Any:
    """Bars of what the columns contribute to a component, the largest first.

    Parameters
    ----------
    estimator : estimator or Imputer
        Fitted, with a component at least.
    component : int, default=1
        Which component, from 1.
    max_columns : int, default=12
        Most bars.
    {ax}

    Returns
    -------
    ax : matplotlib Axes
        With the bars; dashed, what each would be if all were equal.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from covary import PPCA, plot
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> ax = plot.contributions(PPCA(n_components=2).fit(X), component=2)
    >>> len(ax.patches)
    5
    """
    _style.pyplot()
    data = contributions_data(estimator)
    d, q = data.contribution.shape
    if not 1 <= component <= q:
        raise ValueError(f"component must be a number from 1 to {q}, got {component}")
    if max_columns < 1:
        raise ValueError(f"at least one must be shown, got {max_columns}")
    values = data.contribution[:, component - 1]
    order = np.argsort(-values, kind="stable")[:max_columns]
    ax = _style.axes(ax, (5.6, 0.3 * len(order) + 1.2))
    from matplotlib.ticker import PercentFormatter

    colors = _by_quality(ax)
    places = np.arange(len(order))
    ax.barh(places, values[order], height=0.7, color=[colors(float(c)) for c in data.quality[order, component - 1]])
    ax.axvline(1.0 / d, color=_style.mixed(ax, 1.0), linewidth=1.0, linestyle="--")
    ax.set_yticks(places, [_style.plain(_style.short(data.columns[j], 30)) for j in order])
    ax.invert_yaxis()
    ax.xaxis.set_major_formatter(PercentFormatter(xmax=1.0, decimals=0))
    some = f"{len(order)} of {_style.counted(d)} columns" if len(order) < d else ""
    return _style.finish(ax, f"contribution to component {component}; color: cos²", "", some)
