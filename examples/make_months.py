"""Writes months.csv: 20 years of monthly numbers of seven stations, simulated.

Two factors with a memory of months move all stations together, each has a season of its own and noise. Some cells are
empty, half a year has none, and three months have no row. Python 3, no packages.
"""

import math
import random
from pathlib import Path

STATIONS = ["harbor", "bridge", "mill", "lake", "forest", "pass", "summit"]
MEMORY = [0.93, 0.75]
LOADINGS = [[1.4, 0.8], [1.3, 0.6], [1.2, 0.1], [1.1, -0.5], [1.0, -0.6], [0.8, -0.9], [0.7, -1.1]]
LEVEL = [14.2, 13.8, 11.9, 10.6, 9.1, 6.2, 3.4]
SEASON = [6.1, 6.6, 7.4, 8.0, 8.1, 8.5, 8.8]
NOISE = 0.6


def main() -> None:
    generator = random.Random(1981)
    factors = [generator.gauss(0, 1) for _ in MEMORY]
    lines = ["month," + ",".join(STATIONS)]
    for month in range(240):
        innovations = [generator.gauss(0, math.sqrt(1 - a * a)) for a in MEMORY]
        factors = [a * x + e for a, x, e in zip(MEMORY, factors, innovations)]
        cells = []
        for loadings, level, season in zip(LOADINGS, LEVEL, SEASON):
            wave = season * math.cos(2 * math.pi * (month - 6.5) / 12)
            value = level + wave + sum(w * x for w, x in zip(loadings, factors)) + generator.gauss(0, NOISE)
            hidden = generator.random() < 0.06 or 150 <= month < 156
            cells.append("" if hidden else f"{value:.2f}")
        if month not in (40, 41, 99):
            lines.append(f"{1981 + month // 12}-{month % 12 + 1:02d}," + ",".join(cells))
    Path(__file__).with_name("months.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
