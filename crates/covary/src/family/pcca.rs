//! Probabilistic canonical correlation.

use super::{AnyMethod, Entry, LINEAR, Request, choice};
use crate::infer::{BachJordan, SharedPrivate};
use crate::{Dataset, Error, Method};

pub(super) const ENTRY: Entry = Entry {
    name: "pcca",
    words: "probabilistic canonical correlation",
    summary: "Probabilistic canonical correlation: what two views share, and one predicted from the other.",
    methods: &["bach-jordan", "shared-private"],
    default_method: |data, _| {
        if data.is_complete() {
            Method::BachJordan(BachJordan::default()).into()
        } else {
            Method::SharedPrivate(SharedPrivate::default()).into()
        }
    },
    has_share: false,
    views: Some((2, 2, "two views")),
    choose: |request, data, method, _| choice::significant_correlations(request, data, method),
    most,
    allowed: |request, data, asked| {
        let (max, rows) = (most(request, data), data.n_informative_rows());
        if asked > max { Err(Error::TooManyComponents { asked, rows, columns: max, max }) } else { Ok(asked) }
    },
    // Private components stand for the noise within views.
    n_shown: |model, asked| asked.min(model.n_components()),
    reconstruction: None,
    rotates: false,
    ..LINEAR
};

fn most(request: &Request, data: &Dataset) -> usize {
    // Views that were reduced have no more directions than they were reduced to.
    let rank = match &request.method {
        Some(AnyMethod::Linear(Method::BachJordan(method))) => method.rank,
        _ => None,
    };
    request.spec_for(data, 0).views.into_iter().chain(rank).min().unwrap_or(0)
}
