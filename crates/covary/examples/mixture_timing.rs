//! Times one fit of a mixture on a raw table, for `bench/mixture.py`: processor time, fit only,
//! minimum of several.
//!
//! `mixture_timing FILE TEST COLUMNS FAMILY Q K THREADS REPEATS [OPTION=VALUE …]` with the files holding
//! little-endian f64, row-major, NaN at the gaps. Prints one JSON object; `held_out` is in nats per row
//! of TEST.
#![allow(clippy::print_stdout, reason = "an example talks to its user")]

use covary::infer::MixtureEm;
use covary::{Dataset, Density, Estimator, Matrix, Spec};
use std::error::Error;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, test, columns, family, q, k, threads, repeats, options @ ..] = args.as_slice() else {
        return Err(
            "usage: mixture_timing FILE TEST COLUMNS FAMILY Q K THREADS REPEATS [OPTION=VALUE …]".into()
        );
    };
    let d = columns.parse()?;
    let table = |path: &String| -> Result<Dataset, Box<dyn Error>> {
        let bytes = std::fs::read(path)?;
        let cells: Vec<f64> = bytes.as_chunks().0.iter().map(|cell| f64::from_le_bytes(*cell)).collect();
        Ok(Dataset::new(Matrix::from_vec(cells.len() / d, d, cells)?)?)
    };
    let (train, test) = (table(file)?, table(test)?);
    let spec = if family == "fa" { Spec::factor_analysis(q.parse()?) } else { Spec::ppca(q.parse()?) };
    let mut method = MixtureEm::of(k.parse()?);
    for option in options {
        let (name, value) = option.split_once('=').ok_or("an option has a name and a value")?;
        method.set(name, value)?;
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.parse()?).build()?;
    let (mut wall, mut last) = (f64::INFINITY, None);
    for _ in 0..repeats.parse::<usize>()? {
        let start = Instant::now();
        // The table is grouped by its gaps when it is made, so that belongs to the fit.
        let table = Dataset::new(train.values().clone())?;
        last = Some(pool.install(|| method.fit(&table, &spec))?);
        wall = wall.min(start.elapsed().as_secs_f64());
    }
    let fit = last.ok_or("at least one repeat")?;
    println!(
        "{{\"wall\": {wall}, \"iterations\": {}, \"converged\": {}, \"train\": {}, \"held_out\": {}, \"weights\": {:?}}}",
        fit.report.n_iterations(),
        fit.report.converged(),
        fit.report.objective.value / train.n_rows() as f64,
        fit.model.score(&test)?,
        fit.model.weights(),
    );
    Ok(())
}
