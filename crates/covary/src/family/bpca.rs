//! Bayesian PCA.

use super::{Entry, LINEAR};
use crate::Method;
use crate::infer::Structured;

pub(super) const ENTRY: Entry = Entry {
    name: "bpca",
    words: "Bayesian PCA",
    summary: "Bayesian PCA: components that are not needed are dropped, and intervals account for the estimation of \
              loadings, mean and noise (except by the method evidence).",
    methods: &["structured", "mean-field", "evidence", "gibbs"],
    default_method: |_, _| Method::Structured(Structured::default()).into(),
    ..LINEAR
};
