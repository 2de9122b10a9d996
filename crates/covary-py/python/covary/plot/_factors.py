"""Factors in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._threads import n_threads
from . import _model, _style

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ._model import Floats

#: Quantile of the normal distribution that 95 % lie within.
_WITHIN = 1.959963984540054


@dataclass(frozen=True, eq=False)
class FactorsData:
    """Numbers behind :func:`factors`: the factors of a sequence given all its rows.

    Attributes
    ----------
    sequence : str or None
        What the sequence is called, if there are several.
    times : ndarray of shape (n_steps,)
        Moments, numbers, or counted rows, from 1.
    mean, sd : ndarray of shape (n_steps, n_components)
        Of each factor at each step.
    observed : ndarray of shape (n_steps,)
        Whether any cell was observed at the step.
    """

    sequence: str | None
    times: Any
    mean: Floats
    sd: Floats
    observed: NDArray[np.bool_]


def factors_data(estimator: Any, X: ArrayLike) -> list[FactorsData]:
    """The factors at every step of a table in time.

    Parameters
    ----------
    estimator : DynamicFactor
        Fitted.
    X : array-like of shape (n_samples, n_features)
        Rows in time; NaN where a cell is missing.

    Returns
    -------
    data : list of FactorsData
        One for each sequence.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import DynamicFactor, plot
    >>> X = np.sin(np.arange(80)[:, None] / 4 + np.arange(3)) + 0.1 * np.random.default_rng(0).normal(size=(80, 3))
    >>> X[30:33] = np.nan
    >>> [data] = plot.factors_data(DynamicFactor(2).fit(X), X)
    >>> data.mean.shape, int((~data.observed).sum())
    ((80, 2), 3)
    """
    model = _model.in_time(estimator)
    rows, times = model._asked(X)
    found = model._model.factors(rows, times, n_threads())
    return [
        FactorsData(name, _model.moments_of(when, times), mean, sd, np.asarray(observed, dtype=bool))
        for name, (when, mean, sd, observed) in zip(_model.sequences_of(model, X, len(found)), found, strict=True)
    ]


def factors(estimator: Any, X: ArrayLike, *, max_sequences: int = 6) -> Any:
    """Means of the factors at every step with their 95 % intervals; interrupted where nothing was observed.

    Parameters
    ----------
    estimator, X
        As of :func:`factors_data`.
    max_sequences : int, default=6
        Most sequences drawn, the longest; a color each.

    Returns
    -------
    axes : ndarray of matplotlib Axes
        A panel for each factor.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from covary import DynamicFactor, plot
    >>> X = np.sin(np.arange(80)[:, None] / 4 + np.arange(3)) + 0.1 * np.random.default_rng(0).normal(size=(80, 3))
    >>> axes = plot.factors(DynamicFactor(2).fit(X), X)
    >>> [ax.get_ylabel() for ax in axes]
    ['factor 1', 'factor 2']
    """
    plt = _style.pyplot()
    data = factors_data(estimator, X)
    if max_sequences < 1:
        raise ValueError(f"at least one must be shown, got {max_sequences}")
    lengths = np.array([-len(part.times) for part in data])
    shown = [data[k] for k in np.sort(np.argsort(lengths, kind="stable")[:max_sequences])]
    q = shown[0].mean.shape[1]
    axes = plt.subplots(q, 1, figsize=(8.0, 1.4 * q + 0.9), squeeze=False, sharex=True, sharey=True, layout="constrained")[1]
    axes = axes.ravel()
    for k, ax in enumerate(axes):
        colors = _style.palette(ax)
        for part, color in zip(shown, colors, strict=False):
            half = _WITHIN * part.sd[:, k]
            ax.fill_between(part.times, part.mean[:, k] - half, part.mean[:, k] + half, color=color, alpha=0.2, linewidth=0)
            curve = np.where(part.observed, part.mean[:, k], np.nan)
            ax.plot(part.times, curve, color=color, linewidth=1.2, label=part.sequence)
        ax.set_ylabel(f"factor {k + 1}")
        _style.despine(ax)
        _style.dates(ax, shown[0].times)
    cut = f"the longest {len(shown)} of {len(data)} sequences" if len(shown) < len(data) else ""
    _style.note(axes[0], "means given all rows, and 95 % intervals", cut)
    if len(shown) > 1:
        axes[0].legend(frameon=False, fontsize="small", ncols=len(shown))
    return axes
