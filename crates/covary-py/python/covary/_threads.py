"""How many threads a call may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral

from .exceptions import OptionError

_limit: ContextVar[int | None] = ContextVar("covary_threads", default=None)
#: Threads of a call, at most, as for the command: more would only wait for each other.
_MOST = 512
# joblib sets OMP_NUM_THREADS in its workers, so that they do not crowd each other out.
_VARIABLES = ("COVARY_NUM_THREADS", "RAYON_NUM_THREADS", "OMP_NUM_THREADS")


def n_threads() -> int:
    """Threads of the next call; 0 means as many as the machine has."""
    limit = _limit.get()
    if limit is not None:
        return limit
    for variable in _VARIABLES:
        value = os.environ.get(variable, "")
        if value.isdecimal() and int(value) > 0:
            return min(int(value), _MOST)
    return 0


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Limit the threads of every call inside the block.

    The results do not depend on it, to the last bit. Outside of such a block the environment
    decides: ``COVARY_NUM_THREADS``, ``RAYON_NUM_THREADS`` or ``OMP_NUM_THREADS``, the first that is
    set; else every core is used.

    Parameters
    ----------
    n : int
        From 1 to 512.

    Examples
    --------
    >>> import covary, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> with covary.threads(1):
    ...     one = covary.PPCA(n_components=2).fit(X).components_
    >>> bool((one == covary.PPCA(n_components=2).fit(X).components_).all())
    True
    """
    if isinstance(n, bool) or not isinstance(n, Integral) or not 1 <= n <= _MOST:
        raise OptionError(f"threads must be a whole number from 1 to {_MOST}, got {n!r}")
    n = int(n)
    token = _limit.set(n)
    try:
        yield
    finally:
        _limit.reset(token)
