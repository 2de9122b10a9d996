"""Tables that are only ever asked for sums over their rows: what an engine gives the library in place of an array."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _covary
from .exceptions import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


BY_CHANCE = (
    "a plan that depends on chance or on the order of a shuffle; sort the table by a key, or write it to files and read those"
)


class Block(NamedTuple):
    """Consecutive rows of the table, as many as the library sums at once (fewer in the last block)."""

    number: int
    rows: Array
    #: Checksum of the rows when the block was first cut.
    seen: int


class Rows:
    """A table in blocks, wherever they are. An engine says how sums over all of them come about."""

    #: As of an array; the rows themselves are elsewhere.
    shape: tuple[int, int]
    dtype = np.dtype(np.float64)
    #: Names of the columns, if they have any.
    names: list[str] | None

    def reduce(self, task: bytes) -> bytes:
        """What :func:`states` makes of all blocks, merged in any order."""
        raise NotImplementedError

    def close(self) -> None:
        """Lets go of what the engine keeps."""

    @property
    def size(self) -> int:
        """Rows of a block."""
        return _covary.block_rows(self.shape[1])

    @property
    def n_blocks(self) -> int:
        """How many blocks there are."""
        return math.ceil(self.shape[0] / self.size)


def default_names(n_columns: int) -> list[str]:
    """What the library calls columns without names."""
    return [f"x{j}" for j in range(1, n_columns + 1)]


def states(task: bytes, blocks: Iterable[Block]) -> bytes | None:
    """Sums of one pass over some blocks, on one thread; None of no block.

    The library joins them along one fixed tree, so that neither the order of blocks nor who has summed which leaves a trace.
    """
    found = [_summed(task, block) for block in blocks]
    return merged(found) if found else None


def _summed(task: bytes, block: Block) -> bytes:
    # What arrived in a message may lie at any address.
    rows = np.require(unchanged(block), np.float64, ["C", "A"])
    try:
        return _covary.pass_block(task, block.number, rows)
    except DataError as error:
        first = block.number * _covary.block_rows(rows.shape[1]) + 1
        raise DataError(f"in block {block.number}, whose row 1 is row {first} of the table: {error}") from None


def merged(found: Sequence[bytes]) -> bytes:
    """Sums of several tasks as one."""
    return found[0] if len(found) == 1 else _covary.merge(list(found))


def checksum(rows: Array) -> int:
    """Of every bit of the rows, in their order."""
    return zlib.crc32(np.ascontiguousarray(rows).data)


def unchanged(block: Block) -> Array:
    """The rows of a block, which must be those of earlier passes.

    An engine that loses a block makes it again by its plan. A plan that depends on chance, or on the order in which a shuffle
    delivers rows, gives other rows then, and sums of two different tables would be added.
    """
    if checksum(block.rows) != block.seen:
        raise DataError(
            f"block {block.number} of the table holds other rows than in an earlier pass: a file has changed, or the engine has made "
            f"lost rows again by {BY_CHANCE}"
        )
    return block.rows


def pieces(counts: Sequence[int], size: int) -> list[list[tuple[int, int, int]]]:
    """For each block the parts of partitions that it is made of: which partition, from which of its rows, to which."""
    blocks: list[list[tuple[int, int, int]]] = []
    room = 0
    for part, count in enumerate(counts):
        start = 0
        while start < count:
            if room == 0:
                blocks.append([])
                room = size
            stop = min(count, start + room)
            blocks[-1].append((part, start, stop))
            room -= stop - start
            start = stop
    return blocks


def joined(parts: Sequence[tuple[Array, int, int, int]]) -> Array:
    """A block of parts of partitions: the rows of each, from which, to which, and how many there were when they were counted."""
    for rows, _, _, count in parts:
        if len(rows) != count:
            raise DataError(
                f"a partition has {len(rows)} rows and had {count} when rows were counted: the engine makes it by {BY_CHANCE}"
            )
    found = [rows[start:stop] for rows, start, stop, _ in parts]
    return np.ascontiguousarray(found[0]) if len(found) == 1 else np.concatenate(found)


def cut(batches: Iterable[Array], first: int, size: int) -> Iterator[tuple[int, int, Array]]:
    """Blocks, or the parts of blocks that there are, of consecutive rows of which the first is row `first` of the table.

    Each is the number of its block, the place in that block of its first row, and its rows.
    """
    held: list[Array] = []
    start = at = first
    for batch in batches:
        while len(batch):
            room = size - at % size
            held.append(batch[:room])
            at += len(held[-1])
            batch = batch[room:]
            if at % size == 0:
                yield start // size, start % size, np.concatenate(held)
                held, start = [], at
    if held:
        yield start // size, start % size, np.concatenate(held)


def counted(counts: Sequence[int]) -> int:
    """Rows of all partitions, which must be enough to fit a model to."""
    if (total := sum(counts)) < 2:
        raise DataError(f"a fit needs at least 2 rows, and the table has {total}")
    return total


def chosen(known: Sequence[Any], numeric: Sequence[bool], asked: Sequence[Any] | None) -> list[Any]:
    """The columns asked for, or all; every one must be there and hold numbers."""
    wanted = list(known) if asked is None else list(asked)
    for name in wanted:
        if name not in known:
            raise DataError(f"there is no column {name!r}; the table has {', '.join(map(repr, known))}")
        if not numeric[list(known).index(name)]:
            raise DataError(f"column {name!r} does not hold numbers; name those that do by columns=[…]")
    if not wanted:
        raise DataError("the table has no column")
    return wanted


__all__ = ["BY_CHANCE", "Block", "Rows", "checksum", "chosen", "counted", "cut", "default_names", "joined", "merged", "pieces", "states", "unchanged"]
