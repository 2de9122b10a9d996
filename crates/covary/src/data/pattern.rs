use crate::linalg::Cell;
use crate::linalg::rows::{Seen, mark_gaps};
use rayon::prelude::*;
use std::collections::HashMap;
use std::ops::Range;

/// Rows whose masks one task builds.
const MASK_ROWS: usize = 1024;

/// Rows that have the same gaps.
#[derive(Debug, Clone, Copy)]
pub struct Pattern<'a> {
    /// Columns missing in these rows, in ascending order.
    pub gaps: &'a [u32],
    /// The rows, in ascending order.
    pub rows: &'a [usize],
    n_columns: usize,
}

impl Pattern<'_> {
    /// Columns present in these rows, in ascending order.
    pub fn observed(&self) -> Vec<usize> {
        let mut gaps = self.gaps.iter().map(|&g| g as usize).peekable();
        (0..self.n_columns).filter(|j| gaps.next_if_eq(j).is_none()).collect()
    }

    /// How many columns are present.
    #[inline]
    pub fn n_observed(&self) -> usize {
        self.n_columns - self.gaps.len()
    }

    /// Columns of the table.
    #[inline]
    pub(crate) fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// Calls `visit` with every column present, in ascending order.
    #[inline(always)]
    pub(crate) fn for_observed(&self, mut visit: impl FnMut(usize)) {
        let mut start = 0;
        for &gap in self.gaps {
            (start..gap as usize).for_each(&mut visit);
            start = gap as usize + 1;
        }
        (start..self.n_columns).for_each(visit);
    }
}

/// All patterns of a table, in order of first appearance, in four flat arrays: a table may well
/// have as many patterns as rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Patterns {
    n_columns: usize,
    rows: Vec<usize>,
    row_end: Vec<usize>,
    gaps: Vec<u32>,
    gap_end: Vec<usize>,
}

impl Patterns {
    /// Groups the rows; `None` if a cell is infinite. One pass over the table serves both.
    pub(crate) fn new<C: Cell>(values: &[C], n_columns: usize) -> Option<Self> {
        let words = n_columns.div_ceil(64);
        let n_rows = values.len() / n_columns;
        // One bit per cell, set at the gaps.
        let mut masks = vec![0_u64; n_rows * words];
        let seen = masks
            .par_chunks_mut(MASK_ROWS * words)
            .zip(values.par_chunks(MASK_ROWS * n_columns))
            .map(|(masks, rows)| mark_gaps(rows, n_columns, masks))
            .reduce(|| Seen::Complete, Seen::max);
        match seen {
            Seen::Infinite => return None,
            Seen::Complete => {
                let (rows, row_end) = ((0..n_rows).collect(), vec![n_rows]);
                return Some(Self { n_columns, rows, row_end, gaps: Vec::new(), gap_end: vec![0] });
            }
            Seen::Gaps => {}
        }
        let mut ids: HashMap<&[u64], usize> = HashMap::new();
        let mut pattern_of = Vec::with_capacity(n_rows);
        let mut counts: Vec<usize> = Vec::new();
        let (mut gaps, mut gap_end) = (Vec::new(), Vec::new());
        let mut last: Option<(&[u64], usize)> = None;
        for mask in masks.chunks_exact(words) {
            // Rows like the one before need no table of patterns.
            if let Some((_, id)) = last.filter(|(before, _)| *before == mask) {
                counts[id] += 1;
                pattern_of.push(id);
                continue;
            }
            let id = *ids.entry(mask).or_insert_with(|| {
                for (word, first) in mask.iter().zip((0..).step_by(64)) {
                    let mut bits = *word;
                    while bits != 0 {
                        gaps.push(first + bits.trailing_zeros());
                        bits &= bits - 1;
                    }
                }
                gap_end.push(gaps.len());
                counts.push(0);
                counts.len() - 1
            });
            counts[id] += 1;
            pattern_of.push(id);
            last = Some((mask, id));
        }
        // Counting sort keeps the rows of each pattern in order.
        let mut next: Vec<usize> = counts
            .iter()
            .scan(0, |end, c| {
                *end += c;
                Some(*end - c)
            })
            .collect();
        let mut rows = vec![0; n_rows];
        for (i, id) in pattern_of.into_iter().enumerate() {
            rows[next[id]] = i;
            next[id] += 1;
        }
        Some(Self { n_columns, rows, row_end: next, gaps, gap_end })
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.row_end.len()
    }

    #[inline]
    pub(crate) fn get(&self, p: usize) -> Pattern<'_> {
        let start = |ends: &[usize]| if p == 0 { 0 } else { ends[p - 1] };
        Pattern {
            gaps: &self.gaps[start(&self.gap_end)..self.gap_end[p]],
            rows: &self.rows[start(&self.row_end)..self.row_end[p]],
            n_columns: self.n_columns,
        }
    }

    /// Rows `range` of the sorted order, as runs of at most `longest` rows of one pattern.
    pub(crate) fn strips(&self, range: Range<usize>, longest: usize) -> impl Iterator<Item = Pattern<'_>> {
        let mut at = range.start;
        let mut p = self.row_end.partition_point(|&end| end <= at);
        std::iter::from_fn(move || {
            if at >= range.end {
                return None;
            }
            let end = self.row_end[p].min(range.end).min(at.saturating_add(longest));
            let strip = Pattern { rows: &self.rows[at..end], ..self.get(p) };
            at = end;
            p += usize::from(at == self.row_end[p]);
            Some(strip)
        })
    }
}
