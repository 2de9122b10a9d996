"""Every family, asked for without options: Python and the command write the same model file."""

import numpy as np
import pandas as pd
import pytest

import covary
from covary._families import FAMILIES, SOURCES
from test_model_file import GAPS, ROOT, run

WHOLE = ROOT / "examples" / "wine.csv"
COLUMNS = list(pd.read_csv(WHOLE).columns[:-1])
BODY, REST = COLUMNS[:5], COLUMNS[5:]
#: scikit-learn's defaults are those of these classes, not the command's.
DROP_INS = (covary.PCA, covary.FactorAnalysis, covary.GaussianMixture, covary.FastICA)


def views(first, second):
    return ["--view", f"{first}={':'.join((BODY[0], BODY[-1]))}", "--view", f"{second}={':'.join((REST[0], REST[-1]))}"]


def fitted(estimator, table):
    return estimator.fit(table[COLUMNS])


CASES = {
    "ppca": (["--model", "ppca"], lambda table: fitted(covary.PPCA(), table)),
    "tppca": (["--model", "tppca"], lambda table: fitted(covary.StudentPPCA(), table)),
    "spca": (["--model", "spca"], lambda table: fitted(covary.SparsePPCA(), table)),
    "bspca": (["--model", "bspca"], lambda table: fitted(covary.BayesianSparsePCA(), table)),
    "bpca": (["--model", "bpca"], lambda table: fitted(covary.BayesianPCA(), table)),
    "gaussian": (["--model", "gaussian"], lambda table: fitted(covary.Gaussian(), table)),
    "pcca": (
        ["--model", "pcca", *views("x", "y")],
        lambda table: covary.ProbabilisticCCA().fit(table[BODY], table[REST]),
    ),
    "gfa": (
        ["--model", "gfa", *views("body", "rest")],
        lambda table: fitted(covary.GroupFactorAnalysis(views={"body": BODY, "rest": REST}), table),
    ),
    "mppca": (["--model", "mppca"], lambda table: fitted(covary.MixturePPCA(), table)),
    "mfa": (["--model", "mfa"], lambda table: fitted(covary.MixturePPCA(noise="diagonal"), table)),
    "classes": (
        ["--target", "cultivar"],
        lambda table: covary.PPCAClassifier().fit(table[COLUMNS], table["cultivar"]),
    ),
    "dfm": (["--model", "dfm"], lambda table: fitted(covary.DynamicFactor(), table)),
    "fpca": (["--model", "fpca"], lambda table: fitted(covary.FunctionalPCA(), table)),
    "maximum-likelihood": (
        ["--model", "ica", "--inference", "maximum-likelihood"],
        lambda table: fitted(covary.InfomaxICA(), table),
    ),
    "noisy": (["--model", "ica", "--inference", "noisy"], lambda table: fitted(covary.NoisyICA(), table)),
}


#: What these are asked of the command by, for whole tables and for gaps. Variances of scikit-learn's PCA have the divisor
#: n - 1, so that its models are others: the family itself is asked for below, and `test_model_file.py` has its files.
ASKED = {
    "fa": (
        covary.FactorAnalysis,
        "--model fa --components 8 --standardize=false --max-iter 1000 --inference newton",
        "--model fa --components 8 --standardize=false --max-iter 1000 --inference em --tol 0.01",
    ),
    "gmm": (
        lambda: covary.GaussianMixture(2, init_params="auto"),
        *["--model gmm --mixtures 2 --max-iter 100 --tol 1e-3 --option ridge=1e-6 --option stop=change --option restarts=0"]
        * 2,
    ),
    "fastica": (
        covary.FastICA,
        "--model ica --inference fastica --option max_iterations=200 --option tolerance=1e-4",
        None,
    ),
}


def test_no_family_is_left_out():
    every = FAMILIES | SOURCES
    ours = {name for name, cls in every.items() if cls not in DROP_INS}
    assert ours | {"classes"} == set(CASES)
    assert set(every) - ours - {"pca"} == set(ASKED)


def check_bytes(command, path, options, estimate, tmp_path):
    theirs, own, again = (tmp_path / name for name in ("theirs.covary", "own.covary", "again.covary"))
    run(command, "fit", path, *options, "-o", theirs, "--quiet")
    estimator = estimate(pd.read_csv(path))
    estimator.save(own)
    assert own.read_bytes() == theirs.read_bytes()
    opened = covary.load(theirs)
    assert type(opened) is type(estimator)
    opened.save(again)
    assert again.read_bytes() == theirs.read_bytes()


@pytest.mark.filterwarnings("ignore::covary.exceptions.CovaryWarning")
@pytest.mark.parametrize("path", [WHOLE, GAPS], ids=["whole", "gaps"])
@pytest.mark.parametrize("case", CASES)
def test_defaults_are_the_same(case, path, command, tmp_path):
    options, ours = CASES[case]
    if case == "maximum-likelihood" and path == GAPS:
        pytest.skip("takes complete tables only")
    check_bytes(command, path, options, ours, tmp_path)


@pytest.mark.filterwarnings("ignore::covary.exceptions.CovaryWarning")
@pytest.mark.parametrize("path", [WHOLE, GAPS], ids=["whole", "gaps"])
@pytest.mark.parametrize("case", ASKED)
def test_what_drop_ins_ask_for_is_the_same(case, path, command, tmp_path):
    estimator, whole, gaps = ASKED[case]
    options = whole if path == WHOLE else gaps
    if options is None:
        pytest.skip("takes complete tables only")
    check_bytes(command, path, options.split(), lambda table: fitted(estimator(), table), tmp_path)


NAMED = [(["--model", name], covary.Imputer(name)) for name in ("gaussian", "ppca", "fa", "bpca")]


@pytest.mark.parametrize("options, imputer", [([], covary.Imputer()), *NAMED])
def test_imputed_values_are_the_same(options, imputer, command, tmp_path):
    out, cells = tmp_path / "filled.csv", tmp_path / "cells.csv"
    run(command, "impute", GAPS, *options, "-o", out, "--cells", cells, "--quiet", "--no-check")
    table = pd.read_csv(GAPS)[COLUMNS]
    filled, std = imputer.fit_transform(table, return_std=True)
    assert (pd.read_csv(out, dtype=str)[COLUMNS].astype(float).to_numpy() == filled).all()
    lower, upper = imputer.interval(table)
    said = pd.read_csv(cells, dtype=str)
    at = (said["row"].astype(int).to_numpy() - 1, said["column"].map(COLUMNS.index).to_numpy())
    assert len(said) == table.isna().to_numpy().sum()
    for name, ours in {"value": filled, "sd": std, "lower": lower, "upper": upper}.items():
        assert (said[name].astype(float).to_numpy() == ours[at]).all(), name


@pytest.mark.parametrize("options, imputer", [([], {}), (["--shift", "hue=-0.5"], {"shift": {"hue": -0.5}})])
def test_draws_are_the_same(options, imputer, command, tmp_path):
    out = tmp_path / "filled.csv"
    run(command, "impute", GAPS, *options, "-o", out, "--draws", "2", "--quiet", "--no-check")
    table = pd.read_csv(GAPS)[COLUMNS]
    drawn = covary.Imputer(**imputer).fit(table).sample(table, 2)
    for k, own in enumerate(drawn, 1):
        theirs = pd.read_csv(tmp_path / f"filled-{k}.csv", dtype=str)[COLUMNS].astype(float).to_numpy()
        assert (theirs == own).all()


@pytest.mark.parametrize("path", [WHOLE, GAPS], ids=["whole", "gaps"])
def test_the_family_behind_pca_is_the_same(path, command, tmp_path):
    theirs = tmp_path / "theirs.covary"
    run(command, "fit", path, "--model", "pca", "-o", theirs, "--quiet")
    table = np.ascontiguousarray(pd.read_csv(path)[COLUMNS].to_numpy(float))
    assert covary._covary.fit(table, COLUMNS, "pca", {}).write() == theirs.read_bytes()
