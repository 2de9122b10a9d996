"""The whole sea behind real masks, by the plain command: 1566 cells of 5 degrees, the months of 1951 to 1991.

    python bench/sea.py --covary target/release/covary [--models dfm,bpca] [--masks 0,1,2,3,turns]

The table is that of `covary reproduce chen-2018-fig-14-in-time`, of every cell instead of one in six: anomalies from the
climatology of 1951 to 1980, of which a mask hides the same cells in every month of 1982 to 1991, or the four masks take turns
over all months. Printed are root mean squared errors in degrees of the hidden cells of these ten years, what climatology has
there (0 in these units), and how many of them are within their 95 % intervals.
"""

import argparse
import csv
import os
import resource
import subprocess
import tempfile
from pathlib import Path

import numpy as np

MASKS = (
    "mohsst5_1991_10_observed",
    "hadcrut4_1893_08_anomaly",
    "hadcrut4_1877_09_anomaly",
    "hadsst4_member71_2014_03_anomaly",
)
MODELS = {
    "dfm": ["--model", "dfm", "--time", "month", "--season", "12", "--harmonics", "1", "--components", "30"],
    "dfm60": ["--model", "dfm", "--time", "month", "--season", "12", "--harmonics", "1"],
    "bpca": ["--model", "bpca", "--components", "30"],
    "ppca": ["--model", "ppca", "--components", "20"],
    "pca": ["--model", "pca", "--components", "20"],
}
N_MONTHS, FIRST_HIDDEN = 12 * 41, 12 * 31


def sea(folder):
    """Anomalies of months by cells, and for each mask whether it hides a cell."""
    fields = np.load(folder / "sst_cobe2_5deg" / "sst_cobe2_5deg.npz")
    maps = np.load(folder / "sst_real_masks" / "sst_real_masks.npz")
    latitude, longitude = fields["lat"].astype(float), fields["lon"].astype(float)
    place = np.rint((87.5 - latitude) / 5).astype(int), np.rint((longitude + 177.5) / 5).astype(int)
    ocean = maps["mohsst5_climatology_ocean"][place] == 1
    first = 12 * (1951 - 1850)
    values = fields["sst_centideg"][first : first + N_MONTHS, ocean] / 100.0
    climatology = values[:360].reshape(30, 12, -1).mean(0)
    anomalies = values - np.tile(climatology, (N_MONTHS // 12, 1))
    hidden = []
    for name in MASKS:
        at = maps[name][place].astype(float)[ocean]
        hidden.append(np.isnan(at) | ((at == 0) if name.endswith("observed") else False))
    return anomalies, np.array(hidden)


def setting(anomalies, hidden, mask, seed):
    """Which cells are hidden, of the columns that some month shows."""
    gaps = np.zeros(anomalies.shape, bool)
    if mask == "turns":
        gaps = hidden[np.random.default_rng(seed).integers(0, len(hidden), len(anomalies))]
    else:
        gaps[FIRST_HIDDEN:] = hidden[int(mask)]
    return anomalies[:, ~gaps.all(0)], gaps[:, ~gaps.all(0)]


def written(path, anomalies, gaps):
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["month", *(f"c{j}" for j in range(anomalies.shape[1]))])
        for i, (row, missing) in enumerate(zip(anomalies, gaps)):
            month = f"{1951 + i // 12}-{i % 12 + 1:02}"
            out.writerow([month, *("" if gone else f"{value:.4f}" for value, gone in zip(row, missing))])


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--covary", default="target/release/covary")
    arguments.add_argument("--data", type=Path, default=Path(os.environ.get("COVARY_DATA", "../shared/data")))
    arguments.add_argument("--models", default="dfm,bpca,ppca,pca")
    arguments.add_argument("--masks", default="0,1,2,3,turns")
    arguments.add_argument("--every", type=int, default=1, help="one cell in this many")
    arguments.add_argument("--seed", type=int, default=0)
    asked = arguments.parse_args()
    anomalies, hidden = sea(asked.data)
    anomalies, hidden = anomalies[:, :: asked.every], hidden[:, :: asked.every]
    print("mask,model,rmse,climatology,covered,cells,cpu_seconds", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for mask in asked.masks.split(","):
            truth, gaps = setting(anomalies, hidden, mask, asked.seed)
            table, cells = Path(folder) / "sea.csv", Path(folder) / "cells.csv"
            written(table, truth, gaps)
            judged = gaps.copy()
            judged[:FIRST_HIDDEN] = False
            for model in asked.models.split(","):
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                call = [asked.covary, "impute", table, *MODELS[model], "--no-check", "--quiet", "--id", "month"]
                if model.startswith("dfm"):
                    call = call[:-2]
                subprocess.run([*call, "--cells", cells, "-o", Path(folder) / "filled.csv"], check=True)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                errors, inside, n = 0.0, 0, 0
                with open(cells, newline="") as file:
                    for cell in csv.DictReader(file):
                        i, j = int(cell["row"]) - 1, int(cell["column"][1:])
                        if judged[i, j]:
                            value = truth[i, j]
                            errors += (float(cell["mean"]) - value) ** 2
                            inside += float(cell["lower"]) <= value <= float(cell["upper"])
                            n += 1
                assert n == judged.sum(), (n, judged.sum())
                zero = np.sqrt((truth[judged] ** 2).mean())
                print(f"{mask},{model},{np.sqrt(errors / n):.4f},{zero:.4f},{inside / n:.3f},{n},{took:.0f}", flush=True)


if __name__ == "__main__":
    main()
