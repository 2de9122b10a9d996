//! From numbers to places: scales, ticks, and numbers as words.

/// A number's way to a place between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// Even steps.
    Linear {
        /// Where 0 is.
        from: f64,
        /// Where 1 is.
        to: f64,
    },
    /// Even ratios; both ends above 0.
    Log {
        /// Where 0 is.
        from: f64,
        /// Where 1 is.
        to: f64,
    },
}

/// A place on an axis and what stands there.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// The number.
    pub value: f64,
    /// The number as text; empty where there is no room.
    pub text: String,
}

impl Scale {
    /// Even steps over these numbers, widened to round ends if `round`; a single number gets room around
    /// it, and no number at all the range from 0 to 1.
    pub fn over(values: impl IntoIterator<Item = f64>, round: bool) -> Self {
        let (mut from, mut to) = (f64::INFINITY, f64::NEG_INFINITY);
        for v in values.into_iter().filter(|v| v.is_finite()) {
            (from, to) = (from.min(v), to.max(v));
        }
        if from > to {
            (from, to) = (0.0, 1.0);
        }
        if to - from <= 1e-12 * from.abs().max(to.abs()) || to == from {
            let room = if from == 0.0 { 1.0 } else { 0.1 * from.abs() };
            (from, to) = (from - room, to + room);
        }
        if round {
            let step = step_of(to - from, 5);
            (from, to) = ((from / step).floor() * step, (to / step).ceil() * step);
        }
        Self::Linear { from, to }
    }

    /// Even ratios over the numbers above 0.
    pub fn log_over(values: impl IntoIterator<Item = f64>) -> Self {
        let (mut from, mut to) = (f64::INFINITY, 0.0_f64);
        for v in values.into_iter().filter(|v| v.is_finite() && *v > 0.0) {
            (from, to) = (from.min(v), to.max(v));
        }
        if from > to {
            (from, to) = (0.1, 1.0);
        }
        let (low, high) = (from.log10().floor(), to.log10().ceil());
        Self::Log { from: 10f64.powf(low), to: 10f64.powf(if high > low { high } else { low + 1.0 }) }
    }

    /// Both ends.
    pub fn ends(self) -> (f64, f64) {
        match self {
            Self::Linear { from, to } | Self::Log { from, to } => (from, to),
        }
    }

    /// The place of a number: 0 at the start, 1 at the end.
    ///
    /// ```
    /// use covary_report::scale::Scale;
    /// assert_eq!(Scale::Linear { from: 2.0, to: 4.0 }.place(3.0), 0.5);
    /// assert!((Scale::Log { from: 1.0, to: 100.0 }.place(10.0) - 0.5).abs() < 1e-12);
    /// ```
    pub fn place(self, value: f64) -> f64 {
        match self {
            Self::Linear { from, to } => (value - from) / (to - from),
            Self::Log { from, to } => (value.max(from * 1e-3).ln() - from.ln()) / (to.ln() - from.ln()),
        }
    }

    /// About `wanted` round numbers.
    ///
    /// ```
    /// use covary_report::scale::Scale;
    /// let texts = |scale: Scale| scale.ticks(5).into_iter().map(|t| t.text).collect::<Vec<_>>();
    /// assert_eq!(texts(Scale::Linear { from: -1.0, to: 1.0 }), ["−1.0", "−0.5", "0.0", "0.5", "1.0"]);
    /// assert_eq!(texts(Scale::Linear { from: 0.0, to: 40_000.0 }), ["0", "10k", "20k", "30k", "40k"]);
    /// assert_eq!(texts(Scale::Log { from: 1.0, to: 1000.0 }), ["1", "10", "100", "1000"]);
    /// ```
    pub fn ticks(self, wanted: usize) -> Vec<Tick> {
        match self {
            Self::Linear { from, to } => {
                let step = step_of(to - from, wanted.max(1));
                let (first, last) = ((from / step - 1e-9).ceil() as i64, (to / step + 1e-9).floor() as i64);
                let largest = from.abs().max(to.abs());
                let value = |k: i64| k as f64 * step;
                (first..=last)
                    .map(|k| Tick { value: value(k), text: tick_text(value(k), step, largest) })
                    .collect()
            }
            Self::Log { from, to } => {
                let (low, high) = (from.log10().round() as i32, to.log10().round() as i32);
                let every = ((high - low) as usize / wanted.max(1)).max(1);
                (low..=high).step_by(every).map(|e| Tick { value: 10f64.powi(e), text: power(e) }).collect()
            }
        }
    }
}

/// 1, 2 or 5 times a power of ten, so that about `wanted` of them make `span`.
fn step_of(span: f64, wanted: usize) -> f64 {
    let raw = span / wanted as f64;
    let power = 10f64.powf(raw.log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|f| f * power >= raw * 0.8).unwrap_or(10.0);
    factor * power
}

fn power(exponent: i32) -> String {
    match exponent {
        0..=4 => format!("{}", 10i64.pow(exponent as u32)),
        -3..=-1 => format!("{:.1$}", 10f64.powi(exponent), -exponent as usize),
        _ => {
            let digit = |c: char| match c {
                '-' => '⁻',
                '1' => '¹',
                '2' => '²',
                '3' => '³',
                c => char::from_u32(0x2070 + c as u32 - '0' as u32).unwrap_or(c),
            };
            format!("10{}", exponent.to_string().chars().map(digit).collect::<String>())
        }
    }
}

fn tick_text(value: f64, step: f64, largest: f64) -> String {
    let value = if value.abs() < step * 1e-6 { 0.0 } else { value };
    let (unit, letter) = match largest {
        l if !(1e-4..1e9).contains(&l) => {
            return if value == 0.0 {
                "0".to_owned()
            } else {
                minus(&format!("{value:.1e}").replace(".0e", "e"))
            };
        }
        l if l >= 1e6 => (1e6, "M"),
        l if l >= 1e4 => (1e3, "k"),
        _ => (1.0, ""),
    };
    if value == 0.0 && !letter.is_empty() {
        return "0".to_owned();
    }
    // A letter shortens round numbers only.
    let (unit, letter) = if step < 0.01 * unit { (1.0, "") } else { (unit, letter) };
    // 2.5 needs one digit more than its own power of ten.
    let step = step / unit;
    let mut digits = (-(step * 1.000_001).log10().floor()).max(0.0) as usize;
    let rest = step * 10f64.powi(digits as i32);
    digits += usize::from((rest - rest.round()).abs() > 1e-6);
    minus(&format!("{:.digits$}{letter}", value / unit))
}

/// With the sign that typesetters use.
pub(crate) fn minus(text: &str) -> String {
    text.replace('-', "−")
}

/// A number in a sentence: `digits` of them that count.
///
/// ```
/// use covary_report::scale::number;
/// assert_eq!([number(0.0123, 2), number(-1234.5, 3), number(1.0, 3)], ["0.012", "−1234", "1"]);
/// ```
pub fn number(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return minus(&format!("{value}"));
    }
    let places = digits as i32 - 1 - value.abs().log10().floor() as i32;
    let text = match places {
        ..=-8 | 9.. => return minus(&format!("{value:.*e}", digits.saturating_sub(1))),
        -7..=0 => format!("{value:.0}"),
        _ => format!("{value:.*}", places as usize),
    };
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    minus(text)
}

/// A whole number with thin spaces between thousands.
///
/// ```
/// assert_eq!(covary_report::scale::count(100_000), "100\u{202f}000");
/// assert_eq!(covary_report::scale::count(1234), "1234");
/// ```
pub fn count(n: usize) -> String {
    let digits = n.to_string();
    if digits.len() < 5 {
        return digits;
    }
    let mut out = String::new();
    for (k, c) in digits.chars().enumerate() {
        if k > 0 && (digits.len() - k).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(c);
    }
    out
}

/// `1 row`, `2 rows`.
pub(crate) fn several(n: usize, what: &str) -> String {
    format!("{} {what}{}", count(n), if n == 1 { "" } else { "s" })
}

/// A share as per cent, one digit behind the point.
pub(crate) fn percent(share: f64) -> String {
    minus(&format!("{:.1} %", 100.0 * share))
}

/// `value` to the digits that `sd` leaves meaningful: two of the standard deviation's own.
///
/// ```
/// use covary_report::scale::rounded;
/// assert_eq!([rounded(2.345_67, 0.012), rounded(1065.3, 170.0), rounded(0.5, 2.0)], ["2.346", "1065", "0.5"]);
/// assert_eq!([rounded(1.234e-12, 1e-13), rounded(7.5, 0.0)], ["1.234e-12", "7.5"]);
/// ```
pub fn rounded(value: f64, sd: f64) -> String {
    if sd == 0.0 {
        return value.to_string();
    }
    let last = sd.log10().floor() - 1.0;
    if (-9.0..=0.0).contains(&last) && value.abs() < 1e9 {
        format!("{value:.0$}", -last as usize)
    } else if last.is_finite() && last > 0.0 && value.abs() < 1e9 {
        format!("{value:.0}")
    } else {
        format!("{value:.3e}")
    }
}
