//! Figures of rows in time say what the library answers.

use super::months;
use covary::data::Timeline;
use covary::family::{Components, Family, Request};
use covary::learned::{Knowing, Learned, Rows};
use covary::{Dataset, Matrix};
use covary_report::plot::{factors, forecast, hinton, loadings, map};
use covary_report::{Error, Style};

/// Waves of several columns and sequences, a row in ten missing and a cell in ten.
fn sequences(n: usize, d: usize, names: usize) -> Dataset {
    let cell = |i: usize, j: usize| {
        let (t, k) = (i / names, i % names);
        let wave =
            (t as f64 / 7.0 + k as f64).sin() * (1.0 + j as f64) + ((i * 31 + j * 17) % 13) as f64 / 30.0;
        if t % 11 == 5 || (i * 7 + j * 3) % 10 == 4 { f64::NAN } else { wave }
    };
    let (times, groups): (Vec<i64>, Vec<usize>) =
        (0..n * names).map(|i| (2 * (i / names) as i64 + i64::from(i / names > 20), i % names)).unzip();
    let times: Vec<i64> = times.into_iter().map(|t| t / 2 + t % 2).collect();
    let table = Dataset::new(Matrix::from_fn(n * names, d, cell)).expect("a table");
    table.in_time(Timeline::new(&times, Some(&groups)).expect("times")).expect("as many rows")
}

fn learned(data: &Dataset) -> Learned {
    let request = Request { n_components: Some(Components::Number(1)), ..Request::new(Family::Dfm) };
    request.learn(data).expect("one factor")
}

#[test]
fn forecasts_are_those_of_the_library() {
    let (data, learned) = months();
    let n = forecast::numbers(&learned, &data, Some(7), None).expect("its own table");
    let ahead = &learned.dynamic().expect("in time").forecast(&data, 7).expect("its own table")[0];
    let filled = learned.fill(Rows::New).expect("in time").cells(&data).expect("its own table");
    let smoothed = learned.reconstruct(&data, false).expect("its own table");
    let times = data.times();
    assert_eq!((n.n_steps, n.n_past, n.series.len()), (7, 240, 7));
    for (j, series) in n.series.iter().enumerate() {
        for (step, cell) in series.ahead.iter().zip(ahead.cells.iter().skip(j).step_by(7)) {
            let wanted = [cell.interval(0.5).expect("a level"), cell.interval(0.95).expect("a level")];
            assert_eq!((step.mean, step.intervals, step.observed), (cell.mean, Some(wanted), None));
        }
        // What is shown of the past are the last steps, those of the table at their times.
        assert_eq!((series.past.len(), series.past[59].when.time.as_str()), (60, "2000-12"));
        assert_eq!(
            (series.ahead[0].when.time.as_str(), series.ahead[6].when.time.as_str()),
            ("2001-01", "2001-07")
        );
        let axis = times.axis().expect("months");
        for (row, &(time, _)) in times.of_rows().iter().enumerate() {
            let text = axis.text(time);
            let Some(step) = series.past.iter().find(|step| step.when.time == text) else { continue };
            let value = data.row(row)[j];
            assert_eq!(step.observed, Some(value).filter(|v| !v.is_nan()));
            if let Some(cell) = filled.iter().find(|cell| (cell.row, cell.column) == (row, j)) {
                assert_eq!(step.mean, cell.mean);
                assert_eq!(step.intervals.expect("missing")[1], cell.interval(0.95).expect("a level"));
            } else {
                assert!((step.mean - smoothed[(row, j)]).abs() < 1e-9);
                assert_eq!(step.intervals, None);
            }
        }
    }
    // A season is the usual horizon; columns may be chosen.
    let n = forecast::numbers(&learned, &data, None, Some(&[4, 1])).expect("its own table");
    assert_eq!(
        (n.n_steps, n.series.iter().map(|s| s.column.as_str()).collect::<Vec<_>>()),
        (12, vec!["forest", "bridge"])
    );
}

#[test]
fn factors_are_those_of_the_library() {
    let (data, learned) = months();
    let n = factors::numbers(&learned, &data).expect("its own table");
    let fit = learned.dynamic().expect("in time");
    let known = fit.factors(&data, Knowing::AllRows).expect("its own table");
    assert_eq!((n.courses.len(), n.courses[0].places.len(), n.n_empty), (1, 240, 9));
    let times = data.times();
    let axis = times.axis().expect("months");
    for (row, &(time, _)) in times.of_rows().iter().enumerate() {
        let text = axis.text(time);
        let place =
            n.courses[0].places.iter().find(|place| place.when.time == text).expect("every step is there");
        assert_eq!(place.observed, data.row(row).iter().any(|v| !v.is_nan()));
        for k in 0..2 {
            let (mean, sd) = (known.means[(row, k)], known.covariances[row][(k, k)].sqrt());
            assert!((place.means[k].0 - mean).abs() < 1e-9 && place.means[k].0 == place.means[k].1);
            assert!((place.intervals[k].1 - mean - 1.959_963_984_540_054 * sd).abs() < 1e-9);
            assert!((mean - place.intervals[k].0 - 1.959_963_984_540_054 * sd).abs() < 1e-9);
        }
    }
}

#[test]
fn awkward_tables_in_time_are_drawn() {
    for (n, d, names) in [(60, 2, 1), (40, 40, 1), (40, 3, 3), (30, 2, 9), (5000, 3, 1)] {
        let data = sequences(n, d, names);
        let learned = learned(&data);
        let ahead = forecast::numbers(&learned, &data, None, None).expect("its own table");
        assert!(ahead.series.len() <= 12 && ahead.n_sequences == names && ahead.n_steps == 12);
        let swings = factors::numbers(&learned, &data).expect("its own table");
        assert!(swings.courses.len() <= 6 && swings.courses.iter().all(|c| c.places.len() <= 800));
        for svg in [forecast::draw(&ahead, &Style::default()), factors::draw(&swings, &Style::default())] {
            assert!(!svg.as_str().contains("NaN") && svg.as_str().len() < 400_000, "{}", svg.as_str().len());
            if let Some(folder) = std::env::var_os("COVARY_FIGURES") {
                let name = format!(
                    "{n}x{d}x{names}-{}.png",
                    if svg.as_str().contains("Forecast") { "forecast" } else { "factors" }
                );
                let png = covary_png::png(svg.as_str(), svg.size(), 1.5).expect("of an ordinary size");
                std::fs::write(std::path::Path::new(&folder).join(name), png).expect("writable");
            }
        }
    }
}

#[test]
fn long_sequences_keep_the_least_and_the_largest_of_each_place() {
    let data = sequences(5000, 3, 1);
    let learned = learned(&data);
    let n = factors::numbers(&learned, &data).expect("its own table");
    let every = data.every_step().expect("a table");
    let known = learned.dynamic().expect("in time").factors(&every, Knowing::AllRows).expect("its own table");
    assert_eq!(n.steps_per_place, 7);
    for (k, place) in n.courses[0].places.iter().enumerate() {
        let rows = 7 * k..(7 * k + 7).min(every.n_rows());
        let means: Vec<f64> = rows.map(|row| known.means[(row, 0)]).collect();
        let (low, high) =
            means.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(*v), b.max(*v)));
        let (a, b) = place.means[0];
        assert_eq!((a.min(b), a.max(b)), (low, high));
        assert!(place.intervals[0].0 < low && high < place.intervals[0].1);
    }
}

#[test]
fn loadings_of_factors_in_time_are_in_deviations_of_their_columns() {
    let (_, learned) = months();
    let model = &learned.dynamic().expect("in time").model;
    let wanted = model.loadings()[(3, 1)] * (1.0 / learned.training.column_sds[3]);
    assert_eq!(hinton::numbers(&learned).expect("factors").loadings[3][1], wanted);
    assert_eq!(loadings::numbers(&learned, None).expect("factors").loadings[3][1].value, wanted);
    let shown = map::OfColumns::loadings(&learned, 2).expect("two factors");
    assert_eq!(
        (shown.values, shown.name.starts_with("Loadings of factor 2")),
        (model.loadings().column(1), true)
    );
    assert!(matches!(
        map::OfColumns::loadings(&learned, 3),
        Err(Error::NoSuchComponent { asked: 3, has: 2 })
    ));
}

#[test]
fn maps_of_columns_show_deviations_and_errors() {
    let (data, learned) = months();
    let cells = learned.fill(Rows::New).expect("in time").cells(&data).expect("its own table");
    let shown = map::OfColumns::deviations(&learned, &data).expect("its own table");
    let of = |j: usize| cells.iter().filter(move |cell| cell.column == j).map(|cell| cell.sd * cell.sd);
    for j in 0..7 {
        assert!((shown.values[j] - (of(j).sum::<f64>() / of(j).count() as f64).sqrt()).abs() < 1e-12);
    }
    let request = Request::new(Family::Dfm);
    let options = covary::select::SelfCheckOptions::default();
    let checked = learned.check_by_refit(&request, &data, &options, &mut ()).expect("room").cells;
    let shown = map::OfColumns::errors(&learned, &checked);
    let own: Vec<f64> =
        checked.iter().filter(|c| c.cell.column == 2).map(|c| (c.cell.mean - c.truth).powi(2)).collect();
    assert!((shown.values[2] - (own.iter().sum::<f64>() / own.len() as f64).sqrt()).abs() < 1e-12);
    assert!(shown.name.contains(&format!("{} held-out values", checked.len())), "{}", shown.name);
}

#[test]
fn other_models_have_no_time() {
    let (data, ppca) = super::small();
    for refused in [forecast::numbers(&ppca, &data, None, None).err(), factors::numbers(&ppca, &data).err()] {
        assert!(matches!(refused, Some(Error::Numbers(covary::Error::NotInTime { .. }))));
    }
}
