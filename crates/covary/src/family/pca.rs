//! Principal component analysis.

use super::{Entry, LINEAR};
use crate::model::{Coordinates, Reconstruction};

pub(super) const ENTRY: Entry = Entry {
    name: "pca",
    words: "PCA",
    summary: "Principal components: scores are projections, in the units of the table.",
    methods: &["spectral", "em"],
    standardizes: false,
    has_classes: true,
    // A rotation turns posterior scores with the loadings; projections are on the principal axes.
    coordinates: |rotated| if rotated { Coordinates::Posterior } else { Coordinates::Projection },
    reconstruction: Some(Reconstruction::Orthogonal),
    ..LINEAR
};
