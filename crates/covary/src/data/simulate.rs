//! Simulated tables with known parameters, from a seed.

use super::Dataset;
use crate::linalg::{normal, thin_svd};
use crate::model::{LinearGaussian, Mixture, Noise};
use crate::{Density, Matrix};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Size of a simulated table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// Latent dimension of the truth.
    pub n_components: usize,
}

/// A table drawn from probabilistic PCA with standard-normal loadings and means and noise variance
/// 0.25, and the model it was drawn from.
pub fn ppca(shape: Shape, seed: u64) -> (Dataset, LinearGaussian) {
    from_noise(shape, seed, |_, _| Noise::Isotropic(0.25))
}

/// A table drawn from factor analysis with standard-normal loadings and means and noise variances
/// uniform on [0.2, 1.2], and the model it was drawn from.
pub fn factor_analysis(shape: Shape, seed: u64) -> (Dataset, LinearGaussian) {
    from_noise(shape, seed, |d, rng| Noise::Diagonal((0..d).map(|_| rng.random_range(0.2..1.2)).collect()))
}

/// Probabilistic PCAs of one shape, their means `apart` from each other in units of the noise: the
/// table, the mixture that it was drawn from, and which of its components each row is from. The last
/// component is the most frequent, K times as frequent as the first.
pub fn mixture(shape: Shape, n_mixtures: usize, apart: f64, seed: u64) -> (Dataset, Mixture, Vec<usize>) {
    let components: Vec<LinearGaussian> = (0..n_mixtures)
        .map(|k| {
            let (_, model) = ppca(Shape { rows: 2, ..shape }, seed.wrapping_add(1 + k as u64));
            let mut rng = ChaCha8Rng::seed_from_u64(seed ^ (0x6d69_7800 + k as u64));
            let far = apart * model.noise().variance(0).sqrt() / (2.0 * shape.columns as f64).sqrt();
            let mean = normal(1, shape.columns, &mut rng).into_vec().iter().map(|e| far * e).collect();
            LinearGaussian::new(model.loadings().clone(), mean, model.noise().clone()).expect("a valid model")
        })
        .collect();
    let weights = (1..=n_mixtures).map(|k| k as f64).collect();
    let truth = Mixture::new(components, weights).expect("components of one shape");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (values, labels) = truth.sample_labeled(shape.rows, &mut rng);
    (Dataset::new(values).expect("finite values"), truth, labels)
}

/// A table whose principal standard deviations are given, along randomly rotated axes: its columns
/// are correlated, so that gaps can be filled from their neighbors. The truth keeps the directions
/// whose deviation exceeds the smallest one.
pub fn rotated(rows: usize, deviations: &[f64], seed: u64) -> (Dataset, LinearGaussian) {
    let d = deviations.len();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let basis = thin_svd(&normal(d, d, &mut rng)).expect("a Gaussian matrix of moderate numbers").u;
    let least = deviations.iter().copied().fold(f64::INFINITY, f64::min);
    let kept: Vec<usize> = (0..d).filter(|&i| deviations[i] > least).collect();
    let loadings = Matrix::from_fn(d, kept.len(), |j, k| {
        let s = deviations[kept[k]];
        basis[(j, kept[k])] * (s * s - least * least).sqrt()
    });
    draw(rows, loadings, vec![0.0; d], Noise::Isotropic(least * least), rng)
}

/// The table with each observed cell removed with probability `share`, except that every row keeps
/// one cell and every column two.
pub fn hide(data: &Dataset, share: f64, seed: u64) -> Dataset {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut values = data.values().clone();
    let mut left = data.n_observed_by_column().to_vec();
    for i in 0..values.n_rows() {
        let row = values.row_mut(i);
        let mut in_row = row.iter().filter(|v| !v.is_nan()).count();
        for (v, in_column) in row.iter_mut().zip(&mut left) {
            let hidden = rng.random::<f64>() < share;
            if hidden && !v.is_nan() && in_row > 1 && *in_column > 2 {
                *v = f64::NAN;
                in_row -= 1;
                *in_column -= 1;
            }
        }
    }
    data.with_cells(values, data.column_names().to_vec()).expect("a valid table with more gaps")
}

fn from_noise(
    shape: Shape,
    seed: u64,
    noise: impl Fn(usize, &mut ChaCha8Rng) -> Noise,
) -> (Dataset, LinearGaussian) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let loadings = normal(shape.columns, shape.n_components, &mut rng);
    let mean = normal(1, shape.columns, &mut rng).into_vec();
    let noise = noise(shape.columns, &mut rng);
    draw(shape.rows, loadings, mean, noise, rng)
}

fn draw(
    rows: usize,
    loadings: Matrix,
    mean: Vec<f64>,
    noise: Noise,
    mut rng: ChaCha8Rng,
) -> (Dataset, LinearGaussian) {
    let truth = LinearGaussian::new(loadings, mean, noise).expect("the parameters above are valid");
    let table = Dataset::new(truth.sample(rows, &mut rng)).expect("draws are finite");
    (table, truth.canonical())
}
