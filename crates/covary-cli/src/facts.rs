//! What came in: the ledger of a table, in words and as JSON.

use crate::args::Wild;
use crate::console::{Console, count, names};
use crate::failure::{Failure, note_words};
use crate::input::Source;
use covary::Dataset;
use covary::data::{Ledger, Oddity, WildCell};
use covary::filling::{FarCell, FarCellWords, wild_cells};
use covary::io::{ColumnKind, Note, Table};
use covary::learned::Learned;
use serde_json::{Value, json};

/// Says what came in and what is odd about it.
pub(crate) fn tell(console: Console, source: &Source) -> Ledger {
    let (table, data) = (&source.table, source.table.dataset());
    let ledger = Ledger::of(data);
    tell_notes(console, source);
    let cells = (ledger.n_rows * ledger.n_columns) as f64;
    console.say(&format!(
        "{}: {}, {} of numbers, {} ({:.1} %)",
        source.name,
        count(ledger.n_rows, "row"),
        count(ledger.n_columns, "column"),
        count(ledger.n_gaps, "gap"),
        100.0 * ledger.n_gaps as f64 / cells
    ));
    if ledger.n_columns > ledger.n_rows && !source.transposed {
        console.say(
            "more columns than rows: if every row is a variable, as in genes × samples, say --transpose",
        );
    }
    if ledger.n_gaps > 0 {
        let with_gaps = ledger.gaps_by_column.iter().filter(|&&n| n > 0).count();
        let fullest = (0..ledger.n_columns).rev().max_by_key(|&j| ledger.gaps_by_column[j]);
        let fullest = fullest.expect("a table has columns");
        console.say(&format!(
            "gaps in {} of {} and {} of {}; most in `{}` ({})",
            ledger.n_rows - ledger.n_complete_rows,
            count(ledger.n_rows, "row"),
            with_gaps,
            count(ledger.n_columns, "column"),
            data.column_names()[fullest],
            ledger.gaps_by_column[fullest],
        ));
    }
    let aside = aside(table);
    if !aside.is_empty() {
        console.say(&format!("not in the model, passed through: {}", aside.join(", ")));
    }
    if table.n_blank_lines() > 0 {
        console.say(&format!("passed over: {}", count(table.n_blank_lines(), "blank line")));
    }
    for oddity in ledger.oddities(data) {
        // What cannot be modeled is spoken of where it is set aside.
        use Oddity::{ConstantColumns, EmptyColumns, SingleColumns};
        if !matches!(oddity, ConstantColumns { .. } | SingleColumns { .. } | EmptyColumns { .. }) {
            console.warn(&oddity_words(&oddity));
        }
    }
    ledger
}

/// A possible problem of a table, with the flags that follow its advice.
fn oddity_words(oddity: &Oddity) -> String {
    match oddity {
        Oddity::Matrix(kind) => format!("{oddity} (--model fa --matrix {} --rows N)", kind.name()),
        Oddity::Code { code, .. } => format!("{oddity} (--gaps={})", code.value),
        other => other.to_string(),
    }
}

/// Names the cells far from what the rest of their rows say; returns them, and the table without them if they are to count
/// as missing.
pub(crate) fn judge(
    console: Console,
    source: &Source,
    ledger: &Ledger,
    wild: Wild,
) -> Result<(Vec<FarCell>, Option<Dataset>), Failure> {
    let data = source.table.dataset();
    let failed = |e| Failure::of_table(&source.name, e);
    let cells = wild_cells(data);
    let hide = wild == Wild::DownWeight;
    let known: &[WildCell] = if hide { &[] } else { &ledger.wild };
    let said = FarCellWords { cells: &cells, names: data.column_names(), known }.to_string();
    if !said.is_empty() {
        let then = if hide {
            "they count as missing for the fit and for the rest of their rows, and leave as they came"
        } else {
            "check them; --wild down-weight lets such cells count as missing for the fit"
        };
        console.warn(&format!("{}: far from what the rest of the row says: {said}; {then}", source.name));
    }
    if hide && said.is_empty() {
        console.say(&format!("{}: no cell is far from what the rest of its row says", source.name));
    } else if said.is_empty() && !cells.is_empty() {
        console.say("--wild down-weight lets such a cell count as missing for the fit");
    }
    let without = (hide && !cells.is_empty())
        .then(|| data.without_cells(cells.iter().map(|cell| (cell.row, cell.column))))
        .transpose()
        .map_err(failed)?;
    Ok((cells, without))
}

/// The same as JSON: rows count from 1, columns go by name.
pub(crate) fn far_as_json(source: &Source, cells: &[FarCell]) -> Value {
    let name = |j: usize| &source.table.dataset().column_names()[j];
    let one = |cell: &FarCell| {
        let FarCell { row, column, value, expected, sd } = cell;
        json!({ "row": row + 1, "column": name(*column), "value": value, "expected": expected, "sd": sd })
    };
    cells.iter().map(one).collect()
}

/// Says when rows happened, if that was read.
pub(crate) fn tell_times(console: Console, source: &Source) {
    let of_times = |note: &&Note| matches!(note, Note::Times { .. });
    source.table.notes().iter().filter(of_times).for_each(|note| console.say(&note_words(note)));
}

/// Says what was assumed of the file, and which option decides otherwise.
pub(crate) fn tell_notes(console: Console, source: &Source) {
    for note in source.table.notes() {
        let words = note_words(note);
        if note.is_warning() { console.warn(&words) } else { console.say(&words) }
    }
}

/// The columns kept aside, each with why.
fn aside(table: &Table) -> Vec<String> {
    let names = table.column_names();
    let why = |&j: &usize| match table.kind(j) {
        ColumnKind::Numbers | ColumnKind::Excluded => format!("`{}`", names[j]),
        ColumnKind::Unnamed => "the column without a name".to_owned(),
        ColumnKind::Typed { name } => format!("`{}` ({name})", names[j]),
        ColumnKind::Text { row } => {
            let text: String = table.text(*row, j).chars().take(20).filter(|c| !c.is_control()).collect();
            format!("`{}` (row {}: `{text}`)", names[j], row + 1)
        }
    };
    let columns = table.columns_aside();
    let mut said: Vec<String> = columns.iter().take(8).map(why).collect();
    if columns.len() > said.len() {
        said.push(format!("{} more", columns.len() - said.len()));
    }
    said
}

/// The same as JSON: rows count from 1, columns go by name.
pub(crate) fn as_json(source: &Source, ledger: &Ledger) -> Value {
    let (table, data) = (&source.table, source.table.dataset());
    let name = |j: &usize| data.column_names()[*j].clone();
    let gaps: serde_json::Map<String, Value> =
        data.column_names().iter().zip(&ledger.gaps_by_column).map(|(n, &g)| (n.clone(), json!(g))).collect();
    let aside = table.columns_aside().into_iter().map(|j| {
        let why = match table.kind(j) {
            ColumnKind::Text { row } => format!("text in row {}", row + 1),
            ColumnKind::Typed { name } => format!("of type {name}"),
            ColumnKind::Unnamed => "without a name".to_owned(),
            ColumnKind::Numbers | ColumnKind::Excluded => "excluded".to_owned(),
        };
        json!({ "name": table.column_names()[j], "why": why })
    });
    let identifiers = table.identifiers();
    let noted = table.notes().iter().filter(|n| n.is_warning()).chain(&identifiers);
    json!({
        "source": source.name,
        "n_rows": ledger.n_rows,
        "n_columns": ledger.n_columns,
        "n_gaps": ledger.n_gaps,
        "gaps_by_column": gaps,
        "n_complete_rows": ledger.n_complete_rows,
        "empty_rows": ledger.empty_rows.iter().map(|i| i + 1).collect::<Vec<_>>(),
        "empty_columns": ledger.empty_columns.iter().map(name).collect::<Vec<_>>(),
        "passed_through": aside.collect::<Vec<_>>(),
        "n_blank_lines": table.n_blank_lines(),
        "assumed": table.notes().iter().filter(|n| !n.is_warning()).map(note_words).collect::<Vec<_>>(),
        "warnings": noted.map(note_words).chain(ledger.oddities(data).map(|o| oddity_words(&o))).collect::<Vec<_>>(),
    })
}

/// Everything in a model, as `covary inspect --json` has it.
pub(crate) fn model_as_json(learned: &Learned) -> Value {
    serde_json::from_str(&learned.to_json()).expect("JSON of our own")
}

/// Says that columns could not go into a file of numbers.
pub(crate) fn left_out(console: Console, left: &[String], target: &str) {
    if !left.is_empty() {
        let left: Vec<&str> = left.iter().map(String::as_str).collect();
        console.warn(&format!("left out of {target}, which holds only numbers: {}", names(&left)));
    }
}
