"""Figures of fitted models and of gaps, and the numbers behind them.

Every figure is a pair of functions: ``scree_data`` returns arrays, ``scree`` draws them on matplotlib
axes and returns those. matplotlib is imported when something is drawn, not before.

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
from ._outliers import OutliersData, outliers, outliers_data
from ._scree import ScreeData, scree, scree_data

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
    "factors",
    "factors_data",
    "forecast",
    "forecast_data",
    "hinton",
    "hinton_data",
    "intervals",
    "intervals_data",
    "map",
    "map_data",
    "missing_map",
    "missing_map_data",
    "outliers",
    "outliers_data",
    "patterns",
    "patterns_data",
    "scree",
    "scree_data",
]
