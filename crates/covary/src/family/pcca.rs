//! Probabilistic canonical correlation.

use super::{AnyMethod, Chosen, Entry, Progress, Request, choice};
use crate::infer::{BachJordan, SharedPrivate};
use crate::model::Reconstruction;
use crate::{Dataset, Error, LinearGaussian, Method, Spec};

pub(super) struct Pcca;

impl Entry for Pcca {
    fn name(&self) -> &'static str {
        "pcca"
    }

    fn words(&self) -> &'static str {
        "probabilistic canonical correlation"
    }

    fn summary(&self) -> &'static str {
        "Probabilistic canonical correlation: what two views share, and one predicted from the other."
    }

    fn methods(&self) -> &'static [&'static str] {
        &["bach-jordan", "shared-private"]
    }

    fn default_method(&self, data: &Dataset, _: &Spec) -> AnyMethod {
        if data.is_complete() {
            Method::BachJordan(BachJordan::default()).into()
        } else {
            Method::SharedPrivate(SharedPrivate::default()).into()
        }
    }

    fn views(&self) -> Option<(usize, usize, &'static str)> {
        Some((2, 2, "two views"))
    }

    fn choose(&self, request: &Request, data: &Dataset, method: &AnyMethod, _: &Progress<'_>) -> Chosen {
        choice::significant_correlations(request, data, method)
    }

    fn most(&self, request: &Request, data: &Dataset) -> usize {
        // Views that were reduced have no more directions than they were reduced to.
        let rank = match &request.method {
            Some(AnyMethod::Linear(Method::BachJordan(method))) => method.rank,
            _ => None,
        };
        request.spec_for(data, 0).views.into_iter().chain(rank).min().unwrap_or(0)
    }

    fn allowed(&self, request: &Request, data: &Dataset, asked: usize) -> Result<usize, Error> {
        let max = self.most(request, data);
        if asked > max {
            let rows = data.n_informative_rows();
            return Err(Error::TooManyComponents { asked, rows, columns: max, max });
        }
        Ok(asked)
    }

    fn n_shown(&self, model: &LinearGaussian, asked: usize) -> usize {
        // Private components stand for the noise within views.
        asked.min(model.n_components())
    }

    fn reconstruction(&self) -> Option<Reconstruction> {
        None
    }
}
