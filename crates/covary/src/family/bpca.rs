//! Bayesian PCA.

use super::{AnyMethod, Entry};
use crate::infer::Structured;
use crate::{Dataset, Method, Spec};

pub(super) struct Bpca;

impl Entry for Bpca {
    fn name(&self) -> &'static str {
        "bpca"
    }

    fn words(&self) -> &'static str {
        "Bayesian PCA"
    }

    fn summary(&self) -> &'static str {
        "Bayesian PCA: components that are not needed are dropped, and intervals account for the estimation of \
         loadings, mean and noise (except by the method evidence)."
    }

    fn methods(&self) -> &'static [&'static str] {
        &["structured", "mean-field", "evidence", "gibbs"]
    }

    fn default_method(&self, _: &Dataset, _: &Spec) -> AnyMethod {
        Method::Structured(Structured::default()).into()
    }
}
