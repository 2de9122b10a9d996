//! Exceptions, one class per kind of reason; the classes are Python's (`covary.exceptions`).

use covary::{Error, Remedy};
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Which class of `covary.exceptions` stands for an error.
fn class(error: &Error) -> &'static str {
    match error {
        Error::EmptyTable { .. }
        | Error::Infinite { .. }
        | Error::TooFewRows { .. }
        | Error::EmptyColumn { .. }
        | Error::ConstantColumn { .. }
        | Error::AllConstant { .. }
        | Error::OutOfScale { .. }
        | Error::HasGaps { .. }
        | Error::GapsInSources { .. }
        | Error::SparseGap { .. }
        | Error::SparseOrder { .. }
        | Error::SingularView { .. }
        | Error::ConstantView { .. }
        | Error::FlatView { .. }
        | Error::ColumnCount { .. }
        | Error::TooFewToHide { .. }
        | Error::OneClass { .. }
        | Error::NotInFullTable { .. }
        | Error::NothingToCompare
        | Error::LooksLikeMatrix { .. }
        | Error::NoRows { .. }
        | Error::RepeatedTime { .. }
        | Error::TooFewTimes { .. }
        | Error::IrregularTimes { .. }
        | Error::OtherTimes { .. }
        | Error::NothingFollows { .. }
        | Error::RepeatedPoint { .. }
        | Error::TooFewCurves { .. }
        | Error::OnePointPerCurve { .. }
        | Error::OneTime { .. }
        | Error::OutsideInterval { .. }
        | Error::LostBlock { .. }
        | Error::DoubledBlock { .. }
        | Error::UnknownBlock { .. }
        | Error::ForeignState { .. }
        | Error::Unreadable { .. }
        | Error::Unkept { .. }
        | Error::NotCovariance { .. } => "DataError",
        Error::TooManyComponents { .. }
        | Error::TooManyEigenfunctions { .. }
        | Error::FixedComponents { .. }
        | Error::DegenerateNoise { .. }
        | Error::RankBelow { .. }
        | Error::NotIdentified { .. }
        | Error::CollapsedModel
        | Error::TooManyMixtures { .. } => "ComponentsError",
        Error::InClass { error, .. } => class(error),
        Error::Numerical { .. } => "NumericalError",
        _ => "OptionError",
    }
}

/// The exception for what the library refused.
pub(crate) fn of(error: Error) -> PyErr {
    if error == Error::Interrupted {
        return pyo3::exceptions::PyKeyboardInterrupt::new_err(());
    }
    let message = match &error {
        // In the words scikit-learn's users know.
        Error::Infinite { row, column, value } => format!(
            "Input X contains infinity: row {row}, column `{column}` (both counted from 1) is {value}; correct the cell, or set it to NaN"
        ),
        Error::GapsInSources { .. } => format!("Input X contains NaN: {error}"),
        other => other.to_string(),
    };
    raise(class(&error), &with_classes(&message, &error.remedies()))
}

/// A message and what follows its advice in Python.
fn with_classes(message: &str, remedies: &[Remedy]) -> String {
    let classes: Vec<&str> = remedies.iter().filter_map(in_python).collect();
    if classes.is_empty() { message.to_owned() } else { format!("{message} ({})", classes.join(", or ")) }
}

/// What Python calls a remedy; none where a table is changed by the words of NumPy or pandas.
fn in_python(remedy: &Remedy) -> Option<&'static str> {
    match remedy {
        Remedy::Method("noisy") => Some("use NoisyICA"),
        Remedy::Impute => Some("impute first with Imputer"),
        Remedy::Matrix(_) => Some("use FactorAnalysis.fit_covariance(S, n_rows)"),
        _ => None,
    }
}

/// The exception for a model file.
pub(crate) fn of_file(error: covary::io::Error) -> PyErr {
    raise("ModelFileError", &with_classes(&error.to_string(), &error.remedies()))
}

/// An exception of `covary.exceptions`.
pub(crate) fn raise(class: &str, message: &str) -> PyErr {
    Python::attach(|py| {
        let made = py
            .import("covary.exceptions")
            .and_then(|module| module.getattr(class))
            .and_then(|class| class.call1((PyString::new(py, message),)));
        match made {
            Ok(exception) => PyErr::from_value(exception),
            Err(error) => error,
        }
    })
}
