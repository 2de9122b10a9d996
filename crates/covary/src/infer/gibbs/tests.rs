//! Are the conditionals right, and do they add up to the posterior?

use super::random::{generalized_inverse_gaussian, standard_normal, von_mises};
use super::start::from_prior;
use super::sweep::{Beliefs, ChiSquared, Relevance, Sampler};
use super::table::{Parameters, Table};
use crate::infer::ChainSummary;
use crate::infer::golden::{self, flat, golden, matrix};
use crate::linalg::{dot, packed};
use crate::model::LinearGaussian;
use crate::{Dataset, Matrix, Noise, Spec};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde_json::Value;

#[track_caller]
fn check(what: &str, got: &[f64], want: &Value) {
    golden::check(what, got, want, 1e-9);
}

#[test]
fn golden_conditionals() {
    let case = golden("part2/gibbs_conditionals");
    let prior = &case["input"]["prior"];
    let number = |key: &str| prior[key].as_f64().unwrap();
    let beliefs = Beliefs {
        nu0: number("nu0"),
        s0_squared: number("s0sq"),
        kappa_mu: number("kappa_mu"),
        center: flat(&prior["m0"]),
        relevance: Relevance::Ard { shape: number("ard_shape"), rate: number("ard_rate") },
    };
    let expected = case["expected"]["cases"].as_array().unwrap();
    for (case, want) in case["input"]["cases"].as_array().unwrap().iter().zip(expected) {
        let spec = Spec { allow_unidentified: true, ..family(case["model"] == "ppca", 2) };
        let t = matrix(&case["T"]);
        let table = Table::new(&Dataset::new(t.clone()).unwrap(), &spec, true).unwrap();
        let sampler = Sampler { table: &table, beliefs: &beliefs, blocked: true };
        let (w, x) = (matrix(&case["state"]["W"]), matrix(&case["state"]["X"]));
        let sigma2 = flat(&case["state"]["s2"]);
        let noise = if sigma2.len() == 1 { vec![sigma2[0]; 4] } else { sigma2 };
        let mean = flat(&case["state"]["mu"]);
        let at = Parameters { w, mean, noise, alpha: flat(&case["state"]["alpha"]) };

        // J and h, by way of the model that the kernels of the sampler are shared with.
        let model =
            LinearGaussian::new(at.w.clone(), at.mean.clone(), Noise::Diagonal(at.noise.clone())).unwrap();
        let posterior = model.posterior(&Dataset::new(t.clone()).unwrap()).unwrap();
        for n in 0..t.n_rows() {
            let (j, h) = (matrix(&want["J"][n]), flat(&want["h"][n]));
            let (v, x) = (posterior.covariance(n), posterior.mean.row(n));
            let identity = v.dot(&j);
            for a in 0..2 {
                assert!((x[a] - dot(v.row(a), &h)).abs() < 1e-9);
                assert!((0..2).all(|b| (identity[(a, b)] - f64::from(u8::from(a == b))).abs() < 1e-9));
            }
        }
        // The table's rows are in the order of their patterns; so must the scores be.
        let data = Dataset::new(t).unwrap();
        let order: Vec<usize> = data.patterns().flat_map(|p| p.rows.to_vec()).collect();
        let z = Matrix::from_fn(order.len(), 3, |n, i| if i < 2 { x[(order[n], i)] } else { 1.0 });
        let regression = sampler.regression(&z, &at.alpha);
        for k in 0..4 {
            let l = packed::unpack(regression.factor(k), 3);
            let l = Matrix::from_fn(3, 3, |i, j| if j <= i { l[(i, j)] } else { 0.0 });
            check("Λ", l.dot_t(&l).as_slice(), &want["Lambda"][k]);
        }
        check("v̂", regression.v.as_slice(), &want["v_hat"]);
        let at_best = sampler.squares(&z, &regression.v);
        let check_noise = |what: &str, got: &[ChiSquared]| {
            check(what, &got.iter().map(|g| g.nu).collect::<Vec<_>>(), &want[what]["nu"]);
            let scale: Vec<f64> = got.iter().map(|g| g.nu_times_scale).collect();
            check(what, &scale, &want[what]["nu_times_scale"]);
        };
        check_noise("sigma2_blocked", &sampler.noise_blocked(&regression, &at_best));
        let here = sampler.squares(&z, &super::sweep::stacked(&at.w, &at.mean));
        check_noise("sigma2_unblocked", &sampler.noise_unblocked(&at, &here));
        let (shape, rates) = sampler.relevance(&at);
        check("shape", &[shape], &want["alpha"]["shape"]);
        check("rate", &rates, &want["alpha"]["rate"]);
    }
}

fn family(isotropic: bool, q: usize) -> Spec {
    Spec { allow_unidentified: true, ..if isotropic { Spec::ppca(q) } else { Spec::factor_analysis(q) } }
}

const ROWS: usize = 6;
const COLUMNS: usize = 4;
const COMPONENTS: usize = 2;

/// Cells that are missing where there are gaps: one row lacks most of its columns.
fn missing(row: usize, column: usize) -> bool {
    matches!((row, column), (2, 0) | (3 | 4, 1 | 3) | (5, 0..=2))
}

/// A prior whose moments exist, so that they can be compared.
fn beliefs(ard: bool) -> Beliefs {
    let relevance = if ard { Relevance::Ard { shape: 4.0, rate: 3.0 } } else { Relevance::Fixed(0.8) };
    Beliefs { nu0: 8.0, s0_squared: 0.7, kappa_mu: 0.5, center: vec![0.3, -0.2, 0.0, 1.0], relevance }
}

/// `T | W, μ, σ², X`
fn draw_table(at: &Parameters, z: &Matrix, gaps: bool, rng: &mut ChaCha8Rng) -> Matrix {
    Matrix::from_fn(z.n_rows(), COLUMNS, |n, k| {
        let fit = at.mean[k] + dot(at.w.row(k), &z.row(n)[..COMPONENTS]);
        let t = fit + at.noise[k].sqrt() * standard_normal(rng);
        if gaps && missing(n, k) { f64::NAN } else { t }
    })
}

fn draw_scores(rng: &mut ChaCha8Rng) -> Matrix {
    Matrix::from_fn(ROWS, COMPONENTS + 1, |_, i| if i < COMPONENTS { standard_normal(rng) } else { 1.0 })
}

fn functions(at: &Parameters, z: &Matrix, t: &Matrix) -> [f64; 13] {
    let signal: f64 = at.w.as_slice().iter().map(|w| w * w).sum();
    let of = |a: usize, b: usize| dot(at.w.row(a), at.w.row(b));
    let last = COLUMNS - 1;
    [
        at.noise[0].ln(),
        at.noise[last].ln().powi(2),
        at.mean[0],
        at.mean[0].powi(2).ln_1p(),
        at.mean[1] * at.mean[last] / (at.noise[1] * at.noise[last]).sqrt(),
        signal.ln(),
        of(0, 1) / (of(0, 0) * of(1, 1)).sqrt(),
        (of(2, last) / at.noise[last]).tanh(),
        (at.alpha[0] * (0..COLUMNS).map(|k| at.w[(k, 0)].powi(2)).sum::<f64>()).ln(),
        z[(0, 0)].powi(2),
        (0..ROWS).map(|n| z[(n, 1)]).sum::<f64>().powi(2),
        t[(0, 0)].powi(2).ln_1p(),
        (t[(0, 0)] * t[(0, 1)]).tanh(),
    ]
}

/// Geweke (2004): sweep, redraw the table, sweep, …: parameters and table must then be distributed as
/// if drawn from the prior. Every conditional and every move is on trial.
fn check_joint([isotropic, ard, gaps, blocked]: [bool; 4]) {
    const SWEEPS: usize = 24_000;
    let (beliefs, spec) = (beliefs(ard), family(isotropic, COMPONENTS));
    let label = format!("isotropic {isotropic}, ARD {ard}, gaps {gaps}, blocked {blocked}");
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let table_of = |t: Matrix| Table::new(&Dataset::new(t).unwrap(), &spec, true).unwrap();
    let first = Matrix::from_fn(ROWS, COLUMNS, |n, k| if gaps && missing(n, k) { f64::NAN } else { 0.0 });
    let mut table = table_of(first);
    let prior = |rng: &mut ChaCha8Rng, table: &Table| {
        let at = from_prior(&Sampler { table, beliefs: &beliefs, blocked }, COMPONENTS, rng);
        let z = draw_scores(rng);
        let t = draw_table(&at, &z, gaps, rng);
        (at, z, t)
    };
    let mut want = vec![Vec::new(); 13];
    for _ in 0..SWEEPS {
        let (at, z, t) = prior(&mut rng, &table);
        want.iter_mut().zip(functions(&at, &z, &t)).for_each(|(all, f)| all.push(f));
    }
    let (mut at, _, t) = prior(&mut rng, &table);
    table = table_of(t);
    let mut got = vec![Vec::new(); 13];
    for _ in 0..SWEEPS {
        let (z, _) = Sampler { table: &table, beliefs: &beliefs, blocked }.sweep(&mut at, false, &mut rng);
        let t = draw_table(&at, &z, gaps, &mut rng);
        got.iter_mut().zip(functions(&at, &z, &t)).for_each(|(all, f)| all.push(f));
        table = table_of(t);
    }
    for (f, (got, want)) in got.into_iter().zip(want).enumerate() {
        let (got, want) = (ChainSummary::of(&[got]).unwrap(), ChainSummary::of(&[want]).unwrap());
        let z = (got.mean - want.mean) / got.mcse.hypot(want.mcse);
        assert!(z.abs() < 4.0, "{label}: function {f} has z = {z:.2}, {got:?} and {want:?}");
    }
}

#[test]
fn sweeps_and_redrawn_tables_keep_the_prior() {
    (0..16_u8).into_par_iter().for_each(|i| check_joint([i & 1 > 0, i & 2 > 0, i & 4 > 0, i & 8 > 0]));
}

/// Simulation-based calibration (Talts et al. 2018): the rank of the truth among draws given its own
/// table is uniform.
fn check_calibration(isotropic: bool, ard: bool, gaps: bool) {
    const RUNS: usize = 400;
    const DRAWS: usize = 31;
    const THIN: usize = 10;
    const BINS: usize = 8;
    let (beliefs, spec) = (beliefs(ard), family(isotropic, COMPONENTS));
    let scalars = |at: &Parameters| {
        let signal: f64 = at.w.as_slice().iter().map(|w| w * w).sum();
        [at.noise[0], signal, dot(at.w.row(0), at.w.row(1)), at.mean[0]]
    };
    let run = |seed: usize| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed as u64);
        let blank = Table::new(&Dataset::new(Matrix::zeros(ROWS, COLUMNS)).unwrap(), &spec, true).unwrap();
        let prior = |rng: &mut ChaCha8Rng| {
            from_prior(&Sampler { table: &blank, beliefs: &beliefs, blocked: true }, COMPONENTS, rng)
        };
        let truth = prior(&mut rng);
        let t = draw_table(&truth, &draw_scores(&mut rng), gaps, &mut rng);
        let table = Table::new(&Dataset::new(t).unwrap(), &spec, true).unwrap();
        let sampler = Sampler { table: &table, beliefs: &beliefs, blocked: true };
        let mut at = prior(&mut rng);
        let mut ranks = [0; 4];
        for sweep in 0..10 * THIN + DRAWS * THIN {
            sampler.sweep(&mut at, false, &mut rng);
            if sweep >= 10 * THIN && sweep % THIN == 0 {
                let below = scalars(&at).into_iter().zip(scalars(&truth));
                ranks
                    .iter_mut()
                    .zip(below)
                    .for_each(|(rank, (drawn, truth))| *rank += usize::from(drawn < truth));
            }
        }
        ranks
    };
    let ranks: Vec<[usize; 4]> = (0..RUNS).into_par_iter().map(run).collect();
    for (s, name) in ["σ²", "tr WWᵀ", "w₁ᵀw₂", "μ₁"].iter().enumerate() {
        let mut counts = [0.0; BINS];
        for rank in &ranks {
            counts[rank[s] * BINS / (DRAWS + 1)] += 1.0;
        }
        let even = RUNS as f64 / BINS as f64;
        let chi_squared: f64 = counts.iter().map(|c| (c - even).powi(2) / even).sum();
        // The 99.9 % point of χ² with 7 degrees of freedom.
        assert!(
            chi_squared < 24.32,
            "{name}, isotropic {isotropic}, ARD {ard}: {chi_squared:.1}, {counts:?}"
        );
    }
}

#[test]
fn the_truth_has_a_uniform_rank_among_the_draws() {
    check_calibration(true, false, true);
    check_calibration(true, true, false);
    check_calibration(false, true, true);
}

/// By quadrature, over the range of parameters that chains meet.
#[test]
fn generalized_inverse_gaussian_has_its_moments() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for (p, a, b) in
        [(0.0, 1.0, 1.0), (-5.0, 3.0, 0.2), (28.0, 60.0, 40.0), (0.5, 0.02, 0.01), (-0.5, 30.0, 2e3)]
    {
        // In u = ln x the density is smooth and falls off on both sides.
        let ln_density = |u: f64| p * u - 0.5 * (a * u.exp() + b * (-u).exp());
        let grid: Vec<f64> = (0..40_000).map(|i| -20.0 + f64::from(i) * 1e-3).collect();
        let top = grid.iter().map(|u| ln_density(*u)).fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = grid.iter().map(|u| (ln_density(*u) - top).exp()).collect();
        let total: f64 = weights.iter().sum();
        let moment = |k: i32| grid.iter().zip(&weights).map(|(u, w)| w * u.powi(k)).sum::<f64>() / total;
        let (mean, variance) = (moment(1), moment(2) - moment(1).powi(2));
        let n = 40_000;
        let drawn: Vec<f64> = (0..n).map(|_| generalized_inverse_gaussian(p, a, b, &mut rng).ln()).collect();
        let got = drawn.iter().sum::<f64>() / f64::from(n);
        let spread = drawn.iter().map(|u| (u - got).powi(2)).sum::<f64>() / f64::from(n);
        assert!((got - mean).abs() < 4.0 * (variance / f64::from(n)).sqrt(), "{p} {a} {b}: {got}, {mean}");
        assert!((spread / variance - 1.0).abs() < 0.05, "{p} {a} {b}: {spread}, {variance}");
    }
}

#[test]
fn von_mises_has_its_moments() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for (a, b) in [(0.0, 0.0), (0.3, -0.2), (-4.0, 3.0), (100.0, 250.0)] {
        let grid: Vec<f64> = (0..100_000).map(|i| f64::from(i) * 2e-5 * std::f64::consts::PI).collect();
        let kappa = f64::hypot(a, b);
        let weight = |phi: f64| (a * phi.cos() + b * phi.sin() - kappa).exp();
        let total: f64 = grid.iter().map(|phi| weight(*phi)).sum();
        let n = 40_000;
        let drawn: Vec<f64> = (0..n).map(|_| von_mises(a, b, &mut rng)).collect();
        for f in [f64::cos, f64::sin, |phi: f64| (2.0 * phi).sin()] {
            let moment = |k: i32| grid.iter().map(|phi| weight(*phi) * f(*phi).powi(k)).sum::<f64>() / total;
            let (want, variance) = (moment(1), moment(2) - moment(1).powi(2));
            let got = drawn.iter().map(|phi| f(*phi)).sum::<f64>() / f64::from(n);
            assert!((got - want).abs() < 4.0 * (variance / f64::from(n)).sqrt(), "{a} {b}: {got}, {want}");
        }
    }
}

/// Concentrations at which the usual constants are differences of equal numbers, and numbers that are none.
#[test]
fn flat_and_broken_angles_are_drawn_too() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for kappa in [0.0, 1e-12, 3e-8, 1e-7, 1e-5, 9e-3, 1.1e-2, f64::NAN] {
        for _ in 0..2000 {
            assert!(von_mises(kappa, -0.5 * kappa, &mut rng).is_finite(), "{kappa}");
        }
    }
    assert!(!generalized_inverse_gaussian(1.0, f64::NAN, 1.0, &mut rng).is_finite());
}
