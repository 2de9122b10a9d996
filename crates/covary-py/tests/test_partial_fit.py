"""PPCA and FactorAnalysis learned a block of rows at a time."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone

import covary
from covary.exceptions import ComponentsError, CovaryWarning, OptionError


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1500, 3)) @ rng.normal(size=(3, 10)) + 0.7 * rng.normal(size=(1500, 10)) + 5.0
    x[rng.random(x.shape) < 0.15] = np.nan
    return x


STREAMS = [covary.PPCA(3), covary.PPCA(3, standardize=False), covary.FactorAnalysis(3)]


def streamed(estimator, table, size=150, times=1):
    model = clone(estimator)
    for _ in range(times):
        for start in range(0, len(table), size):
            model.partial_fit(table[start : start + size])
    return model


@pytest.mark.parametrize("estimator", STREAMS, ids=repr)
def test_a_stream_that_repeats_a_table_comes_to_the_fit_of_that_table(estimator, table):
    best = clone(estimator).set_params(tol=1e-6).fit(table).score(table)
    once, often = streamed(estimator, table), streamed(estimator, table, times=20)
    # Nats per row.
    assert -1e-9 < best - once.score(table) < 1e-2
    assert -1e-9 < best - often.score(table) < (2e-3 if isinstance(estimator, covary.FactorAnalysis) else 2e-5)
    assert often.n_samples_seen_ == 20 * len(table) and once.n_samples_seen_ == len(table)
    assert often.log_likelihood_ / often.n_samples_seen_ == pytest.approx(often.score(table), abs=0.01)


@pytest.mark.parametrize("estimator", STREAMS, ids=repr)
def test_a_stream_is_an_ordinary_model(estimator, table, tmp_path):
    model = streamed(estimator, table)
    filled, std = model.impute(table, return_std=True)
    assert np.isfinite(filled).all() and (std[np.isnan(table)] > 0).all()
    model.save(tmp_path / "stream.covary")
    loaded = covary.load(tmp_path / "stream.covary")
    assert type(loaded) is type(estimator)
    assert (loaded.transform(table) == model.transform(table)).all()
    assert (loaded.score_samples(table) == model.score_samples(table)).all()
    with pytest.warns(CovaryWarning, match="begins anew"):
        assert loaded.partial_fit(table[:500]).n_samples_seen_ == 500


@pytest.mark.parametrize("estimator", STREAMS, ids=repr)
def test_copies_of_a_stream_go_on_by_themselves(estimator, table):
    half = streamed(estimator, table[:900])
    before = half.score(table)
    twins = [pickle.loads(pickle.dumps(half)), copy.copy(half), copy.deepcopy(half)]
    whole = streamed(estimator, table)
    for twin in twins:
        for start in range(900, 1500, 150):
            twin.partial_fit(table[start : start + 150])
        assert (twin.loadings_ == whole.loadings_).all() and (twin.mean_ == whole.mean_).all()
    assert half.score(table) == before and half.n_samples_seen_ == 900


def test_fit_begins_anew(table):
    model = streamed(covary.PPCA(3), table).fit(table)
    assert not hasattr(model, "n_samples_seen_")
    assert (model.loadings_ == covary.PPCA(3).fit(table).loadings_).all()
    with pytest.warns(CovaryWarning, match="begins anew"):
        model.partial_fit(table[:500])
    assert (model.loadings_ == covary.PPCA(3).partial_fit(table[:500]).loadings_).all()


def test_the_number_of_components_must_be_given(table):
    for estimator in (covary.PPCA(), covary.PPCA(0.9), covary.FactorAnalysis()):
        assert not hasattr(estimator, "partial_fit")
        with pytest.raises(AttributeError, match="needs a number of components"):
            estimator.partial_fit(table)
    with pytest.raises(ComponentsError, match="cannot change between blocks"):
        streamed(covary.PPCA(3), table).set_params(n_components=2).partial_fit(table)
    with pytest.raises(ComponentsError):
        covary.PPCA(10).partial_fit(table)


def test_what_a_stream_has_not_is_refused(table):
    with pytest.raises(OptionError, match="spectral"):
        covary.PPCA(3, inference="spectral").partial_fit(table)
    with pytest.raises(OptionError, match="not turned"):
        covary.FactorAnalysis(3, rotation="varimax").partial_fit(table)
    with pytest.raises(OptionError, match="fixed_point"):
        covary.FactorAnalysis(3, inference="fixed_point").partial_fit(table)


def test_threads_leave_no_trace(table):
    found = []
    for n in (1, 2):
        with covary.threads(n):
            found.append(streamed(covary.PPCA(3), table).loadings_)
    assert (found[0] == found[1]).all()
