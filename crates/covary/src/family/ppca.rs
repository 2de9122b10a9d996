//! Probabilistic PCA.

use super::{Entry, LINEAR};

pub(super) const ENTRY: Entry = Entry {
    name: "ppca",
    words: "probabilistic PCA",
    summary: "Probabilistic PCA: one noise variance for all columns.",
    methods: &["spectral", "em"],
    has_classes: true,
    ..LINEAR
};
