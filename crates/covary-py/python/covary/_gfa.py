"""Group factor analysis of several views."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from . import _covary, _options, _table
from ._fitted import below_columns
from ._linear import LinearGaussian
from .exceptions import DataError

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._fitted import Array


@dataclass(eq=False, repr=False)
class GroupFactorAnalysis(LinearGaussian):
    """Components of several views of the same rows: which are shared, and by whom.

    A row is ``loadings_ @ x + mean_`` plus noise, which has a variance for each view. Every component has a
    relevance in every view, so that it may live in all of them, in some, or in one. Gaps (NaN) are integrated
    out; a whole view may be missing from a row.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        The most components there may be; those that no view supports are dropped. "auto", or None, offers up to 30.
    views : list of int, dict or None, default=None
        The views of one table: how many columns each has, side by side; or a dict from a view's name to the
        names or numbers of its columns, in any order. None is one view. Not needed if `fit` is given a table
        for each view.
    noise : {"isotropic", "diagonal"} or None, default=None
        A noise variance for each view, or for each column. None is isotropic, but diagonal with `standardize`:
        equal noise is unequal in standardized columns, and would be taken for further components.
    standardize : bool, default=True
        Give every column unit variance before fitting. Without it views are brought to one scale as wholes,
        so that their units do not matter, those of columns within a view do.
    prior : dict or None, default=None
        Parameters of the prior by name, such as ``{"noise_rate": 0.01}``; `method_` lists them all.
    max_iter : int or None, default=None
        Most sweeps; None is 500.
    tol : float or None, default=None
        Nats per cell that a sweep must add; None is 1e-7.
    verbose : bool or int, default=False
        Tell on standard error how far a long fit is.

    Attributes
    ----------
    views_ : dict
        From the name of each view, or its number, to the places of its columns among those of the table.
    loadings_ : ndarray of shape (n_features, n_components)
        W, components by decreasing strength over all views; 0 where a component is not active.
    activity_ : ndarray of bool of shape (n_views, n_components)
        Whether a component is active in a view. One that is active in two or more is shared, one that is
        active in one is private to it.
    signal_ : ndarray of shape (n_views, n_components)
        Share of the loadings' second moment in the view that is not doubt; 0 where a component is not active.
    explained_variance_by_view_ : ndarray of shape (n_views, n_components)
        Share of the view's variance that the component explains.
    relevance_ : ndarray of shape (n_views, n_components)
        E[α]: large where a component counts for little.
    noise_variance_ : ndarray of shape (n_views,) or (n_features,)
        Of each view; of each column if the noise is diagonal or columns were standardized.
    mean_, n_components_, lower_bound_, trace_, n_iter_, converged_, n_features_in_, feature_names_in_
        As of :class:`BayesianPCA`.
    components_, explained_variance_, explained_variance_ratio_, singular_values_
        Principal axes of the signal in all columns. They mix what is shared with what is private: to read
        components take `loadings_`.
    method_ : tuple of str and dict
        The method and all its options, as text.

    See Also
    --------
    ProbabilisticCCA : Two complete views and what is shared by both.
    BayesianPCA : One view.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import GroupFactorAnalysis
    >>> rng = np.random.default_rng(0)
    >>> both, own = rng.normal(size=(2, 200, 1))
    >>> genes = both @ rng.normal(size=(1, 8)) + 0.5 * rng.normal(size=(200, 8))
    >>> images = both @ rng.normal(size=(1, 6)) + own @ rng.normal(size=(1, 6)) + 0.5 * rng.normal(size=(200, 6))
    >>> gfa = GroupFactorAnalysis().fit({"genes": genes, "images": images})
    >>> gfa.activity_.tolist()
    [[True, False], [True, True]]
    >>> filled, std = gfa.impute({"genes": genes[:3]}, return_std=True)
    >>> filled[:, gfa.views_["images"]].shape
    (3, 6)
    """

    _family = "gfa"

    n_components: int | str | None = "auto"
    _: KW_ONLY
    views: Any = None
    noise: str | None = None
    standardize: bool = True
    prior: dict[str, Any] | None = None
    max_iter: int | None = None
    tol: float | None = None
    verbose: bool | int = False

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model to the observed cells of the views.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), dict or list of such
            One table, whose views are in `views`; or a table for each view, by name or in a list. NaN where a
            cell is missing.
        y : None
            Ignored.

        Returns
        -------
        self : GroupFactorAnalysis
            The fitted estimator.
        """
        tables = _tables(X)
        if tables is None:
            rows = _table.table(self, X, reset=True)
            return self._fit_views(rows, self._named_views(), _table.names(self))
        if self.views is not None:
            raise _options.refuse(self, "views", self.views, "None where each view is a table of its own")
        checked = {name: _checked(name, table) for name, table in tables.items()}
        places, start, labels = {}, 0, []
        for name, table in checked.items():
            places[name] = np.arange(start, start + table.shape[1])
            columns = getattr(tables[name], "columns", range(1, table.shape[1] + 1))
            labels += [f"{name}.{column}" for column in columns]
            start += table.shape[1]
        rows = _table.table(self, np.ascontiguousarray(np.hstack(_alike(checked))), reset=True)
        return self._fit_views(rows, places, labels)

    def _fit_views(self, rows: Array, views: dict[Any, Array], names: list[str] | None) -> Self:
        noise = _options.word(self, "noise", (None, "isotropic", "diagonal"))
        request: _covary.Request = {
            "n_components": below_columns(_options.size(self, "n_components", 0), rows),
            "views": [(str(view), places.tolist()) for view, places in views.items()],
            "noise": noise,
            "allow_unidentified": noise == "diagonal",
            "standardize": _options.switch(self, "standardize"),
            "max_iterations": _options.whole(self, "max_iter", 1),
            "tolerance": _options.number(self, "tol"),
            "options": self.prior,
        }
        self.views_ = views
        return self._take(self._learned(rows, self._family, request, names), rows)

    def _publish(self, model: _covary.Model, rows: Array | None = None) -> None:
        super()._publish(model, rows)
        if rows is None:
            self.views_ = {name: np.array(places) for name, places in model.views}
        self.relevance_ = model.relevance.reshape(len(self.views_), -1)
        self.signal_, self.explained_variance_by_view_, self.activity_ = model.activity()
        self.method_ = model.method
        own = np.broadcast_to(self.noise_variance_, (self.n_features_in_,))
        if model.noise == "isotropic" and not model.standardized:
            # Columns that never vary have none.
            own = np.array([own[places].max() for places in self.views_.values()], dtype=self.mean_.dtype)
        self.noise_variance_ = own

    def _named_views(self) -> dict[Any, Array]:
        """Where the columns of each view stand in one table."""
        d, views = self.n_features_in_, self.views
        if views is None:
            return {0: np.arange(d)}
        if isinstance(views, Mapping):
            return self._listed_views()
        wanted = f"None, a dict, or numbers of columns, 1 at least, that add up to the {d} of X"
        sizes = list(views) if isinstance(views, (list, tuple, np.ndarray)) else []
        whole = all(isinstance(n, Integral) and not isinstance(n, bool) and int(n) >= 1 for n in sizes)
        if not whole or sum(map(int, sizes)) != d:
            raise _options.refuse(self, "views", views, wanted)
        ends = np.cumsum([int(n) for n in sizes])
        return {v: np.arange(end - int(n), end) for v, (n, end) in enumerate(zip(sizes, ends, strict=True))}

    def _listed_views(self) -> dict[Any, Array]:
        names = {name: j for j, name in enumerate(getattr(self, "feature_names_in_", ()))}
        taken: dict[int, Any] = {}
        places: dict[Any, Array] = {}
        for view, columns in self.views.items():
            if isinstance(columns, str) or not len(columns):
                raise _options.refuse(self, "views", self.views, f"a dict of lists of columns, view {view!r} too")
            found = []
            for column in columns:
                number = isinstance(column, Integral) and not isinstance(column, bool)
                place = int(column) if number else names.get(column, -1)
                if not 0 <= place < self.n_features_in_:
                    raise DataError(f"view {view!r}: X has no column {column!r}")
                if place in taken:
                    raise DataError(f"column {column!r} is in view {taken[place]!r} and in view {view!r}")
                taken[place] = view
                found.append(place)
            places[view] = np.array(found)
        left = [j for j in range(self.n_features_in_) if j not in taken]
        if left:
            column = next((name for name, j in names.items() if j == left[0]), left[0])
            raise DataError(f"column {column!r} is in no view; list it in one, or leave it out of X")
        return places

    def _rows(self, X: Any) -> Array:
        check_is_fitted(self)
        tables = _tables(X, list(self.views_))
        if tables is None:
            return _table.table(self, X, reset=False)
        unknown = [name for name in tables if name not in self.views_]
        if unknown:
            raise DataError(f"there is no view {unknown[0]!r}; there are {', '.join(map(repr, self.views_))}")
        checked = {name: _checked(name, table) for name, table in tables.items()}
        alike = _alike(checked)
        rows = np.full((len(alike[0]), self.n_features_in_), np.nan, dtype=alike[0].dtype)
        for name, table in zip(checked, alike, strict=True):
            places = self.views_[name]
            if table.shape[1] != len(places):
                raise DataError(f"view {name!r} has {table.shape[1]} columns; it had {len(places)} when fitted")
            rows[:, places] = table
        return rows

    @classmethod
    def _options_of(cls, model: _covary.Model) -> dict[str, Any]:
        views = {name: list(places) for name, places in model.views}
        asked = {"noise": model.noise, "standardize": model.standardized}
        return {"n_components": model.n_components, "views": views, **asked}


def _tables(X: Any, names: list[Any] | None = None) -> dict[Any, Any] | None:
    """The table of each view that is there, or None if `X` is one table."""
    # Some sparse matrices are mappings.
    if isinstance(X, Mapping) and not hasattr(X, "shape"):
        tables = dict(X)
    elif isinstance(X, (list, tuple)) and any(len(getattr(table, "shape", ())) == 2 for table in X):
        if names is not None and len(X) != len(names):
            raise DataError(f"X lists {len(X)} views; the model has {len(names)}")
        tables = dict(zip(names or range(len(X)), X, strict=True))
    else:
        return None
    # A view that is not there when asking is one of gaps.
    tables = {name: table for name, table in tables.items() if names is None or table is not None}
    if not tables:
        raise DataError("X holds no view; give at least one")
    return tables


def _checked(name: Any, table: Any) -> Array:
    try:
        return _table.array(table, ensure_all_finite=False)
    except ValueError as error:
        raise DataError(f"view {name!r}: {error}") from None


def _alike(tables: dict[Any, Array]) -> list[Array]:
    """The tables with numbers of one kind, once they have the same rows."""
    (first, n), *others = ((name, len(table)) for name, table in tables.items())
    for name, rows in others:
        if rows != n:
            raise DataError(f"inconsistent numbers of samples: view {first!r} has {n} rows and view {name!r} {rows}")
    kind = np.result_type(*tables.values())
    return [table.astype(kind, copy=False) for table in tables.values()]


__all__ = ["GroupFactorAnalysis"]
