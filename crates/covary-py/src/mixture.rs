//! `Mixture`: what a mixture, or a model for each class, answers beyond what every learned model does.

use crate::array::{Array1, Array2, Array3, Table, array1, array2, array3};
use crate::learned::Learned;
use covary::learned::MixtureFit;
use covary::{Coordinates, LinearGaussian, Matrix, Noise};
use numpy::PyArrayMethods;
use pyo3::prelude::*;

/// Several models, or one for each class.
#[pyclass(frozen, extends = Learned, module = "covary._covary")]
pub(crate) struct Mixture;

/// The learned model behind it, and its fit.
pub(crate) fn parts<'a>(slf: &'a Bound<'_, Mixture>) -> (&'a Learned, &'a MixtureFit) {
    let own = slf.as_super().get();
    (own, own.learned.mixture().expect("a `Mixture` is made of these only"))
}

/// What `part` says of each model.
fn each<T>(slf: &Bound<'_, Mixture>, part: impl Fn(&LinearGaussian) -> T) -> Vec<T> {
    parts(slf).1.mixture.models().iter().map(part).collect()
}

/// K matrices of one shape as one array.
fn stacked<'py>(py: Python<'py>, parts: &[Matrix]) -> PyResult<Array3<'py>> {
    array3(py, [parts.len(), parts[0].n_rows(), parts[0].n_columns()], parts.iter())
}

#[pymethods]
impl Mixture {
    /// Names of the classes, if its models are such.
    #[getter]
    fn classes(slf: &Bound<'_, Self>) -> Option<Vec<String>> {
        Some(parts(slf).1.classes.as_ref()?.names.clone())
    }

    /// Whether all models share one covariance.
    #[getter]
    fn shares_covariance(slf: &Bound<'_, Self>) -> bool {
        parts(slf).0.learned.shares_covariance()
    }

    /// Free parameters.
    #[getter]
    fn n_parameters(slf: &Bound<'_, Self>) -> PyResult<usize> {
        parts(slf).0.learned.n_parameters().map_err(crate::error::of)
    }

    #[getter]
    fn weights<'py>(slf: &Bound<'py, Self>) -> Array1<'py> {
        array1(slf.py(), parts(slf).1.mixture.weights().to_vec())
    }

    /// K × d.
    #[getter]
    fn means<'py>(slf: &Bound<'py, Self>) -> PyResult<Array2<'py>> {
        let place = &parts(slf).0.place;
        array2(slf.py(), Matrix::from_rows(&each(slf, |model| place.widen(model.mean(), |v| v))))
    }

    /// Components of each model.
    #[getter]
    fn components_of_each(slf: &Bound<'_, Self>) -> Vec<usize> {
        parts(slf).1.components()
    }

    /// K × d × q, zero beyond the components that a model has.
    #[getter]
    fn loadings<'py>(slf: &Bound<'py, Self>) -> PyResult<Array3<'py>> {
        let own = parts(slf).0;
        let q = own.learned.n_components();
        let wide = |model: &LinearGaussian| {
            let w = own.place.widen_columns(model.loadings());
            Matrix::from_fn(w.n_rows(), q, |j, i| if i < w.n_columns() { w[(j, i)] } else { 0.0 })
        };
        stacked(slf.py(), &each(slf, wide))
    }

    /// Noise variance of every column, K × d; 0 beside columns that never varied.
    #[getter]
    fn noise_variances<'py>(slf: &Bound<'py, Self>) -> PyResult<Array2<'py>> {
        let place = &parts(slf).0.place;
        let wide = |model: &LinearGaussian| place.widen(&model.noise_variances(), |_| 0.0);
        array2(slf.py(), Matrix::from_rows(&each(slf, wide)))
    }

    /// σ² of each model, if all its columns share one.
    #[getter]
    fn noise_variance<'py>(slf: &Bound<'py, Self>) -> Option<Array1<'py>> {
        let one = |model: &LinearGaussian| match model.noise() {
            Noise::Isotropic(variance) => Some(*variance),
            Noise::Diagonal(_) => None,
        };
        let values: Option<Vec<f64>> = each(slf, one).into_iter().collect();
        Some(array1(slf.py(), values?))
    }

    /// K × d × d; zero beside columns that never varied.
    #[getter]
    fn covariances<'py>(slf: &Bound<'py, Self>) -> PyResult<Array3<'py>> {
        let place = &parts(slf).0.place;
        stacked(slf.py(), &each(slf, |model| place.widen_both(&model.covariance())))
    }

    /// K × d × d.
    #[getter]
    fn precisions<'py>(slf: &Bound<'py, Self>) -> PyResult<Array3<'py>> {
        parts(slf).0.place.none_aside()?;
        stacked(slf.py(), &each(slf, LinearGaussian::precision))
    }

    /// How far each row belongs to each model, n × K.
    #[pyo3(signature = (x, threads=0))]
    fn responsibilities<'py>(slf: &Bound<'py, Self>, x: Table<'_>, threads: usize) -> PyResult<Array2<'py>> {
        let (own, fit) = parts(slf);
        array2(slf.py(), own.ask(slf.py(), x, None, threads, |data| fit.mixture.responsibilities(data))?)
    }

    /// Scores of each row under each model, n × K × q, zero beyond the components that a model has.
    #[pyo3(signature = (x, threads=0))]
    fn scores<'py>(slf: &Bound<'py, Self>, x: Table<'_>, threads: usize) -> PyResult<Array3<'py>> {
        let ((own, fit), posterior) = (parts(slf), Some(Coordinates::Posterior));
        let scores = own.ask(slf.py(), x, None, threads, |data| own.learned.scores(data, posterior))?.values;
        let (n, components, q) = (scores.n_rows(), fit.components(), own.learned.n_components());
        let mut wide = Vec::with_capacity(n * components.len() * q);
        for mut row in scores.rows() {
            for &own in &components {
                let (first, rest) = row.split_at(own);
                wide.extend_from_slice(first);
                wide.resize(wide.len() + q - own, 0.0);
                row = rest;
            }
        }
        array1(slf.py(), wide).reshape([n, components.len(), q])
    }
}
