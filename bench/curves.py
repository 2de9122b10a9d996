"""Functional PCA beside scikit-fda.

    pip install scikit-fda "multimethod<2"         (0.10.1 does not import with multimethod 2)
    cargo run --release -p covary --example functional_study -- write 50 DIR
    python bench/curves.py sparse DIR 10           errors of mean and eigenfunctions on the tables of DIR; the first ten by
                                                   its mixed-effects model, which takes 14 s each
    python bench/curves.py weather FILE            shares of Canadian weather, 65 Fourier functions

`sparse`: 200 curves of 5 points each; the model is that of `covary::functional::simulated`. scikit-fda decomposes curves of a grid or
of a basis. Points come to a grid of 101 by linear interpolation, constant outside the first and last point, and to ten cubic
splines by its mixed-effects model for irregular curves (`EMMixedEffectsConverter`), which borrows strength between curves.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
import skfda
from skfda.misc.operators import LinearDifferentialOperator
from skfda.misc.regularization import L2Regularization
from skfda.preprocessing.dim_reduction import FPCA
from skfda.representation.basis import BSplineBasis, FourierBasis
from skfda.representation.conversion import EMMixedEffectsConverter

GRID = np.linspace(0, 1, 101)


def truth():
    return np.array([2 * GRID + np.sin(2 * np.pi * GRID), np.sqrt(2) * np.sin(np.pi * GRID), np.sqrt(2) * np.cos(np.pi * GRID)])


def errors(fpca):
    """Mean squared errors over the grid, of mean, first and second eigenfunction."""
    functions = np.vstack([np.squeeze(fpca.mean_(GRID)), np.squeeze(fpca.components_(GRID))])
    out = []
    for k, (found, right) in enumerate(zip(functions, truth(), strict=True)):
        sign = -1 if k and found @ right < 0 else 1
        out.append(np.mean((sign * found - right) ** 2))
    return out + list(fpca.explained_variance_[:2])


def interpolated(curve, t, y):
    rows = []
    for i in range(curve.max() + 1):
        own = curve == i
        order = np.argsort(t[own])
        rows.append(np.interp(GRID, t[own][order], y[own][order]))
    return FPCA(n_components=2).fit(skfda.FDataGrid(np.array(rows), GRID))


def mixed_effects(curve, t, y):
    starts = np.flatnonzero(np.r_[True, curve[1:] != curve[:-1]])
    order = np.lexsort((t, curve))
    irregular = skfda.FDataIrregular(start_indices=starts, points=t[order], values=y[order], domain_range=(0, 1))
    basis = BSplineBasis(domain_range=(0, 1), n_basis=10)
    return FPCA(n_components=2).fit(EMMixedEffectsConverter(basis).fit_transform(irregular))


def sparse(folder, slow):
    ways = {"interpolated": interpolated, "mixed effects": mixed_effects}
    found = {name: [] for name in ways}
    seconds = dict.fromkeys(ways, 0.0)
    for i, path in enumerate(sorted(Path(folder).glob("*.csv"))):
        curve, t, y = np.genfromtxt(path, delimiter=",", skip_header=1, unpack=True)
        for name, way in ways.items():
            if name == "mixed effects" and i >= slow:
                continue
            begin = time.process_time()
            found[name].append(errors(way(curve.astype(int), t, y)))
            seconds[name] += time.process_time() - begin
    for name, rows in found.items():
        mean = np.mean(rows, axis=0)
        print(f"scikit-fda {skfda.__version__}, {name}: {len(rows)} tables, squared errors of mean, first, second "
              f"{mean[0]:.4f} {mean[1]:.4f} {mean[2]:.4f}, eigenvalues {mean[3]:.2f} {mean[4]:.2f}, {seconds[name] / len(rows):.2f} s each")


def weather(path):
    days = np.genfromtxt(path, delimiter=",", skip_header=1, dtype=str)
    with open(path) as file:
        header = file.readline().strip().split(",")
    numeric = [j for j, name in enumerate(header) if name not in ("day", "date", "")]
    table = days[:, numeric].astype(float)
    table = table.T if table.shape[0] == 365 else table
    assert table.shape == (35, 365), table.shape
    grid = skfda.FDataGrid(table, np.arange(365) + 0.5, domain_range=(0, 365))
    fourier = grid.to_basis(FourierBasis((0, 365), n_basis=65, period=365))
    # That of the example of R's pca.fd: the harmonic acceleration, times 1e5.
    harmonic = LinearDifferentialOperator([0, (2 * np.pi / 365) ** 2, 0, 1])
    smooth = L2Regularization(harmonic, regularization_parameter=1e5)
    cases = [("65 Fourier functions", fourier, None), ("the same, penalized", fourier, smooth), ("days", grid, None)]
    for name, curves, penalty in cases:
        begin = time.process_time()
        fpca = FPCA(n_components=4, regularization=penalty).fit(curves)
        print(f"scikit-fda {skfda.__version__}, {name}: shares {np.round(100 * fpca.explained_variance_ratio_, 2)}, "
              f"eigenvalues {np.round(fpca.explained_variance_, 1)}, {time.process_time() - begin:.2f} s")


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    if sys.argv[1] == "sparse":
        sparse(sys.argv[2], int(sys.argv[3]))
    else:
        weather(sys.argv[2])
