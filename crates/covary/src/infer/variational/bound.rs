//! The bound, term by term ([M 2.2.3] and [M 2.3.5]), and the moves along which the model stays the same
//! while the bound increases ([M 2.2.4], [M 2.3.3]).

use super::rotation::{Rotation, Turned};
use super::state::{Gamma, Prior, State, Statistics, trace_product};
use crate::linalg::{Cholesky, dot};
use crate::{Error, Matrix};
use std::f64::consts::PI;

/// What the bound needs besides the factors themselves.
pub(super) struct Parts {
    /// Expected squared error of each column at the mean of its `v_j`.
    pub(super) errors: Vec<f64>,
    /// `tr cov(v_j) A_j`
    pub(super) spreads: Vec<f64>,
    /// `ln |cov(v_j)|`, as many as there are covariances.
    pub(super) ln_covariance: Vec<f64>,
    /// `Σ ⟨z zᵀ⟩`
    pub(super) latent: Matrix,
    /// `Σ ln |G|`
    pub(super) ln_det: f64,
    pub(super) n: f64,
}

impl Parts {
    /// At the factors just updated.
    pub(super) fn new(statistics: &Statistics, state: &State, ln_covariance: Vec<f64>) -> Self {
        let columns = 0..state.v.n_rows();
        Self {
            errors: columns.clone().map(|j| statistics.error(j, state.v.row(j))).collect(),
            spreads: columns.map(|j| trace_product(state.covariance(j), statistics.normal(j))).collect(),
            ln_covariance,
            latent: statistics.latent.clone(),
            ln_det: statistics.ln_det,
            n: statistics.n,
        }
    }
}

/// The bound, in the units of the frame.
pub(super) fn bound(prior: &Prior, statistics: &Statistics, state: &State, parts: &Parts) -> f64 {
    let ln_2pi = (2.0 * PI).ln();
    let (d, q) = (state.v.n_rows(), state.n_components());
    let width = (q + 1) as f64;
    let alpha = state.alpha();
    let ln_alpha: Vec<f64> =
        state.relevance.iter().map(|view| view.iter().map(Gamma::mean_ln).sum()).collect();
    let mut sum = 0.0;
    for j in 0..d {
        let (tau, ln_tau) = (state.tau(j), state.noise(j).mean_ln());
        // ln p(t | x, v, τ)
        sum += statistics.counts[j] * (ln_tau - ln_2pi)
            - tau * parts.errors[j]
            - state.weight(j) * parts.spreads[j];
        // ln p(v | α, τ)
        let (at_mean, spread) = state.prior_quadratics(j, prior, &alpha);
        let (weight, ln_weight) = if prior.in_noise_units { (tau, width * ln_tau) } else { (1.0, 0.0) };
        let spread_weight = if state.coupled { 1.0 } else { weight };
        sum += ln_alpha[state.view[j]] + prior.mean_precision.ln() - width * ln_2pi + ln_weight
            - weight * at_mean
            - spread_weight * spread;
        // − ln q(v | τ)
        let ln_covariance = parts.ln_covariance[state.place(parts.ln_covariance.len(), j)];
        sum += ln_covariance + width * (1.0 + ln_2pi) - if state.coupled { width * ln_tau } else { 0.0 };
    }
    // ln p(x) − ln q(x)
    let squares: f64 = (0..q).map(|i| parts.latent[(i, i)]).sum();
    sum += parts.n * q as f64 - squares - parts.ln_det;
    0.5 * sum
        + state.noise.iter().map(|g| g.gain(&prior.noise)).sum::<f64>()
        + state.relevance.iter().flatten().map(|g| g.gain(&prior.relevance)).sum::<f64>()
}

/// Turns and stretches the latent space to where the bound is largest, if it does not fall.
pub(super) fn rotate(prior: &Prior, state: &mut State, parts: &mut Parts) -> Result<(), Error> {
    let (q, n) = (state.n_components(), parts.n);
    if q == 0 {
        return Ok(());
    }
    let turned = Turned {
        p: Matrix::from_fn(q, q, |i, j| parts.latent[(i, j)]),
        k: state.loadings_moments(prior),
        sizes: state.view_sizes(),
        n,
        relevance: prior.relevance,
    };
    let Some(Rotation { by, inverse, ln_det }) = turned.best()? else { return Ok(()) };
    // w → R⁻ᵀ w, so that a row of W is multiplied by R⁻¹.
    state.turn(&inverse);
    state.update_relevance(prior);
    let latent = by.bordered();
    parts.latent = latent.dot(&parts.latent).dot_t(&latent);
    parts.ln_det -= 2.0 * n * ln_det;
    parts.ln_covariance.iter_mut().for_each(|l| *l -= 2.0 * ln_det);
    Ok(())
}

/// (2.7): moves the latent mean into μ where q(μ) does not follow by itself.
pub(super) fn translate_mean_field(
    prior: &Prior,
    statistics: &Statistics,
    state: &mut State,
    parts: &mut Parts,
) {
    let (d, q) = (state.v.n_rows(), state.n_components());
    let mut left = Matrix::diagonal(&vec![parts.n; q]);
    let mut right: Vec<f64> = (0..q).map(|i| parts.latent[(i, q)]).collect();
    for j in 0..d {
        let tau = state.tau(j);
        let beta = prior.mean_precision * if prior.in_noise_units { tau } else { 1.0 };
        let (c, v, a) = (state.covariance(j), state.v.row(j), statistics.normal(j));
        let off = v[q] - prior.mean[j];
        for i in 0..q {
            for l in 0..q {
                left[(i, l)] += tau * statistics.counts[j] * c[(i, l)] + beta * v[i] * v[l];
            }
            let sums: f64 = (0..q).map(|l| c[(i, l)] * a[(l, q)]).sum();
            right[i] += tau * sums - beta * v[i] * off;
        }
    }
    let Some(factor) = Cholesky::new(&left) else { return };
    factor.solve(&mut right);
    let c = right;
    for j in 0..d {
        let (cov, a) = (state.covariance(j), statistics.normal(j));
        let mut change = 0.0;
        for i in 0..q {
            let to = dot(&cov.row(i)[..q], &c);
            change += to * (statistics.counts[j] * c[i] - 2.0 * a[(i, q)]);
        }
        parts.spreads[j] += change;
        let row = state.v.row_mut(j);
        row[q] += dot(&row[..q], &c);
    }
    let back: Vec<f64> = c.iter().map(|c| -c).collect();
    parts.latent = super::state::translated(&parts.latent, &back);
}

/// (3.7): the translation that the next update of q(W, μ, τ) may count on.
pub(super) fn translation(prior: &Prior, statistics: &Statistics, state: &State) -> Option<Vec<f64>> {
    let (d, q, beta) = (state.v.n_rows(), state.n_components(), prior.mean_precision);
    let k = &state.loadings_moments(prior)[0];
    let mut right: Vec<f64> = (0..q).map(|i| -statistics.latent[(i, q)]).collect();
    for j in 0..d {
        let (tau, c, v) = (state.tau(j), state.covariance(j), state.v.row(j));
        for i in 0..q {
            right[i] += beta * (c[(i, q)] + tau * v[i] * (v[q] - prior.mean[j]));
        }
    }
    for i in 0..q {
        right[i] -= beta * dot(k.row(i), &prior.offset);
    }
    let left = Matrix::from_fn(q, q, |i, j| if i == j { statistics.n } else { 0.0 } + beta * k[(i, j)]);
    Cholesky::new(&left)?.solve(&mut right);
    Some(right)
}
