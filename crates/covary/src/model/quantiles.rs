//! The shape of a distribution that is known by its quantiles.

use super::Distribution;
use statrs::distribution::{Continuous, ContinuousCDF, Normal};

/// Distance of the knots, in normal quantiles, and their number: 0.25, 0.5, …, 3.
const STEP: f64 = 0.25;
pub(crate) const KNOTS: usize = 12;

/// A symmetric quantile function, by what it is at the normal quantiles 0.25, 0.5, …, 3 and linear between and beyond.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantiles {
    knots: [f64; KNOTS],
}

impl Quantiles {
    /// The normal distribution's own.
    pub fn normal() -> Self {
        Self { knots: std::array::from_fn(place) }
    }

    /// That of another distribution, of mean 0, standard deviation 1 and symmetric: exact at the knots, and between them as near as lines
    /// are (to .7 % of Student's t of 4 degrees of freedom).
    pub(crate) fn of(distribution: &Distribution) -> Self {
        let normal = Normal::standard();
        Self { knots: std::array::from_fn(|k| distribution.quantile(normal.cdf(place(k)))) }
    }

    /// From its values at the knots; `None` unless they are finite, not negative and ascending.
    pub fn new(knots: [f64; KNOTS]) -> Option<Self> {
        let ascending = knots.windows(2).all(|pair| pair[0] <= pair[1]);
        (ascending && knots[0] >= 0.0 && knots[KNOTS - 1].is_finite()).then_some(Self { knots })
    }

    /// Its values at the knots.
    pub fn knots(&self) -> &[f64; KNOTS] {
        &self.knots
    }

    /// The quantile at the level where the standard normal has `x`.
    ///
    /// ```
    /// use covary::model::Quantiles;
    /// assert!((Quantiles::normal().at(-1.7) + 1.7).abs() < 1e-12);
    /// ```
    pub fn at(&self, x: f64) -> f64 {
        let k = ((x.abs() / STEP) as usize).min(KNOTS - 1);
        let [from, to] = self.ends(k);
        (from + (to - from) * (x.abs() / STEP - k as f64)).copysign(x)
    }

    /// The largest x whose quantile is at most `z`: where the standard normal has the level of `z`.
    pub fn level_of(&self, z: f64) -> f64 {
        let size = z.abs();
        // Below zero the largest x of a constant piece is its end near zero.
        let before = |to: f64| if z < 0.0 { to < size } else { to <= size };
        let k = (0..KNOTS - 1).find(|&k| !before(self.knots[k])).unwrap_or(KNOTS - 1);
        let [from, to] = self.ends(k);
        let x = if to > from {
            STEP * (k as f64 + ((size - from) / (to - from)).max(0.0))
        } else if size > to {
            f64::INFINITY
        } else {
            STEP * k as f64
        };
        x.copysign(z)
    }

    /// Values at both ends of a piece.
    fn ends(&self, k: usize) -> [f64; 2] {
        [if k == 0 { 0.0 } else { self.knots[k - 1] }, self.knots[k]]
    }

    /// Standard deviation: `√∫ Q(x)² φ(x) dx`, in closed form on each piece.
    pub(crate) fn sd(&self) -> f64 {
        let mut half = 0.0;
        for k in 0..KNOTS {
            let [from, to] = self.ends(k);
            let (a, slope) = (STEP * k as f64, (to - from) / STEP);
            let b = if k + 1 == KNOTS { f64::INFINITY } else { a + STEP };
            let offset = from - slope * a;
            let [mass, first, second] = moments(a, b);
            half += offset * offset * mass + 2.0 * offset * slope * first + slope * slope * second;
        }
        (2.0 * half).sqrt()
    }

    pub(crate) fn scaled(&self, factor: f64) -> Self {
        Self { knots: self.knots.map(|q| q * factor) }
    }
}

/// The normal quantile of a knot.
pub(crate) fn place(k: usize) -> f64 {
    STEP * (k + 1) as f64
}

/// `∫ₐᵇ (1, x, x²) φ(x) dx`
fn moments(a: f64, b: f64) -> [f64; 3] {
    let normal = Normal::standard();
    let tail = |x: f64| if x.is_finite() { (normal.pdf(x), x * normal.pdf(x)) } else { (0.0, 0.0) };
    let mass = normal.cdf(b) - normal.cdf(a);
    let ((pa, xa), (pb, xb)) = (tail(a), tail(b));
    [mass, pa - pb, mass + xa - xb]
}

/// What values a column can have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// None below.
    pub lower: f64,
    /// None above.
    pub upper: f64,
    /// Whole numbers only.
    pub whole: bool,
}

impl Limits {
    /// Any value.
    pub const NONE: Self = Self { lower: f64::NEG_INFINITY, upper: f64::INFINITY, whole: false };

    /// The nearest value within the limits, whole or not.
    pub fn clip(&self, value: f64) -> f64 {
        value.max(self.lower).min(self.upper)
    }

    /// The nearest value that the column can have.
    pub fn nearest(&self, value: f64) -> f64 {
        let clipped = self.clip(value);
        if self.whole { clipped.round() } else { clipped }
    }

    /// The least and the largest value between two ends that the column can have. Whole numbers lie between the ends:
    /// rounded to the nearest ones, intervals of a short scale would reach beyond and cover more than their level. Where
    /// there is none between, both are the one nearest to the middle.
    pub fn between(&self, low: f64, high: f64) -> (f64, f64) {
        let ends = (self.clip(low), self.clip(high));
        if !self.whole {
            return ends;
        }
        let (least, largest) = (ends.0.ceil(), ends.1.floor());
        let middle = self.nearest(f64::midpoint(low, high));
        if least <= largest { (least, largest) } else { (middle, middle) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_of_a_whole_column_has_the_whole_numbers_between_its_ends() {
        let codes = Limits { lower: 1.0, upper: 5.0, whole: true };
        assert_eq!(codes.between(2.3, 4.6), (3.0, 4.0));
        assert_eq!(codes.between(2.0, 4.0), (2.0, 4.0));
        assert_eq!(codes.between(2.6, 2.9), (3.0, 3.0), "none between: the nearest to the middle");
        assert_eq!(codes.between(-2.0, 1.7), (1.0, 1.0));
        assert_eq!(codes.between(5.2, 6.7), (5.0, 5.0));
        assert_eq!(codes.between(-9.0, 9.0), (1.0, 5.0));
        assert_eq!(Limits { whole: false, ..codes }.between(2.3, 7.0), (2.3, 5.0));
    }

    #[test]
    fn levels_and_quantiles_are_inverse_and_odd() {
        let q = Quantiles::new(std::array::from_fn(|k| (place(k) * 0.8).powf(1.3))).unwrap();
        for i in -450..450 {
            let x = f64::from(i) * 0.01;
            assert!((q.level_of(q.at(x)) - x).abs() < 1e-9, "{x}");
            assert_eq!(q.at(-x), -q.at(x));
        }
        // The variance by quadrature.
        let step = 1e-3;
        let sum: f64 = (-9000..9000)
            .map(|i| (f64::from(i) + 0.5) * step)
            .map(|x| q.at(x).powi(2) * Normal::standard().pdf(x) * step)
            .sum();
        assert!((q.sd() - sum.sqrt()).abs() < 1e-6);
        assert!(Quantiles::new([f64::NAN; KNOTS]).is_none());
        let flat = Quantiles::new([1.0; KNOTS]).unwrap();
        assert_eq!(flat.level_of(2.0), f64::INFINITY);
        assert_eq!(flat.level_of(-2.0), f64::NEG_INFINITY);
    }
}
