"""One model file for the command line and for Python."""

import csv
import subprocess
from pathlib import Path

import numpy as np
import pytest

import covary

ROOT = Path(__file__).resolve().parents[3]
GAPS = ROOT / "examples" / "wine_gaps.csv"


def run(*words):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def numbers(path, columns=None):
    with open(path) as file:
        rows = list(csv.DictReader(file))
    kept = columns or [name for name in rows[0] if name != "cultivar"]
    return np.array([[float(row[name]) if row[name] else np.nan for name in kept] for row in rows])


KINDS = {
    "pca": ["--model", "pca", "--components", "2"],
    "rotated pca": ["--model", "pca", "--components", "2", "--rotation", "varimax"],
    "ppca": ["--model", "ppca", "--components", "3"],
    "fa": ["--model", "fa", "--components", "2", "--rotation", "promax"],
    "bpca": ["--model", "bpca"],
    "gibbs": ["--model", "bpca", "--inference", "gibbs", "--components", "2", "--prior", "draws=20"],
    "gaussian": ["--model", "gaussian"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_command_line_to_python_and_back(kind, command, wine_gaps, wine_names, tmp_path):
    model, again = tmp_path / "model.covary", tmp_path / "again.covary"
    run(command, "fit", GAPS, *KINDS[kind], "-o", model, "--quiet")
    estimator = covary.load(model)
    assert list(estimator.feature_names_in_) == wine_names
    estimator.save(again)
    assert again.read_bytes() == model.read_bytes()
    assert np.array_equal(type(estimator).load(again).n_components_, estimator.n_components_)

    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(wine_gaps, columns=wine_names)
    for verb, ours in (
        ("transform", estimator.transform(frame)),
        ("score", estimator.score_samples(frame)[:, None]),
    ):
        out = tmp_path / f"{verb}.csv"
        run(command, verb, model, GAPS, "-o", out, "--bare", "--quiet")
        theirs = numbers(out)[:, : ours.shape[1]]
        assert (theirs == ours).all(), verb
    filled = tmp_path / "filled.csv"
    run(command, "impute", GAPS, "--model", model, "-o", filled, "--quiet", "--no-check")
    assert (numbers(filled, wine_names) == estimator.impute(frame)).all()


def test_a_fit_in_python_is_the_fit_of_the_command(command, wine_gaps, wine_names, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(wine_gaps, columns=wine_names)
    for options, estimator in (
        (["--model", "ppca"], covary.PPCA()),
        (["--model", "ppca", "--components", "0.7"], covary.PPCA(0.7)),
        (["--model", "bpca", "--seed", "3"], covary.BayesianPCA(random_state=3)),
        (["--model", "gaussian"], covary.Gaussian()),
    ):
        model, ours = tmp_path / "model.covary", tmp_path / "ours.covary"
        run(command, "fit", GAPS, *options, "-o", model, "--quiet")
        estimator.fit(frame).save(ours)
        assert model.read_bytes() == ours.read_bytes()


def test_a_file_of_python_serves_the_command(command, wine, tmp_path):
    for estimator in (covary.PCA(2), covary.PPCA(2), covary.FactorAnalysis(2, rotation="varimax")):
        model, table, out = tmp_path / "model.covary", tmp_path / "table.npy", tmp_path / "scores.csv"
        estimator.fit(wine).save(model)
        np.save(table, wine)
        run(command, "transform", model, table, "-o", out, "--quiet")
        assert np.allclose(numbers(out), estimator.transform(wine), rtol=1e-12, atol=1e-9)
        run(command, "inspect", model)
        loaded = covary.load(model)
        assert not hasattr(loaded, "feature_names_in_")
        assert np.allclose(loaded.transform(wine), estimator.transform(wine), rtol=1e-9, atol=1e-9)


def test_constants_come_back_in_their_places(wine_gaps, tmp_path):
    rows = np.insert(wine_gaps, 4, 7.0, axis=1)
    model = covary.PPCA(2).fit(rows)
    model.save(tmp_path / "model.covary")
    loaded = covary.PPCA.load(tmp_path / "model.covary")
    assert (loaded.mean_ == model.mean_).all() and (loaded.transform(rows) == model.transform(rows)).all()


def test_what_is_no_model_is_refused(wine, tmp_path):
    broken = tmp_path / "broken.covary"
    broken.write_bytes(b"no model at all")
    with pytest.raises(covary.exceptions.ModelFileError, match="broken.covary"):
        covary.load(broken)
    with pytest.raises(FileNotFoundError):
        covary.load(tmp_path / "absent.covary")
    covary.PPCA(1).fit(wine).save(broken)
    with pytest.raises(covary.exceptions.ModelFileError, match="PPCA.load"):
        covary.FactorAnalysis.load(broken)
    with pytest.raises(covary.exceptions.ComponentsError, match="leave no noise"):
        covary.PCA().fit(wine).save(broken)
    with pytest.raises(covary.exceptions.OptionError, match="whiten"):
        covary.PCA(2, whiten=True).fit(wine).save(broken)
    with pytest.raises(covary.exceptions.OptionError, match="pickle"):
        covary.IncrementalPCA(2).fit(wine).save(broken)
    assert covary.PPCA.load(broken).n_components_ == 1
    assert [path.name for path in tmp_path.iterdir()] == ["broken.covary"]
