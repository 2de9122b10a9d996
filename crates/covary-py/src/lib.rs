//! The native half of the Python package `covary`: arrays in, arrays out, no formula.

mod array;
mod choose;
mod error;
mod groups;
mod ica;
mod mixture;
mod model;
mod place;
mod principal;
mod views;
mod work;

/// Private: `import covary` is the package.
#[pyo3::pymodule]
mod _covary {
    #[pymodule_export]
    use super::choose::{
        compare, compare_mixtures, interval_reach, oddities, parallel_analysis, pool, wild_cells,
    };
    #[pymodule_export]
    use super::groups::fit_groups;
    #[pymodule_export]
    use super::ica::{Sources, separate};
    #[pymodule_export]
    use super::mixture::{Mixture, fit_classes, fit_mixture, open_model};
    #[pymodule_export]
    use super::model::{Model, fit, fit_factors};
    #[pymodule_export]
    use super::principal::{Principal, Stream, principal, principal_sparse};
    #[pymodule_export]
    use super::views::{Canonical, canonical};
}
