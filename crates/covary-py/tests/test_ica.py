"""FastICA: scikit-learn's fixed points, sources that lead back, and what is said of bad ones."""

import pickle

import numpy as np
import pytest
import sklearn.decomposition as theirs

import covary
from covary.exceptions import ComponentsError, ConvergenceWarning, CovaryWarning, DataError, OptionError


@pytest.fixture(scope="module")
def mixed():
    rng = np.random.default_rng(0)
    sources = np.stack([rng.random(3000), rng.laplace(size=3000), rng.normal(size=3000) ** 3], axis=1)
    return sources @ rng.normal(size=(3, 4))


def same_rows(ours, reference, tolerance):
    """Equal up to order and sign."""
    apart = [min(np.abs(o - s * r).max() for o in ours for s in (1, -1)) for r in reference]
    assert max(apart) < tolerance, apart


@pytest.mark.parametrize("algorithm", ["parallel", "deflation"])
@pytest.mark.parametrize("fun", ["logcosh", "exp", "cube"])
@pytest.mark.parametrize("whiten", ["unit-variance", "arbitrary-variance"])
def test_fixed_points_are_those_of_scikit_learn(mixed, algorithm, fun, whiten):
    # From one start: scikit-learn's tolerance sees angles down to 1e-8.
    options = dict(algorithm=algorithm, fun=fun, whiten=whiten, w_init=np.eye(3), tol=1e-13, max_iter=5000)
    ours, reference = covary.FastICA(3, **options).fit(mixed), theirs.FastICA(3, **options).fit(mixed)
    scale = np.abs(reference.components_).max()
    same_rows(ours.components_ / scale, reference.components_ / scale, 1e-6)
    same_rows(ours.transform(mixed).T, reference.transform(mixed).T, 1e-5)
    same_rows(ours.whitening_, reference.whitening_, 1e-9)
    np.testing.assert_allclose(ours.mean_, reference.mean_, atol=1e-12)
    if algorithm == "parallel":
        assert abs(ours.n_iter_ - reference.n_iter_) <= 1


def test_a_slope_and_white_rows(mixed):
    white = covary.PCA(3, whiten=True).fit_transform(mixed)
    options = dict(whiten=False, w_init=np.eye(3), tol=1e-13, max_iter=5000, fun_args={"alpha": 1.5})
    ours, reference = covary.FastICA(**options).fit(white), theirs.FastICA(**options).fit(white)
    same_rows(ours.components_, reference.components_, 1e-6)
    assert not hasattr(ours, "mean_") and not hasattr(ours, "whitening_")


def test_sources_lead_back_in_one_order_and_sign(mixed):
    ica = covary.FastICA(random_state=3).fit(mixed)
    sources = ica.transform(mixed)
    assert sources.shape == (3000, 3)  # the fourth column is a sum of others
    np.testing.assert_allclose(sources.std(axis=0), 1.0, atol=1e-9)
    np.testing.assert_allclose(ica.inverse_transform(sources), mixed, atol=1e-9)
    np.testing.assert_allclose(ica.components_ @ ica.mixing_, np.eye(3), atol=1e-9)
    lengths = np.linalg.norm(ica.mixing_, axis=0)
    assert (np.diff(lengths) <= 0).all() and (np.abs(ica.mixing_).max(axis=0) == ica.mixing_.max(axis=0)).all()
    fourth = ((sources - sources.mean(axis=0)) ** 4).mean(axis=0)
    np.testing.assert_allclose(ica.kurtosis_, fourth - 3, atol=1e-9)
    other = covary.FastICA(random_state=11, tol=1e-10).fit(mixed)
    np.testing.assert_allclose(other.components_, ica.components_, atol=1e-2)
    twin = pickle.loads(pickle.dumps(ica))
    assert (twin.transform(mixed) == sources).all()
    with covary.threads(1):
        assert (covary.FastICA(random_state=3).fit(mixed).components_ == ica.components_).all()
    assert list(ica.get_feature_names_out()) == ["fastica0", "fastica1", "fastica2"]


def test_doubts_are_warnings(mixed):
    with pytest.warns(ConvergenceWarning, match="still moving"):
        assert not covary.FastICA(max_iter=1, tol=1e-12).fit(mixed).converged_
    gaussian = np.random.default_rng(1).normal(size=(20000, 3))
    with pytest.warns(CovaryWarning, match="cannot be told apart"):
        covary.FastICA(tol=0.5).fit(gaussian)
    with pytest.warns(CovaryWarning, match="it will be set to 4"):
        assert covary.FastICA(7).fit(mixed).components_.shape == (3, 4)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"n_components": 4}, ComponentsError, "rank 3"),
        ({"n_components": 0}, OptionError, "n_components"),
        ({"algorithm": "both"}, OptionError, "algorithm"),
        ({"fun": np.tanh}, OptionError, "fun"),
        ({"fun_args": {"alpha": 3.0}}, OptionError, "from 1 to 2"),
        ({"fun_args": {"alpha": "1"}}, OptionError, "from 1 to 2"),
        ({"whiten": True}, OptionError, "whiten"),
        ({"tol": 0.0}, OptionError, "tolerance is 0"),
        ({"w_init": np.eye(2)}, OptionError, "expected 3, got 2"),
    ],
)
def test_what_cannot_be_is_refused(mixed, options, error, match):
    with pytest.raises(error, match=match):
        covary.FastICA(**options).fit(mixed)


def test_gaps_are_refused_with_the_way_out(mixed):
    gaps = mixed.copy()
    gaps[3, 1] = np.nan
    with pytest.raises(DataError, match="contains NaN.*impute the table first"):
        covary.FastICA().fit(gaps)
    with pytest.raises(DataError, match="contains NaN"):
        covary.FastICA().fit(mixed).transform(gaps)
