//! `covary reconstruct`: the rows as the model sees them.

use super::transform::CoordinatesName;
use super::{About, Question, asked_json};
use crate::args::probability;
use crate::failure::Failure;
use crate::views;
use clap::Args;
use covary::io::{Cells, ColumnKind, Sheet};
use covary::model::ColumnMap;
use covary::{Dataset, Error, Matrix};
use serde_json::Value;

/// Rows as the model sees them: every cell, observed or not, replaced by what the components say.
///
/// Noise is left out, so the result is smoother than the table. To keep observed cells and fill
/// only the gaps, use `covary impute`. Of independent components: the rows that their sources
/// mix to.
///
/// With --view, of a model of several views: the columns of that view predicted from the others,
/// each with its standard deviation and interval. The table need not have them; if it has, they
/// are passed through for comparison and not looked at.
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  covary reconstruct wine.covary examples/wine_gaps.csv -o smooth.csv
  covary reconstruct wine.covary examples/wine_gaps.csv --orthogonal -o projected.csv
  covary transform wine.covary examples/wine_gaps.csv -o scores.csv
  covary reconstruct wine.covary --from-scores scores.csv --draw --seed 1 -o drawn.csv
  covary fit examples/wine_gaps.csv --model pcca --view x=1:5 --view y=6:13 -o views.covary
  covary reconstruct views.covary examples/wine_gaps.csv --view y -o predicted.csv")]
pub(crate) struct Reconstruct {
    #[command(flatten)]
    question: Question,

    /// Project on the plane of the components as PCA does, instead of the posterior mean. The
    /// default for a pca model.
    #[arg(long, verbatim_doc_comment)]
    orthogonal: bool,

    /// Predict this view from the others: predicted_COLUMN, sd_COLUMN, lower_COLUMN and
    /// upper_COLUMN for each of its columns.
    #[arg(long, verbatim_doc_comment, value_name = "NAME", conflicts_with = "orthogonal")]
    view: Option<String>,

    /// Probability that a predicted cell is in its interval.
    #[arg(long, verbatim_doc_comment, value_name = "LEVEL", default_value_t = 0.95, value_parser = probability, requires = "view")]
    interval: f64,

    /// DATA holds scores, component_1, component_2, … as `covary transform` writes them, and not
    /// rows: the result has the rows that they stand for, without noise. Scores by projection,
    /// whitened or Bartlett come back when the result is transformed again.
    #[arg(long, verbatim_doc_comment, conflicts_with_all = ["orthogonal", "view"])]
    from_scores: bool,

    /// Which scores DATA holds: those that `covary transform` writes if it is not told which.
    #[arg(long, verbatim_doc_comment, value_enum, requires = "from_scores")]
    coordinates: Option<CoordinatesName>,

    /// Draw each row given its scores, p(t | x), in place of its mean: with noise. The scores are
    /// posterior ones, or drawn by `covary transform --draw`.
    #[arg(long, verbatim_doc_comment, requires = "from_scores")]
    draw: bool,

    /// Seed of --draw.
    #[arg(long, verbatim_doc_comment, default_value_t = 0, requires = "draw")]
    seed: u64,
}

impl Reconstruct {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        if let Some(view) = &self.view {
            return self.predict(view);
        }
        if self.from_scores {
            return self.of_scores();
        }
        self.question.answer(&About::Rows, |_, asked, write| {
            let data = asked.data()?;
            let seen = asked.learned.reconstruct(&data, self.orthogonal).map_err(|e| match e {
                Error::Unsupported { .. } => Failure::Call(
                    "a pcca model predicts one view from the other; say which: --view NAME".to_owned(),
                ),
                e => asked.refused(e),
            })?;
            let (table, ColumnMap { columns, constants }) = (&asked.source.table, &asked.column_map);
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

    /// Rows from scores.
    fn of_scores(&self) -> Result<(), Failure> {
        let call = |why: &str| Err(Failure::Call(why.to_owned()));
        let coordinates = match self.coordinates {
            None => None,
            Some(name) => match name.coordinates() {
                None => return call("--from-scores takes scores of components, not variates"),
                own => own,
            },
        };
        self.question.answer(&About::Scores, |_, asked, write| {
            let (data, learned) = (asked.data()?, &asked.learned);
            if let Some((i, j)) = data.first_gap() {
                return Err(Failure::work(
                    &asked.source.name,
                    format!(
                        "row {}: `{}` is missing, and a row needs all its scores",
                        i + 1,
                        data.column_names()[j]
                    ),
                ));
            }
            let rows = learned.rows_of(data.values(), coordinates, self.draw.then_some(self.seed));
            let rows = rows.map_err(|e| match e {
                Error::Unsupported { .. } if self.draw => {
                    Failure::Call("--draw goes with posterior scores, of one model without views".to_owned())
                }
                Error::Unsupported { .. } => Failure::Call(
                    "a pcca model predicts one view from the other; say which: --view NAME".to_owned(),
                ),
                e => asked.refused(e),
            })?;
            let mut sheet = asked.aside();
            sheet.push_matrix(learned.columns.clone(), &rows);
            for constant in &learned.constants {
                sheet.push(constant.name.clone(), Cells::Numbers(vec![constant.value; data.n_rows()]));
            }
            write(&sheet)?;
            Ok(Value::Object(asked_json(asked, &data)))
        })
    }

    /// The columns of a view given the others.
    fn predict(&self, view: &str) -> Result<(), Failure> {
        self.question.answer(&About::Without(view), |_, asked, write| {
            let (fit, known) = (asked.linear()?, asked.data()?);
            let failed = |e| Failure::of_table(&asked.source.name, e);
            let hidden = views::find(fit, view)?;
            let joint = Matrix::from_fn(known.n_rows(), asked.learned.columns.len(), |i, j| match j {
                j if hidden.contains(&j) => f64::NAN,
                j if j < hidden.start => known.row(i)[j],
                j => known.row(i)[j - hidden.len()],
            });
            let joint = Dataset::new(joint).map_err(failed)?;
            let filled = fit.of_new_rows().impute(&joint).map_err(failed)?;
            let mut predicted = vec![[(); 4].map(|()| vec![f64::NAN; known.n_rows()]); hidden.len()];
            for cell in filled.cells().iter().filter(|cell| hidden.contains(&cell.column)) {
                let (lower, upper) = cell.interval(self.interval).map_err(failed)?;
                let column = &mut predicted[cell.column - hidden.start];
                for (of, value) in column.iter_mut().zip([cell.mean, cell.sd, lower, upper]) {
                    of[cell.row] = value;
                }
            }
            let mut sheet = asked.aside();
            for (name, column) in asked.learned.columns[hidden].iter().zip(predicted) {
                for (what, values) in ["predicted", "sd", "lower", "upper"].iter().zip(column) {
                    sheet.push(format!("{what}_{name}"), Cells::Numbers(values));
                }
            }
            write(&sheet)?;
            Ok(Value::Object(asked_json(asked, &known)))
        })
    }
}
