//! The laws of both variational methods, at the public boundary.

use crate::common::assert_close;
use crate::contract::on_threads;
use covary::data::{Shape, simulate};
use covary::infer::{Em, MeanField, ObjectiveKind, SpikeSlab, Structured, Termination, Warning};
use covary::model::Mixture;
use covary::{Coordinates, Dataset, Density, Error, Estimator, Fit, LinearGaussian, Matrix, Method, Spec};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

type Case = (&'static str, Method, fn(usize) -> Spec);

fn cases() -> [Case; 3] {
    [
        ("structured", Method::Structured(Structured::default()), Spec::ppca),
        ("mean-field", Method::MeanField(MeanField::default()), Spec::ppca),
        ("mean-field, diagonal noise", Method::MeanField(MeanField::default()), Spec::factor_analysis),
    ]
}

/// And that which selects columns instead of components.
fn all_cases() -> Vec<Case> {
    let selecting: Case = ("spike and slab", Method::SpikeSlab(SpikeSlab::default()), Spec::ppca);
    cases().into_iter().chain([selecting]).collect()
}

/// 80 × 8 with two clear components.
fn whole() -> Dataset {
    simulate::ppca(Shape { rows: 80, columns: 8, n_components: 2 }, 3).0
}

fn gappy() -> Dataset {
    simulate::hide(&whole(), 0.2, 4)
}

fn dataset(values: Matrix) -> Dataset {
    Dataset::new(values).expect("a valid table")
}

fn fit(method: &Method, data: &Dataset, spec: &Spec) -> Fit {
    method.fit(data, spec).expect("a well-posed table")
}

fn scores(fit: &Fit, data: &Dataset) -> Matrix {
    fit.model.transform(data, Coordinates::Posterior).expect("the model's own table")
}

#[test]
fn units_and_origin_change_neither_dimension_nor_scores() {
    for data in [whole(), gappy()] {
        for (name, method, spec) in cases() {
            let want = fit(&method, &data, &spec(4));
            assert_eq!(want.model.n_components(), 2, "{name}");
            for (factor, shift) in [(1e-4, 0.0), (1e6, 0.0), (1e6, 1e6), (1.0, 1e6)] {
                let values = Matrix::from_fn(data.n_rows(), data.n_columns(), |i, j| {
                    factor * data.values()[(i, j)] + shift
                });
                let moved = dataset(values);
                let got = fit(&method, &moved, &spec(4));
                assert_eq!(got.model.n_components(), 2, "{name}, × {factor} + {shift}");
                // A shift of 1e6 leaves ten digits of the data.
                let tolerance = if shift > 0.0 && factor == 1.0 { 1e-6 } else { 1e-8 };
                assert_close(
                    name,
                    scores(&got, &moved).as_slice(),
                    scores(&want, &data).as_slice(),
                    tolerance,
                );
                let value = got.report.objective.value + data.n_observed() as f64 * f64::ln(factor);
                assert_close("bound", &[value], &[want.report.objective.value], 1e-7);
            }
        }
    }
}

#[test]
fn the_order_of_rows_and_columns_does_not_matter() {
    let data = gappy();
    let (n, d) = (data.n_rows(), data.n_columns());
    let turned = dataset(Matrix::from_fn(n, d, |i, j| data.values()[(n - 1 - i, (j + 3) % d)]));
    for (name, method, spec) in cases() {
        let (got, want) = (fit(&method, &turned, &spec(3)), fit(&method, &data, &spec(3)));
        let mean: Vec<f64> = (0..d).map(|j| want.model.mean()[(j + 3) % d]).collect();
        assert_close(name, got.model.mean(), &mean, 1e-7);
        assert_close("bound", &[got.report.objective.value], &[want.report.objective.value], 1e-9);
    }
}

#[test]
fn turning_the_data_turns_the_isotropic_methods() {
    let data = whole();
    let turn = simulate::rotated(9, &[1.0; 8], 5).0;
    let axes =
        covary::infer::Spectral::default().fit(&turn, &Spec::ppca(7)).expect("a table").model.components();
    let mut basis: Vec<Vec<f64>> = axes.rows().map(<[f64]>::to_vec).collect();
    // The eighth axis: whatever the other seven leave of a vector.
    let mut last = vec![1.0, -2.0, 3.0, 0.5, 1.5, -1.0, 2.0, 0.1];
    for axis in &basis {
        let along: f64 = axis.iter().zip(&last).map(|(a, b)| a * b).sum();
        last.iter_mut().zip(axis).for_each(|(l, a)| *l -= along * a);
    }
    let length = last.iter().map(|v| v * v).sum::<f64>().sqrt();
    basis.push(last.iter().map(|v| v / length).collect());
    let turned = dataset(data.values().dot(&Matrix::from_rows(&basis)));
    for (name, method, spec) in &cases()[..2] {
        let (got, want) = (fit(method, &turned, &spec(4)), fit(method, &data, &spec(4)));
        assert_close(name, &[got.report.objective.value], &[want.report.objective.value], 1e-8);
        let noise = |f: &Fit| f.model.noise().variance(0);
        assert_close("σ²", &[noise(&got)], &[noise(&want)], 1e-6);
    }
}

#[test]
fn threads_and_repetition_leave_no_trace() {
    let data = gappy();
    for (name, method, spec) in all_cases() {
        let bits = |threads| {
            on_threads(threads, || {
                let fit = fit(&method, &data, &spec(3));
                let filled = fit.model.impute(&data).unwrap();
                let density = fit.model.log_density(&data).unwrap();
                let sds: Vec<f64> = filled.cells().iter().map(|c| c.sd).collect();
                [filled.values().as_slice(), &sds, &density, &fit.report.trace]
                    .concat()
                    .iter()
                    .map(|v| v.to_bits())
                    .collect::<Vec<_>>()
            })
        };
        assert_eq!(bits(1), bits(2), "{name}");
    }
}

#[test]
fn rows_of_only_gaps_change_nothing() {
    let data = gappy();
    let mut rows: Vec<Vec<f64>> = data.values().rows().map(<[f64]>::to_vec).collect();
    rows.insert(7, vec![f64::NAN; data.n_columns()]);
    let padded = dataset(Matrix::from_rows(&rows));
    for (name, method, spec) in cases() {
        let (got, want) = (fit(&method, &padded, &spec(3)), fit(&method, &data, &spec(3)));
        assert_close(name, got.model.loadings().as_slice(), want.model.loadings().as_slice(), 1e-9);
        assert_close("bound", &[got.report.objective.value], &[want.report.objective.value], 1e-12);
        assert!(got.model.log_density(&padded).unwrap()[7].abs() < 1e-12);
    }
}

/// A gap's mean and variance are those of draws of everything: parameters, scores, noise.
#[test]
fn filled_cells_have_the_moments_of_the_posterior() {
    let (whole, _) = simulate::ppca(Shape { rows: 25, columns: 5, n_components: 1 }, 8);
    let data = simulate::hide(&whole, 0.2, 9);
    for (name, method, spec) in all_cases() {
        let model = fit(&method, &data, &spec(1)).model;
        let cells = model.impute(&data).unwrap().cells().to_vec();
        let u = model.uncertainty().expect("a posterior");
        let posterior = model.posterior(&data).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let n = 40_000;
        let mut sums = vec![(0.0, 0.0); cells.len()];
        for _ in 0..n {
            let drawn = model.draw_parameters(&mut rng);
            // x from its own factor, independent of the parameters, as q has it.
            for (sum, cell) in sums.iter_mut().zip(&cells) {
                let e: [f64; 2] = std::array::from_fn(|_| {
                    rand_distr::Distribution::sample(&rand_distr::StandardNormal, &mut rng)
                });
                let x = posterior.mean[(cell.row, 0)] + posterior.covariance(cell.row)[(0, 0)].sqrt() * e[0];
                let noise = drawn.noise().variance(cell.column).sqrt();
                let value = drawn.mean()[cell.column] + drawn.loadings()[(cell.column, 0)] * x + noise * e[1];
                let off = value - cell.mean;
                sum.0 += off / f64::from(n);
                sum.1 += off * off / f64::from(n);
            }
        }
        for (cell, (mean, square)) in cells.iter().zip(&sums) {
            assert!(mean.abs() < 5.0 * cell.sd / f64::from(n).sqrt(), "{name}: {mean} of {}", cell.sd);
            let ratio = square / (cell.sd * cell.sd);
            assert!((ratio - 1.0).abs() < 0.05, "{name}: {ratio} ({u:?})");
        }
    }
}

/// The density of a row is the average over draws of the parameters, and the two ways to integrate agree.
#[test]
fn the_predictive_density_is_an_average_over_draws() {
    let data = gappy();
    for (name, method, spec) in all_cases() {
        let model = fit(&method, &data, &spec(2)).model;
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let draws = (0..3000).map(|_| model.draw_parameters(&mut rng)).collect();
        let want = Mixture::equal(draws).unwrap().log_density(&data).unwrap();
        let got = model.predictive_log_density(&data, 3000, 1).unwrap();
        let quick = model.log_density(&data).unwrap();
        for ((got, want), quick) in got.iter().zip(&want).zip(&quick) {
            // The average over parameters has an error of its own, of the same kind.
            assert!((got.value - want).abs() < 6.0 * got.standard_error + 0.06, "{name}: {got:?} {want}");
            assert!((quick - want).abs() < 0.35, "{name}: {quick} {want}");
        }
    }
}

/// Turning the loadings, or bringing them to canonical form, is no new knowledge.
#[test]
fn a_turn_of_the_components_changes_no_answer() {
    let data = gappy();
    for (name, method, spec) in all_cases() {
        let model = fit(&method, &data, &spec(2)).model;
        let (c, s) = (0.6, 0.8);
        let turned = model.rotated(&Matrix::from_rows(&[[c, -s], [s, c]]));
        for other in [turned.clone(), turned.canonical()] {
            let (got, want) = (other.impute(&data).unwrap(), model.impute(&data).unwrap());
            assert_close(name, got.values().as_slice(), want.values().as_slice(), 1e-9);
            let sds =
                |filled: &covary::model::Imputed| filled.cells().iter().map(|c| c.sd).collect::<Vec<_>>();
            assert_close("sd", &sds(&got), &sds(&want), 1e-9);
        }
    }
}

/// Units of single columns do not matter to standardized fits and to diagonal noise, and fresh rows have
/// the covariance the model states.
#[test]
fn standardized_fits_follow_the_units_of_columns() {
    let data = gappy();
    let factor = |j: usize| 10_f64.powi(j as i32 % 5 - 2);
    let values =
        Matrix::from_fn(data.n_rows(), data.n_columns(), |i, j| factor(j) * data.values()[(i, j)] + j as f64);
    let stretched = dataset(values);
    for (name, method, spec) in cases() {
        let spec = Spec { standardize: true, ..spec(3) };
        let (got, want) = (fit(&method, &stretched, &spec), fit(&method, &data, &spec));
        // Signs follow the largest loading, which is a matter of units.
        let sizes = |m: Matrix| m.as_slice().iter().map(|v| v.abs()).collect::<Vec<_>>();
        assert_close(name, &sizes(scores(&got, &stretched)), &sizes(scores(&want, &data)), 1e-7);
        let sds = |f: &Fit, t: &Dataset, unit: &dyn Fn(usize) -> f64| -> Vec<f64> {
            f.model.impute(t).unwrap().cells().iter().map(|c| c.sd / unit(c.column)).collect()
        };
        assert_close("sd", &sds(&got, &stretched, &factor), &sds(&want, &data, &|_| 1.0), 1e-7);
        let rows = want.model.sample(40_000, &mut ChaCha8Rng::seed_from_u64(3));
        let drawn = covary::CentralMoments::of(&dataset(rows)).unwrap().covariance();
        let stated = want.model.predictive_covariance();
        let largest = (0..8).map(|j| stated[(j, j)]).fold(0.0, f64::max);
        for (drawn, stated) in drawn.as_slice().iter().zip(stated.as_slice()) {
            // 128 draws of the parameters leave a few per cent.
            assert!((drawn - stated).abs() < 0.1 * largest, "{name}: {drawn} {stated}");
        }
    }
}

/// Vanishing hyper-parameters and a centered table: the optimum is known in closed form [M 2.4].
#[test]
fn mean_field_meets_the_closed_form() {
    let (data, _) = simulate::rotated(60, &[5.0, 4.0, 3.0, 1.0, 1.0, 1.0, 1.0, 1.0], 3);
    let spectrum = covary::infer::Spectral::default().spectrum(&data, 8, false).unwrap();
    let closed = covary::select::EmpiricalVb::from_spectrum(&spectrum).unwrap();
    let tiny = 1e-14;
    let method = MeanField {
        relevance_shape: tiny,
        relevance_rate: tiny,
        noise_shape: tiny,
        noise_rate: tiny,
        mean_precision: tiny,
        tolerance: 1e-13,
        max_iterations: 4000,
        ..MeanField::default()
    };
    let model = method.fit(&data, &Spec::ppca(7)).unwrap().model;
    assert_eq!(model.n_components(), closed.n_components);
    // The closed form works with N − 1 rows, ours with N and an uncertain mean.
    assert_close("σ²", &[model.noise().variance(0)], &[closed.noise_variance], 0.01);
    let lengths: Vec<f64> = (0..closed.n_components)
        .map(|i| model.loadings().column(i).iter().map(|w| w * w).sum::<f64>().sqrt())
        .collect();
    assert_close("loadings", &lengths, &closed.loading_lengths, 0.02);
}

/// With many rows the posterior is a point: the answers are those of maximum likelihood.
#[test]
fn long_tables_meet_maximum_likelihood() {
    let (whole, _) = simulate::ppca(Shape { rows: 4000, columns: 6, n_components: 2 }, 2);
    let data = simulate::hide(&whole, 0.1, 3);
    let ml = Em::default().fit(&data, &Spec::ppca(2)).unwrap().model;
    for (name, method, spec) in &cases()[..2] {
        let model = fit(method, &data, &spec(5)).model;
        assert_eq!(model.n_components(), 2, "{name}");
        assert_close(name, model.covariance().as_slice(), ml.covariance().as_slice(), 5e-3);
        let sds =
            |m: &LinearGaussian| m.impute(&data).unwrap().cells().iter().map(|c| c.sd).collect::<Vec<_>>();
        assert_close("sd", &sds(&model), &sds(&ml), 5e-3);
    }
}

#[test]
fn odd_tables_are_fitted_or_refused_in_words() {
    let nan = f64::NAN;
    for (name, method, spec) in cases() {
        // Two rows; one observed cell per row; more columns than rows; duplicated rows.
        let two = dataset(Matrix::from_rows(&[[1.0, 2.0, 0.5], [2.0, 1.0, 0.7]]));
        let single =
            dataset(Matrix::from_fn(
                12,
                3,
                |i, j| if i % 3 == j { i as f64 + (i * i % 5) as f64 } else { nan },
            ));
        let wide = simulate::ppca(Shape { rows: 5, columns: 12, n_components: 1 }, 1).0;
        let doubled = dataset(Matrix::from_fn(20, 4, |i, j| ((i / 2) * (j + 1)) as f64 % 7.0));
        for (what, data) in
            [("two rows", &two), ("one cell each", &single), ("wide", &wide), ("doubled", &doubled)]
        {
            let most = data.n_columns() - 1;
            let spec = Spec { allow_unidentified: true, ..spec(most) };
            let fit = fit(&method, data, &spec);
            assert!(fit.report.trace.iter().all(|v| v.is_finite()), "{name}, {what}");
            let filled = fit.model.impute(data).unwrap();
            assert!(filled.values().as_slice().iter().all(|v| v.is_finite()), "{name}, {what}");
            assert!(filled.cells().iter().all(|c| c.sd.is_finite() && c.sd > 0.0), "{name}, {what}");
        }
        let none = fit(&method, &gappy(), &spec(0));
        assert_eq!(none.model.n_components(), 0, "{name}");
        let constant = dataset(Matrix::from_fn(9, 5, |_, _| 4.0));
        assert!(matches!(method.fit(&constant, &spec(1)), Err(Error::AllConstant { .. })), "{name}");
        let empty = dataset(Matrix::from_fn(9, 5, |i, j| if j == 1 { nan } else { (i * i) as f64 }));
        assert!(matches!(method.fit(&empty, &spec(1)), Err(Error::EmptyColumn { .. })), "{name}");
        let prior = Spec { prior: covary::spec::Prior::weak(), ..spec(1) };
        assert!(matches!(method.fit(&gappy(), &prior), Err(Error::Unsupported { .. })), "{name}");
    }
    // Noise of pure chance has no components.
    let noise = simulate::ppca(Shape { rows: 200, columns: 8, n_components: 0 }, 6).0;
    for (name, method, spec) in cases() {
        assert_eq!(fit(&method, &noise, &spec(4)).model.n_components(), 0, "{name}");
    }
    let refused = Structured::default().fit(&gappy(), &Spec::factor_analysis(1)).unwrap_err();
    assert_eq!(refused.to_string(), "structured does not fit diagonal noise; use `mean-field`");
    let refused =
        MeanField { noise_rate: 0.0, ..MeanField::default() }.fit(&gappy(), &Spec::ppca(1)).unwrap_err();
    assert!(refused.to_string().contains("noise_rate"), "{refused}");
}

#[test]
fn a_fit_says_how_it_ended() {
    let data = gappy();
    let short =
        Structured { max_iterations: 3, ..Structured::default() }.fit(&data, &Spec::ppca(2)).unwrap().report;
    assert_eq!(
        (short.termination, short.objective.kind),
        (Termination::IterationLimit, ObjectiveKind::LowerBound)
    );
    assert!(matches!(short.warnings[0], Warning::StillRising { .. }));
    let mut seen = 0;
    let mut stop = |_: &covary::infer::Step| {
        seen += 1;
        if seen == 2 { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
    };
    let stopped = MeanField::default().fit_observed(&data, &Spec::ppca(2), &mut stop).unwrap();
    assert_eq!(stopped.report.termination, Termination::Interrupted);
    assert_eq!(stopped.report.trace.len(), 2);
    let done = Structured::default().fit(&data, &Spec::ppca(5)).unwrap();
    assert!(done.report.converged());
    assert_eq!(done.report.relevance.len(), done.model.n_components());
    assert!(done.report.relevance.windows(2).all(|pair| pair[0] <= pair[1]), "{:?}", done.report.relevance);
}

/// 95 % intervals of hidden cells, parameters' uncertainty included: 50 tables of 60 × 10, 3 components,
/// 30 % gaps. The plug-in intervals of EM are the yardstick.
#[test]
fn intervals_of_small_tables_hold_what_they_say() {
    let cover = |method: &Method| {
        let (mut inside, mut all) = (0_usize, 0_usize);
        for seed in 0..50 {
            let (whole, _) = simulate::ppca(Shape { rows: 60, columns: 10, n_components: 3 }, 500 + seed);
            let data = simulate::hide(&whole, 0.3, 900 + seed);
            let filled = fit(method, &data, &Spec::ppca(3)).of_training_rows().impute(&data).unwrap();
            for cell in filled.cells() {
                let (low, high) = cell.interval(0.95).unwrap();
                inside += usize::from((low..=high).contains(&whole.values()[(cell.row, cell.column)]));
                all += 1;
            }
        }
        inside as f64 / all as f64
    };
    let [structured, mean_field, plug_in] =
        ["structured", "mean-field", "em"].map(|name| cover(&Method::from_name(name).unwrap()));
    assert!((0.93..=0.97).contains(&structured), "{structured}");
    assert!((0.93..=0.97).contains(&mean_field), "{mean_field}");
    assert!(plug_in < structured, "{plug_in}");
}
