"""What a fitted model is asked of the rows of a partition; other columns pass."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _table
from .._rows import default_names
from .._threads import threads
from ..exceptions import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from .._rows import Array


class Question:
    """One question to a model, which every engine asks of each partition."""

    #: Whether the columns of the model stay in the table.
    keeps = False

    def __init__(self, estimator: Any) -> None:
        #: Names of the columns that are asked about, if the model knows them.
        self.columns = _table.names(estimator)
        # Rows come as arrays, columns found here: a model without names does not ask for them again.
        self.estimator = copy.copy(estimator)
        self.estimator.__dict__.pop("feature_names_in_", None)

    def new(self) -> list[str]:
        """Names of the columns that are appended."""
        raise NotImplementedError

    def answer(self, rows: Array) -> Array:
        """For rows of the model's columns the columns that stay, if they do, then those that are appended."""
        raise NotImplementedError

    def __call__(self, rows: Array) -> Array:
        """The answer for any number of rows, on one thread: the engine has a task for each core."""
        d = self.estimator.n_features_in_
        if rows.ndim != 2 or rows.shape[1] != d:
            raise DataError(f"the model has {d} columns, and rows of the table have {rows.shape[-1]}")
        if len(rows) == 0:
            return np.empty((0, (d if self.keeps else 0) + len(self.new())))
        with threads(1):
            return self.answer(rows)

    def of_frame(self, frame: Any) -> Any:
        """A partition of pandas, answered."""
        names = self.found(list(frame.columns))
        found = self(of_pandas(frame, names))
        columns = [*(names if self.keeps else []), *self.new()]
        answers = type(frame)(found, index=frame.index, columns=columns)
        others = [name for name in frame.columns if name not in names]
        order = [*(frame.columns if self.keeps else others), *self.new()]
        return frame[others].join(answers)[order]

    def of_arrow(self, batch: pa.Table) -> pa.Table:
        """A table of Arrow, answered."""
        import pyarrow as pa

        names = self.found(batch.column_names)
        found = self(of_arrow(batch, names))
        columns = {name: batch.column(name) for name in batch.column_names if self.keeps or name not in names}
        columns |= {name: pa.array(v) for name, v in zip([*(names if self.keeps else []), *self.new()], found.T)}
        return pa.table(columns)

    def found(self, known: Sequence[Any]) -> list[Any]:
        """The columns asked about, among those of a table; of a model without names all."""
        names = list(known) if self.columns is None else self.columns
        for name in names:
            if name not in known:
                raise DataError(f"the table has no column {name!r}, which the model has")
        for name in self.new():
            if name in known and (self.keeps or name not in names):
                raise DataError(f"the table has a column {name!r} already, which the answer would be called: rename it first")
        return names


class Transform(Question):
    def new(self) -> list[str]:
        return [str(name) for name in self.estimator.get_feature_names_out()]

    def answer(self, rows: Array) -> Array:
        found: Array = self.estimator.transform(rows)
        return found


class ScoreSamples(Question):
    def new(self) -> list[str]:
        return ["log_density"]

    def answer(self, rows: Array) -> Array:
        found: Array = self.estimator.score_samples(rows)
        return found[:, None]


class Impute(Question):
    keeps = True

    def __init__(self, estimator: Any, return_std: bool) -> None:
        super().__init__(estimator)
        self.return_std = return_std

    def new(self) -> list[str]:
        if not self.return_std:
            return []
        names = self.columns or default_names(self.estimator.n_features_in_)
        return [f"{name}_std" for name in names]

    def answer(self, rows: Array) -> Array:
        found = self.estimator.impute(rows, return_std=self.return_std)
        return np.hstack(found) if self.return_std else found


def of_pandas(frame: Any, names: Sequence[Any]) -> Array:
    """The numbers of some columns of pandas, gaps as NaN."""
    found: Array = np.ascontiguousarray(frame[list(names)].to_numpy(dtype=np.float64, na_value=np.nan))
    return found


def of_arrow(batch: Any, names: Sequence[str]) -> Array:
    """The numbers of some columns of Arrow, gaps as NaN."""
    import pyarrow as pa

    rows = np.empty((batch.num_rows, len(names)))
    for j, name in enumerate(names):
        column = batch.column(name)
        try:
            rows[:, j] = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise DataError(f"column {name!r} does not hold numbers ({error})") from None
    return rows


def is_number(kind: Any) -> bool:
    """Whether a type of Arrow is of numbers."""
    import pyarrow as pa

    of = pa.types
    # Ray has other types beside Arrow's.
    if not isinstance(kind, pa.DataType):
        return False
    return bool(of.is_integer(kind) or of.is_floating(kind) or of.is_decimal(kind) or of.is_boolean(kind))


__all__ = ["Impute", "Question", "ScoreSamples", "Transform", "is_number", "of_arrow", "of_pandas"]
