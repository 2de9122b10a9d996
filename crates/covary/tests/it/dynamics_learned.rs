//! A dynamic factor model through a request: tables that carry their times, files, answers, draws.

use crate::common::assert_close;
use crate::damage::{edited, with_number};
use crate::model_file::bytes;
use covary::data::{Moment, Steps, TimeAxis, Timeline};
use covary::dynamics::{DynamicEm, DynamicFactor, Season, TimeSearch, check_by_blocks};
use covary::family::{Components, Family, ForFilling, Request};
use covary::io::model_file;
use covary::learned::{Knowing, Learned, Rows};
use covary::model::ColumnMap;
use covary::select::SelfCheckOptions;
use covary::{Dataset, Error, Estimator, Matrix, Spec};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::json;

/// A factor with memory and a season in four columns, one constant column, gaps, and a year without a cell.
fn table(rows: usize) -> Dataset {
    let mut level = 0.0;
    let mut values = Matrix::zeros(rows, 5);
    for t in 0..rows {
        level = 0.9 * level + (((t * 7919 + 13) % 101) as f64 / 50.0 - 1.0);
        for j in 0..4 {
            let season = (t as f64 / 12.0 * std::f64::consts::TAU + j as f64).cos();
            let noise = ((t * 31 + j * 17) % 23) as f64 / 23.0 - 0.5;
            let gap = (40..52).contains(&t) || (t * 5 + j * 3).is_multiple_of(11);
            values[(t, j)] =
                if gap { f64::NAN } else { 10.0 + 2.0 * season + (1.0 + j as f64 / 4.0) * level + noise };
        }
        values[(t, 4)] = 7.0;
    }
    Dataset::with_names(values, ["a", "b", "c", "d", "flat"].map(str::to_owned).to_vec()).unwrap()
}

fn months(first: i64, n: usize) -> Timeline {
    let times: Vec<i64> = (first..first + n as i64).collect();
    let steps = Steps::Months { origin: 0, step: 1, day: 1 };
    let axis = TimeAxis { name: "month".into(), sequences: None, steps, notation: "%Y-%m".into() };
    Timeline::new(&times, None).unwrap().on(axis)
}

fn request() -> Request {
    let options = [("season", "12:1"), ("order", "1")];
    Request {
        n_components: Some(Components::Number(1)),
        options: options.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        ..Request::new(Family::Dfm)
    }
}

/// A learned model with season, trend and months.
pub(crate) fn everything() -> Learned {
    let mut request = request();
    request.options.push(("trend".to_owned(), "true".to_owned()));
    request.learn(&table(60).in_time(months(23_772, 60)).unwrap()).unwrap()
}

/// What no fit writes is refused, whatever its checksum.
#[test]
fn parts_of_a_file_that_contradict_each_other_are_refused() {
    let written = bytes(&everything());
    let numbers = |period: f64, n: u64| json!({ "kind": "harmonics", "period": period, "n": n });
    for (field, value, said) in [
        ("season", numbers(0.5, 1), "a period that is not above 1"),
        ("season", numbers(12.0, u64::MAX), "more waves than coefficients"),
        ("season", numbers(12.0, 2), "columns of the coefficients"),
        ("season", json!({ "kind": "indicators", "period": 0 }), "a period that is not from 2"),
        ("trend", json!({ "center": 0.0, "unit": 0.0 }), "the unit of the trend"),
        ("trend", json!(null), "columns of the coefficients"),
        ("noise", json!("isotropic"), "is not one number"),
    ] {
        let changed = edited(&written, |header, _| header[field] = value.clone());
        let refused = model_file::read(changed.as_slice()).expect_err(field).to_string();
        assert!(refused.contains(said), "{field}: {refused}");
    }
    let changed = edited(&written, |header, _| header["time"]["steps"]["step"] = json!(0));
    let refused = model_file::read(changed.as_slice()).unwrap_err().to_string();
    assert!(refused.contains("the step of time"), "{refused}");
    for (array, value) in [("transition", f64::NAN), ("innovation", -1.0), ("noise_variance", 0.0)] {
        assert!(model_file::read(with_number(&written, array, value).as_slice()).is_err(), "{array}");
    }
    // The farthest of times are times like any other.
    let far = edited(&written, |header, _| {
        header["span"] = json!([i64::MIN, i64::MAX]);
        header["time"]["steps"]["origin"] = json!(i64::MIN);
    });
    let far = model_file::read(far.as_slice()).unwrap();
    assert!(far.to_json().contains("first_time"));
    let steps = far.dynamic().unwrap().axis.as_ref().unwrap().steps;
    assert_eq!(steps.place(Moment::Clock(0)), None);
}

fn asked(learned: &Learned, table: &Dataset) -> Dataset {
    learned.column_map(table.column_names()).unwrap().dataset(table).unwrap().into_owned()
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|v| v.to_bits()).collect()
}

#[test]
fn a_request_learns_what_the_estimator_fits_and_a_file_keeps_every_bit() {
    let table = table(120).in_time(months(23_772, 120)).unwrap();
    let learned = request().learn(&table).unwrap();
    let data = asked(&learned, &table);
    assert_eq!(data.timeline(), table.timeline());
    let em = DynamicEm { season: Season::Harmonics { period: 12.0, n: 1 }, ..DynamicEm::default() };
    let spec = Spec { standardize: true, ..request().spec() };
    let fit = learned.dynamic().unwrap();
    assert_eq!(fit.model, em.fit(&data, &spec).unwrap().model);
    assert_eq!(learned.method.options["season"], "12.0:1");
    assert_eq!((fit.span, learned.constants[0].name.as_str()), ((23_772, 23_891), "flat"));

    let written = bytes(&learned);
    let read = model_file::read(written.as_slice()).unwrap();
    assert_eq!(read, learned);
    assert!(bytes(&read) == written);
    let kept = read.dynamic().unwrap();
    for knowing in [Knowing::AllRows, Knowing::RowsSoFar] {
        assert_eq!(kept.factors(&data, knowing).unwrap(), fit.factors(&data, knowing).unwrap());
    }
    let (a, b) = (kept.forecast(&data, 12).unwrap(), fit.forecast(&data, 12).unwrap());
    assert_eq!(a, b);
    assert_eq!(kept.axis.as_ref().unwrap().text(a[0].times[0]), "1991-01");
    let (filled, again) = (learned.fill(Rows::Training).unwrap(), read.fill(Rows::New).unwrap());
    assert_eq!(filled.cells(&data).unwrap(), again.cells(&data).unwrap());
    let json: serde_json::Value = serde_json::from_str(&read.to_json()).unwrap();
    assert_eq!(json["first_time"], "1981-01");
    assert_eq!(json["last_time"], "1990-12");
    assert_eq!(json["transition"][0][0].as_f64(), Some(fit.model.transition()[(0, 0)]));
}

/// The season of a new table is that of its months, wherever it begins.
#[test]
fn a_new_table_is_asked_at_its_own_phase_of_the_year() {
    let whole = table(120).in_time(months(23_772, 120)).unwrap();
    let learned = request().learn(&whole).unwrap();
    let (fit, data) = (learned.dynamic().unwrap(), asked(&learned, &whole));
    let rows: Vec<usize> = (61..120).collect();
    let part = data.of_rows(&rows).unwrap();
    assert_eq!(part.times().span(), (23_833, 23_891));
    let season = |k: usize| fit.model.regressors().at(part.times().of_rows()[k].0);
    assert_eq!(season(0), fit.model.regressors().at(23_833));
    let plain = |table: &Dataset| fit.model.forecast(table, &table.times(), 3).unwrap();
    let (own, want) = (plain(&part), plain(&data));
    assert_eq!(own[0].times, want[0].times);
    // 59 rows leave nothing of what was before them.
    for (own, want) in own[0].cells.iter().zip(&want[0].cells) {
        assert_close("forecast", &[own.mean, own.sd], &[want.mean, want.sd], 1e-3);
    }
    // Parameters were estimated from the whole table, whatever part of it is asked of.
    let estimated = |from: &Dataset| fit.model.forecast_estimated(&part, &part.times(), 3, &from.into());
    let own = fit.forecast(&part, 3).unwrap();
    assert_eq!(own, estimated(&data).unwrap());
    let fewer = estimated(&part).unwrap();
    assert!(own[0].cells.iter().zip(&fewer[0].cells).all(|(own, fewer)| own.sd < fewer.sd));
    // Months are not rows that were only counted, nor quarters.
    let counted = Dataset::with_names(data.values().clone(), data.column_names().to_vec()).unwrap();
    let refused = learned.scores(&counted, None).unwrap_err();
    assert!(matches!(&refused, Error::OtherTimes { model, .. } if model == "`month`, monthly"), "{refused}");
    let mut axis = months(0, 1).axis().unwrap().clone();
    axis.steps = Steps::Months { origin: 0, step: 3, day: 1 };
    let quarters = counted.in_time(Timeline::regular(120).on(axis)).unwrap();
    assert!(matches!(learned.row_scores(&quarters), Err(Error::OtherTimes { .. })));
}

#[test]
fn whoever_makes_another_table_of_the_same_rows_keeps_their_times() {
    let table = table(60).in_time(months(10, 60)).unwrap();
    let kept = [
        table.of_columns(&[2, 0]).unwrap(),
        table.without_cells([(0, 1)]).unwrap(),
        covary::data::simulate::hide(&table, 0.1, 1),
        ColumnMap::of_observed(&table).unwrap().dataset(&table).unwrap().into_owned(),
    ];
    for other in kept {
        assert_eq!(other.timeline(), table.timeline());
    }
    assert_eq!(table.of_rows(&[7, 3, 9]).unwrap().times().of_rows(), [(17, 0), (13, 0), (19, 0)]);
    assert!(table.of_rows(&[7, 7]).unwrap().timeline().is_none());
    assert_eq!(Dataset::new(Matrix::zeros(4, 1)).unwrap().times().span(), (0, 3));
}

#[test]
fn options_come_back_as_they_were_said() {
    let mut method = DynamicEm::default();
    let said = [
        ("season", "12:2"),
        ("season", "12:means"),
        ("season", "none"),
        ("order", "2"),
        ("trend", "true"),
        ("first_state", "estimated"),
    ];
    for (name, value) in said {
        method.set(name, value).unwrap();
        let mut again = DynamicEm::default();
        for (name, value) in method.options() {
            again.set(name, &value).unwrap();
        }
        assert_eq!(again, method, "{name}={value}");
    }
    method.set("season", "12").unwrap();
    assert_eq!(method.season, Season::Harmonics { period: 12.0, n: 1 });
    for wrong in ["monthly", "12:", "12:x", "x:means", "none:2"] {
        assert!(
            matches!(method.set("season", wrong), Err(Error::BadOption { option: "season", .. })),
            "{wrong}"
        );
    }
    let fast = Request { options: vec![("season".into(), "3:2".into())], ..request() };
    assert!(matches!(fast.learn(&table(60)), Err(Error::OutOfRange { name: "period", .. })));
}

/// What is left open is what hidden blocks of time choose, and is kept with the method.
#[test]
fn factors_waves_and_order_are_chosen_by_blocks_of_time_where_they_are_left_open() {
    let table = table(120);
    let options = vec![("season".to_owned(), "12".to_owned())];
    let open = Request { n_components: None, options, ..request() };
    let learned = open.learn(&table).unwrap();
    let data = asked(&learned, &table);
    let season = Season::Harmonics { period: 12.0, n: 1 };
    let estimator = DynamicEm { season, ..DynamicEm::default() };
    let search = TimeSearch { estimator, ..TimeSearch::default() };
    let found = search.run(&data, &open.spec()).unwrap();
    let fit = learned.dynamic().unwrap();
    assert_eq!((fit.model.n_components(), fit.model.order()), (found.n_components, found.order));
    assert_eq!(fit.model.regressors().season, found.season);
    assert_eq!(learned.method.options["order"], found.order.to_string());
    assert_eq!(learned.seed, 0);
    // What was said is not searched.
    let options = vec![("season".to_owned(), "12:2".to_owned()), ("order".to_owned(), "1".to_owned())];
    let said = Request { n_components: None, options, ..request() }.learn(&table).unwrap();
    let fit = said.dynamic().unwrap();
    assert_eq!(
        (fit.model.regressors().season, fit.model.order()),
        (Season::Harmonics { period: 12.0, n: 2 }, 1)
    );
}

/// Blocks of time are hidden, and no cell by itself; the fit without them is that of the same method.
#[test]
fn the_check_hides_blocks_of_time() {
    let table = table(120);
    let filling = |calibrate| Some(ForFilling { choose: false, calibrate, limits: false });
    let calibrated = Request { filling: filling(true), ..request() }.learn(&table).unwrap();
    let request = Request { filling: filling(false), ..request() };
    let mut learned = request.learn(&table).unwrap();
    assert!(learned.filling.as_ref().unwrap().calibration.is_none());
    let data = asked(&learned, &table);
    let options = SelfCheckOptions::default();
    let fit = learned.dynamic().unwrap().clone();
    // Residuals of other blocks say how far intervals reach, of filled cells and of those that the check hides.
    let of = calibrated.filling.as_ref().unwrap().calibration.as_ref().unwrap();
    assert!(of.n_hidden > 100 && of.transplanted, "{}", of.n_hidden);
    let filled = |by: &Learned| by.fill(Rows::Training).unwrap().cells(&data).unwrap();
    for (cell, own) in filled(&calibrated).iter().zip(filled(&learned)) {
        assert_eq!(cell.mean, own.mean);
        assert_close("sd", &[cell.sd], &[own.sd * of.columns[cell.column].spread], 1e-12);
    }
    let checked = calibrated.check_by_refit(&request, &data, &options, &mut ()).unwrap();
    let plain = learned.check_by_refit(&request, &data, &options, &mut ()).unwrap();
    for (cell, own) in checked.cells.iter().zip(&plain.cells) {
        let spread = of.columns[cell.cell.column].spread;
        assert_close("hidden", &[cell.cell.sd], &[own.cell.sd * spread], 1e-12);
    }
    let stop = std::sync::atomic::AtomicBool::new(false);
    let as_it_is = learned.check_as_it_is(Rows::New, &data, &options, &stop).unwrap();
    let times = data.times();
    let own = |visible: &Dataset| fit.model.fill(visible, &times);
    let (want, cells) = check_by_blocks(&data, &times, 1, &options, own).unwrap();
    assert!(as_it_is.in_blocks && !as_it_is.refitted);
    assert_eq!((as_it_is.found(), &as_it_is.cells), (Some(&want), &cells));

    let refitted = learned.check_by_refit(&request, &data, &options, &mut ()).unwrap();
    assert!(refitted.in_blocks && refitted.refitted);
    let mut method =
        DynamicEm { init: Some(Box::new(fit.model.clone())), tolerance: 1e-2, ..DynamicEm::default() };
    method.set("season", "12:1").unwrap();
    let again = |visible: &Dataset| method.fit(visible, &fit.spec)?.model.fill(visible, &times);
    let (want, _) = check_by_blocks(&data, &times, 1, &options, again).unwrap();
    assert_eq!(refitted.found(), Some(&want));
    request.check_observed(&mut learned, &data, &()).unwrap();
    assert_eq!(learned.check, Some(want));
    assert_eq!(model_file::read(bytes(&learned).as_slice()).unwrap(), learned);
}

/// Draws of gaps have the means, deviations and correlations of the joint Gaussian of all cells.
#[test]
fn draws_of_gaps_are_joint() {
    let whole = table(36);
    let learned = request().learn(&table(120)).unwrap();
    // Two rows without a cell, so that nothing but time ties their gaps together.
    let empty = (20..22).flat_map(|i| (0..4).map(move |j| (i, j)));
    let data = asked(&learned, &whole).without_cells(empty).unwrap();
    let model: &DynamicFactor = &learned.dynamic().unwrap().model;
    let draws = learned.gap_draws(Rows::New, &data).unwrap();
    let n = 4000;
    let drawn: Vec<Matrix> = (0..n).map(|k| draws.draw(k, 3).unwrap()).collect();
    assert_eq!(bits(drawn[1].as_slice()), bits(draws.draw(1, 3).unwrap().as_slice()));
    let cells = model.fill(&data, &data.times()).unwrap();
    let moments = |f: &dyn Fn(&Matrix) -> f64| drawn.iter().map(f).sum::<f64>() / n as f64;
    for cell in &cells {
        let at = (cell.row, cell.column);
        let mean = moments(&|m| m[at]);
        let sd = moments(&|m| (m[at] - cell.mean).powi(2)).sqrt();
        // Five standard errors.
        assert!((mean - cell.mean).abs() < 5.0 * cell.sd / (n as f64).sqrt(), "{cell:?}: {mean}");
        assert!((sd / cell.sd - 1.0).abs() < 5.0 / (2.0 * n as f64).sqrt(), "{cell:?}: {sd}");
    }
    // The covariance of two gaps of neighboring rows: of the second given the first in place, by one more observation.
    let (first, second) = ((20, 0), (21, 0));
    let find = |table: &Dataset, at: (usize, usize)| {
        let cells = model.fill(table, &table.times()).unwrap();
        cells.into_iter().find(|c| (c.row, c.column) == at).unwrap()
    };
    let (a, b) = (find(&data, first), find(&data, second));
    let mut moved = data.values().clone();
    moved[first] = a.mean + 1.0;
    let slope = find(&Dataset::new(moved).unwrap(), second).mean - b.mean;
    let got = moments(&|m| (m[first] - a.mean) * (m[second] - b.mean)) / (a.sd * b.sd);
    let want = slope * a.sd / b.sd;
    assert!(want.abs() > 0.1 && (got - want).abs() < 5.0 / (n as f64).sqrt(), "{got} {want}");
}

/// Rows drawn from a model are rows like those it learned from: fitted again, they give its parameters.
#[test]
fn a_sample_is_a_sequence_of_the_model() {
    let learned = request().learn(&table(120)).unwrap();
    let (drawn, labels) = learned.sample(20_000, &mut ChaCha8Rng::seed_from_u64(5)).unwrap();
    assert!(labels.is_none());
    let again = Dataset::with_names(drawn, learned.columns.clone()).unwrap();
    let refitted = request().learn(&again).unwrap();
    let (own, new) = (&learned.dynamic().unwrap().model, &refitted.dynamic().unwrap().model);
    assert_close("A", new.transition().as_slice(), own.transition().as_slice(), 0.03);
    for (got, want) in new.coefficients().as_slice().iter().zip(own.coefficients().as_slice()) {
        assert!((got - want).abs() < 0.2, "{got} {want}");
    }
}

#[test]
fn one_step_surprises_are_distances_in_the_joint_gaussian() {
    let table = table(60);
    let learned = request().learn(&table).unwrap();
    let data = asked(&learned, &table);
    let scores = learned.row_scores(&data).unwrap();
    let fit = learned.dynamic().unwrap();
    assert_eq!(bits(&scores.log_density), bits(&fit.model.log_density(&data, &data.times()).unwrap()));
    let surprises = scores.surprises.unwrap();
    // Of a row with one observed cell the distance is that of a forecast of one step.
    let alone = data.without_cells((1..4).map(|j| (30, j))).unwrap();
    let before = alone.of_rows(&(0..30).collect::<Vec<_>>()).unwrap();
    let ahead = &fit.model.forecast(&before, &before.times(), 1).unwrap()[0].cells[0];
    let got = learned.row_scores(&alone).unwrap().surprises.unwrap()[30];
    assert!(!data.row(30)[0].is_nan() && got.n_observed == 1);
    let want = ((data.row(30)[0] - ahead.mean) / ahead.sd).powi(2);
    assert_close("surprise", &[got.mahalanobis], &[want], 1e-8);
    assert!((0.0..=1.0).contains(&got.tail_probability()));
    // A row without a cell surprises nobody.
    assert_eq!((surprises[45].mahalanobis, surprises[45].tail_probability()), (0.0, 1.0));
    let mut odd = data.values().clone();
    odd[(30, 0)] += 50.0;
    let odd = Dataset::with_names(odd, data.column_names().to_vec()).unwrap();
    assert!(learned.row_scores(&odd).unwrap().surprises.unwrap()[30].tail_probability() < 1e-6);
}

#[test]
fn a_reconstruction_is_what_factors_and_season_say() {
    let table = table(60);
    let learned = request().learn(&table).unwrap();
    let data = asked(&learned, &table);
    let back = learned.reconstruct(&data, false).unwrap();
    // A gap is filled by its reconstruction.
    for cell in learned.fill(Rows::Training).unwrap().cells(&data).unwrap() {
        assert_close("cell", &[back[(cell.row, cell.column)]], &[cell.mean], 1e-10);
    }
}

#[test]
fn moments_of_a_month_are_one_time() {
    let day = |n: i64| Moment::Clock(n * 86_400_000_000);
    let steps = Steps::of(&[(day(0), 0), (day(31), 0)]).unwrap();
    assert_eq!(steps.place(day(0)), steps.place(day(30)));
    assert!(steps.place(Moment::Number(3.0)).is_none());
}
