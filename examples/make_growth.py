"""Writes growth.csv: heights of 60 children at a few ages each, simulated.

Every child has a height of its own and a spurt that comes early or late; ages are irregular, four to nine for each
child, and some heights are empty. Python 3, no packages.
"""

import math
import random
from pathlib import Path


def height(age: float, size: float, delay: float) -> float:
    spurt = 1 / (1 + math.exp(-1.1 * (age - 12.5 - delay)))
    early = 1 - math.exp(-0.28 * age)
    return (70 + 78 * early + 30 * spurt) * (1 + 0.035 * size)


def main() -> None:
    generator = random.Random(1954)
    lines = ["child,age,height"]
    for child in range(1, 61):
        size, delay = generator.gauss(0, 1), generator.gauss(0, 1)
        ages = sorted({round(generator.uniform(1, 18), 1) for _ in range(generator.randint(4, 9))})
        for age in ages:
            value = height(age, size, delay) + generator.gauss(0, 0.7)
            hidden = generator.random() < 0.05
            lines.append(f"c{child:02},{age},{'' if hidden else round(value, 1)}")
    Path(__file__).with_name("growth.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
