use super::{Likelihood, Separation, Warning, Whitened, gaussian};
use crate::infer::options::{Setting, options};
use crate::infer::{Observer, Step, Termination};
use crate::linalg::{elementary::tanh_and_tail, gemm, thin_svd};
use crate::{Dataset, Error, Matrix};
use faer::{MatMut, MatRef};
use pulp::{Arch, Simd, WithSimd};

/// Which densities the sources are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sources {
    /// Every source super- or sub-Gaussian, as the data say (extended infomax).
    Extended,
    /// All of one kind.
    All(Kind),
}

/// The density of a source; ψ = −(ln p)′.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `ln p = −2 ln(2 cosh(y/2))`, `ψ = tanh(y/2)`.
    Logistic,
    /// `p ∝ exp(−y²/2) / (2 cosh y)`, `ψ = y + tanh y`: heavy tails.
    Super,
    /// `p ∝ exp(−y²/2) 2 cosh y`, `ψ = y − tanh y`: light tails, two humps.
    Sub,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Logistic, Self::Super, Self::Sub];

    /// As users type it and files keep it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Logistic => "logistic",
            Self::Super => "super",
            Self::Sub => "sub",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl Setting for Sources {
    fn text(&self) -> String {
        match self {
            Self::Extended => "extended",
            Self::All(kind) => kind.name(),
        }
        .to_owned()
    }

    fn set(&mut self, text: &str) -> Result<(), &'static str> {
        *self = match (text, Kind::from_name(text)) {
            ("extended", _) => Self::Extended,
            (_, Some(kind)) => Self::All(kind),
            _ => return Err("extended, logistic, super or sub"),
        };
        Ok(())
    }
}

/// `ln p = −a y²/2 − (s/c) ln 2 cosh(c y) − ln Z`, hence `ψ = a y + s tanh(c y)`.
#[derive(Clone, Copy)]
struct Density {
    a: f64,
    s: f64,
    c: f64,
    ln_z: f64,
}

impl Kind {
    fn density(self) -> Density {
        match self {
            Self::Logistic => Density { a: 0.0, s: 1.0, c: 0.5, ln_z: 0.0 },
            Self::Super => Density { a: 1.0, s: 1.0, c: 1.0, ln_z: -0.073_606_719_380_693_1 },
            // ln 2 + ½ ln 2π + ½
            Self::Sub => Density { a: 1.0, s: -1.0, c: 1.0, ln_z: 2.112_085_713_764_618 },
        }
    }
}

options! {
    /// Maximum likelihood of a square mixing without noise, on the whitened table [M 2.8.3].
    ///
    /// ```text
    /// ℓ(B) = N ln |det B| + Σₙ Σᵢ ln pᵢ(bᵢᵀ zₙ)
    /// ```
    ///
    /// Relative Newton steps `B ← (I + s D) B` with a Hessian of 2 × 2 blocks and backtracking, so that ℓ
    /// never falls (Ablin, Cardoso & Gramfort 2018 use the same blocks). At the end `mean ψ(yᵢ) yⱼ = δᵢⱼ`.
    ///
    /// ```
    /// use covary::{Dataset, Matrix, ica::{Kind, MaximumLikelihood, amari_index}};
    /// // A saw-tooth, with light tails, and a pulse, with heavy ones.
    /// let source = |i: usize| [(i % 19) as f64 / 19.0, (i as f64 * 0.37).sin().powi(9)];
    /// let mixing = Matrix::from_rows(&[[1.0, 0.6], [0.4, 1.0]]);
    /// let sources = Matrix::from_rows(&(0..2000).map(source).collect::<Vec<_>>());
    /// let found = MaximumLikelihood::default().fit(&Dataset::new(sources.dot_t(&mixing))?)?;
    /// assert!(amari_index(&found.model.unmixing().dot(&mixing)) < 0.02);
    /// assert!(found.likelihood.unwrap().kinds.contains(&Kind::Sub));
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// By default: kinds by the data: a wrong kind does not separate. The gradient is a mean over rows and has no
    /// units; Newton's last steps reach 1e-8 at no cost.
    #[derive(Debug, Clone, PartialEq)]
    pub struct MaximumLikelihood {
        /// Number of sources; as many as the table has directions if `None`.
        pub n_components: Option<usize> = None,
        /// Their densities.
        pub sources: Sources = Sources::Extended,
        /// Most steps.
        pub max_iterations: usize = 500,
        /// Ends when no entry of the relative gradient is larger: `|mean ψ(yᵢ) yⱼ − δᵢⱼ|`.
        pub tolerance: f64 = 1e-8,
    }
}

impl MaximumLikelihood {
    /// Separates the sources of a complete table.
    ///
    /// # Errors
    /// As [`fit_observed`](Self::fit_observed).
    pub fn fit(&self, data: &Dataset) -> Result<Separation, Error> {
        self.fit_observed(data, &mut ())
    }

    /// Separates the sources; `observer` is called after every step and may end the work.
    ///
    /// # Errors
    /// As [`FastIca::fit_observed`](super::FastIca::fit_observed).
    pub fn fit_observed(&self, data: &Dataset, observer: &mut dyn Observer) -> Result<Separation, Error> {
        if !(self.tolerance.is_finite() && self.tolerance >= 0.0) {
            let bound = "finite and not negative";
            return Err(Error::OutOfRange { name: "tolerance", value: self.tolerance, bound });
        }
        let white = Whitened::new(data, self.n_components, "maximum likelihood of sources")?;
        let q = white.n_components();
        let mut b = Matrix::identity(q);
        let mut kinds = match self.sources {
            Sources::Extended => Statistics::new(&white, &b, &vec![Kind::Super; q])?.kinds(),
            Sources::All(kind) => vec![kind; q],
        };
        let mut now = Statistics::new(&white, &b, &kinds)?;
        let mut trace = vec![now.log_likelihood];
        let mut termination = Termination::IterationLimit;
        for iteration in 1..=self.max_iterations {
            if now.gradient_size() < self.tolerance {
                termination = Termination::Converged;
                break;
            }
            let Some((next_b, next)) = now.ascend(&white, &b, &kinds)? else { break };
            (b, now) = (next_b, next);
            if self.sources == Sources::Extended {
                let changed = now.kinds();
                if changed != kinds {
                    kinds = changed;
                    now = Statistics::new(&white, &b, &kinds)?;
                }
            }
            trace.push(now.log_likelihood);
            if observer.step(&Step { iteration, objective: now.log_likelihood }).is_break() {
                termination = Termination::Interrupted;
                break;
            }
        }
        let left = now.gradient_size();
        if left < self.tolerance {
            termination = Termination::Converged;
        }
        let (model, order, scales) = white.unmixing(&b);
        let kurtosis = white.kurtosis(&model);
        let n_iterations = trace.len() - 1;
        let not_converged = (termination == Termination::IterationLimit).then_some(Warning::NotConverged {
            iterations: n_iterations,
            left,
            tolerance: self.tolerance,
        });
        let warnings =
            not_converged.into_iter().chain(white.dependent()).chain(gaussian(&kurtosis)).collect();
        let kinds = order.iter().map(|&i| kinds[i]).collect();
        let likelihood = Some(Likelihood { trace, kinds, scales });
        Ok(Separation { model, kurtosis, n_iterations, termination, likelihood, warnings })
    }
}

/// Means over the rows at one B, all that a step needs.
struct Statistics {
    log_likelihood: f64,
    /// `mean ψ(yᵢ) yⱼ − δᵢⱼ`, minus the relative gradient of ℓ/N.
    gradient: Matrix,
    /// Means of ψ′(yᵢ), ψ′(yᵢ) yᵢ² and yᵢ².
    slope: Vec<f64>,
    curvature: Vec<f64>,
    power: Vec<f64>,
    /// Means of sech² yᵢ and yᵢ tanh yᵢ: where they point to heavy tails.
    sech: Vec<f64>,
    tanh: Vec<f64>,
}

/// Rows after which a product of numbers between 1 and 2 is taken the logarithm of.
const ROWS_PER_LOGARITHM: usize = 512;

impl Statistics {
    fn new(white: &Whitened, b: &Matrix, kinds: &[Kind]) -> Result<Self, Error> {
        let (n, q) = (white.rows.n_rows() as f64, white.n_components());
        let densities: Vec<Density> = kinds.iter().map(|k| k.density()).collect();
        let sums = white.sum(b, q * q + 6 * q, |y, _, sums| add_block(y, &densities, sums));
        let mut gradient = Matrix::from_fn(q, q, |i, j| sums[i * q + j] / n);
        (0..q).for_each(|i| gradient[(i, i)] -= 1.0);
        let mean =
            |k: usize| sums[q * q + k * q..q * q + (k + 1) * q].iter().map(|v| v / n).collect::<Vec<_>>();
        let ln_det: f64 = thin_svd(b)?.s.iter().map(|s| s.ln()).sum();
        let constants: f64 = densities.iter().map(|d| d.ln_z).sum();
        let log_likelihood = n * (ln_det + mean(0).iter().sum::<f64>() - constants);
        Ok(Self {
            log_likelihood,
            gradient,
            slope: mean(1),
            curvature: mean(2),
            power: mean(3),
            sech: mean(4),
            tanh: mean(5),
        })
    }

    fn gradient_size(&self) -> f64 {
        self.gradient.as_slice().iter().fold(0.0, |m, g| g.abs().max(m))
    }

    /// Super-Gaussian where `mean sech² y · mean y² > mean y tanh y`.
    fn kinds(&self) -> Vec<Kind> {
        let heavy = |i: usize| self.sech[i] * self.power[i] > self.tanh[i];
        (0..self.power.len()).map(|i| if heavy(i) { Kind::Super } else { Kind::Sub }).collect()
    }

    /// D: the Newton step by 2 × 2 blocks `[hᵢⱼ 1; 1 hⱼᵢ]`, `hᵢⱼ = mean ψ′(yᵢ) · mean yⱼ²`, whose smaller
    /// eigenvalue is held at 0.01 or more.
    fn direction(&self) -> Matrix {
        let q = self.power.len();
        let g = &self.gradient;
        let mut d = Matrix::zeros(q, q);
        for i in 0..q {
            d[(i, i)] = -g[(i, i)] / (1.0 + self.curvature[i]);
            for j in 0..i {
                let (mut a, mut b) = (self.slope[i] * self.power[j], self.slope[j] * self.power[i]);
                let smaller = 0.5 * (a + b) - (0.5 * (a - b)).hypot(1.0);
                let shift = (0.01 - smaller).max(0.0);
                (a, b) = (a + shift, b + shift);
                let det = a * b - 1.0;
                d[(i, j)] = -(b * g[(i, j)] - g[(j, i)]) / det;
                d[(j, i)] = -(a * g[(j, i)] - g[(i, j)]) / det;
            }
        }
        d
    }

    /// The next B by backtracking, and its statistics; `None` if no step leads up.
    fn ascend(&self, white: &Whitened, b: &Matrix, kinds: &[Kind]) -> Result<Option<(Matrix, Self)>, Error> {
        let direction = self.direction().dot(b);
        // Near the top gains drown in rounding, and only the gradient tells up from down.
        let rounding = 1e-12 * self.log_likelihood.abs();
        let left = self.gradient_size();
        for halvings in 0..30 {
            let s = 0.5_f64.powi(halvings);
            let mut next = b.clone();
            next.as_mut_slice().iter_mut().zip(direction.as_slice()).for_each(|(b, d)| *b += s * d);
            let statistics = Self::new(white, &next, kinds)?;
            let gain = statistics.log_likelihood - self.log_likelihood;
            if gain > rounding || (gain >= -rounding && statistics.gradient_size() < left) {
                return Ok(Some((next, statistics)));
            }
        }
        Ok(None)
    }
}

/// Adds a block of sources: `Σ ψ(y) yᵀ`, then per source the sums of ln p without its constant and of
/// what [`Statistics`] holds.
fn add_block(y: &[f64], densities: &[Density], sums: &mut [f64]) {
    let q = densities.len();
    let (products, sums) = sums.split_at_mut(q * q);
    let mut psi = vec![0.0; y.len()];
    for (y, psi) in y.chunks(ROWS_PER_LOGARITHM * q).zip(psi.chunks_mut(ROWS_PER_LOGARITHM * q)) {
        Arch::new().dispatch(AddRows { y, densities, psi, sums: &mut *sums });
    }
    let m = y.len() / q;
    let products = MatMut::from_row_major_slice_mut(products, q, q);
    gemm(
        products,
        true,
        MatRef::from_row_major_slice(&psi, m, q).transpose(),
        MatRef::from_row_major_slice(y, m, q),
    );
}

struct AddRows<'a> {
    y: &'a [f64],
    densities: &'a [Density],
    psi: &'a mut [f64],
    sums: &'a mut [f64],
}

impl WithSimd for AddRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { y, densities, psi, sums } = self;
        let q = densities.len();
        let mut tails = vec![0.0; y.len()];
        let c = densities[0].c;
        for ((y, t), tail) in y.iter().zip(psi.iter_mut()).zip(&mut tails) {
            (*t, *tail) = tanh_and_tail(c * y);
        }
        let mut product = vec![1.0; q];
        for ((y, psi), tails) in y.chunks_exact(q).zip(psi.chunks_exact_mut(q)).zip(tails.chunks_exact(q)) {
            for i in 0..q {
                let Density { a, s, c, .. } = densities[i];
                let (y, t) = (y[i], psi[i]);
                let square = y * y;
                let sech = 1.0 - t * t;
                let slope = a + s * c * sech;
                product[i] *= tails[i];
                sums[i] -= 0.5 * a * square + s * y.abs();
                sums[q + i] += slope;
                sums[2 * q + i] += slope * square;
                sums[3 * q + i] += square;
                sums[4 * q + i] += sech;
                sums[5 * q + i] += y * t;
                psi[i] = a * y + s * t;
            }
        }
        for i in 0..q {
            sums[i] -= densities[i].s / densities[i].c * product[i].ln();
        }
    }
}
