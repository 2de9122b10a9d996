"""Group factor analysis: views as tables, as sizes and by name; what is shared, and by whom."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

import covary
from covary.exceptions import ComponentsError, DataError, OptionError

SIZES = {"genes": 10, "images": 8, "notes": 12}
PLANTED = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=bool)


@pytest.fixture(scope="module")
def views():
    """Three views with two shared components and one private to each; a tenth of the cells is missing, and the
    notes of every fifth row."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(300, 5))
    made = {}
    for v, (name, size) in enumerate(SIZES.items()):
        w = rng.normal(size=(5, size)) * PLANTED[:, v : v + 1]
        table = x @ w + 0.6 * rng.normal(size=(300, size)) + v
        table[rng.random(table.shape) < 0.1] = np.nan
        made[name] = table
    made["notes"][::5] = np.nan
    return made


@pytest.fixture(scope="module")
def joined(views):
    return np.hstack(list(views.values()))


@pytest.fixture(scope="module")
def fitted(views):
    return covary.GroupFactorAnalysis(12, standardize=False).fit(views)


def test_the_planted_pattern_is_found(fitted):
    assert sorted(map(tuple, fitted.activity_.T.tolist())) == sorted(map(tuple, PLANTED.tolist()))
    assert fitted.converged_ and fitted.n_components_ == 5
    assert fitted.loadings_.shape == (30, 5) and fitted.relevance_.shape == fitted.signal_.shape == (3, 5)
    assert list(fitted.views_) == list(SIZES)
    assert fitted.noise_variance_ == pytest.approx([0.36] * 3, rel=0.1)
    explained = fitted.explained_variance_by_view_
    assert (explained[~fitted.activity_] < 0.01).all() and (explained[fitted.activity_] > 0.01).all()
    assert fitted.lower_bound_ == fitted.trace_[-1]


def test_tables_sizes_and_names_are_the_same_question(views, joined, fitted):
    import pandas as pd

    by_size = covary.GroupFactorAnalysis(12, views=list(SIZES.values()), standardize=False).fit(joined)
    in_list = covary.GroupFactorAnalysis(12, standardize=False).fit(list(views.values()))
    assert (by_size.loadings_ == fitted.loadings_).all() and (in_list.loadings_ == fitted.loadings_).all()
    assert list(by_size.views_) == [0, 1, 2]
    # Columns of a view may stand anywhere.
    names = [f"{view}{j}" for view, size in SIZES.items() for j in range(size)]
    frame = pd.DataFrame(joined, columns=names)
    mixed = frame[names[::2] + names[1::2]]
    named = {view: [name for name in names if name.startswith(view)] for view in SIZES}
    found = covary.GroupFactorAnalysis(12, views=named, standardize=False).fit(mixed)
    order = [names.index(name) for name in mixed.columns]
    assert np.allclose(found.loadings_, fitted.loadings_[order], rtol=1e-8, atol=1e-10)
    assert (found.noise_variance_ == fitted.noise_variance_).all()
    numbers = {view: [mixed.columns.get_loc(name) for name in found] for view, found in named.items()}
    again = covary.GroupFactorAnalysis(12, views=numbers, standardize=False).fit(mixed.to_numpy())
    assert (again.loadings_ == found.loadings_).all()
    assert np.allclose(found.impute(mixed), fitted.impute(views)[:, order])
    assert (found.transform(mixed) == found.transform({v: frame[c] for v, c in named.items()})).all()


def test_a_missing_view_is_predicted_from_the_others(views, joined, fitted):
    two = {name: views[name] for name in ("genes", "images")}
    hidden = joined.copy()
    hidden[:, fitted.views_["notes"]] = np.nan
    filled, std = fitted.impute(two, return_std=True)
    assert (filled == fitted.impute(hidden)).all()
    assert (filled == fitted.impute([views["genes"], views["images"], None])).all()
    notes = fitted.views_["notes"]
    seen = ~np.isnan(joined[:, notes])
    error = (filled[:, notes] - joined[:, notes])[seen]
    assert error.var() < 0.9 * joined[:, notes][seen].var()
    inside = np.abs(error) < 1.645 * std[:, notes][seen]
    assert 0.86 < inside.mean() < 0.94
    assert fitted.transform(two).shape == (300, 5)
    assert np.isfinite(fitted.score_samples(two)).all()


def test_one_view_is_bayesian_pca(wine_gaps):
    one = covary.GroupFactorAnalysis(6, standardize=False).fit(wine_gaps)
    pca = covary.BayesianPCA(6, inference="mean_field", standardize=False).fit(wine_gaps)
    assert (one.loadings_ == pca.loadings_).all() and one.lower_bound_ == pca.lower_bound_
    assert one.noise_variance_.tolist() == [pca.noise_variance_]
    assert (one.relevance_ == pca.relevance_[None]).all()
    assert one.activity_.shape == (1, one.n_components_)


def test_units_of_a_view_do_not_matter(views, fitted):
    grams = covary.GroupFactorAnalysis(12, standardize=False).fit({**views, "images": 1000 * views["images"]})
    assert np.allclose(np.abs(grams.loadings_[:10]), np.abs(fitted.loadings_[:10]), atol=1e-3)
    assert grams.noise_variance_[1] == pytest.approx(1e6 * fitted.noise_variance_[1], rel=1e-3)
    assert (grams.activity_ == fitted.activity_).all()


def test_noise_of_columns_and_standardized_ones(joined):
    sizes = list(SIZES.values())
    for options in ({"noise": "diagonal"}, {"standardize": True}):
        found = covary.GroupFactorAnalysis(12, views=sizes, **options).fit(joined)
        assert found.noise_variance_.shape == (30,) and found.activity_.shape == (3, found.n_components_)
        if "noise" in options:
            assert found.noise_variance_ == pytest.approx(np.full(30, 0.36), rel=0.6)


def test_single_precision_and_constant_columns(views):
    small = {name: table.astype(np.float32) for name, table in views.items()}
    small["genes"] = np.insert(small["genes"], 3, 7.0, axis=1)
    found = covary.GroupFactorAnalysis(12, standardize=False).fit(small)
    assert found.loadings_.dtype == found.transform(small).dtype == np.float32
    assert (found.loadings_[3] == 0).all() and found.mean_[3] == 7
    assert found.impute({"notes": small["notes"]})[0, 3] == 7
    assert found.noise_variance_ == pytest.approx([0.36] * 3, rel=0.1)


def test_a_pickle_keeps_views(fitted, views):
    twin = pickle.loads(pickle.dumps(fitted))
    assert (twin.transform(views) == fitted.transform(views)).all()
    assert (twin.relevance_ == fitted.relevance_).all() and list(twin.views_) == list(SIZES)
    assert clone(fitted).fit(views).lower_bound_ == fitted.lower_bound_


def test_a_file_keeps_views(fitted, views, tmp_path):
    fitted.save(tmp_path / "views.covary")
    found = covary.load(tmp_path / "views.covary")
    assert isinstance(found, covary.GroupFactorAnalysis) and list(found.views_) == list(SIZES)
    assert (found.transform(views) == fitted.transform(views)).all()
    for name in ("relevance_", "activity_", "explained_variance_by_view_", "noise_variance_", "loadings_"):
        assert (getattr(found, name) == getattr(fitted, name)).all()
    assert clone(found).get_params()["noise"] == "isotropic"


def test_standardized_columns_have_their_own_noise(joined):
    sizes = list(SIZES.values())
    found = covary.GroupFactorAnalysis(12, views=sizes, standardize=True).fit(joined)
    assert found.noise_variance_.shape == (30,) and (found.activity_.sum(axis=0) > 1).sum() == 2
    equal = covary.GroupFactorAnalysis(12, views=sizes, standardize=True, noise="isotropic").fit(joined)
    # Equal noise in standardized columns takes all that are offered.
    assert found.n_components_ < equal.n_components_ == 12


def test_views_that_do_not_fit_are_named(views, joined, fitted):
    def fit(X, **options):
        return covary.GroupFactorAnalysis(**options).fit(X)

    for views_, error, says in (
        ([10, 8], OptionError, "add up to the 30 of X"),
        ([10, 0, 20], OptionError, "1 at least"),
        ("genes", OptionError, "'views' parameter"),
        (3, OptionError, "'views' parameter"),
        ({"a": [0, 1], "b": []}, OptionError, "view 'b' too"),
        ({"a": [0, 1], "b": [1, 2]}, DataError, "column 1 is in view 'a' and in view 'b'"),
        ({"a": [0, 1, 30]}, DataError, "X has no column 30"),
        ({"a": ["height"]}, DataError, "X has no column 'height'"),
        ({"a": range(29)}, DataError, "column 29 is in no view"),
    ):
        with pytest.raises(error, match=says):
            fit(joined, views=views_)
    with pytest.raises(DataError, match="view 'genes' has 300 rows and view 'images' 299"):
        fit({**views, "images": views["images"][:-1]})
    with pytest.raises(DataError, match="no column of view `images` varies"):
        fit({**views, "images": np.ones((300, 8))})
    with pytest.raises(DataError, match=r"`images\.3` has no observed value"):
        empty = views["images"].copy()
        empty[:, 2] = np.nan
        fit({**views, "images": empty})
    with pytest.raises(DataError, match="view 'images': .*could not convert"):
        fit({**views, "images": np.full((300, 2), "no")})
    with pytest.raises(OptionError, match="None where each view is a table"):
        fit(views, views=[10, 8, 12])
    with pytest.raises(DataError, match="holds no view"):
        fit({})
    with pytest.raises(ComponentsError, match="n_components=30 must be below n_features=30"):
        fit(views, n_components=30)
    with pytest.raises(OptionError, match="'noise' parameter"):
        fit(views, noise="loud")
    with pytest.raises(OptionError, match="no option `color`"):
        fit(views, prior={"color": 1})
    for asked, says in (
        ({"sounds": views["genes"]}, "no view 'sounds'"),
        ({"genes": views["images"]}, "view 'genes' has 8 columns; it had 10"),
        ([views["genes"]], "X lists 1 views; the model has 3"),
        ([None, None, None], "3 features|2D array|holds no view"),
    ):
        with pytest.raises(ValueError, match=says):
            fitted.transform(asked)
