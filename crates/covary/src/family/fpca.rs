//! Functional PCA: curves at irregular times.

use super::{AnyMethod, Arrangement, Choice, Chosen, Entry, Grounds, Kind, LINEAR, Progress, Request};
use crate::functional::{CurveSearch, FunctionalEm};
use crate::select::ChoiceRule;
use crate::{Dataset, Spec};

pub(super) const ENTRY: Entry = Entry {
    name: "fpca",
    words: "functional PCA",
    summary: "Functional PCA: curves at a few times each, which may be others for every curve; smooth components of them.",
    kind: Kind::Functional,
    arrangement: Arrangement::Curves,
    methods: &[FunctionalEm::NAME],
    default_method: |_, _| FunctionalEm::default().into(),
    standardizes: false,
    has_scale: false,
    has_share: false,
    // Smooth curves leave little: the floor is only where numbers end.
    spec: |standardize| Spec { standardize, noise_floor: Some(1e-8), ..Spec::ppca(1) },
    choose,
    most: |_, data| data.points().map_or(data.n_rows(), |points| points.names().len()).saturating_sub(1),
    rotates: false,
    ..LINEAR
};

/// The components that predict hidden points of curves.
fn choose(request: &Request, data: &Dataset, method: &AnyMethod, watch: &Progress<'_>) -> Chosen {
    let search =
        CurveSearch { estimator: method.functional()?.clone(), seed: request.seed, ..CurveSearch::default() };
    let scores = search.run_observed(data, &request.spec(), watch)?;
    // To fill as well: more components than the fewest that predict as well as the best follow the noise of few points, and
    // intervals are too short then.
    let n_components = scores.as_ref().map_or(1, |scores| scores.chosen(ChoiceRule::OneStandardError));
    Ok(Choice::new(n_components, Grounds::HiddenCells(scores)))
}
