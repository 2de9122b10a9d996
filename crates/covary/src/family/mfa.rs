//! Mixtures of factor analyzers.

use super::mppca::Mppca;
use super::{AnyMethod, Chosen, Entry, Kind, Progress, Request};
use crate::{Dataset, Spec};

pub(super) struct Mfa;

impl Entry for Mfa {
    fn name(&self) -> &'static str {
        "mfa"
    }

    fn words(&self) -> &'static str {
        "mixture of factor analyzers"
    }

    fn summary(&self) -> &'static str {
        "A mixture of factor analyzers: groups of rows, each with its own factors and noise of every column."
    }

    fn kind(&self) -> Kind {
        Kind::Mixture
    }

    fn methods(&self) -> &'static [&'static str] {
        Mppca.methods()
    }

    fn default_method(&self, data: &Dataset, spec: &Spec) -> AnyMethod {
        Mppca.default_method(data, spec)
    }

    fn spec(&self, standardize: bool) -> Spec {
        Spec { standardize, ..Spec::factor_analysis(1) }
    }

    fn choose(&self, request: &Request, data: &Dataset, method: &AnyMethod, watch: &Progress<'_>) -> Chosen {
        Mppca.choose(request, data, method, watch)
    }
}
