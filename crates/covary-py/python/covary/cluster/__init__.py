"""Tables larger than a machine: the same passes over the rows, made by the engine that holds them.

A fit asks for sums over the rows, a few times. Here Dask, Spark or Ray makes them, block by block, where the rows are, and the
library steps on as if the table were in memory. The model is the same to the last bit as that of the table in memory, if rows
come in the same order: sums are joined along one fixed tree, whichever worker made them, and whether or not one was lost.

The engine is told by the type of the table and imported only then: ``pip install covary[dask]``, ``covary[spark]`` or
``covary[ray]``. Workers need the same version of covary.

>>> import numpy as np, covary.cluster
>>> import tempfile, pathlib
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(500, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(500, 6))
>>> X[rng.random(X.shape) < 0.1] = np.nan
>>> path = pathlib.Path(tempfile.mkdtemp()) / "table.npy"
>>> np.save(path, X)
>>> model = covary.cluster.fit(covary.PPCA(2), path)               # read anew at every pass
>>> bool((model.loadings_ == covary.PPCA(2).fit(X).loadings_).all())
True
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._rows import Rows
from ..exceptions import DataError, OptionError
from ._answers import Impute, ScoreSamples, Transform

__all__ = ["fit", "impute", "score_samples", "transform"]

#: The module that speaks to an engine, by the package that a table's type is from.
_ENGINES = {"dask": "_dask", "pyspark": "_spark", "ray": "_ray", "pyarrow": "_local"}


def _engine(source: Any) -> Any:
    """The module for a table."""
    if isinstance(source, (str, os.PathLike, list, tuple)):
        return import_module("._local", __name__)
    package = type(source).__module__.partition(".")[0]
    if package not in _ENGINES:
        raise DataError(
            f"a {type(source).__name__} is no table of an engine: give a Dask DataFrame or Array, a Spark DataFrame, a Ray "
            "Dataset, a pyarrow Dataset, or paths of .parquet or .npy files; a table in memory goes to the estimator's own fit"
        )
    return import_module(f".{_ENGINES[package]}", __name__)


def fit(estimator: Any, source: Any, *, columns: Sequence[str] | None = None) -> Any:
    """Fit a model to a table that an engine holds.

    Parameters
    ----------
    estimator : PPCA, BayesianPCA, FactorAnalysis, Gaussian or MixturePPCA
        What to fit, with a number of components (a Gaussian has none) and of models of a mixture. It is fitted in place, as by its own `fit`.
    source : dask DataFrame or Array, Spark DataFrame, ray.data.Dataset, pyarrow Dataset, path or list of paths
        The table; null and NaN are missing. A Spark DataFrame may be of Spark Connect. Paths are files of Parquet or NumPy,
        read anew at every pass on this machine; several are one below the other. Engines keep the table, as blocks of
        float64, for the time of the fit: in memory, and on disk where that is not enough (Dask and Ray as they are configured).
    columns : list of str or None, default=None
        The columns of the model; None takes all, which must be numbers.

    Returns
    -------
    estimator : object
        The fitted estimator: what it is asked and saved as does not depend on the engine.
    """
    if not getattr(estimator, "_by_passes", False):
        raise OptionError(
            f"{type(estimator).__name__} is not fitted in passes over the rows; PPCA, BayesianPCA, FactorAnalysis, "
            "Gaussian and MixturePPCA are. Fit it in memory, to a sample of the rows if need be"
        )
    rows: Rows = _engine(source).table(source, columns)
    try:
        estimator.n_features_in_ = rows.shape[1]
        estimator.__dict__.pop("feature_names_in_", None)
        if rows.names is not None:
            estimator.feature_names_in_ = np.asarray(rows.names, dtype=object)
        return estimator._fit_rows(rows)
    finally:
        rows.close()


def transform(estimator: Any, source: Any) -> Any:
    """Scores of rows, beside the columns that are not in the model.

    Parameters
    ----------
    estimator : fitted estimator
        Any that has `transform`, fitted or loaded.
    source : as of :func:`fit`
        Rows; the columns of the model are found by their names.

    Returns
    -------
    table : as `source`
        Not computed yet, rows in their order. Of a pyarrow Dataset and of paths a `pyarrow.RecordBatchReader`, of a Dask Array
        an Array of the scores alone.
    """
    check_is_fitted(estimator)
    return _engine(source).asked(Transform(estimator), source)


def impute(estimator: Any, source: Any, *, return_std: bool = False) -> Any:
    """The table with its missing values imputed; every other cell and column as it came.

    Parameters
    ----------
    estimator : fitted estimator
        Any that has `impute`, fitted or loaded.
    source : as of :func:`fit`
        Rows; the columns of the model are found by their names.
    return_std : bool, default=False
        Append a column ``NAME_std`` for each column of the model: the standard deviation of what was imputed, 0 where observed.

    Returns
    -------
    table : as `source`
        As of :func:`transform`. The columns of the model become float64.
    """
    check_is_fitted(estimator)
    return _engine(source).asked(Impute(estimator, return_std), source)


def score_samples(estimator: Any, source: Any) -> Any:
    """Log-density of each row, as a column ``log_density`` beside the columns that are not in the model.

    Parameters
    ----------
    estimator : fitted estimator
        Any that has `score_samples`, fitted or loaded.
    source : as of :func:`fit`
        Rows; the columns of the model are found by their names.

    Returns
    -------
    table : as `source`
        As of :func:`transform`. Its mean is the estimator's `score`.
    """
    check_is_fitted(estimator)
    return _engine(source).asked(ScoreSamples(estimator), source)
