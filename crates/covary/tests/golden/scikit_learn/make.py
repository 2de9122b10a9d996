"""Reference numbers of scikit-learn's PCA and FactorAnalysis: `python make.py` writes pca.json, factor_analysis.json
and the tables they are about."""

import json
import platform
import warnings

import numpy as np
import scipy
import sklearn
from sklearn import datasets
from sklearn.decomposition import PCA, FactorAnalysis

VERSIONS = {
    "python": platform.python_version(),
    "numpy": np.__version__,
    "scipy": scipy.__version__,
    "scikit_learn": sklearn.__version__,
}

digits = datasets.load_digits().data
TABLES = {
    "iris": datasets.load_iris().data,
    "wine": datasets.load_wine().data,
    "breast_cancer": datasets.load_breast_cancer().data,
    "diabetes": datasets.load_diabetes().data,
    "linnerud": datasets.load_linnerud().data,
    "digits": digits[::3],
    "digits_wide": digits[:50],
}


def numbers(a):
    return np.asarray(a, dtype=float).tolist()


def pca(table, **options):
    x = TABLES[table]
    fit = PCA(svd_solver="full", **options).fit(x)
    return {
        "table": table,
        "options": {**options},
        "explained_variance": numbers(fit.explained_variance_),
        "explained_variance_ratio": numbers(fit.explained_variance_ratio_),
        "singular_values": numbers(fit.singular_values_),
        "noise_variance": float(fit.noise_variance_),
        "components": numbers(fit.components_[:4]),
        "transformed": numbers(fit.transform(x[:3])[:, :4]),
    }


def factor_analysis(table, q, **options):
    x = TABLES[table]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = FactorAnalysis(n_components=q, svd_method="lapack", **options).fit(x)
    return {
        "table": table,
        "n_components": x.shape[1] if q is None else q,
        "options": {**options},
        "noise_variance": numbers(fit.noise_variance_),
        "components": numbers(fit.components_),
        "first_loglike": numbers(fit.loglike_[:5]),
        "last_loglike": numbers(fit.loglike_[-2:]),
        "n_iter": fit.n_iter_,
    }


def write(name, cases):
    with open(f"{name}.json", "w") as out:
        lines = ",\n".join(json.dumps(case) for case in cases)
        out.write(f'{{"versions": {json.dumps(VERSIONS)},\n"cases": [\n{lines}\n]}}\n')


write("pca", [
    pca(table, n_components=n)
    for table in ("iris", "wine", "digits", "digits_wide")
    for n in (None, 3, 0.9, "mle")
    if not (n == "mle" and table == "digits_wide")
])
write("factor_analysis", [
    factor_analysis(table, q, **options)
    for table, q in (("iris", 2), ("wine", 3), ("breast_cancer", 4), ("diabetes", 3), ("linnerud", 1), ("digits", 7))
    for options in ({}, {"tol": 1e-4, "max_iter": 400}, {"tol": 1e-8, "max_iter": 12})
] + [factor_analysis(table, None) for table in ("iris", "wine", "linnerud")])
for name, x in TABLES.items():
    np.savetxt(f"{name}.csv", x, fmt="%s", delimiter=",")
