//! `Model`: what one linear-Gaussian model answers beyond what every learned model does.

use crate::array::{Array1, Array2, Array3, Table, array1, array2, array3, numbers};
use crate::error::{of, raise};
use crate::learned::Learned;
use crate::principal::Principal;
use covary::learned::LinearFit;
use covary::model::Outlyingness;
use covary::select::gap_trends;
use covary::views::Canonical;
use covary::{Coordinates, Density, Matrix, Noise};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Views × components: ρ, R², and whether a component is active.
type Active<'py> = (Array2<'py>, Array2<'py>, Bound<'py, PyArray2<bool>>);

/// One linear-Gaussian model; here is what is found when first asked for.
#[pyclass(frozen, extends = Learned, module = "covary._covary")]
#[derive(Default)]
pub(crate) struct Model {
    /// Components in the scale of the fit.
    axes: OnceLock<Matrix>,
    /// The variance each component explains.
    explained: OnceLock<Vec<f64>>,
    /// What two views share.
    canonical: OnceLock<Canonical>,
}

/// The learned model behind it, and its one fit.
fn parts<'a>(slf: &'a Bound<'_, Model>) -> (&'a Learned, &'a LinearFit) {
    let own = slf.as_super().get();
    (own, own.learned.linear().expect("a `Model` is made of these only"))
}

fn explained<'a>(slf: &'a Bound<'_, Model>) -> &'a [f64] {
    slf.get().explained.get_or_init(|| parts(slf).1.model.explained_variance())
}

fn canonical<'a>(slf: &'a Bound<'_, Model>) -> PyResult<&'a Canonical> {
    let cell = &slf.get().canonical;
    if cell.get().is_none() {
        let found = parts(slf).0.learned.canonical().map_err(of)?;
        let found = found.ok_or_else(|| raise("ModelFileError", "holds no model of two views"))?;
        // Who came first has the same.
        let _ = cell.set(found);
    }
    Ok(cell.get().expect("just set"))
}

/// A stack of n matrices by row, of those of each pattern of gaps.
fn by_row<'py>(py: Python<'py>, of_row: &[usize], found: &[Matrix], q: usize) -> PyResult<Array3<'py>> {
    array3(py, [of_row.len(), q, q], of_row.iter().map(|&p| &found[p]))
}

#[pymethods]
impl Model {
    #[getter]
    fn mean<'py>(slf: &Bound<'py, Self>) -> Array1<'py> {
        let (own, fit) = parts(slf);
        array1(slf.py(), own.place.widen(fit.model.mean(), |v| v))
    }

    /// W, d × q; rotated if a rotation was asked for.
    #[getter]
    fn loadings<'py>(slf: &Bound<'py, Self>) -> PyResult<Array2<'py>> {
        let (own, fit) = parts(slf);
        array2(slf.py(), own.place.widen_columns(fit.loadings()))
    }

    /// The rotation's name.
    #[getter]
    fn rotation(slf: &Bound<'_, Self>) -> Option<String> {
        parts(slf).1.rotation.as_ref().map(|r| r.name.clone())
    }

    /// Correlations of oblique factors; None without a rotation.
    #[getter]
    fn factor_correlations<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Array2<'py>>> {
        let rotation = parts(slf).1.rotation.as_ref();
        rotation.map(|r| array2(slf.py(), r.rotated.factor_correlations.clone())).transpose()
    }

    /// σ², or ψ of every column.
    #[getter]
    fn noise_variance<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyAny> {
        let ((own, fit), py) = (parts(slf), slf.py());
        match fit.model.noise() {
            Noise::Isotropic(v) => pyo3::types::PyFloat::new(py, *v).into_any(),
            Noise::Diagonal(psi) => array1(py, own.place.widen(psi, |_| 0.0)).into_any(),
        }
    }

    /// Axes in the scale of the fit, q × d: orthonormal, or sparse loadings at unit length.
    #[getter]
    fn components<'py>(slf: &Bound<'py, Self>) -> PyResult<Array2<'py>> {
        let (own, fit) = parts(slf);
        let axes = slf.get().axes.get_or_init(|| fit.model.components());
        array2(slf.py(), own.place.widen_rows(axes, |_| 0.0))
    }

    #[getter]
    fn explained_variance<'py>(slf: &Bound<'py, Self>) -> Array1<'py> {
        array1(slf.py(), explained(slf).to_vec())
    }

    #[getter]
    fn explained_variance_ratio<'py>(slf: &Bound<'py, Self>) -> Array1<'py> {
        let total = parts(slf).1.model.total_variance();
        array1(slf.py(), explained(slf).iter().map(|v| v / total).collect())
    }

    /// √(n λ): those of the centered table in the scale of the fit, if it is complete.
    #[getter]
    fn singular_values<'py>(slf: &Bound<'py, Self>) -> Array1<'py> {
        let n = parts(slf).0.learned.training.n_rows as f64;
        array1(slf.py(), explained(slf).iter().map(|v| (n * v).sqrt()).collect())
    }

    /// Variance of each column under the model.
    #[getter]
    fn variances<'py>(slf: &Bound<'py, Self>) -> Array1<'py> {
        let (own, fit) = parts(slf);
        array1(slf.py(), own.place.widen(&fit.model.variances(), |_| 0.0))
    }

    /// E[α] of each component; empty without an ARD prior.
    #[getter]
    fn relevance<'py>(slf: &Bound<'py, Self>) -> Array1<'py> {
        array1(slf.py(), parts(slf).1.report.relevance.clone())
    }

    /// Probability that each column has a part in any component; `None` of methods that do not select columns.
    #[getter]
    fn inclusion<'py>(slf: &Bound<'py, Self>) -> Option<Array1<'py>> {
        let (own, fit) = parts(slf);
        fit.model.inclusion().map(|found| array1(slf.py(), own.place.widen(found, |_| 0.0)))
    }

    /// Names of the views, and the places of their columns in the table.
    #[getter]
    fn views(slf: &Bound<'_, Self>) -> Vec<(String, Vec<usize>)> {
        let (own, fit) = parts(slf);
        let columns = &own.place.column_map.columns;
        fit.view_columns().into_iter().map(|(name, view)| (name.to_owned(), columns[view].to_vec())).collect()
    }

    /// How heavy the tails of the rows are: parameters by name.
    #[getter]
    fn tails(slf: &Bound<'_, Self>) -> BTreeMap<&'static str, f64> {
        parts(slf).1.model.tails().parameters().into_iter().collect()
    }

    /// How much each row counts where rows have heavy tails.
    #[pyo3(signature = (x, threads=0))]
    fn row_weights<'py>(slf: &Bound<'py, Self>, x: Table<'_>, threads: usize) -> PyResult<Array1<'py>> {
        let (own, fit) = parts(slf);
        Ok(array1(slf.py(), own.ask(slf.py(), x, None, threads, |data| fit.model.row_weights(data))?))
    }

    /// Views × components: ρ, R², and whether a component is active.
    fn activity<'py>(slf: &Bound<'py, Self>) -> PyResult<Active<'py>> {
        let found = parts(slf).0.learned.activity().map_err(of)?;
        let found = found.ok_or_else(|| raise("ModelFileError", "holds no model of views"))?;
        let (v, q) = (found.n_views(), found.n_components());
        let active: Vec<bool> = (0..v * q).map(|k| found.is_active(k / q, k % q)).collect();
        let active = PyArray1::from_vec(slf.py(), active).reshape([v, q])?;
        Ok((array2(slf.py(), found.signal)?, array2(slf.py(), found.explained_variance)?, active))
    }

    /// Canonical correlations of two views, and over the columns of both the weights of the variates and the
    /// covariances with the shared latent variable.
    fn canonical<'py>(slf: &Bound<'py, Self>) -> PyResult<(Array1<'py>, Array2<'py>, Array2<'py>)> {
        let (found, place, py) = (canonical(slf)?, &parts(slf).0.place, slf.py());
        let both = |part: &dyn Fn(usize) -> Matrix| {
            let rows = [part(0), part(1)].map(|m| m.rows().map(<[f64]>::to_vec).collect::<Vec<_>>()).concat();
            let q = found.correlations().len();
            let stacked = Matrix::from_vec(rows.len(), q, rows.concat()).map_err(of)?;
            array2(py, place.widen_columns(&stacked))
        };
        let weights = both(&|view| found.weights(view).clone())?;
        Ok((array1(py, found.correlations().to_vec()), weights, both(&|view| found.loadings(view))?))
    }

    /// Canonical variates of both views, of gaps their mean given all cells of the row.
    #[pyo3(signature = (x, threads=0))]
    fn variates<'py>(
        slf: &Bound<'py, Self>,
        x: Table<'_>,
        threads: usize,
    ) -> PyResult<(Array2<'py>, Array2<'py>)> {
        let (found, py) = (canonical(slf)?, slf.py());
        let [x, y] = parts(slf).0.ask(py, x, None, threads, |data| found.variates(data))?;
        Ok((array2(py, x)?, array2(py, y)?))
    }

    /// E[z | x, y] of rows of both views, z what these share.
    #[pyo3(signature = (x, threads=0))]
    fn shared_scores<'py>(slf: &Bound<'py, Self>, x: Table<'_>, threads: usize) -> PyResult<Array2<'py>> {
        let (found, py) = (canonical(slf)?, slf.py());
        let dx = found.mean(0).len();
        let scores = parts(slf).0.ask(py, x, None, threads, |data| {
            let [x, y] = [0..dx, dx..data.n_columns()].map(|v| data.of_columns(&v.collect::<Vec<_>>()));
            found.scores(&x?, &y?)
        })?;
        array2(py, scores)
    }

    /// Posterior covariance of the scores of each row, n × q × q.
    #[pyo3(signature = (x, threads=0))]
    fn score_covariances<'py>(slf: &Bound<'py, Self>, x: Table<'_>, threads: usize) -> PyResult<Array3<'py>> {
        let (own, fit) = parts(slf);
        let posterior = own.ask(slf.py(), x, None, threads, |data| fit.model.posterior(data))?;
        let rotated = |c: &Matrix| fit.rotation.as_ref().map_or(c.clone(), |r| r.rotated.score_covariance(c));
        let by_pattern: Vec<Matrix> = posterior.covariances.iter().map(rotated).collect();
        by_row(slf.py(), &posterior.pattern_of_row, &by_pattern, fit.model.n_components())
    }

    /// Covariance of the projections of each row on `axes` given its observed cells, n × q × q.
    #[pyo3(signature = (x, axes, threads=0))]
    fn projection_covariances<'py>(
        slf: &Bound<'py, Self>,
        x: Table<'_>,
        axes: PyReadonlyArray2<'_, f64>,
        threads: usize,
    ) -> PyResult<Array3<'py>> {
        let ((own, fit), axes) = (parts(slf), numbers(&axes)?);
        let (of_row, found) =
            own.ask(slf.py(), x, None, threads, |data| fit.model.projection_covariances(data, &axes))?;
        by_row(slf.py(), &of_row, &found, axes.n_rows())
    }

    /// Axes and variances as principal components, to project with.
    fn principal(slf: &Bound<'_, Self>) -> Principal {
        let (own, fit) = parts(slf);
        Principal::of_model(&own.learned, fit)
    }

    /// Draws of the scores of rows from their posterior, rotated with the loadings.
    #[pyo3(signature = (x, seed, threads=0))]
    fn draw_scores<'py>(
        slf: &Bound<'py, Self>,
        x: Table<'_>,
        seed: u64,
        threads: usize,
    ) -> PyResult<Array2<'py>> {
        let own = parts(slf).0;
        let scores = own.ask(slf.py(), x, None, threads, |data| own.learned.draw_scores(data, seed))?;
        array2(slf.py(), scores.values)
    }

    /// Rows from scores: what the posterior coordinates stand for; with a seed, drawn with noise.
    #[pyo3(signature = (scores, seed=None))]
    fn decode<'py>(
        slf: &Bound<'py, Self>,
        scores: PyReadonlyArray2<'_, f64>,
        seed: Option<u64>,
    ) -> PyResult<Array2<'py>> {
        let ((own, fit), mut scores) = (parts(slf), numbers(&scores)?);
        own.learned.check_rows().map_err(of)?;
        if seed.is_some() {
            let rows = own.learned.rows_of(&scores, Some(Coordinates::Posterior), seed).map_err(of)?;
            return array2(slf.py(), own.place.widen_rows(&rows, |v| v));
        }
        // L z with rotated loadings and scores is W x.
        if let Some(r) = &fit.rotation {
            scores = r.rotated.unturned(&scores).map_err(of)?;
        }
        array2(slf.py(), own.place.widen_rows(&fit.model.decode(&scores).map_err(of)?, |v| v))
    }

    /// Log-density of each row under draws of the parameters, and its Monte-Carlo standard error.
    #[pyo3(signature = (x, n_draws, seed, threads=0))]
    fn predictive_log_density<'py>(
        slf: &Bound<'py, Self>,
        x: Table<'_>,
        n_draws: usize,
        seed: u64,
        threads: usize,
    ) -> PyResult<(Array1<'py>, Array1<'py>)> {
        let (own, fit) = parts(slf);
        let (values, errors) = own.ask(slf.py(), x, None, threads, |data| {
            if let Some(draws) = &fit.draws {
                // The draws at hand are the posterior; there is nothing further to draw.
                let values = draws.log_density(data)?;
                let errors = vec![f64::NAN; values.len()];
                return Ok((values, errors));
            }
            let found = fit.model.predictive_log_density(data, n_draws, seed)?;
            Ok(found.iter().map(|e| (e.value, e.standard_error)).unzip())
        })?;
        Ok((array1(slf.py(), values), array1(slf.py(), errors)))
    }

    /// Hotelling's T², squared prediction error and Mahalanobis distance of each row.
    #[pyo3(signature = (x, threads=0))]
    fn outlyingness<'py>(
        slf: &Bound<'py, Self>,
        x: Table<'_>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let ((own, fit), py) = (parts(slf), slf.py());
        let rows = own.ask(py, x, None, threads, |data| fit.model.outlyingness(data))?;
        let out = PyDict::new(py);
        out.set_item("t2", array1(py, rows.iter().map(|r| r.t_squared).collect()))?;
        out.set_item("spe", array1(py, rows.iter().map(|r| r.squared_prediction_error).collect()))?;
        out.set_item("mahalanobis", array1(py, rows.iter().map(|r| r.mahalanobis).collect()))?;
        out.set_item("p_value", array1(py, rows.iter().map(Outlyingness::tail_probability).collect()))?;
        Ok(out)
    }

    /// W Wᵀ + Ψ; zero beside columns that never varied.
    fn covariance<'py>(slf: &Bound<'py, Self>) -> PyResult<Array2<'py>> {
        let (own, fit) = parts(slf);
        array2(slf.py(), own.place.widen_both(&fit.model.covariance()))
    }

    /// Its inverse.
    fn precision<'py>(slf: &Bound<'py, Self>) -> PyResult<Array2<'py>> {
        let (own, fit) = parts(slf);
        own.place.none_aside()?;
        array2(slf.py(), own.place.widen_both(&fit.model.precision()))
    }

    /// Columns whose gaps follow the first component: (name, correlation, sentence).
    #[pyo3(signature = (x, threads=0))]
    fn gap_trends(
        slf: &Bound<'_, Self>,
        x: Table<'_>,
        threads: usize,
    ) -> PyResult<Vec<(String, f64, String)>> {
        let (own, fit) = parts(slf);
        let trends = own.ask(slf.py(), x, None, threads, |data| gap_trends(&fit.model, data))?;
        Ok(trends.iter().map(|t| (t.name.clone(), t.correlation, t.to_string())).collect())
    }
}
