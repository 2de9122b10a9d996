"""Probabilistic PCA of rows with heavy tails."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from . import _covary, _options, _table
from ._linear import Standardizing
from ._threads import n_threads

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ._fitted import Array


@dataclass(eq=False, repr=False)
class StudentPPCA(Standardizing):
    """Probabilistic PCA of rows with heavy tails, exact with missing cells.

    Rows are multivariate t: each is as of :class:`PPCA`, with all variances divided by a number of its own, u, of which
    nothing is known but that it is Gamma(df/2, df/2). An outlier is a row of small u, and counts that much in the
    fit.

    Parameters
    ----------
    n_components : int, float or "auto", default="auto"
        How many components. "auto" takes the fewest of 0 to 8 that predict hidden cells as well as
        the best; a float between 0 and 1 the fewest that explain more than this share of the
        variance.
    df : float or None, default=None
        Degrees of freedom; the fewer, the heavier the tails. None is the most likely number from 0.2 to 1000, or
        infinity where the rows are a Gaussian's.
    standardize : bool, default=True
        Give every column unit variance before fitting, so that units do not matter. Results are in
        the units of the table either way.
    max_iter : int or None, default=None
        Most steps; None is 2000.
    tol : float or None, default=None
        Stop when the log-likelihood is expected to rise by less than this many nats; None is 1e-6.
    random_state : int, RandomState instance or None, default=None
        Seed of what is left to chance (which cells "auto" hides). None is 0: runs repeat themselves.
    verbose : bool or int, default=False
        Tell on standard error how far a long fit is.

    Attributes
    ----------
    df_ : float
        Degrees of freedom of the rows.
    weights_ : ndarray of shape (n_samples,)
        How much each row of the table counted, about 1 or far less; :meth:`weights` has those of other rows. Not kept
        in a model file.
    components_, loadings_, mean_, noise_variance_, explained_variance_, explained_variance_ratio_, \
singular_values_, n_components_, log_likelihood_, trace_, n_iter_, converged_, n_features_in_, feature_names_in_
        As of :class:`PPCA`, variances being those of a row with u = 1. The covariance of all rows is df/(df - 2) times
        that, if df is above 2.

    See Also
    --------
    PPCA : The same with rows that are a Gaussian's.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import StudentPPCA
    >>> rng = np.random.default_rng(0)
    >>> X = np.outer(rng.normal(size=100), [1, 2, 3, 4]) + 0.3 * rng.normal(size=(100, 4))
    >>> X[:5] = 40 * rng.normal(size=(5, 4))
    >>> model = StudentPPCA(n_components=1, standardize=False).fit(X)
    >>> bool(model.weights_[:5].max() < 0.05 < model.weights_[5:].min())
    True
    >>> axis = np.array([1, 2, 3, 4]) / np.sqrt(30)
    >>> bool(model.components_[0] @ axis > 0.99)
    True
    """

    _family = "tppca"

    n_components: int | float | str = "auto"
    _: KW_ONLY
    df: float | None = None
    standardize: bool = True
    max_iter: int | None = None
    tol: float | None = None
    random_state: Any = None
    verbose: bool | int = False

    def _own_request(self) -> dict[str, Any]:
        df = _options.number(self, "df")
        return {"options": None if df is None else {"degrees_of_freedom": df}}

    def _publish(self, model: _covary.Model, rows: Array | None = None) -> None:
        super()._publish(model, rows)
        self.df_ = model.tails["degrees_of_freedom"]
        self.__dict__.pop("weights_", None)
        if rows is not None:
            self.weights_ = _table.like(model.row_weights(rows, n_threads()), rows)

    def weights(self, X: ArrayLike) -> Array:
        """How much each row would count: far below 1 for an outlier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN where a cell is missing.

        Returns
        -------
        weights : ndarray of shape (n_samples,)
            ``(df_ + m) / (df_ + d2)``, m being the observed cells of the row and d2 its squared Mahalanobis distance.
        """
        rows = self._rows(X)
        return _table.like(self._model.row_weights(rows, n_threads()), rows)

    @classmethod
    def _options_of(cls, model: _covary.Model) -> dict[str, Any]:
        df = model.method[1]["degrees_of_freedom"]
        return super()._options_of(model) | {"df": None if df == "estimated" else float(df)}


__all__ = ["StudentPPCA"]
