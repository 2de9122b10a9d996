"""Mixtures beside scikit-learn's GaussianMixture and ppca-rs: processor time of the fit, and nats per held-out row.

    peers/bin/python bench/mixture.py            # a few minutes, most of it ppca-rs; prints Markdown

10000 rows of 20 columns from three probabilistic PCAs with 3 components (2000 more rows held out), complete and
with 20 % of the cells removed. One thread each. A peer that is not installed is named.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
ROWS, HELD, COLUMNS, Q, K = 10_000, 2_000, 20, 3, 3


def tables() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    loadings, means = rng.normal(size=(K, COLUMNS, Q)), rng.normal(size=(K, COLUMNS))
    group = rng.choice(K, size=ROWS + HELD, p=np.arange(1, K + 1) / (K * (K + 1) / 2))
    scores = rng.normal(size=(ROWS + HELD, Q))
    whole = np.einsum("ndq,nq->nd", loadings[group], scores) + means[group]
    whole += rng.normal(size=whole.shape)
    gaps = whole.copy()
    gaps[np.random.default_rng(5).random(gaps.shape) < 0.2] = np.nan
    return {"complete": whole, "20 % gaps": gaps}


def seconds(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def ours(table: np.ndarray, q: int, *options: str, repeats: int = 5) -> tuple[float, float, int]:
    """Processor seconds of a fit, nats per held-out row, steps of the climb that was kept."""
    command = ROOT / "target" / "release" / "examples" / "mixture_timing"
    with tempfile.TemporaryDirectory() as folder:
        train, test = Path(folder) / "train", Path(folder) / "test"
        table[:ROWS].tofile(train)
        table[ROWS:].tofile(test)
        call = [command, train, test, COLUMNS, "ppca", q, K, 1]

        def run(times: int) -> tuple[float, dict]:
            before = seconds(resource.RUSAGE_CHILDREN)
            said = subprocess.run([str(word) for word in (*call, times, *options)], capture_output=True, check=True)
            return seconds(resource.RUSAGE_CHILDREN) - before, json.loads(said.stdout)

        # Reading and scoring are in both and cancel.
        (one, _), (many, found) = run(1), run(1 + repeats)
    return (many - one) / repeats, found["held_out"], found["iterations"]


def scikit_learn(table: np.ndarray) -> tuple[float, float, int]:
    from sklearn.mixture import GaussianMixture

    best = np.inf
    for _ in range(5):
        before = seconds(resource.RUSAGE_SELF)
        model = GaussianMixture(K, random_state=0).fit(table[:ROWS])
        best = min(best, seconds(resource.RUSAGE_SELF) - before)
    return best, model.score(table[ROWS:]), model.n_iter_


def ppca_rs(table: np.ndarray, steps: int = 100) -> tuple[float, float, int]:
    import ppca_rs as peer

    train, test = (peer.Dataset(part.copy()) for part in (table[:ROWS], table[ROWS:]))
    before = seconds(resource.RUSAGE_SELF)
    model = peer.PPCAMixTrainer(train).train(n_models=K, state_size=Q, n_iters=steps, quiet=True)
    return seconds(resource.RUSAGE_SELF) - before, model.llk(test) / HELD, steps


def main() -> None:
    subprocess.run(
        ["cargo", "build", "--release", "-q", "-p", "covary", "--example", "mixture_timing"], cwd=ROOT, check=True
    )
    print("| table | fit | processor time | held-out nats per row | steps |\n| --- | --- | --- | --- | --- |")
    for name, table in tables().items():
        fits = [
            ("covary, mixture of PPCA", lambda table: ours(table, Q)),
            ("covary, one start", lambda table: ours(table, Q, "restarts=0")),
            ("ppca-rs, 100 steps", ppca_rs),
        ]
        if name == "complete":
            fits.append(("covary, full Gaussians, one start", lambda table: ours(table, COLUMNS - 1, "restarts=0")))
            fits.append(("scikit-learn GaussianMixture", scikit_learn))
        for words, fit in fits:
            try:
                time, held, steps = fit(table)
            except ImportError as missing:
                print(f"SKIPPED peer {missing.name}: not installed", file=sys.stderr)
                continue
            print(f"| {name} | {words} | {1e3 * time:.0f} ms | {held:.4f} | {steps} |", flush=True)


if __name__ == "__main__":
    main()
