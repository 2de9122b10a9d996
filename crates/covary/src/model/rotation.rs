//! Rotations of loadings towards a simple structure [M 1.6.5].
//!
//! `W` and `W R` describe the same density as long as the scores move along, so a rotation is chosen
//! for the reader: each column should load on few factors.

use super::LinearGaussian;
use crate::linalg::{Cholesky, canonical_signs, inverse, normal, thin_svd};
use crate::{Error, Matrix};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// What makes loadings simple. `L = A R` are the rotated loadings, d × q.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rotation {
    /// Orthogonal; maximizes `Σₖ [Σᵢ L⁴ᵢₖ − (Σᵢ L²ᵢₖ)²/d]`, the variance of the squared loadings
    /// within each factor.
    Varimax {
        /// Divide each row by its length while rotating, so that columns with small communality
        /// count as much as the others (Kaiser). The usual choice.
        kaiser: bool,
    },
    /// Orthogonal; maximizes `Σ L⁴`: each row on few factors, often with one general factor.
    Quartimax,
    /// Orthogonal; varimax with `q/2` times the second term: spreads variance evenly over factors.
    Equamax,
    /// Oblique; the least-squares fit to the signed `power`-th powers of the Kaiser varimax
    /// loadings. 4 is the usual power.
    Promax {
        /// Power of the target, above 1.
        power: f64,
    },
    /// Oblique; minimizes `¼ Σ_{j≠k} [Σᵢ L²ᵢⱼ L²ᵢₖ − γ/d Σᵢ L²ᵢⱼ Σᵢ L²ᵢₖ]` (direct oblimin). γ = 0
    /// (quartimin) is the usual choice; larger values give more correlated factors.
    Oblimin {
        /// γ, at most 0.8: beyond it the criterion has no minimum as a rule.
        gamma: f64,
    },
}

impl Rotation {
    /// The names of the rotations, each with its usual parameter.
    pub const NAMES: &[&str] = &["varimax", "quartimax", "equamax", "promax", "oblimin"];

    /// The rotation of that name: varimax with Kaiser's weights, promax to the fourth power, oblimin with
    /// γ = 0.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "varimax" => Some(Self::Varimax { kaiser: true }),
            "quartimax" => Some(Self::Quartimax),
            "equamax" => Some(Self::Equamax),
            "promax" => Some(Self::Promax { power: 4.0 }),
            "oblimin" => Some(Self::Oblimin { gamma: 0.0 }),
            _ => None,
        }
    }
}

/// How hard to look: rotation criteria have several local optima.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RotationSearch {
    /// Random orthogonal starts besides the given loadings; the best end is kept.
    pub random_starts: usize,
    /// Their seed.
    pub seed: u64,
}

impl Default for RotationSearch {
    fn default() -> Self {
        Self { random_starts: 10, seed: 0 }
    }
}

/// Rotated loadings, by decreasing column sum of squares, in each column the largest entry positive.
#[derive(Debug, Clone, PartialEq)]
pub struct Rotated {
    /// `L = A R`.
    pub loadings: Matrix,
    /// `R`, q × q.
    pub transform: Matrix,
    /// `Φ = (Rᵀ R)⁻¹`, unit diagonal; the identity for orthogonal rotations. `L Φ Lᵀ = A Aᵀ`.
    pub factor_correlations: Matrix,
}

impl Rotated {
    /// Scores that go with the rotated loadings, `R⁻¹ x` for every row of `scores`.
    ///
    /// ```
    /// use covary::{model::{rotate, Rotation, RotationSearch}, Matrix};
    /// let a = Matrix::from_rows(&[[0.8, 0.3], [0.7, 0.1], [0.4, 0.6], [0.2, 0.7]]);
    /// let rotated = rotate(&a, &Rotation::Oblimin { gamma: 0.0 }, &RotationSearch::default())?;
    /// let x = Matrix::from_rows(&[[1.0, -2.0]]);
    /// let (before, after) = (x.dot_t(&a), rotated.scores(&x)?.dot_t(&rotated.loadings));
    /// assert!((before[(0, 3)] - after[(0, 3)]).abs() < 1e-12);   // the rows they describe are the same
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::WrongLength`] unless `scores` has q columns.
    pub fn scores(&self, scores: &Matrix) -> Result<Matrix, Error> {
        self.check(scores)?;
        // Φ = R⁻¹ R⁻ᵀ, so R⁻¹ = Φ Rᵀ and nothing is left to invert.
        Ok(scores.dot(&self.transform).dot(&self.factor_correlations))
    }

    /// The scores as they were before, `R z` for every row of rotated scores.
    ///
    /// # Errors
    /// [`Error::WrongLength`] unless `scores` has q columns.
    pub fn unturned(&self, scores: &Matrix) -> Result<Matrix, Error> {
        self.check(scores)?;
        Ok(scores.dot_t(&self.transform))
    }

    fn check(&self, scores: &Matrix) -> Result<(), Error> {
        match (self.transform.n_rows(), scores.n_columns()) {
            (expected, got) if expected == got => Ok(()),
            (expected, got) => Err(Error::WrongLength { what: "scores per row", expected, got }),
        }
    }

    /// Covariance of such scores, `R⁻¹ S R⁻ᵀ` where `S` is that of the scores before.
    ///
    /// # Panics
    /// If `covariance` is not q × q.
    #[must_use]
    pub fn score_covariance(&self, covariance: &Matrix) -> Matrix {
        let inverse = self.factor_correlations.dot_t(&self.transform);
        inverse.dot(covariance).dot_t(&inverse)
    }

    /// From any `R`: orders, signs, and works out what follows from it.
    fn new(loadings: &Matrix, transform: &Matrix, factor_correlations: &Matrix) -> Self {
        let turned = loadings.dot(transform);
        let q = transform.n_columns();
        let weight: Vec<f64> = (0..q).map(|k| turned.column(k).iter().map(|v| v * v).sum()).collect();
        let mut order: Vec<usize> = (0..q).collect();
        order.sort_by(|&a, &b| weight[b].total_cmp(&weight[a]));
        let pick = |m: &Matrix| Matrix::from_fn(m.n_rows(), q, |i, k| m[(i, order[k])]);
        let mut loadings = pick(&turned);
        let flips = canonical_signs(&mut loadings);
        let mut transform = pick(transform);
        transform.scale_columns(&flips);
        let factor_correlations =
            Matrix::from_fn(q, q, |j, k| flips[j] * flips[k] * factor_correlations[(order[j], order[k])]);
        Self { loadings, transform, factor_correlations }
    }
}

/// Rotates the loadings of a model in standard deviations of each column, `Wⱼ / √Cⱼⱼ`, as is usual, so
/// that units do not matter; the rotated loadings are given back in the units of the columns.
///
/// ```
/// use covary::{model::{rotate_model, Rotation, RotationSearch}, LinearGaussian, Matrix, Noise};
/// let model = |unit: f64| {
///     let w = Matrix::from_rows(&[[0.8 * unit, 0.3 * unit], [0.7, 0.1], [0.4, 0.6], [0.2, 0.7]]);
///     LinearGaussian::new(w, vec![0.0; 4], Noise::Diagonal(vec![0.3 * unit * unit, 0.4, 0.4, 0.3]))
/// };
/// let rotated = |unit| rotate_model(&model(unit)?, &Rotation::Promax { power: 4.0 }, &RotationSearch::default());
/// let (meters, millimeters) = (rotated(1.0)?, rotated(1000.0)?);
/// assert!((1000.0 * meters.loadings[(0, 0)] - millimeters.loadings[(0, 0)]).abs() < 1e-6);
/// assert!((meters.factor_correlations[(0, 1)] - millimeters.factor_correlations[(0, 1)]).abs() < 1e-9);
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// As [`rotate`], and [`Error::Unsupported`] for a model whose [axes are fixed](LinearGaussian::with_fixed_axes).
pub fn rotate_model(
    model: &LinearGaussian,
    rotation: &Rotation,
    search: &RotationSearch,
) -> Result<Rotated, Error> {
    if model.has_fixed_axes() {
        return Err(Error::Unsupported {
            method: "a rotation",
            what: "sparse loadings, whose zeros it would fill",
            instead: "the loadings as they are",
        });
    }
    let deviations: Vec<f64> = model.variances().iter().map(|v| v.sqrt()).collect();
    let mut standardized = model.loadings().clone();
    standardized.scale_rows(&deviations.iter().map(|s| 1.0 / s).collect::<Vec<_>>());
    let mut rotated = rotate(&standardized, rotation, search)?;
    rotated.loadings.scale_rows(&deviations);
    Ok(rotated)
}

/// Rotates loadings `A` (d × q) towards a simple structure.
///
/// ```
/// use covary::{model::{rotate, Rotation, RotationSearch}, Matrix};
/// // Two clean clusters, seen at an angle of 45 degrees.
/// let a = Matrix::from_rows(&[[0.6, 0.6], [0.5, 0.5], [0.4, -0.4], [0.5, -0.5]]);
/// let rotated = rotate(&a, &Rotation::Varimax { kaiser: true }, &RotationSearch::default())?;
/// assert!((rotated.loadings[(0, 0)] - 0.72_f64.sqrt()).abs() < 1e-9 && rotated.loadings[(0, 1)].abs() < 1e-9);
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// [`Error::OutOfRange`] for a loading that is not finite, a promax power not above 1 or an oblimin
/// γ above 0.8; [`Error::Unsupported`] for an oblique rotation of loadings whose columns are
/// linearly dependent.
pub fn rotate(loadings: &Matrix, rotation: &Rotation, search: &RotationSearch) -> Result<Rotated, Error> {
    let out = |name, value, bound| Err(Error::OutOfRange { name, value, bound });
    if let Some(&value) = loadings.as_slice().iter().find(|v| !v.is_finite()) {
        return out("a loading", value, "finite");
    }
    let (d, q) = (loadings.n_rows() as f64, loadings.n_columns());
    let identity = Matrix::identity(q);
    let size = loadings.as_slice().iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    if q < 2 || size == 0.0 {
        return Ok(Rotated::new(loadings, &identity, &identity));
    }
    // All criteria are homogeneous; unit size makes the stopping rule scale-free.
    let mut unit = loadings.clone();
    unit.as_mut_slice().iter_mut().for_each(|v| *v /= size);
    let orthogonal = |kaiser: bool, gamma: f64| {
        let a = if kaiser { unit_rows(&unit) } else { unit.clone() };
        best(q, search, |t| orthomax(&a, t, gamma), polar)
    };
    match *rotation {
        Rotation::Varimax { kaiser } => Ok(Rotated::new(loadings, &orthogonal(kaiser, 1.0)?, &identity)),
        Rotation::Quartimax => Ok(Rotated::new(loadings, &orthogonal(false, 0.0)?, &identity)),
        Rotation::Equamax => Ok(Rotated::new(loadings, &orthogonal(false, q as f64 / 2.0)?, &identity)),
        Rotation::Promax { power } => {
            if !(power.is_finite() && power > 1.0) {
                return out("power", power, "finite and above 1");
            }
            let varimax = orthogonal(true, 1.0)?;
            let (u, phi) = promax(&unit.dot(&varimax), power).ok_or(DEPENDENT)?;
            Ok(Rotated::new(loadings, &varimax.dot(&u), &phi))
        }
        Rotation::Oblimin { gamma } => {
            if !(gamma.is_finite() && gamma <= 0.8) {
                return out("gamma", gamma, "finite and at most 0.8");
            }
            Cholesky::new(&unit.t_dot(&unit)).ok_or(DEPENDENT)?;
            let t = best(q, search, |t| oblimin(&unit, t, gamma / d), |t| Ok(unit_columns(t)))?;
            Ok(Rotated::new(loadings, &inverse(&t).transpose(), &t.t_dot(&t)))
        }
    }
}

/// Varimax without Kaiser's weights, quartimax or equamax by the classical iteration, as some software
/// ends it: the factors keep their order and signs.
///
/// ```text
/// T ← polar(Aᵀ (L∘L∘L − γ/d L diag(ΣᵢL²ᵢₖ))),  L = A T,  from T = I      until Σ singular values gains less than `tolerance` of itself
/// ```
///
/// [`rotate`] goes on to the optimum and looks for better ones; this is for results that must be those of
/// other software, scikit-learn's with a tolerance of 1e-6 and 100 steps.
///
/// # Errors
/// [`Error::Unsupported`] for an oblique rotation, [`Error::Numerical`] for loadings near the limits of f64.
pub fn rotate_in_steps(
    loadings: &Matrix,
    rotation: &Rotation,
    tolerance: f64,
    max_steps: usize,
) -> Result<Rotated, Error> {
    let q = loadings.n_columns();
    let gamma = match rotation {
        Rotation::Varimax { .. } => 1.0,
        Rotation::Quartimax => 0.0,
        Rotation::Equamax => q as f64 / 2.0,
        Rotation::Promax { .. } | Rotation::Oblimin { .. } => {
            let (method, instead) = ("the classical iteration", "`rotate`");
            return Err(Error::Unsupported { method, what: "oblique rotations", instead });
        }
    };
    let mut transform = Matrix::identity(q);
    let mut before = 0.0;
    for _ in 0..if q == 0 { 0 } else { max_steps } {
        // Minus the gradient of the criterion.
        let mut slope = loadings.t_dot(&orthomax_slope(&loadings.dot(&transform), gamma).1);
        slope.as_mut_slice().iter_mut().for_each(|v| *v = -*v);
        let svd = thin_svd(&slope)?;
        transform = svd.u.dot_t(&svd.v);
        let now: f64 = svd.s.iter().sum();
        if before != 0.0 && now < before * (1.0 + tolerance) {
            break;
        }
        before = now;
    }
    let loadings = loadings.dot(&transform);
    Ok(Rotated { loadings, transform, factor_correlations: Matrix::identity(q) })
}

const DEPENDENT: Error = Error::Unsupported {
    method: "an oblique rotation",
    what: "loadings with linearly dependent columns",
    instead: "an orthogonal rotation or fewer components",
};

/// Steps from one start.
const MAX_STEPS: usize = 5000;
/// Slope at which the search ends; rounding leaves about 1e-14.
const FLAT: f64 = 1e-11;
/// Slope below which differences of the criterion drown in rounding and the slope itself is watched.
const NEAR: f64 = 1e-5;

/// A criterion to minimize at some T, and its gradient along the constraint.
struct Slope {
    value: f64,
    gradient: Matrix,
    norm: f64,
}

impl Slope {
    /// Takes from `gradient` its part off the constraint, `T · off`.
    fn new(value: f64, mut gradient: Matrix, t: &Matrix, off: &Matrix) -> Self {
        let normal = t.dot(off);
        gradient.as_mut_slice().iter_mut().zip(normal.as_slice()).for_each(|(g, n)| *g -= n);
        let norm = gradient.as_slice().iter().map(|g| g * g).sum::<f64>().sqrt();
        Self { value, gradient, norm }
    }
}

/// The lowest end over the identity and the random starts.
fn best(
    q: usize,
    search: &RotationSearch,
    slope: impl Fn(&Matrix) -> Slope,
    retract: impl Fn(&Matrix) -> Result<Matrix, Error>,
) -> Result<Matrix, Error> {
    let mut lowest: Option<(Matrix, f64)> = None;
    for k in 0..=search.random_starts {
        let start = if k == 0 {
            Matrix::identity(q)
        } else {
            let mut rng = ChaCha8Rng::seed_from_u64(search.seed);
            rng.set_stream(k as u64);
            polar(&normal(q, q, &mut rng))?
        };
        let (t, value) = descend(start, NEAR, &slope, &retract)?;
        // Beyond what a slope of NEAR leaves open, so that ties stay with the first.
        if lowest.as_ref().is_none_or(|(_, low)| value < low - 1e-8 * (1.0 + low.abs())) {
            lowest = Some((t, value));
        }
    }
    // Only the winner is worth the long way to the last digit.
    let (t, _) = lowest.expect("there is at least one start");
    Ok(descend(t, FLAT, &slope, &retract)?.0)
}

/// Gradient projection: `T ← retract(T − α G_p)` (Jennrich 2001, 2002), α doubled and halved,
/// until the slope is below `flat`.
fn descend(
    mut t: Matrix,
    flat: f64,
    slope: impl Fn(&Matrix) -> Slope,
    retract: impl Fn(&Matrix) -> Result<Matrix, Error>,
) -> Result<(Matrix, f64), Error> {
    let mut now = slope(&t);
    let mut step = 1.0;
    for _ in 0..MAX_STEPS {
        if now.norm < flat {
            break;
        }
        if now.norm > NEAR {
            step *= 2.0;
        }
        loop {
            let mut moved = t.clone();
            moved.as_mut_slice().iter_mut().zip(now.gradient.as_slice()).for_each(|(t, g)| *t -= step * g);
            let trial = retract(&moved)?;
            let then = slope(&trial);
            let lower = if now.norm > NEAR {
                then.value < now.value - 0.5 * step * now.norm * now.norm
            } else {
                then.norm < now.norm
            };
            if lower {
                (t, now) = (trial, then);
                break;
            }
            step *= 0.5;
            if step < 1e-12 {
                return Ok((t, now.value));
            }
        }
    }
    Ok((t, now.value))
}

/// `f = −¼ Σₖ [Σᵢ L⁴ᵢₖ − γ/d (Σᵢ L²ᵢₖ)²]`, `L = A T`; `G_p = G − T sym(Tᵀ G)`, `G = Aᵀ ∇_L f`.
fn orthomax(a: &Matrix, t: &Matrix, gamma: f64) -> Slope {
    let (value, slope) = orthomax_slope(&a.dot(t), gamma);
    let gradient = a.t_dot(&slope);
    let mut off = t.t_dot(&gradient);
    off.symmetrize();
    Slope::new(value, gradient, t, &off)
}

/// `f` at `L`, and `∇_L f = −L∘L∘L + γ/d L diag(ΣᵢL²ᵢₖ)`.
fn orthomax_slope(l: &Matrix, gamma: f64) -> (f64, Matrix) {
    let mut l = l.clone();
    let q = l.n_columns();
    let share = gamma / l.n_rows() as f64;
    let mut sums = vec![0.0; q];
    for row in l.rows() {
        sums.iter_mut().zip(row).for_each(|(s, v)| *s += v * v);
    }
    let mut value = 0.25 * share * sums.iter().map(|s| s * s).sum::<f64>();
    for i in 0..l.n_rows() {
        for (v, s) in l.row_mut(i).iter_mut().zip(&sums) {
            value -= 0.25 * v.powi(4);
            *v *= share * s - *v * *v;
        }
    }
    (value, l)
}

/// `L = A T⁻ᵀ`, `∇_L = L ∘ [(I − γ/d 11ᵀ)(L∘L)(11ᵀ − I)]`, `f = ¼ Σ L ∘ ∇_L`,
/// `G = −(Lᵀ ∇_L T⁻¹)ᵀ`, `G_p = G − T diag(Tᵀ G)`; `share` is γ/d.
fn oblimin(a: &Matrix, t: &Matrix, share: f64) -> Slope {
    let back = inverse(t);
    let l = a.dot_t(&back);
    let (d, q) = (l.n_rows(), l.n_columns());
    // Row by row, the squares of the other factors.
    let mut others = Matrix::from_fn(d, q, |i, k| {
        l.row(i).iter().enumerate().filter(|(j, _)| *j != k).map(|(_, v)| v * v).sum()
    });
    let means: Vec<f64> = (0..q).map(|k| share * others.column(k).iter().sum::<f64>()).collect();
    let mut value = 0.0;
    for i in 0..d {
        for ((g, v), m) in others.row_mut(i).iter_mut().zip(l.row(i)).zip(&means) {
            *g = v * (*g - m);
            value += 0.25 * v * *g;
        }
    }
    let mut gradient = l.t_dot(&others).dot(&back).transpose();
    gradient.as_mut_slice().iter_mut().for_each(|g| *g = -*g);
    let along = t.t_dot(&gradient);
    let off = Matrix::from_fn(q, q, |j, k| if j == k { along[(j, j)] } else { 0.0 });
    Slope::new(value, gradient, t, &off)
}

/// `U = (VᵀV)⁻¹ VᵀP`, `P = sign(V)|V|^power`, columns scaled so that `Φ = (UᵀU)⁻¹` has unit
/// diagonal. `None` if V has dependent columns.
fn promax(v: &Matrix, power: f64) -> Option<(Matrix, Matrix)> {
    let mut target = v.clone();
    target.as_mut_slice().iter_mut().for_each(|v| *v = v.signum() * v.abs().powf(power));
    let mut u = Cholesky::new(&v.t_dot(v))?.solve_matrix(&v.t_dot(&target));
    // Unit columns first: powers of small loadings would make the inverse ill-conditioned.
    u = unit_columns(&u);
    let mut phi = Cholesky::new(&u.t_dot(&u))?.inverse();
    let length: Vec<f64> = (0..u.n_columns()).map(|k| phi[(k, k)].sqrt()).collect();
    u.scale_columns(&length);
    let shrink: Vec<f64> = length.iter().map(|l| 1.0 / l).collect();
    phi.scale_rows(&shrink);
    phi.scale_columns(&shrink);
    Some((u, phi))
}

/// The orthogonal matrix nearest to `m`.
fn polar(m: &Matrix) -> Result<Matrix, Error> {
    let svd = thin_svd(m)?;
    Ok(svd.u.dot_t(&svd.v))
}

/// Rows of unit length; rows of zeros stay.
fn unit_rows(m: &Matrix) -> Matrix {
    let length = m.rows().map(|r| r.iter().map(|v| v * v).sum::<f64>().sqrt());
    let shrink: Vec<f64> = length.map(|l| if l > 0.0 { 1.0 / l } else { 1.0 }).collect();
    let mut out = m.clone();
    out.scale_rows(&shrink);
    out
}

/// Columns of unit length.
fn unit_columns(m: &Matrix) -> Matrix {
    unit_rows(&m.transpose()).transpose()
}
