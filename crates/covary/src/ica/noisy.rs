use super::FastIca;
use crate::infer::{Em, Estimator, Observer, Step, Termination};
use crate::linalg::{Cholesky, canonical_signs, dot};
use crate::parallel::{add, over_pieces};
use crate::{Dataset, Density, Error, Matrix, Spec};
use std::f64::consts::{LN_2, PI, SQRT_2};
use std::ops::Range;

/// Independent components behind noise, with gaps: Laplace sources, fewer than columns or not (spec §8.4).
///
/// ```text
/// t = W s + μ + ε      ε ~ N(0, diag ψ)      p(s) = exp(−√2 |s|) / √2
/// ```
///
/// Variational EM by `−√2 |s| ≥ −(s²/η + η)/√2`, tight at `η = √⟨s²⟩`; the bound never falls. Gaps are left
/// out of the sums.
///
/// ```
/// use covary::{Dataset, Matrix, ica::{NoisyIca, amari_index}};
/// // Two pulses with heavy tails, seen by three columns.
/// let source = |i: usize| [(i as f64 * 0.37).sin().powi(9), (i as f64 * 1.7).cos().powi(15)];
/// let mixing = Matrix::from_rows(&[[2.0, 0.6], [0.4, 2.0], [1.0, -1.0]]);
/// let mut rows = Matrix::from_rows(&(0..500).map(source).collect::<Vec<_>>()).dot_t(&mixing);
/// rows[(3, 1)] = f64::NAN;
/// let found = NoisyIca::new(2).fit(&Dataset::new(rows)?)?;
/// let w = found.mixing;
/// let cosine = |a: usize, b: usize| (0..3).map(|j| w[(j, a)] * mixing[(j, b)]).sum::<f64>().abs();
/// assert!(cosine(0, 0).max(cosine(0, 1)) > 3.0 * cosine(0, 0).min(cosine(0, 1)));
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct NoisyIca {
    /// Number of sources.
    pub n_components: usize,
    /// One noise variance for all columns.
    pub tied_noise: bool,
    /// Most iterations.
    pub max_iterations: usize,
    /// Stop when the bound rises by less, in nats per observed cell; 0 runs all iterations.
    pub tolerance: f64,
    /// Loadings, mean and noise to start from; FastICA, of the table filled by probabilistic PCA if it has gaps,
    /// if `None`.
    pub start: Option<(Matrix, Vec<f64>, Vec<f64>)>,
}

/// Smallest noise variance as a share of a column's.
const FLOOR: f64 = 1e-8;

/// What [`NoisyIca`] found.
#[derive(Debug, Clone, PartialEq)]
pub struct NoisySeparation {
    /// W, d × q, columns by falling length, the entry of largest absolute value positive.
    pub mixing: Matrix,
    /// μ.
    pub mean: Vec<f64>,
    /// ψ of every column.
    pub noise_variances: Vec<f64>,
    /// Posterior means of the sources of every row, n × q.
    pub sources: Matrix,
    /// The bound after every step, in nats.
    pub trace: Vec<f64>,
    /// Why it ended.
    pub termination: Termination,
}

impl NoisyIca {
    /// With the options we recommend.
    pub fn new(n_components: usize) -> Self {
        Self { n_components, tied_noise: false, max_iterations: 1000, tolerance: 1e-8, start: None }
    }

    /// Separates the sources of a table.
    ///
    /// # Errors
    /// As [`fit_observed`](Self::fit_observed).
    pub fn fit(&self, data: &Dataset) -> Result<NoisySeparation, Error> {
        self.fit_observed(data, &mut ())
    }

    /// Separates the sources; `observer` hears of every step and may end the work.
    ///
    /// # Errors
    /// [`Error::EmptyColumn`], [`Error::ConstantColumn`], [`Error::OutOfRange`] for an option, [`Error::WrongLength`]
    /// for a start of another shape; those of [`FastIca`] and [`Em`] where they find the start.
    pub fn fit_observed(
        &self,
        data: &Dataset,
        observer: &mut dyn Observer,
    ) -> Result<NoisySeparation, Error> {
        let (d, q) = (data.n_columns(), self.n_components);
        let out = |name, value, bound| Err(Error::OutOfRange { name, value, bound });
        if q == 0 {
            return out("n_components", 0.0, "1 or more");
        }
        if !(self.tolerance.is_finite() && self.tolerance >= 0.0) {
            return out("tolerance", self.tolerance, "finite and not negative");
        }
        for (j, &variance) in data.observed_variances().iter().enumerate() {
            let column = || data.column_names()[j].clone();
            if variance.is_nan() {
                return Err(Error::EmptyColumn { column: column() });
            }
            if variance == 0.0 {
                return Err(Error::ConstantColumn { column: column() });
            }
        }
        let (w, mean, psi) = match &self.start {
            Some(start) => start.clone(),
            None => self.found_start(data)?,
        };
        for (what, expected, got) in [
            ("rows of the start", d, w.n_rows()),
            ("columns of the start", q, w.n_columns()),
            ("means of the start", d, mean.len()),
            ("noise variances of the start", d, psi.len()),
        ] {
            if expected != got {
                return Err(Error::WrongLength { what, expected, got });
            }
        }
        if let Some(&value) = psi.iter().find(|v| !(v.is_finite() && **v > 0.0)) {
            return out("a noise variance of the start", value, "finite and above 0");
        }
        let mut at = Parameters { w, mean, psi };
        let mut eta = vec![1.0; data.n_rows() * q];
        let mut now = Moments::of(data, &at, &eta);
        let mut trace: Vec<f64> = Vec::new();
        let mut termination = Termination::IterationLimit;
        for iteration in 1..=self.max_iterations {
            eta.copy_from_slice(&now.eta);
            at = self.maximize(data, &at, &now);
            now = Moments::of(data, &at, &eta);
            let bound = now.bound(&at);
            let gain = trace.last().map_or(f64::INFINITY, |last| bound - last);
            trace.push(bound);
            if gain < self.tolerance * data.n_observed() as f64 {
                termination = Termination::Converged;
                break;
            }
            if observer.step(&Step { iteration, objective: bound }).is_break() {
                termination = Termination::Interrupted;
                break;
            }
        }
        let length = |i: usize| (0..d).map(|j| at.w[(j, i)] * at.w[(j, i)]).sum::<f64>();
        let lengths: Vec<f64> = (0..q).map(length).collect();
        let mut order: Vec<usize> = (0..q).collect();
        order.sort_by(|&a, &b| lengths[b].total_cmp(&lengths[a]));
        let mut mixing = Matrix::from_fn(d, q, |j, i| at.w[(j, order[i])]);
        let flips = canonical_signs(&mut mixing);
        let sources = Matrix::from_fn(data.n_rows(), q, |n, i| flips[i] * now.sources[n * q + order[i]]);
        Ok(NoisySeparation { mixing, mean: at.mean, noise_variances: at.psi, sources, trace, termination })
    }

    /// FastICA's mixing, and what it leaves as noise.
    fn found_start(&self, data: &Dataset) -> Result<(Matrix, Vec<f64>, Vec<f64>), Error> {
        let q = self.n_components;
        let filled;
        let whole = if data.is_complete() {
            data
        } else {
            let model = Em::default().fit(data, &Spec::ppca(q))?.model;
            filled = Dataset::new(model.impute(data)?.values().clone())?;
            &filled
        };
        let found = FastIca { n_components: Some(q), ..FastIca::default() }.fit(whole)?.model;
        let back = found.reconstruct(&found.transform(whole)?)?;
        let n = whole.n_rows() as f64;
        let left = |j: usize| {
            let squares = (0..whole.n_rows()).map(|i| (whole.values()[(i, j)] - back[(i, j)]).powi(2));
            (squares.sum::<f64>() / n).max(0.01 * data.observed_variances()[j])
        };
        let own: Vec<f64> = (0..data.n_columns()).map(left).collect();
        let mean = own.iter().sum::<f64>() / own.len() as f64;
        let psi = if self.tied_noise { vec![mean; own.len()] } else { own };
        Ok((found.mixing().clone(), found.mean().to_vec(), psi))
    }

    /// For every column a regression on (s, 1), then the noise at the new loadings.
    fn maximize(&self, data: &Dataset, at: &Parameters, m: &Moments) -> Parameters {
        let (d, q) = (at.w.n_rows(), at.w.n_columns());
        let mut next = at.clone();
        let mut errors = m.errors.clone();
        for j in 0..d {
            let a = m.normal_matrix(j, q);
            let mut reference = at.w.row(j).to_vec();
            reference.push(0.0);
            let slope: Vec<f64> =
                (0..=q).map(|i| m.cross[j * (q + 1) + i] - dot(a.row(i), &reference)).collect();
            let mut delta = slope.clone();
            match Cholesky::new(&a) {
                Some(chol) => chol.solve(&mut delta),
                // Fewer rows than sources in this column: it stays.
                None => delta.fill(0.0),
            }
            // e(w̃ + δ) = e(w̃) − 2 slopeᵀδ + δᵀ A δ
            let curvature: f64 = (0..=q).map(|i| delta[i] * dot(a.row(i), &delta)).sum();
            errors[j] += curvature - 2.0 * dot(&slope, &delta);
            (0..q).for_each(|i| next.w[(j, i)] += delta[i]);
            next.mean[j] += delta[q];
        }
        let count = |j: usize| data.n_observed_by_column()[j] as f64;
        let floor = |j: usize| FLOOR * data.observed_variances()[j];
        let pooled = errors.iter().sum::<f64>() / data.n_observed() as f64;
        for j in 0..d {
            next.psi[j] = if self.tied_noise { pooled } else { errors[j] / count(j) }.max(floor(j));
        }
        next
    }
}

#[derive(Clone)]
struct Parameters {
    w: Matrix,
    mean: Vec<f64>,
    psi: Vec<f64>,
}

/// Sums over rows given parameters and η, and what each row says of its sources.
struct Moments {
    /// `Σ ⟨z zᵀ⟩`, z = (s, 1), over all rows; then, per column, over the rows that miss it.
    common: Vec<f64>,
    missing: Vec<f64>,
    /// `Σ (t − μ) ẑ` per column.
    cross: Vec<f64>,
    /// `Σ ⟨(t − wᵀs − μ)²⟩` per column, over its observed cells, from residuals.
    errors: Vec<f64>,
    counts: Vec<f64>,
    /// `½ Σ ln |Σₙ|` and the sources' part of the bound.
    rest: f64,
    /// Row by row: posterior means, and the η that they ask for.
    sources: Vec<f64>,
    eta: Vec<f64>,
}

impl Moments {
    fn of(data: &Dataset, at: &Parameters, eta: &[f64]) -> Self {
        let (d, q) = (at.w.n_rows(), at.w.n_columns());
        let step = 8192_usize.div_ceil(d);
        let part_of = |rows: Range<usize>| {
            let mut part = Self::empty(d, q);
            rows.for_each(|n| part.add_row(data.row(n), at, &eta[n * q..(n + 1) * q]));
            part
        };
        over_pieces(data.n_rows(), step, part_of, Self::merge)
    }

    fn empty(d: usize, q: usize) -> Self {
        let square = (q + 1) * (q + 1);
        Self {
            common: vec![0.0; square],
            missing: vec![0.0; d * square],
            cross: vec![0.0; d * (q + 1)],
            errors: vec![0.0; d],
            counts: vec![0.0; d],
            rest: 0.0,
            sources: Vec::new(),
            eta: Vec::new(),
        }
    }

    fn merge(&mut self, other: &Self) {
        add(&mut self.common, &other.common);
        add(&mut self.missing, &other.missing);
        add(&mut self.cross, &other.cross);
        add(&mut self.errors, &other.errors);
        add(&mut self.counts, &other.counts);
        self.rest += other.rest;
        self.sources.extend_from_slice(&other.sources);
        self.eta.extend_from_slice(&other.eta);
    }

    /// `Σ = (Wᵀ Ψ⁻¹ W + diag(√2/η))⁻¹`, `m = Σ Wᵀ Ψ⁻¹ (t − μ)` over the observed columns.
    fn add_row(&mut self, row: &[f64], at: &Parameters, eta: &[f64]) {
        let q = eta.len();
        let mut precision = Matrix::diagonal(&eta.iter().map(|e| SQRT_2 / e).collect::<Vec<_>>());
        let mut z = vec![0.0; q];
        let observed = |j: &usize| !row[*j].is_nan();
        for j in (0..row.len()).filter(observed) {
            let (w, inverse) = (at.w.row(j), 1.0 / at.psi[j]);
            for a in 0..q {
                z[a] += w[a] * inverse * (row[j] - at.mean[j]);
                (0..=a).for_each(|b| precision[(a, b)] += w[a] * inverse * w[b]);
            }
        }
        let chol = Cholesky::new(&precision).expect("a positive diagonal plus a sum of squares");
        chol.solve(&mut z);
        let covariance = chol.inverse();
        z.push(1.0);
        let second = |a: usize, b: usize| z[a] * z[b] + if a < q && b < q { covariance[(a, b)] } else { 0.0 };
        let square = (q + 1) * (q + 1);
        let moment: Vec<f64> = (0..square).map(|k| second(k / (q + 1), k % (q + 1))).collect();
        add(&mut self.common, &moment);
        for j in 0..row.len() {
            if row[j].is_nan() {
                add(&mut self.missing[j * square..(j + 1) * square], &moment);
                continue;
            }
            let (w, y) = (at.w.row(j), row[j] - at.mean[j]);
            let spread: f64 = (0..q).map(|a| w[a] * dot(&covariance.row(a)[..q], w)).sum();
            self.errors[j] += (y - dot(w, &z[..q])).powi(2) + spread;
            self.counts[j] += 1.0;
            self.cross[j * (q + 1)..(j + 1) * (q + 1)].iter_mut().zip(&z).for_each(|(c, z)| *c += y * z);
        }
        self.rest -= 0.5 * chol.ln_det();
        for i in 0..q {
            let power = second(i, i);
            self.rest -= 0.5 * LN_2 + 0.5 * SQRT_2 * (power / eta[i] + eta[i]);
            // A source that is surely 0 has no η; this one changes nothing.
            self.eta.push(power.sqrt().max(f64::MIN_POSITIVE.sqrt()));
        }
        self.sources.extend_from_slice(&z[..q]);
        // The entropy of a Gaussian, and the constants of its prior.
        self.rest += 0.5 * q as f64 * (1.0 + (2.0 * PI).ln());
    }

    /// `Σ ⟨z zᵀ⟩` over the rows that have column j.
    fn normal_matrix(&self, j: usize, q: usize) -> Matrix {
        let square = (q + 1) * (q + 1);
        let missing = &self.missing[j * square..(j + 1) * square];
        Matrix::from_fn(q + 1, q + 1, |a, b| self.common[a * (q + 1) + b] - missing[a * (q + 1) + b])
    }

    fn bound(&self, at: &Parameters) -> f64 {
        let column = |j: usize| self.counts[j] * (2.0 * PI * at.psi[j]).ln() + self.errors[j] / at.psi[j];
        self.rest - 0.5 * (0..at.psi.len()).map(column).sum::<f64>()
    }
}
