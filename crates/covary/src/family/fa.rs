//! Factor analysis.

use super::Entry;
use crate::Spec;

pub(super) struct Fa;

impl Entry for Fa {
    fn name(&self) -> &'static str {
        "fa"
    }

    fn words(&self) -> &'static str {
        "factor analysis"
    }

    fn summary(&self) -> &'static str {
        "Factor analysis: a noise variance for each column."
    }

    fn methods(&self) -> &'static [&'static str] {
        &["newton", "cm", "fixed-point", "em", "mean-field", "gibbs"]
    }

    fn spec(&self, standardize: bool) -> Spec {
        Spec { standardize, ..Spec::factor_analysis(1) }
    }

    fn has_classes(&self) -> bool {
        true
    }
}
