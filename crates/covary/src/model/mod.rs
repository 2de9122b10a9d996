//! What comes out of every fit: [`LinearGaussian`], and the questions any [`Density`] answers.

mod batch;
mod classifier;
mod column_map;
mod conditional;
mod conditioning;
mod density;
mod discriminants;
pub(crate) mod gap_blocks;
pub(crate) mod latent;
mod linear_gaussian;
mod mixture;
mod noise;
mod orient;
mod outliers;
mod principal;
mod rotation;
mod scores;
mod student;
mod uncertainty;

pub(crate) use batch::weighted_distance;
pub use classifier::Classifier;
pub use column_map::ColumnMap;
pub use conditional::Conditional;
pub(crate) use density::check_columns;
pub use density::{Completed, Density, FilledCell, Given, Imputed};
pub use discriminants::Discriminants;
pub use linear_gaussian::LinearGaussian;
pub(crate) use mixture::Shares;
pub use mixture::{Mixture, Predictive};
pub use noise::Noise;
pub use outliers::Outlyingness;
pub use principal::Principal;
pub use rotation::{Rotated, Rotation, RotationSearch, rotate, rotate_in_steps, rotate_model};
pub use scores::{Coordinates, Posterior, Reconstruction};
pub use uncertainty::{Estimate, Uncertainty};
