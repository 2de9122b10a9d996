"""What cannot be fitted is refused in words; no panic crosses the border."""

import importlib.metadata
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import covary
from covary.exceptions import ComponentsError, CovaryWarning, DataError

CLASSES = [
    covary.PCA,
    covary.IncrementalPCA,
    covary.PPCA,
    covary.StudentPPCA,
    covary.SparsePPCA,
    covary.BayesianSparsePCA,
    covary.FactorAnalysis,
    covary.BayesianPCA,
    covary.GroupFactorAnalysis,
    covary.Gaussian,
    covary.NoisyICA,
    covary.Imputer,
]
every_class = pytest.mark.parametrize("cls", CLASSES)
nan = np.nan


@every_class
@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.array([["a", "b"], ["c", "d"]]), "could not convert string"),
        (np.array([[1.0, "x"], [2.0, 3.0]], dtype=object), "could not convert string"),
        (np.array([[1.0, np.inf], [2.0, 3.0], [4.0, 1.0]]), "contains infinity: row 1, column `x2`"),
        (np.array([[1.0, 2.0], [2.0, -np.inf], [4.0, 1.0]]), "contains infinity: row 2, column `x2`"),
        (np.arange(5.0), "Expected 2D array, got 1D"),
        (np.zeros((2, 2, 2)), "dim 3"),
        (np.float64(1.0), "Expected 2D array, got scalar"),
        (np.zeros((0, 3)), "0 sample"),
        (np.zeros((3, 0)), "0 feature"),
        (np.array([[1 + 2j, 2], [3, 4]]), "Complex data not supported"),
        ([[1.0, 2.0], [3.0]], "inhomogeneous"),
        (None, "Expected 2D array"),
    ],
    ids=["text", "object", "inf", "-inf", "1-d", "3-d", "scalar", "no rows", "no columns", "complex", "ragged", "None"],
)
def test_refused(cls, table, message):
    with pytest.raises(ValueError, match=message):
        cls().fit(table)


@pytest.mark.parametrize("cls", [c for c in CLASSES if c is not covary.Imputer])
def test_a_column_without_values_is_named(cls):
    rows = np.random.default_rng(0).normal(size=(20, 3))
    rows[:, 1] = nan
    with pytest.raises(DataError, match="column `x2` has no observed value"):
        cls().fit(rows)
    pandas = pytest.importorskip("pandas")
    with pytest.raises(DataError, match="column `height` has no observed value"):
        cls().fit(pandas.DataFrame(rows, columns=["age", "height", "weight"]))


@every_class
def test_a_column_of_text_is_named(cls):
    pandas = pytest.importorskip("pandas")
    with pytest.raises(DataError, match="column 'kind'"):
        cls().fit(pandas.DataFrame({"age": [1.0, 2.0, 3.0], "kind": ["x", "y", "z"]}))


@pytest.mark.parametrize("cls", [c for c in CLASSES if c is not covary.IncrementalPCA])
def test_sparse_gaps_and_unsupported_sparse(cls):
    """IncrementalPCA writes sparse batches out, and a NaN is a gap as in any other."""
    sparse = pytest.importorskip("scipy.sparse")
    table = sparse.csr_matrix(np.array([[1.0, nan, 0.0], [0.0, 2.0, 0.0], [3.0, 0.0, 1.0]]))
    with pytest.raises((TypeError, ValueError)):
        cls(1).fit(table) if cls is covary.PCA else cls().fit(table)


@every_class
def test_unfitted(cls):
    with pytest.raises(NotFittedError):
        cls().transform(np.zeros((2, 2)))


@every_class
def test_other_columns_than_fitted(cls, wine_gaps, wine_names):
    model = cls().fit(wine_gaps)
    with pytest.raises(ValueError, match="12 features.*13 features"):
        model.transform(wine_gaps[:, :12])
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(wine_gaps, columns=wine_names)
    model = cls().fit(frame)
    with pytest.raises(ValueError, match="same order"):
        model.transform(frame[wine_names[::-1]])
    with pytest.raises(ValueError, match="unseen at fit time"):
        model.transform(frame.rename(columns={"hue": "color"}))
    with pytest.warns(UserWarning, match="valid feature names"):
        model.transform(wine_gaps)


@every_class
def test_one_row(cls):
    with pytest.raises(ValueError, match="1 sample"):
        cls().fit(np.ones((1, 3)))


@pytest.mark.parametrize("cls", [covary.PPCA, covary.BayesianPCA])
def test_too_many_components(cls, wine, wine_gaps):
    with pytest.raises(ComponentsError, match="n_components=13 must be below n_features=13"):
        cls(13).fit(wine)
    with pytest.warns(CovaryWarning, match="10 factors are more than the 8 that 13 columns can determine"):
        covary.FactorAnalysis(10).fit(wine_gaps)
    with pytest.raises(ComponentsError, match="14 components are too many"):
        covary.FactorAnalysis(14).fit(wine_gaps)


@every_class
def test_tables_without_variance(cls):
    if cls in (covary.PCA, covary.IncrementalPCA):
        # As in scikit-learn: nothing to explain, and said so by zeros.
        model = cls(1).fit(np.ones((5, 3)))
        assert np.isfinite(model.transform(np.ones((5, 3)))).all()
    else:
        with pytest.raises(DataError, match="all 3 columns are constant"):
            cls().fit(np.ones((5, 3)))


@pytest.mark.parametrize("cls", [covary.PPCA, covary.BayesianPCA, covary.Gaussian, covary.Imputer])
def test_constant_columns_are_set_aside(cls, wine_gaps):
    rows = np.insert(wine_gaps, 4, 7.0, axis=1)
    rows[3, 4] = nan
    model, plain = cls().fit(rows), cls().fit(wine_gaps)
    fill = cls.transform if cls is covary.Imputer else cls.impute
    filled, std = fill(model, rows, return_std=True)
    assert (filled[:, 4] == 7.0).all() and (std[:, 4] == 0.0).all()
    assert (np.delete(filled, 4, axis=1) == fill(plain, wine_gaps)).all()
    if cls is not covary.Imputer:
        assert model.mean_[4] == 7.0 and (model.components_[:, 4] == 0.0).all()
        assert (model.get_covariance()[4] == 0.0).all()
        assert (model.sample(3)[:, 4] == 7.0).all()
        with pytest.raises(DataError, match="constant"):
            model.get_precision()
        assert (model.score_samples(rows) == plain.score_samples(wine_gaps)).all()


def test_odd_tables_end_in_numbers_or_words():
    """Whatever the table: an answer without NaN, or a ValueError."""
    rng = np.random.default_rng(0)
    tables = [
        np.array([[1.0, 2.0], [2.0, 4.0]]),
        np.array([[1.0, nan], [nan, 2.0], [3.0, 4.0]]),
        np.array([[nan, nan], [1.0, 2.0], [2.0, 1.0], [0.5, nan]]),
        np.outer(np.arange(6.0), [1.0, 2.0, 3.0]),
        rng.normal(size=(5, 20)),
        np.where(rng.random((6, 20)) < 0.4, nan, rng.normal(size=(6, 20))),
        1e200 * rng.normal(size=(20, 3)),
        1e-200 * rng.normal(size=(20, 3)),
        rng.normal(size=(30, 4)) + 1e12,
        np.where(rng.random((50, 4)) < 0.9, nan, rng.normal(size=(50, 4))),
        rng.integers(0, 2, size=(30, 3)),
        np.column_stack([rng.normal(size=30), [nan] * 29 + [1.0]]),
    ]
    answered = 0
    for table in tables:
        for cls in CLASSES:
            try:
                with np.errstate(all="raise"):
                    model = cls().fit(table)
                    answer = model.transform(table)
            except ValueError as error:
                assert str(error)
            else:
                answered += 1
                assert np.isfinite(answer).all(), (cls, table)
    assert answered > len(tables) * len(CLASSES) / 2


def test_a_mask_is_a_gap(wine_gaps):
    coded = np.where(np.isnan(wine_gaps), 99.0, wine_gaps)
    masked = np.ma.masked_array(coded, np.isnan(wine_gaps))
    assert (covary.Imputer().fit_transform(masked) == covary.Imputer().fit_transform(wine_gaps)).all()


def test_numbers_out_of_range_are_refused_in_words(wine):
    model = covary.BayesianPCA(2).fit(wine)
    for ask in (
        lambda: covary.PPCA(2, random_state=-1).fit(wine),
        lambda: covary.PPCA(2, max_iter=2**64).fit(wine),
        lambda: covary.PPCA(2**64).fit(wine),
        lambda: covary.select(wine, max_components=-1),
        lambda: covary.select(wine, model="mppca", max_mixtures=0),
        lambda: covary.select(wine, model="fa"),
        lambda: model.predictive_log_density(wine, n_draws=10**13),
        lambda: model.sample(-1),
        lambda: model.sample_gaps(wine, n_draws=0),
        lambda: covary.pool([[1.0, 2.0]], [[1.0, 2.0]]),
        lambda: covary.Imputer(missing_values="x").fit(wine),
        lambda: covary.IncrementalPCA(2, whiten="x").fit(wine),
    ):
        with pytest.raises(ValueError):
            ask()
    with pytest.raises((MemoryError, ValueError)):
        model.sample(10**15)


def test_a_column_of_text_in_an_arrow_table_is_named():
    pyarrow = pytest.importorskip("pyarrow")
    with pytest.raises(DataError, match="column 'kind'"):
        covary.PCA(1).fit(pyarrow.table({"age": [1.0, 2.0, 4.0], "kind": ["u", "v", "w"]}))


def test_the_version_is_that_of_the_package():
    assert covary.__version__ == importlib.metadata.version("covary")


def test_errors_are_those_users_catch():
    for name in covary.exceptions.__all__:
        kind = getattr(covary.exceptions, name)
        assert issubclass(kind, (ValueError, UserWarning, covary.exceptions.CovaryError))
    assert issubclass(DataError, ValueError) and issubclass(ComponentsError, ValueError)
    assert issubclass(covary.exceptions.NotFittedError, ValueError)


def test_warnings_are_given(wine_gaps):
    with pytest.warns(covary.exceptions.ConvergenceWarning, match="still rising"):
        covary.PPCA(5, max_iter=1).fit(wine_gaps)
    rows = wine_gaps.copy()
    rows[1:, 0] = nan
    with pytest.warns(CovaryWarning, match="observed once"):
        filled, std = covary.Imputer().fit_transform(rows, return_std=True)
    assert (filled[:, 0] == rows[0, 0]).all() and np.isnan(std[1:, 0]).all()
    rows[:, 0] = nan
    with pytest.warns(CovaryWarning, match="dropped"):
        assert covary.Imputer().fit_transform(rows).shape == (178, 12)


@pytest.mark.parametrize("model", ['covary.PCA(svd_solver="full")', "covary.PPCA(2990)"])
def test_ctrl_c_leaves_a_decomposition(model):
    """It has no step to stop at; whoever waits for it need not, and the table is theirs again."""
    code = f"""
import numpy as np, os, signal, threading, time
import covary
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in a shell's background ignores it
X = np.random.default_rng(0).normal(size=(4000, 3000))
late = threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGINT))
late.start()
try:
    {model}.fit(X)
    raise SystemExit("was not interrupted")
except KeyboardInterrupt:
    X[:] = 0.0
    small = covary.PCA(2).fit(np.random.default_rng(1).normal(size=(50, 4)))
    print(small.components_.shape)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert said.returncode == 0 and said.stdout == "(2, 4)\n", said.stdout + said.stderr


def one_wild_cell():
    table = np.random.default_rng(1).uniform(-3, 3, size=(60, 4))
    table[7, 2] = 1_000_000
    return table


@pytest.mark.parametrize(
    "estimator",
    [
        covary.PCA(n_components=2),
        covary.PPCA(n_components=2),
        covary.FactorAnalysis(n_components=1),
        covary.BayesianPCA(n_components=2),
        covary.Gaussian(),
        covary.GaussianMixture(n_components=1),
        covary.Imputer(),
        covary.FastICA(n_components=2, max_iter=500, tol=1e-2),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_wild_cell_is_named_at_fit(estimator):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(one_wild_cell())
    said = [str(w.message) for w in caught if issubclass(w.category, covary.exceptions.DataWarning)]
    assert len(said) == 1
    assert "row 8" in said[0]
    assert "1000000" in said[0]


def test_no_wild_cell_is_seen_where_none_is():
    table = one_wild_cell()
    table[7, 2] = np.nan
    heavy = np.random.default_rng(2).standard_t(2, size=(500, 3))
    for rows in (table, table.astype(np.float32), heavy, np.full((30, 2), np.inf)):
        assert covary._covary.wild_cells(rows, None) == []
    wild = one_wild_cell().astype(np.float32)
    assert len(covary._covary.wild_cells(wild, ["a", "b", "c", "d"])) == 1
    assert "`c`" in covary._covary.wild_cells(wild, ["a", "b", "c", "d"])[0]
