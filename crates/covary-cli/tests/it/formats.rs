//! The same table in every format gives the same answers, and keeps what it held.

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
