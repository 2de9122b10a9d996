//! How the number of components is chosen where it was left open.

use super::{AnyMethod, Chosen, Progress, Request};
use crate::data::Pattern;
use crate::dynamics::{DynamicEm, TimeChoice};
use crate::infer::{Em, FullCovariance, Kept, PrincipalAxes, SharedPrivate};
use crate::select::{HeldOut, HeldOutOptions, MixtureSize, OwnComponents, PilotSearch, held_out_cells_up_to};
use crate::views::{CanonicalCorrelation, CanonicalTest};
use crate::{Dataset, Error, Estimator, Method, Spec};
use std::ops::Range;

/// Most components offered, without being asked, to a method that drops those it does not need.
pub const MOST_OFFERED: usize = 30;
/// Canonical correlations count as shared while their test has a p-value of at most this.
pub const SIGNIFICANT: f64 = 0.05;

/// How many components, and on what grounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The number of components.
    pub n_components: usize,
    /// The number of models of a mixture; 1 for other families.
    pub n_mixtures: usize,
    /// Why this number.
    pub grounds: Grounds,
    /// The mixture itself, where its models have components of their own; `n_components` is the most of them.
    pub own: Option<Box<OwnComponents>>,
}

/// Why a number of components was taken.
#[derive(Debug, Clone, PartialEq)]
pub enum Grounds {
    /// It was asked for.
    Asked,
    /// The fewest principal components that explain more than this share of the variance, which was asked for.
    Share(f64),
    /// The family has no other.
    Fixed,
    /// The most there may be: the method drops those it does not need.
    Offered,
    /// The fewest that predict hidden cells as well as the best number, or the best where the purpose is to fill gaps; `None`
    /// if the table has no room for components, or no cell to spare.
    HiddenCells(Option<HeldOut>),
    /// The canonical correlations before the first that may be due to chance.
    Correlations {
        /// Each with its test.
        tests: Vec<CanonicalTest>,
        /// How many tables with permuted rows they were compared with; `None` if by Bartlett's test.
        n_permutations: Option<usize>,
    },
    /// The size of a mixture of least BIC among these.
    Sizes(Vec<MixtureSize>),
    /// Factors, their order and the waves of their season that predict hidden blocks of time and rows to come; `None` if the
    /// table has no cell to spare.
    Blocks(Option<Box<TimeChoice>>),
    /// All directions of the table; the number is how many there are at most.
    Directions,
}

impl Choice {
    pub(crate) fn new(n_components: usize, grounds: Grounds) -> Self {
        Self { n_components, n_mixtures: 1, grounds, own: None }
    }

    /// The method with what hidden blocks of time chose besides.
    pub(crate) fn in_time(&self, method: &DynamicEm) -> DynamicEm {
        match &self.grounds {
            Grounds::Blocks(Some(found)) => found.applied(method),
            _ => method.clone(),
        }
    }

    /// The scores of hidden cells that chose the number, if they did.
    pub fn scores(&self) -> Option<&HeldOut> {
        match &self.grounds {
            Grounds::HiddenCells(scores) => scores.as_ref(),
            _ => None,
        }
    }
}

/// The components that predict hidden cells, as the purpose asks; methods that drop components are offered up to
/// [`MOST_OFFERED`].
pub(super) fn by_hidden_cells(
    request: &Request,
    data: &Dataset,
    method: &AnyMethod,
    watch: &Progress<'_>,
) -> Chosen {
    if method.prunes() {
        return Ok(Choice::new(MOST_OFFERED.min(request.room(data)), Grounds::Offered));
    }
    let purpose = request.purpose();
    let search = PilotSearch { purpose, seed: request.seed, ..PilotSearch::default() };
    let scores = search.run_observed(data, &request.spec(), watch)?;
    let n_components = scores.as_ref().map_or(0, |scores| scores.chosen(purpose.rule()));
    Ok(Choice::new(n_components, Grounds::HiddenCells(scores)))
}

/// Most components that the method itself is fitted with to find how many predict hidden cells best.
const MOST_REFITTED: usize = 8;

/// The same where no pilot stands for the model, by fits of its own method for every number of components.
pub(super) fn by_refits(
    request: &Request,
    data: &Dataset,
    method: &AnyMethod,
    watch: &Progress<'_>,
) -> Chosen {
    let refit = request.with_gaps(method.linear()?)?;
    let options = HeldOutOptions { seed: request.seed, ..HeldOutOptions::default() };
    let most = MOST_REFITTED.min(request.room(data));
    let scores = held_out_cells_up_to(data, &request.spec(), most, &refit, &options, watch)?;
    let n_components = scores.as_ref().map_or(0, |scores| scores.chosen(request.purpose().rule()));
    Ok(Choice::new(n_components, Grounds::HiddenCells(scores)))
}

impl Request {
    /// The method for a table whose cells have been hidden: there are gaps then, even where there were
    /// none.
    pub(crate) fn with_gaps(&self, method: &Method) -> Result<Method, Error> {
        let limited = |method: Method| Ok(self.limited(method.into(), &[])?.linear()?.clone());
        match method {
            // The sampler would take long for a check.
            Method::Spectral(_)
            | Method::Newton(_)
            | Method::ConditionalMaximization(_)
            | Method::FixedPoint(_)
            | Method::Gibbs(_) => limited(Method::Em(Em::default())),
            Method::BachJordan(_) => limited(Method::SharedPrivate(SharedPrivate::default())),
            _ => Ok(method.clone()),
        }
    }
}

/// As many components as there are canonical correlations before the first that may be due to chance (p > 0.05): by
/// Bartlett's test, or by permuted rows where there are few of them, a ridge or a rank. With gaps they are those of the covariance
/// that the rows have by EM, and count as many rows as have two cells of the two views on average.
pub(super) fn significant_correlations(request: &Request, data: &Dataset, method: &AnyMethod) -> Chosen {
    let dx = request.spec_for(data, 0).views[0];
    let canonical = match method {
        AnyMethod::Linear(Method::BachJordan(method)) => method.into(),
        _ => CanonicalCorrelation::default(),
    };
    let (n, d) = (data.n_rows(), data.n_columns());
    let reduced = canonical.ridge > 0.0 || canonical.rank.is_some();
    let permuted = data.is_complete() && (reduced || n < 2 * d);
    let mut n_permutations = None;
    let tests = if data.is_complete() {
        let [x, y] = [0..dx, dx..d].map(|view| data.of_columns(&view.collect::<Vec<_>>()));
        if permuted {
            let found = canonical.sequential_tests(&x?, &y?, SIGNIFICANT, request.seed)?;
            n_permutations = Some(found.n_permutations);
            found.tests
        } else {
            canonical.fit(&x?, &y?)?.bartlett_tests()
        }
    } else {
        let spec = Spec { standardize: true, ..Spec::ppca(d - 1) };
        let full = FullCovariance { pseudo_rows: 0.0, ..FullCovariance::default() }.fit(data, &spec)?.model;
        let pairs = |p: Pattern<'_>| {
            let seen = |view: Range<usize>| {
                view.len() - p.gaps.iter().filter(|g| view.contains(&(**g as usize))).count()
            };
            p.rows.len() * seen(0..dx) * seen(dx..d)
        };
        let rows = data.patterns().map(pairs).sum::<usize>() / (dx * (d - dx));
        canonical.of_covariance(rows.max(2), full.mean(), &full.covariance(), dx)?.bartlett_tests()
    };
    let n_components = tests.iter().take_while(|test| test.p_value <= SIGNIFICANT).count();
    Ok(Choice::new(n_components, Grounds::Correlations { tests, n_permutations }))
}

/// The fewest principal components that explain more than a share of the variance.
pub(super) fn explaining(data: &Dataset, share: f64, standardize: bool) -> Result<usize, Error> {
    let axes = PrincipalAxes { kept: Kept::Share(share), ..PrincipalAxes::default() };
    let scaled;
    let data = if standardize {
        let mut values = data.values().clone();
        values.scale_columns(&data.observed_variances().iter().map(|v| 1.0 / v.sqrt()).collect::<Vec<_>>());
        scaled = Dataset::with_names(values, data.column_names().to_vec())?;
        &scaled
    } else {
        data
    };
    Ok(axes.fit(data)?.components.n_rows())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Shape, simulate};
    use crate::family::Family;

    #[test]
    fn every_method_of_one_model_has_one_that_takes_gaps() {
        let whole = simulate::ppca(Shape { rows: 40, columns: 6, n_components: 2 }, 1).0;
        let gaps = simulate::hide(&whole, 0.1, 2);
        for family in Family::ALL.iter().filter(|family| family.kind() == crate::family::Kind::Linear) {
            let request = Request::new(*family);
            for name in family.methods() {
                let own = Method::from_name(name).expect("a method of one model");
                let hidden = request.with_gaps(&own).unwrap();
                let views = if family.has_views() { vec![3, 3] } else { Vec::new() };
                let n_components = if *family == Family::Gaussian { 5 } else { 1 };
                let spec = Spec { n_components, views, ..request.spec() };
                hidden.fit(&gaps, &spec).unwrap_or_else(|e| panic!("{family} by {name}: {e}"));
                // One that takes them is not replaced, except for the sampler.
                let takes = own.fit(&gaps, &spec).is_ok() && *name != "gibbs";
                assert_eq!(takes, hidden == own, "{family} by {name}");
            }
        }
        let request = Request::new(Family::Gaussian);
        let method = request.method(&gaps).unwrap();
        assert_eq!(&request.with_gaps(method.linear().unwrap()).unwrap(), method.linear().unwrap());
    }
}
