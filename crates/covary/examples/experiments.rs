//! The dimension studies of the literature on variational Bayesian PCA, beside the reference figures they are
//! held against [M 2.12]; `covary reproduce chen-2018-fig-12` has that of imputation:
//!
//!     cargo run --release -p covary --example experiments
//!
//! Data are rotated by a random orthogonal matrix. A first argument of `quick`
//! makes fewer repeats.

#![allow(clippy::print_stdout, reason = "an example talks to its user")]

use covary::data::simulate;
use covary::infer::{Evidence, MeanField, Spectral, Structured};
use covary::select::{Criteria, EmpiricalVb};
use covary::{Dataset, Estimator, Spec};
use rayon::prelude::*;

fn main() -> Result<(), covary::Error> {
    let quick = std::env::args().nth(1).is_some_and(|a| a == "quick");
    let dimension_repeats = if quick { 10 } else { 50 };
    let mut bands = Vec::new();
    toy_a(dimension_repeats, &mut bands)?;
    toy_b(dimension_repeats, &mut bands)?;
    println!("\nbands");
    for (what, holds) in &bands {
        println!("  {} {what}", if *holds { "holds " } else { "BROKEN" });
    }
    if bands.iter().any(|(_, holds)| !holds) {
        std::process::exit(1);
    }
    Ok(())
}

const METHODS: [&str; 6] =
    ["Laplace evidence", "BIC", "type-II ML", "mean-field VB", "structured VB", "closed-form VB"];

/// The number of components each method finds.
fn dimensions(data: &Dataset) -> Result<[usize; 6], covary::Error> {
    let d = data.n_columns();
    let most = (d - 1).min(data.n_rows() - 1);
    let spectrum = Spectral::default().spectrum(data, d, false)?;
    let chosen = Criteria::from_spectrum(&spectrum)?.chosen();
    let spec = Spec::ppca(most);
    Ok([
        chosen.evidence.unwrap_or(0),
        chosen.bic,
        Evidence::default().fit(data, &spec)?.model.n_components(),
        MeanField::default().fit(data, &spec)?.model.n_components(),
        Structured::default().fit(data, &spec)?.model.n_components(),
        EmpiricalVb::from_spectrum(&spectrum)?.n_components,
    ])
}

/// Runs a study over tables of this many rows; one row of answers per table.
fn study(rows: usize, deviations: &[f64], repeats: u64) -> Result<Vec<[usize; 6]>, covary::Error> {
    (0..repeats)
        .into_par_iter()
        .map(|seed| dimensions(&simulate::rotated(rows, deviations, 10_000 * rows as u64 + seed).0))
        .collect()
}

fn toy_a(repeats: u64, bands: &mut Vec<(String, bool)>) -> Result<(), covary::Error> {
    const REFERENCE: [[usize; 5]; 6] = [
        [19, 34, 38, 49, 48],
        [22, 35, 35, 49, 50],
        [17, 30, 34, 49, 50],
        [0, 4, 25, 49, 50],
        [3, 12, 33, 49, 50],
        [0, 4, 11, 41, 50],
    ];
    let sizes = [15, 20, 30, 50, 100];
    let deviations = [5.0, 4.0, 3.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
    println!("toy A: 10 columns, 4 components; runs of {repeats} that find exactly 4 (reference, of 50)");
    println!("{:>18} {}", "rows", sizes.map(|n| format!("{n:>10}")).concat());
    let found: Vec<Vec<[usize; 6]>> =
        sizes.iter().map(|&n| study(n, &deviations, repeats)).collect::<Result<_, _>>()?;
    for (m, method) in METHODS.iter().enumerate() {
        let right = |s: usize| found[s].iter().filter(|q| q[m] == 4).count();
        let cells =
            (0..5).map(|s| format!("{:>5} ({:>2})", right(s), REFERENCE[m][s])).collect::<Vec<_>>().concat();
        println!("{method:>18} {cells}");
        let least = (46 * repeats).div_ceil(50) as usize;
        bands.push((format!("toy A, 100 rows, {method}: at least 46 of 50 right"), right(4) >= least));
    }
    Ok(())
}

fn toy_b(repeats: u64, bands: &mut Vec<(String, bool)>) -> Result<(), covary::Error> {
    const REFERENCE: [[f64; 11]; 6] = [
        [1.1, 5.4, 12.5, 23.6, 23.8, 24.0, 24.0, 24.0, 24.0, 24.0, 24.0],
        [17.7, 11.5, 13.4, 23.0, 24.0, 24.0, 24.0, 24.0, 24.0, 24.0, 24.0],
        [19.0, 3.1, 4.1, 5.9, 9.7, 13.7, 18.1, 20.3, 21.6, 24.0, 24.0],
        [2.0, 3.2, 4.3, 5.5, 6.4, 7.7, 8.7, 9.7, 10.9, 17.2, 21.2],
        [2.5, 3.8, 4.8, 5.8, 6.7, 8.1, 9.2, 10.0, 11.1, 17.4, 21.2],
        [0.7, 1.3, 1.9, 2.6, 3.5, 4.4, 5.3, 6.2, 7.4, 14.9, 20.6],
    ];
    let sizes = [20, 30, 40, 50, 60, 70, 80, 90, 100, 200, 400];
    let deviations: Vec<f64> = (1..=25).rev().map(f64::from).collect();
    println!("\ntoy B: 25 columns, deviations 25 to 1; mean dimension over {repeats} runs (reference)");
    println!("{:>18} {}", "rows", sizes.map(|n| format!("{n:>12}")).concat());
    let found: Vec<Vec<[usize; 6]>> =
        sizes.iter().map(|&n| study(n, &deviations, repeats)).collect::<Result<_, _>>()?;
    let mean = |s: usize, m: usize| found[s].iter().map(|q| q[m] as f64).sum::<f64>() / repeats as f64;
    for (m, method) in METHODS.iter().enumerate() {
        let cells = (0..11)
            .map(|s| format!("{:>5.1} ({:>4.1})", mean(s, m), REFERENCE[m][s]))
            .collect::<Vec<_>>()
            .concat();
        println!("{method:>18} {cells}");
    }
    bands.push(("toy B, 100 rows: mean-field 10 to 12".into(), (10.0..=12.0).contains(&mean(8, 3))));
    bands.push(("toy B, 100 rows: structured 10 to 12.5".into(), (10.0..=12.5).contains(&mean(8, 4))));
    bands.push(("toy B, 100 rows: evidence at least 23.9".into(), mean(8, 0) >= 23.9));
    Ok(())
}
