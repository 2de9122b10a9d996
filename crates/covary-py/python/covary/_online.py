"""Models that are learned a block of rows at a time."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from . import _covary, _options, _table
from ._fitted import Fitted, below_columns
from ._threads import n_threads
from .exceptions import ComponentsError, CovaryWarning

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from typing_extensions import Self

    from ._fitted import Array


def _has_number(estimator: Any) -> bool:
    asked = estimator.n_components
    return isinstance(asked, (int, np.integer)) and not isinstance(asked, bool)


class Online(Fitted):
    """Those whose EM can go on from sums over the rows so far, which a stream keeps."""

    _online: _covary.Online
    _family: str
    n_components: Any

    @available_if(_has_number)  # type: ignore[misc, untyped-decorator, unused-ignore]
    def partial_fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Learn from a block of rows, and let it go.

        Each block moves the model by one step of EM, gaps integrated out; the first is fitted as a table. One pass over a
        table comes close to what :meth:`fit` gives; going through it again comes closer. `n_components` must be a number: without
        one there is no such method. `tol` and `max_iter` are of no effect.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The block; NaN where a cell is missing. Every column must have a value in the first, and vary where columns are
            standardized or have noise of their own.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The estimator, with what it knows now. `n_samples_seen_` is the number of rows so far, and
            `log_likelihood_` an estimate: each block's under the model that it met.
        """
        first = "_online" not in self.__dict__
        if first and "_model" in self.__dict__:
            warnings.warn(
                "partial_fit begins anew: it goes on from sums over the rows so far, which a model that was fitted or loaded does not keep",
                CovaryWarning,
                stacklevel=2,
            )
        rows = _table.table(self, X, reset=first, least=1)
        standardize = self._stream_options()
        asked = _options.whole(self, "n_components", 1)
        below_columns(asked, rows)
        if not first and asked != self.n_components_:
            raise ComponentsError(
                f"n_components was {self.n_components_} when the first block came and is {asked} now: it cannot change between blocks"
            )
        online = _covary.Online(self._family, int(self.n_components), standardize) if first else self._online
        online = online.take(rows, _table.names(self), n_threads())
        self._online = online
        self._publish(online.model(), rows)
        self.n_samples_seen_ = online.n_rows
        return self

    def _stream_options(self) -> bool:
        """Checks what a stream makes of the options; whether columns are standardized."""
        raise NotImplementedError

    def _learned(self, rows: Array, family: str, asked: _covary.Request, names: list[str] | None = None) -> Any:
        # What is fitted to a table is no stream.
        for name in ("_online", "n_samples_seen_"):
            self.__dict__.pop(name, None)
        return super()._learned(rows, family, asked, names)

    def __getattr__(self, name: str) -> Any:
        if name == "partial_fit":
            raise AttributeError(
                f"{type(self).__name__}.partial_fit needs a number of components, which a stream cannot choose: n_components is "
                f"{self.n_components!r}"
            )
        return super().__getattr__(name)


__all__ = ["Online"]
