//! How many components, pooling, and the numbers behind some figures.

use crate::array::{Array1, Numbers, Table, array1, grouped};
use crate::error::of;
use crate::work::run;
use covary::Error;
use covary::family::Request;
use covary::learn::Watch;
use covary::model::ColumnMap;
use covary::select::{Compare, ComparisonAt, MixtureSize, ParallelAnalysis};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// All criteria over numbers of components, and a recommendation.
#[pyfunction]
#[pyo3(signature = (x, names, *, max_components, standardize, seed, threads=0, progress=None))]
#[allow(clippy::too_many_arguments, reason = "keywords")]
pub(crate) fn compare<'py>(
    py: Python<'py>,
    x: Table<'_>,
    names: Option<Vec<String>>,
    max_components: Option<usize>,
    standardize: bool,
    seed: u64,
    threads: usize,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let table = x.dataset(py, threads, names)?;
    let asked = Compare { max_components, standardize, sample: None, seed };
    let found = run(py, threads, progress.as_ref(), |watched| {
        let data = ColumnMap::of_varying(&table)?.dataset(&table)?.into_owned();
        asked.run_observed(&data, &|_, done, total| watched.choosing(done, total))
    })?;
    let column = |of: &dyn Fn(&ComparisonAt) -> Option<f64>| {
        let value = |at: &ComparisonAt| of(at).unwrap_or(f64::NAN);
        array1(py, found.by_n_components.iter().map(value).collect())
    };
    let (out, table, choices) = (PyDict::new(py), PyDict::new(py), PyDict::new(py));
    table.set_item("n_components", counts(py, found.by_n_components.iter().map(|at| at.n_components)))?;
    table.set_item("log_likelihood", column(&|at| at.log_likelihood))?;
    table.set_item("aic", column(&|at| at.aic))?;
    table.set_item("bic", column(&|at| at.bic))?;
    table.set_item("log_evidence", column(&|at| at.log_evidence))?;
    table.set_item("held_out", column(&|at| at.held_out.map(|h| h.mean)))?;
    table.set_item("held_out_error", column(&|at| at.held_out.map(|h| h.shortfall_error)))?;
    table.set_item("held_out_rmse", column(&|at| at.held_out.map(|h| h.rmse)))?;
    table.set_item("lower_bound", column(&|at| at.lower_bound))?;
    for (criterion, q) in &found.choices {
        choices.set_item(criterion.name(), q)?;
    }
    out.set_item("choices", choices)?;
    out.set_item("table", table)?;
    out.set_item("recommended", found.recommended)?;
    out.set_item("by", found.by.name())?;
    out.set_item("n_hidden", found.n_hidden)?;
    out.set_item("explanation", found.to_string())?;
    Ok(out)
}

/// Sizes of a mixture by BIC and by rows held out, a fifth at a time, and a recommendation.
#[pyfunction]
#[pyo3(signature = (x, names, family, *, max_mixtures, max_components, standardize, seed, threads=0, progress=None))]
#[allow(clippy::too_many_arguments, reason = "keywords")]
pub(crate) fn compare_mixtures<'py>(
    py: Python<'py>,
    x: Table<'_>,
    names: Option<Vec<String>>,
    family: &str,
    max_mixtures: usize,
    max_components: Option<usize>,
    standardize: bool,
    seed: u64,
    threads: usize,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let defaults = Request::new(family.parse().map_err(of)?);
    let max_components = max_components.unwrap_or(defaults.max_components);
    let asked = Request { max_mixtures, max_components, standardize: Some(standardize), seed, ..defaults };
    let table = x.dataset(py, threads, names)?;
    let found = run(py, threads, progress.as_ref(), |watched| {
        let data = asked.column_map(&table)?.dataset(&table)?.into_owned();
        asked.compare_sizes(&data, 5.min(data.n_rows()), &|done, total| watched.choosing(done, total))
    })?;
    let column = |of: &dyn Fn(&MixtureSize) -> Option<f64>| {
        array1(py, found.0.iter().map(|at| of(at).unwrap_or(f64::NAN)).collect())
    };
    let (out, table, choices) = (PyDict::new(py), PyDict::new(py), PyDict::new(py));
    table.set_item("n_mixtures", counts(py, found.0.iter().map(|at| at.n_mixtures)))?;
    table.set_item("n_components", counts(py, found.0.iter().map(|at| at.n_components)))?;
    table.set_item("n_parameters", counts(py, found.0.iter().map(|at| at.n_parameters)))?;
    table.set_item("log_likelihood", column(&|at| Some(at.log_likelihood)))?;
    table.set_item("bic", column(&|at| Some(at.bic)))?;
    table.set_item("singular", PyArray1::from_iter(py, found.0.iter().map(|at| at.singular)))?;
    table.set_item("held_out", column(&|at| at.held_out.map(|h| h.mean)))?;
    table.set_item("held_out_error", column(&|at| at.held_out.map(|h| h.shortfall_error)))?;
    let size = |at: &MixtureSize| (at.n_mixtures, at.n_components);
    let recommended = size(found.recommended().ok_or_else(|| of(Error::NothingToCompare))?);
    choices.set_item("bic", recommended)?;
    choices.set_item("held_out", found.best_held_out().map(size))?;
    out.set_item("n_mixtures", recommended.0)?;
    out.set_item("n_components", recommended.1)?;
    out.set_item("choices", choices)?;
    out.set_item("table", table)?;
    out.set_item("explanation", found.to_string())?;
    Ok(out)
}

#[allow(clippy::cast_possible_wrap, reason = "numbers of components, models and parameters")]
fn counts(py: Python<'_>, numbers: impl Iterator<Item = usize>) -> Bound<'_, PyArray1<i64>> {
    PyArray1::from_iter(py, numbers.map(|n| n as i64))
}

/// Eigenvalues beside those of shuffled copies.
#[pyfunction]
#[pyo3(signature = (x, *, standardize, n_copies, seed, threads=0))]
pub(crate) fn parallel_analysis<'py>(
    py: Python<'py>,
    x: Table<'_>,
    standardize: bool,
    n_copies: usize,
    seed: u64,
    threads: usize,
) -> PyResult<(Array1<'py>, Array1<'py>, usize)> {
    let table = x.dataset(py, threads, None)?;
    let asked = ParallelAnalysis { standardize, n_copies, seed, ..ParallelAnalysis::default() };
    let found = run(py, threads, None, |_| asked.run(&*ColumnMap::of_varying(&table)?.dataset(&table)?))?;
    Ok((array1(py, found.eigenvalues), array1(py, found.thresholds), found.n_components))
}

/// Rubin's rules.
#[pyfunction]
pub(crate) fn pool(py: Python<'_>, estimates: Vec<f64>, variances: Vec<f64>) -> PyResult<Bound<'_, PyDict>> {
    let pooled = covary::select::pool(&estimates, &variances).map_err(of)?;
    let out = PyDict::new(py);
    out.set_item("estimate", pooled.estimate)?;
    out.set_item("within", pooled.within)?;
    out.set_item("between", pooled.between)?;
    out.set_item("total", pooled.total)?;
    out.set_item("degrees_of_freedom", pooled.degrees_of_freedom)?;
    Ok(out)
}

/// The cells far beyond all others of their column, one sentence each. Asked before every fit: a table without any is seen
/// through in one pass.
#[pyfunction]
pub(crate) fn wild_cells(py: Python<'_>, x: Table<'_>, names: Option<Vec<String>>) -> PyResult<Vec<String>> {
    use covary::data::{Ledger, Oddity, may_have_wild_cells, may_have_wild_single_cells};
    let values = x.numbers()?;
    let any = py.detach(|| match &values {
        Numbers::Double(values) => may_have_wild_cells(values),
        Numbers::Single((_, d), cells) => may_have_wild_single_cells((**cells).as_ref(), *d),
    });
    if !any {
        return Ok(Vec::new());
    }
    run(py, 0, None, |_| {
        // What cannot be a table is refused by the fit.
        let Ok(table) = grouped(values, names) else { return Ok(Vec::new()) };
        let ledger = Ledger::of(&table);
        let wild = ledger.oddities(&table).filter(|o| matches!(o, Oddity::Wild { .. }));
        Ok(wild.map(|o| o.to_string()).collect())
    })
}

/// A cell far from what the rest of its row says: row, column, value, what was expected and its standard deviation.
type Far = (usize, usize, f64, f64, f64);

/// The cells far from what the rest of their rows say, and one sentence about them; `known` leaves out of it what
/// [`wild_cells`] says.
#[pyfunction]
#[pyo3(signature = (x, names, known, threads=0))]
pub(crate) fn far_cells(
    py: Python<'_>,
    x: Table<'_>,
    names: Option<Vec<String>>,
    known: bool,
    threads: usize,
) -> PyResult<(Vec<Far>, String)> {
    use covary::data::Ledger;
    use covary::filling::{FarCell, FarCellWords};
    let values = x.numbers()?;
    run(py, threads, None, |_| {
        // What cannot be a table is refused by the fit.
        let Ok(table) = grouped(values, names) else { return Ok((Vec::new(), String::new())) };
        let cells = covary::filling::wild_cells(&table);
        let known = if known && !cells.is_empty() { Ledger::of(&table).wild } else { Vec::new() };
        let words = FarCellWords { cells: &cells, names: table.column_names(), known: &known }.to_string();
        let of = |c: &FarCell| (c.row, c.column, c.value, c.expected, c.sd);
        Ok((cells.iter().map(of).collect(), words))
    })
}
