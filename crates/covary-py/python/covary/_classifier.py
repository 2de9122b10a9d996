"""Classes of rows with a model each."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from . import _covary, _options, _table
from ._fitted import Scores, below_columns
from ._mixed import Mixed
from .exceptions import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from typing_extensions import Self

    from ._fitted import Array

#: The family of each class for each noise.
_FAMILIES = {"isotropic": "ppca", "diagonal": "fa"}


@dataclass(eq=False, repr=False)
class PPCAClassifier(ClassifierMixin, Scores, Mixed):
    """A probabilistic PCA for each class: quadratic discriminant analysis with few components and gaps.

    A row belongs to a class as far as its observed cells are probable under the class's model, and as
    the class is frequent.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Components of each class. "auto", or None, takes the fewest that predict hidden cells of the table as
        well as the best. One less than columns is quadratic discriminant analysis.
    noise : {"isotropic", "diagonal"}, default="isotropic"
        One noise variance for all columns of a class, or one for each (factor analysis).
    priors : array-like of shape (n_classes,), default=None
        How probable the classes are; None is as frequent as they were.
    standardize : bool, default=True
        Give every column of the table unit variance before fitting.
    verbose : bool or int, default=False
        Tell on standard error how far a long fit is.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    priors_ : ndarray of shape (n_classes,)
        Their probabilities.
    means_ : ndarray of shape (n_classes, n_features)
        Their means.
    loadings_ : ndarray of shape (n_classes, n_features, n_components)
        Their loadings.
    n_components_, n_features_in_, feature_names_in_
        As of :class:`PPCA`.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import PPCAClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["low", "high"], 50)
    >>> X = rng.normal(size=(100, 4)) + np.where(y == "high", 3.0, 0.0)[:, None]
    >>> X[rng.random(X.shape) < 0.2] = np.nan
    >>> PPCAClassifier(1).fit(X, y).predict([[3.1, np.nan, 2.8, np.nan]])
    array(['high'], dtype='<U4')
    """

    n_components: int | str | None = "auto"
    _: KW_ONLY
    noise: str = "isotropic"
    priors: ArrayLike | None = None
    standardize: bool = True
    verbose: bool | int = False

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:  # type: ignore[override]
        """Fit a model to the rows of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table; NaN where a cell is missing.
        y : array-like of shape (n_samples,)
            The class of each row.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if y is None:
            raise DataError("requires y to be passed, but the target y is None")
        rows = _table.table(self, X, reset=True)
        if np.ma.is_masked(y):
            raise DataError("y has masked labels: give the class of every row, or leave those rows out")
        given: Array = column_or_1d(y, warn=True)
        check_classification_targets(given)
        if len(given) != rows.shape[0]:
            raise DataError(f"X has {rows.shape[0]} rows and y {len(given)} labels: give one for each")
        self.classes_, labels = np.unique(given, return_inverse=True)
        if len(self.classes_) < 2:
            raise DataError(
                f"y holds {len(self.classes_)} class, {self.classes_[0]!r}: "
                "a classifier tells classes apart; give rows of two or more"
            )
        noise = _options.word(self, "noise", ("isotropic", "diagonal"))
        priors = None if self.priors is None else np.asarray(self.priors, dtype=np.float64).tolist()
        target, names = str(getattr(y, "name", None) or "class"), [str(name) for name in self.classes_]
        request: _covary.Request = {
            "n_components": below_columns(_options.size(self, "n_components", 0), rows),
            "classes": (target, names, labels.tolist(), priors),
            "standardize": _options.switch(self, "standardize"),
        }
        return self._take(self._learned(rows, _FAMILIES[str(noise)], request), rows)

    def _publish(self, model: _covary.Mixture, rows: Array | None = None) -> None:
        super()._publish(model)
        del self.weights_
        self.priors_ = model.weights
        self.n_components_ = model.n_components
        self.loadings_ = model.loadings
        if "classes_" not in self.__dict__:
            self.classes_ = _classes(model.classes or [])

    def _labels(self, places: Array) -> Array:
        found: Array = self.classes_[places]
        return found

    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Logarithms of :meth:`predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN where a cell is missing.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            Minus infinity where a probability is 0.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @classmethod
    def _options_of(cls, model: _covary.Mixture) -> dict[str, Any]:
        return {
            "n_components": model.n_components,
            "noise": model.noise,
            "standardize": model.standardized,
        }


def _classes(names: list[str]) -> Array:
    """Classes of a file, which keeps text: truths, whole numbers and numbers are such again.

    A code such as 007 is text, as its number would be written otherwise.
    """
    if set(names) <= {"False", "True"}:
        return np.asarray([name == "True" for name in names])
    whole = r"-?(0|[1-9]\d*)"
    for number, written in ((int, whole), (float, whole + r"(\.\d+)?(e[+-]?\d+)?")):
        if all(re.fullmatch(written, name, re.ASCII) for name in names):
            return np.asarray([number(name) for name in names])
    return np.asarray(names)


__all__ = ["PPCAClassifier"]
