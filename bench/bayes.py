"""Bayesian PCA beside its peers: ratios of processor time at equal or better error on hidden cells.

    python -m pip install -r bench/requirements.txt
    python bench/bayes.py [--only NAME]... [--repeats N] [--budget SECONDS]

Every solver runs in a process of its own on one thread. A peer with iterations to count gets the fewest, doubled
from 5, whose root-mean-square error on the hidden cells is at most 0.1 % above ours; its time is that of the last
run, and its ratio is to our structured method with the fewest sweeps that do the same. `vbpca_py-own-stop` runs to its own
rules, and its ratio is to structured by its own. `≥` says that the budget ended first.
"""

import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from compare import ROOT, THREADS

# name: rows, columns, true components, offered components, share of gaps
CASES = {
    "300x50 complete": (300, 50, 8, 8, 0.0),
    "300x50, 30 % gaps": (300, 50, 8, 8, 0.3),
    "1000x10, 40 % gaps": (1000, 10, 4, 9, 0.4),
    "5000x200, 10 % gaps": (5000, 200, 10, 10, 0.1),
    "20000x100, 10 % gaps": (20_000, 100, 10, 10, 0.1),
}
OURS = ["structured", "mean-field"]
PEERS = ["bayespy", "vbpca_py", "vbpca_py-own-stop"]
PACKAGES = {"bayespy": "bayespy", "vbpca_py": "vbpca_py", "vbpca_py-own-stop": "vbpca_py"}


def table(n, d, q, gaps, seed=7):
    """The whole table, the same with gaps, and its part without noise (and without mean)."""
    rng = np.random.default_rng(seed)
    signal = rng.standard_normal((n, q)) @ rng.standard_normal((q, d))
    whole = signal + rng.standard_normal(d) + rng.standard_normal((n, d))
    seen = whole.copy()
    if gaps > 0:
        seen[rng.random((n, d)) < gaps] = np.nan
    return whole, seen, signal


def fill(seen, w, mu, psi):
    """Conditional means of all cells, by Woodbury, row by row."""
    out = np.empty_like(seen)
    psi = np.broadcast_to(np.asarray(psi, float), mu.shape)
    for i, row in enumerate(seen):
        o = ~np.isnan(row)
        wo = w[o] / psi[o, None]
        x = np.linalg.solve(np.eye(w.shape[1]) + wo.T @ w[o], wo.T @ (row[o] - mu[o]))
        out[i] = mu + w @ x
    return out


def error(whole, seen, signal, fitted):
    """RMSE on the gaps; without gaps, of the noise-free table."""
    gaps = np.isnan(seen)
    clean = signal + (whole - signal).mean(0)
    off = (fitted - whole)[gaps] if gaps.any() else fitted - clean
    return float(np.sqrt(np.mean(off**2)))


def ours(method, case, repeats, sweeps=0):
    n, d, q, offered, gaps = CASES[case]
    whole, seen, signal = table(n, d, q, gaps)
    with tempfile.NamedTemporaryFile() as file:
        seen.astype("<f8").tofile(file.name)
        run = [str(ROOT / "target/release/examples/fit_timing"), file.name, n, d, method, "ppca", offered, 1, repeats, sweeps]
        found = json.loads(subprocess.run([str(a) for a in run], check=True, capture_output=True, text=True).stdout)
    fitted = fill(seen, np.array(found["loadings"]).reshape(d, -1), np.array(found["mean"]), found["noise"])
    return {"cpu": found["cpu"], "sweeps": sweeps or found["iterations"] + 1, "rmse": error(whole, seen, signal, fitted)}


def bayespy(seen, q, iterations):
    from bayespy.inference.vmp import transformations
    from bayespy.inference import VB
    from bayespy.nodes import Add, Gamma, GaussianARD, SumMultiply

    n, d = seen.shape
    mask = ~np.isnan(seen)
    scale = np.sqrt(np.nanvar(seen, axis=0).mean())
    data = np.where(mask, (seen - np.nanmean(seen, axis=0)) / scale, 0.0)
    alpha = Gamma(1e-3, 1e-3, plates=(q,))
    w = GaussianARD(0, alpha, shape=(q,), plates=(d, 1))
    x = GaussianARD(0, 1, shape=(q,), plates=(1, n))
    mu = GaussianARD(0, 1e-3, plates=(d, 1))
    tau = Gamma(1e-3, 1e-3)
    y = GaussianARD(Add(SumMultiply("i,i", w, x), mu), tau)
    y.observe(data.T, mask=mask.T)
    w.initialize_from_random()
    posterior = VB(y, x, mu, w, alpha, tau)
    rotation = transformations.RotationOptimizer(
        transformations.RotateGaussianARD(x), transformations.RotateGaussianARD(w, alpha), q
    )
    for _ in range(iterations):
        posterior.update(verbose=False)
        rotation.rotate(maxiter=10)
    mean = SumMultiply("i,i", w, x).get_moments()[0] + mu.get_moments()[0]
    return lambda: np.nanmean(seen, axis=0) + scale * mean.T


def vbpca(seen, q, iterations):
    from vbpca_py import VBPCA

    own = dict(algorithm="vb", random_state=0, num_cpu=1, return_diagnostics=False)
    if iterations:
        own.update(maxiters=iterations, runtime_tuning="off", rmsstop=None, minangle=0.0, niter_broadprior=min(20, iterations))
    model = VBPCA(q, **own).fit(seen)
    return lambda: fill(seen, np.asarray(model.components_).T, np.asarray(model.mean_).ravel(), model.noise_variance_)


def peer(name, case, iterations):
    """Runs in its own process: processor time and error of one fit."""
    n, d, q, offered, gaps = CASES[case]
    whole, seen, signal = table(n, d, q, gaps)
    solve = bayespy if name == "bayespy" else vbpca
    solve(table(40, 6, 2, gaps)[1], 2, 2)()  # imports, and whatever is made on first use
    start = time.process_time()
    fitted = solve(seen, offered, iterations)
    cpu = time.process_time() - start
    print(json.dumps({"cpu": cpu, "rmse": error(whole, seen, signal, fitted()), "sweeps": iterations}))


def run_peer(name, case, target, budget):
    sweeps, spent, last = (0 if name.endswith("own-stop") else 5), 0.0, None
    while True:
        call = [sys.executable, __file__, "--peer", name, "--case", case, "--sweeps", str(sweeps)]
        try:
            done = subprocess.run(call, capture_output=True, text=True, timeout=3 * budget, env={**os.environ, **THREADS})
        except subprocess.TimeoutExpired:
            return last, False
        if done.returncode:
            return {"failed": done.stderr.strip().splitlines()[-1]}, False
        last = json.loads(done.stdout.splitlines()[-1])
        spent += last["cpu"]
        if last["rmse"] <= 1.001 * target:
            return last, True
        if name.endswith("own-stop") or spent > budget:
            return last, False
        sweeps *= 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=CASES)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--budget", type=float, default=60)
    for hidden in ("--peer", "--case", "--sweeps"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer:
        return peer(args.peer, args.case, int(args.sweeps))
    subprocess.run(["cargo", "build", "--release", "-q", "-p", "covary", "--example", "fit_timing"], cwd=ROOT, check=True)
    print("| table | method or peer | processor s | sweeps | RMSE | ratio to structured |")
    print("|---|---|---:|---:|---:|---:|")
    for case in args.only or CASES:
        found = {method: ours(method, case, args.repeats) for method in OURS}
        base = found["structured"]
        target = min(f["rmse"] for f in found.values())
        # On equal terms with peers that get the fewest iterations: so do we.
        for method in OURS:
            tries = (ours(method, case, args.repeats, sweeps) for sweeps in (1, 2, 3, 5, 7, 10, 15, 20, 30))
            fewest = next((f for f in tries if f["rmse"] <= 1.001 * target), None)
            if fewest:
                found[method + ", fewest sweeps"] = fewest
        fewest = found.get("structured, fewest sweeps", base)
        for method, f in found.items():
            print(f"| {case} | {method} | {f['cpu']:.3f} | {f['sweeps']} | {f['rmse']:.4f} | {f['cpu'] / base['cpu']:.1f} |", flush=True)
        for name in PEERS:
            try:
                importlib.metadata.version(PACKAGES[name])
            except importlib.metadata.PackageNotFoundError:
                print(f"SKIPPED peer {name}: not installed")
                continue
            got, reached = run_peer(name, case, target, args.budget)
            if got is None or "failed" in got:
                print(f"| {case} | {name} | no answer | | {(got or {}).get('failed', 'out of time')} | |", flush=True)
                continue
            sign = "" if reached else "≥ "
            note = "" if reached else " (short of ours)"
            print(f"| {case} | {name} | {sign}{got['cpu']:.3f} | {got['sweeps'] or 'own'} | {got['rmse']:.4f}{note} | {sign}{got['cpu'] / (base if name.endswith('own-stop') else fewest)['cpu']:.0f} |", flush=True)


if __name__ == "__main__":
    main()
