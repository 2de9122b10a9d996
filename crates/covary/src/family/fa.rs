//! Factor analysis.

use super::{Entry, LINEAR};
use crate::Spec;

pub(super) const ENTRY: Entry = Entry {
    name: "fa",
    words: "factor analysis",
    summary: "Factor analysis: a noise variance for each column.",
    methods: &["newton", "cm", "fixed-point", "em", "mean-field", "gibbs"],
    spec: |standardize| Spec { standardize, ..Spec::factor_analysis(1) },
    has_classes: true,
    ..LINEAR
};
