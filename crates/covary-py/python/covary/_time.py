"""Tables in time: what every model of rows that follow each other is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from . import _table
from ._fitted import Fitted, Scores
from ._threads import n_threads
from .exceptions import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ._fitted import Array

#: What the library is told of times: their name, the moment of each row, and what tells sequences apart with the number of each.
Times = tuple[str, Any, "tuple[str, list[int]] | None"]


class InTime(Scores, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Fitted):
    """Base of the estimators of rows in time: everything but what they ask the library for."""

    time: str | None
    groups: str | None
    n_components_: int

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
        return _table.filled(self._model.impute(rows, False, n_threads(), times), rows, return_std)

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
        found: Array = self._model.log_density(rows, n_threads(), times)
        return found

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
        rows: Array = self._sampled(n_samples, random_state, 1)[0]
        return rows

    def _publish(self, model: Any, rows: Array | None = None) -> None:
        super()._publish(model, rows)
        self.n_components_ = model.n_components

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    @classmethod
    def _options_of(cls, model: Any) -> dict[str, Any]:
        time, groups = model.time_columns
        return super()._options_of(model) | {"time": time, "groups": groups}

    def _placed_rows(self, X: Any) -> tuple[Array, Any]:
        return self._asked(X)

    def _asked(self, X: Any) -> tuple[Array, Times | None]:
        check_is_fitted(self)
        numbers, times = self._in_time(X)
        return _table.table(self, numbers, reset=False), times

    def _in_time(self, X: Any) -> tuple[Any, Times | None]:
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


__all__ = ["InTime", "Times"]
