//! Cells far from what the rest of their rows say [M 4.11].

use super::correction::LeftOut;
use super::{MANY_ROWS, too_large};
use crate::data::WildCell;
use crate::infer::FullCovariance;
use crate::linalg::positive_inverse;
use crate::select::{ChoiceRule, PilotSearch, Purpose};
use crate::{Dataset, Error, Estimator, LinearGaussian, Matrix, Method, Spec};
use std::fmt;
use std::ops::Range;

/// Cells are brought this near, in robust standard deviations from the median, before the fit that judges them: none of them
/// can decide it.
const NEAR: f64 = 4.0;
/// Few, since what they add to residuals depends on the gaps of a row and would look like heavy tails.
const PSEUDO_ROWS: f64 = 1.0;
/// The median of |z| of a standard normal: median distances over it are standard deviations.
const MEDIAN_OF_NORMAL: f64 = 0.674_489_750_196_081_7;
/// Fewest rows, and fewest cells, to judge by.
const FEWEST_ROWS: usize = 20;
const FEWEST_CELLS: usize = 100;
/// Share of the cells whose residuals tell how heavy tails are; from this many cells on a tenth of it.
const TAIL: f64 = 0.01;
const MANY_CELLS: usize = 100_000;
/// Share of the cells that may be wild, as far as tails are concerned.
const MOST_WILD: f64 = 0.1;
/// Good cells expected beyond the limit, in a table whose residuals have the tails that they show.
const FALSE_ALARMS: f64 = 0.01;
/// No cell is called wild that is nearer than this.
const NEAREST: f64 = 6.0;
/// Multiplications (rows · columns²) beyond which cells are not judged.
const MOST_WORK: f64 = 3e8;
/// From here on the fit that judges ends earlier, by this many nats for each entry of the covariance, in half the time. Of
/// 180 cells moved by 4, 6 and 12 standard deviations in three such tables it names 106 rather than 108, and like the
/// longer fit no good one.
const MUCH_WORK: f64 = 1e8;
const ROUGHLY: f64 = 1e-2;
/// Rows judged at a time.
const CHUNK: usize = 2048;

/// A cell far from what the rest of its row says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FarCell {
    /// Row, from 0.
    pub row: usize,
    /// Column, from 0.
    pub column: usize,
    /// Its value.
    pub value: f64,
    /// What the other cells of the row lead to expect, by a fit that no cell decides.
    pub expected: f64,
    /// The standard deviation of such residuals in its column.
    pub sd: f64,
}

impl FarCell {
    /// How far the cell is from what is expected, in standard deviations.
    pub fn distance(&self) -> f64 {
        (self.value - self.expected).abs() / self.sd
    }
}

/// Cells far from what the rest of their rows say, the farthest first.
///
/// Each is judged by its residual given the other observed cells of its row, the exact leave-one-out one [M 4.3.1], under a
/// Gaussian fitted to the table with all cells brought within four robust standard deviations of the median, of as many components as
/// predict best where a covariance takes too long. How far is
/// too far goes by the tail of all residuals u, each in standard deviations of its column that are at least the robust ones of its residuals, as if it were a Pareto tail:
///
/// ```text
/// limit = max(6, q(p) · (q(p)/q(10p))^log₁₀(100 p N))        q(p): exceeded by a share p of the N cells
/// ```
///
/// so that a hundredth of a good cell is expected beyond it, fewer if tails are lighter. p is 0.01, from 10⁵ cells on 0.001. The N cells are
/// those without the most, up to a tenth, that lie beyond the limit which the others set: many wild cells do not hide each other.
/// Tables of fewer than 20 rows or 100 cells are not judged, nor are those with rows · columns² beyond 3·10⁸: for these
/// [`Ledger::wild`](crate::data::Ledger::wild) has what the columns alone tell.
///
/// ```
/// use covary::{data::{simulate, Shape}, filling::wild_cells, Dataset};
/// let (whole, _) = simulate::ppca(Shape { rows: 100, columns: 5, n_components: 2 }, /* seed */ 1);
/// assert_eq!(wild_cells(&whole), []);
/// let mut values = whole.values().clone();
/// values[(7, 2)] = 1e6;
/// let found = wild_cells(&Dataset::new(values)?);
/// assert_eq!((found.len(), found[0].row, found[0].column), (1, 7, 2));
/// # Ok::<(), covary::Error>(())
/// ```
pub fn wild_cells(data: &Dataset) -> Vec<FarCell> {
    // A table that cannot be fitted is not judged: whoever fits it says why.
    far_cells(data).unwrap_or_default()
}

fn far_cells(data: &Dataset) -> Result<Vec<FarCell>, Error> {
    let (n, d) = (data.n_rows(), data.n_columns());
    let varying: Vec<usize> = (0..d).filter(|&j| data.constant(j).is_none() && seen(data, j)).collect();
    if n < FEWEST_ROWS || varying.len() < 2 || work(n, varying.len()) > MOST_WORK {
        return Ok(Vec::new());
    }
    let Some(judge) = Judge::new(data.of_columns(&varying)?)? else { return Ok(Vec::new()) };
    let mut cells = judge.far();
    for cell in &mut cells {
        cell.column = varying[cell.column];
    }
    Ok(cells)
}

/// Multiplications of one step of the fit.
fn work(n_rows: usize, n_columns: usize) -> f64 {
    n_rows as f64 * (n_columns as f64).powi(2)
}

/// A fit that no cell decides, and the table it judges.
struct Judge {
    data: Dataset,
    /// The same with every cell brought near.
    near: Dataset,
    mean: Vec<f64>,
    scale: Vec<f64>,
    covariance: Matrix,
    precision: Matrix,
}

impl Judge {
    /// `None` where the fit has no covariance to judge by.
    fn new(data: Dataset) -> Result<Option<Self>, Error> {
        let near = brought_near(&data)?;
        let many = data.n_rows() > MANY_ROWS;
        let sample = if many { near.of_rows(&near.spread_rows(MANY_ROWS))? } else { near.clone() };
        if sample.observed_variances().iter().any(|v| *v <= 0.0) {
            return Ok(None);
        }
        let model = if too_large(&sample) { by_components(&sample)? } else { by_covariance(&sample)? };
        let scale: Vec<f64> = sample.observed_variances().iter().map(|v| v.sqrt()).collect();
        let mut covariance = model.covariance();
        covariance.scale_both(&scale.iter().map(|s| 1.0 / s).collect::<Vec<_>>());
        let mean = model.mean().to_vec();
        Ok(positive_inverse(&covariance).map(|(precision, _)| Self {
            data,
            near,
            mean,
            scale,
            covariance,
            precision,
        }))
    }

    /// The observed cells of these rows, each by the rest of its row as it was brought near, without `hidden` columns.
    fn cells_of(&self, rows: Range<usize>, hidden: &[usize]) -> Vec<FarCell> {
        let d = self.scale.len();
        let unit = |i: usize, j: usize| {
            let value = self.near.row(rows.start + i)[j];
            if hidden.contains(&j) { f64::NAN } else { (value - self.mean[j]) / self.scale[j] }
        };
        let all: Vec<usize> = (0..d).collect();
        let table = Matrix::from_fn(rows.len(), d, unit);
        let left = LeftOut::residuals((&self.covariance, &self.precision), &table, &all);
        let mut cells = Vec::new();
        for (i, row) in rows.enumerate() {
            for j in (0..d).filter(|&j| !table[(i, j)].is_nan()) {
                let (residual, sd) = left.residual_of(i, j);
                let (near, scale) = (self.near.row(row)[j], self.scale[j]);
                let (value, expected) = (self.data.row(row)[j], near - residual * scale);
                cells.push(FarCell { row, column: j, value, expected, sd: sd * scale });
            }
        }
        cells
    }

    /// The cells beyond the limit, the farthest first.
    fn far(&self) -> Vec<FarCell> {
        let n_rows = self.data.n_rows();
        let starts = (0..n_rows).step_by(CHUNK);
        let mut cells: Vec<FarCell> =
            starts.flat_map(|start| self.cells_of(start..n_rows.min(start + CHUNK), &[])).collect();
        if cells.len() < FEWEST_CELLS {
            return Vec::new();
        }
        let mut by_column: Vec<Vec<f64>> = vec![Vec::new(); self.scale.len()];
        for cell in &cells {
            by_column[cell.column].push(cell.distance());
        }
        let units: Vec<f64> =
            by_column.iter_mut().map(|z| (quantile(z, 0.5) / MEDIAN_OF_NORMAL).max(1.0)).collect();
        let in_units = |cells: &mut Vec<FarCell>| cells.iter_mut().for_each(|c| c.sd *= units[c.column]);
        in_units(&mut cells);
        let limit = limit(cells.iter().map(FarCell::distance).collect());
        let beyond = |cells: &mut Vec<FarCell>| {
            cells.retain(|cell| cell.distance() > limit);
            cells.sort_by(|a, b| b.distance().total_cmp(&a.distance()).then(a.row.cmp(&b.row)));
        };
        beyond(&mut cells);
        // One wild cell makes others of its row look wild: without the farthest they are judged again.
        let mut out: Vec<FarCell> = Vec::new();
        for first in cells {
            if out.iter().any(|cell| cell.row == first.row) {
                continue;
            }
            let (mut next, mut hidden) = (Some(first), Vec::new());
            while let Some(cell) = next {
                out.push(cell);
                hidden.push(cell.column);
                let mut rest = self.cells_of(cell.row..cell.row + 1, &hidden);
                in_units(&mut rest);
                beyond(&mut rest);
                next = rest.first().copied();
            }
        }
        out.sort_by(|a, b| b.distance().total_cmp(&a.distance()).then(a.row.cmp(&b.row)));
        out
    }
}

/// What distances of cells are wild: beyond what the tail of the others reaches. The others are those without the most cells that
/// lie beyond the limit that the others set, since wild cells that are counted among the tail would hide each other.
fn limit(mut u: Vec<f64>) -> f64 {
    let n = u.len();
    let p = if n < MANY_CELLS { TAIL } else { TAIL / 10.0 };
    let most = (MOST_WILD * n as f64) as usize;
    // What is asked of the others lies among the largest of all.
    let below = n - most - (10.0 * p * n as f64) as usize - 2;
    u.select_nth_unstable_by(below, f64::total_cmp);
    u[below..].sort_unstable_by(f64::total_cmp);
    let beside = |k: usize| {
        let last = (n - k - 1) as f64;
        let beyond = |p: f64| u[((1.0 - p) * last).round() as usize];
        let (far, near) = (beyond(p), beyond(10.0 * p));
        (far * (far / near).powf((p * last / FALSE_ALARMS).log10())).max(NEAREST)
    };
    beside((1..=most).rev().find(|&k| u[n - k] > beside(k)).unwrap_or(0))
}

/// A Gaussian of any covariance.
fn by_covariance(data: &Dataset) -> Result<LinearGaussian, Error> {
    let spec = Spec { standardize: true, ..Spec::ppca(data.n_columns() - 1) };
    let default = FullCovariance::default();
    let much = work(data.n_rows(), data.n_columns()) > MUCH_WORK;
    let tolerance = if much { ROUGHLY } else { default.tolerance };
    Ok(FullCovariance { pseudo_rows: PSEUDO_ROWS, tolerance, ..default }.fit(data, &spec)?.model)
}

/// What such a table is filled by, too: the components that predict its cells best.
fn by_components(data: &Dataset) -> Result<LinearGaussian, Error> {
    let spec = Spec { standardize: true, ..Spec::ppca(0) };
    let search = PilotSearch { purpose: Purpose::Filling, ..PilotSearch::default() };
    let n_components = search.run(data, &spec)?.map_or(0, |found| found.chosen(ChoiceRule::Maximum));
    let spec = Spec { n_components, ..spec };
    Ok(Method::recommended(data, &spec).fit(data, &spec)?.model)
}

/// Whether a column has cells to judge by.
fn seen(data: &Dataset, j: usize) -> bool {
    data.n_observed_by_column()[j] > 1
}

/// The table with every cell within four robust standard deviations of the median of its column. Cells equal to the median,
/// such as zeros of a column that is mostly zero, say nothing of how far others lie.
fn brought_near(data: &Dataset) -> Result<Dataset, Error> {
    let mut values = data.values().clone();
    for j in 0..data.n_columns() {
        let mut cells: Vec<f64> = data.values().column(j).into_iter().filter(|v| !v.is_nan()).collect();
        let center = quantile(&mut cells, 0.5);
        let mut distances: Vec<f64> = cells.iter().map(|v| (v - center).abs()).filter(|v| *v > 0.0).collect();
        let reach = NEAR * quantile(&mut distances, 0.5) / MEDIAN_OF_NORMAL;
        for i in 0..data.n_rows() {
            values[(i, j)] = values[(i, j)].clamp(center - reach, center + reach);
        }
    }
    Dataset::new(values)
}

/// The value that a share `p` of these is at most.
fn quantile(values: &mut [f64], p: f64) -> f64 {
    let at = (p * (values.len() - 1) as f64).round() as usize;
    *values.select_nth_unstable_by(at, f64::total_cmp).1
}

/// The farthest cells in words, by the names of their columns: place, value and what was expected. Those that the table's
/// [ledger](crate::data::Ledger::wild) has named are left out.
pub struct FarCellWords<'a> {
    /// The cells.
    pub cells: &'a [FarCell],
    /// Names of the columns.
    pub names: &'a [String],
    /// Cells that were spoken of.
    pub known: &'a [WildCell],
}

impl fmt::Display for FarCellWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 3;
        let known = |cell: &&FarCell| self.known.iter().all(|k| (k.row, k.column) != (cell.row, cell.column));
        let told: Vec<&FarCell> = self.cells.iter().filter(known).collect();
        for (k, cell) in told.iter().take(SHOWN).enumerate() {
            let (between, name) = (if k > 0 { "; " } else { "" }, &self.names[cell.column]);
            let FarCell { row, value, expected, sd, .. } = cell;
            write!(
                f,
                "{between}row {} of `{name}` holds {value}, expected {expected:.4} ± {sd:.2}",
                row + 1
            )?;
        }
        match told.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}
