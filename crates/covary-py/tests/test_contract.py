"""scikit-learn's contract, for every class."""

import pickle
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import covary

ESTIMATORS = [
    covary.PCA(),
    covary.PCA(n_components=1, whiten=True, svd_solver="covariance_eigh"),
    covary.IncrementalPCA(),
    covary.PPCA(),
    covary.PPCA(n_components=0.8, standardize=False),
    covary.PPCA(1),
    covary.StudentPPCA(),
    covary.StudentPPCA(1, df=4),
    covary.SparsePPCA(),
    covary.SparsePCA(),
    covary.SparsePCA(1, alpha=0.1),
    covary.SparsePPCA(1, n_nonzero=2),
    covary.SparsePCA(1, n_nonzero=1),
    covary.SparsePCA(1, method="elastic-net", alpha=0.1),
    covary.BayesianSparsePCA(),
    covary.BayesianSparsePCA(1, standardize=False),
    covary.FactorAnalysis(),
    covary.FactorAnalysis(rotation="varimax"),
    covary.FactorAnalysis(1),
    covary.BayesianPCA(),
    covary.BayesianPCA(inference="mean_field"),
    covary.BayesianPCA(inference="evidence"),
    covary.BayesianPCA(inference="gibbs", prior={"draws": 20, "warm_up": 20}),
    covary.GroupFactorAnalysis(),
    covary.GroupFactorAnalysis(noise="diagonal", standardize=True),
    covary.FastICA(),
    covary.FastICA(algorithm="deflation", fun="cube", whiten="arbitrary-variance"),
    covary.InfomaxICA(),
    covary.InfomaxICA(sources="logistic"),
    covary.NoisyICA(),
    covary.NoisyICA(1, tied_noise=True),
    covary.FunctionalPCA(),
    covary.FunctionalPCA(1, n_basis=6, smoothing=1.0),
    covary.Gaussian(),
    covary.Imputer(),
    covary.Imputer(add_indicator=True, keep_empty_features=True),
    covary.Imputer("ppca"),
    covary.Imputer("fa"),
    covary.Imputer("bpca"),
    covary.MixturePPCA(),
    covary.MixturePPCA(noise="diagonal"),
    covary.GaussianMixture(),
    covary.GaussianMixture(2, covariance_type="diag"),
    covary.GaussianMixture(2, covariance_type="spherical"),
    covary.PPCAClassifier(),
    covary.PPCAClassifier(noise="diagonal"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_check_estimator(estimator):
    """Nothing is expected to fail. Array-API input is skipped by scikit-learn itself, for its own classes too,
    unless SCIPY_ARRAY_API is set."""
    results = check_estimator(estimator, on_fail=None)
    failed = [f"{r['check_name']}: {r['exception']!r}" for r in results if r["status"] == "failed"]
    assert not failed
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= {"check_array_api_input"}
    # There are fewer checks where there is no transform.
    least = 45 if hasattr(estimator, "transform") else 39
    assert sum(r["status"] == "passed" for r in results) >= least


MODELS = [
    covary.PCA(3),
    covary.IncrementalPCA(3),
    covary.PPCA(3),
    covary.StudentPPCA(3),
    covary.SparsePPCA(3),
    covary.BayesianSparsePCA(3),
    covary.FactorAnalysis(3),
    covary.BayesianPCA(5),
    covary.GroupFactorAnalysis(5, views=[4, 9], standardize=True),
    covary.Gaussian(),
]


@pytest.mark.parametrize("estimator", MODELS, ids=repr)
def test_a_fitted_model_answers_with_gaps(estimator, wine_gaps):
    model = clone(estimator).fit(wine_gaps)
    q = model.n_components_
    scores, covariances = model.transform(wine_gaps, return_cov=True)
    assert scores.shape == (178, q) and covariances.shape == (178, q, q)
    assert np.linalg.eigvalsh(covariances).min() > -1e-9
    assert model.inverse_transform(scores).shape == wine_gaps.shape
    filled, std = model.impute(wine_gaps, return_std=True)
    gaps = np.isnan(wine_gaps)
    assert (filled[~gaps] == wine_gaps[~gaps]).all() and (std[gaps] > 0).all() and (std[~gaps] == 0).all()
    assert np.isfinite(model.score_samples(wine_gaps)).all()
    assert model.score(wine_gaps) == pytest.approx(model.score_samples(wine_gaps).mean())
    assert np.allclose(model.get_covariance() @ model.get_precision(), np.eye(13), atol=1e-6)
    assert model.sample(5, random_state=1).shape == (5, 13)
    assert (model.sample(5, random_state=1) == model.sample(5, random_state=1)).all()
    distances = model.outlyingness(wine_gaps)
    assert {name: d.shape for name, d in distances.items()} == dict.fromkeys(("t2", "spe", "mahalanobis"), (178,))
    drawn = model.sample_gaps(wine_gaps, n_draws=3)
    assert drawn.shape == (3, 178, 13) and (drawn[:, ~gaps] == wine_gaps[~gaps]).all()


@pytest.mark.parametrize("estimator", MODELS, ids=repr)
def test_pickles_and_copies_answer_the_same(estimator, wine_gaps):
    model = clone(estimator).fit(wine_gaps)
    for twin in (pickle.loads(pickle.dumps(model)), clone(estimator).fit(wine_gaps)):
        assert (twin.transform(wine_gaps) == model.transform(wine_gaps)).all()
        assert (twin.impute(wine_gaps) == model.impute(wine_gaps)).all()
        assert (twin.score_samples(wine_gaps) == model.score_samples(wine_gaps)).all()


def test_a_pickled_stream_goes_on(wine_gaps):
    whole = covary.IncrementalPCA(3).partial_fit(wine_gaps[:100])
    twin = pickle.loads(pickle.dumps(whole))
    twin.partial_fit(wine_gaps[100:])
    assert whole.n_samples_seen_ == 100 and twin.n_samples_seen_ == 178
    assert (whole.partial_fit(wine_gaps[100:]).components_ == twin.components_).all()


@pytest.mark.parametrize("estimator", MODELS, ids=repr)
def test_single_precision_is_kept(estimator, wine_gaps):
    rows = wine_gaps.astype(np.float32)
    model = clone(estimator).fit(rows)
    for answer in (model.transform(rows), model.impute(rows), model.components_, model.mean_):
        assert answer.dtype == np.float32


@pytest.mark.parametrize("estimator", MODELS, ids=repr)
def test_threads_do_not_show_in_the_numbers(estimator, wine_gaps):
    with covary.threads(1):
        one = clone(estimator).fit(wine_gaps)
    with covary.threads(2):
        two = clone(estimator).fit(wine_gaps)
    assert (one.components_ == two.components_).all() and (one.mean_ == two.mean_).all()
    with covary.threads(1):
        scores = one.transform(wine_gaps)
    assert (scores == two.transform(wine_gaps)).all()


def test_frames_keep_their_names_and_index(wine_gaps, wine_names):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(wine_gaps, columns=wine_names, index=[f"r{i}" for i in range(178)])
    model = covary.PPCA(2).set_output(transform="pandas").fit(frame)
    scores = model.transform(frame)
    assert list(scores.columns) == ["ppca0", "ppca1"] and list(scores.index) == list(frame.index)
    filled = covary.Imputer().set_output(transform="pandas").fit_transform(frame)
    assert list(filled.columns) == wine_names and not filled.isna().any().any()
    nullable = covary.PPCA(2).fit(frame.convert_dtypes())
    assert np.allclose(nullable.components_, model.components_)


def test_arrow_tables_with_nulls(wine_gaps, wine_names):
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    columns = {
        name: [None if np.isnan(v) else float(v) for v in wine_gaps[:, j]] for j, name in enumerate(wine_names)
    }
    plain = covary.PPCA(2).fit(wine_gaps)
    for frame in (polars.DataFrame(columns), pyarrow.table(columns)):
        model = covary.PPCA(2).fit(frame)
        assert (model.components_ == plain.components_).all()
        assert list(model.feature_names_in_) == wine_names
    scores = covary.PPCA(2).set_output(transform="polars").fit_transform(polars.DataFrame(columns))
    assert scores.columns == ["ppca0", "ppca1"]


def test_every_layout_gives_the_same_numbers(wine_gaps):
    plain = covary.PPCA(2).fit(wine_gaps).components_
    spread = np.zeros((356, 26))
    spread[::2, ::2] = wine_gaps
    layouts = [
        np.asfortranarray(wine_gaps),
        spread[::2, ::2],
        wine_gaps[::-1][::-1],
        wine_gaps.astype(">f8"),
        wine_gaps.tolist(),
    ]
    for rows in layouts:
        assert (covary.PPCA(2).fit(rows).components_ == plain).all()
    read_only = wine_gaps.copy()
    read_only.flags.writeable = False
    assert (covary.PPCA(2).fit(read_only).components_ == plain).all()
    density = covary.PPCA(2).fit(wine_gaps)._model
    assert (density.log_density(np.asfortranarray(wine_gaps)) == density.log_density(wine_gaps)).all()


def test_pipelines_and_searches(wine_gaps):
    pipeline = make_pipeline(StandardScaler(), covary.PPCA())
    folds = KFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(pipeline, {"ppca__n_components": [0, 1, 2, 3]}, cv=folds).fit(wine_gaps)
    assert search.best_params_["ppca__n_components"] >= 2
    assert cross_val_score(covary.FactorAnalysis(2), wine_gaps, cv=3).shape == (3,)
    imputed = make_pipeline(covary.Imputer(), StandardScaler()).fit_transform(wine_gaps)
    assert np.isfinite(imputed).all()


def test_jobs_in_other_processes(wine_gaps):
    """A forked or spawned worker starts its own threads."""
    folds = KFold(2, shuffle=True, random_state=0)
    search = GridSearchCV(covary.PPCA(), {"n_components": [1, 2]}, cv=folds, n_jobs=2).fit(wine_gaps)
    assert search.best_params_["n_components"] == 2
    script = """
    import multiprocessing, numpy, covary
    X = numpy.random.default_rng(0).normal(size=(3000, 60))    # large enough for several threads
    def fitted(_): return covary.PCA(2).fit(X).transform(X)
    if __name__ == "__main__":
        here = fitted(0)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert all((there == here).all() for there in pool.map(fitted, range(4)))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], timeout=120, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_ctrl_c_stops_a_fit():
    script = """
    import numpy, covary, sys
    X = numpy.random.default_rng(0).normal(size=(3000, 60))
    X[numpy.random.default_rng(1).random(X.shape) < 0.3] = numpy.nan
    print("fitting", flush=True)
    try:
        covary.BayesianPCA(10, inference="gibbs", prior={"draws": 100000}).fit(X)
    except KeyboardInterrupt:
        print("stopped", flush=True)
    """
    run = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "fitting\n"
    try:
        run.wait(1.0)
    except subprocess.TimeoutExpired:
        run.send_signal(signal.SIGINT)
    assert run.stdout.readline() == "stopped\n"
    assert run.wait(30) == 0


def test_verbose_tells_how_far_it_is(capfd):
    rows = np.random.default_rng(0).normal(size=(2000, 40))
    rows[np.random.default_rng(1).random(rows.shape) < 0.3] = np.nan
    options = {"inference": "gibbs", "prior": {"draws": 40, "warm_up": 40}}
    covary.BayesianPCA(5, verbose=True, **options).fit(rows)
    told = capfd.readouterr()
    assert "[BayesianPCA] step" in told.err and told.out == ""
    covary.BayesianPCA(5, **options).fit(rows)
    assert capfd.readouterr().err == ""


def test_the_interpreter_is_free_while_fitting():
    import threading
    import time

    rows = np.random.default_rng(0).normal(size=(3000, 60))
    rows[np.random.default_rng(1).random(rows.shape) < 0.3] = np.nan
    ticks, done = [], threading.Event()

    def count():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    start = time.perf_counter()
    covary.BayesianPCA(10, inference="gibbs", prior={"draws": 30, "warm_up": 30}).fit(rows)
    end = time.perf_counter()
    done.set()
    counter.join()
    # Held all the time, the lock would let the counter in once or twice.
    assert sum(start < t < end for t in ticks) > 20


def test_a_contiguous_table_is_not_copied():
    """Peak memory of a fit above that of the table, in a process of its own."""
    script = """
    import numpy, covary, resource
    rng = numpy.random.default_rng(0)
    small = rng.normal(size=(1000, 50))
    covary.PCA(5).fit(small); covary.PPCA(5, standardize=False).fit(small)   # libraries and threads are there
    table = numpy.empty((400_000, 50)); table[:] = rng.normal(size=50)
    table += numpy.resize(rng.normal(size=9973), (400_000, 1))
    table[:, 0] += numpy.arange(400_000) % 7
    table[:, 1] *= numpy.arange(400_000) % 5
    for j in range(50): table[:, j] += numpy.resize(rng.normal(size=7919 + j), 400_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    covary.PCA(5).fit(table)
    covary.PPCA(5, standardize=False).fit(table)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    print(grown / table.nbytes)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], timeout=300, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 0.25, f"a fit took {done.stdout.strip()} tables of memory"


def test_options_are_checked_when_fitting(wine):
    for bad in (
        covary.PPCA("many"),
        covary.PPCA(-1),
        covary.PPCA(1.5),
        covary.PPCA(2, inference="gibbs"),
        covary.PPCA(2, max_iter=0),
        covary.PPCA(2, tol=-1.0),
        covary.PPCA(2, standardize="yes"),
        covary.BayesianPCA(inference="em"),
        covary.BayesianPCA(prior={"no_such": 1}),
        covary.BayesianPCA(prior={"noise_rate": "large"}),
        covary.FactorAnalysis(2, rotation="round"),
        covary.FactorAnalysis(2, svd_method="fast"),
        covary.Gaussian(pseudo_rows=-1.0),
        covary.Imputer("mean"),
        covary.Imputer(add_indicator=3),
    ):
        with pytest.raises(covary.exceptions.OptionError):
            bad.fit(wine)
    for n in (0, -1, 1.5, True, "two", 10**9):
        with pytest.raises(covary.exceptions.OptionError, match="threads"), covary.threads(n):
            pass
