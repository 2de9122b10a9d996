//! Several tables about the same rows: what two views have in common.

mod canonical;
mod canonical_correlation;

pub use canonical::Canonical;
pub use canonical_correlation::CanonicalCorrelation;
