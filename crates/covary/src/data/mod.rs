//! Tables in: [`Dataset`] (checked once, gaps as NaN, rows grouped by [`Pattern`]),
//! [`CentralMoments`] (mergeable mean and scatter), and [`simulate`].

mod dataset;
mod moments;
mod pattern;
pub mod simulate;

pub use dataset::Dataset;
pub use moments::CentralMoments;
pub use pattern::Pattern;
pub use simulate::Shape;
