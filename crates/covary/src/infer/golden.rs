//! Golden cases of the spec for the unit tests of methods, which start from given parameters.

use crate::Matrix;
use serde_json::Value;
use std::path::Path;

pub(super) fn golden(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let text = std::fs::read_to_string(folder.join(format!("{name}.json")));
    serde_json::from_str(&text.expect("golden cases are part of the project")).expect("golden cases are JSON")
}

/// All numbers of a nested list; null becomes NaN.
pub(super) fn flat(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().flat_map(flat).collect(),
        Value::Null => vec![f64::NAN],
        number => vec![number.as_f64().expect("a number")],
    }
}

pub(super) fn matrix(value: &Value) -> Matrix {
    Matrix::from_rows(&value.as_array().expect("a list of rows").iter().map(flat).collect::<Vec<_>>())
}

/// `|got − want| ≤ relative · max(1, |want|)`, element by element.
#[track_caller]
pub(super) fn check(what: &str, got: &[f64], want: &Value, relative: f64) {
    let want = flat(want);
    assert_eq!(got.len(), want.len(), "{what}: number of values");
    for (i, (g, w)) in got.iter().zip(&want).enumerate() {
        assert!((g - w).abs() <= relative * w.abs().max(1.0), "{what}[{i}]: got {g}, want {w}");
    }
}
