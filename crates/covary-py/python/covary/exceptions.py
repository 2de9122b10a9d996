"""What Covary raises and warns of.

Every exception is also one that scikit-learn users catch already: a refused table or option is a
``ValueError``, an unfitted estimator scikit-learn's ``NotFittedError``.
"""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning as _ConvergenceWarning
from sklearn.exceptions import NotFittedError

__all__ = [
    "ComponentsError",
    "ConvergenceWarning",
    "CovaryError",
    "CovaryWarning",
    "DataError",
    "DataWarning",
    "ModelFileError",
    "NotFittedError",
    "NumericalError",
    "OptionError",
]


class CovaryError(Exception):
    """Any error of this package's own."""


class DataError(CovaryError, ValueError):
    """The table cannot be used: empty, infinite, without variance, of other columns than the model."""


class ComponentsError(CovaryError, ValueError):
    """The number of components cannot be had from this table."""


class OptionError(CovaryError, ValueError):
    """An option has a value that means nothing here."""


class NumericalError(CovaryError, ValueError):
    """Numbers near the limits of float64: rescale the data."""


class ModelFileError(CovaryError, ValueError):
    """A file is no model of Covary, is damaged, or comes from a later version."""


class CovaryWarning(UserWarning):
    """Something about a fit that needs attention; the message says what, and what to do."""


class DataWarning(CovaryWarning):
    """Something to doubt about the table itself, such as a cell far beyond all others of its column."""


class ConvergenceWarning(CovaryWarning, _ConvergenceWarning):
    """The limit on iterations came before the stopping rule was met."""
