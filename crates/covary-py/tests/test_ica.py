"""Independent components: scikit-learn's fixed points, sources that lead back, files, and what is said of bad ones."""

import pickle

import numpy as np
import pytest
import sklearn.decomposition as theirs

import covary
from covary.exceptions import (
    ComponentsError,
    ConvergenceWarning,
    CovaryWarning,
    DataError,
    ModelFileError,
    OptionError,
)


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


def cube(y, factor=1.0):
    return factor * y**3, (3 * factor * y**2).mean(axis=-1)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("algorithm", ["parallel", "deflation"])
def test_a_contrast_of_ones_own(mixed, algorithm, tmp_path):
    options = dict(algorithm=algorithm, w_init=np.eye(3), tol=1e-13, max_iter=500)
    own = covary.FastICA(3, fun=cube, fun_args={"factor": 2.0}, **options).fit(mixed)
    named = covary.FastICA(3, fun="cube", **options).fit(mixed)
    reference = theirs.FastICA(3, fun=cube, fun_args={"factor": 2.0}, **options).fit(mixed)
    np.testing.assert_allclose(own.components_, named.components_, atol=1e-6)
    same_rows(own.transform(mixed).T, reference.transform(mixed).T, 1e-5)
    own.save(tmp_path / "own.covary")
    twin = covary.FastICA.load(tmp_path / "own.covary")
    assert twin.fun == "given" and (twin.components_ == own.components_).all()
    with pytest.raises(OptionError, match="'fun' parameter"):
        twin.fit(mixed)


def test_what_a_contrast_raises_is_raised(mixed):
    def broken(y):
        raise LookupError("no such thing")

    with pytest.raises(LookupError, match="no such thing"):
        covary.FastICA(fun=broken).fit(mixed)
    for wrong in (lambda y: y, lambda y: (y[:, :2], y.mean(axis=-1)), lambda y: (y, y), lambda y: (y * np.nan, y[:, 0])):
        with pytest.raises(OptionError, match="fun|contrast"):
            covary.FastICA(fun=wrong).fit(mixed)


def test_no_tolerance_makes_all_steps(mixed):
    with pytest.warns(ConvergenceWarning):
        ica = covary.FastICA(tol=0.0, max_iter=30).fit(mixed)
    assert ica.n_iter_ == 30 and not ica.converged_


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
        ({"tol": -1e-9}, OptionError, "'tol' parameter"),
        ({"w_init": np.eye(2)}, OptionError, "expected 3, got 2"),
    ],
)
def test_what_cannot_be_is_refused(mixed, options, error, match):
    with pytest.raises(error, match=match):
        covary.FastICA(**options).fit(mixed)


def test_gaps_are_refused_with_the_way_out(mixed):
    gaps = mixed.copy()
    gaps[3, 1] = np.nan
    with pytest.raises(DataError, match="contains NaN.*impute the table first.*use NoisyICA, or impute first with Imputer"):
        covary.FastICA().fit(gaps)
    with pytest.raises(DataError, match="contains NaN"):
        covary.FastICA().fit(mixed).transform(gaps)


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(4)
    mixing = np.array([[2.0, 0.3], [0.5, 1.5], [-1.0, 0.8], [0.7, -1.2], [1.1, 0.9]])
    rows = rng.laplace(size=(1500, 2)) @ mixing.T + 0.3 * rng.normal(size=(1500, 5)) + np.arange(5.0)
    gaps = rows.copy()
    gaps[rng.random(rows.shape) < 0.1] = np.nan
    return rows, gaps, mixing


def test_maximum_likelihood_knows_both_kinds_of_tails(mixed):
    ica = covary.InfomaxICA().fit(mixed)
    sources = ica.transform(mixed)
    assert ica.converged_ and ica.densities_.count("sub") == 1 and ica.densities_.count("super") == 2
    assert [d == "sub" for d in ica.densities_] == [k < 0 for k in ica.kurtosis_]
    np.testing.assert_allclose(sources.std(axis=0), 1.0, atol=1e-9)
    np.testing.assert_allclose(ica.inverse_transform(sources), mixed, atol=1e-9)
    np.testing.assert_allclose(ica.components_ @ ica.mixing_, np.eye(3), atol=1e-9)
    np.testing.assert_allclose((mixed - ica.mean_) @ ica.components_.T, sources, atol=1e-9)
    same_rows(ica.components_, covary.FastICA(random_state=0).fit(mixed).components_, 0.2)
    # A density of the wrong kind is less likely.
    for kind in ("super", "sub"):
        assert covary.InfomaxICA(sources=kind).fit(mixed).log_likelihood_ < ica.log_likelihood_
    with covary.threads(1):
        assert (covary.InfomaxICA().fit(mixed).components_ == ica.components_).all()
    assert list(ica.get_feature_names_out()) == ["infomaxica0", "infomaxica1", "infomaxica2"]


def test_noisy_sources_take_gaps(noisy):
    rows, gaps, mixing = noisy
    ica = covary.NoisyICA(2).fit(gaps)
    assert ica.converged_ and ica.noise_variance_.shape == (5,) and np.isfinite(ica.lower_bound_)
    np.testing.assert_allclose(ica.mean_, np.arange(5.0), atol=0.3)
    # The columns of the mixing are the true ones, up to order and sign; Laplace sources of NumPy have variance 2.
    unit = lambda m: m / np.linalg.norm(m, axis=0)  # noqa: E731
    assert np.abs(unit(ica.mixing_).T @ unit(mixing)).max(axis=0).min() > 0.99
    sources = ica.transform(gaps)
    assert sources.shape == (1500, 2) and np.isfinite(sources).all()
    assert (ica.transform(gaps[7:8]) == sources[7:8]).all()
    filled, std = ica.impute(gaps, return_std=True)
    hidden = np.isnan(gaps)
    assert (filled[~hidden] == gaps[~hidden]).all() and (std[hidden] > 0).all() and (std[~hidden] == 0).all()
    errors = (filled - rows)[hidden]
    assert np.sqrt((errors**2).mean()) < 0.5 * rows.std(axis=0).mean()
    assert ica.inverse_transform(sources).shape == rows.shape
    tied = covary.NoisyICA(2, tied_noise=True).fit(gaps)
    assert np.ptp(tied.noise_variance_) == 0.0 and tied.lower_bound_ <= ica.lower_bound_
    for tied_noise in (False, True):  # found by hidden cells
        assert covary.NoisyICA(tied_noise=tied_noise).fit(gaps).mixing_.shape == (5, 2)
    with covary.threads(1):
        assert (covary.NoisyICA(2).fit(gaps).mixing_ == ica.mixing_).all()


def test_constant_columns_have_no_part(noisy):
    _, gaps, _ = noisy
    wide = np.insert(gaps, 2, 7.0, axis=1)
    ica, plain = covary.NoisyICA(2).fit(wide), covary.NoisyICA(2).fit(gaps)
    assert (np.delete(ica.mixing_, 2, axis=0) == plain.mixing_).all() and (ica.mixing_[2] == 0).all()
    assert ica.mean_[2] == 7.0 and ica.noise_variance_[2] == 0.0
    assert (ica.transform(wide) == plain.transform(gaps)).all()
    wide[3, 2] = np.nan
    assert ica.impute(wide)[3, 2] == 7.0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "ica",
    [
        covary.FastICA(3, algorithm="deflation", fun="logcosh", fun_args={"alpha": 1.5}, random_state=3),
        covary.InfomaxICA(3, sources="logistic"),
        covary.NoisyICA(3, tied_noise=True, max_iter=50),
    ],
    ids=repr,
)
def test_files_pickles_and_names_come_back(ica, mixed, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(mixed, columns=["a", "b", "c", "d"])
    ica.fit(frame)
    ica.save(tmp_path / "sources.covary")
    for twin in (
        covary.load(tmp_path / "sources.covary"),
        type(ica).load(tmp_path / "sources.covary"),
        pickle.loads(pickle.dumps(ica)),
    ):
        assert type(twin) is type(ica) and twin.get_params() == ica.get_params()
        assert (twin.transform(frame) == ica.transform(frame)).all() and (twin.mixing_ == ica.mixing_).all()
        assert (twin.kurtosis_ == ica.kurtosis_).all() and twin.n_iter_ == ica.n_iter_
        assert list(twin.feature_names_in_) == ["a", "b", "c", "d"]
    other = covary.NoisyICA if not isinstance(ica, covary.NoisyICA) else covary.InfomaxICA
    with pytest.raises(ModelFileError, match="another kind of model"):
        other.load(tmp_path / "sources.covary")
    with pytest.raises(ModelFileError, match="another kind of model"):
        covary.PPCA.load(tmp_path / "sources.covary")


def test_what_noisy_sources_and_infomax_refuse(mixed, noisy):
    rows, gaps, _ = noisy
    for options, match in [
        ({"n_components": 0}, "n_components"),
        ({"tied_noise": 1}, "tied_noise"),
        ({"noise_floor": 0.0}, "noise_floor"),
        ({"noise_floor": 2.0}, "noise_floor"),
        ({"tol": -1.0}, "tol"),
    ]:
        with pytest.raises(OptionError, match=match):
            covary.NoisyICA(**options).fit(gaps)
    with pytest.raises(OptionError, match="sources"):
        covary.InfomaxICA(sources="loud").fit(mixed)
    with pytest.raises(ComponentsError, match="rank 3"):
        covary.InfomaxICA(4).fit(mixed)
    with pytest.raises(DataError, match="contains NaN.*impute the table first.*use NoisyICA, or impute first with Imputer"):
        covary.InfomaxICA().fit(gaps)
    with pytest.warns(CovaryWarning, match="lighter tails"):
        covary.NoisyICA(1).fit(np.random.default_rng(0).random((500, 1)) @ np.ones((1, 3)) + rows[:500, :3] * 1e-3)
    with pytest.warns(ConvergenceWarning, match="still moving"):
        covary.NoisyICA(2, max_iter=2).fit(gaps)
