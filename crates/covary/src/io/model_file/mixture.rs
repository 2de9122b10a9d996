//! The file of a mixture, or of classes with a density each: kind `mixture`.

use super::header::{Classes, Label, MethodDef, MixtureHeader};
use super::{Arrays, Constant, Error, FORMAT_VERSION, Saved, SavedSources, Training, container, counts};
use super::{ica, noise_of};
use super::{put_models, put_scale, take_models, take_scale};
use crate::infer::{FitReport, MethodRecord};
use crate::model::{Classifier, Mixture, Predictive};
use crate::select::SelfCheck;
use crate::spec::NoiseFamily;
use crate::{Dataset, Density, Fit, LinearGaussian, Spec};
use std::io::{Read, Write};

/// What the file holds.
pub(super) const KIND: &str = "mixture";

/// Everything a model file of a mixture holds.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedMixture {
    /// The mixture, as fitted.
    pub mixture: Mixture,
    /// What its components are called, if they are classes that were known.
    pub classes: Option<SavedClasses>,
    /// Names of its columns, in order.
    pub columns: Vec<String>,
    /// Columns that never varied and were set aside.
    pub constants: Vec<Constant>,
    /// What the user called the model: `mppca`, `mfa` or `gmm`; of classes that of each, such as `ppca`.
    pub family: String,
    /// What each component is.
    pub spec: Spec,
    /// How it was fitted.
    pub method: MethodRecord,
    /// The seed the user gave.
    pub seed: u64,
    /// How the fit went and ended.
    pub report: FitReport,
    /// The table it was fitted to, in a few numbers per column.
    pub training: Training,
    /// The check on hidden cells, if one was made.
    pub check: Option<SelfCheck>,
    /// The program that wrote the file, with its version.
    pub created_by: String,
}

/// Classes that rows were known to be of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedClasses {
    /// The column that named them.
    pub target: String,
    /// Their names, one for each component.
    pub names: Vec<String>,
}

/// What a model file may hold.
#[derive(Debug, Clone, PartialEq)]
pub enum Opened {
    /// One model.
    Model(Box<Saved>),
    /// Several.
    Mixture(Box<SavedMixture>),
    /// Independent components.
    Sources(Box<SavedSources>),
}

impl Opened {
    /// Names of the columns, in order.
    pub fn columns(&self) -> &[String] {
        match self {
            Self::Model(saved) => &saved.columns,
            Self::Mixture(saved) => &saved.columns,
            Self::Sources(saved) => &saved.columns,
        }
    }

    /// Columns that never varied and were set aside.
    pub fn constants(&self) -> &[Constant] {
        match self {
            Self::Model(saved) => &saved.constants,
            Self::Mixture(saved) => &saved.constants,
            Self::Sources(saved) => &saved.constants,
        }
    }

    /// The one model.
    ///
    /// # Errors
    /// [`Error::NotOneModel`] for a mixture, [`Error::NoDensity`] for independent components.
    pub fn model(&self) -> Result<&Saved, Error> {
        match self {
            Self::Model(saved) => Ok(saved),
            Self::Mixture(saved) => Err(saved.not_one()),
            Self::Sources(saved) => Err(saved.no_density()),
        }
    }

    /// The one model.
    ///
    /// # Errors
    /// [`Error::NotOneModel`] for a mixture, [`Error::NoDensity`] for independent components.
    pub fn into_model(self) -> Result<Saved, Error> {
        match self {
            Self::Model(saved) => Ok(*saved),
            Self::Mixture(saved) => Err(saved.not_one()),
            Self::Sources(saved) => Err(saved.no_density()),
        }
    }

    /// The density for rows the model has not seen.
    ///
    /// # Errors
    /// [`Error::NoDensity`] for independent components.
    pub fn of_new_rows(&self) -> Result<Predictive<'_>, Error> {
        match self {
            Self::Model(saved) => Ok(saved.of_new_rows()),
            Self::Mixture(saved) => Ok(Predictive::Model(&saved.mixture)),
            Self::Sources(saved) => Err(saved.no_density()),
        }
    }

    /// Everything in it, as JSON.
    pub fn to_json(&self) -> String {
        match self {
            Self::Model(saved) => saved.to_json(),
            Self::Mixture(saved) => saved.to_json(),
            Self::Sources(saved) => saved.to_json(),
        }
    }
}

impl SavedMixture {
    /// A fit of `data`, ready to be written.
    pub fn new(fit: Fit<Mixture>, data: &Dataset, spec: &Spec, method: MethodRecord) -> Self {
        let family = match (spec.noise, spec.n_components + 1 == data.n_columns()) {
            (NoiseFamily::Isotropic, true) => "gmm",
            (NoiseFamily::Isotropic, false) => "mppca",
            (NoiseFamily::Diagonal, _) => "mfa",
        };
        Self {
            mixture: fit.model,
            classes: None,
            columns: data.column_names().to_vec(),
            constants: Vec::new(),
            family: family.to_owned(),
            spec: spec.clone(),
            seed: method.options.get("seed").and_then(|seed| seed.parse().ok()).unwrap_or(0),
            method,
            report: fit.report,
            training: Training::of(data),
            check: None,
            created_by: concat!("covary ", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }

    /// Classes that the column `target` named, fitted to `data`.
    pub fn of_classes(
        fit: Fit<Classifier>,
        target: &str,
        data: &Dataset,
        spec: &Spec,
        method: MethodRecord,
    ) -> Self {
        let names = fit.model.classes().to_vec();
        let mixture = Fit { model: fit.model.mixture().clone(), draws: None, report: fit.report };
        let family = match spec.noise {
            NoiseFamily::Isotropic => "ppca",
            NoiseFamily::Diagonal => "fa",
        };
        Self {
            classes: Some(SavedClasses { target: target.to_owned(), names }),
            family: family.to_owned(),
            ..Self::new(mixture, data, spec, method)
        }
    }

    /// The classes with their densities, if they were known.
    pub fn classifier(&self) -> Option<Classifier> {
        let names = self.classes.as_ref()?.names.clone();
        Some(Classifier::new(names, self.mixture.clone()).expect("a name for each component was checked"))
    }

    /// Free parameters, as they were fitted: those of the models and all weights but one [M 1.9.7].
    pub fn n_parameters(&self) -> usize {
        let models = self.mixture.models();
        let spec = Spec { n_components: models[0].n_components(), ..self.spec.clone() };
        let (k, d) = (models.len(), self.columns.len());
        let one = spec.n_parameters(d);
        let again = if self.shares_covariance() { (k - 1) * (one - d) } else { 0 };
        k * one - again + k - 1
    }

    /// Whether its models were fitted with one covariance for all.
    pub fn shares_covariance(&self) -> bool {
        self.method.options.get("shared_covariance").is_some_and(|shared| shared == "true")
    }

    fn not_one(&self) -> Error {
        let what = if self.classes.is_some() { "classes with a model each" } else { "a mixture" };
        Error::NotOneModel { what }
    }

    /// Whether the parts fit together.
    fn check(&self) -> Result<(), crate::Error> {
        let length = |what, expected, got| {
            if expected == got { Ok(()) } else { Err(crate::Error::WrongLength { what, expected, got }) }
        };
        let range = |name, value, bound| Err(crate::Error::OutOfRange { name, value, bound });
        let (components, d) = (self.mixture.models(), self.mixture.n_columns());
        let (q, isotropic) = shape(&components[0]);
        length("column names", d, self.columns.len())?;
        for component in components {
            super::check_strength(component)?;
            super::check_scale(component, &self.spec)?;
            length("components of a model", q, component.n_components())?;
            length("families of noise", 1, if shape(component).1 == isotropic { 1 } else { 2 })?;
        }
        if q > self.spec.n_components {
            return range("the number of components", q as f64, "at most what the spec asks for");
        }
        if let Some(classes) = &self.classes {
            length("names of classes", components.len(), classes.names.len())?;
        }
        self.spec.check_shape(self.training.n_rows, d)?;
        self.training.check(d)?;
        if let Some(check) = &self.check {
            length("skills of columns", d, check.skill_by_column.len())?;
        }
        match self.constants.iter().find(|c| !c.value.is_finite()) {
            Some(constant) => range("a constant column", constant.value, "finite"),
            None => Ok(()),
        }
    }
}

/// Components, and whether the noise is isotropic.
fn shape(model: &LinearGaussian) -> (usize, bool) {
    (model.n_components(), matches!(model.noise(), crate::Noise::Isotropic(_)))
}

/// Writes a model file of a mixture.
///
/// # Errors
/// As [`write`](super::write).
pub fn write_mixture(saved: &SavedMixture, out: impl Write) -> Result<(), Error> {
    saved.check()?;
    super::check_names(&saved.columns, &saved.constants)?;
    let components = saved.mixture.models();
    let mut arrays = Arrays::default();
    put_models(&mut arrays, "models", components);
    put_scale(&mut arrays, &components[0]);
    arrays.put("weights", saved.mixture.weights().to_vec());
    arrays.put("trace", saved.report.trace.clone());
    saved.training.put(&mut arrays);
    arrays.put("constants", saved.constants.iter().map(|c| c.value).collect());
    let MethodRecord { name, options } = saved.method.clone();
    let header = MixtureHeader {
        format_version: FORMAT_VERSION,
        kind: KIND.to_owned(),
        created_by: saved.created_by.clone(),
        family: saved.family.clone(),
        n_mixtures: components.len(),
        classes: saved.classes.as_ref().map(|c| Classes { target: c.target.clone(), names: c.names.clone() }),
        columns: saved.columns.clone(),
        constants: saved.constants.iter().map(|c| c.name.clone()).collect(),
        noise: noise_of(&components[0]),
        spec: saved.spec.clone(),
        method: MethodDef { name, options },
        seed: saved.seed,
        objective: saved.report.objective,
        termination: saved.report.termination,
        warnings: saved.report.warnings.clone(),
        n_rows: saved.training.n_rows,
        check: saved.check.clone(),
    };
    let header = serde_json::to_string(&header).expect("text and numbers are JSON");
    container::write(header, &arrays, out)
}

/// Reads a model file of any kind; otherwise as [`read`](super::read).
///
/// ```
/// use covary::{data::{simulate, Shape}, infer::MixtureEm, io::model_file::{self, Opened, SavedMixture}, Density, Spec};
/// let (table, _, _) = simulate::mixture(Shape { rows: 90, columns: 4, n_components: 1 }, 2, 9.0, /* seed */ 1);
/// let (spec, method) = (Spec::ppca(1), MixtureEm::of(2));
/// let fit = method.fit(&table, &spec)?;
/// let densities = fit.model.log_density(&table)?;
/// let mut bytes = Vec::new();
/// model_file::write_mixture(&SavedMixture::new(fit, &table, &spec, (&method).into()), &mut bytes)?;
/// let Opened::Mixture(saved) = model_file::open(bytes.as_slice())? else { panic!("a mixture was written") };
/// assert_eq!(saved.mixture.log_density(&table)?, densities);   // to the last bit
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`read`](super::read), but that it takes mixtures and independent components too.
pub fn open(input: impl Read) -> Result<Opened, Error> {
    let opened = container::open(input)?;
    let Label { kind, created_by, .. } = super::label(&opened)?;
    match kind.as_str() {
        super::KIND => super::linear(opened, created_by).map(|saved| Opened::Model(Box::new(saved))),
        KIND => mixture(opened, created_by).map(|saved| Opened::Mixture(Box::new(saved))),
        ica::KIND => ica::sources(opened, created_by).map(|saved| Opened::Sources(Box::new(saved))),
        _ => Err(Error::UnknownKind { kind, created_by }),
    }
}

fn mixture<R: Read>(opened: container::Opened<R>, created_by: String) -> Result<SavedMixture, Error> {
    let header: MixtureHeader =
        serde_json::from_str(&opened.header).map_err(|e| Error::broken("header", e.to_string()))?;
    let mut arrays = opened.arrays()?;
    let invalid = |e: crate::Error| Error::broken("model", format!("is not valid ({e})"));
    if header.columns.is_empty() {
        return Err(invalid(crate::Error::EmptyTable { rows: header.n_rows, columns: 0 }));
    }
    let isotropic = header.noise == NoiseFamily::Isotropic;
    let scale = take_scale(&mut arrays, &header.spec)?;
    let shape = (header.columns.len(), isotropic);
    let models = take_models(&mut arrays, "models", header.n_mixtures, shape, scale.as_deref())?;
    let weights = arrays.take("weights")?;
    // Weights are divided by their sum: what was written must come back to the last bit.
    let mixture = Mixture::of_normalized(models, weights).map_err(invalid)?;
    let values = arrays.take("constants")?;
    if values.len() != header.constants.len() {
        return Err(Error::broken("constants", "are not one number per name"));
    }
    let constants = header.constants.into_iter().zip(values).map(|(name, value)| Constant { name, value });
    let saved = SavedMixture {
        mixture,
        classes: header.classes.map(|Classes { target, names }| SavedClasses { target, names }),
        columns: header.columns,
        constants: constants.collect(),
        family: header.family,
        spec: header.spec,
        method: MethodRecord { name: header.method.name, options: header.method.options },
        seed: header.seed,
        report: FitReport {
            objective: header.objective,
            trace: arrays.take("trace")?,
            termination: header.termination,
            warnings: header.warnings,
            relevance: Vec::new(),
            monitored: Vec::new(),
        },
        training: Training {
            n_rows: header.n_rows,
            n_observed_by_column: counts(&arrays.take("n_observed_by_column")?)?,
            column_means: arrays.take("column_means")?,
            column_sds: arrays.take("column_sds")?,
        },
        check: header.check,
        created_by,
    };
    saved.check().map_err(invalid)?;
    super::check_names_read(&saved.columns, &saved.constants)?;
    Ok(saved)
}
