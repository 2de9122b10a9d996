//! Mixtures of probabilistic PCAs.

use super::{AnyMethod, Choice, Chosen, Entry, Grounds, Kind, Progress, Request};
use crate::infer::MixtureEm;
use crate::select::{MixtureComparison, mixture_sizes};
use crate::{Dataset, Error, Spec};

/// Most models tried to find how many BIC prefers.
pub const MOST_MIXTURES: usize = 6;
/// Most components of each tried with them.
pub const MOST_COMPONENTS: usize = 4;

pub(super) struct Mppca;

impl Entry for Mppca {
    fn name(&self) -> &'static str {
        "mppca"
    }

    fn words(&self) -> &'static str {
        "mixture of probabilistic PCAs"
    }

    fn summary(&self) -> &'static str {
        "A mixture of probabilistic PCAs: groups of rows, each with its own plane."
    }

    fn kind(&self) -> Kind {
        Kind::Mixture
    }

    fn methods(&self) -> &'static [&'static str] {
        &[MixtureEm::NAME]
    }

    fn default_method(&self, _: &Dataset, _: &Spec) -> AnyMethod {
        MixtureEm::default().into()
    }

    fn choose(&self, request: &Request, data: &Dataset, method: &AnyMethod, watch: &Progress<'_>) -> Chosen {
        let most = request.spec().max_components(data.n_columns()).min(request.max_components);
        let components: Vec<usize> = if most == 0 { vec![0] } else { (1..=most).collect() };
        by_bic(request, data, method, &components, watch)
    }
}

/// The sizes to choose from: the numbers of models that so many rows allow, with each number of components.
fn sizes(request: &Request, components: &[usize], rows: usize) -> Vec<(usize, usize)> {
    let fits = |k: usize, q: usize| k == 1 || k * (q + 2) <= rows;
    match request.n_mixtures {
        Some(asked) => components.iter().map(|&q| (asked, q)).collect(),
        None => (1..=request.max_mixtures.max(1))
            .flat_map(|k| components.iter().map(move |&q| (k, q)))
            .filter(|&(k, q)| fits(k, q))
            .collect(),
    }
}

/// The number of models, each with one of these numbers of components, that has the least BIC.
pub(super) fn by_bic(
    request: &Request,
    data: &Dataset,
    method: &AnyMethod,
    components: &[usize],
    watch: &Progress<'_>,
) -> Chosen {
    let sizes = sizes(request, components, data.n_informative_rows());
    let mut tried = MixtureComparison(Vec::new());
    if sizes.len() > 1 {
        let compared = mixture_sizes(data, &request.spec(), &sizes, method.mixture()?, 0, watch)?;
        tried = MixtureComparison(compared);
    }
    let (n_mixtures, n_components) =
        tried.recommended().map_or(sizes[0], |at| (at.n_mixtures, at.n_components));
    let grounds = if tried.0.is_empty() { Grounds::Asked } else { Grounds::Sizes(tried.0) };
    Ok(Choice { n_mixtures, ..Choice::new(n_components, grounds) })
}

impl Request {
    /// Every size of a mixture, compared by BIC and by `folds` parts of the rows held out in turn. Constant columns
    /// must have been left out.
    ///
    /// # Errors
    /// As [`mixture_sizes`], and as [`method`](Self::method).
    pub fn compare_sizes(
        &self,
        data: &Dataset,
        folds: usize,
        watch: &Progress<'_>,
    ) -> Result<MixtureComparison, Error> {
        // Each must fit what is left when one part is held out.
        let held = if folds == 0 { 0 } else { data.n_rows().div_ceil(folds) };
        let rows = data.n_informative_rows().saturating_sub(held);
        let components = self.components_to_try(data)?;
        let sizes = sizes(self, &components, rows);
        let method = self.method(data)?;
        mixture_sizes(data, &self.spec(), &sizes, method.mixture()?, folds, watch).map(MixtureComparison)
    }
}
