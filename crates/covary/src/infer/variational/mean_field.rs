//! Mean-field variational Bayes [M 2.2]: all factors independent.

use super::bound::{Parts, bound, rotate, translate_mean_field};
use super::state::{Gamma, Prior, State, Statistics};
use super::{BROAD, Climb, MAX_ITERATIONS, Scheme, Settings, TOLERANCE, Table};
use crate::infer::options::options;
use crate::infer::pass::Rows;
use crate::infer::report::{Fit, Observer};
use crate::infer::{Estimator, em::parameters::Frame};
use crate::linalg::{Cholesky, dot};
use crate::parallel;
use crate::spec::NoiseFamily;
use crate::{Dataset, Error, LinearGaussian, Matrix, Spec};

options! {
    /// Bayesian PCA, factor analysis and group factor analysis by a posterior whose factors are independent:
    /// `q(X) q(W) q(μ) q(α) q(τ)`.
    ///
    /// ```text
    /// w_i ~ N(0, I/αᵢ)     αᵢ ~ Gamma(a_α, b_α)     μ ~ N(m, I/β)     τ ~ Gamma(a_τ, b_τ)
    /// ```
    ///
    /// With [`Spec::views`] every view has its own αᵢ and its own τ (or one for each of its columns), so that a
    /// component may live in some views and not in others: [`Activity`](crate::views::Activity) says which. Components
    /// then come by decreasing strength, not rotated to the canonical form, which would mix them.
    ///
    /// Components that the table does not support are pruned: [`Spec::n_components`] is the most there can
    /// be. Gaps are integrated out exactly; the price of independence is intervals a little too narrow and
    /// components a little too few in small tables, where [`Structured`](crate::infer::Structured) does better.
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, infer::MeanField, Estimator, Spec};
    /// let (table, _) = simulate::ppca(Shape { rows: 200, columns: 8, n_components: 2 }, /* seed */ 1);
    /// let fit = MeanField::default().fit(&simulate::hide(&table, 0.1, 2), &Spec::ppca(7))?;
    /// assert_eq!(fit.model.n_components(), 2);
    /// # Ok::<(), covary::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    #[allow(clippy::struct_excessive_bools, reason = "independent switches, each with its name")]
    pub struct MeanField {
        /// Most sweeps over the factors.
        pub max_iterations: usize = MAX_ITERATIONS,
        /// Stop when two sweeps in a row each raise the bound by less than this many nats per observed cell.
        /// (A share of the bound, as the spec has it, would depend on the units of the table.)
        pub tolerance: f64 = TOLERANCE,
        /// Move along the directions that leave the model alone after each sweep [M 2.2.4]: tens of
        /// sweeps instead of thousands, to the same bound.
        pub expansion: bool = true,
        /// Drop components that hold no signal while iterating.
        pub pruning: bool = true,
        /// `a_α`.
        pub relevance_shape: f64 = BROAD,
        /// `b_α`, in units of the observed variance.
        pub relevance_rate: f64 = BROAD,
        /// `a_τ`.
        pub noise_shape: f64 = BROAD,
        /// `b_τ`, in units of the observed variance.
        pub noise_rate: f64 = BROAD,
        /// `β`, in units of one over the observed variance.
        pub mean_precision: f64 = BROAD,
        /// Put the priors of loadings and mean in units of the noise, as
        /// [`Structured`](crate::infer::Structured) has them.
        pub noise_units: bool = false,
        /// Take priors in the table's own units and about 0, instead of about the column means and in
        /// units of the mean observed variance.
        pub raw: bool = false,
    }
}

impl Estimator for MeanField {
    type Model = LinearGaussian;

    fn fit_observed(&self, data: &Dataset, spec: &Spec, observer: &mut dyn Observer) -> Result<Fit, Error> {
        self.fit_rows(data, spec, observer)
    }

    fn fit_rows(&self, rows: &dyn Rows, spec: &Spec, observer: &mut dyn Observer) -> Result<Fit, Error> {
        let facts = &rows.facts()?;
        Climb::new(self, Table { rows, facts }, spec)?.fit(self, observer)
    }
}

impl Scheme for MeanField {
    const NAME: &'static str = "mean-field";
    const COUPLED: bool = false;
    const VIEWS: bool = true;

    fn settings(&self) -> Settings {
        Settings {
            max_iterations: self.max_iterations,
            tolerance: self.tolerance,
            pruning: self.pruning,
            raw: self.raw,
            relevance: Gamma { shape: self.relevance_shape, rate: self.relevance_rate },
            noise: Gamma { shape: self.noise_shape, rate: self.noise_rate },
            mean_precision: self.mean_precision,
            prior_mean: None,
            prior_offset: None,
            in_noise_units: self.noise_units,
        }
    }

    fn supports(_: NoiseFamily) -> bool {
        true
    }

    /// X, μ, W, α, τ, then the two moves [M 2.2.2].
    fn sweep(&self, table: Table<'_>, frame: &Frame, prior: &Prior, state: &mut State) -> Result<f64, Error> {
        let statistics = Statistics::of(table, frame, state)?;
        let ln_covariance = update(prior, &statistics, state)?;
        state.update_relevance(prior);
        update_noise(prior, &statistics, state);
        let mut parts = Parts::new(&statistics, state, ln_covariance);
        if self.expansion {
            translate_mean_field(prior, &statistics, state, &mut parts);
            rotate(prior, state, &mut parts)?;
        }
        Ok(bound(prior, &statistics, state, &parts))
    }
}

/// q(μ), then q(W) (2.2, 2.3); returns `ln |cov(v_j)|`.
fn update(prior: &Prior, statistics: &Statistics, state: &mut State) -> Result<Vec<f64>, Error> {
    let (d, q) = (state.v.n_rows(), state.n_components());
    let alpha = state.alpha();
    // Columns that share their noise, their α and their gaps share a covariance.
    let own = if statistics.is_shared() { state.noise.len() } else { d };
    let first: Vec<usize> =
        (0..own).map(|k| (0..d).find(|&j| state.place(own, j) == k).expect("views have columns")).collect();
    // The covariance of each, and its factor.
    let of_column = |j: usize| {
        let alpha = alpha.row(state.view[j]);
        let (a, tau) = (statistics.normal(j), state.tau(j));
        let unit = if prior.in_noise_units { tau } else { 1.0 };
        let precision =
            Matrix::from_fn(q, q, |r, c| tau * a[(r, c)] + if r == c { unit * alpha[r] } else { 0.0 });
        let factor = super::factorized(&precision)?;
        let mean_variance = 1.0 / (unit * prior.mean_precision + tau * statistics.counts[j]);
        let inverse = factor.inverse();
        let covariance = Matrix::from_fn(q + 1, q + 1, |r, c| match (r < q, c < q) {
            (true, true) => inverse[(r, c)],
            (false, false) => mean_variance,
            _ => 0.0,
        });
        let ln_det = mean_variance.ln() - factor.ln_det();
        Ok((factor, covariance, ln_det))
    };
    let known: Vec<(Cholesky, Matrix, f64)> = parallel::try_map(own, |k| of_column(first[k]))?;
    for j in 0..d {
        let (factor, covariance, _) = &known[state.place(own, j)];
        let (a, b, tau) = (statistics.normal(j), statistics.cross.row(j), state.tau(j));
        let unit = if prior.in_noise_units { tau } else { 1.0 };
        let row = state.v.row_mut(j);
        let sums: Vec<f64> = (0..q).map(|i| a[(i, q)]).collect();
        let pull = unit * prior.mean_precision * (prior.mean[j] - row[q]);
        let shift = covariance[(q, q)] * (pull + tau * (b[q] - dot(&row[..q], &sums)));
        row[q] += shift;
        for i in 0..q {
            row[i] = tau * (b[i] - sums[i] * shift);
        }
        factor.solve(&mut row[..q]);
    }
    let ln_covariance = known.iter().map(|k| k.2).collect();
    state.covariance = known.into_iter().map(|k| k.1).collect();
    Ok(ln_covariance)
}

/// q(τ) (2.5).
fn update_noise(prior: &Prior, statistics: &Statistics, state: &mut State) {
    let (d, q) = (state.v.n_rows(), state.n_components());
    let parts = Parts::new(statistics, state, Vec::new());
    let alpha = state.alpha();
    let groups = state.noise.len();
    let mut noise = vec![prior.noise; groups];
    for j in 0..d {
        let Gamma { shape, rate } = &mut noise[state.place(groups, j)];
        *shape += 0.5 * statistics.counts[j];
        *rate += 0.5 * (parts.errors[j] + parts.spreads[j]);
        if prior.in_noise_units {
            let (at_mean, spread) = state.prior_quadratics(j, prior, &alpha);
            *shape += 0.5 * (q + 1) as f64;
            *rate += 0.5 * (at_mean + spread);
        }
    }
    state.noise = noise;
}
