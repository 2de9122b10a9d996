"""Dynamic factor models: rows that follow each other in time."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _covary, _options, _table
from ._threads import n_threads
from ._time import InTime
from .exceptions import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from typing_extensions import Self

    from ._fitted import Array
    from ._time import Times

@dataclass(eq=False, repr=False)
class DynamicFactor(InTime):
    """Factors that move through time, seen through noise; exact with missing cells and missing rows.

    ``x[t] = transition_ @ x[t-1] + ...`` and a row is ``loadings_ @ x[t]`` plus season, trend and noise. A missing cell is
    predicted from its row and from the rows before and after it.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        How many factors.
    time : str or None, default=None
        The column of times: dates, moments, or numbers. None takes the index of a pandas frame if it has dates, else rows
        are one step apart, as they stand. A time without a row is a step at which nothing was observed.
    groups : str or None, default=None
        The column that tells sequences apart, if there are several.
    order : int, default=1
        How many steps back the factors depend on.
    season : float, tuple or None, default=None
        Steps of a period, such as 12; or a tuple of these and the number of waves, or "means" for a mean at each step.
    trend : bool, default=False
        Whether every column has a straight line in time.
    noise : {"diagonal", "isotropic"} or None, default=None
        A noise variance for each column, or one for all; None is the library's choice, diagonal.
    noise_memory : bool or None, default=None
        Whether the noise of every column remembers a share of itself from one step to the next, AR(1). None is True for tables
        with fewer than four rows for each column, else False.
    loadings : {"likelihood", "bayes"} or None, default=None
        Where loadings, levels and noise come from: their likelihood, with the dynamics; or a Bayesian PCA, which shrinks what few
        rows support. None is "bayes" for tables with fewer than four rows for each column, else "likelihood".
    standardize : bool, default=True
        Give every column unit variance before fitting.
    max_iter : int or None, default=None
        Most steps; None is 1000.
    tol : float or None, default=None
        Stop when the objective is expected to rise by less than this many nats; None is 1e-4.
    random_state : int, RandomState instance or None, default=None
        Seed of what is left to chance (what "auto" hides). None is 0: runs repeat themselves.
    verbose : bool or int, default=False
        Tell on standard error how far a long fit is.

    Attributes
    ----------
    transition_ : ndarray of shape (n_components, n_components * order)
        How factors follow those before them, side by side for each step back.
    innovation_ : ndarray of shape (n_components, n_components)
        Covariance of what is new in the factors at each step.
    loadings_ : ndarray of shape (n_features, n_components)
        What a factor is in each column.
    coefficients_ : ndarray of shape (n_features, n_regressors)
        Level, season and trend of each column.
    noise_variance_ : ndarray of shape (n_features,)
        Of each column.
    noise_memory_ : ndarray of shape (n_features,)
        The share of its noise that each column remembers from one step to the next; 0 without `noise_memory`.
    spectral_radius_ : float
        The largest modulus of the roots of the transition; below 1 factors return to their mean.
    n_components_, trace_, n_iter_, converged_, n_features_in_, feature_names_in_
        As of :class:`PPCA`.

    See Also
    --------
    FactorAnalysis : The same if rows may be shuffled.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import DynamicFactor
    >>> rng = np.random.default_rng(0)
    >>> x = np.zeros(200)
    >>> for t in range(1, 200):
    ...     x[t] = 0.9 * x[t - 1] + rng.normal()
    >>> X = np.outer(x, [1, 2, -1]) + 0.3 * rng.normal(size=(200, 3))
    >>> X[50:60] = np.nan
    >>> model = DynamicFactor(1).fit(X)
    >>> bool(0.8 < model.spectral_radius_ < 1)
    True
    >>> mean, lower, upper = model.forecast(X, steps=3, interval=0.95)
    >>> mean.shape
    (3, 3)
    """

    _family = "dfm"

    n_components: int | str = "auto"
    _: KW_ONLY
    time: str | None = None
    groups: str | None = None
    order: int = 1
    season: Any = None
    trend: bool = False
    noise: str | None = None
    noise_memory: bool | None = None
    loadings: str | None = None
    standardize: bool = True
    max_iter: int | None = None
    tol: float | None = None
    random_state: Any = None
    verbose: bool | int = False

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Fit the model to the observed cells of a table in time.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table; NaN where a cell is missing. The columns `time` and `groups` of a frame are not features.
        y : None
            Ignored.

        Returns
        -------
        self : DynamicFactor
            The fitted estimator.
        """
        numbers, times = self._in_time(X)
        rows = _table.table(self, numbers, reset=True)
        options: dict[str, Any] = {
            "order": _options.whole(self, "order", 1),
            "season": self._season(),
            "trend": _options.switch(self, "trend"),
        }
        if self.noise_memory is not None:
            options["noise_memory"] = _options.switch(self, "noise_memory")
        loadings = _options.word(self, "loadings", (None, "likelihood", "bayes"))
        if loadings is not None:
            options["loadings"] = loadings
        asked: _covary.Request = {
            "n_components": _options.components(self, share=False),
            "noise": _options.word(self, "noise", (None, "isotropic", "diagonal")),
            "standardize": _options.switch(self, "standardize"),
            "options": options,
            "max_iterations": _options.whole(self, "max_iter", 1),
            "tolerance": _options.number(self, "tol"),
            "seed": _table.seed_of(self.random_state),
            "at": times,
        }
        return self._take(self._learned(rows, self._family, asked), rows)

    def transform(self, X: ArrayLike, filtered: bool = False) -> Array:
        """The factors of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in time; NaN where a cell is missing.
        filtered : bool, default=False
            Given the rows up to each only, what was known at the time; else given all rows.

        Returns
        -------
        factors : ndarray of shape (n_samples, n_components)
            Their means.
        """
        rows, times = self._asked(X)
        if filtered:
            return _table.like(self._model.filtered(rows, times, n_threads()), rows)
        return _table.like(self._model.transform(rows, None, n_threads(), times), rows)

    def forecast(self, X: ArrayLike, steps: int, interval: float | None = None) -> Any:
        """The rows that follow a table.

        Intervals count that the parameters were estimated.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows that they follow, in time, of one sequence.
        steps : int
            How many.
        interval : float or None, default=None
            Probability that an interval covers what will come; None is without intervals.

        Returns
        -------
        mean : ndarray or frame of shape (steps, n_features)
            What is expected. A frame if `X` is one, with the times to come: as the index of pandas, or in the column `time`.
        lower, upper : ndarray or frame of shape (steps, n_features)
            Ends of the intervals; only if `interval` is given.
        """
        if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 1:
            raise ValueError(f"steps must be a whole number from 1, got {steps!r}")
        if interval is not None and not 0 < interval < 1:
            raise ValueError(f"interval must be between 0 and 1, got {interval!r}")
        rows, times = self._asked(X)
        ahead = self._model.forecast(rows, times, int(steps), 0.95 if interval is None else float(interval), n_threads())
        if len(ahead) != 1:
            raise DataError(f"X has {len(ahead)} sequences; forecast one of them at a time")
        (when, *parts) = ahead[0]
        found = tuple(self._framed(_table.like(part, rows), when, times, X) for part in parts)
        return found[0] if interval is None else found

    def _publish(self, model: Any, rows: Array | None = None) -> None:
        super()._publish(model, rows)
        self.transition_ = model.transition
        self.innovation_ = model.innovation
        self.loadings_ = model.loadings
        self.coefficients_ = model.coefficients
        self.noise_variance_ = model.noise_variance
        self.noise_memory_ = model.noise_memory
        self.spectral_radius_ = model.spectral_radius

    @classmethod
    def _options_of(cls, model: Any) -> dict[str, Any]:
        options = model.method[1]
        period, _, waves = options["season"].partition(":")
        season = None if period == "none" else (float(period), waves if waves == "means" else int(waves))
        return {
            **super()._options_of(model),
            "order": int(options["order"]),
            "season": season,
            "trend": options["trend"] == "true",
            "noise": model.noise,
            "noise_memory": options.get("noise_memory") == "true",
            "loadings": options.get("loadings"),
            "standardize": model.standardized,
        }

    def _season(self) -> str:
        season = self.season
        if season is None:
            return "none"
        period, waves = season if isinstance(season, (tuple, list)) and len(season) == 2 else (season, 1)
        if isinstance(period, bool) or not isinstance(period, (int, float, np.integer, np.floating)):
            raise _options.refuse(self, "season", season, "None, the steps of a period, or these and the number of waves")
        return f"{int(period) if float(period).is_integer() else float(period)}:{waves}"

    def _framed(self, values: Array, when: Any, times: Times | None, X: Any) -> Any:
        """Rows to come as a frame of the kind of `X`, with their times."""
        kind = type(X).__module__.partition(".")[0]
        if times is None or kind not in ("pandas", "polars"):
            return values
        moments = np.asarray(when)
        if moments.dtype.kind == "i":
            moments = moments.astype("datetime64[us]")
        names = list(getattr(self, "feature_names_in_", (f"x{j + 1}" for j in range(values.shape[1]))))
        if kind == "polars":
            import polars as pl

            own = X.schema[times[0]]
            to_come = pl.Series(times[0], moments)
            if getattr(own, "time_zone", None) is not None:
                to_come = to_come.dt.replace_time_zone("UTC")
            return pl.DataFrame([to_come.cast(own), *(pl.Series(name, values[:, j]) for j, name in enumerate(names))])
        import pandas as pd

        index: Any = pd.Index(moments, name=times[0])
        in_column = self.time in list(X.columns)
        zone = getattr(X[self.time].dt if in_column and moments.dtype.kind == "M" else X.index, "tz", None)
        if zone is not None:
            index = index.tz_localize("UTC").tz_convert(zone)
        if not in_column and type(X.index).__name__ == "PeriodIndex":
            index = pd.DatetimeIndex(index).to_period(X.index.freq)
        return pd.DataFrame(values, index=index, columns=names)


__all__ = ["DynamicFactor"]
