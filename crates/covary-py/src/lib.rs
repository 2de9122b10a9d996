//! The native half of the Python package `covary`: arrays in, arrays out, no formula.

mod array;
mod choose;
mod error;
mod learned;
mod linear;
mod mixture;
mod place;
mod principal;
mod request;
mod sources;
mod work;

/// Private: `import covary` is the package.
#[pyo3::pymodule]
mod _covary {
    #[pymodule_export]
    use super::choose::{
        compare, compare_mixtures, interval_reach, oddities, parallel_analysis, pool, wild_cells,
    };
    #[pymodule_export]
    use super::learned::{Learned, open_model};
    #[pymodule_export]
    use super::linear::Model;
    #[pymodule_export]
    use super::mixture::Mixture;
    #[pymodule_export]
    use super::principal::{Principal, Stream, principal, principal_sparse};
    #[pymodule_export]
    use super::request::fit;
    #[pymodule_export]
    use super::sources::Sources;
}
