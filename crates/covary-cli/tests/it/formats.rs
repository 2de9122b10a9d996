//! The same table in every format gives the same answers, and keeps what it held.

use super::first_tables::{Cell, ods, worksheet, xlsx};
use super::{folder_with_examples, run_in, succeed};
use covary::io::{self, Format, Input, ReadOptions};
use std::fs;
use std::path::Path;

fn read(folder: &Path, name: &str) -> io::Table {
    let file = fs::File::open(folder.join(name)).expect("written");
    let format = Format::of_file(name).expect("a known extension");
    io::read(Input::<&[u8]>::File(file), format, &ReadOptions::default()).expect("a table")
}

const OTHERS: [&str; 6] = ["tsv", "csv.gz", "parquet", "arrow", "npy", "npz"];

#[test]
fn every_format_gives_the_same_filled_numbers_and_the_same_model() {
    let folder = folder_with_examples();
    let root = folder.path();
    let numbers = "--exclude cultivar --components 2";
    succeed(root, &format!("impute -q examples/wine_gaps.csv {numbers} -o filled.csv"));
    let want = read(root, "filled.csv");
    for format in OTHERS {
        // Gaps pass from format to format: columns set aside keep theirs.
        let said = succeed(root, &format!("impute examples/wine_gaps.csv {numbers} -o filled.{format}"));
        let got = read(root, &format!("filled.{format}"));
        assert_eq!(got.dataset().values(), want.dataset().values(), "csv to {format}");
        let left_out = said.err.contains("left out of");
        assert_eq!(left_out, format.starts_with("np"), "{format}: {}", said.err);
    }
}

#[test]
fn gaps_survive_a_walk_through_all_formats() {
    let folder = folder_with_examples();
    let root = folder.path();
    // With a model of other columns the table itself passes through, gaps and all.
    let wine = read(root, "examples/wine_gaps.csv");
    let mut last = "examples/wine_gaps.csv".to_owned();
    for format in ["parquet", "arrow", "tsv", "csv.gz", "parquet"] {
        let next = format!("walk.{format}");
        let all = "alcohol,malic_acid,ash,alcalinity_of_ash,magnesium,total_phenols,flavanoids,nonflavanoid_phenols,proanthocyanins,color_intensity,hue,proline";
        if next == last {
            continue;
        }
        let command = format!("impute -q {last} --exclude {all} --components 0 --no-check -o {next}");
        succeed(root, &command);
        last = next;
        let got = read(root, &last);
        let d = got.dataset();
        assert_eq!(d.column_names(), wine.dataset().column_names());
        for (i, row) in wine.dataset().values().rows().enumerate() {
            for (j, cell) in
                row.iter().enumerate().filter(|(j, _)| d.column_names()[*j] != "od280/od315_of_diluted_wines")
            {
                let now = d.row(i)[j];
                assert!(now == *cell || (now.is_nan() && cell.is_nan()), "{last}: row {i}, column {j}");
            }
        }
        assert_eq!(got.text(5, 13), "c1", "{last}: text is carried");
    }
}

#[test]
fn a_model_answers_alike_whatever_the_format_of_the_table() {
    let folder = folder_with_examples();
    let root = folder.path();
    succeed(root, "fit -q examples/wine.csv --components 3 -o wine.covary");
    succeed(root, "score -q wine.covary examples/wine.csv -o want.csv");
    let want = read(root, "want.csv");
    for format in ["tsv", "csv.gz", "parquet", "arrow"] {
        succeed(root, &format!("impute -q examples/wine.csv -o wine.{format}"));
        succeed(root, &format!("score -q wine.covary wine.{format} -o got.{format}"));
        let got = read(root, &format!("got.{format}"));
        assert_eq!(got.dataset().values(), want.dataset().values(), "{format}");
        assert_eq!(got.text(100, 0), want.text(100, 0), "{format}");
    }
}

#[test]
fn pipes_carry_tables_and_models() {
    let folder = folder_with_examples();
    let root = folder.path();
    let wine = fs::read(root.join("examples/wine_gaps.csv")).expect("shipped");
    let piped = run_in(root, &["impute", "-q", "-", "--components", "2"], &wine);
    succeed(root, "impute -q examples/wine_gaps.csv --components 2 -o filled.csv");
    assert_eq!(piped.out, fs::read_to_string(root.join("filled.csv")).expect("written"));
    let program = env!("CARGO_BIN_EXE_covary");
    let script = format!(
        "{program} fit -q examples/wine_gaps.csv --components 2 | {program} score -q - examples/wine_gaps.csv > a.csv
        {program} impute -q examples/wine_gaps.csv --components 2 --output-format parquet | {program} impute -q - --format parquet -o b.csv"
    );
    let output = std::process::Command::new("sh").args(["-c", &script]).current_dir(root).output();
    let output = output.expect("a shell");
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(read(root, "a.csv").n_rows(), 178);
    assert_eq!(read(root, "b.csv").dataset().values(), read(root, "filled.csv").dataset().values());
}

/// A filled cell beside `4` is `5` and beside `4.0` is `5.0`, whatever the table came in and leaves as.
#[test]
fn whole_numbers_are_filled_in_as_their_column_is_written() {
    let folder = folder_with_examples();
    let root = folder.path();
    let rows: Vec<(u32, Option<u32>)> =
        (0..40).map(|i| (i * 7 % 40, (i % 5 != 3).then_some(2 * (i * 7 % 40)))).collect();
    let text = |cell: &dyn Fn(u32) -> String, separator: char| {
        let line = |(x, y): &(u32, Option<u32>)| {
            let y = y.map_or(String::new(), cell);
            format!("{x}{separator}{y}{separator}{}\n", cell(100 - x))
        };
        format!("x{separator}y{separator}z\n{}", rows.iter().map(line).collect::<String>())
    };
    let plain = |v: u32| v.to_string();
    fs::write(root.join("whole.csv"), text(&plain, ',')).expect("writable");
    fs::write(root.join("pointed.csv"), text(&|v| format!("{v}.0"), ',')).expect("writable");
    fs::write(root.join("european.csv"), text(&plain, ';')).expect("writable");
    fs::write(root.join("comma.csv"), text(&|v| format!("{v},0"), ';')).expect("writable");
    let of = |v: Option<u32>| v.map_or(Cell::Empty, |v| Cell::Number(f64::from(v)));
    let mut sheet = vec![["x", "y", "z"].map(|n| Cell::Text(n.to_owned())).to_vec()];
    sheet.extend(rows.iter().map(|&(x, y)| vec![of(Some(x)), of(y), of(Some(100 - x))]));
    fs::write(root.join("whole.xlsx"), xlsx(&[("Data", sheet)])).expect("writable");
    let impute = "--model gaussian --no-check";
    // What is filled into y must be whole for this to say anything: bounds round it to whole numbers.
    let filled = |input: &str, output: &str, options: &str, separator: char| {
        succeed(root, &format!("impute -q {input} {impute} {options} -o {output}"));
        let text = fs::read_to_string(root.join(output)).expect("written");
        let ys: Vec<String> =
            text.lines().skip(1).map(|l| l.split(separator).nth(1).expect("y").to_owned()).collect();
        (text, rows.iter().zip(ys).filter(|(r, _)| r.1.is_none()).map(|(_, y)| y).collect::<Vec<_>>())
    };
    let (want, cells) = filled("whole.csv", "filled.csv", "", ',');
    assert!(cells.len() == 8 && cells.iter().all(|c| c.parse::<i64>().is_ok()), "{cells:?}");
    let (_, tabs) = filled("whole.csv", "filled.tsv", "", '\t');
    assert_eq!(tabs, cells);
    let (book, _) = filled("whole.xlsx", "book.csv", "", ',');
    assert_eq!(book, want);
    let (_, european) = filled("european.csv", "european_filled.csv", "", ';');
    assert_eq!(european, cells);
    for (input, point) in [("pointed.csv", "."), ("comma.csv", ",")] {
        let options = if point == "," { "--decimal-comma" } else { "" };
        let separator = if point == "," { ';' } else { ',' };
        let (_, pointed) = filled(input, "pointed_filled.csv", options, separator);
        let with_point: Vec<String> = cells.iter().map(|c| format!("{c}{point}0")).collect();
        assert_eq!(pointed, with_point, "{input}");
    }
}

#[test]
fn other_separators_and_decimal_commas() {
    let folder = folder_with_examples();
    let root = folder.path();
    let text = "id;x;y\r\n\"a;b\";1,5;2,9\r\nc;2,5;\r\nd;3,5;7,1\r\ne;4,5;8,8\r\nf;5,5;11,2\r\n";
    fs::write(root.join("comma.csv"), text).expect("writable");
    succeed(root, "impute -q comma.csv --decimal-comma --components 1 -o filled.csv");
    let filled = fs::read_to_string(root.join("filled.csv")).expect("written");
    let (before, rest) = filled.split_once("c;2,5;").expect("observed bytes stay");
    let (number, after) = rest.split_once("\r\n").expect("a line");
    assert_eq!(before, "id;x;y\r\n\"a;b\";1,5;2,9\r\n");
    assert_eq!(after, "d;3,5;7,1\r\ne;4,5;8,8\r\nf;5,5;11,2\r\n");
    let value: f64 = number.replace(',', ".").parse().expect("a number with a decimal comma");
    assert!((value - 5.0).abs() < 0.6, "{value}");
    fs::write(root.join("bar.txt"), "x|y\n1|2\n2|\n3|6.1\n4|8\n").expect("writable");
    succeed(root, "impute -q bar.txt --delimiter | --components 1 -o bar-filled.txt");
    assert!(fs::read_to_string(root.join("bar-filled.txt")).expect("written").starts_with("x|y\n1|2\n2|"));
}

#[test]
fn a_worksheet_is_read_by_name_or_number_and_leaves_as_text() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path();
    let word = |text: &str| Cell::Text(text.to_owned());
    let other = vec![
        vec![Cell::Empty, word("x"), word("a, b")],
        vec![Cell::Empty, Cell::Number(1.0), Cell::Number(0.1)],
        vec![Cell::Empty, Cell::Number(2.5), Cell::Error("#N/A")],
        vec![Cell::Empty, word("4"), Cell::Number(-3e-7)],
    ];
    fs::write(root.join("book.xlsx"), xlsx(&[("Data", worksheet()), ("Other", other.clone())]))
        .expect("writable");
    fs::write(root.join("book.ods"), ods(&other)).expect("writable");
    let read = |file: &str, sheet: &str| {
        let format = Format::of_file(file).expect("a known extension");
        let sheet = (!sheet.is_empty()).then(|| sheet.to_owned());
        let file = fs::File::open(root.join(file)).expect("written");
        io::read(Input::<&[u8]>::File(file), format, &ReadOptions { sheet, ..Default::default() })
    };
    for table in [read("book.xlsx", "Other"), read("book.xlsx", "2"), read("book.ods", "")] {
        let table = table.expect("a table");
        assert_eq!(table.column_names(), ["x", "a, b"]);
        let (data, nan) = (table.dataset(), f64::NAN);
        let want = [[1.0, 0.1], [2.5, nan], [4.0, -3e-7]];
        for (row, want) in data.values().rows().zip(want) {
            assert!(row.iter().zip(want).all(|(a, b)| a.to_bits() == b.to_bits()), "{row:?}");
        }
        let mut out = Vec::new();
        table.write_filled(data.values(), Format::CSV, &mut out).expect("memory takes all");
        assert_eq!(String::from_utf8(out).expect("UTF-8"), "x,\"a, b\"\n1,0.1\n2.5,#N/A\n4,-3e-7\n");
    }
    // Dates pass through as text; the title stays behind.
    let data = read("book.xlsx", "").expect("a table");
    assert_eq!((data.text(0, 0).as_str(), data.dataset().n_gaps()), ("2024-01-01", 4));
    succeed(root, "impute -q book.xlsx -o filled.csv --no-check");
    assert!(
        fs::read_to_string(root.join("filled.csv"))
            .expect("written")
            .starts_with("when,a,b,c,d\n2024-01-01,")
    );
    succeed(root, "impute -q book.xlsx -o filled.parquet --no-check");
    let fails = |line: &str, code: i32, says: &str| {
        let said = run_in(root, &line.split_whitespace().collect::<Vec<_>>(), b"");
        assert!(said.code == Some(code) && said.err.contains(says), "{line}: {}", said.err);
    };
    fails("impute book.xlsx --sheet 3 -o out.csv", 1, "there is no worksheet `3`; there are `Data`, `Other`");
    fails("impute book.xlsx -o out.xlsx", 2, "out.xlsx: xlsx is read and not written; write .csv");
    fails("impute book.xlsx --output-format ods", 2, "--output-format: ods is read and not written");
    fails("impute book.xlsx --max-memory 4000 -o out.csv", 1, "(--max-memory SIZE)");
    fails("impute book.ods --max-memory 4000 -o out.csv", 1, "(--max-memory SIZE)");
    let whole = fs::read(root.join("book.xlsx")).expect("written");
    fs::write(root.join("cut.xlsx"), &whole[..whole.len() / 2]).expect("writable");
    fails("impute cut.xlsx -o out.csv", 1, "cut.xlsx: is not xlsx");
}

/// Words in cells are not taken for cells: a worksheet has its own.
#[test]
fn words_and_commas_in_the_cells_of_a_worksheet_stay_there() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path();
    let text = |words: &str| Cell::Text(words.to_owned());
    let mut rows = vec![vec![text("from 1"), text("y 1")]];
    for i in 0..12_u32 {
        let y = if i == 5 { Cell::Empty } else { Cell::Number(f64::from(3 * i) + 0.5) };
        rows.push(vec![text(&format!("{i} 5")), y]);
    }
    fs::write(root.join("book.xlsx"), xlsx(&[("Data", rows)])).expect("writable");
    let said = succeed(root, "impute book.xlsx --no-check -o out.csv");
    assert!(said.err.contains("book.xlsx: 12 rows, 1 column of numbers, 1 gap"), "{}", said.err);
    let out = fs::read_to_string(root.join("out.csv")).expect("written");
    assert!(out.starts_with("from 1,y 1\n0 5,0.5\n1 5,3.5\n"), "{out}");
}

/// An archive with some text of its parts replaced.
fn replaced(bytes: Vec<u8>, from: &str, to: &str) -> Vec<u8> {
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(bytes)).expect("an archive");
    let mut out = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for i in 0..archive.len() {
        let mut part = archive.by_index(i).expect("a part");
        let name = part.name().expect("a name").into_owned();
        let mut text = String::new();
        std::io::Read::read_to_string(&mut part, &mut text).expect("text");
        out.start_file(name, zip::write::SimpleFileOptions::default()).expect("a part");
        std::io::Write::write_all(&mut out, text.replace(from, to).as_bytes()).expect("memory takes all");
    }
    out.finish().expect("an archive").into_inner()
}

/// Found by the fuzzer: the decoder never came back.
#[test]
fn a_spreadsheet_whose_table_never_ends_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path();
    for (what, from, to) in [
        ("another name", "</table:table>", "</tablte:able>"),
        ("no end", "</table:table></office:spreadsheet></office:body></office:document-content>", ""),
        ("an end too many", "<office:body>", "<office:body></table:table-row>"),
    ] {
        fs::write(root.join("endless.ods"), replaced(ods(&worksheet()), from, to)).expect("writable");
        let said = run_in(root, &["impute", "endless.ods", "-o", "out.csv"], b"");
        assert!(said.code == Some(1) && said.err.contains("does not end"), "{what}: {}", said.err);
    }
}

#[test]
fn a_spreadsheet_that_repeats_cells_without_end_is_refused_before_it_is_read() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path();
    // Forty kilobytes that would be 16 384 columns of a million rows.
    let mut rows = worksheet();
    rows.extend((0..500).map(|_| vec![Cell::Number(1.0); 2]));
    let many = r#"office:value="1" table:number-columns-repeated="16000">"#;
    fs::write(root.join("bomb.ods"), replaced(ods(&rows), r#"office:value="1">"#, many)).expect("writable");
    let said = run_in(root, &["impute", "bomb.ods", "--max-memory", "100M", "-o", "out.csv"], b"");
    assert!(said.code == Some(1) && said.err.contains("(--max-memory SIZE)"), "{}", said.err);
}

#[test]
fn a_turned_table_is_filled_scored_and_written_as_it_came() {
    let folder = folder_with_examples();
    let root = folder.path();
    // The wine table on its side: columns of the file are wines.
    let wine = fs::read_to_string(root.join("examples/wine_gaps.csv")).expect("shipped");
    let lines: Vec<Vec<&str>> = wine.lines().map(|line| line.split(',').collect()).collect();
    let names: Vec<String> = (1..lines.len()).map(|i| format!("w{i}")).collect();
    let mut turned = format!("what,{}\n", names.join(","));
    for j in 0..lines[0].len() - 1 {
        let cells: Vec<&str> = lines.iter().map(|line| line[j]).collect();
        turned += &(cells.join(",") + "\n");
    }
    fs::write(root.join("turned.csv"), &turned).expect("writable");
    succeed(root, "impute -q examples/wine_gaps.csv --exclude cultivar -o upright.csv --cells a.csv");
    let said = succeed(root, "impute turned.csv --transpose -o filled.csv --cells b.csv");
    assert!(said.err.contains("178 rows, 13 columns of numbers"), "{}", said.err);
    assert_eq!(
        fs::read(root.join("a.csv")).expect("written"),
        fs::read(root.join("b.csv")).expect("written")
    );
    // Turned back, the cells are those of the upright table.
    let want = fs::read_to_string(root.join("upright.csv")).expect("written");
    let filled = fs::read_to_string(root.join("filled.csv")).expect("written");
    let filled: Vec<Vec<&str>> = filled.lines().map(|line| line.split(',').collect()).collect();
    for (i, line) in want.lines().enumerate().skip(1) {
        for (j, cell) in line.split(',').enumerate().take(13) {
            assert_eq!(filled[j + 1][i], cell, "row {i}, column {j}");
        }
    }
    succeed(root, "impute -q turned.csv --transpose -o filled.parquet");
    assert_eq!(read(root, "filled.parquet").n_rows(), 13);
    // A model of the upright table answers for the turned one; some columns may be left out.
    succeed(root, "fit -q examples/wine_gaps.csv --exclude cultivar,hue --components 2 -o wine.covary");
    succeed(root, "score -q wine.covary turned.csv --transpose -o scores.csv");
    succeed(root, "score -q wine.covary examples/wine_gaps.csv -o upright-scores.csv");
    let (scores, upright) = (read(root, "scores.csv"), read(root, "upright-scores.csv"));
    let place = |t: &io::Table| {
        t.dataset().column_names().iter().position(|n| n == "log_likelihood").expect("a column")
    };
    assert_eq!(
        scores.dataset().values().column(place(&scores)),
        upright.dataset().values().column(place(&upright))
    );
    assert_eq!(scores.text(4, 0), "w5");
    succeed(root, "impute -q turned.csv --transpose --exclude hue --components 1 -o some.csv");
}

#[test]
fn what_was_assumed_is_in_the_json() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path();
    let last = |i: usize| if i == 3 { String::new() } else { (i * 3 % 20).to_string() };
    let rows: Vec<String> = (0..20).map(|i| format!("{};{},5;{}\n", i + 1, i * 7 % 20, last(i))).collect();
    fs::write(root.join("t.csv"), format!("row;a;b\n{}", rows.concat())).expect("writable");
    let said = succeed(root, "impute t.csv --no-check --json -o out.csv");
    let found: serde_json::Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(
        found["data"]["assumed"][0],
        "cells are separated by `;`, decimals by a comma (--delimiter CHAR)"
    );
    let warned = found["data"]["warnings"][0].as_str().expect("text");
    assert!(
        warned.starts_with("`row` (numbers of the rows) looks like") && warned.ends_with("(--id 'row')"),
        "{warned}"
    );
}
