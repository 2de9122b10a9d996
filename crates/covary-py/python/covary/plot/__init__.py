"""Figures of fitted models and of gaps, and the numbers behind them.

There is a function for every kind of ``covary plot``. Figures like ``scree`` come with a function ``scree_data`` that
returns arrays; the numbers behind any of them are ``numbers(kind, estimator, X)``, under the names of the command's
``--json``. Functions draw on matplotlib axes and return those: several where a figure has panels. matplotlib is imported
when something is drawn, not before.

>>> import numpy as np
>>> from covary import PPCA, plot
>>> X = np.random.default_rng(0).normal(size=(100, 5))
>>> plot.scree_data(PPCA(n_components=2).fit(X)).share.shape
(2,)
"""

from ._biplot import BiplotData, biplot, biplot_data
from ._calibration import CalibrationData, calibration, calibration_data
from ._circle import CircleData, ContributionsData, circle, circle_data, contributions, contributions_data
from ._correlation import (
    CorrelationData,
    PatternsData,
    correlation,
    correlation_data,
    patterns,
    patterns_data,
)
from ._factors import FactorsData, factors, factors_data
from ._forecast import ForecastData, forecast, forecast_data
from ._hinton import HintonData, hinton, hinton_data
from ._intervals import IntervalsData, intervals, intervals_data
from ._map import MapData, map, map_data
from ._missing_map import MissingMapData, missing_map, missing_map_data
from ._numbers import numbers
from ._outliers import OutliersData, outliers, outliers_data
from ._panels import (
    covariance,
    curves,
    density,
    diagram,
    eigenfunctions,
    images,
    loadings,
    mixture,
    pairs,
    path,
    relevance,
    samples,
    scores,
    select,
    sources,
    trace,
    views,
)
from ._scree import ScreeData, scree, scree_data

#: The kind `missing` of the command.
missing = missing_map

__all__ = [
    "BiplotData",
    "CalibrationData",
    "CircleData",
    "ContributionsData",
    "CorrelationData",
    "FactorsData",
    "ForecastData",
    "HintonData",
    "IntervalsData",
    "MapData",
    "MissingMapData",
    "OutliersData",
    "PatternsData",
    "ScreeData",
    "biplot",
    "biplot_data",
    "calibration",
    "calibration_data",
    "circle",
    "circle_data",
    "contributions",
    "contributions_data",
    "correlation",
    "correlation_data",
    "covariance",
    "curves",
    "density",
    "diagram",
    "eigenfunctions",
    "factors",
    "factors_data",
    "forecast",
    "forecast_data",
    "hinton",
    "hinton_data",
    "images",
    "intervals",
    "intervals_data",
    "loadings",
    "map",
    "map_data",
    "missing",
    "missing_map",
    "missing_map_data",
    "mixture",
    "numbers",
    "outliers",
    "outliers_data",
    "pairs",
    "path",
    "patterns",
    "patterns_data",
    "relevance",
    "samples",
    "scores",
    "scree",
    "scree_data",
    "select",
    "sources",
    "trace",
    "views",
]
