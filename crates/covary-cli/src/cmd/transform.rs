//! `covary transform`: where the rows stand along the components.

use super::{Asked, Question, asked_json};
use crate::failure::Failure;
use crate::ica;
use crate::mixture::{self, push_labels};
use clap::{Args, ValueEnum};
use covary::io::model_file::{Opened, Saved, SavedMixture};
use covary::io::{Cells, Sheet};
use covary::{Coordinates, Dataset, Matrix};
use serde_json::Value;

/// Scores of rows: where each stands along the components of a model.
///
/// A row with gaps is placed by its observed cells alone. The result has a row for each row of
/// the table, the columns that are not in the model first, then component_1, component_2, …
/// Of canonical correlation: what the views share, placed by the cells of both.
/// Of a mixture: the model that each row most likely belongs to, how probable each is, and the
/// scores under each, 1_component_1, … Of independent components: source_1, source_2, …
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  covary transform wine.covary examples/wine_gaps.csv -o scores.csv
  covary transform wine.covary examples/wine_gaps.csv --covariance -o scores.parquet")]
pub(crate) struct Transform {
    #[command(flatten)]
    question: Question,

    /// Which scores. If not given: projection for pca, posterior otherwise, and for pca with a rotation, which
    /// rotates posterior scores with the loadings.
    #[arg(long, verbatim_doc_comment, value_enum)]
    coordinates: Option<CoordinatesName>,

    /// Also write the posterior covariance of each row's scores, the lower triangle row by row:
    /// covariance_1_1, covariance_2_1, covariance_2_2, …
    #[arg(long, verbatim_doc_comment)]
    covariance: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CoordinatesName {
    /// Posterior mean: shrunk towards 0 as far as the row is uncertain.
    Posterior,
    /// Orthogonal projection on the principal axes, as in PCA; of standardized columns if these were fitted.
    Projection,
    /// Projection divided by its standard deviation.
    Whitened,
    /// Weighted least squares (Bartlett): unbiased, not shrunk.
    Bartlett,
    /// Canonical variates of each view of pcca, x_1, y_1, …: of gaps their mean given the row.
    Variates,
}

impl Transform {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        self.question.answer(|console, asked, write| {
            let data = asked.data()?;
            let failed = |e| Failure::of_table(&asked.source.name, e);
            if let Opened::Sources(saved) = &asked.opened {
                if self.covariance || self.coordinates.is_some() {
                    return Err(Failure::Call(
                        "--covariance and --coordinates go with components; sources have one form".to_owned(),
                    ));
                }
                let sources = saved.model().transform(&data).map_err(failed)?;
                let mut sheet = asked.aside();
                sheet.push_matrix(ica::names(saved), &sources);
                write(&sheet)?;
                return Ok(Value::Object(asked_json(asked, &data)));
            }
            if let Opened::Mixture(saved) = &asked.opened {
                let sheet = self.by_model(asked, saved, &data)?;
                write(&sheet)?;
                return Ok(Value::Object(asked_json(asked, &data)));
            }
            let saved = asked.saved()?;
            let coordinates = match self.coordinates {
                None if saved.family == "pca" && saved.rotation.is_none() => CoordinatesName::Projection,
                None => CoordinatesName::Posterior,
                Some(name) => name,
            };
            if self.covariance && coordinates != CoordinatesName::Posterior {
                return Err(Failure::Call(
                    "--covariance goes with posterior scores; add --coordinates posterior".to_owned(),
                ));
            }
            if coordinates == CoordinatesName::Variates {
                let sheet = variates(asked, saved, &data)?;
                write(&sheet)?;
                return Ok(Value::Object(asked_json(asked, &data)));
            }
            if !saved.views.is_empty() && coordinates != CoordinatesName::Posterior {
                return Err(Failure::Call(
                    "models of views have posterior scores and, pcca, --coordinates variates".to_owned(),
                ));
            }
            // Posterior scores and least-squares ones turn with the loadings; projections are on the
            // principal axes, which no rotation moves.
            let turns = matches!(coordinates, CoordinatesName::Posterior | CoordinatesName::Bartlett);
            let rotation = saved.rotation.as_ref().filter(|_| turns).map(|r| &r.rotated);
            let mut scores = saved.model.transform(&data, coordinates.coordinates()).map_err(failed)?;
            if let Some(rotated) = rotation {
                scores = rotated.scores(&scores).map_err(failed)?;
            }
            let q = saved.n_shown();
            if q < scores.n_columns() {
                scores = scores.first_columns(q);
            }
            if q == 0 {
                console.warn("the model has no components, so rows have no scores");
            }
            let mut sheet = asked.aside();
            sheet.push_matrix((1..=q).map(|k| format!("component_{k}")), &scores);
            let covariances;
            if self.covariance {
                let posterior = saved.model.posterior(&data).map_err(failed)?;
                let by_pattern: Vec<Matrix> = match rotation {
                    Some(rotated) => {
                        posterior.covariances.iter().map(|c| rotated.score_covariance(c)).collect()
                    }
                    None => posterior.covariances,
                };
                covariances = posterior.pattern_of_row.iter().map(|&p| &by_pattern[p]).collect::<Vec<_>>();
                push_triangles(&mut sheet, &covariances, q);
                write(&sheet)?;
            } else {
                write(&sheet)?;
            }
            Ok(Value::Object(asked_json(asked, &data)))
        })
    }
}

impl Transform {
    /// Which model a row most likely belongs to, and its scores under each.
    fn by_model<'a>(
        &self,
        asked: &'a Asked,
        saved: &SavedMixture,
        data: &Dataset,
    ) -> Result<Sheet<'a>, Failure> {
        let failed = |e| Failure::of_table(&asked.source.name, e);
        if self.covariance {
            return Err(Failure::Call("--covariance goes with one model, not with a mixture".to_owned()));
        }
        if self.coordinates == Some(CoordinatesName::Variates) {
            return Err(Failure::Call("--coordinates variates goes with a pcca model".to_owned()));
        }
        let coordinates = self.coordinates.unwrap_or(CoordinatesName::Posterior).coordinates();
        let mut sheet = asked.aside();
        push_labels(&mut sheet, saved, data).map_err(failed)?;
        for (name, model) in mixture::names(saved).iter().zip(saved.mixture.models()) {
            let scores = model.transform(data, coordinates).map_err(failed)?;
            for k in 0..scores.n_columns() {
                sheet.push(format!("{name}_component_{}", k + 1), Cells::Numbers(scores.column(k)));
            }
        }
        Ok(sheet)
    }
}

/// The canonical variates of every row.
fn variates<'a>(asked: &'a Asked, saved: &Saved, data: &Dataset) -> Result<Sheet<'a>, Failure> {
    let failed = |e| Failure::of_table(&asked.source.name, e);
    let canonical = saved.canonical().map_err(|e| Failure::work(&asked.model, e))?;
    let Some(canonical) = canonical.filter(|_| saved.family == "pcca") else {
        return Err(Failure::Call("--coordinates variates goes with a pcca model".to_owned()));
    };
    let (mut sheet, views) = (asked.aside(), saved.view_columns());
    let of_view = canonical.variates(data).map_err(failed)?;
    for k in 0..canonical.n_components() {
        for (variates, (name, _)) in of_view.iter().zip(&views) {
            sheet.push(format!("{name}_{}", k + 1), Cells::Numbers(variates.column(k)));
        }
    }
    Ok(sheet)
}

fn push_triangles(sheet: &mut Sheet<'_>, covariances: &[&Matrix], q: usize) {
    for a in 0..q {
        for b in 0..=a {
            let column = covariances.iter().map(|c| c[(a, b)]).collect();
            sheet.push(format!("covariance_{}_{}", a + 1, b + 1), Cells::Numbers(column));
        }
    }
}

impl CoordinatesName {
    fn coordinates(self) -> Coordinates {
        match self {
            Self::Posterior | Self::Variates => Coordinates::Posterior,
            Self::Projection => Coordinates::Projection,
            Self::Whitened => Coordinates::Whitened,
            Self::Bartlett => Coordinates::Bartlett,
        }
    }
}
