"""PCA by scikit-learn's conventions, with gaps."""

from __future__ import annotations

import os
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from . import _covary, _options, _table
from ._linear import LinearGaussian
from ._threads import n_threads
from .exceptions import ComponentsError, OptionError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from typing_extensions import Self

    from ._fitted import Array

_SOLVERS = ("auto", "full", "covariance_eigh", "arpack", "randomized")


class Principal(LinearGaussian):
    """What PCA and IncrementalPCA share: projections, in the units of the table."""

    _fills = False

    _principal: _covary.Principal
    #: The sparse matrices that are taken.
    _formats: tuple[str, ...] = ("csr", "csc")
    whiten: bool

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Find the principal components of a table; :class:`IncrementalPCA` takes `batch_size` rows at a time.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The table; NaN where a cell is missing (of a dense one).
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit_rows(_table.table(self, X, reset=True, accept_sparse=self._formats))

    def _publish_principal(self, found: _covary.Principal, rows: Any) -> None:
        self._principal = found
        self.__dict__.pop("_density", None)
        self.mean_ = _table.like(found.mean, rows)
        self.components_ = _table.like(found.components, rows)
        self.loadings_ = _table.like(found.loadings, rows)
        self.explained_variance_ = _table.like(found.explained_variance, rows)
        self.explained_variance_ratio_ = _table.like(found.explained_variance_ratio, rows)
        self.singular_values_ = _table.like(found.singular_values, rows)
        self.noise_variance_ = found.noise_variance
        self.n_components_ = len(self.components_)

    @property
    def _model(self) -> _covary.Model:  # type: ignore[override]
        """The density, made when it is first asked for."""
        if "_density" not in self.__dict__:
            self._density = self._principal.model()
        return self._density

    def __sklearn_is_fitted__(self) -> bool:
        return "_principal" in self.__dict__

    def _projected(self, rows: Array) -> Array:
        return self._principal.transform(rows, self.whiten, n_threads())

    def transform(
        self, X: ArrayLike, return_cov: bool = False, *, draw: bool = False, random_state: Any = None
    ) -> Any:
        """Project rows on the principal axes, in the units of the table, or draw their latent scores.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows. A gap (NaN) enters by its conditional mean given the row's observed cells.
        return_cov : bool, default=False
            Also return how certain the scores of rows with gaps are.
        draw : bool, default=False
            Draw each row's latent vector from p(x | t), as ``covary transform --draw`` does. A projection is certain
            for a complete row; a draw is of the posterior scores of probabilistic PCA, in units of their prior
            standard deviation whatever `whiten` is.
        random_state : int, RandomState instance or None, default=None
            Seed of the draw; None is 0.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_components)
            Projections; divided by their standard deviations if `whiten`. Or draws.
        covariances : ndarray of shape (n_samples, n_components, n_components)
            Covariance of each row's scores given its observed cells, 0 for complete rows; only if
            `return_cov`.
        """
        check_is_fitted(self)
        if draw and return_cov:
            raise ValueError("return_cov is of projections, draw of posterior scores: ask for one of them")
        if draw:
            rows = _table.table(self, X, reset=False)
            return _table.like(self._model.draw_scores(rows, _table.seed_of(random_state), n_threads()), rows)
        if sparse.issparse(X):
            if return_cov:
                raise ValueError("a sparse table has no gaps, so its scores are certain: leave out return_cov")
            return self._sparse_scores(X)
        rows = _table.table(self, X, reset=False)
        scores = _table.like(self._projected(rows), rows)
        if not return_cov:
            return scores
        covariances = self._model.projection_covariances(
            rows, self._principal.components, n_threads()
        )
        if self.whiten:
            scale = np.sqrt(self._principal.explained_variance)
            covariances = covariances / (scale[:, None] * scale[None, :])
        return scores, _table.like(covariances, rows)

    def _sparse_scores(self, X: Any) -> Array:
        rows = _table.table(self, X, reset=False, accept_sparse="csr")
        return _table.like(
            self._principal.transform_sparse(_table.compressed(rows), self.whiten, n_threads()), rows
        )

    def inverse_transform(self, X: ArrayLike, *, draw: bool = False, random_state: Any = None) -> Array:
        """Rows from scores: ``X @ components_ + mean_``, whitening undone, or a draw with noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Scores; posterior scores, such as those of ``transform(..., draw=True)``, if `draw`.
        draw : bool, default=False
            Draw each row from p(t | x), with noise, as ``covary reconstruct --from-scores --coordinates posterior
            --draw`` does.
        random_state : int, RandomState instance or None, default=None
            Seed of the draw; None is 0.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
            The rows they stand for.
        """
        check_is_fitted(self)
        scores = _table.array(X)
        numbers = scores.astype(np.float64, copy=False)
        if draw:
            return _table.like(self._model.decode(numbers, _table.seed_of(random_state)), scores)
        return _table.like(self._principal.decode(numbers, self.whiten), scores)

    def get_covariance(self) -> Array:
        """Covariance of a row under the model, components and noise.

        Returns
        -------
        covariance : ndarray of shape (n_features, n_features)
            ``components_.T @ diag(explained_variance_ - noise_variance_) @ components_`` plus the noise
            on its diagonal.
        """
        check_is_fitted(self)
        return self._principal.covariance()


@dataclass(eq=False, repr=False)
class PCA(Principal):
    """scikit-learn's PCA: the same signature, attributes and numbers, and gaps are welcome.

    Parameters
    ----------
    n_components : int, float, "mle" or None, default=None
        How many components: all of them if None; the fewest that explain more than this share of the
        variance if between 0 and 1; the most probable number (Minka 2000) if "mle".
    copy : bool, default=True
        Of no effect: the table is never changed, nor copied.
    whiten : bool, default=False
        Divide scores by their standard deviations.
    svd_solver : {"auto", "full", "covariance_eigh", "arpack", "randomized"}, default="auto"
        Which decomposition. All are exact here: "arpack" and "randomized" ask for the leading
        components by the fastest way. As in scikit-learn, they cannot take every `n_components`.
    tol : float, default=0.0
        Of no effect on complete tables. With gaps the fit ends when the log-likelihood is expected to
        rise by less than this many nats; 0 is 1e-6.
    iterated_power, n_oversamples, power_iteration_normalizer : default="auto", 10, "auto"
        Of no effect, for scikit-learn's signature.
    random_state : int, RandomState instance or None, default=None
        Seed of the start of iterations, which does not show in the result.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal axes by decreasing variance; in each the entry of largest absolute value is positive.
    explained_variance_ : ndarray of shape (n_components,)
        Variance along each axis, divisor n - 1.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Its share of the total.
    singular_values_ : ndarray of shape (n_components,)
        Those of the centered table.
    mean_ : ndarray of shape (n_features,)
        Mean of each column; with gaps, as the model sees it.
    n_components_ : int
        How many components there are.
    n_samples_ : int
        Rows with an observed cell.
    noise_variance_ : float
        Mean variance of the directions beyond the components.
    loadings_ : ndarray of shape (n_features, n_components)
        Axes times the standard deviation they explain beyond the noise.
    log_likelihood_ : float
        Of the observed cells, in nats; NaN where the components leave no noise.
    n_iter_ : int
        Steps of the fit with gaps; 1 for the closed form.
    n_features_in_, feature_names_in_
        As of :class:`PPCA`.

    See Also
    --------
    PPCA : By maximum likelihood, with posterior scores and a choice of the number of components.
    IncrementalPCA : Batch by batch.

    Notes
    -----
    With gaps the components are those of probabilistic PCA by EM, which become the complete ones as
    the gaps vanish.

    `get_covariance`, `get_precision` and the scores of rows do not depend on `whiten`. scikit-learn's
    do: with ``whiten=True`` they multiply axes by standard deviations twice, and are not those of the
    table.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import PCA
    >>> X = np.array([[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]])
    >>> pca = PCA(n_components=2).fit(X)
    >>> print(pca.explained_variance_ratio_.round(4), pca.singular_values_.round(4))
    [0.9924 0.0076] [6.3006 0.5498]
    >>> gaps = X.astype(float)
    >>> gaps[0, 1] = np.nan
    >>> PCA(n_components=1).fit(gaps).components_.round(1)
    array([[0.8, 0.5]])
    """

    _family = "pca"

    n_components: int | float | str | None = None
    _: KW_ONLY
    copy: bool = True
    whiten: bool = False
    svd_solver: str = "auto"
    tol: float = 0.0
    iterated_power: int | str = "auto"
    n_oversamples: int = 10
    power_iteration_normalizer: str = "auto"
    random_state: Any = None

    def _asked(self, n: int, d: int, solver: str) -> Any:
        """`n_components`, held against the table and the solver as scikit-learn does."""
        asked, most = self.n_components, min(n, d)
        truncated = solver in ("arpack", "randomized")
        if asked is None:
            return most - 1 if solver == "arpack" else (most if truncated else None)
        if isinstance(asked, str):
            if asked != "mle":
                raise _options.refuse(self, "n_components", asked, "a number, 'mle' or None")
            if truncated:
                raise ComponentsError(f"n_components='mle' cannot be a string with svd_solver={solver!r}")
            if n < d:
                raise ComponentsError("n_components='mle' is only supported if n_samples >= n_features")
            return asked
        if isinstance(asked, bool) or not isinstance(asked, Real):
            raise _options.refuse(self, "n_components", asked, "a number, 'mle' or None")
        if isinstance(asked, Integral):
            least = 1 if truncated else 0
            if not least <= asked <= most:
                raise ComponentsError(
                    f"n_components={asked} must be between {least} and min(n_samples, n_features)={most} "
                    f"with svd_solver={solver!r}"
                )
            if solver == "arpack" and asked == most:
                raise ComponentsError(
                    f"n_components={asked} must be strictly less than min(n_samples, n_features)={most} "
                    "with svd_solver='arpack'"
                )
            return int(asked)
        if not 0.0 < asked < 1.0 or truncated:
            raise ComponentsError(
                f"n_components={asked} must be a whole number between 1 and min(n_samples, n_features)={most}"
                + (f" with svd_solver={solver!r}" if truncated else ", or a share between 0 and 1")
            )
        return float(asked)

    def _fit_rows(self, rows: Any) -> Self:
        solver, tol = _options.word(self, "svd_solver", _SOLVERS) or "auto", _options.number(self, "tol")
        _options.switch(self, "whiten")
        if sparse.issparse(rows) and solver not in ("auto", "arpack", "covariance_eigh"):
            raise TypeError(
                'PCA only support sparse inputs with the "arpack" and "covariance_eigh" solvers, while '
                f'"{solver}" was passed. See TruncatedSVD for a possible alternative.'
            )
        if solver == "auto" and sparse.issparse(rows):
            solver = "arpack"
        n, d = rows.shape
        asked = self._asked(n, d, solver)
        seed = _table.seed_of(self.random_state)
        names = _table.names(self)
        if sparse.issparse(rows):
            found = _covary.principal_sparse(
                _table.compressed(rows), names, asked, solver=solver, seed=seed, threads=n_threads()
            )
        else:
            found = _covary.principal(
                rows, names, asked, solver=solver, seed=seed, tolerance=tol or None, threads=n_threads()
            )
        self._publish_principal(found, rows)
        self.n_samples_ = found.n_rows
        self.n_iter_ = max(1, found.n_iterations)
        self.log_likelihood_ = np.nan if found.log_likelihood is None else found.log_likelihood
        return self

    # A model file holds the density alone: what it says of projections is said by it.

    def _publish(self, model: _covary.Model, rows: Array | None = None) -> None:
        found = model.principal()
        self._publish_principal(found, found.mean)
        self._density = model
        self.noise_variance_ = model.noise_variance
        self.n_samples_ = model.n_rows
        self.log_likelihood_ = np.nan if found.log_likelihood is None else found.log_likelihood
        self.trace_ = model.trace
        self.n_iter_, self.converged_ = max(1, model.n_iterations), model.converged
        self._loaded = True

    def _projected(self, rows: Array) -> Array:
        if self.__dict__.get("_loaded"):
            return self._model.transform(rows, "whitened" if self.whiten else "projection", n_threads())
        return super()._projected(rows)

    def save(self, path: str | os.PathLike[str]) -> None:
        check_is_fitted(self)
        if self.whiten:
            raise OptionError("a model file does not keep whiten=True: save one without, or pickle this one")
        if self._model.n_components != self.n_components_:
            raise ComponentsError(
                "all components leave no noise, and a model file needs some; fit fewer components to save"
            )
        super().save(path)

    save.__doc__ = LinearGaussian.save.__doc__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.svd_solver in ("auto", "arpack", "covariance_eigh")
        return tags


__all__ = ["PCA", "Principal"]
