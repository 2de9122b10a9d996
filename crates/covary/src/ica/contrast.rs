use crate::infer::options::Setting;
use crate::linalg::elementary::{exp_of_negative, tanh_and_tail};
use pulp::{Arch, Simd, WithSimd};

/// What [`FastIca`](super::FastIca) measures the distance from a Gaussian by: a function G of a source.
/// Its derivative g is what the iteration needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Contrast {
    /// `G = ln cosh(a y) / a`, `g = tanh a y`: for sources of any kind.
    LogCosh {
        /// a, 1 to 2.
        a: f64,
    },
    /// `G = −exp(−y²/2)`, `g = y exp(−y²/2)`: for very heavy tails, or where outliers are feared.
    Exp,
    /// `G = y⁴/4`, `g = y³`, the kurtosis: fast, and led astray by single large values.
    Cube,
}

impl Contrast {
    /// Replaces every y by g(y), and puts g′(y) beside it.
    pub(super) fn apply(self, y: &mut [f64], slope: &mut [f64]) {
        Arch::new().dispatch(Apply { contrast: self, y, slope });
    }
}

impl Setting for Contrast {
    fn text(&self) -> String {
        match self {
            Self::LogCosh { a: 1.0 } => "logcosh".to_owned(),
            Self::LogCosh { a } => format!("logcosh {a:?}"),
            Self::Exp => "exp".to_owned(),
            Self::Cube => "cube".to_owned(),
        }
    }

    fn set(&mut self, text: &str) -> Result<(), &'static str> {
        const EXPECTED: &str = "logcosh, with its slope such as `logcosh 1.5`, exp or cube";
        *self = match text {
            "logcosh" => Self::LogCosh { a: 1.0 },
            "exp" => Self::Exp,
            "cube" => Self::Cube,
            _ => {
                let slope = text.strip_prefix("logcosh").ok_or(EXPECTED)?;
                Self::LogCosh { a: slope.trim().parse().map_err(|_| EXPECTED)? }
            }
        };
        Ok(())
    }
}

struct Apply<'a> {
    contrast: Contrast,
    y: &'a mut [f64],
    slope: &'a mut [f64],
}

impl WithSimd for Apply<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let cells = self.y.iter_mut().zip(self.slope);
        match self.contrast {
            Contrast::LogCosh { a } => cells.for_each(|(y, slope)| {
                let (t, _) = tanh_and_tail(a * *y);
                *y = t;
                *slope = a * (1.0 - t * t);
            }),
            Contrast::Exp => cells.for_each(|(y, slope)| {
                let square = *y * *y;
                let e = exp_of_negative(-0.5 * square);
                *slope = (1.0 - square) * e;
                *y *= e;
            }),
            Contrast::Cube => cells.for_each(|(y, slope)| {
                let square = *y * *y;
                *slope = 3.0 * square;
                *y *= square;
            }),
        }
    }
}
