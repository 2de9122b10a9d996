"""SparsePCA beside scikit-learn's: processor time of a fit on one thread and the objective reached; and how often zeros are found.

    python bench/sparse.py                           every row of the table of times in docs/sparse.md
    python bench/sparse.py --quick                   without scikit-learn's default solver
    python bench/sparse.py --recovery PROGRAM 50     zeros found by scikit-learn, on the tables of PROGRAM, the example
                                                     `sparse_recovery`, whose `methods 50` has ours

Tables for times have ten components of ten columns each with loadings from 0.5 to 1.5 of either sign, and noise of variance 1. Both minimize
the same objective from the same start, to scikit-learn's own tolerance; the least time of three fits of ours and of one of theirs.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import itertools
import subprocess
import sys
import time
import warnings

import numpy as np
import sklearn
from sklearn.decomposition import SparsePCA

import covary

# n, d, components (None: scikit-learn's default, as many as columns), alpha
CASES = [(500, 100, None, 1), (500, 100, 10, 1), (500, 100, None, 5), (500, 100, 10, 5), (100, 2000, 10, 1), (100, 2000, 10, 5)]


def planted(n, d, seed):
    rng = np.random.default_rng(seed)
    loadings = np.zeros((10, d))
    for row in loadings:
        row[rng.choice(d, 10, replace=False)] = rng.choice([-1, 1], 10) * rng.uniform(0.5, 1.5, 10)
    return rng.normal(size=(n, 10)) @ loadings + rng.normal(size=(n, d))


def timed(model, X):
    start = time.process_time()
    model.fit(X)
    return time.process_time() - start


def recovery(program, tables):
    """Zeros all found and no others, loadings missed and too many: at the default alpha, and at the one that finds them most often."""
    alphas = [1, 2, 5, 10, 20, 40]
    for rows in (200, 500, 1000):
        for strength in (0.5, 1.0, 2.0):
            found = np.zeros((len(alphas), tables, 2))
            for i in range(tables):
                text = subprocess.run([program, "table", str(rows), str(strength), str(1000 + i)], capture_output=True, check=True, text=True)
                cells = np.array([line.split(",") for line in text.stdout.split()], dtype=float)
                truth, X = cells[:3] != 0, cells[3:]
                for a, alpha in enumerate(alphas):
                    got = SparsePCA(3, alpha=alpha, method="cd", random_state=0).fit(X).components_ != 0
                    wrong = [((truth & ~got[list(o)]).sum(), (~truth & got[list(o)]).sum()) for o in itertools.permutations(range(3))]
                    found[a, i] = min(wrong, key=sum)
            exact = (found.sum(axis=2) == 0).mean(axis=1)
            for name, a in [("alpha 1", 0), (f"best alpha, {alphas[exact.argmax()]}", exact.argmax())]:
                missed, many = found[a].mean(axis=0)
                print(f"{rows} {strength} | scikit-learn, {name} | {exact[a]:.2f} | {missed:.2f}, {many:.2f}", flush=True)


def main():
    warnings.filterwarnings("ignore")
    if "--recovery" in sys.argv:
        return recovery(sys.argv[2], int(sys.argv[3]))
    solvers = ["cd"] if "--quick" in sys.argv else ["cd", "lars"]
    print(f"scikit-learn {sklearn.__version__}; seconds of processor time, iterations, objective, entries that are not 0")
    for n, d, q, alpha in CASES:
        X = planted(n, d, seed=n + d)
        ours = covary.SparsePCA(q, alpha=alpha)
        rows = [("covary", ours, min(timed(ours, X) for _ in range(3)))]
        for method in solvers:
            theirs = SparsePCA(q, alpha=alpha, method=method, random_state=0)
            rows.append((f"scikit-learn {method}", theirs, timed(theirs, X)))
        for name, model, seconds in rows:
            left = np.count_nonzero(model.components_)
            against = f"{seconds / rows[0][2]:6.1f} x ours, objective {model.error_[-1] / rows[0][1].error_[-1] - 1:+.1e}"
            print(f"{n} x {d}, q = {q or d}, alpha {alpha} | {name:16} {seconds:7.3f} s, {model.n_iter_:4}, "
                  f"{model.error_[-1]:.6f}, {left} | {against}", flush=True)
    return None


if __name__ == "__main__":
    main()
