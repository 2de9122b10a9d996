"""Imputation, as by scikit-learn's imputers, with uncertainty."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.impute import MissingIndicator
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from . import _covary, _options, _table
from ._families import class_of
from ._fitted import Shown
from ._linear import LinearGaussian
from ._threads import n_threads
from .exceptions import CovaryWarning, DataError, DataWarning, OptionError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from typing_extensions import Self

    Array = NDArray[Any]

#: The families that can be asked for by name.
_NAMED = ("gaussian", "ppca", "fa", "bpca")


@dataclass(eq=False, repr=False)
class Imputer(Shown, TransformerMixin, BaseEstimator):
    """Impute missing values by their conditional means under a Gaussian model, with calibrated intervals.

    Parameters
    ----------
    estimator : estimator, {"gaussian", "ppca", "fa", "bpca"} or None, default=None
        The model: an instance such as ``PPCA(n_components=3)``, or the name of one with its defaults.
        :class:`PCA` and :class:`IncrementalPCA` need ``calibrate=False`` and ``bounds=None``.
        None is a :class:`Gaussian` with a full covariance; cross-validation on hidden cells chooses how strongly
        it is regularized and whether a nonlinear correction is added. With very many columns it is a
        :class:`PPCA`.
    missing_values : float, default=nan
        Code for a missing value. NaN always is one.
    add_indicator : bool, default=False
        Append a column for each column that had missing values when fitting: True where a value was imputed.
    keep_empty_features : bool, default=False
        Columns without any observed value are dropped with a warning; if True they are filled with 0
        instead.
    calibrate : bool, default=True
        Calibrate the intervals: the model is fitted again without some observed cells, hidden in the way the
        missing values lie, and intervals become as wide as its errors there require.
    bounds : {"auto"} or None, default="auto"
        "auto" keeps imputed values, intervals and draws within bounds inferred from the observed values of a
        column: not negative, at most 1 or 100, whole numbers, or the codes of a short scale.
    shift : dict or None, default=None
        Sensitivity analysis for values not missing at random: by column (its name, or its position from 0), how
        many of its standard deviations are added to its imputed values, intervals and draws. The data cannot
        tell the right shift; see :meth:`tipping_points`.
    wild : {"report", "down-weight"}, default="report"
        What to do with cellwise outliers, values far from their prediction by the rest of the row, such as
        1000000 among values of 3, which a :class:`~covary.exceptions.DataWarning` names. "down-weight" treats
        them as missing while fitting and imputing; they are found anew in each table that is transformed. They
        are never changed.
    random_state : int, RandomState instance or None, default=None
        Seed of the hidden cells, of an `estimator` given by name, and of :meth:`sample`; None is 0.
    verbose : bool or int, default=False
        Report the progress of a long fit on standard error.

    Attributes
    ----------
    estimator_ : LinearGaussian
        The fitted model, over the columns that were not empty.
    indicator_ : MissingIndicator or None
        Of `add_indicator`.
    n_features_in_, feature_names_in_
        As of :class:`PPCA`.

    See Also
    --------
    sklearn.impute.IterativeImputer : Column by column, without the joint uncertainty of all missing values.

    Notes
    -----
    A constant column is imputed by its constant (standard deviation 0), a column observed once by that value
    (standard deviation NaN, with a warning).

    Examples
    --------
    >>> import numpy as np
    >>> from covary import Imputer
    >>> X = np.array([[1, 2.1], [2, 3.9], [3, np.nan], [4, 8.1], [5, 10.0], [6, 11.8]])
    >>> imputer = Imputer().fit(X)
    >>> filled, std = imputer.transform(X, return_std=True)
    >>> bool(abs(filled[2, 1] - 6.0) < 2 * std[2, 1])
    True
    """

    estimator: Any = None
    _: KW_ONLY
    missing_values: float = np.nan
    add_indicator: bool = False
    keep_empty_features: bool = False
    calibrate: bool = True
    bounds: str | None = "auto"
    shift: Any = None
    wild: str = "report"
    random_state: Any = None
    verbose: bool | int = False

    def _learned(self, rows: Array, names: Array | None) -> LinearGaussian:
        """The fitted model of a table."""
        if self.bounds not in (None, "auto"):
            raise OptionError(f"bounds must be 'auto' or None, got {self.bounds!r}")
        asked = self.estimator
        filling = (asked is None, _options.switch(self, "calibrate"), self.bounds is not None)
        if isinstance(asked, LinearGaussian):
            model: LinearGaussian = clone(asked)
            wanted = [said for said, on in zip(("calibrate=True", f"bounds={self.bounds!r}"), filling[1:]) if on]
            if wanted and not model._fills:
                name = type(model).__name__
                warnings.warn(
                    f"Imputer({name}()) does not do {' or '.join(wanted)}: principal axes are not fitted again without some "
                    "of the cells; give calibrate=False and bounds=None, or Imputer('ppca'), which does both",
                    CovaryWarning,
                    stacklevel=3,
                )
            model.n_features_in_ = rows.shape[1]
            if names is not None:
                model.feature_names_in_ = names
            model._filling = filling
            return model._fit_rows(rows)
        if asked is not None and not (isinstance(asked, str) and asked in _NAMED):
            raise OptionError(
                "The 'estimator' parameter of Imputer must be an estimator of covary, None, 'gaussian', 'ppca', "
                f"'fa' or 'bpca'. Got {asked!r} instead."
            )
        # What a name leaves open is left to the library, as the command leaves it.
        request = {"filling": filling, "seed": _table.seed_of(self.random_state)}
        said = None if names is None else [str(name) for name in names]
        progress = _options.progress(self)
        found = _covary.fit(rows, said, asked or "gaussian", request, threads=n_threads(), progress=progress)  # type: ignore[arg-type]
        chosen: LinearGaussian = class_of(found)._of_model(found)
        return chosen._take(found, rows)

    def _gaps_as_nan(self, X: ArrayLike, *, reset: bool) -> Array:
        rows = _table.table(self, X, reset=reset)
        if isinstance(self.missing_values, float) and np.isnan(self.missing_values):
            return rows
        if isinstance(self.missing_values, bool) or not isinstance(self.missing_values, Real):
            raise OptionError(f"missing_values must be a number or NaN, got {self.missing_values!r}")
        return np.where(rows == self.missing_values, np.asarray(np.nan, rows.dtype), rows)

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Fit the model to the observed cells of a table.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table; NaN where a cell is missing.
        y : None
            Ignored.

        Returns
        -------
        self : Imputer
            The fitted imputer.
        """
        self._fit(X)
        return self

    def _fit(self, X: ArrayLike) -> Array:
        _options.switch(self, "add_indicator")
        _options.switch(self, "keep_empty_features")
        if self.wild not in ("report", "down-weight"):
            raise OptionError(f"wild must be 'report' or 'down-weight', got {self.wild!r}")
        rows = self._gaps_as_nan(X, reset=True)
        gaps = np.isnan(rows)
        observed = np.asarray(~gaps.all(axis=0))
        self._observed = None if observed.all() else observed
        if self._observed is not None:
            self._warn_of_empty(observed)
        names = self.feature_names_in_[observed] if hasattr(self, "feature_names_in_") else None
        judged = self._without_wild(self._modeled(rows), names, warn=True)
        self.estimator_ = self._learned(judged, names)
        if self.shift:
            if isinstance(getattr(type(self.estimator_), "_model", None), property):
                name = type(self.estimator_).__name__
                raise OptionError(f"shift does not go with {name}; Imputer('ppca') takes it")
            self.estimator_._model = self.estimator_._model.shifted(self._shifts())
        single = [j for j, _ in self.estimator_._model.singles]
        if single:
            names = self.estimator_._model.names
            said = ", ".join(f"`{names[j]}`" for j in single)
            warnings.warn(
                f"observed once: {said}; gaps take that value, with a standard deviation of NaN",
                CovaryWarning,
                stacklevel=3,
            )
        uncalibrated = self.calibrate and gaps.any() and getattr(self.estimator_._model, "uncalibrated", None)
        if uncalibrated:
            warnings.warn(uncalibrated, CovaryWarning, stacklevel=3)
        if self.add_indicator:
            self.indicator_ = MissingIndicator(error_on_new=False).fit(rows)
        else:
            self.indicator_ = None
        return rows

    def _warn_of_empty(self, observed: Array) -> None:
        if not observed.any():
            raise DataError("no cell is observed: nothing can be learned; check how the table was read")
        names = getattr(self, "feature_names_in_", None)
        empty = np.flatnonzero(~observed)
        said = ", ".join(f"`{names[j]}`" if names is not None else str(j) for j in empty)
        what = "filled with 0" if self.keep_empty_features else "dropped"
        warnings.warn(
            f"without any observed value, so {what}: column(s) {said}", CovaryWarning, stacklevel=4
        )

    def _without_wild(self, rows: Array, names: Array | None, *, warn: bool = False) -> Array:
        """The table, without cells far from what the rest of their rows say if these count as missing."""
        hide = self.wild == "down-weight"
        if not (hide or warn):
            return rows
        said = None if names is None else [str(name) for name in names]
        cells, words = _covary.far_cells(rows, said, not hide, n_threads())
        if warn and words:
            then = (
                "they count as missing for the fit and for the rest of their rows"
                if hide
                else 'check them; wild="down-weight" lets such cells count as missing for the fit'
            )
            warnings.warn(
                f"far from what the rest of the row says: {words}; {then}", DataWarning, stacklevel=4
            )
        if not (hide and cells):
            return rows
        rows = rows.copy()
        for row, column, *_ in cells:
            rows[row, column] = np.nan
        return rows

    def _asked(self, rows: Array) -> Array:
        """The columns of the model, as rows are filled from them."""
        modeled = self._modeled(rows)
        return self._without_wild(modeled, None) if len(modeled) > 1 else modeled

    def _shifts(self) -> list[tuple[str, float]]:
        """Names of columns and their shifts."""
        if not isinstance(self.shift, dict):
            raise OptionError(f"shift must be a dict of columns and numbers, or None; got {self.shift!r}")
        names = self.estimator_._model.names
        places = range(len(names)) if self._observed is None else np.flatnonzero(self._observed).tolist()
        found = []
        for column, by in self.shift.items():
            if isinstance(by, bool) or not isinstance(by, Real):
                raise OptionError(f"the shift of {column!r} must be a number, got {by!r}")
            if isinstance(column, (int, np.integer)) and column in places:
                column = names[places.index(int(column))]
            found.append((str(column), float(by)))
        return found

    def _modeled(self, rows: Array) -> Array:
        """The columns of the model."""
        return rows if self._observed is None else np.ascontiguousarray(rows[:, self._observed])

    def _whole(self, filled: Array) -> Array:
        """Filled columns with the empty ones among them, if those are kept."""
        if self._observed is None or not self.keep_empty_features:
            return filled
        whole = np.zeros((*filled.shape[:-1], len(self._observed)), dtype=filled.dtype)
        whole[..., self._observed] = filled
        return whole

    def _answer(self, rows: Array, *, own: bool, return_std: bool) -> Any:
        modeled = self._modeled(rows)
        found = self.estimator_._filled(self._asked(rows), own=own, return_std=return_std)
        filled, std = found if return_std else (found, found)
        if self.wild == "down-weight":
            observed = ~np.isnan(modeled)
            filled[observed] = modeled[observed]
            if return_std:
                std[observed] = 0
        filled = self._whole(filled)
        if self.indicator_ is not None:
            filled = np.hstack([filled, self.indicator_.transform(rows)])
        return (filled, self._whole(std)) if return_std else filled

    def transform(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Fill the gaps of a table; observed cells stay as they are, to the last bit.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table; NaN where a cell is missing.
        return_std : bool, default=False
            Also return how certain each filled cell is.

        Returns
        -------
        filled : ndarray of shape (n_samples, n_features_out)
            The table without gaps, then the columns of `add_indicator`.
        std : ndarray of shape (n_samples, n_features_kept)
            Standard deviation of each filled cell, 0 where observed, without the columns of
            `add_indicator`; only if `return_std`.
        """
        check_is_fitted(self)
        return self._answer(self._gaps_as_nan(X, reset=False), own=False, return_std=return_std)

    def fit_transform(self, X: ArrayLike, y: Any = None, return_std: bool = False) -> Any:
        """Fit to a table and fill its gaps.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table; NaN where a cell is missing.
        y : None
            Ignored.
        return_std : bool, default=False
            Also return how certain each filled cell is.

        Returns
        -------
        filled : ndarray of shape (n_samples, n_features_out)
            As of :meth:`transform`. After sampling ("gibbs") the draws, which have seen these rows,
            count equally.
        std : ndarray of shape (n_samples, n_features_out)
            Only if `return_std`.
        """
        return self._answer(self._fit(X), own=True, return_std=return_std)

    def interval(self, X: ArrayLike, level: float = 0.95) -> tuple[Array, Array]:
        """Prediction intervals of the missing values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table; NaN where a cell is missing.
        level : float, default=0.95
            Probability that an interval covers the true value, between 0 and 1.

        Returns
        -------
        lower, upper : ndarray of shape (n_samples, n_features_kept)
            The ends; both are the value itself where it is observed. In a column of whole numbers,
            the least and the largest whole number between them. Without the columns of
            `add_indicator`.
        """
        lower, upper = self._of_gaps(X, "intervals", float(level))
        return lower, upper

    def quantile(self, X: ArrayLike, q: float = 0.5) -> Array:
        """Quantiles of the predictive distribution of each missing value.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table; NaN where a cell is missing.
        q : float, default=0.5
            Between 0 and 1.

        Returns
        -------
        values : ndarray of shape (n_samples, n_features_kept)
            The quantiles; the value itself where it is observed. In a column of whole numbers the
            nearest whole number, where :meth:`interval` has the whole numbers between its ends.
        """
        (values,) = self._of_gaps(X, "quantiles", float(q))
        return values

    def _of_gaps(self, X: ArrayLike, question: str, number: float) -> list[Array]:
        """Tables with what the model says of each gap, and observed cells as they are."""
        check_is_fitted(self)
        rows = self._gaps_as_nan(X, reset=False)
        modeled = self._modeled(rows)
        answer = getattr(self.estimator_._model, question)(self._asked(rows), number, False, n_threads())
        tables = answer if isinstance(answer, tuple) else (answer,)
        kept = (np.where(np.isnan(modeled), table, modeled) for table in tables)
        return [self._whole(_table.like(table, rows)) for table in kept]

    def sample(self, X: ArrayLike, n_draws: int = 1, random_state: Any = None) -> Array:
        """Multiple imputation: completed tables with joint random draws of their missing values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table; NaN where a cell is missing.
        n_draws : int, default=1
            How many copies.
        random_state : int, RandomState instance or None, default=None
            Seed; None takes the imputer's.

        Returns
        -------
        tables : ndarray of shape (n_draws, n_samples, n_features_kept)
            The completed tables, without the columns of `add_indicator`. Analyze each, and combine the estimates
            by :func:`covary.pool`.
        """
        check_is_fitted(self)
        rows = self._gaps_as_nan(X, reset=False)
        modeled = self._modeled(rows)
        seed = _table.seed_of(self.random_state if random_state is None else random_state)
        drawn = self.estimator_._drawn(self._asked(rows), n_draws, seed, own=False)
        return self._whole(np.where(np.isnan(modeled), drawn, modeled))

    def tipping_points(self, X: ArrayLike, shifts: Any = (-1.0, -0.5, 0.0, 0.5, 1.0)) -> dict[Any, Array]:
        """Tipping-point analysis: the mean of each column with missing values, if these are shifted.

        Cross-validation cannot detect values that are not missing at random. A conclusion that holds for every
        plausible shift does not depend on that assumption; the shift at which it no longer holds is its tipping
        point. For other estimates, fit with `shift` and pool :meth:`sample`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table; NaN where a cell is missing.
        shifts : sequence of float, default=(-1, -0.5, 0, 0.5, 1)
            In standard deviations of the column, on top of `shift`.

        Returns
        -------
        means : dict of ndarray of shape (n_shifts, 5)
            By column (its name, or its place): shift, mean pooled over 20 draws by Rubin's rules, its standard
            error, and the ends of its 95 % interval.
        """
        check_is_fitted(self)
        rows = self._gaps_as_nan(X, reset=False)
        asked = [float(shift) for shift in shifts]
        seed = _table.seed_of(self.random_state)
        found = self.estimator_._model.tipping_points(self._asked(rows), asked, seed, False, n_threads())
        places = range(rows.shape[1]) if self._observed is None else np.flatnonzero(self._observed).tolist()
        names = getattr(self, "feature_names_in_", range(rows.shape[1]))
        return {names[places[column]]: np.array(points) for column, _, points in found}

    def check(self, X: ArrayLike, levels: Any = (0.5, 0.8, 0.95)) -> dict[str, Any]:
        """Cross-validation: hide a tenth of the observed cells, fit again without them, and compare.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table the imputer was fitted to.
        levels : sequence of float, default=(0.5, 0.8, 0.95)
            Levels of the intervals to try.

        Returns
        -------
        found : dict
            ``n_hidden`` cells; ``rmse`` of their predictions and ``baseline_rmse`` of column means,
            both in standard deviations of the column; ``skill``, 1 − (rmse / baseline_rmse)²; for
            each of ``levels`` the proportion of cells that their interval covers, ``coverage``.
        """
        check_is_fitted(self)
        rows = self._asked(self._gaps_as_nan(X, reset=False))
        seed = _table.seed_of(self.random_state)
        return self.estimator_._model.self_check(
            rows, seed, [float(level) for level in levels], n_threads(), _options.progress(self)
        )

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the columns that come out.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns that went in; None takes those of the fit, or x0, x1, …

        Returns
        -------
        names : ndarray of str
            Columns that were kept, then those of `add_indicator`.
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        kept = names if self._observed is None or self.keep_empty_features else names[self._observed]
        if self.indicator_ is None:
            return kept
        return np.concatenate([kept, self.indicator_.get_feature_names_out(names)])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def _shown(self) -> Any:
        return getattr(self, "estimator_", self).__dict__.get("_model")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


__all__ = ["Imputer"]
