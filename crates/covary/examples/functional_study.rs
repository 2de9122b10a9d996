//! What docs/curves.md reports of functional PCA on simulated curves: errors and coverage where each curve has few points, and
//! cost.
//!
//! ```sh
//! cargo run --release -p covary --example functional_study -- sparse 60
//! cargo run --release -p covary --example functional_study -- cost
//! cargo run --release -p covary --example functional_study -- write 60 DIR
//! ```

#![allow(clippy::print_stdout, reason = "an example speaks")]

use covary::functional::{CurveSearch, FunctionalEm, FunctionalPca, Interval, simulated};
use covary::select::ChoiceRule;
use covary::{Dataset, Error, Estimator, Spec};
use std::fmt::Write;

/// Seeds of development were below this.
const FIRST: u64 = 2000;
const CURVES: usize = 200;
const POINTS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |k: usize| arguments.get(k).and_then(|n| n.parse().ok());
    match arguments.first().map(String::as_str) {
        Some("sparse") => sparse(number(1).unwrap_or(60))?,
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
