"""Factor analysis with scikit-learn's interface, with gaps and rotations."""

from __future__ import annotations

import json
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _covary, _options, _table
from ._linear import LinearGaussian
from ._online import Online
from ._rows import Rows
from .exceptions import ComponentsError, DataError, OptionError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from typing_extensions import Self

    from ._fitted import Array

_ROTATIONS = (None, "varimax", "quartimax", "equamax", "promax", "oblimin")


@dataclass(eq=False, repr=False)
class FactorAnalysis(Online, LinearGaussian):
    """scikit-learn's FactorAnalysis at the maximum of the likelihood; gaps and rotations are welcome.

    Every column has a noise variance of its own. scikit-learn's own numbers, which may be far from the maximum
    where columns have different units, are those of ``inference="fixed_point"``.

    Parameters
    ----------
    n_components : int or None, default=None
        How many factors. None is as many as can be identified, and as many as columns for "fixed_point". More
        than can be identified are fitted with a warning: their loadings are one choice of many.
    tol : float, default=1e-2
        Stop when the log-likelihood rises by less than this many nats (with gaps: by an estimated this many
        until the end). 0 makes `max_iter` steps. Of no effect for "newton" of a complete table, which goes on
        until the gradient vanishes.
    copy : bool, default=True
        Of no effect: the table is never changed.
    max_iter : int, default=1000
        Most steps.
    noise_variance_init : array-like of shape (n_features,) or None, default=None
        Noise variances to start from. None is 1 each for "fixed_point", and for "newton" those of Jöreskog
        (1967), with random ones besides where the end is doubtful. Of no effect with gaps.
    svd_method : {"lapack", "randomized"}, default="randomized"
        Of no effect: decompositions are exact.
    iterated_power : int, default=3
        Of no effect, for scikit-learn's signature.
    rotation : {"varimax", "quartimax", "equamax", "promax", "oblimin"} or None, default=None
        How the loadings are turned for the reader; scores turn with them. "varimax" and "quartimax" are
        those of scikit-learn (no weights); "equamax", "promax" (power 4) and "oblimin" (γ = 0) work on
        loadings in standard deviations.
    random_state : int, RandomState instance or None, default=0
        Seed of the starts of a fit and of a rotation.
    inference : {"newton", "fixed_point"}, default="newton"
        How a complete table is fitted. "newton" finds the maximum of the likelihood, whatever the units of the
        columns; no noise variance is below 0.005 of its column's variance (a Heywood case, which is warned
        of), and columns that never vary are set aside. "fixed_point" makes scikit-learn's steps and gives its
        numbers, constant columns included. A table with gaps is fitted by EM in either case.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        ``loadings_.T``: not orthonormal, as in scikit-learn.
    loadings_ : ndarray of shape (n_features, n_components)
        W, turned if a rotation was asked for.
    factor_correlations_ : ndarray of shape (n_components, n_components)
        Of turned factors; the identity for orthogonal rotations. Only with `rotation`.
    noise_variance_ : ndarray of shape (n_features,)
        ψ, the noise variance of each column.
    fit_statistics_ : dict or None
        Whether the factors fit: ``chi_square`` (with Bartlett's ``correction``, as R's factanal has it; with gaps
        the likelihood ratio against an unrestricted Gaussian), ``degrees_of_freedom``, ``p_value`` (None, and why
        in ``untested``, where there is none), ``rmsea`` with its 90 % interval ``rmsea_lower`` and
        ``rmsea_upper``, ``tli``, ``cfi``, ``srmr``, ``aic``, ``bic``, as R's lavaan has them. Worked out when it is
        first asked for, as are the next two.
    communalities_ : ndarray of shape (n_features,)
        Share of the variance of each column that the factors explain; NaN of a column that never varied.
    uniquenesses_ : ndarray of shape (n_features,)
        ``1 - communalities_``.
    mean_ : ndarray of shape (n_features,)
        The mean.
    loglike_ : list of float
        The log-likelihood at each step.
    log_likelihood_ : float
        The log-likelihood of the fitted model.
    n_iter_ : int
        Steps taken.
    converged_ : bool
        Whether the stopping rule was met.
    explained_variance_, explained_variance_ratio_, singular_values_, trace_, n_components_, \
n_features_in_, feature_names_in_
        As of :class:`PPCA`.

    See Also
    --------
    PPCA : One noise variance for all columns.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import FactorAnalysis
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 6)) + 0.3 * rng.normal(size=(300, 6))
    >>> X[rng.random(X.shape) < 0.1] = np.nan
    >>> FactorAnalysis(n_components=2, rotation="varimax").fit_transform(X).shape
    (300, 2)
    """

    _family = "fa"
    _by_passes = True
    _when_asked = LinearGaussian._when_asked | {"fit_statistics_", "communalities_", "uniquenesses_"}

    n_components: int | None = None
    _: KW_ONLY
    tol: float = 1e-2
    copy: bool = True
    max_iter: int = 1000
    noise_variance_init: ArrayLike | None = None
    svd_method: str = "randomized"
    iterated_power: int = 3
    rotation: str | None = None
    random_state: Any = 0
    inference: str = "newton"

    def fit_covariance(self, S: ArrayLike, n_rows: int, *, kind: str | None = None) -> Self:
        """Fit to a covariance or correlation matrix in place of a table.

        The means are not known then: loadings, communalities and fit statistics can be had; scores, densities and
        imputed values cannot, and say so.

        Parameters
        ----------
        S : array-like of shape (n_features, n_features)
            The matrix. One triangle will do, NaN in the other.
        n_rows : int
            How many rows it was computed from.
        kind : {"covariance", "correlation"} or None, default=None
            "covariance" has the divisor ``n_rows - 1``, as of :func:`numpy.cov`; "correlation" has ones on its
            diagonal, and None is that where they are.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        rows = _table.matrix(self, S)
        if isinstance(n_rows, bool) or not isinstance(n_rows, (int, np.integer)) or n_rows < 2:
            raise OptionError(f"n_rows must be a whole number from 2, got {n_rows!r}")
        if kind not in (None, "covariance", "correlation"):
            raise OptionError(f'kind must be "covariance", "correlation" or None, got {kind!r}')
        if _options.word(self, "inference", ("newton", "fixed_point")) != "newton":
            raise OptionError('a matrix is fitted by inference="newton"')
        if kind is None:
            unit = rows.shape[0] == rows.shape[1] and bool((np.diagonal(rows) == 1.0).all())
            kind = "correlation" if unit else "covariance"
        request = self._request(rows) | {"inference": "newton", "matrix": (kind, int(n_rows))}
        return self._take(self._learned(rows, self._family, request), rows)

    def _request(self, rows: Array) -> _covary.Request:
        """What every way of fitting asks for."""
        asked, d = _options.whole(self, "n_components"), rows.shape[1]
        if asked is not None and asked > d:
            raise ComponentsError(f"{asked} components are too many for {d} columns: ask for at most {d}")
        rotation = _options.word(self, "rotation", _ROTATIONS)
        return {
            "n_components": asked if asked is not None else "identified",
            "allow_unidentified": asked is not None,
            # Factors are the same whatever the units; their shares of variance are those of the columns as they came.
            "standardize": False,
            "max_iterations": _options.whole(self, "max_iter", 1),
            "rotation": rotation,
            # Theirs has no weights, and stops early.
            "in_steps": rotation in ("varimax", "quartimax"),
            "seed": _table.seed_of(self.random_state),
        }

    def _fit_rows(self, rows: Array) -> Self:
        _options.word(self, "svd_method", ("lapack", "randomized"))
        start = None
        if self.noise_variance_init is not None:
            start = np.asarray(_table.unmasked(self.noise_variance_init), dtype=np.float64).ravel().tolist()
            if len(start) != rows.shape[1]:
                raise DataError(
                    "noise_variance_init dimension does not with number of features : "
                    f"{len(start)} != {rows.shape[1]}"
                )
        theirs = _options.word(self, "inference", ("newton", "fixed_point")) == "fixed_point"
        asked, d = _options.whole(self, "n_components"), rows.shape[1]
        request, tol = self._request(rows), _options.number(self, "tol")
        # Passes give sums for EM, and the method must be known before the first of them.
        if isinstance(rows, Rows) or np.isnan(rows).any():
            request |= {"inference": "em", "tolerance": tol}
        elif theirs:
            request |= {
                "inference": "fixed-point",
                "tolerance": tol,
                "n_components": d if asked is None else asked,
                "allow_unidentified": True,
                "noise_floor": 0.0,
                "noise_start": start,
                "as_is": True,
            }
        else:
            request |= {"inference": "newton", "noise_start": start}
        return self._take(self._learned(rows, self._family, request), rows)

    def _stream_options(self) -> bool:
        if _options.word(self, "rotation", _ROTATIONS) is not None:
            raise OptionError("the factors of a stream are not turned from block to block: leave rotation at None")
        if _options.word(self, "inference", ("newton", "fixed_point")) == "fixed_point":
            raise OptionError('inference="fixed_point" fits a whole table: a stream goes by EM')
        return False

    def _publish(self, model: _covary.Model, rows: Array | None = None) -> None:
        super()._publish(model, rows)
        self.components_ = np.ascontiguousarray(self.loadings_.T)
        self.loglike_ = self.trace_.tolist()
        if model.method[0] == "fixed-point":
            self.n_iter_ = len(self.loglike_)
        self.__dict__.pop("factor_correlations_", None)
        correlations = model.factor_correlations
        if correlations is not None:
            self.factor_correlations_ = correlations

    def _work_out(self, name: str) -> Any:
        if name not in ("fit_statistics_", "communalities_", "uniquenesses_"):
            return super()._work_out(name)
        found = json.loads(self._model.describe()).get("fit_statistics")
        if name == "fit_statistics_":
            return found and {key: value for key, value in found.items() if not isinstance(value, dict)}
        # Of a fit that is not tested, too: the model's own shares.
        noise, variances = np.asarray(self.noise_variance_, dtype=np.float64), self._model.variances
        unique = np.divide(noise, variances, out=np.full(len(noise), np.nan), where=variances > 0.0)
        return unique if name == "uniquenesses_" else 1.0 - unique

    @classmethod
    def _options_of(cls, model: _covary.Model) -> dict[str, Any]:
        theirs = model.method[0] == "fixed-point"
        asked = {"n_components": model.n_components, "rotation": model.rotation}
        return {**asked, "inference": "fixed_point" if theirs else "newton"}


__all__ = ["FactorAnalysis"]
