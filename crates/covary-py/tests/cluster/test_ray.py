"""Ray: two workers on this machine."""

from __future__ import annotations

import os

import pytest
import ray
from conftest import NAMES, estimator, mixture, saved

from covary import cluster
from covary.exceptions import DataError


@pytest.fixture(scope="module")
def local():
    # Ray gives its workers the rest of the processor that nobody else wants (niceness 15).
    os.environ |= {"RAY_worker_niceness": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def tables(frame, local):
    """The table in 1, 2 and 7 partitions of Ray's store, in their order."""

    def table(partitions: int):
        size = -(-len(frame) // partitions)
        return ray.data.from_pandas([frame.iloc[start : start + size] for start in range(0, len(frame), size)])

    return table


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_the_model_is_that_of_memory(tables, expected, shuffled, tmp_path, partitions):
    assert saved(cluster.fit(estimator(), tables(partitions), columns=NAMES), tmp_path) == expected


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_a_mixture_is_that_of_memory(tables, expected_mixture, shuffled, tmp_path, partitions):
    model = cluster.fit(mixture(), tables(partitions), columns=NAMES)
    assert saved(model, tmp_path) == expected_mixture


def test_a_worker_killed_in_mid_pass_leaves_no_trace(tables, expected, notes, tmp_path):
    noted = notes(slow=3)
    killer = noted.kill()
    model = cluster.fit(estimator(), tables(7), columns=NAMES)
    killer.join()
    assert noted.killed, "no worker was killed"
    assert noted.begun_twice(), "no block was summed again, so that nothing was shown"
    assert saved(model, tmp_path) == expected


def test_answers_are_those_of_memory_in_the_order_of_rows(frame, memory, local):
    part = frame.iloc[:5000]
    table = ray.data.from_pandas([part.iloc[:1700], part.iloc[1700:]])
    filled = cluster.impute(memory, table, return_std=True).to_pandas()
    values, std = memory.impute(part[NAMES], return_std=True)
    assert list(filled.columns) == [*frame.columns, *[f"{name}_std" for name in NAMES]]
    assert (filled[NAMES].to_numpy() == values).all()
    assert (filled[[f"{name}_std" for name in NAMES]].to_numpy() == std).all()
    assert filled["key"].tolist() == part["key"].tolist()
    assert filled["text"].tolist() == part["text"].tolist()
    scores = cluster.transform(memory, table).to_pandas()
    assert list(scores.columns) == ["key", "text", "ppca0", "ppca1"]
    assert (scores[["ppca0", "ppca1"]].to_numpy() == memory.transform(part[NAMES])).all()
    density = cluster.score_samples(memory, table).to_pandas()
    assert (density["log_density"].to_numpy() == memory.score_samples(part[NAMES])).all()


def test_columns_are_refused_by_name(frame, memory, local):
    table = ray.data.from_pandas(frame.head(100))
    with pytest.raises(DataError, match="column 'text' does not hold numbers; name those that do"):
        cluster.fit(estimator(), table)
    with pytest.raises(DataError, match="has no column 'c0'"):
        cluster.transform(memory, table.drop_columns(["c0"]))
