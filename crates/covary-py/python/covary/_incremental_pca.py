"""Principal components batch by batch, with gaps."""

from __future__ import annotations

import copy
import os
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils import gen_batches

from . import _covary, _options, _table
from ._pca import Principal
from ._threads import n_threads
from .exceptions import ComponentsError, OptionError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from typing_extensions import Self

    from ._fitted import Array


@dataclass(eq=False, repr=False)
class IncrementalPCA(Principal):
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
    _formats = ("csr", "csc", "lil")
    _stream: _covary.Stream = field(init=False)

    n_components: int | None = None
    _: KW_ONLY
    whiten: bool = False
    copy: bool = True
    batch_size: int | None = None

    def _fit_rows(self, rows: Any) -> Self:
        size = _options.whole(self, "batch_size", 1)
        if sparse.issparse(rows) and rows.format != "csr":
            rows = rows.tocsr()
        self.__dict__.pop("_stream", None)
        n, d = rows.shape
        self.batch_size_ = 5 * d if size is None else size
        for batch in gen_batches(n, self.batch_size_, min_batch_size=self.n_components or 0):
            part = rows[batch]
            self._merge(np.ascontiguousarray(part.toarray() if sparse.issparse(part) else part))
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
        self._merge(rows)
        return self

    def _merge(self, rows: Array) -> None:
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


__all__ = ["IncrementalPCA"]
