"""ProbabilisticCCA: correlations of others, prediction across views, and what is refused."""

import pickle

import numpy as np
import pytest
from sklearn.cross_decomposition import CCA
from sklearn.datasets import load_linnerud
from sklearn.utils.estimator_checks import check_estimator

import covary
from covary.exceptions import ComponentsError, DataError, OptionError


@pytest.fixture(scope="module")
def views():
    return load_linnerud(return_X_y=True)


@pytest.mark.filterwarnings("ignore")
def test_check_estimator():
    pair = "fit_transform returns the variates of both views, as that of scikit-learn's CCA does"
    expected = {
        "check_transformer_general": pair,
        "check_transformer_data_not_an_array": pair,
    }
    results = check_estimator(covary.ProbabilisticCCA(1), on_fail=None, expected_failed_checks=expected)
    failed = [f"{r['check_name']}: {r['exception']!r}" for r in results if r["status"] == "failed"]
    assert not failed
    assert sum(r["status"] == "passed" for r in results) >= 43


def test_correlations_are_those_of_others(views):
    X, Y = views
    ours = covary.ProbabilisticCCA(None).fit(X, Y)
    # R's cancor.
    np.testing.assert_allclose(ours.canonical_correlations_, [0.795608154419992, 0.200556041107123, 0.0725702862103672], atol=1e-10)
    u, v = ours.transform(X, Y)
    theirs = CCA(3, max_iter=10000, tol=1e-12).fit(X, Y)
    a, b = theirs.transform(X, Y)
    for k in range(3):
        assert abs(np.corrcoef(u[:, k], a[:, k])[0, 1]) == pytest.approx(1, abs=1e-6)
        assert abs(np.corrcoef(v[:, k], b[:, k])[0, 1]) == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(u.T @ u / 20, np.eye(3), atol=1e-10)
    np.testing.assert_allclose(u.T @ v / 20, np.diag(ours.canonical_correlations_), atol=1e-10)
    assert (ours.fit_transform(X, Y)[1] == v).all() and (ours.transform(X) == u).all()


def test_prediction_is_the_regression_of_one_view_on_the_other(views):
    X, Y = views
    ours = covary.ProbabilisticCCA(None).fit(X, Y)
    mean, std = ours.predict(X, return_std=True)
    design = np.column_stack([np.ones(20), X])
    coefficients, *_ = np.linalg.lstsq(design, Y, rcond=None)
    np.testing.assert_allclose(mean, design @ coefficients, rtol=1e-7)
    np.testing.assert_allclose(std[0], (Y - mean).std(axis=0), rtol=1e-6)
    gaps = X.astype(float)
    gaps[0, 1] = np.nan
    some, wider = ours.predict(gaps, return_std=True)
    assert np.isfinite(some).all() and (wider[0] >= std[0]).all() and (some[1:] == mean[1:]).all()
    assert (ours.predict(X) == mean).all()
    covariance = np.cov(X.T, bias=True)
    quadratic = np.einsum("ni,ij,nj->n", X - X.mean(axis=0), np.linalg.inv(covariance), X - X.mean(axis=0))
    alone = -0.5 * (quadratic + np.linalg.slogdet(2 * np.pi * covariance)[1])
    np.testing.assert_allclose(ours.score_samples(X), alone, rtol=1e-8)
    assert ours.score_samples(X, Y).sum() == pytest.approx(ours.log_likelihood_, rel=1e-8)
    rho = ours.canonical_correlations_
    u, v = ours.transform(X, Y)
    np.testing.assert_allclose(ours.scores(X, Y), np.sqrt(rho) / (1 + rho) * (u + v), atol=1e-12)
    twin = pickle.loads(pickle.dumps(ours))
    assert (twin.predict(X) == mean).all() and twin.log_likelihood_ == ours.log_likelihood_


def test_gaps_are_integrated_out():
    rng = np.random.default_rng(1)
    z = rng.normal(size=(400, 2))
    X = z @ rng.normal(size=(2, 5)) + rng.normal(size=(400, 5))
    Y = z @ rng.normal(size=(2, 3)) + rng.normal(size=(400, 3))
    whole = covary.ProbabilisticCCA(2).fit(X, Y)
    gaps, missing = X.copy(), Y.copy()
    gaps[rng.random(X.shape) < 0.1] = np.nan
    missing[::8] = np.nan
    ours = covary.ProbabilisticCCA(2).fit(gaps, missing)
    assert ours.converged_ and ours.n_iter_ > 0 and whole.n_iter_ == 0
    np.testing.assert_allclose(ours.canonical_correlations_, whole.canonical_correlations_, atol=0.06)
    # The likelihood is that of the observed cells, and no other parameters near it have a larger one.
    assert ours.score_samples(gaps, missing).sum() == pytest.approx(ours.log_likelihood_, rel=1e-8)
    assert ours.log_likelihood_ > whole.score_samples(gaps, missing).sum()
    u, v = ours.transform(gaps, missing)
    full, _ = ours.transform(X, Y)
    assert np.isfinite(u).all() and np.isfinite(v).all()
    assert np.corrcoef(u[:, 0], full[:, 0])[0, 1] > 0.9
    complete = ~np.isnan(gaps).any(axis=1)
    np.testing.assert_allclose(u[complete], full[complete], atol=1e-9)
    mean, std = ours.predict(gaps[::8], return_std=True)
    inside = np.abs(Y[::8] - mean) < 1.645 * std
    assert abs(inside.mean() - 0.9) < 0.08
    assert np.isfinite(ours.scores(gaps, missing)).all()


def test_a_singular_view_with_gaps_is_warned_of():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(100, 3))
    twice = np.column_stack([X, X[:, 0]])
    twice[0, 1] = np.nan
    with pytest.warns(covary.exceptions.CovaryWarning, match="noise variance reached its floor"):
        covary.ProbabilisticCCA(None).fit(twice, rng.normal(size=(100, 2)))


def test_wide_views_need_a_ridge_or_a_rank():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(15, 30)), rng.normal(size=(15, 4))
    with pytest.raises(DataError, match="view 1 has 30 columns of rank 14 in 15 rows.*give a ridge"):
        covary.ProbabilisticCCA(None).fit(X, Y)
    for options in ({"ridge": 0.5}, {"rank": 3}):
        found = covary.ProbabilisticCCA(**{"n_components": None} | options).fit(X, Y)
        assert 0 < found.canonical_correlations_[0] < 1 and np.isnan(found.log_likelihood_)
        assert np.isfinite(found.predict(X)).all()


def test_the_number_is_chosen_and_files_keep_it(views, tmp_path):
    X, Y = views
    ours = covary.ProbabilisticCCA().fit(X, Y)
    # Of correlations 0.80, 0.20 and 0.07 in 20 rows Bartlett's test keeps none; of the first pair of 400 rows it does.
    assert ours.n_components_ == 0 and ours.transform(X).shape == (20, 0)
    rng = np.random.default_rng(1)
    z = rng.normal(size=(400, 1))
    X, Y = z @ rng.normal(size=(1, 5)) + rng.normal(size=(400, 5)), z @ rng.normal(size=(1, 3)) + rng.normal(size=(400, 3))
    X[:, 2] = 7.0
    ours = covary.ProbabilisticCCA().fit(X, Y)
    assert ours.n_components_ == 1 and ours.x_mean_[2] == 7.0 and (ours.x_weights_[2] == 0.0).all()
    Y[3] = np.nan
    ours = covary.ProbabilisticCCA().fit(np.delete(X, 2, axis=1), Y)
    ours.save(tmp_path / "pair.covary")
    opened = covary.load(tmp_path / "pair.covary")
    assert isinstance(opened, covary.ProbabilisticCCA) and opened.n_features_in_ == 4
    assert not hasattr(opened, "feature_names_in_")
    for ask in (lambda cca: cca.predict(np.delete(X, 2, axis=1)), lambda cca: cca.scores(np.delete(X, 2, axis=1), Y)):
        assert (ask(opened) == ask(ours)).all()


def test_what_cannot_be_is_refused(views):
    X, Y = views
    infinite = X.copy()
    infinite[0, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        covary.ProbabilisticCCA(None).fit(infinite, Y)
    with pytest.raises(ValueError, match="infinity"):
        covary.ProbabilisticCCA(None).fit(X, infinite)
    gaps = X.copy()
    gaps[0, 0] = np.nan
    for options in ({"ridge": 0.1}, {"rank": 1}):
        with pytest.raises(OptionError, match="bach-jordan.*gaps"):
            covary.ProbabilisticCCA(**{"n_components": None} | options).fit(gaps, Y)
    with pytest.raises(DataError, match="20 rows and y 7"):
        covary.ProbabilisticCCA(None).fit(X, Y[:7])
    with pytest.raises(ValueError, match="second view"):
        covary.ProbabilisticCCA(None).fit(X, None)
    with pytest.raises(ValueError, match="0 feature"):
        covary.ProbabilisticCCA(None).fit(X, np.empty((20, 0)))
    with pytest.raises(ComponentsError, match="at most 3"):
        covary.ProbabilisticCCA(4).fit(X, Y)
    for options in ({"ridge": -1.0}, {"rank": 0}, {"n_components": 0}, {"n_components": 1.5}):
        with pytest.raises(OptionError):
            covary.ProbabilisticCCA(**{"n_components": None} | options).fit(X, Y)
    one = covary.ProbabilisticCCA(None).fit(X, Y[:, 0])
    assert one.n_components_ == 1 and one.predict(X).shape == (20, 1)
