//! Choosing and checking by blocks of time.

use crate::common::assert_close;
use covary::dynamics::{DynamicEm, Season, TimeSearch, Timeline, check_by_blocks};
use covary::select::{Purpose, SelfCheckOptions};
use covary::{Dataset, Error, Estimator, Matrix, Spec};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::ops::ControlFlow;

const GAP: f64 = f64::NAN;

/// A table of factors of order 2 or 1, of `waves` waves of a period of 12 and noise, in three runs of gaps.
fn table(rows: usize, d: usize, k: usize, second: f64, waves: usize, seed: u64) -> Dataset {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = move || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
    let w = Matrix::from_fn(d, k, |_, _| normal());
    let season = Matrix::from_fn(d, 2 * waves, |_, _| normal());
    let (mut now, mut before) = (vec![0.0; k], vec![0.0; k]);
    let mut out = Matrix::zeros(rows, d);
    for t in 0..rows + 50 {
        for (now, before) in now.iter_mut().zip(&mut before) {
            let next = 0.8 * *now + second * *before + 0.6 * normal();
            (*before, *now) = (*now, next);
        }
        let Some(t) = t.checked_sub(50) else { continue };
        for j in 0..d {
            let factors: f64 = w.row(j).iter().zip(&now).map(|(w, x)| w * x).sum();
            let known: f64 = (0..waves)
                .map(|h| {
                    let phase = (h + 1) as f64 * t as f64 / 12.0 * std::f64::consts::TAU;
                    season[(j, 2 * h)] * phase.cos() + season[(j, 2 * h + 1)] * phase.sin()
                })
                .sum();
            out[(t, j)] = 3.0 + factors + known + 0.5 * normal();
        }
    }
    let gap =
        |t: usize, j: usize| (rows / 3..rows / 3 + 6).contains(&t) || (t / 10 + 3 * j).is_multiple_of(9);
    Dataset::new(Matrix::from_fn(rows, d, |t, j| if gap(t, j) { GAP } else { out[(t, j)] })).unwrap()
}

fn yearly(n: usize) -> DynamicEm {
    DynamicEm { season: Season::Harmonics { period: 12.0, n }, ..DynamicEm::default() }
}

#[test]
fn factors_and_waves_are_found() {
    for (k, waves, seed) in [(2, 1, 11), (1, 2, 12), (2, 0, 13)] {
        let data = table(240, 8, k, 0.0, waves, seed);
        let search = TimeSearch { estimator: yearly(1), max_components: Some(4), ..TimeSearch::default() };
        let found = search.run(&data, &Spec::ppca(1)).unwrap();
        let season = match waves {
            0 => Season::None,
            n => Season::Harmonics { period: 12.0, n },
        };
        assert_eq!((found.n_components, found.order, found.season), (k, 1, season), "{:#?}", found.tried);
        let scores = found.components.as_ref().unwrap();
        let at = scores.at(k).unwrap();
        assert!(at.skill > 0.2 && at.shortfall <= at.shortfall_error.max(1e-3 * at.mean));
        assert_eq!(found.applied(&yearly(1)).season, season);
        assert!(found.n_origins == 3 && found.horizon == 12 && found.n_blocks > 20);
        assert!(found.tried.iter().all(|t| t.forecast_rmse.is_some() && t.block_rmse > 0.0));
    }
}

#[test]
fn the_order_that_predicts_best_is_found() {
    let data = table(240, 8, 2, -0.6, 0, 3);
    let search = TimeSearch { n_components: Some(2), purpose: Purpose::Filling, ..TimeSearch::default() };
    let found = search.run(&data, &Spec::ppca(1)).unwrap();
    assert_eq!(found.order, 2, "{:#?}", found.tried);
    assert!(found.components.is_none());
}

#[test]
fn the_choice_has_the_same_bits_at_any_number_of_threads_and_ends_when_told() {
    let data = table(80, 5, 1, 0.0, 0, 4);
    let search = TimeSearch { max_components: Some(2), max_order: 1, ..TimeSearch::default() };
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| search.run(&data, &Spec::ppca(1))).unwrap()
    };
    assert_eq!(with(1), with(3));
    assert_ne!(
        with(1).tried,
        TimeSearch { seed: 1, ..search.clone() }.run(&data, &Spec::ppca(1)).unwrap().tried
    );
    let stop = |_: usize, _: usize| ControlFlow::Break(());
    assert_eq!(search.run_observed(&data, &Spec::ppca(1), &stop).unwrap_err(), Error::Interrupted);
}

/// Which cells are hidden, and that what is said of them is what they say.
#[test]
fn the_check_hides_blocks_like_the_gaps_of_the_table() {
    let data = table(200, 6, 1, 0.0, 0, 5);
    let times = Timeline::regular(200);
    let options = SelfCheckOptions { share: 0.15, seed: 7, ..SelfCheckOptions::default() };
    let mut seen = None;
    let (check, cells) = check_by_blocks(&data, &times, 1, &options, |visible| {
        seen = Some(visible.clone());
        DynamicEm::default().fit(visible, &Spec::ppca(1))?.model.fill(visible, &times)
    })
    .unwrap();
    let visible = seen.unwrap();
    let hidden = |t: usize, j: usize| visible.row(t)[j].is_nan() && !data.row(t)[j].is_nan();
    let n: usize = (0..200).map(|t| (0..6).filter(|&j| hidden(t, j)).count()).sum();
    let share = n as f64 / data.n_observed() as f64;
    assert!((0.15..0.2).contains(&share), "{share}");
    assert_eq!((check.n_hidden, cells.len()), (n, n));
    assert!(
        cells
            .iter()
            .all(|c| hidden(c.cell.row, c.cell.column) && c.truth == data.row(c.cell.row)[c.cell.column])
    );
    // The gaps of the table are runs of 10 cells and one of 6 rows: hidden cells have hidden or missing neighbors as a rule.
    let alone = (1..199)
        .flat_map(|t| (0..6).map(move |j| (t, j)))
        .filter(|&(t, j)| hidden(t, j) && !visible.row(t - 1)[j].is_nan() && !visible.row(t + 1)[j].is_nan());
    assert!(alone.count() * 20 < n);
    let whole =
        (0..200).filter(|&t| (0..6).all(|j| visible.row(t)[j].is_nan()) && (0..6).any(|j| hidden(t, j)));
    assert!(whole.count() >= 6);
    for j in 0..6 {
        assert!(2 * visible.n_observed_by_column()[j] >= data.n_observed_by_column()[j]);
    }
    let variance = data.observed_variances();
    let squares: f64 = cells.iter().map(|c| (c.truth - c.cell.mean).powi(2) / variance[c.cell.column]).sum();
    let plain: f64 = cells
        .iter()
        .map(|c| (c.truth - visible.observed_means()[c.cell.column]).powi(2) / variance[c.cell.column])
        .sum();
    assert_close(
        "rmse",
        &[check.rmse, check.baseline_rmse],
        &[squares, plain].map(|s| (s / n as f64).sqrt()),
        1e-12,
    );
    assert_close("skill", &[check.skill], &[1.0 - squares / plain], 1e-12);
    let inside = cells.iter().filter(|c| {
        let (low, high) = c.cell.interval(0.95).unwrap();
        (low..=high).contains(&c.truth)
    });
    let coverage = check.coverage[2];
    assert_close("coverage", &[coverage.share], &[inside.count() as f64 / n as f64], 1e-12);
    assert!((coverage.share - 0.95).abs() < 4.0 * coverage.standard_error, "{coverage:?}");
}

#[test]
fn what_cannot_be_hidden_is_refused() {
    let short = Dataset::new(Matrix::from_rows(&[[1.0, 2.0], [2.0, 4.1], [3.0, 5.9]])).unwrap();
    let check =
        check_by_blocks(&short, &Timeline::regular(3), 2, &SelfCheckOptions::default(), |_| Ok(Vec::new()));
    assert!(matches!(check, Err(Error::TooFewToHide { .. })));
    let other =
        check_by_blocks(&short, &Timeline::regular(4), 1, &SelfCheckOptions::default(), |_| Ok(Vec::new()));
    assert!(matches!(other, Err(Error::WrongLength { .. })));
}

/// Forty months and sixty columns, of which half are hidden in the last ten: what a likelihood makes of the loadings follows the
/// rows that it has, those of a Bayesian PCA are shrunk. Neither is told the number of factors.
#[test]
fn loadings_of_wide_tables_are_those_of_a_bayesian_pca() {
    use covary::Noise;
    use covary::dynamics::{DynamicFactor, Regressors, Start};
    use covary::family::{Components, Family, Request};
    let (rows, d) = (40, 60);
    let (mut bayes, mut likelihood, mut unknown) = (0.0, 0.0, 0.0);
    for seed in 0..2 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut normal = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        let loadings = Matrix::from_fn(d, 3, |_, _| normal());
        let start = Start { mean: vec![0.0; 3], covariance: Matrix::identity(3) };
        let (a, q) = (Matrix::diagonal(&[0.8; 3]), Matrix::diagonal(&[0.36; 3]));
        let b = Matrix::zeros(d, 1);
        let truth =
            DynamicFactor::new(a, q, loadings, b, Regressors::default(), Noise::Isotropic(1.0), start)
                .unwrap();
        let whole = truth.sample(0, rows, &mut rng).unwrap();
        let hidden = |i: usize, j: usize| i >= 30 && j.is_multiple_of(2);
        let table = Matrix::from_fn(rows, d, |i, j| if hidden(i, j) { f64::NAN } else { whole[(i, j)] });
        let table = Dataset::new(table).unwrap();
        let error = |request: &Request| {
            let learned = request.learn(&table).unwrap();
            let said = &learned.method.options["loadings"];
            assert_eq!(said, if request.options.is_empty() { "bayes" } else { "likelihood" });
            let fit = learned.dynamic().unwrap();
            let trace = &fit.report.trace;
            assert!(trace.windows(2).all(|w| w[1] >= w[0] - 1e-9 * w[0].abs()));
            let cells = fit.model.fill(&table, &table.times()).unwrap();
            cells.iter().map(|c| (c.mean - whole[(c.row, c.column)]).powi(2)).sum::<f64>()
                / cells.len() as f64
        };
        bayes += error(&Request::new(Family::Dfm)) / 2.0;
        let free = |n| Request {
            options: [("loadings", "likelihood"), ("noise_memory", "false")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            n_components: Some(Components::Number(n)),
            ..Request::new(Family::Dfm)
        };
        likelihood += error(&free(3)) / 2.0;
        unknown += error(&free(12)) / 2.0;
    }
    // The noise has variance 1. Not to know that there are three factors costs little.
    assert!(bayes < unknown && bayes < 1.1 * likelihood, "{bayes} {likelihood} {unknown}");
}
