"""A masked cell is a gap, whichever function the table is given to."""

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pytest

import covary
from covary import plot

RNG = np.random.default_rng(7)
TRUTH = RNG.normal(size=(60, 2)) @ RNG.normal(size=(2, 6)) + 0.4 * RNG.normal(size=(60, 6))
HOLES = RNG.random(TRUTH.shape) < 0.1
GAPS = np.where(HOLES, np.nan, TRUTH)
MASKED = np.ma.masked_array(np.where(HOLES, -999.0, TRUTH), HOLES)
LABELS = (TRUTH[:, 0] > 0).astype(int)


def same(of):
    """What a function says of masked cells is what it says of NaN."""
    masked, nan = of(MASKED), of(GAPS)
    for a, b in zip(np.atleast_1d(masked), np.atleast_1d(nan), strict=True):
        np.testing.assert_array_equal(np.asarray(a, dtype=float), np.asarray(b, dtype=float))


FITTED = {
    "PCA": lambda: covary.PCA(2),
    "IncrementalPCA": lambda: covary.IncrementalPCA(2),
    "PPCA": lambda: covary.PPCA(2),
    "StudentPPCA": lambda: covary.StudentPPCA(2),
    "SparsePPCA": lambda: covary.SparsePPCA(2),
    "BayesianSparsePCA": lambda: covary.BayesianSparsePCA(2),
    "FactorAnalysis": lambda: covary.FactorAnalysis(2),
    "BayesianPCA": lambda: covary.BayesianPCA(2),
    "Gaussian": lambda: covary.Gaussian(),
    "MixturePPCA": lambda: covary.MixturePPCA(2, n_components=1),
    "NoisyICA": lambda: covary.NoisyICA(2),
}
QUESTIONS = ("transform", "score_samples", "score", "impute", "predict_proba", "predict", "sample_gaps")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FITTED)
def test_estimators(name):
    one, other = FITTED[name]().fit(MASKED), FITTED[name]().fit(GAPS)
    asked = [question for question in QUESTIONS if hasattr(one, question)]
    assert asked
    for question in asked:
        a, b = getattr(one, question)(MASKED), getattr(other, question)(GAPS)
        np.testing.assert_array_equal(a, b, err_msg=question)


def test_outlyingness():
    ppca = covary.PPCA(2).fit(GAPS)
    same(lambda X: np.stack(list(ppca.outlyingness(X).values())))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", ["ppca", "mppca"])
def test_select(model):
    def asked(X):
        return covary.select(X, model=model, max_components=2, max_mixtures=2).table["log_likelihood"]

    same(asked)


def test_both_views_of_a_canonical_correlation():
    same(lambda X: covary.ProbabilisticCCA(1).fit(X[:, :3], X[:, 3:]).canonical_correlations_)
    cca = covary.ProbabilisticCCA(1).fit(GAPS[:, :3], GAPS[:, 3:])
    same(lambda X: np.hstack(cca.transform(X[:, :3], X[:, 3:])))
    same(lambda X: cca.scores(X[:, :3], X[:, 3:]))
    same(lambda X: cca.score_samples(X[:, :3], X[:, 3:]))
    same(lambda X: cca.predict(X[:, :3]))


@pytest.mark.filterwarnings("ignore")
def test_views_of_group_factor_analysis():
    def by_name(X):
        return {"a": X[:, :3], "b": X[:, 3:]}

    same(lambda X: covary.GroupFactorAnalysis(2).fit(by_name(X)).mean_)
    same(lambda X: covary.GroupFactorAnalysis(2).fit([X[:, :3], X[:, 3:]]).mean_)
    gfa = covary.GroupFactorAnalysis(2).fit(by_name(GAPS))
    same(lambda X: gfa.transform(by_name(X)))
    same(lambda X: gfa.impute({"a": X[:, :3]}))


def test_classifier():
    same(lambda X: covary.PPCAClassifier(1).fit(X, LABELS).predict_proba(X))
    with pytest.raises(covary.exceptions.DataError, match="masked labels"):
        covary.PPCAClassifier(1).fit(GAPS, np.ma.masked_array(LABELS, LABELS == 1))


def test_imputer():
    imputer = covary.Imputer().fit(GAPS)
    same(lambda X: covary.Imputer().fit_transform(X))
    same(imputer.transform)
    same(lambda X: np.hstack(imputer.interval(X)))
    same(lambda X: imputer.sample(X, 2, random_state=1))
    same(lambda X: imputer.check(X)["rmse"])


def test_figures():
    ppca = covary.PPCA(2).fit(GAPS)
    same(lambda X: plot.missing_map_data(X).share)
    same(lambda X: plot.missing_map_data(X, ppca).share)
    same(lambda X: plot.scree_data(ppca, X).eigenvalue_share)
    same(lambda X: plot.biplot_data(ppca, X).scores)
    same(lambda X: plot.intervals_data(ppca, X, TRUTH).predicted)


def test_scores_have_no_gaps():
    ppca = covary.PPCA(2).fit(GAPS)
    scores = np.ma.masked_array(ppca.transform(GAPS), HOLES[:, :2])
    for estimator in (ppca, covary.PCA(2).fit(GAPS)):
        with pytest.raises(ValueError, match="NaN"):
            estimator.inverse_transform(scores)


def test_pooled_estimates():
    estimates = np.ma.masked_array([1.0, 2.0, 3.0], [False, False, True])
    with pytest.raises(ValueError):
        covary.pool(estimates, [0.1, 0.1, 0.1])
