//! The native half of the Python package `covary`: arrays in, arrays out, no formula.
//!
//! `python/covary/_table.py` lets scikit-learn check a table, or passes by it when nothing needs doing; `array.rs` looks at
//! NumPy's memory without a copy (the one place with `unsafe`). `work.rs` runs the work on threads of its own without the
//! interpreter lock, while the calling thread handles Ctrl-C and shows progress; a panic becomes a `RuntimeError`.
//! `request.rs` makes a `covary::family::Request` of keywords and learns it; `learned.rs` wraps the `Learned` with the place
//! of its columns in the user's table (`place.rs`), so that `save` writes the command's bytes; `linear.rs`, `mixture.rs` and
//! `sources.rs` add what only models of their kind have. `principal.rs` wraps `model::Principal` and `infer::Incremental`, whose
//! conventions are scikit-learn's. `online.rs` wraps `infer::OnlineEm`. `passes.rs` fits to rows that an engine goes through, by bytes. `figures.rs` asks `covary-report` for numbers of figures and for pages. `error.rs` says which exception stands for which variant of `Error`.

mod array;
mod choose;
mod dynamic;
mod error;
mod figures;
mod functional;
mod learned;
mod linear;
mod mixture;
mod online;
mod passes;
mod place;
mod principal;
mod request;
mod sources;
mod sparse;
mod work;

/// That of the command. With the system's, PCA of 200 × 20 000 cells of single precision took 22 ms in the library, and 20 with this one: pages
/// that it has back are not cleared again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Private: `import covary` is the package.
#[pyo3::pymodule]
mod _covary {
    #[pymodule_export]
    use super::choose::{compare, compare_mixtures, far_cells, parallel_analysis, pool, wild_cells};
    #[pymodule_export]
    use super::dynamic::Dynamic;
    #[pymodule_export]
    use super::figures::{card, figure, figure_select, report};
    #[pymodule_export]
    use super::functional::Functional;
    #[pymodule_export]
    use super::learned::{Learned, open_model};
    #[pymodule_export]
    use super::linear::Model;
    #[pymodule_export]
    use super::mixture::Mixture;
    #[pymodule_export]
    use super::online::Online;
    #[pymodule_export]
    use super::passes::{block_rows, fit_rows, merge, pass_block};
    #[pymodule_export]
    use super::principal::{Principal, Stream, principal, principal_sparse};
    #[pymodule_export]
    use super::request::fit;
    #[pymodule_export]
    use super::sources::Sources;
    #[pymodule_export]
    use super::sparse::{elastic_net, sparse_canonical, sparse_components};
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
