use crate::linalg::{add_gram_lower, eigenvalues, leading_eigenpairs};
use crate::parallel;
use crate::{CentralMoments, Dataset, Error, Matrix, Spec};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rand_distr::{ChiSquared, Distribution, StandardNormal};

/// Parallel analysis (Horn 1965; permutations after Buja & Eyuboglu 1992): which leading
/// eigenvalues exceed those of columns that have nothing to do with each other [M 1.8.4].
///
/// Shuffling every column on its own keeps its values and destroys every relation; the `quantile`
/// of each eigenvalue over many such copies is its threshold, and counting stops at the first
/// eigenvalue that does not exceed it.
///
/// **Gaps** stay where they are: observed cells are permuted among the observed cells of their
/// column, and every covariance is taken over the rows that have both columns (each column about
/// its own observed mean; zero for a pair never seen together). Such a matrix may have negative
/// eigenvalues, in the table and in its copies alike, so the comparison stays fair where cells are
/// missing completely at random. With many gaps, prefer
/// [`held_out_cells`](super::held_out_cells).
///
/// ```
/// use covary::{data::{simulate, Shape}, select::ParallelAnalysis};
/// let (table, _) = simulate::ppca(Shape { rows: 200, columns: 8, n_components: 2 }, /* seed */ 1);
/// assert_eq!(ParallelAnalysis::default().run(&table)?.n_components, 2);
/// let (noise, _) = simulate::ppca(Shape { rows: 200, columns: 8, n_components: 0 }, /* seed */ 1);
/// assert_eq!(ParallelAnalysis::default().run(&noise)?.n_components, 0);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ParallelAnalysis {
    /// Eigenvalues of the correlations (the default: columns count alike) or of the covariances.
    pub standardize: bool,
    /// Quantile of the copies' eigenvalues that must be exceeded.
    pub quantile: f64,
    /// Permuted copies; 200 place the 95 % quantile within about 1.5 % of its rank.
    pub n_copies: usize,
    /// Regress the accepted components out of the table before shuffling for the next one.
    ///
    /// The total variance is fixed, so a few strong components leave little for the rest and the
    /// plain thresholds, which know nothing of them, hide weaker ones. The deflated thresholds
    /// compare with what is left. Sharpest on covariances of columns with similar noise; where the
    /// noise differs much between columns it now and then accepts one or two too many. Complete
    /// tables only.
    pub deflate: bool,
    /// Seed; copy c has random stream c.
    pub seed: u64,
}

impl Default for ParallelAnalysis {
    fn default() -> Self {
        Self { standardize: true, quantile: 0.95, n_copies: 200, deflate: false, seed: 0 }
    }
}

/// Eigenvalues, what they were compared with, and how many passed.
#[derive(Debug, Clone, PartialEq)]
pub struct ParallelSpectrum {
    /// Eigenvalues of the table's correlations (or covariances), in decreasing order.
    pub eigenvalues: Vec<f64>,
    /// Thresholds, for the leading eigenvalues. The deflated variant ends with the first failure,
    /// since later thresholds do not exist.
    pub thresholds: Vec<f64>,
    /// Leading eigenvalues above their threshold.
    pub n_components: usize,
}

impl ParallelAnalysis {
    /// Compares the table with its permuted copies.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `0 < quantile < 1` and there are copies;
    /// [`Error::Unsupported`] for the deflated variant on a table with gaps; and when the table
    /// has fewer than two rows, an empty column, or no variance.
    pub fn run(&self, data: &Dataset) -> Result<ParallelSpectrum, Error> {
        self.check()?;
        Spec::ppca(0).check(data)?;
        if self.deflate && !data.is_complete() {
            return Err(Error::Unsupported {
                method: "deflated parallel analysis",
                what: "tables with gaps",
                instead: "the plain variant or held-out cells",
            });
        }
        let table = Columns::new(data, self.standardize);
        let eigenvalues = table.eigenvalues(&table.values)?;
        if self.deflate { self.deflated(table, eigenvalues) } else { self.plain(&table, eigenvalues) }
    }

    /// Compares moments, such as those of a correlation matrix in print, with simulated ones: there are no cells to shuffle,
    /// so the copies are of normal rows whose columns are independent (Horn 1965). Their scatter about the mean is
    /// Wishart distributed with N − 1 degrees of freedom, drawn as L Lᵀ (Bartlett 1933):
    ///
    /// ```text
    /// Lᵢᵢ² ~ χ²(N − i), i = 1 … min(d, N − 1)        Lᵢⱼ ~ N(0, 1), j < i
    /// ```
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, select::ParallelAnalysis, CentralMoments};
    /// let (table, _) = simulate::ppca(Shape { rows: 200, columns: 8, n_components: 2 }, /* seed */ 1);
    /// let found = ParallelAnalysis::default().run_moments(&CentralMoments::of(&table)?)?;
    /// assert_eq!(found.n_components, 2);
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] as [`run`](Self::run), [`Error::Unsupported`] for the deflated variant, and
    /// [`Error::TooFewRows`] below two rows.
    pub fn run_moments(&self, moments: &CentralMoments) -> Result<ParallelSpectrum, Error> {
        self.check()?;
        if self.deflate {
            return Err(Error::Unsupported {
                method: "deflated parallel analysis",
                what: "moments without their table",
                instead: "the plain variant",
            });
        }
        let (n, d) = (moments.n_rows(), moments.n_columns());
        if n < 2 {
            return Err(Error::TooFewRows { rows: n });
        }
        let mut s = moments.covariance();
        let sds: Vec<f64> = (0..d).map(|j| s[(j, j)].sqrt()).collect();
        if self.standardize {
            divide(&mut s, &sds);
        }
        let copies = parallel::try_map(self.n_copies, |copy| {
            let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
            rng.set_stream(copy as u64);
            let mut copy = independent_covariance(n, d, &mut rng);
            let own: Vec<f64> = (0..d).map(|j| copy[(j, j)].sqrt()).collect();
            // Of unit variance, or of the variances that the columns have.
            let by = own.iter().zip(&sds).map(|(own, sd)| if self.standardize { *own } else { own / sd });
            divide(&mut copy, &by.collect::<Vec<_>>());
            eigenvalues(&copy)
        })?;
        Ok(self.compared(eigenvalues(&s)?, &copies, d))
    }

    fn check(&self) -> Result<(), Error> {
        if !(self.quantile > 0.0 && self.quantile < 1.0) {
            let bound = "between 0 and 1";
            return Err(Error::OutOfRange { name: "quantile", value: self.quantile, bound });
        }
        if self.n_copies == 0 {
            return Err(Error::OutOfRange { name: "n_copies", value: 0.0, bound: "at least 1" });
        }
        Ok(())
    }

    fn plain(&self, table: &Columns, eigenvalues: Vec<f64>) -> Result<ParallelSpectrum, Error> {
        let copies = self.shuffled_eigenvalues(table, 0)?;
        Ok(self.compared(eigenvalues, &copies, table.values.n_rows()))
    }

    /// Leading eigenvalues against their quantiles in copies without any relation. The total is the same in every copy,
    /// so the last of all columns never stands out.
    fn compared(&self, eigenvalues: Vec<f64>, copies: &[Vec<f64>], n_columns: usize) -> ParallelSpectrum {
        let thresholds: Vec<f64> = (0..eigenvalues.len())
            .map(|j| quantile(copies.iter().map(|copy| copy[j]).collect(), self.quantile))
            .collect();
        let candidates = eigenvalues.iter().zip(&thresholds).take(n_columns - 1);
        let n_components = candidates.take_while(|(l, t)| l > t).count();
        ParallelSpectrum { eigenvalues, thresholds, n_components }
    }

    fn deflated(&self, mut table: Columns, eigenvalues: Vec<f64>) -> Result<ParallelSpectrum, Error> {
        let d = table.values.n_rows();
        let mut thresholds = Vec::new();
        for k in 0..eigenvalues.len().min(d - 1) {
            let copies = self.shuffled_eigenvalues(&table, k)?;
            // The residuals fill d − k dimensions; shuffling spreads them over d and makes each
            // look smaller by (d − k)/d. Without this factor every component passes in the end
            // (covariances of 8 columns with 2 true components gave 7 in 19 tables of 20).
            let spread = d as f64 / (d - k) as f64;
            let threshold = spread * quantile(copies.iter().map(|copy| copy[0]).collect(), self.quantile);
            thresholds.push(threshold);
            if eigenvalues[k] <= threshold {
                return Ok(ParallelSpectrum { eigenvalues, thresholds, n_components: k });
            }
            table.remove_leading_component()?;
        }
        Ok(ParallelSpectrum { n_components: thresholds.len(), eigenvalues, thresholds })
    }

    /// Eigenvalues of every copy. Each copy has a random stream of its own, so that the number of
    /// threads cannot matter.
    fn shuffled_eigenvalues(&self, table: &Columns, round: usize) -> Result<Vec<Vec<f64>>, Error> {
        let of_copy = |copy| {
            let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
            rng.set_stream((round * self.n_copies + copy) as u64);
            table.eigenvalues(&table.shuffled(&mut rng))
        };
        parallel::try_map(self.n_copies, of_copy)
    }
}

impl ParallelAnalysis {
    /// Standard errors of the logarithms of the leading eigenvalues, by leaving out one of `n_groups`
    /// groups of rows at a time (the grouped jackknife): no distribution is assumed, and gaps are treated
    /// as by [`run`](Self::run). Row i is in group i mod `n_groups`. NaN where an eigenvalue is not above 0
    /// in every part of the table.
    ///
    /// ```text
    /// se² = (g − 1)/g Σ (ln λ₍₋ₖ₎ − mean)²        λ₍₋ₖ₎: without group k
    /// ```
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, select::ParallelAnalysis};
    /// let (table, _) = simulate::ppca(Shape { rows: 2000, columns: 6, n_components: 1 }, /* seed */ 1);
    /// let errors = ParallelAnalysis { standardize: false, ..Default::default() }.log_errors(&table, 40)?;
    /// let normal_theory = (2.0_f64 / 2000.0).sqrt();               // Anderson (1963)
    /// assert!((errors[0] / normal_theory - 1.0).abs() < 0.3);
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for fewer than two groups or more groups than half the rows; and as
    /// [`run`](Self::run), where a group leaves too little.
    pub fn log_errors(&self, data: &Dataset, n_groups: usize) -> Result<Vec<f64>, Error> {
        if n_groups < 2 || 2 * n_groups > data.n_rows() {
            let bound = "from 2 to half the number of rows";
            return Err(Error::OutOfRange { name: "n_groups", value: n_groups as f64, bound });
        }
        let without = |group| {
            let kept: Vec<usize> = (0..data.n_rows()).filter(|i| i % n_groups != group).collect();
            let rest = data.of_rows(&kept)?;
            Spec::ppca(0).check(&rest)?;
            let columns = Columns::new(&rest, self.standardize);
            Ok(columns.eigenvalues(&columns.values)?.iter().map(|l| l.ln()).collect())
        };
        let logs: Vec<Vec<f64>> = parallel::try_map(n_groups, without)?;
        let g = n_groups as f64;
        let error = |k: usize| {
            let mean = logs.iter().map(|l| l[k]).sum::<f64>() / g;
            ((g - 1.0) / g * logs.iter().map(|l| (l[k] - mean).powi(2)).sum::<f64>()).sqrt()
        };
        let fewest = logs.iter().map(Vec::len).min().unwrap_or(0);
        Ok((0..fewest).map(error).collect())
    }
}

/// A table by columns, centered and scaled, and what its gaps are.
struct Columns {
    /// d × n; zero at the gaps.
    values: Matrix,
    gaps: Option<Gaps>,
}

struct Gaps {
    /// Rows observed in each column.
    observed: Vec<Vec<usize>>,
    /// Rows observed in each pair of columns, d × d, lower triangle.
    together: Matrix,
}

impl Columns {
    fn new(data: &Dataset, standardize: bool) -> Self {
        let (n, d) = (data.n_rows(), data.n_columns());
        let (means, variances) = (data.observed_means(), data.observed_variances());
        let scale = |j: usize| if standardize && variances[j] > 0.0 { variances[j].sqrt() } else { 1.0 };
        let scales: Vec<f64> = (0..d).map(scale).collect();
        let cell = |j: usize, i: usize| data.values()[(i, j)];
        let values = Matrix::from_fn(d, n, |j, i| {
            let y = (cell(j, i) - means[j]) / scales[j];
            if y.is_nan() { 0.0 } else { y }
        });
        let gaps = (!data.is_complete()).then(|| {
            let present = Matrix::from_fn(d, n, |j, i| f64::from(u8::from(!cell(j, i).is_nan())));
            let observed = present.rows().map(|row| (0..n).filter(|&i| row[i] > 0.0).collect()).collect();
            Gaps { observed, together: gram(&present.transpose()) }
        });
        Self { values, gaps }
    }

    /// Each column's observed cells in a random order.
    fn shuffled(&self, rng: &mut ChaCha8Rng) -> Matrix {
        let mut values = self.values.clone();
        for j in 0..values.n_rows() {
            let column = values.row_mut(j);
            match &self.gaps {
                None => column.shuffle(rng),
                Some(gaps) => {
                    let at = &gaps.observed[j];
                    let mut cells: Vec<f64> = at.iter().map(|&i| column[i]).collect();
                    cells.shuffle(rng);
                    at.iter().zip(cells).for_each(|(&i, v)| column[i] = v);
                }
            }
        }
        values
    }

    /// Leading eigenvalues of the covariance of `values`, as many as rows and columns allow.
    ///
    /// ```text
    /// complete: Y Yᵀ/N, or Yᵀ Y/N if that is smaller        gaps: Sⱼₖ = Σᵢ yⱼᵢ yₖᵢ / Nⱼₖ
    /// ```
    fn eigenvalues(&self, values: &Matrix) -> Result<Vec<f64>, Error> {
        let (d, n) = (values.n_rows(), values.n_columns());
        let mut s = if self.gaps.is_none() && n < d { gram(values) } else { gram(&values.transpose()) };
        match &self.gaps {
            None => s.as_mut_slice().iter_mut().for_each(|v| *v /= n as f64),
            Some(gaps) => {
                for (v, count) in s.as_mut_slice().iter_mut().zip(gaps.together.as_slice()) {
                    *v /= count.max(1.0);
                }
            }
        }
        eigenvalues(&s)
    }

    /// Subtracts the projection of a complete table on its leading axis: `Y − u uᵀ Y`.
    fn remove_leading_component(&mut self) -> Result<(), Error> {
        let mut s = gram(&self.values.transpose());
        s.mirror_lower();
        let u = leading_eigenpairs(&s, 1, 1e-9, 0)?.vectors;
        let scores = u.t_dot(&self.values);
        for j in 0..self.values.n_rows() {
            let loading = u[(j, 0)];
            self.values.row_mut(j).iter_mut().zip(scores.row(0)).for_each(|(y, x)| *y -= loading * x);
        }
        Ok(())
    }
}

/// Lower triangle of `Aᵀ A`.
fn gram(a: &Matrix) -> Matrix {
    let mut out = Matrix::zeros(a.n_columns(), a.n_columns());
    add_gram_lower(out.view_mut(), a.view());
    out
}

/// Covariance of `n` rows of `d` independent columns of unit variance, drawn; lower triangle.
fn independent_covariance(n: usize, d: usize, rng: &mut ChaCha8Rng) -> Matrix {
    let rank = d.min(n - 1);
    let mut l = Matrix::zeros(d, rank);
    for i in 0..d {
        for j in 0..i.min(rank) {
            l[(i, j)] = StandardNormal.sample(rng);
        }
        if i < rank {
            let squared: f64 = ChiSquared::new((n - 1 - i) as f64).expect("above 0").sample(rng);
            l[(i, i)] = squared.sqrt();
        }
    }
    let mut s = gram(&l.transpose());
    s.as_mut_slice().iter_mut().for_each(|v| *v /= n as f64);
    s
}

/// `Sᵢⱼ / (bᵢ bⱼ)`; a column without a deviation stays as it is.
fn divide(s: &mut Matrix, by: &[f64]) {
    let whole = |j: usize| if by[j] > 0.0 { by[j] } else { 1.0 };
    for i in 0..by.len() {
        for (j, v) in s.row_mut(i).iter_mut().enumerate() {
            *v /= whole(i) * whole(j);
        }
    }
}

/// Quantile by linear interpolation between order statistics.
fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = share * (values.len() - 1) as f64;
    let below = at.floor() as usize;
    let above = (below + 1).min(values.len() - 1);
    values[below] + (at - below as f64) * (values[above] - values[below])
}
