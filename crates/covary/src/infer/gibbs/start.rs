//! Overdispersed starts of the chains, so that their agreement is informative.

use super::random::{drawn_relevance, scaled_inverse_chi_squared, standard_normal};
use super::sweep::{Beliefs, Relevance, Sampler};
use super::table::{Parameters, Table};
use crate::infer::{Em, Estimator};
use crate::spec::NoiseFamily;
use crate::{Error, Matrix, Spec};
use rand::Rng;

/// Cells up to which chains start from draws of the prior. A chain finds its way from there within
/// some dozens of sweeps, which are cheap on a small table and dear on a large one.
const SMALL: usize = 20_000;
/// Steps of EM towards the start of a large table.
const STEPS: usize = 20;

/// The start of all chains before each is moved at random: `None` for the prior.
pub(super) fn center(table: &Table, q: usize) -> Result<Option<Parameters>, Error> {
    if table.n_rows() * table.n_columns() <= SMALL {
        return Ok(None);
    }
    let noise = if table.isotropic { NoiseFamily::Isotropic } else { NoiseFamily::Diagonal };
    let spec = Spec { noise, allow_unidentified: true, ..Spec::ppca(q) };
    let em = Em { max_iterations: STEPS, tolerance: 1e-2, ..Em::default() };
    let model = em.fit(&table.data, &spec)?.model;
    let (w, mean, noise) = (model.loadings().clone(), model.mean().to_vec(), model.noise_variances());
    Ok(Some(Parameters { w, mean, noise, alpha: Vec::new() }))
}

/// A draw of the prior, or the center moved: loadings by a third of their size, noise variances by a
/// factor of about two, means by two standard errors.
pub(super) fn start(
    sampler: &Sampler<'_>,
    center: Option<&Parameters>,
    q: usize,
    rng: &mut impl Rng,
) -> Parameters {
    let Some(center) = center else { return from_prior(sampler, q, rng) };
    let mut at = center.clone();
    let w = at.w.as_mut_slice();
    let size = (w.iter().map(|w| w * w).sum::<f64>() / w.len().max(1) as f64).sqrt();
    for w in w {
        *w += 0.3 * size * standard_normal(rng);
    }
    let factor = (0.7 * standard_normal(rng)).exp();
    at.noise.iter_mut().for_each(|s| *s *= factor);
    let counts = sampler.table.data.n_observed_by_column();
    for (mean, n) in at.mean.iter_mut().zip(counts) {
        // Columns have variances of about 1 in the table's units.
        *mean += 2.0 / (*n as f64).sqrt() * standard_normal(rng);
    }
    at.alpha = match sampler.beliefs.relevance {
        Relevance::Fixed(kappa) => vec![kappa; q],
        Relevance::Ard { .. } => {
            let (shape, rates) = sampler.relevance(&at);
            rates.iter().map(|rate| drawn_relevance(shape, *rate, rng)).collect()
        }
    };
    at
}

/// `α`, then `σ²`, then `W` and `μ`.
pub(super) fn from_prior(sampler: &Sampler<'_>, q: usize, rng: &mut impl Rng) -> Parameters {
    let Beliefs { nu0, s0_squared, kappa_mu, center, relevance } = sampler.beliefs;
    let d = center.len();
    let alpha: Vec<f64> = match *relevance {
        Relevance::Fixed(kappa) => vec![kappa; q],
        Relevance::Ard { shape, rate } => (0..q).map(|_| drawn_relevance(shape, rate, rng)).collect(),
    };
    let mut variance = || scaled_inverse_chi_squared(*nu0, nu0 * s0_squared, rng);
    let noise =
        if sampler.table.isotropic { vec![variance(); d] } else { (0..d).map(|_| variance()).collect() };
    let w = Matrix::from_fn(d, q, |k, i| (noise[k] / alpha[i]).sqrt() * standard_normal(rng));
    let mean = (0..d).map(|k| center[k] + (noise[k] / kappa_mu).sqrt() * standard_normal(rng)).collect();
    Parameters { w, mean, noise, alpha }
}
