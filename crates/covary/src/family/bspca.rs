//! Bayesian PCA that selects columns.

use super::{Entry, LINEAR};
use crate::Method;
use crate::infer::SpikeSlab;

pub(super) const ENTRY: Entry = Entry {
    name: "bspca",
    words: "row-sparse Bayesian PCA",
    summary: "Bayesian PCA that selects columns (spike and slab): the probability that each has a part in any component.",
    methods: &["spike-slab"],
    default_method: |_, _| Method::SpikeSlab(SpikeSlab::default()).into(),
    ..LINEAR
};
