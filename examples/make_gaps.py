"""Remove about one in ten of the chemical cells of wine.csv: python3 examples/make_gaps.py (from the root)."""

import csv
import random

random.seed(2026)  # random.random() is the same generator in every Python 3
with open("examples/wine.csv", newline="") as whole, open("examples/wine_gaps.csv", "w", newline="") as gaps:
    rows = csv.reader(whole)
    out = csv.writer(gaps, lineterminator="\n")
    out.writerow(next(rows))
    for *chemistry, cultivar in rows:
        out.writerow(["" if random.random() < 0.1 else cell for cell in chemistry] + [cultivar])
