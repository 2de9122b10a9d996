"""Tables on their way to the library: what scikit-learn accepts, with gaps, without needless copies."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_array, validate_data

from . import _covary
from .exceptions import DataError, DataWarning, OptionError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


def table(
    estimator: Any, X: Any, *, reset: bool, accept_sparse: Any = False, least: int | None = None
) -> Any:
    """The numbers of `X`, gaps as NaN, checked and counted as scikit-learn does.

    Infinite cells are left to the library, which names their row and column. A fit needs two rows
    unless `least` says otherwise.
    """
    least = (2 if reset else 1) if least is None else least
    X = unmasked(X)
    # validate_data takes longer than a small fit: an array that needs nothing done passes by it.
    if (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype in _FLOATS
        and X.flags.c_contiguous
        and X.flags.aligned
        and X.shape[0] >= least
        and X.shape[1] > 0
        and not hasattr(estimator, "feature_names_in_")
        and (reset or X.shape[1] == estimator.n_features_in_)
    ):
        if reset:
            estimator.n_features_in_ = X.shape[1]
            _warn_of_wild(estimator, X)
        return X
    try:
        rows = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse=accept_sparse,
            dtype=[np.float64, np.float32],
            order="C",
            ensure_all_finite=False,
            ensure_min_samples=least,
        )
    except ValueError as error:
        if "could not convert" in str(error) and (column := _text_column(X)) is not None:
            raise DataError(
                f"{error}: column {column!r} does not hold numbers; leave it out, or encode it first"
            ) from None
        raise
    if reset and isinstance(rows, np.ndarray):
        _warn_of_wild(estimator, rows)
    return rows


def matrix(estimator: Any, S: Any) -> Any:
    """The numbers of a matrix of columns by columns, which has no rows to look for odd cells in."""
    return validate_data(
        estimator, unmasked(S), reset=True, dtype=np.float64, order="C", ensure_all_finite=False
    )


def _warn_of_wild(estimator: Any, rows: NDArray[Any]) -> None:
    """Names the cells that would spoil means and variances, at the line that called `fit`."""
    for message in _covary.wild_cells(rows, names(estimator)):
        warnings.warn(message, DataWarning, stacklevel=4)


def unmasked(X: Any) -> Any:
    """A masked array as one with NaN in its masked cells; anything else as it is."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    kept = X.dtype if X.dtype in _FLOATS else np.float64
    return np.where(np.ma.getmaskarray(X), np.nan, X.data).astype(kept)


def array(X: Any, **rules: Any) -> NDArray[Any]:
    """The numbers of a table that belongs to no estimator's columns, or of scores; gaps as NaN.

    Every array that a user gives comes through here or through :func:`table`, so that none loses its mask.
    """
    found: NDArray[Any] = check_array(unmasked(X), dtype=[np.float64, np.float32], **rules)
    return found


def _text_column(X: Any) -> Any:
    """The first column of a frame that numbers cannot be made of."""
    for column in getattr(X, "column_names", getattr(X, "columns", ())):
        try:
            np.asarray(X[column], dtype=np.float64)
        except (TypeError, ValueError):
            return column
    return None


def compressed(rows: Any) -> tuple[tuple[int, int], Any, Any, Any]:
    """A sparse matrix as its shape, starts of rows, rising columns and values."""
    rows = rows.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    starts, columns = (np.ascontiguousarray(v, dtype=np.int64) for v in (rows.indptr, rows.indices))
    return rows.shape, starts, columns, np.asarray(rows.data, dtype=np.float64)


def names(estimator: Any) -> list[str] | None:
    """Names of the columns, if the table had any."""
    found = getattr(estimator, "feature_names_in_", None)
    return None if found is None else [str(name) for name in found]


def like(values: NDArray[Any], X: Any) -> NDArray[Any]:
    """`values` in the precision of `X`."""
    return values if X.dtype == values.dtype else values.astype(X.dtype)


def filled(answer: tuple[NDArray[Any], ...], rows: NDArray[Any], return_std: bool) -> Any:
    """A filled table in the precision of `rows`; if asked, with the deviations of its filled cells, 0 elsewhere."""
    values, row, column, _, sd = answer
    if not return_std:
        return like(values, rows)
    std = np.zeros(rows.shape, dtype=rows.dtype)
    std[row, column] = sd
    return like(values, rows), std


def seed_of(random_state: Any) -> int:
    """A seed for the library from scikit-learn's `random_state`; None is 0, so that runs repeat."""
    if random_state is None:
        return 0
    if isinstance(random_state, (int, np.integer)):
        if not 0 <= random_state < 2**64:
            raise OptionError(f"random_state must be from 0 to 2**64 - 1, got {random_state}")
        return int(random_state)
    from sklearn.utils import check_random_state

    return int(check_random_state(random_state).randint(2**31 - 1))


def texts(given: Any, n_rows: int, what: str) -> list[str] | None:
    """A text for each row; empty where there is none."""
    if given is None:
        return None
    values = np.asarray(given, dtype=object)
    if values.shape != (n_rows,):
        raise DataError(f"{what} must be one for each of the {n_rows} rows, got shape {values.shape}")
    return ["" if value is None or value != value else str(value) for value in values]


def groups(given: Any, n_rows: int, what: str = "color") -> tuple[str, list[str]] | None:
    """What makes groups, and the group of each row."""
    labels = texts(given, n_rows, what)
    return None if labels is None else (str(getattr(given, "name", None) or "group"), labels)
