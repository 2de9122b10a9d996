//! Rows that follow each other in time: dynamic factor models [M 1.10].
//!
//! The rows of a [`LinearGaussian`](crate::LinearGaussian) may be shuffled; these may not. A [`Timeline`] says when rows
//! happened, [`Regressors`] what is known of every time beforehand, a [`DynamicFactor`] is the fitted model, and
//! [`DynamicEm`] fits it, exactly with any pattern of gaps, by a filter and a smoother of the factors' size.

mod blocks;
mod choice;
mod draws;
mod em;
mod estimated;
mod memory;
mod model;
mod moments;
mod prior;
mod regressors;
mod roots;
mod smoother;

pub use crate::data::{Sequence, Timeline};
pub use blocks::check_by_blocks;
pub(crate) use blocks::{HiddenBlocks, Hide};
pub use choice::{TimeChoice, TimeSearch, Tried};
pub use em::{DynamicEm, FirstState, Loadings};
pub use estimated::LearnedFrom;
pub use model::{DynamicFactor, Factors, Forecast, Start};
pub use regressors::{Regressors, Season, Trend};
pub use roots::Root;
