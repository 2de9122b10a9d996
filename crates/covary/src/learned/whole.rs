//! Models whose rows, or points, tell of each other: they are asked about a table as a whole.

use super::answers::{RowScores, Surprise, other_coordinates};
use super::check::Checked;
use super::draws::DrawGaps;
use super::{Answers, Ending, Learned, Rows, Scores};
use crate::data::{TimeAxis, Timeline};
use crate::error::count;
use crate::infer::{FitReport, Observer, Termination};
use crate::model::{Fill, FilledCell};
use crate::select::{CheckedCell, SelfCheck, SelfCheckOptions};
use crate::{Coordinates, Dataset, Error, Estimator, Matrix, Spec};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::borrow::Cow;

/// Fills the cells of a table that a check gives it.
pub(super) type Filler<'a> = dyn FnMut(&Dataset) -> Result<Vec<FilledCell>, Error> + 'a;

/// A fitted model of whole tables. What it says here is all that tells it from others of its kind: the rest is [`Answers`].
pub(super) trait WholeTable: Sync {
    /// Who fits it.
    type Method: Estimator;

    /// What it is, in words.
    const WORDS: &'static str;
    /// What it cannot be asked, and what can.
    const NOT_LINEAR: (&'static str, &'static str);
    /// Whether its check hides blocks of time.
    const IN_BLOCKS: bool;

    /// The model, what was fitted, and how that went.
    fn fitted(&self) -> (&<Self::Method as Estimator>::Model, &Spec, &FitReport);

    /// Its components.
    fn n_components(&self) -> usize;

    /// The missing cells of a table, by this model or by the same one fitted again.
    fn cells(
        &self,
        model: &<Self::Method as Estimator>::Model,
        table: &Dataset,
    ) -> Result<Vec<FilledCell>, Error>;

    /// Its size in words.
    fn size(&self) -> String {
        count(self.n_components(), "component")
    }

    /// What its times stand for, and the first of them, of rows in time that were not only counted.
    fn time(&self) -> Option<(&TimeAxis, i64)> {
        None
    }

    /// A table with its missing cells drawn.
    fn draw(&self, table: &Dataset, rng: &mut ChaCha8Rng) -> Result<Matrix, Error>;

    /// Posterior means of the scores.
    fn score_means(&self, data: &Dataset) -> Result<Matrix, Error>;

    /// The table without noise.
    fn rebuilt(&self, data: &Dataset) -> Result<Matrix, Error>;

    /// Log-densities, and how far out each row or curve is.
    fn densities(&self, data: &Dataset) -> Result<(Vec<f64>, Vec<Surprise>), Error>;

    /// New rows.
    fn new_rows(&self, n_rows: usize, rng: &mut dyn Rng) -> Result<Matrix, Error>;

    /// How it is fitted again to its own table with cells hidden.
    fn again(&self, learned: &Learned) -> Result<Self::Method, Error>;

    /// How well `fill` predicts what is hidden from it.
    fn check(
        &self,
        data: &Dataset,
        options: &SelfCheckOptions,
        fill: &mut Filler<'_>,
    ) -> Result<(SelfCheck, Vec<CheckedCell>), Error>;

    /// Residuals of cells hidden as the gaps lie, the model fitted again without them; none where no cell can be spared.
    fn residuals(
        &self,
        learned: &Learned,
        data: &Dataset,
        observer: &mut dyn Observer,
    ) -> Result<Residuals, Error>;

    /// The model fitted again to its own table with cells hidden.
    fn without(
        &self,
        learned: &Learned,
        visible: &Dataset,
        observer: &mut dyn Observer,
    ) -> Result<<Self::Method as Estimator>::Model, Error> {
        let fit = self.again(learned)?.fit_observed(visible, self.fitted().1, observer)?;
        match fit.report.termination {
            Termination::Interrupted => Err(Error::Interrupted),
            _ => Ok(fit.model),
        }
    }
}

/// What was found of hidden cells, which intervals are calibrated by.
#[derive(Debug, Default)]
pub(crate) struct Residuals {
    /// In standard deviations that the model states, each with its column.
    pub(crate) of_cells: Vec<(usize, f64)>,
    /// Whether some were hidden at random, not as the gaps lie.
    pub(crate) at_random: bool,
}

impl Residuals {
    /// Those of the cells of a set.
    pub(super) fn add(
        &mut self,
        data: &Dataset,
        cells: impl Iterator<Item = FilledCell>,
        transplanted: bool,
    ) {
        self.at_random |= !transplanted;
        self.of_cells.extend(cells.map(|cell| {
            (cell.column, (data.row(cell.row)[cell.column] - cell.mean) / cell.sd.max(f64::MIN_POSITIVE))
        }));
    }
}

/// When the rows of a table happened, in the times of a model.
pub(super) fn times_of<'a>(axis: Option<&TimeAxis>, data: &'a Dataset) -> Result<Cow<'a, Timeline>, Error> {
    let times = data.times();
    if axis.map(|axis| axis.steps) == times.axis().map(|axis| axis.steps) {
        return Ok(times);
    }
    let words = |axis: Option<&TimeAxis>| match axis {
        None => "that count rows".to_owned(),
        Some(axis) => format!("`{}`, {}", axis.name, axis.steps.words()),
    };
    Err(Error::OtherTimes { model: words(axis), table: words(times.axis()) })
}

/// Who fills gaps of whole tables.
struct Whole<'a, T>(&'a T);

impl<T: WholeTable> Fill for Whole<'_, T> {
    fn cells(&self, table: &Dataset) -> Result<Vec<FilledCell>, Error> {
        self.0.cells(self.0.fitted().0, table)
    }
}

impl<T: WholeTable> DrawGaps for Whole<'_, T> {
    fn draw_gaps(&self, table: &Dataset, k: usize, seed: u64) -> Result<Matrix, Error> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(k as u64);
        self.0.draw(table, &mut rng)
    }
}

impl<T: WholeTable> Answers for T {
    fn words(&self) -> &'static str {
        T::WORDS
    }

    fn not_linear(&self) -> Error {
        let (what, instead) = T::NOT_LINEAR;
        Error::Unsupported { method: T::WORDS, what, instead }
    }

    fn n_components(&self) -> usize {
        WholeTable::n_components(self)
    }

    fn spec(&self) -> Option<&Spec> {
        Some(self.fitted().1)
    }

    fn ending(&self) -> Ending<'_> {
        self.fitted().2.into()
    }

    fn size(&self, _: &Learned) -> String {
        WholeTable::size(self)
    }

    fn time(&self) -> Option<(&TimeAxis, i64)> {
        WholeTable::time(self)
    }

    fn log_density(&self, data: &Dataset) -> Result<Vec<f64>, Error> {
        Ok(self.densities(data)?.0)
    }

    fn row_scores(&self, data: &Dataset) -> Result<RowScores, Error> {
        let (log_density, surprises) = self.densities(data)?;
        Ok(RowScores { log_density, surprises: Some(surprises), membership: None, outlyingness: None })
    }

    fn fill(&self, _: Rows) -> Result<Box<dyn Fill + '_>, Error> {
        Ok(Box::new(Whole(self)))
    }

    fn gap_drawer(&self, _: Rows) -> Result<Box<dyn DrawGaps + '_>, Error> {
        Ok(Box::new(Whole(self)))
    }

    fn scores(&self, learned: &Learned, data: &Dataset, how: Option<Coordinates>) -> Result<Scores, Error> {
        if !matches!(how, None | Some(Coordinates::Posterior)) {
            return Err(other_coordinates(T::WORDS, "posterior scores"));
        }
        Ok(Scores { names: learned.score_names(), values: self.score_means(data)?, membership: None })
    }

    fn reconstruct(&self, _: &Learned, data: &Dataset, orthogonal: bool) -> Result<Matrix, Error> {
        if orthogonal {
            return Err(other_coordinates(T::WORDS, "posterior means"));
        }
        self.rebuilt(data)
    }

    fn sample(&self, n_rows: usize, rng: &mut dyn Rng) -> Result<(Matrix, Option<Vec<usize>>), Error> {
        Ok((self.new_rows(n_rows, rng)?, None))
    }

    fn check_in_blocks(
        &self,
        learned: &Learned,
        data: &Dataset,
        options: &SelfCheckOptions,
        mut refit: Option<&mut dyn Observer>,
    ) -> Option<Result<Checked, Error>> {
        let refitted = refit.is_some();
        let mut fill = |visible: &Dataset| {
            let mut cells = match &mut refit {
                None => self.cells(self.fitted().0, visible)?,
                Some(observer) => self.cells(&self.without(learned, visible, *observer)?, visible)?,
            };
            learned.filling.iter().for_each(|filling| filling.shape(&mut cells, |_| true));
            Ok(cells)
        };
        let checked = Checked::of(self.check(data, options, &mut fill), refitted);
        Some(checked.map(|checked| Checked { in_blocks: T::IN_BLOCKS, ..checked }))
    }

    fn hidden_residuals(
        &self,
        learned: &Learned,
        data: &Dataset,
        observer: &mut dyn Observer,
    ) -> Option<Result<Residuals, Error>> {
        Some(self.residuals(learned, data, observer))
    }
}
