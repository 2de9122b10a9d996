//! A Gaussian with a full covariance: against closed forms, against EM, and what its objective is.

use crate::common::assert_close;
use crate::dense::{self, Gaussian, normal};
use covary::data::{Shape, simulate};
use covary::family::{Components, Family, Request};
use covary::infer::{Em, FullCovariance, ObjectiveKind, Observer, Step, Termination};
use covary::io::model_file;
use covary::learned::Rows;
use covary::model::{FilledCell, Given};
use covary::spec::Prior;
use covary::{Dataset, Density, Error, Estimator, Matrix, Spec};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

fn dataset(values: Matrix) -> Dataset {
    Dataset::new(values).expect("a valid table")
}

/// Six columns that share two components, 15 % gaps.
fn gappy(rows: usize, seed: u64) -> Dataset {
    let (whole, _) = simulate::ppca(Shape { rows, columns: 6, n_components: 2 }, seed);
    simulate::hide(&whole, 0.15, seed + 1)
}

fn with(pseudo_rows: f64) -> FullCovariance {
    FullCovariance { pseudo_rows, ..FullCovariance::default() }
}

fn to_the_end(pseudo_rows: f64) -> FullCovariance {
    FullCovariance { tolerance: 0.0, max_iterations: 200, ..with(pseudo_rows) }
}

#[test]
fn a_complete_table_gives_its_covariance_and_the_ridge_in_closed_form() {
    let data = dataset(normal(40, 5, 1));
    let s = dense::moments(data.values());
    let v = s.covariance.trace() / 5.0;
    for lambda in [0.0, 5.0] {
        let fit = with(lambda).fit(&data, &Spec::ppca(4)).unwrap();
        let ridge = |i, j| if i == j { lambda * v } else { 0.0 };
        let want =
            Matrix::from_fn(5, 5, |i, j| (40.0 * s.covariance[(i, j)] + ridge(i, j)) / (40.0 + lambda));
        assert_close("Σ", fit.model.covariance().as_slice(), want.as_slice(), 1e-13);
        assert_close("μ", fit.model.mean(), &s.mean, 1e-13);
        assert_eq!(fit.report.termination, Termination::ClosedForm);
    }
}

#[test]
fn maximum_likelihood_with_gaps_is_where_em_ends() {
    for seed in [1, 2, 3] {
        let data = gappy(80, seed);
        let em = Em { tolerance: 1e-9, ..Em::default() }.fit(&data, &Spec::ppca(5)).unwrap();
        let full = to_the_end(0.0).fit(&data, &Spec::ppca(5)).unwrap();
        assert_eq!(full.report.objective.kind, ObjectiveKind::LogLikelihood);
        assert!((full.report.objective.value - em.report.objective.value).abs() < 1e-6);
        let (got, want) = (full.model.covariance(), em.model.covariance());
        assert_close("Σ", got.as_slice(), want.as_slice(), 1e-3);
    }
}

/// ℓ − λ KL(N(0, v I) ‖ N(0, Σ)), in the units of the prior.
#[test]
fn the_objective_is_the_likelihood_less_the_divergence_from_the_prior() {
    let mut values = gappy(60, 1).values().clone();
    values.scale_columns(&[1.0, 10.0, 0.1, 3.0, 1.0, 100.0]);
    let data = dataset(values);
    for standardize in [false, true] {
        let fit = with(7.0).fit(&data, &Spec { standardize, ..Spec::ppca(5) }).unwrap();
        assert_eq!(fit.report.objective.kind, ObjectiveKind::LogPosterior);
        let variances = data.observed_variances();
        let pooled = variances.iter().sum::<f64>() / 6.0;
        let unit = |j: usize| if standardize { variances[j].sqrt() } else { pooled.sqrt() };
        let c = fit.model.covariance();
        let c = Matrix::from_fn(6, 6, |i, j| c[(i, j)] / unit(i) / unit(j));
        let divergence = 0.5 * (dense::solve(&c, &Matrix::identity(6)).trace() - 6.0 + dense::ln_det(&c));
        let want = Gaussian::of(&fit.model).log_likelihood(&data) - 7.0 * divergence;
        assert_close("objective", &[fit.report.objective.value], &[want], 1e-11);
    }
}

#[test]
fn more_columns_than_rows_are_fitted_and_never_fall() {
    let (whole, _) = simulate::ppca(Shape { rows: 12, columns: 20, n_components: 3 }, 1);
    let data = simulate::hide(&whole, 0.3, 2);
    let spec = Spec { standardize: true, ..Spec::ppca(19) };
    let fit = to_the_end(5.0).fit(&data, &spec).unwrap();
    let trace = &fit.report.trace;
    assert!(trace.windows(2).all(|t| t[1] >= t[0] - 1e-10 * (1.0 + t[0].abs())), "{trace:?}");
    let filled = fit.model.impute(&data).unwrap();
    assert!(filled.cells().iter().all(|c| c.mean.is_finite() && c.sd > 0.0));
    let refused = with(0.0).fit(&data, &spec).unwrap_err();
    assert_eq!(refused, Error::DegenerateNoise { asked: 19, rank: 11 });
}

#[test]
fn the_default_ends_where_all_iterations_do_up_to_a_share_of_the_deviations() {
    let (whole, _) = simulate::ppca(Shape { rows: 200, columns: 12, n_components: 3 }, 5);
    let data = simulate::hide(&whole, 0.2, 6);
    let spec = Spec { standardize: true, ..Spec::ppca(11) };
    let stopped = FullCovariance::default().fit(&data, &spec).unwrap();
    let end = to_the_end(5.0).fit(&data, &spec).unwrap();
    assert_eq!(stopped.report.termination, Termination::Converged);
    assert!(end.report.objective.value - stopped.report.objective.value < 1e-3 * 78.0);
    let (a, b) = (stopped.model.impute(&data).unwrap(), end.model.impute(&data).unwrap());
    let off = |(a, b): (&FilledCell, &FilledCell)| ((a.mean - b.mean) / b.sd).powi(2);
    let mean: f64 = a.cells().iter().zip(b.cells()).map(off).sum::<f64>() / a.cells().len() as f64;
    assert!(mean.sqrt() < 0.02, "{}", mean.sqrt());
}

#[test]
fn a_standardized_fit_follows_the_units_of_the_columns() {
    let units = [1e-3, 2.0, 1.0, 1e3, 0.5, 7.0];
    let data = gappy(60, 3);
    let mut values = data.values().clone();
    values.scale_columns(&units);
    let spec = Spec { standardize: true, ..Spec::ppca(5) };
    let fit = |data: &Dataset| to_the_end(5.0).fit(data, &spec).unwrap().model;
    let (plain, other) = (fit(&data).covariance(), fit(&dataset(values)).covariance());
    let want = Matrix::from_fn(6, 6, |i, j| plain[(i, j)] * units[i] * units[j]);
    for i in 0..6 {
        for j in 0..6 {
            let scale = units[i] * units[j];
            assert!((other[(i, j)] - want[(i, j)]).abs() < 1e-9 * scale, "{i}, {j}");
        }
    }
}

/// Rows whose observed cells are fewer than their gaps go another way through the E-step.
#[test]
fn sparse_rows_meet_the_likelihood_too() {
    let (whole, _) = simulate::ppca(Shape { rows: 150, columns: 9, n_components: 2 }, 8);
    let data = simulate::hide(&whole, 0.6, 9);
    let fit = to_the_end(2.0).fit(&data, &Spec::ppca(8)).unwrap();
    // A maximum: moving along any entry of the covariance or the mean loses.
    let c = fit.model.covariance();
    let v = data.observed_variances().iter().sum::<f64>() / 9.0;
    let value = |c: &Matrix, mean: &[f64]| {
        let likelihood = Gaussian { mean: mean.to_vec(), covariance: c.clone() }.log_likelihood(&data);
        likelihood - v * dense::solve(c, &Matrix::identity(9)).trace() - dense::ln_det(c)
    };
    let best = value(&c, fit.model.mean());
    for i in 0..9 {
        for sign in [-0.02, 0.02] {
            let mut moved = c.clone();
            moved[(i, (i + 3) % 9)] += sign;
            moved[((i + 3) % 9, i)] += sign;
            assert!(value(&moved, fit.model.mean()) < best, "entry {i}");
            let mut mean = fit.model.mean().to_vec();
            mean[i] += sign;
            assert!(value(&c, &mean) < best, "mean {i}");
        }
    }
}

#[test]
fn gaps_by_their_own_block_are_those_of_the_scores() {
    for share in [0.1, 0.5, 0.8] {
        let (whole, _) = simulate::factor_analysis(Shape { rows: 300, columns: 15, n_components: 5 }, 3);
        let mut values = simulate::hide(&whole, share, 4).values().clone();
        values.scale_columns(&(0..15).map(|j| 10_f64.powi(j - 7)).collect::<Vec<_>>());
        values.row_mut(7).fill(f64::NAN);
        let data = dataset(values);
        let spec = Spec { standardize: true, ..Spec::ppca(14) };
        let model = FullCovariance::default().fit(&data, &spec).unwrap().model;
        let filled = model.impute(&data).unwrap();
        let mut cells = filled.cells().iter();
        for i in 0..data.n_rows() {
            let given = model.condition(&dense::observed(data.row(i)));
            let want = given.complete(data.row(i));
            for (k, &j) in given.gaps().iter().enumerate() {
                let cell = cells.next().expect("one cell per gap");
                assert_eq!((cell.row, cell.column), (i, j));
                let sd = want.variance[k].sqrt();
                assert!((cell.mean - want.mean[k]).abs() < 1e-9 * sd, "{cell:?}");
                assert!((cell.sd / sd - 1.0).abs() < 1e-9, "{cell:?}");
            }
        }
        assert!(cells.next().is_none());
    }
}

#[test]
fn requests_it_cannot_answer_are_refused() {
    let data = gappy(60, 1);
    let refused = |method: FullCovariance, spec: Spec| method.fit(&data, &spec).unwrap_err();
    let error = refused(with(5.0), Spec::ppca(2));
    assert_eq!(error, Error::FixedComponents { asked: 2, columns: 6, fixed: 5 });
    assert!(error.to_string().contains("has 5; leave the number out"), "{error}");
    let weak = Spec { prior: Prior::weak(), ..Spec::ppca(5) };
    assert!(matches!(refused(with(5.0), weak), Error::Unsupported { what: "a prior", .. }));
    let factors = Spec { allow_unidentified: true, ..Spec::factor_analysis(5) };
    assert!(matches!(refused(with(5.0), factors), Error::Unsupported { what: "diagonal noise", .. }));
    for value in [-1.0, f64::INFINITY, f64::NAN] {
        let error = refused(with(value), Spec::ppca(5));
        assert!(matches!(error, Error::OutOfRange { name: "pseudo_rows", .. }), "{error}");
    }
}

#[test]
fn a_watcher_may_stop_it() {
    let data = gappy(60, 1);
    let mut stop =
        |step: &Step| if step.iteration < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
    let fit = with(5.0).fit_observed(&data, &Spec::ppca(5), &mut stop).unwrap();
    assert_eq!((fit.report.termination, fit.report.n_iterations()), (Termination::Interrupted, 2));
}

/// Asks for an end in the midst of a step.
#[derive(Default)]
struct Flagged(AtomicBool);

impl Observer for Flagged {
    fn step(&mut self, step: &Step) -> ControlFlow<()> {
        self.0.store(step.iteration == 2, Ordering::Relaxed);
        ControlFlow::Continue(())
    }

    fn stop_flag(&self) -> Option<&AtomicBool> {
        Some(&self.0)
    }
}

#[test]
fn a_step_that_is_stopped_midway_does_not_count() {
    let data = gappy(60, 1);
    let stopped = with(5.0).fit_observed(&data, &Spec::ppca(5), &mut Flagged::default()).unwrap();
    assert_eq!((stopped.report.termination, stopped.report.n_iterations()), (Termination::Interrupted, 2));
    let two = FullCovariance { max_iterations: 2, ..with(5.0) }.fit(&data, &Spec::ppca(5)).unwrap();
    assert_eq!((stopped.model, stopped.report.trace), (two.model, two.report.trace));
}

#[test]
fn the_family_has_all_components_but_one_and_is_kept() {
    let data = gappy(60, 1);
    let request = Request::new(Family::Gaussian);
    let learned = request.learn(&data).unwrap();
    assert_eq!((learned.n_components(), &learned.linear().unwrap().choice), (5, &None));
    assert_eq!(learned.method.name, "full-covariance");
    assert_eq!(learned.fill(Rows::Training).unwrap().fill(&data).unwrap().cells().len(), data.n_gaps());
    let mut bytes = Vec::new();
    model_file::write(&learned, &mut bytes).unwrap();
    assert_eq!(model_file::read(bytes.as_slice()).unwrap(), learned);
    assert_eq!("gaussian".parse(), Ok(Family::Gaussian));
    for (asked, fits) in [(5, true), (2, false), (6, false)] {
        let got = Request { n_components: Some(Components::Number(asked)), ..request.clone() }.learn(&data);
        assert_eq!(got.is_ok(), fits, "{asked}");
        assert!(fits || got == Err(Error::FixedComponents { asked, columns: 6, fixed: 5 }));
    }
    let odd = Request { inference: Some("em".to_owned()), ..request };
    assert!(matches!(odd.learn(&data), Err(Error::WrongMethod { .. })));
}
