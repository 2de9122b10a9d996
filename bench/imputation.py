"""A tournament of imputers on real tables: errors, CRPS, coverage and processor time, beside version 0.1.0's default.

    python -m pip install . -r bench/requirements.txt        # for R's peers: mice, Amelia, pcaMethods
    python bench/imputation.py --raw bench/imputation-results.csv --markdown results.md
    python bench/imputation.py --smoke                       # two tables, seconds
    python bench/imputation.py --peers KNNImputer --tables fresh --seeds 1 --mechanisms MAR --raw raw.csv

Every call runs in a process of its own, on one thread, with at most `--limit` seconds of processor time. Results are
appended to `--raw` one by one, and what is there already is not run again. What is measured, and how, is in
docs/imputation.md.
"""

import os

for variable in ("OMP", "OPENBLAS", "MKL", "RAYON", "NUMEXPR"):
    os.environ[f"{variable}_NUM_THREADS"] = "1"

import argparse
import csv
import importlib
import importlib.metadata
import itertools
import multiprocessing
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import typing
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

import tables

HERE = Path(__file__).resolve().parent
LEVELS = (0.5, 0.8, 0.95)
QUANTILES = (np.arange(60) + 0.5) / 60
REFERENCE, OURS = "covary 0.1.0", "covary"
TREES = int(os.environ.get("TREES", 100))
SCORES = ("rmse", "mae", "crps")
FIELDS = ["table", "rows", "columns", "mechanism", "seed", "method", "status", "cells", *SCORES]
FIELDS += [*(f"inside{100 * level:.0f}" for level in LEVELS), "unfilled", "seconds"]

# ---------------------------------------------------------------- the contenders
# Each takes a table with gaps and a seed, and returns the filled table and what says how certain it is, if anything:
# `Distributions`, an array of draws, or a dictionary of intervals at some levels.


class Distributions(typing.NamedTuple):
    """What our imputer knows of each gap: intervals, and quantiles, which differ in columns of whole numbers."""

    interval: typing.Callable
    quantile: typing.Callable


def ours(*words, **options):
    def fill(x, seed):
        import covary  # here and below: a peer that is not installed must not stop the others

        imputer = covary.Imputer(*words, random_state=seed, **options)
        return imputer.fit_transform(x), Distributions(lambda level: imputer.interval(x, level), lambda q: imputer.quantile(x, q))

    return fill


def by_command(model):
    """Mixtures, which `Imputer` does not take: the command's intervals at its default level."""

    def fill(x, seed):
        with tempfile.TemporaryDirectory() as folder:
            given, cells, filled = (Path(folder) / f"{name}.csv" for name in ("given", "cells", "filled"))
            pd.DataFrame(x).add_prefix("c").to_csv(given, index=False)
            words = ["covary", "impute", given, "--model", model, "--seed", str(seed), "--threads", "1", "--no-check", "--quiet"]
            start = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            said = subprocess.run([*words, "--cells", cells, "-o", filled], capture_output=True, text=True)
            fill.seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - start
            if said.returncode:
                raise RuntimeError(said.stderr.strip().splitlines()[-1])
            found, cells = pd.read_csv(filled).to_numpy(float), pd.read_csv(cells)
        at = cells["row"].to_numpy() - 1, cells["column"].str[1:].astype(int).to_numpy()
        ends = np.full((2, *x.shape), np.nan)
        ends[:, *at] = cells[["lower", "upper"]].to_numpy().T
        return found, {0.95: ends}

    return fill


def standardized(fill):
    """For peers that do not scale columns themselves."""

    def scaled(x, seed):
        mean, sd = np.nanmean(x, 0), np.nanstd(x, 0)
        sd = np.where(sd > 0, sd, 1)
        return mean + sd * fill((x - mean) / sd, seed), None

    return scaled


@standardized
def knn(x, seed):
    from sklearn.impute import KNNImputer

    return KNNImputer().fit_transform(x)


def iterative(estimator=None, **options):
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    return IterativeImputer(estimator, **options)


@standardized
def bayesian_ridge(x, seed):
    return iterative(random_state=seed).fit_transform(x)


@standardized
def extra_trees(x, seed):
    from sklearn.ensemble import ExtraTreesRegressor

    trees = ExtraTreesRegressor(n_estimators=TREES, random_state=seed)
    return iterative(trees, max_iter=5, random_state=seed).fit_transform(x)


@standardized
def miss_forest(x, seed):
    """Stekhoven and Bühlmann (2012): forests column by column until two rounds differ more than the last two did."""
    from sklearn.ensemble import RandomForestRegressor

    missing = np.isnan(x)
    filled, change = np.where(missing, 0.0, x), np.inf
    for _ in range(10):
        last = filled.copy()
        for j in np.argsort(missing.sum(0), kind="stable"):
            if missing[:, j].any():
                forest = RandomForestRegressor(TREES, max_features=max(1, int(np.sqrt(x.shape[1]))), random_state=seed)
                others = np.delete(filled, j, 1)
                forest.fit(others[~missing[:, j]], x[~missing[:, j], j])
                filled[missing[:, j], j] = forest.predict(others[missing[:, j]])
        before, change = change, ((filled - last) ** 2).sum() / (filled**2).sum()
        if change >= before:
            return last
    return filled


def chosen(x, seed, candidates, fill):
    """The candidate that predicts a tenth of the observed cells best, on the whole table."""
    rng = np.random.default_rng(seed)
    hidden = ~np.isnan(x) & (rng.random(x.shape) < 0.1)
    hidden[np.isnan(x).sum(1) + hidden.sum(1) == x.shape[1]] = False
    less = np.where(hidden, np.nan, x)
    errors = [np.mean((fill(less, candidate) - x)[hidden] ** 2) for candidate in candidates]
    return fill(x, candidates[int(np.argmin(errors))])


@standardized
def soft_impute(x, seed):
    """Mazumder, Hastie and Tibshirani (2010): singular values shrunk by λ, over and over."""

    def fill(x, shrink):
        missing = np.isnan(x)
        filled = np.where(missing, 0.0, x)
        for _ in range(200):
            u, s, v = np.linalg.svd(filled, full_matrices=False)
            new = np.where(missing, (u * np.maximum(s - shrink * np.sqrt(len(x)), 0)) @ v, x)
            change, filled = np.mean((new - filled) ** 2), new
            if change < 1e-8:
                break
        return filled

    return chosen(x, seed, [1.5, 1.0, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05], fill)


@standardized
def ppca_rs(x, seed):
    import ppca_rs as package

    def fill(x, n_components):
        data = package.Dataset(x)
        model = package.PPCATrainer(data).train(state_size=n_components, n_iters=50, quiet=True)
        return np.where(np.isnan(x), model.extrapolate(data).numpy(), x)

    return chosen(x, seed, [q for q in (1, 2, 3, 5, 8, 12, 20) if q < min(x.shape)], fill)


def gcimpute(x, seed):
    np.round_ = np.round  # its last version calls it by the name that NumPy 2 dropped
    from gcimpute.gaussian_copula import GaussianCopula

    model = GaussianCopula(random_state=seed)
    filled = model.fit_transform(X=x)
    return filled, np.moveaxis(model.sample_imputation(num=20), -1, 0)


def miceforest(x, seed):
    import miceforest as package

    frame = pd.DataFrame(x, columns=[f"c{j}" for j in range(x.shape[1])])
    kernel = package.ImputationKernel(frame, num_datasets=5, random_state=seed)
    kernel.mice(5, num_threads=1)
    draws = np.array([kernel.complete_data(k).to_numpy() for k in range(5)])
    return draws.mean(0), draws


def in_r(method, rows=None):
    """`rows` are those of one table where several stand one below the other: their draws follow each other."""

    def fill(x, seed):
        with tempfile.TemporaryDirectory() as folder:
            given, drawn = Path(folder) / "table.csv", Path(folder) / "draws.csv"
            pd.DataFrame(x).to_csv(given, header=False, index=False, na_rep="NA")
            words = ["Rscript", HERE / "imputation.R", method, given, drawn, str(seed), str(rows or len(x))]
            said = subprocess.run(words, capture_output=True, text=True)
            if said.returncode:
                words = [line for line in said.stderr.splitlines() if line.strip() and line != "Execution halted"]
                raise RuntimeError((words or [f"signal {-said.returncode}"])[-1])
            draws = pd.read_csv(drawn, header=None).to_numpy(float).reshape(-1, rows or len(x), x.shape[1])
        fill.seconds = float(said.stdout.split()[-1])
        return draws.mean(0), draws if len(draws) > 1 else None

    return fill


# name: how to fill, and the module or R package that does it
CONTENDERS = {
    REFERENCE: (ours("gaussian", calibrate=False, bounds=None), "covary"),
    OURS: (ours(), "covary"),
    "covary, no bounds": (ours(bounds=None), "covary"),
    "covary ppca": (ours("ppca"), "covary"),
    "covary fa": (ours("fa"), "covary"),
    "covary bpca": (ours("bpca"), "covary"),
    "covary mppca": (by_command("mppca"), "command:covary"),
    "covary gmm": (by_command("gmm"), "command:covary"),
    "IterativeImputer": (bayesian_ridge, "sklearn.experimental.enable_iterative_imputer"),
    "IterativeImputer trees": (extra_trees, "sklearn.ensemble"),
    "KNNImputer": (knn, "sklearn.impute"),
    "missForest": (miss_forest, "sklearn.ensemble"),
    "softImpute": (soft_impute, "numpy"),
    "ppca-rs": (ppca_rs, "ppca_rs"),
    "gcimpute": (gcimpute, "gcimpute.gaussian_copula"),
    "miceforest": (miceforest, "miceforest"),
    "mice norm": (in_r("mice norm"), "R:mice"),
    "mice pmm": (in_r("mice pmm"), "R:mice"),
    "Amelia": (in_r("Amelia"), "R:Amelia"),
    "pcaMethods bpca": (in_r("pcaMethods bpca"), "R:pcaMethods"),
}


def installed(package):
    """Imports a module before the clock starts: every call is a copy of this process."""
    if package.startswith("command:"):
        return shutil.which(package.removeprefix("command:")) is not None
    if package.startswith("R:"):
        ask = f'quit(status = !requireNamespace("{package[2:]}", quietly = TRUE))'
        return shutil.which("Rscript") is not None and not subprocess.run(["Rscript", "-e", ask], capture_output=True).returncode
    try:
        importlib.import_module(package)
    except ImportError:
        return False
    return True


# ---------------------------------------------------------------- scores


def crps_of_quantiles(q, y):
    """`q` has the quantiles at the middles of as many equal steps of probability."""
    k = len(q)
    weights = (2 * np.arange(1, k + 1) - k - 1) / k**2
    return np.abs(q - y).mean(0) - weights @ q


def crps_of_draws(draws, y):
    """Without bias for any number of draws (Ferro 2014): what infinitely many would score."""
    m = len(draws)
    weights = (2 * np.arange(1, m + 1) - m - 1) / (m * (m - 1))
    return np.abs(draws - y).mean(0) - weights @ np.sort(draws, 0)


def interval_of_draws(draws, level):
    """Between order statistics that cover one draw more with probability `level`; Student's t where there are none."""
    m, tail = len(draws), (1 - level) / 2
    if tail * (m + 1) >= 1:
        return np.quantile(draws, [tail, 1 - tail], axis=0, method="weibull")
    reach = stats.t.ppf(1 - tail, m - 1) * draws.std(0, ddof=1) * np.sqrt(1 + 1 / m)
    return draws.mean(0) - reach, draws.mean(0) + reach


def score(x, missing, filled, certain):
    """Scores over the gaps, in standard deviations of the column. A gap left open counts as the column's mean."""
    at = np.nonzero(missing)
    sd = x.std(0)[at[1]]
    y, mean = x[at] / sd, np.nanmean(np.where(missing, np.nan, x), 0)[at[1]] / sd
    found = np.asarray(filled)[at] / sd
    open_ = ~np.isfinite(found)
    error = np.where(open_, mean, found) - y
    scores = {"cells": len(y), "unfilled": int(open_.sum())}
    scores |= {"rmse": np.sqrt(np.mean(error**2)), "mae": np.abs(error).mean()}
    if certain is None:
        return scores
    crps = np.array(np.nan)
    if isinstance(certain, dict):
        ends = {level: [end[at] / sd for end in pair] for level, pair in certain.items()}
    elif isinstance(certain, Distributions):
        ends = {level: [end[at] / sd for end in certain.interval(level)] for level in LEVELS}
        crps = crps_of_quantiles(np.array([certain.quantile(p)[at] / sd for p in QUANTILES]), y)
    else:
        draws = np.array([draw[at] for draw in certain]) / sd
        spread = stats.norm.ppf((np.arange(len(draws)) + 0.5) / len(draws))
        draws = np.where(np.isfinite(draws), draws, mean + spread[:, None])
        ends = {level: interval_of_draws(draws, level) for level in LEVELS}
        crps = crps_of_draws(draws, y)
    slack = 1e-9 * (1 + np.abs(y))  # a closed interval, up to rounding
    scores["crps"] = crps.mean()
    for level in set(LEVELS) & set(ends):
        lower, upper = ends[level]
        scores[f"inside{100 * level:.0f}"] = int(((lower - slack <= y) & (y <= upper + slack)).sum())
    return scores


# ---------------------------------------------------------------- one call


def attempt(pipe, method, x, missing, seed, limit):
    """In a process of its own: fills, scores, and sends what came of it."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))
    warnings.simplefilter("ignore")
    fill, _ = CONTENDERS[method]
    given = np.where(missing, np.nan, x)
    with open(os.devnull, "w") as nowhere:
        sys.stdout = nowhere
        try:
            start = time.process_time()
            filled, certain = fill(given, seed)
            spent = getattr(fill, "seconds", time.process_time() - start)
            pipe.send({"status": "ok", "seconds": spent} | score(x, missing, filled, certain))
        except Exception as error:  # noqa: BLE001  a failure of any kind is a result
            pipe.send({"status": f"{type(error).__name__}: {error}".replace("\n", " ").replace("#", " ")[:200]})


def run(method, x, missing, seed, limit):
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=attempt, args=(there, method, x, missing, seed, limit))
    process.start()
    there.close()
    try:
        # The limit is of processor time, which a busy machine gives slowly.
        found = here.recv() if here.poll(200 * limit) else {"status": "time"}
    except EOFError:
        found = {"status": "time" if process.exitcode in (None, -24) else f"exit {process.exitcode}"}
    process.kill()
    process.join()
    if "signal 24" in found["status"] or "signal 9" in found["status"]:
        found["status"] = "time"
    return found


def version(package):
    """Of a module or an R package, as text."""
    if package.startswith("command:"):
        words = [package.removeprefix("command:"), "--version"]
    elif package.startswith("R:"):
        words = ["Rscript", "-e", f'cat("{package[2:]}", as.character(packageVersion("{package[2:]}")))']
    else:
        name = {"sklearn": "scikit-learn", "ppca_rs": "ppca-rs"}.get(package.split(".")[0], package.split(".")[0])
        return f"{name} {importlib.metadata.version(name)}"
    return subprocess.run(words, capture_output=True, text=True).stdout.strip()


def heading(methods):
    """A line of comment for the file of results: when, and by which versions, the rows below it came to be."""
    found = sorted({version(CONTENDERS[method][1]) for method in methods})
    trees = f"; {TREES} trees" if {"IterativeImputer trees", "missForest"} & set(methods) else ""
    return f"# {time.strftime('%Y-%m-%d', time.gmtime())}: {', '.join(methods)} ({', '.join(found)}{trees})\n"


def read(raw):
    """Results so far, with the list that each table is of."""
    if not raw.exists() or not raw.stat().st_size:
        return pd.DataFrame(columns=["tables", *FIELDS])
    found = pd.read_csv(raw, comment="#")
    return found.assign(tables=found["table"].map(tables.list_of))


def tournament(names, mechanisms, kinds, seeds, methods, raw, limit):
    """Runs what `raw` does not have yet of the masks that `seeds` gives a method, and returns all of it that was asked for."""
    done = read(raw)
    have = set(zip(done["table"], done["mechanism"], done["seed"], done["method"], strict=True))
    with raw.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not raw.stat().st_size:
            writer.writeheader()
        headed = False
        rounds = itertools.product(range(max(map(seeds, methods))), range(kinds), enumerate(names))
        for seed, turn, (place, name) in rounds:  # a run that is interrupted has as many masks of each kind
            mechanism = mechanisms[(place + turn) % len(mechanisms)]
            due = [m for m in methods if (name, mechanism, seed, m) not in have and seed < seeds(m)]
            try:
                x = tables.table(name)
            except tables.Absent as absent:
                print(f"SKIPPED table {name}: {absent}", file=sys.stderr)
                continue
            missing = tables.gaps(x, mechanism, name, seed)
            for method in due:
                if not headed:
                    file.write(heading(methods))
                    headed = True
                row = {"table": name, "rows": len(x), "columns": x.shape[1], "mechanism": mechanism, "seed": seed, "method": method}
                row |= run(method, x, missing, seed, limit)
                writer.writerow({field: f"{value:.6g}" if isinstance(value, float) else value for field, value in row.items()})
                file.flush()
    found = read(raw)
    asked = found["table"].isin(names) & found["mechanism"].isin(mechanisms) & found["method"].isin(methods)
    return found[asked & (found["seed"] < found["method"].map(seeds))]


# ---------------------------------------------------------------- what the page says


def geometric(logs, rng):
    """Geometric mean over tables and a 90 % bootstrap interval over tables, as text."""
    logs = np.asarray(logs)
    means = logs[rng.integers(len(logs), size=(2000, len(logs)))].mean(1)
    low, high = np.exp(np.quantile(means, [0.05, 0.95]))
    return f"{np.exp(logs.mean()):.3f} [{low:.3f}, {high:.3f}]"


def by_table(found, method, what):
    """Logarithm of the ratio to the reference, averaged over the masks of each table that both have."""
    wide = found.pivot_table(index=["table", "mechanism", "seed"], columns="method", values=what)
    if method not in wide or REFERENCE not in wide:
        return pd.Series(dtype=float)
    return np.log(wide[method] / wide[REFERENCE]).dropna().groupby("table").mean()


def ranks(found, what):
    """Mean rank of ours and of peers over masks that all of them were given; a failure is last."""
    field = found[(found["method"] == OURS) | ~found["method"].str.startswith("covary")]
    able = field.groupby("method")[what].transform("count") > 0
    wide = field[able].assign(**{what: field.loc[able, what].fillna(np.inf)})
    wide = wide.pivot_table(index=["table", "mechanism", "seed"], columns="method", values=what).dropna()
    return wide.rank(axis=1).mean(), len(wide)


def ratios(found, methods, rng):
    rank = {what: ranks(found, what) for what in SCORES}
    out = [f"| method | RMSE | MAE | CRPS | tables won : lost | mean rank ({rank['rmse'][1]} masks) | failed | median s |"]
    out += ["| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for method in methods:
        mine = found[found["method"] == method]
        logs = {what: by_table(found, method, what) for what in SCORES}
        cells = [geometric(logs[what], rng) if len(logs[what]) else "" for what in SCORES]
        if method == REFERENCE:
            cells = ["1", "1", "1"]
        rmse = logs["rmse"]
        won = f"{(rmse < -0.005).sum()} : {(rmse > 0.005).sum()} of {len(rmse)}"
        failed, late = (~mine["status"].isin(["ok", "time"])).sum(), (mine["status"] == "time").sum()
        said = f"{failed + late} of {len(mine)}" + (f", {late} by time" if late else "")
        place = ", ".join(f"{mean[method]:.2f}" for mean, _ in rank.values() if method in mean)
        out.append(f"| {method} | {' | '.join(cells)} | {won} | {place} | {said} | {mine['seconds'].median():.3g} |")
    return out


def by_mechanism(found, methods, rng):
    out = ["| gaps | method | RMSE | MAE | CRPS |", "| --- | --- | --- | --- | --- |"]
    for mechanism in tables.MECHANISMS:
        part = found[found["mechanism"] == mechanism]
        for method in methods:
            logs = [by_table(part, method, what) for what in SCORES]
            if all(map(len, logs)):
                out.append(f"| {mechanism} | {method} | " + " | ".join(geometric(each, rng) for each in logs) + " |")
    return out


def coverage(found, methods, rng):
    """Masks of a table pooled: mean coverage over tables, and the share of tables near each level."""
    inside, near = [f"inside{100 * level:.0f}" for level in LEVELS], ((0.95, 2), (0.5, 4))
    kinds = [m for m in tables.MECHANISMS if m in set(found["mechanism"])]
    head = [f"| {' | '.join(['method', *kinds])} |", "| --- " * (1 + len(kinds)) + "|"]
    means, shares = [], []
    for method in methods:
        mean, share = [method], [method]
        for kind in kinds:
            part = found[(found["mechanism"] == kind) & (found["method"] == method) & found["inside95"].notna()]
            pooled = part.groupby("table")[["cells", *inside]].sum(min_count=1)
            rate = dict(zip(LEVELS, 100 * pooled[inside].to_numpy().T / pooled["cells"].to_numpy(), strict=True))
            known = [level for level in LEVELS if np.isfinite(rate[level]).all()]
            mean.append(" / ".join(f"{rate[level].mean():.1f}" for level in known) if len(part) else "")
            hits = [f"{100 * np.mean(np.abs(rate[level] - 100 * level) <= points):.0f}" for level, points in near if level in known]
            share.append(f"{', '.join(hits)} %" if len(part) else "")
        means.append(f"| {' | '.join(mean)} |")
        shares.append(f"| {' | '.join(share)} |")
    perfect = ["*intervals of exactly their level*"]
    for kind in kinds:  # binomial noise alone, on the cells of ours
        n = found[(found["mechanism"] == kind) & (found["method"] == OURS)].groupby("table")["cells"].sum().to_numpy().astype(int)
        hits = [np.abs(rng.binomial(n, level, (2000, len(n))) / n - level) <= points / 100 for level, points in near]
        perfect.append(f"{', '.join(f'{100 * each.mean():.0f}' for each in hits)} %")
    title = "Coverage of 50, 80 and 95 % intervals, in %, mean over tables:"
    second = "Tables whose coverage is within 2 points of 95 %, and within 4 points of 50 %:"
    return [title, "", *head, *means, "", second, "", *head, *shares, f"| {' | '.join(perfect)} |"]


def each_table(found):
    """Ours beside the reference and the best peer, worst table first."""
    out = ["| table | size | RMSE | CRPS | best peer, RMSE | s |", "| --- | --- | --- | --- | --- | --- |"]
    mine = {what: np.exp(by_table(found, OURS, what)) for what in ("rmse", "crps")}
    peers = [m for m in found["method"].unique() if not m.startswith("covary")]
    theirs = pd.DataFrame({m: np.exp(by_table(found, m, "rmse")) for m in peers})
    for name in mine["rmse"].sort_values(ascending=False).index:
        part = found[(found["table"] == name) & (found["method"] == OURS)]
        best = theirs.loc[name].dropna() if name in theirs.index else theirs
        peer = f"{best.idxmin()} {best.min():.3f}" if len(best) else ""
        size = f"{part['rows'].iloc[0]} × {part['columns'].iloc[0]}"
        cells = f"{mine['rmse'][name]:.3f} | {mine['crps'][name]:.3f} | {peer} | {part['seconds'].median():.2g}"
        out.append(f"| {name.split('/', 1)[1]} | {size} | {cells} |")
    return out


def report(found, methods, seeds):
    """`seeds` is the number of masks that peers have too: errors are compared on these."""
    rng = np.random.default_rng(0)
    certain = [m for m in methods if found.loc[found["method"] == m, "inside95"].notna().any()]
    out = []
    for which in tables.LISTS:
        part = found[found["tables"] == which]
        if part.empty:
            continue
        shared = part[part["seed"] < seeds]
        masks = [each.groupby(["table", "mechanism", "seed"]).ngroups for each in (shared, part)]
        title = f"### {which.capitalize()} tables: {part['table'].nunique()}, {masks[0]} masks"
        title += f", {masks[1]} for the coverage of ours" if masks[1] > masks[0] else ""
        out += [title, "", *ratios(shared, methods, rng), "", *by_mechanism(shared, [OURS], rng), ""]
        out += [*coverage(part, certain, rng), "", *each_table(shared), ""]
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", nargs="*", default=list(CONTENDERS), help="methods by name")
    parser.add_argument("--tables", nargs="*", default=list(tables.LISTS), help=f"{', '.join(tables.LISTS)}, or parts of names")
    parser.add_argument("--mechanisms", nargs="*", default=list(tables.MECHANISMS), help="parts of names: MCAR, MAR, …")
    parser.add_argument("--kinds", type=int, default=len(tables.MECHANISMS), help="how many of these a table gets, taking turns")
    parser.add_argument("--seeds", type=int, default=2, help="masks of each kind for every table")
    parser.add_argument("--own-seeds", type=int, help="as many for ours, ours without bounds and the reference, for their coverage")
    parser.add_argument("--limit", type=float, default=60, help="seconds of processor time for one call")
    parser.add_argument("--raw", type=Path, help="CSV of every call; what it has is not run again")
    parser.add_argument("--markdown", type=Path, help="write the tables of the report here instead of standard output")
    parser.add_argument("--smoke", action="store_true", help="two small tables, one mask of each kind, fast peers")
    asked = parser.parse_args()
    if asked.smoke:
        asked.tables, asked.seeds, asked.peers = ["HSAUR/skulls", "sklearn/iris"], 1, [REFERENCE, OURS, "KNNImputer", "IterativeImputer"]
    own = {method: max(asked.seeds, asked.own_seeds or 0) for method in (REFERENCE, OURS, "covary, no bounds")}
    names = [n for n in tables.EVERY if any(n in tables.LISTS.get(t, ()) or (t not in tables.LISTS and t in n) for t in asked.tables)]
    mechanisms = [m for m in tables.MECHANISMS if any(m.startswith(a) for a in asked.mechanisms)]
    unknown = set(asked.peers) - set(CONTENDERS)
    if unknown or not names or not mechanisms:
        parser.error(f"known peers: {', '.join(CONTENDERS)}; kinds of gaps: {', '.join(tables.MECHANISMS)}; tables: {', '.join(tables.EVERY)}")
    methods = []
    for method in CONTENDERS:
        if method not in asked.peers:
            continue
        if installed(CONTENDERS[method][1]):
            methods.append(method)
        else:
            print(f"SKIPPED peer {method}: {CONTENDERS[method][1].split(':')[-1]} is not installed", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        raw = asked.raw or Path(folder) / "raw.csv"
        found = tournament(names, mechanisms, min(asked.kinds, len(mechanisms)), lambda method: own.get(method, asked.seeds), methods, raw, asked.limit)
    text = report(found, methods, asked.seeds)
    asked.markdown.write_text(text) if asked.markdown else print(text)


if __name__ == "__main__":
    main()
