"""How many components, and pooling over imputations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import _get_feature_names

from . import _covary, _table
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
        only), ``held_out`` (nats per hidden cell), ``held_out_error`` (standard error of its
        distance from the best), ``held_out_rmse``, ``lower_bound``. NaN where the table does not
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


def select(
    X: ArrayLike, *, max_components: int = 10, standardize: bool = True, random_state: Any = None
) -> Comparison:
    """How many components does a table support, and why.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The table; NaN where a cell is missing.
    max_components : int, default=10
        Most components tried.
    standardize : bool, default=True
        Give every column unit variance first.
    random_state : int, RandomState instance or None, default=None
        Seed of hidden cells and shuffled copies; None is 0.

    Returns
    -------
    comparison : Comparison
        Every criterion, what each would take, and a recommendation.

    Examples
    --------
    >>> import covary, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 8)) + 0.5 * rng.normal(size=(200, 8))
    >>> covary.select(X, standardize=False).recommended
    2
    """
    if isinstance(max_components, bool) or not isinstance(max_components, int) or max_components < 0:
        raise OptionError(f"max_components must be a whole number from 0, got {max_components!r}")
    names = _get_feature_names(X)
    rows = check_array(
        X, dtype=[np.float64, np.float32], order="C", ensure_all_finite=False, ensure_min_samples=2
    )
    found = _covary.compare(
        rows,
        None if names is None else [str(name) for name in names],
        max_components=max_components,
        standardize=standardize,
        seed=_table.seed_of(random_state),
        threads=n_threads(),
    )
    columns = (
        "log_likelihood", "aic", "bic", "log_evidence", "held_out", "held_out_error", "held_out_rmse",
        "lower_bound",
    )  # fmt: skip
    table = {"n_components": np.asarray(found["n_components"]), **{name: found[name] for name in columns}}
    return Comparison(
        recommended=found["recommended"],
        by=found["by"],
        choices=found["choices"],
        table=table,
        n_hidden=found["n_hidden"],
        explanation=found["explanation"],
    )


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
    each = [np.asarray(values, dtype=np.float64) for values in (estimates, variances)]
    if any(values.ndim != 1 for values in each):
        raise DataError("one quantity is pooled at a time: give a list with an estimate per imputation")
    return Pooled(**_covary.pool(*(values.tolist() for values in each)))


__all__ = ["Comparison", "Pooled", "pool", "select"]
