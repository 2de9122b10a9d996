//! What docs/time.md says of choices and of forecast intervals.
//!
//! `dynamics_experiments choice TABLES` counts right numbers of factors, waves and orders; `dynamics_experiments coverage TABLES
//! [FIRST_SEED]` how many cells to come lie in their 95 % intervals, the fit included; `dynamics_experiments table FILE COLUMNS PERIOD Q ORIGINS`
//! does the latter on a raw table (little-endian f64, row-major, NaN at the gaps) for ORIGINS origins that end 12 steps apart.
#![allow(clippy::print_stdout, reason = "an example talks to its user")]

use covary::dynamics::{DynamicEm, Season, TimeSearch, Timeline};
use covary::family::{Components, Family, ForFilling, Request};
use covary::learned::Rows;
use covary::{Dataset, Estimator, Matrix, Spec};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::error::Error;

const AHEAD: [usize; 3] = [1, 6, 12];

/// How a table is made.
#[derive(Clone, Copy)]
struct Kind {
    rows: usize,
    columns: usize,
    factors: usize,
    /// `x_t = first x_{t−1} + second x_{t−2} + η`
    memory: (f64, f64),
    waves: usize,
    gaps: f64,
}

/// Loadings and waves standard normal, factors of unit variance or so, noise variance 0.25; a share of the cells in runs of 1 to 12
/// is missing.
fn simulated(kind: Kind, more: usize, seed: u64) -> Matrix {
    let Kind { rows, columns, factors, memory: (first, second), waves, gaps } = kind;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
    let w = Matrix::from_fn(columns, factors, |_, _| normal());
    let season = Matrix::from_fn(columns, 2 * waves, |_, _| normal());
    let innovation =
        ((1.0 + second) * ((1.0 - second).powi(2) - first * first) / (1.0 - second)).max(0.0).sqrt();
    let (mut now, mut before) = (vec![0.0; factors], vec![0.0; factors]);
    let mut out = Matrix::zeros(rows + more, columns);
    for t in 0..rows + more + 200 {
        for (now, before) in now.iter_mut().zip(&mut before) {
            let next = first * *now + second * *before + innovation * normal();
            (*before, *now) = (*now, next);
        }
        let Some(t) = t.checked_sub(200) else { continue };
        for j in 0..columns {
            let of_factors: f64 = w.row(j).iter().zip(&now).map(|(w, x)| w * x).sum();
            let wave = |h: usize| {
                let phase = (h + 1) as f64 * t as f64 / 12.0 * std::f64::consts::TAU;
                season[(j, 2 * h)] * phase.cos() + season[(j, 2 * h + 1)] * phase.sin()
            };
            out[(t, j)] = 3.0 + of_factors + (0..waves).map(wave).sum::<f64>() + 0.5 * normal();
        }
    }
    let wanted = (gaps * (rows * columns) as f64) as usize;
    let mut missing = 0;
    while missing < wanted {
        let (t, j, length) =
            (rng.random_range(0..rows), rng.random_range(0..columns), rng.random_range(1..=12));
        for t in t..(t + length).min(rows) {
            missing += usize::from(!out[(t, j)].is_nan());
            out[(t, j)] = f64::NAN;
        }
    }
    out
}

fn season(waves: usize) -> Season {
    if waves == 0 { Season::None } else { Season::Harmonics { period: 12.0, n: waves } }
}

fn choice(tables: u64) -> Result<(), Box<dyn Error>> {
    println!("| rows × columns, factors, waves, order | factors | waves | order | order, best |");
    println!("| --- | --- | --- | --- | --- |");
    let base = Kind { rows: 120, columns: 8, factors: 2, memory: (0.8, 0.0), waves: 1, gaps: 0.2 };
    for kind in [
        base,
        Kind { rows: 240, ..base },
        Kind { rows: 240, factors: 1, waves: 2, ..base },
        Kind { rows: 240, factors: 3, columns: 12, waves: 0, gaps: 0.0, ..base },
        Kind { rows: 240, memory: (0.8, -0.6), waves: 0, ..base },
    ] {
        let order = 1 + usize::from(kind.memory.1 != 0.0);
        let mut right = [0; 4];
        for seed in 0..tables {
            let table = Dataset::new(simulated(kind, 0, 500 + seed))?;
            let estimator = DynamicEm { season: season(1), ..DynamicEm::default() };
            let search = TimeSearch { estimator, seed, ..TimeSearch::default() };
            let found = search.run(&table, &Spec::ppca(1))?;
            let best = TimeSearch {
                estimator: DynamicEm { season: season(kind.waves), ..DynamicEm::default() },
                n_components: Some(kind.factors),
                search_waves: false,
                purpose: covary::select::Purpose::Filling,
                ..search
            };
            let best = best.run(&table, &Spec::ppca(1))?;
            let hits = [
                found.n_components == kind.factors,
                found.season == season(kind.waves),
                found.order == order,
                best.order == order,
            ];
            right.iter_mut().zip(hits).for_each(|(n, hit)| *n += usize::from(hit));
        }
        let Kind { rows, columns, factors, waves, .. } = kind;
        let [f, w, o, b] = right;
        println!("| {rows} × {columns}, {factors}, {waves}, {order} | {f} | {w} | {o} | {b} |");
    }
    Ok(())
}

/// Cells inside their 95 % intervals 1, 6 and 12 steps ahead, and all.
fn inside(
    whole: &Matrix,
    rows: usize,
    q: usize,
    season: Season,
) -> Result<[(usize, usize); 3], Box<dyn Error>> {
    let d = whole.n_columns();
    let seen = Dataset::new(Matrix::from_fn(rows, d, |t, j| whole[(t, j)]))?;
    let fit = DynamicEm { season, ..DynamicEm::default() }.fit(&seen, &Spec::factor_analysis(q))?;
    let ahead = &fit.model.forecast_estimated(&seen, &Timeline::regular(rows), AHEAD[2], &(&seen).into())?[0];
    let mut out = [(0, 0); 3];
    for cell in &ahead.cells {
        let (t, (low, high)) = (whole[(rows + cell.row, cell.column)], cell.interval(0.95)?);
        if let Some(at) = AHEAD.iter().position(|step| *step == cell.row + 1)
            && !t.is_nan()
        {
            out[at].0 += usize::from((low..=high).contains(&t));
            out[at].1 += 1;
        }
    }
    Ok(out)
}

fn share((inside, all): (usize, usize)) -> String {
    format!("{:.1}", 100.0 * inside as f64 / all as f64)
}

fn coverage(tables: u64, first: u64) -> Result<(), Box<dyn Error>> {
    println!(
        "| rows × columns, factors, memory, gaps | 1 step | 6 steps | 12 steps |\n| --- | --- | --- | --- |"
    );
    let base = Kind { rows: 240, columns: 6, factors: 2, memory: (0.9, 0.0), waves: 1, gaps: 0.0 };
    for kind in [
        Kind { rows: 60, ..base },
        Kind { rows: 120, ..base },
        base,
        Kind { gaps: 0.3, ..base },
        Kind { memory: (0.6, 0.0), ..base },
        Kind { rows: 500, factors: 3, columns: 12, ..base },
    ] {
        let mut sums = [(0, 0); 3];
        for seed in 0..tables {
            let whole = simulated(kind, AHEAD[2], first + seed);
            for (sum, found) in sums.iter_mut().zip(inside(&whole, kind.rows, kind.factors, season(1))?) {
                *sum = (sum.0 + found.0, sum.1 + found.1);
            }
        }
        let Kind { rows, columns, factors, memory, gaps, .. } = kind;
        let [a, b, c] = sums.map(share);
        println!("| {rows} × {columns}, {factors}, {}, {} % | {a} | {b} | {c} |", memory.0, 100.0 * gaps);
    }
    Ok(())
}

fn real(args: &[String]) -> Result<(), Box<dyn Error>> {
    let [file, columns, period, q, origins] = args else {
        return Err("FILE COLUMNS PERIOD Q ORIGINS".into());
    };
    let d = columns.parse::<usize>()?;
    let cells = std::fs::read(file)?;
    let cells = cells.chunks_exact(8).map(|c| f64::from_le_bytes(c.try_into().expect("eight bytes")));
    let cells: Vec<f64> = cells.collect();
    let whole = Matrix::from_vec(cells.len() / d, d, cells)?;
    let season = match period.parse::<f64>()? {
        period if period > 1.0 => Season::Harmonics { period, n: 1 },
        _ => Season::None,
    };
    let mut sums = [(0, 0); 3];
    for origin in 1..=origins.parse::<usize>()? {
        let rows = whole.n_rows() - origin * AHEAD[2];
        for (sum, found) in sums.iter_mut().zip(inside(&whole, rows, q.parse()?, season)?) {
            *sum = (sum.0 + found.0, sum.1 + found.1);
        }
    }
    let [a, b, c] = sums.map(share);
    println!("| {} × {d}, {q} | {a} | {b} | {c} |", whole.n_rows());
    Ok(())
}

/// How many missing cells lie in their 95 % intervals: parameters taken for the truth, and calibrated by hidden blocks.
fn filled(tables: u64) -> Result<(), Box<dyn Error>> {
    println!("| rows × columns, factors, memory, gaps | calibrated | as if known |");
    println!("| --- | --- | --- |");
    let base = Kind { rows: 120, columns: 6, factors: 2, memory: (0.9, 0.0), waves: 0, gaps: 0.1 };
    for kind in [
        Kind { rows: 60, ..base },
        base,
        Kind { rows: 240, gaps: 0.3, ..base },
        Kind { columns: 12, gaps: 0.3, ..base },
    ] {
        let (mut inside, mut cells) = ([0; 2], 0);
        for seed in 0..tables {
            // The same numbers without gaps are the truth.
            let truth = simulated(Kind { gaps: 0.0, ..kind }, 0, seed);
            let table = Dataset::new(simulated(kind, 0, seed))?;
            for (inside, calibrate) in inside.iter_mut().zip([true, false]) {
                let request = Request {
                    n_components: Some(Components::Number(kind.factors)),
                    options: vec![
                        ("order".to_owned(), "1".to_owned()),
                        ("loadings".to_owned(), "likelihood".to_owned()),
                    ],
                    filling: Some(ForFilling { choose: false, calibrate, limits: false }),
                    ..Request::new(Family::Dfm)
                };
                let fill = request.learn(&table)?;
                for cell in fill.fill(Rows::Training)?.cells(&table)? {
                    let (low, high) = cell.interval(0.95)?;
                    *inside += usize::from((low..=high).contains(&truth[(cell.row, cell.column)]));
                }
            }
            cells += table.n_gaps();
        }
        let Kind { rows, columns, factors, memory: (memory, _), gaps, .. } = kind;
        let [calibrated, known] = inside.map(|n| 100.0 * n as f64 / cells as f64);
        let gaps = 100.0 * gaps;
        println!("| {rows} × {columns}, {factors}, {memory}, {gaps} % | {calibrated:.1} | {known:.1} |");
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("choice") => choice(args.get(1).map_or(Ok(20), |n| n.parse())?),
        Some("coverage") => {
            coverage(args.get(1).map_or(Ok(100), |n| n.parse())?, args.get(2).map_or(Ok(900), |n| n.parse())?)
        }
        Some("filled") => filled(args.get(1).map_or(Ok(50), |n| n.parse())?),
        Some("table") => real(&args[1..]),
        _ => {
            Err("usage: dynamics_experiments choice|filled TABLES, coverage TABLES [FIRST_SEED], or table FILE COLUMNS PERIOD Q ORIGINS"
                .into())
        }
    }
}
