//! Bayesian PCA that selects columns.

use super::{Entry, LINEAR};
use crate::Method;
use crate::infer::SpikeSlab;

pub(super) const ENTRY: Entry = Entry {
    name: "bspca",
    words: "row-sparse Bayesian PCA",
    summary: "Bayesian PCA that selects columns (spike and slab): the probability that each has a part in any component.",
    methods: &["spike-slab"],
    // Columns share their noise: standardized, a column of noise alone would have more of it than the others, and seem to have a part.
    standardizes: false,
    default_method: |_, _| Method::SpikeSlab(SpikeSlab::default()).into(),
    ..LINEAR
};
