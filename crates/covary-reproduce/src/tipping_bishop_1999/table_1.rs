//! Table 1: how well six covariance models predict Tobamovirus rows, by the bootstrap.
//!
//! The paper does not say what was done to the columns or what its error is. Its numbers come out for columns
//! divided by their standard deviations (divisor n − 1) and the .632 bootstrap (Efron & Tibshirani 1993) of
//! −2 ln p without the 2π term:
//!
//! ```text
//! error = .368 · mean over rows, fitted to all + .632 · mean over rows and resamples without that row
//! ```

use super::TABLE;
use crate::{Comparison, Error, Exhibit, Findings, Row, Run};
use covary::io::ReadOptions;
use covary::{Dataset, Density, Estimator, LinearGaussian, Method, Spec};
use covary_report::chart::{Axis, Chart, Curves, Look, Panel, Series, fixed};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::f64::consts::TAU;

pub(crate) const EXHIBIT: Exhibit = Exhibit {
    name: "tipping-bishop-1999-table-1",
    source: "Tipping & Bishop 1999, table 1",
    title: "Bootstrap prediction error of six covariance models, Tobamovirus",
    needs: &["tobamovirus"],
    make,
};

/// Resamples, and as many as the paper may have taken.
const RESAMPLES: usize = 5000;
const PART: usize = 100;

/// Where the full covariance stands among the candidates.
const FULL: usize = 5;

/// A covariance model, with the error and the number of parameters that the paper prints.
struct Candidate {
    name: &'static str,
    spec: Spec,
    error: &'static str,
    n_parameters: &'static str,
}

/// The full covariance is that of 17 components: what they leave over is the last eigenvalue.
fn candidates() -> [Candidate; 6] {
    let candidate = |name, spec, error, n_parameters| Candidate { name, spec, error, n_parameters };
    [
        candidate("isotropic", Spec::ppca(0), "18.6", "1"),
        candidate("diagonal", Spec::factor_analysis(0), "19.6", "18"),
        candidate("PPCA, q = 1", Spec::ppca(1), "16.8", "19"),
        candidate("PPCA, q = 2", Spec::ppca(2), "14.8", "36"),
        candidate("PPCA, q = 3", Spec::ppca(3), "15.6", "52"),
        candidate("full", Spec::ppca(17), "3193.5", "171"),
    ]
}

impl Candidate {
    /// None where a resample has no such covariance: a constant column, or too few different rows.
    fn fit(&self, table: &Dataset) -> Option<LinearGaussian> {
        let fit = Method::recommended(table, &self.spec).fit(table, &self.spec).ok()?;
        // A last eigenvalue that is rounding is none.
        let least = fit.model.noise_variances().into_iter().fold(f64::INFINITY, f64::min);
        (least > 1e-9).then_some(fit.model)
    }
}

/// −2 ln p of each row, without the 2π term.
fn errors(model: &LinearGaussian, table: &Dataset) -> Result<Vec<f64>, Error> {
    let constant = table.n_columns() as f64 * TAU.ln();
    Ok(model.log_density(table)?.into_iter().map(|l| -2.0 * l - constant).collect())
}

/// The table with columns of standard deviation 1, divisor n − 1.
fn standardized(table: &Dataset) -> Result<Dataset, Error> {
    let (n, mut values) = (table.n_rows() as f64, table.values().clone());
    let sds = table.observed_variances().iter().map(|v| (v * n / (n - 1.0)).sqrt());
    values.scale_columns(&sds.map(|s| 1.0 / s).collect::<Vec<_>>());
    Ok(Dataset::new(values)?)
}

/// What one resample says of each candidate: the errors of the rows it lacks.
type Resample = Vec<Option<Vec<(usize, f64)>>>;

fn resample(table: &Dataset, seed: u64) -> Result<Resample, Error> {
    let n = table.n_rows();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let drawn: Vec<usize> = (0..n).map(|_| rng.random_range(0..n)).collect();
    let left_out: Vec<usize> = (0..n).filter(|i| !drawn.contains(i)).collect();
    let (drawn, rest) = (table.of_rows(&drawn)?, table.of_rows(&left_out)?);
    let one = |candidate: &Candidate| -> Result<_, Error> {
        let Some(model) = candidate.fit(&drawn) else { return Ok(None) };
        Ok(Some(left_out.iter().copied().zip(errors(&model, &rest)?).collect()))
    };
    candidates().iter().map(one).collect()
}

/// The .632 error from these resamples of candidate `k`, given its error on the rows it was fitted to.
fn estimate(resamples: &[Resample], k: usize, n_rows: usize, apparent: f64) -> f64 {
    let mut sums = vec![(0.0, 0.0); n_rows];
    for (i, error) in resamples.iter().filter_map(|r| r[k].as_ref()).flatten() {
        sums[*i].0 += error;
        sums[*i].1 += 1.0;
    }
    let rows = sums.iter().filter(|(_, n)| *n > 0.0);
    let (sum, n) = rows.fold((0.0, 0.0), |(sum, n), row| (sum + row.0 / row.1, n + 1.0));
    0.368 * apparent + 0.632 * sum / n
}

/// An estimate from all resamples, and those from each hundred of them.
struct Estimate {
    all: f64,
    parts: Vec<f64>,
}

impl Estimate {
    /// Least and largest of the parts.
    fn ends(&self) -> (f64, f64) {
        let ends = (f64::INFINITY, f64::NEG_INFINITY);
        self.parts.iter().fold(ends, |(low, high), e| (low.min(*e), high.max(*e)))
    }

    /// Standard deviation of an estimate from a part.
    fn sd(&self) -> f64 {
        let n = self.parts.len() as f64;
        let mean = self.parts.iter().sum::<f64>() / n;
        (self.parts.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0)).sqrt()
    }
}

fn estimates(run: &Run, table: &Dataset) -> Result<Vec<Estimate>, Error> {
    let (n, repeats) = (table.n_rows(), run.repeats(RESAMPLES));
    let resamples = run.each("resamples", repeats, |k| resample(table, run.seed + k as u64))?;
    let one = |(k, candidate): (usize, &Candidate)| -> Result<Estimate, Error> {
        let fitted = candidate.fit(table).ok_or(covary::Error::NothingToCompare)?;
        let apparent = errors(&fitted, table)?.iter().sum::<f64>() / n as f64;
        let part = |part: &[Resample]| estimate(part, k, n, apparent);
        let parts = resamples.chunks(PART).map(part).filter(|e| e.is_finite()).collect();
        Ok(Estimate { all: part(&resamples), parts })
    };
    candidates().iter().enumerate().map(one).collect()
}

fn make(run: &Run) -> Result<Findings, Error> {
    let table = standardized(&run.data.table(TABLE, &ReadOptions::default())?)?;
    let (candidates, estimates) = (candidates(), estimates(run, &table)?);
    let of_paper: Vec<f64> = candidates.iter().map(|c| c.error.parse().expect("a number above")).collect();
    let mut rows: Vec<Row> = candidates[..FULL]
        .iter()
        .zip(&estimates)
        .zip(&of_paper)
        .map(|((candidate, ours), &paper)| {
            // Half a unit of its last digit, and two deviations of an estimate from 100 resamples.
            Row::reference(candidate.name, paper, 0.05 + 2.0 * ours.sd(), ours.all, 2)
                .why("the paper does not say how many resamples it took, nor what it did to the columns")
        })
        .collect();
    let (low, high) = estimates[FULL].ends();
    let full = format!(
        "{}; {} to {} from {PART} resamples each",
        fixed(estimates[FULL].all, 0),
        fixed(low, 0),
        fixed(high, 0)
    );
    rows.push(
        Row::claim("full", candidates[FULL].error, &full, (low..=high).contains(&of_paper[FULL]))
            .why("the mean of a few enormous errors"),
    );
    let order = |errors: &[f64]| {
        let mut order: Vec<usize> = (0..errors.len()).collect();
        order.sort_by(|&a, &b| errors[a].total_cmp(&errors[b]));
        order.iter().map(|&k| candidates[k].name).collect::<Vec<_>>().join(" < ")
    };
    let ours: Vec<f64> = estimates.iter().map(|e| e.all).collect();
    let (theirs, ours) = (order(&of_paper), order(&ours));
    rows.push(Row::claim("order", &theirs, &ours, theirs == ours).why("too few resamples"));
    let parameters = candidates.iter().map(|candidate| {
        let n = candidate.fit(&table).map_or(0, |m| m.n_covariance_parameters()).to_string();
        Row::claim(candidate.name, candidate.n_parameters, &n, n == candidate.n_parameters)
    });
    Ok(Findings {
        charts: vec![chart(&of_paper, &estimates, run.repeats(RESAMPLES))],
        tables: vec![
            Comparison::with_paper(".632 bootstrap of −2 ln p, standardized columns", rows),
            Comparison::with_paper("Free parameters of the covariance", parameters.collect()),
        ],
        notes: vec![format!(
            "Beside the paper's numbers stands how far an estimate from {PART} of our {} resamples may lie from \
             them: half a unit of the last digit and two standard deviations. With standard deviations of divisor \
             n instead of n − 1 every error is 18 ln(38/37) = {} higher.",
            run.repeats(RESAMPLES),
            fixed(18.0 * (38.0_f64 / 37.0).ln(), 2)
        )],
    })
}

fn chart(of_paper: &[f64], estimates: &[Estimate], repeats: usize) -> Chart {
    let at = |errors: &mut dyn Iterator<Item = f64>| {
        errors.enumerate().map(|(k, e)| (k as f64 + 1.0, e)).collect::<Vec<_>>()
    };
    let shown = &estimates[..FULL];
    let names: Vec<&str> = candidates()[..FULL].iter().map(|c| c.name).collect();
    let best = (0..FULL).min_by(|&a, &b| shown[a].all.total_cmp(&shown[b].all)).expect("five of them");
    let series = vec![
        Series::new("paper", Look::Bars, at(&mut of_paper[..FULL].iter().copied())).color(6),
        Series::new("ours", Look::Bars, at(&mut shown.iter().map(|e| e.all)))
            .errors(shown.iter().map(Estimate::sd).collect()),
    ];
    let x = Axis::new("").named(&names);
    let y = Axis::new("prediction error, −2 ln p without the 2π term").between(0.0, 22.0);
    Chart {
        title: format!("Tobamovirus rows are predicted best by {}", names[best]),
        subtitle: format!("38 rows, 18 standardized columns; .632 bootstrap, {repeats} resamples"),
        note: format!(
            "Lines on bars: one standard deviation of an estimate from {PART} resamples. Not drawn: the \
             full covariance, {} in the paper and {} here.",
            fixed(of_paper[FULL], 1),
            fixed(estimates[FULL].all, 0)
        ),
        across: 1,
        panels: vec![Panel::curves("", Curves { x, y, series })],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::shared;

    #[test]
    fn the_papers_errors_come_out_in_its_order() {
        let Some(data) = shared(&["tobamovirus"]) else { return };
        let table = standardized(&data.table(TABLE, &ReadOptions::default()).unwrap()).unwrap();
        let ours = estimates(&Run { most_repeats: Some(500), ..Run::new(&data) }, &table).unwrap();
        for (candidate, ours) in candidates()[..FULL].iter().zip(&ours) {
            let paper: f64 = candidate.error.parse().unwrap();
            assert!((ours.all - paper).abs() < 0.7, "{}: {} and {paper}", candidate.name, ours.all);
        }
        assert!(ours[FULL].all > 500.0, "{}", ours[FULL].all);
        let best = (0..6).min_by(|&a, &b| ours[a].all.total_cmp(&ours[b].all));
        assert_eq!(best, Some(3), "two components");
    }
}
