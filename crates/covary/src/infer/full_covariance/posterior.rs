//! How uncertain the mean and the covariance are [M 4.4.6]: each column is a regression on those before it, from the column
//! with most observed cells to the one with fewest.
//!
//! ```text
//! tⱼ = μⱼ + γⱼᵀ e_{<j} + σⱼ εⱼ        e = L⁻¹ (t − μ): the columns before it, made independent;  Σ = L Lᵀ
//! σⱼ*² = σⱼ² (Nⱼ + λ) / χ²_f        γⱼ* ~ N(γⱼ, σⱼ*² I / (Nⱼ + λ))        aⱼ* ~ N(0, σⱼ*² / nⱼ)
//! ```
//!
//! nⱼ counts the observed cells of column j, Nⱼ the rows that tell of its coefficients: a row with a share s of the columns
//! before it counts s, which is the trace of its expected information over that of a complete row. f is Nⱼ + λ − 1 less the
//! coefficients that λ pseudo-rows leave free. Without pseudo-rows and with gaps that are nested (every row that has a column
//! has all before it) this is the posterior, exactly, of the prior 1/σⱼ² for each regression.
//!
//! In units of L the draws do not depend on the table: with A the lower triangle of coefficients drawn for L = I,
//! ```text
//! μ* = μ + L (I − A)⁻¹ a        Σ* = L T Tᵀ Lᵀ        T = (I − A)⁻¹ diag(σ*)
//! ```

use super::{Frame, FullCovariance, model};
use crate::infer::em::start::pair_counts;
use crate::infer::pass::Rows;
use crate::linalg::rows::add_multiple;
use crate::linalg::{Cholesky, dot, eigen};
use crate::model::FilledCell;
use crate::{Dataset, Error, LinearGaussian, Matrix, Spec};
use rand::Rng;
use rand_distr::{ChiSquared, Distribution, StandardNormal};

/// Fewest degrees of freedom of draws: with these a variance has a mean.
const FEWEST: f64 = 3.0;

/// The columns from the one with most observed cells to the one with fewest.
fn order(n_observed: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n_observed.len()).collect();
    order.sort_by_key(|&j| std::cmp::Reverse(n_observed[j]));
    order
}

/// For each column the rows that tell of its regression on the columns before it, those with more observed cells: each
/// counts the share of the coefficients, its level among them, that it tells of.
///
/// ```text
/// Nⱼ = (nⱼ + Σ_{k before j} nⱼₖ) / (1 + columns before j)        nⱼₖ: rows with both
/// ```
///
/// # Errors
/// If the rows cannot be gone through.
pub(crate) fn informative_rows(rows: &dyn Rows) -> Result<Vec<f64>, Error> {
    let facts = rows.facts()?;
    let order = order(facts.n_observed_by_column());
    let both = pair_counts(rows, order.len())?;
    let mut informative = vec![0.0; order.len()];
    for (place, &j) in order.iter().enumerate() {
        let with = |k: &usize| both[(j.max(*k), j.min(*k))];
        informative[j] = order[..=place].iter().map(with).sum::<f64>() / (1 + place) as f64;
    }
    Ok(informative)
}

/// The posterior of mean and covariance around those of a fit.
pub(crate) struct ParameterPosterior {
    order: Vec<usize>,
    /// L, in that order and the units of the frame.
    root: Matrix,
    /// Of each column in that order: nⱼ, Nⱼ + λ and f.
    counts: Vec<[f64; 3]>,
    pseudo_rows: f64,
    mean: Vec<f64>,
    frame: Frame,
    spec: Spec,
}

impl ParameterPosterior {
    /// Of a fit, in `scale`, of a table with this many observed cells and informative rows in each column.
    pub(crate) fn new(
        method: &FullCovariance,
        (fitted, spec): (&LinearGaussian, &Spec),
        scale: Vec<f64>,
        (n_observed, informative): (&[usize], &[f64]),
    ) -> Option<Self> {
        let lambda = method.pseudo_rows;
        let order = order(n_observed);
        let frame = Frame::with_scale(fitted.mean().to_vec(), scale, true);
        let covariance = fitted.covariance();
        let scaled = |a: usize, b: usize| {
            let (a, b) = (order[a], order[b]);
            covariance[(a, b)] * frame.inverse[a] * frame.inverse[b]
        };
        let factor = Cholesky::new(&Matrix::from_fn(order.len(), order.len(), scaled))?;
        let inverse = factor.lower_inverse();
        let mut counts = Vec::with_capacity(order.len());
        // tr Σ_{<j}⁻¹: the squares of L⁻¹ so far.
        let mut trace = 0.0;
        for (place, &j) in order.iter().enumerate() {
            let total = informative[j] + lambda;
            // Of the coefficients pseudo-rows take λ tr (S + λ I)⁻¹, and S + λ I = (N + λ) Σ.
            let free = (place as f64 - lambda * trace / total).max(0.0);
            // Where coefficients take more than half of the rows, what is left is shrinkage's to say.
            let freedom = (total - 1.0 - free).max(0.5 * total).max(FEWEST);
            counts.push([n_observed[j] as f64, total, freedom]);
            trace += inverse.row(place)[..=place].iter().map(|v| v * v).sum::<f64>();
        }
        let (root, mean, spec) = (factor.lower().clone(), fitted.mean().to_vec(), spec.clone());
        Some(Self { order, root, counts, pseudo_rows: lambda, mean, frame, spec })
    }

    /// A mean and a covariance drawn, as a model.
    ///
    /// # Errors
    /// [`Error::NotFinite`] where the eigenvalues of the covariance cannot be found.
    pub(crate) fn draw(&self, rng: &mut dyn Rng) -> Result<LinearGaussian, Error> {
        let d = self.order.len();
        let (mut t, mut shift) = (Matrix::zeros(d, d), vec![0.0; d]);
        for (j, &[n, total, freedom]) in self.counts.iter().enumerate() {
            let chi: f64 = ChiSquared::new(freedom).expect("degrees of freedom above 0").sample(rng);
            let sigma = (total / chi.max(1e-9)).sqrt();
            let mut normal = || -> f64 { StandardNormal.sample(rng) };
            let mut row = vec![0.0; d];
            row[j] = sigma;
            let mut moved = sigma / n.sqrt() * normal();
            for (k, before) in shift[..j].iter().enumerate() {
                let a = sigma / total.sqrt() * normal();
                moved += a * before;
                add_multiple(&mut row[..=k], a, &t.row(k)[..=k]);
            }
            shift[j] = moved;
            t.row_mut(j).copy_from_slice(&row);
        }
        let root = self.root.dot(&t);
        let mut covariance = Matrix::zeros(d, d);
        let drawn = root.dot_t(&root);
        let mut mean = self.mean.clone();
        for (a, &i) in self.order.iter().enumerate() {
            mean[i] += self.frame.scale[i] * dot(&self.root.row(a)[..=a], &shift[..=a]);
            for (b, &j) in self.order.iter().enumerate() {
                covariance[(i, j)] = drawn[(a, b)];
            }
        }
        covariance.symmetrize();
        let spectrum = eigen(&covariance)?;
        model(&spectrum.values, &spectrum.vectors, mean, &self.frame, &self.spec)
    }

    /// Gives cells the distribution of a regression of their column on the observed ones of their row: Student's t, which
    /// counts that the coefficients and the variance around them were estimated [M 4.4.7].
    ///
    /// ```text
    /// s² Nⱼ/f (1 + 1/nⱼ + D²/(Nⱼ + λ))        f = Nⱼ − 1 − |O| + λ tr Σ_OO⁻¹/(Nⱼ + λ), at least 1
    /// ```
    ///
    /// D is the Mahalanobis distance of what is observed of the row. Pseudo-rows restrain coefficients; they are no
    /// evidence of how large the variance is, so that f does not count them.
    pub(crate) fn predict(&self, data: &Dataset, cells: &mut [FilledCell]) {
        self.as_students(data, cells, |[_, total, _], n_observed, trace| {
            let rows = total - self.pseudo_rows;
            let free = (n_observed as f64 - self.pseudo_rows * trace / total).max(0.0);
            let freedom = (rows - 1.0 - free).max(1.0);
            (rows / freedom, freedom)
        });
    }

    /// Gives cells the distribution that they have over [draws](Self::draw).
    pub(crate) fn predict_draws(&self, data: &Dataset, cells: &mut [FilledCell]) {
        self.as_students(data, cells, |[_, total, freedom], _, _| (total / freedom, freedom));
    }

    /// Student's t with what `of` says by the counts of a column, the number of observed cells of the row and tr Σ_OO⁻¹:
    /// the ratio of the variance to that of the fit, and the degrees of freedom.
    fn as_students(
        &self,
        data: &Dataset,
        cells: &mut [FilledCell],
        of: impl Fn([f64; 3], usize, f64) -> (f64, f64),
    ) {
        for gaps in cells.chunk_by_mut(|a, b| a.row == b.row) {
            let row = data.row(gaps[0].row);
            let observed: Vec<usize> =
                (0..self.order.len()).filter(|&place| !row[self.order[place]].is_nan()).collect();
            let k = observed.len();
            let scaled = |a: usize, b: usize| dot(self.root.row(observed[a]), self.root.row(observed[b]));
            // A part of a matrix that has a factor.
            let Some(factor) = Cholesky::new(&Matrix::from_fn(k, k, scaled)) else { continue };
            let inverse = factor.lower_inverse();
            let away = |place: &usize| {
                let j = self.order[*place];
                (row[j] - self.mean[j]) * self.frame.inverse[j]
            };
            let away: Vec<f64> = observed.iter().map(away).collect();
            let distance: f64 = inverse.rows().map(|row| dot(row, &away).powi(2)).sum();
            let trace: f64 = inverse.as_slice().iter().map(|v| v * v).sum();
            for cell in gaps {
                let place = self.order.iter().position(|&j| j == cell.column).expect("a column of the model");
                let [n, total, _] = self.counts[place];
                let (ratio, freedom) = of(self.counts[place], k, trace);
                cell.student(cell.sd * (ratio * (1.0 + 1.0 / n + distance / total)).sqrt(), freedom);
            }
        }
    }

    /// How much larger the variance of a cell is over such draws than the one that takes the parameters as known, in a row
    /// with this many observed cells at their usual distance from the mean.
    pub(crate) fn inflation(&self, column: usize, n_observed: usize) -> f64 {
        let place = self.order.iter().position(|&j| j == column).expect("a column of the model");
        let [n, total, freedom] = self.counts[place];
        total / (freedom - 2.0) * (1.0 + 1.0 / n + n_observed as f64 / total)
    }
}
