"""Sparse loadings: are they what is asked for, and do they come back from a file?"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import covary


@pytest.fixture
def planted() -> np.ndarray:
    """Two components of three columns each and two columns of noise, a tenth of the cells missing."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 8))
    rows[:, :3] += 2 * rng.normal(size=(300, 1))
    rows[:, 3:6] += 1.5 * rng.normal(size=(300, 1)) * [1, -1, 1]
    rows[rng.random(rows.shape) < 0.1] = np.nan
    return rows


def test_planted_zeros_are_found(planted: np.ndarray) -> None:
    model = covary.SparsePPCA(2).fit(planted)
    assert [list(np.flatnonzero(c)) for c in model.components_] == [[0, 1, 2], [3, 4, 5]]
    assert list(model.n_nonzero_) == [3, 3]
    np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1.0)
    # The variance explained is that of the loadings in the scale of the fit.
    loadings = model.loadings_ / np.nanstd(planted, axis=0)[:, None]
    np.testing.assert_allclose(model.explained_variance_, (loadings**2).sum(axis=0), rtol=1e-10)


@pytest.mark.parametrize("standardize", [True, False])
def test_as_many_as_asked_for(planted: np.ndarray, standardize: bool) -> None:
    model = covary.SparsePPCA(2, n_nonzero=4, standardize=standardize).fit(planted)
    assert list(model.n_nonzero_) == [4, 4]
    cov = model.loadings_ @ model.loadings_.T + np.diag(np.broadcast_to(model.noise_variance_, 8))
    i = int(np.flatnonzero(np.isnan(planted).any(axis=1))[0])
    seen = ~np.isnan(planted[i])
    weights = np.linalg.solve(cov[np.ix_(seen, seen)], planted[i, seen] - model.mean_[seen])
    expected = model.mean_[~seen] + cov[np.ix_(~seen, seen)] @ weights
    np.testing.assert_allclose(np.asarray(model.impute(planted))[i, ~seen], expected, rtol=1e-8)


def test_a_penalty_draws_loadings_to_zero(planted: np.ndarray) -> None:
    free = covary.SparsePPCA(2, penalty=0.0).fit(planted)
    drawn = covary.SparsePPCA(2, penalty=0.2).fit(planted)
    assert free.n_nonzero_.sum() == 16
    assert drawn.n_nonzero_.sum() < 16
    assert np.abs(drawn.loadings_).sum() < np.abs(free.loadings_).sum()


def test_it_comes_back_from_a_file(planted: np.ndarray, tmp_path: Path) -> None:
    model = covary.SparsePPCA(2, n_nonzero=3).fit(planted)
    model.save(tmp_path / "m.covary")
    back = covary.load(tmp_path / "m.covary")
    assert isinstance(back, covary.SparsePPCA)
    assert back.n_nonzero == 3
    np.testing.assert_array_equal(back.components_, model.components_)
    np.testing.assert_array_equal(back.transform(planted), model.transform(planted))


def test_bad_options_are_named(planted: np.ndarray) -> None:
    for options in ({"n_nonzero": 0}, {"n_nonzero": 9}, {"penalty": -1.0}, {"n_nonzero": 2, "penalty": 0.1}):
        with pytest.raises(ValueError, match="n_nonzero|penalty"):
            covary.SparsePPCA(2, **options).fit(planted)


def test_sparse_pca_reaches_an_objective_no_worse_than_that_of_scikit_learn() -> None:
    from sklearn.decomposition import SparsePCA

    for seed, (n, d, q) in enumerate([(60, 12, 3), (15, 40, 4), (50, 10, 10)]):
        rows = np.random.default_rng(seed).normal(size=(n, d)) @ np.random.default_rng(9).normal(size=(d, d))
        ours, theirs = (cls(q, alpha=3.0, random_state=0).fit(rows) for cls in (covary.SparsePCA, SparsePCA))
        assert ours.error_[-1] <= theirs.error_[-1] * (1 + 1e-6)
        assert all(b <= a * (1 + 1e-12) for a, b in zip(ours.error_, ours.error_[1:], strict=False))


def test_sparse_pca_takes_gaps_and_never_reads_what_is_hidden(planted: np.ndarray) -> None:
    model = covary.SparsePCA(2, alpha=10).fit(planted)
    assert [list(np.flatnonzero(c)) for c in model.components_] == [[0, 1, 2], [3, 4, 5]]
    scores = model.transform(planted)
    assert np.isfinite(scores).all()
    # A row's scores are a ridge regression of its observed cells.
    i = int(np.flatnonzero(np.isnan(planted).any(axis=1))[0])
    seen = ~np.isnan(planted[i])
    axes = model.components_[:, seen]
    expected = np.linalg.solve(axes @ axes.T + 0.01 * np.eye(2), axes @ (planted[i] - model.mean_)[seen])
    np.testing.assert_allclose(scores[i], expected)
    np.testing.assert_allclose(model.mean_, np.nanmean(planted, axis=0))


def test_sparse_pca_names_bad_options(planted: np.ndarray) -> None:
    for options in ({"alpha": -1.0}, {"method": "svd"}, {"n_components": 0}, {"tol": float("nan")}):
        with pytest.raises(ValueError, match=next(iter(options))):
            covary.SparsePCA(**{"n_components": 2, **options}).fit(planted)
    with pytest.raises(ValueError, match="V_init"):
        covary.SparsePCA(2, U_init=np.ones((300, 2))).fit(planted)


@pytest.mark.parametrize("standardize", [True, False])
def test_columns_that_have_a_part_are_selected(planted: np.ndarray, standardize: bool, tmp_path: Path) -> None:
    model = covary.BayesianSparsePCA(2, standardize=standardize).fit(planted)
    assert list(np.flatnonzero(model.selected_)) == [0, 1, 2, 3, 4, 5]
    assert model.inclusion_probabilities_[:6].min() > 0.99 and model.inclusion_probabilities_[6:].max() < 0.2
    # Imputed values are means given the observed cells, loadings uncertain [M 2.2.8]: by dense matrices.
    filled, std = model.impute(planted, return_std=True)
    scores, covariances = model.transform(planted, return_cov=True)
    i, j = (int(at[0]) for at in np.nonzero(np.isnan(planted)))
    np.testing.assert_allclose(filled[i, j], model.mean_[j] + model.loadings_[j] @ scores[i], rtol=1e-9)
    assert std[i, j] ** 2 > np.broadcast_to(model.noise_variance_, 8)[j]
    assert std[i, j] ** 2 > model.loadings_[j] @ covariances[i] @ model.loadings_[j]
    model.save(tmp_path / "bspca.covary")
    back = covary.load(tmp_path / "bspca.covary")
    assert isinstance(back, covary.BayesianSparsePCA)
    np.testing.assert_array_equal(back.inclusion_probabilities_, model.inclusion_probabilities_)
    np.testing.assert_array_equal(back.transform(planted), model.transform(planted))
    with pytest.raises(ValueError, match="slab"):
        covary.BayesianSparsePCA(2, slab=0.0).fit(planted)


@pytest.mark.parametrize("n", [1, 3, 8])
def test_sparse_pca_keeps_as_many_entries_as_asked_for(planted: np.ndarray, n: int) -> None:
    model = covary.SparsePCA(2, n_nonzero=n).fit(planted)
    assert list(np.count_nonzero(model.components_, axis=1)) == [n, n]
    if n == 3:
        assert [list(np.flatnonzero(c)) for c in model.components_] == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(ValueError, match="n_nonzero"):
        covary.SparsePCA(2, n_nonzero=9).fit(planted)


def test_pitprops_as_published() -> None:
    """The zeros and adjusted variances of Zou, Hastie and Tibshirani (2006), table 3."""
    golden = Path(__file__).parents[2] / "covary" / "tests" / "golden" / "part2" / "spca_pitprops.json"
    case = json.loads(golden.read_text())
    r, given = np.array(case["input"]["correlation"]), case["input"]
    options = {"method": "elastic-net", "ridge_alpha": given["ridge"], "max_iter": 10_000, "tol": 1e-12}
    model = covary.SparsePCA(6, alpha=given["l1"], **options).fit_covariance(r)
    assert list(np.count_nonzero(model.components_, axis=1)) == [7, 4, 4, 1, 1, 1]
    published = [28.0, 14.0, 13.3, 7.4, 6.8, 6.2]
    np.testing.assert_allclose(100 * model.adjusted_variance_ratio_, published, atol=0.06)
    np.testing.assert_allclose(model.components_.T, case["expected"]["loadings"], atol=1e-6)
    # Adjusted variances are those of the QR decomposition of rows that have this correlation.
    z = np.linalg.cholesky(r).T @ model.components_.T
    np.testing.assert_allclose(model.adjusted_variance_, np.diag(np.linalg.qr(z)[1]) ** 2, rtol=1e-9)
    # Without penalties they are the principal axes.
    free = covary.SparsePCA(3, alpha=0.0, **options | {"ridge_alpha": 0.0}).fit_covariance(r)
    values, vectors = np.linalg.eigh(r)
    np.testing.assert_allclose(np.abs(free.components_), np.abs(vectors[:, ::-1][:, :3].T), atol=1e-8)
    np.testing.assert_allclose(free.adjusted_variance_, values[::-1][:3], rtol=1e-8)
    with pytest.raises(ValueError, match="'method' parameter"):
        covary.SparsePCA(2).fit_covariance(r)
    with pytest.raises(ValueError, match="'alpha' parameter"):
        covary.SparsePCA(2, method="elastic-net", alpha=[1, 2, 3]).fit_covariance(r)


def test_an_elastic_net_of_a_table_is_that_of_its_covariance(planted: np.ndarray) -> None:
    whole = np.where(np.isnan(planted), np.nanmean(planted, axis=0), planted)
    net = covary.SparsePCA(2, method="elastic-net", alpha=2.0, ridge_alpha=1e-6)
    of_matrix = clone(net).fit_covariance(np.cov(whole.T, bias=True))
    np.testing.assert_allclose(clone(net).fit(whole).components_, of_matrix.components_, atol=1e-7)
    with_gaps = clone(net).fit(planted)
    assert [list(np.flatnonzero(c)) for c in with_gaps.components_] == [[0, 1, 2], [3, 4, 5]]
    assert with_gaps.transform(planted).shape == (300, 2)
