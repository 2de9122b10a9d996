//! Noise that remembers: against one Gaussian of all cells of all times, and what EM makes of it.

use crate::common::assert_close;
use crate::dynamics::{GAP, joint, random_case, simulated, yearly};
use covary::data::simulate;
use covary::dynamics::{DynamicEm, DynamicFactor, Season, Timeline};
use covary::infer::Termination;
use covary::{Dataset, Density, Estimator, LinearGaussian, Matrix, Noise, Spec};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const RHO: [f64; 3] = [0.8, -0.4, 0.95];

/// All cells of all steps as one row, and the Gaussian they are of: noise of a column has correlation `ρ^|t − u|` unless `apart` says
/// that it begins anew between two steps.
fn dense(
    model: &DynamicFactor,
    table: &Dataset,
    times: &Timeline,
    ahead: usize,
    apart: impl Fn(usize, usize, usize) -> bool,
) -> (LinearGaussian, Dataset) {
    let sequence = &times.sequences()[0];
    let (d, steps) = (table.n_columns(), sequence.rows().len() + ahead);
    let (mean, mut covariance) = joint(model, sequence.first(), steps);
    let rho = model.noise_memory().unwrap();
    for (t, u, j) in (0..steps).flat_map(|t| (0..steps).flat_map(move |u| (0..d).map(move |j| (t, u, j)))) {
        if t != u && !apart(t.min(u), t.max(u), j) {
            let shared = model.noise().variance(j) * rho[j].powi(t.abs_diff(u) as i32);
            covariance[(t * d + j, u * d + j)] += shared;
        }
    }
    let mut cells = vec![GAP; steps * d];
    for (t, row) in sequence.rows().iter().enumerate() {
        if let Some(row) = row {
            cells[t * d..(t + 1) * d].copy_from_slice(table.row(*row));
        }
    }
    let one_row = Dataset::new(Matrix::from_vec(1, steps * d, cells).unwrap()).unwrap();
    (LinearGaussian::from_covariance(mean, &covariance).unwrap(), one_row)
}

/// Density, filled cells and forecasts.
fn check(
    model: &DynamicFactor,
    table: &Dataset,
    times: &Timeline,
    apart: impl Fn(usize, usize, usize) -> bool,
) {
    let ahead = 4;
    let (whole, one_row) = dense(model, table, times, ahead, apart);
    let (d, sequence) = (table.n_columns(), &times.sequences()[0]);
    let got: f64 = model.log_density(table, times).unwrap().iter().sum();
    assert_close("log-likelihood", &[got], &[whole.log_likelihood(&one_row).unwrap()], 1e-9);
    let want = whole.gap_cells(&one_row).unwrap();
    let same = |step: usize, column: usize, mean: f64, sd: f64| {
        let same = want.iter().find(|c| c.column == step * d + column).unwrap();
        assert_close(&format!("cell {column} of step {step}"), &[mean, sd], &[same.mean, same.sd], 1e-8);
    };
    let filled = model.fill(table, times).unwrap();
    assert_eq!(filled.len(), table.n_gaps());
    for cell in filled {
        let step = sequence.rows().iter().position(|row| *row == Some(cell.row)).unwrap();
        same(step, cell.column, cell.mean, cell.sd);
    }
    for cell in &model.forecast(table, times, ahead).unwrap()[0].cells {
        same(sequence.rows().len() + cell.row, cell.column, cell.mean, cell.sd);
    }
}

#[test]
fn likelihood_filled_cells_and_forecasts_are_those_of_one_gaussian_of_all_cells() {
    for (seed, p) in (0..20).flat_map(|seed| [(seed, 1), (seed, 2)]) {
        let (model, table, times) = random_case(seed, p);
        check(&model.with_noise_memory(Some(RHO.to_vec())).unwrap(), &table, &times, |_, _, _| false);
    }
}

/// Gaps of 20 steps, at the start, within and at the end, are longer than the memory's reach of 12: cells up to 12 steps from an observed
/// one follow it, and nothing is shared across.
#[test]
fn noise_begins_anew_after_long_gaps() {
    let (model, ..) = random_case(5, 1);
    let model = model.with_noise_memory(Some(RHO.to_vec())).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let seen = |t: usize, j: usize| match j {
        0 => (20..30).contains(&t),
        1 => !(10..30).contains(&t),
        _ => t % 3 != 1,
    };
    let cells = Matrix::from_fn(50, 3, |t, j| {
        let value = 2.0 * rng.random::<f64>() - 1.0;
        if seen(t, j) { value } else { GAP }
    });
    let table = Dataset::new(cells).unwrap();
    // Pieces of noise that know nothing of each other: of column 0 the steps from 8 to 41, of column 1 those to 19 and from 20 on.
    let piece = |t: usize, j: usize| match j {
        0 if t < 8 => t,
        0 if t <= 41 => 100,
        0 => 200 + t,
        1 => usize::from(t >= 20),
        _ => 0,
    };
    let times = Timeline::regular(50);
    let (whole, one_row) = dense(&model, &table, &times, 0, |t, u, j| piece(t, j) != piece(u, j));
    let got: f64 = model.log_density(&table, &times).unwrap().iter().sum();
    assert_close("log-likelihood", &[got], &[whole.log_likelihood(&one_row).unwrap()], 1e-9);
    let want = whole.gap_cells(&one_row).unwrap();
    for cell in model.fill(&table, &times).unwrap() {
        let same = want.iter().find(|c| c.column == cell.row * 3 + cell.column).unwrap();
        assert_close(
            &format!("{:?}", (cell.row, cell.column)),
            &[cell.mean, cell.sd],
            &[same.mean, same.sd],
            1e-8,
        );
    }
}

#[test]
fn noise_without_memory_is_the_model_without_it() {
    for (seed, p) in (0..5).flat_map(|seed| [(seed, 1), (seed, 2)]) {
        let (plain, table, times) = random_case(seed, p);
        let model = plain.clone().with_noise_memory(Some(vec![0.0; 3])).unwrap();
        let densities = |m: &DynamicFactor| m.log_density(&table, &times).unwrap();
        assert_close("densities", &densities(&model), &densities(&plain), 1e-8);
        let cells = |m: &DynamicFactor| {
            let mut all = m.fill(&table, &times).unwrap();
            all.extend(m.forecast(&table, &times, 3).unwrap()[0].cells.clone());
            all.extend(m.forecast_estimated(&table, &times, 3, &(&table).into()).unwrap()[0].cells.clone());
            all.iter().flat_map(|c| [c.mean, c.sd]).collect::<Vec<_>>()
        };
        assert_close("cells", &cells(&model), &cells(&plain), 1e-8);
    }
}

/// Factors and noise with memories of their own.
fn remembering(rows: usize, seed: u64) -> Dataset {
    let table = simulated(rows, 6, 1, 0.9, seed);
    let mut rng = ChaCha8Rng::seed_from_u64(seed + 1);
    let mut noise = [0.0; 6];
    let mut out = table.values().clone();
    for t in 0..rows {
        for (j, noise) in noise.iter_mut().enumerate() {
            let rho = if j < 3 { 0.8 } else { 0.2 };
            let new = (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
            *noise = rho * *noise + (1.0_f64 - rho * rho).sqrt() * new;
            out[(t, j)] += *noise;
        }
    }
    Dataset::new(out).unwrap()
}

#[test]
fn em_never_falls_and_finds_the_memory_of_noise() {
    let table = simulate::hide(&remembering(300, 1), 0.2, 2);
    let em = DynamicEm { noise_memory: true, ..yearly() };
    for (em, spec) in [
        (em.clone(), Spec::factor_analysis(1)),
        (em.clone(), Spec::ppca(1)),
        (DynamicEm { accelerate: false, max_iterations: 40, ..em.clone() }, Spec::factor_analysis(1)),
        (DynamicEm { order: 2, trend: true, ..em.clone() }, Spec { standardize: true, ..Spec::ppca(1) }),
    ] {
        let fit = em.fit(&table, &spec).unwrap();
        if em.accelerate {
            assert_eq!(fit.report.termination, Termination::Converged, "{:?}", fit.report.warnings);
        }
        assert!(fit.report.trace.windows(2).all(|t| t[1] >= t[0] - 1e-9 * t[0].abs()), "{spec:?}");
        let rho = fit.model.noise_memory().unwrap();
        assert!(rho[..3].iter().all(|r| (0.6..0.9).contains(r)), "{rho:?}");
        assert!(rho[3..].iter().all(|r| (-0.05..0.45).contains(r)), "{rho:?}");
        let plain = DynamicEm { noise_memory: false, ..em }.fit(&table, &spec).unwrap();
        assert!(fit.report.objective.value > plain.report.objective.value + 50.0);
    }
}

#[test]
fn the_objective_is_the_density_of_the_table_in_its_own_units() {
    let table = simulate::hide(&remembering(120, 3), 0.2, 4);
    let em = DynamicEm { ridge: 0.0, noise_memory: true, ..yearly() };
    for spec in [Spec::ppca(1), Spec::factor_analysis(1), Spec { standardize: true, ..Spec::ppca(1) }] {
        let fit = em.fit(&table, &spec).unwrap();
        let density = fit.model.log_density(&table, &Timeline::regular(120)).unwrap();
        assert_close("log-likelihood", &[fit.report.objective.value], &[density.iter().sum()], 1e-9);
    }
}

/// At a maximum no parameter can be moved to gain: loadings, a coefficient, variances and memories one by one.
#[test]
fn a_fit_is_a_maximum_of_the_density() {
    let table = simulate::hide(&remembering(150, 5), 0.15, 6);
    let em = DynamicEm { ridge: 0.0, tolerance: 1e-9, noise_memory: true, season: Season::None, ..yearly() };
    let fit = em.fit(&table, &Spec::factor_analysis(1)).unwrap();
    let times = Timeline::regular(150);
    let density = |m: &DynamicFactor| m.log_density(&table, &times).unwrap().iter().sum::<f64>();
    let at = density(&fit.model);
    let m = &fit.model;
    let with = |w: Matrix, b: Matrix, psi: Vec<f64>, rho: Vec<f64>| {
        let (a, q) = (m.transition().clone(), m.innovation().clone());
        let moved =
            DynamicFactor::new(a, q, w, b, m.regressors().clone(), Noise::Diagonal(psi), m.start().clone());
        density(&moved.unwrap().with_noise_memory(Some(rho)).unwrap())
    };
    let (w, b) = (m.loadings().clone(), m.coefficients().clone());
    let (psi, rho) = (m.noise().variances(6), m.noise_memory().unwrap().to_vec());
    for step in [-1e-2, 1e-2] {
        for j in 0..6 {
            let mut moved = (w.clone(), b.clone(), psi.clone(), rho.clone());
            moved.0[(j, 0)] += step;
            assert!(with(moved.0, b.clone(), psi.clone(), rho.clone()) < at);
            moved.1[(j, 0)] += step;
            assert!(with(w.clone(), moved.1, psi.clone(), rho.clone()) < at);
            moved.2[j] *= 1.0 + step;
            assert!(with(w.clone(), b.clone(), moved.2, rho.clone()) < at);
            moved.3[j] += step;
            assert!(with(w.clone(), b.clone(), psi.clone(), moved.3) < at);
        }
    }
}

/// Rows drawn from a model have its memories, and gaps drawn given the rest spread as filled cells say.
#[test]
fn draws_remember() {
    let table = simulate::hide(&remembering(200, 7), 0.2, 8);
    let em = DynamicEm { noise_memory: true, season: Season::None, ..yearly() };
    let model = em.fit(&table, &Spec::factor_analysis(1)).unwrap().model;
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let again = Dataset::new(model.sample(0, 2000, &mut rng).unwrap()).unwrap();
    let fit = DynamicEm { init: Some(Box::new(model.clone())), ..em }
        .fit(&again, &Spec::factor_analysis(1))
        .unwrap();
    let (was, is) = (model.noise_memory().unwrap(), fit.model.noise_memory().unwrap());
    assert!(was.iter().zip(is).all(|(a, b)| (a - b).abs() < 0.1), "{was:?} {is:?}");
    let times = Timeline::regular(200);
    let cells = model.fill(&table, &times).unwrap();
    let (mut sum, draws) = (0.0, 20);
    for _ in 0..draws {
        let drawn = model.draw_gaps(&table, &times, &mut rng).unwrap();
        let z = |c: &covary::model::FilledCell| ((drawn[(c.row, c.column)] - c.mean) / c.sd).powi(2);
        sum += cells.iter().map(z).sum::<f64>() / cells.len() as f64;
    }
    let mean = sum / f64::from(draws);
    assert!((mean - 1.0).abs() < 0.05, "{mean}");
}

#[test]
fn what_cannot_be_a_memory_is_refused_by_name() {
    let (model, ..) = random_case(1, 1);
    let refused = model.clone().with_noise_memory(Some(vec![0.5])).unwrap_err();
    assert_eq!(refused, covary::Error::WrongLength { what: "memories of noise", expected: 3, got: 1 });
    for value in [1.0, -1.5, GAP] {
        let refused = model.clone().with_noise_memory(Some(vec![0.0, value, 0.0])).unwrap_err();
        assert!(matches!(refused, covary::Error::OutOfRange { name: "memory of noise", .. }), "{refused}");
    }
}
