"""Rows of heavy tails: outliers count for little, and a loaded model answers as the fitted one."""

import numpy as np
import pytest

import covary
from covary.exceptions import OptionError


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 6)) + 0.3 * rng.normal(size=(200, 6))
    X[:10] = 50 * rng.normal(size=(10, 6))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def test_outliers_have_small_weights(rows):
    model = covary.StudentPPCA(2, standardize=False).fit(rows)
    assert model.weights_[:10].max() < 0.1 < np.median(model.weights_[10:])
    assert (model.weights(rows) == model.weights_).all()
    assert 0.2 <= model.df_ < 5
    assert covary.StudentPPCA(2, df=4).fit(rows).df_ == 4.0


def test_a_loaded_model_answers_as_the_fitted_one(rows, tmp_path):
    for df in (None, 3):
        model = covary.StudentPPCA(2, df=df).fit(rows)
        model.save(tmp_path / "model.covary")
        loaded = covary.load(tmp_path / "model.covary")
        assert loaded.get_params() == model.get_params()
        assert (loaded.df_, hasattr(loaded, "weights_")) == (model.df_, False)
        for question in ("weights", "transform", "score_samples", "impute"):
            assert (getattr(loaded, question)(rows) == getattr(model, question)(rows)).all(), question
        assert (loaded.sample_gaps(rows, 2) == model.sample_gaps(rows, 2)).all()
        # Scores are the less certain the less a row counts.
        _, covariances = loaded.transform(rows, return_cov=True)
        complete = np.flatnonzero(~np.isnan(rows).any(axis=1))
        certain = covariances[complete, 0, 0] * loaded.weights(rows)[complete]
        assert np.allclose(certain, certain[0])


def test_p_values_are_those_of_f_and_of_chi_squared(rows):
    from scipy import stats

    from covary import plot

    cells = (~np.isnan(rows)).sum(axis=1)
    heavy, normal = covary.StudentPPCA(2, df=4).fit(rows), covary.PPCA(2).fit(rows)
    squared = [model.outlyingness(rows)["mahalanobis"] for model in (heavy, normal)]
    found = [plot.outliers_data(model, rows).p_value for model in (heavy, normal)]
    assert np.allclose(found[0], stats.f.sf(squared[0] / cells, cells, 4), rtol=1e-9)
    assert np.allclose(found[1], stats.chi2.sf(squared[1], cells), rtol=1e-9)


def test_what_cannot_be_is_refused(rows):
    for df in (-1, "many", True):
        with pytest.raises(OptionError, match="'df'"):
            covary.StudentPPCA(df=df).fit(rows)
    with pytest.raises(OptionError, match="degrees_of_freedom"):
        covary.StudentPPCA(1, df=1e9).fit(rows)
