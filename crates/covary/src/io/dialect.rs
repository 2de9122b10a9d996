//! How a text table is written, as far as nobody has said it: what separates its cells, how decimals are written, which
//! lines stand above the table, and whether the first line of the table names the columns. All of it is judged by the
//! first rows; what was assumed is said ([`Note`]), and an option decides each.

use super::csv::number_of;
use super::error::shown;
use super::fields::{Delimiter, Fields, rows, unquoted, without_line_ends};
use super::gaps::Gaps;
use super::{Columns, Error, Layout, Note, ReadOptions};
use std::borrow::Cow;

/// Bytes and rows of the beginning that are looked at.
const SAMPLE: usize = 1 << 18;
const ROWS: usize = 500;

/// How a text table is written.
#[derive(Debug, Clone)]
pub(super) struct Dialect {
    pub(super) delimiter: Delimiter,
    pub(super) decimal_comma: bool,
    /// Rows above the table.
    pub(super) above: usize,
    /// Whether the first row of the table names the columns.
    pub(super) header: bool,
    /// Whether the names begin with the second column.
    pub(super) short_header: bool,
    pub(super) notes: Vec<Note>,
}

/// A cell of the sample.
#[derive(Clone)]
struct Cell<'a> {
    text: Cow<'a, [u8]>,
    quoted: bool,
}

impl Cell<'_> {
    fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}

/// The first rows, cut at a delimiter.
type Sample<'a> = Vec<Vec<Cell<'a>>>;

/// Judges the text from `from` on.
pub(super) fn recognize(
    bytes: &[u8],
    from: usize,
    layout: Layout,
    options: &ReadOptions,
) -> Result<Dialect, Error> {
    let gaps = Gaps::new(&options.gaps);
    let beginning = beginning(&bytes[from..]);
    let given = match (options.delimiter, layout) {
        (Some(delimiter), _) => Some(delimiter),
        (None, Layout::Tsv) => Some(Delimiter::Character(b'\t')),
        (None, _) => None,
    };
    if let Some(Delimiter::Character(of)) = given {
        if !of.is_ascii() || matches!(of, b'"' | b'\r' | b'\n' | 0) {
            return Err(Error::BadDelimiter { delimiter: shown(&[of]) });
        }
        if options.decimal_comma == Some(true) && of == b',' {
            return Err(Error::BadDelimiter { delimiter: "`,` with a decimal comma".to_owned() });
        }
    }
    let comma = options.decimal_comma != Some(true);
    let delimiter = given.or_else(|| delimiter_of(beginning, comma, &gaps));
    let usual = Delimiter::Character(if comma { b',' } else { b';' });
    let delimiter = delimiter.unwrap_or(usual);
    let mut sample = cut(beginning, delimiter);
    let mut notes = Vec::new();

    let decimals = decimals(&sample, &gaps);
    let decimal_comma = options.decimal_comma.unwrap_or(delimiter != Delimiter::COMMA && decimals.comma);
    let found = given.is_none() && delimiter != usual;
    if found || (options.decimal_comma.is_none() && decimal_comma) {
        notes.push(Note::Delimiter { delimiter, decimal_comma });
    }
    if decimal_comma && options.decimal_comma.is_none() {
        notes.extend(decimals.thousands.map(|text| Note::Thousands { text }));
    }

    let above = options.skip.unwrap_or_else(|| above(&sample, decimal_comma, &gaps)).min(sample.len());
    if above > 0 && options.skip.is_none() {
        let first = sample[0].iter().find(|cell| !cell.is_empty());
        let text = first.map_or_else(String::new, |cell| shown(&cell.text));
        notes.push(Note::Above { n_lines: above, text });
    }
    sample.drain(..above);
    let is_model = names_of_model(&sample, options);
    let header = options.header.unwrap_or_else(|| is_model || has_header(&sample, decimal_comma, &gaps));
    let is_numeric = |cell: &Cell<'_>| cell.is_empty() || number(cell, decimal_comma, &gaps).is_some_and(|v| !v.is_nan());
    let numeric = sample.first().is_some_and(|first| {
        first.iter().all(is_numeric) && first.iter().any(|cell| !cell.is_empty()) && sample.len() > 1
    });
    if options.header.is_none() && !is_model {
        match header {
            false => notes.push(Note::NoHeader),
            true if numeric => notes.push(Note::NumericHeader),
            true => {}
        }
    }
    let short_header = header && is_short(&sample);
    if short_header {
        notes.push(Note::ShortHeader);
    }
    Ok(Dialect { delimiter, decimal_comma, above, header, short_header, notes })
}

/// Whole lines at the beginning.
fn beginning(bytes: &[u8]) -> &[u8] {
    match bytes.get(..SAMPLE) {
        None => bytes,
        Some(part) => {
            let end = part.iter().rposition(|b| matches!(b, b'\n' | b'\r'));
            end.map_or(part, |end| &part[..end])
        }
    }
}

fn cut(text: &[u8], delimiter: Delimiter) -> Sample<'_> {
    let found = rows(text, 0, delimiter, ROWS + 1);
    let mut starts = found.starts;
    // Of a row that the sample ends in nothing is known, and the last one is only where that before it ends.
    let end = match (found.unclosed, starts.len()) {
        (None, n) if n <= ROWS => text.len(),
        _ => starts.pop().unwrap_or(text.len()),
    };
    let ends = starts.iter().skip(1).copied().chain([end]);
    let cell = |raw| {
        let text = match unquoted(raw) {
            Cow::Borrowed(text) => Cow::Borrowed(text.trim_ascii()),
            Cow::Owned(text) => Cow::Owned(text.trim_ascii().to_vec()),
        };
        Cell { text, quoted: raw.first() == Some(&b'"') }
    };
    let row = |(&start, end): (&usize, usize)| {
        let row = without_line_ends(&text[start..end]);
        Fields::new(row, delimiter).map(|field| cell(&row[field])).collect()
    };
    starts.iter().zip(ends).map(row).collect()
}

/// The number in a cell, NaN for a gap.
fn number(cell: &Cell<'_>, decimal_comma: bool, gaps: &Gaps) -> Option<f64> {
    number_of(&cell.text, decimal_comma, gaps)
}

/// How many cells most rows have.
fn usual_length(sample: &Sample<'_>) -> usize {
    let mut lengths: Vec<usize> = sample.iter().map(Vec::len).collect();
    lengths.sort_unstable();
    let longest = lengths.chunk_by(|a, b| a == b).max_by_key(|same| (same.len(), same[0]));
    longest.map_or(0, |same| same[0])
}

/// The delimiter that cuts the rows into equally many cells, most of them numbers; none if none cuts them.
///
/// ```text
/// score = (share of rows of the usual length) · (share of numbers among the cells of these rows that are not empty)
/// ```
fn delimiter_of(text: &[u8], comma: bool, gaps: &Gaps) -> Option<Delimiter> {
    let candidates = [b',', b'\t', b';', b'|'].map(Delimiter::Character);
    let score = |delimiter: Delimiter| -> f64 {
        let sample = cut(text, delimiter);
        let usual = usual_length(&sample);
        if usual < 2 {
            return 0.0;
        }
        let alike: Vec<&Vec<Cell<'_>>> = sample.iter().filter(|row| row.len() == usual).collect();
        let cells = || alike.iter().skip(1).flat_map(|row| row.iter()).filter(|cell| !cell.is_empty());
        let is_number = |cell: &&Cell<'_>| {
            number(cell, false, gaps).is_some()
                || (delimiter != Delimiter::COMMA && number(cell, true, gaps).is_some())
        };
        let share = cells().filter(is_number).count() as f64 / cells().count().max(1) as f64;
        alike.len() as f64 / sample.len() as f64 * share
    };
    let best = |among: &[Delimiter]| {
        let scores = among.iter().map(|&delimiter| (delimiter, score(delimiter)));
        scores.fold(None, |best: Option<(Delimiter, f64)>, (delimiter, score)| match best {
            Some((_, highest)) if highest >= score => best,
            _ if score > 0.0 => Some((delimiter, score)),
            _ => best,
        })
    };
    let found = best(if comma { &candidates } else { &candidates[1..] });
    // Blanks are often within cells: they separate them where nothing else does.
    found.or_else(|| best(&[Delimiter::Blanks])).map(|(delimiter, _)| delimiter)
}

/// How decimals are written.
struct Decimals {
    comma: bool,
    /// A number such as 1,234, where all numbers with a comma are like it.
    thousands: Option<String>,
}

fn decimals(sample: &Sample<'_>, gaps: &Gaps) -> Decimals {
    let (mut commas, mut points, mut thousands) = (0, 0, 0);
    let mut example = None;
    for cell in sample.iter().flatten() {
        if number(cell, false, gaps).is_some() {
            points += usize::from(cell.text.contains(&b'.'));
        } else if number(cell, true, gaps).is_some() {
            commas += 1;
            let at = cell.text.iter().position(|&b| b == b',').unwrap_or(0);
            let whole = cell.text[..at].iter().filter(|b| b.is_ascii_digit()).count();
            let digits = &cell.text[at + 1..];
            if (1..=3).contains(&whole) && digits.len() == 3 && digits.iter().all(u8::is_ascii_digit) {
                thousands += 1;
                example.get_or_insert_with(|| shown(&cell.text));
            }
        }
    }
    Decimals { comma: commas > points, thousands: example.filter(|_| thousands == commas) }
}

/// Rows above the table: a title is one cell, and not a number. Where rows have two cells, and for a row of several, the
/// row below must be a header without a number: two names above three numbers are a slip, and `x` above `1,5` one column.
fn above(sample: &Sample<'_>, decimal_comma: bool, gaps: &Gaps) -> usize {
    let usual = usual_length(sample);
    if usual < 2 {
        return 0;
    }
    let is_text = |cell: &Cell<'_>| number(cell, decimal_comma, gaps).is_none();
    let is_title = |row: &Vec<Cell<'_>>| {
        let mut filled = row.iter().filter(|cell| !cell.is_empty());
        filled.next().is_some_and(is_text) && (filled.next().is_none() || row[0].text.starts_with(b"#"))
    };
    let n = sample.iter().take_while(|row| row.len() < usual || is_title(row)).count();
    let Some(below) = sample.get(n) else { return 0 };
    let sure = usual > 2 && sample[..n].iter().all(is_title);
    if sure || below.iter().all(is_text) { n } else { 0 }
}

/// Whether the first row has the names that a model needs.
fn names_of_model(sample: &Sample<'_>, options: &ReadOptions) -> bool {
    let Columns::OfModel { needed, .. } = &options.choice.columns else { return false };
    let Some(first) = sample.first() else { return false };
    needed.iter().all(|name| first.iter().any(|cell| *cell.text == *name.as_bytes()))
}

/// Whether the first row names the columns. It does not if above every column of numbers it has a number or a gap, at
/// least one number, and if these numbers are like those below (within the range of their column, widened by that range on
/// either side, for at least half of them). Numbers that count (1, 2, 3, …; 2010, 2015, …; years), where the next row does
/// not, and numbers that are quoted where those below are not, are names.
fn has_header(sample: &Sample<'_>, decimal_comma: bool, gaps: &Gaps) -> bool {
    let [first, rest @ ..] = &sample[..] else { return true };
    let rest: Vec<&Vec<Cell<'_>>> = rest.iter().filter(|row| row.len() == first.len()).collect();
    let Some(second) = rest.first() else { return true };
    let value = |cell: &Cell<'_>| number(cell, decimal_comma, gaps);
    let (mut heads, mut next, mut alike) = (Vec::new(), Vec::new(), 0);
    let mut quoted = true;
    for (j, head) in first.iter().enumerate() {
        let below: Option<Vec<f64>> = rest.iter().map(|row| value(&row[j])).collect();
        let Some(below) = below else { continue };
        let below: Vec<f64> = below.into_iter().filter(|v| !v.is_nan()).collect();
        let low = below.iter().copied().fold(f64::INFINITY, f64::min);
        let high = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if below.is_empty() {
            continue;
        }
        match value(head) {
            // A name above numbers.
            None => return true,
            Some(gap) if gap.is_nan() => {}
            Some(number) => {
                heads.push(number);
                next.extend(value(&second[j]).filter(|v| !v.is_nan()));
                // One other value says little of the range.
                let range = if below.len() < 3 { (high - low).max(high.abs().max(low.abs())) } else { high - low };
                alike += usize::from((low - range..=high + range).contains(&number));
                quoted &= head.quoted && !second[j].quoted;
            }
        }
    }
    heads.is_empty() || quoted || (counts(&heads) && !counts(&next)) || 2 * alike < heads.len()
}

/// Whether numbers count: whole numbers in equal steps, or years in ascending order.
fn counts(numbers: &[f64]) -> bool {
    let steps: Vec<f64> = numbers.windows(2).map(|w| w[1] - w[0]).collect();
    let whole = numbers.iter().all(|v| v.fract() == 0.0);
    let equal = numbers.len() > 2 && steps[0] > 0.0 && steps.iter().all(|&step| step == steps[0]);
    let years = numbers.len() > 1
        && numbers.iter().all(|v| (1800.0..=2100.0).contains(v))
        && steps.iter().all(|&step| step > 0.0);
    whole && (equal || years)
}

/// Whether every row has one cell more than the header, as R writes tables with names of rows: those are distinct, and the
/// last cells are not all empty, as they would be behind a delimiter too many.
fn is_short(sample: &Sample<'_>) -> bool {
    let [header, rest @ ..] = &sample[..] else { return false };
    let labels: std::collections::HashSet<&[u8]> =
        rest.iter().filter_map(|row| row.first()).map(|cell| &*cell.text).collect();
    header.len() > 1
        && rest.len() > 1
        && rest.iter().all(|row| row.len() == header.len() + 1)
        && labels.len() == rest.len()
        && rest.iter().any(|row| row.last().is_some_and(|cell| !cell.is_empty()))
}
