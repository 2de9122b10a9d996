//! Mixtures of Gaussians with full covariances.

use super::mppca::{Mppca, by_bic};
use super::{AnyMethod, Chosen, Entry, Kind, Progress, Request, gaussian};
use crate::{Dataset, Error, Spec};

pub(super) struct Gmm;

impl Entry for Gmm {
    fn name(&self) -> &'static str {
        "gmm"
    }

    fn words(&self) -> &'static str {
        "mixture of Gaussians"
    }

    fn summary(&self) -> &'static str {
        "A mixture of Gaussians with full covariances."
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

    fn choose(&self, request: &Request, data: &Dataset, method: &AnyMethod, watch: &Progress<'_>) -> Chosen {
        by_bic(request, data, method, &[gaussian::components(data)], watch)
    }

    fn allowed(&self, request: &Request, data: &Dataset, asked: usize) -> Result<usize, Error> {
        // Variances alone are no full covariance; who asks for them says of what noise they are.
        if asked == 0 && request.noise.is_some() { Ok(0) } else { gaussian::fixed(data, asked) }
    }
}
