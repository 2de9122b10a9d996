//! Calibration: quantile functions from the residuals of hidden cells [M 4.4.2].

use crate::model::Quantiles;
use crate::model::quantiles::{KNOTS, place};
use std::sync::Arc;

/// The pool of all columns counts as this many residuals of a column's own. (Of 10, 20 and 50, and the pool alone, 50 had
/// most tables within two points of 95 %.)
const POOL: f64 = 50.0;
/// Residuals are cut here: one hidden outlier does not decide how far intervals reach.
const LARGEST: f64 = 30.0;

/// How the residuals of a column are distributed.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnCalibration {
    /// Standard deviation of the residuals, in those that the model states.
    pub spread: f64,
    /// Their quantile function, of unit standard deviation.
    pub quantiles: Arc<Quantiles>,
}

/// The distribution of `residuals`, each of a column and in standard deviations that the model states, for each of
/// `n_columns`: their own where there are many, that of all columns where there are few [M 4.4.2]. Each counts by its
/// weight b; only ratios of weights matter.
///
/// ```text
/// wᵢ = bᵢ (1{column i = j} + 50/n)        c: their cumulative shares at the middle of each |z|, ascending
/// Q(x) = |z| where (c n_eff + ½)/(n_eff + 1) is 2Φ(x) − 1        n_eff = (Σw)²/Σw²
/// ```
///
/// Of n equal weights the r-th |z| has c = (r − ½)/n and stands at r/(n + 1), what the distribution behind the residuals is
/// expected to have below it. (The specification has it at c n/(n + 1), which makes intervals cover ½/(n + 1) too much.) Beyond the
/// last residual Q goes on in proportion to x.
pub fn calibrate(residuals: &[(usize, f64)], weights: &[f64], n_columns: usize) -> Vec<Quantiles> {
    at_positions(residuals, weights, n_columns, |c, n| (c * n + 0.5) / (n + 1.0))
}

/// [`calibrate`] with another level at which a residual of cumulative share c stands, of `n_eff`.
fn at_positions(
    residuals: &[(usize, f64)],
    weights: &[f64],
    n_columns: usize,
    position: impl Fn(f64, f64) -> f64,
) -> Vec<Quantiles> {
    let n = residuals.len();
    let mut order: Vec<usize> = (0..n).collect();
    let size = |i: usize| residuals[i].1.abs().min(LARGEST);
    order.sort_by(|&a, &b| size(a).total_cmp(&size(b)));
    let levels: [f64; KNOTS] = std::array::from_fn(|k| 2.0 * super::score::cdf(place(k)) - 1.0);
    let average = weights.iter().sum::<f64>() / n as f64;
    let weight = |rank: usize| weights[order[rank]] / average;
    // Weights of all residuals before each rank, and of each column's own, with their ranks.
    let mut before = vec![0.0];
    let mut own: Vec<(Vec<usize>, Vec<f64>)> = vec![(Vec::new(), vec![0.0]); n_columns];
    let mut squares = 0.0;
    for (rank, &i) in order.iter().enumerate() {
        before.push(before[rank] + weight(rank));
        squares += weight(rank).powi(2);
        let (ranks, sums) = &mut own[residuals[i].0];
        sums.push(sums[ranks.len()] + weight(rank));
        ranks.push(rank);
    }
    let shared = POOL / n as f64;
    let column = |(ranks, sums): &(Vec<usize>, Vec<f64>)| {
        let total = POOL + sums[ranks.len()];
        let own_squares: f64 = ranks.iter().map(|&rank| weight(rank).powi(2)).sum();
        let squares = own_squares * (1.0 + shared).powi(2) + (squares - own_squares) * shared * shared;
        let effective = total * total / squares;
        // Where the residual of this rank stands: increasing, so that it can be searched.
        let stands = |rank: usize| {
            let mine = ranks.partition_point(|&r| r < rank);
            let share = shared + f64::from(u8::from(ranks.get(mine) == Some(&rank)));
            let middle = (shared * before[rank] + sums[mine] + 0.5 * share * weight(rank)) / total;
            position(middle, effective)
        };
        let at = |rank: usize| (stands(rank), size(order[rank]));
        let mut knots = [0.0; KNOTS];
        let mut inside: Option<usize> = None;
        for k in 0..KNOTS {
            let level = levels[k];
            // The first residual that stands at the level or above.
            let (mut first, mut last) = (0, n);
            while first < last {
                let rank = usize::midpoint(first, last);
                if stands(rank) < level {
                    first = rank + 1;
                } else {
                    last = rank;
                }
            }
            knots[k] = if first < n {
                inside = Some(k);
                let (low, high) = (if first == 0 { (0.0, 0.0) } else { at(first - 1) }, at(first));
                low.1 + (high.1 - low.1) * (level - low.0) / (high.0 - low.0)
            } else {
                let ratio = inside.map_or(1.0, |e| knots[e] / place(e));
                at(n - 1).1.max(place(k) * ratio)
            };
            if k > 0 {
                knots[k] = knots[k].max(knots[k - 1]);
            }
        }
        Quantiles::new(knots).expect("ascending, of finite residuals")
    };
    own.iter().map(column).collect()
}

impl From<Quantiles> for ColumnCalibration {
    fn from(quantiles: Quantiles) -> Self {
        let spread = quantiles.sd();
        // Residuals that are all zero have no shape.
        let shape = if spread > 1e-9 { quantiles.scaled(1.0 / spread) } else { Quantiles::normal() };
        Self { spread, quantiles: Arc::new(shape) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_distr::{Distribution, StandardNormal, StudentT};

    #[test]
    fn normal_residuals_give_the_normal_distribution_back() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        let z: Vec<(usize, f64)> = (0..200_000).map(|i| (i % 2, StandardNormal.sample(&mut rng))).collect();
        for q in calibrate(&z, &vec![1.0; 200_000], 2) {
            for k in 0..KNOTS {
                assert!((q.knots()[k] / place(k) - 1.0).abs() < 0.03, "{k}: {}", q.knots()[k]);
            }
            assert!((q.sd() - 1.0).abs() < 0.01);
        }
    }

    #[test]
    fn columns_with_many_residuals_have_their_own_and_others_the_pool() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(2);
        let heavy = StudentT::new(3.0).unwrap();
        let mut z: Vec<(usize, f64)> = (0..20_000).map(|_| (0, 2.0 * heavy.sample(&mut rng))).collect();
        z.extend((0..20_000).map(|_| (1, StandardNormal.sample(&mut rng))));
        let q = calibrate(&z, &vec![1.0; 40_000], 4);
        // The 97.5 % point of t with 3 degrees of freedom is 3.182.
        assert!((q[0].at(1.959_964) - 2.0 * 3.182).abs() < 0.2);
        assert!((q[1].at(1.959_964) - 1.96).abs() < 0.1);
        assert!(q[2] == q[3] && q[2].at(1.0) > q[1].at(1.0) && q[2].at(1.0) < q[0].at(1.0));
    }

    /// Intervals made of n residuals hold one more with the probability they state, on average, up to the last residual but one.
    /// (The last two lie far apart: what is on the line between them covers up to .007 too much.)
    #[test]
    fn intervals_of_few_residuals_cover_what_they_state() {
        use crate::filling::score::cdf;
        const TABLES: usize = 20_000;
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(4);
        let specified = |c: f64, n: f64| c * n / (n + 1.0);
        for n in [20, 60, 200] {
            let (mut own, mut of_specification) = ([0.0; KNOTS], [0.0; KNOTS]);
            for _ in 0..TABLES {
                let z: Vec<(usize, f64)> = (0..n).map(|_| (0, StandardNormal.sample(&mut rng))).collect();
                let weights = vec![1.0; n];
                let covered = |q: &Quantiles, sum: &mut [f64; KNOTS]| {
                    for (sum, knot) in sum.iter_mut().zip(q.knots()) {
                        *sum += (2.0 * cdf(*knot) - 1.0) / TABLES as f64;
                    }
                };
                covered(&calibrate(&z, &weights, 1)[0], &mut own);
                covered(&at_positions(&z, &weights, 1, specified)[0], &mut of_specification);
            }
            let reached = |k: &usize| (2.0 * cdf(place(*k)) - 1.0) * (n as f64 + 1.0) <= n as f64 - 1.0;
            for k in (0..KNOTS).filter(reached) {
                let level = 2.0 * cdf(place(k)) - 1.0;
                let (off, of_specification) = (own[k] - level, of_specification[k] - level);
                assert!(off.abs() < 0.003, "{n} residuals, {level}: covers {off} too much");
                let excess = of_specification * (n as f64 + 1.0);
                assert!(excess > 0.4, "{n}, {level}: {excess} of a residual too much");
            }
        }
    }

    /// The golden cases of the specification, by its positions; what it gets wrong is told by the test above.
    #[test]
    fn golden_quantile_functions() {
        for name in ["conformal_quantiles", "conformal_tiny"] {
            let path = format!("{}/tests/golden/part3/{name}.json", env!("CARGO_MANIFEST_DIR"));
            let case: serde_json::Value =
                serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
            let numbers = |v: &serde_json::Value| -> Vec<f64> {
                v.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
            };
            let columns = numbers(&case["input"]["column"]).into_iter().map(|j| j as usize);
            let residuals: Vec<(usize, f64)> = columns.zip(numbers(&case["input"]["z"])).collect();
            let n_columns = case["input"]["columns"].as_u64().unwrap() as usize;
            let weights = vec![1.0; residuals.len()];
            let found = at_positions(&residuals, &weights, n_columns, |c, n| c * n / (n + 1.0));
            let knots = numbers(&case["expected"]["knots"]);
            for (j, quantiles) in found.iter().enumerate() {
                for (x, expected) in knots.iter().zip(numbers(&case["expected"]["Q"][j])) {
                    assert!((quantiles.at(*x) - expected).abs() < 1e-9, "{name}, column {j} at {x}");
                }
            }
        }
    }

    /// A residual of weight 3 is three residuals; only what a finite number of them adds to each level differs.
    #[test]
    fn weights_are_counts() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(3);
        let z: Vec<(usize, f64)> = (0..4000).map(|i| (i % 3, StandardNormal.sample(&mut rng))).collect();
        let often = |i: usize| if z[i].1 > 0.5 { 3 } else { 1 };
        let weights: Vec<f64> = (0..z.len()).map(|i| f64::from(often(i))).collect();
        let repeated: Vec<(usize, f64)> = (0..z.len()).flat_map(|i| vec![z[i]; often(i) as usize]).collect();
        let found = calibrate(&z, &weights, 3);
        let expected = calibrate(&repeated, &vec![1.0; repeated.len()], 3);
        for (a, b) in found.iter().zip(&expected) {
            for k in 0..KNOTS - 2 {
                let (a, b) = (a.knots()[k], b.knots()[k]);
                assert!((a / b - 1.0).abs() < 0.03, "{k}: {a}, not {b}");
            }
        }
        assert!(found[0].at(1.0) > 1.1);
    }
}
