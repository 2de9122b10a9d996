"""A Gaussian with a full covariance."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from . import _covary, _options
from ._linear import LinearGaussian

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._fitted import Array


@dataclass(eq=False, repr=False)
class Gaussian(LinearGaussian):
    """A Gaussian with a full covariance, exact with missing cells.

    Every column may depend on every other: PPCA with one component less than there are columns. A
    weak prior, as if `pseudo_rows` rows of uncorrelated columns had been seen too, keeps the
    covariance regular, also with fewer rows than columns. It fills gaps better than a few components
    do where rows are many or columns nearly determine each other, and needs memory and time for all
    pairs of columns; :class:`Imputer` uses it for up to 1000 columns.

    Parameters
    ----------
    pseudo_rows : float, default=5
        Weight of the prior; 0 is maximum likelihood and needs more rows than columns.
    standardize : bool, default=True
        Whether the uncorrelated columns of the prior have the variances of the table's columns, or
        else all the same one.
    max_iter : int or None, default=None
        Most steps; None is the default of the method.
    tol : float or None, default=None
        When to stop; None is the default of the method.
    verbose : bool or int, default=False
        Tell on standard error how far a long fit is.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        The mean.
    components_, loadings_, noise_variance_, explained_variance_, explained_variance_ratio_, \
singular_values_, n_components_, trace_, n_iter_, converged_, n_features_in_, feature_names_in_
        As of :class:`PPCA`.
    log_posterior_ : float
        Log-likelihood of the observed cells plus log-prior, in nats.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 4)) @ rng.normal(size=(4, 4))
    >>> X[rng.random(X.shape) < 0.1] = np.nan
    >>> Gaussian().fit(X).get_covariance().shape
    (4, 4)
    """

    _family = "gaussian"
    _by_passes = True

    pseudo_rows: float = 5.0
    _: KW_ONLY
    standardize: bool = True
    max_iter: int | None = None
    tol: float | None = None
    verbose: bool | int = False

    def _fit_rows(self, rows: Array) -> Self:
        return self._learn(
            rows,
            standardize=_options.switch(self, "standardize"),
            options={"pseudo_rows": _options.number(self, "pseudo_rows")},
            max_iterations=_options.whole(self, "max_iter", 1),
            tolerance=_options.number(self, "tol"),
        )

    @classmethod
    def _options_of(cls, model: _covary.Model) -> dict[str, Any]:
        return {"pseudo_rows": float(model.method[1]["pseudo_rows"]), "standardize": model.standardized}


__all__ = ["Gaussian"]
