//! What counts as a gap.

/// Texts and numbers that mean "not known" besides the usual ones.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Gaps {
    words: Vec<String>,
    numbers: Vec<f64>,
}

impl Gaps {
    /// Each word in any case; one that reads as a number means that number, however it is written.
    pub(super) fn new(words: &[String]) -> Self {
        let numbers = words.iter().filter_map(|w| w.trim().parse().ok()).collect();
        Self { words: words.iter().map(|w| w.trim().to_owned()).collect(), numbers }
    }

    /// Whether a cell, without quotes and surrounding spaces, is a gap.
    pub(super) fn holds(&self, cell: &[u8]) -> bool {
        const USUAL: [&str; 8] = ["", "NA", "NaN", "null", "N/A", "#N/A", "<NA>", "None"];
        let mut words = USUAL.iter().copied().chain(self.words.iter().map(String::as_str));
        words.any(|word| cell.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// Whether no number stands for a gap.
    #[cfg(feature = "arrow")]
    pub(super) fn no_numbers(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The number, or NaN if it stands for a gap.
    #[inline]
    pub(super) fn number(&self, value: f64) -> f64 {
        if self.numbers.contains(&value) { f64::NAN } else { value }
    }
}
