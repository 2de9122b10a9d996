use super::arrow;
use crate::io::Rounding;
use crate::io::{
    self, Cells, ColumnChoice, ColumnKind, Columns, Error, Format, Input, Layout, ReadOptions, Sheet, Table,
    csv,
};
use crate::{Dataset, Matrix, Remedy};
use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::types::{Float16Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float32Array,
    Float64Array, Int8Array, Int32Array, Int64Array, NullArray, PrimitiveArray, RecordBatch, StringArray,
    StringViewArray, TimestampMicrosecondArray, UInt64Array,
};
use arrow_ipc::reader::FileReader;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_ipc::{Block, CompressionType, root_as_footer};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat_batches;
use proptest::prelude::*;
use std::sync::Arc;

const ARROW: Format = Format { layout: Layout::Arrow, gzip: false };
const NAN: f64 = f64::NAN;

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, array)| {
            let metadata = [("unit".to_owned(), format!("of {name}"))];
            Field::new(*name, array.data_type().clone(), array.is_nullable()).with_metadata(metadata)
        })
        .collect();
    let metadata = [("origin".to_owned(), "a test".to_owned()), ("a".to_owned(), "b".to_owned())];
    let schema = Schema::new_with_metadata(fields, metadata);
    RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|c| c.1).collect()).expect("a batch")
}

fn numbers(values: &[f64]) -> ArrayRef {
    Arc::new(values.iter().map(|v| Some(*v).filter(|v| !v.is_nan())).collect::<Float64Array>())
}

/// The bytes of an Arrow file, cut into batches of `rows`.
fn arrow_file(whole: &RecordBatch, rows: usize, codec: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(codec).expect("a codec");
    let mut writer =
        FileWriter::try_new_with_options(Vec::new(), &whole.schema(), options).expect("a writer");
    for start in (0..whole.num_rows()).step_by(rows) {
        writer.write(&whole.slice(start, rows.min(whole.num_rows() - start))).expect("memory takes all");
    }
    writer.into_inner().expect("memory takes all")
}

fn arrow_stream(whole: &RecordBatch) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &whole.schema()).expect("a writer");
    writer.write(whole).expect("memory takes all");
    writer.into_inner().expect("memory takes all")
}

fn read_as(bytes: &[u8], format: Format, options: &ReadOptions) -> Result<Table, Error> {
    io::read(Input::Stream(bytes), format, options)
}

fn table(whole: &RecordBatch) -> Table {
    read_as(&arrow_file(whole, 3, None), ARROW, &ReadOptions::default()).expect("a table")
}

fn written(table: &Table, values: &Matrix, format: Format) -> Vec<u8> {
    let mut out = Vec::new();
    table.write_filled(values, format, &mut out).expect("memory takes all");
    out
}

/// What the crate itself reads, as one batch.
fn arrow_content(bytes: &[u8]) -> RecordBatch {
    let reader = FileReader::try_new(std::io::Cursor::new(bytes), None).expect("a file");
    let schema = reader.schema();
    concat_batches(&schema, &reader.map(|b| b.expect("a batch")).collect::<Vec<_>>()).expect("one schema")
}

/// The table's numbers with every gap filled by `value`.
fn filled(data: &Dataset, value: f64) -> Matrix {
    let v = data.values();
    Matrix::from_fn(v.n_rows(), v.n_columns(), |i, j| if v[(i, j)].is_nan() { value } else { v[(i, j)] })
}

fn choice(columns: Columns, exclude: &[&str]) -> ReadOptions {
    let exclude = exclude.iter().map(|&e| e.to_owned()).collect();
    ReadOptions { choice: ColumnChoice { columns, exclude, ..Default::default() }, ..Default::default() }
}

#[track_caller]
fn check_error(whole: &RecordBatch, options: &ReadOptions, says: &str) -> Vec<Remedy> {
    let error = read_as(&arrow_file(whole, 4, None), ARROW, options).expect_err("an error");
    assert_eq!(error.to_string(), says);
    error.remedies()
}

/// One column of each kind.
fn all_kinds() -> RecordBatch {
    let beyond = (1_i64 << 53) + 1;
    let decimal =
        |v: Vec<Option<i128>>| Decimal128Array::from(v).with_precision_and_scale(30, 4).expect("fits");
    let half = |v: f64| <Float16Type as arrow_array::types::ArrowPrimitiveType>::Native::from_f64(v);
    let words: DictionaryArray<Int32Type> = vec![Some("a"), None, Some("b"), Some("a")].into_iter().collect();
    let times = TimestampMicrosecondArray::from(vec![Some(0), None, Some(1_500_000), Some(-1)]);
    batch(vec![
        ("f64", numbers(&[0.1, NAN, -0.0, 1e300])),
        ("nan", Arc::new(Float64Array::from(vec![0.5, NAN, NAN, 2.0]))),
        ("f32", Arc::new(Float32Array::from(vec![Some(0.1), None, Some(-2.5), Some(3.0)]))),
        (
            "f16",
            Arc::new(PrimitiveArray::<Float16Type>::from(vec![Some(half(0.5)), None, Some(half(2.0)), None])),
        ),
        ("i8", Arc::new(Int8Array::from(vec![Some(-128), None, Some(127), Some(0)]))),
        ("i32", Arc::new(Int32Array::from(vec![7, -9, 11, 0]))),
        ("i64", Arc::new(Int64Array::from(vec![Some(beyond), None, Some(i64::MIN), Some(i64::MAX)]))),
        ("u64", Arc::new(UInt64Array::from(vec![Some(u64::MAX), Some(1), None, Some(2)]))),
        ("decimal", Arc::new(decimal(vec![Some(12_345), None, Some(10_i128.pow(29) + 1), Some(-7)]))),
        ("text", Arc::new(StringArray::from(vec![Some("1"), None, Some(""), Some("é, \"q\"")]))),
        (
            "view",
            Arc::new(StringViewArray::from(vec![
                Some("a long text that is not inlined"),
                None,
                Some("b"),
                None,
            ])),
        ),
        ("bytes", Arc::new(BinaryArray::from(vec![Some(&b"\xff\x00"[..]), None, Some(b""), Some(b"z")]))),
        ("yes", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true)]))),
        ("date", Arc::new(Date32Array::from(vec![Some(0), None, Some(19_000), Some(-1)]))),
        ("time", Arc::new(times.clone())),
        ("zone", Arc::new(times.with_timezone("Europe/Paris"))),
        ("word", Arc::new(words)),
        ("nothing", Arc::new(NullArray::new(4))),
    ])
}

#[test]
fn numbers_are_numbers_and_all_else_is_kept_aside() {
    let t = table(&all_kinds());
    let names = ["f64", "nan", "f32", "f16", "i8", "i32", "i64", "u64", "decimal"];
    assert_eq!(t.dataset().column_names(), names);
    assert_eq!(t.dataset().n_observed_by_column(), [3, 2, 3, 2, 3, 4, 3, 3, 3]);
    assert_eq!(t.dataset().values()[(0, 8)], 1.2345);
    assert_eq!(*t.kind(9), ColumnKind::Typed { name: "Utf8".to_owned() });
    assert_eq!(t.rounding(t.data.values()).unwrap(), Rounding::default(), "nothing is filled yet");
}

#[test]
fn unfilled_tables_leave_as_they_came() {
    let whole = all_kinds();
    let t = table(&whole);
    let again = arrow_content(&written(&t, t.dataset().values(), ARROW));
    assert_eq!(again.schema(), whole.schema()); // types, nullability, metadata, order
    for (j, field) in whole.schema().fields().iter().enumerate() {
        // NaN differs from itself; its text does not.
        assert_eq!(format!("{:?}", again.column(j)), format!("{:?}", whole.column(j)), "{}", field.name());
    }
}

#[test]
fn filled_gaps_take_the_type_of_their_column() {
    let t = table(&all_kinds());
    let fill = |value| arrow_content(&written(&t, &filled(t.dataset(), value), ARROW));
    let text = |content: &RecordBatch, name: &str| {
        let array = content.column_by_name(name).expect("a column");
        (0..4).map(|i| super::text::cell(array, i)).collect::<Vec<_>>()
    };
    let content = fill(2.7);
    assert_eq!(text(&content, "f64"), ["0.1", "2.7", "-0.0", "1e300"]);
    assert_eq!(text(&content, "nan"), ["0.5", "2.7", "2.7", "2.0"]);
    assert_eq!(text(&content, "f32"), ["0.1", "2.7", "-2.5", "3.0"]);
    assert_eq!(text(&content, "i8"), ["-128", "3", "127", "0"]);
    assert_eq!(
        text(&content, "i64"),
        ["9007199254740993", "3", &i64::MIN.to_string(), &i64::MAX.to_string()]
    );
    assert_eq!(text(&content, "u64"), [&u64::MAX.to_string(), "1", "3", "2"]);
    assert_eq!(text(&content, "decimal"), ["1.2345", "2.7000", "10000000000000000000000000.0001", "-0.0007"]);
    // Integers beyond the range of a type make the column one of a wider type, and observed cells keep every digit.
    let content = fill(-300.0);
    let kind = |name: &str| content.column_by_name(name).expect("a column").data_type().clone();
    assert_eq!((kind("i8"), kind("i64")), (DataType::Int16, DataType::Int64));
    assert_eq!(text(&content, "i8"), ["-128", "-300", "127", "0"]);
    assert_eq!(kind("u64"), DataType::Decimal128(38, 0));
    assert_eq!(text(&content, "u64"), [&u64::MAX.to_string(), "1", "-300", "2"]);
    let rounding = t.rounding(&filled(t.dataset(), -300.0)).expect("values of this table");
    assert_eq!((rounding.n_cells, rounding.columns.len()), (4, 4));
    let widened = [("i8", "Int8", "Int16"), ("u64", "UInt64", "Decimal128(38, 0)")];
    assert_eq!(rounding.widened, widened.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned())));
    // Beyond 38 digits nothing is exact any more.
    let refused = t.write_filled(&filled(t.dataset(), -1e200), ARROW, Vec::new());
    assert!(matches!(refused, Err(Error::CannotHold { .. })), "{refused:?}");
    let refused = refused.expect_err("beyond all types");
    let says = refused.to_string();
    assert!(says.ends_with("cannot hold; write .csv, or exclude the column"), "{says}");
    assert!(matches!(&refused.remedies()[..], [Remedy::Exclude(_)]), "{refused:?}");
    let narrow = table(&batch(vec![("i8", Arc::new(Int8Array::from(vec![Some(1), None, Some(5)])))]));
    let content = arrow_content(&written(&narrow, &filled(narrow.dataset(), 1e200), ARROW));
    assert_eq!(*content.column(0).data_type(), DataType::Float64);
    // Floats and decimals stay within their range.
    let floats = table(&batch(vec![("f32", Arc::new(Float32Array::from(vec![Some(0.1), None])))]));
    let content = arrow_content(&written(&floats, &filled(floats.dataset(), -1e200), ARROW));
    assert_eq!(text_of(&content, 1), format!("{:?}", f32::MIN));
}

fn text_of(content: &RecordBatch, row: usize) -> String {
    super::text::cell(content.column(0), row)
}

#[test]
fn typed_cells_have_a_text() {
    let t = table(&all_kinds());
    let row = |i| (0..t.n_columns()).map(|j| t.text(i, j)).collect::<Vec<_>>();
    let want = [
        "0.1",
        "0.5",
        "0.1",
        "0.5",
        "-128",
        "7",
        "9007199254740993",
        "18446744073709551615",
        "1.2345",
        "1",
        "a long text that is not inlined",
        "ff00",
        "true",
        "1970-01-01",
        "1970-01-01T00:00:00",
        "1970-01-01T00:00:00Z",
        "a",
        "",
    ];
    assert_eq!(row(0), want);
    assert!(
        row(1).iter().enumerate().all(|(j, text)| text.is_empty() || [1, 5, 7].contains(&j)),
        "{:?}",
        row(1)
    );
}

#[test]
fn text_and_typed_tables_convert_into_each_other() {
    let text = "site,x,y\nnorth,1,2.50\n\"a, b\",NA,4\n,3,\n";
    let t = csv::read(text.as_bytes()).expect("a table");
    let arrow = written(&t, t.dataset().values(), ARROW);
    let typed = read_as(&arrow, ARROW, &ReadOptions::default()).expect("a table");
    assert_eq!(format!("{:?}", typed.dataset().values()), format!("{:?}", t.dataset().values()));
    let back = written(&typed, &filled(typed.dataset(), 9.5), Format::CSV);
    assert_eq!(
        String::from_utf8(back).expect("UTF-8"),
        "site,x,y\nnorth,1.0,2.5\n\"a, b\",9.5,4.0\n,3.0,9.5\n"
    );

    let t = csv::read(&b"site,x\nnorth,1\ns\xfcd,2\n"[..]).expect("a table");
    let arrow = written(&t, t.dataset().values(), ARROW);
    assert_eq!(read_as(&arrow, ARROW, &ReadOptions::default()).expect("a table").text(1, 0), "süd");
}

#[test]
fn sheets_of_results_are_typed() {
    let scores = Matrix::from_rows(&[[1.5], [NAN]]);
    let mut sheet = Sheet::default();
    sheet.push("row", Cells::Integers(vec![1, 2]));
    sheet.push("name", Cells::Text(vec!["a".to_owned(), String::new()]));
    sheet.push("x", Cells::Column { of: &scores, column: 0 });
    let mut out = Vec::new();
    sheet.write(ARROW, &mut out).expect("memory takes all");
    let content = arrow_content(&out);
    assert_eq!(**content.column(0), Int64Array::from(vec![1, 2]));
    assert_eq!(**content.column(1), StringArray::from(vec!["a", ""]));
    assert_eq!(**content.column(2), Float64Array::from(vec![Some(1.5), None]));
}

#[test]
fn numbers_that_mean_gaps_are_gaps_and_stay_unless_filled() {
    let whole =
        batch(vec![("x", Arc::new(Int32Array::from(vec![1, -99, 3]))), ("y", numbers(&[1.0, NAN, -99.0]))]);
    let options = ReadOptions { gaps: vec!["-99.0".to_owned()], ..Default::default() };
    let t = read_as(&arrow_file(&whole, 9, None), ARROW, &options).expect("a table");
    assert_eq!(t.dataset().n_observed_by_column(), [2, 1]);
    assert_eq!(arrow_content(&written(&t, t.dataset().values(), ARROW)), whole);
    let content = arrow_content(&written(&t, &filled(t.dataset(), 2.0), ARROW));
    assert_eq!(**content.column(0), Int32Array::from(vec![1, 2, 3]));
    assert_eq!(**content.column(1), Float64Array::from(vec![1.0, 2.0, 2.0]));
}

fn nested() -> RecordBatch {
    let mut lists = ListBuilder::new(Int32Builder::new());
    lists.append_value([Some(1), None]);
    lists.append_null();
    batch(vec![("x", numbers(&[1.0, NAN])), ("list", Arc::new(lists.finish()))])
}

#[test]
fn nested_columns_must_be_set_aside() {
    let error = read_as(&arrow_stream(&nested()), ARROW, &ReadOptions::default()).expect_err("nested");
    assert_eq!(
        error.to_string(),
        "column `list` holds List(Int32), not one value per cell; take it apart into columns, or exclude it"
    );
    assert_eq!(error.remedies(), [Remedy::Exclude("list".to_owned())]);
    let aside = choice(Columns::Numbers, &["list"]);
    let t = read_as(&arrow_stream(&nested()), ARROW, &aside).expect("a table");
    assert_eq!(*t.kind(1), ColumnKind::Excluded);
    let content = arrow_content(&written(&t, &filled(t.dataset(), 2.0), ARROW));
    assert_eq!(content.column(1), nested().column(1));
    let error = t.write_filled(t.dataset().values(), Format::CSV, Vec::new()).expect_err("no text");
    assert_eq!(
        error.to_string(),
        "column `list` holds List(Int32), which text cannot hold; write .parquet or .arrow, or remove the column"
    );
}

#[test]
fn what_is_wrong_with_typed_columns_is_said() {
    let open = ReadOptions::default();
    let x = || numbers(&[1.0, 2.0]);
    let words = || -> ArrayRef { Arc::new(StringArray::from(vec![None, Some("north")])) };
    check_error(
        &batch(vec![("x", x()), ("x", x())]),
        &open,
        "columns 1 and 2 are both called `x`; give every column its own name",
    );
    check_error(
        &batch(vec![("x", numbers(&[]))]),
        &open,
        "has a header of 1 column(s) and no rows; give at least two rows of data",
    );
    check_error(
        &batch(vec![("site", words())]),
        &open,
        "no column is of a type of numbers: column `site` holds Utf8; store at least one column as numbers",
    );
    let remedies = check_error(
        &batch(vec![("site", words()), ("x", x())]),
        &choice(Columns::Listed(vec!["site".to_owned()]), &[]),
        "column `site` holds Utf8, not numbers (row 2: `north`); store it as numbers, or exclude it",
    );
    assert_eq!(remedies, [Remedy::Exclude("site".to_owned())]);
    check_error(
        &batch(vec![("x", numbers(&[1.0, f64::INFINITY]))]),
        &open,
        "row 2, column `x`: `inf` is not a finite number; correct the cell or leave it empty",
    );
    let empty = RecordBatch::new_empty(Arc::new(Schema::empty()));
    check_error(&empty, &open, "has no columns; give at least one column of numbers");
}

#[test]
fn row_labels_are_not_measurements() {
    let whole = batch(vec![("x", numbers(&[1.0, 2.0])), ("__index_level_0__", numbers(&[7.0, 8.0]))]);
    assert_eq!(*table(&whole).kind(1), ColumnKind::Unnamed);
    assert_eq!(table(&whole).dataset().column_names(), ["x"]);
}

#[test]
fn a_column_of_nothing_that_a_model_needs_is_a_column_of_gaps() {
    let whole = batch(vec![("x", numbers(&[1.0, 2.0])), ("y", Arc::new(NullArray::new(2)))]);
    let options =
        choice(Columns::OfModel { needed: vec!["x".to_owned(), "y".to_owned()], welcome: Vec::new() }, &[]);
    let t = read_as(&arrow_stream(&whole), ARROW, &options).expect("a table");
    assert_eq!(t.dataset().n_observed_by_column(), [2, 0]);
    let content = arrow_content(&written(&t, &filled(t.dataset(), 0.5), ARROW));
    assert_eq!(**content.column(1), Float64Array::from(vec![0.5, 0.5]));
}

#[test]
fn both_forms_of_arrow_and_its_codecs_are_read() {
    let whole = all_kinds();
    let want = format!("{:?}", table(&whole).dataset().values());
    let mut forms = vec![arrow_stream(&whole)];
    for codec in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        forms.extend([1, 2, 9].map(|rows| arrow_file(&whole, rows, codec)));
    }
    for bytes in forms {
        let t = read_as(&bytes, ARROW, &ReadOptions::default()).expect("a table");
        assert_eq!(format!("{:?}", t.dataset().values()), want);
    }
}

#[test]
fn other_files_are_told_apart() {
    let says = |bytes: &[u8], format| {
        read_as(bytes, format, &ReadOptions::default()).expect_err("an error").to_string()
    };
    assert_eq!(says(b"x,y\n1,2\n", ARROW), "is not Arrow; give its true format");
    assert_eq!(says(b"", ARROW), "is not Arrow; give its true format");
    let error = read_as(b"", ARROW, &ReadOptions::default()).expect_err("an error");
    assert_eq!(error.remedies(), [Remedy::Format(None)]);
    assert!(says(b"FEA1abcdefgh", ARROW).contains("version 1 of Feather"));
    let whole = arrow_file(&all_kinds(), 2, None);
    for length in 8..whole.len() {
        assert!(says(&whole[..length], ARROW).starts_with("is "), "{length} of {} bytes", whole.len());
    }
    let without_end = says(&whole[..whole.len() - 1], ARROW);
    assert_eq!(without_end, "is Arrow that was cut short; copy or download it again");
}

#[test]
fn a_compressed_buffer_cannot_claim_the_memory_of_the_machine() {
    let whole = batch(vec![("x", Arc::new(Float64Array::from(vec![0.0; 4096])))]);
    let mut bytes = arrow_file(&whole, 4096, Some(CompressionType::ZSTD));
    let claim = 32_768_i64.to_le_bytes();
    let at = bytes.windows(8).position(|w| w == claim).expect("the length of the buffer");
    bytes[at..at + 8].copy_from_slice(&(1_i64 << 45).to_le_bytes());
    let error = read_as(&bytes, ARROW, &ReadOptions::default()).expect_err("a false claim");
    assert!(error.to_string().contains("a buffer claims 35184372088832 bytes"), "{error}");
}

/// A file that Polars wrote: see `make.py` beside it.
fn polars(name: &str) -> (std::path::PathBuf, Vec<u8>) {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/arrow");
    let path = folder.join(format!("polars_{name}.arrow"));
    let bytes = std::fs::read(&path).expect("a golden file");
    (path, bytes)
}

/// Reads it both ways, which must agree.
fn read_polars(name: &str) -> Table {
    let (path, bytes) = polars(name);
    let file = std::fs::File::open(path).expect("a golden file");
    let seeking = io::read(Input::<std::io::Empty>::File(file), ARROW, &ReadOptions::default());
    let seeking = seeking.expect("a table");
    let streaming = read_as(&bytes, ARROW, &ReadOptions::default()).expect("a table");
    assert_eq!(cells(&seeking), cells(&streaming), "{name}");
    seeking
}

#[test]
fn what_polars_wrote_is_read() {
    for codec in ["uncompressed", "lz4", "zstd"] {
        let t = read_polars(codec);
        assert_eq!(t.dataset().column_names(), ["a", "b"]);
        assert_eq!(cells(&t), [["1.0", "1.0"], ["2.0", "2.0"], ["3.0", "4.0"], ["", "5.0"]], "{codec}");

        let t = read_polars(&format!("mixed_{codec}"));
        assert_eq!(t.dataset().column_names(), ["x", "n"]);
        assert_eq!(t.dataset().n_observed_by_column(), [3, 4]);
        let want = [
            ["north", "1.5", "1", "low", "p", "true"],
            ["a long text that is not inlined", "", "", "high", "", ""],
            ["", "NaN", "3", "", "q", "false"],
            ["", "-0.0", "9007199254740993", "low", "p", "true"],
            ["south", "1e300", "-5", "mid", "r", "false"],
        ];
        assert_eq!(cells(&t), want, "{codec}");
        let content = arrow_content(&written(&t, t.dataset().values(), ARROW));
        assert_eq!(content, arrow_content(&polars(&format!("mixed_{codec}")).1), "{codec}");
    }
    for codec in ["lz4", "zstd"] {
        let t = read_polars(&format!("long_{codec}"));
        assert_eq!(t.n_rows(), 1000);
        for i in 0..1000 {
            let row = t.dataset().row(i);
            assert_eq!(row[0], (i % 7) as f64);
            assert!(if i % 5 == 3 { row[1].is_nan() } else { row[1] == i as f64 }, "row {i}: {row:?}");
        }
    }
}

#[test]
fn what_polars_wrote_and_was_cut_is_refused() {
    let whole = polars("mixed_zstd").1;
    let mut file = tempfile::tempfile().expect("a temporary file");
    std::io::Write::write_all(&mut file, &whole).expect("written");
    for length in (6..whole.len()).rev() {
        let error = read_as(&whole[..length], ARROW, &ReadOptions::default()).expect_err("cut");
        assert!(matches!(error, Error::CutShort { .. }), "{length}: {error}");
        file.set_len(length as u64).expect("cut");
        std::io::Seek::rewind(&mut file).expect("rewound");
        let input = Input::<std::io::Empty>::File(file.try_clone().expect("a handle"));
        let error = io::read(input, ARROW, &ReadOptions::default()).expect_err("cut");
        assert!(matches!(error, Error::CutShort { .. }), "{length}: {error}");
    }
}

#[test]
fn an_index_is_not_believed() {
    let whole = polars("long_zstd").1;
    let end = whole.len() - 10;
    let length = i32::from_le_bytes(whole[end..end + 4].try_into().expect("four bytes"));
    let start = end - length as usize;
    let index = root_as_footer(&whole[start..end]).expect("an index");
    let blocks: Vec<Block> = index.recordBatches().expect("batches").iter().copied().collect();
    let [first, second] = blocks[..] else { panic!("{blocks:?}") };
    let at = start + whole[start..].windows(24).position(|w| w == second.0).expect("the second block");
    let says = |bytes: &[u8]| {
        let error = read_as(bytes, ARROW, &ReadOptions::default()).expect_err("a false claim");
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
        error.to_string()
    };
    let with = |offset, head, body| {
        let mut bytes = whole.clone();
        bytes[at..at + 24].copy_from_slice(&Block::new(offset, head, body).0);
        says(&bytes)
    };
    let (offset, head, body) = (second.offset(), second.metaDataLength(), second.bodyLength());
    for (offset, head, body) in [
        (-8, head, body),
        (0, head, body),
        (i64::MAX, head, body),
        (offset, -1, body),
        (offset, i32::MAX, body),
        (offset, head, -1),
        (offset, head, i64::MAX),
        (offset, head, body + 1024),
    ] {
        assert!(with(offset, head, body).contains("a message lies outside the file"));
    }
    assert!(with(offset, 0, body).contains("a message does not begin as one"));
    let cut = with(offset, head, body / 2);
    assert!(cut.contains("a buffer lies outside its message"), "{cut}");
    let all = start as i64 - first.offset() - i64::from(first.metaDataLength());
    assert!(with(first.offset(), first.metaDataLength(), all).contains("its messages overlap"));
    for claim in [-1, i32::MAX, length + 1_000_000] {
        let mut bytes = whole.clone();
        bytes[end..end + 4].copy_from_slice(&claim.to_le_bytes());
        assert!(says(&bytes).contains("its index lies outside the file"));
    }
    let mut bytes = whole.clone();
    bytes[end..end + 4].copy_from_slice(&0_i32.to_le_bytes());
    assert!(says(&bytes).contains("its index cannot be read"));
}

/// A column of numbers, text or dates with gaps.
fn any_column(rows: usize) -> impl Strategy<Value = ArrayRef> {
    let cells = prop::collection::vec(prop::option::weighted(0.8, any::<i64>()), rows);
    (cells, 0..7_usize).prop_map(|(cells, kind)| -> ArrayRef {
        match kind {
            0 => Arc::new(cells.iter().map(|c| c.map(|v| v as f64 / 1024.0)).collect::<Float64Array>()),
            1 => Arc::new(cells.iter().map(|c| c.map(|v| v as f32)).collect::<Float32Array>()),
            2 => Arc::new(cells.iter().map(|c| c.map(|v| v as i8)).collect::<Int8Array>()),
            3 => Arc::new(cells.iter().copied().collect::<Int64Array>()),
            4 => Arc::new(cells.iter().map(|c| c.map(|v| v.to_string())).collect::<StringArray>()),
            5 => Arc::new(cells.iter().map(|c| c.map(|v| (v % 50_000) as i32)).collect::<Date32Array>()),
            _ => {
                let words = cells.iter().map(|c| c.map(|v| ["a", "b", "c"][v.rem_euclid(3) as usize]));
                Arc::new(words.collect::<DictionaryArray<Int32Type>>())
            }
        }
    })
}

fn any_table() -> impl Strategy<Value = RecordBatch> {
    (1..40_usize).prop_flat_map(|rows| {
        prop::collection::vec(any_column(rows), 1..9).prop_map(move |columns| {
            let x = numbers(&(0..rows).map(|i| if i % 5 == 3 { NAN } else { i as f64 }).collect::<Vec<_>>());
            let names: Vec<String> = (0..columns.len()).map(|j| format!("c{j}")).collect();
            let mut all: Vec<(&str, ArrayRef)> = vec![("x", x)];
            all.extend(names.iter().map(String::as_str).zip(columns));
            batch(all)
        })
    })
}

/// Cell by cell, as text.
fn cells(table: &Table) -> Vec<Vec<String>> {
    (0..table.n_rows()).map(|i| (0..table.n_columns()).map(|j| table.text(i, j)).collect()).collect()
}

proptest! {
    #[test]
    fn arrow_tables_survive_the_round_trip(whole in any_table(), rows in 1..20_usize) {
        let t = read_as(&arrow_file(&whole, rows, None), ARROW, &ReadOptions::default()).expect("a table");
        let content = arrow_content(&written(&t, t.dataset().values(), ARROW));
        prop_assert_eq!(content.schema(), whole.schema());
        for (got, want) in content.columns().iter().zip(whole.columns()) {
            for i in 0..whole.num_rows() {
                prop_assert_eq!(super::text::cell(got, i), super::text::cell(want, i));
            }
        }
        // To text: the numbers that are read again are the same.
        let text = csv::read(&*written(&t, t.dataset().values(), Format::CSV)).expect("a table");
        for (k, name) in t.dataset().column_names().iter().enumerate() {
            let again = text.dataset().column_names().iter().position(|n| n == name).expect("still numbers");
            for i in 0..t.n_rows() {
                // The digits of an f32 are those that tell it from other f32s.
                let short = *whole.schema().field_with_name(name).expect("a column").data_type() == DataType::Float32;
                let b = text.dataset().row(i)[again];
                let (a, b) = (t.dataset().row(i)[k], if short { f64::from(b as f32) } else { b });
                prop_assert!(a == b || a.is_nan() && b.is_nan(), "row {}, column {}: {} {}", i, name, a, b);
            }
        }
    }

    #[test]
    fn damaged_arrow_never_panics(flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), form in 0..6) {
        let mut bytes = match form {
            0 => arrow_stream(&all_kinds()),
            1 => arrow_file(&all_kinds(), 2, None),
            2 => polars("mixed_uncompressed").1,
            3 => polars("mixed_lz4").1,
            4 => polars("mixed_zstd").1,
            _ => arrow_file(&all_kinds(), 3, Some(CompressionType::ZSTD)),
        };
        for (at, byte) in flips {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(table) = read_as(&bytes, ARROW, &ReadOptions::default()) {
            cells(&table);
        }
        let _ = arrow::read(Input::Stream(&bytes[..bytes.len() / 2]), false, &ReadOptions::default());
    }
}

#[cfg(feature = "parquet")]
mod of_parquet {
    use super::*;
    use parquet::arrow::ArrowWriter;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use parquet::basic::{BrotliLevel, Compression, Encoding, GzipLevel, ZstdLevel};
    use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter};
    use parquet::file::properties::{WriterProperties, WriterVersion};
    use std::io::{Seek, Write};

    const PARQUET: Format = Format { layout: Layout::Parquet, gzip: false };

    fn parquet_file(whole: &RecordBatch, rows: usize, codec: Compression) -> Vec<u8> {
        let properties = WriterProperties::builder()
            .set_compression(codec)
            .set_max_row_group_row_count(Some(rows))
            .build();
        let mut writer =
            ArrowWriter::try_new(Vec::new(), whole.schema(), Some(properties)).expect("a writer");
        writer.write(whole).expect("memory takes all");
        writer.into_inner().expect("memory takes all")
    }

    fn parquet_content(bytes: &[u8]) -> RecordBatch {
        let builder = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::copy_from_slice(bytes));
        let builder = builder.expect("a file");
        let schema = builder.schema().clone();
        let reader = builder.build().expect("a reader");
        concat_batches(&schema, &reader.map(|b| b.expect("a batch")).collect::<Vec<_>>()).expect("one schema")
    }

    #[test]
    fn a_part_whose_column_holds_nothing_has_gaps_there_and_one_of_other_columns_is_refused() {
        let file = |columns: Vec<(&str, ArrayRef)>| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&parquet_file(&batch(columns), 9, Compression::SNAPPY)).unwrap();
            file
        };
        let opened = |second: Vec<(&str, ArrayRef)>| {
            let first = vec![("x", numbers(&[1.0, 2.0])), ("y", numbers(&[3.0, 4.0]))];
            let files = vec![("a".to_owned(), file(first)), ("b".to_owned(), file(second))];
            io::BlockFile::open_named(files, PARQUET, &ReadOptions::default())
        };
        let nothing = || Arc::new(NullArray::new(2)) as ArrayRef;
        let rows = opened(vec![("x", numbers(&[5.0, 6.0])), ("y", nothing())]).unwrap();
        let mut blocks = Vec::new();
        rows.for_blocks(|block| {
            blocks.push(format!("{:?}", block.values().as_slice()));
            Ok(())
        })
        .unwrap();
        assert_eq!(blocks, ["[1.0, 3.0, 2.0, 4.0, 5.0, NaN, 6.0, NaN]"]);
        let text = Arc::new(StringArray::from(vec!["no", "number"])) as ArrayRef;
        let one = || ("x", numbers(&[5.0, 6.0]));
        for (second, words) in [
            (vec![one()], "b: lacks the column of numbers `y`, which the first file has; "),
            (vec![one(), ("y", text)], "b: lacks the column of numbers `y`, which the first file has; "),
            (vec![one(), ("z", nothing())], "b: lacks the column of numbers `y`, which the first file has; "),
            (
                vec![one(), ("y", numbers(&[7.0, 8.0])), ("z", numbers(&[7.0, 8.0]))],
                "b: has the column of numbers `z`, which the first file lacks; ",
            ),
            (
                vec![("y", numbers(&[7.0, 8.0])), one()],
                "b: has the columns of numbers of the first file in another order; ",
            ),
        ] {
            let refused = opened(second).err().unwrap().to_string();
            assert!(refused.starts_with(words), "{refused}");
        }
    }

    #[test]
    fn every_codec_is_read() {
        let whole = all_kinds();
        let want = cells(&table(&whole));
        let gzip = Compression::GZIP(GzipLevel::default());
        let (zstd, brotli) =
            (Compression::ZSTD(ZstdLevel::default()), Compression::BROTLI(BrotliLevel::default()));
        for codec in [
            Compression::UNCOMPRESSED,
            Compression::SNAPPY,
            gzip,
            brotli,
            zstd,
            Compression::LZ4,
            Compression::LZ4_RAW,
        ] {
            let bytes = parquet_file(&whole, 3, codec);
            let t = read_as(&bytes, PARQUET, &ReadOptions::default()).expect("a table");
            assert_eq!(cells(&t), want, "{codec}");
        }
    }

    #[test]
    fn a_file_reads_as_its_bytes_do() {
        let bytes = parquet_file(&all_kinds(), 2, Compression::SNAPPY);
        let path = std::env::temp_dir().join(format!("covary-columnar-{}.parquet", std::process::id()));
        let mut file =
            std::fs::File::options().create(true).truncate(true).read(true).write(true).open(&path);
        let file = file.as_mut().expect("a temporary file");
        file.write_all(&bytes).and_then(|()| file.rewind()).expect("written");
        std::fs::remove_file(&path).expect("removed");
        let input = Input::<std::io::Empty>::File(file.try_clone().expect("a handle"));
        let t = io::read(input, PARQUET, &ReadOptions::default()).expect("a table");
        assert_eq!(cells(&t), cells(&table(&all_kinds())));
    }

    #[test]
    fn the_schema_is_kept_and_the_bytes_are_always_the_same() {
        let whole = all_kinds();
        let t = read_as(&parquet_file(&whole, 2, Compression::SNAPPY), PARQUET, &ReadOptions::default());
        let t = t.expect("a table");
        let bytes = written(&t, t.dataset().values(), PARQUET);
        assert_eq!(bytes, written(&t, t.dataset().values(), PARQUET));
        let content = parquet_content(&bytes);
        assert_eq!(content.schema(), whole.schema());
        for (got, want) in content.columns().iter().zip(whole.columns()) {
            assert_eq!(format!("{got:?}"), format!("{want:?}"));
        }
        let arrow = arrow_content(&written(&t, t.dataset().values(), ARROW));
        assert_eq!(arrow.schema(), whole.schema());
    }

    #[test]
    fn nested_columns_pass_through() {
        let bytes = parquet_file(&nested(), 9, Compression::SNAPPY);
        let aside = choice(Columns::Numbers, &["list"]);
        let t = read_as(&bytes, PARQUET, &aside).expect("a table");
        let content = parquet_content(&written(&t, &filled(t.dataset(), 2.0), PARQUET));
        assert_eq!(content.column(1), nested().column(1));
    }

    #[test]
    fn other_files_are_told_apart() {
        let says = |bytes: &[u8]| {
            read_as(bytes, PARQUET, &ReadOptions::default()).expect_err("an error").to_string()
        };
        assert_eq!(says(b"x,y\n1,2\n"), "is not Parquet; give its true format");
        assert_eq!(says(b""), "is not Parquet; give its true format");
        let error = read_as(b"", PARQUET, &ReadOptions::default()).expect_err("an error");
        assert_eq!(error.remedies(), [Remedy::Format(None)]);
        assert!(says(b"PARE....PARE").contains("encryption"));
        let whole = parquet_file(&all_kinds(), 2, Compression::SNAPPY);
        for length in 8..whole.len() {
            assert_eq!(says(&whole[..length]), "is Parquet that was cut short; copy or download it again");
        }
    }

    /// The file with another description of itself.
    fn described(bytes: &[u8], change: impl Fn(ParquetMetaData) -> ParquetMetaData) -> Vec<u8> {
        let source = bytes::Bytes::copy_from_slice(bytes);
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&source).expect("metadata");
        let length = bytes[bytes.len() - 8..bytes.len() - 4].try_into().expect("four bytes");
        let length = u32::from_le_bytes(length) as usize;
        let mut out = bytes[..bytes.len() - 8 - length].to_vec();
        ParquetMetaDataWriter::new(&mut out, &change(metadata)).finish().expect("memory takes all");
        out
    }

    #[test]
    fn claimed_rows_are_not_believed() {
        let bytes = parquet_file(&batch(vec![("x", numbers(&[1.0, 2.0, 3.0]))]), 9, Compression::SNAPPY);
        for claim in [4, 1_000_000, 1_000_000_000_000, i64::MAX, -1] {
            let lie = described(&bytes, |metadata| {
                let mut builder = metadata.into_builder();
                let groups = builder.take_row_groups();
                let claim_rows = |g: parquet::file::metadata::RowGroupMetaData| {
                    g.into_builder().set_num_rows(claim).build().expect("a row group")
                };
                builder.set_row_groups(groups.into_iter().map(claim_rows).collect()).build()
            });
            let error = read_as(&lie, PARQUET, &ReadOptions::default()).expect_err("a false claim");
            assert!(matches!(error, Error::Damaged { .. } | Error::TooLarge { .. }), "{claim}: {error}");
        }
    }

    #[test]
    fn columns_read_straight_are_those_read_through_arrays() {
        const N: i32 = 61;
        let some = |i: i32, every: i32| (i % every != 0).then_some(i);
        let floats = |of: &dyn Fn(i32) -> Option<f64>| Arc::new((0..N).map(of).collect::<Float64Array>());
        let whole = batch(vec![
            ("complete", floats(&|i| Some(f64::from(i * i) / 7.0)) as ArrayRef),
            ("gaps", floats(&|i| some(i, 5).map(|i| f64::from(i) / 3.0))),
            ("nan", floats(&|i| Some(some(i, 4).map_or(NAN, f64::from)))),
            ("both", floats(&|i| some(i, 4).map(|i| some(i, 3).map_or(NAN, f64::from)))),
            ("late", floats(&|i| (i > 40).then_some(-0.0))),
            ("same", floats(&|_| Some(2.5))),
            ("none", floats(&|_| None)),
            ("rounded", floats(&|i| some(i, 9).map(|i| f64::from(i % 7) / 10.0))),
            ("f32", Arc::new((0..N).map(|i| some(i, 6).map(|i| i as f32 / 3.0)).collect::<Float32Array>())),
            ("i32", Arc::new((0..N).map(|i| some(i, 8).map(|i| i - 30)).collect::<Int32Array>())),
            ("i64", Arc::new((0..N).map(|i| some(i, 7).map(|i| i64::from(i) << 40)).collect::<Int64Array>())),
            (
                "wide",
                Arc::new(
                    (0..N).map(|i| some(i, 7).map(|i| (i64::from(i) << 53) + 1)).collect::<Int64Array>(),
                ),
            ),
        ]);
        let want = table(&whole);
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for codec in [Compression::SNAPPY, Compression::UNCOMPRESSED] {
                // Dictionaries that are given up after a page or two, and none.
                for dictionary in [1 << 20, 100, 0] {
                    for (group, page) in [(100, 100), (100, 7), (13, 100), (25, 9)] {
                        let mut properties = WriterProperties::builder()
                            .set_writer_version(version)
                            .set_compression(codec)
                            .set_dictionary_enabled(dictionary > 0)
                            .set_dictionary_page_size_limit(dictionary)
                            .set_data_page_row_count_limit(page)
                            .set_write_batch_size(page)
                            .set_max_row_group_row_count(Some(group));
                        for column in ["i32", "i64", "wide"] {
                            properties = properties.set_column_encoding(column.into(), Encoding::PLAIN);
                        }
                        let mut writer =
                            ArrowWriter::try_new(Vec::new(), whole.schema(), Some(properties.build()))
                                .expect("a writer");
                        writer.write(&whole).expect("memory takes all");
                        let bytes = writer.into_inner().expect("memory takes all");
                        let t = read_as(&bytes, PARQUET, &ReadOptions::default()).expect("a table");
                        assert_eq!(cells(&t), cells(&want));
                        let content = parquet_content(&written(&t, t.dataset().values(), PARQUET));
                        for (got, want) in content.columns().iter().zip(whole.columns()) {
                            assert_eq!(format!("{got:?}"), format!("{want:?}"));
                        }
                    }
                }
            }
        }
    }

    /// Replaces bytes that occur once.
    fn replaced(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
        assert_eq!(old.len(), new.len());
        let places: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(old)).collect();
        let [at] = places[..] else { panic!("{} places", places.len()) };
        let mut bytes = bytes.to_vec();
        bytes[at..at + old.len()].copy_from_slice(new);
        bytes
    }

    #[track_caller]
    fn check_damaged(bytes: &[u8], says: &str) {
        let start = std::time::Instant::now();
        let error = read_as(bytes, PARQUET, &ReadOptions::default()).expect_err("an error").to_string();
        assert!(error.contains(says), "{error}");
        // Gigabytes that are touched take longer.
        assert!(start.elapsed() < std::time::Duration::from_secs(1), "{:?}", start.elapsed());
    }

    #[test]
    fn a_dictionary_cannot_claim_the_memory_of_the_machine() {
        let bytes = include_bytes!("../../../tests/damaged/dictionary_claim.parquet");
        check_damaged(bytes, "is damaged Parquet");
    }

    #[test]
    fn pages_cannot_claim_more_than_they_hold() {
        let values: Vec<f64> = (0..40).map(f64::from).collect();
        let whole = batch(vec![("x", Arc::new(Float64Array::from(values)) as ArrayRef)]);
        let file = |codec, dictionary| {
            let properties = WriterProperties::builder()
                .set_compression(codec)
                .set_dictionary_enabled(dictionary)
                .set_statistics_enabled(parquet::file::properties::EnabledStatistics::None)
                .build();
            let mut writer =
                ArrowWriter::try_new(Vec::new(), whole.schema(), Some(properties)).expect("a writer");
            writer.write(&whole).expect("memory takes all");
            writer.into_inner().expect("memory takes all")
        };
        // 320 bytes, 320 compressed: fields 2 and 3 of a header, zigzag varints.
        let plain = file(Compression::UNCOMPRESSED, false);
        let header = [0x15, 0x80, 0x05, 0x15, 0x80, 0x05, 0x2c, 0x15, 80];
        let more = [0x15, 0x80, 0x05, 0x15, 0x80, 0x05, 0x2c, 0x15, 82];
        check_damaged(&replaced(&plain, &header, &more), "a page claims more values than its column has");
        let longer = [0x15, 0x80, 0x05, 0x15, 0x80, 0x7f, 0x2c, 0x15, 80];
        check_damaged(&replaced(&plain, &header, &longer), "a page lies behind the end of its column");
        let odd = [0x15, 0x80, 0x05, 0x15, 0x81, 0x05, 0x2c, 0x15, 80];
        check_damaged(&replaced(&plain, &header, &odd), "the header of a page is none");
        let words = file(Compression::UNCOMPRESSED, true);
        let header = [0x15, 0x80, 0x05, 0x15, 0x80, 0x05, 0x4c, 0x15, 80];
        let more = [0x15, 0x80, 0x05, 0x15, 0x80, 0x05, 0x4c, 0x15, 82];
        check_damaged(&replaced(&words, &header, &more), "a dictionary claims more values than its bytes");
        let small = file(Compression::SNAPPY, false);
        let at = small.windows(3).position(|w| w == [0x15, 0x80, 0x05]).expect("a header");
        let mut large = small;
        large[at + 1..at + 3].copy_from_slice(&[0xfe, 0x7f]);
        check_damaged(&large, "a page claims to be larger than its bytes can make it");
    }

    #[test]
    fn lists_of_lengths_cannot_claim_more_than_their_page() {
        let texts: Vec<String> = (0..40).map(|i| format!("{:>9}", i * 7_919)).collect();
        let x = numbers(&[0.5; 40]);
        for texts in [
            Arc::new(StringArray::from(texts.clone())) as ArrayRef,
            Arc::new(texts.iter().map(|t| Some(t).filter(|t| !t.contains('3'))).collect::<StringArray>()),
        ] {
            let whole = batch(vec![("x", x.clone()), ("text", texts.clone())]);
            for encoding in [Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY] {
                for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
                    let properties = WriterProperties::builder()
                        .set_compression(Compression::UNCOMPRESSED)
                        .set_writer_version(version)
                        .set_dictionary_enabled(false)
                        .set_column_encoding("text".into(), encoding)
                        .set_column_encoding("x".into(), Encoding::PLAIN)
                        .build();
                    let mut writer =
                        ArrowWriter::try_new(Vec::new(), whole.schema(), Some(properties)).expect("a writer");
                    writer.write(&whole).expect("memory takes all");
                    let bytes = writer.into_inner().expect("memory takes all");
                    let t = read_as(&bytes, PARQUET, &ReadOptions::default()).expect("a table");
                    assert_eq!(cells(&t), cells(&table(&whole)));
                    // Blocks of 128 numbers in 4 parts; then how many there are.
                    let n = u8::try_from(texts.len() - texts.null_count()).expect("40");
                    let heads = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(&[0x80, 1, 4, n]));
                    for at in heads {
                        let mut lie = bytes.clone();
                        lie[at + 3] = 127;
                        check_damaged(&lie, "a list of lengths of text is none");
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn parquet_and_arrow_agree_cell_by_cell(whole in any_table(), rows in 1..20_usize) {
            let bytes = parquet_file(&whole, rows, Compression::SNAPPY);
            let t = read_as(&bytes, PARQUET, &ReadOptions::default()).expect("a table");
            let of_arrow = read_as(&arrow_file(&whole, rows, None), ARROW, &ReadOptions::default()).expect("a table");
            prop_assert_eq!(cells(&t), cells(&of_arrow));
            let again = written(&of_arrow, of_arrow.dataset().values(), PARQUET);
            let content = parquet_content(&again);
            prop_assert_eq!(content.schema(), whole.schema());
            let again = read_as(&again, PARQUET, &ReadOptions::default()).expect("a table");
            prop_assert_eq!(cells(&again), cells(&t));
        }

        #[test]
        fn damaged_parquet_never_panics(flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), rows in 1..5_usize) {
            let mut bytes = parquet_file(&all_kinds(), rows, Compression::SNAPPY);
            for (at, byte) in flips {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if let Ok(table) = read_as(&bytes, PARQUET, &ReadOptions::default()) {
                cells(&table);
            }
        }
    }
}
