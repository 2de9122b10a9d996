//! Maximum-likelihood factor analysis of complete data by bounded Newton steps [M 1.6.3].

use super::Estimator;
use super::factor_problem::{FactorProblem, Profile};
use super::options::options;
use super::report::{Fit, Observer, Step, Termination};
use crate::linalg::{Cholesky, add_product_lower};
use crate::parallel;
use crate::{CentralMoments, Dataset, Error, LinearGaussian, Matrix, Spec};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

options! {
    /// Factor analysis of complete data by Newton steps on ρ = ln ψ, the loadings maximized out.
    ///
    /// ```text
    /// max_ρ ℓ(ρ)   subject to   ψⱼ ≥ floor · sⱼⱼ
    /// ```
    ///
    /// A handful of steps reaches rounding. Columns whose noise is pushed to the floor (Heywood cases)
    /// stay there and are named in a warning. `Spec::standardize` changes nothing: factor analysis
    /// follows the units of the columns exactly.
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, infer::Newton, CentralMoments, Estimator, Spec};
    /// let (table, _) = simulate::factor_analysis(Shape { rows: 500, columns: 8, n_components: 2 }, /* seed */ 1);
    /// let model = Newton::default().fit(&table, &Spec::factor_analysis(2))?.model;
    /// let (c, s) = (model.covariance(), CentralMoments::of(&table)?.covariance());
    /// assert!((0..8).all(|j| (c[(j, j)] - s[(j, j)]).abs() < 1e-8 * s[(j, j)]));   // variances are met exactly
    /// # Ok::<(), covary::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct Newton {
        /// Steps from each start; 4 to 12 suffice as a rule.
        pub max_iterations: usize = 100,
        /// Largest slope |∂(−2ℓ/N)/∂ρⱼ| left in a free column; 0 goes on while a step can be distinguished from rounding.
        pub tolerance: f64 = 1e-10,
        /// Noise variances to start from, in the units of the table, besides which no start is made; `None` starts
        /// from Jöreskog's.
        pub start: Option<Vec<f64>> = None,
        /// Random starts besides the main one; the best end is kept. All of them are made when the main
        /// end is doubtful: a variance at its floor, or a last factor that stands out little
        /// (θ_q < 4 θ_{q+1}); else three. Simulated tables fitted with their own number of factors never ended
        /// higher from 60 other starts (0 of 1000); with one or two factors too many 3 in 10 did, all
        /// of them doubtful by this rule, and 10 starts found the best end in 4 of 5 of those. Real tables fitted
        /// with too few factors may have a second end that is not: one factor of scikit-learn's diabetes table
        /// ends 14 nats higher from 36 of 40 random starts. From 256 columns on, where a climb can take seconds,
        /// there is one start only.
        pub restarts: usize = 10,
        /// Seed of the random starts.
        pub seed: u64 = 0,
    }
}

/// Longest step in any ρⱼ: a factor 4.5 in ψⱼ.
const LONGEST_STEP: f64 = 1.5;
/// A restart that comes this close to the main end in every ρⱼ would only repeat it.
const JOINED: f64 = 0.05;
/// Random starts where the main end is not doubtful.
const FEW: usize = 3;
/// Ratio θ_q/θ_{q+1} above which the last factor stands out clearly.
const CLEAR: f64 = 4.0;
/// Added to the diagonal of the approximate Hessian, which is positive semi-definite.
const RIDGE: f64 = 1e-6;

impl Newton {
    /// Fits from mean and covariance alone: a published correlation or covariance matrix will do,
    /// see [`CentralMoments::from_covariance`].
    ///
    /// ```
    /// use covary::{infer::Newton, CentralMoments, Matrix, Spec};
    /// // One factor through three columns is determined: w₁² = r₁₂ r₁₃ / r₂₃.
    /// let r = Matrix::from_rows(&[[1.0, 0.6, 0.5], [0.6, 1.0, 0.4], [0.5, 0.4, 1.0]]);
    /// let fit = Newton::default().fit_moments(&CentralMoments::from_covariance(&r, 100)?, &Spec::factor_analysis(1))?;
    /// assert!((fit.model.loadings()[(0, 0)].powi(2) - 0.6 * 0.5 / 0.4).abs() < 1e-9);
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Estimator::fit`].
    pub fn fit_moments(&self, moments: &CentralMoments, spec: &Spec) -> Result<Fit, Error> {
        self.fit_moments_observed(moments, None, spec, &mut ())
    }

    /// [`fit_moments`](Self::fit_moments) of columns that have names, observed.
    pub(crate) fn fit_moments_observed(
        &self,
        moments: &CentralMoments,
        names: Option<&[String]>,
        spec: &Spec,
        observer: &mut dyn Observer,
    ) -> Result<Fit, Error> {
        self.solve(&FactorProblem::of_moments("newton", moments, names, spec)?, observer)
    }

    fn solve(&self, problem: &FactorProblem, observer: &mut dyn Observer) -> Result<Fit, Error> {
        let (d, q) = (problem.n_columns(), problem.n_components);
        if q == 0 {
            // C = Ψ = diag R, and ln|C| + tr C⁻¹R = d.
            return problem.finish(Matrix::zeros(d, 0), &vec![1.0; d], &[d as f64], Termination::ClosedForm);
        }
        let start = problem.start_from(self.start.as_deref())?;
        let mut best = self.climb(problem, start, None, observer)?;
        let restarts = match &self.start {
            Some(_) => 0,
            None if problem.is_large() || best.termination == Termination::Interrupted => 0,
            None if best.is_doubtful(problem) => self.restarts,
            None => self.restarts.min(FEW),
        };
        let restarted = |k| {
            let start = random_start(d, problem.floor, self.seed, k as u64);
            self.climb(problem, start, Some(&best.psi), &mut ())
        };
        let others: Vec<Climb> = parallel::try_map(restarts, restarted)?;
        // An end counts as better only beyond rounding, so that ties stay with the first.
        for other in others {
            if other.profile.value < best.profile.value - 1e-10 * (1.0 + best.profile.value.abs()) {
                best = other;
            }
        }
        let loadings = best.profile.loadings(&best.psi, q);
        problem.finish(loadings, &best.psi, &best.trace, best.termination)
    }

    /// Newton steps from one start, until flat, or near `known`.
    fn climb(
        &self,
        problem: &FactorProblem,
        mut psi: Vec<f64>,
        known: Option<&[f64]>,
        observer: &mut dyn Observer,
    ) -> Result<Climb, Error> {
        let mut profile = problem.profile(&psi, None)?;
        let mut trace = vec![profile.value];
        let termination = loop {
            let free = profile.free(&psi, problem.floor);
            if profile.is_flat(&free, self.tolerance) {
                break Termination::Converged;
            }
            let near = |known: &[f64]| psi.iter().zip(known).all(|(a, b)| (a / b).ln().abs() < JOINED);
            if known.is_some_and(near) {
                break Termination::Converged;
            }
            if trace.len() > self.max_iterations {
                break Termination::IterationLimit;
            }
            let mut found = None;
            for direction in directions(&profile, &free) {
                found = search(problem, &psi, &profile, &free, &direction)?;
                if found.is_some() {
                    break;
                }
            }
            let Some((next, at)) = found else {
                // No step shows a gain: at the end if the slope says so too.
                let end = profile.is_flat(&free, self.tolerance.max(1e-10).sqrt());
                break if end { Termination::Converged } else { Termination::IterationLimit };
            };
            (psi, profile) = (next, at);
            trace.push(profile.value);
            let step = Step { iteration: trace.len() - 1, objective: problem.log_likelihood(profile.value) };
            if observer.step(&step).is_break() {
                break Termination::Interrupted;
            }
        };
        Ok(Climb { psi, profile, trace, termination })
    }
}

impl Estimator for Newton {
    type Model = LinearGaussian;

    fn fit_observed(&self, data: &Dataset, spec: &Spec, observer: &mut dyn Observer) -> Result<Fit, Error> {
        self.solve(&FactorProblem::of_table("newton", data, spec)?, observer)
    }
}

/// Where one start led.
struct Climb {
    psi: Vec<f64>,
    profile: Profile,
    trace: Vec<f64>,
    termination: Termination,
}

impl Climb {
    /// Whether another start is likely to end higher: a variance sits at its floor, or the last factor
    /// stands out little from what is left.
    fn is_doubtful(&self, problem: &FactorProblem) -> bool {
        let last = self.profile.eigen.values[problem.n_components - 1];
        let weak = last < CLEAR * self.profile.next;
        let at_floor = self.psi.iter().any(|p| *p <= problem.floor);
        weak || at_floor
    }
}

/// `ψⱼ ~ U(0.05, 0.95)`; start `k` has its own random stream.
fn random_start(d: usize, floor: f64, seed: u64, k: u64) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(k);
    (0..d).map(|_| rng.random_range(0.05..0.95_f64).max(floor)).collect()
}

/// `−H⁻¹ g` over the free columns, where the Hessian is known and positive definite and so this
/// points downhill; then the same with `P∘P` for H: for large problems, which do not know the
/// eigenpairs H needs, and for a Hessian so nearly singular that rounding turned its step around.
fn directions(profile: &Profile, free: &[usize]) -> impl Iterator<Item = Vec<f64>> {
    let projection = projection(profile, free);
    let exact = hessian(profile, free, &projection).and_then(|h| Cholesky::new(&h));
    let downhill: Vec<f64> = free.iter().map(|&i| -profile.gradient[i]).collect();
    let approximate = move || {
        let mut approximate = projection;
        approximate.as_mut_slice().iter_mut().for_each(|p| *p *= *p);
        (0..approximate.n_rows()).for_each(|i| approximate[(i, i)] += RIDGE);
        Cholesky::new(&approximate).expect("a Schur product of projections plus a ridge is positive definite")
    };
    exact.into_iter().chain(std::iter::once_with(approximate)).filter_map(move |factor| {
        let mut step = downhill.clone();
        factor.solve(&mut step);
        let slope: f64 = step.iter().zip(&downhill).map(|(s, g)| s * g).sum();
        (slope.is_finite() && slope > 0.0).then_some(step)
    })
}

/// Lower triangle of `P = I − V Vᵀ` over the free columns, V the kept eigenvectors.
fn projection(profile: &Profile, free: &[usize]) -> Matrix {
    let v = Matrix::from_fn(free.len(), profile.kept, |i, l| profile.eigen.vectors[(free[i], l)]);
    let mut minus = v.clone();
    minus.as_mut_slice().iter_mut().for_each(|v| *v = -*v);
    let mut p = Matrix::identity(free.len());
    add_product_lower(p.view_mut(), v.view(), minus.view().transpose());
    p
}

/// Second derivatives by ρ, lower triangle over the free columns; l runs over the kept eigenpairs
/// and m over the rest [M 1.6.3]:
///
/// ```text
/// Hᵢⱼ = (Σₘ θₘ vᵢₘ vⱼₘ) Pᵢⱼ + Σₗ vᵢₗ vⱼₗ Σₘ (1 − θₘ) (θₗ + θₘ)/(θₗ − θₘ) vᵢₘ vⱼₘ
/// H ≈ P∘P                                                                near a good fit
/// ```
///
/// About `(1 + kept) d³` flops. `None` where it is not finite or not all eigenpairs are known.
fn hessian(profile: &Profile, free: &[usize], projection: &Matrix) -> Option<Matrix> {
    let (theta, v) = (&profile.eigen.values, &profile.eigen.vectors);
    if !profile.has_all_pairs() {
        return None;
    }
    let (f, k) = (free.len(), profile.kept);
    let (signal, noise) = theta.split_at(k);
    let rest = Matrix::from_fn(f, noise.len(), |i, m| v[(free[i], k + m)]);
    // Σₘ fₘ vᵢₘ vⱼₘ
    let weighted = |weights: Vec<f64>| {
        let mut right = rest.clone();
        right.scale_columns(&weights);
        let mut out = Matrix::zeros(f, f);
        add_product_lower(out.view_mut(), rest.view(), right.view().transpose());
        out
    };
    let mut h = weighted(noise.to_vec());
    h.as_mut_slice().iter_mut().zip(projection.as_slice()).for_each(|(h, p)| *h *= p);
    for (l, &tl) in signal.iter().enumerate() {
        let part = weighted(noise.iter().map(|tm| (1.0 - tm) * (tl + tm) / (tl - tm)).collect());
        for i in 0..f {
            let vi = v[(free[i], l)];
            for j in 0..=i {
                h[(i, j)] += vi * v[(free[j], l)] * part[(i, j)];
            }
        }
    }
    h.as_slice().iter().all(|v| v.is_finite()).then_some(h)
}

/// Backtracks along the path bent at the floor until the gain is a fair share of what the slope
/// promises (Armijo). `None` when not even a tiny step shows one.
fn search(
    problem: &FactorProblem,
    psi: &[f64],
    profile: &Profile,
    free: &[usize],
    direction: &[f64],
) -> Result<Option<(Vec<f64>, Profile)>, Error> {
    let longest = direction.iter().fold(0.0_f64, |m, s| m.max(s.abs()));
    let mut t = (LONGEST_STEP / longest).min(1.0);
    while t > 1e-8 {
        let mut next = psi.to_vec();
        let mut promised = 0.0;
        for (&i, s) in free.iter().zip(direction) {
            next[i] = (psi[i] * (t * s).exp()).max(problem.floor);
            promised += profile.gradient[i] * (next[i] / psi[i]).ln();
        }
        if next == psi {
            return Ok(None);
        }
        let at = problem.profile(&next, Some(profile))?;
        if at.value <= profile.value + 1e-4 * promised.min(0.0) + profile.rounding {
            return Ok(Some((next, at)));
        }
        t *= 0.5;
    }
    Ok(None)
}
