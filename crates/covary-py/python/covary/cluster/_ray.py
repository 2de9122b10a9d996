"""Ray: blocks are objects of its store, made again by their lineage if they are lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _rows
from .._rows import Block, Rows
from ..exceptions import DataError
from ._answers import is_number, of_arrow

if TYPE_CHECKING:
    from .._rows import Array
    from ._answers import Question

try:
    import ray
except ImportError as error:
    raise ImportError("tables of Ray need ray: pip install covary[ray]") from error

#: States that one task merges.
_FAN = 16


def table(source: Any, columns: Sequence[str] | None) -> Rows:
    """The blocks of a dataset, in the object store."""
    return RayRows(_dataset(source), columns)


def _dataset(source: Any) -> Any:
    if not isinstance(source, ray.data.Dataset):
        raise DataError(f"a {type(source).__name__} of Ray is no table: give a ray.data.Dataset")
    return source


def _numbers(batch: Any, names: list[str]) -> Array:
    return of_arrow(batch, names)


def _count(rows: Array) -> int:
    return len(rows)


def _joined(spans: list[tuple[int, int, int]], *parts: Array) -> Array:
    return _rows.joined([(rows, *span) for rows, span in zip(parts, spans)])


def _states(states: Any, task: bytes, index: int, rows: Array, seen: int) -> bytes:
    found: bytes = states(task, [Block(index, rows, seen)])
    return found


def _merged(merged: Any, *found: bytes) -> bytes:
    state: bytes = merged(found)
    return state


def _task(function: Any) -> Any:
    """A task of one core, which is tried again wherever a worker dies; its own errors are not."""
    return ray.remote(num_cpus=1, max_retries=5)(function)


class RayRows(Rows):
    def __init__(self, source: Any, columns: Sequence[str] | None) -> None:
        schema = source.schema()
        self.names = _rows.chosen(schema.names, [is_number(kind) for kind in schema.types], columns)
        ordered = source.select_columns(self.names)
        # Ray gives blocks in the order in which they are done unless it is told otherwise.
        ordered.context.execution_options.preserve_order = True
        parts = [_task(_numbers).remote(part, self.names) for part in ordered.to_arrow_refs()]
        counts = ray.get([_task(_count).remote(part) for part in parts])
        self.shape = (_rows.counted(counts), len(self.names))
        self._blocks = []
        for block in _rows.pieces(counts, self.size):
            spans = [(start, stop, counts[part]) for part, start, stop in block]
            self._blocks.append(_task(_joined).remote(spans, *[parts[part] for part, _, _ in block]))
        self._seen = ray.get([_task(_rows.checksum).remote(block) for block in self._blocks])

    def reduce(self, task: bytes) -> bytes:
        given = ray.put(task)
        # The functions are looked up here, so that what is run by workers is what runs here.
        states, merged = ray.put(_rows.states), ray.put(_rows.merged)
        work, join = _task(_states), _task(_merged)
        found = [work.remote(states, given, i, rows, seen) for i, (rows, seen) in enumerate(zip(self._blocks, self._seen))]
        while len(found) > 1:
            found = [join.remote(merged, *found[k : k + _FAN]) for k in range(0, len(found), _FAN)]
        try:
            state: bytes = ray.get(found[0])
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        return state

    def close(self) -> None:
        self._blocks = []


def asked(question: Question, source: Any) -> Any:
    """The question to each batch, when it is computed."""
    source = _dataset(source)
    question.found(source.schema().names)  # what is wrong with its columns is said here
    found = source.map_batches(question.of_arrow, batch_format="pyarrow", zero_copy_batch=True)
    found.context.execution_options.preserve_order = True
    return found


__all__ = ["RayRows", "asked", "table"]
