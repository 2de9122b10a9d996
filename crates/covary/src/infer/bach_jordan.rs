//! Probabilistic canonical correlation in closed form [M 2.7.2].

use super::Estimator;
use super::options::{Options, Setting};
use super::report::{Fit, FitReport, ObjectiveKind, Observer};
use crate::spec::NoiseFamily;
use crate::views::CanonicalCorrelation;
use crate::{Dataset, Density, Error, LinearGaussian, Spec};

/// Maximum likelihood of two complete views with full noise within each (Bach & Jordan 2005): the
/// [model](crate::views::Canonical::model) behind [`CanonicalCorrelation`].
///
/// [`Spec::n_components`] counts what the views share; the full noise of a view is kept as private components
/// after the shared ones, as [`SharedPrivate`](super::SharedPrivate) does, which also takes gaps.
///
/// ```
/// use covary::{data::{simulate, Shape}, infer::BachJordan, Estimator, Spec};
/// let (both, _) = simulate::ppca(Shape { rows: 300, columns: 7, n_components: 2 }, /* seed */ 1);
/// let fit = BachJordan::default().fit(&both, &Spec::of_views(2, vec![4, 3]))?;
/// assert_eq!(fit.model.n_components(), 2 + 3 + 2);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BachJordan {
    /// Added to the diagonal of each view's covariance, as a share of its mean variance, for views with as many
    /// columns as rows. It depends on the units of the columns.
    pub ridge: f64,
    /// Principal components that each view is first reduced to, for such views without a ridge. Files do not
    /// keep it.
    pub rank: Option<usize>,
}

// Without the rank: the files of every model without one would change.
impl Options for BachJordan {
    fn options(&mut self) -> Vec<(&'static str, &mut dyn Setting)> {
        vec![("ridge", &mut self.ridge)]
    }
}

impl From<&BachJordan> for CanonicalCorrelation {
    fn from(&BachJordan { ridge, rank }: &BachJordan) -> Self {
        Self { n_components: None, ridge, rank }
    }
}

impl Estimator for BachJordan {
    type Model = LinearGaussian;

    fn fit_observed(&self, data: &Dataset, spec: &Spec, _: &mut dyn Observer) -> Result<Fit, Error> {
        spec.check_views(data)?;
        let refused = |what, instead| Err(Error::Unsupported { method: "bach-jordan", what, instead });
        let &[dx, _] = &spec.views[..] else {
            return refused("other than two views", "`shared-private` or `mean-field`");
        };
        let Ok(data) = data.complete_rows("bach-jordan") else {
            return refused("gaps", "`shared-private`");
        };
        let data = &*data;
        if spec.noise != NoiseFamily::Isotropic || !spec.prior.is_flat() || spec.noise_floor.is_some() {
            return refused("noise other than full within a view", "`shared-private` or `mean-field`");
        }
        let method = CanonicalCorrelation { n_components: Some(spec.n_components), ..self.into() };
        let [x, y] = [0..dx, dx..data.n_columns()].map(|view| data.of_columns(&view.collect::<Vec<_>>()));
        let deviations = || data.observed_variances().iter().map(|v| v.sqrt()).collect();
        let model = method.fit(&x?, &y?)?.model()?.with_scale(spec.standardize.then(deviations))?;
        let value = model.log_likelihood(data)?;
        let report = FitReport::closed_form(ObjectiveKind::LogLikelihood, value, Vec::new());
        Ok(Fit { model, draws: None, report })
    }
}
