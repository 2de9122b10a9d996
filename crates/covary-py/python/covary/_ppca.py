"""Probabilistic and Bayesian PCA."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from . import _covary, _options, _table
from ._linear import Standardizing
from ._online import Online
from ._threads import n_threads
from .exceptions import OptionError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ._fitted import Array


@dataclass(eq=False, repr=False)
class PPCA(Online, Standardizing):
    """Probabilistic PCA, exact with missing cells.

    A row is ``loadings_ @ x + mean_`` plus noise of one variance in all columns (of one variance in
    all standardized columns, by default), x standard normal. Gaps (NaN) are integrated out, never
    filled first.

    Parameters
    ----------
    n_components : int, float or "auto", default="auto"
        How many components. "auto" takes the fewest that predict hidden cells as well as
        the best; a float between 0 and 1 the fewest that explain more than this share of the
        variance.
    inference : {"spectral", "em"} or None, default=None
        "spectral" is the closed form for complete tables, "em" is exact with gaps; None takes the
        faster one that the table allows.
    standardize : bool, default=True
        Give every column unit variance before fitting, so that units do not matter. Results are in
        the units of the table either way.
    max_iter : int or None, default=None
        Most steps of "em"; None is 2000.
    tol : float or None, default=None
        Stop when the log-likelihood is expected to rise by less than this many nats; None is 1e-6.
    random_state : int, RandomState instance or None, default=None
        Seed of what is left to chance (which cells "auto" hides). None is 0: runs repeat themselves.
    verbose : bool or int, default=False
        Tell on standard error how far a long fit is.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal principal axes, by decreasing variance; in each the entry of largest absolute value
        is positive.
    loadings_ : ndarray of shape (n_features, n_components)
        W: columns per standard deviation of a latent coordinate.
    mean_ : ndarray of shape (n_features,)
        The mean, estimated from observed cells.
    noise_variance_ : float or ndarray of shape (n_features,)
        The noise variance; one per column if columns were standardized.
    explained_variance_ : ndarray of shape (n_components,)
        Variance of the fitted covariance along each axis (maximum likelihood: divisor n).
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Its share of the total.
    singular_values_ : ndarray of shape (n_components,)
        The square roots of n times `explained_variance_`.
    n_components_ : int
        How many components there are.
    log_likelihood_ : float
        Of the observed cells, in nats.
    trace_ : ndarray
        The log-likelihood after each step.
    n_iter_ : int
        Steps taken; 1 for the closed form.
    converged_ : bool
        Whether the stopping rule was met.
    n_features_in_ : int
        Columns of the table.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if they had any.

    See Also
    --------
    PCA : The same axes by scikit-learn's conventions.
    BayesianPCA : Intervals that include how uncertain the parameters are.

    Notes
    -----
    Columns that never vary are set aside: their loadings and noise are 0, and they do not count in
    log-densities.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import PPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(200, 6))
    >>> X[rng.random(X.shape) < 0.2] = np.nan
    >>> model = PPCA().fit(X)
    >>> model.n_components_
    2
    >>> filled, std = model.impute(X, return_std=True)
    >>> bool(np.isnan(filled).any())
    False
    """

    _family = "ppca"
    _by_passes = True

    n_components: int | float | str = "auto"
    _: KW_ONLY
    inference: str | None = None
    standardize: bool = True
    max_iter: int | None = None
    tol: float | None = None
    random_state: Any = None
    verbose: bool | int = False

    def _own_request(self) -> dict[str, Any]:
        return {"inference": _options.word(self, "inference", (None, "spectral", "em"))}

    def _stream_options(self) -> bool:
        if _options.word(self, "inference", (None, "spectral", "em")) == "spectral":
            raise OptionError('inference="spectral" fits a whole table: a stream goes by "em", or None')
        return _options.switch(self, "standardize")


@dataclass(eq=False, repr=False)
class BayesianPCA(Standardizing):
    """Bayesian PCA: components that are not needed are dropped, and intervals include that the
    parameters were estimated.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        The most components there may be; those the table does not support are dropped (but by
        "gibbs", which shrinks them). "auto" offers up to 30.
    inference : {"structured", "mean_field", "evidence", "gibbs"}, default="structured"
        "structured" and "mean_field" are variational, "evidence" is type-II maximum likelihood
        (intervals take the parameters as known), "gibbs" samples the posterior.
    standardize : bool, default=True
        Give every column unit variance before fitting. If all columns are in one unit and about as
        noisy, False finds components better.
    prior : dict or None, default=None
        Parameters of the prior and other options of the method by name, such as
        ``{"noise_rate": 0.01}`` or ``{"draws": 2000}``; `method_` lists them all.
    max_iter : int or None, default=None
        Most sweeps of a variational method; None is 500.
    tol : float or None, default=None
        Nats per cell that a sweep must add; None is 1e-7.
    random_state : int, RandomState instance or None, default=None
        Seed; None is 0.
    verbose : bool or int, default=False
        Tell on standard error how far a long fit is.

    Attributes
    ----------
    components_, loadings_, mean_, noise_variance_, explained_variance_, explained_variance_ratio_, \
singular_values_, n_components_, trace_, n_iter_, converged_, n_features_in_, feature_names_in_
        As of :class:`PPCA`, of the posterior mean.
    relevance_ : ndarray of shape (n_components,)
        E[α] of each component: large where it counts for little.
    lower_bound_ : float
        The variational bound in nats, every constant included ("structured", "mean_field").
    log_likelihood_ : float
        Averaged over draws ("gibbs").
    log_posterior_ : float
        Log-likelihood plus log-prior ("evidence").
    method_ : tuple of str and dict
        The method and all its options, as text.

    See Also
    --------
    PPCA : Maximum likelihood, which takes the fitted parameters as known.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import BayesianPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 10)) + 0.3 * rng.normal(size=(60, 10))
    >>> X[rng.random(X.shape) < 0.1] = np.nan
    >>> BayesianPCA(standardize=False).fit(X).n_components_
    3
    """

    _family = "bpca"
    _by_passes = True
    _share = False

    n_components: int | str = "auto"
    _: KW_ONLY
    inference: str = "structured"
    standardize: bool = True
    prior: dict[str, Any] | None = None
    max_iter: int | None = None
    tol: float | None = None
    random_state: Any = None
    verbose: bool | int = False

    def _own_request(self) -> dict[str, Any]:
        _options.word(self, "inference", ("structured", "mean_field", "evidence", "gibbs"))
        return {"inference": self.inference.replace("_", "-"), "options": self.prior}

    def _publish(self, model: _covary.Model, rows: Array | None = None) -> None:
        super()._publish(model, rows)
        self.method_ = model.method

    def predictive_log_density(
        self, X: ArrayLike, n_draws: int = 1000, random_state: Any = None, return_std: bool = False
    ) -> Any:
        """Log-density of each row with the parameters integrated out, by draws of them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN where a cell is missing.
        n_draws : int, default=1000
            Draws of the parameters; of no meaning after "gibbs", which brings its own.
        random_state : int, RandomState instance or None, default=None
            Seed; None is 0.
        return_std : bool, default=False
            Also return the Monte-Carlo standard errors.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            In nats.
        standard_error : ndarray of shape (n_samples,)
            Of the draws; NaN after "gibbs"; only if `return_std`.
        """
        rows = self._rows(X)
        if isinstance(n_draws, bool) or not 2 <= n_draws <= 1_000_000:
            raise OptionError(f"n_draws must be from 2 to 1000000, got {n_draws!r}")
        value, error = self._model.predictive_log_density(
            rows, int(n_draws), _table.seed_of(random_state), n_threads()
        )
        return (value, error) if return_std else value

    @classmethod
    def _options_of(cls, model: _covary.Model) -> dict[str, Any]:
        return super()._options_of(model) | {"inference": model.method[0].replace("-", "_")}


__all__ = ["PPCA", "BayesianPCA"]
