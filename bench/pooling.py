"""Multiple imputation: do pooled intervals of a regression coefficient cover it? Ours, and R's mice if it is there.

    python -m pip install . -r bench/requirements.txt
    python bench/pooling.py [--repetitions 500] [--methods NAME ...] [--raw FILE] [--smoke]

Every repetition draws 200 rows of y = x1 + x2/2 − x3/2 + ε, where the x have correlations of 0.5 and ε variance 1, makes
gaps, fills them 20 times, regresses y on the x of each filled table and pools the coefficient of x1 by Rubin's rules.

- MCAR: 30 % of the cells of y, x1 and x2, at random;
- MAR: x1 and x2 are missing where y and x3, which are complete, are large: 30 % of their cells.

The 95 % interval is that of Student's t with the pooled degrees of freedom, at most those of the complete table
(Barnard and Rubin 1999). Beside it: the table before it had gaps, and its complete rows alone.
"""

import os

for variable in ("OMP", "OPENBLAS", "MKL", "RAYON"):
    os.environ[f"{variable}_NUM_THREADS"] = "1"

import argparse
import csv
import itertools
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

import covary
from imputation import in_r, installed

ROWS, DRAWS, TRUTH, LEVEL = 200, 20, 1.0, 0.95
BATCH = 25  # repetitions for one start of R
BETA = np.array([TRUTH, 0.5, -0.5])


def simulate(mechanism, seed):
    rng = np.random.default_rng([seed, len(mechanism)])
    x = np.sqrt(0.5) * (rng.normal(size=(ROWS, 1)) + rng.normal(size=(ROWS, 3)))
    y = x @ BETA + rng.normal(size=ROWS)
    whole = np.column_stack([y, x])
    if mechanism == "MCAR":
        missing = rng.random(whole.shape) < [0.3, 0.3, 0.3, 0]
    else:
        large = stats.rankdata(y / y.std() + x[:, 2]) / ROWS
        missing = (rng.random(whole.shape) < 0.6 * large[:, None]) & [False, True, True, False]
    return whole, np.where(missing, np.nan, whole)


def coefficient(table):
    """Least squares: the coefficient of x1 and its variance."""
    y, x = table[:, 0], np.column_stack([np.ones(len(table)), table[:, 1:]])
    inverse = np.linalg.inv(x.T @ x)
    beta = inverse @ (x.T @ y)
    rest = y - x @ beta
    return beta[1], inverse[1, 1] * (rest @ rest) / (len(table) - x.shape[1])


def interval(tables):
    """Pooled estimate and half-width."""
    each = np.array([coefficient(table) for table in tables])
    complete = len(tables[0]) - 4
    if len(tables) == 1:
        return each[0, 0], stats.t.ppf(0.5 + LEVEL / 2, complete) * np.sqrt(each[0, 1])
    pooled = covary.pool(each[:, 0], each[:, 1])
    lost = (1 + 1 / len(tables)) * pooled.between / pooled.total
    observed = (complete + 1) / (complete + 3) * complete * (1 - lost)
    freedom = 1 / (1 / pooled.degrees_of_freedom + 1 / observed)
    return pooled.estimate, stats.t.ppf(0.5 + LEVEL / 2, freedom) * np.sqrt(pooled.total)


# Each takes tables with gaps and their seeds, and returns the filled tables of each.


def one_by_one(fill):
    return lambda tables, seeds: [fill(gaps, seed) for gaps, seed in zip(tables, seeds, strict=True)]


def drawn(*words, **options):
    return one_by_one(lambda gaps, seed: covary.Imputer(*words, random_state=seed, **options).fit(gaps).sample(gaps, DRAWS))


def in_mice(tables, seeds):
    filled = in_r("mice norm", ROWS)(np.vstack(tables), seeds[0])[1]
    return filled.reshape(len(tables), DRAWS, *tables[0].shape)


METHODS = {
    "covary": drawn(),
    "covary 0.1.0": drawn("gaussian", calibrate=False, bounds=None),
    "covary bpca": drawn("bpca"),
    "complete rows": one_by_one(lambda gaps, seed: [gaps[~np.isnan(gaps).any(1)]]),
    "before the gaps": None,
    "mice norm": in_mice,
}


def report(found):
    out = ["| gaps | method | repetitions | coverage of 95 % | bias | mean half-width | sd of the estimate |"]
    out += ["| --- | --- | --- | --- | --- | --- | --- |"]
    for (mechanism, method), part in found.groupby(["mechanism", "method"], sort=False):
        inside = (np.abs(part["estimate"] - TRUTH) <= part["reach"]).mean()
        error = np.sqrt(inside * (1 - inside) / len(part))
        out.append(
            f"| {mechanism} | {method} | {len(part)} | {100 * inside:.1f} ± {100 * error:.1f} | "
            f"{part['estimate'].mean() - TRUTH:+.3f} | {part['reach'].mean():.3f} | {part['estimate'].std():.3f} |"
        )
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=500)
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--raw", type=Path, help="CSV of every repetition; what it has is not run again")
    parser.add_argument("--smoke", action="store_true", help="five repetitions, without R")
    asked = parser.parse_args()
    if asked.smoke:
        asked.repetitions, asked.methods = 5, [m for m in METHODS if not m.startswith("mice")]
    if "mice norm" in asked.methods and not (shutil.which("Rscript") and installed("R:mice")):
        print("SKIPPED peer mice norm: mice is not installed")
        asked.methods.remove("mice norm")
    fields = ["mechanism", "method", "seed", "estimate", "reach"]
    rows = []
    if asked.raw and asked.raw.exists():
        rows = pd.read_csv(asked.raw).to_dict("records")
    have = {(row["mechanism"], row["method"], row["seed"]) for row in rows}
    file = asked.raw.open("a", newline="") if asked.raw else open(os.devnull, "w")
    with file:
        writer = csv.DictWriter(file, fields)
        if not rows:
            writer.writeheader()
        batches = range(0, asked.repetitions, BATCH)
        for start, mechanism, method in itertools.product(batches, ("MCAR", "MAR"), asked.methods):
            seeds = range(start, min(start + BATCH, asked.repetitions))
            seeds = [seed for seed in seeds if (mechanism, method, seed) not in have]
            if not seeds:
                continue
            whole, gaps = zip(*(simulate(mechanism, seed) for seed in seeds), strict=True)
            filled = [[table] for table in whole] if METHODS[method] is None else METHODS[method](gaps, seeds)
            for seed, tables in zip(seeds, filled, strict=True):
                rows.append(dict(zip(fields, (mechanism, method, seed, *interval(tables)), strict=True)))
                writer.writerow(rows[-1])
            file.flush()
    print(report(pd.DataFrame(rows)))


if __name__ == "__main__":
    main()
