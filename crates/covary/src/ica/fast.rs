use super::{Contrast, Separation, Warning, Whitened, gaussian};
use crate::infer::options::{options, start, words};
use crate::infer::{Observer, Step, Termination};
use crate::linalg::{dot, gemm, normal, rows, thin_svd};
use crate::{Dataset, Error, Matrix};
use faer::{MatMut, MatRef};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Whether sources are sought together or one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// All at once, made orthonormal together: no source pays for the errors of another.
    Parallel,
    /// One after the other, each orthogonal to those before.
    Deflation,
}

options! {
    /// FastICA (Hyvärinen 1999): whitens the table and turns it until every source is as far from Gaussian
    /// as a [`Contrast`] can see.
    ///
    /// ```text
    /// B ← sym(1/N g(Y)ᵀ Z − diag(mean g′(Y)) B)      Y = Z Bᵀ      sym(B) = (B Bᵀ)^(−1/2) B
    /// ```
    ///
    /// ```
    /// use covary::{Dataset, Matrix, ica::{FastIca, amari_index}};
    /// // A saw-tooth and a sine, mixed.
    /// let source = |i: usize| [(i % 19) as f64 / 19.0, (i as f64 * 0.37).sin()];
    /// let mixing = Matrix::from_rows(&[[1.0, 0.6], [0.4, 1.0]]);
    /// let sources = Matrix::from_rows(&(0..2000).map(source).collect::<Vec<_>>());
    /// let found = FastIca::default().fit(&Dataset::new(sources.dot_t(&mixing))?)?;
    /// assert!(amari_index(&found.model.unmixing().dot(&mixing)) < 0.02);
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// By default: all sources at once by `ln cosh`, whose g is bounded and good for light and heavy tails alike. A
    /// tolerance of 1e-6 is an angle of 1.4e-3: the iteration converges fast, and is closer than that.
    #[derive(Debug, Clone, PartialEq)]
    pub struct FastIca {
        /// Number of sources; as many as the table has directions if `None`.
        pub n_components: Option<usize> = None,
        /// Together or one by one.
        pub algorithm: Algorithm = Algorithm::Parallel,
        /// What is far from Gaussian.
        pub contrast: Contrast = Contrast::LogCosh { a: 1.0 },
        /// Most steps; of [`Algorithm::Deflation`], for each source.
        pub max_iterations: usize = 500,
        /// Ends when no direction turns by as much: `1 − |bᵢ · bᵢ′|`. 0 makes all steps.
        pub tolerance: f64 = 1e-6,
        /// B at the start, q × q; random if `None`.
        pub start: Option<Matrix> = None,
        /// Seed of a random start.
        pub seed: u64 = 0,
        /// Whether to center and whiten the table; if not, it must be white already, and all its columns
        /// are used.
        pub whiten: bool = true,
    }
}

words!(Algorithm { Parallel = "parallel", Deflation = "deflation" }, "parallel or deflation");

start!(Option<Matrix>: "random", "random; a given start cannot be named");

impl FastIca {
    /// Separates the sources of a complete table.
    ///
    /// # Errors
    /// As [`fit_observed`](Self::fit_observed).
    pub fn fit(&self, data: &Dataset) -> Result<Separation, Error> {
        self.fit_observed(data, &mut ())
    }

    /// Separates the sources; `observer` is called after every step, its objective being minus the movement of
    /// the direction that moved most, and may end the work.
    ///
    /// # Errors
    /// [`Error::GapsInSources`], [`Error::TooFewRows`], [`Error::TooManyComponents`] beyond the table's
    /// size, [`Error::RankBelow`] beyond its rank, [`Error::AllConstant`], [`Error::OutOfScale`], [`Error::OutOfRange`] for an
    /// option, [`Error::WrongLength`] for a start that is not q × q.
    pub fn fit_observed(&self, data: &Dataset, observer: &mut dyn Observer) -> Result<Separation, Error> {
        if let Contrast::LogCosh { a } = self.contrast
            && !(1.0..=2.0).contains(&a)
        {
            return Err(Error::OutOfRange { name: "the slope a of ln cosh", value: a, bound: "from 1 to 2" });
        }
        self.turn(data, &mut |white, b| Ok(self.step(white, b)), observer)
    }

    /// As [`fit_observed`](Self::fit_observed) with a contrast of one's own instead of [`contrast`](Self::contrast).
    ///
    /// ```
    /// use covary::{Dataset, Matrix, ica::FastIca};
    /// let source = |i: usize| [(i % 19) as f64 / 19.0, (i as f64 * 0.37).sin()];
    /// let sources = Matrix::from_rows(&(0..2000).map(source).collect::<Vec<_>>());
    /// let table = Dataset::new(sources.dot_t(&Matrix::from_rows(&[[1.0, 0.6], [0.4, 1.0]])))?;
    /// // The kurtosis: g = y³, g′ = 3 y².
    /// let mut cube = |y: &Matrix| {
    ///     let mean_slope = |row: &[f64]| row.iter().map(|y| 3.0 * y * y).sum::<f64>() / row.len() as f64;
    ///     Ok((Matrix::from_fn(y.n_rows(), y.n_columns(), |i, j| y[(i, j)].powi(3)), y.rows().map(mean_slope).collect()))
    /// };
    /// let own = FastIca::default().fit_by(&table, &mut cube, &mut ())?;
    /// let named = FastIca { contrast: covary::ica::Contrast::Cube, ..FastIca::default() }.fit(&table)?;
    /// assert!((own.model.unmixing()[(0, 0)] - named.model.unmixing()[(0, 0)]).abs() < 1e-6);
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`fit_observed`](Self::fit_observed); those of the contrast; [`Error::WrongLength`] if its answer has
    /// another shape than was asked for.
    pub fn fit_by(
        &self,
        data: &Dataset,
        contrast: &mut OwnContrast<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Separation, Error> {
        let mut step = |white: &Whitened, b: &Matrix| {
            let (n, p) = (white.rows.n_rows(), b.n_rows());
            let (g, slopes) = contrast(&b.dot_t(&white.rows))?;
            let wrong = |what, expected, got| Err(Error::WrongLength { what, expected, got });
            if (g.n_rows(), g.n_columns()) != (p, n) {
                return wrong("values of the contrast", p * n, g.as_slice().len());
            }
            if slopes.len() != p {
                return wrong("mean slopes of the contrast", p, slopes.len());
            }
            let products = g.dot(&white.rows);
            let next = |i: usize, j: usize| products[(i, j)] / n as f64 - slopes[i] * b[(i, j)];
            let next = Matrix::from_fn(p, white.n_components(), next);
            match next.as_slice().iter().find(|v| !v.is_finite()) {
                Some(&value) => {
                    Err(Error::OutOfRange { name: "a value of the contrast", value, bound: "finite" })
                }
                None => Ok(next),
            }
        };
        self.turn(data, &mut step, observer)
    }

    fn turn(
        &self,
        data: &Dataset,
        step: &mut Turn<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Separation, Error> {
        if !(self.tolerance.is_finite() && self.tolerance >= 0.0) {
            let bound = "finite and not negative";
            return Err(Error::OutOfRange { name: "tolerance", value: self.tolerance, bound });
        }
        let white = if self.whiten {
            Whitened::new(data, self.n_components, "FastICA")?
        } else {
            Whitened::as_given(data, "FastICA")?
        };
        let start = self.start(white.n_components())?;
        let Turned { b, n_iterations, termination, left } = match self.algorithm {
            Algorithm::Parallel => self.parallel(&white, &start, step, observer)?,
            Algorithm::Deflation => self.deflation(&white, &start, step, observer)?,
        };
        let (model, ..) = white.unmixing(&b);
        let kurtosis = white.kurtosis(&model);
        let not_converged = (termination == Termination::IterationLimit).then_some(Warning::NotConverged {
            iterations: n_iterations,
            left,
            tolerance: self.tolerance,
        });
        let warnings =
            not_converged.into_iter().chain(white.dependent()).chain(gaussian(&kurtosis)).collect();
        Ok(Separation { model, kurtosis, n_iterations, termination, likelihood: None, warnings })
    }

    fn start(&self, q: usize) -> Result<Matrix, Error> {
        let Some(start) = &self.start else {
            return Ok(normal(q, q, &mut ChaCha8Rng::seed_from_u64(self.seed)));
        };
        for (what, got) in
            [("rows of the start", start.n_rows()), ("columns of the start", start.n_columns())]
        {
            if got != q {
                return Err(Error::WrongLength { what, expected: q, got });
            }
        }
        match start.as_slice().iter().find(|v| !v.is_finite()) {
            Some(&value) => Err(Error::OutOfRange { name: "an entry of the start", value, bound: "finite" }),
            None => Ok(start.clone()),
        }
    }

    fn parallel(
        &self,
        white: &Whitened,
        start: &Matrix,
        step: &mut Turn<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Turned, Error> {
        let q = white.n_components();
        let mut b = orthonormal(start)?;
        let mut left = f64::INFINITY;
        for iteration in 1..=self.max_iterations {
            let next = orthonormal(&step(white, &b)?)?;
            left = (0..q).map(|i| movement(next.row(i), b.row(i))).fold(0.0, f64::max);
            b = next;
            let told = observer.step(&Step { iteration, objective: -left });
            if left < self.tolerance {
                return Ok(Turned { b, n_iterations: iteration, termination: Termination::Converged, left });
            }
            if told.is_break() {
                return Ok(Turned {
                    b,
                    n_iterations: iteration,
                    termination: Termination::Interrupted,
                    left,
                });
            }
        }
        let n_iterations = self.max_iterations;
        Ok(Turned { b, n_iterations, termination: Termination::IterationLimit, left })
    }

    fn deflation(
        &self,
        white: &Whitened,
        start: &Matrix,
        step: &mut Turn<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Turned, Error> {
        let q = white.n_components();
        let mut b = Matrix::zeros(0, q);
        let mut turned = Turned {
            b: Matrix::zeros(0, q),
            n_iterations: 0,
            termination: Termination::Converged,
            left: 0.0,
        };
        for i in 0..q {
            let mut w = Matrix::from_rows(&[start.row(i)]);
            outside(&b, w.row_mut(0));
            let mut left = f64::INFINITY;
            for iteration in 1..=self.max_iterations {
                let mut next = step(white, &w)?;
                outside(&b, next.row_mut(0));
                left = movement(next.row(0), w.row(0));
                w = next;
                turned.n_iterations = turned.n_iterations.max(iteration);
                if observer.step(&Step { iteration, objective: -left }).is_break() {
                    // Half a basis is not an unmixing.
                    return Err(Error::Interrupted);
                }
                if left < self.tolerance {
                    break;
                }
            }
            if left >= self.tolerance {
                turned.termination = Termination::IterationLimit;
            }
            turned.left = turned.left.max(left);
            b = Matrix::from_rows(&b.rows().chain(w.rows()).collect::<Vec<_>>());
        }
        Ok(Turned { b, ..turned })
    }

    /// `1/N g(Y)ᵀ Z − diag(mean g′(Y)) B`, `Y = Z Bᵀ` [M 2.8.2].
    fn step(&self, white: &Whitened, b: &Matrix) -> Matrix {
        let (n, q, p) = (white.rows.n_rows() as f64, white.n_components(), b.n_rows());
        let origin = vec![0.0; p];
        let sums = white.sum(b, p * q + p, |y, z, sums| {
            let m = z.len() / q;
            let (mut g, mut slope) = (y.to_vec(), vec![0.0; y.len()]);
            self.contrast.apply(&mut g, &mut slope);
            let (products, slopes) = sums.split_at_mut(p * q);
            let g = MatRef::from_row_major_slice(&g, m, p);
            let products = MatMut::from_row_major_slice_mut(products, p, q);
            gemm(products, true, g.transpose(), MatRef::from_row_major_slice(z, m, q));
            rows::add_rows(&slope, &origin, slopes);
        });
        let (products, slopes) = sums.split_at(p * q);
        Matrix::from_fn(p, q, |i, j| (products[i * q + j] - slopes[i] * b[(i, j)]) / n)
    }
}

/// A contrast of one's own: of the sources Y, p × n, the values g(Y) in the same shape and for each source the
/// mean of g′ over the rows.
pub type OwnContrast<'a> = dyn FnMut(&Matrix) -> Result<(Matrix, Vec<f64>), Error> + 'a;

/// From B to what the next B is made of.
type Turn<'a> = dyn FnMut(&Whitened, &Matrix) -> Result<Matrix, Error> + 'a;

struct Turned {
    b: Matrix,
    n_iterations: usize,
    termination: Termination,
    left: f64,
}

/// `1 − |a · b|` of unit vectors as `½ ‖a ∓ b‖²`, which keeps its digits where they nearly agree.
fn movement(a: &[f64], b: &[f64]) -> f64 {
    let sign = dot(a, b).signum();
    0.5 * a.iter().zip(b).map(|(a, b)| (a - sign * b).powi(2)).sum::<f64>()
}

/// `(B Bᵀ)^(−1/2) B`: the orthogonal matrix nearest to B.
fn orthonormal(b: &Matrix) -> Result<Matrix, Error> {
    let svd = thin_svd(b)?;
    Ok(svd.u.dot_t(&svd.v))
}

/// What of `w` is orthogonal to the rows of `b`, at length 1.
fn outside(b: &Matrix, w: &mut [f64]) {
    // Twice, since the first time leaves what rounding of a long projection leaves.
    for _ in 0..2 {
        for row in b.rows() {
            let along = dot(row, w);
            w.iter_mut().zip(row).for_each(|(w, r)| *w -= along * r);
        }
        let length = dot(w, w).sqrt();
        if length > 0.0 {
            for w in w.iter_mut() {
                *w /= length;
            }
        }
    }
}
