"""Whether factors fit, matrices in place of tables, and draws: as the library, the command and R have them."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from covary import PCA, PPCA, BayesianPCA, FactorAnalysis, load
from covary.exceptions import DataError, OptionError

GOLDEN = Path(__file__).parents[2] / "covary" / "tests" / "golden" / "factor_fit" / "fit.json"
DATA = Path(os.environ.get("COVARY_DATA", Path(__file__).parents[4] / "shared" / "data"))


def _holzinger(gaps):
    file = DATA / "holzinger_swineford" / "holzinger_swineford1939.csv"
    if not file.exists():
        pytest.skip("COVARY_DATA is absent")
    X = np.genfromtxt(file, delimiter=",", skip_header=1, usecols=range(6, 15))
    if gaps:
        number = np.arange(X.size).reshape(X.shape)
        X[(number % 7 == 3) & (number % 2 == 0)] = np.nan
    return X


def _matrix(name):
    file = DATA / "fa_covariances" / name
    if not file.exists():
        pytest.skip("COVARY_DATA is absent")
    d = len(file.read_text().splitlines()[0].split(",")) - 1
    return np.genfromtxt(file, delimiter=",", skip_header=1, usecols=range(1, d + 1))


@pytest.mark.parametrize("case", json.loads(GOLDEN.read_text())["cases"], ids=lambda c: f"{c['name']}-{c['factors']}")
def test_fit_statistics_are_those_of_r(case, tmp_path):
    q, n, name = case["factors"], case["rows"], case["name"]
    fa = FactorAnalysis(q, tol=1e-9, max_iter=5000)
    if name.startswith("holzinger"):
        X = _holzinger(name.endswith("gaps"))
        fits = [fa.fit(X)]
        if not np.isnan(X).any():
            fits.append(FactorAnalysis(q).fit_covariance(np.cov(X.T), n))
    else:
        files = {"ability": "ability_cov.csv", "harman23": "harman23_cor.csv", "harman74": "harman74_cor.csv"}
        fits = [fa.fit_covariance(_matrix(files[name]), n)]
    theirs = case["lavaan"]
    for fit in fits:
        fit.save(tmp_path / "fa.covary")
        for model in (fit, load(tmp_path / "fa.covary")):
            found = model.fit_statistics_
            assert found["degrees_of_freedom"] == theirs["df"]
            for ours, key in [
                ("likelihood_ratio", "chisq"),
                ("rmsea", "rmsea"),
                ("rmsea_lower", "rmsea.ci.lower"),
                ("rmsea_upper", "rmsea.ci.upper"),
                ("tli", "tli"),
                ("cfi", "cfi"),
                ("srmr", "srmr_bentler_nomean"),
            ]:
                assert found[ours] == pytest.approx(theirs[key], rel=1e-5, abs=1e-5), ours
            if case["factanal"] is not None:
                assert found["chi_square"] == pytest.approx(case["factanal"]["chi_square"], rel=1e-6)
                assert found["p_value"] == pytest.approx(case["factanal"]["p"], rel=1e-4)
                np.testing.assert_allclose(model.uniquenesses_, case["factanal"]["uniquenesses"], atol=2e-4)
            np.testing.assert_allclose(model.communalities_ + model.uniquenesses_, 1.0)


def test_a_matrix_says_what_it_cannot_answer():
    R = np.array([[1, 0.6, 0.5, 0.4], [0.6, 1, 0.4, 0.3], [0.5, 0.4, 1, 0.3], [0.4, 0.3, 0.3, 1]])
    with pytest.raises(DataError, match="fit_covariance"):
        FactorAnalysis(1).fit(R)
    fa = FactorAnalysis(1).fit_covariance(R, 200)
    half = np.where(np.tri(4, dtype=bool), R, np.nan)
    np.testing.assert_array_equal(
        FactorAnalysis(1).fit_covariance(half, 200, kind="correlation").loadings_, fa.loadings_
    )
    for ask in (fa.transform, fa.score_samples, fa.impute, fa.outlyingness):
        with pytest.raises(DataError, match="cannot be had from a correlation matrix"):
            ask(R)
    with pytest.raises(DataError, match="cannot be had"):
        fa.sample(3)
    with pytest.raises(DataError, match="cannot be had"):
        fa.inverse_transform(np.zeros((2, 1)))
    with pytest.raises(OptionError, match="n_rows"):
        FactorAnalysis(1).fit_covariance(R, 1)
    with pytest.raises(DataError, match="itself is 2"):
        FactorAnalysis(1).fit_covariance(2 * R, 200, kind="correlation")


def _table():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 2)) @ rng.normal(size=(2, 5)) + 0.5 * rng.normal(size=(120, 5)) + 4.0
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


@pytest.mark.parametrize("estimator", [PPCA(2), PPCA(2, standardize=False), FactorAnalysis(2, rotation="oblimin")])
def test_draws_have_the_moments_of_the_posterior(estimator, tmp_path):
    X = _table()
    model = estimator.fit(X)
    rows = np.repeat(X[[0, 7]], 20000, axis=0)
    drawn = model.transform(rows, draw=True, random_state=5)
    mean, cov = model.transform(X[[0, 7]], return_cov=True)
    for k in range(2):
        part = drawn[20000 * k : 20000 * (k + 1)]
        np.testing.assert_allclose(part.mean(axis=0), mean[k], atol=5 * np.sqrt(cov[k].max() / 20000))
        np.testing.assert_allclose(np.cov(part.T), cov[k], atol=0.05 * cov[k].max())
    scores = np.tile([0.5, -1.0], (20000, 1))
    again = model.inverse_transform(scores, draw=True, random_state=5)
    noise = np.broadcast_to(model.noise_variance_, 5) if np.ndim(model.noise_variance_) else None
    variances = np.diag(model.get_covariance()) - (model.loadings_ @ _phi(model) * model.loadings_).sum(axis=1)
    np.testing.assert_allclose(again.var(axis=0), variances if noise is None else noise, rtol=0.05)
    np.testing.assert_allclose(again.mean(axis=0), model.inverse_transform(scores[:1])[0], atol=0.05)
    model.save(tmp_path / "m.covary")
    loaded = load(tmp_path / "m.covary")
    np.testing.assert_array_equal(loaded.transform(X, draw=True, random_state=5), model.transform(X, draw=True, random_state=5))
    np.testing.assert_array_equal(loaded.inverse_transform(scores, draw=True, random_state=5), again)
    assert not np.array_equal(model.transform(X, draw=True, random_state=6), model.transform(X, draw=True, random_state=5))


def _phi(model):
    return getattr(model, "factor_correlations_", np.eye(2))


def test_the_prior_mean_can_be_set():
    X = _table()
    centers = [1.0, 2.0, 3.0, 4.0, 5.0]
    fit = BayesianPCA(2, prior={"mean_precision": 1e7, "prior_mean": centers}).fit(X)
    np.testing.assert_allclose(fit.mean_, centers, atol=0.01)
    BayesianPCA(2, prior={"prior_offset": [1.0, 0.0]}).fit(X)
    with pytest.raises(OptionError, match="prior_mean"):
        BayesianPCA(2, prior={"prior_mean": [1.0]}).fit(X)


@pytest.mark.parametrize("estimator", [PPCA(2), FactorAnalysis(2, rotation="oblimin"), BayesianPCA(2), PCA(2)])
def test_draws_are_the_bits_of_the_command(estimator, command, tmp_path):
    X = _table()
    np.savetxt(tmp_path / "rows.csv", X, delimiter=",", header="x1,x2,x3,x4,x5", comments="", fmt="%.17g")
    model = estimator.fit(np.genfromtxt(tmp_path / "rows.csv", delimiter=",", skip_header=1))
    model.save(tmp_path / "m.covary")

    def said(*arguments):
        run = [command, *arguments, "--draw", "--seed", "5", "-q"]
        out = subprocess.run(run, capture_output=True, check=True, cwd=tmp_path, text=True).stdout
        return out, np.array([[float(cell) for cell in line.split(",")] for line in out.splitlines()[1:]])

    text, scores = said("transform", "m.covary", "rows.csv")
    np.testing.assert_array_equal(scores, model.transform(X, draw=True, random_state=5))
    (tmp_path / "scores.csv").write_text(text)
    _, rows = said("reconstruct", "m.covary", "scores.csv", "--from-scores", "--coordinates", "posterior")
    np.testing.assert_array_equal(rows, model.inverse_transform(scores, draw=True, random_state=5))


def test_a_draw_of_pca_is_of_posterior_scores():
    X = _table()
    drawn = PCA(2).fit(X).transform(np.repeat(X[[0]], 20000, axis=0), draw=True, random_state=1)
    mean = PPCA(2, standardize=False).fit(X).transform(X[[0]])
    # The same latent vector except for signs: PCA's covariance has the divisor n - 1.
    np.testing.assert_allclose(np.abs(drawn.mean(axis=0)), np.abs(mean[0]), atol=0.03)
    with pytest.raises(ValueError, match="ask for one of them"):
        PCA(2).fit(X).transform(X, return_cov=True, draw=True)
