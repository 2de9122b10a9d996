//! Sparse probabilistic PCA.

use super::{Entry, LINEAR};
use crate::Method;
use crate::infer::SparseEm;

pub(super) const ENTRY: Entry = Entry {
    name: "spca",
    words: "sparse probabilistic PCA",
    summary: "Probabilistic PCA whose loadings are mostly 0: each component is made of a few columns.",
    methods: &["sparse-em"],
    default_method: |_, _| Method::SparseEm(SparseEm::default()).into(),
    rotates: false,
    ..LINEAR
};
