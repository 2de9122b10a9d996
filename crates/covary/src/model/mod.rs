//! What comes out of every fit: [`LinearGaussian`], and the questions any [`Density`] answers.

mod batch;
mod classifier;
mod conditional;
mod density;
pub(crate) mod gap_blocks;
pub(crate) mod latent;
mod linear_gaussian;
mod mixture;
mod noise;
mod orient;
mod outliers;
mod placement;
mod principal;
mod rotation;
mod scores;
mod separation;
mod student;
mod uncertainty;

pub(crate) use batch::weighted_distance;
pub use classifier::Classifier;
pub use conditional::Conditional;
pub(crate) use density::check_columns;
pub use density::{Completed, Density, FilledCell, Given, Imputed};
pub use linear_gaussian::LinearGaussian;
pub(crate) use mixture::Shares;
pub use mixture::{Mixture, Predictive};
pub use noise::Noise;
pub use outliers::Outlyingness;
pub use placement::Placement;
pub use principal::Principal;
pub use rotation::{Rotated, Rotation, RotationSearch, rotate, rotate_in_steps, rotate_model};
pub use scores::{Coordinates, Posterior, Reconstruction};
pub use separation::Separation;
pub use uncertainty::{Estimate, Uncertainty};
