"""Functional PCA: long frames and wide tables, dense formulas, files, and every bad input."""

import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import covary
from covary.exceptions import CovaryError


def simulated(n=60, seed=0):
    """Curves at four to eight times of their own, in a long frame with some values missing."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        a, b = rng.normal(size=2)
        for t in np.sort(rng.uniform(0, 10, rng.integers(4, 9))):
            y = 5 + t + 2 * a * np.sin(np.pi * t / 10) + b * np.cos(np.pi * t / 10) + 0.2 * rng.normal()
            rows.append((f"c{i}", t, y if rng.random() > 0.05 else np.nan))
    return pd.DataFrame(rows, columns=["who", "when", "what"])


@pytest.fixture(scope="module")
def frame():
    return simulated()


@pytest.fixture(scope="module")
def model(frame):
    return covary.FunctionalPCA(2, curve="who", time="when", value="what").fit(frame)


def wide(n=50, seed=1):
    rng = np.random.default_rng(seed)
    times = np.array([0.0, 0.5, 1.5, 2.0, 3.5, 5.0])
    scores = rng.normal(size=(n, 2)) * [2, 1]
    X = 3 + scores @ np.vstack([np.sin(times), np.cos(times)]) + 0.1 * rng.normal(size=(n, len(times)))
    X[rng.random(X.shape) < 0.2] = np.nan
    return X, times


def test_attributes_are_those_of_the_functions(model):
    grid = model.grid_
    step = grid[1] - grid[0]
    phi = model.eigenfunctions_
    weights = np.full(len(grid), step)
    weights[[0, -1]] /= 2
    np.testing.assert_allclose((phi * weights) @ phi.T, np.eye(2), atol=2e-3)
    assert model.explained_variance_[0] > model.explained_variance_[1] > 0
    total = model.explained_variance_.sum() + model.noise_variance_ * (grid[-1] - grid[0])
    np.testing.assert_allclose(model.explained_variance_ratio_, model.explained_variance_ / total, rtol=1e-12)
    mean, std = model.mean(grid, return_std=True)
    np.testing.assert_array_equal(mean, model.mean_)
    np.testing.assert_array_equal(std, model.mean_std_)
    surface = model.covariance(grid)
    np.testing.assert_allclose(surface, phi.T * model.explained_variance_ @ phi, atol=1e-10)
    assert (model.eigenfunctions_std_ > 0).all()


def test_scores_and_densities_are_the_dense_ones(model, frame):
    scores, std = model.transform(frame, return_std=True)
    densities = model.score_samples(frame)
    assert list(scores.index[:2]) == ["c0", "c1"] and scores.index.name == "who"
    for i, (_, curve) in enumerate(frame.groupby("who", sort=False)):
        seen = curve.dropna()
        t = seen["when"].to_numpy()
        phi, mean = model.eigenfunctions(t), model.mean(t)
        cov = phi.T * model.explained_variance_ @ phi + model.noise_variance_ * np.eye(len(t))
        gain = (model.explained_variance_[:, None] * phi) @ np.linalg.inv(cov)
        y = seen["what"].to_numpy() - mean
        np.testing.assert_allclose(scores.iloc[i], gain @ y, rtol=1e-7, atol=1e-9)
        left = np.diag(model.explained_variance_) - gain @ phi.T * model.explained_variance_
        np.testing.assert_allclose(std.iloc[i] ** 2, np.diag(left), rtol=1e-6)
        dense = -0.5 * (len(t) * np.log(2 * np.pi) + np.linalg.slogdet(cov)[1] + y @ np.linalg.solve(cov, y))
        np.testing.assert_allclose(densities[i], dense, rtol=1e-9)
    assert model.score(frame) == pytest.approx(densities.mean())


def test_curves_are_predicted_and_filled(model, frame):
    curves, std = model.predict(frame, times=[2.0, 7.5], return_std=True)
    scores = model.transform(frame)
    right = model.mean([2.0, 7.5]) + scores.to_numpy() @ model.eigenfunctions([2.0, 7.5])
    np.testing.assert_allclose(curves, right, rtol=1e-9)
    assert list(curves.columns) == [2.0, 7.5] and (std > 0).all().all()
    filled, sd = model.impute(frame, return_std=True)
    gaps = frame["what"].isna().to_numpy()
    assert gaps.any() and not np.isnan(filled).any()
    np.testing.assert_array_equal(filled[~gaps], frame["what"][~gaps])
    assert (sd[~gaps] == 0).all()
    # A filled value is the curve at its time, with the noise of a point.
    row = int(np.flatnonzero(gaps)[0])
    at, of = model.predict(frame, times=[frame["when"][row]], return_std=True)
    who = frame["who"][row]
    assert filled[row] == pytest.approx(at.loc[who].iloc[0])
    assert sd[row] ** 2 == pytest.approx(of.loc[who].iloc[0] ** 2 + model.noise_variance_)


def test_a_file_answers_the_same(model, frame, tmp_path):
    path = tmp_path / "curves.covary"
    model.save(path)
    again = covary.load(path)
    assert isinstance(again, covary.FunctionalPCA)
    assert (again.curve, again.time, again.value) == ("who", "when", "what")
    pd.testing.assert_frame_equal(again.transform(frame), model.transform(frame))
    np.testing.assert_array_equal(again.eigenfunctions_std_, model.eigenfunctions_std_)
    X, times = wide()
    own = covary.FunctionalPCA(2, times=times).fit(X)
    own.save(path)
    again = covary.load(path)
    np.testing.assert_array_equal(again.transform(X), own.transform(X))
    np.testing.assert_array_equal(again.impute(X), own.impute(X))


def test_calibrated_values_are_those_of_the_command(command, tmp_path):
    growth = Path(__file__).parents[3] / "examples" / "growth.csv"
    frame = pd.read_csv(growth)
    columns = {"curve": "child", "time": "age", "value": "height"}
    asked = [word for name, column in columns.items() for word in (f"--{name}", column)]
    options = ["--model", "fpca", *asked, "--components", "2", "--bounds", "none", "--no-check", "--quiet"]
    listed = {}
    for calibrated in (True, False):
        cells = tmp_path / "cells.csv"
        without = [] if calibrated else ["--no-calibrate"]
        outputs = ["-o", tmp_path / "filled.csv", "--cells", cells]
        subprocess.run([command, "impute", growth, *options, *without, *outputs], check=True)
        listed[calibrated] = pd.read_csv(cells)["sd"].to_numpy()
        model = covary.FunctionalPCA(2, **columns, calibrate=calibrated).fit(frame)
        _, std = model.impute(frame, return_std=True)
        np.testing.assert_allclose(std[frame["height"].isna()], listed[calibrated], rtol=1e-9)
        path = tmp_path / "curves.covary"
        model.save(path)
        np.testing.assert_array_equal(covary.load(path).impute(frame, return_std=True)[1], std)
    # Spurts are at ages of their own, and the model takes them for noise.
    assert (listed[True] > 1.05 * listed[False]).all()


def test_a_wide_table_is_the_long_one():
    X, times = wide()
    rows, columns = np.nonzero(~np.isnan(X))
    long = pd.DataFrame({"i": rows.astype(str), "t": times[columns], "y": X[rows, columns]})
    by_rows = covary.FunctionalPCA(2, times=times, n_basis=8).fit(X)
    by_points = covary.FunctionalPCA(2, curve="i", time="t", n_basis=8).fit(long)
    np.testing.assert_allclose(by_rows.eigenfunctions_, by_points.eigenfunctions_, atol=1e-8)
    np.testing.assert_allclose(by_rows.transform(X), by_points.transform(long), atol=1e-7)
    # Names of columns that are numbers are times; others are counted.
    named = covary.FunctionalPCA(2, n_basis=8).fit(pd.DataFrame(X, columns=[str(t) for t in times]))
    np.testing.assert_array_equal(named.grid_, by_rows.grid_)
    counted = covary.FunctionalPCA(2).fit(X)
    assert (counted.grid_[0], counted.grid_[-1]) == (0, 5)


@pytest.mark.parametrize("seed", [2, 3, 9])
def test_the_number_of_components_is_found(seed):
    """Little noise: without a penalty on what has no size, seven components were once taken for two."""
    assert covary.FunctionalPCA(curve="who", time="when").fit(simulated(150, seed)).n_components_ == 2


def test_options_reach_the_library():
    X, times = wide()
    model = covary.FunctionalPCA(1, times=times, n_basis=9, interval=(-1, 6), smoothing=(0.5, 2.0)).fit(X)
    assert (model.grid_[0], model.grid_[-1]) == (-1, 6)
    np.testing.assert_allclose(model.smoothing_, (0.5, 2.0), rtol=1e-12)
    assert model.sample(3, times=[0, 1], random_state=1).shape == (3, 2)
    assert model.sample(2).shape == (2, 101)


def test_bad_input_is_named(frame, model):
    def refused(why, table=frame, **options):
        options = {"curve": "who", "time": "when", "value": "what", **options}
        with pytest.raises((CovaryError, ValueError), match=why):
            covary.FunctionalPCA(1, **options).fit(table)

    refused("no column 'moon'", curve="moon")
    refused("has both", time=None)
    refused("beside curves and times", frame.assign(other=1.0), value=None)
    refused("has no numbers", frame.assign(when="soon"))
    refused("row 1 has no time", frame.assign(when=np.nan))
    refused("one observed point", frame.drop_duplicates("who").dropna())
    refused("1 curve with an observed point", frame[frame["who"] == "c0"])
    refused("both of curve `c0` at time", pd.concat([frame, frame.iloc[:1]]))
    with pytest.raises(ValueError, match="too many"):
        covary.FunctionalPCA(12, curve="who", time="when", n_basis=8).fit(frame)
    with pytest.raises(ValueError, match="n_features=6"):
        covary.FunctionalPCA(1, times=[1, 2]).fit(wide()[0])
    with pytest.raises(ValueError, match="no two of them"):
        covary.FunctionalPCA(1, times=[1, 1, 2, 3, 4, 5]).fit(wide()[0])
    with pytest.raises(ValueError, match="outside the interval"):
        model.predict(frame, times=[99.0])
    with pytest.raises(ValueError, match="smoothing"):
        covary.FunctionalPCA(1, smoothing="much").fit(wide()[0])
    with pytest.raises(NotFittedError):
        covary.FunctionalPCA().mean([1.0])
