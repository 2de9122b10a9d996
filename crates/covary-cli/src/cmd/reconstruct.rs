//! `covary reconstruct`: the rows as the model sees them.

use super::transform::CoordinatesName;
use super::{About, Question, asked_json};
use crate::args::probability;
use crate::blocks::{Answer, Part};
use crate::failure::Failure;
use crate::views;
use clap::Args;
use covary::functional::PredictedCurve;
use covary::io::{Cells, ColumnKind, Sheet};
use covary::model::{ColumnMap, FilledCell};
use covary::{Dataset, Error, Matrix};
use serde_json::Value;

/// Reconstruct the table from its components, without the noise.
///
/// Every cell, observed or missing, is replaced by its fitted value, so that the result is smoother
/// than the table. `covary impute` keeps observed cells and replaces only missing values. For
/// independent components, rows are reconstructed from their estimated sources.
///
/// With --view, for a model of several views, the columns of that view are predicted from those of
/// the others, each with its standard deviation and prediction interval. The table need not have
/// the columns of the view; if it has them, they are passed through and not used.
///
/// With --at, for a functional PCA, each curve is predicted at these times given its points: mean,
/// standard deviation and interval of the curve itself, without the noise of a point.
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  covary reconstruct wine.covary examples/wine_gaps.csv -o smooth.csv
  covary reconstruct wine.covary examples/wine_gaps.csv --orthogonal -o projected.csv
  covary transform wine.covary examples/wine_gaps.csv -o scores.csv
  covary reconstruct wine.covary --from-scores scores.csv --draw --seed 1 -o drawn.csv
  covary fit examples/wine_gaps.csv --model pcca --view x=1:5 --view y=6:13 -o views.covary
  covary reconstruct views.covary examples/wine_gaps.csv --view y -o predicted.csv
  covary fit examples/growth.csv --model fpca --curve child --time age --value height -o growth.covary
  covary reconstruct growth.covary examples/growth.csv --at 2:16:0.5 -o curves.csv")]
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

    /// Of a functional PCA: the times to predict every curve at: FROM:TO:STEP, or times separated by
    /// commas.
    #[arg(long, verbatim_doc_comment, value_name = "TIMES", value_parser = times, conflicts_with_all = ["orthogonal", "view"])]
    at: Option<Times>,

    /// Probability that a predicted cell, or curve, is in its interval.
    #[arg(long, verbatim_doc_comment, value_name = "LEVEL", default_value_t = 0.95, value_parser = probability)]
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

/// Times that were asked for.
#[derive(Debug, Clone)]
pub(crate) struct Times(Vec<f64>);

/// Most times of a curve.
const MOST_TIMES: f64 = 1e6;

fn times(text: &str) -> Result<Times, String> {
    let expected = || "give FROM:TO:STEP, such as 0:10:0.5, or times separated by commas".to_owned();
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|t| t.is_finite()).ok_or_else(expected);
    if let [from, to, step] = text.split(':').collect::<Vec<_>>()[..] {
        let (from, to, step) = (number(from)?, number(to)?, number(step)?);
        let steps = ((to - from) / step + 1e-9).floor();
        if !(step > 0.0 && (0.0..MOST_TIMES).contains(&steps)) {
            return Err(expected());
        }
        return Ok(Times((0..=steps as usize).map(|i| (from + i as f64 * step).min(to)).collect()));
    }
    Ok(Times(text.split(',').map(number).collect::<Result<_, _>>()?))
}

impl Reconstruct {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        if let Some(Times(times)) = &self.at {
            return self.curves(times);
        }
        if let Some(view) = &self.view {
            return self.predict(view);
        }
        if self.from_scores {
            return self.of_scores();
        }
        let of_block = |part: &Part<'_>| {
            let (seen, n) = (part.learned.reconstruct(part.data, self.orthogonal)?, part.data.n_rows());
            let mut sheet = Sheet::default();
            for (j, name) in part.names.iter().enumerate() {
                let in_model = part.map.columns.iter().position(|&c| c == j);
                let constant = part.map.constants.iter().find(|c| c.0 == j);
                let cells = match (in_model, constant) {
                    (Some(column), _) => seen.column(column),
                    (None, Some(&(_, value))) => vec![value; n],
                    (None, None) => part.block.values().column(j),
                };
                sheet.push(name.clone(), Cells::Numbers(cells));
            }
            Ok(sheet)
        };
        let by_blocks = Answer { of_block: &of_block, of_all: &|_, _| serde_json::Map::new() };
        self.question.answer_by_blocks(&About::Rows, Ok(&by_blocks), |_, asked, write| {
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

    /// Every curve at these times.
    fn curves(&self, times: &[f64]) -> Result<(), Failure> {
        self.question.answer(&About::Rows, "--at", |_, asked, write| {
            let (data, refused) = (asked.data()?, |e| asked.refused(e));
            let fit = asked.learned.functional().map_err(refused)?;
            let (from, to) = fit.model.basis().interval();
            if let Some(time) = times.iter().find(|time| !(from..=to).contains(*time)) {
                let why = format!("time {time} is outside the interval of the model, {from} to {to}");
                return Err(Failure::work("--at", why));
            }
            let predicted = fit.model.predict(&data, times).map_err(refused)?;
            let each = |k: usize| std::iter::repeat_n(k, times.len());
            let curves = (0..predicted.len()).flat_map(each);
            let mut sheet = Sheet::default();
            if let Some((column, names)) = asked.learned.curves_of(&data) {
                sheet.push(column, Cells::Text(curves.map(|k| names[k].clone()).collect()));
            } else {
                let table = &asked.source.table;
                let labels = table.columns_aside().into_iter().filter(|_| !asked.bare);
                for j in labels {
                    let of_rows = curves.clone().map(|k| table.text(k, j)).collect();
                    sheet.push(table.column_names()[j].clone(), Cells::Text(of_rows));
                }
                sheet.push("row", Cells::Integers(curves.map(|k| k as i64 + 1).collect()));
            }
            let all = |of: fn(&PredictedCurve) -> &[f64]| -> Vec<f64> {
                predicted.iter().flat_map(|curve| of(curve).iter().copied()).collect()
            };
            let (means, sds) = (all(|curve| &curve.means), all(|curve| &curve.sds));
            let interval =
                |(&mean, &sd): (&f64, &f64)| FilledCell::normal(0, 0, mean, sd).interval(self.interval);
            let intervals: Vec<(f64, f64)> =
                means.iter().zip(&sds).map(interval).collect::<Result<_, _>>().map_err(refused)?;
            let time = fit.long().map_or("time", |columns| columns.time.as_str());
            sheet.push(time, Cells::Numbers(times.repeat(predicted.len())));
            sheet.push("mean", Cells::Numbers(means));
            sheet.push("sd", Cells::Numbers(sds));
            sheet.push("lower", Cells::Numbers(intervals.iter().map(|i| i.0).collect()));
            sheet.push("upper", Cells::Numbers(intervals.iter().map(|i| i.1).collect()));
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
        self.question.answer(&About::Scores, "--from-scores", |_, asked, write| {
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
        self.question.answer(&About::Without(view), "--view", |_, asked, write| {
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
