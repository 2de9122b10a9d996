"""Columns in time, and what comes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._threads import n_threads
from . import _model, _style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from ._model import Floats

#: Steps of the past drawn for each step to come, and the fewest.
_PAST_PER_STEP, _PAST = 5, 60


@dataclass(frozen=True, eq=False)
class ForecastData:
    """Numbers behind :func:`forecast`: a sequence from its first step to the last that is forecast.

    Attributes
    ----------
    sequence : str or None
        What the sequence is called, if there are several.
    names : tuple of str
        The columns.
    times : ndarray of shape (n_steps,)
        Moments, numbers, or counted rows, from 1.
    n_past : int
        Steps of the table; those after them are to come.
    observed : ndarray of shape (n_past, n_features)
        The cells of the table; NaN where none was observed.
    mean : ndarray of shape (n_steps, n_features)
        Given all rows, or of steps to come what is expected; of observed cells without their noise.
    lower50, upper50, lower95, upper95 : ndarray of shape (n_steps, n_features)
        Ends of prediction intervals of 50 and 95 %; NaN where a cell was observed.
    """

    sequence: str | None
    names: tuple[str, ...]
    times: Any
    n_past: int
    observed: Floats
    mean: Floats
    lower50: Floats
    upper50: Floats
    lower95: Floats
    upper95: Floats


def forecast_data(estimator: Any, X: ArrayLike, *, steps: int | None = None) -> list[ForecastData]:
    """Every step of a table in time, and those to come.

    Parameters
    ----------
    estimator : DynamicFactor
        Fitted.
    X : array-like of shape (n_samples, n_features)
        Rows in time; NaN where a cell is missing.
    steps : int or None, default=None
        Steps to come; None is a season, or 12.

    Returns
    -------
    data : list of ForecastData
        One for each sequence.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import DynamicFactor, plot
    >>> X = np.sin(np.arange(80)[:, None] / 4 + np.arange(3)) + 0.1 * np.random.default_rng(0).normal(size=(80, 3))
    >>> X[30:33] = np.nan
    >>> [data] = plot.forecast_data(DynamicFactor(2).fit(X), X, steps=5)
    >>> data.n_past, data.mean.shape
    (80, (85, 3))
    >>> np.flatnonzero(~np.isnan(data.lower95[:, 0]))
    array([30, 31, 32, 80, 81, 82, 83, 84])
    """
    if steps is not None and (isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 1):
        raise ValueError(f"steps must be a whole number from 1, got {steps!r}")
    model = _model.in_time(estimator)
    rows, times = model._asked(X)
    found = model._model.courses(rows, times, None if steps is None else int(steps), (0.5, 0.95), n_threads())
    names = tuple(model._model.names)
    sequences = _model.sequences_of(model, X, len(found))
    return [
        ForecastData(name, names, _model.moments_of(when, times), n_past, observed, mean, *bands)
        for name, (when, n_past, observed, mean, bands) in zip(sequences, found, strict=True)
    ]


def forecast(
    estimator: Any,
    X: ArrayLike,
    *,
    steps: int | None = None,
    columns: Sequence[str] | None = None,
    max_panels: int = 12,
) -> Any:
    """Observed values, means given all of them, and the steps to come with their 50 and 95 % prediction intervals.

    Parameters
    ----------
    estimator, X, steps
        As of :func:`forecast_data`.
    columns : sequence of str or None, default=None
        The columns drawn; None takes those that the factors explain best.
    max_panels : int, default=12
        Most panels, one for each column of a sequence.

    Returns
    -------
    axes : ndarray of matplotlib Axes
        A panel for each column of each sequence, in their order.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from covary import DynamicFactor, plot
    >>> X = np.sin(np.arange(80)[:, None] / 4 + np.arange(3)) + 0.1 * np.random.default_rng(0).normal(size=(80, 3))
    >>> axes = plot.forecast(DynamicFactor(2).fit(X), X, steps=5)
    >>> [ax.get_title(loc="left") for ax in axes]
    ['x1', 'x2', 'x3']
    """
    plt = _style.pyplot()
    data = forecast_data(estimator, X, steps=steps)
    if max_panels < 1:
        raise ValueError(f"at least one must be shown, got {max_panels}")
    names = data[0].names
    if columns is None:
        room = max(max_panels // len(data), 1)
        loadings = np.asarray(estimator.loadings_, dtype=np.float64)
        sd = np.nanstd(np.concatenate([part.observed for part in data]), axis=0)[:, None]
        shown = _model.strongest(np.divide(loadings, sd, out=np.zeros_like(loadings), where=sd > 0.0), room)
    else:
        unknown = [name for name in columns if name not in names]
        if unknown:
            raise ValueError(f"the model has no column {unknown[0]!r}; it has {', '.join(names)}")
        shown = np.array([names.index(name) for name in columns], dtype=np.intp)
    pairs = [(part, int(j)) for j in shown for part in data][:max_panels]
    across = 1 if len(pairs) == 1 else 2 if len(pairs) <= 8 else 3
    down = -(-len(pairs) // across)
    size = (7.5, 3.2) if len(pairs) == 1 else (9.0, 1.9 * down + 0.6)
    figure, grid = plt.subplots(down, across, figsize=size, squeeze=False, sharex=True, layout="constrained")
    axes = grid.ravel()
    for ax in axes[len(pairs) :]:
        ax.set_visible(False)
    for k, (ax, (part, j)) in enumerate(zip(axes, pairs, strict=False)):
        _panel(ax, part, j)
        ax.xaxis.set_tick_params(labelbottom=k + across >= len(pairs))
    lines, labels = axes[0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside upper left", ncols=4, frameon=False, fontsize="small")
    return axes[: len(pairs)]


def _panel(ax: Any, data: ForecastData, j: int) -> None:
    blue, ink = _style.hues(ax)[0], _style.mixed(ax, 1.0)
    n_ahead = len(data.times) - data.n_past
    first = max(data.n_past - max(_PAST_PER_STEP * n_ahead, _PAST), 0)
    when, past = data.times[first:], data.times[first : data.n_past]
    for level, alpha, low, high in (
        (95, 0.2, data.lower95, data.upper95),
        (50, 0.3, data.lower50, data.upper50),
    ):
        ends = low[first:, j], high[first:, j]
        ax.fill_between(when, *ends, color=blue, alpha=alpha, linewidth=0, label=f"{level} % interval")
        # A band of one step has no width.
        alone = ~np.isnan(ends[0]) & _style.alone(~np.isnan(ends[0]))
        ax.vlines(when[alone], ends[0][alone], ends[1][alone], color=blue, alpha=alpha, linewidth=3)
    ax.plot(when, data.mean[first:, j], color=blue, linewidth=1.2, label="mean")
    ax.plot(past, data.observed[first:, j], linestyle="", marker=".", markersize=3, color=ink, label="observed")
    if 0 < data.n_past < len(data.times):
        last, following = data.times[data.n_past - 1], data.times[data.n_past]
        ax.axvline(last + (following - last) / 2, color=_style.mixed(ax, 0.6), linestyle="--", linewidth=0.9)
    name = data.names[j] if data.sequence is None else f"{data.names[j]} · {data.sequence}"
    ax.set_title(_style.plain(_style.short(name, 40)), loc="left", fontsize="small")
    _style.dates(ax, data.times)
    _style.despine(ax)
