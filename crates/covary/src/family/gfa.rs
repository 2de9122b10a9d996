//! Group factor analysis.

use super::{AnyMethod, Choice, Chosen, Entry, Grounds, MOST_OFFERED, Progress, Request};
use crate::infer::MeanField;
use crate::spec::NoiseFamily;
use crate::{Dataset, Method, Spec};

pub(super) struct Gfa;

impl Entry for Gfa {
    fn name(&self) -> &'static str {
        "gfa"
    }

    fn words(&self) -> &'static str {
        "group factor analysis"
    }

    fn summary(&self) -> &'static str {
        "Group factor analysis: which components any of several views share."
    }

    fn methods(&self) -> &'static [&'static str] {
        &["mean-field"]
    }

    fn default_method(&self, _: &Dataset, _: &Spec) -> AnyMethod {
        Method::MeanField(MeanField::default()).into()
    }

    fn spec(&self, standardize: bool) -> Spec {
        let spec = Spec { standardize, allow_unidentified: standardize, ..Spec::ppca(1) };
        // One noise for a view would be unequal noise in standardized columns, explained by private
        // components: 10 of 4 simulated ones, 300 × 15 cells in 3 views; 4 with a noise for each column.
        if standardize { Spec { noise: NoiseFamily::Diagonal, ..spec } } else { spec }
    }

    fn views(&self) -> Option<(usize, usize, &'static str)> {
        Some((1, usize::MAX, "one view or more"))
    }

    fn choose(&self, _: &Request, data: &Dataset, _: &AnyMethod, _: &Progress<'_>) -> Chosen {
        let rows = data.n_informative_rows().saturating_sub(2);
        Ok(Choice::new(MOST_OFFERED.min(data.n_columns() - 1).min(rows), Grounds::Offered))
    }
}
