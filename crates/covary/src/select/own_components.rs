//! How many components each model of a mixture has [M 1.9.7].

use super::information_criteria;
use super::mixtures::{MixtureSize, without_maximum};
use crate::infer::{FitReport, MixtureEm, MixtureInit, Step, Termination};
use crate::linalg::normal;
use crate::model::{Mixture, Noise};
use crate::{Dataset, Error, Estimator, Fit, LinearGaussian, Matrix, Spec};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::ops::ControlFlow;

/// A mixture whose models have numbers of components of their own, found by BIC from mixtures with one number for all.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnComponents {
    /// The mixture, models by decreasing weight.
    pub mixture: Mixture,
    /// How its last fit went.
    pub report: FitReport,
    /// Free parameters.
    pub n_parameters: usize,
    /// `−2ℓ + p ln N`.
    pub bic: f64,
    /// Fits that were made to find it.
    pub n_fits: usize,
}

impl OwnComponents {
    /// The components of each model.
    pub fn n_components(&self) -> Vec<usize> {
        self.mixture.models().iter().map(LinearGaussian::n_components).collect()
    }
}

/// The standard deviation of a new component's loadings, in those of the noise: little, so that the other components
/// stay as they are, and enough for EM to find the direction in a few steps.
const NEW_LOADING: f64 = 0.1;

/// Searches from the best fits with one number of components for all.
pub(super) struct Search<'a> {
    pub(super) data: &'a Dataset,
    pub(super) spec: &'a Spec,
    pub(super) method: &'a MixtureEm,
    pub(super) watch: &'a dyn Fn() -> ControlFlow<()>,
    pub(super) n_fits: usize,
}

/// A mixture on the way.
#[derive(Clone)]
struct Stage {
    mixture: Mixture,
    report: FitReport,
    n_parameters: usize,
    bic: f64,
}

impl Search<'_> {
    /// Gives and takes components of single models as long as BIC falls: those of the recommended size, and of the best
    /// ones with a model less or more as long as these end lower. `None` if one number for all is best.
    pub(super) fn run(
        mut self,
        judged: &[(MixtureSize, Fit<Mixture>)],
    ) -> Result<Option<OwnComponents>, Error> {
        let best_of = |n_mixtures: Option<usize>| {
            let asked = |at: &&(MixtureSize, Fit<Mixture>)| {
                !at.0.singular && n_mixtures.is_none_or(|n| at.0.n_mixtures == n)
            };
            judged.iter().filter(asked).min_by(|a, b| a.0.bic.total_cmp(&b.0.bic))
        };
        let Some((first, _)) = best_of(None) else { return Ok(None) };
        let mut best: Option<Stage> = None;
        for more in [true, false] {
            let mut n = first.n_mixtures;
            while let Some((size, fit)) = best_of(Some(n)) {
                // The first is the same in both directions.
                if more || n != first.n_mixtures {
                    let found = self.settled(Stage {
                        mixture: fit.model.clone(),
                        report: fit.report.clone(),
                        n_parameters: size.n_parameters,
                        bic: size.bic,
                    })?;
                    if best.as_ref().is_some_and(|best| found.bic >= best.bic) {
                        break;
                    }
                    best = Some(found);
                }
                n = if more { n + 1 } else { n - 1 };
            }
        }
        Ok(best.filter(|found| found.bic < first.bic).map(|found| OwnComponents {
            mixture: found.mixture.canonical(),
            report: found.report,
            n_parameters: found.n_parameters,
            bic: found.bic,
            n_fits: self.n_fits,
        }))
    }

    /// Each model in turn is given components, or else relieved of them, while BIC falls, until none gains by either.
    fn settled(&mut self, mut at: Stage) -> Result<Stage, Error> {
        let n = at.mixture.models().len();
        let (mut k, mut unchanged) = (0, 0);
        while unchanged < n {
            let mut moved = false;
            for more in [true, false] {
                if moved {
                    break;
                }
                while let Some(better) = self.moved(&at, k, more)? {
                    at = better;
                    moved = true;
                }
            }
            unchanged = if moved { 1 } else { unchanged + 1 };
            k = (k + 1) % n;
        }
        Ok(at)
    }

    /// The mixture fitted again with a component more or less of model `k`, if its BIC is less.
    fn moved(&mut self, at: &Stage, k: usize, more: bool) -> Result<Option<Stage>, Error> {
        let mut models = at.mixture.models().to_vec();
        let (d, q) = (self.data.n_columns(), models[k].n_components());
        let most = Spec { n_components: 0, ..self.spec.clone() }.max_components(d);
        if if more { q >= most } else { q == 0 } {
            return Ok(None);
        }
        models[k] = if more { self.widened(&models[k], k)? } else { narrowed(&models[k])? };
        let components: Vec<usize> = models.iter().map(LinearGaussian::n_components).collect();
        let largest = components.iter().copied().max().unwrap_or(0);
        let start = Mixture::new(models, at.mixture.weights().to_vec())?;
        let (n_mixtures, init) = (components.len(), MixtureInit::Given(Box::new(start)));
        let method = MixtureEm { n_mixtures, init, ..self.method.clone() };
        let spec = Spec { n_components: largest, ..self.spec.clone() };
        let fitted = method.fit_observed(self.data, &spec, &mut |_: &Step| (self.watch)());
        self.n_fits += 1;
        let fit = match fitted {
            Ok(fit) if fit.report.termination == Termination::Interrupted => return Err(Error::Interrupted),
            Ok(fit) => fit,
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            // Where the table has too few rows for it, there is no such mixture.
            Err(_) => return Ok(None),
        };
        if without_maximum(&fit.report) || fit.model.models().len() < n_mixtures {
            return Ok(None);
        }
        let of = |&n_components: &usize| Spec { n_components, ..spec.clone() }.n_parameters(d);
        let n_parameters = components.iter().map(of).sum::<usize>() + n_mixtures - 1;
        let value = fit.report.objective.value;
        let bic = information_criteria(value, n_parameters, self.data.n_informative_rows()).bic;
        let better = bic < at.bic;
        Ok(better.then_some(Stage { mixture: fit.model, report: fit.report, n_parameters, bic }))
    }

    /// The model with one component more, in any direction: EM turns it to where it explains most.
    fn widened(&self, model: &LinearGaussian, k: usize) -> Result<LinearGaussian, Error> {
        let (w, noise) = (model.loadings(), model.noise_variances());
        let (d, q) = (w.n_rows(), w.n_columns());
        let mut rng = ChaCha8Rng::seed_from_u64(self.method.seed);
        rng.set_stream((k * d + q) as u64);
        let new = normal(d, 1, &mut rng);
        let entry = |j: usize, i: usize| {
            if i < q { w[(j, i)] } else { NEW_LOADING * noise[j].sqrt() * new[(j, 0)] }
        };
        let wider = Matrix::from_fn(d, q + 1, entry);
        LinearGaussian::new(wider, model.mean().to_vec(), model.noise().clone())?
            .with_scale(model.scale().map(<[f64]>::to_vec))
    }
}

/// The model without its last component, whose variance becomes noise.
fn narrowed(model: &LinearGaussian) -> Result<LinearGaussian, Error> {
    let (w, q) = (model.loadings(), model.n_components() - 1);
    let more = |j: usize| w[(j, q)] * w[(j, q)];
    let noise = match model.noise() {
        Noise::Isotropic(v) => {
            Noise::Isotropic(v + (0..w.n_rows()).map(more).sum::<f64>() / w.n_rows() as f64)
        }
        Noise::Diagonal(v) => Noise::Diagonal(v.iter().enumerate().map(|(j, v)| v + more(j)).collect()),
    };
    LinearGaussian::new(w.first_columns(q), model.mean().to_vec(), noise)?
        .with_scale(model.scale().map(<[f64]>::to_vec))
}
