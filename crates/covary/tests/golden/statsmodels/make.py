"""Reference numbers of statsmodels' state space models: `python make.py` writes state_space.json.

Parameters and tables are drawn here, rounded, and evaluated: log-density of every row given those before it, smoothed
states, rows to come. `fits` has complete tables and the largest log-likelihood that `DynamicFactor` finds.
"""

import json
import platform

import numpy as np
import scipy
import statsmodels
from statsmodels.tsa.statespace.dynamic_factor import DynamicFactor
from statsmodels.tsa.statespace.mlemodel import MLEModel

STEPS = 3


def regressors(kind, times):
    if kind == "indicators":
        return np.array([[float(t % 4 == s) for s in range(4)] for t in times])
    if kind == "harmonics":
        return np.array([[1.0, np.cos(2 * np.pi * (t % 6) / 6), np.sin(2 * np.pi * (t % 6) / 6)] for t in times])
    return np.ones((len(times), 1))


def evaluated(name, seed, d, k, p, n, kind):
    rng = np.random.default_rng(seed)
    r = regressors(kind, [0]).shape[1]
    a = np.round(rng.normal(size=(k, k * p)) * 0.45 / np.sqrt(k * p), 4)
    root = rng.normal(size=(k, k))
    q = np.round(root @ root.T + 0.2 * np.eye(k), 4)
    w, b = np.round(rng.normal(size=(d, k)), 4), np.round(rng.normal(size=(d, r)), 4)
    psi = np.round(0.1 + rng.random(d), 4)
    table = np.round(2 * rng.normal(size=(n, d)), 3)
    table[rng.random((n, d)) < 0.3] = np.nan
    table[[7, 8, 9, 20]] = np.nan
    states = k * p
    t = np.zeros((states, states))
    t[:k], t[k:, : k * (p - 1)] = a, np.eye(k * (p - 1))
    model = MLEModel(table, k_states=states, k_posdef=k)
    model["transition"], model["selection"], model["state_cov"] = t, np.eye(states, k), q
    model["design"], model["obs_cov"] = np.hstack([w, np.zeros((d, states - k))]), np.diag(psi)
    model["obs_intercept"] = (regressors(kind, range(n)) @ b.T).T
    model.ssm.initialize_stationary()
    model.ssm.tolerance = 0  # every covariance on its own, never a steady state
    found = model.ssm.smooth()
    ahead = found.predict(
        end=n + STEPS,
        obs_intercept=np.hstack([(regressors(kind, range(n, n + STEPS)) @ b.T).T]),
    )
    cell = lambda v: None if np.isnan(v) else float(v)
    return {
        "name": name, "season": kind, "A": a.tolist(), "Q": q.tolist(), "W": w.tolist(), "B": b.tolist(),
        "psi": psi.tolist(), "data": [[cell(v) for v in row] for row in table],
        "log_density": found.llf_obs.tolist(),
        "smoothed": found.smoothed_state.T[:, :k].tolist(),
        "forecast": ahead.forecasts.T[-STEPS:].tolist(),
        "forecast_variance": [np.diag(c).tolist() for c in ahead.forecasts_error_cov.transpose(2, 0, 1)[-STEPS:]],
    }


def fitted(seed, d, k, n):
    rng = np.random.default_rng(seed)
    w, x, rows = rng.normal(size=(d, k)), np.zeros(k), []
    for _ in range(n):
        x = 0.8 * x + 0.6 * rng.normal(size=k)
        rows.append(1 + w @ x + 0.5 * rng.normal(size=d))
    table = np.round(rows, 3)
    model = DynamicFactor(table, k_factors=k, factor_order=1, exog=np.ones(n), error_cov_type="diagonal")
    best, start = -np.inf, None
    for _ in range(6):
        found = model.fit(start_params=start, method="lbfgs", maxiter=2000, pgtol=1e-9, factr=1.0, disp=False)
        start, gain, best = found.params, found.llf - best, max(best, found.llf)
        if gain < 1e-9:
            break
    return {"n_components": k, "data": table.tolist(), "log_likelihood": best}


case = {
    "versions": {
        "python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__,
        "statsmodels": statsmodels.__version__,
    },
    "given": [
        evaluated("order 1", 1, 5, 2, 1, 30, "none"),
        evaluated("order 2", 2, 4, 2, 2, 30, "none"),
        evaluated("a mean for each season", 3, 4, 2, 1, 30, "indicators"),
        evaluated("harmonics", 4, 4, 1, 1, 30, "harmonics"),
    ],
    "fits": [fitted(5, 4, 1, 80), fitted(6, 6, 2, 100)],
}
with open("state_space.json", "w") as out:
    json.dump(case, out)
    out.write("\n")
