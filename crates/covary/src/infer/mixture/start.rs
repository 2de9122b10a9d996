//! Clusters to start from, gaps allowed: k-means++ seeds and a few rounds of k-means [M 1.9.4], or
//! rows at random, each with those around it.
//!
//! ```text
//! dist²(t, m) = d/|O| Σ_O (t − m)²        in units of the frame
//! ```

use crate::infer::em::parameters::Frame;
use crate::model::weighted_distance;
use crate::parallel::add;
use crate::{Dataset, Matrix};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// Rounds of k-means: enough to leave the seeds, not to settle.
const ROUNDS: usize = 10;
/// Rows whose distances one thread takes at a time.
const BLOCK: usize = 512;

/// Rows that are distinguished.
pub(super) struct Clusters {
    /// In units of the frame, about its mean; K × d.
    pub(super) centers: Matrix,
    /// The nearest center of every row; `None` for a row of only gaps.
    pub(super) labels: Vec<Option<usize>>,
    /// The rows that each is fitted to.
    pub(super) members: Vec<Vec<usize>>,
}

/// Rows at random as centers, each with the `N/K` rows nearest to it: they may overlap, and all have as
/// many. Where k-means cuts a long plane in two, these lie along it.
pub(super) fn neighborhoods(data: &Dataset, frame: &Frame, k: usize, seed: u64) -> Clusters {
    let table = Table::new(data, frame);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let n = table.rows.len();
    let seeds: Vec<Vec<f64>> = (0..k).map(|_| table.y.row(rng.random_range(0..n)).to_vec()).collect();
    let around = |center: &Vec<f64>| {
        let mut near: Vec<(f64, usize)> = table
            .by_row(|row| table.distance(row, center))
            .into_iter()
            .zip(table.rows.iter().copied())
            .collect();
        near.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        near[..n / k].iter().map(|(_, row)| *row).collect()
    };
    let members = seeds.iter().map(around).collect();
    let centers = Matrix::from_rows(&seeds);
    let nearest = table.nearest(&centers);
    Clusters { members, ..table.labeled(centers, &nearest) }
}

pub(super) fn k_means(data: &Dataset, frame: &Frame, k: usize, seed: u64) -> Clusters {
    let table = Table::new(data, frame);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut centers = table.seeds(k, &mut rng);
    let mut nearest = table.nearest(&centers);
    for _ in 0..ROUNDS {
        centers = table.means(&nearest, k);
        let next = table.nearest(&centers);
        let settled = next.iter().zip(&nearest).all(|(a, b)| a.0 == b.0);
        nearest = next;
        if settled {
            break;
        }
    }
    table.labeled(centers, &nearest)
}

/// Rows by the nearest of centers that are given in the user's units.
pub(super) fn nearest(data: &Dataset, frame: &Frame, centers: &Matrix) -> Clusters {
    let table = Table::new(data, frame);
    let scaled = |c: usize, j: usize| (centers[(c, j)] - frame.mean[j]) * frame.inverse[j];
    let centers = Matrix::from_fn(centers.n_rows(), data.n_columns(), scaled);
    let nearest = table.nearest(&centers);
    table.labeled(centers, &nearest)
}

/// Rows with an observed cell.
pub(super) fn informative(data: &Dataset) -> Vec<usize> {
    let mut rows: Vec<usize> =
        data.patterns().filter(|p| p.n_observed() > 0).flat_map(|p| p.rows.iter().copied()).collect();
    rows.sort_unstable();
    rows
}

/// The informative rows of a table.
struct Table {
    /// Their places in the table.
    rows: Vec<usize>,
    n_rows: usize,
    /// Cells in units of the frame, about its mean; 0 at the gaps.
    y: Matrix,
    /// `d/|O|` for each observed cell, 0 for a gap.
    counts: Matrix,
}

impl Table {
    fn new(data: &Dataset, frame: &Frame) -> Self {
        let (rows, d) = (informative(data), data.n_columns());
        let (mut y, mut counts) = (Matrix::zeros(rows.len(), d), Matrix::zeros(rows.len(), d));
        for (k, &i) in rows.iter().enumerate() {
            let row = data.row(i);
            let share = d as f64 / row.iter().filter(|v| !v.is_nan()).count() as f64;
            for j in (0..d).filter(|&j| !row[j].is_nan()) {
                y[(k, j)] = (row[j] - frame.mean[j]) * frame.inverse[j];
                counts[(k, j)] = share;
            }
        }
        Self { rows, n_rows: data.n_rows(), y, counts }
    }

    fn distance(&self, row: usize, center: &[f64]) -> f64 {
        weighted_distance(self.y.row(row), center, self.counts.row(row))
    }

    /// Asks every row, in parallel.
    fn by_row<T: Send>(&self, ask: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
        (0..self.rows.len()).into_par_iter().with_min_len(BLOCK).map(ask).collect()
    }

    fn labeled(&self, centers: Matrix, nearest: &[(usize, f64)]) -> Clusters {
        let (mut labels, mut members) = (vec![None; self.n_rows], vec![Vec::new(); centers.n_rows()]);
        for (&i, &(label, _)) in self.rows.iter().zip(nearest) {
            labels[i] = Some(label);
            members[label].push(i);
        }
        Clusters { centers, labels, members }
    }

    /// Every row's nearest center, and how far it is.
    fn nearest(&self, centers: &Matrix) -> Vec<(usize, f64)> {
        self.by_row(|row| {
            let distances = centers.rows().map(|center| self.distance(row, center)).enumerate();
            distances.min_by(|a, b| a.1.total_cmp(&b.1)).expect("there are centers")
        })
    }

    /// Rows as centers, each with a probability that grows with its squared distance to those before.
    fn seeds(&self, k: usize, rng: &mut impl Rng) -> Matrix {
        // A row as a center has the mean of the table, 0, at its gaps.
        let center = |row: usize| self.y.row(row).to_vec();
        let mut chosen = vec![center(rng.random_range(0..self.rows.len()))];
        let mut left: Vec<f64> = vec![f64::INFINITY; self.rows.len()];
        while chosen.len() < k {
            let last = chosen.last().expect("one was chosen");
            let to_last = self.by_row(|row| self.distance(row, last));
            left.iter_mut().zip(to_last).for_each(|(left, new)| *left = left.min(new));
            let total: f64 = left.iter().sum();
            let mut place = rng.random::<f64>() * total;
            let passed = |distance: &f64| {
                place -= distance;
                place < 0.0
            };
            // Where all rows are seeds already, any will do.
            let at = left.iter().position(passed).unwrap_or(chosen.len() % self.rows.len());
            chosen.push(center(at));
        }
        Matrix::from_rows(&chosen)
    }

    /// Means of the observed cells of each cluster. An empty one moves to the row farthest from its own
    /// center.
    fn means(&self, nearest: &[(usize, f64)], k: usize) -> Matrix {
        let d = self.y.n_columns();
        let (mut sums, mut counts) = (Matrix::zeros(k, d), Matrix::zeros(k, d));
        for (row, &(label, _)) in nearest.iter().enumerate() {
            add(sums.row_mut(label), self.y.row(row));
            let observed = counts.row_mut(label).iter_mut().zip(self.counts.row(row));
            observed.for_each(|(n, share)| *n += if *share > 0.0 { 1.0 } else { 0.0 });
        }
        let mut far: Vec<usize> = (0..nearest.len()).collect();
        far.sort_by(|&a, &b| nearest[b].1.total_cmp(&nearest[a].1));
        let mut far = far.into_iter();
        for c in 0..k {
            if counts.row(c).iter().all(|n| *n == 0.0) {
                sums.row_mut(c).copy_from_slice(self.y.row(far.next().unwrap_or(0)));
            } else {
                let counts = counts.row(c).to_vec();
                sums.row_mut(c).iter_mut().zip(counts).for_each(|(s, n)| *s /= f64::max(n, 1.0));
            }
        }
        sums
    }
}
