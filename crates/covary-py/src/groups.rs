//! Group factor analysis: several views of the same rows.

use crate::array::{Table, grouped, option_text};
use crate::error::{of, raise};
use crate::model::Model;
use crate::work::run;
use covary::infer::Step;
use covary::io::model_file::Saved;
use covary::learn::{Learned, MOST_OFFERED, Watch};
use covary::model::ColumnMap;
use covary::spec::NoiseFamily;
use covary::{Error, Estimator, Method, Spec};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Fits views of the same rows, each given by its name and the places of its columns.
#[pyfunction]
#[pyo3(signature = (x, names, views, *, n_components=None, noise="isotropic", standardize=false, max_iterations=None, tolerance=None, options=None, threads=0, progress=None))]
#[allow(clippy::too_many_arguments, reason = "keywords")]
pub(crate) fn fit_groups(
    py: Python<'_>,
    x: Table<'_>,
    names: Option<Vec<String>>,
    views: Vec<(String, Vec<usize>)>,
    n_components: Option<usize>,
    noise: &str,
    standardize: bool,
    max_iterations: Option<usize>,
    tolerance: Option<f64>,
    options: Option<Bound<'_, PyDict>>,
    threads: usize,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Model> {
    let noise = match noise {
        "isotropic" => NoiseFamily::Isotropic,
        "diagonal" => NoiseFamily::Diagonal,
        _ => return Err(raise("OptionError", &format!("there is no noise `{noise}`"))),
    };
    let mut method = Method::from_name("mean-field").expect("a method's name");
    let limits = [
        ("max_iterations", max_iterations.map(|n| n.to_string())),
        ("tolerance", tolerance.map(|t| format!("{t:?}"))),
    ];
    for (name, value) in limits.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        method.set(name, &value).map_err(of)?;
    }
    for (name, value) in options.iter().flat_map(PyDictMethods::iter) {
        method.set(&name.extract::<String>()?, &option_text(&value)?).map_err(of)?;
    }
    let values = x.matrix()?;
    run(py, threads, progress.as_ref(), |watched| {
        let data = grouped(values, names)?;
        let ColumnMap { columns: varying, constants } = ColumnMap::of_varying(&data)?;
        let (mut columns, mut sizes) = (Vec::new(), Vec::new());
        for (v, (_, view)) in views.iter().enumerate() {
            let start = columns.len();
            columns.extend(view.iter().copied().filter(|j| varying.binary_search(j).is_ok()));
            if columns.len() == start {
                return Err(Error::ConstantView { view: v + 1, columns: view.len() });
            }
            sizes.push(columns.len() - start);
        }
        let column_map = ColumnMap { columns, constants };
        let table = column_map.dataset(&data)?;
        let room = table.n_columns().min(table.n_informative_rows()).saturating_sub(1);
        let q = n_components.unwrap_or(MOST_OFFERED.min(room));
        let spec = Spec { noise, standardize, allow_unidentified: true, ..Spec::of_views(q, sizes) };
        let fit = method.fit_observed(&table, &spec, &mut |step: &Step| watched.fitting(step))?;
        let mut saved = Saved::new(fit, &table, &spec, &method);
        "gfa".clone_into(&mut saved.family);
        saved.views = views.into_iter().map(|(name, _)| name).collect();
        Ok(Model::new(Learned { saved, column_map }, &data))
    })
}
