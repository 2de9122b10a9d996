//! A few steps of EM from the spectral start, at any number of components: for who compares many of them and keeps
//! none [M 3.3].

use super::moments::{LatentMoments, Maximize};
use super::parameters::Frame;
use super::start::{Pairs, WIDE, filled_scatter, from_eigenpairs, principal_factors};
use crate::linalg::{Eigen, eigen, gemm, krylov};
use crate::model::LinearGaussian;
use crate::spec::NoiseFamily;
use crate::{Dataset, Error, Matrix, Spec};
use faer::{MatMut, MatRef};
use std::ops::ControlFlow;

/// Smallest noise, as a share of the mean variance: scores of hidden cells are not to be ruled by a few that are known
/// almost exactly.
const LEAST_NOISE: f64 = 1e-4;
/// Passes over the covariance where its order is too large for all of its eigenpairs.
const PASSES: usize = 4;
/// Order from which only leading eigenpairs are searched.
const LARGE: usize = 192;

/// The covariance of the pairs of cells that a table has, and its leading eigenpairs: what pilots of all numbers of components
/// share.
pub(crate) struct PilotStart<'a> {
    data: &'a Dataset,
    spec: Spec,
    frame: Frame,
    /// `None` for very wide tables.
    covariance: Option<Matrix>,
    leading: Eigen,
}

impl<'a> PilotStart<'a> {
    /// Of a table and a spec for one noise variance, whose number of components does not matter; with `n_known` eigenpairs at
    /// least.
    pub(crate) fn new(data: &'a Dataset, spec: &Spec, n_known: usize) -> Result<Self, Error> {
        let frame = Frame::new(data, spec);
        let covariance = (data.n_columns() <= WIDE).then(|| Pairs::of(data, &frame).covariance());
        let leading = Eigen { values: Vec::new(), vectors: Matrix::zeros(0, 0) };
        let mut start = Self { data, spec: spec.clone(), frame, covariance, leading };
        start.know(n_known)?;
        Ok(start)
    }

    /// Finds this many eigenpairs, if there are.
    pub(crate) fn know(&mut self, n_known: usize) -> Result<(), Error> {
        let d = self.data.n_columns();
        let wanted = n_known.min(d);
        if self.leading.values.len() >= wanted && !self.leading.values.is_empty() {
            return Ok(());
        }
        let (data, frame) = (self.data, &self.frame);
        self.leading = match &self.covariance {
            Some(s) if d < LARGE => eigen(s)?,
            Some(s) => {
                let apply = |x: MatRef<'_, f64>, out: MatMut<'_, f64>| gemm(out, false, s.view(), x);
                match krylov::leading_ritz_pairs(apply, d, wanted, PASSES, 0)? {
                    Some(found) => found,
                    None => eigen(s)?,
                }
            }
            None => {
                let apply = filled_scatter(data, frame);
                match krylov::leading_ritz_pairs(apply, d, wanted, PASSES, 0)? {
                    Some(found) => found,
                    None => return Err(Error::Numerical { what: "the start of a very wide table" }),
                }
            }
        };
        Ok(())
    }

    /// The covariance of the columns in the scale of the fit; `None` for very wide tables.
    pub(crate) fn covariance(&self) -> Option<&Matrix> {
        self.covariance.as_ref()
    }

    /// The leading eigenvalues that are known, and the mean variance of a column, both in the scale of the fit.
    pub(crate) fn eigenvalues(&self) -> (&[f64], f64) {
        let squares = self.data.observed_variances().iter().zip(&self.frame.inverse);
        let total: f64 = squares.map(|(v, s)| v * s * s).sum();
        (&self.leading.values, total / self.data.n_columns() as f64)
    }

    /// PX-EM at `n_components` for this many steps, convergence not asked; `tell` is called after each and may stop it.
    pub(crate) fn climb(
        &self,
        n_components: usize,
        noise: NoiseFamily,
        steps: usize,
        tell: &(dyn Fn() -> ControlFlow<()> + Sync),
    ) -> Result<LinearGaussian, Error> {
        let spec = Spec { n_components, noise, ..self.spec.clone() };
        let frame = Frame { isotropic: noise == NoiseFamily::Isotropic, ..self.frame.clone() };
        let floor = spec.floor().max(LEAST_NOISE);
        let mut at = match &self.covariance {
            Some(s) if !frame.isotropic => principal_factors(s, n_components, &frame, floor)?,
            _ => {
                let axes = self.leading.vectors.first_columns(n_components);
                from_eigenpairs(self.data, &self.leading.values[..n_components], axes, &frame, floor)
            }
        };
        let maximize = Maximize { expand: true, estimate_mean: true, prior: &spec.prior, floor };
        for _ in 0..steps {
            at = maximize.step(&LatentMoments::of(self.data, &frame, &at));
            if tell().is_break() {
                return Err(Error::Interrupted);
            }
        }
        frame.model(&at, &spec)
    }
}
