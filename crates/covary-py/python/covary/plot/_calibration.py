"""Do intervals cover what they say, column by column?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _style
from ._intervals import intervals_data

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ._model import Floats, Indices


@dataclass(frozen=True, eq=False)
class CalibrationData:
    """Numbers behind :func:`calibration`.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns that have missing cells whose truth is known.
    n_cells : ndarray of shape (n_columns,)
        Such cells of each.
    coverage : ndarray of shape (n_columns,)
        Proportion of these that the intervals cover.
    lower, upper : ndarray of shape (n_columns,)
        Wilson's 95 % interval of that proportion.
    level : float
        Level of the intervals.
    """

    columns: tuple[str, ...]
    n_cells: Indices
    coverage: Floats
    lower: Floats
    upper: Floats
    level: float


def calibration_data(
    estimator: Any, X: ArrayLike, X_true: ArrayLike, *, level: float = 0.9
) -> CalibrationData:
    """Coverage of the intervals of missing cells whose truth is known, column by column.

    Parameters
    ----------
    estimator, X, X_true
        As of :func:`covary.plot.intervals_data`.
    level : float, default=0.9
        Level of the intervals, between 0 and 1.

    Returns
    -------
    data : CalibrationData
        Coverage and its interval.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import PPCA, plot
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 6)) + 0.3 * rng.normal(size=(300, 6))
    >>> X = np.where(rng.random(truth.shape) < 0.2, np.nan, truth)
    >>> data = plot.calibration_data(PPCA(n_components=2).fit(X), X, truth)
    >>> bool(((data.lower <= data.coverage) & (data.coverage <= data.upper)).all())
    True
    """
    found = intervals_data(estimator, X, X_true, level=level)
    own, place = np.unique(found.column, return_inverse=True)
    cells = np.bincount(place)
    share = np.bincount(place, weights=found.inside) / cells
    # Both ends p solve (share − p)² = z² p (1 − p) / n (Wilson 1927).
    z2 = 1.959963984540054**2
    middle = (share + 0.5 * z2 / cells) / (1.0 + z2 / cells)
    reach = np.sqrt(z2 * (share * (1.0 - share) + 0.25 * z2 / cells) / cells) / (1.0 + z2 / cells)
    return CalibrationData(
        columns=tuple(found.names[j] for j in own),
        n_cells=cells,
        coverage=share,
        lower=np.clip(middle - reach, 0.0, share),
        upper=np.clip(middle + reach, share, 1.0),
        level=float(level),
    )


@_style.documented
def calibration(
    estimator: Any, X: ArrayLike, X_true: ArrayLike, *, level: float = 0.9, max_columns: int = 40, ax: Any = None
) -> Any:
    """Coverage by column with Wilson intervals; orange where these exclude the level.

    Parameters
    ----------
    estimator, X, X_true, level
        As of :func:`calibration_data`.
    max_columns : int, default=40
        Most columns: those with the most cells.
    {ax}

    {drawn}

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from covary import PPCA, plot
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 6)) + 0.3 * rng.normal(size=(300, 6))
    >>> X = np.where(rng.random(truth.shape) < 0.2, np.nan, truth)
    >>> plot.calibration(PPCA(n_components=2).fit(X), X, truth).get_xlabel()
    'proportion covered by 90 % intervals'
    """
    _style.pyplot()
    data = calibration_data(estimator, X, X_true, level=level)
    if max_columns < 1:
        raise ValueError(f"at least one must be shown, got {max_columns}")
    shown = np.sort(np.argsort(-data.n_cells, kind="stable")[:max_columns])
    ax = _style.axes(ax, (5.4, 1.2 + 0.26 * len(shown)))
    from matplotlib.ticker import PercentFormatter

    blue, orange = _style.hues(ax)
    off = (data.upper < data.level) | (data.lower > data.level)
    for place, j in enumerate(shown):
        color = orange if off[j] else blue
        ax.plot([data.lower[j], data.upper[j]], [place, place], color=color, linewidth=1.4)
        ax.plot([data.coverage[j]], [place], color=color, marker="D" if off[j] else "o", markersize=5)
    ax.axvline(data.level, color=_style.mixed(ax, 0.8), linewidth=1.0, linestyle="--")
    names = [f"{_style.plain(_style.short(data.columns[j]))} ({data.n_cells[j]})" for j in shown]
    ax.set_yticks(np.arange(len(shown)), names, fontsize="small")
    ax.invert_yaxis()
    ax.xaxis.set_major_formatter(PercentFormatter(xmax=1.0, decimals=0))
    some = f"{len(shown)} of {len(data.columns)} columns, by cells" if len(shown) < len(data.columns) else ""
    covered = f"proportion covered by {100.0 * data.level:g} % intervals"
    return _style.finish(ax, covered, "", "lines: 95 % intervals of the proportion (Wilson)", some)
