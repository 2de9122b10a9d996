"""Axes, scores, shares and residuals of standardized and raw columns: command, fitted and loaded models beside numpy."""

import csv
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from sklearn import datasets

import covary

ROOT = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("COVARY_DATA", ROOT.parent / "shared" / "data"))
Q = 3


def decathlon() -> np.ndarray:
    path = DATA / "decathlon" / "decathlon.csv"
    if not path.exists():
        pytest.skip(f"SKIPPED: {path.name} is absent; set COVARY_DATA to the folder of data sets")
    with path.open() as file:
        return np.array([[float(cell) for cell in row[1:11]] for row in list(csv.reader(file))[1:]])


TABLES = {
    "decathlon": decathlon,
    "wine": lambda: datasets.load_wine().data,
    "iris": lambda: datasets.load_iris().data,
    "breast cancer": lambda: datasets.load_breast_cancer().data,
}


class Dense:
    """Principal components by numpy's eigenvectors, divisor n."""

    def __init__(self, table: np.ndarray, standardize: bool) -> None:
        self.mean, d = table.mean(axis=0), table.shape[1]
        self.scale = table.std(axis=0) if standardize else np.ones(d)
        self.z = (table - self.mean) / self.scale
        values, vectors = np.linalg.eigh(self.z.T @ self.z / len(table))
        values, vectors = values[::-1], vectors[:, ::-1]
        signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(d)])
        self.axes = (vectors * signs)[:, :Q].T
        self.variance, self.share = values[:Q], values[:Q] / values.sum()
        self.noise = values[Q:].mean()
        self.loadings = self.axes.T * np.sqrt(self.variance - self.noise) * self.scale[:, None]
        self.scores = self.z @ self.axes.T
        self.back = self.mean + self.scores @ self.axes * self.scale
        self.spe = ((self.z - self.scores @ self.axes) ** 2).sum(axis=1)
        self.posterior = self.scores * np.sqrt(self.variance - self.noise) / self.variance
        self.covariance = self.loadings @ self.loadings.T + np.diag(self.noise * self.scale**2)


def close(got: np.ndarray, want: np.ndarray, what: str, unit: object = None) -> None:
    """To 1e-10 of the unit, else of the largest entry."""
    unit = np.abs(want).max() if unit is None else unit
    worst = np.max(np.abs(np.asarray(got) - want) / unit)
    assert worst < 1e-10, f"{what}: {worst:.1e}"


def run(*words: object) -> None:
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def numbers(path: Path, column: str = "") -> np.ndarray:
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return np.array([[float(v) for k, v in row.items() if k.startswith(column)] for row in rows])


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("name", TABLES)
def test_command_and_loaded_models_are_numpy_s(name, standardize, command, tmp_path):
    table = TABLES[name]()
    want = Dense(table, standardize)
    data, model = tmp_path / "table.csv", tmp_path / "pca.covary"
    header = ",".join(f"x{j}" for j in range(table.shape[1]))
    np.savetxt(data, table, delimiter=",", header=header, comments="", fmt="%.17g")
    asked = [f"--standardize={str(standardize).lower()}", "--components", Q, "--quiet"]
    run(command, "fit", data, "--model", "pca", *asked, "-o", model)

    for verb, column, expected in (
        ("transform", "component", want.scores),
        ("reconstruct", "x", want.back),
        ("score", "squared_prediction_error", want.spe[:, None]),
    ):
        out = tmp_path / f"{verb}.csv"
        run(command, verb, model, data, "-o", out, "--quiet")
        unit = want.scale if verb == "reconstruct" else None
        room = (want.z**2).sum(axis=1)[:, None] if verb == "score" else unit
        close(numbers(out, column), expected, verb, room)
    shown = json.loads(subprocess.run([command, "inspect", model, "--json"], capture_output=True, check=True).stdout)
    close(shown["components"], want.axes, "components of inspect")
    close(shown["explained_variance"], want.variance, "variance of inspect")
    close(shown["explained_variance_ratio"], want.share, "shares of inspect")
    close(np.array(shown["loadings"]), want.loadings, "loadings of inspect", want.scale[:, None])

    loaded = covary.load(model)
    assert isinstance(loaded, covary.PCA)
    frame = np.asarray(table)
    close(loaded.components_, want.axes, "components_")
    close(loaded.transform(frame), want.scores, "transform of a loaded model")
    close(loaded.inverse_transform(want.scores), want.back, "inverse_transform", want.scale)
    close(loaded.explained_variance_, want.variance, "explained_variance_")
    close(loaded.explained_variance_ratio_, want.share, "explained_variance_ratio_")
    close(loaded.loadings_, want.loadings, "loadings_", want.scale[:, None])
    both = np.outer(want.scale, want.scale)
    close(loaded.get_covariance(), want.covariance, "get_covariance", both * want.variance[0])
    identity = (loaded.get_precision() * both) @ (loaded.get_covariance() / both)
    assert np.abs(identity - np.eye(len(identity))).max() < 1e-13 * want.variance[0] / want.noise + 1e-10
    again = covary.load(model)
    again.save(tmp_path / "again.covary")
    assert (tmp_path / "again.covary").read_bytes() == model.read_bytes()


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("name", TABLES)
def test_fitted_models_are_numpy_s(name, standardize, tmp_path):
    table = TABLES[name]()
    want = Dense(table, standardize)
    fitted = covary.PPCA(Q, standardize=standardize).fit(table)
    fitted.save(tmp_path / "ppca.covary")
    for model in (fitted, covary.load(tmp_path / "ppca.covary")):
        close(model.components_, want.axes, "components_")
        close(model.explained_variance_, want.variance, "explained_variance_")
        close(model.explained_variance_ratio_, want.share, "explained_variance_ratio_")
        close(model.loadings_, want.loadings, "loadings_", want.scale[:, None])
        close(model.transform(table), want.posterior, "transform")
        assert (np.diag(np.corrcoef(model.transform(table).T, want.scores.T)[:Q, Q:]) > 1 - 1e-10).all()
        room = (want.z**2).sum(axis=1)
        close(model.outlyingness(table)["spe"], want.spe, "squared prediction error", room)
    if not standardize:
        pca = covary.PCA(Q).fit(table)
        n = len(table)
        close(pca.components_, want.axes, "components_ of PCA")
        close(pca.explained_variance_, want.variance * n / (n - 1), "explained_variance_ of PCA")
        close(pca.explained_variance_ratio_, want.share, "shares of PCA")
        close(pca.transform(table), want.scores, "scores of PCA")


@pytest.mark.parametrize("name", TABLES)
def test_a_table_standardized_by_hand_gives_the_same_answers(name):
    table = TABLES[name]()
    gaps = np.random.default_rng(1).random(table.shape) < 0.1
    for rows in (table, np.where(gaps, np.nan, table)):
        scale = np.nanstd(rows, axis=0)
        by_hand = (rows - np.nanmean(rows, axis=0)) / scale
        for kind in (covary.PPCA, covary.BayesianPCA):
            one, other = kind(2).fit(rows), kind(2, standardize=False).fit(by_hand)
            np.testing.assert_allclose(one.explained_variance_ratio_, other.explained_variance_ratio_, atol=1e-6)
            np.testing.assert_allclose(one.components_, other.components_, atol=1e-5)
            np.testing.assert_allclose(one.transform(rows), other.transform(by_hand), atol=1e-4)
            spe = one.outlyingness(rows)["spe"], other.outlyingness(by_hand)["spe"]
            np.testing.assert_allclose(*spe, rtol=1e-4, atol=1e-6)
            # The axis of a component is that of its loadings in the scale of the fit.
            axes = (one.loadings_ / scale[:, None]).T
            axes /= np.linalg.norm(axes, axis=1, keepdims=True)
            np.testing.assert_allclose(one.components_, axes, atol=1e-9)


def test_factors_have_the_share_of_their_own_loadings():
    table = datasets.load_wine().data
    model = covary.FactorAnalysis(2).fit(table)
    trace = np.trace(model.get_covariance())
    want = (model.loadings_**2).sum(axis=0) / trace
    np.testing.assert_allclose(model.explained_variance_ratio_, want, rtol=1e-9)
