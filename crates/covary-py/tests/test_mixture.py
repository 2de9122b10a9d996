"""Mixtures and classes: beside scikit-learn's, and with gaps."""

import pickle
import subprocess

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.mixture import GaussianMixture as Theirs
from sklearn.model_selection import GridSearchCV

import covary
from covary.exceptions import ComponentsError, ConvergenceWarning, DataError, ModelFileError, OptionError
from conftest import ROOT


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
    shaped = {"full": np.stack([np.eye(d) * precision] * k), "diag": np.full((k, d), precision)}
    return {
        "weights_init": np.array([0.5, 0.3, 0.2]),
        "means_init": rows,
        "precisions_init": shaped.get(kind, np.full(k, precision)),
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
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
    assert ours.lower_bound_ == pytest.approx(theirs.score(X), abs=1e-6)


def test_own_starts_end_no_lower_than_theirs(groups):
    X, truth = groups
    ours = covary.GaussianMixture(3, n_init=4).fit(X)
    theirs = Theirs(3, n_init=4, random_state=0).fit(X)
    assert ours.converged_ and ours.score(X) > theirs.score(X) - 1e-3
    labels = ours.predict(X)
    agree = sum((labels[truth == c] == k).sum() for k, c in enumerate(np.argsort(-np.bincount(truth))))
    assert agree > 0.9 * len(X)
    assert (np.diff(ours.weights_) <= 0).all()
    assert (covary.GaussianMixture(3, n_init=4).fit_predict(X) == labels).all()


ESTIMATORS = [
    covary.MixturePPCA(3, n_components=2),
    covary.MixturePPCA(3, n_components=1, noise="diagonal"),
    covary.GaussianMixture(3),
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
    # One class has no full rank: without some regularisation theirs refuses it.
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
        (covary.GaussianMixture(init_params="random"), OptionError, "'init_params' parameter"),
        (covary.GaussianMixture(warm_start="yes"), OptionError, "'warm_start' parameter"),
        (covary.GaussianMixture(covariance_type="tied"), OptionError, "'covariance_type' parameter"),
        (covary.GaussianMixture(451), DataError, "n_samples >= n_components"),
        (covary.GaussianMixture(2, weights_init=[0.5, 0.5]), OptionError, "weights_init needs means_init"),
        (covary.GaussianMixture(2, means_init=np.zeros((3, 5))), OptionError, r"of shape \(2, 5\)"),
        (
            covary.GaussianMixture(1, means_init=np.zeros((1, 5)), precisions_init=-np.eye(5)[None]),
            DataError,
            "not a covariance",
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
    with pytest.raises(DataError, match=r"class `1`: only 1 row\(s\)"):
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
        (np.full((6, 2), np.nan), "has no observed value"),
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
@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
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
