//! Is the sampled posterior of the number of components the posterior?

use crate::common::{dataset, flat, golden};
use crate::dense::normal;
use covary::data::{Shape, simulate};
use covary::infer::{Observer, Spectral, Step};
use covary::select::{ComponentPosterior, MixingDoubt, ReversibleJump};
use covary::{Dataset, Error, Matrix};
use std::ops::ControlFlow;

/// 100 rows of 10 columns with deviations 5, 4, 3, 2 and six times 1.
fn toy_a(rows: usize, seed: u64) -> Dataset {
    simulate::rotated(rows, &[5.0, 4.0, 3.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], seed).0
}

fn quick() -> ReversibleJump {
    ReversibleJump { sweeps: 1000, warm_up: 200, ..ReversibleJump::default() }
}

#[track_caller]
fn assert_within_error(a: &ComponentPosterior, b: &ComponentPosterior) {
    assert_eq!(a.probabilities.len(), b.probabilities.len());
    for q in 0..a.probabilities.len() {
        let error = a.standard_errors[q].hypot(b.standard_errors[q]);
        let apart = (a.probabilities[q] - b.probabilities[q]).abs();
        assert!(apart <= 4.0 * error + 1e-3, "q = {q}: {a:?} {b:?}");
    }
}

/// Brute-force integration over the prior (3 million draws of directions and ratios, σ² in closed form).
#[test]
fn the_posterior_is_that_of_brute_force_integration() {
    let case = golden("part2", "rjmcmc_small");
    let (inputs, wanted) = (case["input"]["cases"].as_array().unwrap(), &case["expected"]["cases"]);
    for (k, input) in inputs.iter().enumerate() {
        let a1 = input["a1"].as_f64().unwrap();
        let sampler = ReversibleJump { a1, sweeps: 100_000, seed: 1, ..ReversibleJump::default() };
        let got = sampler.sample(&dataset(&input["T"])).unwrap();
        let (want, known_to) = (flat(&wanted[k]["p_q"]), flat(&wanted[k]["log_marginal_se"]));
        assert_eq!(got.probabilities.len(), want.len());
        for q in 0..want.len() {
            let error = got.standard_errors[q].hypot(want[q] * known_to[q]);
            let apart = (got.probabilities[q] - want[q]).abs();
            assert!(apart <= 4.0 * error, "case {k}, q = {q}: {got:?}, {want:?}");
            assert!(error < 0.005, "case {k}, q = {q}: a test that sees little, {error}");
        }
        assert!(got.doubt().is_none() && got.r_hat.unwrap() < 1.01, "{got:?}");
        assert!((0.2..0.9).contains(&got.acceptance.unwrap()), "{got:?}");
    }
}

#[test]
fn four_components_are_found_and_the_start_is_forgotten() {
    for seed in 1..=3 {
        let got = ReversibleJump::default().sample(&toy_a(100, seed)).unwrap();
        assert_eq!(got.mode(), 4, "{got:?}");
        assert!(got.probabilities[4] > 0.6 && got.r_hat.unwrap() < 1.03, "{got:?}");
        assert_eq!(got.doubt(), None);
        assert!((got.probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let mean: f64 = got.probabilities.iter().enumerate().map(|(q, p)| q as f64 * p).sum();
        assert!((got.mean - mean).abs() < 1e-9);
    }
}

#[test]
fn a_prior_that_likes_weak_components_finds_more() {
    let at = |a1: f64| ReversibleJump { a1, ..quick() }.sample(&toy_a(100, 1)).unwrap();
    let (strict, default, loose) = (at(0.02), at(0.1), at(1.0));
    assert!(strict.probabilities[4] > default.probabilities[4], "{strict:?} {default:?}");
    assert!(default.mean < loose.mean, "{default:?} {loose:?}");
    assert_eq!([strict.a1, default.a1, loose.a1], [0.02, 0.1, 1.0]);
}

#[test]
fn the_prior_of_q_multiplies_the_posterior() {
    let table = simulate::rotated(25, &[2.0, 1.5, 1.0, 1.0], 3).0;
    let sampler = ReversibleJump { sweeps: 20_000, ..ReversibleJump::default() };
    let uniform = sampler.sample(&table).unwrap();
    let prior = vec![3.0, 1.0, 2.0, 0.5];
    let tilted = ReversibleJump { prior: Some(prior.clone()), ..sampler }.sample(&table).unwrap();
    let mut want = uniform.clone();
    let total: f64 = prior.iter().zip(&uniform.probabilities).map(|(a, b)| a * b).sum();
    for q in 0..4 {
        want.probabilities[q] *= prior[q] / total;
        want.standard_errors[q] *= prior[q] / total;
    }
    assert_within_error(&tilted, &want);
}

#[test]
fn units_do_not_matter() {
    let table = toy_a(40, 2);
    let moved = Matrix::from_fn(40, 10, |i, j| 1e6 * table.row(i)[j] + 1e6);
    let got = quick().sample(&table).unwrap();
    assert_within_error(&quick().sample(&Dataset::new(moved).unwrap()).unwrap(), &got);
    // A power of two and no shift changes no digit.
    let doubled = Matrix::from_fn(40, 10, |i, j| 1024.0 * table.row(i)[j]);
    assert_eq!(quick().sample(&Dataset::new(doubled).unwrap()).unwrap(), got);
}

#[test]
fn rotated_columns_have_the_same_posterior() {
    let table = simulate::rotated(30, &[3.0, 2.0, 1.0, 1.0, 1.0], 4).0;
    let (sine, cosine) = 0.7_f64.sin_cos();
    let turned = Matrix::from_fn(30, 5, |i, j| match (table.row(i), j) {
        (row, 0) => cosine * row[0] - sine * row[3],
        (row, 3) => sine * row[0] + cosine * row[3],
        (row, j) => row[j],
    });
    let a = quick().sample(&table).unwrap();
    assert_within_error(&a, &quick().sample(&Dataset::new(turned).unwrap()).unwrap());
}

#[test]
fn the_same_bits_at_any_thread_count_and_other_draws_for_another_seed() {
    let table = toy_a(50, 5);
    let run = |threads: usize, seed: u64| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| ReversibleJump { seed, ..quick() }.sample(&table).unwrap())
    };
    let one = run(1, 0);
    assert_eq!(one, run(3, 0));
    let other = run(1, 1);
    assert_ne!(one.chain_means, other.chain_means);
    assert_within_error(&one, &other);
}

#[test]
fn fewer_rows_than_columns_and_columns_that_say_nothing() {
    let (wide, _) = simulate::ppca(Shape { rows: 8, columns: 12, n_components: 1 }, 1);
    let got = quick().sample(&wide).unwrap();
    assert_eq!(got.probabilities.len(), 8 - 2 + 1);
    assert!(got.probabilities.iter().all(|p| p.is_finite()), "{got:?}");

    // Two equal columns and a constant one: rank 4 of 6 columns, so at most 3 components.
    let base = simulate::ppca(Shape { rows: 30, columns: 4, n_components: 1 }, 2).0;
    let table = Matrix::from_fn(30, 6, |i, j| [base.row(i), &[base.row(i)[0], 1.0]].concat()[j]);
    let table = Dataset::new(table).unwrap();
    assert_eq!(quick().sample(&table).unwrap().probabilities.len(), 4);
    let asked = ReversibleJump { max_components: Some(4), ..quick() }.sample(&table);
    assert_eq!(asked, Err(Error::DegenerateNoise { asked: 4, rank: 4 }));

    // One column, or two rows: no component fits, and that is certain.
    for shape in
        [Shape { rows: 20, columns: 1, n_components: 0 }, Shape { rows: 2, columns: 5, n_components: 0 }]
    {
        let got = quick().sample(&simulate::ppca(shape, 1).0).unwrap();
        assert_eq!((got.probabilities.as_slice(), got.acceptance, got.r_hat), ([1.0].as_slice(), None, None));
        assert_eq!((got.mode(), got.doubt()), (0, None));
    }
}

/// Variances twelve orders of magnitude apart: nothing breaks and the strong columns are found.
#[test]
fn a_wide_range_of_variances() {
    let table = simulate::rotated(60, &[1e6, 1e3, 1.0, 1.0, 1.0, 1.0], 6).0;
    let got = quick().sample(&table).unwrap();
    assert_eq!(got.mode(), 2, "{got:?}");
    // The same spectrum except for the strong columns, which are found either way.
    let mild = simulate::rotated(60, &[100.0, 30.0, 1.0, 1.0, 1.0, 1.0], 6).0;
    assert!((quick().sample(&mild).unwrap().mean - got.mean).abs() < 0.2);
}

#[test]
fn chains_that_have_not_met_say_so() {
    let deviations: Vec<f64> = (1..=25).map(f64::from).collect();
    let table = simulate::rotated(50, &deviations, 1).0;
    let hasty = ReversibleJump { sweeps: 20, warm_up: 0, ..ReversibleJump::default() };
    let got = hasty.sample(&table).unwrap();
    let doubt = got.doubt().unwrap();
    assert!(matches!(doubt, MixingDoubt::LargeRHat { r_hat, .. } if r_hat > 1.05), "{got:?}");
    let stuck = ComponentPosterior { r_hat: None, chain_means: vec![2.0, 3.0], ..got };
    let words = "none left its number of components, which runs from 2 to 3";
    assert!(stuck.doubt().unwrap().to_string().contains(words));
    assert_eq!(ComponentPosterior { chain_means: vec![3.0, 3.0], ..stuck }.doubt(), None);
}

#[test]
fn refusals_name_the_bound() {
    let table = toy_a(9, 1);
    let error = |sampler: ReversibleJump| sampler.sample(&table).unwrap_err();
    let max = 7;
    assert_eq!(
        error(ReversibleJump { max_components: Some(8), ..quick() }),
        Error::TooManyComponents { asked: 8, rows: 9, columns: 10, max }
    );
    let names = [
        error(ReversibleJump { a1: 0.0, ..quick() }),
        error(ReversibleJump { a1: f64::NAN, ..quick() }),
        error(ReversibleJump { chains: 1, ..quick() }),
        error(ReversibleJump { sweeps: 3, ..quick() }),
        error(ReversibleJump { prior: Some(vec![0.0; 8]), ..quick() }),
    ]
    .map(|e| match e {
        Error::OutOfRange { name, .. } => name,
        other => panic!("{other:?}"),
    });
    assert_eq!(names, ["a1", "a1", "chains", "sweeps", "prior"]);
    let short = error(ReversibleJump { prior: Some(vec![1.0; 3]), ..quick() });
    assert!(matches!(short, Error::WrongLength { expected: 8, got: 3, .. }));

    let gaps = simulate::hide(&table, 0.1, 1);
    assert!(matches!(quick().sample(&gaps), Err(Error::HasGaps { method: "reversible jump", .. })));
    let constant = Dataset::new(Matrix::from_fn(9, 3, |_, j| j as f64)).unwrap();
    assert_eq!(quick().sample(&constant), Err(Error::AllConstant { columns: 3 }));
}

#[test]
fn the_observer_sees_every_round_and_may_stop() {
    struct Count(Vec<usize>, usize);
    impl Observer for Count {
        fn step(&mut self, step: &Step) -> ControlFlow<()> {
            assert!((0.0..=9.0).contains(&step.objective));
            self.0.push(step.iteration);
            if self.0.len() < self.1 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        }
    }
    let sampler = ReversibleJump { sweeps: 120, warm_up: 70, ..ReversibleJump::default() };
    let mut all = Count(Vec::new(), usize::MAX);
    let table = toy_a(30, 1);
    sampler.sample_observed(&table, &mut all).unwrap();
    assert_eq!(all.0, [50, 70, 120, 170, 190]);
    let mut two = Count(Vec::new(), 2);
    assert_eq!(sampler.sample_observed(&table, &mut two), Err(Error::Interrupted));
    assert_eq!(two.0, [50, 70]);
}

/// Marginal likelihoods of q = 0, 1, 2 as averages over prior draws of directions and ratios, with σ²
/// in closed form: `φ^(ν/2) …  [1 − Σ (1 − φᵢ) sᵢ / tr A]^(−νd/2)`. Feasible where the columns are
/// nearly noise, in any dimension; the golden cases have at most three columns.
#[test]
fn ten_columns_of_near_noise_against_prior_draws() {
    let (n, d, a1, draws) = (15, 10, 0.5, 400_000);
    let table = simulate::rotated(n, &[1.6, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 3).0;
    let spectrum = Spectral::default().spectrum(&table, d, false).unwrap();
    let total: f64 = spectrum.eigenvalues.iter().sum();
    let a: Vec<f64> = spectrum.eigenvalues.iter().map(|l| l / total).collect();
    let nu = (n - 1) as f64;

    let normals = normal(2 * draws, d, 1);
    // φ = u^(1/a₁), where u = exp(−(z₁² + z₂²)/2) is uniform.
    let uniforms = normal(2 * draws, 2, 2);
    let ratio = |k: usize| (-0.5 * uniforms.row(k).iter().map(|z| z * z).sum::<f64>() / a1).exp();
    let unit = |x: &[f64]| {
        let length = x.iter().map(|x| x * x).sum::<f64>().sqrt();
        x.iter().map(|x| x / length).collect::<Vec<f64>>()
    };
    let mut weights = [Vec::new(), Vec::new()];
    for k in 0..draws {
        let u = unit(normals.row(2 * k));
        let along: f64 = u.iter().zip(normals.row(2 * k + 1)).map(|(x, y)| x * y).sum();
        let v: Vec<f64> = normals.row(2 * k + 1).iter().zip(&u).map(|(y, x)| y - along * x).collect();
        let (mut explained, mut ln_weight) = (0.0, 0.0);
        for (q, axis) in [u, unit(&v)].iter().enumerate() {
            let phi = ratio(2 * k + q);
            explained += (1.0 - phi) * axis.iter().zip(&a).map(|(x, a)| a * x * x).sum::<f64>();
            ln_weight += 0.5 * nu * phi.ln();
            weights[q].push((ln_weight - 0.5 * nu * d as f64 * (-explained).ln_1p()).exp());
        }
    }
    let marginals: Vec<(f64, f64)> = weights
        .iter()
        .map(|w| {
            let mean = w.iter().sum::<f64>() / draws as f64;
            let variance = w.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws as f64;
            (mean, (variance / draws as f64).sqrt())
        })
        .collect();
    let sampler = ReversibleJump { a1, max_components: Some(2), sweeps: 20_000, ..ReversibleJump::default() };
    let got = sampler.sample(&table).unwrap();
    let evidence = 1.0 + marginals[0].0 + marginals[1].0;
    for (q, (marginal, error)) in [(1.0, 0.0), marginals[0], marginals[1]].into_iter().enumerate() {
        let (want, error) =
            (marginal / evidence, error / evidence + marginals[1].1 * marginal / evidence.powi(2));
        let apart = (got.probabilities[q] - want).abs();
        assert!(apart < 4.0 * error.hypot(got.standard_errors[q]), "q = {q}: {want} ± {error}, {got:?}");
        assert!(error < 0.03 && want > 0.05, "q = {q}: a test that sees little, {want} ± {error}");
    }
}
