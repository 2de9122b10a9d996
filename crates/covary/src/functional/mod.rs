//! Curves that are observed at a few times each, which may be others for every curve: functional PCA [M 2.10].
//!
//! A curve is a row whose columns are all times at once: `y_i(t) = μ(t) + Σ_k x_ik φ_k(t) + ε`. Its mean and its
//! eigenfunctions are cubic splines ([`Basis`]), so that every curve is a row of a linear-Gaussian model with a design of its
//! own, and nothing is interpolated. A [`FunctionalPca`] is the fitted model and [`FunctionalEm`] fits it. Tables are long, each
//! row a point of a curve ([`Points`](crate::data::Points)), or wide, each row a curve and each column a time.

mod basis;
mod choice;
mod design;
mod em;
mod information;
mod model;
mod simulate;
mod start;

pub use basis::Basis;
pub use choice::CurveSearch;
pub(crate) use choice::{HiddenPoints, check_by_points};
pub use design::column_times;
pub use em::{FunctionalEm, Interval, Smoothing};
pub use model::{CurveDensity, CurveScores, Eigenfunctions, FunctionalPca, PredictedCurve};
pub use simulate::simulated;
