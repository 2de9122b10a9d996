use crate::Dataset;
use crate::linalg::Cell;
use crate::linalg::rows::{Seen, mark_gaps};
use rayon::prelude::*;
use std::ops::Range;

/// Rows whose masks one task builds.
const MASK_ROWS: usize = 1024;

/// Places of a table of patterns before there are many.
const PLACES: usize = 1 << 12;

/// Patterns by their masks of gaps, a table of open places: every block of rows that is read has its own.
struct Ids<'a> {
    masks: &'a [u64],
    words: usize,
    /// A pattern's number and one, 0 where there is none; at least twice as many as there are patterns, a power of two.
    places: Vec<u32>,
    /// The first row of every pattern.
    first: Vec<usize>,
}

impl<'a> Ids<'a> {
    fn new(masks: &'a [u64], words: usize) -> Self {
        Self { masks, words, places: vec![0; PLACES], first: Vec::new() }
    }

    #[inline(always)]
    fn mask(&self, row: usize) -> &'a [u64] {
        &self.masks[row * self.words..][..self.words]
    }

    /// The number of the pattern of `row`, and whether it is a new one.
    #[inline(always)]
    fn of(&mut self, row: usize) -> (usize, bool) {
        let place = self.place(self.mask(row));
        if let Some(id) = (self.places[place] as usize).checked_sub(1) {
            return (id, false);
        }
        self.first.push(row);
        self.places[place] = self.first.len() as u32;
        if 2 * self.first.len() >= self.places.len() {
            self.places = vec![0; 4 * self.places.len()];
            for id in 0..self.first.len() {
                let place = self.place(self.mask(self.first[id]));
                self.places[place] = id as u32 + 1;
            }
        }
        (self.first.len() - 1, true)
    }

    /// Where the pattern of a mask is, or would be.
    #[inline(always)]
    fn place(&self, mask: &[u64]) -> usize {
        // By multiplication, as Firefox and rustc have it. Products mix upward: the highest bits are taken.
        let mix = |hash: u64, word: &u64| (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
        let last = self.places.len() - 1;
        let mut place = mask.iter().fold(0, mix).rotate_left(26) as usize & last;
        while let Some(id) = (self.places[place] as usize).checked_sub(1) {
            // Most masks are one word: no call compares them.
            if self.mask(self.first[id]).iter().eq(mask) {
                break;
            }
            place = (place + 1) & last;
        }
        place
    }
}

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
        let mut ids = Ids::new(&masks, words);
        let mut pattern_of = Vec::with_capacity(n_rows);
        let mut counts: Vec<usize> = Vec::new();
        let (mut gaps, mut gap_end) = (Vec::new(), Vec::new());
        let (mut last, mut id): (&[u64], usize) = (&[], 0);
        for (row, mask) in masks.chunks_exact(words).enumerate() {
            // Rows like the one before need no table of patterns.
            if mask.iter().ne(last) {
                let (found, new) = ids.of(row);
                if new {
                    for (word, first) in mask.iter().zip((0..).step_by(64)) {
                        let mut bits = *word;
                        while bits != 0 {
                            gaps.push(first + bits.trailing_zeros());
                            bits &= bits - 1;
                        }
                    }
                    gap_end.push(gaps.len());
                    counts.push(0);
                }
                (last, id) = (mask, found);
            }
            counts[id] += 1;
            pattern_of.push(id as u32);
        }
        // Counting sort keeps the rows of each pattern in order.
        let mut next = starts(&counts);
        let mut rows = vec![0; n_rows];
        for (i, id) in pattern_of.into_iter().enumerate() {
            let next = &mut next[id as usize];
            rows[*next] = i;
            *next += 1;
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

    /// How many rows there are.
    pub(crate) fn n_rows(&self) -> usize {
        self.rows.len()
    }

    /// Rows with at least one observed cell.
    pub(crate) fn n_informative_rows(&self) -> usize {
        let informative = (0..self.len()).map(|p| self.get(p)).filter(|p| p.n_observed() > 0);
        informative.map(|p| p.rows.len()).sum()
    }

    /// The patterns of each run of `size` rows, as of a table of these rows alone, except that rows keep their numbers.
    pub(crate) fn by_blocks(&self, size: usize) -> Vec<Self> {
        let n = self.rows.len();
        let mut pattern_of = vec![0_u32; n];
        for p in 0..self.len() {
            self.get(p).rows.iter().for_each(|&i| pattern_of[i] = p as u32);
        }
        // The place of a pattern among those of the block; only those that the block has seen are looked at.
        let mut place = vec![0_usize; self.len()];
        let blocks = pattern_of.chunks(size).zip((0..).step_by(size));
        blocks
            .map(|(patterns, first)| {
                let mut seen: Vec<u32> = Vec::new();
                let mut counts: Vec<usize> = Vec::new();
                for &p in patterns {
                    let at = place[p as usize];
                    if seen.get(at) != Some(&p) {
                        place[p as usize] = seen.len();
                        seen.push(p);
                        counts.push(0);
                    }
                    counts[place[p as usize]] += 1;
                }
                let mut next = starts(&counts);
                let mut rows = vec![0; patterns.len()];
                for (k, &p) in patterns.iter().enumerate() {
                    let next = &mut next[place[p as usize]];
                    rows[*next] = first + k;
                    *next += 1;
                }
                let (mut gaps, mut gap_end) = (Vec::new(), Vec::with_capacity(seen.len()));
                for &p in &seen {
                    gaps.extend_from_slice(self.get(p as usize).gaps);
                    gap_end.push(gaps.len());
                }
                Self { n_columns: self.n_columns, rows, row_end: next, gaps, gap_end }
            })
            .collect()
    }

    /// Calls `visit` with blocks of at most `most` rows, and how many they are: those of `range` in the sorted order
    /// whose pattern is `asked` for, as [`strips`](Self::strips).
    pub(crate) fn for_blocks<'a>(
        &'a self,
        range: Range<usize>,
        most: usize,
        asked: impl Fn(&Pattern<'_>) -> bool,
        mut visit: impl FnMut(&[Pattern<'a>], usize),
    ) {
        let mut strips = Vec::new();
        let mut in_block = 0;
        for strip in self.strips(range, most).filter(asked) {
            if in_block + strip.rows.len() > most {
                visit(&strips, in_block);
                strips.clear();
                in_block = 0;
            }
            in_block += strip.rows.len();
            strips.push(strip);
        }
        if in_block > 0 {
            visit(&strips, in_block);
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

/// Rows of a table that follow each other, sorted by pattern: all of them, or those of a block.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) data: &'a Dataset,
    pub(crate) order: &'a Patterns,
    /// The number of its first row.
    pub(crate) first: usize,
}

impl<'a> Run<'a> {
    pub(crate) fn n_rows(self) -> usize {
        self.order.n_rows()
    }

    pub(crate) fn patterns(self) -> impl Iterator<Item = Pattern<'a>> {
        (0..self.order.len()).map(move |p| self.order.get(p))
    }

    /// Whether none of its cells is missing.
    pub(crate) fn is_complete(self) -> bool {
        self.patterns().all(|pattern| pattern.gaps.is_empty())
    }
}

/// Where each begins of things that follow each other in these numbers.
fn starts(counts: &[usize]) -> Vec<usize> {
    let start = |end: &mut usize, c: &usize| {
        *end += c;
        Some(*end - c)
    };
    counts.iter().scan(0, start).collect()
}

#[cfg(test)]
mod tests {
    use super::Patterns;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn patterns_of_a_block_are_those_of_its_rows_alone() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let (n, d) = (100, 3);
        for share in [0.0, 0.3] {
            let values: Vec<f64> =
                (0..n * d).map(|i| if rng.random_bool(share) { f64::NAN } else { i as f64 }).collect();
            let all = Patterns::new(&values, d).unwrap();
            for size in [1, 7, 50, 100, 1000] {
                let blocks = all.by_blocks(size);
                assert_eq!(blocks.len(), values.chunks(size * d).len());
                for (k, (block, cells)) in blocks.iter().zip(values.chunks(size * d)).enumerate() {
                    let mut alone = Patterns::new(cells, d).unwrap();
                    alone.rows.iter_mut().for_each(|i| *i += k * size);
                    assert_eq!(*block, alone);
                }
            }
        }
    }
}
