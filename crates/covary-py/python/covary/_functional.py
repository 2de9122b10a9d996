"""Functional PCA: curves at times of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from . import _covary, _options, _table
from ._fitted import Fitted, Scores
from ._threads import n_threads
from .exceptions import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from typing_extensions import Self

    from ._fitted import Array

#: What the library is told of points: the columns of curves and times, names of curves, and curve and time of each row.
_Points = tuple[str, str, "list[str]", "list[int]", Any]

#: Times of the grid that functions are published on.
_GRID = 101


class FunctionalPCA(Scores, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Fitted):
    """Principal components of curves that are observed at a few times each, which may be others for every curve.

    ``y(t) = mean(t) + sum(score[k] * eigenfunction[k](t)) + noise``. Mean and eigenfunctions are smooth splines; a curve is
    a row of a linear-Gaussian model with a design of its own, and nothing is interpolated.

    A long frame has a row for each point; `curve`, `time` and `value` name its columns. A wide table has a row for each
    curve and a column for each time, NaN where a curve was not observed; `times` says when, else the names of the columns
    if they are numbers, else 0, 1, ...

    Parameters
    ----------
    n_components : int, "auto" or None, default=None
        How many components; "auto" or None is the number that predicts hidden points.
    curve, time : str or None, default=None
        The columns of a long frame that tell curves apart, and that say when points were observed, in numbers.
    value : str or None, default=None
        The column of values of a long frame; None is the only other one.
    times : array-like of shape (n_features,) or None, default=None
        When the columns of a wide table were observed.
    n_basis : int or None, default=None
        How many cubic splines; None is twice the points of a curve on average, from 10 to 30.
    interval : tuple of two floats or None, default=None
        First and last time that curves can be asked about; None is those of the table.
    smoothing : float, tuple of two floats or None, default=None
        Penalty of roughness, of the mean and of the components; None estimates both by their marginal likelihood (REML).
    calibrate : bool, default=False
        Calibrate the standard deviations of imputed values: the model is fitted again without some points, hidden next to the
        times at which other curves lack theirs, and they become as large as its errors there require. A table without
        missing values has nothing to calibrate for.
    max_iter : int or None, default=None
        Most steps; None is 1000.
    tol : float or None, default=None
        Stop when the objective is expected to rise by less than this many nats; None is 1e-4.
    random_state : int, RandomState instance or None, default=None
        Seed of which points are hidden. None is 0: runs repeat themselves.
    verbose : bool or int, default=False
        Tell on standard error how far a long fit is.

    Attributes
    ----------
    grid_ : ndarray of shape (101,)
        Times of the functions below.
    mean_, mean_std_ : ndarray of shape (101,)
        The mean curve, and its standard deviations.
    eigenfunctions_, eigenfunctions_std_ : ndarray of shape (n_components, 101)
        The eigenfunctions, whose squares integrate to 1, and their standard deviations.
    explained_variance_ : ndarray of shape (n_components,)
        Variances of the scores: the eigenvalues.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Their shares of the variance of curves and noise, integrated over time.
    noise_variance_ : float
        Of a point.
    smoothing_ : tuple of two floats
        The penalty of the mean and of the components.
    n_components_, trace_, n_iter_, converged_, n_features_in_, feature_names_in_
        As of :class:`PPCA`.

    See Also
    --------
    PPCA : The same if columns are not times, or without smoothness.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import FunctionalPCA
    >>> rng = np.random.default_rng(0)
    >>> times = np.linspace(0, 1, 20)
    >>> scores = rng.normal(size=(100, 2)) * [1.0, 0.5]
    >>> X = scores @ np.sin(np.outer([1, 2], np.pi * times)) + 0.1 * rng.normal(size=(100, 20))
    >>> X[rng.random(X.shape) < 0.7] = np.nan
    >>> model = FunctionalPCA(2, times=times).fit(X)
    >>> curves, std = model.predict(X, times=[0.25, 0.5], return_std=True)
    >>> curves.shape
    (100, 2)
    >>> model.transform(X).shape
    (100, 2)
    """

    _family = "fpca"

    def __init__(
        self,
        n_components: int | str | None = None,
        *,
        curve: str | None = None,
        time: str | None = None,
        value: str | None = None,
        times: ArrayLike | None = None,
        n_basis: int | None = None,
        interval: tuple[float, float] | None = None,
        smoothing: float | tuple[float, float] | None = None,
        calibrate: bool = False,
        max_iter: int | None = None,
        tol: float | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.curve = curve
        self.time = time
        self.value = value
        self.times = times
        self.n_basis = n_basis
        self.interval = interval
        self.smoothing = smoothing
        self.calibrate = calibrate
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model to the observed points of curves.

        Parameters
        ----------
        X : frame with a row for each point, or array-like of shape (n_curves, n_times)
            The curves; NaN where a value is missing.
        y : None
            Ignored.

        Returns
        -------
        self : FunctionalPCA
            The fitted estimator.
        """
        values, points, names = self._curves(X)
        rows = _table.table(self, values, reset=True)
        texts = [str(self._value_name)] if points is not None else self._column_times(rows)
        if points is None and rows.shape[1] < 2:
            raise DataError("curves are learned from at least 2 times; X has n_features=1")
        asked: _covary.Request = {
            "n_components": _options.size(self, "n_components", 1),
            "options": self._method_options(),
            "max_iterations": _options.whole(self, "max_iter", 1),
            "tolerance": _options.number(self, "tol"),
            "seed": _table.seed_of(self.random_state),
            "at": points,
        }
        if _options.switch(self, "calibrate"):
            asked["filling"] = (False, True, False)
        return self._take(self._learned(rows, self._family, asked, texts), rows)

    def transform(self, X: Any, return_std: bool = False) -> Any:
        """Scores of curves: a curve is the mean and its scores times the eigenfunctions.

        Parameters
        ----------
        X : frame with a row for each point, or array-like of shape (n_curves, n_times)
            The curves.
        return_std : bool, default=False
            Also return how certain the scores are.

        Returns
        -------
        scores : ndarray of shape (n_curves, n_components)
            Means given the points. Of a long pandas frame a frame, with the curves as its index.
        std : ndarray of shape (n_curves, n_components)
            Their standard deviations; only if `return_std`.
        """
        rows, points, names = self._asked(X)
        found = tuple(_table.like(part, rows) for part in self._model.scores_of_curves(rows, points, n_threads()))
        found = tuple(self._framed(part, names, X, self.get_feature_names_out()) for part in found)
        return found if return_std else found[0]

    def predict(self, X: Any, times: ArrayLike | None = None, return_std: bool = False) -> Any:
        """Curves at any times, given their points.

        Parameters
        ----------
        X : frame with a row for each point, or array-like of shape (n_curves, n_times)
            The curves.
        times : array-like of shape (n,) or None, default=None
            The times; None is `grid_`.
        return_std : bool, default=False
            Also return how certain the curves are.

        Returns
        -------
        curves : ndarray of shape (n_curves, n)
            Means of the curves, without noise. Of a long pandas frame a frame, with the curves as its index.
        std : ndarray of shape (n_curves, n)
            Standard deviations of the curves themselves, which count that parameters were estimated; only if `return_std`.
            With the noise of a point the variance is ``std**2 + noise_variance_``.
        """
        rows, points, names = self._asked(X)
        at = self._times(times)
        found = tuple(_table.like(part, rows) for part in self._model.predict(rows, points, at, n_threads()))
        found = tuple(self._framed(part, names, X, at) for part in found)
        return found if return_std else found[0]

    def impute(self, X: Any, return_std: bool = False) -> Any:
        """The missing values of curves, given the others of each.

        Parameters
        ----------
        X : frame with a row for each point, or array-like of shape (n_curves, n_times)
            The curves; NaN where a value is missing.
        return_std : bool, default=False
            Also return how certain each filled value is.

        Returns
        -------
        filled : ndarray of shape (n_curves, n_times), or (n_points,) of a long frame
            The values without gaps; observed ones as they came, to the last bit.
        std : ndarray of the same shape
            Standard deviation of each filled value, noise included, 0 where observed; only if `return_std`. As hidden points
            say it is if the model was fitted with `calibrate`.
        """
        rows, points, _ = self._asked(X)
        found = _table.filled(self._model.impute(rows, False, n_threads(), points), rows, return_std)
        if points is None:
            return found
        return tuple(part[:, 0] for part in found) if return_std else found[:, 0]

    def mean(self, times: ArrayLike, return_std: bool = False) -> Any:
        """The mean curve at any times.

        Parameters
        ----------
        times : array-like of shape (n,)
            The times.
        return_std : bool, default=False
            Also return standard deviations.

        Returns
        -------
        mean : ndarray of shape (n,)
            The mean curve.
        std : ndarray of shape (n,)
            Its standard deviations; only if `return_std`.
        """
        check_is_fitted(self)
        values, sds = self._model.mean(self._times(times))
        return (values[0], sds[0]) if return_std else values[0]

    def eigenfunctions(self, times: ArrayLike, return_std: bool = False) -> Any:
        """The eigenfunctions at any times.

        Parameters
        ----------
        times : array-like of shape (n,)
            The times.
        return_std : bool, default=False
            Also return standard deviations.

        Returns
        -------
        functions : ndarray of shape (n_components, n)
            The eigenfunctions.
        std : ndarray of shape (n_components, n)
            Their standard deviations; only if `return_std`.
        """
        check_is_fitted(self)
        found = self._model.eigenfunctions(self._times(times))
        return found if return_std else found[0]

    def covariance(self, times: ArrayLike) -> Array:
        """The covariance of curves, without noise, at pairs of times.

        Parameters
        ----------
        times : array-like of shape (n,)
            The times.

        Returns
        -------
        covariance : ndarray of shape (n, n)
            The covariance surface.
        """
        check_is_fitted(self)
        found: Array = self._model.covariance(self._times(times))
        return found

    def score_samples(self, X: Any) -> Array:
        """Log-density of each curve in nats: small where a curve is unlike the others.

        Parameters
        ----------
        X : frame with a row for each point, or array-like of shape (n_curves, n_times)
            The curves.

        Returns
        -------
        log_density : ndarray of shape (n_curves,)
            0 for a curve without points.
        """
        rows, points, _ = self._asked(X)
        found: Array = self._model.log_density(rows, n_threads(), points)
        return found

    def sample(self, n_samples: int = 1, times: ArrayLike | None = None, random_state: Any = None) -> Array:
        """New curves, with noise.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        times : array-like of shape (n,) or None, default=None
            Their times; None is `grid_`.
        random_state : int, RandomState instance or None, default=None
            Seed; None is 0.

        Returns
        -------
        curves : ndarray of shape (n_samples, n)
            One in each row.
        """
        check_is_fitted(self)
        if not isinstance(n_samples, (int, np.integer)) or n_samples < 1:
            raise ValueError(f"n_samples must be a whole number from 1, got {n_samples!r}")
        found: Array = self._model.draw_curves(int(n_samples), self._times(times), _table.seed_of(random_state))
        return found

    def _publish(self, model: Any, rows: Array | None = None) -> None:
        super()._publish(model, rows)
        self.n_components_ = model.n_components
        self.grid_ = model.grid(_GRID)
        at = self.grid_.tolist()
        values, sds = model.mean(at)
        self.mean_, self.mean_std_ = values[0], sds[0]
        self.eigenfunctions_, self.eigenfunctions_std_ = model.eigenfunctions(at)
        self.explained_variance_ = model.eigenvalues
        self.explained_variance_ratio_ = model.explained_variance_ratio
        self.noise_variance_ = model.noise_variance
        self.smoothing_ = model.smoothing

    @property
    def _n_features_out(self) -> int:
        found: int = self.n_components_
        return found

    @classmethod
    def _of_model(cls, model: Any) -> Self:
        estimator = super()._of_model(model)
        # Columns are times, by their places or by the frame they stand in.
        estimator.__dict__.pop("feature_names_in_", None)
        return estimator

    @classmethod
    def _options_of(cls, model: Any) -> dict[str, Any]:
        options: dict[str, Any] = {"n_components": model.n_components}
        if model.points is not None:
            options["curve"], options["time"] = model.points
            options["value"] = model.names[0]
        return options

    @property
    def _value_name(self) -> str:
        found: str = self.__dict__["_value"]
        return found

    def _method_options(self) -> dict[str, Any]:
        asked: dict[str, Any] = {}
        if self.n_basis is not None:
            asked["basis_size"] = _options.whole(self, "n_basis", 4)
        if self.interval is not None:
            asked["interval"] = ":".join(self._pair("interval"))
        if self.smoothing is not None:
            asked["smoothing"] = ":".join(self._pair("smoothing"))
        return asked

    def _pair(self, name: str) -> list[str]:
        given = getattr(self, name)
        pair = given if isinstance(given, (tuple, list)) else (given, given)
        numbers = (int, float, np.integer, np.floating)
        if len(pair) != 2 or not all(isinstance(v, numbers) and not isinstance(v, bool) and np.isfinite(v) for v in pair):
            raise _options.refuse(self, name, given, "a finite number or a tuple of two")
        return [repr(float(v)) for v in pair]

    def _column_times(self, rows: Array) -> list[str] | None:
        """What the columns of a wide table are called, so that the library reads their times."""
        if self.times is None:
            return None
        given = np.asarray(self.times, dtype=np.float64)
        if given.ndim != 1 or len(given) != rows.shape[1]:
            raise DataError(f"times has the shape {given.shape}; X has n_features={rows.shape[1]}, which need a time each")
        if not np.isfinite(given).all() or len(np.unique(given)) < len(given):
            raise DataError("times must be finite, and no two of them the same")
        return [repr(float(t)) for t in given]

    def _times(self, times: Any) -> list[float]:
        if times is None:
            return list(self.grid_.tolist())
        found = np.atleast_1d(np.asarray(times, dtype=np.float64))
        if found.ndim != 1 or not np.isfinite(found).all():
            raise DataError(f"times must be a list of finite numbers, got {times!r}")
        return list(found.tolist())

    def _placed_rows(self, X: Any) -> tuple[Array, Any]:
        rows, points, _ = self._asked(X)
        return rows, points

    def _asked(self, X: Any) -> tuple[Array, _Points | None, Any]:
        check_is_fitted(self)
        values, points, names = self._curves(X)
        return _table.table(self, values, reset=False), points, names

    def _curves(self, X: Any) -> tuple[Any, _Points | None, Any]:
        """The values of a long frame, its points and the names of its curves; or a wide table."""
        if self.curve is None and self.time is None:
            if self.value is not None:
                raise DataError(f"value={self.value!r} goes with curve and time, the other columns of a long frame")
            return X, None, None
        if self.curve is None or self.time is None:
            raise DataError("a long frame has both: name its columns by `curve` and `time`")
        columns = list(getattr(X, "columns", ()))
        for name in (self.curve, self.time, *(() if self.value is None else (self.value,))):
            if name not in columns:
                raise DataError(f"X has no column {name!r}; a long frame has columns of curves, times and values")
        others = [name for name in columns if name not in (self.curve, self.time)]
        if self.value is None and len(others) != 1:
            raise DataError(f"X has columns {others} beside curves and times; say by `value` which one has the values")
        value = others[0] if self.value is None else self.value
        self.__dict__["_value"] = value
        curves = np.asarray(X[self.curve]).astype(str)
        first, numbers = np.unique(curves, return_index=True, return_inverse=True)[1:]
        # In the order in which they come.
        order = np.argsort(first, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        names = curves[first[order]].tolist()
        try:
            times = np.ascontiguousarray(np.asarray(X[self.time], dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise DataError(f"column {self.time!r} has no numbers: times of curves are numbers ({error})") from None
        if np.isnan(times).any():
            row = int(np.flatnonzero(np.isnan(times))[0]) + 1
            raise DataError(f"row {row} has no time in {self.time!r}; leave it out, or give it one")
        values = np.asarray(X[value], dtype=np.float64).reshape(-1, 1)
        return values, (str(self.curve), str(self.time), names, rank[numbers.ravel()].tolist(), times), names

    def _framed(self, values: Array, names: Any, X: Any, columns: Any) -> Any:
        """Numbers of each curve of a long pandas frame as a frame."""
        if names is None or not type(X).__module__.startswith("pandas"):
            return values
        import pandas as pd

        return pd.DataFrame(values, index=pd.Index(names, name=self.curve), columns=list(columns))


__all__ = ["FunctionalPCA"]
