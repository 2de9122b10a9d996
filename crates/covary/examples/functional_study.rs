//! What docs/curves.md reports of functional PCA: errors and coverage where each curve has few points, coverage of imputed values as
//! the model states it and calibrated, and cost.
//!
//! ```sh
//! cargo run --release -p covary --example functional_study -- sparse 60
//! cargo run --release -p covary --example functional_study -- bands 1000
//! cargo run --release -p covary --example functional_study -- fill 20 examples/growth.csv daily_temperature_c.csv
//! cargo run --release -p covary --example functional_study -- cost
//! cargo run --release -p covary --example functional_study -- write 60 DIR
//! ```

#![allow(clippy::print_stdout, reason = "an example speaks")]

use covary::data::PointColumns;
use covary::family::{Family, ForFilling, Request};
use covary::functional::{CurveSearch, FunctionalEm, FunctionalPca, Interval, simulated};
use covary::io::{ColumnChoice, Columns, Format, Gaps, Input, ReadOptions};
use covary::learned::Rows;
use covary::select::ChoiceRule;
use covary::{Dataset, Error, Estimator, Matrix, Spec};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::fmt::Write;

/// Seeds of development were below this.
const FIRST: u64 = 2000;
/// Seeds of `bands` and `fill`: of no other study.
const FIRST_OF_BANDS: u64 = 50_000;
const FIRST_OF_FILL: u64 = 70_000;
const LEVELS: [f64; 3] = [0.5, 0.8, 0.95];
const CURVES: usize = 200;
const POINTS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |k: usize| arguments.get(k).and_then(|n| n.parse().ok());
    match arguments.first().map(String::as_str) {
        Some("sparse") => sparse(number(1).unwrap_or(60))?,
        Some("bands") => bands(number(1).unwrap_or(1000))?,
        Some("fill") => fill(number(1).unwrap_or(20), &arguments[2..])?,
        Some("write") => write(number(1).unwrap_or(60), arguments.get(2).ok_or("a folder")?)?,
        _ => cost()?,
    }
    Ok(())
}

fn method() -> FunctionalEm {
    FunctionalEm { interval: Interval::Given(0.0, 1.0), ..FunctionalEm::default() }
}

/// Integrated squared errors of mean and eigenfunctions, and the shares of a grid that their 95 % bands cover.
fn compare(model: &FunctionalPca, truth: &FunctionalPca) -> Result<Vec<f64>, Error> {
    let grid = truth.basis().grid(101);
    let mut out = Vec::new();
    let pairs = [
        (model.mean_at(&grid)?, truth.mean_at(&grid)?, 1),
        (model.eigenfunctions(&grid)?, truth.eigenfunctions(&grid)?, 2),
    ];
    for (found, right, n) in pairs {
        for k in 0..n {
            let product: f64 = (0..101).map(|i| found.values[(i, k)] * right.values[(i, k)]).sum();
            let sign = if product < 0.0 { -1.0 } else { 1.0 };
            let error = |i: usize| sign * found.values[(i, k)] - right.values[(i, k)];
            out.push((0..101).map(|i| error(i).powi(2)).sum::<f64>() / 101.0);
            let inside = (0..101).filter(|&i| error(i).abs() <= 1.959_964 * found.sds[(i, k)]).count();
            out.push(inside as f64 / 101.0);
        }
    }
    Ok(out)
}

fn sparse(replications: u64) -> Result<(), Error> {
    let mut all: Vec<Vec<f64>> = Vec::new();
    for seed in FIRST..FIRST + replications {
        let (table, truth) = simulated(CURVES, POINTS, seed);
        let mut row = compare(&method().fit(&table, &Spec::ppca(2))?.model, &truth)?;
        // Hidden points of other fits: one of each curve.
        let hidden: Vec<(usize, usize)> = (0..CURVES).map(|i| (i * POINTS, 0)).collect();
        let visible = table.without_cells(hidden)?;
        let cells = method().fit(&visible, &Spec::ppca(2))?.model.fill(&visible)?;
        let mut inside = 0;
        for cell in &cells {
            let (low, high) = cell.interval(0.95)?;
            inside += usize::from((low..=high).contains(&table.row(cell.row)[0]));
        }
        row.push(inside as f64 / cells.len() as f64);
        let found =
            CurveSearch { estimator: method(), ..CurveSearch::default() }.run(&table, &Spec::ppca(1))?;
        let chosen = found.map_or(1, |found| found.chosen(ChoiceRule::OneStandardError));
        row.push(f64::from(u8::from(chosen == 2)));
        all.push(row);
    }
    let names = ["mean", "", "first", "", "second", "", "points", "two chosen"];
    for (k, name) in names.iter().enumerate() {
        let mut values: Vec<f64> = all.iter().map(|row| row[k]).collect();
        values.sort_by(f64::total_cmp);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let what = if k % 2 == 0 && k < 6 { "squared error" } else { "coverage" };
        println!("{name:>10} {what:>14}: mean {mean:.4}, median {:.4}", values[values.len() / 2]);
    }
    Ok(())
}

/// Shares within 95 % bands over many tables, with the standard errors that tables have, which are what few replications hide.
fn bands(replications: u64) -> Result<(), Error> {
    let mut all: Vec<Vec<f64>> = Vec::new();
    for seed in FIRST_OF_BANDS..FIRST_OF_BANDS + replications {
        let (table, truth) = simulated(CURVES, POINTS, seed);
        all.push(compare(&method().fit(&table, &Spec::ppca(2))?.model, &truth)?);
    }
    for (k, name) in ["mean", "first", "second"].iter().enumerate() {
        let (error, _) = mean_and_error(all.iter().map(|row| row[2 * k]));
        let (inside, of_inside) = mean_and_error(all.iter().map(|row| row[2 * k + 1]));
        println!(
            "{name:>7}: squared error {error:.4}, coverage {:.1} % (standard error {:.1})",
            100.0 * inside,
            100.0 * of_inside
        );
    }
    Ok(())
}

fn mean_and_error(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let n = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / n;
    let variance = values.map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (mean, (variance / n).sqrt())
}

/// A table whose points are missing: one of each curve at random, or as many days in a row of every other curve.
enum Missing {
    Points(usize),
    Runs(usize),
}

fn without(table: &Dataset, missing: &Missing, seed: u64) -> Result<Dataset, Error> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let curves: Vec<Vec<(usize, usize)>> = match table.points() {
        Some(points) => {
            points.of_curves().iter().map(|rows| rows.iter().map(|&i| (i, 0)).collect()).collect()
        }
        None => (0..table.n_rows()).map(|i| (0..table.n_columns()).map(|j| (i, j)).collect()).collect(),
    };
    let mut hidden = Vec::new();
    for (i, cells) in curves.into_iter().enumerate() {
        let mut seen: Vec<_> = cells.into_iter().filter(|&(i, j)| !table.row(i)[j].is_nan()).collect();
        match *missing {
            Missing::Points(n) => {
                seen.shuffle(&mut rng);
                hidden.extend(seen.into_iter().take(n));
            }
            Missing::Runs(length) if i % 2 == 0 => {
                let from = rng.random_range(0..=seen.len() - length);
                hidden.extend(&seen[from..from + length]);
            }
            Missing::Runs(_) => {}
        }
    }
    table.without_cells(hidden)
}

/// Shares of hidden points within intervals of 50, 80 and 95 %, as the model states them and calibrated by other points.
fn fill(replications: u64, files: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let seeds = FIRST_OF_FILL..FIRST_OF_FILL + replications;
    let of_model = |seed: u64| simulated(CURVES, POINTS, seed).0;
    study("simulated", &Missing::Points(1), seeds.clone().map(|seed| (of_model(seed), seed)))?;
    let heavy = |seed: u64| heavy_tailed(&of_model(seed), seed);
    study("with t₃ noise", &Missing::Points(1), seeds.clone().map(|seed| (heavy(seed), seed)))?;
    for file in files {
        let table = read(file)?;
        let few = table.points().is_some();
        let missing = if few { Missing::Points(1) } else { Missing::Runs(60) };
        study(file, &missing, seeds.clone().map(|seed| (table.clone(), seed)))?;
        if !few {
            let single = Missing::Points(table.n_columns() / 10);
            study(
                &format!("{file}, single points"),
                &single,
                seeds.clone().map(|seed| (table.clone(), seed)),
            )?;
        }
    }
    Ok(())
}

/// The same curves with noise of Student's t, 3 degrees of freedom, besides.
fn heavy_tailed(table: &Dataset, seed: u64) -> Dataset {
    use rand_distr::{Distribution, StudentT};
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let t = StudentT::new(3.0).expect("degrees of freedom");
    let mut noisy = || 0.3 * t.sample(&mut rng);
    let values = Matrix::from_fn(table.n_rows(), 1, |i, _| table.row(i)[0] + noisy());
    let points = table.points().expect("a long table").clone();
    let noisy = Dataset::with_names(values, table.column_names().to_vec()).expect("finite values");
    noisy.of_points(points).expect("a point per row")
}

/// A long table of children, or a table of days whose columns are stations: a curve each.
fn read(file: &str) -> Result<Dataset, Box<dyn std::error::Error>> {
    let bytes = std::fs::read(file)?;
    let long = file.ends_with("growth.csv");
    let columns = if long { Columns::Listed(vec!["height".to_owned()]) } else { Columns::default() };
    let choice = ColumnChoice { columns, ..ColumnChoice::default() };
    let options = ReadOptions { choice, ..ReadOptions::default() };
    let table = covary::io::read(Input::Stream(bytes.as_slice()), Format::CSV, &options)?;
    if long {
        let columns = PointColumns { curve: "child".to_owned(), time: "age".to_owned() };
        return Ok(table.of_points(&columns, &Gaps::default())?.dataset().clone());
    }
    // Without the first column, the days.
    let data = table.dataset();
    let values = Matrix::from_fn(data.n_columns() - 1, data.n_rows(), |i, j| data.row(j)[i + 1]);
    let days = (1..=data.n_rows()).map(|day| day.to_string()).collect();
    Ok(Dataset::with_names(values, days)?)
}

fn study(name: &str, missing: &Missing, tables: impl Iterator<Item = (Dataset, u64)>) -> Result<(), Error> {
    let mut shares: Vec<[[f64; 3]; 2]> = Vec::new();
    let (mut n, mut widths, mut components) = (0, [0.0; 2], [0; 9]);
    for (table, seed) in tables {
        let visible = without(&table, missing, seed)?;
        let mut found = [[0.0; 3]; 2];
        let mut request = Request::new(Family::Fpca);
        for (k, calibrate) in [false, true].into_iter().enumerate() {
            request.filling = Some(ForFilling { choose: false, calibrate, limits: false });
            let learned = request.learn(&visible)?;
            let q = learned.functional()?.model.n_components();
            components[q.min(8)] += 1;
            request.n_components = Some(covary::family::Components::Number(q));
            let cells = learned.fill(Rows::Training)?.cells(&visible)?;
            let hidden: Vec<_> = cells.iter().filter(|c| !table.row(c.row)[c.column].is_nan()).collect();
            for (share, level) in found[k].iter_mut().zip(LEVELS) {
                for cell in &hidden {
                    let (low, high) = cell.interval(level)?;
                    let inside = (low..=high).contains(&table.row(cell.row)[cell.column]);
                    *share += f64::from(u8::from(inside)) / hidden.len() as f64;
                    if level == LEVELS[2] {
                        widths[k] += (high - low) / hidden.len() as f64;
                    }
                }
            }
            n = hidden.len();
        }
        shares.push(found);
    }
    println!("{name}: {} tables, {n} hidden points in each, components {components:?}", shares.len());
    for (k, what) in ["stated", "calibrated"].iter().enumerate() {
        let at = |l: usize| {
            let (mean, error) = mean_and_error(shares.iter().map(move |found| found[k][l]));
            format!("{:.1} ({:.1})", 100.0 * mean, 100.0 * error)
        };
        let width = widths[k] / shares.len() as f64;
        println!("  {what:>10}: {}, {}, {} %; width of 95 % {width:.3}", at(0), at(1), at(2));
    }
    Ok(())
}

fn text(table: &Dataset) -> String {
    let points = table.points().expect("curves");
    let mut out = "curve,t,y\n".to_owned();
    for i in 0..table.n_rows() {
        writeln!(out, "{},{},{}", points.curves()[i], points.times()[i], table.row(i)[0]).expect("text");
    }
    out
}

/// The tables of `sparse`, for other programs.
fn write(replications: u64, folder: &str) -> std::io::Result<()> {
    for seed in FIRST..FIRST + replications {
        std::fs::write(format!("{folder}/{seed}.csv"), text(&simulated(CURVES, POINTS, seed).0))?;
    }
    Ok(())
}

/// Processor time of a fit with two components on one thread, the least of three.
fn cost() -> Result<(), Box<dyn std::error::Error>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    for (curves, points) in [(1000, 5), (1000, 20), (1000, 80), (10_000, 5), (10_000, 20), (40_000, 20)] {
        let (table, _) = simulated(curves, points, 1);
        let mut least = f64::INFINITY;
        let mut steps = 0;
        for _ in 0..3 {
            let begin = processor_seconds();
            steps = pool.install(|| method().fit(&table, &Spec::ppca(2)))?.report.n_iterations();
            least = least.min(processor_seconds() - begin);
        }
        println!("{curves:>6} curves of {points:>2} points: {least:.2} s, {steps} steps at the end");
    }
    Ok(())
}

/// Time on the processor over all threads of this process, in seconds.
fn processor_seconds() -> f64 {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return f64::NAN };
    tasks
        .filter_map(|t| std::fs::read_to_string(t.ok()?.path().join("schedstat")).ok())
        .filter_map(|s| s.split(' ').next()?.parse::<f64>().ok())
        .sum::<f64>()
        * 1e-9
}
