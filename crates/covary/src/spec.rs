//! What to fit: [`Spec`].

use crate::data::Facts;
use crate::{Dataset, Error};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The family of the noise Ψ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoiseFamily {
    /// One variance for all columns: PCA and probabilistic PCA.
    Isotropic,
    /// A variance per column: factor analysis.
    Diagonal,
}

/// Priors that keep weakly determined fits stable [M 1.5.6]. The default is none: maximum
/// likelihood. Scales are relative to the observed variance (of each column for diagonal noise or a
/// standardized fit, the mean over columns otherwise), so that units do not matter.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Prior {
    /// On W.
    pub loadings: LoadingsPrior,
    /// On the noise variance.
    pub noise: Option<NoisePrior>,
    /// On μ.
    pub mean: Option<MeanPrior>,
}

/// A prior on the loadings.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LoadingsPrior {
    /// None.
    #[default]
    Flat,
    /// Rows of W ~ N(0, ψⱼ/κ I).
    Scaled {
        /// κ counts pseudo-rows: 1 is weak, 3 to 30 suit columns with fewer than about 5 q observed
        /// cells.
        #[serde(with = "crate::json")]
        kappa: f64,
    },
    /// Column i of W ~ N(0, I/αᵢ) with fixed precisions.
    Ard {
        /// αᵢ, in units of one over the observed variance.
        #[serde(with = "crate::json")]
        relative_alpha: Vec<f64>,
    },
}

/// Noise variance ~ inverse-gamma: `2·shape + 2` pseudo-cells whose squares sum to `2·rate`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NoisePrior {
    /// a₀.
    #[serde(with = "crate::json")]
    pub shape: f64,
    /// b₀ as a multiple of the observed variance.
    #[serde(with = "crate::json")]
    pub relative_rate: f64,
}

/// μ ~ N(center, I/precision).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeanPrior {
    /// In the units of the data, one per column.
    #[serde(with = "crate::json")]
    pub center: Vec<f64>,
    /// In units of one over the observed variance.
    #[serde(with = "crate::json")]
    pub relative_precision: f64,
}

impl Prior {
    /// The weak default of the spec: κ = 1, a₀ = 1, b₀ = 0.05 of the observed variance.
    pub fn weak() -> Self {
        Self::scaled(1.0)
    }

    /// [`weak`](Self::weak) with `kappa` pseudo-rows.
    pub fn scaled(kappa: f64) -> Self {
        Self {
            loadings: LoadingsPrior::Scaled { kappa },
            noise: Some(NoisePrior { shape: 1.0, relative_rate: 0.05 }),
            mean: None,
        }
    }

    /// Whether there is no prior at all.
    pub fn is_flat(&self) -> bool {
        *self == Self::default()
    }

    fn check(&self, n_components: usize, n_columns: usize) -> Result<(), Error> {
        let positive = |name, value: f64| {
            if value.is_finite() && value > 0.0 {
                Ok(())
            } else {
                Err(Error::OutOfRange { name, value, bound: "finite and above 0" })
            }
        };
        let length = |what, expected, got| {
            if expected == got { Ok(()) } else { Err(Error::WrongLength { what, expected, got }) }
        };
        match &self.loadings {
            LoadingsPrior::Flat => {}
            LoadingsPrior::Scaled { kappa } => positive("kappa", *kappa)?,
            LoadingsPrior::Ard { relative_alpha } => {
                length("precisions of the loadings", n_components, relative_alpha.len())?;
                relative_alpha.iter().try_for_each(|&a| positive("relative_alpha", a))?;
            }
        }
        if let Some(noise) = &self.noise {
            positive("shape", noise.shape)?;
            positive("relative_rate", noise.relative_rate)?;
        }
        if let Some(mean) = &self.mean {
            length("centers of the mean", n_columns, mean.center.len())?;
            positive("relative_precision", mean.relative_precision)?;
        }
        Ok(())
    }
}

/// What to fit: number of components, noise family, prior. *How* is an
/// [`Estimator`](crate::Estimator).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Latent dimension q; 0 gives a spherical or diagonal Gaussian.
    pub n_components: usize,
    /// Family of the noise.
    pub noise: NoiseFamily,
    /// Divide every column by its observed standard deviation before fitting; the answer is folded
    /// back into the user's units (so isotropic noise comes back diagonal).
    pub standardize: bool,
    /// Prior on loadings and noise.
    pub prior: Prior,
    /// Smallest noise variance, as a share of the (mean) observed variance. `None` is the family's
    /// own: 1e-12 for isotropic noise (the closed form refuses data without noise instead), 0.005 of
    /// each column's variance for diagonal noise, which is where Heywood cases stop.
    #[serde(with = "crate::json")]
    pub noise_floor: Option<f64>,
    /// Fit even when a factor model has more parameters than the covariance has entries: its density
    /// is then meaningful, its loadings are one choice of many.
    pub allow_unidentified: bool,
    /// Columns of each view, which stand side by side in the table; none for a table of one kind of column.
    /// Isotropic noise then is one variance for each view. Only methods for several views take them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub views: Vec<usize>,
}

impl Spec {
    /// Probabilistic PCA: isotropic noise.
    pub fn ppca(n_components: usize) -> Self {
        Self {
            n_components,
            noise: NoiseFamily::Isotropic,
            standardize: false,
            prior: Prior::default(),
            noise_floor: None,
            allow_unidentified: false,
            views: Vec::new(),
        }
    }

    /// Views of these numbers of columns, a noise variance for each: group factor analysis, and canonical correlation,
    /// where `n_components` counts what views share.
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, infer::MeanField, Estimator, Spec};
    /// let (table, _) = simulate::ppca(Shape { rows: 200, columns: 9, n_components: 2 }, /* seed */ 1);
    /// let fit = MeanField::default().fit(&table, &Spec::of_views(5, vec![5, 4]))?;
    /// assert_eq!(fit.model.n_components(), 2);
    /// assert_eq!(fit.report.relevance.len(), 2 * 2);      // views × components
    /// # Ok::<(), covary::Error>(())
    /// ```
    pub fn of_views(n_components: usize, views: Vec<usize>) -> Self {
        Self { views, ..Self::ppca(n_components) }
    }

    /// Factor analysis: a noise variance per column.
    pub fn factor_analysis(n_components: usize) -> Self {
        Self { noise: NoiseFamily::Diagonal, ..Self::ppca(n_components) }
    }

    /// The columns of each view: all of them where there are no views.
    pub(crate) fn view_columns(&self, n_columns: usize) -> Vec<Range<usize>> {
        if self.views.is_empty() {
            return std::iter::once(0..n_columns).collect();
        }
        let mut start = 0;
        let next = |size: &usize| {
            start += size;
            start - size..start
        };
        self.views.iter().map(next).collect()
    }

    /// The noise floor in force, relative to the observed variance.
    pub(crate) fn floor(&self) -> f64 {
        self.noise_floor.unwrap_or(match self.noise {
            NoiseFamily::Isotropic => 1e-12,
            NoiseFamily::Diagonal => 0.005,
        })
    }

    /// The most components that this many columns can determine: one less than the columns for
    /// isotropic noise; for diagonal noise as many as leave `((d − q)² − (d + q)) / 2 ≥ 0` degrees
    /// of freedom [M 1.6.1].
    pub fn max_components(&self, n_columns: usize) -> usize {
        let identified = |&q: &usize| match self.noise {
            NoiseFamily::Isotropic => true,
            NoiseFamily::Diagonal => factor_degrees_of_freedom(n_columns, q) >= 0,
        };
        (0..n_columns).rfind(identified).unwrap_or(0)
    }

    /// Free parameters of mean and covariance, as they are fitted: a standardized model has one isotropic
    /// noise variance although it comes back with one for each column [M 1.3.7].
    pub fn n_parameters(&self, n_columns: usize) -> usize {
        let (d, q) = (n_columns, self.n_components);
        let noise = match self.noise {
            NoiseFamily::Isotropic => 1,
            NoiseFamily::Diagonal => d,
        };
        d + (d * q + noise).saturating_sub(q * q.saturating_sub(1) / 2)
    }

    /// Checks the request against the table, once, at the top of every fit of one view.
    pub(crate) fn check(&self, data: &Dataset) -> Result<(), Error> {
        self.check_one_view()?;
        self.check_views(data)
    }

    /// [`check`](Self::check) of rows that are gone through.
    pub(crate) fn check_facts(&self, facts: &Facts) -> Result<(), Error> {
        self.check_one_view()?;
        self.check_views_of(facts)
    }

    /// Refuses views, for a method of one table.
    fn check_one_view(&self) -> Result<(), Error> {
        if !self.views.is_empty() {
            return Err(Error::Unsupported {
                method: "this method",
                what: "several views",
                instead: "`mean-field`, `bach-jordan` or `shared-private`",
            });
        }
        Ok(())
    }

    /// [`check`](Self::check) for a method that takes views.
    pub(crate) fn check_views(&self, data: &Dataset) -> Result<(), Error> {
        let rows = Self::check_rows(data)?;
        self.check_shape(rows, data.n_columns())
    }

    /// The same of what is known of a table.
    pub(crate) fn check_views_of(&self, facts: &Facts) -> Result<(), Error> {
        let (rows, observed) = (facts.n_informative_rows(), facts.n_observed_by_column());
        Self::check_observed(rows, observed, facts.column_names())?;
        self.check_shape(rows, facts.n_columns())
    }

    /// [`check`](Self::check) for rows that follow each other in time.
    pub(crate) fn check_in_time(&self, data: &Dataset) -> Result<(), Error> {
        self.check_one_view()?;
        let rows = Self::check_rows(data)?;
        self.check_shape_in_time(rows, data.n_columns())
    }

    /// Rows with a value, of which every method needs two, and one in each column.
    fn check_rows(data: &Dataset) -> Result<usize, Error> {
        let rows = data.n_informative_rows();
        Self::check_observed(rows, data.n_observed_by_column(), data.column_names())?;
        Ok(rows)
    }

    fn check_observed(rows: usize, observed: &[usize], names: &[String]) -> Result<(), Error> {
        if rows < 2 {
            return Err(Error::TooFewRows { rows });
        }
        match observed.iter().position(|&n| n == 0) {
            Some(j) => Err(Error::EmptyColumn { column: names[j].clone() }),
            None => Ok(()),
        }
    }

    /// Checks the variances of the columns, once they are known; returns the constant columns.
    /// `data` tells a column of one value from one whose squares are too small for f64.
    pub(crate) fn check_variances(
        &self,
        variances: &[f64],
        names: &[String],
        data: Option<&Dataset>,
    ) -> Result<Vec<String>, Error> {
        self.check_variances_of(variances, names, &|j| data.is_some_and(|d| !d.is_constant(j)))
    }

    /// The same of columns that are known to vary.
    pub(crate) fn check_variances_of(
        &self,
        variances: &[f64],
        names: &[String],
        varies: &dyn Fn(usize) -> bool,
    ) -> Result<Vec<String>, Error> {
        let vanished = |j: usize| variances[j] == 0.0 && varies(j);
        let out_of_scale =
            |j: usize| Err(Error::OutOfScale { column: names[j].clone(), variance: variances[j] });
        // Where columns share one scale only the largest variance must be in range.
        let shared = self.noise == NoiseFamily::Isotropic && !self.standardize;
        for columns in self.view_columns(variances.len()) {
            let largest = columns.clone().max_by(|&i, &j| variances[i].total_cmp(&variances[j]));
            for j in columns {
                let counts = !shared || Some(j) == largest;
                let in_range = VARIANCES.contains(&variances[j]) || (variances[j] == 0.0 && !vanished(j));
                if !variances[j].is_finite() || (counts && !in_range) {
                    return out_of_scale(j);
                }
            }
        }
        let constant: Vec<String> =
            variances.iter().zip(names).filter(|(v, _)| **v == 0.0).map(|(_, name)| name.clone()).collect();
        if constant.len() == variances.len() {
            return Err(Error::AllConstant { columns: constant.len() });
        }
        let flat = |columns: &Range<usize>| variances[columns.clone()].iter().all(|v| *v == 0.0);
        if let Some(view) = self.view_columns(variances.len()).iter().position(flat) {
            return Err(Error::ConstantView { view: view + 1, columns: self.views[view] });
        }
        match (self.noise, constant.first()) {
            (NoiseFamily::Diagonal, Some(column)) => Err(Error::ConstantColumn { column: column.clone() }),
            _ => Ok(constant),
        }
    }

    /// Refuses a request that a method for complete tables of one noise family cannot answer.
    pub(crate) fn check_method(&self, method: &'static str, family: NoiseFamily) -> Result<(), Error> {
        let what = match self.noise {
            noise if noise == family && self.prior.is_flat() => return Ok(()),
            noise if noise == family => "a prior",
            NoiseFamily::Isotropic => "isotropic noise",
            NoiseFamily::Diagonal => "diagonal noise",
        };
        Err(Error::Unsupported { method, what, instead: "`em`" })
    }

    /// The part of [`check`](Self::check) that needs only the size of the table.
    pub(crate) fn check_shape(&self, rows: usize, columns: usize) -> Result<(), Error> {
        self.check_room(rows, columns, columns.saturating_sub(1))
    }

    /// The same for rows in time: what follows tells a factor from noise in a single column, too.
    pub(crate) fn check_shape_in_time(&self, rows: usize, columns: usize) -> Result<(), Error> {
        self.check_room(rows, columns, columns.saturating_sub(1).max(1))
    }

    /// Refuses more components than `most`.
    fn check_room(&self, rows: usize, columns: usize, most: usize) -> Result<(), Error> {
        if let Some(view) = self.views.iter().position(|&size| size == 0) {
            return Err(Error::EmptyView { view: view + 1 });
        }
        let in_views = self.views.iter().try_fold(0_usize, |sum, &size| sum.checked_add(size));
        if !self.views.is_empty() && in_views != Some(columns) {
            let got = in_views.unwrap_or(usize::MAX);
            return Err(Error::WrongLength { what: "columns of all views", expected: columns, got });
        }
        let asked = self.n_components;
        if asked > most {
            return Err(Error::TooManyComponents { asked, rows, columns, max: most });
        }
        if let Some(floor) = self.noise_floor
            && !(0.0..1.0).contains(&floor)
        {
            return Err(Error::OutOfRange { name: "noise_floor", value: floor, bound: "in [0, 1)" });
        }
        let max = self.max_components(columns);
        let determined = self.allow_unidentified || self.prior.loadings != LoadingsPrior::Flat;
        if asked > max && columns > 1 && !determined {
            let degrees_of_freedom = factor_degrees_of_freedom(columns, asked);
            return Err(Error::NotIdentified { asked, columns, degrees_of_freedom, max });
        }
        self.prior.check(asked, columns)
    }
}

/// Variances whose inverses, and whose share that a noise floor leaves, are still ordinary numbers.
const VARIANCES: std::ops::RangeInclusive<f64> = 1e-280..=1e280;

/// Entries of a d × d covariance less the parameters of q factors: `((d − q)² − (d + q)) / 2`.
#[allow(clippy::cast_possible_wrap, reason = "counts of columns that fit in memory")]
pub(crate) fn factor_degrees_of_freedom(columns: usize, factors: usize) -> i64 {
    let (d, q) = (columns as i64, factors as i64);
    ((d - q).pow(2) - (d + q)) / 2
}
