//! A tenth of a table of wines is missing. What belongs in the gaps, and are the intervals honest?
//!
//! `cargo run --release -p covary --example wine`
#![allow(clippy::print_stdout, reason = "an example talks to its user")]

use covary::infer::Em;
use covary::select::{HeldOutOptions, choose_by_held_out_cells, interval_coverage};
use covary::{Dataset, Estimator, Spec, io::csv};
use std::error::Error;
use std::fs::File;

fn read(name: &str) -> Result<Dataset, Box<dyn Error>> {
    let path = format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"));
    Ok(csv::read(File::open(path)?)?.dataset().clone())
}

fn main() -> Result<(), Box<dyn Error>> {
    let (gaps, truth) = (read("wine_gaps.csv")?, read("wine.csv")?);

    // Alcohol is in percent and proline in milligrams: every column by its own deviation.
    let spec = Spec { standardize: true, ..Spec::ppca(0) };
    let n_components =
        choose_by_held_out_cells(&gaps, &spec, 0..=8, &Em::default(), &HeldOutOptions::default())?;
    let fit = Em::default().fit(&gaps, &Spec { n_components, ..spec })?;
    let filled = fit.predictive().impute(&gaps)?;

    println!("{n_components} components, {} gaps; the first five:", gaps.n_gaps());
    for cell in &filled.cells()[..5] {
        let (low, high) = cell.interval(0.95)?;
        let (name, was) = (&gaps.column_names()[cell.column], truth.values()[(cell.row, cell.column)]);
        println!("  row {}, {name}: {:.2} [{low:.2}, {high:.2}], was {was}", cell.row + 1, cell.mean);
    }
    let levels = [0.5, 0.8, 0.95];
    for (level, share) in levels.iter().zip(interval_coverage(&truth, &filled, &levels)?) {
        println!("{:.0} % intervals cover {:.1} % of the removed values", 100.0 * level, 100.0 * share);
    }
    Ok(())
}
