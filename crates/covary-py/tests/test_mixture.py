"""Mixtures and classes: beside scikit-learn's, and with gaps."""

import pickle
import subprocess

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture as Theirs
from sklearn.model_selection import GridSearchCV

import covary
from covary.exceptions import ComponentsError, ConvergenceWarning, DataError, ModelFileError, OptionError
from conftest import ROOT


KINDS = ["full", "tied", "diag", "spherical"]
TABLES = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}
PARTS = ("weights_", "means_", "covariances_", "precisions_cholesky_")


@pytest.fixture(scope="module")
def groups():
    """Three groups of 100 to 200 rows of 5 columns."""
    rng = np.random.default_rng(3)
    parts = [
        rng.normal(size=(n, 5)) @ rng.normal(size=(5, 5)) * 0.7 + rng.normal(size=5) * 4 for n in (200, 150, 100)
    ]
    return np.concatenate(parts), np.repeat([0, 1, 2], (200, 150, 100))


def with_gaps(rows, share=0.15):
    out = rows.copy()
    out[np.random.default_rng(7).random(out.shape) < share] = np.nan
    out[0] = rows[0]
    return out


def start(X, kind, k=3):
    """A start that both packages take."""
    d = X.shape[1]
    rows = X[:: len(X) // k][:k]
    precision = 1.0 / X.var()
    shaped = {
        "full": np.stack([np.eye(d) * precision] * k),
        "tied": np.eye(d) * precision,
        "diag": np.full((k, d), precision),
    }
    return {
        "weights_init": np.array([0.5, 0.3, 0.2]),
        "means_init": rows,
        "precisions_init": shaped.get(kind, np.full(k, precision)),
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [1, 5, 300])
def test_from_one_start_as_scikit_learn(groups, kind, steps):
    X, _ = groups
    options = {"covariance_type": kind, "max_iter": steps, "tol": 0, **start(X, kind)}
    ours = covary.GaussianMixture(3, reg_covar=0.0, **options).fit(X)
    theirs = Theirs(3, reg_covar=0.0, **options).fit(X)
    for name in ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_"):
        got, want = getattr(ours, name), getattr(theirs, name)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6, err_msg=name)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    assert (ours.predict(X) == theirs.predict(X)).all()
    assert ours.bic(X) == pytest.approx(theirs.bic(X), rel=1e-6)
    assert ours.aic(X) == pytest.approx(theirs.aic(X), rel=1e-6)
    assert ours.lower_bound_ == pytest.approx(theirs.lower_bound_, rel=1e-6)
    assert ours.n_iter_ == theirs.n_iter_


def agree(ours, theirs, X, parts=PARTS):
    """Numbers of both packages to 1e-6, relative to the scale of each column."""
    assert (ours.n_iter_, ours.converged_) == (theirs.n_iter_, theirs.converged_)
    assert ours.lower_bound_ == pytest.approx(theirs.lower_bound_, rel=1e-6)
    # The weights that they start from single rows with do not sum to 1; ours do.
    first = 1 if theirs.init_params in ("k-means++", "random_from_data") else 0
    np.testing.assert_allclose(ours.lower_bounds_[first:], theirs.lower_bounds_[first:], rtol=1e-6)
    sd = X.std(axis=0)
    by_column = {"means_": sd, "covariances_": sd**2, "precisions_cholesky_": 1 / sd}
    if theirs.covariance_type in ("full", "tied"):
        by_column |= {"covariances_": np.outer(sd, sd), "precisions_cholesky_": 1 / sd[:, None]}
    if theirs.covariance_type == "spherical":
        by_column |= {"covariances_": 1.0, "precisions_cholesky_": 1.0}
    for name in parts:
        got, want = getattr(ours, name), getattr(theirs, name)
        assert got.shape == want.shape
        unit = by_column.get(name, 1.0)
        np.testing.assert_allclose(got / unit, want / unit, rtol=1e-6, atol=1e-6 * np.abs(want / unit).max())
    assert ours.score(X) == pytest.approx(theirs.score(X), rel=1e-6)
    assert ours.bic(X) == pytest.approx(theirs.bic(X), rel=1e-6)
    assert (ours.predict(X) == theirs.predict(X)).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_defaults_are_scikit_learns_numbers(table, kind, k):
    X = TABLES[table]().data
    options = {"covariance_type": kind, "random_state": 0}
    agree(covary.GaussianMixture(k, **options).fit(X), Theirs(k, **options).fit(X), X)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("init", ["kmeans", "k-means++", "random", "random_from_data"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_start_is_scikit_learns(init, kind):
    X = load_iris().data
    options = {"covariance_type": kind, "init_params": init, "n_init": 3, "random_state": 4, "reg_covar": 1e-3}
    agree(covary.GaussianMixture(3, **options).fit(X), Theirs(3, **options).fit(X), X)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("names", [("weights",), ("means",), ("precisions",), ("weights", "precisions")])
def test_a_start_may_be_given_in_part(groups, kind, names):
    X, _ = groups
    options = {f"{name}_init": start(X, kind)[f"{name}_init"] for name in names}
    options |= {"covariance_type": kind, "random_state": 1}
    agree(covary.GaussianMixture(3, **options).fit(X), Theirs(3, **options).fit(X), X)


@pytest.mark.parametrize("kind", KINDS)
def test_no_steps_give_the_start(groups, kind):
    X, _ = groups
    options = {"covariance_type": kind, "max_iter": 0, "random_state": 1}
    ours, theirs = covary.GaussianMixture(3, **options).fit(X), Theirs(3, **options).fit(X)
    assert (ours.n_iter_, ours.lower_bound_, ours.lower_bounds_) == (0, -np.inf, [])
    for name in PARTS:
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9, atol=1e-9)


def log_density(model, row):
    """Of the observed cells of one row, by the formula."""
    seen = ~np.isnan(row)
    d = len(row)
    shaped = {
        "full": lambda k: model.covariances_[k],
        "tied": lambda k: model.covariances_,
        "diag": lambda k: np.diag(model.covariances_[k]),
        "spherical": lambda k: np.eye(d) * model.covariances_[k],
    }[model.covariance_type]
    parts = [
        np.log(weight) + multivariate_normal(model.means_[k][seen], shaped(k)[np.ix_(seen, seen)]).logpdf(row[seen])
        for k, weight in enumerate(model.weights_)
    ]
    return logsumexp(parts)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("init", ["kmeans", "k-means++", "random", "random_from_data"])
@pytest.mark.parametrize("kind", KINDS)
def test_gaps_are_integrated_out_for_every_kind(groups, kind, init):
    X = with_gaps(groups[0])
    model = covary.GaussianMixture(3, covariance_type=kind, init_params=init, max_iter=200).fit(X)
    assert len(model.weights_) == 3
    want = [log_density(model, row) for row in X]
    np.testing.assert_allclose(model.score_samples(X), want, rtol=1e-8)
    assert model.log_likelihood_ == pytest.approx(np.sum(want), rel=1e-9)
    # Every step of EM raises the likelihood of the observed cells; 1e-6 was added to variances near 1.
    assert (np.diff(model.trace_) > -1e-2).all()
    one = covary.GaussianMixture(1, covariance_type=kind, reg_covar=0.0, tol=1e-9, max_iter=1000).fit(X)
    if kind == "diag":
        np.testing.assert_allclose(one.means_[0], np.nanmean(X, axis=0))
        np.testing.assert_allclose(one.covariances_[0], np.nanvar(X, axis=0))
    if kind in ("full", "tied"):
        # It is the maximum: no other Gaussian makes these cells likelier.
        assert one.score(X) >= covary.Gaussian().fit(X).score(X) - 1e-6


def test_a_tied_mixture_is_kept_in_a_file(groups, tmp_path):
    X = with_gaps(groups[0])
    model = covary.GaussianMixture(3, covariance_type="tied").fit(X)
    assert model.covariances_.shape == (5, 5)
    model.save(tmp_path / "tied.covary")
    twin = covary.GaussianMixture.load(tmp_path / "tied.covary")
    assert twin.covariance_type == "tied" and (twin.covariances_ == model.covariances_).all()
    assert twin.bic(X) == model.bic(X) and twin._model.n_parameters == 15 + 15 + 2


def test_a_constant_column_has_the_variance_that_was_added(groups):
    X = np.column_stack([groups[0], np.full(450, 2.5)])
    for kind in KINDS:
        options = {"covariance_type": kind, "random_state": 0}
        agree(covary.GaussianMixture(2, **options).fit(X), Theirs(2, **options).fit(X), np.c_[groups[0], groups[0][:, 0]], ())
        assert covary.GaussianMixture(2, **options).fit(X).score(X) == pytest.approx(Theirs(2, **options).fit(X).score(X))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_a_collapsed_gaussian_is_refused(kind):
    two = np.repeat([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]], 5, axis=0)
    mixture = covary.GaussianMixture(4, covariance_type=kind, reg_covar=0.0)
    with pytest.raises(ComponentsError, match="is singular"):
        mixture.fit(two)
    assert len(mixture.set_params(reg_covar=1e-6).fit(two).weights_) == 4


def test_own_starts_end_no_lower_than_theirs(groups):
    X, truth = groups
    ours = covary.GaussianMixture(3, n_init=4).fit(X)
    theirs = Theirs(3, n_init=4, random_state=0).fit(X)
    assert ours.converged_ and ours.score(X) > theirs.score(X) - 1e-3
    labels = ours.predict(X)
    assert adjusted_rand_score(truth, labels) > 0.8
    assert (covary.GaussianMixture(3, n_init=4).fit_predict(X) == labels).all()


ESTIMATORS = [
    covary.MixturePPCA(3, n_components=2),
    covary.MixturePPCA(3, n_components=1, noise="diagonal"),
    covary.GaussianMixture(3),
    covary.GaussianMixture(3, covariance_type="tied"),
    covary.GaussianMixture(3, covariance_type="diag"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_a_mixture_answers_with_gaps(estimator, groups, tmp_path):
    whole, _ = groups
    X = with_gaps(whole)
    model = clone(estimator).fit(X)
    gaps = np.isnan(X)
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-12)
    assert (model.predict(X) == shares.argmax(axis=1)).all()
    filled, std = model.impute(X, return_std=True)
    assert (filled[~gaps] == X[~gaps]).all() and (std[gaps] > 0).all() and (std[~gaps] == 0).all()
    error = np.sqrt(np.mean((filled - whole)[gaps] ** 2))
    assert error < 0.8 * np.sqrt(np.mean((np.nanmean(X, axis=0) - whole)[gaps] ** 2))
    drawn = model.sample_gaps(X, n_draws=2)
    assert drawn.shape == (2, *X.shape) and (drawn[:, ~gaps] == X[~gaps]).all()
    rows, labels = model.sample(50, random_state=1)
    assert rows.shape == (50, 5) and set(labels) <= {0, 1, 2}
    assert model.model_scores(X).shape == (450, 3, model._model.n_components)
    assert model.score(X) == pytest.approx(model.score_samples(X).mean())

    model.save(tmp_path / "groups.covary")
    for twin in (pickle.loads(pickle.dumps(model)), type(model).load(tmp_path / "groups.covary")):
        assert (twin.predict_proba(X) == shares).all() and (twin.impute(X) == filled).all()
    with covary.threads(1):
        one = clone(estimator).fit(X)
    with covary.threads(2):
        two = clone(estimator).fit(X)
    assert (one.means_ == two.means_).all() and (one.predict_proba(X) == two.predict_proba(X)).all()


def test_grids_and_frames(groups):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(with_gaps(groups[0]), columns=list("abcde"))
    search = GridSearchCV(covary.MixturePPCA(n_components=1), {"n_mixtures": [1, 3]}, cv=3).fit(X)
    assert search.best_params_ == {"n_mixtures": 3}
    assert list(search.best_estimator_.feature_names_in_) == list("abcde")


def test_a_constant_column_is_kept_out_and_filled(groups):
    X = with_gaps(np.column_stack([groups[0], np.full(450, 2.5)]))
    model = covary.MixturePPCA(3).fit(X)
    assert (model.means_[:, 5] == 2.5).all() and (model.impute(X)[:, 5] == 2.5).all()
    assert (model.covariances_[:, 5] == 0).all()


def test_each_model_has_its_own_components(tmp_path):
    rng = np.random.default_rng(3)
    line = rng.normal(size=(120, 1)) @ rng.normal(size=(1, 7)) + rng.normal(size=(120, 7)) / 2
    space = 15 + rng.normal(size=(120, 3)) @ rng.normal(size=(3, 7)) + rng.normal(size=(120, 7)) / 2
    X = with_gaps(np.concatenate([line, space]))
    model = covary.MixturePPCA(2, standardize=False).fit(X)
    assert sorted(model.n_components_) == [1, 3]
    model.save(tmp_path / "groups.covary")
    loaded = covary.load(tmp_path / "groups.covary")
    assert loaded.n_components == "auto"
    for fitted in (model, loaded):
        q = fitted.n_components_
        assert fitted.loadings_.shape == (2, 7, 3) and fitted.model_scores(X).shape == (240, 2, 3)
        for k in range(2):
            W, noise = fitted.loadings_[k], fitted.noise_variance_[k]
            assert (W[:, q[k] :] == 0).all() and (W[:, : q[k]] != 0).any(axis=0).all()
            np.testing.assert_allclose(fitted.covariances_[k], W @ W.T + noise * np.eye(7), rtol=1e-10)
            for i, row in enumerate(X[:5]):
                seen = ~np.isnan(row)
                Wo, y = W[seen], row[seen] - fitted.means_[k][seen]
                scores = np.linalg.solve(Wo.T @ Wo + noise * np.eye(3), Wo.T @ y)
                np.testing.assert_allclose(fitted.model_scores(X)[i, k], scores, atol=1e-9)
        # 7 means, the plane and a noise variance for each model, and a weight.
        n_parameters = sum(7 + k * (15 - k) // 2 + 1 for k in q) + 1
        assert fitted.bic(X) == pytest.approx(-2 * fitted.score_samples(X).sum() + n_parameters * np.log(240))
    assert (model.score_samples(X) == loaded.score_samples(X)).all()


def test_the_command_reads_what_python_wrote_and_back(groups, command, tmp_path):
    np.savetxt(tmp_path / "rows.csv", groups[0], delimiter=",", header="x1,x2,x3,x4,x5", comments="")
    model = covary.GaussianMixture(3).fit(groups[0])
    model.save(tmp_path / "groups.covary")
    out = subprocess.run(
        [command, "score", tmp_path / "groups.covary", tmp_path / "rows.csv", "-q"], capture_output=True, check=True
    )
    first = float(out.stdout.decode().splitlines()[1].split(",")[0])
    assert first == pytest.approx(model.score_samples(groups[0][:1])[0], abs=1e-9)
    subprocess.run(
        [command, "fit", tmp_path / "rows.csv", "--model", "mppca", "--mixtures", "3", "--components", "1", "-q"]
        + ["-o", tmp_path / "own.covary"],
        check=True,
    )
    assert covary.load(tmp_path / "own.covary").predict(groups[0]).shape == (450,)
    with pytest.raises(ModelFileError, match="another kind"):
        covary.GaussianMixture.load(tmp_path / "own.covary")
    with pytest.raises(ModelFileError):
        covary.PPCA.load(tmp_path / "own.covary")


def test_all_components_but_one_are_quadratic_discriminants(groups):
    X, y = groups
    ours = covary.PPCAClassifier(4, standardize=False).fit(X, y)
    theirs = QuadraticDiscriminantAnalysis().fit(X, y)
    # Their covariances have divisor n - 1.
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=0.02)
    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.99
    np.testing.assert_allclose(ours.priors_, theirs.priors_)


def test_classes_with_gaps(groups, tmp_path):
    X, y = groups
    names = np.array(["red", "green", "blue"])[y]
    model = covary.PPCAClassifier(3).fit(with_gaps(X), names)
    assert list(model.classes_) == ["blue", "green", "red"]
    assert model.score(with_gaps(X), names) > 0.9
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    rows, drawn = model.sample(20, random_state=2)
    assert rows.shape == (20, 5) and set(drawn) <= set(names)
    even = covary.PPCAClassifier(3, priors=[1, 1, 1]).fit(X, names)
    np.testing.assert_allclose(even.priors_, 1 / 3)
    model.save(tmp_path / "classes.covary")
    twin = covary.load(tmp_path / "classes.covary")
    assert (twin.predict(X) == model.predict(X)).all() and list(twin.classes_) == list(model.classes_)


@pytest.mark.parametrize(
    "classes",
    [[-1, 2, 10], [-1.0, 2.0, 30.0], [False, True], ["007", "008", "1"], ["1", "x", "y"], ["True", "x"]],
)
def test_classes_of_a_file_are_what_they_were(classes, groups, tmp_path):
    X, y = groups
    given = np.array(classes)[y % len(classes)]
    model = covary.PPCAClassifier(1).fit(X, given)
    model.save(tmp_path / "classes.covary")
    twin = covary.PPCAClassifier.load(tmp_path / "classes.covary")
    assert twin.classes_.dtype.kind == given.dtype.kind
    np.testing.assert_array_equal(twin.classes_, model.classes_)
    np.testing.assert_array_equal(twin.predict(X), model.predict(X))
    assert twin.score(X, given) == model.score(X, given)


def test_oil_flow_beside_quadratic_discriminants():
    folder = ROOT.parent / "shared" / "data" / "oil_flow"
    if not folder.exists():
        pytest.skip(f"SKIPPED: {folder} is absent")
    train, test = (np.genfromtxt(folder / f"oil_{part}.csv", delimiter=",", skip_header=1) for part in ("train", "test"))
    ours = covary.PPCAClassifier(6, standardize=False).fit(train[:, :12], train[:, 12].astype(int))
    # One class has no full rank: without some regularization theirs refuses it.
    theirs = QuadraticDiscriminantAnalysis(reg_param=1e-4).fit(train[:, :12], train[:, 12])
    accuracy = [m.score(test[:, :12], test[:, 12].astype(int)) for m in (ours, theirs)]
    assert accuracy[0] >= accuracy[1] - 0.01, accuracy


@pytest.mark.parametrize(
    ("estimator", "error", "message"),
    [
        (covary.MixturePPCA(0), OptionError, "'n_mixtures' parameter .* whole number from 1"),
        (covary.MixturePPCA(None), OptionError, "'n_mixtures' parameter"),
        (covary.MixturePPCA(200), ComponentsError, "200 models are too many for a mixture of 450 rows"),
        (covary.MixturePPCA(n_components=5), ComponentsError, "n_components=5 must be below n_features=5"),
        (covary.MixturePPCA(noise="tied"), OptionError, "'noise' parameter"),
        (covary.MixturePPCA(tol=-1.0), OptionError, "'tol' parameter"),
        (covary.GaussianMixture(init_params="at random"), OptionError, "'init_params' parameter"),
        (covary.GaussianMixture(warm_start="yes"), OptionError, "'warm_start' parameter"),
        (covary.GaussianMixture(covariance_type="round"), OptionError, "'covariance_type' parameter"),
        (covary.GaussianMixture(451), DataError, "n_samples >= n_components"),
        (covary.GaussianMixture(2, weights_init=[0.5, 0.9]), OptionError, "with a sum of 1"),
        (covary.GaussianMixture(verbose_interval=0), OptionError, "'verbose_interval' parameter"),
        (covary.GaussianMixture(2, means_init=np.zeros((3, 5))), OptionError, r"of shape \(2, 5\)"),
        (
            covary.GaussianMixture(1, means_init=np.zeros((1, 5)), precisions_init=-np.eye(5)[None]),
            OptionError,
            "symmetric and positive definite",
        ),
    ],
    ids=lambda v: None if isinstance(v, type) else str(v)[:40],
)
def test_refused(estimator, error, message, groups):
    with pytest.raises(error, match=message):
        estimator.fit(groups[0])


def test_classes_refused(groups):
    X, y = groups
    with pytest.raises(DataError, match="y holds 1 class"):
        covary.PPCAClassifier().fit(X, np.zeros(450, dtype=int))
    with pytest.raises(DataError, match="class `1`: only 1 row has an observed value"):
        covary.PPCAClassifier().fit(X, np.r_[np.zeros(449, dtype=int), 1])
    with pytest.raises(ValueError, match="labels"):
        covary.PPCAClassifier().fit(X, y[:-1])
    with pytest.raises(ValueError, match="prior probabilities"):
        covary.PPCAClassifier(priors=[0.5, 0.5]).fit(X, y)


def test_a_limit_on_steps_is_a_warning(groups):
    with pytest.warns(ConvergenceWarning, match="still rising after 2 iterations"):
        model = covary.GaussianMixture(3, max_iter=2).fit(groups[0])
    assert not model.converged_ and model.n_iter_ == 2


@pytest.mark.parametrize("cls", [covary.MixturePPCA, covary.GaussianMixture, covary.PPCAClassifier])
@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.array([["a", "b"], ["c", "d"]]), "could not convert string"),
        (np.array([[1.0, np.inf], [2.0, 3.0], [4.0, 1.0]]), "contains infinity: row 1, column `x2`"),
        (np.array([[1.0, np.nan], [2.0, np.nan], [4.0, np.nan]]), "column `x2` has no observed value"),
        (np.full((6, 2), np.nan), "column `x1` has no observed value"),
        (np.ones((6, 2)), "constant"),
        (np.zeros((0, 3)), "0 sample"),
        (np.arange(5.0), "Expected 2D array"),
    ],
    ids=["text", "inf", "empty column", "only gaps", "constant", "no rows", "1-d"],
)
def test_tables_refused(cls, table, message):
    y = (np.arange(len(table)) % 2,) if cls is covary.PPCAClassifier else ()
    with pytest.raises(ValueError, match=message):
        cls().fit(table, *y)


def test_select_compares_sizes_of_a_mixture(groups):
    X = with_gaps(groups[0])
    found = covary.select(X, model="gmm", max_mixtures=4)
    assert (found.n_mixtures, found.n_components, found.by) == (3, 4, "bic")
    assert found.table["n_mixtures"].tolist() == [1, 2, 3, 4]
    assert found.table["bic"].argmin() == 2 and np.isfinite(found.table["held_out"]).all()
    assert found.choices["held_out"][0] in (3, 4)
    assert str(found).startswith("Recommended: 3 models with 4 components, the least BIC.")
    with pytest.raises(OptionError, match="model must be 'ppca'"):
        covary.select(X, model="tied")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_a_warm_start_goes_on_where_the_last_fit_ended(groups, kind):
    X, _ = groups
    options = {"covariance_type": kind, "tol": 0, "reg_covar": 0.0}
    whole = covary.GaussianMixture(3, max_iter=12, **options).fit(X)
    parts = covary.GaussianMixture(3, max_iter=6, warm_start=True, **options).fit(X)
    first = parts.covariances_
    parts.fit(X)
    assert not np.array_equal(first, parts.covariances_)
    np.testing.assert_allclose(np.sort(parts.weights_), np.sort(whole.weights_), rtol=1e-6)
    assert parts.log_likelihood_ == pytest.approx(whole.log_likelihood_, abs=1e-6)
    assert parts.trace_[0] == pytest.approx(whole.trace_[6], abs=1e-6)
    # Another size begins anew.
    assert len(parts.set_params(n_components=2).fit(X).weights_) == 2


def test_starts_of_two_kinds_end_as_high(groups):
    X, _ = groups
    by = {init: covary.GaussianMixture(3, n_init=8, init_params=init).fit(X) for init in ("kmeans", "auto")}
    assert by["auto"].log_likelihood_ >= by["kmeans"].log_likelihood_ - 1e-2
