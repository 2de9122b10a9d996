"""Dynamic factor models beside statsmodels: log-likelihoods, processor time, and cost in the length of the table.

    peers/bin/python bench/dynamics.py                 # some minutes, most of them statsmodels'; prints Markdown

Three factors of order 1, memories .9, .7 and .4, loadings standard normal, noise variances uniform in 0.2 … 1.2. One thread each,
processor time of the fit only, ours the least of five. `DynamicFactorMQ` runs EM by its own stopping rule, on the table less its
column means, since it has no level; ours is then given the fewest steps that reach its log-likelihood, and also runs by its own
rule. Both log-likelihoods are of one state space model of statsmodels with the long-run distribution as its start.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402
from statsmodels.tsa.statespace.dynamic_factor import DynamicFactor  # noqa: E402
from statsmodels.tsa.statespace.dynamic_factor_mq import DynamicFactorMQ  # noqa: E402
from statsmodels.tsa.statespace.mlemodel import MLEModel  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
MEMORY = np.array([0.9, 0.7, 0.4])


def table(n: int, d: int, seed: int = 1, season: bool = False) -> np.ndarray:
    rng = np.random.default_rng(seed)
    k = len(MEMORY)
    w, psi, level = rng.normal(size=(d, k)), 0.2 + rng.random(d), rng.normal(size=d)
    waves = rng.normal(size=(12, d)) if season else np.zeros((12, d))
    x, rows = rng.normal(size=k), np.empty((n, d))
    for t in range(n):
        x = MEMORY * x + np.sqrt(1 - MEMORY**2) * rng.normal(size=k)
        rows[t] = level + waves[t % 12] + w @ x + np.sqrt(psi) * rng.normal(size=d)
    return rows


def gaps(whole: np.ndarray, seed: int = 2) -> np.ndarray:
    """A fifth of the cells at random, and a tenth of the rows in one block."""
    out = np.where(np.random.default_rng(seed).random(whole.shape) < 0.2, np.nan, whole)
    out[len(out) // 2 :][: len(out) // 10] = np.nan
    return out


def ours(cells: np.ndarray, season: str = "none", order: int = 1, repeats: int = 5, steps: int = 0) -> dict:
    command = ROOT / "target" / "release" / "examples" / "dynamics_timing"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table"
        cells.tofile(file)
        call = [command, file, cells.shape[1], "diagonal", len(MEMORY), order, season, repeats, steps]
        said = subprocess.run([str(word) for word in call], capture_output=True, check=True)
    return json.loads(said.stdout)


def log_likelihood(cells: np.ndarray, a, q, w, psi, mean: np.ndarray) -> float:
    """Of statsmodels' state space, `mean` being a row for each row of the table."""
    a, q, w = np.array(a), np.array(q), np.array(w)
    k, states = len(q), a.shape[1]
    model = MLEModel(cells, k_states=states, k_posdef=k)
    transition = np.vstack([a, np.eye(states - k, states)])
    model["transition"], model["selection"], model["state_cov"] = transition, np.eye(states, k), q
    model["design"] = np.hstack([w, np.zeros((len(w), states - k))])
    model["obs_cov"], model["obs_intercept"] = np.diag(psi), np.ascontiguousarray(mean.T)
    model.ssm.initialize_stationary()
    model.ssm.tolerance = 0
    return model.ssm.loglike()


def at(found: dict, cells: np.ndarray, season: str) -> float:
    t = np.arange(len(cells))
    known = {
        "none": np.ones((len(t), 1)),
        "indicators:12": np.eye(12)[t % 12],
        "harmonics:12:1": np.stack([t**0, np.cos(t % 12 / 12 * 2 * np.pi), np.sin(t % 12 / 12 * 2 * np.pi)], axis=1),
    }[season]
    mean = known @ np.array(found["coefficients"]).T
    return log_likelihood(cells, found["transition"], found["innovation"], found["loadings"], found["noise"], mean)


def fewest(cells: np.ndarray, target: float) -> dict:
    """Ours with the fewest steps that reach the target."""
    low, high = 0, 1
    while ours(cells, repeats=1, steps=high)["log_likelihood"] < target:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        good = ours(cells, repeats=1, steps=middle)["log_likelihood"] >= target
        low, high = (low, middle) if good else (middle, high)
    return ours(cells, steps=high)


def timed(fit) -> tuple[float, object]:
    start = time.process_time()
    found = fit()
    return time.process_time() - start, found


def mixed_frequency(cells: np.ndarray, steps: int) -> tuple[float, float, int]:
    """Processor time, log-likelihood and steps of `DynamicFactorMQ`."""
    means = cells.mean(axis=0)
    model = DynamicFactorMQ(
        cells - means, factors=1, factor_multiplicities=len(MEMORY), factor_orders=1, idiosyncratic_ar1=False, standardize=False
    )
    seconds, found = timed(lambda: model.fit(maxiter=steps, disp=False))
    ssm = found.model.ssm
    value = log_likelihood(
        cells, ssm["transition"], ssm["state_cov"], ssm["design"], np.diag(ssm["obs_cov"]), np.tile(means, (len(cells), 1))
    )
    return seconds, value, found.mle_retvals["iter"]


def main() -> None:
    warnings.simplefilter("ignore")
    build = ["cargo", "build", "--release", "-q", "-p", "covary", "--example", "dynamics_timing"]
    subprocess.run(build, cwd=ROOT, check=True)

    print("| log-likelihood at our parameters | ours | statsmodels' | relative difference |\n| --- | --- | --- | --- |")
    small = table(300, 20, season=True)
    for words, cells, season, order in [
        ("300 × 20", table(300, 20), "none", 1),
        ("300 × 20, gaps", gaps(table(300, 20)), "none", 1),
        ("300 × 20, gaps, order 2", gaps(table(300, 20)), "none", 2),
        ("300 × 20, gaps, harmonics", gaps(small), "harmonics:12:1", 1),
        ("300 × 20, gaps, seasonal means", gaps(small), "indicators:12", 1),
        ("2000 × 100, gaps", gaps(table(2000, 100)), "none", 1),
    ]:
        found = ours(cells, season, order, repeats=1)
        mine, theirs = found["log_likelihood"], at(found, cells, season)
        print(f"| {words} | {mine:.6f} | {theirs:.6f} | {abs(mine - theirs) / abs(theirs):.1e} |", flush=True)

    print("\n| table | fit | processor time | steps | log-likelihood | ratio |\n| --- | --- | --- | --- | --- | --- |")
    for n, d in [(300, 20), (2000, 100)]:
        cells = table(n, d)
        seconds, value, steps = mixed_frequency(cells, 500)
        equal, own = fewest(cells, value), ours(cells)
        size = f"{n} × {d}"
        print(f"| {size} | DynamicFactorMQ, its own stop | {seconds:.2f} s | {steps} | {value:.4f} | |")
        for words, found in [("covary, as far", equal), ("covary, its own stop", own)]:
            cpu, reached, done = found["cpu"], found["log_likelihood"], found["iterations"]
            print(f"| {size} | {words} | {cpu:.4f} s | {done} | {reached:.4f} | {seconds / cpu:.0f} |", flush=True)
        if d <= 20:
            model = DynamicFactor(cells, k_factors=len(MEMORY), factor_order=1, exog=np.ones(n))
            seconds, found = timed(lambda: model.fit(maxiter=100, disp=False))
            row = f"{seconds:.0f} s | {found.mle_retvals['iterations']} | {found.llf:.4f}"
            print(f"| {size} | DynamicFactor, 100 steps of L-BFGS | {row} | |", flush=True)

    print("\n| rows × 20, q = 3, 20 steps | processor time | a row and step | with gaps | a row and step |")
    print("| --- | --- | --- | --- | --- |")
    for n in (1_000, 10_000, 100_000):
        whole = table(n, 20)
        spent = [ours(cells, repeats=3, steps=20)["cpu"] for cells in (whole, gaps(whole))]
        cost = [f"{s:.3f} s | {1e6 * s / n / 20:.2f} µs" for s in spent]
        print(f"| {n} | {cost[0]} | {cost[1]} |", flush=True)


if __name__ == "__main__":
    main()
