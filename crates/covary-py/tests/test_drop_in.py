"""PCA, IncrementalPCA and FactorAnalysis give scikit-learn's numbers over every option they share."""

import numpy as np
import pytest
import sklearn.decomposition as theirs
from scipy import sparse
from sklearn import datasets

import covary

TABLES = {
    "iris": datasets.load_iris().data,
    "wine": datasets.load_wine().data,
    "breast_cancer": datasets.load_breast_cancer().data,
    "diabetes": datasets.load_diabetes().data,
    "linnerud": datasets.load_linnerud().data,
    "digits": datasets.load_digits().data,
    "digits, wide": datasets.load_digits().data[:40],
}
RTOL = {np.float64: 1e-6, np.float32: 1e-3}


def close(ours, theirs_, dtype=np.float64, scale=None, what="", rounding=0.0):
    """Equal to the precision asked for, or to its share of the largest entry, where digits end.

    `rounding` is what differences of larger numbers leave of a zero.
    """
    ours, theirs_ = np.asarray(ours, dtype=float), np.asarray(theirs_, dtype=float)
    assert ours.shape == theirs_.shape, what
    largest = np.abs(theirs_).max(initial=0.0) if scale is None else scale
    rtol = RTOL[dtype]
    np.testing.assert_allclose(ours, theirs_, rtol=rtol, atol=rtol * largest + rounding, err_msg=what)


def determined(pca, n_rows, dtype):
    """Axes that the table determines: their variances stand apart from their neighbors' and from 0."""
    v = pca.explained_variance_.astype(float)
    beyond = np.r_[np.inf, v, pca.noise_variance_ if len(v) < min(n_rows, pca.n_features_in_) else 0.0]
    gap = np.minimum(beyond[:-2] - v, v - beyond[2:]) / v[0]
    return gap > (1e-7 if dtype == np.float64 else 1e-2)


def same_axes(ours, theirs_, X, dtype):
    clear = determined(theirs_, len(X), dtype)
    signs = np.sign((ours.components_[clear] * theirs_.components_[clear]).sum(axis=1))
    if dtype == np.float64:
        # Both rules: the entry of largest absolute value is positive (but where two are that large).
        top = np.sort(np.abs(theirs_.components_[clear]), axis=1)[:, -2:]
        tied = top.shape[1] == 2 and bool((top[:, 1] - top[:, 0] < 1e-6).any())
        assert tied or (signs == 1).all()
    close(ours.components_[clear] * signs[:, None], theirs_.components_[clear], dtype)
    spread = np.abs(theirs_.transform(X)).max()
    z = ours.transform(X)[:, clear] * signs
    close(z, theirs_.transform(X)[:, clear], dtype, scale=spread)


def same_pca(X, dtype=np.float64, **options):
    X = X.astype(dtype)
    ours, reference = covary.PCA(**options).fit(X), theirs.PCA(**options).fit(X)
    assert ours.n_components_ == reference.n_components_
    assert ours.n_samples_ == reference.n_samples_
    for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_"):
        close(getattr(ours, name), getattr(reference, name), dtype, what=name)
        assert getattr(ours, name).dtype == dtype
    close(ours.mean_, reference.mean_, dtype, scale=np.abs(X).max())
    # What is left of the total when all but rounding is taken from it.
    rounding = 10 * np.finfo(dtype).eps * reference.explained_variance_.sum()
    close(ours.noise_variance_, reference.noise_variance_, dtype, rounding=rounding, what="noise_variance_")
    same_axes(ours, reference, X, dtype)
    # With whiten=True scikit-learn multiplies axes by standard deviations that they already carry, so
    # that its covariance is not the table's; ours does not depend on `whiten`.
    plain = theirs.PCA(**{**options, "whiten": False}).fit(X)
    close(ours.get_covariance(), plain.get_covariance(), dtype)
    assert ours.transform(X).dtype == dtype
    close(ours.inverse_transform(ours.transform(X)), reference.inverse_transform(reference.transform(X)), dtype)
    return ours, reference


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_components", [None, 1, 3, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("table", TABLES)
def test_pca(table, n_components, dtype):
    X = TABLES[table]
    # Shares of single precision are cut where sums of squares end.
    same_pca(X, dtype, n_components=n_components, svd_solver="full")


@pytest.mark.parametrize("table", [name for name in TABLES if name != "digits, wide"])
def test_pca_by_evidence(table):
    same_pca(TABLES[table], n_components="mle", svd_solver="full")


@pytest.mark.parametrize("n_components", [None, 3, 0.9])
@pytest.mark.parametrize("table", TABLES)
def test_pca_by_covariance(table, n_components):
    same_pca(TABLES[table], n_components=n_components, svd_solver="covariance_eigh")


@pytest.mark.parametrize("table", TABLES)
def test_pca_by_arpack_and_auto(table):
    same_pca(TABLES[table], n_components=2, svd_solver="arpack")
    same_pca(TABLES[table], n_components=2, svd_solver="auto")
    same_pca(TABLES[table], n_components=None, svd_solver="arpack", random_state=0)


@pytest.mark.parametrize("table", TABLES)
def test_pca_randomized_is_exact_here(table):
    """Theirs nears ours as its power iterations go on."""
    options = {"n_components": 2, "svd_solver": "randomized", "random_state": 0}
    same_pca(TABLES[table], iterated_power=60, power_iteration_normalizer="QR", **options)


@pytest.mark.parametrize("table", ["iris", "wine", "breast_cancer", "diabetes"])
@pytest.mark.parametrize("n_components", [2, 3, None])
def test_whitened_pca(table, n_components):
    X = TABLES[table]
    ours, reference = same_pca(X, n_components=n_components, whiten=True)
    close(ours.transform(X).var(axis=0, ddof=1), np.ones(ours.n_components_))


@pytest.mark.parametrize("table", ["iris", "wine", "breast_cancer", "diabetes", "linnerud"])
@pytest.mark.parametrize("n_components", [0, 1, 2, None])
def test_pca_as_a_density(table, n_components):
    X = TABLES[table]
    ours, reference = covary.PCA(n_components).fit(X), theirs.PCA(n_components).fit(X)
    precision = reference.get_precision()
    close(ours.get_precision(), precision)
    close(ours.score_samples(X), reference.score_samples(X))
    close(ours.score(X), reference.score(X))


@pytest.mark.parametrize("solver", ["arpack", "covariance_eigh"])
@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array])
def test_sparse_pca(solver, kind):
    X = TABLES["digits"]
    ours = covary.PCA(5, svd_solver=solver).fit(kind(X))
    reference = theirs.PCA(5, svd_solver=solver, random_state=0).fit(kind(X))
    for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_", "mean_", "components_"):
        close(getattr(ours, name), getattr(reference, name), what=name)
    close(ours.noise_variance_, reference.noise_variance_)
    close(ours.transform(kind(X)), reference.transform(kind(X)))
    close(ours.transform(X), reference.transform(X))
    with pytest.raises(TypeError, match="sparse"):
        covary.PCA(5, svd_solver="full").fit(kind(X))


def test_sparse_pca_by_default():
    X = sparse.random(200, 50, density=0.2, format="csr", random_state=0)
    ours, reference = covary.PCA().fit(X), theirs.PCA(random_state=0).fit(X)
    assert ours.n_components_ == reference.n_components_ == 49
    close(ours.explained_variance_, reference.explained_variance_)
    close(ours.noise_variance_, reference.noise_variance_, rounding=1e-14)


def test_pca_refuses_what_scikit_learn_refuses():
    X = TABLES["iris"]
    for options in (
        {"n_components": 5},
        {"n_components": -1},
        {"n_components": 1.5},
        {"n_components": "most"},
        {"n_components": 4, "svd_solver": "arpack"},
        {"n_components": 0, "svd_solver": "randomized"},
        {"n_components": "mle", "svd_solver": "arpack"},
        {"svd_solver": "best"},
    ):
        for module in (covary, theirs):
            with pytest.raises(ValueError):
                module.PCA(**options).fit(X)
    with pytest.raises(ValueError, match="n_samples >= n_features"):
        covary.PCA("mle").fit(TABLES["digits, wide"])


@pytest.mark.parametrize("batch_size", [None, 10, 37])
@pytest.mark.parametrize("n_components", [None, 2, 4])
@pytest.mark.parametrize("table", ["iris", "wine", "breast_cancer", "diabetes"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_incremental_pca(table, n_components, batch_size, dtype):
    X = TABLES[table].astype(dtype)
    options = {"n_components": n_components, "batch_size": batch_size}
    ours, reference = covary.IncrementalPCA(**options).fit(X), theirs.IncrementalPCA(**options).fit(X)
    assert (ours.n_components_, ours.n_samples_seen_) == (reference.n_components_, reference.n_samples_seen_)
    assert ours.batch_size_ == reference.batch_size_
    for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_", "var_"):
        close(getattr(ours, name), getattr(reference, name), dtype, what=name)
    close(ours.mean_, reference.mean_, dtype, scale=np.abs(X).max())
    same_axes(ours, reference, X, dtype)
    # Theirs is what the last merge left out, of which there is one if all rows are one batch.
    whole, reference = (
        module.IncrementalPCA(n_components, batch_size=len(X)).fit(X) for module in (covary, theirs)
    )
    rounding = 10 * np.finfo(dtype).eps * reference.explained_variance_.sum()
    close(whole.noise_variance_, reference.noise_variance_, dtype, rounding=rounding, what="noise_variance_")
    close(whole.get_covariance(), reference.get_covariance(), dtype)


def test_incremental_pca_has_one_noise():
    """What is reported is what gaps are filled by, and does not fall as batches come."""
    X = TABLES["wine"]
    ours = covary.IncrementalPCA(3, batch_size=20).fit(X)
    whole = covary.PCA(3).fit(X)
    assert abs(ours.noise_variance_ / whole.noise_variance_ - 1) < 0.05
    gaps = X.copy()
    gaps[::3, 1] = np.nan
    filled, std = ours.impute(gaps, return_std=True)
    C, others = ours.get_covariance(), np.arange(13) != 1
    slope = np.linalg.solve(C[np.ix_(others, others)], C[others, 1])
    rows = X[::3]
    close(filled[::3, 1], ours.mean_[1] + (rows[:, others] - ours.mean_[others]) @ slope)
    close(std[::3, 1], np.full(len(rows), np.sqrt(C[1, 1] - C[1, others] @ slope)))
    close(ours.transform(gaps), (filled - ours.mean_) @ ours.components_.T)


@pytest.mark.parametrize("whiten", [False, True])
def test_incremental_pca_in_batches(whiten):
    X = TABLES["wine"]
    ours = covary.IncrementalPCA(n_components=3, whiten=whiten)
    reference = theirs.IncrementalPCA(n_components=3, whiten=whiten)
    for rows in (slice(0, 50), slice(50, 53), slice(53, 54), slice(54, 178)):
        ours.partial_fit(X[rows])
        reference.partial_fit(X[rows])
        close(ours.components_, reference.components_)
        close(ours.explained_variance_, reference.explained_variance_)
    close(ours.transform(X), reference.transform(X))
    close(ours.inverse_transform(ours.transform(X)), reference.inverse_transform(reference.transform(X)))


FACTORS = {"iris": 2, "wine": 3, "breast_cancer": 4, "diabetes": 3, "linnerud": 1, "digits": 5}


@pytest.mark.parametrize("rotation", [None, "varimax", "quartimax"])
@pytest.mark.parametrize("tol", [1e-2, 1e-4])
@pytest.mark.parametrize("table", FACTORS)
def test_factor_analysis(table, tol, rotation):
    X, q = TABLES[table], FACTORS[table]
    options = {"n_components": q, "tol": tol, "rotation": rotation, "max_iter": 400}
    ours = covary.FactorAnalysis(**options, inference="fixed_point").fit(X)
    reference = theirs.FactorAnalysis(**options, svd_method="lapack").fit(X)
    assert ours.n_iter_ == reference.n_iter_
    close(ours.loglike_, reference.loglike_, what="loglike_")
    close(ours.noise_variance_, reference.noise_variance_, what="noise_variance_")
    close(ours.mean_, reference.mean_, scale=np.abs(X).max())
    # scikit-learn has no rule for signs here: those of the decomposition it calls.
    signs = np.sign((ours.components_ * reference.components_).sum(axis=1))
    close(ours.components_ * signs[:, None], reference.components_, what="components_")
    close(ours.transform(X) * signs, reference.transform(X), what="transform")
    close(ours.get_covariance(), reference.get_covariance())
    # Constant columns (digits) have a noise of 1e-12, whose inverse is all that is left of them.
    varying = X.std(axis=0) > 0
    close(ours.get_precision()[np.ix_(varying, varying)], reference.get_precision()[np.ix_(varying, varying)])
    close(ours.score_samples(X), reference.score_samples(X), what="score_samples")


@pytest.mark.parametrize("table", ["iris", "wine", "diabetes"])
def test_factor_analysis_in_single_precision(table):
    X, q = TABLES[table].astype(np.float32), FACTORS[table]
    ours = covary.FactorAnalysis(q, tol=1e-3, inference="fixed_point").fit(X)
    reference = theirs.FactorAnalysis(q, tol=1e-3, svd_method="lapack").fit(X)
    signs = np.sign((ours.components_ * reference.components_).sum(axis=1))
    close(ours.components_ * signs[:, None], reference.components_, np.float32)
    close(ours.noise_variance_, reference.noise_variance_, np.float32)
    assert ours.components_.dtype == ours.transform(X).dtype == np.float32


def test_factor_analysis_from_a_start():
    X = TABLES["wine"]
    start = X.var(axis=0) * 0.5
    options = {"n_components": 2, "noise_variance_init": start}
    ours = covary.FactorAnalysis(**options, inference="fixed_point").fit(X)
    reference = theirs.FactorAnalysis(**options, svd_method="lapack").fit(X)
    assert ours.n_iter_ == reference.n_iter_
    close(ours.noise_variance_, reference.noise_variance_)
    with pytest.raises(ValueError, match="noise_variance_init"):
        covary.FactorAnalysis(2, noise_variance_init=[1.0]).fit(X)


MAXIMA = [("breast_cancer", 2), ("wine", 2), ("wine", 4), ("iris", 1), ("diabetes", 1), ("diabetes", 3)]


def dense_log_likelihood(fa, X):
    """Of the loadings and noise that are reported, by the textbook."""
    C = fa.loadings_ @ fa.loadings_.T + np.diag(fa.noise_variance_)
    centered = X - fa.mean_
    distance = np.einsum("ij,ij->", centered @ np.linalg.inv(C), centered)
    return -0.5 * (len(X) * (X.shape[1] * np.log(2 * np.pi) + np.linalg.slogdet(C)[1]) + distance)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("table", "q"), MAXIMA)
def test_factor_analysis_finds_the_maximum(table, q):
    X = TABLES[table]
    best = covary.FactorAnalysis(q).fit(X)
    assert best.converged_
    value = dense_log_likelihood(best, X)
    close(best.log_likelihood_, value)
    # The units of the columns do not matter.
    units = np.logspace(-3, 3, X.shape[1])
    scaled = covary.FactorAnalysis(q).fit(X * units)
    close(scaled.log_likelihood_ + len(X) * np.log(units).sum(), value)
    # Nor is any other start better, nor EM after a cell was hidden, nor scikit-learn, within the same bounds.
    rng = np.random.default_rng(0)
    starts = [X.var(axis=0) * rng.uniform(0.05, 0.95, X.shape[1]) for _ in range(10)]
    others = [covary.FactorAnalysis(q, noise_variance_init=start).fit(X) for start in starts]
    hidden = X.copy()
    hidden[0, 0] = np.nan
    others.append(covary.FactorAnalysis(q, tol=1e-6, max_iter=20000).fit(hidden))
    others.append(covary.FactorAnalysis(q, inference="fixed_point").fit(X))
    bounded = [fa for fa in others if (fa.noise_variance_ > 0.00499999 * X.var(axis=0)).all()]
    assert len(bounded) >= 10
    assert all(dense_log_likelihood(fa, X) <= value + 1e-6 * abs(value) for fa in bounded)


@pytest.mark.filterwarnings("ignore")
def test_more_factors_than_can_be_identified_reach_any_covariance():
    X = TABLES["iris"]
    for q in (2, 3, 4):
        fa = covary.FactorAnalysis(q).fit(X)
        assert fa.components_.shape == (q, 4) and fa.transform(X).shape == (150, q)
    # One factor less than columns is enough for every covariance whose noise is above its floor.
    Y = np.random.default_rng(0).normal(size=(200, 4))
    close(covary.FactorAnalysis(4).fit(Y).get_covariance(), np.cov(Y.T, bias=True))
    with pytest.raises(covary.exceptions.ComponentsError, match="5 components are too many"):
        covary.FactorAnalysis(5).fit(X)
