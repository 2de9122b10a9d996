"""Spark: a cluster of two executors on this machine, each a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import NAMES, estimator, mixture, saved
from pyspark.sql import SparkSession

from covary import cluster
from covary.cluster import _spark
from covary.exceptions import DataError

#: Compiled once and collected by one thread: half the processor time of a short run.
JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@pytest.fixture(scope="module")
def spark():
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.executor.memory", "1g")
        .config("spark.driver.extraJavaOptions", JVM)
        .config("spark.executor.extraJavaOptions", JVM)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.speculation", "true")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def two_tasks(monkeypatch):
    """A pass over the table of three blocks has two tasks, whatever its partitions: by default one would do."""
    monkeypatch.setattr(_spark, "_TASK", 1 << 25)


@pytest.fixture(scope="module")
def table(spark, parquet):
    """In the order of its key, in this many partitions."""

    def sorted_table(partitions: int):
        read = spark.read.parquet(str(parquet))
        return read.repartitionByRange(partitions, "key").sortWithinPartitions("key")

    return sorted_table


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_the_model_is_that_of_memory(table, expected, shuffled, tmp_path, partitions):
    assert saved(cluster.fit(estimator(), table(partitions), columns=NAMES), tmp_path) == expected


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_a_mixture_is_that_of_memory(table, expected_mixture, shuffled, tmp_path, partitions):
    model = cluster.fit(mixture(), table(partitions), columns=NAMES)
    assert saved(model, tmp_path) == expected_mixture


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def executor(worker: int) -> int:
    """The Java process above a worker of Python: a child of a child of ours, and not the driver."""
    found = worker
    while "CoarseGrainedExecutorBackend" not in Path(f"/proc/{found}/cmdline").read_text():
        found = parent(found)
        assert found > 1, f"process {worker} has no executor above it"
    ancestor = found
    while ancestor not in (os.getpid(), 1):
        ancestor = parent(ancestor)
    assert ancestor == os.getpid(), f"executor {found} is not ours"
    return found


def test_an_executor_killed_in_mid_pass_leaves_no_trace(table, expected, notes, tmp_path):
    noted = notes(slow=3)
    killer = noted.kill(executor)
    model = cluster.fit(estimator(), table(7), columns=NAMES)
    killer.join()
    assert noted.killed, "no executor was killed"
    assert noted.begun_twice(), "no block was summed again, so that nothing was shown"
    assert noted.tried_again(), "no task was tried again, so that nothing was shown"
    assert saved(model, tmp_path) == expected


def test_answers_are_those_of_memory_in_the_order_of_rows(frame, memory, table):
    part = frame.iloc[:5000]
    source = table(7).filter("key < 5000")
    filled = cluster.impute(memory, source, return_std=True).toPandas()
    values, std = memory.impute(part[NAMES], return_std=True)
    assert list(filled.columns) == [*frame.columns, *[f"{name}_std" for name in NAMES]]
    assert (filled[NAMES].to_numpy() == values).all()
    assert (filled[[f"{name}_std" for name in NAMES]].to_numpy() == std).all()
    assert filled["key"].tolist() == part["key"].tolist()
    assert filled["text"].tolist() == part["text"].tolist()
    scores = cluster.transform(memory, source).toPandas()
    assert list(scores.columns) == ["key", "text", "ppca0", "ppca1"]
    assert (scores[["ppca0", "ppca1"]].to_numpy() == memory.transform(part[NAMES])).all()
    density = cluster.score_samples(memory, source).toPandas()
    assert (density["log_density"].to_numpy() == memory.score_samples(part[NAMES])).all()


def test_columns_are_refused_by_name(table, memory):
    with pytest.raises(DataError, match="column 'text' does not hold numbers; name those that do"):
        cluster.fit(estimator(), table(1))
    with pytest.raises(DataError, match="has no column 'c0'"):
        cluster.transform(memory, table(1).drop("c0"))


CONNECTED = """
import sys
from pyspark.sql import SparkSession
from conftest import NAMES, estimator
from covary import cluster

spark = SparkSession.builder.remote("local[2]").getOrCreate()
table = spark.read.parquet(sys.argv[1]).filter("key < 30000").repartitionByRange(3, "key").sortWithinPartitions("key")
try:
    spark.sparkContext
except Exception as error:
    assert "sparkContext" in str(error), error
else:
    raise AssertionError("this is no session of Spark Connect")
cluster.fit(estimator(), table, columns=NAMES).save(sys.argv[2])
"""


def test_spark_connect_gives_the_same_model(frame, parquet, tmp_path):
    """In a process of its own: a session is classic or of Connect. One block in three partitions."""
    expected = saved(estimator().fit(frame[NAMES].head(30_000)), tmp_path)
    settings = f"--driver-java-options '{JVM}' --conf spark.ui.enabled=false --conf spark.sql.shuffle.partitions=4 pyspark-shell"
    model = tmp_path / "connect.covary"
    ran = subprocess.run(
        [sys.executable, "-c", CONNECTED, str(parquet), str(model)],
        cwd=Path(__file__).parent,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_SUBMIT_ARGS": settings},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert model.read_bytes() == expected
