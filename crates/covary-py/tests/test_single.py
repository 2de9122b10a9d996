"""Tables of single precision: read as they are, with the answers of double precision."""

from __future__ import annotations

import numpy as np
import pytest

import covary

SHAPES = [(20_000, 40, 5), (50_000, 8, 2), (1500, 300, 6), (300, 900, 6), (60, 2000, 4)]


def planted(n: int, d: int, q: int, shift: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(n, q)) @ rng.normal(size=(q, d)) + rng.normal(size=(n, d)) + shift
    return x.astype(np.float32)


def degrees(axes: np.ndarray, exact: np.ndarray) -> float:
    axes = np.linalg.qr(axes.astype(np.float64).T)[0]
    return float(np.degrees(np.arcsin(min(1.0, np.linalg.norm(axes - exact.T @ (exact @ axes), 2)))))


@pytest.mark.parametrize("shift", [0.0, 1e4])
@pytest.mark.parametrize(("n", "d", "q"), SHAPES)
def test_pca_of_float32_is_that_of_float64(n, d, q, shift):
    x = planted(n, d, q, shift)
    wide = x.astype(np.float64)
    single, double = covary.PCA(q).fit(x), covary.PCA(q).fit(wide)
    assert degrees(single.components_, double.components_) < 1e-4
    np.testing.assert_allclose(single.explained_variance_, double.explained_variance_, rtol=1e-6)
    np.testing.assert_allclose(single.noise_variance_, double.noise_variance_, rtol=1e-5)
    scores = single.transform(x)
    assert scores.dtype == single.components_.dtype == single.mean_.dtype == np.float32
    exact = double.transform(wide)
    np.testing.assert_allclose(scores, exact, atol=1e-5 * np.abs(exact).max())
    np.testing.assert_array_equal(covary.PCA(q).fit_transform(x), scores)


@pytest.mark.parametrize(("n", "d", "q"), SHAPES)
def test_the_threads_do_not_show(n, d, q):
    x = planted(n, d, q)
    found = []
    for threads in (1, 2):
        with covary.threads(threads):
            model = covary.PCA(q).fit(x)
            found.append((model._principal.components, model._principal.explained_variance, model.transform(x)))
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


def test_gaps_and_infinite_cells_are_seen_in_single_precision():
    x = planted(300, 6, 2)
    x[3, 1] = x[9, 5] = np.nan
    single, double = covary.PCA(2).fit(x), covary.PCA(2).fit(x.astype(np.float64))
    np.testing.assert_array_equal(single._principal.components, double._principal.components)
    np.testing.assert_array_equal(single.transform(x), double.transform(x.astype(np.float64)).astype(np.float32))
    x[4, 2] = np.inf
    with pytest.raises(ValueError, match="x3"):
        covary.PCA(2).fit(x)


def test_other_estimators_and_other_orders_agree():
    x = planted(2000, 12, 3)
    wide = x.astype(np.float64)
    column_major = covary.PCA(3).fit(np.asfortranarray(x))
    np.testing.assert_array_equal(column_major.components_, covary.PCA(3).fit(x).components_)
    single, double = covary.PPCA(3).fit(x), covary.PPCA(3).fit(wide)
    np.testing.assert_allclose(single.log_likelihood_, double.log_likelihood_, rtol=1e-7)
    single, double = (covary.IncrementalPCA(3, batch_size=500).fit(table) for table in (x, wide))
    assert degrees(single.components_, double.components_) < 1e-4
