use super::Canonical;
use crate::linalg::{canonical_signs, eigen, rows::center, thin_svd};
use crate::{CentralMoments, Dataset, Error, Matrix};
use std::ops::Range;

/// Canonical correlations of two complete views of the same rows.
///
/// ```text
/// Sxx^(−½) Sxy Syy^(−½) = U diag(ρ) Vᵀ      A = Sxx^(−½) U      B = Syy^(−½) V
/// ```
///
/// Views are whitened by their full covariance, hence ρ does not change under any invertible map of a
/// view's columns. A view with as many columns as rows, or with columns that are sums of others, has no
/// such root: give a `ridge` or a `rank`.
///
/// ```
/// use covary::{Dataset, Matrix, views::CanonicalCorrelation};
/// let x = Matrix::from_fn(40, 2, |i, j| ((i * (j + 3)) as f64).sin());
/// let y = Matrix::from_fn(40, 2, |i, j| if j == 0 { 5.0 - 2.0 * x[(i, 1)] } else { (i as f64).cos() });
/// let found = CanonicalCorrelation::default().fit(&Dataset::new(x)?, &Dataset::new(y)?)?;
/// assert!((found.correlations()[0] - 1.0).abs() < 1e-12);        // one column of y is one of x
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CanonicalCorrelation {
    /// Number of pairs; as many as the smaller view has directions if `None`.
    pub n_components: Option<usize>,
    /// Added to the diagonal of each view's covariance, as a share of its mean variance. It depends on the
    /// units of the columns.
    pub ridge: f64,
    /// Principal components that each view is first reduced to; all columns if `None`.
    pub rank: Option<usize>,
}

/// Smallest ratio of eigenvalues of a correlation matrix with which squares are precise enough: ρ then has
/// an error of 1e-10 or less.
const WELL_CONDITIONED: f64 = 1e-6;
/// Where there is nothing but the covariance, as much as rounding leaves of a zero.
const INVERTIBLE: f64 = 1e-13;
/// Directions with a standard deviation below this share of the largest count as none.
const LEAST_DEVIATION: f64 = 1e-10;

impl CanonicalCorrelation {
    /// The canonical variates of two views.
    ///
    /// # Errors
    /// [`Error::WrongLength`] unless the views have the same number of rows, [`Error::HasGaps`],
    /// [`Error::TooFewRows`], [`Error::SingularView`] for a view whose covariance has no inverse,
    /// [`Error::TooManyComponents`] beyond the smaller view, [`Error::OutOfRange`] for an option.
    pub fn fit(&self, x: &Dataset, y: &Dataset) -> Result<Canonical, Error> {
        same_rows(x, y)?;
        let n = x.n_rows();
        if n < 2 {
            return Err(Error::TooFewRows { rows: n });
        }
        if !(self.ridge.is_finite() && self.ridge >= 0.0) {
            let bound = "finite and not negative";
            return Err(Error::OutOfRange { name: "ridge", value: self.ridge, bound });
        }
        for data in [x, y] {
            if !data.is_complete() {
                return Err(Error::HasGaps { method: "canonical correlation", gaps: data.n_gaps() });
            }
        }
        let (dx, dy) = (x.n_columns(), y.n_columns());
        let both = Matrix::from_fn(n, dx + dy, |i, j| if j < dx { x.row(i)[j] } else { y.row(i)[j - dx] });
        let moments = CentralMoments::of(&Dataset::new(both)?)?;
        self.of_moments(n, moments.mean(), &moments.covariance(), (dx, Some([x, y])))
    }

    /// The canonical variates of a covariance, whose first `dx` columns are the first view: of a model, or of a
    /// table with gaps whose covariance was fitted to `n_rows` rows.
    ///
    /// # Errors
    /// [`Error::WrongLength`] unless mean and covariance fit each other, [`Error::EmptyView`] unless both views
    /// have columns, and as [`fit`](Self::fit).
    pub fn of_covariance(
        &self,
        n_rows: usize,
        mean: &[f64],
        covariance: &Matrix,
        dx: usize,
    ) -> Result<Canonical, Error> {
        let d = mean.len();
        for (what, got) in [
            ("rows of the covariance", covariance.n_rows()),
            ("columns of the covariance", covariance.n_columns()),
        ] {
            if got != d {
                return Err(Error::WrongLength { what, expected: d, got });
            }
        }
        if dx == 0 || dx >= d {
            return Err(Error::EmptyView { view: if dx == 0 { 1 } else { 2 } });
        }
        if n_rows < 2 {
            return Err(Error::TooFewRows { rows: n_rows });
        }
        self.of_moments(n_rows, mean, covariance, (dx, None))
    }

    fn of_moments(
        &self,
        n: usize,
        mean: &[f64],
        s: &Matrix,
        (dx, rows): (usize, Option<[&Dataset; 2]>),
    ) -> Result<Canonical, Error> {
        let dy = mean.len() - dx;
        let block = |rows: Range<usize>, columns: Range<usize>| {
            Matrix::from_fn(rows.len(), columns.len(), |i, j| s[(rows.start + i, columns.start + j)])
        };
        let views = [0..dx, dx..dx + dy];
        let mut roots = Vec::with_capacity(2);
        for (view, columns) in views.iter().enumerate() {
            let covariance = block(columns.clone(), columns.clone());
            let own = rows.map(|rows| (rows[view], &mean[columns.clone()]));
            roots.push(self.root(view, n, own, covariance)?);
        }
        let (rx, ry) = (&roots[0], &roots[1]);
        let cross = match rows {
            Some(all) if rx.white.is_some() || ry.white.is_some() => {
                // One view needs the precision of its own rows, so both are taken by theirs.
                let white = |root: &Root, view: usize| match &root.white {
                    Some(white) => white.clone(),
                    None => centered(all[view], &mean[views[view].clone()]).dot(&root.whitening),
                };
                let mut cross = white(rx, 0).t_dot(&white(ry, 1));
                cross.as_mut_slice().iter_mut().for_each(|v| *v /= n as f64);
                cross
            }
            _ => rx.whitening.t_dot(&block(0..dx, dx..dx + dy)).dot(&ry.whitening),
        };
        let room = cross.n_rows().min(cross.n_columns());
        let k = self.n_components.unwrap_or(room);
        if k > room {
            return Err(Error::TooManyComponents { asked: k, rows: n, columns: dx.min(dy), max: room });
        }
        let svd = thin_svd(&cross)?;
        let mut a = rx.whitening.dot(&svd.u.first_columns(k));
        let mut b = ry.whitening.dot(&svd.v.first_columns(k));
        let flips = canonical_signs(&mut a);
        b.scale_columns(&flips);
        let [covariance_x, covariance_y] = [rx.covariance.clone(), ry.covariance.clone()];
        let plain = self.ridge == 0.0 && rx.whitening.n_columns() == dx && ry.whitening.n_columns() == dy;
        Ok(Canonical {
            n_rows: n,
            means: [mean[..dx].to_vec(), mean[dx..].to_vec()],
            covariances: [covariance_x, covariance_y],
            weights: [a, b],
            correlations: svd.s[..k].iter().map(|r| r.min(1.0)).collect(),
            ln_det: plain.then_some(rx.ln_det + ry.ln_det),
        })
    }

    /// The white rows of both views, each taken by itself: no permutation of rows changes them.
    pub(super) fn white_views(&self, x: &Dataset, y: &Dataset) -> Result<[Matrix; 2], Error> {
        let white = |(view, data): (usize, &Dataset)| {
            let moments = CentralMoments::of(data)?;
            let root = self.root(view, data.n_rows(), Some((data, moments.mean())), moments.covariance())?;
            Ok(match root.white {
                Some(white) => white,
                None => centered(data, moments.mean()).dot(&root.whitening),
            })
        };
        Ok([white((0, x))?, white((1, y))?])
    }

    /// The root of a view's covariance, by its eigenpairs where they are precise enough, else by the singular
    /// values of its rows about their mean, if they are at hand.
    fn root(
        &self,
        view: usize,
        n: usize,
        rows: Option<(&Dataset, &[f64])>,
        mut s: Matrix,
    ) -> Result<Root, Error> {
        let d = s.n_rows();
        if self.rank == Some(0) {
            return Err(Error::OutOfRange { name: "rank", value: 0.0, bound: "1 or more" });
        }
        // Units do not matter without a ridge or a rank, and equal ones keep most digits.
        let unit: Vec<f64> = if self.ridge > 0.0 || self.rank.is_some() {
            vec![1.0; d]
        } else {
            (0..d).map(|j| s[(j, j)].sqrt()).collect()
        };
        let singular = |rank: usize| Error::SingularView { view: view + 1, rank, columns: d, rows: n };
        if unit.contains(&0.0) {
            return Err(singular(unit.iter().filter(|u| **u > 0.0).count()));
        }
        let inverse: Vec<f64> = unit.iter().map(|u| 1.0 / u).collect();
        let extra = self.ridge * s.trace() / d as f64;
        (0..d).for_each(|j| s[(j, j)] += extra);
        let mut standard = s.clone();
        standard.scale_both(&inverse);
        let found = eigen(&standard)?;
        let kept = self.rank.unwrap_or(d);
        if rows.is_some() && kept > d.min(n - 1) && self.ridge == 0.0 {
            return Err(singular(d.min(n - 1)));
        }
        let kept = kept.min(d);
        let units: f64 = 2.0 * unit.iter().map(|u| u.ln()).sum::<f64>();
        let least = if rows.is_some() { WELL_CONDITIONED } else { INVERTIBLE };
        if found.values[kept - 1] > least * found.values[0] {
            let mut whitening = found.vectors.first_columns(kept);
            let length = |v: &f64| 1.0 / v.sqrt();
            whitening.scale_columns(&found.values[..kept].iter().map(length).collect::<Vec<_>>());
            whitening.scale_rows(&inverse);
            let ln_det = units + found.values.iter().map(|v| v.ln()).sum::<f64>();
            return Ok(Root { covariance: s, whitening, white: None, ln_det });
        }
        let Some((data, mean)) = rows else {
            let above = |v: &&f64| **v > INVERTIBLE * found.values[0];
            return Err(singular(found.values.iter().take_while(above).count()));
        };
        // The rows again, with √(N extra) I below them for the ridge.
        let centered = centered(data, mean);
        let below = if extra > 0.0 { d } else { 0 };
        let pseudo = (extra * n as f64).sqrt();
        let rows = Matrix::from_fn(n + below, d, |i, j| match i {
            i if i < n => centered[(i, j)] * inverse[j],
            i if i - n == j => pseudo,
            _ => 0.0,
        });
        let svd = thin_svd(&rows)?;
        let rank = svd.s.iter().take_while(|v| **v > LEAST_DEVIATION * svd.s[0]).count();
        if rank < kept {
            return Err(singular(rank));
        }
        let root_n = (n as f64).sqrt();
        let mut whitening = svd.v.first_columns(kept);
        whitening.scale_columns(&svd.s[..kept].iter().map(|v| root_n / v).collect::<Vec<_>>());
        whitening.scale_rows(&inverse);
        let white = Matrix::from_fn(n, kept, |i, j| root_n * svd.u[(i, j)]);
        let ln_det = units + svd.s.iter().map(|v| 2.0 * (v / root_n).ln()).sum::<f64>();
        Ok(Root { covariance: s, whitening, white: Some(white), ln_det })
    }
}

struct Root {
    /// S, with the ridge.
    covariance: Matrix,
    /// K, d × r, with `Kᵀ S K = I`.
    whitening: Matrix,
    /// The white rows, where they were needed.
    white: Option<Matrix>,
    /// ln |S|.
    ln_det: f64,
}

fn centered(data: &Dataset, mean: &[f64]) -> Matrix {
    let mut out = Matrix::zeros(data.n_rows(), mean.len());
    center(data.values().as_slice(), mean, &vec![1.0; mean.len()], out.as_mut_slice());
    out
}

pub(super) fn same_rows(x: &Dataset, y: &Dataset) -> Result<(), Error> {
    let (expected, got) = (x.n_rows(), y.n_rows());
    if expected == got {
        Ok(())
    } else {
        Err(Error::WrongLength { what: "rows of the second view", expected, got })
    }
}
