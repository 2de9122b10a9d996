//! The questions that verbs, figures and Python classes ask of a learned model, whatever its family.

use super::{Learned, Trained};
use crate::ica::Mixing;
use crate::model::{Fill, Outlyingness, Predictive};
use crate::{Coordinates, Dataset, Error, Matrix, Reconstruction};
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
    /// Which model of a mixture each row belongs to.
    pub membership: Option<Membership>,
}

impl Learned {
    /// The density of rows.
    ///
    /// # Errors
    /// [`Error::NoDensity`] for independent components.
    pub fn density(&self, rows: Rows) -> Result<Predictive<'_>, Error> {
        match &self.model {
            Trained::Linear(fit) if rows == Rows::Training => Ok(fit.of_training_rows()),
            Trained::Linear(fit) => Ok(fit.of_new_rows()),
            Trained::Mixture(fit) => Ok(Predictive::Model(&fit.mixture)),
            Trained::Sources(fit) => Err(super::no_density(fit)),
        }
    }

    /// What fills gaps.
    ///
    /// # Errors
    /// [`Error::NoDensity`] for independent components without noise.
    pub fn fill(&self, rows: Rows) -> Result<Box<dyn Fill + '_>, Error> {
        match &self.model {
            Trained::Sources(fit) => match &fit.model {
                Mixing::Noisy(model) => Ok(Box::new(model.clone())),
                Mixing::Exact(_) => Err(super::no_density(fit)),
            },
            Trained::Linear(_) | Trained::Mixture(_) => Ok(Box::new(self.density(rows)?)),
        }
    }

    /// Scores of rows over the model's columns, rotated with the loadings; those of the family unless others are asked
    /// for.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for coordinates that the model does not have, and as
    /// [`LinearGaussian::transform`](crate::LinearGaussian::transform).
    pub fn scores(&self, data: &Dataset, coordinates: Option<Coordinates>) -> Result<Scores, Error> {
        let refuse = |method, instead| {
            Err(Error::Unsupported { method, what: "coordinates other than its own", instead })
        };
        match &self.model {
            Trained::Linear(fit) => {
                let how = coordinates.unwrap_or_else(|| self.coordinates());
                if !fit.views.is_empty() && how != Coordinates::Posterior {
                    return refuse("a model of views", "posterior scores");
                }
                let mut values = fit.model.transform(data, how)?;
                if let Some(rotation) = fit.rotation.as_ref().filter(|_| how.rotates()) {
                    values = rotation.rotated.scores(&values)?;
                }
                let shown = self.n_shown();
                if shown < values.n_columns() {
                    values = values.first_columns(shown);
                }
                let names = (1..=shown).map(|k| format!("component_{k}")).collect();
                Ok(Scores { names, values, membership: None })
            }
            Trained::Mixture(fit) => {
                let membership = self.membership(data)?;
                let how = coordinates.unwrap_or(Coordinates::Posterior);
                let (mut names, mut by_model) = (Vec::new(), Vec::new());
                for (name, model) in membership.names.iter().zip(fit.mixture.models()) {
                    let scores = model.transform(data, how)?;
                    names.extend((1..=scores.n_columns()).map(|k| format!("{name}_component_{k}")));
                    by_model.push(scores);
                }
                let rows: Vec<Vec<f64>> = (0..data.n_rows())
                    .map(|i| by_model.iter().flat_map(|m| m.row(i).iter().copied()).collect())
                    .collect();
                let values = Matrix::from_vec(data.n_rows(), names.len(), rows.concat())?;
                Ok(Scores { names, values, membership: Some(membership) })
            }
            Trained::Sources(fit) => {
                if coordinates.is_some() {
                    return refuse("independent components", "their one form");
                }
                let values = fit.model.transform(data)?;
                let names = (1..=values.n_columns()).map(|k| format!("source_{k}")).collect();
                Ok(Scores { names, values, membership: None })
            }
        }
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
        let fit = self.mixture()?;
        Ok(Membership {
            names: fit.names(),
            are_classes: fit.classes.is_some(),
            labels: fit.mixture.labels(data)?,
            probabilities: fit.mixture.responsibilities(data)?,
        })
    }

    /// Rows as the components see them, without noise; by projection if `orthogonal` or if the family does so.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a family that predicts a view from the other instead, [`Error::NotOneModel`] for a
    /// mixture, and as [`LinearGaussian::reconstruct`](crate::LinearGaussian::reconstruct).
    pub fn reconstruct(&self, data: &Dataset, orthogonal: bool) -> Result<Matrix, Error> {
        if let Trained::Sources(fit) = &self.model {
            return fit.model.decode(&fit.model.transform(data)?);
        }
        let fit = self.linear()?;
        let Some(how) = self.family.entry().reconstruction else {
            return Err(Error::Unsupported {
                method: self.family.name(),
                what: "a reconstruction of rows",
                instead: "the prediction of one view from the other",
            });
        };
        fit.model.reconstruct(data, if orthogonal { Reconstruction::Orthogonal } else { how })
    }

    /// How likely, and how far out, rows are.
    ///
    /// # Errors
    /// [`Error::NoDensity`] for independent components, [`Error::ColumnCount`] for a table of other columns.
    pub fn row_scores(&self, data: &Dataset) -> Result<RowScores, Error> {
        let log_density = self.density(Rows::New)?.log_density(data)?;
        let membership =
            matches!(self.model, Trained::Mixture(_)).then(|| self.membership(data)).transpose()?;
        let outlyingness = match &self.model {
            Trained::Linear(fit) => Some(fit.model.outlyingness(data)?),
            Trained::Mixture(_) | Trained::Sources(_) => None,
        };
        Ok(RowScores { log_density, outlyingness, membership })
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
        match &self.model {
            Trained::Mixture(fit) => {
                let (rows, labels) = fit.mixture.sample_labeled(n_rows, rng);
                Ok((rows, Some(labels)))
            }
            Trained::Linear(_) | Trained::Sources(_) => {
                Ok((self.density(Rows::New)?.sample(n_rows, rng), None))
            }
        }
    }
}
