//! Probabilistic canonical correlation.

use super::{Entry, LINEAR, choice};
use crate::infer::{BachJordan, SharedPrivate};
use crate::{Error, Method};

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
    views: Some((2, 2, "two views")),
    choose: |request, data, method, _| choice::significant_correlations(request, data, method),
    allowed: |request, data, asked| {
        let max = request.spec_for(data, 0).views.into_iter().min().unwrap_or(0);
        let rows = data.n_informative_rows();
        if asked > max { Err(Error::TooManyComponents { asked, rows, columns: max, max }) } else { Ok(asked) }
    },
    // Private components stand for the noise within views.
    n_shown: |model, asked| asked.min(model.n_components()),
    reconstruction: None,
    ..LINEAR
};
