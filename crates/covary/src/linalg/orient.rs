use super::Matrix;

/// Sign rule [M 1.1.3]: in each column the first entry whose size is within 1e-6 of the largest
/// is positive. The slack makes exact ties deterministic. Returns the flips, one ±1 per column.
pub(crate) fn canonical_signs(columns: &mut Matrix) -> Vec<f64> {
    let k = columns.n_columns();
    let mut largest = vec![0.0_f64; k];
    for row in columns.rows() {
        for (m, v) in largest.iter_mut().zip(row) {
            *m = m.max(v.abs());
        }
    }
    let mut flips = vec![0.0; k];
    let least: Vec<f64> = largest.iter().map(|m| (1.0 - 1e-6) * m).collect();
    let mut left = k;
    for row in columns.rows() {
        if left == 0 {
            break;
        }
        for ((flip, v), least) in flips.iter_mut().zip(row).zip(&least) {
            if v.abs() >= *least && *flip == 0.0 && *v != 0.0 {
                *flip = v.signum();
                left -= 1;
            }
        }
    }
    flips.iter_mut().filter(|f| **f == 0.0).for_each(|f| *f = 1.0);
    columns.scale_columns(&flips);
    flips
}
