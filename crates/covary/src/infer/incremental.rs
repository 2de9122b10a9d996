//! Principal components of a stream of batches, complete or with gaps.
//!
//! The past is its count, its mean, the variances of its columns and q scaled axes. A batch of b rows
//! is merged by one singular value decomposition (Ross et al. 2008):
//!
//! ```text
//!     ⎡ diag(s) U            ⎤   past, q rows
//! A = ⎢ T − 1 mᵀ             ⎥   the batch about its own mean m
//!     ⎢ R,  RᵀR = Σₙ Covₙ    ⎥   what its gaps may still vary
//!     ⎣ √(N b/(N+b)) (μ − m)ᵀ⎦   between the means              s, U ← q leading of svd(A)
//! ```
//!
//! A gap stands in T by its conditional mean given the row's observed cells; Covₙ, zero outside the
//! gaps of row n, is its conditional covariance. Both are one expectation step under the current
//! model, so the sums are those of online EM (Cappé & Moulines 2009), and R has no rows when nothing
//! is missing.

use super::{Em, Estimator};
use crate::linalg::rows::center;
use crate::linalg::{canonical_signs, eigen, thin_svd};
use crate::model::{Given, LinearGaussian, Noise, Principal, check_columns};
use crate::parallel::{add, pieces};
use crate::spec::Prior;
use crate::{Dataset, Density, Error, Matrix, Spec};
use std::borrow::Cow;

/// Principal components learned batch by batch; the past is forgotten except for q axes.
///
/// Complete batches are merged as classical software does, number for number except for the noise, which is that
/// of all rows seen. With gaps, counts, mean and variances are expected ones over all rows with an observed
/// cell: a gap counts as its conditional mean and adds its conditional variance.
///
/// ```
/// use covary::{data::{simulate, Shape}, infer::Incremental, Dataset, Matrix};
/// let (table, _) = simulate::ppca(Shape { rows: 300, columns: 6, n_components: 2 }, /* seed */ 1);
/// let mut stream = Incremental::new(Some(2));
/// for rows in table.values().as_slice().chunks(100 * 6) {
///     stream.take(&Dataset::new(Matrix::from_vec(100, 6, rows.to_vec())?)?)?;
/// }
/// let seen = stream.principal().unwrap();
/// assert_eq!(seen.n_rows, 300);
/// let off = seen.mean.iter().zip(table.observed_means()).map(|(a, b)| (a - b).abs());
/// assert!(off.fold(0.0, f64::max) < 1e-12);   // the mean of a stream is that of the whole table
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Incremental {
    n_components: Option<usize>,
    seen: Option<Seen>,
}

/// What is kept of the rows seen.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    principal: Principal,
    /// s, kept beside the variances they give so that merging loses no digit.
    singular_values: Vec<f64>,
    /// Per column, divisor N.
    variances: Vec<f64>,
}

/// A batch as its expected moments.
struct Expected<'a> {
    /// Gaps filled by conditional means.
    rows: Cow<'a, Dataset>,
    /// R: rows whose squares are Σₙ Covₙ.
    spread: Matrix,
}

/// Most expectation steps per batch after the first, each under the model the last one led to.
const EXPECTATIONS: usize = 10;
/// They end when gaps move by less than this share of a column's standard deviation.
const SETTLED: f64 = 1e-3;
/// Cells per parameter of a column below which the first fit gets a prior.
const CELLS_PER_COMPONENT: usize = 5;
/// Noise as a share of the mean variance where rows are too few to show any; that of [`Prior::weak`].
const UNSEEN_NOISE: f64 = 0.05;
/// Smallest noise to condition with, as a share of the mean variance: that of isotropic fits.
const NOISE_FLOOR: f64 = 1e-12;
/// Smallest noise of rows that do not vary at all.
const SMALLEST_NOISE: f64 = 1e-100;
/// Largest variance whose products stay finite.
const LARGEST_VARIANCE: f64 = 1e280;

impl Incremental {
    /// Nothing seen yet. Without a number of components the smaller side of the first batch decides.
    pub fn new(n_components: Option<usize>) -> Self {
        Self { n_components, seen: None }
    }

    /// Learns from a batch of any size; the first needs as many rows as components. Rows without an
    /// observed cell are passed over. After an error nothing has changed.
    ///
    /// # Errors
    /// [`Error::SmallFirstBatch`] or [`Error::EmptyColumn`] for the first batch, and what [`Em`] says
    /// if it has gaps; [`Error::ColumnCount`] for a later one with other columns;
    /// [`Error::OutOfRange`] for 0 components; [`Error::OutOfScale`] where squares overflow.
    pub fn take(&mut self, batch: &Dataset) -> Result<(), Error> {
        let q = self.components_for(batch)?;
        let Some(batch) = informative(batch)? else { return Ok(()) };
        let past = self.seen.as_ref();
        let seen = if batch.is_complete() {
            let spread = Matrix::zeros(0, batch.n_columns());
            merge(past, &Expected { rows: Cow::Borrowed(&batch), spread }, q)?
        } else {
            match past {
                None => merge(None, &expected(&batch, &first_model(&batch, q)?)?, q)?,
                Some(past) => settle(past, &batch, q)?,
            }
        };
        self.seen = Some(seen);
        Ok(())
    }

    /// Components, variances, mean and noise of the rows seen, by the conventions of classical software;
    /// `None` before the first batch. The noise is the mean variance that the axes leave:
    ///
    /// ```text
    /// σ² = (N Σⱼ varⱼ − Σᵢ sᵢ²) / ((N − 1)(min(N, d) − q))
    /// ```
    ///
    /// and 0 where they leave no direction. That of [`PrincipalAxes`](super::PrincipalAxes) is the same of a
    /// table in one batch. scikit-learn counts only what the *last* merge left out, which falls as batches
    /// come, since what earlier merges left out is lost to it.
    pub fn principal(&self) -> Option<&Principal> {
        self.seen.as_ref().map(|seen| &seen.principal)
    }

    /// Variance of each column over the rows seen, divisor N; empty before the first batch.
    pub fn variances(&self) -> &[f64] {
        self.seen.as_ref().map_or(&[], |seen| &seen.variances)
    }

    /// Singular values of the rows seen, as far as they were kept; empty before the first batch.
    pub fn singular_values(&self) -> &[f64] {
        self.seen.as_ref().map_or(&[], |seen| &seen.singular_values)
    }

    /// The density of the rows seen, `N(μ, Uᵀ diag(v − σ²) U + σ² I)`: what gaps are conditioned with. It is
    /// that of [`principal`](Self::principal); while the rows are too few to show any noise, which leaves
    /// those components without a density, σ² is 5 % of the mean variance.
    ///
    /// # Errors
    /// [`Error::TooFewRows`] before the first batch.
    pub fn model(&self) -> Result<LinearGaussian, Error> {
        self.seen()?.model()
    }

    /// Scores of every row, n × q, as [`Principal::transform`]; gaps are filled by their conditional
    /// means under [`model`](Self::model).
    ///
    /// # Errors
    /// [`Error::TooFewRows`] before the first batch; [`Error::ColumnCount`] if the table has other
    /// columns.
    pub fn transform(&self, data: &Dataset, whiten: bool) -> Result<Matrix, Error> {
        let seen = self.seen()?;
        if data.is_complete() {
            return seen.principal.transform(data, whiten);
        }
        let filled = seen.model()?.impute(data)?;
        seen.principal.transform(&Dataset::new(filled.values().clone())?, whiten)
    }

    fn seen(&self) -> Result<&Seen, Error> {
        self.seen.as_ref().ok_or(Error::TooFewRows { rows: 0 })
    }

    /// Checks a batch against what was seen; returns q.
    fn components_for(&self, batch: &Dataset) -> Result<usize, Error> {
        if let Some(seen) = &self.seen {
            check_columns(seen.variances.len(), batch)?;
            return Ok(seen.singular_values.len());
        }
        let (rows, columns) = (batch.n_informative_rows(), batch.n_columns());
        if let Some(j) = batch.n_observed_by_column().iter().position(|&n| n == 0) {
            return Err(Error::EmptyColumn { column: batch.column_names()[j].clone() });
        }
        let max = rows.min(columns);
        match self.n_components {
            None => Ok(max),
            Some(0) => Err(Error::OutOfRange { name: "n_components", value: 0.0, bound: "at least 1" }),
            Some(asked) if asked > max => Err(Error::SmallFirstBatch { asked, rows, columns, max }),
            Some(asked) => Ok(asked),
        }
    }
}

impl Seen {
    fn new(
        n_rows: usize,
        mean: Vec<f64>,
        variances: Vec<f64>,
        singular_values: Vec<f64>,
        components: Matrix,
    ) -> Self {
        let free = degrees(n_rows);
        let total: f64 = variances.iter().map(|v| v * n_rows as f64).sum();
        let kept: f64 = singular_values.iter().map(|s| s * s).sum();
        let directions = n_rows.min(variances.len()).saturating_sub(singular_values.len());
        let noise_variance =
            if directions == 0 { 0.0 } else { (total - kept).max(0.0) / (free * directions as f64) };
        let principal = Principal {
            n_rows,
            mean,
            components,
            explained_variance: singular_values.iter().map(|s| s * s / free).collect(),
            total_variance: total / free,
            variances: variances.iter().map(|v| v * n_rows as f64 / free).collect(),
            noise_variance,
            scale: None,
        };
        Self { principal, singular_values, variances }
    }

    /// Axes to condition with: where they are all directions, the last is the noise.
    fn n_axes(&self) -> usize {
        self.singular_values.len().min(self.variances.len() - 1)
    }

    fn mean_variance(&self) -> f64 {
        self.variances.iter().sum::<f64>() / self.variances.len() as f64
    }

    fn model(&self) -> Result<LinearGaussian, Error> {
        let Principal { n_rows, mean, components, explained_variance, noise_variance, .. } = &self.principal;
        let (d, k) = (mean.len(), self.n_axes());
        let noise = match explained_variance.get(k) {
            _ if *n_rows <= k + 1 => UNSEEN_NOISE * self.mean_variance(),
            Some(last) => *last,
            None => *noise_variance,
        };
        let noise = noise.max(NOISE_FLOOR * self.mean_variance()).max(SMALLEST_NOISE);
        let mut w = Matrix::from_fn(d, k, |j, i| components[(i, j)]);
        let length = |v: &f64| (v - noise).max(0.0).sqrt();
        w.scale_columns(&explained_variance[..k].iter().map(length).collect::<Vec<_>>());
        LinearGaussian::new(w, mean.clone(), Noise::Isotropic(noise))
    }
}

/// N − 1; 1 for a single row, whose variances are then 0.
fn degrees(n_rows: usize) -> f64 {
    (n_rows as f64 - 1.0).max(1.0)
}

/// The batch without its wholly missing rows; `None` if there are no others.
fn informative(batch: &Dataset) -> Result<Option<Cow<'_, Dataset>>, Error> {
    let rows = batch.n_informative_rows();
    if rows == 0 {
        return Ok(None);
    }
    if rows == batch.n_rows() {
        return Ok(Some(Cow::Borrowed(batch)));
    }
    let mut kept: Vec<usize> =
        batch.patterns().filter(|p| p.n_observed() > 0).flat_map(|p| p.rows.to_vec()).collect();
    kept.sort_unstable();
    batch.of_rows(&kept).map(|kept| Some(Cow::Owned(kept)))
}

/// The model of a first batch with gaps. Where a column has few cells, a weak prior keeps the fit from
/// explaining them without noise.
fn first_model(batch: &Dataset, q: usize) -> Result<LinearGaussian, Error> {
    let k = q.min(batch.n_columns() - 1);
    let fewest = batch.n_observed_by_column().iter().min().copied().unwrap_or(0);
    let prior = if fewest < CELLS_PER_COMPONENT * k { Prior::weak() } else { Prior::default() };
    Ok(Em::default().fit(batch, &Spec { prior, ..Spec::ppca(k) })?.model)
}

/// Fills the batch and merges it by turns until its gaps stay where they are: EM of the batch with the
/// moments of the past held.
fn settle(past: &Seen, batch: &Dataset, q: usize) -> Result<Seen, Error> {
    let mut filled = expected(batch, &past.model()?)?;
    let mut seen = merge(Some(past), &filled, q)?;
    for _ in 1..EXPECTATIONS {
        let next = expected(batch, &seen.model()?)?;
        let cells = next.rows.values().as_slice().iter().zip(filled.rows.values().as_slice());
        let moved: f64 = cells.map(|(a, b)| (a - b).powi(2)).sum::<f64>() / batch.n_gaps() as f64;
        if moved <= SETTLED.powi(2) * seen.mean_variance() {
            break;
        }
        seen = merge(Some(past), &next, q)?;
        filled = next;
    }
    Ok(seen)
}

/// The expectation step: gaps by their conditional means, and a root of the sum of their conditional
/// covariances.
fn expected(batch: &Dataset, model: &LinearGaussian) -> Result<Expected<'static>, Error> {
    let d = batch.n_columns();
    let mut values = batch.values().clone();
    let mut covariance = Matrix::zeros(d, d);
    let parts = pieces(batch.n_patterns(), 1, |patterns| {
        let mut filled = Vec::new();
        let mut covariance = Matrix::zeros(d, d);
        for pattern in patterns.map(|p| batch.pattern(p)).filter(|p| !p.gaps.is_empty()) {
            let given = model.condition(&pattern.observed());
            let rows: Vec<&[f64]> = pattern.rows.iter().map(|&i| batch.row(i)).collect();
            filled.extend(pattern.rows.iter().copied().zip(given.complete_rows(&rows)));
            let spread = given.gap_covariance(true);
            for (a, &i) in given.gaps().iter().enumerate() {
                for (b, &j) in given.gaps().iter().enumerate() {
                    covariance[(i, j)] += rows.len() as f64 * spread[(a, b)];
                }
            }
        }
        (filled, covariance)
    });
    for (filled, part) in parts {
        add(covariance.as_mut_slice(), part.as_slice());
        for (i, gaps) in filled {
            let cells = values.row_mut(i).iter_mut().filter(|v| v.is_nan());
            cells.zip(gaps.mean).for_each(|(cell, mean)| *cell = mean);
        }
    }
    let rows = Dataset::with_names(values, batch.column_names().to_vec())?;
    Ok(Expected { rows: Cow::Owned(rows), spread: root(&covariance)? })
}

/// R with `RᵀR = C`: `√λᵢ vᵢᵀ`, a row per direction that varies.
fn root(covariance: &Matrix) -> Result<Matrix, Error> {
    check_finite(covariance)?;
    let e = eigen(covariance)?;
    let smallest = f64::EPSILON * e.values[0];
    let kept = e.values.iter().take_while(|v| **v > smallest).count();
    let mut rows = e.vectors.first_columns(kept).transpose();
    rows.scale_rows(&e.values[..kept].iter().map(|v| v.sqrt()).collect::<Vec<_>>());
    Ok(rows)
}

/// The rows seen and a batch, as one.
fn merge(past: Option<&Seen>, batch: &Expected<'_>, q: usize) -> Result<Seen, Error> {
    let (b, d) = (batch.rows.n_rows(), batch.rows.n_columns());
    let (mean, variances) = (batch.rows.observed_means(), batch.rows.observed_variances());
    let mut centered = vec![0.0; b * d];
    center(batch.rows.values().as_slice(), mean, &vec![1.0; d], &mut centered);
    centered.extend_from_slice(batch.spread.as_slice());

    // Sums of squares add, and the means' distance adds N b/(N + b) δ².
    let spread = |j: usize| batch.spread.rows().map(|r| r[j] * r[j]).sum::<f64>();
    let squares = |j: usize| b as f64 * variances[j] + spread(j);
    let (n, new_mean, new_variances) = match past {
        None => (b, mean.to_vec(), (0..d).map(|j| squares(j) / b as f64).collect::<Vec<_>>()),
        Some(Seen { principal, singular_values, variances }) => {
            let old = principal.n_rows;
            let n = old + b;
            let share = b as f64 / n as f64;
            let weight = old as f64 * share;
            let mut axes = principal.components.clone();
            axes.scale_rows(singular_values);
            centered.extend_from_slice(axes.as_slice());
            let apart: Vec<f64> = principal.mean.iter().zip(mean).map(|(past, m)| past - m).collect();
            centered.extend(apart.iter().map(|a| weight.sqrt() * a));
            let variance =
                |j: usize| (old as f64 * variances[j] + squares(j) + weight * apart[j] * apart[j]) / n as f64;
            let moved = principal.mean.iter().zip(&apart).map(|(past, a)| past - share * a).collect();
            (n, moved, (0..d).map(variance).collect())
        }
    };
    if let Some(j) = new_variances.iter().position(|v| !(0.0..=LARGEST_VARIANCE).contains(v)) {
        let column = batch.rows.column_names()[j].clone();
        return Err(Error::OutOfScale { column, variance: new_variances[j] });
    }

    let stacked = Matrix::from_vec(centered.len() / d, d, centered)?;
    check_finite(&stacked)?;
    let svd = thin_svd(&stacked)?;
    let mut axes = svd.v.first_columns(q);
    canonical_signs(&mut axes);
    Ok(Seen::new(n, new_mean, new_variances, svd.s[..q].to_vec(), axes.transpose()))
}

fn check_finite(a: &Matrix) -> Result<(), Error> {
    if a.as_slice().iter().all(|v| v.is_finite()) {
        Ok(())
    } else {
        Err(Error::Numerical { what: "the merge of a batch" })
    }
}

/// First bytes of a saved state; the last of them is its version.
const MAGIC: [u8; 8] = *b"covinc\0\x01";
/// Rows that f64 counts exactly.
const MOST_ROWS: u64 = 1 << 53;
/// Stands for "as the first batch decides".
const UNASKED: u64 = u64::MAX;

impl Incremental {
    /// The state as bytes, every number by its bits.
    ///
    /// ```text
    /// magic, asked, N, q, d: 8 bytes each │ μ (d) │ variances (d) │ s (q) │ U (q × d) │ σ²         little-endian
    /// ```
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, infer::Incremental};
    /// let (table, _) = simulate::ppca(Shape { rows: 50, columns: 4, n_components: 1 }, /* seed */ 1);
    /// let mut stream = Incremental::new(Some(1));
    /// stream.take(&table)?;
    /// let bytes = stream.to_bytes();
    /// assert_eq!(Incremental::from_bytes(&bytes)?, stream);
    /// assert!(Incremental::from_bytes(&bytes[1..]).is_err());
    /// # Ok::<(), covary::Error>(())
    /// ```
    pub fn to_bytes(&self) -> Vec<u8> {
        let asked = self.n_components.map_or(UNASKED, |q| q as u64);
        let shape = self.seen.as_ref().map_or([0; 3], |seen| {
            [seen.principal.n_rows, seen.singular_values.len(), seen.variances.len()].map(|n| n as u64)
        });
        let mut bytes = MAGIC.to_vec();
        for count in [asked, shape[0], shape[1], shape[2]] {
            bytes.extend(count.to_le_bytes());
        }
        if let Some(Seen { principal, singular_values, variances }) = &self.seen {
            let components = principal.components.as_slice();
            for numbers in
                [&principal.mean, variances, singular_values, components, &[principal.noise_variance]]
            {
                bytes.extend(numbers.iter().flat_map(|v| v.to_le_bytes()));
            }
        }
        bytes
    }

    /// The state that [`to_bytes`](Self::to_bytes) wrote, to the last bit.
    ///
    /// # Errors
    /// [`Error::DamagedState`] for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let damaged = |why| Error::DamagedState { why };
        let (words, rest) = bytes.as_chunks::<8>();
        let [MAGIC, counts @ ..] = words else { return Err(damaged("it does not begin as one")) };
        let ([asked, n, q, d], []) = (counts.first_chunk::<4>().ok_or(damaged("it is too short"))?, rest)
        else {
            return Err(damaged("it ends within a number"));
        };
        let [asked, n, q, d] = [asked, n, q, d].map(|c| u64::from_le_bytes(*c));
        let numbers = &counts[4..];
        let count = |c: u64| usize::try_from(c).map_err(|_| damaged("a count is too large"));
        let n_components = if asked == UNASKED { None } else { Some(count(asked)?) };
        if [n, q, d] == [0; 3] && numbers.is_empty() {
            return Ok(Self { n_components, seen: None });
        }
        let (n, q, d) = (count(n)?, count(q)?, count(d)?);
        // μ, variances, s, U, noise: 2 d + q + q d + 1, which the bytes at hand must hold.
        let axes = q.checked_mul(d).and_then(|axes| axes.checked_add(q));
        let length = axes.and_then(|axes| d.checked_mul(2)?.checked_add(axes)?.checked_add(1));
        if length != Some(numbers.len()) {
            return Err(damaged("its length is not that of its shape"));
        }
        if !(1..=MOST_ROWS).contains(&(n as u64))
            || q == 0
            || q > d
            || n_components.is_some_and(|asked| asked != q)
        {
            return Err(damaged("its counts contradict each other"));
        }
        let numbers: Vec<f64> = numbers.iter().map(|c| f64::from_le_bytes(*c)).collect();
        let (mean, rest) = numbers.split_at(d);
        let (variances, rest) = rest.split_at(d);
        let (singular_values, rest) = rest.split_at(q);
        let (components, noise) = rest.split_at(q * d);
        let positive = |v: &f64| (0.0..=LARGEST_VARIANCE).contains(v);
        if !numbers.iter().all(|v| v.is_finite()) {
            return Err(damaged("a number is not finite"));
        }
        if !variances.iter().chain(noise).all(positive) {
            return Err(damaged("a variance is negative or beyond all scale"));
        }
        // No axis has more than all of the variance.
        let total: f64 = variances.iter().sum::<f64>() * n as f64;
        let most = total.sqrt() * (1.0 + 1e-6);
        let possible = |s: &f64| most.is_finite() && (0.0..=most).contains(s);
        if !singular_values.is_sorted_by(|a, b| a >= b) || !singular_values.iter().all(possible) {
            return Err(damaged("its singular values are not in order, or exceed the variances"));
        }
        let unit = |axis: &[f64]| (axis.iter().map(|v| v * v).sum::<f64>() - 1.0).abs() < 1e-6;
        if !components.chunks_exact(d).all(unit) {
            return Err(damaged("an axis is not of length 1"));
        }
        let components = Matrix::from_vec(q, d, components.to_vec())?;
        // σ² follows from the others; in states that 0.1.0 wrote it is that of their last merge.
        let seen = Seen::new(n, mean.to_vec(), variances.to_vec(), singular_values.to_vec(), components);
        Ok(Self { n_components, seen: Some(seen) })
    }
}
