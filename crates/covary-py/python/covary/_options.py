"""Options of estimators, checked when fitting, as scikit-learn's are."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

from .exceptions import OptionError

Progress = Callable[[str, int, float], None]


def refuse(estimator: Any, name: str, value: Any, wanted: str) -> OptionError:
    kind = type(estimator).__name__
    return OptionError(f"The {name!r} parameter of {kind} must be {wanted}. Got {value!r} instead.")


def whole(estimator: Any, name: str, least: int = 0) -> int | None:
    """A whole number from `least`, or None."""
    value = getattr(estimator, name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) < 2**63:
        raise refuse(estimator, name, value, f"a whole number from {least}, or None")
    return int(value)


def required(estimator: Any, name: str) -> int:
    """A whole number from 1."""
    value = whole(estimator, name, 1)
    if value is None:
        raise refuse(estimator, name, value, "a whole number from 1")
    return value


def number(estimator: Any, name: str, least: float = 0.0) -> float | None:
    """A finite number from `least`, or None."""
    value = getattr(estimator, name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value) or value < least:
        raise refuse(estimator, name, value, f"a number from {least}, or None")
    return float(value)


def switch(estimator: Any, name: str) -> bool:
    """True or False."""
    value = getattr(estimator, name)
    if not isinstance(value, bool) and not (hasattr(value, "dtype") and value.dtype == bool):
        raise refuse(estimator, name, value, "True or False")
    return bool(value)


def word(estimator: Any, name: str, known: tuple[str | None, ...]) -> str | None:
    """One of the words that are known."""
    value = getattr(estimator, name)
    if not (value is None or isinstance(value, str)) or value not in known:
        raise refuse(estimator, name, value, "one of " + ", ".join(map(repr, known)))
    return value


def size(estimator: Any, name: str, least: int, *, or_none: bool = True) -> int | None:
    """A whole number from `least`, or None for "auto", which None stands for too if it may."""
    value = getattr(estimator, name)
    if (value is None and or_none) or (isinstance(value, str) and value == "auto"):
        return None
    if isinstance(value, Integral) and not isinstance(value, bool) and least <= int(value) < 2**63:
        return int(value)
    raise refuse(estimator, name, value, f"'auto' or a whole number from {least}")


def components(estimator: Any, *, share: bool) -> int | float | None:
    """How many components: a whole number, None for "auto", or (if `share`) a part of the variance."""
    value = estimator.n_components
    if share and isinstance(value, Real) and not isinstance(value, bool) and 0.0 < float(value) < 1.0:
        return float(value)
    return size(estimator, "n_components", 0)


def progress(estimator: Any) -> Progress | None:
    """Where `verbose` asks for it, a line on standard error now and then, as many steps apart as it says."""
    if not getattr(estimator, "verbose", False):
        return None
    interval = required(estimator, "verbose_interval") if hasattr(estimator, "verbose_interval") else 1
    kind, told = type(estimator).__name__, -interval

    def tell(stage: str, done: int, of: float) -> None:
        nonlocal told
        if told < done < told + interval:
            return
        told = done
        if stage == "choosing":
            said = f"choosing n_components: {done} of {of:.0f} fits"
        else:
            said = f"step {done}: {of:.6g}"
        sys.stderr.write(f"[{kind}] {said}\n")

    return tell
