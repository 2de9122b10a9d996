//! Tables as people have them: `covary impute FILE -o OUT` does the right thing, or says in one line what to type.

use super::{Said, run_in};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;

/// Rows of the table that all files below hold, in one way or another.
const N: usize = 40;
/// Cells that are not there.
const GAPS: [(usize, usize); 4] = [(3, 0), (7, 1), (11, 2), (20, 3)];

/// Two factors and a little noise, with two digits: nobody's data.
fn value(i: usize, j: usize) -> f64 {
    let (a, b) = ((7 * i % 40) as f64 / 10.0, (11 * i % 37) as f64 / 10.0);
    let noise = ((13 * i + 5 * j) % 17) as f64 / 50.0;
    let exact = [5.0 + a, 30.0 + 2.0 * a - b, 12.0 + b, 50.0 - a + 3.0 * b][j] + noise;
    (100.0 * exact).round() / 100.0
}

/// The cell as text; none where it is not there.
fn cell(i: usize, j: usize) -> Option<String> {
    (!GAPS.contains(&(i, j))).then(|| format!("{:.2}", value(i, j)))
}

/// How a text table is written.
#[derive(Clone, Copy)]
struct Style<'a> {
    names: Option<&'a str>,
    delimiter: &'a str,
    comma: bool,
    gap: &'a str,
    line_end: &'a str,
}

const PLAIN: Style<'_> =
    Style { names: Some("a,b,c,d"), delimiter: ",", comma: false, gap: "", line_end: "\n" };

/// The table as text, `before` each row what labels it.
fn text(style: Style<'_>, before: impl Fn(usize) -> String) -> String {
    let mut out = String::new();
    if let Some(names) = style.names {
        write!(out, "{}{}", names.replace(',', style.delimiter), style.line_end).expect("memory");
    }
    for i in 0..N {
        let sign = if style.comma { "," } else { "." };
        let cell = |j| cell(i, j).map_or(style.gap.to_owned(), |c| c.replace('.', sign));
        let cells: Vec<String> = (0..4).map(cell).collect();
        write!(out, "{}{}{}", before(i), cells.join(style.delimiter), style.line_end).expect("memory");
    }
    out
}

fn plain(style: Style<'_>) -> String {
    text(style, |_| String::new())
}

fn utf16(text: &str) -> Vec<u8> {
    format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// A cell of a worksheet.
#[derive(Clone)]
pub(super) enum Cell {
    Empty,
    Number(f64),
    Text(String),
    /// Days since 1899-12-30.
    Day(u32),
    Error(&'static str),
}

fn zipped(parts: &[(&str, String)]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, part) in parts {
        archive.start_file(*name, zip::write::SimpleFileOptions::default()).expect("a part");
        archive.write_all(part.as_bytes()).expect("memory takes all");
    }
    archive.finish().expect("memory takes all").into_inner()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// A workbook as Excel writes it, as far as a reader needs it.
pub(super) fn xlsx(sheets: &[(&str, Vec<Vec<Cell>>)]) -> Vec<u8> {
    let head = r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>"#;
    let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let package = "http://schemas.openxmlformats.org/package/2006/relationships";
    let (mut names, mut targets, mut parts) = (String::new(), String::new(), Vec::new());
    for (k, (name, rows)) in sheets.iter().enumerate() {
        let k = k + 1;
        write!(names, r#"<sheet name="{name}" sheetId="{k}" r:id="rId{k}"/>"#).expect("memory");
        write!(
            targets,
            r#"<Relationship Id="rId{k}" Type="{relations}/worksheet" Target="worksheets/sheet{k}.xml"/>"#
        )
        .expect("memory");
        let mut data = String::new();
        for (i, row) in rows.iter().enumerate() {
            write!(data, r#"<row r="{}">"#, i + 1).expect("memory");
            for (j, cell) in row.iter().enumerate() {
                let at = format!("{}{}", char::from(b'A' + u8::try_from(j).expect("few columns")), i + 1);
                match cell {
                    Cell::Empty => Ok(()),
                    Cell::Number(v) => write!(data, r#"<c r="{at}"><v>{v}</v></c>"#),
                    Cell::Day(v) => write!(data, r#"<c r="{at}" s="1"><v>{v}</v></c>"#),
                    Cell::Error(v) => write!(data, r#"<c r="{at}" t="e"><v>{v}</v></c>"#),
                    Cell::Text(v) => {
                        write!(data, r#"<c r="{at}" t="inlineStr"><is><t>{}</t></is></c>"#, escaped(v))
                    }
                }
                .expect("memory");
            }
            data += "</row>";
        }
        parts.push((
            format!("xl/worksheets/sheet{k}.xml"),
            format!(r#"{head}<worksheet xmlns="{main}"><sheetData>{data}</sheetData></worksheet>"#),
        ));
    }
    let mut all = vec![
        (
            "[Content_Types].xml",
            format!(r#"{head}<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>"#),
        ),
        (
            "_rels/.rels",
            format!(
                r#"{head}<Relationships xmlns="{package}"><Relationship Id="rId1" Type="{relations}/officeDocument" Target="xl/workbook.xml"/></Relationships>"#
            ),
        ),
        (
            "xl/workbook.xml",
            format!(
                r#"{head}<workbook xmlns="{main}" xmlns:r="{relations}"><sheets>{names}</sheets></workbook>"#
            ),
        ),
        (
            "xl/_rels/workbook.xml.rels",
            format!(r#"{head}<Relationships xmlns="{package}">{targets}</Relationships>"#),
        ),
        (
            "xl/styles.xml",
            format!(
                r#"{head}<styleSheet xmlns="{main}"><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14" applyNumberFormat="1"/></cellXfs></styleSheet>"#
            ),
        ),
    ];
    all.extend(parts.iter().map(|(name, part)| (name.as_str(), part.clone())));
    zipped(&all)
}

/// A spreadsheet as LibreOffice writes it, with the empty rest of the sheet in one element.
pub(super) fn ods(rows: &[Vec<Cell>]) -> Vec<u8> {
    let mut data = String::new();
    for row in rows {
        data += "<table:table-row>";
        for cell in row {
            match cell {
                Cell::Empty => write!(data, "<table:table-cell/>"),
                Cell::Number(v) => write!(
                    data,
                    r#"<table:table-cell office:value-type="float" office:value="{v}"><text:p>{v}</text:p></table:table-cell>"#
                ),
                Cell::Day(v) => write!(
                    data,
                    r#"<table:table-cell office:value-type="date" office:date-value="2024-01-{:02}"/>"#,
                    v - 45_291
                ),
                Cell::Text(v) => write!(
                    data,
                    r#"<table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>"#,
                    escaped(v)
                ),
                Cell::Error(v) => write!(
                    data,
                    r#"<table:table-cell office:value-type="string" office:string-value="" calcext:value-type="error"><text:p>{v}</text:p></table:table-cell>"#
                ),
            }
            .expect("memory");
        }
        data += r#"<table:table-cell table:number-columns-repeated="16379"/></table:table-row>"#;
    }
    data += r#"<table:table-row table:number-rows-repeated="1048000"><table:table-cell table:number-columns-repeated="16384"/></table:table-row>"#;
    let office = "urn:oasis:names:tc:opendocument:xmlns";
    let content = format!(
        r#"<?xml version="1.0" encoding="UTF-8"?><office:document-content xmlns:office="{office}:office:1.0" xmlns:table="{office}:table:1.0" xmlns:text="{office}:text:1.0" xmlns:calcext="urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0"><office:body><office:spreadsheet><table:table table:name="Data">{data}</table:table></office:spreadsheet></office:body></office:document-content>"#
    );
    zipped(&[
        ("mimetype", "application/vnd.oasis.opendocument.spreadsheet".to_owned()),
        ("content.xml", content),
        (
            "META-INF/manifest.xml",
            format!(r#"<?xml version="1.0"?><manifest:manifest xmlns:manifest="{office}:manifest:1.0"/>"#),
        ),
    ])
}

/// The table as a worksheet below a title, with a day beside each row.
pub(super) fn worksheet() -> Vec<Vec<Cell>> {
    let words = |words: &[&str]| words.iter().map(|w| Cell::Text((*w).to_owned())).collect::<Vec<_>>();
    let mut rows = vec![words(&["Measurements of 2024"]), Vec::new(), words(&["when", "a", "b", "c", "d"])];
    for i in 0..N {
        let cell = |j| if GAPS.contains(&(i, j)) { Cell::Empty } else { Cell::Number(value(i, j)) };
        let day = Cell::Day(45_292 + u32::try_from(i % 28).expect("a day"));
        rows.push(std::iter::once(day).chain((0..4).map(cell)).collect());
    }
    rows
}

/// What one of the tables is, and what becomes of it.
struct Case {
    what: &'static str,
    file: &'static str,
    bytes: Vec<u8>,
    /// Words behind the file's name.
    with: &'static str,
    /// What it says, in one line each.
    says: &'static [&'static str],
    end: End,
}

/// How it ends.
enum End {
    /// All gaps are filled with what the plain table has there, and the rest leaves as it came.
    Filled,
    /// The same, as comma-separated text.
    Converted,
    /// Done, with other numbers than those of the plain table, or with gaps left.
    Done,
    /// Not done: the line says what to type.
    Refused,
}

fn cases() -> Vec<Case> {
    let european = Style { delimiter: ";", comma: true, line_end: "\r\n", ..PLAIN };
    let tabs = Style { delimiter: "\t", ..PLAIN };
    let labeled =
        |names, before: &dyn Fn(usize) -> String| text(Style { names: Some(names), ..PLAIN }, before);
    let case = |what, file, bytes: Vec<u8>, says, end| Case { what, file, bytes, with: "", says, end };
    let mut wild = plain(PLAIN);
    wild = wild.replacen(&cell(5, 1).expect("observed"), "1000000", 1);
    let mut typo = plain(PLAIN);
    typo = typo.replacen(&cell(5, 1).expect("observed"), "n.d.", 1);
    let codes = Style { gap: "-999", ..PLAIN };
    let genes: String = {
        let row = |j: usize| {
            let cells: Vec<String> = (0..N).map(|i| cell(i, j).unwrap_or_default()).collect();
            format!("gene{j},{}\n", cells.join(","))
        };
        let names: Vec<String> = (0..N).map(|i| format!("sample{i}")).collect();
        format!("gene,{}\n{}", names.join(","), (0..4).map(row).collect::<String>())
    };
    let mut errors = worksheet();
    errors[9][2] = Cell::Error("#DIV/0!");
    let mut umlauts: Vec<u8> = b"gr\xf6\xdfe".to_vec();
    umlauts.extend_from_slice(&plain(PLAIN).as_bytes()[1..]);
    vec![
        case("plain CSV", "plain.csv", plain(PLAIN).into(), &[], End::Filled),
        case(
            "European CSV",
            "european.csv",
            plain(european).into(),
            &["cells are separated by `;`, decimals by a comma (--delimiter CHAR)"],
            End::Filled,
        ),
        case(
            "tabs in a .txt",
            "tabs.txt",
            plain(tabs).into(),
            &["cells are separated by tabs (--delimiter CHAR)"],
            End::Filled,
        ),
        case(
            "columns aligned by blanks",
            "blanks.txt",
            plain(Style { delimiter: "   ", gap: "NA", ..PLAIN }).into(),
            &["cells are separated by blanks (--delimiter CHAR)"],
            End::Filled,
        ),
        case(
            "no header",
            "bare.csv",
            plain(Style { names: None, ..PLAIN }).into(),
            &[
                "no header: the first line holds numbers as the others do, and columns are called x1, x2, … (--header)",
            ],
            End::Filled,
        ),
        case(
            "years as names",
            "years.csv",
            plain(Style { names: Some("2001,2002,2003,2004"), ..PLAIN }).into(),
            &[
                "warning: the first line holds only numbers and was read as the names of the columns (--no-header)",
            ],
            End::Filled,
        ),
        case(
            "a title above the header",
            "title.csv",
            format!("Table 1. Measurements,,,\n\n{}", plain(PLAIN)).into(),
            &["the line above the table is not part of it: `Table 1. Measurements` (--skip N)"],
            End::Filled,
        ),
        case(
            "Unicode text from Excel",
            "unicode.txt",
            utf16(&plain(Style { line_end: "\r\n", ..tabs })),
            &["read as UTF-16LE text (--encoding NAME)", "cells are separated by tabs (--delimiter CHAR)"],
            End::Filled,
        ),
        case(
            "Latin-1 names",
            "latin.csv",
            umlauts,
            &["not UTF-8, so read as windows-1252 text (--encoding NAME)"],
            End::Filled,
        ),
        case(
            "R's write.table",
            "r.txt",
            text(Style { delimiter: " ", gap: "NA", ..PLAIN }, |i| format!("\"{}\" ", i + 1)).into(),
            &["the header has one name fewer than the rows have cells: the first column labels the rows"],
            End::Filled,
        ),
        case(
            "an Excel workbook with a title and dates",
            "book.xlsx",
            xlsx(&[("Data", worksheet()), ("Notes", vec![vec![Cell::Text("by X".to_owned())]])]),
            &[
                "worksheet `Data` is read, and not `Notes` (--sheet NAME)",
                "the line above the table is not part of it: `Measurements of 2024` (--skip N)",
            ],
            End::Converted,
        ),
        case(
            "an OpenDocument spreadsheet",
            "book.ods",
            ods(&worksheet()),
            &["the line above the table is not part of it: `Measurements of 2024` (--skip N)"],
            End::Converted,
        ),
        case(
            "a workbook with an error in a cell",
            "errors.xlsx",
            xlsx(&[("Data", errors)]),
            &[
                "`#DIV/0!` is not a number, unlike 38 cells of the column; correct it, declare it a gap if it means one, or exclude the column (--gaps '#DIV/0!', --exclude 'b')",
            ],
            End::Refused,
        ),
        case(
            "genes × samples, without a word",
            "genes.csv",
            genes.clone().into(),
            &["more columns than rows: if every row is a variable, as in genes × samples, say --transpose"],
            End::Done,
        ),
        Case { with: "--transpose", ..case("genes × samples", "genes.csv", genes.into(), &[], End::Filled) },
        case(
            "row numbers, postal codes and dates",
            "ids.csv",
            labeled("id,zip,day,a,b,c,d", &|i| {
                format!("{},{:05},{},", i + 1, 37 * i % 100, 20_240_101 + i % 28)
            })
            .into(),
            &[
                "warning: `id` (numbers of the rows), `zip` (leading zeros), `day` (dates) look like identifiers",
                "(--id 'id,zip,day')",
            ],
            End::Done,
        ),
        Case {
            with: "--id id,zip,day",
            ..case(
                "the same, with what it says to type",
                "ids.csv",
                labeled("id,zip,day,a,b,c,d", &|i| {
                    format!("{},{:05},{},", i + 1, 37 * i % 100, 20_240_101 + i % 28)
                })
                .into(),
                &[],
                End::Filled,
            )
        },
        case(
            "two columns without a value",
            "empty.csv",
            labeled("e,f,a,b,c,d", &|_| ",NA,".to_owned()).into(),
            &["warning: no value at all, so not in the model; gaps stay: `e`, `f`"],
            End::Filled,
        ),
        case("one wild cell", "wild.csv", wild.into(), &["1000000"], End::Done),
        case("-999 for a missing value", "codes.csv", plain(codes).into(), &[], End::Done),
        Case {
            with: "--gaps -999",
            ..case("the same, declared", "codes.csv", plain(codes).into(), &[], End::Filled)
        },
        case(
            "a slip in a number",
            "typo.csv",
            typo.into(),
            &["`n.d.` is not a number, unlike 38 cells of the column", "(--gaps 'n.d.', --exclude 'b')"],
            End::Refused,
        ),
        Case {
            with: "--no-header",
            ..case(
                "names called numbers",
                "names.csv",
                plain(PLAIN).into(),
                &[
                    "`a` is not a number, unlike 39 cells of the column",
                    "(--header, --gaps 'a', --exclude 'x1')",
                ],
                End::Refused,
            )
        },
        case(
            "notes above the table",
            "notes.csv",
            format!("by,,2024,\nsee,page,7,\n{}", plain(PLAIN)).into(),
            &["(--skip N)"],
            End::Refused,
        ),
        case(
            "one column of decimal commas",
            "single.csv",
            b"x\n1,5\n2,5\n3,5\n".to_vec(),
            &["2 cells where the header names 1 column", "(--decimal-comma)"],
            End::Refused,
        ),
    ]
}

/// The numbers in the place of gaps, row by row.
fn filled(root: &Path, name: &str) -> Vec<String> {
    let text = fs::read_to_string(root.join(name)).expect("written");
    text.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn tables_as_people_have_them() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path();
    let mut want = Vec::new();
    for Case { what, file, bytes, with, says, end } in cases() {
        fs::write(root.join(file), &bytes).expect("writable");
        let (_, ending) = file.rsplit_once('.').expect("a name");
        let ending = if ["xlsx", "ods"].contains(&ending) { "csv" } else { ending };
        let out = format!("out.{ending}");
        let line = format!("impute {file} -o {out} --cells cells.csv --no-check {with}");
        let Said { code, err, .. } = run_in(root, &line.split_whitespace().collect::<Vec<_>>(), b"");
        for words in says {
            assert!(err.lines().any(|line| line.contains(words)), "{what}: expected `{words}` in\n{err}");
        }
        assert_eq!(code, Some(i32::from(matches!(end, End::Refused))), "{what}\n{err}");
        if !matches!(end, End::Filled | End::Converted) {
            continue;
        }
        // `row,column,value,…`: the same cells have the same numbers, whatever the file looks like.
        let mut cells: Vec<(usize, String)> = filled(root, "cells.csv")
            .iter()
            .map(|line| {
                let parts: Vec<&str> = line.split(',').collect();
                (parts[0].parse().expect("a row"), parts[2].to_owned())
            })
            .collect();
        cells.sort();
        assert_eq!(cells.len(), GAPS.len(), "{what}");
        if want.is_empty() {
            want = cells.clone();
        }
        assert_eq!(cells, want, "{what}");
        // With the numbers taken out again the file is what came in.
        if matches!(end, End::Filled) {
            let mut written = fs::read(root.join(&out)).expect("written");
            let wide = bytes.starts_with(b"\xff\xfe");
            for (_, number) in cells {
                let comma = file == "european.csv";
                let number = if comma { number.replace('.', ",") } else { number };
                let number = if wide { utf16(&number)[2..].to_vec() } else { number.into_bytes() };
                let gap: &[u8] = match file {
                    "blanks.txt" | "r.txt" => b"NA",
                    "codes.csv" => b"-999",
                    _ => b"",
                };
                let at = written.windows(number.len()).position(|w| w == number).expect("the number");
                written.splice(at..at + number.len(), gap.iter().copied());
            }
            assert!(written == bytes, "{what}:\n{}", String::from_utf8_lossy(&written));
        }
    }
}
