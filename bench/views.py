"""FastICA beside scikit-learn's and canonical correlation beside numpy's QR and SVD, in one run.

    python -m pip install .
    python bench/views.py [--threads N] [--repeats N]

Processor time, the fastest of several, each pair in turns on the same arrays from the same start.
"""

import argparse
import os
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--repeats", type=int, default=20)
options = parser.parse_args()
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[variable] = str(options.threads)

import numpy as np  # noqa: E402
import sklearn.decomposition as theirs  # noqa: E402

import covary  # noqa: E402


def in_turns(works):
    """Fastest processor time and wall time of each."""
    best = {name: (np.inf, np.inf) for name in works}
    for _ in range(options.repeats):
        for name, work in works.items():
            processor, wall = time.process_time(), time.perf_counter()
            work()
            now = time.process_time() - processor, time.perf_counter() - wall
            best[name] = tuple(map(min, best[name], now))
    return best


def amari(p):
    p, q = np.abs(p), len(p)
    rows, columns = (p / p.max(1, keepdims=True)).sum(1) - 1, (p / p.max(0)).sum(0) - 1
    return (rows.sum() + columns.sum()) / (2 * q * (q - 1))


def table(best, quality):
    for name, (processor, wall) in best.items():
        print(f"| {name} | {1e3 * processor:.1f} ms | {1e3 * wall:.1f} ms | {quality[name]} |")


print(f"{options.threads} thread(s), fastest of {options.repeats}\n")
rng = np.random.default_rng(0)
mixing = rng.normal(size=(20, 20))
X = rng.laplace(size=(20_000, 20)) @ mixing.T
start = rng.normal(size=(20, 20))
print("| FastICA, 20000×20 | processor | wall | quality |\n| --- | --- | --- | --- |")
models = {
    "covary": covary.FastICA(w_init=start),
    "scikit-learn, eigh": theirs.FastICA(w_init=start, whiten_solver="eigh"),
    "scikit-learn, svd (its default)": theirs.FastICA(w_init=start),
}
best = in_turns({name: lambda m=m: m.fit(X) for name, m in models.items()})
said = {name: f"Amari {amari(m.components_ @ mixing):.4f}, {m.n_iter_} steps" for name, m in models.items()}
table(best, said)

shared = rng.normal(size=(5000, 5))
X = shared @ rng.normal(size=(5, 30)) + rng.normal(size=(5000, 30))
Y = shared @ rng.normal(size=(5, 20)) + rng.normal(size=(5000, 20))


def numpy_cca():
    qx, rx = np.linalg.qr(X - X.mean(axis=0))
    qy, ry = np.linalg.qr(Y - Y.mean(axis=0))
    u, s, vt = np.linalg.svd(qx.T @ qy, full_matrices=False)
    return s, np.linalg.solve(rx, u), np.linalg.solve(ry, vt.T)


print("\n| CCA, 5000×(30+20) | processor | wall | quality |\n| --- | --- | --- | --- |")
cca = covary.ProbabilisticCCA()
best = in_turns({"covary": lambda: cca.fit(X, Y), "numpy, QR and SVD": numpy_cca})
apart = np.abs(cca.canonical_correlations_ - numpy_cca()[0]).max()
table(best, {"covary": f"correlations within {apart:.0e} of numpy's", "numpy, QR and SVD": ""})
