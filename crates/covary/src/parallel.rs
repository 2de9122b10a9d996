//! Threads without a trace in the numbers: work is cut into pieces by the data alone, and partial
//! results are added in one fixed tree.

/// Reduces `parts` into `parts[0]` by pairs at distance 1, 2, 4, …
///
/// The order of additions depends on the number of parts only, never on who finished first.
pub(crate) fn merge_tree<T>(parts: &mut [T], merge: impl Fn(&mut T, &T)) {
    let mut step = 1;
    while step < parts.len() {
        for i in (0..parts.len() - step).step_by(2 * step) {
            let (left, right) = parts.split_at_mut(i + step);
            merge(&mut left[i], &right[0]);
        }
        step *= 2;
    }
}
