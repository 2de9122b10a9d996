//! Tipping & Bishop (1999): Mixtures of probabilistic principal component analyzers, Neural Computation
//! 11, 443–482. The paper itself was not at hand: what it used is known from the data's provenance.

pub(crate) mod classes;
pub(crate) mod oil_flow;

use crate::{Data, Error};
use covary::io::ReadOptions;
use covary::{Dataset, Matrix};

/// Measurements of a row of `oil_flow`; the flow stands behind them.
const MEASUREMENTS: usize = 12;
/// How oil, water and gas lie in the pipe, in the order of their codes 1, 2, 3. The table does not name
/// them; the share of the measurements' variance that is linear in the fractions of oil and water, 97 %,
/// 84 % and 52 %, does.
pub(crate) const FLOWS: [&str; 3] = ["homogeneous", "annular", "stratified"];

/// Rows whose classes are known.
pub(crate) struct Labeled {
    pub(crate) rows: Dataset,
    /// The place of each row's class.
    pub(crate) of: Vec<usize>,
}

impl Labeled {
    /// A table of `oil_flow`: its measurements and flows.
    pub(crate) fn oil(data: &Data, file: &str) -> Result<Self, Error> {
        let path = format!("oil_flow/{file}");
        let all = data.table(&path, &ReadOptions::default())?;
        let flow = |i: usize| {
            let flow = all.row(i).get(MEASUREMENTS).map_or(0, |v| *v as usize);
            let why = || format!("row {} has no flow from 1 to {} in column 13", i + 1, FLOWS.len());
            let known = (1..=FLOWS.len()).contains(&flow).then(|| flow - 1);
            known.ok_or_else(|| Error::Read { path: path.clone(), why: why() })
        };
        let of = (0..all.n_rows()).map(flow).collect::<Result<_, _>>()?;
        let rows = Matrix::from_fn(all.n_rows(), MEASUREMENTS, |i, j| all.row(i)[j]);
        Ok(Self { rows: Dataset::new(rows)?, of })
    }

    /// The share of these labels that are right, in percent.
    fn right(&self, labels: &[usize]) -> f64 {
        let right = labels.iter().zip(&self.of).filter(|(a, b)| a == b).count();
        100.0 * right as f64 / self.of.len() as f64
    }

    /// What classifiers are taught by.
    fn labels(&self) -> Vec<Option<usize>> {
        self.of.iter().copied().map(Some).collect()
    }
}
