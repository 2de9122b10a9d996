use super::{ColumnKind, Error, Table, csv};
use crate::model::{Density, Imputed, LinearGaussian, Noise};
use crate::{Dataset, Matrix};
use proptest::prelude::*;

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

fn rewritten(table: &Table) -> Vec<u8> {
    let mut out = Vec::new();
    table.write_filled(&filled(&table.dataset().expect("numbers")), &mut out).expect("memory takes all");
    out
}

#[track_caller]
fn check_untouched(text: &str) {
    assert_eq!(String::from_utf8(rewritten(&table(text))).expect("UTF-8"), text);
}

#[track_caller]
fn check_error(text: &str, says: &str) {
    let error = csv::read(text.as_bytes()).and_then(|t| t.dataset().map(|_| ())).expect_err("an error");
    assert_eq!(error.to_string(), says);
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
    let cells = filled(&table(text).dataset().expect("numbers"));
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
fn gaps_are_four_words_in_any_case_and_a_signed_nan() {
    let t = table("x,y\n1,\n1,NA\n1,na\n1,NaN\n1,nan\n1,-nan\n1,null\n1,NULL\n1,\" na \"\n1,2\n");
    assert_eq!(t.dataset().expect("numbers").n_observed_by_column(), [10, 1]);
}

#[test]
fn columns_that_are_not_numbers_are_kept_aside() {
    let t = table(",site,x,y,note\n1,north,1,NA,\n2,NA,2,5,\"4,5\"\n");
    let kinds: Vec<ColumnKind> = (0..5).map(|j| t.kind(j)).collect();
    let text = |row| ColumnKind::Text { row };
    assert_eq!(kinds, [ColumnKind::Unnamed, text(0), ColumnKind::Numbers, ColumnKind::Numbers, text(1)]);
    assert_eq!(t.dataset().expect("numbers").column_names(), ["x", "y"]);
    assert_eq!(t.text(1, 4), "4,5");
    assert_eq!(t.raw(1, 4), b"\"4,5\"");
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_the_way_out() {
    check_error("", "is empty; give a first line with the names of the columns, then one line per row");
    check_error("x,y\n", "has a header of 2 column(s) and no rows; give at least two rows of data");
    check_error("x,y, x\n1,2,3\n", "columns 1 and 3 are both called `x`; give every column its own name");
    check_error(
        "x,y\n\"1\",2\n\n3\n",
        "row 2 (line 4), column `y`: the row ends before it, with 1 cells of 2; add the missing cells, or a comma for each gap",
    );
    check_error(
        "x,y\r\n1,2\r\n1,5,3,7\r\n",
        "row 2 (line 3), after column `y`: 4 cells where the header names 2 columns; quote cells that hold a comma, or name the extra columns",
    );
    check_error(
        "x,y\n1,\"2\n3,4\n",
        "row 1, column `y` (line 2): a quote is opened and never closed; close it, or remove it",
    );
    check_error(
        "x,\"y\n1,2\n",
        "the header (line 1): a quote is opened and never closed; close it, or remove it",
    );
    check_error(
        "x,y\na,1\n2,b\n",
        "row 1, column `x`: `a` is not a number, and no other column holds only numbers and gaps; separate cells by commas, use a point for decimals and leave unknown cells empty",
    );
    for infinite in ["inf", "-Infinity", "1e999"] {
        check_error(
            &format!("x,y\n1,2\n3,{infinite}\n"),
            &format!(
                "row 2, column `y`: `{infinite}` is not a finite number; correct the cell or leave it empty"
            ),
        );
    }
}

#[test]
fn an_infinity_in_a_text_column_is_text() {
    assert_eq!(table("x,y\n1,inf\n2,sup\n").numeric_columns(), [0]);
}

#[test]
fn bytes_that_are_not_utf_8_pass_through() {
    let text = b"gr\xf6\xdfe,x\nk\xfcrzer,1\n,2\n";
    let t = csv::read(&text[..]).expect("a table");
    assert_eq!(rewritten(&t), text);
}

#[test]
fn cells_are_listed_by_row_number_and_column_name() {
    let t = table("id,\"a,b\",y\nn,,1\ns,2,\n");
    let values = filled(&t.dataset().expect("numbers"));
    let mut out = Vec::new();
    t.write_cells(&values, 0.9, &mut out).expect("memory takes all");
    let text = String::from_utf8(out).expect("UTF-8");
    let starts = ["row,column,mean,sd,lower,upper", "1,\"a,b\",", "2,y,"];
    assert!(text.lines().zip(starts).all(|(line, start)| line.starts_with(start)), "{text}");
    let row: Vec<f64> = text
        .lines()
        .nth(2)
        .expect("two cells")
        .split(',')
        .skip(2)
        .map(|v| v.parse().expect("numbers"))
        .collect();
    let (mean, sd, lower, upper) = (row[0], row[1], row[2], row[3]);
    assert!((lower - (mean - 1.644_853_626_951_47 * sd)).abs() < 1e-9);
    assert!((upper + lower - 2.0 * mean).abs() < 1e-12);
    assert!(matches!(t.write_cells(&values, 1.0, Vec::new()), Err(Error::Request(_))));
}

#[test]
fn filled_values_of_another_table_are_refused() {
    let other = filled(&table("x\n1\n2\n").dataset().expect("numbers"));
    assert!(matches!(table("x,y\n1,\n").write_filled(&other, Vec::new()), Err(Error::OtherTable { .. })));
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
        "[a-z,\r\n\" ]{0,8}x".prop_map(|t| format!("\"{}\"", t.replace('"', "\"\""))),
    ]
}

proptest! {
    #[test]
    fn any_table_reads_like_the_csv_crate_and_leaves_untouched(
        rows in prop::collection::vec((text(), cell(), cell(), text()), 1..12),
        line_end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
        final_newline: bool,
    ) {
        let mut text = format!("id,x,\"y\",note{line_end}");
        let lines: Vec<String> = rows.iter().map(|(a, b, c, d)| format!("{a},{b},{c},{d}")).collect();
        text += &lines.join(line_end);
        if final_newline {
            text += line_end;
        }
        let table = table(&text);
        let theirs = |text: &[u8]| -> Vec<Vec<String>> {
            let mut reader = ::csv::Reader::from_reader(text);
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
        let data = table.dataset().expect("finite numbers");
        let filled = filled(&data);
        let mut out = Vec::new();
        table.write_filled(&filled, &mut out).expect("memory takes all");
        let after = csv::read(&out[..]).expect("still a table");
        for i in 0..table.n_rows() {
            for j in 0..4 {
                let gap = (1..=2).contains(&j) && data.row(i)[j - 1].is_nan();
                if gap {
                    let value: f64 = after.text(i, j).parse().expect("a number");
                    prop_assert_eq!(value.to_bits(), filled.values()[(i, j - 1)].to_bits());
                } else {
                    prop_assert_eq!(after.raw(i, j), table.raw(i, j));
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
        if let Ok(table) = csv::read(&bytes[..]) {
            let _ = table.dataset();
        }
    }
}
