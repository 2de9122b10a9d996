"""Dask: threads of this process, and a cluster of two processes."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pytest
from conftest import NAMES, estimator, mixture, saved
from distributed import Client, LocalCluster

import covary
from covary import cluster
from covary.exceptions import DataError


@pytest.fixture(scope="module")
def client():
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as local, Client(local) as client:
        yield client


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_the_model_is_that_of_memory(frame, expected, client, shuffled, tmp_path, partitions):
    model = cluster.fit(estimator(), dd.from_pandas(frame, npartitions=partitions), columns=NAMES)
    assert saved(model, tmp_path) == expected


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_a_mixture_is_that_of_memory(frame, expected_mixture, client, shuffled, tmp_path, partitions):
    model = cluster.fit(mixture(), dd.from_pandas(frame, npartitions=partitions), columns=NAMES)
    assert saved(model, tmp_path) == expected_mixture


def test_it_is_so_for_files_whose_partitions_have_other_lengths(parquet, expected, client, tmp_path):
    table = dd.read_parquet(parquet, split_row_groups=True)
    assert table.npartitions == 9
    assert saved(cluster.fit(estimator(), table, columns=NAMES), tmp_path) == expected


def test_an_array_has_no_names_and_otherwise_the_same_model(frame, client, tmp_path):
    values = frame[NAMES].to_numpy()
    table = da.from_array(values, chunks=(90_000, 7))
    expected = saved(estimator().fit(values), tmp_path)
    assert saved(cluster.fit(estimator(), table), tmp_path) == expected


def test_a_worker_killed_in_mid_pass_leaves_no_trace(parquet, expected, client, notes, tmp_path):
    noted = notes(slow=3)
    killer = noted.kill()
    model = cluster.fit(estimator(), dd.read_parquet(parquet, split_row_groups=True), columns=NAMES)
    killer.join()
    assert noted.killed, "no worker was killed"
    assert noted.begun_twice(), "no block was summed again, so that nothing was shown"
    assert saved(model, tmp_path) == expected


def test_answers_are_those_of_memory_in_the_order_of_rows(frame, memory, client):
    part = frame.iloc[:5000]
    table = dd.from_pandas(part, npartitions=3)
    filled = cluster.impute(memory, table, return_std=True).compute()
    values, std = memory.impute(part[NAMES], return_std=True)
    assert list(filled.columns) == [*frame.columns, *[f"{name}_std" for name in NAMES]]
    assert (filled[NAMES].to_numpy() == values).all()
    assert (filled[[f"{name}_std" for name in NAMES]].to_numpy() == std).all()
    assert filled["key"].tolist() == part["key"].tolist()
    assert filled["text"].tolist() == part["text"].tolist()
    scores = cluster.transform(memory, table).compute()
    assert list(scores.columns) == ["key", "text", "ppca0", "ppca1"]
    assert (scores[["ppca0", "ppca1"]].to_numpy() == memory.transform(part[NAMES])).all()
    density = cluster.score_samples(memory, table).compute()
    assert (density["log_density"].to_numpy() == memory.score_samples(part[NAMES])).all()


def test_answers_about_an_array_are_arrays(frame, client):
    values = frame[NAMES].to_numpy()[:5000]
    model = covary.PPCA(2).fit(values)
    table = da.from_array(values, chunks=(1700, 7))
    assert (cluster.impute(model, table).compute() == model.impute(values)).all()
    assert (cluster.transform(model, table).compute() == model.transform(values)).all()
    assert (cluster.score_samples(model, table).compute() == model.score_samples(values)).all()


def test_a_plan_that_depends_on_chance_is_refused(frame):
    def some(part):
        return part.sample(frac=np.random.default_rng().uniform(0.5, 0.9))

    table = dd.from_pandas(frame[NAMES[:5]], npartitions=3).map_partitions(some)
    with pytest.raises(DataError, match=r"has \d+ rows and had \d+ when rows were counted"):
        cluster.fit(estimator(), table)


def test_columns_are_refused_by_name(frame):
    table = dd.from_pandas(frame.head(100), npartitions=2)
    with pytest.raises(DataError, match="column 'text' does not hold numbers; name those that do"):
        cluster.fit(estimator(), table)
    with pytest.raises(DataError, match="there is no column 'height'"):
        cluster.fit(estimator(), table, columns=["height"])
    with pytest.raises(DataError, match="has no column 'c0'"):
        cluster.transform(covary.PPCA(2).fit(frame[NAMES].head(200)), table[["c1", "c2"]])
