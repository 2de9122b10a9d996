"""Imputation with the class of each row known and without: root mean square errors at hidden cells.

    pip install palmerpenguins
    python bench/classes.py COMMAND [FIRST_SEED]        COMMAND: the `covary` command; five masks from this seed, 200 unless given

A fifth of the cells of penguins, iris and wine is hidden at random; errors are in standard deviations of the columns.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from palmerpenguins import load_penguins
from sklearn.datasets import load_iris, load_wine


def tables():
    penguins = load_penguins()
    yield "penguins", penguins[["species", "bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]].dropna().rename(columns={"species": "class"})
    for name, load in [("iris", load_iris), ("wine", load_wine)]:
        data = load(as_frame=True)
        yield name, data.data.assign(**{"class": [f"c{k}" for k in data.target]})


def error(command, table, hidden, options):
    numbers = table.drop(columns="class")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.csv", Path(folder) / "out.csv"
        numbers.mask(hidden).assign(**{"class": table["class"]}).to_csv(source, index=False)
        subprocess.run([command, "impute", "-q", source, "--model", "ppca", *options, "-o", target], check=True)
        filled = pd.read_csv(target)[numbers.columns].to_numpy()
    left = (filled - numbers.to_numpy()) / numbers.std(ddof=0).to_numpy()
    return np.sqrt(np.mean(left[hidden] ** 2))


def main():
    command, first = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200
    for name, table in tables():
        rows = []
        for seed in range(first, first + 5):
            rng = np.random.default_rng(seed)
            hidden = rng.random((len(table), table.shape[1] - 1)) < 0.2
            rows.append([error(command, table, hidden, []), error(command, table, hidden, ["--target", "class"])])
        without, known = np.mean(rows, axis=0)
        better = sum(k <= w for w, k in rows)
        print(f"{name}: {without:.3f} without the class, {known:.3f} with it, never worse on {better} of {len(rows)} masks", flush=True)


if __name__ == "__main__":
    main()
