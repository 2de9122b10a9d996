//! Blocks of time that are hidden to see how well they are predicted.
//!
//! Cells hidden at random lie between visible neighbors in time, and say nothing of a gap of a year.

use super::Timeline;
use crate::model::FilledCell;
use crate::select::{CheckedCell, SelfCheck, SelfCheckOptions, compare};
use crate::{Dataset, Error};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::ops::Range;

/// Most cells hidden at a time.
const MOST_HIDDEN: usize = 40_000;
/// Longest block, as a part of the steps of its sequence: a longer one leaves too little to learn from.
const LONGEST: usize = 4;
/// In tables without gaps blocks have 1, 2, 4, … steps, up to this part of the steps of a sequence.
const LONGEST_WITHOUT_EXAMPLE: usize = 20;
/// A column keeps this part of its cells, at least.
const KEPT: usize = 2;

/// A table with blocks hidden.
pub(crate) struct HiddenBlocks {
    pub(crate) visible: Dataset,
    /// Hidden cells that count, row and column, and the block each is in.
    pub(super) cells: Vec<(usize, usize, usize)>,
    pub(super) n_blocks: usize,
}

/// What is hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hide {
    /// Half in whole rows, half in runs of single columns, as long as the gaps: what is chosen is to forecast as well.
    Half,
    /// What is missing at another time, with as many whole rows as among the gaps; as above where there are none: what is said is
    /// said of these gaps.
    AsGaps,
}

/// The gaps of a table, which blocks are made like.
struct Gaps {
    /// Runs of missing cells in a column: the sequence, and the steps.
    columns: Vec<(usize, Range<usize>)>,
    /// Lengths of runs of steps at which nothing was observed.
    steps: Vec<usize>,
    /// Lengths of the runs in columns; 1, 2, 4, … in a table without such gaps.
    lengths: Vec<usize>,
    /// The share of missing cells that are in steps at which nothing was observed; half if none is missing.
    in_steps: f64,
}

impl Gaps {
    fn of(data: &Dataset, timeline: &Timeline) -> Self {
        let (mut columns, mut steps, mut empty, mut missing) = (Vec::new(), Vec::new(), 0, 0);
        for (which, sequence) in timeline.sequences().iter().enumerate() {
            let rows = sequence.rows();
            let longest = (rows.len() / LONGEST).max(1);
            let cell = |t: usize, j: usize| rows[t].is_some_and(|row| !data.row(row)[j].is_nan());
            let any: Vec<bool> = (0..rows.len()).map(|t| (0..data.n_columns()).any(|j| cell(t, j))).collect();
            steps.extend(runs(rows.len(), |t| !any[t]).into_iter().map(|run| run.len().min(longest)));
            empty += data.n_columns() * any.iter().filter(|any| !**any).count();
            for j in 0..data.n_columns() {
                missing += (0..rows.len()).filter(|&t| !cell(t, j)).count();
                let own = runs(rows.len(), |t| !cell(t, j))
                    .into_iter()
                    .filter(|run| any[run.clone()].contains(&true));
                columns.extend(own.map(|run| (which, run.start..run.end.min(run.start + longest))));
            }
        }
        let longest = timeline.sequences().iter().map(|s| s.rows().len()).max().unwrap_or(1);
        let doubling =
            (0..).map(|k| 1 << k).take_while(|&l| l == 1 || l * LONGEST_WITHOUT_EXAMPLE <= longest);
        let doubling: Vec<usize> = doubling.collect();
        if steps.is_empty() {
            steps.clone_from(&doubling);
        }
        let mut lengths: Vec<usize> = columns.iter().map(|(_, run)| run.len()).collect();
        if lengths.is_empty() {
            lengths = doubling;
        }
        let in_steps = if missing == 0 { 0.5 } else { empty as f64 / missing as f64 };
        Self { columns, steps, lengths, in_steps }
    }

    /// What a block hides that lies as a run of missing cells of a column and all that is missing beside it: the columns of each
    /// of its steps. Columns are seldom missing alone.
    fn window(&self, data: &Dataset, timeline: &Timeline, rng: &mut ChaCha8Rng) -> Vec<Vec<usize>> {
        let (which, run) = &self.columns[rng.random_range(0..self.columns.len())];
        let missing = |row: &Option<usize>| {
            let gaps = |row: usize| (0..data.n_columns()).filter(|&j| data.row(row)[j].is_nan()).collect();
            row.map_or_else(Vec::new, gaps)
        };
        timeline.sequences()[*which].rows()[run.clone()].iter().map(missing).collect()
    }
}

/// Runs of steps that have a property.
fn runs(steps: usize, has: impl Fn(usize) -> bool) -> Vec<Range<usize>> {
    let (mut out, mut from) = (Vec::new(), None);
    for t in 0..=steps {
        match (t < steps && has(t), from) {
            (true, None) => from = Some(t),
            (false, Some(start)) => {
                out.push(start..t);
                from = None;
            }
            _ => {}
        }
    }
    out
}

impl HiddenBlocks {
    /// Hides a share of the observed cells as the gaps of the table lie. Columns keep half of their cells, and more of them than there are factors.
    pub(crate) fn draw(
        data: &Dataset,
        timeline: &Timeline,
        n_components: usize,
        (share, hide): (f64, Hide),
        (seed, stream): (u64, u64),
    ) -> Result<Self, Error> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        let (d, gaps) = (data.n_columns(), Gaps::of(data, timeline));
        let starts: Vec<usize> = timeline
            .sequences()
            .iter()
            .scan(0, |sum, s| {
                *sum += s.rows().len();
                Some(*sum)
            })
            .collect();
        let spare = |(n, v): (&usize, &f64)| {
            if *v > 0.0 { (n - n.div_ceil(KEPT)).min(n.saturating_sub(n_components + 1)) } else { 0 }
        };
        let mut room: Vec<usize> =
            data.n_observed_by_column().iter().zip(data.observed_variances()).map(spare).collect();
        let wanted = ((share * data.n_observed() as f64).ceil() as usize).clamp(1, MOST_HIDDEN);
        let share_in_rows = if hide == Hide::Half { 0.5 } else { gaps.in_steps };
        let mut hidden = vec![false; data.n_rows() * d];
        let (mut cells, mut n_blocks, mut in_steps, mut misses) = (Vec::new(), 0, 0, 0);
        // A draw that finds nothing left to hide is a miss: in a table that cannot spare the share they end it.
        while cells.len() < wanted && misses < 1000 {
            let whole = (in_steps as f64) < share_in_rows * (cells.len() + 1) as f64;
            let windows = hide == Hide::AsGaps && !gaps.columns.is_empty();
            let mut block = Vec::new();
            let mut length = 0;
            if !whole && windows {
                block = gaps.window(data, timeline, &mut rng);
            } else {
                let lengths = if whole { &gaps.steps } else { &gaps.lengths };
                length = lengths[rng.random_range(0..lengths.len())];
            }
            let at = rng.random_range(0..timeline.n_steps());
            let which = starts.partition_point(|end| *end <= at);
            let rows = timeline.sequences()[which].rows();
            let from = at - (starts[which] - rows.len());
            if whole {
                block = vec![(0..d).collect(); length];
            } else if !windows {
                block = vec![vec![rng.random_range(0..d)]; length];
            }
            let before = cells.len();
            for (row, columns) in rows[from..].iter().zip(&block) {
                let Some(row) = *row else { continue };
                for &j in columns {
                    let open = !data.row(row)[j].is_nan() && !hidden[row * d + j] && room[j] > 0;
                    if open {
                        hidden[row * d + j] = true;
                        room[j] -= 1;
                        cells.push((row, j, n_blocks));
                    }
                }
            }
            if cells.len() == before {
                misses += 1;
                continue;
            }
            n_blocks += 1;
            if whole {
                in_steps += cells.len() - before;
            }
        }
        Self::of_cells(data, cells, n_blocks)
    }

    /// Hides all that happened from some steps before the end on, as if it were to come; what counts are the first `horizon` of
    /// these steps. `None` where a column has too little before.
    pub(super) fn after_origin(
        data: &Dataset,
        timeline: &Timeline,
        n_components: usize,
        (before_end, horizon): (usize, usize),
    ) -> Result<Option<Self>, Error> {
        let (mut cells, mut later) = (Vec::new(), Vec::new());
        for (block, sequence) in timeline.sequences().iter().enumerate() {
            let rows = sequence.rows();
            let origin = rows.len().saturating_sub(before_end);
            for (t, row) in rows.iter().enumerate().skip(origin) {
                let Some(row) = *row else { continue };
                for j in (0..data.n_columns()).filter(|&j| !data.row(row)[j].is_nan()) {
                    if t < origin + horizon && data.observed_variances()[j] > 0.0 {
                        cells.push((row, j, block));
                    } else {
                        later.push((row, j));
                    }
                }
            }
        }
        if cells.is_empty() {
            return Ok(None);
        }
        let without = cells.iter().map(|&(i, j, _)| (i, j)).chain(later);
        let visible = data.without_cells(without)?;
        let poor = |j: usize| {
            visible.n_observed_by_column()[j] <= n_components + 1
                || visible.observed_variances()[j] <= 0.0 && data.observed_variances()[j] > 0.0
        };
        if (0..data.n_columns()).any(poor) {
            return Ok(None);
        }
        Ok(Some(Self { visible, cells, n_blocks: timeline.sequences().len() }))
    }

    fn of_cells(
        data: &Dataset,
        mut cells: Vec<(usize, usize, usize)>,
        n_blocks: usize,
    ) -> Result<Self, Error> {
        let hide =
            |cells: &[(usize, usize, usize)]| data.without_cells(cells.iter().map(|&(i, j, _)| (i, j)));
        let mut visible = hide(&cells)?;
        // A column with few different values may have lost all but one of them: it is given back.
        let lost = |visible: &Dataset, j: usize| {
            visible.observed_variances()[j] <= 0.0 && data.observed_variances()[j] > 0.0
        };
        if (0..data.n_columns()).any(|j| lost(&visible, j)) {
            cells.retain(|&(_, j, _)| !lost(&visible, j));
            visible = hide(&cells)?;
        }
        if cells.is_empty() {
            return Err(Error::TooFewToHide { cells: 0, folds: 1 });
        }
        Ok(Self { visible, cells, n_blocks })
    }
}

/// Cross-validation by blocks of time: [`self_check_by`](crate::select::self_check_by) for rows that follow each other. Cells that
/// lie as gaps of the table do at another time, and whole rows, are hidden; `fill` gets the table without them. What it
/// says holds for gaps that come like the hidden blocks; the standard errors of coverage count blocks, whose cells err together.
///
/// ```
/// use covary::dynamics::{DynamicEm, Timeline, check_by_blocks};
/// use covary::{data::{simulate, Shape}, Estimator, Spec};
/// let (table, _) = simulate::ppca(Shape { rows: 100, columns: 6, n_components: 1 }, /* seed */ 1);
/// let times = Timeline::regular(100);
/// let refit = |visible: &_| DynamicEm::default().fit(visible, &Spec::ppca(1))?.model.fill(visible, &times);
/// let (check, cells) = check_by_blocks(&table, &times, 1, &Default::default(), refit)?;
/// assert!(check.n_hidden >= 60 && cells.len() == check.n_hidden);
/// assert!(check.skill > 0.1);                                   // half of the hidden cells are in rows without any
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// [`Error::OutOfRange`] unless share and levels lie between 0 and 1; [`Error::TooFewToHide`] if no cell can be spared;
/// [`Error::WrongLength`] if table and timeline do not belong together; and those of `fill`.
pub fn check_by_blocks(
    data: &Dataset,
    timeline: &Timeline,
    n_components: usize,
    options: &SelfCheckOptions,
    fill: impl FnOnce(&Dataset) -> Result<Vec<FilledCell>, Error>,
) -> Result<(SelfCheck, Vec<CheckedCell>), Error> {
    options.check()?;
    timeline.check(data.n_rows())?;
    let hidden =
        HiddenBlocks::draw(data, timeline, n_components, (options.share, Hide::AsGaps), (options.seed, 0))?;
    let (mut cells, mut blocks) = (Vec::new(), Vec::new());
    for (cell, block) in hidden.predicted(fill(&hidden.visible)?) {
        cells.push(CheckedCell { truth: data.values()[(cell.row, cell.column)], cell });
        blocks.push(block);
    }
    let baseline: Vec<f64> = cells.iter().map(|c| hidden.visible.observed_means()[c.cell.column]).collect();
    Ok((compare(&cells, &baseline, &blocks, data, &options.levels), cells))
}

impl HiddenBlocks {
    /// Of all filled cells those that were hidden and count, with their blocks.
    pub(crate) fn predicted(&self, cells: Vec<FilledCell>) -> impl Iterator<Item = (FilledCell, usize)> {
        let mut hidden = self.cells.clone();
        hidden.sort_unstable();
        cells.into_iter().filter_map(move |cell| {
            let at = hidden.binary_search_by_key(&(cell.row, cell.column), |&(i, j, _)| (i, j)).ok()?;
            Some((cell, hidden[at].2))
        })
    }
}
