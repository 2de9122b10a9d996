"""Bayesian PCA by generic gradient-based inference beside the methods of this package, on the toy of Chen, Du & Vuyyuru 2018.

    python -m pip install numpyro
    python bench/gradients.py [--tables N] [--steps N] [--only NAME]...

100 rows of 10 columns, standard deviations 5, 4, 3, 2 in four directions (here along random axes) and 1 in the others; 9
components are allowed. Every solver runs in a process of its own on one thread; seconds are processor time of the fit, for
NumPyro with compilation. Draws of the parameters give what is compared, the covariance C = W Wᵀ + σ² I, which no rotation of
the loadings changes: the error of its posterior mean, how wide its posterior is, how many of its entries lie in their 95 %
intervals, the angle of its first four axes, and the log-density of 2000 new rows, the parameters integrated out.
"""

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

N, D, Q, KEPT = 100, 10, 9, 4
DEVIATIONS = np.array([5.0, 4.0, 3.0, 2.0] + [1.0] * 6)
DRAWS = 1000
OURS = ["structured", "mean_field", "gibbs"]
CONJUGATE = ["matrix-normal-inverse-wishart"]
GENERIC = ["advi-mean-field-latent", "advi-mean-field", "advi-full-rank", "nuts"]


def table(seed):
    """The toy, 2000 new rows, and the true covariance."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((D, D)))[0]
    root = basis * DEVIATIONS
    return rng.standard_normal((N, D)) @ root.T, rng.standard_normal((2000, D)) @ root.T, root @ root.T


def arrays_of(path):
    """The arrays and the header of a model file."""
    raw = Path(path).read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    index = json.loads(raw[8 : 8 + size])
    header = json.loads(index.pop("__metadata__")["covary"])
    body = raw[8 + size :]
    of = {
        name: np.frombuffer(body[slice(*entry["data_offsets"])], "<f8").reshape(entry["shape"])
        for name, entry in index.items()
        if entry["dtype"] == "F64"
    }
    return of, header


def ours(name, X):
    import covary

    start = time.process_time()
    model = covary.BayesianPCA(Q, inference=name, standardize=False).fit(X)
    seconds = time.process_time() - start
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.covary")
        of, header = arrays_of(Path(folder) / "model.covary")
    if "draws_loadings" in of:
        means, noise = of["draws_mean"], of["draws_noise"].ravel()
        loadings = of["draws_loadings"].reshape(len(means), D, -1)
        return loadings, means, noise, seconds
    # v_j = (w_j, mu_j) given tau is normal, its covariance `relative_covariances` over the noise; tau is Gamma.
    rng = np.random.default_rng(0)
    w, mu, psi = of["loadings"], of["mean"], of["noise_variance"].ravel()[0]
    q, shape = w.shape[1], of["noise_shape"].ravel()[0]
    lower = np.zeros((q + 1, q + 1))
    lower[np.tril_indices(q + 1)] = of["relative_covariances"].ravel()[: (q + 1) * (q + 2) // 2]
    root = np.linalg.cholesky(lower + np.tril(lower, -1).T)
    noise = shape * psi / rng.gamma(shape, size=DRAWS)
    width = np.sqrt(noise if header["uncertainty"]["coupled"] else np.full(DRAWS, psi))
    v = np.column_stack([w, mu]) + width[:, None, None] * (rng.standard_normal((DRAWS, D, q + 1)) @ root.T)
    return v[..., :q], v[..., q], noise, seconds


def conjugate(X, sweeps=2000):
    """Gibbs with the conjugate prior of (W, mu) and a full noise covariance: matrix normal given it, inverse Wishart.

        Psi ~ IW(nu, (nu - d - 1) s^2 I),  nu = d + 2        (W, mu) | Psi ~ MN(0, Psi, K^-1),  K = diag(1, ..., 1, 1e-6)

    with s^2 the mean variance of the columns. Given scores x, with z = (x, 1):

        Psi ~ IW(nu + n, Psi0 + S_tt - S_tz S_zz^-1 S_zt),  (W, mu) | Psi ~ MN(S_tz S_zz^-1, Psi, S_zz^-1),  S_zz = sum z z' + K
    """
    rng = np.random.default_rng(0)
    start = time.process_time()
    unit = np.sqrt(X.var(axis=0).mean())
    T = X / unit
    prior = np.diag(np.r_[np.ones(Q), 1e-6])
    nu = D + 2
    w, mu, psi = np.zeros((D, Q)), T.mean(axis=0), np.eye(D)
    kept = []
    for sweep in range(2 * sweeps):
        solved = np.linalg.solve(psi, w)
        root = np.linalg.cholesky(np.linalg.inv(np.eye(Q) + w.T @ solved))
        x = ((T - mu) @ solved @ root + rng.standard_normal((N, Q))) @ root.T
        z = np.column_stack([x, np.ones(N)])
        szz, stz = z.T @ z + prior, T.T @ z
        mean = np.linalg.solve(szz, stz.T).T
        scale = np.eye(D) + T.T @ T - mean @ stz.T
        # Bartlett: psi^-1 = B B' with B = scale^(-1/2)' A.
        lower = np.linalg.cholesky(np.linalg.inv(scale))
        a = np.tril(rng.standard_normal((D, D)), -1) + np.diag(np.sqrt(rng.chisquare(nu + N - np.arange(D))))
        b = lower @ a
        psi = np.linalg.inv(b @ b.T)
        drawn = mean + np.linalg.cholesky(psi) @ rng.standard_normal((D, Q + 1)) @ np.linalg.cholesky(np.linalg.inv(szz)).T
        w, mu = drawn[:, :Q], drawn[:, Q]
        if sweep >= sweeps and sweep % (sweeps // DRAWS) == 0:
            kept.append((w, mu, psi))
    seconds = time.process_time() - start
    ws, means, noises = (np.array(part) for part in zip(*kept, strict=True))
    # How much of the covariance is in the components, which factor models would like to know.
    common = np.trace(ws @ ws.transpose(0, 2, 1), axis1=1, axis2=2) / np.trace(ws @ ws.transpose(0, 2, 1) + noises, axis1=1, axis2=2)
    said = {"common": float(common.mean()), "common_spread": float(common.std())}
    return unit * ws, unit * means, unit**2 * noises, seconds, said


def generic(name, X, steps):
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS, SVI, Trace_ELBO
    from numpyro.infer.autoguide import AutoMultivariateNormal, AutoNormal

    jax.config.update("jax_enable_x64", True)
    unit = np.sqrt(X.var(axis=0).mean())
    Y = jnp.asarray(X / unit)
    latent = name.endswith("latent")

    def model():
        scale = numpyro.sample("scale", dist.HalfCauchy(1.0).expand([Q]))
        sigma = numpyro.sample("sigma", dist.HalfCauchy(1.0))
        mu = numpyro.sample("mu", dist.Normal(0.0, 10.0).expand([D]))
        # Loadings in units of their scale, which generic methods prefer.
        z = numpyro.sample("z", dist.Normal(0.0, 1.0).expand([D, Q]).to_event(2))
        w = numpyro.deterministic("w", z * scale)
        if latent:
            x = numpyro.sample("x", dist.Normal(0.0, 1.0).expand([N, Q]).to_event(2))
            numpyro.sample("t", dist.Normal(mu + x @ w.T, sigma).to_event(2), obs=Y)
        else:
            c = w @ w.T + sigma**2 * jnp.eye(D)
            with numpyro.plate("rows", N):
                numpyro.sample("t", dist.MultivariateNormal(mu, c), obs=Y)

    start, key = time.process_time(), jax.random.PRNGKey(0)
    said = {}
    if name == "nuts":
        sampler = MCMC(NUTS(model, max_tree_depth=8), num_warmup=500, num_samples=500, progress_bar=False)
        sampler.run(key, extra_fields=("diverging", "num_steps"))
        found = sampler.get_samples()
        extra = sampler.get_extra_fields()
        said = {"divergences": int(extra["diverging"].sum()), "gradients": int(extra["num_steps"].sum())}
    else:
        guide = (AutoMultivariateNormal if name == "advi-full-rank" else AutoNormal)(model, init_scale=0.1)
        run = SVI(model, guide, numpyro.optim.Adam(0.005), Trace_ELBO()).run(key, steps, progress_bar=False)
        posterior = numpyro.infer.Predictive(guide, params=run.params, num_samples=DRAWS)(jax.random.PRNGKey(1))
        posterior.pop("x", None)
        posterior["w"] = posterior["z"] * posterior["scale"][:, None, :]
        found = posterior
        # In units of the table.
        said = {"elbo": float(-run.losses[-steps // 10 :].mean() - N * D * np.log(unit))}
    draws = [np.asarray(found[part]) for part in ("w", "mu", "sigma")]
    seconds = time.process_time() - start
    return unit * draws[0], unit * draws[1], (unit * draws[2]) ** 2, seconds, said


def solve(name, seed, steps):
    X, new, truth = table(seed)
    if name in CONJUGATE:
        w, mu, noise, seconds, *said = conjugate(X)
    else:
        w, mu, noise, seconds, *said = ours(name, X) if name in OURS else generic(name, X, steps)
        noise = noise[:, None, None] * np.eye(D)
    C = w @ w.transpose(0, 2, 1) + noise
    pairs = np.tril_indices(D)
    entries = C[:, pairs[0], pairs[1]]
    low, high = np.quantile(entries, [0.025, 0.975], axis=0)
    inside = (low <= truth[pairs]) & (truth[pairs] <= high)
    axes = [np.linalg.eigh(matrix)[1][:, -KEPT:] for matrix in (C.mean(axis=0), truth)]
    cosine = np.linalg.svd(axes[0].T @ axes[1])[1].min()
    lower = np.linalg.cholesky(C)
    logs = np.empty((len(C), len(new)))
    for s in range(len(C)):
        z = np.linalg.solve(lower[s], (new - mu[s]).T)
        volume = D * np.log(2 * np.pi) + 2 * np.log(np.diag(lower[s])).sum()
        logs[s] = -0.5 * (volume + (z**2).sum(axis=0))
    top = logs.max(axis=0)
    density = (top + np.log(np.exp(logs - top).mean(axis=0))).mean()
    found = {
        "error": float(np.linalg.norm(C.mean(axis=0) - truth) / np.linalg.norm(truth)),
        "angle": float(np.degrees(np.arccos(min(1.0, cosine)))),
        "spread": float(entries.std(axis=0).mean()),
        "noise_spread": float((np.trace(noise, axis1=1, axis2=2) / D).std()),
        "covered": float(inside.mean()),
        "held_out": float(density),
        "seconds": seconds,
    }
    return {**found, **(said[0] if said else {})}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--only", action="append")
    parser.add_argument("--one", nargs=2, metavar=("NAME", "SEED"))
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(solve(asked.one[0], int(asked.one[1]), asked.steps)))
        return
    one = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1", "XLA_FLAGS": one}
    for name in asked.only or OURS + CONJUGATE + GENERIC:
        found = []
        for seed in range(1, asked.tables + 1):
            call = [sys.executable, __file__, "--one", name, str(seed), "--steps", str(asked.steps)]
            said = subprocess.run(call, env={**os.environ, **threads}, capture_output=True, text=True, check=True)
            found.append(json.loads(said.stdout.splitlines()[-1]))
        means = {key: float(np.mean([one[key] for one in found])) for key in found[0]}
        means["seconds"] = min(one["seconds"] for one in found)
        print(f"{name:24}", "  ".join(f"{key} {value:.4g}" for key, value in means.items()), flush=True)


if __name__ == "__main__":
    main()
