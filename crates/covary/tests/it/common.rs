//! Golden cases and comparisons shared by the modules.

use covary::{Dataset, Matrix, Noise};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A golden case: input, expected answers and the tolerance at which they must be met.
pub(crate) struct Golden {
    value: Value,
    abs: f64,
    rel: f64,
}

impl Golden {
    pub(crate) fn open(name: &str) -> Self {
        let value = golden("part1", name);
        let tolerance = |k: &str| value["tolerance"][k].as_f64().expect("a golden case states its tolerance");
        Self { abs: tolerance("abs"), rel: tolerance("rel"), value }
    }

    pub(crate) fn input(&self, key: &str) -> &Value {
        &self.value["input"][key]
    }

    pub(crate) fn expected(&self, key: &str) -> &Value {
        &self.value["expected"][key]
    }

    /// `|got − want| ≤ abs + rel |want|`, element by element.
    #[track_caller]
    pub(crate) fn check(&self, what: &str, got: &[f64], want: &Value) {
        let want = flat(want);
        assert_eq!(got.len(), want.len(), "{what}: number of values");
        for (i, (g, w)) in got.iter().zip(&want).enumerate() {
            assert!((g - w).abs() <= self.abs + self.rel * w.abs(), "{what}[{i}]: got {g}, want {w}");
        }
    }

    #[track_caller]
    pub(crate) fn check_one(&self, what: &str, got: f64, want: &Value) {
        self.check(what, &[got], want);
    }
}

/// The text of a golden case; what its tolerance means is for the test to say.
pub(crate) fn golden(part: &str, name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(part);
    let text = std::fs::read_to_string(folder.join(format!("{name}.json")));
    serde_json::from_str(&text.expect("golden cases are part of the project")).expect("golden cases are JSON")
}

/// All numbers of a nested list; null becomes NaN.
pub(crate) fn flat(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().flat_map(flat).collect(),
        Value::Null => vec![f64::NAN],
        number => vec![number.as_f64().expect("a number")],
    }
}

pub(crate) fn matrix(value: &Value) -> Matrix {
    Matrix::from_rows(&value.as_array().expect("a list of rows").iter().map(flat).collect::<Vec<_>>())
}

pub(crate) fn dataset(value: &Value) -> Dataset {
    Dataset::new(matrix(value)).expect("golden data are valid")
}

pub(crate) fn noise(value: &Value) -> Noise {
    if value.is_array() {
        Noise::Diagonal(flat(value))
    } else {
        Noise::Isotropic(value.as_f64().expect("a number"))
    }
}

#[track_caller]
pub(crate) fn assert_close(what: &str, got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len(), "{what}: number of values");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).abs() <= tolerance * (1.0 + w.abs()), "{what}[{i}]: got {g}, want {w}");
    }
}

/// The folder of data sets that may not be shipped: `COVARY_DATA`, else `../shared/data` beside the
/// project. `None`, said aloud, when it is absent.
#[allow(clippy::print_stderr, reason = "a skipped comparison must be seen")]
pub(crate) fn shared_data(file: &str) -> Option<PathBuf> {
    let root = std::env::var_os("COVARY_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
    let path = root.join(file);
    if path.exists() {
        return Some(path);
    }
    eprintln!("SKIPPED: {} is absent; set COVARY_DATA to the folder of data sets", path.display());
    None
}
