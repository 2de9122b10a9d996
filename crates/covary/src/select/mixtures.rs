use super::information_criteria;
use super::own_components::{OwnComponents, Search};
use crate::infer::{FitReport, MixtureEm, Step, Termination, Warning};
use crate::model::Mixture;
use crate::{Dataset, Density, Error, Estimator, Fit, Spec};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::cell::Cell;
use std::ops::ControlFlow;

/// A mixture of one size, judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MixtureSize {
    /// Models.
    pub n_mixtures: usize,
    /// Components of each.
    pub n_components: usize,
    /// Log-likelihood of the table, in nats.
    pub log_likelihood: f64,
    /// Free parameters.
    pub n_parameters: usize,
    /// `−2ℓ + p ln N`; smaller is better.
    pub bic: f64,
    /// Whether no maximum of its likelihood was found: the noise of a model reached its floor, or the limit of steps came long before.
    /// Where a model shrinks to a few rows the likelihood increases without bound, so that its value, and BIC, say where the
    /// floor or the limit is.
    pub singular: bool,
    /// How well rows were predicted that a fit had not seen. `None` where rows were not held out.
    pub held_out: Option<UnseenRows>,
}

/// Rows held out, in nats per observed cell; larger is better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnseenRows {
    /// Mean log-density.
    pub mean: f64,
    /// By how much it is less than that of the best size.
    pub shortfall: f64,
    /// Standard error of the shortfall, over rows.
    pub shortfall_error: f64,
}

/// Whether a fit ended without a maximum of the likelihood: with noise at its floor, or at the limit of steps where the second
/// half of them still gained more than a nat. A slow fit that nears its maximum does not; one that shrinks a model to a few
/// rows gains as much in each step.
pub(super) fn without_maximum(report: &FitReport) -> bool {
    let gained = || report.objective.value - report.trace[report.trace.len() / 2];
    !report.converged() && gained() > 1.0
        || report.warnings.iter().any(|w| matches!(w, Warning::NoiseAtFloor { .. }))
}

/// Sizes side by side; printing them explains the recommendation.
#[derive(Debug, Clone, PartialEq)]
pub struct MixtureComparison(pub Vec<MixtureSize>);

impl MixtureComparison {
    /// The size of least BIC, which `covary fit` takes: held-out rows ask how well the density is
    /// matched, and go on increasing where two models share one group of rows that is not an ellipsoid. Singular ones
    /// are passed over, unless all are.
    pub fn recommended(&self) -> Option<&MixtureSize> {
        self.0.iter().min_by(|a, b| a.singular.cmp(&b.singular).then(a.bic.total_cmp(&b.bic)))
    }

    /// The size that predicts held-out rows best.
    pub fn best_held_out(&self) -> Option<&MixtureSize> {
        self.0.iter().find(|at| at.held_out.is_some_and(|h| h.shortfall == 0.0))
    }
}

impl std::fmt::Display for MixtureComparison {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = |at: &MixtureSize| {
            let s = |n: usize| if n == 1 { "" } else { "s" };
            let (k, q) = (at.n_mixtures, at.n_components);
            format!("{k} model{} with {q} component{}", s(k), s(q))
        };
        let Some(recommended) = self.recommended() else { return write!(f, "no size was tried") };
        write!(f, "Recommended: {}, the least BIC.", words(recommended))?;
        if let passed @ 1.. = self.0.iter().filter(|at| at.bic < recommended.bic).count() {
            write!(
                f,
                " {passed} of less BIC had a likelihood that was still increasing, or a model without noise: no maximum was \
                 found."
            )?;
        }
        let (Some(held), Some(best)) = (recommended.held_out, self.best_held_out()) else { return Ok(()) };
        if held.shortfall == 0.0 {
            write!(f, " It also predicts held-out rows best.")
        } else if held.shortfall <= held.shortfall_error {
            write!(
                f,
                " It predicts held-out rows as well as the best, {}, to one standard error.",
                words(best)
            )
        } else {
            write!(
                f,
                " Held-out rows are predicted better by {}: {:.4} ± {:.4} nats per cell more. BIC counts groups; to \
                 fill gaps or to score rows, take the other.",
                words(best),
                held.shortfall,
                held.shortfall_error
            )
        }
    }
}

/// BIC, and the log-density of held-out rows, over numbers of models and of components [M 1.9.7].
///
/// `folds` parts of the rows are held out in turn; 0 leaves that out, which takes one fit for each size
/// instead of `folds` + 1. `watch` is called with the number of fits done and of all fits, after each of them and after
/// every step in between, and may stop.
///
/// ```
/// use covary::{data::{simulate, Shape}, infer::MixtureEm, select::mixture_sizes, Spec};
/// use std::ops::ControlFlow;
/// let (table, _, _) = simulate::mixture(Shape { rows: 300, columns: 5, n_components: 1 }, 2, 20.0, /* seed */ 1);
/// let sizes = [(1, 1), (2, 1), (3, 1)];
/// let judged = mixture_sizes(&table, &Spec::ppca(1), &sizes, &MixtureEm::default(), 3, &|_, _| ControlFlow::Continue(()))?;
/// let best = judged.iter().find(|at| at.held_out.unwrap().shortfall == 0.0).unwrap();
/// assert_eq!(best.n_mixtures, 2);
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// [`Error::OutOfRange`] for one fold, [`Error::TooFewRows`] for more folds than rows,
/// [`Error::Interrupted`] if `watch` stopped, and as [`MixtureEm::fit`].
pub fn mixture_sizes(
    data: &Dataset,
    spec: &Spec,
    sizes: &[(usize, usize)],
    method: &MixtureEm,
    folds: usize,
    watch: &dyn Fn(usize, usize) -> ControlFlow<()>,
) -> Result<Vec<MixtureSize>, Error> {
    let fitted = fitted_sizes(data, spec, sizes, method, folds, watch)?;
    Ok(fitted.into_iter().map(|(size, _)| size).collect())
}

/// [`mixture_sizes`] by BIC alone, and from the best of them a mixture whose models have components of their own, if its
/// BIC is less still.
///
/// From a fit with q components for all, one model at a time is given one more or one less and the mixture fitted again from
/// there, as long as BIC falls; the same from the best fits with one model less and more, as long as these end lower.
///
/// ```
/// use covary::{data::{simulate, Shape}, infer::MixtureEm, select::own_components, Dataset, Matrix, Spec};
/// use std::ops::ControlFlow;
/// let rows = |q: usize, seed: u64| simulate::ppca(Shape { rows: 200, columns: 8, n_components: q }, seed).0;
/// let (one, three) = (rows(1, 1), rows(3, 2));
/// let cell = |i: usize, j: usize| if i < 200 { one.values()[(i, j)] } else { three.values()[(i - 200, j)] + 20.0 };
/// let table = Dataset::new(Matrix::from_fn(400, 8, cell))?;
/// let sizes = [(1, 1), (2, 1), (2, 2), (3, 1)];
/// let (_, own) = own_components(&table, &Spec::ppca(1), &sizes, &MixtureEm::default(), &|_, _| ControlFlow::Continue(()))?;
/// let mut found = own.expect("one number does not suit both").n_components();
/// found.sort_unstable();
/// assert_eq!(found, [1, 3]);
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// As [`mixture_sizes`].
pub fn own_components(
    data: &Dataset,
    spec: &Spec,
    sizes: &[(usize, usize)],
    method: &MixtureEm,
    watch: &dyn Fn(usize, usize) -> ControlFlow<()>,
) -> Result<(Vec<MixtureSize>, Option<OwnComponents>), Error> {
    let fitted = fitted_sizes(data, spec, sizes, method, 0, watch)?;
    let going_on = || watch(sizes.len(), sizes.len());
    let own = Search { data, spec, method, watch: &going_on, n_fits: 0 }.run(&fitted)?;
    Ok((fitted.into_iter().map(|(size, _)| size).collect(), own))
}

/// [`mixture_sizes`], each with its fit.
fn fitted_sizes(
    data: &Dataset,
    spec: &Spec,
    sizes: &[(usize, usize)],
    method: &MixtureEm,
    folds: usize,
    watch: &dyn Fn(usize, usize) -> ControlFlow<()>,
) -> Result<Vec<(MixtureSize, Fit<Mixture>)>, Error> {
    if folds == 1 {
        return Err(Error::OutOfRange { name: "folds", value: 1.0, bound: "0, or at least 2" });
    }
    if folds > data.n_rows() {
        return Err(Error::TooFewRows { rows: data.n_rows() });
    }
    let mut shuffled: Vec<usize> = (0..data.n_rows()).collect();
    shuffled.shuffle(&mut ChaCha8Rng::seed_from_u64(method.seed));
    let parts = |fold: usize| -> Result<(Dataset, Dataset), Error> {
        let (held, kept): (Vec<_>, Vec<_>) =
            shuffled.iter().enumerate().partition(|(place, _)| place % folds == fold);
        let rows = |of: Vec<(usize, &usize)>| {
            let mut rows: Vec<usize> = of.into_iter().map(|(_, &i)| i).collect();
            rows.sort_unstable();
            data.of_rows(&rows)
        };
        Ok((rows(kept)?, rows(held)?))
    };
    let (done, total) = (Cell::new(0), sizes.len() * (folds + 1));
    let fitted = |method: &MixtureEm, rows: &Dataset, spec: &Spec| {
        let fit = method.fit_observed(rows, spec, &mut |_: &Step| watch(done.get(), total))?;
        done.set(done.get() + 1);
        if fit.report.termination == Termination::Interrupted || watch(done.get(), total).is_break() {
            return Err(Error::Interrupted);
        }
        Ok(fit)
    };
    let judge = |&(n_mixtures, n_components): &(usize, usize)| {
        let method = MixtureEm { n_mixtures, ..method.clone() };
        let spec = Spec { n_components, ..spec.clone() };
        let fit = fitted(&method, data, &spec)?;
        let mut seen = Vec::new();
        for fold in 0..folds {
            let (kept, held) = parts(fold)?;
            seen.extend(fitted(&method, &kept, &spec)?.model.log_density(&held)?);
        }
        let (log_likelihood, left) = (fit.report.objective.value, fit.model.models().len());
        let n_parameters = left * spec.n_parameters(data.n_columns()) + left - 1;
        let bic = information_criteria(log_likelihood, n_parameters, data.n_informative_rows()).bic;
        let size = MixtureSize {
            n_mixtures,
            n_components,
            log_likelihood,
            n_parameters,
            bic,
            singular: without_maximum(&fit.report),
            held_out: None,
        };
        Ok((size, fit, seen))
    };
    let judged = sizes.iter().map(judge).collect::<Result<Vec<_>, Error>>()?;
    let total = |seen: &Vec<f64>| seen.iter().sum::<f64>();
    let best = judged.iter().max_by(|a, b| total(&a.2).total_cmp(&total(&b.2))).map(|b| b.2.clone());
    let cells = data.n_observed() as f64;
    let with_held_out = |(size, fit, seen): (MixtureSize, Fit<Mixture>, Vec<f64>)| {
        let best = best.as_ref().filter(|best| !best.is_empty());
        let held_out = best.map(|best| {
            let less: Vec<f64> = best.iter().zip(&seen).map(|(best, own)| best - own).collect();
            let (n, sum) = (less.len() as f64, total(&less));
            let squares: f64 = less.iter().map(|l| (l - sum / n).powi(2)).sum();
            UnseenRows {
                mean: total(&seen) / cells,
                shortfall: sum / cells,
                shortfall_error: (n / (n - 1.0) * squares).sqrt() / cells,
            }
        });
        (MixtureSize { held_out, ..size }, fit)
    };
    Ok(judged.into_iter().map(with_held_out).collect())
}
