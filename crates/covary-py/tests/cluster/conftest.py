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

N_COLUMNS = 100
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
    frame.to_parquet(path, row_group_size=20_011)
    return path


def estimator() -> covary.PPCA:
    return covary.PPCA(2, tol=10.0)  # a few steps


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


class Notes:
    """A file for every block that a worker has begun: which pass, which block, which process, which attempt of the engine."""

    def __init__(self, folder: Path, pause: float, straggler: float) -> None:
        self.folder, self.pause, self.straggler = folder, pause, straggler
        self.killed: list[int] = []

    def states(self):
        """As `_rows.states`, with a note and a pause for each block; sent to workers by value."""
        own, folder, pause, straggler = _rows.states, str(self.folder), self.pause, self.straggler

        def states(task, blocks):
            import hashlib
            import os
            import sys
            import time
            import uuid

            attempt = 0
            if "pyspark" in sys.modules:
                from pyspark import TaskContext

                attempt = TaskContext.get().attemptNumber()
            name = hashlib.sha256(task).hexdigest()[:12]

            def noted():
                for block in blocks:
                    first = block.number == 0 and not any(f.split("-")[1] == "0" for f in os.listdir(folder))
                    open(f"{folder}/{name}-{block.number}-{os.getpid()}-{attempt}-{uuid.uuid4().hex}", "x").close()
                    time.sleep(straggler if first and straggler else pause)
                    yield block

            return own(task, noted())

        return states

    def read(self) -> list[tuple[str, int, int, int]]:
        """Notes in the order in which they were made."""
        files = sorted(self.folder.iterdir(), key=lambda file: file.stat().st_mtime_ns)
        parts = [file.name.split("-") for file in files]
        return [(task, int(block), int(pid), int(attempt)) for task, block, pid, attempt, _ in parts]

    def passes(self) -> list[str]:
        return list(dict.fromkeys(task for task, *_ in self.read()))

    def begun_twice(self) -> list[tuple[str, int]]:
        counts = Counter((task, block) for task, block, *_ in self.read())
        return [key for key, count in counts.items() if count > 1]

    def kill_in_pass(self, number: int, victim=lambda pid: pid) -> threading.Thread:
        """Kills whoever has begun a block of this pass, while it is at it."""

        def wait_and_kill() -> None:
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                passes = self.passes()
                if len(passes) >= number:
                    pid = next(pid for task, _, pid, _ in self.read() if task == passes[number - 1])
                    self.killed.append(victim(pid))
                    os.kill(self.killed[0], signal.SIGKILL)
                    return
                time.sleep(0.02)

        thread = threading.Thread(target=wait_and_kill, daemon=True)
        thread.start()
        return thread


@pytest.fixture
def notes(tmp_path, monkeypatch):
    """Workers leave notes and pause at each block; whoever is first to begin block 0 for as long as a straggler."""

    def begin(pause: float = 0.0, straggler: float = 0.0) -> Notes:
        folder = tmp_path / "notes"
        folder.mkdir()
        notes = Notes(folder, pause, straggler)
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
