use crate::Matrix;
use crate::linalg::eigenvalues;
use std::sync::OnceLock;

/// Condition of the correlations up to which answers by their inverse keep ten digits.
const WELL_CONDITIONED: f64 = 1e6;

/// Whether a model's correlations are well-conditioned, which is found out once and kept with it: every question to the
/// model asks. No part of what the model is, so that all compare equal.
#[derive(Debug, Clone, Default)]
pub(super) struct Conditioning(OnceLock<bool>);

impl PartialEq for Conditioning {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Conditioning {
    /// Whether they are, given the correlations and the trace of their inverse. The largest eigenvalue is at most d, the
    /// smallest at least 1 / tr P; where components are strong this bound is far from the condition, and the
    /// eigenvalues cost less than a few patterns do.
    pub(super) fn is_good(&self, correlation: &Matrix, inverse_trace: f64) -> bool {
        *self.0.get_or_init(|| {
            inverse_trace * (correlation.n_rows() as f64) < WELL_CONDITIONED
                || eigenvalues(correlation)
                    .is_ok_and(|values| values.iter().all(|v| v * WELL_CONDITIONED > values[0]))
        })
    }

    /// Whether it has been found out that they are not: their inverse is not worth computing.
    pub(super) fn is_known_bad(&self) -> bool {
        self.0.get() == Some(&false)
    }
}
