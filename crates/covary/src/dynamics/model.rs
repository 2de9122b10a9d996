//! Factors that follow each other in time, and what they say of a table [M 1.10].

use super::memory::{Chains, bridge, share};
use super::smoother::{Pass, StateSpace};
use super::{Regressors, Timeline};
use crate::linalg::{Cholesky, canonical_signs, dot, eigen};
use crate::model::{Fill, FilledCell, Uncertainty};
use crate::{Dataset, Error, LinearGaussian, Matrix, Noise};
use rand::Rng;
use std::sync::Arc;

/// Factors `x_t` of rows in time, each a linear function of those before it:
///
/// ```text
/// x_t = A₁ x_{t−1} + … + A_p x_{t−p} + η_t      t_t = W x_t + B b_t + ε_t      η ~ N(0, Q)   ε ~ N(0, Ψ)
/// ```
///
/// `b_t` are [`Regressors`]. With `A = 0` and `Q = I` this is probabilistic PCA or factor analysis.
///
/// ```
/// use covary::dynamics::{DynamicFactor, Regressors, Start, Timeline};
/// use covary::{Dataset, Matrix, Noise};
/// let (near, one) = (Matrix::diagonal(&[0.9]), Matrix::diagonal(&[1.0]));
/// let start = Start { mean: vec![0.0], covariance: one.clone() };
/// let (w, b) = (Matrix::from_rows(&[[1.0], [1.0]]), Matrix::zeros(2, 1));
/// let model = DynamicFactor::new(near, one, w, b, Regressors::default(), Noise::Isotropic(0.1), start)?;
/// let gap = f64::NAN;
/// let table = Dataset::new(Matrix::from_rows(&[[2.0, 2.2], [gap, gap], [2.1, gap]]))?;
/// let cells = model.fill(&table, &Timeline::regular(3))?;
/// assert!((1.9..2.2).contains(&cells[0].mean));                   // between its neighbors in time
/// assert!(cells[2].sd < cells[0].sd);                           // the other column was seen at that time
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct DynamicFactor {
    transition: Matrix,
    innovation: Matrix,
    loadings: Matrix,
    coefficients: Matrix,
    regressors: Regressors,
    noise: Noise,
    start: Start,
    /// ρ of each column, if noise remembers.
    memory: Option<Vec<f64>>,
    /// Of loadings and levels, where these have a posterior.
    uncertainty: Option<Arc<Uncertainty>>,
}

/// The distribution of the first state of a sequence: of `x_1`, or of `(x_1, x_0, …)` where the order is above 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// Its mean.
    pub mean: Vec<f64>,
    /// Its covariance.
    pub covariance: Matrix,
}

/// Rows to come.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    /// The time of each.
    pub times: Vec<i64>,
    /// Their cells, row by row; `row` counts steps from the end of the sequence, from 0.
    pub cells: Vec<FilledCell>,
}

impl DynamicFactor {
    /// A model of given parameters: `transition` is `(A₁ … A_p)`, k × kp, `innovation` Q, `loadings` W, d × k, and
    /// `coefficients` B, a column for each regressor.
    ///
    /// # Errors
    /// [`Error::WrongLength`] where shapes differ, [`Error::OutOfRange`] for a noise variance that is not above 0 or a
    /// covariance that is none.
    pub fn new(
        transition: Matrix,
        innovation: Matrix,
        loadings: Matrix,
        coefficients: Matrix,
        regressors: Regressors,
        noise: Noise,
        start: Start,
    ) -> Result<Self, Error> {
        let (k, states, d) = (innovation.n_rows(), start.mean.len(), loadings.n_rows());
        let expected = [
            ("columns of the innovation covariance", k, innovation.n_columns()),
            ("rows of the transition", k, transition.n_rows()),
            ("columns of the transition", states, transition.n_columns()),
            ("columns of the loadings", k, loadings.n_columns()),
            ("rows of the coefficients", d, coefficients.n_rows()),
            ("columns of the coefficients", regressors.len(), coefficients.n_columns()),
            ("rows of the covariance at the start", states, start.covariance.n_rows()),
            ("columns of the covariance at the start", states, start.covariance.n_columns()),
        ];
        if let Some((what, expected, got)) = expected.into_iter().find(|(_, want, got)| want != got) {
            return Err(Error::WrongLength { what, expected, got });
        }
        if k == 0 || states == 0 || !states.is_multiple_of(k) {
            return Err(Error::WrongLength {
                what: "states of a model with factors",
                expected: k.max(1),
                got: states,
            });
        }
        if let Noise::Diagonal(psi) = &noise
            && psi.len() != d
        {
            return Err(Error::WrongLength { what: "noise variances", expected: d, got: psi.len() });
        }
        if let Some(value) = noise.variances(d).into_iter().find(|v| !(v.is_finite() && *v > 0.0)) {
            return Err(Error::OutOfRange { name: "noise variance", value, bound: "finite and above 0" });
        }
        for (name, covariance) in
            [("variance of the innovations", &innovation), ("variance at the start", &start.covariance)]
        {
            let smallest = eigen(covariance)?.values.last().copied().unwrap_or(0.0);
            let rounding = 1e-12 * covariance.trace().abs();
            if !(smallest.is_finite() && smallest >= -rounding) {
                return Err(Error::OutOfRange { name, value: smallest, bound: "finite and not negative" });
            }
        }
        let finite = |m: &[f64]| m.iter().find(|v| !v.is_finite()).copied();
        let given = [transition.as_slice(), loadings.as_slice(), coefficients.as_slice(), &start.mean];
        if let Some(value) = given.into_iter().find_map(finite) {
            return Err(Error::OutOfRange { name: "parameter", value, bound: "finite" });
        }
        Ok(Self {
            transition,
            innovation,
            loadings,
            coefficients,
            regressors,
            noise,
            start,
            memory: None,
            uncertainty: None,
        })
    }

    /// `(A₁ … A_p)`, k × kp.
    pub fn transition(&self) -> &Matrix {
        &self.transition
    }

    /// Q, the covariance of what is new in the factors at each step.
    pub fn innovation(&self) -> &Matrix {
        &self.innovation
    }

    /// W, d × k.
    pub fn loadings(&self) -> &Matrix {
        &self.loadings
    }

    /// B: a row for each column of the table, a column for each regressor.
    pub fn coefficients(&self) -> &Matrix {
        &self.coefficients
    }

    /// What is known of every step beforehand.
    pub fn regressors(&self) -> &Regressors {
        &self.regressors
    }

    /// The noise.
    pub fn noise(&self) -> &Noise {
        &self.noise
    }

    /// The first state of a sequence.
    pub fn start(&self) -> &Start {
        &self.start
    }

    /// ρ of each column if noise remembers, `ε_t = ρ ε_{t−1} + u_t`; its variance is still [`noise`](Self::noise).
    pub fn noise_memory(&self) -> Option<&[f64]> {
        self.memory.as_deref()
    }

    /// The same model with noise that remembers this share of itself from one step to the next, in each column [M 1.10.11]. Through
    /// gaps of more than a dozen steps, or fewer where factors are many, it begins anew.
    ///
    /// ```
    /// use covary::dynamics::{DynamicFactor, Regressors, Start, Timeline};
    /// use covary::{Dataset, Matrix, Noise};
    /// let start = Start { mean: vec![0.0], covariance: Matrix::diagonal(&[1.0]) };
    /// let (a, q) = (Matrix::diagonal(&[0.0]), Matrix::diagonal(&[1.0]));
    /// let (w, b) = (Matrix::from_rows(&[[0.1], [0.1]]), Matrix::zeros(2, 1));
    /// let model = DynamicFactor::new(a, q, w, b, Regressors::default(), Noise::Isotropic(1.0), start)?;
    /// let model = model.with_noise_memory(Some(vec![0.9, 0.0]))?;
    /// let table = Dataset::new(Matrix::from_rows(&[[2.0, 2.0], [f64::NAN, f64::NAN]]))?;
    /// let cells = model.fill(&table, &Timeline::regular(2))?;
    /// assert!(cells[0].mean > 1.7 && cells[1].mean < 0.1);
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::WrongLength`] unless there is one for each column, [`Error::OutOfRange`] unless they are between −1 and 1.
    pub fn with_noise_memory(mut self, memory: Option<Vec<f64>>) -> Result<Self, Error> {
        if let Some(rho) = &memory {
            let (expected, got) = (self.n_columns(), rho.len());
            if expected != got {
                return Err(Error::WrongLength { what: "memories of noise", expected, got });
            }
            if let Some(&value) = rho.iter().find(|r| r.is_nan() || r.abs() >= 1.0) {
                return Err(Error::OutOfRange { name: "memory of noise", value, bound: "between -1 and 1" });
            }
        }
        self.memory = memory;
        Ok(self)
    }

    /// The posterior of loadings and levels around those of the model; `None` where they are taken as known.
    pub fn uncertainty(&self) -> Option<&Uncertainty> {
        self.uncertainty.as_deref()
    }

    /// The same model with a posterior of loadings and levels, as that of a Bayesian PCA has: `(w_j, level_j) ~ N(·, ψ_j E_j)`. Factors are
    /// then conditioned by expectations over it, filled cells and forecasts are less certain, and
    /// [`log_density`](Self::log_density) is a lower bound of the density averaged over it [M 1.10.12].
    ///
    /// # Errors
    /// [`Error::WrongLength`] or [`Error::OutOfRange`] if it does not fit the model.
    pub fn with_uncertainty(mut self, uncertainty: Uncertainty) -> Result<Self, Error> {
        uncertainty.check(self.n_columns(), self.n_components())?;
        self.uncertainty = Some(Arc::new(uncertainty));
        Ok(self)
    }

    /// The same model with the memory of noise and the posterior of loadings that another has.
    pub(super) fn like(self, other: &Self) -> Self {
        Self { memory: other.memory.clone(), uncertainty: other.uncertainty.clone(), ..self }
    }

    /// A draw from the posterior of loadings, levels and noise.
    pub(super) fn drawn(&self, rng: &mut dyn Rng) -> Result<Self, Error> {
        let Some(uncertainty) = self.uncertainty() else { return Ok(self.clone()) };
        let mean = vec![0.0; self.n_columns()];
        let drawn = LinearGaussian::new(self.loadings.clone(), mean, self.noise.clone())?
            .with_uncertainty(uncertainty.clone())?
            .draw_parameters(rng);
        let mut out = self.clone();
        (out.loadings, out.noise, out.uncertainty) = (drawn.loadings().clone(), drawn.noise().clone(), None);
        out.raise_levels(drawn.mean());
        Ok(out)
    }

    fn raise_levels(&mut self, by: &[f64]) {
        for l in (0..self.regressors.len()).filter(|&l| self.regressors.is_level(l)) {
            for (j, m) in by.iter().enumerate() {
                self.coefficients[(j, l)] += m;
            }
        }
    }

    /// The same model with another first state.
    pub(super) fn with_start(self, start: Start) -> Result<Self, Error> {
        let like = self.clone();
        let Self { transition, innovation, loadings, coefficients, regressors, noise, .. } = self;
        Ok(Self::new(transition, innovation, loadings, coefficients, regressors, noise, start)?.like(&like))
    }

    /// The same model of a state with the factors of `order` steps.
    pub(super) fn padded(&self, order: usize) -> Self {
        let (k, states) = (self.n_components(), self.start.mean.len());
        let all = (k * order).max(states);
        let entry =
            |m: &Matrix, i: usize, j: usize| if i < m.n_rows() && j < states { m[(i, j)] } else { 0.0 };
        let mut mean = self.start.mean.clone();
        mean.resize(all, 0.0);
        Self {
            transition: Matrix::from_fn(k, all, |i, j| entry(&self.transition, i, j)),
            start: Start {
                mean,
                covariance: Matrix::from_fn(all, all, |i, j| entry(&self.start.covariance, i, j)),
            },
            ..self.clone()
        }
    }

    /// Where cells of a table stand in the noise of their columns, if it remembers.
    pub(super) fn chains(&self, table: &Dataset, timeline: &Timeline) -> Option<Chains> {
        self.memory.as_ref().map(|_| Chains::of(table, timeline, self.n_components()))
    }

    /// Factors.
    pub fn n_components(&self) -> usize {
        self.loadings.n_columns()
    }

    /// p: how many steps back the factors depend on.
    pub fn order(&self) -> usize {
        self.start.mean.len() / self.n_components()
    }

    /// Columns of the table.
    pub fn n_columns(&self) -> usize {
        self.loadings.n_rows()
    }

    /// The log-density of the observed cells of each row given all that was observed before it in its sequence; 0 for a
    /// row without any. Their sum is the log-likelihood.
    ///
    /// # Errors
    /// [`Error::ColumnCount`], [`Error::WrongLength`] if table, timeline and model do not belong together.
    pub fn log_density(&self, table: &Dataset, timeline: &Timeline) -> Result<Vec<f64>, Error> {
        Ok(self.densities_and_surprises(table, timeline)?.0)
    }

    /// The squared Mahalanobis distance of the observed cells of each row from what was expected given all that was observed
    /// before it in its sequence; 0 for a row without any. Under the model χ² with as many degrees of freedom as cells.
    ///
    /// # Errors
    /// As [`log_density`](Self::log_density).
    pub fn surprises(&self, table: &Dataset, timeline: &Timeline) -> Result<Vec<f64>, Error> {
        Ok(self.densities_and_surprises(table, timeline)?.1)
    }

    /// [`log_density`](Self::log_density) and [`surprises`](Self::surprises), which one filter has.
    pub(crate) fn densities_and_surprises(
        &self,
        table: &Dataset,
        timeline: &Timeline,
    ) -> Result<(Vec<f64>, Vec<f64>), Error> {
        let (mut densities, mut squared) = (vec![0.0; table.n_rows()], vec![0.0; table.n_rows()]);
        self.passes(table, timeline, |sequence, pass, _| {
            for (step, row) in sequence.rows().iter().enumerate() {
                if let Some(row) = *row {
                    (densities[row], squared[row]) = (pass.log_density[step], pass.squared[step]);
                }
            }
        })?;
        Ok((densities, squared))
    }

    /// The factors of each step of each sequence, given all rows of the sequence.
    ///
    /// # Errors
    /// As [`log_density`](Self::log_density).
    pub fn smooth(&self, table: &Dataset, timeline: &Timeline) -> Result<Vec<Factors>, Error> {
        let (k, mut out) = (self.n_components(), Vec::new());
        self.passes(table, timeline, |_, pass, _| {
            let smoothed = pass.smooth();
            out.push(Factors::of(k, smoothed.means(), |t| smoothed.covariance(t).clone()));
        })?;
        Ok(out)
    }

    /// The factors of each step of each sequence, given the rows up to it: what was known at the time.
    ///
    /// # Errors
    /// As [`log_density`](Self::log_density).
    pub fn filter(&self, table: &Dataset, timeline: &Timeline) -> Result<Vec<Factors>, Error> {
        let (k, mut out) = (self.n_components(), Vec::new());
        self.passes(table, timeline, |_, pass, _| {
            out.push(Factors::of(k, &pass.filtered, |t| pass.covariance(t)));
        })?;
        Ok(out)
    }

    /// Every missing cell given all rows of its sequence [M 1.10.7], row by row.
    ///
    /// # Errors
    /// As [`log_density`](Self::log_density).
    pub fn fill(&self, table: &Dataset, timeline: &Timeline) -> Result<Vec<FilledCell>, Error> {
        let mut cells = Vec::with_capacity(table.n_gaps());
        self.passes(table, timeline, |sequence, pass, chains| {
            let smoothed = pass.smooth();
            for (t, row) in sequence.rows().iter().enumerate() {
                let Some(row) = *row else { continue };
                for j in (0..self.n_columns()).filter(|&j| table.row(row)[j].is_nan()) {
                    let (back, on) = chains.map_or((0, 0), |c| (c.before(row, j), c.after(row, j)));
                    let rho = self.memory.as_ref().map_or(0.0, |rho| rho[j]);
                    let (a, c, variance) = bridge(rho, back, on);
                    // The state of the last of the steps has the factors of all of them.
                    let end = t + on;
                    let value = |t: usize| sequence.rows()[t].map_or(0.0, |row| table.row(row)[j]);
                    let mut terms = vec![Term { share: 1.0, step: t, value: None }];
                    terms.extend((back > 0).then(|| Term {
                        share: -a,
                        step: t - back,
                        value: Some(value(t - back)),
                    }));
                    terms.extend((on > 0).then(|| Term { share: -c, step: end, value: Some(value(end)) }));
                    let (mean, p) = (smoothed.means().row(end), smoothed.covariance(end));
                    cells.push(self.predicted((row, j), sequence, (end, mean, p), &terms, variance));
                }
            }
        })?;
        cells.sort_by_key(|cell| (cell.row, cell.column));
        Ok(cells)
    }

    /// The rows that follow each sequence [M 1.10.7].
    ///
    /// # Errors
    /// As [`log_density`](Self::log_density).
    pub fn forecast(
        &self,
        table: &Dataset,
        timeline: &Timeline,
        steps: usize,
    ) -> Result<Vec<Forecast>, Error> {
        let mut out = Vec::new();
        self.passes(table, timeline, |sequence, pass, chains| {
            out.push(self.ahead_of(pass, (table, sequence, chains), steps, &[]));
        })?;
        Ok(out)
    }

    /// The rows that follow a sequence through which the filter has passed, `added` to the covariance of the factors at each
    /// step.
    pub(super) fn ahead_of(
        &self,
        pass: &Pass<'_>,
        (table, sequence, chains): (&Dataset, &super::Sequence, Option<&Chains>),
        steps: usize,
        added: &[Matrix],
    ) -> Forecast {
        let (k, end) = (self.n_components(), sequence.rows().len());
        let times: Vec<i64> = (end..end + steps).map(|t| sequence.time(t)).collect();
        let mut cells = Vec::with_capacity(steps * self.n_columns());
        let last: Vec<Option<(usize, f64)>> =
            (0..self.n_columns()).map(|j| last_seen(table, sequence, chains?, j)).collect();
        let (mut mean, mut root) = pass.next();
        let remembers = last.iter().any(Option::is_some);
        // Cov(x of the step, state at the end), which follows as the state does.
        let past = pass.covariance(end - 1);
        let mut shared = remembers.then(|| pass.space().moved(&past));
        for (step, time) in times.iter().enumerate() {
            let mut covariance = root.dot_t(&root);
            if let Some(added) = added.get(step) {
                for i in 0..k {
                    covariance.row_mut(i)[..k].iter_mut().zip(added.row(i)).for_each(|(c, more)| *c += more);
                }
            }
            let known = self.regressors.at(*time);
            for (j, last) in last.iter().enumerate() {
                let (w, beta) = (self.loadings.row(j), self.coefficients.row(j));
                let mut at = dot(w, &mean[..k]) + dot(beta, &known);
                let mut variance = form(w, w, |i| &covariance.row(i)[..k]).max(0.0);
                let mut noise = self.noise.variance(j);
                if let (Some((back, value)), Some(shared), Some(rho)) = (last, &shared, &self.memory) {
                    let c = share(rho[j], back + step + 1);
                    let (s, lag) = (end - 1 - back, back * k);
                    let before = &pass.filtered.row(end - 1)[lag..lag + k];
                    at += c * (value - dot(beta, &self.regressors.at(sequence.time(s))) - dot(w, before));
                    variance += c * c * form(w, w, |i| &past.row(lag + i)[lag..lag + k])
                        - 2.0 * c * form(w, w, |i| &shared.row(i)[lag..lag + k]);
                    noise *= 1.0 - c * c;
                }
                variance = variance.max(0.0);
                if let Some(u) = self.uncertainty() {
                    // As `w`, the posterior is of x_t − c x_s, which has this mean and this covariance.
                    let (mut x, mut level) = (mean[..k].to_vec(), 1.0);
                    let mut v = Matrix::from_fn(k, k, |i, l| covariance[(i, l)]);
                    if let (Some((back, _)), Some(shared), Some(rho)) = (last, &shared, &self.memory) {
                        let (c, lag) = (share(rho[j], back + step + 1), back * k);
                        level -= c;
                        for i in 0..k {
                            x[i] -= c * pass.filtered.row(end - 1)[lag + i];
                            for l in 0..k {
                                v[(i, l)] += c * c * past[(lag + i, lag + l)]
                                    - c * (shared[(i, lag + l)] + shared[(l, lag + i)]);
                            }
                        }
                    }
                    let psi = self.noise.variance(j);
                    variance += psi * u.added_spread(j, (&x, level), &v);
                    noise *= u.noise_factor(j);
                }
                cells.push(FilledCell::normal(step, j, at, (variance + noise).sqrt()));
            }
            (mean, root) = pass.space().ahead(&mean, &root);
            shared = shared.map(|shared| pass.space().moved(&shared));
        }
        Forecast { times, cells }
    }

    /// A cell as a sum of shares of what factors and known things leave of steps, whose factors are in the state of step `end`;
    /// `variance` is that of its noise, in variances of the column's.
    fn predicted(
        &self,
        (row, j): (usize, usize),
        sequence: &super::Sequence,
        (end, mean, covariance): (usize, &[f64], &Matrix),
        terms: &[Term],
        variance: f64,
    ) -> FilledCell {
        let k = self.n_components();
        let (w, beta) = (self.loadings.row(j), self.coefficients.row(j));
        let (mut at, mut of_factors) = (0.0, 0.0);
        for one in terms {
            let from = (end - one.step) * k;
            let expected =
                dot(w, &mean[from..from + k]) + dot(beta, &self.regressors.at(sequence.time(one.step)));
            at += one.share * (expected - one.value.unwrap_or(0.0));
            for other in terms {
                let to = (end - other.step) * k;
                of_factors += one.share * other.share * form(w, w, |i| &covariance.row(from + i)[to..to + k]);
            }
        }
        let psi = self.noise.variance(j);
        let mut squared = of_factors.max(0.0) + variance * psi;
        if let Some(u) = self.uncertainty() {
            let at = |one: &Term| (end - one.step) * k;
            let x: Vec<f64> =
                (0..k).map(|i| terms.iter().map(|one| one.share * mean[at(one) + i]).sum()).collect();
            let of = |i: usize, j: usize| {
                let pairs = terms.iter().flat_map(|one| terms.iter().map(move |other| (one, other)));
                pairs.map(|(a, b)| a.share * b.share * covariance[(at(a) + i, at(b) + j)]).sum()
            };
            let level = terms.iter().map(|one| one.share).sum();
            let v = Matrix::from_fn(k, k, of);
            squared += psi * (u.added_spread(j, (&x, level), &v) + variance * (u.noise_factor(j) - 1.0));
        }
        FilledCell::normal(row, j, at, squared.sqrt())
    }

    /// Refuses what does not belong together.
    pub(super) fn check_table(&self, table: &Dataset, timeline: &Timeline) -> Result<(), Error> {
        if table.n_columns() != self.n_columns() {
            return Err(Error::ColumnCount { expected: self.n_columns(), got: table.n_columns() });
        }
        timeline.check(table.n_rows())
    }

    /// The filter over every sequence.
    pub(super) fn passes(
        &self,
        table: &Dataset,
        timeline: &Timeline,
        mut visit: impl FnMut(&super::Sequence, &Pass<'_>, Option<&Chains>),
    ) -> Result<(), Error> {
        self.check_table(table, timeline)?;
        let chains = self.chains(table, timeline);
        let padded = chains.as_ref().map(|chains| self.padded(chains.reach() + 1));
        let space = StateSpace::new(padded.as_ref().unwrap_or(self))?;
        let seen = space.observed(table, chains.as_ref());
        for sequence in timeline.sequences() {
            visit(sequence, &space.filter(table, &seen, sequence), chains.as_ref());
        }
        Ok(())
    }

    /// The largest modulus of the roots of the transition: below 1 the factors return to their mean.
    pub fn spectral_radius(&self) -> f64 {
        spectral_radius(&companion(&self.transition))
    }

    /// The covariance that factors have in the long run, `Σ = A Σ Aᵀ + Q`, of the state; `None` unless
    /// [`spectral_radius`](Self::spectral_radius) is below 1.
    pub fn stationary_covariance(&self) -> Option<Matrix> {
        stationary(&self.transition, &self.innovation)
    }

    /// The same model with factors of unit variance in the long run and `Wᵀ Ψ⁻¹ W` diagonal, descending [M 1.10.5];
    /// where they have no variance in the long run, with innovations of unit variance.
    ///
    /// # Errors
    /// [`Error::Numerical`] if a decomposition fails.
    pub fn canonical(&self) -> Result<Self, Error> {
        let k = self.n_components();
        let long_run = self.stationary_covariance();
        let covariance = Matrix::from_fn(k, k, |i, j| long_run.as_ref().unwrap_or(&self.innovation)[(i, j)]);
        // Factors without variance stay as they are: no change of basis gives them any.
        let Some(unit) = Cholesky::new(&covariance) else { return Ok(self.clone()) };
        let mut weighted = self.loadings.dot(unit.lower());
        let w = weighted.clone();
        weighted
            .scale_rows(&self.noise.variances(self.n_columns()).iter().map(|v| 1.0 / v).collect::<Vec<_>>());
        let turn = eigen(&w.t_dot(&weighted))?.vectors;
        let mut loadings = w.dot(&turn);
        let signs = canonical_signs(&mut loadings);
        // x' = K x with K = Uᵀ L⁻¹, its rows given the signs of the loadings.
        let mut map = turn.t_dot(&unit.lower_inverse());
        let mut back = unit.lower().dot(&turn);
        map.scale_rows(&signs);
        back.scale_columns(&signs);
        self.turned(&map, &back, loadings)
    }

    /// The same model of factors `K x`, given `K`, `K⁻¹` and `W K⁻¹`.
    fn turned(&self, map: &Matrix, back: &Matrix, loadings: Matrix) -> Result<Self, Error> {
        let (k, p) = (self.n_components(), self.order());
        let block = |m: &Matrix| {
            Matrix::from_fn(k * p, k * p, |i, j| if i / k == j / k { m[(i % k, j % k)] } else { 0.0 })
        };
        let (maps, backs) = (block(map), block(back));
        let both = |m: &Matrix, map: &Matrix| {
            let mut out = map.dot(m).dot_t(map);
            out.symmetrize();
            out
        };
        let mean = maps.rows().map(|row| dot(row, &self.start.mean)).collect();
        let turned = Self::new(
            map.dot(&self.transition).dot(&backs),
            both(&self.innovation, map),
            loadings,
            self.coefficients.clone(),
            self.regressors.clone(),
            self.noise.clone(),
            Start { mean, covariance: both(&self.start.covariance, &maps) },
        )?;
        let uncertainty = self.uncertainty().map(|u| Arc::new(u.rotated(back)));
        Ok(Self { uncertainty, ..turned.like(self) })
    }

    /// The same model of columns multiplied by `scale` after `shift` was added to their level.
    pub(super) fn in_units(mut self, shift: &[f64], scale: &[f64]) -> Self {
        self.loadings.scale_rows(scale);
        self.coefficients.scale_rows(scale);
        self.raise_levels(shift);
        let d = self.n_columns();
        self.noise = match (&self.noise, scale.iter().all(|s| *s == scale[0])) {
            (Noise::Isotropic(v), true) => Noise::Isotropic(v * scale[0] * scale[0]),
            (noise, _) => Noise::Diagonal((0..d).map(|j| noise.variance(j) * scale[j] * scale[j]).collect()),
        };
        self
    }
}

/// A share of a cell: of what was observed of it, or else of what is expected of it.
struct Term {
    share: f64,
    step: usize,
    value: Option<f64>,
}

/// `xᵀ M y`, M by its rows.
fn form<'a>(x: &[f64], y: &[f64], row: impl Fn(usize) -> &'a [f64]) -> f64 {
    x.iter().enumerate().map(|(i, x)| x * dot(row(i), y)).sum()
}

/// The last observed cell of a column, if its noise is remembered at the end of the sequence: steps before the end, and its value.
fn last_seen(table: &Dataset, sequence: &super::Sequence, chains: &Chains, j: usize) -> Option<(usize, f64)> {
    let value = |row: &Option<usize>| row.map(|row| table.row(row)[j]).filter(|v| !v.is_nan());
    let mut ends = sequence.rows().iter().rev().map(value).take(chains.reach() + 1);
    ends.position(|v| v.is_some()).and_then(|back| {
        let row = sequence.rows()[sequence.rows().len() - 1 - back];
        Some((back, value(&row)?))
    })
}

/// Factors of the steps of a sequence.
#[derive(Debug, Clone, PartialEq)]
pub struct Factors {
    /// Their means, a row for each step.
    pub means: Matrix,
    /// Their covariance at each step.
    pub covariances: Vec<Matrix>,
}

impl Factors {
    fn of(k: usize, means: &Matrix, covariance: impl Fn(usize) -> Matrix) -> Self {
        let now = |m: Matrix| Matrix::from_fn(k, k, |i, j| m[(i, j)]);
        Self {
            means: means.first_columns(k),
            covariances: (0..means.n_rows()).map(|t| now(covariance(t))).collect(),
        }
    }
}

impl Fill for DynamicFactor {
    /// Of a table [in time](Dataset::in_time).
    fn cells(&self, table: &Dataset) -> Result<Vec<FilledCell>, Error> {
        self.fill(table, &table.times())
    }
}

/// The transition of the state `(x_t, …, x_{t−p+1})`.
pub(super) fn companion(transition: &Matrix) -> Matrix {
    let (k, states) = (transition.n_rows(), transition.n_columns());
    Matrix::from_fn(
        states,
        states,
        |i, j| {
            if i < k { transition[(i, j)] } else { f64::from(u8::from(j + k == i)) }
        },
    )
}

/// The innovation covariance of that state.
pub(super) fn bordered(innovation: &Matrix, states: usize) -> Matrix {
    let k = innovation.n_rows();
    Matrix::from_fn(states, states, |i, j| if i < k && j < k { innovation[(i, j)] } else { 0.0 })
}

/// By Gelfand's formula, `‖A^m‖^{1/m}` for m = 2⁴⁰, so that no eigenvalue of a matrix without symmetry is needed.
pub(super) fn spectral_radius(a: &Matrix) -> f64 {
    let norm = |m: &Matrix| m.as_slice().iter().map(|v| v * v).sum::<f64>().sqrt();
    let (mut power, mut log, mut share) = (a.clone(), 0.0, 1.0);
    for _ in 0..40 {
        let size = norm(&power);
        if size == 0.0 || !size.is_finite() {
            return size;
        }
        log += size.ln() * share;
        power.as_mut_slice().iter_mut().for_each(|v| *v /= size);
        power = power.dot(&power);
        share *= 0.5;
    }
    log.exp()
}

/// `Σ = A Σ Aᵀ + Q` of the state, unless nothing is.
pub(super) fn stationary(transition: &Matrix, innovation: &Matrix) -> Option<Matrix> {
    let a = companion(transition);
    let states = a.n_rows();
    long_run(a, bordered(innovation, states))
}

/// `Q + A Q Aᵀ + A² Q (A²)ᵀ + …` by doubling, which takes as many products as the logarithm of the memory of A; `None` where the
/// powers of A do not vanish.
pub(super) fn long_run(mut a: Matrix, q: Matrix) -> Option<Matrix> {
    let size = |m: &Matrix| m.as_slice().iter().fold(0.0_f64, |size, v| size.max(v.abs()));
    let mut sum = q;
    for _ in 0..60 {
        let step = a.dot(&sum).dot_t(&a);
        let ends = size(&a) < 1.0 && size(&step) <= 1e-17 * size(&sum);
        crate::parallel::add(sum.as_mut_slice(), step.as_slice());
        if ends {
            sum.symmetrize();
            return sum.as_slice().iter().all(|v| v.is_finite()).then_some(sum);
        }
        a = a.dot(&a);
        if !size(&a).is_finite() {
            break;
        }
    }
    None
}
