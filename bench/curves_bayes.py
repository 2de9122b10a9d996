"""Bayesian versions of functional PCA [M 2.10] in NumPy, on the tables of `functional_study write`: is there something to gain?

    python bench/curves_bayes.py DIR [TABLES]

    vb      smoothing precisions with Gamma priors, variational: q(x) q(V) q(alpha), sigma^2 at its maximum
    gibbs   the same model by Gibbs sampling
    full    coefficients of curves with a covariance of full rank, inverse-Wishart prior, by Gibbs sampling, for two scales of the prior

Two components (vb, gibbs), ten cubic splines. What is compared is that of docs/curves.md: mean squared errors of mean and
eigenfunctions over a grid of 101 times, and the share of the grid within pointwise 95 % intervals of the draws.
"""

import sys
import time
from pathlib import Path

import numpy as np
from scipy.interpolate import BSpline

GRID = np.linspace(0, 1, 101)
B, Q = 10, 2
KNOTS = np.r_[[0.0] * 3, np.linspace(0, 1, B - 2), [1.0] * 3]
TRUTH = np.array([2 * GRID + np.sin(2 * np.pi * GRID), np.sqrt(2) * np.sin(np.pi * GRID), np.sqrt(2) * np.cos(np.pi * GRID)])


def basis(t, order=0):
    return np.column_stack([BSpline(KNOTS, np.eye(B)[b], 3).derivative(order)(t) if order else BSpline(KNOTS, np.eye(B)[b], 3)(t) for b in range(B)])


NODES, WEIGHTS = np.polynomial.legendre.leggauss(5)
EDGES = np.linspace(0, 1, B - 2)
AT = np.concatenate([(a + b) / 2 + (b - a) / 2 * NODES for a, b in zip(EDGES[:-1], EDGES[1:], strict=True)])
W = np.concatenate([(b - a) / 2 * WEIGHTS for a, b in zip(EDGES[:-1], EDGES[1:], strict=True)])
GRAM = (basis(AT).T * W) @ basis(AT)
ROUGH = (basis(AT, 2).T * W) @ basis(AT, 2) + 1e-6 * np.eye(B)
HALF = np.linalg.cholesky(GRAM)
ON_GRID = basis(GRID)


def read(path):
    """Of each curve Phi'Phi and Phi'y; all y'y and the number of points; the mean is taken off."""
    curve, t, y = np.genfromtxt(path, delimiter=",", skip_header=1, unpack=True)
    curve, phi, center = curve.astype(int), basis(t), y.mean()
    n = curve.max() + 1
    gram, right = np.zeros((n, B, B)), np.zeros((n, B))
    np.add.at(gram, curve, phi[:, :, None] * phi[:, None, :])
    np.add.at(right, curve, phi * (y - center)[:, None])
    return gram, right, ((y - center) ** 2).sum(), len(y), center


def eigenfunctions(sigma):
    """Leading eigenvalues, and eigenfunctions on the grid, of covariances of coefficients."""
    values, vectors = np.linalg.eigh(HALF.T @ sigma @ HALF)
    coefficients = np.linalg.solve(HALF.T, vectors[..., ::-1][..., :Q])
    return values[..., ::-1][..., :Q], np.moveaxis(ON_GRID @ coefficients, -1, -2)


def judged(means, sigmas, noises):
    """Errors and coverage of what draws of the mean's coefficients and of the covariance say."""
    values, center = eigenfunctions(sigmas.mean(axis=0))
    _, drawn = eigenfunctions(sigmas)
    drawn = drawn * np.where((drawn * center).sum(axis=-1, keepdims=True) < 0, -1, 1)
    draws = np.concatenate([(means @ ON_GRID.T)[:, None], drawn], axis=1)
    estimate = np.vstack([draws[:, 0].mean(axis=0), center])
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    out = []
    for k in range(3):
        sign = -1 if k and estimate[k] @ TRUTH[k] < 0 else 1
        inside = (low[k] <= sign * TRUTH[k]) & (sign * TRUTH[k] <= high[k])
        out += [np.mean((sign * estimate[k] - TRUTH[k]) ** 2), inside.mean()]
    return out + list(values) + [np.mean(noises)]


def start(gram, right):
    """Ridge estimates of the coefficients of curves."""
    return np.linalg.solve(gram + 0.1 * ROUGH / np.trace(ROUGH) * B + 0.05 * np.eye(B), right[..., None])[..., 0]


def full(data, scale, sweeps=1500):
    gram, right, squares, points, center = data
    rng, n = np.random.default_rng(0), len(gram)
    nu, few = B + 2.0, 0.01
    prior = (nu - B - 1) * scale * squares / points * np.eye(B)
    c = start(gram, right)
    theta, sigma, noise = c.mean(axis=0), np.cov(c.T) + 0.1 * np.eye(B), 0.1 * squares / points
    kept = []
    for sweep in range(2 * sweeps):
        inverse = np.linalg.inv(sigma)
        precision = inverse + gram / noise
        root = np.linalg.inv(np.linalg.cholesky(precision))
        mean = np.einsum("nji,njk,nk->ni", root, root, (inverse @ theta)[None] + right / noise)
        c = mean + np.einsum("nji,nj->ni", root, rng.standard_normal((n, B)))
        bar = c.mean(axis=0)
        scatter = prior + (c - bar).T @ (c - bar) + few * n / (few + n) * np.outer(bar, bar)
        a = np.tril(rng.standard_normal((B, B)), -1) + np.diag(np.sqrt(rng.chisquare(nu + n - np.arange(B))))
        half = np.linalg.cholesky(np.linalg.inv(scatter)) @ a
        sigma = np.linalg.inv(half @ half.T)
        theta = n * bar / (few + n) + np.linalg.cholesky(sigma / (few + n)) @ rng.standard_normal(B)
        left = squares - 2 * (c * right).sum() + np.einsum("ni,nij,nj->", c, gram, c)
        noise = (1e-3 + 0.5 * left) / rng.gamma(1e-3 + 0.5 * points)
        if sweep >= sweeps:
            kept.append((theta, sigma, noise))
    means, sigmas, noises = (np.array(part) for part in zip(*kept, strict=True))
    return judged(means + center, sigmas, noises)


def smoothed(data, sample, rounds=1500):
    """Components and mean with coefficients v_r ~ N(0, 1 / (alpha_r Omega)), alpha_r ~ Gamma(1e-3, 1e-3); the mean last."""
    gram, right, squares, points, center = data
    rng, n, k = np.random.default_rng(0), len(gram), Q + 1
    c = start(gram, right)
    values, vectors = np.linalg.eigh(np.cov(c.T))
    v = np.vstack([(vectors * np.sqrt(values))[:, ::-1][:, :Q].T, c.mean(axis=0)])
    cov, alpha, noise = np.zeros((k, B, k, B)), np.full(k, 1.0), 0.1 * squares / points
    kept, last = [], None
    for turn in range(2 * rounds if sample else rounds):
        # <F'F> and <F'(y - Phi v0)> of each curve.
        both = np.einsum("rb,nbc,sc->nrs", v, gram, v)
        if not sample:
            both += np.einsum("nbc,rbsc->nrs", gram, cov)
        s = np.linalg.inv(np.eye(Q) + both[:, :Q, :Q] / noise)
        m = np.einsum("nij,nj->ni", s, np.einsum("rb,nb->nr", v[:Q], right) - both[:, :Q, Q]) / noise
        if sample:
            m = m + np.einsum("nij,nj->ni", np.linalg.cholesky(s), rng.standard_normal((n, Q)))
        z = np.column_stack([m, np.ones(n)])
        e = z[:, :, None] * z[:, None, :]
        if not sample:
            e[:, :Q, :Q] += s
        normal = np.einsum("nrs,nbc->rbsc", e, gram).reshape(k * B, k * B)
        precision = normal / noise
        for r in range(k):
            precision[r * B : r * B + B, r * B : r * B + B] += alpha[r] * ROUGH
        inverse = np.linalg.inv(precision)
        mean = inverse @ (np.einsum("nr,nb->rb", z, right).ravel() / noise)
        flat = mean + np.linalg.cholesky(inverse) @ rng.standard_normal(k * B) if sample else mean
        v, cov = flat.reshape(k, B), inverse.reshape(k, B, k, B)
        rough = np.einsum("rb,bc,rc->r", v, ROUGH, v)
        left = squares - 2 * flat @ np.einsum("nr,nb->rb", z, right).ravel() + flat @ normal @ flat
        if sample:
            alpha = rng.gamma(1e-3 + B / 2, size=k) / (1e-3 + rough / 2)
            noise = (1e-3 + left / 2) / rng.gamma(1e-3 + points / 2)
            if turn >= rounds:
                kept.append((v[Q], v[:Q].T @ v[:Q], noise))
        else:
            rough += np.einsum("rbrc,bc->r", cov, ROUGH)
            alpha = (1e-3 + B / 2) / (1e-3 + rough / 2)
            noise = (left + np.sum(normal * inverse)) / points
            now = np.r_[flat, noise]
            if last is not None and np.abs(now - last).max() < 1e-5:
                break
            last = now
    if not sample:
        root = np.linalg.cholesky(inverse)
        for _ in range(1000):
            v = (mean + root @ rng.standard_normal(k * B)).reshape(k, B)
            kept.append((v[Q], v[:Q].T @ v[:Q], noise))
    means, sigmas, noises = (np.array(part) for part in zip(*kept, strict=True))
    return judged(means + center, sigmas, noises)


def main():
    paths = sorted(Path(sys.argv[1]).glob("*.csv"))[: int(sys.argv[2]) if len(sys.argv) > 2 else 50]
    ways = {
        "vb": lambda data: smoothed(data, sample=False),
        "gibbs": lambda data: smoothed(data, sample=True),
        "full, scale 0.1": lambda data: full(data, 0.1),
        "full, scale 0.001": lambda data: full(data, 0.001),
    }
    for name, way in ways.items():
        begin = time.process_time()
        found = np.mean([way(read(path)) for path in paths], axis=0)
        seconds = (time.process_time() - begin) / len(paths)
        print(f"{name:18} errors {found[0]:.4f} {found[2]:.4f} {found[4]:.4f}  covered {found[1]:.3f} {found[3]:.3f} {found[5]:.3f}  "
              f"eigenvalues {found[6]:.2f} {found[7]:.2f}  noise {found[8]:.3f}  {seconds:.1f} s each, {len(paths)} tables", flush=True)


if __name__ == "__main__":
    main()
