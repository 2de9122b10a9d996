//! Principal blocks of one positive definite matrix, inverted eight at a time: the covariance of
//! every row's gaps is such an inverse.

use super::lanes::{self, LANES, Lane};
use super::{Matrix, packed};

/// `A`, in units that make it `⪰ I`.
pub(crate) struct Blocks {
    scaled: Matrix,
    unit: f64,
}

/// Inverted blocks, and the buffers behind them.
#[derive(Default)]
pub(crate) struct Inverted {
    /// Packed, one behind the other.
    packed: Vec<f64>,
    starts: Vec<usize>,
    ln_det: Vec<f64>,
    order: Vec<usize>,
    lanes: Vec<Lane>,
}

impl Inverted {
    /// The inverse of block `k`, packed.
    #[inline(always)]
    pub(crate) fn block(&self, k: usize) -> &[f64] {
        &self.packed[self.starts[k]..self.starts[k + 1]]
    }

    /// `ln |B|` of block `k`.
    #[inline(always)]
    pub(crate) fn ln_det(&self, k: usize) -> f64 {
        self.ln_det[k]
    }
}

impl Blocks {
    /// `A`, whose inverse has no eigenvalue above `largest`.
    pub(crate) fn new(a: &Matrix, largest: f64) -> Self {
        // A power of two costs no digit.
        let unit = largest.log2().ceil().exp2();
        let mut scaled = a.clone();
        scaled.as_mut_slice().iter_mut().for_each(|v| *v *= unit);
        Self { scaled, unit }
    }

    /// `unit · A`
    pub(crate) fn scaled(&self) -> &Matrix {
        &self.scaled
    }

    /// The number `A` was multiplied by: inverses are to be multiplied by it.
    pub(crate) fn unit(&self) -> f64 {
        self.unit
    }

    /// Inverts `unit · A_ss` for the ascending indices `s` of every set; blocks of like size share a
    /// register.
    #[inline(always)]
    pub(crate) fn invert<'s>(&self, sets: impl Fn(usize) -> &'s [u32], n: usize, out: &mut Inverted) {
        let Inverted { packed: inverse, starts, ln_det, order, lanes } = out;
        order.clear();
        order.extend(0..n);
        order.sort_by_key(|&k| sets(k).len());
        starts.clear();
        starts.push(0);
        for k in 0..n {
            starts.push(starts[k] + packed::len(sets(k).len()));
        }
        inverse.resize(starts[n], 0.0);
        ln_det.resize(n, 0.0);
        for eight in order.chunks(LANES) {
            let size = sets(eight[eight.len() - 1]).len();
            lanes.resize(packed::len(size), [0.0; LANES]);
            // Lanes without a set, and what is beyond a smaller one, hold the identity.
            let mut at = 0;
            for i in 0..size {
                lanes[at..at + i].fill([0.0; LANES]);
                lanes[at + i] = [1.0; LANES];
                at += i + 1;
            }
            for (l, &k) in eight.iter().enumerate() {
                let set = sets(k);
                let mut at = 0;
                for (i, &a) in set.iter().enumerate() {
                    let row = self.scaled.row(a as usize);
                    for (lane, &b) in lanes[at..].iter_mut().zip(&set[..=i]) {
                        lane[l] = row[b as usize];
                    }
                    at += i + 1;
                }
            }
            let ln = lanes::inverse_root(lanes, size);
            lanes::square(lanes, size);
            for (l, &k) in eight.iter().enumerate() {
                let block = &mut inverse[starts[k]..starts[k + 1]];
                for (to, lane) in block.iter_mut().zip(lanes.iter()) {
                    *to = lane[l];
                }
                ln_det[k] = ln[l] - sets(k).len() as f64 * self.unit.ln();
            }
        }
    }
}
