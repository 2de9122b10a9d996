"""The Python package: what a call costs beside the library, and `Imputer` beside scikit-learn's.

    python -m pip install . pandas pyarrow
    python bench/python.py [overhead] [memory] [single] [imputers] [--seeds N]

Processor time on one thread, minimum of several for ours and of what 20 s allow for slow peers. `imputers` reads
metabolite, ozone and yeast from the folder named by COVARY_DATA (default ../shared/data).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402

import covary  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
RATES = (0.05, 0.10, 0.20)


def fastest(work, repeats, clock=time.perf_counter):
    best = np.inf
    for _ in range(repeats):
        start = clock()
        work()
        best = min(best, clock() - start)
    return best


def overhead():
    """A fit of 1000×20 from Python and from Rust, in turns: minimum of many each."""
    rng = np.random.default_rng(0)
    whole = rng.normal(size=(1000, 3)) @ rng.normal(size=(3, 20)) + 0.3 * rng.normal(size=(1000, 20))
    gaps = np.where(rng.random(whole.shape) < 0.1, np.nan, whole)
    subprocess.run(["cargo", "build", "--quiet", "--release", "-p", "covary", "--example", "fit_timing"], cwd=ROOT, check=True)
    program = ROOT / "target" / "release" / "examples" / "fit_timing"
    print("| fit of 1000×20, 3 components | threads | Rust | Python | ratio |\n| --- | --- | --- | --- | --- |")
    for name, rows, method in (("complete, closed form", whole, "spectral"), ("10 % gaps, EM", gaps, "em")):
        with tempfile.NamedTemporaryFile(suffix=".bin") as file:
            rows.tofile(file.name)
            for threads in (1, 2):
                rust = python = np.inf
                for _ in range(10):
                    words = [program, file.name, 1000, 20, method, "ppca", 3, threads, 100, 0]
                    said = subprocess.run([str(w) for w in words], capture_output=True, check=True).stdout
                    rust = min(rust, json.loads(said)["wall"])
                    with covary.threads(threads):
                        model = covary.PPCA(3, standardize=False)
                        python = min(python, fastest(lambda: model.fit(rows), 100))
                print(f"| {name} | {threads} | {1e6 * rust:.0f} µs | {1e6 * python:.0f} µs | {python / rust:.2f} |")


def memory():
    """Growth of peak memory over a fit, in tables, in processes of their own."""
    script = """
import numpy, resource, sys
exec(sys.argv[1])
rng = numpy.random.default_rng(0)
fit(rng.normal(size=(1000, 100)))
table = numpy.empty((200_000, 100))
for j in range(100): table[:, j] = numpy.resize(rng.normal(size=7919 + j), 200_000)
table[:, 1:] += table[:, :1]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
fit(table)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / table.nbytes)
"""
    print("| fit of 200000×100 float64, C order | peak memory above the table, in tables |\n| --- | --- |")
    fits = {
        "`covary.PCA(5)`": "import covary; fit = lambda x: covary.PCA(5).fit(x)",
        "`covary.PPCA(5)`": "import covary; fit = lambda x: covary.PPCA(5).fit(x)",
        "`sklearn PCA(5)`": "from sklearn.decomposition import PCA; fit = lambda x: PCA(5).fit(x)",
    }
    for name, fit in fits.items():
        done = subprocess.run([sys.executable, "-c", script, fit], capture_output=True, text=True, check=True)
        print(f"| {name} | {float(done.stdout):.2f} |")


def single():
    """PCA of float32 tables beside scikit-learn's solvers: processor time, and the angle to the axes of float64."""
    from sklearn.decomposition import PCA

    shapes = ((100_000, 100, 10), (10_000, 1000, 20), (2000, 5000, 20), (1_000_000, 20, 5), (200, 20_000, 10))
    solvers = ("covariance_eigh", "arpack", "randomized", "full")
    print("| float32 | q | ours | " + " | ".join(solvers) + " |\n| --- | ---: | ---: |" + " ---: |" * len(solvers))
    for n, d, q in shapes:
        rng = np.random.default_rng(20240607)
        x = rng.standard_normal((n, q), dtype=np.float32) @ rng.standard_normal((q, d), dtype=np.float32)
        x += rng.standard_normal((n, d), dtype=np.float32) + rng.standard_normal(d, dtype=np.float32)
        exact = covary.PCA(q).fit(x.astype(np.float64)).components_

        def cell(make):
            axes = np.linalg.qr(make().fit(x).components_.astype(np.float64).T)[0]
            sine = np.linalg.norm(axes - exact.T @ (exact @ axes), 2)
            seconds = fastest(lambda: make().fit(x), 5, time.process_time)
            return f"{1e3 * seconds:.0f} ms, {np.degrees(np.arcsin(min(1.0, sine))):.1e}°"

        row = [cell(lambda: covary.PCA(q))]
        for solver in solvers:
            # Those that would take minutes.
            slow = (solver == "covariance_eigh" and d >= 5000) or (solver == "full" and n * d * min(n, d) > 2e9)
            row.append("" if slow else cell(lambda solver=solver: PCA(q, svd_solver=solver, random_state=0)))
        print(f"| {n} × {d} | {q} | " + " | ".join(row) + " |", flush=True)


def tables():
    import pandas as pd

    data = Path(os.environ.get("COVARY_DATA", ROOT.parent / "shared" / "data"))
    if not data.exists():
        sys.exit(f"SKIPPED: no data in {data}; name the folder by COVARY_DATA")
    yeast = pd.read_parquet(data / "yeast_spellman" / "yeast_spellman.parquet")
    found = {
        "ozone": pd.read_csv(data / "missmda" / "ozone.csv").drop(columns=["day", "vent", "pluie"]),
        "metabolite": pd.read_csv(data / "metabolite" / "metabolite_missing.csv"),
        "yeast": yeast.drop(columns=["orf", "cell_cycle_800"]),
    }
    for name, frame in found.items():
        rows = frame.to_numpy(dtype=float)
        yield name, np.ascontiguousarray(rows[~np.isnan(rows).all(axis=1)])


def hide(rows, rate, seed):
    """The table with a share of its observed cells hidden, one kept in every row."""
    rng = np.random.default_rng([seed, round(100 * rate)])
    observed = ~np.isnan(rows)
    cells, left = np.argwhere(observed), observed.sum(axis=1)
    hidden, wanted = np.zeros_like(observed), round(len(cells) * rate)
    for i, j in cells[rng.permutation(len(cells))]:
        if wanted and left[i] > 1:
            hidden[i, j] = True
            left[i] -= 1
            wanted -= 1
    return np.where(hidden, np.nan, rows), hidden


def imputers(seeds):
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer, KNNImputer

    warnings.simplefilter("ignore")
    kinds = {
        "covary.Imputer()": (lambda: covary.Imputer(), 5),
        "IterativeImputer()": (lambda: IterativeImputer(), 1),
        "KNNImputer()": (lambda: KNNImputer(), 3),
    }
    print("| table | hidden | " + " | ".join(f"{k}, RMSE | s" for k in kinds) + " | wins | 95 % intervals |")
    print("| --- | --- |" + " --- |" * (2 * len(kinds) + 2))
    for name, rows in tables():
        sd = np.nanstd(rows, axis=0)
        for rate in RATES:
            error, cost, wins, inside, n = {k: [] for k in kinds}, {k: [] for k in kinds}, 0, 0, 0
            for seed in range(seeds if name != "yeast" else min(seeds, 3)):
                gaps, hidden = hide(rows, rate, seed)
                for kind, (make, repeats) in kinds.items():
                    filled = make().fit_transform(gaps)
                    off = ((filled - rows) / sd)[hidden]
                    error[kind].append(np.sqrt(np.mean(off**2)))
                    few = 1 if name == "yeast" else repeats
                    cost[kind].append(fastest(lambda: make().fit_transform(gaps), few, time.process_time))
                ours = error["covary.Imputer()"][-1]
                wins += all(ours < error[kind][-1] for kind in kinds if kind != "covary.Imputer()")
                lower, upper = covary.Imputer().fit(gaps).interval(gaps)
                inside += ((lower < rows) & (rows < upper))[hidden].sum()
                n += hidden.sum()
            mean = lambda values: f"{np.mean(values):.3f}"  # noqa: E731
            each = " | ".join(f"{mean(error[k])} | {np.median(cost[k]):.2g}" for k in kinds)
            masks = len(error["covary.Imputer()"])
            print(f"| {name} | {100 * rate:.0f} % | {each} | {wins} of {masks} | {100 * inside / n:.1f} % |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=["overhead", "memory", "single", "imputers", []])
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    for part in options.what or ["overhead", "memory", "single", "imputers"]:
        imputers(options.seeds) if part == "imputers" else {"overhead": overhead, "memory": memory, "single": single}[part]()
