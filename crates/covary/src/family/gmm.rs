//! Mixtures of Gaussians with full covariances.

use super::{Entry, MIXTURE, gaussian};

pub(super) const ENTRY: Entry = Entry {
    name: "gmm",
    words: "mixture of Gaussians",
    summary: "A mixture of Gaussians with full covariances.",
    // Variances alone are no full covariance; who asks for them says of what noise they are.
    allowed: |request, data, asked| match asked {
        0 if request.noise.is_some() => Ok(0),
        asked => gaussian::fixed(data, asked),
    },
    ..MIXTURE
};
