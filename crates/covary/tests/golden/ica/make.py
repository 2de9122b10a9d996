"""Reference numbers of scikit-learn's FastICA: `python make.py [cocktail_sources.npz]` writes fast_ica.json."""

import json
import platform
import sys
import warnings

import numpy as np
import sklearn
from sklearn.decomposition import FastICA

n = 400
i = np.arange(n)
# Any four functions of the row, none of them Gaussian; the test has the same.
sources = np.stack([(i % 19) / 19, np.sin(0.37 * i), np.cos(1.1 * i) ** 9, np.sin(0.05 * i * i) ** 3], axis=1)
mixing = np.array([[1.0, 0.6, -0.3, 0.2], [0.4, 1.0, 0.5, -0.7], [-0.2, 0.3, 1.0, 0.4], [0.1, -0.5, 0.2, 1.0], [0.3, 0.3, -0.6, 0.9]])
table = sources @ mixing.T



def fixed_point(q, **options):
    """FastICA stops at |1 - cos| < tol, an angle of 1e-8 at best: it is started again where it ended."""
    start = np.eye(q)
    for _ in range(30):
        fit = FastICA(q, w_init=start, tol=1e-15, max_iter=10000, whiten="unit-variance", **options)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fit.fit(table)
        start = fit._unmixing
    return fit.components_.tolist()


fits = [
    {"algorithm": algorithm, "contrast": fun, "unmixing": fixed_point(4, algorithm=algorithm, fun=fun)}
    for algorithm in ["parallel", "deflation"]
    for fun in ["logcosh", "exp", "cube"]
]


def amari(p):
    p, q = np.abs(p), len(p)
    rows, columns = (p / p.max(1, keepdims=True)).sum(1) - 1, (p / p.max(0)).sum(0) - 1
    return (rows.sum() + columns.sum()) / (2 * q * (q - 1))


cocktail = None
if len(sys.argv) > 1:
    truth = np.array([[0.9, 0.5, 0.3], [0.4, 1.0, -0.6], [-0.3, 0.2, 0.8]])
    sounds = np.load(sys.argv[1])["sources"].astype(float)
    fit = FastICA(3, whiten="unit-variance", random_state=0, tol=1e-12, max_iter=1000).fit(sounds @ truth.T)
    default = FastICA(3, whiten="unit-variance", random_state=0).fit(sounds @ truth.T)
    cocktail = {
        "mixing": truth.tolist(),
        "amari_index": amari(fit.components_ @ truth),
        "amari_index_at_default_tolerance": amari(default.components_ @ truth),
    }

versions = {"python": platform.python_version(), "numpy": np.__version__, "scikit_learn": sklearn.__version__}
case = {"versions": versions, "mixing": mixing.tolist(), "fits": fits, "three_of_five": fixed_point(3), "cocktail": cocktail}
with open("fast_ica.json", "w") as out:
    json.dump(case, out)
    out.write("\n")
