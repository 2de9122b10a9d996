//! Linear-Gaussian latent-variable models, exact with missing data.
//!
//! ```text
//! t = W x + μ + ε      x ~ N(0, I_q)      ε ~ N(0, Ψ)      t: one row of d columns, any of them missing
//! ```
//!
//! PCA, probabilistic PCA and factor analysis are this one sentence with different Ψ. A [`Spec`]
//! says *what* to fit, an [`Estimator`] *how*, and a [`LinearGaussian`] is what comes out: scores,
//! reconstructions, densities, draws and filled gaps are its methods, whichever method led to it.
//!
//! ```
//! use covary::{data::{simulate, Shape}, infer::Em, Density, Estimator, Spec};
//!
//! let (whole, _) = simulate::ppca(Shape { rows: 300, columns: 8, n_components: 2 }, /* seed */ 1);
//! let table = simulate::hide(&whole, 0.2, /* seed */ 2);
//! let fit = Em::default().fit(&table, &Spec::ppca(2))?;
//! let filled = fit.predictive().impute(&table)?;
//!
//! let covered = filled.cells().iter().filter(|cell| {
//!     let (low, high) = cell.interval(0.95).unwrap();
//!     (low..high).contains(&whole.values()[(cell.row, cell.column)])
//! });
//! let share = covered.count() as f64 / table.n_gaps() as f64;
//! assert!((share - 0.95).abs() < 0.03);
//! # Ok::<(), covary::Error>(())
//! ```
//!
//! | module | holds |
//! | --- | --- |
//! | [`data`] | [`Dataset`], its [`data::Ledger`] of gaps and oddities, [`CentralMoments`], simulated tables |
//! | [`model`] | [`LinearGaussian`], the traits [`Density`] and [`model::Given`], rotations |
//! | [`spec`] | [`Spec`], priors |
//! | [`infer`] | the methods: [`infer::Spectral`], [`infer::Newton`], [`infer::Em`], … |
//! | [`ica`] | independent components: FastICA, maximum likelihood |
//! | [`dynamics`] | rows in time: dynamic factor models, filter, smoother, forecasts |
//! | [`functional`] | curves at irregular times: functional PCA |
//! | [`views`] | several tables about the same rows: canonical correlation |
//! | [`select`] | how many components, how well intervals are calibrated, whether values are missing at random |
//! | [`learn`] | from a table to a model that can be kept, by a model's name |
//! | [`io`] | tables of several formats, observed cells as they came; model files |

mod checksum;
pub mod data;
pub mod dynamics;
mod error;
pub mod family;
pub mod filling;
pub mod functional;
pub mod ica;
pub mod infer;
pub mod io;
mod json;
pub mod learn;
pub mod learned;
mod linalg;
pub mod model;
mod parallel;
pub mod select;
pub mod spec;
pub mod views;

pub use data::{CentralMoments, Dataset};
pub use error::{Argument, Error, Remedy};
pub use infer::{Estimator, Fit, Method};
pub use linalg::Matrix;
pub use model::{Coordinates, Density, LinearGaussian, Noise, Reconstruction};
pub use spec::Spec;

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/time.md")]
struct RowsInTime;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/curves.md")]
struct Curves;
