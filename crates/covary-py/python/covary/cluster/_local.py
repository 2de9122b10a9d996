"""Files of this machine, and datasets of pyarrow: read anew at every pass, a few blocks of them in memory at a time."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _rows
from .._rows import Block, Rows
from .._threads import n_threads
from ..exceptions import DataError
from ._answers import is_number, of_arrow

if TYPE_CHECKING:
    from .._rows import Array
    from ._answers import Question

#: Rows that are asked about at a time.
_BATCH = 65536


def table(source: Any, columns: Sequence[str] | None) -> Rows:
    """A table in files, or a dataset."""
    arrays = _arrays(source)
    if arrays is None:
        return DatasetRows(_dataset(source), columns)
    if columns is not None:
        raise DataError("files of NumPy have no names of columns; leave columns= out")
    return ArrayRows(arrays)


def _paths(source: Any) -> list[str]:
    found = [os.fspath(path) for path in ([source] if isinstance(source, (str, os.PathLike)) else source)]
    if not found:
        raise DataError("no path was given")
    return found


def _arrays(source: Any) -> list[Any] | None:
    """The arrays of .npy files, left on disk; None if the source is none of them."""
    if not isinstance(source, (str, os.PathLike, list, tuple)):
        return None
    paths = _paths(source)
    if not any(path.endswith(".npy") for path in paths):
        return None
    if other := next((path for path in paths if not path.endswith(".npy")), None):
        raise DataError(f"{other} is no .npy file, and others are: give files of one kind")
    arrays = [np.load(path, mmap_mode="r", allow_pickle=False) for path in paths]
    for path, array in zip(paths, arrays):
        if array.ndim != 2 or array.dtype.kind not in "iufb":
            raise DataError(f"{path} has shape {array.shape} and type {array.dtype}, and must be a matrix of numbers")
        if array.shape[1] != arrays[0].shape[1]:
            raise DataError(f"{path} has {array.shape[1]} columns, and {paths[0]} has {arrays[0].shape[1]}")
    return arrays


def _dataset(source: Any) -> Any:
    try:
        import pyarrow.dataset as datasets
    except ImportError as error:
        raise ImportError("files of Parquet need pyarrow: pip install pyarrow") from error
    if isinstance(source, datasets.Dataset):
        return source
    if not isinstance(source, (str, os.PathLike, list, tuple)):
        raise DataError(f"a {type(source).__name__} is in memory, or no table: give a pyarrow.dataset.Dataset, or paths")
    paths = [file for path in _paths(source) for file in _files(path)]
    # Names of folders are no columns, as the command has it.
    return _of_one_kind(datasets.dataset(paths[0] if len(paths) == 1 else paths, format="parquet", partitioning=None))


def _files(path: str) -> list[str]:
    """The Parquet files of a folder and of the folders in it, in the order of names; any other path is one."""
    if not os.path.isdir(path):
        return [path]
    found: list[str] = []

    def add(folder: str) -> None:
        for name in sorted(os.listdir(folder), key=os.fsencode):
            entry = os.path.join(folder, name)
            if os.path.isdir(entry):
                add(entry)
            elif name.endswith(".parquet"):
                found.append(entry)

    add(path)
    if not found:
        raise DataError(f"{path} has no file *.parquet: give a file, or a folder of Parquet files")
    return found


def _of_one_kind(dataset: Any) -> Any:
    """The dataset, whose files must have the columns of numbers of the first: pyarrow would fill in and leave out."""
    import pyarrow as pa
    import pyarrow.dataset as datasets

    files = [(fragment.path, fragment.physical_schema) for fragment in dataset.get_fragments()]
    numbers = [[field.name for field in schema if is_number(field.type)] for _, schema in files]
    for (path, schema), here in zip(files[1:], numbers[1:]):
        # A column that holds nothing, not even a type, is one of gaps.
        gaps = [field.name for field in schema if pa.types.is_null(field.type)]
        for which, names in (
            ("lacks", [name for name in numbers[0] if name not in here + gaps]),
            ("has", [name for name in here if name not in numbers[0]]),
        ):
            if names:
                listed, other = ", ".join(map(repr, names)), "has" if which == "lacks" else "lacks"
                raise DataError(f"{path} {which} the columns of numbers {listed}, which {files[0][0]} {other}: give files of the same columns")
    fields: dict[str, Any] = {}
    for _, schema in files:
        for field in schema:
            known = fields.setdefault(field.name, field)
            # A column of whole numbers has others where some are missing; what is no number is not looked at.
            if known.type != field.type and (is_number(known.type) or pa.types.is_null(known.type)):
                fields[field.name] = pa.field(field.name, pa.float64() if is_number(known.type) else field.type)
    schema = pa.schema(list(fields.values()))
    return datasets.dataset([path for path, _ in files], format="parquet", partitioning=None, schema=schema)


class _FileRows(Rows):
    """Blocks that come one after the other."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape
        # Passes are asked for by a thread of the library, which knows no limit of the caller's.
        self._workers = n_threads() or os.cpu_count() or 1
        self._seen: dict[int, int] = {}

    def _batches(self) -> Iterator[Array]:
        """All rows in order, some at a time."""
        raise NotImplementedError

    def _cut(self) -> Iterator[tuple[int, Array]]:
        for index, _, rows in _rows.cut(self._batches(), 0, self.size):
            yield index, rows

    def reduce(self, task: bytes) -> bytes:
        workers, states = self._workers, _rows.states
        found: list[bytes] = []
        waiting: deque[Future[bytes | None]] = deque()

        def take() -> None:
            state = waiting.popleft().result()
            if state is not None:
                # Neighbors are joined as soon as they are there: few states are kept.
                found[:] = [_rows.merged([*found, state])]

        with ThreadPoolExecutor(workers) as pool:
            for index, rows in self._cut():
                if index not in self._seen:
                    self._seen[index] = _rows.checksum(rows)
                waiting.append(pool.submit(states, task, [Block(index, rows, self._seen[index])]))
                if len(waiting) > workers:
                    take()
            while waiting:
                take()
        return found[0]


class ArrayRows(_FileRows):
    names = None

    def __init__(self, arrays: list[Any]) -> None:
        self._arrays = arrays
        super().__init__((_rows.counted([len(array) for array in arrays]), arrays[0].shape[1]))

    def _batches(self) -> Iterator[Array]:
        for array in self._arrays:
            for start in range(0, len(array), self.size):
                yield np.asarray(array[start : start + self.size], dtype=np.float64)


class DatasetRows(_FileRows):
    def __init__(self, source: Any, columns: Sequence[str] | None) -> None:
        schema = source.schema
        self.names = _rows.chosen(schema.names, [is_number(kind) for kind in schema.types], columns)
        self._source = source
        super().__init__((_rows.counted([source.count_rows()]), len(self.names)))

    def _batches(self) -> Iterator[Array]:
        assert self.names is not None
        for batch in self._source.to_batches(columns=self.names):
            yield of_arrow(batch, self.names)


def asked(question: Question, source: Any) -> Any:
    """The answers as a reader of record batches."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError("answers about files are tables of Arrow: pip install pyarrow") from error
    arrays = _arrays(source)
    if arrays is not None:
        names = _rows.default_names(arrays[0].shape[1])
        schema = pa.schema([(name, pa.float64()) for name in names])

        def batches() -> Iterator[Any]:
            for array in arrays:
                for start in range(0, len(array), _BATCH):
                    rows = np.asarray(array[start : start + _BATCH], dtype=np.float64)
                    yield pa.table(list(rows.T.copy()), names=names)
    else:
        data = _dataset(source)
        schema = data.schema

        def batches() -> Iterator[Any]:
            for batch in data.to_batches():
                yield pa.Table.from_batches([batch])

    empty = question.of_arrow(schema.empty_table())

    def answers() -> Iterator[Any]:
        for batch in batches():
            yield from question.of_arrow(batch).to_batches()

    return pa.RecordBatchReader.from_batches(empty.schema, answers())


__all__ = ["ArrayRows", "DatasetRows", "asked", "table"]
