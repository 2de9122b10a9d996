//! Structured variational Bayes [M 2.3]: loadings, mean and noise together.

use super::bound::{Parts, bound, rotate, translation};
use super::state::{Gamma, Prior, State, Statistics};
use super::{BROAD, Climb, MAX_ITERATIONS, Scheme, Settings, TOLERANCE, Table};
use crate::infer::options::options;
use crate::infer::pass::Rows;
use crate::infer::report::{Fit, Observer};
use crate::infer::{Estimator, em::parameters::Frame};
use crate::linalg::Cholesky;
use crate::parallel;
use crate::spec::NoiseFamily;
use crate::{Dataset, Error, LinearGaussian, Matrix, Spec};

options! {
    /// Bayesian PCA by a posterior that keeps loadings, mean and noise together:
    /// `q(X) q(μ, W, τ) q(α)` (Agarwal & Bishop 2003), with any gaps.
    ///
    /// ```text
    /// w_i | τ ~ N(0, I/(αᵢ τ))    αᵢ ~ Gamma(a_α, b_α)    μ | τ ~ N(m, I/(β τ))    τ ~ Gamma(a_τ, b_τ)
    /// ```
    ///
    /// With `v_j = (w_j, μ_j)` and `z = (x, 1)`, given q(X) and ⟨α⟩ the rest is Bayesian linear regression of
    /// each column on z: `v_j | τ ~ N(Λ_j⁻¹ b_j, Λ_j⁻¹/τ)`, `Λ_j = diag(⟨α⟩, β) + Σ_{n: j∈O_n} ⟨z zᵀ⟩`.
    ///
    /// Components that the table does not support are pruned: [`Spec::n_components`] is the most there can
    /// be. The bound is never below that of [`MeanField`](crate::infer::MeanField) under the same prior.
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, infer::Structured, Density, Estimator, Spec};
    /// let (whole, _) = simulate::ppca(Shape { rows: 60, columns: 8, n_components: 2 }, /* seed */ 1);
    /// let table = simulate::hide(&whole, 0.2, /* seed */ 2);
    /// let fit = Structured::default().fit(&table, &Spec::ppca(7))?;
    /// assert_eq!(fit.model.n_components(), 2);
    /// // Intervals know that the parameters were estimated: they are wider than the plug-in's.
    /// let (sd, plug_in) = (fit.model.impute(&table)?.cells()[0].sd, fit.model.plug_in().impute(&table)?.cells()[0].sd);
    /// assert!(sd > plug_in);
    /// # Ok::<(), covary::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct Structured {
        /// Most sweeps over the factors.
        pub max_iterations: usize = MAX_ITERATIONS,
        /// Stop when two sweeps in a row each raise the bound by less than this many nats per observed cell.
        /// (A share of the bound, as the spec has it, would depend on the units of the table.)
        pub tolerance: f64 = TOLERANCE,
        /// Move along the directions that leave the model alone after each sweep [M 2.3.3].
        pub expansion: bool = true,
        /// Drop components that hold no signal while iterating.
        pub pruning: bool = true,
        /// `a_α`.
        pub relevance_shape: f64 = BROAD,
        /// `b_α`, a pure number: loadings are measured in units of the noise.
        pub relevance_rate: f64 = BROAD,
        /// `a_τ`.
        pub noise_shape: f64 = BROAD,
        /// `b_τ`, in units of the observed variance.
        pub noise_rate: f64 = BROAD,
        /// `β`, a count of rows.
        pub mean_precision: f64 = BROAD,
        /// Take `b_τ` in the table's own units and the mean about 0, instead of the mean observed
        /// variance and the column means.
        pub raw: bool = false,
        /// `m₀`, one number for each column, in the units of the table: the mean is around `W s₀ + m₀`. `None` is the column
        /// means, or 0 if `raw`.
        pub prior_mean: Option<Vec<f64>> = None,
        /// `s₀`, one number for each component that is offered; `None` is 0. No rotation is moved along then.
        pub prior_offset: Option<Vec<f64>> = None,
    }
}

impl Estimator for Structured {
    type Model = LinearGaussian;

    fn fit_observed(&self, data: &Dataset, spec: &Spec, observer: &mut dyn Observer) -> Result<Fit, Error> {
        self.fit_rows(data, spec, observer)
    }

    fn fit_rows(&self, rows: &dyn Rows, spec: &Spec, observer: &mut dyn Observer) -> Result<Fit, Error> {
        let facts = &rows.facts()?;
        Climb::new(self, Table { rows, facts }, spec)?.fit(self, observer)
    }
}

impl Scheme for Structured {
    const NAME: &'static str = "structured";
    const COUPLED: bool = true;
    const VIEWS: bool = false;

    fn settings(&self) -> Settings {
        Settings {
            max_iterations: self.max_iterations,
            tolerance: self.tolerance,
            pruning: self.pruning,
            raw: self.raw,
            relevance: Gamma { shape: self.relevance_shape, rate: self.relevance_rate },
            noise: Gamma { shape: self.noise_shape, rate: self.noise_rate },
            mean_precision: self.mean_precision,
            in_noise_units: true,
            prior_mean: self.prior_mean.clone(),
            prior_offset: self.prior_offset.clone(),
        }
    }

    fn supports(family: NoiseFamily) -> bool {
        family == NoiseFamily::Isotropic
    }

    /// X, the translation, (μ, W, τ), α, the rotation [M 2.3.4].
    fn sweep(&self, table: Table<'_>, frame: &Frame, prior: &Prior, state: &mut State) -> Result<f64, Error> {
        let mut statistics = Statistics::of(table, frame, state)?;
        if self.expansion
            && let Some(c) = translation(prior, &statistics, state)
        {
            statistics.translate(&c);
        }
        let ln_covariance = update(prior, &statistics, state)?;
        state.update_relevance(prior);
        let mut parts = Parts::new(&statistics, state, ln_covariance);
        // The mean's prior is around W s₀, which a rotation would move.
        if self.expansion && prior.offset.iter().all(|s| *s == 0.0) {
            rotate(prior, state, &mut parts)?;
        }
        Ok(bound(prior, &statistics, state, &parts))
    }
}

/// q(μ, W, τ) (3.1–3.4); returns `ln |Λ_j⁻¹|`.
fn update(prior: &Prior, statistics: &Statistics, state: &mut State) -> Result<Vec<f64>, Error> {
    let (d, q) = (state.v.n_rows(), state.n_components());
    let alpha = state.alpha();
    let (relevance, beta) = (alpha.row(0), prior.mean_precision);
    // D: α on the loadings, β on μ − wᵀs₀ − m₀.
    let direction = |i: usize| if i < q { -prior.offset[i] } else { 1.0 };
    let precision = Matrix::from_fn(q + 1, q + 1, |r, c| {
        beta * direction(r) * direction(c) + if r == c && r < q { relevance[r] } else { 0.0 }
    });
    let own = statistics.normal.len();
    let of_column = |j| {
        let a = statistics.normal(j);
        let lambda = Matrix::from_fn(q + 1, q + 1, |r, c| precision[(r, c)] + a[(r, c)]);
        let factor = super::factorized(&lambda)?;
        let inverse = factor.inverse();
        Ok((factor, inverse))
    };
    let known: Vec<(Cholesky, Matrix)> = parallel::try_map(own, of_column)?;
    for j in 0..d {
        let row = state.v.row_mut(j);
        // Relative to the mean of the pass, around which y was taken.
        let (at, center) = (row[q], prior.mean[j] - row[q]);
        row.copy_from_slice(statistics.cross.row(j));
        for i in 0..=q {
            row[i] += precision[(i, q)] * center;
        }
        known[j.min(own - 1)].0.solve(row);
        row[q] += at;
    }
    let ln_covariance = known.iter().map(|k| -k.0.ln_det()).collect();
    state.covariance = known.into_iter().map(|k| k.1).collect();

    let Gamma { mut shape, mut rate } = prior.noise;
    for j in 0..d {
        shape += 0.5 * statistics.counts[j];
        let error = statistics.error(j, state.v.row(j));
        rate += 0.5 * (error + state.prior_quadratics(j, prior, &alpha).0);
    }
    state.noise = vec![Gamma { shape, rate }];
    Ok(ln_covariance)
}
