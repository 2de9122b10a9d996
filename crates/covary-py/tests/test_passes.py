"""Rows that an engine goes through: the protocol of `_covary`, without any engine."""

import random

import numpy as np
import pytest

from covary import _covary
from covary.exceptions import CovaryError, DataError, OptionError


def table(rows: int, columns: int = 6, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2)) @ rng.normal(size=(2, columns)) + 0.5 * rng.normal(size=(rows, columns))
    x[rng.random(x.shape) < 0.1] = np.nan
    return x


class Loop:
    """An engine that goes through blocks in a random order and merges in another."""

    def __init__(self, x: np.ndarray, size: int, seed: int = 0) -> None:
        self.blocks = [x[i : i + size] for i in range(0, len(x), size)]
        self.random = random.Random(seed)
        self.tasks: list[bytes] = []

    def __call__(self, task: bytes) -> bytes:
        self.tasks.append(task)
        order = list(range(len(self.blocks)))
        self.random.shuffle(order)
        states = [_covary.pass_block(task, i, self.blocks[i]) for i in order]
        while len(states) > 1:
            k = self.random.randint(2, len(states))
            states = [_covary.merge(states[:k]), *states[k:]]
            self.random.shuffle(states)
        return states[0]


NAMES = [f"x{j}" for j in range(1, 7)]


@pytest.mark.parametrize("family", ["ppca", "fa"])
def test_one_block_is_the_fit_in_memory(family: str) -> None:
    x = table(300)
    asked: _covary.Request = {"n_components": 2, "inference": "em"}
    here = _covary.fit(x, NAMES, family, asked)
    there = _covary.fit_rows(NAMES, family, asked, Loop(x, _covary.block_rows(6)))
    if family == "ppca":  # factor analysis has a test of fit in memory
        assert there.write() == here.write()
    assert np.array_equal(there.covariance(), here.covariance())
    assert type(there) is type(here)


def test_many_blocks_are_the_fit_in_memory() -> None:
    rows = _covary.block_rows(6)
    x = table(3 * rows + 17)
    asked: _covary.Request = {"n_components": 2, "inference": "em", "max_iterations": 3}
    here = _covary.fit(x, NAMES, "ppca", asked).write()
    assert _covary.fit_rows(NAMES, "ppca", asked, Loop(x, rows, seed=1)).write() == here


def test_any_order_of_merges_gives_the_same_bytes() -> None:
    x = table(500)
    asked: _covary.Request = {"n_components": 2}
    saved = {_covary.fit_rows(NAMES, "ppca", asked, Loop(x, 23, seed), n_blocks=22).write() for seed in range(5)}
    assert len(saved) == 1


def test_what_is_wrong_with_sums_is_named() -> None:
    x = table(60)
    engine = Loop(x, 20)
    _covary.fit_rows(NAMES, "ppca", {"n_components": 1}, engine)
    first, later = engine.tasks[0], engine.tasks[-1]
    states = [_covary.pass_block(later, i, block) for i, block in enumerate(engine.blocks)]
    with pytest.raises(DataError, match=r"block 1 \(counted from 0\) is in the sums of this pass twice"):
        _covary.merge([states[0], states[1], states[1]])
    with pytest.raises(DataError, match="sums of pass .* join sums of one pass only"):
        _covary.merge([states[0], _covary.pass_block(first, 1, engine.blocks[1])])
    version = b"0.1.0"
    assert states[1].count(version) == 1
    with pytest.raises(DataError, match="version `9.1.0` .* install one version"):
        _covary.merge([states[0], states[1].replace(version, b"9.1.0")])
    with pytest.raises(CovaryError, match="too short"):
        _covary.merge([states[0][:-8]])

    def loses(block: int):  # type: ignore[no-untyped-def]
        return lambda task: _covary.merge(
            [_covary.pass_block(task, i, b) for i, b in enumerate(engine.blocks) if i != block]
        )

    for block in range(3):
        with pytest.raises(DataError, match=f"block {block} of 3 .* is missing"):
            _covary.fit_rows(NAMES, "ppca", {"n_components": 1}, loses(block), n_blocks=3)


def test_what_an_engine_raises_is_raised() -> None:
    def engine(task: bytes) -> bytes:
        raise OSError("the cluster is gone")

    with pytest.raises(OSError, match="the cluster is gone"):
        _covary.fit_rows(NAMES, "ppca", {"n_components": 1}, engine)


def test_what_needs_the_table_says_so() -> None:
    x = table(60)
    x[:, 2] = 3.0
    with pytest.raises(OptionError, match="column `x3` does not vary needs the table in memory"):
        _covary.fit_rows(NAMES, "ppca", {"n_components": 1}, Loop(x, 20))
    with pytest.raises(OptionError, match="a number of components that you name"):
        _covary.fit_rows(NAMES, "ppca", {}, Loop(table(60), 20))
    with pytest.raises(OptionError, match="model `ica` needs the table in memory"):
        _covary.fit_rows(NAMES, "ica", {"n_components": 1}, Loop(table(60), 20))
    with pytest.raises(DataError, match="column `x2`.* is inf"):
        x[3, 1] = np.inf
        _covary.fit_rows(NAMES, "ppca", {"n_components": 1}, Loop(x, 20))
