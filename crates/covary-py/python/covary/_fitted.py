"""What every fitted model answers, whichever class fitted it: the mixins that the estimators are made of."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from . import _covary, _options, _table
from ._files import ModelFile
from ._rows import Rows, default_names
from ._threads import n_threads
from .exceptions import ComponentsError, ConvergenceWarning, CovaryWarning

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from typing_extensions import Self

    Array = NDArray[Any]

#: Which class stands for a model of which family; a class says its own by `_family`.
FAMILIES: dict[str, type[Fitted]] = {}
#: The attributes that an objective may be published as.
_OBJECTIVES = ("log_likelihood_", "log_posterior_", "lower_bound_")


class Shown:
    """A fitted estimator that a notebook shows: what was fitted, how it ended, and its scree."""

    def _card(self) -> str:
        model = self._shown()
        return "" if model is None else _covary.card(model)

    def _shown(self) -> Any:
        """The model to show, if there is one."""
        return self.__dict__.get("_model")

    def _repr_html_inner(self) -> str:
        inner: str = super()._repr_html_inner()  # type: ignore[misc]
        return self._card() + inner

    def _repr_mimebundle_(self, **given: Any) -> dict[str, str]:
        shown: dict[str, str] = super()._repr_mimebundle_(**given)  # type: ignore[misc]
        if "text/html" in shown:
            shown["text/html"] = self._card() + shown["text/html"]
        return shown


class Fitted(Shown, ModelFile, BaseEstimator):
    """Base of the estimators: a request to the library on one side, fitted attributes on the other."""

    _model: Any
    #: Whether hidden cells choose the model, calibrate its intervals and limits apply, if it is fitted to fill gaps.
    _filling: tuple[bool, bool, bool] | None = None
    #: Whether it is fitted so that these can be asked for.
    _fills: bool = True
    #: Whether sums over rows are all that its fit asks a table for, so that an engine may have the rows.
    _by_passes: bool = False
    #: Fitted attributes that are worked out when they are first asked for.
    _when_asked: frozenset[str] = frozenset()

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if "_family" in cls.__dict__:
            FAMILIES.setdefault(cls.__dict__["_family"], cls)

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
        self : object
            The fitted estimator.
        """
        return self._fit_rows(_table.table(self, X, reset=True))

    def _fit_rows(self, rows: Array) -> Self:
        """Fits to a table that was checked and counted."""
        raise NotImplementedError

    def _learned(self, rows: Array, family: str, asked: _covary.Request, names: list[str] | None = None) -> Any:
        """The model of a table, as far as it was asked for; the rest is decided by the library."""
        names = _table.names(self) if names is None else names
        progress = _options.progress(self)
        if self._filling is not None:
            asked = {**asked, "filling": self._filling}
        if isinstance(rows, Rows):
            names = default_names(rows.shape[1]) if names is None else names
            return _covary.fit_rows(
                names, family, asked, rows.reduce, n_blocks=rows.n_blocks, threads=n_threads(), progress=progress
            )
        return _covary.fit(rows, names, family, asked, threads=n_threads(), progress=progress)

    def _take(self, model: Any, rows: Array) -> Self:
        """Publishes a model that was just learned, with its warnings."""
        self._publish(model, rows)
        for _, of_convergence, message in model.warnings:
            warnings.warn(message, ConvergenceWarning if of_convergence else CovaryWarning, stacklevel=4)
        return self

    def _publish(self, model: Any, rows: Array | None = None) -> None:
        """Sets the fitted attributes, in the precision of the rows if there are any."""
        for name in (*self._when_asked, *_OBJECTIVES):
            self.__dict__.pop(name, None)
        self._model = model
        if model.objective is not None:
            kind, value = model.objective
            setattr(self, f"{kind}_", value)
        self.trace_ = model.trace
        self.n_iter_ = max(1, model.n_iterations)
        self.converged_ = model.converged

    @classmethod
    def _of_model(cls, model: Any) -> Self:
        """The fitted estimator of a model file."""
        estimator = cls(**cls._options_of(model))
        estimator.n_features_in_ = len(model.names)
        if not model.has_default_names:
            estimator.feature_names_in_ = np.asarray(model.names, dtype=object)
        estimator._publish(model)
        return estimator

    @classmethod
    def _options_of(cls, model: Any) -> dict[str, Any]:
        """Constructor arguments that would ask for such a model."""
        return {"n_components": model.n_components}

    def _work_out(self, name: str) -> Any:
        """The value of an attribute that is worked out when asked for."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        if name in type(self)._when_asked and "_model" in self.__dict__:
            value = self.__dict__[name] = self._work_out(name)
            return value
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        found = set(super().__dir__())
        return sorted(found | self._when_asked if "_model" in self.__dict__ else found)

    def __sklearn_is_fitted__(self) -> bool:
        return "_model" in self.__dict__

    def _sampled(self, n_samples: Any, random_state: Any, least: int) -> Any:
        """Fresh rows, and where they are from."""
        check_is_fitted(self)
        if not isinstance(n_samples, (int, np.integer)) or n_samples < least:
            raise ValueError(f"n_samples must be a whole number from {least}, got {n_samples!r}")
        np.empty((int(n_samples), self.n_features_in_))  # MemoryError rather than an abort
        return self._model.sample(int(n_samples), _table.seed_of(random_state))

    def _rows(self, X: ArrayLike) -> Array:
        """A table to ask about."""
        check_is_fitted(self)
        return _table.table(self, X, reset=False)

    def _placed_rows(self, X: Any) -> tuple[Array, Any]:
        """A table to draw or to report on, and what tells when or to which curve its rows belong."""
        return self._rows(X), None

    def report(
        self,
        path: Any,
        X: ArrayLike,
        *,
        color: Any = None,
        labels: Any = None,
        components: tuple[int, int] = (1, 2),
        interval: float = 0.95,
        check: bool = True,
        random_state: Any = None,
    ) -> dict[str, Any]:
        """Write the report of the model and its table as one HTML page that needs nothing else.

        It is the page that ``covary report`` makes, about this model; missing values are imputed by it.

        Parameters
        ----------
        path : str or path-like
            Where the page goes.
        X : array-like of shape (n_samples, n_features)
            The table that the model was fitted to: estimators do not keep it.
        color : array-like of shape (n_samples,) or None, default=None
            Group of each row, which colors figures.
        labels : array-like of shape (n_samples,) or None, default=None
            Name of each row.
        components : tuple of two int, default=(1, 2)
            The components along the axes of scores and biplot, from 1.
        interval : float, default=0.95
            Level of the intervals of imputed values.
        check : bool, default=True
            Also hide cells, fit without them, and compare.
        random_state : int, RandomState instance or None, default=None
            Seed of the cells that are hidden; None is 0.

        Returns
        -------
        facts : dict
            What the page says, under the names of ``covary report --json``.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> from covary import PPCA
        >>> X = np.random.default_rng(0).normal(size=(60, 2)) @ [[1.0, 2.0, 0.5, 1.0], [0.3, -1.0, 2.0, 0.0]]
        >>> X += 0.1 * np.random.default_rng(1).normal(size=X.shape)
        >>> page = Path(tempfile.mkdtemp()) / "report.html"
        >>> PPCA(n_components=2).fit(X).report(page, X)["model"]["n_components"]
        2
        """
        check_is_fitted(self)
        rows, at = self._placed_rows(X)
        about = {
            "source": type(self).__name__,
            "call": f"{type(self).__name__}.report({os.fspath(path)!r}, X)",
            "groups": _table.groups(color, len(rows)),
            "labels": _table.texts(labels, len(rows), "labels"),
            "axes": (int(components[0]), int(components[1])),
            "level": float(interval),
            "seed": _table.seed_of(random_state),
            "check": bool(check),
        }
        html, facts = _covary.report(self._model, rows, about, at=at, threads=n_threads())
        Path(path).write_text(html, encoding="utf-8")
        found: dict[str, Any] = json.loads(facts)
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def below_columns(asked: Any, rows: Array) -> Any:
    """A number of components, if one was asked for, that leaves room for noise."""
    d = rows.shape[1]
    if isinstance(asked, int) and asked >= d:
        raise ComponentsError(f"n_components={asked} must be below n_features={d}: one more would leave no noise")
    return asked


class Fills:
    """A model that fills gaps."""

    _model: Any
    _rows: Any

    def impute(self, X: ArrayLike, return_std: bool = False) -> Any:
        """The rows with their gaps filled by conditional means.

        Observed cells are returned as they came, to the last bit.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN where a cell is missing.
        return_std : bool, default=False
            Also return how certain each filled cell is.

        Returns
        -------
        filled : ndarray of shape (n_samples, n_features)
            The rows without gaps.
        std : ndarray of shape (n_samples, n_features)
            Standard deviation of each filled cell, 0 where observed; only if `return_std`.
        """
        return self._filled(self._rows(X), own=False, return_std=return_std)

    def _filled(self, rows: Array, *, own: bool, return_std: bool) -> Any:
        return _table.filled(self._model.impute(rows, own, n_threads()), rows, return_std)


class Draws(Fills):
    """A density of rows, which also draws what gaps may have held."""

    n_features_in_: int

    def sample_gaps(self, X: ArrayLike, n_draws: int = 1, random_state: Any = None) -> Array:
        """Completed copies of a table whose gaps are joint random draws given what is observed.

        What is learned from each copy can be pooled by :func:`covary.pool`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN where a cell is missing.
        n_draws : int, default=1
            How many copies.
        random_state : int, RandomState instance or None, default=None
            Seed; None is 0.

        Returns
        -------
        tables : ndarray of shape (n_draws, n_samples, n_features)
            The copies.
        """
        return self._drawn(self._rows(X), n_draws, _table.seed_of(random_state), own=False)

    def _drawn(self, rows: Array, n_draws: int, seed: int, *, own: bool) -> Array:
        if not isinstance(n_draws, (int, np.integer)) or n_draws < 1:
            raise ValueError(f"n_draws must be a whole number from 1, got {n_draws!r}")
        draws = self._model.draw_gaps(rows, int(n_draws), seed, own, n_threads())
        return _table.like(np.stack(draws), rows)


class Scores:
    """A density of rows, which says how likely they are."""

    _model: Any
    _rows: Any

    def score_samples(self, X: ArrayLike) -> Array:
        """Log-density of each row in nats, gaps integrated out.

        Columns that never varied when the model was fitted have no density and do not count.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN where a cell is missing.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            0 for a row of only gaps.
        """
        rows = self._rows(X)
        found: Array = self._model.log_density(rows, n_threads())
        return found

    def score(self, X: ArrayLike, y: Any = None) -> float:
        """Average log-density of the rows, gaps integrated out; what cross-validation compares.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN where a cell is missing.
        y : None
            Ignored.

        Returns
        -------
        score : float
            Nats per row.
        """
        return float(np.mean(self.score_samples(X)))


__all__ = ["FAMILIES", "Draws", "Fills", "Fitted", "Scores", "Shown", "below_columns"]
