"""PCA by scikit-learn's conventions, with gaps."""

from __future__ import annotations

import copy
import os
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from . import _covary, _options, _table
from ._linear import FAMILIES, LinearGaussian
from ._threads import n_threads
from .exceptions import ComponentsError, OptionError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from typing_extensions import Self

    from ._linear import Array

_SOLVERS = ("auto", "full", "covariance_eigh", "arpack", "randomized")


class _Principal(LinearGaussian):
    """What PCA and IncrementalPCA share: projections, in the units of the table."""

    _principal: _covary.Principal
    whiten: bool

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

    def transform(self, X: ArrayLike, return_cov: bool = False) -> Any:
        """Project rows on the principal axes, in the units of the table.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows. A gap (NaN) enters by its conditional mean given the row's observed cells.
        return_cov : bool, default=False
            Also return how sure the scores of rows with gaps are.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_components)
            Projections; divided by their standard deviations if `whiten`.
        covariances : ndarray of shape (n_samples, n_components, n_components)
            Covariance of each row's scores given its observed cells, 0 for complete rows; only if
            `return_cov`.
        """
        check_is_fitted(self)
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

    def inverse_transform(self, X: ArrayLike) -> Array:
        """Rows from scores: ``X @ components_ + mean_``, whitening undone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Scores.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
            The rows they stand for.
        """
        check_is_fitted(self)
        scores = _table.array(X)
        rows = self._principal.decode(scores.astype(np.float64, copy=False), self.whiten)
        return _table.like(rows, scores)

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


class PCA(_Principal):
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
    n_features_in_ : int
        Columns of the table.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if they had any.

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

    def __init__(
        self,
        n_components: int | float | str | None = None,
        *,
        copy: bool = True,
        whiten: bool = False,
        svd_solver: str = "auto",
        tol: float = 0.0,
        iterated_power: int | str = "auto",
        n_oversamples: int = 10,
        power_iteration_normalizer: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.copy = copy
        self.whiten = whiten
        self.svd_solver = svd_solver
        self.tol = tol
        self.iterated_power = iterated_power
        self.n_oversamples = n_oversamples
        self.power_iteration_normalizer = power_iteration_normalizer
        self.random_state = random_state

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

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Find the principal components of a table.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The table; NaN where a cell is missing (of a dense one).
        y : None
            Ignored.

        Returns
        -------
        self : PCA
            The fitted estimator.
        """
        solver = _options.word(self, "svd_solver", _SOLVERS) or "auto"
        _options.switch(self, "whiten")
        if sparse.issparse(X) and solver not in ("auto", "arpack", "covariance_eigh"):
            raise TypeError(
                'PCA only support sparse inputs with the "arpack" and "covariance_eigh" solvers, while '
                f'"{solver}" was passed. See TruncatedSVD for a possible alternative.'
            )
        return self._fit_rows(_table.table(self, X, reset=True, accept_sparse=["csr", "csc"]))

    def _fit_rows(self, rows: Any) -> Self:
        solver, tol = self.svd_solver, _options.number(self, "tol")
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

    def _publish(self, model: _covary.Model, X: Array | None) -> None:
        found = model.principal()
        self._publish_principal(found, found.mean)
        self._density = model
        self.noise_variance_ = model.noise_variance
        self.n_samples_ = model.n_rows
        self._publish_report(model)
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


class IncrementalPCA(_Principal):
    """scikit-learn's IncrementalPCA: principal components batch by batch; gaps are welcome.

    Parameters
    ----------
    n_components : int or None, default=None
        How many components; the smaller side of the first batch if None.
    whiten : bool, default=False
        Divide scores by their standard deviations.
    copy : bool, default=True
        Of no effect: the table is never changed.
    batch_size : int or None, default=None
        Rows that :meth:`fit` takes at a time; five times the columns if None.

    Attributes
    ----------
    components_, explained_variance_, explained_variance_ratio_, singular_values_, mean_, n_components_, \
noise_variance_, loadings_, n_features_in_, feature_names_in_
        As of :class:`PCA`, of the rows seen so far.
    var_ : ndarray of shape (n_features,)
        Variance of each column, divisor n.
    n_samples_seen_ : int
        Rows with an observed cell seen so far.
    batch_size_ : int
        Rows at a time in :meth:`fit`.

    See Also
    --------
    PCA : The whole table at once.

    Notes
    -----
    A batch with gaps enters by its expected moments under the model of the rows seen so far (online
    EM); the first by those of its own fit. Complete batches are merged exactly as in scikit-learn.

    `noise_variance_` is the mean variance that the components leave of all rows seen, as of :class:`PCA`;
    `get_covariance` and `score_samples` rest on it, and gaps are filled by it. scikit-learn counts only what
    the last merge left out, which falls as batches come. Before there are more rows than components and one,
    nothing shows the noise, and gaps are filled with 5 % of the mean variance.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import IncrementalPCA
    >>> X = np.random.default_rng(0).normal(size=(300, 5)) * [5, 4, 1, 1, 1]
    >>> stream = IncrementalPCA(n_components=2)
    >>> for batch in np.split(X, 3):
    ...     stream = stream.partial_fit(batch)
    >>> stream.n_samples_seen_, stream.components_.shape
    (300, (2, 5))
    """

    _family = "pca"
    _stream: _covary.Stream

    def __init__(
        self,
        n_components: int | None = None,
        *,
        whiten: bool = False,
        copy: bool = True,
        batch_size: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.whiten = whiten
        self.copy = copy
        self.batch_size = batch_size

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Find the components of a table, `batch_size` rows at a time.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The table; NaN where a cell is missing (of a dense one).
        y : None
            Ignored.

        Returns
        -------
        self : IncrementalPCA
            The fitted estimator.
        """
        return self._fit_rows(_table.table(self, X, reset=True, accept_sparse=["csr", "csc", "lil"]))

    def _fit_rows(self, rows: Any) -> Self:
        size = _options.whole(self, "batch_size", 1)
        if sparse.issparse(rows) and rows.format != "csr":
            rows = rows.tocsr()
        self.__dict__.pop("_stream", None)
        n, d = rows.shape
        self.batch_size_ = 5 * d if size is None else size
        for batch in gen_batches(n, self.batch_size_, min_batch_size=self.n_components or 0):
            part = rows[batch]
            self._take(np.ascontiguousarray(part.toarray() if sparse.issparse(part) else part))
        return self

    def partial_fit(self, X: ArrayLike, y: Any = None, check_input: bool = True) -> Self:
        """Learn from a batch of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The batch; NaN where a cell is missing. The first needs as many rows as components.
        y : None
            Ignored.
        check_input : bool, default=True
            Of no effect: checking costs little.

        Returns
        -------
        self : IncrementalPCA
            The estimator, with what it knows now.
        """
        if sparse.issparse(X):
            raise TypeError(
                "IncrementalPCA.partial_fit does not support sparse input. Either convert data to dense or "
                "use IncrementalPCA.fit to do so in batches."
            )
        first = "_stream" not in self.__dict__
        rows = _table.table(self, X, reset=first, least=1)
        self._take(rows)
        return self

    def _take(self, rows: Array) -> None:
        n, d = rows.shape
        _options.switch(self, "whiten")
        asked = _options.whole(self, "n_components", 1)
        first = "_stream" not in self.__dict__
        if asked is not None and asked > d:
            raise ComponentsError(
                f"n_components={asked} invalid for n_features={d}, need more rows than columns for "
                "IncrementalPCA processing"
            )
        if asked is not None and first and asked > n:
            raise ComponentsError(
                f"n_components={asked} must be less or equal to the batch number of samples {n} for the "
                "first partial_fit call."
            )
        if not first and asked is not None and asked != self.n_components_:
            raise ComponentsError(
                f"n_components was {self.n_components_} when the first batch came and is {asked} now: it "
                "cannot change between batches"
            )
        stream = _covary.Stream(asked) if first else self._stream
        names = _table.names(self)
        stream.take(rows, names, n_threads())
        self._stream = stream
        self._publish_principal(stream.principal(names), rows)
        self.singular_values_ = _table.like(stream.singular_values(), rows)
        self.var_ = _table.like(stream.variances(), rows)
        self.n_samples_seen_ = self._principal.n_rows

    def __sklearn_is_fitted__(self) -> bool:
        return "_stream" in self.__dict__

    def _projected(self, rows: Array) -> Array:
        return self._stream.transform(rows, self.whiten, n_threads())

    def _filled(self, rows: Array, *, own: bool, return_std: bool) -> Any:
        values, std = self._stream.impute(rows, n_threads())
        filled = _table.like(values, rows)
        return (filled, _table.like(std, rows)) if return_std else filled

    def save(self, path: str | os.PathLike[str]) -> None:
        """Not for a stream: a model file would not go on. Pickle it instead.

        Parameters
        ----------
        path : path-like
            Of no effect.
        """
        raise OptionError("a model file cannot keep a stream of batches: pickle it, or fit PCA and save that")

    def __deepcopy__(self, memo: Any) -> Self:
        # The stream goes on from here in both.
        twin = self.__class__.__new__(self.__class__)
        memo[id(self)] = twin
        twin.__dict__.update({name: copy.deepcopy(value, memo) for name, value in self.__dict__.items()})
        return twin

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


FAMILIES["pca"] = PCA
__all__ = ["PCA", "IncrementalPCA"]
