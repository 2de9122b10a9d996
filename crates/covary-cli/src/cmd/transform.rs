//! `covary transform`: where the rows stand along the components.

use super::{About, Asked, Question, WriteSheet, asked_json, push_membership};
use crate::blocks::{Answer, Part};
use crate::failure::Failure;
use crate::input::Whole;
use clap::{Args, ValueEnum};
use covary::family::{Arrangement, Family};
use covary::io::{Cells, Sheet};
use covary::learned::{DynamicFit, Knowing, Learned, Trained};
use covary::{Coordinates, Dataset, Error, Matrix};
use serde_json::Value;

/// Compute the scores of each row on the components of a model.
///
/// The scores of a row with missing values are those given its observed cells. The result has a
/// row for each row of the table: the columns that are not in the model, then component_1,
/// component_2, … What the scores are depends on the model:
///   canonical correlation    the components that the views share, given the cells of both
///   mixture                  the most probable model of the row, the probability of each, and
///                            the scores under each, 1_component_1, …
///   independent components   source_1, source_2, …
///   dynamic factor model     the factors at the time of each row, given all rows
///   functional PCA           the scores of each curve; of a long table, a row for each curve
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  covary transform wine.covary examples/wine_gaps.csv -o scores.csv
  covary transform wine.covary examples/wine_gaps.csv --covariance -o scores.parquet
  covary transform wine.covary examples/wine_gaps.csv --draw --seed 1 -o drawn.csv")]
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

    /// Draw the scores of each row from their posterior distribution, p(x | t), in place of its
    /// mean: rows that are less certain scatter more. Posterior scores, of one model.
    #[arg(long, verbatim_doc_comment)]
    draw: bool,

    /// Of a dynamic factor model: factors given the rows up to each, as they were known at the time;
    /// given all rows, before and after, if not asked for.
    #[arg(long, verbatim_doc_comment)]
    filtered: bool,

    /// Seed of --draw.
    #[arg(long, verbatim_doc_comment, default_value_t = 0, requires = "draw")]
    seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum CoordinatesName {
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
        let of_block = |&Part { learned, data, .. }: &Part<'_>| {
            let scores = learned.scores(data, self.coordinates.and_then(CoordinatesName::coordinates))?;
            let mut sheet = Sheet::default();
            if let Some(membership) = &scores.membership {
                push_membership(&mut sheet, membership);
            }
            for (k, name) in scores.names.into_iter().enumerate() {
                sheet.push(name, Cells::Numbers(scores.values.column(k)));
            }
            Ok(sheet)
        };
        let by_blocks = Answer { of_block: &of_block, of_all: &|_, _| serde_json::Map::new() };
        let variates = self.coordinates == Some(CoordinatesName::Variates);
        let given = [
            (self.covariance, "--covariance"),
            (self.draw, "--draw"),
            (self.filtered, "--filtered"),
            (variates, "--coordinates variates"),
        ];
        let by_blocks = match given.iter().find(|(given, _)| *given) {
            None => Ok(&by_blocks),
            Some((_, flag)) => Err(Whole::option(flag)),
        };
        self.question.answer_by_blocks(&About::Rows, by_blocks, |console, asked, write| {
            let (data, learned) = (asked.data()?, &asked.learned);
            let refused = |e| asked.refused(e);
            let covariances;
            let mut sheet = asked.beside(&data);
            if self.coordinates == Some(CoordinatesName::Variates) {
                if self.draw {
                    return Err(Failure::Call("--draw goes with posterior scores".to_owned()));
                }
                push_variates(&mut sheet, asked, &data)?;
                write(&sheet)?;
                return Ok(Value::Object(asked_json(asked, &data)));
            }
            let coordinates = self.coordinates.and_then(CoordinatesName::coordinates);
            self.check(learned, coordinates)?;
            if let Ok(fit) = learned.dynamic() {
                return self.factors(asked, &data, fit, write);
            }
            if self.filtered {
                return Err(Failure::Call("--filtered goes with a dynamic factor model".to_owned()));
            }
            let scores = if self.draw {
                learned.draw_scores(&data, self.seed).map_err(|e| match e {
                    Error::Unsupported { .. } => Failure::Call(
                        "--draw goes with one model, and pcca has private components besides".to_owned(),
                    ),
                    e => refused(e),
                })?
            } else {
                learned.scores(&data, coordinates).map_err(refused)?
            };
            if scores.names.is_empty() {
                console.warn("the model has no components, so rows have no scores");
            }
            if let Some(membership) = &scores.membership {
                push_membership(&mut sheet, membership);
            }
            sheet.push_matrix(scores.names, &scores.values);
            if let Ok(fit) = learned.functional()
                && self.covariance
            {
                covariances = fit.model.scores(&data).map_err(refused)?.covariances;
                push_triangles(&mut sheet, &covariances, learned.n_shown());
            } else if self.covariance {
                let fit = asked.linear()?;
                let posterior = fit.model.posterior(&data).map_err(refused)?;
                let by_pattern: Vec<Matrix> = match &fit.rotation {
                    Some(rotation) => {
                        let rotated = |c: &Matrix| rotation.rotated.score_covariance(c);
                        posterior.covariances.iter().map(rotated).collect()
                    }
                    None => posterior.covariances,
                };
                covariances =
                    posterior.pattern_of_row.iter().map(|&p| by_pattern[p].clone()).collect::<Vec<_>>();
                push_triangles(&mut sheet, &covariances, learned.n_shown());
            }
            write(&sheet)?;
            Ok(Value::Object(asked_json(asked, &data)))
        })
    }

    /// Factors in time.
    fn factors(
        &self,
        asked: &Asked,
        data: &Dataset,
        fit: &DynamicFit,
        write: &mut WriteSheet<'_>,
    ) -> Result<Value, Failure> {
        let knowing = if self.filtered { Knowing::RowsSoFar } else { Knowing::AllRows };
        let factors = fit.factors(data, knowing).map_err(|e| asked.refused(e))?;
        let mut sheet = asked.aside();
        sheet.push_matrix(asked.learned.score_names(), &factors.means);
        if self.covariance {
            push_triangles(&mut sheet, &factors.covariances, factors.means.n_columns());
        }
        write(&sheet)?;
        Ok(Value::Object(asked_json(asked, data)))
    }

    /// Refuses what the model does not have, by its flags.
    fn check(&self, learned: &Learned, coordinates: Option<Coordinates>) -> Result<(), Failure> {
        let call = |why: &str| Err(Failure::Call(why.to_owned()));
        if self.draw && !matches!(coordinates, None | Some(Coordinates::Posterior)) {
            return call("--draw goes with posterior scores; leave out --coordinates");
        }
        if learned.family.arrangement() != Arrangement::Exchangeable {
            let what = learned.family.words();
            if self.draw {
                return call(&format!(
                    "--draw goes with a model whose rows may be shuffled, not with a {what}"
                ));
            }
            if !matches!(coordinates, None | Some(Coordinates::Posterior)) {
                return call(&format!("a {what} has posterior scores; leave out --coordinates"));
            }
        }
        match &learned.model {
            Trained::Sources(_) if self.covariance || coordinates.is_some() => {
                call("--covariance and --coordinates go with components; sources have one form")
            }
            Trained::Mixture(_) if self.covariance => {
                call("--covariance goes with one model, not with a mixture")
            }
            Trained::Linear(fit) => {
                let own = if self.draw { Coordinates::Posterior } else { learned.coordinates() };
                let how = coordinates.unwrap_or(own);
                if self.covariance && how != Coordinates::Posterior {
                    return call("--covariance goes with posterior scores; add --coordinates posterior");
                }
                if !fit.views.is_empty() && how != Coordinates::Posterior {
                    return call("models of views have posterior scores and, pcca, --coordinates variates");
                }
                Ok(())
            }
            // The model itself refuses the rest.
            _ => Ok(()),
        }
    }
}

/// Puts the canonical variates of every row on a sheet.
fn push_variates(sheet: &mut Sheet<'_>, asked: &Asked, data: &Dataset) -> Result<(), Failure> {
    let found = asked.learned.canonical().map_err(|e| asked.refused(e))?;
    let Some(canonical) = found.filter(|_| asked.learned.family == Family::Pcca) else {
        return Err(Failure::Call("--coordinates variates goes with a pcca model".to_owned()));
    };
    let views = asked.linear()?.view_columns();
    let of_view = canonical.variates(data).map_err(|e| asked.refused(e))?;
    for k in 0..canonical.n_components() {
        for (variates, (name, _)) in of_view.iter().zip(&views) {
            sheet.push(format!("{name}_{}", k + 1), Cells::Numbers(variates.column(k)));
        }
    }
    Ok(())
}

fn push_triangles(sheet: &mut Sheet<'_>, covariances: &[Matrix], q: usize) {
    for a in 0..q {
        for b in 0..=a {
            let column = covariances.iter().map(|c| c[(a, b)]).collect();
            sheet.push(format!("covariance_{}_{}", a + 1, b + 1), Cells::Numbers(column));
        }
    }
}

impl CoordinatesName {
    pub(super) fn coordinates(self) -> Option<Coordinates> {
        match self {
            Self::Posterior => Some(Coordinates::Posterior),
            Self::Projection => Some(Coordinates::Projection),
            Self::Whitened => Some(Coordinates::Whitened),
            Self::Bartlett => Some(Coordinates::Bartlett),
            Self::Variates => None,
        }
    }
}
