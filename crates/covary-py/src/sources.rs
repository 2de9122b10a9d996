//! `Sources`: what independent components answer beyond what every learned model does.

use crate::array::{Array1, Array2, array1, array2, numbers};
use crate::error::of;
use crate::learned::Learned;
use covary::ica::{Fit, Mixing, Unmixing};
use numpy::PyReadonlyArray2;
use pyo3::prelude::*;

/// From rows to sources and back.
#[pyclass(frozen, extends = Learned, module = "covary._covary")]
pub(crate) struct Sources;

/// The learned model behind it, and its fit.
fn parts<'a>(slf: &'a Bound<'_, Sources>) -> (&'a Learned, &'a Fit) {
    let own = slf.as_super().get();
    (own, own.learned.sources().expect("`Sources` are made of these only"))
}

/// A part of the unmixing, which there is none of behind noise.
fn exact<'py>(
    slf: &Bound<'py, Sources>,
    part: fn(&Unmixing) -> &covary::Matrix,
) -> PyResult<Option<Array2<'py>>> {
    let (own, fit) = parts(slf);
    match &fit.model {
        Mixing::Exact(model) => array2(slf.py(), own.place.widen_rows(part(model), |_| 0.0)).map(Some),
        Mixing::Noisy(_) => Ok(None),
    }
}

#[pymethods]
impl Sources {
    #[getter]
    fn mean<'py>(slf: &Bound<'py, Self>) -> Array1<'py> {
        let (own, fit) = parts(slf);
        array1(slf.py(), own.place.widen(fit.model.mean(), |v| v))
    }

    #[getter]
    fn mixing<'py>(slf: &Bound<'py, Self>) -> PyResult<Array2<'py>> {
        let (own, fit) = parts(slf);
        array2(slf.py(), own.place.widen_columns(fit.model.mixing()))
    }

    /// None behind noise.
    #[getter]
    fn unmixing<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Array2<'py>>> {
        exact(slf, Unmixing::unmixing)
    }

    /// None behind noise.
    #[getter]
    fn whitening<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Array2<'py>>> {
        exact(slf, Unmixing::whitening)
    }

    /// Of every column; None without noise.
    #[getter]
    fn noise_variance<'py>(slf: &Bound<'py, Self>) -> Option<Array1<'py>> {
        let own = parts(slf).0;
        let model = own.learned.noisy_sources().ok()?;
        Some(array1(slf.py(), own.place.widen(model.noise_variances(), |_| 0.0)))
    }

    #[getter]
    fn kurtosis<'py>(slf: &Bound<'py, Self>) -> Array1<'py> {
        array1(slf.py(), parts(slf).1.kurtosis.clone())
    }

    /// The density of each source, of maximum likelihood.
    #[getter]
    fn densities(slf: &Bound<'_, Self>) -> Vec<&'static str> {
        parts(slf).1.kinds.iter().map(|kind| kind.name()).collect()
    }

    /// Rows from sources.
    fn decode<'py>(slf: &Bound<'py, Self>, sources: PyReadonlyArray2<'_, f64>) -> PyResult<Array2<'py>> {
        let (own, fit) = parts(slf);
        let rows = fit.model.decode(&numbers(&sources)?).map_err(of)?;
        array2(slf.py(), own.place.widen_rows(&rows, |v| v))
    }
}
