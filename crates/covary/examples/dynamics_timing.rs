//! Times one fit of a dynamic factor model on a raw table, for `bench/dynamics.py`: processor time on one thread, minimum
//! of several.
//!
//! `dynamics_timing FILE COLUMNS NOISE Q ORDER SEASON REPEATS ITERATIONS`, FILE as for `fit_timing`; SEASON is `none`,
//! `harmonics:PERIOD:N` or `indicators:PERIOD`; ITERATIONS fixes the steps, 0 leaves them to the stopping rule. Prints
//! one JSON object.
#![allow(clippy::print_stdout, reason = "an example talks to its user")]

use covary::dynamics::{DynamicEm, Season, Timeline};
use covary::{Dataset, Estimator, Matrix, Spec};
use serde_json::json;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, columns, noise, q, order, season, repeats, iterations] = args.as_slice() else {
        return Err("usage: dynamics_timing FILE COLUMNS NOISE Q ORDER SEASON REPEATS ITERATIONS".into());
    };
    let (d, q, order) = (columns.parse::<usize>()?, q.parse()?, order.parse()?);
    let cells: Vec<f64> = std::fs::read(file)?
        .chunks_exact(8)
        .map(|c| f64::from_le_bytes(c.try_into().expect("eight bytes")))
        .collect();
    let n = cells.len() / d;
    let season = match season.split(':').collect::<Vec<_>>()[..] {
        ["harmonics", period, n] => Season::Harmonics { period: period.parse()?, n: n.parse()? },
        ["indicators", period] => Season::Indicators { period: period.parse()? },
        _ => Season::None,
    };
    let mut em = DynamicEm { order, season, ridge: 0.0, ..DynamicEm::default() };
    if iterations != "0" {
        (em.max_iterations, em.tolerance) = (iterations.parse()?, 0.0);
    }
    let spec = if noise == "diagonal" { Spec::factor_analysis(q) } else { Spec::ppca(q) };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let matrix = Matrix::from_vec(n, d, cells)?;
    let (mut cpu, mut last) = (f64::INFINITY, None);
    for _ in 0..repeats.parse::<usize>()? {
        let matrix = matrix.clone();
        let start = processor_seconds();
        // The table is grouped by its gaps when it is read, so that belongs to the fit.
        let table = Dataset::new(matrix)?;
        let fit = pool.install(|| em.fit(&table, &spec))?;
        cpu = cpu.min(processor_seconds() - start);
        last = Some((table, fit));
    }
    let (table, fit) = last.ok_or("at least one repeat")?;
    let model = &fit.model;
    let density = model.log_density(&table, &Timeline::regular(n))?;
    let rows = |m: &Matrix| m.rows().map(<[f64]>::to_vec).collect::<Vec<_>>();
    println!(
        "{}",
        json!({
            "cpu": cpu, "iterations": fit.report.n_iterations(), "objective": fit.report.objective.value,
            "log_likelihood": density.iter().sum::<f64>(), "transition": rows(model.transition()),
            "innovation": rows(model.innovation()), "loadings": rows(model.loadings()),
            "coefficients": rows(model.coefficients()), "noise": model.noise().variances(d),
            "start": rows(&model.start().covariance),
        })
    );
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
