//! `covary reconstruct`: the rows as the model sees them.

use super::{Question, asked_json};
use crate::failure::Failure;
use clap::Args;
use covary::Reconstruction;
use covary::io::{Cells, ColumnKind, Sheet};
use covary::model::Placement;
use serde_json::Value;

/// Rows as the model sees them: every cell, observed or not, replaced by what the components say.
///
/// Noise is left out, so the result is smoother than the table. To keep observed cells and fill
/// only the gaps, use `covary impute`.
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  covary reconstruct wine.covary examples/wine_gaps.csv -o smooth.csv
  covary reconstruct wine.covary examples/wine_gaps.csv --orthogonal -o projected.csv")]
pub(crate) struct Reconstruct {
    #[command(flatten)]
    question: Question,

    /// Project on the plane of the components as PCA does, instead of the posterior mean. The
    /// default for a pca model.
    #[arg(long, verbatim_doc_comment)]
    orthogonal: bool,
}

impl Reconstruct {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        self.question.answer(|_, asked, write| {
            let (saved, data) = (asked.saved()?, asked.data()?);
            let failed = |e| Failure::of_table(&asked.source.name, e);
            let how = if self.orthogonal || saved.family == "pca" {
                Reconstruction::Orthogonal
            } else {
                Reconstruction::PosteriorMean
            };
            let seen = saved.model.reconstruct(&data, how).map_err(failed)?;
            let (table, Placement { columns, constants }) = (&asked.source.table, &asked.placement);
            let mut sheet = Sheet::default();
            let mut numbers = 0..;
            for (j, name) in table.column_names().iter().enumerate() {
                let carried = *table.kind(j) != ColumnKind::Numbers;
                if carried && asked.bare {
                    continue;
                }
                let place = (!carried).then(|| numbers.next());
                let in_model = columns.iter().position(|&c| place == Some(Some(c)));
                let constant = constants.iter().find(|c| place == Some(Some(c.0)));
                sheet.push(
                    name.clone(),
                    match (in_model, constant) {
                        (Some(column), _) => Cells::Column { of: &seen, column },
                        (None, Some(&(_, value))) => Cells::Numbers(vec![value; table.n_rows()]),
                        (None, None) => Cells::Carried { table, column: j },
                    },
                );
            }
            write(&sheet)?;
            Ok(Value::Object(asked_json(asked, &data)))
        })
    }
}
