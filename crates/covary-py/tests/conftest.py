"""Tables that several tests share."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]


def read(path: Path) -> tuple[list[str], np.ndarray]:
    """Names and numbers of a CSV file, without its column of text."""
    with path.open() as file:
        header, *rows = list(csv.reader(file))
    kept = [j for j, name in enumerate(header) if name != "cultivar"]
    cell = [[float(row[j]) if row[j] else np.nan for j in kept] for row in rows]
    return [header[j] for j in kept], np.array(cell)


@pytest.fixture(scope="session")
def wine() -> np.ndarray:
    return read(ROOT / "examples" / "wine.csv")[1]


@pytest.fixture(scope="session")
def wine_gaps() -> np.ndarray:
    return read(ROOT / "examples" / "wine_gaps.csv")[1]


@pytest.fixture(scope="session")
def wine_names() -> list[str]:
    return read(ROOT / "examples" / "wine.csv")[0]


@pytest.fixture(scope="session")
def command() -> str:
    """The command line tool: built by the checks that run before these."""
    built = os.environ.get("COVARY_COMMAND", str(ROOT / "target" / "release" / "covary"))
    if not Path(built).exists():
        pytest.skip(f"SKIPPED: no command at {built}; cargo build --release makes it")
    return built
