//! Probabilistic PCA.

use super::Entry;

pub(super) struct Ppca;

impl Entry for Ppca {
    fn name(&self) -> &'static str {
        "ppca"
    }

    fn words(&self) -> &'static str {
        "probabilistic PCA"
    }

    fn summary(&self) -> &'static str {
        "Probabilistic PCA: one noise variance for all columns."
    }

    fn methods(&self) -> &'static [&'static str] {
        &["spectral", "em"]
    }

    fn has_classes(&self) -> bool {
        true
    }
}
