"""Numbers of columns at the places where they were measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..exceptions import DataError
from . import _model, _style

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike

    from ._model import Floats


@dataclass(frozen=True, eq=False)
class MapData:
    """Numbers behind :func:`map`.

    Attributes
    ----------
    names : tuple of str
        The columns.
    latitude, longitude : ndarray of shape (n_features,)
        Degrees north and east.
    value : ndarray of shape (n_features,)
        What is shown.
    title : str
        What that is.
    """

    names: tuple[str, ...]
    latitude: Floats
    longitude: Floats
    value: Floats
    title: str


def map_data(
    estimator: Any,
    coordinates: Mapping[str, tuple[float, float]] | Sequence[tuple[float, float]] | ArrayLike,
    *,
    component: int = 1,
    values: ArrayLike | None = None,
) -> MapData:
    """A number of each column at its place.

    Parameters
    ----------
    estimator : estimator
        Fitted, with loadings.
    coordinates : mapping or array-like of shape (n_features, 2)
        Degrees north and east of each column: by its name, or in the order of the columns.
    component : int, default=1
        The component whose loadings are shown, from 1.
    values : array-like of shape (n_features,) or None, default=None
        Other numbers to show, such as errors; None is loadings.

    Returns
    -------
    data : MapData
        Places and values.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import PPCA, plot
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> model = PPCA(n_components=1).fit(X)
    >>> plot.map_data(model, [(0, 10), (0, 20), (10, 10)]).latitude
    array([ 0.,  0., 10.])
    """
    model = estimator if hasattr(estimator, "loadings_") else _model.fitted(estimator)
    names = tuple(model._model.names)
    if hasattr(coordinates, "items"):
        known = {str(name): place for name, place in coordinates.items()}
        nowhere = [name for name in names if name not in known]
        if nowhere:
            raise DataError(f"coordinates has no {nowhere[0]!r}, a column of the model")
        coordinates = [known[name] for name in names]
    places = np.asarray(coordinates, dtype=np.float64)
    if places.shape != (len(names), 2):
        raise DataError(f"coordinates must be of shape ({len(names)}, 2), got {places.shape}")
    bad = ~((np.abs(places[:, 0]) <= 90.0) & (places[:, 1] >= -180.0) & (places[:, 1] <= 360.0))
    if bad.any():
        j = int(np.flatnonzero(bad)[0])
        raise DataError(
            f"column {names[j]!r} is at {tuple(places[j].tolist())}; latitudes are from -90 to 90, longitudes from -180 to 360"
        )
    if values is None:
        q = int(model.n_components_)
        if not 1 <= component <= q:
            raise DataError(f"there is no component {component}: the model has {q}")
        value = np.asarray(model.loadings_, dtype=np.float64)[:, component - 1]
        title = f"loadings of component {component}"
    else:
        value, title = np.asarray(values, dtype=np.float64), ""
        if value.shape != (len(names),):
            raise DataError(f"values must be of shape ({len(names)},), got {value.shape}")
    return MapData(names, places[:, 0], places[:, 1], value, title)


def map(  # noqa: A001
    estimator: Any,
    coordinates: Mapping[str, tuple[float, float]] | Sequence[tuple[float, float]] | ArrayLike,
    *,
    component: int = 1,
    values: ArrayLike | None = None,
    ax: Any = None,
) -> Any:
    """A number of each column on a map of their places.

    Parameters
    ----------
    estimator, coordinates, component, values
        As of :func:`map_data`.
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
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> ax = plot.map(PPCA(n_components=1).fit(X), [(0, 10), (0, 20), (10, 10)])
    >>> ax.get_xlabel()
    'degrees east'
    """
    _style.pyplot()
    data = map_data(estimator, coordinates, component=component, values=values)
    ax = _style.axes(ax, (7.0, 4.4))
    shown = np.isfinite(data.value)
    low, high = (data.value[shown].min(), data.value[shown].max()) if shown.any() else (0.0, 1.0)
    most = max(abs(low), abs(high))
    signed = {"cmap": "RdBu_r", "vmin": -most, "vmax": most} if low < 0.0 < high else {"cmap": "viridis"}
    edge = _style.mixed(ax, 0.6)
    size = 40.0 if shown.sum() <= 200 else 12.0
    marks = ax.scatter(
        data.longitude[shown], data.latitude[shown], c=data.value[shown], s=size, edgecolors=edge, linewidths=0.4, **signed
    )
    ax.figure.colorbar(marks, ax=ax, shrink=0.8)
    middle = np.deg2rad((data.latitude.min() + data.latitude.max()) / 2)
    # Near the middle a degree is as long to the east as to the north.
    ax.set_aspect(1.0 / max(float(np.cos(middle)), 0.3))
    none = int((~shown).sum())
    left_out = f"{none} places without a value" if none else ""
    return _style.finish(ax, "degrees east", "degrees north", data.title, left_out)
