//! NumPy's arrays: what NumPy wrote is read, what is written NumPy reads, and no bytes do harm.

use covary::io::{
    self, Cells, ColumnChoice, ColumnKind, Columns, Error, Format, Input, Layout, ReadOptions, Sheet, Table,
};
use covary::{Dataset, Matrix, Remedy};
use proptest::prelude::*;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::PathBuf;

const NPY: Format = Format { layout: Layout::Npy, gzip: false };
const NPZ: Format = Format { layout: Layout::Npz, gzip: false };
const GAP: f64 = f64::NAN;

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/npy").join(name)
}

fn bytes(name: &str) -> Vec<u8> {
    fs::read(golden(name)).expect("a golden file")
}

/// Reads a golden file both ways, which must agree.
fn read_with(name: &str, options: &ReadOptions) -> Result<Table, Error> {
    let format = Format::of_file(name).expect("a known extension");
    let file = File::open(golden(name)).expect("a golden file");
    let seeking = io::read(Input::<&[u8]>::File(file), format, options);
    let streaming = io::read(Input::Stream(&bytes(name)[..]), format, options);
    match (&seeking, &streaming) {
        (Ok(a), Ok(b)) => check_same(a.dataset(), b.dataset()),
        (Err(a), Err(b)) => assert_eq!(kind_of(a), kind_of(b)),
        _ => panic!("{seeking:?}\n{streaming:?}"),
    }
    seeking
}

fn kind_of(error: &Error) -> String {
    format!("{error:?}").split([' ', '(']).next().expect("a name").to_owned()
}

fn read(name: &str) -> Table {
    read_with(name, &ReadOptions::default()).expect("a table")
}

fn parse(bytes: &[u8], format: Format) -> Result<Table, Error> {
    io::read(Input::Stream(bytes), format, &ReadOptions::default())
}

fn array(name: &str) -> ReadOptions {
    ReadOptions { array: Some(name.to_owned()), ..ReadOptions::default() }
}

fn bits(values: &[f64]) -> Vec<Option<u64>> {
    values.iter().map(|v| (!v.is_nan()).then_some(v.to_bits())).collect()
}

#[track_caller]
fn check_same(a: &Dataset, b: &Dataset) {
    assert_eq!(a.column_names(), b.column_names());
    assert_eq!(bits(a.values().as_slice()), bits(b.values().as_slice()));
}

fn filled(table: &Table, value: f64) -> Matrix {
    let data = table.dataset();
    Matrix::from_fn(data.n_rows(), data.n_columns(), |i, j| {
        if data.row(i)[j].is_nan() { value } else { data.row(i)[j] }
    })
}

fn written(table: &Table, values: &Matrix, format: Format) -> Vec<u8> {
    let mut out = Vec::new();
    assert!(table.write_filled(values, format, &mut out).expect("memory takes all").is_empty());
    out
}

#[track_caller]
fn check_error(name: &str, says: &str) -> Vec<Remedy> {
    let error = read_with(name, &ReadOptions::default()).expect_err("an error");
    assert_eq!(error.to_string(), says);
    error.remedies()
}

/// The table most golden files hold.
fn x() -> Matrix {
    Matrix::from_rows(&[[1.5, GAP, -3.0], [0.0, 2.25, GAP], [7.0, -8.5, 1e-3], [4.0, 5.0, 6.0]])
}

#[test]
fn arrays_of_numpy_are_read_in_any_type_and_order() {
    let exact = Dataset::new(x()).expect("a table");
    for name in ["f8.npy", "f8_fortran.npy", "f8_big_endian.npy", "version_2.npy", "one.npz"] {
        check_same(read(name).dataset(), &exact);
    }
    let mut single = x();
    single[(2, 2)] = f64::from(1e-3_f32);
    for name in ["f4.npy", "f4_fortran_big_endian.npy"] {
        check_same(read(name).dataset(), &Dataset::new(single.clone()).expect("a table"));
    }
    let half = read("f2.npy");
    assert!((half.dataset().row(2)[2] - 1e-3).abs() < 1e-6);
    assert_eq!(half.dataset().n_gaps(), 2);
    assert_eq!(read("flat.npy").dataset().values().column(0)[1..], [2.25, -8.5, 5.0]);
    assert_eq!(read("i4.npy").dataset().row(0), [-6.0, -5.0, -4.0]);
    assert_eq!(read("u1.npy").dataset().row(3), [9.0, 10.0, 11.0]);
    assert_eq!(read("bool.npy").dataset().row(0), [1.0, 0.0]);
}

#[test]
fn a_complete_array_of_numpy_leaves_byte_for_byte() {
    for name in ["i4.npy", "u1.npy", "bool.npy"] {
        let table = read(name);
        assert_eq!(written(&table, table.dataset().values(), NPY), bytes(name), "{name}");
    }
}

#[test]
fn a_filled_array_keeps_its_type_and_its_other_items() {
    for (name, size) in [("f8.npy", 8), ("f4.npy", 4), ("f2.npy", 2), ("flat.npy", 8)] {
        let table = read(name);
        let (before, out) = (bytes(name), written(&table, &filled(&table, 0.25), NPY));
        assert_eq!(out.len(), before.len());
        let changed = before.chunks(size).zip(out.chunks(size)).filter(|(a, b)| a != b).count();
        assert_eq!(changed, table.dataset().n_gaps(), "{name}");
        assert!(parse(&out, NPY).expect("a table").dataset().is_complete());
        // What is not filled stays as it came.
        assert_eq!(written(&table, table.dataset().values(), NPY), before, "{name}");
    }
    // Fortran order and big-endian items leave as NumPy writes by itself.
    let table = read("f4_fortran_big_endian.npy");
    assert_eq!(written(&table, table.dataset().values(), NPY), bytes("f4.npy"));
}

#[test]
fn numbers_may_mean_gaps_and_make_room_for_what_is_filled() {
    let options = ReadOptions { gaps: vec!["-6".to_owned(), "0".to_owned()], ..ReadOptions::default() };
    let table = read_with("i4.npy", &options).expect("a table");
    assert_eq!(table.dataset().n_gaps(), 2);
    assert_eq!(table.text(0, 0), "-6");
    assert_eq!(written(&table, table.dataset().values(), NPY), bytes("i4.npy"), "nothing was filled");
    let out = parse(&written(&table, &filled(&table, 0.5), NPY), NPY).expect("a table");
    assert_eq!(out.dataset().row(0), [0.5, -5.0, -4.0]);

    let single = read("f4.npy");
    let out = parse(&written(&single, &filled(&single, 1e39), NPY), NPY).expect("a table");
    assert_eq!(out.dataset().row(0), [1.5, 1e39, -3.0]);
}

#[test]
fn columns_are_chosen_by_name_and_those_kept_aside_survive() {
    let choice = ColumnChoice { exclude: vec!["x2".to_owned()], ..ColumnChoice::default() };
    let options = ReadOptions { choice, ..ReadOptions::default() };
    for name in ["f8.npy", "f8_fortran.npy"] {
        let table = read_with(name, &options).expect("a table");
        assert_eq!(table.dataset().column_names(), ["x1", "x3"]);
        assert_eq!(*table.kind(1), ColumnKind::Excluded);
        assert_eq!((table.text(0, 1).as_str(), table.text(1, 1).as_str()), ("", "2.25"));
        assert_eq!(written(&table, table.dataset().values(), NPY), bytes("f8.npy"));
        assert_eq!(
            written(&table, table.dataset().values(), Format::CSV),
            b"x1,x2,x3\n1.5,,-3.0\n0.0,2.25,\n7.0,-8.5,0.001\n4.0,5.0,6.0\n"
        );
    }
    let choice = ColumnChoice {
        columns: Columns::Listed(vec!["2:".to_owned()]),
        exclude: vec!["x2:x3".to_owned()],
        ..ColumnChoice::default()
    };
    let error = read_with("f8.npy", &ReadOptions { choice, ..ReadOptions::default() });
    assert!(matches!(error, Err(Error::NothingChosen)));
}

#[test]
fn integers_leave_exactly_or_are_refused() {
    let remedies = check_error(
        "i8_wide.npy",
        "row 1, column `x2`: 9007199254740993 has more digits than a float64 holds; save the column as float64 if rounding does no harm, or exclude it",
    );
    assert_eq!(remedies, [Remedy::Exclude("x2".to_owned())]);
    let choice = ColumnChoice { exclude: vec!["x2".to_owned()], ..ColumnChoice::default() };
    let mut options = ReadOptions { choice, ..ReadOptions::default() };
    let table = read_with("i8_wide.npy", &options).expect("a table");
    assert_eq!(written(&table, table.dataset().values(), NPY), bytes("i8_wide.npy"));
    assert_eq!(
        written(&table, table.dataset().values(), Format::CSV),
        b"x1,x2\n1,9007199254740993\n2,-9223372036854775808\n3,5\n"
    );
    // A filled gap needs float64, where the number beside it has no room.
    options.gaps = vec!["2".to_owned()];
    let table = read_with("i8_wide.npy", &options).expect("a table");
    let error = table.write_filled(&filled(&table, 0.5), NPY, Vec::new());
    assert!(matches!(error, Err(Error::LongInteger { value: 9_007_199_254_740_993, .. })), "{error:?}");
}

#[test]
fn an_archive_keeps_its_other_arrays_and_names_its_columns() {
    let table = read("named.npz");
    assert_eq!(table.column_names(), ["Größe", "wind speed", "°C"]);
    let out = written(&table, &filled(&table, 0.25), NPZ);
    assert_eq!(out, written(&table, &filled(&table, 0.25), NPZ), "the same bytes each time");
    let after = parse(&out, NPZ).expect("a table");
    assert_eq!(after.dataset().row(0), [1.5, 0.25, -3.0]);
    assert_eq!(after.column_names(), table.column_names());
    // The others are where they were, and the same bytes.
    let (before, after) = (entries(&bytes("named.npz")), entries(&out));
    for ((name, was), (new_name, is)) in before.iter().zip(&after) {
        assert_eq!(name, new_name);
        assert_eq!(was == is, name != "air.npy", "{name}");
    }
    assert_eq!(before.len(), after.len());
}

#[test]
fn damaged_names_of_columns_are_not_passed_over() {
    let whole = bytes("named.npz");
    let at = |what: &[u8]| whole.windows(what.len()).rposition(|w| w == what).expect("there");
    let entry = at(b"columns.npy") - 46; // in the directory at the end
    let damaged = |at: usize, by: u8| {
        let mut bytes = whole.clone();
        bytes[at] ^= by;
        parse(&bytes, NPZ)
    };
    let checksum = damaged(entry + 16, 1);
    assert!(matches!(checksum, Err(Error::NotNpz { .. })), "{checksum:?}");
    let encrypted = damaged(entry + 8, 1);
    assert!(matches!(encrypted, Err(Error::NotNpz { .. })), "{encrypted:?}");
    // Encrypted parts are not carried along either: a copy would be damaged.
    let encrypted = damaged(at(b"fold.npy") - 46 + 8, 1);
    assert!(matches!(encrypted, Err(Error::NotNpz { .. })), "{encrypted:?}");
}

/// The files of an archive, as they are compressed.
fn entries(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut zip = zip::ZipArchive::new(std::io::Cursor::new(archive)).expect("a zip");
    let n = zip.len();
    let entry = |i| {
        let mut file = zip.by_index_raw(i).expect("an entry");
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).expect("whole");
        (file.name().expect("a name").into_owned(), bytes)
    };
    (0..n).map(entry).collect()
}

#[test]
fn the_array_meant_is_named_unless_it_is_the_only_table() {
    let remedies =
        check_error("several.npz", "has several arrays of numbers: `a`, `b`; choose one by its name");
    assert_eq!(remedies, [Remedy::Array]);
    assert_eq!(read_with("several.npz", &array("b")).expect("a table").n_rows(), 2);
    assert_eq!(read_with("several.npz", &array("c")).expect("a table").n_columns(), 1);
    let error = read_with("several.npz", &array("d")).expect_err("no such array").to_string();
    assert_eq!(
        error,
        "there is no array `d`; there are `a (2-d, f8)`, `b (2-d, f8)`, `c (1-d, f8)`, `words (1-d, text)`"
    );
    let error = read_with("several.npz", &array("words")).expect_err("text").to_string();
    assert!(error.starts_with("array `words` holds text, not numbers;"), "{error}");
    let remedies = check_error(
        "no_table.npz",
        "has no array of numbers in two dimensions among `a (1-d, f8)`, `b (3-d, f8)`; save one with numpy.savez, or choose one by its name",
    );
    assert_eq!(remedies, [Remedy::Array]);
    let remedies = check_error(
        "none.npz",
        "has no array of numbers in two dimensions; save one with numpy.savez, or choose one by its name",
    );
    assert_eq!(remedies, [Remedy::Array]);
}

#[test]
fn what_is_no_table_of_numbers_is_said() {
    let holds = |what: &str| {
        format!("holds {what}, not numbers; save it as numbers: numpy.save(FILE, a.astype('float64'))")
    };
    check_error("objects.npy", &holds("Python objects"));
    check_error("complex.npy", &holds("complex numbers"));
    check_error("text.npy", &holds("text"));
    check_error("dates.npy", &holds("dates or times"));
    check_error("fields.npy", &holds("named fields"));
    check_error("extended.npy", &holds("items of type `<f16`"));
    check_error("no_rows.npy", "has shape (0, 3), which holds no cells; give at least two rows of data");
    let shape = |shape: &str| {
        format!(
            "has shape {shape} and a table has rows and columns; save the part that is one, or reshape it: numpy.save(FILE, a.reshape(rows, columns))"
        )
    };
    check_error("no_dimension.npy", &shape("()"));
    check_error("three_dimensions.npy", &shape("(2, 3, 4)"));
    check_error(
        "infinite.npy",
        "row 2, column `x2`: `-inf` is not a finite number; correct the cell or leave it empty",
    );
    check_error(
        "two_arrays.npy",
        "goes on behind its array of shape (4, 3); save one array per file, or several with numpy.savez",
    );
    let error = parse(b"a,b\n1,2\n", NPY).expect_err("text");
    assert_eq!(
        error.to_string(),
        "is not a whole NumPy array (it does not begin with \\x93NUMPY); write it with numpy.save, or give its true format"
    );
    assert_eq!(error.remedies(), [Remedy::Format(None)]);
    assert!(matches!(parse(b"a,b\n1,2\n", NPZ), Err(Error::NotNpz { .. })));
}

/// An array file with the header given.
fn with_header(text: &str, items: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x02\x00".to_vec();
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes.extend_from_slice(items);
    bytes
}

#[test]
fn a_claim_beyond_the_bytes_fails_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    for order in ["True", "False"] {
        for shape in [
            "(1000000000000,)",
            "(1, 1000000000000)",
            "(1000000, 1000000)",
            "(18446744073709551615, 18446744073709551615)",
            "(4294967296, 4294967296)",
        ] {
            let bytes = with_header(
                &format!("{{'descr': '<f8', 'fortran_order': {order}, 'shape': {shape}}}"),
                &[0; 16],
            );
            let streamed = parse(&bytes, NPY);
            assert!(matches!(streamed, Err(Error::ArrayEnds { .. })), "{shape}: {streamed:?}");
            let path = folder.path().join("claims.npy");
            fs::write(&path, &bytes).expect("a file");
            let read = io::read(
                Input::<&[u8]>::File(File::open(&path).expect("a file")),
                NPY,
                &ReadOptions::default(),
            );
            assert!(matches!(read, Err(Error::ArrayEnds { .. })), "{shape}: {read:?}");
        }
    }
    let long = b"\x93NUMPY\x02\x00\xff\xff\xff\xff{'descr'";
    assert!(matches!(parse(long, NPY), Err(Error::ArrayType { .. })));
    for text in [
        "",
        "{}",
        "{'descr': '<f8'}",
        "{'descr': '<f8', 'fortran_order': 1, 'shape': (1, 1)}",
        "{'descr': '",
        "{'descr': '<f8', 'fortran_order': True, 'shape': (-1, 1)}",
        "{'descr': '<f8', 'fortran_order': True, 'shape': (1, 1",
    ] {
        assert!(matches!(parse(&with_header(text, &[0; 8]), NPY), Err(Error::NotNpy { .. })), "{text}");
    }
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    for (name, format) in
        [("f8.npy", NPY), ("f4_fortran_big_endian.npy", NPY), ("named.npz", NPZ), ("one.npz", NPZ)]
    {
        let whole = bytes(name);
        for end in 0..whole.len() {
            let cut = parse(&whole[..end], format);
            assert!(cut.is_err(), "{name} cut at {end}");
        }
    }
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&bytes("f8.npy")).expect("memory takes all");
    let whole = gzip.finish().expect("memory takes all");
    let format = Format { gzip: true, ..NPY };
    check_same(parse(&whole, format).expect("a table").dataset(), read("f8.npy").dataset());
    for end in 0..whole.len() {
        assert!(matches!(parse(&whole[..end], format), Err(Error::Gzip { .. })), "cut at {end}");
    }
}

#[test]
fn results_are_written_as_arrays_without_their_text() {
    let scores = Matrix::from_rows(&[[1.5, GAP], [2.0, -0.0]]);
    let mut sheet = Sheet::default();
    sheet.push("site", Cells::Text(vec!["north".to_owned(), "south".to_owned()]));
    sheet.push("row", Cells::Integers(vec![1, 2]));
    sheet.push_matrix(["größe".to_owned(), "y".to_owned()], &scores);
    let mut npy = Vec::new();
    assert_eq!(sheet.write(NPY, &mut npy).expect("memory takes all"), ["site"]);
    let table = parse(&npy, NPY).expect("a table");
    assert_eq!(bits(table.dataset().values().as_slice()), bits(&[1.0, 1.5, GAP, 2.0, 2.0, -0.0]));
    let mut npz = Vec::new();
    assert_eq!(sheet.write(NPZ, &mut npz).expect("memory takes all"), ["site"]);
    assert_eq!(parse(&npz, NPZ).expect("a table").column_names(), ["row", "größe", "y"]);

    let mut words = Sheet::default();
    words.push("site", Cells::Text(vec!["north".to_owned()]));
    assert!(matches!(words.write(NPY, Vec::new()), Err(Error::OnlyText)));
    let text = io::csv::read("id,x\na,1\nb,\n".as_bytes()).expect("a table");
    let mut out = Vec::new();
    assert_eq!(text.write_filled(&filled(&text, 3.0), NPZ, &mut out).expect("memory takes all"), ["id"]);
    assert_eq!(parse(&out, NPZ).expect("a table").column_names(), ["x"]);
}

#[test]
fn a_destination_that_fails_is_an_error() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    for (name, format) in [("f8.npy", NPY), ("named.npz", NPZ)] {
        let table = read(name);
        let error = table.write_filled(table.dataset().values(), format, Full);
        assert!(
            matches!(&error, Err(Error::Write(e)) if e.kind() == std::io::ErrorKind::StorageFull),
            "{error:?}"
        );
    }
}

/// Items of a type as NumPy writes them, with the numbers they are.
fn items(code: &str, numbers: &[f64]) -> (Vec<u8>, Vec<f64>) {
    let (mut bytes, mut exact) = (Vec::new(), Vec::new());
    macro_rules! put {
        ($type:ty) => {
            for &v in numbers {
                let item = v as $type;
                bytes.extend_from_slice(&item.to_le_bytes());
                exact.push(item.to_string().parse().expect("a number"));
            }
        };
    }
    match code {
        "i1" => put!(i8),
        "i2" => put!(i16),
        "i4" => put!(i32),
        "i8" => put!(i64),
        "u1" | "b1" => put!(u8),
        "u2" => put!(u16),
        "u4" => put!(u32),
        "u8" => put!(u64),
        "f4" => {
            let single: Vec<f32> = numbers.iter().map(|v| *v as f32).collect();
            bytes.extend(single.iter().flat_map(|v| v.to_le_bytes()));
            exact.extend(single.into_iter().map(f64::from));
        }
        _ => put!(f64),
    }
    (bytes, exact)
}

proptest! {
    #[test]
    fn any_array_is_read_and_leaves_as_numpy_writes_it(
        code in prop::sample::select(vec!["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]),
        (rows, columns, numbers) in (1_usize..9, 1_usize..7).prop_flat_map(|(n, d)| {
            let number = prop_oneof![4 => -300.0..300.0, 1 => Just(f64::NAN), 1 => Just(-0.0), 1 => -1e15..1e15];
            (Just(n), Just(d), prop::collection::vec(number, n * d))
        }),
        fortran: bool,
        big_endian: bool,
        exclude in prop::option::of(0_usize..7),
    ) {
        let (little, exact) = items(code, &numbers);
        let size = little.len() / numbers.len();
        // The file holds the same items in the order and with the bytes asked for.
        let mut stored = Vec::new();
        for k in 0..numbers.len() {
            let at = if fortran { (k % rows) * columns + k / rows } else { k };
            let item = &little[at * size..(at + 1) * size];
            if big_endian { stored.extend(item.iter().rev()) } else { stored.extend_from_slice(item) }
        }
        let mark = match (size, big_endian) { (1, _) => '|', (_, true) => '>', _ => '<' };
        let order = if fortran { "True" } else { "False" };
        let file = with_header(&format!("{{'descr': '{mark}{code}', 'fortran_order': {order}, 'shape': ({rows}, {columns}), }}\n"), &stored);
        let mut options = ReadOptions::default();
        let exclude = exclude.filter(|j| *j < columns && columns > 1);
        options.choice.exclude = exclude.iter().map(|j| format!("x{}", j + 1)).collect();
        let table = io::read(Input::Stream(&file[..]), NPY, &options).expect("a table");
        let kept: Vec<f64> =
            (0..numbers.len()).filter(|k| Some(k % columns) != exclude).map(|k| exact[k]).collect();
        prop_assert_eq!(bits(table.dataset().values().as_slice()), bits(&kept));

        let out = written(&table, table.dataset().values(), NPY);
        prop_assert_eq!(out.len() % 64, little.len() % 64);
        // NaN is NaN whatever its bits.
        let tail = &out[out.len() - little.len()..];
        if exact.iter().all(|v| !v.is_nan()) {
            prop_assert_eq!(tail, &little[..]);
        }
        let again = io::read(Input::Stream(&out[..]), NPY, &options).expect("a table");
        prop_assert_eq!(bits(again.dataset().values().as_slice()), bits(&kept));
        let archive = written(&table, table.dataset().values(), NPZ);
        let again = io::read(Input::Stream(&archive[..]), NPZ, &options).expect("a table");
        prop_assert_eq!(bits(again.dataset().values().as_slice()), bits(&kept));
        prop_assert_eq!(written(&again, again.dataset().values(), NPZ), archive);
    }

    #[test]
    fn damaged_bytes_never_panic(
        name in prop::sample::select(vec!["f8.npy", "f4_fortran_big_endian.npy", "fields.npy", "named.npz", "several.npz"]),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut damaged = bytes(name);
        for (at, byte) in flips {
            *at.get_mut(&mut damaged) = byte;
        }
        let format = Format::of_file(name).expect("a known extension");
        if let Ok(table) = parse(&damaged, format) {
            written(&table, &filled(&table, 1.0), format);
        }
        let _ = io::read(Input::Stream(&damaged[..]), format, &array("b"));
    }
}
