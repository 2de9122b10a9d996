//! Placeholder while the kernel is written.
use super::{Estimator, Fit, Observer};
use crate::{Dataset, Error, Spec};
/// EM.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Em {}
/// Init.
pub struct Init;
/// Acceleration.
pub struct Acceleration;
/// Moments.
pub struct LatentMoments;
impl Estimator for Em {
    fn fit_observed(&self, data: &Dataset, spec: &Spec, observer: &mut dyn Observer) -> Result<Fit, Error> {
        super::Spectral::default().fit_observed(data, spec, observer)
    }
}
