"""One table in several blocks, the model of it in memory, and workers that leave a note for every block they begin."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import covary
from covary import _covary, _rows

N_COLUMNS = 20
NAMES = [f"c{j}" for j in range(N_COLUMNS)]


@pytest.fixture(scope="session")
def frame() -> pd.DataFrame:
    """Two blocks and a bit, a tenth of the cells missing, with a key and a text that are not in the model."""
    rng = np.random.default_rng(0)
    n = 2 * _covary.block_rows(N_COLUMNS) + 1234
    x = rng.normal(size=(n, 2)) @ rng.normal(size=(2, N_COLUMNS)) + rng.normal(size=(n, N_COLUMNS))
    x[rng.random(x.shape) < 0.1] = np.nan
    table = pd.DataFrame(x + np.arange(N_COLUMNS), columns=NAMES)
    table.insert(0, "key", np.arange(n))
    table["text"] = np.where(np.arange(n) % 2, "odd", "even")
    return table


@pytest.fixture(scope="session")
def parquet(frame, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("table") / "table.parquet"
    frame.to_parquet(path, row_group_size=50_021)
    return path


def estimator() -> covary.PPCA:
    return covary.PPCA(2, tol=10.0)  # a few steps


def mixture() -> covary.MixturePPCA:
    return covary.MixturePPCA(2, n_components=1, n_init=2, tol=1e4)  # a few steps


def saved(model, folder: Path) -> bytes:
    path = folder / "model.covary"
    model.save(path)
    return path.read_bytes()


@pytest.fixture(scope="session")
def memory(frame):
    """The model of the table in memory."""
    return estimator().fit(frame[NAMES])


@pytest.fixture(scope="session")
def expected(memory, tmp_path_factory) -> bytes:
    return saved(memory, tmp_path_factory.mktemp("memory"))


@pytest.fixture(scope="session")
def expected_mixture(frame, tmp_path_factory) -> bytes:
    return saved(mixture().fit(frame[NAMES]), tmp_path_factory.mktemp("mixture"))


class Notes:
    """A file for every block that a worker has begun: which pass, which block, which process, and on Spark which attempt at which task."""

    def __init__(self, folder: Path, slow: int | None) -> None:
        self.folder, self.slow = folder, slow
        self.killed: list[int] = []

    def states(self):
        """As `_rows.states`, with a note for each block and, in the pass that is slow, time to be killed; sent to workers by value."""
        own, folder, slow = _rows.states, str(self.folder), self.slow

        def states(task, blocks):
            import hashlib
            import os
            import sys
            import time
            import uuid

            name = hashlib.sha256(task).hexdigest()[:12]
            attempt = ""
            if (spark := sys.modules.get("pyspark")) and (context := spark.TaskContext.get()):
                attempt = f"{context.stageId()}.{context.partitionId()}.{context.taskAttemptId()}"

            def noted():
                for block in blocks:
                    open(f"{folder}/{name}-{block.number}-{os.getpid()}-{attempt}-{uuid.uuid4().hex}", "x").close()
                    begun = os.listdir(folder)
                    if len({note.split("-")[0] for note in begun}) == slow and not os.path.exists(f"{folder}.killed"):
                        time.sleep(3)
                    yield block

            return own(task, noted())

        return states

    def read(self) -> list[tuple[str, int, int, str]]:
        """Notes in the order in which they were made."""
        files = sorted(self.folder.iterdir(), key=lambda file: file.stat().st_mtime_ns)
        parts = [file.name.split("-") for file in files]
        return [(task, int(block), int(pid), attempt) for task, block, pid, attempt, _ in parts]

    def passes(self) -> list[str]:
        return list(dict.fromkeys(task for task, *_ in self.read()))

    def begun_twice(self) -> list[tuple[str, int]]:
        counts = Counter((task, block) for task, block, *_ in self.read())
        return [key for key, count in counts.items() if count > 1]

    def tried_again(self) -> list[str]:
        """Tasks (stage and partition) that Spark made a second attempt at. A stage that lost what it was to read is begun again as a
        whole, under its own number, and counts its attempts at tasks from 0: an attempt is known by its own number."""
        attempts = {attempt for *_, attempt in self.read()}
        counts = Counter(attempt.rpartition(".")[0] for attempt in attempts)
        return [task for task, count in counts.items() if count > 1]

    def kill(self, victim=lambda pid: pid) -> threading.Thread:
        """Kills whoever has begun a block of the pass that is slow, while it is at it."""

        def wait_and_kill() -> None:
            deadline = time.monotonic() + 200
            while time.monotonic() < deadline:
                passes = self.passes()
                if len(passes) == self.slow:
                    pid = next(pid for task, _, pid, _ in self.read() if task == passes[-1])
                    found = victim(pid)
                    os.kill(found, signal.SIGKILL)
                    self.killed.append(found)
                    Path(f"{self.folder}.killed").touch()
                    return
                time.sleep(0.02)

        thread = threading.Thread(target=wait_and_kill, daemon=True)
        thread.start()
        return thread


@pytest.fixture
def notes(tmp_path, monkeypatch):
    """Workers leave notes; those of the pass of this number take their time until one of them was killed."""

    def begin(slow: int) -> Notes:
        folder = tmp_path / "notes"
        folder.mkdir()
        notes = Notes(folder, slow)
        monkeypatch.setattr(_rows, "states", notes.states())
        return notes

    return begin


@pytest.fixture
def shuffled(monkeypatch):
    """States are merged in random order."""
    own = _rows.merged

    def merged(found):
        import random

        return own(random.sample(list(found), len(found)))

    monkeypatch.setattr(_rows, "merged", merged)
