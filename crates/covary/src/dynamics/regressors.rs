//! What is known of every step beforehand: a constant, the season, a trend [M 1.10.6].

use crate::infer::options::Setting;
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

/// The known part `b_t` of each step, on which every column is regressed beside the factors.
///
/// ```
/// use covary::dynamics::{Regressors, Season};
/// let monthly = Regressors { season: Season::Harmonics { period: 12.0, n: 1 }, trend: None };
/// assert_eq!(monthly.at(24), [1.0, 1.0, 0.0]);                  // constant, cosine and sine of the year
/// assert_eq!(Regressors::default().at(24), [1.0]);
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Regressors {
    /// How the mean changes within a period.
    pub season: Season,
    /// A straight line in time.
    pub trend: Option<Trend>,
}

/// How the mean of a column changes within a period.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Season {
    /// Not at all: one mean.
    #[default]
    None,
    /// As waves of the period and its fractions: two numbers for each column and wave.
    Harmonics {
        /// Steps of a period.
        #[serde(with = "crate::json")]
        period: f64,
        /// Waves.
        n: usize,
    },
    /// A mean for each step of a period, which takes several observed cells of each column at each of them.
    Indicators {
        /// Steps of a period.
        period: usize,
    },
}

impl Setting for Season {
    /// `none`, `12:1` for a wave of period 12 (`12:2` for two, the second of period 6), `12:means` for a mean at each of its
    /// steps.
    fn text(&self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::Harmonics { period, n } => format!("{period:?}:{n}"),
            Self::Indicators { period } => format!("{period}:means"),
        }
    }

    fn set(&mut self, text: &str) -> Result<(), &'static str> {
        const EXPECTED: &str =
            "none, or the steps of a period with the number of its waves such as 12:2, or 12:means";
        let (period, waves) = text.trim().split_once(':').unwrap_or((text.trim(), "1"));
        *self = match (period, waves) {
            ("none", "1") => Self::None,
            (period, "means") => Self::Indicators { period: period.parse().map_err(|_| EXPECTED)? },
            (period, n) => Self::Harmonics {
                period: period.parse().map_err(|_| EXPECTED)?,
                n: n.parse().map_err(|_| EXPECTED)?,
            },
        };
        Ok(())
    }
}

/// A straight line through `center`, which rises by 1 in `unit` steps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    /// The time at which it is 0.
    #[serde(with = "crate::json")]
    pub center: f64,
    /// Steps in which it rises by 1.
    #[serde(with = "crate::json")]
    pub unit: f64,
}

impl Regressors {
    /// How many they are.
    pub fn len(&self) -> usize {
        let of_season = match self.season {
            Season::None => 1,
            Season::Harmonics { n, .. } => 1 + 2 * n,
            Season::Indicators { period } => period,
        };
        of_season + usize::from(self.trend.is_some())
    }

    /// Never: there is a constant at least.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Their values at a time.
    pub fn at(&self, time: i64) -> Vec<f64> {
        let mut b = match self.season {
            Season::None => vec![1.0],
            Season::Harmonics { period, n } => {
                let phase = (time as f64).rem_euclid(period) / period * TAU;
                let waves = (1..=n).flat_map(|k| [(k as f64 * phase).cos(), (k as f64 * phase).sin()]);
                std::iter::once(1.0).chain(waves).collect()
            }
            Season::Indicators { period } => {
                let now = time.rem_euclid(period as i64) as usize;
                (0..period).map(|k| f64::from(u8::from(k == now))).collect()
            }
        };
        b.extend(self.trend.map(|trend| (time as f64 - trend.center) / trend.unit));
        b
    }

    /// Whether a regressor is a level of the columns, which is not shrunk.
    pub(super) fn is_level(&self, k: usize) -> bool {
        match self.season {
            Season::None | Season::Harmonics { .. } => k == 0,
            Season::Indicators { period } => k < period,
        }
    }
}
