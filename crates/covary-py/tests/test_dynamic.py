"""Dynamic factor models: times in and out, and the answers of the library."""

import json

import numpy as np
import pytest

import covary
from covary import DynamicFactor
from covary.exceptions import CovaryWarning, DataError

pd = pytest.importorskip("pandas")


def simulated(n=120, d=5, seed=0):
    rng = np.random.default_rng(seed)
    w, x, rows = rng.normal(size=(d, 2)), np.zeros(2), []
    season = rng.normal(size=(2, d))
    for t in range(n):
        x = 0.85 * x + 0.5 * rng.normal(size=2)
        wave = np.array([np.cos(t / 6 * np.pi), np.sin(t / 6 * np.pi)])
        rows.append(3 + w @ x + wave @ season + 0.3 * rng.normal(size=d))
    rows = np.array(rows)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    rows[40:46] = np.nan
    return rows


@pytest.fixture(scope="module")
def X():
    return simulated()


@pytest.fixture(scope="module")
def model(X):
    return DynamicFactor(2, season=12).fit(X)


def dense(model, n):
    """Mean and covariance of all cells of n steps at once, in the long run at the start."""
    a, q, w, b = model.transition_, model.innovation_, model.loadings_, model.coefficients_
    sigma = np.linalg.solve(np.eye(4) - np.kron(a, a), q.ravel()).reshape(2, 2)
    t = np.arange(n)
    known = np.stack([t**0, np.cos(t % 12 / 12 * 2 * np.pi), np.sin(t % 12 / 12 * 2 * np.pi)], axis=1)
    d = len(w)
    covariance = np.zeros((n * d, n * d))
    for i in range(n):
        for j in range(i + 1):
            block = w @ np.linalg.matrix_power(a, i - j) @ sigma @ w.T
            covariance[i * d : (i + 1) * d, j * d : (j + 1) * d] = block
            covariance[j * d : (j + 1) * d, i * d : (i + 1) * d] = block.T
    for j, (psi, rho) in enumerate(zip(model.noise_variance_, model.noise_memory_)):
        covariance[j::d, j::d] += psi * rho ** np.abs(np.subtract.outer(t, t)) if rho else psi * np.eye(n)
    return (known @ b.T).ravel(), covariance


@pytest.fixture(scope="module")
def remembering(X):
    return DynamicFactor(2, season=12, noise_memory=True).fit(X)


@pytest.mark.parametrize("which", ["model", "remembering"])
def test_filled_cells_and_densities_are_those_of_one_gaussian_of_all_cells(X, which, request, tmp_path):
    model = request.getfixturevalue(which)
    assert np.any(model.noise_memory_) == (which == "remembering")
    model.save(tmp_path / "model.covary")
    for one in (model, covary.load(tmp_path / "model.covary")):
        check_dense(X, one)
        assert bool(one.noise_memory) == (which == "remembering")


def check_dense(X, model):
    rows = X[:30].copy()
    rows[10:13] = np.nan
    mean, covariance = dense(model, 30)
    seen = ~np.isnan(rows.ravel())
    known = covariance[np.ix_(seen, seen)]
    left = rows.ravel()[seen] - mean[seen]
    across = covariance[np.ix_(~seen, seen)]
    want = mean[~seen] + across @ np.linalg.solve(known, left)
    spread = covariance[np.ix_(~seen, ~seen)] - across @ np.linalg.solve(known, across.T)
    filled, std = model.impute(rows, return_std=True)
    np.testing.assert_allclose(filled.ravel()[~seen], want, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(std.ravel()[~seen], np.sqrt(np.diag(spread)), rtol=1e-6)
    np.testing.assert_array_equal(filled.ravel()[seen], rows.ravel()[seen])
    density = -0.5 * (seen.sum() * np.log(2 * np.pi) + np.linalg.slogdet(known)[1] + left @ np.linalg.solve(known, left))
    np.testing.assert_allclose(model.score_samples(rows).sum(), density, rtol=1e-9)
    np.testing.assert_allclose(model.score(rows), density / 30, rtol=1e-9)


def test_attributes_and_factors(X, model):
    assert model.transition_.shape == (2, 2) and model.loadings_.shape == (5, 2) and model.coefficients_.shape == (5, 3)
    assert 0.5 < model.spectral_radius_ < 1 and model.n_components_ == 2
    smoothed, filtered = model.transform(X), model.transform(X, filtered=True)
    assert smoothed.shape == (120, 2) and not np.allclose(smoothed, filtered)
    np.testing.assert_allclose(smoothed[-1], filtered[-1], atol=1e-12)  # nothing comes after the last
    assert list(model.get_feature_names_out()) == ["dynamicfactor0", "dynamicfactor1"]
    assert model.sample(7, random_state=1).shape == (7, 5)
    np.testing.assert_array_equal(model.sample(7, random_state=1), model.sample(7, random_state=1))


def test_forecasts(X, model):
    mean, lower, upper = model.forecast(X, 12, interval=0.9)
    assert mean.shape == (12, 5) and (lower < mean).all() and (mean < upper).all()
    np.testing.assert_array_equal(model.forecast(X, 12), mean)
    wide = model.forecast(X, 12, interval=0.99)
    assert ((wide[2] - wide[1]) > (upper - lower)).all()
    for steps in (0, 1.5, True):
        with pytest.raises(ValueError, match="steps"):
            model.forecast(X, steps)
    with pytest.raises(ValueError, match="interval"):
        model.forecast(X, 1, interval=1.0)


def test_pandas_times_in_and_out(X, model):
    months = pd.date_range("2001-01-01", periods=120, freq="MS", name="month")
    indexed = pd.DataFrame(X, index=months, columns=list("abcde"))
    by_index = DynamicFactor(2, season=12, tol=1e-9).fit(indexed)
    ahead = by_index.forecast(indexed, 3)
    assert list(ahead.columns) == list("abcde") and ahead.index.name == "month"
    assert list(ahead.index) == list(pd.date_range("2011-01-01", periods=3, freq="MS"))
    # A column of times, rows in any order, and rows without a cell left out.
    frame = indexed.reset_index().dropna(how="all", subset=list("abcde")).sample(frac=1, random_state=0)
    by_column = DynamicFactor(2, season=12, time="month", tol=1e-9).fit(frame)
    np.testing.assert_allclose(by_column.log_posterior_, by_index.log_posterior_, rtol=1e-9)
    np.testing.assert_allclose(by_column.forecast(frame, 3).to_numpy(), ahead.to_numpy(), rtol=1e-6)
    filled = by_column.impute(frame)
    np.testing.assert_allclose(filled, by_index.impute(indexed.loc[frame["month"]].sort_index())[[
        sorted(frame["month"]).index(m) for m in frame["month"]]], rtol=1e-5)
    periods = indexed.copy()
    periods.index = months.to_period("M")
    assert by_index.forecast(periods, 2).index.equals(pd.period_range("2011-01", periods=2, freq="M", name="month"))
    np.testing.assert_array_equal(by_index.feature_names_in_, list("abcde"))


def test_polars_times_in_and_out(X):
    pl = pytest.importorskip("polars")
    days = np.datetime64("2020-01-01") + np.arange(120)
    frame = pl.DataFrame({"day": days, **{f"c{j}": X[:, j] for j in range(5)}})
    model = DynamicFactor(2, time="day").fit(frame)
    ahead = model.forecast(frame, 2)
    assert ahead.columns == ["day", "c0", "c1", "c2", "c3", "c4"]
    assert np.asarray(ahead["day"]).astype("datetime64[D]").tolist() == (days[-1] + np.arange(1, 3)).tolist()


def test_sequences(X):
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["t"], frame["site"] = np.tile(np.arange(60.0), 2), np.repeat(["n", "s"], 60)
    model = DynamicFactor(2, time="t", groups="site").fit(frame)
    alone = [model.score_samples(part) for _, part in frame.groupby("site")]
    np.testing.assert_allclose(model.score_samples(frame), np.concatenate(alone), rtol=1e-9)
    with pytest.raises(DataError, match="2 sequences"):
        model.forecast(frame, 1)
    assert model.forecast(frame[frame.site == "n"], 1).index[0] == 60.0


def test_a_loaded_model_of_several_sequences_knows_their_column(X, tmp_path):
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["t"], frame["site"] = np.tile(np.arange(60.0), 2), np.repeat(["n", "s"], 60)
    model = DynamicFactor(2, time="t", groups="site").fit(frame)
    model.save(tmp_path / "model.covary")
    again = covary.load(tmp_path / "model.covary")
    assert (again.time, again.groups) == ("t", "site")
    for ask in ("impute", "transform", "score_samples"):
        np.testing.assert_array_equal(getattr(again, ask)(frame), getattr(model, ask)(frame))
    south = frame[frame.site == "s"]
    np.testing.assert_array_equal(again.forecast(south, 2), model.forecast(south, 2))


def test_what_is_no_time_is_refused_by_name(X):
    frame = pd.DataFrame(X, columns=list("abcde"))
    with pytest.raises(DataError, match="no column 't'"):
        DynamicFactor(2, time="t").fit(frame)
    with pytest.raises(DataError, match="row 3 has no time"):
        DynamicFactor(2, time="t").fit(frame.assign(t=[0.0, 1.0, np.nan, *np.arange(3.0, 120)]))
    with pytest.raises(ValueError, match="one time|same time|time"):
        DynamicFactor(2, time="t").fit(frame.assign(t=[0.0, 0.0, *np.arange(2.0, 120)]))
    with pytest.raises(DataError, match="has no times"):
        DynamicFactor(2, time="t").fit(frame.assign(t="soon"))
    with pytest.raises(ValueError, match="season"):
        DynamicFactor(2, season="often").fit(frame)


def test_model_files_and_pickle(X, model, tmp_path):
    import pickle

    model.save(tmp_path / "model.covary")
    again = covary.load(tmp_path / "model.covary")
    assert isinstance(again, DynamicFactor) and again.season == (12.0, 1) and again.order == 1
    for other in (again, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.forecast(X, 3), model.forecast(X, 3))
        np.testing.assert_array_equal(other.impute(X), model.impute(X))
    assert json.loads(model._model.describe())["family"] == "dfm"


def test_loadings_are_chosen_by_name(X):
    likely, bayes = (DynamicFactor(2, loadings=how).fit(X) for how in ("likelihood", "bayes"))
    np.testing.assert_array_equal(likely.loadings_, DynamicFactor(2).fit(X).loadings_)
    assert not np.allclose(np.abs(bayes.loadings_), np.abs(likely.loadings_), rtol=1e-3)
    assert bayes.get_params()["loadings"] == "bayes"
    with pytest.raises(ValueError, match="loadings"):
        DynamicFactor(2, loadings="some").fit(X)


def ar1(n, a, noise, seed=0):
    rng = np.random.default_rng(seed)
    x = np.zeros(n)
    for t in range(1, n):
        x[t] = a * x[t - 1] + rng.normal()
    return x + noise * rng.normal(size=n)


def test_one_column_is_a_series_with_noise():
    y = ar1(300, 0.9, 0.7)
    y[100:110] = np.nan
    model = DynamicFactor(1).fit(y[:, None])
    assert 0.8 < model.transition_[0, 0] < 0.97
    # An autoregression seen through noise: the density of all cells at once.
    a, w, psi = model.transition_[0, 0], model.loadings_[0, 0], model.noise_variance_[0]
    seen = np.flatnonzero(~np.isnan(y[:120]))
    apart = np.abs(seen[:, None] - seen)
    long_run = model.innovation_[0, 0] / (1 - a * a)
    covariance = w * w * long_run * a**apart + psi * np.eye(len(seen))
    left = y[seen] - model.coefficients_[0, 0]
    density = -0.5 * (
        len(seen) * np.log(2 * np.pi) + np.linalg.slogdet(covariance)[1] + left @ np.linalg.solve(covariance, left)
    )
    np.testing.assert_allclose(model.score_samples(y[:120, None]).sum(), density, rtol=1e-9)
    assert np.all(np.diff(model.trace_) > -1e-9)
    mean, lower, upper = model.forecast(y[:, None], 3, interval=0.9)
    assert ((lower < mean) & (mean < upper)).all()
    with pytest.raises(ValueError, match="2 components are too many.*at most 1"):
        DynamicFactor(2).fit(y[:, None])


def test_tables_too_small_for_time_are_refused_by_name(X):
    frame = pd.DataFrame(X[:40], columns=list("abcde"))
    with pytest.raises(ValueError, match="minimum of 2|1 sample"):
        DynamicFactor(1).fit(X[:1])
    with pytest.raises(DataError, match="all 40 sequences have one step"):
        DynamicFactor(1, time="t", groups="g").fit(frame.assign(t=np.arange(40.0), g=np.arange(40)))
    with pytest.raises(ValueError, match="5 components are too many"):
        DynamicFactor(5).fit(X)
    with pytest.raises(ValueError, match="rows 1 and 2 both have 0.0 in 't'.*`groups`"):
        DynamicFactor(1, time="t").fit(frame.assign(t=[0.0, 0.0, *np.arange(2.0, 40)]))
    # One sequence of one row among others says something of levels, and has a forecast.
    grouped = frame.assign(t=np.arange(40.0), g=["x"] * 39 + ["y"])
    model = DynamicFactor(1, time="t", groups="g").fit(grouped)
    assert model.forecast(grouped[39:], 2).shape == (2, 5)


def test_factors_that_do_not_return_are_named():
    t = np.arange(60)
    X = np.stack([1.1**t, 2 * 1.1**t + 0.1 * np.sin(t * 7.0), 1.5 * 1.1**t + 0.1 * np.cos(t * 5.0)], axis=1)
    with pytest.warns(CovaryWarning, match="largest root of the transition is .*give the columns a trend"):
        DynamicFactor(1, max_iter=200).fit(X)


def test_pandas_and_polars_keep_their_times(X):
    pl = pytest.importorskip("polars")
    months = pd.date_range("2001-01-31", periods=120, freq="ME", name="when")
    indexed = pd.DataFrame(X, index=months, columns=list("abcde"))
    model = DynamicFactor(1).fit(indexed)
    # The end of every month stays that; a zone is told apart from none.
    assert list(model.forecast(indexed, 2).index.strftime("%Y-%m-%d")) == ["2011-01-31", "2011-02-28"]
    hourly = indexed.set_axis(pd.date_range("2020-03-01", periods=120, freq="h", tz="Europe/Rome", name="when"))
    zoned = DynamicFactor(1).fit(hourly).forecast(hourly, 1)
    assert zoned.index[0] == pd.Timestamp("2020-03-06", tz="Europe/Rome") and str(zoned.index.tz) == "Europe/Rome"
    zoned = DynamicFactor(1, time="when").fit(hourly.reset_index()).forecast(hourly.reset_index(), 1)
    assert zoned.index[0] == pd.Timestamp("2020-03-06", tz="Europe/Rome")
    quarters = indexed.set_axis(pd.period_range("1990Q1", periods=120, freq="Q"))
    ahead = DynamicFactor(1).fit(quarters).forecast(quarters, 1)
    assert str(ahead.index[0]) == "2020Q1"
    # Polars has no index: times are a column, of dates or of moments, in any order.
    frame = pl.DataFrame({"when": months.to_numpy(), **{c: X[:, j] for j, c in enumerate("abcde")}})
    by_column = DynamicFactor(1, time="when").fit(frame.sample(fraction=1.0, shuffle=True, seed=1))
    np.testing.assert_allclose(by_column.trace_[-1], model.trace_[-1], rtol=1e-7)
    ahead = by_column.forecast(frame, 2)
    assert [str(d)[:10] for d in ahead["when"].to_list()] == ["2011-01-31", "2011-02-28"]
    for own in (pl.Date, pl.Datetime("ms"), pl.Datetime("us", "Europe/Rome")):
        typed = frame.with_columns(pl.col("when").cast(own)) if own is not pl.Date else frame.with_columns(pl.col("when").dt.date())
        assert by_column.set_params(time="when").fit(typed).forecast(typed, 1).schema["when"] == own
    with pytest.raises(DataError, match="row 2 has no time"):
        by_column.fit(frame.with_columns(pl.when(pl.int_range(pl.len()) == 1).then(None).otherwise(pl.col("when")).alias("when")))
