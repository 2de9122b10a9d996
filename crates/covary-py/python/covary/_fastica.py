"""FastICA by scikit-learn's conventions."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_array

from . import _covary, _options, _table
from ._ica import Sources
from .exceptions import CovaryWarning, OptionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike
    from typing_extensions import Self

    from ._fitted import Array


@dataclass(eq=False, repr=False)
class FastICA(Sources):
    """scikit-learn's FastICA: the same signature and fixed points, sources in one order and sign.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of sources; as many as the table has directions if None.
    algorithm : {"parallel", "deflation"}, default="parallel"
        All sources at once, or one after the other.
    whiten : {"unit-variance", "arbitrary-variance"} or False, default="unit-variance"
        Center and whiten the table first; sources then have variance 1, or 1 / n_samples. If False the table
        must be white already.
    fun : {"logcosh", "exp", "cube"} or callable, default="logcosh"
        What far from Gaussian means, or a function of the sources, of shape (n_components, n_samples) or for
        "deflation" (n_samples,), that returns the derivative g of one's own contrast and the mean of g's slope
        over the last axis. A model file does not keep such a function.
    fun_args : dict or None, default=None
        ``{"alpha": a}``, from 1 to 2, for "logcosh"; keyword arguments of a function of one's own.
    max_iter : int, default=200
        Most steps; of "deflation", for each source.
    tol : float, default=1e-4
        Ends when no direction turns by as much: 1 - abs(cos). 0 makes all steps.
    w_init : array-like of shape (n_components, n_components) or None, default=None
        Where to start; random if None.
    whiten_solver : {"svd", "eigh"}, default="svd"
        Of no effect: the precise one is taken where it is needed.
    random_state : int, RandomState instance or None, default=None
        Seed of a random start. None is 0, so that runs repeat.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The unmixing: sources are ``(X - mean_) @ components_.T``.
    mixing_ : ndarray of shape (n_features, n_components)
        Its pseudo-inverse, columns by decreasing length; in each the entry of largest absolute value is positive.
    mean_ : ndarray of shape (n_features,)
        Mean of each column; absent if `whiten` is False.
    whitening_ : ndarray of shape (n_components, n_features)
        The whitening, to rows of variance 1 / n_samples; absent if `whiten` is False.
    kurtosis_ : ndarray of shape (n_components,)
        Excess kurtosis of each source: 0 for a Gaussian one.
    n_iter_ : int
        Steps taken.
    converged_ : bool
        Whether they ended by `tol`.
    n_features_in_, feature_names_in_
        As of :class:`PPCA`.

    Notes
    -----
    Two sources or more that look Gaussian cannot be told apart; a `CovaryWarning` names them.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import FastICA
    >>> i = np.arange(2000)
    >>> sources = np.stack([i % 19, np.sin(0.37 * i)], axis=1)
    >>> mixing = np.array([[1.0, 9.0], [0.4, 7.0]])
    >>> ica = FastICA(random_state=0).fit(sources @ mixing.T)
    >>> print(np.abs(ica.components_ @ mixing).round(1))
    [[0.  1.4]
     [0.2 0. ]]
    """

    n_components: int | None = None
    _: KW_ONLY
    algorithm: str = "parallel"
    whiten: str | bool = "unit-variance"
    fun: str | Callable[..., Any] = "logcosh"
    fun_args: dict[str, Any] | None = None
    max_iter: int = 200
    tol: float = 1e-4
    w_init: ArrayLike | None = None
    whiten_solver: str = "svd"
    random_state: Any = None

    def _fit_rows(self, rows: Array) -> Self:
        algorithm = _options.word(self, "algorithm", ("parallel", "deflation")) or "parallel"
        named = None if callable(self.fun) else _options.word(self, "fun", ("logcosh", "exp", "cube"))
        contrast = named or "logcosh"
        _options.word(self, "whiten_solver", ("svd", "eigh"))
        if self.whiten is not False:
            _options.word(self, "whiten", ("unit-variance", "arbitrary-variance"))
        max_iter, tol = _options.whole(self, "max_iter", 1), _options.number(self, "tol")
        asked = _options.whole(self, "n_components", 1)
        slope = 1.0 if callable(self.fun) else (self.fun_args or {}).get("alpha", 1.0)
        if not isinstance(slope, (int, float)):
            raise OptionError(f"fun_args['alpha'] must be a number from 1 to 2. Got {slope!r} instead.")
        n, d = rows.shape
        if asked is not None and self.whiten is False:
            warnings.warn("Ignoring n_components with whiten=False.", CovaryWarning, stacklevel=3)
            asked = None
        if asked is not None and asked > min(n, d):
            warnings.warn(f"n_components is too large: it will be set to {min(n, d)}", CovaryWarning, stacklevel=3)
            asked = None
        start = None if self.w_init is None else check_array(self.w_init, dtype=np.float64, order="C")
        request: _covary.Request = {
            "n_components": asked,
            "inference": "fastica",
            "options": {
                "algorithm": algorithm,
                "contrast": f"logcosh {float(slope)!r}" if contrast == "logcosh" else contrast,
                "max_iterations": 200 if max_iter is None else max_iter,
                "tolerance": 1e-4 if tol is None else tol,
                "whiten": self.whiten is not False,
            },
            "unmixing": start,
            "contrast": self._own if callable(self.fun) else None,
            "as_is": True,
            "seed": _table.seed_of(self.random_state),
        }
        self._scale = 1.0 / np.sqrt(n) if self.whiten == "arbitrary-variance" else 1.0
        return self._take(self._learned(rows, "ica", request), rows)

    def _own(self, sources: Array) -> tuple[Array, list[float]]:
        """The contrast that was given, of sources in rows."""
        one = self.algorithm == "deflation"
        found = self.fun(sources[0] if one else sources, **(self.fun_args or {}))  # type: ignore[operator]
        if not isinstance(found, tuple) or len(found) != 2:
            raise OptionError("fun must return two arrays: g of the sources, and the mean of its slope for each")
        g, slopes = (np.asarray(part, dtype=np.float64) for part in found)
        if g.shape != (sources[0] if one else sources).shape:
            raise OptionError(f"fun returned g of shape {g.shape} for sources of shape {sources.shape}")
        if one:
            slopes = slopes.mean(keepdims=True).reshape(1)
        if slopes.shape != (len(sources),):
            raise OptionError(f"fun returned slopes of shape {slopes.shape}: give one mean for each source")
        return np.ascontiguousarray(g.reshape(sources.shape)), slopes.tolist()

    def _publish(self, model: _covary.Sources, rows: Array | None = None) -> None:
        super()._publish(model, rows)
        if self.whiten is False:
            del self.mean_, self.whitening_

    @classmethod
    def _options_of(cls, model: _covary.Sources) -> dict[str, Any]:
        options = model.method[1]
        contrast, _, slope = options["contrast"].partition(" ")
        return super()._options_of(model) | {
            "algorithm": options["algorithm"],
            "whiten": "unit-variance" if options["whiten"] == "true" else False,
            "fun": contrast,
            "fun_args": {"alpha": float(slope)} if slope else None,
            "random_state": int(options["seed"]),
        }


__all__ = ["FastICA"]
