"""Spark, classic or Connect: DataFrames and `mapInArrow` alone, no context and no RDD.

The table is turned once into blocks of binary numbers and persisted; from then on a pass sends bytes to workers, not columns. The
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

#: Bytes that a task goes through, at least, unless the table has fewer: a task costs about 0.1 s of processor time, as much as reading
#: this many.
_TASK = 1 << 27


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
            # The number of a partition of the table, whichever task computes it: one that makes lost rows again may have another number.
            key = "part"
            while key in names:
                key += "_"
            numbered = floats.select("*", sql.spark_partition_id().alias(key))
            pieces = self._kept(numbered.mapInArrow(partial(_pieces, names, key), "part int, count int, raw binary"))
            counts: dict[int, int] = {}
            for row in pieces.select("part", "count").collect():
                counts[row["part"]] = counts.get(row["part"], 0) + row["count"]
            total = _rows.counted(list(counts.values()))
            self.shape = (total, d)
            first, at = {}, 0
            for part in sorted(counts):
                first[part], at = at, at + counts[part]
            cut = partial(_cut, first, self.size, total, d)
            lie = [len(parts) for parts in _rows.pieces([counts[part] for part in sorted(counts)], self.size)]
            whole = pieces.mapInArrow(partial(_whole, cut), "block int, raw binary")
            if max(lie) > 1:
                # Blocks that lie in several partitions are put together, in no more partitions than there are of them.
                edges = pieces.mapInArrow(partial(_edges, cut), "block int, start int, raw binary")
                edges = edges.repartition(sum(n > 1 for n in lie), "block").groupBy("block")
                joined = edges.applyInArrow(lambda group: _join(d, group), "block int, raw binary")
                whole = whole.union(joined) if 1 in lie else joined
            # A pass then goes through every row once, wherever blocks were cut; what they were cut of need not be kept.
            self._blocks = self._kept(whole.coalesce(max(1, 8 * d * total // _TASK)))
            seen = self._mapped(_seen, "block int, seen long")
            self._checks = {row["block"]: row["seen"] for row in seen.collect()}
            self._persisted.remove(pieces)
            pieces.unpersist()
        except BaseException:
            self.close()
            raise

    def _kept(self, frame: Any) -> Any:
        # As objects of the JVM: bytes would be compressed and expanded again at every pass, and numbers hardly shrink.
        frame = frame.persist(StorageLevel.MEMORY_AND_DISK_DESER)
        self._persisted.append(frame)
        return frame

    def _mapped(self, work: Callable[[Iterator[tuple[int, Array]]], Iterator[pa.RecordBatch]], schema: str) -> Any:
        """What `work` makes of the blocks of each partition."""
        return self._blocks.mapInArrow(partial(_put_together, self.size, *self.shape, work), schema)

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


def _piece_rows(d: int) -> int:
    return max(1, _PIECE // (8 * d))


def _pieces(names: list[str], key: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows as bytes, with the partition that they are of."""
    number = 0

    def tables() -> Iterator[Array]:
        nonlocal number
        for batch in batches:
            if batch.num_rows:
                number = batch.column(key)[0].as_py()
                yield of_arrow(batch, names)

    for _, _, rows in _rows.cut(tables(), 0, _piece_rows(len(names))):
        yield _batch(part=([number], "int"), count=([len(rows)], "int"), raw=([rows.tobytes()], "binary"))


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


def _join(d: int, group: pa.Table) -> pa.Table:
    """A block of its parts, in pieces."""
    import pyarrow as pa

    parts = sorted(zip(group.column("start").to_pylist(), group.column("raw").to_pylist()))
    block = group.column("block")[0].as_py()
    rows = np.frombuffer(b"".join(raw for _, raw in parts), dtype=np.float64).reshape(-1, d)
    return pa.Table.from_batches(_in_pieces(block, rows))


def _whole(cut: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Blocks that lie in one partition, in pieces."""
    for block, _, rows, whole in cut(batches):
        if whole:
            yield from _in_pieces(block, rows)


def _in_pieces(block: int, rows: Array) -> Iterator[pa.RecordBatch]:
    size = _piece_rows(rows.shape[1])
    for start in range(0, len(rows), size):
        yield _batch(block=([block], "int"), raw=([rows[start : start + size].tobytes()], "binary"))


def _put_together(
    size: int, total: int, d: int, work: Any, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    yield from work(_blocks(size, total, d, batches))


def _blocks(size: int, total: int, d: int, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, Array]]:
    """Blocks of their pieces, which follow each other; one takes the place of the other in memory, which would be cleared anew."""
    room, at, filled = np.empty((0, d)), -1, 0
    for batch in batches:
        for number, raw in zip(batch.column("block").to_pylist(), batch.column("raw")):
            rows = _floats(raw, d)
            n = min(size, total - number * size)
            if filled == 0:
                at = number
                room = room if len(room) >= n else np.empty((n, d))
            if number != at or filled + len(rows) > n:
                raise DataError(f"block {at} of the table came back with other rows: the engine has made it again by {_rows.BY_CHANCE}")
            room[filled : filled + len(rows)] = rows
            filled += len(rows)
            if filled == n:
                filled = 0
                yield number, room[:n]


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
