//! Complete tables with one noise variance: rows are left out, and each of their cells is predicted from the others in
//! closed form, for all numbers of components at once [M 3.4.1].
//!
//! ```text
//! P_q = (I − U_q U_qᵀ)/σ_q² + U_q Λ_q⁻¹ U_qᵀ        cell j given the others: error [P_q y]_j / [P_q]_jj, variance 1 / [P_q]_jj
//! ```

use super::Progress;
use super::bracket::n_above_noise;
use super::curve::Curve;
use super::hidden::inverse_scale;
use super::units::equal_noise;
use crate::data::CentralMoments;
use crate::infer::scatter_times;
use crate::linalg::elementary::standard_crps;
use crate::linalg::lanes::LANES;
use crate::linalg::rows::center;
use crate::linalg::{Eigen, add_product_lower, dot, gemm, krylov, leading_or_all as leading};
use crate::parallel::pieces;
use crate::select::held_out::{HeldOut, HeldOutRows};
use crate::{Dataset, Error, Matrix};
use faer::{MatMut, MatRef};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::f64::consts::PI;
use std::iter::StepBy;
use std::ops::Range;

/// Rows are left out in as few parts as leave out at most one row in this many.
const FOLDS: usize = 5;
/// Cells, and rows, that are scored at least if there are.
const CELLS: usize = 30_000;
const ROWS: usize = 100;
/// Axes of the first part that are searched first: as many as a block of 24, or of 32 where products of rows make a wider one
/// cheap, has room for beside its oversampling.
const FIRST: usize = 16;
const FIRST_OF_ROWS: usize = 24;
/// Vectors of standard deviations of which one logarithm is taken.
const VECTORS: usize = 4;
/// Smallest noise, as a share of the mean variance.
const LEAST_NOISE: f64 = 1e-4;
/// Order from which even products of all columns take longer than a few passes over the table.
const VERY_LARGE: usize = 640;
const PASSES: usize = 4;
/// Passes from the axes without another part.
const PASSES_FROM_NEAR: usize = 3;

/// A complete table, the rows of it that are left out in turn, and what all choices need of it.
pub(super) struct Complete<'a> {
    data: &'a Dataset,
    inverse_scale: Vec<f64>,
    folds: Vec<Vec<usize>>,
    products: Products,
}

impl<'a> Complete<'a> {
    pub(super) fn new(data: &'a Dataset, standardize: bool, seed: u64) -> Self {
        let (n, d) = (data.n_rows(), data.n_columns());
        let mut order: Vec<usize> = (0..n).collect();
        order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        order.truncate((CELLS / d).max(ROWS));
        let n_folds = (FOLDS * order.len()).div_ceil(n);
        let folds: Vec<Vec<usize>> = (0..n_folds)
            .map(|f| {
                let mut rows: Vec<usize> = order.iter().skip(f).step_by(n_folds).copied().collect();
                rows.sort_unstable();
                rows
            })
            .filter(|rows| !rows.is_empty())
            .collect();
        let inverse_scale = inverse_scale(data.observed_variances(), standardize);
        let products = Products::of(data, &inverse_scale, folds.len());
        Self { data, inverse_scale, folds, products }
    }

    /// The scores of all numbers of components up to one beyond the best; only of `few`, as many as the cap and halfway between, if
    /// it is given.
    pub(super) fn curve(
        &self,
        equalize: bool,
        cap: usize,
        few: Option<usize>,
        progress: &Progress<'_>,
    ) -> Result<HeldOut, Error> {
        let (n, d, folds) = (self.data.n_rows(), self.data.n_columns(), &self.folds);
        let mut scaled = Scaled {
            data: self.data,
            inverse_scale: self.inverse_scale.clone(),
            unit: vec![1.0; d],
            products: &self.products,
        };
        if equalize {
            scaled.equalize(cap)?;
        }
        // The rest of the rows must leave noise beside the components.
        let fewest = n - folds.iter().map(Vec::len).max().unwrap_or(0);
        let cap = cap.min(fewest.saturating_sub(2));
        let every = (folds.iter().map(Vec::len).sum::<usize>() * d / CELLS).max(1);
        progress.expect(2 * folds.len());
        let first = if matches!(self.products, Products::Rows { .. }) { FIRST_OF_ROWS } else { FIRST };
        let mut most: Option<usize> = None;
        let mut near: Option<Matrix> = None;
        loop {
            let (mut left_outs, mut found) = (Vec::new(), Vec::new());
            for rows in folds {
                progress.check()?;
                let left_out = scaled.rows(rows);
                let mut axes =
                    scaled.axes_without(rows, &left_out, most.unwrap_or(cap.min(first)), near.as_ref())?;
                let q = match (most, few) {
                    (Some(q), _) => q,
                    (None, Some(_)) => cap,
                    (None, None) => loop {
                        let (values, size) = (&axes.leading.values, (axes.n_rows as f64, d));
                        let above = n_above_noise(values, axes.total, size, 1.0, cap);
                        let known = values.len();
                        if above < known || known >= cap {
                            break cap.min((2 * above + 4).max(8));
                        }
                        axes = scaled.axes_without(rows, &left_out, cap.min(2 * known), None)?;
                        // No further direction has variance.
                        if axes.leading.values.len() == known {
                            break cap.min((2 * above + 4).max(8));
                        }
                    },
                };
                most = Some(q);
                if axes.leading.values.len() < q {
                    axes = scaled.axes_without(rows, &left_out, q, None)?;
                }
                near.clone_from(&axes.of_rows);
                left_outs.push(left_out);
                found.push((&rows[..], axes));
            }
            let directions = scaled.directions(&found);
            let mut start = 0;
            let q = most.expect("there is a fold");
            let asked = |k: usize| few.is_none_or(|few| [few, few.midpoint(q), q].contains(&k));
            let mut fold_scores = Vec::new();
            let mut baseline = 0.0;
            for (left_out, (_, axes)) in left_outs.iter().zip(&found) {
                progress.check()?;
                let own = &directions.as_slice()[start * directions.n_columns()..];
                start += axes.leading.values.len();
                let (scores, squares) = axes.score(own, left_out, &scaled.unit, (q, every), &asked);
                fold_scores.push(scores);
                baseline += squares;
            }
            let mut curve = Curve::default();
            for k in (0..=q).filter(|k| fold_scores.iter().all(|fold| fold[*k].is_some())) {
                curve.insert(k, concatenated(fold_scores.iter().flat_map(|fold| &fold[k])));
            }
            if curve.best() < q || q == cap {
                let cells: usize =
                    fold_scores.iter().flat_map(|fold| fold[q].iter().flat_map(|at| &at.n_hidden)).sum();
                let summary = curve.summary(baseline / cells as f64);
                return Ok(HeldOut { n_sets: folds.len(), limited: curve.best() == cap, ..summary });
            }
            most = Some(cap.min(2 * q + 2));
            progress.expect(2 * folds.len());
        }
    }
}

fn concatenated<'a>(parts: impl Iterator<Item = &'a HeldOutRows>) -> HeldOutRows {
    let mut all = HeldOutRows::new(0);
    for part in parts {
        all.joint.extend(&part.joint);
        all.marginal.extend(&part.marginal);
        all.crps.extend(&part.crps);
        all.squared_error.extend(&part.squared_error);
        all.n_hidden.extend(&part.n_hidden);
    }
    all
}

/// The table in the scale of the fit or of equal noise, about its means, and what all folds need of it.
struct Scaled<'a> {
    data: &'a Dataset,
    inverse_scale: Vec<f64>,
    /// What an error is multiplied by to be one in the scale of the fit.
    unit: Vec<f64>,
    products: &'a Products,
}

/// Products of columns, or of rows where these are fewer.
enum Products {
    /// Moments of the columns.
    Columns(CentralMoments),
    /// The rows, scaled and about the means of the columns, padded with zeros to whole vectors, and their products.
    Rows { y: Matrix, products: Matrix },
    /// None: the table itself is gone through.
    Table,
}

/// Principal axes of rows.
struct Axes {
    n_rows: usize,
    /// The mean of the rows, about that of the table.
    mean: Vec<f64>,
    /// Those found from products of rows have no vectors here, only [`Scaled::directions`].
    leading: Eigen,
    /// The sum of all eigenvalues.
    total: f64,
    /// What all rows of the table, those left out among them, have along the axes, where these were found from products of rows.
    of_rows: Option<Matrix>,
}

impl Products {
    fn of(data: &Dataset, inverse_scale: &[f64], n_folds: usize) -> Self {
        let (n, d) = (data.n_rows(), data.n_columns());
        if n_folds == 1 && n.min(d) >= VERY_LARGE {
            return Self::Table;
        }
        if d <= n {
            return Self::Columns(CentralMoments::of(data).expect("the table is complete"));
        }
        let mut y = Matrix::zeros(n, d.next_multiple_of(LANES));
        for i in 0..n {
            center(data.row(i), data.observed_means(), inverse_scale, y.row_mut(i));
        }
        let mut products = Matrix::zeros(n, n);
        add_product_lower(products.view_mut(), y.view(), y.view().transpose());
        products.mirror_lower();
        Self::Rows { y, products }
    }
}

/// Some rows, scaled and about the means of the table.
fn scaled_rows(data: &Dataset, inverse_scale: &[f64], rows: &[usize]) -> Matrix {
    let mut out = Matrix::zeros(rows.len(), data.n_columns());
    for (k, &i) in rows.iter().enumerate() {
        center(data.row(i), data.observed_means(), inverse_scale, out.row_mut(k));
    }
    out
}

impl Scaled<'_> {
    /// Scales the columns for equal noise instead.
    fn equalize(&mut self, cap: usize) -> Result<(), Error> {
        let n = self.data.n_rows() as f64;
        if let Products::Columns(moments) = self.products {
            let mut s = moments.scatter();
            s.scale_both(&self.inverse_scale.iter().map(|v| v / n.sqrt()).collect::<Vec<_>>());
            self.unit = equal_noise(&s, n, cap)?;
            self.inverse_scale.iter_mut().zip(&self.unit).for_each(|(s, unit)| *s /= unit);
        }
        Ok(())
    }

    fn rows(&self, rows: &[usize]) -> Matrix {
        scaled_rows(self.data, &self.inverse_scale, rows)
    }

    /// The `k` leading axes, or more, of all rows but these; `near` is what rows have along those without others.
    fn axes_without(
        &self,
        rows: &[usize],
        left_out: &Matrix,
        k: usize,
        near: Option<&Matrix>,
    ) -> Result<Axes, Error> {
        let (n, d) = (self.data.n_rows(), self.data.n_columns());
        let n_rows = n - rows.len();
        // Σ y over all rows is 0.
        let mut mean = vec![0.0; d];
        left_out.rows().for_each(|y| mean.iter_mut().zip(y).for_each(|(m, y)| *m -= y));
        for m in &mut mean {
            *m /= n_rows as f64;
        }
        match self.products {
            Products::Table => {
                let m = n_rows as f64;
                let inverse = &self.inverse_scale;
                let load =
                    |cells: &[f64], out: &mut [f64]| center(cells, self.data.observed_means(), inverse, out);
                let apply = |x: MatRef<'_, f64>, mut out: MatMut<'_, f64>| {
                    scatter_times(
                        (self.data.values().as_slice(), self.data.n_columns()),
                        &load,
                        m,
                        x,
                        out.as_mut(),
                    );
                    let taken = left_out.view().transpose() * (left_out.view() * x);
                    let along = MatRef::from_row_major_slice(&mean, 1, d) * x;
                    for b in 0..x.ncols() {
                        for j in 0..d {
                            out[(j, b)] -= taken[(j, b)] / m + mean[j] * along[(0, b)];
                        }
                    }
                };
                let leading = krylov::leading_ritz_pairs(apply, d, k, PASSES, 0)?
                    .ok_or(Error::Numerical { what: "the leading components" })?;
                let variances = self.data.observed_variances().iter().zip(inverse);
                let all = n as f64 * variances.map(|(v, s)| v * s * s).sum::<f64>();
                let out: f64 = left_out.as_slice().iter().map(|y| y * y).sum();
                Ok(Axes { n_rows, total: (all - out) / m - dot(&mean, &mean), leading, mean, of_rows: None })
            }
            Products::Columns(moments) => {
                // Σ y yᵀ over the others, about their own mean.
                let mut s = moments.scatter();
                s.scale_both(&self.inverse_scale);
                let out = left_out.t_dot(left_out);
                let m = n_rows as f64;
                for i in 0..d {
                    for (j, v) in s.row_mut(i).iter_mut().enumerate() {
                        *v = (*v - out[(i, j)]) / m - mean[i] * mean[j];
                    }
                }
                Ok(Axes { n_rows, total: s.trace(), leading: leading(&s, k)?, mean, of_rows: None })
            }
            Products::Rows { products, .. } => {
                let kept: Vec<usize> = (0..n).filter(|i| rows.binary_search(i).is_err()).collect();
                // About the mean of the others: rows and columns of the products are centered.
                let mut s = Matrix::zeros(n_rows, n_rows);
                for (a, &i) in kept.iter().enumerate() {
                    let of_row = products.row(i);
                    s.row_mut(a).iter_mut().zip(&kept).for_each(|(s, &j)| *s = of_row[j]);
                }
                s.center_both();
                s.as_mut_slice().iter_mut().for_each(|v| *v /= n_rows as f64);
                let total = s.trace();
                let apply = |x: MatRef<'_, f64>, out: MatMut<'_, f64>| gemm(out, false, s.view(), x);
                let near = near.filter(|near| near.n_columns() >= k && n_rows >= krylov::SMALLEST);
                let start =
                    near.map(|near| Matrix::from_fn(n_rows, near.n_columns(), |a, b| near[(kept[a], b)]));
                let found =
                    start.map(|start| krylov::leading_ritz_pairs_near(apply, &start, k, PASSES_FROM_NEAR));
                let Eigen { mut values, vectors } = match found.transpose()?.flatten() {
                    Some(found) => found,
                    None => leading(&s, k)?,
                };
                // Directions without variance have no axis.
                let rank = values.iter().take_while(|v| **v > 1e-12 * values[0]).count();
                let rank = rank.min(n_rows - 1).min(k);
                values.truncate(rank);
                let mut of_rows = Matrix::zeros(n, rank);
                for (a, &i) in kept.iter().enumerate() {
                    of_rows.row_mut(i).copy_from_slice(&vectors.row(a)[..rank]);
                }
                // u = Yᵀ v / √(n λ), and what another row has along it in units of v: yᵀu / √(n λ) = yᵀYᵀ v / (n λ).
                let mut products_of_others = Matrix::zeros(rows.len(), n);
                for (k, &i) in rows.iter().enumerate() {
                    products_of_others.row_mut(k).copy_from_slice(products.row(i));
                }
                let mut along = products_of_others.dot(&of_rows);
                along.scale_columns(&values.iter().map(|v| 1.0 / (v * n_rows as f64)).collect::<Vec<_>>());
                for (k, &i) in rows.iter().enumerate() {
                    of_rows.row_mut(i).copy_from_slice(along.row(k));
                }
                let leading = Eigen { values, vectors: Matrix::zeros(0, 0) };
                Ok(Axes { n_rows, total, leading, mean, of_rows: Some(of_rows) })
            }
        }
    }
}

impl Scaled<'_> {
    /// The axes of each part as rows, one part below the other, padded with zeros to whole vectors. Those found from products of rows
    /// take one pass over the table for all: `u = Yᵀ v / √(n λ)`, where what the mean adds to Y is gone, since the entries of v
    /// sum to 0.
    fn directions(&self, found: &[(&[usize], Axes)]) -> Matrix {
        let all: usize = found.iter().map(|(_, axes)| axes.leading.values.len()).sum();
        let mut start = 0;
        if let Products::Rows { y, .. } = self.products {
            let mut right = Matrix::zeros(y.n_rows(), all);
            for (rows, axes) in found {
                let of_rows = axes.of_rows.as_ref().expect("found from products of rows");
                let lengths = axes.leading.values.iter().map(|v| 1.0 / (v * axes.n_rows as f64).sqrt());
                let lengths: Vec<f64> = lengths.collect();
                for i in (0..y.n_rows()).filter(|i| rows.binary_search(i).is_err()) {
                    let own = right.row_mut(i)[start..].iter_mut().zip(of_rows.row(i));
                    own.zip(&lengths).for_each(|((to, v), length)| *to = v * length);
                }
                start += lengths.len();
            }
            return right.t_dot(y);
        }
        let d = self.data.n_columns();
        let mut out = Matrix::zeros(all, d.next_multiple_of(LANES));
        for (_, axes) in found {
            for u in axes.leading.vectors.transpose().rows() {
                out.row_mut(start)[..d].copy_from_slice(u);
                start += 1;
            }
        }
        out
    }
}

impl Axes {
    /// Scores of the rows left out with those of 0 to `most` components that are asked for, and the sum of squares about the mean. Of
    /// many columns `every` eighth or so is scored, others in the next row: rows are the independent units.
    fn score(
        &self,
        directions: &[f64],
        left_out: &Matrix,
        unit: &[f64],
        (most, every): (usize, usize),
        asked: &dyn Fn(usize) -> bool,
    ) -> (Vec<Option<HeldOutRows>>, f64) {
        let kernel = Kernel::new(self, directions, unit, (most, every), asked);
        let along = kernel.along(left_out);
        let arch = pulp::Arch::new();
        let parts = pieces(left_out.n_rows(), 16, |rows| {
            arch.dispatch(Work { kernel: &kernel, left_out, along: &along, rows })
        });
        let squares = parts.iter().map(|part| part.1).sum();
        let all = |q: usize| concatenated(parts.iter().map(|(scores, _)| &scores[q]));
        ((0..=most).map(|q| asked(q).then(|| all(q))).collect(), squares)
    }
}

/// What the scores of all rows share. Rows of numbers are padded with zeros to whole vectors.
struct Kernel<'a> {
    axes: &'a Axes,
    /// `uⱼ` and `1 / λⱼ`.
    directions: &'a [f64],
    inverse_variance: Vec<f64>,
    /// `1 / σ_q²`
    inverse_noise: Vec<f64>,
    /// `1 / √[P_q]_jj`, for every q.
    sd: Matrix,
    /// What errors are multiplied by.
    unit: Vec<f64>,
    /// Of this many vectors of columns one is scored.
    every: usize,
    /// Numbers of components that are scored.
    asked: Vec<bool>,
    /// `½ Σ ln 2πs²` over what is scored, for every q and of each row that is scored in other columns than the one before it.
    ln_volumes: Vec<Vec<f64>>,
}

impl<'a> Kernel<'a> {
    fn new(
        axes: &'a Axes,
        directions: &'a [f64],
        unit: &[f64],
        (most, every): (usize, usize),
        asked: &dyn Fn(usize) -> bool,
    ) -> Self {
        let values = &axes.leading.values;
        let d = axes.mean.len();
        let known = values.len().min(most);
        let width = d.next_multiple_of(LANES);
        let directions = &directions[..known * width];
        let floor = LEAST_NOISE * axes.total / d as f64;
        let mut left = axes.total;
        let mut inverse_noise = Vec::with_capacity(most + 1);
        let mut sd = Matrix::zeros(most + 1, width);
        let inverse_variance: Vec<f64> = values[..known].iter().map(|v| 1.0 / v.max(floor)).collect();
        let (mut outside, mut inside) = (vec![1.0; d], vec![0.0; d]);
        let arch = pulp::Arch::new();
        for q in 0..=most {
            let mut axis = None;
            if (1..=known).contains(&q) {
                left -= values[q - 1];
                axis = Some((&directions[(q - 1) * width..][..d], inverse_variance[q - 1]));
            }
            inverse_noise.push(1.0 / (left / (d - q) as f64).max(floor));
            let (outside, inside, sd) = (&mut outside[..], &mut inside[..], &mut sd.row_mut(q)[..d]);
            arch.dispatch(Deviations { axis, inverse_noise: inverse_noise[q], outside, inside, sd });
        }
        let unit = (0..width).map(|j| if j < d { unit[j] } else { 0.0 }).collect();
        let (ln_volumes, asked) = (Vec::new(), (0..=most).map(asked).collect());
        let mut kernel =
            Self { axes, directions, inverse_variance, inverse_noise, sd, unit, every, asked, ln_volumes };
        // Logarithms take long: one for some vectors, of the product.
        let ln_volume = |sd: &[f64], i: usize| {
            let starts: Vec<usize> = kernel.scored(i).collect();
            let of_some = |starts: &[usize]| {
                let mut lanes = [1.0; LANES];
                for &start in starts {
                    let numbers = sd[start..d.min(start + LANES)].iter().zip(&kernel.unit[start..]);
                    lanes.iter_mut().zip(numbers).for_each(|(lane, (sd, unit))| *lane *= sd * unit);
                }
                let product: f64 = lanes.iter().product();
                // In units so large or small that the product leaves the range of numbers, each has its own.
                let columns = starts.iter().flat_map(|&start| start..d.min(start + LANES));
                let each = || columns.map(|j| (sd[j] * kernel.unit[j]).ln()).sum();
                if product.is_normal() { product.ln() } else { each() }
            };
            let n: usize = starts.iter().map(|start| LANES.min(d - start)).sum();
            0.5 * n as f64 * (2.0 * PI).ln() + starts.chunks(VECTORS).map(of_some).sum::<f64>()
        };
        let of_rows = |(q, sd): (usize, &[f64])| {
            if kernel.asked[q] { (0..every).map(|i| ln_volume(sd, i)).collect() } else { Vec::new() }
        };
        kernel.ln_volumes = kernel.sd.rows().enumerate().map(of_rows).collect();
        kernel
    }

    /// What rows, about the mean of the others, have along the directions.
    fn along(&self, left_out: &Matrix) -> Matrix {
        let (d, width, known) = (self.axes.mean.len(), self.sd.n_columns(), self.inverse_variance.len());
        let directions = MatRef::from_row_major_slice(self.directions, known, width);
        let directions = directions.subcols(0, d).transpose();
        let product = |rows: MatRef<'_, f64>| {
            let mut out = Matrix::zeros(rows.nrows(), directions.ncols());
            gemm(out.view_mut(), false, rows, directions);
            out
        };
        let mut along = product(left_out.view());
        let of_mean = product(MatRef::from_row_major_slice(&self.axes.mean, 1, d));
        for i in 0..along.n_rows() {
            along.row_mut(i).iter_mut().zip(of_mean.as_slice()).for_each(|(along, m)| *along -= m);
        }
        along
    }

    /// Where the vectors of columns begin that row `i` is scored in.
    #[inline(always)]
    fn scored(&self, i: usize) -> StepBy<Range<usize>> {
        (i % self.every * LANES..self.sd.n_columns()).step_by(self.every * LANES)
    }

    /// These columns.
    fn columns(&self, i: usize) -> impl Iterator<Item = usize> {
        let d = self.axes.mean.len();
        self.scored(i).flat_map(move |start| start..(start + LANES).min(d))
    }
}

/// `1 / √[P_q]_jj` with one axis more than before: `outside` is the diagonal of `I − U_q U_qᵀ`, `inside` that of `U_q Λ_q⁻¹ U_qᵀ`.
struct Deviations<'a> {
    axis: Option<(&'a [f64], f64)>,
    inverse_noise: f64,
    outside: &'a mut [f64],
    inside: &'a mut [f64],
    sd: &'a mut [f64],
}

impl pulp::WithSimd for Deviations<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let d = self.sd.len();
        let (outside, inside, sd) = (&mut self.outside[..d], &mut self.inside[..d], &mut self.sd[..d]);
        if let Some((u, inverse_variance)) = self.axis {
            let u = &u[..d];
            for j in 0..d {
                outside[j] -= u[j] * u[j];
                inside[j] += u[j] * u[j] * inverse_variance;
            }
        }
        for j in 0..d {
            sd[j] = 1.0 / (outside[j].max(0.0) * self.inverse_noise + inside[j]).sqrt();
        }
    }
}

/// Some of the rows.
struct Work<'a> {
    kernel: &'a Kernel<'a>,
    left_out: &'a Matrix,
    /// What they have along the directions.
    along: &'a Matrix,
    rows: Range<usize>,
}

impl pulp::WithSimd for Work<'_> {
    type Output = (Vec<HeldOutRows>, f64);

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> Self::Output {
        let Self { kernel, left_out, along, rows } = self;
        let width = kernel.sd.n_columns();
        let mut scores: Vec<HeldOutRows> =
            kernel.inverse_noise.iter().map(|_| HeldOutRows::new(rows.len())).collect();
        let mut squares = 0.0;
        let (mut y, mut inside) = (vec![0.0; width], vec![0.0; width]);
        for (i, row) in rows.enumerate() {
            let centered = left_out.row(row).iter().zip(&kernel.axes.mean);
            y.iter_mut().zip(centered).for_each(|(to, (y, m))| *to = y - m);
            let n_scored = kernel.columns(row).count();
            squares += kernel.columns(row).map(|j| (y[j] * kernel.unit[j]).powi(2)).sum::<f64>();
            // From y to (I − U Uᵀ) y, and U Λ⁻¹ Uᵀ y, where the row is scored.
            inside.fill(0.0);
            for (q, scores) in scores.iter_mut().enumerate() {
                if (1..=kernel.inverse_variance.len()).contains(&q) {
                    let u = &kernel.directions[(q - 1) * width..][..width];
                    let along = along[(row, q - 1)];
                    let weight = along * kernel.inverse_variance[q - 1];
                    for start in kernel.scored(row) {
                        let at = start..start + LANES;
                        let (y, inside, u) = (&mut y[at.clone()], &mut inside[at.clone()], &u[at]);
                        for l in 0..LANES {
                            y[l] -= along * u[l];
                            inside[l] += weight * u[l];
                        }
                    }
                }
                if !kernel.asked[q] {
                    continue;
                }
                let [crps, squared, distance] = losses(
                    kernel.scored(row),
                    &y,
                    &inside,
                    kernel.inverse_noise[q],
                    kernel.sd.row(q),
                    &kernel.unit,
                );
                scores.crps[i] = crps;
                scores.squared_error[i] = squared;
                scores.marginal[i] = -kernel.ln_volumes[q][row % kernel.every] - 0.5 * distance;
                scores.n_hidden[i] = n_scored;
            }
        }
        (scores, squares)
    }
}

/// Sums of CRPS, of squared errors and of squared errors over variances, of the cells of a row that are scored.
#[inline(always)]
fn losses(
    scored: StepBy<Range<usize>>,
    outside: &[f64],
    inside: &[f64],
    inverse_noise: f64,
    sd: &[f64],
    unit: &[f64],
) -> [f64; 3] {
    let mut sums = [[0.0; LANES]; 3];
    for start in scored {
        let at = start..start + LANES;
        let (outside, inside) = (&outside[at.clone()], &inside[at.clone()]);
        let (sd, unit) = (&sd[at.clone()], &unit[at]);
        for l in 0..LANES {
            let z = (outside[l] * inverse_noise + inside[l]) * sd[l];
            let sd = sd[l] * unit[l];
            let error = z * sd;
            sums[0][l] += sd * standard_crps(z);
            sums[1][l] += error * error;
            sums[2][l] += z * z;
        }
    }
    sums.map(|sums| sums.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Shape, simulate};

    #[test]
    fn what_rows_are_scored_in_adds_up_to_all_columns() {
        let whole = simulate::ppca(Shape { rows: 60, columns: 45, n_components: 3 }, 2).0;
        let complete = Complete::new(&whole, true, 0);
        let scaled = Scaled {
            data: &whole,
            inverse_scale: complete.inverse_scale.clone(),
            unit: (0..45).map(|j| 1.0 + 0.1 * f64::from(j)).collect(),
            products: &complete.products,
        };
        let axes = scaled.axes_without(&[0], &scaled.rows(&[0]), 5, None).unwrap();
        let found = [(&[0][..], axes)];
        let directions = scaled.directions(&found);
        let [(_, axes)] = found;
        // One row three times: each time another third of its columns.
        let thrice = scaled.rows(&[0, 0, 0]);
        let (all, squares) =
            axes.score(directions.as_slice(), &scaled.rows(&[0]), &scaled.unit, (5, 1), &|_| true);
        let (parts, in_parts) = axes.score(directions.as_slice(), &thrice, &scaled.unit, (5, 3), &|_| true);
        assert!((squares - in_parts).abs() < 1e-9 * squares);
        for (all, parts) in all.iter().flatten().zip(parts.iter().flatten()) {
            assert_eq!((all.n_hidden[0], parts.n_hidden.iter().sum::<usize>()), (45, 45));
            let sums =
                |r: &HeldOutRows| [&r.crps, &r.squared_error, &r.marginal].map(|v| v.iter().sum::<f64>());
            let (all, parts) = (sums(all), sums(parts));
            assert!(all.iter().zip(parts).all(|(a, b)| (a - b).abs() < 1e-9), "{all:?}, not {parts:?}");
        }
    }

    /// Few passes from the axes without another part are as good as a search of their own.
    #[test]
    fn axes_found_from_those_of_another_part_are_the_same() {
        let shape = Shape { rows: 300, columns: 500, n_components: 4 };
        let (data, _) = simulate::ppca(shape, 3);
        let complete = Complete::new(&data, false, 0);
        let scaled = Scaled {
            data: &data,
            inverse_scale: complete.inverse_scale.clone(),
            unit: vec![1.0; 500],
            products: &complete.products,
        };
        let axes = |fold: usize, near: Option<&Matrix>| {
            let rows = &complete.folds[fold];
            let found = [(&rows[..], scaled.axes_without(rows, &scaled.rows(rows), 8, near).unwrap())];
            let directions = scaled.directions(&found);
            let [(_, axes)] = found;
            (axes, directions)
        };
        let (first, _) = axes(0, None);
        let ((near, near_directions), (own, directions)) = (axes(1, first.of_rows.as_ref()), axes(1, None));
        for k in 0..4 {
            let (a, b) = (near.leading.values[k], own.leading.values[k]);
            assert!((a - b).abs() < 1e-6 * b, "{k}: {a} {b}");
            let along = dot(near_directions.row(k), directions.row(k));
            assert!((along.abs() - 1.0).abs() < 1e-6, "{k}: {along}");
        }
        // What is left is noise, of which both find nearly as much.
        let rest = |axes: &Axes| axes.leading.values[4..8].iter().sum::<f64>();
        assert!((rest(&near) / rest(&own) - 1.0).abs() < 0.03, "{} {}", rest(&near), rest(&own));
    }
}
