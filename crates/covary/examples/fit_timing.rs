//! Times one fit on a raw table, for `bench/compare.py`: processor time, fit only, minimum of
//! several.
//!
//! `fit_timing FILE ROWS COLUMNS METHOD FAMILY Q THREADS REPEATS ITERATIONS` with FILE holding
//! little-endian f64, row-major, NaN at the gaps; ITERATIONS fixes the steps of an iterative method, 0
//! leaves them to its stopping rule. Prints one JSON object.
#![allow(clippy::print_stdout, reason = "an example talks to its user")]

use covary::{Dataset, Estimator, Matrix, Method, Spec};
use std::error::Error;
use std::fs::File;
use std::io::{BufReader, Read};
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, rows, columns, method, family, q, threads, repeats, iterations] = args.as_slice() else {
        return Err("usage: fit_timing FILE ROWS COLUMNS METHOD FAMILY Q THREADS REPEATS ITERATIONS".into());
    };
    let mut method = Method::from_name(method).ok_or("no such method")?;
    if iterations != "0" {
        method.set("max_iterations", iterations)?;
        method.set("tolerance", "0")?;
    }
    let (n, d, q) = (rows.parse()?, columns.parse()?, q.parse()?);
    // Read in small pieces: a second copy of the table would hide the memory of the fit.
    let mut reader = BufReader::new(File::open(file)?);
    let mut values = Vec::with_capacity(n * d);
    let mut cell = [0; 8];
    while reader.read_exact(&mut cell).is_ok() {
        values.push(f64::from_le_bytes(cell));
    }
    let spec = if family == "fa" { Spec::factor_analysis(q) } else { Spec::ppca(q) };
    // The table is grouped by its gaps when it is read, so that belongs to the fit.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.parse()?).build()?;
    let matrix = Matrix::from_vec(n, d, values)?;
    let before = peak_memory();
    let (mut wall, mut cpu) = (f64::INFINITY, f64::INFINITY);
    let mut matrix = Some(matrix);
    let mut last = None;
    for _ in 0..repeats.parse::<usize>()? {
        let start = (Instant::now(), processor_seconds());
        let table = Dataset::new(matrix.take().expect("put back below"))?;
        let fit = pool.install(|| method.fit(&table, &spec))?;
        wall = wall.min(start.0.elapsed().as_secs_f64());
        cpu = cpu.min(processor_seconds() - start.1);
        matrix = Some(table.into_values());
        last = Some(fit);
    }
    let fit = last.ok_or("at least one repeat")?;
    let axes = fit.model.components();
    println!(
        "{{\"wall\": {wall}, \"cpu\": {cpu}, \"iterations\": {}, \"loglik\": {}, \"noise\": {:?}, \"rss_above_input\": {}, \"components\": {:?}, \"loadings\": {:?}, \"mean\": {:?}, \"noise_variances\": {:?}}}",
        fit.report.n_iterations(),
        fit.report.objective.value,
        fit.model.noise().variance(0),
        peak_memory().saturating_sub(before),
        axes.rows().collect::<Vec<_>>(),
        fit.model.loadings().rows().collect::<Vec<_>>(),
        fit.model.mean(),
        fit.model.noise_variances(),
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

/// Peak resident memory in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or("0");
    line.split_whitespace().next().and_then(|v| v.parse::<u64>().ok()).unwrap_or(0) * 1024
}
