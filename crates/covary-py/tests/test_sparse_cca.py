"""Sparse canonical correlation: scikit-learn's contract, planted columns, and its numbers by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

import covary


@pytest.fixture
def views() -> tuple[np.ndarray, np.ndarray]:
    """Three columns of ten and four of twelve share a factor."""
    rng = np.random.default_rng(3)
    shared = rng.normal(size=(150, 1))
    x, y = 2 + rng.normal(size=(150, 10)), 3 * rng.normal(size=(150, 12))
    x[:, :3] += 2 * shared
    y[:, :4] += 6 * shared * [1, -1, 1, -1]
    return x, y


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("penalty", [0.7, "permutation"])
def test_check_estimator(penalty):
    pair = "fit_transform returns the variates of both views, as that of scikit-learn's CCA does"
    expected = {"check_transformer_general": pair, "check_transformer_data_not_an_array": pair}
    estimator = covary.SparseCCA(1, penalty=penalty)
    results = check_estimator(estimator, on_fail=None, expected_failed_checks=expected)
    failed = [f"{r['check_name']}: {r['exception']!r}" for r in results if r["status"] == "failed"]
    assert not failed
    assert sum(r["status"] == "passed" for r in results) >= 43


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_planted_columns_are_found(views, gaps):
    x, y = views
    rng = np.random.default_rng(5)
    x, y = (np.where(rng.random(v.shape) < gaps, np.nan, v) for v in (x, y))
    cca = covary.SparseCCA(penalty=(0.5, 0.55)).fit(x, y)
    assert list(np.flatnonzero(cca.x_weights_)) == [0, 1, 2]
    assert list(np.flatnonzero(cca.y_weights_)) == [0, 1, 2, 3]
    np.testing.assert_allclose(np.linalg.norm(cca.x_weights_, axis=0), 1.0)
    if not gaps:
        u, v = cca.transform(x, y)
        np.testing.assert_allclose(cca.correlations_[0], np.corrcoef(u[:, 0], v[:, 0])[0, 1], rtol=1e-10)


def test_without_bounds_they_are_singular_vectors(views):
    x, y = views
    cca = covary.SparseCCA(2, penalty=1.0, max_iter=100_000, tol=1e-13).fit(x, y)
    u, _, vt = np.linalg.svd(np.corrcoef(x.T, y.T)[:10, 10:])
    for k in range(2):
        np.testing.assert_allclose(abs(u[:, k] @ cca.x_weights_[:, k]), 1.0, rtol=1e-7)
        np.testing.assert_allclose(abs(vt[k] @ cca.y_weights_[:, k]), 1.0, rtol=1e-7)


def test_permutations_tell_a_correlation_from_chance(views):
    x, y = views
    found = covary.SparseCCA().fit(x, y)
    table = found.permutations_
    best = int(np.argmax(table["z"]))
    assert found.penalties_ == (table["penalty"][best],) * 2 and table["p_value"][best] == 1 / 26
    for seed in range(6):
        chance = covary.SparseCCA().fit(x, np.random.default_rng(seed).normal(size=y.shape)).permutations_
        assert chance["z"].max() < table["z"].max() / 3
    with covary.threads(1):
        one = covary.SparseCCA().fit(x, y)
    np.testing.assert_array_equal(one.permutations_["z"], table["z"])


@pytest.mark.parametrize("options", [{"penalty": 0.0}, {"penalty": 1.5}, {"penalty": "best"}, {"n_components": 11}])
def test_what_cannot_be_is_named(views, options):
    with pytest.raises(ValueError, match="penalty|components"):
        covary.SparseCCA(**options).fit(*views)
