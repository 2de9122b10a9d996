//! What did we not think of? Random shapes and gaps against the dense formulas.

use crate::common::assert_close;
use crate::dense::{self, Gaussian};
use covary::infer::LatentMoments;
use covary::{CentralMoments, Coordinates, Dataset, Density, LinearGaussian, Matrix, Noise};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use std::collections::BTreeMap;

/// A model and a table of its columns, both from a seed so that shrinking keeps them valid.
#[derive(Debug, Clone)]
struct Case {
    rows: usize,
    columns: usize,
    n_components: usize,
    diagonal: bool,
    /// Chance that a cell is missing.
    share: f64,
    seed: u64,
}

impl Case {
    fn model(&self) -> LinearGaussian {
        let d = self.columns;
        let noise = dense::normal(1, d, self.seed.wrapping_add(1)).into_vec();
        let noise: Vec<f64> = noise.iter().map(|v| 0.1 + v * v).collect();
        let noise = if self.diagonal { Noise::Diagonal(noise) } else { Noise::Isotropic(noise[0]) };
        let mean = dense::normal(1, d, self.seed.wrapping_add(2)).into_vec();
        LinearGaussian::new(dense::normal(d, self.n_components, self.seed), mean, noise).unwrap()
    }

    /// Gaps at random; among the first rows one without any value and one with a single value.
    fn table(&self) -> Dataset {
        let (n, d) = (self.rows, self.columns);
        let mut values = dense::normal(n, d, self.seed.wrapping_add(3));
        // P(|z| < share · 2) is near share, 0 at 0, and as good as any.
        let mask = dense::normal(n, d, self.seed.wrapping_add(4));
        for i in 0..n {
            for j in 0..d {
                if mask[(i, j)].abs() < 2.0 * self.share {
                    values[(i, j)] = f64::NAN;
                }
            }
        }
        if self.share > 0.0 {
            let kept = values[(1, 0)];
            values.row_mut(0).fill(f64::NAN);
            values.row_mut(1).fill(f64::NAN);
            values[(1, 0)] = if kept.is_nan() { 0.5 } else { kept };
        }
        Dataset::new(values).unwrap()
    }
}

fn cases() -> impl Strategy<Value = Case> {
    (2..=40_usize, 1..=8_usize).prop_flat_map(|(rows, columns)| {
        let share = prop_oneof![Just(0.0), 0.01..1.0_f64];
        (0..columns, any::<bool>(), share, 0..1_000_000_u64).prop_map(
            move |(n_components, diagonal, share, seed)| Case {
                rows,
                columns,
                n_components,
                diagonal,
                share,
                seed,
            },
        )
    })
}

/// The same cases on every run.
fn check(law: fn(&Case)) {
    let config =
        Config { cases: 200, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&cases(), |case| {
            law(&case);
            Ok(())
        })
        .unwrap();
}

#[test]
fn log_density_is_that_of_the_dense_gaussian() {
    check(|case| {
        let (model, data) = (case.model(), case.table());
        let dense = Gaussian::of(&model);
        let want: Vec<f64> = (0..case.rows).map(|i| dense.log_density(data.row(i))).collect();
        assert_close("ln p", &model.log_density(&data).unwrap(), &want, 1e-10);
        assert_close("ℓ", &[model.log_likelihood(&data).unwrap()], &[want.iter().sum()], 1e-10);
        let moments = LatentMoments::new(&model, &data).unwrap();
        assert_close("ℓ of the E-step", &[moments.log_likelihood()], &[want.iter().sum()], 1e-10);
        if data.is_complete() {
            let by_moments = model.log_likelihood_of_moments(&CentralMoments::of(&data).unwrap()).unwrap();
            assert_close("ℓ of the moments", &[by_moments], &[want.iter().sum()], 1e-10);
        }
    });
}

/// `x | t_O ~ N(V W_Oᵀ Ψ_O⁻¹ y_O, V)`, `V = (I + W_Oᵀ Ψ_O⁻¹ W_O)⁻¹`, term by term.
#[test]
fn the_posterior_of_the_scores_is_the_dense_one() {
    check(|case| {
        let (model, data, q) = (case.model(), case.table(), case.n_components);
        let posterior = model.posterior(&data).unwrap();
        for i in 0..case.rows {
            let seen = dense::observed(data.row(i));
            let w = model.loadings();
            let precision = Matrix::from_fn(q, q, |a, b| {
                let sum: f64 = seen.iter().map(|&j| w[(j, a)] * w[(j, b)] / model.noise().variance(j)).sum();
                sum + f64::from(u8::from(a == b))
            });
            let b = Matrix::from_fn(q, 1, |a, _| {
                let y = |j: usize| (data.row(i)[j] - model.mean()[j]) / model.noise().variance(j);
                seen.iter().map(|&j| w[(j, a)] * y(j)).sum()
            });
            let v = dense::solve(&precision, &Matrix::identity(q));
            assert_close("V", posterior.covariance(i).as_slice(), v.as_slice(), 1e-10);
            assert_close("x̂", posterior.mean.row(i), dense::solve(&precision, &b).as_slice(), 1e-10);
        }
    });
}

#[test]
fn filled_gaps_are_the_schur_complement() {
    check(|case| {
        let (model, data) = (case.model(), case.table());
        let dense = Gaussian::of(&model);
        let filled = model.impute(&data).unwrap();
        let mut cells = filled.cells().iter();
        for i in 0..case.rows {
            let want = dense.gaps(data.row(i));
            let given = model.condition(&dense::observed(data.row(i)));
            assert_eq!(given.gaps(), want.columns);
            let covariance = given.gap_covariance(true);
            assert_close("covariance", covariance.as_slice(), want.covariance.as_slice(), 1e-10);
            for (k, &column) in want.columns.iter().enumerate() {
                let cell = cells.next().unwrap();
                assert_eq!((cell.row, cell.column), (i, column));
                assert_close("mean", &[cell.mean], &[want.mean[k]], 1e-10);
                assert_close("variance", &[cell.sd * cell.sd], &[want.covariance[(k, k)]], 1e-10);
            }
        }
        assert!(cells.next().is_none());
    });
}

/// Hotelling's T² and the squared prediction error share out the Mahalanobis distance.
#[test]
fn distances_inside_and_outside_the_plane_add_up() {
    check(|case| {
        let (model, data) = (case.model(), case.table());
        let dense = Gaussian::of(&model);
        for (i, odd) in model.outlyingness(&data).unwrap().iter().enumerate() {
            let want = dense.mahalanobis(data.row(i));
            assert_close("Δ", &[odd.mahalanobis], &[want], 1e-10);
            if let Noise::Isotropic(s2) = model.noise() {
                let sum = odd.t_squared + odd.squared_prediction_error / s2;
                assert_close("T² + SPE/σ²", &[sum], &[want], 1e-8);
            }
            assert!(odd.t_squared >= -1e-10 && odd.squared_prediction_error >= 0.0);
        }
    });
}

#[test]
fn patterns_group_the_rows_by_their_gaps() {
    check(|case| {
        let data = case.table();
        let mut want: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
        for i in 0..case.rows {
            want.entry(dense::observed(data.row(i))).or_default().push(i);
        }
        let got: BTreeMap<Vec<usize>, Vec<usize>> =
            data.patterns().map(|p| (p.observed(), p.rows.to_vec())).collect();
        assert_eq!(got, want);
        assert_eq!(data.n_patterns(), want.len());
        let observed: usize = want.iter().map(|(seen, rows)| seen.len() * rows.len()).sum();
        assert_eq!((data.n_observed(), data.n_gaps()), (observed, case.rows * case.columns - observed));
        let empty = want.get(&Vec::new()).map_or(0, Vec::len);
        assert_eq!(data.n_informative_rows(), case.rows - empty);
        for j in 0..case.columns {
            let seen: Vec<f64> = data.values().column(j).into_iter().filter(|v| !v.is_nan()).collect();
            assert_eq!(data.n_observed_by_column()[j], seen.len());
            let mean = seen.iter().sum::<f64>() / seen.len() as f64;
            let variance = seen.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / seen.len() as f64;
            if !seen.is_empty() {
                assert_close("mean", &[data.observed_means()[j]], &[mean], 1e-12);
                assert_close("variance", &[data.observed_variances()[j]], &[variance], 1e-12);
            }
        }
    });
}

/// Also with more components than rows, columns without any value, and rows with one.
#[test]
fn an_em_step_never_lowers_the_likelihood() {
    check(|case| {
        let (model, data) = (case.model(), case.table());
        let before = Gaussian::of(&model).log_likelihood(&data);
        let moments = LatentMoments::new(&model, &data).unwrap();
        for expand in [false, true] {
            for step in [moments.maximize(expand), moments.maximize_fixed_mean(expand)] {
                // A step may leave no noise where there are fewer cells than parameters.
                let Ok(step) = step else { continue };
                let after = step.log_likelihood(&data).unwrap();
                assert!(after >= before - 1e-9 * (1.0 + before.abs()), "from {before} to {after}");
            }
        }
    });
}

#[test]
fn the_gradient_is_the_slope_of_the_likelihood() {
    check(|case| {
        let (model, data) = (case.model(), case.table());
        let gradient = LatentMoments::new(&model, &data).unwrap().gradient();
        let at = |w: &Matrix, mean: &[f64], psi: &[f64]| {
            let moved = LinearGaussian::new(w.clone(), mean.to_vec(), Noise::Diagonal(psi.to_vec())).unwrap();
            Gaussian::of(&moved).log_likelihood(&data)
        };
        let (w, mean, psi) = (model.loadings(), model.mean(), model.noise_variances());
        let h = 1e-5;
        let slope = |up: f64, down: f64| (up - down) / (2.0 * h);
        let j = case.seed as usize % case.columns;
        let by_mean = |h: f64| {
            let mut mean = mean.to_vec();
            mean[j] += h;
            at(w, &mean, &psi)
        };
        assert_close("∂μ", &[gradient.mean[j]], &[slope(by_mean(h), by_mean(-h))], 1e-5);
        let by_noise = |h: f64| {
            let mut psi = psi.clone();
            psi[j] += h;
            at(w, mean, &psi)
        };
        assert_close("∂ψ", &[gradient.noise[j]], &[slope(by_noise(h), by_noise(-h))], 1e-4);
        for k in 0..case.n_components {
            let by_loading = |h: f64| {
                let mut w = w.clone();
                w[(j, k)] += h;
                at(&w, mean, &psi)
            };
            let want = slope(by_loading(h), by_loading(-h));
            assert_close("∂W", &[gradient.loadings[(j, k)]], &[want], 1e-5);
        }
    });
}

#[test]
fn scatter_merges_to_that_of_all_rows() {
    check(|case| {
        let data = case.table();
        let complete: Vec<&[f64]> =
            (0..case.rows).map(|i| data.row(i)).filter(|r| r.iter().all(|v| !v.is_nan())).collect();
        if complete.is_empty() {
            return;
        }
        let rows = Matrix::from_rows(&complete);
        let cut = case.seed as usize % (complete.len() + 1) * case.columns;
        let part = |cells: &[f64]| {
            let mut moments = CentralMoments::new(case.columns);
            moments.add(cells);
            moments
        };
        let (mut forth, mut back) = (part(&rows.as_slice()[..cut]), part(&rows.as_slice()[cut..]));
        let (first, second) = (forth.clone(), back.clone());
        forth.merge(&second);
        back.merge(&first);
        let want = dense::moments(&rows);
        for merged in [forth, back] {
            assert_eq!(merged.n_rows(), complete.len());
            assert_close("mean", merged.mean(), &want.mean, 1e-12);
            assert_close("covariance", merged.covariance().as_slice(), want.covariance.as_slice(), 1e-12);
        }
    });
}

#[test]
fn precision_inverts_covariance_and_the_canonical_form_keeps_both() {
    check(|case| {
        let model = case.model();
        let product = model.covariance().dot(&model.precision());
        assert_close("C C⁻¹", product.as_slice(), Matrix::identity(case.columns).as_slice(), 1e-9);
        let (canonical, rotation) = model.canonical_with_rotation();
        assert_close("C", canonical.covariance().as_slice(), model.covariance().as_slice(), 1e-10);
        let turned = model.loadings().dot(&rotation);
        assert_close("W R", canonical.loadings().as_slice(), turned.as_slice(), 1e-10);
        let data = case.table();
        let scores = |m: &LinearGaussian| m.transform(&data, Coordinates::Posterior).unwrap();
        let moved = scores(&model).dot(&rotation);
        assert_close("Rᵀ x", scores(&canonical).as_slice(), moved.as_slice(), 1e-9);
    });
}

/// `V b` with an explicit `V = G⁻¹` alone loses the residuals where G is nearly singular along them:
/// without refinement, 1.7 nats at a noise of 1e-10 and a million at 1e-12.
#[test]
fn the_e_step_keeps_its_digits_in_rows_with_fewer_cells_than_components() {
    for s2 in [1e-4, 1e-6, 1e-8, 1e-10, 1e-12] {
        for cells in [6, 4, 3, 2, 1] {
            let model =
                LinearGaussian::new(dense::normal(6, 3, 1), vec![0.0; 6], Noise::Isotropic(s2)).unwrap();
            let (plane, noise) = (dense::normal(50, 3, 3).dot_t(model.loadings()), dense::normal(50, 6, 2));
            let cell = |i: usize, j: usize| {
                if (i + j) % 6 < cells { plane[(i, j)] + s2.sqrt() * noise[(i, j)] } else { f64::NAN }
            };
            let data = Dataset::new(Matrix::from_fn(50, 6, cell)).unwrap();
            let got = LatentMoments::new(&model, &data).unwrap().log_likelihood();
            let want = model.log_likelihood(&data).unwrap();
            // At 1e-12, ln |G| itself is known to ε/σ² only, row by row too: the spec's 1e-6 there.
            let tolerance = if s2 < 1e-10 { 1e-6 } else { 1e-9 };
            assert_close(&format!("σ² = {s2:e}, {cells} cells"), &[got], &[want], tolerance);
        }
    }
}
