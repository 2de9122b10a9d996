"""Fields in time: `xarray.DataArray` in and out.

One dimension is time, the others are places. Places without a single value (land, for the temperature of the sea) are left
out of the model and come back empty; dimensions, coordinates and attributes stay as they are. xarray is imported here and
nowhere else: ``pip install covary[xarray]``.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from ._dynamic import DynamicFactor
from .exceptions import DataError, DataWarning, NotFittedError

try:
    import pandas as pd
    import xarray as xr
except ImportError as error:
    raise ImportError("covary.xr needs xarray: pip install covary[xarray]") from error

__all__ = ["Gridded"]

_LATITUDES = ("lat", "latitude", "nav_lat")


class Gridded:
    """An estimator of tables, for fields in time.

    Parameters
    ----------
    estimator : DynamicFactor, PPCA, Imputer or another estimator
        What to fit; it is cloned. :class:`DynamicFactor` is told the times of the field, others take them as labels of rows.
    time : str or None, default=None
        The dimension of time; None takes the one whose coordinates are dates, or that is called ``time``.
    area_weights : bool or str, default=False
        Weigh each place by the area it stands for, the cosine of its latitude: its values are multiplied by the root of that
        for the fit, and answers divided by it. True finds the dimension of latitude, a string names it. Estimators that
        standardize columns undo weights and are refused; give them ``standardize=False``.

    Attributes
    ----------
    estimator_ : estimator
        The fitted one. Its columns are called after their places, such as ``lat=12.5,lon=80``.
    n_places_ : int
        Places with a value: columns of the model.

    Examples
    --------
    >>> import numpy as np, pandas as pd, xarray as xr
    >>> from covary import DynamicFactor
    >>> from covary.xr import Gridded
    >>> months = pd.date_range("2001-01-01", periods=60, freq="MS")
    >>> wave = np.cos(np.arange(60) / 6 * np.pi)[:, None, None] * np.ones((60, 3, 4))
    >>> noise = 0.1 * np.random.default_rng(0).normal(size=wave.shape)
    >>> field = xr.DataArray(wave + noise, dims=("time", "lat", "lon"), name="sst", attrs={"units": "degC"},
    ...                      coords={"time": months, "lat": [0, 10, 20], "lon": [0, 10, 20, 30]})
    >>> field[:, 0, 0] = np.nan                                       # land
    >>> field[20:24, 1] = np.nan                                      # clouds
    >>> model = Gridded(DynamicFactor(1, season=12)).fit(field)
    >>> filled = model.impute(field)
    >>> filled.dims, filled.attrs["units"], int(filled.isnull().sum()) == 60
    (('time', 'lat', 'lon'), 'degC', True)
    >>> model.forecast(field, steps=2).time.dt.strftime("%Y-%m").values.tolist()
    ['2006-01', '2006-02']
    """

    def __init__(self, estimator: Any, *, time: str | None = None, area_weights: bool | str = False) -> None:
        self.estimator = estimator
        self.time = time
        self.area_weights = area_weights

    def fit(self, field: xr.DataArray) -> Gridded:
        """Fit the estimator to the observed cells of a field.

        Parameters
        ----------
        field : xarray.DataArray
            With a dimension of time and others; NaN where a cell is missing.

        Returns
        -------
        self : Gridded
            Fitted.
        """
        _check(field)
        self._time = self._time_of(field)
        self._dims = tuple(str(dim) for dim in field.dims if dim != self._time)
        if not self._dims:
            raise DataError(f"the field has the dimension {self._time!r} alone; it needs places besides")
        self._coords = {dim: field[dim] for dim in self._dims if dim in field.coords}
        self._shape = tuple(field.sizes[dim] for dim in self._dims)
        rows = self._rows(field)
        self._kept = ~np.isnan(rows).all(axis=0)
        if not self._kept.any():
            raise DataError("no cell of the field has a value")
        self.n_places_ = int(self._kept.sum())
        self._weights = self._weights_of(field)
        estimator = clone(self.estimator)
        if isinstance(estimator, DynamicFactor):
            estimator.set_params(time=self._time if self._time in field.coords else None)
        self.estimator_ = estimator.fit(self._frame(field, rows))
        return self

    def impute(self, field: xr.DataArray, return_std: bool = False) -> Any:
        """The field with its missing values filled; places that never had one stay empty.

        Parameters
        ----------
        field : xarray.DataArray
            At the places of the fit.
        return_std : bool, default=False
            Also return how certain each filled cell is.

        Returns
        -------
        filled : xarray.DataArray
            Observed cells as they came.
        std : xarray.DataArray
            Standard deviation of each filled cell, 0 where observed, NaN at empty places; only if `return_std`.
        """
        rows = self._given(field)
        ask = getattr(self.estimator_, "impute", None) or self.estimator_.transform
        found = ask(self._frame(field, rows), return_std=return_std)
        values = np.asarray(found[0] if return_std else found, dtype=rows.dtype)
        all_cells = rows.copy()
        seen = ~np.isnan(rows[:, self._kept])
        # What was observed leaves to the last bit, weighted or not.
        all_cells[:, self._kept] = np.where(seen, rows[:, self._kept], values / self._weights)
        filled = self._field(all_cells, field, field.attrs)
        if not return_std:
            return filled
        std = np.full(rows.shape, np.nan, dtype=rows.dtype)
        std[:, self._kept] = np.asarray(found[1], dtype=rows.dtype) / self._weights
        return filled, self._field(std, field, field.attrs)

    def transform(self, field: xr.DataArray, **asked: Any) -> xr.DataArray:
        """Scores, or factors, of each time.

        Parameters
        ----------
        field : xarray.DataArray
            At the places of the fit.
        **asked
            Further parameters of the estimator's own ``transform``.

        Returns
        -------
        scores : xarray.DataArray of dims (time, component)
            Components are counted from 1.
        """
        rows = self._given(field)
        if hasattr(self.estimator_, "tipping_points"):
            raise DataError("an Imputer has no scores; impute fills the field")
        scores = np.asarray(self.estimator_.transform(self._frame(field, rows), **asked))
        coords = {self._time: field[self._time]} if self._time in field.coords else {}
        component = np.arange(1, scores.shape[1] + 1)
        return xr.DataArray(scores, dims=(self._time, "component"), coords={**coords, "component": component})

    def forecast(self, field: xr.DataArray, steps: int, interval: float | None = None) -> Any:
        """The field at the times to come, by a :class:`DynamicFactor`.

        Parameters
        ----------
        field : xarray.DataArray
            What they follow.
        steps : int
            How many.
        interval : float or None, default=None
            Probability that an interval covers what will come; None is without intervals.

        Returns
        -------
        mean : xarray.DataArray
            What is expected, with the times to come.
        lower, upper : xarray.DataArray
            Ends of the intervals; only if `interval` is given.
        """
        rows = self._given(field)
        if not isinstance(self.estimator_, DynamicFactor):
            raise DataError(f"{type(self.estimator_).__name__} knows no time; DynamicFactor makes forecasts")
        found = self.estimator_.forecast(self._frame(field, rows), steps, interval)
        parts = [found] if interval is None else list(found)
        out = tuple(self._ahead(part, field) for part in parts)
        return out[0] if interval is None else out

    def loadings(self) -> xr.DataArray:
        """What a component is at each place, in the units of the field.

        Returns
        -------
        loadings : xarray.DataArray of dims (component, ...)
            NaN at empty places.
        """
        self._check_fitted()
        own = np.asarray(self.estimator_.loadings_).T / self._weights
        return self._at_places(own, "component", np.arange(1, len(own) + 1))

    # -- from fields to tables and back ------------------------------------------------------------

    def _time_of(self, field: xr.DataArray) -> str:
        dims = [str(dim) for dim in field.dims]
        if self.time is not None:
            if self.time not in dims:
                raise DataError(f"the field has no dimension {self.time!r}; it has {', '.join(dims)}")
            return self.time
        dated = [dim for dim in dims if dim in field.coords and field[dim].dtype.kind == "M"]
        found = dated or [dim for dim in dims if dim.lower() == "time"]
        if len(found) != 1:
            raise DataError(f"which dimension is time? name it by `time`: one of {', '.join(dims)}")
        return found[0]

    def _weights_of(self, field: xr.DataArray) -> Any:
        ones = np.ones(self.n_places_)
        if self.area_weights is False:
            return ones
        named = [self.area_weights] if isinstance(self.area_weights, str) else [
            dim for dim in self._dims if dim.lower() in _LATITUDES or field[dim].attrs.get("units") == "degrees_north"
        ]  # fmt: skip
        if len(named) != 1 or named[0] not in self._coords:
            known = ", ".join(self._dims)
            raise DataError(f"which dimension is latitude? name it by `area_weights`: one of {known}, with coordinates")
        if getattr(self.estimator, "standardize", False):
            raise DataError("area weights have no effect on standardized columns; give the estimator standardize=False")
        degrees = np.asarray(self._coords[named[0]], dtype=np.float64)
        if not (np.abs(degrees) <= 90.0).all():
            raise DataError(f"latitudes are from -90 to 90 degrees, {named[0]!r} has {float(degrees[np.abs(degrees).argmax()])}")
        # A cell around a pole has an area, too.
        area = np.maximum(np.cos(np.deg2rad(degrees)), 1e-3)
        along = self._dims.index(named[0])
        shape = [1] * len(self._shape)
        shape[along] = self._shape[along]
        weights: Any = np.sqrt(np.broadcast_to(area.reshape(shape), self._shape)).ravel()[self._kept]
        return weights

    def _rows(self, field: xr.DataArray) -> Any:
        values = field.transpose(self._time, *self._dims).to_numpy()
        kept = values.dtype if values.dtype in (np.float32, np.float64) else np.float64
        return np.ascontiguousarray(values, dtype=kept).reshape(field.sizes[self._time], -1)

    def _given(self, field: xr.DataArray) -> Any:
        """The rows of a field at the places of the fit."""
        self._check_fitted()
        _check(field)
        if set(map(str, field.dims)) != {self._time, *self._dims}:
            raise DataError(f"the model has the dimensions {', '.join((self._time, *self._dims))}, the field {', '.join(map(str, field.dims))}")
        for dim in self._dims:
            own = self._coords.get(dim)
            same = field.sizes[dim] == self._shape[self._dims.index(dim)]
            if not same or (own is not None and dim in field.coords and not np.array_equal(own, field[dim])):
                raise DataError(f"the field has other places than the model along {dim!r}")
        rows = self._rows(field)
        unknown = int((~np.isnan(rows[:, ~self._kept])).sum())
        if unknown:
            warnings.warn(
                f"{unknown} cells are observed at places that had no value in the fit; they leave as they came and tell the model nothing",
                DataWarning,
                stacklevel=3,
            )
        return rows

    def _frame(self, field: xr.DataArray, rows: Any) -> Any:
        """The table of a field: a column for each place with a value."""
        kept = rows[:, self._kept]
        weighted = kept if self.area_weights is False else (kept * self._weights).astype(kept.dtype)
        frame = pd.DataFrame(weighted, columns=self._names())
        if isinstance(self.estimator, DynamicFactor) and self._time in field.coords:
            times = field[self._time].to_index()
            if type(times).__name__ == "CFTimeIndex":
                raise DataError(
                    f"the times of {self._time!r} are of the calendar {field[self._time].dt.calendar!r}; "
                    "field.convert_calendar('standard', use_cftime=False) makes dates of them"
                )
            frame.insert(0, self._time, np.asarray(times))
        return frame

    def _names(self) -> list[str]:
        def label(dim: str, k: int) -> str:
            return f"{dim}={self._coords[dim].values[k]}" if dim in self._coords else f"{dim}={k}"

        places = np.array(np.unravel_index(np.flatnonzero(self._kept), self._shape)).T
        return [",".join(label(dim, int(k)) for dim, k in zip(self._dims, place, strict=True)) for place in places]

    def _field(self, cells: Any, like: xr.DataArray, attrs: Any) -> xr.DataArray:
        stacked = like.transpose(self._time, *self._dims)
        return stacked.copy(data=cells.reshape(stacked.shape)).transpose(*like.dims).assign_attrs(attrs)

    def _ahead(self, part: Any, field: xr.DataArray) -> xr.DataArray:
        times = part.index.to_numpy() if hasattr(part, "index") else np.arange(field.sizes[self._time], field.sizes[self._time] + len(part))
        found = self._at_places(np.asarray(part) / self._weights, self._time, times)
        found.name = field.name
        return found.transpose(*field.dims).assign_attrs(field.attrs)

    def _at_places(self, own: Any, first: str, labels: Any) -> xr.DataArray:
        cells = np.full((len(own), self._kept.size), np.nan, dtype=own.dtype)
        cells[:, self._kept] = own
        coords = {first: labels, **self._coords}
        return xr.DataArray(cells.reshape(len(own), *self._shape), dims=(first, *self._dims), coords=coords)

    def _check_fitted(self) -> None:
        if not hasattr(self, "estimator_"):
            raise NotFittedError("This Gridded instance is not fitted yet. Call 'fit' before using it.")


def _check(field: Any) -> None:
    if isinstance(field, xr.Dataset):
        raise DataError(f"a Dataset holds several fields; give one of them: {', '.join(map(str, field.data_vars))}")
    if not isinstance(field, xr.DataArray):
        raise DataError(f"a field is an xarray.DataArray, got {type(field).__name__}")
