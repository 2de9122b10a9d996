"""Covary beside its peers: ratios of processor time, fit only, one thread, at stated quality.

    python -m pip install -r bench/requirements.txt      # R with psych, if at hand
    python bench/compare.py [--only NAME]... [--json FILE] [--repeats N] [--budget SECONDS]

Every solver runs in a process of its own. See README.md for what each row means.
"""

import argparse
import contextlib
import importlib.metadata
import io
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
NEAR = 1e-4  # nats per row below the optimum that count as "there"
THREADS = {
    f"{name}_NUM_THREADS": "1"
    for name in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "VECLIB", "RAYON")
}

# name: rows, columns, q, share of gaps, family, our method, peers, required ratio
CASES = {
    "pca-100000x100": (100_000, 100, 10, 0.0, "ppca", "spectral", ["sklearn-covariance_eigh", "sklearn-arpack"], 1.0),
    "pca-10000x1000": (10_000, 1000, 20, 0.0, "ppca", "spectral", ["sklearn-covariance_eigh", "sklearn-arpack"], 1.0),
    "pca-2000x5000": (2000, 5000, 20, 0.0, "ppca", "spectral", ["sklearn-covariance_eigh", "sklearn-arpack"], 1.0),
    "gaps-20000x100": (20_000, 100, 10, 0.1, "ppca", "em", ["vbpca_py", "vbpca_py-own-stop", "ppca-rs", "rustypca"], 30.0),
    "gaps-5000x200": (5000, 200, 10, 0.3, "ppca", "em", ["vbpca_py", "vbpca_py-own-stop", "ppca-rs", "rustypca"], 30.0),
    "fa-20000x50": (20_000, 50, 5, 0.0, "fa", "newton", ["psych", "factanal", "statsmodels", "sklearn-fa-lapack", "sklearn-fa-randomized"], 3.0),
    "fa-gaps-20000x50": (20_000, 50, 5, 0.2, "fa", "em", ["rustypca", "mofapy2"], 20.0),
}
MEMORY = {  # name: rows, columns, q, gaps, method, share of the input allowed
    "memory-complete": (100_000, 100, 10, 0.0, "spectral", 0.5),
    "memory-gaps": (100_000, 100, 10, 0.1, "em", 1.0),
}
THREADED = ["gaps-20000x100", "gaps-5000x200", "fa-gaps-20000x50"]
# These never fit the mean, so with gaps they cannot reach the optimum: judged by the best they can.
FIXED_MEAN = ["rustypca", "mofapy2"]
PACKAGES = {"ppca-rs": "ppca-rs", "vbpca_py": "vbpca_py", "vbpca_py-own-stop": "vbpca_py", "rustypca": "rustypca", "mofapy2": "mofapy2", "statsmodels": "statsmodels"}


# ---------------------------------------------------------------- the tables and what is true of them


def make_table(path, n, d, q, gaps, family, seed=20240607):
    rng = np.random.default_rng(seed)
    loadings = rng.standard_normal((d, q))
    noise = rng.uniform(0.2, 1.2, d) if family == "fa" else np.ones(d)
    x = rng.standard_normal((n, q)) @ loadings.T
    x += rng.standard_normal((n, d)) * np.sqrt(noise) + rng.standard_normal(d)
    if gaps:
        x[rng.random((n, d)) < gaps] = np.nan
    x.astype("<f8").tofile(path)
    return x


def posterior(x, w, mu, psi):
    """Per row: posterior mean and covariance of the latents, and the log-density of what is seen."""
    q = w.shape[1]
    seen = ~np.isnan(x)
    centered = np.where(seen, x - mu, 0.0)
    outer = (w[:, :, None] * w[:, None, :]).reshape(len(w), q * q) / psi[:, None]
    precision = (seen.astype(float) @ outer).reshape(-1, q, q) + np.eye(q)
    b = (centered / psi) @ w
    factor = np.linalg.cholesky(precision)
    covariance = np.linalg.inv(precision)
    mean = np.einsum("nij,nj->ni", covariance, b)
    # ‖x−mu−Wz‖²_psi + ‖z‖² instead of a difference of large numbers.
    rest = np.where(seen, centered - mean @ w.T, 0.0)
    quadratic = (rest**2 / psi).sum(1) + (mean**2).sum(1)
    logdet = 2.0 * np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(1) + seen @ np.log(psi)
    return mean, covariance, -0.5 * (seen.sum(1) * math.log(2 * math.pi) + logdet + quadratic)


def blocks(x, size=5000):
    return (x[i : i + size] for i in range(0, len(x), size))


def log_likelihood(x, w, mu, psi):
    """Observed-data log-likelihood in nats per row, exact, Woodbury per row."""
    w, mu, psi = np.asarray(w), np.asarray(mu), np.broadcast_to(psi, (x.shape[1],))
    return sum(posterior(b, w, mu, psi)[2].sum() for b in blocks(x)) / len(x)


def em_step(x, w, mu, psi, family, fixed_mean=False):
    """One plain EM step for loadings and mean together; returns also the value before it."""
    d, q = w.shape
    moment, cross = np.zeros((d, (q + 1) ** 2)), np.zeros((d, q + 1))
    square, count, total = np.zeros(d), np.zeros(d), 0.0
    for b in blocks(x):
        mean, covariance, value = posterior(b, w, mu, psi)
        z = np.hstack([mean, np.ones((len(b), 1))])
        second = z[:, :, None] * z[:, None, :]
        second[:, :q, :q] += covariance
        seen = (~np.isnan(b)).astype(float)
        zeroed = np.nan_to_num(b - mu if fixed_mean else b)
        moment += seen.T @ second.reshape(len(b), -1)
        cross += zeroed.T @ z
        square += (zeroed**2).sum(0)
        count += seen.sum(0)
        total += value.sum()
    moment = moment.reshape(d, q + 1, q + 1)
    both = np.zeros((d, q + 1))
    free = q if fixed_mean else q + 1
    both[:, :free] = np.linalg.solve(moment[:, :free, :free], cross[:, :free, None])[:, :, 0]
    rest = square - (both * cross).sum(1)
    psi = rest / count if family == "fa" else np.full(d, rest.sum() / count.sum())
    return both[:, :q], mu if fixed_mean else both[:, q], psi, total / len(x)


def optimum(x, w, mu, psi, family, seconds, fixed_mean=False):
    """Polishes a fit with our own plain EM in numpy, so that "the optimum" is nobody's claim."""
    psi = np.broadcast_to(psi, (x.shape[1],)).copy()
    start, values = time.process_time(), []
    while time.process_time() - start < seconds:
        w, mu, psi, value = em_step(x, w, mu, psi, family, fixed_mean)
        values.append(value)
        if len(values) > 3 and values[-1] - values[-2] < 1e-10:
            break
    best = max(values)
    if len(values) > 3:  # what is left of a geometric series
        last, before = values[-1] - values[-2], values[-2] - values[-3]
        if 0 < last < before:
            best += last * last / (before - last)
    return best


def angle_degrees(exact, axes):
    """Largest principal angle, by its sine: arccos would lose half the digits."""
    axes = np.linalg.qr(np.asarray(axes).T)[0]
    sine = np.linalg.norm(axes - exact @ (exact.T @ axes), 2)
    return math.degrees(math.asin(min(1.0, sine)))


# ---------------------------------------------------------------- peers (each in its own process)


def peer(name, q, family, gaps):
    """`fit(x, k) -> (w, mu, psi)` or axes, and the settings `k` to try (None: no knob)."""
    if name in ("sklearn-covariance_eigh", "sklearn-arpack"):
        from sklearn.decomposition import PCA

        solver = name.removeprefix("sklearn-")
        return (lambda x, _: PCA(q, svd_solver=solver).fit(x)), (lambda m, x: {"axes": m.components_}), False
    if name.startswith("sklearn-fa-"):
        from sklearn.decomposition import FactorAnalysis

        def fit(x, k):
            # tol=0 leaves the stop to max_iter, which is swept.
            return FactorAnalysis(q, tol=0.0, max_iter=k, svd_method=name.removeprefix("sklearn-fa-"), random_state=0).fit(x)

        return fit, (lambda m, x: {"w": m.components_.T, "mu": m.mean_, "psi": m.noise_variance_}), True
    if name == "statsmodels":
        from statsmodels.multivariate.factor import Factor

        def fit(x, k):
            return Factor(x, q, method="ml").fit(opt={"gtol": 1e-8, "maxiter": k}, rng=0)

        def parts(m, x):  # fitted to the correlations: back to the columns' units
            sd = x.std(0)
            return {"w": m.loadings * sd[:, None], "mu": x.mean(0), "psi": m.uniqueness * sd**2}

        return fit, parts, True
    if name.startswith("vbpca_py"):
        from vbpca_py import VBPCA

        def fit(x, k):
            if name == "vbpca_py-own-stop":  # as a user would call it: its own rules decide
                return VBPCA(q, algorithm="ppca", random_state=0, num_cpu=1, return_diagnostics=False).fit(x)
            return VBPCA(
                q, algorithm="ppca", maxiters=k, random_state=0, num_cpu=1, runtime_tuning="off", rmsstop=None,
                minangle=0.0, niter_broadprior=0, return_diagnostics=False,
            ).fit(x)

        return fit, (lambda m, x: {"w": m.components_.T, "mu": m.mean_, "psi": m.noise_variance_}), name == "vbpca_py"
    if name == "ppca-rs":
        import ppca_rs

        def fit(x, k):
            return ppca_rs.PPCATrainer(ppca_rs.Dataset(x)).train(state_size=q, n_iters=k, quiet=True)

        return fit, (lambda m, x: {"w": m.transform, "mu": m.mean, "psi": m.isotropic_noise**2}), True
    if name == "rustypca":
        from rustypca import PPCA

        kind = "diagonal" if family == "fa" else "isotropic"

        def parts(m, x):
            return {"w": m.components_.T, "mu": m.inverse_transform(np.zeros((1, q)))[0], "psi": m.noise_variances_}

        return (lambda x, k: PPCA(q, max_iterations=k, tol=0.0, noise_type=kind).fit(x)), parts, True
    if name == "mofapy2":
        from mofapy2.run.entry_point import entry_point

        def fit(x, k):
            run = entry_point()
            run.set_data_options()
            run.set_data_matrix([[x]])
            run.set_model_options(factors=q, spikeslab_weights=False, ard_weights=False)
            # It stops one short of `iter`; the bound is not needed, so it is not computed.
            run.set_train_options(iter=k + 1, nostop=True, quiet=True, startELBO=k + 9, freqELBO=k + 9, seed=0)
            run.build()
            run.run()
            return run

        def parts(m, x):
            nodes = m.model.getNodes()
            w = nodes["W"].getExpectations()[0]["E"]
            return {"w": w, "mu": np.nanmean(x, 0), "psi": 1.0 / nodes["Tau"].getExpectations()[0]["E"][0]}

        return fit, parts, True
    raise SystemExit(f"no such peer: {name}")


def timed(fit, x, k):
    x = x.copy()
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        start = time.process_time()
        model = fit(x, k)
        return model, time.process_time() - start


def worker(order):
    """Runs one peer; for an iterative one looks for the fewest iterations that reach the optimum."""
    n, d, q = order["n"], order["d"], order["q"]
    x = np.fromfile(order["file"], "<f8").reshape(n, d)
    fit, parts, iterative = peer(order["peer"], q, order["family"], order["gaps"])
    # Imports and first-call work are not the fit.
    rng = np.random.default_rng(1)
    small = rng.standard_normal((400, q + 1)) @ rng.standard_normal((q + 1, max(30, q + 10)))
    timed(fit, small + rng.standard_normal(small.shape), 2)
    if not iterative:
        runs = [timed(fit, x, None)]
        while len(runs) < order["repeats"] and runs[0][1] < 10.0:
            runs.append(timed(fit, x, None))
        model = runs[-1][0]
        got = parts(model, x)
        if "w" in got:
            short = order["optimum"] - log_likelihood(x, **got)
            out = {"cpu": min(t for _, t in runs), "short": short, "state": "reached" if short <= NEAR else "own stop"}
            return out | {"iterations": int(model.n_iter_)}
        return {"cpu": min(t for _, t in runs), **{k: np.asarray(v).tolist() for k, v in got.items()}}
    target, budget, trail = order["optimum"], order["budget"], {}

    def attempt(k):
        model, cpu = timed(fit, x, k)
        short = target - log_likelihood(x, **parts(model, x))
        trail[k] = (short, cpu)
        print(f"  {order['peer']}: {k} iterations, {cpu:.2f} s, {short:.3g} nats/row short", file=sys.stderr)
        return short, cpu

    k, previous, state = 2, None, "reached"
    while True:
        short, cpu = attempt(k)
        if short <= NEAR:
            break
        if previous and k >= 64 and abs(trail[previous][0] - short) < 0.01 * NEAR:
            state = "plateau"
            break
        room = budget / max(cpu, 1e-3)
        if room < 1.3:
            state = "budget"
            break
        previous, k = k, max(k + 1, int(k * min(2.0, room)))
    # Bracketed: the shortfall falls geometrically, so its logarithm tells where it crosses.
    goal = NEAR if state == "reached" else trail[k][0] + NEAR
    if state != "budget":
        for turn in range(6):
            high = min(j for j in trail if trail[j][0] <= goal)
            low = max((j for j in trail if j < high), default=0)
            if low == 0 or high - low <= max(1, high // 20) or (turn and trail[high][1] > 0.3 * budget):
                break
            base = 0.0 if state == "reached" else trail[k][0] - 0.01 * NEAR
            a, b = (math.log(max(trail[j][0] - base, 1e-9)) for j in (low, high))
            crossing = low + (high - low) * (a - math.log(NEAR)) / max(a - b, 1e-9)
            guess = (low + high) // 2 if turn % 2 else math.ceil(crossing)
            attempt(min(high - 1, max(low + 1, guess)))
        k = min(j for j in trail if trail[j][0] <= goal)
    short, cpu = trail[k]
    for _ in range(order["repeats"] - 1):
        if cpu > 10.0:
            break
        cpu = min(cpu, timed(fit, x, k)[1])
    return {"cpu": cpu, "iterations": k, "short": short, "state": state, "trail": sorted((j, *v) for j, v in trail.items())}


R_SCRIPT = """
a <- commandArgs(TRUE); n <- as.integer(a[2]); d <- as.integer(a[3]); q <- as.integer(a[4])
x <- matrix(readBin(a[1], "double", n * d, endian = "little"), n, d, byrow = TRUE)
colnames(x) <- paste0("x", seq_len(d))
if (a[5] == "psych") {
  suppressMessages(library(psych))
  fit <- function() fa(x, nfactors = q, fm = "ml", rotate = "none", scores = "none", warnings = FALSE)
} else {
  fit <- function() factanal(x, q, rotation = "none", scores = "none")
}
best <- Inf
for (i in seq_len(as.integer(a[6]))) {
  t <- system.time(m <- fit()); best <- min(best, t[["user.self"]] + t[["sys.self"]])
}
cat("{\\"cpu\\": ", best, ", \\"w\\": [", paste(format(as.vector(t(unclass(m$loadings))), digits = 17), collapse = ","),
    "], \\"psi\\": [", paste(format(m$uniquenesses, digits = 17), collapse = ","), "]}\\n", sep = "")
"""


def r_peer(order, x):
    script = Path(order["file"]).with_name("peer.R")
    script.write_text(R_SCRIPT)
    args = [order["file"], order["n"], order["d"], order["q"], order["peer"], order["repeats"]]
    done = subprocess.run(
        ["Rscript", "--vanilla", str(script), *map(str, args)], env=os.environ | THREADS, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    out = json.loads(done.stdout[done.stdout.index("{") :])
    sd = x.std(0)
    w = np.array(out.pop("w")).reshape(order["d"], order["q"]) * sd[:, None]
    psi = np.array(out.pop("psi")) * sd**2
    out["short"] = order["optimum"] - log_likelihood(x, w, x.mean(0), psi)
    out["state"] = "reached" if out["short"] <= NEAR else "own stop"
    return out


def missing(name):
    if name in ("psych", "factanal"):
        if not shutil.which("Rscript"):
            return True
        ask = ["Rscript", "--vanilla", "-e", f"quit(status = !requireNamespace('{name if name == 'psych' else 'stats'}', quietly = TRUE))"]
        return subprocess.run(ask, capture_output=True).returncode != 0
    try:
        importlib.metadata.version(PACKAGES.get(name, "scikit-learn"))
    except importlib.metadata.PackageNotFoundError:
        return True
    return False


def run_peer(order, x):
    if order["peer"] in ("psych", "factanal"):
        return r_peer(order, x)
    done = subprocess.run(
        [sys.executable, __file__, "--worker", json.dumps(order)], env=os.environ | THREADS, stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{order['peer']} failed")
    return json.loads(done.stdout.splitlines()[-1])


# ---------------------------------------------------------------- ours


def build_ours():
    command = ["cargo", "build", "--release", "-p", "covary", "--example", "fit_timing", "--message-format=json"]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    messages = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    found = [m["executable"] for m in messages if m.get("executable") and m["target"]["name"] == "fit_timing"]
    return found[-1]


def ours(binary, file, n, d, q, family, method, threads=1, repeats=5, iterations=0):
    args = [binary, file, n, d, method, family, q, threads, repeats, iterations]
    env = os.environ | THREADS | {"RAYON_NUM_THREADS": str(threads)}
    done = subprocess.run([str(a) for a in args], env=env, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def ours_swept(binary, case, x, best, repeats):
    """Ours with the fewest iterations that reach the target: what the swept peers are given."""
    for k in range(1, 200):
        got = ours(binary, *case, repeats=repeats, iterations=k)
        short = best - log_likelihood(x, *(np.array(got[key]) for key in ("loadings", "mean", "noise_variances")))
        if short <= NEAR:
            return {"cpu": got["cpu"], "short": short, "quality": f"{short:.1e}", "iterations": k}
    return None


# ---------------------------------------------------------------- the report


def seconds(t):
    return f"{t:.3f}" if t < 10 else f"{t:.1f}"


def compare(binary, name, folder, options):
    n, d, q, gaps, family, method, peers, required = CASES[name]
    file = str(Path(folder) / f"{name}.f64")
    x = make_table(file, n, d, q, gaps, family)
    mine = ours(binary, file, n, d, q, family, method, repeats=options.repeats)
    record = {"case": name, "n": n, "d": d, "q": q, "gaps": gaps, "required": required, "peers": {}}
    record["ours"] = {k: mine[k] for k in ("cpu", "wall", "iterations")}
    order = {"file": file, "n": n, "d": d, "q": q, "family": family, "gaps": gaps, "repeats": options.repeats, "budget": options.budget}
    if name.startswith("pca"):
        exact = np.linalg.svd(x - x.mean(0), full_matrices=False)[2][:q].T
        record["ours"]["quality"] = f"{angle_degrees(exact, mine['components']):.1e}°"
        record["ours"]["angle"] = angle_degrees(exact, mine["components"])
    else:
        w, mu, psi = (np.array(mine[k]) for k in ("loadings", "mean", "noise_variances"))
        value = log_likelihood(x, w, mu, psi)
        order["optimum"] = max(value, optimum(x, w, mu, psi, family, options.polish))
        record["optimum"] = order["optimum"]
        if gaps:
            record["optimum_fixed_mean"] = optimum(x, w, np.nanmean(x, 0), psi, family, options.polish, True)
        record["ours"] |= {"short": order["optimum"] - value, "claimed_minus_computed": mine["loglik"] / n - value}
        record["ours"]["quality"] = f"{record['ours']['short']:.1e}"
        if method == "em":
            case = (file, n, d, q, family, method)
            record["ours_swept"] = ours_swept(binary, case, x, record["optimum"], options.repeats)
    print(f"{name}: ours {mine['cpu']:.3f} s, {record['ours']['quality']}", file=sys.stderr)
    for who in peers:
        if options.peer and who not in options.peer:
            continue
        if missing(who):
            print(f"SKIPPED peer {who}: not installed", flush=True)
            continue
        try:
            fixed = {"optimum": record["optimum_fixed_mean"]} if gaps and who in FIXED_MEAN else {}
            theirs = run_peer(order | {"peer": who} | fixed, x)
        except RuntimeError as error:
            print(f"SKIPPED peer {who}: failed: {error}", flush=True)
            continue
        if "axes" in theirs:
            theirs["angle"] = angle_degrees(exact, theirs.pop("axes"))
            theirs["quality"], theirs["state"] = f"{theirs['angle']:.1e}°", "reached"
        else:
            steps = f", {theirs['iterations']} iterations" if "iterations" in theirs else ""
            theirs["quality"] = f"{theirs['short']:.1e}{steps}"
            if fixed:
                theirs["short_of_optimum"] = theirs["short"] + record["optimum"] - fixed["optimum"]
                steps += f"; holds the mean at the column means: {theirs['short_of_optimum']:.1e} below the true optimum"
                theirs["quality"] = f"{theirs['short']:.1e} below its own optimum{steps}"
            if theirs["state"] != "reached":
                reason = {"budget": "out of budget", "plateau": "own optimum is elsewhere", "own stop": "own stop"}[theirs["state"]]
                theirs["quality"] = f"not reached ({reason}): {theirs['short']:.1e} short{steps}"
        swept = record.get("ours_swept") if "trail" in theirs else None
        theirs["against"] = "ours_swept" if swept else "ours"
        theirs["ratio"] = theirs["cpu"] / record[theirs["against"]]["cpu"]
        print(f"{name}: {who} {theirs['cpu']:.3f} s, {theirs['quality']}", file=sys.stderr)
        record["peers"][who] = theirs
    if name in THREADED and not options.peer:
        pair = [ours(binary, file, n, d, q, family, method, t, options.repeats) for t in (1, 2, 1, 2)]
        one, two = (min(p["wall"] for p in pair[i::2]) for i in (0, 1))
        record["threads"] = {"one": one, "two": two, "ratio": one / two}
    Path(file).unlink()
    return record


def memory(binary, name, folder):
    n, d, q, gaps, method, allowed = MEMORY[name]
    file = str(Path(folder) / f"{name}.f64")
    make_table(file, n, d, q, gaps, "ppca")
    got = ours(binary, file, n, d, q, "ppca", method, repeats=1)["rss_above_input"] / (8 * n * d)
    Path(file).unlink()
    return {"case": name, "share_of_input": got, "allowed": allowed}


def report(records):
    lines = [
        "| case | peer | peer s | ours s | ratio | required | peer quality | our quality |",
        "|---|---|---:|---:|---:|---:|---|---|",
    ]
    for r in (r for r in records if "peers" in r):
        fastest = min((p["cpu"] for p in r["peers"].values()), default=None)
        for who, p in r["peers"].items():
            bound = "≥ " if p["state"] == "budget" else ""
            mark = " *" if p["cpu"] == fastest else ""
            us = r[p["against"]]
            lines.append(
                f"| {r['case']} | {who}{mark} | {bound}{seconds(p['cpu'])} | {seconds(us['cpu'])} | {bound}{p['ratio']:.2f} "
                f"| {r['required']:g} | {p['quality']} | {us['quality']}, {us['iterations']} iterations |"
            )
    lines += ["", "\\* fastest peer of the case. Quality: angle to the exact subspace (pca), nats per row below the optimum (others).", ""]
    lines += ["| case | wall, 1 thread | wall, 2 threads | ratio | required |", "|---|---:|---:|---:|---:|"]
    lines += [
        f"| {r['case']} | {seconds(t['one'])} | {seconds(t['two'])} | {t['ratio']:.2f} | 1.6 |"
        for r in records
        if (t := r.get("threads"))
    ]
    lines += ["", "| case | peak above the input, in inputs | allowed |", "|---|---:|---:|"]
    lines += [f"| {r['case']} | {r['share_of_input']:.2f} | {r['allowed']:g} |" for r in records if "allowed" in r]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", help="a case, or the beginning of its name; may be repeated")
    parser.add_argument("--peer", action="append", help="only this peer; may be repeated")
    parser.add_argument("--json", help="write the raw numbers here")
    parser.add_argument("--repeats", type=int, default=5, help="the minimum of this many (slow peers: once)")
    parser.add_argument("--budget", type=float, default=90.0, help="processor seconds for the longest fit of a peer")
    parser.add_argument("--polish", type=float, default=40.0, help="processor seconds spent on finding the optimum itself")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(worker(json.loads(options.worker))))
        return
    names = [*CASES, *MEMORY]
    chosen = [c for c in names if not options.only or any(c.startswith(o) for o in options.only)]
    if not chosen:
        parser.error(f"--only: known cases are {', '.join(names)}")
    os.environ |= THREADS
    binary, records = build_ours(), []
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen:
            records.append(compare(binary, name, folder, options) if name in CASES else memory(binary, name, folder))
            if options.json:
                Path(options.json).write_text(json.dumps(records, indent=1))
    print(report(records))


if __name__ == "__main__":
    main()
