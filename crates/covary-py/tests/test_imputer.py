"""Filling gaps, and how certain it is."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.impute import MissingIndicator, SimpleImputer

import covary
from covary.exceptions import CovaryWarning, DataWarning, OptionError


@pytest.fixture(scope="module")
def hidden(wine, wine_gaps):
    return np.isnan(wine_gaps)


def error(filled, wine, hidden):
    return np.sqrt(np.mean((((filled - wine) / wine.std(axis=0))[hidden]) ** 2))


@pytest.mark.parametrize("estimator", [None, "gaussian", "ppca", "fa", "bpca", covary.PCA(4), covary.PPCA(3), covary.IncrementalPCA(4)])
def test_gaps_are_filled_better_than_by_means(estimator, wine, wine_gaps, hidden):
    principal = isinstance(estimator, covary.PCA | covary.IncrementalPCA)
    imputer = covary.Imputer(estimator, **({"calibrate": False, "bounds": None} if principal else {})).fit(wine_gaps)
    filled, std = imputer.transform(wine_gaps, return_std=True)
    assert (filled[~hidden] == wine_gaps[~hidden]).all()
    means = SimpleImputer().fit_transform(wine_gaps)
    assert error(filled, wine, hidden) < 0.9 * error(means, wine, hidden)
    lower, upper = imputer.interval(wine_gaps, 0.95)
    inside = ((lower < wine) & (wine < upper))[hidden].mean()
    # 228 cells: 0.95 ± 3 standard errors, less what parameters taken as known cost on 178 rows.
    assert 0.88 < inside < 0.995
    assert (lower[~hidden] == wine_gaps[~hidden]).all()
    plain = covary.Imputer(estimator or "gaussian", calibrate=False, bounds=None).fit(wine_gaps)
    filled, std = plain.transform(wine_gaps, return_std=True)
    _, upper = plain.interval(wine_gaps, 0.95)
    assert np.allclose((upper - filled)[hidden], 1.959964 * std[hidden], rtol=1e-6)


def test_intervals_of_whole_columns_have_the_whole_numbers_between_the_ends(wine_gaps, hidden):
    """Column 12, proline, is whole, and so is a scale of codes made of column 0; without bounds no interval is rounded."""
    table = wine_gaps.copy()
    table[:, 0] = np.round(table[:, 0])
    bounded, free = covary.Imputer().fit(table), covary.Imputer(bounds=None).fit(table)
    for column in (0, 12):
        rows = hidden[:, column]
        for level in (0.1, 0.5, 0.95):
            (low, high), (least, largest) = free.interval(table, level), bounded.interval(table, level)
            inside = (np.ceil(low), np.floor(high))
            empty = inside[0] > inside[1]
            middle = np.round((low + high) / 2)
            for found, end in ((least, inside[0]), (largest, inside[1])):
                expected = np.where(empty, middle, end)[rows, column]
                assert (found[rows, column] == expected).all()
        assert level == 0.95 and not empty[rows, column].any()


def test_quantiles_are_those_of_the_intervals(wine_gaps, hidden):
    imputer = covary.Imputer(bounds=None).fit(wine_gaps)
    lower, upper = imputer.interval(wine_gaps, 0.9)
    assert np.allclose(imputer.quantile(wine_gaps, 0.05), lower, rtol=1e-12)
    assert np.allclose(imputer.quantile(wine_gaps, 0.95), upper, rtol=1e-12)
    assert (imputer.quantile(wine_gaps)[~hidden] == wine_gaps[~hidden]).all()
    assert np.allclose(imputer.quantile(wine_gaps), imputer.transform(wine_gaps), rtol=1e-12)
    with pytest.raises(ValueError, match="between 0 and 1"):
        imputer.quantile(wine_gaps, 1.0)


def test_the_check_states_its_coverage(wine_gaps):
    found = covary.Imputer().fit(wine_gaps).check(wine_gaps)
    assert found["n_hidden"] > 150 and found["skill"] > 0.2
    assert found["levels"] == [0.5, 0.8, 0.95] and abs(found["coverage"][2] - 0.95) < 0.05
    assert found["rmse"] < found["baseline_rmse"]


def test_draws_vary_as_the_intervals_say(wine_gaps, hidden):
    imputer = covary.Imputer("ppca").fit(wine_gaps)
    draws = imputer.sample(wine_gaps, n_draws=400, random_state=1)
    assert (draws[:, ~hidden] == wine_gaps[~hidden]).all()
    filled, std = imputer.transform(wine_gaps, return_std=True)
    z = (draws.mean(axis=0) - filled)[hidden] / (std[hidden] / 20)
    assert abs(z.mean()) < 0.3 and abs(z.std() - 1) < 0.2
    assert np.allclose(draws.std(axis=0)[hidden], std[hidden], rtol=0.25)
    assert (draws[0] == imputer.sample(wine_gaps, random_state=1)[0]).all()
    assert (draws[0] != imputer.sample(wine_gaps, random_state=2)[0])[hidden].all()


def test_pooling_widens(wine_gaps):
    imputer = covary.Imputer("bpca").fit(wine_gaps)
    tables = imputer.sample(wine_gaps, n_draws=20)
    means, variances = tables[:, :, 0].mean(axis=1), tables[:, :, 0].var(axis=1, ddof=1) / 178
    pooled = covary.pool(means, variances)
    assert pooled.total > pooled.within and pooled.estimate == pytest.approx(means.mean())
    with pytest.raises(ValueError, match="at least 2"):
        covary.pool([1.0], [1.0])


def test_indicator_and_names_are_scikit_learns(wine_gaps, wine_names):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(wine_gaps, columns=wine_names)
    ours = covary.Imputer(add_indicator=True).set_output(transform="pandas").fit(frame)
    theirs = SimpleImputer(add_indicator=True).fit(frame)
    assert list(ours.get_feature_names_out()) == list(theirs.get_feature_names_out())
    out = ours.transform(frame)
    flags = MissingIndicator().fit_transform(frame)
    assert (out.to_numpy()[:, 13:] == flags).all()
    assert list(out.columns) == list(ours.get_feature_names_out())


def test_empty_columns_are_dropped_or_kept(wine_gaps):
    rows = np.insert(wine_gaps, 2, np.nan, axis=1)
    plain = covary.Imputer().fit_transform(wine_gaps)
    with pytest.warns(covary.exceptions.CovaryWarning, match=r"dropped: column\(s\) 2"):
        dropped = covary.Imputer().fit(rows)
    assert (dropped.transform(rows) == plain).all()
    assert "x2" not in dropped.get_feature_names_out()
    with pytest.warns(covary.exceptions.CovaryWarning, match="filled with 0"):
        kept = covary.Imputer(keep_empty_features=True).fit_transform(rows)
    assert (kept[:, 2] == 0).all() and (np.delete(kept, 2, axis=1) == plain).all()


def test_other_marks_of_a_gap(wine_gaps):
    coded = np.where(np.isnan(wine_gaps), -999.0, wine_gaps)
    assert (covary.Imputer(missing_values=-999).fit_transform(coded) == covary.Imputer().fit_transform(wine_gaps)).all()
    assert (coded == -999.0).sum() == np.isnan(wine_gaps).sum()


def test_new_rows(wine_gaps):
    imputer = covary.Imputer(bounds=None).fit(wine_gaps[:150])
    assert np.isfinite(imputer.transform(wine_gaps[150:])).all()
    only = np.full((1, 13), np.nan)
    assert np.allclose(imputer.transform(only), imputer.estimator_.mean_)


def test_incremental_pca_learns_around_gaps():
    rng = np.random.default_rng(0)
    whole = rng.normal(size=(2000, 3)) @ rng.normal(size=(3, 12)) + 0.5 * rng.normal(size=(2000, 12))
    rows = np.where(rng.random(whole.shape) < 0.2, np.nan, whole)
    stream = covary.IncrementalPCA(3)
    for batch in np.split(rows, 10):
        stream.partial_fit(batch)
    reference = covary.PCA(3).fit(whole)
    cosines = np.linalg.svd(stream.components_ @ reference.components_.T)[1]
    assert cosines.min() > 0.999
    filled, std = stream.impute(rows, return_std=True)
    hidden = np.isnan(rows)
    z = ((filled - whole) / np.where(hidden, std, 1))[hidden]
    assert abs((np.abs(z) < 1.96).mean() - 0.95) < 0.02


def test_pca_with_gaps_nears_pca_without(wine):
    rng = np.random.default_rng(0)
    rows = wine / wine.std(axis=0)
    few = np.where(rng.random(rows.shape) < 0.01, np.nan, rows)
    for n_components in (3, None, 0.75):
        ours, whole = covary.PCA(n_components).fit(few), covary.PCA(n_components).fit(rows)
        assert ours.n_components_ == whole.n_components_
        assert np.allclose(ours.explained_variance_, whole.explained_variance_, rtol=0.03)
        assert np.allclose(ours.transform(rows)[:, 0], whole.transform(rows)[:, 0], atol=0.1)


def test_bayesian_pca_says_what_it_knows(wine_gaps):
    model = covary.BayesianPCA().fit(wine_gaps)
    assert model.relevance_.shape == (model.n_components_,) and np.isfinite(model.lower_bound_)
    value, err = model.predictive_log_density(wine_gaps, n_draws=500, return_std=True)
    assert np.isfinite(value).all() and (err < 0.5).all()
    assert model.method_[0] == "structured" and "noise_rate" in model.method_[1]
    gibbs = covary.BayesianPCA(2, inference="gibbs", prior={"draws": 30}).fit(wine_gaps)
    assert np.isfinite(gibbs.predictive_log_density(wine_gaps)).all()


def test_select_recommends_and_explains():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(150, 2)) @ rng.normal(size=(2, 8)) + 0.4 * rng.normal(size=(150, 8))
    found = covary.select(rows, max_components=4, standardize=False)
    assert found.recommended == 2 and str(found).startswith("2 components")
    assert found.table["n_components"].tolist() == [0, 1, 2, 3, 4]
    assert found.choices["bic"] == 2


def wild():
    table = np.random.default_rng(3).normal(size=(120, 5))
    table[:, 1:] += table[:, :1]
    table[np.random.default_rng(4).random(table.shape) < 0.1] = np.nan
    row = int(np.flatnonzero(np.isnan(table[:, 2]) & ~np.isnan(table[:, 1]))[0])
    table[row, 1] = 1e6
    return table, row


def test_wild_cells_are_named_and_may_count_as_missing():
    table, row = wild()
    with pytest.warns(DataWarning):
        covary.Imputer().fit(table)
    asked = covary.Imputer(wild="down-weight")
    with pytest.warns(DataWarning, match=rf"row {row + 1} of `x2` holds 1000000.*count as missing"):
        filled, std = asked.fit_transform(table, return_std=True)
    assert abs(filled[row, 2]) < 10
    # Observed cells come back as they were, the wild one too.
    observed = ~np.isnan(table)
    assert (filled[observed] == table[observed]).all() and (std[observed] == 0).all()
    assert (asked.transform(table) == filled).all()
    lower, upper = asked.interval(table)
    assert (lower[observed] == table[observed]).all() and (upper[observed] == table[observed]).all()
    assert lower[row, 2] > -20 and upper[row, 2] < 20
    drawn = asked.sample(table, 3)
    assert (drawn[:, observed] == table[observed]).all() and (np.abs(drawn[:, row, 2]) < 20).all()
    with pytest.raises(OptionError, match="wild must be"):
        covary.Imputer(wild="drop").fit(table)


def test_shifts_move_what_is_filled():
    table, row = wild()
    table[row, 1] = 0.0
    frame = pd.DataFrame(table, columns=list("abcde"))
    plain, shifted = covary.Imputer(bounds=None), covary.Imputer(bounds=None, shift={"c": 0.5})
    by = np.where(np.isnan(table), [0, 0, 0.5 * np.nanstd(table[:, 2]), 0, 0], 0)
    assert np.allclose(shifted.fit_transform(frame) - plain.fit_transform(frame), by, atol=1e-12)
    for one, other in zip(shifted.interval(frame), plain.interval(frame), strict=True):
        assert np.allclose(one - other, by, atol=1e-12)
    assert np.allclose(shifted.sample(frame, 2) - plain.sample(frame, 2), by, atol=1e-12)
    # By place, and in a table without names.
    assert (covary.Imputer(bounds=None, shift={2: 0.5}).fit_transform(table) == shifted.transform(frame)).all()
    means = plain.tipping_points(frame)
    assert set(means) == {name for name in frame if frame[name].isna().any()}
    step = 0.5 * np.nanstd(table[:, 2]) * np.isnan(table[:, 2]).mean()
    assert np.allclose(np.diff(means["c"][:, 1]), step)
    assert means["c"].shape == (5, 5) and (means["c"][:, 3] < means["c"][:, 1]).all()
    for wrong, words in [({"z": 1.0}, "`z` is no column"), ({"c": "1"}, "must be a number"), (3, "must be a dict")]:
        with pytest.raises(OptionError, match=words):
            covary.Imputer(shift=wrong).fit(frame)
    with pytest.raises(OptionError, match="does not go with PCA"):
        covary.Imputer(covary.PCA(2), calibrate=False, bounds=None, shift={"c": 1.0}).fit(frame)


def test_draws_of_one_table_share_their_parameters():
    table, row = wild()
    table[row, 1] = 0.0
    table[:60, 4] = np.nan
    imputer = covary.Imputer("gaussian", calibrate=False, bounds=None).fit(table)
    means = imputer.sample(table, 200)[:, :60, 4].mean(axis=1)
    _, std = imputer.transform(table, return_std=True)
    # If rows were drawn apart, their mean would vary by the mean of their variances over 60.
    assert means.var() > 1.4 * (std[:60, 4] ** 2).mean() / 60


@pytest.mark.parametrize("cls", [covary.PCA, covary.IncrementalPCA])
def test_principal_axes_say_what_they_do_not_do(cls, wine_gaps):
    for options, said in (({}, "calibrate=True or bounds='auto'"), ({"bounds": None}, "calibrate=True:")):
        with pytest.warns(CovaryWarning, match=rf"Imputer\({cls.__name__}\(\)\) does not do {said}"):
            told = covary.Imputer(cls(2), **options).fit_transform(wine_gaps)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        filled = covary.Imputer(cls(2), calibrate=False, bounds=None).fit_transform(wine_gaps)
    np.testing.assert_array_equal(filled, cls(2).fit(wine_gaps).impute(wine_gaps))
    np.testing.assert_array_equal(told, filled)


def test_small_tables_count_that_the_regression_was_estimated():
    line = np.array([[i, 2.0 * i] for i in range(1, 8)])
    line[5, 1] = np.nan
    with pytest.warns(CovaryWarning, match="not calibrated: too few cells can be hidden; they are those of Student's t"):
        imputer = covary.Imputer().fit(line)
    with pytest.warns(CovaryWarning, match="not calibrated: too few cells can be hidden$"):
        covary.Imputer("ppca").fit(line)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        covary.Imputer(calibrate=False).fit(line)
    filled, std = imputer.transform(line, return_std=True)
    lower, upper = imputer.interval(line, 0.95)
    assert abs(filled[5, 1] - 12) < 0.05 and std[5, 1] < 1.5 and lower[5, 1] < 12 < upper[5, 1]
    # Five pseudo-rows, by matrices: Student's t of a regression on the one observed column.
    noisy = np.array([[1, 2.3], [2, 1.9], [4, 5.1], [5.5, 4.0], [8, 8.2], [7, np.nan], [3, 3.5]])
    imputer = covary.Imputer("gaussian", bounds=None).fit(noisy)
    filled, std = imputer.transform(noisy, return_std=True)
    mean, covariance = imputer.estimator_.mean_, imputer.estimator_.get_covariance()
    n, pseudo_rows, away = 6, 5, 7 - mean[0]
    slope = covariance[0, 1] / covariance[0, 0]
    freedom = n - 1 - (1 - pseudo_rows * noisy[:, 0].var() / covariance[0, 0] / (n + pseudo_rows))
    scale = np.sqrt((covariance[1, 1] - slope * covariance[0, 1]) * n / freedom)
    scale *= np.sqrt(1 + 1 / n + away**2 / covariance[0, 0] / (n + pseudo_rows))
    assert np.isclose(filled[5, 1], mean[1] + slope * away, rtol=1e-9)
    assert np.isclose(std[5, 1], scale * np.sqrt(freedom / (freedom - 2)), rtol=1e-9)
    _, upper = imputer.interval(noisy, 0.95)
    half = stats.t.ppf(0.975, freedom) * scale
    assert np.isclose(upper[5, 1], filled[5, 1] + half, rtol=1e-6)
    # Within bounds quantiles are read off lines between knots a quarter of a standard normal deviation apart.
    _, bounded = covary.Imputer("gaussian").fit(noisy).interval(noisy, 0.95)
    assert np.isclose(bounded[5, 1] - filled[5, 1], half, rtol=5e-3)
