//! Mixtures of probabilistic PCAs, and how the size of a mixture is chosen.

use super::{AnyMethod, Choice, Chosen, Entry, Family, Grounds, MIXTURE, Progress, Request, gaussian};
use crate::select::{MixtureComparison, mixture_sizes};
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

/// The number of models, and of components of each where it was left open, that has the least BIC.
pub(super) fn by_bic(request: &Request, data: &Dataset, method: &AnyMethod, watch: &Progress<'_>) -> Chosen {
    let sizes = request.sizes(data, data.n_informative_rows())?;
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
