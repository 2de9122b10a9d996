//! One chain of the sampler.

use super::directions::{Angular, rotation};
use super::truncated_gamma;
use crate::Matrix;
use crate::linalg::dot;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Gamma};

/// What all chains share.
///
/// The axes are those of A's eigenvectors, where A is diagonal; nothing else of the table matters.
pub(super) struct Problem {
    /// Eigenvalues of A, in decreasing order.
    pub(super) a: Vec<f64>,
    /// N − 1.
    pub(super) nu: f64,
    pub(super) a1: f64,
    pub(super) max_components: usize,
    /// ln p(q) up to a constant.
    pub(super) ln_prior: Vec<f64>,
}

impl Problem {
    /// Probability that a jump from q is a birth.
    fn birth(&self, q: usize) -> f64 {
        match q {
            q if q == self.max_components => 0.0,
            0 => 1.0,
            _ => 0.5,
        }
    }

    /// Shape of φ given all else.
    fn phi_shape(&self) -> f64 {
        self.a1 + 0.5 * self.nu
    }

    /// `ln Z(s) = ln a₁ + s/2σ² + ln ∫₀¹ φ^(a₁+ν/2−1) e^(−φ s/2σ²) dφ`, the gain of a component along a
    /// direction with uᵀ A u = s, its variance integrated out.
    fn ln_gain(&self, s: f64, sigma2: f64) -> f64 {
        self.a1.ln() + truncated_gamma::ln_integral(self.phi_shape(), 0.5 * s / sigma2)
    }

    /// Logarithm of the acceptance ratio of the birth that leads from q components to q + 1 by a
    /// direction proposed from `from` (spec 6.2); minus it is that of the death on the way back.
    fn ln_birth_ratio(&self, q: usize, s: f64, sigma2: f64, from: &Angular) -> f64 {
        let jump = ((1.0 - self.birth(q + 1)) / self.birth(q)).ln();
        self.ln_prior[q + 1] - self.ln_prior[q] + jump + self.ln_gain(s, sigma2) - from.ln_density(s)
    }
}

/// Births or deaths proposed in a sweep. They cost little beside its other moves and are what q waits
/// for: against one, three gave 1.0 to 2.9 times the effective draws per sweep on four kinds of table.
const JUMPS: usize = 3;

/// State and generator of one chain.
///
/// ```text
/// axes: rows u₁ … u_q (components), v₁ … v_{d−q} (the rest of the space), orthonormal
/// C = σ² [I + Σᵢ (1/φᵢ − 1) uᵢ uᵢᵀ]        sᵢ = uᵢᵀ A uᵢ        rest = V A Vᵀ
/// ```
pub(super) struct Chain<'a> {
    problem: &'a Problem,
    rng: ChaCha8Rng,
    axes: Matrix,
    phi: Vec<f64>,
    s: Vec<f64>,
    rest: Matrix,
    sigma2: f64,
    /// q after each kept sweep.
    pub(super) draws: Vec<f64>,
    pub(super) n_proposed: usize,
    pub(super) n_accepted: usize,
}

impl<'a> Chain<'a> {
    /// Chains start by turns without components and with as many as there may be, along A's
    /// eigenvectors.
    pub(super) fn new(problem: &'a Problem, number: usize, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(number as u64);
        let (a, d) = (&problem.a, problem.a.len());
        let q = if number.is_multiple_of(2) { 0 } else { problem.max_components };
        let sigma2 = a[q..].iter().sum::<f64>() / (problem.nu * (d - q) as f64);
        Self {
            problem,
            rng,
            axes: Matrix::identity(d),
            phi: a[..q].iter().map(|a| (sigma2 * problem.nu / a).min(1.0)).collect(),
            s: a[..q].to_vec(),
            rest: Matrix::diagonal(&a[q..]),
            sigma2,
            draws: Vec::new(),
            n_proposed: 0,
            n_accepted: 0,
        }
    }

    /// Components now.
    pub(super) fn n_components(&self) -> usize {
        self.s.len()
    }

    /// Some sweeps, then what rounding has done to the axes is undone.
    pub(super) fn round(&mut self, sweeps: usize, keep: bool) {
        for _ in 0..sweeps {
            self.draw_noise();
            self.draw_ratios();
            self.rotate_pairs();
            self.draw_directions();
            let accepted = (0..JUMPS).filter(|_| self.jump()).count();
            if keep {
                self.draws.push(self.n_components() as f64);
                self.n_proposed += if self.problem.max_components > 0 { JUMPS } else { 0 };
                self.n_accepted += accepted;
            }
        }
        self.orthonormalize();
    }

    /// σ² ~ inverse Gamma(νd/2, ½ [tr VAVᵀ + Σ φᵢ sᵢ]): a sum of positive terms, equal to
    /// tr A − Σ (1 − φᵢ) sᵢ.
    fn draw_noise(&mut self) {
        let shape = 0.5 * self.problem.nu * self.problem.a.len() as f64;
        let rate = 0.5 * (self.rest.trace() + dot(&self.phi, &self.s));
        let gamma = Gamma::new(shape, 1.0).expect("there are rows and columns");
        self.sigma2 = rate / gamma.sample(&mut self.rng);
    }

    /// φᵢ ~ Gamma(a₁ + ν/2, sᵢ/2σ²) on (0, 1).
    fn draw_ratios(&mut self) {
        for i in 0..self.s.len() {
            self.phi[i] = self.draw_ratio(self.s[i]);
        }
    }

    fn draw_ratio(&mut self, s: f64) -> f64 {
        truncated_gamma::draw(self.problem.phi_shape(), 0.5 * s / self.sigma2, &mut self.rng)
    }

    /// Every pair of components is rotated in its plane, exactly from its conditional:
    /// `exp(c [cos 2θ (sᵢ − sⱼ)/2 + sin 2θ sᵢⱼ])`, c = (φⱼ − φᵢ)/2σ².
    fn rotate_pairs(&mut self) {
        let (q, d) = (self.s.len(), self.problem.a.len());
        for i in 0..q {
            for j in i + 1..q {
                let (upper, lower) = self.axes.as_mut_slice().split_at_mut(j * d);
                let (ui, uj) = (&mut upper[i * d..(i + 1) * d], &mut lower[..d]);
                let (si, sj) = (self.s[i], self.s[j]);
                let sij: f64 = self.problem.a.iter().zip(&*ui).zip(&*uj).map(|((a, x), y)| a * x * y).sum();
                let c = 0.5 * (self.phi[j] - self.phi[i]) / self.sigma2;
                let (cosine, sine) = rotation(0.5 * c * (si - sj), c * sij, &mut self.rng);
                for (x, y) in ui.iter_mut().zip(uj) {
                    (*x, *y) = (cosine * *x + sine * *y, cosine * *y - sine * *x);
                }
                let cross = 2.0 * sine * cosine * sij;
                let (sine2, cosine2) = (sine * sine, cosine * cosine);
                self.s[i] = (cosine2 * si + cross + sine2 * sj).max(0.0);
                self.s[j] = (sine2 * si - cross + cosine2 * sj).max(0.0);
            }
        }
    }

    /// Each component in turn moves anywhere on the sphere orthogonal to the others: independence
    /// Metropolis for `exp(w uᵀ A u)`, w = (1 − φ)/2σ².
    fn draw_directions(&mut self) {
        let q = self.s.len();
        for i in 0..q {
            self.swap_axes(i, q - 1);
            let mut block = self.block_with_last(self.s[i]);
            let w = 0.5 * (1.0 - self.phi[i]) / self.sigma2;
            let proposal = Angular::new(block.clone(), w);
            let (y, s) = proposal.draw(&mut self.rng);
            let ln_ratio = w * (s - self.s[i]) + proposal.ln_density(self.s[i]) - proposal.ln_density(s);
            if self.accepts(ln_ratio) {
                self.turn_first_to(&y, &mut block, q - 1);
                self.s[i] = block[(0, 0)];
                self.rest = without_first(&block);
            }
            self.swap_axes(i, q - 1);
        }
    }

    /// Birth or death of a component; whether it came to pass.
    fn jump(&mut self) -> bool {
        let q = self.s.len();
        let birth = self.problem.birth(q);
        if self.problem.max_components == 0 {
            false
        } else if birth == 1.0 || (birth > 0.0 && self.rng.random::<f64>() < birth) {
            self.be_born(q)
        } else {
            self.die(q)
        }
    }

    /// A direction of the rest becomes a component, at a position that is chosen evenly: moves go
    /// through components in order, which must not tell the newest.
    fn be_born(&mut self, q: usize) -> bool {
        let proposal = Angular::new(self.rest.clone(), 0.5 / self.sigma2);
        let (y, s) = proposal.draw(&mut self.rng);
        if !self.accepts(self.problem.ln_birth_ratio(q, s, self.sigma2, &proposal)) {
            return false;
        }
        let mut block = std::mem::replace(&mut self.rest, Matrix::zeros(0, 0));
        self.turn_first_to(&y, &mut block, q);
        self.rest = without_first(&block);
        let s = block[(0, 0)];
        let phi = self.draw_ratio(s);
        self.s.push(s);
        self.phi.push(phi);
        let at = self.rng.random_range(0..=q);
        self.swap_axes(at, q);
        self.s.swap(at, q);
        self.phi.swap(at, q);
        true
    }

    /// A component, chosen evenly, returns to the rest.
    fn die(&mut self, q: usize) -> bool {
        let chosen = self.rng.random_range(0..q);
        self.swap_axes(chosen, q - 1);
        self.s.swap(chosen, q - 1);
        self.phi.swap(chosen, q - 1);
        let s = self.s[q - 1];
        let block = self.block_with_last(s);
        let proposal = Angular::new(block.clone(), 0.5 / self.sigma2);
        let dies = self.accepts(-self.problem.ln_birth_ratio(q - 1, s, self.sigma2, &proposal));
        if dies {
            self.s.pop();
            self.phi.pop();
            self.rest = block;
        }
        dies
    }

    fn accepts(&mut self, ln_ratio: f64) -> bool {
        self.rng.random::<f64>() < ln_ratio.exp()
    }

    /// `[u V] A [u V]ᵀ` for the last component u, whose uᵀ A u is given: the rest with a border.
    fn block_with_last(&self, s: f64) -> Matrix {
        let last = self.s.len() - 1;
        let au: Vec<f64> = self.axes.row(last).iter().zip(&self.problem.a).map(|(u, a)| u * a).collect();
        let m = self.rest.n_rows() + 1;
        let mut block = Matrix::zeros(m, m);
        block[(0, 0)] = s;
        for k in 1..m {
            let border = dot(&au, self.axes.row(last + k));
            block[(0, k)] = border;
            let row = block.row_mut(k);
            row[0] = border;
            row[1..].copy_from_slice(self.rest.row(k - 1));
        }
        block
    }

    /// Turns the axes from `first` on, and A written in them, so that the first becomes ±y.
    ///
    /// A reflection sends axis p to ±y, p being y's largest entry: it then leaves the axes nearly
    /// where they are if y is near one of them, and small entries of the block keep their digits
    /// beside large ones.
    fn turn_first_to(&mut self, y: &[f64], block: &mut Matrix, first: usize) {
        let (m, d) = (y.len(), self.problem.a.len());
        let p = (0..m).max_by(|&i, &j| y[i].abs().total_cmp(&y[j].abs())).expect("at least two axes");
        // H = I − v vᵀ, v = (y ± e_p)/√(1 + |y_p|), |v|² = 2: H e_p = ∓y.
        let mut v = y.to_vec();
        v[p] += 1_f64.copysign(y[p]);
        let unit = 1.0 / (1.0 + y[p].abs()).sqrt();
        for v in &mut v {
            *v *= unit;
        }

        let axes = &mut self.axes.as_mut_slice()[first * d..];
        let mut along = vec![0.0; d];
        for (row, v) in axes.chunks_exact(d).zip(&v) {
            along.iter_mut().zip(row).for_each(|(t, x)| *t += v * x);
        }
        for (row, v) in axes.chunks_exact_mut(d).zip(&v) {
            row.iter_mut().zip(&along).for_each(|(x, t)| *x -= v * t);
        }
        // H B H = B − v wᵀ − w vᵀ      w = B v − ½ (vᵀ B v) v
        let mut w: Vec<f64> = block.rows().map(|row| dot(row, &v)).collect();
        let half = 0.5 * dot(&v, &w);
        w.iter_mut().zip(&v).for_each(|(w, v)| *w -= half * v);
        for i in 0..m {
            let (vi, wi) = (v[i], w[i]);
            block.row_mut(i).iter_mut().zip(&v).zip(&w).for_each(|((b, v), w)| *b -= vi * w + wi * v);
        }
        self.swap_axes(first, first + p);
        for i in 0..m {
            block.row_mut(i).swap(0, p);
        }
        swap_rows(block, 0, p);
    }

    fn swap_axes(&mut self, i: usize, j: usize) {
        swap_rows(&mut self.axes, i, j);
    }

    /// Gram–Schmidt on the axes; once is enough, since they are orthonormal to rounding already. What
    /// is kept of A is computed afresh.
    fn orthonormalize(&mut self) {
        let (q, d) = (self.s.len(), self.problem.a.len());
        for i in 0..d {
            let (done, rest) = self.axes.as_mut_slice().split_at_mut(i * d);
            let row = &mut rest[..d];
            for other in done.chunks_exact(d) {
                let along = dot(other, row);
                row.iter_mut().zip(other).for_each(|(x, y)| *x -= along * y);
            }
            let length = dot(row, row).sqrt();
            for x in row {
                *x /= length;
            }
        }
        let mut scaled = self.axes.clone();
        scaled.scale_columns(&self.problem.a);
        for i in 0..q {
            self.s[i] = dot(scaled.row(i), self.axes.row(i));
        }
        for i in q..d {
            for j in q..=i {
                let entry = dot(scaled.row(i), self.axes.row(j));
                self.rest[(i - q, j - q)] = entry;
                self.rest[(j - q, i - q)] = entry;
            }
        }
    }
}

fn swap_rows(m: &mut Matrix, i: usize, j: usize) {
    if i != j {
        let (i, j, d) = (i.min(j), i.max(j), m.n_columns());
        let (upper, lower) = m.as_mut_slice().split_at_mut(j * d);
        upper[i * d..(i + 1) * d].swap_with_slice(&mut lower[..d]);
    }
}

/// The matrix without its first row and column.
fn without_first(block: &Matrix) -> Matrix {
    let m = block.n_rows() - 1;
    let mut rest = Matrix::zeros(m, m);
    for i in 0..m {
        rest.row_mut(i).copy_from_slice(&block.row(i + 1)[1..]);
    }
    rest
}
