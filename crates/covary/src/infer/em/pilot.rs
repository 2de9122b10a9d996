//! A few steps of EM from the spectral start, at any number of components: for who compares many of them and keeps
//! none [M 3.3].

use super::moments::{LatentMoments, Maximize};
use super::parameters::Frame;
use super::start::{Pairs, WIDE, filled_scatter, from_eigenpairs, principal_factors};
use crate::linalg::{Eigen, krylov, leading_or_all as leading};
use crate::model::LinearGaussian;
use crate::spec::NoiseFamily;
use crate::{Dataset, Error, Matrix, Spec};
use std::ops::ControlFlow;

/// Smallest noise, as a share of the mean variance: scores of hidden cells are not to be ruled by a few that are known
/// almost exactly.
const LEAST_NOISE: f64 = 1e-4;
/// Passes over the covariance where its order is too large for all of its eigenpairs.
const PASSES: usize = 4;

/// What pilots of all numbers of components share: the products of the pairs of cells that a table has, and their leading
/// eigenpairs.
pub(crate) struct PilotStart<'a> {
    data: &'a Dataset,
    spec: Spec,
    frame: Frame,
    products: Products,
    leading: Eigen,
}

/// Means of products over the cells that both columns, or both rows, have.
enum Products {
    /// Of columns, d × d.
    Columns(Matrix),
    /// Of rows, n × n, times d/n: with the same eigenvalues, were there no gaps. Products of columns have those of the mean-filled
    /// rows, to which the gaps of a row far from the mean add more than to others: where columns are many that passes for
    /// components.
    Rows {
        /// The table in the scale of the fit, turned over, with 0 at the gaps.
        columns: Matrix,
        /// The products.
        products: Matrix,
    },
    /// None, where both would be too large: the mean-filled table is gone through.
    Table,
}

impl Products {
    fn of(data: &Dataset, frame: &Frame, by_rows: bool) -> Result<Self, Error> {
        let (n, d) = (data.n_rows(), data.n_columns());
        if by_rows && n < d.min(WIDE) {
            let cell = |j: usize, i: usize| (data.row(i)[j] - frame.mean[j]) * frame.inverse[j];
            let mut columns = Matrix::from_fn(d, n, cell);
            let unscaled = Frame::with_scale(vec![0.0; n], vec![1.0; n], true);
            let mut products = Pairs::of(&Dataset::new(columns.clone())?, &unscaled).covariance();
            columns.as_mut_slice().iter_mut().filter(|v| v.is_nan()).for_each(|v| *v = 0.0);
            products.as_mut_slice().iter_mut().for_each(|v| *v *= d as f64 / n as f64);
            return Ok(Self::Rows { columns, products });
        }
        Ok(if d <= WIDE { Self::Columns(Pairs::of(data, frame).covariance()) } else { Self::Table })
    }
}

impl<'a> PilotStart<'a> {
    /// Of a table and a spec for one noise variance, whose number of components does not matter; with `n_known` eigenpairs at
    /// least. Pilots with noise of each column's own need the products of columns.
    pub(crate) fn new(
        data: &'a Dataset,
        spec: &Spec,
        own_noise: bool,
        n_known: usize,
    ) -> Result<Self, Error> {
        let frame = Frame::new(data, spec);
        let products = Products::of(data, &frame, !own_noise)?;
        let leading = Eigen { values: Vec::new(), vectors: Matrix::zeros(0, 0) };
        let mut start = Self { data, spec: spec.clone(), frame, products, leading };
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
        self.leading = match &self.products {
            Products::Columns(s) => leading(s, wanted)?,
            Products::Rows { columns, products } => {
                let Eigen { values, vectors } = leading(products, wanted)?;
                let n_found = wanted.min(values.len());
                let values = values[..n_found].to_vec();
                let mut axes = columns.dot(&vectors.first_columns(n_found));
                let squares: Vec<f64> =
                    (0..values.len()).map(|k| axes.rows().map(|u| u[k] * u[k]).sum()).collect();
                axes.scale_columns(
                    &squares.iter().map(|v| 1.0 / v.max(f64::MIN_POSITIVE).sqrt()).collect::<Vec<_>>(),
                );
                Eigen { values, vectors: axes }
            }
            Products::Table => {
                let apply = filled_scatter(data, frame);
                let found = krylov::leading_ritz_pairs(apply, d, wanted, PASSES, 0)?;
                let mut found = found.ok_or(Error::Numerical { what: "the start of a very wide table" })?;
                // Its diagonal has variances over the share of observed cells.
                let excess = self.mean_variance() * (1.0 / data.observed_share() - 1.0);
                found.values.iter_mut().for_each(|v| *v -= excess);
                found
            }
        };
        Ok(())
    }

    /// The covariance of the columns in the scale of the fit, if it was found.
    pub(crate) fn covariance(&self) -> Option<&Matrix> {
        match &self.products {
            Products::Columns(s) => Some(s),
            _ => None,
        }
    }

    /// The leading eigenvalues that are known, and the mean variance of a column, both in the scale of the fit.
    pub(crate) fn eigenvalues(&self) -> (&[f64], f64) {
        (&self.leading.values, self.mean_variance())
    }

    fn mean_variance(&self) -> f64 {
        let squares = self.data.observed_variances().iter().zip(&self.frame.inverse);
        let total: f64 = squares.map(|(v, s)| v * s * s).sum();
        total / self.data.n_columns() as f64
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
        let mut at = match self.covariance() {
            Some(s) if !frame.isotropic => principal_factors(s, n_components, &frame, floor)?,
            _ => {
                let axes = self.leading.vectors.first_columns(n_components);
                let own = self.data.observed_variances().iter().zip(&frame.inverse);
                let variances: Vec<f64> = own.map(|(v, s)| v * s * s).collect();
                from_eigenpairs(&variances, &self.leading.values[..n_components], axes, &frame, floor)
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
