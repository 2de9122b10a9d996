//! EM of a stream of blocks [M 1.5.8].
//!
//! The past is its expected sufficient statistics, [`LatentMoments`] about the present mean and in the present units and axes, and counts,
//! means and variances of the columns. A block is gone through once and let go:
//!
//! ```text
//! s ← (1 − γ) s + γ s̄(block; θ)      γ = (b/N)^κ      θ ← M-step(s)            N: rows so far, b: rows of the block
//! ```

use super::moments::{Errors, LatentMoments, Loadings, Maximize};
use super::parameters::{Frame, Parameters};
use super::{Em, Estimator};
use crate::data::{COLUMN_FACTS, ColumnFacts, Facts};
use crate::infer::report::{Fit, FitReport, Objective, ObjectiveKind, Observer, Termination};
use crate::linalg::{Cholesky, dot, packed};
use crate::model::check_columns;
use crate::spec::Prior;
use crate::{Dataset, Error, Matrix, Spec};

/// The exponent κ of the steps.
const FORGETTING: f64 = 0.9;
/// Cells per parameter of a column below which the fit of the first block gets a prior.
const CELLS_PER_COMPONENT: usize = 5;

/// Probabilistic PCA or factor analysis of a stream of blocks of rows, gaps integrated out.
///
/// The first block is fitted by [`Em`]; each that follows moves the model by one step. What is kept does not grow: about d q²/2 numbers.
/// One pass over a table comes close to its most likely model, and a stream that repeats a table comes to it.
///
/// ```
/// use covary::{data::{simulate, Shape}, infer::{Em, OnlineEm}, Density, Estimator, Spec};
/// let (table, _) = simulate::ppca(Shape { rows: 600, columns: 6, n_components: 2 }, /* seed */ 1);
/// let table = simulate::hide(&table, 0.1, /* seed */ 2);
/// let mut stream = OnlineEm::new(Spec::ppca(2));
/// for first in (0..600).step_by(100) {
///     stream.take(&table.of_rows(&(first..first + 100).collect::<Vec<_>>())?)?;
/// }
/// let whole = Em::default().fit(&table, &Spec::ppca(2))?;
/// assert!(whole.model.score(&table)? - stream.fit()?.model.score(&table)? < 0.02);    // nats per row, after one pass
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct OnlineEm {
    spec: Spec,
    seen: Option<Seen>,
}

/// What is kept of the rows seen.
#[derive(Debug, Clone)]
struct Seen {
    facts: Facts,
    /// Sums over the blended rows, as many as there are; taken at the present parameters, or brought to them.
    moments: LatentMoments,
    /// Of as many rows, each block's under the model that it met.
    log_likelihood: f64,
}

impl OnlineEm {
    /// Nothing seen yet. The spec says what is fitted, its prior to the rows so far.
    pub fn new(spec: Spec) -> Self {
        Self { spec, seen: None }
    }

    /// What is fitted.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// What is known of the rows so far; `None` before the first block.
    pub fn facts(&self) -> Option<&Facts> {
        self.seen.as_ref().map(|seen| &seen.facts)
    }

    /// Learns from a block of rows. The first needs what [`Em`] needs of a table; in later ones columns may have no observed cell.
    /// After an error nothing has changed.
    ///
    /// # Errors
    /// What [`Em`] says of the first block, [`Error::ColumnCount`] of a later one with other columns, [`Error::Numerical`] where
    /// squares overflow.
    pub fn take(&mut self, block: &Dataset) -> Result<(), Error> {
        self.take_observed(block, &Em::default(), &mut ())
    }

    /// [`take`](Self::take), the first block being fitted by `em` and watched.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn take_observed(
        &mut self,
        block: &Dataset,
        em: &Em,
        observer: &mut dyn Observer,
    ) -> Result<(), Error> {
        self.seen = Some(match &self.seen {
            None => self.first(block, em, observer)?,
            Some(seen) => {
                check_columns(seen.facts.n_columns(), block)?;
                if block.n_informative_rows() > 0 { self.next(seen, block)? } else { seen.with_empty(block) }
            }
        });
        Ok(())
    }

    /// The model of the rows so far. Its log-likelihood is an estimate: that of each block under the model that it met, blended as the
    /// sums are.
    ///
    /// # Errors
    /// [`Error::TooFewRows`] before the first block.
    pub fn fit(&self) -> Result<Fit, Error> {
        let Seen { moments, log_likelihood, .. } = self.seen.as_ref().ok_or(Error::TooFewRows { rows: 0 })?;
        let model = moments.frame.model(&moments.at, &self.spec)?.canonical();
        let objective = Objective { kind: ObjectiveKind::LogLikelihood, value: *log_likelihood };
        let report =
            FitReport::new(objective, vec![*log_likelihood], Termination::IterationLimit, Vec::new());
        Ok(Fit { model, draws: None, report })
    }

    fn first(&self, block: &Dataset, em: &Em, observer: &mut dyn Observer) -> Result<Seen, Error> {
        let facts = block.facts();
        if let Some(j) = facts.n_observed_by_column().iter().position(|&n| n == 0) {
            return Err(Error::EmptyColumn { column: block.column_names()[j].clone() });
        }
        // The frame stays that of this block: a column without a standard deviation would never be standardized.
        if self.spec.standardize
            && let Some(j) = (0..block.n_columns()).find(|&j| block.is_constant(j))
        {
            return Err(Error::ConstantColumn { column: block.column_names()[j].clone() });
        }
        let fewest = facts.n_observed_by_column().iter().min().copied().unwrap_or(0);
        let few = self.spec.prior.is_flat() && fewest < CELLS_PER_COMPONENT * self.spec.n_components;
        let prior = if few { Prior::weak() } else { self.spec.prior.clone() };
        let fit = em.fit_observed(block, &Spec { prior, ..self.spec.clone() }, observer)?;
        let frame = Frame::of_columns(facts.observed_means(), facts.observed_variances(), &self.spec);
        let at = frame.parameters(&fit.model);
        let moments = LatentMoments::of(block, &frame, &at);
        let log_likelihood = moments.log_likelihood();
        Ok(Seen { facts, moments: moments.into_raw(), log_likelihood })
    }

    fn next(&self, past: &Seen, block: &Dataset) -> Result<Seen, Error> {
        let (b, before) = (block.n_informative_rows() as f64, past.facts.n_informative_rows() as f64);
        let mut facts = past.facts.clone();
        facts.merge(&block.facts());
        let n = before + b;
        let gamma = (b / n).powf(FORGETTING);

        let frame = Frame::of_columns(facts.observed_means(), facts.observed_variances(), &self.spec);
        let mut moments = past.moments.clone().in_frame(frame);
        let new = LatentMoments::of(block, &moments.frame, &moments.at);
        let (keep, add) = ((1.0 - gamma) * n / before, gamma * n / b);
        let log_likelihood = keep * past.log_likelihood + add * new.log_likelihood();
        moments.mix(keep, &new.into_raw(), add);

        let maximize = Maximize {
            expand: false,
            estimate_mean: true,
            prior: &self.spec.prior,
            floor: self.spec.floor(),
        };
        let mut at = maximize.step_of(&moments, Loadings::Free);
        // The fold is no ascent step under a prior.
        if self.spec.prior.is_flat()
            && let Some((shift, root)) = moments.latent_frame()
        {
            moments.turn(&shift, &root);
            for j in 0..at.mean.len() {
                at.mean[j] += dot(at.w.row(j), &shift) * moments.frame.scale[j];
            }
            at.w = at.w.dot(root.lower());
        }
        moments.move_to(at);
        if !moments.is_finite() {
            return Err(Error::Numerical { what: "the step of a stream" });
        }
        Ok(Seen { facts, moments, log_likelihood })
    }
}

impl Seen {
    /// With rows that have no value: they are counted, and say nothing.
    fn with_empty(&self, block: &Dataset) -> Self {
        let mut facts = self.facts.clone();
        facts.merge(&block.facts());
        Self { facts, moments: self.moments.clone(), log_likelihood: self.log_likelihood }
    }
}

/// First bytes of a saved state; the last of them is its version.
const MAGIC: [u8; 8] = *b"covonl\0\x01";
/// Rows that f64 counts exactly.
const MOST_ROWS: u64 = 1 << 53;

impl OnlineEm {
    /// The state as bytes, every number by its bits; empty before the first block.
    ///
    /// ```text
    /// magic, N, rows with a value, q, d: 8 bytes each │ facts (5 d) │ Σ⟨zzᵀ⟩ │ common, by column │ Σ y ẑᵀ │ Σ y² │ W │ μ │ ψ │ ℓ      little-endian
    /// ```
    pub fn to_bytes(&self) -> Vec<u8> {
        let Some(Seen { facts, moments: m, log_likelihood }) = &self.seen else { return Vec::new() };
        let mut bytes = MAGIC.to_vec();
        for count in [facts.n_rows(), facts.n_informative_rows(), m.n_components(), facts.n_columns()] {
            bytes.extend((count as u64).to_le_bytes());
        }
        let (squares, last) = (m.raw_squares(), [*log_likelihood]);
        let (by_column, cross, w) = (m.by_column.as_slice(), m.cross.as_slice(), m.at.w.as_slice());
        let columns = facts.columns().numbers();
        let parts =
            [columns, &m.latent, &m.common, by_column, cross, &squares, w, &m.at.mean, &m.at.psi, &last];
        bytes.extend(parts.iter().flat_map(|part| part.iter().flat_map(|v| v.to_le_bytes())));
        bytes
    }

    /// The stream of columns of these names whose state [`to_bytes`](Self::to_bytes) wrote, to the last bit; the spec must be the one it had.
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, infer::OnlineEm, Spec};
    /// let (table, _) = simulate::ppca(Shape { rows: 50, columns: 4, n_components: 1 }, /* seed */ 1);
    /// let mut stream = OnlineEm::new(Spec::ppca(1));
    /// stream.take(&table)?;
    /// let mut twin = OnlineEm::from_bytes(Spec::ppca(1), table.column_names(), &stream.to_bytes())?;
    /// stream.take(&table)?;
    /// twin.take(&table)?;
    /// assert_eq!(stream.fit()?.model, twin.fit()?.model);
    /// assert!(OnlineEm::from_bytes(Spec::ppca(2), table.column_names(), &stream.to_bytes()).is_err());
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::DamagedState`] for anything else.
    pub fn from_bytes(spec: Spec, names: &[String], bytes: &[u8]) -> Result<Self, Error> {
        let damaged = |why| Error::DamagedState { why };
        if bytes.is_empty() {
            return Ok(Self::new(spec));
        }
        let (words, rest) = bytes.as_chunks::<8>();
        let [MAGIC, counts @ ..] = words else { return Err(damaged("it does not begin as one")) };
        let ([n, informative, q, d], []) =
            (counts.first_chunk::<4>().ok_or(damaged("it is too short"))?, rest)
        else {
            return Err(damaged("it ends within a number"));
        };
        let [n, informative, q, d] = [n, informative, q, d].map(|c| u64::from_le_bytes(*c));
        let possible = (2..=MOST_ROWS).contains(&informative) && (informative..=MOST_ROWS).contains(&n);
        if !possible || q != spec.n_components as u64 || d != names.len() as u64 || q >= d {
            return Err(damaged("its counts contradict each other"));
        }
        let (q, d) = (spec.n_components, names.len());
        let p = packed::padded_len(q + 1);
        let numbers: Vec<f64> = counts[4..].iter().map(|c| f64::from_le_bytes(*c)).collect();
        let lengths = [COLUMN_FACTS * d, p, p, d * p, d * (q + 1), d, d * q, d, d, 1];
        if numbers.len() != lengths.iter().sum::<usize>() {
            return Err(damaged("its length is not that of its shape"));
        }
        if !numbers.iter().all(|v| v.is_finite()) {
            return Err(damaged("a number is not finite"));
        }
        let mut rest = &numbers[..];
        let [columns, latent, common, by_column, cross, squares, w, mean, psi, log_likelihood] =
            lengths.map(|length| {
                let (part, after) = rest.split_at(length);
                rest = after;
                part.to_vec()
            });
        if psi.iter().any(|v| *v <= 0.0) || squares.iter().any(|v| *v < 0.0) {
            return Err(damaged("a variance is negative"));
        }
        let facts =
            Facts::new(names.to_vec(), (n as usize, informative as usize), ColumnFacts::of_numbers(&columns));
        if facts
            .n_observed_by_column()
            .iter()
            .any(|&count| !(1..=facts.n_informative_rows()).contains(&count))
        {
            return Err(damaged("its counts contradict each other"));
        }
        if !facts.observed_variances().iter().all(|v| *v >= 0.0) {
            return Err(damaged("a variance is negative"));
        }
        let frame = Frame::of_columns(facts.observed_means(), facts.observed_variances(), &spec);
        let at = Parameters { w: Matrix::from_vec(d, q, w)?, mean, psi };
        let mut moments = LatentMoments::empty(&frame, &at);
        (moments.latent, moments.common) = (latent, common);
        (moments.by_column, moments.cross) =
            (Matrix::from_vec(d, p, by_column)?, Matrix::from_vec(d, q + 1, cross)?);
        moments.errors = Errors::Raw(squares);
        if moments.n_rows() <= 0.0 {
            return Err(damaged("its counts contradict each other"));
        }
        Ok(Self { spec, seen: Some(Seen { facts, moments, log_likelihood: log_likelihood[0] }) })
    }
}

/// Moments that outlive the parameters they were taken at.
impl LatentMoments {
    /// Errors by `Σ y²`, which any loadings share.
    fn into_raw(mut self) -> Self {
        self.errors = Errors::Raw(self.raw_squares());
        self
    }

    fn squares_mut(&mut self) -> &mut [f64] {
        match &mut self.errors {
            Errors::Raw(squares) => squares,
            Errors::Residual { .. } => unreachable!("moments of a stream are raw"),
        }
    }

    /// In the units of another frame: columns divided by other scales.
    fn in_frame(mut self, frame: Frame) -> Self {
        let factors: Vec<f64> =
            self.frame.scale.iter().zip(&frame.inverse).map(|(s, inverse)| s * inverse).collect();
        self.cross.scale_rows(&factors);
        self.at.w.scale_rows(&factors);
        self.squares_mut().iter_mut().zip(&factors).for_each(|(v, f)| *v *= f * f);
        self.at.psi.iter_mut().zip(&factors).for_each(|(v, f)| *v *= f * f);
        if frame.isotropic {
            let pooled = self.at.psi.iter().sum::<f64>() / self.at.psi.len() as f64;
            self.at.psi.fill(pooled);
        }
        self.frame = frame;
        self
    }

    /// `a self + b other`, of moments at the same parameters.
    fn mix(&mut self, a: f64, other: &Self, b: f64) {
        let blend = |x: &mut [f64], y: &[f64]| x.iter_mut().zip(y).for_each(|(x, y)| *x = a * *x + b * y);
        blend(self.squares_mut(), &other.raw_squares());
        blend(&mut self.latent, &other.latent);
        blend(&mut self.common, &other.common);
        blend(self.by_column.as_mut_slice(), other.by_column.as_slice());
        blend(self.cross.as_mut_slice(), other.cross.as_slice());
    }

    /// Mean ν and root L of the covariance that the rows have in the latent space, `Σ_x = L Lᵀ`; `None` where a direction has lost all
    /// variance.
    fn latent_frame(&self) -> Option<(Vec<f64>, Cholesky)> {
        let (q, n) = (self.n_components(), self.n_rows());
        if q == 0 {
            return None;
        }
        let second = self.latent_moment();
        let nu: Vec<f64> = (0..q).map(|i| second[(q, i)] / n).collect();
        let sigma = Matrix::from_fn(q, q, |i, k| second[(i, k)] / n - nu[i] * nu[k]);
        Cholesky::new(&sigma).map(|root| (nu, root))
    }

    /// What the moments are of `x' = L⁻¹ (x − ν)`: `A' = T A Tᵀ`, `b' = T b`, `T = (L⁻¹, −L⁻¹ν; 0, 1)`.
    fn turn(&mut self, nu: &[f64], root: &Cholesky) {
        let q = nu.len();
        // T, column by column.
        let mut t = Matrix::zeros(q + 1, q + 1);
        for k in 0..=q {
            let mut column: Vec<f64> =
                (0..q).map(|i| if k == q { -nu[i] } else { f64::from(u8::from(i == k)) }).collect();
            root.solve_lower(&mut column);
            for (i, v) in column.iter().enumerate() {
                t[(i, k)] = *v;
            }
        }
        t[(q, q)] = 1.0;
        let turned = |triangle: &mut [f64]| {
            let a = t.dot(&packed::unpack(triangle, q + 1)).dot_t(&t);
            for i in 0..=q {
                triangle[packed::len(i)..][..=i].copy_from_slice(&a.row(i)[..=i]);
            }
        };
        turned(&mut self.latent);
        turned(&mut self.common);
        for j in 0..self.by_column.n_rows() {
            turned(self.by_column.row_mut(j));
        }
        self.cross = self.cross.dot_t(&t);
    }

    /// As moments at other parameters: `y' = y + δ`, `δ = μ − μ'`, takes `Σ y ẑᵀ` and `Σ y²` along.
    fn move_to(&mut self, at: Parameters) {
        let q = self.n_components();
        for j in 0..at.mean.len() {
            let delta = (self.at.mean[j] - at.mean[j]) * self.frame.inverse[j];
            let a = self.normal_matrix(j);
            let sum = self.cross.row(j)[q];
            self.squares_mut()[j] += delta * (2.0 * sum + delta * a[(q, q)]);
            self.cross.row_mut(j).iter_mut().zip(a.row(q)).for_each(|(b, sum)| *b += delta * sum);
        }
        self.at = at;
    }

    fn is_finite(&self) -> bool {
        let numbers = [
            self.by_column.as_slice(),
            self.cross.as_slice(),
            self.at.w.as_slice(),
            &self.at.mean,
            &self.at.psi,
        ];
        numbers.iter().all(|part| part.iter().all(|v| v.is_finite()))
    }
}
