//! Does the choice of dimension find the truth, and by fair means?

use covary::data::{Shape, simulate};
use covary::infer::{Em, Observer, Spectral};
use covary::select::{
    ChoiceRule, Criteria, HeldOutOptions, ParallelAnalysis, PilotSearch, Purpose, Score,
    choose_by_held_out_cells, folds_of_cells, held_out_cells, held_out_cells_observed, hold_out_at,
    information_criteria, interval_coverage, pool,
};
use covary::{CentralMoments, Dataset, Density, Error, Estimator, Fit, LinearGaussian, Matrix, Spec};
use statrs::distribution::{Binomial, DiscreteCDF};
use std::ops::ControlFlow;
use std::sync::Mutex;

const SEEDS: u64 = 20;

/// The second setting of the guidance [M 1.8.5], where every method does well.
fn guidance_table(seed: u64) -> Dataset {
    simulate::ppca(Shape { rows: 200, columns: 8, n_components: 2 }, seed).0
}

/// The same with a fifth of its cells hidden.
fn with_gaps(seed: u64) -> Dataset {
    simulate::hide(&guidance_table(seed), 0.2, seed)
}

fn criteria(data: &Dataset) -> Criteria {
    let spectrum = Spectral::default().spectrum(data, data.n_columns(), false).unwrap();
    Criteria::from_spectrum(&spectrum).unwrap()
}

fn times_right(truth: usize, choose: impl Fn(u64) -> usize) -> usize {
    (0..SEEDS).filter(|&seed| choose(seed) == truth).count()
}

/// Cells that the fold hides from the table.
fn hidden(table: &Dataset, fold: &Dataset) -> Vec<usize> {
    let (full, visible) = (table.values().as_slice(), fold.values().as_slice());
    (0..full.len()).filter(|&at| visible[at].is_nan() && !full[at].is_nan()).collect()
}

fn on_threads<T: Send>(n: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap().install(work)
}

#[test]
fn evidence_and_bic_find_two_components_in_most_tables() {
    let chosen = |seed| criteria(&guidance_table(seed)).chosen();
    assert!(times_right(2, |seed| chosen(seed).evidence.unwrap()) >= 18);
    assert!(times_right(2, |seed| chosen(seed).bic) >= 18);
    assert!(times_right(2, |seed| chosen(seed).aic) >= 14);
}

#[test]
fn evidence_finds_no_components_in_white_noise() {
    let white = |seed| simulate::ppca(Shape { rows: 200, columns: 8, n_components: 0 }, seed).0;
    assert!(times_right(0, |seed| criteria(&white(seed)).chosen().evidence.unwrap()) >= 18);
}

#[test]
fn training_likelihood_never_falls_with_the_number_of_components() {
    for (rows, columns) in [(200, 8), (12, 20)] {
        let (table, _) = simulate::factor_analysis(Shape { rows, columns, n_components: 2 }, 1);
        let by_q = criteria(&table).by_n_components;
        assert!(by_q.windows(2).all(|w| w[1].information.log_likelihood >= w[0].information.log_likelihood));
    }
}

#[test]
fn criteria_stop_where_no_noise_is_left() {
    let (table, _) = simulate::ppca(Shape { rows: 6, columns: 10, n_components: 2 }, 1);
    // Six centered rows have rank five; five components would explain them exactly.
    let by_q = criteria(&table).by_n_components;
    assert_eq!(by_q.len(), 5);
    assert!(by_q.iter().all(|c| c.log_evidence.is_some_and(f64::is_finite)));
}

#[test]
fn equal_retained_eigenvalues_have_no_evidence() {
    // Columns ±1 in a full factorial design: all eigenvalues are exactly one.
    let table = Matrix::from_fn(8, 3, |i, j| if (i >> j) & 1 == 0 { 1.0 } else { -1.0 });
    let by_q = criteria(&Dataset::new(table).unwrap()).by_n_components;
    assert!(by_q[0].log_evidence.is_some());
    assert!(by_q[1..].iter().all(|c| c.log_evidence.is_none()));
}

#[test]
fn aicc_needs_more_rows_than_parameters() {
    assert_eq!(information_criteria(-10.0, 5, 6).aicc, None);
    assert_eq!(information_criteria(-10.0, 5, 7).aicc, Some(30.0 + 60.0));
}

#[test]
fn a_truncated_spectrum_is_refused() {
    let spectrum = Spectral::default().spectrum(&guidance_table(0), 3, false).unwrap();
    assert!(matches!(
        Criteria::from_spectrum(&spectrum),
        Err(Error::WrongLength { expected: 8, got: 3, .. })
    ));
}

#[test]
fn parallel_analysis_finds_two_components() {
    let right = |standardize, deflate| {
        let analysis = ParallelAnalysis { standardize, deflate, ..ParallelAnalysis::default() };
        times_right(2, |seed| analysis.run(&guidance_table(seed)).unwrap().n_components)
    };
    assert!(right(true, false) >= 18);
    assert!(right(true, true) >= 18 && right(false, true) >= 18);
    // The column of largest variance sets every threshold: plain covariances miss weak components.
    assert!(right(false, false) >= 12);
}

#[test]
fn parallel_analysis_finds_two_components_despite_gaps() {
    let analysis = ParallelAnalysis::default();
    assert!(times_right(2, |seed| analysis.run(&with_gaps(seed)).unwrap().n_components) >= 16);
    let deflated = ParallelAnalysis { deflate: true, ..analysis }.run(&with_gaps(0));
    assert!(matches!(deflated, Err(Error::Unsupported { .. })));
}

#[test]
fn parallel_analysis_finds_nothing_in_white_noise() {
    let white = |seed| simulate::ppca(Shape { rows: 100, columns: 20, n_components: 0 }, seed).0;
    for deflate in [false, true] {
        let analysis = ParallelAnalysis { deflate, ..ParallelAnalysis::default() };
        assert!(times_right(0, |seed| analysis.run(&white(seed)).unwrap().n_components) >= 16);
    }
}

#[test]
fn parallel_analysis_of_a_wide_table_sees_its_nonzero_eigenvalues() {
    // With n < d the n × n matrix is used.
    let (table, _) = simulate::ppca(Shape { rows: 20, columns: 30, n_components: 2 }, 3);
    let found = ParallelAnalysis::default().run(&table).unwrap();
    assert_eq!((found.eigenvalues.len(), found.n_components), (20, 2));
    let spectrum = Spectral::default().spectrum(&table, 20, true).unwrap();
    for (a, b) in found.eigenvalues.iter().zip(&spectrum.eigenvalues) {
        assert!((a - b).abs() < 1e-12 * spectrum.eigenvalues[0]);
    }
}

#[test]
fn deflation_uncovers_a_component_in_the_shadow_of_a_strong_one() {
    // One strong direction leaves the others little of the unit total.
    let deviations = [10.0, 1.6, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
    let count = |deflate| {
        let analysis = ParallelAnalysis { deflate, standardize: false, ..ParallelAnalysis::default() };
        times_right(2, |seed| {
            analysis.run(&simulate::rotated(300, &deviations, seed).0).unwrap().n_components
        })
    };
    let (plain, deflated) = (count(false), count(true));
    assert!(plain <= 5 && deflated >= 15, "plain {plain}, deflated {deflated}");
}

#[test]
fn parallel_analysis_does_not_depend_on_threads() {
    for (table, deflate) in [(guidance_table(1), true), (with_gaps(1), false)] {
        let analysis = ParallelAnalysis { deflate, ..ParallelAnalysis::default() };
        let run = |n| on_threads(n, || analysis.run(&table).unwrap());
        assert_eq!(run(1), run(2));
    }
}

#[test]
fn parallel_analysis_of_moments_has_the_thresholds_of_simulated_rows() {
    // Whole tables of normal rows, of which only the moments are drawn otherwise: quantiles agree within what 1000
    // copies allow. With n < d the scatter has no inverse.
    for (rows, columns, standardize) in [(40, 6, true), (40, 6, false), (6, 9, true)] {
        let n_copies = 1000;
        let analysis = ParallelAnalysis { standardize, n_copies, ..ParallelAnalysis::default() };
        let shape = Shape { rows, columns, n_components: 0 };
        let white = |seed| {
            let (table, _) = simulate::ppca(shape, seed);
            let unit = |j: usize| table.observed_variances()[j].sqrt();
            let sds: Vec<f64> = (0..columns).map(unit).collect();
            Dataset::new(Matrix::from_fn(rows, columns, |i, j| table.row(i)[j] / sds[j])).unwrap()
        };
        let moments = CentralMoments::of(&white(0)).unwrap();
        let found = analysis.run_moments(&moments).unwrap();
        let eigenvalues = |table: &Dataset| {
            ParallelAnalysis { n_copies: 1, ..analysis.clone() }.run(table).unwrap().eigenvalues
        };
        for (a, b) in found.eigenvalues.iter().zip(eigenvalues(&white(0))) {
            assert!((a - b).abs() < 1e-9, "{a} {b}");
        }
        let copies: Vec<Vec<f64>> = (1..=n_copies as u64).map(|seed| eigenvalues(&white(seed))).collect();
        for (k, &threshold) in found.thresholds.iter().enumerate().take(copies[0].len().min(rows - 1)) {
            let mut values: Vec<f64> = copies.iter().map(|c| c[k]).collect();
            values.sort_by(f64::total_cmp);
            // Ranks of 1000: a standard error of the rank is 7, of the difference of two 10.
            assert!(values[920] < threshold && threshold < values[980], "{k}: {threshold}");
        }
        assert_eq!(
            on_threads(1, || analysis.run_moments(&moments).unwrap()),
            on_threads(2, || analysis.run_moments(&moments).unwrap())
        );
    }
    let moments = CentralMoments::of(&guidance_table(0)).unwrap();
    assert_eq!(ParallelAnalysis::default().run_moments(&moments).unwrap().n_components, 2);
    let deflated = ParallelAnalysis { deflate: true, ..ParallelAnalysis::default() };
    assert!(matches!(deflated.run_moments(&moments), Err(Error::Unsupported { .. })));
}

#[test]
fn folds_hide_every_cell_once_and_starve_no_row_or_column() {
    let table = simulate::hide(&guidance_table(4), 0.4, 5);
    let n_components = 3;
    let folds = folds_of_cells(&table, 5, n_components, 0).unwrap();
    let mut times = vec![0; table.values().as_slice().len()];
    let sizes: Vec<usize> = folds
        .iter()
        .map(|fold| {
            let cells = hidden(&table, fold);
            for &at in &cells {
                times[at] += 1;
            }
            assert!(fold.values().rows().all(|row| row.iter().any(|v| !v.is_nan())));
            assert!(fold.n_observed_by_column().iter().all(|&n| n > n_components));
            cells.len()
        })
        .collect();
    assert!(times.iter().all(|&n| n <= 1));
    // Only the cells of rows with one observed cell are never hidden.
    let alone = table.values().rows().filter(|row| row.iter().filter(|v| !v.is_nan()).count() == 1).count();
    assert_eq!(times.iter().sum::<usize>(), table.n_observed() - alone);
    assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= table.n_rows() / 20);
    let again = |seed| folds_of_cells(&table, 5, n_components, seed).unwrap();
    assert!(folds.iter().zip(again(0)).all(|(a, b)| same_cells(a, &b)));
    assert!(folds.iter().zip(again(1)).all(|(a, b)| !same_cells(a, &b)));
}

#[test]
fn the_cells_of_a_sparse_column_stay_visible() {
    let full = guidance_table(1);
    let rare = |i, j| if j == 3 && i >= 4 { f64::NAN } else { full.values()[(i, j)] };
    let table = Dataset::new(Matrix::from_fn(200, 8, rare)).unwrap();
    for fold in folds_of_cells(&table, 5, 3, 0).unwrap() {
        assert_eq!(fold.n_observed_by_column()[3], 4);
    }
    let options = HeldOutOptions::default();
    let chosen = choose_by_held_out_cells(&table, &Spec::ppca(0), 0..=4, &Em::default(), &options);
    assert_eq!(chosen, Ok(2));
}

#[test]
fn watching_the_held_out_fits_changes_no_bit_and_may_stop_them() {
    let table = with_gaps(1);
    let options = HeldOutOptions::default();
    let run = |n, watch: &(dyn Fn(usize, usize) -> ControlFlow<()> + Sync)| {
        let work = || held_out_cells_observed(&table, &Spec::ppca(0), 0..=3, &Em::default(), &options, watch);
        on_threads(n, work)
    };
    let unwatched = held_out_cells(&table, &Spec::ppca(0), 0..=3, &Em::default(), &options).unwrap();
    for threads in [1, 2] {
        let finished = Mutex::new(std::collections::BTreeSet::new());
        let watch = |done, total| {
            assert_eq!(total, 20);
            finished.lock().unwrap().insert(done);
            ControlFlow::Continue(())
        };
        assert_eq!(run(threads, &watch).unwrap(), unwatched);
        assert!(finished.into_inner().unwrap().into_iter().eq(0..=20));
        let third = |done, _| if done == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        assert_eq!(run(threads, &third), Err(Error::Interrupted));
    }
}

#[test]
fn tables_too_sparse_to_hide_cells_are_refused() {
    let nan = f64::NAN;
    let lonely = Dataset::new(Matrix::from_rows(&[[1.0, nan], [nan, 3.0], [2.0, nan], [nan, 5.0]])).unwrap();
    assert!(matches!(folds_of_cells(&lonely, 2, 0, 0), Err(Error::TooFewToHide { cells: 0, folds: 2 })));
    assert!(matches!(folds_of_cells(&guidance_table(0), 1, 0, 0), Err(Error::OutOfRange { .. })));
}

/// Remembers the tables it was given and fits their complete rows' means and variances.
#[derive(Default)]
struct Witness(Mutex<Vec<Dataset>>);

impl Estimator for Witness {
    type Model = LinearGaussian;

    fn fit_observed(&self, data: &Dataset, _: &Spec, _: &mut dyn Observer) -> Result<Fit, Error> {
        self.0.lock().unwrap().push(data.clone());
        let means = data.observed_means();
        let filled = Matrix::from_fn(data.n_rows(), data.n_columns(), |i, j| {
            let v = data.row(i)[j];
            if v.is_nan() { means[j] } else { v }
        });
        Spectral::default().fit(&Dataset::new(filled)?, &Spec::ppca(0))
    }
}

#[test]
fn the_estimator_never_sees_the_cells_it_is_scored_on() {
    let table = simulate::hide(&guidance_table(2), 0.1, 3);
    let witness = Witness::default();
    let options = HeldOutOptions { n_folds: 4, seed: 7 };
    let scores = held_out_cells(&table, &Spec::ppca(0), 0..=2, &witness, &options).unwrap();
    let folds = folds_of_cells(&table, 4, 2, 7).unwrap();
    let seen = witness.0.into_inner().unwrap();
    assert_eq!(seen.len(), 3 * folds.len());
    assert!(folds.iter().all(|fold| seen.iter().filter(|s| same_cells(s, fold)).count() == 3));
    assert_eq!(scores.n_hidden, folds.iter().map(|fold| hidden(&table, fold).len()).sum::<usize>());
    // Means and one variance are the baseline itself.
    assert!((scores.by_n_components[0].rmse - scores.baseline_rmse).abs() < 1e-12);
    assert!(scores.by_n_components[0].skill.abs() < 1e-12);
}

fn same_cells(a: &Dataset, b: &Dataset) -> bool {
    a.values().as_slice().iter().zip(b.values().as_slice()).all(|(a, b)| a.to_bits() == b.to_bits())
}

#[test]
fn predicting_a_hidden_cell_never_uses_it() {
    let (table, truth) = simulate::ppca(Shape { rows: 10, columns: 5, n_components: 2 }, 1);
    for fold in folds_of_cells(&table, 5, 2, 0).unwrap() {
        let cells = hidden(&table, &fold);
        let mut moved = table.values().clone();
        for &at in &cells {
            moved.as_mut_slice()[at] += 1.0;
        }
        let moved = Dataset::new(moved).unwrap();
        // Errors move by exactly the shift, so the predictions did not move at all.
        let predicted = truth.impute(&fold).unwrap();
        let expected: f64 = cells
            .iter()
            .map(|&at| (moved.values().as_slice()[at] - predicted.values().as_slice()[at]).powi(2))
            .sum();
        let got: f64 = hold_out_at(&truth, &moved, &fold).unwrap().squared_error.iter().sum();
        assert!((got - expected).abs() < 1e-12 * expected);
    }
}

#[test]
fn a_changed_visible_cell_is_refused() {
    let (table, truth) = simulate::ppca(Shape { rows: 5, columns: 4, n_components: 1 }, 1);
    let mut other = table.values().clone();
    other[(2, 1)] += 1.0;
    let refused = hold_out_at(&truth, &table, &Dataset::new(other).unwrap());
    assert!(matches!(refused, Err(Error::NotInFullTable { row: 3, .. })));
}

#[test]
fn pooling_needs_two_estimates_and_their_variances() {
    assert!(matches!(pool(&[1.0], &[1.0]), Err(Error::OutOfRange { .. })));
    assert!(matches!(pool(&[1.0, 2.0], &[1.0]), Err(Error::WrongLength { .. })));
    assert!(matches!(pool(&[1.0, 2.0], &[1.0, -1.0]), Err(Error::OutOfRange { .. })));
    assert_eq!(pool(&[2.0, 2.0], &[0.0, 0.0]).unwrap().degrees_of_freedom, f64::INFINITY);
}

#[test]
fn coverage_needs_a_known_truth() {
    let (table, truth) = simulate::ppca(Shape { rows: 5, columns: 4, n_components: 1 }, 1);
    let gappy = simulate::hide(&table, 0.5, 1);
    let filled = truth.impute(&gappy).unwrap();
    assert_eq!(interval_coverage(&gappy, &filled, &[0.9]), Err(Error::NothingToCompare));
    assert!(matches!(interval_coverage(&table, &filled, &[1.0]), Err(Error::OutOfRange { .. })));
}

#[test]
fn held_out_cells_find_two_components_despite_gaps() {
    let choose = |seed| {
        let options = HeldOutOptions { seed, ..HeldOutOptions::default() };
        choose_by_held_out_cells(&with_gaps(seed), &Spec::ppca(0), 0..=4, &Em::default(), &options).unwrap()
    };
    assert!(times_right(2, choose) >= 18);
}

#[test]
fn held_out_cells_find_no_components_in_white_noise() {
    let choose = |seed| {
        let (table, _) = simulate::ppca(Shape { rows: 100, columns: 8, n_components: 0 }, seed);
        let options = HeldOutOptions::default();
        choose_by_held_out_cells(&table, &Spec::ppca(0), 0..=2, &Em::default(), &options).unwrap()
    };
    assert!(times_right(0, choose) >= 18);
}

#[test]
fn a_shortfall_is_known_better_than_a_mean() {
    // Two weak components: the spread of the rows hides a gain that every row shares.
    let (table, _) = simulate::rotated(200, &[2.0, 1.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 0);
    let options = HeldOutOptions::default();
    let scores = held_out_cells(&table, &Spec::ppca(0), 1..=3, &Em::default(), &options).unwrap();
    let [one, two, three] = scores.by_n_components[..] else { unreachable!() };
    assert_eq!(two.shortfall, 0.0);
    for other in [one, three] {
        assert!((other.shortfall - (two.mean - other.mean)).abs() < 1e-12);
        assert!(other.shortfall_error < 0.7 * other.standard_error);
    }
    assert_eq!(scores.chosen(ChoiceRule::OneStandardError), 2);
    assert!(two.mean - one.mean < two.standard_error);
}

#[test]
fn the_training_likelihood_of_a_table_with_gaps_never_falls_with_components() {
    let table = with_gaps(1);
    let fitted = |q| Em::default().fit(&table, &Spec::ppca(q)).unwrap().report.objective.value;
    let by_q: Vec<f64> = (0..=4).map(fitted).collect();
    // EM stops within its tolerance of the maximum.
    assert!(by_q.windows(2).all(|w| w[1] >= w[0] - 1e-5));
}

#[test]
fn held_out_scores_do_not_depend_on_threads() {
    let table = with_gaps(3);
    let options = HeldOutOptions::default();
    let run = |n| {
        on_threads(n, || held_out_cells(&table, &Spec::ppca(0), 0..=3, &Em::default(), &options).unwrap())
    };
    assert_eq!(run(1), run(2));
}

#[test]
fn an_empty_range_or_one_too_large_is_refused() {
    let (table, options) = (guidance_table(0), HeldOutOptions::default());
    let run = |range| held_out_cells(&table, &Spec::ppca(0), range, &Em::default(), &options);
    #[allow(clippy::reversed_empty_ranges, reason = "the point of the test")]
    let empty = run(3..=2);
    assert!(matches!(empty, Err(Error::OutOfRange { .. })));
    assert!(matches!(run(1..=8), Err(Error::TooManyComponents { asked: 8, max: 7, .. })));
}

#[test]
fn a_straight_line_of_seven_rows_has_a_component_and_noise_has_none() {
    use covary::family::{Family, Request};
    use covary::learned::Rows;
    let line = |i: usize, j: usize| match (i, j) {
        (2, 1) => f64::NAN,
        (_, 0) => i as f64 + 1.0,
        _ => i as f64 + 1.0 + [0.04, -0.05, 0.0, 0.06, -0.03, 0.02, -0.05][i],
    };
    let table = Dataset::new(Matrix::from_fn(7, 2, line)).unwrap();
    let learned = Request::new(Family::Ppca).learn(&table).unwrap();
    assert_eq!(learned.n_components(), 1);
    assert!((learned.fill(Rows::Training).unwrap().fill(&table).unwrap().cells()[0].mean - 3.0).abs() < 0.1);
    let noise = |seed: u64| {
        let shape = Shape { rows: 7 + seed as usize % 9, columns: 2 + seed as usize % 3, n_components: 0 };
        simulate::hide(&simulate::ppca(shape, seed).0, 0.05, seed)
    };
    let found =
        (0..60).filter(|&seed| Request::new(Family::Ppca).learn(&noise(seed)).unwrap().n_components() > 0);
    let found = found.count();
    assert!(found <= 2, "{found} of 60");
}

/// Components by truncated pilots.
fn piloted(table: &Dataset, spec: &Spec, rule: ChoiceRule) -> usize {
    PilotSearch::default().run(table, spec).unwrap().expect("cells to hide").chosen(rule)
}

#[test]
fn pilots_find_two_components_with_gaps_and_without_and_none_in_noise() {
    let white = |seed| simulate::ppca(Shape { rows: 100, columns: 8, n_components: 0 }, seed).0;
    // Of 1000 tables (seeds 1000 to 1999) these shares are right; the best number has a component too many by chance more
    // often. 60 others are right as often as at least 999 of 1000 such draws would be, by the binomial distribution.
    let cases: [(ChoiceRule, [f64; 3]); 2] =
        [(ChoiceRule::OneStandardError, [0.988, 0.997, 0.989]), (ChoiceRule::Maximum, [0.878, 0.983, 0.881])];
    for (rule, rates) in cases {
        let find = |table: &dyn Fn(u64) -> Dataset, truth| {
            (5000..5060).filter(|&seed| piloted(&table(seed), &Spec::ppca(0), rule) == truth).count()
        };
        let found = [find(&guidance_table, 2), find(&with_gaps, 2), find(&white, 0)];
        for (n, rate) in found.into_iter().zip(rates) {
            let by_chance = Binomial::new(rate, 60).unwrap().inverse_cdf(1e-3) as usize;
            assert!(n >= by_chance, "{rule:?}: {found:?} of 60");
        }
    }
    // Unequal noise is no component of a factor analysis.
    let factors = |seed| {
        let whole = simulate::factor_analysis(Shape { rows: 300, columns: 10, n_components: 2 }, seed).0;
        simulate::hide(&whole, 0.1, seed)
    };
    let found = |seed| piloted(&factors(seed), &Spec::factor_analysis(0), ChoiceRule::OneStandardError);
    assert!((0..8).filter(|&seed| found(seed) == 2).count() >= 7);
}

#[test]
fn standardized_columns_have_as_many_components_as_before() {
    // Standardization makes equal noise unequal, which a model of equal noise takes for components.
    let spec = Spec { standardize: true, ..Spec::ppca(0) };
    for (rows, columns, n_components) in [(500, 20, 4), (5000, 40, 6)] {
        let shape = Shape { rows, columns, n_components };
        for whole in [simulate::ppca(shape, 11).0, simulate::factor_analysis(shape, 11).0] {
            for gaps in [0.0, 0.1, 0.3] {
                let table = if gaps > 0.0 { simulate::hide(&whole, gaps, 18) } else { whole.clone() };
                let found = piloted(&table, &spec, ChoiceRule::OneStandardError);
                assert_eq!(found, n_components, "{rows} × {columns}, gaps {gaps}");
            }
        }
    }
    // To fill gaps, a model of equal noise may need more.
    let whole = simulate::ppca(Shape { rows: 5000, columns: 40, n_components: 6 }, 11).0;
    let filling = PilotSearch { purpose: Purpose::Filling, ..PilotSearch::default() };
    assert!(filling.run(&whole, &spec).unwrap().unwrap().best() > 6);
}

#[test]
fn components_that_predict_much_better_are_taken_whatever_the_noise() {
    // Noise of columns alone would explain a pair of columns that differ by little: each is known from the other.
    let whole = simulate::rotated(300, &[3.0, 2.5, 2.0, 1.8, 1.6, 0.1, 0.1, 0.1], 5).0;
    let spec = Spec { standardize: true, ..Spec::ppca(0) };
    assert_eq!(piloted(&simulate::hide(&whole, 0.1, 6), &spec, ChoiceRule::OneStandardError), 5);
}

#[test]
fn pilots_are_not_limited_to_a_few_components() {
    let whole = simulate::ppca(Shape { rows: 1500, columns: 60, n_components: 24 }, 3).0;
    let table = simulate::hide(&whole, 0.1, 4);
    for table in [&whole, &table] {
        let found = PilotSearch::default().run(table, &Spec::ppca(0)).unwrap().unwrap();
        assert_eq!((found.best(), found.score, found.limited), (24, Score::Crps, false));
        assert_eq!(found.chosen(Purpose::Components.rule()), 24);
        let [less, best] = [23, 24].map(|q| found.at(q).unwrap());
        assert!(less.shortfall > 5.0 * less.shortfall_error && best.skill > less.skill);
    }
    let few = PilotSearch { max_components: Some(5), ..PilotSearch::default() };
    let found = few.run(&table, &Spec::ppca(0)).unwrap().unwrap();
    assert_eq!((found.best(), found.limited), (5, true));
}

#[test]
fn very_wide_tables_have_as_many_components_as_there_are() {
    for (rows, columns, n_components) in [(40, 4000, 2), (60, 3000, 8), (100, 5000, 0)] {
        let whole = simulate::ppca(Shape { rows, columns, n_components }, 21).0;
        for gaps in [0.0, 0.2] {
            let table = if gaps > 0.0 { simulate::hide(&whole, gaps, 22) } else { whole.clone() };
            let found = piloted(&table, &Spec::ppca(0), ChoiceRule::OneStandardError);
            assert_eq!(found, n_components, "{rows} × {columns}, gaps {gaps}");
        }
    }
}

#[test]
fn the_scale_of_the_columns_does_not_change_a_standardized_choice() {
    let table = with_gaps(5);
    let mut scaled = table.values().clone();
    scaled.scale_columns(&[1e-6, 1.0, 1e6, 3.0, 0.1, 2.0, 50.0, 1e3]);
    let spec = Spec { standardize: true, ..Spec::ppca(0) };
    let found = |table: &Dataset| PilotSearch::default().run(table, &spec).unwrap().unwrap();
    let (own, other) = (found(&table), found(&Dataset::new(scaled).unwrap()));
    for (a, b) in own.by_n_components.iter().zip(&other.by_n_components) {
        assert!((a.mean - b.mean).abs() < 1e-9 && (a.rmse - b.rmse).abs() < 1e-9, "{a:?} {b:?}");
    }
}

#[test]
fn pilots_do_not_depend_on_threads_and_may_be_stopped() {
    let long = simulate::ppca(Shape { rows: 3000, columns: 30, n_components: 3 }, 1).0;
    let factors = Spec::factor_analysis(0);
    let wide = simulate::ppca(Shape { rows: 40, columns: 2500, n_components: 2 }, 1).0;
    for (table, spec) in [
        (&wide, Spec::ppca(0)),
        (&simulate::hide(&wide, 0.2, 2), Spec::ppca(0)),
        (&long, Spec::ppca(0)),
        (&simulate::hide(&long, 0.1, 2), Spec::ppca(0)),
        (&with_gaps(3), Spec::ppca(0)),
        (&with_gaps(3), factors),
    ] {
        let run = |n| on_threads(n, || PilotSearch::default().run(table, &spec).unwrap());
        assert_eq!(run(1), run(2));
        let stop = |done, total| {
            assert!(done <= total);
            if done == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let stopped = PilotSearch::default().run_observed(table, &spec, &stop);
        assert_eq!(stopped, Err(Error::Interrupted));
    }
}

#[test]
fn a_hardly_observed_column_has_no_say() {
    let table = with_gaps(2);
    let rare = |i: usize, j: usize| match (i, j) {
        (0 | 1, 8) => i as f64,
        (_, 8) => f64::NAN,
        _ => table.values()[(i, j)],
    };
    let with_rare = Dataset::new(Matrix::from_fn(200, 9, rare)).unwrap();
    let spec = Spec { standardize: true, ..Spec::ppca(0) };
    let found = |table: &Dataset| PilotSearch::default().run(table, &spec).unwrap();
    assert_eq!(found(&with_rare), found(&table));
}
