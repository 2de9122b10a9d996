"""Dask: partitions are ordered, so that blocks are those of the table in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _rows, _table
from .._rows import Block, Rows
from ..exceptions import DataError
from ._answers import of_pandas

if TYPE_CHECKING:
    from .._rows import Array
    from ._answers import Question

try:
    import dask
    from dask import delayed
except ImportError as error:
    raise ImportError("tables of Dask need dask: pip install covary[dask]") from error

#: States that one task merges: small ones, of which the driver should not get thousands.
_FAN = 16


def table(source: Any, columns: Sequence[Any] | None) -> Rows:
    """The blocks of a DataFrame or an Array, kept by the scheduler."""
    return DaskRows(*(_of_frame if hasattr(source, "dtypes") else _of_array)(source, columns))


def _of_frame(source: Any, columns: Sequence[Any] | None) -> tuple[list[Any], list[int], int, list[str] | None]:
    numeric = [kind.kind in "iufb" for kind in source.dtypes]
    names = _rows.chosen(list(source.columns), numeric, columns)
    parts = [delayed(of_pandas)(part, names) for part in source[names].to_delayed()]
    # One column is enough to count, and all that is read where files have columns.
    counts = dask.compute(*[delayed(len)(part) for part in source[names[:1]].to_delayed()])
    named = all(isinstance(name, str) for name in names)
    return parts, [int(n) for n in counts], len(names), names if named else None


def _of_array(source: Any, columns: Sequence[Any] | None) -> tuple[list[Any], list[int], int, list[str] | None]:
    if columns is not None:
        raise DataError("an Array has no names of columns: take those of the model by X[:, places]")
    if source.ndim != 2:
        raise DataError(f"an Array must have rows and columns, and this one has {source.ndim} dimensions: stack or reshape it")
    if source.dtype.kind not in "iufb":
        raise DataError(f"an Array of {source.dtype} does not hold numbers")
    chunks = [delayed(_floats)(chunk) for chunk in source.rechunk({1: -1}).to_delayed().ravel()]
    counts = source.chunks[0]
    if np.isnan(counts).any():
        counts = dask.compute(*[delayed(len)(chunk) for chunk in chunks])
    return chunks, [int(n) for n in counts], source.shape[1], None


def _floats(chunk: Any) -> Array:
    return np.ascontiguousarray(_table.unmasked(chunk), dtype=np.float64)


class DaskRows(Rows):
    def __init__(self, parts: list[Any], counts: list[int], n_columns: int, names: list[str] | None) -> None:
        self.shape = (_rows.counted(counts), n_columns)
        self.names = names
        cut = _rows.pieces(counts, self.size)
        joined = delayed(_rows.joined, pure=False)
        blocks = [joined([(parts[p], start, stop, counts[p]) for p, start, stop in block]) for block in cut]
        # Persisted on the cluster if there is one; a block that is lost is made again by its graph.
        self._blocks = dask.persist(*blocks)
        self._seen = dask.compute(*[delayed(_rows.checksum)(block) for block in self._blocks])

    def reduce(self, task: bytes) -> bytes:
        given = delayed(task, pure=False)
        states, merged = delayed(_states, pure=False), delayed(_rows.merged, pure=False)
        # The function is looked up here, so that what is run by workers is what runs here.
        found = [states(_rows.states, given, i, rows, seen) for i, (rows, seen) in enumerate(zip(self._blocks, self._seen))]
        while len(found) > 1:
            found = [merged(found[k : k + _FAN]) for k in range(0, len(found), _FAN)]
        state: bytes = found[0].compute()
        return state

    def close(self) -> None:
        self._blocks = ()


def _states(states: Any, task: bytes, index: int, rows: Array, seen: int) -> bytes:
    found: bytes = states(task, [Block(index, rows, seen)])
    return found


def asked(question: Question, source: Any) -> Any:
    """The question to each partition, when it is computed."""
    if hasattr(source, "dtypes"):
        return source.map_partitions(question.of_frame, meta=question.of_frame(source._meta))
    width = question(np.empty((0, source.shape[1]))).shape[1]
    rows = source.rechunk({1: -1})
    found = rows.map_blocks(
        lambda chunk: question(_floats(chunk)), dtype=np.float64, chunks=(rows.chunks[0], (width,)), meta=np.empty((0, 0))
    )
    return found[:, 0] if question.new() == ["log_density"] else found


__all__ = ["DaskRows", "asked", "table"]
