//! Independent components.

use super::{AnyMethod, Choice, Chosen, Components, Entry, Family, Grounds, Kind, LINEAR, Progress, Request};
use crate::Dataset;
use crate::ica::{FastIca, Method, n_directions};

pub(super) const ENTRY: Entry = Entry {
    name: "ica",
    words: "independent components",
    summary: "Independent components: sources that are not Gaussian, which is what tells them apart.",
    kind: Kind::Sources,
    methods: Method::NAMES,
    default_method: |_, _| Method::Fast(FastIca::default()).into(),
    standardizes: false,
    has_scale: false,
    has_check: false,
    choose,
    rotates: false,
    ..LINEAR
};

/// As many sources as the table has directions, unless they are noisy or the number is to be found: then the number of
/// components that predicts hidden cells, of factor analysis where every column has its noise, else of
/// probabilistic PCA.
fn choose(request: &Request, data: &Dataset, method: &AnyMethod, watch: &Progress<'_>) -> Chosen {
    let noisy = match method.sources()? {
        Method::Noisy(noisy) => Some(noisy),
        Method::Fast(_) | Method::Likelihood(_) => None,
    };
    let in_options = request.options.iter().any(|(option, _)| option == "n_components");
    if request.n_components.is_none() && (noisy.is_none() || in_options) {
        return Ok(Choice::new(data.n_columns(), Grounds::Directions));
    }
    let own_noise = noisy.is_some_and(|noisy| !noisy.tied_noise);
    let family = if own_noise { Family::Fa } else { Family::Ppca };
    // Whitening is in the table's units, and so is one noise variance for all columns.
    let standardize = Some(own_noise);
    let n_components = Some(Components::Auto);
    let searched = Request { seed: request.seed, standardize, n_components, ..Request::new(family) };
    let found = searched.choose(data, &searched.method(data)?, watch)?;
    let chosen = found.n_components.max(1);
    // Noise of their own makes more components than dependent columns have directions.
    let chosen = if noisy.is_some() { chosen.min(n_directions(data, chosen)?) } else { chosen };
    Ok(Choice { n_components: chosen, ..found })
}
