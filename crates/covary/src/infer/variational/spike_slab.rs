//! Bayesian PCA that selects columns: rows of W are 0 or not [M 2.9.3].

use super::state::Gamma;
use crate::linalg::{Cholesky, Eigen, dot, eigen, inverse, inverse_and_ln_det, thin_svd};
use crate::{Dataset, Error, Matrix};
use statrs::function::beta::ln_beta;
use statrs::function::gamma::digamma;

/// Row-sparse Bayesian PCA of a complete table, by variational inference: whether a column has a part in any component is
/// inferred with the loadings,
///
/// ```text
/// t = W x + μ + ε      wⱼ = γⱼ N(0, (λ τ)⁻¹ I)      γⱼ ~ Bernoulli(κ)      κ ~ Beta(a₁, a₂)      τ ~ Gamma(a₀, b₀)
/// ```
///
/// μ is the mean of the columns. Parameter expansion takes the place of many sweeps.
///
/// ```
/// use covary::{infer::SpikeSlab, Dataset, Density, LinearGaussian, Matrix, Noise};
/// use rand::SeedableRng;
/// let w = Matrix::from_rows(&[[2.0], [1.5], [1.0], [0.0], [0.0], [0.0]]);
/// let truth = LinearGaussian::new(w, vec![0.0; 6], Noise::Isotropic(1.0))?;
/// let table = Dataset::new(truth.sample(200, &mut rand_chacha::ChaCha8Rng::seed_from_u64(1)))?;
/// let found = SpikeSlab { n_components: 1, ..SpikeSlab::default() }.fit(&table, None)?;
/// assert_eq!(found.selected(), [0, 1, 2]);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct SpikeSlab {
    /// Components.
    pub n_components: usize,
    /// λ: precision of loadings relative to that of the noise.
    pub slab: f64,
    /// a₁ and a₂; if `None`, 1 and the number of columns: few columns are expected.
    pub inclusion: Option<(f64, f64)>,
    /// a₀ and b₀.
    pub noise: (f64, f64),
    /// Whether factors are rescaled and rotated together with the loadings after each sweep.
    pub parameter_expansion: bool,
    /// Most sweeps.
    pub max_iterations: usize,
    /// Stop when a sweep raises the bound by less than this many nats.
    pub tolerance: f64,
}

impl Default for SpikeSlab {
    fn default() -> Self {
        Self {
            n_components: 1,
            slab: 1.0,
            inclusion: None,
            noise: (1e-3, 1e-3),
            parameter_expansion: true,
            max_iterations: 2000,
            tolerance: 1e-8,
        }
    }
}

/// What [`SpikeSlab`] finds.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectedColumns {
    /// Posterior probability that each column has a part.
    pub inclusion: Vec<f64>,
    /// Posterior mean of the loadings of each column if it has a part, d × q.
    pub loadings: Matrix,
    /// Posterior mean of the noise precision τ.
    pub noise_precision: f64,
    /// The lower bound of the evidence after each sweep.
    pub trace: Vec<f64>,
}

impl SelectedColumns {
    /// The columns that are likelier in than out.
    pub fn selected(&self) -> Vec<usize> {
        (0..self.inclusion.len()).filter(|&j| self.inclusion[j] > 0.5).collect()
    }
}

impl SpikeSlab {
    /// Fits, from the principal components, or from these loadings (d × q) with unit noise.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a table with gaps, [`Error::TooManyComponents`] unless there are fewer than columns and rows,
    /// [`Error::OutOfRange`] for a parameter of a prior that is not above 0, [`Error::WrongLength`] for a start of another shape.
    pub fn fit(&self, data: &Dataset, start: Option<&Matrix>) -> Result<SelectedColumns, Error> {
        self.check(data, start)?;
        let mean = data.observed_means();
        let centered = Matrix::from_fn(data.n_rows(), data.n_columns(), |i, j| data.row(i)[j] - mean[j]);
        let mut at = State::new(self, &centered, start)?;
        let mut trace: Vec<f64> = Vec::new();
        for _ in 0..self.max_iterations {
            at.sweep();
            if self.parameter_expansion {
                at.expand()?;
            }
            let (bound, last) = (at.bound(), trace.last().copied());
            trace.push(bound);
            if last.is_some_and(|last| bound - last < self.tolerance) {
                break;
            }
        }
        Ok(SelectedColumns { inclusion: at.z, loadings: at.m, noise_precision: at.tau, trace })
    }

    fn check(&self, data: &Dataset, start: Option<&Matrix>) -> Result<(), Error> {
        if !data.is_complete() {
            let instead = "`SparseEm`, which takes them";
            return Err(Error::Unsupported { method: "spike and slab", what: "gaps", instead });
        }
        let (rows, columns, asked) = (data.n_rows(), data.n_columns(), self.n_components);
        let max = columns.min(rows).saturating_sub(1);
        if asked == 0 || asked > max {
            return Err(Error::TooManyComponents { asked, rows, columns, max });
        }
        let (a1, a2) = self.beta(columns);
        let above = |v: f64| v.is_finite() && v > 0.0;
        for (name, value) in
            [("slab", self.slab), ("a₁", a1), ("a₂", a2), ("a₀", self.noise.0), ("b₀", self.noise.1)]
        {
            if !above(value) {
                return Err(Error::OutOfRange { name, value, bound: "finite and above 0" });
            }
        }
        let (expected, got) = (columns * asked, start.map_or(columns * asked, |m| m.as_slice().len()));
        if got != expected {
            return Err(Error::WrongLength { what: "loadings of the start", expected, got });
        }
        Ok(())
    }

    fn gamma(&self) -> Gamma {
        Gamma { shape: self.noise.0, rate: self.noise.1 }
    }

    fn beta(&self, columns: usize) -> (f64, f64) {
        self.inclusion.unwrap_or((1.0, columns as f64))
    }
}

/// Probability of each column at the start: nearly all are in.
const IN: f64 = 0.999;

/// The factors of the posterior, as the sweeps need them.
struct State<'a> {
    prior: &'a SpikeSlab,
    table: &'a Matrix,
    total: f64,
    /// Loadings of columns that are in: means, and the covariance that all share.
    m: Matrix,
    s: Matrix,
    ln_det_s: f64,
    z: Vec<f64>,
    /// Scores: means, covariance, and `Σ ⟨x xᵀ⟩`.
    x: Matrix,
    ln_det_x: f64,
    p: Matrix,
    /// ⟨τ⟩, ⟨ln τ⟩ and its distribution.
    tau: f64,
    ln_tau: f64,
    gamma: Gamma,
    /// Beta distribution of κ.
    beta: (f64, f64),
    /// ⟨ln κ⟩ and ⟨ln (1 − κ)⟩.
    ln_kappa: (f64, f64),
}

impl<'a> State<'a> {
    fn new(prior: &'a SpikeSlab, table: &'a Matrix, start: Option<&Matrix>) -> Result<Self, Error> {
        let (n, d, q) = (table.n_rows(), table.n_columns(), prior.n_components);
        let m = if let Some(m) = start {
            m.clone()
        } else {
            let svd = thin_svd(table)?;
            Matrix::from_fn(d, q, |j, k| svd.v[(j, k)] * svd.s[k] / (n as f64).sqrt())
        };
        let total: f64 = table.as_slice().iter().map(|v| v * v).sum();
        // What the components leave is a first idea of the noise; a start that is given has unit noise.
        let left = total / n as f64 - m.as_slice().iter().map(|v| v * v).sum::<f64>();
        let noise = (left / (d - q) as f64).max(1e-6 * total / (n * d) as f64);
        let tau = if start.is_some() || noise <= 0.0 { 1.0 } else { 1.0 / noise };
        let half = 0.5_f64.ln();
        Ok(Self {
            prior,
            table,
            total,
            m,
            s: Matrix::zeros(q, q),
            ln_det_s: 0.0,
            z: vec![IN; d],
            x: Matrix::zeros(n, q),
            ln_det_x: 0.0,
            p: Matrix::zeros(q, q),
            tau,
            ln_tau: tau.ln(),
            gamma: prior.gamma(),
            beta: (1.0, 1.0),
            ln_kappa: (half, half),
        })
    }

    fn n_in(&self) -> f64 {
        self.z.iter().sum()
    }

    /// `⟨Wᵀ W⟩`
    fn second(&self) -> Matrix {
        let (mut weighted, n_in) = (self.m.clone(), self.n_in());
        weighted.scale_rows(&self.z);
        let mm = self.m.t_dot(&weighted);
        Matrix::from_fn(mm.n_rows(), mm.n_rows(), |i, k| mm[(i, k)] + n_in * self.s[(i, k)])
    }

    /// `⟨‖T − X Wᵀ‖²⟩`, given `⟨Wᵀ W⟩`.
    fn error(&self, second: &Matrix) -> f64 {
        let cross = self.table.t_dot(&self.x);
        let fitted: f64 = (0..self.z.len()).map(|j| self.z[j] * dot(cross.row(j), self.m.row(j))).sum();
        self.total - 2.0 * fitted + second.dot(&self.p).trace()
    }

    /// Scores, loadings with inclusions, κ, τ.
    fn sweep(&mut self) {
        let (n, d, q) = (self.table.n_rows() as f64, self.z.len(), self.p.n_rows());
        let (slab, identity) = (self.prior.slab, Matrix::identity(q));
        let second = self.second();
        let precision = Matrix::from_fn(q, q, |i, k| identity[(i, k)] + self.tau * second[(i, k)]);
        let (sigma, ln_det) = inverse_and_ln_det(&precision);
        self.ln_det_x = -ln_det;
        let mut weighted = self.m.clone();
        weighted.scale_rows(&self.z.iter().map(|z| z * self.tau).collect::<Vec<_>>());
        self.x = self.table.dot(&weighted).dot(&sigma);
        let xx = self.x.t_dot(&self.x);
        self.p = Matrix::from_fn(q, q, |i, k| xx[(i, k)] + n * sigma[(i, k)]);

        let precision = Matrix::from_fn(q, q, |i, k| self.tau * (self.p[(i, k)] + slab * identity[(i, k)]));
        let (s, ln_det) = inverse_and_ln_det(&precision);
        (self.s, self.ln_det_s) = (s, -ln_det);
        let mut cross = self.table.t_dot(&self.x);
        cross.scale_rows(&vec![self.tau; d]);
        self.m = cross.dot(&self.s);
        let common =
            self.ln_kappa.0 - self.ln_kappa.1 + 0.5 * (q as f64 * (slab.ln() + self.ln_tau) + self.ln_det_s);
        // mᵀ S⁻¹ m, with S⁻¹ m = τ Σ x t
        let odds = |j: usize| common + 0.5 * dot(self.m.row(j), cross.row(j));
        self.z = (0..d).map(|j| 1.0 / (1.0 + (-odds(j)).exp())).collect();

        let (a1, a2) = self.prior.beta(d);
        let n_in = self.n_in();
        self.beta = (a1 + n_in, a2 + d as f64 - n_in);
        let all = digamma(self.beta.0 + self.beta.1);
        self.ln_kappa = (digamma(self.beta.0) - all, digamma(self.beta.1) - all);

        let second = self.second();
        let Gamma { shape, rate } = self.prior.gamma();
        self.gamma = Gamma {
            shape: shape + 0.5 * (n * d as f64 + q as f64 * n_in),
            rate: rate + 0.5 * (self.error(&second) + slab * second.trace()),
        };
        (self.tau, self.ln_tau) = (self.gamma.mean(), self.gamma.mean_ln());
    }

    /// `x → R x`, `w → R⁻ᵀ w` by the R that raises the bound most: the slab is isotropic, so that nothing else changes.
    fn expand(&mut self) -> Result<(), Error> {
        let (q, second) = (self.p.n_rows(), self.second());
        let (root, inverse_root) = roots(&self.p)?;
        let k = Matrix::from_fn(q, q, |i, j| self.prior.slab * self.tau * second[(i, j)]);
        let mut middle = root.dot(&k).dot(&root);
        middle.symmetrize();
        let Eigen { values, vectors } = eigen(&middle)?;
        let free = self.table.n_rows() as f64 - self.n_in();
        let length = |v: &f64| (0.5 * (free + (free * free + 4.0 * v.max(0.0)).sqrt())).sqrt();
        let mut turn = vectors.transpose().dot(&inverse_root);
        turn.scale_rows(&values.iter().map(length).collect::<Vec<_>>());
        let back = inverse_of(&turn);
        let ln_det = values.iter().map(|v| length(v).ln()).sum::<f64>() + ln_det_of(&inverse_root)?;
        self.x = self.x.dot_t(&turn);
        self.p = turn.dot(&self.p).dot_t(&turn);
        self.p.symmetrize();
        self.m = self.m.dot(&back);
        self.s = back.t_dot(&self.s).dot(&back);
        self.s.symmetrize();
        self.ln_det_x += 2.0 * ln_det;
        self.ln_det_s -= 2.0 * ln_det;
        Ok(())
    }

    /// The lower bound of ln p(T).
    fn bound(&self) -> f64 {
        let (n, d, q) = (self.table.n_rows() as f64, self.z.len() as f64, self.p.n_rows() as f64);
        let (second, n_in) = (self.second(), self.n_in());
        let likelihood = 0.5 * n * d * (self.ln_tau - (2.0 * std::f64::consts::PI).ln())
            - 0.5 * self.tau * self.error(&second);
        let scores = 0.5 * (n * self.ln_det_x + n * q - self.p.trace());
        let loadings = 0.5 * n_in * (q * (self.prior.slab.ln() + self.ln_tau + 1.0) + self.ln_det_s)
            - 0.5 * self.prior.slab * self.tau * second.trace();
        let entropy = |p: f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
        let (of_in, of_out) = self.ln_kappa;
        let included: f64 =
            self.z.iter().map(|&z| z * of_in + (1.0 - z) * of_out + entropy(z) + entropy(1.0 - z)).sum();
        let (a1, a2) = self.prior.beta(self.z.len());
        let kappa = (a1 - self.beta.0) * of_in + (a2 - self.beta.1) * of_out - ln_beta(a1, a2)
            + ln_beta(self.beta.0, self.beta.1);
        likelihood + scores + loadings + included + kappa + self.gamma.gain(&self.prior.gamma())
    }
}

/// The symmetric root of a positive definite matrix, and its inverse.
fn roots(a: &Matrix) -> Result<(Matrix, Matrix), Error> {
    let Eigen { values, vectors } = eigen(a)?;
    let with = |power: f64| {
        let mut scaled = vectors.clone();
        scaled.scale_columns(&values.iter().map(|v| v.powf(power)).collect::<Vec<_>>());
        scaled.dot_t(&vectors)
    };
    Ok((with(0.5), with(-0.5)))
}

/// `R⁻¹ = (RᵀR)⁻¹ Rᵀ`
fn inverse_of(r: &Matrix) -> Matrix {
    inverse(&r.t_dot(r)).dot_t(r)
}

/// `ln |A|` of a positive definite matrix.
fn ln_det_of(a: &Matrix) -> Result<f64, Error> {
    match Cholesky::new(a) {
        Some(chol) => Ok(chol.ln_det()),
        None => Err(Error::NotCovariance {
            what: "the moments of the scores",
            why: "they are singular".to_owned(),
        }),
    }
}
