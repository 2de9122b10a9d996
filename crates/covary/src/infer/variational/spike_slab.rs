//! Bayesian PCA that selects columns: rows of W are 0 or not [M 2.9.3].

use super::Table;
use super::start;
use super::state::{Gamma, Prior, State, Statistics, trace_product};
use crate::infer::em::parameters::Frame;
use crate::infer::em::start::unseen_pairs;
use crate::infer::options::options;
use crate::infer::report::{Fit, FitReport, Objective, ObjectiveKind, Observer, Step, Termination, Warning};
use crate::infer::{Estimator, Method};
use crate::linalg::{Eigen, dot, eigen, inverse_and_ln_det};
use crate::model::Uncertainty;
use crate::parallel;
use crate::spec::NoiseFamily;
use crate::{Dataset, Error, LinearGaussian, Matrix, Spec};
use statrs::function::beta::ln_beta;
use statrs::function::gamma::digamma;

options! {
    /// Row-sparse Bayesian PCA by variational inference: whether a column has a part in any component is inferred with the
    /// loadings,
    ///
    /// ```text
    /// t = W x + μ + ε      wⱼ = γⱼ N(0, (λ τ)⁻¹ I)      γⱼ ~ Bernoulli(κ)      κ ~ Beta(a₁, a₂)      τ ~ Gamma(a₀, b₀)
    /// ```
    ///
    /// in units of each column's scale. μ is at the maximum of the bound, which is the mean of a complete column. Gaps are integrated
    /// out exactly; parameter expansion takes the place of many sweeps. The loadings of the model are their posterior means, that of
    /// a column that has no part being small, not 0: [`inclusion`](LinearGaussian::inclusion) has the probability of each.
    ///
    /// ```
    /// use covary::{data::simulate, infer::SpikeSlab, Dataset, Density, Estimator, LinearGaussian, Matrix, Noise, Spec};
    /// use rand::SeedableRng;
    /// let w = Matrix::from_rows(&[[2.0], [1.5], [1.0], [0.0], [0.0], [0.0]]);
    /// let truth = LinearGaussian::new(w, vec![0.0; 6], Noise::Isotropic(1.0))?;
    /// let whole = Dataset::new(truth.sample(200, &mut rand_chacha::ChaCha8Rng::seed_from_u64(1)))?;
    /// let model = SpikeSlab::default().fit(&simulate::hide(&whole, 0.1, /* seed */ 2), &Spec::ppca(1))?.model;
    /// let selected: Vec<bool> = model.inclusion().unwrap().iter().map(|p| *p > 0.5).collect();
    /// assert_eq!(selected, [true, true, true, false, false, false]);
    /// # Ok::<(), covary::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct SpikeSlab {
        /// λ: precision of loadings relative to that of the noise.
        pub slab: f64 = 1.0,
        /// a₁.
        pub inclusion_shape: f64 = 1.0,
        /// a₂; if `None`, the number of columns: few of them are expected to have a part.
        pub exclusion_shape: Option<f64> = None,
        /// a₀.
        pub noise_shape: f64 = super::BROAD,
        /// b₀, in units of the observed variance.
        pub noise_rate: f64 = super::BROAD,
        /// Whether factors are rescaled and rotated together with the loadings after each sweep.
        pub parameter_expansion: bool = true,
        /// Most sweeps.
        pub max_iterations: usize = 2000,
        /// Stop when a sweep raises the bound by less than this many nats.
        pub tolerance: f64 = 1e-8,
    }
}

const NAME: &str = "spike-slab";
/// Probability of each column at the start: nearly all are in.
const IN: f64 = 0.999;

impl Estimator for SpikeSlab {
    type Model = LinearGaussian;

    fn fit_observed(&self, data: &Dataset, spec: &Spec, observer: &mut dyn Observer) -> Result<Fit, Error> {
        let constant = self.check(data, spec)?;
        if spec.n_components == 0 {
            return Method::recommended(data, spec).fit_observed(data, spec, observer);
        }
        let frame = Frame::new(data, spec);
        let mut posterior = self.spectral(data, spec, &frame)?;
        let (trace, termination) = self.climb(data, &frame, &mut posterior, observer)?;
        let mut warnings = Vec::new();
        if termination == Termination::IterationLimit {
            let remaining = trace.windows(2).last().map_or(f64::INFINITY, |pair| pair[1] - pair[0]);
            warnings.push(Warning::StillRising { iterations: trace.len(), remaining });
        }
        if !constant.is_empty() {
            warnings.push(Warning::ConstantColumns { columns: constant });
        }
        warnings.extend(unseen_pairs(data));
        let state = posterior.state();
        let uncertainty = Uncertainty { inclusion: posterior.z, ..state.uncertainty() };
        let model = frame.model(&state.parameters(&frame), spec)?.with_uncertainty(uncertainty)?;
        let value = trace.last().copied().unwrap_or(f64::NEG_INFINITY);
        let objective = Objective { kind: ObjectiveKind::LowerBound, value };
        let (relevance, monitored) = (Vec::new(), Vec::new());
        let report = FitReport { objective, trace, termination, warnings, relevance, monitored };
        Ok(Fit { model: model.canonical(), draws: None, report })
    }
}

impl SpikeSlab {
    /// Refuses what it cannot answer; returns the names of constant columns.
    fn check(&self, data: &Dataset, spec: &Spec) -> Result<Vec<String>, Error> {
        // Its own priors are proper, so that the posterior is, however many the loadings that fit equally well.
        Spec { allow_unidentified: true, ..spec.clone() }.check(data)?;
        let refused = |what, instead| Err(Error::Unsupported { method: NAME, what, instead });
        if spec.noise_floor.is_some() {
            return refused("a noise floor", "`noise_shape` and `noise_rate`, or `em`");
        }
        if !spec.prior.is_flat() {
            return refused("a prior in the request (it has its own)", "`em`");
        }
        if spec.noise != NoiseFamily::Isotropic {
            return refused("diagonal noise", "`sparse-em`");
        }
        let above = [
            ("slab", self.slab),
            ("inclusion_shape", self.inclusion_shape),
            ("exclusion_shape", self.exclusion_shape.unwrap_or(1.0)),
            ("noise_shape", self.noise_shape),
            ("noise_rate", self.noise_rate),
        ];
        if let Some((name, value)) = above.into_iter().find(|(_, v)| !(v.is_finite() && *v > 0.0)) {
            return Err(Error::OutOfRange { name, value, bound: "finite and above 0" });
        }
        if !(self.tolerance >= 0.0 && self.tolerance.is_finite()) {
            let value = self.tolerance;
            return Err(Error::OutOfRange { name: "tolerance", value, bound: "finite and not negative" });
        }
        spec.check_variances(data.observed_variances(), data.column_names(), Some(data))
    }

    fn noise(&self) -> Gamma {
        Gamma { shape: self.noise_shape, rate: self.noise_rate }
    }

    fn beta(&self, columns: usize) -> (f64, f64) {
        (self.inclusion_shape, self.exclusion_shape.unwrap_or(columns as f64))
    }

    /// The principal components, nearly all columns in, and the noise that these components leave.
    fn spectral(&self, data: &Dataset, spec: &Spec, frame: &Frame) -> Result<Posterior<'_>, Error> {
        let (d, q) = (data.n_columns(), spec.n_components);
        let vague = Gamma { shape: 1.0, rate: 1.0 };
        let prior = Prior {
            relevance: vague,
            noise: self.noise(),
            mean_precision: 1.0,
            mean: vec![0.0; d],
            offset: vec![0.0; q],
            in_noise_units: true,
        };
        let m =
            start(Table { rows: data, facts: &data.facts() }, spec, frame, &prior, false)?.v.first_columns(q);
        let total: f64 = data.observed_variances().iter().zip(&frame.inverse).map(|(v, s)| v * s * s).sum();
        let left = total - m.as_slice().iter().map(|v| v * v).sum::<f64>();
        let noise = (left / (d - q) as f64).max(1e-6 * total / d as f64);
        Ok(Posterior::new(self, m, if noise > 0.0 { 1.0 / noise } else { 1.0 }))
    }

    /// Sweeps until the bound stands still; the bound after each.
    fn climb(
        &self,
        data: &Dataset,
        frame: &Frame,
        posterior: &mut Posterior<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(Vec<f64>, Termination), Error> {
        let facts = &data.facts();
        let counts = facts.n_observed_by_column();
        let units: f64 = counts.iter().zip(&frame.scale).map(|(n, s)| *n as f64 * s.ln()).sum();
        let mut trace: Vec<f64> = Vec::new();
        for iteration in 1..=self.max_iterations {
            let objective = posterior.sweep(Table { rows: data, facts }, frame)? - units;
            let last = trace.last().copied();
            trace.push(objective);
            if self.tolerance > 0.0 && last.is_some_and(|last| objective - last < self.tolerance) {
                return Ok((trace, Termination::Converged));
            }
            if observer.step(&Step { iteration, objective }).is_break() {
                return Ok((trace, Termination::Interrupted));
            }
        }
        Ok((trace, Termination::IterationLimit))
    }
}

/// q(W, γ) q(κ) q(τ), and μ, in the units of the frame.
struct Posterior<'a> {
    prior: &'a SpikeSlab,
    /// Loadings of columns that are in: means, and covariances: one for all columns of a complete table, or one for each.
    m: Matrix,
    s: Vec<Matrix>,
    z: Vec<f64>,
    /// Relative to the mean of the frame.
    mean: Vec<f64>,
    /// ⟨τ⟩, ⟨ln τ⟩ and its distribution.
    tau: f64,
    ln_tau: f64,
    noise: Gamma,
    /// ⟨ln κ⟩ and ⟨ln (1 − κ)⟩.
    ln_kappa: (f64, f64),
}

impl<'a> Posterior<'a> {
    fn new(prior: &'a SpikeSlab, m: Matrix, tau: f64) -> Self {
        let (d, q, half) = (m.n_rows(), m.n_columns(), 0.5_f64.ln());
        Self {
            prior,
            m,
            s: vec![Matrix::zeros(q, q)],
            z: vec![IN; d],
            mean: vec![0.0; d],
            tau,
            ln_tau: tau.ln(),
            noise: Gamma { shape: 1.0, rate: 1.0 / tau },
            ln_kappa: (half, half),
        }
    }

    fn covariance(&self, j: usize) -> &Matrix {
        &self.s[if self.s.len() == 1 { 0 } else { j }]
    }

    fn n_in(&self) -> f64 {
        self.z.iter().sum()
    }

    /// What the pass over the rows, and a model, need to know: means and covariances of the loadings, whether columns are in
    /// being averaged over.
    ///
    /// ```text
    /// ⟨w⟩ = z m      cov(w) = z S + z (1 − z) m mᵀ
    /// ```
    fn state(&self) -> State {
        let (d, q) = (self.m.n_rows(), self.m.n_columns());
        let of = |j: usize| {
            let (z, m, s) = (self.z[j], self.m.row(j), self.covariance(j));
            Matrix::from_fn(q + 1, q + 1, |a, b| {
                if a < q && b < q { z * s[(a, b)] + z * (1.0 - z) * (m[a] * m[b]) } else { 0.0 }
            })
        };
        State {
            v: Matrix::from_fn(
                d,
                q + 1,
                |j, i| if i < q { self.z[j] * self.m[(j, i)] } else { self.mean[j] },
            ),
            covariance: (0..d).map(of).collect(),
            noise: vec![self.noise],
            relevance: vec![Vec::new()],
            view: vec![0; d],
            coupled: false,
        }
    }

    /// `⟨Wᵀ W⟩`
    fn second(&self) -> Matrix {
        let q = self.m.n_columns();
        let mut sum = Matrix::zeros(q, q);
        for (j, z) in self.z.iter().enumerate() {
            let (m, s) = (self.m.row(j), self.covariance(j));
            for a in 0..q {
                for b in 0..q {
                    sum[(a, b)] += z * (m[a] * m[b] + s[(a, b)]);
                }
            }
        }
        sum
    }

    /// Scores, μ, loadings with inclusions, κ, τ, and the expansion; the bound after these.
    fn sweep(&mut self, table: Table<'_>, frame: &Frame) -> Result<f64, Error> {
        let statistics = Statistics::of(table, frame, &self.state())?;
        let mut ln_det_s = self.update_loadings(&statistics);
        let beta = self.update_inclusion();
        let state = self.state();
        let error: f64 = (0..self.z.len())
            .map(|j| {
                let spread = trace_product(&state.covariance[j], statistics.normal(j));
                statistics.error(j, state.v.row(j)) + spread
            })
            .sum();
        let cells = table.facts.n_observed_by_column().iter().sum::<usize>() as f64;
        let q = self.m.n_columns() as f64;
        let Gamma { shape, rate } = self.prior.noise();
        self.noise = Gamma {
            shape: shape + 0.5 * (cells + q * self.n_in()),
            rate: rate + 0.5 * (error + self.prior.slab * self.second().trace()),
        };
        (self.tau, self.ln_tau) = (self.noise.mean(), self.noise.mean_ln());

        let width = self.m.n_columns();
        let mut p = Matrix::from_fn(width, width, |a, b| statistics.latent[(a, b)]);
        // Σ ln |Σ_x|
        let mut ln_det_x = -statistics.ln_det;
        if self.prior.parameter_expansion
            && let Some((turned, ln_det)) = self.expand(&p, statistics.n)?
        {
            p = turned;
            ln_det_x += 2.0 * statistics.n * ln_det;
            for l in &mut ln_det_s {
                *l -= 2.0 * ln_det;
            }
        }
        let likelihood =
            0.5 * cells * (self.ln_tau - (2.0 * std::f64::consts::PI).ln()) - 0.5 * self.tau * error;
        let scores = 0.5 * (ln_det_x + statistics.n * q - p.trace());
        Ok(likelihood + scores + self.bound_of_parameters(&ln_det_s, beta))
    }

    /// μ, then q(W, γ); returns `ln |S|`.
    fn update_loadings(&mut self, statistics: &Statistics) -> Vec<f64> {
        let (d, q, slab, tau) = (self.m.n_rows(), self.m.n_columns(), self.prior.slab, self.tau);
        let own = if statistics.is_shared() { 1 } else { d };
        let known: Vec<(Matrix, f64)> = parallel::map(own, |j| {
            let a = statistics.normal(j);
            let precision = Matrix::from_fn(q, q, |r, c| tau * (a[(r, c)] + if r == c { slab } else { 0.0 }));
            let (mut s, ln_det) = inverse_and_ln_det(&precision);
            s.symmetrize();
            (s, -ln_det)
        });
        let odds = self.ln_kappa.0 - self.ln_kappa.1 + 0.5 * q as f64 * (slab.ln() + self.ln_tau);
        for j in 0..d {
            let (s, ln_det) = &known[if own == 1 { 0 } else { j }];
            let (a, b) = (statistics.normal(j), statistics.cross.row(j));
            let sums: Vec<f64> = (0..q).map(|i| a[(i, q)]).collect();
            let shift = (b[q] - self.z[j] * dot(self.m.row(j), &sums)) / statistics.counts[j].max(1.0);
            self.mean[j] += shift;
            // S⁻¹ m = τ Σ x (t − μ)
            let cross: Vec<f64> = (0..q).map(|i| tau * (b[i] - sums[i] * shift)).collect();
            let m: Vec<f64> = s.rows().map(|row| dot(row, &cross)).collect();
            self.z[j] = 1.0 / (1.0 + (-(odds + 0.5 * (ln_det + dot(&m, &cross)))).exp());
            self.m.row_mut(j).copy_from_slice(&m);
        }
        let ln_det_s = known.iter().map(|k| k.1).collect();
        self.s = known.into_iter().map(|k| k.0).collect();
        ln_det_s
    }

    /// q(κ).
    fn update_inclusion(&mut self) -> (f64, f64) {
        let (d, n_in) = (self.z.len(), self.n_in());
        let (a1, a2) = self.prior.beta(d);
        let beta = (a1 + n_in, a2 + d as f64 - n_in);
        let all = digamma(beta.0 + beta.1);
        self.ln_kappa = (digamma(beta.0) - all, digamma(beta.1) - all);
        beta
    }

    /// `x → R x`, `w → R⁻ᵀ w` by the R that raises the bound most: the slab is isotropic, so that nothing else changes.
    /// `Σ ⟨x xᵀ⟩` after it, and `ln |R|`; `None` where R would be singular.
    fn expand(&mut self, p: &Matrix, n: f64) -> Result<Option<(Matrix, f64)>, Error> {
        let (q, second) = (p.n_rows(), self.second());
        let Eigen { values: of_p, vectors: axes } = eigen(p)?;
        if of_p.iter().any(|v| *v <= 0.0) {
            return Ok(None);
        }
        let power = |power: f64| {
            let mut scaled = axes.clone();
            scaled.scale_columns(&of_p.iter().map(|v| v.powf(power)).collect::<Vec<_>>());
            scaled.dot_t(&axes)
        };
        let (root, inverse_root) = (power(0.5), power(-0.5));
        let k = Matrix::from_fn(q, q, |i, j| self.prior.slab * self.tau * second[(i, j)]);
        let mut middle = root.dot(&k).dot(&root);
        middle.symmetrize();
        let Eigen { values, vectors } = eigen(&middle)?;
        let free = n - self.n_in();
        let squared = |v: &f64| {
            let (v, root) = (v.max(0.0), (free * free + 4.0 * v.max(0.0)).sqrt());
            // The same number, without cancellation.
            if free >= 0.0 { 0.5 * (free + root) } else { 2.0 * v / (root - free) }
        };
        let lengths: Vec<f64> = values.iter().map(|v| squared(v).sqrt()).collect();
        if lengths.iter().any(|l| !(l.is_finite() && *l > 1e-100)) {
            return Ok(None);
        }
        let mut turn = vectors.transpose().dot(&inverse_root);
        turn.scale_rows(&lengths);
        let mut back = root.dot(&vectors);
        back.scale_columns(&lengths.iter().map(|l| 1.0 / l).collect::<Vec<_>>());
        let ln_det =
            lengths.iter().map(|l| l.ln()).sum::<f64>() - 0.5 * of_p.iter().map(|v| v.ln()).sum::<f64>();
        let mut turned = turn.dot(p).dot_t(&turn);
        turned.symmetrize();
        self.m = self.m.dot(&back);
        for s in &mut self.s {
            *s = back.t_dot(s).dot(&back);
            s.symmetrize();
        }
        Ok(Some((turned, ln_det)))
    }

    /// The terms of the bound that belong to W, γ, κ and τ.
    fn bound_of_parameters(&self, ln_det_s: &[f64], beta: (f64, f64)) -> f64 {
        let (slab, q) = (self.prior.slab, self.m.n_columns() as f64);
        let own = |j: usize| ln_det_s[if ln_det_s.len() == 1 { 0 } else { j }];
        let of_slab = q * (slab.ln() + self.ln_tau + 1.0);
        let loadings = self.z.iter().enumerate().map(|(j, z)| 0.5 * z * (of_slab + own(j))).sum::<f64>()
            - 0.5 * slab * self.tau * self.second().trace();
        let entropy = |p: f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
        let (of_in, of_out) = self.ln_kappa;
        let included: f64 =
            self.z.iter().map(|&z| z * of_in + (1.0 - z) * of_out + entropy(z) + entropy(1.0 - z)).sum();
        let (a1, a2) = self.prior.beta(self.z.len());
        let kappa =
            (a1 - beta.0) * of_in + (a2 - beta.1) * of_out - ln_beta(a1, a2) + ln_beta(beta.0, beta.1);
        loadings + included + kappa + self.noise.gain(&self.prior.noise())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::golden::{flat, golden, matrix};

    #[test]
    fn golden_spike_and_slab() {
        let case = golden("part2/spike_slab");
        let (input, start) = (&case["input"], matrix(&case["input"]["start"]["m"]));
        let data = Dataset::new(matrix(&input["C"])).unwrap();
        // As given, columns are centered and in one unit.
        let d = data.n_columns();
        let frame = Frame::with_scale(data.observed_means().to_vec(), vec![1.0; d], true);
        let number = |name: &str| input[name].as_f64().unwrap();
        for (what, parameter_expansion) in [("plain", false), ("px", true)] {
            let method = SpikeSlab {
                slab: number("lambda1"),
                inclusion_shape: number("beta_a1"),
                exclusion_shape: Some(number("beta_a2")),
                noise_shape: number("a0"),
                noise_rate: number("b0"),
                parameter_expansion,
                max_iterations: 20,
                tolerance: 0.0,
            };
            let run = |method: &SpikeSlab| {
                let mut at = Posterior::new(method, start.clone(), 1.0);
                let (trace, _) = method.climb(&data, &frame, &mut at, &mut ()).unwrap();
                (trace, at.z.clone(), at.tau)
            };
            let ((trace, z, tau), want) = (run(&method), &case["expected"][what]);
            for (got, want) in trace.iter().zip(flat(&want["elbo_trace"])) {
                assert!((got / want - 1.0).abs() < 1e-9, "{what}: {got} {want}");
            }
            assert_eq!(trace.len(), 20);
            let close = |got: &[f64], want: &[f64], by: f64| {
                got.iter().zip(want).for_each(|(a, b)| assert!((a - b).abs() < by, "{what}: {a} {b}"));
            };
            close(&z, &flat(&want["z"]), 1e-7);
            close(&[tau], &[want["E_tau"].as_f64().unwrap()], 1e-7);
            let (trace, z, _) = run(&SpikeSlab { max_iterations: 5000, tolerance: 1e-13, ..method });
            let want = &want["converged"];
            assert!((trace.last().unwrap() / want["elbo"].as_f64().unwrap() - 1.0).abs() < 1e-6);
            close(&z, &flat(&want["z"]), 1e-6);
            assert!(trace.windows(2).all(|t| t[1] >= t[0] - 1e-9), "the bound never falls");
        }
    }
}
