"""Group factor analysis beside MOFA: processor time, error on hidden cells, and who is active where.

    python -m pip install -r bench/requirements.txt
    python bench/groups.py

Both on one thread, each by its own stopping rule (MOFA's middle one), 12 components offered, a noise variance per
column, since MOFA has no other. Three views with two shared and three private components; a tenth of the cells is
hidden, and a view of every fifth row. A component counts as active in a view by `activity_`, for MOFA where it explains
a hundredth of the view's variance.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[variable] = "1"

import contextlib
import io
import time

import numpy as np
from mofapy2.run.entry_point import entry_point

import covary

PLANTED = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=bool)
NOISE = (0.3, 0.5, 0.8)
CASES = [((10, 8, 12), 300), ((30, 20, 40), 300), ((100, 80, 120), 1000)]
TABLES = 5


def views(sizes, n, seed):
    """The views whole and with gaps."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, len(PLANTED)))
    whole, gaps = [], []
    for v, size in enumerate(sizes):
        w = rng.normal(size=(len(PLANTED), size)) * PLANTED[:, v : v + 1]
        whole.append(1 + x @ w + np.sqrt(NOISE[v]) * rng.normal(size=(n, size)))
        gaps.append(np.where(rng.random((n, size)) < 0.1, np.nan, whole[-1]))
        gaps[-1][5 * v :: 15] = np.nan
    return whole, gaps


def ours(gaps):
    model = covary.GroupFactorAnalysis(12, noise="diagonal").fit(gaps)
    return model.impute(gaps), model.activity_


def mofa(gaps):
    with contextlib.redirect_stdout(io.StringIO()):
        run = entry_point()
        run.set_data_options(scale_views=False, scale_groups=False)
        run.set_data_matrix([[table] for table in gaps], likelihoods=["gaussian"] * len(gaps))
        run.set_model_options(factors=12, spikeslab_weights=False, ard_factors=False, ard_weights=True)
        run.set_train_options(iter=2000, convergence_mode="medium", seed=1, verbose=False, quiet=True)
        run.build()
        run.run()
    found = run.model.getExpectations()
    z, loadings = found["Z"]["E"], [w["E"] for w in found["W"]]
    filled, explained = [], []
    for w, table in zip(loadings, gaps, strict=True):
        mean = np.nanmean(table, axis=0)
        filled.append(mean + z @ w.T)
        left = [np.nansum((table - mean - np.outer(z[:, k], w[:, k])) ** 2) for k in range(z.shape[1])]
        explained.append(1 - np.array(left) / np.nansum((table - mean) ** 2))
    active = np.array(explained) > 0.01
    return np.hstack(filled), active[:, active.any(axis=0)]


def main():
    want = sorted(PLANTED.tolist())
    print("| columns, rows | processor time, ours | MOFA | ratio | error, ours | MOFA | exact, ours | MOFA |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for sizes, n in CASES:
        measured = {}
        for seed in range(TABLES):
            whole, gaps = views(sizes, n, seed)
            hidden = np.isnan(np.hstack(gaps))
            for fit in (ours, mofa):
                start = time.process_time()
                filled, active = fit(gaps)
                spent = time.process_time() - start
                error = np.sqrt(np.mean((filled - np.hstack(whole))[hidden] ** 2))
                measured.setdefault(fit, []).append((spent, error, sorted(active.T.tolist()) == want))
        (a, e, x), (b, f, y) = (np.mean(measured[fit], axis=0) for fit in (ours, mofa))
        columns = " + ".join(map(str, sizes))
        exact = f"{x * TABLES:.0f} of {TABLES} | {y * TABLES:.0f} of {TABLES}"
        print(f"| {columns}, {n} | {a:.2f} s | {b:.1f} s | {b / a:.0f} | {e:.3f} | {f:.3f} | {exact} |", flush=True)


if __name__ == "__main__":
    main()
