//! Threads that do not change the numbers: work is cut into pieces by the data alone, and partial
//! results are added in one fixed tree.

use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Most pieces that work is cut into.
const MAX_PIECES: usize = 16;
/// Cells worked on at a time: a block of them stays in the second-level cache.
pub(crate) const BLOCK_CELLS: usize = 64 * 1024;

/// Runs `work` over pieces of `0..n` in parallel and merges what it returns. The pieces, whole
/// multiples of `step` except for the last, and the order of merging depend on `n` and `step` alone. What is merged is let go: few
/// results are held at a time, which may be large.
pub(crate) fn over_pieces<T: Send>(
    n: usize,
    step: usize,
    work: impl Fn(Range<usize>) -> T + Sync,
    merge: impl Fn(&mut T, &T) + Sync,
) -> T {
    let cut = Pieces::new(n, step);
    if cut.count == 1 {
        return work(0..n);
    }
    let forest = Mutex::new(Forest::new());
    in_order(cut.count, &|p| {
        let part = work(cut.range(p));
        let mut forest = forest.lock().unwrap_or_else(PoisonError::into_inner);
        forest.add(p as u64, 0, part, &merge).expect("each piece comes once");
    });
    let forest = forest.into_inner().unwrap_or_else(PoisonError::into_inner);
    forest.finish(cut.count as u64, merge).expect("each piece has come")
}

/// What `work` returns for blocks 0 to n − 1, of which there is one at least, merged in the tree of a [`Forest`].
pub(crate) fn in_turn<T>(n: usize, work: impl Fn(usize) -> T, merge: impl Fn(&mut T, &T)) -> T {
    let mut forest = Forest::new();
    for b in 0..n {
        forest.add(b as u64, 0, work(b), &merge).expect("each block comes once");
    }
    forest.finish(n as u64, merge).expect("each block has come")
}

/// How work is cut: by the data alone.
struct Pieces {
    n: usize,
    piece: usize,
    count: usize,
}

impl Pieces {
    fn new(n: usize, step: usize) -> Self {
        let piece = n.div_ceil(MAX_PIECES).next_multiple_of(step);
        // Waking a thread takes longer than many a small table.
        let count = if n <= piece { 1 } else { n.div_ceil(piece) };
        Self { n, piece, count }
    }

    fn range(&self, p: usize) -> Range<usize> {
        p * self.piece..((p + 1) * self.piece).min(self.n)
    }
}

/// Runs `work` over the same pieces and returns the result of each, in order.
pub(crate) fn pieces<T: Send>(n: usize, step: usize, work: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
    let cut = Pieces::new(n, step);
    if cut.count == 1 {
        return vec![work(0..n)];
    }
    map(cut.count, |p| work(cut.range(p)))
}

/// [`map`] of work that may fail: of several errors the first is returned, whichever thread came to its own sooner.
pub(crate) fn try_map<T: Send, E: Send>(
    n: usize,
    work: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    map(n, work).into_iter().collect()
}

/// `work` of 0 to n − 1, in parallel; what it returns comes in order.
///
/// Rayon's own `map` and `collect` are compiled anew for every caller: they were a sixth of the code of this crate.
pub(crate) fn map<T: Send>(n: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let places: Vec<Mutex<Option<T>>> = (0..n).map(|_| Mutex::new(None)).collect();
    each(n, &|i| *places[i].lock().unwrap_or_else(PoisonError::into_inner) = Some(work(i)));
    let found = |place: Mutex<Option<T>>| place.into_inner().unwrap_or_else(PoisonError::into_inner);
    places.into_iter().map(|place| found(place).expect("each is worked on")).collect()
}

fn each(n: usize, work: &(dyn Fn(usize) + Sync)) {
    (0..n).into_par_iter().for_each(work);
}

/// `work` of 0 to n − 1, in parallel, begun in order: neighbors are done at about the same time, and little waits for its own.
fn in_order(n: usize, work: &(dyn Fn(usize) + Sync)) {
    let next = AtomicUsize::new(0);
    let one_after_the_other = |_| loop {
        let i = next.fetch_add(1, Ordering::Relaxed);
        if i >= n {
            return;
        }
        work(i);
    };
    each(rayon::current_num_threads().min(n), &one_after_the_other);
}

/// A copy of a table, made by all threads: most of the time goes into new pages.
pub(crate) fn copied(table: &[f64]) -> Vec<f64> {
    made_of(table, |to, from| to.copy_from_slice(from))
}

/// As [`copied`], in double precision.
pub(crate) fn widened(table: &[f32]) -> Vec<f64> {
    made_of(table, |to, from| to.iter_mut().zip(from).for_each(|(to, from)| *to = f64::from(*from)))
}

fn made_of<C: Sync>(table: &[C], make: impl Fn(&mut [f64], &[C]) + Sync) -> Vec<f64> {
    let mut copy = vec![0.0; table.len()];
    copy.par_chunks_mut(BLOCK_CELLS).zip(table.par_chunks(BLOCK_CELLS)).for_each(|(to, from)| make(to, from));
    copy
}

/// `a ← a + b`
pub(crate) fn add(a: &mut [f64], b: &[f64]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
}

/// Results of numbered blocks of which any may be there yet, merged in one fixed tree, by pairs at distance 1, 2, 4, …: a node is the
/// result of `2^level` blocks, and two siblings become their parent as soon as both are there. Whoever adds them in
/// whatever order, the result has the same bits; a block that is lost or comes twice is noticed.
///
/// Blocks that come in order leave at most one node of each level.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Forest<T> {
    /// By its first block, the level of a node and its result.
    nodes: BTreeMap<u64, (u32, T)>,
}

/// What is wrong with the blocks of a [`Forest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockError {
    Lost(u64),
    Doubled(u64),
    Unknown(u64),
}

/// The highest level of a node: more blocks than any table has.
pub(crate) const MOST_LEVELS: u32 = 40;

impl<T> Forest<T> {
    pub(crate) fn new() -> Self {
        Self { nodes: BTreeMap::new() }
    }

    /// Its nodes: first block, level and result.
    pub(crate) fn nodes(&self) -> impl ExactSizeIterator<Item = (u64, u32, &T)> {
        self.nodes.iter().map(|(start, (level, result))| (*start, *level, result))
    }

    /// One more than the last block.
    pub(crate) fn end(&self) -> u64 {
        self.nodes.iter().next_back().map_or(0, |(start, (level, _))| start + (1 << level))
    }

    /// Adds the result of the `2^level` blocks from `start` on, a multiple of their number.
    pub(crate) fn add(
        &mut self,
        mut start: u64,
        mut level: u32,
        mut result: T,
        merge: impl Fn(&mut T, &T),
    ) -> Result<(), BlockError> {
        if level > MOST_LEVELS || start >> MOST_LEVELS > 0 || !start.is_multiple_of(1 << level) {
            return Err(BlockError::Unknown(start));
        }
        let before = self.nodes.range(..=start).next_back();
        if before.is_some_and(|(first, (level, _))| first + (1 << level) > start) {
            return Err(BlockError::Doubled(start));
        }
        if let Some((&first, _)) = self.nodes.range(start..start + (1 << level)).next() {
            return Err(BlockError::Doubled(first));
        }
        loop {
            let sibling = start ^ (1 << level);
            if self.nodes.get(&sibling).is_none_or(|(other, _)| *other != level) {
                self.nodes.insert(start, (level, result));
                return Ok(());
            }
            let (_, mut other) = self.nodes.remove(&sibling).expect("just seen");
            if sibling < start {
                std::mem::swap(&mut result, &mut other);
            }
            merge(&mut result, &other);
            (start, level) = (start.min(sibling), level + 1);
        }
    }

    /// The result of blocks 0 to n − 1, each of which must be there once.
    pub(crate) fn finish(self, n_blocks: u64, merge: impl Fn(&mut T, &T)) -> Result<T, BlockError> {
        let mut next = 0;
        for (start, level, _) in self.nodes() {
            if start > next {
                return Err(BlockError::Lost(next));
            }
            next = start + (1 << level);
        }
        if next > n_blocks {
            return Err(BlockError::Unknown(n_blocks));
        }
        // What has no sibling waits for all that is to the right of it.
        let mut right: Option<T> = None;
        for (_, (_, mut left)) in self.nodes.into_iter().rev() {
            if let Some(right) = &right {
                merge(&mut left, right);
            }
            right = Some(left);
        }
        right.filter(|_| next == n_blocks).ok_or(BlockError::Lost(next))
    }
}

#[cfg(test)]
mod tests {
    use super::{BlockError, Forest, over_pieces};
    use proptest::prelude::*;

    /// Reduces `parts` into `parts[0]` by pairs at distance 1, 2, 4, …
    ///
    /// The order of additions depends on the number of parts only, never on who finished first.
    fn merge_tree<T>(parts: &mut [T], merge: impl Fn(&mut T, &T)) {
        let mut step = 1;
        while step < parts.len() {
            for i in (0..parts.len() - step).step_by(2 * step) {
                let (left, right) = parts.split_at_mut(i + step);
                merge(&mut left[i], &right[0]);
            }
            step *= 2;
        }
    }

    /// A sum whose bits tell the order of additions, and that order itself.
    type Sum = (f64, String);

    fn join(a: &mut Sum, b: &Sum) {
        *a = (a.0 + b.0, format!("({}{})", a.1, b.1));
    }

    fn leaf(i: u64) -> Sum {
        ((i as f64 + 1.0).sqrt() * 10_f64.powi((i % 7) as i32), i.to_string())
    }

    fn by_tree(n: u64) -> Sum {
        let mut parts: Vec<Sum> = (0..n).map(leaf).collect();
        merge_tree(&mut parts, join);
        parts.swap_remove(0)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Blocks are dealt to workers, each adds its own in some order, and the workers are merged in some order.
        #[test]
        fn any_order_of_merges_gives_the_bits_of_the_tree(
            n in 1_u64..100,
            workers in 1_usize..9,
            keys in prop::collection::vec(any::<u32>(), 200),
        ) {
            let mut order: Vec<u64> = (0..n).collect();
            order.sort_by_key(|&i| keys[i as usize]);
            let mut forests = vec![Forest::new(); workers];
            for &i in &order {
                let worker = keys[100 + i as usize % 100] as usize % workers;
                forests[worker].add(i, 0, leaf(i), join).unwrap();
            }
            let mut all = Forest::new();
            forests.sort_by_key(|forest| keys[199 - forest.nodes().len()]);
            for forest in forests {
                for (start, level, sum) in forest.nodes() {
                    all.add(start, level, sum.clone(), join).unwrap();
                }
            }
            prop_assert_eq!(all.end(), n);
            let sum = all.finish(n, join).unwrap();
            let expected = by_tree(n);
            prop_assert_eq!(sum.0.to_bits(), expected.0.to_bits());
            prop_assert_eq!(sum.1, expected.1);
        }

        #[test]
        fn a_lost_or_doubled_block_is_named(n in 2_u64..60, lost in any::<prop::sample::Index>()) {
            let lost = lost.index(n as usize) as u64;
            let mut forest = Forest::new();
            for i in (0..n).filter(|&i| i != lost) {
                forest.add(i, 0, leaf(i), join).unwrap();
            }
            prop_assert_eq!(forest.clone().finish(n, join), Err(BlockError::Lost(lost)));
            let other = (lost + 1) % n;
            prop_assert_eq!(forest.add(other, 0, leaf(other), join), Err(BlockError::Doubled(other)));
            forest.add(lost, 0, leaf(lost), join).unwrap();
            prop_assert_eq!(forest.clone().finish(n - 1, join), Err(BlockError::Unknown(n - 1)));
            prop_assert!(forest.finish(n, join).is_ok());
        }
    }

    #[test]
    fn pieces_are_merged_in_the_tree_whoever_is_first() {
        for n in 1..=16 {
            for threads in [1, 3] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let sum = pool.install(|| over_pieces(n, 1, |rows| leaf(rows.start as u64), join));
                assert_eq!(sum, by_tree(n as u64));
            }
        }
    }

    #[test]
    fn a_node_that_is_none_is_refused() {
        let mut forest = Forest::new();
        assert_eq!(forest.add(3, 1, leaf(3), join), Err(BlockError::Unknown(3)));
        assert_eq!(forest.add(0, 63, leaf(0), join), Err(BlockError::Unknown(0)));
        forest.add(4, 2, leaf(4), join).unwrap();
        assert_eq!(forest.add(0, 3, leaf(0), join), Err(BlockError::Doubled(4)));
        assert_eq!(forest.add(6, 0, leaf(6), join), Err(BlockError::Doubled(6)));
        assert_eq!(Forest::<Sum>::new().finish(0, join), Err(BlockError::Lost(0)));
    }
}
