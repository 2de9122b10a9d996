//! Dynamic factor models: rows that follow each other in time.

use super::{AnyMethod, Arrangement, Choice, Chosen, Entry, Grounds, Kind, LINEAR, Progress, Request};
use crate::dynamics::{DynamicEm, Loadings, TimeSearch};
use crate::{Dataset, Error, Spec};

/// With fewer rows than this for each column loadings are those of a Bayesian PCA (docs/time.md has what was measured).
const ROWS_FOR_COLUMN: usize = 4;

/// Where loadings stay as they are, dynamics of many factors have thousands of parameters: the last nat moves no prediction, and takes
/// most of the steps.
const A_NAT: f64 = 1.0;

/// Factors that a Bayesian PCA is offered for them; it shrinks those it does not need, and what it leaves over must not be
/// coherent: it counts as noise that is new at every step.
const MOST_OFFERED: usize = 60;

pub(super) const ENTRY: Entry = Entry {
    name: "dfm",
    words: "dynamic factor model",
    summary: "A dynamic factor model: rows that follow each other in time, with gaps, season and forecasts.",
    kind: Kind::Dynamic,
    arrangement: Arrangement::InTime,
    methods: &[DynamicEm::NAME],
    default_method: |data, _| {
        // The likelihood of loadings follows what few rows happen to show.
        let wide = data.n_rows() < ROWS_FOR_COLUMN * data.n_columns();
        if wide {
            // What factors leave of a column persists, and would count as news in every row; where it does not, ρ is about 0.
            let (loadings, noise_memory) = (Loadings::Bayes, true);
            DynamicEm { loadings, noise_memory, tolerance: A_NAT, ..DynamicEm::default() }.into()
        } else {
            DynamicEm::default().into()
        }
    },
    // What follows in time tells factors from noise, however few columns there are. Season and trend may take nearly all of the
    // variance of a column, of which the floor of the noise is a share.
    spec: |standardize| Spec {
        standardize,
        allow_unidentified: true,
        noise_floor: Some(1e-4),
        ..Spec::factor_analysis(1)
    },
    choose,
    rotates: false,
    ..LINEAR
};

/// What predicts hidden blocks of time and rows to come: how many factors, and the order and the waves of a season where they
/// were left open.
fn choose(request: &Request, data: &Dataset, method: &AnyMethod, watch: &Progress<'_>) -> Chosen {
    let method = method.dynamic()?;
    if method.loadings == Loadings::Bayes {
        return match MOST_OFFERED.min(request.room(data)) {
            0 => Err(Error::TooManyComponents {
                asked: 1,
                rows: data.n_rows(),
                columns: data.n_columns(),
                max: 0,
            }),
            offered => Ok(Choice::new(offered, Grounds::Offered)),
        };
    }
    let said = |option: &str| request.options.iter().find(|(name, _)| name == option).map(|(_, value)| value);
    // Whoever gives the method itself has said everything.
    let open = request.method.is_none();
    let search = TimeSearch::default();
    let search = TimeSearch {
        estimator: method.clone(),
        purpose: request.purpose(),
        max_order: if open && said("order").is_none() { search.max_order } else { method.order },
        search_waves: open && said("season").is_some_and(|season| !season.contains(':')),
        seed: request.seed,
        ..search
    };
    match search.run_observed(data, &request.spec(), watch) {
        Ok(found) => Ok(Choice::new(found.n_components, Grounds::Blocks(Some(Box::new(found))))),
        Err(Error::TooFewToHide { .. }) => Ok(Choice::new(1, Grounds::Blocks(None))),
        Err(error) => Err(error),
    }
}
