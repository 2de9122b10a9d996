//! Cubic B-splines on clamped uniform knots [M 2.10].

use crate::linalg::Cholesky;
use crate::{Error, Matrix};

const DEGREE: usize = 3;
/// B-splines that differ from 0 at any one time.
pub(crate) const LOCAL: usize = DEGREE + 1;

/// Gauss–Legendre nodes in [−1, 1] and their weights: exact for polynomials up to degree 7.
const NODES: [(f64, f64); 4] = [
    (-0.861_136_311_594_052_6, 0.347_854_845_137_453_85),
    (-0.339_981_043_584_856_3, 0.652_145_154_862_546_2),
    (0.339_981_043_584_856_3, 0.652_145_154_862_546_2),
    (0.861_136_311_594_052_6, 0.347_854_845_137_453_85),
];

/// Cubic B-splines on an interval, their knots equally spaced and repeated at both ends. They sum to 1 everywhere.
///
/// ```
/// use covary::functional::Basis;
/// let basis = Basis::new(0.0, 10.0, 8)?;
/// let values = basis.row(3.7).unwrap();
/// assert_eq!(values.len(), 8);
/// assert!((values.iter().sum::<f64>() - 1.0).abs() < 1e-15);
/// assert!(basis.row(10.5).is_none());
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Basis {
    from: f64,
    to: f64,
    size: usize,
}

/// The splines that differ from 0 at a time: the place of the first, and their values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Local {
    pub(crate) first: usize,
    pub(crate) values: [f64; LOCAL],
}

impl Local {
    /// `φ(t)ᵀ c`.
    #[inline]
    pub(crate) fn dot(&self, coefficients: &[f64]) -> f64 {
        let c = &coefficients[self.first..self.first + LOCAL];
        self.values.iter().zip(c).map(|(v, c)| v * c).sum()
    }

    /// Adds `s φ(t)` to `out`.
    #[inline]
    pub(crate) fn add_to(&self, s: f64, out: &mut [f64]) {
        let out = &mut out[self.first..self.first + LOCAL];
        out.iter_mut().zip(&self.values).for_each(|(o, v)| *o += s * v);
    }
}

impl Basis {
    /// Fewest splines: one polynomial.
    pub const FEWEST: usize = LOCAL;
    /// Most splines: their products are a matrix.
    pub const MOST: usize = 1000;

    /// `size` splines from one time to another.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for fewer than 4 splines or more than 1000, or ends that are not finite and in order.
    pub fn new(from: f64, to: f64, size: usize) -> Result<Self, Error> {
        if !(Self::FEWEST..=Self::MOST).contains(&size) {
            let bound = "from 4 to 1000";
            return Err(Error::OutOfRange { name: "basis_size", value: size as f64, bound });
        }
        if !(from.is_finite() && to.is_finite() && from < to && (to - from).is_finite()) {
            let bound = "finite and after its beginning";
            return Err(Error::OutOfRange { name: "the end of the interval of time", value: to, bound });
        }
        Ok(Self { from, to, size })
    }

    /// The first and the last time.
    pub fn interval(&self) -> (f64, f64) {
        (self.from, self.to)
    }

    /// How many splines.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Length of the interval.
    pub fn length(&self) -> f64 {
        self.to - self.from
    }

    /// All splines at a time; `None` outside the interval.
    pub fn row(&self, time: f64) -> Option<Vec<f64>> {
        let local = self.at(time)?;
        let mut row = vec![0.0; self.size];
        local.add_to(1.0, &mut row);
        Some(row)
    }

    /// Equally spaced times from one end of the interval to the other.
    pub fn grid(&self, n: usize) -> Vec<f64> {
        let last = n.max(2) - 1;
        let at = |i: usize| {
            if i == last { self.to } else { self.from + self.length() * i as f64 / last as f64 }
        };
        (0..=last).map(at).collect()
    }

    fn spans(&self) -> usize {
        self.size - DEGREE
    }

    /// In units of one span: the splines of this degree have knots at whole numbers, those at the ends repeated.
    fn knot(&self, degree: usize, i: usize) -> f64 {
        i.saturating_sub(degree).min(self.spans()) as f64
    }

    /// The splines that differ from 0 at a time; `None` outside the interval.
    pub(crate) fn at(&self, time: f64) -> Option<Local> {
        if !(self.from..=self.to).contains(&time) {
            return None;
        }
        let u = (time - self.from) / self.length() * self.spans() as f64;
        let span = (u.floor() as usize).min(self.spans() - 1);
        let mut values = [0.0; LOCAL];
        self.evaluate(DEGREE, span, u, &mut values);
        Some(Local { first: span, values })
    }

    /// The `degree + 1` splines of a degree that differ from 0 in a span, by the recursion of Cox and de Boor.
    fn evaluate(&self, degree: usize, span: usize, u: f64, values: &mut [f64]) {
        let knot = |i: usize| self.knot(degree, i);
        let at = span + degree;
        values[0] = 1.0;
        for k in 1..=degree {
            let mut saved = 0.0;
            for r in 0..k {
                let (right, left) = (knot(at + r + 1), knot(at + 1 + r - k));
                let part = values[r] / (right - left);
                values[r] = saved + (right - u) * part;
                saved = (u - left) * part;
            }
            values[k] = saved;
        }
    }

    /// `∫ b bᵀ du` of the splines of a degree, over spans of unit length.
    fn unit_gram(&self, degree: usize) -> Matrix {
        let n = self.spans() + degree;
        let mut gram = Matrix::zeros(n, n);
        for span in 0..self.spans() {
            for (node, weight) in NODES {
                let mut values = [0.0; LOCAL];
                self.evaluate(degree, span, span as f64 + 0.5 * (node + 1.0), &mut values);
                for (i, a) in values[..=degree].iter().enumerate() {
                    for (j, b) in values[..=degree].iter().enumerate() {
                        gram[(span + i, span + j)] += 0.5 * weight * a * b;
                    }
                }
            }
        }
        gram
    }

    /// `J = ∫ φ φᵀ dt`.
    pub fn gram(&self) -> Matrix {
        let mut gram = self.unit_gram(DEGREE);
        let span = self.length() / self.spans() as f64;
        gram.as_mut_slice().iter_mut().for_each(|v| *v *= span);
        gram
    }

    /// `Ω = ∫ φ″ φ″ᵀ dt`, of which straight lines are the null space.
    pub fn penalty(&self) -> Matrix {
        let root = self.curvature();
        root.t_dot(&root)
    }

    /// R with `Ω = RᵀR`, so that `‖R v‖²` is the roughness of a nearly straight line with all its digits.
    pub(super) fn curvature(&self) -> Matrix {
        // The second derivative of a cubic spline is a linear one: its coefficients are divided differences.
        let differences = |degree: usize| {
            let n = self.spans() + degree;
            Matrix::from_fn(n - 1, n, |i, j| {
                let width = self.knot(degree, i + degree + 1) - self.knot(degree, i + 1);
                match j {
                    _ if j == i => -(degree as f64) / width,
                    _ if j == i + 1 => degree as f64 / width,
                    _ => 0.0,
                }
            })
        };
        let second = differences(DEGREE - 1).dot(&differences(DEGREE));
        let gram = Cholesky::new(&self.unit_gram(1)).expect("splines are independent");
        let mut root = gram.lower().t_dot(&second);
        // A derivative for each span, twice, squared, and one integral.
        let span = self.length() / self.spans() as f64;
        let scale = span.powi(3).sqrt().recip();
        root.as_mut_slice().iter_mut().for_each(|v| *v *= scale);
        root
    }

    /// `∫ φ dt`.
    pub(crate) fn integrals(&self) -> Vec<f64> {
        // The splines sum to 1.
        self.gram().rows().map(|row| row.iter().sum()).collect()
    }
}
