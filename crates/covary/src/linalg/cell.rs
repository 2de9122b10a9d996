//! The two precisions a table comes in.
//!
//! Models, their answers and all small matrices are double. What may be single is the table as it is read, and the
//! products that touch every cell of it: runs of at most [`RUN`] terms, added up in double.

use super::{Matrix, add_gram_lower, add_product_lower, gemm, gram, rows};
use faer::traits::RealField;
use faer::{MatMut, MatRef};

/// Terms of a product that are added in single precision before they go into a sum in double.
const RUN: usize = 256;

/// A cell of a table, and a precision to make products in.
pub(crate) trait Cell: RealField + Copy + Send + Sync {
    /// Unit of the rounding that products show; 0 in double, which others are held against.
    const ROUNDING: f64;
    /// Terms of a product that are rounded one after the other.
    const RUN: usize;
    /// Largest angle to the exact subspace (radians) accepted from an iteration: 6e-8 and 6e-5 degrees.
    const MAX_ANGLE: f64;
    /// Fewest rows of a block, so that the sums in double cost little beside the products.
    const LEAST_ROWS: usize;
    /// Cells that are read behind a block of rows, whatever they are.
    const BEHIND: usize;
    const ONE: Self;

    fn wide(self) -> f64;
    fn of(wide: f64) -> Self;
    fn is_gap(self) -> bool;
    fn is_number(self) -> bool;

    /// `out ← out + A B`
    fn add_product(out: &mut Matrix, a: MatRef<'_, Self>, b: MatRef<'_, Self>, part: &mut Vec<Self>);

    /// Adds `Aᵀ A` to the lower triangle of `out`, A being `n_rows` rows, row-major, and [`BEHIND`](Self::BEHIND) cells behind them.
    fn add_gram(out: &mut Matrix, rows: &[Self], n_rows: usize);

    /// Adds `A Aᵀ` to the lower triangle of `out`, A being rows of `length` cells, a multiple of 64, one every `pitch` cells.
    fn add_outer(out: &mut Matrix, rows: &[Self], pitch: usize, length: usize);

    /// The same cells, if they have this precision.
    fn these<C: Cell>(cells: &[C]) -> Option<&[Self]>;
    fn single(cells: &[Self]) -> Option<&[f32]>;
    fn double(cells: &[Self]) -> Option<&[f64]>;
}

impl Cell for f64 {
    const ROUNDING: f64 = 0.0;
    const RUN: usize = usize::MAX;
    const MAX_ANGLE: f64 = 1e-9;
    const LEAST_ROWS: usize = 1;
    const BEHIND: usize = 0;
    const ONE: Self = 1.0;

    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }

    #[inline(always)]
    fn of(wide: f64) -> Self {
        wide
    }

    #[inline(always)]
    fn is_gap(self) -> bool {
        self.is_nan()
    }

    #[inline(always)]
    fn is_number(self) -> bool {
        self.is_finite()
    }

    fn add_product(out: &mut Matrix, a: MatRef<'_, Self>, b: MatRef<'_, Self>, _: &mut Vec<Self>) {
        gemm(out.view_mut(), true, a, b);
    }

    fn add_gram(out: &mut Matrix, rows: &[Self], n_rows: usize) {
        let d = out.n_columns();
        add_gram_lower(out.view_mut(), MatRef::from_row_major_slice(&rows[..n_rows * d], n_rows, d));
    }

    fn add_outer(out: &mut Matrix, rows: &[Self], pitch: usize, length: usize) {
        let a = MatRef::from_row_major_slice_with_stride(rows, out.n_rows(), length, pitch);
        add_product_lower(out.view_mut(), a, a.transpose());
    }

    fn these<C: Cell>(cells: &[C]) -> Option<&[Self]> {
        C::double(cells)
    }

    fn single(_: &[Self]) -> Option<&[f32]> {
        None
    }

    fn double(cells: &[Self]) -> Option<&[f64]> {
        Some(cells)
    }
}

impl Cell for f32 {
    const ROUNDING: f64 = f32::EPSILON as f64 / 2.0;
    const RUN: usize = RUN;
    const MAX_ANGLE: f64 = 1e-6;
    const LEAST_ROWS: usize = RUN;
    const BEHIND: usize = gram::BEHIND;
    const ONE: Self = 1.0;

    #[inline(always)]
    fn wide(self) -> f64 {
        f64::from(self)
    }

    #[inline(always)]
    fn of(wide: f64) -> Self {
        wide as Self
    }

    #[inline(always)]
    fn is_gap(self) -> bool {
        self.is_nan()
    }

    #[inline(always)]
    fn is_number(self) -> bool {
        self.is_finite()
    }

    fn add_product(out: &mut Matrix, a: MatRef<'_, Self>, b: MatRef<'_, Self>, part: &mut Vec<Self>) {
        let (n, m) = (out.n_rows(), out.n_columns());
        part.resize(n * m, 0.0);
        for start in (0..a.ncols()).step_by(RUN) {
            let length = RUN.min(a.ncols() - start);
            let product = MatMut::from_row_major_slice_mut(part, n, m);
            gemm(product, false, a.subcols(start, length), b.subrows(start, length));
            rows::add_wide(out.as_mut_slice(), part);
        }
    }

    fn add_gram(out: &mut Matrix, rows: &[Self], n_rows: usize) {
        gram::add_single(out, rows, n_rows, RUN);
    }

    fn add_outer(out: &mut Matrix, rows: &[Self], pitch: usize, length: usize) {
        gram::add_outer_single(out, rows, pitch, length);
    }

    fn these<C: Cell>(cells: &[C]) -> Option<&[Self]> {
        C::single(cells)
    }

    fn single(cells: &[Self]) -> Option<&[f32]> {
        Some(cells)
    }

    fn double(_: &[Self]) -> Option<&[f64]> {
        None
    }
}
