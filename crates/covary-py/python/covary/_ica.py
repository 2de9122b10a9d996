"""Independent components: what all have, maximum likelihood, and sources behind noise."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from . import _covary, _options, _table
from ._fitted import Fills, Fitted
from ._threads import n_threads

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from typing_extensions import Self

    from ._fitted import Array


class Sources(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Fitted):
    """What all of them share: from rows to sources and back."""

    _model: _covary.Sources
    # Sources of the library have variance 1.
    _scale: float = 1.0

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Separate the sources of a table.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table; NaN where a cell is missing, which only `NoisyICA` takes.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit_rows(_table.table(self, X, reset=True))

    def transform(self, X: ArrayLike, copy: bool = True) -> Array:
        """Sources of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN where a cell is missing, which only `NoisyICA` takes.
        copy : bool, default=True
            Of no effect: the rows are never changed.

        Returns
        -------
        sources : ndarray of shape (n_samples, n_components)
            One column per source.
        """
        rows = self._rows(X)
        sources = self._model.transform(rows, None, n_threads())
        return _table.like(sources * self._scale if self._scale != 1.0 else sources, rows)

    def inverse_transform(self, X: ArrayLike, copy: bool = True) -> Array:
        """Rows from sources.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Sources.
        copy : bool, default=True
            Of no effect: they are never changed.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
            The rows they mix to.
        """
        check_is_fitted(self)
        sources = _table.array(X)
        return _table.like(self._model.decode(sources.astype(np.float64) / self._scale), sources)

    @classmethod
    def _options_of(cls, model: _covary.Sources) -> dict[str, Any]:
        options = model.method[1]
        q = options.get("n_components", "all")
        return {
            "n_components": None if q == "all" else int(q),
            "max_iter": int(options["max_iterations"]),
            "tol": float(options["tolerance"]),
        }

    def _publish(self, model: _covary.Sources, rows: Array | None = None) -> None:
        super()._publish(model)
        like = np.zeros(0) if rows is None else rows
        self.mixing_ = _table.like(model.mixing / self._scale, like)
        self.mean_ = _table.like(model.mean, like)
        self.kurtosis_ = model.kurtosis
        if model.unmixing is not None and model.whitening is not None:
            self.components_ = _table.like(model.unmixing * self._scale, like)
            self.whitening_ = _table.like(model.whitening / np.sqrt(model.n_rows), like)

    @property
    def _n_features_out(self) -> int:
        return int(self.mixing_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        return tags


@dataclass(eq=False, repr=False)
class InfomaxICA(Sources):
    """Independent components by maximum likelihood, each source with a density of heavy or light tails.

    With ``sources="extended"`` this is extended infomax at its optimum: relative Newton steps that never lower the
    likelihood, and no learning rate.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of sources; as many as the table has directions if None.
    sources : {"extended", "logistic", "super", "sub"}, default="extended"
        Their densities: heavy ("super") or light tails ("sub") as the data say, or all of one kind.
    max_iter : int, default=500
        Most steps.
    tol : float, default=1e-8
        Ends when no entry of the relative gradient, which has no units, is larger.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The unmixing: sources are ``(X - mean_) @ components_.T``, of variance 1.
    densities_ : list of str
        The density of each source: "super", "sub" or "logistic".
    log_likelihood_ : float
        Of the whitened table, in nats.
    mixing_, mean_, whitening_, kurtosis_, n_iter_, converged_, n_features_in_, feature_names_in_
        As of :class:`FastICA`.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import InfomaxICA
    >>> i = np.arange(2000)
    >>> sources = np.stack([i % 19, 9 * np.sin(0.37 * i) ** 9], axis=1)
    >>> ica = InfomaxICA().fit(sources @ np.array([[1.0, 0.6], [0.4, 1.0]]).T)
    >>> ica.densities_
    ['sub', 'super']
    """

    n_components: int | None = None
    _: KW_ONLY
    sources: str = "extended"
    max_iter: int = 500
    tol: float = 1e-8

    def _fit_rows(self, rows: Array) -> Self:
        sources = _options.word(self, "sources", ("extended", "logistic", "super", "sub"))
        request = _limits(self) | {"inference": "maximum-likelihood", "options": {"sources": sources}}
        return self._take(self._learned(rows, "ica", request), rows)  # type: ignore[arg-type]

    def _publish(self, model: _covary.Sources, rows: Array | None = None) -> None:
        super()._publish(model, rows)
        self.densities_ = model.densities

    @classmethod
    def _options_of(cls, model: _covary.Sources) -> dict[str, Any]:
        return super()._options_of(model) | {"sources": model.method[1]["sources"]}


@dataclass(eq=False, repr=False)
class NoisyICA(Fills, Sources):
    """Independent components behind noise, with gaps: Laplace sources, by a variational bound.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of sources; if None, as many as factor analysis (with `tied_noise` probabilistic PCA) predicts hidden
        cells best by.
    tied_noise : bool, default=False
        One noise variance for all columns.
    noise_floor : float, default=0.005
        Smallest noise variance as a share of a column's.
    max_iter : int, default=2000
        Most steps.
    tol : float, default=1e-8
        Ends when the bound is expected to rise by less, in nats per observed cell.

    Attributes
    ----------
    mixing_ : ndarray of shape (n_features, n_components)
        What one unit of each source adds to a row, columns by decreasing length; in each the entry of largest absolute
        value is positive.
    mean_ : ndarray of shape (n_features,)
        Mean of each column.
    noise_variance_ : ndarray of shape (n_features,)
        Noise of each column.
    kurtosis_ : ndarray of shape (n_components,)
        Excess kurtosis of a linear estimate of each source: 0 for a Gaussian one.
    lower_bound_ : float
        On the log-likelihood, in nats.
    n_iter_, converged_, n_features_in_, feature_names_in_
        As of :class:`FastICA`.

    Notes
    -----
    Only heavy tails are modeled; a `CovaryWarning` names sources that have light ones. To fill gaps, `FactorAnalysis`
    is as exact and its intervals cover what they promise; these are narrow: of 95 % about 92 %.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import NoisyICA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.laplace(size=(500, 2)) @ rng.normal(size=(2, 5)) + 0.3 * rng.normal(size=(500, 5))
    >>> X[::7, 1] = np.nan
    >>> ica = NoisyICA(2).fit(X)
    >>> ica.transform(X).shape, bool(np.isnan(ica.impute(X)).any())
    ((500, 2), False)
    """

    n_components: int | None = None
    _: KW_ONLY
    tied_noise: bool = False
    noise_floor: float = 0.005
    max_iter: int = 2000
    tol: float = 1e-8

    def _fit_rows(self, rows: Array) -> Self:
        floor = _options.number(self, "noise_floor")
        options = {"tied_noise": _options.switch(self, "tied_noise"), "noise_floor": 0.005 if floor is None else floor}
        request = _limits(self) | {"inference": "noisy", "options": options}
        return self._take(self._learned(rows, "ica", request), rows)  # type: ignore[arg-type]

    def _publish(self, model: _covary.Sources, rows: Array | None = None) -> None:
        super()._publish(model, rows)
        assert model.noise_variance is not None
        self.noise_variance_ = _table.like(model.noise_variance, self.mean_)

    @classmethod
    def _options_of(cls, model: _covary.Sources) -> dict[str, Any]:
        options = model.method[1]
        own = {"tied_noise": options["tied_noise"] == "true", "noise_floor": float(options["noise_floor"])}
        return super()._options_of(model) | own

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _limits(estimator: Any) -> dict[str, Any]:
    """The number of sources and the limits of the iteration that were given."""
    return {
        "n_components": _options.whole(estimator, "n_components", 1),
        "max_iterations": _options.whole(estimator, "max_iter", 1),
        "tolerance": _options.number(estimator, "tol"),
    }


__all__ = ["InfomaxICA", "NoisyICA", "Sources"]
