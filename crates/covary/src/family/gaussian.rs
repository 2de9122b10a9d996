//! A Gaussian with a full covariance.

use super::{AnyMethod, Choice, Chosen, Entry, Grounds, Progress, Request};
use crate::infer::FullCovariance;
use crate::{Dataset, Error, Method, Spec};

pub(super) struct Gaussian;

impl Entry for Gaussian {
    fn name(&self) -> &'static str {
        "gaussian"
    }

    fn words(&self) -> &'static str {
        "Gaussian with a full covariance"
    }

    fn summary(&self) -> &'static str {
        "A Gaussian with a full covariance, which no number of components restricts: often the best for imputation."
    }

    fn methods(&self) -> &'static [&'static str] {
        &["full-covariance"]
    }

    fn default_method(&self, _: &Dataset, _: &Spec) -> AnyMethod {
        Method::FullCovariance(FullCovariance::default()).into()
    }

    fn has_classes(&self) -> bool {
        true
    }

    fn choose(&self, _: &Request, data: &Dataset, _: &AnyMethod, _: &Progress<'_>) -> Chosen {
        Ok(Choice::new(components(data), Grounds::Fixed))
    }

    fn allowed(&self, _: &Request, data: &Dataset, asked: usize) -> Result<usize, Error> {
        fixed(data, asked)
    }
}

/// The components of a full covariance.
pub(super) fn components(data: &Dataset) -> usize {
    data.n_columns().saturating_sub(1)
}

/// The same where a number was asked for, which can be no other.
pub(super) fn fixed(data: &Dataset, asked: usize) -> Result<usize, Error> {
    let (columns, fixed) = (data.n_columns(), components(data));
    if asked == fixed { Ok(fixed) } else { Err(Error::FixedComponents { asked, columns, fixed }) }
}
