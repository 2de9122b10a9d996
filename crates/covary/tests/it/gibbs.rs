//! The sampler: reference posteriors, reproducibility, interruption, honest intervals.

use crate::common::{assert_close, dataset, flat, golden};
use crate::contract::on_threads;
use covary::data::{Shape, simulate};
use covary::infer::{ChainSummary, Em, Fit, Gibbs, GibbsState, ObjectiveKind, Step, Termination, Warning};
use covary::select::interval_coverage;
use covary::spec::Prior;
use covary::{Dataset, Density, Error, Estimator, LinearGaussian, Matrix, Noise, Spec};
use serde_json::Value;
use std::ops::ControlFlow;

/// Few draws, for questions that do not need many.
fn short() -> Gibbs {
    Gibbs { chains: 2, draws: 20, warm_up: 20, thin: 2, ..Gibbs::default() }
}

fn draws(fit: &Fit) -> &[LinearGaussian] {
    fit.draws.as_ref().expect("a sampler has draws").models()
}

fn small_table(seed: u64) -> Dataset {
    simulate::hide(&simulate::ppca(Shape { rows: 30, columns: 5, n_components: 2 }, seed).0, 0.15, seed)
}

/// Mean of a scalar over chains against a reference with its own Monte-Carlo error.
#[track_caller]
fn check_mean(name: &str, got: &ChainSummary, want: &Value) {
    let number = |key: &str| want[key].as_f64().expect("a number");
    let z = (got.mean - number("mean")) / got.mcse.hypot(number("mcse_mean"));
    assert!(z.abs() < 4.0, "{name}: z = {z:.2}, got {got:?}, want {want}");
}

#[test]
fn golden_posterior_moments() {
    const DRAWS: usize = 6000;
    let case = golden("part2", "gibbs_posterior");
    let prior = |key: &str| case["input"]["prior"][key].as_f64().expect("a number");
    let expected = case["expected"]["cases"].as_array().unwrap();
    for (case, want) in case["input"]["cases"].as_array().unwrap().iter().zip(expected) {
        let data = dataset(&case["T"]);
        let ard = flat(&case["ard"]);
        let gibbs = Gibbs {
            draws: DRAWS,
            thin: 1,
            ard: ard.len() == 2,
            kappa0: prior("kappa0"),
            ard_shape: ard[0],
            ard_rate: *ard.last().unwrap(),
            nu0: prior("nu0"),
            s0_squared: prior("s0sq"),
            kappa_mu: prior("kappa_mu"),
            raw: true,
            ..Gibbs::default()
        };
        let gibbs = if ard.len() == 2 { gibbs } else { Gibbs { ard_shape: 1.0, ard_rate: 1.0, ..gibbs } };
        let spec = if case["model"] == "ppca" { Spec::ppca(2) } else { Spec::factor_analysis(2) };
        let fit = gibbs.fit(&data, &Spec { allow_unidentified: true, ..spec }).unwrap();
        let filled: Vec<_> = draws(&fit).iter().map(|m| m.gap_cells(&data).unwrap()).collect();
        let over = |f: &dyn Fn(&LinearGaussian, usize) -> f64| -> ChainSummary {
            let all: Vec<f64> = draws(&fit).iter().enumerate().map(|(s, m)| f(m, s)).collect();
            ChainSummary::of(&all.chunks(DRAWS).map(<[f64]>::to_vec).collect::<Vec<_>>()).unwrap()
        };
        let mut slowest = f64::INFINITY;
        for (name, want) in want.as_object().unwrap() {
            // `C_01` is an entry, `fit_10_2` a cell.
            let parts: Vec<&str> = match name.strip_prefix("C_") {
                Some(entry) => entry.split("").collect(),
                None => name.split('_').collect(),
            };
            let index: Vec<usize> = parts.iter().filter_map(|part| part.parse().ok()).collect();
            let entry = |m: &LinearGaussian, j: usize, k: usize| {
                let signal: f64 =
                    m.loadings().row(j).iter().zip(m.loadings().row(k)).map(|(a, b)| a * b).sum();
                signal + if j == k { m.noise().variance(j) } else { 0.0 }
            };
            let signal = |m: &LinearGaussian| m.loadings().as_slice().iter().map(|w| w * w).sum::<f64>();
            let (got, within) = match (name.split('_').next().unwrap(), index.as_slice()) {
                ("ln", []) if name == "ln_tr_WWt" => (over(&|m, _| signal(m).ln()), 0.0),
                ("ln", []) => (over(&|m, _| m.noise().variance(0).ln()), 0.0),
                ("ln", [k]) => (over(&|m, _| m.noise().variance(*k).ln()), 0.0),
                ("C", [j, k]) => (over(&|m, _| entry(m, *j, *k)), 0.0),
                ("mu", [k]) => (over(&|m, _| m.mean()[*k]), 0.0),
                ("fit", [i, k]) => {
                    let c = filled[0].iter().position(|c| (c.row, c.column) == (*i, *k)).expect("a gap");
                    let variance =
                        |m: &LinearGaussian, s: usize| filled[s][c].sd.powi(2) - m.noise().variance(*k);
                    (over(&|_, s| filled[s][c].mean), over(&variance).mean)
                }
                _ => panic!("unknown quantity {name}"),
            };
            check_mean(name, &got, want);
            let sd = (got.sd * got.sd + within).sqrt();
            assert!((sd / want["sd"].as_f64().unwrap() - 1.0).abs() < 0.1, "{name}: sd {sd}, {want}");
            slowest = slowest.min(got.ess);
        }
        // The reference kept 2.5 times as many and had fewer effective draws of its slowest scalar.
        assert!(slowest > 1500.0, "{} effective draws of {}", slowest, 4 * DRAWS);
        assert!(fit.report.converged(), "{:?}", fit.report.warnings);
    }
}

#[test]
fn threads_leave_no_trace_in_any_draw() {
    // One table starts from the prior, the other from EM.
    for (rows, spec) in [(30, Spec::ppca(2)), (1500, Spec::factor_analysis(2))] {
        let shape = Shape { rows, columns: 15, n_components: 2 };
        let data = simulate::hide(&simulate::factor_analysis(shape, 1).0, 0.1, 2);
        let fit = |threads| on_threads(threads, || short().fit(&data, &spec).unwrap());
        let (one, two) = (fit(1), fit(2));
        assert_eq!(one.draws, two.draws);
        assert_eq!(one.report, two.report);
        let other = Gibbs { seed: 1, ..short() }.fit(&data, &spec).unwrap();
        assert_ne!(one.draws, other.draws);
    }
}

#[test]
fn draws_follow_the_units_of_the_table() {
    for spec in [Spec::ppca(2), Spec::factor_analysis(2), Spec { standardize: true, ..Spec::ppca(2) }] {
        for ard in [true, false] {
            let (data, gibbs) = (small_table(3), Gibbs { ard, ..short() });
            let plain = gibbs.fit(&data, &spec).unwrap();
            for (a, b) in [(1e-4, 0.0), (1e6, 1e6)] {
                let moved = Matrix::from_fn(30, 5, |i, j| a * data.row(i)[j] + b);
                let fit = gibbs.fit(&Dataset::new(moved).unwrap(), &spec).unwrap();
                for (got, want) in draws(&fit).iter().zip(draws(&plain)) {
                    let loadings: Vec<f64> = got.loadings().as_slice().iter().map(|w| w / a).collect();
                    assert_close("W", &loadings, want.loadings().as_slice(), 1e-7);
                    let mean: Vec<f64> = got.mean().iter().map(|m| (m - b) / a).collect();
                    assert_close("μ", &mean, want.mean(), 1e-7);
                    let noise: Vec<f64> = got.noise_variances().iter().map(|s| s / a / a).collect();
                    assert_close("σ²", &noise, &want.noise_variances(), 1e-7);
                }
                assert_close("E[α]", &fit.report.relevance, &plain.report.relevance, 1e-7);
            }
        }
    }
}

/// Stops a run after some rounds.
fn after(rounds: usize) -> impl FnMut(&Step) -> ControlFlow<()> {
    let mut seen = 0;
    move |_: &Step| {
        seen += 1;
        if seen == rounds { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn a_resumed_run_is_the_run_that_was_never_stopped() {
    let shape = Shape { rows: 1200, columns: 20, n_components: 2 };
    let data = simulate::hide(&simulate::factor_analysis(shape, 1).0, 0.1, 2);
    for (spec, ard) in [(Spec::factor_analysis(2), true), (Spec::ppca(3), false)] {
        let gibbs = Gibbs { ard, draws: 60, ..short() };
        let whole = gibbs.fit(&data, &spec).unwrap();
        for rounds in [1, 3] {
            let mut state = gibbs.begin(&data, &spec).unwrap();
            let part = gibbs.resume(&mut state, &data, &spec, &mut after(rounds)).unwrap();
            assert_eq!(part.report.termination, Termination::Interrupted);
            assert!(state.n_sweeps() > 0 && state.n_sweeps() < 20 + 60 * 2);
            let mut bytes = Vec::new();
            state.write(&mut bytes).unwrap();
            let mut state = GibbsState::read(bytes.as_slice()).unwrap();
            let fit = gibbs.resume(&mut state, &data, &spec, &mut ()).unwrap();
            assert_eq!(fit.draws, whole.draws);
            assert_eq!((fit.model, fit.report), (whole.model.clone(), whole.report.clone()));
        }
        // A run may also be made longer.
        let mut state = Gibbs { draws: 30, ..gibbs.clone() }.begin(&data, &spec).unwrap();
        Gibbs { draws: 30, ..gibbs.clone() }.resume(&mut state, &data, &spec, &mut ()).unwrap();
        assert_eq!(state.n_draws(), 60);
        assert_eq!(gibbs.resume(&mut state, &data, &spec, &mut ()).unwrap().draws, whole.draws);
    }
}

#[test]
fn a_run_stopped_at_once_says_where_its_chains_stand() {
    let shape = Shape { rows: 3000, columns: 20, n_components: 2 };
    let (data, _) = simulate::ppca(shape, 1);
    let mut steps = Vec::new();
    let mut observer = |step: &Step| {
        steps.push(*step);
        ControlFlow::Break(())
    };
    let fit = Gibbs::default().fit_observed(&data, &Spec::ppca(2), &mut observer).unwrap();
    assert_eq!((fit.report.termination, draws(&fit).len()), (Termination::Interrupted, 4));
    assert!(steps.len() == 1 && steps[0].objective.is_finite() && steps[0].iteration > 0);
}

#[test]
fn damaged_and_foreign_states_are_refused() {
    let (data, spec) = (small_table(1), Spec::ppca(2));
    let mut state = short().begin(&data, &spec).unwrap();
    let mut bytes = Vec::new();
    state.write(&mut bytes).unwrap();
    for cut in 0..bytes.len() {
        assert!(GibbsState::read(&bytes[..cut]).is_err(), "{cut} bytes");
    }
    for word in (16..bytes.len()).step_by(8).take(12) {
        let mut damaged = bytes.clone();
        damaged[word..word + 8].fill(0xff);
        assert!(GibbsState::read(damaged.as_slice()).is_err(), "word at {word}");
    }
    let refused = |got: Result<Fit, Error>| assert!(matches!(got, Err(Error::Unsupported { .. })), "{got:?}");
    refused(short().resume(&mut state, &small_table(2), &spec, &mut ()));
    refused(short().resume(&mut state, &data, &Spec::ppca(1), &mut ()));
    refused(Gibbs { seed: 9, ..short() }.resume(&mut state, &data, &spec, &mut ()));
    refused(short().fit(&data, &Spec { prior: Prior::weak(), ..Spec::ppca(2) }));
    refused(short().fit(&data, &Spec { noise_floor: Some(0.1), ..Spec::ppca(2) }));
    let out_of_range = |gibbs: Gibbs| matches!(gibbs.fit(&data, &spec), Err(Error::OutOfRange { .. }));
    assert!(out_of_range(Gibbs { chains: 0, ..short() }));
    assert!(out_of_range(Gibbs { thin: 0, ..short() }));
    assert!(out_of_range(Gibbs { nu0: 0.0, ..short() }));
    assert!(out_of_range(Gibbs { kappa_mu: f64::NAN, ..short() }));
}

#[test]
fn chains_that_have_not_met_say_so() {
    let data = small_table(1);
    for (gibbs, spec) in [
        (Gibbs { draws: 2, warm_up: 0, ..short() }, Spec::ppca(2)),
        (short(), Spec::ppca(2)),
        (short(), Spec::factor_analysis(2)),
    ] {
        let report = gibbs.fit(&data, &spec).unwrap().report;
        assert_eq!(report.termination, Termination::IterationLimit);
        assert!(report.warnings.iter().any(|w| matches!(w, Warning::NotMixed { .. })));
    }
    // The default is long enough for a table like this one.
    let report = Gibbs::default().fit(&data, &Spec::ppca(2)).unwrap().report;
    assert!(report.converged(), "{:?}", report.warnings);
}

#[test]
fn ard_names_the_components_that_count() {
    let (data, _) = simulate::ppca(Shape { rows: 100, columns: 8, n_components: 2 }, 4);
    let fit = Gibbs { draws: 200, ..Gibbs::default() }.fit(&data, &Spec::ppca(4)).unwrap();
    let relevance = &fit.report.relevance;
    assert_eq!(relevance.len(), 4);
    assert!(relevance[..2].iter().all(|a| relevance[2..].iter().all(|b| 2.0 * a < *b)), "{relevance:?}");
    assert_eq!(fit.report.objective.kind, ObjectiveKind::AverageLogLikelihood);
    let fixed = Gibbs { ard: false, ..short() }.fit(&data, &Spec::ppca(4)).unwrap();
    assert!(fixed.report.relevance.is_empty());
    assert_close(
        "W",
        fixed.model.canonical().loadings().as_slice(),
        fixed.model.loadings().as_slice(),
        1e-12,
    );
}

/// Without components the posterior is known: `σ² ~ χ⁻²` with ν and s² from the cells, and
/// `E[μ] = Σt / (N + κ_μ)` of the centered column, which is 0.
#[test]
fn without_components_the_posterior_is_the_closed_form() {
    let data = small_table(2);
    let fit = Gibbs { raw: true, kappa_mu: 1e-9, ..Gibbs::default() }.fit(&data, &Spec::ppca(0)).unwrap();
    let counts = data.n_observed_by_column().iter().map(|n| *n as f64);
    let squares: f64 = data.observed_variances().iter().zip(counts).map(|(v, n)| v * n).sum();
    let nu = 1.0 + data.n_observed() as f64;
    let noise = |m: &LinearGaussian| m.noise().variance(0);
    let all: Vec<f64> = draws(&fit).iter().map(noise).collect();
    let got = ChainSummary::of(&all.chunks(500).map(<[f64]>::to_vec).collect::<Vec<_>>()).unwrap();
    let want = (1.0 + squares) / (nu - 2.0);
    assert!((got.mean - want).abs() < 4.0 * got.mcse, "{got:?}, want {want}");
    assert!(matches!(fit.model.noise(), Noise::Isotropic(_)));
}

/// 50 tables of 60 × 10 with 3 components and 30 % gaps. The plug-in fit takes its parameters for
/// known and its intervals are too short; draws hold what the parameters leave open.
#[test]
#[allow(clippy::print_stderr, reason = "the figures of docs/gibbs.md")]
fn intervals_of_a_small_table_hold_their_share_of_hidden_cells() {
    const SEEDS: u64 = 50;
    let (mut sampled, mut plugged) = (0.0, 0.0);
    for seed in 0..SEEDS {
        let (whole, _) = simulate::ppca(Shape { rows: 60, columns: 10, n_components: 3 }, seed);
        let table = simulate::hide(&whole, 0.3, seed + 100);
        let gibbs = Gibbs { draws: 100, warm_up: 200, seed, ..Gibbs::default() };
        let fit = gibbs.fit(&table, &Spec::ppca(3)).unwrap();
        let filled = fit.draws.unwrap().of_training_rows().impute(&table).unwrap();
        sampled += interval_coverage(&whole, &filled, &[0.95]).unwrap()[0];
        let fit = Em::default().fit(&table, &Spec::ppca(3)).unwrap();
        plugged += interval_coverage(&whole, &fit.model.impute(&table).unwrap(), &[0.95]).unwrap()[0];
    }
    let (sampled, plugged) = (sampled / SEEDS as f64, plugged / SEEDS as f64);
    eprintln!("95 % intervals cover {sampled:.4} of hidden cells by draws, {plugged:.4} by the plug-in fit");
    assert!((0.93..=0.97).contains(&sampled), "{sampled}");
    assert!(plugged < sampled, "{plugged}");
}

/// The variance of the model's components is about that of its draws, surplus components or not.
#[test]
fn the_model_is_the_center_of_its_draws() {
    let (data, _) = simulate::rotated(100, &[5.0, 4.0, 3.0, 2.0, 1.0, 1.0, 1.0, 1.0], 4);
    for q in [3, 6] {
        let fit = Gibbs { draws: 200, ..Gibbs::default() }.fit(&data, &Spec::ppca(q)).expect("a table");
        let draws = fit.draws.expect("draws");
        let variance = |m: &LinearGaussian| m.total_variance();
        let mean = draws.models().iter().map(variance).sum::<f64>() / draws.models().len() as f64;
        let ratio = variance(&fit.model) / mean;
        assert!((0.95..=1.02).contains(&ratio), "{q} components: {ratio}");
    }
}

#[test]
fn priors_from_one_extreme_to_the_other_leave_a_model_or_an_error() {
    for (option, ard) in [
        ("ard_shape", true),
        ("ard_rate", true),
        ("kappa0", false),
        ("nu0", true),
        ("s0_squared", true),
        ("kappa_mu", true),
    ] {
        for value in ["1e-300", "1e-9", "1e-3", "1e3", "1e9", "1e300"] {
            let mut method = covary::Method::Gibbs(Gibbs { ard, ..short() });
            method.set(option, value).expect("an option of the sampler");
            match method.fit(&small_table(1), &Spec::ppca(3)) {
                Err(_) => {}
                Ok(fit) => assert!(
                    draws(&fit).iter().all(|m| m.loadings().as_slice().iter().all(|w| w.is_finite())),
                    "{option} = {value}"
                ),
            }
        }
    }
}
