"""Spark, classic or Connect: DataFrames and `mapInArrow` alone, no context and no RDD.

The table is turned once into rows of binary numbers and persisted; from then on a pass sends bytes to workers, not columns. The
order of rows is that of partitions and of rows within each, as Spark has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _rows
from .._rows import Block, Rows
from ..exceptions import DataError
from ._answers import of_arrow

if TYPE_CHECKING:
    import pyarrow as pa

    from .._rows import Array
    from ._answers import Question

try:
    from pyspark import StorageLevel
    from pyspark.sql import functions as sql
    from pyspark.sql import types as kinds
except ImportError as error:
    raise ImportError("tables of Spark need pyspark and pyarrow: pip install covary[spark]") from error

#: Bytes of a row of numbers on its way, at most: many fit into a batch of Arrow.
_PIECE = 4 << 20


def table(source: Any, columns: Sequence[str] | None) -> Rows:
    """The numbers of a DataFrame, persisted as binary rows."""
    return SparkRows(_frame(source), columns)


def _frame(source: Any) -> Any:
    if not hasattr(source, "mapInArrow"):
        raise DataError(f"a {type(source).__name__} of Spark is no table: give a DataFrame")
    return source


def _column(name: str) -> Any:
    return sql.col("`" + name.replace("`", "``") + "`")


class SparkRows(Rows):
    def __init__(self, source: Any, columns: Sequence[str] | None) -> None:
        numeric = [isinstance(field.dataType, (kinds.NumericType, kinds.BooleanType)) for field in source.schema.fields]
        self.names = names = _rows.chosen(source.columns, numeric, columns)
        d = len(names)
        floats = source.select(*[_column(name).cast("double").alias(name) for name in names])
        self._persisted: list[Any] = []
        try:
            self._pieces = self._kept(
                floats.mapInArrow(partial(_pieces, names), "part int, count int, raw binary")
            )
            lengths = self._pieces.groupBy("part").agg(sql.sum("count").alias("count")).collect()
            counts = {row["part"]: row["count"] for row in lengths}
            total = _rows.counted(list(counts.values()))
            self.shape = (total, d)
            first, at = {}, 0
            for part in sorted(counts):
                first[part], at = at, at + counts[part]
            self._cut = partial(_cut, first, self.size, total, d)
            lie = [len(parts) for parts in _rows.pieces([counts[part] for part in sorted(counts)], self.size)]
            self._has_whole, self._edges = 1 in lie, None
            if max(lie) > 1:
                # Blocks that lie in several partitions are put together once.
                edges = self._pieces.mapInArrow(partial(_edges, self._cut), "block int, start int, raw binary")
                self._edges = self._kept(edges.groupBy("block").applyInArrow(_join, "block int, raw binary"))
            seen = self._mapped(_seen, "block int, seen long")
            self._checks = {row["block"]: row["seen"] for row in seen.collect()}
        except BaseException:
            self.close()
            raise

    def _kept(self, frame: Any) -> Any:
        frame = frame.persist(StorageLevel.MEMORY_AND_DISK)
        self._persisted.append(frame)
        return frame

    def _mapped(self, work: Callable[[Iterator[tuple[int, Array]]], Iterator[pa.RecordBatch]], schema: str) -> Any:
        """What `work` makes of the blocks of each partition."""
        whole = self._pieces.mapInArrow(partial(_whole, self._cut, work), schema) if self._has_whole else None
        if self._edges is None:
            return whole
        edges = self._edges.mapInArrow(partial(_edge, self.shape[1], work), schema)
        return edges if whole is None else whole.union(edges)

    def reduce(self, task: bytes) -> bytes:
        # The function is looked up here, so that what is run by workers is what runs here.
        found = self._mapped(partial(_work, _rows.states, task, self._checks), "state binary")
        return _rows.merged([bytes(row["state"]) for row in found.collect()])

    def close(self) -> None:
        while self._persisted:
            self._persisted.pop().unpersist()


def _batch(**columns: tuple[Any, str]) -> pa.RecordBatch:
    import pyarrow as pa

    types = {"int": pa.int32(), "long": pa.int64(), "binary": pa.binary()}
    return pa.record_batch({name: pa.array(values, types[kind]) for name, (values, kind) in columns.items()})


def _pieces(names: list[str], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows as bytes, with the partition that they are of."""
    from pyspark import TaskContext

    context = TaskContext.get()
    part = context.partitionId() if context is not None else 0
    size = max(1, _PIECE // (8 * len(names)))
    for _, _, rows in _rows.cut((of_arrow(batch, names) for batch in batches), 0, size):
        yield _batch(part=([part], "int"), count=([len(rows)], "int"), raw=([rows.tobytes()], "binary"))


def _floats(raw: Any, d: int) -> Array:
    """The numbers of a cell, where they lie."""
    return np.frombuffer(raw.as_buffer(), dtype=np.float64).reshape(-1, d)


def _cut(
    first: dict[int, int], size: int, total: int, d: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[tuple[int, int, Array, bool]]:
    """Blocks of a partition: number, place in the block of the first row, rows, and whether it is all of the block.

    A partition of the cache may hold several of the table's, one after the other.
    """
    from itertools import groupby

    cells = ((p.as_py(), r) for batch in batches for p, r in zip(batch.column("part"), batch.column("raw")))
    for part, group in groupby(cells, key=lambda cell: cell[0]):
        for block, start, rows in _rows.cut((_floats(raw, d) for _, raw in group), first[part], size):
            yield block, start, rows, len(rows) == min(size, total - block * size)


def _edges(cut: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Parts of blocks that continue in another partition."""
    for block, start, rows, whole in cut(batches):
        if not whole:
            yield _batch(block=([block], "int"), start=([start], "int"), raw=([rows.tobytes()], "binary"))


def _join(group: pa.Table) -> pa.Table:
    """A block of its parts."""
    import pyarrow as pa

    parts = sorted(zip(group.column("start").to_pylist(), group.column("raw").to_pylist()))
    joined = _batch(block=([group.column("block")[0].as_py()], "int"), raw=([b"".join(raw for _, raw in parts)], "binary"))
    return pa.Table.from_batches([joined])


def _whole(cut: Any, work: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from work((block, rows) for block, _, rows, whole in cut(batches) if whole)


def _edge(d: int, work: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    cells = (cell for batch in batches for cell in zip(batch.column("block"), batch.column("raw")))
    yield from work((block.as_py(), _floats(raw, d)) for block, raw in cells)


def _seen(blocks: Iterator[tuple[int, Array]]) -> Iterator[pa.RecordBatch]:
    """Checksums."""
    for block, rows in blocks:
        yield _batch(block=([block], "int"), seen=([_rows.checksum(rows)], "long"))


def _work(
    states: Any, task: bytes, checks: dict[int, int], blocks: Iterator[tuple[int, Array]]
) -> Iterator[pa.RecordBatch]:
    """The sums of a partition."""
    state = states(task, (Block(block, rows, checks[block]) for block, rows in blocks))
    if state is not None:
        yield _batch(state=([state], "binary"))


def asked(question: Question, source: Any) -> Any:
    """The question to each batch, when it is computed."""
    source = _frame(source)
    names = question.found(source.columns)
    kept = [f for f in source.schema.fields if question.keeps or f.name not in names]
    number = kinds.DoubleType()
    fields = [kinds.StructField(f.name, number if f.name in names else f.dataType, f.nullable) for f in kept]
    fields += [kinds.StructField(name, number) for name in question.new()]

    def answers(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            yield from question.of_arrow(pa.Table.from_batches([batch])).to_batches()

    return source.mapInArrow(answers, kinds.StructType(fields))


__all__ = ["SparkRows", "asked", "table"]
