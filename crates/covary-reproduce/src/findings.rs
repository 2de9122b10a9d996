//! What was found: charts, and tables of `paper / ours / difference`.

use covary_report::chart::{Chart, fixed};
use serde::{Deserialize, Serialize};

/// What making an exhibit gave.
#[derive(Debug, Default)]
pub struct Findings {
    /// The figures; their numbers are kept with them.
    pub charts: Vec<Chart>,
    /// The comparisons.
    pub tables: Vec<Comparison>,
    /// What else the reader must know.
    pub notes: Vec<String>,
}

/// Rows that are compared with one source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// What is compared.
    pub title: String,
    /// Whose numbers stand beside ours: `paper`, or another reference.
    pub against: String,
    /// The rows.
    pub rows: Vec<Row>,
}

impl Comparison {
    /// With the paper.
    pub fn with_paper(title: &str, rows: Vec<Row>) -> Self {
        Self { title: title.to_owned(), against: "paper".to_owned(), rows }
    }

    /// With another reference.
    pub fn with(against: &str, title: &str, rows: Vec<Row>) -> Self {
        Self { title: title.to_owned(), against: against.to_owned(), rows }
    }
}

/// A quantity, what the paper has, what we have, and by how much they differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What is compared.
    pub quantity: String,
    /// What the paper prints, shows or claims.
    pub paper: String,
    /// What we found.
    pub ours: String,
    /// Ours less the paper's, or `agrees` or `differs` for a claim in words.
    pub difference: String,
    /// Whether they agree as far as the paper's digits, or its figure, allow to say.
    pub agrees: bool,
    /// Why they differ, if they do.
    pub why: Option<String>,
    /// The same for each of several methods or tables: a column for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

/// What one method, or one table, has of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// What the paper has of it.
    pub paper: String,
    /// What we found.
    pub ours: String,
    /// Whether they agree.
    pub agrees: bool,
}

impl Part {
    /// In this order.
    pub fn new(name: &str, paper: &str, ours: &str, agrees: bool) -> Self {
        Self { name: name.to_owned(), paper: paper.to_owned(), ours: ours.to_owned(), agrees }
    }

    /// Ours, and whether it differs; the other is said once for all rows where it is the same.
    pub(crate) fn cell(&self, with_paper: bool) -> String {
        let differs = if self.agrees { "" } else { " ≠" };
        if with_paper {
            format!("{}{differs} ({})", self.ours, self.paper)
        } else {
            format!("{}{differs}", self.ours)
        }
    }
}

impl Row {
    /// A number of the text, with the digits printed: ours agrees if it rounds to the same.
    ///
    /// ```
    /// use covary_reproduce::Row;
    /// assert!(Row::printed("log-likelihood", "-121.5", -121.487).agrees);
    /// assert_eq!(Row::printed("log-likelihood", "-123.8", -124.4925).difference, "−0.69");
    /// ```
    pub fn printed(quantity: &str, paper: &str, ours: f64) -> Self {
        let digits = paper.split_once('.').map_or(0, |(_, behind)| behind.len());
        let value: f64 = paper.parse().unwrap_or(f64::NAN);
        let half = 0.5 * 0.1_f64.powi(digits as i32);
        let paper = fixed(value, digits);
        // A count has no digits behind the point.
        let shown = if digits == 0 && ours.fract() == 0.0 { 0 } else { digits + 1 };
        Self::numbers(quantity, &paper, (value, half * (1.0 + 1e-9)), (ours, shown))
    }

    /// A number read off a figure, known to `give_or_take`.
    pub fn read_off(quantity: &str, paper: f64, give_or_take: f64, ours: f64, digits: usize) -> Self {
        let words = format!("{} ± {} (read off)", fixed(paper, digits), fixed(give_or_take, digits));
        Self::numbers(quantity, &words, (paper, give_or_take), (ours, digits))
    }

    /// A reference that is itself uncertain: ours agrees within `give_or_take`.
    pub fn reference(quantity: &str, reference: f64, give_or_take: f64, ours: f64, digits: usize) -> Self {
        let words = format!("{} ± {}", fixed(reference, digits), fixed(give_or_take, digits));
        Self::numbers(quantity, &words, (reference, give_or_take), (ours, digits))
    }

    fn numbers(quantity: &str, words: &str, paper: (f64, f64), (ours, digits): (f64, usize)) -> Self {
        Self {
            quantity: quantity.to_owned(),
            paper: words.to_owned(),
            ours: fixed(ours, digits),
            difference: fixed(ours - paper.0, digits),
            agrees: (ours - paper.0).abs() <= paper.1,
            why: None,
            parts: Vec::new(),
        }
    }

    /// A claim in words, and whether it holds of our numbers.
    pub fn claim(quantity: &str, paper: &str, ours: &str, holds: bool) -> Self {
        Self {
            quantity: quantity.to_owned(),
            paper: paper.to_owned(),
            ours: ours.to_owned(),
            difference: if holds { "agrees" } else { "differs" }.to_owned(),
            agrees: holds,
            why: None,
            parts: Vec::new(),
        }
    }

    /// Several methods, or tables, each in a column of its own; the row agrees where all of them do.
    pub fn of_parts(quantity: &str, parts: Vec<Part>) -> Self {
        let joined = |of: fn(&Part) -> &String| {
            parts.iter().map(|part| format!("{} {}", part.name, of(part))).collect::<Vec<_>>().join("; ")
        };
        let holds = parts.iter().all(|part| part.agrees);
        let claim = Self::claim(quantity, &joined(|p| &p.paper), &joined(|p| &p.ours), holds);
        Self { parts, ..claim }
    }

    /// Why they differ; nothing if they do not.
    #[must_use]
    pub fn why(mut self, why: &str) -> Self {
        self.why = (!self.agrees).then(|| why.to_owned());
        self
    }
}
