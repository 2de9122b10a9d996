use super::table::Body;
use super::{
    ColumnChoice, ColumnKind, Columns, Delimiter, Error, Format, Input, Layout, Note, ReadOptions, Table, csv,
};
use crate::model::{Density, Imputed, LinearGaussian, Noise};
use crate::{Dataset, Matrix, Remedy};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn table(text: &str) -> Table {
    csv::read(text.as_bytes()).expect("a table")
}

/// Fills with a fixed model: what is tested here is the writing, not the numbers.
fn filled(data: &Dataset) -> Imputed {
    let d = data.n_columns();
    let loadings = Matrix::from_fn(d, 1, |_, _| 0.5);
    let mean = (1..=d).map(|j| 1.0 / (3.0 * j as f64)).collect();
    let model = LinearGaussian::new(loadings, mean, Noise::Isotropic(1.0)).expect("valid parameters");
    model.impute(data).expect("same columns")
}

fn raw(table: &Table, row: usize, column: usize) -> &[u8] {
    match &table.body {
        Body::Text(text) => text.raw(row, column),
        _ => unreachable!("tables here are text"),
    }
}

fn rewritten(table: &Table) -> Vec<u8> {
    let mut out = Vec::new();
    table.write_filled(filled(table.dataset()).values(), Format::CSV, &mut out).expect("memory takes all");
    out
}

#[track_caller]
fn check_untouched(text: &str) {
    assert_eq!(String::from_utf8(rewritten(&table(text))).expect("UTF-8"), text);
}

#[track_caller]
fn check_error(text: &str, says: &str) {
    let error = csv::read(text.as_bytes()).expect_err("an error");
    assert_eq!(error.to_string(), says);
}

/// As [`check_error`], with what the caller can ask for differently.
#[track_caller]
fn check_remedies(text: &str, says: &str, remedies: &[Remedy]) {
    check_error(text, says);
    assert_eq!(csv::read(text.as_bytes()).expect_err("an error").remedies(), remedies);
}

fn gap_or_exclude(text: &str, column: &str) -> [Remedy; 2] {
    [Remedy::Gaps(text.to_owned()), Remedy::Exclude(column.to_owned())]
}

#[test]
fn complete_tables_leave_byte_for_byte() {
    check_untouched("x,y\n1,2\n3,4\n");
    check_untouched("x,y\r\n1e-7,+.5\r\n 3,\"4\"\r\n"); // CRLF, exotic numbers, spaces, quotes
    check_untouched("x,y\n1,2\n3,4"); // no final newline
    check_untouched("\u{feff}x,y\n1,2\n\n3,4\n\n"); // byte-order mark, blank lines
    check_untouched("x,y\r1,2\r3,4\r");
    check_untouched("id,x\n\"a \"\"b\"\", c\nd\",1.50\n,0002\n"); // text with everything in it
}

#[test]
fn only_gaps_change() {
    let text = "id,x,\"y\"\r\n\"a,b\", 1.0 ,NA\r\n,,\"2\"\r\n\"\",+3e0,null";
    let cells = filled(table(text).dataset());
    let number = |k: usize| format!("{:?}", cells.cells()[k].mean);
    let want = format!(
        "id,x,\"y\"\r\n\"a,b\", 1.0 ,{}\r\n,{},\"2\"\r\n\"\",+3e0,{}",
        number(0),
        number(1),
        number(2)
    );
    assert_eq!(String::from_utf8(rewritten(&table(text))).expect("UTF-8"), want);
}

#[test]
fn gaps_are_a_few_words_in_any_case_and_a_signed_nan() {
    let t = table(
        "x,y\n1,\n1,NA\n1,na\n1,NaN\n1,nan\n1,-nan\n1,null\n1,NULL\n1,\" na \"\n1,n/a\n1,#N/A\n1,<NA>\n1,None\n1,2\n",
    );
    assert_eq!(t.dataset().n_observed_by_column(), [14, 1]);
}

#[test]
fn columns_that_are_not_numbers_are_kept_aside() {
    let t = table(",site,x,y,note\n1,north,1,NA,\n2,NA,2,5,\"4,5\"\n");
    let kinds: Vec<ColumnKind> = (0..5).map(|j| t.kind(j).clone()).collect();
    let text = |row| ColumnKind::Text { row };
    assert_eq!(kinds, [ColumnKind::Unnamed, text(0), ColumnKind::Numbers, ColumnKind::Numbers, text(1)]);
    assert_eq!(t.dataset().column_names(), ["x", "y"]);
    assert_eq!(t.text(1, 4), "4,5");
    assert_eq!(raw(&t, 1, 4), b"\"4,5\"");
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_the_way_out() {
    check_error("", "is empty; give a first line with the names of the columns, then one line per row");
    check_error("\r\n\n", "is empty; give a first line with the names of the columns, then one line per row");
    check_error("x,y\n", "has a header of 2 column(s) and no rows; give at least two rows of data");
    check_error("x,y, x\n1,2,3\n", "columns 1 and 3 are both called `x`; give every column its own name");
    check_error(
        "x,,\n1,2,3\n",
        "columns 2 and 3 have no name; name them in the first line (one column without a name may label the rows), or say how \
         many lines precede the table",
    );
    check_error(
        "x,y\n\"1\",2\n\n3\n",
        "row 2 (line 4), column `y`: the row ends before it, with 1 cells of 2; add the missing cells, or a separator for each gap",
    );
    check_error(
        "x,y\r\n1,2\r\n1,5,3,7\r\n",
        "row 2 (line 3), after column `y`: 4 cells where the header names 2 columns; quote cells that hold a separator, or name the extra columns",
    );
    check_error(
        "x,y\n1,\"2\n3,4\n",
        "row 1 (line 2): a quote is opened at `\"2\\n3,4\\n` and never closed; close it, or remove it",
    );
    check_error(
        "x,\"y\n1,2\n",
        "the header (line 1): a quote is opened at `\"y\\n1,2\\n` and never closed; close it, or remove it",
    );
    check_remedies(
        "x,y\na,1\n2,b\n",
        "row 1 (line 2), column `x`: `a` is not a number, and no other column holds only numbers and gaps; leave unknown cells empty, separate cells by commas and write decimals with a point, or declare another separator or decimal commas",
        &[Remedy::Delimiter(None), Remedy::DecimalComma],
    );
    check_remedies(
        "x,y\n1,1\n2,1.O\n3,2\n4,?\n5,3\n6,\n",
        "row 2 (line 3), column `y`: `1.O` is not a number, nor are 1 more, unlike 3 cells of the column; correct it, declare it a gap if it means one, or exclude the column",
        &gap_or_exclude("1.O", "y"),
    );
    check_remedies(
        "x:y\n1:2\n2;1\n",
        "row 1 (line 2), column `x:y`: `1:2` is not a number, and no other column holds only numbers and gaps; leave unknown cells empty, separate cells by commas and write decimals with a point, or declare another separator or decimal commas",
        &[Remedy::Delimiter(None), Remedy::DecimalComma],
    );
    check_remedies(
        "x,y\n1,2\n3,4\n5,\"1,5\"\n",
        "row 3 (line 4), column `y`: `1,5` is not a number, unlike 2 cells of the column; correct it, declare it a gap if it means one, or exclude the column",
        &[Remedy::DecimalComma, Remedy::Gaps("1,5".to_owned()), Remedy::Exclude("y".to_owned())],
    );
    for infinite in ["inf", "-Infinity", "1e999"] {
        check_error(
            &format!("x,y\n1,2\n3,{infinite}\n"),
            &format!(
                "row 2 (line 3), column `y`: `{infinite}` is not a finite number; correct the cell or leave it empty"
            ),
        );
    }
    check_remedies(
        "\u{feff}\u{feff}x\na\n",
        "row 1 (line 2), column `\u{feff}x`: `a` is not a number, and no other column holds only numbers and gaps; leave unknown cells empty, separate cells by commas and write decimals with a point, or declare another separator or decimal commas",
        &[Remedy::Delimiter(None), Remedy::DecimalComma],
    );
}

#[test]
fn a_quote_that_closes_early_is_text() {
    check_remedies(
        "x\n\"3\"4\n1\n2\n",
        "row 1 (line 2), column `x`: `34` is not a number, unlike 2 cells of the column; correct it, declare it a gap if it means one, or exclude the column",
        &gap_or_exclude("34", "x"),
    );
}

#[test]
fn another_format_is_recognized() {
    check_remedies(
        "PAR1\u{15}",
        "is not text but looks like Parquet; name the file .parquet, or give its format",
        &[Remedy::Format(Some("parquet"))],
    );
    assert!(matches!(csv::read(&b"\x1f\x8b\x08"[..]), Err(Error::NotText { word: "csv.gz", .. })));
}

#[test]
fn long_and_wild_cells_are_shown_short_and_harmless() {
    let error = csv::read(format!("x\n\x1b[31m{}\n1\n2\n", "long".repeat(50)).as_bytes()).expect_err("text");
    assert!(error.to_string().contains("`\\u{1b}[31mlong"), "{error}");
    assert!(error.to_string().len() < 300, "{error}");
    // What is shown in part cannot be declared a gap.
    assert_eq!(error.remedies(), [Remedy::Exclude("x".to_owned())]);
}

#[test]
fn an_infinity_in_a_text_column_is_text() {
    assert_eq!(table("x,y\n1,inf\n2,sup\n3,max\n").numeric_columns(), [0]);
}

#[test]
fn text_in_another_encoding_is_read_and_leaves_in_it() {
    let text = b"gr\xf6\xdfe,x\nk\xfcrzer,1\n\x81,2\n";
    let t = csv::read(&text[..]).expect("a table");
    assert_eq!((t.column_names()[0].as_str(), t.text(0, 0).as_str()), ("größe", "kürzer"));
    assert_eq!(t.notes(), [Note::Encoding { name: "windows-1252", certain: false }]);
    assert_eq!(rewritten(&t), text);

    for big in [false, true] {
        let bytes = |unit: u16| if big { unit.to_be_bytes() } else { unit.to_le_bytes() };
        let utf16 = |text: &str| text.encode_utf16().flat_map(bytes).collect::<Vec<u8>>();
        let text = "\u{feff}größe;x😀\r\nkürzer;1,5\r\nlänger;2\r\n";
        let t = csv::read(&utf16(text)[..]).expect("a table");
        assert_eq!(t.column_names(), ["größe", "x😀"]);
        assert_eq!(t.dataset().values().column(0), [1.5, 2.0]);
        assert_eq!(rewritten(&t), utf16(text));
        // Without a mark the zeros show it; half a character is none.
        assert_eq!(csv::read(&utf16("x,y\n1,2\n")[..]).expect("a table").n_columns(), 2);
        let odd = [&utf16(text)[..], b"\n"].concat();
        assert!(matches!(csv::read(&odd[..]), Err(Error::NotInEncoding { .. })));
    }

    let greek = ReadOptions { encoding: Some("iso-8859-7".to_owned()), ..Default::default() };
    let text = b"\xe1,x\n\xe2,1\n\xe3,2\n";
    let t = super::read(Input::Stream(&text[..]), Format::CSV, &greek).expect("a table");
    assert_eq!((t.column_names()[0].as_str(), t.text(1, 0).as_str()), ("α", "γ"));
    assert_eq!(rewritten(&t), text);
    let unknown = ReadOptions { encoding: Some("morse".to_owned()), ..Default::default() };
    assert!(matches!(read_with("x\n1\n", &unknown), Err(Error::UnknownEncoding { .. })));
    let utf8 = ReadOptions { encoding: Some("utf-8".to_owned()), ..Default::default() };
    let refused = super::read(Input::Stream(&text[..]), Format::CSV, &utf8);
    assert!(matches!(refused, Err(Error::NotInEncoding { at: 0, .. })));
}

#[test]
fn text_that_grows_when_it_is_decoded_stays_within_memory() {
    let text = [&b"x\n"[..], &b"\xe9".repeat(3000)].concat();
    let read = |most: u64| {
        let options = ReadOptions { max_memory: Some(most), ..Default::default() };
        super::read(Input::Stream(&text[..]), Format::CSV, &options)
    };
    assert!(matches!(read(3 * 5000), Err(Error::OverMemory { is_text: true, .. })));
    assert!(matches!(read(3 * 7000), Err(Error::NoNumericColumn { .. })));
}

fn read_with(text: &str, options: &ReadOptions) -> Result<Table, Error> {
    super::read(Input::Stream(text.as_bytes()), Format::CSV, options)
}

fn chosen(columns: &[&str], exclude: &[&str]) -> ReadOptions {
    let owned = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
    let columns = if columns.is_empty() { Columns::Numbers } else { Columns::Listed(owned(columns)) };
    ReadOptions {
        choice: ColumnChoice { columns, exclude: owned(exclude), id: Vec::new() },
        ..Default::default()
    }
}

#[test]
fn columns_are_chosen_by_name_number_or_range() {
    let text = "year,a,b:c,d,3\n1,2,3,4,5\n6,7,8,9,10\n";
    let names = |columns: &[&str], exclude: &[&str]| {
        read_with(text, &chosen(columns, exclude)).expect("columns").dataset().column_names().to_vec()
    };
    assert_eq!(names(&[], &["year"]), ["a", "b:c", "d", "3"]);
    assert_eq!(names(&["a:d"], &[]), ["a", "b:c", "d"]);
    assert_eq!(names(&["b:c"], &[]), ["b:c"]); // a name before a range
    assert_eq!(names(&["a:b:c"], &[]), ["a", "b:c"]);
    assert_eq!(names(&["2:"], &["d"]), ["a", "b:c", "3"]);
    assert_eq!(names(&[":2"], &[]), ["year", "a"]);
    assert_eq!(names(&["3"], &[]), ["3"]); // a name before a number
    let error =
        |columns: &[&str]| read_with(text, &chosen(columns, &[])).expect_err("no such column").to_string();
    assert_eq!(error(&["e"]), "there is no column `e`; there are `year`, `a`, `b:c`, `d`, `3`");
    assert_eq!(error(&["d:a"]), "the range `d:a` ends before it begins; turn it around");
}

#[test]
fn the_columns_of_a_model_are_found_by_their_names_alone() {
    let of_model = |names: &[&str]| {
        let needed = names.iter().map(|&n| n.to_owned()).collect();
        let columns = Columns::OfModel { needed, welcome: vec!["nowhere".to_owned()] };
        let choice = ColumnChoice { columns, ..Default::default() };
        read_with("y,x,z,note\n1,2,3,a\n", &ReadOptions { choice, ..Default::default() })
    };
    assert_eq!(of_model(&["x", "y"]).expect("both are there").dataset().column_names(), ["y", "x"]);
    assert_eq!(
        of_model(&["x", "1"]).expect_err("no column of that name").to_string(),
        "lacks `1`, which the model needs (and has `y`, `z`, `note`, which it does not know); columns are matched by name, in any order: rename or add them (a column of gaps will do)"
    );
    assert!(matches!(of_model(&["note"]), Err(Error::TextAmongNumbers { .. })));
}

#[test]
fn further_gaps_are_words_or_numbers_however_written() {
    let options = ReadOptions { gaps: vec!["?".to_owned(), "-99".to_owned()], ..Default::default() };
    let t = read_with("x,y\n1,?\n-99,2\n-99.00,\" -9.9e1\"\n-98,3\n", &options).expect("numbers");
    assert_eq!(t.dataset().n_observed_by_column(), [2, 2]);
}

#[test]
fn decimal_commas_are_read_and_written() {
    let options = ReadOptions { decimal_comma: Some(true), ..Default::default() };
    let t = read_with("x;y\n1,5;2\n2,5;\n-1e3;,25\n", &options).expect("numbers");
    assert_eq!(t.dataset().values().column(0), [1.5, 2.5, -1000.0]);
    let values = Matrix::from_rows(&[[1.5, 2.0], [2.5, 0.125], [-1000.0, 0.25]]);
    let mut out = Vec::new();
    t.write_filled(&values, Format::CSV, &mut out).expect("memory takes all");
    assert_eq!(String::from_utf8(out).expect("UTF-8"), "x;y\n1,5;2\n2,5;0,125\n-1e3;,25\n");
    let clash = ReadOptions { delimiter: Some(Delimiter::COMMA), ..options };
    assert!(matches!(read_with("x\n1\n", &clash), Err(Error::BadDelimiter { .. })));
}

#[test]
fn another_layout_keeps_the_digits_of_observed_cells() {
    let t = table("id,x,y\n\"a,b\",+1.50,\n\"t\tab\",\" 2\",3\n");
    let values = Matrix::from_rows(&[[1.5, 0.5], [2.0, 3.0]]);
    let mut out = Vec::new();
    t.write_filled(&values, Format { layout: Layout::Tsv, gzip: false }, &mut out).expect("memory takes all");
    assert_eq!(String::from_utf8(out).expect("UTF-8"), "id\tx\ty\na,b\t+1.50\t0.5\n\"t\tab\"\t 2\t3\n");
}

#[test]
fn gzip_is_read_and_written_and_a_piece_of_it_is_refused() {
    let gzip = Format { layout: Layout::Csv, gzip: true };
    let t = table("x,y\n1,2\n3,4\n");
    let mut out = Vec::new();
    t.write_filled(t.dataset().values(), gzip, &mut out).expect("memory takes all");
    let read = |bytes: &[u8]| super::read(Input::Stream(bytes), gzip, &ReadOptions::default());
    assert_eq!(read(&out).expect("whole").dataset(), t.dataset());
    for end in 0..out.len() {
        let error = read(&out[..end]).expect_err("a piece");
        assert!(matches!(error, Error::Gzip { .. } | Error::Empty), "{end}: {error:?}");
    }
    assert!(matches!(read(b"x,y\n1,2\n"), Err(Error::Gzip { .. })));
}

#[test]
fn blank_lines_are_counted() {
    assert_eq!(table("\nx,y\n1,2\r\n\r\n\n3,4\n\n\n").n_blank_lines(), 3);
    assert_eq!(table("x,y\r\n1,2\r\n").n_blank_lines(), 0);
}

#[test]
fn rows_too_short_for_their_header_claim_no_memory() {
    let names: Vec<String> = (0..20_000).map(|j| format!("c{j}")).collect();
    let text = format!("{}\n{}", names.join(","), "1\n".repeat(1_000_000));
    assert!(matches!(csv::read(text.as_bytes()), Err(Error::ShortRow { .. })));
}

#[test]
fn cells_are_listed_by_row_number_and_column_name() {
    let t = table("id,\"a,b\",y\nn,,1\ns,2,\n");
    let values = filled(t.dataset());
    let mut out = Vec::new();
    t.cells_sheet(&values, 0.9).unwrap().write(Format::CSV, &mut out).expect("memory takes all");
    let text = String::from_utf8(out).expect("UTF-8");
    let starts = ["row,column,value,mean,sd,lower,upper", "1,\"a,b\",", "2,y,"];
    assert!(text.lines().zip(starts).all(|(line, start)| line.starts_with(start)), "{text}");
    let row: Vec<f64> = text
        .lines()
        .nth(2)
        .expect("two cells")
        .split(',')
        .skip(2)
        .map(|v| v.parse().expect("numbers"))
        .collect();
    let (value, mean, sd, lower, upper) = (row[0], row[1], row[2], row[3], row[4]);
    assert_eq!(value, mean);
    assert!((lower - (mean - 1.644_853_626_951_47 * sd)).abs() < 1e-9);
    assert!((upper + lower - 2.0 * mean).abs() < 1e-12);
    assert!(matches!(t.cells_sheet(&values, 1.0), Err(Error::Request(_))));
}

#[test]
fn filled_values_of_another_table_are_refused() {
    let other = filled(table("x\n1\n2\n").dataset());
    assert!(matches!(
        table("x,y\n1,\n").write_filled(other.values(), Format::CSV, Vec::new()),
        Err(Error::OtherTable { .. })
    ));
}

/// A cell as it might be typed.
fn cell() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => any::<f64>().prop_filter("finite", |v| v.is_finite()).prop_map(|v| format!("{v:?}")),
        2 => prop::sample::select(vec!["1e-7", "+.5", " 3", "\"4\"", "5.", "-0", "\" 6 \"", "007", "8 \t"])
            .prop_map(str::to_owned),
        2 => prop::sample::select(vec!["", "NA", "nan", "null", "\"\"", " "]).prop_map(str::to_owned),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zé '\"]{0,6}x".prop_filter("quotes only inside", |t| !t.starts_with('"')),
        "[a-z,;|\r\n\" ]{0,8}x".prop_map(|t| format!("\"{}\"", t.replace('"', "\"\""))),
    ]
}

proptest! {
    #[test]
    fn any_table_reads_like_the_csv_crate_and_leaves_untouched(
        rows in prop::collection::vec((text(), cell(), cell(), text()), 1..12),
        delimiter in prop::sample::select(vec![',', ';', '|', '\t']),
        line_end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
        final_newline: bool,
    ) {
        // What is typed with commas is typed the same with another separator; cells that hold one are
        // quoted, and so is everything that a tab would be trimmed from.
        prop_assume!(delimiter != '\t' || rows.iter().all(|(_, b, c, _)| !b.contains('\t') && !c.contains('\t')));
        let line = |cells: [&str; 4]| cells.join(&delimiter.to_string());
        let mut text = line(["id", "x", "\"y\"", "note"]) + line_end;
        let lines: Vec<String> = rows.iter().map(|(a, b, c, d)| line([a, b, c, d])).collect();
        text += &lines.join(line_end);
        if final_newline {
            text += line_end;
        }
        let options = ReadOptions { delimiter: Some(Delimiter::Character(delimiter as u8)), ..Default::default() };
        let table = read_with(&text, &options).expect("a table");
        let theirs = |text: &[u8]| -> Vec<Vec<String>> {
            let mut reader = ::csv::ReaderBuilder::new().delimiter(delimiter as u8).from_reader(text);
            reader.records().map(|r| r.expect("a record").iter().map(str::to_owned).collect()).collect()
        };
        let before = theirs(text.as_bytes());
        prop_assert_eq!(before.len(), table.n_rows());
        for (i, record) in before.iter().enumerate() {
            for (j, cell) in record.iter().enumerate() {
                prop_assert_eq!(cell, &table.text(i, j));
            }
        }
        prop_assert_eq!(table.numeric_columns(), [1, 2]);

        // Filling changes gaps and nothing else, and the numbers read back to the last bit.
        let data = table.dataset();
        let filled = filled(data);
        let mut out = Vec::new();
        table.write_filled(filled.values(), Format::CSV, &mut out).expect("memory takes all");
        let after = super::read(Input::Stream(&out[..]), Format::CSV, &options).expect("still a table");
        for i in 0..table.n_rows() {
            for j in 0..4 {
                let gap = (1..=2).contains(&j) && data.row(i)[j - 1].is_nan();
                if gap {
                    let value: f64 = after.text(i, j).parse().expect("a number");
                    prop_assert_eq!(value.to_bits(), filled.values()[(i, j - 1)].to_bits());
                } else {
                    prop_assert_eq!(raw(&after, i, j), raw(&table, i, j));
                }
            }
        }
        if data.is_complete() {
            prop_assert_eq!(out, text.as_bytes());
        }
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(prop_oneof![
        3 => prop::sample::select(b"\",\r\n1.eNA-".to_vec()), 1 => any::<u8>()
    ], 0..60)) {
        let _ = csv::read(&bytes[..]);
    }
}

#[test]
fn numbers_are_written_as_debug_formatting_writes_them() {
    let written = |value: f64| {
        let mut out = Vec::new();
        csv::push_shortest(value, &mut out);
        String::from_utf8(out).expect("digits")
    };
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let bits = (0..200_000).map(|_| f64::from_bits(rng.random())).filter(|v| v.is_finite());
    let mut same = ChaCha8Rng::seed_from_u64(2);
    let usual = (0..200_000).map(|k| same.random_range(-1.0..1.0) * 10_f64.powi(k % 40 - 12));
    let short = (0..100_000).map(|k| f64::from(k - 50_000) / 8.0);
    let edges =
        [0.0, -0.0, 1e-4, 9.999e-5, 1e-5, 1e15, 1e16, 9_999_999_999_999_998.0, 1e17, f64::MAX, 5e-324, 0.1];
    let around = edges.iter().flat_map(|v| [*v, -v, v.next_up(), v.next_down()]).filter(|v| v.is_finite());
    // Multiples of powers of ½, whose last digit may be a 5 to be rounded away.
    let mut dyadic = ChaCha8Rng::seed_from_u64(3);
    let dyadic =
        (0..400_000).map(|k| (dyadic.random::<u64>() >> (11 + k % 40)) as f64 * 0.5_f64.powi(k / 40 % 45));
    for value in bits.chain(usual).chain(short).chain(around).chain(dyadic) {
        assert_eq!(written(value), format!("{value:?}"));
    }
}

#[test]
fn a_table_longer_than_a_block_is_written_in_order() {
    // 60000 rows of about 20 bytes are several blocks; every seventh row has a gap.
    let cell = |i: usize| if i.is_multiple_of(7) { String::new() } else { format!("{i}.5") };
    let lines = |cell: &dyn Fn(usize) -> String| -> String {
        let line = |i: usize| format!("row {i},{},\"{}\"\r\n", cell(i), i % 3);
        (0..60_000).map(line).collect::<Vec<_>>().concat()
    };
    let text = format!("name,a,b\r\n{}", lines(&cell));
    let table = csv::read(text.as_bytes()).expect("a table");
    let values = crate::Matrix::from_fn(60_000, 2, |i, j| if j == 0 { i as f64 + 0.25 } else { 0.0 });
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        let mut out = Vec::new();
        pool.install(|| table.write_filled(&values, Format::CSV, &mut out)).expect("memory takes all");
        let filled = |i: usize| if i.is_multiple_of(7) { format!("{i}.25") } else { cell(i) };
        assert!(out == format!("name,a,b\r\n{}", lines(&filled)).as_bytes());
    }
}
