use crate::linalg::{Eigen, dot, eigen};
use crate::model::Imputed;
use crate::{Coordinates, Dataset, Density, Error, LinearGaussian, Matrix, Noise};
use std::borrow::Cow;

/// Correlations at or above this make the noise of a view singular; they are held here.
const LARGEST: f64 = 1.0 - 1e-10;

/// Canonical variates of two views, and the probabilistic model behind them (Bach & Jordan 2005).
///
/// ```text
/// Aᵀ Sxx A = I      Bᵀ Syy B = I      Aᵀ Sxy B = diag(ρ)                         (divisor N)
/// x = Wx z + μx + εx      y = Wy z + μy + εy      z ~ N(0, I_k)      ε ~ N(0, Ψ), full within a view
/// Wx = Sxx A P^½      Ψx = Sxx − Wx Wxᵀ      P = diag(ρ)                          maximum likelihood
/// ```
///
/// ρ falls; in each column of A the entry of largest absolute value is positive, and ρ ≥ 0 fixes B.
#[derive(Debug, Clone, PartialEq)]
pub struct Canonical {
    pub(super) n_rows: usize,
    pub(super) means: [Vec<f64>; 2],
    /// Sxx and Syy, the ridge on their diagonals if there is one.
    pub(super) covariances: [Matrix; 2],
    /// A, dx × k, and B, dy × k.
    pub(super) weights: [Matrix; 2],
    pub(super) correlations: Vec<f64>,
    /// ln |Sxx| + ln |Syy|; `None` where a view was reduced to fewer directions.
    pub(super) ln_det: Option<f64>,
}

impl Canonical {
    /// From its parts, as the methods of these names give them, for x and y.
    ///
    /// # Errors
    /// [`Error::WrongLength`] unless they fit each other.
    pub fn new(
        n_rows: usize,
        means: [Vec<f64>; 2],
        covariances: [Matrix; 2],
        weights: [Matrix; 2],
        correlations: Vec<f64>,
        ln_det: Option<f64>,
    ) -> Result<Self, Error> {
        let k = correlations.len();
        for view in 0..2 {
            let (d, s, w) = (means[view].len(), &covariances[view], &weights[view]);
            for (what, expected, got) in [
                ("rows of a view's covariance", d, s.n_rows()),
                ("columns of a view's covariance", d, s.n_columns()),
                ("rows of a view's weights", d, w.n_rows()),
                ("columns of a view's weights", k, w.n_columns()),
            ] {
                if expected != got {
                    return Err(Error::WrongLength { what, expected, got });
                }
            }
        }
        Ok(Self { n_rows, means, covariances, weights, correlations, ln_det })
    }

    /// Rows that it was learned from.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Sxx or Syy, the ridge on its diagonal if there is one.
    pub fn covariance(&self, view: usize) -> &Matrix {
        &self.covariances[view]
    }

    /// ln |Sxx| + ln |Syy|; `None` where a view was reduced to fewer directions, or with a ridge.
    pub fn ln_det(&self) -> Option<f64> {
        self.ln_det
    }

    /// Number of pairs k.
    pub fn n_components(&self) -> usize {
        self.correlations.len()
    }

    /// ρ, in decreasing order. With a ridge they are those of the regularized views.
    pub fn correlations(&self) -> &[f64] {
        &self.correlations
    }

    /// Mean of a view, 0 or 1.
    ///
    /// # Panics
    /// For a view beyond 1, as all that ask for one.
    pub fn mean(&self, view: usize) -> &[f64] {
        &self.means[view]
    }

    /// A (view 0) or B (view 1): variates are `Aᵀ (x − μx)`.
    pub fn weights(&self, view: usize) -> &Matrix {
        &self.weights[view]
    }

    /// Covariances of a view's columns with its variates, `Sxx A`. These, not the weights, say what a
    /// variate is about.
    pub fn structure(&self, view: usize) -> Matrix {
        self.covariances[view].dot(&self.weights[view])
    }

    /// Canonical variates of every row of a view, n × k: mean 0 and variance 1 on the rows they were
    /// learned from. Of a row with gaps, their mean given the cells of this view.
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns; with gaps as [`model`](Self::model).
    pub fn transform(&self, view: usize, data: &Dataset) -> Result<Matrix, Error> {
        if data.is_complete() {
            return self.project(view, data);
        }
        let [x, y] = self.variates(&self.beside(view, data)?)?;
        Ok(if view == 0 { x } else { y })
    }

    /// Canonical variates of both views of every row, x and y side by side in the table; of gaps their mean given
    /// all cells of the row.
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns; with gaps as [`model`](Self::model).
    pub fn variates(&self, both: &Dataset) -> Result<[Matrix; 2], Error> {
        let dx = self.means[0].len();
        let (expected, got) = (dx + self.means[1].len(), both.n_columns());
        if expected != got {
            return Err(Error::ColumnCount { expected, got });
        }
        // A variate is linear: its mean is the variate of the mean.
        let filled = if both.is_complete() {
            Cow::Borrowed(both)
        } else {
            Cow::Owned(Dataset::new(self.model()?.impute(both)?.values().clone())?)
        };
        let part = |columns: std::ops::Range<usize>| filled.of_columns(&columns.collect::<Vec<_>>());
        Ok([self.project(0, &part(0..dx)?)?, self.project(1, &part(dx..expected)?)?])
    }

    /// Aᵀ(x − μx) of rows without gaps.
    fn project(&self, view: usize, data: &Dataset) -> Result<Matrix, Error> {
        let mean = &self.means[view];
        if data.n_columns() != mean.len() {
            return Err(Error::ColumnCount { expected: mean.len(), got: data.n_columns() });
        }
        let mut variates = data.values().dot(&self.weights[view]);
        let origin = Matrix::from_rows(&[mean]).dot(&self.weights[view]);
        for i in 0..variates.n_rows() {
            variates.row_mut(i).iter_mut().zip(origin.row(0)).for_each(|(v, o)| *v -= o);
        }
        Ok(variates)
    }

    /// Wx or Wy: covariance of a view with z.
    pub fn loadings(&self, view: usize) -> Matrix {
        self.loadings_by(view, 0.5)
    }

    /// `Sxx A P^power`. With powers of the two views that sum to 1 the covariance of all columns is the same.
    fn loadings_by(&self, view: usize, power: f64) -> Matrix {
        let mut w = self.structure(view);
        let length = |r: &f64| if power == 0.5 { r.min(LARGEST).sqrt() } else { r.min(LARGEST).powf(power) };
        w.scale_columns(&self.correlations.iter().map(length).collect::<Vec<_>>());
        w
    }

    /// Ψx or Ψy.
    pub fn noise_covariance(&self, view: usize) -> Matrix {
        self.noise_beside(view, &self.loadings(view))
    }

    fn noise_beside(&self, view: usize, w: &Matrix) -> Matrix {
        let s = &self.covariances[view];
        let explained = w.dot_t(w);
        Matrix::from_fn(s.n_rows(), s.n_rows(), |i, j| s[(i, j)] - explained[(i, j)])
    }

    /// Maximum of the log-likelihood, in nats (spec 7.1); `None` where a view was reduced to fewer
    /// directions, or with a ridge, where there is no maximum.
    ///
    /// ```text
    /// ℓ = −N/2 [(dx + dy)(1 + ln 2π) + ln |Sxx| + ln |Syy| + Σᵢ ln(1 − ρᵢ²)]
    /// ```
    pub fn log_likelihood(&self) -> Option<f64> {
        let d = self.means[0].len() + self.means[1].len();
        let shared: f64 = self.correlations.iter().map(|r| r.min(LARGEST)).map(|r| (1.0 - r * r).ln()).sum();
        let constant = d as f64 * (1.0 + (2.0 * std::f64::consts::PI).ln());
        self.ln_det.map(|ln_det| -0.5 * self.n_rows as f64 * (constant + ln_det + shared))
    }

    /// Rows of a view beside the other, which is missing.
    fn beside(&self, view: usize, known: &Dataset) -> Result<Dataset, Error> {
        let (expected, got) = (self.means[view].len(), known.n_columns());
        if expected != got {
            return Err(Error::ColumnCount { expected, got });
        }
        let first = if view == 0 { 0 } else { self.means[0].len() };
        let inside = first..first + expected;
        let joint = Matrix::from_fn(known.n_rows(), self.means[0].len() + self.means[1].len(), |i, j| {
            if inside.contains(&j) { known.row(i)[j - first] } else { f64::NAN }
        });
        Dataset::new(joint)
    }

    /// E[z | x, y] of every row, n × k, from its variates; gaps are integrated out.
    ///
    /// ```text
    /// E[z | x, y] = P^½ (I + P)⁻¹ (u + v)      Cov = (I − P)(I + P)⁻¹      u = Aᵀ(x − μx),  v = Bᵀ(y − μy)
    /// ```
    ///
    /// # Errors
    /// As [`transform`](Self::transform), and [`Error::WrongLength`] unless the views have the same rows.
    pub fn scores(&self, x: &Dataset, y: &Dataset) -> Result<Matrix, Error> {
        super::canonical_correlation::same_rows(x, y)?;
        if !(x.is_complete() && y.is_complete()) {
            let (x, y) = (self.beside(0, x)?, self.beside(1, y)?);
            let dx = self.means[0].len();
            let pick = |i: usize, j: usize| if j < dx { x.row(i)[j] } else { y.row(i)[j] };
            let both = Dataset::new(Matrix::from_fn(x.n_rows(), x.n_columns(), pick))?;
            let all = self.model()?.transform(&both, Coordinates::Posterior)?;
            return Ok(all.first_columns(self.n_components()));
        }
        let (u, v) = (self.project(0, x)?, self.project(1, y)?);
        let share = |i: usize| self.correlations[i].sqrt() / (1.0 + self.correlations[i]);
        Ok(Matrix::from_fn(u.n_rows(), u.n_columns(), |n, i| share(i) * (u[(n, i)] + v[(n, i)])))
    }

    /// The model of the columns of x followed by those of y, to score rows, fill gaps and predict one view
    /// from the other: leave the view to predict empty.
    ///
    /// The full Ψ of a view is `λ I` plus a part of lower rank, in units of its columns; the part becomes
    /// components of its own, after the k shared ones [M 2.7.3]. So q = k + dx + dy − 2.
    ///
    /// ```
    /// use covary::{Dataset, Density, Matrix, views::CanonicalCorrelation};
    /// let x = Matrix::from_fn(50, 2, |i, j| ((i * (j + 3)) as f64).sin());
    /// let y = Matrix::from_fn(50, 1, |i, _| x[(i, 0)] + 0.2 * (i as f64 * 1.7).cos());
    /// let views = (Dataset::new(x.clone())?, Dataset::new(y)?);
    /// let model = CanonicalCorrelation::default().fit(&views.0, &views.1)?.model()?;
    /// let asked = Dataset::new(Matrix::from_rows(&[[x[(7, 0)], x[(7, 1)], f64::NAN]]))?;
    /// let filled = model.impute(&asked)?;
    /// let cell = &filled.cells()[0];
    /// assert!((cell.mean - x[(7, 0)]).abs() < 0.2 && cell.sd < 0.2);
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Numerical`] for numbers at the limits of f64.
    pub fn model(&self) -> Result<LinearGaussian, Error> {
        let sd = |s: &Matrix| (0..s.n_rows()).map(|j| s[(j, j)].sqrt()).collect::<Vec<f64>>();
        self.model_in(&self.covariances.iter().flat_map(sd).collect::<Vec<_>>())
    }

    /// [`model`](Self::model) with the noise of a view equal in these units of the columns, x before y.
    pub(crate) fn model_in(&self, units: &[f64]) -> Result<LinearGaussian, Error> {
        self.model_by(units, [0.5, 0.5])
    }

    /// [`model_in`](Self::model_in) with the same noise in both views. The more of ρ a view's loadings take, the less
    /// is left to its noise, down to nothing: somewhere in between both views have as much,
    /// `Wx = Sxx A P^a`, `Wy = Syy B P^(1 − a)`, and the likelihood does not depend on a.
    pub(crate) fn tied_model_in(&self, units: &[f64]) -> Result<LinearGaussian, Error> {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let power = 0.5 * (low + high);
            let least = |view: usize, power: f64| {
                let found = self.noise_in(units, view, power)?;
                Ok::<f64, Error>(found.values[found.values.len() - 1])
            };
            if least(0, power)? < least(1, 1.0 - power)? { low = power } else { high = power }
        }
        self.model_by(units, [low, 1.0 - low])
    }

    /// Eigenpairs of the noise of a view in these units, with loadings of that power.
    fn noise_in(&self, units: &[f64], view: usize, power: f64) -> Result<Eigen, Error> {
        let first = if view == 0 { 0 } else { self.means[0].len() };
        let mut psi = self.noise_beside(view, &self.loadings_by(view, power));
        let inverse: Vec<f64> = units[first..first + psi.n_rows()].iter().map(|s| 1.0 / s).collect();
        psi.scale_both(&inverse);
        eigen(&psi)
    }

    fn model_by(&self, units: &[f64], powers: [f64; 2]) -> Result<LinearGaussian, Error> {
        let (k, dims) = (self.n_components(), [self.means[0].len(), self.means[1].len()]);
        let n_private = [dims[0] - 1, dims[1] - 1];
        let mut loadings = Matrix::zeros(dims[0] + dims[1], k + n_private[0] + n_private[1]);
        let mut noise = Vec::with_capacity(dims[0] + dims[1]);
        for view in 0..2 {
            let (first_row, first_column) = if view == 0 { (0, k) } else { (dims[0], k + n_private[0]) };
            let shared = self.loadings_by(view, powers[view]);
            let unit = &units[first_row..first_row + dims[view]];
            let found = self.noise_in(units, view, powers[view])?;
            // A correlation of 1 leaves no noise in one direction.
            let least = found.values[dims[view] - 1].max(1e-12 * found.values[0].max(f64::MIN_POSITIVE));
            for j in 0..dims[view] {
                let row = loadings.row_mut(first_row + j);
                row[..k].copy_from_slice(shared.row(j));
                for i in 0..n_private[view] {
                    let length = (found.values[i] - least).max(0.0).sqrt();
                    row[first_column + i] = unit[j] * length * found.vectors[(j, i)];
                }
                noise.push(unit[j] * unit[j] * least);
            }
        }
        LinearGaussian::new(loadings, self.means.concat(), Noise::Diagonal(noise))
    }

    /// The columns of `view` predicted from rows of the other, gaps in these integrated out: the joint table of
    /// x and y, each predicted cell with its standard deviation.
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns than the other view; as [`model`](Self::model).
    pub fn predict(&self, view: usize, known: &Dataset) -> Result<Imputed, Error> {
        self.model()?.impute(&self.beside(1 - view, known)?)
    }

    /// Correlation of the variates of two views on these rows, to see how ρ holds on rows not learned from.
    ///
    /// # Errors
    /// As [`scores`](Self::scores).
    pub fn correlations_on(&self, x: &Dataset, y: &Dataset) -> Result<Vec<f64>, Error> {
        super::canonical_correlation::same_rows(x, y)?;
        let (u, v) = (self.transform(0, x)?, self.transform(1, y)?);
        let centered = |m: &Matrix, i: usize| {
            let column = m.column(i);
            let mean = column.iter().sum::<f64>() / column.len() as f64;
            column.iter().map(|c| c - mean).collect::<Vec<f64>>()
        };
        let correlation = |i: usize| {
            let (a, b) = (centered(&u, i), centered(&v, i));
            dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt()
        };
        Ok((0..self.n_components()).map(correlation).collect())
    }
}
