"""Every kind of figure in Python, the card of a notebook, and the report of a fitted model."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import pandas as pd  # noqa: E402

import covary  # noqa: E402
from covary import plot  # noqa: E402
from covary.exceptions import ComponentsError, DataError, NotFittedError, OptionError  # noqa: E402

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(scope="module")
def wine() -> pd.DataFrame:
    return pd.read_csv(EXAMPLES / "wine_gaps.csv")


@pytest.fixture(scope="module")
def gaps(wine: pd.DataFrame) -> pd.DataFrame:
    return wine.drop(columns="cultivar")


@pytest.fixture(scope="module")
def whole() -> pd.DataFrame:
    return pd.read_csv(EXAMPLES / "wine.csv").drop(columns="cultivar")


@pytest.fixture(scope="module")
def growth() -> pd.DataFrame:
    return pd.read_csv(EXAMPLES / "growth.csv")


@pytest.fixture(scope="module")
def model(gaps: pd.DataFrame) -> covary.PPCA:
    return covary.PPCA(n_components=3).fit(gaps)


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    plt.close("all")


def test_every_kind_of_the_command_has_a_function():
    kinds = (Path(__file__).parents[2] / "covary-report" / "src" / "plot" / "mod.rs").read_text(encoding="utf-8")
    names = re.findall(r'Self::\w+ => "(\w+)"', kinds)
    assert len(names) == 31
    assert [name for name in names if not callable(getattr(plot, name, None))] == []


def test_loadings_have_the_numbers_of_the_model(model, gaps):
    axes = plot.loadings(model)
    hinton = plot.hinton_data(model)
    for k, ax in enumerate(axes):
        np.testing.assert_allclose([bar.get_width() for bar in ax.patches], hinton.loadings[:, k], rtol=1e-12)
    bayes = covary.BayesianPCA(n_components=4).fit(gaps)
    ax = plot.loadings(bayes, components=[1])[0]
    assert len(ax.lines) == 1 + gaps.shape[1]
    with pytest.raises(ComponentsError, match="component 9"):
        plot.loadings(model, components=[9])


def test_scores_are_those_of_transform(model, wine, gaps):
    found = plot.numbers("scores", model, gaps, color=wine["cultivar"])
    np.testing.assert_allclose([[p["x"], p["y"]] for p in found["points"]], model.transform(gaps)[:, :2], rtol=1e-9)
    assert found["color_by"] == "cultivar" and found["groups"] == ["c1", "c2", "c3"]
    ax = plot.scores(model, gaps, color=wine["cultivar"], labels=np.arange(len(gaps)))
    assert ax.get_legend().get_title().get_text() == "cultivar"
    assert sum(len(c.get_offsets()) for c in ax.collections) == len(gaps)
    assert ax.get_xlabel().startswith("component 1 (") and len(ax.texts) == 25
    with pytest.raises(DataError, match="color"):
        plot.scores(model, gaps, color=["a"])


def test_one_component_is_a_density(gaps):
    ax = plot.scores(covary.PPCA(n_components=1).fit(gaps), gaps)
    assert ax.get_ylabel() == "density"


def test_figures_of_panels_fill_the_axes_given(model, wine, gaps):
    figure, axes = plt.subplots(1, 2)
    drawn = plot.covariance(model, gaps, ax=axes[0])
    assert len(drawn) == 3 and all(ax.figure is figure for ax in drawn)
    observed = plot.numbers("covariance", model, gaps)
    np.testing.assert_allclose(np.diag(observed["data"]), 1.0, rtol=1e-9)
    assert len(plot.samples(model, gaps)) == 13
    assert len(plot.density(model, gaps)) == 13
    assert len(plot.pairs(model, gaps, color=wine["cultivar"])) == 9


def test_trace_relevance_and_select(model, gaps, whole):
    bayes = covary.BayesianPCA().fit(gaps)
    ax = plot.trace(model, bayes)
    assert len(ax.lines) == 2 and ax.get_yscale() == "log"
    np.testing.assert_allclose(ax.lines[0].get_ydata()[0], model.trace_[-1] - model.trace_[0], rtol=1e-9)
    assert plot.relevance(bayes).get_yscale() == "log"
    with pytest.raises(OptionError):
        plot.relevance(model)
    axes = plot.select(whole.iloc[:, :6], max_components=3)
    assert len(axes) >= 4 and axes[-1].get_title(loc="left") == "number chosen by each"


def test_figures_of_other_families(whole, gaps, growth):
    groups = covary.MixturePPCA(n_mixtures=2, n_components=1).fit(gaps)
    assert plot.mixture(groups, gaps).get_xlabel().startswith("axis 1: ")
    source = covary.InfomaxICA(n_components=3).fit(whole)
    assert len(plot.sources(source, whole)) == 3
    sparse = covary.SparsePPCA(n_components=2).fit(gaps)
    assert len(plot.path(sparse, gaps)) == 2
    views = covary.ProbabilisticCCA(n_components=2).fit(whole.iloc[:, :5], whole.iloc[:, 5:])
    assert [t.get_text() for t in plot.views(views).get_yticklabels()] == ["x", "y"]
    curves = covary.FunctionalPCA(n_components=2, curve="child", time="age").fit(growth)
    assert len(plot.eigenfunctions(curves)) == 3
    assert len(plot.curves(curves, growth)) == 12
    factors = covary.FactorAnalysis(n_components=2, rotation="varimax").fit(whole)
    assert "RMSEA" in plot.diagram(factors).get_title(loc="left")
    pixels = covary.PPCA(n_components=2).fit(whole.iloc[:, :12])
    assert len(plot.images(pixels, (3, 4), whole.iloc[:, :12])) == 24


def test_numbers_are_refused_with_reasons(model, gaps):
    with pytest.raises(NotFittedError):
        plot.loadings(covary.PPCA())
    with pytest.raises(TypeError):
        plot.loadings("model")
    with pytest.raises(OptionError, match="there is no figure `pie`"):
        plot.numbers("pie", model, gaps)


def test_a_notebook_shows_a_card(model, gaps):
    html = model._repr_html_()
    assert "probabilistic PCA, 3 components" in html and "178 rows of 13 columns" in html and "<svg" in html
    assert "PPCA" in model._repr_mimebundle_()["text/html"] and "log-likelihood" in html
    assert "178 rows" not in covary.PPCA()._repr_html_()
    assert "Gaussian" in covary.Imputer().fit(gaps)._repr_html_()
    hostile = gaps.rename(columns={"alcohol": "<script>alert(1)</script>"})
    assert "<script>alert(1)" not in covary.PPCA(n_components=1).fit(hostile)._card()


def test_a_report_says_what_the_estimator_knows(model, wine, gaps, tmp_path):
    page = tmp_path / "report.html"
    facts = model.report(page, gaps, color=wine["cultivar"])
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>") and 'data-figure="biplot"' in text and "http://" not in text
    np.testing.assert_allclose(facts["model"]["shares"], model.explained_variance_ratio_, rtol=1e-9)
    cell = facts["filled"]["cells"][0]
    filled, std = model.impute(gaps, return_std=True)
    place = (cell["row"] - 1, list(gaps.columns).index(cell["column"]))
    np.testing.assert_allclose([cell["mean"], cell["sd"]], [np.asarray(filled)[place], np.asarray(std)[place]], rtol=1e-6)
    assert facts["check"]["n_hidden"] > 100
    assert model.report(page, gaps, check=False)["check"] is None
    json.dumps(facts)


@pytest.mark.parametrize("family", ["mixture", "sources", "curves", "views", "time"])
def test_every_family_has_a_report(family, gaps, whole, growth, tmp_path):
    page = tmp_path / "report.html"
    if family == "mixture":
        facts = covary.MixturePPCA(n_mixtures=2, n_components=1).fit(gaps).report(page, gaps, check=False)
        assert len(facts["structure"]["groups"]["groups"]) == 2
    elif family == "sources":
        facts = covary.InfomaxICA(n_components=2).fit(whole).report(page, whole)
        assert len(facts["structure"]["sources"]) == 2 and facts["filled"] is None
    elif family == "curves":
        model = covary.FunctionalPCA(n_components=2, curve="child", time="age").fit(growth)
        assert model.report(page, growth, check=False)["structure"]["curves"]["n_curves"] == 60
    elif family == "views":
        model = covary.ProbabilisticCCA(n_components=1).fit(whole.iloc[:, :5], whole.iloc[:, 5:])
        both = (whole.iloc[:, :5], whole.iloc[:, 5:])
        assert len(model.report(page, both, check=False)["structure"]["views"]["views"]) == 2
        with pytest.raises(DataError, match="tuple"):
            model.report(page, whole)
    else:
        months = pd.read_csv(EXAMPLES / "months.csv", parse_dates=["month"])
        model = covary.DynamicFactor(n_components=1, time="month", season=12).fit(months)
        assert model.report(page, months, check=False)["time"]["n_rows"] == len(months)
    assert page.stat().st_size > 10_000
