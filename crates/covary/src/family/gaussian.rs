//! A Gaussian with a full covariance.

use super::{Choice, Entry, Grounds, LINEAR};
use crate::infer::FullCovariance;
use crate::{Dataset, Error, Method};

pub(super) const ENTRY: Entry = Entry {
    name: "gaussian",
    words: "Gaussian with a full covariance",
    summary: "A Gaussian with a full covariance, which no number of components restricts: often the best for imputation.",
    methods: &["full-covariance"],
    default_method: |_, _| Method::FullCovariance(FullCovariance::default()).into(),
    // There is one number of components, whatever they explain.
    has_share: false,
    has_classes: true,
    choose: |_, data, _, _| Ok(Choice::new(components(data), Grounds::Fixed)),
    allowed: |_, data, asked| fixed(data, asked),
    ..LINEAR
};

/// The components of a full covariance.
pub(super) fn components(data: &Dataset) -> usize {
    data.n_columns().saturating_sub(1)
}

/// The same where a number was asked for, which can be no other.
pub(super) fn fixed(data: &Dataset, asked: usize) -> Result<usize, Error> {
    let (columns, fixed) = (data.n_columns(), components(data));
    if asked == fixed { Ok(fixed) } else { Err(Error::FixedComponents { asked, columns, fixed }) }
}
