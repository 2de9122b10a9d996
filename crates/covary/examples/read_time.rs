//! Times the reading of one file, in the format of its extension, for `bench/read.py`: wall and
//! processor time, minimum of several, and the peak of resident memory after the first.
//!
//! `read_time FILE REPEATS`; `RAYON_NUM_THREADS` sets the threads. Prints one JSON object.
#![allow(clippy::print_stdout, reason = "an example talks to its user")]

use covary::io::{self, Format, Input, ReadOptions};
use std::error::Error;
use std::fs::{self, File};
use std::time::Instant;

/// That of the command; pyarrow's own is the same.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, repeats] = args.as_slice() else { return Err("usage: read_time FILE REPEATS".into()) };
    let format = Format::of_file(file).ok_or("no format has that extension")?;
    let (mut wall, mut cpu, mut peak, mut cells) = (f64::INFINITY, f64::INFINITY, 0, 0);
    for repeat in 0..repeats.parse::<usize>()? {
        let start = (Instant::now(), processor_seconds());
        let table =
            io::read(Input::<std::io::Empty>::File(File::open(file)?), format, &ReadOptions::default())?;
        wall = wall.min(start.0.elapsed().as_secs_f64());
        cpu = cpu.min(processor_seconds() - start.1);
        cells = table.dataset().n_rows() * table.dataset().n_columns();
        if repeat == 0 {
            peak = peak_memory();
        }
    }
    println!("{{\"wall\": {wall}, \"cpu\": {cpu}, \"cells\": {cells}, \"peak\": {peak}}}");
    Ok(())
}

/// Bytes, where the system tells.
fn peak_memory() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<usize>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// Time on the processor over all threads of this process, in seconds.
fn processor_seconds() -> f64 {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return f64::NAN };
    let nanoseconds = tasks
        .filter_map(|t| fs::read_to_string(t.ok()?.path().join("schedstat")).ok())
        .filter_map(|s| s.split(' ').next()?.parse::<f64>().ok());
    nanoseconds.sum::<f64>() * 1e-9
}
