//! Figure 8: components found over the number of rows, of 25 columns with decreasing deviations.

use super::{draw, gaussian, mean_error};
use crate::{Comparison, Error, Exhibit, Findings, Row, Run};
use covary::infer::{Evidence, MeanField, Spectral, Structured};
use covary::select::Criteria;
use covary::{Dataset, Estimator, Spec};
use covary_report::chart::{Axis, Chart, Curves, Look, Panel, Series, fixed};

pub(crate) const EXHIBIT: Exhibit = Exhibit {
    name: "chen-2018-fig-08",
    source: "Chen, Du & Vuyyuru 2018, figure 8",
    title: "Components found over the number of rows, of 25 columns with deviations 25, 24, …, 1",
    needs: &[],
    make,
};

const REPEATS: usize = 50;
/// The paper's numbers of rows end at 100.
const ROWS: [usize; 11] = [20, 30, 40, 50, 60, 70, 80, 90, 100, 200, 400];
const PAPER_ENDS: usize = 8;
/// One component is lost to the noise, which is the smallest deviation.
const ALL: usize = 24;
const METHODS: [&str; 4] = [
    "mean-field Bayes (the paper's method), converged",
    "structured Bayes",
    "type-II maximum likelihood",
    "Laplace evidence",
];
/// Specification part 2 §12.2, an independent implementation over 50 other tables.
const REFERENCE: [[f64; 11]; 4] = [
    [2.0, 3.2, 4.3, 5.5, 6.4, 7.7, 8.7, 9.7, 10.9, 17.2, 21.2],
    [2.5, 3.8, 4.8, 5.8, 6.7, 8.1, 9.2, 10.0, 11.1, 17.4, 21.2],
    [19.0, 3.1, 4.1, 5.9, 9.7, 13.7, 18.1, 20.3, 21.6, 24.0, 24.0],
    [1.1, 5.4, 12.5, 23.6, 23.8, 24.0, 24.0, 24.0, 24.0, 24.0, 24.0],
];

/// Sweeps after which the paper's method, without parameter expansion, is stopped.
const SWEEPS: [usize; 7] = [2, 5, 10, 20, 50, 100, 500];

/// Components by each method.
fn found(data: &Dataset) -> Result<[f64; 4], Error> {
    let spec = Spec::ppca((data.n_columns() - 1).min(data.n_rows() - 1));
    let spectrum = Spectral::default().spectrum(data, data.n_columns(), false)?;
    let evidence = Criteria::from_spectrum(&spectrum)?.chosen().evidence.unwrap_or(0);
    Ok([
        MeanField::default().fit(data, &spec)?.model.n_components(),
        Structured::default().fit(data, &spec)?.model.n_components(),
        Evidence::default().fit(data, &spec)?.model.n_components(),
        evidence,
    ]
    .map(|q| q as f64))
}

fn make(run: &Run) -> Result<Findings, Error> {
    let repeats = run.repeats(REPEATS);
    let deviations: Vec<f64> = (1..=25).rev().map(f64::from).collect();
    let truth = gaussian(&deviations)?;
    let answers = run.each("tables", ROWS.len() * repeats, |k| {
        let rows = ROWS[k / repeats];
        found(&draw(&truth, rows, run.seed + (10_000 * rows + k % repeats) as u64)?)
    })?;
    let early = run.each("tables, stopped early", repeats, |k| {
        let data = draw(&truth, ROWS[PAPER_ENDS], run.seed + (10_000 * ROWS[PAPER_ENDS] + k) as u64)?;
        let stopped = |max_iterations: usize| {
            let method = MeanField { max_iterations, expansion: false, ..MeanField::default() };
            Ok(method.fit(&data, &Spec::ppca(ALL))?.model.n_components() as f64)
        };
        SWEEPS.iter().map(|&n| stopped(n)).collect::<Result<Vec<f64>, Error>>()
    })?;
    let stopped: Vec<(f64, f64)> =
        (0..SWEEPS.len()).map(|s| mean_error(&early.iter().map(|e| e[s]).collect::<Vec<_>>())).collect();
    // By method, then by number of rows: mean and standard error.
    let mean = |m: usize, n: usize| {
        mean_error(&answers[n * repeats..(n + 1) * repeats].iter().map(|a| a[m]).collect::<Vec<_>>())
    };
    let means: Vec<Vec<(f64, f64)>> = (0..4).map(|m| (0..ROWS.len()).map(|n| mean(m, n)).collect()).collect();
    let vb = &means[0];
    let from = ROWS.iter().zip(&means[3]).find(|(_, v)| v.0 > ALL as f64 - 0.5).map_or(0, |(n, _)| *n);
    let rising = vb.windows(2).all(|w| w[0].0 <= w[1].0 + 2.0 * w[1].1);
    let rows = vec![
        Row::claim(
            "few rows make Bayesian PCA find too few",
            "underestimates",
            &format!("{} at 20 rows, {} at 50", fixed(vb[0].0, 1), fixed(vb[3].0, 1)),
            vb[3].0 < 0.9 * ALL as f64 && rising,
        ),
        Row::claim(
            "at 100 rows it finds them all",
            &format!("{ALL}"),
            &format!("{} ± {}", fixed(vb[PAPER_ENDS].0, 1), fixed(vb[PAPER_ENDS].1, 1)),
            vb[PAPER_ENDS].0 > ALL as f64 - 1.0,
        )
        .why(&format!(
            "not when converged (errata 2.10): stopped after {} sweeps it has {}, after {} {}; 400 rows are not enough either, while the Laplace evidence has them all from {from} rows on",
            SWEEPS[1], fixed(stopped[1].0, 1), SWEEPS[5], fixed(stopped[5].0, 1)
        )),
    ];
    let mut reference = Vec::new();
    for (m, method) in METHODS.iter().enumerate() {
        for n in [3, PAPER_ENDS, 10] {
            let name = format!("{method}, {} rows", ROWS[n]);
            // Both are means of 50 tables: three standard errors of their difference, and half a digit.
            let room = 3.0 * 2.0_f64.sqrt() * means[m][n].1 + 0.05;
            let row = Row::reference(&name, REFERENCE[m][n], room.max(0.1), means[m][n].0, 1);
            reference.push(
                row.why("other tables, and our type-II fit starts from fewer candidates (docs/evidence.md)"),
            );
        }
    }
    let line = |m: usize| {
        let points = ROWS.iter().zip(&means[m]).map(|(n, v)| (*n as f64, v.0)).collect();
        Series::new(METHODS[m], Look::Joined, points).color(m).errors(means[m].iter().map(|v| v.1).collect())
    };
    let all = ALL as f64;
    let mut series: Vec<Series> = (0..4).map(line).collect();
    series.push(Series::new("all there are", Look::Dashed, vec![(18.0, all), (450.0, all)]).color(6));
    let chart = Chart {
        title: format!(
            "Converged, Bayesian PCA finds {} of {ALL} components in 100 rows, and the evidence all of them",
            fixed(vb[PAPER_ENDS].0, 1)
        ),
        subtitle: format!(
            "25 columns with standard deviations 25, 24, …, 1; {repeats} tables for each number of rows"
        ),
        note: "Means; bars are standard errors. Left: the paper's rows end at 100. Right: the paper's method without parameter expansion, stopped before it has converged.".to_owned(),
        across: 2,
        panels: vec![Panel::curves(
            "Converged, by number of rows",
            Curves {
                x: Axis::new("rows (log scale)").log().between(18.0, 450.0),
                y: Axis::new("components found").between(0.0, 25.0),
                series,
            },
        ), Panel::curves("100 rows, by sweeps made", Curves {
            x: Axis::new("sweeps (log scale)").log().between(1.5, 700.0),
            y: Axis::new("components found").between(0.0, 25.0),
            series: vec![
                Series::new("mean-field Bayes, stopped", Look::Joined, SWEEPS.iter().zip(&stopped).map(|(n, v)| (*n as f64, v.0)).collect()).color(4).errors(stopped.iter().map(|v| v.1).collect()),
                Series::new("all there are", Look::Dashed, vec![(1.5, all), (700.0, all)]).color(6),
            ],
        })],
    };
    Ok(Findings {
        charts: vec![chart],
        tables: vec![
            Comparison::with_paper("What the text claims", rows),
            Comparison::with("reference", "Compared with an independent implementation", reference),
        ],
        notes: Vec::new(),
    })
}
