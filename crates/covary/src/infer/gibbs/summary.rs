//! From kept draws to a [`Fit`]: alignment, means, diagnostics.

use super::align::{align, turn_to};
use super::state::{Draw, GibbsState};
use super::sweep::{Beliefs, Relevance};
use super::table::{Parameters, Table};
use crate::infer::diagnostics::ChainSummary;
use crate::infer::report::{Fit, FitReport, Monitored, Objective, ObjectiveKind, Termination, Warning};
use crate::linalg::{Svd, dot, thin_svd};
use crate::model::Mixture;
use crate::parallel;
use crate::{Error, Matrix};
use statrs::function::gamma::ln_gamma;
use std::f64::consts::PI;

/// What a scalar must reach to count as known.
const LARGEST_R_HAT: f64 = 1.01;
const FEWEST_EFFECTIVE: f64 = 400.0;
/// Columns whose scalars are watched: of a wider table as many, evenly spread.
const WATCHED: usize = 100;
/// Scalars of columns that are reported: those the chains know least.
const LEAST_KNOWN: usize = 5;

/// The fit that these chains have led to so far.
pub(super) fn fit(
    state: &GibbsState,
    table: &Table,
    beliefs: &Beliefs,
    termination: Termination,
    mut warnings: Vec<Warning>,
) -> Result<Fit, Error> {
    let chains: Vec<Vec<&Draw>> = state.chains.iter().map(|chain| chain.draws.iter().collect()).collect();
    let likelihoods = |c: usize| chains[c].iter().map(|draw| draw.log_likelihood);
    let n = chains.iter().map(|chain| chain.len() as f64).sum::<f64>();
    let value = (0..chains.len()).flat_map(likelihoods).sum::<f64>() / n;
    let trace = (0..chains[0].len())
        .map(|s| chains.iter().map(|chain| chain[s].log_likelihood).sum::<f64>() / chains.len() as f64)
        .collect();

    let all: Vec<&Draw> = chains.iter().flatten().copied().collect();
    let posterior = |draw: &Draw| draw.log_likelihood + log_prior(&draw.parameters, beliefs, table.isotropic);
    let densest = (0..all.len()).max_by(|&a, &b| posterior(all[a]).total_cmp(&posterior(all[b])));
    let mut aligned: Vec<Parameters> = all.iter().map(|draw| draw.parameters.clone()).collect();
    let ard = matches!(beliefs.relevance, Relevance::Ard { .. });
    align(&mut aligned, densest.expect("at least one draw"), ard);

    let average = |of: fn(&Parameters) -> &Vec<f64>| {
        let mut sum = vec![0.0; of(&aligned[0]).len()];
        for p in &aligned {
            sum.iter_mut().zip(of(p)).for_each(|(s, v)| *s += v);
        }
        sum.iter().map(|s| s / n).collect::<Vec<f64>>()
    };
    let (means, noise) = (average(|p| &p.mean), average(|p| &p.noise));
    let w = central_loadings(&aligned, &noise)?;
    let (model, turn) = table.model(&w, &means, &noise)?.canonical_with_rotation();
    let relevance = if ard { turned_relevance(&aligned, &w.dot(&turn)) } else { Vec::new() };

    let (monitored, unknown) = monitored(&chains, table, model.loadings());
    let termination = match (termination, unknown) {
        (termination, None) => termination,
        (termination, Some(warning)) => {
            warnings.push(warning);
            if termination == Termination::Converged { Termination::IterationLimit } else { termination }
        }
    };
    let draws = aligned.iter().map(|p| table.model(&p.w, &p.mean, &p.noise));
    let draws = Mixture::equal(draws.collect::<Result<_, _>>()?)?;
    let objective = Objective { kind: ObjectiveKind::AverageLogLikelihood, value };
    Ok(Fit {
        model,
        draws: Some(draws),
        report: FitReport { objective, trace, termination, warnings, relevance, monitored },
    })
}

/// α of the model's components: 1/α is the prior variance of a component's loadings in units of the noise,
/// and variances turn with each draw.
fn turned_relevance(draws: &[Parameters], loadings: &Matrix) -> Vec<f64> {
    let q = loadings.n_columns();
    let mut variance = vec![0.0; q];
    for draw in draws {
        let turn = turn_to(&draw.w, loadings);
        for (j, sum) in variance.iter_mut().enumerate() {
            *sum += (0..q).map(|i| turn[(i, j)].powi(2) / draw.alpha[i]).sum::<f64>();
        }
    }
    variance.iter().map(|v| draws.len() as f64 / v).collect()
}

/// Draws whose covariances are averaged: more would not change the average by what it is uncertain.
const AVERAGED: usize = 200;

/// Loadings whose `W Wᵀ` is nearest, in units of the noise, to its mean over draws. The mean of the
/// loadings themselves would be too short: they differ by turns that no alignment takes out.
fn central_loadings(draws: &[Parameters], noise: &[f64]) -> Result<Matrix, Error> {
    let (d, q) = (draws[0].w.n_rows(), draws[0].w.n_columns());
    if q == 0 {
        return Ok(draws[0].w.clone());
    }
    let deviation: Vec<f64> = noise.iter().map(|v| v.sqrt()).collect();
    let inverse: Vec<f64> = deviation.iter().map(|v| 1.0 / v).collect();
    let used: Vec<usize> =
        (0..draws.len().min(AVERAGED)).map(|k| k * draws.len() / draws.len().min(AVERAGED)).collect();
    // d × (q S), whose leading left singular vectors are those of the mean of W Wᵀ.
    let mut beside = Matrix::from_fn(d, q * used.len(), |j, c| draws[used[c / q]].w[(j, c % q)]);
    beside.scale_rows(&inverse);
    let tall = d > beside.n_columns();
    let Svd { u, s, .. } = thin_svd(&if tall {
        beside.clone()
    } else {
        Matrix::from_fn(d, d, |i, j| dot(beside.row(i), beside.row(j)))
    })?;
    let scale = |k: usize| if tall { s[k] } else { s[k].sqrt() } / (used.len() as f64).sqrt();
    let mut w = u.first_columns(q);
    w.scale_columns(&(0..q).map(scale).collect::<Vec<_>>());
    w.scale_rows(&deviation);
    Ok(w)
}

/// A scalar that no turn of the components changes, by name.
type Scalar<'a> = (String, Box<dyn Fn(&Draw) -> f64 + Sync + 'a>);

/// Diagnostics of the likelihood, the noise, the signal and the scalars they know least, and a
/// warning that names the worst unless they know all of them.
fn monitored(chains: &[Vec<&Draw>], table: &Table, loadings: &Matrix) -> (Vec<Monitored>, Option<Warning>) {
    let names = table.data.column_names();
    let d = names.len();
    let watched: Vec<usize> = (0..d.min(WATCHED)).map(|k| k * d / d.min(WATCHED)).collect();
    let mut scalars: Vec<Scalar<'_>> = vec![("the log-likelihood".into(), Box::new(|d| d.log_likelihood))];
    if table.isotropic {
        scalars.push(("ln σ²".into(), Box::new(|d| d.parameters.noise[0].ln())));
    }
    if loadings.n_columns() > 0 {
        let signal = |d: &Draw| d.parameters.w.as_slice().iter().map(|w| w * w).sum::<f64>().ln();
        scalars.push(("the variance of all components together".into(), Box::new(signal)));
    }
    for &k in &watched {
        let name = &names[k];
        if !table.isotropic {
            scalars.push((format!("ln σ² of `{name}`"), Box::new(move |d| d.parameters.noise[k].ln())));
        }
        scalars.push((format!("the mean of `{name}`"), Box::new(move |d| d.parameters.mean[k])));
        scalars
            .push((format!("the variance of `{name}`"), Box::new(move |d| covariance(&d.parameters, k, k))));
    }
    if let Some((j, k)) = largest_pair(loadings, &watched) {
        let name = format!("the covariance of `{}` and `{}`", names[j], names[k]);
        scalars.push((name, Box::new(move |d| covariance(&d.parameters, j, k))));
    }
    let judge = |(name, scalar): &Scalar<'_>| {
        let values: Vec<Vec<f64>> = chains.iter().map(|c| c.iter().map(|d| scalar(d)).collect()).collect();
        let total = values.iter().map(Vec::len).sum::<usize>() as f64;
        // Too few draws to say anything are too few draws.
        let summary = ChainSummary::of(&values).ok();
        let (r_hat, ess) = summary.map_or((None, total), |s| (s.r_hat, s.ess));
        // How many times it misses either mark.
        let excess = r_hat.map_or(0.0, |r| (r - 1.0) / (LARGEST_R_HAT - 1.0));
        let warning = Warning::NotMixed { quantity: name.clone(), r_hat, effective_draws: ess };
        (
            excess.max(FEWEST_EFFECTIVE / ess),
            warning,
            summary.map(|s| Monitored { quantity: name.clone(), summary: s }),
        )
    };
    let overall = if table.isotropic { 3 } else { 2 }.min(scalars.len());
    let mut judged: Vec<_> = parallel::map(scalars.len(), |k| judge(&scalars[k]));
    judged[overall..].sort_by(|a, b| b.0.total_cmp(&a.0));
    judged.truncate(overall + LEAST_KNOWN);
    let worst = judged.iter().max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(miss, ..)| *miss > 1.0);
    let warning = worst.map(|(_, warning, _)| warning.clone());
    (judged.into_iter().filter_map(|(_, _, monitored)| monitored).collect(), warning)
}

/// `w_jᵀ w_k`, and the noise on the diagonal.
fn covariance(p: &Parameters, j: usize, k: usize) -> f64 {
    dot(p.w.row(j), p.w.row(k)) + if j == k { p.noise[k] } else { 0.0 }
}

/// The pair of columns whose loadings have the largest product.
fn largest_pair(w: &Matrix, columns: &[usize]) -> Option<(usize, usize)> {
    let pairs = columns.iter().flat_map(|&k| columns.iter().filter(move |j| **j < k).map(move |&j| (j, k)));
    let size = |&(j, k): &(usize, usize)| dot(w.row(j), w.row(k)).abs();
    if w.n_columns() == 0 { None } else { pairs.max_by(|a, b| size(a).total_cmp(&size(b))) }
}

/// `ln p(W, μ, σ², α)` in the table's units.
fn log_prior(p: &Parameters, beliefs: &Beliefs, isotropic: bool) -> f64 {
    let Beliefs { nu0, s0_squared, kappa_mu, center, relevance } = beliefs;
    // ln N(x | 0, variance)
    let normal = |x: f64, variance: f64| -0.5 * ((2.0 * PI * variance).ln() + x * x / variance);
    let variance = |s: &f64| {
        let (a, b) = (0.5 * nu0, 0.5 * nu0 * s0_squared);
        a * b.ln() - ln_gamma(a) - (a + 1.0) * s.ln() - b / s
    };
    let free = if isotropic { &p.noise[..1] } else { &p.noise[..] };
    let mut sum: f64 = free.iter().map(variance).sum();
    for (k, s) in p.noise.iter().enumerate() {
        sum += normal(p.mean[k] - center[k], s / kappa_mu);
        sum += p.w.row(k).iter().zip(&p.alpha).map(|(w, a)| normal(*w, s / a)).sum::<f64>();
    }
    if let Relevance::Ard { shape, rate } = relevance {
        let one = |a: &f64| shape * rate.ln() - ln_gamma(*shape) + (shape - 1.0) * a.ln() - rate * a;
        sum += p.alpha.iter().map(one).sum::<f64>();
    }
    sum
}
