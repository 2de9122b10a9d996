//! Principal component analysis.

use super::Entry;
use crate::model::{Coordinates, Reconstruction};

pub(super) struct Pca;

impl Entry for Pca {
    fn name(&self) -> &'static str {
        "pca"
    }

    fn words(&self) -> &'static str {
        "PCA"
    }

    fn summary(&self) -> &'static str {
        "Principal components: scores are projections, in the units of the table."
    }

    fn methods(&self) -> &'static [&'static str] {
        &["spectral", "em"]
    }

    fn standardizes(&self) -> bool {
        false
    }

    fn has_classes(&self) -> bool {
        true
    }

    fn coordinates(&self, rotated: bool) -> Coordinates {
        // A rotation turns posterior scores with the loadings; projections are on the principal axes.
        if rotated { Coordinates::Posterior } else { Coordinates::Projection }
    }

    fn reconstruction(&self) -> Option<Reconstruction> {
        Some(Reconstruction::Orthogonal)
    }
}
