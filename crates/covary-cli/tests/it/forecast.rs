//! Rows in time by the command: what is said of times, forecasts, filled gaps, and every bad input.

use super::{folder_with_examples, learned, run_in, succeed};
use covary::family::{Components, Family, ForFilling, Request};
use covary::io::{Gaps, Table, TimeColumns, csv, model_file};
use covary::learned::Rows;
use std::fs;
use std::path::Path;

const FIT: &str =
    "fit examples/months.csv --model dfm --time month --season 12 --components 2 -o months.covary";

/// The shipped table, in time.
fn months(root: &Path, name: &str) -> Table {
    let text = fs::read_to_string(root.join(name)).unwrap();
    let columns = TimeColumns { time: "month", sequences: None, steps: None };
    csv::read(text.as_bytes()).unwrap().in_time(&columns, &Gaps::default()).unwrap()
}

fn request() -> Request {
    Request {
        n_components: Some(Components::Number(2)),
        options: vec![("season".to_owned(), "12".to_owned())],
        ..Request::new(Family::Dfm)
    }
}

fn lines(root: &Path, name: &str) -> Vec<String> {
    fs::read_to_string(root.join(name)).unwrap().lines().map(str::to_owned).collect()
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_else(|_| panic!("`{text}` is a number"))
}

#[test]
fn the_command_says_when_rows_happened_and_writes_what_the_library_does() {
    let folder = folder_with_examples();
    let root = folder.path();
    let said = succeed(root, FIT);
    assert!(
        said.err.contains("`month`: monthly, 1981-01 to 2000-12, 3 months without a row\n"),
        "{}",
        said.err
    );
    assert!(said.err.contains("dynamic factor model, 2 factors, monthly"), "{}", said.err);
    let table = months(root, "examples/months.csv");
    let data = table.dataset();
    let own = request().learn(data).unwrap();
    let mut bytes = Vec::new();
    model_file::write(&own, &mut bytes).unwrap();
    assert!(bytes == fs::read(root.join("months.covary")).unwrap());

    // Forecasts: a row for each step and column, in the notation of the table.
    let said =
        succeed(root, "forecast months.covary examples/months.csv --steps 14 --interval 0.9 -o ahead.csv");
    assert!(said.err.contains("14 steps ahead: 2001-01 to 2002-02"), "{}", said.err);
    let ahead = lines(root, "ahead.csv");
    assert_eq!(ahead[0], "month,column,mean,sd,lower,upper");
    assert_eq!(ahead.len(), 1 + 14 * 7);
    let want = &own.dynamic().unwrap().forecast(data, 14).unwrap()[0].cells;
    for (line, cell) in ahead[1..].iter().zip(want) {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields[1], data.column_names()[cell.column]);
        assert_eq!((number(fields[2]), number(fields[3])), (cell.mean, cell.sd));
        assert_eq!((number(fields[4]), number(fields[5])), cell.interval(0.9).unwrap());
    }
    assert!(ahead[1].starts_with("2001-01,harbor,") && ahead[98].starts_with("2002-02,summit,"));
    let wide = succeed(root, "forecast -q months.covary examples/months.csv --steps 2 --wide").out;
    let wide: Vec<&str> = wide.lines().collect();
    assert_eq!(wide[0], "month,harbor,bridge,mill,lake,forest,pass,summit");
    assert!(wide.len() == 3 && wide[2].starts_with(&format!("2001-02,{:?},", want[7].mean)), "{wide:?}");
    let json = succeed(root, "forecast months.covary examples/months.csv --steps 2 --json -o ahead.csv").out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((json["first"].as_str(), json["last"].as_str()), (Some("2001-01"), Some("2001-02")));
}

/// Scores, densities, simulated rows and what is inside.
#[test]
fn the_other_verbs_answer_in_time() {
    let folder = folder_with_examples();
    let root = folder.path();
    succeed(root, FIT);
    let own = learned(root, "months.covary");
    let fit = own.dynamic().unwrap();
    let table = months(root, "examples/months.csv");
    let data = table.dataset();
    for (flag, knowing) in
        [("", covary::learned::Knowing::AllRows), ("--filtered", covary::learned::Knowing::RowsSoFar)]
    {
        succeed(
            root,
            &format!("transform -q months.covary examples/months.csv {flag} --covariance -o scores.csv"),
        );
        let scores = lines(root, "scores.csv");
        assert_eq!(scores[0], "month,component_1,component_2,covariance_1_1,covariance_2_1,covariance_2_2");
        let factors = fit.factors(data, knowing).unwrap();
        for (i, line) in scores[1..].iter().enumerate() {
            let fields: Vec<f64> = line.split(',').skip(1).map(number).collect();
            assert_eq!(fields[..2], *factors.means.row(i));
            assert_eq!(fields[4], factors.covariances[i][(1, 1)]);
        }
    }
    succeed(root, "score -q months.covary examples/months.csv -o odd.csv");
    let odd = lines(root, "odd.csv");
    assert_eq!(odd[0], "month,log_likelihood,n_observed,mahalanobis,tail_probability");
    let found = own.row_scores(data).unwrap();
    let surprises = found.surprises.unwrap();
    for (i, line) in odd[1..].iter().enumerate() {
        let fields: Vec<f64> = line.split(',').skip(1).map(number).collect();
        assert_eq!(fields[..1], [found.log_density[i]]);
        assert_eq!(fields[2..], [surprises[i].mahalanobis, surprises[i].tail_probability()]);
    }
    let drawn = succeed(root, "sample -q months.covary --rows 30 --seed 1").out;
    let drawn: Vec<&str> = drawn.lines().collect();
    assert!(drawn.len() == 31 && drawn[1].starts_with("1981-01,") && drawn[30].starts_with("1983-06,"));
    assert_eq!(
        succeed(root, "sample -q months.covary --rows 30 --seed 1").out.lines().last(),
        Some(drawn[30])
    );
    let inside = succeed(root, "inspect months.covary").out;
    for words in [
        "`month`: monthly, 1981-01 to 2000-12",
        "transition of the factors",
        "half-life",
        "spectral radius of the transition",
        "1 wave of a season of 12 steps",
    ] {
        assert!(inside.contains(words), "`{words}` in {inside}");
    }
    let back = succeed(root, "reconstruct -q months.covary examples/months.csv").out;
    assert_eq!(back.lines().count(), 238);
}

#[test]
fn gaps_are_filled_by_time_and_everything_else_leaves_as_it_came() {
    let folder = folder_with_examples();
    let root = folder.path();
    let said = succeed(
        root,
        "impute examples/months.csv --time month --season 12 --components 2 --cells cells.csv -o filled.csv",
    );
    assert!(said.err.contains(" in blocks of time: RMSE "), "{}", said.err);
    assert!(said.err.contains("intervals calibrated on "), "{}", said.err);
    let (before, after) = (lines(root, "examples/months.csv"), lines(root, "filled.csv"));
    for (before, after) in before.iter().zip(&after) {
        for (before, after) in before.split(',').zip(after.split(',')) {
            assert!(before.is_empty() && !after.is_empty() || before == after);
        }
    }
    let table = months(root, "examples/months.csv");
    let filling = Some(ForFilling { choose: false, ..ForFilling::default() });
    let own = Request { filling, ..request() }.learn(table.dataset()).unwrap();
    let cells = own.fill(Rows::Training).unwrap().cells(table.dataset()).unwrap();
    let listed = lines(root, "cells.csv");
    assert_eq!(listed.len(), 1 + table.dataset().n_gaps());
    for (line, cell) in listed[1..].iter().zip(&cells) {
        assert_eq!(line.split(',').next(), Some((cell.row + 1).to_string().as_str()));
        assert_eq!(number(line.split(',').nth(3).unwrap()), cell.mean);
    }

    // A model file fills the same, rows in any order, the last years alone, and draws.
    succeed(root, FIT);
    succeed(
        root,
        "impute -q examples/months.csv --model months.covary --bounds none -o by_model.csv --draws 2",
    );
    succeed(
        root,
        "impute -q examples/months.csv --model dfm --time month --season 12 --components 2 --bounds none -o by_fit.csv",
    );
    assert_eq!(lines(root, "by_model.csv"), lines(root, "by_fit.csv"));
    assert_ne!(lines(root, "by_model-1.csv"), lines(root, "by_model-2.csv"));
    let mut shuffled = before[1..].to_vec();
    shuffled.reverse();
    shuffled.insert(0, before[0].clone());
    fs::write(root.join("reversed.csv"), shuffled.join("\n")).unwrap();
    let said = succeed(root, "impute reversed.csv --model months.covary --bounds none -o back.csv");
    assert!(said.err.contains("rows are not in the order of time"), "{}", said.err);
    let mut back = lines(root, "back.csv");
    back[1..].reverse();
    assert_eq!(back, lines(root, "by_model.csv"));
}

#[test]
fn sequences_are_told_apart_by_a_column() {
    let folder = folder_with_examples();
    let root = folder.path();
    let months = lines(root, "examples/months.csv");
    let mut both = vec![format!("site,{}", months[0])];
    both.extend(months[1..121].iter().map(|line| format!("north,{line}")));
    both.extend(months[60..].iter().map(|line| format!("south,{line}")));
    fs::write(root.join("sites.csv"), both.join("\n")).unwrap();
    let fit =
        "fit sites.csv --model dfm --time month --group site --season 12 --components 1 -o sites.covary";
    let said = succeed(root, fit);
    assert!(said.err.contains("1981-01 to 2000-12 in 2 sequences, "), "{}", said.err);
    let ahead = succeed(root, "forecast -q sites.covary sites.csv --steps 1 --wide").out;
    let ahead: Vec<&str> = ahead.lines().collect();
    assert_eq!(ahead[0], "site,month,harbor,bridge,mill,lake,forest,pass,summit");
    // 120 rows, and three months without one.
    assert!(ahead[1].starts_with("north,1991-04,") && ahead[2].starts_with("south,2001-01,"), "{ahead:?}");
    let refused =
        run_in(root, &["fit", "sites.csv", "--model", "dfm", "--time", "month", "-o", "m.covary"], b"");
    let words = "row 60 (line 61) and row 121 (line 122) both have `1986-02` in column `month`";
    assert!(refused.code == Some(1) && refused.err.contains(words), "{}", refused.err);
    assert!(refused.err.contains("or say which column tells several sequences apart"), "{}", refused.err);
    let alone =
        run_in(root, &["fit", "sites.csv", "--model", "dfm", "--group", "site", "-o", "m.covary"], b"");
    assert!(alone.code == Some(2) && alone.err.contains("--time"), "{}", alone.err);
}

#[test]
fn every_bad_time_is_named_with_its_place_and_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let table = |first: &[&str]| {
        let rows = (first.len()..30)
            .map(|i| format!("2020-{:02}-{:02},{},{}", i / 28 + 1, i % 28 + 1, i % 7, i % 5));
        let given = first.iter().enumerate().map(|(i, t)| format!("{t},{},{}", i % 7, i % 5));
        let text: Vec<String> = std::iter::once("day,x,y".to_owned()).chain(given).chain(rows).collect();
        fs::write(root.join("t.csv"), text.join("\n")).unwrap();
    };
    let refused = |words: &[&str]| {
        let call = ["fit", "t.csv", "--model", "dfm", "--time", "day", "--components", "1", "-o", "m.covary"];
        let said = run_in(root, &call, b"");
        assert_eq!(said.code, Some(1), "{}", said.err);
        for words in words {
            assert!(said.err.contains(words), "`{words}` in {}", said.err);
        }
    };
    table(&["2020-01-01", "2020-01-01"]);
    refused(&[
        "t.csv: row 1 (line 2) and row 2 (line 3) both have `2020-01-01` in column `day`",
        "remove one",
    ]);
    table(&["2020-01-01", ""]);
    refused(&["row 2 (line 3) has no value in column `day`", "give it one, or remove the row"]);
    table(&["2020-01-01", "soon"]);
    refused(&[
        "`soon` in row 2 (line 3) of column `day` is no time such as `2020-01-01`",
        "write dates 2020-01-31",
    ]);
    table(&["31.12.2019"]);
    refused(&["`31.12.2019` in row 1 (line 2) of column `day` is no time; write dates"]);
    fs::write(root.join("t.csv"), "day,x,y\n2020-01-01,1,2\n").unwrap();
    refused(&["the sequence has one step"]);
    let irregular = ["2020-01-02", "2020-02-03", "2020-03-02", "2020-04-01", "2020-05-04"];
    let rows: Vec<String> =
        irregular.iter().enumerate().map(|(i, t)| format!("{t},{i},{}", i * i % 3)).collect();
    fs::write(root.join("t.csv"), format!("day,x,y\n{}\n", rows.join("\n"))).unwrap();
    refused(&["times are irregular: rows 1 and 2 are 32 days apart, rows 2 and 3 28 days", "2020-01"]);
    table(&[]);
    let said = run_in(root, &["fit", "t.csv", "--model", "dfm", "--time", "date", "-o", "m.covary"], b"");
    assert!(said.code == Some(1) && said.err.contains("there is no column `date`"), "{}", said.err);
    // More factors than columns, and a season that is too short.
    let call = ["fit", "t.csv", "--model", "dfm", "--time", "day", "--components", "40", "-o", "m.covary"];
    let said = run_in(root, &call, b"");
    assert!(said.code == Some(1) && said.err.contains("40 components"), "{}", said.err);
    for wrong in ["--season 12", "--trend", "--order 2", "--time day"] {
        let call: Vec<&str> = "fit t.csv -o m.covary".split(' ').chain(wrong.split(' ')).collect();
        let said = run_in(root, &call, b"");
        assert!(said.code == Some(2) && said.err.contains("--model dfm"), "{wrong}: {}", said.err);
    }

    // A table in other steps than the model's, and a model without time.
    let weekly: Vec<String> =
        (0..10).map(|i| format!("2020-01-{:02},{},{}", 1 + i * 2, i % 3, i % 4)).collect();
    succeed_fit(root);
    fs::write(root.join("t.csv"), format!("day,x,y\n{}\n", weekly.join("\n"))).unwrap();
    assert_eq!(run_in(root, &["forecast", "m.covary", "t.csv", "--steps", "1"], b"").code, Some(0));
    fs::write(root.join("t.csv"), "day,x,y\n2020-01-01T12:00,1,2\n2020-01-02T12:00,1,2\n").unwrap();
    let said = run_in(root, &["forecast", "m.covary", "t.csv", "--steps", "1"], b"");
    assert!(said.err.contains("is between two steps of the model, which are daily"), "{}", said.err);
}

fn succeed_fit(root: &Path) {
    succeed(root, "fit -q t.csv --model dfm --time day --components 1 -o m.covary");
    succeed(root, "fit -q t.csv --id day --components 1 -o plain.covary");
    let said = run_in(root, &["forecast", "plain.covary", "t.csv", "--steps", "1"], b"");
    assert!(
        said.code == Some(1) && said.err.contains("covary fit --model dfm --time COLUMN"),
        "{}",
        said.err
    );
}

/// Who does not ask for time is told once that it could be.
#[test]
fn a_column_of_dates_is_noticed() {
    let folder = folder_with_examples();
    let root = folder.path();
    let said = succeed(root, "fit examples/months.csv -o m.covary");
    assert_eq!(said.err.matches("--model dfm --time 'month'").count(), 1, "{}", said.err);
    // The numbers are the library's; time is worth something in this table.
    let hint = said.err.lines().find(|line| line.contains("in blocks of time")).expect("a score");
    let numbers: Vec<f64> = hint.split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
    let [season, n_hidden, n_factors, in_time, own] = numbers[..] else { panic!("{hint}") };
    let table = months(root, "examples/months.csv");
    let request = Request::new(Family::Ppca);
    let beside = learned(root, "m.covary").beside_time(&request, table.dataset(), &mut ()).unwrap().unwrap();
    assert_eq!((n_hidden, n_factors), (beside.n_hidden as f64, beside.n_factors as f64));
    assert_eq!((season, beside.season), (12.0, Some(12)));
    assert!((in_time - beside.rmse_in_time).abs() < 0.006 && (own - beside.rmse).abs() < 0.006, "{hint}");
    assert!(in_time < own, "{hint}");
    let said = succeed(root, "fit examples/months.csv --model dfm --components 1 -o m.covary");
    assert!(said.err.contains("say --time 'month' if they are theirs"), "{}", said.err);
    let said = succeed(root, "fit examples/wine.csv --model dfm --components 1 -o m.covary");
    assert!(said.err.contains("rows are taken one step after the other, as they stand"), "{}", said.err);
    assert!(!succeed(root, "fit examples/wine.csv -o m.covary").err.contains("dfm"));
}

/// Factors, order and waves that blocks of time and forecasts choose, as `fit` takes them.
#[test]
fn select_compares_models_of_time() {
    let folder = folder_with_examples();
    let root = folder.path();
    let call = "select examples/months.csv --model dfm --time month --season 12";
    let table = succeed(root, call).out;
    assert!(table.contains("RMSE in blocks") && table.contains("recommended: "), "{table}");
    let found: serde_json::Value =
        serde_json::from_str(&succeed(root, &format!("{call} --json")).out).unwrap();
    let said = succeed(root, "fit examples/months.csv --model dfm --time month --season 12 -o m.covary").err;
    let own = learned(root, "m.covary");
    let (fit, chosen) = (own.dynamic().unwrap(), &found["recommended"]);
    assert_eq!(chosen["n_components"].as_u64(), Some(fit.model.n_components() as u64), "{said}");
    assert_eq!(chosen["order"].as_u64(), Some(fit.model.order() as u64));
    assert!(said.contains(&format!("of order {}", fit.model.order())) && said.contains("blocks"), "{said}");
    let wrong = run_in(root, &["select", "examples/wine.csv", "--season", "12"], b"");
    assert!(wrong.code == Some(2) && wrong.err.contains("--model dfm"), "{}", wrong.err);
}

/// A table `name.csv` with a column of times and these columns.
fn write(root: &Path, name: &str, columns: &str, rows: impl Iterator<Item = String>) {
    fs::write(root.join(name), format!("{columns}\n{}\n", rows.collect::<Vec<_>>().join("\n"))).unwrap();
}

#[test]
fn tables_with_little_time_are_fitted_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let wave = |i: usize| (i as f64 / 3.0).sin() + (i * 7 % 5) as f64 / 10.0;
    let fit = |table: &str, flags: &str| {
        let call = format!("fit {table} --model dfm --time t {flags} -o m.covary");
        run_in(root, &call.split_whitespace().collect::<Vec<_>>(), b"")
    };
    let refused = |table: &str, flags: &str, words: &str| {
        let said = fit(table, flags);
        assert!(said.code == Some(1) && said.err.contains(words), "{table} {flags}: {}", said.err);
    };
    // Every sequence of one row, and one of them among others.
    write(root, "alone.csv", "t,g,a,b", (0..40).map(|i| format!("{i},{i},{},{}", wave(i), wave(i + 2))));
    refused(
        "alone.csv",
        "--group g --components 1",
        "all 40 sequences have one step: nothing can be learned",
    );
    let site = |i: usize| if i < 39 { "x" } else { "y" };
    write(
        root,
        "some.csv",
        "t,g,a,b",
        (0..40).map(|i| format!("{i},{},{},{}", site(i), wave(i), wave(i + 2))),
    );
    assert_eq!(fit("some.csv", "--group g --components 1").code, Some(0));
    let ahead = succeed(root, "forecast -q m.covary some.csv --steps 1 --wide").out;
    assert!(
        ahead.lines().nth(1).unwrap().starts_with("x,39,")
            && ahead.lines().nth(2).unwrap().starts_with("y,40,"),
        "{ahead}"
    );
    // More factors than rows or columns leave room for.
    write(root, "short.csv", "t,a,b", (0..3).map(|i| format!("{i},{},{}", wave(i), wave(2 * i))));
    refused(
        "short.csv",
        "--components 2",
        "2 components are too many: 3 rows and 2 columns leave room for at most 1",
    );
    // One column: an autoregression with noise.
    write(root, "one.csv", "t,a", (0..80).map(|i| format!("{i},{}", wave(i))));
    for flags in ["", "--components 1", "--components 1 --season 19", "--components 1 --order 2 --trend"] {
        let said = fit("one.csv", flags);
        assert_eq!(said.code, Some(0), "{flags}: {}", said.err);
        let ahead = succeed(root, "forecast -q m.covary one.csv --steps 2 --wide").out;
        let ahead: Vec<Vec<&str>> = ahead.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!((ahead[0].join(","), ahead[1][0], ahead[2][0]), ("t,a".to_owned(), "80", "81"));
        assert!(number(ahead[1][1]).abs() < 3.0);
        succeed(root, "plot -q m.covary one.csv --kind forecast -o a.svg");
        succeed(root, "score -q m.covary one.csv -o b.csv");
    }
    succeed(root, "report -q one.csv --model dfm --time t -o a.html");
    succeed(root, "impute -q one.csv --model dfm --time t -o c.csv");
    refused(
        "one.csv",
        "--components 2",
        "2 components are too many: 80 rows and 1 column leave room for at most 1",
    );
}

#[test]
fn factors_that_do_not_return_are_named_with_their_root_and_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let grown = |i: i32, by: f64| by * 1.1_f64.powi(i) + f64::from(i * 7 % 5) / 100.0;
    write(
        root,
        "t.csv",
        "t,a,b,c",
        (0..60).map(|i| format!("{i},{},{},{}", grown(i, 1.0), grown(i, 2.0), grown(i, 1.5))),
    );
    let said = succeed(root, "fit t.csv --model dfm --time t --components 1 --max-iter 200 -o free.covary");
    assert!(said.err.contains("the largest root of the transition is 1."), "{}", said.err);
    assert!(said.err.contains("forecasts and their intervals grow without end"), "{}", said.err);
    assert!(said.err.contains("give the columns a trend, or fit differences or logarithms"), "{}", said.err);
    // The model file remembers, and whoever forecasts by it is told.
    let said = succeed(root, "forecast free.covary t.csv --steps 3 -o ahead.csv");
    assert!(said.err.contains("the largest root of the transition is 1."), "{}", said.err);
    let widths: Vec<f64> = lines(root, "ahead.csv")[1..]
        .iter()
        .filter(|line| line.contains(",a,"))
        .map(|line| number(line.split(',').nth(3).unwrap()))
        .collect();
    assert!(
        widths[0] <= widths[1] && widths[1] <= widths[2] && widths.iter().all(|w| w.is_finite()),
        "{widths:?}"
    );
    // A straight line without --trend: factors return, but later than the table ends.
    let ramp = |i: u64, k: u64, by: f64| {
        by * i as f64 / 10.0 + ((i * 7919 + k * 10_473).pow(2) % 997) as f64 / 997.0
    };
    let row = |i: u64| format!("{i},{},{},{}", ramp(i, 1, 1.0), ramp(i, 2, 2.0), ramp(i, 3, 1.5));
    write(root, "t.csv", "t,a,b,c", (0..60).map(row));
    let said = succeed(root, "fit t.csv --model dfm --time t --components 1 -o near.covary");
    assert!(said.err.contains("the largest root of the transition is 0.99"), "{}", said.err);
    assert!(said.err.contains("within the 60 steps of the table they hardly do"), "{}", said.err);
    let said = succeed(root, "forecast near.covary t.csv --steps 3 -o ahead.csv");
    assert!(!said.err.contains("grow without end"), "{}", said.err);
    let said = succeed(root, "fit t.csv --model dfm --time t --components 1 --trend -o line.covary");
    assert!(!said.err.contains("largest root"), "{}", said.err);
}
