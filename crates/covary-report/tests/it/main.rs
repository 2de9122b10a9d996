//! Figures as readers get them: the numbers, the bytes, and what bad tables do.

mod bad_tables;
mod chart;
mod golden;
mod kinds;
mod numbers;
mod structure;
mod time;

use covary::data::{PointColumns, Shape, simulate};
use covary::family::{Components, Family, Request};
use covary::io::{ColumnChoice, Columns, Format, Gaps, Input, ReadOptions, TimeColumns};
use covary::learned::Learned;
use covary::{Dataset, Estimator, Method, Spec};

/// A fit of the table by a method's name.
fn fitted(table: &Dataset, spec: &Spec, method: &str) -> Learned {
    let method = Method::from_name(method).expect("a method");
    Learned::of_fit(method.fit(table, spec).expect("a table that can be fitted"), table, spec, &method)
}

/// A table with two components and a tenth of its cells missing, and its fit.
fn small() -> (Dataset, Learned) {
    let (whole, _) = simulate::ppca(Shape { rows: 60, columns: 6, n_components: 2 }, 1);
    let table = simulate::hide(&whole, 0.1, 2);
    let learned = fitted(&table, &Spec { standardize: true, ..Spec::ppca(2) }, "em");
    (table, learned)
}

/// Two factors of a table, rotated obliquely.
fn rotated_factors(table: &Dataset) -> Learned {
    let request = Request {
        n_components: Some(Components::Number(2)),
        rotation: Some(("oblimin".to_owned(), covary::model::Rotation::Oblimin { gamma: 0.0 })),
        ..Request::new(Family::Fa)
    };
    request.learn(table).expect("two factors")
}

/// The shipped heights of children, and two components of their curves.
fn children() -> (Dataset, Learned) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/growth.csv");
    let choice =
        ColumnChoice { columns: Columns::Listed(vec!["height".to_owned()]), ..ColumnChoice::default() };
    let options = ReadOptions { choice, ..ReadOptions::default() };
    let input = Input::<&[u8]>::File(std::fs::File::open(path).expect("a shipped example"));
    let table = covary::io::read(input, Format::CSV, &options).expect("a table");
    let columns = PointColumns { curve: "child".to_owned(), time: "age".to_owned() };
    let table = table.of_points(&columns, &Gaps::new(&[])).expect("curves");
    let request = Request { n_components: Some(Components::Number(2)), ..Request::new(Family::Fpca) };
    let learned = request.learn(table.dataset()).expect("two components");
    (table.dataset().clone(), learned)
}

/// The shipped table of months, and two factors of it with one wave of the year.
fn months() -> (Dataset, Learned) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/months.csv");
    let table =
        covary::io::csv::read(std::fs::File::open(path).expect("a shipped example")).expect("a table");
    let columns = TimeColumns { time: "month", sequences: None, steps: None };
    let table = table.in_time(&columns, &Gaps::new(&[])).expect("months");
    let request = Request {
        n_components: Some(Components::Number(2)),
        options: vec![("season".to_owned(), "12:1".to_owned())],
        ..Request::new(Family::Dfm)
    };
    let learned = request.learn(table.dataset()).expect("two factors");
    (table.dataset().clone(), learned)
}
