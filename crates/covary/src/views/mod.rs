//! Several views of the same rows: what they have in common, and which components are active in which.

mod activity;
mod canonical;
mod canonical_correlation;
mod independence;

pub use activity::Activity;
pub(crate) use activity::signal_of_noise;
pub use canonical::Canonical;
pub use canonical_correlation::CanonicalCorrelation;
pub use independence::{CanonicalTest, SequentialTests};
