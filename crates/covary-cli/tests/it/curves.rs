//! Curves by the command: long and wide tables, every verb, and every bad input.

use super::{folder_with_examples, learned, run_in, succeed};
use covary::data::PointColumns;
use covary::family::{Components, Family, Request};
use covary::io::{ColumnChoice, Columns, Format, Gaps, Input, ReadOptions, Table, model_file};
use std::fs;
use std::path::Path;

const FIT: &str = "fit examples/growth.csv --model fpca --curve child --time age --value height --components 2 -o growth.covary";

/// The shipped table, of curves.
fn growth(root: &Path) -> Table {
    let choice =
        ColumnChoice { columns: Columns::Listed(vec!["height".to_owned()]), ..ColumnChoice::default() };
    let options = ReadOptions { choice, ..ReadOptions::default() };
    let text = fs::read(root.join("examples/growth.csv")).unwrap();
    let table = covary::io::read(Input::Stream(text.as_slice()), Format::CSV, &options).unwrap();
    let columns = PointColumns { curve: "child".to_owned(), time: "age".to_owned() };
    table.of_points(&columns, &Gaps::default()).unwrap()
}

fn rows(root: &Path, name: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(root.join(name)).unwrap();
    text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_else(|_| panic!("`{text}` is a number"))
}

#[track_caller]
fn same(text: &str, value: f64) {
    assert!((number(text) - value).abs() <= 1e-9 * (1.0 + value.abs()), "{text} {value}");
}

#[test]
fn a_long_table_is_fitted_asked_and_filled_as_by_the_library() {
    let folder = folder_with_examples();
    let root = folder.path();
    let said = succeed(root, FIT);
    assert!(said.err.contains("`age` of 60 curves (`child`), 1 to 18"), "{}", said.err);
    assert!(said.err.contains("functional PCA, 2 components, age 1 to 18"), "{}", said.err);
    let table = growth(root);
    let data = table.dataset();
    let request = Request { n_components: Some(Components::Number(2)), ..Request::new(Family::Fpca) };
    let own = request.learn(data).unwrap();
    let mut bytes = Vec::new();
    model_file::write(&own, &mut bytes).unwrap();
    assert!(bytes == fs::read(root.join("growth.covary")).unwrap());
    let model = &own.functional().unwrap().model;

    // Scores and densities: a row for each curve.
    succeed(root, "transform -q growth.covary examples/growth.csv --covariance -o scores.csv");
    let (found, right) = (rows(root, "scores.csv"), model.scores(data).unwrap());
    assert_eq!(
        found[0].join(","),
        "child,component_1,component_2,covariance_1_1,covariance_2_1,covariance_2_2"
    );
    assert_eq!(found.len(), 61);
    for (i, row) in found[1..].iter().enumerate() {
        assert_eq!(row[0], format!("c{:02}", i + 1));
        same(&row[1], right.means[(i, 0)]);
        same(&row[2], right.means[(i, 1)]);
        same(&row[3], right.covariances[i][(0, 0)]);
        same(&row[4], right.covariances[i][(1, 0)]);
    }
    let said = succeed(root, "score growth.covary examples/growth.csv -o odd.csv");
    assert!(said.err.contains("over 60 curves"), "{}", said.err);
    let (found, right) = (rows(root, "odd.csv"), model.densities(data).unwrap());
    assert_eq!(found[0].join(","), "child,log_likelihood,n_observed,mahalanobis,tail_probability");
    for (row, right) in found[1..].iter().zip(&right) {
        same(&row[1], right.log_density);
        assert_eq!(row[2], right.n_observed.to_string());
        same(&row[3], right.mahalanobis);
    }

    // Every curve at any times, and the missing heights.
    succeed(root, "reconstruct -q growth.covary examples/growth.csv --at 2:4:1 --interval 0.9 -o at.csv");
    let (found, right) = (rows(root, "at.csv"), model.predict(data, &[2.0, 3.0, 4.0]).unwrap());
    assert_eq!(found[0].join(","), "child,age,mean,sd,lower,upper");
    assert_eq!(found.len(), 1 + 180);
    for (k, row) in found[1..].iter().enumerate() {
        let (mean, sd) = (right[k / 3].means[k % 3], right[k / 3].sds[k % 3]);
        assert_eq!(number(&row[1]), 2.0 + (k % 3) as f64);
        same(&row[2], mean);
        same(&row[3], sd);
        same(&row[5], mean + 1.644_853_626_951_472_7 * sd);
    }
    succeed(
        root,
        "impute -q examples/growth.csv --model growth.covary --bounds none -o filled.csv --cells cells.csv",
    );
    let (filled, before) = (rows(root, "filled.csv"), rows(root, "examples/growth.csv"));
    let right = model.fill(data).unwrap();
    let mut cells = right.iter();
    for (new, old) in filled[1..].iter().zip(&before[1..]) {
        assert_eq!(new[..2], old[..2]);
        if old[2].is_empty() {
            assert!((number(&new[2]) - cells.next().unwrap().mean).abs() < 0.06);
        } else {
            assert_eq!(new[2], old[2]);
        }
    }
    assert!(cells.next().is_none());
    let listed = rows(root, "cells.csv");
    let sd = listed[0].iter().position(|name| name == "sd").unwrap();
    for (row, cell) in listed[1..].iter().zip(&right) {
        same(&row[sd], cell.sd);
    }

    // New curves have times as columns; what is inside can be looked at.
    succeed(root, "sample -q growth.covary --rows 3 --seed 1 -o new.csv");
    let new = rows(root, "new.csv");
    assert_eq!((new.len(), new[0].len(), new[0][0].as_str(), new[0][50].as_str()), (4, 51, "1", "18"));
    let said = succeed(root, "inspect growth.covary").out;
    assert!(said.contains("curves by `child`, `age` 1 to 18") && said.contains("eigenvalue"), "{said}");
    let json: serde_json::Value =
        serde_json::from_str(&succeed(root, "inspect growth.covary --json").out).unwrap();
    let shares: Vec<f64> =
        json["explained_variance_ratio"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
    assert!(shares[0] > shares[1] && shares.iter().sum::<f64>() < 1.0);
    assert_eq!(json["eigenfunctions"][0].as_array().unwrap().len(), 101);
    assert_eq!(learned(root, "growth.covary"), own);
}

#[test]
fn the_number_of_components_is_chosen_and_filling_fits_and_checks() {
    let folder = folder_with_examples();
    let root = folder.path();
    let said = succeed(root, "impute examples/growth.csv --curve child --time age -o filled.csv");
    assert!(said.err.contains("chose ") && said.err.contains("functional PCA"), "{}", said.err);
    assert!(said.err.contains("hidden cells"), "{}", said.err);
    assert!(rows(root, "filled.csv").iter().all(|row| !row[2].is_empty()));
}

#[test]
fn a_wide_table_has_times_for_columns() {
    let folder = folder_with_examples();
    let root = folder.path();
    let mut text = "id,0,0.5,1,2,3.5\n".to_owned();
    for i in 0..40 {
        let (a, b) = ((f64::from(i) * 0.7).sin(), (f64::from(i) * 1.9).cos());
        let value =
            |t: f64| 3.0 + t + a * (1.0 + 0.3 * t) + 0.4 * b * (2.0 * t).sin() + 0.01 * f64::from(i % 7);
        let cells: Vec<String> =
            [0.0, 0.5, 1.0, 2.0, 3.5].iter().map(|&t| format!("{:.3}", value(t))).collect();
        let gap = (i % 5) as usize;
        let cells: Vec<String> = cells
            .into_iter()
            .enumerate()
            .map(|(j, c)| if j == gap && i % 3 == 0 { String::new() } else { c })
            .collect();
        text.extend([format!("r{i},"), cells.join(","), "\n".to_owned()]);
    }
    fs::write(root.join("wide.csv"), &text).unwrap();
    let said = succeed(root, "fit wide.csv --header --model fpca --components 2 -o wide.covary");
    assert!(
        said.err.contains("rows are curves, at times 0 to 3.5: the names of the columns"),
        "{}",
        said.err
    );
    succeed(root, "impute -q wide.csv --header --model wide.covary -o filled.csv");
    assert!(rows(root, "filled.csv").iter().all(|row| row.iter().all(|cell| !cell.is_empty())));
    succeed(root, "transform -q wide.covary wide.csv --header -o scores.csv");
    assert_eq!(rows(root, "scores.csv")[0].join(","), "id,component_1,component_2");
    succeed(root, "reconstruct -q wide.covary wide.csv --header --at 0.25,3 -o at.csv");
    assert_eq!(rows(root, "at.csv").len(), 81);
    succeed(root, "sample -q wide.covary --rows 2 -o new.csv");
    assert_eq!(rows(root, "new.csv")[0].join(","), "0,0.5,1,2,3.5");
}

#[test]
fn bad_tables_and_calls_are_named() {
    let folder = folder_with_examples();
    let root = folder.path();
    let fit = "--model fpca --curve id --time t --components 1 -o m.covary";
    let refused = |table: &str, call: &str, code: i32, why: &str| {
        fs::write(root.join("t.csv"), table).unwrap();
        let words: Vec<&str> = call.split(' ').collect();
        let said = run_in(root, &words, b"");
        assert!(said.code == Some(code) && said.err.contains(why), "{call}\n{}", said.err);
        assert!(!root.join("m.covary").exists());
    };
    let fit_t = &format!("fit t.csv {fit}");
    refused("id,t,y\na,1,2\nb,2,3\nc,3,4\n", fit_t, 1, "all 3 curves have one observed point");
    refused("id,t,y\na,1,2\na,1,3\nb,3,4\n", fit_t, 1, "rows 1 and 2 are both of curve `a` at time 1");
    refused("id,t,y\na,soon,2\na,1,3\nb,3,4\n", fit_t, 1, "`soon`");
    refused("id,t,y\na,,2\na,1,3\nb,3,4\n", fit_t, 1, "no value in column `t`");
    refused("id,t,y\na,1,2\na,2,3\na,3,4\n", fit_t, 1, "1 curve with an observed point");
    refused("id,t,y\na,1,2\nb,1,3\nc,1,4\n", fit_t, 1, "one observed point");
    refused("id,t,y,z\na,1,2,1\na,2,3,2\nb,3,4,3\n", fit_t, 2, "--value y (or z)");
    let many = "id,t,y\na,1,2\na,2,3\nb,1,4\nb,3,2\nc,2,2\nc,3,1\n";
    refused(
        many,
        "fit t.csv --model fpca --curve id --time t --components 5 -o m.covary",
        1,
        "5 components are too many",
    );
    refused(many, "fit t.csv --model fpca --curve id -o m.covary", 2, "--time COLUMN");
    refused(many, "fit t.csv --model fpca --time t -o m.covary", 2, "--curve COLUMN");
    refused(
        many,
        "fit t.csv --model ppca --curve id --time t -o m.covary",
        2,
        "--curve goes with --model fpca",
    );
    refused(many, "fit t.csv --model fpca --curve moon --time t -o m.covary", 1, "`moon`");
    let sizes = "fit examples/growth.csv --model fpca --curve child --time age --components 9 --option basis_size=8 -o m.covary";
    refused(many, sizes, 1, "8 basis functions have at most 8");
    succeed(root, FIT);
    refused(
        many,
        "reconstruct growth.covary examples/growth.csv --at 0:30:10",
        1,
        "time 0 is outside the interval of the model",
    );
    refused(many, "reconstruct growth.covary examples/growth.csv --at 5:1:1", 2, "FROM:TO:STEP");
    succeed(root, "fit -q examples/wine.csv -o wine.covary");
    refused(many, "reconstruct wine.covary examples/wine.csv --at 1,2", 1, "--model fpca");
    refused(many, "plot wine.covary --kind eigenfunctions -o a.svg", 1, "--model fpca");
}
