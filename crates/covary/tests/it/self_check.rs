//! Does the self-check tell the truth about what a fit can and cannot predict?

use covary::data::{Shape, simulate};
use covary::infer::{Em, FullCovariance, Observer, Step};
use covary::model::Mixture;
use covary::select::{SelfCheck, SelfCheckOptions, self_check};
use covary::{Dataset, Density, Error, Estimator, Fit, LinearGaussian, Matrix, Method, Spec};
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

fn check(table: &Dataset, spec: &Spec) -> SelfCheck {
    self_check(table, spec, &Em::default(), &SelfCheckOptions::default(), &mut ()).unwrap()
}

fn table() -> Dataset {
    simulate::hide(&simulate::ppca(Shape { rows: 300, columns: 8, n_components: 2 }, 1).0, 0.2, 2)
}

#[test]
fn intervals_cover_what_they_promise_on_a_simulated_table() {
    let (whole, truth) = simulate::factor_analysis(Shape { rows: 2000, columns: 15, n_components: 3 }, 1);
    let found = check(&simulate::hide(&whole, 0.1, 2), &Spec::factor_analysis(3));
    assert!((2600..=2700 + 100).contains(&found.n_hidden), "{}", found.n_hidden);
    for at in &found.coverage {
        assert!((at.share - at.level).abs() < 3.0 * at.standard_error, "{at:?}");
        assert!(at.standard_error < 0.012, "{at:?}");
    }
    // What a column shares with the others, its communality, is the most that can be predicted.
    for (j, skill) in found.skill_by_column.iter().enumerate() {
        let signal: f64 = truth.loadings().row(j).iter().map(|w| w * w).sum();
        let communality = signal / (signal + truth.noise().variance(j));
        let skill = skill.unwrap();
        assert!(
            skill < communality + 0.1 && skill > communality - 0.35,
            "column {j}: {skill}, {communality}"
        );
    }
    assert!((found.skill - (1.0 - (found.rmse / found.baseline_rmse).powi(2))).abs() < 1e-12);
    assert!((found.baseline_rmse - 1.0).abs() < 0.1, "{}", found.baseline_rmse);
}

#[test]
fn nothing_is_predicted_in_noise() {
    for seed in 0..5 {
        let (noise, _) = simulate::ppca(Shape { rows: 500, columns: 8, n_components: 0 }, seed);
        for q in [1, 3] {
            let found = check(&noise, &Spec::ppca(q));
            assert!(found.skill < 0.02, "{found:?}");
        }
        let means = check(&noise, &Spec::ppca(0));
        assert!(means.skill.abs() < 1e-6, "{means:?}");
    }
}

#[test]
fn units_do_not_matter() {
    let table = table();
    let scaled = Matrix::from_fn(300, 8, |i, j| table.row(i)[j] * 2_f64.powi(10 * j as i32 - 30));
    let spec = Spec { standardize: true, ..Spec::ppca(2) };
    let (a, b) = (check(&table, &spec), check(&Dataset::new(scaled).unwrap(), &spec));
    assert!((a.rmse - b.rmse).abs() < 1e-6 && (a.skill - b.skill).abs() < 1e-6, "{a:?} {b:?}");
}

#[test]
fn the_check_does_not_depend_on_threads_and_follows_its_seed() {
    let table = table();
    let run = |threads, seed| {
        let options = SelfCheckOptions { seed, ..SelfCheckOptions::default() };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| self_check(&table, &Spec::ppca(2), &Em::default(), &options, &mut ()).unwrap())
    };
    assert_eq!(run(1, 0), run(2, 0));
    assert_ne!(run(2, 0), run(2, 1));
}

/// Keeps the table it was given.
struct Witness(Mutex<Option<Dataset>>);

impl Estimator for Witness {
    type Model = LinearGaussian;

    fn fit_observed(&self, data: &Dataset, spec: &Spec, observer: &mut dyn Observer) -> Result<Fit, Error> {
        *self.0.lock().unwrap() = Some(data.clone());
        Em::default().fit_observed(data, spec, observer)
    }
}

#[test]
fn no_row_or_column_is_starved_and_what_cannot_be_spared_is_left_alone() {
    let whole = table();
    // Column 0 is constant, 1 has three cells, 2 has two values only, one of them once.
    let cell = |i: usize, j: usize| match j {
        0 => 4.0,
        1 if i >= 3 => f64::NAN,
        2 => f64::from(u8::from(i == 5)),
        _ => whole.row(i)[j],
    };
    let table = Dataset::new(Matrix::from_fn(300, 8, cell)).unwrap();
    for seed in 0..20 {
        let options = SelfCheckOptions { share: 0.5, seed, ..SelfCheckOptions::default() };
        let witness = Witness(Mutex::default());
        let found = self_check(&table, &Spec::ppca(2), &witness, &options, &mut ()).unwrap();
        let seen = witness.0.into_inner().unwrap().unwrap();
        assert_eq!(seen.n_gaps() - table.n_gaps(), found.n_hidden);
        assert!(seen.values().rows().all(|row| row.iter().any(|v| !v.is_nan())));
        assert_eq!((seen.n_observed_by_column()[0], seen.n_observed_by_column()[1]), (300, 3));
        assert!(seen.observed_variances()[2] > 0.0);
        assert!(seen.n_observed_by_column()[3..].iter().all(|&n| n >= 3));
        assert_eq!((found.skill_by_column[0], found.skill_by_column[1]), (None, None));
    }
}

#[test]
fn a_wide_table_hides_no_more_than_is_needed() {
    let cells = Matrix::from_fn(3000, 1000, |i, j| ((i * 31 + j * 17) % 101) as f64);
    let witness = Witness(Mutex::default());
    let table = Dataset::new(cells).unwrap();
    self_check(&table, &Spec::ppca(0), &witness, &SelfCheckOptions::default(), &mut ()).unwrap();
    assert_eq!(witness.0.into_inner().unwrap().unwrap().n_gaps(), 40_000);
}

#[test]
fn a_stopped_check_says_so() {
    let mut stop = |_: &Step| ControlFlow::Break(());
    let table = table();
    let stopped = self_check(&table, &Spec::ppca(2), &Em::default(), &SelfCheckOptions::default(), &mut stop);
    assert_eq!(stopped, Err(Error::Interrupted));
}

/// Goes on at every step; the flag says stop.
struct Flagged(AtomicBool);

impl Observer for Flagged {
    fn step(&mut self, _: &Step) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn stop_flag(&self) -> Option<&AtomicBool> {
        Some(&self.0)
    }
}

#[test]
fn the_filling_of_hidden_cells_is_stopped_by_the_flag() {
    let table = table();
    let check = |estimator: &dyn Estimator<Model = LinearGaussian>, spec: &Spec, flag: bool| {
        self_check(&table, spec, estimator, &SelfCheckOptions::default(), &mut Flagged(flag.into()))
    };
    // EM looks at its steps alone, so that it is the filling that stops.
    assert_eq!(check(&Em::default(), &Spec::ppca(2), true), Err(Error::Interrupted));
    assert!(check(&Em::default(), &Spec::ppca(2), false).is_ok());
    let full = Spec::ppca(table.n_columns() - 1);
    assert_eq!(check(&FullCovariance::default(), &full, true), Err(Error::Interrupted));
    assert!(check(&FullCovariance::default(), &full, false).is_ok());
    // Draws of parameters and models of a mixture fill one after the other.
    let model = Em::default().fit(&table, &Spec::ppca(2)).unwrap().model;
    let mixture = Mixture::equal(vec![model.clone(), model]).unwrap();
    assert_eq!(mixture.gap_cells_unless(&table, &true.into()), Err(Error::Interrupted));
    assert_eq!(mixture.gap_cells_unless(&table, &false.into()), mixture.gap_cells(&table));
}

#[test]
fn requests_that_cannot_be_met_are_refused() {
    let table = table();
    let refused = |options: SelfCheckOptions| {
        self_check(&table, &Spec::ppca(2), &Em::default(), &options, &mut ()).unwrap_err()
    };
    for share in [0.0, 1.0, f64::NAN] {
        let options = SelfCheckOptions { share, ..SelfCheckOptions::default() };
        assert!(matches!(refused(options), Error::OutOfRange { name: "share", .. }));
    }
    let options = SelfCheckOptions { levels: vec![0.5, 1.0], ..SelfCheckOptions::default() };
    assert!(matches!(refused(options), Error::OutOfRange { .. }));
    let lonely =
        Dataset::new(Matrix::from_rows(&[[1.0, f64::NAN], [f64::NAN, 3.0], [2.0, f64::NAN]])).unwrap();
    let options = SelfCheckOptions::default();
    let none = self_check(&lonely, &Spec::ppca(0), &Em::default(), &options, &mut ());
    assert_eq!(none, Err(Error::TooFewToHide { cells: 0, folds: 1 }));
    // A method for complete tables cannot be checked by making gaps.
    let spectral = Method::from_name("spectral").unwrap();
    let gaps = self_check(&table, &Spec::ppca(2), &spectral, &options, &mut ());
    assert!(matches!(gaps, Err(Error::HasGaps { .. })));
}

/// Counts the steps of the fits it watches.
fn steps_and_check(table: &Dataset, spec: &Spec, method: &Em) -> (usize, SelfCheck) {
    let mut steps = 0;
    let mut count = |_: &Step| {
        steps += 1;
        ControlFlow::Continue(())
    };
    let check = self_check(table, spec, method, &SelfCheckOptions::default(), &mut count).unwrap();
    (steps, check)
}

#[test]
fn starting_near_the_end_changes_the_method_and_not_the_answer() {
    let shape = Shape { rows: 1500, columns: 12, n_components: 3 };
    let (mut cold_steps, mut warm_steps) = (0, 0);
    for seed in 0..4 {
        let ppca = simulate::hide(&simulate::ppca(shape, seed).0, 0.15, 2);
        let factors = simulate::hide(&simulate::factor_analysis(shape, seed).0, 0.15, 2);
        for (table, spec) in [
            (&ppca, Spec::ppca(3)),
            (&ppca, Spec { standardize: true, ..Spec::ppca(3) }),
            (&factors, Spec::factor_analysis(3)),
            (&factors, Spec { standardize: true, ..Spec::factor_analysis(3) }),
        ] {
            let model = Em::default().fit(table, &spec).unwrap().model;
            let (cold, a) = steps_and_check(table, &spec, &Em::default());
            let (warm, b) = steps_and_check(table, &spec, &Em::default().from_model(&model));
            (cold_steps, warm_steps) = (cold_steps + cold, warm_steps + warm);
            assert!((a.rmse - b.rmse).abs() < 1e-6 && (a.skill - b.skill).abs() < 1e-6, "{a:?} {b:?}");
            assert_eq!((a.n_hidden, a.baseline_rmse), (b.n_hidden, b.baseline_rmse));
            let loose = Em { tolerance: 1e-4, ..Em::default().from_model(&model) };
            let (_, c) = steps_and_check(table, &spec, &loose);
            assert!((a.rmse - c.rmse).abs() < 1e-5, "{a:?} {c:?}");
            for (a, b) in a.coverage.iter().zip(&b.coverage) {
                // One cell at the very edge of its interval may change sides.
                assert!((a.share - b.share).abs() < 1e-3, "{a:?} {b:?}");
            }
        }
    }
    // Not in every table: where some direction is slow, the way back along it may be the longer one.
    assert!(10 * warm_steps < 9 * cold_steps, "{warm_steps} steps, not {cold_steps}");
}

#[test]
fn a_large_table_is_checked_on_some_of_its_rows() {
    let (whole, _) = simulate::ppca(Shape { rows: 30_000, columns: 20, n_components: 2 }, 1);
    let witness = Witness(Mutex::default());
    let found = self_check(&whole, &Spec::ppca(2), &witness, &SelfCheckOptions::default(), &mut ()).unwrap();
    let seen = witness.0.into_inner().unwrap().unwrap();
    assert_eq!((found.n_hidden, seen.n_gaps()), (40_000, 40_000));
    // A tenth of 20000 rows, from all over the table.
    let touched: Vec<usize> = (0..30_000).filter(|&i| seen.row(i).iter().any(|v| v.is_nan())).collect();
    assert!((16_000..=20_000).contains(&touched.len()), "{}", touched.len());
    assert!(touched.windows(2).all(|w| w[1] - w[0] < 20));
    for at in &found.coverage {
        assert!((at.share - at.level).abs() < 4.0 * at.standard_error && at.standard_error < 0.003, "{at:?}");
    }
}
