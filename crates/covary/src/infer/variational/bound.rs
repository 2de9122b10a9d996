//! The bound, term by term (spec II §2.3 and §3.5), and the moves along which the model stays the same
//! while the bound rises (§2.4, §3.3).

use super::state::{Gamma, Prior, State, Statistics, trace_product};
use crate::linalg::{Cholesky, Eigen, dot, eigen};
use crate::{Error, Matrix};
use std::f64::consts::PI;

/// What the bound needs besides the factors themselves.
pub(super) struct Parts {
    /// Expected squared error of each column at the mean of its `v_j`.
    pub(super) errors: Vec<f64>,
    /// `tr cov(v_j) A_j`
    pub(super) spreads: Vec<f64>,
    /// `ln |cov(v_j)|`, one per column or one for all.
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
    let ln_alpha: f64 = state.relevance.iter().map(Gamma::mean_ln).sum();
    let mut sum = 0.0;
    for j in 0..d {
        let (tau, ln_tau) = (state.tau(j), state.mean_ln_tau(j));
        // ln p(t | x, v, τ)
        sum += statistics.counts[j] * (ln_tau - ln_2pi)
            - tau * parts.errors[j]
            - state.weight(j) * parts.spreads[j];
        // ln p(v | α, τ)
        let (at_mean, spread) = state.prior_quadratics(j, prior, &alpha);
        let (weight, ln_weight) = if prior.in_noise_units { (tau, width * ln_tau) } else { (1.0, 0.0) };
        let spread_weight = if state.coupled { 1.0 } else { weight };
        sum += ln_alpha + prior.mean_precision.ln() - width * ln_2pi + ln_weight
            - weight * at_mean
            - spread_weight * spread;
        // − ln q(v | τ)
        let ln_covariance = parts.ln_covariance[j.min(parts.ln_covariance.len() - 1)];
        sum += ln_covariance + width * (1.0 + ln_2pi) - if state.coupled { width * ln_tau } else { 0.0 };
    }
    // ln p(x) − ln q(x)
    let squares: f64 = (0..q).map(|i| parts.latent[(i, i)]).sum();
    sum += parts.n * q as f64 - squares - parts.ln_det;
    0.5 * sum
        + state.noise.iter().map(|g| g.gain(&prior.noise)).sum::<f64>()
        + state.relevance.iter().map(|g| g.gain(&prior.relevance)).sum::<f64>()
}

/// (2.8): the part of the bound that a rotation changes, α adapted, with `P → RPRᵀ` and
/// `K → R⁻ᵀKR⁻¹` given by their traces, diagonal and `ln |det R|`.
fn rotation_gain(prior: &Prior, d: usize, n: f64, trace: f64, diagonal: &[f64], ln_det: f64) -> f64 {
    let Gamma { shape, rate } = prior.relevance;
    let d = d as f64;
    let relevance: f64 = diagonal.iter().map(|k| (rate + 0.5 * k).ln()).sum();
    -0.5 * trace + (n - d) * ln_det - (shape + 0.5 * d) * relevance
}

/// Turns and stretches the latent space to the canonical gauge, `Σ⟨xxᵀ⟩ = N I` and `Σ⟨wwᵀ⟩` diagonal and
/// falling (2.9), if the bound does not fall.
pub(super) fn rotate(prior: &Prior, state: &mut State, parts: &mut Parts) -> Result<(), Error> {
    let (d, q, n) = (state.v.n_rows(), state.n_components(), parts.n);
    if q == 0 {
        return Ok(());
    }
    let p = Matrix::from_fn(q, q, |i, j| parts.latent[(i, j)]);
    let k = state.loadings_moment(prior);
    let Eigen { values, vectors } = eigen(&p)?;
    if values.iter().any(|v| *v <= 0.0) {
        return Ok(());
    }
    let power = |exponent: f64| {
        let mut scaled = vectors.clone();
        scaled.scale_columns(&values.iter().map(|v| (v / n).powf(exponent)).collect::<Vec<_>>());
        scaled.dot_t(&vectors)
    };
    let (root, inverse_root) = (power(0.5), power(-0.5));
    let mut turned = root.dot(&k).dot(&root);
    turned.symmetrize();
    let Eigen { values: kappa, vectors: turn } = eigen(&turned)?;
    let ln_det: f64 = -0.5 * values.iter().map(|v| (v / n).ln()).sum::<f64>();
    let now: Vec<f64> = (0..q).map(|i| k[(i, i)]).collect();
    let after = rotation_gain(prior, d, n, n * q as f64, &kappa, ln_det);
    if after < rotation_gain(prior, d, n, p.trace(), &now, 0.0) {
        return Ok(());
    }
    // w → R⁻ᵀ w, so that a row of W is multiplied by R⁻¹ = (P/N)^½ Q.
    let inverse = root.dot(&turn);
    let rotation = turn.t_dot(&inverse_root);
    state.turn(&inverse);
    state.update_relevance(prior);
    let latent = rotation.bordered();
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
    let k = state.loadings_moment(prior);
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
