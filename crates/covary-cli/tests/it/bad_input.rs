//! Each kind of bad input fails with its place and a remedy, and writes nothing.

use super::{folder_with_examples, run_in, succeed};
use std::fs;
use std::io::Write;

struct Bad {
    folder: tempfile::TempDir,
}

impl Bad {
    fn new() -> Self {
        let folder = folder_with_examples();
        succeed(folder.path(), "fit -q examples/wine_gaps.csv --components 2 -o wine.covary");
        Self { folder }
    }

    /// `impute` refuses these bytes under this name, saying each of `says`.
    #[track_caller]
    fn refuses(&self, name: &str, bytes: &[u8], says: &[&str]) {
        fs::write(self.folder.path().join(name), bytes).expect("writable");
        self.fails(&format!("impute {name} -o out.csv"), 1, says);
    }

    #[track_caller]
    fn fails(&self, command: &str, code: i32, says: &[&str]) {
        let said = run_in(self.folder.path(), &command.split_whitespace().collect::<Vec<_>>(), b"");
        assert_eq!(said.code, Some(code), "covary {command}\n{}", said.err);
        for words in says {
            assert!(said.err.contains(words), "covary {command}: expected `{words}` in\n{}", said.err);
        }
        assert!(!said.err.contains("panicked"), "{}", said.err);
        assert!(!self.folder.path().join("out.csv").exists(), "nothing is written");
    }
}

#[test]
fn text_tables_that_are_none() {
    let bad = Bad::new();
    bad.refuses(
        "ragged.csv",
        b"x,y\n1,2\n3\n",
        &["ragged.csv: row 2 (line 3), column `y`", "add the missing cells"],
    );
    bad.refuses(
        "long.csv",
        b"x,y\n1,2\n3,4,5\n",
        &["long.csv: row 2 (line 3), after column `y`", "quote cells"],
    );
    bad.refuses(
        "typo.csv",
        b"x,y\n1,2\n3,4\n5,6..1\n",
        &["typo.csv: row 3 (line 4), column `y`: `6..1`", "(--gaps '6..1', --exclude 'y')"],
    );
    bad.refuses(
        "inf.csv",
        b"x,y\n1,2\n-inf,3\n",
        &["inf.csv: row 2 (line 3), column `x`: `-inf`", "leave it empty"],
    );
    bad.refuses("empty.csv", b"", &["empty.csv: is empty", "first line"]);
    bad.refuses("header.csv", b"x,y\n", &["header.csv: has a header of 2 column(s) and no rows"]);
    bad.refuses("twice.csv", b"x,x\n1,2\n", &["twice.csv: columns 1 and 2 are both called `x`"]);
    bad.refuses("nameless.csv", b"x,,\n1,2,3\n", &["columns 2 and 3 have no name", "name them"]);
    bad.refuses("wide.csv", b"\xff\xfex\0,\0y", &["is not UTF-16LE text: byte 7", "(--encoding NAME)"]);
    bad.refuses("hollow.csv", b"x,y\n,\n,NA\n,\n", &["column `x` has no observed value"]);
    bad.refuses(
        "single.csv",
        b"x\n1,5\n2,5\n",
        &["2 cells where the header names 1 column", "(--decimal-comma)"],
    );
    bad.refuses("book.xlsx", b"x,y\n1,2\n", &["book.xlsx: is not xlsx", "(--format FORMAT)"]);
    bad.refuses("book.csv", b"PK\x03\x04", &["a workbook (.xlsx, .ods)", "(--format xlsx)"]);
    bad.refuses("old.xls", b"\xd0\xcf\x11\xe0", &["an old workbook (.xls): save it as .xlsx"]);
    bad.refuses(
        "words.csv",
        b"x,y\na,b\nc,d\n",
        &["row 1 (line 2), column `x`: `a` is not a number", "(--delimiter CHAR, --decimal-comma)"],
    );
    bad.refuses("columnar.csv", b"PAR1\x15", &["looks like Parquet", "(--format parquet)"]);
    bad.refuses("quote.csv", b"x,it's\n1,2\n3,4\n5,o'\n", &[r"(--gaps 'o'\''', --exclude 'it'\''s')"]);
    bad.fails("impute nowhere.csv -o out.csv", 1, &["nowhere.csv: cannot be read: "]);
    bad.fails("impute examples -o out.csv", 1, &["examples: the folder has no file *.parquet"]);
}

#[test]
fn a_gzip_that_ends_early_or_has_more_behind_it() {
    let bad = Bad::new();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(b"x,y\n1,2\n3,4\n5,\n").expect("memory takes all");
    let whole = encoder.finish().expect("memory takes all");
    bad.refuses(
        "cut.csv.gz",
        &whole[..whole.len() - 9],
        &["cut.csv.gz: is not a whole gzip file", "download it again"],
    );
    let more = [&whole[..], b"more"].concat();
    bad.refuses("more.csv.gz", &more, &["is not a whole gzip file", "a few other bytes stand behind it"]);
    bad.refuses("plain.csv.gz", b"x,y\n1,2\n", &["is not a whole gzip file", "remove `.gz`"]);
}

#[test]
fn numpy_files_of_the_wrong_kind() {
    let bad = Bad::new();
    let npy = |header: &str, data: &[u8]| {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend_from_slice(&u16::try_from(header.len()).expect("short").to_le_bytes());
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(data);
        bytes
    };
    let header = |descr: &str, shape: &str| {
        format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n")
    };
    bad.refuses("text.npy", b"x,y\n1,2\n", &["text.npy: ", "(--format FORMAT)"]);
    bad.refuses("text.npz", b"x,y\n1,2\n", &["text.npz: ", "(--format FORMAT)"]);
    bad.refuses("text.parquet", b"x,y\n1,2\n", &["text.parquet: is not Parquet", "(--format FORMAT)"]);
    bad.refuses("objects.npy", &npy(&header("'|O'", "(2, 2)"), &[0; 32]), &["objects.npy: ", "float64"]);
    bad.refuses("complex.npy", &npy(&header("'<c16'", "(2, 2)"), &[0; 64]), &["complex.npy: "]);
    bad.refuses("cube.npy", &npy(&header("'<f8'", "(2, 2, 2)"), &[0; 64]), &["cube.npy: "]);
    bad.refuses("cut.npy", &npy(&header("'<f8'", "(2, 2)"), &[0; 31]), &["cut.npy: "]);
    let wide = npy(&header("'<i8'", "(2, 1)"), &9_007_199_254_740_993_i64.to_le_bytes().repeat(2));
    bad.refuses("wide.npy", &wide, &["more digits than a float64 holds", "(--exclude 'x1')"]);
    // A hundred bytes that claim 10^12 cells.
    bad.refuses("huge.npy", &npy(&header("'<f8'", "(1000000, 1000000)"), &[0; 8]), &["huge.npy: "]);
}

#[test]
fn model_files_that_are_none() {
    let bad = Bad::new();
    let root = bad.folder.path();
    let whole = fs::read(root.join("wine.covary")).expect("fitted");
    let score = |name: &str, bytes: &[u8], says: &[&str]| {
        fs::write(root.join(name), bytes).expect("writable");
        bad.fails(&format!("score {name} examples/wine_gaps.csv -o out.csv"), 1, says);
    };
    score("cut.covary", &whole[..whole.len() - 1], &["cut.covary: "]);
    score(
        "foreign.covary",
        b"x,y\n1,2\n",
        &["foreign.covary: is not a covary model file: it looks like text", "give a file that covary wrote"],
    );
    score("empty.covary", b"", &["empty.covary: "]);
    let text = b"format_version\\\":3";
    let at = whole.windows(text.len()).position(|w| w == text).expect("a version") + text.len() - 1;
    let mut newer = whole.clone();
    newer[at] = b'9';
    score("newer.covary", &newer, &["newer.covary: ", "version 9", "upgrade"]);
    let mut flipped = whole.clone();
    *flipped.last_mut().expect("a file") ^= 1;
    score(
        "flipped.covary",
        &flipped,
        &["flipped.covary: is a damaged model file: its checksum", "fit again"],
    );
    bad.fails("score examples/wine.csv examples/wine.csv -o out.csv", 1, &["examples/wine.csv: "]);
    bad.fails("inspect nowhere.covary", 1, &["nowhere.covary: cannot be read"]);
}

#[test]
fn columns_that_do_not_match_the_model() {
    let bad = Bad::new();
    let root = bad.folder.path();
    let wine = fs::read_to_string(root.join("examples/wine.csv")).expect("shipped");
    fs::write(root.join("renamed.csv"), wine.replacen("proline", "Proline", 1)).expect("writable");
    bad.fails(
        "transform wine.covary renamed.csv -o out.csv",
        1,
        &["renamed.csv: lacks `proline`, which the model needs (and has `Proline`", "rename or add them"],
    );
    let texted = wine.replacen("14.23,", "unknown?,", 1);
    assert_ne!(texted, wine);
    fs::write(root.join("texted.csv"), texted).expect("writable");
    bad.fails(
        "score wine.covary texted.csv -o out.csv",
        1,
        &["texted.csv: row 1 (line 2), column `alcohol`: `unknown?`"],
    );
}

#[test]
fn outputs_that_must_not_be_written() {
    let bad = Bad::new();
    let root = bad.folder.path();
    let before = fs::read(root.join("examples/wine_gaps.csv")).expect("shipped");
    for command in [
        "impute examples/wine_gaps.csv -o examples/wine_gaps.csv",
        "impute examples/wine_gaps.csv -o examples/../examples/wine_gaps.csv",
        "fit examples/wine_gaps.csv -o examples/wine_gaps.csv",
        "transform wine.covary examples/wine_gaps.csv -o examples/wine_gaps.csv",
        "transform wine.covary examples/wine_gaps.csv -o wine.covary",
        "sample wine.covary --rows 3 -o wine.covary",
    ] {
        bad.fails(command, 2, &["is an input and would be overwritten"]);
    }
    bad.fails("impute examples/wine_gaps.csv -o a.csv --cells a.csv", 2, &["same place"]);
    bad.fails("impute examples/wine_gaps.csv -o a.csv --draws 2 --cells a-1.csv", 2, &["same place"]);
    assert_eq!(fs::read(root.join("examples/wine_gaps.csv")).expect("still there"), before);
    bad.fails("impute examples/wine_gaps.csv -o no/such/folder/out.csv", 1, &["cannot be written"]);
    bad.fails("impute examples/wine_gaps.csv -o examples", 1, &["examples: cannot be written"]);
}
