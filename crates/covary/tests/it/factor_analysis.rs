//! Factor analysis: what a doubting statistician would ask.

use crate::common::{assert_close, shared_data};
use covary::data::{Shape, simulate};
use covary::infer::{
    ConditionalMaximization, Em, FactorReport, Fit, Newton, Spectral, Step, Termination, Warning,
};
use covary::model::{Rotation, RotationSearch, rotate};
use covary::{
    CentralMoments, Coordinates, Dataset, Density, Error, Estimator, LinearGaussian, Matrix, Method, Spec,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::ops::ControlFlow;

/// Numbers of a CSV file with a header, some of its columns.
fn read(file: &str, columns: std::ops::Range<usize>) -> Option<Matrix> {
    let text = std::fs::read_to_string(shared_data(file)?).unwrap();
    let rows: Vec<Vec<f64>> = text
        .lines()
        .skip(1)
        .map(|l| {
            l.split(',').collect::<Vec<_>>()[columns.clone()].iter().map(|v| v.parse().unwrap()).collect()
        })
        .collect();
    Some(Matrix::from_rows(&rows))
}

/// χ² as R's `factanal` gives it, which fits the same bounded model to the correlations.
fn check_chi_square(moments: &CentralMoments, q: usize, want: f64, df: i64) -> (Fit, FactorReport) {
    let fit = Newton::default().fit_moments(moments, &Spec::factor_analysis(q)).unwrap();
    assert_eq!(fit.report.termination, Termination::Converged);
    let report = FactorReport::new(&fit, moments).unwrap();
    assert_eq!(report.degrees_of_freedom, df);
    let got = report.chi_square.unwrap();
    // The reference is printed with three decimals and stops a little before the optimum.
    assert!((got - want).abs() < 2e-3, "{q} factors: got {got}, want {want}");
    (fit, report)
}

fn check_uniquenesses(fit: &Fit, moments: &CentralMoments, want: &[f64], tolerance: f64) {
    let s = moments.covariance();
    let got: Vec<f64> = fit.model.noise_variances().iter().enumerate().map(|(j, p)| p / s[(j, j)]).collect();
    assert_close("uniquenesses", &got, want, tolerance);
}

#[test]
fn the_ability_tests_agree_with_factanal() {
    let Some(s) = read("fa_covariances/ability_cov.csv", 1..7) else { return };
    let moments = CentralMoments::from_covariance(&s, 112).unwrap();
    check_chi_square(&moments, 1, 75.180, 9);
    let (fit, report) = check_chi_square(&moments, 2, 6.1066, 4);
    check_uniquenesses(&fit, &moments, &[0.455, 0.589, 0.218, 0.769, 0.052, 0.334], 6e-4);
    assert!((report.p_value.unwrap() - 0.191).abs() < 1e-3);
}

#[test]
fn the_harman_matrices_agree_with_factanal() {
    let Some(r) = read("fa_covariances/harman74_cor.csv", 1..25) else { return };
    let moments = CentralMoments::from_covariance(&r, 145).unwrap();
    check_chi_square(&moments, 4, 226.684, 186);
    check_chi_square(&moments, 5, 186.820, 166);
    let Some(r) = read("fa_covariances/harman23_cor.csv", 1..9) else { return };
    let moments = CentralMoments::from_covariance(&r, 305).unwrap();
    check_chi_square(&moments, 2, 75.738, 13);
    check_chi_square(&moments, 3, 22.809, 7);
}

#[test]
fn the_holzinger_swineford_tests_agree_with_factanal() {
    let Some(x) = read("holzinger_swineford/holzinger_swineford1939.csv", 6..15) else { return };
    let moments = CentralMoments::of(&Dataset::new(x).unwrap()).unwrap();
    let (fit, report) = check_chi_square(&moments, 3, 22.377, 12);
    let want = [0.5125, 0.7487, 0.5428, 0.2792, 0.2429, 0.3052, 0.5022, 0.4686, 0.5432];
    check_uniquenesses(&fit, &moments, &want, 1e-4);
    let rmsea = report.rmsea.unwrap();
    assert!(rmsea.low < rmsea.value && rmsea.value < rmsea.high && report.tli.unwrap() < report.cfi.unwrap());
}

fn toy(seed: u64) -> Dataset {
    simulate::factor_analysis(Shape { rows: 200, columns: 9, n_components: 3 }, seed).0
}

fn value(fit: &Fit) -> f64 {
    fit.report.objective.value
}

#[test]
fn likelihood_rises_with_factors_and_beats_ppca() {
    for seed in 0..5 {
        let data = toy(seed);
        let mut last = f64::NEG_INFINITY;
        for q in 0..=5 {
            let fit = Newton::default().fit(&data, &Spec::factor_analysis(q)).unwrap();
            let by_rows = fit.model.log_likelihood(&data).unwrap();
            assert_close("objective", &[value(&fit)], &[by_rows], 1e-11);
            assert!(value(&fit) >= last - 1e-9 * last.abs(), "{q} factors: {} after {last}", value(&fit));
            assert!(value(&fit) >= value(&Spectral::default().fit(&data, &Spec::ppca(q)).unwrap()) - 1e-9);
            assert!(fit.report.trace.windows(2).all(|w| w[1] >= w[0] - 1e-9 * (1.0 + w[0].abs())));
            last = value(&fit);
        }
    }
}

/// `(Cⱼⱼ − Sⱼⱼ)/ψⱼ`: 0 inside the bounds, not negative at the floor.
fn check_optimum(data: &Dataset, q: usize, seen: &mut [usize; 2]) {
    let fit = Newton::default().fit(data, &Spec::factor_analysis(q)).unwrap();
    assert_eq!(fit.report.termination, Termination::Converged);
    let (c, psi) = (fit.model.covariance(), fit.model.noise_variances());
    let s = CentralMoments::of(data).unwrap().covariance();
    for j in 0..data.n_columns() {
        let slope = (c[(j, j)] - s[(j, j)]) / psi[j];
        let at_floor = psi[j] <= 0.005 * s[(j, j)] * (1.0 + 1e-12);
        assert!(slope > -1e-7 && (at_floor || slope < 1e-7), "column {j}: {slope}");
        seen[usize::from(at_floor)] += 1;
    }
}

#[test]
fn an_optimum_meets_the_variances_or_sits_at_the_floor() {
    let mut seen = [0, 0];
    for seed in 0..20 {
        let shape = Shape { rows: 50, columns: 7, n_components: 1 };
        check_optimum(&simulate::factor_analysis(shape, seed).0, 2, &mut seen);
    }
    assert!(seen[0] > 50 && seen[1] > 3, "{seen:?}");
}

#[test]
fn more_columns_than_rows_are_fitted_thanks_to_the_floor() {
    let (data, _) = simulate::factor_analysis(Shape { rows: 15, columns: 40, n_components: 2 }, 5);
    check_optimum(&data, 2, &mut [0, 0]);
    let fit = Newton::default().fit(&data, &Spec::factor_analysis(2)).unwrap();
    let report = FactorReport::new(&fit, &CentralMoments::of(&data).unwrap()).unwrap();
    assert_eq!((report.discrepancy, report.chi_square, report.p_value), (None, None, None));
}

#[test]
fn factor_analysis_follows_the_units_of_the_columns() {
    let data = toy(1);
    let units = [1e-3, 2.0, 1.0, 1e4, 0.5, 7.0, 1e-6, 3.0, 10.0];
    let mut scaled = data.values().clone();
    scaled.scale_columns(&units);
    let spec = Spec::factor_analysis(3);
    let plain = Newton::default().fit(&data, &spec).unwrap();
    let fit = Newton::default().fit(&Dataset::new(scaled).unwrap(), &spec).unwrap();
    let ln_units: f64 = units.iter().map(|u| f64::ln(*u)).sum();
    assert_close("ℓ", &[value(&fit)], &[value(&plain) - 200.0 * ln_units], 1e-10);
    let mut c = plain.model.covariance();
    c.scale_rows(&units);
    c.scale_columns(&units);
    for (j, u) in units.iter().enumerate() {
        let want = plain.model.noise().variance(j) * u * u;
        assert!((fit.model.noise().variance(j) / want - 1.0).abs() < 1e-8);
        assert!((fit.model.covariance()[(j, 0)] / c[(j, 0)] - 1.0).abs() < 1e-8);
    }
}

#[test]
fn without_factors_the_noise_is_the_variance() {
    let data = toy(2);
    let moments = CentralMoments::of(&data).unwrap();
    let fit = Newton::default().fit_moments(&moments, &Spec::factor_analysis(0)).unwrap();
    let s = moments.covariance();
    let variances: Vec<f64> = (0..9).map(|j| s[(j, j)]).collect();
    assert_eq!(fit.model.noise_variances(), variances);
    let by_turns = ConditionalMaximization::default().fit(&data, &Spec::factor_analysis(0)).unwrap();
    assert_close("cm", &by_turns.model.noise_variances(), &variances, 1e-12);
    assert_close("ℓ", &[value(&fit)], &[fit.model.log_likelihood_of_moments(&moments).unwrap()], 1e-12);
}

#[test]
fn rows_of_only_gaps_change_nothing_and_other_gaps_are_refused() {
    let data = toy(3);
    let spec = Spec::factor_analysis(2);
    let mut padded = data.values().clone().into_vec();
    padded.extend([f64::NAN; 9]);
    let padded = Dataset::new(Matrix::from_vec(201, 9, padded).unwrap()).unwrap();
    let fit = |d: &Dataset| Newton::default().fit(d, &spec).unwrap().model;
    assert_eq!(fit(&padded), fit(&data));
    let holes = simulate::hide(&data, 0.1, 1);
    assert!(matches!(Newton::default().fit(&holes, &spec), Err(Error::HasGaps { method: "newton", .. })));
    assert_eq!(Method::recommended(&data, &spec).name(), "newton");
    assert_eq!(Method::recommended(&holes, &spec).name(), "em");
    assert_eq!(Method::from_name("cm").unwrap().name(), "cm");
}

#[test]
fn too_many_factors_are_refused_unless_asked_for() {
    let data = simulate::factor_analysis(Shape { rows: 100, columns: 6, n_components: 2 }, 4).0;
    let at = |q| Newton::default().fit(&data, &Spec::factor_analysis(q));
    assert!(at(3).unwrap().report.warnings.contains(&Warning::Saturated));
    let refused = at(4).unwrap_err();
    assert_eq!(refused, Error::NotIdentified { asked: 4, columns: 6, degrees_of_freedom: -3, max: 3 });
    let bold = Spec { allow_unidentified: true, ..Spec::factor_analysis(4) };
    assert_eq!(Em::default().fit(&data, &Spec::factor_analysis(4)).unwrap_err(), refused);
    assert!(Em::default().fit(&data, &bold).is_ok());
    let fit = Newton::default().fit(&data, &bold).unwrap();
    assert!(value(&fit) >= value(&at(3).unwrap()) - 1e-6);
    assert!(matches!(
        Newton::default().fit(&data, &Spec::ppca(2)),
        Err(Error::Unsupported { method: "newton", .. })
    ));
}

#[test]
fn an_observer_sees_every_step_and_may_stop() {
    let mut seen = Vec::new();
    let mut watch = |step: &Step| {
        seen.push(step.objective);
        if step.iteration == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let fit = Newton::default().fit_observed(&toy(6), &Spec::factor_analysis(3), &mut watch).unwrap();
    assert_eq!(fit.report.termination, Termination::Interrupted);
    assert_eq!(fit.report.trace[1..], seen);
}

#[test]
fn regression_scores_shrink_bartlett_scores() {
    let data = toy(7);
    let model = Newton::default().fit(&data, &Spec::factor_analysis(2)).unwrap().model;
    let regression = model.transform(&data, Coordinates::Posterior).unwrap();
    let bartlett = model.transform(&data, Coordinates::Bartlett).unwrap();
    // x̂_reg = G⁻¹(G − I) x̂_Bart, and the average of x̂ x̂ᵀ at the optimum is I − G⁻¹.
    let v = model.condition(&(0..9).collect::<Vec<_>>()).posterior_covariance();
    let shrink = Matrix::from_fn(2, 2, |i, j| f64::from(u8::from(i == j)) - v[(i, j)]);
    assert_close("shrinkage", regression.as_slice(), bartlett.dot(&shrink).as_slice(), 1e-10);
    let mut outer = regression.t_dot(&regression);
    outer.as_mut_slice().iter_mut().for_each(|v| *v /= 200.0);
    assert_close("average outer product", outer.as_slice(), shrink.as_slice(), 1e-8);
}

fn loadings() -> Matrix {
    Newton::default().fit(&toy(8), &Spec::factor_analysis(3)).unwrap().model.loadings().clone()
}

#[test]
fn rotations_keep_the_covariance() {
    let a = loadings();
    let data = toy(8);
    for rotation in [
        Rotation::Varimax { kaiser: true },
        Rotation::Varimax { kaiser: false },
        Rotation::Quartimax,
        Rotation::Equamax,
        Rotation::Promax { power: 4.0 },
        Rotation::Oblimin { gamma: 0.0 },
        Rotation::Oblimin { gamma: -0.5 },
    ] {
        let turned = rotate(&a, &rotation, &RotationSearch::default()).unwrap();
        let (l, phi) = (&turned.loadings, &turned.factor_correlations);
        assert_close("L", l.as_slice(), a.dot(&turned.transform).as_slice(), 1e-12);
        assert_close("L Φ Lᵀ", l.dot(phi).dot_t(l).as_slice(), a.dot_t(&a).as_slice(), 1e-9);
        (0..3).for_each(|k| assert_close("diag Φ", &[phi[(k, k)]], &[1.0], 1e-9));
        let model = LinearGaussian::new(a.clone(), vec![0.0; 9], covary::Noise::Isotropic(1.0)).unwrap();
        let scores = model.transform(&data, Coordinates::Posterior).unwrap();
        let same = turned.scores(&scores).unwrap().dot_t(l);
        assert_close("L R⁻¹x̂ = A x̂", same.as_slice(), scores.dot_t(&a).as_slice(), 1e-9);
    }
}

#[test]
fn varimax_beats_random_rotations() {
    let a = loadings();
    let criterion = |l: &Matrix| -> f64 {
        (0..3)
            .map(|k| {
                let squares: Vec<f64> = l.column(k).iter().map(|v| v * v).collect();
                let sum: f64 = squares.iter().sum();
                squares.iter().map(|s| s * s).sum::<f64>() - sum * sum / 9.0
            })
            .sum()
    };
    let best = rotate(&a, &Rotation::Varimax { kaiser: false }, &RotationSearch::default()).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for _ in 0..500 {
        // Three plane rotations reach every rotation of space.
        let mut l = a.clone();
        for (i, j) in [(0, 1), (1, 2), (0, 1)] {
            let (sin, cos) = rng.random_range(0.0..std::f64::consts::TAU).sin_cos();
            let mut r = Matrix::identity(3);
            (r[(i, i)], r[(j, j)], r[(i, j)], r[(j, i)]) = (cos, cos, -sin, sin);
            l = l.dot(&r);
        }
        assert!(criterion(&l) <= criterion(&best.loadings) + 1e-9);
    }
}

#[test]
fn degenerate_loadings_are_rotated_or_refused_but_never_panic() {
    let search = RotationSearch::default();
    let flat = Matrix::from_fn(5, 2, |i, k| if k == 0 { 1.0 + i as f64 } else { 0.0 });
    let varimax = rotate(&flat, &Rotation::Varimax { kaiser: true }, &search).unwrap();
    assert_close(
        "A Aᵀ",
        varimax.loadings.dot_t(&varimax.loadings).as_slice(),
        flat.dot_t(&flat).as_slice(),
        1e-9,
    );
    for oblique in [Rotation::Promax { power: 4.0 }, Rotation::Oblimin { gamma: 0.0 }] {
        assert!(matches!(rotate(&flat, &oblique, &search), Err(Error::Unsupported { .. })));
        for q in [0, 1] {
            let one = rotate(&flat.first_columns(q), &oblique, &search).unwrap();
            assert_eq!(one.factor_correlations, Matrix::identity(q));
        }
        let zeros = rotate(&Matrix::zeros(4, 2), &oblique, &search).unwrap();
        assert_eq!(zeros.loadings, Matrix::zeros(4, 2));
    }
}

#[test]
fn many_columns_are_fitted_from_the_leading_eigenpairs() {
    let table = |rows| simulate::factor_analysis(Shape { rows, columns: 260, n_components: 3 }, 9).0;
    check_optimum(&table(150), 3, &mut [0, 0]);
    check_optimum(&table(1000), 3, &mut [0, 0]);
    // One factor more than there are: the iterative eigensolver gives up and all pairs are found.
    check_optimum(&table(150), 4, &mut [0, 0]);
}

/// Where rounding in the value hides the last gains, a step that moves nothing must end the climb.
#[test]
fn newton_ends_at_a_heywood_maximum_it_can_no_longer_measure() {
    let (data, _) = simulate::factor_analysis(Shape { rows: 50, columns: 7, n_components: 2 }, 5);
    let fit = Newton { restarts: 0, ..Newton::default() }.fit(&data, &Spec::factor_analysis(2)).unwrap();
    assert_eq!(fit.report.termination, Termination::Converged);
    assert!(fit.report.n_iterations() < 20, "{} steps", fit.report.n_iterations());
}
