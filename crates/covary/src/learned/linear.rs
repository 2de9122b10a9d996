//! One linear-Gaussian model and how its fit went.

use super::answers::other_coordinates;
use super::check::{Refitted, TOLERANCE};
use super::{Answers, Ending, Learned, Rows, Scores, Trained, Training};
use crate::data::MatrixKind;
use crate::error::count;
use crate::family::{AnyMethod, Family, Request};
use crate::infer::{
    Em, FactorReport, FitReport, Init, Observer, ParameterPosterior, SharedPrivate, Termination,
    informative_rows,
};
use crate::model::{Coordinates, Mixture, Outlyingness, Predictive, Reconstruction, Rotated};
use crate::select::HeldOut;
use crate::spec::NoiseFamily;
use crate::views::{Activity, Canonical, CanonicalCorrelation};
use crate::{Dataset, Error, Estimator, Fit, LinearGaussian, Matrix, Method, Spec};
use std::ops::Range;

/// One linear-Gaussian model and how its fit went.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearFit {
    /// The model, as fitted.
    pub model: LinearGaussian,
    /// Draws of its parameters, by a method that samples them.
    pub draws: Option<Mixture>,
    /// The loadings as rotated for the reader, if a rotation was asked for.
    pub rotation: Option<RotatedLoadings>,
    /// Names of its views, whose sizes the spec has; none for a model without.
    pub views: Vec<String>,
    /// What was fitted.
    pub spec: Spec,
    /// How the fit went and ended.
    pub report: FitReport,
    /// The scores that chose the number of components, if they did.
    pub choice: Option<HeldOut>,
    /// How well a factor analysis by maximum likelihood fits; none of other models.
    pub fit_statistics: Option<FactorReport>,
    /// What it was fitted to in place of a table.
    pub matrix: Option<MatrixKind>,
    /// Of a full covariance: for each column the rows that tell of its regression on columns with more observed cells
    /// [M 4.4.6]; empty where that is not known.
    pub informative_rows: Vec<f64>,
}

/// Rotated loadings and the name of the rotation.
#[derive(Debug, Clone, PartialEq)]
pub struct RotatedLoadings {
    /// As the user gave it.
    pub name: String,
    /// Loadings, transform and factor correlations.
    pub rotated: Rotated,
}

/// How a model counts that its parameters were estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterUncertainty {
    /// Not at all.
    None,
    /// By their posterior distribution.
    Posterior,
    /// By draws of them.
    Draws,
}

impl ParameterUncertainty {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Posterior => "posterior",
            Self::Draws => "draws",
        }
    }
}

impl serde::Serialize for ParameterUncertainty {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl LinearFit {
    /// The density for rows the model was fitted to.
    pub fn of_training_rows(&self) -> Predictive<'_> {
        Predictive::of_training_rows(&self.model, self.draws.as_ref())
    }

    /// The density for other rows.
    pub fn of_new_rows(&self) -> Predictive<'_> {
        Predictive::of_new_rows(&self.model, self.draws.as_ref())
    }

    /// The loadings for the reader: rotated if a rotation was asked for.
    pub fn loadings(&self) -> &Matrix {
        self.rotation.as_ref().map_or(self.model.loadings(), |r| &r.rotated.loadings)
    }

    /// Standard deviations of the loadings, d × q, from the draws or from the posterior; `None` where the
    /// parameters are taken as known.
    pub fn loading_sds(&self) -> Option<Matrix> {
        self.draws.as_ref().and_then(Mixture::loading_sds).or_else(|| self.model.loading_sds())
    }

    /// The columns of each view, by its name.
    pub fn view_columns(&self) -> Vec<(&str, Range<usize>)> {
        let mut columns = Vec::with_capacity(self.views.len());
        let mut start = 0;
        for (name, size) in self.views.iter().zip(&self.spec.views) {
            columns.push((name.as_str(), start..start + size));
            start += size;
        }
        columns
    }

    /// How the uncertainty of the parameters is kept.
    pub fn parameter_uncertainty(&self) -> ParameterUncertainty {
        match (&self.draws, self.model.uncertainty()) {
            (Some(_), _) => ParameterUncertainty::Draws,
            (None, Some(_)) => ParameterUncertainty::Posterior,
            (None, None) => ParameterUncertainty::None,
        }
    }
}

impl Answers for LinearFit {
    fn words(&self) -> &'static str {
        "one linear-Gaussian model"
    }

    fn n_components(&self) -> usize {
        self.model.n_components()
    }

    fn n_shown(&self, learned: &Learned) -> usize {
        (learned.family.entry().n_shown)(&self.model, self.spec.n_components)
    }

    fn size(&self, learned: &Learned) -> String {
        let shown = learned.n_shown();
        let shared = if shown < self.model.n_components() { " shared" } else { "" };
        format!("{}{shared}", count(shown, "component"))
    }

    fn spec(&self) -> Option<&Spec> {
        Some(&self.spec)
    }

    fn ending(&self) -> Ending<'_> {
        (&self.report).into()
    }

    fn check_rows(&self) -> Result<(), Error> {
        let instead = "fit the table of observations itself";
        match self.matrix {
            None => Ok(()),
            Some(kind) => Err(Error::NoRows {
                what: "scores, densities, imputed values and new rows",
                kind: kind.name(),
                instead,
            }),
        }
    }

    fn density(&self, rows: Rows) -> Result<Predictive<'_>, Error> {
        self.check_rows()?;
        Ok(match rows {
            Rows::Training => self.of_training_rows(),
            Rows::New => self.of_new_rows(),
        })
    }

    fn parameter_posterior(&self, learned: &Learned) -> Option<ParameterPosterior> {
        let Ok(Method::FullCovariance(method)) = learned.method.to_method() else { return None };
        let training = &learned.training;
        let squares = training.column_sds.iter().map(|s| s * s).sum::<f64>();
        let unit = (squares / training.column_sds.len() as f64).sqrt();
        let scale = self.model.scale().map_or_else(|| vec![unit; training.column_sds.len()], <[f64]>::to_vec);
        let observed = &training.n_observed_by_column;
        let informative = if self.informative_rows.is_empty() {
            // A file from before they were kept: as if gaps were nested.
            observed.iter().map(|&n| n as f64).collect()
        } else {
            self.informative_rows.clone()
        };
        ParameterPosterior::new(&method, (&self.model, &self.spec), scale, (observed, &informative))
    }

    fn scores(&self, learned: &Learned, data: &Dataset, how: Option<Coordinates>) -> Result<Scores, Error> {
        let how = how.unwrap_or_else(|| learned.coordinates());
        if !self.views.is_empty() && how != Coordinates::Posterior {
            return Err(other_coordinates("a model of views", "posterior scores"));
        }
        let mut values = self.model.transform(data, how)?;
        if let Some(rotation) = self.rotation.as_ref().filter(|_| how.rotates()) {
            values = rotation.rotated.scores(&values)?;
        }
        let shown = learned.n_shown();
        if shown < values.n_columns() {
            values = values.first_columns(shown);
        }
        Ok(Scores { names: learned.score_names(), values, membership: None })
    }

    fn draw_scores(&self, learned: &Learned, data: &Dataset, seed: u64) -> Result<Scores, Error> {
        self.check_all_shown(learned)?;
        let mut values = self.model.draw_scores(data, seed)?;
        if let Some(rotation) = &self.rotation {
            values = rotation.rotated.scores(&values)?;
        }
        Ok(Scores { names: learned.score_names(), values, membership: None })
    }

    fn rows_of(
        &self,
        learned: &Learned,
        scores: &Matrix,
        how: Option<Coordinates>,
        seed: Option<u64>,
    ) -> Result<Matrix, Error> {
        self.check_all_shown(learned)?;
        let own = if seed.is_some() { Coordinates::Posterior } else { learned.coordinates() };
        let how = how.unwrap_or(own);
        if seed.is_some() && !how.rotates() {
            let (what, instead) = ("a draw of rows given projections", "latent scores (posterior)");
            return Err(Error::Unsupported { method: learned.family.name(), what, instead });
        }
        let unturned = match &self.rotation {
            // L z with rotated loadings and scores is W x.
            Some(rotation) if how.rotates() => rotation.rotated.unturned(scores)?,
            _ => scores.clone(),
        };
        match seed {
            Some(seed) => self.model.draw_rows(&unturned, seed),
            None => self.model.rows_of(&unturned, how),
        }
    }

    fn reconstruct(&self, learned: &Learned, data: &Dataset, orthogonal: bool) -> Result<Matrix, Error> {
        let Some(how) = learned.family.entry().reconstruction else {
            return Err(Error::Unsupported {
                method: learned.family.name(),
                what: "a reconstruction of rows",
                instead: "the prediction of one view from the other",
            });
        };
        self.model.reconstruct(data, if orthogonal { Reconstruction::Orthogonal } else { how })
    }

    fn outlyingness(&self, data: &Dataset) -> Result<Option<Vec<Outlyingness>>, Error> {
        self.model.outlyingness(data).map(Some)
    }

    fn refit(
        &self,
        learned: &Learned,
        request: &Request,
        visible: &Dataset,
        observer: &mut dyn Observer,
    ) -> Result<Option<Refitted>, Error> {
        let own = learned.method.to_method()?;
        // Components that were found superfluous are not offered again, unless a prior has a number for each.
        let n_components = match &own {
            Method::Structured(method) if method.prior_offset.is_some() => self.spec.n_components,
            _ => learned.n_shown(),
        };
        let spec = Spec { n_components, ..self.spec.clone() };
        let method = self.refit_method(&own, request)?;
        let fit = method.fit_observed(visible, &spec, observer)?;
        match fit.report.termination {
            Termination::Interrupted => Err(Error::Interrupted),
            _ => Ok(Some(Refitted::Linear(Box::new(fit)))),
        }
    }
}

impl LinearFit {
    /// Refuses what needs all components of a model that shows only those its views share.
    fn check_all_shown(&self, learned: &Learned) -> Result<(), Error> {
        if learned.n_shown() == self.model.n_components() {
            return Ok(());
        }
        let (what, instead) =
            ("rows from scores, and draws of them", "the prediction of one view from the other");
        Err(Error::Unsupported { method: learned.family.name(), what, instead })
    }

    /// The method that fits the model again with cells hidden: its own if it allows gaps, started from the
    /// model if it can be.
    fn refit_method(&self, own: &Method, request: &Request) -> Result<Method, Error> {
        let hidden = if matches!(own, Method::Gibbs(_)) { own.clone() } else { request.with_gaps(own)? };
        Ok(match hidden {
            Method::Em(em) => {
                Method::Em(Em { tolerance: em.tolerance.max(TOLERANCE), ..em.from_model(&self.model) })
            }
            Method::SharedPrivate(method) if method.private.is_none() => {
                Method::SharedPrivate(SharedPrivate {
                    tolerance: method.tolerance.max(TOLERANCE),
                    init: Init::Given(Box::new(self.model.clone())),
                    ..method
                })
            }
            other => other,
        })
    }
}

impl Learned {
    /// A fit of `data`; what the fit does not know is left empty, and the family follows from noise and method.
    pub fn of_fit(fit: Fit, data: &Dataset, spec: &Spec, method: &Method) -> Self {
        Self::of_rows(fit, data, spec, method).expect("rows in memory can be gone through")
    }

    /// As [`of_fit`](Self::of_fit), of rows wherever they are.
    ///
    /// # Errors
    /// What keeps the rows from being gone through.
    pub fn of_rows(
        fit: Fit,
        rows: &dyn crate::infer::Rows,
        spec: &Spec,
        method: &Method,
    ) -> Result<Self, Error> {
        let facts = rows.facts()?;
        let table = (facts.column_names().to_vec(), Training::of_facts(&facts));
        let mut learned = Self::of_table(fit, table, spec, method);
        if let (Method::FullCovariance(_), Trained::Linear(fit)) = (method, &mut learned.model) {
            fit.informative_rows = informative_rows(rows)?;
        }
        Ok(learned)
    }

    /// As [`of_fit`](Self::of_fit), of a table known by its columns' names and numbers.
    pub fn of_table(fit: Fit, table: (Vec<String>, Training), spec: &Spec, method: &Method) -> Self {
        let by_noise = match spec.noise {
            NoiseFamily::Isotropic => Family::Ppca,
            NoiseFamily::Diagonal => Family::Fa,
        };
        let alone = |family: &Family| family.methods() == [method.name()] && !family.has_views();
        let family = Family::ALL.iter().copied().find(alone).unwrap_or(by_noise);
        let Fit { model, draws, report } = fit;
        let linear = LinearFit {
            model,
            draws,
            rotation: None,
            views: (1..=spec.views.len()).map(|view| view.to_string()).collect(),
            spec: spec.clone(),
            report,
            choice: None,
            fit_statistics: None,
            matrix: None,
            informative_rows: Vec::new(),
        };
        Self::new(family, table, method.into(), Trained::Linear(Box::new(linear)))
    }

    /// The canonical correlations of a model of two views, from what they share; `None` of other models.
    ///
    /// # Errors
    /// As [`CanonicalCorrelation::of_covariance`].
    pub fn canonical(&self) -> Result<Option<Canonical>, Error> {
        let Trained::Linear(fit) = &self.model else { return Ok(None) };
        let &[dx, _] = &fit.spec.views[..] else { return Ok(None) };
        let n_components = Some(fit.spec.n_components.min(dx).min(self.columns.len() - dx));
        let canonical = CanonicalCorrelation { n_components, ..CanonicalCorrelation::default() };
        let covariance = fit.model.covariance();
        canonical.of_covariance(self.training.n_rows, fit.model.mean(), &covariance, dx).map(Some)
    }

    /// What each component explains of each view, of standardized columns if these were fitted; none for a model
    /// without views.
    ///
    /// # Errors
    /// As [`Activity::of_model`].
    pub fn activity(&self) -> Result<Option<Activity>, Error> {
        match &self.model {
            Trained::Linear(fit) if !fit.views.is_empty() => {
                let variances: Vec<f64> = self.training.column_sds.iter().map(|s| s * s).collect();
                Activity::of_model(&fit.model, &fit.spec.views, &variances, fit.spec.standardize).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The components offered to a method that drops those it does not need; `None` for other methods.
    pub fn n_offered(&self) -> Option<usize> {
        let prunes = self.method.to_method().is_ok_and(|method| AnyMethod::from(method).prunes());
        self.linear().ok().filter(|_| prunes).map(|fit| fit.spec.n_components)
    }

    /// Whether all components that were offered are used, and there is room for more.
    pub fn all_offered_are_used(&self) -> bool {
        let most = |fit: &LinearFit| fit.spec.max_components(self.columns.len());
        self.n_offered().is_some_and(|offered| offered == self.n_components())
            && self.linear().is_ok_and(|fit| self.n_components() < most(fit))
    }
}
