//! Mixtures of probabilistic PCAs, and how the size of a mixture is chosen.

use super::{AnyMethod, Choice, Chosen, Entry, Family, Grounds, MIXTURE, Progress, Request, gaussian};
use crate::select::{MixtureComparison, mixture_sizes, own_components};
use crate::{Dataset, Error};

/// Most models tried to find how many BIC prefers.
pub const MOST_MIXTURES: usize = 6;
/// Most components of each tried with them.
pub const MOST_COMPONENTS: usize = 4;

pub(super) const ENTRY: Entry = Entry {
    name: "mppca",
    words: "mixture of probabilistic PCAs",
    summary: "A mixture of probabilistic PCAs: groups of rows, each with its own plane.",
    ..MIXTURE
};

/// The number of models that has the least BIC and, where it was left open, that of the components of each.
pub(super) fn by_bic(request: &Request, data: &Dataset, method: &AnyMethod, watch: &Progress<'_>) -> Chosen {
    let sizes = request.sizes(data, data.n_informative_rows())?;
    let (spec, method) = (request.spec(), method.mixture()?);
    let (tried, own) = if request.family != Family::Gmm && request.given(data)?.is_none() {
        own_components(data, &spec, &sizes, method, watch)?
    } else if sizes.len() > 1 {
        (mixture_sizes(data, &spec, &sizes, method, 0, watch)?, None)
    } else {
        (Vec::new(), None)
    };
    let tried = MixtureComparison(tried);
    let common = tried.recommended().map_or(sizes[0], |at| (at.n_mixtures, at.n_components));
    let (n_mixtures, n_components) = own.as_ref().map_or(common, |own| {
        let components = own.n_components();
        (components.len(), components.into_iter().max().unwrap_or(0))
    });
    let grounds = if tried.0.is_empty() { Grounds::Asked } else { Grounds::Sizes(tried.0) };
    Ok(Choice { n_mixtures, own: own.map(Box::new), ..Choice::new(n_components, grounds) })
}

impl Request {
    /// The sizes of a mixture to choose from: numbers of models and of components that this many rows allow.
    fn sizes(&self, data: &Dataset, rows: usize) -> Result<Vec<(usize, usize)>, Error> {
        let most = self.spec().max_components(data.n_columns()).min(self.max_components);
        let components: Vec<usize> = match self.given(data)? {
            Some((asked, _)) => vec![asked],
            None if self.family == Family::Gmm => vec![gaussian::components(data)],
            None if most == 0 => vec![0],
            None => (1..=most).collect(),
        };
        let fits = |k: usize, q: usize| k == 1 || k * (q + 2) <= rows;
        Ok(match self.n_mixtures {
            Some(asked) => components.iter().map(|&q| (asked, q)).collect(),
            None => (1..=self.max_mixtures.max(1))
                .flat_map(|k| components.iter().map(move |&q| (k, q)))
                .filter(|&(k, q)| fits(k, q))
                .collect(),
        })
    }

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
        let sizes = self.sizes(data, data.n_informative_rows().saturating_sub(held))?;
        let method = self.method(data)?;
        mixture_sizes(data, &self.spec(), &sizes, method.mixture()?, folds, watch).map(MixtureComparison)
    }
}
