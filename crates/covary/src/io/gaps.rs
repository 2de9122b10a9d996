//! What counts as a gap.

/// Texts and numbers that mean "not known", besides the usual ones.
///
/// ```
/// let gaps = covary::io::Gaps::new(&["?".to_owned(), "-99".to_owned()]);
/// assert!(["", "na", " None ", "?", "-99.0"].iter().all(|cell| gaps.is_gap(cell)));
/// assert!(!gaps.is_gap("none at all"));
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gaps {
    words: Vec<String>,
    numbers: Vec<f64>,
}

impl Gaps {
    /// Each word in any case; one that reads as a number means that number, however it is written.
    pub fn new(words: &[String]) -> Self {
        let numbers = words.iter().filter_map(|w| w.trim().parse().ok()).collect();
        Self { words: words.iter().map(|w| w.trim().to_owned()).collect(), numbers }
    }

    /// Whether a cell of any column means a gap.
    pub fn is_gap(&self, cell: &str) -> bool {
        let cell = cell.trim();
        self.holds(cell.as_bytes()) || cell.parse().is_ok_and(|value| self.number(value).is_nan())
    }

    /// Whether a cell, without quotes and surrounding spaces, is a gap.
    pub(super) fn holds(&self, cell: &[u8]) -> bool {
        const USUAL: [&str; 8] = ["", "NA", "NaN", "null", "N/A", "#N/A", "<NA>", "None"];
        let mut words = USUAL.iter().copied().chain(self.words.iter().map(String::as_str));
        words.any(|word| cell.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// Whether no number stands for a gap.
    #[cfg(any(feature = "arrow", feature = "npy"))]
    pub(super) fn no_numbers(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The number, or NaN if it stands for a gap.
    #[inline]
    pub(super) fn number(&self, value: f64) -> f64 {
        if self.numbers.contains(&value) { f64::NAN } else { value }
    }
}
