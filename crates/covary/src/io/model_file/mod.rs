//! The model file: a fitted model, what was asked for, and how the fit went.
//!
//! The layout is that of safetensors, so that any reader of it opens the numbers; `docs/model-file.md`
//! has the fields. There is no time, machine or thread count in it: the same fit gives the same bytes.
//!
//! ```
//! use covary::{data::{simulate, Shape}, io::model_file::{self, Saved}, Density, Estimator, Method, Spec};
//! let (whole, _) = simulate::ppca(Shape { rows: 80, columns: 5, n_components: 2 }, /* seed */ 1);
//! let table = simulate::hide(&whole, 0.1, /* seed */ 2);
//! let (spec, method) = (Spec::ppca(2), Method::from_name("em").unwrap());
//! let fit = method.fit(&table, &spec)?;
//! let filled = fit.model.impute(&table)?;
//!
//! let mut bytes = Vec::new();
//! model_file::write(&Saved::new(fit, &table, &spec, &method), &mut bytes)?;
//! let saved = model_file::read(bytes.as_slice())?;
//! assert_eq!(saved.model.impute(&table)?, filled);   // to the last bit
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod container;
mod describe;
mod header;
mod ica;
mod mixture;

pub use ica::{SavedSources, write_sources};
pub use mixture::{Opened, SavedClasses, SavedMixture, open, write_mixture};

use super::Error;
use crate::infer::{FitReport, MethodRecord};
use crate::linalg::packed;
use crate::model::{Mixture, Predictive, Rotated, Uncertainty};
use crate::select::{HeldOut, SelfCheck};
use crate::spec::NoiseFamily;
use crate::views::{Activity, Canonical, CanonicalCorrelation};
use crate::{Dataset, Density, Fit, LinearGaussian, Matrix, Method, Noise, Spec};
use container::Arrays;
use header::{Header, Label, MethodDef, UncertaintyDef};
use std::io::{Read, Write};
use std::ops::Range;

/// The version written. Raise it when a reader of the last one would misread the file; fields it may
/// ignore do not count. Then keep what reads the last version, and its golden file
/// (`tests/golden/model_files`), and add one of the new.
///
/// Version 2 has the uncertainty of the parameters, or draws of them; version 3 a checksum.
const FORMAT_VERSION: u64 = 3;
/// From this version on a file without a checksum is a damaged one.
const WITH_CHECKSUM: u64 = 3;
/// What the file holds; mixtures are another kind.
const KIND: &str = "linear-gaussian";

/// Everything a model file holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Saved {
    /// The model, as fitted.
    pub model: LinearGaussian,
    /// Draws of its parameters, by a method that samples them.
    pub draws: Option<Mixture>,
    /// Names of its columns, in order.
    pub columns: Vec<String>,
    /// Columns that never varied and were set aside.
    pub constants: Vec<Constant>,
    /// The loadings as turned for the reader, if a rotation was asked for.
    pub rotation: Option<SavedRotation>,
    /// What the user called the model, such as `ppca`.
    pub family: String,
    /// Names of its views, whose sizes the spec has; none for a model without.
    pub views: Vec<String>,
    /// What was fitted.
    pub spec: Spec,
    /// How it was fitted.
    pub method: MethodRecord,
    /// The seed the user gave.
    pub seed: u64,
    /// How the fit went and ended.
    pub report: FitReport,
    /// The table it was fitted to, in a few numbers per column.
    pub training: Training,
    /// The scores that chose the number of components, if they did.
    pub choice: Option<HeldOut>,
    /// How well hidden cells of the table were predicted, if that was looked at.
    pub check: Option<SelfCheck>,
    /// The program that wrote the file, with its version.
    pub created_by: String,
}

/// A column that never varied.
#[derive(Debug, Clone, PartialEq)]
pub struct Constant {
    /// Its name.
    pub name: String,
    /// Its one value.
    pub value: f64,
}

/// Rotated loadings and the name of the rotation.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedRotation {
    /// As the user gave it.
    pub name: String,
    /// Loadings, transform and factor correlations.
    pub rotated: Rotated,
}

/// The table behind a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Training {
    /// Its rows.
    pub n_rows: usize,
    /// Observed cells per column.
    pub n_observed_by_column: Vec<usize>,
    /// Mean of the observed cells of each column.
    pub column_means: Vec<f64>,
    /// Standard deviation of the observed cells of each column (divisor: their number).
    pub column_sds: Vec<f64>,
}

impl Training {
    /// The numbers of a table.
    pub fn of(data: &Dataset) -> Self {
        Self {
            n_rows: data.n_rows(),
            n_observed_by_column: data.n_observed_by_column().to_vec(),
            column_means: data.observed_means().to_vec(),
            column_sds: data.observed_variances().iter().map(|v| v.sqrt()).collect(),
        }
    }

    /// Missing cells.
    pub fn n_gaps(&self) -> usize {
        self.n_observed_by_column.iter().map(|n| self.n_rows - n).sum()
    }

    /// Whether these are numbers of a table of `d` columns.
    fn check(&self, d: usize) -> Result<(), crate::Error> {
        let length = |what, expected, got| {
            if expected == got { Ok(()) } else { Err(crate::Error::WrongLength { what, expected, got }) }
        };
        let range = |name, value, bound| Err(crate::Error::OutOfRange { name, value, bound });
        length("counts of observed cells", d, self.n_observed_by_column.len())?;
        length("column means", d, self.column_means.len())?;
        length("column sds", d, self.column_sds.len())?;
        if let Some(&n) = self.n_observed_by_column.iter().find(|n| **n > self.n_rows) {
            return range("a count of observed cells", n as f64, "at most the number of rows");
        }
        if let Some(&mean) = self.column_means.iter().find(|m| !m.is_finite()) {
            return range("the mean of a column", mean, "finite");
        }
        if let Some(&sd) = self.column_sds.iter().find(|s| !(s.is_finite() && **s >= 0.0)) {
            return range("the standard deviation of a column", sd, "finite and not negative");
        }
        if self.n_rows.checked_mul(d).is_none() {
            return range("the number of rows", self.n_rows as f64, "such that its cells can be counted");
        }
        Ok(())
    }

    fn put(&self, arrays: &mut Arrays) {
        let Self { n_rows: _, n_observed_by_column, column_means, column_sds } = self;
        arrays.put("n_observed_by_column", n_observed_by_column.iter().map(|&n| n as f64).collect());
        arrays.put("column_means", column_means.clone());
        arrays.put("column_sds", column_sds.clone());
    }
}

/// Below this bound G = I + WᵀΨ⁻¹W and its factor are numbers; no fit comes near it.
fn check_strength(m: &LinearGaussian) -> Result<(), crate::Error> {
    let strength = |j: usize| m.loadings().row(j).iter().map(|w| w * w).sum::<f64>() / m.noise().variance(j);
    match (0..m.n_columns()).map(strength).find(|s| s.is_nan() || *s > 1e290) {
        Some(value) => Err(crate::Error::OutOfRange {
            name: "the square of a loading over its noise",
            value,
            bound: "at most 1e290",
        }),
        None => Ok(()),
    }
}

/// Whether the model remembers the scale that the request asked for.
fn check_scale(model: &LinearGaussian, spec: &Spec) -> Result<(), crate::Error> {
    let (expected, got) = (usize::from(spec.standardize), usize::from(model.scale().is_some()));
    let what = "scales of a model by what was asked";
    if expected == got { Ok(()) } else { Err(crate::Error::WrongLength { what, expected, got }) }
}

/// Columns are matched by name, so that every name stands for one of them.
fn check_names(columns: &[String], constants: &[Constant]) -> Result<(), Error> {
    let names: Vec<String> = columns.iter().chain(constants.iter().map(|c| &c.name)).cloned().collect();
    super::columns::check_names(&names)
}

/// The same of a file that was read.
fn check_names_read(columns: &[String], constants: &[Constant]) -> Result<(), Error> {
    check_names(columns, constants).map_err(|e| Error::broken("columns", format!("are not valid ({e})")))
}

fn noise_of(model: &LinearGaussian) -> NoiseFamily {
    match model.noise() {
        Noise::Isotropic(_) => NoiseFamily::Isotropic,
        Noise::Diagonal(_) => NoiseFamily::Diagonal,
    }
}

impl Saved {
    /// A fit of `data`, ready to be written; what the fit does not know is left empty.
    pub fn new(fit: Fit, data: &Dataset, spec: &Spec, method: &Method) -> Self {
        Self::of_fit(fit, data.column_names().to_vec(), Training::of(data), spec, method)
    }

    /// As [`new`](Self::new), of a table known by its columns' names and numbers.
    pub fn of_fit(fit: Fit, columns: Vec<String>, training: Training, spec: &Spec, method: &Method) -> Self {
        let family = match spec.noise {
            NoiseFamily::Isotropic => "ppca",
            NoiseFamily::Diagonal => "fa",
        };
        Self {
            model: fit.model,
            draws: fit.draws,
            columns,
            constants: Vec::new(),
            rotation: None,
            family: family.to_owned(),
            views: (1..=spec.views.len()).map(|view| view.to_string()).collect(),
            spec: spec.clone(),
            seed: method.options().get("seed").and_then(|seed| seed.parse().ok()).unwrap_or(0),
            method: method.into(),
            report: fit.report,
            training,
            choice: None,
            check: None,
            created_by: concat!("covary ", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }

    /// The canonical correlations of a model of two views, from what they share.
    ///
    /// # Errors
    /// As [`CanonicalCorrelation::of_covariance`].
    pub fn canonical(&self) -> Result<Option<Canonical>, crate::Error> {
        let &[dx, _] = &self.spec.views[..] else { return Ok(None) };
        let n_components = Some(self.spec.n_components.min(dx).min(self.columns.len() - dx));
        let method = CanonicalCorrelation { n_components, ..CanonicalCorrelation::default() };
        let covariance = self.model.covariance();
        method.of_covariance(self.training.n_rows, self.model.mean(), &covariance, dx).map(Some)
    }

    /// What each component explains of each view, of standardized columns if these were fitted; none for a model
    /// without views.
    ///
    /// # Errors
    /// As [`Activity::of_model`].
    pub fn activity(&self) -> Result<Option<Activity>, crate::Error> {
        if self.views.is_empty() {
            return Ok(None);
        }
        let variances: Vec<f64> = self.training.column_sds.iter().map(|s| s * s).collect();
        Activity::of_model(&self.model, &self.spec.views, &variances, self.spec.standardize).map(Some)
    }

    /// The components to show: of canonical correlation those that are shared, not the private ones that stand for
    /// the noise within views.
    pub fn n_shown(&self) -> usize {
        let q = self.model.n_components();
        if self.family == "pcca" { self.spec.n_components.min(q) } else { q }
    }

    /// The columns of each view, by its name.
    pub fn view_columns(&self) -> Vec<(&str, Range<usize>)> {
        let mut columns = Vec::with_capacity(self.views.len());
        let mut start = 0;
        for (name, size) in self.views.iter().zip(&self.spec.views) {
            columns.push((name.as_str(), start..start + size));
            start += size;
        }
        columns
    }

    /// The density for rows the model was fitted to.
    pub fn of_training_rows(&self) -> Predictive<'_> {
        Predictive::of_training_rows(&self.model, self.draws.as_ref())
    }

    /// The density for other rows.
    pub fn of_new_rows(&self) -> Predictive<'_> {
        Predictive::of_new_rows(&self.model, self.draws.as_ref())
    }

    /// Standard deviations of the loadings, d × q, from the draws or from the posterior; `None` where the
    /// parameters are taken as known.
    pub fn loading_sds(&self) -> Option<Matrix> {
        self.draws.as_ref().and_then(Mixture::loading_sds).or_else(|| self.model.loading_sds())
    }

    /// Whether the parts fit together.
    fn check(&self) -> Result<(), crate::Error> {
        let length = |what, expected, got| {
            if expected == got { Ok(()) } else { Err(crate::Error::WrongLength { what, expected, got }) }
        };
        let range = |name, value, bound| Err(crate::Error::OutOfRange { name, value, bound });
        let (d, q) = (self.model.n_columns(), self.model.n_components());
        length("column names", d, self.columns.len())?;
        let mut models = self.draws.iter().flat_map(Mixture::models).chain([&self.model]);
        models.try_for_each(|model| check_strength(model).and_then(|()| check_scale(model, &self.spec)))?;
        length("names of views", self.spec.views.len(), self.views.len())?;
        // Views have private components besides those they share.
        let most = self.spec.n_components.saturating_add(if self.views.is_empty() { 0 } else { d });
        if q > most {
            return range("the number of components", q as f64, "at most what the spec asks for");
        }
        if !self.report.relevance.is_empty() {
            length("relevances", q * self.views.len().max(1), self.report.relevance.len())?;
        }
        if let Some(draws) = &self.draws {
            length("columns of a draw", d, draws.n_columns())?;
            let isotropic = |model: &LinearGaussian| matches!(model.noise(), Noise::Isotropic(_));
            for draw in draws.models() {
                length("components of a draw", q, draw.n_components())?;
                let families = if isotropic(draw) == isotropic(&self.model) { 1 } else { 2 };
                length("families of noise among model and draws", 1, families)?;
            }
        }
        // Whether it should have been fitted was for the method to say.
        let fitted = Spec { allow_unidentified: true, ..self.spec.clone() };
        fitted.check_shape(self.training.n_rows, d)?;
        self.training.check(d)?;
        if let Some(SavedRotation { rotated, .. }) = &self.rotation {
            let Rotated { loadings, transform, factor_correlations } = rotated;
            for (what, matrix, rows) in [
                ("rows and columns of the rotated loadings", loadings, d),
                ("rows and columns of the rotation", transform, q),
                ("rows and columns of the factor correlations", factor_correlations, q),
            ] {
                length(what, rows, matrix.n_rows())?;
                length(what, q, matrix.n_columns())?;
                if let Some(&value) = matrix.as_slice().iter().find(|v| !v.is_finite()) {
                    return range("an entry of the rotation", value, "finite");
                }
            }
        }
        if let Some(constant) = self.constants.iter().find(|c| !c.value.is_finite()) {
            return range("a constant column", constant.value, "finite");
        }
        if let Some(check) = &self.check {
            length("skills of columns", d, check.skill_by_column.len())?;
        }
        if let Some(choice) = &self.choice
            && !choice.by_n_components.iter().any(|at| at.shortfall == 0.0 && at.shortfall_error >= 0.0)
        {
            return range("the smallest shortfall of a choice", f64::NAN, "0");
        }
        Ok(())
    }
}

/// Writes a model file.
///
/// # Errors
/// [`Error::Request`] if the parts of `saved` do not fit together, [`Error::Write`] if the
/// destination fails.
pub fn write(saved: &Saved, out: impl Write) -> Result<(), Error> {
    saved.check()?;
    check_names(&saved.columns, &saved.constants)?;
    let mut arrays = Arrays::default();
    arrays.put("mean", saved.model.mean().to_vec());
    arrays.put_matrix("loadings", saved.model.loadings());
    arrays.put("noise_variance", noise_variances(&saved.model));
    put_scale(&mut arrays, &saved.model);
    arrays.put("trace", saved.report.trace.clone());
    saved.training.put(&mut arrays);
    arrays.put("constants", saved.constants.iter().map(|c| c.value).collect());
    if let Some(SavedRotation { rotated, .. }) = &saved.rotation {
        arrays.put_matrix("rotated_loadings", &rotated.loadings);
        arrays.put_matrix("rotation", &rotated.transform);
        arrays.put_matrix("factor_correlations", &rotated.factor_correlations);
    }
    if let Some(u) = saved.model.uncertainty() {
        arrays.put_matrix("relative_covariances", &triangles(&u.relative));
        arrays.put("noise_shape", u.shape.clone());
    }
    if let Some(draws) = &saved.draws {
        put_models(&mut arrays, "draws", draws.models());
    }
    let MethodRecord { name, options } = saved.method.clone();
    let header = Header {
        format_version: FORMAT_VERSION,
        kind: KIND.to_owned(),
        created_by: saved.created_by.clone(),
        family: saved.family.clone(),
        views: saved.views.clone(),
        columns: saved.columns.clone(),
        constants: saved.constants.iter().map(|c| c.name.clone()).collect(),
        noise: noise_of(&saved.model),
        rotation: saved.rotation.as_ref().map(|r| r.name.clone()),
        spec: saved.spec.clone(),
        method: MethodDef { name, options },
        seed: saved.seed,
        objective: saved.report.objective,
        termination: saved.report.termination,
        warnings: saved.report.warnings.clone(),
        n_rows: saved.training.n_rows,
        choice: saved.choice.clone(),
        check: saved.check.clone(),
        uncertainty: saved.model.uncertainty().map(|u| UncertaintyDef { coupled: u.coupled }),
        n_draws: saved.draws.as_ref().map(|draws| draws.models().len()),
        relevance: saved.report.relevance.clone(),
        monitored: saved.report.monitored.clone(),
    };
    let header = serde_json::to_string(&header).expect("text and numbers are JSON");
    container::write(header, &arrays, out)
}

/// Reads a model file. Whatever the bytes, the answer is a model whose parts fit together or an
/// error, and memory stays in proportion to the bytes there are.
///
/// ```
/// let refused = covary::io::model_file::read("height,weight\n1.8,\n".as_bytes()).unwrap_err();
/// assert!(refused.to_string().contains("looks like text, such as a CSV table"));
/// ```
///
/// # Errors
/// [`Error::NotAModel`] for other files, [`Error::Truncated`] for one cut short,
/// [`Error::NewerModel`] and [`Error::UnknownKind`] for what only a later version reads,
/// [`Error::BrokenModel`] for contents that contradict each other, [`Error::Read`] if the source fails.
pub fn read(input: impl Read) -> Result<Saved, Error> {
    open(input)?.into_model()
}

/// What is read first, if this version reads the rest.
fn label<R: Read>(opened: &container::Opened<R>) -> Result<Label, Error> {
    let label: Label =
        serde_json::from_str(&opened.header).map_err(|e| Error::broken("header", e.to_string()))?;
    if label.format_version > FORMAT_VERSION {
        let Label { created_by, format_version: version, .. } = label;
        return Err(Error::NewerModel { created_by, version, supported: FORMAT_VERSION });
    }
    if label.format_version >= WITH_CHECKSUM && !opened.has_checksum() {
        return Err(Error::broken("checksum", "is missing"));
    }
    Ok(label)
}

fn linear<R: Read>(opened: container::Opened<R>, created_by: String) -> Result<Saved, Error> {
    let json = |e: serde_json::Error| Error::broken("header", e.to_string());
    let header: Header = serde_json::from_str(&opened.header).map_err(json)?;
    let mut arrays = opened.arrays()?;

    let invalid = |e: crate::Error| Error::broken("model", format!("is not valid ({e})"));
    let noise = match (header.noise, arrays.take("noise_variance")?) {
        (NoiseFamily::Diagonal, variances) => Noise::Diagonal(variances),
        (NoiseFamily::Isotropic, variances) => match variances[..] {
            [variance] => Noise::Isotropic(variance),
            _ => return Err(Error::broken("noise_variance", "of isotropic noise is not one number")),
        },
    };
    let mut model =
        LinearGaussian::new(arrays.take_matrix("loadings")?, arrays.take("mean")?, noise).map_err(invalid)?;
    // Whatever follows is sized by the columns, of which there must be some.
    let (expected, got) = (model.n_columns(), header.columns.len());
    if got == 0 || expected != got {
        return Err(invalid(crate::Error::WrongLength { what: "column names", expected, got }));
    }
    let scale = take_scale(&mut arrays, &header.spec)?;
    model = model.with_scale(scale).map_err(invalid)?;
    if let Some(UncertaintyDef { coupled }) = header.uncertainty {
        let relative =
            from_triangles(&arrays.take_matrix("relative_covariances")?, model.n_components() + 1)?;
        let uncertainty = Uncertainty { relative, shape: arrays.take("noise_shape")?, coupled };
        model = model.with_uncertainty(uncertainty).map_err(invalid)?;
    }
    let draws = match header.n_draws {
        None => None,
        Some(n) => Some(take_draws(&mut arrays, n, &model)?),
    };
    let values = arrays.take("constants")?;
    if values.len() != header.constants.len() {
        return Err(Error::broken("constants", "are not one number per name"));
    }
    let constants = header.constants.into_iter().zip(values).map(|(name, value)| Constant { name, value });
    let rotation = match header.rotation {
        None => None,
        Some(name) => {
            let rotated = Rotated {
                loadings: arrays.take_matrix("rotated_loadings")?,
                transform: arrays.take_matrix("rotation")?,
                factor_correlations: arrays.take_matrix("factor_correlations")?,
            };
            Some(SavedRotation { name, rotated })
        }
    };
    let saved = Saved {
        model,
        draws,
        columns: header.columns,
        constants: constants.collect(),
        rotation,
        family: header.family,
        views: header.views,
        spec: header.spec,
        method: MethodRecord { name: header.method.name, options: header.method.options },
        seed: header.seed,
        report: FitReport {
            objective: header.objective,
            trace: arrays.take("trace")?,
            termination: header.termination,
            warnings: header.warnings,
            relevance: header.relevance,
            monitored: header.monitored,
        },
        training: Training {
            n_rows: header.n_rows,
            n_observed_by_column: counts(&arrays.take("n_observed_by_column")?)?,
            column_means: arrays.take("column_means")?,
            column_sds: arrays.take("column_sds")?,
        },
        choice: header.choice,
        check: header.check,
        created_by,
    };
    saved.check().map_err(invalid)?;
    check_names_read(&saved.columns, &saved.constants)?;
    Ok(saved)
}

/// The lower triangle of each matrix, one per row.
fn triangles(matrices: &[Matrix]) -> Matrix {
    let triangle =
        |m: &Matrix| -> Vec<f64> { (0..m.n_rows()).flat_map(|i| m.row(i)[..=i].to_vec()).collect() };
    Matrix::from_rows(&matrices.iter().map(triangle).collect::<Vec<_>>())
}

fn from_triangles(triangles: &Matrix, size: usize) -> Result<Vec<Matrix>, Error> {
    if triangles.n_columns() != packed::len(size) {
        return Err(Error::broken("relative_covariances", "are not triangles of the right size"));
    }
    Ok(triangles.rows().map(|row| packed::unpack(row, size)).collect())
}

fn noise_variances(model: &LinearGaussian) -> Vec<f64> {
    match model.noise() {
        Noise::Isotropic(variance) => vec![*variance],
        Noise::Diagonal(variances) => variances.clone(),
    }
}

/// What columns were divided by while fitting, if they were.
fn put_scale(arrays: &mut Arrays, model: &LinearGaussian) {
    if let Some(scale) = model.scale() {
        arrays.put("scale", scale.to_vec());
    }
}

/// The scale of a fit. Files from before it was kept have the standard deviations it was made of; a column that never
/// varied was divided by 1.
fn take_scale(arrays: &mut Arrays, spec: &Spec) -> Result<Option<Vec<f64>>, Error> {
    if !spec.standardize {
        return Ok(None);
    }
    if arrays.has("scale") {
        return arrays.take("scale").map(Some);
    }
    let deviation = |s: &f64| if *s > 0.0 { *s } else { 1.0 };
    Ok(Some(arrays.get("column_sds")?.iter().map(deviation).collect()))
}

/// Models of one shape, as arrays whose names begin with `prefix`.
fn put_models(arrays: &mut Arrays, prefix: &str, models: &[LinearGaussian]) {
    let stacked: Vec<&[f64]> = models.iter().flat_map(|model| model.loadings().rows()).collect();
    let means: Vec<&[f64]> = models.iter().map(LinearGaussian::mean).collect();
    let noise: Vec<Vec<f64>> = models.iter().map(noise_variances).collect();
    arrays.put_matrix(&format!("{prefix}_loadings"), &Matrix::from_rows(&stacked));
    arrays.put_matrix(&format!("{prefix}_mean"), &Matrix::from_rows(&means));
    arrays.put_matrix(&format!("{prefix}_noise"), &Matrix::from_rows(&noise));
}

/// `n` models of `d` columns.
fn take_models(
    arrays: &mut Arrays,
    prefix: &'static str,
    n: usize,
    (d, isotropic): (usize, bool),
    scale: Option<&[f64]>,
) -> Result<Vec<LinearGaussian>, Error> {
    let mut take = |what: &str| arrays.take_matrix(&format!("{prefix}_{what}"));
    let (w, mean, noise) = (take("loadings")?, take("mean")?, take("noise")?);
    let width = if isotropic { 1 } else { d };
    let shapes = mean.n_columns() == d && noise.n_columns() == width;
    if !shapes || n.checked_mul(d) != Some(w.n_rows()) || mean.n_rows() != n || noise.n_rows() != n {
        return Err(Error::broken(prefix, "do not have the shape of the model"));
    }
    let model = |s: usize| {
        let loadings = Matrix::from_fn(d, w.n_columns(), |j, i| w[(s * d + j, i)]);
        let noise =
            if isotropic { Noise::Isotropic(noise[(s, 0)]) } else { Noise::Diagonal(noise.row(s).to_vec()) };
        LinearGaussian::new(loadings, mean.row(s).to_vec(), noise)
            .and_then(|model| model.with_scale(scale.map(<[f64]>::to_vec)))
            .map_err(|e| Error::broken(prefix, format!("are not valid ({e})")))
    };
    (0..n).map(model).collect()
}

fn take_draws(arrays: &mut Arrays, n: usize, model: &LinearGaussian) -> Result<Mixture, Error> {
    let isotropic = matches!(model.noise(), Noise::Isotropic(_));
    let draws = take_models(arrays, "draws", n, (model.n_columns(), isotropic), model.scale())?;
    if draws.iter().any(|draw| draw.n_components() != model.n_components()) {
        return Err(Error::broken("draws", "do not have the shape of the model"));
    }
    Mixture::equal(draws).map_err(|e| Error::broken("draws", format!("are not valid ({e})")))
}

/// Counts are kept as f64, which is exact below 2⁵³.
fn counts(values: &[f64]) -> Result<Vec<usize>, Error> {
    let count = |&v: &f64| {
        let whole = (0.0..=9_007_199_254_740_992.0).contains(&v) && v.fract() == 0.0;
        whole.then_some(v as usize).ok_or_else(|| Error::broken("n_observed_by_column", format!("has {v}")))
    };
    values.iter().map(count).collect()
}
