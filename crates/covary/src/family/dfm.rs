//! Dynamic factor models: rows that follow each other in time.

use super::{AnyMethod, Choice, Chosen, Components, Entry, Family, Kind, LINEAR, Progress, Request};
use crate::dynamics::DynamicEm;
use crate::{Dataset, Spec};

pub(super) const ENTRY: Entry = Entry {
    name: "dfm",
    words: "dynamic factor model",
    summary: "A dynamic factor model: rows that follow each other in time, with gaps, season and forecasts.",
    kind: Kind::Dynamic,
    methods: &[DynamicEm::NAME],
    default_method: |_, _| DynamicEm::default().into(),
    // What follows in time tells factors from noise, however few columns there are. Season and trend may take nearly all of the
    // variance of a column, of which the floor of the noise is a share.
    spec: |standardize| Spec {
        standardize,
        allow_unidentified: true,
        noise_floor: Some(1e-4),
        ..Spec::factor_analysis(1)
    },
    choose,
    ..LINEAR
};

/// Factors that hidden cells of the same rows find without time, at least 1: what moves columns together at a time needs no
/// time to be counted.
fn choose(request: &Request, data: &Dataset, _: &AnyMethod, watch: &Progress<'_>) -> Chosen {
    let (seed, standardize) = (request.seed, request.standardize);
    let n_components = Some(Components::Auto);
    let searched = Request { seed, standardize, n_components, ..Request::new(Family::Ppca) };
    let found = searched.choose(data, &searched.method(data)?, watch)?;
    Ok(Choice { n_components: found.n_components.max(1), ..found })
}
