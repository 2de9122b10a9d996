//! How many components are found, and in what time: the figures of `docs/select.md`.
//!
//! `component_numbers simulated [SEED]` counts right choices in 86 simulated tables;
//! `component_numbers standardized [SEED]` does in tables of random loadings whose columns are standardized;
//! `component_numbers time ROWS COLUMNS COMPONENTS GAPS ppca|standardized|fa` compares the choice with the fit that follows;
//! `component_numbers filling ROWS COLUMNS COMPONENTS GAPS` compares the default of `covary impute` with a fit of that many components;
//! `component_numbers real TABLE.csv …` hides cells of real tables and compares with the best number of components.
//! One thread; processor time.
#![allow(clippy::print_stdout, reason = "an example talks to its user")]

use covary::data::{Shape, simulate};
use covary::family::{Family, ForFilling, Request};
use covary::infer::Em;
use covary::learned::Rows;
use covary::model::{ColumnMap, FilledCell};
use covary::select::{ChoiceRule, PilotSearch, Purpose};
use covary::{Dataset, Density, Estimator, LinearGaussian, Method, Spec, io::csv};
use std::error::Error;
use std::fs::File;

/// That of the command and of the Python extension.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn Error + Send + Sync>;
type Answer = Result<(), Failure>;

fn main() -> Answer {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    pool.install(|| match args.as_slice() {
        ["simulated"] => simulated(0),
        ["simulated", from] => simulated(from.parse()?),
        ["standardized"] => standardized(0),
        ["standardized", from] => standardized(from.parse()?),
        ["time", n, d, q, gaps, family] => {
            time(n.parse().unwrap_or(0), d.parse().unwrap_or(0), q.parse().unwrap_or(0), gaps, family)
        }
        ["filling", n, d, q, gaps] => {
            filling(n.parse().unwrap_or(0), d.parse().unwrap_or(0), q.parse().unwrap_or(0), gaps)
        }
        ["real", files @ ..] => real(files),
        _ => Err("see the first lines of this file".into()),
    })
}

/// Best and fewest, and the seconds they took.
fn choose(data: &Dataset, spec: &Spec) -> Result<(usize, usize, f64), Failure> {
    let filling = PilotSearch { purpose: Purpose::Filling, ..PilotSearch::default() };
    let best = filling.run(data, spec)?.map_or(0, |found| found.chosen(ChoiceRule::Maximum));
    let (found, seconds) = timed(|| PilotSearch::default().run(data, spec))?;
    let fewest = found.map_or(0, |found| found.chosen(ChoiceRule::OneStandardError));
    Ok((best, fewest, seconds))
}

/// Seconds of the fit that follows.
fn fit_seconds(data: &Dataset, spec: &Spec) -> Result<f64, Failure> {
    Ok(timed(|| Method::recommended(data, spec).fit(data, spec))?.1)
}

/// An answer and the processor time of one asking: the clock is coarse, so that short work is repeated.
fn timed<T>(work: impl Fn() -> Result<T, covary::Error>) -> Result<(T, f64), Failure> {
    let (start, mut times) = (processor_seconds(), 0);
    loop {
        let answer = work()?;
        times += 1;
        let seconds = processor_seconds() - start;
        if seconds > 0.1 {
            return Ok((answer, seconds / f64::from(times)));
        }
    }
}

/// Equal noise of variance 1, signal variances from ℓ to 3ℓ with ℓ = 0.2 + c √(d/(n p)): weak for c = 3, clear for 8.
fn simulated(from: u64) -> Answer {
    let sizes: [(usize, usize, usize); 8] = [
        (60, 100, 3),
        (100, 30, 3),
        (200, 10, 2),
        (300, 20, 0),
        (500, 20, 4),
        (500, 60, 10),
        (1000, 30, 6),
        (1500, 60, 20),
    ];
    println!("rows columns components | tables best fewest | mean error best fewest | seconds choice fit");
    let mut total = [0.0; 7];
    let mut by_gaps = [[0.0; 3]; 3];
    let mut by_strength = [[0.0; 3]; 2];
    for (n, d, q) in sizes {
        let mut of = [0.0; 7];
        for (strength, c) in [3.0, 8.0].into_iter().enumerate() {
            for (g, gaps) in [0.0, 0.1, 0.3].into_iter().enumerate() {
                let one = strength == 1 && (g == 2 || (g == 1 && (n == 60 || n == 1500)));
                for seed in 0..if one { 1 } else { 2 } {
                    let least = 0.2 + c * (d as f64 / (n as f64 * (1.0 - gaps))).sqrt();
                    let signal = |k: usize| least * (1.0 + 2.0 * k as f64 / (q.max(2) - 1) as f64);
                    let sd = |k: usize| if k < q { (1.0 + signal(k)).sqrt() } else { 1.0 };
                    let seed = from + seed + 10 * g as u64 + 100 * strength as u64;
                    let whole = simulate::rotated(n, &(0..d).map(sd).collect::<Vec<_>>(), seed).0;
                    let table = if gaps > 0.0 { simulate::hide(&whole, gaps, seed + 7) } else { whole };
                    let (best, fewest, seconds) = choose(&table, &Spec::ppca(0))?;
                    let fit = fit_seconds(&table, &Spec::ppca(fewest))?;
                    let found = record(q, best, fewest, seconds, fit);
                    of.iter_mut().zip(found).for_each(|(a, b)| *a += b);
                    by_gaps[g].iter_mut().zip(found).for_each(|(a, b)| *a += b);
                    by_strength[strength].iter_mut().zip(found).for_each(|(a, b)| *a += b);
                }
            }
        }
        total.iter_mut().zip(of).for_each(|(a, b)| *a += b);
        line(&format!("{n} {d} {q}"), of);
    }
    line("all", total);
    println!("gaps 0, 10, 30 %: {by_gaps:?}\nweak, clear: {by_strength:?}");
    Ok(())
}

/// One table; which choices are exact, and how far they are off.
fn record(truth: usize, best: usize, fewest: usize, seconds: f64, fit: f64) -> [f64; 7] {
    let right = |k: usize| f64::from(u8::from(k == truth));
    let off = |k: usize| truth.abs_diff(k) as f64;
    [1.0, right(best), right(fewest), off(best), off(fewest), seconds, fit]
}

/// Tables of random loadings, of equal noise and of unequal; columns are standardized, which makes both unequal.
fn standardized(from: u64) -> Answer {
    let sizes: [(usize, usize, usize); 7] = [
        (100, 30, 3),
        (200, 10, 2),
        (500, 20, 4),
        (500, 60, 10),
        (2000, 50, 5),
        (20_000, 30, 6),
        (20_000, 100, 10),
    ];
    println!("rows columns components | tables best fewest | mean error best fewest | seconds choice fit");
    let mut total = [0.0; 7];
    for (n, d, q) in sizes {
        let mut of = [0.0; 7];
        for seed in from..from + 2 {
            let shape = Shape { rows: n, columns: d, n_components: q };
            for whole in [simulate::ppca(shape, seed).0, simulate::factor_analysis(shape, seed).0] {
                for gaps in [0.0, 0.1, 0.3] {
                    let table =
                        if gaps > 0.0 { simulate::hide(&whole, gaps, seed + 7) } else { whole.clone() };
                    let spec = Spec { standardize: true, ..Spec::ppca(0) };
                    let (best, fewest, seconds) = choose(&table, &spec)?;
                    let fit = fit_seconds(&table, &Spec { n_components: fewest, ..spec })?;
                    let found = record(q, best, fewest, seconds, fit);
                    of.iter_mut().zip(found).for_each(|(a, b)| *a += b);
                }
            }
        }
        total.iter_mut().zip(of).for_each(|(a, b)| *a += b);
        line(&format!("{n} {d} {q}"), of);
    }
    line("all", total);
    Ok(())
}

fn line(what: &str, of: [f64; 7]) {
    let [n, best, fewest, error, fewest_error, seconds, fit] = of;
    println!(
        "{what} | {n} {best} {fewest} | {:.2} {:.2} | {:.4} {:.4}",
        error / n,
        fewest_error / n,
        seconds / n,
        fit / n
    );
}

fn time(n: usize, d: usize, q: usize, gaps: &str, family: &str) -> Answer {
    let gaps: f64 = gaps.parse()?;
    let shape = Shape { rows: n, columns: d, n_components: q };
    let (spec, whole) = match family {
        "fa" => (Spec::factor_analysis(0), simulate::factor_analysis(shape, 1).0),
        "standardized" => (Spec { standardize: true, ..Spec::ppca(0) }, simulate::ppca(shape, 1).0),
        _ => (Spec::ppca(0), simulate::ppca(shape, 1).0),
    };
    let table = if gaps > 0.0 { simulate::hide(&whole, gaps, 2) } else { whole };
    let (best, fewest, seconds) = choose(&table, &spec)?;
    println!(
        "{n} × {d}, {q} components, gaps {gaps}, {family}: best {best}, fewest {fewest}; choice {seconds:.4} s"
    );
    let fit = fit_seconds(&table, &Spec { n_components: fewest, ..spec })?;
    let (both, memory) = ((seconds + fit) / fit, peak_memory() >> 20);
    println!("    fit {fit:.4} s, both {both:.1} × the fit; peak {memory} MB");
    Ok(())
}

fn filling(n: usize, d: usize, q: usize, gaps: &str) -> Answer {
    let gaps: f64 = gaps.parse()?;
    let whole = simulate::ppca(Shape { rows: n, columns: d, n_components: q }, 1).0;
    let table = simulate::hide(&whole, gaps, 2);
    let spec = Spec { standardize: true, ..Spec::ppca(q) };
    let (fitted, fit) = timed(|| Method::recommended(&table, &spec).fit(&table, &spec))?;
    let request = Request { filling: Some(ForFilling::default()), ..Request::new(Family::Gaussian) };
    let (learned, seconds) = timed(|| request.learn(&table))?;
    let rmse = |cells: Vec<FilledCell>| {
        let errors = cells.iter().map(|c| (whole.values()[(c.row, c.column)] - c.mean).powi(2));
        (errors.sum::<f64>() / cells.len() as f64).sqrt()
    };
    let ours = rmse(learned.fill(Rows::Training)?.cells(&table)?);
    let theirs = rmse(fitted.model.gap_cells(&table)?);
    println!(
        "{n} × {d}, {q} components, gaps {gaps}: the default {seconds:.3} s, RMSE {ours:.4}, {} of {} components; PPCA {fit:.3} s, RMSE {theirs:.4}; peak {} MB",
        learned.family.name(),
        learned.n_shown(),
        peak_memory() >> 20
    );
    Ok(())
}

fn real(files: &[&str]) -> Answer {
    const MOST: usize = 20;
    println!(
        "table gaps | oracle q rmse | best q excess | fewest q excess | pilot kept excess | seconds choice fit"
    );
    let mut excess = [Vec::new(), Vec::new(), Vec::new()];
    let filling = PilotSearch { purpose: Purpose::Filling, ..PilotSearch::default() };
    for file in files {
        let whole = csv::read(File::open(file)?)?.dataset().clone();
        let whole = ColumnMap::of_varying(&whole)?.dataset(&whole)?.into_owned();
        for share in [0.1, 0.3] {
            let table = simulate::hide(&whole, share, 1);
            let Ok(map) = ColumnMap::of_varying(&table) else { continue };
            if map.columns.len() < whole.n_columns() {
                continue;
            }
            let spec = Spec { standardize: true, ..Spec::ppca(0) };
            let (best, fewest, seconds) = choose(&table, &spec)?;
            let room = (table.n_columns() - 1).min(table.n_rows() - 2);
            let rmse_of = |model: &LinearGaussian| -> Result<f64, covary::Error> {
                let cells = model.gap_cells(&table)?;
                let sds = table.observed_variances();
                let errors: Vec<f64> = cells
                    .iter()
                    .map(|c| (whole.values()[(c.row, c.column)] - c.mean).powi(2) / sds[c.column])
                    .filter(|e| !e.is_nan())
                    .collect();
                Ok((errors.iter().sum::<f64>() / errors.len() as f64).sqrt())
            };
            let rmse = |q: usize| -> Result<f64, covary::Error> {
                rmse_of(&Em::default().fit(&table, &Spec { n_components: q, ..spec.clone() })?.model)
            };
            let all: Vec<f64> = (0..=room.min(MOST)).map(rmse).collect::<Result<_, _>>()?;
            let oracle = (0..all.len()).min_by(|&a, &b| all[a].total_cmp(&all[b])).unwrap_or(0);
            let mut over = |k: usize, own: f64| {
                excess[k].push(100.0 * (own / all[oracle] - 1.0));
                100.0 * (own / all[oracle] - 1.0)
            };
            let at = |q: usize| if q < all.len() { Ok(all[q]) } else { rmse(q) };
            // A model like the pilot, of all cells, with the components of the best number.
            let found = filling.run(&table, &spec)?;
            let numbers = found.iter().flat_map(|found| &found.by_n_components).map(|at| at.n_components);
            let pilot_spec = Spec { n_components: numbers.max().unwrap_or(0), ..spec.clone() };
            let pilot = Em { max_iterations: 6, tolerance: 0.0, ..Em::default() }.fit(&table, &pilot_spec)?;
            println!(
                "{} {} × {} {share} | {oracle} {:.3} | {best} {:+.1} % | {fewest} {:+.1} % | {:+.1} % | {seconds:.4} {:.4}",
                file.rsplit('/').next().unwrap_or(file),
                table.n_rows(),
                table.n_columns(),
                all[oracle],
                over(0, at(best)?),
                over(1, at(fewest)?),
                over(2, rmse_of(&pilot.model.truncated(best)?)?),
                fit_seconds(&table, &Spec { n_components: fewest, ..spec.clone() })?
            );
        }
    }
    for (what, mut found) in ["best", "fewest", "pilot kept"].into_iter().zip(excess) {
        found.sort_by(f64::total_cmp);
        println!(
            "{what}: {} tasks, excess median {:.1} %, mean {:.1} %, worst {:.1} %",
            found.len(),
            found[(found.len() - 1) / 2].midpoint(found[found.len() / 2]),
            found.iter().sum::<f64>() / found.len() as f64,
            found[found.len() - 1]
        );
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

/// Peak resident memory in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or("0");
    line.split_whitespace().next().and_then(|v| v.parse::<u64>().ok()).unwrap_or(0) * 1024
}
