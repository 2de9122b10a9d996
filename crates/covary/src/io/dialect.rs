//! How a text table is written, as far as nobody has said it: what separates its cells, how decimals are written, which
//! lines precede the table, and whether the first line of the table names the columns. All of it is judged by the
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
    let decimal_comma = options.decimal_comma.unwrap_or(match delimiter {
        // Between commas a decimal comma stands in quotes, and so do the commas of thousands.
        Delimiter::COMMA => decimals.are_usual && decimals.thousands.is_none(),
        _ => decimals.comma,
    });
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
    let is_numeric =
        |cell: &Cell<'_>| cell.is_empty() || number(cell, decimal_comma, &gaps).is_some_and(|v| !v.is_nan());
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
    let of = Delimiter::Character;
    let candidates = [Delimiter::COMMA, of(b'\t'), of(b';'), of(b'|'), Delimiter::Blanks];
    let score = |delimiter: Delimiter| -> f64 {
        let sample = cut(text, delimiter);
        let usual = usual_length(&sample);
        if usual < 2 {
            return 0.0;
        }
        let is_number = |cell: &Cell<'_>| {
            number(cell, false, gaps).is_some()
                || (delimiter != Delimiter::COMMA && number(cell, true, gaps).is_some())
        };
        // A title with the delimiters of a row of the table is none: the names of columns come below it.
        let of_table = |row: &&Vec<Cell<'_>>| row.len() == usual && !is_title(row, |cell| !is_number(cell));
        let alike: Vec<&Vec<Cell<'_>>> = sample.iter().filter(of_table).collect();
        let cells = || alike.iter().skip(1).flat_map(|row| row.iter()).filter(|cell| !cell.is_empty());
        let share = cells().filter(|cell| is_number(cell)).count() as f64 / cells().count().max(1) as f64;
        alike.len() as f64 / sample.len() as f64 * share
    };
    // Of equals the first is taken.
    let mut best = (None, 0.0);
    for &delimiter in &candidates[usize::from(!comma)..] {
        let score = score(delimiter);
        if score > best.1 {
            best = (Some(delimiter), score);
        }
    }
    best.0
}

/// How decimals are written.
struct Decimals {
    comma: bool,
    /// Whether at least three numbers, and a third of all, have a comma and none a point.
    are_usual: bool,
    /// A number such as 1,234, where all numbers with a comma are like it.
    thousands: Option<String>,
}

fn decimals(sample: &Sample<'_>, gaps: &Gaps) -> Decimals {
    let (mut commas, mut points, mut thousands, mut numbers) = (0, 0, 0, 0);
    let mut example = None;
    for cell in sample.iter().flatten() {
        if let Some(value) = number(cell, false, gaps) {
            numbers += usize::from(!value.is_nan());
            points += usize::from(cell.text.contains(&b'.'));
        } else if number(cell, true, gaps).is_some() {
            commas += 1;
            let at = cell.text.iter().position(|&b| b == b',').unwrap_or(0);
            let whole = cell.text[..at].trim_ascii_start().strip_prefix(b"-").unwrap_or(&cell.text[..at]);
            let digits = &cell.text[at + 1..];
            let all_digits = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
            let (short, zero) = ((1..=3).contains(&whole.len()), whole.starts_with(b"0"));
            if short && !zero && all_digits(whole) && digits.len() == 3 && all_digits(digits) {
                thousands += 1;
                example.get_or_insert_with(|| shown(&cell.text));
            }
        }
    }
    let are_usual = commas > 2 && points == 0 && 2 * commas >= numbers;
    Decimals { comma: commas > points, are_usual, thousands: example.filter(|_| thousands == commas) }
}

/// Whether one cell of the row is filled, and that with text.
fn is_title(row: &[Cell<'_>], is_text: impl Fn(&Cell<'_>) -> bool) -> bool {
    let mut filled = row.iter().filter(|cell| !cell.is_empty());
    filled.next().is_some_and(is_text) && filled.next().is_none()
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
        is_title(row, is_text)
            || (row[0].text.starts_with(b"#") && row.iter().find(|c| !c.is_empty()).is_some_and(is_text))
    };
    let n = sample.iter().take_while(|row| row.len() < usual || is_title(row)).count();
    let Some(below) = sample.get(n) else { return 0 };
    let sure = usual > 2 && sample[..n].iter().all(is_title) && below.iter().any(is_text);
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
                let range =
                    if below.len() < 3 { (high - low).max(high.abs().max(low.abs())) } else { high - low };
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

#[cfg(test)]
mod tests {
    use super::super::{Delimiter, Format, Input, Note, Pattern, ReadOptions, Table, csv, read};
    use proptest::prelude::*;

    fn table(text: &str) -> Table {
        csv::read(text.as_bytes()).expect("a table")
    }

    fn rewritten(table: &Table) -> Vec<u8> {
        let mut out = Vec::new();
        table.write_filled(table.dataset().values(), Format::CSV, &mut out).expect("memory takes all");
        out
    }

    /// What is assumed of a text, and how many rows it has then.
    #[track_caller]
    fn check(text: &str, n_rows: usize, notes: &[Note]) {
        let found = table(text);
        assert_eq!((found.n_rows(), found.notes()), (n_rows, notes), "{text}");
        assert_eq!(rewritten(&found), text.as_bytes());
    }

    const ROWS: &str = "2.5,11,3\n4.25,12,1\n3.5,17,2\n";

    #[test]
    fn a_first_row_like_the_others_is_a_row() {
        check(ROWS, 3, &[Note::NoHeader]);
        assert_eq!(table(ROWS).column_names(), ["x1", "x2", "x3"]);
        check(&format!(",{ROWS}").replacen("2.5,", "", 1), 3, &[Note::NoHeader]);
        check("5.1,3.5,a\n4.9,3.0,a\n4.7,3.2,b\n", 3, &[Note::NoHeader]);
        check("1,2,3\n4,5,6\n7,8,9\n", 3, &[Note::NoHeader]);
        check("1,2\n3,4\n", 2, &[Note::NoHeader]);
    }

    #[test]
    fn names_are_names_even_if_they_are_numbers() {
        check(&format!("a,b,c\n{ROWS}"), 3, &[]);
        // Numbers that count, years, what pandas writes, quotes, and numbers unlike those below.
        check(&format!("1,2,3\n{ROWS}"), 3, &[Note::NumericHeader]);
        check(&format!("2001,2004,2010\n{ROWS}"), 3, &[Note::NumericHeader]);
        check("country,2010,2011\nA,5.5,6\nB,7,8\n", 2, &[]);
        check(",0,1,2\n0,2.5,11,3\n1,4.25,12,1\n", 2, &[Note::NumericHeader]);
        check(&format!("\"4\",\"12\",\"3\"\n{ROWS}"), 3, &[Note::NumericHeader]);
        check(&format!("1001,2017,3055\n{ROWS}"), 3, &[Note::NumericHeader]);
        check("Na,K\n1,2\n3,4\n", 2, &[]);
    }

    #[test]
    fn an_option_decides_about_the_header() {
        let with = |text: &str, header| {
            let options = ReadOptions { header: Some(header), ..Default::default() };
            read(Input::Stream(text.as_bytes()), Format::CSV, &options).expect("a table")
        };
        assert_eq!(with(ROWS, true).column_names(), ["2.5", "11", "3"]);
        let text = format!("1,2,3\n{ROWS}");
        assert_eq!((with(&text, false).n_rows(), with(&text, false).notes().len()), (4, 0));
        let named = ReadOptions { header: Some(false), ..Default::default() };
        let text = format!("a,b,c\n{ROWS}");
        // A name is text among numbers then.
        assert!(read(Input::Stream(text.as_bytes()), Format::CSV, &named).is_err());
    }

    #[test]
    fn delimiters_and_decimals_are_those_of_the_text() {
        let said = |delimiter, decimal_comma| Note::Delimiter { delimiter, decimal_comma };
        let of = Delimiter::Character;
        check("a;b\n1,5;2\n2,5;3,25\n", 2, &[said(of(b';'), true)]);
        check("a;b\n1.5;2\n2.5;3.25\n", 2, &[said(of(b';'), false)]);
        check("a\tb\n1\t2\n2\t3\n", 2, &[said(of(b'\t'), false)]);
        check("a|b\n1|2\n2|3\n", 2, &[said(of(b'|'), false)]);
        check("1,5;2,5\n2,25;3,5\n2;3\n", 3, &[said(of(b';'), true), Note::NoHeader]);
        check("  a   b\n 1.5  NA\n\n 2 \t 3.25  \n", 2, &[said(Delimiter::Blanks, false)]);
        check("\"a b\" c\n1 2\n2 3\n", 2, &[said(Delimiter::Blanks, false)]);
        // Between commas decimal commas stand in quotes.
        check("a,b\n\"1,5\",2\n\"2,25\",3\n\"2,5\",1\n", 3, &[said(Delimiter::COMMA, true)]);
        check("a,b\nx,2\n\"4,5\",3\n,1\n", 3, &[]);
        // Other characters in text are text.
        check("a,b\nx;y,2\nz;w,3\n", 2, &[]);
        check("city,b\nNew York,2\nLos Angeles,3\n", 2, &[]);
        let thousands = table("a;b\n1,234;5\n2,345;6\n");
        assert!(matches!(&thousands.notes()[1], Note::Thousands { text } if text == "1,234"));
        assert!(thousands.notes()[1].is_warning());
        assert_eq!(table("a;b\n0,234;5\n2,345;6\n").notes().len(), 1);
    }

    #[test]
    fn a_filled_cell_is_written_like_the_others() {
        let fill = |text: &str| {
            let found = table(text);
            let values = crate::Matrix::from_fn(found.n_rows(), 2, |i, j| {
                let value = found.dataset().row(i)[j];
                if value.is_nan() { 0.25 } else { value }
            });
            let mut out = Vec::new();
            found.write_filled(&values, Format::CSV, &mut out).expect("memory takes all");
            String::from_utf8(out).expect("UTF-8")
        };
        assert_eq!(fill("a;b\n1,5;\n2,5;3\n"), "a;b\n1,5;0,25\n2,5;3\n");
        let quoted = "a,b\n\"1,5\",3\n\"2,5\",3\n\"2,5\",";
        assert_eq!(fill(&format!("{quoted}\n")), format!("{quoted}\"0,25\"\n"));
        assert_eq!(fill("a  b\n1.5  NA\n2.5  3\n"), "a  b\n1.5  0.25\n2.5  3\n");
        assert_eq!(fill("1.5,\n2.5,3\n2,4\n"), "1.5,0.25\n2.5,3\n2,4\n");
    }

    #[test]
    fn what_stands_above_the_table_is_not_part_of_it() {
        let above = |n_lines, text: &str| Note::Above { n_lines, text: text.to_owned() };
        let body = format!("a,b,c\n{ROWS}");
        check(&format!("Table 1,,\n\n{body}"), 3, &[above(1, "Table 1")]);
        check(&format!("Table 1\nfrom 2020\n{body}"), 3, &[above(2, "Table 1")]);
        check(&format!("# by X, on a day\n{body}"), 3, &[above(1, "# by X")]);
        check("Title\na,b\n1,2\n3,4\n", 2, &[above(1, "Title")]);
        // One column of decimal commas, a column without a name, and a slip are no titles.
        assert!(csv::read("x\n1,5\n2,5\n".as_bytes()).is_err());
        check(",b\nr,2\ns,4\n", 2, &[]);
        assert!(csv::read("x,y\n1,2,3,4\n5,6,7,8\n".as_bytes()).is_err());
        let options = ReadOptions { skip: Some(0), ..Default::default() };
        assert!(read(Input::Stream("Title,,\na,b,c\n1,2,3\n".as_bytes()), Format::CSV, &options).is_err());
    }

    #[test]
    fn row_names_as_r_writes_them() {
        check("\"a\",\"b\"\n\"r1\",1,2\n\"r2\",3,4\n", 2, &[Note::ShortHeader]);
        assert_eq!(table("a,b\nr1,1,2\nr2,3,4\n").column_names(), ["", "a", "b"]);
        // A delimiter too many is a slip.
        assert!(csv::read("a,b\n1,2,\n3,4,\n".as_bytes()).is_err());
    }

    #[test]
    fn numbers_that_label_rows_are_named() {
        let rows = |f: &dyn Fn(usize) -> String| -> String { (0..12).map(|i| f(i) + "\n").collect() };
        let found = |text: &str| match table(text).identifiers() {
            Some(Note::Identifiers { columns }) => columns,
            _ => Vec::new(),
        };
        let text = rows(&|i| {
            format!("{:05},{},{},{},{}", 37 * i % 50, 20_240_101 + i, i + 1, 3 * i * i + 7, i * 5 % 7)
        });
        let named = |name: &str, pattern| (name.to_owned(), pattern);
        assert_eq!(
            found(&format!("zip,day,row,id,x\n{text}")),
            [
                named("zip", Pattern::LeadingZeros),
                named("day", Pattern::Dates),
                named("row", Pattern::RowNumbers),
                named("id", Pattern::Ascending),
            ]
        );
        // Measurements: decimals, zeros, counts, a gap, a month 13.
        let text = rows(&|i| {
            format!(
                "{}.5,0.{i},{},{},{}",
                i,
                i * 5 % 7,
                if i == 3 { String::new() } else { i.to_string() },
                20_241_301 + i
            )
        });
        assert_eq!(found(&format!("a,b,c,d,e\n{text}")), [named("e", Pattern::Ascending)]);
        // Who asks for a column knows it.
        let choice = super::super::ColumnChoice {
            columns: super::super::Columns::Listed(vec!["row".to_owned()]),
            ..Default::default()
        };
        let options = ReadOptions { choice, ..Default::default() };
        let text = format!("row\n{}", rows(&|i| (i + 1).to_string()));
        let asked = read(Input::Stream(text.as_bytes()), Format::CSV, &options).expect("a table");
        assert_eq!(asked.identifiers(), None);
    }

    /// By blanks the last row of this table would be a blank line.
    #[test]
    fn a_row_of_gaps_below_a_title_is_cut_at_tabs() {
        let text = "A title\t\t\na\tb\tc\n1\t2\t3\n4\t1\t6\n2\t2\t5\n\t\t\n";
        let found = table(text);
        assert_eq!((found.n_rows(), found.n_columns()), (4, 3));
        assert_eq!(found.column_names(), ["a", "b", "c"]);
    }

    proptest! {
        #[test]
        fn any_delimiter_decimal_sign_and_header_is_recognized(
            cells in prop::collection::vec(prop::option::weighted(0.9, 1000_u32..2000), 8..40),
            n_columns in 2..5_usize,
            delimiter in prop::sample::select(vec![",", ";", "\t", "|", "   "]),
            comma: bool,
            header: bool,
            title: bool,
            line_end in prop::sample::select(vec!["\n", "\r\n"]),
        ) {
            let comma = comma && delimiter != ",";
            let title = title && header && n_columns > 2 && delimiter != "   ";
            // The range of every column is known: the first two rows below the first span it.
            let mut rows: Vec<Vec<Option<u32>>> = cells.chunks_exact(n_columns).map(<[_]>::to_vec).collect();
            rows[0][0] = Some(1234);
            rows.splice(1..1, [vec![Some(1025); n_columns], vec![Some(1975); n_columns]]);
            let gap = if delimiter == "   " { "NA" } else { "" };
            let cell = |cell: &Option<u32>| cell.map_or(gap.to_owned(), |v| {
                format!("{}{}{:02}", v / 100, if comma { "," } else { "." }, v % 100)
            });
            let mut text = String::new();
            if title {
                text += &["A title", &delimiter.repeat(n_columns - 1), line_end].concat();
            }
            if header {
                let names: Vec<String> = (0..n_columns).map(|j| format!("name{j}")).collect();
                text += &(names.join(delimiter) + line_end);
            }
            for row in &rows {
                text += &(row.iter().map(cell).collect::<Vec<_>>().join(delimiter) + line_end);
            }
            let found = table(&text);
            prop_assert_eq!((found.n_rows(), found.n_columns()), (rows.len(), n_columns));
            let name = if header { "name0" } else { "x1" };
            prop_assert_eq!(&found.column_names()[0], name);
            for (i, row) in rows.iter().enumerate() {
                for (j, value) in row.iter().enumerate() {
                    let value = value.map_or(f64::NAN, |v| format!("{}.{:02}", v / 100, v % 100).parse().expect("a number"));
                    prop_assert_eq!(found.dataset().row(i)[j].to_bits() == value.to_bits(), true);
                }
            }
            prop_assert_eq!(rewritten(&found), text.as_bytes());
        }
    }
}
