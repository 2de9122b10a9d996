"""Fields in time: dimensions, labels and empty places in and out."""

import numpy as np
import pytest

from covary import PPCA, DynamicFactor, Imputer
from covary.exceptions import DataError, DataWarning, NotFittedError

xr = pytest.importorskip("xarray", reason="SKIPPED: no xarray; pip install covary[xarray]")
pd = pytest.importorskip("pandas")

from covary.xr import Gridded  # noqa: E402


@pytest.fixture(scope="module")
def field():
    """Two patterns over 4 × 5 places, a season, clouds; a corner of land."""
    rng = np.random.default_rng(3)
    n, x = 96, np.zeros(2)
    patterns, factors = rng.normal(size=(2, 20)), []
    for _ in range(n):
        x = 0.8 * x + 0.6 * rng.normal(size=2)
        factors.append(x)
    season = np.cos(np.arange(n) / 6 * np.pi)[:, None] * rng.normal(1, 0.2, size=20)
    cells = 20 + np.array(factors) @ patterns + 2 * season + 0.2 * rng.normal(size=(n, 20))
    cells[rng.random(cells.shape) < 0.15] = np.nan
    cells[40:43] = np.nan
    cells = cells.reshape(n, 4, 5)
    cells[:, 0, :2] = np.nan
    return xr.DataArray(
        cells, dims=("month", "latitude", "longitude"), name="sst", attrs={"units": "degC"},
        coords={
            "month": pd.date_range("2001-01-01", periods=n, freq="MS"),
            "latitude": [-60.0, -20.0, 20.0, 60.0],
            "longitude": [0, 10, 20, 30, 40],
            "basin": ("longitude", list("aabbb")),
        },
    )  # fmt: skip


def table(field):
    """Its columns with a value, and where they are."""
    rows = field.transpose("month", "latitude", "longitude").to_numpy().reshape(field.sizes["month"], -1)
    kept = ~np.isnan(rows).all(axis=0)
    return rows[:, kept], kept


def test_a_dynamic_model_of_a_field_is_that_of_its_table(field):
    model = Gridded(DynamicFactor(2, season=12)).fit(field)
    rows, kept = table(field)
    frame = pd.DataFrame(rows, index=field["month"].to_index())
    frame.columns = [f"c{j}" for j in range(rows.shape[1])]
    own = DynamicFactor(2, season=12).fit(frame)
    assert model.n_places_ == 18 and model.estimator_.feature_names_in_[0] == "latitude=-60.0,longitude=20"
    filled, std = model.impute(field, return_std=True)
    for mine, wanted in zip((filled, std), own.impute(frame, return_std=True), strict=True):
        xr.testing.assert_identical(mine.coords.to_dataset(), field.coords.to_dataset())
        assert mine.dims == field.dims and mine.attrs == field.attrs and mine.name == "sst"
        np.testing.assert_array_equal(table(mine)[0], wanted)
        assert mine[:, 0, :2].isnull().all()
    factors = model.transform(field)
    assert factors.dims == ("month", "component") and factors["component"].values.tolist() == [1, 2]
    np.testing.assert_array_equal(factors, own.transform(frame))
    np.testing.assert_array_equal(model.transform(field, filtered=True), own.transform(frame, filtered=True))
    mean, lower, upper = model.forecast(field, 3, interval=0.9)
    assert mean["month"].dt.strftime("%Y-%m").values.tolist() == ["2009-01", "2009-02", "2009-03"]
    np.testing.assert_array_equal(mean.to_numpy().reshape(3, -1)[:, kept], own.forecast(frame, 3))
    assert (lower < mean).sum() == 54 and (upper > mean).sum() == 54 and mean[:, 0, :2].isnull().all()
    np.testing.assert_array_equal(model.loadings().to_numpy().reshape(2, -1)[:, kept], own.loadings_.T)


def test_the_order_of_dimensions_and_of_times_does_not_matter(field):
    model = Gridded(DynamicFactor(1), time="month").fit(field)
    turned = field.transpose("longitude", "month", "latitude")
    other = Gridded(DynamicFactor(1)).fit(turned)
    again = other.impute(turned)
    assert again.dims == turned.dims
    np.testing.assert_allclose(again.transpose(*field.dims), model.impute(field), rtol=1e-6)
    shuffled = field.isel(month=np.random.default_rng(0).permutation(96))
    np.testing.assert_allclose(model.impute(shuffled).sortby("month"), model.impute(field), rtol=1e-12)
    # A month that is not in the file is a step without a row.
    left = field.drop_isel(month=[41])
    np.testing.assert_allclose(model.impute(left), model.impute(field).drop_isel(month=[41]), rtol=1e-12)


def test_ppca_and_imputer(field):
    rows, kept = table(field)
    ppca = Gridded(PPCA(n_components=2)).fit(field)
    own = PPCA(n_components=2).fit(rows)
    np.testing.assert_array_equal(table(ppca.impute(field))[0], own.impute(rows))
    np.testing.assert_array_equal(ppca.transform(field), own.transform(rows))
    imputer = Gridded(Imputer("ppca")).fit(field)
    filled, std = imputer.impute(field, return_std=True)
    np.testing.assert_array_equal(table(filled)[0], Imputer("ppca").fit(rows).transform(rows))
    assert float(std.sum()) > 0 and filled[:, 0, :2].isnull().all()
    with pytest.raises(DataError, match="Imputer has no scores"):
        imputer.transform(field)
    with pytest.raises(DataError, match="PPCA knows no time"):
        ppca.forecast(field, 1)


def test_area_weights_are_those_of_the_weighted_table(field):
    rows, kept = table(field)
    root = np.sqrt(np.cos(np.deg2rad(np.repeat([-60.0, -20.0, 20.0, 60.0], 5))))[kept]
    own = PPCA(n_components=2, standardize=False).fit(rows * root)
    model = Gridded(PPCA(n_components=2, standardize=False), area_weights=True).fit(field)
    np.testing.assert_allclose(table(model.impute(field))[0], own.impute(rows * root) / root, rtol=1e-12)
    seen = field.notnull()
    np.testing.assert_array_equal(model.impute(field).where(seen), field)
    np.testing.assert_array_equal(model.transform(field), own.transform(rows * root))
    np.testing.assert_allclose(model.loadings().to_numpy().reshape(2, -1)[:, kept], own.loadings_.T / root)
    named = Gridded(PPCA(n_components=2, standardize=False), area_weights="latitude").fit(field)
    np.testing.assert_array_equal(named.impute(field), model.impute(field))
    with pytest.raises(DataError, match="standardize=False"):
        Gridded(PPCA(n_components=2), area_weights=True).fit(field)
    with pytest.raises(DataError, match="which dimension is latitude"):
        Gridded(PPCA(n_components=2, standardize=False), area_weights=True).fit(field.rename(latitude="y"))


def test_single_precision_stays(field):
    filled = Gridded(PPCA(n_components=1)).fit(field.astype(np.float32)).impute(field.astype(np.float32))
    assert filled.dtype == np.float32


def test_times_that_are_numbers_or_none(field):
    years = field.assign_coords(month=2001 + np.arange(96) / 12)
    model = Gridded(DynamicFactor(1), time="month").fit(years)
    assert float(model.forecast(years, 1)["month"][0]) == pytest.approx(2009)
    counted = field.drop_vars("month")
    model = Gridded(DynamicFactor(1), time="month").fit(counted)
    assert model.forecast(counted, 2)["month"].values.tolist() == [96, 97]


def test_what_is_no_such_field_is_refused_by_name(field):
    with pytest.raises(NotFittedError):
        Gridded(PPCA()).impute(field)
    with pytest.raises(DataError, match="got ndarray"):
        Gridded(PPCA()).fit(field.to_numpy())
    with pytest.raises(DataError, match="give one of them: sst"):
        Gridded(PPCA()).fit(field.to_dataset())
    with pytest.raises(DataError, match="no dimension 'year'; it has month, latitude, longitude"):
        Gridded(PPCA(), time="year").fit(field)
    with pytest.raises(DataError, match="which dimension is time"):
        Gridded(PPCA()).fit(field.drop_vars("month"))
    with pytest.raises(DataError, match="needs places"):
        Gridded(PPCA()).fit(field[:, 2, 2])
    with pytest.raises(DataError, match="no cell of the field has a value"):
        Gridded(PPCA()).fit(field.where(False))
    model = Gridded(PPCA(n_components=1)).fit(field)
    with pytest.raises(DataError, match="other places than the model along 'longitude'"):
        model.impute(field.assign_coords(longitude=[1, 2, 3, 4, 5]))
    with pytest.raises(DataError, match="other places than the model along 'latitude'"):
        model.impute(field[:, :2])
    twice = xr.concat([field, field[:1]], "month")
    with pytest.raises(DataError, match="rows 1 and 97 both have 2001-01-01"):
        Gridded(DynamicFactor(1)).fit(twice)
    land = field.copy()
    land[3, 0, 0] = 7.0
    with pytest.warns(DataWarning, match="1 cells are observed at places"):
        filled = model.impute(land)
    assert float(filled[3, 0, 0]) == 7.0 and filled[4, 0, 0].isnull()
