//! Forecasts that know that their parameters were estimated [M 1.10.10].
//!
//! With parameters taken for the truth, intervals are too narrow where a table is short for the memory of its factors: the mean
//! of 60 steps that remember 0.9 is worth that of three independent ones.

use super::model::{bordered, companion, stationary};
use super::smoother::{StateSpace, root};
use super::{DynamicFactor, Forecast, Regressors, Season, Start, Timeline};
use crate::linalg::{Cholesky, dot};
use crate::parallel::add;
use crate::{Dataset, Error, Matrix, Noise};
use std::collections::VecDeque;

/// Prior standard deviation of an error in the mean of a factor, in standard deviations of the factors: next to free.
const FREE: f64 = 100.0;
/// Terms of the series of the bias, which as a rule ends sooner.
const TERMS: usize = 20_000;
/// Steps back over which errors of a transition are followed together: a product of matrices each, at every step.
const LAGS: usize = 120;

/// How much parameters were estimated from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearnedFrom {
    /// Rows with a cell.
    pub rows: usize,
    /// Observed cells of each column.
    pub cells: Vec<usize>,
}

impl From<&Dataset> for LearnedFrom {
    fn from(table: &Dataset) -> Self {
        Self { rows: table.n_informative_rows(), cells: table.n_observed_by_column().to_vec() }
    }
}

impl DynamicFactor {
    /// The rows that follow each sequence, the parameters being estimated `from` a table. Compared with
    /// [`forecast`](Self::forecast), which takes them for the truth,
    ///
    /// - the transition is relieved of its bias, that of least squares in a short sequence (Pope 1990), as far as it stays
    ///   stationary;
    /// - variances of innovations and noise count the degrees of freedom that the fit used up, `n/(n − m)` and Akaike's
    ///   `(n + m)/(n − m)`, and intervals are those of Student's t with as many as are left;
    /// - the transition is as uncertain as least squares leave it, `Cov(vec Â) = (n Σ)⁻¹ ⊗ Q`, to second order in its error;
    /// - coefficients of level, season and trend are unknown in the directions of the factors, and the filter learns them with
    ///   the state.
    ///
    /// ```
    /// use covary::dynamics::{DynamicEm, Timeline};
    /// use covary::{data::{simulate, Shape}, Estimator, Spec};
    /// let (table, _) = simulate::ppca(Shape { rows: 40, columns: 5, n_components: 1 }, /* seed */ 1);
    /// let model = DynamicEm::default().fit(&table, &Spec::ppca(1))?.model;
    /// let times = Timeline::regular(40);
    /// let plain = model.forecast(&table, &times, 1)?;
    /// let wider = model.forecast_estimated(&table, &times, 1, &(&table).into())?;
    /// assert!((0..5).all(|j| wider[0].cells[j].sd > plain[0].cells[j].sd));
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`log_density`](Self::log_density); [`Error::WrongLength`] if `from` has other columns.
    pub fn forecast_estimated(
        &self,
        table: &Dataset,
        timeline: &Timeline,
        steps: usize,
        from: &LearnedFrom,
    ) -> Result<Vec<Forecast>, Error> {
        self.check_table(table, timeline)?;
        let corrected = self.corrected(from)?;
        let degrees_of_freedom = left(from.rows as f64, self.start().mean.len() + self.regressors().len());
        let mut out = Vec::new();
        let chains = corrected.chains(table, timeline);
        let padded = match &chains {
            Some(chains) => &corrected.padded(chains.reach() + 1),
            None => &corrected,
        };
        for sequence in timeline.sequences() {
            let space = unknown_means(padded, sequence.first())?;
            let pass = space.filter(table, &space.observed(table, chains.as_ref()), sequence);
            let (a, q, last) = (corrected.transition(), corrected.innovation(), sequence.rows().len() - 1);
            let factors = less_means(padded, sequence.first(), a.n_columns());
            let state: Vec<f64> = factors.rows().map(|row| dot(row, pass.filtered.row(last))).collect();
            let spread = factors.dot(&pass.covariance(last)).dot_t(&factors);
            let added = of_transition(a, q, (from.rows, &state, &spread), steps)?;
            let mut ahead = padded.ahead_of(&pass, (table, sequence, chains.as_ref()), steps, &added);
            ahead.cells.iter_mut().for_each(|cell| cell.student(cell.sd, degrees_of_freedom));
            out.push(ahead);
        }
        Ok(out)
    }

    /// The model without the bias and the lost degrees of freedom of its fit.
    fn corrected(&self, from: &LearnedFrom) -> Result<Self, Error> {
        if from.cells.len() != self.n_columns() {
            let (expected, got) = (self.n_columns(), from.cells.len());
            return Err(Error::WrongLength { what: "numbers of observed cells", expected, got });
        }
        let (k, states, r) = (self.n_components(), self.start().mean.len(), self.regressors().len());
        let rows = from.rows as f64;
        let mut innovation = self.innovation().clone();
        innovation.as_mut_slice().iter_mut().for_each(|v| *v *= rows / left(rows, states + r));
        let variance = |j: usize| {
            let n = from.cells[j] as f64;
            self.noise().variance(j) * (2.0 * n - left(n, k + r)) / left(n, k + r)
        };
        // A posterior of the loadings knows what estimating them cost.
        let noise = match self.uncertainty() {
            Some(_) => self.noise().clone(),
            None => Noise::Diagonal((0..self.n_columns()).map(variance).collect()),
        };
        let mut transition = self.transition().clone();
        let mut start = self.start().clone();
        if let Some(bias) = bias(self.transition(), self.innovation()) {
            // Kilian's rule: as much of it as leaves the factors stationary.
            let shares = (0..=100).rev().map(|share| f64::from(share) / 100.0);
            let reduced = shares.map(|share| {
                Matrix::from_fn(k, states, |i, j| transition[(i, j)] + share * bias[(i, j)] / rows.max(1.0))
            });
            let mut reduced = reduced.map(|a| (stationary(&a, &innovation), a));
            if let Some((covariance, a)) = reduced.find_map(|(s, a)| Some((s?, a))) {
                start = Start { mean: vec![0.0; states], covariance };
                transition = a;
            }
        }
        let (loadings, coefficients) = (self.loadings().clone(), self.coefficients().clone());
        let regressors = self.regressors().clone();
        Ok(Self::new(transition, innovation, loadings, coefficients, regressors, noise, start)?.like(self))
    }
}

/// Degrees of freedom of n numbers after a fit of m. A table that has no more rows than a fit has parameters is beyond correction by
/// them.
fn left(n: f64, m: usize) -> f64 {
    (n - m as f64).max(n / 2.0).max(1.0)
}

/// n times the bias of `−Â`, k × states, of least squares about a mean (Pope 1990); `None` where the factors are not stationary.
///
/// ```text
/// Q [(I − Aᵀ)⁻¹ + Aᵀ (I − A²ᵀ)⁻¹ + Σ λ (I − λ Aᵀ)⁻¹] Σ⁻¹        λ: the roots of A,   Σ λ (I − λ Aᵀ)⁻¹ = Σ_m tr A^{m+1} (Aᵀ)^m
/// ```
fn bias(transition: &Matrix, innovation: &Matrix) -> Option<Matrix> {
    let covariance = stationary(transition, innovation)?;
    let inverse = Cholesky::new(&covariance)?.inverse();
    let (a, n) = (companion(transition).transpose(), covariance.n_rows());
    let (mut power, mut sum) = (Matrix::identity(n), Matrix::zeros(n, n));
    for m in 0..TERMS {
        let next = power.dot(&a);
        let weight = 1.0 + next.trace() + if m % 2 == 1 { 1.0 } else { 0.0 };
        sum.as_mut_slice().iter_mut().zip(power.as_slice()).for_each(|(s, p)| *s += weight * p);
        power = next;
        if power.as_slice().iter().all(|v| v.abs() < 1e-12) {
            break;
        }
    }
    let whole = bordered(innovation, n).dot(&sum).dot(&inverse);
    Some(Matrix::from_fn(transition.n_rows(), n, |i, j| whole[(i, j)]))
}

/// What a transition estimated from `rows` rows adds to the covariance of the factors 1, 2, … steps after a state of mean x and
/// covariance P, to second order in its error, with `Cov(vec Â) = S ⊗ Q`, `S = (n Σ)⁻¹` and `Q = L Lᵀ`. Of the mean `Â^h x`
///
/// ```text
/// Σ_b Z_b Z_bᵀ        Z_b ← A Z_b + L [S^½ A^{h−1} x]_b
/// ```
///
/// and of the expectation of `P_h = Â P_{h−1} Âᵀ + Q` over Â
///
/// ```text
/// E_h = A E_{h−1} Aᵀ + F_h Aᵀ + A F_hᵀ + Q tr(S P_{h−1})
/// F_h = Σ_{j<h} Q (A^{j−1})ᵀ [S P_{h−1−j} (A^j)ᵀ + tr(S A^j P_{h−1−j})]
/// ```
///
/// Nothing where the factors are not stationary: how far an estimate is from the truth is not known then.
fn of_transition(
    transition: &Matrix,
    innovation: &Matrix,
    (rows, state, spread): (usize, &[f64], &Matrix),
    steps: usize,
) -> Result<Vec<Matrix>, Error> {
    let (k, n) = (transition.n_rows(), transition.n_columns());
    let Some(covariance) = stationary(transition, innovation).as_ref().and_then(Cholesky::new) else {
        return Ok(Vec::new());
    };
    let (a, l, rows) = (companion(transition), root(innovation)?, rows.max(1) as f64);
    let (mut z, mut x) = (vec![Matrix::zeros(n, k); n], state[..n].to_vec());
    let (mut p, mut expected, mut out) = (spread.clone(), Matrix::zeros(n, n), Vec::new());
    // (A^j)ᵀ and Q (A^{j−1})ᵀ from j = 1 on, as long as they count; S P of the steps before, the last first.
    let (mut powers, mut memory) = (Vec::new(), VecDeque::new());
    let (mut power, mut of_innovation, q) = (a.transpose(), bordered(innovation, n), bordered(innovation, n));
    while powers.len() < steps.min(LAGS) && power.as_slice().iter().any(|v| v.abs() > 1e-9) {
        let next = (power.dot_t(&a), of_innovation.dot_t(&a));
        powers.push((std::mem::replace(&mut power, next.0), std::mem::replace(&mut of_innovation, next.1)));
    }
    for _ in 0..steps {
        let mut s = x.clone();
        covariance.solve_lower(&mut s);
        let mut sum = Matrix::zeros(k, k);
        for (z, s) in z.iter_mut().zip(s) {
            *z = a.dot(z);
            for i in 0..k {
                z.row_mut(i).iter_mut().zip(l.row(i)).for_each(|(z, l)| *z += s / rows.sqrt() * l);
            }
            for (i, j) in (0..k).flat_map(|i| (0..k).map(move |j| (i, j))) {
                sum[(i, j)] += dot(z.row(i), z.row(j));
            }
        }
        x = a.rows().map(|row| dot(row, &x)).collect();

        let mut f = Matrix::zeros(n, n);
        for ((power, of_innovation), before) in powers.iter().zip(&memory) {
            let before: &Matrix = before;
            let mut inner = before.dot(power);
            let trace = inner.trace();
            (0..n).for_each(|i| inner[(i, i)] += trace);
            add(f.as_mut_slice(), of_innovation.dot(&inner).as_slice());
        }
        let now = covariance.solve_matrix(&p);
        let now = Matrix::from_fn(n, n, |i, j| now[(i, j)] / rows);
        let (turned, direct) = (f.dot_t(&a), now.trace());
        let moved = a.dot(&expected).dot_t(&a);
        let entry = |i, j| moved[(i, j)] + turned[(i, j)] + turned[(j, i)] + direct * q[(i, j)];
        expected = Matrix::from_fn(n, n, entry);
        memory.push_front(now);
        memory.truncate(LAGS);
        p = a.dot(&p).dot_t(&a);
        add(p.as_mut_slice(), q.as_slice());
        (0..k).for_each(|i| add(sum.row_mut(i), &expected.row(i)[..k]));
        out.push(sum);
    }
    Ok(out)
}

/// What leaves of the state of [`unknown_means`] the factors without their means: `x_{t−l} = y_{t−l} − M_t R^{p−1−l} β`.
fn less_means(model: &DynamicFactor, first: i64, states: usize) -> Matrix {
    let (k, p, r) = (model.n_components(), model.order(), model.regressors().len());
    let past = past(model, first);
    let mut out = Matrix::zeros(states, k * (p + r));
    for i in 0..states {
        out[(i, i)] = 1.0;
        let from = k * p + i % k * r;
        out.row_mut(i)[from..from + r].iter_mut().zip(&past[p - 1 - i / k]).for_each(|(m, b)| *m = -b);
    }
    out
}

/// β, R β, …, `R^p β`: the regressors of the p − 1 steps before the first, of the first and of that after it.
fn past(model: &DynamicFactor, first: i64) -> Vec<Vec<f64>> {
    let (p, step) = (model.order(), model.regressors().step());
    let mut past = vec![model.regressors().at(first.saturating_sub(p as i64 - 1))];
    for l in 0..p {
        past.push(step.rows().map(|row| dot(row, &past[l])).collect());
    }
    past
}

/// The model with factors `y_t = x_t + C b_t`, C unknown. With `b_{t+1} = R b_t` and `M_t = C R^{t−1}` the state
/// `(y_t, …, y_{t−p+1}, M_t)` has one transition for all steps:
///
/// ```text
/// y_{t+1} = Σ_l A_l y_{t+1−l} + M_t R^p β − Σ_l A_l M_t R^{p−l} β + η        M_{t+1} = M_t R        β = b of p − 1 steps before the first
/// ```
fn unknown_means(model: &DynamicFactor, first: i64) -> Result<StateSpace<'_>, Error> {
    let (k, states, p, r) =
        (model.n_components(), model.start().mean.len(), model.order(), model.regressors().len());
    let n = states + k * r;
    let step = model.regressors().step();
    let past = past(model, first);
    let at = |i: usize, l: usize| states + i * r + l;
    let mut transition = Matrix::zeros(n, n);
    let own = companion(model.transition());
    for i in 0..states {
        transition.row_mut(i)[..states].copy_from_slice(own.row(i));
    }
    for i in 0..k {
        for l in 0..r {
            transition[(i, at(i, l))] += past[p][l];
            for (lag, a) in (0..k).flat_map(|a| (1..=p).map(move |lag| (lag, a))) {
                transition[(i, at(a, l))] -= model.transition()[(i, (lag - 1) * k + a)] * past[p - lag][l];
            }
            for m in 0..r {
                transition[(at(i, l), at(i, m))] = step[(m, l)];
            }
        }
    }
    let own = root(&model.start().covariance)?;
    let variance = (0..k).map(|i| model.start().covariance[(i, i)]).sum::<f64>() / k as f64;
    let size = FREE * variance.max(f64::MIN_POSITIVE).sqrt();
    let mut start = Matrix::zeros(n, n);
    for i in 0..states {
        start.row_mut(i)[..states].copy_from_slice(own.row(i));
        for (l, b) in past[p - 1 - i / k].iter().enumerate() {
            start[(i, at(i % k, l))] = size * b;
        }
    }
    (states..n).for_each(|i| start[(i, i)] = size);
    let mut mean = model.start().mean.clone();
    mean.resize(n, 0.0);
    let innovation = root(&bordered(model.innovation(), n))?;
    Ok(StateSpace::given(model, transition, innovation, start, mean))
}

impl Regressors {
    /// R with `b_{t+1} = R b_t`.
    pub(super) fn step(&self) -> Matrix {
        let mut out = Matrix::zeros(self.len(), self.len());
        let of_season = self.len() - usize::from(self.trend.is_some());
        match self.season {
            Season::Indicators { period } => {
                (0..period).for_each(|s| out[((s + 1) % period, s)] = 1.0);
            }
            Season::Harmonics { period, n } => {
                out[(0, 0)] = 1.0;
                for h in 0..n {
                    let (sin, cos) = ((h + 1) as f64 / period * std::f64::consts::TAU).sin_cos();
                    let c = 1 + 2 * h;
                    (out[(c, c)], out[(c, c + 1)], out[(c + 1, c)], out[(c + 1, c + 1)]) =
                        (cos, -sin, sin, cos);
                }
            }
            Season::None => out[(0, 0)] = 1.0,
        }
        if let Some(trend) = self.trend {
            // One of the levels is 1 at every step.
            out[(of_season, of_season)] = 1.0;
            (0..of_season).filter(|&l| self.is_level(l)).for_each(|l| out[(of_season, l)] = 1.0 / trend.unit);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dynamics::Trend;

    #[test]
    fn regressors_step_by_one_matrix() {
        let trend = Some(Trend { center: 3.0, unit: 7.0 });
        for season in
            [Season::None, Season::Harmonics { period: 12.5, n: 2 }, Season::Indicators { period: 4 }]
        {
            for trend in [None, trend] {
                let regressors = Regressors { season, trend };
                let step = regressors.step();
                for t in -3..9 {
                    let (now, next) = (regressors.at(t), regressors.at(t + 1));
                    for (row, want) in step.rows().zip(next) {
                        assert!((dot(row, &now) - want).abs() < 1e-12);
                    }
                }
            }
        }
    }

    /// One factor: Kendall's 1 + 3ρ. Two: the formula with the roots themselves.
    #[test]
    fn the_bias_is_popes() {
        for rho in [0.0, 0.5, 0.95] {
            let got = bias(&Matrix::diagonal(&[rho]), &Matrix::diagonal(&[0.3])).unwrap();
            assert!((got[(0, 0)] - (1.0 + 3.0 * rho)).abs() < 1e-9);
        }
        let (a, q) =
            (Matrix::from_rows(&[[0.7, 0.2], [0.0, 0.4]]), Matrix::from_rows(&[[1.0, 0.3], [0.3, 0.5]]));
        let inverse = |m: &Matrix| {
            let det = m[(0, 0)] * m[(1, 1)] - m[(0, 1)] * m[(1, 0)];
            Matrix::from_rows(&[[m[(1, 1)] / det, -m[(0, 1)] / det], [-m[(1, 0)] / det, m[(0, 0)] / det]])
        };
        let less = |scale: f64, m: &Matrix| {
            Matrix::from_fn(2, 2, |i, j| f64::from(u8::from(i == j)) - scale * m[(i, j)])
        };
        let t = a.transpose();
        let parts = [
            inverse(&less(1.0, &t)),
            t.dot(&inverse(&less(1.0, &t.dot(&t)))),
            Matrix::diagonal(&[0.7, 0.7]).dot(&inverse(&less(0.7, &t))),
            Matrix::diagonal(&[0.4, 0.4]).dot(&inverse(&less(0.4, &t))),
        ];
        let mut sum = Matrix::zeros(2, 2);
        for part in &parts {
            add(sum.as_mut_slice(), part.as_slice());
        }
        let want = q.dot(&sum).dot(&inverse(&stationary(&a, &q).unwrap()));
        for (got, want) in bias(&a, &q).unwrap().as_slice().iter().zip(want.as_slice()) {
            assert!((got - want).abs() < 1e-9, "{got} {want}");
        }
        assert!(bias(&Matrix::diagonal(&[1.0]), &Matrix::diagonal(&[1.0])).is_none());
    }

    /// By finite differences of means and covariances ahead in every entry of A.
    #[test]
    fn what_a_transition_adds_is_the_second_order_of_its_error() {
        let nothing = Matrix::zeros(1, 1);
        let given = (50, &[1.5][..], &nothing);
        let one = of_transition(&Matrix::diagonal(&[0.9]), &Matrix::diagonal(&[0.19]), given, 4).unwrap();
        for (h, got) in (1..).zip(&one) {
            let of_mean = (f64::from(h) * f64::powi(0.9, h - 1) * 1.5).powi(2) * 0.19 / 50.0;
            // E[φ̂^{2k}] − φ^{2k} = k (2k − 1) φ^{2k−2} Var φ̂, of which the variance ahead is the sum.
            let of_spread =
                |k: i32| f64::from(k * (2 * k - 1)) * f64::powi(0.9, 2 * k - 2) * 0.19 * 0.19 / 50.0;
            let want = of_mean + (1..h).map(of_spread).sum::<f64>();
            assert!((got[(0, 0)] - want).abs() < 1e-12, "{h}");
        }
        let a = Matrix::from_rows(&[[0.6, 0.2, 0.1, -0.1], [-0.1, 0.4, 0.2, 0.15]]);
        let (q, x, n) = (Matrix::from_rows(&[[1.0, 0.3], [0.3, 0.5]]), [0.7, -1.1, 0.4, 2.0], 80);
        let p = Matrix::from_fn(4, 4, |i, j| if i == j { 1.0 } else { 0.1 * (i + j) as f64 });
        let inverse = Cholesky::new(&stationary(&a, &q).unwrap()).unwrap().inverse();
        let ahead = |a: &Matrix, h: usize| -> (Vec<f64>, Matrix) {
            (0..h).fold((x.to_vec(), p.clone()), |(x, p), _| {
                let a = companion(a);
                let mut p = a.dot(&p).dot_t(&a);
                add(p.as_mut_slice(), bordered(&q, 4).as_slice());
                (a.rows().map(|row| dot(row, &x)).collect(), p)
            })
        };
        let entries: Vec<(usize, usize)> = (0..2).flat_map(|i| (0..4).map(move |j| (i, j))).collect();
        let moved = |by: &[((usize, usize), f64)], h: usize| {
            let mut a = a.clone();
            for &(at, by) in by {
                a[at] += by;
            }
            ahead(&a, h)
        };
        let d = 1e-4;
        for (h, got) in (1..).zip(of_transition(&a, &q, (n, &x, &p), 5).unwrap()) {
            let slope = |at| {
                let (up, down) = (moved(&[(at, d)], h).0, moved(&[(at, -d)], h).0);
                [0, 1].map(|r| (up[r] - down[r]) / (2.0 * d))
            };
            let slopes: Vec<[f64; 2]> = entries.iter().map(|&at| slope(at)).collect();
            let mut want = Matrix::zeros(2, 2);
            for (&(i, j), one) in entries.iter().zip(&slopes) {
                for (&(e, f), other) in entries.iter().zip(&slopes) {
                    let covariance = q[(i, e)] * inverse[(j, f)] / n as f64;
                    let at = |s: f64, t: f64| moved(&[((i, j), s * d), ((e, f), t * d)], h).1;
                    let [uu, ud, du, dd] = [at(1.0, 1.0), at(1.0, -1.0), at(-1.0, 1.0), at(-1.0, -1.0)];
                    for (r, c) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                        let curve = (uu[(r, c)] - ud[(r, c)] - du[(r, c)] + dd[(r, c)]) / (4.0 * d * d);
                        want[(r, c)] += covariance * (one[r] * other[c] + 0.5 * curve);
                    }
                }
            }
            for (got, want) in got.as_slice().iter().zip(want.as_slice()) {
                assert!((got - want).abs() < 1e-6, "{h}: {got} {want}");
            }
        }
        assert!(of_transition(&Matrix::diagonal(&[1.0]), &q, given, 5).unwrap().is_empty());
    }

    /// Against one Gaussian of all cells, those to come included, in which C is normal: `Cov = W (Cov(x, x) + s² (b·b) I) Wᵀ + Ψ`.
    #[test]
    fn unknown_means_are_those_of_one_gaussian_of_all_cells() {
        let (d, k, steps, ahead) = (3, 2, 7, 3);
        let entry = |i: usize, j: usize, seed: usize| ((i * 7 + j * 13 + seed * 5) % 11) as f64 / 11.0 - 0.45;
        for (p, season, rho) in [
            (1, Season::None, 0.0),
            (1, Season::Harmonics { period: 5.0, n: 1 }, 0.0),
            (1, Season::Harmonics { period: 5.0, n: 1 }, 0.7),
            (2, Season::Indicators { period: 3 }, 0.0),
            (2, Season::Indicators { period: 3 }, -0.6),
        ] {
            let regressors = Regressors { season, trend: Some(Trend { center: 2.0, unit: 4.0 }) };
            let (a, q) = (Matrix::from_fn(k, k * p, |i, j| entry(i, j, 1)), Matrix::diagonal(&[0.7, 0.4]));
            let covariance = stationary(&a, &q).unwrap();
            let model = DynamicFactor::new(
                a.clone(),
                q.clone(),
                Matrix::from_fn(d, k, |i, j| 2.0 * entry(i, j, 2)),
                Matrix::from_fn(d, regressors.len(), |i, j| entry(i, j, 3)),
                regressors.clone(),
                Noise::Diagonal(vec![0.3, 0.2, 0.5]),
                Start { mean: vec![0.0; k * p], covariance: covariance.clone() },
            )
            .and_then(|model| model.with_noise_memory((rho != 0.0).then(|| vec![rho; d])))
            .unwrap();
            let first = 4;
            let all = steps + ahead;
            // Cov(x_u, x_t) = A^{u−t} Σ of the state, for u from t on.
            let mut lags = vec![covariance.clone()];
            (1..all).for_each(|l| lags.push(companion(&a).dot(&lags[l - 1])));
            let b: Vec<Vec<f64>> = (0..all).map(|t| regressors.at(first + t as i64)).collect();
            let size = FREE * FREE * covariance.trace() / (k * p) as f64;
            let of_factors = |t: usize, u: usize, i: usize, j: usize| {
                let own = if u >= t { lags[u - t][(j, i)] } else { lags[t - u][(i, j)] };
                own + if i == j { size * dot(&b[t], &b[u]) } else { 0.0 }
            };
            let w = model.loadings();
            let cov = Matrix::from_fn(all * d, all * d, |x, y| {
                let (t, u, i, j) = (x / d, y / d, x % d, y % d);
                let noise = model.noise().variance(i) * f64::powi(rho, t.abs_diff(u) as i32);
                let mut sum = if i == j { noise } else { 0.0 };
                for (e, f) in (0..k).flat_map(|e| (0..k).map(move |f| (e, f))) {
                    sum += w[(i, e)] * of_factors(t, u, e, f) * w[(j, f)];
                }
                sum
            });
            let cov = Matrix::from_fn(all * d, all * d, |x, y| 0.5 * (cov[(x, y)] + cov[(y, x)]));
            let mean: Vec<f64> =
                (0..all * d).map(|x| dot(model.coefficients().row(x % d), &b[x / d])).collect();
            let cell = |t: usize, j: usize| {
                if t == 3 || (t + 2 * j) % 5 == 1 { f64::NAN } else { 3.0 * entry(t, j, 4) }
            };
            let table = Dataset::new(Matrix::from_fn(steps, d, cell)).unwrap();
            let mut row: Vec<f64> = table.values().as_slice().to_vec();
            row.resize(all * d, f64::NAN);
            let one_row = Dataset::new(Matrix::from_vec(1, all * d, row).unwrap()).unwrap();
            let whole = crate::LinearGaussian::from_covariance(mean, &cov).unwrap();
            let want = crate::Density::gap_cells(&whole, &one_row).unwrap();
            let times: Vec<i64> = (0..steps).map(|t| first + t as i64).collect();
            let timeline = Timeline::new(&times, None).unwrap();
            let sequence = &timeline.sequences()[0];
            let chains = model.chains(&table, &timeline);
            let model = chains.as_ref().map_or(model.clone(), |c| model.padded(c.reach() + 1));
            let space = unknown_means(&model, sequence.first()).unwrap();
            let pass = space.filter(&table, &space.observed(&table, chains.as_ref()), sequence);
            for cell in model.ahead_of(&pass, (&table, sequence, chains.as_ref()), ahead, &[]).cells {
                let same = want.iter().find(|c| c.column == (steps + cell.row) * d + cell.column).unwrap();
                let close = |got: f64, want: f64| (got - want).abs() < 1e-6 * (1.0 + want.abs());
                assert!(
                    close(cell.mean, same.mean) && close(cell.sd, same.sd),
                    "{season:?}: {cell:?} {same:?}"
                );
            }
        }
    }
}
