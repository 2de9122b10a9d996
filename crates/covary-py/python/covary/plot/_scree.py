"""How much each component explains."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _table
from .._threads import n_threads
from . import _model, _style

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ._model import Floats


@dataclass(frozen=True, eq=False)
class ScreeData:
    """Numbers behind :func:`scree`, all as shares of one total variance.

    Attributes
    ----------
    share : ndarray of shape (n_components,)
        Share of the variance that each component of the model explains.
    cumulative : ndarray of shape (n_components,)
        Its sum up to each component.
    standardized : bool
        True: shares of the variance of standardized columns, the noise left out. False: shares of the
        variance of the table along each axis, the noise included, as `explained_variance_ratio_`.
    rotated : bool
        Whether the loadings were turned; the shares are those before.
    eigenvalue_share : ndarray of shape (min(n_samples, n_features),) or None
        Eigenvalues of the correlations of `X` (of its covariances, if not `standardized`) over their
        sum; noise is in them. None without `X`.
    threshold_share : ndarray of the same shape or None
        The 95 % quantile of the same over copies of `X` whose columns were shuffled.
    n_parallel : int or None
        Leading eigenvalues above their threshold.
    total : float or None
        The sum of the eigenvalues: number of columns, if `standardized`.
    """

    share: Floats
    cumulative: Floats
    standardized: bool
    rotated: bool
    eigenvalue_share: Floats | None
    threshold_share: Floats | None
    n_parallel: int | None
    total: float | None


def scree_data(
    estimator: Any, X: ArrayLike | None = None, *, n_copies: int = 200, random_state: Any = None
) -> ScreeData:
    """How much each component explains, and how much chance would.

    Parameters
    ----------
    estimator : estimator or Imputer
        Fitted.
    X : array-like of shape (n_samples, n_features) or None, default=None
        The table, for a parallel analysis; NaN where a cell is missing.
    n_copies : int, default=200
        Shuffled copies of `X`.
    random_state : int, RandomState instance or None, default=None
        Seed of the copies; None is 0.

    Returns
    -------
    data : ScreeData
        Shares of the variance.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import PPCA, plot
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 6)) + 0.5 * rng.normal(size=(200, 6))
    >>> data = plot.scree_data(PPCA(n_components=3).fit(X), X)
    >>> data.n_parallel
    2
    >>> bool(data.cumulative[-1] == data.share.sum())
    True
    """
    model = _model.fitted(estimator)
    share = _model.shares(model)
    standardized = bool(model._model.standardized)
    alone = ScreeData(
        share=share,
        cumulative=np.cumsum(share),
        standardized=standardized,
        rotated=_model.rotated(model),
        eigenvalue_share=None,
        threshold_share=None,
        n_parallel=None,
        total=None,
    )
    if X is None:
        return alone
    eigenvalues, thresholds, passed = _model.native.parallel_analysis(
        _model.rows_of(estimator, X),
        standardize=standardized,
        n_copies=n_copies,
        seed=_table.seed_of(random_state),
        threads=n_threads(),
    )
    total = float(np.sum(eigenvalues))
    return replace(
        alone,
        eigenvalue_share=eigenvalues / total,
        threshold_share=thresholds / total,
        n_parallel=int(passed),
        total=total,
    )


def scree(
    estimator: Any,
    X: ArrayLike | None = None,
    *,
    max_components: int = 20,
    n_copies: int = 200,
    random_state: Any = None,
    ax: Any = None,
) -> Any:
    """Bars of the variance each component explains, with their sum as a line.

    Given the table, also its eigenvalues and the 95 % quantile of those of shuffled copies (parallel
    analysis), as shares of the same total. Compare the two lines with each other: eigenvalues hold
    noise, which the bars of a standardized fit leave out.

    Parameters
    ----------
    estimator, X, n_copies, random_state
        As of :func:`scree_data`.
    max_components : int, default=20
        Most components and eigenvalues drawn.
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
    >>> ax = plot.scree(PPCA(n_components=2).fit(X))
    >>> ax.get_xlabel()
    'component'
    """
    _style.pyplot()
    data = scree_data(estimator, X, n_copies=n_copies, random_state=random_state)
    if max_components < 1:
        raise ValueError(f"at least one must be shown, got {max_components}")
    ax = _style.axes(ax, (6.4, 4.2))
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    blue, orange = _style.hues(ax)
    text = _style.mixed(ax, 1.0)
    q = min(len(data.share), max_components)
    places = np.arange(1, q + 1)
    noise = "without" if data.standardized else "with"
    ax.bar(places, data.share[:q], width=0.7, color=blue, alpha=0.8, label=f"component, {noise} noise")
    ax.plot(
        places, data.cumulative[:q], color=_style.mixed(ax, 0.6), marker="o", markersize=4, linewidth=1.2,
        label="components together",
    )  # fmt: skip
    shown, said = q, ""
    if data.eigenvalue_share is not None and data.threshold_share is not None:
        shown = min(len(data.eigenvalue_share), max_components)
        places = np.arange(1, shown + 1)
        of = "correlations" if data.standardized else "covariances"
        ax.plot(
            places, data.eigenvalue_share[:shown], color=text, marker="D", markersize=4, linewidth=1.2,
            label=f"eigenvalues of {of}, with noise",
        )  # fmt: skip
        ax.plot(
            places, data.threshold_share[:shown], color=orange, linestyle="--", linewidth=1.6,
            label="95 % of shuffled copies",
        )  # fmt: skip
        said = f"above the shuffled copies: {data.n_parallel}"
    of = "standardized columns" if data.standardized else "the table"
    ax.set_xlabel("component, before rotation" if data.rotated else "component")
    ax.set_ylabel(f"share of the variance of {of}")
    ax.yaxis.set_major_formatter(PercentFormatter(xmax=1.0, decimals=0))
    last = max(shown, q, 1)
    if last <= 15:
        ax.set_xticks(np.arange(1, last + 1))
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    ax.set_xlim(0.4, last + 0.6)
    ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]) if data.eigenvalue_share is not None else 0.0)
    have = max(len(data.share), 0 if data.eigenvalue_share is None else len(data.eigenvalue_share))
    cut = f"first {last} of {_style.counted(have)}" if have > last else ""
    _style.note(ax, "; ".join(part for part in (said, cut) if part))
    lines, names = ax.get_legend_handles_labels()
    bars = [k for k, name in enumerate(names) if name.startswith("component, ")]
    order = bars + [k for k in range(len(names)) if k not in bars]
    ax.legend([lines[k] for k in order], [names[k] for k in order], frameon=False, fontsize="small")
    _style.despine(ax)
    return ax
