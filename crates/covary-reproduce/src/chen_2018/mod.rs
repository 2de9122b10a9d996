//! Chen, Du & Vuyyuru (2018), "Probabilistic and Bayesian Principal Component Analysis". Errata are
//! numbered as in the specification: 1.10 is number 10 of part 1 §13, 2.10 of part 2 §13.

pub(crate) mod digits;
pub(crate) mod fig_02;
pub(crate) mod fig_03;
pub(crate) mod fig_04;
pub(crate) mod fig_05;
pub(crate) mod fig_06;
pub(crate) mod fig_07;
pub(crate) mod fig_08;
pub(crate) mod fig_09;
pub(crate) mod fig_10;
pub(crate) mod fig_11;
pub(crate) mod fig_12;
pub(crate) mod fig_13;
pub(crate) mod fig_14;
pub(crate) mod fig_14_all_months;
pub(crate) mod fig_14_in_time;
mod sea;
mod sea_steps;

use crate::{Error, Run};
use covary::infer::{LatentMoments, MeanField};
use covary::{CentralMoments, Dataset, Density, Estimator, Fit, LinearGaussian, Matrix, Noise, Spec};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// Standard deviations of the toy with four directions (§3.1), and its rows.
pub(crate) const TOY: [f64; 10] = [5.0, 4.0, 3.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
pub(crate) const TOY_ROWS: usize = 100;
pub(crate) const TOY_WORDS: &str = "100 rows, 10 columns with standard deviations 5, 4, 3, 2 and six times 1";

/// A Gaussian with these standard deviations along its columns, as the paper has its toys.
pub(crate) fn gaussian(deviations: &[f64]) -> Result<LinearGaussian, Error> {
    let least = deviations.iter().copied().fold(f64::INFINITY, f64::min);
    let kept: Vec<usize> = (0..deviations.len()).filter(|&j| deviations[j] > least).collect();
    let length = |j: usize| (deviations[j].powi(2) - least * least).sqrt();
    let w = Matrix::from_fn(deviations.len(), kept.len(), |j, k| if j == kept[k] { length(j) } else { 0.0 });
    Ok(LinearGaussian::new(w, vec![0.0; deviations.len()], Noise::Isotropic(least * least))?)
}

/// Rows drawn from it.
pub(crate) fn draw(model: &LinearGaussian, rows: usize, seed: u64) -> Result<Dataset, Error> {
    Ok(Dataset::new(model.sample(rows, &mut ChaCha8Rng::seed_from_u64(seed)))?)
}

/// The toy with four directions.
pub(crate) fn toy(seed: u64) -> Result<Dataset, Error> {
    draw(&gaussian(&TOY)?, TOY_ROWS, seed)
}

/// The paper's Bayesian PCA, converged: mean-field variational Bayes with all components except one.
pub(crate) fn bayes(data: &Dataset) -> Result<Fit, Error> {
    let most = (data.n_columns() - 1).min(data.n_rows() - 1);
    Ok(MeanField::default().fit(data, &Spec::ppca(most))?)
}

/// PPCA as textbooks fit it: EM from random loadings, without parameter expansion, left in whatever
/// rotation it stops. `after` is called with the log-likelihood per row before each step.
pub(crate) fn textbook_em(
    run: &Run,
    data: &Dataset,
    q: usize,
    steps: usize,
    mut after: impl FnMut(usize, f64),
) -> Result<LinearGaussian, Error> {
    let d = data.n_columns();
    let unit = LinearGaussian::new(Matrix::zeros(q, 0), vec![0.0; q], Noise::Isotropic(1.0))?;
    let start = unit.sample(d, &mut ChaCha8Rng::seed_from_u64(run.seed));
    let mut model = LinearGaussian::new(start, data.observed_means().to_vec(), Noise::Isotropic(1.0))?;
    for step in 0..steps {
        run.stage("steps of EM", step, steps)?;
        let moments = LatentMoments::new(&model, data)?;
        after(step, moments.log_likelihood() / data.n_rows() as f64);
        model = moments.maximize(false)?;
    }
    after(steps, model.score(data)?);
    Ok(model)
}

/// KL(p ‖ q) = E_p[ln p − ln q] in nats, means taken as equal.
pub(crate) fn divergence(p: &LinearGaussian, q: &LinearGaussian) -> Result<f64, Error> {
    const ROWS: usize = 1000;
    let zero = |m: &LinearGaussian| {
        LinearGaussian::new(m.loadings().clone(), vec![0.0; m.mean().len()], m.noise().clone())
    };
    let (p, q) = (zero(p)?, zero(q)?);
    let moments = CentralMoments::from_covariance(&p.covariance(), ROWS)?;
    Ok((p.log_likelihood_of_moments(&moments)? - q.log_likelihood_of_moments(&moments)?) / ROWS as f64)
}

/// Mean, and standard error of the mean.
pub(crate) fn mean_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (mean, if n > 1.0 { (squares / (n - 1.0) / n).sqrt() } else { 0.0 })
}

/// The rows of a matrix, for a chart.
pub(crate) fn rows_of(matrix: &Matrix) -> Vec<Vec<f64>> {
    matrix.rows().map(<[f64]>::to_vec).collect()
}

/// The largest |cos| of the angle between two different columns; 0 if they are orthogonal.
pub(crate) fn largest_cosine(w: &Matrix) -> f64 {
    let g = w.t_dot(w);
    let pairs = (0..w.n_columns()).flat_map(|i| (0..i).map(move |j| (i, j)));
    pairs.map(|(i, j)| g[(i, j)].abs() / (g[(i, i)] * g[(j, j)]).sqrt()).fold(0.0, f64::max)
}
