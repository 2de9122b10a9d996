//! Threads that do not change the numbers: work is cut into pieces by the data alone, and partial
//! results are added in one fixed tree.

use rayon::prelude::*;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Most pieces that work is cut into.
const MAX_PIECES: usize = 16;
/// Cells worked on at a time: a block of them stays in the second-level cache.
pub(crate) const BLOCK_CELLS: usize = 64 * 1024;

/// Runs `work` over pieces of `0..n` in parallel and merges what it returns. The pieces, whole
/// multiples of `step` except for the last, and the order of merging depend on `n` and `step` alone.
pub(crate) fn over_pieces<T: Send>(
    n: usize,
    step: usize,
    work: impl Fn(Range<usize>) -> T + Sync,
    merge: impl Fn(&mut T, &T),
) -> T {
    let mut parts = pieces(n, step, work);
    merge_tree(&mut parts, merge);
    parts.swap_remove(0)
}

/// Runs `work` over the same pieces and returns the result of each, in order.
pub(crate) fn pieces<T: Send>(n: usize, step: usize, work: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
    let piece = n.div_ceil(MAX_PIECES).next_multiple_of(step);
    let range = |p: usize| p * piece..((p + 1) * piece).min(n);
    if n <= piece {
        // Waking a thread takes longer than many a small table.
        return vec![work(0..n)];
    }
    map(n.div_ceil(piece), |p| work(range(p)))
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
