"""Files of this machine, and what is refused whatever the engine."""

from __future__ import annotations

import platform
from importlib.metadata import version

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as datasets
import pyarrow.parquet as pq
import pytest
from conftest import NAMES, estimator, mixture, saved

import covary
from covary import _covary, _rows, cluster
from covary.exceptions import DataError, OptionError


def test_the_model_is_that_of_memory(frame, parquet, expected, shuffled, tmp_path):
    assert saved(cluster.fit(estimator(), parquet, columns=NAMES), tmp_path) == expected
    assert saved(cluster.fit(estimator(), datasets.dataset(parquet), columns=NAMES), tmp_path) == expected


def test_a_mixture_is_that_of_memory(frame, parquet, expected_mixture, shuffled, tmp_path):
    assert saved(cluster.fit(mixture(), parquet, columns=NAMES), tmp_path) == expected_mixture
    values = frame[NAMES].to_numpy()
    np.save(tmp_path / "table.npy", values)
    factors = covary.MixturePPCA(2, n_components=1, noise="diagonal", n_init=1, tol=1e4)
    expected = saved(factors.fit(values), tmp_path)
    assert saved(cluster.fit(factors, tmp_path / "table.npy"), tmp_path) == expected


def test_the_size_of_a_mixture_must_be_given(parquet):
    for asked in (covary.MixturePPCA(2), covary.MixturePPCA(n_components=1)):
        with pytest.raises(OptionError, match="choice of the size of a mixture needs the table in memory; use numbers"):
            cluster.fit(asked, parquet, columns=NAMES)


@pytest.mark.parametrize("parts", [2, 7])
def test_several_files_are_one_table(frame, expected, tmp_path, parts):
    size = -(-len(frame) // parts)
    paths = [tmp_path / f"{k}.parquet" for k in range(parts)]
    for k, path in enumerate(paths):
        frame.iloc[k * size : (k + 1) * size].to_parquet(path)
    assert saved(cluster.fit(estimator(), paths, columns=NAMES), tmp_path) == expected


def test_a_folder_is_the_table_that_the_command_reads(tmp_path):
    values = np.random.default_rng(0).normal(size=(300, 3))
    values[:100, 1] = np.nan
    table = pd.DataFrame(values, columns=["a", "b", "c"])
    folder = tmp_path / "table"
    (folder / "year=2001").mkdir(parents=True)
    (folder / "year=2002").mkdir()
    (folder / "notes.txt").write_text("no part of it")
    # Of no type where it holds nothing, and after other names of folders.
    table[:50].to_parquet(folder / "year=2001" / "z.parquet")
    table[50:100].astype({"b": object}).to_parquet(folder / "year=2002" / "a.parquet")
    table[100:].to_parquet(folder / "zz.parquet")
    assert pq.read_schema(folder / "year=2002" / "a.parquet").field("b").type == pa.null()
    fitted = cluster.fit(estimator(), folder)
    assert list(fitted.feature_names_in_) == ["a", "b", "c"]
    assert saved(fitted, tmp_path) == saved(estimator().fit(table), tmp_path)
    assert cluster.transform(fitted, folder).read_all().column_names == ["ppca0", "ppca1"]


def test_whole_numbers_in_one_part_go_with_others_in_another(tmp_path):
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 3)).round(1), columns=["a", "b", "c"])
    table.loc[:149, "b"] = np.arange(150.0)
    table.loc[200:219, "b"] = np.nan
    folder = tmp_path / "table"
    folder.mkdir()
    for order in (("0", "1"), ("1", "0")):
        table[:150].astype({"b": "int64"}).to_parquet(folder / f"{order[0]}.parquet")
        table[150:].to_parquet(folder / f"{order[1]}.parquet")
        whole = table if order[0] == "0" else pd.concat([table[150:], table[:150]])
        assert saved(cluster.fit(estimator(), folder), tmp_path) == saved(estimator().fit(whole), tmp_path)


def test_a_part_of_other_columns_is_refused_by_name(tmp_path):
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 3)), columns=["a", "b", "c"])
    table.to_parquet(tmp_path / "p0.parquet")
    for other, said in (
        (table[["a", "c"]], "p1.parquet lacks the columns of numbers 'b', which .*p0.parquet has"),
        (table.assign(b="text"), "p1.parquet lacks the columns of numbers 'b', which .*p0.parquet has"),
        (table.assign(d=1.0), "p1.parquet has the columns of numbers 'd', which .*p0.parquet lacks"),
    ):
        other.to_parquet(tmp_path / "p1.parquet")
        for source in (tmp_path, [tmp_path / "p0.parquet", tmp_path / "p1.parquet"]):
            with pytest.raises(DataError, match=said):
                cluster.fit(estimator(), source)
    # A dataset that somebody else made has the columns that it says.
    assert cluster.fit(estimator(), datasets.dataset(tmp_path), columns=["a", "b", "c"]).n_features_in_ == 3
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"empty has no file \*.parquet"):
        cluster.fit(estimator(), tmp_path / "empty")


def test_arrays_have_no_names_and_otherwise_the_same_model(frame, tmp_path):
    values = frame[NAMES].to_numpy()
    paths = [tmp_path / "a.npy", tmp_path / "b.npy"]
    np.save(paths[0], values[:50_000])
    np.save(paths[1], np.asfortranarray(values[50_000:]))
    expected = saved(estimator().fit(values), tmp_path)
    assert saved(cluster.fit(estimator(), paths), tmp_path) == expected


def test_factor_analysis_has_the_parameters_of_memory(frame, tmp_path):
    values = frame[NAMES].to_numpy()
    np.save(tmp_path / "table.npy", values)
    ours = cluster.fit(covary.FactorAnalysis(2, rotation="promax"), tmp_path / "table.npy")
    theirs = covary.FactorAnalysis(2, rotation="promax").fit(values)
    for name in ("components_", "mean_", "noise_variance_", "factor_correlations_", "trace_"):
        assert (getattr(ours, name) == getattr(theirs, name)).all(), name


def test_threads_leave_no_trace(parquet, expected, tmp_path):
    with covary.threads(1):
        assert saved(cluster.fit(estimator(), parquet, columns=NAMES), tmp_path) == expected


def test_answers_are_those_of_memory_in_the_order_of_rows(frame, memory, parquet):
    filled = cluster.impute(memory, parquet, return_std=True).read_all().to_pandas()
    values, std = memory.impute(frame[NAMES], return_std=True)
    assert (filled[NAMES].to_numpy() == values).all()
    assert (filled[[f"{name}_std" for name in NAMES]].to_numpy() == std).all()
    assert filled[["key", "text"]].equals(frame[["key", "text"]])
    scores = cluster.transform(memory, parquet).read_all().to_pandas()
    assert (scores[["ppca0", "ppca1"]].to_numpy() == memory.transform(frame[NAMES])).all()
    density = cluster.score_samples(memory, parquet).read_all().to_pandas()
    assert (density["log_density"].to_numpy() == memory.score_samples(frame[NAMES])).all()


def changed(monkeypatch, change) -> None:
    """The sums of every pass after the first are changed on their way."""
    from covary.cluster._local import DatasetRows

    own, passes = DatasetRows.reduce, []

    def reduce(self, task):
        passes.append((task, own(self, task)))
        return passes[-1][1] if len(passes) == 1 else change(self, task, passes)

    monkeypatch.setattr(DatasetRows, "reduce", reduce)


def of_blocks(rows, task, wanted) -> list[bytes]:
    return [_covary.pass_block(task, index, block) for index, block in rows._cut() if wanted(index)]


def test_a_lost_block_is_named(parquet, monkeypatch):
    changed(monkeypatch, lambda rows, task, _: _rows.merged(of_blocks(rows, task, lambda index: index != 1)))
    with pytest.raises(DataError, match="block 1 "):
        cluster.fit(estimator(), parquet, columns=NAMES)


def test_the_last_block_lost_is_named(parquet, monkeypatch):
    changed(monkeypatch, lambda rows, task, _: _rows.merged(of_blocks(rows, task, lambda index: index != 2)))
    with pytest.raises(DataError, match="block 2 "):
        cluster.fit(estimator(), parquet, columns=NAMES)


def test_a_block_that_is_there_twice_is_named(parquet, monkeypatch):
    changed(
        monkeypatch,
        lambda rows, task, passes: _rows.merged([passes[-1][1], *of_blocks(rows, task, lambda index: index == 1)]),
    )
    with pytest.raises(DataError, match="block"):
        cluster.fit(estimator(), parquet, columns=NAMES)


def test_sums_of_another_pass_are_refused(parquet, monkeypatch):
    changed(monkeypatch, lambda rows, task, passes: passes[0][1])
    with pytest.raises(DataError, match="pass"):
        cluster.fit(estimator(), parquet, columns=NAMES)


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (version("covary"), "sums of version `zzzzz` .* install one version"),
        (platform.machine(), "sums of instruction set `zzzz.* machines of one kind"),
    ],
)
def test_sums_of_a_worker_of_another_version_or_instruction_set_are_refused(parquet, monkeypatch, own, said):
    def other(rows, task, passes):
        assert own.encode() in passes[-1][1]
        return passes[-1][1].replace(own.encode(), b"z" * len(own), 1)

    changed(monkeypatch, other)
    with pytest.raises(DataError, match=said):
        cluster.fit(estimator(), parquet, columns=NAMES)


@pytest.mark.parametrize(
    "other",
    [
        lambda: covary.Gaussian(max_iter=1),
        lambda: covary.BayesianPCA(2, max_iter=2),
        lambda: covary.BayesianPCA(2, inference="mean_field", standardize=False, max_iter=2),
    ],
    ids=["gaussian", "structured", "mean_field"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_other_models_are_those_of_memory(frame, tmp_path, shuffled, other):
    values = frame[NAMES[:12]].to_numpy()
    assert len(values) > _covary.block_rows(12)  # several blocks
    np.save(tmp_path / "table.npy", values)
    expected = saved(other().fit(values), tmp_path)
    assert saved(cluster.fit(other(), tmp_path / "table.npy"), tmp_path) == expected


def test_rows_that_changed_are_refused():
    rows = np.arange(6.0).reshape(3, 2)
    block = _rows.Block(4, rows, _rows.checksum(rows))
    assert (_rows.unchanged(block) == rows).all()
    with pytest.raises(DataError, match="block 4 of the table holds other rows than in an earlier pass"):
        _rows.unchanged(block._replace(rows=rows[::-1]))


@pytest.mark.parametrize("counts", [[10], [3, 7], [0, 1, 0, 9], [4, 4, 2], [1] * 10])
@pytest.mark.parametrize("size", [1, 3, 4, 10, 11])
def test_blocks_are_those_of_the_table_however_it_is_partitioned(counts, size):
    table = np.arange(20.0).reshape(10, 2)
    expected = [table[start : start + size] for start in range(0, 10, size)]
    first = np.cumsum([0, *counts])
    parts = [table[a:b] for a, b in zip(first, first[1:])]
    blocks = [
        _rows.joined([(parts[p], start, stop, counts[p]) for p, start, stop in block]) for block in _rows.pieces(counts, size)
    ]
    assert len(blocks) == len(expected) and all((a == b).all() for a, b in zip(blocks, expected))
    cut = list(_rows.cut(parts, 0, size))
    assert [(index, start) for index, start, _ in cut] == [(index, 0) for index in range(len(expected))]
    assert all((a == b).all() for (_, _, a), b in zip(cut, expected))
    # Each partition by itself gives the parts of blocks that it has.
    for rows, start in zip(parts, first):
        for index, place, found in _rows.cut([rows], int(start), size):
            assert (found == expected[index][place : place + len(found)]).all()


def test_an_infinite_cell_is_named(tmp_path):
    values = np.random.default_rng(0).normal(size=(100, 4))
    values[2, 1] = np.inf
    np.save(tmp_path / "table.npy", values)
    with pytest.raises(DataError, match="in block 0, whose row 1 is row 1 of the table: .*row 3, column `x2`"):
        cluster.fit(estimator(), tmp_path / "table.npy")


def test_what_needs_the_table_is_refused_with_a_remedy(tmp_path):
    values = np.random.default_rng(0).normal(size=(100, 4))
    values[5, 1] = np.nan
    np.save(tmp_path / "table.npy", values)
    with pytest.raises(OptionError, match="choice of a number of components needs the table in memory; use a number"):
        cluster.fit(covary.PPCA(), tmp_path / "table.npy")
    values[:, 2] = 7.0
    np.save(tmp_path / "table.npy", values)
    with pytest.raises(OptionError, match="column `x3` does not vary .* the table without that column"):
        cluster.fit(covary.PPCA(1), tmp_path / "table.npy")


def test_what_cannot_be_fitted_so_says_so(parquet, frame, tmp_path):
    with pytest.raises(OptionError, match="GaussianMixture is not fitted in passes over the rows; PPCA, BayesianPCA, FactorAnalysis, Gaussian and MixturePPCA are"):
        cluster.fit(covary.GaussianMixture(2), parquet)
    with pytest.raises(OptionError, match="method `gibbs` needs the table in memory"):
        cluster.fit(covary.BayesianPCA(2, inference="gibbs"), parquet, columns=NAMES)
    with pytest.raises(DataError, match="a DataFrame is no table of an engine.*goes to the estimator's own fit"):
        cluster.fit(estimator(), frame)
    with pytest.raises(DataError, match="column 'text' does not hold numbers; name those that do by columns="):
        cluster.fit(estimator(), parquet)
    with pytest.raises(DataError, match="there is no column 'c99'"):
        cluster.fit(estimator(), parquet, columns=["c99"])
    np.save(tmp_path / "flat.npy", np.zeros(3))
    with pytest.raises(DataError, match=r"flat.npy has shape \(3,\)"):
        cluster.fit(estimator(), tmp_path / "flat.npy")
    with pytest.raises(DataError, match="is no .npy file, and others are"):
        cluster.fit(estimator(), [parquet, tmp_path / "flat.npy"])
    pq.write_table(pq.read_table(parquet, columns=NAMES).slice(0, 1), tmp_path / "one.parquet")
    with pytest.raises(DataError, match="a fit needs at least 2 rows, and the table has 1"):
        cluster.fit(estimator(), tmp_path / "one.parquet")
