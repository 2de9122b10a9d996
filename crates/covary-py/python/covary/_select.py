"""How many components, how many models of a mixture, and pooling over imputations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from sklearn.utils.validation import _get_feature_names

from . import _covary, _table
from ._families import FAMILIES
from ._mixed import Mixture
from ._threads import n_threads
from .exceptions import DataError, OptionError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Comparison:
    """All criteria over numbers of components; printing it explains the recommendation.

    Attributes
    ----------
    recommended : int
        The number to take.
    by : str
        The criterion that recommends it.
    choices : dict of str to int
        What each criterion would take.
    table : dict of str to ndarray
        Entry q is the model with q components: ``n_components``, ``log_likelihood``, ``aic`` and
        ``bic`` (smaller is better), ``log_evidence`` (Minka's, up to a constant; complete tables
        only), ``held_out`` (CRPS per hidden cell, smaller is better; NaN for numbers that were passed
        over), ``held_out_error`` (standard error of its distance from the best), ``held_out_rmse``, ``lower_bound``. NaN where the table does not
        allow one.
    n_hidden : int
        Hidden cells behind ``held_out``.
    explanation : str
        The recommendation in words.
    """

    recommended: int
    by: str
    choices: dict[str, int]
    table: dict[str, NDArray[Any]]
    n_hidden: int
    explanation: str

    def __str__(self) -> str:
        return self.explanation


@dataclass(frozen=True)
class MixtureComparison:
    """Sizes of a mixture side by side; printing it explains the recommendation.

    Attributes
    ----------
    n_mixtures, n_components : int
        The recommended size: models, and components of each.
    by : str
        The criterion that recommends it.
    choices : dict of str to tuple of int
        What each criterion would take: models and components.
    table : dict of str to ndarray
        One entry for each size: ``n_mixtures``, ``n_components``, ``n_parameters``,
        ``log_likelihood``, ``bic`` (smaller is better), ``held_out`` (nats per cell of rows that a fit had
        not seen), ``held_out_error`` (standard error of its distance from the best).
    explanation : str
        The recommendation in words.
    """

    n_mixtures: int
    n_components: int
    by: str
    choices: dict[str, tuple[int, int]]
    table: dict[str, NDArray[Any]]
    explanation: str

    def __str__(self) -> str:
        return self.explanation


@overload
def select(
    X: ArrayLike,
    *,
    model: Literal["ppca"] = "ppca",
    max_components: int | None = None,
    max_mixtures: int = 6,
    standardize: bool = True,
    random_state: Any = None,
) -> Comparison: ...


@overload
def select(
    X: ArrayLike,
    *,
    model: Literal["mppca", "mfa", "gmm"],
    max_components: int | None = None,
    max_mixtures: int = 6,
    standardize: bool = True,
    random_state: Any = None,
) -> MixtureComparison: ...


def select(
    X: ArrayLike,
    *,
    model: str = "ppca",
    max_components: int | None = None,
    max_mixtures: int = 6,
    standardize: bool = True,
    random_state: Any = None,
) -> Comparison | MixtureComparison:
    """How many components does a table support, or how many models of a mixture, and why.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The table; NaN where a cell is missing.
    model : {"ppca", "mppca", "mfa", "gmm"}, default="ppca"
        Probabilistic PCA, or a mixture of PPCAs, of factor analyzers or of Gaussians.
    max_components : int or None, default=None
        Most components tried; None is 10, hidden cells looking at as many as there may be, and 4 for
        the models of a mixture.
    max_mixtures : int, default=6
        Most models of a mixture tried.
    standardize : bool, default=True
        Give every column unit variance first.
    random_state : int, RandomState instance or None, default=None
        Seed of hidden cells and shuffled copies; None is 0.

    Returns
    -------
    comparison : Comparison or MixtureComparison
        Every criterion, what each would take, and a recommendation.

    Examples
    --------
    >>> import covary, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 8)) + 0.5 * rng.normal(size=(200, 8))
    >>> covary.select(X, standardize=False).recommended
    2
    """
    mixtures = [name for name, cls in FAMILIES.items() if issubclass(cls, Mixture)]
    if model not in ("ppca", *mixtures):
        *others, last = ("ppca", *mixtures)
        raise OptionError(f"model must be {', '.join(map(repr, others))} or {last!r}, got {model!r}")
    for name, value, least in (
        ("max_components", 0 if max_components is None else max_components, 0),
        ("max_mixtures", max_mixtures, 1),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise OptionError(f"{name} must be a whole number from {least}, got {value!r}")
    names = _get_feature_names(X)
    rows = _table.array(X, order="C", ensure_all_finite=False, ensure_min_samples=2)
    labels = None if names is None else [str(name) for name in names]
    asked: dict[str, Any] = {"standardize": standardize, "seed": _table.seed_of(random_state), "threads": n_threads()}
    if model in mixtures:
        asked |= {"max_mixtures": max_mixtures, "max_components": max_components}
        return MixtureComparison(by="bic", **_covary.compare_mixtures(rows, labels, model, **asked))
    return Comparison(**_covary.compare(rows, labels, max_components=max_components, **asked))


@dataclass(frozen=True)
class Pooled:
    """An estimate and its uncertainty over several imputations.

    Attributes
    ----------
    estimate : float
        Mean of the estimates.
    within : float
        Mean of their variances.
    between : float
        Variance of the estimates: what the gaps cost.
    total : float
        The variance to report.
    degrees_of_freedom : float
        Of the t distribution of the estimate; infinite if the imputations agree exactly.
    """

    estimate: float
    within: float
    between: float
    total: float
    degrees_of_freedom: float


def pool(estimates: ArrayLike, variances: ArrayLike) -> Pooled:
    """Put together what was learned from several imputed tables, by Rubin's rules.

    Parameters
    ----------
    estimates : array-like of shape (n_imputations,)
        The same quantity estimated from each table.
    variances : array-like of shape (n_imputations,)
        The squared standard error of each estimate.

    Returns
    -------
    pooled : Pooled
        The estimate, and the variance that includes what the gaps cost.

    Examples
    --------
    >>> import covary
    >>> covary.pool([1.0, 2.0, 3.0], [0.5, 0.5, 0.5]).estimate
    2.0
    """
    each = [np.asarray(_table.unmasked(values), dtype=np.float64) for values in (estimates, variances)]
    if any(values.ndim != 1 for values in each):
        raise DataError("one quantity is pooled at a time: give a list with an estimate per imputation")
    return Pooled(**_covary.pool(*(values.tolist() for values in each)))


__all__ = ["Comparison", "MixtureComparison", "Pooled", "pool", "select"]
