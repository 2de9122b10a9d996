"""Figures, and the numbers behind them."""

from __future__ import annotations

import csv
import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from covary import PPCA, BayesianPCA, DynamicFactor, Imputer, StudentPPCA, plot  # noqa: E402
from covary.exceptions import DataError, NotFittedError  # noqa: E402

EXAMPLES = Path(__file__).parents[3] / "examples"


def read(name: str) -> np.ndarray:
    with open(EXAMPLES / name, newline="") as file:
        rows = list(csv.reader(file))[1:]
    return np.array([[float(cell) if cell else np.nan for cell in row[:-1]] for row in rows])


@pytest.fixture(scope="module")
def whole() -> np.ndarray:
    return read("wine.csv")


@pytest.fixture(scope="module")
def gaps() -> np.ndarray:
    return read("wine_gaps.csv")


@pytest.fixture(scope="module")
def model(gaps: np.ndarray) -> PPCA:
    return PPCA(n_components=3).fit(gaps)


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def following() -> tuple[np.ndarray, PPCA]:
    """A table whose third and fifth columns miss where the first component is high and low."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=1500)
    X = z[:, None] * np.ones(7) + rng.normal(size=(1500, 7))
    X[z > 0.8, 2] = np.nan
    X[z < -0.8, 4] = np.nan
    X[rng.random(X.shape) < 0.02] = np.nan
    return X, PPCA(n_components=1).fit(X)


# -- scree -----------------------------------------------------------------------------------------


def test_scree_shares_are_those_of_the_scale_of_the_fit(whole):
    raw = PPCA(n_components=3, standardize=False).fit(whole)
    data = plot.scree_data(raw)
    np.testing.assert_array_equal(data.share, raw.explained_variance_ratio_)
    assert data.cumulative[-1] == pytest.approx(raw.explained_variance_ratio_.sum())
    assert not data.standardized and data.eigenvalue_share is None and data.n_parallel is None

    unit = PPCA(n_components=3).fit(whole)
    data = plot.scree_data(unit)
    expected = np.linalg.eigvalsh(np.corrcoef(whole.T))[::-1][:3] / 13
    np.testing.assert_allclose(data.share, expected, rtol=1e-9)
    assert data.standardized and np.all(np.diff(data.share) < 0)


def test_scree_eigenvalues_are_shares_of_the_same_total(whole):
    unit = plot.scree_data(PPCA(n_components=2).fit(whole), whole)
    expected = np.linalg.eigvalsh(np.corrcoef(whole.T))[::-1]
    np.testing.assert_allclose(unit.eigenvalue_share, expected / 13, atol=1e-12)
    assert unit.total == pytest.approx(13)
    assert unit.threshold_share.shape == (13,)
    assert unit.n_parallel == 3
    assert np.all(unit.eigenvalue_share[:3] > unit.threshold_share[:3])

    raw = PPCA(n_components=2, standardize=False).fit(whole)
    data = plot.scree_data(raw, whole)
    assert data.total == pytest.approx(np.trace(np.cov(whole.T, ddof=0)))
    # Complete and not standardized: the bars are eigenvalues.
    np.testing.assert_allclose(data.share, data.eigenvalue_share[:2], rtol=1e-6)


def test_scree_does_not_depend_on_memory_order(model, gaps):
    one = plot.scree_data(model, gaps, n_copies=20)
    other = plot.scree_data(model, np.asfortranarray(gaps), n_copies=20)
    np.testing.assert_array_equal(one.eigenvalue_share, other.eigenvalue_share)
    np.testing.assert_array_equal(one.threshold_share, other.threshold_share)


def test_scree_draws(model, gaps):
    ax = plot.scree(model)
    assert isinstance(ax, matplotlib.axes.Axes)
    assert len(ax.patches) == 3 and len(ax.lines) == 1
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], plot.scree_data(model).share)
    assert "standardized columns" in ax.get_ylabel()

    ax = plot.scree(model, gaps, n_copies=20)
    assert len(ax.lines) == 3
    assert ax.get_title(loc="left") == "above the shuffled copies: 3"

    ax = plot.scree(PPCA(n_components=3, standardize=False).fit(gaps), max_components=2)
    assert len(ax.patches) == 2
    assert "the table" in ax.get_ylabel() and "first 2 of 3" in ax.get_title(loc="left")


def test_scree_without_components():
    X = np.random.default_rng(0).normal(size=(50, 4))
    assert plot.scree_data(PPCA(n_components=0).fit(X)).cumulative.shape == (0,)
    assert len(plot.scree(PPCA(n_components=0).fit(X)).patches) == 0


# -- biplot ----------------------------------------------------------------------------------------


def test_biplot_numbers(model, gaps):
    data = plot.biplot_data(model, gaps, components=(3, 1))
    scores, covariances = model.transform(gaps, return_cov=True)
    np.testing.assert_array_equal(data.scores, scores[:, [2, 0]])
    np.testing.assert_array_equal(data.covariances[:, 0, 1], covariances[:, 2, 0])
    np.testing.assert_array_equal(data.has_gaps, np.isnan(gaps).any(axis=1))
    np.testing.assert_array_equal(data.share, plot.scree_data(model).share[[2, 0]])
    assert data.loadings.shape == (13, 2) and data.components == (3, 1)
    assert np.all(np.hypot(*data.loadings.T) <= 1.0)


def test_biplot_takes_rows_evenly(model, whole):
    data = plot.biplot_data(model, np.tile(whole, (10, 1)), max_rows=100)
    assert data.n_rows == 1780 and data.scores.shape == (100, 2)
    assert set(np.diff(data.rows)) <= {17, 18}
    ax = plot.biplot(model, np.tile(whole, (10, 1)), max_rows=100)
    assert "100 of 1\u2009780 rows" in ax.get_title(loc="left")


def test_biplot_draws(model, gaps):
    ax = plot.biplot(model, gaps, max_arrows=5)
    points, ellipses = ax.collections
    assert len(points.get_offsets()) == 178
    assert len(ellipses.get_offsets()) == np.isnan(gaps).any(axis=1).sum()
    shown = [text.get_text() for text in ax.texts if text.get_text()]
    longest = np.argsort(-np.hypot(*plot.biplot_data(model, gaps).loadings.T))[:5]
    assert sorted(shown) == sorted(f"x{j + 1}" for j in longest)
    assert ax.get_xlabel() == f"component 1 ({100 * plot.scree_data(model).share[0]:.1f} %)"
    assert "5 longest of 13" in ax.get_title(loc="left")

    ax = plot.biplot(model, gaps, max_arrows=0, max_ellipses=0)
    assert len(ax.collections) == 1 and not ax.texts


def test_biplot_names_do_not_lie_on_each_other(model, gaps):
    ax = plot.biplot(model, gaps)
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts if text.get_text()]
    assert len(boxes) == 13
    for i, a in enumerate(boxes):
        assert not any(a.overlaps(b) for b in boxes[:i])


def test_biplot_ellipses_are_one_posterior_sd(model, gaps):
    pytest.importorskip("matplotlib", minversion="3.10")  # get_widths
    ax = plot.biplot(model, gaps)
    shapes, data = ax.collections[1], plot.biplot_data(model, gaps)
    wide, high = np.linalg.eigvalsh(data.covariances[data.has_gaps])[:, ::-1].T
    np.testing.assert_allclose(shapes.get_widths(), 2 * np.sqrt(wide))
    np.testing.assert_allclose(shapes.get_heights(), 2 * np.sqrt(high))


def test_biplot_groups(model, gaps):
    groups = np.repeat(["b", "a"], 89)
    ax = plot.biplot(model, gaps, groups=groups, max_ellipses=0)
    assert [len(points.get_offsets()) for points in ax.collections] == [89, 89]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]
    with pytest.raises(DataError, match="one label for each of 178 rows"):
        plot.biplot(model, gaps, groups=groups[:10])


def test_biplot_refuses(model, gaps):
    with pytest.raises(DataError, match="needs 2 component"):
        plot.biplot_data(PPCA(n_components=1).fit(gaps), gaps)
    for wrong in ((0, 1), (1, 1), (1, 4), (1, 2, 3)):
        with pytest.raises(DataError, match="from 1 to 3"):
            plot.biplot_data(model, gaps, components=wrong)
    with pytest.raises(ValueError, match="features"):
        plot.biplot_data(model, gaps[:, :5])


# -- hinton ----------------------------------------------------------------------------------------


def test_hinton_numbers(model):
    data = plot.hinton_data(model)
    sd = np.sqrt(np.diag(model.get_covariance()))
    np.testing.assert_allclose(data.loadings, model.loadings_ / sd[:, None])
    np.testing.assert_allclose(data.area, np.abs(data.loadings) / np.abs(data.loadings).max())
    assert data.names == tuple(f"x{j + 1}" for j in range(13))

    some = plot.hinton_data(model, max_rows=4)
    by_length = np.sort(np.argsort(-(data.loadings**2).sum(axis=1))[:4])
    np.testing.assert_array_equal(some.columns, by_length)
    np.testing.assert_array_equal(some.loadings, data.loadings[by_length])
    assert some.n_features == 13


def test_hinton_leaves_constant_columns_at_zero(whole):
    X = np.hstack([whole, np.full((len(whole), 1), 3.0)])
    assert np.all(plot.hinton_data(PPCA(n_components=2).fit(X)).loadings[13] == 0.0)


def test_hinton_draws(model, gaps):
    ax = plot.hinton(model)
    data = plot.hinton_data(model)
    positive = data.loadings >= 0
    _, filled, hollow = ax.collections
    assert len(filled.get_paths()) == positive.sum() and len(hollow.get_paths()) == (~positive).sum()
    sides = [path.get_extents().width for path in filled.get_paths()]
    np.testing.assert_allclose(np.square(sides), 0.92**2 * data.area[positive])
    assert len(ax.get_yticklabels()) == 13

    ax = plot.hinton(model, max_rows=4)
    assert "4 strongest of 13" in ax.get_title()
    ax = plot.hinton(PPCA(n_components=12).fit(gaps), max_components=5)
    assert "first 5 of 12" in ax.get_title()
    with pytest.raises(DataError, match="has 0"):
        plot.hinton(PPCA(n_components=0).fit(gaps))


# -- missing map -----------------------------------------------------------------------------------


def test_missing_map_numbers(gaps):
    data = plot.missing_map_data(gaps)
    np.testing.assert_array_equal(data.share, np.isnan(gaps))
    np.testing.assert_allclose(data.column_share, np.isnan(gaps).mean(axis=0))
    assert np.isnan(data.trend).all() and data.trends == ()

    runs = plot.missing_map_data(gaps, max_bins=10)
    assert runs.share.shape == (10, 13)
    lengths = np.diff(np.append(runs.starts, 178))
    np.testing.assert_allclose((runs.share * lengths[:, None]).sum(axis=0), np.isnan(gaps).sum(axis=0))


def test_missing_map_finds_what_follows(following):
    X, model = following
    data = plot.missing_map_data(X, model, sort_by="component")
    high = np.sign(model.loadings_[0, 0])
    np.testing.assert_array_equal(np.flatnonzero(~np.isnan(data.trend)), [2, 4])
    assert data.trend[2] * high > 0.1 and data.trend[4] * high < -0.1
    assert len(data.trends) == 2
    np.testing.assert_array_equal(data.order, np.argsort(model.transform(X)[:, 0], kind="stable"))


def test_missing_map_sorts_by_numbers(gaps):
    keys = -np.arange(178)
    np.testing.assert_array_equal(plot.missing_map_data(gaps, sort_by=keys).share, np.isnan(gaps)[::-1])
    with pytest.raises(ValueError, match="one entry for each of 178"):
        plot.missing_map_data(gaps, sort_by=[1, 2])
    with pytest.raises(ValueError, match="needs an estimator"):
        plot.missing_map_data(gaps, sort_by="component")
    with pytest.raises(ValueError, match="'component'"):
        plot.missing_map_data(gaps, sort_by="rows")
    with pytest.raises(DataError, match="rows and columns"):
        plot.missing_map_data(np.ones(3))


def test_missing_map_takes_tables_with_text():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1.0, None, 3.0], "b": ["x", None, None]})
    data = plot.missing_map_data(table)
    assert data.names == ("a", "b")
    np.testing.assert_allclose(data.column_share, [1 / 3, 2 / 3])


def test_missing_map_draws(following, gaps):
    X, model = following
    ax = plot.missing_map(X, model, sort_by="component")
    assert len(ax.images) == 1 and ax.images[0].get_array().shape == (600, 7)
    (above,) = ax.child_axes
    assert len(above.patches) == 7 and len(above.collections) == 2
    assert "1\u2009500 rows in 600 runs" in above.get_title(loc="left")
    assert "follow component 1" in above.get_title(loc="left")
    assert ax.get_ylabel() == "row, by first component"
    wide = plot.missing_map(np.tile(gaps, 6))
    assert not wide.get_xticklabels() and wide.get_xlabel() == "78 columns"
    assert plot.missing_map(gaps, sort_by=np.arange(178)).get_ylabel() == "row, sorted"


# -- intervals -------------------------------------------------------------------------------------


def by_hand(model, gaps, whole, reach):
    filled, std = model.impute(gaps, return_std=True)
    hidden = np.isnan(gaps) & ~np.isnan(whole)
    return np.abs(filled - whole)[hidden] <= reach * std[hidden]


@pytest.mark.parametrize(("level", "reach"), [(0.95, 1.959963984540054), (0.5, 0.6744897501960817)])
def test_coverage_is_a_count(model, gaps, whole, level, reach):
    data = plot.intervals_data(model, gaps, whole, level=level)
    inside = by_hand(model, gaps, whole, reach)
    assert len(data.row) == len(inside) == 228
    assert data.coverage == inside.sum() / 228
    np.testing.assert_array_equal(data.inside, (data.lower <= data.truth) & (data.truth <= data.upper))
    assert np.all(np.diff(data.predicted) >= 0)


def test_intervals_do_not_depend_on_units(model, gaps, whole):
    data = plot.intervals_data(model, gaps, whole)
    j, i = data.column[7], data.row[7]
    sd = np.sqrt(np.diag(model.get_covariance()))[j]
    assert data.truth[7] * sd + model.mean_[j] == pytest.approx(whole[i, j])
    scale = 10.0 ** np.arange(-6, 7)
    scaled = plot.intervals_data(PPCA(n_components=3).fit(gaps * scale), gaps * scale, whole * scale)
    np.testing.assert_allclose(scaled.truth, data.truth, rtol=1e-4, atol=1e-4)
    assert scaled.coverage == data.coverage


def test_intervals_of_some_known_cells(model, gaps, whole):
    some = whole.copy()
    some[50:] = gaps[50:]
    data = plot.intervals_data(model, gaps, some)
    assert len(data.row) == np.isnan(gaps[:50]).sum()
    assert data.coverage == by_hand(model, gaps, some, 1.959963984540054).mean()


def test_intervals_leave_constant_columns_out(gaps, whole):
    flat = np.full((178, 1), 2.0)
    holed = flat.copy()
    holed[:5] = np.nan
    X = np.hstack([gaps, holed])
    data = plot.intervals_data(PPCA(n_components=2).fit(X), X, np.hstack([whole, flat]))
    assert data.n_left_out == 5 and len(data.row) == 228


def test_intervals_of_an_imputer(gaps, whole):
    pytest.importorskip("covary._factor")
    imputer = Imputer(PPCA(n_components=3)).fit(gaps)
    data = plot.intervals_data(imputer, gaps, whole, level=0.8)
    lower, upper = imputer.interval(gaps, 0.8)
    hidden = np.isnan(gaps)
    assert data.coverage == ((lower <= whole) & (whole <= upper))[hidden].mean()
    empty = np.hstack([gaps, np.full((178, 1), np.nan)])
    with pytest.warns(UserWarning, match="dropped"):
        imputer = Imputer(PPCA(n_components=3)).fit(empty)
    again = plot.intervals_data(imputer, empty, np.hstack([whole, np.ones((178, 1))]), level=0.8)
    assert again.coverage == data.coverage
    assert plot.biplot_data(imputer, empty).loadings.shape == (13, 2)


def test_intervals_refuse(model, gaps, whole):
    with pytest.raises(DataError, match="of one shape"):
        plot.intervals_data(model, gaps, whole[:10])
    with pytest.raises(DataError, match="one table, with and without gaps"):
        plot.intervals_data(model, gaps, whole[::-1])
    with pytest.raises(DataError, match="no cell"):
        plot.intervals_data(model, gaps, gaps)
    with pytest.raises(ValueError):
        plot.intervals_data(model, gaps, whole, level=1.5)
    with pytest.raises(ValueError, match="kind"):
        plot.intervals(model, gaps, whole, kind="bars")


@pytest.mark.parametrize("kind", ["scatter", "sorted"])
def test_intervals_draw(model, gaps, whole, kind):
    ax = plot.intervals(model, gaps, whole, kind=kind)
    data = plot.intervals_data(model, gaps, whole)
    bars, inside, outside = ax.collections
    assert len(bars.get_segments()) == 228
    assert len(inside.get_offsets()) == data.inside.sum()
    assert len(outside.get_offsets()) == (~data.inside).sum()
    assert [text.get_text() for text in ax.texts] == [f"{100 * data.coverage:.1f} % of 228 inside"]
    assert "sd of the column" in ax.get_ylabel()
    ax = plot.intervals(model, gaps, whole, kind=kind, max_cells=50)
    assert "50 of 228 cells" in ax.get_title(loc="left")
    assert ax.texts[0].get_text() == f"{100 * data.coverage:.1f} % of 228 inside"


# -- all of them -----------------------------------------------------------------------------------


def every(model, gaps, whole, **options):
    yield plot.scree(model, gaps, n_copies=10, **options)
    yield plot.biplot(model, gaps, groups=np.arange(178) % 9, **options)
    yield plot.hinton(model, **options)
    yield plot.missing_map(gaps, model, **options)
    yield plot.intervals(model, gaps, whole, **options)


def test_given_axes_are_drawn_on(model, gaps, whole):
    figure, ax = plt.subplots()
    for drawn in every(model, gaps, whole, ax=ax):
        assert drawn is ax
        figure.canvas.draw()
        ax.clear()
    assert plt.get_fignums() == [figure.number]


def test_text_is_as_the_style_has_it(model, gaps, whole):
    from matplotlib.colors import to_rgb

    with plt.style.context("dark_background"):
        for ax in every(model, gaps, whole):
            ax.figure.canvas.draw()
            assert to_rgb(ax.get_facecolor()) == (0.0, 0.0, 0.0)
            for text in [ax.xaxis.label, ax.yaxis.label, *ax.texts]:
                assert sum(to_rgb(text.get_color())) > 1.5


def test_drawing_twice_gives_the_same_pixels(model, gaps, whole):
    def pixels():
        for ax in every(model, gaps, whole):
            ax.figure.canvas.draw()
            yield np.asarray(ax.figure.canvas.buffer_rgba()).copy()

    for one, other in zip(pixels(), pixels(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_names_of_a_table_without_warnings(gaps, whole, recwarn):
    pandas = pytest.importorskip("pandas")
    names = [f"measured {j}" for j in range(13)]
    X, truth = pandas.DataFrame(gaps, columns=names), pandas.DataFrame(whole, columns=names)
    model = PPCA(n_components=2).fit(X)
    assert plot.hinton_data(model).names == tuple(names)
    assert plot.missing_map_data(X).names == plot.missing_map_data(X, model).names == tuple(names)
    list(every(model, X, truth))
    assert not recwarn.list


def test_unfitted(gaps, whole):
    for ask in (
        lambda e: plot.scree(e),
        lambda e: plot.biplot(e, gaps),
        lambda e: plot.hinton(e),
        lambda e: plot.missing_map(gaps, e),
        lambda e: plot.intervals(e, gaps, whole),
    ):
        for estimator in (PPCA(), Imputer()):
            with pytest.raises(NotFittedError, match="not fitted yet"):
                ask(estimator)
        with pytest.raises(TypeError, match="got str"):
            ask("ppca")
    assert not plt.get_fignums()


def test_without_matplotlib_there_are_numbers_and_kind_words(model, gaps, whole, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    plot.scree_data(model, gaps, n_copies=5)
    plot.biplot_data(model, gaps)
    plot.hinton_data(model)
    plot.missing_map_data(gaps, model)
    plot.intervals_data(model, gaps, whole)
    drawn = (
        lambda: plot.scree(model),
        lambda: plot.biplot(model, gaps),
        lambda: plot.hinton(model),
        lambda: plot.missing_map(gaps),
        lambda: plot.intervals(model, gaps, whole),
    )
    for draw in drawn:
        with pytest.raises(ImportError, match="pip install matplotlib"):
            draw()


def test_importing_does_not_import_matplotlib():
    said = "import sys, covary.plot; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", said], check=True)


def test_dollars_in_names_are_only_dollars(tmp_path):
    """They would be mathematics to matplotlib, and broken mathematics an error."""
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    rows = np.random.default_rng(0).normal(size=(40, 3))
    rows[::7, 0] = np.nan
    frame = pytest.importorskip("pandas").DataFrame(rows, columns=["$^$", "price $ 0 $^", "plain"])
    model = PPCA(2, standardize=False).fit(frame)
    for draw in (lambda: plot.hinton(model), lambda: plot.biplot(model, frame), lambda: plot.missing_map(frame)):
        draw().figure.savefig(tmp_path / "figure.png")
        plt.close("all")


# -- rows in time ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def months():
    pd = pytest.importorskip("pandas")
    table = pd.read_csv(EXAMPLES / "months.csv", index_col="month", parse_dates=True)
    return table, DynamicFactor(2, season=12).fit(table)


def test_forecasts_drawn_are_those_of_the_model(months):
    table, model = months
    [data] = plot.forecast_data(model, table, steps=7)
    mean, low, high = model.forecast(table, 7, interval=0.95)
    assert data.n_past == 240 and data.sequence is None and data.names == tuple(table.columns)
    np.testing.assert_array_equal(data.mean[240:], mean)
    np.testing.assert_array_equal(data.lower95[240:], low)
    np.testing.assert_array_equal(data.upper95[240:], high)
    np.testing.assert_array_equal(data.lower50[240:], model.forecast(table, 7, interval=0.5)[1])
    assert str(data.times[240])[:7] == "2001-01"
    # Filled cells and intervals in the past, at the steps of their rows.
    filled, std = model.impute(table, return_std=True)
    step = [int(np.flatnonzero(data.times == when)[0]) for when in table.index.to_numpy()]
    gaps = np.isnan(table.to_numpy())
    np.testing.assert_array_equal(data.observed[step], table.to_numpy())
    np.testing.assert_allclose(data.mean[step][gaps], filled[gaps], rtol=1e-12)
    width = (data.upper95 - data.lower95)[step]
    np.testing.assert_allclose(width[gaps], 2 * 1.959963984540054 * std[gaps], rtol=1e-9)
    assert np.isnan(width[~gaps]).all()
    assert len(plot.forecast_data(model, table)[0].times) == 252


def test_the_numbers_are_those_of_the_command(months, command, tmp_path):
    import json

    table, model = months
    run = lambda *call: subprocess.run([command, *call], check=True, capture_output=True, text=True).stdout  # noqa: E731
    path, file = str(EXAMPLES / "months.csv"), str(tmp_path / "months.covary")
    run("fit", "-q", path, "--model", "dfm", "--time", "month", "--season", "12", "--components", "2", "-o", file)
    drawn = json.loads(run("plot", "-q", file, path, "--kind", "forecast", "--json"))
    [data] = plot.forecast_data(model, table)
    for series in drawn["series"]:
        j = data.names.index(series["column"])
        steps = series["past"] + series["ahead"]
        np.testing.assert_allclose([s["mean"] for s in steps], data.mean[-len(steps) :, j], rtol=1e-12)
        np.testing.assert_allclose([s["intervals"][1][0] for s in series["ahead"]], data.lower95[240:, j], rtol=1e-12)
    drawn = json.loads(run("plot", "-q", file, path, "--kind", "factors", "--json"))
    [data] = plot.factors_data(model, table)
    places = drawn["courses"][0]["places"]
    np.testing.assert_allclose([p["means"] for p in places], np.stack([data.mean] * 2, axis=2), rtol=1e-9, atol=1e-12)
    assert [p["observed"] for p in places] == data.observed.tolist()
    np.testing.assert_allclose([p["intervals"][0][1] for p in places], data.mean[:, 0] + 1.959963984540054 * data.sd[:, 0])


def test_rows_in_time_are_drawn(months):
    table, model = months
    axes = plot.forecast(model, table, steps=24)
    assert len(axes) == 7 and axes[0].get_title(loc="left") == "harbor"
    assert len(plot.forecast(model, table, columns=["lake"])) == 1
    with pytest.raises(ValueError, match="no column 'moon'; it has harbor"):
        plot.forecast(model, table, columns=["moon"])
    for steps in (0, 1.5, True):
        with pytest.raises(ValueError, match="steps"):
            plot.forecast_data(model, table, steps=steps)
    axes = plot.factors(model, table)
    assert [ax.get_ylabel() for ax in axes] == ["factor 1", "factor 2"]
    [data] = plot.factors_data(model, table)
    # The curve is interrupted where nothing was observed.
    assert np.isnan(axes[0].lines[0].get_ydata()).sum() == (~data.observed).sum() == 9
    axes[0].figure.canvas.draw()
    with pytest.raises(TypeError, match="DynamicFactor"):
        plot.forecast(PPCA(), table)
    with pytest.raises(NotFittedError):
        plot.factors(DynamicFactor(), table)


def test_sequences_have_colors_and_panels_of_their_own(months):
    table, _ = months
    both = table.assign(site=np.repeat(["a", "b"], [120, 117]), t=np.r_[np.arange(120.0), np.arange(117.0)])
    model = DynamicFactor(1, time="t", groups="site").fit(both)
    assert [data.sequence for data in plot.forecast_data(model, both)] == ["a", "b"]
    axes = plot.forecast(model, both, steps=3)
    assert len(axes) == 12 and axes[1].get_title(loc="left") == axes[0].get_title(loc="left")[:-1] + "b"
    axes = plot.factors(model, both)
    assert [text.get_text() for text in axes[0].get_legend().get_texts()] == ["a", "b"]


def test_maps_are_loadings_at_places(months):
    table, model = months
    places = {name: (44.0 + k / 4, 8.0 + k % 3) for k, name in enumerate(table.columns)}
    data = plot.map_data(model, places, component=2)
    np.testing.assert_array_equal(data.value, model.loadings_[:, 1])
    np.testing.assert_array_equal(data.latitude, 44.0 + np.arange(7) / 4)
    other = plot.map_data(model, list(places.values()), values=np.arange(7.0))
    np.testing.assert_array_equal(other.value, np.arange(7.0))
    ax = plot.map(model, places)
    assert ax.get_xlabel() == "degrees east" and len(ax.collections[0].get_offsets()) == 7
    with pytest.raises(DataError, match="coordinates has no 'lake'"):
        plot.map_data(model, {k: v for k, v in places.items() if k != "lake"})
    with pytest.raises(DataError, match="'harbor' is at \\(144.0, 8.0\\); latitudes are from -90 to 90"):
        plot.map_data(model, {**places, "harbor": (144.0, 8.0)})
    with pytest.raises(DataError, match="no component 3: the model has 2"):
        plot.map_data(model, places, component=3)
    with pytest.raises(DataError, match="shape"):
        plot.map_data(model, [(1.0, 2.0)])


def test_the_circle_has_correlations_and_contributions_their_shares(model: PPCA, gaps: np.ndarray) -> None:
    data = plot.circle_data(model, components=(2, 1))
    hinton = plot.hinton_data(model).loadings
    np.testing.assert_allclose(data.correlations, hinton[:, [1, 0]], rtol=1e-12)
    np.testing.assert_allclose(data.quality, hinton[:, 0] ** 2 + hinton[:, 1] ** 2, rtol=1e-12)
    # In the covariance of the model, C = W W' + Ψ: the correlation of column j with component k is w_jk / √C_jj.
    sd = np.sqrt(np.diag(model.get_covariance()))
    np.testing.assert_allclose(data.correlations[:, 1], model.loadings_[:, 0] / sd, rtol=1e-9)
    shares = plot.contributions_data(model)
    np.testing.assert_allclose(shares.contribution, hinton**2 / (hinton**2).sum(axis=0), rtol=1e-12)
    ax = plot.circle(model)
    assert len(ax.texts) == 2 * gaps.shape[1]
    ax = plot.contributions(model, max_columns=5)
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == sorted(widths, reverse=True) and len(widths) == 5
    np.testing.assert_allclose(widths[0], shares.contribution[:, 0].max())
    with pytest.raises(ValueError, match="from 1 to"):
        plot.circle_data(model, components=(1, 9))
    with pytest.raises(ValueError, match="from 1 to"):
        plot.contributions(model, component=0)
    with pytest.raises(DataError, match="2 component"):
        plot.circle(PPCA(n_components=1).fit(gaps))
    plt.close("all")


@pytest.mark.parametrize("standardize", [True, False])
def test_outliers_have_the_distances_of_the_dense_formula(gaps: np.ndarray, standardize: bool) -> None:
    from scipy.stats import chi2

    model = PPCA(n_components=3, standardize=standardize).fit(gaps)
    data = plot.outliers_data(model, gaps)
    covariance, mean = model.get_covariance(), model.mean_
    for i in (0, 5, 60, 121):
        here = ~np.isnan(gaps[i])
        y = gaps[i, here] - mean[here]
        dense = y @ np.linalg.solve(covariance[np.ix_(here, here)], y)
        assert data.score_distance[i] ** 2 + data.residual_distance[i] ** 2 == pytest.approx(dense, rel=1e-8)
        assert data.p_value[i] == pytest.approx(chi2.sf(dense, here.sum()), rel=1e-6)
        assert data.n_observed[i] == here.sum()
    assert data.cut_offs == pytest.approx((np.sqrt(chi2.ppf(0.975, 3)), np.sqrt(chi2.ppf(0.975, 10))))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_outliers_are_those_of_the_command(command, gaps: np.ndarray, tmp_path: Path) -> None:
    import json

    table = str(EXAMPLES / "wine_gaps.csv")
    for name in ("ppca", "tppca"):
        kept = str(tmp_path / f"{name}.covary")
        subprocess.run([command, "fit", "-q", table, "--model", name, "--components", "2", "-o", kept], check=True)
        call = [command, "plot", "-q", kept, table, "--kind", "outliers", "--json"]
        rows = json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout)["rows"]
        model = (PPCA if name == "ppca" else StudentPPCA).load(kept)
        data = plot.outliers_data(model, gaps)
        for row in rows:
            i = row["row"] - 1
            found = (data.score_distance[i], data.residual_distance[i], data.p_value[i])
            expected = (row["score_distance"], row["residual_distance"], row["p_value"])
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)


def test_outliers_draw(model: PPCA, gaps: np.ndarray) -> None:
    ax = plot.outliers(model, gaps, labels=[f"wine {i}" for i in range(len(gaps))])
    assert ax.texts and all(text.get_text().startswith("wine ") for text in ax.texts)
    marks = sum(len(collection.get_offsets()) for collection in ax.collections)
    assert marks == len(gaps)
    with pytest.raises(ValueError, match="one entry for each of 178 rows"):
        plot.outliers(model, gaps, labels=["a"])


def test_correlations_are_pearsons_over_complete_pairs(gaps: np.ndarray) -> None:
    data = plot.correlation_data(gaps)
    order = [int(name[1:]) - 1 for name in data.columns]
    assert sorted(order) == list(range(13))
    for a, i in enumerate(order):
        for b, j in enumerate(order):
            both = ~np.isnan(gaps[:, i]) & ~np.isnan(gaps[:, j])
            dense = np.corrcoef(gaps[both, i], gaps[both, j])[0, 1]
            assert data.correlations[a, b] == pytest.approx(dense, abs=1e-12)
    # Units do not matter, and a constant column has no correlation.
    scaled = np.column_stack([gaps * np.geomspace(1e-150, 1e150, 13), np.full(len(gaps), 3.0)])
    other = plot.correlation_data(scaled)
    assert np.isnan(other.correlations[other.columns.index("x14")]).all()
    first, second = other.columns.index("x6"), other.columns.index("x7")
    at = order.index(5), order.index(6)
    assert other.correlations[first, second] == pytest.approx(data.correlations[at], abs=1e-12)
    ax = plot.correlation(gaps)
    assert len(ax.texts) == 13 * 12 and ax.get_yticklabels()[0].get_text() == data.columns[0]


def test_patterns_count_every_row_once(gaps: np.ndarray, whole: np.ndarray) -> None:
    data = plot.patterns_data(gaps)
    missing = np.isnan(gaps)
    assert data.n_complete == (~missing.any(axis=1)).sum() and data.n_rows.sum() + data.n_complete == len(gaps)
    order = [int(name[1:]) - 1 for name in data.columns]
    assert data.n_missing.tolist() == missing.sum(axis=0)[order].tolist()
    for pattern, rows in zip(data.patterns, data.n_rows, strict=True):
        assert (missing[:, order] == pattern).all(axis=1).sum() == rows
    ax = plot.patterns(gaps, max_patterns=5)
    assert [bar.get_height() for bar in ax.child_axes[0].patches] == data.n_rows[:5].tolist()
    with pytest.raises(DataError, match="no value is missing"):
        plot.patterns(whole)


def test_coverage_by_column_is_counted(model: PPCA, gaps: np.ndarray, whole: np.ndarray) -> None:
    data = plot.calibration_data(model, gaps, whole, level=0.8)
    cells = plot.intervals_data(model, gaps, whole, level=0.8)
    assert data.n_cells.sum() == len(cells.row) and data.level == 0.8
    assert (data.coverage * data.n_cells).sum() == pytest.approx(cells.inside.sum())
    z2 = 1.959963984540054**2
    for share, n, low, high in zip(data.coverage, data.n_cells, data.lower, data.upper, strict=True):
        for p in (low, high):
            assert (share - p) ** 2 == pytest.approx(z2 * p * (1 - p) / n, abs=1e-12)
    ax = plot.calibration(model, gaps, whole, max_columns=4)
    assert len(ax.get_yticklabels()) == 4


@pytest.mark.parametrize("name", sorted(set(plot.__all__)))
def test_docstrings_are_complete(name):
    shared = getattr(plot, name).__doc__ or ""
    assert not [line for line in shared.splitlines() if line.strip().startswith("{")], shared
    if "ax" in inspect.signature(getattr(plot, name)).parameters:
        assert "ax : matplotlib Axes" in shared and "Returns\n" in shared


def test_every_line_of_panels_has_its_names(gaps):
    axes = plot.loadings(BayesianPCA().fit(gaps))
    assert len(axes) > 4
    named = [k for k, panel in enumerate(axes) if any(label.get_text() for label in panel.get_yticklabels())]
    assert named == [0, 4]
    plt.close("all")
    pictures = np.random.default_rng(0).normal(size=(40, 16))
    axes = plot.images(PPCA(n_components=2).fit(pictures), (4, 4), pictures)
    titles = [panel.get_title(loc="left") for panel in axes if panel.get_title(loc="left")]
    assert titles[1] == "reconstructed by the model" and len(titles) == 3
    plt.close("all")
