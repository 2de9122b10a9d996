//! What a Gaussian leaves over, regressed on smooth functions of the rest of the row [M 4.3].

use super::ridge::{Regression, regress};
use crate::linalg::elementary::exp_of_negative;
use crate::linalg::{Cholesky, dot, positive_inverse};
use crate::model::FilledCell;
use crate::parallel;
use crate::{Dataset, Error, LinearGaussian, Matrix};
use rand::SeedableRng;
use rand::seq::index;
use rand_chacha::ChaCha8Rng;

/// Rows that teach the correction, at most: at 20 000 rows all of them, instead of 4000, take 5 times as long for an error
/// 1.5 % smaller.
const MOST_ROWS: usize = 4000;
/// Columns corrected, at most: those with most gaps.
const MOST_COLUMNS: usize = 50;
/// Fewest observed cells of a column that is corrected.
const FEWEST_CELLS: usize = 20;
/// Rows whose distances give the scale of the kernel.
const FOR_DISTANCE: usize = 300;
/// Squared widths tried, in median squared distances.
const WIDTHS: [f64; 3] = [0.15, 0.5, 1.5];
/// Added to the kernel of each landmark with itself, which is 1, for each of them.
const RIDGE: f64 = 1e-6;
/// Cells corrected at a time.
const CHUNK: usize = 2048;
/// Landmarks, at most, and the work (columns · rows · landmarks²) up to which there are that many; half of them beyond.
const LANDMARKS: usize = 200;
const SMALL_WORK: f64 = 2e8;
/// The screen: columns, rows, widths, and the share of variance that must be explained to go on [M 4.7].
const SCREEN_COLUMNS: usize = 12;
const SCREEN_ROWS: usize = 1000;
const SCREEN_GAIN: f64 = 0.002;

/// A nonlinear correction of cells that a Gaussian filled.
#[derive(Debug, Clone, PartialEq)]
pub struct Correction {
    /// Rows are moved by this and divided by `scale` first.
    pub(crate) center: Vec<f64>,
    pub(crate) scale: Vec<f64>,
    /// One for each column that is corrected, ascending.
    pub(crate) columns: Vec<ColumnCorrection>,
}

/// The correction of one column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ColumnCorrection {
    pub(crate) column: usize,
    /// Rows that others are compared with, zero in the place of the column.
    pub(crate) landmarks: Matrix,
    /// Which of the widths was taken, and the denominator of squared distances that it gives.
    pub(crate) width: usize,
    pub(crate) denominator: f64,
    /// From the kernel at the landmarks to rotated features.
    pub(crate) projection: Matrix,
    /// Without axes, which are in the projection.
    pub(crate) regression: Regression,
}

/// Rows as the correction learns from them: what each observed cell of some columns is, given the others of its row.
pub(crate) struct LeftOut {
    columns: Vec<usize>,
    /// Filled rows, in standard deviations from the mean.
    filled: Matrix,
    /// Of each row and chosen column: the residual of the cell given the others of the row and its standard deviation; NaN
    /// where there is no cell.
    residual: Matrix,
    sd: Matrix,
    /// Of each row: its gaps, and how they answer to each chosen column (gaps × columns); none where nobody asks.
    gaps: Vec<(Vec<usize>, Matrix)>,
}

/// The same of one row.
struct LeftOutRow {
    filled: Vec<f64>,
    residual: Vec<f64>,
    sd: Vec<f64>,
    gaps: Vec<usize>,
    answer: Matrix,
}

fn block(matrix: &Matrix, rows: &[usize], columns: &[usize]) -> Matrix {
    Matrix::from_fn(rows.len(), columns.len(), |a, b| matrix[(rows[a], columns[b])])
}

fn by_gaps(precision: &Matrix, row: &[f64], gaps: Vec<usize>, columns: &[usize]) -> LeftOutRow {
    let mut filled: Vec<f64> = row.iter().map(|v| if v.is_nan() { 0.0 } else { *v }).collect();
    let (inverse, _) =
        positive_inverse(&block(precision, &gaps, &gaps)).expect("a block of a positive matrix");
    let pull: Vec<f64> = gaps.iter().map(|&g| dot(precision.row(g), &filled)).collect();
    gaps.iter().enumerate().for_each(|(a, &g)| filled[g] = -dot(inverse.row(a), &pull));
    let of_columns = block(precision, &gaps, columns);
    let answer = inverse.dot(&of_columns);
    let mut residual = vec![f64::NAN; columns.len()];
    let mut sd = residual.clone();
    for (c, &j) in columns.iter().enumerate().filter(|(_, j)| !row[**j].is_nan()) {
        let explained: f64 = (0..gaps.len()).map(|a| of_columns[(a, c)] * answer[(a, c)]).sum();
        let lambda = precision[(j, j)] - explained;
        residual[c] = dot(precision.row(j), &filled) / lambda;
        sd[c] = 1.0 / lambda.sqrt();
    }
    LeftOutRow { filled, residual, sd, gaps, answer }
}

fn by_observed(
    covariance: &Matrix,
    row: &[f64],
    (gaps, observed): (Vec<usize>, &[usize]),
    columns: &[usize],
    answers: bool,
) -> LeftOutRow {
    let mut filled = row.to_vec();
    let (inverse, _) =
        positive_inverse(&block(covariance, observed, observed)).expect("a block of a positive matrix");
    let y: Vec<f64> = observed.iter().map(|&j| row[j]).collect();
    let eta: Vec<f64> = inverse.rows().map(|row| dot(row, &y)).collect();
    let across = block(covariance, &gaps, observed);
    gaps.iter().enumerate().for_each(|(a, &g)| filled[g] = dot(across.row(a), &eta));
    let (mut residual, mut sd) = (vec![f64::NAN; columns.len()], vec![f64::NAN; columns.len()]);
    // Columns that are gaps answer to nothing.
    let mut of_columns = Matrix::zeros(observed.len(), if answers { columns.len() } else { 0 });
    for (c, j) in columns.iter().enumerate() {
        if let Ok(k) = observed.binary_search(j) {
            residual[c] = eta[k] / inverse[(k, k)];
            sd[c] = 1.0 / inverse[(k, k)].sqrt();
            if answers {
                (0..observed.len()).for_each(|a| of_columns[(a, c)] = -inverse[(a, k)]);
            }
        }
    }
    LeftOutRow { filled, residual, sd, answer: across.dot(&of_columns), gaps }
}

impl LeftOut {
    /// Of the cells of `columns` in rows that are in standard deviations from the mean, by the covariance Σ of the columns and
    /// its inverse P [M 4.3.1]: from the block of a row's gaps M, or of its observed cells O where those are fewer.
    ///
    /// ```text
    /// A = P_MM⁻¹ P_M: = −Σ_MO Q        y_M = −A_M,O y_O        Q = Σ_OO⁻¹
    /// r = (P y)ⱼ/Λⱼ        s = Λⱼ^(−½)        Λⱼ = Pⱼⱼ − P_jM A_Mj = Qⱼⱼ
    /// ```
    pub(crate) fn new(moments: (&Matrix, &Matrix), rows: &Matrix, columns: &[usize]) -> Self {
        Self::found(moments, rows, columns, true)
    }

    /// The same without how gaps answer, which of many columns takes most of the time and nearly all of the memory.
    pub(super) fn residuals(moments: (&Matrix, &Matrix), rows: &Matrix, columns: &[usize]) -> Self {
        Self::found(moments, rows, columns, false)
    }

    fn found(
        (covariance, precision): (&Matrix, &Matrix),
        rows: &Matrix,
        columns: &[usize],
        answers: bool,
    ) -> Self {
        let found = parallel::map(rows.n_rows(), |i| {
            let row = rows.row(i);
            let (gaps, observed): (Vec<usize>, Vec<usize>) = (0..row.len()).partition(|&j| row[j].is_nan());
            let mut found = if gaps.len() <= observed.len() {
                by_gaps(precision, row, gaps, columns)
            } else {
                by_observed(covariance, row, (gaps, &observed), columns, answers)
            };
            if !answers {
                found.answer = Matrix::zeros(0, 0);
            }
            found
        });
        let table = |get: &dyn Fn(&LeftOutRow) -> &Vec<f64>| {
            Matrix::from_rows(&found.iter().map(get).collect::<Vec<_>>())
        };
        let (filled, residual, sd) = (table(&|r| &r.filled), table(&|r| &r.residual), table(&|r| &r.sd));
        let gaps = found.into_iter().map(|r| (r.gaps, r.answer)).collect();
        Self { columns: columns.to_vec(), filled, residual, sd, gaps }
    }

    /// The residual of a row's cell of the `c`th chosen column given the others of the row, and its standard deviation.
    pub(super) fn residual_of(&self, row: usize, c: usize) -> (f64, f64) {
        (self.residual[(row, c)], self.sd[(row, c)])
    }

    /// The rows that have a cell of the `c`th chosen column, among the first `most`.
    fn rows_of(&self, c: usize, most: usize) -> Vec<usize> {
        (0..self.filled.n_rows().min(most)).filter(|&i| !self.residual[(i, c)].is_nan()).collect()
    }

    /// Those rows as if that cell were a gap too, zero in its place.
    fn without(&self, c: usize, rows: &[usize]) -> Matrix {
        let j = self.columns[c];
        let mut out = Matrix::zeros(rows.len(), self.filled.n_columns());
        for (k, &i) in rows.iter().enumerate() {
            let row = out.row_mut(k);
            row.copy_from_slice(self.filled.row(i));
            let (gaps, answer) = &self.gaps[i];
            for (a, &g) in gaps.iter().enumerate() {
                row[g] += answer[(a, c)] * self.residual[(i, c)];
            }
            row[j] = 0.0;
        }
        out
    }

    /// The regression of the residuals of the `c`th column, by the best of `widths`; `None` for too few cells or rows that
    /// are all alike.
    fn regress(
        &self,
        c: usize,
        (most_rows, landmarks): (usize, usize),
        widths: &[usize],
        seed: u64,
    ) -> Result<Option<ColumnCorrection>, Error> {
        let column = self.columns[c];
        let rows = self.rows_of(c, most_rows);
        if rows.len() < FEWEST_CELLS {
            return Ok(None);
        }
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(column as u64);
        let x = self.without(c, &rows);
        let picked = |matrix: &Matrix, chosen: &[usize]| {
            Matrix::from_fn(chosen.len(), matrix.n_columns(), |k, j| matrix[(chosen[k], j)])
        };
        let some = index::sample(&mut rng, rows.len(), FOR_DISTANCE.min(rows.len())).into_vec();
        let some = picked(&x, &some);
        let unit = median_distance(&squared_distances(&some, &some));
        if unit <= 0.0 {
            return Ok(None);
        }
        let m = landmarks.min(rows.len() / 2);
        let landmarks = picked(&x, &index::sample(&mut rng, rows.len(), m).into_vec());
        let (between, of_rows) =
            (squared_distances(&landmarks, &landmarks), squared_distances(&x, &landmarks));
        let residuals: Vec<f64> = rows.iter().map(|&i| self.residual[(i, c)]).collect();
        let sds: Vec<f64> = rows.iter().map(|&i| self.sd[(i, c)]).collect();
        let mut best: Option<ColumnCorrection> = None;
        for &width in widths {
            let denominator = 2.0 * WIDTHS[width] * unit;
            let Some(to_features) = whitening(kernel(&between, denominator)) else { continue };
            let features = kernel(&of_rows, denominator).dot(&to_features);
            let regression = regress(&features, &residuals, &sds)?;
            if best.as_ref().is_none_or(|best| regression.loo < best.regression.loo) {
                best = Some(ColumnCorrection {
                    column,
                    landmarks: landmarks.clone(),
                    width,
                    denominator,
                    projection: to_features.dot(&regression.axes),
                    regression: Regression { axes: Matrix::zeros(0, 0), ..regression },
                });
            }
        }
        Ok(best)
    }
}

/// `|xᵢ − lⱼ|²`
fn squared_distances(x: &Matrix, l: &Matrix) -> Matrix {
    let norm = |row: &[f64]| dot(row, row);
    let of_l: Vec<f64> = l.rows().map(norm).collect();
    let mut out = x.dot_t(l);
    for i in 0..x.n_rows() {
        let own = norm(x.row(i));
        out.row_mut(i).iter_mut().zip(&of_l).for_each(|(v, other)| *v = (own + other - 2.0 * *v).max(0.0));
    }
    out
}

fn median_distance(distances: &Matrix) -> f64 {
    let n = distances.n_rows();
    let mut all: Vec<f64> = (0..n).flat_map(|i| distances.row(i)[..i].to_vec()).collect();
    all.sort_by(f64::total_cmp);
    0.5 * (all[(all.len() - 1) / 2] + all[all.len() / 2])
}

fn kernel(distances: &Matrix, denominator: f64) -> Matrix {
    let mut out = distances.clone();
    out.as_mut_slice().iter_mut().for_each(|v| *v = exp_of_negative(-*v / denominator));
    out
}

/// `L⁻ᵀ` of the kernel `L Lᵀ` between landmarks, so that features have it as their inner products. A ridge takes the place
/// of leaving out small eigenvalues: an eigendecomposition would take as long as all the rest.
fn whitening(mut kernel: Matrix) -> Option<Matrix> {
    let m = kernel.n_rows();
    (0..m).for_each(|i| kernel[(i, i)] += RIDGE * m as f64);
    Some(Cholesky::new(&kernel)?.lower_inverse().transpose())
}

/// Where the widths of the kernel come from.
#[derive(Clone, Copy)]
pub(crate) enum Widths<'a> {
    /// The best for each column.
    Best,
    /// Those of another correction, where it has the column.
    Of(&'a Correction),
}

impl Correction {
    /// Learns the correction of `columns`, those with most gaps first, from the observed cells of `data`; `None` if they
    /// leave nothing to explain.
    ///
    /// # Errors
    /// If a decomposition fails.
    pub(crate) fn learn(
        model: &LinearGaussian,
        data: &Dataset,
        columns: &[usize],
        widths: Widths<'_>,
        seed: u64,
    ) -> Result<Option<Self>, Error> {
        let scale: Vec<f64> = data.observed_variances().iter().map(|v| v.sqrt()).collect();
        let center = model.mean().to_vec();
        let inverse: Vec<f64> = scale.iter().map(|s| 1.0 / s).collect();
        let mut covariance = model.covariance();
        covariance.scale_rows(&inverse);
        covariance.scale_columns(&inverse);
        let Some((precision, _)) = positive_inverse(&covariance) else { return Ok(None) };
        let columns = &columns[..columns.len().min(MOST_COLUMNS)];
        let sample = data.spread_rows(MOST_ROWS);
        let standard = |i: usize, j: usize| (data.row(sample[i])[j] - center[j]) * inverse[j];
        let rows = Matrix::from_fn(sample.len(), data.n_columns(), standard);
        let left_out = LeftOut::new((&covariance, &precision), &rows, columns);
        let n = rows.n_rows();
        let work = (columns.len() * n) as f64 * (LANDMARKS * LANDMARKS) as f64;
        let landmarks = if work > SMALL_WORK { LANDMARKS / 2 } else { LANDMARKS };
        if matches!(widths, Widths::Best) && !left_out.promises(seed)? {
            return Ok(None);
        }
        let all: Vec<usize> = (0..WIDTHS.len()).collect();
        let found = parallel::try_map(columns.len(), |c| {
            let own = match widths {
                Widths::Best => all.clone(),
                Widths::Of(other) => {
                    other.columns.iter().filter(|known| known.column == columns[c]).map(|k| k.width).collect()
                }
            };
            left_out.regress(c, (n, landmarks), &own, seed)
        })?;
        let mut columns: Vec<ColumnCorrection> =
            found.into_iter().flatten().filter(|column| column.regression.is_useful()).collect();
        columns.sort_by_key(|column| column.column);
        Ok((!columns.is_empty()).then_some(Self { center, scale, columns }))
    }

    /// The columns that are corrected, ascending.
    pub fn columns(&self) -> impl Iterator<Item = usize> {
        self.columns.iter().map(|column| column.column)
    }

    /// Corrects cells that the Gaussian filled, all gaps of `data`.
    pub(crate) fn correct(&self, data: &Dataset, cells: &mut [FilledCell]) {
        let mut filled = data.values().clone();
        for cell in &*cells {
            filled[(cell.row, cell.column)] = cell.mean;
        }
        let of_column: Vec<Vec<usize>> = {
            let mut of_column = vec![Vec::new(); data.n_columns()];
            // A row of only gaps has nothing to be corrected by.
            let seen = |cell: &FilledCell| data.row(cell.row).iter().any(|v| !v.is_nan());
            for (k, cell) in cells.iter().enumerate().filter(|(_, cell)| seen(cell)) {
                of_column[cell.column].push(k);
            }
            of_column
        };
        let seen = &*cells;
        let corrected = parallel::map(self.columns.len(), |c| {
            let column = &self.columns[c];
            let mut out = Vec::with_capacity(of_column[column.column].len());
            for chunk in of_column[column.column].chunks(CHUNK) {
                let x = Matrix::from_fn(chunk.len(), data.n_columns(), |k, j| {
                    let value = (filled[(seen[chunk[k]].row, j)] - self.center[j]) / self.scale[j];
                    if j == column.column { 0.0 } else { value }
                });
                let distances = squared_distances(&x, &column.landmarks);
                let features = kernel(&distances, column.denominator).dot(&column.projection);
                for (&k, features) in chunk.iter().zip(features.rows()) {
                    let scale = self.scale[column.column];
                    let (shift, sd) = column.regression.correct(features, seen[k].sd / scale);
                    out.push((k, seen[k].mean + shift * scale, sd * scale));
                }
            }
            out
        });
        for (k, mean, sd) in corrected.into_iter().flatten() {
            (cells[k].mean, cells[k].sd) = (mean, sd);
        }
    }
}

impl LeftOut {
    /// Whether a few columns and rows say that there is something to explain [M 4.7].
    fn promises(&self, seed: u64) -> Result<bool, Error> {
        let n = self.columns.len().min(SCREEN_COLUMNS);
        let found = parallel::try_map(n, |c| self.regress(c, (SCREEN_ROWS, LANDMARKS / 2), &[1, 2], seed))?;
        let share = |column: &Option<ColumnCorrection>| column.as_ref().map_or(1.0, |c| c.regression.share);
        let gain = found.iter().map(|column| 1.0 - share(column)).sum::<f64>() / n as f64;
        Ok(gain > SCREEN_GAIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn rows(value: &Value) -> Matrix {
        let number = |v: &Value| v.as_f64().unwrap_or(f64::NAN);
        let row = |row: &Value| row.as_array().unwrap().iter().map(number).collect::<Vec<_>>();
        Matrix::from_rows(&value.as_array().unwrap().iter().map(row).collect::<Vec<_>>())
    }

    /// The golden case, by direct conditioning.
    #[test]
    fn cells_are_left_out_exactly() {
        let text = include_str!("../../tests/golden/part3/leave_one_cell_out.json");
        let case: Value = serde_json::from_str(text).unwrap();
        let (input, expected) = (&case["input"], &case["expected"]);
        let mean: Vec<f64> = input["mean"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
        let covariance = rows(&input["covariance"]);
        let (precision, _) = positive_inverse(&covariance).unwrap();
        let table = rows(&input["rows"]);
        let centered = Matrix::from_fn(table.n_rows(), 4, |i, j| table[(i, j)] - mean[j]);
        let found = LeftOut::new((&covariance, &precision), &centered, &[0, 1, 2, 3]);
        let close = |what: &str, got: f64, want: f64| {
            assert!(
                (got - want).abs() < 1e-7 || (got.is_nan() && want.is_nan()),
                "{what}: {got}, not {want}"
            );
        };
        let (filled, residual, sd) =
            (rows(&expected["filled"]), rows(&expected["residual"]), rows(&expected["residual_sd"]));
        for (i, j) in (0..table.n_rows()).flat_map(|i| (0..4).map(move |j| (i, j))) {
            close("filled", found.filled[(i, j)] + mean[j], filled[(i, j)]);
            close("residual", found.residual[(i, j)], residual[(i, j)]);
            close("sd", found.sd[(i, j)], sd[(i, j)]);
        }
        // From gaps and from observed cells alike.
        for i in 0..table.n_rows() {
            let row = centered.row(i);
            let (gaps, observed): (Vec<usize>, Vec<usize>) = (0..4).partition(|&j| row[j].is_nan());
            let one = by_gaps(&precision, row, gaps.clone(), &[0, 1, 2, 3]);
            let other = by_observed(&covariance, row, (gaps, &observed), &[0, 1, 2, 3], true);
            for j in 0..4 {
                close("filled", one.filled[j], other.filled[j]);
                close("residual", one.residual[j], other.residual[j]);
                close("sd", one.sd[j], other.sd[j]);
                for a in 0..one.gaps.len() {
                    let want = if row[j].is_nan() { 0.0 } else { one.answer[(a, j)] };
                    close("answer", other.answer[(a, j)], want);
                }
            }
        }
        let column = input["column"].as_u64().unwrap() as usize;
        let design = rows(&expected["design"]);
        let without = found.without(column, &found.rows_of(column, usize::MAX));
        assert_eq!(without.n_rows(), design.n_rows());
        for (k, j) in (0..design.n_rows()).flat_map(|k| (0..4).map(move |j| (k, j))) {
            let at = if j == column { 0.0 } else { without[(k, j)] + mean[j] };
            close("row without the cell", at, design[(k, j)]);
        }
    }
}
