//! Group factor analysis.

use super::{Choice, Entry, Grounds, LINEAR, MOST_OFFERED};
use crate::infer::MeanField;
use crate::spec::NoiseFamily;
use crate::{Method, Spec};

pub(super) const ENTRY: Entry = Entry {
    name: "gfa",
    words: "group factor analysis",
    summary: "Group factor analysis: which components any of several views share.",
    methods: &["mean-field"],
    default_method: |_, _| Method::MeanField(MeanField::default()).into(),
    // One noise for a view would be unequal noise in standardized columns, explained by private
    // components: 10 of 4 simulated ones, 300 × 15 cells in 3 views; 4 with a noise for each column.
    spec: |standardize| {
        let noise = if standardize { NoiseFamily::Diagonal } else { NoiseFamily::Isotropic };
        Spec { standardize, noise, allow_unidentified: standardize, ..Spec::ppca(1) }
    },
    has_share: false,
    views: Some((1, usize::MAX, "one view or more")),
    choose: |_, data, _, _| {
        let rows = data.n_informative_rows().saturating_sub(2);
        Ok(Choice::new(MOST_OFFERED.min(data.n_columns() - 1).min(rows), Grounds::Offered))
    },
    rotates: false,
    ..LINEAR
};
