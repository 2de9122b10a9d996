"""scikit-learn's own tests of a class, run against ours.

The tests are those of the installed version and are read where it lies. What fails must be in the list
below, each with its reason; of a version that the list was not made for, new names are told and not judged.
"""

import importlib.util
import os
import subprocess
import sys
import warnings
from pathlib import Path
from xml.etree import ElementTree

import pytest
import sklearn

#: The version that the lists were made for.
VERSION = "1.9"

MESSAGE = "the text of a message"
PRIVATE = "a private attribute or function"

#: What fails, by the name of the test or of one of its cases, and why.
EXPECTED = {
    "sklearn.mixture.tests.test_gaussian_mixture": {
        "test_check_weights": MESSAGE,
        "test_check_means": MESSAGE,
        "test_check_precisions": MESSAGE,
        "test_gaussian_mixture_fit_convergence_warning": MESSAGE,
        "test_regularisation": MESSAGE,
        "test_sample": MESSAGE,
        "test_gaussian_mixture_n_parameters": PRIVATE,
        "test_gaussian_mixture_aic_bic": PRIVATE,
        "test_gaussian_mixture_precisions_init": PRIVATE,
        "test_gaussian_mixture_all_init_does_not_estimate_gaussian_parameters": PRIVATE,
    },
    "sklearn.decomposition.tests.test_fastica": {
        "test_fastica_convergence_fail": MESSAGE,
        "test_fastica_errors": MESSAGE,
        "test_fastica_eigh_low_rank_warning": MESSAGE,
    },
    "sklearn.decomposition.tests.test_pca": {
        "test_pca_validation": MESSAGE,
        "test_pca_svd_solver_auto": PRIVATE,
        "test_pca_score": "asserts that whitening lowers the density of the same rows",
        "test_pca_zero_noise_variance_edge_cases": "asks for a density without noise, which is refused",
    },
    "sklearn.decomposition.tests.test_sparse_pca": {},
}
#: Left out unless ``COVARY_ALL`` is set: 240 cases of sparse tables, which test_drop_in.py has too.
LONG = {"sklearn.decomposition.tests.test_pca": "not test_pca_sparse"}
CLASS = {
    "sklearn.mixture.tests.test_gaussian_mixture": "GaussianMixture",
    "sklearn.decomposition.tests.test_fastica": "FastICA",
    "sklearn.decomposition.tests.test_pca": "PCA",
    "sklearn.decomposition.tests.test_sparse_pca": "SparsePCA",
}


def outcomes(module, folder):
    """Names of the tests that passed, failed and were skipped with our class in the place of theirs."""
    report = folder / "report.xml"
    here = Path(__file__).parent
    options = ["-p", "swap_classes", "-p", "no:cacheprovider", "-q", "-W", "ignore", f"--junitxml={report}"]
    if module in LONG and "COVARY_ALL" not in os.environ:
        options += ["-k", LONG[module]]
    said = subprocess.run(
        [sys.executable, "-m", "pytest", "--pyargs", module, *options],
        cwd=folder,
        env={**os.environ, "COVARY_SWAP": CLASS[module], "PYTHONPATH": str(here)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert report.exists(), said.stdout + said.stderr
    found = {"passed": [], "failed": [], "skipped": []}
    for case in ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag for child in case}
        kind = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        found[kind].append(case.get("name"))
    return found, said.stdout


@pytest.mark.parametrize("module", list(EXPECTED))
def test_what_fails_of_their_tests_is_known(module, tmp_path):
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"SKIPPED: {module} is not installed with scikit-learn {sklearn.__version__}")
    found, said = outcomes(module, tmp_path)
    expected = EXPECTED[module]
    unknown = [name for name in found["failed"] if name not in expected and name.split("[")[0] not in expected]
    counts = ", ".join(f"{len(names)} {kind}" for kind, names in found.items())
    print(f"{module} of scikit-learn {sklearn.__version__}: {counts}")
    assert len(found["passed"]) > len(found["failed"]), counts
    if not sklearn.__version__.startswith(VERSION + "."):
        if unknown:
            warnings.warn(f"{module} of scikit-learn {sklearn.__version__} also fails {unknown}", stacklevel=1)
        return
    assert not unknown, f"{counts}\n{unknown}\n{said[-6000:]}"
