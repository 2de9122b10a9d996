//! The questions that verbs, figures and Python classes ask of a learned model, whatever its family.

use super::check::{Checked, Refitted};
use super::draws::DrawGaps;
use super::{Ending, Learned, Residuals};
use crate::data::TimeAxis;
use crate::error::count;
use crate::family::Request;
use crate::filling::Finished;
use crate::infer::{Observer, ParameterPosterior};
use crate::model::{ColumnMap, Estimate, Fill, Imputed, Outlyingness, Predictive, tail_of_chi_squared};
use crate::select::SelfCheckOptions;
use crate::{Coordinates, Dataset, Error, Matrix, Spec};
use rand::Rng;

/// Whether rows are those that the model was fitted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// They are: draws of the parameters know them already.
    Training,
    /// They are not.
    New,
}

/// Scores of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    /// What the columns are called, such as `component_1`, or `2_component_1` under the second model of a mixture.
    pub names: Vec<String>,
    /// A row for each row of the table.
    pub values: Matrix,
    /// Which model of a mixture each row belongs to.
    pub membership: Option<Membership>,
}

/// Which model of a mixture, or class, rows belong to.
#[derive(Debug, Clone, PartialEq)]
pub struct Membership {
    /// What the models are called.
    pub names: Vec<String>,
    /// Whether these are classes that were known.
    pub are_classes: bool,
    /// The place of the most probable one, for each row.
    pub labels: Vec<usize>,
    /// The probability of each, for each row.
    pub probabilities: Matrix,
}

/// How likely, and how far out, rows are.
#[derive(Debug, Clone, PartialEq)]
pub struct RowScores {
    /// Log-density of the observed cells of each row, in nats.
    pub log_density: Vec<f64>,
    /// Distances of each row, under one model.
    pub outlyingness: Option<Vec<Outlyingness>>,
    /// How far each row is from what the rows before it let expect, under a model of time.
    pub surprises: Option<Vec<Surprise>>,
    /// Which model of a mixture each row belongs to.
    pub membership: Option<Membership>,
}

/// How far a row is from what the rows before it let expect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Surprise {
    /// Squared Mahalanobis distance of its observed cells from their prediction by the rows before; under the model χ² with as
    /// many degrees of freedom as observed cells.
    pub mahalanobis: f64,
    /// Cells that were observed.
    pub n_observed: usize,
}

impl Surprise {
    /// Probability that a row of the model, with as many observed cells, is at least as far from its prediction.
    pub fn tail_probability(&self) -> f64 {
        tail_of_chi_squared(self.n_observed, self.mahalanobis)
    }
}

/// What a kind of model answers: its file in this folder is the one place that has to say. Where the family, the method or
/// the table matters, `learned` has them.
pub(crate) trait Answers {
    /// What it is, in words, for who asked for another kind.
    fn words(&self) -> &'static str;

    /// Why it is not one linear-Gaussian model.
    fn not_linear(&self) -> Error {
        Error::NotOneModel { what: self.words() }
    }

    /// Its components, those of each of its models, or its sources.
    fn n_components(&self) -> usize;

    /// The components to show, of a model of this family.
    fn n_shown(&self, _learned: &Learned) -> usize {
        self.n_components()
    }

    /// What was fitted, or is each of its models.
    fn spec(&self) -> Option<&Spec>;

    /// How the fit ended.
    fn ending(&self) -> Ending<'_>;

    /// Refuses questions about rows, of a model that knows none.
    fn check_rows(&self) -> Result<(), Error> {
        Ok(())
    }

    /// The density of rows.
    fn density(&self, _rows: Rows) -> Result<Predictive<'_>, Error> {
        Err(self.not_linear())
    }

    /// Its size in words, of a model of this family.
    fn size(&self, _learned: &Learned) -> String {
        count(self.n_components(), "component")
    }

    /// Its family and its size.
    fn described(&self, learned: &Learned) -> String {
        format!("{}, {}", learned.family.words(), self.size(learned))
    }

    /// What its times stand for, and the first of them, of rows in time that were not only counted.
    fn time(&self) -> Option<(&TimeAxis, i64)> {
        None
    }

    /// How likely rows are; of rows in time given those before, of curves each as a whole.
    fn log_density(&self, data: &Dataset) -> Result<Vec<f64>, Error> {
        self.density(Rows::New)?.log_density(data)
    }

    /// How likely, and how far out, rows are.
    fn row_scores(&self, data: &Dataset) -> Result<RowScores, Error> {
        Ok(RowScores {
            log_density: self.log_density(data)?,
            surprises: None,
            membership: self.membership(data)?,
            outlyingness: self.outlyingness(data)?,
        })
    }

    /// The check on hidden blocks of time, of a model whose rows follow each other, or on hidden points of curves: fitted again
    /// without them, or as it is where nobody watches. Cells hidden one by one lie beside those that tell of them, and cannot
    /// speak for it.
    fn check_in_blocks(
        &self,
        _learned: &Learned,
        _data: &Dataset,
        _options: &SelfCheckOptions,
        _refit: Option<&mut dyn Observer>,
    ) -> Option<Result<Checked, Error>> {
        None
    }

    /// Residuals of cells that are hidden as such a check hides them, by which intervals are calibrated.
    fn hidden_residuals(
        &self,
        _learned: &Learned,
        _data: &Dataset,
        _observer: &mut dyn Observer,
    ) -> Option<Result<Residuals, Error>> {
        None
    }

    /// What fills gaps.
    fn fill(&self, rows: Rows) -> Result<Box<dyn Fill + '_>, Error> {
        Ok(Box::new(self.density(rows)?))
    }

    /// What draws gaps, its parameters as they are.
    fn gap_drawer(&self, rows: Rows) -> Result<Box<dyn DrawGaps + '_>, Error> {
        Ok(Box::new(self.density(rows)?))
    }

    /// How uncertain its parameters are, where the density takes them as known.
    fn parameter_posterior(&self, _learned: &Learned) -> Option<ParameterPosterior> {
        None
    }

    /// Scores of rows.
    fn scores(&self, learned: &Learned, data: &Dataset, how: Option<Coordinates>) -> Result<Scores, Error>;

    /// Draws of the scores of rows.
    fn draw_scores(&self, _learned: &Learned, _data: &Dataset, _seed: u64) -> Result<Scores, Error> {
        Err(self.not_linear())
    }

    /// Rows from scores; with a seed, drawn.
    fn rows_of(
        &self,
        _learned: &Learned,
        _scores: &Matrix,
        _how: Option<Coordinates>,
        _seed: Option<u64>,
    ) -> Result<Matrix, Error> {
        Err(self.not_linear())
    }

    /// Rows without noise.
    fn reconstruct(&self, _learned: &Learned, _data: &Dataset, _orthogonal: bool) -> Result<Matrix, Error> {
        Err(self.not_linear())
    }

    /// Which of several models rows belong to.
    fn membership(&self, _data: &Dataset) -> Result<Option<Membership>, Error> {
        Ok(None)
    }

    /// How far out rows are.
    fn outlyingness(&self, _data: &Dataset) -> Result<Option<Vec<Outlyingness>>, Error> {
        Ok(None)
    }

    /// New rows, and the model that each is from.
    fn sample(&self, n_rows: usize, rng: &mut dyn Rng) -> Result<(Matrix, Option<Vec<usize>>), Error> {
        Ok((self.density(Rows::New)?.sample(n_rows, rng), None))
    }

    /// The model fitted again, as `request` asked, to its own table with cells hidden; `None` for one that is checked as it
    /// is.
    fn refit(
        &self,
        _learned: &Learned,
        _request: &Request,
        _visible: &Dataset,
        _observer: &mut dyn Observer,
    ) -> Result<Option<Refitted>, Error> {
        Ok(None)
    }
}

/// Refuses coordinates that are not the model's own.
pub(super) fn other_coordinates(method: &'static str, instead: &'static str) -> Error {
    Error::Unsupported { method, what: "coordinates other than its own", instead }
}

impl Learned {
    /// Refuses questions about rows, of a model that was learned from a matrix and knows neither means nor rows.
    ///
    /// # Errors
    /// [`Error::NoRows`].
    pub fn check_rows(&self) -> Result<(), Error> {
        self.answers().check_rows()
    }

    /// The density of rows.
    ///
    /// # Errors
    /// [`Error::NoDensity`] for independent components.
    pub fn density(&self, rows: Rows) -> Result<Predictive<'_>, Error> {
        self.answers().density(rows)
    }

    /// What fills gaps.
    ///
    /// # Errors
    /// [`Error::NoDensity`] for independent components without noise.
    pub fn fill(&self, rows: Rows) -> Result<Box<dyn Fill + '_>, Error> {
        let model = self.answers().fill(rows)?;
        Ok(match &self.filling {
            None => model,
            Some(filling) => {
                let asked = if filling.estimated { Some(self) } else { None };
                let parameters = asked.and_then(|learned| self.answers().parameter_posterior(learned));
                let exchangeable = self.has_exchangeable_rows();
                Box::new(Finished { model, filling, parameters, exchangeable })
            }
        })
    }

    /// The table `wide` with its gaps filled, those of the model's columns by what is observed in `seen`: the same table, or
    /// one without the cells that the model is not to see.
    ///
    /// # Errors
    /// As [`fill`](Self::fill); what the columns of the model are refused for.
    pub fn impute(
        &self,
        rows: Rows,
        column_map: &ColumnMap,
        seen: &Dataset,
        wide: &Dataset,
    ) -> Result<Imputed, Error> {
        column_map.imputed(self.fill(rows)?.fill(&*column_map.dataset(seen)?)?, wide)
    }

    /// Whether it is known how uncertain parameters are that the density takes as known.
    pub(crate) fn has_parameter_posterior(&self) -> bool {
        self.answers().parameter_posterior(self).is_some()
    }

    /// Scores of rows over the model's columns, rotated with the loadings; those of the family unless others are asked
    /// for.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for coordinates that the model does not have, and as
    /// [`LinearGaussian::transform`](crate::LinearGaussian::transform).
    pub fn scores(&self, data: &Dataset, coordinates: Option<Coordinates>) -> Result<Scores, Error> {
        self.check_rows()?;
        self.answers().scores(self, data, coordinates)
    }

    /// Draws of the scores of rows from p(x | t), rotated with the loadings: the latent points that observed cells allow,
    /// where [`scores`](Self::scores) has their means.
    ///
    /// # Errors
    /// [`Error::NotOneModel`] for a mixture, [`Error::Unsupported`] for canonical correlation, and as
    /// [`LinearGaussian::draw_scores`](crate::LinearGaussian::draw_scores).
    pub fn draw_scores(&self, data: &Dataset, seed: u64) -> Result<Scores, Error> {
        self.check_rows()?;
        self.answers().draw_scores(self, data, seed)
    }

    /// Rows from [`scores`](Self::scores): without noise, or with a seed drawn from p(t | x). Coordinates are the family's
    /// unless others are said; draws are of rows given latent scores, so that they are posterior ones then.
    ///
    /// # Errors
    /// As [`draw_scores`](Self::draw_scores); [`Error::Unsupported`] for a draw given projections.
    pub fn rows_of(
        &self,
        scores: &Matrix,
        coordinates: Option<Coordinates>,
        seed: Option<u64>,
    ) -> Result<Matrix, Error> {
        self.check_rows()?;
        self.answers().rows_of(self, scores, coordinates, seed)
    }

    /// Log-density of the observed cells of each row with loadings, mean and noise integrated out exactly and x by
    /// `n_draws` draws, with its Monte-Carlo standard error.
    ///
    /// # Errors
    /// [`Error::Unsupported`] unless the model is a Bayesian PCA by `structured`, and as
    /// [`LinearGaussian::predictive_log_density`](crate::LinearGaussian::predictive_log_density).
    pub fn exact_log_density(
        &self,
        data: &Dataset,
        n_draws: usize,
        seed: u64,
    ) -> Result<Vec<Estimate>, Error> {
        let fit = self.linear()?;
        if !fit.model.has_student_predictive() {
            return Err(Error::Unsupported {
                method: self.family.name(),
                what: "the exact predictive density",
                instead: "Bayesian PCA by `structured`",
            });
        }
        fit.model.predictive_log_density(data, n_draws, seed)
    }

    /// The scores that rows have unless others are asked for.
    pub fn coordinates(&self) -> Coordinates {
        let rotated = self.linear().is_ok_and(|fit| fit.rotation.is_some());
        (self.family.entry().coordinates)(rotated)
    }

    /// Which model of a mixture, or class, rows belong to.
    ///
    /// # Errors
    /// [`Error::NotAMixture`] for other models, [`Error::ColumnCount`] for a table of other columns.
    pub fn membership(&self, data: &Dataset) -> Result<Membership, Error> {
        self.mixture()?.membership(data)
    }

    /// Rows as the components see them, without noise; by projection if `orthogonal` or if the family does so.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a family that predicts a view from the other instead, [`Error::NotOneModel`] for a
    /// mixture, and as [`LinearGaussian::reconstruct`](crate::LinearGaussian::reconstruct).
    pub fn reconstruct(&self, data: &Dataset, orthogonal: bool) -> Result<Matrix, Error> {
        self.check_rows()?;
        self.answers().reconstruct(self, data, orthogonal)
    }

    /// What it is: its family and its size, in words.
    pub fn described(&self) -> String {
        self.answers().described(self)
    }

    /// What the times of its rows stand for, and the first of them; `None` of rows that do not follow each other or were only
    /// counted.
    pub fn time(&self) -> Option<(&TimeAxis, i64)> {
        self.answers().time()
    }

    /// Log-density of the observed cells of each row, or of each curve; of rows in time given those before.
    ///
    /// # Errors
    /// As [`row_scores`](Self::row_scores).
    pub fn log_density(&self, data: &Dataset) -> Result<Vec<f64>, Error> {
        self.answers().log_density(data)
    }

    /// How likely, and how far out, rows are.
    ///
    /// # Errors
    /// [`Error::NoDensity`] for independent components, [`Error::ColumnCount`] for a table of other columns.
    pub fn row_scores(&self, data: &Dataset) -> Result<RowScores, Error> {
        self.answers().row_scores(data)
    }

    /// Whether rows have weights: how much each counts, less the farther out it is
    /// ([`Outlyingness::weight`]).
    pub fn weighs_rows(&self) -> bool {
        self.family.entry().weighs_rows
    }

    /// New rows, and the model or class that each is from.
    ///
    /// # Errors
    /// [`Error::NoDensity`] for independent components.
    pub fn sample(&self, n_rows: usize, rng: &mut dyn Rng) -> Result<(Matrix, Option<Vec<usize>>), Error> {
        self.answers().sample(n_rows, rng)
    }
}
