"""Dynamic factor models: rows that follow each other in time."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from . import _covary, _options, _table
from ._fitted import Fitted
from ._threads import n_threads
from .exceptions import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from typing_extensions import Self

    from ._fitted import Array

#: What the library is told of times: their name, the moment of each row, and what tells sequences apart with the number of each.
_Times = tuple[str, Any, "tuple[str, list[int]] | None"]


@dataclass(eq=False, repr=False)
class DynamicFactor(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Fitted):
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
    noise_memory : bool, default=False
        Whether the noise of every column remembers a share of itself from one step to the next, AR(1).
    loadings : {"likelihood", "bayes"} or None, default=None
        Where loadings, levels and noise come from: their likelihood, with the dynamics; or a Bayesian PCA, which shrinks what few
        rows support. None is "bayes" for tables with fewer than two rows for each column, else "likelihood".
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
    noise_memory: bool = False
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
            "noise_memory": _options.switch(self, "noise_memory"),
        }
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
            "times": times,
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
        return _table.like(self._model.transform(rows, times, bool(filtered), n_threads()), rows)

    def impute(self, X: ArrayLike, return_std: bool = False) -> Any:
        """The rows with their gaps filled by means given all rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in time; NaN where a cell is missing.
        return_std : bool, default=False
            Also return how certain each filled cell is.

        Returns
        -------
        filled : ndarray of shape (n_samples, n_features)
            The rows without gaps; observed cells as they came, to the last bit.
        std : ndarray of shape (n_samples, n_features)
            Standard deviation of each filled cell, 0 where observed; only if `return_std`.
        """
        rows, times = self._asked(X)
        return _table.filled(self._model.impute_in_time(rows, times, n_threads()), rows, return_std)

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

    def score_samples(self, X: ArrayLike) -> Array:
        """Log-density of each row in nats, given those before it: small where a row is a surprise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in time; NaN where a cell is missing.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            0 for a row of only gaps.
        """
        rows, times = self._asked(X)
        found: Array = self._model.log_density_in_time(rows, times, n_threads())
        return found

    def score(self, X: ArrayLike, y: Any = None) -> float:
        """Average log-density of the rows given those before them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in time; NaN where a cell is missing.
        y : None
            Ignored.

        Returns
        -------
        score : float
            Nats per row.
        """
        return float(np.mean(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """A new sequence, which begins when the table of the fit did.

        Parameters
        ----------
        n_samples : int, default=1
            Rows.
        random_state : int, RandomState instance or None, default=None
            Seed; None is 0.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The rows.
        """
        check_is_fitted(self)
        if not isinstance(n_samples, (int, np.integer)) or n_samples < 1:
            raise ValueError(f"n_samples must be a whole number from 1, got {n_samples!r}")
        rows: Array = self._model.sample(int(n_samples), _table.seed_of(random_state))[0]
        return rows

    def _publish(self, model: Any, rows: Array | None = None) -> None:
        super()._publish(model, rows)
        self.n_components_ = model.n_components
        self.transition_ = model.transition
        self.innovation_ = model.innovation
        self.loadings_ = model.loadings
        self.coefficients_ = model.coefficients
        self.noise_variance_ = model.noise_variance
        self.noise_memory_ = model.noise_memory
        self.spectral_radius_ = model.spectral_radius

    @property
    def _n_features_out(self) -> int:
        found: int = self.n_components_
        return found

    @classmethod
    def _options_of(cls, model: Any) -> dict[str, Any]:
        options = model.method[1]
        period, _, waves = options["season"].partition(":")
        season = None if period == "none" else (float(period), waves if waves == "means" else int(waves))
        return {
            "n_components": model.n_components,
            "time": model.time_name,
            "groups": model.groups_name,
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

    def _placed_rows(self, X: Any) -> tuple[Array, dict[str, Any]]:
        rows, times = self._asked(X)
        return rows, {"times": times}

    def _asked(self, X: Any) -> tuple[Array, _Times | None]:
        check_is_fitted(self)
        numbers, times = self._in_time(X)
        return _table.table(self, numbers, reset=False), times

    def _in_time(self, X: Any) -> tuple[Any, _Times | None]:
        """A table without the columns that tell of time, and what they tell."""
        columns = list(getattr(X, "columns", ()))
        aside = [name for name in (self.time, self.groups) if name is not None and name in columns]
        index: Any = getattr(X, "index", None)
        dated = type(index).__name__ in ("DatetimeIndex", "PeriodIndex")
        sequences = None
        if self.groups is not None:
            if self.groups not in columns:
                raise DataError(f"X has no column {self.groups!r} that tells sequences apart")
            numbers = np.unique(np.asarray(X[self.groups]).astype(str), return_inverse=True)[1].tolist()
            sequences = (str(self.groups), numbers)
        if self.time in columns:
            name, given = str(self.time), X[self.time]
        elif dated:
            name, given = str(index.name or "time"), index
        elif self.time is not None:
            raise DataError(f"X has no column {self.time!r} of times, and no index of dates")
        elif sequences is not None:
            raise DataError("rows of several sequences need times: name their column by `time`")
        else:
            return X, None
        moments = _moments(given, name)
        _one_row_at_a_time(moments, given, sequences, name)
        return (_without(X, aside) if aside else X), (name, moments, sequences)

    def _framed(self, values: Array, when: Any, times: _Times | None, X: Any) -> Any:
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


def _without(X: Any, columns: list[str]) -> Any:
    return X.drop(columns) if type(X).__module__.startswith("polars") else X.drop(columns=columns)


def _moments(given: Any, name: str) -> Any:
    """Microseconds since 1970, or plain numbers."""
    if str(getattr(given, "dtype", "")).startswith("period"):
        given = getattr(given, "dt", given).to_timestamp()
    zone = getattr(getattr(given, "dt", given), "tz", None)
    if zone is not None:
        given = getattr(given, "dt", given).tz_convert("UTC")
        given = getattr(given, "dt", given).tz_localize(None)
    found = np.asarray(given)
    if found.dtype.kind in "iuf":
        numbers = found.astype(np.float64)
        missing = np.isnan(numbers)
    else:
        try:
            clock = found.astype("datetime64[us]")
        except (TypeError, ValueError) as error:
            raise DataError(f"column {name!r} has no times: {error}") from None
        missing = np.isnat(clock)
        numbers = clock.astype(np.int64)
    if missing.any():
        raise DataError(f"row {int(np.flatnonzero(missing)[0]) + 1} has no time in {name!r}; leave it out, or give it one")
    return np.ascontiguousarray(numbers)


def _one_row_at_a_time(moments: Any, given: Any, sequences: tuple[str, list[int]] | None, name: str) -> None:
    """Names two rows of a sequence with one time."""
    groups = np.zeros(len(moments), dtype=np.int64) if sequences is None else np.asarray(sequences[1])
    order = np.lexsort((moments, groups))
    same = (np.diff(moments[order]) == 0) & (np.diff(groups[order]) == 0)
    if same.any():
        k = int(np.flatnonzero(same)[0])
        first, second = sorted((int(order[k]), int(order[k + 1])))
        raise DataError(
            f"rows {first + 1} and {second + 1} both have {np.asarray(given)[first]} in {name!r}: a sequence has one row at a "
            "time; remove one of them, or say by `groups` which sequence each belongs to"
        )


__all__ = ["DynamicFactor"]
